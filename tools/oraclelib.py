"""What the starts of tests/oracle/stacks.py tell: in which stage a stack stands. Used by record_frames.py and tests/oracle/score_failing.py."""

import json
import os
import re

ENCODER = {"embed_multimodal", "get_multimodal_embeddings", "profile_encoder_cache", "_process_image_input", "_process_video_input"}
CONNECT = {"init_distributed_environment", "init_worker_distributed_environment", "ensure_model_parallel_initialized",
           "initialize_model_parallel", "prepare_communication_buffer_for_model"}
SAMPLER = {"_dummy_sampler_run", "_dummy_pooler_run"}
SAMPLING = {"_sample", "sample_tokens", "sample", "compute_logits"}  # logits are part of it
SAMPLING_FILES = ("sample/", "sampler", "logits_processor")


def stage_of(frames):
    """The stage of a whole stack, [(path, function)] with the outermost first; None: not one of the engine's. The functions named
    here are the engine's own steps: a whole stack holds them, an excerpt may not."""
    names = {f for _, f in frames}
    if "wake_up" in names:
        return "sleep_wake"
    if "profile_cudagraph_memory" in names:
        return "cudagraph_profile"
    if names & {"check_enough_kv_cache_memory", "_check_enough_kv_cache_memory", "get_kv_cache_configs", "get_kv_cache_config"}:
        return "kv_sizing"
    if "process_weights_after_loading" in names or "_process_weights_after_loading" in names:
        return "quant_postprocess"
    if "load_model" in names:
        return "weight_load"
    if names & CONNECT:
        return "distributed_init"
    if "init_device" in names or "request_memory" in names:
        return "init_free_memory_check"
    if "determine_available_memory" in names:
        return "mm_profile" if names & ENCODER else "profile_run"
    if "compile_or_warm_up_model" in names:
        if "capture_model" in names:
            return "cudagraph_capture"
        sampling = names & SAMPLER or ("warmup_kernels" in names and
                                       (names & SAMPLING or any(s in p for p, _ in frames for s in SAMPLING_FILES)))
        return "sampler_warmup" if sampling else "compile"
    if "initialize_from_config" in names or "initialize_kv_cache" in names:
        return "kv_alloc"
    if names & {"execute_model", "sample_tokens"}:
        if names & {"_execute_mm_encoder", "execute_mm_encoder"}:
            return "runtime_prefill"
        if names & SAMPLING or any(s in p for p, _ in frames for s in SAMPLING_FILES):
            return "runtime_sampler"
        forward = any("/models/" in p or "compilation/" in p for p, _ in frames)
        return "runtime_prefill" if forward else "runtime_other"
    return None


def ours(path):
    return "oomsight_" in path or path.endswith("failing.py")


def read_stacks(folder):
    """[(version, way, row)] of every start in the folder; the frames of a row have the outermost first."""
    for name in sorted(os.listdir(folder)):
        version, _, way = name.partition("-")
        inside = os.path.join(folder, name)
        for file in sorted(os.listdir(inside)) if way and os.path.isdir(inside) else []:
            if not file.startswith("stacks-"):
                continue
            with open(os.path.join(folder, name, file), encoding="utf-8") as lines:
                for line in lines:
                    try:
                        row = json.loads(line)
                    except ValueError:  # cut off where the process was ended
                        continue
                    row["stack"] = [(p, n, f) for p, n, f in reversed(row["stack"]) if not ours(p)]
                    yield version, way, row


def read_ends(folder):
    """[(version, way, end, frames)] of every start of failing.py; an end with an error has the frames of its failure, the outermost first."""
    for name in sorted(os.listdir(folder)):
        version, _, way = name.partition("-")
        inside = os.path.join(folder, name)
        for file in sorted(os.listdir(inside)) if way and os.path.isdir(inside) else []:
            if file.endswith(".json"):
                with open(os.path.join(inside, file), encoding="utf-8") as text:
                    end = json.load(text)
                yield version, way, end, [(re.sub(r".*-packages/", "", p), f) for p, f in end["functions"] if not ours(p)]
