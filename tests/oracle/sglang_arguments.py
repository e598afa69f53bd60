#!/usr/bin/env python3
"""Does `plan` resolve SGLang's defaults as the engine does? sglang_arguments.py BINARY [--commands N] [--seed N] [--version 0.5.23]

With --commands that many commands drawn from a seed are compared instead of the fixed ones: one to six flags of those below, four models,
any device of 8 to 288 GiB. A command that the engine refuses must be one that plan refuses, too. The engine's own ServerArgs resolve every combination below in one process on the stand-in device, with the memory that `nvidia-smi` would
show put in its place; `plan` is asked the same. Compared are the static fraction, the chunk of prefill, the largest captured batch and how
many graphs there are of decode and prefill. Without an environment of SGLang: exit 77."""
import argparse
import gc
import importlib
import json
import os
import random
import subprocess
import sys
import time

import engines

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "fixtures", "models")
DEVICES = (16384, 24564, 32607, 40960, 46068, 49140, 81559, 97887, 143771, 183359, 275040)
FLAGS = ([], ["--tp", "4"], ["--disable-cuda-graph"], ["--chunked-prefill-size", "2048"], ["--max-running-requests", "16"],
         ["--cuda-graph-max-bs-decode", "64"])
OTHERS = (["--chunked-prefill-size", "-1"], ["--pp-size", "2"], ["--disable-prefill-cuda-graph"], ["--disable-decode-cuda-graph"],
          ["--max-total-tokens", "1000"], ["--page-size", "64"], ["--cuda-graph-bs-decode", "1", "2", "4"], ["--disable-cuda-graph-padding"])


# what is drawn from: a flag and its values; None: a switch
DRAWN = (("--tp", (2, 4, 8)), ("--pp-size", (2,)), ("--chunked-prefill-size", (-1, 512, 1000, 1024, 2048, 4096, 6000, 8192, 16384, 32768)),
         ("--max-running-requests", (1, 4, 16, 100, 256, 1024, 4000)), ("--max-prefill-tokens", (1024, 8192, 16384, 65536)),
         ("--max-total-tokens", (1000, 20000, 500000)), ("--page-size", (1, 16, 32, 64)), ("--cuda-graph-max-bs-decode", (1, 5, 16, 64, 200, 300, 777)),
         ("--cuda-graph-bs-decode", ((1,), (1, 2, 4), (8, 16, 32, 64))), ("--cuda-graph-max-bs-prefill", (64, 512, 1000, 4096)),
         ("--cuda-graph-bs-prefill", ((64, 128), (256, 512, 1024))), ("--disable-cuda-graph", None), ("--disable-decode-cuda-graph", None),
         ("--disable-prefill-cuda-graph", None), ("--disable-cuda-graph-padding", None), ("--mem-fraction-static", (0.5, 0.75, 0.83, 0.9)),
         ("--context-length", (1024, 4096, 8192)), ("--kv-cache-dtype", ("auto", "fp8_e4m3", "fp8_e5m2", "bfloat16")), ("--dtype", ("bfloat16", "float16")),
         ("--disable-radix-cache", None), ("--schedule-policy", ("lpm", "fcfs")), ("--schedule-conservativeness", (0.5, 1.2)), ("--enable-metrics", None),
         ("--stream-interval", (4,)), ("--swa-full-tokens-ratio", (0.5, 1.0)), ("--disable-overlap-schedule", None), ("--skip-server-warmup", None),
         ("--dp-size 2 --enable-dp-attention --tp", (2, 4, 8)), ("--cuda-graph-backend-decode", ("full", "disabled")), ("--cuda-graph-backend-prefill", ("tc_piecewise", "breakable", "disabled")))
DRAWN_MODELS = ("small-llama", "small-latent", "small-moe", "small-sliding")


def drawn(count, seed):
    dice = random.Random(seed)
    for _ in range(count):
        mib = dice.choice(DEVICES) if dice.random() < 0.7 else dice.randrange(8192, 294912)
        flags = []
        for flag, values in dice.sample(DRAWN, dice.randrange(1, 7)):
            value = dice.choice(values) if values else ()
            flags += flag.split() + [str(v) for v in (value if isinstance(value, tuple) else (value,))]
        yield mib, dice.choice(DRAWN_MODELS), flags


def cases(count=0, seed=0):
    if count:
        yield from drawn(count, seed)
        return
    for mib in DEVICES:
        for flags in FLAGS:
            yield mib, "small-llama", flags
        yield mib, "small-latent", []
        yield mib, "small-moe", ["--tp", "8", "--ep-size", "8"]
        yield mib, "small-sliding", []
    for flags in OTHERS:
        yield 81559, "small-llama", flags
    for mib in DEVICES:
        yield mib, "small-latent", ["--tp", "2", "--dp-size", "2", "--enable-dp-attention"]
        yield mib, "small-llama", ["--tp", "4", "--dp-size", "4", "--enable-dp-attention", "--disable-cuda-graph"]


def graphs(phase):
    return 0 if "disabled" in str(phase.backend).lower() else len(phase.bs or [])


