#!/usr/bin/env python3
"""Plans beside dry runs: what `plan` says of every start in tests/oracle/results.jsonl and of the reported cases that came as
far as a KV cache (seeds.jsonl beside it), and what the real engine measured.

    tools/agreement.py BINARY [--results FILE] [--write docs/evidence/results/agreement.csv] [--check FILE] [--json]

Weights are compared to the byte, KV tokens for the same available memory (the measured one, given with
--kv-cache-memory-bytes), the activation peak within 5 %. --write puts the rows there. Needs no
engine: the results are kept. Exit 0 when every difference is within its bound, 1 when not, 2 on wrong usage."""

import argparse
import csv
import json
import os
import sys
import tempfile

import scorelib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "oracle"))
import models  # noqa: E402
import seeds  # noqa: E402

PEAK_BOUND = 0.05


def numbers_of(text):
    return tuple(int(part) for part in text.split("."))


def cases_beside(path):
    """Reported cases as records; options of a dry run that a plan does not have are left out."""
    kept = os.path.join(os.path.dirname(os.path.abspath(path)), "seeds.jsonl")
    records = []
    for line in scorelib.read_lines(kept) if os.path.exists(kept) else []:
        version, device, model, flags, _ = seeds.CASES[line["case"]]
        pairs = [device[i:i + 2] for i in range(0, len(device), 2)]
        device = [word for pair in pairs if pair[0] not in ("--outside", "--load", "--until") for word in pair]
        records.append({"version": version, "way": "case " + line["case"], "model": model, "device": device, "flags": flags,
                        "verdict": "fits", "weights_bytes": line["weights_bytes"], "tokens": line["kv_tokens"],
                        "available_bytes": line["kv_available_bytes"], "peak_bytes": line["peak_bytes"],
                        "backend": line["backend"]})
    return records


def compare(planner, folder, record):
    command = ["vllm", "serve", models.write(folder, record["model"])] + record["flags"]
    options = ["--vllm", record["version"]] + record["device"]
    if numbers_of(record["version"]) < (0, 11, 1):  # FlashInfer was installed there, which no flag tells
        options += ["--env", "VLLM_USE_FLASHINFER_SAMPLER=1"]
    options += ["--env", "VLLM_CACHE_ROOT=kept"]  # the starts are of a warm compile cache
    plan, why = planner.plan(options, command)
    if not plan:
        return {"why": why}
    given, why = planner.plan(options, command + ["--kv-cache-memory-bytes", str(record["available_bytes"])])
    peak = scorelib.hold(plan, "kv_sizing", "activation peak")
    return {"weights": plan["weights_bytes"], "tokens": given["kv"]["tokens"] if given else None, "peak": peak,
            "backend": plan["attention_backend"],
            "weights_ok": plan["weights_bytes"] == record["weights_bytes"],
            "tokens_ok": bool(given) and given["kv"]["tokens"] == record["tokens"],
            "peak_ok": peak is not None and abs(peak - record["peak_bytes"]) <= PEAK_BOUND * record["peak_bytes"]}


def signed(number):
    return "=" if number == 0 else "{:+,}".format(number)


def row(record, seen):
    gib = scorelib.GIB
    if "why" in seen:
        return f"| {record['version']} | {record['way']} | {record['model']} | no plan: {seen['why']} | | | |"
    tokens = "=" if seen["tokens_ok"] else f"{seen['tokens']:,}" if seen["tokens"] is not None else "no plan"
    change = (seen["peak"] or 0) / record["peak_bytes"] - 1
    return (f"| {record['version']} | {record['way']} | {record['model']} | {record['weights_bytes']:,} | "
            f"{signed(seen['weights'] - record['weights_bytes'])} | {record['tokens']:,} | {tokens} | "
            f"{record['peak_bytes'] / gib:.3f} | {(seen['peak'] or 0) / gib:.3f} | {100 * change:+.1f} % |")


def write_rows(path, records, seen):
    head = ["engine", "configuration", "model", "weights_bytes", "weights_planned_bytes", "kv_tokens", "kv_tokens_planned", "peak_gib", "peak_planned_gib"]
    rows = [["vLLM " + r["version"], r["way"], r["model"], r["weights_bytes"], s["weights"], r["tokens"], s["tokens"],
             "%.3f" % (r["peak_bytes"] / scorelib.GIB), "%.3f" % ((s["peak"] or 0) / scorelib.GIB)] for r, s in zip(records, seen) if "why" not in s]
    with open(path, "w", encoding="utf-8", newline="") as f:
        csv.writer(f, lineterminator="\n").writerows([head, *rows])


def differing(path, records, seen):
    """Lines of a table that are not those of these starts."""
    with tempfile.TemporaryDirectory() as folder:
        write_rows(os.path.join(folder, "rows"), records, seen)
        with open(os.path.join(folder, "rows"), encoding="utf-8") as made, open(path, encoding="utf-8") as there:
            made, there = made.read().splitlines(), there.read().splitlines()
    return [line for line in there if line not in made] + [line for line in made if line not in there]


def main():
    parser = argparse.ArgumentParser(description="plans beside dry runs")
    parser.add_argument("binary")
    parser.add_argument("--results", default=os.path.join(HERE, "..", "tests", "oracle", "results.jsonl"))
    parser.add_argument("--write")
    parser.add_argument("--check", help="exit 1 unless this table has the rows that --write would give it")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    records = [r for r in scorelib.read_lines(args.results) + cases_beside(args.results)
               if r["verdict"] == "fits" and r["weights_bytes"] and r["tokens"] and r["available_bytes"] and r["peak_bytes"]]
    planner = scorelib.Planner(os.path.abspath(args.binary))
    with tempfile.TemporaryDirectory() as folder:
        seen = [compare(planner, folder, record) for record in records]
    count = {name: sum(bool(s.get(name + "_ok")) for s in seen) for name in ("weights", "tokens", "peak")}
    backends = sum(s.get("backend") == r["backend"] for s, r in zip(seen, records))
    last = (f"{len(records)} starts: weights equal to the byte {count['weights']}, tokens equal {count['tokens']}, "
            f"peak within 5 % {count['peak']}")
    if args.check:
        wrong = differing(args.check, records, seen)
        print("\n".join(wrong + ["%d of %s" % (len(wrong), last)]))
        return 1 if wrong or not records else 0
    if args.json:
        print(json.dumps({"records": len(records), **count, "backends": backends}))
    else:
        head = ["| vLLM | way | model | weights, bytes | plan | KV tokens | plan | peak, GiB | plan | |",
                "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
        table = "\n".join(head + [row(r, s) for r, s in zip(records, seen)])
        print(table + "\n" + last)
        if args.write:
            write_rows(args.write, records, seen)
    return 0 if all(n == len(records) for n in count.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
