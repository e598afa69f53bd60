#!/usr/bin/env python3
"""How fast the sinks take incidents, how many bytes they keep of each, how long the queries take, what a series costs Prometheus,
what following a thousand files costs.
usage: rates.py BINARY [--count N] [LOG...]   (logs of real engines give real sizes; without them the knowledge base's are used)
PostgreSQL runs durable, as delivered. Prints JSON; docs/evidence/scale.md and tools/scale.py hold what it printed."""
import argparse
import http.server
import json
import os
import subprocess
import sys
import threading
import time

import incidents
import parts

QUESTIONS = ("top_fingerprints", "first_seen", "gpu_hours_lost", "fixes_by_effect")


def base_of(binary, logs):
    if not logs:
        return incidents.bases(binary)
    answers = [subprocess.run([binary, "explain", "--json", log], capture_output=True).stdout for log in logs]
    found = [json.loads(line) for answer in answers for line in answer.splitlines()]
    return [i for i in found if i["is_oom"]]


def timed(action):
    start = time.monotonic()
    action()
    return time.monotonic() - start


def postgres_rates(data, count):
    with parts.Stage() as stage:
        database = parts.Postgres(stage, durable=True)
        database.files(*(os.path.join(parts.FLEET, "postgresql", name) for name in ("schema.sql", "queries.sql")))
        database.files(stage.write("roles.sql", "CREATE ROLE pipeline LOGIN; GRANT oomsight_writer TO pipeline;"))
        loader = [sys.executable, os.path.join(parts.FLEET, "postgresql", "load.py")]
        result = {"pg_batch_per_s": count / timed(lambda: subprocess.run([*loader, database.uri("pipeline")], input=data, check=True))}
        result["pg_repeat_per_s"] = count / timed(lambda: subprocess.run([*loader, database.uri("pipeline")], input=data, check=True))
        subprocess.run(database.psql("-c", "VACUUM ANALYZE oomsight.incident"), check=True)
        result["pg_bytes_per_row"] = database.value("SELECT pg_total_relation_size('oomsight.incident')") / count
        few = b"".join(b"n " + line + b"\n" for line in data.splitlines()[:2000])
        result["pg_confirmed_per_s"] = 2000 / timed(
            lambda: subprocess.run([*loader, "--omprog", database.uri("pipeline")], input=few, stdout=subprocess.DEVNULL, check=True))
        for name in QUESTIONS:
            query = f"SELECT count(*) FROM oomsight.{name}('2026-11-01', '2026-12-01')"
            result[f"pg_{name}_s"] = timed(lambda: database.rows(query))
        return result


CLICKHOUSE = r"""
import json, os, sys, time
from chdb import session
sys.argv = ["clickhouse.py"]
root, path, count = %r, %r, %d
import re
def statements(name):
    text = re.sub(r"^--.*$", "", open(os.path.join(root, "examples/fleet/clickhouse", name)).read(), flags=re.M)
    return [s.strip() for s in re.split(r";\s*\n", text) if s.strip()]
store = session.Session(%r)
for name in ("schema.sql", "queries.sql"):
    for statement in statements(name): store.query(statement)
start = time.monotonic()
store.query(f"INSERT INTO oomsight.lines (line) SELECT line FROM file('{path}', 'LineAsString')")
result = {"ch_insert_per_s": count / (time.monotonic() - start)}
store.query("OPTIMIZE TABLE oomsight.incident FINAL")
size = store.query("SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'oomsight' AND table = 'incident'")
result["ch_bytes_per_row"] = int(str(size)) / count
for name in ("top_fingerprints", "first_seen", "gpu_hours_lost", "fixes_by_effect"):
    start = time.monotonic()
    store.query(f"SELECT count() FROM (SELECT * FROM oomsight.{name}(since = '2026-11-01', until = '2026-12-01'))")
    result[f"ch_{name}_s"] = time.monotonic() - start
print(json.dumps(result))
"""


def clickhouse_rates(data, count):
    python = parts.venv_python()
    if not python:
        return {}
    with parts.Stage() as stage:
        code = CLICKHOUSE % (parts.ROOT, stage.write("all.ndjson", data, "wb"), count, stage.path("chdb"))
        return json.loads(subprocess.run([python, "-c", code], check=True, capture_output=True).stdout.splitlines()[-1])


