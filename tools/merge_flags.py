#!/usr/bin/env python3
"""Merge dumps of an engine's parser (dump_flags.py) into one table by version, data/engines/<engine>/flags.json.

    merge_flags.py OUTPUT INPUT...      an INPUT is a dump or an earlier OUTPUT, so one new version can be added alone

Fields are described in docs/reference/formats/engine-flags.md. What moves GPU memory is a judgement and is kept here by hand.
"""

import json
import re
import sys

# Flags that can move bytes on the device (or decide whether it starts), by dest, and why.
MEMORY = {
    "model": "everything begins with its config and weights",
    "model_tag": "the positional model",
    "hf_config_path": "another config.json",
    "config_format": "another config file (params.json)",
    "hf_overrides": "changes fields of config.json",
    "revision": "another config and other weights",
    "code_revision": "another implementation",
    "model_impl": "other layers, other activations",
    "model_class_overrides": "another implementation",
    "trust_remote_code": "decides whether a model can be built",
    "task": "pooling models have no sampler",
    "runner": "pooling models have no sampler",
    "convert": "adapters replace the output layer",
    "pooler_config": "pooling head",
    "override_pooler_config": "pooling head",
    "dtype": "weights, activations, KV cache",
    "quantization": "weights and their post-processing",
    "quantization_config": "weights and their post-processing",
    "load_format": "dummy, sharded, tensorizer and bitsandbytes load differently",
    "model_loader_extra_config": "streaming buffers, quantisation while loading",
    "pt_load_map_location": "where checkpoint tensors are first put",
    "safetensors_load_strategy": "host copies while loading",
    "max_parallel_loading_workers": "host copies while loading",
    "enable_ep_weight_filter": "expert weights read while loading",
    "rope_scaling": "the context a model claims",
    "rope_theta": "the rope table",
    "max_model_len": "KV check, block tables, rope tables",
    "max_seq_len_to_capture": "V0: largest sequence under a graph",
    "max_num_seqs": "logits and sampler, graph sizes, state blocks",
    "max_num_active_seqs": "logits and sampler, graph sizes",
    "max_num_batched_tokens": "activations of the profile run",
    "max_num_scheduled_tokens": "activations of the profile run",
    "max_num_partial_prefills": "changes the token budget's default",
    "max_long_partial_prefills": "changes the token budget's split",
    "long_prefill_token_threshold": "changes the token budget's split",
    "long_prefill_token_threshold_adaptive": "changes the token budget's split",
    "enable_chunked_prefill": "token budget follows the context when off",
    "disable_chunked_mm_input": "encoder budget",
    "gpu_memory_utilization": "the budget",
    "kv_cache_memory_bytes": "KV cache size, past the profile",
    "kv_cache_dtype": "bytes of a KV element",
    "kv_cache_dtype_skip_layers": "layers kept at full width",
    "calculate_kv_scales": "an extra pass and scales",
    "block_size": "page size",
    "num_gpu_blocks_override": "KV cache size",
    "enable_prefix_caching": "Mamba cache mode, block size",
    "prefix_cache_retention_interval": "state blocks kept for hybrid models",
    "prefix_match_unit": "block size of hybrid models",
    "enable_mamba_shared_prefix_checkpoint": "state blocks of hybrid models",
    "swa_bounded_replay": "blocks of sliding-window layers",
    "disable_sliding_window": "context and blocks per request",
    "disable_hybrid_kv_cache_manager": "KV groups and blocks per request",
    "kv_sharing_fast_prefill": "attention metadata",
    "swap_space": "host memory",
    "cpu_offload_gb": "weights left on the host",
    "cpu_offload_params": "weights left on the host",
    "offload_backend": "weights left on the host",
    "offload_group_size": "weights left on the host",
    "offload_num_in_group": "weights left on the host",
    "offload_params": "weights left on the host",
    "offload_prefetch_step": "buffers for weights on the way",
    "kv_offloading_size": "host KV cache",
    "kv_offloading_backend": "host KV cache",
    "kv_transfer_config": "connector buffers, KV layout",
    "ec_transfer_config": "encoder cache transfer buffers",
    "ec_manager_config": "encoder cache",
    "mamba_block_size": "state pages",
    "mamba_cache_dtype": "state bytes",
    "mamba_ssm_cache_dtype": "state bytes",
    "mamba_cache_mode": "state blocks per request",
    "mamba_backend": "state kernels and their scratch",
    "use_replayssm": "state buffers",
    "replayssm_buffer_len": "state buffers",
    "gdn_prefill_backend": "scratch of linear-attention prefill",
    "kda_prefill_backend": "scratch of linear-attention prefill",
    "kda_decode_backend": "scratch of linear-attention decode",
    "engram_config": "extra embedding tables",
    "diffusion_config": "block decoding: tokens per step",
    "tensor_parallel_size": "weights, KV heads, buffers per rank",
    "pipeline_parallel_size": "layers per rank",
    "data_parallel_size": "attention replicas, expert shards",
    "data_parallel_size_local": "engines on this node",
    "data_parallel_rank": "engines on this node",
    "data_parallel_start_rank": "engines on this node",
    "data_parallel_external_lb": "engines on this node",
    "data_parallel_hybrid_lb": "engines on this node",
    "data_parallel_multi_port_external_lb": "engines on this node",
    "api_server_count": "frontends with a CUDA context when multimodal work is on the GPU",
    "nnodes": "ranks on this node",
    "node_rank": "ranks on this node",
    "device_ids": "which devices",
    "prefill_context_parallel_size": "sequence per rank",
    "decode_context_parallel_size": "KV per rank",
    "cp_kv_cache_interleave_size": "KV layout under context parallelism",
    "dcp_kv_cache_interleave_size": "KV layout under context parallelism",
    "dcp_q_replicate": "query weights per rank",
    "dcp_comm_backend": "communication buffers",
    "enable_expert_parallel": "experts per rank",
    "enable_eplb": "redundant experts, rearrange buffers",
    "eplb_config": "redundant experts, rearrange buffers",
    "num_redundant_experts": "redundant experts",
    "enable_elastic_ep": "standby groups and buffers",
    "elastic_ep_max_dp_size": "standby groups and buffers",
    "all2all_backend": "dispatch buffers",
    "expert_placement_strategy": "experts per rank",
    "enable_dbo": "two micro-batches' buffers",
    "ubatch_size": "micro-batch buffers",
    "dbo_decode_token_threshold": "micro-batch buffers",
    "dbo_prefill_token_threshold": "micro-batch buffers",
    "enable_batch_sharded_sampling": "logits per rank",
    "enable_hc_sp": "activations per rank",
    "disable_custom_all_reduce": "custom all-reduce buffers",
    "distributed_executor_backend": "processes and contexts",
    "worker_cls": "another worker",
    "worker_extension_cls": "another worker",
    "scheduler_cls": "another scheduler",
    "device": "which platform",
    "enforce_eager": "no graphs, no compile",
    "compilation_config": "graph sizes, modes, passes",
    "cudagraph_capture_sizes": "graph pool",
    "cuda_graph_sizes": "graph pool",
    "max_cudagraph_capture_size": "graph pool",
    "optimization_level": "graphs, passes",
    "performance_mode": "graph sizes, token budget",
    "kernel_config": "kernel choice and its scratch, autotuning",
    "enable_flashinfer_autotune": "tuning scratch",
    "moe_backend": "MoE weights' layout and scratch",
    "linear_backend": "weights' layout and scratch",
    "ir_op_priority": "kernel choice",
    "sparse_indexer_topk_backend": "indexer scratch",
    "attention_backend": "workspace, block sizes allowed",
    "attention_config": "workspace, block sizes allowed",
    "disable_cascade_attn": "cascade scratch",
    "use_v2_block_manager": "V0 block manager",
    "num_lookahead_slots": "V0 slots per sequence",
    "scheduler_delay_factor": "V0 batch shape",
    "num_scheduler_steps": "V0 multi-step slots",
    "multi_step_stream_outputs": "V0 multi-step slots",
    "preemption_mode": "V0 swap or recompute",
    "async_scheduling": "a second batch's buffers",
    "speculative_config": "draft weights, draft KV, draft graphs",
    "speculative_model": "draft weights (0.8)",
    "num_speculative_tokens": "lookahead slots, logits per request (0.8)",
    "speculative_draft_tensor_parallel_size": "draft weights per rank (0.8)",
    "speculative_model_quantization": "draft weights (0.8)",
    "speculative_max_model_len": "draft KV (0.8)",
    "spec_model": "draft weights",
    "spec_method": "draft weights and graphs",
    "spec_tokens": "lookahead slots, logits per request",
    "enable_lora": "adapter slots",
    "enable_lora_bias": "adapter slots",
    "max_loras": "adapter slots",
    "max_lora_rank": "adapter slots",
    "max_cpu_loras": "host adapters",
    "max_lora_cls_labels": "adapter slots",
    "lora_dtype": "adapter slots",
    "lora_extra_vocab_size": "adapter slots, logits",
    "long_lora_scaling_factors": "rope tables per factor",
    "lora_modules": "adapters loaded at start",
    "lora_target_modules": "adapter slots",
    "fully_sharded_loras": "adapter slots per rank",
    "default_mm_loras": "adapters loaded at start",
    "enable_tower_connector_lora": "adapter slots of the vision tower",
    "enable_mixed_moe_lora_format": "adapter slots of experts",
    "enable_moe_shared_loras": "adapter slots of experts",
    "specialize_active_lora": "graphs per adapter count",
    "qlora_adapter_name_or_path": "an adapter loaded at start",
    "prompt_adapters": "prompt adapters loaded at start",
    "enable_prompt_adapter": "prompt adapter slots",
    "max_prompt_adapters": "prompt adapter slots",
    "max_prompt_adapter_token": "prompt adapter slots",
    "limit_mm_per_prompt": "encoder profile",
    "mm_processor_kwargs": "pixels, so encoder tokens",
    "media_io_kwargs": "frames, so encoder tokens",
    "mm_encoder_tp_mode": "encoder weights and activations per rank",
    "enable_multimodal_encoder_data_parallel": "encoder weights and activations per rank",
    "mm_encoder_fp8_scale_path": "encoder attention in fp8",
    "mm_encoder_only": "no language model",
    "mm_encoder_attn_backend": "encoder workspace",
    "mm_encoder_attn_dtype": "encoder activations",
    "mm_ipc_gpu_memory_gb": "GPU memory set aside for frontends",
    "mm_processor_device": "preprocessing on the GPU",
    "mm_device_do_normalize": "preprocessing on the GPU",
    "mm_tensor_ipc": "where preprocessed tensors live",
    "mm_processor_cache_gb": "host cache of preprocessed inputs",
    "mm_processor_cache_type": "host cache of preprocessed inputs",
    "disable_mm_preprocessor_cache": "host cache of preprocessed inputs",
    "enable_mm_embeds": "encoder profile",
    "skip_mm_profiling": "encoder profile left out",
    "interleave_mm_strings": "placeholder tokens per prompt",
    "language_model_only": "no encoder",
    "video_pruning_rate": "encoder tokens",
    "video_pruning_method": "encoder tokens",
    "enable_prompt_embeds": "prompt embedding buffers",
    "enable_sleep_mode": "the cumem pool",
    "enable_cumem_allocator": "the cumem pool",
    "sleep_mode_offload_cudagraph": "graph pool while asleep",
    "sleep_preserve_parameter_names": "weights kept while asleep",
    "enable_nccl_comm_suspend": "communicator buffers while asleep",
    "weight_transfer_config": "buffers for weight updates",
    "max_logprobs": "log-probabilities at run time",
    "logprobs_mode": "log-probabilities at run time",
    "logits_processors": "per-request sampler state",
    "logits_processor_pattern": "per-request sampler state",
    "use_fp64_gumbel": "sampler scratch",
    "return_sampling_mask": "sampler scratch",
    "aux_output_config": "buffers of extra outputs",
    "enable_return_routed_experts": "buffers of extra outputs",
    "additional_config": "platform plugins read it",
    "enable_layerwise_nvtx_tracing": "turns graphs into partial ones",
    "watermark_config": "sampler state",
    "trust_request_mm_kwargs": "requests may exceed the profiled encoder size",
    "enable_shm_tensor_arena": "host shared memory",
    "override_attention_dtype": "attention activations",
    "ngram_prompt_lookup_max": "speculation (0.8)",
    "ngram_prompt_lookup_min": "speculation (0.8)",
    "tokenizer_pool_size": "host memory",
    "use_gpu_for_pooling_score": "scoring on the GPU in the API server",
    "enable_bf16x3_router_gemm": "router weights split in three",
    "enable_flash_late_interaction": "scoring on the GPU in the API server",
}

