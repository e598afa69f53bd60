#!/usr/bin/env python3
"""Scores plans against measured starts (truth/*.jsonl, one JSON object a line): weights, available KV memory, tokens,
graph memory, activation peak, outcome and phase, failures foreseen, and how often the truth lies in the printed ranges.

    tools/score_truth.py BINARY STARTS.jsonl... [--models DIR] [--json] [--all] [--only ID] [--set SET] [--folds]

tests/evidence/starts.jsonl has facts of public starts; their `set` says when they were collected, and JSON has the figures of each.
Every record is planned through the command line from what its `flags`, `resolved` and `gpu` say. Records of an effective
engine version before 0.8, without one, or without a model config are left out; so are the fields a record lists as
`unfair`, for which its source lacks an input. Numbers that an engine printed with two decimals
are taken as rounded: half of the last digit is forgiven. Small figures (graphs, activation, outside torch) are right
within 0.05 GiB whatever their share. Tokens are also planned with the logged available memory (--kv-cache-memory-bytes),
over all the values that print as that figure.

A failure is foreseen when the plan says fails, refused, or that it likely fails; whether the phase is right as well is
counted under outcome. Where a record prints weights, activation, outside torch and KV, they must add up to its budget
(the ledger closes): one that does not is named, since its release or flags are then not what it says.

--folds leaves one source out at a time: fitted constants (fitted.json beside this program) are fitted again on
the records of all other sources, and judged on those of the one left out.

Exit 0 when the goals hold (GOALS below), 1 when not, 2 on wrong usage.
"""

import argparse
import ast
import json
import os
import re
import sys

import scorelib

GIB = scorelib.GIB
LIMITS = (0.001, 0.01, 0.03, 0.10, 0.25)
OWN_GIB, RANK_GIB = 0.5, 2.5  # a context, rounded up; with communicators
WSL_GIB = 2  # not free at start under WSL and yet there: 1.33 in four records of one desktop, three of which started
SMALL_GIB = 0.05  # figures below half a GiB are printed with two decimals and read from a free memory that wanders
KV = "available KV / device"
GOALS = [("weights", 0.01, 0.95), (KV, 0.01, 0.70), (KV, 0.03, 0.92), ("tokens, memory given", 0.001, 0.97),
         ("graphs", 0.25, 0.75)]
RECALL_GOAL, PRECISION_GOAL, COVERAGE_GOAL, WIDTH_GOAL, STARTS_GOAL = 0.85, 0.85, 0.90, 0.03, 0.97
UNFAIR = {"weights": {"weights", "model_load_gib"}, KV: {"kv", "available_kv_gib"}, "available KV": {"kv", "available_kv_gib"},
          "tokens": {"tokens"}, "tokens, memory given": {"tokens"}, "activation": {"activation"}, "graphs": {"cudagraph_gib"},
          "outcome": {"outcome"}, "phase": {"phase"}}
PHASES = {
    "kv_cache_check": {"kv_sizing"}, "no_kv_memory": {"kv_sizing"}, "mamba_blocks_check": {"kv_sizing"},
    "load_model": {"weight_load", "quant_postprocess"}, "profile_run": {"profile_run", "mm_profile"},
    "cudagraph_profiling": {"cudagraph_profile"}, "kv_cache_alloc": {"kv_alloc"},
    "cudagraph_capture": {"cudagraph_capture"}, "sampler_warmup": {"sampler_warmup"},
    "oom_after_profiling": {"cudagraph_profile", "kv_alloc", "compile", "cudagraph_capture", "sampler_warmup"},
    "runtime": {"runtime_prefill", "runtime_sampler", "runtime_other"},
}
COMPILATION = {"cudagraph_capture_sizes", "max_cudagraph_capture_size", "cudagraph_mode", "compilation_mode"}


def is_fair(record, field):
    """False: the source of the record lacks an input of that field."""
    return not UNFAIR.get(field, set()) & set(record.get("unfair") or ())


def version_of(record):
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", record.get("engine_version_effective") or "")
    return tuple(int(part or 0) for part in found.groups()) if found else None


# ---- the command of a record ----

def loose(text):
    """A dict or list that was written down as Python, JSON, or `image 2 audio 0`; None when it is neither."""
    if not isinstance(text, str):
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        pass
    words = text.split()
    if len(words) >= 2 and len(words) % 2 == 0 and all(word.isdigit() for word in words[1::2]):
        return {key: int(number) for key, number in zip(words[::2], words[1::2])}
    return None


