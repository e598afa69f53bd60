"""Seed 004, recorded by `dryrun --snapshot` and handed to `replay`: finds by itself that the load fits under another split limit.

    tests/oracle/seed_snapshot.py BINARY [--keep FILE]

vLLM 0.21.0, one rank of four; exit 77 without it. The load itself sets `max_split_size_mb:20`, so no flag of the engine changes that: replay
runs the recorded requests again."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import engines
import models
import seeds

GIB = 1 << 30


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--keep", help="where the snapshot stays")
    options = parser.parse_args()
    version, device, model, flags, holds = seeds.CASES["004"]
    folder = engines.venvs().get(version)
    if not folder:
        return engines.SKIP
    binary = os.path.abspath(options.binary)
    with tempfile.TemporaryDirectory() as scratch:
        path = options.keep or os.path.join(scratch, "004.pickle")
        outcome = engines.dryrun(binary, folder, device + ["--snapshot", path], ["vllm", "serve", models.write(scratch, model)] + flags)
        checks = {"the engine fails as reported, while it is recorded": bool(outcome.report) and holds(outcome.report, outcome.log),
                  "there is a snapshot": os.path.exists(path)}
        print("vLLM %s: %s, exit %d, %.0f s" % (version, outcome.report and outcome.report["verdict"], outcome.code, outcome.seconds))
        if checks["there is a snapshot"]:
            print("%.1f MiB" % (os.path.getsize(path) / 2**20))
            start = time.time()
            done = subprocess.run([binary, "replay", "--json", path], capture_output=True, text=True, check=False)
            print("replay: exit %d, %.1f s" % (done.returncode, time.time() - start))
            text = subprocess.run([binary, "replay", path], capture_output=True, text=True, check=False).stdout
            print(text)
            told = json.loads(done.stdout) if done.stdout.startswith("{") else {}
            lines = told.get("what_if") or []
            # one setting from end to end, where the engine changes it for the load: the last blocks differ, the failure does not
            checks["replay runs out as the engine did"] = done.returncode == 1 and "Tried to allocate 20.00 MiB" in (told.get("oom_message") or "")
            limits = {line["settings"]["conf"]: line for line in lines if line["outcome"] == "ok" and not line["settings"]["sweep_ratio"]}
            checks["another split limit loads cleanly"] = any(
                conf.startswith("max_split_size_mb:") and conf != "max_split_size_mb:20" and line["peak_reserved_bytes"] < 130 * GIB for conf, line in limits.items())
            checks["it says by itself what would have"] = bool(told.get("advice"))
    for sentence, right in checks.items():
        print("%s %s" % ("ok  " if right else "FAIL", sentence))
    if not all(checks.values()):
        print(outcome.log[-3000:])
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