# The same for SGLang: what its pools, its reserve, its graphs and its weights are sized by.
SGLANG_MEMORY = {
    "model_path": "everything begins with its config and weights",
    "revision": "another config and other weights",
    "json_model_override_args": "changes fields of config.json",
    "dtype": "weights, activations, KV cache",
    "quantization": "weights and their post-processing",
    "load_format": "dummy, sharded and bitsandbytes load differently",
    "kv_cache_dtype": "bytes of a token in the pool",
    "context_length": "the table of tokens of every request",
    "is_embedding": "no sampler, no cache between steps",
    "mem_fraction_static": "the share of weights and pool",
    "max_running_requests": "rows of the request table; sizes of graphs",
    "max_total_tokens": "bounds the pool",
    "chunked_prefill_size": "activations and the reserve for them",
    "max_prefill_tokens": "the reserve where prefill is not cut into chunks",
    "page_size": "the pool is rounded to pages",
    "swa_full_tokens_ratio": "how the pool is shared between full and sliding layers",
    "disable_hybrid_swa_memory": "sliding layers keep all tokens",
    "tp_size": "shares of weights and heads",
    "pp_size": "layers of a rank",
    "dp_size": "replicas, or attention shared between ranks",
    "enable_dp_attention": "attention is not cut by tensor parallelism",
    "ep_size": "experts of a rank",
    "dcp_size": "tokens are shared between ranks",
    "attn_cp_size": "prefill is shared between ranks",
    "enable_kv_cache_sharding": "tokens are shared between ranks",
    "disable_cuda_graph": "graphs and the reserve for them",
    "disable_prefill_cuda_graph": "graphs and the reserve for them",
    "disable_decode_cuda_graph": "graphs and the reserve for them",
    "disable_cuda_graph_padding": "a graph for every batch size",
    "cuda_graph_config": "graphs and the reserve for them",
    "cuda_graph_backend_decode": "graphs and the reserve for them",
    "cuda_graph_backend_prefill": "graphs and the reserve for them",
    "cuda_graph_max_bs_decode": "graphs and the reserve for them",
    "cuda_graph_max_bs_prefill": "graphs and the reserve for them",
    "cuda_graph_bs_decode": "graphs and the reserve for them",
    "cuda_graph_bs_prefill": "graphs and the reserve for them",
    "attention_backend": "workspaces, page size",
    "decode_attention_backend": "workspaces, page size",
    "prefill_attention_backend": "workspaces, page size",
    "sampling_backend": "workspaces",
    "enable_torch_compile": "compiled graphs",
    "enable_memory_saver": "pools that can be let go",
    "enable_lora": "adapters and their buffers",
    "lora_paths": "adapters and their buffers",
    "max_lora_rank": "adapters and their buffers",
    "max_loras_per_batch": "adapters and their buffers",
    "speculative_algorithm": "a draft model, its pool and its graphs",
    "speculative_draft_model_path": "a draft model",
    "speculative_num_draft_tokens": "graphs, the pool",
    "speculative_num_steps": "graphs, the pool",
    "moe_a2a_backend": "buffers between ranks",
    "max_mamba_cache_size": "recurrent states",
    "mamba_full_memory_ratio": "how the pool is shared with recurrent states",
    "mamba_ssm_dtype": "recurrent states",
    "cpu_offload_gb": "weights kept on the host",
    "offload_group_size": "weights kept on the host",
    "enable_hierarchical_cache": "host memory for the cache",
    "hicache_ratio": "host memory for the cache",
    "hicache_size": "host memory for the cache",
    "disaggregation_mode": "the reserve, graphs",
    "enable_unified_memory": "one pool for all kinds of layers",
    "enable_multimodal": "the encoder",
    "language_model_only": "the encoder",
    "language_only": "the encoder",
    "enable_symm_mem": "buffers between ranks",
}
MEMORY_OF = {"vllm": MEMORY, "sglang": SGLANG_MEMORY}

