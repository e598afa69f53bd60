"""Real engines on stand-in devices: every point of points.py whose engine is installed, one start after the other.

    tests/oracle/matrix.py BINARY [--missing] [--once] [--only TEXT]... [--results FILE] [--write docs/evidence/engines-tried.md] [VERSION...]

Each result is a line of results.jsonl as soon as it is there; lines of engines that are not installed stay. --missing
starts only what has no line yet; --only takes points whose version, way or model has TEXT in it. The table is made from
all lines."""
import argparse
import json
import os
import sys
import tempfile

import engines
import models
import points

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = """# Starts without a GPU

Real, unmodified vLLM and PyTorch wheels on stand-in devices, from a config alone with dummy weights. Made by
`make oracle-full` from the lines of tests/oracle/results.jsonl, one per start. Wall and CPU time are those of a machine with
two cores that other work shared; memory is the largest sum of resident memory over all processes of a start.

"""


CASES_HEAD = """## The reported cases

`make seeds`; what each must show is in tests/oracle/seeds.py.

"""
CASES_TAIL = """

What was put in, because no stand-in can know it: the bytes outside PyTorch that each report printed (`--outside`), and for 000
a budget lowered by the 0.09 GiB that kernels took on the real device during profiling. So in use and free follow from the
input; the failing request, its place, the phase, weights, peaks, tokens and private pools do not. What differs from the
reports: 001 and 002 start from a config, whose weights are 0.11 GiB heavier than the AWQ checkpoint of 001; 004 is one rank of
four with that rank's shapes; the statement of 000 that fails is the next one of the same call. A cold compile cache raises the
profiled peak of 001-fix by 2.1 GiB (30,400 tokens); the line is of a warm one, as the report was.

"""
NOTES = """
Two starts needed help that has nothing to do with memory: on Python 3.11 vLLM 0.28.0 with TP 2 fails while it imports
FlashInfer 0.6.16.post3 (`array.array[int]` in an annotation), which was made a lazy annotation; and the transformers of
the 0.11.0 and 0.21.0 environments does not know the hybrid of the other versions, so another one stands there. Mixture-of-experts models
are started on an A100, because on newer devices some versions choose FlashInfer kernels that nvcc compiles for half an hour.
"""


def key(record):
    return record["version"], record["way"]


def write_results(path, results):
    order = {point[:2]: i for i, point in enumerate(points.all_points())}
    with open(path + ".new", "w", encoding="utf-8") as f:
        for record in sorted(results.values(), key=lambda r: order.get(key(r), len(order))):
            f.write(json.dumps(record) + "\n")
    os.replace(path + ".new", path)


def last_words(log):
    """Why there was no start, as far as the log says: its last error."""
    lines = [line.strip() for line in log.splitlines() if "Error" in line and "Engine core init" not in line]
    return lines[-1][-200:] if lines else ""


def record_of(point, outcome):
    version, way, model, device, flags = point
    report = outcome.report or {}
    kv = report.get("kv") or {}
    record = {"version": version, "way": way, "model": model, "device": device, "flags": flags,
              "verdict": report.get("verdict"), "phase": report.get("phase"), "weights_bytes": report.get("weights_bytes"),
              "peak_bytes": report.get("peak_activation_bytes"), "available_bytes": kv.get("available_bytes"),
              "tokens": kv.get("tokens"), "backend": report.get("attention_backend"),
              "graphs": (report.get("child") or {}).get("graphs"), "wall_seconds": round(outcome.seconds),
              "cpu_seconds": round(outcome.cpu_seconds), "resident_bytes": outcome.rss_bytes}
    if report.get("verdict") != "fits":
        record["why"] = last_words(outcome.log)
    return record


def gib(number):
    return "-" if number is None else "%.2f" % (number / 2**30)


def row(r):
    verdict = "starts" if r["verdict"] == "fits" else r["verdict"] or "no report"
    return "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |" % (
        r["version"], r["way"], r["model"], " ".join(r["device"][1:2]), verdict, gib(r["weights_bytes"]), gib(r["peak_bytes"]),
        "{:,}".format(r["tokens"]) if r["tokens"] else "-", r["backend"] or "-", r["graphs"] or "-",
        "%d / %d" % (r["wall_seconds"], r["cpu_seconds"]), gib(r["resident_bytes"]))


