#!/usr/bin/env python3
"""Does `plan` resolve the defaults of SGLang's releases before 0.5.18 as each of them does?

    sglang_releases.py BINARY --sources DIR [--releases 0.4.6,...] [--commands N] [--seed N]

DIR/RELEASE/python is the unpacked wheel. Its own ServerArgs, ModelConfig, list of captured batches and bound of requests answer, with stand-ins for
PyTorch and all else (tools/sglang_sources.py) and the memory of the device put in its place; `plan` is asked the same. Compared are the decision (refused
or not), the static fraction, the chunk, the largest captured batch, how many graphs there are of decode and of prefill, requests at once
(from the pool that plan has) and the longest context. Commands are drawn from a seed, of the flags that the release has. Without sources: exit 77."""
import argparse
import ast
import collections
import json
import os
import random
import subprocess
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "tools")]
MODELS = os.path.join(HERE, "..", "fixtures", "models")
RELEASES = "0.4.6,0.4.9,0.5.0,0.5.8,0.5.12"
DEVICES = (15360, 16384, 23028, 24564, 32607, 40960, 46068, 49140, 81559, 97887, 97871, 143771, 183359, 275040)
DRAWN_MODELS = ("small-llama", "small-latent", "small-moe", "small-sliding")
FIGURES = ("fraction", "chunk", "largest batch", "decode graphs", "prefill graphs", "requests", "context")
DRAWN = (("--tp", (2, 4, 8)), ("--tensor-parallel-size", (2, 4)), ("--pp-size", (2,)), ("--chunked-prefill-size", (-1, 512, 1000, 2048, 4096, 16384)),
         ("--max-running-requests", (1, 4, 16, 100, 256, 4000)), ("--max-prefill-tokens", (1024, 65536)), ("--max-total-tokens", (1000, 20000)),
         ("--page-size", (1, 16, 64)), ("--cuda-graph-max-bs", (1, 5, 16, 64, 200, 300, 777)), ("--disable-cuda-graph", None),
         ("--disable-cuda-graph-padding", None), ("--mem-fraction-static", (0.5, 0.75, 0.9)), ("--context-length", (1024, 4096, 1000000)),
         ("--kv-cache-dtype", ("auto", "fp8_e5m2")), ("--dtype", ("float16",)), ("--disable-radix-cache", None), ("--schedule-policy", ("fcfs",)),
         ("--enable-metrics", None), ("--dp-size 2 --enable-dp-attention --tp", (2, 4, 8)), ("--enable-ep-moe --tp", (4,)),
         ("--enable-piecewise-cuda-graph", None), ("--disable-piecewise-cuda-graph", None), ("--piecewise-cuda-graph-max-tokens", (512, 4096)),
         ("--swa-full-tokens-ratio", (0.5,)), ("--disable-overlap-schedule", None), ("--cuda-graph-bs", (1, 8, 64)), ("--disaggregation-mode", ("prefill", "decode")), ("--load-format", ("auto",)),
         ("--quantization", ("fp8", "gptq")), ("--enable-torch-compile", None), ("--enable-hierarchical-cache", None), ("--base-gpu-id", (1,)), ("--enable-mixed-chunk", None))


def cases(release, spellings, count, seed):
    dice = random.Random("%s %d" % (release, seed))
    have = [(flag, values) for flag, values in DRAWN if all(word in spellings for word in flag.split() if word.startswith("--"))]
    for number in range(count):
        mib = dice.choice(DEVICES) if dice.random() < 0.7 else dice.randrange(8192, 294912)
        flags = []
        for flag, values in dice.sample(have, min(number, dice.randrange(0, 5))):
            flags += flag.split() + ([str(dice.choice(values))] if values else [])
        yield mib, dice.choice(DRAWN_MODELS), flags


class Config:
    """config.json as an object, as the engine's library of configs gives it."""

    def __init__(self, fields):
        self.__dict__.update(fields)

    def to_dict(self):
        return dict(self.__dict__)

    def get_text_config(self, *_, **__):
        return self

    def update(self, fields):
        self.__dict__.update(fields)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("rope_scaling", "quantization_config", "sliding_window", "head_dim", "attention_chunk_size", "bos_token_id", "eos_token_id"):
            return None
        raise AttributeError(name)


def config_of(path, *_, **__):
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        return Config(json.load(f))


