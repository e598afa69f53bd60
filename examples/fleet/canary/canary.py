#!/usr/bin/env python3
"""Is silence health? Writes a failure that everybody knows into a log that is followed, and waits until it arrives at the sink.

    canary.py LOG --file INCIDENTS [--within SECONDS]
    canary.py LOG --within SECONDS --command psql oomsight -tAc "SELECT document FROM oomsight.incident WHERE path LIKE '%/canary.log'"

LOG is appended to, or made in a folder that is there; nothing else is written. Exit 0: it arrived; 1: it did not; 3: it could not be looked for. One
sentence says which. Give it a log of its own, such as /var/log/pods/canary_canary-0_0a1b2c3d-0000-4000-8000-000000000000/canary/0.log, so that alerts
can leave out its namespace; repeats within an hour arrive as a count, once a minute. Standard library only."""
import argparse
import os
import random
import subprocess
import sys
import time

# oomsight: ignore
LINES = """INFO 01-01 00:00:00 [api_server.py:1] vLLM API server version 0.19.1
INFO 01-01 00:00:00 [gpu_model_runner.py:1] Starting to load model canary...
  File "/usr/lib/python3/site-packages/vllm/v1/worker/gpu_worker.py", line 381, in load_model
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 1.00 MiB is free. \
Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.
INFO 01-01 00:00:00 [api_server.py:1] vLLM API server version 0.19.1
"""


def write(path, text):
    """In one piece, at the end of a plain file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def told(given, at):
    """What the sink has: of a file what came since, also when it was moved away meanwhile."""
    if given.command:
        return subprocess.run(given.command, capture_output=True, check=True, timeout=given.within).stdout
    if not os.path.exists(given.file):
        return b""
    with open(given.file, "rb") as file:
        file.seek(at if os.path.getsize(given.file) >= at else 0)
        return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log")
    parser.add_argument("--within", type=float, default=90)
    sink = parser.add_mutually_exclusive_group(required=True)
    sink.add_argument("--file")
    sink.add_argument("--command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    mib = random.SystemRandom().randrange(10000, 60000)  # the request tells it from others
    begin = time.monotonic()
    try:
        at = os.path.getsize(given.file) if given.file and os.path.exists(given.file) else 0
        write(given.log, LINES % mib)
        while time.monotonic() - begin < given.within:
            if b"%d" % (mib << 20) in told(given, at):
                print("the canary arrived after %.1f s" % (time.monotonic() - begin))
                return 0
            time.sleep(min(1, given.within / 10))
    except (OSError, subprocess.SubprocessError) as error:
        print("the canary could not be looked for: %s" % error)
        return 3
    print("the canary was written into %s and did not arrive within %.0f s" % (given.log, given.within))
    return 1


if __name__ == "__main__":
    sys.exit(main())
