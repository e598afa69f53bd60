#!/usr/bin/env python3
"""Is a million points planned in time? check_matrix_speed.py BINARY [--seconds 30] [--slack 1] [--threads N]

Plans tests/bench/matrix_million.yaml as a table, then writes every point as a line; the first must take less than --seconds x
--slack, both must keep under 128 MiB and see every point. Standard library only."""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(binary, more):
    words = [binary, "matrix", "--offline", "--models", os.path.join(ROOT, "tests/fixtures/models"),
             os.path.join(ROOT, "tests/bench/matrix_million.yaml")] + more
    begin = time.monotonic()
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    seconds = time.monotonic() - begin
    return done, seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--slack", type=float, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    threads = ["--threads", str(args.threads)]
    table, seconds, mib = run(args.binary, threads)
    whole = table.returncode in (0, 1) and " of 1,000,000 points" in table.stdout.split("\n")[0]
    print("%s: %.1f s, %.0f points a second, %d MiB" % (table.stdout.split("\n")[0], seconds, 1e6 / seconds, mib))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "points")
        done, line_seconds, mib = run(args.binary, threads + ["--json", "--output", path])
        with open(path, "rb") as f:
            lines = sum(1 for _ in f)
        size = os.path.getsize(path)
    print("as lines: %.1f s, %.0f points a second, %.0f bytes a line, %d MiB" % (line_seconds, 1e6 / line_seconds, size / max(lines, 1), mib))
    good = whole and lines == 1000000 and done.returncode in (0, 1) and seconds < args.seconds * args.slack and mib < 128
    print("matrix: one million points in %.1f s on %d threads (limit %.0f s)%s" % (seconds, args.threads, args.seconds * args.slack, "" if good else ": NOT REACHED"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
