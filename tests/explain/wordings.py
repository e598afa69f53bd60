#!/usr/bin/env python3
"""What explain makes of the words of engines, PyTorch and drivers: each stack or sentence below is printed in every dress
that loggers, containers and terminals give it, and the verdict must stay the same. usage: wordings.py BINARY [--all]. Without --all each stack gets four dresses, in turn."""
import itertools
import json
import re
import subprocess
import sys

SITE = "/opt/venv/lib/python3.12/site-packages/"
TORCH_212 = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU {gpu} has a total capacity of 44.40 GiB of which "
             "{free} is free. Including non-PyTorch memory, this process has 44.12 GiB memory in use. Of the allocated memory 42.61 GiB is "
             "allocated by PyTorch, and 311.20 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
             "setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
             "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)")
TORCH_20 = ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} (GPU {gpu}; 44.40 GiB total capacity; 42.61 GiB already "
            "allocated; {free} free; 42.91 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
            "max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF")
HIP = ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate {tried}. GPU {gpu} has a total capacity of 44.40 GiB of which {free} is "
       "free. Of the allocated memory 42.61 GiB is allocated by PyTorch, and 311.20 MiB is reserved by PyTorch but unallocated.")
ACCELERATOR = "torch.AcceleratorError: CUDA error: out of memory"
DRIVER = "RuntimeError: CUDA driver error: out of memory"
ERRORS = {"torch": TORCH_212, "torch 2.0": TORCH_20, "HIP": HIP, "AcceleratorError": ACCELERATOR, "driver": DRIVER}

# A stack: (file under site-packages, function, line of code). The first frames of every V1 start are the same.
CORE = [("vllm/v1/engine/core.py", "run_engine_core", "engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)"),
        ("vllm/v1/engine/core.py", "__init__", "super().__init__(vllm_config, executor_class, log_stats)")]
KV = CORE + [("vllm/v1/engine/core.py", "_initialize_kv_caches", "available_gpu_memory = self.model_executor.determine_available_memory()")]
WARM = CORE + [("vllm/v1/engine/core.py", "_initialize_kv_caches", "self.model_executor.initialize_from_config(kv_cache_configs)"),
               ("vllm/v1/executor/abstract.py", "initialize_from_config", 'self.collective_rpc("compile_or_warm_up_model")')]
CAPTURE = WARM + [("vllm/v1/worker/gpu_worker.py", "compile_or_warm_up_model", "cuda_graph_memory_bytes = self.model_runner.capture_model()")]
STEP = [("vllm/v1/engine/core.py", "run_busy_loop", "self._process_engine_step()"),
        ("vllm/v1/engine/core.py", "_process_engine_step", "outputs, model_executed = self.step_fn()"),
        ("vllm/v1/worker/gpu_worker.py", "execute_model", "output = self.model_runner.execute_model(scheduler_output, intermediate_tensors)")]
LOAD = CORE + [("vllm/v1/worker/gpu_worker.py", "load_model", "self.model_runner.load_model(eep_scale_up=eep_scale_up)"),
               ("vllm/v1/worker/gpu_model_runner.py", "load_model", "self.model = model_loader.load_model(")]
V0 = [("vllm/entrypoints/llm.py", "__init__", "self.llm_engine = LLMEngine.from_engine_args(engine_args)"),
      ("vllm/engine/llm_engine.py", "__init__", "self._initialize_kv_caches()")]

