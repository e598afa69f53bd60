#!/usr/bin/env python3
"""Figures in the README and the evidence pages are those of committed results: figures.py [--check | --write] [--record NAME.csv] [--today BINARY]

Results are rows: docs/evidence/results/*.csv. Those of starts without a GPU are made here from tests/oracle/*.jsonl, which the
programs there write. Those of sets whose records are in tests/evidence are sums of starts-first.csv and reports-first.csv, a row for each
prediction with the commit that made it; whether a row is right is asked again of the facts in tests/evidence (predictions.py). A page
holds blocks between `<!-- figures: NAME -->` and `<!-- end -->`; the functions of BLOCKS make their text. Without --write: exit 1 when a
row, a table of rows or a block differs. --today also prints what BINARY says of the newest set of starts.

Every table of rows has an entry in docs/evidence/results/sources.json: the command that makes it, and what holds it. `gate`: made again here or by
the named test, out of files of the repository. `nightly`: scored again by .ci/run with data beside the repository. `by hand`: needs engines.
`first prediction`: made once, before any rule was written for the set. All but those made here whole have a digest of each row there, so that a row that
was typed over fails by its name. --write leaves digests alone; --record NAME.csv takes the rows of that table as they are. Standard library only."""
import argparse
import csv
import glob
import hashlib
import io
import json
import os
import re
import sys

import predictions

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, "docs/evidence/results")
ORACLE = os.path.join(ROOT, "tests/oracle")
GIB = 2**30


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def records(name):
    return [json.loads(line) for line in read(os.path.join(ORACLE, name + ".jsonl")).splitlines()]


def rows(name):
    return list(csv.DictReader(io.StringIO(read(os.path.join(RESULTS, name + ".csv")))))


def total(table, column):
    return sum(int(row[column]) for row in table if row[column])


def share(part, whole):
    return "%d of %d (%d %%)" % (part, whole, round(100 * part / whole)) if whole else ""


def of(table, part, whole):
    """The share of `part` in `whole`, over the rows that have both."""
    known = [row for row in table if row[part] and row[whole]]
    return share(total(known, part), total(known, whole))


def table(head, lines):
    marks = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| %s |" % " | ".join(map(str, line)) for line in [head, marks, *lines])


# ---- rows of starts without a GPU ----

def gib(number):
    return "" if number is None else "%.3f" % (number / GIB)


def starts_without_gpu():
    head = ["engine", "configuration", "model", "gpu", "ends", "phase", "weights_gib", "activation_peak_gib", "kv_tokens", "wall_seconds", "host_memory_gib"]
    lines = [["vLLM " + r["version"], r["way"], r["model"], r["device"][1], "starts" if r["verdict"] == "fits" else r["verdict"], r["phase"] or "",
              gib(r["weights_bytes"]), gib(r["peak_bytes"]), r["tokens"] or "", r["wall_seconds"], gib(r["resident_bytes"])] for r in records("results")]
    return [head, *lines]


def serving():
    head = ["engine", "start", "load", "requests", "answered", "aborted", "peak_gib", "planned_peak_gib"]
    out = [head]
    for r in sorted(records("serving"), key=lambda r: (r["release"], r["start"])):
        for place, cell in enumerate(r["cells"]):
            peaks = [gib(side["bytes"]) if side and place == 0 else "" for side in (r["peak"], r["plan"])]
            out.append(["vLLM " + r["release"], r["start"], cell["way"].replace("clients that leave", "aborted requests"), cell["requests"], cell["answered"], cell["aborted"], *peaks])
    return out


def sglang():
    head = ["engine", "start", "model", "gpu", "fraction", "fraction_planned", "weights_bytes", "weights_planned_bytes", "kv_tokens", "kv_tokens_planned",
            "peak_phase", "peak_gib", "peak_planned_gib", "error", "kv_tokens_first", "graphs_gib", "graphs_planned_gib", "graphs_first_gib"]
    out = [head]
    for r in records("sglang"):
        first = ["SGLang " + r["version"], r["name"], r["model"], r["gpu"]]
        dry, plan = r.get("dryrun"), r["plan"]
        if not dry:
            out.append(first + [""] * 9 + [r["failed"]["error"].split("\n")[0][:160]] + [""] * 4)
            continue
        phase = max((p for p in dry["peaks"] if not p.startswith("runtime")), key=lambda p: dry["peaks"][p])
        told = dry["fraction"] is not None  # before 0.5.18 the functions that name the phases are others
        graphs = [dry["graphs"], plan.get("graphs", ""), r["first"].get("graphs", "")] if dry.get("graphs") else [""] * 3
        out.append(first + [dry["fraction"] if told else "", plan["fraction"] if told else "", dry["weights"], plan["weights"], dry["tokens"], plan["tokens"] or "", phase if told else "",
                            gib(dry["peaks"][phase]) if told else "", gib(plan["peaks"].get(phase)) if told else "", "", r.get("first", {}).get("tokens") or ""] + graphs)
    return out


