"""Published growth of host memory, looked for in its releases and in the mended ones.

    tests/oracle/leaks.py BINARY --op VERSION...              bytes left on the heap by each call of a custom operator that takes a string
    tests/oracle/leaks.py BINARY --soak N VERSION...          an engine under N requests: the slope of its host memory, of `dryrun`'s report
    tests/oracle/leaks.py BINARY --soak-blocks N VERSION...   the same with long prompts and answers of one token: few steps, many blocks of the KV cache
    tests/oracle/leaks.py BINARY --sites VERSION...           a whole engine in one process: what a request leaves on the heap, and at which line of Python

The operator is the one that every attention layer calls in each step (`reshape_and_cache_flash`, a string among its arguments): since 0.24.0 it is
in the library with PyTorch's stable ABI. Its kernel does nothing here; what the call itself takes from the heap is real. The soak is made so
that this would be seen: many layers, few requests at once, so many steps. `--soak-blocks` is made for what each new block of the KV cache leaves;
`--sites` names the lines (tracemalloc), and how many finished requests wait for the garbage collector."""
import json
import os
import sys
import tempfile

import engines
import models

CALLS = 200000
HEAP = """import ctypes


class Heap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Heap


def heap_bytes():
    heap = libc.mallinfo2()
    return heap.uordblks + heap.hblkhd


"""
PROGRAM = HEAP + """import sys
import torch
import vllm._custom_ops

key = torch.empty(1, 4, 64, device="cuda", dtype=torch.float16)
cache, slots, scale = torch.empty(2, 8, 16, 4, 64, device="cuda", dtype=torch.float16), torch.zeros(1, dtype=torch.int64, device="cuda"), torch.ones(1, device="cuda")


def call(count):
    for _ in range(count):
        torch.ops._C_cache_ops.reshape_and_cache_flash(key, key, cache[0], cache[1], slots, "auto", scale, scale)
    return heap_bytes()


count = int(sys.argv[1])
call(1000)
first = call(1000)
print("LEFT %.2f" % ((call(count) - first) / count), flush=True)
"""
SITES = HEAP + """import gc, json, os, sys, tracemalloc
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
from vllm import LLM, SamplingParams

PROMPT, ANSWER, ROUND = 512, 8, 50
llm = LLM(sys.argv[1], skip_tokenizer_init=True, load_format="dummy", enforce_eager=True, max_num_seqs=16, max_num_batched_tokens=4096, gpu_memory_utilization=0.5,
          num_gpu_blocks_override=700)
step, steps, sent = llm.llm_engine.step, 0, 0


def counted():
    global steps
    steps += 1
    return step()


def serve(count):
    global sent
    for first in range(sent, sent + count, ROUND):
        prompts = [{"prompt_token_ids": [3 + (i * 31 + k * (7 + i % 13)) % 40000 for k in range(PROMPT)]} for i in range(first, first + ROUND)]
        llm.generate(prompts, SamplingParams(max_tokens=ANSWER, ignore_eos=True, detokenize=False), use_tqdm=False)
    sent += count
    gc.collect()
    return heap_bytes()


llm.llm_engine.step = counted
count = int(sys.argv[2])
serve(200)
first, before = serve(100), steps
heap = (serve(count) - first) / count
answer = {"requests": count, "heap_bytes_a_request": round(heap, 1), "steps_a_request": round((steps - before) / count, 2)}
tracemalloc.start()
serve(100)
first = tracemalloc.take_snapshot()
serve(count)
for row in tracemalloc.take_snapshot().compare_to(first, "lineno"):
    if row.size_diff < 4 * count: break  # sorted
    frame = row.traceback[0]
    answer.setdefault("sites", {})["%s:%d" % (frame.filename.split("site-packages/")[-1], frame.lineno)] = round(row.size_diff / count, 1)
tracemalloc.stop()
gc.disable()
prompts = [{"prompt_token_ids": [5 + i] * PROMPT} for i in range(ROUND)]
llm.generate(prompts, SamplingParams(max_tokens=ANSWER, ignore_eos=True, detokenize=False), use_tqdm=False)
answer["waiting_for_the_collector"] = sum(type(one).__module__ == "vllm.v1.request" and type(one).__name__ == "Request" for one in gc.get_objects())
print("FOUND " + json.dumps(answer), flush=True)
os._exit(0)
"""
# 24 layers: 24 calls of the operator in a step
BLOCK_FLAGS = ["--enforce-eager", "--max-num-batched-tokens", "32768", "--max-num-seqs", "16", "--gpu-memory-utilization", "0.5", "--num-gpu-blocks-override", "4000"]
FLAGS = ["--enforce-eager", "--max-num-batched-tokens", "1024", "--max-num-seqs", "16", "--gpu-memory-utilization", "0.5"]


def op(binary, version, folder):
    outcome = engines.dryrun(binary, folder, ["--gpu", "L4"], [os.path.join(folder, "bin", "python"), "-c", PROGRAM, str(CALLS)], None, 300, waits=False)
    left = next((line.split()[1] for line in outcome.log.splitlines() if line.startswith("LEFT")), None)
    print("%s: %s bytes a call left on the heap, %d calls, %.0f s" % (version, left, CALLS, outcome.seconds), flush=True)
    if left is None:
        print(outcome.log[-2000:])
    return left is not None


def deep(scratch, layers=24):
    models.MODELS["opt-deep"] = models.opt(256, layers, 4)
    return models.write(scratch, "opt-deep")


def soak(binary, version, folder, count, blocks):
    with tempfile.TemporaryDirectory() as scratch:
        command = ["vllm", "serve", deep(scratch, 2 if blocks else 24)] + (BLOCK_FLAGS if blocks else FLAGS)
        load = "%d:1900:1,concurrency=16" if blocks else "%d:16:8,concurrency=4"
        outcome = engines.dryrun(binary, folder, ["--gpu", "L4", "--load", load % count], command, None, 1500)
    mix = outcome.report["load"]["mixes"][0] if outcome.report and outcome.report.get("load") else None
    print(json.dumps({"release": version, "code": outcome.code, "seconds": round(outcome.seconds), "mix": mix}), flush=True)
    if not mix or outcome.code:
        print(outcome.log[-2000:])
    return bool(mix)


def sites(binary, version, folder):
    with tempfile.TemporaryDirectory() as scratch:
        command = [os.path.join(folder, "bin", "python"), "-c", SITES, deep(scratch), "400"]
        outcome = engines.dryrun(binary, folder, ["--gpu", "L4"], command, None, 580)
    found = next((line[6:] for line in outcome.log.splitlines() if line.startswith("FOUND ")), None)
    print("%s: %s, %.0f s" % (version, found, outcome.seconds), flush=True)
    if found is None:
        print(outcome.log[-3000:])
    return found is not None


def main():
    binary, what, words = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    found = engines.venvs()
    count = int(words.pop(0)) if what.startswith("--soak") else 0
    known = [version for version in words if version in found]
    if not known:
        return engines.SKIP
    if what.startswith("--soak"):
        return 0 if all([soak(binary, version, found[version], count, what == "--soak-blocks") for version in known]) else 1
    if what == "--sites":
        return 0 if all([sites(binary, version, found[version]) for version in known]) else 1
    with engines.turn():  # half a minute each
        return 0 if all([op(binary, version, found[version]) for version in known]) else 1


if __name__ == "__main__":
    sys.exit(main())
