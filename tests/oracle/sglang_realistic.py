#!/usr/bin/env python3
"""Does `plan` take and refuse SGLang's commands as the engine does? sglang_realistic.py BINARY [--commands 200] [--seed N] [--models DIR]

Commands in the style of recipes, charts and blog posts are drawn from a seed: parallel sizes, limits, caches, drafters, adapters, flags of
other engines, flags that are gone, `--switch=true`, values with a space behind them, wrong choices, context lengths above the model's own.
The engine's own parser and ServerArgs judge each of them in one process on simulated GPUs; `plan` is asked the same. Without an
environment of SGLang: exit 77. Printed: false refusals, false acceptances, other reasons, other figures; `unknown` is neither."""
import argparse
import gc
import json
import os
import random
import re
import subprocess
import sys

import engines
import sglang_arguments as base

FIXTURES = base.MODELS
DEVICES = (24564, 32607, 46068, 81559, 97887, 143771, 183359)
# flag and values; None: a switch. A value that is a tuple is several words.
USUAL = (("--tp", (2, 4, 8)), ("--tensor-parallel-size", (2, 4)), ("--dp", (2,)), ("--mem-fraction-static", (0.8, 0.85, 0.88, 0.9, 0.93)),
         ("--context-length", (4096, 8192, 16384, 32768, 65536, 131072, 262144)), ("--max-running-requests", (8, 32, 64, 128, 256)),
         ("--chunked-prefill-size", (2048, 4096, 8192, -1)), ("--max-prefill-tokens", (8192, 16384, 32768)), ("--max-total-tokens", (32768, 200000)),
         ("--page-size", (1, 16, 64)), ("--kv-cache-dtype", ("auto", "fp8_e4m3", "fp8_e5m2", "bf16")), ("--dtype", ("auto", "bfloat16", "half")),
         ("--attention-backend", ("triton", "flashinfer", "fa3")), ("--sampling-backend", ("pytorch", "flashinfer")), ("--disable-cuda-graph", None),
         ("--cuda-graph-max-bs", (16, 64, 160)), ("--disable-radix-cache", None), ("--schedule-policy", ("lpm", "fcfs", "dfs-weight")),
         ("--schedule-conservativeness", (0.3, 1.0, 1.3)), ("--enable-metrics", None), ("--served-model-name", ("chat", "my-model")), ("--host", ("0.0.0.0",)),
         ("--port", (30000, 8000)), ("--trust-remote-code", None), ("--log-level", ("info", "warning")), ("--log-requests", None), ("--stream-interval", (2, 10)),
         ("--random-seed", (42,)), ("--watchdog-timeout", (300, 1200)), ("--disable-overlap-schedule", None), ("--enable-mixed-chunk", None),
         ("--num-continuous-decode-steps", (4, 8)), ("--reasoning-parser", ("qwen3", "deepseek-r1")), ("--tool-call-parser", ("qwen25", "llama3", "mistral")),
         ("--grammar-backend", ("xgrammar", "outlines")), ("--enable-torch-compile", None), ("--torch-compile-max-bs", (8, 32)),
         ("--api-key", ("sk-local",)), ("--warmups", ("voice_chat",)), ("--enable-cache-report", None), ("--swa-full-tokens-ratio", (0.5, 0.9)),
         ("--pp-size", (2,)), ("--ep-size", (2, 4)), ("--load-balance-method", ("round_robin", "minimum_tokens")), ("--json-model-override-args", ('{"rope_theta": 1000000}',)),
         ("--enable-hierarchical-cache", None), ("--hicache-ratio", (2, 1.5)), ("--hicache-size", (30,)), ("--enable-lora", None), ("--max-lora-rank", (16, 64)),
         ("--chat-template", ("chatml",)), ("--constrained-json-whitespace-pattern", ("[ ]?",)), ("--enable-dp-attention", None), ("--quantization", ("fp8",)),
         ("--speculative-algorithm", ("NGRAM",)), ("--cpu-offload-gb", (4, 10)), ("--allow-auto-truncate", None), ("--disable-custom-all-reduce", None),
         ("--enable-p2p-check", None), ("--download-dir", ("/models",)), ("--revision", ("main",)), ("--tokenizer-mode", ("auto", "slow")),
         ("--disaggregation-mode", ("prefill", "decode")), ("--decode-log-interval", (10, 40)), ("--skip-server-warmup", None), ("--show-time-cost", None))