def cases():
    """The reported cases as seeds.py left them."""
    head = ["| case | vLLM | ends | phase | tried | weights GiB | peak GiB | KV tokens | allocated GiB | private pools GiB | wall / CPU s | RAM GiB |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    try:
        with open(os.path.join(HERE, "seeds.jsonl"), encoding="utf-8") as lines:
            kept = list(map(json.loads, lines))
    except FileNotFoundError:
        return ""
    for r in kept:
        tried = "-" if r["tried_bytes"] is None else "%.2f MiB" % (r["tried_bytes"] / 2**20)
        head.append("| %s%s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s / %s | %s |" % (
            r["case"], "" if r["holds"] else " (not as reported)", r["version"], "starts" if r["verdict"] == "fits" else
            r["verdict"], r["phase"] or "-", tried, gib(r["weights_bytes"]), gib(r["peak_bytes"]),
            "{:,}".format(r["kv_tokens"]) if r["kv_tokens"] else "-", gib(r["torch_allocated_bytes"]),
            gib(r["private_pools_bytes"]), r["wall_seconds"], r["cpu_seconds"] or "-", gib(r["resident_bytes"])))
    return CASES_HEAD + "\n".join(head) + CASES_TAIL


def write_table(path, results):
    ways = {way[0] for way in points.WAYS}
    order = {point[:2]: i for i, point in enumerate(points.all_points())}
    records = sorted(results.values(), key=lambda r: order.get(key(r), len(order)))
    head = ["| vLLM | way | model | device | ends | weights GiB | peak GiB | KV tokens | backend | graphs | wall / CPU s | RAM GiB |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    with open(path, "w", encoding="utf-8") as f:
        f.write(HEAD + cases() + "## Six ways, six versions\n\n")
        f.write("\n".join(head + [row(r) for r in records if r["way"] in ways]) + "\n")
        f.write("\n## More\n\n" + "\n".join(head + [row(r) for r in records if r["way"] not in ways]) + "\n")
        f.write(NOTES)
        failed = [r for r in records if r["verdict"] != "fits"]
        if failed:
            f.write("\n## What did not start\n\n| vLLM | way | its last words |\n| --- | --- | --- |\n")
            for r in failed:
                f.write("| %s | %s | %s |\n" % (r["version"], r["way"], r.get("why", "").replace("|", "\\|")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--once", action="store_true", help="compiled starts once, not a second time with a warm cache")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--results", default=os.path.join(HERE, "results.jsonl"))
    parser.add_argument("--write")
    parser.add_argument("--timeout", type=int, default=1500)
    args = parser.parse_intermixed_args()
    found = engines.venvs()
    results = engines.read_results(args.results, key)
    started = 0
    with tempfile.TemporaryDirectory() as folder:
        for point in points.all_points():
            version, way, model, device, flags = point
            if version not in found or (args.versions and version not in args.versions):
                continue
            if args.missing and (version, way) in results:
                continue
            if args.only and not any(text in (version, way, model) for text in args.only):
                continue
            command = ["vllm", "serve", models.write(folder, model)] + flags
            again = 1 if "--enforce-eager" in flags or args.once else 2  # compiled: with a warm cache, as every start but the first
            for _ in range(again):
                outcome = engines.dryrun(os.path.abspath(args.binary), found[version], device, command, timeout=args.timeout)
            started += 1
            results = engines.read_results(args.results, key)
            results[version, way] = record_of(point, outcome)
            write_results(args.results, results)
            print(row(results[version, way]), flush=True)
            if os.environ.get("OOMSIGHT_KEEP_LOGS"):
                name = "%s-%s.log" % (version, way.replace(" ", "_").replace(",", ""))
                with open(os.path.join(os.environ["OOMSIGHT_KEEP_LOGS"], name), "w", encoding="utf-8") as f:
                    f.write(outcome.log)
    if args.write and results:
        write_table(args.write, results)
    if not started and not args.missing:
        print("no engine in", engines.VENVS)
        return engines.SKIP
    return 0


if __name__ == "__main__":
    sys.exit(main())
