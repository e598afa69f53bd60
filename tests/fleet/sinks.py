#!/usr/bin/env python3
"""PostgreSQL and ClickHouse get the same lines, some twice, some hostile, and answer alike. usage: sinks.py BINARY [COUNT]
Exit 77 without PostgreSQL; without chdb the comparison is left out and said."""
import json
import os
import subprocess
import sys

import incidents
import parts

SINCE, UNTIL = "2026-11-02 00:00:00", "2026-11-14 00:00:00"
QUESTIONS = ("top_fingerprints", "first_seen", "gpu_hours_lost", "fixes_by_effect")
SQL = "'); DROP TABLE oomsight.incident; -- \" \\' \\\\ $$ $(touch x) `id` %s %n {{.}} ${x} <script>\u2028\t\r\n\x1b[31m\x7f\u0000\\u0000 \U0001f4a5"


def hostile(base):
    """Incidents whose every free text is an attack, and lines that are none."""
    good = []
    for n, incident in enumerate(incidents.fleet(base, 20, seed=99)):
        incident["model"] = incident["engine"]["version"] = SQL
        incident["evidence"] = [{"line": 1, "text": SQL, "signal": "x", "decides": True}]
        incident["fixes"] = [{"change": [SQL, "--x=" + SQL]}]
        incident["source"] = dict(incident["source"], namespace=SQL, pod=SQL, container=SQL, path=SQL)
        good.append(incident)
    bad = [b"", b"null", b"{}", b"[1]", b"{\"schema\": \"oomsight.incident/1\"}", b"'); DROP TABLE oomsight.incident; --", b"\\.", b"\"",
           json.dumps(good[0]).encode()[:-20], json.dumps(dict(good[0], id="../../etc/passwd")).encode(),
           json.dumps(dict(good[0], schema="oomsight.incident/2")).encode(), b"[" * 100000]
    return good, bad


# What incidents.few() comes to, counted by hand: fingerprint 1 held 4 GPUs for an hour and 2 for half an hour before it served.
ANSWERS = {
    "top_fingerprints": ("fingerprint, incidents, engines, versions, gpu_hours_lost",
                         [["%016x" % 1, 3, 2, 2, 5], ["%016x" % 3, 3, 1, 1, 0], ["%016x" % 2, 1, 1, 1, 0]]),
    "first_seen": ("fingerprint, version, previous_version, incidents", [["%016x" % 2, "0.20.2", "0.19.1", 1], ["%016x" % 1, "0.19.1", "", 3]]),
    "gpu_hours_lost": ("cause, incidents, timed, gpu_hours_lost, gpu_hours_before_runtime_failures",
                       [["tp_needed", 3, 3, 5, 10], ["sampler_logits", 3, 0, 0, 0], ["kv_max_len", 1, 0, 0, 0]]),
    "fixes_by_effect": ("lever, incidents, best, computed, \"only\", gpu_hours_lost, usual_change",
                        [["--max-num-seqs", 3, 3, 0, 2, 5, "--max-num-seqs 16"],
                         ["--tensor-parallel-size", 2, 1, 2, 1, 4, "--tensor-parallel-size=2"]])}


def check_by_hand(postgres):
    postgres.load(incidents.lines(incidents.few()))
    for name, (columns, expected) in ANSWERS.items():
        rows = postgres.rows(f"SELECT {columns} FROM oomsight.{name}('2026-11-01Z', '2026-12-01Z')")
        assert [list(row.values()) for row in rows] == expected, (name, rows)
    subprocess.run(postgres.psql("-c", "TRUNCATE oomsight.incident"), check=True)
    print("ok five incidents give the answers counted by hand")


