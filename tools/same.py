#!/usr/bin/env python3
"""Do two builds answer alike, byte for byte? same.py BEFORE AFTER [--count 2000] [--seed 1] [LOG | FOLDER ...]

Draws COUNT commands (architectures of the catalogue x GPUs x releases x flags, one in five for SGLang) and asks both programs for their
plans; explains each LOG (*.log of a folder), checks the deployments of tests/fixtures, and asks for what is known of engines. Output and
exit code are compared. Exit 1 if any answer differs. Standard library only."""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import random
import subprocess
import sys

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


def plans(count, seed):
    draw = random.Random(seed)
    with open(os.path.join(ROOT, "data", "catalogue.json"), encoding="utf-8") as f:
        catalogue = json.load(f)
    of_class = collections.defaultdict(list)  # every architecture as often as any other
    for name, entry in sorted(catalogue.items()):
        if isinstance(entry, dict):
            of_class[(entry.get("config", entry).get("architectures") or ["?"])[0]].append(name)
    classes = sorted(of_class)
    for i in range(count):
        engine = "sglang" if i % 5 == 4 else "vllm"
        gpu = draw.choice(GPUS)
        ranks = int(gpu.rsplit("x", 1)[1]) if gpu[-1].isdigit() and gpu[-2:-1] == "x" else 1
        words = [engine, "serve", draw.choice(of_class[classes[i % len(classes)]])]
        if ranks > 1 or draw.random() < 0.08:
            words += [{"vllm": "--tensor-parallel-size", "sglang": "--tp-size"}[engine], str(max(2, ranks))]
        for _ in range(draw.choice([1, 1, 2])):
            words += draw.choice(FLAGS[engine])
        shown = ["--json"] if i % 10 else []
        yield ["plan", "--offline", *shown, "--gpu", gpu, "--engine", "%s=%s" % (engine, draw.choice(RELEASES[engine])), "--", *words]


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


def main():
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("before")
    ask.add_argument("after")
    ask.add_argument("logs", nargs="*")
    ask.add_argument("--count", type=int, default=2000)
    ask.add_argument("--seed", type=int, default=1)
    given = ask.parse_args()
    seen, unequal = collections.Counter(), collections.Counter()

    def compare(words):
        return words, answer(given.before, words), answer(given.after, words)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for words, before, after in pool.map(compare, [*plans(given.count, given.seed), *others(given.logs)]):
            seen[words[0]] += 1
            if before == after:
                continue
            unequal[words[0]] += 1
            if sum(unequal.values()) <= 5:
                print("differs: %s (exit %d, %d)" % (" ".join(words), before[0], after[0]))
                lines = [[b.decode("utf-8", "replace").splitlines() for b in side[1:]] for side in (before, after)]
                for old, new in zip(*lines):
                    for a, b in [(a, b) for a, b in zip(old, new) if a != b][:3]:
                        print("  - %s\n  + %s" % (a[:300], b[:300]))
    print("same: " + ", ".join("%d of %d %s" % (seen[what] - unequal[what], seen[what], what) for what in sorted(seen)))
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
