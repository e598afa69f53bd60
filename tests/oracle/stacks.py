"""Starts of real engines on a stand-in device, for what `explain` must know: stacks.py BINARY OUT --release V [--way NAME ...].

Each way is a small model of a kind (two to four layers: a stack is the same in all of them) with a few settings. One process of
the engine starts them many times (failing.py): each once well, which keeps the stack of every allocation, and once per place where
the device is made full. What is there already in OUT is left, so a call goes on where the one before stopped. What a start ended
with is in OUT/VERSION-WAY/KEY.json, its log, cleared of this program's own frames and paths, in KEY.log.
tools/record_frames.py makes data of the stacks, score_failing.py scores `explain` on the logs."""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import time

import engines
from models import small

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
EAGER = {"max_model_len": 2048, "enforce_eager": True}
GRAPHS = {"max_model_len": 2048, "max_num_seqs": 16, "compilation_config": {"mode": 0, "cudagraph_mode": "FULL", "cudagraph_capture_sizes": [1, 2, 4, 8]}}

# name -> config, settings, environment; a release that does not know a model or a setting fails at once and gives nothing.
WAYS = {
    "dense": (small("qwen3-0.6b"), GRAPHS, {}),
    "dense-eager": (small("llama-3.1-8b"), EAGER, {}),
    "moe": (small("qwen3-30b-a3b"), EAGER, {}),
    "mla": (small("deepseek-v2-lite"), EAGER, {}),
    "gptq": (small("llama-3.1-8b-gptq"), EAGER, {}),
    "hybrid": (small("nemotron-nano-9b", 4, hybrid_override_pattern="M-*-"), EAGER, {}),
    "fp8": (small("llama-3.1-8b-fp8"), GRAPHS, {}),
    "v2": (small("qwen2.5-7b"), GRAPHS, {"VLLM_USE_V2_MODEL_RUNNER": "1"}),
    "v1": (small("mistral-7b"), GRAPHS, {"VLLM_USE_V2_MODEL_RUNNER": "0"}),
    "mxfp4": (small("gpt-oss-20b"), EAGER, {}),
    "sleep": (small("qwen3-0.6b"), {**EAGER, "enable_sleep_mode": True}, {}),
    "awq": (small("llama-3.1-8b-awq"), EAGER, {}),
    "moe-fp8": (small("qwen3-30b-a3b"), {**EAGER, "quantization": "fp8"}, {}),
    "gemma": (small("gemma-2-9b"), EAGER, {}),
    "ngram": (small("qwen3-0.6b"), {**EAGER, "speculative_config": {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}}, {}),
    "lora": (small("qwen3-0.6b"), {**EAGER, "enable_lora": True}, {}),
    "compiled": (small("qwen3-0.6b"), {"max_model_len": 2048, "max_num_seqs": 16, "compilation_config": {"cudagraph_capture_sizes": [1, 2, 4, 8]}}, {}),
    "opt": (small("opt-125m"), EAGER, {}),
}
# Where the device is made full, and how much is left of it then, in MiB. While serving: only once the start is over.
STARTING = [("load_model", 40), ("determine_available_memory", 4), ("initialize_from_config", 300), ("compile_or_warm_up_model", 1),
            ("_dummy_sampler_run", 1), ("capture_model", 1), ("process_weights_after_loading", 2), ("init_device", 5000),
            ("load_model", 200), ("profile_run", 30), ("profile_cudagraph_memory", 1), ("initialize_from_config", 20)]
SERVING = [("execute_model", 1), ("sample_tokens", 1), ("_sample", 1), ("sample", 1), ("execute_model", 3)]
WAKING = [("wake_up", 10), ("wake_up", 100)]
# Refusals need no full device.
REFUSED = [("gmu", {"gpu_memory_utilization": 0.02}), ("length", {"gpu_memory_utilization": 0.2, "max_model_len": 40000000})]
MODES = ["serve", "engine", "worker", "inline"]


