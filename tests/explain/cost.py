#!/usr/bin/env python3
"""Processor seconds per GB that `explain --follow` and `--stream` take, beside `grep -c` with six words on the same bytes. cost.py BINARY [MB]

Two serving logs are made: one with an engine's own lines, and one in which half of the bytes are logged requests. Each is read from a file in memory; the
best of three counts. Fails when a reader takes more than MOST times what `grep` takes. Standard library only."""
import json
import os
import random
import resource
import subprocess
import sys
import tempfile

BINARY = os.path.abspath(sys.argv[1])
BYTES = int(float(sys.argv[2]) * 1e6) if sys.argv[2:] and __name__ == "__main__" else 40 * 1000 * 1000
GREP = [word for name in ("OutOfMemory", "out of memory", "Traceback", "RuntimeError", "Killed", "CUDA error") for word in ("-e", name)]
MOST = {"follow": 3.5, "stream": 6.0}  # times `grep -c` of six words, on the log that costs most
WORDS = "the of a model memory request tensor block attention please explain how it works and why this answer is long summary city river".split()


def plain(rng, second):
    clock = "INFO 01-02 %02d:%02d:%02d" % (second // 3600 % 24, second // 60 % 60, second % 60)
    kind = rng.randrange(10)
    if kind < 5:
        return '(APIServer pid=1) INFO:     10.0.%d.%d:%d - "POST /v1/chat/completions HTTP/1.1" 200 OK' % (rng.randrange(9), rng.randrange(250), rng.randrange(65536))
    if kind < 7:
        return '(APIServer pid=1) INFO:     10.0.0.%d:%d - "GET /health HTTP/1.1" 200 OK' % (rng.randrange(250), rng.randrange(65536))
    return ("(APIServer pid=1) %s [loggers.py:127] Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, Running: %d reqs, Waiting: %d reqs, "
            "GPU KV cache usage: %.1f%%, Prefix cache hit rate: %.1f%%" % (clock, rng.random() * 9000, rng.random() * 4000, rng.randrange(99), rng.randrange(9), rng.random() * 99, rng.random() * 99))


def requested(rng, second):
    if rng.randrange(6):
        return plain(rng, second)
    prompt = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(20, 200)))
    return ("(APIServer pid=1) INFO 01-02 03:04:%02d [logger.py:43] Received request chatcmpl-%032x: prompt: '<|im_start|>user\\n%s<|im_end|>\\n', params: SamplingParams(n=1, presence_penalty=0.0, "
            "temperature=0.7, top_p=0.8, max_tokens=%d), prompt_token_ids: None, lora_request: None." % (second % 60, rng.getrandbits(128), prompt, rng.randrange(4096)))


def make(line_of, path):
    rng, at, size = random.Random(7), 0, 0
    with open(path + ".log", "w", encoding="utf-8") as log, open(path + ".ndjson", "w", encoding="utf-8") as records:
        while size < BYTES:
            line = line_of(rng, at // 20)
            log.write(line + "\n")
            records.write(json.dumps({"stream": "s%d" % (at % 8), "line": line, "cursor": "%d" % at}) + "\n")
            at, size = at + 1, size + len(line) + 1


def seconds(*command, stdin=None):
    best = 1e9
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(stdin or os.devnull, "rb") as given:
            subprocess.run(command, stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def main():
    place, bad = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None, 0
    with tempfile.TemporaryDirectory(dir=place) as folder:
        for name, line_of in (("plain", plain), ("requests", requested)):
            path = os.path.join(folder, name)
            make(line_of, path)
            start = seconds(BINARY, "explain", "--stream")
            took = {"grep1": seconds("grep", "-c", "OutOfMemory", path + ".log"), "grep6": seconds("grep", "-c", "-F", *GREP, path + ".log"),
                    "follow": seconds(BINARY, "explain", "--follow", "--idle", "0", path + ".log") - start,
                    "stream": seconds(BINARY, "explain", "--stream", stdin=path + ".ndjson") - start,
                    "grep6 of the JSON": seconds("grep", "-c", "-F", *GREP, path + ".ndjson")}
            per_gb = 1e9 / os.path.getsize(path + ".log")
            print("%-9s %s" % (name, ", ".join("%s %.1f" % (what, value * per_gb) for what, value in took.items())), "s/GB")
            for what, most in MOST.items():
                if took[what] > most * took["grep6"]:
                    bad += 1
                    print("FAIL %s: %s takes %.1f times what grep takes, more than %.0f" % (name, what, took[what] / took["grep6"], most))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
