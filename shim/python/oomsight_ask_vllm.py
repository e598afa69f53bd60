"""What the vLLM that is installed says of a command (oomsight_ask.py): its parser, its configuration, and its classes built without memory."""
import contextlib
import os
import sys

import oomsight_ask as asking

NAME = "vllm"
PARSER = []  # and the command that it is for


def make_parser():
    from vllm.entrypoints.cli.serve import ServeSubcommand
    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:
        from vllm.utils import FlexibleArgumentParser
    parser = FlexibleArgumentParser(prog="vllm")
    command = ServeSubcommand()
    command.subparser_init(parser.add_subparsers(required=False, dest="subparser")).set_defaults(dispatch_function=command.cmd)
    return parser, command


def mend():
    """A fork behind a device that does not mind one; classes are looked at in this process; the host is not what is asked about."""
    import torch
    torch.cuda._is_in_bad_fork = lambda: False
    torch.compile = lambda model=None, **more: model if model is not None else lambda function: function  # nothing is run
    from vllm.model_executor.models import registry
    registry._run_in_subprocess = lambda function: function()
    with contextlib.suppress(Exception):
        import vllm.config.cache
        vllm.config.cache.get_cpu_memory = lambda: 2 << 40


def values(config):
    """Under the names that a plan has for them. What this release does not have is left out."""
    model, cache, parallel = config.model_config, config.cache_config, config.parallel_config
    scheduler, compilation, spec = config.scheduler_config, config.compilation_config, config.speculative_config
    found, put = asking.values()
    sizes = getattr(compilation, "cudagraph_capture_sizes", None) or []
    put("architecture", lambda: model.architecture, str)
    put("dtype", lambda: model.dtype, asking.word)
    put("kv_cache_dtype", lambda: cache.cache_dtype, asking.word)
    put("quantization", lambda: model.quantization, asking.word)
    put("tensor_parallel_size", lambda: parallel.tensor_parallel_size)
    put("pipeline_parallel_size", lambda: parallel.pipeline_parallel_size)
    put("data_parallel_size", lambda: parallel.data_parallel_size)
    put("expert_parallel", lambda: parallel.enable_expert_parallel, bool)
    if getattr(model, "original_max_model_len", None) != -1:  # "auto" is settled by the memory that is left
        put("max_model_len", lambda: model.max_model_len)
    put("max_num_seqs", lambda: scheduler.max_num_seqs)
    put("max_num_batched_tokens", lambda: scheduler.max_num_batched_tokens)
    put("gpu_memory_utilization", lambda: cache.gpu_memory_utilization)
    put("kv_cache_memory_bytes", lambda: cache.kv_cache_memory_bytes)
    put("num_gpu_blocks_override", lambda: cache.num_gpu_blocks_override)
    put("enforce_eager", lambda: model.enforce_eager, bool)
    put("v2_model_runner", lambda: config.use_v2_model_runner, bool)
    put("cudagraph_mode", lambda: compilation.cudagraph_mode, asking.word)
    if model.enforce_eager or found.get("cudagraph_mode") == "NONE":
        sizes = []
    found["capture_sizes"] = sorted({int(size) for size in sizes})
    put("prefix_caching", lambda: cache.enable_prefix_caching, bool)
    put("chunked_prefill", lambda: scheduler.enable_chunked_prefill, bool)
    put("async_scheduling", lambda: scheduler.async_scheduling, bool)
    put("speculative_tokens", lambda: spec.num_speculative_tokens if spec else 0)
    put("speculative_method", lambda: spec.method if spec else None, asking.word)
    return found


# ---- what its own classes take, built without memory ----

class Settled(Exception):
    """The cache is laid out; the rest would allocate it."""


class Executor:
    """What EngineCore asks of its workers while it lays out the cache."""

    def __init__(self, config, specs, budget):
        self.config, self.budget, self.settled, self.specs = config, budget, None, specs

    def get_kv_cache_specs(self):
        return self.specs

    def get_supported_kv_cache_layouts(self):
        from vllm.v1.worker.worker_base import WorkerBase
        worker = type("Worker", (WorkerBase,), {"__init__": lambda self: None})()
        worker.vllm_config = self.config
        return [worker.get_supported_kv_cache_layouts() for stage in self.specs]

    def set_kv_cache_layout(self, *told):
        pass

    def determine_available_memory(self):
        return [self.budget for stage in self.specs]

    def collective_rpc(self, *told, **more):
        pass

    def initialize_from_config(self, configs):
        self.settled = configs
        raise Settled


