"""oomsight doctor --measure finds the costs of a device again, and says what a driver that lacks calls, refuses, hangs or dies did.

    measure.py BINARY POOR_LIBCUDA DATA
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

BINARY, POOR, DATA = (os.path.abspath(path) for path in sys.argv[1:4])
COSTS = {"driver": "1", "graph_bytes": 70001, "graph_node_bytes": 7777, "kernel_bytes": 123456, "collective_bytes": 54321000}
failures = 0


def check(sentence, holds, seen):
    global failures
    if not holds:
        failures += 1
        print("failed:", sentence, "\n ", seen)


def poor(how, folder, *words):
    began = time.time()
    env = dict(os.environ, LD_LIBRARY_PATH=folder, POOR_CUDA=how)
    done = subprocess.run([BINARY, "doctor", "--measure", "--json", *words], env=env, capture_output=True, text=True, timeout=60)
    return done.returncode, json.loads(done.stdout), time.time() - began


def of_poor_drivers(folder):
    os.symlink(POOR, os.path.join(folder, "libcuda.so.1"))
    code, found, _ = poor("answers", folder)
    check("totals are told where calls are missing", found["measured"]["total_bytes"] == 4 << 30, found)
    check("without NVML a context is total less free", found["record"]["context_bytes"] == 100 << 20, found)
    check("calls that are missing are named", "cuGraphInstantiateWithFlags" in found["missing_calls"] and code == 1, found)
    check("... and what that leaves out", "lacks calls" in found["graphs_error"] and found["measured"]["graph_bytes"] is None, found)
    code, found, _ = poor("refuses", folder)
    check("a refusal is told with its number", code == 1 and found["error"] == "cuInit: error 100" and found["record"] is None, found)
    code, found, _ = poor("dies", folder)
    check("a driver that dies takes nobody with it", code == 1 and "ended the process" in found["error"], found)
    code, found, seconds = poor("hangs", folder, "--timeout", "1")
    check("a driver that hangs is given up in time", code == 1 and found["timed_out"] and found["stage"] == "cuInit" and seconds < 10, found)
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    check("... and leaves no process", f"{BINARY} doctor --measure --json --timeout 1" not in left, left[-300:])
    code, found, _ = poor("answers", folder, "--device", "5")
    check("a device that is not there is told", code == 1 and "cuDeviceGet" in found["error"], found)


def of_a_device_with_known_costs(folder, cuda):
    data = os.path.join(folder, "data")
    shutil.copytree(DATA, data)
    path = os.path.join(data, "gpus", "l40s.json")
    with open(path, encoding="utf-8") as file:
        gpu = json.load(file)
    gpu.update(driver_costs=COSTS, context_bytes=234567168, total_bytes=gpu["total_bytes"] - 54321)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(gpu, file)
    out = os.path.join(folder, "out.json")
    subprocess.run([BINARY, "dryrun", "--data", data, "--gpu", "L40Sx2", "--cuda", cuda, "--quiet", "--output", os.devnull, "--",
                    BINARY, "doctor", "--measure", "--json", "--output", out], capture_output=True, timeout=60)
    with open(out, encoding="utf-8") as file:
        found = json.load(file)
    seen = found["measured"]
    for key in ("graph_bytes", "graph_node_bytes", "kernel_bytes", "collective_bytes"):
        check(f"{key} is found again on CUDA {cuda}", seen[key] == COSTS[key], seen)
    check("so is the context", seen["context_bytes"] == gpu["context_bytes"] == found["record"]["context_bytes"], seen)
    check("so is the total", seen["total_bytes"] == gpu["total_bytes"], seen)
    check("a third set of graphs agrees", seen["graph_check_bytes"] == seen["graph_check_expected_bytes"], seen)
    check("the constants it would replace are named", {row["where"].split(": ")[1] for row in found["replaces"]} ==
          {"total_bytes", "context_bytes"} | {"driver_costs." + key for key in COSTS if key != "driver"}, found["replaces"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        of_poor_drivers(folder)
    for cuda in ("12", "13"):
        with tempfile.TemporaryDirectory() as folder:
            of_a_device_with_known_costs(folder, cuda)
    return failures > 0


sys.exit(main())
