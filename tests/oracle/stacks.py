"""Starts of real engines on a stand-in device, for what `explain` must know: stacks.py BINARY OUT [--release V] [--way NAME].

Each way is a small model of a kind (two to four layers: a stack is the same in all of them) with a few settings. One process of
the engine starts it several times (failing.py): once well, which keeps the stack of every allocation, and once per place where
the device is made full. What is there already in OUT is left. tools/record_frames.py makes data of the result."""
import argparse
import copy
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time

import engines
import models

HERE = os.path.dirname(os.path.abspath(__file__))
LOCK = os.environ.get("OOMSIGHT_ENGINE_LOCK", os.path.join(tempfile.gettempdir(), "oomsight-engine.lock"))
MIB = 1 << 20
EAGER = {"max_model_len": 2048, "enforce_eager": True}


def small(name, layers=2, **more):
    config = copy.deepcopy(models.MODELS[name])
    config["num_hidden_layers"] = layers
    if "layer_types" in config:
        config["layer_types"] = config["layer_types"][:layers]
    for key in ("num_experts", "n_routed_experts", "num_local_experts"):
        if key in config:
            config[key] = min(config[key], 16)
    config.update(more)
    return config


# name -> config, keywords of LLM(); a release that does not know a model or a setting fails at once and gives nothing.
WAYS = {
    "dense": (small("qwen3-0.6b"), {"max_model_len": 2048, "max_num_seqs": 16, "compilation_config": {"cudagraph_capture_sizes": [1, 2, 4, 8]}}),
    "dense-eager": (small("llama-3.1-8b"), EAGER),
    "opt": (small("opt-125m"), EAGER),
    "gptq": (small("llama-3.1-8b-gptq"), EAGER),
    "awq": (small("llama-3.1-8b-awq"), EAGER),
    "fp8": (small("llama-3.1-8b-fp8"), EAGER),
    "moe": (small("qwen3-30b-a3b"), EAGER),
    "moe-fp8": (small("qwen3-30b-a3b"), {**EAGER, "quantization": "fp8"}),
    "mla": (small("deepseek-v2-lite"), EAGER),
    "mxfp4": (small("gpt-oss-20b"), EAGER),
    "gemma": (small("gemma-2-9b"), EAGER),
    "hybrid": (small("nemotron-nano-9b", 4, hybrid_override_pattern="M-*-"), EAGER),
    "ngram": (small("qwen3-0.6b"), {**EAGER, "speculative_config": {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}}),
    "lora": (small("qwen3-0.6b"), {**EAGER, "enable_lora": True}),
}
# Where the device is made full, and what is left of it then.
FULL = [("load_model", 40 * MIB), ("determine_available_memory", 4 * MIB), ("initialize_from_config", 300 * MIB),
        ("compile_or_warm_up_model", 2 * MIB), ("execute_model", 2 * MIB), ("_dummy_sampler_run", 2 * MIB), ("_sample", 2 * MIB),
        ("sample_tokens", 2 * MIB), ("capture_model", 2 * MIB), ("process_weights_after_loading", 4 * MIB), ("LLM", 5000 * MIB),
        ("load_model", 400 * MIB), ("determine_available_memory", 60 * MIB), ("profile_cudagraph_memory", 2 * MIB),
        ("compile_or_warm_up_model", 24 * MIB), ("execute_model", 30 * MIB), ("profile_run", 20 * MIB), ("sample_tokens", 12 * MIB)]
# Refusals need no full device.
REFUSED = [("gmu", {"gpu_memory_utilization": 0.02}), ("length", {"gpu_memory_utilization": 0.12, "max_model_len": 4000000})]


def jobs_of(way, model, wanted):
    _, engine = WAYS[way]
    jobs = [{"key": "well", "model": model, "engine": engine}]
    for at, left in FULL:
        jobs.append({"key": "%s-%d" % (at, left // MIB), "model": model, "engine": engine, "full": {"at": at, "left": left}})
    for name, more in REFUSED:
        jobs.append({"key": "refused-" + name, "model": model, "engine": {**engine, **more}, "full": {"at": "nowhere", "left": 0}})
    return [j for j in jobs if not wanted or any(w in j["key"] for w in wanted)]


def turn(binary, version, folder, way, out, args):
    """One process of the engine, one turn of the machine's lock."""
    os.makedirs(out, exist_ok=True)
    model = os.path.join(args.out, "models", way)
    os.makedirs(model, exist_ok=True)
    with open(os.path.join(model, "config.json"), "w", encoding="utf-8") as f:
        json.dump(WAYS[way][0], f)
    jobs = [j for j in jobs_of(way, model, args.only) if not os.path.exists(os.path.join(out, j["key"] + ".json"))]
    if not jobs:
        return
    with open(os.path.join(out, "jobs.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(j) + "\n" for j in jobs)
    with open(LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begun = time.time()
        with open(os.path.join(out, "dryrun.txt"), "w", encoding="utf-8") as log:
            subprocess.run([binary, "dryrun", "--gpu", "L4", "--timeout", "900", "--", "python", os.path.join(HERE, "failing.py"),
                            os.path.join(out, "jobs.jsonl"), os.path.abspath(out), str(args.seconds)],
                           env=engines.environment(folder), stdout=log, stderr=log, check=False)
    done = [n for n in os.listdir(out) if n.endswith(".json")]
    stacks = sum(1 for f in os.listdir(out) if f.startswith("stacks-") for _ in open(os.path.join(out, f), encoding="utf-8"))
    print("%s %s: %d starts, %d stacks, %.0f s" % (version, way, len(done), stacks, time.time() - begun), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("out")
    parser.add_argument("--release", action="append")
    parser.add_argument("--way", action="append")
    parser.add_argument("--only", action="append", help="jobs whose name holds this")
    parser.add_argument("--seconds", type=int, default=100, help="no further start after these, in one process")
    args = parser.parse_args()
    for way in args.way or WAYS:
        for version, folder in engines.venvs().items():
            if not args.release or version in args.release:
                turn(args.binary, version, folder, way, os.path.join(args.out, "%s-%s" % (version, way)), args)


if __name__ == "__main__":
    sys.exit(main())
