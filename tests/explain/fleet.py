#!/usr/bin/env python3
"""A node's worth of pods: logs written and rotated as Kubernetes does it, incidents hidden in them, the follower killed over and
over. Every incident must be told, repeated lines must bear the same id and lie within the stated window.

usage: fleet.py BINARY [--pods N] [--incidents N] [--kills N] [--seconds S] [--lines-per-second X] [--seed N] [--slack X] [--keep]
The defaults are the short form that CI runs; `make fleet` is the whole of it. Exit 0 when everything holds."""
import argparse
import datetime
import glob
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "fixtures", "kb", "vllm")
LAG_LIMIT_S, RSS_LIMIT_MIB, WINDOW_S, SETTLE_S = 2.0, 256, 1.0, 0.7
KEPT = 5  # files per container, as kubelet keeps them

START = [
    "INFO %(d)s [api_server.py:1896] vLLM API server version 0.19.1",
    "INFO %(d)s [utils.py:233] non-default args: {'model': 'acme/chat-8b', 'max_model_len': 32768}",
    "(EngineCore_DP0 pid=71) INFO %(d)s [core.py:76] Initializing a V1 LLM engine (v0.19.1) with config: model='acme/chat-8b', "
    "tensor_parallel_size=1, enforce_eager=False",
    "(EngineCore_DP0 pid=71) INFO %(d)s [gpu_model_runner.py:2338] Starting to load model acme/chat-8b...",
    "(EngineCore_DP0 pid=71) INFO %(d)s [gpu_model_runner.py:2392] Model loading took 14.99 GiB memory and 5.1 seconds",
    "(EngineCore_DP0 pid=71) INFO %(d)s [gpu_worker.py:298] Available KV cache memory: 19.53 GiB",
    "(EngineCore_DP0 pid=71) INFO %(d)s [kv_cache_utils.py:864] GPU KV cache size: 159,968 tokens",
    "(EngineCore_DP0 pid=71) INFO %(d)s [gpu_model_runner.py:3118] Graph capturing finished in 21 secs, took 0.62 GiB",
    "(APIServer pid=1) INFO %(d)s [api_server.py:1971] Starting vLLM API server 0 on http://0.0.0.0:8000",
    "(APIServer pid=1) INFO:     Application startup complete.",
]
SERVING = [
    '(APIServer pid=1) INFO:     10.42.%(a)d.%(b)d:%(p)d - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    '(APIServer pid=1) INFO:     10.42.0.1:%(p)d - "GET /health HTTP/1.1" 200 OK',
    "(APIServer pid=1) INFO %(d)s [logger.py:41] Received request chatcmpl-%(h)s: params: SamplingParams(n=1, temperature=0.7, "
    "top_p=0.95, max_tokens=512), lora_request: None.",
    "(APIServer pid=1) INFO %(d)s [async_llm.py:260] Added request chatcmpl-%(h)s.",
]
STATS = ("(APIServer pid=1) INFO %(d)s [loggers.py:123] Engine 000: Avg prompt throughput: %(a)d.5 tokens/s, Avg generation throughput: "
         "%(b)d.2 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 4.1%%, Prefix cache hit rate: 31.0%%")


def failures(binary):
    """Failure texts of our own fixtures, each of which is one out-of-memory incident."""
    texts = []
    for path in sorted(glob.glob(os.path.join(FIXTURES, "*", "positive.log"))):
        run = subprocess.run([binary, "explain", "--json", path], capture_output=True, text=True, check=False)
        found = [json.loads(line) for line in run.stdout.splitlines()]
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
        # Texts that hold a start of their own, or are wrapped, would be several incidents behind a living engine.
        if len(found) == 1 and found[0]["is_oom"] and found[0]["cut"] is None and found[0]["first_line"] and len(lines) <= 40:
            first, last = found[0]["first_line"], found[0]["last_line"]
            texts.append((os.path.basename(os.path.dirname(path)), lines[first - 1:last]))
    return texts


def now_ns():
    return time.time_ns()


