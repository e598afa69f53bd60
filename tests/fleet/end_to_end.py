#!/usr/bin/env python3
"""Logs of engines through the real parts: rsyslog -> oomsight -> rsyslog -> PostgreSQL, Prometheus scraping oomsight and firing the
alert, ClickHouse's engine answering the same. On the way the agent is killed, the database is away, lines come twice, and log text
attacks. usage: end_to_end.py BINARY ; exit 77 when a program is missing."""
import glob
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time

import parts
import sinks

ENGINES = 40
BUDGET = b"DEBUG [gpu_worker.py:1] Initial free memory: 78.4 GiB; Requested memory: 0.9 (util), 71.26 GiB"
VERSIONS = ["0.11.0", "0.19.1", "0.20.2"]
ATTACK = (b"INFO '); DROP TABLE oomsight.incident; -- \" \\ $$ $(touch ATTACKED) `touch ATTACKED` %s%n {{.}} ${x} <script> "
          b"\x00 \xff\xfe \xed\xa0\x80 \xf0\x9f\x92\xa5 \x1b[31m two\nlines\r end")
OOM = (b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 232.00 MiB. GPU 0 has a total capacity of 23.57 GiB of which 154.25 MiB "
       b"is free. Of the allocated memory 22.88 GiB is allocated by PyTorch, and 188.29 MiB is reserved by PyTorch but unallocated. ")


TORN = '{"schema": "oomsight.incident/1", "is_oo'  # what an agent leaves that is killed while the disk is full


class Agent:
    """oomsight as a service: started again after it is killed."""

    def __init__(self, stage, binary, folder):
        self.stage, self.port = stage, parts.free_port()
        stage.make_folder("state")
        self.command = [binary, "explain", "--follow", "--each", "--state", stage.path("state"), "--metrics-file", os.path.join(stage.make_folder("metrics"), "oomsight.prom"), "--output",
                        stage.path("incidents.ndjson"), folder]
        self.start()

        # In place of node_exporter's textfile collector.
        stage.start("metrics", [sys.executable, "-m", "http.server", str(self.port), "--bind", "127.0.0.1", "--directory", stage.path("metrics")])

    def start(self):
        self.process = self.stage.start("oomsight", self.command)

    def kill(self):
        self.process.kill()  # setpriv has become oomsight, so this is kill -9 of the agent itself
        self.process.wait()
        self.start()


def engine_logs():
    """(host, program) -> lines of one engine: a version, a failure from the knowledge base, in some an attack around it."""
    texts = []
    for path in sorted(glob.glob(os.path.join(parts.ROOT, "tests/fixtures/kb/**/positive.log"), recursive=True)):
        with open(path, "rb") as f:
            texts.append(f.read().splitlines())
    rng = random.Random(8)
    logs = {}
    for number in range(ENGINES):
        lines = [b"INFO [api_server.py:1] vLLM API server version %s" % rng.choice(VERSIONS).encode()]
        lines += [BUDGET] * (number % 5 == 1) + texts[number * len(texts) // ENGINES]
        if number % 5 == 0:
            lines = [lines[0], ATTACK, b'  File "/usr/lib/vllm/v1/worker/gpu_worker.py", line 381, in load_model', OOM + ATTACK]
        logs[f"node-{number % 4}", f"vllm-{number}"] = lines
    return logs


def expected(binary, logs):
    """What `oomsight explain` tells of each log by itself: fingerprints per engine."""
    found = {}
    for key, lines in logs.items():
        text = b"\n".join(line.replace(b"\n", b" ").replace(b"\x00", b"#000") for line in lines) + b"\n"
        answer = subprocess.run([binary, "explain", "--json", "-"], input=text, capture_output=True).stdout
        found[key] = [i["fingerprint"] for i in map(json.loads, answer.splitlines()) if i["is_oom"]]
    return found


def send(port, logs, keys):
    """RFC 5424 over one connection, the engines' lines mixed as they come."""
    queues = {key: list(logs[key]) for key in keys}
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while queues:
            for host, name in list(queues):
                line = queues[host, name].pop(0)
                stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()).encode()
                message = b"<14>1 %s %s %s 1 - - %s" % (stamp, host.encode(), name.encode(), line)
                connection.sendall(b"%d %s" % (len(message), message))
                if not queues[host, name]:
                    del queues[host, name]


