#!/usr/bin/env python3
"""Input made to hurt: bounded time and memory, and what was cut is said. usage: hostile.py BINARY [--full]
--full takes a line of 1 GB, 10^6 incidents and larger bombs (a minute, 3 GB in a temporary folder); else a tenth of it."""
import gzip
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

OOM = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 1.00 MiB is "
       "free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.\n")
START = "INFO 01-01 00:00:00 [api_server.py:1] vLLM API server version 0.19.1\nINFO 01-01 00:00:00 [gpu_model_runner.py:1] Starting to load model m...\n"
RSS_LIMIT_KIB = 64 << 10


class Case:
    def __init__(self, binary):
        self.binary, self.bad = binary, 0

    def run(self, name, path, seconds, check):
        start = time.monotonic()
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        run = subprocess.run(["/usr/bin/env", "python3", "-c", PEAK, self.binary, "explain", "--json", path], capture_output=True, check=False)
        took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        peak_kib = int(run.stderr.split()[-1])
        answers = [json.loads(line) for line in run.stdout.decode().splitlines()]
        told = (answers[0]["cut"] or "") if answers else ""
        wrong = check(answers, told)
        # Sanitizers keep what is freed; their memory says nothing.
        if "--sanitized" not in sys.argv:
            wrong = wrong or (peak_kib > RSS_LIMIT_KIB and f"{peak_kib >> 10} MiB") or (took > seconds and f"{took:.1f} s of {seconds}")
        self.bad += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {name}: {took:.2f} s of processor time ({time.monotonic() - start:.2f} s), {peak_kib >> 10} MiB{': ' + str(wrong) if wrong else ''}")


# The peak of one child alone.
PEAK = ("import resource,subprocess,sys;r=subprocess.run(sys.argv[1:]);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,file=sys.stderr);sys.exit(r.returncode)")


def one_incident(answers, _told):
    return None if len(answers) == 1 and answers[0]["is_oom"] else f"{len(answers)} answers"


def quiet(answers, _told):
    return None if len(answers) == 1 and not answers[0]["is_oom"] else f"{len(answers)} answers"


def main():
    case, big = Case(sys.argv[1]), 10 if "--full" in sys.argv else 1
    with tempfile.TemporaryDirectory() as folder:
        def file(name, pieces):
            path = os.path.join(folder, name)
            with open(path, "wb") as f:
                for piece in pieces:
                    f.write(piece)
            return path

        path = file("line", [b"x" * 1000000 for _ in range(100 * big)] + [b"\n" + (OOM % 40).encode()])
        case.run(f"a line of {100 * big} MB before the failure", path, 2 * big, one_incident)
        os.remove(path)
        path = file("dense", [b"Tried to allocate " * 50000 for _ in range(10 * big)])
        case.run(f"a line of {9 * big} MB that hits everywhere", path, 20 * big, lambda a, t: None if len(a) == 1 else "answers")
        os.remove(path)

        def incidents():
            for at in range(100000 * big):
                yield (START + OOM % (at + 1)).encode()
        path = file("many", incidents())
        case.run(f"{100000 * big} different incidents", path, 20 * big,
                 lambda a, t: None if 1 < len(a) <= 200 and "not shown" in t else f"{len(a)} answers, told {t[:80]}")
        os.remove(path)
        path = file("same", ((START + OOM % 40).encode() for _ in range(100000 * big)))
        case.run(f"{100000 * big} equal incidents", path, 20 * big, lambda a, t: None if len(a) == 1 and a[0]["is_oom"] else f"{len(a)} answers")
        os.remove(path)

        evil = [b"Tried to allocate" + b" " * 12000 + b"\n", b"total capacity of " + b"1" * 12000 + b"\n", b"Process has " * 1000 + b"memory in use\n",
                b"max seq len (" + b"9" * 12000 + b"), (" + b"9" * 3000 + b" KV cache is needed\n", b"out of memory" + b" failed" * 2000 + b"\n",
                b"NCCL WARN " + b"out of " * 2000 + b"\n", b"((((((((" * 2000 + b"Error: \n", b"\x1b[" * 6000 + b"Traceback (most recent call last)\n",
                b"GPU 0; " + b"1.00 GiB total; " * 800 + b"\n", b"non-default args: {" + b"'a': {" * 2000 + b"\n", b"vllm serve " + b"'\\\"{" * 3000 + b"\n",
                b"Error in memory profiling." + b" " * 12000 + b"Initial\n", b"Free memory on device (" * 600 + b"\n"]
        path = file("evil", (line for _ in range(60 * big) for line in evil))
        case.run("lines that look catastrophic", path, 10 * big, lambda a, t: None if a else "no answer")
        os.remove(path)

        bomb = gzip.compress(b"\0" * (100000000 * big), 9)
        path = file("bomb.gz.gz", [gzip.compress(bomb, 9)])
        case.run(f"{100 * big} MB of zeros in {os.path.getsize(path)} bytes", path, 4 * big, quiet)
        inner = (OOM % 40).encode()
        for _ in range(8):
            inner = gzip.compress(inner, 1)
        case.run("eight gz inside one another", file("nested.gz", [inner]), 2, one_incident)
        for _ in range(8):
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w:gz") as t:
                info = tarfile.TarInfo("inner.tar.gz")
                info.size = len(inner)
                t.addfile(info, io.BytesIO(inner))
            inner = packed.getvalue()
        case.run("eight tar.gz inside one another", file("nested.tar.gz", [inner]), 2, lambda a, t: None if "innermost" in t else "not said: " + t[:80])
        members = io.BytesIO()
        with zipfile.ZipFile(members, "w", zipfile.ZIP_DEFLATED) as z:
            for at in range(20000 * big):
                z.writestr(f"logs/{at}.log", b"")
            z.writestr("logs/last.log", OOM % 40)
        path = file("many.zip", [members.getvalue()])
        case.run(f"a zip of {20000 * big} empty files and one failure", path, 10 * big, lambda a, t: None if any(x["is_oom"] for x in a) else f"{len(a)} answers")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:xz") as t:
            info = tarfile.TarInfo("../../etc/passwd")
            info.size = len(OOM % 40)
            t.addfile(info, io.BytesIO((OOM % 40).encode()))
        path = file("names.tar.xz", [packed.getvalue()])
        case.run("a tar whose names climb out", path, 2, one_incident)
        path = file("half.gz", [gzip.compress((START + OOM % 40).encode() * 1000 + os.urandom(2000000))[:1000000]])
        case.run("a gz that ends in the middle", path, 4, lambda a, t: None if any(x["is_oom"] for x in a) and "damaged" in t else "told: " + t[:80])
    print(f"hostile input: {case.bad} failed")
    return 1 if case.bad else 0


if __name__ == "__main__":
    sys.exit(main())
