#!/usr/bin/env python3
"""A release that nobody has read, planned from the data of the one before, with and without what `oomsight learn` reads of its parser.

    oomsight dryrun --gpu h100x8 -- ENV/bin/python learned.py ask MODELS ANSWERS.jsonl
    learned.py table BINARY DATA MODELS LEARNED_CACHE ANSWERS.jsonl learned.jsonl
    learned.py page learned.jsonl

`ask` has the hand-written commands answered by the engine; those of exact.py were answered before (exact.jsonl). DATA is data/ without the
release, LEARNED_CACHE the XDG_CACHE_HOME that `oomsight learn --data DATA` wrote to. Standard library only."""
import json
import os
import subprocess
import sys

import exact

HERE = os.path.dirname(os.path.abspath(__file__))
# what 0.33.0 changed of its parser and configuration, and words that were gone or misspelt
COMMANDS = """
Qwen3-8B --no-enable-prefix-caching
Qwen3-8B --disable-prefix-caching
Qwen3-8B --disable-chunked-prefill
Qwen3-8B --no-enable-chunked-prefill
Qwen3-8B --disable-log-requests
Qwen3-8B --no-disable-hybrid-kv-cache-manager
Qwen3-8B --enable-hybrid-kv-cache-manager
Qwen3-8B --disable-custom-all-reduce
Qwen3-8B --enable-custom-all-reduce
Qwen3-8B --no-such-flag 3
Qwen3-8B --swap-space 4
Qwen3-8B --rope-theta 10000
Qwen3-8B --calculate-kv-scales
Qwen3-8B --num-scheduler-steps 8
Qwen3-8B --use-v2-block-manager
Qwen3-8B --guided-decoding-backend xgrammar
Qwen3-8B --max-seq-len-to-capture 8192
Qwen3-8B --enable-reasoning
Qwen3-8B --disable-async-output-proc
Qwen3-8B --preemption-mode swap
Qwen3-8B --monokernel
Qwen3-8B --sleep-mode-backend nonsense
Qwen3-8B --reasoning-effort-map {}
Qwen3-8B --watchdog-config {}
Qwen3-8B --moe-backend nonsense
Qwen3-8B --mamba-cache-mode all
Qwen3-8B --mamba-cache-mode align
Qwen3-8B --kv-cache-dtype nonsense
Qwen3-8B --kv-cache-dtype octave_k3v4
Qwen3-8B --kv-cache-dtype bfloat16
Qwen3-8B --kv-cache-dtype float16 --dtype bfloat16
Qwen3-8B --load-format nonsense
Qwen3-8B --tokenizer-mode nonsense
Qwen3-8B --distributed-executor-backend nonsense
Qwen3-8B --scheduling-policy nonsense
Qwen3-8B --max-model-len 16k
Qwen3-8B --max-model-len auto
Qwen3-8B --max-num-seqs 1.5
Qwen3-8B --gpu-memory-utilization high
Qwen3-8B --gpu-mem 0.8
Qwen3-8B --max-num 16
Qwen3-8B --enforce-eager true
Qwen3-8B --enforce_eager --max_model_len 4096
Qwen3-8B --compilation-config.level 3
Qwen3-8B --compilation-config {"no_such_key":1}
Qwen3-8B -O2
Qwen3-8B -O9
Llama-3.1-8B-Instruct --speculative-config {"method":"medusa","model":"x","num_speculative_tokens":2}
Llama-3.1-8B-Instruct --speculative-config {"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4,"draft_lm_head_quantization":"fp8"}
Llama-3.1-8B-Instruct -pp 2 --async-scheduling
Kimi-Linear-48B-A3B-Instruct -tp 2 --trust-remote-code --enable-lora
""".split("\n")[1:-1]


def ask(models, out):
    exact.COMMANDS = COMMANDS
    exact.ask(models, out)


MEASURED = ("init_free_memory_check", "weight_load", "profile_run", "kv_sizing", "kv_alloc", "cudagraph_capture")  # a configuration does not get there


def refused(binary, data, models, command, cache, version):
    words = command.split()
    run = subprocess.run([binary, "plan", "--json", "--offline", "--data", data, "--vllm", version, "--gpu", exact.DEVICES, "--", "vllm", "serve",
                          os.path.join(models, words[0])] + words[1:], capture_output=True, text=True, check=False, env=dict(os.environ, XDG_CACHE_HOME=cache))
    told = json.loads(run.stdout) if run.stdout else None
    return told["verdict"] == "refused" and told["phase"] not in MEASURED if told else None


def table(binary, data, models, cache, answers, out, version="0.33.0"):
    with open(os.path.join(HERE, "exact.jsonl"), encoding="utf-8") as file:
        told = [("recipes", row["command"], row["engine"]) for row in map(json.loads, file)]
    with open(answers, encoding="utf-8") as file:
        told += [("hand-written", command, json.loads(line)) for command, line in zip(COMMANDS, file)]
    with open(out, "w", encoding="utf-8") as rows:
        for kind, command, answer in told:
            engine = {key: answer.get(key) for key in ("verdict", "stage", "text")}
            row = {"set": kind, "command": command, "engine": engine, "first": refused(binary, data, models, command, "/nowhere", version),
                   "learned": refused(binary, data, models, command, cache, version)}
            rows.write(json.dumps(row) + "\n")


def page(path):
    with open(path, encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["engine"]["verdict"] in ("taken", "refused") and row["first"] is not None]
    print("| commands | judged | | alike | falsely refused | falsely taken |\n| --- | ---: | --- | ---: | ---: | ---: |")
    for kind in dict.fromkeys(row["set"] for row in rows):
        for which in ("first", "learned"):
            of = [(row["engine"]["verdict"] == "refused", row[which]) for row in rows if row["set"] == kind]
            print("| %s | %d | %s | %d | %d | %d |" % (kind, len(of), which, sum(engine == plan for engine, plan in of),
                                                      sum(plan and not engine for engine, plan in of), sum(engine and not plan for engine, plan in of)))
    for row in rows:
        if (row["engine"]["verdict"] == "refused") != row["learned"]:
            print("    %s: %s, %s" % (row["command"], row["engine"]["verdict"], row["engine"]["text"]))


if __name__ == "__main__":
    {"ask": ask, "table": table, "page": page}[sys.argv[1]](*sys.argv[2:])