# of other engines, misspelt, or gone
STALE = (("--gpu-memory-utilization", (0.9,)), ("--max-model-len", (8192,)), ("--max-num-seqs", (64,)), ("--enforce-eager", None), ("--enable-ep-moe", None),
         ("--mem-frac-static", (0.8,)), ("--enable-flashinfer-mla", None), ("--disable-flashinfer", None), ("--disable-disk-cache", None), ("--max-num-reqs", (64,)),
         ("--enable-prefix-caching", None), ("--context-len", (8192,)), ("--chunked-prefill", (4096,)), ("--swap-space", (4,)), ("--enable-deepep-moe", None),
         ("--disable-cudagraph", None), ("--attention-backend", ("FLASH_ATTN",)), ("--kv-cache-dtype", ("fp8", "int8")), ("--schedule-policy", ("priority",)),
         ("--quantization", ("fp-8", "int4")), ("--dtype", ("fp16",)), ("--load-format", ("hf",)))
SWITCHES = ("--enable-metrics", "--disable-radix-cache", "--trust-remote-code", "--disable-cuda-graph", "--enable-torch-compile", "--enable-mixed-chunk")
ODD = (["--mem-fraction-static", "1.2"], ["--mem-fraction-static", "0.9 "], ["--max-running-requests", "0"], ["--max-running-requests", "64 "],
       ["--chunked-prefill-size", "0"], ["--chunked-prefill-size", "1000", "--page-size", "16"], ["--context-length", "32k"], ["--max-total-tokens", "1M"],
       ["--tp", "3"], ["--tp", "0"], ["--served-model-name", "org/model:latest"], ["--schedule-conservativeness", "-1"], ["--mem-fraction-static", "85%"],
       ["--context-length", "-1"], ["--page-size", "0"], ["--port", "http"], ["--tp", "two"], ["--swa-full-tokens-ratio", "1.5"], ["--dp", "0"],
       ["--tokenizer-worker-num", "0"], ["--max-lora-rank", "64"], ["--lora-paths", "a=/adapters/a"], ["--tp", "4", "--dp", "4", "--enable-dp-attention"],
       ["--tp", "8", "--dp", "8", "--enable-dp-attention"], ["--tp", "4", "--dp", "8", "--enable-dp-attention"], ["--tp", "8", "--ep", "8"],
       ["--enable-hierarchical-cache", "--disable-radix-cache"], ["--pp-size", "2", "--speculative-algorithm", "NGRAM"])


def draw_flag(dice, table):
    flag, values = dice.choice(table)
    value = dice.choice(values) if values else ()
    words = [str(v) for v in (value if isinstance(value, tuple) else (value,))]
    if len(words) == 1 and dice.random() < 0.25:
        return ["%s=%s" % (flag, words[0])]
    return [flag, *words]


