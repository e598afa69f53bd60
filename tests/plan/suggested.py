#!/usr/bin/env python3
"""What plan suggests on GPUs before Ada, on memory that the host shares and on MIG slices: suggested.py BINARY [--count N] [--seed S]

Starts are drawn by seed. Every suggested command is planned again on the same GPU and must be what was promised: certain, or likely to start. A
command may not be refused, may take no larger share than the sentence of its own answer calls safe, and is not to have that sentence itself; a
refusal is never headed "out of memory", and the highest concurrency has no smaller limit of requests than the first suggestion. Further
starts are on cards of a little less memory than they take, with the last release before each newer PyTorch: another release is offered there, but
never one whose PyTorch has no code for the card. Prints what breaks and ends with one line; exit 1 when anything does."""
import argparse
import json
import os
import random
import re
import shlex
import subprocess
import sys

GPUS = ["t4", "rtx-2080-ti", "titan-rtx", "quadro-rtx-6000", "rtx-3060", "rtx-3090", "a10", "a40", "a100", "a100-40gb", "a100-40gb-1g.5gb",
        "a100-40gb-2g.10gb", "a100-80gb-3g.40gb", "h100-1g.20gb", "gb10", "gb10", "jetson-agx-orin", "jetson-thor", "jetson-orin-nx"]
MODELS = ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-4B", "Qwen/Qwen3-8B", "Qwen/Qwen3-14B", "Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B", "meta-llama/Llama-3.1-8B-Instruct",
          "openai/gpt-oss-20b", "google/gemma-3-12b-it", "Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen2.5-32B-Instruct-AWQ", "nvidia/Qwen3-8B-NVFP4",
          "deepseek-ai/DeepSeek-V2-Lite"]
VERSIONS = ["0.32.0"] * 4 + ["0.28.0", "0.24.0", "0.20.2", "0.19.1", "0.12.0", "0.11.0"]
FLAGS = {"--max-model-len": (.5, [4096, 8192, 16384, 40960]), "--gpu-memory-utilization": (.35, [.5, .8, .9, .95, .98]),
         "--kv-cache-dtype": (.4, ["fp8", "fp8_e5m2", "fp8_ds_mla", "bfloat16"]), "--block-size": (.15, [8, 16, 32, 64]),
         "--max-num-seqs": (.3, [8, 64, 256]), "--attention-backend": (.15, ["TRITON_ATTN", "FLASHINFER", "FLASH_ATTN"])}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SMALL_MODELS = [os.path.join(ROOT, "tests", "fixtures", "models", name) for name in ("small-llama", "small-sliding")]
SMALL_FLAGS = {"--max-model-len": (1, [2048, 4096, 8192]), "--max-num-seqs": (1, [64, 128, 256])}
SAFE = re.compile(r"At --gpu-memory-utilization ([0-9.]+) or less about a tenth")
HANGS = "the machine can hang"


