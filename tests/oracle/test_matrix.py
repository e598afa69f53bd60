#!/usr/bin/env python3
"""A matrix of dry starts by the local pool and by Ray: test_matrix.py BINARY [--points 12|2|1] [--no-ray] [--keep DIR]

Two engine versions of OOMSIGHT_VENVS (the oldest and the newest of 0.19.1 and later; one is enough for two points or one). The pool
has a worker killed midway and is itself killed with -9 and started again, Ray has a worker of its own killed; both must be
complete and say the same of every point, times apart. Ray is started here, with the Python of OOMSIGHT_RAY_PYTHON
(default ~/.cache/oomsight/ray/bin/python). Exit 77 where there is no engine. Standard library only."""
import argparse
import glob
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import engines
import models

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RAY_PYTHON = os.environ.get("OOMSIGHT_RAY_PYTHON", os.path.expanduser("~/.cache/oomsight/ray/bin/python"))
TIMES = ("seconds", "attempts", "cached", "key")
FLAGS = ["--enforce-eager", "--enforce-eager --max-num-seqs 16", "--enforce-eager --max-model-len 1024 --gpu-memory-utilization 0.5"]
GPUS = ["{gpu: RTX 5090, total: 33672921088}", "{gpu: RTX 5090, total: 2GiB, used: 1GiB}"]


def processes():
    """{pid: (parent, words)} of everything that runs."""
    found = {}
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(folder + "/stat", encoding="utf-8", errors="replace") as f:
                parent = int(f.read().rpartition(")")[2].split()[1])
            with open(folder + "/cmdline", "rb") as f:
                words = f.read().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        found[int(os.path.basename(folder))] = (parent, words)
    return found


def dryruns(mark):
    """Processes `oomsight dryrun` whose command has the mark, newest last."""
    return sorted(pid for pid, (_, words) in processes().items()
                  if len(words) > 2 and words[1] == "dryrun" and any(mark in w for w in words))


def ray_worker_of(pid):
    table = processes()
    while pid in table:
        pid, words = table[pid][0], table.get(table[pid][0], (0, [""]))[1]
        if words[0].startswith("ray::"):
            return pid
    return None


class Killer(threading.Thread):
    """Once the n-th dry start has run for a while, kill what `whom` names for it."""

    def __init__(self, mark, nth, whom, after=6):
        super().__init__(daemon=True)
        self.mark, self.nth, self.whom, self.after, self.killed, self.over = mark, nth, whom, after, None, threading.Event()

    def run(self):
        seen = []
        while not self.over.wait(0.2):
            for pid in dryruns(self.mark):
                if pid not in seen:
                    seen.append(pid)
            if len(seen) < self.nth:
                continue
            time.sleep(self.after)
            victim = self.whom(seen[self.nth - 1])
            try:
                os.kill(victim, signal.SIGKILL)
                self.killed = victim
            except (OSError, TypeError):
                pass
            return


