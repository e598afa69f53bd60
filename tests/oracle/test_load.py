"""A real engine answers requests on a GPU that is not there.

    tests/oracle/test_load.py BINARY [--release VERSION]... [--requests N] [--ways eager,graphs] [--loads N]

Without --release: every one of 0.11.0, 0.19.1, 0.24.0, 0.28.0 and 0.32.0 whose environment is there. Exit 77 without an engine. A start
is eager or with graphs, a model of two layers, and several loads one after the other: plain, ranges with clients that leave, log
probabilities, penalties, a shared prefix, prompts longer than a step. More ways are in serve_table.py."""
import argparse
import os
import sys
import tempfile

import engines
import models

RELEASES = ["0.32.0", "0.28.0", "0.24.0", "0.19.1", "0.11.0"]


def loads(requests):
    some = max(20, requests // 10)
    return ["%d:64:16" % requests, "%d:16-256:4-32,concurrency=32,abort=20%%" % some, "%d:64:16,logprobs=5" % some,
            "%d:64:16,body={\"frequency_penalty\": 0.5, \"repetition_penalty\": 1.1}" % some, "%d:256:8,prefix=50%%" % some, "8:1500:8"]


def tried(binary, version, folder, way, wanted):
    with tempfile.TemporaryDirectory() as scratch:
        command = ["vllm", "serve", models.write(scratch, "opt-tiny"), "--max-num-batched-tokens", "1024", "--max-num-seqs", "128",
                   "--gpu-memory-utilization", "0.5"] + (["--enforce-eager"] if way == "eager" else [])
        outcome = engines.dryrun(binary, folder, ["--gpu", "L4"] + [word for load in wanted for word in ("--load", load)], command, timeout=1200)
    report = outcome.report
    if not report:
        return {"there is a report": False}, outcome
    mixes = (report["load"] or {"mixes": []})["mixes"]
    for load, mix in zip(wanted, mixes):
        print("     %-60s %d answered, %d aborted, %.1f a second" % (load[:60], mix["answered"], mix["aborted"], mix["answered"] / (mix["seconds"] or 1)))
    steps = {name: step and step["peak_bytes"] for name, step in report["steps"].items()}
    print("     %.0f s wall, %.0f s of CPU, steps took at most %s" % (outcome.seconds, outcome.cpu_seconds, steps))
    checks = {
        "it starts and serves, exit 0": report["verdict"] == "fits" and outcome.code == 0,
        "every request is answered or aborted as asked": all(m["answered"] + m["aborted"] == m["requests"] for m in mixes) and len(mixes) == len(wanted),
        "clients that leave are counted": len(mixes) < 2 or 0 < mixes[1]["aborted"] < mixes[1]["requests"],
        "prefill took more than nothing": (steps["prefill"] or 0) > 0,
        "the sampler took something (logits are the model's part on the newer runner)": (steps["sampler"] or 0) > 0,
        "a step is no larger than the device has room for": all((bytes_ or 0) < report["gpu"]["total_bytes"] for bytes_ in steps.values()),
    }
    return checks, outcome


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--release", action="append")
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--ways", default="eager,graphs")
    parser.add_argument("--loads", type=int, default=None, help="only so many, from the first")
    options = parser.parse_args()
    found = engines.venvs()
    releases = [version for version in options.release or RELEASES if version in found]
    if not releases:
        print("none of", options.release or RELEASES, "in", engines.VENVS)
        return engines.SKIP
    failed = 0
    for version in releases:
        for way in options.ways.split(","):
            print("vLLM %s, %s" % (version, way), flush=True)
            checks, outcome = tried(os.path.abspath(options.binary), version, found[version], way, loads(options.requests)[:options.loads])
            for sentence, holds in checks.items():
                print("%s %s" % ("ok  " if holds else "FAIL", sentence), flush=True)
            if not all(checks.values()):
                failed += 1
                print(outcome.log[-6000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
