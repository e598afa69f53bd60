#!/usr/bin/env python3
"""How sure explain may be of a stage and of a cause: calibrate_explain.py BINARY DIR... [--write] [--json]

Each rule of data/explain/phases.json and causes.json states how sure it is. Here that is measured: on the labelled reports in which a rule
decided, how often it was right, drawn towards the mean of its family as if the family had decided KEEP reports more. What an engine says
and where its functions stand are families of their own; for what figures and words suggest the mean is that of reports which no rule had
seen. Such a rule that is right in one repository alone states LONE at most. A cause is right when the first one named is the report's. The
table is cross-validated: the certainty of each report is computed without the reports of its own repository. --write puts the figures, measured on
all reports, into the two files. Standard library only."""

import argparse
import collections
import json
import os
import re

import explainlib

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "explain")
KEEP = 3            # what a family's mean counts for beside a rule's own reports
LOWEST, HIGHEST = 0.2, 0.98
LONE = 0.5
# What figures and words suggested on the third set before any rule was changed for it: right, of (certainties below 0.8; 0.4 to 0.6).
AT_FIRST = {"phase": (25, 49), "cause": (39, 57)}
SURE = 0.8
BANDS = [(0.0, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 0.9), (0.9, 1.01)]
SUSPECTED = 0.6     # what explain multiplies by where the error's own line is missing (reason.c)


def family(rule):
    return "says" if rule.startswith("says") else "stack" if rule.startswith("stack") else "suggests"


def is_right(sample, what):
    if what == "phase":
        return sample.right("phase")
    return sample.got["cause"] in explainlib.causes(sample.truth)


def decided(samples, what):
    """[(sample, rule)] that count: firm labels of a lack of memory that explain found, said as such."""
    return [(s, s.rule(what)) for s in samples if s.truth["is_oom"] and s.firm and s.got["is_oom"] and s.rule(what)]


def measured(cases, what):
    """-> certainty of a rule, from these cases."""
    right, of, mean_right, mean_of = (collections.Counter() for _ in range(4))
    where = collections.defaultdict(set)
    for sample, rule in cases:
        good = is_right(sample, what)
        right[rule] += good
        of[rule] += 1
        if good:
            where[rule].add(sample.repository)
        mean_right[family(rule)] += good
        mean_of[family(rule)] += 1

    def certainty(rule):
        kind = family(rule)
        good, all_of = AT_FIRST[what] if kind == "suggests" else (mean_right[kind] + 1, mean_of[kind] + 2)
        value = (right[rule] + KEEP * good / all_of) / (of[rule] + KEEP)
        if kind == "suggests" and len(where[rule]) < 2:
            value = min(value, LONE)
        if kind != "suggests" and not mean_of[kind]:
            value = HIGHEST  # nothing is known of it: what it states stands
        return round(min(max(value, LOWEST), HIGHEST), 2)
    return certainty, of


def stated(sample, rule, certainty):
    return certainty(rule) * (SUSPECTED if sample.got["rules"]["verdict"] == "suspected" else 1)


def crossed(samples, what):
    """[(stated without its own repository, right, stated now)]"""
    cases = decided(samples, what)
    rows = []
    for repository in sorted({s.repository for s, _ in cases}):
        certainty, _ = measured([c for c in cases if c[0].repository != repository], what)
        rows += [(stated(s, rule, certainty), is_right(s, what), s.got[what + "_sure"]) for s, rule in cases if s.repository == repository]
    return rows


def bands(rows, at):
    table = []
    for low, high in BANDS:
        here = [r for r in rows if low <= r[at] < high]
        table.append((low, min(high, 1.0), len(here), sum(r[at] for r in here) / len(here) if here else 0.0, sum(r[1] for r in here)))
    return table


def brier(rows, at):
    return sum((r[at] - r[1]) ** 2 for r in rows) / len(rows)


def write(samples, name, what):
    certainty, of = measured(decided(samples, what), what)
    path, lines = os.path.join(DATA, name), []
    with open(path, encoding="utf-8") as file:
        for line in file:
            rule, sure = re.search(r'"id": "([^"]+)"', line), re.search(r'"sure": ([\d.]+)', line)
            if rule and sure and '"add"' not in line:
                now = float(sure.group(1))
                new = certainty(rule.group(1)) if of[rule.group(1)] or family(rule.group(1)) == "suggests" else min(now, certainty(rule.group(1)))
                # Lines of one rule that are weaker than the others stay weaker.
                if family(rule.group(1)) != "suggests":
                    new = min(new, max(now, certainty(rule.group(1)) if now >= SURE else now))
                line = line.replace(sure.group(0), '"sure": %s' % round(new, 2), 1)
            lines.append(line)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("directory", nargs="+")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    samples = explainlib.read_samples(args.binary, args.directory)
    result, good = {}, True
    for what in ("phase", "cause"):
        rows = crossed(samples, what)
        high = [r for r in rows if r[2] >= SURE]
        result[what] = {"crossed": bands(rows, 0), "stated": bands(rows, 2), "brier_crossed": brier(rows, 0), "brier_stated": brier(rows, 2),
                        "sure": (sum(r[1] for r in high), len(high)), "sure_crossed": (sum(r[1] for r in rows if r[0] >= SURE), sum(r[0] >= SURE for r in rows))}
        good &= sum(r[1] for r in high) >= 0.9 * len(high)
    if args.write:
        write(samples, "phases.json", "phase")
        write(samples, "causes.json", "cause")
    if args.json:
        print(json.dumps(result, indent=1))
        return 0 if good else 1
    for what, got in result.items():
        print("| %s said | reports | mean | right | without its repository: reports | mean | right |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |" % what)
        for (low, top, count, mean, right), (_, _, apart, apart_mean, apart_right) in zip(got["stated"], got["crossed"]):
            print("| %.1f to %.1f | %d | %.2f | %d (%s) | %d | %.2f | %d (%s) |" % (
                low, top, count, mean, right, "%.0f %%" % (100 * right / count) if count else "-",
                apart, apart_mean, apart_right, "%.0f %%" % (100 * apart_right / apart) if apart else "-"))
        print("\n%s: said with %.1f or more, right %d of %d; certainties from other repositories, %d of %d; Brier %.3f, %.3f\n" % (
            (what, SURE) + got["sure"] + got["sure_crossed"] + (got["brier_stated"], got["brier_crossed"])))
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