# name: (stack, phase, causes of which one must be named, errors it can end in)
ANY = ("torch", "HIP", "driver")
STACKS = {
    "model construction": (LOAD + [
        ("vllm/model_executor/model_loader/base_loader.py", "load_model", "model = initialize_model(vllm_config=vllm_config)"),
        ("vllm/model_executor/models/mixtral.py", "__init__", "self.start_layer, self.end_layer, self.layers = make_layers("),
        ("vllm/model_executor/layers/fused_moe/layer.py", "create_weights", "torch.empty(num_experts, 2 * intermediate_size, hidden_size)"),
        ("torch/utils/_device.py", "__torch_function__", "return func(*args, **kwargs)")], "weight_load", {"weights_exceed_gpu", "tp_needed"}, ANY),
    "capture, V0, cut": (V0 + [
        ("vllm/worker/worker.py", "warm_up_model", "self.model_runner.capture_model(self.gpu_cache)")], "cudagraph_capture", {"cudagraph_unbudgeted", "gmu_too_high_leaves_no_headroom"}, ANY),
    "encoder of another library": (KV + [
        ("vllm/v1/worker/gpu_model_runner.py", "profile_run", "self.model.get_multimodal_embeddings("),
        ("vllm/model_executor/models/transformers.py", "get_multimodal_embeddings", "vision_embeddings = self.model.get_image_features("),
        ("transformers/models/some_vl/modeling_some_vl.py", "get_image_features", "image_embeds = self.visual(pixel_values, grid_thw=image_grid_thw)")],
        "mm_profile", {"mm_encoder_peak"}, ANY),
    "parameters made by PyTorch": (CORE + [
        ("vllm/model_executor/models/transformers.py", "meta_to_empty", "module.to_empty(device=self.device_config.device)"),
        ("torch/nn/modules/module.py", "to_empty", "return self._apply("),
        ("torch/nn/modules/module.py", "_apply", "param_applied = fn(param)")], "weight_load", {"weights_exceed_gpu", "tp_needed"}, ANY),
    "checkpoint reading": (LOAD + [
        ("vllm/model_executor/model_loader/default_loader.py", "load_weights", "loaded_weights = model.load_weights("),
        ("vllm/model_executor/models/gemma2.py", "load_weights", "weight_loader(param, loaded_weight, shard_id)")],
        "weight_load", {"weights_exceed_gpu", "tp_needed"}, ANY),
    "repack": (LOAD + [
        ("vllm/model_executor/model_loader/base_loader.py", "load_model", "process_weights_after_loading(model, model_config, target_device)"),
        ("vllm/model_executor/model_loader/utils.py", "process_weights_after_loading", "quant_method.process_weights_after_loading(module)"),
        ("vllm/model_executor/layers/quantization/gptq_marlin.py", "process_weights_after_loading", "marlin_w13_qweight = ops.gptq_marlin_moe_repack("),
    ], "quant_postprocess", {"quant_repack_peak", "weights_exceed_gpu"}, ANY),
    "profile run": (KV + [
        ("vllm/v1/worker/gpu_worker.py", "determine_available_memory", "self.model_runner.profile_run()"),
        ("vllm/v1/worker/gpu_model_runner.py", "profile_run", "hidden_states, last_hidden_states = self._dummy_run(self.max_num_tokens, is_profile=True)"),
        ("vllm/v1/worker/gpu_model_runner.py", "_dummy_run", "outputs = self.model("),
        ("vllm/model_executor/models/llama.py", "forward", "hidden_states = self.mlp(hidden_states)"),
        ("vllm/model_executor/layers/activation.py", "forward_cuda", "out = torch.empty(output_shape, dtype=x.dtype, device=x.device)")],
        "profile_run", {"activation_peak"}, ANY),
    "profile run, V2 runner": (KV + [
        ("vllm/v1/worker/gpu_worker.py", "determine_available_memory", "self.model_runner.profile_run()"),
        ("vllm/v1/worker/gpu/model_runner.py", "profile_run", "hidden_states, sample_hidden_states = self._dummy_run("),
        ("vllm/v1/worker/gpu/model_runner.py", "_dummy_run", "self.execute_model(dummy_scheduler_output, dummy_run=True)"),
        ("vllm/v1/worker/gpu/model_runner.py", "execute_model", "model_output = self.model(**model_inputs)")],
        "profile_run", {"activation_peak"}, ANY),
    "profile run, V0": (V0 + [
        ("vllm/engine/llm_engine.py", "_initialize_kv_caches", "self.model_executor.determine_num_available_blocks())"),
        ("vllm/worker/worker.py", "determine_num_available_blocks", "self.model_runner.profile_run()"),
        ("vllm/worker/model_runner.py", "profile_run", "self.execute_model(model_input, kv_caches, intermediate_tensors)"),
        ("vllm/worker/model_runner.py", "execute_model", "hidden_or_intermediate_states = model_executable("),
        ("vllm/model_executor/models/qwen2.py", "forward", "hidden_states = self.mlp(hidden_states)")], "profile_run", {"activation_peak"}, ("torch", "torch 2.0")),
    "profile run, 0.2": ([
        ("vllm/engine/llm_engine.py", "_init_cache", 'num_blocks = self._run_workers("profile_num_available_blocks",'),
        ("vllm/worker/worker.py", "profile_num_available_blocks", "self.model_runner.profile_run()"),
        ("vllm/worker/model_runner.py", "profile_run", "self.execute_model(seqs, kv_caches)"),
        ("vllm/model_executor/layers/sampler.py", "forward", "logits = _get_logits(hidden_states, embedding)")], "profile_run", {"activation_peak", "logits_peak"},
        ("torch", "torch 2.0")),
    "encoder profile": (KV + [
        ("vllm/v1/worker/gpu_worker.py", "determine_available_memory", "self.model_runner.profile_run()"),
        ("vllm/v1/worker/gpu_model_runner.py", "profile_run", "dummy_encoder_outputs = self.model.embed_multimodal("),
        ("vllm/model_executor/models/internvl.py", "extract_feature", "vit_embeds = self.vision_model(pixel_values=pixel_values)")],
        "mm_profile", {"mm_encoder_peak"}, ANY),
    "graph profile": (KV + [
        ("vllm/v1/worker/gpu_worker.py", "determine_available_memory", "cudagraph_memory_estimate = self.model_runner.profile_cudagraph_memory()"),
        ("vllm/v1/worker/gpu_model_runner.py", "profile_cudagraph_memory", "self._init_minimal_kv_cache_for_profiling()"),
        ("vllm/v1/worker/gpu_model_runner.py", "_init_minimal_kv_cache_for_profiling", "self.initialize_kv_cache(minimal_config, is_profiling=True)"),
        ("vllm/v1/worker/gpu_model_runner.py", "_allocate_kv_cache_tensors", "tensor = torch.zeros(kv_cache_tensor.size, dtype=torch.int8, device=self.device)")],
        "cudagraph_profile", {"cudagraph_unbudgeted"}, ANY),
    "graph profile, V2 runner": (KV + [
        ("vllm/v1/worker/gpu_worker.py", "determine_available_memory", "cudagraph_memory_estimate = self.model_runner.profile_cudagraph_memory()"),
        ("vllm/v1/worker/gpu/cudagraph_utils.py", "profile_cudagraph_memory", "_init_minimal_kv_cache_for_profiling(runner)"),
        ("vllm/v1/worker/utils.py", "allocate_kv_cache", "raw = torch.zeros(total, dtype=torch.int8, device=device)")], "cudagraph_profile", {"cudagraph_unbudgeted"}, ANY),
    "cache tensors": (CORE + [
        ("vllm/v1/engine/core.py", "_initialize_kv_caches", "self.model_executor.initialize_from_config(kv_cache_configs)"),
        ("vllm/v1/worker/gpu_worker.py", "initialize_from_config", "self.model_runner.initialize_kv_cache(kv_cache_config)"),
        ("vllm/v1/worker/gpu_model_runner.py", "initialize_kv_cache", "kv_caches = self.initialize_kv_cache_tensors(kv_cache_config)"),
        ("vllm/v1/worker/gpu_model_runner.py", "_allocate_kv_cache_tensors", "tensor = torch.zeros(kv_cache_tensor.size,")],
        "kv_alloc", {"gmu_too_high_leaves_no_headroom", "other_process_holds_memory"}, ANY),
    "cache tensors, 0.29": (CORE + [
        ("vllm/v1/worker/gpu_worker.py", "initialize_from_config", "self.model_runner.initialize_kv_cache(kv_cache_config)"),
        ("vllm/v1/worker/utils.py", "allocate_kv_cache", "raw = torch.zeros(total, dtype=torch.int8, device=device)")],
        "kv_alloc", {"gmu_too_high_leaves_no_headroom", "other_process_holds_memory"}, ANY),
    "cache tensors, V0": (V0 + [
        ("vllm/worker/worker.py", "initialize_cache", "self._init_cache_engine()"),
        ("vllm/worker/cache_engine.py", "_allocate_kv_cache", "torch.zeros(kv_cache_shape, dtype=self.dtype, pin_memory=pin_memory, device=device))")],
        "kv_alloc", {"gmu_too_high_leaves_no_headroom", "other_process_holds_memory"}, ("torch", "torch 2.0")),
    "cache tensors, 0.2": ([
        ("vllm/engine/llm_engine.py", "_init_cache", 'self._run_workers("init_cache_engine", cache_config=self.cache_config)'),
        ("vllm/worker/worker.py", "init_cache_engine", "self.cache_engine = CacheEngine(self.cache_config, self.model_config,"),
        ("vllm/worker/cache_engine.py", "allocate_gpu_cache", "key_blocks = torch.empty(")], "kv_alloc", {"gmu_too_high_leaves_no_headroom", "other_process_holds_memory"},
        ("torch", "torch 2.0")),
    "kernel warm-up": (WARM + [
        ("vllm/v1/worker/gpu_worker.py", "compile_or_warm_up_model", "kernel_warmup(self)"),
        ("vllm/model_executor/warmup/kernel_warmup.py", "kernel_warmup", "flashinfer_autotune(worker.model_runner)"),
        ("vllm/model_executor/warmup/kernel_warmup.py", "flashinfer_autotune", "runner._dummy_run(runner.scheduler_config.max_num_batched_tokens)")],
        "compile", {"runtime_workspace_unprofiled"}, ANY),
    "capture": (CAPTURE + [
        ("vllm/v1/worker/gpu_model_runner.py", "capture_model", "self._capture_cudagraphs("),
        ("vllm/v1/worker/gpu_model_runner.py", "_dummy_run", "outputs = self.model("),
        ("vllm/compilation/cuda_graph.py", "__call__", "output = self.runnable(*args, **kwargs)")], "cudagraph_capture", {"cudagraph_unbudgeted", "gmu_too_high_leaves_no_headroom"}, ANY),
    "capture, V2 runner": (CAPTURE + [
        ("vllm/v1/worker/gpu/model_runner.py", "capture_model", "self.cudagraph_manager.capture("),
        ("vllm/v1/worker/gpu/cudagraph_utils.py", "capture", "forward_fn(CUDAGraphMode.NONE)"),
        ("vllm/v1/worker/gpu/model_runner.py", "execute_model", "model_output = self.model(**model_inputs)")], "cudagraph_capture",
        {"cudagraph_unbudgeted", "gmu_too_high_leaves_no_headroom"}, ANY),
    "capture, V0": (V0 + [
        ("vllm/worker/worker.py", "_warm_up_model", "self.model_runner.capture_model(self.gpu_cache)"),
        ("vllm/worker/model_runner.py", "capture_model", "graph_runner.capture(**capture_inputs)"),
        ("vllm/worker/model_runner.py", "capture", "with torch.cuda.graph(self._graph, pool=memory_pool, stream=stream):")], "cudagraph_capture",
        {"cudagraph_unbudgeted", "gmu_too_high_leaves_no_headroom"}, ("torch", "torch 2.0", "AcceleratorError")),
    "sampler warm-up": (WARM + [
        ("vllm/v1/worker/gpu_worker.py", "compile_or_warm_up_model", "self.model_runner._dummy_sampler_run(hidden_states=last_hidden_states)"),
        ("vllm/v1/worker/gpu_model_runner.py", "_dummy_sampler_run", "sampler_output = self.sampler(logits=logits, sampling_metadata=dummy_metadata)"),
        ("vllm/v1/sample/ops/topk_topp_sampler.py", "apply_top_k_top_p", "logits_sort, logits_idx = logits.sort(dim=-1, descending=False)")],
        "sampler_warmup", {"gmu_too_high_leaves_no_headroom", "logits_peak"}, ANY),
    "sampler warm-up, V2 runner": (CORE + [
        ("vllm/v1/worker/gpu_worker.py", "compile_or_warm_up_model", "warmup_kernels(self.model_runner, self.execute_model, self.sample_tokens)"),
        ("vllm/v1/worker/gpu/warmup.py", "warmup_kernels", "worker_sample_tokens(grammar_output)"),
        ("vllm/v1/worker/gpu_worker.py", "sample_tokens", "return self.model_runner.sample_tokens(grammar_output)"),
        ("vllm/v1/worker/gpu/sample/sampler.py", "__call__", "sampled = self.sample(logits,")], "sampler_warmup", {"gmu_too_high_leaves_no_headroom", "logits_peak"}, ANY),
    "served prefill": (STEP + [
        ("vllm/v1/worker/gpu_model_runner.py", "execute_model", "model_output = self._model_forward("),
        ("vllm/model_executor/models/qwen3_moe.py", "forward", "hidden_states = self.mlp(hidden_states)"),
        ("vllm/model_executor/layers/fused_moe/fused_moe.py", "fused_experts_impl", "intermediate_cache13 = torch.empty(")],
        "runtime_prefill", {"gmu_too_high_leaves_no_headroom", "activation_peak"}, ANY),
    "served image": (STEP + [
        ("vllm/v1/worker/gpu_model_runner.py", "_execute_mm_encoder", "curr_group_outputs = model.embed_multimodal(**mm_kwargs_group)"),
        ("vllm/model_executor/models/qwen2_5_vl.py", "_process_image_input", "image_embeds = self.visual(pixel_values, grid_thw=grid_thw_list)")],
        "runtime_prefill", {"mm_encoder_peak"}, ANY),
    "served image, cut above": ([
        ("vllm/v1/worker/gpu_model_runner.py", "_execute_mm_encoder", "curr_group_outputs = model.embed_multimodal(**mm_kwargs_group)"),
        ("vllm/model_executor/models/qwen2_5_vl.py", "_process_image_input", "image_embeds = self.visual(pixel_values, grid_thw=grid_thw_list)")],
        "runtime_prefill", {"mm_encoder_peak"}, ANY),
    "served sampler": (STEP + [
        ("vllm/v1/worker/gpu_model_runner.py", "_sample", "return self.sampler("),
        ("vllm/v1/sample/sampler.py", "forward", "sampled, processed_logprobs = self.sample(logits, sampling_metadata)")],
        "runtime_sampler", {"logits_peak", "gmu_too_high_leaves_no_headroom"}, ANY),
    "served sampler, two calls": (STEP[:2] + [
        ("vllm/v1/worker/gpu_worker.py", "sample_tokens", "return self.model_runner.sample_tokens(grammar_output)"),
        ("vllm/v1/worker/gpu_model_runner.py", "sample_tokens", "sampler_output = self._sample(logits, spec_decode_metadata)"),
        ("vllm/v1/sample/ops/topk_topp_sampler.py", "forward_native", "logits = self.apply_top_k_top_p(logits, k, p)")],
        "runtime_sampler", {"logits_peak", "gmu_too_high_leaves_no_headroom"}, ANY),
    "prompt logprobs": (STEP + [
        ("vllm/v1/worker/gpu_model_runner.py", "_get_prompt_logprobs_dict", "logprobs = self.sampler.compute_logprobs(logits)")],
        "runtime_sampler", {"logits_peak"}, ANY),
    "served prefill, V0": ([
        ("vllm/engine/async_llm_engine.py", "run_engine_loop", "result = task.result()"),
        ("vllm/engine/async_llm_engine.py", "step_async", "outputs = await self.model_executor.execute_model_async("),
        ("vllm/worker/model_runner.py", "execute_model", "hidden_or_intermediate_states = model_executable("),
        ("vllm/model_executor/models/llama.py", "forward", "hidden_states = self.mlp(hidden_states)")], "runtime_prefill",
        {"gmu_too_high_leaves_no_headroom", "activation_peak"}, ("torch", "torch 2.0")),
    "wake-up": ([
        ("vllm/v1/worker/gpu_worker.py", "wake_up", "allocator.wake_up(tags)"),
        ("vllm/device_allocator/cumem.py", "wake_up", "create_and_map(handle)")], "sleep_wake", {"sleep_wake_competitor", "other_process_holds_memory"}, ("driver",)),
    "communicator": (CORE + [
        ("vllm/v1/worker/gpu_worker.py", "init_device", "init_worker_distributed_environment("),
        ("vllm/distributed/device_communicators/pynccl.py", "__init__", "self.comm: ncclComm_t = self.nccl.ncclCommInitRank(")],
        "distributed_init", {"nccl_buffers", "gmu_too_high_leaves_no_headroom"}, ("driver", "AcceleratorError")),
}

