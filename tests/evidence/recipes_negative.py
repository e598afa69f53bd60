"""Recipes of texts in which memory is not the reason: healthy logs, other errors, words that deny a lack of memory, and texts that
do not decide. See recipes.py."""
import json

from recipes import available, bar, core_fail, kv_lines, stats, took, worker_fail
from render import ASYNC, MIB, cut, interleave, negative

STEPS = ("Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n"
         "3. disable torch compile by not using --enable-torch-compile\n4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)\n"
         "Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose ")


# ---- nothing failed

@negative("start-v1", "healthy_log", ["bare", "compose", "k8s"])
def start_v1(d):
    """A start that ends in serving."""
    d.at("cgprof", among=["0.11.2", "0.13.0", "0.20.1", "0.24.0"])
    lines = [d.log("INFO", "loading", "Starting to load model Qwen/Qwen3-8B...", d.core()), took(d, d.real(14, 16)), available(d, d.real(3, 50)), *kv_lines(d), bar("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", 35, 35), d.log("INFO", "captured", f"Graph capturing finished in 11 secs, took {d.real(0.3, 2)} GiB", d.core()),
             d.log("INFO", "init_engine", f"init engine (profile, create kv cache, warmup model) took {d.real(20, 90)} seconds", d.core()), f"(APIServer pid={d.pid - 9}) INFO:     Application startup complete."]
    return lines + stats(d, 2, f"(APIServer pid={d.pid - 9}) ")


@negative("start-v0", "healthy_log", ["bare", "compose"])
def start_v0(d):
    """The older engine's start with its hint about running out of memory."""
    d.at("capture", v0=True, among=["0.7.2"])
    return [d.log("INFO", "v0_took", "Loading model weights took 14.9888 GB"), d.log("INFO", "worker.py:266", "the current vLLM instance can use total_gpu_memory (79.18GiB) x gpu_memory_utilization (0.80) = 63.34GiB"), d.log("INFO", "worker.py:266", "model weights take 14.99GiB; non_torch_memory takes 0.11GiB; PyTorch activation peak memory takes 1.23GiB; the rest of the memory reserved for KV Cache is 47.01GiB."),
            d.log("INFO", "v0_cap", "Capturing cudagraphs for decoding. This may lead to unexpected consequences if the model is not static. If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization` or switching to eager mode. You can also reduce the `max_num_seqs` as needed to decrease memory usage."),
            bar("Capturing CUDA graph shapes", 35, 35), d.log("INFO", "v0_graph", "Graph capturing finished in 17 secs, took 1.98 GiB"), d.log("INFO", "launcher.py:23", "Available routes are:")]


@negative("start-sglang", "healthy_log", ["bare"], engine="sglang")
def start_sglang(d):
    """SGLang's start of two ranks."""
    d.at("load", engine="sglang")
    found = []
    for r in (0, 1):
        found.append([d.sglang("Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=14.21 GB, mem usage=8.12 GB.", f"TP{r}"), d.sglang("KV Cache is allocated. #tokens: 214012, K size: 2.86 GB, V size: 2.86 GB", f"TP{r}"), d.sglang("Memory pool end. avail mem=6.11 GB", f"TP{r}"), d.sglang("Capture cuda graph begin. This can take up to several minutes. avail mem=5.99 GB", f"TP{r}")])
    return interleave(d, *found) + [d.sglang("The server is fired up and ready to roll!", "")]


