"""Starts of one engine from one process that has imported it, read by the engine's own Python under `oomsight dryrun`:

    oomsight dryrun --gpu L4 -- python failing.py JOBS.jsonl MODULES SECONDS

A child is forked per line of JOBS before CUDA is touched: {"key", "out", "model", "architecture", "engine": {settings}, "mode",
"env", "full": {"at": function, "left": bytes, "serving": bool}}. Just before the named function of the worker runs (while serving:
only once the start is over), all of the device but `left` bytes is taken, as another process would take it; what the engine then
does and prints is its own. Modes: `inline` has all in one process, `engine` the engine's core in its own, `worker` the worker too,
`serve` is the server. Without "full" the start succeeds, serves two requests, and keeps the stack of every allocation
(oomsight_stacks). OUT/KEY.log is the engine's log, OUT/KEY.json how it ended: the functions on the stack where it failed,
outermost first. What a start imports besides is kept in the file MODULES, and imported before the first fork of the next call. No
further child is started after SECONDS."""
import ctypes
import gc
import importlib
import json
import os
import signal
import sys
import time
import traceback

import torch
import transformers  # noqa: F401
import vllm
from vllm import LLM, SamplingParams
import vllm.entrypoints.cli.main
import vllm.entrypoints.cli.serve  # noqa: F401
from vllm.model_executor.models import ModelRegistry, registry
from vllm.v1.engine import core
from vllm.v1.worker import gpu_worker, gpu_model_runner

STEPS = ("init_device", "load_model", "determine_available_memory", "initialize_from_config", "compile_or_warm_up_model", "execute_model",
         "sample_tokens", "sleep", "wake_up")
PATIENCE = 240
ready = [False]