# A field of an option that the table keeps; the rest of a dump is for the eyes.
KEPT = (
    "names", "negative", "dest", "kind", "item", "nargs", "repeat", "stores", "choices",
    "default", "nullable", "auto", "suffixes", "folds", "pairs", "strict", "deprecated",
)
KEY_FIELDS = ("kind", "item", "choices", "default", "nullable")
SUFFIX_VALUES = {
    "1k": 10**3, "1K": 2**10, "1.5k": 1500, "1m": 10**6, "1M": 2**20, "1g": 10**9, "1G": 2**30, "1t": 10**12, "1T": 2**40,
}


def version_key(text):
    """0.8.5 < 0.8.5.post1 < 0.9.0"""
    numbers, _, post = text.partition(".post")
    return tuple(map(int, numbers.split("."))), int(post or 0)


def main_name(names):
    """The long spelling a flag is known by: dumps list aliases first in some releases and last in others."""
    long_names = [name for name in names if name.startswith("--")]
    return (long_names or names)[0]


def without_empty(record):
    """null, false, [] and {} mean the same as absent, save for a default or a stored value."""
    return {k: v for k, v in record.items() if v is not None and (k in ("default", "stores") or v not in (False, [], {}))}


def option_fields(option):
    """(name, fields, keys by name) of one option of a dump."""
    name = main_name(option["names"])
    fields = {field: option.get(field) for field in KEPT}
    fields["names"] = [name] + [other for other in option["names"] if other != name]
    fields["negative"] = option["negative"][0] if option.get("negative") else None
    if len(option.get("negative") or ()) > 1:
        raise SystemExit(f"merge_flags: {name}: more than one negative form: {option['negative']}")
    if option["kind"] in ("flag", "help", "bool-optional") or option["nargs"] is None:
        fields["nargs"] = None
    elif fields["nargs"] is not None:
        fields["nargs"] = str(fields["nargs"])
    suffixes = option.get("suffixes") or {}
    for text, value in suffixes.items():
        if SUFFIX_VALUES[text] != value:
            raise SystemExit(f"merge_flags: {name} reads {text} as {value}, not {SUFFIX_VALUES[text]}")
    fields["suffixes"] = "".join(letter for letter in "kKmMgGtT" if "1" + letter in suffixes) or None
    keys = {}
    for key in option.get("json_keys") or ():
        keys[key["name"]] = without_empty({field: key.get(field) for field in KEY_FIELDS})
        if "choices" in keys[key["name"]]:  # their order is the source's and moves between releases
            keys[key["name"]]["choices"].sort(key=str)
    return name, without_empty(fields), keys