def jobs_of(way, model):
    config, engine, env = WAYS[way]
    whole = {"model": model, "architecture": config["architectures"][0], "engine": engine, "env": env}
    jobs = [{"key": "well", "mode": "inline", **whole}]
    places = [(at, left, False) for at, left in STARTING] + [(at, left, True) for at, left in SERVING]
    if "enable_sleep_mode" in engine:
        places = [(at, left, True) for at, left in WAKING]
    for i, (at, left, serving) in enumerate(places):
        mode = MODES[(i + len(way)) % 4] if not serving else MODES[1 + (i + len(way)) % 3]
        jobs.append({"key": "%s-%s-%d-%s" % ("serving" if serving else "start", at, left, mode), "mode": mode, **whole,
                     "full": {"at": at, "left": left * MIB, "serving": serving}})
    for i, (name, more) in enumerate(REFUSED):
        mode = MODES[(i + len(way)) % 4]
        jobs.append({"key": "refused-%s-%s" % (name, mode), "mode": mode, **whole, "engine": {**engine, **more}, "full": {"at": "nowhere", "left": 0}})
    return jobs


FRAME = re.compile(r'File "[^"]*(failing|oomsight_\w+)\.py", line \d+, in ')
ANY_FRAME = re.compile(r'File "[^"]*", line \d+, in ')
CODE = re.compile(r"^(\([^)]*\) )?(\[rank\d+\]: )?(\w+ \d\d-\d\d \d\d:\d\d:\d\d \[[\w.]+:\d+\] )?    ")
MODEL = re.compile(r"/[^\s\"',]*/models/(%s)(?!\.py|[\w-])" % "|".join(WAYS))


def cleared(lines):
    """A log as the engine alone would have written it."""
    skipping = False
    for line in lines:
        if FRAME.search(line):
            skipping = True
            continue
        if skipping and not ANY_FRAME.search(line) and CODE.match(line):
            continue
        skipping = False
        if "oomsight" in line and "oomsight/venvs" not in line and "failing" not in line:
            continue
        line = re.sub(r"/[^\s\"']*/venvs/[^/]*/lib/python3\.(\d+)/site-packages", r"/usr/local/lib/python3.\1/dist-packages", line)
        line = re.sub(r"/[^\s\"']*/versions/[^/]*/lib/python3\.", "/usr/local/lib/python3.", line)
        yield MODEL.sub(r"/models/\1", line)


def clear(folder, key):
    path = os.path.join(folder, key + ".log")
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = list(cleared(f))
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(lines)


def pending(version, args):
    """Well starts first; then every way by turns, so that a short call has some of each."""
    rows = []
    for way in args.way or WAYS:
        out, model = os.path.join(args.out, "%s-%s" % (version, way)), os.path.join(args.out, "models", way)
        os.makedirs(out, exist_ok=True)
        os.makedirs(model, exist_ok=True)
        with open(os.path.join(model, "config.json"), "w", encoding="utf-8") as f:
            json.dump(WAYS[way][0], f)
        rows += [(j["key"] != "well", random.Random(version + way + j["key"]).random(), dict(j, out=os.path.abspath(out)))
                 for j in jobs_of(way, os.path.abspath(model))]
    jobs = [j for _, _, j in sorted(rows, key=lambda r: r[:2])]
    return [j for j in jobs if not os.path.exists(os.path.join(j["out"], j["key"] + ".json")) and (not args.only or any(w in j["key"] for w in args.only))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("out")
    parser.add_argument("--release", required=True)
    parser.add_argument("--way", action="append")
    parser.add_argument("--only", action="append", help="jobs whose name holds this")
    parser.add_argument("--gpu", default="L4")
    parser.add_argument("--seconds", type=int, default=240, help="no further start after these")
    args = parser.parse_args()
    jobs, begun = pending(args.release, args), time.time()
    if not jobs:
        return
    listed = os.path.join(os.path.abspath(args.out), "jobs-%s.jsonl" % args.release)
    with open(listed, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(j) + "\n" for j in jobs)
    with open(os.path.join(args.out, "dryrun-%s.txt" % args.release), "w", encoding="utf-8") as log:
        subprocess.run([args.binary, "dryrun", "--gpu", args.gpu, "--timeout", "900", "--", "python", os.path.join(HERE, "failing.py"), listed,
                        os.path.join(os.path.abspath(args.out), "modules-%s.txt" % args.release), str(args.seconds)],
                       env=engines.environment(engines.venvs()[args.release]), stdout=log, stderr=log, check=False)
    done = [j for j in jobs if os.path.exists(os.path.join(j["out"], j["key"] + ".json"))]
    for job in jobs:
        clear(job["out"], job["key"])
    failed = 0
    for job in done:
        with open(os.path.join(job["out"], job["key"] + ".json"), encoding="utf-8") as f:
            failed += json.load(f)["error"] is not None
    print("%s: %d starts, %d failed, %.0f s, %d left" % (args.release, len(done), failed, time.time() - begun, len(jobs) - len(done)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
