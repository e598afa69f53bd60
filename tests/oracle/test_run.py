"""`oomsight run` over the stand-in device, whose own counters are the truth: a PyTorch program that fills its budget, and one real vLLM start inside
one. The newest engine that is installed; exit 77 without an engine.

    tests/oracle/test_run.py BINARY [--torch-only]"""
import json
import os
import subprocess
import sys
import tempfile

import engines
import models

GIB = 1 << 30
PROGRAM = """
import json, sys, torch
answer = {"seen": list(torch.cuda.mem_get_info()), "property": torch.cuda.get_device_properties(0).total_memory}
held = []
try:
    while True: held.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError: answer["blocks"] = len(held)
answer["full"] = list(torch.cuda.mem_get_info())
json.dump(answer, open(sys.argv[1], "w"))
"""


def read(path):
    if not os.path.exists(path): return None
    with open(path, encoding="utf-8") as f: return json.load(f)


def guarded(binary, folder, scratch, budget, command, timeout):
    """The report of the guard, that of the stand-in device, the log, and how it ended."""
    path = os.path.join(scratch, "run.json")
    major = engines_cuda(folder)
    words = [binary, "dryrun", "--json", "--gpu", "L4", "--outside", "400MiB", "--cuda", major, "--timeout", str(timeout), "--",
             binary, "run", "--budget", budget, "--report", path, "--"] + command
    done = subprocess.run(words, capture_output=True, text=True, env=engines.environment(folder))
    try: device = json.loads(done.stdout)
    except ValueError: device = None
    return read(path), device, done.stderr, done.returncode


def engines_cuda(folder):
    asked = "import torch; print(torch.version.cuda.split('.')[0])"
    return subprocess.run([folder + "/bin/python", "-c", asked], capture_output=True, text=True, check=True).stdout.strip()


def torch_program(binary, folder, scratch):
    program, path = os.path.join(scratch, "fill.py"), os.path.join(scratch, "answer.json")
    with open(program, "w", encoding="utf-8") as f: f.write(PROGRAM)
    run, device, log, _ = guarded(binary, folder, scratch, "4GiB", [folder + "/bin/python", program, path], 600)
    answer = read(path)
    if not run or not device or not answer: return log, {"a PyTorch program ends with a report": False}
    row = run["devices"][0]
    return log, {
        "PyTorch sees the budget as the total, by both ways": answer["seen"][1] == answer["property"] == 4 * GIB,
        "it gets what fits and no more": answer["blocks"] == (4 * GIB - (400 << 20)) // (256 << 20),
        "the refusals are counted": run["refused"] >= 1 and row["refused"] == run["refused"],
        "the guard's peak is the device's": row["peak_bytes"] == max(p["peak_bytes"] for p in device["phases"]),
        "the device itself refused nothing": device["child"]["failed_allocations"] == 0,
    }


def engine(binary, folder, scratch):
    model = models.write(scratch, "opt-125m")
    command = [folder + "/bin/vllm", "serve", model, "--enforce-eager", "--gpu-memory-utilization", "0.9"]
    run, device, log, _ = guarded(binary, folder, scratch, "6GiB", command, 900)
    if not run or not device: return log, {"vLLM ends with a report": False}
    row = run["devices"][0]
    measured = max((p["peak_bytes"] for p in device["phases"]), default=0)
    print("vLLM in 6 GiB of an L4: %s, %s KV tokens; the guard counts %d bytes at most, the device %d" %
          (device["verdict"], device["kv"]["tokens"], row["peak_bytes"], measured))
    return log, {
        "vLLM starts inside the budget": device["verdict"] == "fits",
        "it filled nine tenths of the budget, not of the card": 0.8 * 6 * GIB < row["peak_bytes"] <= 6 * GIB,
        "nothing was refused": run["refused"] == 0,
        "what the guard counts is within 1 % of what the device counts": abs(row["peak_bytes"] - measured) < 0.01 * measured,
    }


def main():
    binary = os.path.abspath(sys.argv[1])
    found = engines.venvs()
    if not found:
        print("no engine in", engines.VENVS)
        return engines.SKIP
    folder = list(found.values())[-1]
    good = True
    for part in [torch_program] + ([] if "--torch-only" in sys.argv else [engine]):
        with tempfile.TemporaryDirectory() as scratch: log, checks = part(binary, folder, scratch)
        for sentence, holds in checks.items(): print("%s %s" % ("ok  " if holds else "FAIL", sentence))
        if not all(checks.values()): print(log[-4000:])
        good = good and all(checks.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
