"""What serves on a GPU that is not there: releases x ways, requests answered, answers a second, the device's run-time peak beside plan's.

    tests/oracle/serve_table.py BINARY [--release VERSION]... [--start NAME]...

A start is one engine; the ways of it are loads one after the other. Results are kept in tests/oracle/serving.jsonl, a line per start, the
newest; tools/figures.py makes docs/evidence/results/serving.csv from them. The engines are those of OOMSIGHT_VENVS."""
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
FLAGS = ["--max-num-batched-tokens", "1024", "--max-num-seqs", "128", "--gpu-memory-utilization", "0.5"]
PENALTIES = 'body={"frequency_penalty": 0.5, "presence_penalty": 0.5, "repetition_penalty": 1.1}'


def grammar(version):
    """As the server of that release wants it."""
    choices = '["w5", "w6", "w7"]'
    key = '"guided_choice": %s' if engines.version_key(version) < [0, 12] else '"structured_outputs": {"choice": %s}'
    return "body={%s, \"ignore_eos\": false}" % (key % choices)


PLAIN = [("requests", "500:64:16")]
FEW = PLAIN + [("ranges, clients that leave", "200:16-256:4-32,concurrency=32,abort=20%"), ("log probabilities", "100:64:16,logprobs=5")]
ALL = [("requests", "2000:64:16")] + FEW[1:] + [
    ("penalties", "100:64:16," + PENALTIES), ("shared prefix", "100:256:8,prefix=50%"), ("chunked prefill", "8:1500:8"), ("grammar", "50:16:4,GRAMMAR")]
# What a program of our own does in one process of the engine.
OFFLINE = [("requests", "200:64:16")]
EAGER = ["--enforce-eager"]
# name: (model, GPU, flags, ways); {SCRATCH} is the folder of the model
STARTS = {
    "eager": ("opt-tiny", "L4", EAGER, ALL),
    "graphs": ("opt-tiny", "L4", [], ALL),
    "V1 runner": ("opt-tiny", "L4", EAGER, FEW),
    "V2 runner": ("llama-tiny", "L4", EAGER, FEW),
    "no asynchronous scheduling": ("opt-tiny", "L4", EAGER + ["--no-async-scheduling"], FEW),
    "TP 2": ("opt-tiny", "L4x2", EAGER + ["--tensor-parallel-size", "2"], FEW),
    "PP 2": ("opt-tiny", "L4x2", EAGER + ["--pipeline-parallel-size", "2"], FEW),
    "preemption": ("opt-tiny", "L4", EAGER + ["--num-gpu-blocks-override", "140"], [("requests", "200:64:200")]),
    "ngram": ("opt-tiny", "L4", EAGER + ["--speculative-config",
                                         '{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2, "prompt_lookup_min": 1}'], FEW[:2]),
    "EAGLE": ("llama-tiny", "L4", EAGER + ["--speculative-config", '{"method": "eagle", "model": "{SCRATCH}/eagle-tiny", "num_speculative_tokens": 3}'], FEW),
    "MTP": ("mtp-tiny", "L4", EAGER + ["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 1}'], FEW),
    "experts": ("moe-tiny", "A100-40GB", EAGER, FEW),
    "latent attention": ("mla-tiny", "A100-40GB", EAGER, FEW),
    "hybrid": ("hybrid-tiny", "A100-40GB", EAGER, FEW),
    "quantised": ("gptq-tiny", "L4", EAGER, FEW),
    "LoRA": ("llama-tiny", "L4", EAGER + ["--enable-lora", "--max-lora-rank", "8", "--lora-modules", "adapter={SCRATCH}/adapter"],
             [("requests to the adapter", '500:64:16,body={"model": "adapter"}')] + FEW[:2] + [("log probabilities of the adapter", '100:64:16,logprobs=5,body={"model": "adapter"}')]),
    "vllm bench throughput": ("opt-tiny", "L4", EAGER, OFFLINE),
    "vllm bench latency": ("opt-tiny", "L4", EAGER, [("requests", "32:64:16")]),
    "LLM": ("opt-tiny", "L4", EAGER, OFFLINE),
    "images": ("llava-tiny", "L4", EAGER, [("an image each", "100:32:16")]),
    "sleep and wake": ("opt-tiny", "L4", EAGER, [("requests before and after", "200:64:16")]),
}
ENDING = ("LLM", "images", "sleep and wake", "vllm bench throughput", "vllm bench latency")
PROGRAM = """import sys, time
from vllm import LLM, SamplingParams
if __name__ == "__main__":
    kind, model, tokenizer, count, prompt, answer = *sys.argv[1:4], *map(int, sys.argv[4:7])
    more = {"tokenizer": tokenizer} if kind != "images" else {"limit_mm_per_prompt": {"image": 1}}
    if kind == "sleep and wake":
        more["enable_sleep_mode"] = True
    llm = LLM(model, load_format="dummy", enforce_eager=True, max_num_seqs=128, max_num_batched_tokens=1024, gpu_memory_utilization=0.5, **more)
    prompts = [{"prompt_token_ids": [3 + (i * 31 + k * 7) % 900 for k in range(prompt)]} for i in range(count)]
    if kind == "images":
        from PIL import Image
        for i, one in enumerate(prompts):
            one["prompt_token_ids"] = [1023] + one["prompt_token_ids"]
            one["multi_modal_data"] = {"image": Image.new("RGB", (336, 336), (i % 256, 0, 0))}
    start, whole = time.time(), 0
    for part in (prompts[:count // 2], prompts[count // 2:]) if kind == "sleep and wake" else (prompts,):
        if whole:
            llm.sleep(level=1)
            print("ASLEEP", flush=True)
            llm.wake_up()
        outputs = llm.generate(part, SamplingParams(max_tokens=answer, ignore_eos=True))
        whole += sum(len(output.outputs[0].token_ids) == answer for output in outputs)
    print("SERVED %d of %d in %.3f seconds" % (whole, count, time.time() - start), flush=True)
"""


def tokenizer(folder, more=()):
    """A few words: prompts are token numbers. `more` stand for themselves, at the end."""
    os.makedirs(folder, exist_ok=True)
    words = {"<unk>": 0, "<s>": 1, "</s>": 2, **{"w%d" % i: i for i in range(3, 1024 - len(more))}}
    words.update({word: 1024 - len(more) + i for i, word in enumerate(more)})
    added = [{"id": words[word], "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for word in more]
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
                   "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": words}}, f)
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}, f)
    return folder


