#!/usr/bin/env python3
"""The real engine in bulk: many small starts on a device that is not there, what they took, and what `plan` says of each.

    tools/oracle.py sweep BINARY --vllm X [--out FILE] [--gpus h100,l40s] [--layers 2,4] [--models DIR] [--tokens N] [--only WORD] [--minutes N] [--eager]
    tools/oracle.py compare BINARY [RESULTS.jsonl...] [--page docs/evidence/results/sweep.csv]

sweep starts each model of tests/oracle/models.py with that many layers on each device, all from one process that has imported the engine
(oracle_zygote.py), and appends a line per start: graphs and their nodes by mode, private pools, activation peak, workspace, what stays,
bytes asked for and taken while loading, KV pages, backend. Starts whose key is in FILE already are left out, so it can be ended and
taken up again. compare plans the same starts and prints what differs, and nodes per layer (the difference of two numbers of layers).
Of these starts the nodes of a layer were taken into src/engines/vllm/graphs.c; every other figure counts as held back. Exit 0 when done and within the bounds, 1 when not, 2 on wrong usage; sweep: 77 without the engine."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import scorelib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "oracle"))
import engines  # noqa: E402
import models  # noqa: E402

BOUND = 0.02
MOST_LAYERS = 16
LENGTH, TOKENS, REQUESTS = 4096, 2048, 256
# Classes that differ in their kernels, most common first: an early end has seen what matters.
SWEPT = ["qwen3-8b", "llama-3.1-8b-awq", "qwen3-30b-a3b", "llama-3.1-8b-fp8", "gpt-oss-20b", "llama-3.1-8b", "gemma-2-9b", "qwen2.5-7b",
         "llama-3.1-8b-gptq", "deepseek-v2-lite", "mixtral-8x7b", "mistral-7b", "phi-3-mini", "opt-1.3b", "qwen3-next-80b", "nemotron-nano-9b",
         "jamba-mini"]


def parts(config):
    """Where layers are counted: the config itself, and a language model inside of it."""
    return [part for part in (config, *(config.get(key) or {} for key in ("text_config", "llm_config", "thinker_config"))) if "num_hidden_layers" in part]


def by_layer(part, count):
    """(holder, key) of every list or pattern with a word for each layer."""
    for holder in (part, *(value for value in part.values() if isinstance(value, dict))):
        for key, value in holder.items():
            if isinstance(value, list) and len(value) in (count, count + 1) or key == "hybrid_override_pattern":
                yield holder, key


def cut(config, layers):
    """The same config with its first layers only."""
    config = json.loads(json.dumps(config))
    for part in parts(config):
        count = part["num_hidden_layers"]
        for holder, key in list(by_layer(part, count)):
            holder[key] = holder[key][:layers + len(holder[key]) - count]
        linear = part.get("linear_attn_config") or {}
        for key in ("full_attn_layers", "kda_layers"):  # these name layers, from 1
            if key in linear:
                linear[key] = [layer for layer in linear[key] if layer <= layers]
        part["num_hidden_layers"] = layers
    return config


def least_layers(config):
    """The shortest stretch from the first layer on that has every kind of layer, two at least."""
    least = 2
    for part in parts(config):
        count = part["num_hidden_layers"]
        for holder, key in by_layer(part, count):
            words = [json.dumps(word) for word in holder[key]][:count]
            least = max(least, 1 + max(words.index(word) for word in set(words)))
        for key in ("full_attention_interval", "sliding_window_pattern", "_sliding_window_pattern", "attn_layer_period", "interleave_moe_layer_step"):
            least = max(least, part.get(key) if isinstance(part.get(key), int) else 0)
        dense = part.get("first_k_dense_replace")
        least = max(least, dense + 1 if isinstance(dense, int) and dense < count else 0, min((part.get("linear_attn_config") or {}).get("full_attn_layers") or [0]))
        if str(part.get("model_type")).startswith("gemma3"):  # every sixth layer looks at all tokens, whether the config says so or not
            least = 6
    return min(least, count, MOST_LAYERS) if parts(config) else None


def config_of(name, folder):
    """The config of a model of the tests, or of FOLDER/NAME/config.json. None: there is none."""
    if name in models.MODELS:
        return models.MODELS[name]
    path = os.path.join(folder or "", name, "config.json")
    if not folder or not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def layers_of(config, wanted):
    """Hybrids need a stretch that has each kind of layer."""
    least = least_layers(config)
    return [count * least // min(wanted) for count in wanted] if least else []


def text_only(config):
    return ["image", "video", "audio"] if any(key in config for key in ("vision_config", "audio_config", "thinker_config")) else []


def key_of(version, name, layers, gpu, eager, requests=REQUESTS, tokens=TOKENS):
    mode = "eager" if eager else "graphs"
    parts_ = [version, name, str(layers), gpu, mode if requests == REQUESTS else f"{mode}-{requests}"]
    return "/".join(parts_ + ([str(tokens)] if tokens != TOKENS else []))


def parts_of(key):
    version, name, layers, gpu, mode = key.split("/")[:5]
    return version, name, int(layers), gpu, mode.startswith("eager")


def write_model(folder, name, config, layers):
    path = os.path.join(folder, f"{name}-{layers}")
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
        json.dump(cut(config, layers), file)
    return path


def jobs_of(args, folder, gpu, done):
    jobs = []
    for name in sorted(os.listdir(args.models)) if args.models else SWEPT:
        config = config_of(name, args.models)
        for layers in layers_of(config, args.layers) if config else []:
            key = key_of(args.vllm, name, layers, gpu, args.eager, args.requests, args.tokens)
            if key in done or (args.only and not any(word in key for word in args.only.split("|"))):
                continue
            engine = {"max_model_len": LENGTH, "max_num_batched_tokens": args.tokens, "max_num_seqs": args.requests, "gpu_memory_utilization": 0.9}
            if args.eager:
                engine["enforce_eager"] = True
            if text_only(config):
                engine["limit_mm_per_prompt"] = {kind: 0 for kind in text_only(config)}
            jobs.append({"key": key, "model": write_model(folder, name, config, layers), "engine": engine})
    return jobs


def kept(path):
    return scorelib.read_lines(path) if os.path.exists(path) else []


def sweep(args):
    home = engines.venvs().get(args.vllm)
    if not home:
        print(f"vLLM {args.vllm} is not among the environments in {engines.VENVS}")
        return engines.SKIP
    end = time.time() + 60 * args.minutes
    for gpu in args.gpus:
        with tempfile.TemporaryDirectory() as folder:
            jobs = jobs_of(args, folder, gpu, {record["key"] for record in kept(args.out)})
            if not jobs or time.time() > end:
                continue
            list_path = os.path.join(folder, "starts.jsonl")
            with open(list_path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(job) + "\n" for job in jobs)
            env = dict(engines.environment(home), OOMSIGHT_ENGINE_LOCK=engines.LOCK, ORACLE_END=str(end))
            words = [os.path.abspath(args.binary), "dryrun", "--gpu", gpu, "--outside", "0", "--json", "--quiet", "--timeout", "86400", "--",
                     "python", os.path.join(HERE, "oracle_zygote.py"), list_path, os.path.abspath(args.out)]
            subprocess.run(words, env=env, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    records = kept(args.out)
    print(f"{sum(record['ok'] for record in records)} of {len(records)} starts have figures; "
          f"{sum(record.get('seconds') or 0 for record in records):.0f} s of engine time in {args.out}")
    return 0


# ---- beside plan ----

def planned(planner, folder, record, source, options=()):
    version, name, layers, gpu, eager = parts_of(record["key"])
    config = config_of(name, source)
    if not config:
        return None, None
    command = ["vllm", "serve", write_model(folder, name, config, layers), "--max-model-len", str(LENGTH),
               "--max-num-batched-tokens", str(record.get("max_num_batched_tokens", TOKENS)),
               "--max-num-seqs", str(record.get("max_num_seqs", REQUESTS)), "--gpu-memory-utilization", "0.9"] + (["--enforce-eager"] if eager else [])
    if text_only(config):
        command += ["--limit-mm-per-prompt", json.dumps({kind: 0 for kind in text_only(config)})]
    # A start that found the model compiled is the other of two plans.
    cache = [] if record.get("compiled") else ["--env", "VLLM_CACHE_ROOT=kept"]
    return planner.plan(["--vllm", version, "--gpu", gpu, *cache, *options], command)


def backend_of(seen, foreseen):
    """Hybrids have one for each kind of layer: the planned one, if it is among them."""
    return foreseen if foreseen in (seen or []) else seen[0] if seen else None


def figures(record, plan):
    """(name, seen, planned) of what both have."""
    rows = [("weights", record.get("weights_printed_bytes") or record.get("weights_bytes"), plan["weights_bytes"]),
            ("KV page", record["groups"][0]["page_bytes"] if record.get("groups") else None, plan["kv"]["page_bytes"]),
            ("graph sizes", record.get("capture_sizes") or 0, plan["setup"]["cudagraph_capture_sizes"]),
            ("backend", backend_of(record.get("backends"), plan["attention_backend"]), plan["attention_backend"])]
    # From 0.27 on the engine's figure has its estimate of graphs in it, and leaves out what stays; the plan's row is the peak with what stays.
    other = record["retained_bytes"] - (record.get("estimate_bytes") or 0) if record.get("consumed_bytes") else 0
    if record.get("peak_bytes"):
        rows.append(("peak", record["peak_bytes"] + other, scorelib.hold(plan, "kv_sizing", "activation peak")))
    rows.append(("retained", record.get("retained_bytes"), scorelib.hold(plan, "profile_run", "kept by the profile run")))
    return [row for row in rows if row[1] is not None and row[2] is not None]


def near(seen, foreseen):
    return seen == foreseen if isinstance(seen, str) else abs(seen - foreseen) <= BOUND * max(abs(seen), 1)


def version_key(text):
    return [int(part) for part in text.split(".")]


OUTSIDE = {"PIECEWISE": 1, "FULL": 2}  # nodes that no layer has: two starts that differ in layers alone show them (17 and 33, 24 and 46)


def nodes_per_layer(records):
    """{(version, model, gpu, mode): nodes a layer and size}: the slope of two starts that differ in layers alone, or one start less OUTSIDE."""
    seen, found = {}, {}
    for record in records:
        version, name, layers, gpu, _ = parts_of(record["key"])
        for mode, capture in record.get("captures", {}).items():
            if mode.startswith("start.") and capture["sizes"]:
                # Whole graphs are captured outside of a context that tells their size: one graph for each.
                sizes = capture["graphs"] if capture["sizes"] == 1 else capture["sizes"]
                seen.setdefault((version, name, gpu, mode[6:]), {})[layers] = capture["nodes"] / max(1, sizes)
    for key, by_layers in seen.items():
        few, many = min(by_layers), max(by_layers)
        if few < many:
            found[key] = (by_layers[many] - by_layers[few]) / (many - few)
        elif key[3] in OUTSIDE:
            found[key] = (by_layers[few] - OUTSIDE[key[3]]) / few
    return found


def nodes_told(records):
    """A row for each model, release and device."""
    nodes, rows = nodes_per_layer(records), {}
    for (version, name, gpu, mode), count in nodes.items():
        rows.setdefault((name, gpu, tuple(version_key(version)), version), {})[mode] = count
    return ["| model | device | release | pieces | whole |", "| --- | --- | --- | ---: | ---: |"] + [
        f"| {name} | {gpu} | {version} | " + " | ".join(format(modes[mode], ".1f") if mode in modes else "" for mode in OUTSIDE) + " |"
        for (name, gpu, _, version), modes in sorted(rows.items())]


def beside(binary, records, source):
    """-> (lines of a table, tally {name: [near, all]}); a model that is neither of the tests nor in the folder `source` is left out."""
    planner, tally, lines = scorelib.Planner(os.path.abspath(binary)), {}, []
    with tempfile.TemporaryDirectory() as folder:
        for record in records:
            if not record.get("ok"):
                lines.append(f"| {record['key']} | did not start: {record.get('error', '')[:80]} | | |")
                continue
            plan, why = planned(planner, folder, record, source)
            if not plan and not why:
                continue
            if not plan:
                lines.append(f"| {record['key']} | no plan: {why} | | |")
                continue
            for name, seen, foreseen in figures(record, plan):
                count = tally.setdefault(name, [0, 0])
                count[1] += 1
                count[0] += near(seen, foreseen)
                if not near(seen, foreseen):
                    lines.append(f"| {record['key']} | {name} | {seen if isinstance(seen, str) else format(seen, ',')} | "
                                 f"{foreseen if isinstance(foreseen, str) else format(foreseen, ',')} |")
    return lines, tally


def told(records, lines, tally):
    out = ["| start | figure | engine | plan |", "| --- | --- | ---: | ---: |", *lines, ""]
    out.append("; ".join(f"{name} {near_} of {all_}" for name, (near_, all_) in tally.items()) + f" within {BOUND:.0%}")
    return out + (["", "Nodes of a layer, by mode:", "", *nodes_told(records)] if nodes_per_layer(records) else [])


def within(tally):
    """Enough figures of every kind are near; of no start nothing is known."""
    return bool(tally) and all(near_ >= 0.95 * all_ for near_, all_ in tally.values())


def compare(args):
    records = [record for path in args.results for record in scorelib.read_lines(path)]
    lines, tally = beside(args.binary, records, args.models)
    print("\n".join(told(records, lines, tally)))
    if args.page:
        with open(args.page, "w", encoding="utf-8") as file:
            file.write("figure,within_2_percent,starts\n" + "".join(f"{name},{near_},{all_}\n" for name, (near_, all_) in tally.items()))
    return 0 if within(tally) else 1


def main():
    parser = argparse.ArgumentParser(description="the real engine in bulk")
    parser.add_argument("what", choices=["sweep", "compare"])
    parser.add_argument("binary")
    parser.add_argument("results", nargs="*")
    parser.add_argument("--vllm")
    parser.add_argument("--out", default=os.path.join(ROOT, "tests", "oracle", "sweep.jsonl"), help="where starts are kept")
    parser.add_argument("--page")
    parser.add_argument("--gpus", default="h100", type=lambda text: text.split(","))
    parser.add_argument("--layers", default="2,4", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--requests", default=REQUESTS, type=int, help="max_num_seqs: few make few graphs, so more starts an hour")
    parser.add_argument("--tokens", default=TOKENS, type=int, help="max_num_batched_tokens")
    parser.add_argument("--models", help="a folder of folders with a config.json: those models instead of the tests'")
    parser.add_argument("--only")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--eager", action="store_true")
    args = parser.parse_args()
    if args.what == "compare":
        args.results = args.results or [args.out]
        return compare(args)
    if not args.vllm:
        scorelib.fail("--vllm VERSION is needed")
    return sweep(args)


if __name__ == "__main__":
    sys.exit(main())
