#!/usr/bin/env python3
"""How often starts of a given probability started: the reliability table of docs/evidence/accuracy.md.

usage: reliability.py BINARY TRUTH.jsonl... [--models DIR] [--all]

Each measured start is planned; the probability that the plan gives is put beside what happened. Records whose outcome cannot be
judged (an input is missing in the source) are left out, as in score_truth.py. The Brier score is the mean squared error of the
probability; the base rate answers with the share of starts in the data."""
import argparse
import os
import sys

import scorelib
from score_truth import Devices, command_of, is_fair, options_of, version_of

BINS = ((0.0, 0.05), (0.05, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 0.95), (0.95, 1.01))


def answers(planner, paths, models):
    """(id, file, plan, started)"""
    devices = Devices(planner)
    for path in paths:
        for record in scorelib.read_lines(path):
            version = version_of(record)
            if not version or version < (0, 8, 0) or not record.get("config") or not is_fair(record, "outcome"):
                continue
            options = options_of(record, devices)
            plan = options and planner.plan(options, command_of(record, models))[0]
            if plan and plan["phase"] != "arguments" and plan["probability"] is not None:  # not the command that ran: score_truth.py says why
                yield record["id"], path, plan, record["outcome"] == "ok", record["outcome"]


def brier(rows, guess):
    return sum((guess(plan) - started) ** 2 for _, _, plan, started, _ in rows) / max(1, len(rows))


def main():
    parser = argparse.ArgumentParser(description="probability of starting against what happened")
    parser.add_argument("binary")
    parser.add_argument("data", nargs="+")
    parser.add_argument("--models")
    parser.add_argument("--all", action="store_true", help="every record")
    args = parser.parse_args()
    rows = list(answers(scorelib.Planner(args.binary), args.data, 
                        os.pathsep.join(dict.fromkeys(scorelib.models_beside(path, args.models) for path in args.data))))
    if args.all:
        for who, _, plan, started, outcome in sorted(rows, key=lambda row: row[2]["probability"]):
            print(f"{who} {plan['probability']:.3f} {plan['verdict']} {plan['phase'] or '-'} / {outcome}")
    print("| probability | starts | of them started | mean probability |")
    print("| --- | ---: | ---: | ---: |")
    for low, high in BINS:
        inside = [row for row in rows if low <= row[2]["probability"] < high]
        mean = sum(row[2]["probability"] for row in inside) / len(inside) if inside else 0
        print(f"| {low:.2f} to {min(high, 1):.2f} | {len(inside)} | {sum(row[3] for row in inside)} | {mean:.2f} |" if inside
              else f"| {low:.2f} to {min(high, 1):.2f} | 0 | | |")
    base = sum(row[3] for row in rows) / max(1, len(rows))
    right = sum((row[2]["probability"] >= 0.5) == row[3] for row in rows)
    print(f"{len(rows)} starts: likely word right {right}; Brier score {brier(rows, lambda p: p['probability']):.3f}, "
          f"base rate {brier(rows, lambda p: base):.3f}")


if __name__ == "__main__":
    sys.exit(main())
