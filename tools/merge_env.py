#!/usr/bin/env python3
"""Merge dumps of the engine's environment variables (dump_env.py) into data/engines/vllm/env.json.

    merge_env.py OUTPUT INPUT...      an INPUT is a dump or an earlier OUTPUT

Only variables that move GPU memory, or decide which code path does, are kept; the lists below say why, by hand.
Variables of PyTorch, NCCL and CUDA are in the same file: they are not in the engine's table and have no versions.
"""

import json
import sys

from merge_flags import at_version, merge_series, version_key, without_empty

# Read by the engine itself.
ENGINE = {
    "VLLM_ATTENTION_BACKEND": "attention backend, so workspace and block size; a flag since 0.15",
    "VLLM_FLASH_ATTN_VERSION": "FlashAttention 2, 3 or 4",
    "VLLM_FLASH_ATTN_MAX_NUM_SPLITS_FOR_CUDA_GRAPH": "FlashAttention 3 split buffer in full graphs",
    "VLLM_USE_V1": "0.8 to 0.11 have two engines",
    "VLLM_USE_V2_MODEL_RUNNER": "another model runner: other persistent buffers and capture order",
    "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "graph memory is measured and taken off the KV budget",
    "VLLM_ENABLE_STARTUP_PLAN": "a recorded KV size replaces profiling",
    "VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE": "FlashInfer workspace, bytes",
    "VLLM_USE_FLASHINFER_SAMPLER": "sampler without the sorted copy of the logits",
    "VLLM_USE_TRTLLM_ATTENTION": "FlashInfer through TRT-LLM kernels",
    "VLLM_USE_TRTLLM_DECODE_ATTENTION": "FlashInfer through TRT-LLM kernels",
    "VLLM_USE_TRTLLM_RAGGED_DEEPSEEK_PREFILL": "MLA prefill kernel and its workspace",
    "VLLM_USE_CUDNN_PREFILL": "MLA prefill kernel and its workspace",
    "VLLM_DISABLE_FLASHINFER_PREFILL": "MLA prefill kernel and its workspace",
    "VLLM_USE_TRITON_FLASH_ATTN": "ROCm attention backend",
    "VLLM_V1_USE_PREFILL_DECODE_ATTENTION": "ROCm attention backend",
    "VLLM_ROCM_USE_AITER": "ROCm attention backend and MoE layout",
    "VLLM_MLA_DISABLE": "MLA models keep full heads in the KV cache",
    "VLLM_KV_CACHE_LAYOUT": "order of the KV cache's dimensions",
    "VLLM_SSM_CONV_STATE_LAYOUT": "order of the state cache's dimensions",
    "VLLM_SPARSE_INDEXER_MAX_LOGITS_MB": "logits of the sparse indexer, MB",
    "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE": "KV groups of chunked-local layers",
    "VLLM_PREFIX_CACHE_RETENTION_INTERVAL": "state blocks kept by prefix caching",
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "lets max-model-len exceed the config",
    "VLLM_PP_LAYER_PARTITION": "layers per pipeline rank",
    "VLLM_REPLICATE_EMBED": "embedding table on every rank",
    "VLLM_KIMI_K3_SHARD_SP_SHARED_EXPERT": "shared expert sharded instead of replicated",
    "VLLM_PLE_CPU_OFFLOAD": "n-gram embedding tables on the host",
    "VLLM_FUSED_MOE_CHUNK_SIZE": "tokens per MoE chunk, so MoE scratch",
    "VLLM_ENABLE_FUSED_MOE_ACTIVATION_CHUNKING": "whether MoE work is chunked",
    "VLLM_ENABLE_MOE_DP_CHUNK": "whether MoE work is chunked under data parallelism",
    "VLLM_MOE_DP_CHUNK_SIZE": "tokens per MoE chunk under data parallelism",
    "VLLM_MAX_TOKENS_PER_EXPERT_FP4_MOE": "scale buffer of FP4 MoE",
    "VLLM_ALL2ALL_BACKEND": "dispatch buffers of expert parallelism",
    "VLLM_DEEPEP_BUFFER_SIZE_MB": "DeepEP buffer, MB",
    "VLLM_FLASHINFER_MOE_BACKEND": "MoE kernel, weight layout and scratch",
    "VLLM_USE_FLASHINFER_MOE_FP16": "MoE kernel, weight layout and scratch",
    "VLLM_USE_FLASHINFER_MOE_FP8": "MoE kernel, weight layout and scratch",
    "VLLM_USE_FLASHINFER_MOE_FP4": "MoE kernel, weight layout and scratch",
    "VLLM_USE_FLASHINFER_MOE_INT4": "MoE kernel, weight layout and scratch",
    "VLLM_USE_FLASHINFER_MOE_MXFP4_BF16": "MoE kernel, weight layout and scratch",
    "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8": "MoE kernel, weight layout and scratch",
    "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS": "MoE kernel, weight layout and scratch",
    "VLLM_MXFP4_USE_MARLIN": "weights repacked for Marlin",
    "VLLM_MXFP4_EMULATION_DEQUANT_AT_LOAD": "weights widened at load",
    "VLLM_MXFP8_EMULATION_DEQUANT_AT_LOAD": "weights widened at load",
    "VLLM_QUARK_EMU_MEM_OPT": "weights widened at load",
    "VLLM_USE_NVFP4_CT_EMULATIONS": "weights widened at run time",
    "VLLM_NVFP4_GEMM_BACKEND": "weight layout and scratch",
    "VLLM_TEST_FORCE_FP8_MARLIN": "weights repacked for Marlin",
    "VLLM_DISABLED_KERNELS": "which quantised kernel, so weight layout",
    "VLLM_USE_TRITON_AWQ": "AWQ kernel and its scratch",
    "VLLM_USE_DEEP_GEMM": "scale layout, warm-up",
    "VLLM_MOE_USE_DEEP_GEMM": "scale layout, warm-up",
    "VLLM_SKIP_DEEP_GEMM_WARMUP": "warm-up at start",
    "VLLM_DEEP_GEMM_WARMUP": "warm-up at start",
    "VLLM_HUMMING_ONLINE_QUANT_CONFIG": "quantises weights at load",
    "VLLM_DISABLE_SHARED_EXPERTS_STREAM": "a copy of the input for the second stream",
    "VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD": "a copy of the input for the second stream",
    "VLLM_ALLREDUCE_USE_SYMM_MEM": "symmetric-memory all-reduce buffer",
    "VLLM_ALLREDUCE_USE_FLASHINFER": "FlashInfer all-reduce workspace",
    "VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC": "FlashInfer all-reduce workspace",
    "VLLM_FLASHINFER_ALLREDUCE_FUSION_THRESHOLDS_MB": "FlashInfer all-reduce workspace",
    "VLLM_FLASHINFER_ALLREDUCE_BACKEND": "FlashInfer all-reduce workspace",
    "VLLM_USE_NCCL_SYMM_MEM": "registered memory pool",
    "VLLM_DISABLE_PYNCCL": "one communicator less",
    "VLLM_SKIP_P2P_CHECK": "decides custom all-reduce and its buffers",
    "VLLM_DISTRIBUTED_USE_SPLIT_GROUP": "communicators shared or not",
    "VLLM_USE_DIRECT_DCP_A2A": "context-parallel buffers",
    "VLLM_USE_DIRECT_DCP_Q_GATHER": "context-parallel buffers",
    "VLLM_USE_DIRECT_DCP_KV_GATHER": "context-parallel buffers",
    "VLLM_DCP_Q_REPLICATE": "query weights on every rank",
    "VLLM_ENABLE_GEMM_RS": "fused reduce-scatter buffers",
    "VLLM_BATCH_INVARIANT": "turns several kernels and custom all-reduce off",
    "VLLM_USE_BREAKABLE_CUDAGRAPH": "another way to capture",
    "VLLM_DISABLE_PAD_FOR_CUDAGRAPH": "batch sizes seen by graphs",
    "VLLM_ENABLE_CUDAGRAPH_GC": "collection during capture",
    "VLLM_DISABLE_COMPILE_CACHE": "a cold compile can raise the profiled peak",
    "VLLM_ENABLE_INDUCTOR_MAX_AUTOTUNE": "tuning scratch",
    "VLLM_USE_AOT_COMPILE": "a cold compile can raise the profiled peak",
    "VLLM_WEIGHT_OFFLOADING_DISABLE_PIN_MEMORY": "host weights pinned or not",
    "VLLM_WEIGHT_OFFLOADING_DISABLE_UVA": "offloaded weights read in place or copied",
    "VLLM_WSL2_ENABLE_PIN_MEMORY": "pinned memory under WSL",
    "VLLM_USE_SIMPLE_KV_OFFLOAD": "host KV cache",
    "VLLM_CPU_KVCACHE_SPACE": "KV cache of the CPU backend, GiB",
    "VLLM_FASTSAFETENSORS_QUEUE_SIZE": "shard buffers on the device while loading",
    "VLLM_ROCM_SLEEP_MEM_CHUNK_SIZE": "sleep-mode chunk on ROCm, MB",
    "VLLM_MM_INPUT_CACHE_GIB": "host cache of preprocessed inputs",
    "VLLM_MAX_IMAGE_PIXELS": "largest image accepted",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "engine in a process of its own, with its own context",
    "VLLM_WORKER_MULTIPROC_METHOD": "fork or spawn: contexts per process",
    "VLLM_RAY_PER_WORKER_GPUS": "several workers on one device",
    "VLLM_DP_SIZE": "data parallel ranks when not given as a flag",
    "VLLM_DP_RANK_LOCAL": "which device",
    "VLLM_TARGET_DEVICE": "which platform",
    "VLLM_PLUGINS": "plugins may replace platform and models",
    "VLLM_USE_RUST_FRONTEND": "no Python frontend process",
    "VLLM_MODEL_REDIRECT_PATH": "model names mapped to local folders",
    "CUDA_VISIBLE_DEVICES": "which devices",
}

