#!/usr/bin/env python3
"""Scores the geometry of plans against the engine's own code (golden/geometry.jsonl, one JSON object a line).

    tools/score_geometry.py BINARY GEOMETRY.jsonl [--models DIR] [--json] [--only TEXT]

Three kinds of line, each planned through the command line:
  engine-VERSION        a whole configuration of a model: blocks, tokens, concurrency, groups and their pages, bytes a
                        request needs, parameter bytes of every pipeline stage, attention backend, or the refusal
  kv-utils-by-version   the engine's cache arithmetic alone, on layers given with --kv-layers: blocks, tokens,
                        concurrency, groups
  attn-backend-VERSION  the choice of an attention backend for one head size, type and device

A line counts when every figure in it is equal. Exit 0 when all do, 1 when
not; 2 on wrong usage.
"""

import argparse
import concurrent.futures
import json
import os
import sys
import tempfile
import threading

import scorelib

DEVICE_BYTES = 80 * scorelib.GIB  # what the engine was shown when a line does not say
WRITING = threading.Lock()
KINDS = {
    "FullAttentionSpec": "full_attention", "SlidingWindowSpec": "sliding_window",
    "ChunkedLocalAttentionSpec": "chunked_local_attention", "MLAAttentionSpec": "mla_attention",
    "SlidingWindowMLASpec": "sliding_window_mla", "MambaSpec": "mamba", "CrossAttentionSpec": "cross_attention",
}


# ---- words of the command ----

def device_words(inputs):
    capability = inputs.get("cc", [9, 0])
    words = ["--gpu-total", str(inputs.get("device_mem", DEVICE_BYTES)), "--gpu-cc", ".".join(map(str, capability))]
    # The engine has other batch defaults for a card called A100; the one behind these lines is, at 8.0.
    name = inputs.get("gpu_name") or ("A100-SXM4-80GB" if capability == [8, 0] and "device_mem" not in inputs else None)
    return words + (["--gpu", name] if name else [])


def flag_words(name, value):
    flag = "--" + name.replace("_", "-")
    if value is True:
        return [flag]
    if value is False:
        return ["--no-" + name.replace("_", "-")]
    if isinstance(value, (dict, list)):
        return [flag, json.dumps(value)]
    return [flag, str(value)]


def engine_words(inputs, model_dir):
    words = ["vllm", "serve", model_dir, "--kv-cache-memory-bytes", str(inputs["available"])]
    for key, flag in (("tp", "tensor_parallel_size"), ("pp", "pipeline_parallel_size"), ("dp", "data_parallel_size"),
                      ("max_model_len", "max_model_len"), ("kv_dtype", "kv_cache_dtype"), ("block_size", "block_size"),
                      ("dtype", "dtype")):
        if inputs.get(key) is not None:
            words += flag_words(flag, inputs[key])
    if inputs.get("ep"):
        words.append("--enable-expert-parallel")
    for key, value in (inputs.get("extra") or {}).items():
        words += flag_words(key, value)
    return words


# ---- comparing ----

class Line:
    """One line: what was compared, and where the plan differs."""

    def __init__(self, record):
        self.record, self.fields, self.misses = record, {}, []

    def same(self, field, ours, theirs):
        equal = ours == theirs
        self.fields[field] = self.fields.get(field, True) and equal
        if not equal:
            self.misses.append(f"{field}: {short(ours)} instead of {short(theirs)}")

    def failed(self, why):
        self.fields["planned"] = False
        self.misses.append(str(why))


def short(value):
    text = json.dumps(value)
    return text if len(text) <= 160 else text[:157] + "..."


def version_tuple(text):
    return tuple(int(part) for part in text.lstrip("v").split(".")[:3] if part.isdigit())


def plan_groups(kv):
    return [[group["kind"], group["layers"], group["block_tokens"], group["page_bytes"]] for group in kv["groups"]]


def golden_groups(kv, ours):
    """Groups in the plan's words. A group of layers of several page sizes has no kind of its own there."""
    groups = []
    for index, group in enumerate(kv["groups"]):
        kind = KINDS.get(group["type"])
        if kind is None and index < len(ours):
            kind = ours[index][0]
        groups.append([kind, group["layers"], group["block_size"], group["page_size_bytes"]])
    return groups


def figures(line, kv, ours):
    line.same("blocks", ours["blocks"], kv["num_blocks"])
    line.same("tokens", ours["tokens"], kv["tokens"])
    line.same("concurrency", ours["max_concurrency"], kv["max_concurrency"])
    groups = plan_groups(ours)
    line.same("groups", groups, golden_groups(kv, groups))


