"""One recipe for each mechanism: what an engine prints when it happens. render.py draws the figures, names, prefixes and cuts.

The sentences are the format strings of the engines and libraries; the figures, names and paths are drawn, and add up. Order: phases of a
start, serving, sleep, host, then what is not a lack of memory."""

import render
from render import ASYNC, GIB, MIB, cut, interleave, recipe

MODELS = ["meta-llama/Llama-3.1-70B-Instruct", "Qwen/Qwen2.5-32B-Instruct", "mistralai/Mistral-Small-24B-Instruct-2501", "google/gemma-3-27b-it", "Qwen/Qwen3-30B-A3B", "/models/chat"]
DOCS = " See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
SHUT = "Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources. For more info, please see https://pytorch.org/docs/stable/distributed.html#shutdown"


def shutdown(d):
    return f"[rank0]:[W{d.month}{d.day:02} {d.clock()}.{d.between(100000000, 999999999)} ProcessGroupNCCL.cpp:{d.between(1400, 1560)}] {SHUT}"


def core_fail(d, chains, error, skip=0, before=(), site="failed", after=True, wrappers=True):
    """The engine core gives up: its line, its traceback."""
    prefix = d.core()
    lines = list(before)
    if d.newer("0.8.5"):
        lines.append(d.log("ERROR", site, "EngineCore failed to start." if site == "failed" else "EngineCore encountered a fatal error.", prefix))
        lines += d.trace("ERROR", site, chains, error, prefix, skip=skip, wrappers=wrappers)
    else:
        stack = d.trace("ERROR", site, chains, error, prefix, skip=skip, wrappers=wrappers)
        lines += [stack[0].replace("Traceback", "EngineCore hit an exception: Traceback", 1)] + stack[1:]
    if after and d.newer("0.8.5") and error:
        lines.append(f"{prefix}Process {'EngineCore_0' if not d.newer('0.10.1') else 'EngineCore_DP0' if not d.newer('0.18.0') else 'EngineCore'}:")
    return lines


def worker_fail(d, chains, error, rank=0, site="worker_hit", skip=0, wrappers=True, kind="TP"):
    prefix = d.worker(rank, kind)
    head = "WorkerProc failed to start." if site == "worker_start" else "WorkerProc hit an exception." if d.newer("0.9.0") else "WorkerProc hit an exception: %s"
    return [d.log("ERROR", site, head, prefix), *d.trace("ERROR", site, chains, error, prefix, skip=skip, wrappers=wrappers)]


def took(d, gib, before=None):
    d.note(weights_mib=round(gib * 1024, 4))
    text = f"Model loading took {gib:.4f} {'GB' if not d.newer('0.8.4') else 'GiB'} and {d.real(1, 60, 6):.6f} seconds" if not d.newer("0.11.0") else (
        f"Model loading took {gib:.4f} GiB memory and {d.real(1, 60, 6):.6f} seconds" if not d.newer("0.14.0") else f"Model loading took {gib} GiB memory and {d.real(1, 60, 6):.6f} seconds")
    return d.log("INFO", "took", text, d.core() if before is None else before)


def available(d, gib, before=None):
    d.note(kv_available_mib=round(gib * 1024, 4))
    return d.log("INFO", "available", f"Available KV cache memory: {gib:.2f} GiB" if not d.newer("0.14.0") else f"Available KV cache memory: {gib} GiB", d.core() if before is None else before)


def no_blocks(d):
    if not d.newer("0.12.0"):
        return "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
    more = " (this flag also controls CPU memory reservation on the CPU backend, despite its name)" if d.newer("0.27.0") else ""
    return f"No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine{more}." + DOCS


def too_long(d, release=True):
    """The refusal of the KV cache's arithmetic: needed, available and what would fit, all from one size per token."""
    tokens = d.pick([8192, 16384, 32768, 65536, 131072, 262144])
    per = d.pick([36, 56, 64, 96, 128, 160, 192, 320]) * 1024
    needed = tokens * per
    have = int(needed * d.real(0.12, 0.97, 4))
    fits = have // per // 16 * 16
    d.note(max_seq_len=tokens, kv_needed_mib=f"{needed / GIB:.2f} GiB", kv_available_mib=f"{have / GIB:.2f} GiB")
    if release and not d.newer("0.9.0"):
        return (f"To serve at least one request with the models's max seq len ({tokens}), ({needed / GIB:.2f} GB KV cache is needed, which is larger than the available KV cache memory "
                f"({have / GIB:.2f} GB). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.")
    d.note(est_max_model_len=fits)
    owner = "model's" if release and d.newer("0.16.0") else "models's"
    return (f"To serve at least one request with the {owner} max seq len ({tokens}), ({needed / GIB:.2f} GiB KV cache is needed, which is larger than the available KV cache memory "
            f"({have / GIB:.2f} GiB). Based on the available memory, the estimated maximum model length is {fits}. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` "
            "when initializing the engine." + (DOCS if release and d.newer("0.12.0") else ""))


