#!/usr/bin/env python3
"""Starts of a release that the data does not have, planned with and without what `oomsight learn --probe` read of it.

    learned_starts.py jobs MODELS FOLDER          FOLDER/starts.jsonl for tools/oracle_zygote.py: kinds that probes do not resemble among them;
                                                  FOLDER/models/qwen3_vl is by vision_models.py, because a processor is the engine's to make
    learned_starts.py table BINARY VERSION DATA CACHE FOLDER/starts.jsonl RESULTS.jsonl OUT.jsonl
    learned_starts.py page OUT.jsonl

DATA is of `tools/older.py`, CACHE the XDG_CACHE_HOME that `oomsight learn --probe --data DATA` wrote to, RESULTS what the starts told, under `oomsight dryrun --gpu h100
--outside 0`. Standard library only."""
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tools"))

LENGTH = 4096
# (kind, model, flags beside --enforce-eager, requests, tokens)
STARTS = [
    ("dense", "Qwen3-8B", {}, 256, 2048), ("dense", "gemma-2-9b-it", {}, 1024, 8192),
    ("MoE", "Qwen3-30B-A3B", {}, 256, 2048), ("hybrid", "Qwen3-Next-80B-A3B-Thinking", {}, 256, 2048),
    ("vision", "qwen3_vl", {}, 256, 8192), ("MLA", "DeepSeek-V2-Lite", {}, 1024, 8192),
    ("gpt-oss", "gpt-oss-20b", {}, 1024, 8192), ("Mamba2", "NVIDIA-Nemotron-Nano-9B-v2", {}, 256, 8192),
    ("EAGLE", "Llama-3.1-8B-Instruct", {"speculative_config": {"method": "eagle", "model": "DRAFT", "num_speculative_tokens": 3}}, 1024, 8192),
    ("MTP", "GLM-4.7", {"speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}, 256, 8192),
    ("LoRA", "Llama-3.1-8B-Instruct", {"enable_lora": True, "max_loras": 4, "max_lora_rank": 32}, 1024, 8192),
    ("pooling", "Qwen3-8B", {"runner": "pooling"}, 1024, 8192)]
DRAFT = {"architectures": ["EagleLlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 1,
         "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
         "max_position_embeddings": 131072, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "vocab_size": 128256,
         "bos_token_id": 128000, "eos_token_id": 128001}


def jobs(models, folder):
    import oracle
    with open(os.path.join(folder, "starts.jsonl"), "w", encoding="utf-8") as file:
        for kind, name, more, requests, tokens in STARTS:
            place = os.path.join(folder, "models", name)
            if kind != "vision" and not os.path.exists(place):
                with open(os.path.join(models, name, "config.json"), encoding="utf-8") as text:
                    config = json.load(text)
                shutil.copytree(os.path.join(models, name), place)
                with open(os.path.join(place, "config.json"), "w", encoding="utf-8") as text:
                    json.dump(oracle.cut(config, oracle.least_layers(config)), text)
            more = json.loads(json.dumps(more).replace("DRAFT", os.path.join(folder, "models", "draft")))
            engine = dict({"max_model_len": LENGTH, "max_num_batched_tokens": tokens, "max_num_seqs": requests, "gpu_memory_utilization": 0.9, "enforce_eager": True}, **more)
            file.write(json.dumps({"key": kind + "/" + name, "model": place, "engine": engine, "text": kind != "vision", "only": "kv"}) + "\n")
    os.makedirs(os.path.join(folder, "models", "draft"), exist_ok=True)
    with open(os.path.join(folder, "models", "draft", "config.json"), "w", encoding="utf-8") as text:
        json.dump(DRAFT, text)


def words_of(job):
    command = ["vllm", "serve", job["model"]]
    for key, value in job["engine"].items():
        command += ["--" + key.replace("_", "-")] + ([] if value is True else [value if isinstance(value, str) else json.dumps(value)])
    return command


def planned(binary, version, data, cache, job):
    """Bytes that a plan leaves for the KV cache, and their range, without what is outside of PyTorch: a simulated GPU has none."""
    run = subprocess.run([binary, "plan", "--json", "--offline", "--data", data, "--gpu", "h100", "--vllm", version, "--"] + words_of(job), capture_output=True,
                         text=True, check=False, env=dict(os.environ, XDG_CACHE_HOME=cache))
    told = json.loads(run.stdout) if run.stdout else {}
    rows = next((phase["holds"] for phase in told.get("phases", ()) if phase["phase"] == "kv_sizing"), ())
    own = sum(row["bytes"] for row in rows if row["owner"] in ("weights", "activation peak", "batch buffers", "graph estimate"))
    if not own:
        return {"why": told.get("why") or run.stderr.strip()}
    return {"bytes": told["budget_bytes"] - own, "low": told["kv"].get("low"), "high": told["kv"].get("high"), "verdict": told["verdict"]}


def table(binary, version, data, cache, starts, results, out):
    with open(results, encoding="utf-8") as file:
        seen = {row["key"]: row for row in map(json.loads, file)}
    with open(starts, encoding="utf-8") as file, open(out, "w", encoding="utf-8") as rows:
        for job in map(json.loads, file):
            told = seen.get(job["key"], {})
            rows.write(json.dumps({"key": job["key"], "version": version, "engine": told.get("available_bytes"), "error": told.get("error"), "requests": job["engine"]["max_num_seqs"],
                                   "tokens": job["engine"]["max_num_batched_tokens"], "peak_bytes": told.get("peak_bytes"), "runner": told.get("runner"),
                                   "first": planned(binary, version, data, "/nowhere", job), "learned": planned(binary, version, data, cache, job)}) + "\n")


def page(path):
    print("| start | requests | tokens | engine, GiB | without | with its terms |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    with open(path, encoding="utf-8") as file:
        for row in map(json.loads, file):
            cells = ["%+.2f %%" % (100 * (row[which]["bytes"] / row["engine"] - 1)) if row["engine"] and "bytes" in row[which] else "-" for which in ("first", "learned")]
            print("| %s | %d | %d | %s | %s |" % (row["key"].replace("/", ", "), row["requests"], row["tokens"],
                                                "%.3f" % (row["engine"] / 2**30) if row["engine"] else row["error"] or "not started", " | ".join(cells)))


if __name__ == "__main__":
    {"jobs": jobs, "table": table, "page": page}[sys.argv[1]](*sys.argv[2:])
