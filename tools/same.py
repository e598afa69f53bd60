#!/usr/bin/env python3
"""Do two builds answer alike, byte for byte? same.py BEFORE AFTER [--count 2000] [--seed 1] [--engine NAME] [LOG | FOLDER ...]

Draws COUNT commands (architectures of the catalogue x GPUs x releases x flags, one in five for SGLang or all of one engine) and asks both
programs for their plans: JSON, and for one in ten text, Chinese, Markdown, HTML in turn; explains each LOG (*.log of a folder), checks the
deployments of tests/fixtures, and asks for what is known of engines. Output and exit code are compared. Exit 1 if any answer differs; the
fields of JSON that differ are listed, with how often and by how much at most.

    --refusals        commands that an engine refuses instead: values out of bounds, flags that do not go together
    --instructions    also the instructions of three plans, counted by cachegrind: they depend on the build and not on the machine
    --objects         BEFORE and AFTER are build folders: is the code of every object of the library the same?

Standard library only."""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GPUS = """t4 v100 a100-80gb a100-pcie-40gb a10 a30x4 3090 4090 4090x2 l4 l40s h100 h100x2 h100x4 h100x8 h200x8 gh200-96gb b200 b200x4 gb200x4 b300x8 gb10
          5090 5090x2 rtx-pro-6000x4 thor""".split()
RELEASES = {"vllm": """0.8.5 0.9.0 0.9.2 0.10.2 0.11.0 0.11.2 0.12.0 0.14.1 0.16.0 0.18.0 0.19.1 0.20.2 0.21.0 0.22.0 0.23.0 0.25.0 0.26.0 0.27.1 0.28.0
                       0.29.0 0.30.0 0.31.0 0.32.0""".split(), "sglang": ["0.5.18", "0.5.20", "0.5.23"]}
