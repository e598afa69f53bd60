#!/usr/bin/env python3
"""What explain says without the rules that only the reports at hand bear out: drop_folds.py BINARY DATA DIR...

Repositories, and the reports of the largest one, are put into six folds. For each fold a copy of DATA is made without the rules and
the sentences that were right in that fold only, and the fold's reports are read with it: functions of a traceback (stack:) stay."""

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


def without(folder, fold, where):
    """Takes out of a copy of the data what is right in one fold only."""
    lone = {what: {rule for rule, folds in rules.items() if folds == {fold}} for what, rules in where.items()}

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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("data")
    parser.add_argument("directory", nargs="+")
    args = parser.parse_args()
    samples = explainlib.read_samples(args.binary, args.directory, ["--data", args.data])
    where = {what: collections.defaultdict(set) for what in WHAT}
    for s in samples:
        for what in WHAT:
            if s.truth["is_oom"] and s.right(what):
                where[what][s.rule(what)].add(fold_of(s))
    right, plain, total = collections.Counter(), collections.Counter(), collections.Counter()
    for fold in range(FOLDS):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(args.data, folder, dirs_exist_ok=True)
            without(folder, fold, where)
            for s in (s for s in samples if fold_of(s) == fold):
                got = explainlib.Sample(s.label, os.path.dirname(s.path), explainlib.incidents_of(args.binary, s.path, ["--data", folder]))
                for what in WHAT:
                    if s.explicit and (s.firm or what == "is_oom"):
                        total[what] += 1
                        right[what] += got.right(what)
                        plain[what] += s.right(what)
                if s.label["evidence"] == "none":
                    total["negatives"] += 1
                    right["negatives"] += not got.got["is_oom"]
                    plain["negatives"] += not s.got["is_oom"]
    for what, of in total.items():
        print(f"{what:<10} plain {plain[what]}/{of}, without what its fold alone supports {right[what]} ({100 * right[what] / of:.1f} %)")


if __name__ == "__main__":
    main()