# No release logs at these lines: what a line number tells of the stage (data/explain/loggers.json) is shown elsewhere.
DRESSES = {
    "bare": "{}",
    "0.8": "ERROR 05-23 09:31:47 [core.py:397] {}",
    "engine core": "(EngineCore_DP0 pid=2150) ERROR 06-29 11:22:29 [core.py:1230] {}",
    "worker": "(Worker_TP1 pid=3264436) ERROR 07-14 09:50:23 [multiproc_executor.py:866] {}",
    "old worker": "(VllmWorker rank=3 pid=3013) ERROR 03-20 03:14:59 [multiproc_executor.py:378] {}",
    "Ray": "(RayWorkerWrapper pid=206994, ip=10.0.0.2) ERROR 03-27 10:29:13 [worker_base.py:620] {}",
    "torchrun": "[rank0]: {}",
    "raw traceback": "(EngineCore pid=104) {}",
    "compose": "vllm-1  | (EngineCore_DP0 pid=74) ERROR 05-07 00:37:03 [core.py:1137] {}",
    "timestamped": "2026-06-09T14:01:54.604123456Z (EngineCore_DP0 pid=74) ERROR 05-07 00:37:03 [core.py:1137] {}",
    "build log": "[2025-12-13T19:54:35Z] (Worker_TP0 pid=9260) ERROR 12-13 11:54:35 [multiproc_executor.py:826] {}",
    "syslog": "Nov 15 05:07:41 gpu-01 vllm[4242]: (EngineCore_DP0 pid=74) ERROR 05-07 00:37:03 [core.py:1137] {}",
    "supervisor": "2026-06-09 14:01:54.604 [Info] (Process) (EngineCore_DP0 pid=74) ERROR 06-09 14:01:54 [core.py:1137] {}",
    "colour": "\x1b[0;36m(EngineCore_DP0 pid=74)\x1b[0;0m ERROR 05-07 00:37:03 [core.py:1137] {}",
    "quoted": "> {}",
}


