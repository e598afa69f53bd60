#!/usr/bin/env python3
"""The answers of plan against brute force with the planner itself: answers.py BINARY LIBRARY [--count N] [--seed S] [--seconds N]

For starts that do not fit, over models and devices: no point of a fine grid of the same levers has requests that are more than a
nineteenth longer than *longest context*, and none with fewer flags than *least change*, of rungs as high as its own, starts with a
length one can work with. The grid is drawn at random, its corners always among it; lengths and values lie between those that the search itself tries. Exit 1 below the goals: the first in 99 %
of the points, the second in all."""
import argparse
import itertools
import os
import random
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(ROOT, "tests", "fixtures", "models")
GPUS = ["4090", "3090", "5090", "l4", "a100", "h100", "l40s", "t4", "a10", "rtx4060ti", "h200", "a100-40gb"]
VERSIONS = ["0.32.0", "0.32.0", "0.28.0", "0.24.0", "0.19.1", "0.14.0", "0.11.0"]
RUNGS = {"--kv-cache-dtype": "c"}  # of levers that nobody gave; the others are on the second
SETTLED = ("--quantization", "--cpu-offload-gb", "--tensor-parallel-size", "--pipeline-parallel-size", "--attention-backend")


class Judge:
    def __init__(self, oomsight, rng):
        self.oomsight, self.rng, self.plans = oomsight, rng, 0

    def plan(self, model, flags, device, fixes=False):
        self.plans += 1
        words = ["vllm", "serve", model] + [str(word) for name, value in flags.items() for word in ([name] if value is None else [name, value])]
        return self.oomsight.plan(words, hub=False, fixes=fixes, **device).data

    def fits(self, model, flags, device):
        return self.plan(model, flags, device)["verdict"] == "fits"


def levers(plan, version):
    """Fine values of each lever, within the bounds of the search."""
    setup = plan["setup"]
    release = tuple(int(part) for part in version.split("."))
    now, seqs, tokens = setup["gpu_memory_utilization"], setup["max_num_seqs"], setup["max_num_batched_tokens"]
    grid = {
        "--gpu-memory-utilization": [round(v / 200, 3) for v in range(100, 195) if abs(v / 200 - now) > .001],
        "--max-num-seqs": [v for v in (4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512) if v < seqs],
        "--max-num-batched-tokens": [v for v in (512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192) if seqs <= v < tokens],
        "--kv-cache-dtype": ["fp8"] if setup["kv_cache_dtype"] in (None, "auto", "bfloat16", "float16") else [],
    }
    if not setup["enforce_eager"] and release >= (0, 11, 1):
        grid["--compilation-config.max_cudagraph_capture_size"] = [v for v in (8, 12, 16, 24, 32, 48, 64, 96, 128, 256) if v < setup["max_cudagraph_capture_size"]]
    return {name: values for name, values in grid.items() if values}


def strongest(grid):
    point = {name: None if None in values else min(values, key=str) if name == "--kv-cache-dtype" else min(values) for name, values in grid.items()
             if name not in ("--gpu-memory-utilization", "--compilation-config.max_cudagraph_capture_size")}
    return point


def points(grid, rng, count):
    """Corners with every budget, then draws."""
    for corner in (strongest(grid), {k: v for k, v in strongest(grid).items() if k != "--enforce-eager"}):
        yield corner
        for budget in grid.get("--gpu-memory-utilization", [])[40::3]:
            yield {**corner, "--gpu-memory-utilization": budget}
    for _ in range(count):
        yield {name: rng.choice(values) for name, values in grid.items() if rng.random() < .7}


def fewer(grid, count, least, rng, draws):
    """Points with `count` flags."""
    length = {"--max-model-len": [least]} if least else {}
    every = {**grid, **length}
    for names in itertools.combinations(sorted(every), count):
        whole = list(itertools.islice(itertools.product(*(every[name] for name in names)), 4000))
        for values in whole if len(whole) <= draws else rng.sample(whole, draws):
            yield dict(zip(names, values))


def look(judge, model, device, draws):
    """(share of the best length, flags too many), or None where there is nothing to look at."""
    plan = judge.plan(model, {}, device, True)
    answers = {answer["name"]: answer for answer in plan["answers"] if "release" not in answer}
    if not answers or plan["phase"] == "arguments" or any(a["verdict"] != "fits" for a in answers.values()):
        return None
    least = answers.get("least_change")
    longest = answers.get("longest_context") or max(answers.values(), key=lambda a: a["max_model_len"]["certain"] or 0)
    asked, found = plan["setup"]["max_model_len"], longest["max_model_len"]["certain"]
    words = longest["change"]
    settled = {name: words[words.index(name) + 1] for name in SETTLED if name in words}
    texts = {"--language-model-only": None} if "--language-model-only" in words else {}
    grid = levers(plan, device["vllm"])
    best, goal = found, found * 20 // 19 + 1
    for point in points(grid, judge.rng, draws) if found < asked else ():
        while goal <= asked and judge.fits(model, {**settled, **texts, **point, "--max-model-len": goal}, device):
            best, goal = goal, goal + max(256, goal // 20)
    count = sum(1 for word in least["change"] if word.startswith("--"))
    own = {name: least["change"][least["change"].index(name) + 1] for name in SETTLED if name in least["change"]}
    spare = 0
    for fewer_flags in range(1 if not own else 0, count - len(own)):
        allowed = {name: values for name, values in grid.items() if RUNGS.get(name, "b") <= least["rung"]} if least["rung"] != "a" else {
            name: [v for v in values if v > plan["setup"]["gpu_memory_utilization"]] for name, values in grid.items() if name == "--gpu-memory-utilization"}
        length = min(8192, asked, least["max_model_len"]["certain"]) if least["rung"] != "a" else asked
        for point in fewer(allowed, fewer_flags, length if length < asked else None, judge.rng, 40):
            if judge.fits(model, {**own, **point}, device):
                spare = max(spare, count - len(own) - fewer_flags)
                print("fewer:", device, os.path.basename(model), point, "instead of", least["change"])
                break
        if spare:
            break
    if found < best * .95:
        print("longer:", device, os.path.basename(model), best, "instead of", found, words)
    return found / best, spare


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no further point after that")
    parser.add_argument("--models", default=FIXTURES, help="a folder of model folders")
    args = parser.parse_args()
    os.environ["OOMSIGHT_LIBRARY"] = os.path.abspath(args.library)
    sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
    import oomsight
    rng = random.Random(args.seed)
    models = sorted(os.path.join(args.models, name) for name in os.listdir(args.models) if os.path.isfile(os.path.join(args.models, name, "config.json")))
    judge, seen, tries, end = Judge(oomsight, rng), [], 0, time.time() + args.seconds
    while len(seen) < args.count and tries < args.count * 20 and time.time() < end:
        tries += 1
        device = {"gpu": rng.choice(GPUS), "vllm": rng.choice(VERSIONS)}
        try:
            result = look(judge, rng.choice(models), device, args.draws)
        except Exception as error:  # a model or a release that does not go together
            if "cannot open" in str(error):
                raise
            continue
        if result:
            seen.append(result)
    near = sum(1 for share, _ in seen if share >= .95)
    spare = sum(1 for _, more in seen if more)
    print("%d points, %d plans: longest context at least 95 %% of the best in %d (%.1f %%), least change with more flags than needed in %d"
          % (len(seen), judge.plans, near, 100 * near / max(1, len(seen)), spare))
    return 0 if seen and near >= .99 * len(seen) and spare == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
