#!/usr/bin/env python3
"""What explain says first to people who run llama.cpp, Ollama and LM Studio: 30 situations, each a log written out of the program's own format
strings with figures of our own, and the lever that helps first, written down before explain was run on any of them.

Where the format strings are: llama.cpp src/llama-model.cpp, src/llama-context.cpp, src/llama-kv-cache.cpp, src/llama-memory-recurrent.cpp,
common/fit.cpp, tools/server/server-context.cpp, tools/server/server-task.cpp, tools/mtmd/clip.cpp, ggml/src/ggml-alloc.c,
ggml/src/ggml-backend.cpp, ggml/src/ggml-cuda/ggml-cuda.cu, ggml/src/ggml-vulkan/ggml-vulkan.cpp; Ollama llm/server.go, llm/llama_server.go,
llm/memory.go (to 0.12), ml/device.go, server/sched.go; Linux mm/oom_kill.c; the kubelet's eviction helpers.

`first` lists what counts as the right first lever. A change that another program alone understands is wrong wherever it stands.
usage: situations.py BINARY [--data DIR] [--all] [--json]"""
import argparse
import json
import re
import subprocess
import sys

MIB = 1 << 20
FLOOR = 0.6  # of the situations; the measured share is in docs/evidence
LLAMA = ("--ctx-size", "-c", "--n-gpu-layers", "-ngl", "--ubatch-size", "-ub", "--cache-ram", "--tensor-split", "--n-cpu-moe", "--parallel", "--no-mmproj-offload")
OLLAMA = ("num_ctx", "num_gpu", "num_batch", "OLLAMA_")
FOREIGN = {  # what the other programs call their settings
    "llama.cpp": OLLAMA + ("--gpu-memory-utilization", "--max-model-len", "--max-num-seqs", "--mem-fraction-static", "--context-length"),
    "ollama": LLAMA + ("--gpu-memory-utilization", "--max-model-len", "--max-num-seqs", "--mem-fraction-static"),
    "lmstudio": OLLAMA + ("--gpu-memory-utilization", "--max-model-len", "--max-num-seqs", "--mem-fraction-static"),
}


# ---- llama.cpp

def command(*words):
    return ["$ llama-server -m /models/model.gguf " + " ".join(words)]


def devices(mib, free, name="NVIDIA GeForce RTX 4090", count=1):
    lines = [f"ggml_cuda_init: found {count} CUDA devices (Total VRAM: {mib * count} MiB):"]
    lines += [f"  Device {i}: {name}, compute capability 8.9, VMM: yes, VRAM: {mib} MiB" for i in range(count)]
    return lines + [f"llama_model_load_from_file_impl: using device CUDA{i} ({name}) (0000:0{i + 1}:00.0) - {free} MiB free" for i in range(count)]


def loading(layers, mode="mmap"):
    """What is printed before the buffers are asked for."""
    return [f"print_info: n_layer               = {layers - 1}", f"load_tensors: loading model tensors, this can take a while... (load_mode = {mode})"]


def weights(device, host=512.0, layers=49):
    lines = loading(layers) + ["load_tensors: offloading output layer to GPU", f"load_tensors: offloading {layers - 1} repeating layers to GPU", f"load_tensors: offloaded {layers}/{layers} layers to GPU",
                               f"load_tensors: {'CPU_Mapped':>12} model buffer size = {host:8.2f} MiB"]
    return lines + [f"load_tensors: {f'CUDA{i}':>12} model buffer size = {size:8.2f} MiB" for i, size in enumerate(device if isinstance(device, list) else [device])]


def context(n_ctx, ubatch=512, batch=2048, seqs=1, flash="enabled"):
    return [f"llama_context: n_seq_max             = {seqs}", f"llama_context: n_ctx                 = {n_ctx}", f"llama_context: n_ctx_seq             = {n_ctx // seqs}",
            f"llama_context: n_batch               = {batch}", f"llama_context: n_ubatch              = {ubatch}", "llama_context: causal_attn           = 1",
            f"llama_context: flash_attn            = {flash}", "llama_context:  CUDA_Host  output buffer size =     0.99 MiB"]


