#!/usr/bin/env python3
"""Scores plans against measured starts (truth/startups.jsonl, one JSON object a line): weights, available KV memory,
tokens, graph memory, activation peak, outcome and phase.

    tools/score_truth.py BINARY STARTUPS.jsonl [--models DIR] [--json] [--all] [--only ID]

Every record is planned through the command line from what its `flags`, `resolved` and `gpu` say. Records of an effective
engine version before 0.8, without one, or without a model config are left out. Numbers that an engine printed with two
decimals are taken as rounded: half of the last digit is forgiven. Tokens are also planned with the logged available
memory (--kv-cache-memory-bytes), over all the values that print as that figure.

Exit 0 when the goals hold (weights within 1 % for 95 %; tokens within 0.1 % for 98 % given the logged memory; available
KV within 3 % of the device for 85 %; outcome and phase right for 90 %), 1 when not, 2 on wrong usage.
"""

import argparse
import ast
import json
import os
import re
import sys

import scorelib

GIB = scorelib.GIB
LIMITS = (0.001, 0.01, 0.03, 0.10)
GOALS = {"weights": (0.01, 0.95), "tokens, memory given": (0.001, 0.98), "available KV / device": (0.03, 0.85)}
OUTCOME_GOAL = 0.90
PHASES = {
    "kv_cache_check": {"kv_sizing"}, "no_kv_memory": {"kv_sizing"}, "mamba_blocks_check": {"kv_sizing"},
    "load_model": {"weight_load", "quant_postprocess"}, "profile_run": {"profile_run", "mm_profile"},
    "cudagraph_profiling": {"cudagraph_profile"}, "kv_cache_alloc": {"kv_alloc"},
    "cudagraph_capture": {"cudagraph_capture"}, "sampler_warmup": {"sampler_warmup"},
    "oom_after_profiling": {"cudagraph_profile", "kv_alloc", "compile", "cudagraph_capture", "sampler_warmup"},
    "runtime": {"runtime_prefill", "runtime_sampler", "runtime_other"},
}
COMPILATION = {"cudagraph_capture_sizes", "max_cudagraph_capture_size", "cudagraph_mode", "compilation_mode"}


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
    method = re.search(r"method='?([\w.-]+)", text) or re.match(r"([\w.-]+)", text)
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


def command_of(record, models, extra=()):
    flags = given_flags(record)
    words = [f"{key[4:]}={value}" for key, value in flags.items() if key.startswith("env.")]
    words += ["vllm", "serve", os.path.join(models, record["config"])]
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


def options_of(record, devices):
    """None when nothing tells the device or its size."""
    name, total = devices.find(record), total_of(record)
    mig = re.search(r"MIG\s+(\d+g\.\d+gb)", record.get("gpu") or "")
    if not name or ("slice" in (record.get("gpu") or "").lower() and not total):
        return None
    word = f"{name} MIG {mig.group(1)}" if mig else f"{name}x{record.get('gpu_count') or 1}"
    version = record["engine_version_effective"]
    return ["--vllm", version, "--gpu", word] + (["--gpu-total", f"{total}GiB"] if total else [])


# ---- comparing ----

