#!/usr/bin/env python3
"""A thousand nodes with eight engines each, as far as two cores have them: recorded logs replayed to 200 follower processes, a few at a time, and what
they tell put into ClickHouse's engine. usage: thousand.py BINARY [--processes N] [--at-once N] [--kib N]

Each process is five nodes: 40 logs of pods with a serving log's lines around a recorded failure, or none; one node in ten is in a crash loop of 20 starts.
Prints events and bytes per processor second and per node, and the time to a grouped answer. Fails when a failure is missing from what was told or from the
store. The store needs tools/fleet_venv.sh; without it that part is left out and said. For the nightly run, never the gate."""
import argparse
import concurrent.futures
import glob
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "explain"))
import cost  # noqa: E402
import parts  # noqa: E402

NODES, ENGINES, STARTS = 5, 8, 20
START = "INFO 01-02 03:04:05 [api_server.py:1] vLLM API server version 0.19.1\n"


def fixtures(binary):
    """Recorded failures of which `explain` tells one of memory."""
    found = []
    for path in sorted(glob.glob(os.path.join(HERE, "../fixtures/kb/vllm/*/positive.log"))):
        with open(path, encoding="utf-8", errors="replace") as log:
            text = log.read()
        done = subprocess.run([binary, "explain", "--json", "--offline", path], capture_output=True, check=False)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        if len(answers) == 1 and answers[0]["is_oom"] and len(text) < 20000:
            found.append(text.rstrip("\n") + "\n")
    return found


def make(folder, rng, failures, size):
    """Logs of five nodes; returns their bytes and how many failed, with every start counted."""
    written = failed = 0
    for node in range(NODES):
        loops = rng.randrange(10) == 0
        for engine in range(ENGINES):
            pods = os.path.join(folder, "n%d" % node, "team_chat-%d_0a1b2c3d-0000-4000-8000-%012x" % (engine, rng.getrandbits(40)), "vllm")
            os.makedirs(pods)
            times = STARTS if loops else rng.random() < 0.1
            text = START + "".join(cost.plain(rng, at) + "\n" for at in range(size // 150))
            failure = START + rng.choice(failures)
            text += failure * int(times) + (START if times else "")
            failed += int(times)
            with open(os.path.join(pods, "0.log"), "w", encoding="utf-8") as log:
                log.write(text)
            written += len(text.encode())
    return written, failed


def one(binary, number, failures, size, lock, kept):
    """A process from its first to its last line: (bytes read, failures, incidents, bytes told, lag in seconds)."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        read, failed = make(folder, random.Random(number), failures, size)
        begin = time.monotonic()
        done = subprocess.run([binary, "explain", "--follow", "--json", "--offline", "--idle", "2", "--state", os.path.join(folder, "state"), folder], capture_output=True, check=False)
        took = time.monotonic() - begin
    lines = done.stdout.splitlines()
    told = sum(json.loads(line)["count"] for line in lines)
    with lock:
        for line in lines:
            node = json.loads(line)["source"]["path"].split("/n", 1)[1][:1]
            kept.write(json.dumps({"node": "n%03d%s" % (number, node), "line": line.decode()}).encode() + b"\n")
    return read, failed, told, len(lines), len(done.stdout), took


STORE = r"""
import json, re, sys, time
from chdb import session
fleet, path = sys.argv[1:]
store = session.Session()
for name in ("schema.sql", "queries.sql"):
    text = re.sub(r"^--.*$", "", open(fleet + "/clickhouse/" + name).read(), flags=re.M)
    for statement in re.split(r";\s*\n", text):
        if statement.strip(): store.query(statement)
begin = time.monotonic()
store.query(f"INSERT INTO oomsight.lines (node, line) SELECT node, line FROM file('{path}', 'JSONEachRow')")
result = {"insert_s": time.monotonic() - begin}
begin = time.monotonic()
rows = json.loads(str(store.query("SELECT * FROM oomsight.top_fingerprints(since = '2000-01-01', until = '2100-01-01')", "JSON")))["data"]
result.update(answer_s=time.monotonic() - begin, groups=len(rows), incidents=sum(int(row["incidents"]) for row in rows),
    rows=int(json.loads(str(store.query("SELECT count() AS n FROM oomsight.incident FINAL", "JSON")))["data"][0]["n"]),
    bytes=int(json.loads(str(store.query("SELECT sum(bytes_on_disk) AS n FROM system.parts WHERE active AND database = 'oomsight'", "JSON")))["data"][0]["n"]))
print(json.dumps(result))
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    for name, value in (("--processes", 200), ("--at-once", 4), ("--kib", 100)):
        parser.add_argument(name, type=int, default=value)
    given = parser.parse_args()
    binary, lock = os.path.abspath(given.binary), threading.Lock()
    failures = fixtures(binary)
    assert len(failures) >= 10, len(failures)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.NamedTemporaryFile(suffix=".ndjson") as kept:
        with concurrent.futures.ThreadPoolExecutor(given.at_once) as pool:
            found = list(pool.map(lambda number: one(binary, number, failures, given.kib << 10, lock, kept), range(given.processes)))
        kept.flush()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        read, failed, told, lines, size = (sum(row[at] for row in found) for at in range(5))
        seconds, nodes = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, given.processes * NODES
        print("%d processes, %d nodes, %d logs, %.0f MB: %d failures, %d told in %d lines of %.1f MB" % (given.processes, nodes, nodes * ENGINES, read / 1e6, failed, told, lines, size / 1e6))
        print("%.1f s of processor time: %.1f s/GB, %.0f failures per second, %.1f MB the largest process" % (seconds, seconds * 1e9 / read, failed / seconds, after.ru_maxrss / 1024))
        assert told == failed, (told, failed)
        python = parts.venv_python()
        if not python:
            print("no environment of tools/fleet_venv.sh: no store")
            return
        done = subprocess.run([python, "-c", STORE, parts.FLEET, kept.name], capture_output=True, text=True, check=True)
        store = json.loads(done.stdout)
        print("store: %(rows)d rows in %(insert_s).2f s, %(bytes)d bytes on disk; a grouped answer in %(answer_s).3f s: %(groups)d groups of %(incidents)d" % store)
        assert store["rows"] == lines and store["incidents"] == failed, store


if __name__ == "__main__":
    main()