def refusal_of(plan):
    for phase in plan.get("phases", []):
        if phase["phase"] == "kv_sizing" and phase.get("message"):
            return phase["message"]
    return None


def is_state_backend(name):
    return name.endswith("_INDEXER") or name in ("GDN_ATTN", "MAMBA1_ATTN", "MAMBA2_ATTN", "LINEAR_ATTN",
                                                 "SHORT_CONV_ATTN", "KDA_ATTN")


def engine_line(planner, models, record):
    line, inputs = Line(record), record["inputs"]
    model_dir = scorelib.config_path(models, inputs["model"])
    plan, why = planner.plan(device_words(inputs) + ["--vllm", record["vllm"]], engine_words(inputs, model_dir))
    if plan is None:
        line.failed(why)
        return line
    kv, ours = record.get("kv") or {}, plan["kv"]
    if "error" in kv:
        line.same("refusal", refusal_of(plan), kv["message"])
    elif kv:
        figures(line, kv, ours)
        line.same("page bytes", ours["block_bytes"], max(kv["pool_bytes_per_block"]))
        line.same("needed bytes", ours["needed_bytes"], kv["needed_bytes_for_max_model_len"])
    weights = record.get("weights_per_pp_rank") or []
    if weights and all("param_bytes" in rank for rank in weights):
        line.same("parameter bytes", plan["weights"]["param_bytes"], [rank["param_bytes"] for rank in weights])
    theirs = sorted(record.get("attn_backends") or {})
    attention = [name for name in theirs if not is_state_backend(name)] or theirs
    if attention:
        ours = plan["attention_backend"]
        line.same("backend", ours, ours if ours in attention else attention[0])
    return line


# ---- the cache arithmetic alone ----

def window_of(kind, group, in_flight):
    """A window that gives the bytes this line shows for one request."""
    pages = group["max_bytes_per_request"] // group["page_size_bytes"]
    if kind == "SlidingWindowSpec":
        return max(1, (pages - 1) * group["block_size"] - in_flight + 1)
    return max(1, pages * group["block_size"] - in_flight)


def layer_specs(record):
    """Layers by spec, put together again from the groups of a line."""
    inputs, version = record["inputs"], version_tuple(record["vllm"])
    in_flight = inputs["max_in_flight_tokens" if version >= (0, 26, 0) else "max_num_batched_tokens"]
    specs, index = [], {}
    for group in record["kv"]["groups"]:
        key = (group["type"], group["block_size"], group["page_size_bytes"], group["max_bytes_per_request"])
        if key in index:
            specs[index[key]]["layers"] += group["layers"]
            continue
        spec = {name: group[name] for name in ("type", "layers", "block_size", "page_size_bytes")}
        if group["type"] in ("SlidingWindowSpec", "ChunkedLocalAttentionSpec"):
            spec["window"] = window_of(group["type"], group, in_flight)
        if group["type"] == "MambaSpec":
            mode = inputs.get("mamba_cache_mode", "none")
            pages = group["max_bytes_per_request"] // group["page_size_bytes"]
            spec["mamba_cache_mode"] = mode
            if mode != "all":
                spec["num_speculative_blocks"] = max(0, pages - (2 if mode == "align" else 1))
        index[key] = len(specs)
        specs.append(spec)
    return specs


def cache_line(planner, folder, record):
    line, inputs = Line(record), record["inputs"]
    if "error" in record["kv"]:
        line.failed("a refusal has no groups to plan from")
        return line
    options = ["--gpu-total", str(DEVICE_BYTES), "--gpu-cc", "9.0", "--vllm", record["vllm"].lstrip("v"),
               "--kv-layers", json.dumps(layer_specs(record))]
    words = ["vllm", "serve", plain_model(folder, {}), "--kv-cache-memory-bytes", str(inputs["available"])]
    for key in ("block_size", "max_model_len", "max_num_batched_tokens"):
        words += flag_words(key, inputs[key])
    if inputs["max_in_flight_tokens"] == inputs["max_num_batched_tokens"]:
        words.append("--no-async-scheduling")
    plan, why = planner.plan(options, words)
    if plan is None:
        line.failed(why)
    else:
        figures(line, record["kv"], plan["kv"])
    return line


# ---- backends ----

