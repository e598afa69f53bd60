#!/usr/bin/env python3
"""Merge what releases say of their environment variables into data/engines/<engine>/env.json.

    merge_env.py OUTPUT INPUT...      an INPUT is a dump (dump_env.py), a list of names (list_env.py) or an earlier OUTPUT

Every name of every release's table is kept. Those that move GPU memory, or decide which code does, have a `why`; of the
others `memory` says whether they are known to leave it alone (`none`) or nobody looked (`open`). All of that is by hand,
below. Variables of PyTorch, NCCL and CUDA are in the same file: they are not in the engine's table and have no versions.
"""

import json
import re
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
    "VLLM_MAX_IMAGE_PIXELS": "largest image accepted",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "engine in a process of its own, with its own context",
    "VLLM_RAY_PER_WORKER_GPUS": "several workers on one device",
    "VLLM_DP_SIZE": "data parallel ranks when not given as a flag",
    "VLLM_DP_RANK_LOCAL": "which device",
    "VLLM_TARGET_DEVICE": "which platform",
    "VLLM_PLUGINS": "plugins may replace platform and models",
    "VLLM_USE_RUST_FRONTEND": "no Python frontend process",
    "VLLM_MODEL_REDIRECT_PATH": "model names mapped to local folders",
}

# In the engine's table, and known to leave the memory of an NVIDIA GPU alone: logs, addresses, limits of requests, media,
# tools, builds, caches on disk, host memory.
NONE = frozenset("""
CUDA_VISIBLE_DEVICES VLLM_MM_INPUT_CACHE_GIB VLLM_WORKER_MULTIPROC_METHOD
CMAKE_BUILD_TYPE CUDA_HOME FORCE_COLOR GPT_OSS_SYSTEM_TOOL_MCP_LABELS K_SCALE_CONSTANT LD_LIBRARY_PATH
LOCAL_RANK MAX_JOBS MOONCAKE_PREFERRED_SEGMENT MOONCAKE_REQUESTER_LOCAL_HOSTNAME NO_COLOR NVCC_THREADS
Q_SCALE_CONSTANT S3_ACCESS_KEY_ID S3_ENDPOINT_URL S3_SECRET_ACCESS_KEY VERBOSE VLLM_ALLOW_INSECURE_SERIALIZATION
VLLM_ALLOW_RUNTIME_LORA_UPDATING VLLM_API_KEY VLLM_ASSETS_CACHE VLLM_ASSETS_CACHE_MODEL_CLEAN
VLLM_AUDIO_FETCH_TIMEOUT VLLM_BUILD_COMMIT VLLM_BUILD_PIPELINE VLLM_BUILD_URL VLLM_CACHE_ROOT
VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT VLLM_CI_USE_S3 VLLM_COMPILE_CACHE_SAVE_FORMAT VLLM_CONFIGURE_LOGGING
VLLM_CONFIG_ROOT VLLM_CUSTOM_SCOPES_FOR_PROFILING VLLM_DEBUG_DUMP_PATH VLLM_DEBUG_LOG_API_SERVER_RESPONSE
VLLM_DEBUG_MFU_METRICS VLLM_DEBUG_WORKSPACE VLLM_DISABLE_LOG_LOGO VLLM_DISABLE_REQUEST_ID_RANDOMIZATION
VLLM_DOCKER_BUILD_CONTEXT VLLM_DO_NOT_TRACK VLLM_DP_MASTER_IP VLLM_DP_MASTER_PORT VLLM_DP_RANK
VLLM_EC_SIDE_CHANNEL_HOST VLLM_EC_SIDE_CHANNEL_PORT VLLM_ENABLE_COHERE_API VLLM_ENABLE_RESPONSES_API_STORE
VLLM_ENFORCE_STRICT_TOOL_CALLING VLLM_ENGINE_ITERATION_TIMEOUT_S VLLM_ENGINE_READY_TIMEOUT_S
VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR VLLM_FLAT_LOGPROBS VLLM_GC_DEBUG
VLLM_GPT_OSS_HARMONY_SYSTEM_INSTRUCTIONS VLLM_GPT_OSS_SYSTEM_TOOL_MCP_LABELS VLLM_GPT_OSS_USE_CONTAINER_TOOL
VLLM_GPU_NIC_PCIE_MAPPING VLLM_GPU_SYNC_CHECK VLLM_HOST_IP VLLM_HTTP_TIMEOUT_KEEP_ALIVE VLLM_IMAGE_FETCH_TIMEOUT
VLLM_IMAGE_TAG VLLM_KEEP_ALIVE_ON_ENGINE_DEATH VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES VLLM_LOGGING_COLOR
VLLM_LOGGING_CONFIG_PATH VLLM_LOGGING_LEVEL VLLM_LOGGING_PREFIX VLLM_LOGGING_STREAM
VLLM_LOGITS_PROCESSOR_THREADS VLLM_LOG_BATCHSIZE_INTERVAL VLLM_LOG_MODEL_INSPECTION VLLM_LOG_STATS_INTERVAL
VLLM_LOOPBACK_IP VLLM_LORA_RESOLVER_CACHE_DIR VLLM_LORA_RESOLVER_HF_REPO_LIST VLLM_MAIN_CUDA_VERSION
VLLM_MAX_AUDIO_CLIP_FILESIZE_MB VLLM_MAX_AUDIO_DECODE_BYTES VLLM_MAX_AUDIO_DECODE_DURATION_S
VLLM_MAX_AUDIO_PREPROCESS_WORKERS VLLM_MAX_BAD_WORDS_TOTAL_TOKENS VLLM_MAX_COMPLETION_PROMPTS
VLLM_MAX_EMBED_DECODE_BYTES VLLM_MAX_MEDIA_DOWNLOAD_SIZE_MB VLLM_MAX_NUM_BAD_WORDS VLLM_MAX_N_SEQUENCES
VLLM_MAX_STOP_STRINGS VLLM_MEDIA_CACHE VLLM_MEDIA_CACHE_MAX_SIZE_MB VLLM_MEDIA_CACHE_TTL_HOURS
VLLM_MEDIA_CONNECTOR VLLM_MEDIA_FETCH_MAX_RETRIES VLLM_MEDIA_LOADING_THREAD_COUNT VLLM_MEDIA_URL_ALLOW_REDIRECTS
VLLM_MM_HASHER_ALGORITHM VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT VLLM_MOONCAKE_BOOTSTRAP_PORT
VLLM_MOONCAKE_CONNECTOR_TIMEOUT VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO VLLM_MOONCAKE_LOAD_RECV_THREADS
VLLM_MOONCAKE_STORE_TIER_LOG VLLM_MORIIO_CONNECTOR_READ_MODE VLLM_MORIIO_NUM_WORKERS VLLM_MORIIO_POST_BATCH_SIZE
VLLM_MORIIO_QP_PER_TRANSFER VLLM_MQ_MAX_CHUNK_BYTES_MB VLLM_MSGPACK_ZERO_COPY_THRESHOLD VLLM_NCCL_INCLUDE_PATH
VLLM_NIC_SELECTION_VARS VLLM_NIXL_ABORT_REQUEST_TIMEOUT VLLM_NIXL_SIDE_CHANNEL_HOST VLLM_NIXL_SIDE_CHANNEL_PORT
VLLM_NO_DEPRECATION_WARNING VLLM_NO_USAGE_STATS VLLM_NVTX_SCOPES_FOR_PROFILING
VLLM_OBJECT_STORAGE_SHM_BUFFER_NAME VLLM_P2P_HANDSHAKE_TIMEOUT_S VLLM_P2P_IDLE_TIMEOUT_S VLLM_P2P_MAX_PEERS
VLLM_P2P_SIDE_CHANNEL_HOST VLLM_P2P_SIDE_CHANNEL_PORT VLLM_PATTERN_MATCH_DEBUG VLLM_PORT
VLLM_PROCESS_NAME_PREFIX VLLM_PROFILER_DELAY_ITERS VLLM_PROFILER_MAX_ITERS VLLM_RAY_DP_PACK_STRATEGY
VLLM_RAY_DP_PLACEMENT_NODE_IPS VLLM_RAY_EXTRA_ENV_VARS_TO_COPY VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY
VLLM_REGEX_COMPILATION_TIMEOUT_S VLLM_RINGBUFFER_WARNING_INTERVAL VLLM_RPC_BASE_PATH VLLM_RPC_TIMEOUT
VLLM_RUST_FRONTEND_PATH VLLM_SERVER_DEV_MODE VLLM_SKIP_MODEL_NAME_VALIDATION
VLLM_SKIP_PRECOMPILED_VERSION_SUFFIX VLLM_SKIP_VERSION_SUFFIX VLLM_SLEEP_WHEN_IDLE VLLM_SYSTEM_START_DATE
VLLM_TOOL_JSON_ERROR_AUTOMATIC_RETRY VLLM_TOOL_PARSE_REGEX_TIMEOUT_SECONDS VLLM_TORCH_CUDA_PROFILE
VLLM_TORCH_PROFILER_DIR VLLM_TORCH_PROFILER_DISABLE_ASYNC_LLM VLLM_TORCH_PROFILER_DUMP_CUDA_TIME_TOTAL
VLLM_TORCH_PROFILER_RECORD_SHAPES VLLM_TORCH_PROFILER_USE_GZIP VLLM_TORCH_PROFILER_WITH_FLOPS
VLLM_TORCH_PROFILER_WITH_PROFILE_MEMORY VLLM_TORCH_PROFILER_WITH_STACK VLLM_TRACE_FUNCTION VLLM_USAGE_SOURCE
VLLM_USAGE_STATS_SERVER VLLM_USE_EXPERIMENTAL_PARSER_CONTEXT VLLM_USE_FASTOKENS VLLM_USE_MODELSCOPE
VLLM_USE_PRECOMPILED VLLM_USE_PRECOMPILED_RUST VLLM_USE_RAY_SPMD_WORKER VLLM_USE_RAY_V2_EXECUTOR_BACKEND
VLLM_USE_RUST_BENCH VLLM_USE_SPINLOOP_EXT VLLM_V0_USE_OUTLINES_CACHE VLLM_V1_OUTPUT_PROC_CHUNK_SIZE
VLLM_V1_USE_OUTLINES_CACHE VLLM_VIDEO_FETCH_TIMEOUT VLLM_VIDEO_LOADER_BACKEND
VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS VLLM_XGRAMMAR_CACHE_MB V_SCALE_CONSTANT
""".split())
# Of other platforms.
PLATFORMS = "TPU|XLA|XPU|HPU|OPENVINO|NEURON|ROCM|CPU|ZENTORCH|AITER|NPU|AMD|HIP|MUSA|MPS"
ELSEWHERE = re.compile(rf"(VLLM|SGLANG)_(USE_)?({PLATFORMS})_|AITER_|ASCEND_")
# SGLang's, by the words of their names; its other ones are open.
WORDS = "PORT|TIMEOUT|LOG|LOGGING|NVTX|METRICS|HOST|IP|HOSTNAME|COREDUMP|EXA|DIR|API_KEY|PROFILER"
SAFE_WORDS = re.compile(rf"SGLANG_(.*_)?({WORDS})(_.*)?$")

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