def cache(mib, n_ctx, layers=48, kind="f16", device="CUDA0"):
    return [f"llama_kv_cache: {device:>10} KV buffer size = {mib:8.2f} MiB",
            f"llama_kv_cache: size = {mib:7.2f} MiB ({n_ctx:6d} cells, {layers:3d} layers,  1/1 seqs), K ({kind}): {mib / 2:7.2f} MiB, V ({kind}): {mib / 2:7.2f} MiB"]


def refused(mib, device=0):
    return [f"ggml_backend_cuda_buffer_type_alloc_buffer: allocating {mib:.2f} MiB on device {device}: cudaMalloc failed: out of memory"]


def no_weights(mib, device=0):
    return refused(mib, device) + [f"alloc_tensor_range: failed to allocate CUDA{device} buffer of size {int(mib * MIB)}",
                                   f"llama_model_load: error loading model: unable to allocate CUDA{device} buffer", "llama_model_load_from_file_impl: failed to load model",
                                   "srv    load_model: failed to load model, '/models/model.gguf'"]


def no_cache(mib, device=0, what="kv"):
    return refused(mib, device) + [f"alloc_tensor_range: failed to allocate CUDA{device} buffer of size {int(mib * MIB)}",
                                   f"llama_init_from_model: failed to initialize the context: failed to allocate buffer for {what} cache",
                                   "srv    load_model: failed to create_context with model '/models/model.gguf'"]


def no_compute(mib, device=0, retried=False):
    lines = refused(mib, device) + [f"ggml_gallocr_reserve_n_impl: failed to allocate CUDA{device} buffer of size {int(mib * MIB)}", "graph_reserve: failed to allocate compute buffers"]
    if retried:
        lines += ["sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism"]
        lines += refused(mib * 0.8, device) + [f"ggml_gallocr_reserve_n_impl: failed to allocate CUDA{device} buffer of size {int(mib * 0.8 * MIB)}", "graph_reserve: failed to allocate compute buffers"]
    return lines + ["llama_init_from_model: failed to initialize the context: failed to allocate compute pp buffers", "srv    load_model: failed to create_context with model '/models/model.gguf'"]


def prompt_cache(limit=8192, server="srv    load_model"):
    size = "no limit" if limit < 0 else f"{limit} MiB"
    return [f"{server}: prompt cache is enabled, size limit: {size}", f"{server}: use `--cache-ram 0` to disable the prompt cache", "srv  llama_server: model loaded",
            "main: server is listening on http://127.0.0.1:8080"]


def saving(tokens, mib, prompts, total, limit=8192, checkpoints=0):
    return [f"srv   prompt_save:  - saving prompt with length {tokens}, total state size = {mib:.3f} MiB (draft: 0.000 MiB)",
            f"srv        update:  - cache state: {prompts} prompts, {total:.3f} MiB (limits: {limit:.3f} MiB, {tokens * 4} tokens, {tokens * 4} est)",
            f"srv        update:    - prompt 0x5580a1c0b2f0: {tokens:7d} tokens, checkpoints: {checkpoints:2d}, {mib:9.3f} MiB"]


# ---- who kills

def killed_globally(rss_gib, name="llama-server"):
    kb = int(rss_gib * (1 << 20))
    return [f"kernel: oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/system.slice/llama.service,task={name},pid=3141,uid=1000",
            f"kernel: Out of memory: Killed process 3141 ({name}) total-vm:{kb * 3}kB, anon-rss:{kb}kB, file-rss:2048kB, shmem-rss:0kB, UID:1000 pgtables:24000kB oom_score_adj:0"]