def speculative_of(text):
    """`mtp`, `mtp 2 tokens`, `SpeculativeConfig(method='mtp', model=..., num_spec_tokens=3)`, or a dict."""
    given = loose(text)
    if isinstance(given, dict):
        return given
    method = re.search(r"method='?([\w.-]+)", text) or re.search(r"draft_model='\[(\w+)\]'", text) or re.match(r"([\w.-]+)", text)
    tokens = re.search(r"(?:num_spec(?:ulative)?_tokens=|\b)(\d+)(?: tokens|\)|$)", text)
    config = {"method": method.group(1)} if method else {}
    if tokens:
        config["num_speculative_tokens"] = int(tokens.group(1))
    return config


def compilation_of(flags):
    config = {}
    if flags.get("cudagraph_capture_sizes") is not None:
        config["cudagraph_capture_sizes"] = loose(flags["cudagraph_capture_sizes"])
    if flags.get("max_cudagraph_capture_size") is not None:
        config["max_cudagraph_capture_size"] = int(flags["max_cudagraph_capture_size"])
    if flags.get("cudagraph_mode") is not None:
        config["cudagraph_mode"] = str(flags["cudagraph_mode"]).upper()
    if str(flags.get("compilation_mode", "")).lower() == "none":
        config["mode"] = 0
    return config


def given_flags(record):
    """What the user gave, completed by what the engine itself printed as resolved."""
    flags = {key: value for key, value in record["flags"].items() if value is not None}
    for key, value in record.get("resolved", {}).items():
        if value is not None and key not in flags:
            flags[key] = value
    printed = record["measured"].get("max_num_batched_tokens_printed")
    if printed and "max_num_batched_tokens" not in flags:
        flags["max_num_batched_tokens"] = printed
    requested = record["measured"].get("max_num_seqs_requested")
    if requested and "max_num_seqs" not in flags:
        flags["max_num_seqs"] = requested
    return flags


def older_engine_printed(record):
    """The engine before V1 has a sentence of its own for its memory; the facts of a start (tests/evidence) say so."""
    return record.get("first_engine") or any("model weights take" in line for line in record.get("excerpt", ()))


def from_image(record):
    text = " ".join([record["source"], record.get("notes") or "", *record.get("assumed", ())])
    return record.get("image") or re.search(r"\bimage\b|\bGKE\b|kubernetes|docker", text, re.I) is not None


def command_of(record, models, extra=()):
    flags = given_flags(record)
    if older_engine_printed(record) and version_of(record) < (0, 11, 0):
        flags.setdefault("env.VLLM_USE_V1", 0)
    words = [f"{key[4:]}={value}" for key, value in flags.items() if key.startswith("env.")]
    words += ["docker", "run", "vllm/vllm-openai"] if from_image(record) else []
    words += ["vllm", "serve", scorelib.config_path(models, record["config"])]
    for key, value in flags.items():
        name = "--" + key.replace("_", "-")
        if key.startswith("env.") or key in COMPILATION:
            continue
        if key == "speculative_config":
            config = speculative_of(value)
            if config:
                words += [name, json.dumps(config)]
        elif value is True:
            words.append(name)
        elif value is False:
            if key != "enforce_eager":
                words.append("--no-" + name[2:])
        elif isinstance(loose(value), dict):
            words += [name, json.dumps(loose(value))]
        else:
            words += [name, str(value)]
    if compilation_of(flags):
        words += ["--compilation-config", json.dumps(compilation_of(flags))]
    return words + list(extra)


# ---- the device of a record ----

def name_words(text):
    return [word for word in re.split(r"[^a-z0-9.]+", text.lower()) if word]


def total_of(record):
    """GiB the device shows, where the record tells."""
    stated = [float(size) for size in re.findall(r"([0-9]+\.[0-9]+) GiB", record.get("gpu") or "")]
    return record.get("gpu_total_gib") or next((size for size in stated if size > 3), None)


def tells_device(record):
    """False: nothing tells the GPU or its size; a slice alone has none."""
    gpu = record.get("gpu") or ""
    return bool(total_of(record) or gpu and "slice" not in gpu.lower())


def is_whole(record):
    """Does it tell what a plan needs: a release from 0.8 on, a model and a device?"""
    return (version_of(record) or (0,)) >= (0, 8, 0) and bool(record.get("config")) and tells_device(record)


