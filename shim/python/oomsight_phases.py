"""Where an engine is in its start, told by the engine's own functions.

A log line comes after what it tells, through a pipe, and some phases print none. Here each function that begins a phase says so to
the stand-in device before it runs (oos_phase_enter, shim/device/phase.c), with the owner of what is taken from then on: words of
src/ledger/phase.def and owner.def. What an engine of another version does not have is left alone.

Loaded by oomsight_aid.py; docs/reference/formats/dryrun.md says how the rows of the report come from it."""
import ctypes
import functools

_enter = None
_now = (None, None)


def enter(phase, owner):
    """From here on; no more when the stand-ins are not there."""
    global _enter, _now
    if _enter is None:
        try:
            _enter = ctypes.CDLL(None).oos_phase_enter
            _enter.argtypes, _enter.restype = (ctypes.c_char_p, ctypes.c_char_p), ctypes.c_bool
        except (OSError, AttributeError):
            _enter = False
    if _enter and (phase, owner) != _now:
        _now = (phase, owner)
        _enter(phase.encode(), owner.encode())


def now():
    """The phase this process is in; None: it has not said."""
    return _now[0]


def during(cls, name, begin, end=None):
    """Wraps a method: `begin(self)` names phase and owner before it, `end(self)` after it, without which what was before comes
    back. STAY: it goes on after it. A function that fails leaves everything as it is, because the report asks where."""
    inner = vars(cls).get(name) if isinstance(cls, type) else getattr(cls, name, None)
    if inner is None:
        return

    @functools.wraps(inner)
    def told(*args, **kwargs):
        before, first = _now, begin(*args[:1])
        if first:
            enter(*first)
        result = inner(*args, **kwargs)
        after = end(*args[:1]) if end else before if first else None
        if after and after[0]:
            enter(*after)
        return result
    setattr(cls, name, told)


def name_engine(module):
    """Which engine this process belongs to, for a command that does not say: a script, a wrapper."""
    import importlib.metadata
    import oomsight_aid
    name = getattr(module, "__name__", "").partition(".")[0]
    try:
        version = importlib.metadata.version(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return
    oomsight_aid.tell("engine %s %s" % (name, version))


def always(phase, owner):
    return lambda *args: (phase, owner)


def takes(owner):
    """The same phase, another owner."""
    return lambda *args: (_now[0], owner) if _now[0] else None


def STAY(*args):
    return None


WEIGHTS = always("weight_load", "weights")
PROFILING = always("profile_run", "activations")


def warming(self):
    """Shapes and kernels are warmed up before capture; without graphs to capture it is the sampler alone."""
    config = getattr(self, "model_config", None)
    return ("sampler_warmup" if getattr(config, "enforce_eager", False) else "compile", "activations")


def worker(module):
    """vLLM's GPU worker, 0.9 to 0.32."""
    cls = module.Worker
    name_engine(module)
    during(cls, "init_device", always("init_free_memory_check", "batch buffers"), WEIGHTS)
    during(module, "init_worker_distributed_environment", always("distributed_init", "communicators"))
    during(cls, "load_model", WEIGHTS, STAY)
    during(cls, "initialize_from_config", always("kv_alloc", "KV cache"), STAY)
    during(cls, "compile_or_warm_up_model", warming, always("runtime_prefill", "activations"))
    # the newer runner warms its sampler up here, before capture
    during(module, "warmup_kernels", always("sampler_warmup", "logits and sampler"))
    determine = cls.determine_available_memory

    @functools.wraps(determine)
    def determine_available_memory(self):
        available = determine(self)
        import oomsight_aid
        if not self.cache_config.kv_cache_memory_bytes and hasattr(self, "requested_memory"):
            oomsight_aid.tell("measured budget %d bytes" % self.requested_memory)
            estimate = getattr(self, "cudagraph_memory_estimate", 0)
            if estimate and getattr(module.envs, "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", False):
                oomsight_aid.tell("measured graph estimate %d bytes" % estimate)
        return available
    cls.determine_available_memory = determine_available_memory


def runner(module):
    """Both of vLLM's model runners."""
    cls = module.GPUModelRunner

    def profiling(self):
        seen = getattr(self, "supports_mm_inputs", False)
        return ("mm_profile", "encoder") if seen else PROFILING()

    def dummy(self):
        """The encoder is through when the model itself runs."""
        return PROFILING() if _now[0] == "mm_profile" else None

    def sampler(self):
        if _now[0] == "compile":
            return "sampler_warmup", "logits and sampler"
        return takes("logits and sampler")()

    def capture(self):
        return takes("CUDA graphs")() if _now[0] == "cudagraph_profile" else ("cudagraph_capture", "CUDA graphs")

    def captured(self):
        """The sampler's warm-up comes next; after a trial the trial goes on."""
        return ("sampler_warmup", "logits and sampler") if _now[0] == "cudagraph_capture" else None

    during(cls, "__init__", always("weight_load", "batch buffers"))
    during(cls, "profile_run", profiling, STAY)
    during(cls, "_dummy_run", dummy, STAY)
    during(cls, "_dummy_sampler_run", sampler)
    during(cls, "_dummy_pooler_run", sampler)
    during(cls, "profile_cudagraph_memory", always("cudagraph_profile", "CUDA graphs"), STAY)
    during(cls, "initialize_kv_cache", takes("KV cache"))
    during(cls, "capture_model", capture, captured)
    during(cls, "_sample", takes("logits and sampler"))
    during(cls, "sample", takes("logits and sampler"))


def loader(module):
    """vLLM's loaders: the weights are there, and are put into their final form."""
    during(module, "process_weights_after_loading", always("quant_postprocess", "weights"))


WOKEN = {"weights": "weights", "kv_cache": "KV cache", "cudagraph": "CUDA graphs"}


def waking(module):
    """vLLM's sleep mode: what wakes is mapped again for the owner it had, which the allocator keeps as a tag."""
    create = module.create_and_map

    @functools.wraps(create)
    def created(handle):
        data = module.CuMemAllocator.get_instance().pointer_to_data.get(handle[2])
        before, owner = _now, WOKEN.get(getattr(data, "tag", None))
        if owner and _now[0]:
            enter(_now[0], owner)
        result = create(handle)
        if before[0]:
            enter(*before)
        return result
    module.create_and_map = created


HOOKS = {"vllm.v1.worker.gpu_worker": worker, "vllm.v1.worker.gpu_model_runner": runner, "vllm.v1.worker.gpu.model_runner": runner,
         "vllm.model_executor.model_loader.utils": loader, "vllm.device_allocator.cumem": waking}
