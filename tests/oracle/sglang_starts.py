#!/usr/bin/env python3
"""Public starts of SGLang beside `plan` of their commands.

    sglang_starts.py BINARY [--set dev|held] [--rows] [--least N]

tests/evidence/sglang-starts.tsv has them: what a log printed, in GiB and tokens; `held` was set aside by source before a rule was touched.
`config` is "-" where the checkpoint's config or a flag, `gpu` where the device is not known: such a row is counted and not planned. Where the memory that was free before
loading is printed and differs by more than half a GiB from the planned, other programs held it, and plan is told so (--gpu-used). With --least, exit 1 when fewer
than N figures of tokens are within 3 %."""
import argparse
import csv
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STARTS = os.path.join(HERE, "..", "evidence", "sglang-starts.tsv")
GIB = 1 << 30
OTHERS_GIB = 0.5  # the planned is at most 0.3 off where nothing else runs


def plan(binary, row, used=None):
    gpu = row["gpu"] + ("x" + row["count"] if row["count"] != "1" else "")
    command = [binary, "plan", "--json", "--offline", "--gpu", gpu, "--engine", "sglang=" + row["release"]]
    command += ["--gpu-used", "%.2fGiB" % used] if used else []
    command += ["--", "python", "-m", "sglang.launch_server", "--model-path", row["config"]] + row["words"].split()
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(out.stdout) if out.stdout.startswith("{") else {"verdict": "unknown", "why": out.stderr.strip()[:120]}


def free_gib(told):
    """What plan has as free before loading."""
    own = (told.get("setup") or {}).get("own") or {}
    for phase in told.get("phases") or []:
        if phase["phase"] == "kv_sizing" and own.get("mem_fraction_static"):
            return phase["limit_bytes"] / own["mem_fraction_static"] / GIB
    return None


def others_gib(told):
    return sum(hold["bytes"] for phase in told["phases"][:1] for hold in phase["holds"] if hold["owner"] == "other processes") / GIB


def off(mine, theirs):
    return 100 * (mine / float(theirs) - 1)


def judge(binary, row):
    told = plan(binary, row)
    free = free_gib(told)
    if free and row["begin"] and free - float(row["begin"]) > OTHERS_GIB:
        told = plan(binary, row, others_gib(told) + free - float(row["begin"]))
    own = (told.get("setup") or {}).get("own") or {}
    says = told["verdict"]
    found = {"verdict": says, "why": told.get("why") or "", "answered": says != "unknown"}
    if says != "unknown":
        likely = told.get("likely") == "starts"
        found["starts"] = likely
        if row["outcome"] != "other":
            found["outcome"] = likely == (row["outcome"] == "ok")
        if row["tokens"] and "max_total_num_tokens" in own:
            found["tokens"] = off(own["max_total_num_tokens"], row["tokens"])
        if row["states"] and own.get("max_mamba_cache_size"):
            found["states"] = off(own["max_mamba_cache_size"], row["states"])
    if row["weights"] and told.get("weights_bytes"):
        found["weights"] = off(told["weights_bytes"] / GIB, row["weights"])
    return found


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("binary")
    args.add_argument("--set", choices=("dev", "held"))
    args.add_argument("--rows", action="store_true")
    args.add_argument("--least", type=int, default=0)
    given = args.parse_args()
    with open(STARTS, encoding="utf-8", newline="") as f:
        starts = [row for row in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE) if given.set in (None, row["held"])]
    planned = [(row, judge(given.binary, row)) for row in starts if "-" not in (row["config"], row["gpu"])]
    if given.rows:
        for row, found in planned:
            print(row["id"], row["held"], row["release"], row["model"].split("/")[-1], row["gpu"], row["outcome"], found["verdict"],
                  " ".join("%s %+.1f%%" % (name, found[name]) for name in ("tokens", "weights", "states") if name in found),
                  "" if found["answered"] else found["why"][:90])
    tokens = [found["tokens"] for _, found in planned if "tokens" in found]
    weights = [found["weights"] for _, found in planned if "weights" in found]
    outcomes = [found["outcome"] for _, found in planned if "outcome" in found]
    wanted = sum(1 for row, _ in planned if row["tokens"])
    close = sum(abs(x) <= 3 for x in tokens)
    for name, value in (("starts", len(starts)), ("planned", len(planned)), ("no answer", sum(not found["answered"] for _, found in planned)),
                        ("tokens within 3 %", "%d of %d" % (close, wanted)), ("tokens within 1 %", "%d of %d" % (sum(abs(x) <= 1 for x in tokens), wanted)),
                        ("weights within 1 %", "%d of %d" % (sum(abs(x) <= 1 for x in weights), sum(1 for row, _ in planned if row["weights"]))),
                        ("outcome right", "%d of %d" % (sum(outcomes), sum(row["outcome"] != "other" for row, _ in planned)))):
        print("%-20s %s" % (name, value))
    return 1 if close < given.least else 0


if __name__ == "__main__":
    sys.exit(main())
