"""Signals at random times to random processes of dry runs: nothing may be left of any of them, no process and no folder.

    tests/shim/sabotage.py BINARY [--signals 200] [--seed N] [--at-once 8] [--engine "VENV/bin/vllm serve MODEL ..."]

A run is a small tree of processes of the kinds that engines leave behind: children in sessions of their own, daemons, such as ignore
signals, close their pipes, hold device memory. HUP, INT, QUIT, PIPE, TERM or KILL goes to one of all processes of the run, guard and worker
included; sometimes a second one follows. Afterwards the run ends, by that signal or by itself, and has half a minute to be gone. Guard and
worker are not both killed: that is what the next dry run mends, see faults.py. With --engine the command is the one that is given."""
import argparse
import glob
import os
import random
import shlex
import signal
import subprocess
import sys
import threading
import time

SIGNALS = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTERM, signal.SIGKILL]
HOLDER = """
import ctypes, os, time
def hold():
    at = ctypes.c_void_p()
    ctypes.CDLL(None).cudaMalloc(ctypes.byref(at), ctypes.c_size_t(1 << 21))
hold_after = os.fork()
if hold_after == 0:
    os.setsid()
    if os.fork() == 0:
        hold()
        os.closerange(0, 64)
        time.sleep(300)
    os._exit(0)
hold()
time.sleep(0.4)
"""
TREES = [
    ["sh", "-c", "sleep 0.5"],
    ["sh", "-c", "(sleep 300 &); setsid sleep 300 & sleep 0.6"],
    ["sh", "-c", "trap '' HUP INT QUIT; setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' & sleep 0.5; exit 3"],
    ["sh", "-c", "trap '' TERM; sleep 0.8"],
    ["sh", "-c", "exec >&- 2>&- 3>&- 4>&- 5>&- 6>&- 7>&-; sleep 300 & sleep 0.5"],
    ["sh", "-c", "yes a line of a log | head -c 2000000; sh -c 'sh -c \"sleep 300 & sleep 0.7\"'"],
    [sys.executable, "-c", HOLDER],
]
lock = threading.Lock()


def processes(mark):
    """pid: parent, of all that were started with this mark in their environment."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as f:
                if mark.encode() not in f.read().split(b"\0"):
                    continue
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as f:
                rest = f.read().rpartition(")")[2].split()
            if rest[0] != "Z":
                found[int(name)] = int(rest[1])
        except OSError:
            pass
    return found


def heed_signals():
    """A shell has its background jobs ignore INT and QUIT, and what is ignored stays so."""
    for number in SIGNALS[:-1]:
        signal.signal(number, signal.SIG_DFL)


def folders(guard):
    return glob.glob("/dev/shm/oomsight-%d-*" % guard)


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Trial:
    def __init__(self, options, number):
        self.chance = random.Random(options.seed * 100003 + number)
        self.mark = "OOMSIGHT_SABOTAGE=%d-%d-%d" % (os.getpid(), options.seed, number)
        self.options, self.sent, self.problems, self.killed = options, [], [], set()

    def start(self):
        words = shlex.split(self.options.engine) if self.options.engine else self.chance.choice(TREES)
        name, _, value = self.mark.partition("=")
        head = [] if self.options.engine else ["--cuda", self.chance.choice(["12", "13"])]
        self.words = words
        self.run = subprocess.Popen([self.options.binary, "dryrun", "--gpu", "4090", "--timeout", "300", *head, "--", *words], env={**os.environ, name: value},
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
                                    preexec_fn=heed_signals)

    def hit(self):
        if self.options.engine:
            time.sleep(self.chance.uniform(0, 45))
        else:
            time.sleep(self.chance.choice([self.chance.uniform(0, 0.01), self.chance.uniform(0, 0.15), self.chance.uniform(0.1, 0.6)]))
        guard = self.run.pid
        there = processes(self.mark) if self.chance.random() < 0.8 else {guard: 0}
        heads = {guard} | {pid for pid, parent in there.items() if parent == guard}
        others = sorted(set(there) - heads)
        chosen = others if others and self.chance.random() < 0.6 else sorted(there) or [guard]
        pid, number = self.chance.choice(chosen), self.chance.choice(SIGNALS)
        if number == signal.SIGKILL and pid in heads and self.killed:
            return  # never both
        if pid == guard and self.run.poll() is not None:
            return
        if send(pid, number):
            if number == signal.SIGKILL and pid in heads:
                self.killed.add(pid)
            role = "guard" if pid == guard else "worker" if there.get(pid) == guard else "process"
            self.sent.append((role, signal.Signals(number).name))

    def judge(self):
        guard, until = self.run.pid, time.monotonic() + self.options.seconds
        said = self.run.communicate()[0].decode(errors="replace")
        while time.monotonic() < until and (processes(self.mark) or folders(guard)):
            time.sleep(0.05)
        left, places = processes(self.mark), folders(guard)
        if left:
            self.problems.append("processes are left: %s" % [open("/proc/%d/cmdline" % pid, "rb").read().replace(b"\0", b" ")[:80] for pid in left if os.path.exists("/proc/%d" % pid)])
        if places:
            self.problems.append("folders are left: %s" % places)
        if self.run.returncode > 128 and said.startswith("RAN"):
            self.problems.append("code %d and RAN" % self.run.returncode)
        for pid in left:  # ours: they carry the mark
            send(pid, signal.SIGKILL)

    def all(self):
        self.start()
        self.hit()
        if self.chance.random() < 0.3:
            self.hit()
        if self.options.engine and self.run.poll() is None and not self.sent:
            send(self.run.pid, signal.SIGTERM)
        self.judge()


def main():
    reader = argparse.ArgumentParser()
    reader.add_argument("binary")
    reader.add_argument("--signals", type=int, default=200)
    reader.add_argument("--seed", type=int, default=int(time.time()))
    reader.add_argument("--at-once", type=int, default=8)
    reader.add_argument("--seconds", type=float, default=30)
    reader.add_argument("--engine")
    options = reader.parse_args()
    options.binary = os.path.abspath(options.binary)
    state = {"signals": 0, "trials": 0, "failed": 0, "roles": {}}
    started = time.monotonic()

    def work():
        while True:
            with lock:
                if state["signals"] >= options.signals:
                    return
                number = state["trials"]
                state["trials"] += 1
            trial = Trial(options, number)
            trial.all()
            with lock:
                state["signals"] += len(trial.sent)
                for sent in trial.sent:
                    state["roles"][sent] = state["roles"].get(sent, 0) + 1
                if trial.problems:
                    state["failed"] += 1
                    print("FAIL run %d (%s) after %s: %s" % (number, " ".join(trial.words)[:60], trial.sent, "; ".join(trial.problems)))

    workers = [threading.Thread(target=work) for _ in range(options.at_once)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for role in ("guard", "worker", "process"):
        print("%-8s" % role, ", ".join("%s %d" % (name, count) for (who, name), count in sorted(state["roles"].items()) if who == role))
    print("seed %d: %d signals over %d runs in %.0f s, %d runs left something behind or told an untruth" %
          (options.seed, state["signals"], state["trials"], time.monotonic() - started, state["failed"]))
    return 1 if state["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
