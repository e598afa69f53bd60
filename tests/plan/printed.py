#!/usr/bin/env python3
"""printed.py BINARY [FILE...]: do built-in models weigh what engines printed for them?

Starts of public logs (tests/evidence/starts.jsonl, or FILE) whose model is built in are planned by its id alone. For each way in which the
sizes are known: how many weigh what was printed within 2 %, and how many have it in their range. Exit 1 when less than 95 % of those by sizes
do, or less than 90 % of all: some of the starts put LoRA slots or NF4 beside the weights in ways of their own."""
import collections
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import score_truth  # noqa: E402
import scorelib  # noqa: E402

NEAR, GOAL, ALL = 0.02, 0.95, 0.9


def level_of(catalogue, name):
    entry = catalogue[name]
    return level_of(catalogue, entry) if isinstance(entry, str) else entry.get("level", "whole")


def records(paths):
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for line in f:
                record = json.loads(line)
                measured = record.get("measured") or {}
                if measured.get("model_load_gib") and not (record.get("flags") or {}).get("hf_overrides"):
                    yield record


def main():
    binary = os.path.abspath(sys.argv[1])
    with open(os.path.join(ROOT, "data", "catalogue.json"), encoding="utf-8") as f:
        catalogue = json.load(f)
    planner = scorelib.Planner(binary)
    devices = score_truth.Devices(planner)
    seen, near, inside, models, failed = (collections.Counter() for _ in range(5))
    for record in records(sys.argv[2:] or [os.path.join(ROOT, "tests", "evidence", "starts.jsonl")]):
        name = record.get("model")
        if name not in catalogue or not score_truth.is_whole(record):
            continue
        options = score_truth.options_of(record, devices)
        words = score_truth.command_of({**record, "config": record["config"] or ""}, "/nowhere")
        words = [name if word.startswith("/nowhere") else word for word in words]
        plan, why = planner.plan(["--offline"] + options, words) if options else (None, "no device")
        level = level_of(catalogue, name)
        if not plan or not plan.get("weights_bytes"):
            failed[level] += 1
            continue
        printed = record["measured"]["model_load_gib"]
        off = plan["weights_bytes"] / 2 ** 30 / printed - 1
        held = [row for phase in plan["phases"] for row in phase["holds"] if row["owner"] == "weights"]
        models[level, name] += 1
        seen[level] += 1
        near[level] += abs(off) <= NEAR
        inside[level] += any(row["low"] / 2 ** 30 - 0.005 <= printed <= row["high"] / 2 ** 30 + 0.005 for row in held)
        if abs(off) > NEAR:
            print("%s %s: %s %.2f GiB, printed %.2f (%+.1f %%)" % (record["id"], level, name, plan["weights_bytes"] / 2 ** 30, printed, 100 * off))
    for level in sorted(seen):
        count = sum(1 for one, _ in models if one == level)
        print("%s: %d of %d starts of %d models within 2 %%, %d in the range" % (level, near[level], seen[level], count, inside[level]))
    whole, good = sum(seen.values()), sum(near.values())
    by_size, good_by_size = whole - seen["whole"], good - near["whole"]
    print("%d of %d within 2 %%; %d could not be compared" % (good, whole, sum(failed.values())))
    return 0 if by_size >= 10 and good_by_size >= GOAL * by_size and good >= ALL * whole else 1


if __name__ == "__main__":
    sys.exit(main())
