"""A plugin of vLLM (entry point vllm.general_plugins), asleep unless OOMSIGHT=1.

Before workers are made it plans this very configuration (from VllmConfig, not from words) and says so in the log; with
OOMSIGHT_PREFLIGHT=refuse an engine that cannot start is stopped there. When a worker runs out of memory it writes a bundle
(_bundle.py). It changes nothing else, and whatever goes wrong in here is told and forgotten: the engine goes on as if the
plugin were not installed. Answers come from the program, in a process of its own (_ask.py)."""
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import shlex
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Sequence

from . import _bundle
from ._ask import Answer, Unanswered, ask
from ._vllm_config import command_of, device_of

log = logging.getLogger("vllm.oomsight")
GUARDED = ("load_model", "determine_available_memory", "initialize_from_config", "compile_or_warm_up_model", "execute_model",
           "sample_tokens", "wake_up")
USAGE = 2  # exit code of the program
# Somebody presses Ctrl-C, or the engine's signal handler ends the process: not ours to swallow.
STOPS = (KeyboardInterrupt, SystemExit)


class PreflightRefused(RuntimeError):
    """The only error that leaves this module: the user asked to stop an engine that cannot start."""


def say(problem: str, error: BaseException) -> None:
    """A fault of our own is one line in the log, never a reason to stop."""
    try:
        log.warning("oomsight: %s (%s: %s); the engine goes on without it", problem, type(error).__name__, error)
    except STOPS:
        raise
    except BaseException:
        pass


# ---- before the start -----------------------------------------------------------------------------------------------

_plan: Optional[Answer] = None


def engine_version() -> str:
    import vllm  # type: ignore[import-not-found,unused-ignore]

    return ".".join(str(vllm.__version__).split("+")[0].split(".")[:3])


