#!/usr/bin/env python3
"""What plan promises, started by the engine on the GPU it was promised for.

    tests/oracle/promises.py BINARY answers|cells [--count N] [--seed N] [--list] [--minutes N] [--results FILE]
    tests/oracle/promises.py BINARY again [--least STARTS TOKENS CELLS]     what plan says now of every line that is kept, without an engine

answers  The first suggested command of commands that lack memory, drawn by tests/plan/first_answers.py: a third names another checkpoint,
         a fifth is SGLang's. It starts, with the KV tokens that were promised. Without compilation and graphs.
cells    Attention backends: a model of two layers for each cell drawn of tests/rules/backends.tsv. The engine chooses the backend that plan
         names, and starts or refuses as plan says.

A line of promises.jsonl per start, as soon as it is there; a line whose command, GPU and promise are the same is not started again. --list
plans only. Each is a whole `oomsight dryrun` of the server, forked from one that has imported the engine (forked.py), a built-in model by its
name. Exit 77 without an engine, 1 when a promise was not kept."""
import argparse
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time

import engines
import forked
import sglang_beside

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "plan"))
import first_answers  # noqa: E402

RELEASE = {"vllm": "0.32.0", "sglang": "0.5.23"}
VLLM = ("vllm.entrypoints.cli.main", "vllm.entrypoints.cli.serve", "vllm.entrypoints.openai.api_server", "vllm.v1.engine.core", "vllm.v1.executor.uniproc_executor",
        "vllm.v1.executor.multiproc_executor", "vllm.v1.worker.gpu_worker", "vllm.v1.worker.gpu_model_runner", "vllm.v1.worker.gpu.model_runner", "transformers")
# Few, because an engine is imported for each; of 8.x, where no release compiles kernels with nvcc for minutes.
GPUS = {"vllm": ["rtx-4090", "a100-40gb", "rtx-3090", "l4"], "sglang": ["rtx-4090"]}
SECONDS = 300


