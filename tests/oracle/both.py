#!/usr/bin/env python3
"""The same wish to both engines: which leaves more room for requests, as planned and as dry starts have it.

    tests/oracle/both.py BINARY [--start N] [--results FILE]

20 models on 4 GPUs, 4,096 tokens a request, no CUDA graphs; SGLang's command is the translation of vLLM's. A line of both.jsonl for each pair: requests of
that length that fit at once. --start: dry starts of both engines for N pairs more. Exit code 1 where a dry start names the other engine."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import engines
import forked
import models
import promises
import sglang_beside

HERE = os.path.dirname(os.path.abspath(__file__))
LENGTH, RELEASES = 4096, {"vllm": "0.33.0", "sglang": "0.5.23"}
GPUS = ("4090", "L40S", "H100", "B200")
MODELS = ("llama-3.1-8b", "llama-3.1-8b-gptq", "llama-3.1-8b-awq", "llama-3.1-8b-fp8", "llama-3.2-1b", "mistral-7b", "qwen2.5-1.5b", "qwen2.5-7b", "qwen3-0.6b",
          "qwen3-4b", "qwen3-8b", "phi-3-mini", "gemma-2-9b", "mixtral-8x7b", "qwen3-next-80b", "deepseek-v2-lite", "gpt-oss-20b", "nemotron-nano-9b",
          "qwen3-30b-a3b", "qwen3-235b-a22b")
ORDER = ("qwen3-0.6b", "llama-3.2-1b", "qwen3-4b", "qwen2.5-1.5b", "llama-3.1-8b-awq", "deepseek-v2-lite", "qwen3-8b", "mistral-7b", "gemma-2-9b", "llama-3.1-8b",
         "qwen3-30b-a3b", "gpt-oss-20b")  # of dry starts: what takes little of the machine first
NEAR = 0.005  # as much room in both


def key(row):
    return row["gpu"], row["model"]


def place_of(folder, model):
    place = os.path.join(folder, model)
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, "config.json"), "w", encoding="utf-8") as f:
        json.dump(models.MODELS[model], f)
    return place


def command(place):
    return ["vllm", "serve", place, "--max-model-len", str(LENGTH), "--enforce-eager"]


def planned(binary, engine, gpu, place):
    """Requests at once, and the command as that engine takes it."""
    out = subprocess.run([binary, "plan", "--json", "--offline", "--gpu", gpu, "--engine", engine + "=" + RELEASES[engine], "--"] + command(place), capture_output=True, text=True, check=False).stdout
    plan = json.loads(out)
    said = re.search(r"`(.*)`", " ".join(a for a in plan["assumed"] if "in the words of" in a))
    starts = plan["verdict"] in ("fits", "tight")
    return {"verdict": plan["verdict"], "room": round((plan["kv"] or {}).get("max_concurrency") or 0, 2) if starts else 0}, said.group(1).split() if said else command(place)


def more(one, other):
    """Which engine has more room; None: neither starts."""
    if not one["room"] and not other["room"]:
        return None
    if abs(one["room"] - other["room"]) <= NEAR * max(one["room"], other["room"]):
        return "equal"
    return "vllm" if one["room"] > other["room"] else "sglang"


def started(binary, folder, programs, gpu, words):
    outcome = engines.dryrun(binary, folder, ["--gpu", gpu], words, {"PATH": programs + ":" + engines.environment(folder)["PATH"]}, timeout=400, waits=False)
    report = outcome.report
    if not report or report["verdict"] != "fits":
        errors = re.findall(r"^.*?(\w+(?:Error|Exception): [^\n]*)", outcome.log, re.M)
        return {"room": 0, "error": errors[-1][:160] if errors else "exit %s" % outcome.code}
    told = re.search(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.,]+)x", outcome.log)
    return {"room": float(told.group(1).replace(",", "")) if told else round(report["kv"]["tokens"] / LENGTH, 2), "tokens": report["kv"]["tokens"]}


def right(row):
    said, is_so = more(row["vllm"]["plan"], row["sglang"]["plan"]), more(row["vllm"]["dryrun"], row["sglang"]["dryrun"])
    return said == is_so or "equal" in (said, is_so) and None not in (said, is_so)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--results", default=os.path.join(HERE, "both.jsonl"))
    args = parser.parse_args()
    binary = os.path.abspath(args.binary)
    rows = engines.read_results(args.results, key)
    found = {"vllm": engines.venvs().get(RELEASES["vllm"]), "sglang": sglang_beside.environments().get(RELEASES["sglang"])}
    with tempfile.TemporaryDirectory() as folder:
        for gpu in GPUS:
            for model in MODELS:
                row = rows.setdefault((gpu, model), {"gpu": gpu, "model": model, "vllm": {}, "sglang": {}})
                for engine in RELEASES:
                    row[engine]["plan"], words = planned(binary, engine, gpu, place_of(folder, model))
                    row[engine]["words"] = [word for word in words if not os.path.isdir(word)]
        todo = [rows[gpu, model] for model in ORDER for gpu in ("4090", "H100") if "dryrun" not in rows[gpu, model]["vllm"] or "dryrun" not in rows[gpu, model]["sglang"]]
        todo = [row for row in todo if more(row["vllm"]["plan"], row["sglang"]["plan"])][:args.start]
        for engine, gpu in sorted({(engine, row["gpu"]) for row in todo for engine in RELEASES}):
            wanted = [row for row in todo if row["gpu"] == gpu and "dryrun" not in row[engine]]
            if not found[engine] or not wanted:
                continue
            with forked.Engine(binary, found[engine], engines.environment(found[engine]), gpu, promises.VLLM if engine == "vllm" else sglang_beside.IMPORTED, engine) as programs:
                for row in wanted:
                    words = planned(binary, engine, gpu, place_of(folder, row["model"]))[1]
                    row[engine]["dryrun"] = started(binary, found[engine], programs, gpu, words)
                    print(engine, gpu, row["model"], row[engine], flush=True)
                    write(args.results, rows)
    write(args.results, rows)
    return told(list(rows.values()))


def write(path, rows):
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(row) + "\n" for row in rows.values())


def told(rows):
    known = [row for row in rows if row["vllm"]["plan"]["verdict"] != "unknown" and row["sglang"]["plan"]["verdict"] != "unknown"]
    answers = [more(row["vllm"]["plan"], row["sglang"]["plan"]) for row in known]
    pairs = [row for row in known if "dryrun" in row["vllm"] and "dryrun" in row["sglang"]]
    print("%d of %d pairs planned: more room in vLLM %d, in SGLang %d, equal %d, neither starts %d" % (
        len(known), len(rows), answers.count("vllm"), answers.count("sglang"), answers.count("equal"), answers.count(None)))
    for row in pairs:
        print("%s %-6s %-20s planned %s, %s; dry starts %s, %s %s" % ("ok  " if right(row) else "FAIL", row["gpu"], row["model"], row["vllm"]["plan"]["room"], row["sglang"]["plan"]["room"],
              row["vllm"]["dryrun"]["room"], row["sglang"]["dryrun"]["room"], row["vllm"]["dryrun"].get("error") or row["sglang"]["dryrun"].get("error") or ""))
    print("true in dry starts: %d of %d pairs" % (sum(map(right, pairs)), len(pairs)))
    return 0 if all(map(right, pairs)) else 1


if __name__ == "__main__":
    sys.exit(main())