def a_file_without_a_pod_is_an_engine_of_its_own(postgres, stage):
    """Three files of a node, and two restarts of a pod: four engines, to every query that counts them and in both stores."""
    first = incidents.few()[0]
    places = [("", "", path) for path in ("/var/log/a.log", "/var/log/b.log", "/var/log/c.log", "/var/log/a.log")] + [("p", "c", "/pods/0.log"), ("p", "c", "/pods/1.log")]
    data = incidents.lines(dict(first, id="%016x" % (900 + n), source=dict(first["source"], pod=pod, container=container, path=path)) for n, (pod, container, path) in enumerate(places))
    postgres.load(data)
    asking = [name for name in QUESTIONS if " engines" in postgres.rows(f"SELECT pg_get_function_result('oomsight.{name}'::regproc) AS is")[0]["is"]]
    assert len(asking) == 2, asking
    for name in asking:
        rows = postgres.rows(f"SELECT * FROM oomsight.{name}('2026-10-01Z', '2026-12-01Z')")
        assert rows and all(row["engines"] == 4 for row in rows), (name, rows)
    compared = check_equal(postgres, [stage.write("plain.ndjson", data, "wb")], "2026-10-01 00:00:00", "2026-12-01 00:00:00")
    subprocess.run(postgres.psql("-c", "TRUNCATE oomsight.incident"), check=True)
    print("ok a file without a pod is an engine of its own" + ("" if compared else "; no chdb: in PostgreSQL"))


def comparable(rows):
    """Times without the writing of their zone, floats to nine digits, whole numbers as numbers."""
    def one(value):
        if isinstance(value, str) and len(value) >= 19 and value[4] == value[7] == "-" and value[13] == value[16] == ":":
            stamp = value.replace("T", " ").removesuffix("+00:00").removesuffix("Z")
            return stamp.rstrip("0").rstrip(".") if "." in stamp else stamp
        if isinstance(value, str):
            return value.replace("\u0000", "\ufffd")  # PostgreSQL has no NUL in text
        return float("%.9g" % value) if isinstance(value, (int, float)) else value
    return [{key: one(value) for key, value in row.items()} for row in rows]


def check_equal(postgres, files, since=SINCE, until=UNTIL):
    """The same questions to chdb over the files. Returns how many rows were compared, or None without chdb."""
    python = parts.venv_python()
    if not python:
        return None
    done = subprocess.run([python, os.path.join(os.path.dirname(__file__), "clickhouse.py"), since, until, *files], capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode()[-3000:])
    other = json.loads(done.stdout)
    compared = 0
    for name in QUESTIONS:
        own = comparable(postgres.rows(f"SELECT * FROM oomsight.{name}('{since}+00', '{until}+00')"))
        theirs = comparable(other[name])
        for number, (a, b) in enumerate(zip(own, theirs)):
            assert a == b, f"{name}, row {number}:\n{a}\n{b}"
        assert len(own) == len(theirs), (name, len(own), len(theirs))
        compared += len(own)
    stored = postgres.value("SELECT count(*) FROM oomsight.incident")
    assert stored == other["incidents"], (stored, other["incidents"])
    assert other["rejected"] == postgres.value("SELECT count(*) FROM oomsight.rejected"), other["rejected"]
    assert 0 < other["by_otel"] <= stored and not postgres.value("SELECT count(*) FROM oomsight.incident WHERE node = 'a node'"), other["by_otel"]
    models = sorted(row["model"] for row in postgres.rows("SELECT DISTINCT model FROM oomsight.incident"))
    assert models == sorted(model.replace("\u0000", "\ufffd") for model in other["models"])
    return compared