@negative("start-parts", "healthy_log", ["bare", "bare", "bare", "bare", "ansi"])
def start_parts(d):
    """Pieces of healthy starts: warnings that name memory, a bar that goes on, sizes of the cache."""
    d.at("cgprof", among=["0.20.1", "0.24.0"])
    return [[d.log("WARNING", "config.py:1151", "Possibly too large swap space. 4.00 GiB out of the 6.90 GiB total CPU memory is allocated for the swap space."), d.log("WARNING", "_logger.py:72", "CUDA graph is not supported on CPU, fallback to the eager mode.")],
            [bar("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", n, 51) for n in (12, 25, 38)],
            [d.log("WARNING", "kv_size", "Hybrid KV cache manager is disabled for this hybrid model, This means we do not enable any optimizations for saving KV cache memory (e.g., dropping the KV cache outside the sliding window). The compute of layers like sliding window is still saved.", d.core()), *kv_lines(d)],
            [d.log("WARNING", "profiling.py:222", "The context length (4096) of the model is too short to hold the multi-modal embeddings in the worst case (24576 tokens in total, out of which {'image': 16384} are reserved for multi-modal embeddings). This may cause certain multi-modal inputs to fail during inference, even when the input text is short.")],
            [available(d, 21.4), *kv_lines(d), d.log("INFO", "cg_estimate", "Estimated CUDA graph memory: 0.41 GiB total", d.core())]][d.variant]


@negative("start-npu-summary", "healthy_log", ["bare"], engine="vllm-ascend")
def start_npu_summary(d):
    """The summary of a good start."""
    d.at("core_head", among=["0.20.1"])
    return d.log("INFO", "worker.py:561", "Free memory on device (60.71/61.27 GiB) on startup. Desired GPU memory utilization is (0.9, 55.14 GiB). Actual usage: 2.31 GiB for weights, 0.34 GiB for peak activation, 0.12 GiB for non-torch memory, and 0.05 GiB for graph memory.", d.core())


@negative("sleep-log", "healthy_log", ["bare", "bare"])
def sleep_log(d):
    """Sleep and wake-up that go well, or free nothing."""
    d.at("wake", among=["0.11.2", "0.13.0"])
    if d.variant:
        return [d.log("INFO", "sleep", "Sleep mode freed 0.00 GiB memory, 58.02 GiB memory is still in use."), d.log("INFO", "executor_base.py:208", "It took 0.000611 seconds to fall asleep.")]
    return [d.log("INFO", "cumem.py:238", "CuMemAllocator: sleep freed 41.20 GiB memory in total, of which 14.99 GiB is backed up in CPU and the rest 26.21 GiB is discarded directly.", d.core()), d.log("INFO", "sleep", "Sleep mode freed 42.11 GiB memory, 1.31 GiB memory is still in use.", d.core()), d.log("INFO", "abstract.py:324", "It took 0.061124 seconds to wake up tags ['weights'].", d.core())]


@negative("retracted", "healthy_log", ["bare", "compose"], engine="sglang", decide="weak no", sure="medium")
def retracted(d):
    """SGLang takes requests back and goes on: its line has the words."""
    d.at("loop", engine="sglang")
    text = f"Decode out of memory happened. #retracted_reqs: {d.between(1, 4)}, #new_token_ratio: 0.{d.between(1000, 4000)} -> 0.{d.between(4001, 9000)}"
    return [d.sglang(text, f"TP{r}") for r in (3, 0, 1, 2)] + [d.sglang("Decode batch. #running-req: 61, #token: 180114, token usage: 0.97, gen throughput (token/s): 811.20, #queue-req: 14")]


@negative("autotuner", "healthy_log", ["bare", "compose"], decide="weak weak")
def autotuner(d):
    """FlashInfer's autotuner skips a tactic; the start goes on."""
    d.at("core_head", among=["0.20.1", "0.24.0"])
    return ["[Autotuner]: OOM detected, falling back to default tactic"] * 2 + ([d.log("INFO", "init_engine", f"init engine (profile, create kv cache, warmup model) took {d.real(20, 90)} seconds", d.core())] if d.variant else [])


@negative("lmcache-full", "bad_config", ["bare"], decide="weak weak", sure="medium")
def lmcache_full(d):
    """A cache beside the engine is full and stores nothing; serving goes on."""
    return [f"[{d.stamp()},{d.between(100, 999)}] LMCache INFO: Storing KV cache for 2104 out of 2104 tokens (skip_leading_tokens=0) for request {d.between(1, 99)} (vllm_v1_adapter.py:770:lmcache.integration.vllm.vllm_v1_adapter)",
            f"[{d.stamp()},{d.between(100, 999)}] LMCache WARNING: Failed to allocate memory for the KV cache.", "The KV cache will not be stored. (cache_engine.py:204:lmcache.v1.cache_engine)"]


