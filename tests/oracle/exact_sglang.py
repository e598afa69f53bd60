#!/usr/bin/env python3
"""Commands of SGLang as people write them, answered by the installed one and planned without it.

    exact_sglang.py ask BINARY PYTHON MODELS ANSWERS.jsonl
    exact_sglang.py table BINARY ANSWERS.jsonl OUT.jsonl
    exact_sglang.py test BINARY OUT.jsonl

`ask` needs an environment with SGLang; MODELS has a folder with a config.json for each. `table` keeps the answers with what `plan` said when they were
new. `test` plans each command again, with built-in models and without an engine: exit 1 when fewer are decided, or resolved to the same figures, than
FLOORS says. Compared are static fraction, chunk of prefill, largest captured batch, graphs of decode and of prefill; a length that plan has otherwise is
told as well. Standard library only."""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FLOORS = {"decided": 78, "resolved": 68, "attention": 68, "weights": 45, "tokens": 68}
SCALE = 64 << 30  # bytes for which both say how many tokens
FIGURES = ("mem_fraction_static", "chunked_prefill_size", "cuda_graph_max_bs_decode", "cuda_graphs_decode", "cuda_graphs_prefill")
COMMANDS = """
h100x8 Qwen/Qwen3-8B
h100x8 Qwen/Qwen3-8B --context-length 32768 --kv-cache-dtype fp8_e4m3
h100x8 Qwen/Qwen3-32B-FP8 --tp 2 --mem-fraction-static 0.85
h100x8 Qwen/Qwen3-30B-A3B --tp 2 --ep-size 2
h100x8 Qwen/Qwen3-235B-A22B --tp 8 --enable-dp-attention --dp 2
h100x8 Qwen/Qwen3-235B-A22B-FP8 --tp 8 --ep-size 8 --max-running-requests 256
h100x8 Qwen/Qwen3-Next-80B-A3B-Thinking --tp 4
h100x8 Qwen/Qwen3-Next-80B-A3B-Thinking --tp 4 --speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4
h100x8 Qwen/Qwen3.5-4B --context-length 65536
h100x8 Qwen/Qwen3.5-35B-A3B --tp 2
h100x8 Qwen/Qwen3-VL-8B-Instruct --context-length 32768
h100x8 Qwen/Qwen3-VL-30B-A3B-Instruct --tp 2
h100x8 Qwen/Qwen2.5-VL-7B-Instruct
h100x8 google/gemma-3-12b-it --context-length 8192
h100x8 google/gemma-2-9b-it
h100x8 meta-llama/Llama-3.1-8B-Instruct --disable-cuda-graph --max-running-requests 64
h100x8 meta-llama/Llama-3.1-70B-Instruct --tp 4 --context-length 16384
h100x8 meta-llama/Llama-3.1-70B-Instruct --tp 4 --cuda-graph-max-bs 64
h100x8 meta-llama/Llama-4-Scout-17B-16E-Instruct --tp 8 --context-length 65536
h100x8 deepseek-ai/DeepSeek-V2-Lite --trust-remote-code
h100x8 deepseek-ai/DeepSeek-R1 --tp 8
h100x8 deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 --enable-dp-attention
h100x8 deepseek-ai/DeepSeek-R1 --tp 8 --speculative-algorithm EAGLE
h100x8 deepseek-ai/DeepSeek-V3.2 --tp 8
h100x8 openai/gpt-oss-20b
h100x8 openai/gpt-oss-120b --tp 2
h100x8 nvidia/NVIDIA-Nemotron-Nano-9B-v2
h100x8 nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16
h100x8 mistralai/Mixtral-8x7B-v0.1 --tp 2
h100x8 mistralai/Mistral-7B-Instruct-v0.3 --disable-radix-cache
h100x8 microsoft/phi-4 --mem-fraction-static 0.9
h100x8 facebook/opt-1.3b
h100x8 unsloth/GLM-4.7-Flash --context-length 32768
h100x8 MiniMaxAI/MiniMax-M2.5 --tp 8 --trust-remote-code
h100x8 moonshotai/Kimi-Linear-48B-A3B-Instruct --tp 2 --trust-remote-code
h100x8 Qwen/Qwen3-32B-AWQ --tp 2
h100x8 Qwen/Qwen3-8B --quantization fp8
h100x8 Qwen/Qwen3-8B --speculative-algorithm NGRAM
h100x8 Qwen/Qwen3-8B --speculative-algorithm STANDALONE --speculative-draft-model-path PrimeIntellect/Qwen3-0.6B
h100x8 Qwen/Qwen3-8B --dp 4
h100x8 Qwen/Qwen3-8B --enable-hierarchical-cache
h100x8 Qwen/Qwen3-8B --enable-torch-compile
h100x8 Qwen/Qwen3-8B --attention-backend triton --page-size 64
h100x8 Qwen/Qwen3-8B --disaggregation-mode decode
h100x8 Qwen/Qwen2.5-7B-Instruct --is-embedding
h100x8 Qwen/Qwen3-8B --context-length 100000
h100x8 Qwen/Qwen3-8B --tp 3
h100x8 Qwen/Qwen3-8B --tp-size x
h100x8 Qwen/Qwen3-8B --gpu-memory-utilization 0.9
h100x8 Qwen/Qwen3-8B --kv-cache-dtype fp8
h100x8 Qwen/Qwen3-8B --enable-dp-attention --dp 2 --tp 3
h100x8 Qwen/Qwen3-8B --chunked-prefill-size 1000 --page-size 64
h100x8 Qwen/Qwen3-8B --nnodes 3 --tp 4
h100x8 Qwen/Qwen3-8B --speculative-algorithm EAGLE3
h100x8 meta-llama/Llama-3.1-8B-Instruct --quantization awq
h100x8 deepseek-ai/DeepSeek-V2-Lite --trust-remote-code --attention-backend fa3 --page-size 16
h100x8 Qwen/Qwen3-8B --mem-fraction-static 1.5
4090x2 Qwen/Qwen3-8B
4090x2 Qwen/Qwen3-8B --tp 2 --max-running-requests 32
4090x2 Qwen/Qwen2.5-VL-7B-Instruct
4090x2 openai/gpt-oss-20b --context-length 16384
4090x2 meta-llama/Llama-3.1-8B-Instruct --chunked-prefill-size -1
4090x2 Qwen/Qwen3.5-4B
4090x2 google/gemma-3-4b-it
l4 Qwen/Qwen3-4B
l4 meta-llama/Llama-3.2-1B-Instruct --cuda-graph-bs 1 2 4 8
b200x8 deepseek-ai/DeepSeek-R1 --tp 8
b200x8 openai/gpt-oss-120b --tp 4
b200x8 Qwen/Qwen3-8B
b200x8 nvidia/Qwen3-235B-A22B-NVFP4 --tp 4
b200x8 Qwen/Qwen3-Next-80B-A3B-Thinking --tp 4
a100-40gbx4 meta-llama/Llama-3.1-70B-Instruct --tp 4
a100-40gbx4 Qwen/Qwen3-30B-A3B-FP8 --tp 2
h100x8 deepseek-ai/DeepSeek-V4-Flash --tp 8
h100x8 deepseek-ai/DeepSeek-V4-Flash --tp 4 --max-running-requests 64
h100x8 deepseek-ai/DeepSeek-V4-Flash --tp 8 --swa-full-tokens-ratio 0.2
h100x8 deepseek-ai/DeepSeek-V4-Flash --tp 8 --dp 8 --enable-dp-attention
h100x8 deepseek-ai/DeepSeek-V4-Flash --tp 8 --speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4
h200x8 deepseek-ai/DeepSeek-V4-Pro --tp 8
b200x8 deepseek-ai/DeepSeek-V4-Flash --tp 4 --dsv4-attn-backend trtllm
""".split("\n")[1:-1]


