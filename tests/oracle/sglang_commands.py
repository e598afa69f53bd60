#!/usr/bin/env python3
"""Does `plan` refuse the commands that SGLang refuses? sglang_commands.py BINARY [--seed 1] [--count 300] [--answers FILE] [--wheel DIR]

Commands are drawn from the flag table of the release: right, nearly right and wrong values, beginnings of flags, `--flag=value`, underscores, words of
another release. The real parser, resolving and check of that release answer them on a simulated GPU, in a process each; `plan` is asked the same.
With --answers a file is read where it is there (no engine is needed) and written where it is not. --wheel: a folder with the unpacked wheel of SGLang and
what it needs beside the packages of vLLM's environment, so that its own environment need not be made; else sglang-VERSION of OOMSIGHT_VENVS.
Goals: the same verdict in 98 %, falsely accepted below 1 %, falsely refused none. Exit 0 when they hold, 1 when not, 77 without the engine."""
import argparse
import collections
import concurrent.futures
import contextlib
import importlib.machinery
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import types
import unittest.mock

import arguments
import engines

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "fixtures", "models")
NAMES = ("small-llama", "small-llama", "small-latent", "small-moe", "small-sliding")
GPU = "h100x8"
FIXED = ["--load-format", "dummy", "--skip-tokenizer-init"]

# Flags that read files or addresses, print and leave, start another program, or need hardware that is not simulated.
NOT_ASKED = re.compile(r"^(-h|--help|--config|--model-path|--load-format|--skip-tokenizer-init|.*(path|dir|file|folder|template|url|urls|endpoint|endpoints|socket|addr|"
                       r"token-map|whitespace-pattern|key|certs|certfile|keyfile|password|device|plugins|checksum|sidecar|sidecar-args|corpus.*)|--(kt|npu|dllm|flexkv|lmcache|"
                       r"modelexpress|ssl|otlp|debug-tensor|pdmux|msprobe|remote-instance|decoupled|modelopt|uno|numa|host|revision|custom-weight|decrypted)-?.*|--tokenizer-mode|--grpc-mode|--use-ray|"
                       r"--encoder-only|--smg-grpc-mode|--enable-mis|--model-impl|--model-config-parser|--dist-init-addr|--init-expert-location|--expert-pack.*|--.*mlx.*|"
                       r"--.*amd.*|--.*megakernel.*|--.*weight-cache.*|--.*remote.*|--.*mooncake.*)$")
WRONG = {"int": ("x", "1.5", "", "auto", "2k", "-", "1e3", "0x10", "True"), "float": ("x", "90%", "", "0,5"), "list": ("x", "")}