def read_dump(dump):
    """{version: {name: (fields, keys, group)}} of one dump"""
    options = {}
    for option in dump["options"]:
        name, fields, keys = option_fields(option)
        if name in options:
            raise SystemExit(f"merge_flags: {dump['version']}: {name} twice")
        options[name] = (fields, keys, option.get("group") or "")
    return {dump["version"]: (options, dump.get("probes") or {})}


def at_version(record, versions, version, default_since):
    """The fields of a merged record in one version, or None where it does not exist."""
    order = versions.index
    since, until = record.get("since", default_since), record.get("until")
    if order(version) < order(since) or (until and order(version) > order(until)):
        return None
    skip = ("since", "until", "changes", "memory", "json_keys", "group", "name")
    fields = {k: v for k, v in record.items() if k not in skip}
    for change in record.get("changes", ()):
        if order(version) >= order(change["since"]):
            fields.update({k: v for k, v in change.items() if k != "since"})
    return {k: v for k, v in fields.items() if v is not None}


def read_table(table):
    """The dumps an earlier table was made of, as far as the table keeps them."""
    versions = table["versions"]
    by_version = {version: ({}, {}) for version in versions}
    for flag in table["flags"]:
        for version in versions:
            fields = at_version(flag, versions, version, versions[0])
            if fields is None:
                continue
            keys = {}
            for key in flag.get("json_keys", ()):
                key_fields = at_version(key, versions, version, flag["since"])
                if key_fields is not None:
                    keys[key["name"]] = key_fields
            by_version[version][0][flag["names"][0]] = (fields, keys, flag.get("group", ""))
    for rule in table["parser"]:
        for version in versions:
            answer = at_version(rule, versions, version, versions[0])
            if answer is not None:
                by_version[version][1][rule["name"]] = answer["result"]
    return by_version