@negative("json-start", "healthy_log", ["bare"], engine="llama.cpp", decide="weak weak")
def json_start(d):
    """A program logs the command that it starts."""
    return json.dumps({"timestamp": d.iso(), "level": "info", "event": "Starting llama-server: C:\\models\\llama-server.exe -m C:\\models\\gemma-3-4b.gguf --port 41011 -c 8192 --parallel 1 --flash-attn on --fit on"})


# ---- words that deny it

@negative("killed-false", "healthy_log", ["bare", "bare", "bare"])
def killed_false(d):
    """A container's state says that nothing was killed: a key with its value."""
    if d.variant == 0:
        return ["        \"State\": {", "            \"Status\": \"running\",", "            \"Running\": true,", "            \"OOMKilled\": false,", "            \"Dead\": false,", "            \"ExitCode\": 0,"]
    if d.variant == 1:
        return f"container=engine-{d.hexa(4)} status=running oomKilled=false exitCode=0 restarts=0"
    return json.dumps([{"Id": d.hexa(64), "State": {"Status": "exited", "OOMKilled": False, "ExitCode": 0, "Error": ""}}])


@negative("cgroup-zero", "healthy_log", ["bare", "bare", "bare"])
def cgroup_zero(d):
    """Counters of the kernel that are zero, and a score that is only a setting."""
    return [["low 0", f"high {d.between(0, 900)}", "max 0", "oom 0", "oom_kill 0", "oom_group_kill 0"], ["# HELP node_vmstat_oom_kill /proc/vmstat information field oom_kill.", "# TYPE node_vmstat_oom_kill untyped", "node_vmstat_oom_kill 0"], [f"runc create: pid={d.pid} oom_score_adj=985 memory.max=137438953472 memory.current=8121122816"]][d.variant]


@negative("counted-none", "healthy_log", ["bare", "bare", "bare"])
def counted_none(d):
    """Sentences that say that there was none."""
    return [f"{d.stamp()} report: 0 CUDA out of memory errors in the last 24 hours, {d.between(900, 9000)} requests served", f"{d.stamp()} INFO soak: no out of memory after {d.between(4, 40)} h, peak 61.2 GiB", "health: oom=false gpu_memory=ok kv_cache_usage=0.41"][d.variant]


@negative("test-names", "healthy_log", ["ci", "bare"])
def test_names(d):
    """Tests whose names have the words, and pass."""
    names = ["test_cuda_out_of_memory", "test_oom_message_is_parsed", "test_host_oom_kill", "test_no_available_memory_for_cache_blocks"]
    return [f"tests/memory/test_failures.py::{name} PASSED".ljust(88) + f"[ {20 + 19 * i}%]" for i, name in enumerate(names)] + [f"======================== {len(names)} passed in {d.real(1, 40)}s ========================"]


@negative("urls", "healthy_log", ["bare", "k8s", "compose"])
def urls(d):
    """An access log with the words in what people asked for."""
    return [f'10.0.{d.below(9)}.{d.between(2, 250)} - - [{d.day:02}/Nov/2026:{d.clock()} +0000] "GET {path} HTTP/1.1" 200 {d.between(300, 90000)}' for path in ("/search?q=CUDA+out+of+memory", "/docs/faq.html#torch.OutOfMemoryError", "/v1/models", "/search?q=exit+code+137")]


