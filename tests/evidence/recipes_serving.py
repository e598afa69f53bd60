"""Recipes of failures while serving, sleeping and in other programs, and of the host's memory. See recipes.py."""
import json

from recipes import core_fail, kv_lines, shutdown, stats, took, worker_fail
from render import ASYNC, GIB, MIB, cut, interleave, recipe

DEAD = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."


def api(d, text, site="async_llm.py:699"):
    return d.log("ERROR", site, text, f"(APIServer pid={d.pid - 40}) ")


# ---- prompts

@recipe("prefill", "cuda_alloc runtime_prefill activation_peak gmu_too_high_leaves_no_headroom,runtime_workspace_unprofiled,fragmentation", ["bare", "compose", "kubectl"], decide="yes weak")
def prefill(d):
    """A prompt's forward pass finds no room; the client hears that the engine is dead."""
    d.at("run", "exec", "llama_fwd")
    lines = stats(d, 2, f"(APIServer pid={d.pid - 40}) " if d.newer("0.10.1") else "")
    oom = d.torch_oom(int(d.pick([0.11, 0.44, 0.88]) * GIB), d.card("rtx4090", "a10g", "h100"), private=int(0.6 * GIB), free=40 * MIB)
    return lines + core_fail(d, ["run", "exec", "llama_fwd"], oom, site="fatal") + ([api(d, DEAD)] if d.newer("0.10.1") else [])


@recipe("prefill-experts", "cuda_alloc runtime_prefill runtime_workspace_unprofiled gmu_too_high_leaves_no_headroom,activation_peak,fragmentation", ["bare", "bare"], decide="weak weak")
def prefill_experts(d):
    """The buffers of the experts in a served batch, on one rank."""
    d.at("busy_exec", "exec", "moe_fwd")
    return worker_fail(d, ["busy_exec", "exec", "moe_fwd"], d.torch_oom(d.pick([50, 64, 384]) * MIB, d.card("rtx4090", "rtx4080"), free=16 * MIB, private=int(0.5 * GIB), cached=int(0.4 * GIB)), 1)


@recipe("prefill-attention", "cuda_alloc runtime_prefill runtime_workspace_unprofiled fragmentation,gmu_too_high_leaves_no_headroom", ["bare", "bare"], decide="yes weak")
def prefill_attention(d):
    """An attention backend copies the cached part of a long prompt."""
    d.at("run", among=["0.20.1", "0.24.0"])
    frames = [(f"{d.root}/vllm/v1/attention/backends/turboquant_attn.py", 691, "forward", "out = self._continuation_prefill("), (f"{d.root}/vllm/v1/attention/backends/turboquant_attn.py", 731, "_continuation_prefill", "k_full = torch.cat([k_cached_trim.to(qdtype), key_chunk], dim=0)")]
    return d.stack(frames, d.torch_oom(56 * MIB, d.card("rtx5090", "rtx4090"), free=5 * MIB, cached=int(0.6 * GIB)), d.log("ERROR", "fatal", "", d.core()), head=False)


@recipe("prefill-linear-frames", "cuda_alloc runtime_prefill runtime_workspace_unprofiled activation_peak", ["bare", "kubectl"], evidence="frames_only", decide="no no", sure="medium")
def prefill_linear_frames(d):
    """Frames of a linear-attention kernel, or of a dispatcher that could not make its output."""
    d.at("run", among=["0.20.1", "0.24.0"])
    root = d.root
    if d.variant:
        return d.stack([(f"{root}/torch/_ops.py", 1269, "__call__", "return self._op(*args, **kwargs)")], 'RuntimeError: torch_call_dispatcher( "aten::new_empty", "", stack.data(), ( ((0ULL + 2) << 56) | ((0ULL + 11) << 48))) API call failed at torch/csrc/stable/ops.h, line 231',
                       d.log("ERROR", "worker_hit", "", d.worker(3, "DP3_TP"))) + [d.log("ERROR", "dump", "Dumping input data for V1 LLM engine (v0.24.0) with config: model='/models/chat', speculative_config=None", d.core())]
    frames = [(f"{root}/vllm/model_executor/layers/fla/ops/chunk.py", 233, "chunk_gated_delta_rule", "o, final_state = ChunkGatedDeltaRuleFunction.apply("), (f"{root}/torch/autograd/function.py", 583, "apply", "return super().apply(*args, **kwargs)  # type: ignore[misc]")]
    return d.stack(frames, None, d.log("ERROR", "fatal", "", d.core()), head=False)


@recipe("prefill-compiled", "cuda_alloc runtime_prefill gmu_too_high_leaves_no_headroom runtime_workspace_unprofiled,activation_peak", ["bare"], decide="weak weak")
def prefill_compiled(d):
    """Compiled code in the served batch; the client's error comes before the core's process goes."""
    d.at("run", "exec", among=["0.20.1", "0.24.0", "0.27.1"])
    frames = d.frames("run", "exec") + [(f"{d.root}/vllm/compilation/decorators.py", 488, "__call__", "return self.aot_compiled_fn(self, *args, **kwargs)"), (f"{d.root}/torch/_dynamo/aot_compile.py", 231, "__call__", "return self.fn(*args, **kwargs)")]
    d.note(tried_mib="42.00 MiB", gpu_total_mib="23.54 GiB", free_mib="38.25 MiB")
    return d.stack(frames, None, d.log("ERROR", "fatal", "", d.core())) + ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 42.00 MiB. GPU 0 has a total capacity of 23.54 GiB of which 38.25 MiB is free", api(d, DEAD, "serving.py:1168"), d.core() + "Process EngineCore:"]


@recipe("prefill-bare", "cuda_alloc runtime_prefill gmu_too_high_leaves_no_headroom runtime_workspace_unprofiled,activation_peak,fragmentation,mm_encoder_peak,spec_decode_extra", ["words", "wrap", "bare"], decide="no weak", sure="medium")
def prefill_bare(d):
    """PyTorch's sentence of a serving engine alone: private pools hold its graphs."""
    d.torch = "2.8"
    text = d.torch_oom(d.pick([224, 512, 1900]) * MIB, d.card("h100", "rtx4090"), private=int(d.real(0.8, 2.6) * GIB), free=154 * MIB, cached=int(d.real(0.2, 2.4) * GIB), hint=d.variant == 1, named=d.variant == 0)
    return text.replace("Process " + text.split("Process ")[1].split(" ")[0], "Process ...") if d.variant == 0 else text


@recipe("prefill-images", "cuda_alloc runtime_prefill mm_encoder_peak fragmentation,gmu_too_high_leaves_no_headroom", ["bare", "compose"], decide="yes weak", sure="medium")
def prefill_images(d):
    """A real image goes through the tower while serving."""
    d.at("run", "exec_mm")
    return core_fail(d, ["run", "exec_mm"], d.torch_oom(int(d.pick([0.94, 1.9]) * GIB), d.card("a100-80", "rtx4090"), free=int(0.5 * GIB), private=int(0.7 * GIB), cached=int(1.3 * GIB)), site="fatal")


@recipe("prefill-images-frames", "cuda_alloc runtime_prefill mm_encoder_peak", ["rank"], evidence="frames_only", decide="no weak", sure="medium")
def prefill_images_frames(d):
    """The older engine's frames of the tower, without the caller above."""
    d.at("qwenvl", v0=True, among=["0.7.2", "0.8.1"])
    return d.stack(d.frames("qwenvl"), head=False)