def plan_vs_dryrun():
    """A component that both the plan and the dry run have, where the dry run counted it (its range is one value)."""
    head = ["engine", "phase", "component", "planned_gib", "planned_low_gib", "planned_high_gib", "measured_gib"]
    out = [head]
    for r in records("beside"):
        plan = {(phase, owner): amount for phase, owner, *amount in r["plan"]}
        for phase, owner, value, low, high in r["dryrun"]:
            if low == high:
                out.append(["vLLM " + r["version"], phase, owner, *[gib(n) for n in plan.get((phase, owner), [None] * 3)], gib(value)])
    return out


# ---- sums of first predictions ----

def chosen(found, **wanted):
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def right(found, **wanted):
    """(right, of)"""
    found = chosen(found, **wanted)
    return sum(row["right"] == "yes" for row in found), len(found)


def own(found):
    return [row for row in found if row["program"] not in (predictions.SIMPLE, predictions.PLANNER)]


def start_counts(found):
    """The columns of starts.csv that rows give."""
    mine = own(found)
    counts = {}
    for figure, part, whole in (("kv_1_percent", "kv_within_1_percent", "kv_starts"), ("kv_3_percent", "kv_within_3_percent", "kv_starts"),
                                ("kv_range", "kv_inside_range", "kv_starts"), ("weights_1_percent", "weights_within_1_percent", "weight_starts"),
                                ("graphs_25_percent", "graphs_within_25_percent", "graph_starts")):
        counts[part], counts[whole] = right(mine, figure=figure)
    for given, part in (("", "failures_predicted"), (predictions.FREE, "failures_predicted_free_memory_given")):
        failed = [row for row in chosen(mine, figure="outcome", given=given) if row["measured"] != "ok"]
        counts[part], counts["failures"] = right(failed)
    up = chosen(mine, figure="outcome", given="", measured="ok")
    counts["came_up"], counts["called_failures"] = len(up), len(up) - right(up)[0]
    return {key: str(value) for key, value in counts.items()}


def report_counts(found):
    counts = {}
    for figure, part, whole in (("memory", "memory_failures_recognized", "memory_failures"), ("phase", "phase_right", "phase_of"), ("cause", "cause_right", "cause_of")):
        counts[part], counts[whole] = right(found, figure=figure)
    quiet, counts["not_memory"] = right(found, figure="alarm")
    counts["false_alarms"] = counts["not_memory"] - quiet
    return {key: str(value) for key, value in counts.items()}


def sets(name, counts):
    """The table of sets, as the rows of each add up. Of a set whose records are not in tests/evidence the counts stand as they were taken."""
    found, first = rows(name), rows(name + "-first")
    for row in found:
        row.update(counts(chosen(first, set=row["records"])) if row["records"] else {})
    return [list(found[0])] + [list(row.values()) for row in found]


def newest():
    """Rows of the newest set of starts."""
    return chosen(rows("starts-first"), set=rows("starts")[-1]["records"])


