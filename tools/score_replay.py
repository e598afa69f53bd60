#!/usr/bin/env python3
"""Compare the allocator simulator with recorded runs of the real allocator, line by line.

usage: score_replay.py BINARY DIRECTORY|FILE... [--json] [--jobs N] [--show N]

Every *.jsonl or *.jsonl.gz file is a trace in the form of docs/reference/formats/trace.md: a "meta" line, one line per operation
with what the real allocator answered, and a "final" line. BINARY reads what was asked and answers again; every answer
must be the same: addresses, segments, events, texts, layouts, statistics, device free bytes. Where "meta" says
hash_order, events of one operation are compared without their order, and of inactive_split counters only `current`.
Exit 0: no mismatch, or mismatches in at most two traces. Standard library only."""
import concurrent.futures
import gzip
import json
import os
import subprocess
import sys

ANSWERS = ("addr", "seg", "seg_size", "off", "oom", "skipped", "segments", "device_free", "device_total")
MAY_MISS = 2  # traces that may be listed with a reason


def traces(paths):
    for path in paths:
        if os.path.isdir(path):
            for name in sorted(os.listdir(path)):
                if name.endswith((".jsonl", ".jsonl.gz")):
                    yield os.path.join(path, name)
        else:
            yield path


def lines_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        for line in f:
            if line.strip():
                yield json.loads(line)


def same_stats(real, ours, hash_order):
    """Names of the counters that differ."""
    for name, value in real.items():
        if name == "max_split_size":  # frozen at start-up by the real allocator
            continue
        mine = ours.get(name)
        if value == mine:
            continue
        if hash_order and name.startswith("inactive_split") and isinstance(mine, dict):
            if all(value[pool][0] == mine[pool][0] for pool in value):
                continue
        yield name


def events_of(line, hash_order):
    events = line.get("ev", [])
    return sorted(map(str, events)) if hash_order else events


def differences(real, ours, meta):
    """(what, real, ours) for every answer of one line that differs."""
    hash_order = bool(meta.get("hash_order"))
    for key in ANSWERS:
        if key in real and real[key] != ours.get(key):
            yield key, real[key], ours.get(key)
    if "oom" in ours and "oom" not in real and real.get("op") == "malloc":
        yield "oom", None, ours["oom"]
    if "error" in real or "error" in ours:
        said = real.get("error", "")
        said = said[len("ERROR "):] if said.startswith("ERROR ") else said
        if said != ours.get("error", ""):
            yield "error", said, ours.get("error")
    if "stats" in real:
        for name in same_stats(real["stats"], ours.get("stats", {}), hash_order):
            yield "stats." + name, real["stats"][name], ours.get("stats", {}).get(name)
    if meta.get("events_recorded", True) and real.get("op") != "final":
        if events_of(real, hash_order) != events_of(ours, hash_order):
            yield "ev", real.get("ev"), ours.get("ev")


def score(binary, path):
    done = {"trace": os.path.basename(path), "torch": "", "ops": 0, "ooms": 0, "mismatches": 0, "first": []}
    run = subprocess.run([binary, "replay", "--events", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    answers = iter(run.stdout.decode("utf-8").splitlines())
    if run.returncode not in (0, 1):
        done["mismatches"] = 1
        done["first"].append(("run", "exit 0 or 1", "exit %d: %s" % (run.returncode, run.stderr.decode()[-200:]), 0))
        return done
    meta = {}
    for real in lines_of(path):
        if real.get("op") == "meta":
            meta = real
            done["torch"] = real.get("torch", "")
            continue
        line = next(answers, None)
        ours = json.loads(line) if line else {}
        if real.get("op") != "final":
            done["ops"] += 1
            done["ooms"] += "oom" in real
        if real.get("op") != ours.get("op"):
            done["mismatches"] += 1
            done["first"].append(("op", real.get("op"), ours.get("op"), real.get("i")))
            break
        for what, theirs, mine in differences(real, ours, meta):
            done["mismatches"] += 1
            if len(done["first"]) < 3:
                done["first"].append((what, theirs, mine, real.get("i", "final")))
    return done


def table(results):
    rows = {}
    for r in results:
        row = rows.setdefault(r["torch"], [0, 0, 0, 0, 0])
        for i, add in enumerate((1, r["ops"], r["ooms"], r["mismatches"], r["mismatches"] > 0)):
            row[i] += add
    print("%-10s %8s %10s %8s %11s %13s" % ("torch", "traces", "operations", "ooms", "mismatches", "traces missed"))
    for version in sorted(rows, key=lambda v: [int(x) if x.isdigit() else 0 for x in v.split(".")]):
        print("%-10s %8d %10d %8d %11d %13d" % (version, *rows[version]))


def main(argv):
    options = {"--jobs": "2", "--show": "3"}
    words, as_json = [], False
    at = 1
    while at < len(argv):
        if argv[at] == "--json":
            as_json = True
        elif argv[at] in options and at + 1 < len(argv):
            options[argv[at]] = argv[at + 1]
            at += 1
        else:
            words.append(argv[at])
        at += 1
    if len(words) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    with concurrent.futures.ProcessPoolExecutor(int(options["--jobs"])) as pool:
        results = list(pool.map(score, [words[0]] * len(list(traces(words[1:]))), traces(words[1:])))
    missed = [r for r in results if r["mismatches"]]
    total = {"traces": len(results), "operations": sum(r["ops"] for r in results), "ooms": sum(r["ooms"] for r in results),
             "mismatches": sum(r["mismatches"] for r in results), "traces_missed": len(missed)}
    if as_json:
        print(json.dumps(dict(total, missed=missed), indent=1))
    else:
        for r in missed:
            print("%s: %d mismatches" % (r["trace"], r["mismatches"]))
            for what, theirs, mine, where in r["first"][: int(options["--show"])]:
                print("  line %s, %s\n    real %.300s\n    ours %.300s" % (where, what, theirs, mine))
        table(results)
        print("%(traces)d traces, %(operations)d operations, %(ooms)d out-of-memory texts: %(mismatches)d mismatches in "
              "%(traces_missed)d traces" % total)
    return 0 if results and len(missed) <= MAY_MISS else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
