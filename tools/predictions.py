#!/usr/bin/env python3
"""Predictions of one program as rows, a row for each start or report and figure, and whether each is right.

    tools/predictions.py starts BINARY NAME --set SET [--planner JSON] [--into docs/evidence/results/starts-first.csv]
    tools/predictions.py reports BINARY NAME FOLDER --set SET [--into docs/evidence/results/reports-first.csv]

NAME goes into the rows: `oomsight COMMIT`, with the commit that BINARY was built from. --into puts the rows in the place of those
of the same set and program. Starts come from tests/evidence/starts.jsonl, with the
configs beside it. FOLDER has the texts of the reports (ID.log), which belong to their authors; the labels are in tests/evidence/reports.jsonl.
--planner is vllm_memory_constants.json of llm-d-planner 0.3.3 (its wheel): rows of the other estimators, with the weights of the same plans.

What is right is decided here, from the prediction and the fact: tools/figures.py asks again for every row, so a row cannot say otherwise.
Standard library only."""
import argparse
import contextlib
import csv
import json
import os
import sys

import catalogue
import explainlib
import score_truth
import scorelib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EVIDENCE = os.path.join(ROOT, "tests/evidence")
GIB = scorelib.GIB
START_HEAD = ["set", "record", "program", "given", "figure", "predicted", "low", "high", "gpu_bytes", "measured", "right"]
REPORT_HEAD = ["set", "record", "program", "figure", "predicted", "label", "right"]
SIMPLE, PLANNER = "weights and utilization only", "llm-d-planner 0.3.3"
# What a record has to tell for a row of the figure, and which of its fields may be without an input (`unfair`).
OF = {"kv_1_percent": (("available_kv_gib",), score_truth.KV), "kv_3_percent": (("available_kv_gib",), score_truth.KV),
      "kv_range": (("available_kv_gib",), score_truth.KV), "weights_1_percent": (("model_load_gib", "weights_gib"), "weights"),
      "graphs_25_percent": (("cudagraph_gib",), "graphs"), "outcome": ((), "outcome"), "probability": ((), "outcome")}
FREE = "free memory"  # `given`: what the log prints as free at the start, beside what the command and the GPU tell


def facts(name):
    return {fact["id"]: fact for fact in scorelib.read_lines(os.path.join(EVIDENCE, name + ".jsonl"))}


# ---- starts ----

def measured(fact, figure):
    """What the log says, "" where it does not, or where it lacks an input of the figure."""
    keys, field = OF[figure]
    if not score_truth.is_fair(fact, field) or not score_truth.is_whole(fact):
        return ""
    return next((fact["measured"][key] for key in keys if key in fact["measured"]), "") if keys else fact["outcome"]


def start_right(row, value):
    """yes, no, or nothing where a row does not claim one; `value` is what was measured."""
    figure = row["figure"]
    if figure == "probability":
        return ""
    if figure == "outcome":
        return "yes" if (row["predicted"] == "fails") == (value != "ok") else "no"
    if figure == "kv_range":
        return "yes" if int(row["low"]) / GIB - 0.005 <= value <= int(row["high"]) / GIB + 0.005 else "no"
    off = abs(int(row["predicted"]) / GIB - value)
    if figure == "graphs_25_percent":
        good = off <= score_truth.SMALL_GIB or max(0.0, off - 0.005) / max(abs(value), 1e-9) <= 0.25
    elif figure == "weights_1_percent":
        good = max(0.0, off - 0.005) / max(abs(value), 1e-9) <= 0.01
    else:
        good = max(0.0, off - 0.005) * GIB / int(row["gpu_bytes"]) <= (0.01 if figure == "kv_1_percent" else 0.03)
    return "yes" if good else "no"


def simple(plan):
    """utilization x GPU memory - weights, as VRAM calculators do"""
    return plan["budget_bytes"] - plan["weights_bytes"]