# Of no engine: what each is known for. A star stands for any end; the longest that matches counts. A name that none of them
# matches is nobody's of these libraries.
BESIDE = {
    "none": """
CUDA_DEVICE_ORDER CUDA_HOME CUDA_PATH CUDA_VERSION CUDA_CACHE_* CUDA_LAUNCH_BLOCKING NVIDIA_DRIVER_CAPABILITIES NVIDIA_VISIBLE_DEVICES
NVIDIA_REQUIRE_* NVIDIA_PRODUCT_NAME NCCL_DEBUG* NCCL_SOCKET_* NCCL_IB_* NCCL_NET_* NCCL_VERSION NCCL_TIMEOUT NCCL_ASYNC_ERROR_HANDLING
TORCH_HOME TORCH_LOGS TORCH_CUDA_ARCH_LIST TORCH_CPP_LOG_LEVEL TORCH_NCCL_ASYNC_ERROR_HANDLING TORCHINDUCTOR_CACHE_DIR
TORCHINDUCTOR_COMPILE_THREADS TRITON_CACHE_DIR FLASHINFER_WORKSPACE_BASE PYTHONUNBUFFERED PYTHONHASHSEED PYTHONDONTWRITEBYTECODE
PYTHONIOENCODING PYTHONFAULTHANDLER RAY_DEDUP_LOGS RAY_ADDRESS
""",
    "open": """
CUDA_* CUDNN_* CUBLAS* NVIDIA_* NVTE_* NVSHMEM_* NCCL_* NV_* TORCH* PYTORCH_* TRITON_* FLASHINFER_* FLASH_ATTENTION_* LMCACHE_* MOONCAKE_*
NIXL_* UCX_* DG_* DEEPEP_* DEEP_GEMM_* RAY_* LD_* PYTHON* MALLOC_* HIP_* ROCM_* HSA_* INFERENCE_*
""",
}
PREFIXES = {"vllm": ("VLLM_",), "sglang": ("SGLANG_", "SGL_")}