class Grammar:
    """Commands as people write them, with the mistakes they make."""

    def __init__(self, flags, others, seed):
        self.random = random.Random("sglang %s" % seed)
        self.every = [flag for flag in flags if flag["kind"] != "help"]
        self.flags = [flag for flag in self.every if not NOT_ASKED.match(flag["names"][0])]
        self.others = others  # spellings of another release

    def pick(self, *values):
        return self.random.choice(values)

    def core(self):
        pick = self.pick
        return self.random.choice([
            lambda: [pick("--tp", "--tp-size", "--tensor-parallel-size", "-tp", "--tensor-parallel"), pick("1", "2", "4", "8", "2", "0", "x")],
            lambda: [pick("--dp", "--dp-size", "--data-parallel-size"), pick("1", "2", "4")],
            lambda: [pick("--context-length", "--context-len"), pick("1024", "4096", "8192", "4k", "4Ki", "1.5k", "1.5Ki", "2K", "auto", "0", "-1", "1000000", "1e3", " 2048 ", "2_048")],
            lambda: ["--mem-fraction-static", pick("0.5", "0.8", "0.85", ".9", "1", "90%", "x", "8e-1")],
            lambda: ["--max-running-requests", pick("1", "16", "256", "4096", "many", "1.0")],
            lambda: [pick("--max-total-tokens", "--max-prefill-tokens"), pick("1000", "20000", "20k", "16Ki", "20K", "half")],
            lambda: ["--chunked-prefill-size", pick("-1", "512", "2048", "8192", "1000", "2k", "big")],
            lambda: ["--page-size", pick("1", "16", "32", "64", "0", "128", "16.0")],
            lambda: [pick("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode", "--cuda-graph-max-bs-prefill"), pick("1", "16", "64", "160", "x")],
            lambda: [pick("--cuda-graph-bs-decode", "--cuda-graph-bs-prefill", "--cuda-graph-bs")] + pick(["1", "2", "4"], ["8"], ["1", "x"], ["1,2,4"], []),
            lambda: [pick("--disable-cuda-graph", "--disable-radix-cache", "--enable-metrics", "--trust-remote-code", "--disable-overlap-schedule",
                          "--enable-torch-compile", "--enable-mixed-chunk", "--disable-cuda-graph-padding", "--enable-dp-attention", "--enable-p2p-check")] + pick([], [], [], ["true"], ["1"]),
            lambda: [pick("--disable-cuda-graph", "--disable-radix-cache", "--enable-metrics") + pick("=true", "=1", "=False", "")],
            lambda: ["--kv-cache-dtype", pick("auto", "fp8_e4m3", "fp8_e5m2", "bfloat16", "fp8", "bf16", "int8")],
            lambda: ["--dtype", pick("auto", "half", "float16", "bfloat16", "float32", "fp16", "bf16")],
            lambda: ["--quantization", pick("fp8", "awq", "gptq", "none", "int4", "w8a8_int8", "bitsandbytes")],
            lambda: ["--attention-backend", pick("fa3", "flashinfer", "triton", "torch_native", "flash_attn", "FA3")],
            lambda: ["--nnodes", pick("1", "2", "1", "two"), "--node-rank", pick("0", "1")],
            lambda: [pick("--ep", "--ep-size", "--expert-parallel-size"), pick("1", "2", "4")],
            lambda: [pick("--pp-size", "--pipeline-parallel-size"), pick("1", "2", "0")],
            lambda: ["--schedule-conservativeness", pick("0.3", "1", "-1", "-0.5", "high")],
            lambda: ["--mem-fraction-static" + pick("=0.8", "=-0.5", "=0,8", "="), *pick([], [], ["extra"])],
            lambda: ["--schedule-policy", pick("lpm", "fcfs", "random", "dfs-weight", "fifo")],
            lambda: ["--served-model-name", pick("a", "a:b", "a/b")],
            lambda: ["--json-model-override-args", pick("{}", '{"a": 1}', "{a}")],
            lambda: [pick("--speculative-algorithm", "--speculative-algo"), pick("EAGLE", "NGRAM", "ngram", "NONSENSE"), "--speculative-num-draft-tokens", pick("4", "8", "x")],
            lambda: ["--swa-full-tokens-ratio", pick("0.5", "1.0", "0", "1.5")],
            lambda: ["--tokenizer-worker-num", pick("1", "2", "0")],
            lambda: ["--port", pick("30000", "http", "8000")],
            lambda: [pick("extra", "words", "--no-such-flag")],
        ])()

    def value(self, flag):
        kind = flag["kind"]
        item = flag.get("item") if kind == "list" else kind
        if flag.get("choices"):
            return self.pick("nonsense", str(flag["choices"][0]).upper() + "x") if self.random.random() < 0.15 else str(self.random.choice(flag["choices"]))
        if self.random.random() < 0.2 and item in WRONG:
            return self.random.choice(WRONG[item])
        if item in ("int", "float"):
            # the default or a value near it: what a number does to the rest is not what is asked here
            number = flag.get("default") if isinstance(flag.get("default"), (int, float)) else 1
            return str(number)
        return self.pick("{}", "{x", '{"a": 1}') if item == "json" else "word"

    def any_flag(self):
        """Any flag of the release, written any way."""
        flag = self.random.choice(self.flags)
        name = self.random.choice(flag["names"])
        how = self.random.random()
        if how < 0.12 and len(name) > 8:
            name = name[: self.random.randrange(5, len(name))]
        elif how < 0.2:
            name = name[:2] + name[2:].replace("-", "_")
        if flag["kind"] in ("flag", "bool-optional"):
            if flag.get("negative") and self.random.random() < 0.4:
                return [flag["negative"]]
            return [name] + (["true"] if self.random.random() < 0.1 else [])
        if flag["kind"] == "str" or (flag["kind"] == "list" and flag.get("item") not in ("int", "float")):
            return None  # what a word does is not known
        values = [self.value(flag)]
        if flag["kind"] == "list" and flag.get("nargs"):
            values += [self.value(flag) for _ in range(self.random.randrange(3))]
            return [name] + (values if self.random.random() < 0.9 else [])
        if self.random.random() < 0.25:
            return [name + "=" + values[0]]
        return [name] + (values if self.random.random() < 0.95 else [])

    def command(self):
        words, model = [], self.random.choice(NAMES)
        for _ in range(self.random.choices([0, 1, 2, 3], [1, 6, 4, 2])[0]):
            words += self.core()
        if self.random.random() < 0.6:
            words += self.any_flag() or []
        if self.random.random() < 0.04:
            words += [self.random.choice(self.others), "1"]
        first = self.random.choices(["positional", "--model-path", "--model", "behind", "module", "twice"], [10, 5, 3, 1, 2, 1])[0]
        return {"model": model, "form": first, "words": words}