def killed_in_group(limit_gib, rss_gib, name="llama-server"):
    limit, kb = int(limit_gib * (1 << 20)), int(rss_gib * (1 << 20))
    return [f"kernel: memory: usage {limit}kB, limit {limit}kB, failcnt 4821",
            f"kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/c0,task={name},pid=77,uid=0",
            f"kernel: Memory cgroup out of memory: Killed process 77 ({name}) total-vm:{kb * 2}kB, anon-rss:{kb}kB, file-rss:2048kB, shmem-rss:0kB, UID:0 pgtables:24000kB oom_score_adj:992"]


def pod_killed(limit):
    return ["    Last State:     Terminated", "      Reason:       OOMKilled", "      Exit Code:    137", "    Limits:", f"      memory:          {limit}"]


# ---- Ollama

def slog(level, source, message, **more):
    pairs = "".join(f' {key.replace("__", ".")}={value}' for key, value in more.items())
    return f'time=2026-09-04T10:31:07.412Z level={level} source={source} msg="{message}"{pairs}'


def gguf_server(num_ctx, parallel=1, extra=""):
    return [slog("INFO", "llama_server.go:612", "starting llama-server", cmd=f'"/usr/lib/ollama/llama-server --model /root/.ollama/models/blobs/sha256-0a1b --port 39441 --host 127.0.0.1 --no-webui --offline -c {num_ctx * parallel} -np {parallel}{extra}"')]


def offload(model, on, available, full, partial, kv, total, graph, library="cuda"):
    return [slog("INFO", "server.go:168", "offload", library=library, layers__requested=-1, layers__model=model, layers__offload=on, layers__split='""', memory__available=f'"[{available}]"',
                 memory__gpu_overhead='"0 B"', memory__required__full=f'"{full}"', memory__required__partial=f'"{partial}"', memory__required__kv=f'"{kv}"',
                 memory__required__allocations=f'"[{partial}]"', memory__weights__total=f'"{total}"', memory__weights__repeating=f'"{total}"',
                 memory__weights__nonrepeating='"411.0 MiB"', memory__graph__full=f'"{graph}"', memory__graph__partial=f'"{graph}"')]


def more_than_system(needs, has):
    return [slog("WARN", "server.go:541", "model request too large for system", requested=f'"{needs}"', available=f'"{has}"', total='"32.0 GiB"', free=f'"{has}"', swap='"0 B"'),
            slog("INFO", "sched.go:453", "Load failed", model="/root/.ollama/models/blobs/sha256-0a1b", error=f'"model requires more system memory ({needs}) than is available ({has})"')]


def reported(what):
    return [slog("INFO", "sched.go:641", "Load failed", model="/root/.ollama/models/blobs/sha256-0a1b", error=f'"llama-server reported out-of-memory during startup: {what}"')]


C, NGL, UB = ("-c", "--ctx-size"), ("-ngl", "--gpu-layers", "--n-gpu-layers"), ("-ub", "--ubatch-size")
CRAM = ("-cram", "--cache-ram")
CTX = ("num_ctx", "OLLAMA_CONTEXT_LENGTH")