# Their last two frames look the same in a start and in a served step.
UNDECIDED = {"profile run", "profile run, V0", "sampler warm-up, V2 runner", "served prefill", "served prefill, V0"}


def stack_lines(stack, error, style):
    lines = ["Traceback (most recent call last):"]
    for number, (path, function, code) in enumerate(stack):
        lines.append(f'  File "{SITE}{path}", line {120 + 7 * number}, in {function}')
        if style != "no code":
            lines.append("    " + code)
        if style == "carets":
            lines.append("    " + "^" * len(code))
    if error:
        lines.append(error.format(tried="212.00 MiB", free="93.31 MiB", gpu=0))
    return lines


def wrap(text, columns=100):
    return "\n".join(line[at:at + columns] for line in text.split("\n") for at in range(0, max(len(line), 1), columns))


def markdown(lines):
    """What a page makes of it: underscores at either end of a name are emphasis, and spaces at the beginning of a line are none."""
    return "\n".join(re.sub(r"\b__(\w+?)__\b", r"\1", line).lstrip() for line in lines)


def paragraph(lines, prefix="(Worker_TP1 pid=77) ERROR 01-01 00:00:00 [multiproc_executor.py:821] "):
    """All in one line, as some forms keep it; each line's prefix stays."""
    return " ".join(prefix + line.strip() for line in lines)