def cri(line, stamp=None):
    stamp = stamp or now_ns()
    whole = datetime.datetime.fromtimestamp(stamp // 10**9, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return "%s.%09dZ stderr F %s\n" % (whole, stamp % 10**9, line)


class Pod:
    """One container: its log, and how kubelet rotates it."""

    def __init__(self, root, number, rng, period):
        uid = "%08x-%04x-4%03x-8%03x-%012x" % tuple(rng.getrandbits(b) for b in (32, 16, 12, 12, 48))
        self.folder = os.path.join(root, "team-%d_chat-%d_%s" % (number % 7, number, uid), "vllm")
        os.makedirs(self.folder)
        self.rng, self.restart, self.bytes, self.lines = rng, 0, 0, 0
        self.period, self.rotate_at = period, time.monotonic() + rng.uniform(0.3, 1) * period
        self.due, self.stats_at, self.script, self.rotations = rng.random(), 0.0, [], 0
        self.open()
        self.put([cri(line % self.words()) for line in START])

    def path(self):
        return os.path.join(self.folder, "%d.log" % self.restart)

    def open(self):
        self.file = open(self.path(), "a", encoding="utf-8", buffering=1 << 16)

    def words(self):
        r = self.rng
        return {"d": time.strftime("%m-%d %H:%M:%S", time.gmtime()), "a": r.randrange(1, 250), "b": r.randrange(1, 250),
                "p": r.randrange(30000, 60000), "h": "%032x" % r.getrandbits(128)}

    def put(self, texts):
        text = "".join(texts)
        self.file.write(text)
        self.file.flush()
        self.bytes += len(text)
        self.lines += len(texts)

    def serve(self, now, count):
        lines = [cri(self.rng.choice(SERVING) % self.words()) for _ in range(count)]
        if now >= self.stats_at:
            self.stats_at = now + 10
            lines.append(cri(STATS % self.words()))
        self.put(lines)

    def rotate(self):
        """Moved away, then made anew; all but the newest of the old ones are packed, the oldest removed."""
        moved = "%s.%s" % (self.path(), time.strftime("%Y%m%d-%H%M%S", time.gmtime()))
        if os.path.exists(moved):
            return
        os.rename(self.path(), moved)
        if self.rng.random() < 0.5:  # the runtime writes to the old file until it is told to open the new one
            self.put([cri(SERVING[1] % self.words())])
        self.file.close()
        self.open()
        old = sorted(glob.glob(self.path() + ".*"))
        for name in old[:-1]:
            if not name.endswith(".gz"):
                with open(name, "rb") as source, gzip.open(name + ".gz", "wb", compresslevel=1) as target:
                    shutil.copyfileobj(source, target)
                os.remove(name)
        for name in sorted(glob.glob(self.path() + ".*"))[:-(KEPT - 1)]:
            os.remove(name)
        self.rotations += 1

    def die(self):
        """The container restarts: another log."""
        self.file.close()
        self.restart += 1
        self.open()
        self.put([cri(line % self.words()) for line in START])


class Truth:
    def __init__(self, pod, name):
        self.path, self.name, self.first, self.last = pod.path(), name, None, None
        self.gap = 0.0  # between two pieces, as it came out


class Fleet(threading.Thread):
    """Writes, until told to stop. Incidents are spread over the time."""

    def __init__(self, root, texts, args, rng):
        super().__init__(daemon=True)
        self.args, self.rng, self.texts, self.truths, self.stopped = args, rng, texts, [], False
        self.pods = [Pod(root, i, random.Random(args.seed * 100003 + i), args.rotate) for i in range(args.pods)]
        self.behind = 0.0

    def plan(self, start):
        span = self.args.seconds - 4
        victims = [self.rng.randrange(len(self.pods)) for _ in range(self.args.incidents)]
        times = sorted(start + self.rng.uniform(1, span) for _ in range(self.args.incidents))
        free = {}
        for at, victim in zip(times, victims):
            while free.get(victim, 0) > at:
                victim = self.rng.randrange(len(self.pods))
            free[victim] = at + 12  # one after the other
            self.script(self.pods[victim], at)

    def script(self, pod, at):
        """The failure in one to three pieces, perhaps with a rotation in between; then a new start, in the same log or another."""
        name, lines = self.rng.choice(self.texts)
        truth = []
        cuts = sorted(self.rng.randrange(1, len(lines)) for _ in range(self.rng.choice((0, 0, 1, 2)))) if len(lines) > 1 else []
        for begin, end in zip([0] + cuts, cuts + [len(lines)]):
            if begin == end:
                continue
            pod.script.append((at, "fail", (name, lines[begin:end], begin == 0, truth)))
            at += self.rng.uniform(0.02, 0.3)
            if end < len(lines) and self.rng.random() < 0.3:
                pod.script.append((at, "rotate", None))
        pod.script.append((at + self.rng.uniform(3, 6), "die" if self.rng.random() < 0.5 else "again", None))

    def act(self, pod, kind, what):
        if kind == "fail":
            name, lines, begins, truth = what
            if begins:
                truth.append(Truth(pod, name))
                self.truths.append(truth[0])
                pod.down = True
            truth[0].first = truth[0].first or now_ns()
            truth[0].gap = max(truth[0].gap, (now_ns() - (truth[0].last or now_ns())) / 1e9)
            pod.put([cri(line) for line in lines])
            truth[0].last = now_ns()
        elif kind == "rotate":
            pod.rotate()
        else:
            pod.down = False
            if kind == "die":
                pod.die()
            else:
                pod.put([cri(line % pod.words()) for line in START])

    def run(self):
        start = time.monotonic()
        self.plan(start)
        for pod in self.pods:
            pod.down = False
            pod.script.sort(key=lambda step: step[0])
        last = start
        while not self.stopped:
            now = time.monotonic()
            share = (now - last) * self.args.lines_per_second
            last = now
            for pod in self.pods:
                while pod.script and pod.script[0][0] <= now:
                    self.act(pod, *pod.script.pop(0)[1:])
                pod.due += share
                if pod.due >= 1 and not pod.down:
                    pod.serve(now, int(pod.due))
                    pod.due -= int(pod.due)
                if now >= pod.rotate_at:
                    pod.rotate_at = now + pod.period * pod.rng.uniform(0.7, 1.3)
                    pod.rotate()
            spent = time.monotonic() - now
            self.behind = max(self.behind, spent)
            time.sleep(max(0.0, 0.05 - spent))


class Follower:
    """The program under test; killed and started again."""

    def __init__(self, binary, root, folder):
        self.command = [binary, "explain", "--follow", "--each", "--state", os.path.join(folder, "state"), "--metrics-file",
                        os.path.join(folder, "oomsight.prom"), root]
        self.out, self.err = os.path.join(folder, "incidents.ndjson"), os.path.join(folder, "stderr")
        self.cpu = self.rss_kib = 0
        self.process, self.up_since, self.spans = None, 0, []
        self.start()

    def start(self):
        with open(self.out, "ab") as out, open(self.err, "ab") as err:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=err)
        self.up_since = now_ns()

    def look(self):
        try:
            with open("/proc/%d/stat" % self.process.pid, encoding="ascii") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            with open("/proc/%d/status" % self.process.pid, encoding="ascii") as f:
                peak = [int(line.split()[1]) for line in f if line.startswith("VmHWM")]
        except OSError:
            return 0
        self.rss_kib = max([self.rss_kib] + peak)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, how):
        self.cpu += self.look()
        self.process.send_signal(how)
        at = now_ns()
        self.process.wait()
        self.spans.append((self.up_since, at))
        return at


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else 0.0