# (id, a thread of that engine, phase and kind, program, lines, what helps first)
SITUATIONS = [
    # The context is next to nothing, the graph is all: only the batch makes it smaller.
    ("compute-above-cache", "llama.cpp#24175", "llama.cpp", command("-c 16128 -ngl 99") + devices(32607, 31200, "NVIDIA GeForce RTX 5090") + weights(26110.4) + context(16128) + cache(189.0, 16128, 12)
     + ["llama_memory_recurrent:      CUDA0 RS buffer size =  1576.50 MiB"] + no_compute(7400.0), UB),
    # Attention scores are kept whole: that is what flash attention is for.
    ("no-flash-attention", "llama.cpp#26025", "llama.cpp", command("-c 65536 -ngl 99 -fa off") + devices(24564, 23900) + weights(11200.0) + context(65536, flash="disabled") + cache(4096.0, 65536)
     + no_compute(8704.0), ("-fa", "--flash-attn")),
    ("cache-too-long", "llama.cpp#27170", "llama.cpp", command("-c 262144 -ngl 99") + devices(24564, 23900) + weights(14100.0) + context(262144) + no_cache(24576.0), C),
    ("cache-type-free", "turboquant#308", "llama.cpp", command("-c 131072 -ngl 99") + devices(16376, 15800, "NVIDIA GeForce RTX 4080") + weights(9000.0) + context(131072) + no_cache(9216.0), C + ("-ctk", "--cache-type-k")),
    ("weights-too-large", "llama.cpp#21801", "llama.cpp", command("-c 4096 -ngl 99") + devices(12282, 11700, "NVIDIA GeForce RTX 4070") + loading(65) + no_weights(18432.0), NGL),
    # fit is on by default, and stands aside because the layers are given.
    ("fit-stands-aside", "unsloth#4757", "llama.cpp", command("-c 32768 -ngl 99") + devices(16376, 15800, "NVIDIA GeForce RTX 4080")
     + ["common_params_fit_impl: projected to use 21312 MiB of device memory vs. 15800 MiB of free device memory",
        "common_params_fit_impl: cannot meet free memory target of 1024 MiB, need to reduce device memory by 6536 MiB",
        "common_fit_params: failed to fit params to free device memory: n_gpu_layers already set by user to 99, abort"] + loading(49) + no_weights(17408.0), NGL),
    # Experts are most of the weights, and are read but in part.
    ("experts", "Heliox-OS#95", "llama.cpp", command("-c 8192 -ngl 99") + devices(24564, 23900) + ["print_info: n_expert              = 128", "print_info: n_expert_used         = 8"]
     + loading(49) + no_weights(42310.0), ("-ncmoe", "--n-cpu-moe", "-cmoe", "--cpu-moe")),
    # One of two devices is full, by a split that was given.
    ("split-given", "club-3090#222", "llama.cpp", command("-c 8192 -ngl 99 -ts 3,1") + devices(24564, 23900, "NVIDIA GeForce RTX 3090", 2) + loading(81) + no_weights(30208.0, 0), ("-ts", "--tensor-split")),
    # Another program has the card: nothing of this one makes room.
    ("others-hold", "lmstudio#2295", "llama.cpp", command("-c 8192 -ngl 99") + devices(32607, 1480, "NVIDIA GeForce RTX 5090") + loading(37) + no_weights(4460.0),
     ("stop the process", "other processes", "stop the other")),
    ("encoder-warm-up", "llama.cpp#21690", "llama.cpp", command("-c 8192 -ngl 99 --mmproj /models/mmproj.gguf") + devices(16376, 15800, "NVIDIA GeForce RTX 4080") + weights(13600.0) + context(8192) + cache(512.0, 8192)
     + ["sched_reserve:      CUDA0 compute buffer size =   304.00 MiB", "clip_ctx: CLIP using CUDA0 backend", "alloc_compute_meta: warmup with image size = 1472 x 1472"] + refused(3890.0)
     + ["ggml_gallocr_reserve_n_impl: failed to allocate CUDA0 buffer of size 4078960640", "srv    load_model: failed to load multimodal model, '/models/mmproj.gguf'"], ("--no-mmproj-offload", "--image-max-tokens")),
    # States of recurrent layers: one set for each sequence, whatever the context.
    ("states", "lmstudio#1862", "llama.cpp", command("-c 65536 -ngl 99 -np 64") + devices(24564, 23900) + weights(17800.0) + context(65536, seqs=64) + cache(512.0, 65536, 12) + no_cache(25224.0, what="rs"), ("-np", "--parallel")),
    ("large-ubatch", "llama.cpp#26297", "llama.cpp", command("-c 50176 -ngl 99 -ub 4096 -b 4096") + devices(24564, 23900, "NVIDIA GeForce RTX 3090", 2) + weights([17000.0, 17100.0]) + context(50176, 4096, 4096)
     + cache(1568.0, 50176) + no_compute(6912.0, 1, retried=True), UB),
    ("temporaries", "ik_llama#1845", "llama.cpp", command("-c 32768 -ngl 99") + devices(24564, 23900) + weights(18100.0) + context(32768) + cache(4096.0, 32768) + ["sched_reserve:      CUDA0 compute buffer size =   560.00 MiB"]
     + prompt_cache() + ["slot launch_slot_: id  0 | task 12 | processing task", "CUDA error: out of memory", "  current device: 0, in function alloc at /src/ggml/src/ggml-cuda/ggml-cuda.cu:589",
                         "  cuMemCreate(&handle, reserve_size, &prop, 0)", "/src/ggml/src/ggml-cuda/ggml-cuda.cu:106: CUDA error"], UB + NGL),
    ("vulkan-weights", "llamacpp-rocm#57", "llama.cpp", command("-c 4096 -ngl 99") + ["ggml_vulkan: Found 1 Vulkan devices:"] + loading(33)
     + ["ggml_vulkan: Device memory allocation of size 9663676416 failed.", "ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory", "alloc_tensor_range: failed to allocate Vulkan0 buffer of size 9663676416",
        "llama_model_load: error loading model: unable to allocate Vulkan0 buffer", "llama_model_load_from_file_impl: failed to load model"], NGL),
    # Weights in host memory, and not mapped: what is mapped needs none.
    ("host-weights-not-mapped", "llama.cpp#24162", "llama.cpp", command("-c 4096 -ngl 20 --no-mmap") + loading(61, "none")
     + ["ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 68719476736", "alloc_tensor_range: failed to allocate CPU buffer of size 68719476736",
        "llama_model_load: error loading model: unable to allocate CPU buffer", "llama_model_load_from_file_impl: failed to load model"], ("--no-mmap", "--load-mode", "--mmap")),
    ("prompt-cache-global", "llama.cpp#20509", "llama.cpp", command("-c 40000 -ngl 99 -np 1") + weights(18100.0) + prompt_cache() + saving(28960, 3462.85, 3, 7900.2) + killed_globally(11.2), CRAM),
    ("prompt-cache-one-entry", "llama.cpp#23561", "llama.cpp", command("-c 200000 -ngl 99 --cache-ram 1200") + weights(18100.0) + prompt_cache(1200) + saving(10177, 2460.007, 1, 2460.007, 1200) + killed_globally(14.8), CRAM),
    ("prompt-cache-container", "llama.cpp#27725", "llama.cpp", command("-c 32768 -ngl 99") + weights(7300.0) + prompt_cache() + saving(9100, 711.1, 10, 7011.4) + killed_in_group(8, 7.9), CRAM),
    ("prompt-cache-pod", "llama.cpp#22629", "llama.cpp", command("-c 65536 -ngl 99") + weights(12800.0) + prompt_cache() + saving(31000, 2422.0, 3, 6900.0) + pod_killed("10Gi"), CRAM),
    ("prompt-cache-above-limit", "home-ops#9818", "llama.cpp", command("-c 131072 -ngl 99 --cache-ram 40960") + weights(16800.0) + prompt_cache(40960) + saving(50000, 3890.0, 11, 40510.0, 40960) + killed_in_group(48, 47.9), CRAM + ("resources.limits.memory",)),
    ("prompt-cache-checkpoints", "ik_llama#2320", "llama.cpp", command("-c 1000000 -ngl 99") + weights(40000.0) + prompt_cache() + saving(400000, 227328.0, 1, 227328.0, 8192, 64) + killed_globally(700), CRAM + ("-ctxcp", "--ctx-checkpoints")),
    ("prompt-cache-unbounded", "turboquant#350", "llama.cpp", command("-c 220000 -ngl 99 --cache-ram -1") + weights(18100.0) + prompt_cache(-1) + saving(220000, 14336.0, 4, 57344.0, 0) + killed_globally(59.7), CRAM),
    ("prompt-cache-daily", "aimee#1385", "llama.cpp", command("-c 32768 -ngl 99") + weights(14000.0) + prompt_cache() + saving(21000, 1640.0, 5, 8101.0) + killed_globally(11.0), CRAM),
    # ---- Ollama: no -ngl, no -c
    ("ollama-prompt-cache", "ollama#18264", "ollama", gguf_server(32768) + weights(7600.0) + prompt_cache() + saving(12000, 273.2, 27, 7377.676) + killed_globally(9.4), ("LLAMA_ARG_CACHE_RAM", "OLLAMA_CACHE_RAM")),
    ("ollama-prompt-cache-pod", "home-ops#13936", "ollama", gguf_server(8192) + weights(3100.0) + prompt_cache() + saving(1180, 41.5, 140, 5810.0) + pod_killed("6G") + [slog("ERROR", "llama_server.go:733", "llama-server terminated", error='"signal: killed"')],
     ("LLAMA_ARG_CACHE_RAM", "OLLAMA_CACHE_RAM")),
    # The cache is most of what it needs.
    ("ollama-system-memory-cache", "ollama#13622", "ollama", offload(33, 0, "4.6 GiB", "35.3 GiB", "0 B", "31.2 GiB", "4.1 GiB", "2.1 GiB") + more_than_system("35.3 GiB", "17.1 GiB"), CTX),
    # The weights are most of it: a shorter context does not help.
    ("ollama-system-memory-weights", "ollama#13556", "ollama", offload(81, 0, "7.1 GiB", "41.2 GiB", "0 B", "640.0 MiB", "39.1 GiB", "584.0 MiB") + more_than_system("39.4 GiB", "30.0 GiB"),
     ("a smaller model", "quantised", "quantized")),
    ("ollama-cache", "ollama#15284", "ollama", gguf_server(131072) + devices(12282, 11700, "NVIDIA GeForce RTX 3060") + weights(5800.0) + context(131072) + no_cache(8192.0) + reported("cudaMalloc failed: out of memory"), CTX + ("OLLAMA_KV_CACHE_TYPE",)),
    ("ollama-layers-given", "unsloth#10489", "ollama", gguf_server(4096, extra=" -ngl 99") + devices(8188, 7600, "NVIDIA GeForce RTX 4060") + loading(49) + no_weights(11200.0) + reported("unable to allocate CUDA0 buffer"), ("num_gpu",)),
    # ---- LM Studio refuses by an estimate
    ("lmstudio-estimate", "lmstudio#1631", "lmstudio", ["$ lms load qwen3.5-9b --gpu max --context-length 110000 --yes",
     "Error: Model loading was stopped due to insufficient system resources. Under the current settings, this model requires approximately 22.92 GB of memory, and continuing to load it would likely overload your system and cause it to freeze. If you think this is incorrect, you can adjust the model loading guardrails in settings."],
     ("--context-length", "context length", "guardrails")),
]


