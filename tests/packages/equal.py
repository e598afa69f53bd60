#!/usr/bin/env python3
"""The same answers everywhere: equal.py NATIVE [--way NAME=COMMAND]... [--shared DIR] [--seconds N] [--skip N] [--jobs N]

Plans (every config x 8 GPUs x 2 releases of vLLM) and explanations of every log, as JSON, by the command of this machine and by each other way
to run it: exit code, output and messages must be equal, byte for byte. Configs and logs are those of the fixtures, and with --shared
those beside the checkout. COMMAND is the words that run a build (`qemu-aarch64-static -L DIR FILE`), or a file FILE.wasm, which node runs by
the page's own wasi.js, compiled once; without --way the builds that CI and `make wheels` leave behind. --seconds N ends after that time:
questions come in a mixed order, always the same, so that a part of them is a sample; --skip N goes on
after the first N. A way whose files are not there is told, and is no failure unless there is none left (exit 77). Standard library only."""
import argparse
import concurrent.futures
import glob
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(os.path.dirname(HERE), "fixtures")
GPUS = ("4090", "l4x2", "a30x4", "a100-40", "h100", "h200x8", "gb10", "gb200")
RELEASES = ("0.19.1", "0.32.0")
WAYS = ("small=build-small/cli/oomsight", "wasm=build/app/oomsight.wasm", "musl=build-x86_64-linux-musl/cli/oomsight",
        "aarch64=qemu-aarch64-static -L /usr/aarch64-linux-gnu build-aarch64-linux-gnu/cli/oomsight")
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "HOME": "/nonexistent", "NO_COLOR": "1"}


def questions(shared):
    """(kind, words, files that the words name)"""
    models = sorted(glob.glob(os.path.join(FIXTURES, "models", "*")))
    logs = sorted(glob.glob(os.path.join(FIXTURES, "kb", "**", "*.log"), recursive=True))
    if shared:
        models = sorted(glob.glob(os.path.join(shared, "golden", "models", "*")))
        logs = [path for corpus in ("dev", "second") for path in sorted(glob.glob(os.path.join(shared, "corpus", corpus, "*.log")))]
    for model in models:
        if not os.path.exists(os.path.join(model, "config.json")):
            continue
        files = [os.path.join(model, name) for name in sorted(os.listdir(model))]
        for gpu in GPUS:
            for release in RELEASES:
                yield "plan", ["plan", "--json", "--offline", "--gpu", gpu, "--vllm", release, "--", "vllm", "serve", model], files
    for log in logs:
        yield "explain", ["explain", "--json", log], [log]


class Command:
    """A process for each question."""

    def __init__(self, words):
        self.words = words

    def ask(self, words, files):
        run = subprocess.run([*self.words, *words], capture_output=True, stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], **ENVIRONMENT})
        return run.returncode, run.stdout.decode("utf-8"), run.stderr.decode("utf-8")


class Wasm:
    """One node for each thread that asks; it has compiled the module, and makes a fresh instance for each question."""

    def __init__(self, path):
        self.path, self.own = path, threading.local()

    def ask(self, words, files):
        if not hasattr(self.own, "node"):
            self.own.node = subprocess.Popen(["node", os.path.join(HERE, "wasm.js"), self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.own.node.stdin.write(json.dumps({"words": words, "files": files, "environment": ENVIRONMENT}) + "\n")
        self.own.node.stdin.flush()
        answer = json.loads(self.own.node.stdout.readline())
        return answer["code"], answer["out"], answer["err"]


def ways(told):
    """name -> what answers; a way that cannot be had here is told."""
    found = {}
    for way in told:
        name, _, command = way.partition("=")
        words = shlex.split(command)
        files = [word for word in words if "/" in word]
        program = "node" if words[-1].endswith(".wasm") else words[0]
        missing = [path for path in files if not os.path.exists(path)] + ([] if shutil.which(program) else [program])
        if missing:
            print("skip %s: no %s" % (name, ", ".join(missing)))
        else:
            found[name] = Wasm(os.path.abspath(words[-1])) if program == "node" else Command(words)
    return found


def differs(native, other, words):
    """Where two answers part."""
    for what, a, b in zip(("exit code", "output", "messages"), native, other):
        if a != b:
            lines = [(x, y) for x, y in zip(str(a).splitlines(), str(b).splitlines()) if x != y] or [(str(a)[-200:], str(b)[-200:])]
            return "%s: %s: %s | %s" % (shlex.join(words), what, lines[0][0].strip()[:200], lines[0][1].strip()[:200])
    return ""


def compare(native, others, shared, seconds_most, skip, jobs):
    all_of_them = list(questions(shared))
    random.Random(1).shuffle(all_of_them)
    begun = time.monotonic()
    asked = {"plan": 0, "explain": 0}
    wrong = {name: dict.fromkeys(asked, 0) for name in others}

    def one(question):
        kind, words, files = question
        if seconds_most and time.monotonic() - begun > seconds_most:
            return kind, None
        answer, parted = native.ask(words, files), {}
        for name, way in others.items():
            parted[name] = differs(answer, way.ask(words, files), words)
        return kind, parted

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for kind, parted in pool.map(one, all_of_them[skip:]):
            if parted is None:
                continue
            asked[kind] += 1
            for name, difference in parted.items():
                if difference:
                    wrong[name][kind] += 1
                    if sum(wrong[name].values()) <= 20:
                        print("DIFFERS %s %s" % (name, difference), flush=True)
    print("asked %d of %d questions in %.0f s" % (sum(asked.values()), len(all_of_them), time.monotonic() - begun))
    for name in others:
        print("%s: plans equal %d of %d, explanations equal %d of %d" % (name, asked["plan"] - wrong[name]["plan"], asked["plan"],
              asked["explain"] - wrong[name]["explain"], asked["explain"]))
    return any(sum(kinds.values()) for kinds in wrong.values()) or not all(asked.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("native")
    parser.add_argument("--way", action="append", metavar="NAME=COMMAND")
    parser.add_argument("--shared")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    others = ways(options.way or WAYS)
    if not others:
        print("no other way to run it is here")
        return 77
    return 1 if compare(Command([os.path.abspath(options.native)]), others, options.shared and os.path.abspath(options.shared), options.seconds, options.skip, options.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