@negative("prompt-words", "healthy_log", ["bare", "bare"])
def prompt_words(d):
    """A request's text is about running out of memory; the engine is well."""
    d.at("core_head", among=["0.20.1", "0.24.0"])
    text = "Why does my training say torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB?"
    if d.variant:
        return json.dumps({"model": "chat", "messages": [{"role": "user", "content": text}], "max_tokens": 256})
    return [d.log("INFO", "logger.py:40", f"Received request chatcmpl-{d.hexa(32)}: prompt: {text!r}, params: SamplingParams(n=1, temperature=0.7, max_tokens=256), prompt_token_ids: None, lora_request: None.", f"(APIServer pid={d.pid}) "), f"(APIServer pid={d.pid}) INFO:     10.0.0.9:50122 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK"]


@negative("gpu-table", "healthy_log", ["bare"])
def gpu_table(d):
    """nvidia-smi of a busy and healthy card."""
    return ["|=========================================+========================+======================|", "|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |", "| N/A   41C    P0             88W /  400W |   72114MiB /  81920MiB |     97%      Default |", "|    0   N/A  N/A           41221      C   VLLM::EngineCore                      72100MiB |"]


# ---- killed, and nothing says by what

@negative("stopped", "insufficient_info", ["bare", "bare", "compose", "bare"], decide="no no", sure="low")
def stopped(d):
    """137 is any SIGKILL: after a stop and its grace, by a probe, or without any word."""
    return [["INFO:     Shutting down", "INFO:     Waiting for application shutdown.", "container vllm exited with code 137"], ["$ docker stop vllm", "vllm", "vllm exited with code 137"], ["INFO:     Shutting down", "exited with code 137"],
            [f"{d.iso()} container die {d.hexa(64)} (exitCode=137, image=engine:latest, name=engine)", f"{d.iso()} container stop {d.hexa(64)} (image=engine:latest, name=engine)"]][d.variant]


@negative("probe-killed", "insufficient_info", ["bare", "bare"], decide="no no", sure="low")
def probe_killed(d):
    """Kubernetes ends the container because a probe failed, or because the node is out of disk."""
    if d.variant:
        return ["Warning  Evicted    3m    kubelet  The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 8212Mi.", "Normal   Killing    3m    kubelet  Stopping container engine"]
    return ["Warning  Unhealthy  12m (x3 over 14m)  kubelet  Liveness probe failed: Get \"http://10.42.0.31:8000/health\": context deadline exceeded", "Normal   Killing    12m                kubelet  Container engine failed liveness probe, will be restarted", "    Last State:     Terminated", "      Reason:       Error", "      Exit Code:    137"]


@negative("died-silently", "insufficient_info", ["bare", "bare", "bare"], decide="no no", sure="low")
def died_silently(d):
    """A process is gone, and no line says why."""
    d.at("apiwait")
    if d.variant == 0:
        return "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}"
    if d.variant == 1:
        return d.stack(d.frames("apiwait"), "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}", f"(APIServer pid={d.pid}) ", head=False)
    return [bar("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", n, 67) for n in (14, 15)] + ["Engine core proc EngineCore_DP0 died unexpectedly, shutting down client."]


# ---- other errors

@negative("illegal-access", "kernel_fault", ["bare", "bare", "box", "compose", "bare"])
def illegal_access(d):
    """A kernel's fault has the word memory in its name."""
    if d.variant == 0:
        d.at("busy_exec", "exec")
        return worker_fail(d, ["busy_exec", "exec"], "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n" + ASYNC, 2)
    if d.variant == 1:
        d.at("run", among=["0.24.0", "0.27.1"])
        return [d.log("ERROR", "fatal", "RuntimeError: Worker failed with error 'CUDA error: an illegal memory access was encountered", d.core()), d.log("ERROR", "fatal", "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.", d.core())]
    if d.variant == 4:
        return "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered"
    d.at("exec", v0=True, among=["0.6.3", "0.7.2"])
    return [d.log("ERROR", "v0_loop", line) for line in ("RuntimeError: CUDA error: an illegal memory access was encountered\n" + ASYNC).split("\n")]


