"""oomsight: foresee, explain, reproduce and prevent GPU out-of-memory in LLM serving.

    >>> import oomsight
    >>> plan = oomsight.plan("vllm serve ./model --max-model-len 8192", gpu="4090")
    >>> bool(plan), plan.answer, plan.phase, plan.best_flags

`plan`, `explain`, `replay`, `check`, `matrix`, `gpus` and `dryrun` answer what the commands of that name answer, over the same library. "Does not fit" is
an answer; what cannot be answered raises OomsightError with the words of the command line. In a notebook a result shows its
report."""
import os
from typing import List, Mapping, Optional, Sequence, Tuple, Union

from . import _abi
from ._abi import (HubError, InputError, InputNotFoundError, InternalError, OomsightError, Size, UnsupportedError,
                   UsageError)
from ._results import (Check, Checked, Choice, DryRun, Evidence, Explanation, Fix, Gpu, GpuModel, Hold, Incident, Inert, Matrix, Phase, Plan, Point,
                       Replay, WhatIf)

__all__ = ["plan", "explain", "replay", "check", "matrix", "gpus", "dryrun", "Check", "Checked", "Choice", "GpuModel", "Matrix", "Point", "Plan", "Explanation", "Incident", "Replay", "DryRun", "Phase", "Hold", "Fix",
           "Inert", "Gpu", "Evidence", "WhatIf", "OomsightError", "UsageError", "InputError", "InputNotFoundError", "HubError",
           "UnsupportedError", "InternalError", "__version__"]
__version__ = "0.2.0"

_COMMAND_MAX = 65536
Command = Union[str, Sequence[str]]
Path = Union[str, "os.PathLike[str]"]
CommandOrModel = Union[str, "os.PathLike[str]", Sequence[str]]


def _words(command: Command) -> List[str]:
    """The words of a command; a string is taken apart as a shell would."""
    if isinstance(command, str):
        import shlex

        if len(command) > _COMMAND_MAX:  # shlex takes the square of a word's length
            raise UsageError(7, "a command of more than %d characters; give its words as a list" % _COMMAND_MAX)
        return shlex.split(command)
    return [os.fspath(word) for word in command]


def _served(command: CommandOrModel, engine: Optional[str] = None) -> List[str]:
    """The words of a command; a model alone is served as it is."""
    server = [engine or "vllm", "serve"]
    if isinstance(command, os.PathLike):
        return server + [os.fspath(command)]
    if isinstance(command, str) and os.path.isdir(command):
        return server + [command]
    given = _words(command)
    return server + given if len(given) == 1 else given


def _engine(engine: Optional[str], version: Optional[str]) -> Tuple[Optional[str], Optional[str]]:
    """"NAME", "NAME=VERSION" or "=VERSION" as name and version; a version that was given apart goes first."""
    name, _, told = (engine or "").partition("=")
    if version and told and version != told:
        raise UsageError(7, "engine=%r and vllm=%r are two versions" % (engine, version))
    return name or None, version or told or None


