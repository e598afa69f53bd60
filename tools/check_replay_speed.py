#!/usr/bin/env python3
"""A snapshot of a million events, opened, simulated under eight settings and more, and reported.

usage: check_replay_speed.py BINARY [--events N] [--slack X] [--html FILE]

The snapshot is made here, in the form that torch dumps: a long-lived part, activations that come and go, sizes that
drift, stacks, two streams, then an allocation that fails. Reading it and reporting it must take under 5 s of CPU time
(times the slack), memory must stay under 500 MB and under 10 times the file; the HTML report must stay under 10 MB.
--html keeps that report. Exit 1 when a bound does not hold. Standard library only."""
import argparse
import gzip
import os
import pickle
import random
import subprocess
import sys
import tempfile

MIB = 1 << 20


class Recorder:
    """A first-fit allocator, only good enough to give every live block an address of its own."""

    def __init__(self, events):
        self.r = random.Random(4)
        self.trace, self.live, self.want, self.time, self.top = [], [], events, 0, 0x7f0000000000
        layers = ["model.layers.%d.%s" % (i, part) for i in range(32) for part in ("attn", "mlp")]
        self.stacks = [[{"name": "forward", "filename": layer + ".py", "line": 10 + i},
                        {"name": "execute_model", "filename": "gpu_model_runner.py", "line": 900 + i % 3},
                        {"name": "run_engine_core", "filename": "core.py", "line": 77}] for i, layer in enumerate(layers)]
        self.spare = {}

    def entry(self, action, address, size, stream, stack):
        self.time += 3
        self.trace.append({"action": action, "addr": address, "size": size, "stream": stream, "time_us": self.time,
                           "pool_id": (0, 0), "compile_context": "N/A", "user_metadata": "", "frames": stack})

    def malloc(self, size):
        stream, stack = self.r.choice((0, 0, 0, 4096)), self.r.choice(self.stacks)
        segment = 2 * MIB if size <= MIB else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        spare = self.spare.setdefault((segment, stream), [])
        if spare:
            address = spare.pop()
        else:
            address, self.top = self.top, self.top + segment
            self.entry("segment_alloc", address, segment, stream, stack)
        self.entry("alloc", address, size, stream, stack)
        self.live.append((address, size, stream, stack, segment))

    def free(self):
        at = len(self.live) - 1 - min(len(self.live) - 1, int(self.r.expovariate(1 / 40)))
        address, size, stream, stack, segment = self.live.pop(at)
        self.entry("free_requested", address, size, stream, stack)
        self.entry("free_completed", address, size, stream, stack)
        self.spare[segment, stream].append(address)

    def run(self):
        while len(self.trace) < self.want:
            full = 200 + len(self.trace) * 600 // self.want
            if len(self.live) < full and self.r.random() < 0.55 or not self.live:
                self.malloc(self.r.choice((512, 4096, 65536, 300000, 2 * MIB, 5 * MIB, 12 * MIB, 40 * MIB)) + 512 * self.r.randrange(64))
            else:
                self.free()
        return self.trace


def snapshot(events):
    """segments are left out: a ring of entries is what such dumps are about, and torch's own reader allows it."""
    return {"segments": [], "device_traces": [Recorder(events).run()], "external_annotations": [],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False}}


def make(path, events):
    with open(path, "wb") as f:
        pickle.dump(snapshot(events), f, protocol=4)
    with open(path, "rb") as f, gzip.open(path + ".gz", "wb", 6) as g:
        g.write(f.read())


def timed(command):
    done = subprocess.Popen(command, stdout=subprocess.PIPE)
    out = done.stdout.read()
    _, status, used = os.wait4(done.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit("%s ended with %d" % (" ".join(command[1:]), os.waitstatus_to_exitcode(status)))
    return used.ru_utime + used.ru_stime, used.ru_maxrss << 10, len(out)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--events", type=int, default=1000000)
    parser.add_argument("--slack", type=float, default=1.0)
    parser.add_argument("--html")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "million.pickle")
        maker = os.fork()  # a process of its own: what a child may inherit as its peak is the size of this one
        if maker == 0:
            make(path, options.events)
            os._exit(0)
        os.waitpid(maker, 0)
        compressed = os.path.getsize(path + ".gz")
        memory_limit = min(10 * compressed, 500 * 1000 * 1000)
        page = options.html or os.path.join(folder, "page.html")
        for name, words, file in (("text", [], path), ("JSON, from gzip", ["--json"], path + ".gz"),
                                  ("HTML", ["--format", "html", "--output", page], path)):
            seconds, peak, _ = timed([options.binary, "replay", *words, file])
            good = seconds < 5 * options.slack and peak < memory_limit
            failed += not good
            print("%s %s: %.2f s of CPU time (limit 5 s), %.0f MB (limit %.0f MB; the trace is %.0f MB, compressed %.1f MB)" % (
                "ok  " if good else "FAIL", name, seconds, peak / 1e6, memory_limit / 1e6, os.path.getsize(path) / 1e6, compressed / 1e6))
        good = os.path.getsize(page) < 10 * 1000 * 1000
        failed += not good
        print("%s the page has %.2f MB (limit 10 MB)" % ("ok  " if good else "FAIL", os.path.getsize(page) / 1e6))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