def answer_all(requests, answers):
    """In the engine's Python: all commands of one device, one process."""
    sys.path.insert(0, os.path.join(HERE, "../../shim/python"))
    import oomsight_ask as asking
    import oomsight_ask_sglang as engine
    os.environ["OOMSIGHT_ASK"] = "%d,%d" % (os.open(requests, os.O_RDONLY), os.open(answers, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644))
    asking.main(engine)


def ask(binary, python, models, out):
    answers = {}
    for device in dict.fromkeys(command.split()[0] for command in COMMANDS):
        asked = [command for command in COMMANDS if command.split()[0] == device]
        with open(out + ".asked", "w", encoding="utf-8") as file:
            for number, command in enumerate(asked):
                words = [os.path.join(models, os.path.basename(word)) if "/" in word else word for word in command.split()[1:]]
                count = device.rpartition("x")[2] if "x" in device else "1"
                file.write(json.dumps({"id": number, "argv": words, "env": {}, "count": int(count)}) + "\n")
        subprocess.run([binary, "dryrun", "--quiet", "--gpu", device, "--timeout", "3000", "--", python, os.path.abspath(__file__), "answer", out + ".asked", out + ".answers"],
                       check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, HF_HUB_OFFLINE="1"))
        with open(out + ".answers", encoding="utf-8") as file:
            answers.update(zip(asked, (json.loads(line) for line in file)))
    with open(out, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"command": command, "answer": answers.get(command)}) + "\n" for command in COMMANDS)
    for rest in (".asked", ".answers"):
        os.unlink(out + rest)


