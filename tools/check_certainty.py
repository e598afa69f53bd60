#!/usr/bin/env python3
"""Does explain mean what it says of its certainty? check_certainty.py BINARY DIR... [--list] [--data FOLDER]

Each answer states a share: how often answers of its kind are right. Over all reports of all sets together, answers that
state the same share must be right that often: where 20 or more state it, at most 0.05 too often or too seldom. A phase is
right when it is the label's, a cause when the first one named is among the label's. --list prints the wrong ones.
Exit 0, 1 when a share is off, 77 without any data. Standard library only."""

import argparse
import collections
import os

import explainlib
from explainlib import causes

OFF, LEAST = 0.05, 20


def answers(samples):
    """-> (what, stated share, right, id) of each report in which memory is the reason and whose label is firm"""
    for sample in samples:
        if not (sample.truth["is_oom"] and sample.firm and sample.got["is_oom"]):
            continue
        if sample.got["phase"] != "unknown" and sample.truth["phase"] != "unknown":
            yield "phase", sample.got["phase_sure"], sample.right("phase"), sample.label["id"]
        if sample.got["cause"] != "insufficient_info" and sample.truth["cause"] != "insufficient_info":
            yield "cause", sample.got["cause_sure"], sample.got["cause"] in causes(sample.truth), sample.label["id"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("directory", nargs="+")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--data", help="another data folder for the command")
    args = parser.parse_args()
    folders = [folder for folder in args.directory if os.path.exists(os.path.join(folder, "labels.jsonl"))]
    if not folders:
        print("no reports at hand")
        return 77
    right, total = collections.Counter(), collections.Counter()
    for what, stated, is_right, name in answers(explainlib.read_samples(args.binary, folders, ["--data", args.data] if args.data else [])):
        key = what, round(stated, 2)
        right[key] += is_right
        total[key] += 1
        if args.list and not is_right:
            print(f"{what} {stated:.2f}: {name}")
    off = 0
    for what, stated in sorted(total):
        share = right[what, stated] / total[what, stated]
        bad = total[what, stated] >= LEAST and abs(share - stated) > OFF
        off += bad
        print(f"{what} {stated:.2f}: {right[what, stated]} of {total[what, stated]}, {share:.3f}{' OFF' if bad else ''}")
    return 1 if off else 0


if __name__ == "__main__":
    raise SystemExit(main())