def processor(folder):
    """What reads images for llava-tiny."""
    tokenizer(folder, ["<image>"])
    size = {"height": 336, "width": 336}
    with open(os.path.join(folder, "preprocessor_config.json"), "w", encoding="utf-8") as f:
        json.dump({"image_processor_type": "CLIPImageProcessor", "processor_class": "LlavaProcessor", "size": {"shortest_edge": 336}, "crop_size": size,
                   "do_resize": True, "do_center_crop": True, "do_normalize": True, "do_rescale": True, "rescale_factor": 1 / 255, "resample": 3,
                   "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_convert_rgb": True}, f)
    with open(os.path.join(folder, "processor_config.json"), "w", encoding="utf-8") as f:
        json.dump({"processor_class": "LlavaProcessor", "patch_size": 14, "vision_feature_select_strategy": "default", "image_token": "<image>",
                   "num_additional_image_tokens": 1}, f)


def adapter(folder, config, rank=8):
    """A LoRA of zeros on the query and value projections of a Llama."""
    os.makedirs(folder)
    with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as f:
        json.dump({"peft_type": "LORA", "r": rank, "lora_alpha": rank, "target_modules": ["q_proj", "v_proj"], "bias": "none", "task_type": "CAUSAL_LM"}, f)
    hidden, wide = config["hidden_size"], config["hidden_size"] // config["num_attention_heads"]
    head, at = {}, 0
    for layer in range(config["num_hidden_layers"]):
        for part, out in (("q_proj", hidden), ("v_proj", wide * config["num_key_value_heads"])):
            for letter, shape in (("A", [rank, hidden]), ("B", [out, rank])):
                size = 2 * shape[0] * shape[1]
                head["base_model.model.model.layers.%d.self_attn.%s.lora_%s.weight" % (layer, part, letter)] = {
                    "dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
                at += size
    text = json.dumps(head).encode()
    with open(os.path.join(folder, "adapter_model.safetensors"), "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + bytes(at))


def offline(name, model, load, scratch):
    """Commands that end by themselves."""
    count, prompt, answer = load.split(":")
    words = tokenizer(os.path.join(scratch, "tokenizer"))
    if not name.startswith("vllm bench"):
        path = os.path.join(scratch, "offline.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        return ["python", path, name, model, words, count, prompt, answer]
    common = ["--model", model, "--tokenizer", words, "--load-format", "dummy", "--enforce-eager", "--input-len", prompt, "--output-len", answer] + FLAGS
    if name == "vllm bench latency":
        return ["vllm", "bench", "latency", "--batch-size", count, "--num-iters", "3", "--num-iters-warmup", "1"] + common
    return ["vllm", "bench", "throughput", "--dataset-name", "random", "--random-input-len", prompt, "--random-output-len", answer, "--num-prompts", count] + common


def planned(binary, version, gpu, model, flags):
    done = subprocess.run([binary, "plan", "--json", "--gpu", gpu, "--vllm", version, "--", "vllm", "serve", model] + flags, capture_output=True, text=True, check=False)
    return at_run_time(json.loads(done.stdout) if done.stdout.startswith("{") else {})


def at_run_time(report):
    """The largest run-time phase: peak and holds."""
    phases = [phase for phase in report.get("phases", []) if phase["phase"].startswith("runtime")]
    most = max(phases, key=lambda phase: phase["peak_bytes"], default=None)
    return most and {"phase": most["phase"], "bytes": most["peak_bytes"], "holds": {hold["owner"]: hold["bytes"] for hold in most["holds"]}}


def tried(binary, version, folder, name, logs=None, limit=600):
    model_name, gpu, flags, ways = STARTS[name]
    with tempfile.TemporaryDirectory() as scratch:
        flags = [word.replace("{SCRATCH}", scratch) for word in FLAGS + flags]
        model = models.write(scratch, model_name)
        if name == "EAGLE":
            models.write(scratch, "eagle-tiny")
        if name == "LoRA":
            adapter(os.path.join(scratch, "adapter"), models.MODELS[model_name])
        if name == "images":
            processor(model)
        plan = planned(binary, version, gpu, model, flags)
        loads = [load.replace("GRAMMAR", grammar(version)) for _, load in ways]
        env = {"VLLM_USE_V2_MODEL_RUNNER": name[1] == "2" and "1" or "0"} if name.endswith(" runner") else {}
        if name in ENDING:
            outcome = engines.dryrun(binary, folder, ["--gpu", gpu], offline(name, model, loads[0], scratch), env, limit)
        else:
            words = [word for load in loads for word in ("--load", load)]
            outcome = engines.dryrun(binary, folder, ["--gpu", gpu] + words, ["vllm", "serve", model] + flags, env, limit)
    if logs:
        with open(os.path.join(logs, "%s-%s.log" % (version, name.replace(" ", "-"))), "w", encoding="utf-8") as f:
            f.write(outcome.log + json.dumps(outcome.report))
    return kept(version, name, plan, outcome)


def kept(version, name, plan, outcome):
    """The line of a start."""
    report = outcome.report or {}
    ways, cells = STARTS[name][3], []
    mixes = (report.get("load") or {"mixes": []})["mixes"]
    served = re.search(r"SERVED (\d+) of (\d+) in ([\d.]+)", outcome.log) or None
    rate = re.search(r"Throughput: ([\d.]+) requests/s", outcome.log)
    batch = re.search(r"Avg latency: ([\d.]+) seconds", outcome.log)
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
        elif batch and outcome.code == 0:
            cells.append({"way": way, "load": load, "requests": asked, "answered": asked, "aborted": 0, "rate": round(asked / float(batch[1]), 1)})
        else:
            cells.append({"way": way, "load": load, "requests": asked, "answered": 0, "aborted": 0, "rate": None})
    error = (report.get("child") or {}).get("error") or next(
        (line.strip()[-160:] for line in reversed(outcome.log.splitlines()) if "Error: " in line and "EngineDead" not in line), None)
    whole = all(cell["answered"] + cell["aborted"] == cell["requests"] for cell in cells)
    return row(version, name, cells, at_run_time(report), plan, report.get("steps"), outcome.code, None if whole else error, round(outcome.seconds),
               cpu_seconds=round(outcome.cpu_seconds))


def row(version, name, cells, peak, plan, steps, code, error, seconds, **more):
    return {"release": version, "start": name, "date": datetime.date.today().isoformat(), "cells": cells, "peak": peak, "plan": plan, "steps": steps,
            "code": code, "error": error, "seconds": seconds, **more}


def keep(made):
    print(json.dumps(made), flush=True)
    rows = read()
    rows[made["release"], made["start"]] = made
    with open(KEPT + ".new", "w", encoding="utf-8") as f:
        f.writelines(json.dumps(row) + "\n" for row in rows.values())
    os.replace(KEPT + ".new", KEPT)


def read():
    rows = {}
    if os.path.exists(KEPT):
        with open(KEPT, encoding="utf-8") as f:
            for line in f:
                row = json.loads(line)
                rows[row["release"], row["start"]] = row
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--release", action="append")
    parser.add_argument("--start", action="append", choices=list(STARTS))
    parser.add_argument("--logs", help="a folder for what the engines print")
    parser.add_argument("--limit", type=int, default=600, help="seconds that a start may take")
    options = parser.parse_args()
    found, rows = engines.venvs(), read()
    for version in options.release or []:
        for name in options.start or STARTS:
            if version not in found:
                print("no environment for", version)
                continue
            made = tried(os.path.abspath(options.binary), version, found[version], name, options.logs, options.limit)
            rows[version, name] = made
            keep(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
