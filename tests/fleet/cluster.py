#!/usr/bin/env python3
"""`oomsight matrix --ray` on a real Ray: one head and three nodes on this machine, with stub engines. cluster.py BINARY [--tasks 500]

Two claims: a matrix whose worker and whose node are killed says what a serial run says, in every field but times; and tasks never
need more memory on a node than it has. Started by the Python of OOMSIGHT_RAY (tools/fleet_venv.sh ray); exit 77 without it."""
import argparse
import glob
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
from oomsight import matrix_ray  # noqa: E402

RAY = os.path.join(os.environ.get("OOMSIGHT_RAY") or os.path.expanduser("~/.cache/oomsight/ray"), "bin", "python")
GIB = 1 << 30
NODES = (4 * GIB, 8 * GIB, 12 * GIB)  # memory; cores are more than that allows
TIMES = ("seconds", "attempts")
# A node gives its agents 15 s to start and has 30 s itself, which is too little on a machine that is busy.
SLOW = {"RAY_agent_register_timeout_ms": "200000", "RAY_raylet_start_wait_time_s": "200", "RAY_worker_register_timeout_seconds": "200",
        "RAY_USAGE_STATS_ENABLED": "0"}
ENGINE = """#!%s/e/bin/python
sleep 1
echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 22.00 GiB of which 1.00 GiB is free."; exit 1
"""
PYTHON = """#!/bin/sh
[ "$1" = -c ] && { echo "cuda 12.8"; echo "engine 0.32.0"; exit 0; }
exec sh "$@"
"""
# A node is a raylet, whose number each of its workers was started with.
TASK = """import os, sys, time
with open("/proc/%d/environ" % os.getppid()) as f:
    node = [v.partition("=")[2] for v in f.read().split("\\0") if v.startswith("RAY_RAYLET_PID=")][0]
begin = time.monotonic()
time.sleep(0.2)
with open(os.path.join(sys.argv[1], sys.argv[2]), "w") as f:
    f.write("%s %f %f" % (node, begin, time.monotonic()))
print('{"schema": 1, "verdict": "fits", "task": ' + sys.argv[2] + "}")
"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


def of(pid, name):
    try:
        with open("/proc/%d/%s" % (pid, name), encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def starts(mark):
    """{worker: its raylet} of the dry starts that run now."""
    found = {}
    for folder in glob.glob("/proc/[0-9]*"):
        pid = int(os.path.basename(folder))
        words = of(pid, "cmdline").split("\0")
        if len(words) > 2 and words[1] == "dryrun" and any(mark in word for word in words):
            worker = int(of(pid, "stat").rpartition(")")[2].split()[1])
            raylet = [v.partition("=")[2] for v in of(worker, "environ").split("\0") if v.startswith("RAY_RAYLET_PID=")]
            if raylet:
                found[worker] = int(raylet[0])
    return found


class Case:
    def __init__(self, binary, work, cluster):
        self.binary, self.work, self.cluster, self.failed = binary, work, cluster, 0
        self.env = dict(os.environ, HOME=work, PYTHONPATH=os.path.join(ROOT, "bindings", "python"))

    def claim(self, sentence, holds, seen=""):
        print("%s %s%s" % ("ok  " if holds else "FAIL", sentence, "" if holds else "   (seen: %s)" % (seen,)), flush=True)
        self.failed += not holds

    def path(self, *names):
        return os.path.join(self.work, *names)

    def matrix(self, name, *more):
        """(exit, {point: its line}, what was told); each start takes more than a second."""
        done = subprocess.run([self.binary, "matrix", "--offline", "--no-cache", self.path("m.yaml"), "--points", self.path(name), "--format", "md", *more],
                              env=self.env, capture_output=True, text=True, check=False)
        with open(self.path(name), encoding="utf-8") as f:
            lines = {line["point"]: line for line in map(json.loads, f)}
        return done.returncode, lines, done.stdout, done.stderr

    def kill(self, killed):
        """When several nodes work, a worker of one and the whole of another."""
        while len(set(starts(self.work).values())) < 3:
            time.sleep(0.05)
        worker, its_node = next(iter(starts(self.work).items()))
        os.kill(worker, signal.SIGKILL)
        killed.append("worker")
        time.sleep(1)
        while True:
            busy = set(starts(self.work).values()) - {its_node}
            for node in list(self.cluster.worker_nodes):
                if node.all_processes["raylet"][0].process.pid in busy:
                    self.cluster.remove_node(node, allow_graceful=False)
                    killed.append("node")
                    return
            time.sleep(0.05)

    def equal(self):
        write(self.path("e", "bin", "python"), PYTHON)
        write(self.path("e", "bin", "vllm"), ENGINE % self.work)
        shutil.copytree(os.path.join(ROOT, "tests", "fixtures", "models", "small-llama"), self.path("m"))
        flags = json.dumps(["--max-num-seqs %d" % (8 * n) for n in range(1, 13)])
        write(self.path("m.yaml"), "mode: dryrun\nmodels: [%s]\ngpus: [4090, L4]\nflags: %s\nversions: [0.32.0]\nengines: {0.32.0: %s}\n"
              % (self.path("m"), flags, self.path("e")))
        code, alone, report, _ = self.matrix("serial", "--jobs", "1")
        killed = []
        threading.Thread(target=self.kill, args=(killed,), daemon=True).start()
        begin = time.monotonic()
        ray_code, on_ray, ray_report, told = self.matrix("ray", "--ray", self.cluster.address, "--python", sys.executable)
        self.claim("a worker and a node were killed while they worked", killed == ["worker", "node"], killed)
        self.claim("what was lost was tried again", told.count("; again") >= 2 and sum(p["attempts"] > 1 for p in on_ray.values()) >= 2, told[-800:])
        bare = lambda lines: {n: {k: v for k, v in p.items() if k not in TIMES} for n, p in lines.items()}
        self.claim("all 24 points are what a serial run says, in every field", len(on_ray) == 24 and bare(on_ray) == bare(alone) and ray_code == code == 1,
                   [(bare(alone).get(n), bare(on_ray).get(n)) for n in range(24) if bare(alone).get(n) != bare(on_ray).get(n)][:1])
        self.claim("and so is the report", ray_report == report, ray_report[-500:])
        print("     24 points in %.0f s" % (time.monotonic() - begin), flush=True)

    def memory(self, count):
        write(self.path("task.py"), TASK)
        os.mkdir(self.path("tasks"))
        words = lambda n: [sys.executable, "-I", "-S", self.path("task.py"), self.path("tasks"), str(n)]
        frame = lambda n: b"%d 6 0\n" % n + b"".join(b"%d\n%s" % (len(w), w) for w in map(os.fsencode, words(n)))
        begin = time.monotonic()
        done = subprocess.run([sys.executable, "-m", "oomsight.matrix_ray", self.cluster.address, "0", "2"], input=b"".join(map(frame, range(count))),
                              env=self.env, capture_output=True, check=False)
        took, spans = time.monotonic() - begin, {}
        for n in os.listdir(self.path("tasks")):
            with open(self.path("tasks", n), encoding="utf-8") as f:
                node, start, end = f.read().split()
            spans.setdefault(int(node), []).append((float(start), float(end)))
        answered = sorted(json.loads(line)["task"] for line in done.stdout.splitlines() if line.startswith(b"{"))
        self.claim("all %d tasks are answered" % count, answered == list(range(count)), (len(answered), done.stderr[-500:]))
        for node in self.cluster.worker_nodes:
            here = spans.get(node.all_processes["raylet"][0].process.pid, [])
            most = max([sum(a <= start < b for a, b in here) for start, _ in here], default=0)
            room = self.room[node]
            self.claim("a node of %d GiB runs %d tasks at a time, and works" % (room // GIB, room // matrix_ray.MEMORY), most == room // matrix_ray.MEMORY, most)
        print("     %d tasks in %.0f s" % (count, took), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--tasks", type=int, default=500)
    args = parser.parse_args()
    if not importlib.util.find_spec("ray"):
        if os.path.exists(RAY) and sys.executable != RAY:
            os.execv(RAY, [RAY, *sys.argv])
        print("no Ray: tools/fleet_venv.sh ray installs it into %s" % os.path.dirname(os.path.dirname(RAY)))
        return 77
    os.environ.update(SLOW)
    from ray.cluster_utils import Cluster
    with tempfile.TemporaryDirectory(prefix="oomray-") as work:
        small = {"object_store_memory": 80 << 20}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "memory": GIB, "include_dashboard": False, **small})
        try:
            case = Case(os.path.abspath(args.binary), work, cluster)
            case.room = {cluster.add_node(num_cpus=8, memory=memory, **small): memory for memory in NODES}
            case.memory(args.tasks)
            case.equal()
        finally:
            cluster.shutdown()
    print("cluster: %d claims do not hold" % case.failed if case.failed else "cluster: all claims hold")
    return bool(case.failed)


if __name__ == "__main__":
    sys.exit(main())
