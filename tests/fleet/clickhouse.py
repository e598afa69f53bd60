"""ClickHouse's engine in this process (chdb): the schema, lines from files, and the answers as one JSON object on stdout.
usage: clickhouse.py SINCE UNTIL FILE... ; needs chdb, see tools/fleet_venv.sh."""
import json
import os
import re
import sys

from chdb import session

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QUESTIONS = ("top_fingerprints", "first_seen", "gpu_hours_lost", "fixes_by_effect")


def statements(path):
    with open(path) as f:
        text = re.sub(r"^--.*$", "", f.read(), flags=re.M)
    return [s.strip() for s in re.split(r";\s*\n", text) if s.strip()]


def rows(store, query):
    return json.loads(str(store.query(query, "JSON")))["data"]


def main():
    since, until, *files = sys.argv[1:]
    store = session.Session()
    store.query("SET output_format_json_quote_64bit_integers = 0")
    for name in ("schema.sql", "queries.sql"):
        for statement in statements(os.path.join(ROOT, "examples/fleet/clickhouse", name)):
            store.query(statement)
    # The collector's exporter has a table of its own; only the columns that are read of it stand here.
    store.query("CREATE DATABASE otel")
    store.query("CREATE TABLE otel.otel_logs (ServiceName String, Body String, ResourceAttributes Map(String, String)) ENGINE = Null")
    for statement in statements(os.path.join(ROOT, "examples/fleet/clickhouse/from-otel.sql")):
        store.query(statement)
    for path in files:
        store.query("INSERT INTO otel.otel_logs SELECT 'other' AS ServiceName, line AS Body, map('host.name', 'n') AS ResourceAttributes "
                    f"FROM file('{path}', 'LineAsString')")  # nobody's business
        store.query(f"INSERT INTO oomsight.lines (line) SELECT line FROM file('{path}', 'LineAsString')")
    span = f"(since = '{since}', until = '{until}')"
    answers = {name: rows(store, f"SELECT * FROM oomsight.{name}{span}") for name in QUESTIONS}
    answers["incidents"] = rows(store, "SELECT count() AS n FROM oomsight.incident FINAL")[0]["n"]
    answers["models"] = sorted({row["model"] for row in rows(store, "SELECT model FROM oomsight.incident FINAL")})
    answers["rejected"] = rows(store, "SELECT count() AS n FROM oomsight.rejected")[0]["n"]
    store.query(f"INSERT INTO otel.otel_logs SELECT 'oomsight', line, map('host.name', 'a node') FROM file('{files[0]}', 'LineAsString')")
    answers["by_otel"] = rows(store, "SELECT count() AS n FROM oomsight.incident FINAL WHERE node = 'a node'")[0]["n"]
    json.dump(answers, sys.stdout)


main()
