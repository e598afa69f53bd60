"""What serves on a GPU that is not there: releases x ways, requests answered, answers a second, the device's run-time peak beside plan's.

    tests/oracle/serve_table.py BINARY [--release VERSION]... [--start NAME]... [--page docs/serving.md]

A start is one engine; the ways of it are loads one after the other. Results are kept in tests/oracle/serving.jsonl, a line per start, the
newest of a start wins; the page is written from them, and says which cells were not tried. The engines are those of OOMSIGHT_VENVS."""
import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile

import engines
import models

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT = os.path.join(HERE, "serving.jsonl")
RELEASES = ["0.11.0", "0.19.1", "0.24.0", "0.28.0", "0.32.0"]
FLAGS = ["--max-num-batched-tokens", "1024", "--max-num-seqs", "128", "--gpu-memory-utilization", "0.5"]
PENALTIES = 'body={"frequency_penalty": 0.5, "presence_penalty": 0.5, "repetition_penalty": 1.1}'


def grammar(version):
    """As the server of that release wants it."""
    choices = '["w5", "w6", "w7"]'
    key = '"guided_choice": %s' if engines.version_key(version) < [0, 12] else '"structured_outputs": {"choice": %s}'
    return "body={%s, \"ignore_eos\": false}" % (key % choices)


PLAIN = [("requests", "500:64:16")]
ALL = PLAIN + [("ranges, clients that leave", "200:16-256:4-32,concurrency=32,abort=20%"), ("log probabilities", "100:64:16,logprobs=5"),
               ("penalties", "100:64:16," + PENALTIES), ("shared prefix", "100:256:8,prefix=50%"), ("chunked prefill", "8:1500:8"),
               ("grammar", "50:16:4,GRAMMAR")]
# name: (model, GPU, flags, ways)
STARTS = {
    "eager": ("opt-tiny", "L4", ["--enforce-eager"], ALL),
    "graphs": ("opt-tiny", "L4", [], ALL),
    "V1 runner": ("opt-tiny", "L4", ["--enforce-eager"], PLAIN),
    "TP 2": ("opt-tiny", "L4x2", ["--enforce-eager", "--tensor-parallel-size", "2"], PLAIN),
    "PP 2": ("opt-tiny", "L4x2", ["--enforce-eager", "--pipeline-parallel-size", "2"], PLAIN),
    "preemption": ("opt-tiny", "L4", ["--enforce-eager", "--num-gpu-blocks-override", "140"], [("requests", "200:64:200")]),
    "ngram": ("opt-tiny", "L4", ["--enforce-eager", "--speculative-config",
                                 '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2, "prompt_lookup_min": 1}'], PLAIN),
    "experts": ("moe-tiny", "A100-40GB", ["--enforce-eager"], PLAIN),
    "latent attention": ("mla-tiny", "A100-40GB", ["--enforce-eager"], PLAIN),
    "hybrid": ("hybrid-tiny", "A100-40GB", ["--enforce-eager"], PLAIN),
    "quantised": ("gptq-tiny", "L4", ["--enforce-eager"], PLAIN),
    "vllm bench throughput": ("opt-tiny", "L4", ["--enforce-eager"], [("requests", "200:64:16")]),
    "LLM": ("opt-tiny", "L4", ["--enforce-eager"], [("requests", "200:64:16")]),
}
NOT_TRIED = ["LoRA", "EAGLE and MTP", "images and audio", "sleep and wake"]
LLM = """import sys
from vllm import LLM, SamplingParams
if __name__ == "__main__":
    model, tokenizer, count, prompt, answer = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    llm = LLM(model, tokenizer=tokenizer, load_format="dummy", enforce_eager=True, max_num_seqs=128, max_num_batched_tokens=1024,
              gpu_memory_utilization=0.5)
    prompts = [{"prompt_token_ids": [3 + (i * 31 + k * 7) % 900 for k in range(prompt)]} for i in range(count)]
    import time
    start = time.time()
    outputs = llm.generate(prompts, SamplingParams(max_tokens=answer, ignore_eos=True))
    whole = sum(len(output.outputs[0].token_ids) == answer for output in outputs)
    print("SERVED %d of %d in %.3f seconds" % (whole, count, time.time() - start), flush=True)
"""