def argv_of(command, folder):
    model, words = os.path.join(folder, command["model"]), FIXED + command["words"]
    form = command["form"]
    if form in ("positional", "twice"):
        return [model] + (["--model-path", model] if form == "twice" else []) + words
    return words + [model] if form == "behind" else (["--model-path", model] + words if form == "module" else [form, model] + words)


# ---- the engine -------------------------------------------------------------------------------------------------------------------------------


def judge(argv):
    from sglang.cli.serve import _normalize_positional_model_path
    from sglang.srt.server_args import prepare_server_args
    said, stage = io.StringIO(), "parser"
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            args = prepare_server_args(_normalize_positional_model_path(argv)[0])
            stage = "resolving"
            args.resolve_once()
            args.check_server_args()
        return {"ok": True}
    except SystemExit:
        text = said.getvalue()
        return {"ok": False, "stage": stage, "text": text[max(text.rfind("error: ") + 7, 0):].strip()[:300]}
    except BaseException as error:  # noqa: B902 whatever it dies of is its answer
        return {"ok": False, "stage": stage, "text": ("%s: %s" % (type(error).__name__, error))[:300]}


class Kernels:
    """Stands for packages of kernels that are not there: every name of theirs can be imported, none is called while a command is read."""

    ROOTS = ("sgl_kernel", "deep_gemm", "sgl_deep_gemm")

    def find_spec(self, name, *_):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in self.ROOTS else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: (_ for _ in ()).throw(AttributeError(name)) if name.startswith("__") else unittest.mock.MagicMock()
        return module

    def exec_module(self, module):
        pass


def answer_all(source, target):
    """Inside the engine's Python: a process for each command, because resolving leaves traces."""
    sys.meta_path.append(Kernels())
    import sglang.srt.arg_groups.pipeline  # noqa: F401
    import sglang.srt.configs.model_config  # noqa: F401
    import torch
    torch.cuda._is_in_bad_fork = lambda: False
    first = judge([os.path.join(os.path.abspath(MODELS), NAMES[0])] + FIXED)  # what is looked up once: modules, the platform
    if not first["ok"]:
        sys.exit("a plain command is refused: %s" % first)
    torch.cuda.is_available = lambda: True
    with open(source, encoding="utf-8") as file, open(target, "w", encoding="utf-8") as out:
        for line in file:
            reader, writer = os.pipe()
            if os.fork() == 0:
                with os.fdopen(writer, "w") as pipe:
                    json.dump(judge(json.loads(line)), pipe)
                os._exit(0)
            os.close(writer)
            with os.fdopen(reader) as pipe:
                out.write((pipe.read() or '{"ok": null, "text": "died"}') + "\n")
            os.wait()


def ask_engine(options, commands):
    python = os.path.join(engines.VENVS, "sglang-" + options.version, "bin", "python")
    env = dict(os.environ, HF_HUB_OFFLINE="1", PYTHONWARNINGS="ignore")
    if options.wheel:
        found = sorted(engines.venvs().values())
        python = os.path.join(found[-1], "bin", "python") if found else ""
        env["PYTHONPATH"] = options.wheel
    if not os.path.exists(python):
        print("no environment of SGLang", options.version)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder, engines.turn():
        source, target = os.path.join(folder, "commands"), os.path.join(folder, "answers")
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(argv_of(command, os.path.abspath(MODELS))) + "\n" for command in commands)
        done = subprocess.run([options.binary, "dryrun", "--gpu", GPU, "--timeout", "3000", "--", python, os.path.abspath(__file__), "--answer", source, target],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False, env=env)
        answers = []
        if os.path.exists(target):
            with open(target, encoding="utf-8") as file:
                answers = [json.loads(line) for line in file]
    if len(answers) != len(commands):
        sys.exit("%d answers for %d commands: %s" % (len(answers), len(commands), done.stdout[-2000:]))
    return answers