def main():
    parts.skip_without("initdb", "postgres", "psql", "setpriv")
    binary, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    base = incidents.bases(binary)
    with parts.Stage() as stage:
        postgres = parts.Postgres(stage)
        schema = [os.path.join(parts.FLEET, "postgresql", name) for name in ("schema.sql", "queries.sql")]
        postgres.files(*schema)
        postgres.files(*schema)  # twice: an upgrade is the same command
        postgres.files(stage.write("roles.sql", "CREATE ROLE pipeline LOGIN; GRANT oomsight_writer TO pipeline;"
                                                "CREATE ROLE people LOGIN; GRANT oomsight_reader TO people;"))
        check_by_hand(postgres)
        a_file_without_a_pod_is_an_engine_of_its_own(postgres, stage)
        data = incidents.lines(incidents.fleet(base, count))
        repeats = b"".join(data.splitlines(True)[::3])
        for chunk in (data, repeats, data[: len(data) // 2].rsplit(b"\n", 1)[0] + b"\n"):
            postgres.load(chunk, user="pipeline")
        assert postgres.value("SELECT count(*) FROM oomsight.incident") == count
        assert postgres.value("SELECT count(*) FROM oomsight.rejected") == 0
        print(f"ok {count} incidents, many sent two or three times, are there once each")

        compared = check_equal(postgres, [stage.write("a.ndjson", data, "wb"), stage.write("b.ndjson", repeats, "wb")])
        print(f"ok PostgreSQL and ClickHouse agree on {compared} rows of {len(QUESTIONS)} queries" if compared else "no chdb: not compared")

        good, bad = hostile(base)
        for line in [json.dumps(i).encode() for i in good] + bad:
            postgres.load(line + b"\n", user="pipeline")
        assert postgres.value("SELECT count(*) FROM oomsight.incident") == count + len(good)
        expected = SQL.replace("\u0000", "\ufffd")
        row = postgres.rows(f"SELECT * FROM oomsight.incident WHERE id = '{good[0]['id']}'")[0]
        for column in ("model", "version", "namespace", "pod", "container", "path"):
            assert row[column] == expected, (column, row[column])
        assert row["document"]["evidence"][0]["text"] == expected
        rejected = postgres.rows("SELECT line, reason FROM oomsight.rejected")
        assert len(rejected) == len([b for b in bad if b]), rejected  # COPY drops the empty line
        print(f"ok hostile text is text, {len(rejected)} lines that are no incidents are set aside with their reason")

        files = [stage.write(name, data, "wb") for name, data in (("a.ndjson", data), ("h.ndjson", incidents.lines(good) + b"\n".join(bad[1:]) + b"\n"))]
        if check_equal(postgres, files, "2026-10-01 00:00:00", "2026-12-01 00:00:00"):
            print("ok and in ClickHouse as well")

        # As Vector's postgres sink writes: its own statement, the rows as one JSON array.
        vector = json.dumps([{"node": "v", "line": line.decode()} for line in data.splitlines()[:50]])
        quoted = "'" + vector.replace("'", "''") + "'"
        statement = f"INSERT INTO oomsight.lines SELECT * FROM jsonb_populate_recordset(NULL::oomsight.lines, {quoted})"
        subprocess.run(postgres.psql("-f", "-", user="pipeline"), input=statement.encode(), check=True, stdout=subprocess.DEVNULL)
        assert postgres.value("SELECT count(*) FROM oomsight.incident WHERE node = 'v'") == 50
        loader = [sys.executable, os.path.join(parts.FLEET, "postgresql", "load.py")]
        subprocess.run([*loader, postgres.uri("pipeline")], input=data + b"\n".join(bad) + b"\n\xff\x00\x01\x02\n", check=True)
        assert postgres.value("SELECT count(*) FROM oomsight.incident WHERE node = ''") == count + len(good)
        answers = subprocess.run([*loader, "--omprog", postgres.uri("pipeline")], input=b"w " + data.splitlines()[0] + b"\nw \xff'\n", capture_output=True).stdout
        assert answers == b"OK\nOK\nOK\n" and postgres.value("SELECT count(*) FROM oomsight.incident WHERE node = 'w'") == 1
        print("ok Vector's statement, load.py and load.py under omprog hand in the same")

        for user, statement in (("pipeline", "SELECT * FROM oomsight.incident"), ("pipeline", "DELETE FROM oomsight.incident"),
                                ("people", "INSERT INTO oomsight.lines (line) VALUES ('{}')"), ("people", "DROP TABLE oomsight.incident")):
            done = subprocess.run(postgres.psql("-c", statement, user=user), capture_output=True)
            assert done.returncode != 0 and (b"permission denied" in done.stderr or b"must be owner" in done.stderr), (user, statement, done)
        assert postgres.rows("SELECT * FROM oomsight.fixes_by_effect(now() - interval '10 years', now() + interval '10 years')", user="people")
        print("ok the pipeline's account may hand in lines and nothing else, the readers' may read and nothing else")


if __name__ == "__main__":
    main()