def plan(binary, gpu, version, words, total=None):
    size = ["--gpu-total", str(total)] if total else []
    done = subprocess.run([binary, "plan", "--offline", "--json", "--gpu", gpu, *size, "--vllm", version, "--", *words], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout.startswith("{") else None


def heading(binary, gpu, version, words):
    return subprocess.run([binary, "plan", "--offline", "--gpu", gpu, "--vllm", version, "--", *words], capture_output=True, text=True, check=False).stdout.split("\n", 1)[0]


def drawn_words(rng, models, flags):
    words = ["vllm", "serve", rng.choice(models)]
    for flag, (often, values) in flags.items():
        if rng.random() < often:
            words += [flag, str(rng.choice(values))]
    return words


def draw(rng):
    words = drawn_words(rng, MODELS, FLAGS)
    return rng.choice(GPUS), rng.choice(VERSIONS), words, None


def before_other_torch(binary):
    """The last release before each one that has a newer PyTorch."""
    def number(release):
        return [int(part) for part in release.split(".")]
    with open(os.path.join(ROOT, "data", "engines", "vllm", "rules.json"), encoding="utf-8") as file:
        steps = next(rule["steps"] for rule in json.load(file) if rule.get("rule") == "torch_minor")
    listed = json.loads(subprocess.run([binary, "engines", "--json"], capture_output=True, text=True, check=True).stdout)["engines"]
    versions = next(engine["versions"] for engine in listed if engine["engine"] == "vllm")
    older = ([v for v in versions if number(v) < number(step["since"])] for step in steps)
    return [max(some, key=number) for some in older if some]


def draw_small(binary, rng, version):
    """The same start on both cards, each with a little less memory than it takes."""
    words = drawn_words(rng, SMALL_MODELS, SMALL_FLAGS)
    for gpu in ("v100-pcie-16gb", "t4"):
        fails, starts = 2 << 30, 16 << 30
        while starts - fails > 64 << 20:
            middle = (fails + starts) // 2
            if plan(binary, gpu, version, words, middle)["likely"] == "starts":
                starts = middle
            else:
                fails = middle
        yield gpu, version, words, fails


def commands(said):
    """(command, promise) of everything that is offered on this GPU."""
    for fix in said["fixes"] or []:
        yield fix["command"].split(" && ")[-1] if fix.get("release") else fix["command"], fix
    for one in (said["needs"] or {}).get("checkpoints") or []:
        if one.get("command"):
            yield one["command"], one


def share_of(words):
    return float(words[words.index("--gpu-memory-utilization") + 1]) if "--gpu-memory-utilization" in words else None


def limit_of(command):
    words = shlex.split(command)
    return int(words[words.index("--max-num-seqs") + 1]) if "--max-num-seqs" in words else float("inf")


def judge(binary, gpu, version, words, total, said):
    """Sentences for what breaks; how many commands were planned again."""
    broken, count = [], 0
    if said["verdict"] == "refused" and said["cause"] == "bad_config" and "out of memory" in heading(binary, gpu, version, words):
        broken.append("a refusal is headed 'out of memory'")
    named = {answer["name"]: answer["command"] for answer in said["answers"] if answer.get("command")}
    if {"least_change", "most_requests"} <= set(named) and limit_of(named["most_requests"]) < limit_of(named["least_change"]):
        broken.append("%s: fewer requests than by the first suggestion" % named["most_requests"])
    safe = SAFE.search(" ".join(said["doubts"]))
    for command, promise in commands(said):
        count += 1
        again_words = shlex.split(command)
        again = plan(binary, gpu, promise.get("release") or version, again_words, total)
        if again is None:
            broken.append("%s: cannot be planned" % command)
            continue
        starts = again["verdict"] == "fits" or (again["verdict"] == "tight" and again["likely"] == "starts")
        if promise.get("release") and not starts or promise.get("verdict") == "fits" and again["verdict"] != "fits" or promise.get("verdict") in ("fits", "tight") and not starts:
            broken.append("%s: promised %s, planned again %s (%s): %s" % (command, promise["verdict"], again["verdict"], again["likely"], again["why"]))
        if any(HANGS in doubt for doubt in again["doubts"]):
            broken.append("%s: its own plan says that the machine can hang" % command)
        share = share_of(again_words)
        if safe and share and share > float(safe.group(1)) + 1e-9:
            broken.append("%s: above %s, which the answer calls safe" % (command, safe.group(1)))
    return broken, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    starts = [draw(rng) for _ in range(options.count)]
    versions = before_other_torch(options.binary)
    for i in range(options.count // 3):
        starts += draw_small(options.binary, rng, versions[i % len(versions)])
    suggested = releases = wrong = 0
    for gpu, version, words, total in starts:
        said = plan(options.binary, gpu, version, words, total)
        if said is None:
            sys.exit("%s on %s with %s: no answer" % (shlex.join(words), gpu, version))
        broken, count = judge(options.binary, gpu, version, words, total, said)
        releases += sum(1 for fix in said["fixes"] or [] if fix.get("release"))
        suggested, wrong = suggested + count, wrong + len(broken)
        for sentence in broken:
            print("%s%s, vLLM %s: %s\n    %s" % (gpu, " of %d bytes" % total if total else "", version, shlex.join(words), sentence))
    print("%d plans, %d commands suggested, %d of them by another release, %d wrong" % (len(starts), suggested, releases, wrong))
    return 1 if wrong or not suggested or not releases else 0


if __name__ == "__main__":
    sys.exit(main())