def alone(config, stage):
    """A group of one, whose classes are cut as for the rank of that stage."""
    import tempfile
    import torch
    from vllm.distributed import parallel_state
    parallel = config.parallel_config
    tensor, replicas, contexts = parallel.tensor_parallel_size, parallel.data_parallel_size, parallel.decode_context_parallel_size
    if not torch.distributed.is_initialized():
        store = tempfile.mktemp(prefix="oomsight-exact-")
        parallel.data_parallel_size = 1  # it would wait for the others
        parallel_state.init_distributed_environment(1, 0, "file://" + store, 0, "gloo")
        parallel_state.initialize_model_parallel(1, 1)
        parallel.data_parallel_size = replicas
    for name, size in (("tp", tensor), ("pp", parallel.pipeline_parallel_size), ("dp", replicas), ("dcp", contexts), ("ep", tensor * replicas)):
        with contextlib.suppress(AttributeError, AssertionError):  # a release, or a model, without that group
            group = getattr(parallel_state, "get_%s_group" % name)()
            group.world_size, group.ranks = size, list(range(size))
    pipeline = parallel_state.get_pp_group()
    pipeline.rank = pipeline.rank_in_group = stage


def built(config):
    """Of each stage the bytes of its parameters as they are created, what its layers keep, and of the last one the bytes of slots for adapters."""
    import torch
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.platforms import current_platform
    from vllm.utils.torch_utils import set_default_torch_dtype
    from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec
    weights, specs, slots = [], [], 0
    for stage in range(config.parallel_config.pipeline_parallel_size):
        alone(config, stage)
        config.compilation_config.static_forward_context.clear()
        with set_default_torch_dtype(config.model_config.dtype), torch.device("meta"):
            model = initialize_model(config)
        weights.append(sum(part.numel() * part.element_size() for part in model.parameters()))
        if stage == 0:
            with contextlib.suppress(AttributeError):
                current_platform.update_block_size_for_backend(config)
        specs.append(get_kv_cache_spec(config))
        if config.lora_config:
            with contextlib.suppress(Exception):  # layers that cannot have them without memory
                slots = adapters(config, model)
    return weights, specs, slots


def adapters(config, model):
    """Bytes of the slots that adapters are put into."""
    import torch
    from vllm.lora.worker_manager import LRUCacheWorkerLoRAManager
    with torch.device("meta"):
        LRUCacheWorkerLoRAManager(config, torch.device("meta"), model.embedding_modules).create_lora_manager(model, config)
    kept = {}
    for layer in model.modules():
        for name, value in vars(layer).items():
            if name.startswith("lora_") and isinstance(value, (tuple, list)):
                kept.update((id(part), part) for part in value if isinstance(part, torch.Tensor))
    return sum(part.numel() * part.element_size() for part in kept.values())


def spec_of(spec):
    """The fields of a layer's cache that a plan reads (--kv-layers)."""
    kind = type(spec).__name__
    row = {"type": kind, "block_size": spec.block_size, "page_size_bytes": spec.page_size_bytes}
    window = getattr(spec, "sliding_window", None) or getattr(spec, "attention_chunk_size", None)
    if window:
        row["window"] = window
    for name in ("mamba_cache_mode", "num_speculative_blocks", "num_prefill_checkpoint_blocks"):
        if getattr(spec, name, None):
            row[name] = getattr(spec, name)
    return row