FIELDS = ("kind", "default", "choices")
# How a bool is read: the probe words that mean true, and whether other words are errors or mean false.
READINGS = (
    (("1", "7"), False),  # bool(int(text)); other words are errors
    (("1", "true", "True"), True),  # letters of any size; anything else is false
    (("1",), True),  # exactly "1"; anything else is false
)
HOST_DEPENDENT = ("VLLM_CPU_OMP_THREADS_BIND", "CUDA_VISIBLE_DEVICES")  # a default read from this machine


def read_dump(dump):
    kept = {}
    for variable in dump["variables"]:
        kept[variable["name"]] = {}
        if variable["name"] in ENGINE:
            fields = {field: variable.get(field) for field in FIELDS}
            if variable["kind"] == "bool":
                words = tuple(variable["true_words"]), "word" in variable["false_words"]
                if words not in READINGS:
                    raise SystemExit(f"merge_env: {dump['version']}: {variable['name']}: read in a new way: {words}")
            if variable["name"] in HOST_DEPENDENT:
                fields["default"] = None
            kept[variable["name"]] = without_empty(fields)
    return {dump["version"]: kept}


def read_names(listed):
    kept = {name: {} for name in listed["names"]}
    kept.update({name: {"listed": False} for name in listed["elsewhere"]})
    return {listed["version"]: kept}