# Sentences: (text, is_oom, phase or None, causes or None)
SENTENCES = {
    "free memory, 0.9": ("ValueError: Free memory on device (11.02/23.64 GiB) on startup is less than desired GPU memory utilization (0.9, 21.27 GiB). "
                         "Decrease GPU memory utilization or reduce GPU memory used by other processes.", True, "init_free_memory_check", {"other_process_holds_memory"}),
    "free memory, 0.14": ("ValueError: Free memory on device cuda:3 (11.02/23.64 GiB) on startup is less than desired GPU memory utilization (0.9, 21.27 GiB).",
                          True, "init_free_memory_check", {"other_process_holds_memory"}),
    "no blocks": ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.", True, "kv_sizing", {"gmu_too_low"}),
    "context, 0.8": ("ValueError: To serve at least one request with the models's max seq len (32768), (4.50 GiB KV cache is needed, which is larger than the "
                     "available KV cache memory (2.21 GiB). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
                     True, "kv_sizing", {"context_too_long_for_kv"}),
    "context, V0": ("ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache (8176). Try increasing "
                    "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.", True, "kv_sizing", {"context_too_long_for_kv"}),
    "auto-fit": ("ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. Try increasing `gpu_memory_utilization`.",
                 True, "kv_sizing", None),
    "states": ("ValueError: max_num_seqs (256) exceeds available Mamba cache blocks (91). Each decode sequence requires one Mamba cache block, so CUDA graph capture "
               "cannot proceed. Please lower max_num_seqs to at most 91 or increase gpu_memory_utilization.", True, "kv_sizing", {"state_cache_slots"}),
    "sampler": ("RuntimeError: CUDA out of memory occurred when warming up sampler with 512 dummy requests. Please try lowering `max_num_seqs` or "
                "`gpu_memory_utilization` when initializing the engine.", True, "sampler_warmup", {"gmu_too_high_leaves_no_headroom", "logits_peak"}),
    "pooler": ("RuntimeError: CUDA out of memory occurred when warming up pooler (task=embed) with 512 dummy requests. Please try lowering `max_num_seqs` or "
               "`gpu_memory_utilization` when initializing the engine.", True, "sampler_warmup", {"gmu_too_high_leaves_no_headroom", "logits_peak"}),
    "profiling, 0.4": ("AssertionError: Error in memory profiling. This happens when the GPU memory was not properly cleaned up before initializing the vLLM instance.",
                       True, "profile_run", {"profiling_accounting_bug"}),
    "load failed": ("ERROR 01-01 00:00:00 [gpu_model_runner.py:5396] Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization to free memory "
                    "for weights, increasing --tensor-parallel-size, or using --quantization.", True, "weight_load", {"weights_exceed_gpu", "tp_needed"}),
    "linear weights": ("RuntimeError: Failed to create unquantized linear weights. This may be caused by insufficient memory to allocate the weight.",
                       True, "weight_load", {"weights_exceed_gpu", "tp_needed"}),
    "no free blocks": ("ValueError: Out of memory! No free blocks are available.", True, "runtime_other", None),
    "CPU backend": ("ValueError: Available memory on node 0 (10.2/62.7 GiB) on startup is less than desired CPU memory utilization (0.9, 56.43 GiB). On the CPU backend, "
                    "the `--gpu-memory-utilization` flag controls the fraction of CPU memory reserved (despite its name).", True, "host_memory", {"host_ram"}),
    "external weights": ("ValueError: Externally held weights on device cuda:1 (70.5/79.11 GiB) exceed the desired GPU memory utilization (0.85, 67.24 GiB).",
                         True, "init_free_memory_check", None),
    "decoder budget": ("ValueError: frontend multimodal GPU decoding reserves 4.0 GiB (3.0 GiB raw-frame budget, 1.0 GiB decoder cache budget), but only 3.2 GiB is "
                       "available for the KV cache.", True, "kv_sizing", {"gmu_too_low", "mm_encoder_peak"}),
    "fraction": ("torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. "
                 "Requested size: 2.00 GiB", True, None, None),
    "cuBLAS": ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True, None, None),
    "cuDNN": ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", True, None, None),
    "cuSOLVER": ("RuntimeError: cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`", True, None, None),
    "Triton": ("RuntimeError: Triton Error [CUDA]: out of memory", True, None, None),
    "NCCL": ("gpu-01:77:90 [0] include/alloc.h:228 NCCL WARN Cuda failure 2 'out of memory'", True, "distributed_init", {"nccl_buffers"}),
    "NCCL calloc": ("gpu-01:77:90 [2] include/alloc.h:178 NCCL WARN Failed to CUDA calloc 6291456 bytes", True, "distributed_init", {"nccl_buffers"}),
    "shared memory": ("gpu-01:77:90 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-qwJzQ1 to 33030532 bytes", True, "distributed_init", {"shm_too_small"}),
    "no space": ("OSError: [Errno 28] No space left on device: '/dev/shm/psm_5030d6c2'", True, "distributed_init", {"shm_too_small"}),
    "bus error": ("Fatal Python error: Bus error", True, "distributed_init", {"shm_too_small"}),
    "bus error of a data loader": ("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).", True, "runtime_other", {"shm_too_small"}),
    "TensorFlow's pinned memory": ("2026-01-02 03:04:05.123456: E tensorflow/stream_executor/cuda/cuda_driver.cc:893] failed to alloc 268435456 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: "
                                   "out of memory", True, "host_memory", {"host_ram"}),
    "TensorRT-LLM, no frames": ("[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, mCudaStream->get()): out of memory", True, None, {"weights_exceed_gpu"}),
    "killed pod": ("    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137", True, "host_memory", {"host_ram"}),
    "kernel kill": ("[12345.678901] Out of memory: Killed process 4242 (VLLM::EngineCor) total-vm:98765432kB, anon-rss:61234567kB, file-rss:0kB", True, "host_memory", {"host_ram"}),
    "cgroup kill": ("Memory cgroup out of memory: Killed process 4242 (python3) total-vm:98765432kB", True, "host_memory", {"host_ram"}),
    "Ray kill": ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", True, "host_memory", {"host_ram"}),
    "Ray threshold": ("Memory on the node (IP: 10.0.0.7, ID: ab12) where the task (actor ID: cd34, name=RayWorkerWrapper.__init__, pid=77, memory used=41.15GB) was running "
                      "was 61.02GB / 64.00GB (0.953438), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: ef56).", True, "host_memory", {"host_ram"}),
    "Ray tail": ("Refer to the documentation on how to address the out of memory issue: https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html.",
                 True, "host_memory", {"host_ram"}),
    "resume": ("[torch_memory_saver.cpp] cudaError error: 2 (out of memory)  file=csrc/core.cpp func=resume line=99", True, "sleep_wake", {"sleep_wake_competitor"}),
    "load, another program": ("2026-01-01T00:00:00Z CRITICAL box.start - could not load model: CUDA failed with error out of memory", True, "weight_load", {"weights_exceed_gpu"}),
    "logger of a server": ("ERROR 01-01 00:00:00 [async_llm_engine.py:68] " + TORCH_212.format(tried="618.00 MiB", free="93.31 MiB", gpu=0), True, "runtime_prefill",
                           {"gmu_too_high_leaves_no_headroom", "activation_peak"}),
    "Triton, served": ("(APIServer pid=1) INFO 01-01 00:00:00 [loggers.py:123] Engine 000: Avg prompt throughput: 12.1 tokens/s, Running: 2 reqs\n(Worker_TP3 pid=7) ERROR 01-01 00:00:00 "
                       "[multiproc_executor.py:1020] RuntimeError: Triton Error [CUDA]: out of memory", True, "runtime_other", {"gmu_too_high_leaves_no_headroom"}),
    "worker died": ("ChildProcessError: worker died (-9)", False, "not_oom", {"insufficient_info"}),
    "elastic": ("  exitcode  : -9 (pid: 4242)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 4242", False, "not_oom", {"insufficient_info"}),
    "driver of shared memory": ("INFO 01-01 00:00:00 [default_loader.py:430] Loading weights took 9.60 seconds\nNVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] "
                                "(0x00000051) returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1359", True, None, {"unified_memory_accounting"}),
    "cut at a call": ("  File \"/opt/fork/vllm/worker/own_worker.py\", line 7, in get_ready\n    self.model_runner.capture_model(self.gpu_cache)\n" + DRIVER, True, "cudagraph_capture", None),
    "bad_alloc": ("terminate called after throwing an instance of 'std::bad_alloc'", True, "host_memory", {"host_ram"}),
    "CPU allocator": ("RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 17179869184 bytes. "
                      "Error code 12 (Cannot allocate memory)", True, "host_memory", {"host_ram"}),
    "numpy": ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000, 1000) and data type float64", True, "host_memory", {"host_ram"}),
    "MemoryError": ("Traceback (most recent call last):\n  File \"run.py\", line 3, in <module>\n    x = bytearray(n)\nMemoryError", True, "host_memory", {"host_ram"}),
    "swap": ("ValueError: Too large swap space. 16.00 GiB out of the 15.51 GiB total CPU memory is allocated for the swap space.", True, "host_memory", {"host_ram"}),
    "NPU": ("RuntimeError: NPU out of memory. Tried to allocate 4.64 GiB (NPU 0; 60.97 GiB total capacity; 55.13 GiB already allocated; 55.13 GiB current active; "
            "2.11 GiB free; 55.53 GiB reserved in total by PyTorch)", True, None, None),
    "XPU": ("torch.OutOfMemoryError: XPU out of memory. Tried to allocate 9.26 GiB. GPU 0 has a total capacity of 15.91 GiB. Of the allocated memory 14.33 GiB is "
            "allocated by PyTorch, and 118.92 MiB is reserved by PyTorch but unallocated.", True, None, None),
    "XPU runtime": ("RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", True, None, None),
    "MPS": ("RuntimeError: MPS backend out of memory (MPS allocated: 17.94 GB, other allocations: 41.72 MB, max allowed: 18.13 GB). Tried to allocate 250.00 MB on private pool.",
            True, None, None),
    "TensorFlow": ("tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[8,1024,151936] and type float on "
                   "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc", True, None, None),
    "XLA": ("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.", True, None, None),
    "TPU": ("RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 17.21G of 15.75G hbm.", True, None, None),
    "TensorRT-LLM": ("[TensorRT-LLM][ERROR] [executor] CUDA runtime error in cudaMallocAsync: out of memory (/src/tensorrt_llm/runtime/bufferManager.h:171)", True, None, None),
    "TensorRT": ("[TRT] [E] 2: [virtualMemoryBuffer.cpp::resizePhysical::145] Error Code 2: OutOfMemory (no further information)", True, None, None),
    "LMDeploy": ("terminate called after throwing an instance of 'std::runtime_error'\n  what():  [TM][ERROR] CUDA runtime error: out of memory /lmdeploy/src/turbomind/utils/memory_utils.cu:32",
                 True, None, None),
    "candle": ('Error: DriverError(CUDA_ERROR_OUT_OF_MEMORY, "out of memory") while loading model.safetensors', True, None, None),
    "ggml": ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8192.00 MiB on device 0: cudaMalloc failed: out of memory\nllama_model_load: error loading model: "
             "unable to allocate CUDA0 buffer", True, "weight_load", {"weights_exceed_gpu"}),
    "ggml cache": ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8192.00 MiB on device 0: cudaMalloc failed: out of memory\nalloc_tensor_range: failed to allocate "
                   "CUDA0 buffer of size 8589934592\nllama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache", True, "kv_alloc", None),
    "Vulkan": ("ggml_vulkan: Device memory allocation of size 1073741824 failed.\nggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory", True, None, None),
    "Ollama": ("Error: model requires more system memory (31.1 GiB) than is available (15.2 GiB)", True, "host_memory", {"host_ram"}),
    "SGLang": ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", True, "kv_sizing", None),
    "accelerate": ("ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.", True, "weight_load", {"weights_exceed_gpu", "tp_needed"}),
    "async allocator": ("!!! Exception during processing !!! Allocation on device ", True, None, None),
    "MPS figures": ("RuntimeError: MPS backend out of memory (MPS allocated: 8.21 GiB, other allocations: 1.02 GiB, max allowed: 9.07 GiB). Tried to allocate 312.50 MiB on "
                    "private pool.", True, None, {"activation_peak"}),
    "old PyTorch": ("RuntimeError: CUDA out of memory. Tried to allocate 14.00 MiB (GPU 0; 7.93 GiB total capacity; 7.31 GiB already allocated; 3.12 MiB free; 21.40 MiB cached)",
                    True, None, {"activation_peak", "weights_exceed_gpu"}),
    "nothing held yet": ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 40.00 GiB. GPU 0 has a total capacity of 31.98 GiB of which 31.70 GiB is free. Of the "
                         "allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.", True, None, None),
    "ggml compute": ("llama_kv_cache_update: failed to allocate compute buffers\nggml_backend_cuda_buffer_type_alloc_buffer: allocating 512.00 MiB on device 1: cudaMalloc "
                     "failed: out of memory\nggml_gallocr_reserve_n: failed to allocate CUDA1 buffer of size 536870912", True, "kv_alloc", {"activation_peak"}),
    "ggml pool": ("CUDA error: out of memory\n  current device: 0, in function ggml_cuda_pool_malloc_vmm at ggml-cuda.cu:441\n  cuMemCreate(&handle, reserve_size, &prop, 0)",
                  True, "runtime_other", {"activation_peak"}),
    "TRT-LLM engine": ("RuntimeError: [TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, stream): out of memory (/src/cpp/runtime/tllmBuffers.h:99)\n"
                       "3       0x7f00 tensorrt_llm::runtime::TllmRuntime::TllmRuntime(void const*, unsigned long, nvinfer1::ILogger&) + 593", True, "weight_load", {"weights_exceed_gpu"}),
    "TRT-LLM step": ("RuntimeError: Encountered an error in forwardAsync function: [TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync: out of memory "
                     "(/src/cpp/runtime/tllmBuffers.h:125)", True, "runtime_other", None),
    "TGI prefill": ("2025-02-03T10:11:12.131415Z ERROR batch{batch_size=2}:prefill:prefill{id=4 size=2}:prefill{id=4 size=2}: text_generation_client: Server error: CUDA out of "
                    "memory. Tried to allocate 410.00 MiB.", True, "runtime_prefill", None),
    "vGPU layer": ("[4pdvGPU ERROR (pid:7 thread=1 multiprocess_memory_limit.c:277)]: device OOM encountered: usage=6442450944 limit=5368709120", True, None, {"slice_total_mismatch"}),
    "torchrun kill": ("  exitcode  : -9 (pid: 411)\n  traceback : Signal 9 (SIGKILL) received by PID 411", False, "not_oom", {"insufficient_info"}),
    "SGLang pool": ("RuntimeError: Prefill out of memory. Try to lower your batch size.\nTry to allocate 4096 tokens.\nAvailable tokens: 3120", True, "runtime_prefill",
                    {"context_too_long_for_kv"}),
    "Kubernetes status": ("        exitCode: 137\n        reason: Error", False, "not_oom", {"insufficient_info"}),
    "evicted": ("The node was low on resource: memory. Container server was using 61Gi, request is 8Gi", True, "host_memory", {"host_ram"}),
    "cgroup, older kernels": ("[ 812.1] Task in /docker/1f killed as a result of limit of /docker/1f", True, "host_memory", {"host_ram"}),
    "Ollama kill": ("Error: llama runner process has terminated: signal: killed", True, "host_memory", {"host_ram"}),
    "TPU, older": ("RuntimeError: Resource exhausted: From /job:tpu_worker/replica:0/task:0:\nAttempting to reserve 3.10G at the bottom of memory. That was not possible.", True, None,
                   {"activation_peak"}),
    "Paddle": ("ResourceExhaustedError: Out of memory error on GPU 0. Cannot allocate 48.000244MB memory on GPU 0, 7.500000GB memory has been allocated and available memory is only "
               "12.000000MB.", True, None, {"activation_peak", "other_process_holds_memory"}),
    "ONNX Runtime": ("onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Failed to allocate memory for requested buffer of size 1207959552", True, None, {"activation_peak"}),
    "MLX": ("RuntimeError: [metal::malloc] Attempting to allocate 41231686144 bytes which is greater than the maximum allowed buffer size of 28991029248 bytes.", True,
            "runtime_other", {"activation_peak"}),
    "Metal": ("libc++abi: terminating due to uncaught exception of type std::runtime_error: [METAL] Command buffer execution failed: Insufficient Memory "
              "(00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", True, "runtime_other", {"activation_peak"}),
    "ggml, Metal": ("ggml_metal_add_buffer: buffer 'data' size 18300780544 is larger than buffer maximum of 17179869184", True, "weight_load", {"weights_exceed_gpu"}),
    "exllama": ("RuntimeError: Insufficient VRAM in split for model and cache", True, "weight_load", {"weights_exceed_gpu"}),
    "TRT-LLM, Python": ("RuntimeError: CUDA ERROR: 2, error code reference: https://nvidia.github.io/cuda-python/module/cudart.html", True, None, None),
    "old Torch, host": ("RuntimeError: $ Torch: not enough memory: you tried to allocate 12GB. Buy new RAM! at /pytorch/torch/lib/TH/THGeneral.c:270", True, "host_memory", {"host_ram"}),
    "SGLang, host tier": ("ValueError: Not enough host memory available. Requesting 64.00 GB but only have 41.20 GB free. Please reduce the size of the hierarchical cache.", True,
                          "host_memory", {"host_ram"}),
    "ggml cache, host": ("ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 137438953504\nllama_kv_cache_init: failed to allocate buffer for kv cache", True,
                         "host_memory", {"host_ram"}),
    # What only sounds like memory.
    "CTranslate2, loading": ('  File "faster_whisper\\transcribe.py", line 77, in __init__\nRuntimeError: CUDA failed with error out of memory', True, "weight_load",
                             {"weights_exceed_gpu"}),
    "SGLang, start": ('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 900.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 212.00 MiB is free. Including '
                      'non-PyTorch memory, this process has 78.90 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 150.00 MiB is reserved by '
                      'PyTorch but unallocated.\nTraceback (most recent call last):\n  File "/opt/sglang/srt/managers/scheduler.py", line 900, in init_model_worker\n'
                      '    self.init_tp_model_worker()', True, "weight_load", None),
    "SGLang retracts": ("[2026-01-02 03:04:05 TP3] Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.1474 -> 0.1845", False, "not_oom", None),
    "SGLang retracts, newer": ("[2026-01-02 03:04:05] KV cache pool is full. Retract requests. #retracted_reqs: 4, #new_tokens_gained: 8120, #new_token_ratio: 0.45 -> 0.60", False,
                               "not_oom", None),
    "TensorFlow goes on": ("W tensorflow/core/bfc_allocator.cc:246] Allocator (GPU_0_bfc) ran out of memory trying to allocate 570.66MiB. The caller indicates that this is not a "
                           "failure, but may mean that there could be performance gains if more memory were available.", False, "not_oom", None),
    "TRT-LLM workspace": ("[TensorRT-LLM][WARNING] Attention workspace size is not enough, increase the size from 0 bytes to 67462144 bytes", False, "not_oom", None),
    "pinned, another reason": ("ggml_cuda_host_malloc: failed to allocate 812.00 MiB of pinned memory: system has unsupported display driver / cuda driver combination", False,
                               "not_oom", {"driver_or_env_mismatch"}),
    "SGLang watchdog": ("[2026-01-02 03:04:05 TP0] Watchdog timeout (self.watchdog_timeout=300)\n[2026-01-02 03:04:09] Received sigquit from a child proces.\nKilled", False,
                        "not_oom", None),
    "SGLang accounting": ("ValueError: token_to_kv_pool_allocator memory leak detected! available_size=1200, protected_size=0, self.max_total_num_tokens=1208\n"
                          "[2026-01-02 03:04:05] Received sigquit from a child process. It usually means the child failed.\n./serve.sh: line 4: 9921 Killed   python -m "
                          "sglang.launch_server", False, "not_oom", {"engine_bug"}),
    "a file called allocator": ("RuntimeError: [TM][ERROR] CUDA runtime error: operation not supported /src/turbomind/utils/allocator.h:163", False, "not_oom", None),
    "chatter": ("INFO 01-01 00:00:00 [x.py:1] CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider decreasing "
                "`gpu_memory_utilization` or enforcing eager mode.", False, "not_oom", None),
    "swap warning": ("WARNING 01-01 00:00:00 config.py:427] Possibly too large swap space. 16.00 GiB out of the 31.20 GiB total CPU memory is allocated for the swap space.", False, "not_oom", None),
    "profiler advice": ("WARNING 01-01 00:00:00 [gpu_worker.py:500] CUDA graph memory profiling is disabled. Without it, CUDA graph memory is not accounted for during KV cache "
                        "allocation, which may require lowering --gpu-memory-utilization to avoid OOM.", False, "not_oom", None),
    "illegal access": ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", False, "not_oom", {"kernel_fault"}),
    "wrapper": ("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}", False, None, None),
    "dead": ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.", False, None, None),
    "on-chip memory of a TPU": ("RuntimeError: Bad StatusOr access: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space vmem. Used 24.10M of 16.00M "
                                "vmem. Exceeded vmem capacity by 8.10M", False, "not_oom", {"bad_config"}),
    "a node that is gone": ("(raylet) The node has been marked dead because the detector has missed too many heartbeats from it. This can happen when a (1) raylet crashes unexpectedly (OOM, "
                            "preempted node, etc.)", False, "not_oom", None),
    "LMCache's pool is full": ("[2026-01-02 03:04:05,678] LMCache WARNING: Failed to allocate memory for tensor(torch.Size([2, 32, 256, 1024]), torch.bfloat16) because no memory is "
                               "available (memory_management.py:444:lmcache.v1.memory_management)", False, "not_oom", {"bad_config"}),
    "shared memory of a kernel": ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 114688, Hardware limit: 101376. Reducing block sizes or "
                                  "`num_stages` may help.", False, "not_oom", None),
    "registers of a kernel": ("ERROR:torch._inductor.select_algorithm:Exception No valid triton configs. OutOfMemoryError: out of resource: triton_mm Required: 262144 Hardware "
                              "limit:232448 Reducing block sizes or `num_stages` may help.", False, "not_oom", None),
    "NCCL usage": ("RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)", False, "not_oom", None),
    "disk": ("OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/tmp1'", False, "not_oom", None),
    "served": ("INFO 01-01 00:00:00 [loggers.py:123] Engine 000: Avg prompt throughput: 12.1 tokens/s, Avg generation throughput: 28.2 tokens/s, Running: 2 reqs, Waiting: 0 "
               "reqs, GPU KV cache usage: 99.9%, Prefix cache hit rate: 0.5%", False, "not_oom", {"healthy_log"}),
    "preempted": ("WARNING 01-01 00:00:00 scheduler.py:1057] Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can "
                  "affect the end-to-end performance. Increase gpu_memory_utilization or tensor_parallel_size to provide more KV cache memory.", False, "not_oom", {"healthy_log", "insufficient_info"}),
    "port": ("OSError: [Errno 98] Address already in use", False, "not_oom", {"network_or_ipc"}),
    "context of a prompt": ("ValueError: This model's maximum context length is 4096 tokens. However, you requested 5120 tokens", False, "not_oom", None),
    "too long": ("ValueError: User-specified max_model_len (131072) is greater than the derived max_model_len (max_position_embeddings=32768 in model's config.json).",
                 False, "not_oom", {"bad_config"}),
}