def figures(tried, total=23.52, free=1.1, allocated=21.6, cached="320.00 MiB"):
    return [f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried:.2f} GiB. GPU 0 has a total capacity of {total:.2f} GiB of which {free:.2f} GiB is free. Including non-PyTorch memory, this process has "
            f"{total - free:.2f} GiB memory in use. Of the allocated memory {allocated:.2f} GiB is allocated by PyTorch, and {cached} is reserved by PyTorch but unallocated."]


def traceback(*frames):
    lines = ["Traceback (most recent call last):"]
    for path, line, name, code in frames:
        lines += [f'  File "{path}", line {line}, in {name}', f"    {code}"]
    return lines


# Written, with their levers, when the words of the programs were finished: what they show is not what they were made from.
LATER = [
    ("draft-two-models", "", "llama.cpp", command("-c 16384 -ngl 99 -np 8") + devices(16376, 15800, "NVIDIA GeForce RTX 4080") + weights(8200.0) + context(16384, seqs=8) + cache(2048.0, 16384) + no_compute(6144.0), UB),
    ("context-after-all", "", "llama.cpp", command("-c 98304 -ngl 99") + devices(12282, 11600, "NVIDIA GeForce RTX 4070") + weights(4700.0) + context(98304) + cache(6144.0, 98304) + no_compute(912.0), UB + C),
    ("metal-weights", "", "llama.cpp", command("-c 4096 -ngl 99") + loading(81) + ["ggml_metal_buffer_init: error: failed to allocate buffer, size = 43008.00 MiB", "llama_model_load: error loading model: unable to allocate MTL0 buffer",
     "llama_model_load_from_file_impl: failed to load model"], NGL),
    ("sycl-cache", "", "llama.cpp", command("-c 65536 -ngl 99") + weights(7000.0) + context(65536) + ["ggml_backend_sycl_buffer_type_alloc_buffer: can't allocate 8589934592 Bytes of memory on device",
     "alloc_tensor_range: failed to allocate SYCL0 buffer of size 8589934592", "llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache"], C),
    ("window-kept-whole", "", "llama.cpp", command("-c 65536 -ngl 99 --swa-full") + devices(24564, 23900) + weights(15200.0) + context(65536) + ["llama_kv_cache_iswa: using full-size SWA cache (ref: https://github.com/ggml-org/llama.cpp/pull/13194#issuecomment-2868343055)"]
     + cache(2048.0, 65536, 8) + no_cache(13312.0), ("--swa-full",)),
    ("ollama-parallel", "", "ollama", gguf_server(32768, 4) + devices(16376, 15800, "NVIDIA GeForce RTX 4080") + weights(8900.0) + context(131072, seqs=4) + no_cache(12288.0) + reported("cudaMalloc failed: out of memory"), ("OLLAMA_NUM_PARALLEL",) + CTX),
    ("ollama-graph", "", "ollama", gguf_server(8192, extra=" -b 2048 -ub 2048") + devices(8188, 7600, "NVIDIA GeForce RTX 4060") + weights(5900.0) + context(8192, 2048) + cache(768.0, 8192) + no_compute(1900.0), ("num_batch",)),
    ("ollama-layout", "", "ollama", [slog("WARN", "server.go:862", "memory layout cannot be allocated", memory='"{InputWeights:550502400 CPU:{Name:CPU} GPUs:[{Name:CUDA0}]}"'),
     slog("INFO", "sched.go:510", "Load failed", model="/root/.ollama/models/blobs/sha256-0a1b", error='"memory layout cannot be allocated with num_gpu = 49"')], ("num_gpu",)),
    # Host memory, by kind.
    ("limit-of-a-pod", "", "host", ["(APIServer pid=1) INFO 06-01 10:00:00 [loader.py:458] Starting to load model m/8b..."] + killed_in_group(32, 31.7, "VLLM::EngineCor"), ("resources.limits.memory",)),
    ("machine-full", "", "host", killed_globally(118, "python3"), ("a host with more memory",)),
    ("node-low", "", "host", ["Status: Failed", "Reason: Evicted", "Message: The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. Container vllm was using 61Gi, request is 8Gi, has larger consumption of memory."], ("a host with more memory", "resources.requests.memory")),
    ("host-pool", "", "host", traceback(("/sgl/python/sglang/srt/mem_cache/memory_pool_host.py", 131, "__init__", "raise ValueError("))
     + ["ValueError: Not enough host memory available. Requesting 240.00 GB but only have 181.35 GB free. Please reduce the size of the hierarchical cache."], ("--hicache-size", "--hicache-ratio")),
    ("shared-memory", "", "host", ["RuntimeError: DataLoader worker (pid 411) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit."], ("--shm-size", "--ipc=host", "/dev/shm")),
    # Programs on PyTorch: not a word of a server.
    ("train-qlora-backward", "", "pytorch", traceback(("finetune.py", 88, "<module>", "trainer.train()"), ("/v/site-packages/trl/trainer/sft_trainer.py", 700, "training_step", "return super().training_step(*args, **kwargs)"),
     ("/v/site-packages/accelerate/accelerator.py", 2700, "backward", "loss.backward(**kwargs)"), ("/v/site-packages/torch/autograd/graph.py", 829, "_engine_run_backward", "return Variable._execution_engine.run_backward("))
     + figures(3.1), ("a smaller batch", "gradient checkpointing")),
    ("train-first-adam-step", "", "pytorch", traceback(("train.py", 140, "<module>", "main()"), ("train.py", 101, "main", "optimizer.step()"), ("/v/site-packages/torch/optim/optimizer.py", 493, "wrapper", "out = func(*args, **kwargs)"),
     ("/v/site-packages/torch/optim/adamw.py", 220, "step", "has_complex = self._init_group(")) + figures(0.44, free=0.2), ("an optimizer with smaller states",)),
    ("comfy-decode", "", "pytorch", traceback(("/ComfyUI/execution.py", 496, "execute", "output_data, output_ui = get_output_data("), ("/ComfyUI/nodes.py", 293, "decode", 'images = vae.decode(samples["samples"])'), ("/ComfyUI/comfy/sd.py", 703, "decode", "out = self.process_output("))
     + figures(9.0, 11.6, 0.9, 9.8), ("VAE tiling",)),
    ("flux-step", "", "pytorch", traceback(("gen.py", 12, "<module>", "image = pipe(prompt, height=1536, width=1536).images[0]"), ("/v/site-packages/diffusers/pipelines/flux/pipeline_flux.py", 919, "__call__", "noise_pred = self.transformer("))
     + figures(0.28, free=0.1), ("parts of the model that wait on the CPU", "a smaller resolution")),
]
SERVERS = OLLAMA + LLAMA[2:] + ("--max-model-len", "--max-num-seqs", "--enforce-eager", "--mem-fraction-static")
FOREIGN["pytorch"] = SERVERS
FOREIGN["host"] = OLLAMA + LLAMA[2:]


