"""A real engine under a load, sabotaged: its core killed, its core stopped, requests that it refuses. Codes and words of the dry run.

    tests/oracle/serve_sabotage.py BINARY [--release VERSION]

The same with a server of a few lines, in more ways and in seconds: tests/shim/endings.py. Exit 77 without the engine."""
import argparse
import glob
import os
import signal
import sys
import tempfile
import threading
import time

import engines
import models

CASES = {  # signal to the engine's core, loads, exit code, words in the log
    "killed": (signal.SIGKILL, ["20000:64:16"], 1, ["of 20000 requests were answered", "failed"]),
    "stopped": (signal.SIGSTOP, ["20000:64:16,hang=15"], 1, ["no step and no answer for 15 seconds"]),
    "refusing": (None, ["8:5000:8"], 1, ["0 of 8 requests were answered, 8 refused", "the first that was not: HTTP/1.1 400"]),
}


def children(pid):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found += [int(name)] + children(int(name))
        except (OSError, IndexError):
            pass
    return found


def core_of(pid):
    """The engine's core below a process: it names itself."""
    for child in children(pid):
        try:
            with open("/proc/%d/cmdline" % child, encoding="utf-8", errors="replace") as f:
                if "EngineCore" in f.read():
                    return child
        except OSError:
            pass
    return None


class Saboteur(threading.Thread):
    """A signal to the core of the engine, three seconds into the serving: by then it has written the file of its steps."""

    def __init__(self, number):
        super().__init__(daemon=True)
        self.number, self.core = number, None

    def run(self):
        while not self.core:
            time.sleep(0.2)
            core = core_of(os.getpid())
            if core and glob.glob("/dev/shm/oomsight-*/segment.steps.%d" % core):
                time.sleep(3)
                self.core = core
                os.kill(core, self.number)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--release", default="0.32.0")
    parser.add_argument("--case", action="append", choices=list(CASES))
    options = parser.parse_args()
    folder = engines.venvs().get(options.release)
    if not folder:
        return engines.SKIP
    failed = 0
    for name in options.case or CASES:
        number, loads, code, words = CASES[name]
        with tempfile.TemporaryDirectory() as scratch:
            command = ["vllm", "serve", models.write(scratch, "opt-tiny"), "--enforce-eager", "--max-num-batched-tokens", "1024", "--max-num-seqs", "128",
                       "--gpu-memory-utilization", "0.5"]
            saboteur = Saboteur(number)
            if number:
                saboteur.start()
            outcome = engines.dryrun(os.path.abspath(options.binary), folder, ["--gpu", "L4"] + [word for load in loads for word in ("--load", load)], command,
                                     timeout=500)
        told = [line for line in outcome.log.splitlines() if line.startswith("oomsight dryrun: ")][-3:]
        right = (not number or saboteur.core) and outcome.code == code and all(word in outcome.log for word in words) and outcome.report and outcome.report["verdict"] != "fits"
        failed += not right
        print("%s the engine is %s: code %d, verdict %s, %.0f s\n     %s" % (
            "ok  " if right else "FAIL", name, outcome.code, outcome.report and outcome.report["verdict"], outcome.seconds, "\n     ".join(told)), flush=True)
        if not right:
            print(outcome.log[-3000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