class Case:
    def __init__(self, binary, work, points):
        self.binary, self.work, self.points, self.passed, self.failed = binary, work, points, 0, 0
        models.write(os.path.join(work, "models"), "opt-125m")
        self.mark = work  # in the words of every dry start of ours
        found = {v: f for v, f in engines.venvs().items() if engines.version_key(v) >= [0, 19]}
        names = list(found)
        self.versions = [names[0], names[-1]] if points > 1 and len(names) > 1 else names[-1:]
        flags = FLAGS if points == 12 else FLAGS[:points // len(self.versions)]
        gpus = GPUS if points == 12 else GPUS[:1]
        env = {k: v for k, v in engines.environment(found[names[-1]]).items() if k not in os.environ and k != "PATH"}
        self.file = os.path.join(work, "matrix.yaml")
        with open(self.file, "w", encoding="utf-8") as f:
            f.write("mode: dryrun\nmodels: [./models/opt-125m]\ngpus: [%s]\nflags: %s\nversions: %s\nengines: %s\nenvironment: %s\n" % (
                ", ".join(gpus), json.dumps(flags), json.dumps(self.versions), json.dumps({v: found[v] for v in self.versions}), json.dumps(env)))

    def claim(self, sentence, holds, seen=""):
        print("%s %s%s" % ("ok  " if holds else "FAIL", sentence, "" if holds else "   (seen: %s)" % (seen,)), flush=True)
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)

    def start(self, name, more):
        """The command, each start under the machine's lock; its lines go to NAME.ndjson."""
        words = [self.binary, "matrix", self.file, "--jobs", "1", "--points", self.path(name + ".ndjson"), "--format", "junit", "--output",
                 self.path(name + ".xml"), "--under", "flock %s" % shlex.quote(engines.LOCK)] + more
        env = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=os.path.join(ROOT, "bindings", "python"))
        return subprocess.Popen(words, env=env, stderr=open(self.path(name + ".log"), "a", encoding="utf-8"))

    def path(self, name):
        return os.path.join(self.work, name)

    def lines(self, name):
        with open(self.path(name + ".ndjson"), encoding="utf-8") as f:
            return {x["point"]: x for x in map(json.loads, f)}

    def log(self, name):
        with open(self.path(name + ".log"), encoding="utf-8") as f:
            return f.read()

    def complete(self, name, points, code):
        self.claim("%s: all %d points are answered" % (name, self.points), len(points) == self.points, sorted(points))
        self.claim("%s: each has a verdict" % name, all(p["verdict"] in ("fits", "fails", "refused") for p in points.values()),
                   [(p["point"], p["verdict"], p["problem"] or p["why"]) for p in points.values()])
        self.claim("%s: the exit code follows from them" % name, code == int(any(p["verdict"] != "fits" for p in points.values())), code)

    def pool(self):
        cache = ["--cache", self.path("cache-pool")]
        begin = time.time()
        killer = Killer(self.mark, min(self.points, 2), lambda pid: pid)
        killer.start()
        child = self.start("pool", cache)
        if self.points == 12:  # after the fifth answer the command itself dies, with no word to anyone
            while child.poll() is None and self.log("pool").count("\n[") + self.log("pool").startswith("[") < 5:
                time.sleep(0.5)
            child.send_signal(signal.SIGKILL)
            child.wait()
            while dryruns(self.mark):
                time.sleep(0.5)
            child = self.start("pool", cache)
        code = child.wait()
        killer.over.set()
        points = self.lines("pool")
        self.complete("pool", points, code)
        self.claim("pool: a worker was killed and its point tried again", killer.killed is not None and "; again" in self.log("pool"), self.log("pool")[-500:])
        if self.points == 12:
            kept = [p for p in points.values() if p["cached"]]
            self.claim("pool: after kill -9 it goes on from what was finished", len(kept) >= 4, len(kept))
        print("     pool: %d points in %.0f s" % (self.points, time.time() - begin), flush=True)
        begin = time.time()
        child = self.start("again", cache)
        again = self.lines("again") if child.wait() == code else {}
        self.claim("the same command again starts nothing", len(again) == self.points and all(p["cached"] for p in again.values()) and
                   time.time() - begin < 20, time.time() - begin)
        return points

    def ray(self):
        scratch = tempfile.mkdtemp(prefix="oomray-", dir="/tmp")  # short: Ray's sockets have to fit
        head = subprocess.Popen([os.path.join(os.path.dirname(RAY_PYTHON), "ray"), "start", "--head", "--block", "--port", "6390", "--num-cpus", "2",
                                 "--include-dashboard", "false", "--disable-usage-stats", "--node-ip-address", "127.0.0.1", "--temp-dir", scratch,
                                 "--object-store-memory", str(100 << 20)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begin = time.time()
        try:
            time.sleep(8)
            killer = Killer(self.mark, min(self.points, 2), ray_worker_of)
            killer.start()
            code = self.start("ray", ["--no-cache", "--ray", "127.0.0.1:6390", "--python", RAY_PYTHON]).wait()
            killer.over.set()
        finally:
            head.terminate()
            head.wait()
            shutil.rmtree(scratch, ignore_errors=True)
        points = self.lines("ray")
        self.complete("Ray", points, code)
        self.claim("Ray: a worker was killed and its point tried again", killer.killed is not None and any(p["attempts"] == 2 for p in points.values()),
                   self.log("ray")[-500:])
        print("     Ray: %d points in %.0f s" % (self.points, time.time() - begin), flush=True)
        return points


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--points", type=int, choices=(1, 2, 12), default=12)
    parser.add_argument("--no-ray", action="store_true")
    parser.add_argument("--keep", help="leave files and lines here")
    args = parser.parse_args()
    found = [v for v in engines.venvs() if engines.version_key(v) >= [0, 19]]
    if not found or (args.points == 12 and len(found) < 2):
        print("no engine environments in %s" % engines.VENVS)
        return engines.SKIP
    with tempfile.TemporaryDirectory() as work:
        if args.keep:
            work = args.keep
            os.makedirs(work, exist_ok=True)
        case = Case(os.path.abspath(args.binary), work, args.points)
        points = case.pool()
        if args.no_ray:
            pass
        elif not os.path.exists(RAY_PYTHON):
            print("skip Ray: no %s" % RAY_PYTHON)
        else:
            by_ray = case.ray()
            bare = lambda p: {k: v for k, v in p.items() if k not in TIMES}
            differ = [(bare(points.get(n, {})), bare(by_ray.get(n, {}))) for n in sorted(set(points) | set(by_ray))
                      if bare(points.get(n, {})) != bare(by_ray.get(n, {}))]
            case.claim("pool and Ray say the same of every point", not differ, differ[:2])
    print("matrix: %d claims hold, %d do not" % (case.passed, case.failed))
    return 1 if case.failed else 0


if __name__ == "__main__":
    sys.exit(main())