def planned(binary, release, command):
    """What plan says alone: its decision, the five figures and the length."""
    device, *words = command.split()
    run = subprocess.run([binary, "plan", "--json", "--offline", "--gpu", device, "--engine", "sglang=" + release, "--", "sglang", "serve"] + words,
                         capture_output=True, text=True, check=False)
    if not run.stdout:
        return {"decision": "none", "why": run.stderr[:200]}
    told = json.loads(run.stdout)
    refused = told["verdict"] == "refused" and told["phase"] != "kv_sizing"  # what does not fit is another question
    row = {"decision": "refused" if refused else "taken", "verdict": told["verdict"], "why": (told.get("why") or "")[:200]}
    own = (told.get("setup") or {}).get("own") or {}
    if not refused and own:
        row.update(figures=[own[name] for name in FIGURES], length=told["setup"]["max_model_len"])
    if not refused:
        row["attention"] = told.get("attention_backend")
    if not refused and (told.get("kv") or {}).get("bytes_per_token"):
        kept = own.get("compress_state_bytes")  # of requests; then a pool is whole pages
        row["tokens"] = int(SCALE / told["kv"]["bytes_per_token"]) if kept is None else int((SCALE - kept) / told["kv"]["bytes_per_token"]) // 256 * 256
    if not refused and told.get("weights"):
        row["param_bytes"] = told["weights"]["param_bytes"]
    return row


def engine_of(answer):
    """The same of the engine's answer."""
    row = {"decision": answer["verdict"], "stage": answer.get("stage"), "why": (answer.get("text") or "")[:200]}
    found = answer.get("values")
    if found:
        sizes = found["capture_sizes"]
        row.update(figures=[found["gpu_memory_utilization"], found["max_num_batched_tokens"], found.get("capture_top"), len(sizes), found["prefill_capture_sizes"]],
                   length=found["max_model_len"])
    for key, value in (("param_bytes", answer.get("param_bytes")), ("tokens", (answer.get("cache") or {}).get("tokens"))):
        if value is not None:
            row[key] = value
    return row


def same(mine, theirs):
    return mine.get("figures") == theirs.get("figures") and mine.get("length") == theirs.get("length")


def table(binary, answers, out):
    kept = {}
    if os.path.exists(out):
        with open(out, encoding="utf-8") as file:
            kept = {row["command"]: row["first"] for row in map(json.loads, file)}
    with open(answers, encoding="utf-8") as file, open(out + ".new", "w", encoding="utf-8") as rows:
        for line in file:
            asked = json.loads(line)
            command, answer = asked["command"], asked["answer"]
            row = {"command": command, "version": answer["version"], "first": kept.get(command) or planned(binary, answer["version"], command), "engine": engine_of(answer)}
            for key in ("values", "sizes_problem", "seconds"):
                if answer.get(key) is not None:
                    row["engine"][key] = answer[key]
            rows.write(re.sub(r"(/[\w.-]+){2,}/", "", json.dumps(row)) + "\n")  # no folder of this machine
    os.replace(out + ".new", out)
    return test(binary, out)


def test(binary, path):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    score = {word + name: 0 for word in ("first ", "") for name in ("decided", "resolved", "attention", "weights", "tokens", "of weights", "of tokens")}
    judged = [row for row in rows if row["engine"]["decision"] != "unknown"]
    taken = [row for row in judged if row["engine"]["decision"] == "taken"]
    for row in judged:
        now = planned(binary, row["version"], row["command"])
        for word, mine in (("first ", row["first"]), ("", now)):
            score[word + "decided"] += mine["decision"] == row["engine"]["decision"]
            score[word + "resolved"] += row in taken and same(mine, row["engine"])
            backend = row["engine"].get("values", {}).get("attention_backend")
            score[word + "attention"] += backend is not None and mine.get("attention") == backend
            if not word and backend and mine.get("attention") != backend:
                print("another attention backend: %s\n    engine: %s\n    plan:   %s" % (row["command"], backend, mine.get("attention")))
            for name, key in (("weights", "param_bytes"), ("tokens", "tokens")):
                if key in mine and key in row["engine"]:
                    score[word + "of " + name] += 1
                    score[word + name] += mine[key] == row["engine"][key]
                    if not word and mine[key] != row["engine"][key]:
                        print("%s otherwise: %s\n    engine: %s\n    plan:   %s" % (name, row["command"], row["engine"][key], mine[key]))
        if now["decision"] != row["engine"]["decision"]:
            print("decided otherwise: %s\n    engine: %s %s\n    plan:   %s %s" % (row["command"], row["engine"]["decision"], row["engine"]["why"], now["decision"], now["why"]))
        elif row in taken and not same(now, row["engine"]):
            print("resolved otherwise: %s\n    engine: %s %s\n    plan:   %s %s" % (row["command"], row["engine"]["figures"], row["engine"]["length"], now.get("figures"), now.get("length")))
    print("%d commands, %d judged, %d taken; the same decision %d (first %d), the same figures %d (first %d)" % (
        len(rows), len(judged), len(taken), score["decided"], score["first decided"], score["resolved"], score["first resolved"]))
    print("the same attention backend %d" % score["attention"])
    for name in ("weights", "tokens"):
        print("the same %s: %d of %d (first %d of %d)" % (name, score[name], score["of " + name], score["first " + name], score["first of " + name]))
    return int(any(score[name] < floor for name, floor in FLOORS.items()))


if __name__ == "__main__":
    sys.exit({"answer": answer_all, "ask": ask, "table": table, "test": test}[sys.argv[1]](*sys.argv[2:]))
