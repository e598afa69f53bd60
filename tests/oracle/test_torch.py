"""Real PyTorch wheels, one for CUDA 12 and one for CUDA 13, on a device that is not there. Exit 77 without any.

    tests/oracle/test_torch.py BINARY"""
import json
import os
import subprocess
import sys
import tempfile

import engines

here = os.path.dirname(os.path.abspath(__file__))


def serving(binary, folder, python, major):
    """What the module in the engine's processes does, and the history that it leaves for `replay`."""
    with tempfile.TemporaryDirectory() as scratch:
        snapshot = os.path.join(scratch, "snapshot.pickle")
        outcome = engines.dryrun(binary, folder, ["--gpu", "L4", "--snapshot", snapshot], [python, os.path.join(here, "aid_checks.py")], {}, 300)
        replayed = subprocess.run([binary, "replay", "--json", snapshot], capture_output=True, text=True, check=False).stdout
    print("\n".join("  " + line for line in outcome.log.splitlines() if line.startswith(("ok", "FAIL"))))
    report = json.loads(replayed) if replayed.startswith("{") else {}
    sound = {"the checks pass": bool(outcome.report) and outcome.report["child"]["exit"] == 0,
             "the report has the steps": bool(outcome.report) and outcome.report["steps"]["prefill"] and outcome.report["steps"]["sampler"],
             "the snapshot is replayed to the state it ends in": report.get("reproduced") is True and report["source"] == "requests",
             "and what other settings would have done is told": len(report.get("what_if", [])) > 3}
    for sentence, holds in sound.items():
        print("%s %s" % ("ok  " if holds else "FAIL", sentence))
    if not all(sound.values()):
        print("CUDA %d\n" % major + outcome.log[-3000:])
    return all(sound.values())


def main():
    binary = os.path.abspath(sys.argv[1])
    found = engines.venvs()
    by_major = {}
    for version, folder in found.items():
        by_major[13 if engines.version_key(version) >= [0, 20] else 12] = folder
    if not by_major:
        print("no engine in", engines.VENVS)
        return engines.SKIP
    failed = 0
    for major, folder in sorted(by_major.items()):
        python = os.path.join(folder, "bin", "python")
        device = ["--gpu", "A30x2", "--gpu-total", "8GiB", "--outside", "300MiB"]
        runs = [("checks", [], {}), ("expandable segments", ["allocator"], {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
                ("cudaMallocAsync", ["allocator"], {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})]
        runs.append(("a scan on 8.9", ["scan"], {}))
        for name, words, env in runs:
            outcome = engines.dryrun(binary, folder, ["--gpu", "L4"] if words == ["scan"] else device, [python, os.path.join(here, "torch_checks.py")] + words, env, 300)
            child = outcome.report["child"]["exit"] if outcome.report else None
            print("CUDA %d, %s: child %s, %.0f s" % (major, name, child, outcome.seconds))
            if child != 0:
                failed += 1
            if child != 0 or name == "checks":
                print("\n".join("  " + l for l in outcome.log.splitlines() if l.startswith(("ok", "FAIL")) or child)[-4000:])
        failed += not serving(binary, folder, python, major)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