@negative("device-assert", "kernel_fault", ["bare", "bare"])
def device_assert(d):
    """An assertion on the device, or an access beyond the largest address."""
    if d.variant:
        return [":0:rocdevice.cpp:3690: Callback: Queue 0x7f12a0300000 aborting with error:", "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: The agent attempted to access memory beyond the largest legal address. code: 0x29"]
    name = f"/tmp/cache/{d.hexa(10)}/rank_0_0/{d.hexa(24)}.py:41: unknown: block: [7,0,0], thread: [{{}},0,0] Assertion `index out of bounds: 0 <= tl.broadcast_to(tmp4, [XBLOCK]) < 151936` failed."
    return [name.format(n) for n in (32, 33, 34)]


@negative("no-kernel", "driver_or_env_mismatch", ["bare", "compose", "crlf"])
def no_kernel(d):
    """The binary has no code for this card."""
    d.at("profile")
    if d.variant == 2:
        return ["ggml_cuda_compute_forward: MUL_MAT failed", "D:\\a\\llama.cpp\\ggml\\src\\ggml-cuda\\ggml-cuda.cu:84: CUDA error", "CUDA error: no kernel image is available for execution on the device", "  current device: 0, in function ggml_cuda_compute_forward at ggml-cuda.cu:2362"]
    return core_fail(d, ["profile"], "RuntimeError: CUDA error: no kernel image is available for execution on the device\n" + ASYNC)


@negative("device-gone", "device_unavailable", ["bare", "bare", "bare", "bare"])
def device_gone(d):
    """The device is busy, or not there."""
    if d.variant == 0:
        d.at("snapshot")
        return core_fail(d, ["snapshot"], "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable", skip=4)
    return [None, "RuntimeError: No CUDA GPUs are available", ["ggml_cuda_init: found 2 CUDA devices:", "  Device 0: GRID V100D-16C, compute capability 7.0, VMM: no", "CUDA error: CUDA-capable device(s) is/are busy or unavailable from `cudaSetDevice(device)`"],
            ["  File \"/opt/venv/lib/python3.11/site-packages/torch/cuda/__init__.py\", line 319, in _lazy_init", "    queued_call()", "RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at \"../aten/src/ATen/cuda/CUDAContext.cpp\":51, please report a bug to PyTorch. device=1, num_gpus=1"]][d.variant]


@negative("port-taken", "network_or_ipc", ["bare", "ray_repeated"])
def port_taken(d):
    """A port is in use."""
    d.at("init_device")
    return core_fail(d, ["core_load"], f"torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: {d.between(20000, 50000)}, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use", skip=3)


@negative("nccl-timeout", "network_or_ipc", ["bare", "bare", "actor"])
def nccl_timeout(d):
    """A collective never ends."""
    rank, number = d.below(8), d.between(1, 90000)
    stamp = f"[rank{rank}]:[E{d.month}{d.day:02} {d.clock()}.{d.between(100000000, 999999999)} ProcessGroupNCCL.cpp"
    return [f"{stamp}:629] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=8192, NumelOut=8192, Timeout(ms)=600000) ran for 600{d.between(100, 999)} milliseconds before timing out.",
            f"{stamp}:681] [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.", f"{stamp}:695] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down."]


@negative("nccl-usage", "driver_or_env_mismatch", ["bare", "bare", "bare", "bare"])
def nccl_usage(d):
    """NCCL fails for another reason, once behind the hint about running out of memory."""
    host = f"gpu{d.hexa(3)}:{d.pid}:{d.pid} [0]"
    if d.variant == 0:
        d.at("capture", v0=True, among=["0.5.4"])
        return [d.log("INFO", "v0_cap2", "CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider decreasing `gpu_memory_utilization` or enforcing eager mode. You can also reduce the `max_num_seqs` as needed to decrease memory usage.", d.v0worker()),
                f"{host} misc/strongstream.cc:55 NCCL WARN NCCL cannot be captured in a graph if either it wasn't built with CUDA runtime >= 11.3 or if the installed CUDA driver < R465.", "RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)"]
    what = ["", "Cuda failure 1 'invalid argument'", "Cuda failure 3 'initialization error'", "Cuda failure 'initialization error'"][d.variant]
    if d.variant == 3:
        return ["torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5", "ncclUnhandledCudaError: Call to CUDA function failed.", "Last error:", what]
    return [f"{host} transport/nvls.cc:{d.between(150, 260)} NCCL WARN {what}", f"{host} NCCL INFO transport/nvls.cc:331 -> 1", "[rank0]: RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"]