@recipe("prefill-v0", "cuda_alloc runtime_prefill activation_peak gmu_too_high_leaves_no_headroom,runtime_workspace_unprofiled,fragmentation,profiling_accounting_bug,lora", ["bare", "compose", "k8s", "rank"], decide="weak weak")
def prefill_v0(d):
    """The older engine prints the exception's repr, then the stack of its loop."""
    d.at("loop", "exec", "llama_fwd", v0=True, among=["0.6.3", "0.7.2", "0.8.1"])
    oom = d.torch_oom(int(d.pick([0.5, 1.15, 1.3]) * GIB), d.card("rtx4080", "h100"), named=True, free=110 * MIB, private=int(0.3 * GIB), cached=int(0.5 * GIB), error=False)
    if d.variant == 3:
        return d.stack(d.frames("loop", "exec", "llama_fwd")[-4:], "torch.OutOfMemoryError: " + oom, head=False)
    lines = ["INFO:     10.0.0.7:41522 - \"POST /v1/completions HTTP/1.1\" 500 Internal Server Error"]
    if not d.newer("0.7.0"):
        name = f"/tmp/err_execute_model_input_{d.year()}{d.month:02}{d.day:02}-{d.clock().replace(':', '')}.pkl"
        lines += [d.log("INFO", "model_runner_base.py:149", f"Completed writing input of failed execution to {name}.")]
        oom = f"Error in model execution (input dumped to {name}): " + oom
    return lines + [d.log("ERROR", "v0_loop", f"OutOfMemoryError('{oom}')"), *d.trace("ERROR", "v0_loop", ["loop", "exec", "llama_fwd"])]


@recipe("prefill-v0-chat", "cuda_alloc runtime_prefill activation_peak gmu_too_high_leaves_no_headroom,lora", ["flat"], decide="weak weak", sure="medium")
def prefill_v0_chat(d):
    """The request's own error carries the original one inside; adapters are in the stack."""
    d.at("loop", "exec", "llama_fwd", "lora_fwd", v0=True, among=["0.8.1"])
    oom = d.torch_oom(116 * MIB, d.card("rtx4090"), free=90 * MIB, error=False, hint=False)
    return [d.log("ERROR", "serving_chat.py:662", f"vllm.engine.multiprocessing.MQEngineDeadError: Engine loop is not running. Inspect the stacktrace to find the original error: OutOfMemoryError('{oom}')."), *d.trace("ERROR", "v0_loop", ["llama_fwd", "lora_fwd"], head=False)]


@recipe("prefill-v0-frames", "cuda_alloc runtime_prefill gmu_too_high_leaves_no_headroom version_regression,activation_peak", ["bare"], evidence="frames_only", decide="weak no", sure="medium")
def prefill_v0_frames(d):
    """A worker's loop and the driver's layers, both without an end."""
    d.at("worker_loop", "llama_fwd", v0=True, among=["0.6.3", "0.7.2"])
    return d.trace("ERROR", "v0_worker", ["worker_loop"], None, d.v0worker(), head=False)[:4] + d.trace("ERROR", "v0_loop", ["llama_fwd"], head=False)[2:6]


@recipe("prefill-sglang", "cuda_alloc runtime_prefill activation_peak gmu_too_high_leaves_no_headroom,mm_encoder_peak", ["bare", "compose"], decide="yes weak", engine="sglang")
def prefill_sglang(d):
    """SGLang's batch of a prompt runs out."""
    d.at("loop", "fwd", engine="sglang")
    lines = [d.sglang(f"Prefill batch. #new-seq: 1, #new-token: {d.between(2000, 8192)}, #cached-token: 0, token usage: 0.{d.between(10, 90)}, #running-req: {d.between(1, 60)}, #queue-req: 0, "), d.sglang("Scheduler hit an exception: Traceback (most recent call last):")]
    return lines + d.stack(d.frames("loop", "fwd"), d.torch_oom(int(d.pick([0.4, 0.9]) * GIB), d.card("rtx4090", "h100"), free=int(0.2 * GIB)), head=False)


@recipe("prefill-sglang-frames", "cuda_alloc runtime_prefill mm_encoder_peak activation_peak", ["bare", "bare"], evidence="frames_only", decide="weak weak", sure="medium", engine="sglang")
def prefill_sglang_frames(d):
    """SGLang: a batch with an image, and the stack's start."""
    d.at("loop", "mm", engine="sglang")
    lines = [d.sglang(f"Decode batch. #running-req: 48, #token: {d.between(90000, 180000)}, token usage: 0.77, cuda graph: True, gen throughput (token/s): {d.real(500, 1200)}, #queue-req: 1"), d.sglang("Prefill batch. #new-seq: 1, #new-token: 2114, #cached-token: 0, token usage: 0.80, #running-req: 48, #queue-req: 0"),
             d.sglang("Scheduler hit an exception: Traceback (most recent call last):")]
    return (lines if d.variant else []) + d.stack(d.frames("loop", *(() if d.variant else ("mm",))), head=False)


@recipe("prefill-tgi", "cuda_alloc runtime_prefill runtime_workspace_unprofiled fragmentation,gmu_too_high_leaves_no_headroom,activation_peak", ["compose"], decide="yes weak", engine="tgi")
def prefill_tgi(d):
    """TGI's client names the method: prefill."""
    return f"{d.iso()[:-4]}Z ERROR batch{{batch_size=1}}:prefill:prefill{{id=3 size=1}}:prefill{{id=3 size=1}}: text_generation_client: router/client/src/lib.rs:33: Server error: {d.torch_oom(312 * MIB, d.card('a10g'), free=211 * MIB, style='2.1', error=False, named=True)}"


@recipe("prefill-ollama", "cuda_alloc runtime_prefill mm_encoder_peak profiling_accounting_bug", ["bare"], decide="yes weak", engine="llama.cpp")
def prefill_ollama(d):
    """A runner under Ollama: the prompt is loaded, the graph of an image does not fit."""
    count = d.between(900, 2400) * MIB + 131072
    d.note(tried_mib=round(count / MIB, 2))
    return [f"time={d.iso()[:-7]}Z level=DEBUG source=cache.go:141 msg=\"loading cache slot\" id=0 cache=31 prompt=1088 used=16 remaining=1072", f"ggml_backend_cuda_buffer_type_alloc_buffer: allocating {count / MIB:.2f} MiB on device 0: cudaMalloc failed: out of memory",
            f"ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size {count}", "SIGSEGV: segmentation violation", "PC=0x55b1a1 m=4 sigcode=1 addr=0x58"]


@recipe("prefill-mlx", "cuda_alloc runtime_prefill activation_peak", ["bare"], decide="weak weak", engine="mlx")
def prefill_mlx(d):
    """MLX asks for a buffer above Metal's limit."""
    return f"libc++abi: terminating due to uncaught exception of type std::runtime_error: [metal::malloc] Attempting to allocate {d.between(18, 29) * 1000003584} bytes which is greater than the maximum allowed buffer size of 17179869184 bytes."


