#!/usr/bin/env python3
"""Commands that `plan --engine` says in the words of the other engine, judged by the parsers of both.

    tests/oracle/translated.py BINARY

A command for every flag of data/engines/meanings.json, from either side, and some with several. The engine whose command it is must take it, and the other one its
translation; a flag with an exact meaning there must be in it. Exit code 77 where one of the engines is not installed."""
import json
import os
import re
import shlex
import subprocess
import sys

import engines
import sglang_beside

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "..", "data", "engines")
SAMPLES = {"--dtype": "bfloat16", "--load-format": "dummy", "--revision": "main", "--hf-overrides": "{}", "--json-model-override-args": "{}", "--block-size": "32", "--page-size": "32",
           "--mamba-ssm-cache-dtype": "float32", "--mamba-ssm-dtype": "float32", "--limit-mm-per-prompt": '{"image":1}', "--limit-mm-data-per-request": '{"image":1}',
           "--quantization": "fp8", "--kv-cache-dtype": "fp8_e4m3", "--cudagraph-capture-sizes": "1 2 4", "--cuda-graph-bs-decode": "1 2 4", "--max-model-len": "4096", "--context-length": "4096",
           "--lora-modules": "a=/tmp/b", "--lora-paths": "a=/tmp/b", "--speculative-config": '{"method":"mtp","num_speculative_tokens":2}', "--nnodes": "2", "--host": "0.0.0.0",
           "--served-model-name": "name", "--download-dir": "/tmp", "--chat-template": "/tmp/t", "--tokenizer": "/tmp/t", "--tokenizer-path": "/tmp/t", "--api-key": "key"}
SWITCHES = ("flag", "bool-optional")
SEVERAL = [("vllm", "--enable-lora --max-loras 2 --max-lora-rank 32 --max-num-seqs 16"), ("sglang", "--enable-lora --max-loras-per-batch 2 --max-lora-rank 32 --lora-target-modules q_proj"),
           ("sglang", "--speculative-algorithm NEXTN --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2 --tp-size 2"),
           ("vllm", "--tensor-parallel-size 2 --max-model-len 8192 --enforce-eager --kv-cache-dtype fp8 --no-enable-prefix-caching --seed 1 --port 80"),
           ("sglang", "--tp-size 2 --context-length 8192 --disable-cuda-graph --disable-radix-cache --random-seed 1 --max-running-requests 8 --chunked-prefill-size 512")]
PARSE = {"vllm": """
sys.path.insert(0, TOOLS)
import dump_flags
dump_flags.pretend_cuda()
top, serve = dump_flags.build_parsers()
def parse(words): serve.parse_args(words)
""", "sglang": """
import argparse
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
def parse(words): parser.parse_args(["--model-path"] + words)
"""}
HEAD = "import contextlib, io, json, sys\nTOOLS = %r\n" % os.path.join(HERE, "..", "..", "tools")
LOOP = """
answers = []
for words in json.load(sys.stdin):
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said): parse(words)
        answers.append("")
    except SystemExit:
        answers.append(said.getvalue()[-200:] or "exit")
    except Exception as error:
        answers.append(repr(error)[:200])
print("ANSWERS " + json.dumps(answers))
"""


def cases():
    """Engine, words, and whether all of it has a meaning there."""
    tables = {}
    for engine in PARSE:
        with open(os.path.join(DATA, engine, "flags.json"), encoding="utf-8") as file:
            tables[engine] = {name: record for record in json.load(file)["flags"] for name in record["names"]}
    with open(os.path.join(DATA, "meanings.json"), encoding="utf-8") as file:
        records = json.load(file)
    for record in records:
        for engine in PARSE:
            flag = record.get(engine)
            if not flag or "apart" in record:
                continue
            kind = tables[engine].get(flag, {"kind": "flag"})["kind"]
            yield engine, [flag] + ([] if kind in SWITCHES else shlex.split(SAMPLES[flag]) if flag != SAMPLES.get(flag) and flag in SAMPLES and "{" not in SAMPLES[flag] else [SAMPLES.get(flag, "1")])
    for engine, words in SEVERAL:
        yield engine, words.split()


def translated(binary, engine, words):
    other = "sglang" if engine == "vllm" else "vllm"
    out = subprocess.run([binary, "plan", "--json", "--offline", "--gpu", "h100x2", "--engine", other, "--", engine, "serve", "Qwen/Qwen3-4B"] + words, capture_output=True, text=True, check=False)
    said = re.search(r"in the words of \w+: `(.*)`", out.stdout.replace('\\"', '"').replace("\\\\", "\\"))
    return shlex.split(said.group(1).replace('"$API_KEY"', "key")) if said else None


def parsed(folder, commands):
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        engine = "vllm" if "vllm" in os.path.basename(folder) else "sglang"
        out = subprocess.run([os.path.join(folder, "bin", "python"), "-c", HEAD + PARSE[engine] + LOOP], input=json.dumps(commands), stdout=subprocess.PIPE, stderr=nowhere, text=True,
                             env=dict(engines.environment(folder), CUDA_VISIBLE_DEVICES=""), check=False).stdout
    return json.loads(out.rsplit("ANSWERS ", 1)[1])


def main():
    binary = os.path.abspath(sys.argv[1])
    found = {"vllm": max(engines.venvs().items(), key=lambda item: engines.version_key(item[0]), default=(None, None))[1],
             "sglang": max(sglang_beside.environments().items(), key=lambda item: engines.version_key(item[0]), default=(None, None))[1]}
    asked, wrong = list(cases()), 0
    there = [translated(binary, engine, words) for engine, words in asked]
    if not all(found.values()):
        return engines.SKIP
    for side in PARSE:
        commands = [["Qwen/Qwen3-4B"] + words if engine == side else words_there[2:] if words_there else [] for (engine, words), words_there in zip(asked, there)]
        for (engine, words), words_there, answer in zip(asked, there, parsed(found[side], commands)):
            short = words_there is None or (engine != side and len(words_there) < 4)
            wrong += bool(answer) or short
            if answer or short:
                print("FAIL %s serve MODEL %s -> %s, %s says: %s" % (engine, " ".join(words), " ".join(words_there or ["nothing"]), side, " ".join(answer.split())))
    print("%d commands, each with its translation: %d refused" % (len(asked), wrong))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