def llm_d(plan, config, constants, ranks):
    """The same less its constants for activations and non-PyTorch memory: allocatable_kv_cache_memory() of llm-d-planner."""
    profiles, base = constants["activation_profiles"], constants["activation_base_gib"]
    arch = (config.get("architectures") or [""])[0]
    text = config.get("text_config") or config
    moe = any(key in text for key in ("n_routed_experts", "n_shared_experts", "num_experts", "num_experts_per_tok"))
    activation = profiles.get(arch, base["moe"] if moe else base["multimodal"] if "vision_config" in config else base["dense"])
    outside = constants["non_torch_overhead_gib"]["tpN_pp1" if ranks > 1 else "tp1_pp1"]
    # Its activations are those of the whole engine: one GPU has its share of them.
    return max(0, simple(plan) - int((activation / ranks + outside) * GIB))


def graphs_of(plan):
    found = scorelib.rows(plan, "cudagraph_capture", ("CUDA graphs",))
    return sum(row["bytes"] for row in found) - (score_truth.part(plan, "graphs_not_printed") or {"bytes": 0})["bytes"] if found else None


def answers(plan, kv):
    """figure -> (predicted, low, high)"""
    whole, budget = score_truth.part(plan, "non_kv"), plan.get("budget_bytes")
    yield "weights_1_percent", plan["weights_bytes"], "", ""
    yield "graphs_25_percent", graphs_of(plan), "", ""
    yield "outcome", "fails" if score_truth.foresees_failure(plan) else "starts", "", ""
    yield "probability", plan.get("probability"), "", ""
    yield "kv_1_percent", kv, "", ""
    yield "kv_3_percent", kv, "", ""
    yield "kv_range", kv, budget - whole["high"] if whole else "", budget - whole["low"] if whole else ""


def row_of(fact, program, given, plan, figure, predicted, low="", high=""):
    value = measured(fact, figure)
    if value == "" or predicted is None:
        return None
    row = dict(zip(START_HEAD, [fact["set"], fact["id"], program, given, figure, predicted, low, high, plan["gpu"]["total_bytes"], value, ""]))
    return {**row, "right": start_right(row, value)}


def plans(binary, records, told):
    planner = scorelib.Planner(binary)
    models = scorelib.models_beside(os.path.join(EVIDENCE, "starts.jsonl"), None)
    score = score_truth.Score(planner, score_truth.Devices(planner), models, told=told)
    for record in records:
        score.measure(record)
    return models, score.planned


def start_rows(binary, name, wanted, constants=None):
    """Rows of the records of one set; what other processes hold is not given to the plan, and once more for the outcome alone, where it is."""
    records = [fact for fact in facts("starts").values() if fact["set"] == wanted]
    models, planned = plans(binary, records, False)
    rows = []
    for fact, plan in planned.values():
        rows += [row_of(fact, name, "", plan, *answer) for answer in answers(plan, score_truth.available_of(plan))]
        if constants:
            config = catalogue.load(scorelib.config_path(models, fact["config"]), "config.json")
            for program, kv in ((SIMPLE, simple(plan)), (PLANNER, llm_d(plan, config, constants, plan["gpu"]["count"]))):
                rows += [row_of(fact, program, "", plan, figure, kv) for figure in ("kv_1_percent", "kv_3_percent")]
    for fact, plan in plans(binary, records, True)[1].values():
        rows += [row_of(fact, name, FREE, plan, *answer) for answer in answers(plan, None) if answer[0] in ("outcome", "probability")]
    return sorted((row for row in rows if row), key=lambda row: (row["program"] != name, row["program"], row["given"], row["figure"], row["record"]))


# ---- reports ----

def label_of(fact, figure):
    """What the label says, "" where it says nothing firm."""
    firm = fact["evidence"] == "explicit" and fact["confidence"] != "low"
    return {"memory": "yes" if fact["is_oom"] else "no" if fact["evidence"] == "explicit" else "", "alarm": "no", "phase": fact["phase"],
            "cause": "/".join(sorted({fact["cause"], *fact.get("also", [])}))}[figure] if {
                "memory": fact["evidence"] == "explicit", "alarm": fact["evidence"] == "none", "phase": firm, "cause": firm}[figure] else ""