def too_long_v0(d, setting="`gpu_memory_utilization`"):
    tokens = d.pick([4096, 8192, 16384, 32768, 65536, 131072])
    blocks = d.between(tokens // 16 // 5, tokens // 16 - 1)
    d.note(max_seq_len=tokens, kv_tokens=blocks * 16)
    return blocks, (f"The model's max seq len ({tokens}) is larger than the maximum number of tokens that can be stored in KV cache ({blocks * 16}). Try increasing {setting} or decreasing "
                    "`max_model_len` when initializing the engine.")


def free_refused(d, total, used, share, digits=2):
    """Free memory on startup below the budget."""
    free, want = round(total - used, 2), round(total * share, 2)
    d.note(startup_free_mib=round(free * 1024, 4), gpu_total_mib=round(total * 1024, 4), gmu=share, requested_mib=round(want * 1024, 4))
    where = "cuda:0 " if d.newer("0.14.0") else ""
    return (f"Free memory on device {where}({free}/{total} GiB) on startup is less than desired GPU memory utilization ({share}, {want} GiB). Decrease GPU memory utilization or reduce GPU "
            "memory used by other processes.")


def stats(d, count=2, before=""):
    found = []
    for _ in range(count):
        found.append(d.log("INFO", "stats", f"Engine 000: Avg prompt throughput: {d.real(0, 9000, 1)} tokens/s, Avg generation throughput: {d.real(5, 900, 1)} tokens/s, "
                           f"Running: {d.between(1, 240)} reqs, Waiting: {d.between(0, 40)} reqs, GPU KV cache usage: {d.real(5, 98, 1)}%, Prefix cache hit rate: {d.real(0, 70, 1)}%", before))
        d.tick(10)
    return found


def kv_lines(d, before=None):
    tokens, length = d.between(9000, 700000) // 16 * 16, d.pick([4096, 8192, 32768, 131072])
    before = d.core() if before is None else before
    if d.newer("0.28.0"):
        return [d.log("INFO", "kv_size", f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for {length:,} tokens per request: {tokens / length:.2f}x", before)]
    return [d.log("INFO", "kv_size", f"GPU KV cache size: {tokens:,} tokens", before), d.log("INFO", "concurrency", f"Maximum concurrency for {length:,} tokens per request: {tokens / length:.2f}x", before)]


def first_of(d, *streams):
    """Mixed lines of several ranks, each with its figures; the label has those of the sentence that comes first."""
    lines = interleave(d, *[lines for lines, _ in streams])
    where = [next(i for i, line in enumerate(lines) if line == of[-1]) for of, _ in streams]
    d.note(**streams[where.index(min(where))][1])
    return lines


def bar(what, done, of, rest="00:0{}<00:1{}, {}it/s"):
    share = done / of
    return f"{what}: {share * 100:3.0f}%|{'█' * int(share * 10):<10}| {done}/{of} [" + rest.format(done % 9 + 1, done % 7 + 1, "%.2f" % (3 + done % 5)) + "]"


# ---- first memory check

@recipe("free-held", "config_refusal init_free_memory_check other_process_holds_memory stale_process_or_leftover,gmu_too_high_leaves_no_headroom",
        ["bare", "bare", "ansi", "compose", "kubectl", "words"], decide="yes weak")
def free_held(d):
    """Other processes hold much of the card when the engine compares what is free with its budget."""
    d.at("init_device")
    total = d.card("a10g", "rtx4090", "a100-80", "h200", "rtx4080")
    error = "ValueError: " + free_refused(d, total, total * d.real(0.25, 0.95), d.pick([0.85, 0.9, 0.92]))
    return error if d.variant in (0, 5) else core_fail(d, ["init_device"], error, skip=d.below(4))


@recipe("free-own-context", "config_refusal init_free_memory_check gmu_too_high_leaves_no_headroom other_process_holds_memory", ["bare", "journald"], decide="yes weak")
def free_own_context(d):
    """A share so near to one that the context and the desktop alone are enough to fail the comparison."""
    d.at("init_device")
    total = d.card("rtx4090", "rtx5090", "l4")
    return core_fail(d, ["init_device"], "ValueError: " + free_refused(d, total, d.real(0.9, 1.4), d.pick([0.97, 0.98])), skip=3)


@recipe("free-leftover", "config_refusal init_free_memory_check stale_process_or_leftover other_process_holds_memory", ["ci", "ci+words", "bare"], decide="yes weak")
def free_leftover(d):
    """The engine of the test before has not gone when the next one starts."""
    d.at("init_device", among=["0.11.2", "0.15.1", "0.24.0"])
    total = d.card("l4", "a10g", "b200")
    error = "ValueError: " + free_refused(d, total, total * d.real(0.5, 0.95), 0.9)
    lines = [f"tests/entrypoints/test_{d.pick(['serve', 'chat', 'pooling'])}.py::test_{d.pick(['two_models', 'restart', 'logprobs'])}[{d.below(9)}] "]
    return lines + [d.log("ERROR", "failed", error, d.core())] if d.variant < 2 else core_fail(d, ["init_device"], error, before=["============ test 2 of 9 ============"])


@recipe("free-regression", "config_refusal init_free_memory_check version_regression nccl_buffers,gmu_too_high_leaves_no_headroom", ["ci"], decide="yes weak", sure="medium")
def free_regression(d):
    """A newer library takes a little more before the check: what is free on the second device is just below the budget."""
    d.at("init_device", among=["0.15.1", "0.20.1"])
    total = d.card("l4", "a10g")
    return d.core() + ("ValueError: " + free_refused(d, total, round(total * 0.1, 2) + d.real(0.03, 0.12), 0.9)).replace("cuda:0", "cuda:1")


@recipe("free-retyped", "config_refusal init_free_memory_check other_process_holds_memory", ["bare", "bare"], decide="yes weak")
def free_retyped(d):
    """The sentence of the check typed again by a person: spaces and the end are missing."""
    d.at("init_device", among=["0.11.2", "0.13.0"])
    total = d.card("t4", "rtx4070")
    text = free_refused(d, total, total * 0.9, 0.5).split(" Decrease")[0]
    return text.replace(" GiB", "GiB").replace("utilization (", "utilization(") if d.variant else text


@recipe("free-frames", "config_refusal init_free_memory_check other_process_holds_memory stale_process_or_leftover,gmu_too_high_leaves_no_headroom", ["bare", "pipe", "ci"], evidence="frames_only", decide="weak no")
def free_frames(d):
    """The stack of the free-memory check, cut before its sentence."""
    d.at("init_device")
    lines = core_fail(d, ["init_device"], None, skip=2 + d.below(3))
    return lines if d.variant else lines[-8:]


@recipe("free-pytest", "config_refusal init_free_memory_check stale_process_or_leftover other_process_holds_memory", ["ci"], evidence="frames_only")
def free_pytest(d):
    """pytest shows the arguments of the check: the snapshot says that a third of the card is free."""
    total = d.card("l4")
    free, peak = round(total * 0.31, 2), round(total * 0.66, 2)
    d.release = "0.20.1"
    return [" _" * 30, "", f"init_snapshot = torch_peak={peak}GiB, free_memory={free}GiB, total_memory={total}GiB, cuda_memory={round(total - free, 2)}GiB, torch_memory={round(total - free - 0.27, 2)}GiB, "
            f"non_torch_memory=0.27GiB, timestamp={d.between(1770000000, 1779999999)}.{d.between(1000000, 9999999)}, auto_measure=True",
            "cache_config = CacheConfig(block_size=16, gpu_memory_utilization=0.9, swap_space=4, cache_dtype='auto', ...)", "",
            "    def request_memory(init_snapshot: MemorySnapshot, cache_config: CacheConfig) -> int:", "        requested_memory = math.ceil("]


@recipe("snapshot-frames", "cuda_error init_free_memory_check stale_process_or_leftover other_process_holds_memory", ["ci", "bare"], evidence="frames_only", decide="weak no", sure="medium")
def snapshot_frames(d):
    """The first query of the device fails: nothing is left for a context."""
    d.at("snapshot")
    lines = core_fail(d, ["snapshot"], None, skip=3)
    return lines + [d.log("ERROR", "failed", f'  File "{d.root}/torch/cuda/memory.py", line {d.between(870, 900)}, in mem_get_info', d.core()),
                    d.log("ERROR", "failed", "    return torch.cuda.cudart().cudaMemGetInfo(device)", d.core())]


@recipe("sgl-unbalanced", "config_refusal init_free_memory_check other_process_holds_memory stale_process_or_leftover", ["bare", "bare", "compose"], decide="yes weak", engine="sglang")
def sgl_unbalanced(d):
    """SGLang: one of the devices has less free than the others before the model is loaded."""
    d.at("unbalanced", engine="sglang")
    if d.variant == 0:
        return "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."
    low, high = d.real(8, 40), d.real(70, 78)
    error = f"RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory={low}, local_gpu_memory={high}, local_gpu_memory * 0.9={high * 0.9}"
    return [d.sglang("Init torch distributed begin."), d.sglang("Scheduler hit an exception: " + d.stack(d.frames("unbalanced"))[0])] + d.stack(d.frames("unbalanced"), error, head=False)


@recipe("sgl-unbalanced-draft", "config_refusal init_free_memory_check spec_decode_extra other_process_holds_memory,profiling_accounting_bug", ["bare"], decide="yes weak", engine="sglang", sure="medium")
def sgl_unbalanced_draft(d):
    """SGLang: the check runs again for the draft model, after the graphs of the target were captured."""
    d.at("unbalanced", engine="sglang", among=["0.4.6"])
    lines = [d.sglang(f"Capture cuda graph end. Time elapsed: {d.real(40, 400)} s. avail mem={d.real(4, 9)} GB. mem usage={d.real(1, 3)} GB.", f"TP{r}") for r in (3, 0, 2, 1)]
    d.tick()
    return lines + [d.sglang("Init torch distributed begin.", "TP2"), "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."]


# ---- communicators

def shm_name(d):
    return "/dev/shm/nccl-" + d.letters(6)


@recipe("nccl-shm", "shm distributed_init shm_too_small", ["bare", "bare", "ray", "date"])
def nccl_shm(d):
    """NCCL cannot make its segment in /dev/shm."""
    host, pid, name, count = "gpu-" + d.hexa(4), d.between(90, 9000), shm_name(d), d.pick([5767584, 9637888, 33030528, 67108864])
    place = lambda n, text, sign="WARN": f"{host}:{pid}:{pid + 40} [{n}] {text}"
    rank = d.below(4)
    if d.variant == 0:
        lines = [place(rank, f"include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device"), place(rank, "NCCL INFO include/shm.h:41 -> 2"),
                 place(rank, f"include/shm.h:48 NCCL WARN Error while creating shared memory segment nccl-shm-recv-{d.hexa(16)}-0-1-{rank} (size {count})")]
    else:
        line = d.pick([72, 87])
        lines = [place(rank, f"misc/shmutils.cc:{line} NCCL WARN Error: failed to extend {name} to {count + 4} bytes" + (", error: No space left on device (28)" if line == 87 else "")), "",
                 place(rank, f"misc/shmutils.cc:{line + 41} NCCL WARN Error while creating shared memory segment {name} (size {count})" + (", error: No space left on device (28)" if line == 87 else ""))]
        lines += [place(rank, f"NCCL INFO {file} -> 2") for file in (f"transport/shm.cc:{d.between(100, 560)}", "transport.cc:33", f"init.cc:{d.between(1100, 1900)}", f"group.cc:{d.between(60, 150)}")]
    return lines


@recipe("nccl-shm-torch", "shm distributed_init shm_too_small", ["bare", "rank"])
def nccl_shm_torch(d):
    """PyTorch repeats NCCL's last error: the segment in /dev/shm."""
    source = d.pick(["/pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93", "../torch/csrc/distributed/c10d/NCCLUtils.hpp:328"])
    return [f"torch.distributed.DistBackendError: NCCL error in: {source}, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.2{d.between(1, 7)}.{d.below(6)}",
            "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. ", "Last error:",
            f"Error while creating shared memory segment {shm_name(d)} (size {d.pick([9637888, 33030528])})"]


@recipe("nccl-shm-reversed", "shm distributed_init shm_too_small", ["bare"], engine="sglang")
def nccl_shm_reversed(d):
    """A cloud console shows the newest line first: the kill on top, the segment below."""
    d.at("load", engine="sglang")
    text = ["Last error:", f"Error while creating shared memory segment {shm_name(d)} (size 7340384), error: No space left on device (28)", "{}",
            d.sglang("Received sigquit from a child process. It usually means the child failed.", ""), "./start.sh: line 31: 44 Killed python3 -m sglang.launch_server --host 0.0.0.0 --port 30000 --tp 4"]
    return [f"ERROR {d.iso()} {line}" for line in text][::-1]


@recipe("shm-broadcast", "shm distributed_init shm_too_small", ["bare"])
def shm_broadcast(d):
    """vLLM's own check of /dev/shm before the broadcast buffer."""
    d.at("dist", among=["0.27.1"])
    need = d.pick([160, 240, 320])
    return core_fail(d, ["core_load"], f"RuntimeError: Insufficient space in /dev/shm: {need} MiB required, {d.between(20, 63)} MiB free. Increase /dev/shm (e.g. --shm-size or --ipc=host).")


@recipe("nccl-cuda-oom", "nccl distributed_init nccl_buffers gmu_too_high_leaves_no_headroom,weights_exceed_gpu", ["bare", "bare"], decide="yes weak", sure="medium")
def nccl_cuda_oom(d):
    """NCCL's own allocation on the device fails."""
    host, pid, rank = "node" + d.hexa(3), d.between(90, 900000), d.below(8)
    place = f"{host}:{pid}:{pid + 104} [{rank}] "
    if d.variant == 0:
        return [place + "enqueue.cc:51 NCCL WARN Cuda failure 'out of memory'", place + "enqueue.cc:62 NCCL WARN Cuda failure 'invalid resource handle'"] * 2
    return [f"{host}:{pid - 3}:{pid + 88} [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer node-{d.hexa(4)}<{d.between(30000, 50000)}>",
            f"{host}:{pid - 3}:{pid + 88} [0] NCCL INFO transport.cc:33 -> 6", "", place + "include/alloc.h:187 NCCL WARN Cuda failure 2 'out of memory'", "",
            place + f"include/alloc.h:194 NCCL WARN Failed to CUDA calloc {d.pick([4194304, 6291456, 10485760])} bytes", place + f"NCCL INFO transport/p2p.cc:{d.between(190, 300)} -> 1",
            place + f"proxy.cc:1528 NCCL WARN [Proxy Service {rank}] Failed to execute operation Setup from rank {rank}, retcode 1"]


@recipe("nccl-init-frames", "nccl distributed_init nccl_buffers gmu_too_high_leaves_no_headroom,other_process_holds_memory", ["bare"], decide="yes weak", sure="medium")
def nccl_init_frames(d):
    """The first all-reduce of the communicator set-up has no memory for its buffers."""
    d.at("dist", among=["0.11.2", "0.15.1"])
    error = ("torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.3\n"
             "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'")
    return core_fail(d, ["dist"], error, skip=6)


@recipe("nvshmem-heap", "nvshmem distributed_init nccl_buffers", ["blank"], decide="weak yes", sure="medium", engine="deepep")
def nvshmem_heap(d):
    """NVSHMEM cannot map its heap; the barrier after it faults."""
    return [f"/opt/nvshmem/src/host/mem/mem_heap.cpp:{n}: non-zero status: {s} {t}" for n, s, t in ((1498, 2, "cuMemCreate failed "), (1498, 2, "cuMemCreate failed "), (1579, 7, "allocate_physical_memory_to_heap failed"))] + [
        "[/opt/nvshmem/src/host/coll/barrier/barrier.cpp:24] cuda failed with an illegal memory access was encountered "]


@recipe("ep-buffer-bare", "cuda_alloc distributed_init nccl_buffers", ["bare"], decide="no no", sure="low")
def ep_buffer_bare(d):
    """The buffer of an expert-parallel library; only the class and the sentence's start are left."""
    return ["torch.OutOfMemoryError: CUDA out of memory."]


@recipe("nccl-destroy", "nccl unknown gmu_too_high_leaves_no_headroom nccl_buffers,version_regression", ["bare"], decide="no weak", sure="medium")
def nccl_destroy(d):
    """A second error while the process group goes: the first one was cut off."""
    d.at("busy_exec", among=["0.9.0", "0.10.0"])
    prefix = d.worker(6)
    lines = [f'  File "{d.root}/vllm/distributed/parallel_state.py", line {n}, in {f}' for n, f in ((1097, "destroy_model_parallel"), (761, "destroy"))]
    lines.insert(1, "    _TP.destroy()")
    lines.append("    torch.distributed.destroy_process_group(self.device_group)")
    lines += [f"torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:138, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.26.2",
              "ncclUnhandledCudaError: Call to CUDA function failed.", "Last error:", "Cuda failure 'out of memory'"]
    return [prefix + line for line in lines] + [d.log("ERROR", "worker_died", "Worker proc VllmWorker-5 died unexpectedly, shutting down executor.")]


# ---- weights

LOAD = ["core_load", "load", "init_model", "llama_init"]


@recipe("load-dense", "cuda_alloc weight_load weights_exceed_gpu tp_needed,fragmentation", ["bare", "compose", "k8s", "flat", "bare"], decide="yes weak")
def load_dense(d):
    """The layers of a dense model are made until the card is full."""
    d.at(*LOAD)
    error = d.torch_oom(d.pick([112, 192, 224, 270, 350, 448]) * MIB, d.card("a10g", "rtx4090", "l40s", "a100-80"))
    lines = [d.log("INFO", "loading", f"Starting to load model {d.pick(MODELS)}...", d.core())]
    d.tick(7)
    return core_fail(d, LOAD, error, before=lines if d.variant != 4 else (), skip=0 if d.variant != 4 else 9)


@recipe("load-dense-workers", "cuda_alloc weight_load weights_exceed_gpu fragmentation,tp_needed", ["bare", "wrap"], decide="yes weak")
def load_dense_workers(d):
    """Two ranks run out while the layers are made; their lines are mixed."""
    d.at("worker_load", "load", "init_model", "llama_init")
    total, tried = d.card("rtx4090", "a10g", "h100"), d.pick([136, 224, 462]) * MIB
    chains = ["worker_load", "load", "init_model", "llama_init"]
    return first_of(d, *[d.aside(lambda r=r: worker_fail(d, chains, d.torch_oom(tried, total, gpu=r), r, "worker_start")) for r in (0, 1)])


@recipe("load-moe", "cuda_alloc weight_load weights_exceed_gpu tp_needed", ["bare", "kubectl"], decide="yes weak")
def load_moe(d):
    """The experts of one layer do not fit any more."""
    d.at("core_load", "load", "init_model", "moe_init")
    return core_fail(d, ["core_load", "load", "init_model", "moe_init"], d.torch_oom(d.pick([384, 768, 1536]) * MIB, d.card("l40s", "a100-40", "h100")), skip=d.below(5))


@recipe("load-engine-message", "cuda_alloc weight_load weights_exceed_gpu fragmentation,tp_needed", ["bare", "docker_json"], decide="yes weak")
def load_engine_message(d):
    """vLLM's own sentence in front of PyTorch's."""
    d.at(*LOAD, among=["0.20.1", "0.24.0", "0.27.1"])
    oom = d.torch_oom(d.pick([96, 224, 512]) * MIB, d.card("rtx5090", "rtx4090"), error=False)
    text = f"Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory for weights, increasing --tensor-parallel-size, or using --quantization. See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more tips. (original error: {oom})"
    return core_fail(d, LOAD, None, before=[d.log("ERROR", "took", text, d.core())])[:8]


@recipe("load-v0", "cuda_alloc weight_load weights_exceed_gpu tp_needed,fragmentation", ["bare", "rank", "compose"], decide="yes weak")
def load_v0(d):
    """The older engine makes the layers until the card is full."""
    d.at("load", "llama_init", v0=True)
    error = d.torch_oom(d.pick([172, 250, 448]) * MIB, d.card("t4", "rtx4090", "a100-40"))
    return d.stack(d.frames("load", "llama_init", wrappers=d.chance(2)), error)


@recipe("load-v0-worker", "cuda_alloc weight_load weights_exceed_gpu fragmentation,tp_needed", ["bare", "compose", "bare"], decide="yes weak")
def load_v0_worker(d):
    """A worker process of the older engine names the method and PyTorch's sentence in one line."""
    d.at("worker_load", v0=True, among=["0.5.4", "0.6.3", "0.7.2"])
    oom = d.torch_oom(d.pick([20, 32, 56, 128]) * MIB, d.card("t4", "rtx4080", "a10g"), gpu=d.between(1, 3), error=False)
    prefix = d.v0worker()
    first = d.log("ERROR", "v0_worker", f"Exception in worker VllmWorkerProcess while processing method load_model{': ' + oom + ', Traceback (most recent call last):' if not d.newer('0.7.0') else '.'}", prefix)
    rest = d.trace("ERROR", "v0_worker", ["worker_load"], None if not d.newer("0.7.0") else "torch.OutOfMemoryError: " + oom, prefix, head=d.newer("0.7.0"))
    return [first, *rest]


@recipe("load-bare", "cuda_alloc weight_load weights_exceed_gpu tp_needed", ["bare", "quote", "bare", "bare"], decide="weak weak")
def load_bare(d):
    """PyTorch's sentence alone, of four of its ages; nearly everything on the card is allocated by PyTorch."""
    style = ["2.1", "2.1", "2.0", "2.6"][d.variant]
    return d.torch_oom(d.pick([144, 214, 518]) * MIB, d.card("t4", "a10g", "rtx4090"), style=style, cached=d.between(1, 14) * MIB, hint=d.variant != 3)


@recipe("load-cut", "cuda_alloc weight_load stale_process_or_leftover weights_exceed_gpu,other_process_holds_memory", ["bare"], decide="no no", sure="medium")
def load_cut(d):
    """The sentence ends before the card's figures."""
    text = d.torch_oom(192 * MIB, d.card("rtx4090"), style="2.3")
    d.numbers = {"tried_mib": 192.0}
    return text[:text.index("GPU 0") + 4]


@recipe("load-others", "cuda_alloc weight_load other_process_holds_memory stale_process_or_leftover", ["bare", "bare", "date"])
def load_others(d):
    """The list of processes shows who holds the card while the embedding is made."""
    d.at("load", "llama_init", v0=True, among=["0.5.4", "0.7.2"])
    total = d.card("rtx4090", "a100-40", "l40s")
    oom = d.torch_oom(d.pick([250, 500, 594]) * MIB, total, others=[int(total * GIB * d.real(0.7, 0.94, 3))], style="2.4")
    frames = [(f"{d.root}/vllm/model_executor/layers/vocab_parallel_embedding.py", d.between(210, 240), "__init__", "self.linear_method.create_weights(self,"), *d.frames("llama_init")[-1:]]
    if d.variant == 2:
        oom = oom.replace(": CUDA", f": [address=0.0.0.0:{d.between(30000, 45000)}, pid={d.pid}] CUDA", 1)
    return d.stack(d.frames("load")[2:] + frames, oom)


@recipe("load-frames", "cuda_alloc weight_load weights_exceed_gpu tp_needed,other_process_holds_memory", ["bare", "bare", "k8s", "bare", "smart"], evidence="frames_only", decide="weak weak", sure="medium")
def load_frames(d):
    """The stack of the model's construction, cut before the error."""
    if d.variant in (1, 4):
        d.at("worker_load", "load", "init_model", "llama_init")
        return worker_fail(d, ["worker_load", "load", "init_model", "llama_init"], None, 3, "worker_start", wrappers=False)[:-d.between(2, 5)]
    d.at("core_load", "load", "init_model", "moe_init")
    return cut(core_fail(d, ["core_load", "load", "init_model", "moe_init"], None, skip=d.below(6)), d.between(3, 40))


@recipe("load-frames-v0", "cuda_alloc weight_load weights_exceed_gpu tp_needed,other_process_holds_memory", ["bare", "compose"], evidence="frames_only", decide="weak weak", sure="medium")
def load_frames_v0(d):
    """The same of the older engine."""
    d.at("load", "llama_init", v0=True)
    return cut(d.stack(d.frames("load", "llama_init"))[d.below(4):], d.between(5, 60))


@recipe("load-frames-ray", "cuda_alloc weight_load weights_exceed_gpu tp_needed", ["ray_repeated", "ray"], evidence="frames_only", decide="weak weak", sure="medium")
def load_frames_ray(d):
    """Ray's workers show frames of the construction, out of order and with their count."""
    d.at("worker_load", "llama_init", v0=True, among=["0.7.2"])
    lines = d.stack(d.frames("worker_load", "llama_init")[1:], head=False)
    return [d.log("ERROR", "worker_base.py:581", line) for line in (lines[1::2] + lines[::2] if d.variant == 0 else lines)]


@recipe("load-npu", "cuda_alloc weight_load weights_exceed_gpu tp_needed", ["bare", "bare"], decide="weak weak", sure="medium", engine="vllm-ascend")
def load_npu(d):
    """An NPU runs full; behind one of the two comes the runtime's own error."""
    d.at("load", "llama_init", v0=True, among=["0.7.2"])
    oom = d.torch_oom(d.pick([26, 38, 112]) * MIB, 60.96, device="NPU", gpu=d.below(8), cached=d.between(10, 60) * MIB)
    tail = [f"[ERROR] {d.year()}-{d.date()}-{d.clock()} (PID:{d.pid}, Device:0, RankID:-1) ERR99999 UNKNOWN applicaiton exception"]
    if d.variant:
        return oom
    return [d.log("ERROR", "worker_base.py:581", line, f"(NPURayWorkerWrapper pid={d.pid}) ") for line in d.stack(d.frames("llama_init")[-3:], oom, head=False)] + tail


@recipe("load-npu-others", "cuda_alloc weight_load other_process_holds_memory", ["bare"], engine="vllm-ascend")
def load_npu_others(d):
    """PyTorch holds a sixth of the NPU, and hardly anything is free: somebody else has the rest."""
    d.at("worker_load", v0=True, among=["0.7.2"])
    text = d.torch_oom(22 * MIB, 60.97, device="NPU", free=17 * MIB, others=[49 * GIB], cached=300 * MIB)
    d.numbers.pop("other_processes_mib", None)
    return d.trace("ERROR", "v0_worker", ["worker_load", "llama_init"], None, d.v0worker(), head=False) + [text]


@recipe("load-unified", "cuda_alloc weight_load unified_memory_accounting weights_exceed_gpu", ["bare", "rank"], decide="weak weak")
def load_unified(d):
    """An integrated GPU: the device's total is half of the machine's memory."""
    d.at(*LOAD, among=["0.13.0", "0.15.1"])
    oom = d.torch_oom(int(1.1 * GIB), 62.44, device="HIP", free=int(0.71 * GIB))
    prefix = d.core()
    return d.stack(d.frames("llama_init")[-4:], oom, prefix, head=False) + [shutdown(d)]


@recipe("load-draft", "cuda_alloc weight_load spec_decode_extra weights_exceed_gpu,fragmentation", ["bare"], decide="yes weak", sure="medium")
def load_draft(d):
    """The target fits, the draft model does not."""
    d.at("core_load", "eagle_load", "init_model", "llama_init", among=["0.11.2", "0.13.0", "0.15.1"])
    before = [d.log("INFO", "drafter", "Loading drafter model...", d.core())]
    chains = ["core_load", "eagle_load", "init_model", "llama_init"]
    return core_fail(d, chains, d.torch_oom(d.pick([112, 250]) * MIB, d.card("rtx4090", "l40s")), before=before)


@recipe("load-lora", "cuda_alloc weight_load lora weights_exceed_gpu,gmu_too_high_leaves_no_headroom", ["bare", "compose"], decide="yes weak", sure="medium")
def load_lora(d):
    """The stacked buffers of the adapters are made behind the weights."""
    d.at("core_load", "lora_load")
    return core_fail(d, ["core_load", "lora_load"], d.torch_oom(d.pick([56, 112, 224]) * MIB, d.card("a10g", "rtx4090")))


@recipe("load-dispatch", "config_refusal weight_load weights_exceed_gpu", ["bare", "crlf"], decide="yes weak", engine="pytorch")
def load_dispatch(d):
    """Transformers refuses: parts of a quantized model would go to the CPU."""
    text = ("Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model. If you want to dispatch the model on the CPU or the disk while keeping these "
            "modules in 32-bit, you need to set `llm_int8_enable_fp32_cpu_offload=True` and pass a custom `device_map` to `from_pretrained`. Check "
            "https://huggingface.co/docs/transformers/main/en/main_classes/quantization#offload-between-cpu-and-gpu for more details. ")
    if d.variant == 0:
        return "ValueError: " + text
    root = "C:\\work\\venv\\Lib\\site-packages\\transformers"
    return ["Loading vision tower", "Loading language model", *d.stack([("C:\\work\\caption.py", 88, "<module>", "model = AutoModelForCausalLM.from_pretrained(args.model, device_map=\"auto\", load_in_4bit=True)"),
            (root + "\\models\\auto\\auto_factory.py", 571, "from_pretrained", "return model_class.from_pretrained("), (root + "\\modeling_utils.py", 4262, "from_pretrained", "hf_quantizer.validate_environment("),
            (root + "\\quantizers\\quantizer_bnb_4bit.py", 103, "validate_environment", "raise ValueError(")], "ValueError: " + text)]


@recipe("load-llamacpp", "cuda_alloc weight_load weights_exceed_gpu", ["bare", "compose"], engine="llama.cpp")
def load_llamacpp(d):
    """llama.cpp asks for one buffer of the size of the weights."""
    count = d.between(14000, 90000) * MIB + d.between(1, 99) * MIB // 100
    d.note(tried_mib=round(count / MIB, 2))
    return ["load_tensors: loading model tensors, this can take a while... (mmap = true)",
            f"ggml_backend_cuda_buffer_type_alloc_buffer: allocating {count / MIB:.2f} MiB on device 0: cudaMalloc failed: out of memory",
            f"alloc_tensor_range: failed to allocate CUDA0 buffer of size {count}", "llama_model_load: error loading model: unable to allocate CUDA0 buffer",
            "llama_model_load_from_file_impl: failed to load model"]


@recipe("load-llamacpp-old", "cuda_error weight_load host_ram weights_exceed_gpu", ["bare"], decide="weak no", sure="medium", engine="llama.cpp")
def load_llamacpp_old(d):
    """An old llama.cpp pins host memory and calls the failure a CUDA error."""
    return ["llama.cpp: loading model from /models/ggml-model-q4_1.bin", "llama_model_load_internal: format     = ggjt v2 (latest)", "llama_model_load_internal: n_ctx      = 2048",
            "llama_model_load_internal: model size = 30B", "llama_model_load_internal: mem required  = 25573.12 MB (+ 3124.00 MB per state)", f"CUDA error 2 at ggml-cuda.cu:{d.between(330, 390)}: out of memory"]


@recipe("load-allocator-warning", "cuda_alloc weight_load other_process_holds_memory weights_exceed_gpu", ["bare", "ci"], decide="weak no", sure="medium")
def load_allocator_warning(d):
    """PyTorch 2.11 and later warn of the failed allocation before anything is raised; the rest is cut off."""
    d.at("load")
    count, free, total = d.pick([134217728, 301989888, 402653184]), d.between(20, 120) * MIB, 85017624576
    d.note(tried_mib=round(count / MIB, 4), free_mib=round(free / MIB, 4), gpu_total_mib=round(total / MIB, 4))
    lines = [d.log("INFO", "loading", f"Starting to load model {d.pick(MODELS)}...", d.core()), d.log("INFO", "weights_took", f"Loading weights took {d.real(3, 20)} seconds", d.core())][:1]
    for _ in range(2):
        lines.append(f"[rank0]:[W{d.month}{d.day:02} {d.clock()}.{d.between(100000000, 999999999)} CUDACachingAllocator.cpp:3941] memory allocation failed with OOM on device 0 while trying to allocate {count} bytes (free: {free}, total: {total}).")
    return lines


@recipe("load-sglang", "cuda_alloc weight_load weights_exceed_gpu tp_needed", ["bare", "compose"], decide="yes weak", engine="sglang")
def load_sglang(d):
    """SGLang's scheduler makes the layers until the card is full."""
    d.at("load", engine="sglang")
    total = d.card("rtx4090", "a100-40")
    lines = [d.sglang(f"Load weight begin. avail mem={total - 0.6:.2f} GB"), d.sglang("Scheduler hit an exception: Traceback (most recent call last):")]
    return lines + d.stack(d.frames("load"), d.torch_oom(d.pick([172, 224, 462]) * MIB, total), head=False)


@recipe("load-sglang-frames", "cuda_alloc weight_load weights_exceed_gpu tp_needed,other_process_holds_memory,version_regression", ["bare", "bare"], evidence="frames_only", decide="weak weak", sure="medium", engine="sglang")
def load_sglang_frames(d):
    """The same, cut before the error."""
    d.at("load", engine="sglang")
    lines = [d.sglang(f"Load weight begin. avail mem={d.real(20, 78)} GB"), d.sglang("Scheduler hit an exception: Traceback (most recent call last):"), *d.stack(d.frames("load"), head=False)]
    return lines[:6] if d.variant else cut(lines, d.between(10, 90))


@recipe("load-sglang-draft", "cuda_alloc weight_load spec_decode_extra weights_exceed_gpu,fragmentation", ["wrap"], decide="weak weak", sure="medium", engine="sglang")
def load_sglang_draft(d):
    """The experts of the draft model have no room left; both ranks say so."""
    d.at("load", engine="sglang")
    total = d.card("rtx6000")
    return [bar("Multi-thread loading shards", 96, 96), *[d.sglang("Failed to load the draft model: " + d.torch_oom(24 * MIB, total, gpu=r, free=5 * MIB, error=False, hint=False), f"TP{r}") for r in (1, 0)]]


@recipe("load-diffusers", "cuda_alloc weight_load weights_exceed_gpu tp_needed", ["bare", "bare"], decide="yes weak", engine="diffusers")
def load_diffusers(d):
    """The transformer of an image model is made on the card; one rank of several is shown."""
    d.torch, root = "2.9", d.root
    frames = [(f"{root}/diffusers/pipelines/pipeline_utils.py", 1049, "from_pretrained", "loaded_sub_model = load_sub_model("), (f"{root}/diffusers/models/modeling_utils.py", 1291, "from_pretrained", "model = cls.from_config(config, **unused_kwargs)"),
              (f"{root}/diffusers/models/transformers/transformer_qwenimage.py", 541, "__init__", "QwenImageTransformerBlock("), (f"{root}/torch/nn/modules/linear.py", 112, "__init__", "torch.empty((out_features, in_features), **factory_kwargs)"),
              (f"{root}/torch/utils/_device.py", 103, "__torch_function__", "return func(*args, **kwargs)")]
    oom = d.torch_oom(d.pick([72, 144, 216]) * MIB, d.card("rtx5090", "rtx4090"), gpu=2 * d.variant)
    return d.stack(frames, oom) + (["Process DiffusionWorker-0:", "Traceback (most recent call last):"] if d.variant else [])


@recipe("load-diffusers-frames", "cuda_alloc weight_load weights_exceed_gpu", ["bare", "ci"], evidence="frames_only", decide="weak weak", engine="diffusers")
def load_diffusers_frames(d):
    """The same, cut before the error."""
    root = d.root
    frames = [("/usr/lib/python3.11/multiprocessing/process.py", 108, "run", "self._target(*self._args, **self._kwargs)"), (f"{root}/diffusers/models/transformers/transformer_flux.py", 602, "__init__", "FluxTransformerBlock("),
              (f"{root}/diffusers/models/attention.py", 1711, "__init__", "act_fn = GELU(dim, inner_dim, approximate=\"tanh\", bias=bias)"), (f"{root}/diffusers/models/activations.py", 83, "__init__", "self.proj = nn.Linear(dim_in, dim_out, bias=bias)"),
              (f"{root}/torch/nn/modules/linear.py", 112, "__init__", "torch.empty((out_features, in_features), **factory_kwargs)")]
    return d.stack(frames)


@recipe("load-wrapped", "cuda_alloc weight_load weights_exceed_gpu version_regression", ["bare"], decide="weak weak", sure="medium")
def load_wrapped(d):
    """An orchestrator puts its own words in front of PyTorch's sentence."""
    return "RuntimeError: Orchestrator initialization failed: " + d.torch_oom(14 * MIB, d.card("l4"), free=5 * MIB, style="2.9", error=False)


@recipe("load-fallback", "cuda_alloc weight_load weights_exceed_gpu version_regression,fragmentation", ["bare"])
def load_fallback(d):
    """The architecture is not known, so that the weights are made unquantized by the Transformers backend."""
    d.at("load", v0=True, among=["0.8.1"])
    lines = [d.log("INFO", "model_runner.py:1110", "Starting to load model /models/Qwen3-30B-A3B-GPTQ-Int4..."),
             d.log("WARNING", "utils.py:75", "Qwen3MoeForCausalLM has no vLLM implementation, falling back to Transformers implementation. Some features may not be supported and performance may not be optimal."),
             d.log("INFO", "transformers.py:118", "Using Transformers backend.")]
    oom = d.torch_oom(22 * MIB, d.card("rtx5090"), error=False)
    frames = [(f"{d.root}/vllm/model_executor/models/transformers.py", 312, "meta_to_empty", "module.to_empty(device=self.device_config.device)"), (f"{d.root}/torch/nn/modules/module.py", 1219, "to_empty", "return self._apply(")]
    place = d.log("ERROR", "v0_engine", "")
    return lines + [d.log("ERROR", "v0_engine", oom), *d.stack(frames, None, place)]


@recipe("load-windows", "cuda_alloc weight_load host_ram insufficient_info", ["bare"], decide="no no", sure="low", engine="pytorch")
def load_windows(d):
    """More is free than was asked: the commit limit of the host refuses."""
    return d.torch_oom(172 * MIB, 23.99, free=int(6.9 * GIB), others=[2 * GIB], style="1", error=False).replace("CUDA out of memory. ", "")


@recipe("load-ktransformers", "cuda_alloc weight_load version_regression weights_exceed_gpu", ["bare"], evidence="frames_only", decide="no no", sure="medium", engine="sglang")
def load_ktransformers(d):
    """A fork: the load begins, the scheduler dies, and the text ends."""
    d.at("load", engine="sglang", among=["0.5.6"])
    return [d.sglang(f"Load weight begin. avail mem={d.real(22, 23.4)} GB", ""), d.sglang("Detected fp8 checkpoint.", ""), d.sglang("Scheduler hit an exception: Traceback (most recent call last):", ""), *d.stack(d.frames("load")[:2], head=False)]


@recipe("nvml-assert", "cuda_alloc unknown slice_total_mismatch weights_exceed_gpu,gmu_too_high_leaves_no_headroom", ["bare", "words"], evidence="frames_only", decide="no no", sure="medium", engine="pytorch")
def nvml_assert(d):
    """On a slice PyTorch cannot ask NVML for the processes while it writes the sentence, and its assertion is all that is left."""
    where = d.pick(["../c10/cuda/CUDACachingAllocator.cpp\":838", "/pytorch/c10/cuda/CUDACachingAllocator.cpp\":1131"])
    return f'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "{where}, please report a bug to PyTorch. '


@recipe("load-nvml", "assertion weight_load weights_exceed_gpu slice_total_mismatch", ["bare"], evidence="frames_only", decide="no weak", sure="medium", engine="pytorch")
def load_nvml(d):
    """The same assertion while Transformers moves a model onto the slice."""
    root = d.root
    frames = [("/work/chat.py", 12, "<module>", "model = AutoModelForCausalLM.from_pretrained(path, torch_dtype=torch.float16).cuda()"), (f"{root}/torch/nn/modules/module.py", 918, "cuda", "return self._apply(lambda t: t.cuda(device))")]
    return d.stack(frames, 'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":1131, please report a bug to PyTorch. ')


# ---- transforms after the load

@recipe("post-marlin", "cuda_alloc quant_postprocess quant_repack_peak weights_exceed_gpu,fragmentation,version_regression", ["bare", "blank", "compose"], decide="yes weak")
def post_marlin(d):
    """The repack of the experts needs a second copy of one layer."""
    chain = ["post_marlin", "post_fp8", "post_mxfp4"][d.variant]
    d.at("core_load", "load", "post", chain)
    return core_fail(d, ["core_load", "load", "post", chain], d.torch_oom(d.pick([80, 168, 432]) * MIB, d.card("a100-40", "h200", "rtx4090")), skip=d.below(5))


@recipe("post-v0", "cuda_alloc quant_postprocess quant_repack_peak version_regression", ["bare", "compose"], decide="yes weak")
def post_v0(d):
    """Weights in FP8 are repacked for Marlin on an older card."""
    d.at("load", "post", v0=True, among=["0.5.4", "0.6.3", "0.7.2"])
    oom = d.torch_oom(112 * MIB, d.card("rtx4090", "a10g"), named=True)
    return d.stack(d.frames("load")[:-1] + d.frames("post"), oom)


@recipe("post-frames", "cuda_alloc quant_postprocess quant_repack_peak weights_exceed_gpu", ["bare", "k8s", "ray_repeated"], evidence="frames_only", decide="weak weak")
def post_frames(d):
    """The stack ends in process_weights_after_loading."""
    d.at("worker_load", "load", "post", "post_marlin")
    lines = worker_fail(d, ["worker_load", "load", "post"], None, d.between(0, 3), "worker_start")
    if d.variant == 2:
        return [line.split("] ", 1)[-1] for line in lines[3:]]
    return cut(lines, d.between(1, 30))


@recipe("post-warnings", "cuda_alloc quant_postprocess quant_repack_peak", ["bare"], decide="yes weak")
def post_warnings(d):
    """Expandable segments cannot be mapped on three ranks; the stack of one ends in the transform."""
    d.at("worker_load", "load", "post", among=["0.20.1", "0.24.0", "0.27.1"])
    count, total = 20971520, 25295323136
    free = d.between(8, 18) * MIB
    d.note(tried_mib=count / MIB, free_mib=free / MIB, gpu_total_mib=round(total / MIB, 4))
    lines = [f"[rank{r}]:[W{d.month}{d.day:02} {d.clock()}.{d.between(100000000, 999999999)} CUDACachingAllocator.cpp:514] expandable_segments: memory mapping failed with OOM on device {r} while trying to map {count} bytes (free: {free}, total: {total})." for r in (2, 0, 3)]
    d.tick(9)
    return lines + worker_fail(d, ["worker_load", "load", "post"], None, 2, "worker_start", skip=3)


@recipe("post-cumem", "cuda_alloc quant_postprocess cumem_pool_strand version_regression,quant_repack_peak", ["words", "words", "bare"], decide="no weak")
def post_cumem(d):
    """With sleep mode the freed copies stay in the pool of the cumem allocator: private pools are large."""
    d.torch = "2.9"
    total = d.card("b200", "h200")
    private = int(total * GIB * d.real(0.3, 0.4, 3))
    if d.variant == 2:
        d.note(tried_mib="1.12 GiB")
        return ["CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:139", "", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.12 GiB."]
    first = ["Enabling cumem allocator because sleep mode requires it."] if d.variant == 0 else [f"Peak GPU memory after loading weights: {round(total * 0.6, 2)} GiB"]
    return first + [d.torch_oom(int(d.pick([0.019, 1.38, 0.75]) * GIB), total, private=private, cached=9 * MIB, hint=False, gpu=d.below(4))]


@recipe("post-mla", "cuda_alloc quant_postprocess weights_exceed_gpu quant_repack_peak,tp_needed", ["ray_repeated"], evidence="frames_only", decide="weak weak")
def post_mla(d):
    """The absorbed projections of latent attention are quantized again."""
    d.at("worker_load", v0=True, among=["0.7.2"])
    root = d.root
    frames = [(f"{root}/vllm/model_executor/model_loader/loader.py", 409, "load_model", "module.process_weights_after_loading(model_config.dtype)"), (f"{root}/vllm/attention/backends/mla/utils.py", 381, "process_weights_after_loading", "W_UV_O, W_UV_O_scales = scaled_quantize("),
              (f"{root}/vllm/model_executor/layers/quantization/utils/quant_utils.py", 88, "scaled_quantize", "x_blkd = x.reshape(blk_m, group_shape[0], blk_n, group_shape[1])")]
    return [d.log("ERROR", "worker_base.py:572", line) for line in d.stack(d.frames("worker_load")[1:4] + frames, head=False)]


# ---- profile run

@recipe("profile-dense", "cuda_alloc profile_run activation_peak fragmentation,weights_exceed_gpu", ["bare", "compose", "wrap"], decide="yes weak")
def profile_dense(d):
    """The dummy batch is too large beside the weights."""
    d.at("profile", "dummy", "llama_fwd")
    total = d.card("rtx4090", "l40s", "h100")
    before = [took(d, round(total * 0.86, 2))]
    d.tick(20)
    return core_fail(d, ["profile", "dummy", "llama_fwd"], d.torch_oom(int(d.pick([0.44, 0.88, 1.75, 3.5]) * GIB), total, free=int(0.3 * GIB)), before=before)


@recipe("profile-moe", "cuda_alloc profile_run activation_peak runtime_workspace_unprofiled", ["bare", "ansi"], decide="yes weak")
def profile_moe(d):
    """The intermediate buffers of the experts, on one rank of several."""
    d.at("busy_profile", "dummy", "moe_fwd")
    return worker_fail(d, ["busy_profile", "dummy", "moe_fwd"], d.torch_oom(int(d.pick([2.0, 4.0, 1.5]) * GIB), d.card("h100", "rtx6000"), free=int(0.9 * GIB)), d.between(0, 7))


@recipe("profile-frames", "cuda_alloc profile_run activation_peak gmu_too_high_leaves_no_headroom,version_regression", ["bare", "compose", "bare"], evidence="frames_only", decide="weak weak", sure="medium")
def profile_frames(d):
    """The stack reaches the profile run and ends."""
    d.at("busy_profile", "dummy")
    lines = worker_fail(d, ["busy_profile", "dummy"], None, d.between(0, 5))
    return lines if d.variant else lines[2:]


@recipe("profile-compiled-frames", "cuda_alloc profile_run activation_peak version_regression", ["compose", "bare"], evidence="frames_only", decide="no no", sure="low")
def profile_compiled_frames(d):
    """Only frames of the compiled graph are visible."""
    d.at("busy_profile", among=["0.8.1", "0.9.0", "0.10.0"])
    root, minor = d.root, d.torch
    frames = [(f"{root}/torch/nn/modules/module.py", render.MODULE[minor][1], "_call_impl", "return forward_call(*args, **kwargs)"), (f"{root}/torch/_dynamo/eval_frame.py", d.between(838, 845), "_fn", "return fn(*args, **kwargs)"),
              (f"{root}/torch/fx/graph_module.py", 830, "call_wrapped", "return self._wrapped_call(self, *args, **kwargs)"), (f"{root}/torch/fx/graph_module.py", 406, "__call__", "raise e")]
    return [d.log("ERROR", "worker_hit", line, d.worker(1)) for line in d.stack(frames, head=False)]


@recipe("profile-v0", "cuda_alloc profile_run activation_peak fragmentation", ["bare", "compose", "rank"], decide="yes weak")
def profile_v0(d):
    """The older engine's profile run."""
    d.at("profile", "llama_fwd", v0=True)
    total = d.card("rtx4090", "a10g", "l40s")
    return d.stack(d.frames("profile", "llama_fwd"), d.torch_oom(int(d.pick([0.88, 1.75, 3.75]) * GIB), total, free=int(0.4 * GIB)))


@recipe("profile-v0-worker", "cuda_alloc profile_run activation_peak mm_encoder_peak,fragmentation", ["bare"], decide="weak weak", sure="medium")
def profile_v0_worker(d):
    """The sentence first, then 'the direct cause of', then the stack of the worker's method."""
    d.at("worker_profile", v0=True, among=["0.6.3"])
    oom = d.torch_oom(int(1.63 * GIB), d.card("a10g"), gpu=2, free=int(1.1 * GIB))
    place = d.log("ERROR", "v0_worker", "", d.v0worker(2))
    return [place + line for line in (oom, "", "The above exception was the direct cause of the following exception:", "")] + d.trace("ERROR", "v0_worker", ["worker_profile"], None, d.v0worker(2))[:4]


@recipe("profile-v0-frames", "cuda_alloc profile_run activation_peak stale_process_or_leftover", ["bare", "bare"], evidence="frames_only", decide="no no", sure="medium")
def profile_v0_frames(d):
    """Weights are loaded, the process dies in the profile run, the end is missing."""
    d.at("profile", v0=True)
    gib = d.real(1, 14, 4)
    d.note(weights_mib=round(gib * 1024, 4))
    lines = [d.log("INFO", "v0_took", f"Loading model weights took {gib:.4f} GB"), "Process SpawnProcess-1:"]
    return cut(lines + d.stack(d.frames("profile")[:-1]), d.between(3, 30))


@recipe("profile-quadratic", "cuda_alloc profile_run activation_peak", ["bare", "bare"], decide="no weak")
def profile_quadratic(d):
    """An attention without a fused kernel asks for far more than any card has."""
    d.torch = "2.4"
    if d.variant:
        d.note(tried_mib="512.00 GiB")
        return "Memory error: Tried to allocate 512.00 GiB"
    return d.torch_oom(32 * GIB, d.card("l40s"), free=int(27.9 * GIB), named=True)


@recipe("profile-assert", "assertion profile_run profiling_accounting_bug other_process_holds_memory", ["bare", "words", "bare", "ci"])
def profile_assert(d):
    """More is free after the profile run than before: somebody released memory in between."""
    d.at("profile_assert", among=[["0.8.1", "0.9.0"], ["0.24.0", "0.27.1"], ["0.10.0", "0.11.2"], ["0.15.1", "0.20.1"]][d.variant])
    first, now = d.real(60, 70), d.real(70.1, 78)
    if not d.newer("0.9.1"):
        text = (f"AssertionError: Error in memory profiling. Initial free memory {int(first * GIB)}, current free memory {int(now * GIB)}. This happens when the GPU memory was not properly cleaned up "
                "before initializing the vLLM instance.")
        d.note(profile_free_before_mib=round(int(first * GIB) / MIB, 4), profile_free_after_mib=round(int(now * GIB) / MIB, 4))
    else:
        text = (f"AssertionError: Error in memory profiling. Initial free memory {first} GiB, current free memory {now} GiB. This happens when other processes sharing the same container release GPU "
                "memory while vLLM is profiling during initialization. To fix this, ensure consistent GPU memory allocation or isolate vLLM in its own container.")
        d.note(profile_free_before_mib=round(first * 1024, 4), profile_free_after_mib=round(now * 1024, 4))
    return text if d.variant == 1 else core_fail(d, ["profile_assert"], text, skip=3)


@recipe("profile-assert-slice", "assertion profile_run slice_total_mismatch profiling_accounting_bug", ["bare"])
def profile_assert_slice(d):
    """A slice's library answers with the same figure before and after."""
    free = d.pick([19.53125, 9.765625, 39.0625])
    d.note(profile_free_before_mib=free * 1024, profile_free_after_mib=free * 1024)
    return ["[HAMI-core ERROR (utils.c:163)]: host pid is error!", f"AssertionError: Error in memory profiling. Initial free memory {free} GiB, current free memory {free} GiB. This happens when other processes "
            "sharing the same container release GPU memory while vLLM is profiling during initialization. To fix this, ensure consistent GPU memory allocation or isolate vLLM in its own container."]


@recipe("profile-assert-v0", "assertion profile_run profiling_accounting_bug", ["bare"], decide="yes weak", sure="medium")
def profile_assert_v0(d):
    """A trainer holds the model already, so that loading took nothing."""
    d.at("load", v0=True, among=["0.6.3"])
    return [d.log("INFO", "v0_took", "Loading model weights took 0.0000 GB"), "Traceback (most recent call last):", '  File "/work/trainer/grpo.py", line 201, in __init__', "    self.engine = LLMEngine.from_engine_args(args)",
            "AssertionError: Error in memory profiling. This happens when the GPU memory was not properly cleaned up before initializing the vLLM instance."]


@recipe("profile-lora-frames", "cuda_alloc profile_run lora activation_peak", ["bare"], evidence="frames_only", decide="no weak", sure="medium")
def profile_lora_frames(d):
    """Adapters make the forward pass of the profile run larger; the stack ends in their layer."""
    d.at("worker_profile", "llama_fwd", "lora_fwd", v0=True, among=["0.7.2", "0.8.1"])
    return d.trace("ERROR", "v0_worker", ["worker_profile", "llama_fwd", "lora_fwd"], None, d.v0worker(), skip=5, head=False)


@recipe("profile-cuda-error", "cuda_error profile_run mm_encoder_peak activation_peak", ["bare"], decide="no no", sure="medium")
def profile_cuda_error(d):
    """The core repeats what a worker met: a bare CUDA error without figures."""
    d.at("profile", among=["0.11.2", "0.13.0"])
    chain = [f for f in d.frames("profile") if "core.py" in f[0] or "abstract.py" in f[0]]
    chain += [(f"{d.root}/vllm/v1/executor/multiproc_executor.py", 264, "get_response", "raise RuntimeError(")]
    error = "RuntimeError: Worker failed with error 'CUDA error: out of memory\n" + ASYNC + "', please check the stack trace above for the root cause"
    return [d.log("ERROR", "failed", "EngineCore failed to start.", d.core()), *d.stack(chain, error, d.log("ERROR", "failed", "", d.core()))]


@recipe("profile-unified", "cuda_alloc profile_run unified_memory_accounting activation_peak,fragmentation", ["bare"], decide="no no", sure="medium")
def profile_unified(d):
    """An integrated GPU during the profile run; the last line alone."""
    d.at("profile", among=["0.11.2"])
    return d.log("ERROR", "failed", d.torch_oom(768 * MIB, 61.35, device="HIP", free=512 * MIB, cached=int(1.2 * GIB)), d.core())


@recipe("profile-workspace-frames", "cuda_alloc profile_run activation_peak runtime_workspace_unprofiled,version_regression,gmu_too_high_leaves_no_headroom", ["bare"], evidence="frames_only", decide="no weak", sure="medium")
def profile_workspace_frames(d):
    """A library's fused experts allocate a workspace in the first forward pass."""
    d.at("profile", among=["0.24.0", "0.27.1"])
    root = d.root
    frames = [(f"{root}/flashinfer/fused_moe/cute_dsl/moe_wrapper.py", 388, "__init__", "self._allocate_buffers()"), (f"{root}/flashinfer/fused_moe/cute_dsl/moe_wrapper.py", 431, "_allocate_buffers", "self._static_workspace = allocate_moe_workspace(")]
    return [d.log("ERROR", "failed", line, d.core()) for line in d.stack(frames, head=False)]


@recipe("profile-notebook", "cuda_alloc profile_run stale_process_or_leftover activation_peak", ["bare"], evidence="frames_only", decide="no no", sure="low")
def profile_notebook(d):
    """A notebook's traceback, cut on both sides."""
    root = d.root
    return ["-> 1562     return forward_call(*args, **kwargs)", "   1564 try:", "   1565     result = None", "", f"File {root}/vllm/model_executor/models/opt.py:{d.between(250, 270)}, in OPTDecoder.forward(self, input_ids, positions, kv_caches, attn_metadata)",
            "    251 for i in range(len(self.layers)):", "    252     layer = self.layers[i]", "--> 253     hidden_states = layer(hidden_states, kv_caches[i], attn_metadata)", ""]


@recipe("profile-sampler", "cuda_alloc profile_run logits_peak gmu_too_high_leaves_no_headroom", ["bare"], decide="yes weak")
def profile_sampler(d):
    """The logits of the profile run's last step."""
    d.at("profile", "prof_sampler", "sample")
    return core_fail(d, ["profile", "prof_sampler", "sample"], d.torch_oom(int(1.16 * GIB), d.card("rtx4090", "a10g"), free=int(0.6 * GIB)), skip=5)


@recipe("profile-nvml", "assertion profile_run activation_peak weights_exceed_gpu,slice_total_mismatch", ["bare"], decide="no no", sure="medium")
def profile_nvml(d):
    """The allocator's assertion during the compiled forward pass of a slice."""
    return ['RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at', '"/pytorch/c10/cuda/CUDACachingAllocator.cpp":1131', "  torch.ops.vllm.cutlass_scaled_mm.default(buf9, arg7_1, arg8_1, arg9_1)"]


@recipe("tgi-warmup", "cuda_alloc profile_run activation_peak logits_peak", ["bare", "bare"], decide="yes weak", sure="medium", engine="tgi")
def tgi_warmup(d):
    """TGI's warm-up runs out."""
    if d.variant == 0:
        now, want, limit = d.real(14, 20), d.real(3, 6), 22.06
        return [f"thread 'main' panicked at 'Unable to warmup model: Generation(\"Allocation on device 0 would exceed allowed memory. (out of memory)\\nCurrently allocated     : {now} GiB\\nRequested               : {want} GiB\\n"
                f"Device limit            : {limit} GiB\\nFree (according to CUDA): {d.real(10, 60)} MiB\\nPyTorch limit (set by user-supplied memory fraction)\\n                        : {limit} GiB\")', router/src/main.rs:{d.between(160, 190)}:26",
                "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace", f"{d.iso()[:-4]}Z ERROR text_generation_launcher: Webserver Crashed", "Error: WebserverFailed"]
    return [d.torch_oom(int(24.4 * GIB), d.card("h100"), free=int(11.2 * GIB), named=True, allowed=True, style="2.6"), "", "The above exception was the direct cause of the following exception:"]


@recipe("tgi-warmup-frames", "cuda_alloc profile_run activation_peak logits_peak", ["bare"], evidence="frames_only", decide="weak no", sure="medium", engine="tgi")
def tgi_warmup_frames(d):
    """The warm-up fails and the text ends in its first frame."""
    return [f"{d.iso()[:-4]}Z ERROR text_generation_launcher: Method Warmup encountered an error.", "Traceback (most recent call last):", '  File "/opt/conda/lib/python3.11/site-packages/text_generation_server/models/flash_causal_lm.py", line 7']


@recipe("tgi-prefill-tokens", "config_refusal profile_run activation_peak", ["bare", "compose"], engine="tgi")
def tgi_prefill_tokens(d):
    """TGI refuses: the prefill batch does not fit."""
    return f"Error: Warmup(Generation(\"Not enough memory to handle {d.pick([2048, 8192, 16384])} prefill tokens. You need to decrease `--max-batch-prefill-tokens`\"))"


# ---- encoder of the profile run

@recipe("mm-encoder", "cuda_alloc mm_profile mm_encoder_peak activation_peak", ["bare", "app", "compose"], decide="yes yes")
def mm_encoder(d):
    """Dummy images go through the vision tower in the profile run."""
    d.at("profile", "mm")
    budget = d.pick([16384, 32768, 98304])
    before = [d.log("INFO", "encoder_budget", f"Encoder cache will be initialized with a budget of {budget} tokens, and profiled with 1 image items of the maximum feature size.", d.core())]
    d.tick(2)
    return core_fail(d, ["profile", "mm"], d.torch_oom(int(d.pick([0.8, 1.5, 4.0]) * GIB), d.card("rtx4080", "rtx4090", "a10g"), free=int(0.43 * GIB)), before=before if d.variant != 1 else ())


@recipe("mm-quadratic", "cuda_alloc mm_profile mm_encoder_peak activation_peak", ["bare", "bare", "bare"], decide="weak weak")
def mm_quadratic(d):
    """The attention of the tower without a fused kernel asks for hundreds of GiB."""
    if d.variant == 0:
        d.at("profile", "mm", among=["0.13.0", "0.15.1"])
        root = d.root
        frames = d.frames("profile", "mm")[-6:] + [(f"{root}/vllm/v1/attention/ops/vit_attn_wrappers.py", 231, "torch_sdpa_wrapper", "output_i = apply_sdpa(q_i, k_i, v_i, scale=scale)")]
        return d.stack(frames, d.torch_oom(144 * GIB, d.card("rtx4090"), free=int(9.2 * GIB), device="HIP"), d.log("ERROR", "failed", "", d.core()))
    d.torch = "2.7"
    text = d.torch_oom(int([0, 812.3, 61.75][d.variant] * GIB), d.card("l40s", "h100"), free=int(21.4 * GIB), named=True, error=d.variant == 2)
    return f"RuntimeError: Worker failed with error '{text}', please check the stack trace above for the root cause" if d.variant == 1 else [text, shutdown(d)]


@recipe("mm-frames", "cuda_alloc mm_profile mm_encoder_peak activation_peak", ["bare", "bare"], evidence="frames_only", decide="weak weak", sure="medium")
def mm_frames(d):
    """The stack of the tower in the profile run, cut before the error."""
    d.at("busy_profile", "mm")
    return cut(worker_fail(d, ["busy_profile", "mm"], None, 1), d.between(1, 60))


@recipe("mm-audio-frames", "cuda_alloc mm_profile mm_encoder_peak", ["bare"], evidence="frames_only", decide="weak weak", sure="medium")
def mm_audio_frames(d):
    """Dummy audio."""
    d.at("busy_profile", "mm_audio")
    return worker_fail(d, ["busy_profile", "mm_audio"], None, 0)


@recipe("mm-v0-frames", "cuda_alloc mm_profile mm_encoder_peak activation_peak,weights_exceed_gpu", ["bare", "rank", "bare", "rank"], evidence="frames_only", decide="weak weak", sure="medium")
def mm_v0_frames(d):
    """The older engine: the tower's frames below determine_num_available_blocks."""
    chain = ["mllama", "qwenvl", "clip", "mllama"][d.variant]
    d.at("profile", chain, v0=True)
    gib = d.real(4, 20, 4)
    d.note(weights_mib=round(gib * 1024, 4))
    lines = [d.log("INFO", "v0_took", f"Loading model weights took {gib:.4f} GB")]
    if chain == "mllama":
        lines.append(d.log("INFO", "v0_mm", "Starting profile run for multi-modal models."))
        frames = d.frames("profile")[:5] + (d.frames("mllama") if d.variant == 0 else [])
    else:
        frames = d.frames("profile", chain)
    return lines + d.stack(frames)


@recipe("mm-v0-worker", "cuda_alloc mm_profile mm_encoder_peak activation_peak,version_regression", ["bare", "bare"], decide="yes weak")
def mm_v0_worker(d):
    """The worst case of images does not fit the sequence, and then the run does not fit the card."""
    if d.variant == 0:
        d.at("worker_profile", v0=True, among=["0.6.3"])
        text = d.torch_oom(int(14.7 * GIB), d.card("rtx4090"), gpu=1, free=int(7.1 * GIB), error=False)
        return [d.log("INFO", "v0_mm", "Starting profile run for multi-modal models.", d.v0worker()), d.log("ERROR", "v0_worker", f"Exception in worker VllmWorkerProcess while processing method determine_num_available_blocks: {text}, Traceback (most recent call last):", d.v0worker())]
    d.at("profile", "qwenvl", v0=True, among=["0.8.1"])
    lines = [d.log("WARNING", "profiling.py:222", "The context length (16384) of the model is too short to hold the multi-modal embeddings in the worst case (49152 tokens in total, out of which {'image': 32768, 'video': 16384} are reserved for multi-modal "
                   "embeddings). This may cause certain multi-modal inputs to fail during inference, even when the input text is short. To avoid this, you should increase `max_model_len`, reduce `max_num_seqs`, and/or reduce `mm_counts`.")]
    d.tick(3)
    text = d.torch_oom(640 * MIB, d.card("rtx4080"), free=398 * MIB, error=False)
    return lines + [d.log("ERROR", "v0_engine", text), *d.trace("ERROR", "v0_engine", ["profile", "qwenvl"])]


@recipe("mm-v0-worst-case", "cuda_alloc mm_profile mm_encoder_peak", ["bare"], evidence="frames_only", decide="weak weak", sure="high")
def mm_v0_worst_case(d):
    """The warning of the dummy inputs, then a worker fails in determine_num_available_blocks."""
    d.at("worker_profile", v0=True, among=["0.8.1"])
    return [d.log("WARNING", "profiling.py:222", "The sequence length used for profiling (max_num_batched_tokens / max_num_seqs = 4096) is too short to hold the multi-modal embeddings in the worst case (36864 tokens in total, out of which {'image': 4096, 'video': 32768} are "
                  "reserved for multi-modal embeddings).", d.v0worker()), d.log("ERROR", "v0_worker", "Exception in worker VllmWorkerProcess while processing method determine_num_available_blocks.", d.v0worker(2))]


@recipe("llamacpp-clip", "cuda_alloc mm_profile mm_encoder_peak", ["bare"], decide="yes weak", engine="llama.cpp")
def llamacpp_clip(d):
    """llama.cpp warms the image encoder up."""
    count = d.between(250, 900) * MIB
    d.note(tried_mib=round(count / MIB, 2))
    return ["clip_ctx: CLIP using CUDA0 backend", f"load_hparams: model size:         {d.real(900, 2600)} MiB", f"warmup: warmup with image size = {d.pick([896, 1024, 1288])} x {d.pick([896, 1024, 1288])}",
            f"ggml_backend_cuda_buffer_type_alloc_buffer: allocating {count / MIB:.2f} MiB on device 0: cudaMalloc failed: out of memory", f"ggml_gallocr_reserve_n_impl: failed to allocate CUDA0 buffer of size {count}",
            f"alloc_compute_meta: graph splits = 1, nodes = {d.between(700, 990)}"]


# ---- trial capture

@recipe("cgprof", "cuda_alloc cudagraph_profile cudagraph_unbudgeted spec_decode_extra,slice_total_mismatch,gmu_too_high_leaves_no_headroom", ["bare", "markdown", "compose"], decide="yes weak")
def cgprof(d):
    """The minimal KV cache of the trial capture has no room."""
    d.at("cgprof", among=["0.20.1", "0.24.0", "0.27.1"])
    total = d.card("rtx5090", "rtx4090", "a10g")
    before = [took(d, round(total * 0.6, 2)), d.log("INFO", "cg_profile", "Profiling CUDA graph memory: PIECEWISE=35 (largest=256), FULL=19 (largest=128)", d.core())]
    return core_fail(d, ["cgprof"], d.torch_oom(int(1.44 * GIB), total, free=int(1.21 * GIB)), before=before)


@recipe("cgprof-hidden", "cuda_alloc cudagraph_profile slice_total_mismatch cudagraph_unbudgeted", ["bare"], decide="yes weak")
def cgprof_hidden(d):
    """On a slice the sentence has neither the number of the GPU nor of the process."""
    d.at("cgprof", among=["0.20.1"])
    d.note(tried_mib="1.31 GiB", gpu_total_mib="20.00 GiB", free_mib="1.22 GiB", in_use_mib="18.71 GiB")
    frame = next(f for f in d.frames("cgprof", wrappers=False) if "profile_cudagraph_memory()" in f[3])
    return d.stack([frame], head=False) + ["...", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.31 GiB. GPU has a total capacity of 20.00 GiB of which 1.22 GiB is free. Process has 18.71 GiB memory in use."]


# ---- arithmetic of the KV cache

@recipe("kv-context", "config_refusal kv_sizing context_too_long_for_kv gmu_too_low,activation_peak,version_regression", ["bare", "bare", "wrap", "words", "k8s", "bare", "ansi"])
def kv_context(d):
    """One request of the full length needs more than the KV cache has."""
    d.at("kv_none")
    text = too_long(d)
    if d.variant in (0, 3):
        return "ValueError: " + text
    if d.variant == 5:
        return [text]
    before = [available(d, d.numbers["kv_available_mib"] / 1024)] if d.newer("0.9.1") else []
    return core_fail(d, ["kv_none"], "ValueError: " + text, skip=d.below(3), before=[b for b in before if d.chance(2)])


@recipe("kv-context-cut", "config_refusal kv_sizing context_too_long_for_kv", ["bare", "wrap"])
def kv_context_cut(d):
    """The same sentence, cut behind the figures."""
    d.at("kv_none", among=["0.10.0", "0.24.0", "0.27.1"])
    text = too_long(d).split("Based on")[0]
    d.numbers.pop("est_max_model_len", None)
    return core_fail(d, ["kv_none"], "ValueError: " + text + "Based on the avai", skip=5, after=False)


@recipe("kv-context-v0", "config_refusal kv_sizing context_too_long_for_kv gmu_too_low,activation_peak,version_regression", ["bare", "bare", "rank+flat", "compose", "actor", "bare"])
def kv_context_v0(d):
    """The older sentence: tokens of the sequence against tokens of the cache."""
    d.at("cache_invalid", "worker_invalid", v0=True)
    blocks, text = too_long_v0(d)
    if d.variant == 0:
        return text
    if d.variant == 1:
        return [d.log("INFO", "v0_blocks", f"# GPU blocks: {blocks}, # CPU blocks: {d.pick([512, 1024, 2048])}"), *d.stack(d.frames("cache_invalid")[-2:], "ValueError: " + text)]
    if d.variant == 5:
        return d.trace("ERROR", "v0_worker", ["worker_invalid"], "ValueError: " + text, d.v0worker(), head=False)
    return d.stack(d.frames("cache_invalid"), "ValueError: " + text)


@recipe("kv-context-v0-ledger", "config_refusal kv_sizing context_too_long_for_kv gmu_too_low,activation_peak,weights_exceed_gpu", ["bare", "bare"])
def kv_context_v0_ledger(d):
    """The same with the lines of the memory profiling in front; all of them add up."""
    d.at("cache_invalid", v0=True, among=["0.7.2"])
    total, weights, peak, other = d.card("rtx4090", "a10g"), d.real(13, 16), d.real(1, 2), d.real(0.05, 0.4)
    budget = round(total * 0.9, 2)
    rest = round(budget - weights - peak - other, 2)
    tokens, per = 65536, 128 * 1024
    blocks = int(rest * GIB / per / 16)
    d.note(weights_mib=round(weights * 1024, 4), activation_peak_mib=round(peak * 1024, 4), non_torch_mib=round(other * 1024, 4), gmu=0.9, max_seq_len=tokens, kv_tokens=blocks * 16)
    text = (f"The model's max seq len ({tokens}) is larger than the maximum number of tokens that can be stored in KV cache ({blocks * 16}). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.")
    return [d.log("INFO", "worker.py:266", f"Memory profiling takes {d.real(2, 9)} seconds"), d.log("INFO", "worker.py:266", f"the current vLLM instance can use total_gpu_memory ({total:.2f}GiB) x gpu_memory_utilization (0.90) = {budget:.2f}GiB"),
            d.log("INFO", "worker.py:266", f"model weights take {weights:.2f}GiB; non_torch_memory takes {other:.2f}GiB; PyTorch activation peak memory takes {peak:.2f}GiB; the rest of the memory reserved for KV Cache is {rest:.2f}GiB."),
            d.log("INFO", "v0_blocks", f"# CUDA blocks: {blocks}, # CPU blocks: 2048"), d.log("INFO", "v0_conc", f"Maximum concurrency for {tokens} tokens per request: {blocks * 16 / tokens:.2f}x"),
            d.log("ERROR", "v0_engine", text)][d.variant:]


@recipe("kv-context-v0-method", "config_refusal kv_sizing context_too_long_for_kv", ["bare"])
def kv_context_v0_method(d):
    """A worker names the method and the sentence in one line."""
    d.at("worker_invalid", v0=True, among=["0.6.3"])
    blocks, text = too_long_v0(d)
    d.numbers["gpu_blocks"] = blocks
    return [d.log("INFO", "v0_took", "Loading model weights took 4.9021 GB"), d.log("INFO", "distributed_gpu_executor.py:57", f"# GPU blocks: {blocks}, # CPU blocks: 4096"),
            d.log("ERROR", "v0_worker", f"Exception in worker VllmWorkerProcess while processing method initialize_cache: {text}, Traceback (most recent call last):", d.v0worker()), *d.trace("ERROR", "v0_worker", ["worker_invalid"], None, d.v0worker(), head=False)[:2]]


@recipe("kv-context-v0-frames", "config_refusal kv_sizing context_too_long_for_kv gmu_too_low,activation_peak,weights_exceed_gpu", ["bare", "compose", "bare"], evidence="frames_only", decide="weak weak", sure="medium")
def kv_context_v0_frames(d):
    """Blocks are counted, then initialize_cache fails; the sentence is missing."""
    d.at("cache_invalid", v0=True)
    if d.variant == 2:
        blocks = d.between(200, 900)
        d.note(gpu_blocks=blocks)
        return [d.log("INFO", "distributed_gpu_executor.py:45", f"# GPU blocks: {blocks}, # CPU blocks: 1024"), d.log("ERROR", "worker_base.py:148", "Error executing method initialize_cache. This might cause deadlock in dis")]
    return cut(d.trace("ERROR", "v0_engine" if d.variant and d.newer("0.6.0") else "worker_base.py:157", ["cache_invalid"]), d.between(15, 40))


@recipe("kv-context-cpu", "config_refusal kv_sizing context_too_long_for_kv host_ram", ["bare"])
def kv_context_cpu(d):
    """The CPU backend has its own setting."""
    return "ValueError: " + too_long_v0(d, "`VLLM_CPU_KVCACHE_SPACE`")[1]


@recipe("kv-none-bare", "config_refusal kv_sizing insufficient_info gmu_too_low,weights_exceed_gpu,other_process_holds_memory,activation_peak,profiling_accounting_bug,logits_peak", ["bare", "bare", "bare"], decide="yes no", sure="medium")
def kv_none_bare(d):
    """Nothing is left for the KV cache; the sentence alone."""
    d.at("kv_none")
    return [["ValueError: " + no_blocks(d)], ["No available memory for the cache blocks"], [d.log("ERROR", "failed", "ValueError: " + no_blocks(d), d.core())]][d.variant]


@recipe("kv-none-negative", "config_refusal kv_sizing gmu_too_low weights_exceed_gpu,activation_peak,cudagraph_unbudgeted,version_regression", ["bare", "compose", "ray_repeated", "bare"], decide="yes weak", sure="medium")
def kv_none_negative(d):
    """Weights and peak are above the budget: what is available is negative."""
    d.at("kv_none", among=["0.9.0", "0.10.0", "0.13.0", "0.20.1", "0.27.1"])
    gib = d.real(14, 22)
    before = [took(d, gib)] + ([available(d, -d.real(0.1, 2.5))] if d.newer("0.9.1") else [])
    return core_fail(d, ["kv_none"], "ValueError: " + no_blocks(d), skip=3, before=before)


@recipe("kv-none-v0-budget", "config_refusal kv_sizing gmu_too_low activation_peak,weights_exceed_gpu", ["bare", "bare"])
def kv_none_v0_budget(d):
    """The budget is far below the card, and weights and peak are above the budget."""
    d.at("cache_none", v0=True, among=["0.7.2"])
    total, share = d.card("rtx4070", "rtx4080"), d.pick([0.5, 0.6])
    weights, peak, other = round(total * share * d.real(0.93, 0.99), 2), d.real(0.8, 1.5), d.real(0.02, 0.2)
    budget = round(total * share, 2)
    rest = round(budget - weights - peak - other, 2)
    d.note(weights_mib=round(weights * 1024, 4), activation_peak_mib=round(peak * 1024, 4), non_torch_mib=round(other * 1024, 4), gmu=share)
    lines = [d.log("INFO", "worker.py:266", f"the current vLLM instance can use total_gpu_memory ({total:.2f}GiB) x gpu_memory_utilization ({share:.2f}) = {budget:.2f}GiB"),
             d.log("INFO", "worker.py:266", f"model weights take {weights:.2f}GiB; non_torch_memory takes {other:.2f}GiB; PyTorch activation peak memory takes {peak:.2f}GiB; the rest of the memory reserved for KV Cache is {rest:.2f}GiB."),
             d.log("INFO", "v0_blocks", "# CUDA blocks: 0, # CPU blocks: 4681")]
    return lines + (d.stack(d.frames("cache_none")[-2:], "ValueError: " + no_blocks(d)) if d.variant else [f"[rank0]: {line}" for line in d.stack(d.frames("llm_head"))[:3]])


@recipe("kv-none-v0-foreign", "config_refusal kv_sizing profiling_accounting_bug other_process_holds_memory,gmu_too_low,version_regression", ["bare", "compose"], decide="yes weak")
def kv_none_v0_foreign(d):
    """What other processes hold is counted as this engine's own."""
    d.at("cache_none", v0=True, among=["0.6.3"])
    total, start = d.card("a100-80", "l40s"), 0
    weights, held, peak = d.real(14, 16), d.real(18, 26), d.real(1.5, 3)
    start = round(weights + held + 0.4, 2)
    rest = round(total * 0.5 - weights - peak - held - 0.4, 2)
    lines = [d.log("INFO", "v0_took", f"Loading model weights took {weights:.4f} GB"),
             d.log("INFO", "worker.py:232", f"Memory profiling results: total_gpu_memory={total:.2f}GiB initial_memory_usage={start:.2f}GiB peak_torch_memory={weights + peak:.2f}GiB memory_usage_post_profile={start + 0.02:.2f}GiB "
                   f"non_torch_memory={held + 0.4:.2f}GiB kv_cache_size={rest:.2f}GiB gpu_memory_utilization=0.50")]
    d.note(weights_mib=round(weights * 1024, 4))
    return lines + [d.log("ERROR", "v0_engine", line) for line in d.stack(d.frames("cache_none")[-2:], "ValueError: " + no_blocks(d), head=False)]


@recipe("kv-none-leftover", "config_refusal kv_sizing stale_process_or_leftover other_process_holds_memory,profiling_accounting_bug", ["ci+pipe", "ci"], decide="yes weak", sure="medium")
def kv_none_leftover(d):
    """A tiny model, and nothing is left: the engine of the test before still holds the card."""
    d.at("kv_none", among=["0.8.1", "0.9.0"])
    return core_fail(d, ["kv_none"], "ValueError: " + no_blocks(d), before=[took(d, d.real(0.2, 0.9, 4))], skip=2)


@recipe("kv-none-trainer", "config_refusal kv_sizing other_process_holds_memory profiling_accounting_bug,gmu_too_low", ["actor", "actor"], decide="yes weak", sure="medium")
def kv_none_trainer(d):
    """A trainer on the same card holds its state while the rollout engine sizes its cache."""
    d.at("kv_none", among=["0.8.1", "0.9.0", "0.10.0"])
    return ["Total steps: 188, num_warmup_steps: 0", "NCCL version 2.26.2+cuda12.2", "Error executing job with overrides: []", *d.stack(d.frames("kv_none")[-2:], "ValueError: " + no_blocks(d))]


@recipe("kv-none-graphs", "config_refusal kv_sizing cudagraph_overestimated", ["bare"])
def kv_none_graphs(d):
    """The estimate of the graphs is far larger than any real one and eats the budget."""
    d.at("kv_none", among=["0.27.1"])
    gib = d.real(70, 130)
    d.note(cudagraph_estimate_mib=round(gib * 1024, 4))
    return [d.log("INFO", "cg_estimate", f"Estimated CUDA graph memory: {gib:.2f} GiB total", d.worker(1, "DP0_TP")), *core_fail(d, ["kv_none"], "ValueError: " + no_blocks(d), skip=6)]


@recipe("kv-none-images", "config_refusal kv_sizing mm_encoder_peak activation_peak,profiling_accounting_bug,gmu_too_low", ["bare"], decide="yes weak", sure="medium")
def kv_none_images(d):
    """The dummy images of the profile run leave nothing for the cache."""
    d.at("kv_none", among=["0.9.0", "0.10.0"])
    return ["Using a slow image processor as `use_fast` is unset and a slow processor was saved with this model.", d.log("INFO", "encoder_budget", "Encoder cache will be initialized with a budget of 98304 tokens, and profiled with 1 video items of the maximum feature size.", d.core()),
            "ValueError: " + no_blocks(d)]


@recipe("kv-none-npu", "config_refusal kv_sizing profiling_accounting_bug other_process_holds_memory", ["caret_ansi"], decide="yes weak", engine="vllm-ascend")
def kv_none_npu(d):
    """An NPU's worker finds nothing left."""
    d.at("kv_none", among=["0.13.0"])
    return [d.log("INFO", "worker_v1.py:268", "Available memory: 0, total memory: 65452113920", d.core()), d.log("ERROR", "failed", "EngineCore failed to start.", d.core())]


@recipe("kv-none-frames", "config_refusal kv_sizing gmu_too_low context_too_long_for_kv,weights_exceed_gpu,unified_memory_accounting", ["date", "flat"], evidence="frames_only", decide="weak no", sure="medium")
def kv_none_frames(d):
    """The stack of the check, cut before its sentence."""
    d.at("kv_none", among=["0.8.1", "0.9.0", "0.10.0", "0.11.2"])
    return cut(core_fail(d, ["kv_none"], None, before=[took(d, d.real(5, 15))]), d.between(25, 60))


@recipe("kv-state-slots", "config_refusal kv_sizing state_cache_slots version_regression", ["bare", "bare", "bare"])
def kv_state_slots(d):
    """A hybrid model: fewer state blocks than sequences."""
    d.at("cgprof", among=["0.20.1", "0.24.0", "0.27.1"])
    seqs, blocks = d.pick([256, 512, 1024]), d.between(40, 250)
    d.note(max_num_seqs=seqs, state_blocks=blocks)
    text = f"max_num_seqs ({seqs}) exceeds available Mamba cache blocks ({blocks})."
    if d.variant == 2:
        return "ValueError: " + text
    text += f" Each decode sequence requires one Mamba cache block, so CUDA graph capture cannot proceed. Please lower max_num_seqs to at most {blocks} or increase gpu_memory_utilization."
    return f"{d.core()}RuntimeError: Worker failed with error '{text}', please check the stack trace above for the root cause" if d.variant else "ValueError: " + text


@recipe("kv-autofit", "config_refusal kv_sizing gmu_too_low weights_exceed_gpu", ["bare"], decide="yes weak")
def kv_autofit(d):
    """The length was to be fitted, and not one token fits."""
    d.at("kv_none", among=["0.15.1", "0.24.0"])
    return core_fail(d, ["core_head"], "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. Try increasing `gpu_memory_utilization`.")


@recipe("kv-bytes-frames", "config_refusal kv_sizing kv_layout_waste version_regression,context_too_long_for_kv", ["bare"], evidence="frames_only", decide="no no", sure="medium")
def kv_bytes_frames(d):
    """The size of the cache was given in bytes; the core fails right after, without a sentence."""
    d.at("core_head", among=["0.24.0"])
    return core_fail(d, ["core_head"], None, before=[d.log("INFO", "available", f"Initial free memory {d.real(88, 94)} GiB, reserved 40.0 GiB memory for KV Cache as specified by kv_cache_memory_bytes config and skipped memory profiling. This does not respect the "
                     "gpu_memory_utilization config. Only use kv_cache_memory_bytes config when you want manual control of KV cache memory size.", d.core())])[:4]


@recipe("kv-ring-waste", "config_refusal kv_sizing kv_layout_waste", ["bare"], decide="yes weak", engine="vllm")
def kv_ring_waste(d):
    """A plugin's ring of the sliding window is larger than the whole budget."""
    budget = d.real(11, 25)
    return f"WARNING plugin.worker: Sliding ring reservation ({budget + d.real(1, 9):.2f} GiB) >= KV budget ({budget:.2f} GiB); no room for full-att"


@recipe("sgl-kv-negative", "config_refusal kv_sizing weights_exceed_gpu gmu_too_low", ["bare"], decide="yes weak", engine="sglang")
def sgl_kv_negative(d):
    """SGLang: the profiled number of tokens is negative."""
    d.at("kv", engine="sglang")
    count = -d.between(20000, 700000)
    return [d.sglang(f"Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem={d.real(4, 9)} GB, mem usage={d.real(66, 72)} GB.", "DP0 TP0")] + [
        d.sglang(f"max_total_tokens=65536 is larger than the profiled value {count}. Use the profiled value instead.", f"DP{r} TP{r}") for r in (0, 3)]


@recipe("sgl-kv-static", "config_refusal kv_sizing gmu_too_low spec_decode_extra,weights_exceed_gpu", ["bare", "compose"], decide="yes weak", engine="sglang")
def sgl_kv_static(d):
    """SGLang: the static share leaves no token."""
    d.at("kv_small", engine="sglang")
    error = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
    return error if d.variant == 0 else [d.sglang("Scheduler hit an exception: Traceback (most recent call last):"), *d.stack(d.frames("kv_small"), error, head=False)]


@recipe("sgl-kv-frames", "config_refusal kv_sizing weights_exceed_gpu gmu_too_low", ["bare"], evidence="frames_only", decide="no no", sure="low", engine="sglang")
def sgl_kv_frames(d):
    """The scheduler fails in the worker's constructor; the rest is missing."""
    d.at("kv_small", engine="sglang")
    return [d.sglang("Scheduler hit an exception: Traceback (most recent call last):"), *d.stack(d.frames("kv_small")[:3], head=False)]


@recipe("tgi-total-tokens", "config_refusal kv_sizing context_too_long_for_kv activation_peak", ["bare"], decide="weak weak", engine="tgi")
def tgi_total_tokens(d):
    """TGI: the total of a batch does not fit."""
    return f"Not enough memory to handle {d.pick([12000, 24000, 32768])} total tokens with {d.pick([1024, 2048, 4096])} prefill tokens. You need to decrease `--max-batch-total-tokens` or `--max-batch-prefill-tokens`"


# ---- tensors of the KV cache

@recipe("kvalloc", "cuda_alloc kv_alloc gmu_too_high_leaves_no_headroom other_process_holds_memory", ["bare", "compose"], decide="yes weak")
def kvalloc(d):
    """The budget passed, the tensors of the cache do not fit what is really free."""
    d.at("kv_alloc")
    total = d.card("rtx4090", "a10g", "h100")
    return core_fail(d, ["kv_alloc"], d.torch_oom(int(d.pick([0.5, 1.1, 2.2]) * GIB), total, free=int(0.4 * GIB)), before=kv_lines(d), skip=3)


@recipe("kvalloc-others", "cuda_alloc kv_alloc other_process_holds_memory gmu_too_high_leaves_no_headroom", ["bare", "bare"])
def kvalloc_others(d):
    """The list of processes shows a second engine beside the cache's tensors."""
    d.at("kv_alloc", v0=True, among=["0.6.3", "0.7.2"])
    total = d.card("l40s", "a100-80")
    oom = d.torch_oom(d.pick([512, 786, 1010]) * MIB, total, free=int(0.47 * GIB), others=[int(total * GIB * d.real(0.5, 0.7, 3)), int(0.5 * GIB)], named=True)
    return [d.log("INFO", "v0_took", "Loading model weights took 6.8821 GB"), *d.trace("ERROR", "v0_engine", ["kv_alloc"], oom, head=False, skip=5)]


@recipe("kvalloc-old", "cuda_alloc kv_alloc other_process_holds_memory", ["bare"], decide="no yes")
def kvalloc_old(d):
    """PyTorch 2.0: allocated, reserved and free together are far below the total."""
    text = d.torch_oom(int(1.5 * GIB), 47.54, free=int(0.6 * GIB), others=[16 * GIB], style="2.0", cached=20 * MIB)
    d.numbers.pop("other_processes_mib", None)
    return text


@recipe("kvalloc-frames", "cuda_alloc kv_alloc other_process_holds_memory gmu_too_high_leaves_no_headroom,unified_memory_accounting", ["rank", "rank", "bare"], evidence="frames_only", decide="yes no", sure="medium")
def kvalloc_frames(d):
    """The stack ends in the making of the cache's tensors."""
    if d.variant == 2:
        d.at("kv_alloc", among=["0.9.0", "0.10.0"])
        return core_fail(d, ["kv_alloc"], None, skip=3)[3:-3]
    d.at("kv_alloc", "llm_head", v0=True, among=["0.6.3", "0.7.2"])
    return d.stack([("/work/train/grpo.py", 408, "__init__", "self.llm = LLM("), *d.frames("llm_head", "kv_alloc")], head=False)[: None if d.variant else -6]


@recipe("kvalloc-pinned", "cuda_error kv_alloc host_ram slice_total_mismatch,gmu_too_high_leaves_no_headroom", ["bare", "bare"], decide="weak weak", sure="medium")
def kvalloc_pinned(d):
    """The pinned side of the cache in host memory fails; CUDA says the same words for it."""
    d.at("kv_cpu", v0=True, among=["0.5.4", "0.6.3"])
    lines = [d.log("INFO", "v0_blocks", f"# GPU blocks: {d.between(2000, 40000)}, # CPU blocks: {d.between(4000, 9000)}")]
    return lines + d.stack(d.frames("llm_head", "kv_cpu"), "RuntimeError: CUDA error: out of memory\n" + ASYNC) if d.variant else lines + d.stack(d.frames("llm_head")[:1]) + ["CUDA error: out of memory"]


@recipe("kvalloc-bare-error", "cuda_error kv_alloc gmu_too_high_leaves_no_headroom", ["bare"], decide="no no", sure="medium")
def kvalloc_bare_error(d):
    """The bare CUDA error of an old engine."""
    return "RuntimeError: CUDA error: out of memory\n" + ASYNC


@recipe("kvalloc-unified", "cuda_alloc kv_alloc unified_memory_accounting gmu_too_high_leaves_no_headroom", ["app"], decide="weak weak")
def kvalloc_unified(d):
    """An integrated GPU says that more is free than was asked, and refuses; a second start shows where."""
    d.at("kv_alloc", among=["0.20.1", "0.24.0"])
    first = d.log("ERROR", "failed", d.torch_oom(int(11.8 * GIB), 125.0, device="HIP", free=int(17.1 * GIB), others=[60 * GIB], hint=False), d.core())
    d.numbers.pop("other_processes_mib", None)
    first = first.replace(first[first.index("Process "):first.index("Of the allocated")], "")
    return [first, *d.stack(d.frames("kv_alloc")[-4:-1], None, d.core(d.pid + 400), head=False)]


@recipe("kvalloc-driver", "driver_nomem kv_alloc unified_memory_accounting host_ram", ["bare"], decide="weak weak", sure="medium")
def kvalloc_driver(d):
    """The driver of a machine with unified memory, then the kernel's killer."""
    return ["NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY]", "returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1353", "VLLM::EngineCor invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0",
            "oom_kill_process+0x1e8/0x3f0", "sysmemAllocResources+0xac/0x2a0 [nvidia]"]


@recipe("kvalloc-sglang", "cuda_alloc kv_alloc gmu_too_high_leaves_no_headroom spec_decode_extra", ["compose", "bare"], decide="yes weak", engine="sglang")
def kvalloc_sglang(d):
    """SGLang makes its pool of tokens."""
    d.at("kv", engine="sglang")
    total = d.card("rtx4090", "h100")
    return [d.sglang(f"Load weight end. type=LlamaForCausalLM, dtype=torch.float16, avail mem={d.real(5, 12)} GB, mem usage={d.real(11, 15)} GB."), d.sglang("Scheduler hit an exception: Traceback (most recent call last):"),
            *d.stack(d.frames("kv"), d.torch_oom(d.pick([30, 64, 144]) * MIB, total), head=False)]


@recipe("kvalloc-sglang-warning", "cuda_alloc kv_alloc spec_decode_extra profiling_accounting_bug,gmu_too_high_leaves_no_headroom", ["date"], decide="no no", engine="sglang", sure="medium")
def kvalloc_sglang_warning(d):
    """PyTorch warns, the scheduler's stack begins, and its end is missing."""
    d.at("kv", engine="sglang", among=["0.5.6"])
    count, free, total = 3221225472, d.between(2000, 2900) * MIB, 287431131136
    d.note(tried_mib=count / MIB, free_mib=free / MIB, gpu_total_mib=round(total / MIB, 4))
    warn = f"[rank2]:[W{d.month}{d.day:02} {d.clock()}.{d.between(100000000, 999999999)} CUDACachingAllocator.cpp:3941] memory allocation failed with OOM on device 2 while trying to allocate {count} bytes (free: {free}, total: {total})."
    return [warn, d.sglang("Scheduler hit an exception: Traceback (most recent call last):", "DP2 TP2 EP2"), *d.stack(d.frames("kv")[:3], head=False)]


@recipe("kvalloc-llamacpp", "cuda_alloc kv_alloc context_too_long_for_kv", ["bare", "compose"], engine="llama.cpp")
def kvalloc_llamacpp(d):
    """llama.cpp asks for the whole cache in one buffer."""
    count = d.between(30000, 150000) * MIB
    d.note(tried_mib=round(count / MIB, 2))
    return [f"ggml_backend_cuda_buffer_type_alloc_buffer: allocating {count / MIB:.2f} MiB on device 0: cudaMalloc failed: out of memory", "llama_kv_cache_init: failed to allocate buffer for kv cache",
            "llama_init_from_model: llama_kv_cache_init() failed for self-attention cache", "ValueError: Failed to create llama_context"]


@recipe("compute-llamacpp", "cuda_alloc kv_alloc activation_peak profiling_accounting_bug,context_too_long_for_kv", ["bare", "bare"], decide="weak weak", sure="medium", engine="llama.cpp")
def compute_llamacpp(d):
    """The cache fits, the compute buffers behind it do not."""
    count = d.between(120, 1200) * MIB + 4096
    d.note(tried_mib=round(count / MIB, 2))
    fail = f"ggml_gallocr_reserve_n: failed to allocate CUDA1 buffer of size {count}"
    if d.variant:
        return ["Error: llama runner process has terminated: cudaMalloc failed: out of memory", fail]
    return ["llama_kv_cache_init:      CUDA0 KV buffer size =  2048.00 MiB", "llama_new_context_with_model: KV self size  = 4096.00 MiB, K (f16): 2048.00 MiB, V (f16): 2048.00 MiB", "llama_new_context_with_model: pipeline parallelism enabled (n_copies=4)",
            f"ggml_backend_cuda_buffer_type_alloc_buffer: allocating {count / MIB:.2f} MiB on device 1: cudaMalloc failed: out of memory", fail, "llama_new_context_with_model: failed to allocate compute buffers"]


@recipe("kvalloc-exllama", "cuda_alloc kv_alloc context_too_long_for_kv weights_exceed_gpu", ["bare"], decide="yes weak", engine="exllamav2")
def kvalloc_exllama(d):
    """exllamav2 makes the cache layer by layer."""
    d.torch, root = "2.5", d.root
    frames = [(f"{root}/exllamav2/cache.py", 251, "__init__", "self.create_state_tensors(copy_from, lazy)"), (f"{root}/exllamav2/cache.py", 96, "create_state_tensors", "p_key_states = torch.zeros(self.shape_wk, dtype = self.dtype, device = device).contiguous()")]
    return d.stack(frames, d.torch_oom(48 * MIB, d.card("t4", "rtx4080"), named=True))


@recipe("trt-kv", "cuda_alloc kv_alloc insufficient_info gmu_too_high_leaves_no_headroom,profiling_accounting_bug,kv_layout_waste", ["bare", "bare"], decide="yes no", sure="medium", engine="tensorrt-llm")
def trt_kv(d):
    """TensorRT-LLM names the component that it could not make, and what was free before and after each."""
    total, model = d.card("h200", "rtxpro"), d.real(28, 46)
    left = round(total - 0.6 - model, 2)
    part = ["KV cache", "KV cache"][d.variant]
    lines = [f"[{d.month:02}/{d.day:02}/2025-{d.clock()}] [TRT-LLM] [RANK 1] [E] Failed to initialize executor on rank 1: Executor creation failed due to insufficient GPU memory.", "", f"The following component could not be created: {part}",
             f"Total GPU memory (GiB): {total}", f"Free GPU memory before component creation attempt (GiB): {round(left - 1.7, 2)}", "", "Previously created components and free GPU memory before/after creation (GiB):",
             f"Model: {round(total - 0.6, 2)} / {left}", f"Sampler: {left} / {left}", f"Initial KV cache (temporary for KV cache size estimation): {left} / {round(left - 0.4, 2)}"]
    return lines[d.variant * 2:]


@recipe("trt-raise", "cuda_alloc kv_alloc kv_layout_waste gmu_too_high_leaves_no_headroom", ["bare"], decide="no no", sure="low", engine="tensorrt-llm")
def trt_raise(d):
    """The same sentence without the component."""
    return d.stack([(f"{d.root}/tensorrt_llm/_torch/pyexecutor/py_executor_creator.py", 151, "observe_creation_stage", "raise RuntimeError(explanation) from e")], "RuntimeError: Executor creation failed due to insufficient GPU memory.", head=False)


@recipe("trt-extra", "cuda_alloc unknown version_regression activation_peak,cudagraph_unbudgeted", ["bare"], decide="no weak", sure="medium", engine="tensorrt-llm")
def trt_extra(d):
    """The last component on the list: anything behind the cache."""
    total = d.card("rtxpro")
    return ["RuntimeError: Executor creation failed due to insufficient GPU memory.", "", "The following component could not be created: Additional executor resources", f"Total GPU memory (GiB): {total}", "Free GPU memory before component creation attempt (GiB): 14.21", "",
            "Previously created components and free GPU memory before/after creation (GiB):", f"Model: {total - 0.7:.2f} / 51.02", "Sampler: 51.02 / 51.02"]


@recipe("kv-progress", "cuda_alloc kv_alloc context_too_long_for_kv gmu_too_high_leaves_no_headroom", ["bare"], evidence="frames_only", decide="no no", sure="low")
def kv_progress(d):
    """A bar of the cache's layers that stops."""
    return [bar("Allocating device kv caches for each layer", n, 40) for n in (0, 4, 11)]


# ---- compile and kernel warm-up

@recipe("warmup-deepgemm", "cuda_alloc compile runtime_workspace_unprofiled gmu_too_high_leaves_no_headroom", ["wrap", "bare"], evidence="frames_only", decide="yes weak")
def warmup_deepgemm(d):
    """The warm-up of DeepGEMM makes its largest operands."""
    d.at("busy_warm", "kernel_warm")
    lines = worker_fail(d, ["busy_warm", "kernel_warm"], None, 2, kind="TP0_EP")
    return lines[4:] if d.variant == 0 else lines


@recipe("warmup-deepgemm-oom", "cuda_alloc compile runtime_workspace_unprofiled gmu_too_high_leaves_no_headroom", ["bare"], decide="yes weak")
def warmup_deepgemm_oom(d):
    """The same with PyTorch's sentence."""
    d.at("busy_warm", "kernel_warm")
    return worker_fail(d, ["busy_warm", "kernel_warm"], d.torch_oom(int(3.5 * GIB), d.card("h200", "b200"), free=int(1.9 * GIB), gpu=1), 1)


@recipe("compile-frames", "cuda_alloc compile insufficient_info activation_peak", ["bare"], evidence="frames_only", decide="no no", sure="low")
def compile_frames(d):
    """Dynamo's and AOT's frames below the profile run; a kernel is tried out while it is compiled."""
    d.at("busy_profile", among=["0.8.1", "0.9.0"])
    root = d.root
    frames = d.frames("busy_profile") + [(f"{root}/torch/_dynamo/convert_frame.py", 1412, "__call__", "result = self._inner_convert("), (f"{root}/torch/_functorch/aot_autograd.py", 844, "_create_aot_dispatcher_function", "compiled_fn, fw_metadata = compiler_fn("),
                                         (f"{root}/torch/_inductor/select_algorithm.py", 1631, "__call__", "timings = do_autotuning(precompile_fn)")]
    return d.stack(frames, None, d.log("ERROR", "worker_hit", "", d.worker(3)))


@recipe("autotune-oom", "cuda_alloc compile runtime_workspace_unprofiled gmu_too_high_leaves_no_headroom,activation_peak", ["bare"], decide="yes weak", sure="medium")
def autotune_oom(d):
    """The autotuner says that it goes on, and the next allocation of the warm-up fails."""
    d.at("busy_warm", "autotune")
    return ["[Autotuner]: OOM detected, falling back to default tactic", *worker_fail(d, ["busy_warm", "autotune"], d.torch_oom(int(1.2 * GIB), d.card("b200"), free=int(0.8 * GIB)), 0)]


# ---- capture

@recipe("capture", "cuda_alloc cudagraph_capture cudagraph_unbudgeted gmu_too_high_leaves_no_headroom", ["bare", "compose", "bare"], decide="yes weak")
def capture(d):
    """The real capture has no room beside the cache."""
    d.at("busy_warm", "capture", "llama_fwd")
    total = d.card("rtx4090", "a10g", "rtx5090")
    before = kv_lines(d) + [bar("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", d.between(2, 30), 35)]
    return before + worker_fail(d, ["busy_warm", "capture", "llama_fwd"], d.torch_oom(d.pick([2, 20, 128]) * MIB, total, private=int(0.4 * GIB), free=1 * MIB), 0)


@recipe("capture-end", "cuda_error cudagraph_capture gmu_too_high_leaves_no_headroom cudagraph_unbudgeted,version_regression,spec_decode_extra", ["bare", "bare", "compose", "rank"], decide="yes weak")
def capture_end(d):
    """The graph cannot be instantiated: a bare CUDA error at the end of the capture."""
    error = "RuntimeError: CUDA error: out of memory\n" + ASYNC
    if d.variant < 2:
        d.at("busy_warm", "capture", "cg")
        frames = d.frames("busy_warm", "capture", "cg") + d.graphs()
        streams = [d.stack(frames[-d.between(4, 9):], error, d.log("ERROR", "worker_hit", "", d.worker(r)), head=False) for r in range(1 + d.variant)]
        return interleave(d, *streams)
    d.at("capture_end", v0=True, among=["0.7.2", "0.8.1"])
    return d.stack(d.frames("capture_end") + d.graphs(), error, d.log("ERROR", "v0_engine", "")) if d.variant == 2 else d.stack(d.frames("capture_end") + d.graphs(), error) + [shutdown(d)]


@recipe("capture-frames", "cuda_alloc cudagraph_capture cudagraph_unbudgeted gmu_too_high_leaves_no_headroom,version_regression", ["bare", "ci", "bare"], evidence="frames_only", decide="weak no", sure="medium")
def capture_frames(d):
    """The stack of the capture, cut before the error."""
    d.at("busy_warm", "capture", "cg")
    lines = worker_fail(d, ["busy_warm", "capture", "cg"], None, 2)
    if d.variant == 2 and d.newer("0.9.0"):
        lines = [d.log("INFO", "car", f"Registering {d.between(4000, 13000)} cuda graph addresses", d.worker(r)) for r in (0, 3, 2)] + lines
    return lines if d.variant != 1 else lines[-6:] + [d.log("ERROR", "worker_hit", line, d.worker(2)) for line in d.stack(d.graphs(), head=False)]


@recipe("capture-head-frames", "cuda_alloc cudagraph_capture gmu_too_high_leaves_no_headroom cudagraph_unbudgeted,lora,mm_encoder_peak", ["bare", "journald"], evidence="frames_only", decide="no no", sure="low")
def capture_head_frames(d):
    """Only the call of the warm-up is visible, not what it ran."""
    d.at("warm")
    return kv_lines(d) + core_fail(d, ["warm"], None) if d.variant == 0 else d.stack(d.frames("warm"), None, d.log("ERROR", "failed", "", d.core()), head=False)


@recipe("capture-progress", "cuda_alloc cudagraph_capture gmu_too_high_leaves_no_headroom cudagraph_unbudgeted", ["bare"], evidence="frames_only", decide="no no", sure="medium")
def capture_progress(d):
    """A share near to one, the estimate of the graphs, and a bar that stops at the second graph."""
    d.at("cgprof", among=["0.24.0", "0.27.1"])
    return [d.log("INFO", "cg_profile", "Profiling CUDA graph memory: PIECEWISE=35 (largest=256), FULL=19 (largest=128)", d.core()), d.log("INFO", "cg_estimate", "Estimated CUDA graph memory: 0.47 GiB total", d.core()),
            available(d, d.real(3, 8)), *kv_lines(d), bar("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", 0, 35), bar("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", 1, 35)[:70]]


@recipe("capture-v0", "cuda_alloc cudagraph_capture cudagraph_unbudgeted gmu_too_high_leaves_no_headroom,runtime_workspace_unprofiled,activation_peak", ["bare", "compose", "ray"], decide="yes weak", sure="medium")
def capture_v0(d):
    """The hint that graphs take memory, and then they do."""
    d.at("capture", v0=True, among=["0.6.3", "0.7.2", "0.8.1"])
    lines = [d.log("INFO", "v0_cap", "Capturing cudagraphs for decoding. This may lead to unexpected consequences if the model is not static. To run the model in eager mode, set 'enforce_eager=True' or use '--enforce-eager' in the CLI. If out-of-memory error occurs during cudagraph capture, "
                   "consider decreasing `gpu_memory_utilization` or switching to eager mode. You can also reduce the `max_num_seqs` as needed to decrease memory usage.")]
    d.tick(8)
    return lines + d.trace("ERROR", "v0_engine", ["capture", "llama_fwd"], d.torch_oom(d.pick([20, 56, 256]) * MIB, d.card("rtx4090", "l40s"), free=3 * MIB, named=True))


@recipe("capture-v0-lines", "cuda_alloc cudagraph_capture cudagraph_unbudgeted other_process_holds_memory,gmu_too_high_leaves_no_headroom,version_regression", ["bare", "date"], decide="weak weak", sure="medium")
def capture_v0_lines(d):
    """Workers report weights, blocks, then the capture begins on one of them; a sentence is cut off in front."""
    d.at("capture", v0=True, among=["0.5.4"])
    gib = d.real(2, 9, 4)
    d.note(gpu_blocks=14802, tried_mib="56.00 MiB")
    lines = [f"torch.cuda.OutOfMemoryError: [address=0.0.0.0:{d.between(30000, 45000)}, pid={d.between(90, 900)}] CUDA out of memory. Tried to allocate 56.00 MiB. GPU", d.log("INFO", "v0_took", f"Loading model weights took {gib:.4f} GB"), d.log("INFO", "distributed_gpu_executor.py:56", "# GPU blocks: 14802, # CPU blocks: 6553"),
             d.log("INFO", "v0_cap", "Capturing the model for CUDA graphs. This may lead to unexpected consequences if the model is not static. To run the model in eager mode, set 'enforce_eager=True' or use '--enforce-eager' in the CLI.", d.v0worker()),
             d.log("INFO", "v0_cap2", "CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider decreasing `gpu_memory_utilization` or enforcing eager mode.", d.v0worker())]
    d.note(weights_mib=round(gib * 1024, 4))
    return lines


@recipe("capture-ledger", "cuda_alloc cudagraph_capture gmu_too_high_leaves_no_headroom cudagraph_unbudgeted", ["ray_repeated", "bare"])
def capture_ledger(d):
    """A share of 0.98, the ledger of the profile run, and then the capture."""
    d.at("capture", v0=True, among=["0.7.2", "0.8.1"])
    total = d.card("l40s")
    budget = round(total * 0.98, 2)
    weights, peak, other = 20.71, 1.48, 0.31
    d.note(weights_mib=round(weights * 1024, 4), activation_peak_mib=round(peak * 1024, 4), non_torch_mib=round(other * 1024, 4), gmu=0.98, tried_mib="2.00 MiB", gpu_total_mib=f"{total:.2f} GiB", free_mib="512.00 KiB")
    lines = [d.log("INFO", "worker.py:266", f"the current vLLM instance can use total_gpu_memory ({total:.2f}GiB) x gpu_memory_utilization (0.98) = {budget:.2f}GiB"),
             d.log("INFO", "worker.py:266", f"model weights take {weights:.2f}GiB; non_torch_memory takes {other:.2f}GiB; PyTorch activation peak memory takes {peak:.2f}GiB; the rest of the memory reserved for KV Cache is {budget - weights - other - peak:.2f}GiB."),
             d.log("INFO", "v0_cap", "Capturing cudagraphs for decoding. This may lead to unexpected consequences if the model is not static.")]
    return lines + d.trace("ERROR", "worker_base.py:616", ["capture"], None)[2:5] + [f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 3 has a total capacity of {total:.2f} GiB of which 512.00 KiB is free."]


@recipe("capture-warm-frames-v0", "cuda_alloc cudagraph_capture cudagraph_unbudgeted nccl_buffers,gmu_too_high_leaves_no_headroom", ["app"], evidence="frames_only", decide="weak no")
def capture_warm_frames_v0(d):
    """The warm-up of the older engine, shown by a server in front of it."""
    d.at("capture", v0=True, among=["0.5.4"])
    return d.stack(d.frames("capture")[:2], head=False)


@recipe("capture-sglang", "cuda_alloc cudagraph_capture cudagraph_unbudgeted nccl_buffers,gmu_too_high_leaves_no_headroom", ["bare", "compose"], decide="yes weak", engine="sglang")
def capture_sglang(d):
    """SGLang wraps PyTorch's sentence into its advice."""
    d.at("capture", "capture_raise", engine="sglang")
    oom = d.torch_oom(d.pick([256, 384, 640]) * MIB, d.card("rtxpro", "h100"), gpu=5, error=False)
    error = (f"Exception: Capture cuda graph failed: {oom}\nPossible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n"
             "3. disable torch compile by not using --enable-torch-compile\n4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)\nOpen an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose ")
    return [d.sglang("Scheduler hit an exception: Traceback (most recent call last):", "TP5"), *d.stack(d.frames("capture")[-4:], head=False), "", *d.stack(d.frames("capture_raise"), error)]


@recipe("capture-sglang-frames", "cuda_alloc cudagraph_capture spec_decode_extra cudagraph_unbudgeted", ["bare", "bare"], evidence="frames_only", decide="weak weak", sure="medium", engine="sglang")
def capture_sglang_frames(d):
    """The same, cut in the stack; one cut is inside the class's name."""
    d.at("capture", engine="sglang")
    lines = [d.sglang("Scheduler hit an exception: Traceback (most recent call last):", "TP1"), *d.stack(d.frames("capture"), head=False)]
    return lines + (["torch.O"] if d.variant else [])


@recipe("capture-lora", "cuda_alloc cudagraph_capture lora cudagraph_unbudgeted,fragmentation,gmu_too_high_leaves_no_headroom", ["bare"], decide="weak weak", sure="medium")
def capture_lora(d):
    """Adapters double the graphs."""
    d.at("busy_warm", "capture", among=["0.11.2", "0.13.0", "0.15.1"])
    root = d.root
    frames = d.frames("busy_warm", "capture") + [(f"{root}/vllm/lora/punica_wrapper/punica_gpu.py", d.between(205, 230), "add_lora_linear", "buffer = torch.empty("), ]
    return d.stack(frames, d.torch_oom(112 * MIB, d.card("rtx5090"), private=int(1.9 * GIB), cached=int(0.7 * GIB)), d.log("ERROR", "worker_hit", "", d.worker(0)))


@recipe("capture-many-processes", "cuda_alloc cudagraph_capture spec_decode_extra fragmentation,cudagraph_unbudgeted", ["bare"], decide="weak weak", sure="medium")
def capture_many_processes(d):
    """Ranks of one engine hold contexts on the first card; graphs fill private pools."""
    return d.torch_oom(64 * MIB, d.card("a100-40"), others=[int(1.55 * GIB)] * 3, private=int(1.4 * GIB), free=51 * MIB, style="2.5", cached=int(1.1 * GIB))


@recipe("capture-retyped", "cuda_alloc cudagraph_capture cudagraph_unbudgeted gmu_too_high_leaves_no_headroom", ["words"], decide="no weak", sure="low")
def capture_retyped(d):
    """Lines without their time, retyped; the setting of the estimate is named in the sentence."""
    d.note(tried_mib="112.00 MiB", gpu_total_mib="22.02 GiB", free_mib="96.50 MiB", kv_available_mib="3.12 GiB", cudagraph_mib="0.51 GiB")
    return ["INFO  [gpu_worker.py:638]  Available KV cache memory: 3.12 GiB", "INFO  [kv_cache_utils.py]  GPU KV cache size: 98,304 tokens, Maximum concurrency for 65,536 tokens per request: 1.50x", "INFO  [model_runner.py]    Graph capturing finished in 2 secs, took 0.51 GiB",
            "Tried to allocate 112.00 MiB. GPU 0 has a total capacity of 22.02 GiB of which 96.50 MiB is free. ... If this problem persists, try setting VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0"]


@recipe("capture-hsa", "driver_nomem cudagraph_capture cudagraph_unbudgeted stale_process_or_leftover,gmu_too_high_leaves_no_headroom,spec_decode_extra", ["bare"], decide="no no", sure="medium")
def capture_hsa(d):
    """ROCm's runtime has nothing left."""
    return ["HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources. This error may also occur when the core runtime library needs to spawn threads or create internal OS-specific events. code: 0x1008", "Available Free mem : 0 MB"]


# ---- sampler warm-up

@recipe("sampler-raise", "cuda_alloc sampler_warmup gmu_too_high_leaves_no_headroom logits_peak,version_regression", ["bare", "words", "compose", "k8s", "bare", "bare"], decide="yes weak")
def sampler_raise(d):
    """vLLM's own sentence about the sampler or the pooler."""
    d.at("busy_warm", "sampler_raise", "sampler_warm")
    seqs = d.pick([128, 256, 512, 1024])
    what = "pooler (task=embed)" if d.variant == 4 else "sampler"
    error = f"RuntimeError: CUDA out of memory occurred when warming up {what} with {seqs} dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."
    if d.variant in (0, 1):
        return error
    streams = [worker_fail(d, ["busy_warm", "sampler_raise"], error, 1), worker_fail(d, ["busy_warm", "sampler_warm"], None, 0)]
    return interleave(d, *streams) if d.variant == 2 else cut(streams[0], 70) if d.variant == 5 else streams[0]


@recipe("sampler-topk", "cuda_alloc sampler_warmup logits_peak gmu_too_high_leaves_no_headroom,lora,version_regression", ["bare", "k8s+flat", "bare"], decide="yes weak")
def sampler_topk(d):
    """The sort of the dummy logits."""
    d.at("warm", "sampler_warm", "sample")
    before = [d.log("INFO", "captured", f"Graph capturing finished in {d.between(9, 60)} secs, took {d.real(0.3, 2.4)} GiB", d.core())]
    return core_fail(d, ["warm", "sampler_warm", "sample"], d.torch_oom(int(d.pick([0.29, 0.58, 1.16]) * GIB), d.card("rtx4090", "a10g", "rtx4080"), free=int(0.2 * GIB)), before=before if d.variant != 2 else (), skip=4)


@recipe("sampler-frames", "cuda_alloc sampler_warmup logits_peak gmu_too_high_leaves_no_headroom,runtime_workspace_unprofiled,version_regression,cudagraph_unbudgeted", ["bare", "bare", "bare"], evidence="frames_only", decide="weak weak", sure="medium")
def sampler_frames(d):
    """Graphs are captured, then the stack of the sampler's warm-up, cut."""
    d.at("busy_warm", "sampler_warm", "sample")
    lines = [d.log("INFO", "captured", f"Graph capturing finished in {d.between(9, 60)} secs, took 1.{d.between(10, 99)} GiB", d.worker(r)) for r in (2, 0, 1)]
    d.tick()
    lines += worker_fail(d, ["busy_warm", "sampler_warm"] + (["sample"] if d.variant else []), None, 1)
    return lines[:None if d.variant else -2]


@recipe("sampler-only-frames", "cuda_alloc sampler_warmup nccl_buffers logits_peak,version_regression", ["bare", "bare"], evidence="frames_only", decide="no no", sure="low")
def sampler_only_frames(d):
    """Frames of the sampler alone: start or serving, the text does not say."""
    d.at("sample")
    return [d.log("ERROR", "worker_hit", line, d.worker(1)) for line in d.stack(d.frames("sample"), head=False)]


@recipe("sampler-interleaved", "cuda_alloc sampler_warmup gmu_too_high_leaves_no_headroom logits_peak,version_regression", ["bare", "quote"], decide="weak weak", sure="medium")
def sampler_interleaved(d):
    """Sentences of two ranks, with as much free on each as the other."""
    d.at("busy_warm", among=["0.8.1", "0.9.0"])
    total = d.card("rtx4090")
    return [d.log("ERROR", "worker_hit", d.torch_oom(int(1.45 * GIB), total, free=d.between(560, 610) * MIB, gpu=r, named=True), d.worker(r)) for r in (1, 0)]


@recipe("sampler-nvml", "assertion sampler_warmup gmu_too_high_leaves_no_headroom logits_peak,cudagraph_unbudgeted,slice_total_mismatch", ["bare"], decide="no no")
def sampler_nvml(d):
    """The allocator's assertion with the sampler's frames above it."""
    d.at("busy_warm", "sampler_warm", "sample")
    return worker_fail(d, ["busy_warm", "sampler_warm", "sample"], 'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/CUDACachingAllocator.cpp":1165, please report a bug to PyTorch. ', 0)


@recipe("sampler-summary", "cuda_alloc sampler_warmup logits_peak runtime_workspace_unprofiled", ["bare"], evidence="frames_only", decide="weak weak")
def sampler_summary(d):
    """The summary of the start is the last line before the text ends."""
    d.at("cgprof", among=["0.20.1", "0.24.0"])
    total = d.card("h100")
    free, want, weights, peak, other, graphs = round(total - 1.5, 2), round(total * 0.92, 2), 7.61, 1.48, 0.33, 1.93
    d.note(startup_free_mib=round(free * 1024, 4), gpu_total_mib=round(total * 1024, 4), weights_mib=round(weights * 1024, 4), cudagraph_mib=round(graphs * 1024, 4))
    lines = [d.log("INFO", "captured", f"Graph capturing finished in 14 secs, took {graphs} GiB", d.worker(r)) for r in (1, 0)]
    return lines + [d.log("INFO", "available", f"Free memory on device ({free}/{total} GiB) on startup. Desired GPU memory utilization is (0.92, {want} GiB). Actual usage is {weights} GiB for weight, {peak} GiB for peak activation, {other} GiB for non-torch memory, and {graphs} GiB for "
                          f"CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory={int((want - weights - peak - other - graphs) * GIB)}` ({want - weights - peak - other - graphs:.2f} GiB) to fit into requested memory", d.worker(2))]