def explain(binary, lines, data):
    ran = subprocess.run([binary, "explain", "--offline", "--json", *(["--data", data] if data else []), "-"], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60, check=False)
    found = [json.loads(line) for line in ran.stdout.splitlines() if line.strip()]
    return next((one for one in found if one["is_oom"]), found[-1] if found else None)


def names(change, words):
    text = " ".join(change)
    return any(re.search(r"(?<![\w-])" + re.escape(word) + ("" if word.endswith("_") else r"(?![\w-])"), text) for word in words)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--data")
    parser.add_argument("--all", action="store_true", help="every answer, not the misses alone")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--later", action="store_true", help="those that were written last")
    parser.add_argument("--text", metavar="ID", help="print the log of one situation")
    args = parser.parse_args()
    if args.text:
        print("\n".join(next(one for one in SITUATIONS + LATER if one[0] == args.text)[3]))
        return 0
    chosen = LATER if args.later else SITUATIONS
    right, anywhere, foreign, rows = 0, 0, [], []
    for name, thread, program, lines, first in chosen:
        got = explain(args.binary, lines, args.data)
        changes = [fix["change"] for fix in got["fixes"]] if got else []
        hit = bool(changes) and names(changes[0], first)
        right += hit
        anywhere += any(names(change, first) for change in changes)
        foreign += [(name, " ".join(change)) for change in changes if names(change, FOREIGN[program])]
        rows.append((name, thread, hit, got and got["phase"], got and got["cause"], " ".join(changes[0]) if changes else "-", first[0]))
    for name, thread, hit, phase, cause, said, want in rows:
        if args.all or not hit:
            print(f"{'right' if hit else 'wrong'}  {name:30} {thread:18} {phase}/{cause}: {said!r}, wanted {want}")
    for name, change in foreign:
        print(f"{name}: {change!r} is not this program's")
    total = len(chosen)
    print(json.dumps({"situations": total, "first": right, "anywhere": anywhere, "foreign": len(foreign)}) if args.json else
          f"situations: right lever first {right}/{total} ({right / total:.0%}), anywhere {anywhere}/{total}, words of another program {len(foreign)}")
    return 0 if right >= FLOOR * total and not foreign else 1


if __name__ == "__main__":
    sys.exit(main())
