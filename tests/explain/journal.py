#!/usr/bin/env python3
"""examples/fleet/journald/journal.py with a journal of this test's: journal.py BINARY. Whichever of the three is killed, each incident is in the
file, and none under two ids. Standard library only."""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from following import HARMLESS, START, failure, tried

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/fleet/journald/journal.py")
# Answers as journalctl does: what comes after the cursor, then it waits.
JOURNAL = """#!%s
import sys, time
after = [word.split("=", 1)[1] for word in sys.argv if word.startswith("--after-cursor=")]
with open(%r) as f:
    lines = f.read().splitlines()
at = next((n + 1 for n, line in enumerate(lines) if after and '"__CURSOR": "%%s"' %% after[0] in line), 0)
print("\\n".join(lines[at:]), flush=True)
time.sleep(60)
"""


def entries(units, failures):
    rng, texts, number = random.Random(3), {}, 0
    for unit in range(units):
        texts["vllm-%d.service" % unit] = []
        for _ in range(failures):
            number += 1
            texts["vllm-%d.service" % unit] += START + failure(number) + [HARMLESS]
    at = 0
    while any(texts.values()):
        unit = rng.choice([unit for unit, left in texts.items() if left])
        for _ in range(min(len(texts[unit]), rng.randrange(1, 4))):
            at += 1
            yield {"__CURSOR": "s=1;i=%x" % at, "__REALTIME_TIMESTAMP": str(1767323045000000 + at * 1000), "_SYSTEMD_UNIT": unit, "_HOSTNAME": "node",
                   "MESSAGE": texts[unit].pop(0) if at % 5 else list(texts[unit].pop(0).encode())}


def nothing_is_lost(binary):
    with tempfile.TemporaryDirectory() as folder:
        written, journal, out, state = (os.path.join(folder, name) for name in ("journal.ndjson", "journalctl", "incidents", "state"))
        with open(written, "w", encoding="utf-8") as f:
            f.write("not JSON\n" + "".join(json.dumps(entry) + "\n" for entry in entries(6, 8)))
        with open(journal, "w", encoding="utf-8") as f:
            f.write(JOURNAL % (sys.executable, written))
        each = os.path.join(folder, "oomsight")  # all in full: each is known by its size
        with open(each, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\nexec "%s" "$@" --each\n' % binary)
        os.chmod(journal, 0o755)
        os.chmod(each, 0o755)
        ids, wanted = {}, set(range(1, 49))
        for turn in range(30):
            process = subprocess.Popen([sys.executable, SCRIPT, state, out, "-u", "vllm*"], start_new_session=True, stderr=subprocess.DEVNULL,
                                       env=dict(os.environ, OOMSIGHT=each, JOURNALCTL=journal))
            time.sleep((0.2, 0.5, 0.9, 2.5)[turn % 4])
            os.killpg(process.pid, signal.SIGKILL if turn % 2 else signal.SIGTERM)
            process.wait()
            ids = {}
            if not os.path.exists(out):
                continue
            with open(out, encoding="utf-8") as f:
                for line in f:
                    if line.endswith("}\n"):
                        one = json.loads(line)
                        ids.setdefault(tried([one])[0], {})[one["id"]] = one
            if turn > 5 and wanted <= set(ids):
                break
        begun = ids.pop(None, {})  # stopped within a traceback
        assert set(ids) == wanted, wanted - set(ids)
        assert all(len(of) == 1 for of in ids.values()), {number: list(of) for number, of in ids.items()}
        assert set(begun) <= {one for of in ids.values() for one in of}, begun
        assert all(one["source"]["path"].startswith("vllm-") for of in ids.values() for one in of.values())
        assert all(one["at"].startswith("2026-01-02T03:0") for of in ids.values() for one in of.values())


if __name__ == "__main__":
    nothing_is_lost(os.path.abspath(sys.argv[1]))
    print("ok   nothing_is_lost")