def used_of(record):
    """GiB that others hold, where the engine printed what was free when it began: the rest is its own context, and communicators where
    they come first. None: nothing tells, or no more than those explain."""
    measured = record["measured"]
    free, total = measured.get("startup_free_gib"), measured.get("total_gpu_memory_gib") or total_of(record)
    if free is None or not total:
        return None
    own = OWN_GIB if (record.get("gpu_count") or 1) == 1 else RANK_GIB
    explained = WSL_GIB if "WSL" in (record.get("gpu") or "") else 2 * own
    return total - free - own if total - free > explained else None


class Devices:
    """Finds the device a record means among those the binary knows."""

    def __init__(self, planner):
        self.known = [gpu for gpu in planner.gpus() if not gpu.get("slice") and gpu.get("total_bytes")]

    def find(self, record):
        """-> --gpu word, or None"""
        asked = record.get("gpu") or ""
        return (self.named(record, re.sub(r"\(.*?\)|MIG.*", " ", asked)) or self.named(record, asked)
                or self.nearest(record))

    def named(self, record, asked):
        """The device whose name shares the most words with `asked`, among those of about the right size."""
        words = set(name_words(asked))
        sizes = [int(size) for size in re.findall(r"(\d+) ?GB", asked)]
        best = None
        for gpu in self.known:
            own = {word for word in name_words(gpu["name"]) if word not in ("nvidia", "geforce", "tesla", "gpu")}
            key = {word for word in own if re.search(r"\d", word) and not re.fullmatch(r"\d+gb", word)}
            if not key or not key <= words or ("laptop" in own) != ("laptop" in words):
                continue
            score = len(own & words) - 0.1 * len(own - words)
            if total_of(record):
                score -= 20 * abs(gpu["total_bytes"] / GIB / total_of(record) - 1)
            elif sizes:
                score -= 10 * min(abs(gpu["total_bytes"] / 1e9 / size - 1) for size in sizes)
            if best is None or score > best[0]:
                best = (score, gpu["name"])
        return best[1] if best else None

    def nearest(self, record):
        """A card of the size that the record gives, when it names none."""
        size = total_of(record)
        found = re.search(r"(\d+) ?GB", record.get("gpu") or "")
        if not size and not found:
            return None
        size = size or int(found.group(1)) * 1e9 / GIB
        cards = [gpu for gpu in self.known if not re.search(r"Orin|Thor|GB10|Laptop", gpu["name"])]
        return min(cards, key=lambda gpu: abs(gpu["total_bytes"] / GIB - size))["name"]


def options_of(record, devices, told=True):
    """None when nothing tells the device or its size. `told`: what other processes hold is given, where the record shows it."""
    name, total = devices.find(record), total_of(record)
    mig = re.search(r"MIG\s+(\d+g\.\d+gb)", record.get("gpu") or "")
    if not name or not tells_device(record):
        return None
    word = f"{name} MIG {mig.group(1)}" if mig else f"{name}x{record.get('gpu_count') or 1}"
    version = record["engine_version_effective"]
    used = used_of(record) if told else None
    return (["--vllm", version, "--gpu", word] + (["--gpu-total", f"{total}GiB"] if total else [])
            + (["--gpu-used", f"{used:.2f}GiB"] if used else []))


# ---- comparing ----

def source_of(record):
    """Who measured: a repository, or one issue, pull request, page or file."""
    text = re.split(r"[#\s]", record["source"].split(" (index id")[-1] if "index id" in record["source"]
                    else record["source"])[0].rstrip("),")
    found = re.match(r"github\.com/[^/]+/[^/:]+(?:/(?:issues|pull)/\d+)?", text)
    if "index id" in record["source"]:
        return "index " + re.search(r"index id (\d+)", record["source"]).group(1)
    return found.group(0) if found else text


def ledger_gap(record):
    """GiB by which the printed terms miss the printed budget, None where a term is not printed."""
    measured = record["measured"]

    def of(*names):
        return next((measured[name] for name in names if measured.get(name) is not None), None)

    budget, kv = measured.get("budget_gib"), measured.get("available_kv_gib")
    rest = [of("weights_gib", "model_load_gib"), measured.get("non_torch_gib")]
    if measured.get("weights_plus_non_torch_gib") is not None:
        rest = [measured["weights_plus_non_torch_gib"]]
    if measured.get("non_kv_total_gib") is not None:
        rest, measured = [measured["non_kv_total_gib"]], {**measured, "activation_peak_gib": 0}
    terms = [kv, measured.get("activation_peak_gib"), *rest]
    if budget is None or any(term is None for term in terms):
        return None
    estimate = of("cudagraph_pool_estimated_gib", "cudagraph_estimate_gib") or 0
    gaps = (budget - sum(terms), budget - sum(terms) - estimate)  # the estimate enters where the release applies it
    return min(gaps, key=abs)