def plan(command: CommandOrModel, *, gpu: Optional[str] = None, gpu_total: Optional[Size] = None, gpu_used: Optional[Size] = None,
         compute_capability: Optional[str] = None, vllm: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
         host_ram: Optional[Size] = None, fixes: bool = True, hub: bool = True, data: Optional[Path] = None,
         engine: Optional[str] = None) -> Plan:
    """Will `command` (``vllm serve MODEL ...``, or a model alone) start, and how much is left? The result is true when it starts.

    gpu: "A30x4", "5090", ... as `oomsight gpus` lists them; gpu_total: what the device or slice really shows (bytes or
    "23.5GiB"); gpu_used: held by others; engine: "NAME" or "NAME=VERSION", the one that the command starts when None; vllm: its version
    alone, the newest known when None; env: variables the engine would
    see; host_ram: of the machine, for weights kept there (64 GiB are assumed); fixes: search for flags that fit; hub: an unknown MODEL may be fetched (config and headers only)."""
    name, version = _engine(engine, vllm)
    given = _served(command, name)
    seen = ["%s=%s" % pair for pair in (env or {}).items()]
    params = _abi.CPlanParams(
        size=_abi.sizeof(_abi.CPlanParams), data=_abi.data(None if data is None else os.fspath(data)),
        command=_abi.words(given), command_count=len(given), gpu=_abi.encode(gpu), gpu_total_bytes=_abi.size(gpu_total, "gpu_total"),
        gpu_used_bytes=_abi.size(gpu_used, "gpu_used"), compute_capability=_abi.encode(compute_capability),
        engine=_abi.encode(name), engine_version=_abi.encode(version), environment=_abi.words(seen), environment_count=len(seen), skip_fixes=int(not fixes),
        allow_hub=int(hub), host_ram_bytes=_abi.size(host_ram, "host_ram"), gpu_used_known=int(gpu_used is not None))
    return Plan(_abi.Handle("plan", params))


def explain(*paths: Path, text: Union[str, bytes, None] = None, hub: bool = False, data: Optional[Path] = None, gpu: Optional[str] = None,
            model: Optional[Path] = None, version: Optional[str] = None, engine: Optional[str] = None) -> Explanation:
    """Why did it run out, what to change? Logs in files (plain, gz, zst, xz, tar, zip), or one in memory as `text`.

    gpu, model, engine ("NAME" or "NAME=VERSION", as for a plan), version (alone): what the log does not tell; what it tells stands."""
    name, version = _engine(engine, version)
    files = _abi.words([os.fspath(path) for path in paths])
    log = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    if (log is None) == (not paths):
        raise UsageError(7, "explain takes files, or text=")
    params = _abi.CExplainParams(size=_abi.sizeof(_abi.CExplainParams), data=_abi.data(None if data is None else os.fspath(data)),
                                 paths=files, path_count=len(paths), text=log, text_bytes=len(log or b""), allow_hub=int(hub), gpu=_abi.encode(gpu),
                                 model=_abi.encode(None if model is None else os.fspath(model)), engine_version=_abi.encode(version),
                                 engine=_abi.encode(name))
    return Explanation(_abi.Handle("explain", params))


def replay(path: Path, *, torch: Optional[str] = None, settings: Optional[str] = None, gpu_total: Optional[Size] = None,
           gpu_used: Optional[Size] = None, device: int = 0, pool_backend: Optional[str] = None, sweep_ratio: float = 0,
           what_if: bool = True, try_settings: Sequence[str] = (), find_smallest: bool = False) -> Replay:
    """What would other allocator settings have done? A memory snapshot or a trace, run again by the simulator.

    settings: as in PYTORCH_CUDA_ALLOC_CONF, in place of the recorded ones; try_settings: further ones, side by side."""
    params = _abi.CReplayParams(
        size=_abi.sizeof(_abi.CReplayParams), path=_abi.encode(os.fspath(path)), torch=_abi.encode(torch),
        settings=_abi.encode(settings), gpu_total_bytes=_abi.size(gpu_total, "gpu_total"),
        gpu_used_bytes=_abi.size(gpu_used, "gpu_used"), device=device, pool_backend=_abi.encode(pool_backend), sweep_ratio=sweep_ratio,
        skip_what_if=int(not what_if), try_settings=_abi.words(try_settings), try_settings_count=len(try_settings), find_smallest=int(find_smallest))
    return Replay(_abi.Handle("replay", params))


