#!/usr/bin/env python3
"""named.py BINARY [--count N]: does a checkpoint that a plan names start where it says so?

Failing plans of built-in models on GPUs that are too small, of both engines: what each names is planned on its own, by the whole command
that it gives. The verdict, the weights and the tokens have to be the same, and it has to start. Where the weights cannot be loaded and nothing is
named, no other checkpoint of the model starts, also where the command quantizes while it loads. What the methods ask of a GPU is written down here
once more (get_min_capability() of SGLang 0.5.18 and of vLLM 0.11 and 0.32)."""
import argparse
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPUS = {"T4": 75, "A10": 86, "3090": 86, "L4": 89, "4090": 89, "A100-40GB": 80, "L40S": 89, "5090": 120, "H100": 90}
ENGINES = [("vllm", "0.32.0"), ("sglang", "0.5.23"), ("vllm", "0.11.0")]
LEAST = {("sglang", "awq"): 75, ("sglang", "gptq"): 60, ("sglang", "fp8"): 80, ("sglang", "compressed-tensors"): 80, ("sglang", "modelopt-fp8"): 89,
         ("sglang", "modelopt"): 80, ("sglang", "nvfp4"): 100, ("sglang", "int-quantized"): 80, ("vllm", "fp8"): 75, ("vllm 0.11.0", "fp8"): 80,
         ("vllm", "compressed-tensors"): 75, ("vllm 0.11.0", "compressed-tensors"): 80, ("vllm", "int-quantized"): 75,
         ("vllm 0.11.0", "modelopt-fp8"): 89}


def plan(binary, gpu, engine, version, command):
    words = [binary, "plan", "--offline", "--json", "--gpu", gpu, "--engine", "%s=%s" % (engine, version), "--"] + command
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120, check=False)
    try:
        return json.loads(done.stdout.decode())
    except ValueError:
        sys.exit("no plan: %s: %s" % (" ".join(words), done.stderr.decode()))


def method(catalogue, name):
    entry = catalogue[name]
    config = entry.get("change") or entry.get("config") or {}
    settings = config.get("quantization_config") or (config.get("text_config") or {}).get("quantization_config")
    if not settings:
        return "modelopt-fp8" if "FP8" in json.dumps(entry.get("quant", {}).get("quantization", {}).get("quant_algo")) else "modelopt"
    word = settings["quant_method"].replace("_", "-")
    kind = next((kind for kind in ("nvfp4", "int-quantized") if word == "compressed-tensors" and kind in json.dumps(settings)), None)
    return kind or word


def cases(catalogue, count):
    of = sorted({entry["of"] for entry in catalogue.values() if isinstance(entry, dict) and "of" in entry})
    every = [(model, gpu, engine, version, flags) for flags in ([], ["--quantization", "fp8"]) for engine, version in ENGINES for gpu in sorted(GPUS)
             for model in of]
    return [every[i * 37 % len(every)] for i in range(count)]


def not_named(binary, catalogue, case):
    """Checkpoints of the model that start by the command without its flags."""
    model, gpu, engine, version, _ = case
    for name in sorted(catalogue):
        if isinstance(catalogue[name], dict) and catalogue[name].get("of") == model and method(catalogue, name) != "bitsandbytes":
            if plan(binary, gpu, engine, version, start(engine, name))["likely"] == "starts":
                yield name


def start(engine, model):
    return [engine, "serve"] + (["--model-path"] if engine == "sglang" else []) + [model]


def faults(binary, catalogue, case):
    model, gpu, engine, version, flags = case
    said = plan(binary, gpu, engine, version, start(engine, model) + flags)
    found, named = [], (said["needs"] or {}).get("checkpoints", [])
    if not named and not said["fixes"] and said["phase"] == "weight_load":
        for name in not_named(binary, catalogue, case):
            found.append("%s starts on %s, %s %s, and is not named for %s %s" % (name, gpu, engine, version, model, " ".join(flags)))
    for one in named:
        where = "%s on %s, %s %s" % (one["model"], gpu, engine, version)
        if catalogue[one["model"]].get("of") != model:
            found.append("%s: not of %s" % (where, model))
        own = plan(binary, gpu, engine, version, shlex.split(one["command"]))
        near = abs(own["weights_bytes"] - one["weights_bytes"]) < 1 << 20  # a shorter context has smaller tables
        if own["verdict"] != one["verdict"] or not near:
            found.append("%s: %s with %d bytes, on its own %s with %d" % (where, one["verdict"], one["weights_bytes"], own["verdict"], own["weights_bytes"]))
        if one["verdict"] != "unknown" and (own["likely"] != "starts" or own["kv"]["tokens"] != one["kv_tokens"]):
            found.append("%s: %s tokens, on its own it %s with %s" % (where, one["kv_tokens"], own["likely"], own["kv"]["tokens"]))
        how = method(catalogue, one["model"])
        least = LEAST.get((engine + " " + version, how), LEAST.get((engine, how), 0))
        if GPUS[gpu] < least or how == "bitsandbytes":  # a package beside the engine
            found.append("%s: %s is not for %d" % (where, how, GPUS[gpu]))
    return len(named), found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=240, help="plans, of which about a fifth name something")
    args = parser.parse_args()
    with open(os.path.join(ROOT, "data", "catalogue.json"), encoding="utf-8") as f:
        catalogue = json.load(f)
    binary = os.path.abspath(args.binary)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda case: faults(binary, catalogue, case), cases(catalogue, args.count)))
    for _, found in results:
        for line in found:
            print(line)
    some, all_named = sum(1 for count, _ in results if count), sum(count for count, _ in results)
    print("%d plans, %d name a checkpoint, %d checkpoints in all, %d faults" % (len(results), some, all_named, sum(len(found) for _, found in results)))
    return 1 if any(found for _, found in results) or some < args.count // 8 else 0


if __name__ == "__main__":
    sys.exit(main())
