#!/usr/bin/env python3
"""A flag that is misspelt is corrected, never dropped: misspelt.py BINARY [--count N] [--seed S]

Flags are drawn by seed from the tables of both engines, with a value of their kind, one or two in a command; a letter is lost, doubled, swapped or
another, or a dash is an underscore. Where the engine would not take the word, the suggested command must have the flag that was meant with its value
and everything else of the command, and must not be refused for its words. A spelling that another flag is as near to is not asked. Prints what breaks
and ends with one line; exit 1 when anything does."""
import argparse
import json
import os
import random
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "../../data/engines")
ENGINES = {"vllm": (["vllm", "serve", "Qwen/Qwen3-4B"], "0.32.0"), "sglang": (["sglang", "serve", "Qwen/Qwen3-4B"], "0.5.23")}
VALUES = {"flag": None, "int": "2", "float": "0.5"}
WORDS = {"unrecognized arguments", "ambiguous option"}


def version(text):
    return tuple(int(part) for part in text.split("."))


def table(engine, release):
    """{flag: kind} of what a release has; everything that it would take for a flag."""
    with open(os.path.join(DATA, engine, "flags.json"), encoding="utf-8") as f:
        flags = json.load(f)["flags"]
    here = [f for f in flags if version(f.get("since", "0.0.0")) <= version(release) and not f.get("until")]
    for flag in here:
        for change in flag.get("changes", []):
            if version(change["since"]) <= version(release):
                flag["kind"] = change.get("kind", flag["kind"])
    return {f["names"][0]: f["kind"] for f in here if f["kind"] in VALUES and f["names"][0].startswith("--")}, {n for f in flags for n in f["names"]}


def edits(a, b):
    """How many letters differ; swapped neighbours are one."""
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (x != y)))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[-1] = min(row[-1], rows[-2][j - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


def misspell(rng, flag):
    at = rng.randrange(3, len(flag) - 1)
    return rng.choice([flag[:at] + flag[at + 1:], flag[:at] + flag[at] + flag[at:], flag[:at] + flag[at + 1] + flag[at] + flag[at + 2:],
                       flag[:at] + rng.choice("aeiourst") + flag[at + 1:], flag[:2] + flag[2:].replace("-", "_")])


def plan(binary, engine, release, words):
    done = subprocess.run([binary, "plan", "--offline", "--json", "--gpu", "h100x2", "--engine", "%s=%s" % (engine, release), "--", *words],
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout.startswith("{") else None


def refused_words(said):
    return said["phase"] == "arguments" and any(word in (said.get("why") or "") for word in WORDS)


def judge(binary, engine, release, right, wrong):
    """None: the engine takes the words; else a sentence for what breaks, or ''."""
    head = ENGINES[engine][0]
    said = plan(binary, engine, release, head + wrong)
    if said is None or not refused_words(said):
        return None
    meant = plan(binary, engine, release, head + right)
    if meant is None or refused_words(meant):
        return None
    fixes = [f["command"] for f in said["fixes"] or [] if f.get("command")]
    if not fixes:
        # What is corrected may have nothing that helps: then the right command has nothing either.
        return "" if not meant["fixes"] and meant["verdict"] != "fits" else "nothing is suggested"
    words = shlex.split(fixes[0])
    has = {word[:2] + word[2:].replace("_", "-") for word in words if word.startswith("--")}
    if meant["verdict"] == "fits" and not has.issuperset(word for word in right if word.startswith("--")):
        return "dropped: %s" % fixes[0]
    again = plan(binary, engine, release, words)
    return "refused: %s" % fixes[0] if again is None or refused_words(again) else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng, broken, tried = random.Random(asked.seed), 0, {}
    for engine, (_, release) in ENGINES.items():
        kinds, names = table(engine, release)
        tried[engine] = 0
        for _ in range(asked.count):
            right, wrong = [], []
            for flag in rng.sample(sorted(kinds), rng.choice((1, 1, 2))):
                value = [] if VALUES[kinds[flag]] is None else [VALUES[kinds[flag]]]
                bad = misspell(rng, flag)
                far = edits(bad.replace("_", "-"), flag)
                if bad in names or any(edits(bad.replace("_", "-"), other) <= far for other in names if other != flag and abs(len(other) - len(bad)) <= far):
                    bad = flag
                right += [flag, *value]
                wrong += [bad, *value]
            found = judge(asked.binary, engine, release, right, wrong)
            tried[engine] += found is not None
            if found:
                broken += 1
                print("%s %s: %s" % (engine, " ".join(wrong), found))
    print("%d broken; %s" % (broken, ", ".join("%d of %d commands of %s were refused for their words" % (n, asked.count, e) for e, n in tried.items())))
    return 1 if broken or not all(n > asked.count // 3 for n in tried.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
