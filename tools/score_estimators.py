#!/usr/bin/env python3
"""KV cache memory of measured starts by simpler estimators, next to `plan`: score_estimators.py BINARY STARTS.jsonl [--planner JSON] [--csv FILE]

Both take the weights that `plan` computes, so that only what comes after the weights is compared:
  weights and utilization   utilization x GPU memory - weights, as VRAM calculators do
  llm-d-planner             the same less its constants for activations and non-PyTorch memory; JSON is the file
                            vllm_memory_constants.json of its wheel (0.3.3), its formula is allocatable_kv_cache_memory()
The error is that of score_truth.py: a share of the GPU's memory, half of the last printed digit forgiven."""
import argparse
import csv
import json
import os
import sys

import score_truth
import scorelib


def simple(plan):
    return plan["budget_bytes"] - plan["weights_bytes"]


def llm_d(plan, config, constants, ranks):
    profiles, base = constants["activation_profiles"], constants["activation_base_gib"]
    arch = (config.get("architectures") or [""])[0]
    text = config.get("text_config") or config
    moe = any(key in text for key in ("n_routed_experts", "n_shared_experts", "num_experts", "num_experts_per_tok"))
    activation = profiles.get(arch, base["moe"] if moe else base["multimodal"] if "vision_config" in config else base["dense"])
    outside = constants["non_torch_overhead_gib"]["tpN_pp1" if ranks > 1 else "tp1_pp1"]
    # Its activations are those of the whole engine: one GPU has its share of them.
    return max(0, simple(plan) - int((activation / ranks + outside) * scorelib.GIB))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("data")
    parser.add_argument("--models")
    parser.add_argument("--planner", help="vllm_memory_constants.json of llm-d-planner")
    parser.add_argument("--csv", help="write the rows there")
    args = parser.parse_args()
    planner = scorelib.Planner(args.binary)
    models = scorelib.models_beside(args.data, args.models)
    score = score_truth.Score(planner, score_truth.Devices(planner), models)
    for record in scorelib.read_lines(args.data):
        score.measure(record)
    constants = json.load(open(args.planner)) if args.planner else None
    rows = {"weights and utilization only": []}
    if constants:
        rows["llm-d-planner 0.3.3"] = []
    rows["oomsight plan"] = []
    for record, plan in score.planned.values():
        seen = record["measured"].get("available_kv_gib")
        available = score_truth.available_of(plan)
        if seen is None or available is None or not score_truth.is_fair(record, score_truth.KV):
            continue
        total = plan["gpu"]["total_bytes"]
        error = lambda planned: max(0.0, abs(planned / scorelib.GIB - seen) - 0.005) * scorelib.GIB / total
        rows["weights and utilization only"].append(error(simple(plan)))
        if constants:
            folder = next(f for f in models.split(os.pathsep) if os.path.exists(os.path.join(f, record["config"], "config.json")))
            config = json.load(open(os.path.join(folder, record["config"], "config.json")))
            rows["llm-d-planner 0.3.3"].append(error(llm_d(plan, config, constants, plan["gpu"]["count"])))
        rows["oomsight plan"].append(error(available))
    out = [["estimator", "starts", "kv_within_1_percent", "kv_within_3_percent", "median_error_percent"]]
    for name, errors in rows.items():
        errors.sort()
        out.append([name, len(errors), sum(e <= 0.01 for e in errors), sum(e <= 0.03 for e in errors), "%.1f" % (100 * errors[len(errors) // 2])])
    if args.csv:
        with open(args.csv, "w", newline="") as f:
            csv.writer(f, lineterminator="\n").writerows(out)
    for row in out:
        print(",".join(map(str, row)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
