"""Plan beside a dry start, row by row: the same phases, the same owners, what was foreseen and what was measured.

    tests/oracle/beside.py BINARY [--missing] [--results FILE] [VERSION...]

Each start is a line of beside.jsonl, from which tools/figures.py makes docs/evidence/results/plan-vs-dryrun.csv; a release that is
not installed keeps its line. Exit code 1 when a dry start has a row whose phase or owner plan does not know."""
import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile

import engines
import models

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL, DEVICE, FLAGS = "qwen3-4b", ["--gpu", "4090"], ["--max-num-seqs", "32", "--max-model-len", "8192"]
# rows that are arithmetic of the engine or of plan, and rows of traffic that a start does not have
NOT_HELD = {"asked for", "one request of the longest length", "null block and states", "grows while serving"}


def key(record):
    return record["version"]


def rows(report):
    return [[p["phase"], h["owner"], h["bytes"], h["low"], h["high"]] for p in report["phases"] for h in p["holds"]]


def plan_rows(binary, path, version):
    out = subprocess.run([binary, "plan", "--json", "--vllm", version] + DEVICE + ["--", "vllm", "serve", path] + FLAGS,
                         stdout=subprocess.PIPE, check=False).stdout
    return rows(json.loads(out))


def gib(row):
    if row is None:
        return "-"
    bytes_, low, high = row
    text = "%.3f" % (bytes_ / 2**30)
    return text if low == high else "%s (%.2f to %.2f)" % (text, low / 2**30, high / 2**30)


def modelled(amount):
    """A dry start counts bytes; a row that has a range comes from the model of the device that plan has as well."""
    return amount[1] != amount[2]


def table(record):
    """Lines of Markdown, and the dry rows whose words plan does not have."""
    plan = {(p, o): amount for p, o, *amount in record["plan"]}
    dry = {(p, o): amount for p, o, *amount in record["dryrun"]}
    order = list(plan) + [k for k in dry if k not in plan]
    first = {}
    for phase, _ in order:
        first.setdefault(phase, len(first))
    place = {word: i for i, word in enumerate(record["phases"])}
    came = {k: i for i, k in enumerate(order)}
    order.sort(key=lambda k: (place.get(k[0], first[k[0]]), came[k]))
    measured = {k: amount for k, amount in dry.items() if not modelled(amount)}
    both = [k for k in measured if k in plan]
    exact = [k for k in both if plan[k][1] <= dry[k][0] <= plan[k][2]]
    lines = ["## vLLM %s" % record["version"], "", "%s, %d rows measured: %d of them rows of plan, %d of these inside its range. %d more are the model of the device "
             "in both columns and count for nothing." % (record["date"], len(measured), len(both), len(exact), len(dry) - len(measured)), "", "| phase | owner | plan | dry start |", "| --- | --- | ---: | ---: |"]
    for k in order:
        if k not in dry and (k[1] in NOT_HELD or k[0].startswith("runtime")):
            continue
        lines.append("| %s | %s | %s | %s |" % (k[0], k[1], gib(plan.get(k)), gib(dry.get(k))))
    words = {o for _, o, *_ in record["plan"]}
    return lines + [""], [k for k in dry if k[1] not in words and k[1] not in record["owners"]]


def ledger_words(name):
    """The words of src/ledger/NAME.def, in order."""
    import re
    with open(os.path.join(HERE, "..", "..", "src", "ledger", name + ".def"), encoding="utf-8") as f:
        return re.findall(r'^%s\(\w+, "([^"]+)"' % name.upper(), f.read(), re.M)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--results", default=os.path.join(HERE, "beside.jsonl"))
    parser.add_argument("--timeout", type=int, default=900)
    args = parser.parse_intermixed_args()
    binary = os.path.abspath(args.binary)
    found, records = engines.venvs(), engines.read_results(args.results, key)
    if not found and not records:
        return engines.SKIP
    with tempfile.TemporaryDirectory() as folder:
        path = models.write(folder, MODEL)
        for version in args.versions or list(found):
            if version not in found or (args.missing and version in records):
                continue
            outcome = engines.dryrun(binary, found[version], DEVICE, ["vllm", "serve", path] + FLAGS, timeout=args.timeout)
            if not outcome.report or outcome.report["verdict"] != "fits":
                print("%s: no start\n%s" % (version, outcome.log[-2000:]), file=sys.stderr)
                return 1
            records[version] = {"version": version, "date": datetime.date.today().isoformat(), "phases": ledger_words("phase"),
                                "owners": ledger_words("owner"), "plan": plan_rows(binary, path, version),
                                "dryrun": rows(outcome.report)}
            with open(args.results, "w", encoding="utf-8") as f:
                for record in sorted(records.values(), key=lambda r: engines.version_key(r["version"]), reverse=True):
                    f.write(json.dumps(record) + "\n")
    strange = []
    for record in sorted(records.values(), key=lambda r: engines.version_key(r["version"]), reverse=True):
        lines, unknown = table(record)
        print("\n".join(lines))
        strange += [(record["version"],) + k for k in unknown]
    for row in strange:
        print("%s: %s, %s: not a word of plan" % row, file=sys.stderr)
    return 1 if strange else 0


if __name__ == "__main__":
    sys.exit(main())
