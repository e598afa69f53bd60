#!/usr/bin/env python3
"""Explain without what a repository alone bears out: leave_one_out.py BINARY DATA DIR... [--folds] [--markdown]

For each repository of the labelled reports a copy of DATA is made without the rules, and without the sentences, that are right in that
repository only, and its reports are read with it; functions of a traceback (stack:) stay. The table has, for each set, what is right as it
is and what is right so. --folds: repositories, and the reports of the largest one, are put into six folds, and each fold is left out as
one. Standard library only."""

import argparse
import collections
import json
import os
import shutil
import tempfile
import zlib

import explainlib

FOLDS, LARGEST = 6, "vllm-project/vllm"
WHAT = ("is_oom", "phase", "cause")


def fold_of(sample):
    name = sample.label["source"] if sample.repository == LARGEST else sample.repository
    return zlib.crc32(name.encode()) % FOLDS


def rewrite(path, change):
    with open(path, encoding="utf-8") as file:
        root = json.load(file)
    change(root)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(root, file)


def without(folder, part, where):
    """Takes out of a copy of the data what is right in one part of the reports only."""
    lone = {what: {rule for rule, parts in rules.items() if parts == {part}} for what, rules in where.items()}

    def drop_rules(what):
        def change(root):
            root["rules"] = [r for r in root["rules"] if r["id"] not in lone[what] or r["id"].startswith("stack")]
        return change

    def drop_sentences(root):
        for signal in root["signals"]:
            if signal["id"] in lone["is_oom"] and not signal["id"].startswith("words"):
                signal["literals"] = ["\x01" + signal["id"]]
                signal.pop("regex", None)

    rewrite(os.path.join(folder, "explain", "phases.json"), drop_rules("phase"))
    rewrite(os.path.join(folder, "explain", "causes.json"), drop_rules("cause"))
    rewrite(os.path.join(folder, "explain", "signals.json"), drop_sentences)


def borne_out(samples, part_of):
    """{what: {rule: parts of the reports in which it is right}}"""
    where = {what: collections.defaultdict(set) for what in WHAT}
    for s in samples:
        for what in WHAT:
            if s.truth["is_oom"] and s.right(what):
                where[what][s.rule(what)].add(part_of(s))
    return where


def count(into, name, sample, plain, held):
    for what in WHAT:
        if sample.explicit and (sample.firm or what == "is_oom"):
            for key in (name, "all"):
                into[key, what] += (plain.right(what), held.right(what), 1)
    if sample.label["evidence"] == "none":
        for key in (name, "all"):
            into[key, "negatives"] += (not plain.got["is_oom"], not held.got["is_oom"], 1)


class Three:
    def __init__(self):
        self.values = [0, 0, 0]

    def __iadd__(self, other):
        self.values = [a + int(b) for a, b in zip(self.values, other)]
        return self


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("data")
    parser.add_argument("directory", nargs="+")
    parser.add_argument("--folds", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    part_of = fold_of if args.folds else lambda sample: sample.repository
    samples = explainlib.read_samples(args.binary, args.directory, ["--data", args.data])
    where, table = borne_out(samples, part_of), collections.defaultdict(Three)
    for part in sorted({part_of(s) for s in samples}):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(args.data, folder, dirs_exist_ok=True)
            without(folder, part, where)
            for s in (s for s in samples if part_of(s) == part):
                held = explainlib.Sample(s.label, os.path.dirname(s.path), explainlib.incidents_of(args.binary, s.path, ["--data", folder]))
                count(table, os.path.basename(os.path.dirname(s.path)), s, s, held)
    names = [os.path.basename(os.path.normpath(d)) for d in args.directory] + ["all"]
    columns = ("is_oom", "phase", "cause", "negatives")
    if args.markdown:
        print("| set | " + " | ".join("%s | without" % c for c in columns) + " |\n| --- |" + " ---: |" * (2 * len(columns)))
    for name in names:
        cells = []
        for column in columns:
            plain, held, of = table[name, column].values
            cells += ["%d/%d" % (plain, of), "%d (%.0f %%)" % (held, 100 * held / of if of else 0)]
        print("| %s | %s |" % (name, " | ".join(cells)) if args.markdown else "%-8s %s" % (name, "  ".join(cells)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
