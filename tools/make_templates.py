#!/usr/bin/env python3
"""Where the sentences of the sources stand: make_templates.py HARVEST.json... [--out data/explain/templates.json]

HARVEST is what tools/harvest_messages.py wrote. Of each sentence the longest constant piece becomes a literal, and the place in the
source gives the stage and the cause of it: the table below is of modules and functions, not of sentences. Whether a line says that
memory lacks is left to signals.json and to the grammar; what those know is not taken twice."""

import argparse
import json
import os
import re

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "explain")
LEAST = 20  # bytes of a literal
# They go on with something else, ask for something else, or are about the shared memory of a kernel.
NO_FAILURE = re.compile(r"fall(?:s|ing)? ?back|retrying|skipping|\bcan OOM|may |might |disabled|unknown|reducing|import|too large to cache|shared[- ]memory (?:usage|size|capacity|exceeds)|"
                        r"sm120|workspace (?:is )?too small|head_dim|granularity|allocation properties|unable to register|registering|to register|user buffer|double register|file size|"
                        r"max object size|region count|numa node|multicast|buffer_size_bytes|worker area|kernel warmup|after eviction|skipping reorder|device name|device description|"
                        r"memory entry|weight cache daemon|Unable to connect|Unable to get|prefixed|guest-host|--max-msg|not in map|table|temp mxfp8|temp symm|because there|should be|size of indices|smaller than required|device-loaded|simulated|stream event|error reading|an error was|bucketing|long context length|we instantiate|explicitly specified", re.I)
NOT_PLACES = re.compile(r"(?:^|/)(?:e2e_test|perftest|contrib|multimodal_gen|scripts?|bench\w*|windows\.cc|ggml-(?:et|virtgpu|rpc|zdnn|openvino)|spacemit|doca[-\w]*|custom_kernels|storage|integration|\w+_test\.go)(?:/|$|\.)|_test\.go")
# source, place (path and function), stage, cause
PLACES = [
    ("sglang", r"bootstrap\.py|init_torch_distributed", "init_free_memory_check", "other_process_holds_memory"),
    ("sglang", r"kv_cache_configurator|mamba_cache", "kv_sizing", "state_cache_slots"),
    ("sglang", r"pool_configurator|alloc_memory_pool|init_memory_pool|profile_max_num_token|unified_memory_pool", "kv_sizing", "gmu_too_low"),
    ("sglang", r"pool_host|memory_pool_host|kvcache_offload", "host_memory", "host_ram"),
    ("sglang", r"alloc_\w*extend", "runtime_prefill", "gmu_too_high_leaves_no_headroom"),
    ("sglang", r"mem_cache/|schedule_batch|disaggregation/|decode", "runtime_other", "gmu_too_high_leaves_no_headroom"),
    ("sglang", r"model_loader/", "weight_load", "weights_exceed_gpu"),
    ("sglang", r"moe_runner|layers/", "runtime_prefill", "activation_peak"),
    ("vllm", r"cpu_worker", "host_memory", "host_ram"),
    ("vllm", r"shm_broadcast|shm_object", "distributed_init", "shm_too_small"),
    ("vllm", r"resolve_cudagraph_mode", "kv_sizing", "state_cache_slots"),
    ("vllm", r"kv_cache_utils|cache_engine|raise_if_cache_size_invalid", "kv_sizing", "gmu_too_low"),
    ("vllm", r"_dummy_(?:sampler|pooler)", "sampler_warmup", "logits_peak"),
    ("vllm", r"request_memory", "init_free_memory_check", "other_process_holds_memory"),
    ("vllm", r"gpu_ipc_memory|multimodal/", "runtime_prefill", "mm_encoder_peak"),
    ("vllm", r"block_manager|scheduler|block_pool", "runtime_other", "context_too_long_for_kv"),
    ("vllm", r"kv_transfer|kv_offload|ec_transfer", "runtime_other", None),
    ("vllm-ascend", r"_init_device", "init_free_memory_check", "other_process_holds_memory"),
    ("lmdeploy", r"_update_num_gpu_blocks|_reserve_state", "kv_sizing", "gmu_too_low"),
    ("lmdeploy", r"_reserve_runtime", "kv_sizing", "activation_peak"),
    ("lmdeploy", r"block_manager", "runtime_other", "context_too_long_for_kv"),
    ("tgi", r"launcher/", "weight_load", "weights_exceed_gpu"),
    ("tgi", r"warmup", "profile_run", "activation_peak"),
    ("tgi", r"backends/", "kv_sizing", "context_too_long_for_kv"),
    ("nccl", r"linux\.cc", "distributed_init", "shm_too_small"),
    ("nccl", r".", "distributed_init", "nccl_buffers"),
    ("nvshmem", r".", "distributed_init", "nccl_buffers"),
    ("llama.cpp", r"kv-cache|memory-recurrent|dsv4", "kv_alloc", "context_too_long_for_kv"),
    ("llama.cpp", r"llama-context|ggml-alloc|ggml-backend\.cpp", "kv_alloc", "activation_peak"),
    ("llama.cpp", r"llama-model|fit\.cpp", "weight_load", "weights_exceed_gpu"),
    ("llama.cpp", r"adapter", "weight_load", "lora"),
    ("ollama", r"llm/|server/sched", "weight_load", "weights_exceed_gpu"),
]
ENGINES = {"vllm", "vllm-ascend", "sglang", "tgi", "lmdeploy", "llama.cpp", "ollama"}


