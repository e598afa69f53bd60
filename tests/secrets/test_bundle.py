#!/usr/bin/env python3
"""The log in a bundle of `oomsight run`: a private key that begins in the part that is not kept is hidden all the same, and a line
that is hard to search loses no bundle. usage: test_bundle.py BINARY"""
import glob
import os
import random
import string
import subprocess
import sys
import tempfile
import time

OUT_OF_MEMORY = "print('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.', flush=True)"
# Of 700,000 bytes the first 128 KiB and the last 512 KiB are kept. The key begins 21 lines before the second part.
KEY = """
import random, string, sys
draw = random.Random(5)
line = lambda: ''.join(draw.choice(string.ascii_letters + string.digits) for _ in range(64))
filler = 'INFO 11-16 12:00:00 a line like any other\\n'
tail = filler * ((524288 - 20 * 65) // len(filler))
print(filler * 6000)
print('-----BEGIN PRIVATE KEY-----\\n' + '\\n'.join(line() for _ in range(40)) + '\\n-----END PRIVATE KEY-----')
print(tail, end='')
"""
NOISY = "print('sk-' * 400000)\n"


def bundle(binary, program):
    """(text of log.txt, seconds)"""
    with tempfile.TemporaryDirectory(prefix="oomsight-bundle-") as folder:
        start = time.monotonic()
        done = subprocess.run([binary, "run", "--", sys.executable, "-c", program + OUT_OF_MEMORY], env=dict(os.environ, OOMSIGHT_BUNDLE_DIR=folder), capture_output=True, timeout=200)
        took, logs = time.monotonic() - start, glob.glob(folder + "/*/log.txt")
        if len(logs) != 1 or not os.path.exists(os.path.dirname(logs[0]) + "/bundle.json"):
            raise SystemExit("no whole bundle: %r" % done.stderr[-400:])
        with open(logs[0], encoding="utf-8") as file:
            return file.read(), took


def main():
    if os.environ.get("SANITIZED", "none") != "none":
        print("a sanitized library cannot be preloaded")
        return 77
    binary, bad = os.path.abspath(sys.argv[1]), []
    draw = random.Random(5)
    lines = ["".join(draw.choice(string.ascii_letters + string.digits) for _ in range(64)) for _ in range(40)]
    text, _ = bundle(binary, KEY)
    left = sum(line[:32] in text for line in lines)
    if left or "[...]" not in text or "PRIVATE KEY-----\n" not in text or "a line like any other" not in text:
        bad.append("%d of 40 lines of a key are in the log" % left)
    text, took = bundle(binary, NOISY)
    if took > 30 or "OutOfMemoryError" not in text:
        bad.append("a line of sk-sk-... took %.0f s" % took)
    print("\n".join(bad) or "the logs of two bundles hold no key; %.1f s" % took)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
