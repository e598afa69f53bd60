#!/usr/bin/env python3
"""Frames and log sites of real releases, for the reports of render.py: frames.py vllm=REPOSITORY sglang=REPOSITORY

Each chain below names files, functions and a piece of the line that is on the stack, outermost first. The repositories are git
clones with the tags of their releases; what is found (file, line, function, text of the line) is written to frames.json. A row
whose file starts with '?' is left out where a release does not have it; any other row that is not found is printed, and the release goes without the chain. `render.py`
reads frames.json alone, so that this runs only to take in another release. Standard library only."""
import ast
import functools
import json
import os
import subprocess
import sys

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frames.json")
REPOSITORIES = {}


@functools.lru_cache(None)
def source(repository, tag, path):
    done = subprocess.run(["git", "-C", REPOSITORIES[repository], "show", f"{tag}:{path}"], capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace").split("\n") if done.returncode == 0 else None


@functools.lru_cache(None)
def functions(repository, tag, path):
    lines, found = source(repository, tag, path), []

    def walk(node, name):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.append((name, child.name, child.lineno, child.end_lineno))
            walk(child, child.name if isinstance(child, ast.ClassDef) else name)
    if lines:
        walk(ast.parse("\n".join(lines)), "")
    return found


def find(repository, tag, paths, names, pieces):
    """-> [path, line, function, text]; each of paths, names and pieces may list several, by '|' and '||'. A piece that starts with
    '=' is the whole line."""
    for path in paths.lstrip("?").split("|"):
        for name in names.split("||"):
            owner, _, function = name.rpartition(".")
            for piece in pieces.split("||"):
                for of, called, first, last in functions(repository, tag, path):
                    if called != function or owner not in ("", of):
                        continue
                    for number in range(first + 1, last + 1):
                        text = source(repository, tag, path)[number - 1].strip()
                        if (text == piece[1:] if piece[0] == "=" else piece in text) and not text.startswith(("#", "def ", "async def ")):
                            return [path, number, called, text]
    return None


def chain(repository, tag, rows):
    frames = []
    for path, name, piece in rows:
        frame = find(repository, tag, path, name, piece)
        if frame is None:
            if path[0] == "?":
                continue
            print(f"{tag}: no {piece} in {name} of {path}")
            return []
        if frame[2] in ("collective_rpc", "run_method") and frames and "driver_worker." in frames[-1][3]:
            continue  # called without the detour
        if frame[2] == "get_model" and frames and "model_loader.load_model(" in frames[-1][3]:
            continue
        frames.append(frame)
    return frames


def site(repository, tag, paths, piece):
    """[file, line] of the logging call that prints the piece."""
    for path in paths.split("|"):
        for number, text in enumerate(source(repository, tag, path) or (), 1):
            if piece in text:
                lines = source(repository, tag, path)
                while number > 1 and "logger." not in lines[number - 1]:
                    number -= 1
                return [path.rsplit("/", 1)[-1], number]
    return None


# ---- what is looked for

EX = "vllm/v1/executor/abstract.py|vllm/executor/executor_base.py"
OT = ("?vllm/tracing/otel.py", "sync_wrapper", "return func(*args, **kwargs)")
CORE = [("vllm/v1/engine/core.py", "run_engine_core", "engine_core = EngineCoreProc(*args"), OT,
      ("vllm/v1/engine/core.py", "EngineCoreProc.__init__", "super().__init__(")]
EXE = [("vllm/v1/engine/core.py", "EngineCore.__init__", "executor_class(vllm_config"), OT,
     (EX, "__init__", "self._init_executor()")]
UNI = "vllm/v1/executor/uniproc_executor.py|vllm/executor/uniproc_executor.py"
RPC = [("?" + UNI, "collective_rpc", "run_method("), ("?vllm/v1/serial_utils.py|vllm/utils/__init__.py|vllm/utils.py", "run_method", "return func(*args, **kwargs)")]
GW = "vllm/v1/worker/gpu_worker.py"
GMR = "vllm/v1/worker/gpu_model_runner.py"


def uni(method):
    return [(UNI, "_init_executor", f'"{method}"||driver_worker.{method}()')]


WB = ("?vllm/v1/worker/worker_base.py|vllm/worker/worker_base.py", "init_device", "self.worker.init_device()")
LOADTOP = [(GW, "load_model", "self.model_runner.load_model("), (GMR, "load_model", "self.model = "),
      ("vllm/model_executor/model_loader/__init__.py", "get_model", "load_model(")]
LD = "vllm/model_executor/model_loader/base_loader.py|vllm/model_executor/model_loader/loader.py"
INITM = [(LD, "load_model", "initialize_model("), ("?vllm/model_executor/model_loader/utils.py", "initialize_model", "return model_class("), ("?vllm/model_executor/model_loader/loader.py", "_initialize_model", "return model_class(")]
LLAMA = "vllm/model_executor/models/llama.py"
LIN = "vllm/model_executor/layers/linear.py"
LLAMAI = [(LLAMA, "LlamaForCausalLM.__init__", "self.model = "), ("?" + LLAMA, "_init_model", "return LlamaModel("), ("?vllm/compilation/decorators.py", "__init__", "old_init("),
  (LLAMA, "LlamaModel.__init__", "make_layers("), ("?vllm/model_executor/models/utils.py", "make_layers", "layer_fn(prefix="), (LLAMA, "__init__", "lambda prefix: layer_type(||lambda prefix: LlamaDecoderLayer("),
  (LLAMA, "LlamaDecoderLayer.__init__", "self.mlp = LlamaMLP("), (LLAMA, "LlamaMLP.__init__", "self.gate_up_proj = "),
  (LIN, "MergedColumnParallelLinear.__init__", "super().__init__("), (LIN, "ColumnParallelLinear.__init__", "self.quant_method.create_weights("),
  (LIN, "UnquantizedLinearMethod.create_weights", "torch.empty(")]
MOEP = "vllm/model_executor/models/qwen3_moe.py"
FM = "vllm/model_executor/layers/fused_moe/layer.py"
MOEI = [(MOEP, "Qwen3MoeForCausalLM.__init__", "self.model = "), (MOEP, "Qwen3MoeModel.__init__", "make_layers("), ("vllm/model_executor/models/utils.py", "make_layers", "layer_fn(prefix="),
  (MOEP, "Qwen3MoeDecoderLayer.__init__", "self.mlp = Qwen3MoeSparseMoeBlock("), (MOEP, "Qwen3MoeSparseMoeBlock.__init__", "self.experts = "), ("?" + FM, "FusedMoE.__init__", "create_weights("),
  ("?vllm/model_executor/layers/fused_moe/unquantized_fused_moe_method.py|" + FM, "UnquantizedFusedMoEMethod.create_weights", "torch.empty(")]
PWAL = [("?" + LD, "load_model", "process_weights_after_loading("), ("?vllm/model_executor/model_loader/utils.py", "process_weights_after_loading", "quant_method.process_weights_after_loading("), ("?vllm/model_executor/model_loader/loader.py", "_process_weights_after_loading", "quant_method.process_weights_after_loading(")]
INITKV = [("vllm/v1/engine/core.py", "EngineCore.__init__", "self._initialize_kv_caches(")]
DET = INITKV + [("vllm/v1/engine/core.py", "_initialize_kv_caches", "determine_available_memory()"), ("vllm/v1/executor/abstract.py", "determine_available_memory", 'collective_rpc("determine_available_memory")')]
PROF = DET + RPC + [(GW, "determine_available_memory", "self.model_runner.profile_run()")]
WBUSY = [("vllm/v1/executor/multiproc_executor.py", "worker_busy_loop", "output = func(*args, **kwargs)")]
DUM = [(GMR, "profile_run", "self._dummy_run("), (GMR, "_dummy_run", "self.model(||self._model_forward(||= model(")]
LF = [(LLAMA, "LlamaForCausalLM.forward", "self.model("), ("?vllm/compilation/decorators.py", "__call__", "self.forward(*args, **kwargs)"), (LLAMA, "LlamaModel.forward", "layer("), (LLAMA, "LlamaDecoderLayer.forward", "self.mlp("), (LLAMA, "LlamaMLP.forward", "self.act_fn("),
  ("vllm/model_executor/layers/activation.py", "SiluAndMul.forward_cuda", "torch.empty(")]
Q = "vllm/model_executor/models/qwen2_5_vl.py"
MMF = [("?" + GMR, "profile_run", "get_multimodal_embeddings(||embed_multimodal("), ("?" + Q, "get_multimodal_embeddings", "self._process_image_input("), ("?" + Q, "embed_multimodal", "self._process_image_input("),
  (Q, "_process_image_input", "self.visual("), (Q, "Qwen2_5_VisionTransformer.forward", "blk("), (Q, "Qwen2_5_VisionBlock.forward", "self.mlp(||self.attn("), (Q, "Qwen2_5_VisionMLP.forward", "self.act_fn(||self.gate_proj(||self.gate_up_proj(")]
RUN = [("vllm/v1/engine/core.py", "run_engine_core", "engine_core.run_busy_loop()"), ("vllm/v1/engine/core.py", "EngineCoreProc.run_busy_loop", "self._process_engine_step()"), ("vllm/v1/engine/core.py", "_process_engine_step", "self.step_fn()||self.step()"),
  ("vllm/v1/engine/core.py", "step", "execute_model(||execute_model_with_error_logging("), ("?vllm/v1/executor/abstract.py", "execute_model", 'collective_rpc("execute_model"')] + RPC
EXEC = [(GW, "execute_model", "self.model_runner.execute_model("), (GMR, "execute_model", "self.model(||self._model_forward("), ("?" + GMR, "_model_forward", "self.model(")]
SMP = "vllm/v1/sample/sampler.py"
TK = "vllm/v1/sample/ops/topk_topp_sampler.py"
SAMPLE = [(SMP, "forward", "self.sample(logits"), (SMP, "sample", "self.topk_topp_sampler("), ("?" + TK, "forward_cuda", "self.forward_native("), (TK, "forward_native", "apply_top_k_top_p("), (TK, "apply_top_k_top_p", "logits.sort(")]
WARM = [("?vllm/v1/engine/core.py", "_initialize_kv_caches", "initialize_from_config("), ("vllm/v1/executor/abstract.py", "initialize_from_config", '"compile_or_warm_up_model"')] + RPC
CAP = [(GW, "compile_or_warm_up_model", "self.model_runner.capture_model()"), (GMR, "capture_model", "_capture_cudagraphs(||self._dummy_run("), ("?" + GMR, "_capture_cudagraphs", "self._dummy_run("), ("?" + GMR, "_dummy_run", "self.model(||self._model_forward(||= model(")]
CG = [("vllm/compilation/cuda_graph.py|vllm/compilation/cuda_piecewise_backend.py|vllm/compilation/backends.py", "__call__", "with torch.cuda.graph(")]
V1 = ["v0.8.1", "v0.9.0", "v0.10.0", "v0.11.2", "v0.13.0", "v0.15.1", "v0.20.1", "v0.24.0", "v0.27.1"]
V1_CHAINS = {
 "core_load": CORE + EXE + uni("load_model") + RPC,
 "worker_load": [("vllm/v1/executor/multiproc_executor.py", "worker_main", "WorkerProc(*args"), ("vllm/v1/executor/multiproc_executor.py", "WorkerProc.__init__", "self.worker.load_model()")],
 "load": LOADTOP, "init_model": INITM, "llama_init": LLAMAI, "moe_init": MOEI,
 "post": PWAL,
 "post_fp8": [("?vllm/model_executor/layers/quantization/fp8.py", "Fp8LinearMethod.process_weights_after_loading", "requantize_with_max_scale(||prepare_fp8_layer_for_marlin(||ops.scaled_fp8_quant(")],
 "post_marlin": [("vllm/model_executor/layers/quantization/gptq_marlin.py", "GPTQMarlinMoEMethod.process_weights_after_loading", "ops.gptq_marlin_moe_repack("), ("vllm/_custom_ops.py", "gptq_marlin_moe_repack", "torch.empty(")],
 "post_mxfp4": [("vllm/model_executor/layers/quantization/mxfp4.py", "process_weights_after_loading", "_swizzle_mxfp4(||prepare_moe_fp4_layer_for_marlin(||shuffle_matrix_a("), ("?vllm/model_executor/layers/quantization/utils/mxfp4_utils.py", "_swizzle_mxfp4", "convert_layout(")],
 "init_device": CORE + EXE + uni("init_device") + RPC + [WB, (GW, "init_device", "request_memory(||raise ValueError("), ("?vllm/v1/worker/utils.py", "request_memory", "raise ValueError(")],
 "snapshot": CORE + EXE + uni("init_device") + RPC + [WB, (GW, "init_device", "MemorySnapshot("), ("?vllm/utils/mem_utils.py|vllm/utils/__init__.py", "__post_init__", "self.measure()"), ("?vllm/utils/mem_utils.py|vllm/utils/__init__.py", "measure", "mem_get_info(")],
 "dist": CORE + EXE + uni("init_device") + RPC + [WB, (GW, "init_device", "init_worker_distributed_environment("), (GW, "init_worker_distributed_environment", "ensure_model_parallel_initialized("), ("vllm/distributed/parallel_state.py", "ensure_model_parallel_initialized", "initialize_model_parallel("), ("vllm/distributed/parallel_state.py", "initialize_model_parallel", "init_model_parallel_group("), ("vllm/distributed/parallel_state.py", "init_model_parallel_group", "return GroupCoordinator("), ("vllm/distributed/parallel_state.py", "GroupCoordinator.__init__", "device_comm_cls(||PyNcclCommunicator("), ("?vllm/distributed/device_communicators/cuda_communicator.py", "__init__", "PyNcclCommunicator("), ("vllm/distributed/device_communicators/pynccl.py", "__init__", "self.all_reduce(data)"), ("vllm/distributed/device_communicators/pynccl.py", "all_reduce", "self.nccl.ncclAllReduce("), ("vllm/distributed/device_communicators/pynccl_wrapper.py", "ncclAllReduce", "NCCL_CHECK("), ("vllm/distributed/device_communicators/pynccl_wrapper.py", "NCCL_CHECK", "raise RuntimeError(")],
 "profile": CORE + PROF, "busy_profile": WBUSY + [OT, (GW, "determine_available_memory", "self.model_runner.profile_run()")],
 "dummy": DUM, "llama_fwd": LF, "mm": MMF,
 "profile_assert": CORE + DET + RPC + [(GW, "determine_available_memory", "assert self.init_snapshot.free_memory||assert self.init_gpu_memory"),],
 "prof_sampler": [(GMR, "profile_run", "self._dummy_sampler_run("), (GMR, "_dummy_sampler_run", "self.sampler(||self.model.sample(")],
 "cgprof": CORE + DET + RPC + [("?" + GW, "determine_available_memory", "profile_cudagraph_memory()"), ("?" + GMR, "profile_cudagraph_memory", "_init_minimal_kv_cache_for_profiling()"), ("?" + GMR, "_init_minimal_kv_cache_for_profiling", "self.initialize_kv_cache("), ("?" + GMR, "initialize_kv_cache", "self.initialize_kv_cache_tensors("), ("?" + GMR, "initialize_kv_cache_tensors", "_allocate_kv_cache_tensors("), ("?" + GMR, "_allocate_kv_cache_tensors", "torch.zeros(")],
 "kv_none": CORE + INITKV + [("vllm/v1/engine/core.py", "_initialize_kv_caches", "get_kv_cache_config"), ("?vllm/v1/core/kv_cache_utils.py", "get_kv_cache_configs", "check_enough_kv_cache_memory("), ("?vllm/v1/core/kv_cache_utils.py", "get_kv_cache_config", "check_enough_kv_cache_memory("), ("?vllm/v1/core/kv_cache_utils.py", "check_enough_kv_cache_memory", "raise ValueError("), ("?vllm/v1/core/kv_cache_utils.py", "_check_enough_kv_cache_memory", "raise ValueError(")],
 "kv_alloc": CORE + INITKV + [("vllm/v1/engine/core.py", "_initialize_kv_caches", "initialize_from_config("), ("vllm/v1/executor/abstract.py", "initialize_from_config", '"initialize_from_config"')] + RPC + [("?vllm/v1/worker/worker_base.py|vllm/worker/worker_base.py", "initialize_from_config", "self.worker.initialize_from_config("), (GW, "initialize_from_config", "self.model_runner.initialize_kv_cache("), (GMR, "initialize_kv_cache", "initialize_kv_cache_tensors(||torch.zeros("), ("?" + GMR, "initialize_kv_cache_tensors", "_allocate_kv_cache_tensors("), ("?" + GMR, "_allocate_kv_cache_tensors", "torch.zeros(")],
 "warm": CORE + INITKV + WARM, "busy_warm": WBUSY + [OT], "capture": CAP, "cg": CG,
 "sampler_warm": [(GW, "compile_or_warm_up_model", "_dummy_sampler_run("), (GMR, "_dummy_sampler_run", "self.sampler(||self.model.sample(")],
 "sampler_raise": [(GW, "compile_or_warm_up_model", "_dummy_sampler_run("), (GMR, "_dummy_sampler_run", "raise RuntimeError(")],
 "sample": SAMPLE,
 "kernel_warm": [("?" + GW, "compile_or_warm_up_model", "kernel_warmup(self)"), ("?vllm/model_executor/warmup/kernel_warmup.py", "kernel_warmup", "deep_gemm_warmup("), ("?vllm/model_executor/warmup/deep_gemm_warmup.py", "deep_gemm_warmup", "deepgemm_grouped_fp8_gemm_nt_contiguous_warmup("), ("?vllm/model_executor/warmup/deep_gemm_warmup.py", "deepgemm_grouped_fp8_gemm_nt_contiguous_warmup", "_deepgemm_grouped_fp8_gemm_nt_contiguous_warmup("), ("?vllm/model_executor/warmup/deep_gemm_warmup.py", "_deepgemm_grouped_fp8_gemm_nt_contiguous_warmup", "torch.empty(")],
 "autotune": [("?" + GW, "compile_or_warm_up_model", "kernel_warmup(self)"), ("?vllm/model_executor/warmup/kernel_warmup.py", "kernel_warmup", "flashinfer_autotune("), ("?vllm/model_executor/warmup/kernel_warmup.py", "flashinfer_autotune", "runner._dummy_run(")],
 "run": RUN, "busy_exec": WBUSY + [OT], "exec": EXEC,
 "exec_mm": [(GW, "execute_model", "self.model_runner.execute_model("), ("?" + GMR, "execute_model", "self._execute_mm_encoder(||self._preprocess("), ("?" + GMR, "_preprocess", "self._execute_mm_encoder("), (GMR, "_execute_mm_encoder", "get_multimodal_embeddings(||embed_multimodal("), ("?" + Q, "get_multimodal_embeddings", "self._process_image_input("), ("?" + Q, "embed_multimodal", "self._process_image_input("), (Q, "_process_image_input", "self.visual(")],
 "exec_sample": [(GW, "execute_model", "self.model_runner.execute_model("), ("?" + GMR, "sample_tokens", "self._sample("), ("?" + GMR, "execute_model", "self._sample(||self.sampler("), ("?" + GMR, "_sample", "self.sampler(")],
 "prompt_lp": [("?" + GMR, "_get_prompt_logprobs_dict", "compute_logprobs("), (SMP, "compute_logprobs", "log_softmax(")],
 "penalties": [(SMP, "forward", "self.apply_penalties(||apply_logits_processors("), ("?" + SMP, "apply_logits_processors", "self.apply_penalties("), (SMP, "apply_penalties", "apply_all_penalties("), ("vllm/v1/sample/ops/penalties.py", "apply_all_penalties", "apply_penalties("), ("?vllm/model_executor/layers/utils.py", "apply_penalties", "get_token_bin_counts_and_mask("), ("?vllm/model_executor/layers/utils.py", "get_token_bin_counts_and_mask", "torch.zeros(")],
 "wake": [("?vllm/v1/engine/core.py", "wake_up", "self.model_executor.wake_up("), (EX, "wake_up", 'collective_rpc("wake_up"')] + RPC + [(GW, "wake_up", "allocator.wake_up("), ("vllm/device_allocator/cumem.py", "wake_up", "create_and_map("), ("vllm/device_allocator/cumem.py", "create_and_map", "python_create_and_map(")],
 "eagle_load": [(GMR, "load_model", "self.drafter.load_model("), ("vllm/v1/spec_decode/eagle.py", "load_model", "get_model(")],
 "lora_load": [(GMR, "load_model", "self.load_lora_model("), ("vllm/v1/worker/lora_model_runner_mixin.py", "load_lora_model", "create_lora_manager("), ("vllm/lora/worker_manager.py", "create_lora_manager", "create_lora_manager("), ("?vllm/lora/models.py|vllm/lora/model_manager.py", "create_lora_manager", "lora_manager_cls("), ("?vllm/lora/models.py|vllm/lora/model_manager.py", "__init__", "self._create_lora_modules()"), ("?vllm/lora/models.py|vllm/lora/model_manager.py", "_create_lora_modules", "from_layer("), ("?vllm/lora/utils.py", "from_layer", "create_lora_weights("), ("?vllm/lora/layers/column_parallel_linear.py|vllm/lora/layers.py", "create_lora_weights", "torch.zeros(")],
 "moe_fwd": [(MOEP, "Qwen3MoeForCausalLM.forward", "self.model("), (MOEP, "Qwen3MoeModel.forward", "layer("), (MOEP, "Qwen3MoeDecoderLayer.forward", "self.mlp("), (MOEP, "Qwen3MoeSparseMoeBlock.forward", "self.experts("), ("?vllm/model_executor/layers/fused_moe/fused_moe.py", "fused_experts_impl", "torch.empty(")],
 "mla_fwd": [("vllm/model_executor/models/deepseek_v2.py", "DeepseekV2MLAAttention.forward", "self.mla_attn(")],
 "apiwait": [("?vllm/v1/engine/core_client.py", "__init__", "launch_core_engines("), ("?vllm/v1/engine/utils.py", "launch_core_engines", "wait_for_engine_startup("), ("?vllm/v1/engine/utils.py", "wait_for_engine_startup", "raise RuntimeError(")],
 "core_head": CORE + INITKV,
 "mm_audio": [("?" + GMR, "profile_run", "get_multimodal_embeddings(||embed_multimodal("), ("?vllm/model_executor/models/ultravox.py", "get_multimodal_embeddings||embed_multimodal", "self._process_audio_input("), ("vllm/model_executor/models/ultravox.py", "_process_audio_input", "self._audio_features_to_embeddings("), ("vllm/model_executor/models/ultravox.py", "_audio_features_to_embeddings", "self.audio_tower(")],
}
V0 = ["v0.4.2", "v0.5.4", "v0.6.3", "v0.7.2", "v0.8.1"]
LE = "vllm/engine/llm_engine.py"
ME = "vllm/engine/multiprocessing/engine.py"
AE = "vllm/engine/async_llm_engine.py"
W = "vllm/worker/worker.py"
MR = "vllm/worker/model_runner.py"
TOP = [("?vllm/entrypoints/llm.py", "LLM.__init__", "from_engine_args("), (LE, "from_engine_args", "cls(")]
EXB = "vllm/executor/executor_base.py"
GE = "vllm/executor/gpu_executor.py"
RP = [("?vllm/executor/uniproc_executor.py", "collective_rpc", "run_method("), ("?vllm/utils.py", "run_method", "return func(*args, **kwargs)")]
WP = [("?vllm/executor/multiproc_worker_utils.py", "_run_worker_process", "output = run_method(||output = executor(")]
LLF = [("vllm/model_executor/models/llama.py", "LlamaForCausalLM.forward", "self.model("), ("vllm/model_executor/models/llama.py", "LlamaModel.forward", "layer("), ("vllm/model_executor/models/llama.py", "LlamaDecoderLayer.forward", "self.mlp("), ("vllm/model_executor/models/llama.py", "LlamaMLP.forward", "self.act_fn(||self.down_proj("), ("?vllm/model_executor/layers/activation.py", "SiluAndMul.forward_cuda||SiluAndMul.forward", "torch.empty(")]
KV = [(LE, "__init__", "self._initialize_kv_caches()||self._init_cache()")]
V0_CHAINS = {
 "llm_head": TOP,
 "load": [(LE, "LLMEngine.__init__", "executor_class(||self._init_workers()"), ("?" + EXB, "__init__", "self._init_executor()"), ("?" + GE + "|vllm/executor/uniproc_executor.py", "_init_executor", "load_model"),] + RP + [(W, "load_model", "self.model_runner.load_model()"), (MR, "load_model", "self.model = get_model("), ("vllm/model_executor/model_loader/__init__.py|vllm/model_executor/model_loader.py", "get_model", "loader.load_model(||model_class("), ("?vllm/model_executor/model_loader/loader.py", "load_model", "_initialize_model("), ("?vllm/model_executor/model_loader/loader.py", "_initialize_model", "model_class(||build_model(")],
 "worker_load": WP + [(W, "load_model", "self.model_runner.load_model()"), (MR, "load_model", "self.model = get_model("), ("vllm/model_executor/model_loader/__init__.py|vllm/model_executor/model_loader.py", "get_model", "loader.load_model(||model_class("), ("?vllm/model_executor/model_loader/loader.py", "load_model", "_initialize_model(")],
 "llama_init": [(LLAMA, "LlamaForCausalLM.__init__", "self.model = "), (LLAMA, "LlamaModel.__init__", "make_layers(||self.layers = nn.ModuleList("), ("?vllm/model_executor/models/utils.py", "make_layers", "layer_fn("), (LLAMA, "LlamaDecoderLayer.__init__", "self.mlp = LlamaMLP("), (LLAMA, "LlamaMLP.__init__", "self.gate_up_proj = "), (LIN, "MergedColumnParallelLinear.__init__", "super().__init__("), (LIN, "ColumnParallelLinear.__init__", "create_weights("), ("?" + LIN, "UnquantizedLinearMethod.create_weights", "torch.empty(")],
 "profile": KV + [(LE, "_initialize_kv_caches", "determine_num_available_blocks())||determine_num_available_blocks()||self._run_workers("), ("?" + EXB + "|" + GE, "determine_num_available_blocks", "determine_num_available_blocks")] + RP + [(W, "determine_num_available_blocks", "self.model_runner.profile_run()"), ("?" + W, "profile_num_available_blocks", "self.model_runner.profile_run()"), (MR, "profile_run", "self.execute_model(||self._dummy_run("), ("?" + MR, "_dummy_run", "self.execute_model("), (MR, "execute_model", "model_executable(||self.model(")],
 "worker_profile": WP + [(W, "determine_num_available_blocks", "self.model_runner.profile_run()"), (MR, "profile_run", "self.execute_model(||self._dummy_run("), (MR, "execute_model", "model_executable(||self.model(")],
 "llama_fwd": LLF,
 "cache_invalid": KV + [(LE, "_initialize_kv_caches", "initialize_cache(num_gpu_blocks"), ("?" + EXB + "|" + GE, "initialize_cache", "initialize_cache")] + RP + [(W, "initialize_cache", "raise_if_cache_size_invalid("), (W, "raise_if_cache_size_invalid", "=raise ValueError(")],
 "cache_none": KV + [(LE, "_initialize_kv_caches", "initialize_cache(num_gpu_blocks"), ("?" + EXB + "|" + GE, "initialize_cache", "initialize_cache")] + RP + [(W, "initialize_cache", "raise_if_cache_size_invalid("), (W, "raise_if_cache_size_invalid", 'raise ValueError("No available memory')],
 "worker_invalid": WP + [(W, "initialize_cache", "raise_if_cache_size_invalid("), (W, "raise_if_cache_size_invalid", "=raise ValueError(")],
 "kv_alloc": KV + [(LE, "_initialize_kv_caches", "initialize_cache(num_gpu_blocks"), ("?" + EXB + "|" + GE, "initialize_cache", "initialize_cache")] + RP + [(W, "initialize_cache", "self._init_cache_engine()"), ("?" + W, "_init_cache_engine", "CacheEngine("), ("?vllm/worker/cache_engine.py", "__init__", "self._allocate_kv_cache(||self.allocate_gpu_cache()||allocate_cpu_cache()"), ("vllm/worker/cache_engine.py", "_allocate_kv_cache", "torch.zeros(||torch.empty(")],
 "kv_cpu": [("?vllm/worker/cache_engine.py", "__init__", '_allocate_kv_cache(self.num_cpu_blocks||allocate_cpu_cache()'), ("?vllm/worker/cache_engine.py", "_allocate_kv_cache", "torch.zeros(")],
 "capture": [(W, "initialize_cache", "self._warm_up_model()"), (W, "_warm_up_model||warm_up_model", "self.model_runner.capture_model("), (MR, "capture_model", "graph_runner.capture("), (MR, "capture", "self.model("),],
 "capture_end": [(MR, "capture_model", "graph_runner.capture("), (MR, "capture", "with torch.cuda.graph(")],
 "loop": [("?" + ME, "start", "self.run_engine_loop()"), ("?" + ME, "run_engine_loop", "self.engine_step()"), ("?" + ME, "engine_step", "self.engine.step()"), (LE, "step", "self.model_executor.execute_model(||self._run_workers(")],
 "aloop": [(AE, "_log_task_completion||_raise_exception_on_finish", "task.result()"), (AE, "run_engine_loop", "asyncio.wait_for("), (AE, "engine_step", "self.engine.step_async("), (AE, "step_async", "execute_model_async(")],
 "exec": [("?vllm/worker/worker_base.py", "execute_model", "self.model_runner.execute_model("), (MR, "execute_model", "model_executable(||self.model(")],
 "worker_loop": WP + [("?vllm/worker/worker_base.py", "start_worker_execution_loop", "self.execute_model("), ("?vllm/worker/worker_base.py", "execute_model", "self.model_runner.execute_model("), (MR, "execute_model", "model_executable(||self.model(")],
 "sampler": [(MR, "execute_model", "self.model.sample("), ("?vllm/model_executor/models/llama.py", "sample", "self.sampler("), ("vllm/model_executor/layers/sampler.py", "forward", "torch.log_softmax(||torch.softmax(")],
 "sampler_lp": [(MR, "execute_model", "self.model.sample("), ("?vllm/model_executor/models/llama.py", "sample", "self.sampler("), ("vllm/model_executor/layers/sampler.py", "forward", "get_logprobs("), ("?vllm/model_executor/layers/sampler.py", "get_logprobs||_get_logprobs", "logprobs[query_indices_gpu]")],
 "sampler_pen": [(MR, "execute_model", "self.model.sample("), ("vllm/model_executor/layers/sampler.py", "forward", "apply_penalties("),],
 "wake": [("?" + LE, "wake_up", "self.model_executor.wake_up("), ("?" + EXB, "wake_up", 'collective_rpc("wake_up"')] + RP + [("?" + W, "wake_up", "allocator.wake_up("), ("?vllm/device_allocator/cumem.py", "wake_up", "create_and_map("), ("?vllm/device_allocator/cumem.py", "create_and_map", "python_create_and_map(")],
 "post": [("?vllm/model_executor/model_loader/loader.py", "load_model", "process_weights_after_loading("), ("?vllm/model_executor/layers/quantization/fp8.py", "Fp8LinearMethod.process_weights_after_loading", "prepare_fp8_layer_for_marlin("), ("?vllm/model_executor/layers/quantization/utils/marlin_utils_fp8.py", "prepare_fp8_layer_for_marlin", "gptq_marlin_repack(")],
 "mllama": [("?vllm/worker/enc_dec_model_runner.py", "profile_run", "self.execute_model("), ("?vllm/worker/enc_dec_model_runner.py", "execute_model", "model_executable("), ("?vllm/model_executor/models/mllama.py", "MllamaForConditionalGeneration.forward", "self.vision_model("), ("?vllm/model_executor/models/mllama.py", "MllamaVisionModel.forward", "self.transformer("), ("?vllm/model_executor/models/mllama.py", "MllamaVisionEncoder.forward", "encoder_layer(")],
 "clip": [("?vllm/model_executor/models/llava.py", "_process_image_input||_process_image_pixels", "self._image_pixels_to_features(||self._process_image_pixels("), ("?vllm/model_executor/models/clip.py", "CLIPEncoder.forward", "encoder_layer("), ("?vllm/model_executor/models/clip.py", "CLIPEncoderLayer.forward", "self.mlp("), ("?vllm/model_executor/models/clip.py", "CLIPMLP.forward", "self.activation_fn(")],
 "qwenvl": [("?vllm/model_executor/models/qwen2_vl.py", "Qwen2VLForConditionalGeneration.forward", "self._process_image_input(||get_input_embeddings_v0(||get_multimodal_embeddings("), ("?vllm/model_executor/models/qwen2_vl.py", "_process_image_input", "self.visual("), ("?vllm/model_executor/models/qwen2_vl.py", "Qwen2VisionTransformer.forward", "blk("), ("?vllm/model_executor/models/qwen2_vl.py", "Qwen2VisionBlock.forward", "self.attn("), ("?vllm/model_executor/models/qwen2_vl.py", "Qwen2VisionAttention.forward", "flash_attn_varlen_func(||F.scaled_dot_product_attention(||rearrange(")],
 "lora_fwd": [("?vllm/lora/layers.py", "forward", "self.apply(||self.apply_weights("), ("?vllm/lora/layers.py", "apply", "add_lora_linear("),],
 "llm_generate": [("vllm/entrypoints/llm.py", "generate", "self._run_engine("), ("vllm/entrypoints/llm.py", "_run_engine", "self.llm_engine.step()")],
}
SGLANG = ["v0.4.1", "v0.4.6", "v0.5.1", "v0.5.6"]
P = "python/sglang/srt/"
SC = P + "managers/scheduler.py"
TW = P + "managers/tp_worker.py"
M = P + "model_executor/model_runner.py"
CGR = P + "model_executor/cuda_graph_runner.py"
HEAD = [("?" + SC, "run_scheduler_process", "Scheduler("), ("?" + SC, "Scheduler.__init__", "TpWorkerClass(||init_model_worker()||TpModelWorker("), ("?" + P + "managers/tp_worker_overlap_thread.py", "__init__", "TpModelWorker("), (TW, "__init__", "ModelRunner(||_init_model_runner()"), ("?" + TW, "_init_model_runner", "ModelRunner("), ("?" + M, "__init__", "self.initialize(")]
SGLANG_CHAINS = {
 "load": HEAD + [("?" + M, "initialize", "self.load_model()"), ("?" + M, "ModelRunner.__init__", "self.load_model()"), (M, "load_model", "self.model = "), ("?" + P + "model_loader/__init__.py", "get_model", "loader.load_model("), ("?" + P + "model_loader/loader.py", "load_model", "_initialize_model("), ("?" + P + "model_loader/loader.py", "_initialize_model", "return model_class("),
   (P + "models/llama.py", "LlamaForCausalLM.__init__", "self.model = "), ("?" + P + "models/llama.py", "_init_model", "return LlamaModel("), (P + "models/llama.py", "LlamaModel.__init__", "make_layers(||self.layers = nn.ModuleList("), ("?" + P + "utils.py|" + P + "utils/common.py", "make_layers", "layer_fn("), (P + "models/llama.py", "LlamaDecoderLayer.__init__", "self.mlp = LlamaMLP("), (P + "models/llama.py", "LlamaMLP.__init__", "self.gate_up_proj = "), ("?" + P + "layers/linear.py", "ColumnParallelLinear.__init__", "create_weights(")],
 "kv": HEAD + [("?" + M, "initialize", "self.init_memory_pool("), ("?" + M, "ModelRunner.__init__", "self.init_memory_pool("), (M, "init_memory_pool", "MHATokenToKVPool("), ("?" + P + "mem_cache/memory_pool.py", "MHATokenToKVPool.__init__", "self._create_buffers()||torch.empty(||torch.zeros("), ("?" + P + "mem_cache/memory_pool.py", "MHATokenToKVPool._create_buffers", "torch.zeros(||torch.empty(")],
 "kv_small": HEAD + [("?" + M, "initialize", "self.init_memory_pool("), ("?" + M, "ModelRunner.__init__", "self.init_memory_pool("), ("?" + M, "init_memory_pool", "raise RuntimeError("),],
 "capture": HEAD + [("?" + M, "initialize", "self.init_cuda_graphs()||self.init_device_graphs()"), ("?" + M, "ModelRunner.__init__", "self.init_cuda_graphs()"), ("?" + M, "init_cuda_graphs||init_device_graphs", "CudaGraphRunner(||graph_runners["), (CGR, "__init__", "self.capture()"), (CGR, "capture", "self.capture_one_batch_size("), ("?" + CGR, "capture_one_batch_size", "run_once()"), ("?" + CGR, "run_once", "forward(")],
 "capture_raise": HEAD + [("?" + M, "initialize", "self.init_cuda_graphs()||self.init_device_graphs()"), ("?" + M, "ModelRunner.__init__", "self.init_cuda_graphs()"), ("?" + M, "init_cuda_graphs||init_device_graphs", "CudaGraphRunner(||graph_runners["), (CGR, "__init__", "raise Exception(")],
 "loop": [("?" + SC, "run_scheduler_process", "scheduler.event_loop_overlap()||scheduler.event_loop_normal()"), ("?" + SC, "event_loop_overlap", "self.run_batch("), (SC, "run_batch", "forward_batch_generation("), (TW, "forward_batch_generation", "self.model_runner.forward("), (M, "forward", "self.forward_extend(||self._forward_raw("), ("?" + M, "_forward_raw", "self.forward_extend("), (M, "forward_extend", "self.model.forward(")],
 "fwd": [(P + "models/llama.py", "LlamaForCausalLM.forward", "self.model("), (P + "models/llama.py", "LlamaModel.forward", "layer("), (P + "models/llama.py", "LlamaDecoderLayer.forward", "self.mlp("), (P + "models/llama.py", "LlamaMLP.forward", "self.act_fn(")],
 "mm": [("?" + P + "models/qwen2_5_vl.py", "forward", "general_mm_embed_routine("), ("?" + P + "managers/mm_utils.py", "general_mm_embed_routine", "embed_mm_inputs("), ("?" + P + "managers/mm_utils.py", "embed_mm_inputs", "get_embedding_and_mask(||data_embedding_func("), ("?" + P + "models/qwen2_5_vl.py", "get_image_feature", "self.visual("), ("?" + P + "models/qwen2_5_vl.py", "Qwen2_5_VisionTransformer.forward", "blk(")],
 "sample": [("?" + TW, "forward_batch_generation", "self.model_runner.sample("), ("?" + M, "sample", "self.sampler("), (P + "layers/sampler.py", "forward", "torch.softmax(||top_k_top_p_sampling_from_probs(")],
 "logits": [(P + "layers/logits_processor.py", "forward", "self._get_logits(||torch.matmul("), ("?" + P + "layers/logits_processor.py", "_get_logits", "torch.matmul(")],
 "unbalanced": HEAD + [(M, "init_torch_distributed", "raise ValueError(||raise RuntimeError(")],
 "decode_oom": [(SC, "event_loop_overlap||event_loop_normal", "self.get_next_batch_to_run()"), ("?" + SC, "get_next_batch_to_run", "self.update_running_batch("), ("?" + SC, "update_running_batch", "batch.prepare_for_decode("), ("?" + P + "managers/schedule_batch.py", "prepare_for_decode", "alloc_for_decode(||self.alloc_token_slots(||self.alloc_token_slots"), ("?" + P + "managers/schedule_batch.py|" + P + "mem_cache/common.py", "alloc_token_slots", "raise RuntimeError(")],
 "spec_verify": [("?" + SC, "run_batch", "forward_batch_generation("), ("?" + P + "speculative/eagle_worker.py", "forward_batch_generation||forward_batch_speculative_generation", "self.verify("), ("?" + P + "speculative/eagle_worker.py", "verify", "prepare_for_verify("), ("?" + P + "speculative/eagle_info.py|" + P + "speculative/eagle_utils.py", "prepare_for_verify", "alloc_token_slots(")],
 "host": [("?" + P + "mem_cache/hiradix_cache.py", "__init__", "MHATokenToKVPoolHost("), ("?" + P + "mem_cache/memory_pool_host.py|" + P + "mem_cache/memory_pool.py", "HostKVCache.__init__", "raise ValueError(")],
}

SITES = {
 "vllm": {
  "failed": ("vllm/v1/engine/core.py", "EngineCore failed to start||EngineCore hit an exception"), "fatal": ("vllm/v1/engine/core.py", "encountered a fatal error||EngineCore hit an exception"),
  "worker_hit": ("vllm/v1/executor/multiproc_executor.py", "WorkerProc hit an exception"), "worker_start": ("vllm/v1/executor/multiproc_executor.py", "WorkerProc failed to start||WorkerProc hit"),
  "worker_died": ("vllm/v1/executor/multiproc_executor.py", "died unexpectedly"), "loading": ("vllm/v1/worker/gpu_model_runner.py", "Starting to load model"),
  "took": ("vllm/v1/worker/gpu_model_runner.py", "Model loading took"), "weights_took": ("vllm/model_executor/model_loader/default_loader.py|vllm/model_executor/model_loader/loader.py", "Loading weights took"),
  "available": ("vllm/v1/worker/gpu_worker.py", "Available KV cache memory"), "kv_size": ("vllm/v1/core/kv_cache_utils.py", "GPU KV cache size"), "concurrency": ("vllm/v1/core/kv_cache_utils.py", "Maximum concurrency"),
  "captured": ("vllm/v1/worker/gpu_model_runner.py", "Graph capturing finished"), "cg_profile": ("vllm/v1/worker/gpu_model_runner.py", "Profiling CUDA graph memory"),
  "cg_estimate": ("vllm/v1/worker/gpu_model_runner.py", "Estimated CUDA graph memory"), "compile": ("vllm/compilation/monitor.py", "torch.compile take||torch.compile took"),
  "dynamo": ("vllm/compilation/backends.py", "Dynamo bytecode transform"), "init_engine": ("vllm/v1/engine/core.py", "init engine (profile"), "stats": ("vllm/v1/metrics/loggers.py", "Avg prompt throughput"),
  "sleep": ("vllm/v1/worker/gpu_worker.py", "Sleep mode freed"), "encoder_budget": ("vllm/v1/worker/gpu_model_runner.py", "Encoder cache will be initialized"), "dump": ("vllm/logging_utils/dump_input.py", "Dumping input data"),
  "drafter": ("vllm/v1/worker/gpu_model_runner.py", "Loading drafter model"), "nccl": ("vllm/distributed/device_communicators/pynccl.py", "vLLM is using nccl"), "rank": ("vllm/distributed/parallel_state.py", "is assigned as"),
  "output_failed": ("vllm/v1/engine/async_llm.py", "output_handler failed"), "car": ("vllm/distributed/device_communicators/custom_all_reduce.py", "Registering %d"),
  "v0_took": ("vllm/worker/model_runner.py", "Loading model weights took||Model loading took"), "v0_engine": ("vllm/engine/multiprocessing/engine.py", "logger.exception(e)||logger.exception(repr(e))"), "v0_loop": ("vllm/engine/multiprocessing/engine.py", "logger.exception(repr(e))"), "v0_blocks": ("vllm/executor/executor_base.py|vllm/executor/gpu_executor.py", "# GPU blocks||# %s blocks"),
  "v0_conc": ("vllm/executor/executor_base.py|vllm/executor/gpu_executor.py", "Maximum concurrency"), "v0_cap": ("vllm/worker/model_runner.py", "Capturing cudagraphs for decoding||Capturing the model for CUDA graphs"),
  "v0_worker": ("vllm/executor/multiproc_worker_utils.py", "Exception in worker"), "v0_bg": ("vllm/engine/async_llm_engine.py", "Engine background task failed"), "v0_mm": ("vllm/worker/enc_dec_model_runner.py", "Starting profile run"),
  "v0_cap2": ("vllm/worker/model_runner.py", "CUDA graphs can take additional||If out-of-memory error occurs"), "v0_stats": ("vllm/engine/metrics.py", "Avg prompt throughput"),
  "v0_graph": ("vllm/worker/model_runner.py", "Graph capturing finished"), "v0_init": ("vllm/engine/llm_engine.py", "Initializing a"), "v0_swap": ("vllm/config.py", "Possibly too large swap space"), "v0_sleep": ("vllm/worker/worker.py", "Sleep mode freed"),
 },
}


def main():
    REPOSITORIES.update(word.split("=", 1) for word in sys.argv[1:])
    found, sites = {}, {}
    for repository, tags, chains in (("vllm", V1, V1_CHAINS), ("vllm", V0, V0_CHAINS), ("sglang", SGLANG, SGLANG_CHAINS)):
        for tag in tags:
            key = f"{repository} {tag[1:]}" + (" V0" if chains is V0_CHAINS else "")
            found[key] = {name: frames for name, rows in chains.items() if (frames := chain(repository, tag, rows))}
            sites[key] = {name: place for name, (path, pieces) in SITES.get(repository, {}).items()
                          if (place := next((p for piece in pieces.split("||") if (p := site(repository, tag, path, piece))), None))}
    pool = sorted({tuple(frame) for chains in found.values() for frames in chains.values() for frame in frames})
    number = {frame: i for i, frame in enumerate(pool)}
    with open(OUT, "w", encoding="utf-8") as file:
        file.write('{"frames": [\n' + ",\n".join(json.dumps(frame) for frame in pool) + '],\n"chains": {\n')
        file.write(",\n".join(json.dumps(key) + ": " + json.dumps({name: [number[tuple(f)] for f in frames] for name, frames in chains.items()}) for key, chains in found.items()))
        file.write('},\n"sites": {\n' + ",\n".join(json.dumps(key) + ": " + json.dumps(of) for key, of in sites.items()) + "}}\n")


if __name__ == "__main__":
    main()