class Range:
    """One printed range over all records: how often the truth is inside, and how wide it is."""

    def __init__(self, name):
        self.name = name
        self.seen = []  # (inside, share of the device, record id, text)

    def add(self, low, high, value, total, who, rounding=0.005):
        inside = low - rounding <= value <= high + rounding
        self.seen.append((inside, (high - low) / total, who, f"{low:.2f} to {high:.2f} / {value}"))

    def coverage(self):
        return sum(1 for seen in self.seen if seen[0]) / len(self.seen) if self.seen else 1.0

    def width(self):
        widths = sorted(seen[1] for seen in self.seen)
        return widths[len(widths) // 2] if widths else 0.0


def part(plan, owner):
    return next((one for one in plan.get("parts", []) if one["owner"] == owner), None)


def foresees_failure(plan):
    """fails, refused, or likely fails: of a tight plan the phase it names is past its limit at the middle of its range."""
    if plan["verdict"] != "tight":
        return plan["verdict"] in ("fails", "refused")
    if plan.get("likely"):
        return plan["likely"] == "fails"
    return any(one["phase"] == plan["phase"] and not one["ok"] for one in plan["phases"])


class Score:
    def __init__(self, planner, devices, models, told=True):
        self.planner, self.devices, self.models, self.told = planner, devices, models, told
        names = ("weights", KV, "available KV", "tokens, memory given", "tokens", "graphs", "graph estimate", "activation",
                 "outside torch")
        self.fields = {name: scorelib.Field(name) for name in names}
        self.ranges = {name: Range(name) for name in ("available KV", "weights", "activation", "outside torch", "graphs",
                                                      "graph estimate")}
        self.outcomes = []  # (right, id, text, failed, foreseen)
        self.chances = []  # (probability of a start, whether it started)
        self.skipped, self.lines, self.open_ledgers, self.open_plans = [], [], [], []
        self.ledgers = 0
        self.sources = {}
        self.planned = {}  # id -> (record, plan)
        self.refused = []  # (id, why): refused before memory though it ran

    def measure(self, record):
        version = version_of(record)
        gap = ledger_gap(record)
        if gap is not None:
            self.ledgers += 1
            if abs(gap) > 0.03:
                self.open_ledgers.append((record["id"], gap))
        if not version or version < (0, 8, 0) or not record.get("config"):
            self.skipped.append((record["id"], "version or config not known, or before 0.8"))
            return
        options = options_of(record, self.devices, self.told)
        if not options:
            self.skipped.append((record["id"], "device not known"))
            return
        self.sources[record["id"]] = source_of(record)
        plan, why = self.as_taken(record, options, command_of(record, self.models))
        if not plan:
            self.outcomes.append((False, record["id"], f"no plan: {why}", record["outcome"] != "ok", False))
            return
        self.planned[record["id"]] = (record, plan)
        self.compare(record, options, plan)

    def as_taken(self, record, options, command):
        """The engine took the command of every record, so one that is refused before memory is not the one that ran: it was put together
        from what a log prints (a drafter without its model, a name that the log has and the parser has not), or the refusal is wrong. It is
        counted; what the plan says of memory is there all the same and is what is judged."""
        plan, why = self.planner.plan(options, command)
        if plan and plan["phase"] == "arguments":
            self.refused.append((record["id"], plan["why"]))
            later = plan["phases"][1:]
            fails = next((p for p in later if not p["ok"] and not p["tight"]), None)
            doubt = next((p for p in later if p["tight"]), None)
            plan = {**plan, "phases": later, "verdict": "fails" if fails else "tight" if doubt else "fits",
                    "likely": "fails" if fails or (doubt and not doubt["ok"]) else "starts", "phase": (fails or doubt or {}).get("phase"), "probability": None}
        return plan, why

    def compare(self, record, options, plan):
        measured, who = record["measured"], record["id"]
        total = plan["gpu"]["total_bytes"] / GIB
        texts = []

        def add(field, planned, key, scale=None, rounding=0.005, small=0.0):
            if planned is None or measured.get(key) is None or not is_fair(record, field):
                return
            value = measured[key]
            off = abs(planned - value)
            error = 0.0 if off <= small else max(0.0, off - rounding) / (scale or max(abs(value), 1e-9))
            text = f"{planned:.2f} / {value}"
            self.fields[field].add(error, who, text)
            texts.append(f"{field} {text}")

        def add_range(name, field, rows, key, kept=0):
            if not rows or measured.get(key) is None or not is_fair(record, field):
                return
            low = sum(row.get("low", row["bytes"]) for row in rows) - kept
            high = sum(row.get("high", row["bytes"]) for row in rows) - kept
            self.ranges[name].add(low / GIB, high / GIB, measured[key], total, who)

        load = "model_load_gib" if measured.get("model_load_gib") is not None else "weights_gib"
        add("weights", plan["weights_bytes"] / GIB, load)
        add_range("weights", "weights", scorelib.rows(plan, "weight_load", ("weights",)), load)
        available = available_of(plan)
        if available is not None:
            add(KV, available / GIB, "available_kv_gib", total)
            add("available KV", available / GIB, "available_kv_gib")
            non_kv = part(plan, "non_kv")
            if non_kv and measured.get("available_kv_gib") is not None and is_fair(record, KV):
                budget = plan["budget_bytes"]
                self.ranges["available KV"].add((budget - non_kv["high"]) / GIB, (budget - non_kv["low"]) / GIB,
                                                measured["available_kv_gib"], total, who)
        self.closes(record, plan)
        self.tokens(record, options, plan, texts)
        kept = 0
        if version_of(record) >= (0, 27, 0):  # since then the engine prints what it gives back only
            kept = scorelib.hold(plan, "kv_alloc", "kept by the profile run") or 0
        for field, phase, owners, key in (
                ("graphs", "cudagraph_capture", ("CUDA graphs",), "cudagraph_gib"),
                ("graph estimate", "kv_sizing", ("graph estimate",), "cudagraph_estimate_gib"),
                ("activation", "kv_sizing", ("activation peak",), "activation_peak_gib"),
                ("outside torch", "kv_sizing", ("outside PyTorch", "communicators"), "non_torch_gib")):
            found = scorelib.rows(plan, phase, owners)
            less = kept if field == "activation" else 0
            if field == "activation" and version_of(record) >= (0, 27, 0):  # ... with the graph estimate in it
                less -= scorelib.hold(plan, "kv_sizing", "graph estimate") or 0
            if field == "graphs":  # what capture prints is less than what it takes where a warm-up left segments behind
                less = (part(plan, "graphs_not_printed") or {"bytes": 0})["bytes"]
            planned = (sum(row["bytes"] for row in found) - less) / GIB if found else None
            if field == "graph estimate" and measured.get(key) is None and \
                    measured.get("cudagraph_pool_estimated_gib") is not None:
                key = "cudagraph_pool_estimated_gib"
            add(field, planned, key, small=SMALL_GIB)
            add_range(field, field, found, key, less)
        self.outcome(record, plan, texts)
        self.lines.append(f"{who} {record['engine_version_effective']} {record['config']} on {plan['gpu']['name']} "
                          f"x{plan['gpu']['count']}: " + "; ".join(texts))

    def closes(self, record, plan):
        """The plan's own ledger: budget less the rows of kv_sizing is what it calls available."""
        found = [row for one in plan["phases"] if one["phase"] == "kv_sizing" for row in one["holds"]
                 if row["owner"] not in ("one request of the longest length", "null block and states")]
        available = available_of(plan)
        if found and available is not None and plan.get("budget_bytes"):
            gap = plan["budget_bytes"] - sum(row["bytes"] for row in found) - available
            if available > 0 and abs(gap) > 1:
                self.open_plans.append((record["id"], gap / GIB))

    def tokens(self, record, options, plan, texts):
        measured, who = record["measured"], record["id"]
        key = "kv_cache_tokens" if measured.get("kv_cache_tokens") else "gpu_blocks"
        value = measured.get(key)
        if not value or not is_fair(record, "tokens"):
            return
        field = "tokens" if key == "kv_cache_tokens" else "blocks"

        def planned_of(one):
            return one["kv"][field] if one else None

        error = abs((planned_of(plan) or 0) - value) / value
        self.fields["tokens"].add(error, who, f"{planned_of(plan)} / {value}")
        logged = measured.get("available_kv_gib")
        if not logged or logged <= 0 or "num_gpu_blocks_override" in given_flags(record):
            return
        best = None
        for gib in (logged, logged - 0.005, logged + 0.005):
            extra = ["--kv-cache-memory-bytes", str(int(gib * GIB))]
            again, _ = self.planner.plan(options, command_of(record, self.models, extra))
            counted = planned_of(again)
            if counted is None:
                continue
            error = abs(counted - value) / value
            if best is None:
                best, low, high = (error, counted), counted, counted
                if error <= 0.001:
                    break
            low, high = min(low, counted), max(high, counted)
            if low <= value <= high:
                best = (0.0, best[1])
        if best:
            self.fields["tokens, memory given"].add(best[0], who, f"{best[1]} / {value}")
            texts.append(f"tokens given {best[1]} / {value}")

    def outcome(self, record, plan, texts):
        if not is_fair(record, "outcome"):
            return
        verdict, phase, wanted = plan["verdict"], plan.get("phase"), record["outcome"]
        foreseen = foresees_failure(plan)
        if wanted == "ok":
            right = not foreseen and verdict != "unknown"
        else:
            named = phase in PHASES.get(wanted, {wanted, "init_" + wanted})
            right = verdict != "fits" and (named or not is_fair(record, "phase"))
        text = f"{verdict}{' (likely fails)' if verdict == 'tight' and foreseen else ''}{' ' + phase if phase else ''} / {wanted}"
        self.outcomes.append((right, record["id"], text, wanted != "ok", foreseen))
        if plan.get("probability") is not None:
            self.chances.append((plan["probability"], wanted == "ok"))
        texts.append(f"outcome {text}")

    def share(self, what):
        """starts, right, recall, precision, wrong_fits: each (hits, of)"""
        failed = [one for one in self.outcomes if one[3]]
        foreseen = [one for one in self.outcomes if one[4]]
        said = [one for one in self.outcomes if one[2].startswith("fits")]
        return {"starts": (sum(1 for one in said if not one[3]), len(said)),
                "right": (sum(1 for one in self.outcomes if one[0]), len(self.outcomes)),
                "recall": (sum(1 for one in failed if one[4]), len(failed)),
                "precision": (sum(1 for one in foreseen if one[3]), len(foreseen)),
                "wrong_fits": (sum(1 for one in failed if one[2].startswith("fits")),
                               sum(1 for one in self.outcomes if one[2].startswith("fits")))}[what]


def available_of(plan):
    """Bytes left for the cache, negative where the engine prints a negative figure."""
    available, non_kv = plan["kv"]["available_bytes"], part(plan, "non_kv")
    if not available and non_kv and non_kv["bytes"] and plan.get("budget_bytes"):
        return plan["budget_bytes"] - non_kv["bytes"]
    return available


def ratio(pair):
    return pair[0] / pair[1] if pair[1] else 1.0


def goals_of(score):
    """name -> (reached, wanted, met)"""
    goals = {}
    for name, limit, wanted in GOALS:
        reached = score.fields[name].share(limit)
        goals[f"{name} within {100 * limit:g} %"] = (reached, wanted, reached >= wanted)
    for name, what, wanted in (("recall", "failures, recall", RECALL_GOAL), ("precision", "failures, precision", PRECISION_GOAL),
                               ("starts", "`fits` is right", STARTS_GOAL)):
        reached = ratio(score.share(name))
        goals[what] = (reached, wanted, reached >= wanted)
    kv = score.ranges["available KV"]
    goals["truth inside the KV range"] = (kv.coverage(), COVERAGE_GOAL, kv.coverage() >= COVERAGE_GOAL)
    goals["median width of it / device"] = (kv.width(), WIDTH_GOAL, kv.width() <= WIDTH_GOAL)
    return goals


# ---- constants that were fitted, and how they do on sources they were not fitted on ----

def implied(constant, record, plan):
    """What the constant would have to be for this record, None where the record does not tell. `field` is a figure that
    the constant enters once, additively (`each`: so many times as the plan has it in `part`); `where` restricts it to the records it stands for."""
    measured = dict(record["measured"])
    if measured.get("startup_free_gib") and measured.get("total_gpu_memory_gib"):
        measured["held_at_start_gib"] = measured["total_gpu_memory_gib"] - measured["startup_free_gib"]
    version = version_of(record)
    where = constant.get("where", {})
    gpu, setup = plan["gpu"], plan["setup"]
    capability = round(10 * gpu.get("compute_capability", 0))
    if not where.get("since", "0") == "0" and version < tuple(map(int, where["since"].split("."))):
        return None
    if where.get("before") and version >= tuple(map(int, where["before"].split("."))):
        return None
    if where.get("capability") and capability not in where["capability"]:
        return None
    ranks = setup["tensor_parallel_size"] * setup["pipeline_parallel_size"]
    if where.get("ranks") and not where["ranks"][0] <= ranks <= where["ranks"][1]:
        return None
    if "eager" in where and setup["enforce_eager"] != where["eager"]:
        return None
    if "first_engine" in where and (older_engine_printed(record) and version < (0, 11, 0)) != where["first_engine"]:
        return None
    if measured.get(constant["field"]) is None or gpu.get("unified") or "GB10" in gpu["name"]:
        return None
    if constant.get("scale"):
        whole, less = part(plan, constant["part"]), part(plan, constant["less"])
        if not whole or not whole["bytes"]:
            return None
        return (measured[constant["field"]] + (less["bytes"] if less else 0) / GIB) / (whole["bytes"] / GIB)
    found = scorelib.rows(plan, constant["phase"], tuple(constant["rows"]))
    own = part(plan, constant["part"])
    if not found or not own:
        return None
    whole = own["bytes"] / GIB + measured[constant["field"]] - sum(row["bytes"] for row in found) / GIB
    return whole / max(1, round(own["bytes"] / GIB / constant["gib"])) if constant.get("each") else whole


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def folds(score, constants):
    """For each constant: its value, that fitted again on all records (median), and the errors on sources left out."""
    lines = []
    for constant in constants:
        if "field" not in constant:
            lines.append(f"constant: {constant['name']}: fitted on {', '.join(constant['fitted_on'])}")
            continue
        values = [(score.sources[who], who, implied(constant, *both)) for who, both in score.planned.items()]
        values = [value for value in values if value[2] is not None]
        if not values:
            lines.append(f"constant: {constant['name']}: no record tells it")
            continue
        errors, inside = [], 0
        for source in {value[0] for value in values}:
            others = [value[2] for value in values if value[0] != source]
            for value in (value for value in values if value[0] == source):
                if others:
                    errors.append(abs(value[2] - median(others)))
                    small = 0.25 if constant.get("scale") else max(SMALL_GIB, 0.1 * abs(value[2]))
                    inside += abs(value[2] - median(others)) <= small
        unit = "" if constant.get("scale") else " GiB"
        own = "measured / planned" if constant.get("scale") else f"{constant['gib']:g} GiB"
        text = f"constant: {constant['name']}: {own}; implied by {len(values)} records of " \
               f"{len({value[0] for value in values})} sources: median {median([value[2] for value in values]):.2f}, " \
               f"{min(value[2] for value in values):.2f} to {max(value[2] for value in values):.2f}"
        if errors:
            bound = "0.25" if constant.get("scale") else f"max(10 %, {SMALL_GIB} GiB)"
            text += f"; one source left out: median error {median(errors):.2f}, worst {max(errors):.2f}{unit}, " \
                    f"{inside} of {len(errors)} within {bound}"
        lines.append(text)
    return lines


def by_source(score, limit=0.01):
    """Available KV by source: a source whose records all miss hides behind one whose records all hit."""
    table = {}
    for error, who, _ in score.fields[KV].errors:
        table.setdefault(score.sources[who], []).append(error)
    hit = [sum(1 for error in errors if error <= limit) / len(errors) for errors in table.values()]
    return f"available KV within {100 * limit:g} %, every source counted once: " \
           f"{100 * sum(hit) / len(hit):.0f} % of {len(hit)} sources" if hit else "no available KV"


# ---- printing ----

def as_json(score, goals):
    fields = {name: {"records": len(field.errors), **{f"within_{limit:g}": field.within(limit) for limit in LIMITS}}
              for name, field in score.fields.items()}
    ranges = {name: {"records": len(one.seen), "inside": sum(1 for seen in one.seen if seen[0]), "median_width": one.width()}
              for name, one in score.ranges.items()}
    counts = {name: score.share(name) for name in ("starts", "right", "recall", "precision", "wrong_fits")}
    return {"fields": fields, "ranges": ranges, "outcomes": len(score.outcomes), "outcomes_right": counts["right"][0],
            "failures": counts["recall"][1], "failures_foreseen": counts["recall"][0],
            "failures_said": counts["precision"][1], "wrong_fits": counts["wrong_fits"][0],
            "false_alarms": counts["precision"][1] - counts["precision"][0],
            "starts_said": counts["starts"][1], "starts_right": counts["starts"][0], "starts_right_share": ratio(counts["starts"]),
            "probability": scorelib.stated((max(p, 1 - p), (p >= 0.5) == started) for p, started in score.chances),
            "met": {name: goal[2] for name, goal in goals.items()}, "skipped": len(score.skipped),
            "ledgers": score.ledgers, "ledgers_open": len(score.open_ledgers), "plans_open": len(score.open_plans),
            "refused_though_run": len(score.refused), "ok": all(goal[2] for goal in goals.values())}


def print_misses(score):
    limits = {name: limit for name, limit, _ in reversed(GOALS)}
    for name, field in score.fields.items():
        for error, who, text in field.misses(limits.get(name, 0.10)):
            print(f"miss: {name}: {who} {text} ({100 * error:.1f} %)")
    for inside, _, who, text in score.ranges["available KV"].seen:
        if not inside:
            print(f"miss: outside the KV range: {who} {text}")
    for ok, who, text, _, _ in score.outcomes:
        if not ok:
            print(f"miss: outcome: {who} {text}")
    for who, gap in score.open_ledgers:
        print(f"note: the printed ledger of {who} misses its budget by {gap:+.2f} GiB")
    for who, gap in score.open_plans:
        print(f"note: the plan of {who} does not add up: {gap:+.2f} GiB")


def print_table(score):
    print(scorelib.table(score.fields.values(), LIMITS))
    print(f"{'range':<24}{'records':>8}{'inside':>10}{'share':>10}{'median width / device':>24}")
    for one in score.ranges.values():
        inside = sum(1 for seen in one.seen if seen[0])
        print(f"{one.name:<24}{len(one.seen):>8}{inside:>10}{100 * one.coverage():>8.0f} %{100 * one.width():>22.2f} %")
    right, recall = score.share("right"), score.share("recall")
    precision, wrong = score.share("precision"), score.share("wrong_fits")
    starts = score.share("starts")
    print(f"`fits` said {starts[1]} times, right in {starts[0]} ({100 * ratio(starts):.1f} %)")
    print(f"outcome and phase {right[0]} of {right[1]}; failures foreseen {recall[0]} of {recall[1]}, "
          f"{precision[0]} of {precision[1]} said are true; `fits` said wrongly {wrong[0]} times in {wrong[1]}; "
          f"{len(score.skipped)} records left out")
    for who, why in score.refused:
        print(f"refused before memory though it ran: {who}: {why}")
    print(f"printed ledgers that close: {score.ledgers - len(score.open_ledgers)} of {score.ledgers}; "
          f"plans that do: {len(score.planned) - len(score.open_plans)} of {len(score.planned)}")


def main():
    parser = argparse.ArgumentParser(description="score plans against measured starts")
    parser.add_argument("binary")
    parser.add_argument("data", nargs="+")
    parser.add_argument("--models")
    parser.add_argument("--only", help="records whose id holds this")
    parser.add_argument("--set", help="records of this set")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--all", action="store_true", help="every record, not only the misses")
    parser.add_argument("--folds", action="store_true", help="fitted constants on sources they were not fitted on")
    args = parser.parse_args()

    planner = scorelib.Planner(args.binary)
    devices = Devices(planner)
    models = os.pathsep.join(dict.fromkeys(scorelib.models_beside(path, args.models) for path in args.data))
    score, sets = Score(planner, devices, models), {}
    for record in (record for path in args.data for record in scorelib.read_lines(path)):
        if args.only and args.only not in record["id"] or args.set and args.set != record.get("set"):
            continue
        score.measure(record)
        if record.get("set"):
            sets.setdefault(record["set"], Score(planner, devices, models)).measure(record)

    goals = goals_of(score)
    ok = all(met for _, _, met in goals.values())
    if args.json:
        print(json.dumps({**as_json(score, goals), "sets": {name: as_json(one, goals_of(one)) for name, one in sets.items()}}))
        return 0 if ok else 1
    if args.all:
        print("\n".join(score.lines))
    print_misses(score)
    print_table(score)
    print(by_source(score))
    if args.folds:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fitted.json")
        with open(path, encoding="utf-8") as file:
            print("\n".join(folds(score, json.load(file))))
    print("; ".join(f"{name} {100 * reached:.1f} % (goal {100 * wanted:.0f})" for name, (reached, wanted, _) in goals.items())
          + ("; goals met" if ok else "; goals not met"))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
