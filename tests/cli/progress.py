#!/usr/bin/env python3
"""Progress on a terminal and nowhere else: progress.py BINARY. check behind a slow Hub, dryrun of a command that takes its time and matrix
say where they are on a pseudo terminal's stderr, take the line away in the end, and write nothing of it into a pipe. Standard library only."""
import http.server
import os
import pty
import re
import subprocess
import sys
import tempfile
import threading
import time

POINTS = 120000  # some seconds of planning


class Slow(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def do_GET(self):
        time.sleep(0.6)
        self.send_error(404)

    do_HEAD = do_GET


def run(words, env, terminal):
    """What the command wrote to stderr."""
    if not terminal:
        return subprocess.run(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False).stderr
    master, slave = pty.openpty()
    with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=slave) as child:
        os.close(slave)
        seen = b""
        while True:
            try:
                some = os.read(master, 65536)
            except OSError:
                break
            if not some:
                break
            seen += some
        child.wait()
    os.close(master)
    return seen.decode()


def main():
    binary = os.path.abspath(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    wrong = 0
    with tempfile.TemporaryDirectory() as work:
        env = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:%d" % server.server_address[1], "HF_HOME": work, "XDG_CACHE_HOME": work, "LC_ALL": "C"}
        services = os.path.join(work, "serve.sh")
        with open(services, "w", encoding="utf-8") as out:
            out.writelines("vllm serve nobody/model-%d\n" % i for i in range(8))
        cases = {
            r"\r\x1b\[Kplanning command [2-8] of 8, [2-9] s passed: ": ["check", "--gpu", "4090", services],
            r"\r\x1b\[K(\w[\w -]*, )?[2-9] s (passed|of at most \d+)": ["dryrun", "--gpu", "4090", "--cuda", "12", "--", "sh", "-c", "sleep 4"],
        }
        fleet = os.path.join(work, "fleet.yaml")
        with open(fleet, "w", encoding="utf-8") as out:
            out.write("models: [Qwen/Qwen3-8B, Qwen/Qwen3-32B]\ngpus: [4090, h100, l4, a100, t4]\nversions: ['0.10.2', '0.11.0', '0.19.1', '0.32.0']\nflags:\n")
            out.writelines("  - --max-model-len %d\n" % (1024 + 16 * i) for i in range(POINTS // 40))
        cases[r"\r\x1b\[K\d+ of %d points planned, about \d+ s left" % POINTS] = ["matrix", "--offline", fleet]
        for line, words in cases.items():
            for terminal in (True, False):
                seen = run([binary, *words], env, terminal)
                holds = bool(re.search(line, seen)) == terminal and ("\x1b[K" in seen) == terminal
                holds &= not terminal or seen.rfind("\r\x1b[K") >= max(seen.rfind("passed"), seen.rfind(" left"))  # taken away in the end
                wrong += not holds
                if not holds:
                    print("FAIL %s, terminal: %s: %r" % (words[0], terminal, seen[-600:]))
            seen = run([binary, words[0], "--quiet", *words[1:]], env, True) if words[0] == "dryrun" else ""
            wrong += "\x1b[K" in seen
    print("progress: %d wrong" % wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
