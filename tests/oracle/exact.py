#!/usr/bin/env python3
"""Commands as recipes have them, planned alone, planned with what the installed vLLM says, and said by that vLLM.

    oomsight dryrun --gpu h100x8 -- ENV/bin/python exact.py ask MODELS ANSWERS.jsonl
    exact.py table BINARY MODELS ANSWERS.jsonl OUT.jsonl
    exact.py page OUT.jsonl

`ask` needs an environment with vLLM; MODELS has a folder with a config.json for each. `table` plans each command without the engine, which is
kept as the first prediction, and with its answer. `page` prints the table. Standard library only."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tools"))
COMMANDS = """
Qwen3-8B
Qwen3-8B --max-model-len 32768 --kv-cache-dtype fp8
Qwen3-32B-FP8 -tp 2 --max-model-len 32768 --enable-prefix-caching
Qwen3-30B-A3B -tp 2 --enable-expert-parallel
Qwen3-Next-80B-A3B-Thinking -tp 4
Qwen3.5-4B --max-model-len 65536
Qwen3-VL-8B-Instruct --limit-mm-per-prompt {"image":2,"video":0} --max-model-len 32768
Llama-3.1-8B-Instruct --enforce-eager --max-num-seqs 64
Llama-3.1-70B-Instruct -tp 4 --max-model-len 16384 --disable-log-requests
Llama-3.1-70B-Instruct -tp 2 -pp 2 --max-model-len 8192
Llama-3.1-8B-AWQ-INT4 --max-model-len 16384
DeepSeek-V2-Lite --max-model-len 16384 --trust-remote-code
gpt-oss-20b --async-scheduling
gpt-oss-120b -tp 2
gemma-3-12b-it --max-model-len 8192
gemma-2-9b-it
NVIDIA-Nemotron-Nano-9B-v2 --mamba-ssm-cache-dtype float32
Mixtral-8x7B-v0.1 -tp 2
phi-4 --gpu-memory-utilization 0.85
opt-1.3b
Mistral-7B-Instruct-v0.3 --no-enable-prefix-caching
Llama-3.1-8B-Instruct --speculative-config {"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4} --async-scheduling
Llama-3.1-8B-Instruct --swap-space 4
Llama-3.1-8B-Instruct --kv-cache-dtype nonsense
Llama-3.1-8B-Instruct --kv-cache-dtype float16 --dtype bfloat16
Qwen3-8B --max-model-len 100000
Qwen3-8B --rope-scaling {"rope_type":"yarn","factor":4.0}
Llama-3.1-8B-BNB-NF4
Qwen3-30B-A3B-FP8
Qwen3-235B-A22B-FP8 -tp 4
GLM-4.7-Flash --max-model-len 32768
MiniMax-M2.5 -tp 8 --max-model-len 65536 --trust-remote-code
Llama-4-Scout-17B-16E-Instruct -tp 8 --max-model-len 65536
Qwen3-30B-A3B -dp 2 --enable-expert-parallel
Qwen3.5-35B-A3B -tp 2
Qwen3-Next-80B-A3B-Thinking -tp 4 -pp 2
Kimi-Linear-48B-A3B-Instruct -tp 2 --trust-remote-code --max-model-len 65536
NVIDIA-Nemotron-3-Nano-30B-A3B-BF16
AI21-Jamba-1.5-Mini -tp 4
mamba2-2.7b
Qwen3.5-4B -pp 2
DeepSeek-R1 -tp 8 --max-model-len 16384
DeepSeek-V3.2 -tp 8 --max-model-len 32768
DeepSeek-R1 -dp 8 --enable-expert-parallel --max-model-len 16384
DeepSeek-V2-Lite -tp 2 -dcp 2
Qwen3-235B-A22B -tp 8 -dcp 2
Qwen3-8B -dp 4
gemma-3-12b-it -pp 2
Qwen3-8B --enable-lora --max-loras 2 --max-lora-rank 32
Llama-3.1-8B-Instruct --enable-lora -tp 2
Llama-3.1-8B-AWQ-INT4 --enable-lora --max-lora-rank 64
Qwen3-30B-A3B --enable-lora
Qwen3-8B --runner pooling
Qwen2.5-7B-Instruct --runner pooling --convert embed
Qwen3-8B --enable-lora --max-lora-rank 48
Qwen3-8B -tp 3
Qwen3-8B -tp 16
Qwen3-8B -dcp 2
Llama-3.1-8B-Instruct --quantization awq
Llama-3.1-8B-Instruct --block-size 7
Qwen3-8B --max-num-batched-tokens 512 --no-enable-chunked-prefill
DeepSeek-V2-Lite -pp 40
Qwen3-8B --gpu-memory-utilization 1.5
gemma-2-9b-it --tensor-parallel-size 0
Qwen3-8B --task embed
""".split("\n")[1:-1]
DEVICES = "h100x8"
UNREAD = "0.31.0"  # the last release whose rules the older data has


def ask(models, out):
    """In the engine's Python: all commands of one process."""
    sys.path.insert(0, os.path.join(HERE, "../../shim/python"))
    import oomsight_ask as asking
    import oomsight_ask_vllm as engine
    requests = tempfile.TemporaryFile("w+")
    for command in COMMANDS:
        words = command.split()
        requests.write(json.dumps({"id": 1, "argv": [os.path.join(models, words[0])] + words[1:], "env": {}}) + "\n")
    requests.flush()
    os.lseek(requests.fileno(), 0, os.SEEK_SET)
    answers = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.environ["OOMSIGHT_ASK"] = "%d,%d" % (os.dup(requests.fileno()), answers)
    asking.main(engine)


def plan(binary, options, models, command):
    words = command.split()
    run = subprocess.run([binary, "plan", "--json", "--offline", "--gpu", DEVICES] + options + ["--", "vllm", "serve", os.path.join(models, words[0])] +
                         words[1:], capture_output=True, text=True, check=False)
    return json.loads(run.stdout) if run.stdout else {"verdict": "none", "why": run.stderr}


def figures(told):
    kept = {key: told.get(key) for key in ("verdict", "phase", "why")}
    if told.get("kv"):
        kept.update(length=told["setup"]["max_model_len"], tokens=told["kv"]["tokens"], block_tokens=told["kv"]["block_tokens"],
                    block_bytes=told["kv"]["block_bytes"], param_bytes=told["weights"]["param_bytes"])
    return kept


def table(binary, models, answers, out):
    """A Python that answers what vLLM did answer: the program is asked as a user asks it."""
    with open(answers, encoding="utf-8") as file:
        lines = file.read().splitlines()
    with tempfile.TemporaryDirectory() as folder, open(out, "w", encoding="utf-8") as rows:
        python = os.path.join(folder, "python3")
        with open(python, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\n[ "$1" = -c ] && { echo "cuda 13.0"; exit 0; }\ncat %s/answer >"/proc/self/fd/${OOMSIGHT_ASK#*,}"\n' % folder)
        os.chmod(python, 0o755)
        import older
        data = ["--data", older.older(folder, UNREAD)]
        for command, line in zip(COMMANDS, lines):
            answer = json.loads(line)
            with open(os.path.join(folder, "answer"), "w", encoding="utf-8") as file:
                file.write(json.dumps(dict(answer, id=1)) + "\n")
            release = ["--vllm", answer["version"]]
            asked = release + ["--exact", "--python", python]
            exact, unread = plan(binary, asked, models, command), plan(binary, asked + data, models, command)
            row = {"command": command, "version": answer["version"], "first": figures(plan(binary, release, models, command)), "exact": figures(exact),
                   "told": exact.get("exact"), "unread_first": figures(plan(binary, release + data, models, command)), "unread_exact": figures(unread),
                   "unread_told": unread.get("exact"), "engine": {key: answer.get(key) for key in ("verdict", "stage", "text", "param_bytes", "cache", "sizes_problem",
                                                                                          "adapter_bytes", "seconds")}}
            row["engine"]["length"] = answer.get("values", {}).get("max_model_len")
            rows.write(json.dumps(row) + "\n")


def page(path):
    print("| command | plan alone | with the engine | replaced |\n| --- | --- | --- | --- |")
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            changes = ", ".join("%s %s (%s)" % (one["name"], one["engine"], one["plan"]) for one in row["told"]["replaced"])
            if row["engine"]["verdict"] == "refused":
                changes = row["engine"]["text"].replace("|", "\\|")[:90]
            print("| `%s` | %s | %s | %s |" % (row["command"].replace("|", "\\|"), row["first"]["verdict"], row["exact"]["verdict"],
                                             changes or row["told"]["problem"] or row["engine"].get("sizes_problem") or "nothing"))


if __name__ == "__main__":
    {"ask": ask, "table": table, "page": page}[sys.argv[1]](*sys.argv[2:])