def command(dice):
    words, seen = [], set()
    for _ in range(dice.randrange(1, 7)):
        flag = draw_flag(dice, USUAL)
        if flag[0].split("=")[0] in seen:
            continue
        seen.add(flag[0].split("=")[0])
        words += flag
    luck = dice.random()
    if luck < 0.12:
        words += draw_flag(dice, STALE)
    elif luck < 0.20:
        words += ["%s=%s" % (dice.choice(SWITCHES), dice.choice(("true", "True", "false", "False", "1")))]
    elif luck < 0.36:
        words += dice.choice(ODD)
    env = {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": dice.choice(("1", "true"))} if dice.random() < 0.08 else {}
    return words, env


def cases(count, seed, models):
    dice = random.Random(seed)
    for _ in range(count):
        words, env = command(dice)
        yield dice.choice(DEVICES), dice.choice(models), words, env


class Refused(Exception):
    pass


def resolve(count, seed, models):
    def error(_self, message):
        raise Refused(message)
    argparse.ArgumentParser.error = error
    ask = base.resolver()
    import sglang.srt.configs.model_config  # noqa: F401
    import torch
    torch.cuda._is_in_bad_fork = lambda: False
    base.warm(ask)
    gc.freeze()
    gc.disable()
    for number, (mib, model, flags, env) in enumerate(cases(count, seed, models)):
        sys.stdout.flush()
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        os.environ.update(env)
        try:
            answer = ask(mib, ["--model-path", model, *flags, "--load-format", "dummy", "--skip-tokenizer-init"])
        except Refused as error:
            answer = "parser: %s" % error
        except (ValueError, AssertionError, NotImplementedError, TypeError) as error:
            answer = "%s: %s" % (type(error).__name__, str(error)[:300])
        except BaseException as error:  # noqa: BLE001 not a judgement: a package that is missing, a file, the network
            answer = {"not judged": "%s: %s" % (type(error).__name__, str(error)[:200])}
        print("\nRESOLVED", json.dumps([number, answer]), flush=True)
        os._exit(0)


def planned(binary, version, mib, model, flags, env):
    done = subprocess.run([binary, "plan", "--json", "--offline", "--gpu-total", "%dMiB" % mib, "--gpu-cc", "9.0", "--engine", "sglang=" + version, "--",
                           *["%s=%s" % pair for pair in env.items()], "sglang", "serve", model, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    try:
        plan = json.loads(done.stdout)
    except ValueError:
        return {"verdict": "error", "why": done.stderr.decode(errors="replace")[:200], "own": {}}
    return {"verdict": plan["verdict"], "why": plan["why"] or "", "own": plan["setup"].get("own") or {}, "phase": plan["phase"]}


def reduced(text):
    text = re.sub(r"^(parser|ValueError|AssertionError|NotImplementedError|TypeError): ", "", text)
    text = text.replace("The engine will say: ", "").replace("Warning: ", "")
    return re.sub(r"[^a-z0-9_-]+", " ", text.lower()).strip()


def is_same(engine, plan):
    a, b = reduced(engine)[:60], reduced(plan)
    return not a or a[:40] in b or b[:40] in a  # a bare assertion gives no reason


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--resolve", action="store_true", help="inside the engine's environment")
    parser.add_argument("--commands", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", help="a folder of models' configs; else the fixtures")
    parser.add_argument("--seconds", type=int, default=1500)
    parser.add_argument("--version", default="0.5.23")
    parser.add_argument("--keep", help="a file for the engine's answers: asked again only when it is not there")
    args = parser.parse_args()
    names = ("Qwen3-8B", "Qwen3-32B", "Qwen3-30B-A3B", "Llama-3.1-8B-Instruct", "Llama-3.3-70B-Instruct", "DeepSeek-V2-Lite", "DeepSeek-R1", "gpt-oss-20b", "Mistral-7B-Instruct-v0.3", "Qwen2.5-7B-Instruct")
    models = [os.path.join(args.models, n) for n in names if os.path.isdir(os.path.join(args.models, n))] if args.models else \
        [os.path.join(FIXTURES, n) for n in base.DRAWN_MODELS]
    if args.resolve:
        return resolve(args.commands, args.seed, models)
    binary = os.path.abspath(args.binary)
    python = os.path.join(engines.VENVS, "sglang-" + args.version, "bin", "python")
    if not os.path.exists(python):
        print("no environment of SGLang", args.version)
        return 77
    if args.keep and os.path.exists(args.keep):
        answers = {int(k): v for k, v in json.load(open(args.keep)).items()}
    else:
        with engines.turn():
            done = subprocess.run([binary, "dryrun", "--gpu", "H100x8", "--timeout", str(args.seconds), "--", python, os.path.abspath(__file__), "-", "--resolve",
                                   "--commands", str(args.commands), "--seed", str(args.seed), *(["--models", args.models] if args.models else [])],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        answers = dict(json.loads(line[9:]) for line in done.stdout.split("\n") if line.startswith("RESOLVED "))
        if not answers:
            print(done.stdout[-3000:])
            return 1
        if args.keep:
            json.dump(answers, open(args.keep, "w"))
    tally = dict.fromkeys(("judged", "false refusal", "false acceptance", "unknown", "reason alike", "refused", "figures alike", "taken"), 0)
    for number, case in enumerate(cases(args.commands, args.seed, models)):
        answer = answers.get(number)
        if answer is None or isinstance(answer, dict):
            if answer:
                print("not judged", answer, *case[2])
            continue
        tally["judged"] += 1
        plan = planned(binary, args.version, *case)
        refused = plan["verdict"] in ("refused", "error") and plan.get("phase", "arguments") == "arguments"
        where = "%d MiB %s %s %s" % (case[0], os.path.basename(case[1]), " ".join(case[2]), case[3] or "")
        if isinstance(answer, str):
            tally["refused"] += 1
            if not refused and plan["verdict"] == "unknown":
                tally["unknown"] += 1
                print("UNKNOWN      ", where, "| engine:", answer[:150], "| plan:", plan["why"][:100])
            elif not refused:
                tally["false acceptance"] += 1
                print("FALSE ACCEPT ", where, "| engine:", answer[:200])
            elif is_same(answer, plan["why"]):
                tally["reason alike"] += 1
            else:
                print("OTHER REASON ", where, "| engine:", answer[:200], "| plan:", plan["why"][:200])
        elif refused:
            tally["false refusal"] += 1
            print("FALSE REFUSAL", where, "| plan:", plan["why"][:200])
        else:
            if plan["verdict"] == "unknown":
                tally["unknown"] += 1
                continue
            own = plan["own"]
            tally["taken"] += 1
            mine = [own.get(key) for key in ("mem_fraction_static", "chunked_prefill_size", "cuda_graph_max_bs_decode", "cuda_graphs_decode", "cuda_graphs_prefill")]
            if mine == answer:
                tally["figures alike"] += 1
            else:
                print("FIGURES      ", where, "| engine:", answer, "| plan:", mine)
    print(json.dumps(tally))
    bad = tally["false refusal"] or tally["false acceptance"] > 0.005 * tally["judged"] or tally["reason alike"] < 0.97 * (tally["refused"] - tally["unknown"])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