def rsyslog_config(stage, postgres, port):
    text = ""
    for name in ("oomsight.conf", "engines-to-files.conf", "incidents-to-postgresql.conf"):
        with open(os.path.join(parts.FLEET, "rsyslog", name)) as f:
            text += f.read()
    for old, new in (("/var/spool/rsyslog", stage.make_folder("spool")), ("/var/log/oomsight/engines", stage.make_folder("engines")),
                     ("/var/lib/oomsight/incidents.ndjson", stage.path("incidents.ndjson")), ('port="10514"', f'port="{port}"'),
                     ("postgresql://pipeline@db.example.org/oomsight", postgres.uri("pipeline")),
                     ("/usr/share/oomsight/load.py", shutil.copy(os.path.join(parts.FLEET, "postgresql", "load.py"), stage.folder)), ('resumeInterval="5"', 'resumeInterval="1"')):
        assert old in text, old
        text = text.replace(old, new)
    return stage.write("rsyslog.conf", text)


def prometheus_config(stage, agent_port):
    with open(os.path.join(parts.FLEET, "prometheus", "prometheus.yml")) as f:
        text = f.read().replace("15s", "1s").replace("127.0.0.1:9100", f"127.0.0.1:{agent_port}")
        text = text.replace("  - job_name: node\n", "  - job_name: node\n    metrics_path: /oomsight.prom\n")
    with open(os.path.join(parts.FLEET, "prometheus", "alerts.yml")) as f:
        stage.write("alerts.yml", f.read())
    return stage.write("prometheus.yml", text)


def check_dashboard(postgres, prometheus):
    """Every query of the dashboard, with Grafana's words replaced as Grafana does, is answered; all but health counters with rows."""
    with open(os.path.join(parts.FLEET, "grafana", "oomsight.json")) as f:
        board = json.load(f)
    since, until = "now() - interval '1 day'", "now() + interval '1 day'"
    count = 0
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            if "expr" in target:
                query = target["expr"].replace("$namespace", ".*").replace("$__rate_interval", "30s")
                rows = prometheus.query(query)
            else:
                query = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN {since} AND {until}", target["rawSql"])
                query = query.replace("$__timeFrom()", since).replace("$__timeTo()", until).replace("$__interval", "1 hour")
                rows = postgres.rows(query, user="people")
            assert "$" not in query.replace("'$'", ""), query
            assert rows, (panel["title"], query)
            count += 1
    return count


