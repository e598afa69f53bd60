"""What the SGLang that is installed says of a command (oomsight_ask.py): its parser, its resolving of arguments, its model config, and its classes
built without memory."""
import contextlib
import os
import sys

import oomsight_ask as asking

NAME = "sglang"
SCALE = 64 << 30  # bytes for which its pool is sized


def view(args):
    """The arguments as they are resolved: until 0.5.19 or so they stand in the record itself."""
    try:
        from sglang.srt.arg_groups.overrides import resolving_view
    except ImportError:
        return args
    return resolving_view(args)


def model_of(args):
    from sglang.srt.configs.model_config import ModelConfig
    return ModelConfig.from_server_args(args)


def sizes_of(phase):
    """Of graphs, ascending."""
    if phase is None or "disabled" in str(phase.backend).lower():
        return []
    return sorted({int(size) for size in phase.bs or []})


def values(args, model):
    """Under the names that a plan has for them, or else its own. What this release does not have is left out."""
    found, put = asking.values()
    graphs = getattr(args, "cuda_graph_config", None)
    put("architecture", lambda: model.hf_config.architectures[0], str)
    put("dtype", lambda: model.dtype, asking.word)
    put("kv_cache_dtype", lambda: args.kv_cache_dtype, asking.word)
    put("quantization", lambda: model.quantization, asking.word)
    put("tensor_parallel_size", lambda: args.tp_size)
    put("pipeline_parallel_size", lambda: args.pp_size)
    put("expert_parallel_size", lambda: args.ep_size)
    put("attention_replicas", lambda: args.attn_dp_size)
    put("max_model_len", lambda: model.context_len, int)
    put("max_num_seqs", lambda: args.max_running_requests)
    put("max_num_batched_tokens", lambda: args.chunked_prefill_size)
    put("max_prefill_tokens", lambda: args.max_prefill_tokens)
    put("gpu_memory_utilization", lambda: args.mem_fraction_static, float)
    put("page_size", lambda: args.page_size)
    put("attention_backend", lambda: args.attention_backend, asking.word)
    put("prefix_caching", lambda: not args.disable_radix_cache, bool)
    put("async_scheduling", lambda: not args.disable_overlap_schedule, bool)
    put("speculative_method", lambda: args.speculative_algorithm, asking.word)
    put("speculative_steps", lambda: args.speculative_num_steps)
    put("speculative_tokens", lambda: args.speculative_num_draft_tokens)
    put("capture_sizes", lambda: sizes_of(graphs.decode))
    put("prefill_capture_sizes", lambda: len(sizes_of(graphs.prefill)))
    put("prefill_capture_top", lambda: sizes_of(graphs.prefill)[-1] if sizes_of(graphs.prefill) else 0)
    put("capture_top", lambda: graphs.decode.max_bs)
    return found


# ---- what its own classes take, built without memory ----

class Sizes:
    """What is asked of a group of PyTorch."""

    def __init__(self, rank, size):
        self.rank, self.size = lambda: rank, lambda: size


class Group:
    """A group of ranks, of which this is one; nothing is sent."""
    pynccl_comm = ca_comm = device_communicator = mq_broadcaster = None
    local_rank = 0
    local_size = 1

    def __init__(self, group_ranks, *told, group_name=None, rank=0, **more):
        self.ranks = next(ranks for ranks in group_ranks if rank in ranks)
        self.rank, self.world_size, self.unique_name = rank, len(self.ranks), group_name
        self.rank_in_group = self.ranks.index(rank)
        self.device_group = self.cpu_group = Sizes(self.rank_in_group, self.world_size)
        self.first_rank, self.last_rank = self.ranks[0], self.ranks[-1]
        self.is_first_rank, self.is_last_rank = rank == self.first_rank, rank == self.last_rank

    def barrier(self):
        pass

    def all_gather_object(self, told):
        return [told] * self.world_size

    def broadcast_object(self, told=None, src=0):
        return told