@recipe("prefill-transformers", "cuda_alloc runtime_prefill mm_encoder_peak activation_peak", ["bare", "date", "bare"], decide="weak weak", sure="medium", engine="pytorch")
def prefill_transformers(d):
    """A vision model in Transformers: one prompt asks for a large part of the card, or for more than it has."""
    d.torch, root = "2.6", d.root
    total = d.card("rtx5090", "l40s")
    if d.variant == 0:
        return d.torch_oom(int(21.4 * GIB), total, free=int(17.3 * GIB))
    frames = [(f"{root}/transformers/generation/utils.py", 2223, "generate", "result = self._sample("), (f"{root}/transformers/generation/utils.py", 3211, "_sample", "outputs = self(**model_inputs, return_dict=True)"),
              (f"{root}/transformers/models/qwen2_vl/modeling_qwen2_vl.py", 1704, "forward", "image_embeds = self.visual(pixel_values, grid_thw=image_grid_thw)"), (f"{root}/transformers/models/qwen2_vl/modeling_qwen2_vl.py", 438, "forward", "attn_output = F.scaled_dot_product_attention(q, k, v, attention_mask, dropout_p=0.0)")]
    if d.variant == 1:
        return [f"engine.api 1 ERROR    Model actor is out of memory, model id: qwen2.5-vl, error: {d.torch_oom(int(6.2 * GIB), total, free=int(0.4 * GIB), error=False)}", "engine.backends.core: Remote server 0.0.0.0:38117 closed: 0 bytes read on a total of 11 expected bytes"]
    d.note(tried_mib="34.50 GiB")
    return ["Exception in thread Thread-2 (generate):", *d.stack(frames, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 34.50 GiB.")]


@recipe("prefill-npu", "cuda_alloc runtime_prefill gmu_too_high_leaves_no_headroom fragmentation", ["bare"], decide="no weak", sure="medium", engine="sglang")
def prefill_npu(d):
    """An NPU while serving: more is reserved than allocated."""
    d.torch, root = "2.6", d.root
    return d.stack([(f"{root}/torch/_ops.py", 1158, "__call__", "return self._op(*args, **(kwargs or {}))")], d.torch_oom(64 * MIB, 61.27, device="NPU", free=6 * MIB, cached=int(2.4 * GIB)), head=False)


@recipe("prefill-xpu", "cuda_alloc runtime_prefill runtime_workspace_unprofiled activation_peak,gmu_too_high_leaves_no_headroom", ["html"], decide="weak weak", sure="medium")
def prefill_xpu(d):
    """A page keeps the class, the kernel and rounded figures."""
    return ["torch.OutOfMemoryError", "vllm/v1/attention/backends/flash_attn.py", "flash_attn_varlen_func", "Tried to allocate ~112 MiB", "GPU total ~30.3 GiB", "only ~61 MiB free"]


@recipe("prefill-driver", "driver_nomem runtime_prefill unified_memory_accounting host_ram", ["words"], decide="weak weak", sure="medium")
def prefill_driver(d):
    """The driver of a machine with unified memory while a prompt is served."""
    return [f"[{d.real(9000, 99999, 6)}] NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1353"]


# ---- logits

@recipe("logits", "cuda_alloc runtime_sampler logits_peak runtime_workspace_unprofiled,cudagraph_unbudgeted,fragmentation,gmu_too_high_leaves_no_headroom", ["bare", "compose"], decide="yes weak")
def logits(d):
    """Serving goes on for a while, then the sort of the logits has no room."""
    d.at("busy_exec", "exec_sample", "sample")
    return kv_lines(d) + stats(d, 3) + worker_fail(d, ["busy_exec", "exec_sample", "sample"], d.torch_oom(d.pick([38, 74, 298]) * MIB, d.card("rtx4090", "a10g"), private=int(1.6 * GIB), free=30 * MIB, cached=int(0.8 * GIB)), 3)


@recipe("logprobs", "cuda_alloc runtime_sampler logits_peak", ["bare", "bare"], decide="yes yes")
def logprobs(d):
    """Log probabilities of a whole prompt."""
    if d.variant:
        return ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ...", '  File ".../vllm/v1/sample/sampler.py", line ..., in compute_logprobs', "    return logits.log_softmax(dim=-1, dtype=torch.float32)"]
    d.at("busy_exec", "prompt_lp")
    return worker_fail(d, ["busy_exec", "prompt_lp"], d.torch_oom(int(4.6 * GIB), d.card("h100"), free=int(3.9 * GIB)), 0)


@recipe("logprobs-frames", "cuda_alloc runtime_sampler logits_peak", ["bare"], evidence="frames_only", decide="yes weak")
def logprobs_frames(d):
    """The same, cut, and once more in a single line."""
    d.at("busy_exec", "prompt_lp")
    lines = d.stack(d.frames("prompt_lp"), head=False)
    return lines + ["", "Traceback (most recent call last): " + " ".join(line.strip() for line in d.stack(d.frames("busy_exec", "prompt_lp"), head=False))[:400]]


@recipe("logprobs-v0", "cuda_alloc runtime_sampler logits_peak runtime_workspace_unprofiled", ["rank", "bare"], decide="yes yes")
def logprobs_v0(d):
    """The older engine's sampler."""
    chain = ["sampler_lp", "sampler"][d.variant]
    d.at(chain, v0=True, among=["0.6.3", "0.7.2", "0.8.1"])
    return d.stack(d.frames(chain), d.torch_oom(int(d.pick([2.2, 5.9]) * GIB), d.card("h100", "l40s"), free=int(1.8 * GIB)), head=False)


@recipe("logprobs-v0-frames", "cuda_alloc runtime_sampler logits_peak runtime_workspace_unprofiled", ["bare", "bare"], evidence="frames_only", decide="no no", sure="medium")
def logprobs_v0_frames(d):
    """A bar of prompts and the engine's step, cut far above the sampler."""
    d.at("llm_generate", "aloop", v0=True, among=["0.4.2"])
    if d.variant:
        return d.trace("ERROR", "v0_bg", ["aloop"], None)[:-2]
    return ["Processed prompts:   0%|          | 0/12 [00:00<?, ?it/s, est. speed input: 0.00 toks/s, output: 0.00 toks/s]Traceback (most recent call last):", *d.stack([("/work/eval/score.py", 71, "score", "outputs = llm.generate(prompts, SamplingParams(prompt_logprobs=1, max_tokens=1))"), *d.frames("llm_generate")[:1]], head=False)]


@recipe("penalties", "cuda_alloc runtime_sampler logits_peak runtime_workspace_unprofiled,gmu_too_high_leaves_no_headroom", ["k8s", "bare"], decide="yes weak")
def penalties(d):
    """The counts of the penalties are as wide as the vocabulary."""
    if d.variant == 0:
        d.at("loop", "sampler_pen", v0=True, among=["0.7.2", "0.8.1"])
        oom = d.torch_oom(int(5.8 * GIB), d.card("a100-80"), free=int(1.4 * GIB), named=True, error=False)
        return [d.log("CRITICAL", "launcher.py:101", "MQLLMEngine is already dead, terminating server process"), d.log("ERROR", "v0_loop", f"OutOfMemoryError('{oom}')"), *d.trace("ERROR", "v0_loop", ["loop", "sampler_pen"])]
    d.at("busy_exec", "exec_sample", "penalties")
    return worker_fail(d, ["busy_exec", "exec_sample", "penalties"], d.torch_oom(int(1.2 * GIB), d.card("h100"), free=int(0.9 * GIB)), 0)


@recipe("sampler-sglang-frames", "cuda_alloc runtime_sampler logits_peak gmu_too_high_leaves_no_headroom", ["bare"], evidence="frames_only", decide="weak no", engine="sglang")
def sampler_sglang_frames(d):
    """SGLang's sampler, cut."""
    d.at("loop", "sample", engine="sglang")
    return cut(["Exception in scheduler:", *d.stack(d.frames("loop")[:3] + d.frames("sample"))], 25)


@recipe("sampler-sglang", "cuda_alloc runtime_sampler logits_peak gmu_too_high_leaves_no_headroom", ["bare"], decide="yes weak", engine="sglang")
def sampler_sglang(d):
    """The same with PyTorch's sentence."""
    d.at("loop", "sample", engine="sglang")
    return [d.sglang("Scheduler hit an exception: Traceback (most recent call last):"), *d.stack(d.frames("loop")[:3] + d.frames("sample"), d.torch_oom(int(0.6 * GIB), d.card("h100"), free=int(0.3 * GIB)), head=False)]


# ---- serving, elsewhere

@recipe("serving-fatal", "cuda_alloc runtime_other gmu_too_high_leaves_no_headroom activation_peak,runtime_workspace_unprofiled,spec_decode_extra,fragmentation,version_regression,profiling_accounting_bug", ["bare", "compose", "bare", "bare"], decide="weak weak", sure="medium")
def serving_fatal(d):
    """A served batch runs out; the text does not say in which part of it."""
    d.at("run", "busy_exec", "exec")
    oom = d.torch_oom(d.pick([46, 138, 2200]) * MIB, d.card("h100", "rtx4080"), private=int(1.1 * GIB), free=14 * MIB, cached=int(d.real(0.3, 1.5) * GIB))
    if d.variant == 0:
        plain = oom.split(": ", 1)[1]
        return [d.log("ERROR", "fatal", f"RuntimeError: Worker failed with error '{plain}', please check the stack trace above for the root cause", d.core()), d.log("ERROR", "worker_died", "Worker proc VllmWorker-1 died unexpectedly (exit code: None), shutting down executor.", d.core())]
    if d.variant == 1:
        return core_fail(d, ["run"], oom, site="fatal")
    if d.variant == 2:
        return interleave(d, worker_fail(d, ["busy_exec", "exec"], oom, 0), worker_fail(d, ["busy_exec", "exec"], None, 1))
    d.numbers = {"tried_mib": d.numbers["tried_mib"], "free_mib": 40.25}
    return f"{oom[:oom.index('GPU 0')]}GPU 0 ... 40.25 MiB is free"


@recipe("serving-frames", "cuda_alloc runtime_other activation_peak gmu_too_high_leaves_no_headroom,runtime_workspace_unprofiled,insufficient_info", ["bare", "bare", "blank"], evidence="frames_only", decide="no no", sure="low")
def serving_frames(d):
    """The loop of the engine, cut before anything that allocates."""
    if d.variant == 0:
        d.at("run")
        return core_fail(d, ["run"], None, site="fatal")[1:9]
    if d.variant == 1:
        d.at("busy_exec", "exec", "mla_fwd", among=["0.20.1", "0.24.0"])
        return worker_fail(d, ["busy_exec", "exec", "mla_fwd"], None, 0, kind="DP")[3:] + ["[ ...... ]", "", d.log("ERROR", "dump_input.py:81", "Dumping scheduler stats: SchedulerStats(num_running_reqs=611, num_waiting_reqs=0, step_counter=0, current_wave=0, kv_cache_usage=0.3914)", d.core())]
    d.at("aloop", v0=True, among=["0.4.2"])
    return d.trace("ERROR", "v0_bg", ["aloop"], None)[:6]


@recipe("serving-v0", "cuda_alloc runtime_other gmu_too_high_leaves_no_headroom activation_peak,runtime_workspace_unprofiled,fragmentation", ["bare", "bare", "bare"], decide="yes weak", sure="medium")
def serving_v0(d):
    """The older engine's loop with the sentence, its repr, or no figure at all."""
    if d.variant == 0:
        d.at("aloop", v0=True, among=["0.4.2"])
        return d.stack(d.frames("aloop"), "torch.cuda.OutOfMemoryError: CUDA out of memory", head=False)
    d.at("loop", v0=True, among=["0.6.3", "0.7.2"])
    oom = d.torch_oom(d.pick([118, 296]) * MIB, d.card("rtx4090", "h100"), free=9 * MIB, private=int(0.4 * GIB), cached=int(0.6 * GIB), error=False)
    if d.variant == 1:
        return [d.log("ERROR", "v0_loop", f"OutOfMemoryError('{oom}')"), *d.trace("ERROR", "v0_loop", ["loop"])[:5]]
    place = "async_llm_engine.py:68"
    return [d.log("ERROR", place, "torch.OutOfMemoryError: " + oom), f"Exception in callback _log_task_completion(error_callback=<bound method...{d.hexa(12)}>>)(<Task finishe...-variables)')>) at {d.root}/vllm/engine/async_llm_engine.py:48", "Traceback (most recent call last):"]


@recipe("serving-v0-frames", "cuda_alloc runtime_other gmu_too_high_leaves_no_headroom activation_peak,runtime_workspace_unprofiled,slice_total_mismatch", ["bare", "bare"], evidence="frames_only", decide="no no", sure="medium")
def serving_v0_frames(d):
    """A request ends in 500 and the worker's loop fails; nothing says why."""
    d.at("worker_loop", v0=True, among=["0.7.2"])
    request = f"chatcmpl-{d.hexa(32)}"
    lines = [d.log("INFO", "engine.py:275", f"Added request {request}."), "INFO:     10.0.0.7:52114 - \"POST /v1/chat/completions HTTP/1.1\" 500 Internal Server Error", d.log("CRITICAL", "launcher.py:101", "MQLLMEngine is already dead, terminating server process")]
    if d.variant:
        return d.stack([(f"{d.root}/vllm/engine/async_llm_engine.py", 1029, "generate", "async for output in await self.add_request("), (f"{d.root}/vllm/engine/async_llm_engine.py", 113, "generator", "raise result"), (f"{d.root}/uvicorn/protocols/http/httptools_impl.py", 409, "run_asgi", "result = await app(  # type: ignore[func-returns-value]")], head=False)
    return lines + [d.log("ERROR", "v0_worker", "Exception in worker VllmWorkerProcess while processing method start_worker_execution_loop.", d.v0worker()), *d.trace("ERROR", "v0_worker", ["worker_loop"], None, d.v0worker())[:3]]


@recipe("serving-nvml", "assertion runtime_other gmu_too_high_leaves_no_headroom activation_peak,slice_total_mismatch", ["bare"], decide="weak no", sure="low")
def serving_nvml(d):
    """The allocator's assertion in the loop of an older engine that serves."""
    d.at("exec", v0=True, among=["0.6.3"])
    return [d.log("INFO", "v0_stats", "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 71.3 tokens/s, Running: 4 reqs, Swapped: 0 reqs, Pending: 2 reqs, GPU KV cache usage: 88.1%, CPU KV cache usage: 0.0%."), d.log("ERROR", "v0_bg", "Engine background task failed"),
            *d.trace("ERROR", "v0_bg", ["exec"])[:3], 'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":844, please report a bug to PyTorch. ']


@recipe("serving-triton", "cuda_error runtime_other gmu_too_high_leaves_no_headroom runtime_workspace_unprofiled", ["compose"], decide="weak weak", sure="medium")
def serving_triton(d):
    """A kernel's module cannot be loaded on the full card."""
    d.at("busy_exec", "exec")
    return [d.log("ERROR", "worker_hit", "RuntimeError: Triton Error [CUDA]: out of memory", d.worker(2, "DP")), *d.trace("ERROR", "worker_hit", ["busy_exec", "exec"], None, d.worker(2, "DP"))]


@recipe("serving-swap", "cpu_swap runtime_other context_too_long_for_kv host_ram", ["actor"], decide="weak weak", sure="medium")
def serving_swap(d):
    """The older engine must swap a sequence out and has no room in host memory."""
    d.at("llm_generate", v0=True, among=["0.6.3"])
    return d.stack([("/work/rollout/vllm_rollout.py", 198, "generate_sequences", "output = self.inference_engine.generate("), *d.frames("llm_generate")], "RuntimeError: Aborted due to the lack of CPU swap space. Please increase the swap space to avoid this error.")


@recipe("serving-others", "cuda_alloc runtime_other other_process_holds_memory mm_encoder_peak,activation_peak,memory_leak,fragmentation,weights_exceed_gpu", ["date", "bare", "bare", "words"], decide="weak yes", sure="medium")
def serving_others(d):
    """The list of processes shows neighbours that hold most of the card."""
    d.torch = "2.8"
    total = d.card("h200", "rtx4090", "a100-80", "rtx4070")
    others = [int(total * GIB * share) for share in ([0.62, 0.2], [0.08] * 6, [0.31, 0.3], [0.41, 0.05])[d.variant]]
    text = d.torch_oom([3400, 34, 2900, 26][d.variant] * MIB, total, others=others, free=[int(2.9 * GIB), 21 * MIB, int(1.2 * GIB), 11 * MIB][d.variant], error=d.variant != 0, named=d.variant == 1)
    return "Error in request: " + text if d.variant == 0 else text


@recipe("decode-sglang", "config_refusal runtime_other profiling_accounting_bug fragmentation,context_too_long_for_kv", ["bare", "bare"], decide="yes weak", sure="medium", engine="sglang")
def decode_sglang(d):
    """SGLang has tokens left and cannot hand them out page by page."""
    d.at("decode_oom", engine="sglang", among=["0.4.6", "0.5.1"])
    want, left = d.between(90, 200), d.pick([1536, 2560, 3072])
    text = f"Decode out of memory. Try to lower your batch size.\nTry to allocate {want} tokens.\n"
    if d.variant:
        return [d.sglang(f"Prefill batch. #new-seq: 1, #new-token: 1024, #cached-token: 0, token usage: 0.97, #running-req: {d.between(90, 170)}, #queue-req: 61, ", ""), d.sglang(text + f"Available tokens: {left} (available_size={left} + evictable_size=0)\n", ""), *d.stack(d.frames("decode_oom"))[:5]]
    return d.stack(d.frames("decode_oom"), "RuntimeError: " + text + f"Avaliable tokens: {left}\nself.token_to_kv_pool_allocator.available_size()={left}\nself.tree_cache.evictable_size()=0")


@recipe("verify-sglang-frames", "config_refusal runtime_other spec_decode_extra profiling_accounting_bug", ["bare"], evidence="frames_only", decide="weak weak", sure="medium", engine="sglang")
def verify_sglang_frames(d):
    """The verification of drafted tokens asks for slots; cut."""
    d.at("spec_verify", engine="sglang", among=["0.4.6", "0.5.1", "0.5.6"])
    return d.stack(d.frames("spec_verify"), head=False)


@recipe("hami-limit", "slice_limit runtime_other slice_total_mismatch memory_leak", ["bare", "bare", "bare"], decide="no weak", engine="pytorch")
def hami_limit(d):
    """The library of a slice refuses: what would be used against its limit, in bytes."""
    limit = d.between(3, 30) * 1024 * MIB
    use = 18446744073709551616 - d.between(900000, 2000000) if d.variant == 0 else limit + d.between(10, 900) * MIB
    d.note(slice_would_use_bytes=use, slice_limit_bytes=limit)
    pid = d.between(1, 60)
    line = f"[HAMI-core ERROR (pid:{pid} thread=1398{d.between(10000000000, 99999999999)} allocator.c:{d.pick([53, 56])})]: Device 0 OOM {use} / {limit}"
    if d.variant == 0:
        return [line, 'DriverError(CUDA_ERROR_UNKNOWN, "unknown error")']
    if d.variant == 1:
        return line
    return [f"[HAMI-core Msg({pid}:1398{d.between(10000000, 99999999)}:libvgpu.c:855)]: Initialized", line, *d.stack([("/work/train.py", 44, "step", "loss.backward()"), (f"{d.root}/torch/_tensor.py", 648, "backward", "torch.autograd.backward(")], "RuntimeError: CUDA error: unrecognized error code")]


@recipe("hami-driver", "slice_limit runtime_other insufficient_info slice_total_mismatch", ["bare"], decide="no weak", sure="medium", engine="pytorch")
def hami_driver(d):
    """The driver's answer alone: result 2."""
    return f"[HAMI-core ERROR (pid:{d.between(2, 60)} thread=1402{d.between(10000000000, 99999999999)} allocator.c:118)]: cuMemoryAllocate failed res=2"


@recipe("train-fragments", "cuda_alloc runtime_other fragmentation activation_peak", ["bare", "bare"], decide="weak yes", sure="medium", engine="pytorch")
def train_fragments(d):
    """Nearly as much is reserved and not allocated as was asked for."""
    d.torch = "2.2"
    return d.torch_oom(int(1.6 * GIB), d.card("rtx4070", "rtx4090"), free=0 if d.variant == 0 else int(0.8 * GIB), cached=int(2.7 * GIB), style="2.1" if d.variant == 0 else "2.4")


@recipe("train-step", "cuda_alloc runtime_other activation_peak logits_peak,other_process_holds_memory,sleep_wake_competitor,fragmentation,weights_exceed_gpu", ["bare", "rank", "bare", "app"], decide="weak weak", sure="medium", engine="pytorch")
def train_step(d):
    """A training step: forward or backward."""
    d.torch, root = ["2.3", "2.8", "2.6", "2.4"][d.variant], d.root
    frames = [("/work/train/run.py", 88, "main", "trainer.train()"), (f"{root}/transformers/trainer.py", 2241, "train", "return inner_training_loop("), (f"{root}/transformers/trainer.py", 2548, "_inner_training_loop", "tr_loss_step = self.training_step(model, inputs, num_items_in_batch)"),
              (f"{root}/transformers/trainer.py", 3749, "training_step", "self.accelerator.backward(loss, **kwargs)"), (f"{root}/accelerate/accelerator.py", 2241, "backward", "loss.backward(**kwargs)"), (f"{root}/torch/_tensor.py", 626, "backward", "torch.autograd.backward("),
              (f"{root}/torch/autograd/graph.py", 823, "_engine_run_backward", "return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass")]
    device = "HIP" if d.variant == 3 else "CUDA"
    return d.stack(frames, d.torch_oom(int(d.pick([0.12, 0.9, 2.4]) * GIB), d.card("rtx4090", "a100-40", "h100"), free=int(0.09 * GIB), device=device))


@recipe("train-logits", "cuda_alloc runtime_other logits_peak activation_peak", ["bare", "reversed"], decide="weak yes", sure="medium", engine="pytorch")
def train_logits(d):
    """Log probabilities over the whole vocabulary in a trainer, once with the newest line on top, once in a notebook."""
    d.torch = "2.8"
    if d.variant:
        frames = [("/work/train/ppo_utils.py", 640, "calculate_log_probs_and_entropy", "log_prob = compute_log_probs(logits.clone(), tokens, tp_group)")]
        return d.stack(frames, d.torch_oom(int(41.7 * GIB), d.card("h200"), free=int(36.9 * GIB), others=[int(3.1 * GIB)]), head=False)
    oom = d.torch_oom(int(7.3 * GIB), d.card("t4"), free=int(3.6 * GIB), named=True)
    return ["---------------------------------------------------------------------------", "OutOfMemoryError                          Traceback (most recent call last)", "Cell In[9], line 1", "----> 1 trainer.train()", "", f"File {d.root}/accelerate/utils/operations.py:775, in _convert_to_fp32(tensor)", "    774     def _convert_to_fp32(tensor):",
            "--> 775         return tensor.float()", "", "OutOf" + oom.split("torch.OutOf")[1]]


@recipe("train-oversubscribed", "cuda_alloc runtime_other activation_peak", ["bare"], decide="weak weak", sure="medium", engine="pytorch")
def train_oversubscribed(d):
    """A Windows driver has lent host memory: more is allocated than the card has."""
    d.note(tried_mib="9.41 GiB", gpu_total_mib="12.00 GiB", torch_allocated_mib="21.80 GiB", free_mib="0 bytes", reserved_total_mib="23.02 GiB")
    return "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.41 GiB (GPU 0; 12.00 GiB total capacity; 21.80 GiB already allocated; 0 bytes free; 23.02 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"


@recipe("train-old", "cuda_alloc runtime_other other_process_holds_memory", ["bare"], decide="no yes", sure="medium", engine="pytorch")
def train_old(d):
    """PyTorch 1: under a tenth of the card is allocated, and nothing is free."""
    text = d.torch_oom(34 * MIB, 11.17, free=9 * MIB, others=[int(9.4 * GIB)], style="1", cached=16 * MIB, hint=False)
    d.numbers.pop("other_processes_mib", None)
    return text


@recipe("train-refused", "cuda_alloc runtime_other insufficient_info driver_or_env_mismatch,unified_memory_accounting", ["bare", "bare"], decide="weak no", sure="low", engine="pytorch")
def train_refused(d):
    """Nothing is allocated, far more is free than was asked, and the allocation fails all the same."""
    if d.variant:
        d.note(tried_mib="6.00 GiB", gpu_total_mib="15.56 GiB")
        return [">>> import torch", ">>> x = torch.empty([1536, 1024, 1024]).to('xpu')", "Traceback (most recent call last):", '  File "<stdin>", line 1, in <module>',
                "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 15.56 GiB. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. Please use `empty_cache` to release all unoccupied cached memory."]
    d.note(tried_mib="14.25 MiB", gpu_total_mib="11.17 GiB", torch_allocated_mib="6.02 MiB", free_mib="10.31 GiB")
    return "RuntimeError: CUDA out of memory. Tried to allocate 14.25 MiB (GPU 0; 11.17 GiB total capacity; 6.02 MiB already allocated; 10.31 GiB free; 3.98 MiB cached)"


@recipe("train-unified", "cuda_alloc runtime_other unified_memory_accounting", ["bare"], decide="weak yes", engine="pytorch")
def train_unified(d):
    """An integrated GPU: PyTorch's total is a sixth of what the kernel's driver set aside."""
    d.note(tried_mib="20.00 GiB", gpu_total_mib="15.49 GiB", free_mib="15.31 GiB")
    return ["torch.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 15.49 GiB of which 15.31 GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.",
            "[    5.118822] amdgpu 0000:c4:00.0: amdgpu: VRAM: 98304M 0x0000008000000000 - 0x00000097FFFFFFFF (98304M used)", "[    5.118931] [drm] Detected VRAM RAM=98304M, BAR=98304M"]


@recipe("notebook-error", "cuda_error runtime_other host_ram insufficient_info", ["bare"], decide="weak no", sure="low", engine="pytorch")
def notebook_error(d):
    """A notebook's cell as JSON, with the bare CUDA error."""
    return ["{", '\t"name": "RuntimeError",', '\t"message": "CUDA error: out of memory', *ASYNC.strip().split("\n"), '",', '\t"stack": "---------------------------------------------------------------------------', "RuntimeError                              Traceback (most recent call last)", "Cell In[6], line 3", "----> 3 stats = trainer.train()"]


@recipe("offload-error", "cuda_error runtime_other host_ram insufficient_info", ["subprocess"], decide="weak no", sure="low", engine="pytorch")
def offload_error(d):
    """A video program moves blocks between host and card; the bare CUDA error."""
    return ["│ C:\\video\\modules\\offloading.py:111 in to_device                 │", "│ > 111 │   │   module.weight.data = module.weight.data.to(device, non_blocking=True) │", "└" + "─" * 40 + "┘", "RuntimeError: CUDA error: out of memory", "CUDA kernel errors might be asynchronously reported at some other API call, so", "the stacktrace below might be incorrect."]


@recipe("cublas", "cublas runtime_other other_process_holds_memory gmu_too_high_leaves_no_headroom,insufficient_info", ["bare", "compose"], decide="no no", sure="medium", engine="pytorch")
def cublas(d):
    """cuBLAS cannot make its workspace."""
    return d.stack([(f"{d.root}/torch/nn/modules/linear.py", 125, "forward", "return F.linear(input, self.weight, self.bias)")], "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", head=False)


@recipe("cublas-bare", "cublas unknown gmu_too_high_leaves_no_headroom insufficient_info", ["bare"], decide="no no", sure="low")
def cublas_bare(d):
    """The same sentence alone."""
    return "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"


@recipe("json-error", "cuda_alloc runtime_other activation_peak memory_leak,context_too_long_for_kv", ["bare"], decide="yes no", sure="medium", engine="pytorch")
def json_error(d):
    """A worker's answer to a request."""
    text = d.torch_oom(58 * MIB, d.card("rtx5090"), free=19 * MIB, style="2.0", error=False)
    return json.dumps({"object": "error", "message": f"The worker could not answer.\n\n({text})", "code": 50002})


@recipe("device-dram", "device_alloc runtime_other activation_peak", ["bare"], decide="no no", sure="medium", engine="tt-xla")
def device_dram(d):
    """An accelerator's banks are too small for one buffer."""
    bank = d.between(5, 9) * 100000032
    return f"{d.stamp()}.{d.between(100, 999)} | critical |      Out of Memory: Not enough space to allocate {bank * 12} B DRAM buffer across 12 banks, where each bank needs to store {bank} B, but bank size is only 1073741792 B (assert.hpp:107)"


@recipe("trt-malloc-kv", "cuda_error kv_alloc insufficient_info gmu_too_high_leaves_no_headroom,activation_peak", ["wrap"], decide="weak no", sure="low", engine="tensorrt-llm")
def trt_malloc_kv(d):
    """TensorRT-LLM behind Triton: the instance cannot make its buffers."""
    return ["[TensorRT-LLM][INFO] [MemUsageChange] TensorRT-managed allocation in IExecutionContext creation: CPU +0, GPU +0, now: CPU 0, GPU 14102 (MiB)", f"E{d.month:02}{d.day:02} {d.clock()}.{d.between(100000, 999999)} 4121 backend_model.cc:634] ERROR: Failed to create instance: unexpected error when creating modelInstanceState: [TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, mCudaStream->get()): out of memory (/app/tensorrt_llm/cpp/tensorrt_llm/runtime/tllmBuffers.h:117)"]


@recipe("trt-malloc", "cuda_error runtime_other insufficient_info activation_peak,other_process_holds_memory,weights_exceed_gpu,slice_total_mismatch", ["bare", "bare"], decide="weak no", sure="low", engine="tensorrt-llm")
def trt_malloc(d):
    """TensorRT-LLM's and TensorRT's own allocators."""
    if d.variant == 0:
        return d.torch_oom(2 * MIB, d.card("a10g"), free=1 * MIB, others=[int(21.4 * GIB)], style="2.4")
    return ['I0811 09:12:44.100211 88 logging.cc:46] "[MemUsageChange] TensorRT-managed allocation in IExecutionContext creation: CPU +0, GPU +688, now: CPU 0, GPU 3902 (MiB)"', 'E0811 09:12:44.219901 88 logging.cc:40] "[defaultAllocator.cpp::allocateAsync::48] Error Code 1: Cuda Runtime (out of memory)"', f'W0811 09:12:44.219934 88 logging.cc:43] "Requested amount of GPU memory ({d.between(15, 22)}649242112 bytes) could not be allocated. There may not be enough free memory for allocation to succeed."']


@recipe("trt-malloc-bare", "cuda_error unknown activation_peak insufficient_info", ["bare"], decide="weak no", sure="medium", engine="tensorrt-llm")
def trt_malloc_bare(d):
    """The same with addresses below it."""
    return ["[TensorRT-LLM][ERROR] [TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, mCudaStream->get()): out of memory (/src/tensorrt_llm/cpp/tensorrt_llm/runtime/tllmBuffers.h:117)", f"1       0x55{d.hexa(10)} void tensorrt_llm::common::check<cudaError>(cudaError, char const*, char const*, int) + 147", f"2       0x7f{d.hexa(10)} tensorrt_llm::runtime::BufferManager::gpu(unsigned long, nvinfer1::DataType) const + 230"]


# ---- nothing says where

@recipe("unknown-npu", "cuda_alloc unknown gmu_too_high_leaves_no_headroom cudagraph_unbudgeted,insufficient_info,weights_exceed_gpu", ["bare", "bare"], decide="no no", sure="medium", engine="vllm-ascend")
def unknown_npu(d):
    """An NPU's sentence alone, once cut."""
    text = d.torch_oom(d.pick([52, 1900]) * MIB, 60.96, device="NPU", free=41 * MIB, cached=int(2.6 * GIB))
    if d.variant == 0:
        return text
    d.numbers = {k: v for k, v in d.numbers.items() if k in ("tried_mib", "gpu_total_mib", "torch_allocated_mib")}
    return text[:text.index(" current active") - 10]


@recipe("unknown-cut", "cuda_alloc unknown insufficient_info gmu_too_high_leaves_no_headroom,context_too_long_for_kv,weights_exceed_gpu", ["bare", "bare"], decide="no no", sure="low", engine="vllm")
def unknown_cut(d):
    """A title: the sentence ends in its middle, or nothing is beside it."""
    d.torch = "2.5"
    text = d.torch_oom(192 * MIB, d.card("rtx4070"), free=141 * MIB)
    if d.variant:
        return text
    d.numbers = {k: v for k, v in d.numbers.items() if k in ("tried_mib", "gpu_total_mib", "free_mib")}
    return text[:text.index("this process has") + 20]


@recipe("unknown-hip", "cuda_alloc unknown other_process_holds_memory stale_process_or_leftover", ["words"], decide="weak weak", sure="medium")
def unknown_hip(d):
    """PyTorch's sentence of a ROCm test, then the start of an engine's stack."""
    text = d.torch_oom(int(4.2 * GIB), 63.98, free=int(2.7 * GIB), device="HIP", style="2.1", others=[9 * GIB])
    d.numbers.pop("other_processes_mib", None)
    text = text[:text.index("Process ")] + text[text.index("Of the allocated"):]
    d.at("load", v0=True, among=["0.4.2"])
    return [text, *d.stack([("/usr/lib/python3.9/runpy.py", 197, "_run_module_as_main", "return _run_code(code, main_globals, None,"), (f"{d.root}/vllm/entrypoints/api_server.py", 111, "<module>", "engine = AsyncLLMEngine.from_engine_args(")])]


@recipe("unknown-pytest", "cuda_alloc unknown stale_process_or_leftover spec_decode_extra,weights_exceed_gpu", ["ci"], decide="no weak", sure="low")
def unknown_pytest(d):
    """The short summary of a test run: the class of the error behind a test's name."""
    name = f"FAILED tests/spec_decode/e2e/test_eagle.py::test_greedy[1-1-64-kwargs{d.below(4)}]"
    return [f"{name} - torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 992.00 MiB. GPU 0 has a total capacity of 22.02 GiB of which 301.50 MiB is free.", "FAILED tests/spec_decode/e2e/test_ea"]


@recipe("unknown-warnings", "cuda_alloc unknown insufficient_info activation_peak,runtime_workspace_unprofiled", ["blank"], decide="no no", sure="low")
def unknown_warnings(d):
    """PyTorch's warnings of four ranks, and nothing else."""
    count, free, total = d.between(18, 30) * GIB, d.between(9, 16) * GIB, 191503007744
    d.note(tried_mib=count / MIB, free_mib=free / MIB, gpu_total_mib=round(total / MIB, 4))
    return [f"[rank{r}]:[W{d.month}{d.day:02} {d.clock()}.{d.between(100000000, 999999999)} CUDACachingAllocator.cpp:3941] memory allocation failed with OOM on device {r} while trying to allocate {count} bytes (free: {free}, total: {total})." for r in (2, 2, 1, 1, 0, 3)]


@recipe("unknown-unified", "driver_nomem unknown unified_memory_accounting cudagraph_unbudgeted,host_ram", ["bare"], decide="no weak", sure="medium")
def unknown_unified(d):
    """The driver of a machine with unified memory, some time after the load."""
    return [f"Loading weights took {d.real(200, 700)} seconds", "nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1353"]


@recipe("unknown-after-load", "cuda_alloc unknown version_regression insufficient_info,weights_exceed_gpu", ["caret_ansi", "bare"], evidence="frames_only", decide="weak weak", sure="low")
def unknown_after_load(d):
    """The start goes on after the load, and the text ends."""
    d.at("core_head", among=["0.15.1", "0.20.1"])
    if d.variant:
        return core_fail(d, ["core_head"], None)[:6]
    return [d.log("INFO", "loading", "Starting to load model openai/gpt-oss-20b...", d.core()), d.log("INFO", "weights_took", f"Loading weights took {d.real(4, 20)} seconds", d.core()), took(d, d.real(12, 15)), d.log("INFO", "dynamo", f"Dynamo bytecode transform time: {d.real(2, 9)} s", d.core())]


@recipe("env-first-tensor", "cuda_alloc env version_regression insufficient_info,driver_or_env_mismatch", ["words"], decide="no no", sure="low", engine="pytorch")
def env_first_tensor(d):
    """A new release of PyTorch cannot make the first tensor; typed again by hand."""
    d.note(tried_mib="22.10 GiB", gpu_total_mib="23.54 GiB")
    return ["torch.cuda.OutOfMemoryError: CUDA out of memory.", "Tried to allocate 22.10 GiB (GPU 0; 23.54 GiB total; 0 bytes free)"]


# ---- sleep and wake

@recipe("wake", "cuda_alloc sleep_wake sleep_wake_competitor gmu_too_high_leaves_no_headroom", ["bare", "bare", "actor"], decide="yes weak")
def wake(d):
    """The weights cannot be mapped back: somebody else uses what sleep gave away."""
    if d.variant == 1:
        d.at("wake", v0=True, among=["0.7.2", "0.8.1"])
        return d.stack(d.frames("wake"), "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62")
    d.at("wake", among=["0.11.2", "0.13.0", "0.15.1", "0.20.1"])
    return d.stack(d.frames("wake"), "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:137", d.core())


@recipe("wake-stderr", "cuda_alloc sleep_wake sleep_wake_competitor", ["bare", "bare"], decide="weak weak")
def wake_stderr(d):
    """The allocator's lines on standard error; what comes after the first is a consequence."""
    if d.variant:
        return ["(main_task pid=88121)   File \"/work/rl/sharding_manager.py\", line 84, in __enter__", "(main_task pid=88121)     self.inference_engine.wake_up()", "cuda error: out of memory at /workspace/csrc/cumem_allocator.cpp:58"]
    return [f"CUDA Error: {what} at /workspace/csrc/cumem_allocator.cpp:{n}" for what, n in (("out of memory", 58), ("invalid argument", 59), ("invalid argument", 66))]


@recipe("wake-frames", "cuda_alloc sleep_wake sleep_wake_competitor", ["actor", "ray_repeated"], evidence="frames_only", decide="yes weak", sure="medium")
def wake_frames(d):
    """The stack of the wake-up; its error is cut."""
    d.at("wake", among=["0.8.1", "0.9.0", "0.10.0"])
    if d.variant:
        return [d.log("ERROR", "core.py:462", line) for line in d.stack(d.frames("wake")[:-1], head=False)]
    return cut(d.stack(d.frames("wake"), "RuntimeError: CUDA Error: out of memory", head=False), 10)


@recipe("wake-http", "cuda_alloc sleep_wake sleep_wake_competitor", ["bare"], decide="yes weak", sure="medium")
def wake_http(d):
    """A controller shows the answer of POST /wake_up."""
    return (f"I{d.month:02}{d.day:02} {d.clock()}.{d.between(100000, 999999)}       1 server.go:2190] \"HTTP call done\" worker=2 purpose=\"wake\" method=\"POST\" url=\"http://10.0.3.17:8006/wake_up\" latencySecs=0.0{d.between(10, 99)} statusCode=500 err=\"HTTP POST \\\"http://10.0.3.17:8006/wake_up\\\" returned unexpected status code 500; "
            "body={\\\"error\\\":{\\\"message\\\":\\\"Call to wake_up method failed: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:145\\\",\\\"code\\\":500}}\"")


@recipe("wake-saver", "cuda_error sleep_wake sleep_wake_competitor", ["bare", "actor"], decide="yes weak", engine="sglang")
def wake_saver(d):
    """SGLang's memory saver resumes; its first line says that it may be no issue, the second ends the process."""
    return ["[torch_memory_saver.cpp] cuMemCreate CUDA_ERROR_OUT_OF_MEMORY (may not be an issue e.g. torch allocator will free cache and retry)", f"[torch_memory_saver.cpp] cudaError error: 2 (out of memory)  file=csrc/core.cpp func=resume line={d.between(160, 190)}"]


@recipe("sleep-trainer", "cuda_alloc sleep_wake sleep_wake_competitor activation_peak", ["bare"], evidence="frames_only", decide="weak no", sure="medium")
def sleep_trainer(d):
    """Between sleep and wake-up the trainer runs; what sleep left in use is large."""
    d.at("wake", v0=True, among=["0.8.1"])
    return [d.log("INFO", "v0_sleep", f"Sleep mode freed {d.real(15, 22)} GiB memory, {d.real(24, 31)} GiB memory is still in use."), f"[{d.stamp()},{d.between(100, 999)}] [INFO] [utils.py:781:see_memory_usage] MA 39.1 GB         Max_MA 44.02 GB         CA 48.71 GB         Max_CA 49 GB "]


@recipe("sleep-trainer-ray", "cuda_alloc sleep_wake sleep_wake_competitor activation_peak", ["bare"], decide="weak no", sure="medium", engine="sglang")
def sleep_trainer_ray(d):
    """Ray names the class of the trainer's error; the rest is cut off."""
    return ["Traceback (most recent call last):", '  File "/work/rl/main_ppo.py", line 61, in main', "    run_ppo(config)", f'  File "{d.root}/ray/_private/worker.py", line 929, in get_objects', "    raise value.as_instanceof_cause()",
            "ray.exceptions.RayTaskError(OutOfMemoryError): ray::main_task() (pid=71220, ip=10.0.0.4)", '  File "/work/rl/ray_trainer.py", line 888, in fit', "    actor_output = self.actor_rollout_wg.update_actor(batch)"]


# ---- host

@recipe("host-killer", "host_kill host_memory host_ram quant_repack_peak", ["bare", "bare", "journald"], engine="vllm")
def host_killer(d):
    """The kernel's killer takes a worker, by the node's memory or the cgroup's limit."""
    pid, rss = d.between(4000, 900000), d.between(40000000, 120000000)
    if d.variant == 0:
        return ["INFO  [uva.py:66] Total CPU offloaded parameters: 61.40", "INFO  [default_loader.py:430] Loading weights took 188.31 seconds", f"Out of memory: Killed process {pid} (VLLM::Worker_TP) total-vm:{rss + 90000000}kB, anon-rss:{rss // 40}kB, file-rss:12288kB, shmem-rss:{rss}kB, UID:0 pgtables:188812kB oom_score_adj:0",
                "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}"]
    return [f"[{d.real(90000, 990000, 6)}] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=985", f"[{d.real(990001, 999999, 6)}] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-{d.hexa(12)}.scope,mems_allowed=0-1,oom_memcg=/kubepods.slice/kubepods-pod{d.hexa(8)}.slice,task=python3,pid={pid},uid=0",
            f"[{d.real(990001, 999999, 6)}] Memory cgroup out of memory: Killed process {pid} (python3) total-vm:{rss + 40000000}kB, anon-rss:{rss}kB, file-rss:88112kB, shmem-rss:24kB, UID:0 pgtables:120404kB oom_score_adj:985"]


@recipe("host-killed-pod", "host_kill host_memory host_ram", ["bare", "bare"], engine="vllm")
def host_killed_pod(d):
    """Kubernetes or docker says why the container ended: true, and 137."""
    if d.variant == 0:
        return ["    State:          Waiting", "      Reason:       CrashLoopBackOff", "    Last State:     Terminated", "      Reason:       OOMKilled", "      Exit Code:    137", f"      Started:      Tue, {d.day:02} May 2026 {d.clock()} +0000", "    Ready:          False", f"    Restart Count:  {d.between(2, 30)}"]
    return ["        \"State\": {", "            \"Status\": \"exited\",", "            \"Running\": false,", "            \"OOMKilled\": true,", "            \"ExitCode\": 137,", "            \"Error\": \"\""]


@recipe("host-killed-shell", "host_kill host_memory host_ram shm_too_small", ["compose", "bare"], decide="weak weak", engine="vllm")
def host_killed_shell(d):
    """A shell reports the kill of the server it started, and compose the code."""
    return [f"./entrypoint.sh: line {d.between(12, 40)}:     {d.between(7, 30)} Killed                  /app/bin/server --model /models/chat", "server exited with code 137"]


@recipe("host-platform", "host_kill host_memory host_ram version_regression", ["bare"], decide="yes weak", sure="medium", engine="vllm")
def host_platform(d):
    """A notebook platform's own sentence about the exit."""
    return "The Python process exited with exit code 137 (SIGKILL). This may have been caused by an OOM error. Check your command's memory usage."


@recipe("host-ray", "host_kill host_memory host_ram memory_leak", ["bare", "actor", "bare", "bare"], engine="vllm")
def host_ray(d):
    """Ray's memory monitor takes the task that grew last."""
    ip, used, total = f"10.0.{d.below(9)}.{d.between(2, 250)}", d.real(480, 495), 503.51
    if d.variant == 0:
        return (f"(raylet) node_manager.cc:3064: {d.between(1, 6)} Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: {d.hexa(56)}, IP: {ip}) over the last time period. To see more information about the Workers killed on this node, use `ray logs raylet.out -ip {ip}`")
    if d.variant == 2:
        return ["(main_task pid=4471) rollout batch size: 512", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."]
    return [f"Memory on the node (IP: {ip}, ID: {d.hexa(56)}) where the task (actor ID: {d.hexa(32)}, name=LLMRayActor.__init__, pid={d.pid}, memory used={d.real(11, 60)}GB) was running was {used}GB / {total}GB ({used / total:.6f}), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: {d.hexa(56)}) because it was the most recently scheduled task; see more information about memory usage on this node, use `ray logs raylet.out -ip {ip}`.",
            "Top 10 memory users:", "PID\tMEM(GB)\tCOMMAND", f"{d.pid}\t44.12\tray::LLMRayActor", f"{d.pid + 3}\t43.80\tray::LLMRayActor",
            "Refer to the documentation on how to address the out of memory issue: https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html. Consider provisioning more memory on this node or reducing task parallelism by requesting more CPUs per task."][d.variant == 3 and 2 or 0:]


@recipe("host-ray-died", "host_kill host_memory host_ram", ["bare"], decide="no no", sure="medium", engine="vllm")
def host_ray_died(d):
    """Ray lists why a worker may have died; the killer stands first."""
    return (f"{d.stamp()},{d.between(100, 999)}\tWARNING worker.py:2071 -- A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. RayTask ID: {d.hexa(48)} Worker ID: {d.hexa(56)} Node ID: {d.hexa(56)} Worker IP address: 10.0.0.4 Worker port: {d.between(10000, 60000)} Worker PID: {d.pid} "
            "Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors.")


@recipe("host-mmap", "host_alloc host_memory host_ram", ["bare", "compose"], engine="vllm")
def host_mmap(d):
    """A checkpoint cannot be mapped."""
    d.at("load")
    text = f"unable to mmap {d.between(4000000000, 19000000000)} bytes from file </models/chat/model-0000{d.between(1, 9)}-of-00012.safetensors>: Cannot allocate memory (12)"
    frames = [(f"{d.root}/vllm/model_executor/model_loader/weight_utils.py", d.between(430, 700), "safetensors_weights_iterator", "with safe_open(st_file, framework=\"pt\") as f:")]
    return "Failed to load model with Error: " + text if d.variant == 0 else d.stack(frames, "RuntimeError: " + text, d.log("ERROR", "failed", "", d.core()), head=False)


@recipe("host-cpu-allocator", "host_alloc host_memory host_ram", ["bare", "bare"], engine="pytorch")
def host_cpu_allocator(d):
    """PyTorch's allocator of host memory."""
    return f"RuntimeError: [enforce fail at alloc_cpu.cpp:{d.pick([73, 114, 117, 121])}] {'err == 0. ' if d.variant else '. '}DefaultCPUAllocator: {chr(99)}an't allocate memory: you tried to allocate {d.between(3, 40) * 1073741824} bytes. Error code 12 (Cannot allocate memory)"


@recipe("host-swap-setting", "config_refusal host_memory host_ram", ["bare"], engine="vllm")
def host_swap_setting(d):
    """The swap space asked for is nearly all the host has."""
    return "ValueError: Too large swap space. 8.00 GiB out of the 9.12 GiB total CPU memory is allocated for the swap space."


@recipe("host-sglang-cache", "config_refusal host_memory host_ram", ["bare", "bare"], engine="sglang")
def host_sglang_cache(d):
    """SGLang's second level of the cache does not fit the host."""
    d.at("host", engine="sglang")
    error = f"ValueError: Not enough host memory available. Requesting {d.real(60, 90):.2f} GB but only have {d.real(20, 59):.2f} GB free. Please reduce the size of the hierarchical cache."
    return d.stack(d.frames("host"), error) if d.variant else error


@recipe("host-leaked", "host_kill host_memory host_ram insufficient_info", ["bare"], evidence="frames_only", decide="no no", sure="low", engine="vllm")
def host_leaked(d):
    """What a killed parent leaves behind: a warning of Python's tracker."""
    return f"/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be {d.between(2, 9)} leaked shared_memory objects to clean up at shutdown"


@recipe("host-worker-nine", "host_kill host_memory host_ram insufficient_info", ["bare"], decide="weak weak", sure="low", engine="vllm")
def host_worker_nine(d):
    """A worker ends with code -9 during the load, and the node's log says why."""
    d.at("load", among=["0.24.0", "0.27.1"])
    return [d.log("INFO", "loading", "Starting to load model /models/chat...", d.worker(0)), d.log("ERROR", "worker_died", "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor.", d.core()),
            f"kernel: Out of memory: Killed process {d.pid + 12} (VLLM::Worker_TP) total-vm:189112344kB, anon-rss:98112344kB, file-rss:1024kB, shmem-rss:0kB, UID:1000"]