def runs(versions, present):
    """Maximal stretches of consecutive versions in which something exists."""
    stretch = []
    for version in versions:
        if version in present:
            stretch.append(version)
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def merge_series(versions, by_version):
    """One record per unbroken stretch: the fields as first seen, then what changed and when."""
    for stretch in runs(versions, by_version):
        fields = by_version[stretch[0]]
        record, changes = dict(fields), []
        for version in stretch[1:]:
            now = by_version[version]
            changed = {k: now.get(k) for k in sorted(fields.keys() | now.keys()) if fields.get(k) != now.get(k)}
            if changed:
                changes.append({"since": version, **changed})
                fields = now
        record["since"] = stretch[0]
        if stretch[-1] != versions[-1]:
            record["until"] = stretch[-1]
        if changes:
            record["changes"] = changes
        yield record, stretch


def merge(by_version, engine):
    versions = sorted(by_version, key=version_key)
    flags = []
    for name in sorted({name for options, _ in by_version.values() for name in options}, key=lambda n: n.lstrip("-")):
        seen = {v: by_version[v][0][name] for v in versions if name in by_version[v][0]}
        for record, stretch in merge_series(versions, {v: fields for v, (fields, _, _) in seen.items()}):
            record["group"] = seen[stretch[-1]][2]
            record["memory"] = record["dest"] in MEMORY_OF[engine]
            key_names = sorted({key for v in stretch for key in seen[v][1]})
            keys = []
            for key in key_names:
                series = {v: seen[v][1][key] for v in stretch if key in seen[v][1]}
                for key_record, _ in merge_series(stretch, series):
                    if key_record["since"] == stretch[0]:
                        del key_record["since"]
                    keys.append({"name": key, **key_record})
            if keys:
                record["json_keys"] = keys
            flags.append(record)
    rules = []
    for name in sorted({name for _, probes in by_version.values() for name in probes}):
        series = {v: {"result": by_version[v][1][name]} for v in versions if name in by_version[v][1]}
        for record, _ in merge_series(versions, series):
            rules.append({"name": name, **record})
    return {"schema": "oomsight.engine-flags/1", "engine": engine, "versions": versions, "parser": rules, "flags": flags}


