#!/usr/bin/env python3
"""How sure a rule of explain may be, from counts: weigh_rules.py BINARY DIR... [--oracle LOGS] [--write]

For each rule of data/explain/phases.json and causes.json: on how many labelled reports it decided, how often it was right, in
how many repositories. A rule that rests on a threshold or a default states at most (right + 1) / (decided + 2); one that was
right in one repository or none, at most 0.4. What an engine says itself (says:) and where its own functions stand (stack:)
is known from its source and is left, and so is what decides a log of a dry start in LOGS, whose truth is known. --write puts the figures into the two files."""

import argparse
import collections
import os
import re

import explainlib

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "explain")
LONE = 0.4


def counts(samples, what):
    decided, right, where = collections.Counter(), collections.Counter(), collections.defaultdict(set)
    for s in samples:
        if s.truth["is_oom"] and s.firm and s.got["is_oom"] and s.rule(what):
            decided[s.rule(what)] += 1
            if s.right(what):
                right[s.rule(what)] += 1
                where[s.rule(what)].add(s.repository)
    return {rule: (right[rule], decided[rule], len(where[rule])) for rule in decided}


def from_oracle(binary, folder):
    logs = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".log")] if folder else []
    answers = [explainlib.answer_of(explainlib.incidents_of(binary, log)) for log in logs]
    return {rule for a in answers if a and a["is_oom"] for rule in a["rules"].values()}


def bound(rule, counted, stated, oracle):
    if rule.startswith(("says:", "stack")) or rule in oracle:
        return stated
    right, decided, repositories = counted.get(rule, (0, 0, 0))
    most = (right + 1) / (decided + 2)
    return round(min(stated, most if repositories >= 2 else min(most, LONE)), 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("directory", nargs="+")
    parser.add_argument("--oracle")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    samples = explainlib.read_samples(args.binary, args.directory)
    oracle = from_oracle(args.binary, args.oracle)
    for name, what in (("phases", "phase"), ("causes", "cause")):
        counted, path, lines = counts(samples, what), os.path.join(DATA, name + ".json"), []
        with open(path, encoding="utf-8") as file:
            for line in file:
                rule, sure = re.search(r'"id": "([^"]+)"', line), re.search(r'"sure": ([\d.]+)', line)
                if rule and sure:
                    now = bound(rule.group(1), counted, float(sure.group(1)), oracle)
                    if now != float(sure.group(1)):
                        print(f"{rule.group(1)}: {sure.group(1)} -> {now} {counted.get(rule.group(1), (0, 0, 0))}")
                        line = line.replace(sure.group(0), f'"sure": {now}', 1)
                lines.append(line)
        if args.write:
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(lines)


if __name__ == "__main__":
    main()