def cases(everything):
    for at, (name, (stack, phase, causes, errors)) in enumerate(STACKS.items()):
        some = [(list(DRESSES)[(4 * at + i) % len(DRESSES)], errors[i % len(errors)]) for i in range(4)]
        for dress, error in itertools.product(DRESSES, errors) if everything else some:
            lines = stack_lines(stack, ERRORS[error], "carets" if dress == "engine core" else "no code" if dress == "Ray" else "plain")
            yield f"{name}, {dress}, {error}", "\n".join(DRESSES[dress].format(line) for line in lines), True, phase, causes
        yield f"{name}, wrapped", wrap("\n".join(stack_lines(stack, ERRORS[errors[0]], "plain"))), True, phase, causes
        yield f"{name}, Windows", "\r\n".join(stack_lines(stack, ERRORS[errors[0]], "plain")), True, phase, causes
        if name not in UNDECIDED:
            yield f"{name}, tail", "\n".join(stack_lines(stack, ERRORS[errors[0]], "plain")[-5:]), True, phase, causes
        yield f"{name}, Markdown", markdown(stack_lines(stack, ERRORS[errors[0]], "plain")), True, phase, causes
        yield f"{name}, one paragraph", paragraph(stack_lines(stack, ERRORS[errors[0]], "plain")), True, phase, causes
        yield f"{name}, passed on", "\n".join(
            stack_lines(stack, ERRORS[errors[0]], "plain") + ["RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"]), True, phase, causes
    for name, (text, is_oom, phase, causes) in SENTENCES.items():
        yield name, text, is_oom, phase, causes
        if "INFO" in text or "WARNING" in text or "ERROR 0" in text or "\n" in text:
            continue
        for dress in ("engine core", "compose", "torchrun") if everything else ("engine core",):
            yield f"{name}, {dress}", DRESSES[dress].format(text), is_oom, phase, causes


def main():
    wrong = total = 0
    for name, text, is_oom, phase, causes in cases("--all" in sys.argv):
        run = subprocess.run([sys.argv[1], "explain", "--json", "-"], input=(text + "\n").encode(), capture_output=True, check=False)
        answers = [json.loads(line) for line in run.stdout.decode().splitlines()]
        first = answers[0] if answers else {"is_oom": None, "phase": None, "cause": None, "also": []}
        named = {first["cause"], *first["also"]}
        total += 1
        ok = len(answers) == 1 and first["is_oom"] == is_oom and phase in (None, first["phase"]) and (causes is None or named & causes)
        if not ok:
            wrong += 1
            print(f"wrong: {name}: {len(answers)} answers, is_oom {first['is_oom']}, {first['phase']}, {sorted(named)}; expected {is_oom}, {phase}, {sorted(causes or [])}")
    print(f"{total - wrong} of {total} verdicts as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
