#!/usr/bin/env python3
"""Scores plans against whole starts of an engine on a stand-in device (dryrun-*.jsonl): weights, torch peak, available
KV memory, tokens, attention backend.

    tools/score_dryrun.py BINARY DRYRUN.jsonl [--models DIR] [--json] [--all] [--judged]

A peak counts when it is within 5 % or 0.05 GiB. Exit 0 when 85 % of the peaks count, 1 when not, 2 on wrong usage.

Some lines of these files carry an accident of the stand-in device: at debug level the engine prints tensors, for which
torch selects the non-zero values; a device whose kernels do nothing leaves that count at 0x7f000000, and 4 bytes for each
make a block of 8128 MiB that no GPU would see (docs/evidence/accuracy.md). Such a line does not tell its peak. A miss counts as one
when its peak is that block and no more than the planned peak beside it. They stay in the count; with --judged the exit
status is that of the other lines.
"""

import argparse
import json
import sys

import scorelib

STRAY = 0x7F000000 * 4 / scorelib.GIB  # GiB
PEAK_GOAL = 0.85


def command_of(record, models):
    words = [f"model={scorelib.config_path(models, record['model'])}", f"enforce_eager={'True' if record.get('eager') else 'False'}"]
    for key, value in record["flags"].items():
        words.append(f"{key}={value if isinstance(value, (bool, int, float, str)) else json.dumps(value)}")
    if "gpu_memory_utilization" not in record["flags"] and record.get("gpu_memory_utilization") is not None:
        words.append(f"gpu_memory_utilization={record['gpu_memory_utilization']}")
    return words


def options_of(record):
    device = record["device"]
    return ["--vllm", record["vllm"], "--gpu", device["name"], "--gpu-total", str(device["total_bytes"]),
            "--gpu-cc", str(device["cc"])]


def peak_ok(planned, measured):
    return abs(planned - measured) <= max(0.05 * measured, 0.05) + 0.005


def main():
    parser = argparse.ArgumentParser(description="score plans against whole starts on a stand-in device")
    parser.add_argument("binary")
    parser.add_argument("data")
    parser.add_argument("--models")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--judged", action="store_true", help="the exit status leaves out lines that hold an accident")
    parser.add_argument("--all", action="store_true", help="every line, not only the misses")
    args = parser.parse_args()

    models = scorelib.models_beside(args.data, args.models)
    planner = scorelib.Planner(args.binary)
    names = ("weights", "peak", "retained+buffers", "available KV", "tokens")
    fields = {name: scorelib.Field(name) for name in names}
    lines, peaks, stray, backends, failed = [], 0, 0, [0, 0], 0
    records = scorelib.read_lines(args.data)
    for record in records:
        plan, why = planner.plan(options_of(record), command_of(record, models))
        flags = {key: value for key, value in record["flags"].items() if key != "max_model_len"}
        name = f"{record['model']} {flags or ''}".strip()
        if not plan:
            failed += 1
            lines.append((9e9, f"{name}: no plan: {why}"))
            continue
        gib = scorelib.GIB
        total = record["device"]["total_bytes"] / gib
        weights = plan["weights_bytes"] / gib
        peak = (scorelib.hold(plan, "kv_sizing", "activation peak") or 0) / gib
        available = plan["kv"]["available_bytes"] / gib
        fields["weights"].add(scorelib.relative(weights, record["model_load_gib"], 0.005), name, "")
        error = scorelib.relative(peak, record["torch_peak_increase_gib"], 0.005)
        fields["peak"].add(error, name, "")
        fields["available KV"].add(abs(available - record["available_kv_gib"]) / total, name, "")
        fields["tokens"].add(scorelib.relative(plan["kv"]["tokens"], record["kv_tokens"], 0), name, "")
        if record.get("consumed_gib") is not None:
            consumed = record["non_kv_gib"] - record["torch_peak_increase_gib"] - record["model_load_gib"]
            planned = record["gpu_memory_utilization"] * total - available - peak - weights
            fields["retained+buffers"].add(abs(planned - consumed) / total, name, "")
        right = peak_ok(peak, record["torch_peak_increase_gib"])
        peaks += right
        accident = not right and 0 <= record["torch_peak_increase_gib"] + 0.005 - STRAY <= peak
        stray += accident
        backend = plan.get("attention_backend")
        if record.get("backend"):
            backends[0] += backend == record["backend"]
            backends[1] += 1
        text = (f"{name}: peak {peak:.2f} / {record['torch_peak_increase_gib']:.2f}, weights {weights:.2f} / "
                f"{record['model_load_gib']:.2f}, KV {available:.2f} / {record['available_kv_gib']:.2f}, "
                f"{backend} / {record.get('backend')}")
        if accident:
            text += "  (peak holds the 8128 MiB accident)"
        if not right or args.all:
            lines.append((error, text))

    count = len(records)
    share = peaks / count if count else 0.0
    judged = peaks / (count - stray) if count > stray else 0.0
    met = (judged if args.judged else share) >= PEAK_GOAL
    summary = {"records": count, "failed": failed, "peaks": peaks, "peak_share": round(share, 4), "accidents": stray,
               "backends": backends[0], "backend_records": backends[1],
               "weights_1_percent": fields["weights"].within(0.01),
               "tokens_1_percent": fields["tokens"].within(0.01), "ok": met}
    if args.json:
        print(json.dumps(summary))
    else:
        for _, text in sorted(lines, key=lambda line: -line[0]):
            print(text)
        print(scorelib.table(fields.values(), (0.001, 0.01, 0.03, 0.1)))
        print("(available KV and retained+buffers: relative to the device's total)")
        print(f"peaks within 5 % or 0.05 GiB: {peaks} of {count} ({100 * share:.1f} %), {stray} of the rest hold an "
              f"accident of the stand-in; without those {peaks} of {count - stray}; backends {backends[0]} of "
              f"{backends[1]}; goal 85 %: {'met' if met else 'not met'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