class Score:
    def __init__(self, planner, devices, models):
        self.planner, self.devices, self.models = planner, devices, models
        names = ("weights", "available KV / device", "available KV", "tokens, memory given", "tokens", "graphs",
                 "graph estimate", "activation", "outside torch")
        self.fields = {name: scorelib.Field(name) for name in names}
        self.outcomes = []  # (right, id, text)
        self.skipped = []
        self.lines = []

    def measure(self, record):
        version = version_of(record)
        if not version or version < (0, 8, 0) or not record.get("config"):
            self.skipped.append((record["id"], "version or config not known, or before 0.8"))
            return
        options = options_of(record, self.devices)
        if not options:
            self.skipped.append((record["id"], "device not known"))
            return
        plan, why = self.planner.plan(options, command_of(record, self.models))
        if not plan:
            self.outcomes.append((False, record["id"], f"no plan: {why}"))
            return
        self.compare(record, options, plan)

    def compare(self, record, options, plan):
        measured, who = record["measured"], record["id"]
        total = plan["gpu"]["total_bytes"] / GIB
        texts = []

        def add(field, planned, key, scale=None, rounding=0.005):
            if planned is None or measured.get(key) is None:
                return
            value = measured[key]
            error = max(0.0, abs(planned - value) - rounding) / (scale or max(abs(value), 1e-9))
            text = f"{planned:.2f} / {value}"
            self.fields[field].add(error, who, text)
            texts.append(f"{field} {text}")

        load = "model_load_gib" if measured.get("model_load_gib") is not None else "weights_gib"
        add("weights", plan["weights_bytes"] / GIB, load)
        available = plan["kv"]["available_bytes"]
        if available is not None:
            add("available KV / device", available / GIB, "available_kv_gib", total)
            add("available KV", available / GIB, "available_kv_gib")
        self.tokens(record, options, plan, texts)
        for field, phase, owner, key in (("graphs", "cudagraph_capture", "CUDA graphs", "cudagraph_gib"),
                                         ("graph estimate", "kv_sizing", "graph estimate", "cudagraph_estimate_gib"),
                                         ("activation", "kv_sizing", "activation peak", "activation_peak_gib"),
                                         ("outside torch", "kv_sizing", "outside PyTorch", "non_torch_gib")):
            planned = scorelib.hold(plan, phase, owner)
            if field == "activation" and planned and version_of(record) >= (0, 27, 0):
                # since then the engine prints what it gives back only
                planned -= scorelib.hold(plan, "kv_alloc", "kept by the profile run") or 0
            add(field, None if planned is None else planned / GIB, key)
        self.outcome(record, plan, texts)
        self.lines.append(f"{who} {record['engine_version_effective']} {record['config']} on {plan['gpu']['name']} "
                          f"x{plan['gpu']['count']}: " + "; ".join(texts))

    def tokens(self, record, options, plan, texts):
        measured, who = record["measured"], record["id"]
        key = "kv_cache_tokens" if measured.get("kv_cache_tokens") else "gpu_blocks"
        value = measured.get(key)
        if not value:
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
        verdict, phase, wanted = plan["verdict"], plan.get("phase"), record["outcome"]
        if wanted == "ok":
            right = verdict in ("fits", "tight")
        else:
            right = verdict != "fits" and phase in PHASES.get(wanted, {wanted})
        text = f"{verdict}{' ' + phase if phase else ''} / {wanted}"
        self.outcomes.append((right, record["id"], text))
        texts.append(f"outcome {text}")


def main():
    parser = argparse.ArgumentParser(description="score plans against measured starts")
    parser.add_argument("binary")
    parser.add_argument("data")
    parser.add_argument("--models")
    parser.add_argument("--only", help="records whose id holds this")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--all", action="store_true", help="every record, not only the misses")
    args = parser.parse_args()

    planner = scorelib.Planner(args.binary)
    score = Score(planner, Devices(planner), scorelib.models_beside(args.data, args.models))
    for record in scorelib.read_lines(args.data):
        if not args.only or args.only in record["id"]:
            score.measure(record)

    right = sum(1 for ok, _, _ in score.outcomes if ok)
    share = right / len(score.outcomes) if score.outcomes else 1.0
    met = {name: score.fields[name].share(limit) >= goal for name, (limit, goal) in GOALS.items()}
    met["outcome and phase"] = share >= OUTCOME_GOAL
    if args.json:
        fields = {name: {"records": len(field.errors), **{f"within_{limit:g}": field.within(limit) for limit in LIMITS}}
                  for name, field in score.fields.items()}
        print(json.dumps({"fields": fields, "outcomes": len(score.outcomes), "outcomes_right": right, "met": met,
                          "skipped": len(score.skipped), "ok": all(met.values())}))
        return 0 if all(met.values()) else 1

    if args.all:
        print("\n".join(score.lines))
    for name, field in score.fields.items():
        for error, who, text in field.misses(GOALS.get(name, (0.10, 0))[0]):
            print(f"miss: {name}: {who} {text} ({100 * error:.1f} %)")
    for ok, who, text in score.outcomes:
        if not ok:
            print(f"miss: outcome: {who} {text}")
    print(scorelib.table(score.fields.values(), LIMITS))
    print(f"{'outcome and phase':<24}{len(score.outcomes):>8}{right:>10} right; {len(score.skipped)} records left out")
    parts = [f"{name} {100 * score.fields[name].share(limit):.0f} % (goal {100 * goal:.0f})"
             for name, (limit, goal) in GOALS.items()]
    parts.append(f"outcome and phase {100 * share:.0f} % (goal {100 * OUTCOME_GOAL:.0f})")
    print("; ".join(parts) + ("; goals met" if all(met.values()) else "; goals not met"))
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