@negative("nccl-internal", "network_or_ipc", ["bare", "bare"], decide="yes weak", sure="medium")
def nccl_internal(d):
    """NCCL's own fault, without a word of memory."""
    d.at("dist")
    if d.variant:
        return core_fail(d, ["dist"], "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)", skip=8)
    return ["torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, internal error - please report this issue to the NCCL developers, NCCL version 2.18.1", "ncclInternalError: Internal check failed.", "Last error:", "Net : Call to bind failed : Address already in use"]


@negative("settings", "bad_config", ["bare", "bare", "compose", "bare", "bare", "bare", "bare"])
def settings(d):
    """Settings that cannot be."""
    d.at("core_load")
    texts = ["ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla V100-SXM2-16GB GPU has compute capability 7.0. You can use float16 instead by explicitly setting the `dtype` flag in CLI, for example: --dtype=half.",
             "ValueError: Total number of attention heads (40) must be divisible by tensor parallel size (3).", "ValueError: LoRA rank 128 is greater than max_lora_rank 16.",
             "ValueError: This model's maximum context length is 8192 tokens. However, you requested 41022 tokens (39998 in the messages, 1024 in the completion). Please reduce the length of the messages or completion.",
             "OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct.\n403 Client Error. (Request ID: Root=1-" + d.hexa(24) + ")",
             "ValueError: Hybrid KV cache manager is disabled but failed to convert the KV cache specs to one unified type.", "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method"]
    return core_fail(d, ["core_load"], texts[d.variant], skip=3) if d.variant not in (3, 4) else texts[d.variant]


@negative("triton-shared", "bad_config", ["bare", "compose"])
def triton_shared(d):
    """A kernel wants more shared memory than a multiprocessor has: not the card's memory."""
    d.at("run")
    text = f"triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: {d.pick([73728, 82944, 114688])}, Hardware limit: {d.pick([65536, 101376])}. Reducing block sizes or `num_stages` may help."
    return text if d.variant == 0 else core_fail(d, ["run"], text, site="fatal")


@negative("flashinfer-buffer", "bad_config", ["bare", "words"])
def flashinfer_buffer(d):
    """A fixed workspace is too small: a setting, not the card."""
    want = d.between(270, 500) * MIB
    text = f"Buffer overflow when allocating memory for batch_prefill_tmp_v with size {want} and alignment 16, but only {want - d.between(9, 90) * MIB} bytes available in AlignedAllocator. Increase the workspace buffer size."
    return f"RuntimeError: Error in function 'aligned_alloc' at /opt/flashinfer/include/flashinfer/allocator.h:{d.between(46, 55)}: {text}"


@negative("nvshmem-teams", "bad_config", ["bare"], engine="deepep")
def nvshmem_teams(d):
    """NVSHMEM calls the lack of team slots out of memory."""
    return "/build/nvshmem/src/host/team/team_internal.cpp:1822: error status: 2 (NVSHMEMX_ERROR_OUT_OF_MEMORY) No more teams available (max = 5), try setting NVSHMEM_MAX_TEAMS environment variable"


@negative("capture-assert", "bad_config", ["bare", "compose"], engine="sglang")
def capture_assert(d):
    """SGLang's advice about memory below an error that is none of memory."""
    d.at("capture_raise", engine="sglang")
    why = ["Failed: Assertion error /sgl-workspace/DeepEP/csrc/deep_ep.cpp:1061 'x.size(0) == topk_idx.size(0) and x.size(0) <= num_max_dispatch_tokens_per_rank'", "'NoneType' object has no attribute 'shape'"][d.variant]
    return d.stack(d.frames("capture_raise"), f"Exception: Capture cuda graph failed: {why}\n{STEPS}")