def judge(args, fleet, follower, kills, elapsed):
    told = []
    with open(follower.out, encoding="utf-8") as f:
        broken = 0
        for line in f:
            try:
                told.append(json.loads(line))
            except ValueError:
                broken += 1  # a kill in the middle of a write
    by_id = {}
    for line in told:
        by_id.setdefault(line["id"], []).append(line)

    def ns(text):
        when = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
        return int(when.timestamp() * 1000) * 10**6

    seen, strangers, split = {}, [], 0
    for lines in by_id.values():
        at = ns(lines[0]["at"])
        match = [t for t in fleet.truths if t.path == lines[0]["source"]["path"] and t.first - 2 * 10**6 <= at <= t.last + 2 * 10**6]
        if not match:
            strangers.append(lines[0])
            continue
        split += match[0] in seen and match[0].gap < SETTLE_S  # a writer that was held up prints two failures
        seen.setdefault(match[0], lines)
    lost = [t for t in fleet.truths if t not in seen]
    lags, late = [], []
    for truth, lines in seen.items():
        when = ns(lines[0]["seen_at"])
        alive = any(since <= truth.first - 2 * 10**9 and when <= until for since, until in follower.spans)
        (lags if alive else late).append((when - truth.last) / 1e9)
    repeats, outside, widest = 0, 0, 0.0
    for lines in by_id.values():
        for before, after in zip(lines, lines[1:]):
            repeats += 1
            gaps = [(k - ns(before["seen_at"])) / 1e9 for k in kills if ns(before["seen_at"]) - 10**7 <= k <= ns(after["seen_at"])]
            widest = max([widest] + gaps[:1])
            outside += not gaps or gaps[0] > WINDOW_S
    megabytes = sum(p.bytes for p in fleet.pods) / 1e6
    line_bytes = [len(json.dumps(line)) for line in told]
    wrong = 0

    def say(ok, text):
        nonlocal wrong
        wrong += not ok
        print("%s %s" % ("ok  " if ok else "FAIL", text))

    print("     %d pods, %.1f MB in %.0f s (%.2f MB/s, %d lines), %d rotations, %d kills; a round of the writer took %.2f s at most"
          % (args.pods, megabytes, elapsed, megabytes / elapsed, sum(p.lines for p in fleet.pods),
             sum(p.rotations for p in fleet.pods), len(kills), fleet.behind))
    say(not lost, "incidents: %d hidden, %d told, %d lost" % (len(fleet.truths), len(seen), len(lost)))
    for truth in lost[:5]:
        print("       lost: %s in %s" % (truth.name, truth.path))
    say(not strangers and not split, "told though never hidden: %d; told under two ids: %d" % (len(strangers), split))
    for line in strangers[:5]:
        print("       %s %s %s %s: %s" % (line["source"]["path"], line["at"], line["phase"], line["cause"],
                                          [e["text"][:80] for e in line["evidence"][-2:]]))
    say(outside == 0, "repeated lines: %d, outside of the window of %.1f s before a kill: %d (the farthest %.3f s)"
        % (repeats, WINDOW_S, outside, widest))
    limit = LAG_LIMIT_S * args.slack
    say(lags and max(lags) < limit, "lag from the last line of a failure to its report: p50 %.2f s, p99 %.2f s, max %.2f s of %.1f (%d incidents)"
        % (percentile(lags, 0.5), percentile(lags, 0.99), max(lags or [99]), limit, len(lags)))
    print("     lag where a kill came in between: max %.2f s (%d incidents)" % (max(late or [0]), len(late)))
    print("     processor time: %.2f s for %.1f MB, %.1f ms per MB, %.1f %% of a core at this rate"
          % (follower.cpu, megabytes, follower.cpu / megabytes * 1000, follower.cpu / elapsed * 100))
    say(follower.rss_kib < RSS_LIMIT_MIB << 10 or args.sanitized, "memory: %.1f MiB of %d" % (follower.rss_kib / 1024, RSS_LIMIT_MIB))
    print("     an incident is a line of %d bytes (median), %d in all; %d lines were cut by a kill"
          % (percentile(line_bytes, 0.5), sum(line_bytes), broken))
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    for name, kind, value in (("pods", int, 200), ("incidents", int, 60), ("kills", int, 4), ("seconds", float, 30.0),
                              ("lines-per-second", float, 3.0), ("rotate", float, 4.0), ("seed", int, 1), ("slack", float, 1.0)):
        parser.add_argument("--" + name, type=kind, default=value)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--sanitized", action="store_true")
    args = parser.parse_args()
    args.binary = os.path.abspath(args.binary)
    rng = random.Random(args.seed)
    folder = tempfile.mkdtemp(prefix="oomsight-fleet-")
    root = os.path.join(folder, "pods")
    texts = failures(args.binary)
    fleet = Fleet(root, texts, args, rng)
    follower = Follower(args.binary, root, folder)
    start = time.monotonic()
    fleet.start()
    moments = sorted(start + rng.uniform(2, args.seconds - 2) for _ in range(args.kills))
    kills = []
    while time.monotonic() < start + args.seconds:
        follower.look()
        if moments and time.monotonic() >= moments[0]:
            moments.pop(0)
            kills.append(follower.stop(signal.SIGKILL))
            time.sleep(rng.uniform(0, 1))
            follower.start()
        time.sleep(0.02)
    elapsed = time.monotonic() - start
    fleet.stopped = True
    fleet.join()
    time.sleep(3)
    follower.stop(signal.SIGTERM)
    wrong = judge(args, fleet, follower, kills, elapsed)
    with open(follower.err, encoding="utf-8") as f:
        for line in list(f)[:10]:
            print("     stderr: " + line.rstrip())
    if args.keep or wrong:
        print("     kept in " + folder)
    else:
        shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
