#!/usr/bin/env python3
"""No score falls unnoticed: check_floors.py BINARY SCORER DATA... [--raise] [--floors FILE]

Runs tools/SCORER with --json on the data and compares its figures with the committed floors in tests/floors.json, which
holds for each scorer and data set the best so far of each figure, by its path in the JSON (`fields.weights.within_0.01`).
A number is a floor; {"at_most": N} is a ceiling, for figures such as misses. A figure below its floor, or one that is no
longer there, fails the check: mend it, or lower the floor in the same commit and say why in its message. --raise writes
what is better now. Without the data it exits with 77, which counts as skipped. Standard library only."""
import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def figure(found, path):
    """What stands at a dotted path; keys may hold dots themselves, so the longest key that fits is taken."""
    if not path:
        return found
    words = path.split(".")
    for count in range(len(words), 0, -1):
        key = ".".join(words[:count])
        if isinstance(found, dict) and key in found:
            return figure(found[key], ".".join(words[count:]))
        if isinstance(found, list) and count == 1 and key.isdigit() and int(key) < len(found):
            return figure(found[int(key)], ".".join(words[1:]))
    return None


def compare(floors, scores):
    """-> (lines about figures that fell, floors with everything that rose)"""
    fallen, raised = [], {}
    for path, floor in floors.items():
        value = figure(scores, path)
        ceiling = isinstance(floor, dict)
        limit = floor["at_most"] if ceiling else floor
        if not isinstance(value, (int, float)):
            fallen.append(f"{path}: not among the figures any more (floor {limit})")
            raised[path] = floor
            continue
        if value > limit if ceiling else value < limit:
            fallen.append(f"{path}: {value}, {'at most' if ceiling else 'floor'} {limit}")
        best = min(value, limit) if ceiling else max(value, limit)
        raised[path] = {"at_most": best} if ceiling else best
    return fallen, raised


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("binary")
    parser.add_argument("scorer")
    parser.add_argument("data", nargs="+")
    parser.add_argument("--raise", dest="rewrite", action="store_true")
    parser.add_argument("--floors", default=os.path.join(ROOT, "tests", "floors.json"))
    asked = parser.parse_args()
    missing = [path for path in asked.data if not os.path.exists(path)]
    if missing:
        print(f"no data at {', '.join(missing)}: accuracy not checked")
        return 77

    with open(asked.floors, encoding="utf-8") as file:
        known = json.load(file)
    name = " ".join([asked.scorer] + [os.path.basename(os.path.normpath(path)) for path in asked.data])
    if name not in known:
        print(f"{asked.floors} has no floors for '{name}'")
        return 1
    command = [sys.executable, os.path.join(ROOT, "tools", asked.scorer), asked.binary, *asked.data]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    if done.returncode > 1 or shown.returncode > 1:
        print(shown.stdout, shown.stderr, done.stderr, f"{asked.scorer} could not run (exit {done.returncode})")
        return 1
    fallen, raised = compare(known[name], json.loads(done.stdout))
    print(shown.stdout)
    for line in fallen:
        print(f"fell: {name}: {line}")
    if asked.rewrite and not fallen and raised != known[name]:
        known[name] = raised
        with open(asked.floors, "w", encoding="utf-8") as file:
            json.dump(known, file, indent=1)
            file.write("\n")
        print("floors raised")
    print(shown.stdout.strip().splitlines()[-1] if shown.stdout.strip() else name)
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