def main():
    parts.skip_without("initdb", "postgres", "psql", "rsyslogd", "prometheus", "setpriv")
    started = time.monotonic()
    with parts.Stage() as stage:
        binary = stage.own_binary(sys.argv[1])
        postgres = parts.Postgres(stage)
        postgres.files(*(os.path.join(parts.FLEET, "postgresql", name) for name in ("schema.sql", "queries.sql")))
        postgres.files(stage.write("roles.sql", "CREATE ROLE pipeline LOGIN; GRANT oomsight_writer TO pipeline;"
                                                "CREATE ROLE people LOGIN; GRANT oomsight_reader TO people;"))
        stage.write("incidents.ndjson", TORN)
        port = parts.free_port()
        config = rsyslog_config(stage, postgres, port)
        stage.run([parts.program("rsyslogd"), "-N1", "-f", config])
        rsyslogd = [parts.program("rsyslogd"), "-n", "-f", config, "-i", stage.path("rsyslogd.pid")]
        rsyslog = stage.start("rsyslogd", rsyslogd)
        agent = Agent(stage, binary, stage.path("engines"))
        prometheus = parts.Prometheus(stage, prometheus_config(stage, agent.port))

        logs = engine_logs()
        wanted = expected(binary, logs)
        total = sum(map(len, wanted.values()))
        keys = list(logs)
        parts.wait_for("rsyslog", lambda: not socket.socket().connect_ex(("127.0.0.1", port)))

        def stored():
            return postgres.value("SELECT count(*) FROM oomsight.incident WHERE is_oom")

        def reported():
            with open(stage.path("incidents.ndjson"), "rb") as f:
                return len({json.loads(line)["id"] for line in f if line.endswith(b"}\n") and b'"is_oom": true' in line})

        send(port, {("..", "../../escaped"): [b"INFO a name that climbs"]}, [("..", "../../escaped")])
        first, second = keys[: ENGINES // 2], keys[ENGINES // 2:]
        send(port, logs, first)
        parts.wait_for("the first half", lambda: stored() >= sum(len(wanted[key]) for key in first))
        print(f"ok {stored()} incidents of {len(first)} engines came from syslog to PostgreSQL")
        parts.wait_for("the alert", lambda: "OomsightOutOfMemory" in prometheus.firing())
        print("ok Prometheus scrapes oomsight and the alert fires: " + ", ".join(sorted(prometheus.firing())))

        postgres.stop()  # the database is away while the agent is killed over and over
        send(port, logs, second)
        for _ in range(5):
            time.sleep(0.3)
            agent.kill()
        parts.wait_for("the second half", lambda: reported() >= total)
        with open(stage.path("incidents.ndjson"), "rb") as f:
            repeats = b"".join(line for n, line in enumerate(f) if n % 3 == 0 and line.endswith(b"}\n"))
        with open(stage.path("incidents.ndjson"), "ab") as f:  # as from a sender that was cut off before it knew
            f.write(repeats)
        parts.stop(rsyslog)
        rsyslog = stage.start("rsyslogd", rsyslogd)
        postgres.start()
        parts.wait_for("all", lambda: stored() >= total)
        time.sleep(2)
        with open(stage.path("incidents.ndjson"), "rb") as f:
            lines = f.read().splitlines()
        rows = postgres.rows("SELECT namespace, pod, fingerprint FROM oomsight.incident WHERE is_oom")
        got = {key: sorted(row["fingerprint"] for row in rows if (row["namespace"], row["pod"]) == key) for key in logs}
        assert got == {key: sorted(prints) for key, prints in wanted.items()}, [(k, got[k], wanted[k]) for k in logs if got[k] != sorted(wanted[k])]
        assert stored() == total, (stored(), total)
        print(f"ok each of {total} incidents is there once, told in {len(lines)} lines over five kills of the agent, "
              "a restart of rsyslog and an absence of the database")

        rejected = {row["line"] for row in postgres.rows("SELECT line FROM oomsight.rejected")}
        assert rejected == {TORN}, rejected
        texts = [row["document"]["evidence"][-1]["text"] for row in
                 postgres.rows("SELECT document FROM oomsight.incident WHERE document::text LIKE '%DROP TABLE%'")]
        assert texts and all("'); DROP TABLE oomsight.incident; -- \" \\ $$ $(touch ATTACKED)" in text for text in texts), texts
        assert not os.path.exists(stage.path("ATTACKED"))
        assert glob.glob(stage.path("engines", "*escaped*")) and not glob.glob(stage.path("*escaped*")), os.listdir(stage.path("engines"))
        print(f"ok the text of {len(texts)} attacks arrived as text and did nothing")

        span = [time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + offset)) for offset in (-86400, 86400)]
        compared = sinks.check_equal(postgres, [stage.path("incidents.ndjson")], *span)
        print(f"ok PostgreSQL and ClickHouse agree on {compared} rows" if compared else "no chdb: ClickHouse's queries were not run")
        print(f"ok all {check_dashboard(postgres, prometheus)} queries of the dashboard are answered")
        print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