def check(*paths: Path, gpu: Optional[str] = None, gpu_total: Optional[Size] = None, gpu_used: Optional[Size] = None,
          compute_capability: Optional[str] = None, vllm: Optional[str] = None, models: Optional[Path] = None, hub: bool = True,
          data: Optional[Path] = None, engine: Optional[str] = None) -> Check:
    """The engine commands in compose files, manifests, Dockerfiles and scripts: which will not start? Folders are looked through.

    gpu, engine ("NAME=VERSION") and vllm: for commands whose file tells none; models: a folder where models lie by their last name."""
    name, version = _engine(engine, vllm)
    if not paths:
        raise UsageError(7, "check takes files or folders")
    params = _abi.CCheckParams(
        size=_abi.sizeof(_abi.CCheckParams), data=_abi.data(None if data is None else os.fspath(data)),
        paths=_abi.words([os.fspath(path) for path in paths]), path_count=len(paths), gpu=_abi.encode(gpu),
        gpu_total_bytes=_abi.size(gpu_total, "gpu_total"), gpu_used_bytes=_abi.size(gpu_used, "gpu_used"),
        compute_capability=_abi.encode(compute_capability), engine=_abi.encode(name), engine_version=_abi.encode(version),
        models_dir=_abi.encode(None if models is None else os.fspath(models)), allow_hub=int(hub), gpu_used_known=int(gpu_used is not None))
    return Check(_abi.Handle("check", params))


def matrix(path: Path, *, models: Optional[Path] = None, hub: bool = True, threads: Optional[int] = None, data: Optional[Path] = None,
           exact: bool = False, python: Optional[Path] = None) -> Matrix:
    """Every combination of the models, GPUs, flags and versions in a file (docs/reference/formats/matrix.md), planned.

    exact: each is also judged by the engine that is installed; python: the Python that has it, the one on PATH when None."""
    from ._command import told

    options = ["--json", "--quiet", "--mode", "plan"] + ([] if hub else ["--offline"]) + (["--exact"] if exact else [])
    for name, value in (("--models", models), ("--python", python), ("--threads", threads), ("--data", data)):
        if value is not None:
            options += [name, str(value)]
    return Matrix(told(["matrix"] + options + [os.fspath(path)]))


def gpus() -> List[GpuModel]:
    """The GPUs and slices that are known, by the names that `plan` takes."""
    import json

    return [GpuModel(row["name"], row["slice"], row["total_bytes"], row["compute_capability"], tuple(row["aliases"]))
            for row in json.loads(_abi.known("gpus"))["gpus"]]


def dryrun(command: Command, *, gpu: Optional[str] = None, gpu_total: Optional[Size] = None, gpu_used: Optional[Size] = None,
           slice: Optional[Size] = None, load: Optional[str] = None, trace: Optional[Path] = None, timeout: int = 3600,
           quiet: bool = True, html: bool = False) -> DryRun:
    """Start the real engine on a GPU that is not there. `command` must be installed here; it takes as long as a start does.

    load: "N:IN:OUT", requests to send when it is ready; trace: a file for `replay`; quiet: no engine log on stderr; html: the report as a
    page, too, for `html()` and notebooks."""
    import subprocess
    import tempfile

    from ._command import command_path, environment

    options = ["--format", "html" if html else "text", "--timeout", str(timeout)] + (["--quiet"] if quiet else [])
    for name, value in (("--gpu", gpu), ("--gpu-total", gpu_total), ("--gpu-used", gpu_used), ("--slice", slice), ("--load", load),
                        ("--trace", None if trace is None else os.fspath(trace))):
        if value is not None:
            options += [name, str(value)]
    with tempfile.TemporaryDirectory(prefix="oomsight-") as folder:
        page, report = os.path.join(folder, "page"), os.path.join(folder, "report.json")
        run = subprocess.run([command_path(), "dryrun"] + options + ["--report", report, "--output", page, "--"] + _words(command),
                             env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE if quiet else None,
                             universal_newlines=True)
        if not os.path.exists(page):
            said = (run.stderr or "").strip().splitlines()
            text = said[-1] if said else "no report (exit %d)" % run.returncode
            raise {2: UsageError, 4: InternalError}.get(run.returncode, InputError)(run.returncode, text)
        with open(report, encoding="utf-8") as f, open(page, encoding="utf-8") as shown:
            return DryRun(f.read(), shown.read(), run.returncode)