def placed(args, config, stage):
    """This process as the first rank of that stage, by the engine's own layout."""
    import torch
    from sglang.srt import runtime_context
    from sglang.srt.distributed import bootstrap, parallel_state
    settled = view(args)
    ranks = settled.tp_size * settled.pp_size
    rank = stage * settled.tp_size
    runtime_context.publish(args, role="scheduler", ranks=runtime_context.SpawnRanks(world_rank=rank, dp_rank=0 if settled.dp_size > 1 else None, gpu_id=0))
    torch.distributed.is_initialized = lambda: True
    torch.distributed.get_world_size = lambda group=None: group.size() if isinstance(group, Sizes) else ranks
    torch.distributed.get_rank = lambda group=None: group.rank() if isinstance(group, Sizes) else rank
    torch.distributed.get_backend = lambda group=None: "nccl"
    parallel_state.init_model_parallel_group = lambda group_ranks, *told, **more: Group(group_ranks, group_name=more.get("group_name"), rank=rank)
    parallel_state.init_world_group = lambda ranks, *told, **more: Group([ranks], group_name="world", rank=rank)
    for name in ("_TP", "_ATTN_TP", "_ATTN_CP", "_DCP", "_SHARED_EXPERTS_TP", "_MOE_DP", "_MOE_EP", "_MOE_TP", "_PP", "_SELF_PP", "_WORLD"):
        setattr(parallel_state, name, None)
    parallel_state.init_distributed_environment(world_size=ranks, rank=rank, local_rank=0, backend="nccl")
    parallel_state.initialize_model_parallel()
    from sglang.srt.layers.dp_attention import initialize_dp_attention
    initialize_dp_attention(server_args=args)
    with contextlib.suppress(ImportError, TypeError):
        from sglang.srt.layers.moe import initialize_moe_config
        initialize_moe_config()  # else experts are built for another runner than the command's
    bootstrap.initialize_layernorm_sp(model_config=config)


def build(args, config):
    """The model as its loader makes it, before any weight is read."""
    import torch
    from sglang.srt.model_loader import loader
    from sglang.srt.model_loader.utils import set_default_torch_dtype
    from sglang.srt.configs.load_config import LoadConfig
    load = LoadConfig(load_format="dummy")
    quantised = loader._get_quantization_config(config, load)
    with set_default_torch_dtype(config.dtype), torch.device("meta"):
        return loader._initialize_model(config, load, quantised)


def pool(args, config, model):
    """How many tokens its own sizing puts into SCALE bytes."""
    from sglang.srt.configs.model_config import AttentionArch
    from sglang.srt.model_executor import model_runner as runner
    from sglang.srt.runtime_context import get_model, get_parallel, get_schedule
    settled = view(args)
    algorithm = runner.SpeculativeAlgorithm.from_string(settled.speculative_algorithm)
    said, dtype = runner.kv_cache_dtype.configure_kv_cache_dtype(
        server_args_kv_cache_dtype=get_model().kv_cache_dtype, model=model, model_dtype=config.dtype, is_draft_worker=False, is_dflash=algorithm.is_dflash_family(),
        speculative_draft_attention_backend=None, speculative_draft_kv_cache_dtype=settled.speculative_draft_kv_cache_dtype)
    layers = runner.resolve_layer_indices(model=model, model_config=config, is_draft_worker=False)
    drafts = runner.resolve_spec_aux_hidden_state_config(server_args=args, model_config=config, spec_algorithm=algorithm, is_draft_worker=False)
    parallel = get_parallel()
    sizing = runner.KVCacheConfigurator(
        device="cuda", gpu_id=0, attn_dp_size=parallel.attn_dp_size, pp_size=parallel.pp_size, pp_group=parallel.pp_group, model=model, model_config=config, server_args=args,
        kv_cache_dtype=dtype, kv_cache_dtype_str=said or get_model().kv_cache_dtype, model_dtype=config.dtype, page_size=get_schedule().page_size,
        sliding_window_size=runner.resolve_sliding_window_size(model, config), spec_algorithm=algorithm, is_draft_worker=False, post_capture_kv_active=False,
        spec_aux_config=drafts, is_hybrid_swa=config.is_hybrid_swa, is_hybrid_swa_compress=config.is_hybrid_swa_compress,
        use_mla_backend=config.attention_arch == AttentionArch.MLA, layer_info=layers, forward_stream=None, req_to_token_pool=None, token_to_kv_pool_allocator=None,
        memory_pool_config=None)
    from sglang.srt.model_executor.pool_configurator import create_memory_pool_configurator
    configurator = create_memory_pool_configurator(sizing)
    try:
        found = configurator.calculate_pool_sizes(SCALE, 1)
    except AssertionError:  # the pools of compressed attention are made of pages alone
        found = configurator.calculate_pool_sizes(SCALE, get_schedule().page_size)
    return {"budget_bytes": SCALE, "tokens": found.max_total_num_tokens}


