#!/usr/bin/env python3
"""Two services of one GPU, drawn by a fixed seed: where `check` gives both a command, both start with its patch; where it gives an order, both
start in that order. Of three it promises nothing. room.py BINARY [COUNT [SEED]]. Standard library only."""
import json
import os
import random
import subprocess
import sys
import tempfile

VLLM, SGLANG = "vllm/vllm-openai:v0.32.0", "lmsysorg/sglang:v0.5.23"
MODELS = ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-4B", "Qwen/Qwen3-8B-AWQ", "Qwen/Qwen3-Embedding-0.6B --runner pooling", "Qwen/Qwen3-8B", "Qwen/Qwen3-14B-AWQ")


def service(rng, name):
    model, share, length = rng.choice(MODELS), rng.choice((None, None, 0.15, 0.3, 0.5, 0.8, 0.9)), rng.choice((2048, 4096, 8192, 16384))
    other = rng.random() < 0.2 and "pooling" not in model
    words = "python3 -m sglang.launch_server --model-path %s --context-length %d" if other else "--model %s --max-model-len %d"
    flag = " --mem-fraction-static " if other else " --gpu-memory-utilization "
    return "  %s:\n    image: %s\n    command: %s%s\n" % (name, SGLANG if other else VLLM, words % (model, length), flag + str(share) if share else "")


def check(binary, gpu, folder, services=None, form="json"):
    path = os.path.join(folder, "compose.yaml")
    if services:
        with open(path, "w", encoding="utf-8") as file:
            file.write("services:\n" + "".join(services))
    done = subprocess.run([binary, "check", "--offline", "--gpu", gpu, "--format", form, "compose.yaml"], cwd=folder, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["commands"] if form == "json" else done.stdout


def main():
    binary, count, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 80, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rng, seen, wrong = random.Random(seed), {"patch": 0, "order": 0, "three": 0}, 0
    for _ in range(count):
        gpu, services = rng.choice(("4090", "l40s", "a100")), [service(rng, "s%d" % k) for k in range(rng.choice((2, 2, 2, 3)))]
        with tempfile.TemporaryDirectory() as folder:
            told = check(binary, gpu, folder, services)
            pairs = [row for row in told if row["together_with"]]
            kind = "three" if len(services) == 3 else "patch" if len(pairs) == 2 else "order"
            seen[kind] += bool(pairs) or kind == "three"
            if kind == "patch":
                subprocess.run(["patch", "-s", "-p0"], input=check(binary, gpu, folder, form="patch"), text=True, cwd=folder, check=True)
                now = check(binary, gpu, folder)
            elif kind == "order" and pairs:
                now = check(binary, gpu, folder, services[::-1])
                now = now if pairs[0]["best_command"] is None else now[1:]  # the one that goes first has another command
            else:
                now = []
            if any(row["likely"] != "starts" for row in now) or (kind == "three" and pairs):
                wrong += 1
                print("%s, %s:\n%s" % (kind, gpu, "".join(services)))
    print("%d files; two with a patch %d, with an order %d, three %d; %d wrong" % (count, seen["patch"], seen["order"], seen["three"], wrong))
    return 1 if wrong or not (seen["patch"] and seen["order"] and seen["three"]) else 0


if __name__ == "__main__":
    sys.exit(main())
