#!/usr/bin/env python3
"""The scripts of tests/cli in a tree whose path has a space: spaced.py BINARY. Each says what it says elsewhere. Simulated starts are left out: they take
their time and have paths of their own. Prints what breaks; exit 1 when anything does."""
import glob
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# They tell of this machine or start processes; `extend` writes into a copy of the data that it finds beside it.
ELSEWHERE = ("dryrun", "doctor", "run_", "top", "plan_machine", "bisect_dryrun", "matrix_cache", "explain_follow")


def main():
    broken, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "any place")
        os.makedirs(os.path.join(tree, "tests"))
        for name in os.listdir(ROOT):
            if name not in ("tests", "data", ".git") and not name.startswith("build"):
                os.symlink(os.path.join(ROOT, name), os.path.join(tree, name))
        for name in os.listdir(os.path.join(ROOT, "tests")):
            if name != "cli":
                os.symlink(os.path.join(ROOT, "tests", name), os.path.join(tree, "tests", name))
        for name in ("tests/cli", "data"):  # some scripts copy the data and change the copy
            subprocess.run(["cp", "-r", os.path.join(ROOT, name), os.path.join(tree, os.path.dirname(name))], check=True)
        os.symlink(os.path.abspath(sys.argv[1]), os.path.join(tree, "oomsight"))
        for script in sorted(glob.glob(os.path.join(tree, "tests", "cli", "*.sh"))):
            if os.path.basename(script).startswith(ELSEWHERE):
                continue
            run = subprocess.run(["sh", "-c", 'cd "$1" && exec sh "$2"', "sh", os.path.dirname(script), script], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                 env={**os.environ, "OOMSIGHT": os.path.join(tree, "oomsight"), "NO_COLOR": "1", "LC_ALL": "C.UTF-8"})
            expected = {part: open(script[:-2] + part, encoding="utf-8").read() for part in ("stdout", "stderr") if os.path.exists(script[:-2] + part)}
            told = {"stdout": run.stdout, "stderr": run.stderr}
            count += 1
            for part, text in expected.items():
                if told[part] != text:
                    lines = [pair for pair in zip(text.splitlines(), told[part].splitlines()) if pair[0] != pair[1]][:1]
                    broken.append("%s, %s: %s" % (os.path.basename(script), part, lines or (len(text), len(told[part]))))
    print("\n".join(broken))
    print("spaced: %d of %d scripts say the same in a path with a space" % (count - len({line.split(",")[0] for line in broken}), count))
    return 1 if broken or count < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
