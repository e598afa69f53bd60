#!/usr/bin/env python3
"""What comes first of what plan suggests, over the built-in models: first_answers.py BINARY [--count N] [--seed S]

Commands that run out of memory are drawn by seed, for both engines. Each has a whole command as its first answer, or what it needs beside flags. No
later answer changes no more flags of the same checkpoint, takes no larger share and holds more tokens; weights are cut while
loading, put into host memory or left without their encoder only where no checkpoint is known that needs none of it; a
checkpoint that comes first starts on that GPU when it is planned again, with the tokens that were promised, and without flags that the command has
for weights of its own. Prints what breaks and ends with one line; exit 1 when anything does."""
import argparse
import collections
import json
import os
import random
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPUS = ["t4", "rtx-3060", "rtx-3090", "rtx-4090", "rtx-5090", "l4", "a10", "l40s", "a100-40gb", "a100", "h100", "h200", "a100-40gb-1g.10gb",
        "a100-80gb-3g.40gb", "gb10", "jetson-agx-orin", "rtx-a6000"]
LENGTHS = [None, None, 4096, 16384, 32768, 131072]
DEAR = frozenset(["--cpu-offload-gb", "--quantization", "--language-model-only"])  # what a checkpoint by its publisher comes before
SHARES = ("--gpu-memory-utilization", "--mem-fraction-static")
ENGINES = {"vllm": ("vllm serve", "--max-model-len", "--tensor-parallel-size"), "sglang": ("sglang serve --model-path", "--context-length", "--tp-size")}


def plan(binary, gpu, words):
    done = subprocess.run([binary, "plan", "--offline", "--json", "--gpu", gpu, "--", *words], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout.startswith("{") else None


def draw(rng, models):
    start, length_flag, ranks_flag = ENGINES[rng.choice(["vllm", "vllm", "vllm", "sglang"])]
    words, gpu = start.split() + [rng.choice(models)], rng.choice(GPUS)
    length = rng.choice(LENGTHS)
    if length:
        words += [length_flag, str(length)]
    if rng.random() < .2 and gpu not in ("gb10", "jetson-agx-orin") and "g." not in gpu:
        words, gpu = words + [ranks_flag, "2"], gpu + "x2"
    return gpu, words


def flags(fix):
    return frozenset(word.split("=")[0] for word in fix["change"] if word.startswith("--")) | {"-" + word for word in (fix.get("without") or "").split()}


def limits(fix):
    """What a number in it leaves: a length, requests, graphs; of a share there is none."""
    words = fix["change"]
    return {flag: int(value) for flag, value in zip(words, words[1:]) if flag.startswith("--") and value.isdigit()}


def share(fix):
    """Of the GPU, that it takes: what is taken more is lost to graphs, the sampler and other processes."""
    return next((float(value) for flag, value in zip(fix["change"], fix["change"][1:]) if flag in SHARES), 0)


def broken(binary, gpu, said):
    """What is not as it should be, in words."""
    answers, needs = said["answers"], said["needs"] or {}
    if not answers:
        if not (needs.get("gpus") or needs.get("checkpoints") or needs.get("checkpoint") or needs.get("release") or needs.get("no_device") or said["fixes"]):
            yield "neither a command nor a need"
        return
    first = answers[0]
    if not first["command"]:
        yield "the first answer has no command"
    for later in answers[1:]:
        if later.get("model") == first.get("model") and flags(later) <= flags(first) and share(later) <= share(first) and later["kv_tokens"] > first["kv_tokens"] * 1.01 and not first.get("release"):
            if all(limits(later).get(flag, value) >= value for flag, value in limits(first).items()):
                yield "a later answer changes no more and holds more: %s" % later["command"]
    kept = [flags(one) for one in needs.get("checkpoints") or [] if one["verdict"] == "fits"]
    dear = flags(first) & DEAR if "model" not in first else frozenset()
    if dear and any(not dear & those for those in kept):
        yield "%s before a checkpoint that needs none of it" % " ".join(sorted(dear))
    if "model" in first:
        again = plan(binary, gpu, shlex.split(first["command"]))
        if again is None or again.get("likely") != "starts":
            yield "the checkpoint does not start: %s" % first["command"]
        elif again["kv"]["tokens"] != first["kv_tokens"]:
            yield "the checkpoint holds %s tokens and not %s: %s" % (again["kv"]["tokens"], first["kv_tokens"], first["command"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, kinds, bad, seen = random.Random(options.seed), collections.Counter(), 0, 0
    with open(os.path.join(ROOT, "data", "catalogue.json"), encoding="utf-8") as file:
        models = sorted(json.load(file))
    while seen < options.count:
        gpu, words = draw(rng, models)
        said = plan(options.binary, gpu, words)
        if said is None or said["verdict"] in ("fits", "unknown") or said.get("likely") == "starts" or said["phase"] == "arguments":
            continue
        seen += 1
        first = (said["answers"] or [{"name": "none: what it needs"}])[0]
        kinds["checkpoint" if "model" in first else "offload" if "change" in first and "--cpu-offload-gb" in flags(first) else "flags" if "change" in first else "needs"] += 1
        for what in broken(options.binary, gpu, said):
            bad += 1
            print("BROKEN %s: --gpu %s -- %s" % (what, gpu, shlex.join(words)))
    print("%d commands that fail for memory: first %s; %d broken (seed %d)" % (seen, ", ".join("%s %d" % kind for kind in sorted(kinds.items())), bad, options.seed))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
