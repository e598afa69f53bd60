"""Commands that `plan` offers, started from one process that has imported the engine: read by the engine's own Python under
`oomsight dryrun`.

    oomsight dryrun --gpu 4090 -- python suggestions_zygote.py JOBS.jsonl OUT

A child is forked per line {"key", "words"} before CUDA is touched, so the device is empty for each. It parses the words as `vllm serve`
does, makes the configuration that the server makes, and starts the engine core in itself: weights, profile, KV cache, graphs. The
server in front of it, which has nothing on the device, is left out. OUT/KEY.log is the engine's log, OUT/KEY.json how it ended.
The machine's turn (engines.py) is taken for each start, not for all."""
import gc
import json
import os
import signal
import sys
import time
import traceback

import torch  # noqa: F401
import transformers  # noqa: F401
import vllm  # noqa: F401
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.model_executor.models import registry
from vllm.usage.usage_lib import UsageContext
from vllm.v1.engine.core import EngineCore
from vllm.v1.executor.abstract import Executor
import vllm.v1.executor.uniproc_executor  # noqa: F401
import vllm.v1.worker.gpu_worker  # noqa: F401
import vllm.v1.worker.gpu_model_runner  # noqa: F401

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import arguments_judge  # noqa: E402
import engines  # noqa: E402

CHILD_SECONDS = 600


def start(words):
    registry._run_in_subprocess = lambda function: function()  # a child is a process of its own already
    parser, command = arguments_judge.make_parser()
    arguments = parser.parse_args(["serve"] + words)
    command.validate(arguments)
    if getattr(arguments, "model_tag", None):
        arguments.model = arguments.model_tag
    config = AsyncEngineArgs.from_cli_args(arguments).create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
    return EngineCore(config, Executor.get_class(config), log_stats=False)


def child(job, out):
    log = os.open(os.path.join(out, job["key"] + ".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    begun, end = time.time(), {"key": job["key"], "ok": True}
    try:
        start(job["words"])
    except BaseException as error:  # noqa: BLE001 whatever the engine ends with
        end.update(ok=False, error="%s: %s" % (type(error).__name__, str(error)[:400]))
        traceback.print_exc()
    end["seconds"] = round(time.time() - begun, 1)
    sys.stdout.flush()
    sys.stderr.flush()
    with open(os.path.join(out, job["key"] + ".json"), "w", encoding="utf-8") as f:
        json.dump(end, f)
    os._exit(0)


def ends(pid, seconds):
    end = time.time() + seconds
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.time() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return
        time.sleep(0.1)


def main():
    jobs, out = sys.argv[1:3]
    gc.freeze()
    with open(jobs, encoding="utf-8") as f:
        jobs = [json.loads(line) for line in f]
    for job in jobs:
        with engines.turn():
            pid = os.fork()
            if pid == 0:
                child(job, out)
            ends(pid, CHILD_SECONDS)


if __name__ == "__main__":
    main()
