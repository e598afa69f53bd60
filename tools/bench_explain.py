#!/usr/bin/env python3
"""explain against the tools it must not be slower than, on one file: bench_explain.py BUILD LOGS [--mb 2000]

Makes a log of that size from the logs in LOGS (tools/big_log.py), in a temporary folder that is removed. Medians of three, the file in
memory: the whole of explain against the bare scan for the same literals (at most 1.5 times), against `rg -F -c` with them (at most
half), and a .zst of it against `zstd -dc` or the scan, whichever is slower (at most 1.3 times); peak memory under 64 MiB; a log of
100 KB, cold, in 30 ms. Exit 1 when one is missed, 77 without rg or zstd. Run it on a quiet machine."""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def timed(command, rounds=3):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("logs")
    parser.add_argument("--mb", type=int, default=2000)
    parser.add_argument("--file", help="measure with this file, made before, instead of making one")
    args = parser.parse_args()
    if not shutil.which("rg") or not shutil.which("zstd"):
        print("no rg or no zstd")
        return 77
    here = os.path.dirname(os.path.abspath(__file__))
    explain = os.path.join(args.build, "cli/oomsight")
    bad = 0

    def told(name, value, limit, unit=""):
        nonlocal bad
        bad += value > limit
        print("%s %-44s %6.2f%s (at most %g)" % ("FAIL" if value > limit else "ok  ", name, value, unit, limit), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        big, literals = args.file or os.path.join(folder, "big.log"), os.path.join(folder, "literals")
        if not args.file:
            with open(big, "wb") as f:
                subprocess.run([sys.executable, os.path.join(here, "big_log.py"), args.logs, str(args.mb)], stdout=f, check=True)
        if not os.path.exists(big + ".zst"):
            subprocess.run(["zstd", "-q", "-1", big, "-o", big + ".zst" if args.file else os.path.join(folder, "big.log.zst")], check=True)
        packed = big + ".zst" if args.file else os.path.join(folder, "big.log.zst")
        line = subprocess.run([os.path.join(args.build, "tests/bench/bench_explain"), big, literals], capture_output=True, text=True, check=True).stdout
        print(line.strip())
        scan = float(re.search(r"bare scan ([\d.]+) s", line).group(1))
        told("whole, against the bare scan", float(re.search(r"ratio ([\d.]+)", line).group(1)), 1.5)
        whole = timed([explain, "explain", big])
        rg = timed(["rg", "-F", "-c", "-f", literals, big])
        told("whole (%.2f s), against rg -F -c (%.2f s)" % (whole, rg), whole / rg, 0.5)
        unzstd, zst = timed(["zstd", "-dc", packed]), timed([explain, "explain", packed])
        told(".zst (%.2f s), against zstd -dc (%.2f s) or scan" % (zst, unzstd), zst / max(unzstd, scan), 1.3)
        told("peak memory", peak(explain, big), 64, " MiB")
        small = os.path.join(folder, "small.log")
        with open(big, "rb") as f, open(small, "wb") as to:
            to.write(f.read(100000))
        told("100 KB, cold process", timed([explain, "explain", small], 15) * 1000, 30, " ms")
    return 1 if bad else 0


def peak(explain, path):
    code = "import resource,subprocess,sys;subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL);print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    return int(subprocess.run([sys.executable, "-c", code, explain, "explain", path], capture_output=True, text=True, check=True).stdout) / 1024


if __name__ == "__main__":
    sys.exit(main())
