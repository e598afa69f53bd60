"""From vLLM's resolved configuration to the words of a command, and the device as the engine's platform names it. Nothing is
decided here, and nothing is caught: the plugin takes a configuration that cannot be read for one that cannot be planned."""
import json
from typing import Any, Dict, List, Optional


def reach(config: Any, path: str) -> Any:
    """config.a.b.c, None where a part is missing."""
    for name in path.split("."):
        config = getattr(config, name, None)
        if config is None:
            return None
    return config


def plain(value: Any) -> str:
    """torch.bfloat16 -> bfloat16, an enum -> its name, the rest as it prints."""
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else str(value).replace("torch.", "")


VALUES = (("model_config.dtype", "--dtype"), ("model_config.max_model_len", "--max-model-len"),
          ("model_config.quantization", "--quantization"), ("model_config.revision", "--revision"),
          ("parallel_config.tensor_parallel_size", "--tensor-parallel-size"),
          ("parallel_config.pipeline_parallel_size", "--pipeline-parallel-size"),
          ("parallel_config.data_parallel_size", "--data-parallel-size"),
          ("cache_config.gpu_memory_utilization", "--gpu-memory-utilization"), ("cache_config.cache_dtype", "--kv-cache-dtype"),
          ("cache_config.kv_cache_memory_bytes", "--kv-cache-memory-bytes"),
          ("cache_config.num_gpu_blocks_override", "--num-gpu-blocks-override"),
          ("scheduler_config.max_num_seqs", "--max-num-seqs"),
          ("scheduler_config.max_num_batched_tokens", "--max-num-batched-tokens"),
          ("offload_config.uva.cpu_offload_gb", "--cpu-offload-gb"), ("cache_config.cpu_offload_gb", "--cpu-offload-gb"),
          ("lora_config.max_loras", "--max-loras"), ("lora_config.max_lora_rank", "--max-lora-rank"))
SWITCHES = (("model_config.enforce_eager", "--enforce-eager"), ("model_config.enable_sleep_mode", "--enable-sleep-mode"),
            ("parallel_config.enable_expert_parallel", "--enable-expert-parallel"),
            ("model_config.multimodal_config.language_model_only", "--language-model-only"),
            ("model_config.multimodal_config.skip_mm_profiling", "--skip-mm-profiling"), ("lora_config", "--enable-lora"),
            ("lora_config.fully_sharded_loras", "--fully-sharded-loras"))


def graphs(config: Any) -> Optional[str]:
    """What the engine resolved for CUDA graphs, as --compilation-config."""
    found: Dict[str, Any] = {}
    mode, top = reach(config, "compilation_config.cudagraph_mode"), reach(config, "compilation_config.max_cudagraph_capture_size")
    sizes = reach(config, "compilation_config.cudagraph_capture_sizes")
    if mode is not None:
        found["cudagraph_mode"] = plain(mode)
    if isinstance(sizes, (list, tuple)) and sizes:
        found["cudagraph_capture_sizes"] = [int(size) for size in sizes]
    elif isinstance(top, int):
        found["max_cudagraph_capture_size"] = top
    return json.dumps(found) if found else None


def drafts(config: Any) -> Optional[str]:
    tokens, method = reach(config, "speculative_config.num_speculative_tokens"), reach(config, "speculative_config.method")
    if not tokens:
        return None
    found: Dict[str, Any] = {"num_speculative_tokens": int(tokens)}
    if method:
        found["method"] = plain(method)
    model = reach(config, "speculative_config.model")
    if model and model != reach(config, "model_config.model"):
        found["model"] = str(model)
    return json.dumps(found)


def command_of(config: Any) -> List[str]:
    """`vllm serve ...` with every default resolved as this engine has resolved it."""
    words = ["vllm", "serve", str(config.model_config.model)]
    for path, flag in VALUES:
        value = reach(config, path)
        if value is None or value == 0 or (flag == "--quantization" and reach(config, "model_config.hf_config.quantization_config")):
            continue
        words += [flag, plain(value)]
    for path, flag in SWITCHES:
        if reach(config, path):
            words.append(flag)
    if reach(config, "cache_config.user_specified_block_size"):
        words += ["--block-size", str(config.cache_config.block_size)]
    for flag, value in (("--compilation-config", None if reach(config, "model_config.enforce_eager") else graphs(config)),
                        ("--speculative-config", drafts(config))):
        if value:
            words += [flag, value]
    limits = reach(config, "model_config.multimodal_config.limit_per_prompt")
    if isinstance(limits, dict) and limits and all(isinstance(limit, int) for limit in limits.values()):
        words += ["--limit-mm-per-prompt", json.dumps(limits)]
    return words


def device_of() -> Dict[str, Any]:
    """Name and size of the device, without touching CUDA: workers that are forked later must find it untouched."""
    from vllm.platforms import current_platform  # type: ignore[import-not-found,unused-ignore]

    found: Dict[str, Any] = {"gpu": str(current_platform.get_device_name(0))}
    capability = current_platform.get_device_capability(0)
    if capability is not None:
        found["compute_capability"] = "%d.%d" % (capability[0], capability[1])
    return found