# Not read through the engine's table.
OTHERS = {
    "PYTORCH_CUDA_ALLOC_CONF": ("torch", "str", None, "caching allocator: expandable_segments, max_split_size_mb, ..."),
    "PYTORCH_ALLOC_CONF": ("torch", "str", None, "newer name of PYTORCH_CUDA_ALLOC_CONF (torch 2.9 and later)"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": ("torch", "bool", None, "every tensor is its own cudaMalloc"),
    "CUBLAS_WORKSPACE_CONFIG": ("torch", "str", None, "cuBLAS workspace per handle and stream"),
    "CUBLASLT_WORKSPACE_SIZE": ("torch", "int", None, "cuBLASLt workspace, KiB"),
    "TORCHINDUCTOR_MAX_AUTOTUNE": ("torch", "bool", None, "tuning scratch"),
    "TORCHINDUCTOR_COMPILE_THREADS": ("torch", "int", None, "host memory of compile workers"),
    "CUDA_MODULE_LOADING": ("cuda", "choice", "LAZY", "EAGER loads every kernel into the context"),
    "CUDA_DEVICE_MAX_CONNECTIONS": ("cuda", "int", None, "hardware queues"),
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": ("cuda", "str", None, "a limit below the device's total under MPS"),
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": ("cuda", "int", None, "fewer SMs, so smaller local-memory reserve"),
    "NVIDIA_VISIBLE_DEVICES": ("cuda", "str", None, "which devices or slices a container sees"),
    "NCCL_BUFFSIZE": ("nccl", "int", None, "bytes per channel buffer"),
    "NCCL_MAX_NCHANNELS": ("nccl", "int", None, "channel count"),
    "NCCL_MIN_NCHANNELS": ("nccl", "int", None, "channel count"),
    "NCCL_MAX_CTAS": ("nccl", "int", None, "channel count"),
    "NCCL_NVLS_ENABLE": ("nccl", "int", None, "NVLink SHARP buffers; the engine sets it"),
    "NCCL_CUMEM_ENABLE": ("nccl", "int", None, "buffers through the cuMem API; the engine sets it"),
    "NCCL_P2P_DISABLE": ("nccl", "int", None, "shared-memory transport, no custom all-reduce"),
    "NCCL_PROTO": ("nccl", "str", None, "which protocol buffers are used"),
    "NVSHMEM_SYMMETRIC_SIZE": ("nccl", "str", None, "symmetric heap of NVSHMEM (DeepEP, pplx)"),
}

FIELDS = ("kind", "default", "choices", "reads")
# How a bool is read: the probe words that mean true, and whether other words are errors or mean false.
READINGS = {
    (("1", "7"), False): "number",  # bool(int(text)); other words are errors
    (("1", "true", "True"), True): "one_or_true",  # letters of any size; anything else is false
    (("1",), True): "one",  # exactly "1"; anything else is false
}
HOST_DEPENDENT = ("VLLM_CPU_OMP_THREADS_BIND", "CUDA_VISIBLE_DEVICES")  # a default read from this machine


def read_dump(dump):
    kept = {}
    for variable in dump["variables"]:
        if variable["name"] in ENGINE:
            fields = {field: variable.get(field) for field in FIELDS}
            if variable["kind"] == "bool":
                words = tuple(variable["true_words"]), "word" in variable["false_words"]
                if words not in READINGS:
                    raise SystemExit(f"merge_env: {dump['version']}: {variable['name']}: read in a new way: {words}")
                fields["reads"] = READINGS[words]
            if variable["name"] in HOST_DEPENDENT:
                fields["default"] = None
            kept[variable["name"]] = without_empty(fields)
    return {dump["version"]: kept}


def read_table(table):
    versions = table["versions"]
    by_version = {version: {} for version in versions}
    for variable in table["variables"]:
        if variable["owner"] != "vllm":
            continue
        for version in versions:
            fields = at_version(variable, versions, version, versions[0])
            if fields is not None:
                by_version[version][variable["name"]] = {k: v for k, v in fields.items() if k in FIELDS}
    return by_version


def merge(by_version):
    versions = sorted(by_version, key=version_key)
    variables = []
    for name in sorted({name for kept in by_version.values() for name in kept} | OTHERS.keys()):
        if name in OTHERS:
            owner, kind, default, why = OTHERS[name]
            variables.append(without_empty({"name": name, "owner": owner, "kind": kind, "default": default, "why": why}))
            continue
        series = {v: by_version[v][name] for v in versions if name in by_version[v]}
        for record, _ in merge_series(versions, series):
            variables.append({"name": name, "owner": "vllm", **record, "why": ENGINE[name]})
    return {"schema": "oomsight.engine-env/1", "engine": "vllm", "versions": versions, "variables": variables}


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    by_version = {}
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        by_version.update(read_table(content) if "versions" in content else read_dump(content))
    table = merge(by_version)
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        rows = ",\n".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in table.pop("variables"))
        head = ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in table.items())
        out.write(f'{{\n{head},\n"variables":[\n{rows}\n]\n}}\n')
    seen = {name for kept in by_version.values() for name in kept}
    print(f"{len(table['versions'])} versions, {len(seen)} engine variables, {len(OTHERS)} others")
    for name in sorted(ENGINE.keys() - seen):
        print(f"{name} is in no version", file=sys.stderr)


if __name__ == "__main__":
    main()