def report_right(row, label):
    return "yes" if set(row["predicted"].split("/")) & set(label.split("/")) else "no"


def report_rows(binary, name, wanted, folder):
    rows = []
    for fact in facts("reports").values():
        if fact["set"] != wanted:
            continue
        got = explainlib.answer_of(explainlib.incidents_of(binary, os.path.join(folder, fact["id"] + ".log")))
        found = {"memory": "yes" if got["is_oom"] else "no", "alarm": "yes" if got["is_oom"] else "no", "phase": got["phase"],
                 "cause": "/".join(sorted(explainlib.causes(got)))}
        for figure, predicted in found.items():
            label = label_of(fact, figure)
            if label:
                row = dict(zip(REPORT_HEAD, [wanted, fact["id"], name, figure, predicted, label, ""]))
                rows.append({**row, "right": report_right(row, label)})
    return sorted(rows, key=lambda row: (row["figure"], row["record"]))


# ---- is every row what its fact gives, and is every fact there? ----

def wrong_rows(kind, rows, known):
    """Lines about rows whose measured value, label or verdict is not that of the fact, and about facts without their row."""
    value_of, right_of, column = (measured, start_right, "measured") if kind == "starts" else (label_of, report_right, "label")
    seen = set()
    for row in rows:
        who, fact = "%s %s %s" % (row["record"], row["program"], row["figure"]), known.get(row["record"])
        if not fact or fact["set"] != row["set"]:
            yield "%s: no such record in tests/evidence/%s.jsonl" % (who, kind)
            continue
        key = (row["set"], row["program"], row.get("given", ""), row["figure"])
        if (key, row["record"]) in seen:
            yield "%s: twice" % who
        seen.add((key, row["record"]))
        value = value_of(fact, row["figure"])
        if str(value) != row[column]:
            yield "%s: %s %s, and the record has %s" % (who, column, row[column], value)
        elif right_of(row, value) != row["right"]:
            yield "%s: said to be %s, and %s predicted for %s is not" % (who, {"yes": "right", "no": "wrong"}.get(row["right"], "neither"), row["predicted"], row[column])
    for key in sorted({key for key, _ in seen}):
        for who, fact in known.items():
            if fact["set"] == key[0] and value_of(fact, key[3]) != "" and (key, who) not in seen:
                yield "%s %s %s: no row" % (who, key[1], key[3])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("starts", "reports"))
    parser.add_argument("binary")
    parser.add_argument("name")
    parser.add_argument("folder", nargs="?", help="texts of the reports")
    parser.add_argument("--set", required=True)
    parser.add_argument("--into", metavar="FILE")
    parser.add_argument("--planner", help="vllm_memory_constants.json of llm-d-planner")
    args = parser.parse_args()
    if args.kind == "reports":
        head, rows = REPORT_HEAD, report_rows(args.binary, args.name, args.set, args.folder)
    else:
        constants = None
        if args.planner:
            with open(args.planner, encoding="utf-8") as file:
                constants = json.load(file)
        head, rows = START_HEAD, start_rows(args.binary, args.name, args.set, constants)
    if args.into and os.path.exists(args.into):
        with open(args.into, encoding="utf-8", newline="") as file:
            made = {row["program"] for row in rows}
            kept = [row for row in csv.DictReader(file) if row["set"] != args.set or row["program"] not in made]
        rows = sorted(rows + kept, key=lambda row: (row["set"], not row["program"].startswith("oomsight"), row["program"]))
    with open(args.into, "w", encoding="utf-8", newline="") if args.into else contextlib.nullcontext(sys.stdout) as file:
        writer = csv.DictWriter(file, head, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
