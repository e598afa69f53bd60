#!/usr/bin/env python3
"""A rule that decides next to nothing is memory, not knowledge: rule_use.py BINARY DIR... [--data DATA] [--only ID...]

Counts for each rule of data/explain/phases.json and causes.json the texts of DIR (labels.jsonl and logs, as score_explain.py reads them) that it decides,
per set: those whose answer names it, or those whose phase, phases or cause become others when it is taken out, whichever are more. Fails when a rule
decides fewer than three of all, unless it names the `source` that it is read from. What asks the text (`@stack`) is counted with what it names. Tables
are no rules: what a sentence or a frame names, and what is usual in a stage; how many entries they have is printed.
Exit 77 when a set is not there. Standard library only."""
import argparse
import concurrent.futures
import json
import os
import shutil
import sys
import tempfile

import explainlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEAST = 3
LISTS = {"phases": ("rules", "usual"), "causes": ("rules", "extras")}
TABLES = {"causes": ("sentences", "frames", "stages")}
NAMED = {"@sentence": "says:", "@stack": "stack:", "@lines": "stack:"}


def read(data, name):
    with open(os.path.join(data, "explain", name + ".json"), encoding="utf-8") as f:
        return json.load(f)


def rules_of(data):
    for name, lists in LISTS.items():
        root = read(data, name)
        for which in lists:
            for rule in root.get(which, []):
                yield name, which, rule


def without(data, folder, name, which, rule):
    """`data` in `folder`, but for one rule."""
    shutil.copytree(data, folder, dirs_exist_ok=True)
    path = os.path.join(folder, "explain", name + ".json")
    root = read(folder, name)
    root[which] = [r for r in root[which] if r["id"] != rule["id"]]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(root, f)


def answers(binary, data, texts):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda path: explainlib.answer_of(explainlib.incidents_of(binary, path, ["--offline", "--data", data])), texts)
        return dict(zip(texts, found))


def answer(one):
    return one and (one["is_oom"], one["phase"], one["phases"], one["cause"], one["also"])


def names(one, name, rule):
    said = one["rules"]["phase" if name == "phases" else "cause"] if one else ""
    prefix = NAMED.get(rule.get("leaves") if isinstance(rule.get("leaves"), str) else None)
    return said.startswith(prefix) if prefix else said == rule["id"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("directory", nargs="+")
    parser.add_argument("--data", default=os.path.join(ROOT, "data"))
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    if not all(os.path.exists(os.path.join(d, "labels.jsonl")) for d in args.directory):
        print("a set is not there")
        return 77
    sets = {d: [os.path.join(d, label["id"] + ".log") for label in explainlib.read_lines(os.path.join(d, "labels.jsonl"))] for d in args.directory}
    texts = [path for paths in sets.values() for path in paths]
    base = answers(args.binary, args.data, texts)
    few, count = [], {"phases": 0, "causes": 0}
    for name, which, rule in rules_of(args.data):
        if args.only and rule["id"] not in args.only:
            continue
        count[name] += 1
        decided = {path for path in texts if names(base[path], name, rule)}
        if len(decided) < LEAST:
            with tempfile.TemporaryDirectory() as folder:
                without(args.data, folder, name, which, rule)
                other = answers(args.binary, folder, texts)
            decided |= {path for path in texts if answer(base[path]) != answer(other[path])}
        print("%-8s %-46s %s" % (name, rule["id"], " ".join("%4d" % len(decided & set(paths)) for paths in sets.values())))
        if len(decided) < LEAST and "source" not in rule:
            few.append(rule["id"])
    for rule in few:
        print("%s decides fewer than %d texts" % (rule, LEAST))
    entries = sum(len(root.get(table, [])) for name, tables in TABLES.items() for root in [read(args.data, name)] for table in tables)
    print("entries of tables: %d" % entries)
    print("rules: %d of phases, %d of causes, %d decide fewer than %d of %d texts" % (count["phases"], count["causes"], len(few), LEAST, len(texts)))
    return 1 if few else 0


if __name__ == "__main__":
    sys.exit(main())