def piece(folder, names, find):
    """What `find` gives for a node of one of the files, compiled; None: of none."""
    for name in names:
        path = os.path.join(folder, "sglang", "srt", name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                for node in ast.walk(ast.parse(f.read())):
                    found = find(node)
                    if found is not None:
                        return found
    return None


def function(name):
    def find(node):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            node.returns, node.decorator_list = None, []
            for arg in node.args.args:
                arg.annotation = None
            return compile(ast.Module([node], []), name, "exec")
        return None
    return find


def assigned(target, *words):
    """The value of an assignment to `target` in which these words stand."""
    def find(node):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == target and all(w in ast.unparse(node.value) for w in words):
            return compile(ast.Expression(node.value), target, "eval")
        return None
    return find


class Release:
    """What answers for one release."""

    def __init__(self, folder):
        import sglang_sources
        sglang_sources.use(folder)
        self.folder = folder
        self.module = sglang_sources.load("sglang.srt.server_args")
        self.configs = sglang_sources.load("sglang.srt.configs.model_config")
        self.module.get_device = lambda *_: "cuda"
        self.configs.get_config = config_of
        self.configs.get_generation_config = lambda *_, **__: None
        self.configs.get_hf_text_config = lambda config: config
        self.configs.get_sparse_attention_config = lambda *_, **__: {}
        self.configs._get_and_verify_dtype = lambda *_: "dtype"
        sizes = piece(folder, ["model_executor/cuda_graph_runner.py"], function("get_batch_sizes_to_capture"))
        self.by_runner = sizes and b"cuda_graph_max_bs" in b" ".join(n.encode() for c in sizes.co_consts if hasattr(c, "co_names") for n in c.co_names)
        self.sizes = sizes
        runner = ["model_executor/model_runner_kv_cache_mixin.py", "model_executor/model_runner.py"]
        self.resolve = piece(folder, runner, function("_resolve_max_num_reqs"))
        self.guess = piece(folder, runner, assigned("max_num_reqs", "512", "context_len"))
        self.bound = piece(folder, ["managers/tp_worker.py", *runner[1:]], assigned("self.max_running_requests", "// 2"))

    def spellings(self):
        parser = argparse.ArgumentParser()
        self.module.ServerArgs.add_cli_args(parser)
        return set(parser._option_string_actions)

    def captured(self, args, mib, table):
        if args.disable_cuda_graph and not self.by_runner:
            return args.cuda_graph_max_bs, 0
        if not self.by_runner:
            return args.cuda_graph_max_bs, len(args.cuda_graph_bs)
        space = {"get_device_memory_capacity": lambda *_: float(mib), "require_gathered_buffer": lambda a: a.enable_dp_attention,
                 "get_attention_tp_size": lambda: args.tp_size // (args.dp_size if args.enable_dp_attention else 1), "ModelRunner": object}
        exec(self.sizes, space)  # noqa: S102 the release's own function
        if args.disable_cuda_graph and args.cuda_graph_bs:  # it is not asked then
            return None, 0
        listed = space["get_batch_sizes_to_capture"](types.SimpleNamespace(server_args=args, req_to_token_pool=types.SimpleNamespace(size=table)))[0]
        return max(listed), 0 if args.disable_cuda_graph else len(listed)

    def requests(self, args, tokens, context):
        """(rows of the table, requests at once)"""
        config = types.SimpleNamespace(context_len=context)
        replicas = args.dp_size if args.enable_dp_attention else 1
        self_ = types.SimpleNamespace(max_total_num_tokens=tokens, model_config=config, server_args=args, mambaish_config=None, dp_size=replicas)
        if self.resolve:
            space = {"ModelRunner": object}
            exec(self.resolve, space)  # noqa: S102
            rows = space["_resolve_max_num_reqs"](self_, tokens)
            return rows, rows
        given = args.max_running_requests
        rows = given // replicas if given is not None else eval(self.guess, {"self": self_})  # noqa: S307
        pool = types.SimpleNamespace(size=rows)
        self_.req_to_token_pool, self_.model_runner = pool, types.SimpleNamespace(req_to_token_pool=pool, model_config=config)
        return rows, eval(self.bound, {"self": self_, "server_args": args})  # noqa: S307

    def ask(self, mib, model, flags, tokens):
        self.module.get_device_memory_capacity = lambda *_: float(mib)
        args = self.module.prepare_server_args(["--model-path", os.path.join(MODELS, model), *flags, "--load-format", "dummy", "--skip-tokenizer-init",
                                                "--attention-backend", "triton", "--sampling-backend", "pytorch"])
        if hasattr(args, "check_server_args"):
            args.check_server_args()
        context = self.configs.ModelConfig.from_server_args(args).context_len
        rows, running = self.requests(args, tokens, context)
        spare = 1 if "max_num_reqs + 1" in open(os.path.join(self.folder, "sglang/srt/model_executor/model_runner.py"), encoding="utf-8").read() else 0
        most, decode = self.captured(args, mib, rows + spare)
        on = not args.disable_piecewise_cuda_graph if hasattr(args, "disable_piecewise_cuda_graph") else getattr(args, "enable_piecewise_cuda_graph", False)
        return [args.mem_fraction_static, args.chunked_prefill_size, most, decode, len(args.piecewise_cuda_graph_tokens or ()) if on else 0, running, context]


def resolve(folder):
    """Inside a process of its own: asked on standard input, answered on standard output, each in a child because resolving leaves traces."""
    release = Release(folder)
    print("\nRESOLVED", json.dumps(sorted(release.spellings())), flush=True)
    for line in sys.stdin:
        number, case = json.loads(line)
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        try:
            answer = release.ask(*case)
        except (ValueError, AssertionError, NotImplementedError, SystemExit) as error:  # it would not start
            answer = "%s: %s" % (type(error).__name__, str(error)[:200])
        except Exception as error:  # noqa: BLE001 a fault of this program, seen in the table
            answer = ["%s: %s" % (type(error).__name__, str(error)[:200])]
        print("\nRESOLVED", json.dumps([number, answer]), flush=True)
        os._exit(0)


def planned(binary, release, mib, model, flags):
    """(figures, tokens of the pool); a word where there are none."""
    done = subprocess.run([binary, "plan", "--json", "--offline", "--gpu-total", "%dMiB" % mib, "--gpu-cc", "8.9", "--engine", "sglang=" + release, "--",
                           "sglang", "serve", os.path.join(MODELS, model), *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    try:
        plan = json.loads(done.stdout)
    except ValueError:
        return "exit %d" % done.returncode, 0
    own = plan["setup"].get("own") or {}
    if plan["phase"] == "arguments" or not own:
        return "refused", 0
    figures = [own.get(key) for key in ("mem_fraction_static", "chunked_prefill_size", "cuda_graph_max_bs_decode", "cuda_graphs_decode", "cuda_graphs_prefill",
                                        "max_running_requests")]
    return [*figures, plan["setup"]["max_model_len"]], own.get("max_total_num_tokens") or 0


def lines(process):
    for line in process.stdout:
        if line.startswith("RESOLVED "):
            yield json.loads(line[9:])


def same(mine, answer):
    return mine is None or mine == answer or abs(mine - answer) < 1e-9


def compare(binary, folder, release, count, seed, shown):
    """(asked, decisions alike, refused by it, {figure: (compared, equal)}, commands alike in all)"""
    process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "-", "--resolve", "--sources", folder], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    answers, figures = lines(process), collections.OrderedDict((name, [0, 0]) for name in FIGURES)
    asked = decided = refused = alike = 0
    for number, case in enumerate(cases(release, set(next(answers)), count, seed)):
        mine, tokens = planned(binary, release, *case)
        process.stdin.write(json.dumps([number, [*case, tokens or 100000]]) + "\n")
        process.stdin.flush()
        answer = next(answers)[1]
        asked += 1
        refused += isinstance(answer, str)
        if isinstance(answer, str) or isinstance(mine, str):
            good = isinstance(answer, str) and isinstance(mine, str)
            decided, alike = decided + good, alike + good
            if not good and shown:
                print(release, *case, "engine", answer, "plan", mine)
            continue
        decided += 1
        equal = []
        for name, own, its in zip(FIGURES, mine, answer if len(answer) == len(FIGURES) else [-1] * len(FIGURES)):
            if own is None or its is None or (name == "requests" and not tokens):
                continue
            equal.append(same(own, its))
            figures[name][0] += 1
            figures[name][1] += equal[-1]
        alike += all(equal)
        if not all(equal) and shown:
            print(release, *case, "engine", answer, "plan", mine)
    process.stdin.close()
    process.wait()
    return asked, decided, refused, figures, alike


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--sources")
    parser.add_argument("--releases", default=RELEASES)
    parser.add_argument("--commands", type=int, default=150)
    parser.add_argument("--seed", type=int, default=46)
    parser.add_argument("--resolve", action="store_true", help="inside a process of its own")
    parser.add_argument("--show", action="store_true", help="every difference")
    args = parser.parse_args()
    if args.resolve:
        return resolve(args.sources)
    if not args.sources or not os.path.isdir(args.sources):
        print("no sources of SGLang")
        return 77
    total = [0, 0]
    print("| release | commands | decision | " + " | ".join(FIGURES) + " | all |")
    for release in args.releases.split(","):
        asked, decided, refused, figures, alike = compare(os.path.abspath(args.binary), os.path.join(args.sources, release, "python"), release, args.commands, args.seed, args.show)
        total = [total[0] + asked, total[1] + alike]
        print("| %s | %d | %d (%d refused) | %s | %d |" % (release, asked, decided, refused, " | ".join("%d of %d" % (e, n) for n, e in figures.values()), alike), flush=True)
    print("%d of %d alike in all" % (total[1], total[0]))
    return 0 if total[1] >= 0.99 * total[0] else 1


if __name__ == "__main__":
    sys.exit(main())