def write(table, out):
    """One record a line: small, and a diff shows one flag."""
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    out.write("{")
    for index, (field, value) in enumerate(table.items()):
        out.write(",\n" if index else "\n")
        if field in ("parser", "flags"):
            lines = ",\n".join(json.dumps(record, **compact) for record in value)
            out.write(f'"{field}":[\n{lines}\n]')
        else:
            out.write(f"{json.dumps(field)}:{json.dumps(value, **compact)}")
    out.write("\n}\n")


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    by_version, engines = {}, set()
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        engines.add(content["engine"])
        by_version.update(read_table(content) if "versions" in content else read_dump(content))
    if len(engines) != 1:
        raise SystemExit(f"merge_flags: dumps of {', '.join(sorted(engines))} in one table")
    table = merge(by_version, engines.pop())
    for version in table["versions"]:
        if not re.fullmatch(r"\d+\.\d+\.\d+(\.\d+)?(\.post\d+)?", version):
            raise SystemExit(f"merge_flags: odd version {version}")
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        write(table, out)
    dests = {record["dest"] for record in table["flags"]}
    stale = sorted(MEMORY_OF[table["engine"]].keys() - dests - {"model_tag"})
    print(f"{len(table['versions'])} versions, {len(table['flags'])} flags, {len(table['parser'])} parser rules")
    if stale:
        print("in MEMORY but in no parser:", ", ".join(stale), file=sys.stderr)


if __name__ == "__main__":
    main()