def plan(binary, engine, gpu, words, data=()):
    done = subprocess.run([binary, "plan", "--offline", "--json", *data, "--gpu", gpu, "--engine", engine + "=" + RELEASE[engine], "--", *words], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout.startswith("{") else None


EAGER = {"vllm": ["--enforce-eager"], "sglang": sglang_beside.PLAIN}
# Their kernels are compiled for minutes on a machine without a GPU: mixers of state everywhere, experts from 8.9.
STATE = {"mamba_num_heads", "mamba_d_state", "ssm_state_size", "state_size", "linear_num_value_heads", "hybrid_override_pattern", "lin_attn_config", "linear_attn_config", "mamba_n_heads", "layers_block_type"}
# Their configs are code of the model (0.32.0 with Transformers 5.19), which a dry run by a name does not have.
CODE = {"baichuan", "bailing_moe", "chatglm", "deepseek", "deepseek_ref", "exaone", "internlm", "internlm2", "internlm3", "internvl_chat", "kimi_k2", "kimi_vl", "minicpm", "orion", "xverse"}
EXPERTS = {"num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size"}


def startable(words, catalogue, gpu):
    """A model whose config alone starts it, within a minute: no processor, no code of its own."""
    names = [word for word in words if word in catalogue]
    entry = catalogue.get(names[0]) if names else None
    while isinstance(entry, (str, dict)) and not (isinstance(entry, dict) and "config" in entry):
        entry = catalogue.get(entry if isinstance(entry, str) else entry.get("like") or entry.get("of"))
    config = (entry or {}).get("config", {})
    slow = STATE if gpu in ("a100-40gb", "rtx-3090") else STATE | EXPERTS
    return bool(names) and config.get("model_type") not in CODE and not ({"vision_config", "audio_config", "llm_config", "auto_map"} | slow) & set(config)


def answers(binary, count, seed):
    with open(os.path.join(ROOT, "data", "catalogue.json"), encoding="utf-8") as file:
        catalogue = json.load(file)
    rng, names = random.Random(seed), sorted(catalogue)
    wanted = {(engine, other): round(count * share) for (engine, other), share in
              {("vllm", True): 1 / 3, ("vllm", False): 7 / 15, ("sglang", False): 1 / 5}.items()}
    first_answers.GPUS = sorted(set(GPUS["vllm"] + GPUS["sglang"]))
    for _ in range(400 * count):
        if not any(wanted.values()):
            break
        gpu, words = first_answers.draw(rng, names)
        engine = words[0]
        if "x2" in gpu or gpu not in GPUS[engine] or not any(wanted[key] for key in wanted if key[0] == engine) or not startable(words, catalogue, gpu):
            continue
        words += EAGER[engine]
        said = plan(binary, engine, gpu, words)
        if not said or said["verdict"] in ("fits", "unknown") or said.get("likely") == "starts" or said["phase"] == "arguments" or not said["answers"]:
            continue
        first = said["answers"][0]
        key = (engine, "model" in first)
        if not wanted.get(key) or not first.get("command") or not startable(shlex.split(first["command"]), catalogue, gpu):
            continue
        wanted[key] -= 1
        yield {"set": "answers", "engine": engine, "gpu": gpu, "asked": shlex.join(words), "words": first["command"], "other": key[1],
               "promised": {"starts": True, "tokens": first["kv_tokens"]}}


CARDS = {75: "t4", 80: "a100-40gb", 86: "rtx-3090", 89: "rtx-4090", 90: "h100", 100: "b200", 120: "rtx-5090"}


def cell_config(head, feature):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": head,
              "intermediate_size": 2048, "vocab_size": 4096, "max_position_embeddings": 8192, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
              "tie_word_embeddings": True, "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2}
    if feature == "sliding":
        config.update(architectures=["MistralForCausalLM"], model_type="mistral", sliding_window=1024)
    if feature == "mla":
        config.update(architectures=["DeepseekV2ForCausalLM"], model_type="deepseek_v2", kv_lora_rank=512, q_lora_rank=None, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
                      num_key_value_heads=8, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=512, first_k_dense_replace=2, moe_layer_freq=1, rope_scaling=None)
        del config["head_dim"]
    if feature == "sinks":
        config.update(architectures=["GptOssForCausalLM"], model_type="gpt_oss", num_local_experts=4, num_experts_per_tok=2, sliding_window=128, attention_bias=True, swiglu_limit=7.0,
                      layer_types=["sliding_attention", "full_attention"], intermediate_size=512, rope_scaling=None)
    return config


def cell_place(folder, name):
    """The folder of a model by its name, "sliding-192"."""
    place = os.path.join(folder, name)
    os.makedirs(place, exist_ok=True)
    feature, _, head = name.rpartition("-")
    with open(os.path.join(place, "config.json"), "w", encoding="utf-8") as file:
        json.dump(cell_config(int(head), feature), file)
    return place


def promise_of_cell(binary, gpu, words):
    said = plan(binary, "vllm", gpu, words) or {}
    starts = said.get("likely") == "starts"
    return {"starts": starts, "backend": said.get("attention_backend"), "refused": None if starts else re.sub("^Expected error: ", "", said.get("why") or "")}


def again(binary, rows, least):
    """Lines of which plan says what the engine did: starts and refusals of answers, their tokens within 1 %, cells."""
    done = {"answers": [0, 0, 0], "cells": [0, 0, 0]}
    with tempfile.TemporaryDirectory() as folder:
        for row in rows.values():
            words = shlex.split(row["words"])
            if row["set"] == "cells":
                words[2] = cell_place(folder, words[2])
                now = dict(row, promised=promise_of_cell(binary, row["gpu"], words))
                right = kept(now)
            else:
                with tempfile.TemporaryDirectory() as devices:
                    data = sglang_beside.without_first_kernel(devices, row["gpu"]) if row["engine"] == "sglang" and not row.get("first_kernel") else ()
                    said = plan(binary, row["engine"], row["gpu"], words, data) or {"kv": {}}
                now = dict(row, promised={"starts": said.get("likely") == "starts", "tokens": said["kv"].get("tokens") or 0})
                right = now["promised"]["starts"] == row["said"]["starts"]
            counts = done[row["set"]]
            counts[0] += 1
            counts[1] += right
            counts[2] += row["set"] == "answers" and near(now)
            if not right or (row["set"] == "answers" and row["said"]["starts"] and not near(now)):
                print(shown(now))
    (answered, starts, tokens), (celled, cells_right, _) = done["answers"], done["cells"]
    print("%d answers: %d start or fail as planned, KV tokens within 1 %% in %d; %d cells: %d as planned" % (answered, starts, tokens, celled, cells_right))
    return 0 if starts >= least[0] and tokens >= least[1] and cells_right >= least[2] else 1


def cells(binary, count, seed, folder):
    rng, seen = random.Random(seed), set()
    while len(seen) < count:
        capability, feature = rng.choice(sorted(CARDS)), rng.choice(["plain", "plain", "sliding", "mla", "sinks"])
        head = 0 if feature == "mla" else 64 if feature == "sinks" else rng.choice([32, 64, 80, 96, 128, 160, 192, 256, 512])
        kv = rng.choice(["auto", "auto", "fp8", "fp8_e4m3", "fp8_e5m2"])
        backend = rng.choice([None, None, None, "FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "TRITON_MLA", "FLASHMLA", "FLASH_ATTN_MLA", "CUTLASS_MLA"])
        if backend and ("MLA" in backend) != (feature == "mla") or (capability, feature, head, kv, backend) in seen:
            continue
        seen.add((capability, feature, head, kv, backend))
        place = cell_place(folder, "%s-%d" % (feature, head))
        words = ["vllm", "serve", place, "--enforce-eager", "--max-model-len", "4096", "--kv-cache-dtype", kv] + (["--attention-backend", backend] if backend else [])
        if capability < 80:
            words += ["--dtype", "half"]
        yield {"set": "cells", "engine": "vllm", "gpu": CARDS[capability], "words": shlex.join(words).replace(folder + "/", ""), "place": folder,
               "promised": promise_of_cell(binary, CARDS[capability], words)}


def key(row):
    return row["set"], row["engine"], row["gpu"], row["words"]


def start(binary, venv, programs, row):
    words = shlex.split(row["words"])
    if "place" in row:
        words[2] = os.path.join(row["place"], words[2])
    environment = {"PATH": programs + ":" + engines.environment(venv)["PATH"]}
    outcome = engines.dryrun(binary, venv, ["--gpu", row["gpu"]], words, environment, timeout=SECONDS)
    fits = bool(outcome.report) and outcome.report["verdict"] == "fits"
    found = re.findall(r"Using (?:AttentionBackendEnum\.)?([A-Z_0-9]+) (?:attention |MLA )?backend", outcome.log)
    errors = [line for line in outcome.log.splitlines() if re.search(r"\w+(Error|Exception)(: |$)", line) and " WARNING " not in line and "initialization failed" not in line]
    return {"starts": fits, "tokens": ((outcome.report or {}).get("kv") or {}).get("tokens"), "backend": found[0] if found else (outcome.report or {}).get("attention_backend"),
            "error": None if fits else re.sub(r"^.*?(\w+(Error|Exception)(: |$))", r"\1", errors[-1])[:300] if errors else "code %d" % outcome.code, "seconds": round(outcome.seconds)}


def alike(promised, said):
    """The same refusal: the sentence begins with the same words, and names the same reasons."""
    words = [re.findall(r"[a-z0-9_]+", re.sub(r"^\w+(Error|Exception): |AttentionBackendEnum\.|AttentionSelectorConfig", "", text or "").lower()) for text in (promised, said)]
    return bool(words[0]) and (words[0][:12] == words[1][:12] or (said == "AssertionError" and words[0][0] == "assert"))


def kept(row):
    promised, said = row["promised"], row["said"]
    if row["set"] == "answers":
        return said["starts"]
    return promised["starts"] == said["starts"] and (promised["backend"] == said["backend"] if said["starts"] else alike(promised["refused"], said["error"]))


def near(row):
    promised, tokens = row["promised"].get("tokens"), row["said"].get("tokens")
    return bool(tokens) and row["said"]["starts"] and abs(promised - tokens) <= 0.01 * tokens


def shown(row):
    said, promised = row["said"], row["promised"]
    what = "%s of %s tokens" % (promised["tokens"], said["tokens"]) if row["set"] == "answers" else "%s, %s" % (promised["backend"] or promised["refused"], said["backend"])
    return "%s %s %s -- %s: %s %s" % ("ok  " if kept(row) and (row["set"] == "cells" or near(row)) else "FAIL", row["engine"], row["gpu"], row["words"], what, said["error"] or "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("set", choices=("answers", "cells", "again"))
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--least", type=int, nargs=3, default=(0, 0, 0))
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--results", default=os.path.join(HERE, "promises.jsonl"))
    options = parser.parse_args()
    binary, until = os.path.abspath(options.binary), time.time() + 60 * options.minutes
    if options.set == "again":
        return again(binary, engines.read_results(options.results, key), options.least)
    found = {"vllm": engines.venvs().get(RELEASE["vllm"]), "sglang": sglang_beside.environments().get(RELEASE["sglang"])}
    if not any(found.values()) and not options.list:
        print("no engine in", engines.VENVS)
        return engines.SKIP
    rows = engines.read_results(options.results, key)
    with tempfile.TemporaryDirectory() as folder:
        drawn = list(answers(binary, options.count or 30, options.seed) if options.set == "answers" else cells(binary, options.count or 40, options.seed, folder))
        todo = [row for row in drawn if key(row) not in rows or rows[key(row)]["promised"] != row["promised"]]
        if options.list:
            for row in drawn:
                print(row["engine"], row["gpu"], row["words"], row["promised"], "" if row in todo else "(known)")
            return 0
        for engine, gpu in sorted({(row["engine"], row["gpu"]) for row in todo}):
            if not found[engine] or time.time() > until:
                continue
            with forked.Engine(binary, found[engine], engines.environment(found[engine]), gpu, VLLM if engine == "vllm" else sglang_beside.IMPORTED, engine) as programs:
                for row in todo:
                    if (row["engine"], row["gpu"]) != (engine, gpu) or time.time() > until:
                        continue
                    row.update(said=start(binary, found[engine], programs, row), first_kernel=True)
                    before = rows.get(key(row))
                    if before and options.set == "answers":  # the promise of another program
                        row["before"] = before.get("before", before["promised"])
                    row.pop("place", None)
                    rows[key(row)] = row
                    print(shown(row), flush=True)
                    with open(options.results + ".new", "w", encoding="utf-8") as file:
                        file.writelines(json.dumps(rows[name]) + "\n" for name in sorted(rows))
                    os.replace(options.results + ".new", options.results)
        started = [rows[key(row)] for row in drawn if key(row) in rows]
        for row in started:
            if not kept(row) or (row["set"] == "answers" and not near(row)):
                print(shown(row))
    right = sum(map(kept, started))
    print("%s: %d of %d started, %d as promised%s (seed %d)" % (options.set, len(started), len(drawn), right,
          ", KV tokens within 1 % in " + str(sum(map(near, started))) if options.set == "answers" else "", options.seed))
    return 0 if right == len(drawn) else 1


if __name__ == "__main__":
    sys.exit(main())