def prometheus_rates(engines):
    """Resident bytes per series of a Prometheus that scrapes so many engines' ledgers for half a minute."""
    owners = ("weights", "kv_cache", "cuda_graphs", "headroom")
    body = "".join(f'oomsight_engine_bytes{{namespace="team-{n % 50}",pod="vllm-{n}-5d8f7c9b-x2k4j",container="engine",owner="{owner}"}} {n}\n'
                   for n in range(engines) for owner in owners).encode()

    class Exporter(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with parts.Stage() as stage:
        config = stage.write("prometheus.yml", "global: {scrape_interval: 5s, scrape_timeout: 5s}\nscrape_configs:\n  - job_name: oomsight\n    static_configs:\n"
                             f"      - targets: ['127.0.0.1:{server.server_address[1]}']\n")
        prometheus = parts.Prometheus(stage, config)
        empty = resident(prometheus.process.pid)
        time.sleep(30)
        series = int(prometheus.query("prometheus_tsdb_head_series or vector(0)")[0]["value"][1]) or \
            int(prometheus.query("count(oomsight_engine_bytes)")[0]["value"][1])
        return {"prom_series": series, "prom_bytes_per_series": (resident(prometheus.process.pid) - empty) / series}


def agent_costs(binary, files=1000):
    """What following costs: CPU per second at rest, and at 2 and 16 MB/s spread over all the files, once a second each."""
    line = b'2026-11-15T00:00:00.000000001Z stderr F (APIServer pid=77) INFO:     10.0.1.2:3456 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    with parts.Stage() as stage:
        logs = []
        for n in range(files):
            stage.make_folder("pods", f"team-{n % 20}_vllm-{n}_0000-{n:04x}")
            stage.make_folder("pods", f"team-{n % 20}_vllm-{n}_0000-{n:04x}", "engine")
            logs.append(open(stage.path("pods", f"team-{n % 20}_vllm-{n}_0000-{n:04x}", "engine", "0.log"), "ab", 0))
            logs[-1].write(line)
        stage.make_folder("state")
        agent = stage.start("oomsight", [stage.own_binary(binary), "explain", "--follow", "--state", stage.path("state"), stage.path("pods")])

        def spent():
            with open(f"/proc/{agent.pid}/stat") as f:
                words = f.read().rsplit(")", 1)[1].split()
            return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

        def cost(lines, seconds=10):
            written, before, start = 0, spent(), time.monotonic()
            while time.monotonic() - start < seconds:
                turn = time.monotonic()
                for log in logs if lines else []:
                    written += log.write(line * lines)
                time.sleep(max(0.0, 1 - (time.monotonic() - turn)))
            return (spent() - before) / (time.monotonic() - start), written / (time.monotonic() - start)

        time.sleep(3)
        result = {"agent_files": files, "agent_idle_cpu": cost(0)[0]}
        result["agent_slow_cpu"], result["agent_slow_bytes_per_s"] = cost(16)
        result["agent_fast_cpu"], result["agent_fast_bytes_per_s"] = cost(128)
        result["agent_rss_bytes"] = resident(agent.pid)
        return result


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--engines", type=int, default=50000)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--only", default="pg,ch,prom,agent")
    parser.add_argument("logs", nargs="*")
    options = parser.parse_intermixed_args()
    parts.skip_without("initdb", "postgres", "psql", "prometheus", "setpriv")
    data = incidents.lines(incidents.fleet(base_of(options.binary, options.logs), options.count))
    result = {"incidents": options.count, "line_bytes": len(data) / options.count}
    if "pg" in options.only:
        result.update(postgres_rates(data, options.count))
    if "ch" in options.only:
        result.update(clickhouse_rates(data, options.count))
    if "prom" in options.only:
        result.update(prometheus_rates(options.engines))
    if "agent" in options.only:
        result.update(agent_costs(options.binary, options.files))
    print(json.dumps({key: float("%.4g" % value) for key, value in result.items()}, indent=1))


if __name__ == "__main__":
    main()
