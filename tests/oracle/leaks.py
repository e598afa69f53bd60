"""Published growth of host memory, looked for in its releases and in the mended ones.

    tests/oracle/leaks.py BINARY --op VERSION...              bytes left on the heap by each call of a custom operator that takes a string
    tests/oracle/leaks.py BINARY --soak N VERSION...          an engine under N requests: the slope of its host memory, of `dryrun`'s report

The operator is the one that every attention layer calls in each step (`reshape_and_cache_flash`, a string among its arguments): since 0.24.0 it is
in the library with PyTorch's stable ABI. Its kernel does nothing here; what the call itself takes from the heap is real. The soak is made so
that this would be seen: many layers, few requests at once, so many steps."""
import json
import os
import sys
import tempfile

import engines
import models

CALLS = 200000
PROGRAM = """import ctypes, sys
import torch
import vllm._custom_ops


class Heap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Heap
key = torch.empty(1, 4, 64, device="cuda", dtype=torch.float16)
cache, slots, scale = torch.empty(2, 8, 16, 4, 64, device="cuda", dtype=torch.float16), torch.zeros(1, dtype=torch.int64, device="cuda"), torch.ones(1, device="cuda")


def call(count):
    for _ in range(count):
        torch.ops._C_cache_ops.reshape_and_cache_flash(key, key, cache[0], cache[1], slots, "auto", scale, scale)
    heap = libc.mallinfo2()
    return heap.uordblks + heap.hblkhd


count = int(sys.argv[1])
call(1000)
first = call(1000)
print("LEFT %.2f" % ((call(count) - first) / count), flush=True)
"""
# 24 layers: 24 calls of the operator in a step
FLAGS = ["--enforce-eager", "--max-num-batched-tokens", "1024", "--max-num-seqs", "16", "--gpu-memory-utilization", "0.5"]


def op(binary, version, folder):
    outcome = engines.dryrun(binary, folder, ["--gpu", "L4"], [os.path.join(folder, "bin", "python"), "-c", PROGRAM, str(CALLS)], None, 300, waits=False)
    left = next((line.split()[1] for line in outcome.log.splitlines() if line.startswith("LEFT")), None)
    print("%s: %s bytes a call left on the heap, %d calls, %.0f s" % (version, left, CALLS, outcome.seconds), flush=True)
    if left is None:
        print(outcome.log[-2000:])
    return left is not None


def soak(binary, version, folder, count):
    with tempfile.TemporaryDirectory() as scratch:
        models.MODELS["opt-deep"] = models.opt(256, 24, 4)
        command = ["vllm", "serve", models.write(scratch, "opt-deep")] + FLAGS
        outcome = engines.dryrun(binary, folder, ["--gpu", "L4", "--load", "%d:16:32,concurrency=4" % count], command, None, 900)
    mix = outcome.report["load"]["mixes"][0] if outcome.report and outcome.report.get("load") else None
    print(json.dumps({"release": version, "code": outcome.code, "seconds": round(outcome.seconds), "mix": mix}), flush=True)
    if not mix or outcome.code:
        print(outcome.log[-2000:])
    return bool(mix)


def main():
    binary, what, words = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    found = engines.venvs()
    count = int(words.pop(0)) if what == "--soak" else 0
    known = [version for version in words if version in found]
    if not known:
        return engines.SKIP
    if what == "--soak":
        return 0 if all([soak(binary, version, found[version], count) for version in known]) else 1
    with engines.turn():  # half a minute each
        return 0 if all([op(binary, version, found[version]) for version in known]) else 1


if __name__ == "__main__":
    sys.exit(main())