def tokenizer(folder):
    """A few words: prompts are token numbers."""
    os.makedirs(folder, exist_ok=True)
    words = {"<unk>": 0, "<s>": 1, "</s>": 2, **{"w%d" % i: i for i in range(3, 1024)}}
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
                   "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": words}}, f)
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}, f)
    return folder


def offline(name, model, load, scratch):
    """Commands that end by themselves."""
    count, prompt, answer = load.split(":")
    words = tokenizer(os.path.join(scratch, "tokenizer"))
    if name == "LLM":
        path = os.path.join(scratch, "offline.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(LLM)
        return ["python", path, model, words, count, prompt, answer]
    return ["vllm", "bench", "throughput", "--model", model, "--tokenizer", words, "--load-format", "dummy", "--enforce-eager", "--dataset-name", "random",
            "--random-input-len", prompt, "--input-len", prompt, "--random-output-len", answer, "--output-len", answer, "--num-prompts", count] + FLAGS


def planned(binary, version, gpu, model, flags):
    done = subprocess.run([binary, "plan", "--json", "--gpu", gpu, "--vllm", version, "--", "vllm", "serve", model] + flags, capture_output=True, text=True, check=False)
    phases = json.loads(done.stdout)["phases"] if done.stdout.startswith("{") else []
    return next((phase["peak_bytes"] for phase in phases if phase["phase"].startswith("runtime")), None)


def tried(binary, version, folder, name):
    model_name, gpu, flags, ways = STARTS[name]
    flags = FLAGS + flags
    with tempfile.TemporaryDirectory() as scratch:
        model = models.write(scratch, model_name)
        plan = planned(binary, version, gpu, model, flags)
        loads = [load.replace("GRAMMAR", grammar(version)) for _, load in ways]
        env = {"VLLM_USE_V2_MODEL_RUNNER": "0"} if name == "V1 runner" else {}
        if name in ("LLM", "vllm bench throughput"):
            outcome = engines.dryrun(binary, folder, ["--gpu", gpu], offline(name, model, loads[0], scratch), env, 1200)
        else:
            words = [word for load in loads for word in ("--load", load)]
            outcome = engines.dryrun(binary, folder, ["--gpu", gpu] + words, ["vllm", "serve", model] + flags, env, 1200)
    return kept(version, name, plan, outcome)


def kept(version, name, plan, outcome):
    """The line of a start."""
    report = outcome.report or {}
    ways, cells = STARTS[name][3], []
    mixes = (report.get("load") or {"mixes": []})["mixes"]
    served = re.search(r"SERVED (\d+) of (\d+) in ([\d.]+)", outcome.log) or None
    rate = re.search(r"Throughput: ([\d.]+) requests/s", outcome.log)
    for place, (way, load) in enumerate(ways):
        asked = int(load.split(":")[0])
        if place < len(mixes):
            mix = mixes[place]
            cells.append({"way": way, "load": load, "requests": mix["requests"], "answered": mix["answered"], "aborted": mix["aborted"],
                          "rate": round(mix["answered"] / mix["seconds"], 1) if mix["seconds"] else None})
        elif served:
            cells.append({"way": way, "load": load, "requests": asked, "answered": int(served[1]), "aborted": 0, "rate": round(int(served[1]) / float(served[3]), 1)})
        elif rate and outcome.code == 0:
            cells.append({"way": way, "load": load, "requests": asked, "answered": asked, "aborted": 0, "rate": float(rate[1])})
        else:
            cells.append({"way": way, "load": load, "requests": asked, "answered": 0, "aborted": 0, "rate": None})
    peaks = [phase["peak_bytes"] for phase in report.get("phases", []) if phase["phase"].startswith("runtime")]
    error = (report.get("child") or {}).get("error") or next(
        (line.strip()[-160:] for line in reversed(outcome.log.splitlines()) if "Error: " in line and "EngineDead" not in line), None)
    whole = all(cell["answered"] + cell["aborted"] == cell["requests"] for cell in cells)
    return {"release": version, "start": name, "date": datetime.date.today().isoformat(), "cells": cells, "peak_bytes": max(peaks, default=None),
            "plan_bytes": plan, "steps": report.get("steps"), "code": outcome.code, "error": None if whole else error, "seconds": round(outcome.seconds)}


def read():
    rows = {}
    if os.path.exists(KEPT):
        with open(KEPT, encoding="utf-8") as f:
            for line in f:
                row = json.loads(line)
                rows[row["release"], row["start"]] = row
    return rows


def gib(number):
    return "-" if number is None else "%.2f" % (number / 2**30)


def mib(step):
    return "-" if not step else "%.1f" % (step["peak_bytes"] / 2**20)


def page(rows):
    dates = sorted({row["date"] for row in rows.values()})
    out = ["# What serves on the stand-in device", "",
           "Written by `tests/oracle/serve_table.py BINARY --page docs/serving.md` from starts of %s. Models of two layers with dummy weights; answers a second" % " to ".join(sorted({dates[0], dates[-1]})),
           "are those of a shared machine of two cores and say nothing about a GPU. Peaks are of the whole device while it serves, in GiB: measured, and the first",
           "run-time phase of `plan`. Steps are what a part of a step took at most beyond what was held before it, in MiB.", "",
           "The bug that `--load` met on every release from 0.19.1 on, and others like it, are also held without an engine: `tests/oracle/aid_checks.py`.", "",
           "| release | start | way | answered | left as asked | a second | peak | plan | prefill | decode | sampler |",
           "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    cells = whole = 0
    for (release, start), row in sorted(rows.items(), key=lambda item: (engines.version_key(item[0][0]), list(STARTS).index(item[0][1]))):
        steps = row["steps"] or {}
        for place, cell in enumerate(row["cells"]):
            cells += 1
            whole += cell["answered"] + cell["aborted"] == cell["requests"]
            first = [gib(row["peak_bytes"]), gib(row["plan_bytes"])] + [mib(steps.get(part)) for part in ("prefill", "decode", "sampler")] if place == 0 else [""] * 5
            out.append("| %s | %s | %s | %d of %d | %s | %s | %s |" % (release, start, cell["way"], cell["answered"], cell["requests"], cell["aborted"] or "",
                                                                      cell["rate"] if cell["rate"] is not None else "-", " | ".join(first)))
    out += ["", "%d cells, %d of them with every request answered or left as asked." % (cells, whole), ""]
    broken = ["- %s, %s: `%s`%s" % (row["release"], row["start"], row["error"] or "exit code %d" % row["code"], " (%s)" % row["note"] if row.get("note") else "")
              for row in rows.values() if row["error"] or row["code"]]
    if broken:
        out += ["What did not serve, in the engine's words:", ""] + sorted(broken) + [""]
    out += ["Not tried:", ""]
    for start in STARTS:
        missing = [release for release in RELEASES if (release, start) not in rows]
        out += ["- %s on %s" % (start, "any release" if missing == RELEASES else ", ".join(missing))] if missing else []
    out += ["- %s on any release" % start for start in NOT_TRIED] + [""]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--release", action="append")
    parser.add_argument("--start", action="append", choices=list(STARTS))
    parser.add_argument("--page")
    options = parser.parse_args()
    found, rows = engines.venvs(), read()
    for version in options.release or []:
        for name in options.start or STARTS:
            if version not in found:
                print("no environment for", version)
                continue
            row = tried(os.path.abspath(options.binary), version, found[version], name)
            rows[version, name] = row
            print(json.dumps(row), flush=True)
            with open(KEPT, "a", encoding="utf-8") as f:
                f.write(json.dumps(row) + "\n")
    if options.page:
        with open(options.page, "w", encoding="utf-8") as f:
            f.write(page(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
