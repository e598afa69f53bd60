"""One real vLLM start without a GPU: the newest engine that is installed, OPT-125M from a config alone, eager. Exit 77
without an engine.

    tests/oracle/test_vllm.py BINARY"""
import os
import sys
import tempfile

import engines
import models


def main():
    binary = os.path.abspath(sys.argv[1])
    found = engines.venvs()
    if not found:
        print("no engine in", engines.VENVS)
        return engines.SKIP
    version, folder = list(found.items())[-1]
    with tempfile.TemporaryDirectory() as scratch:
        command = ["vllm", "serve", models.write(scratch, "opt-125m"), "--enforce-eager", "--gpu-memory-utilization", "0.9"]
        outcome = engines.dryrun(binary, folder, ["--gpu", "A30", "--outside", "400MiB"], command, timeout=900)
    report = outcome.report
    if not report:
        print(outcome.log[-4000:])
        return 1
    print("vLLM %s: %s, weights %s, KV tokens %s, %.0f s wall" %
          (version, report["verdict"], report["weights_bytes"], report["kv"]["tokens"], outcome.seconds))
    total = report["gpu"]["total_bytes"]
    held = {hold["owner"]: hold["bytes"] for hold in report["phases"][-1]["holds"]} if report["phases"] else {}
    peaks = [phase["peak_bytes"] for phase in report["phases"]]
    checks = {
        "it starts": report["verdict"] == "fits" and outcome.code == 0,
        "the version is the engine's": report["engine"]["version"] == version,
        "weights are those of 125 M half-precision parameters": 0.2 < (report["weights_bytes"] or 0) / 2**30 < 0.3,
        "the KV cache fills the budget": peaks and 0.85 * total < max(peaks) <= total,
        "the KV cache is a row": held.get("KV cache", 0) > 0.5 * total,
        "rows add up": all(sum(h["bytes"] for h in p["holds"]) == p["peak_bytes"] for p in report["phases"]),
        "calls are counted": report["calls"].get("cudaMalloc", 0) > 10,
    }
    for sentence, holds in checks.items():
        print("%s %s" % ("ok  " if holds else "FAIL", sentence))
    if not all(checks.values()):
        print(outcome.log[-4000:])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