def write_model(folder, config):
    """A directory with this config; the same config is written once."""
    text = json.dumps(config, sort_keys=True)
    path = os.path.join(folder, f"{hash(text) & 0xffffffffffff:012x}")
    with WRITING:
        if not os.path.isdir(path):
            os.makedirs(path)
            with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
                file.write(text)
    return path


def plain_model(folder, changes):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "head_dim": 128,
              "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 1024, "vocab_size": 1000,
              "num_hidden_layers": 1, "max_position_embeddings": 1 << 20, "torch_dtype": "bfloat16"}
    return write_model(folder, {**config, **changes})


def backend_model(folder, inputs):
    head, changes = inputs["head_size"], {"torch_dtype": inputs["dtype"], "head_dim": inputs["head_size"]}
    if inputs.get("use_mla"):
        sparse = inputs.get("use_sparse")
        changes = {"architectures": ["DeepseekV32ForCausalLM" if sparse else "DeepseekV3ForCausalLM"],
                   "model_type": "deepseek_v32" if sparse else "deepseek_v3", "torch_dtype": inputs["dtype"],
                   "kv_lora_rank": head - 64, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
                   "q_lora_rank": 256}
        if sparse:
            changes.update({"index_topk": 2048, "index_head_dim": 128, "index_n_heads": 64})
    elif inputs.get("has_sink"):
        changes.update({"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "num_local_experts": 8,
                        "num_experts_per_tok": 2, "layer_types": ["full_attention"], "sliding_window": 128})
    return plain_model(folder, changes)


def backend_line(planner, folder, record):
    line, inputs = Line(record), record["inputs"]
    options = device_words(inputs) + ["--vllm", record["vllm"]]
    words = ["vllm", "serve", backend_model(folder, inputs), "--dtype", inputs["dtype"], "--max-model-len", "2048",
             "--kv-cache-dtype", inputs["kv_cache_dtype"], "--kv-cache-memory-bytes", str(8 * scorelib.GIB)]
    if inputs.get("block_size"):
        words += flag_words("block_size", inputs["block_size"])
    plan, why = planner.plan(options, words)
    if plan is None:
        line.failed(why)
    else:
        ours = plan["attention_backend"]
        line.same("backend", None if ours == "NONE" else ours, record["selected"])
    return line


# ---- the answer ----

def summary(lines):
    kinds = {}
    for line in lines:
        kind = kinds.setdefault(line.record["kind"], {"lines": 0, "equal": 0, "fields": {}})
        kind["lines"] += 1
        kind["equal"] += not line.misses
        for field, equal in line.fields.items():
            counts = kind["fields"].setdefault(field, [0, 0])
            counts[0] += equal
            counts[1] += 1
    return kinds


def show(kinds, misses):
    for line in misses:
        print(f"{line.record['id']}: {'; '.join(line.misses)}")
    print(f"\n{'kind':<24}{'figure':<18}{'equal':>8}{'of':>8}")
    for kind, counts in kinds.items():
        for field, (equal, of) in counts["fields"].items():
            print(f"{kind:<24}{field:<18}{equal:>8}{of:>8}")
        print(f"{kind:<24}{'whole line':<18}{counts['equal']:>8}{counts['lines']:>8}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("data")
    parser.add_argument("--models")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", help="lines whose id holds this text")
    options = parser.parse_args()
    records = [record for record in scorelib.read_lines(options.data)
               if not options.only or options.only in record.get("id", "")]
    models = scorelib.models_beside(options.data, options.models)
    planner = scorelib.Planner(options.binary)

    def score(record):
        kind = record.get("kind", "")
        if kind.startswith("engine-"):
            return engine_line(planner, models, record)
        if kind == "kv-utils-by-version":
            return cache_line(planner, folder, record)
        if kind.startswith("attn-backend-"):
            return backend_line(planner, folder, record)
        line = Line(record)
        line.failed("no kind of line this scorer knows")
        return line

    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        lines = list(pool.map(score, records))
    misses = [line for line in lines if line.misses]
    good = not misses
    kinds = summary(lines)
    if options.json:
        print(json.dumps({"kinds": kinds, "misses": {line.record["id"]: line.misses for line in misses}, "ok": good}, indent=1))
    else:
        show(kinds, misses)
        parts = ", ".join(f"{kind} {counts['equal']}/{counts['lines']}" for kind, counts in kinds.items())
        print(f"{len(lines) - len(misses)} of {len(lines)} lines equal ({parts}): "
              f"{'goals hold' if good else 'goals missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