def resolver():
    """What asks the engine, whichever release it is: words in, five figures out."""
    from sglang.srt import server_args as module
    try:  # since 0.5.20 resolving is a pipeline beside the class
        import sglang.srt.arg_groups.pipeline  # noqa: F401
        from sglang.srt.arg_groups import memory_hook as memory
        from sglang.srt.arg_groups.overrides import resolving_view
    except ImportError:
        memory, resolving_view = module, None

    def ask(mib, words):
        memory.get_device_memory_capacity = lambda *_: float(mib)
        args = module.prepare_server_args(words)
        if resolving_view:
            args.resolve_once()
        args.check_server_args()
        if resolving_view:
            args = resolving_view(args)
        decode, prefill = args.cuda_graph_config.decode, args.cuda_graph_config.prefill
        return [args.mem_fraction_static, args.chunked_prefill_size, decode.max_bs, graphs(decode), graphs(prefill)]
    return ask


def words_of(model, flags):
    return ["--model-path", os.path.join(MODELS, model), *flags, "--load-format", "dummy", "--skip-tokenizer-init",
            "--attention-backend", "triton", "--sampling-backend", "pytorch"]


def warm(ask):
    """What a first resolving imports, imported here: else each fork does it again."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        before = set(sys.modules)
        ask(24564, words_of(DRAWN_MODELS[0], []))
        with os.fdopen(theirs, "w") as f:
            f.write(" ".join(name for name in list(sys.modules) if name not in before))
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as f:
        names = f.read().split()
    os.waitpid(child, 0)
    from sglang.srt import server_args
    server_args.ServerArgs.add_cli_args(argparse.ArgumentParser())  # what is worked out once about its fields
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001 a name that is no module of its own
            pass


def resolve(count, seed):
    """Inside the engine's environment: one line of JSON for each case, in a child each, because resolving leaves traces."""
    ask = resolver()
    import sglang.srt.configs.model_config  # noqa: F401
    import torch
    torch.cuda._is_in_bad_fork = lambda: False  # importing the engine asks the device; a stand-in outlives a fork
    warm(ask)
    gc.freeze()
    gc.disable()  # or every fork copies all pages

    for number, (mib, model, flags) in enumerate(cases(count, seed)):
        sys.stdout.flush()
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        try:
            answer = ask(mib, words_of(model, flags))
        except (ValueError, AssertionError, NotImplementedError, SystemExit) as error:  # it would not start; any other is a fault of this test
            answer = "%s: %s" % (type(error).__name__, str(error)[:200])
        print("\nRESOLVED", json.dumps([number, answer]), flush=True)
        os._exit(0)


def planned(binary, version, mib, model, flags):
    done = subprocess.run([binary, "plan", "--json", "--offline", "--gpu-total", "%dMiB" % mib, "--gpu-cc", "8.9", "--engine", "sglang=" + version, "--",
                           "sglang", "serve", os.path.join(MODELS, model), *flags], stdout=subprocess.PIPE, check=False)
    try:
        plan = json.loads(done.stdout)
    except ValueError:
        return "exit %d" % done.returncode
    own = plan["setup"].get("own") or {}
    if plan["phase"] == "arguments" or not own:
        return "refused"
    return [own[key] for key in ("mem_fraction_static", "chunked_prefill_size", "cuda_graph_max_bs_decode", "cuda_graphs_decode", "cuda_graphs_prefill")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--resolve", action="store_true", help="inside the engine's environment")
    parser.add_argument("--commands", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=3000, help="what is resolved by then is compared")
    parser.add_argument("--version", default="0.5.23")
    args = parser.parse_args()
    if args.resolve:
        return resolve(args.commands, args.seed)
    binary = os.path.abspath(args.binary)
    python = os.path.join(engines.VENVS, "sglang-" + args.version, "bin", "python")
    if not os.path.exists(python):
        print("no environment of SGLang", args.version)
        return 77
    begun = time.time()
    with engines.turn():
        done = subprocess.run([binary, "dryrun", "--gpu", "L40S", "--timeout", str(args.seconds), "--", python, os.path.abspath(__file__), "-", "--resolve",
                               "--commands", str(args.commands), "--seed", str(args.seed)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    answers = dict(json.loads(line[9:]) for line in done.stdout.split("\n") if line.startswith("RESOLVED "))
    every, equal, refused = list(cases(args.commands, args.seed)), 0, 0
    if not answers:
        print(done.stdout[-3000:])
        return 1
    for number, case in enumerate(every):
        if number not in answers:  # it was stopped
            continue
        mine, answer = planned(binary, args.version, *case), answers[number]
        same = mine == answer or (isinstance(mine, str) and isinstance(answer, str))
        equal += same
        refused += isinstance(answer, str)
        if not same:
            print(*case, "engine", answer, "plan", mine)
    print("%d of %d resolved as the engine %s does, %d of them refused by it (%d s)%s" % (
        equal, len(answers), args.version, refused, time.time() - begun, "" if len(answers) == len(every) else "; %d were asked" % len(every)))
    return 0 if equal >= 0.99 * len(answers) and len(answers) == len(every) else 1


if __name__ == "__main__":
    sys.exit(main())