FLAGS = {
    "vllm": [[], [], ["--max-model-len", "8192"], ["--max-model-len", "auto"], ["--enforce-eager"], ["--gpu-memory-utilization", "0.95"],
             ["--kv-cache-dtype", "fp8"], ["--quantization", "fp8"], ["--quantization", "bitsandbytes"], ["--enable-lora", "--max-loras", "2"],
             ["--enable-sleep-mode"], ["--cpu-offload-gb", "8"], ["--max-num-seqs", "64"], ["--max-num-batched-tokens", "16384"],
             ["--enable-expert-parallel"], ["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 2}'], ["-O1"],
             ["--limit-mm-per-prompt", '{"image": 2, "video": 0}'], ["--attention-backend", "FLASHINFER"], ["--kv-cache-memory-bytes", "4G"],
             ["--compilation-config", '{"cudagraph_mode": "FULL_DECODE_ONLY"}'], ["--num-gpu-blocks-override", "512"], ["--block-size", "64"],
             ["--data-parallel-size", "2"], ["--pipeline-parallel-size", "2"], ["--dtype", "float16"], ["--decode-context-parallel-size", "2"],
             ["--performance-mode", "throughput"], ["--moe-backend", "cutlass"], ["--load-format", "dummy"], ["--no-such-flag", "1"]],
    "sglang": [[], ["--mem-fraction-static", "0.9"], ["--context-length", "8192"], ["--chunked-prefill-size", "4096"], ["--disable-cuda-graph"],
               ["--kv-cache-dtype", "fp8_e4m3"], ["--max-running-requests", "64"], ["--quantization", "fp8"], ["--page-size", "64"],
               ["--cuda-graph-max-bs", "32"], ["--speculative-algorithm", "EAGLE"], ["--dp-size", "2"], ["--enable-dp-attention"]],
}
SHOWN = ([], ["--lang", "zh"], ["--format", "md"], ["--verbose", "--explain"], ["--format", "html"], ["--verbose", "--explain", "--lang", "zh"])
# What checks of more than one flag look at; the others are drawn from the tables, with the values below.
TOGETHER = {
    "vllm": """--enable-auto-tool-choice|--tool-call-parser hermes|--enable-log-outputs|--enable-log-requests|--grpc-port 5000|--data-parallel-size 2
               --data-parallel-multi-port-external-lb|--tensor-parallel-size 3|--tensor-parallel-size 2|--enable-eplb|--enable-expert-parallel
               --enable-elastic-ep|--num-redundant-experts 2|--eplb-config {"num_redundant_experts":4}|--decode-context-parallel-size 2
               --decode-context-parallel-size 3|--max-num-batched-tokens 64|--max-num-batched-tokens 1024|--max-num-partial-prefills 2
               --max-model-len 4096|--max-model-len 1k|--no-enable-chunked-prefill|--max-num-seqs 512|--long-prefill-token-threshold 9000
               --enable-lora|--max-loras 4|--max-lora-rank 7|--max-lora-rank 64|--max-cpu-loras 2|--mamba-cache-mode align|--enable-prefix-caching
               --gpu-memory-utilization 1.5|--async-scheduling|--pipeline-parallel-size 2|--max-num-batched-tokens 1.5k|--enable-dbo
               --all2all-backend naive|--attention-backend NONE|--kv-cache-dtype fp8|--quantization awq|--dtype float16|--nnodes 2
               --data-parallel-rank 0|--data-parallel-rank 5|--data-parallel-external-lb|--data-parallel-hybrid-lb|--data-parallel-size-local 3
               --data-parallel-size-local 1|--enable-fault-tolerance|--ubatch-size 2|--all2all-backend deepep_low_latency|--kv-cache-dtype nvfp4
               --distributed-executor-backend uni|--distributed-executor-backend a.b|--distributed-executor-backend ray|--max-long-partial-prefills 2
               --max-cudagraph-capture-size 0|--max-cudagraph-capture-size 8|--cudagraph-capture-sizes 1 2 4|--max-model-len 0
               --compilation-config {"cudagraph_capture_sizes":[]}|--compilation-config {"max_cudagraph_capture_size":16}|-O7
               --compilation-config {"cudagraph_capture_sizes":[1,2],"max_cudagraph_capture_size":16}|--enforce-eager|--offload-backend prefetch
               --offload-group-size 2|--offload-num-in-group 3|--mamba-ssu-algorithm x|--mamba-backend flashinfer|--reasoning-parser none-such
               --reasoning-parser-plugin x|--speculative-config {"method":"ngram","num_speculative_tokens":2}|--cpu-offload-gb -1
               --speculative-config {"method":"mtp","num_speculative_tokens":0}|--speculative-config {"num_speculative_tokens":2}
               --speculative-config {"method":"mtp"}|--speculative-config {"method":"none-such"}|--speculative-config {"none-such":1}
               --limit-mm-per-prompt {"image":-1}|--media-io-kwargs {"image":1}|--max-model-len 99999999""",
    "sglang": """--enable-dp-attention|--dp-size 2|--dp-size 3|--tp-size 2|--tp-size 3|--ep-size 2|--pp-size 2|--served-model-name a:b|--page-size 64
                 --chunked-prefill-size 100|--mem-fraction-static 1.5|--speculative-algorithm EAGLE|--speculative-num-steps 3|--quantization awq
                 --kv-cache-dtype fp8_e4m3|--attention-backend flashinfer|--attention-backend fa3|--enable-lora|--max-lora-rank 64
                 --max-running-requests 0|--context-length 99999999|--moe-a2a-backend deepep|--enable-two-batch-overlap|--dtype float16
                 --speculative-algorithm NGRAM|--speculative-eagle-topk 1|--enable-hierarchical-cache|--disable-radix-cache|--swa-full-tokens-ratio 0
                 --swa-full-tokens-ratio 1.5|--disaggregation-mode decode|--disaggregation-decode-enable-radix-cache|--lora-paths a
                 --lora-target-modules q_proj|--tokenizer-worker-num 0|--tokenizer-worker-num -1|--schedule-conservativeness -1|--quantization fp8""",
}
VALUES = {"int": ["0", "-1", "1", "3", "100000", "x"], "float": ["0", "-0.5", "1.5", "x"]}


def commands(count, seed, only, refused):
    draw = random.Random(seed)
    with open(os.path.join(ROOT, "data", "catalogue.json"), encoding="utf-8") as f:
        catalogue = json.load(f)
    of_class = collections.defaultdict(list)  # every architecture as often as any other
    for name, entry in sorted(catalogue.items()):
        if isinstance(entry, dict):
            of_class[(entry.get("config", entry).get("architectures") or ["?"])[0]].append(name)
    classes = sorted(of_class)
    odd = {engine: list(odd_flags(engine)) for engine in FLAGS} if refused else None
    for i in range(count):
        engine = only or ("sglang" if i % 5 == 4 else "vllm")
        gpu = draw.choice(GPUS)
        ranks = int(gpu.rsplit("x", 1)[1]) if gpu[-1].isdigit() and gpu[-2:-1] == "x" else 1
        words = [engine, "serve", draw.choice(of_class[classes[i % len(classes)]])]
        if ranks > 1 or draw.random() < 0.08:
            words += [{"vllm": "--tensor-parallel-size", "sglang": "--tp-size"}[engine], str(max(2, ranks))]
        for _ in range(draw.choice([1, 2, 2, 3] if refused else [1, 1, 2])):
            words += draw.choice(draw.choice(odd[engine]) if refused else FLAGS[engine])
        shown = ["--json"] if i % 10 else SHOWN[i // 10 % len(SHOWN)]
        yield ["plan", "--offline", *shown, "--gpu", gpu, "--engine", "%s=%s" % (engine, draw.choice(RELEASES[engine])), "--", *words]


def odd_flags(engine):
    """Two lists of words: those of checks over several flags, and each flag of the table with values that few take."""
    yield [words.split() for line in TOGETHER[engine].split("\n") for words in line.strip().split("|")]
    with open(os.path.join(ROOT, "data", "engines", engine, "flags.json"), encoding="utf-8") as f:
        flags = json.load(f)["flags"]
    yield [[flag["names"][0], *value] for flag in flags
           for value in ([[]] if flag["kind"] == "flag" else [[v] for v in VALUES.get(flag["kind"], ["", "none-such"])])]


def others(logs):
    for path in logs:
        for log in sorted(glob.glob(os.path.join(path, "*.log"))) if os.path.isdir(path) else [path]:
            yield ["explain", "--json", log]
    for folder in sorted(glob.glob(os.path.join(ROOT, "tests", "fixtures", "deploy*"))):
        for file in [folder, *sorted(glob.glob(os.path.join(folder, "**", "*.*"), recursive=True))]:
            yield ["check", "--offline", "--json", "--gpu", "l4", file]
    yield from (["engines"], ["engines", "--json"], ["gpus", "--json"], ["kb", "--json"])
    yield ["plan", "--offline", "--gpu", "all", "--", "vllm", "serve", "Qwen/Qwen3-8B"]
    yield ["bisect", "--json", "--gpu", "l4", "--", "vllm", "serve", "Qwen/Qwen3-8B"]


def answer(program, words):
    ran = subprocess.run([program, *words], capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    return ran.returncode, ran.stdout, ran.stderr


def fields(before, after, path=""):
    """(path, before, after) of what differs in two values of JSON."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(set(before) | set(after)):
            yield from fields(before.get(key), after.get(key), path + "/" + key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after):
            yield from fields(one, other, path + "/*")
    elif before != after:
        yield path, before, after


class Differences:
    """What differs: the first five answers as lines, and the fields of all that are JSON."""

    def __init__(self):
        self.answers, self.often, self.most, self.first = 0, collections.Counter(), collections.Counter(), {}

    def add(self, words, before, after):
        self.answers += 1
        try:
            for path, one, other in fields(json.loads(before[1]), json.loads(after[1])):
                self.often[path] += 1
                self.first.setdefault(path, (one, other))
                if isinstance(one, (int, float)) and isinstance(other, (int, float)):
                    self.most[path] = max(self.most[path], abs(one - other))
        except ValueError:
            pass
        if self.answers > 5:
            return
        print("differs: %s (exit %d, %d)" % (" ".join(words), before[0], after[0]))
        lines = [[b.decode("utf-8", "replace").splitlines() for b in side[1:]] for side in (before, after)]
        for old, new in zip(*lines):
            for a, b in [(a, b) for a, b in zip(old, new) if a != b][:3]:
                print("  - %s\n  + %s" % (a[:300], b[:300]))

    def tell(self):
        for path, count in self.often.most_common(30):
            print("field: %s in %d, by at most %s (%s)" % (path, count, self.most[path], " -> ".join(json.dumps(v, ensure_ascii=False)[:60] for v in self.first[path])))


COUNTED = (["--gpu", "l4", "--engine", "vllm=0.32.0", "--", "vllm", "serve", "Qwen/Qwen3-30B-A3B"], ["--gpu", "h100", "--", "vllm", "serve", "Qwen/Qwen3-8B"],
           ["--gpu", "l4", "--engine", "sglang=0.5.23", "--", "sglang", "serve", "Qwen/Qwen3-30B-A3B"])


def instructions(program, words):
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=" + os.path.join(folder, "out"), program, "plan",
                              "--offline", "--json", *words], capture_output=True, universal_newlines=True, stdin=subprocess.DEVNULL, check=False)
    return int(re.search(r"I +refs: +([\d,]+)", ran.stderr).group(1).replace(",", ""))


def code_of(path):
    """The machine code of an object, without where it lies and what it is called by."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["objcopy", "-O", "binary", "-w", "--only-section=.text*", path, out.name], check=True)
        return out.read()


def objects(before, after):
    of = [{os.path.basename(path): path for path in glob.glob(os.path.join(build, "src", "*.p", "*.o"))} for build in (before, after)]
    unequal = sorted(set(of[0]) ^ set(of[1])) + [name for name in sorted(set(of[0]) & set(of[1])) if code_of(of[0][name]) != code_of(of[1][name])]
    for name in unequal:
        print("differs: %s" % name)
    print("same: %d of %d objects" % (len(set(of[0]) | set(of[1])) - len(unequal), len(set(of[0]) | set(of[1]))))
    return 1 if unequal or not of[0] else 0


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("before")
    ask.add_argument("after")
    ask.add_argument("logs", nargs="*")
    ask.add_argument("--count", type=int, default=2000)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--engine", choices=sorted(FLAGS))
    ask.add_argument("--refusals", action="store_true")
    ask.add_argument("--instructions", action="store_true")
    ask.add_argument("--objects", action="store_true")
    given = ask.parse_args()
    if given.objects:
        return objects(given.before, given.after)
    seen, unequal, differences, refused = collections.Counter(), collections.Counter(), Differences(), collections.Counter()

    def compare(words):
        return words, answer(given.before, words), answer(given.after, words)
    asked = [*commands(given.count, given.seed, given.engine, given.refusals), *others(given.logs)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for words, before, after in pool.map(compare, asked):
            seen[words[0]] += 1
            if given.refusals and "--json" in words and b'"verdict": "refused"' in before[1]:
                refused[re.sub(r"[\d.]+", "N", json.loads(before[1])["why"])] += 1
            if before != after:
                unequal[words[0]] += 1
                differences.add(words, before, after)
    differences.tell()
    if given.refusals:
        print("%d refused, in %d different sentences" % (sum(refused.values()), len(refused)))
    for words in COUNTED if given.instructions else ():
        before, after = (instructions(program, words) for program in (given.before, given.after))
        print("instructions: %s: %d -> %d (%+.2f %%)" % (" ".join(words), before, after, 100 * (after - before) / before))
    print("same: " + ", ".join("%d of %d %s" % (seen[what] - unequal[what], seen[what], what) for what in sorted(seen)))
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
