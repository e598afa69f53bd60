#!/usr/bin/env python3
"""Explain without what a repository alone bears out: leave_one_out.py BINARY DATA DIR... [--markdown]

For each repository of the labelled reports a copy of DATA is made without the rules, and without the sentences, that are right in that
repository only, and its reports are read with it; functions of a traceback (stack:) stay. The table has, for each set, what is right as it
is and what is right so. Standard library only."""

import argparse
import collections
import os
import shutil
import tempfile

import drop_folds
import explainlib
from drop_folds import WHAT


def borne_out(samples):
    """{what: {rule: repositories in which it is right}}"""
    where = {what: collections.defaultdict(set) for what in WHAT}
    for s in samples:
        for what in WHAT:
            if s.truth["is_oom"] and s.right(what):
                where[what][s.rule(what)].add(s.repository)
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
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    samples = explainlib.read_samples(args.binary, args.directory, ["--data", args.data])
    where, table = borne_out(samples), collections.defaultdict(Three)
    for repository in sorted({s.repository for s in samples}):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(args.data, folder, dirs_exist_ok=True)
            drop_folds.without(folder, repository, where)
            for s in (s for s in samples if s.repository == repository):
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