def laid_out(config, specs):
    """The cache by the engine's own sequence: the specs of layers, and of its answer the groups and the bytes of a block."""
    from vllm.v1.engine.core import EngineCore
    budget = 64 << 30
    executor = Executor(config, specs, budget)
    rows = []
    fullest = max(specs, key=lambda stage: sum(spec.page_size_bytes for spec in stage.values()))  # it decides how many blocks all have
    for spec in fullest.values():
        row = spec_of(spec)
        same = [old for old in rows if {key: old[key] for key in old if key != "layers"} == row]
        if same:
            same[0]["layers"] += 1
        else:
            rows.append(dict(row, layers=1))
    core = type("Core", (), {"model_executor": executor, "collective_rpc": executor.collective_rpc})()
    try:
        EngineCore._initialize_kv_caches(core, config)
    except Settled:
        pass
    cache = {"layers": rows}
    if executor.settled:
        settled = executor.settled[0]
        cache["blocks"], cache["budget_bytes"] = settled.num_blocks, budget
        cache["block_tokens"] = config.cache_config.block_size
        cache["groups"] = [{"type": type(group.kv_cache_spec).__name__, "layers": len(group.layer_names),
                            "block_size": group.kv_cache_spec.block_size, "page_size_bytes": group.kv_cache_spec.page_size_bytes}
                           for group in settled.kv_cache_groups]
    return cache


def sizes(config):
    """As far as they can be had: classes that compute from values and drafts are left out, and say why."""
    from vllm.config import set_current_vllm_config
    found, spec = {}, config.speculative_config
    try:
        with set_current_vllm_config(config):
            found["param_bytes"], specs, slots = built(config)
            if slots:
                found["adapter_bytes"] = slots
            if not spec or spec.method in ("ngram", "ngram_gpu", "suffix"):
                found["cache"] = laid_out(config, specs)
    except BaseException as error:  # noqa: B902 a class that cannot be built like that is no word about the command
        found["sizes_problem"] = asking.clean("%s: %s" % (type(error).__name__, error))
    return found


# ---- the answer ----

def devices(count):
    """The process may simulate more of them than the command has."""
    import torch
    from vllm import platforms
    torch.cuda.device_count = lambda: count
    type(platforms.current_platform).device_count = classmethod(lambda cls: count)
    for module in list(sys.modules.values()):
        if getattr(module, "cuda_device_count_stateless", None):
            module.cuda_device_count_stateless = lambda: count


def steps(argv, count):
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext
    parser, command = PARSER
    if count:
        devices(count)
    yield "parser"
    arguments = parser.parse_args(["serve"] + argv)
    yield "frontend"
    command.validate(arguments)
    if getattr(arguments, "model_tag", None) is not None:
        arguments.model = arguments.model_tag
    yield "config"
    config = AsyncEngineArgs.from_cli_args(arguments).create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
    yield {"verdict": "taken", "values": values(config), **sizes(config)}


def parser():
    """Of `vllm serve`."""
    return next(action.choices["serve"] for action in PARSER[0]._actions if isinstance(action.choices, dict) and "serve" in action.choices)


def architectures():
    from vllm.model_executor.models.registry import ModelRegistry
    return ModelRegistry.get_supported_archs()


def quantization():
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
    return QUANTIZATION_METHODS


def is_asked(name):
    """A variable of the command that decides something: not where caches are kept, nor what this machine has."""
    return name.startswith("VLLM_") and not any(part in name for part in ("CACHE", "CONFIG_ROOT", "LOGGING", "PLUGINS", "HOST_IP", "PORT"))


def begin():
    """Ready to be asked; its release."""
    for name in [name for name in os.environ if name.startswith("VLLM_")]:
        del os.environ[name]  # a command brings its own
    os.environ.update(VLLM_CONFIGURE_LOGGING="0", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1", TORCHINDUCTOR_COMPILE_THREADS="1", HUMMING_DISABLE_PARALLEL_BUILD="1")
    release = asking.release_of("vllm", "vLLM")
    mend()
    asking.load(("vllm.v1.engine.core", "vllm.v1.worker.worker_base", "vllm.v1.worker.gpu.attn_utils", "vllm.model_executor.model_loader.utils"))
    with contextlib.suppress(Exception):
        import torch._dynamo
        from vllm.plugins import load_general_plugins
        load_general_plugins()
        torch._dynamo.list_backends()
    PARSER[:] = make_parser()
    return release


if __name__ == "__main__":
    asking.main(sys.modules["__main__"])
