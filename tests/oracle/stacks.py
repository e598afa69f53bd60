"""Starts of real engines on stand-in devices that keep the stack of every device allocation, and the log with the time of each
line: stacks.py BINARY OUT [--release V ...] [--way NAME ...] [--shrink].

Each way is a small model of a kind (two to four layers: a stack is the same in all of them) with a few flags; requests are
served where the engine is ready. --shrink makes the devices too small instead, so that the same starts fail. Folders that are
there already are left. tools/record_frames.py makes data of the result, tools/score_oracle.py a labelled corpus."""
import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import time

import engines
import models

LOCK = os.environ.get("OOMSIGHT_ENGINE_LOCK", os.path.join(tempfile.gettempdir(), "oomsight-engine.lock"))


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


# name -> config, flags; a release that does not know a model or a flag fails in its arguments and gives nothing.
WAYS = {
    "dense": (small("qwen3-0.6b"), ["--max-model-len", "2048", "--max-num-seqs", "64"]),
    "dense-eager": (small("llama-3.1-8b"), ["--max-model-len", "4096", "--enforce-eager"]),
    "opt": (small("opt-125m"), ["--max-model-len", "2048", "--max-num-seqs", "32"]),
    "gptq": (small("llama-3.1-8b-gptq"), ["--max-model-len", "2048", "--enforce-eager"]),
    "awq": (small("llama-3.1-8b-awq"), ["--max-model-len", "2048", "--enforce-eager"]),
    "fp8": (small("llama-3.1-8b-fp8"), ["--max-model-len", "2048", "--enforce-eager"]),
    "fp8-online": (small("qwen3-8b"), ["--max-model-len", "2048", "--enforce-eager", "--quantization", "fp8"]),
    "moe": (small("qwen3-30b-a3b"), ["--max-model-len", "2048", "--enforce-eager"]),
    "moe-fp8": (small("qwen3-30b-a3b"), ["--max-model-len", "2048", "--enforce-eager", "--quantization", "fp8"]),
    "mla": (small("deepseek-v2-lite"), ["--max-model-len", "2048", "--enforce-eager"]),
    "mxfp4": (small("gpt-oss-20b"), ["--max-model-len", "2048", "--enforce-eager"]),
    "hybrid": (small("nemotron-nano-9b", 4, hybrid_override_pattern="M-*-"), ["--max-model-len", "2048", "--enforce-eager"]),
    "tp": (small("qwen2.5-1.5b"), ["--max-model-len", "2048", "--enforce-eager", "--tensor-parallel-size", "2"]),
    "ngram": (small("qwen3-0.6b"), ["--max-model-len", "2048", "--enforce-eager", "--speculative-config",
                                    '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}']),
    "sleep": (small("qwen3-0.6b"), ["--max-model-len", "2048", "--enforce-eager", "--enable-sleep-mode"]),
}
# What is taken away from a device that is large enough, in GiB of what it shows: as many failures as stages have peaks.
SHRUNK = ["0.6GiB", "0.9GiB", "1.2GiB", "1.6GiB", "2.0GiB", "2.6GiB", "3.2GiB", "4.0GiB", "5.0GiB", "6.5GiB"]


def start(binary, folder, options, command, out, env):
    """The log goes to OUT/log.txt with the microsecond of every line before it."""
    os.makedirs(out, exist_ok=True)
    with open(LOCK, "w") as lock:
        engines.fcntl.flock(lock, engines.fcntl.LOCK_EX)
        child = subprocess.Popen([binary, "dryrun", "--json", "--timeout", "420"] + options + ["--"] + command, env=env,
                                 stdout=open(os.path.join(out, "report.json"), "w"), stderr=subprocess.PIPE, text=True, errors="replace")
        with open(os.path.join(out, "log.txt"), "w", encoding="utf-8") as log:
            for line in child.stderr:
                log.write("%d\t%s" % (time.time() * 1e6, line))
        return child.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("out")
    parser.add_argument("--release", action="append")
    parser.add_argument("--way", action="append")
    parser.add_argument("--shrink", action="append", help="a device of this size, e.g. 2.0GiB; 'all': a series of them")
    args = parser.parse_args()
    for way in args.way or WAYS:
        config, flags = WAYS[way]
        for version, folder in engines.venvs().items():
            if args.release and version not in args.release:
                continue
            for total in (SHRUNK if args.shrink == ["all"] else args.shrink) or [None]:
                name = "%s-%s%s" % (version, way, "-" + total if total else "")
                out = os.path.join(args.out, name)
                if os.path.exists(os.path.join(out, "report.json")):
                    continue
                model = os.path.join(args.out, "models", way)
                os.makedirs(model, exist_ok=True)
                with open(os.path.join(model, "config.json"), "w", encoding="utf-8") as f:
                    json.dump(config, f)
                env = engines.environment(folder)
                options = ["--gpu", "L4x2" if way == "tp" else "L4"]
                if total:
                    options += ["--gpu-total", total]
                else:
                    env["OOMSIGHT_STACKS"] = os.path.abspath(out)
                    options += ["--load", "3:200:6"]
                begun = time.time()
                code = start(args.binary, folder, options, ["vllm", "serve", model] + flags, out, env)
                stacks = sum(1 for f in os.listdir(out) if f.startswith("stacks-") for _ in open(os.path.join(out, f)))
                print("%-28s exit %d, %d stacks, %.0f s" % (name, code, stacks, time.time() - begun), flush=True)


if __name__ == "__main__":
    sys.exit(main())
