#!/usr/bin/env python3
"""What the gate costs: gate_times.py BUILD [--tests] [--most N]

The processor time of each step of the last .ci/run, from gate-times of the git directory. --tests runs each test of the gate by itself and prints
those that take most of the processor: a busy machine changes the seconds, hardly the order."""
import argparse
import json
import os
import resource
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEFT_OUT = {"sweep", "clock"}
SUITES = {"unit", "golden", "cli", "shim", "web"}


def steps():
    folder = subprocess.run(["git", "-C", ROOT, "rev-parse", "--absolute-git-dir"], capture_output=True, text=True, check=True).stdout.strip()
    path = os.path.join(folder, "gate-times")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [(name, int(seconds), int(processor)) for name, seconds, processor in map(str.split, file)]


def gate_tests(build):
    """The tests that .ci/run asks of its first build."""
    listed = json.loads(subprocess.run(["meson", "introspect", "--tests", build], capture_output=True, text=True, check=True).stdout)
    for test in listed:
        suites = {suite.rpartition(":")[2] for suite in test["suite"]}
        if suites & SUITES and not suites & LEFT_OUT:
            yield test


def spent(test):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(test["cmd"], env=dict(os.environ, **test["env"]), cwd=test["workdir"] or None, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--most", type=int, default=10)
    asked = parser.parse_args()
    rows = sorted(steps(), key=lambda row: -row[2])
    print("%-24s %10s %10s" % ("step", "processor", "seconds"))
    print("".join("%-24s %8d s %8d s\n" % (name, processor, seconds) for name, seconds, processor in rows), end="")
    print("%-24s %8d s" % ("all", sum(row[2] for row in rows)))
    if asked.tests:
        times = sorted(((spent(test), test["name"]) for test in gate_tests(os.path.abspath(asked.build))), reverse=True)
        print("\n%d tests take %.0f s of the processor; most of all:" % (len(times), sum(time for time, _ in times)))
        print("\n".join("%8.1f s  %s" % row for row in times[:asked.most]))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
