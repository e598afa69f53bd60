"""By how much our own stand-ins grow in an engine that answers many requests: bytes on the heap that their code took and nobody freed.

    tests/oracle/serve_growth.py BINARY [--release VERSION] [--requests N] [--load :IN:OUT,WORDS] [--steps N]

Counted by standin_heap.c, which is preloaded behind the stand-ins. A first load of a thousand warms everything up; the figures are between
the end of it and the end of the second. --steps: no engine, but so many steps of a program that calls PyTorch as a worker does (copies to
and fro, products, a sampler, events, a graph), in a minute. Exit 1 when the stand-ins grow by 100 bytes a request or more, 77 without the
engine."""
import argparse
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time

import engines
import models

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = """import os, struct, sys
import torch
steps, counters = int(sys.argv[1]), "%s.%d" % (os.environ["STANDIN_HEAP"], os.getpid())
weights, logits = torch.empty(256, 1024, device="cuda", dtype=torch.float16), torch.empty(64, 1024, device="cuda", dtype=torch.float16)
side, pinned = torch.cuda.Stream(), torch.empty(64, dtype=torch.int64, pin_memory=True)
graph, fixed = torch.cuda.CUDAGraph(), torch.zeros(64, 256, device="cuda", dtype=torch.float16)
with torch.cuda.graph(graph):
    kept = fixed @ weights


def step(number):
    tokens = torch.arange(number % 64 + 1).to("cuda", non_blocking=True)
    hidden = torch.nn.functional.layer_norm(torch.nn.functional.embedding(tokens, weights.T[:, :256]), (256,))
    probabilities = torch.softmax((hidden @ weights).float(), -1)
    done = torch.cuda.Event()
    with torch.cuda.stream(side):
        pinned[:len(tokens)].copy_(probabilities.argmax(-1), non_blocking=True)
        done.record()
    done.synchronize()
    graph.replay()


def held():
    with open(counters, "rb") as f:
        return struct.unpack("3Q", f.read(24))


for number in range(500):
    step(number)
first = held()
for number in range(steps):
    step(number)
last = held()
print("HELD", first, last, flush=True)
sys.exit(0 if last[0] - first[0] < steps and last[2] > 0 else 1)
"""


class Samples(threading.Thread):
    """[(time, {pid: (bytes, blocks, ever)})], twice a second; processes that are gone are left out."""

    def __init__(self, prefix):
        super().__init__(daemon=True)
        self.prefix, self.seen, self.over = prefix, [], threading.Event()

    def run(self):
        while not self.over.wait(0.5):
            now = {}
            for path in glob.glob(self.prefix + ".*"):
                pid = int(path.rpartition(".")[2])
                with open(path, "rb") as f:
                    bytes_ = f.read(24)
                if len(bytes_) == 24 and os.path.exists("/proc/%d" % pid):
                    now[pid] = struct.unpack("3Q", bytes_)
            self.seen.append((time.time(), now))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--release", default="0.32.0")
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--load", default=":16:4,concurrency=128")
    parser.add_argument("--steps", type=int)
    options = parser.parse_args()
    folder = engines.venvs().get(options.release)
    if not folder:
        return engines.SKIP
    binary = os.path.abspath(options.binary)
    with tempfile.TemporaryDirectory() as scratch:
        library, prefix = os.path.join(scratch, "libstandin_heap.so"), os.path.join(scratch, "heap")
        subprocess.run(["cc", "-std=c17", "-O2", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "standin_heap.c"), "-ldl", "-lpthread"], check=True)
        counted = {"STANDIN_HEAP": prefix, "STANDIN_LIBRARIES": os.path.join(os.path.dirname(os.path.dirname(binary)), "shim"), "LD_PRELOAD": library}
        if options.steps:
            outcome = engines.dryrun(binary, folder, ["--gpu", "L4"], [os.path.join(folder, "bin", "python"), "-c", STEPS, str(options.steps)], counted, 600)
            print("\n".join(line for line in outcome.log.splitlines() if line.startswith("HELD")) or outcome.log[-2000:])
            print("%s %d steps leave less than a byte each with the stand-ins, %.0f s" % ("FAIL" if outcome.code else "ok  ", options.steps, outcome.seconds))
            return outcome.code
        command = ["vllm", "serve", models.write(scratch, "opt-tiny"), "--enforce-eager", "--max-num-batched-tokens", "1024", "--max-num-seqs", "128",
                   "--gpu-memory-utilization", "0.5"]
        samples = Samples(prefix)
        samples.start()
        outcome = engines.dryrun(binary, folder, ["--gpu", "L4", "--load", "1000" + options.load, "--load", "%d%s" % (options.requests, options.load)], command,
                                 counted, 1200 + options.requests // 50)
        samples.over.set()
        samples.join()
    if not outcome.report or outcome.code:
        print(outcome.log[-3000:])
        return 1
    mix = outcome.report["load"]["mixes"][1]
    # the engine's process is the one that holds most
    engine = max({pid for _, now in samples.seen for pid in now}, key=lambda pid: max(now[pid][2] for _, now in samples.seen if pid in now))
    mine = [(at, now[engine]) for at, now in samples.seen if engine in now]
    end, last = mine[-1]
    first = next((counted for at, counted in mine if at >= end - mix["seconds"]), mine[0][1])
    grown, per = last[0] - first[0], (last[0] - first[0]) / mix["answered"]
    calls = outcome.report["calls"]
    print(json.dumps({"release": options.release, "requests": mix["requests"], "answered": mix["answered"], "seconds": round(mix["seconds"], 1),
                      "held_bytes": [first[0], last[0]], "held_blocks": [first[1], last[1]], "blocks_taken": last[2] - first[2],
                      "bytes_a_request": round(per, 3), "calls": calls if isinstance(calls, int) else None,
                      "device": [mix["device_first_bytes"], mix["device_last_bytes"]], "resident": [mix["host_first_bytes"], mix["host_last_bytes"]], "growth": mix.get("growth")}))
    well = per < 100 and mix["answered"] == mix["requests"] and last[2] > 0
    print("%s %d requests: the stand-ins hold %d bytes more than before them, %.2f a request" % ("ok  " if well else "FAIL", mix["answered"], grown, per))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
