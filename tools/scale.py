#!/usr/bin/env python3
"""The tables of docs/evidence/scale.md from what was measured and what is assumed. scale.py [--write FILE | --check FILE]
MEASURED holds what the commands named in docs/evidence/scale.md printed; put new figures here and run it with --write. Standard library only."""
import argparse
import sys

MEASURED = {
    "explain_bytes_per_core_s": 1.06e9, "agent_node_cpu": 0.002, "line_bytes": 8640, "zst_line_bytes": 2290,
    "pg_batch_per_s": 1826, "pg_repeat_per_s": 2788, "pg_confirmed_per_s": 1027, "pg_bytes_per_row": 5081, "pg_rows": 10000,
    "pg_slowest_query_s": 0.304, "ch_insert_per_s": 6873, "ch_rows": 20000, "ch_slowest_query_s": 0.127, "ch_bytes_per_row": 255,
    "prom_bytes_per_series": 3507, "plans_per_s": 245000}
ASSUMED = {
    "engines_per_node": 8, "log_bytes_per_engine_s": 2000, "incidents_per_engine_day": 0.01, "kept_days": 400, "bad_share": 0.05, "restarts_per_hour": 12,
    "start_seconds": 60, "series_per_engine": 5, "series_per_node": 10, "scrape_seconds": 15, "connection_seconds": 1.0, "distinct_share": 0.001}
FLEETS = (("10^5 pods", 10**5), ("10^6 engines", 10**6))


def amount(value, unit=""):
    for size, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}{unit}".strip()
    return f"{value:.3g} {unit}".strip()


def seconds(value):
    if value < 120:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"


def column(engines, m=MEASURED, a=ASSUMED):
    nodes = engines / a["engines_per_node"]
    logs = engines * a["log_bytes_per_engine_s"]
    daily = engines * a["incidents_per_engine_day"]
    kept = daily * a["kept_days"]
    bad = engines * a["bad_share"] * a["restarts_per_hour"] / 3600
    storm = engines / a["start_seconds"]
    series = engines * a["series_per_engine"] + nodes * a["series_per_node"]
    fortnight = daily * 14
    pg_query, ch_query = m["pg_slowest_query_s"] / m["pg_rows"], m["ch_slowest_query_s"] / m["ch_rows"]
    return [
        ("nodes", f"{nodes:,.0f}"),
        ("logs written", amount(logs, "B/s") + ", " + amount(logs * 86400, "B per day")),
        ("cores to read them all, over all nodes (bulk rate)", f"{logs / m['explain_bytes_per_core_s']:.2g}"),
        ("CPU of one node's agent (8 files, 16 kB/s)", f"{m['agent_node_cpu'] * 100:.2g} % of a core"),
        ("incidents on an ordinary day", f"{daily:,.0f}, {amount(daily * m['line_bytes'], 'B')}"),
        ("logs to incidents, in bytes", f"1 : {logs * 86400 / (daily * m['line_bytes']):,.0f}"),
        ("kept for 400 days, PostgreSQL", f"{kept:,.0f} rows, {amount(kept * m['pg_bytes_per_row'], 'B')}"),
        ("the same, ClickHouse", amount(kept * m["ch_bytes_per_row"], "B") + " to " + amount(kept * m["zst_line_bytes"], "B")),
        ("slowest query over 14 days, PostgreSQL / ClickHouse", seconds(fortnight * pg_query) + " / " + seconds(fortnight * ch_query)),
        ("slowest query over 400 days", seconds(kept * pg_query) + " / " + seconds(kept * ch_query)),
        ("bad rollout: incidents", f"{bad:,.0f} per second, {amount(bad * m['line_bytes'], 'B/s')}"),
        ("bad rollout: share of one PostgreSQL core", f"{bad / m['pg_batch_per_s'] * 100:.2g} %"),
        ("every engine fails within a minute", f"{storm:,.0f} per second; one PostgreSQL core is done after {seconds(engines / m['pg_batch_per_s'])}, "
                                               f"ClickHouse after {seconds(engines / m['ch_insert_per_s'])}"),
        ("Prometheus: series", f"{series:,.0f}, {amount(series * m['prom_bytes_per_series'], 'B')} of memory"),
    ]


def table():
    columns = [column(engines) for _, engines in FLEETS]
    lines = ["| | " + " | ".join(name for name, _ in FLEETS) + " |", "| --- |" + " --- |" * len(FLEETS)]
    lines += ["| " + rows[0][0] + " | " + " | ".join(value for _, value in rows) + " |" for rows in zip(*columns)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write")
    parser.add_argument("--check")
    options = parser.parse_args()
    path = options.write or options.check
    if not path:
        print(table(), end="")
        return 0
    begin, end = "<!-- tools/scale.py -->\n", "<!-- end -->\n"
    with open(path) as f:
        text = f.read()
    at, to = text.index(begin) + len(begin), text.index(end)
    if options.check:
        print("scale: the table is what the figures give" if text[at:to] == table() else "scale: run tools/scale.py --write " + path)
        return text[at:to] != table()
    with open(path, "w") as f:
        f.write(text[:at] + table() + text[to:])
    return 0


sys.exit(main())