@negative("capture-empty", "engine_bug", ["compose"], engine="sglang", decide="weak no", sure="medium")
def capture_empty(d):
    """The same advice below nothing."""
    d.at("capture_raise", engine="sglang")
    return d.stack(d.frames("capture_raise")[-2:], "Exception: Capture cuda graph failed: \n" + STEPS, head=False) + [d.sglang("Scheduler hit an exception:", "DP3 TP3")]


@negative("pool-leak", "engine_bug", ["bare", "bare"], engine="sglang")
def pool_leak(d):
    """SGLang's own count of its pool is wrong."""
    if d.variant:
        return ["ValueError: token_to_kv_pool_allocator memory leak detected! available_size=188102, protected_size=0, self.max_total_num_tokens=188040", "self.token_to_kv_pool_allocator.available_size()=186002", "self.tree_cache.evictable_size()=2100", "", f"[{d.stamp()}] Received sigquit from a child process. It usually means the child failed.", "./serve.sh: line 14: 20112 Killed                  python -m sglang.launch_server --mem-fraction-static 0.9"]
    return ["    raise ValueError(message)", "ValueError: pool memory leak detected! [full] total=204800, available=512, evictable=204280, protected=0, session_held=0, uncached=0"]


@negative("allocator-assert", "engine_bug", ["bare", "bare"])
def allocator_assert(d):
    """Assertions of the allocator that are not about what is left."""
    return ['RuntimeError: captures_underway.empty() INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":2939, please report a bug to PyTorch. ', "RuntimeError: Cannot call CUDAGeneratorImpl::current_seed during CUDA graph capture. If you need this call to be captured, please file an issue. Current cudaStreamCaptureStatus: cudaStreamCaptureStatusActive"][d.variant]


@negative("engine-bugs", "engine_bug", ["bare", "bare", "compose", "bare", "bare", "bare"])
def engine_bugs(d):
    """Errors of the code in places where memory is often the reason."""
    d.at("profile", "core_load", "kv_alloc")
    chain, text = [("profile", "RuntimeError: Worker failed with error 'Observed exception\n\nfrom user code:\n   File \"model.py\", line 371, in forward\n\nSet TORCH_LOGS=\"+dynamo\" and TORCHDYNAMO_VERBOSE=1 for more information', please check the stack trace above for the root cause"),
                   ("core_load", "AttributeError: 'Qwen2ForCausalLM' object has no attribute 'pooler'"), ("kv_alloc", "RuntimeError: shape '[2, 2211, 16, 8, 128]' is invalid for input of size 72450048"),
                   ("core_load", "RuntimeError: The size of tensor a (1024) must match the size of tensor b (2048) at non-singleton dimension 1"), ("core_load", "NotImplementedError"), ("core_load", "KeyError: 'model.layers.3.mlp.experts.w13_weight'")][d.variant]
    return core_fail(d, [chain], text, skip=3)


@negative("cut-stacks", "insufficient_info", ["bare", "flat", "bare", "wrap", "bare"], decide="no no", sure="low")
def cut_stacks(d):
    """Stacks that end before their error: the load, the profile run, the sampler. They do not decide."""
    chains = [["core_load", "load"], ["core_head"], ["core_load"], ["busy_exec"], ["penalties"]][d.variant]
    d.at(*chains)
    return [d.log("ERROR", "failed", line, d.core()) for line in d.stack(d.frames(*chains)[:4], head=d.variant != 4)]


@negative("custom-allreduce", "driver_or_env_mismatch", ["bare", "bare"], decide="yes weak", sure="medium")
def custom_allreduce(d):
    """The custom all-reduce cannot open a peer's memory."""
    if d.variant:
        return ["Profiling CUDA graph memory: PIECEWISE=2 (largest=2), FULL=1 (largest=1)", "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'invalid argument'", "EngineCore failed to start: Worker proc VllmWorker-1 died unexpectedly"]
    return ["INFO [gpu_model_runner.py:4411] Capturing cudagraphs for decoding.", "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:364 'invalid argument'"]