def place_of(row):
    where = row["file"] + " " + row["function"]
    for source, pattern, stage, cause in PLACES:
        if source == row["source"] and re.search(pattern, where):
            return stage, cause
    return None, None


def literal_of(text):
    pieces = [p.strip(" .,:;()[]{}'\"`=-") for p in re.split(r"\{\}|%\S|`[^`]*`|\\", text)]
    return max(pieces, key=len)[:90].strip()


def known_literals():
    with open(os.path.join(DATA, "signals.json"), encoding="utf-8") as file:
        return [l.lower() for s in json.load(file)["signals"] if s.get("phase") or s["kind"] in ("fault", "mute") for l in s["literals"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("harvest", nargs="+")
    parser.add_argument("--out")
    args = parser.parse_args()
    known, rows = known_literals(), {}
    for path in args.harvest:
        with open(path, encoding="utf-8") as file:
            for row in json.load(file):
                if NO_FAILURE.search(row["text"]) or NOT_PLACES.search(row["file"]):
                    continue
                literal = literal_of(row["text"])
                low = literal.lower()
                if len(literal) < LEAST or any(k in row["text"].lower() for k in known):
                    continue
                stage, cause = place_of(row)
                if not stage:
                    continue
                old = rows.get((row["source"], low))
                if old:
                    old["since"], old["until"] = min(old["since"], row["since"]), max(old["until"], row["until"])
                    continue
                slug = "-".join(re.findall(r"[a-z0-9]+", low)[:5])
                new = {"id": row["source"] + ":" + slug, "kind": "place", "literals": [literal]}
                if row["source"] in ENGINES:
                    new["engine"] = row["source"]
                new["phase"] = stage
                if cause:
                    new["cause"] = cause
                new.update(source=row["file"] + (":" + row["function"] if row["function"] else ""), since=row["since"], until=row["until"])
                rows[row["source"], low] = new
    lines = ["  " + json.dumps(r, ensure_ascii=False) for _, r in sorted(rows.items())]
    seen, out = set(), []
    for line in lines:
        name = json.loads(line)["id"]
        if name not in seen:
            out.append(line)
        seen.add(name)
    text = '{\n "schema": "oomsight.templates/1",\n "signals": [\n' + ",\n".join(out) + "\n ]\n}\n"
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(text)
    print(f"make_templates: {len(out)} sentences, {len(text)} bytes")


if __name__ == "__main__":
    main()
