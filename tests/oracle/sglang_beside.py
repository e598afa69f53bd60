#!/usr/bin/env python3
"""Dry starts of SGLang beside `plan` of the same command: static fraction, weights, tokens, peaks.

    tests/oracle/sglang_beside.py BINARY [--missing] [--only WORD] [--results FILE] [--write docs/sglang.md] [VERSION...]

Each start is a line of sglang.jsonl, with the first words of its failure when there was none; the table is made of all lines and stands in
the document between two marks. `given`: what plan says when it is told the memory that was free before loading. Environments are
sglang-VERSION where those of the other engines are. Exit 77 without any."""
import argparse
import datetime
import json
import os
import re
import subprocess
import sys

import engines

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "fixtures", "models")
BEGIN, END = "<!-- starts -->", "<!-- /starts -->"
EAGER = ["--disable-cuda-graph"]
TRITON = ["--attention-backend", "triton", "--sampling-backend", "pytorch"]
# name, device, model, flags, more options of the dry run
STARTS = [
    ("eager", "4090", "small-llama", TRITON + EAGER),
    ("graphs of decode, with requests", "4090", "small-llama", TRITON + ["--disable-prefill-cuda-graph", "--cuda-graph-max-bs-decode", "8"],
     ["--load", "12:64-512:8"]),
    ("eager, experts", "L40S", "small-moe", TRITON + EAGER),
    ("eager, latent attention", "L40S", "small-latent", TRITON + EAGER),
    ("eager, two ranks", "4090x2", "small-llama", TRITON + EAGER + ["--tp", "2"]),
    ("eager, FP8 weights", "4090", "small-llama", TRITON + EAGER + ["--quantization", "fp8"]),
    ("graphs", "4090", "small-llama", TRITON),
    ("eager, FP8 cache", "4090", "small-llama", TRITON + EAGER + ["--kv-cache-dtype", "fp8_e4m3"]),
    ("eager, fraction and context", "L40S", "small-llama", TRITON + EAGER + ["--mem-fraction-static", "0.7", "--context-length", "8192"]),
    ("eager, sliding windows", "4090", "small-sliding", TRITON + EAGER),
    ("eager, chunk of 2,048", "L4", "small-llama", TRITON + EAGER + ["--chunked-prefill-size", "2048"]),
    ("eager, defaults", "4090", "small-llama", EAGER),
]


def key(record):
    return record["version"], record["name"]


def environments():
    found = {}
    for name in sorted(os.listdir(engines.VENVS)) if os.path.isdir(engines.VENVS) else []:
        if name.startswith("sglang-") and os.path.exists(os.path.join(engines.VENVS, name, "bin", "sglang")):
            found[name[7:]] = os.path.join(engines.VENVS, name)
    return found


def planned(binary, version, gpu, model, flags, used=0):
    out = subprocess.run([binary, "plan", "--json", "--offline", "--gpu", gpu] + (["--gpu-used", str(used)] if used else []) +
                         ["--engine", "sglang=" + version, "--", "sglang", "serve", os.path.join(MODELS, model)] + flags,
                         stdout=subprocess.PIPE, check=False).stdout
    plan = json.loads(out)
    own = (plan.get("setup") or {}).get("own") or {}
    return {"verdict": plan["verdict"], "fraction": own.get("mem_fraction_static"), "weights": plan["weights_bytes"], "tokens": (plan["kv"] or {}).get("tokens"),
            "outside": sum(h["bytes"] for p in plan["phases"] if p["phase"] == "weight_load" for h in p["holds"] if h["owner"] != "weights"),
            "peaks": {p["phase"]: sum(h["bytes"] for h in p["holds"]) for p in plan["phases"]}}


def failure(outcome):
    """The first exception of its log, one line, without paths."""
    if outcome.code == 124:
        return {"error": "stopped by the time limit of this test", "refused_calls": []}
    found = re.findall(r"^(?:\[[^]]*\] ?)?(\w+(?:\.\w+)*(?:Error|Exception)[^\n]*)", outcome.log, re.M)
    refused = (outcome.report or {}).get("refused_calls") or {}
    return {"error": re.sub(r"\S*/(\S+)", r"\1", found[0])[:160] if found else "exit %s" % outcome.code, "refused_calls": sorted(refused)[:6]}


def measured(outcome):
    report = outcome.report
    told = re.search(r"free before loading (\d+) bytes, static fraction ([0-9.]+)", outcome.log)
    return {"verdict": report["verdict"], "fraction": float(told.group(2)) if told else None, "free": int(told.group(1)) if told else None,
            "weights": report["weights_bytes"], "tokens": report["kv"]["tokens"], "seconds": round(outcome.seconds), "refused_calls": sorted(report["refused_calls"]),
            "peaks": {p["phase"]: sum(h["bytes"] for h in p["holds"]) for p in report["phases"]}}