def sizes(args, config):
    """As far as they can be had without a device."""
    found = {}
    try:
        weights = []
        for stage in range(view(args).pp_size):
            placed(args, config, stage)
            model = build(args, config)
            weights.append(sum(part.numel() * part.element_size() for part in model.parameters()))
        found["param_bytes"] = weights
        found["cache"] = pool(args, config, model)
    except BaseException as error:  # noqa: B902 a class that cannot be built like that is no word about the command
        if "param_bytes" not in found and is_checked(error):
            raise
        found["sizes_problem"] = asking.clean("%s: %s" % (type(error).__name__, asking.sentence(error)))
    return found


def is_checked(error):
    """A check of its own that a start would meet as well: not one of PyTorch's, nor a place that was not built for this."""
    frame = error.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    return isinstance(error, (AssertionError, ValueError)) and "%ssglang%ssrt%s" % (os.sep, os.sep, os.sep) in frame.tb_frame.f_code.co_filename


# ---- the answer ----

def devices(count):
    """The process may simulate more of them than the command has."""
    import torch
    torch.cuda.device_count = lambda: count


def steps(argv, count):
    from sglang.srt.server_args import prepare_server_args
    normalize = None
    with contextlib.suppress(ImportError):
        from sglang.cli.serve import _normalize_positional_model_path as normalize
    if count:
        devices(count)
    yield "parser"
    args = prepare_server_args(normalize(argv)[0] if normalize else ["--model-path"] + argv)
    yield "resolving"
    if hasattr(args, "resolve_once"):
        args.resolve_once()
    args.check_server_args()
    yield "config"
    model = model_of(args)
    yield "model"
    yield {**sizes(args, model), "verdict": "taken", "values": values(view(args), model)}


def parser():
    import argparse
    from sglang.srt import server_args
    made = argparse.ArgumentParser(prog="sglang serve")
    server_args.ServerArgs.add_cli_args(made)
    return made


def architectures():
    from sglang.srt.models.registry import ModelRegistry
    return ModelRegistry.get_supported_archs()


def is_asked(name):
    """A variable of the command that decides something: not where caches are kept, nor what this machine has."""
    return name.startswith(("SGLANG_", "SGL_")) and not any(part in name for part in ("CACHE_DIR", "LOGGING", "PLUGIN", "HOST_IP", "PORT", "_DIR", "_PATH"))


def begin():
    """Ready to be asked; its release."""
    for name in [name for name in os.environ if name.startswith(("SGLANG_", "SGL_"))]:
        del os.environ[name]  # a command brings its own
    os.environ.update(DO_NOT_TRACK="1", TORCHINDUCTOR_COMPILE_THREADS="1", FLASHINFER_DISABLE_VERSION_CHECK="1")
    release = asking.release_of("sglang", "SGLang")
    import torch
    torch.cuda._is_in_bad_fork = lambda: False  # a fork behind a device that does not mind one
    asking.load(("sglang.cli.serve", "sglang.srt.server_args", "sglang.srt.configs.model_config", "sglang.srt.arg_groups.pipeline",
                 "sglang.srt.model_executor.model_runner", "sglang.srt.model_executor.pool_configurator", "sglang.srt.models.registry"))
    parser()  # what is worked out once about its fields
    return release


if __name__ == "__main__":
    asking.main(sys.modules["__main__"])
