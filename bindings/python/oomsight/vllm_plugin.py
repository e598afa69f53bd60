"""A plugin of vLLM (entry point vllm.general_plugins), asleep unless OOMSIGHT=1.

Before workers are made it plans this very configuration (from VllmConfig, not from words) and says so in the log; with
OOMSIGHT_PREFLIGHT=refuse an engine that cannot start is stopped there. When a worker runs out of memory it writes a bundle:
what the failure says, the plan, what was measured, a memory snapshot if one is being recorded. It changes nothing else, and
whatever goes wrong in here is told and forgotten: the engine goes on as if the plugin were not installed."""
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import logging
import os
import sys
import time
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Sequence

log = logging.getLogger("vllm.oomsight")
GUARDED = ("load_model", "determine_available_memory", "initialize_from_config", "compile_or_warm_up_model", "execute_model",
           "sample_tokens", "wake_up")


class PreflightRefused(RuntimeError):
    """The only error that leaves this module: the user asked to stop an engine that cannot start."""


def say(problem: str, error: BaseException) -> None:
    """A fault of our own is one line in the log, never a reason to stop."""
    try:
        log.warning("oomsight: %s (%s: %s); the engine goes on without it", problem, type(error).__name__, error)
    except Exception:
        pass


# ---- from VllmConfig to a command ------------------------------------------------------------------------------------

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


# ---- before the start -----------------------------------------------------------------------------------------------

_plan: Any = None


def make_plan(config: Any) -> Any:
    import oomsight
    import vllm  # type: ignore[import-not-found,unused-ignore]

    device = device_of()
    version = ".".join(str(vllm.__version__).split("+")[0].split(".")[:3])
    total = os.environ.get("OOMSIGHT_GPU_TOTAL")
    known = [name + "=" + value for name, value in os.environ.items() if name.startswith(("VLLM_", "PYTORCH_"))]
    env = dict(word.split("=", 1) for word in known)
    options: Dict[str, Any] = {"vllm": version, "env": env, "hub": False, "gpu_total": total}
    try:
        return oomsight.plan(command_of(config), gpu=os.environ.get("OOMSIGHT_GPU", device["gpu"]), **options)
    except oomsight.UsageError:
        if total is None:  # a card that is not in the list: its size is what the driver says
            from vllm.platforms import current_platform

            options["gpu_total"] = int(current_platform.get_device_total_memory(0))
        return oomsight.plan(command_of(config), compute_capability=device.get("compute_capability"), **options)


def summary(plan: Any) -> str:
    """What the log gets. Not the text report: that quotes the engine's own error, and whoever reads the log, people or
    programs, would take the quotation for the failure."""
    lines = ["%s on %s (%.2f GiB)" % ({"fits": "starts", "tight": "tight"}.get(plan.verdict, "does not fit"), plan.gpu.name or "this GPU",
                                      (plan.gpu.total_bytes or 0) / 2**30) + (" in " + plan.phase if plan.phase else "")]
    lines += ["  %-23s %7.2f of %6.2f GiB%s" % (p.phase, p.peak_bytes / 2**30, p.limit_bytes / 2**30, "" if p.ok else "  <-- too much")
              for p in plan.phases]
    if plan.why:
        lines.append("  " + plan.why)
    if plan.best_flags:
        lines.append("  helps: " + plan.best_flags)
    return "\n".join(lines)


def preflight(config: Any) -> None:
    """Plan, tell, and stop only when that is asked for and certain."""
    global _plan
    refused: Optional[str] = None
    try:
        plan = _plan = make_plan(config)
        text = summary(plan)
        if plan.fits:
            log.info("oomsight: this configuration %s", text)
        else:
            log.warning("oomsight: this configuration %s", text)
            if plan.verdict in ("fails", "refused") and os.environ.get("OOMSIGHT_PREFLIGHT", "warn") == "refuse":
                refused = "oomsight: stopped before loading weights: does not fit in %s. %s%s" % (
                    plan.phase, plan.why or "", " Try: " + plan.best_flags if plan.best_flags else "")
    except Exception as error:
        say("the configuration could not be planned", error)
    if refused:
        raise PreflightRefused(refused)


# ---- when it runs out ------------------------------------------------------------------------------------------------

_last_request: Dict[str, int] = {}
_written: Optional[str] = None


