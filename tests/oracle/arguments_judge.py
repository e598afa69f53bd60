"""The real parser and configuration of one vLLM release as a judge of commands. Runs inside the engine's Python, on a stand-in
device: `oomsight dryrun --gpu h100x8 -- python arguments_judge.py COMMANDS ANSWERS`. Both files hold one JSON object a line:
{"argv": [...], "env": {...}} in, {"ok": true, "fields": {...}} or {"ok": false, "stage": ..., "type": ..., "text": ...} out.

Every command is judged in a process of its own, forked from one that has everything imported, so that none leaves anything behind
for the next. Architectures are looked at in this process instead of one more (the answer is the same, a hundred times sooner).
"""
import contextlib
import io
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../shim/python"))
from oomsight_ask import word  # noqa: E402

SECONDS = 60


def make_parser():
    from vllm.entrypoints.cli.serve import ServeSubcommand
    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:
        from vllm.utils import FlexibleArgumentParser
    parser = FlexibleArgumentParser(prog="vllm")
    subparsers = parser.add_subparsers(required=False, dest="subparser")
    command = ServeSubcommand()
    command.subparser_init(subparsers).set_defaults(dispatch_function=command.cmd)
    return parser, command


def resolved(config):
    model, cache, parallel = config.model_config, config.cache_config, config.parallel_config
    scheduler, compilation = config.scheduler_config, config.compilation_config
    sizes = compilation.cudagraph_capture_sizes
    mode = getattr(compilation, "cudagraph_mode", None)
    spec = config.speculative_config
    attention = getattr(config, "attention_config", None)
    return {
        "max_model_len": model.max_model_len,
        "max_num_seqs": scheduler.max_num_seqs,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "block_size": cache.block_size,
        "dtype": word(model.dtype),
        "kv_cache_dtype": cache.cache_dtype,
        "quantization": model.quantization,
        "cudagraph_mode": word(mode),
        "cudagraph_capture_sizes": sorted(sizes) if sizes else [],
        "chunked_prefill": bool(getattr(scheduler, "enable_chunked_prefill", getattr(scheduler, "chunked_prefill_enabled", None))),
        "prefix_caching": bool(cache.enable_prefix_caching),
        "async_scheduling": bool(scheduler.async_scheduling),
        "tensor_parallel_size": parallel.tensor_parallel_size,
        "pipeline_parallel_size": parallel.pipeline_parallel_size,
        "data_parallel_size": parallel.data_parallel_size,
        "expert_parallel": bool(parallel.enable_expert_parallel),
        "decode_context_parallel_size": getattr(parallel, "decode_context_parallel_size", 1),
        "enforce_eager": bool(model.enforce_eager),
        "speculative_tokens": spec.num_speculative_tokens if spec else 0,
        "attention_backend": word(attention.backend) if attention else None,
    }


def judge(parser, command, argv):
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext
    said = io.StringIO()
    stage = "parser"
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            arguments = parser.parse_args(["serve"] + argv)
            stage = "frontend"
            command.validate(arguments)
            if getattr(arguments, "model_tag", None) is not None:
                arguments.model = arguments.model_tag
            stage = "config"
            engine = AsyncEngineArgs.from_cli_args(arguments)
            config = engine.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
            return {"ok": True, "fields": resolved(config)}
    except SystemExit:
        text = said.getvalue()
        return {"ok": False, "stage": stage, "type": "SystemExit", "text": text[max(text.rfind("error: "), 0):][:900]}
    except BaseException as error:  # noqa: B902 whatever the engine dies of is its answer
        return {"ok": False, "stage": stage, "type": type(error).__name__, "text": str(error)[:900]}


def in_child(parser, command, record):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.environ.update(record.get("env") or {})
        signal.alarm(SECONDS)
        answer = judge(parser, command, record["argv"])
        with os.fdopen(writer, "w") as out:
            json.dump(answer, out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as source:
        text = source.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else {"ok": None, "stage": "judge", "type": "died", "text": ""}


def mend_environment():
    """Two packages that own the same module, a fork behind a device that does not mind one, and the host of such devices."""
    import torch
    torch.cuda._is_in_bad_fork = lambda: False
    with contextlib.suppress(Exception):  # a server's memory, not this machine's: swap space was measured against it
        import vllm.config.cache
        vllm.config.cache.get_cpu_memory = lambda: 2 << 40
    with contextlib.suppress(Exception):
        import cuda.bindings.runtime as runtime
        if not hasattr(runtime, "cudaLibrary_t"):
            runtime.cudaLibrary_t = type("cudaLibrary_t", (), {})


def look_at_architectures(models):
    """Import what the commands will ask for, once."""
    from vllm.model_executor.models import registry
    registry._run_in_subprocess = lambda function: function()
    names = set()
    for folder in models:
        try:
            with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
                config = json.load(file)
            names.update(config.get("architectures") or ())
        except (OSError, ValueError):
            continue
    for name in sorted(names):
        known = registry.ModelRegistry.models.get(name)
        try:
            if known:
                known.inspect_model_cls()
        except BaseException as error:  # noqa: B902 it will be met again, by a command
            print(name, type(error).__name__, str(error)[:200], file=sys.stderr)


def main():
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    start = time.time()
    with open(sys.argv[1], encoding="utf-8") as file:
        commands = [json.loads(line) for line in file]
    mend_environment()
    parser, command = make_parser()
    models = sorted({record["argv"][0] for record in commands if record["argv"]})
    look_at_architectures(models)
    for words in [[model] for model in models] + [[models[0], "-tp", "2"]]:
        before = dict(os.environ)
        judge(parser, command, words + ["--skip-tokenizer-init"])
        os.environ.clear()  # some architectures set variables for themselves, which would speak for all that come after
        os.environ.update(before)
    parser, command = make_parser()  # objects that are defaults of the first one have been filled in by now
    print(f"loaded in {time.time() - start:.0f} s", file=sys.stderr)
    start = time.time()
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        for record in commands:
            out.write(json.dumps(in_child(parser, command, record)) + "\n")
            out.flush()
    print(f"{len(commands)} commands in {time.time() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
