#!/usr/bin/env python3
"""What stands next to the KV pool of SGLang 0.5.23: the table of requests, and what the default attention backend keeps. sglang_buffers.py BINARY

sglang_buffers.tsv has the batch buffers (MiB) that dry runs of these commands measured while the KV cache was allocated. What is planned is at most SHORT
MiB less and never more. Standard library only."""
import csv
import json
import os
import subprocess
import sys

SHORT = 104  # trtllm_mha on a B200: a part of its buffers was not found in its sources
HERE = os.path.dirname(os.path.abspath(__file__))


def planned(binary, gpu, words):
    run = subprocess.run([binary, "plan", "--json", "--offline", "--gpu", gpu, "--engine", "sglang=0.5.23", "--", "sglang", "serve"] + words,
                         capture_output=True, text=True, check=False)
    moment = next(phase for phase in json.loads(run.stdout)["phases"] if phase["phase"] == "kv_alloc")
    return sum(hold["bytes"] for hold in moment["holds"] if hold["owner"] == "batch buffers") / (1 << 20)


def main():
    wrong = 0
    with open(os.path.join(HERE, "sglang_buffers.tsv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len({row["gpu"] for row in rows}) >= 5, rows
    for row in rows:
        have = planned(os.path.abspath(sys.argv[1]), row["gpu"], row["command"].split())
        good = 0 <= float(row["mib"]) - have <= SHORT
        wrong += not good
        print("%s %s %s: %.0f MiB planned, %s measured" % ("ok  " if good else "FAIL", row["gpu"], row["command"], have, row["mib"]))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