# What is missing where the engine was asked, and no refusal of the command.
NOT_JUDGED = re.compile(r"No module named|ModuleNotFoundError|ImportError|is not installed|pip install|cannot import|FileNotFoundError|No such file|Can't load|HFValidationError|offline|"
                        r"does not appear to have|driver|undefined symbol|shared object|OSError|Failed to load|died")


def ask_plan(options, command):
    argv = argv_of(command, MODELS)
    entry = ["python", "-m", "sglang.launch_server"] if command["form"] == "module" else ["sglang", "serve"]
    done = subprocess.run([options.binary, "plan", "--offline", "--json", "--gpu", GPU, "--engine", "sglang=" + options.version, "--"] + entry + argv,
                          capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"error": done.stderr.strip()}


def draw(options):
    with open(os.path.join(HERE, "../../data/engines/sglang/flags.json"), encoding="utf-8") as file:
        table = json.load(file)
    flags = [flag for flag in (arguments.at_version(record, table["versions"], options.version) for record in table["flags"]) if flag]
    here = {name for flag in flags for name in flag["names"]}
    others = sorted({name for record in table["flags"] for name in record["names"]} - here) or ["--no-flag"]
    grammar = Grammar(flags, others, options.seed)
    return [grammar.command() for _ in range(options.count)]


def compare(options, commands, answers):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        plans = list(pool.map(lambda command: ask_plan(options, command), commands))
    count, misses = collections.Counter(), []
    for command, answer, plan in zip(commands, answers, plans):
        late = "Memory pool size is too small" in (plan.get("why") or "")  # an assertion of the worker, which is not started
        if answer["ok"] is None or late or (not answer["ok"] and answer["stage"] != "parser" and NOT_JUDGED.search(answer["text"])):
            count["not judged"] += 1
            continue
        count["judged"] += 1
        refused = plan.get("verdict") == "refused" and plan.get("phase") == "arguments"
        count["refused"] += not answer["ok"]
        if refused == (not answer["ok"]) and "error" not in plan:
            count["alike"] += 1
            continue
        kind = "falsely accepted" if not answer["ok"] else "falsely refused"
        count[kind] += 1
        misses.append("%s: %s %s\n    engine: %s\n    plan:   %s" % (
            kind, command["form"], " ".join([command["model"]] + command["words"]), answer.get("text", "accepted"), plan.get("error") or plan.get("why") or plan.get("verdict")))
    return count, misses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?")
    parser.add_argument("--version", default="0.5.23")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--answers", help="read the commands and what the engine said of them, or keep them")
    parser.add_argument("--wheel", help="folders, joined by a colon: the unpacked wheel and the packages that vLLM's environment lacks")
    parser.add_argument("--answer", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        return answer_all(*options.answer)
    options.binary = os.path.abspath(options.binary)
    if options.answers and os.path.exists(options.answers):
        with open(options.answers, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        commands = [{"model": model, "form": form, "words": words} for model, form, words, _, _, _ in records]
        answers = [{"ok": ok, "stage": stage, "text": text} for _, _, _, ok, stage, text in records]
    else:
        commands = draw(options)
        answers = ask_engine(options, commands)
        if options.answers:
            with open(options.answers, "w", encoding="utf-8") as file:
                for c, a in zip(commands, answers):
                    file.write(json.dumps([c["model"], c["form"], c["words"], a["ok"], a.get("stage"), a.get("text", "")[:120].replace(os.path.abspath(MODELS), "")]) + "\n")
    count, misses = compare(options, commands, answers)
    for miss in misses:
        print(miss)
    judged = count["judged"] or 1
    print("SGLang %s: %d commands, %d not judged, %d refused by the engine; alike %d of %d (%.1f %%); falsely accepted %d (%.1f %%), falsely refused %d" % (
        options.version, len(commands), count["not judged"], count["refused"], count["alike"], judged, 100 * count["alike"] / judged, count["falsely accepted"],
        100 * count["falsely accepted"] / judged, count["falsely refused"]))
    return 0 if count["alike"] >= 0.98 * judged and count["falsely accepted"] < 0.01 * judged and not count["falsely refused"] and judged >= 0.9 * len(commands) else 1


if __name__ == "__main__":
    sys.exit(main())