def host_ram() -> int:
    """Bytes of this machine, or of the container's limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as file:
                total = min(total, int(file.read()))
        except (OSError, ValueError):  # not there, or "max"
            pass
    return total


def make_plan(config: Any) -> Answer:
    device = device_of()
    total = os.environ.get("OOMSIGHT_GPU_TOTAL")
    options = ["plan", "--offline", "--vllm", engine_version(), "--host-ram", str(host_ram())]
    for name in os.environ:
        if name.startswith(("VLLM_", "PYTORCH_")):
            options += ["--env", name]  # its value is inherited: some are secrets, and a command line is seen by all
    command = ["--"] + command_of(config)
    sized = ["--gpu-total", total] if total else []
    try:
        return ask(options + ["--gpu", os.environ.get("OOMSIGHT_GPU") or device["gpu"]] + sized + command)
    except Unanswered as error:
        if error.code != USAGE:
            raise
        if not total:  # a card that is not in the list: its size is what the driver says
            from vllm.platforms import current_platform  # type: ignore[import-not-found,unused-ignore]

            sized = ["--gpu-total", str(int(current_platform.get_device_total_memory(0)))]
        if "compute_capability" in device:
            sized += ["--gpu-cc", device["compute_capability"]]
        return ask(options + sized + command)


def best_flags(plan: Dict[str, Any]) -> str:
    """The flags of the best fix, ready to paste; the whole command where a flag has to go."""
    for fix in plan["fixes"][:1]:
        return str(fix["command"]) if fix.get("without") else " ".join(shlex.quote(word) for word in fix["change"])
    return ""


def summary(plan: Dict[str, Any]) -> str:
    """What the log gets. Not the text report: that quotes the engine's own error, and whoever reads the log, people or
    programs, would take the quotation for the failure."""
    likely = "will probably start" if plan.get("likely", "starts") == "starts" else "will probably not start"
    words = {"fits": "will start", "tight": likely, "unknown": "unknown"}.get(plan["verdict"], "will not start")
    lines = ["%s on %s (%.2f GiB)" % (words, plan["gpu"]["name"] or "this GPU", (plan["gpu"]["total_bytes"] or 0) / 2**30)
             + (" in " + plan["phase"] if plan["phase"] else "")]
    lines += ["  %-23s %7.2f of %6.2f GiB%s" % (p["phase"], p["peak_bytes"] / 2**30, p["limit_bytes"] / 2**30,
                                                "" if p["ok"] else "  <-- too much") for p in plan["phases"]]
    if plan["why"]:
        lines.append("  " + plan["why"])
    if plan["verdict"] != "fits" and plan["fixes"]:
        lines.append("  helps: " + best_flags(plan))
    return "\n".join(lines)


def refuses() -> bool:
    word = os.environ.get("OOMSIGHT_PREFLIGHT", "warn")
    if word not in ("warn", "refuse", ""):
        log.warning("oomsight: OOMSIGHT_PREFLIGHT takes warn or refuse, not '%s'; taken as warn", word)
    return word == "refuse"


def preflight(config: Any) -> None:
    """Plan, tell, and stop only when that is asked for and certain."""
    global _plan
    refused: Optional[str] = None
    try:
        _plan = make_plan(config)
        plan = _plan.data
        text = summary(plan)
        if plan["verdict"] in ("fits", "unknown") or plan["verdict"] == "tight" and plan.get("likely") != "fails":
            log.info("oomsight: this configuration %s", text)
        else:
            log.warning("oomsight: this configuration %s", text)
        if refuses() and plan["verdict"] in ("fails", "refused"):
            refused = "oomsight: stopped before loading weights: fails in %s. %s%s" % (
                plan["phase"], plan["why"] or "", " Try: " + best_flags(plan) if plan["fixes"] else "")
    except STOPS:
        raise
    except BaseException as error:
        say("the configuration could not be planned", error)
    if refused:
        raise PreflightRefused(refused)


# ---- when it runs out ------------------------------------------------------------------------------------------------

def plan_for(config: Any) -> Optional[Answer]:
    """The plan of the preflight, or one made now: workers that were spawned have not seen it."""
    global _plan
    if _plan is None and config is not None:
        try:
            _plan = make_plan(config)
        except STOPS:
            raise
        except BaseException as error:
            say("the configuration could not be planned", error)
    return _plan


def out_of_memory(error: BaseException, step: str, worker: Any) -> None:
    """Called with every error that leaves a worker."""
    try:
        if not _bundle.is_out_of_memory(error) or _bundle.was_tried():
            return
        plan = plan_for(getattr(worker, "vllm_config", None))
        folder, phase = _bundle.write(error, step, getattr(worker, "rank", None), plan, say)
        log.error("oomsight: memory ran out in %s; everything about it is in %s", phase, folder)
    except STOPS:
        raise
    except BaseException as problem:
        say("the bundle could not be written", problem)


def observe() -> None:
    try:
        _bundle.observe()
    except STOPS:
        raise
    except BaseException as error:
        say("failed requests cannot be observed", error)


def guarded(function: Callable[..., Any], step: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **keywords: Any) -> Any:
        if step == "load_model":
            observe()
        try:
            return function(*args, **keywords)
        except Exception as error:
            out_of_memory(error, step, args[0] if args else None)
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
        except (PreflightRefused,) + STOPS:
            raise
        except BaseException as error:
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
    except STOPS:
        raise
    except BaseException as error:
        say("%s could not be watched" % name, error)


class AfterImport(importlib.abc.MetaPathFinder):
    """Modules that are not imported yet are patched when they are: importing them here would be too early. Who finds them is
    left to the other finders, which may have plans of their own for the same modules."""
    busy = False

    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name not in PATCHES or self.busy:
            return None
        try:
            self.busy = True
            try:
                spec = importlib.util.find_spec(name)
            finally:
                self.busy = False
            if spec is None or spec.loader is None:
                return None
            execute = spec.loader.exec_module

            def execute_and_patch(module: ModuleType) -> None:
                execute(module)
                patch(name, module)

            spec.loader.exec_module = execute_and_patch  # type: ignore[method-assign]
            return spec
        except STOPS:
            raise
        except BaseException as error:
            say("%s could not be watched" % name, error)
            return None


_registered = False


def register() -> None:
    """Called by vLLM in each of its processes."""
    global _registered
    if _registered or os.environ.get("OOMSIGHT", "").strip().lower() not in ("1", "true", "yes"):
        return
    _registered = True
    try:
        for name in PATCHES:
            if name in sys.modules:
                patch(name, sys.modules[name])
        sys.meta_path.insert(0, AfterImport())
    except STOPS:
        raise
    except BaseException as error:
        say("the plugin could not be registered", error)
