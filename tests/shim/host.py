"""Host memory of a dry run's report beside what the processes themselves read in /proc: tests/shim/host.py BINARY

The command writes 200 MiB of its own and 96 MiB that it shares with a child, pins 64 MiB with the runtime, and tells what /proc says of
both before it ends. The report may differ by what Python does meanwhile."""
import ctypes
import json
import mmap
import os
import subprocess
import sys
import time

MIB = 1 << 20
OWN, SHARED, PINNED, CHILD = 200, 96, 64, 40
SLACK = 4 * MIB


def status(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        fields = dict(line.split(":", 1) for line in f)
    return {"pid": pid, "name": fields["Name"].strip(), "resident_bytes": int(fields["VmRSS"].split()[0]) << 10,
            "shared_bytes": int(fields["RssShmem"].split()[0]) << 10}


def command():
    """Under the dry run."""
    runtime = ctypes.CDLL("libcudart.so.13")
    own = bytearray(os.urandom(1) * (OWN * MIB))
    shared = mmap.mmap(-1, SHARED * MIB)
    shared.write(b"x" * (SHARED * MIB))
    at = ctypes.c_void_p()
    assert runtime.cudaHostAlloc(ctypes.byref(at), ctypes.c_size_t(PINNED * MIB), 0) == 0
    child = os.fork()
    if not child:
        more = bytearray(os.urandom(1) * (CHILD * MIB))
        sum(shared[::4096])  # its own map of the same pages
        time.sleep(60)
        os._exit(len(more))
    time.sleep(1)
    told = [status(os.getpid()), status(child)]
    print("TOLD", json.dumps(told), flush=True)
    time.sleep(1)
    os.kill(child, 9)
    os.waitpid(child, 0)
    del own


def main():
    binary = os.path.abspath(sys.argv[1])
    done = subprocess.run([binary, "dryrun", "--json", "--gpu", "L4", "--cuda", "13", "--", sys.executable, os.path.abspath(__file__), "--command"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    told = [json.loads(line[5:]) for line in done.stderr.split("\n") if line.startswith("TOLD ")]
    assert done.returncode == 0 and told, done.stderr
    host = json.loads(done.stdout)["host"]
    assert len(host) == 1, host  # a program without phases
    rows = {row["pid"]: row for row in host[0]["processes"]}
    assert len(rows) == 2, rows
    for truth in told[0]:
        row = rows[truth["pid"]]
        assert row["name"] == truth["name"]
        for field in ("resident_bytes", "shared_bytes"):
            assert abs(row[field] - truth[field]) <= SLACK, (field, row, truth)
    first, second = (rows[truth["pid"]] for truth in told[0])
    assert first["resident_bytes"] >= (OWN + SHARED) * MIB and first["shared_bytes"] >= SHARED * MIB
    assert second["resident_bytes"] >= CHILD * MIB
    assert first["pinned_bytes"] == PINNED * MIB and second["pinned_bytes"] == 0, rows
    for field in ("resident_bytes", "shared_bytes", "pinned_bytes"):
        assert host[0][field] == sum(row[field] for row in rows.values())
    print("resident %d and %d MiB, shared %d, pinned %d: as in /proc within %d MiB" % (
        first["resident_bytes"] / MIB, second["resident_bytes"] / MIB, first["shared_bytes"] / MIB, first["pinned_bytes"] / MIB, SLACK / MIB))


if __name__ == "__main__":
    if sys.argv[1] == "--command":
        command()
    else:
        main()
