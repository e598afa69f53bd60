#!/usr/bin/env python3
"""What plan suggests first, beside what was written down before: situations.py BINARY [--at-least SAME] [--verbose]

tests/plan/situations.tsv has a GPU, a command and a pattern of the command that someone who knows the engine pastes first ("gpus: ...": other GPUs are
the answer; "will start": the command needs nothing). Right: the first suggestion; later: another one of the list; missing: none of it. Rows of `seen`
were chosen with the answers of an older version in sight, rows of `fresh` were written before the program was run on them."""
import argparse
import collections
import json
import os
import re
import subprocess
import sys


def offered(binary, gpu, command):
    """What a reader may take, in the order of the text."""
    done = subprocess.run([binary, "plan", "--offline", "--json", "--gpu", gpu, "--", *command.split()], capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        return ["no plan: " + done.stderr.strip().split("\n")[0]]
    said = json.loads(done.stdout)
    if said["verdict"] == "fits" or said.get("likely") == "starts":
        return ["will start"]
    needs = said["needs"] or {}
    gpus = ", ".join("%d x %s" % (need["count"], need["gpu"]) for need in needs.get("gpus") or [])
    rest = [one["command"] for one in said["fixes"][len(said["answers"]):] + (needs.get("checkpoints") or []) if one.get("command")]
    return [answer["command"] for answer in said["answers"]] + ["gpus: " + gpus] * bool(gpus) + rest or [said["verdict"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--at-least", type=int, default=0, help="right ones, of all")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    found = collections.Counter()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "situations.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    for kind, gpu, command, wanted in rows:
        list_ = offered(options.binary, gpu, command)
        how = "right" if re.search(wanted, list_[0]) else "later" if any(re.search(wanted, one) for one in list_) else "missing"
        found[kind, how] += 1
        if how != "right" or options.verbose:
            print("%s (%s): --gpu %s -- %s\n    first: %s\n    wanted: %s" % (how, kind, gpu, command, list_[0][:160], wanted))
    right = sum(count for (_, how), count in found.items() if how == "right")
    print("%d of %d right; %s" % (right, len(rows), ", ".join("%s %s %d" % (*key, found[key]) for key in sorted(found))))
    return 1 if right < options.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
