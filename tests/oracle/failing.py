"""Starts of one engine from one process that has imported it, read by the engine's own Python under `oomsight dryrun`:

    oomsight dryrun --gpu L4 -- python failing.py JOBS.jsonl OUT SECONDS

A child is forked per line of JOBS before CUDA is touched: {"key", "model", "engine": {LLM keywords}, "full": {"at": function,
"left": bytes}}. Just before the named function of the worker runs, all of the device but `left` bytes is taken, as another
process would take it; what the engine then does and prints is its own. Without "full" the start succeeds, serves two requests,
and keeps the stack of every allocation (oomsight_stacks). OUT/KEY.log is the engine's log, OUT/KEY.json how it ended: the
names of the functions on the stack of the failure, outermost first. No further child is started after SECONDS."""
import ctypes
import gc
import json
import os
import signal
import sys
import time
import traceback

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"

import torch  # noqa: E402
import transformers  # noqa: E402, F401
import vllm  # noqa: E402
from vllm import LLM, SamplingParams  # noqa: E402
import vllm.v1.engine.core  # noqa: E402, F401
from vllm.v1.worker import gpu_worker, gpu_model_runner  # noqa: E402


def cudart():
    for name in ("libcudart.so.13", "libcudart.so.12"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError("no libcudart")


def fill(left):
    """Takes what is free but for `left` bytes."""
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
    """Every class that may hold a function of the worker or of its runner, in any release."""
    yield gpu_worker.Worker
    yield gpu_model_runner.GPUModelRunner
    runner = sys.modules.get("vllm.v1.worker.gpu.model_runner")
    if runner:
        yield runner.GPUModelRunner


def arm(name, left, call):
    """`fill` before the call-th call of the function."""
    calls = [0]
    if name == "LLM":
        fill(left)
        return
    if name == "process_weights_after_loading":
        from vllm.model_executor.model_loader import utils, base_loader
        for module in (utils, base_loader):
            inner = getattr(module, name, None)
            if inner:
                setattr(module, name, lambda *a, _inner=inner, **k: (fill(left), _inner(*a, **k))[1])
        return
    for cls in places():
        inner = vars(cls).get(name)
        if not inner:
            continue

        def step(self, *args, _inner=inner, **kwargs):
            calls[0] += 1
            if calls[0] == call:
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
                fill(left)
            return _inner(self, *args, **kwargs)
        step.__name__ = name
        setattr(cls, name, step)


def serve(llm, rounds=2):
    for i in range(rounds):
        llm.generate([{"prompt_token_ids": list(range(5, 5 + 300 * (i + 1)))}],
                     SamplingParams(max_tokens=4, temperature=0.8, top_p=0.9, logprobs=2 if i else None, detokenize=False), use_tqdm=False)


def run(job, out):
    key, full = job["key"], job.get("full")
    log = os.open(os.path.join(out, key + ".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    end = {"key": key, "vllm": vllm.__version__, "full": full, "error": None, "functions": []}
    if full:
        arm(full["at"], full["left"], full.get("call", 1))
    else:
        import oomsight_stacks  # beside sitecustomize, in a dry run only
        os.environ["OOMSIGHT_STACKS"] = out
        oomsight_stacks.hook(gpu_worker)
    begun = time.time()
    try:
        llm = LLM(model=job["model"], load_format="dummy", skip_tokenizer_init=True, **job["engine"])
        serve(llm)
    except BaseException as error:  # noqa: BLE001 whatever the engine ends with
        sys.stdout.flush()
        frames = []
        while error is not None:
            frames = traceback.extract_tb(error.__traceback__) or frames
            last, error = error, error.__cause__ or error.__context__
        end.update(error=type(last).__name__, message=str(last)[:400], functions=[[f.filename, f.name] for f in frames])
        traceback.print_exc()
    end["seconds"] = round(time.time() - begun, 1)
    with open(os.path.join(out, key + ".json"), "w", encoding="utf-8") as f:
        json.dump(end, f)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def main():
    jobs, out, seconds = sys.argv[1:4]
    begun = time.time()
    gc.freeze()
    with open(jobs, encoding="utf-8") as f:
        jobs = [json.loads(line) for line in f]
    for job in jobs:
        if time.time() - begun > float(seconds):
            break
        pid = os.fork()
        if pid == 0:
            run(job, out)
        end = time.time() + 240
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.time() > end:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                break
            time.sleep(0.1)


main()
