#!/usr/bin/env python3
"""A log of MEGABYTES made of the logs in DIR with serving between them, always the same: big_log.py DIR MEGABYTES"""
import glob
import os
import random
import sys


def serving(dice, lines):
    for _ in range(lines):
        if dice.random() < 0.9:
            yield '(APIServer pid=77) INFO:     10.0.%d.%d:%d - "POST /v1/chat/completions HTTP/1.1" 200 OK\n' % (
                dice.randrange(255), dice.randrange(255), dice.randrange(65535))
        else:
            yield ("(APIServer pid=77) INFO 11-15 00:%02d:%02d [loggers.py:127] Engine 000: Avg prompt throughput: %d.1 tokens/s, "
                   "Avg generation throughput: %d.2 tokens/s, Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: %d.0%%\n") % (
                dice.randrange(60), dice.randrange(60), dice.randrange(9999), dice.randrange(999), dice.randrange(256),
                dice.randrange(99))


def main():
    directory, most = sys.argv[1], int(sys.argv[2]) * 1000000
    dice = random.Random(1)
    logs = [open(path, "rb").read() for path in sorted(glob.glob(os.path.join(directory, "*.log")))]
    between = "".join(serving(dice, 60000)).encode()
    written = 0
    while written < most:
        for piece in (dice.choice(logs), between):
            written += sys.stdout.buffer.write(piece)


if __name__ == "__main__":
    main()