@negative("saver-argument", "engine_bug", ["actor"], engine="sglang", decide="weak weak", sure="medium")
def saver_argument(d):
    """The memory saver's resume fails with result 1, an invalid value."""
    return ["resume_memory_occupation weights", "resume_memory_occupation kv_cache", f"[torch_memory_saver.cpp] CUresult error  result=1 file=csrc/torch_memory_saver.cpp func=resume line={d.between(190, 220)}"]


@negative("hip-argument", "driver_or_env_mismatch", ["bare", "bare"])
def hip_argument(d):
    """The query of the device's memory fails for another reason; and UVA is not there."""
    d.at("snapshot")
    if d.variant:
        return core_fail(d, ["snapshot"], "RuntimeError: UVA is not available", skip=5)
    return d.stack(d.frames("snapshot")[-3:], "RuntimeError: HIP error: invalid argument\nHIP kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing AMD_SERIALIZE_KERNEL=3\nCompile with `TORCH_USE_HIP_DSA` to enable device-side assertions.")


@negative("heap-corruption", "driver_or_env_mismatch", ["bare"], decide="yes weak", sure="medium")
def heap_corruption(d):
    """The C library finds its heap damaged."""
    return ["DEBUG [__init__.py:52] Checking if CUDA platform is available.", "DEBUG [__init__.py:72] Confirmed CUDA platform is available.", "double free or corruption (!prev)", "Aborted (core dumped)"]


@negative("cublas-internal", "driver_or_env_mismatch", ["bare", "bare"], decide="weak weak", sure="medium")
def cublas_internal(d):
    """cuBLAS and launches fail for reasons other than memory."""
    return ["RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle, opa, opb, m, n, k, &falpha, a, CUDA_R_16BF, lda)`", "RuntimeError: CUDA error: too many resources requested for launch\n" + ASYNC][d.variant]


@negative("disk-full", "bad_config", ["bare", "compose"])
def disk_full(d):
    """No space is left on a disk, not on a card and not in shared memory."""
    return [["OSError: [Errno 28] No space left on device: '/models/hub/models--Qwen--Qwen3-8B/blobs/tmp" + d.hexa(8) + "'"], ["RuntimeError: Data processing error: CAS service error : IO Error: No space left on device (os error 28)"]][d.variant]


@negative("file-missing", "bad_config", ["date", "bare"])
def file_missing(d):
    """A file is not there, or too many are open."""
    return [["llama_model_load: error loading model: llama_model_loader: failed to load model from /models/chat.gguf", "AssertionError"], ["OSError: [Errno 24] Too many open files: '/proc/self/fd'"]][d.variant]


@negative("peers-gone", "network_or_ipc", ["bare", "bare"])
def peers_gone(d):
    """A peer closes the connection; a rendezvous finds nobody."""
    return [f"torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.", f"gpu{d.hexa(3)}:{d.pid}:{d.pid + 50} [1] misc/socket.cc:538 NCCL WARN Net : Connection closed by remote peer 10.0.0.5<{d.between(30000, 60000)}>"][d.variant]


@negative("slurm-limit", "insufficient_info", ["bare"], decide="no no", sure="low")
def slurm_limit(d):
    """The cluster's time is over."""
    return f"slurmstepd: error: *** JOB {d.between(100000, 900000)} ON gpu-a12 CANCELLED AT {d.year()}-{d.date()}T{d.clock()} DUE TO TIME LIMIT ***"


@negative("mid-serving", "engine_bug", ["bare", "compose"])
def mid_serving(d):
    """Serving dies of another error in the step that often runs out."""
    d.at("busy_exec", "exec")
    return stats(d, 2) + worker_fail(d, ["busy_exec", "exec"], ["AssertionError: Encoder cache miss for " + d.hexa(40) + ".", "IndexError: index 8192 is out of bounds for dimension 0 with size 8192"][d.variant], 0)
