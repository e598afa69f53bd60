#!/usr/bin/env python3
"""A Hub that does not answer is asked once for a whole run, and for a built-in model never: network.py BINARY

The Hub is a server on this machine that counts connections. It closes them, answers no byte, or says 404. check, plan, explain and matrix are asked of a
model that is built in and of one that nobody has, check of 800 manifests; what is counted must not grow with the number of files. While a Hub is silent a line
says what is waited for; the server is silent until that line is there, so that no clock decides. Prints what breaks; exit 1 when anything does."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading

MANIFESTS = 800
AT_ONCE = 6  # three files of a model are asked for beside each other; libcurl may open a connection once more
BUILT_IN, NOBODY = "Qwen/Qwen3-8B", "nobody/has-this"
POD = "kind: Pod\nspec:\n  containers:\n  - image: vllm/vllm-openai:v0.19.1\n    args: [--model, %s]\n    resources: {limits: {nvidia.com/gpu: 1}}\n"
LOG = ("INFO 11-15 10:00:00 [api_server.py:1] vLLM API server version 0.19.1\nINFO 11-15 10:00:00 [utils.py:1] non-default args: {'model_tag': '%s', 'model': '%s'}\n"
       "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.52 GiB of which 1.00 GiB is free.\n")


class Hub:
    """`way`: what becomes of a connection."""

    def __init__(self, way):
        self.way, self.count, self.let = way, 0, threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                one, _ = self.socket.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self.answer, args=(one,), daemon=True).start()

    def answer(self, one):
        with one:
            if self.way == "silent":
                self.let.wait()
            if self.way == "404":
                while one.recv(65536):
                    one.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")


class Test:
    def __init__(self, binary):
        self.binary, self.broken, self.asked = os.path.abspath(binary), [], 0

    def claim(self, sentence, holds, seen):
        self.asked += 1
        if not holds:
            self.broken.append("%s   (seen: %s)" % (sentence, seen))

    def run(self, hub, words, folder, text=None):
        before = hub.count
        env = {"PATH": os.environ["PATH"], "HOME": folder, "HF_HUB_CACHE": os.path.join(folder, "none"), "HF_ENDPOINT": hub.address}
        done = subprocess.run([self.binary, *words], input=text, capture_output=True, text=True, cwd=folder, env=env, check=False)
        return hub.count - before, done

    def questions(self, folder, model, name):
        grid = os.path.join(folder, name + ".yaml")
        with open(grid, "w", encoding="utf-8") as f:
            json.dump({"models": [model], "gpus": ["l4", "h100"], "versions": ["0.19.1", "0.32.0"], "flags": {"max-model-len": [2048, 4096, 8192]}}, f)
        with open(os.path.join(folder, name + ".log"), "w", encoding="utf-8") as f:
            f.write(LOG % (model, model))
        return {"plan": ["plan", "--gpu", "l4", "--", "vllm", "serve", model], "plan of two releases": ["plan", "--gpu", "l4", "--vllm", "0.19.1,0.32.0", "--", "vllm", "serve", model],
                "plan on every GPU": ["plan", "--gpu", "all", "--", "vllm", "serve", model], "explain": ["explain", "--gpu", "4090", name + ".log"],
                "matrix": ["matrix", name + ".yaml"], "check": ["check", "--gpu", "l4", name]}

    def manifests(self, folder, model, name):
        os.mkdir(os.path.join(folder, name))
        for i in range(MANIFESTS):
            with open(os.path.join(folder, name, "%d.yaml" % i), "w", encoding="utf-8") as f:
                f.write(POD % (model % i if "%" in model else model))

    def counts(self):
        with tempfile.TemporaryDirectory() as folder:
            self.manifests(folder, BUILT_IN, "known")
            self.manifests(folder, NOBODY + "-%d", "unknown")
            closing = Hub("closes")
            for what, words in self.questions(folder, BUILT_IN, "known").items():
                count, done = self.run(closing, words, folder)
                self.claim("%s of a built-in model asks nobody" % what, count == 0 and done.stdout, (count, done.stderr[:200]))
                self.claim("%s of a built-in model waits for nobody" % what, "waiting" not in done.stderr, done.stderr[:200])
            for what, words in self.questions(folder, NOBODY, "unknown").items():
                count, done = self.run(closing, words, folder)
                # each thread that plans may have begun before the first has its answer
                most = AT_ONCE * (os.cpu_count() if what in ("check", "matrix") else 1)
                self.claim("%s of a model that nobody has asks a Hub that does not answer once" % what, (0 if what == "explain" else 1) <= count <= most, (count, most, done.stderr[:200]))
            there = Hub("404")
            count, done = self.run(there, self.questions(folder, NOBODY, "one")["plan"], folder)
            self.claim("a Hub that answers is asked", 0 < count <= AT_ONCE and "has no " + NOBODY in done.stderr, (count, done.stderr[:200]))

    def a_line(self):
        hub = Hub("silent")
        with tempfile.TemporaryDirectory() as folder:
            env = {"PATH": os.environ["PATH"], "HOME": folder, "HF_HUB_CACHE": os.path.join(folder, "none"), "HF_ENDPOINT": hub.address}
            with subprocess.Popen([self.binary, "plan", "--gpu", "l4", "--", "vllm", "serve", NOBODY], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=folder, env=env) as run:
                line = run.stderr.readline()
                hub.let.set()
                rest = run.stderr.read()
            self.claim("a line says what is waited for", line.startswith("oomsight: waiting for " + hub.address), (line, rest))
            self.claim("once", "waiting" not in rest, rest)


def main():
    test = Test(sys.argv[1])
    test.counts()
    test.a_line()
    print("\n".join(test.broken))
    print("network: %d of %d as they must be" % (test.asked - len(test.broken), test.asked))
    return 1 if test.broken else 0


if __name__ == "__main__":
    sys.exit(main())
