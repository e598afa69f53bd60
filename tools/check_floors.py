#!/usr/bin/env python3
"""No score falls unnoticed: check_floors.py BINARY SCORER DATA... [--raise] [--floors FILE]

Runs tools/SCORER with --json on the data and compares its figures with the committed floors in tests/floors.json, which
holds for each scorer and data set the best so far of each figure, by its path in the JSON (`fields.weights.within_0.01`).
A number is a floor; {"at_most": N} is a ceiling, for figures such as misses. A figure below its floor, or one that is no
longer there, fails the check, and the scorer says in words what is missed: mend it, or lower the floor and say why in docs/evidence/floors.md. --raise writes
what is better now. Without the data it exits with 77, which counts as skipped. Standard library only.

    check_floors.py --ledger [ROOT] [--write]

Fails for a limit that asks for less than was once reached, or is gone, without a row of that page. What was reached stands in
tests/floors.best.json, which must be no less than any commit of a clone had; --write adds what is better, and lowers nothing."""
import argparse
import json
import os
import re
import subprocess
import sys

import ratchets

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


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


# ---- the ledger: what was once reached ----

# Files of committed limits. A number is a floor and {"at_most": N} a ceiling. The limits of the source tree are a table with reasons of its own.
LIMITS = ("tests/floors.json", "tools/explain_floors.json")
BEST, PAGE = "tests/floors.best.json", "docs/evidence/floors.md"
ROW = re.compile(r"^\| `([^`]+)` \| ([\d.]+) \| ([\d.]+|gone) \| (.+) \|$", re.M)


def limits_of(name, text):
    """{"scorer data: figure": (number, 1 for a floor and -1 for a ceiling)}"""
    found = {}
    for key, value in json.loads(text).items():
        pairs = [(key, value)] if isinstance(value, (int, float)) else [("%s: %s" % (key, figure), one) for figure, one in value.items()]
        for place, one in pairs:
            ceiling = isinstance(one, dict)
            found["%s: %s" % (os.path.basename(name), place) if name != LIMITS[0] else place] = (one["at_most"] if isinstance(one, dict) else one, -1 if ceiling else 1)
    return found


def better(one, two):
    """Whether `one` asks for more than `two`."""
    return (one[0] - two[0]) * one[1] > 0


def git(root, *words):
    return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False).stdout


def history(root):
    """Every limit that was ever committed: (commit, {figure: limit}). Nothing outside a clone."""
    if os.path.realpath(git(root, "rev-parse", "--show-toplevel").strip() or "/") != os.path.realpath(root):
        return
    for name in (*LIMITS, BEST):
        for commit in git(root, "log", "--format=%h", "--", name).split():
            text = git(root, "show", "%s:%s" % (commit, name))
            if text:
                yield commit, {key: tuple(value) for key, value in json.loads(text).items()} if name == BEST else limits_of(name, text)


def ledger(root, write=False):
    """Lines about limits that ask for less than was once reached, without a row of docs/evidence/floors.md that says why."""
    now = {}
    for name in LIMITS:
        now.update(limits_of(name, read(os.path.join(root, name))))
    best = {key: tuple(value) for key, value in json.loads(read(os.path.join(root, BEST))).items()} if os.path.exists(os.path.join(root, BEST)) else {}
    known = dict(best)
    past = {}
    for commit, limits in history(root):
        for key, limit in limits.items():
            if key not in past or better(limit, past[key][0]):
                past[key] = (limit, commit)
    if write:
        for key, limit in [*now.items(), *((key, limit) for key, (limit, _) in past.items())]:
            if key not in best or better(limit, best[key]):
                best[key] = limit
        if best != known:
            with open(os.path.join(root, BEST), "w", encoding="utf-8") as file:
                file.write("{\n%s\n}\n" % ",\n".join("%s: %s" % (json.dumps(key), json.dumps(list(best[key]))) for key in sorted(best)))
    for key, (limit, commit) in sorted(past.items()):
        if (key not in best or better(limit, best[key])) and not (key in now and now[key] == limit):
            yield "%s: %s has %s, and %s was reached (%s)" % (key, BEST, best[key][0] if key in best else "nothing", limit[0], commit)
    for key, limit in sorted(now.items()):
        if key not in best or better(limit, best[key]):
            yield "%s: %s is new: tools/check_floors.py --ledger --write" % (key, limit[0])
    page = read(os.path.join(root, PAGE))
    rows = {key: (float(was), said, why) for key, was, said, why in ROW.findall(page)}
    for key, limit in sorted(best.items()):
        if key in now and not better(limit, now[key]):
            continue
        is_now = "%.6g" % now[key][0] if key in now else "gone"
        if key not in rows and any(key.startswith(whole[:-1]) and said == "gone" for whole, (_, said, _) in rows.items() if whole.endswith("*")):
            continue
        row = rows.get(key)
        if not row or "%.6g" % row[0] != "%.6g" % limit[0] or row[1] != is_now or len(row[2].split()) < 5:
            yield "%s: %s was reached and is %s now: %s has no row `%s` | %.6g | %s | with the reason" % (key, "%.6g" % limit[0], is_now, PAGE, key, limit[0], is_now)
    yield from raised_by_hand(root)
    for key in rows:
        if not key.endswith("*") and (key not in best or key in now and not better(best[key], now[key])):
            yield "%s: %s says that it fell, and it did not" % (key, PAGE)


def raised_by_hand(root):
    """Limits of the source tree that are above what was once committed, without a reason in their row."""
    try:
        now = ratchets.table(root)[1]
    except (OSError, ValueError) as error:
        yield str(error)
        return
    if not os.path.exists(os.path.join(root, ".git")):
        return
    for commit in git(root, "log", "--format=%h", "--", ratchets.PAGE).split():
        text = git(root, "show", "%s:%s" % (commit, ratchets.PAGE))
        for what, (_, limit, _) in ratchets.rows_of(text).items() if ratchets.BEGIN in text else ():
            if what not in now or len(now[what][2].split()) >= 3:
                continue
            if now[what][1] < limit if what in ratchets.AT_LEAST else now[what][1] > limit:
                yield "%s: the limit was %s (%s) and is %s: its row in %s says not what for" % (what, limit, commit, now[what][1], ratchets.PAGE)
                now[what] = (0, limit, now[what][2])


def main():
    if sys.argv[1:2] == ["--ledger"]:
        words = [word for word in sys.argv[2:] if word != "--write"]
        wrong = list(ledger(words[0] if words else ROOT, "--write" in sys.argv))
        print("\n".join(wrong) if wrong else "no limit asks for less than was reached, but for those of %s" % PAGE)
        return 1 if wrong else 0
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
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    if done.returncode > 1:
        print(done.stdout, done.stderr, f"{asked.scorer} could not run (exit {done.returncode})")
        return 1
    scores = json.loads(done.stdout)
    fallen, raised = compare(known[name], scores)
    if fallen:  # what is missed, in words
        print(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    for line in fallen:
        print(f"fell: {name}: {line}")
    if asked.rewrite and not fallen and raised != known[name]:
        known[name] = raised
        with open(asked.floors, "w", encoding="utf-8") as file:
            json.dump(known, file, indent=1)
            file.write("\n")
        if os.path.samefile(asked.floors, os.path.join(ROOT, LIMITS[0])):
            list(ledger(ROOT, write=True))
        print("floors raised")
    print(f"{name}: " + "; ".join(f"{path} {figure(scores, path)}" for path in known[name]))
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