def estimators():
    out = [["estimator", "starts", "kv_within_1_percent", "kv_within_3_percent", "median_error_percent"]]
    first = newest()
    for name, found in ((predictions.SIMPLE, chosen(first, program=predictions.SIMPLE)), (predictions.PLANNER, chosen(first, program=predictions.PLANNER)), ("oomsight plan", own(first))):
        errors = sorted(max(0.0, abs(int(row["predicted"]) / GIB - float(row["measured"])) - 0.005) * GIB / int(row["gpu_bytes"]) for row in chosen(found, figure="kv_1_percent"))
        out.append([name, len(errors), right(found, figure="kv_1_percent")[0], right(found, figure="kv_3_percent")[0], "%.1f" % (100 * errors[len(errors) // 2])])
    return out


def calibrated():
    first = own(newest())
    out = [["answer", "starts", "started", "starts_free_memory_given", "started_free_memory_given"]]
    for place, name in enumerate(("below 25 %", "25 to 50 %", "50 to 75 %", "above 75 %")):
        line = [name]
        for given in ("", predictions.FREE):
            found = [row for row in chosen(first, figure="probability", given=given) if min(3, int(4 * float(row["predicted"]))) == place]
            line += [len(found), sum(row["measured"] == "ok" for row in found)]
        out.append(line)
    return out


MADE = {"starts-without-gpu": starts_without_gpu, "serving": serving, "sglang": sglang, "plan-vs-dryrun": plan_vs_dryrun,
        "starts": lambda: sets("starts", start_counts), "reports": lambda: sets("reports", report_counts), "estimators": estimators, "calibration": calibrated}


HOLDS = ("gate", "nightly", "by hand", "first prediction")


def digests(text):
    """[(name of a row, digest)] with the heading first."""
    return [(",".join(line[:2]), hashlib.sha256("\0".join(line).encode()).hexdigest()[:12]) for line in csv.reader(io.StringIO(text))]


def recorded(results=RESULTS, record=()):
    """Lines about tables whose rows are not those that docs/evidence/results/sources.json has."""
    path = os.path.join(results, "sources.json")
    sources = json.loads(read(path))
    there = sorted(os.path.basename(name) for name in glob.glob(os.path.join(results, "*.csv")))
    for name in sorted(set(sources) - set(there)):
        yield "docs/evidence/results/%s is gone" % name
    for name in there:
        entry = sources.get(name)
        if not entry or entry.get("held") not in HOLDS or len(entry.get("made", "").split()) < 2 or entry["held"] == "first prediction" and not entry.get("commit"):
            yield "docs/evidence/results/%s: sources.json says not how it is made and what holds it" % name
            continue
        if name[:-4] in MADE and "rows" not in entry:
            continue
        now = digests(read(os.path.join(results, name)))
        if name in record:
            entry["rows"] = [digest for _, digest in now]
        known = entry.get("rows", [])
        for number, (row, digest) in enumerate(now):
            if digest not in known:
                yield "docs/evidence/results/%s row %d (%s) is not the recorded one (%s): %s" % (name, number, row, entry["held"], entry["made"])
        missing = [number for number, digest in enumerate(known) if digest not in {d for _, d in now}]
        if missing and len(now) < len(known):
            yield "docs/evidence/results/%s: recorded rows are gone: %s" % (name, ", ".join(map(str, missing)))
    if record:
        with open(path, "w", encoding="utf-8") as f:
            f.write("{\n%s\n}\n" % ",\n".join("%s: %s" % (json.dumps(name), json.dumps(sources[name])) for name in sorted(sources)))


# ---- blocks of pages ----

FREE_GIVEN = "the same, with `--gpu-used` from the log"


def accuracy():
    """First predictions: the newest set, and all sets."""
    sets, reports, others = rows("starts"), rows("reports"), rows("estimators")
    new, newer = sets[-1:], reports[-1:]
    by_name = {row["estimator"]: row for row in others}
    planner, simple = (by_name[name] for name in ("llm-d-planner 0.3.3", "weights and utilization only"))
    counted = lambda row, column: "%s of %s" % (row[column], row["starts"])
    lines = [["KV cache within 1 % of GPU memory", of(new, "kv_within_1_percent", "kv_starts"), of(sets, "kv_within_1_percent", "kv_starts"),
              counted(planner, "kv_within_1_percent"), counted(simple, "kv_within_1_percent")],
             ["KV cache within 3 % of GPU memory", of(new, "kv_within_3_percent", "kv_starts"), of(sets, "kv_within_3_percent", "kv_starts"),
              counted(planner, "kv_within_3_percent"), counted(simple, "kv_within_3_percent")],
             ["measured KV cache inside the printed range", of(new, "kv_inside_range", "kv_starts"), of(sets, "kv_inside_range", "kv_starts"), "no range", "no range"],
             ["failed starts predicted", of(new, "failures_predicted", "failures"), of(sets, "failures_predicted", "failures"), "", ""],
             [FREE_GIVEN, of(new, "failures_predicted_free_memory_given", "failures"), "", "", ""],
             ["successful starts, predicted to fail", of(new, "called_failures", "came_up"), "", "", ""],
             ["`explain`: memory failure recognized", of(newer, "memory_failures_recognized", "memory_failures"), of(reports, "memory_failures_recognized", "memory_failures"), "", ""],
             ["`explain`: false alarms", of(newer, "false_alarms", "not_memory"), of(reports, "false_alarms", "not_memory"), "", ""],
             ["`explain`: right phase", of(newer, "phase_right", "phase_of"), of(reports, "phase_right", "phase_of"), "", ""],
             ["`explain`: a right cause", of(newer, "cause_right", "cause_of"), of(reports, "cause_right", "cause_of"), "", ""]]
    return table(["first prediction, data no rule was written from", "newest set", "all sets", "llm-d-planner", "weights and utilization only"], lines)


def readme():
    sets, reports, others = rows("starts")[-1:], rows("reports")[-1:], {row["estimator"]: row for row in rows("estimators")}
    planner, simple = (others[name] for name in ("llm-d-planner 0.3.3", "weights and utilization only"))
    lines = [[text, of(sets, column, "kv_starts"), "%s of %s" % (planner[column], planner["starts"]), "%s of %s" % (simple[column], simple["starts"])]
             for text, column in (("KV cache within 1 % of GPU memory", "kv_within_1_percent"), ("KV cache within 3 % of GPU memory", "kv_within_3_percent"))]
    lines += [["failed starts predicted", of(sets, "failures_predicted", "failures"), "", ""],
              [FREE_GIVEN, of(sets, "failures_predicted_free_memory_given", "failures"), "", ""],
              ["successful starts, predicted to fail", of(sets, "called_failures", "came_up"), "", ""],
              ["`explain`: right phase, right cause", "%s, %s" % (of(reports, "phase_right", "phase_of"), of(reports, "cause_right", "cause_of")), "", ""]]
    return table(["", "oomsight", "llm-d-planner", "calculator"], lines)


def start_sets():
    lines = [[row["set"], row["releases"], row["kv_starts"], row["kv_within_1_percent"], row["kv_within_3_percent"], row["kv_inside_range"],
              "%s of %s" % (row["graphs_within_25_percent"], row["graph_starts"]),
              "%s of %s" % (row["failures_predicted"], row["failures"]) if row["failures"] else "not counted"] for row in rows("starts")]
    return table(["set", "releases", "starts with KV cache", "within 1 %", "within 3 %", "in range", "CUDA graphs within 25 %", "failures predicted"], lines)


def advice():
    lines = [[row["set"], "%s of %s" % (row["first"], row["confirmed"]), "%s of %s" % (row["anywhere"], row["confirmed"]),
              "%s of %s" % (row["recommended"], row["useless"]), "%s of %s" % (row["warned"], row["useless"])] for row in rows("advice")]
    return table(["command, reports", "what helped is named first", "named at all", "what did not help is suggested", "is named as without effect"], lines)


def calibration():
    return table(["printed probability", "starts", "started", "starts, with `--gpu-used`", "started"], [list(r.values()) for r in rows("calibration")])


def engines():
    found = rows("starts-without-gpu")
    versions = sorted({r["engine"] for r in found}, key=lambda name: [int(n) for n in name.split()[1].split(".")])
    lines = [[name, sum(r["engine"] == name for r in found), sum(r["engine"] == name and r["ends"] == "starts" for r in found),
              ", ".join(dict.fromkeys(r["configuration"] for r in found if r["engine"] == name))] for name in versions]
    return table(["engine", "starts", "started", "configurations"], lines)


def loads():
    found = rows("serving")
    whole = sum(int(r["answered"]) + int(r["aborted"]) == int(r["requests"]) for r in found)
    peaks = [(float(r["peak_gib"]), float(r["planned_peak_gib"])) for r in found if r["peak_gib"] and r["planned_peak_gib"]]
    return "%d loads on %s: every request answered or aborted as requested in %d. Peak while serving within 5 %% of `plan` in %d of %d starts." % (
        len(found), ", ".join(sorted({r["engine"] for r in found})), whole, sum(abs(a / b - 1) <= 0.05 for a, b in peaks), len(peaks))


def suggested():
    found = rows("suggestions")
    near = [abs(int(r["promised_tokens"]) / int(r["tokens"]) - 1) for r in found if r["promised_tokens"] and r["tokens"]]
    each = ", ".join("%s: %d" % (engine, sum(r["engine"] + " " + r["release"] == engine for r in found)) for engine in sorted({r["engine"] + " " + r["release"] for r in found}))
    return "%d of %d suggested commands start (%s). KV tokens are within 1 %% of the prediction in %d of %d, and at most %.1f %% away." % (
        sum(r["ends"] == "starts" for r in found), len(found), each, sum(n <= 0.01 for n in near), len(near), 100 * max(near))


def levers():
    found = rows("levers")
    lines = []
    for engine in sorted({r["engine"] + " " + r["release"] for r in found}):
        own = [r for r in found if r["engine"] + " " + r["release"] == engine]
        lines.append([engine, len(own), sum(r["equal"] == "yes" for r in own),
                      "; ".join("%s %s for %s" % (r["lever"], r["frees_mib"] or "no start", r["planned_mib"] or "none") for r in own if r["equal"] != "yes")])
    return table(["engine", "levers", "within 5 % or 1 MiB of the plan", "others: MiB that one frees, and planned"], lines)


def survey():
    names = {"a": "nothing", "b": "a default that was not set", "c": "a little quality or speed", "d": "a value that was set", "e": "more", "needs": "no flag is enough"}
    found = rows("survey")
    lines = [["%s %s" % (r["engine"], r["release"]), r["failing"]] + [r[key] for key in names] for r in found]
    return table(["engine", "plans that fail"] + list(names.values()), lines)


def minimal():
    names = {"single": "one flag: no smaller change of it", "two": "two flags: neither one flag nor a smaller pair", "more": "more flags: no smaller change of one of them",
             "rung": "nothing that costs less", "none": "nothing is suggested, and no single flag is enough"}
    found = {(r["engine"], r["kind"]): "%s of %s" % (r["minimal"], r["of"]) if int(r["of"]) else "" for r in rows("minimal")}
    return table(["no other command starts", "vllm", "sglang"], [[name, found["vllm", kind], found["sglang", kind]] for kind, name in names.items()])


def sglang_summary():
    found = rows("sglang")
    up = [r for r in found if not r["error"]]
    tokens = [abs(int(r["kv_tokens_planned"]) / int(r["kv_tokens"]) - 1) for r in up if r["kv_tokens_planned"]]
    peaks = [abs(float(r["peak_planned_gib"]) / float(r["peak_gib"]) - 1) for r in up if r["peak_planned_gib"]]
    told, graphs = [r for r in up if r["fraction"]], [(float(r["graphs_planned_gib"]) / float(r["graphs_gib"]) - 1) for r in up if r["graphs_gib"] and r["kv_tokens_planned"]]
    lines = [["started", "%d of %d" % (len(up), len(found))],
             ["`mem_fraction_static` equal", "%d of %d" % (sum(r["fraction"] == r["fraction_planned"] for r in told), len(told))],
             ["weights equal to the byte", "%d of %d" % (sum(r["weights_bytes"] == r["weights_planned_bytes"] for r in up), len(up))],
             ["weights within 1 MiB", "%d of %d" % (sum(abs(int(r["weights_bytes"]) - int(r["weights_planned_bytes"])) <= 2**20 for r in up), len(up))],
             ["KV tokens within 0.1 %", "%d of %d" % (sum(t <= 0.001 for t in tokens), len(tokens))],
             ["KV tokens within 0.5 %", "%d of %d" % (sum(t <= 0.005 for t in tokens), len(tokens))],
             ["KV tokens, largest difference", "%.2f %%" % (100 * max(tokens))],
             ["printed graphs within 25 %", "%d of %d" % (sum(abs(g) <= 0.25 for g in graphs), len(graphs))],
             ["peak while starting, largest difference", "%.1f %%" % (100 * max(peaks))]]
    return table(["", "result"], lines)


def components():
    found = rows("plan-vs-dryrun")
    lines = []
    for name in dict.fromkeys(r["engine"] for r in found):
        own = [r for r in found if r["engine"] == name]
        both = [r for r in own if r["planned_gib"]]
        inside = sum(float(r["planned_low_gib"]) <= float(r["measured_gib"]) <= float(r["planned_high_gib"]) for r in both)
        lines.append([name, len(own), len(both), inside])
    return table(["engine", "components measured", "also planned", "inside the planned range"], lines)


def agreement():
    found = rows("agreement")
    same = lambda a, b: sum(r[a] == r[b] for r in found)
    peaks = sum(abs(float(r["peak_planned_gib"]) / float(r["peak_gib"]) - 1) <= 0.05 for r in found)
    return table(["", "starts"], [["weights equal to the byte", "%d of %d" % (same("weights_bytes", "weights_planned_bytes"), len(found))],
                                  ["weights within 0.5 %", "%d of %d" % (sum(abs(int(r["weights_planned_bytes"]) / int(r["weights_bytes"]) - 1) <= 0.005 for r in found), len(found))],
                                  ["KV tokens equal, for the same memory", "%d of %d" % (same("kv_tokens", "kv_tokens_planned"), len(found))],
                                  ["activation peak within 5 %", "%d of %d" % (peaks, len(found))]])


def sweep():
    return table(["figure", "within 2 %", "starts"], [[r["figure"], r["within_2_percent"], r["starts"]] for r in rows("sweep")])


def flags():
    lines = [[r["engine"], r["commands"], "%s of %s" % (r["alike"], r["compared"]), r["falsely_rejected"], r["falsely_accepted"],
              "%s of %s" % (r["same_reason"], r["reasons"]), "%s of %s" % (r["same_configuration"], r["configurations"])] for r in rows("flags")]
    return table(["engine", "commands", "accepted or rejected alike", "falsely rejected", "falsely accepted", "same reason", "same configuration"], lines)


def exact():
    """Commands of recipes: plan alone, by all rules and by those of a release before, and what the installed engine changed."""
    def told(row, key):
        engine, answer = row["engine"], row[key]
        if engine["verdict"] == "refused":
            return engine["text"].split(". ")[0]
        changes = ", ".join("%s %s (%s)" % (one["name"], one["engine"], one["plan"]) for one in answer["replaced"])
        return answer["problem"] or changes or engine.get("sizes_problem") or ("nothing" if answer["sized"] else "nothing; pages were not built")

    lines, found = [], records("exact")
    same = {"taken": 0, "refused": 0}
    for row in found:
        words = [re.sub(r"/\S*/", "", told(row, key)) for key in ("told", "unread_told")]
        verdict, starts = row["engine"]["verdict"], [row[key]["verdict"] in ("fits", "tight") for key in ("first", "unread_first", "exact")]
        if verdict in same and words[0] == words[1] and len(set(starts)) == 1 and (verdict == "refused" or words[0] == "nothing"):
            same[verdict] += 1
            continue
        if words[0] == words[1]:
            words[1] = "the same"
        lines.append([text.replace("|", "\\|")[:150] for text in ("`%s`" % row["command"], row["first"]["verdict"], row["unread_first"]["verdict"],
                                                                  row["exact"]["verdict"], *words)])
    return "Of %d commands %d are accepted with equal values, weights and pages, and %d are refused, in all columns. The others:\n\n" % (
        len(found), same["taken"], same["refused"]) + table(["command (eight H100)", "plan", "by rules of 0.31.0", "with the engine",
                                                            "its words, or what it replaced (plan's)", "of 0.31.0's"], lines) + (
            "\n\n" + table(["processor seconds", "at first", "now"], [[r["part"], r["first"], r["now"]] for r in rows("exact_seconds")]))


def probes():
    """Starts of a release that the data had not, planned without and with the terms of its small starts: first predictions; and by the present rules."""
    rows = records("learned_starts")
    versions = sorted({row["version"] for row in rows})
    cells, starts = {}, dict.fromkeys((row["key"], row["requests"], row["tokens"]) for row in rows)
    for row in rows:
        shares = ["%+.2f %%" % (100 * (row[which]["bytes"] / row["engine"] - 1)) for which in ("first", "learned", "now")] if row["engine"] else ["", "", ""]
        cells[row["key"], row["version"]] = ["%.3f" % (row["engine"] / 2**30) if row["engine"] else "not started"] + shares
    return table(["start", "requests", "tokens"] + [head for version in versions for head in (version + ", GiB", "without", "with its terms", "now")],
                 [[key.replace("/", ", "), requests, tokens] + sum((cells[key, version] for version in versions), []) for key, requests, tokens in starts])


def support():
    """What data/ has."""
    versions = {}
    for engine in ("vllm", "sglang"):
        listed = json.loads(read(os.path.join(ROOT, "data/engines/%s/rules.json" % engine)))[0]["versions"]
        versions[engine] = (listed[0], listed[-1])
    short = lambda version: ".".join(version.split(".")[:2])
    models = json.loads(read(os.path.join(ROOT, "data/catalogue.json")))
    failures = glob.glob(os.path.join(ROOT, "data/kb/**/*.json"), recursive=True)
    return "\n".join(["| | |", "| --- | --- |",
                      "| engines | vLLM %s to %s; SGLang %s to %s |" % (*map(short, versions["vllm"]), *versions["sglang"]),
                      "| GPUs | %d NVIDIA GPUs and their MIG profiles (`oomsight gpus`), or any with `--gpu-total` |" % len(glob.glob(os.path.join(ROOT, "data/gpus/*.json"))),
                      "| models | text architectures of vLLM %s, %d model ids built in; others from their weight headers, with a wider range |" % (
                          short(versions["vllm"][1]), len(models)),
                      "| logs | %d known failures of vLLM, SGLang, PyTorch, llama.cpp, TGI and others (`oomsight kb`) |" % len(failures)])


BLOCKS = {"flags": flags, "exact": exact, "probes": probes, "support": support, "readme": readme, "accuracy": accuracy, "start-sets": start_sets, "advice": advice, "calibration": calibration, "engines": engines, "loads": loads, "suggested": suggested, "survey": survey, "minimal": minimal, "levers": levers,
          "sglang": sglang_summary, "components": components, "agreement": agreement, "sweep": sweep}


def put(path, text, write, how="tools/figures.py --write"):
    """True when the file has that text, or is given it."""
    if os.path.exists(path) and read(path) == text:
        return True
    if write:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        print("%s is out of date: %s" % (os.path.relpath(path, ROOT), how))
    return write


def pages():
    yield os.path.join(ROOT, "README.md")
    yield from sorted(glob.glob(os.path.join(ROOT, "docs/evidence/*.md")))


def run(write, record=()):
    """0 when rows and pages are what the results give, or were made so."""
    good, blocks = True, 0
    for line in recorded(RESULTS, record):
        print(line)
        good = False
    for kind in ("starts", "reports"):
        for line in predictions.wrong_rows(kind, rows(kind + "-first"), predictions.facts(kind)):
            print("docs/evidence/results/%s-first.csv: %s" % (kind, line))
            good = False
    for name, make in MADE.items():
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(make())
        good &= put(os.path.join(RESULTS, name + ".csv"), out.getvalue(), write)
    for path in pages():
        text = read(path)
        found = re.findall(r"<!-- figures: ([a-z-]+) -->", text)
        for name in found:
            text = re.sub(r"(<!-- figures: %s -->\n).*?(<!-- end -->)" % name, lambda m: m.group(1) + BLOCKS[name]() + "\n" + m.group(2), text, flags=re.S)
        blocks += len(found)
        good &= put(path, text, write)
    print("%d blocks of figures%s" % (blocks, "" if good else ", not all as the results say"))
    return 0 if good else 1


def today(binary):
    """The newest set of starts by another program: its rules may have been written with these starts at hand."""
    first = newest()
    counts = [start_counts(first), start_counts(predictions.start_rows(binary, "today", first[0]["set"]))]
    lines = [[text, *(of([one], part, whole) for one in counts)] for text, part, whole in (
        ("KV cache within 1 % of GPU memory", "kv_within_1_percent", "kv_starts"), ("KV cache within 3 % of GPU memory", "kv_within_3_percent", "kv_starts"),
        ("measured KV cache inside the printed range", "kv_inside_range", "kv_starts"), ("weights within 1 %", "weights_within_1_percent", "weight_starts"),
        ("CUDA graphs within 25 %", "graphs_within_25_percent", "graph_starts"), ("failed starts predicted", "failures_predicted", "failures"),
        (FREE_GIVEN, "failures_predicted_free_memory_given", "failures"), ("successful starts, predicted to fail", "called_failures", "came_up"))]
    print(table(["", "first prediction: " + own(first)[0]["program"], "today, not unseen: a regression test"], lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="as without it")
    what.add_argument("--write", action="store_true")
    parser.add_argument("--record", metavar="NAME.csv", action="append", default=[])
    parser.add_argument("--today", metavar="BINARY")
    args = parser.parse_args()
    if args.today:
        today(args.today)
    return run(args.write, args.record)


if __name__ == "__main__":
    sys.exit(main())