def read_table(table):
    versions = table["versions"]
    by_version = {version: {} for version in versions}
    for variable in table["variables"]:
        if variable["owner"] != table["engine"]:
            continue
        for version in versions:
            fields = at_version(variable, versions, version, versions[0])
            if fields is not None:
                by_version[version][variable["name"]] = {k: v for k, v in fields.items() if k in FIELDS or k == "listed"}
    return by_version


def memory_of(name):
    """none: known to leave GPU memory alone."""
    if name in NONE or ELSEWHERE.match(name) or SAFE_WORDS.match(name):
        return "none"
    return "open"


def merge(by_version, engine, logged):
    versions = sorted(by_version, key=version_key)
    variables = []
    for name in sorted({name for kept in by_version.values() for name in kept}):
        if name in OTHERS:
            continue
        series = {v: by_version[v][name] for v in versions if name in by_version[v]}
        for record, _ in merge_series(versions, series):
            said = {"why": ENGINE[name]} if name in ENGINE else {"memory": memory_of(name)}
            variables.append({"name": name, "owner": engine, **record, **said})
    for name, (owner, kind, default, why) in sorted(OTHERS.items()):
        variables.append(without_empty({"name": name, "owner": owner, "kind": kind, "default": default, "why": why}))
    known = {row["name"] for row in variables}
    for memory, names in BESIDE.items():
        variables += [{"name": name, "owner": "other", "memory": memory} for name in sorted(names.split()) if name not in known]
    table = {"schema": "oomsight.engine-env/1", "engine": engine, "prefixes": PREFIXES[engine]}
    since = min((v for v in logged if logged[v]), key=version_key, default=None)
    if since:
        table["unknown_logged_since"] = since
    return {**table, "versions": versions, "variables": variables}


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    by_version, engines, logged = {}, set(), {}
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        engines.add(content["engine"])
        if "unknown_logged_since" in content:
            logged[content["unknown_logged_since"]] = True
        if "logs_unknown" in content:
            logged[content["version"]] = content["logs_unknown"]
        read = read_table if "versions" in content else read_names if "names" in content else read_dump
        for version, kept in read(content).items():
            told = by_version.setdefault(version, {})
            for name, fields in kept.items():  # a list of names adds names and keeps what a dump said of them
                if name not in told or fields:
                    told[name] = fields
    if len(engines) != 1:
        raise SystemExit(f"merge_env: inputs of {' and '.join(sorted(engines))}")
    table = merge(by_version, engines.pop(), logged)
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        rows = ",\n".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in table.pop("variables"))
        head = ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in table.items())
        out.write(f'{{\n{head},\n"variables":[\n{rows}\n]\n}}\n')
    seen = {name for kept in by_version.values() for name in kept}
    print(f"{len(table['versions'])} versions, {len(seen)} engine variables, {len(OTHERS)} others")
    for name in sorted(ENGINE.keys() - seen if table["engine"] == "vllm" else ()):
        print(f"{name} is in no version", file=sys.stderr)


if __name__ == "__main__":
    main()
