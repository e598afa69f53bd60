"""What happens to the launcher when a run goes wrong around it: a damaged segment is told, never believed, never a crash;
a traced run is a file that `replay` reads.

    tests/shim/faults.py BINARY"""
import json
import os
import subprocess
import sys
import tempfile

BINARY = os.path.abspath(sys.argv[1])
TAKE = """
import ctypes
rt = ctypes.CDLL(None)
at = [ctypes.c_void_p() for _ in range(4)]
for i in range(3):
    assert rt.cudaMalloc(ctypes.byref(at[i]), ctypes.c_size_t((i + 1) << 21)) == 0
assert rt.cudaFree(at[1]) == 0
assert rt.cudaMalloc(ctypes.byref(at[3]), ctypes.c_size_t(1 << 40)) == 2
"""
failed = 0


def check(sentence, holds, seen=""):
    global failed
    failed += not holds
    print("%s %s%s" % ("ok  " if holds else "FAIL", sentence, "" if holds else ": %s" % (seen,)))


def dryrun(*words):
    return subprocess.run([BINARY, "dryrun", "--gpu", "A30", "--gpu-total", "8GiB", "--outside", "300MiB", "--cuda", "13", *words],
                          capture_output=True, text=True, timeout=60, check=False)


def main():
    for what, command in (("cut short", ': > "$OOMSIGHT_SEGMENT"; exit 5'),
                          ("cut short while lines come", ': > "$OOMSIGHT_SEGMENT"; echo Starting to load model; exit 5'),
                          ("overwritten", 'head -c 300000 /dev/urandom | dd of="$OOMSIGHT_SEGMENT" conv=notrunc bs=64k; exit 5'),
                          ("overwritten behind its head", 'head -c 300000 /dev/urandom | dd of="$OOMSIGHT_SEGMENT" conv=notrunc '
                           'bs=1k seek=3; exit 5'),
                          ("removed", 'rm "$OOMSIGHT_SEGMENT"; exit 5')):
        done = dryrun("--", "sh", "-c", 'echo "at:$OOMSIGHT_SEGMENT"; ' + command)
        place = done.stderr.partition("at:")[2].partition("\n")[0]
        check("a segment that is %s is told, and the child's code passed on" % what,
              done.returncode == 5 and "damaged" in done.stdout, (done.returncode, done.stdout, done.stderr[-300:]))
        check("and no scratch files are left", place and not os.path.exists(os.path.dirname(place)), place)
    done = dryrun("--", "sh", "-c", "kill -9 $$")
    check("a command that is killed ends the run", done.returncode == 137, done.returncode)
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "run.trace")
        done = dryrun("--json", "--trace", trace, "--", sys.executable, "-c", TAKE)
        report = json.loads(done.stdout or "{}")
        check("a traced run names its trace", report.get("trace") == os.path.realpath(trace), done.stderr[-300:])
        again = subprocess.run([BINARY, "replay", "--json", "--no-what-if", trace], capture_output=True, text=True,
                               timeout=60, check=False)
        replay = json.loads(again.stdout or "{}")
        check("replay reads every event of it", replay.get("events") == 5, again.stderr)
        check("replay finds the same end", replay.get("outcome") == "oom" and replay.get("oom_at") == 4, replay)
        check("replay counts the same bytes", replay.get("peak_allocated_bytes") == 6 << 21, replay)
        check("replay has the same device", (replay.get("settings") or {}).get("device_total_bytes") == 8 << 30, replay)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