def cudart():
    for name in ("libcudart.so.13", "libcudart.so.12"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError("no libcudart")


def fill(left):
    """Takes what is free but for `left` bytes."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    take, at = max(0, free - left), ctypes.c_void_p()
    library, step = cudart(), 1 << 30
    while take > 0 and step >= 1 << 20:
        size = min(step, take)
        if library.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(size)):
            step //= 2
            continue
        take -= size


def places():
    """Everything that may hold a function of the worker or of its runner, in any release."""
    from vllm.model_executor.model_loader import utils, base_loader
    yield from (gpu_worker.Worker, gpu_model_runner.GPUModelRunner, utils, base_loader)
    for name in ("vllm.v1.worker.gpu.model_runner", "vllm.v1.worker.gpu.sample.sampler", "vllm.v1.sample.sampler"):
        module = sys.modules.get(name)
        for cls in ("GPUModelRunner", "Sampler"):
            if module and hasattr(module, cls):
                yield getattr(module, cls)


def around(place, name, before=None, failed=None, after=None):
    inner = vars(place).get(name)
    if not callable(inner):
        return

    def step(*args, **kwargs):
        if before:
            before()
        try:
            result = inner(*args, **kwargs)
        except Exception as error:
            if failed:
                failed(error)
            raise
        if after:
            after()
        return result
    step.__name__ = name
    setattr(place, name, step)


def arm(full):
    """`fill` before the first call of the function."""
    done = [False]

    def before():
        if not done[0] and (ready[0] or not full.get("serving")):
            done[0] = True
            fill(full["left"])
    for place in places():
        around(place, full["at"], before=before)


def frames_of(error):
    """Where an error comes from at the bottom of its chain, with what called that."""
    outer, inner = traceback.extract_stack(), []
    while error is not None:
        inner = traceback.extract_tb(error.__traceback__) or inner
        last, error = error, error.__cause__ or error.__context__
    return last, [[f.filename, f.name] for f in list(outer) + list(inner) if f.filename != __file__]


def watch(job, end):
    """The first failure of a step, in whichever process it is, is written down."""
    path = os.path.join(job["out"], job["key"] + ".json")

    def failed(error):
        if not os.path.exists(path):
            last, frames = frames_of(error)
            write(path, dict(end, error=type(last).__name__, message=str(last)[:400], functions=frames))

    def started():
        ready[0] = True
    for name in STEPS:
        around(gpu_worker.Worker, name, failed=failed, after=started if name == "compile_or_warm_up_model" else None)
    around(core.EngineCore, "__init__", failed=failed)
    return path


def write(path, record):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(record, f)


def serve(llm, job):
    requests = job.get("requests", 1)
    for i in range(2):
        llm.generate([{"prompt_token_ids": list(range(5, 5 + 300 * (i + 1)))} for _ in range(requests)],
                     SamplingParams(max_tokens=4, temperature=0.8, top_p=0.9, logprobs=2 if i else None, detokenize=False), use_tqdm=False)
    if job["engine"].get("enable_sleep_mode"):
        llm.sleep(level=1)
        llm.wake_up()


def words(job):
    """The settings as words of a command line."""
    said = ["vllm", "serve", job["model"], "--load-format", "dummy", "--skip-tokenizer-init", "--port", "0"]
    for name, value in job["engine"].items():
        said.append("--" + name.replace("_", "-"))
        if value is not True:
            said.append(json.dumps(value) if isinstance(value, dict) else str(value))
    return said


def start(job):
    if job["mode"] == "serve":
        sys.argv = words(job)
        vllm.entrypoints.cli.main.main()
    more = {"distributed_executor_backend": "mp"} if job["mode"] == "worker" else {}
    if not job.get("tokenizer"):
        more["skip_tokenizer_init"] = True
    serve(LLM(model=job["model"], load_format="dummy", **more, **job["engine"]), job)


def run(job):
    key, out, full = job["key"], job["out"], job.get("full")
    os.setsid()
    log = os.open(os.path.join(out, key + ".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update({"VLLM_ENABLE_V1_MULTIPROCESSING": "0" if job["mode"] == "inline" else "1", "VLLM_WORKER_MULTIPROC_METHOD": "fork",
                       "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1", **job.get("env", {})})
    end = {"key": key, "vllm": vllm.__version__, "mode": job["mode"], "full": full, "error": None, "functions": []}
    if full:
        arm(full)
    else:
        import oomsight_stacks  # beside sitecustomize, in a dry run only
        os.environ["OOMSIGHT_STACKS"] = out
        oomsight_stacks.hook(gpu_worker)
    path = watch(job, end)
    try:
        start(job)
    except BaseException as error:  # noqa: BLE001 whatever the engine ends with
        sys.stdout.flush()
        if not os.path.exists(path):
            last, frames = frames_of(error)
            end.update(error=type(last).__name__, message=str(last)[:400], functions=frames)
        if not isinstance(error, SystemExit):
            traceback.print_exc()
    if not os.path.exists(path):
        write(path, end)
    sys.stdout.flush()
    sys.stderr.flush()
    learn(job["modules"])
    os.killpg(0, signal.SIGKILL)


def known(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def learn(path):
    names = {n for n in sys.modules if n.partition(".")[0] in ("vllm", "flashinfer", "triton", "transformers", "vllm_flash_attn", "torch")}
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(sorted(names | set(known(path)))) + "\n")


def refused():
    raise RuntimeError("not before the fork")


def warm(path):
    """Imports what earlier starts imported. A module that asks for the device when it is imported fails here, and is left to the child."""
    inner, torch.cuda._lazy_init = torch.cuda._lazy_init, refused
    for name in known(path):
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001 also modules that only exist once something has run
            continue
    torch.cuda._lazy_init = inner
    if torch.cuda.is_initialized():
        sys.exit("a module of %s has touched the device: nothing can be forked" % path)


def main():
    jobs, modules, seconds = sys.argv[1:4]
    with open(jobs, encoding="utf-8") as f:
        jobs = [dict(json.loads(line), modules=modules) for line in f]
    warm(modules)
    begun = time.time()
    # A release asks another process what a model can do, which imports everything again; here it is imported already.
    registry._LazyRegisteredModel.inspect_model_cls = lambda self: registry._ModelInfo.from_model_cls(self.load_model_cls())
    for architecture in sorted({j["architecture"] for j in jobs}):
        try:
            ModelRegistry.models[architecture].load_model_cls()
        except Exception as error:  # noqa: BLE001 a release may not know it
            print("not loaded:", architecture, type(error).__name__)
    gc.freeze()
    for job in jobs:
        if time.time() - begun > float(seconds):
            break
        pid = os.fork()
        if pid == 0:
            run(job)
        end = time.time() + PATIENCE
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.time() > end:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                break
            time.sleep(0.05)


main()
