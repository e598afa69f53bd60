#!/usr/bin/env python3
"""One state per answer: headline, reason, figures and JSON are of the same start: one_state.py BINARY [--count N] [--seed N]

Starts near the limit of a GPU, of both engines: a share of the memory, a length and used memory are drawn. Where a warm and a cold compile cache,
or two samplers, end differently, the headline says so; elsewhere what is likely agrees with every phase. A sentence that names what is needed and
what is there needs more than is there. Exit 1 when one does not hold, or when too few starts were of a kind."""
import argparse
import collections
import json
import random
import re
import subprocess
import sys

MODELS = ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-4B", "Qwen/Qwen3-8B", "google/gemma-3-12b-it", "Qwen/Qwen3-14B", "Qwen/Qwen3-32B", "Qwen/Qwen2.5-VL-7B-Instruct",
          "openai/gpt-oss-20b"]
GPUS = ["l4", "a10", "4090", "5080", "t4", "a100-40gb", "h100", "orin", "5090"]
STARTS = {"fits": True, "tight": None, "unknown": None, "refused": False, "fails": False}


def drawn(rng):
    engine = rng.choice(["vllm", "vllm", "vllm", "sglang"])
    share = "--gpu-memory-utilization" if engine == "vllm" else "--mem-fraction-static"
    words = [engine, "serve", rng.choice(MODELS), share, "%.2f" % rng.uniform(.70, .99)]
    if rng.random() < .5:
        words += ["--max-model-len" if engine == "vllm" else "--context-length", str(rng.choice([4096, 8192, 16384, 32768]))]
    options = ["--gpu", rng.choice(GPUS)] + (["--gpu-used", "%dMiB" % rng.randrange(0, 5000, 100)] if rng.random() < .5 else [])
    if engine == "vllm" and len(words) == 5:  # later the sampler is larger than what a cold compile takes
        options += ["--vllm", "0.31.0"]
    return options, words


def said(binary, options, words, *more):
    command = [binary, "plan", "--offline", *options, *more, "--", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, universal_newlines=True).stdout


def sizes(text):
    return [float(number.replace(",", "")) for number in re.findall(r"([\d,]+\.\d+) GiB", text)]


def broken(plan, text):
    """What does not hold, and of which kinds the start is."""
    headline, kinds = text.split("\n", 1)[0], {plan["verdict"]}
    by_phases = not plan["doubts"] and plan["phase"] not in ("arguments", "env") and plan["verdict"] != "unknown"
    forks = list(zip(plan["forks"][::2], plan["forks"][1::2]))
    parted = [(a, b) for a, b in forks if a["verdict"] != b["verdict"] and {STARTS[a["verdict"]], STARTS[b["verdict"]]} == {True, False}]
    for meant, other in forks:
        if meant["kv_tokens"] != plan["kv"]["tokens"]:
            yield "the figures are not of the state that is planned", kinds
    named = re.search(r"starts with", headline)
    if named:
        kinds.add("parted")
        if not parted:
            yield "the headline names a state, and both may end alike", kinds
    elif parted:
        yield "the headline does not name the state", kinds
    elif by_phases and plan["likely"] == "fails" and all(phase["ok"] for phase in plan["phases"]):
        yield "it likely fails, and every phase is ok", kinds
    if by_phases and plan["likely"] == "starts" and not all(phase["ok"] for phase in plan["phases"]):
        yield "it likely starts, and a phase is not ok", kinds
    needed = re.match(r"(?:Weights need|Loading needs) [^;]*?GiB[^;]*(?:;| of )[^.;]*[\d.]+ GiB", plan["why"] or "")
    if needed and plan["phase"] == "weight_load":
        kinds.add("weights")
        *parts, there = sizes(needed.group())
        if sum(parts) <= there:
            yield "what is needed is there: " + needed.group(), kinds
    yield None, kinds


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng, seen, wrong = random.Random(asked.seed), collections.Counter(), 0
    for _ in range(asked.count):
        options, words = drawn(rng)
        plan = json.loads(said(asked.binary, options, words, "--json"))
        text = said(asked.binary, options, words) if plan["forks"] else plan["verdict"]
        for what, kinds in broken(plan, text):
            if what:
                wrong += 1
                print("%s: %s -- %s" % (what, " ".join(options), " ".join(words)))
            else:
                seen.update(kinds)
    print("%d starts (%s), %d wrong" % (asked.count, ", ".join("%s %d" % item for item in sorted(seen.items())), wrong))
    missing = [kind for kind in ("parted", "weights", "tight", "fits") if not seen[kind]]
    if missing:
        print("too few: " + ", ".join(missing))
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