def observe() -> None:
    """Ask PyTorch to tell the exact size of a request that fails; its message is rounded."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]

        def told(device: int, requested: int, total: int, free: int) -> None:
            _last_request.update(device=device, tried_bytes=requested, total_bytes=total, free_bytes=free)

        if torch.cuda.is_initialized():
            torch._C._cuda_attach_out_of_memory_observer(told)
    except Exception as error:
        say("failed requests cannot be observed", error)


def is_out_of_memory(error: BaseException) -> bool:
    seen: List[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        if type(error).__name__ == "OutOfMemoryError" or "CUDA out of memory" in str(error):
            return True
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return False


def measured() -> Dict[str, Any]:
    import torch

    free, total = torch.cuda.mem_get_info()
    return {"free_bytes": free, "total_bytes": total, "allocated_bytes": torch.cuda.memory_allocated(),
            "reserved_bytes": torch.cuda.memory_reserved(), "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
            "request": dict(_last_request)}


def put(folder: str, name: str, make: Callable[[], Any], files: List[str]) -> Any:
    """One file of the bundle; what cannot be made is left out."""
    try:
        made = make()
        if made is None:
            return None
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(made if isinstance(made, str) else json.dumps(made, indent=2))
        files.append(name)
        return made
    except Exception as error:
        say("%s could not be written" % name, error)
        return None


def snapshot(folder: str, files: List[str]) -> None:
    try:
        import torch

        if any(torch.cuda.memory._snapshot().get("device_traces", [])):
            torch.cuda.memory._dump_snapshot(os.path.join(folder, "snapshot.pickle"))
            files.append("snapshot.pickle")
    except Exception as error:
        say("the memory snapshot could not be written", error)


def bundle(error: BaseException, step: str) -> Optional[str]:
    """A folder with everything a reader of the failure needs. Once per process."""
    global _written
    if _written:
        return _written
    import tempfile
    import traceback

    import oomsight

    base = os.environ.get("OOMSIGHT_BUNDLE_DIR") or tempfile.gettempdir()
    folder = os.path.join(base, "oomsight-%s-%d" % (time.strftime("%Y%m%d-%H%M%S"), os.getpid()))
    os.makedirs(folder, exist_ok=True)
    _written = folder
    files: List[str] = []
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    put(folder, "traceback.txt", lambda: trace, files)
    figures = put(folder, "measured.json", measured, files) or {}
    explanation: Any = None
    try:
        explanation = oomsight.explain(text=trace)
    except Exception as problem:
        say("the failure could not be explained", problem)
    if explanation is not None:
        put(folder, "incident.json", lambda: explanation[0].data, files)
        put(folder, "incident.html", explanation.html, files)
    if _plan is not None:
        put(folder, "plan.json", lambda: _plan.data, files)
        put(folder, "plan.html", _plan.html, files)
        put(folder, "plan.txt", _plan.text, files)
    snapshot(folder, files)
    incident = explanation[0] if explanation is not None else None
    put(folder, "bundle.json", lambda: {
        "schema": "oomsight.bundle/1", "step": step, "phase": incident.phase if incident else None,
        "cause": incident.cause if incident else None,
        "tried_bytes": figures.get("request", {}).get("tried_bytes") or (incident.numbers.get("tried_bytes") if incident else None),
        "measured": figures, "plan": None if _plan is None else {"verdict": _plan.verdict, "phase": _plan.phase, "tried_bytes": _plan.tried_bytes,
                                                               "weights_bytes": _plan.weights_bytes}, "files": list(files)}, files)
    log.error("oomsight: memory ran out in %s; everything about it is in %s", incident.phase if incident else step, folder)
    return folder


def guarded(function: Callable[..., Any], step: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **keywords: Any) -> Any:
        if step == "load_model":
            observe()
        try:
            return function(*args, **keywords)
        except Exception as error:
            try:
                if is_out_of_memory(error):
                    bundle(error, step)
            except Exception as problem:
                say("the bundle could not be written", problem)
            raise

    run._oomsight = True  # type: ignore[attr-defined]
    return run


# ---- putting it into the engine --------------------------------------------------------------------------------------

def patch_executor(module: ModuleType) -> None:
    original = module.Executor.__init__
    if getattr(original, "_oomsight", False):
        return

    @functools.wraps(original)
    def start(self: Any, *args: Any, **keywords: Any) -> None:
        try:
            config = keywords.get("vllm_config", args[0] if args else None)
            preflight(config)
        except PreflightRefused:
            raise
        except Exception as error:
            say("the preflight failed", error)
        original(self, *args, **keywords)

    start._oomsight = True  # type: ignore[attr-defined]
    module.Executor.__init__ = start


def patch_worker(module: ModuleType) -> None:
    for name in GUARDED:
        function = getattr(module.Worker, name, None)
        if function is not None and not getattr(function, "_oomsight", False):
            setattr(module.Worker, name, guarded(function, name))


PATCHES: Dict[str, Callable[[ModuleType], None]] = {"vllm.v1.executor.abstract": patch_executor, "vllm.v1.worker.gpu_worker": patch_worker}


def patch(name: str, module: ModuleType) -> None:
    try:
        PATCHES[name](module)
    except Exception as error:
        say("%s could not be watched" % name, error)


class AfterImport(importlib.abc.MetaPathFinder):
    """Modules that are not imported yet are patched when they are: importing them here would be too early."""

    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name not in PATCHES:
            return None
        try:
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            if spec is None or spec.loader is None:
                return None
            execute = spec.loader.exec_module

            def execute_and_patch(module: ModuleType) -> None:
                execute(module)
                patch(name, module)

            spec.loader.exec_module = execute_and_patch  # type: ignore[method-assign]
            return spec
        except Exception as error:
            say("%s could not be watched" % name, error)
            return None


_registered = False


def register() -> None:
    """Called by vLLM in each of its processes."""
    global _registered
    if _registered or os.environ.get("OOMSIGHT", "").lower() not in ("1", "true", "yes"):
        return
    _registered = True
    try:
        for name in PATCHES:
            if name in sys.modules:
                patch(name, sys.modules[name])
        sys.meta_path.insert(0, AfterImport())
    except Exception as error:
        say("the plugin could not be registered", error)