def start(binary, version, folder, timeout, name, gpu, model, flags, options=()):
    outcome = engines.dryrun(binary, folder, ["--gpu", gpu, *options], ["sglang", "serve", os.path.join(MODELS, model)] + flags, timeout=timeout)
    record = {"version": version, "name": name, "gpu": gpu, "model": model, "flags": flags, "date": datetime.date.today().isoformat(),
              "plan": planned(binary, version, gpu, model, flags)}
    if not outcome.report or outcome.report["verdict"] != "fits":
        with open(os.path.join(os.environ.get("TMPDIR", "/tmp"), "sglang-failed.log"), "w", encoding="utf-8") as f:
            f.write(outcome.log)
        return dict(record, failed=failure(outcome))
    record["dryrun"] = measured(outcome)
    if outcome.report.get("load"):
        record["load"], record["steps"] = outcome.report["load"], outcome.report["steps"]
    if record["dryrun"]["free"]:
        used = outcome.report["gpu"]["total_bytes"] - record["dryrun"]["free"] - record["plan"]["outside"]
        if used >= 0:  # plan can be told of memory that is gone, not of more than it expects
            record["given"] = planned(binary, version, gpu, model, flags, used)
    return record


def cell(value, scale=1, form="%.3f"):
    return "-" if value is None else form % (value / scale)


def off(mine, theirs):
    return "-" if not mine or not theirs else "%+.2f %%" % (100 * (mine - theirs) / theirs)


def table(records):
    lines = ["| release | start | fraction | weights, planned GiB | tokens, planned | off | given the free memory | busiest while starting, planned GiB |",
             "| --- | --- | --: | --: | --: | --: | --: | --: |"]
    failed = []
    for record in records:
        dry, plan, given = record.get("dryrun"), record["plan"], record.get("given") or {}
        if not dry:
            failed.append("- %s, %s (%s, `%s`), %s: %s%s" % (
                record["version"], record["name"], record["model"], " ".join(record["flags"]), record["date"], record["failed"]["error"],
                "; refused: " + ", ".join(record["failed"]["refused_calls"]) if record["failed"]["refused_calls"] else ""))
            continue
        peak = max((p for p in dry["peaks"] if not p.startswith("runtime")), key=lambda p: dry["peaks"][p])
        lines.append("| %s | %s (`%s`, %s) | %s, %s | %s, %s | %s, %s | %s | %s | %s, %s (%s) |" % (
            record["version"], record["name"], record["model"], record["gpu"], cell(dry["fraction"]), cell(plan["fraction"]),
            cell(dry["weights"], 2**30, "%.4f"), cell(plan["weights"], 2**30, "%.4f"), cell(dry["tokens"], 1, "%d"), cell(plan["tokens"], 1, "%d"),
            off(plan["tokens"], dry["tokens"]), off(given.get("tokens"), dry["tokens"]), cell(dry["peaks"][peak], 2**30, "%.2f"),
            cell(plan["peaks"].get(peak), 2**30, "%.2f"), peak))
    dates = sorted({r["date"] for r in records})
    count = sum(1 for r in records if "dryrun" in r)
    head = ["%d of %d starts came to their end (%s)." % (count, len(records), " to ".join(dates[:1] + dates[1:][-1:])), ""]
    return head + lines + ([""] + ["Not started:", ""] + failed if failed else [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--results", default=os.path.join(HERE, "sglang.jsonl"))
    parser.add_argument("--write")
    parser.add_argument("--timeout", type=int, default=600)
    args = parser.parse_intermixed_args()
    binary, found = os.path.abspath(args.binary), environments()
    records = engines.read_results(args.results, key)
    if not found and not records:
        return engines.SKIP
    for version in args.versions:
        for case in STARTS:
            name = case[0]
            if version not in found or (args.missing and (version, name) in records) or (args.only and args.only not in name):
                continue
            record = records[version, name] = start(binary, version, found[version], args.timeout, *case)
            print(version, name, record.get("failed") or record["dryrun"]["tokens"], flush=True)
            with open(args.results, "w", encoding="utf-8") as f:
                f.writelines(json.dumps(r) + "\n" for r in records.values())
    text = "\n".join(table(list(records.values())))
    if args.write:
        with open(args.write, encoding="utf-8") as f:
            before, _, rest = f.read().partition(BEGIN)
        with open(args.write, "w", encoding="utf-8") as f:
            f.write(before + BEGIN + "\n" + text + "\n" + END + rest.partition(END)[2])
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
