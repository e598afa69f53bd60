"""Real engines on stand-in devices: every point of points.py whose engine is installed, one start after the other.

    tests/oracle/matrix.py BINARY [--missing] [--once] [--only TEXT]... [--results FILE] [VERSION...]

Each result is a line of results.jsonl as soon as it is there; lines of engines that are not installed stay. --missing
starts only what has no line yet; --only takes points whose version, way or model has TEXT in it.
tools/figures.py makes docs/evidence/results/starts-without-gpu.csv from all lines."""
import argparse
import json
import os
import sys
import tempfile

import engines
import models
import points

HERE = os.path.dirname(os.path.abspath(__file__))
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--once", action="store_true", help="compiled starts once, not a second time with a warm cache")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--results", default=os.path.join(HERE, "results.jsonl"))
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
    if not started and not args.missing:
        print("no engine in", engines.VENVS)
        return engines.SKIP
    return 0


if __name__ == "__main__":
    sys.exit(main())
