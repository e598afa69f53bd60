"""examples/fleet/duckdb over files as the follower leaves them: repeated, counted on, rotated, and one line that was cut. usage: duck.py BINARY; needs the
environment of tools/fleet_venv.sh."""
import collections
import json
import os
import sys
import tempfile

import duckdb
import incidents

QUERIES = os.path.join(incidents.ROOT, "examples/fleet/duckdb/queries.sql")


def main():
    given = list(incidents.fleet(incidents.bases(sys.argv[1])[:60], 400))
    again = [dict(one, count=one["count"] + 3) for one in given[:50]]  # a crash loop goes on: the same id, more of them
    lines = [json.dumps(one) for one in given + given[100:150] + again]
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("incidents.ndjson.1", lines[:300]), ("incidents.ndjson", [*lines[300:], lines[0][:200]])):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("".join(line + "\n" for line in part))
        os.chdir(folder)
        store = duckdb.connect()
        with open(QUERIES, encoding="utf-8") as file:
            store.execute(file.read())
        count = {one["id"]: one for one in given + again}
        wanted = collections.Counter()
        for one in count.values():
            if one["is_oom"]:
                wanted[one["fingerprint"]] += one["count"]
        rows = store.execute("SELECT fingerprint, incidents, versions, first_at <= last_at FROM top_fingerprints").fetchall()
        assert {row[0]: row[1] for row in rows} == dict(wanted), (len(rows), len(wanted))
        assert all(row[3] for row in rows) and [row[1] for row in rows] == sorted((row[1] for row in rows), reverse=True)
        first = dict(store.execute("SELECT fingerprint, first_at FROM first_seen").fetchall())
        assert set(first) == set(wanted)
        assert store.execute("SELECT count(*) FROM incident").fetchone()[0] == len(count)
    print("ok DuckDB: %d incidents, %d fingerprints, each once" % (len(count), len(wanted)))


if __name__ == "__main__":
    main()
