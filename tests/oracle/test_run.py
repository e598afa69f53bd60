"""`oomsight run` over the stand-in device, whose own counters are the truth: a PyTorch program that fills its budget, and one real vLLM start inside
one, of the newest engine that is installed; exit 77 without an engine.

    tests/oracle/test_run.py BINARY [--torch-only]
    tests/oracle/test_run.py BINARY --ways VERSION [WAY...]     eager, graphs, tp2, moe, hybrid, quantised: event by event
    tests/oracle/test_run.py BINARY --seed-002                  a 23 GiB slice of a larger card, on vLLM 0.19.1
    tests/oracle/test_run.py BINARY --share VERSION             two engines on one card
    tests/oracle/test_run.py BINARY --torch VENV...             PyTorch programs, two settings of its allocator, event by event
    tests/oracle/test_run.py BINARY --sglang                    the same as a way, of SGLang"""
import glob
import json
import os
import re
import struct
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
    """Of the PyTorch that is installed there, without the time of importing it."""
    (path,) = glob.glob(folder + "/lib/python3*/site-packages/torch/version.py")
    with open(path, encoding="utf-8") as f: return re.search(r"^cuda.*= '(\d+)", f.read(), re.M).group(1)


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


# way: device, model, flags. As docs/evidence/dryrun.md has them, with few layers: what is counted is every call, whoever makes it.
WAYS = {
    "eager": ("A30", "opt-1.3b", ["--enforce-eager"]),
    "graphs": ("L40S", "llama-3.2-1b", ["--max-num-seqs", "16"]),
    "tp2": ("A30x2", "qwen2.5-7b", ["--tensor-parallel-size", "2", "--enforce-eager"]),
    "tp2 in 12 GiB": ("A30x2", "qwen2.5-7b", ["--tensor-parallel-size", "2", "--enforce-eager"]),
    "moe": ("A100-80GB", "qwen3-30b-a3b", ["--enforce-eager"]),
    "hybrid": ("H100", "nemotron-nano-9b", ["--enforce-eager"]),
    "quantised": ("L4", "llama-3.1-8b-gptq", ["--enforce-eager"]),
}


def few_layers(scratch, name):
    """The model with two layers; a hybrid with one of each kind."""
    config = models.nemotron_h("M*-") if name.startswith("nemotron") else models.small(name)
    models.MODELS[name + "-small"] = config
    return models.write(scratch, name + "-small")


MALLOC, FREE = 1, 2


def events(path):
    """{(pid, device): [(kind, address, size)]} of a trace (include/oomsight/trace.h)."""
    found = {}
    with open(path, "rb") as f: data = f.read()
    for at in range(256, len(data) - 39, 40):
        _, size, address, _, pid, device, kind = struct.unpack_from("<QQQQIHH", data, at)
        found.setdefault((pid, device), []).append((kind, address, size))
    return found


def same_events(guard_path, device_path):
    """The guard's events against the stand-in's of the same process (`run --trace` writes the one that holds most): each size at each address, in the order of that address.
    The stand-in also writes down, with no bytes, graphs that are given back."""
    def by_address(found):
        table = {}
        for (pid, _), list_of in found.items():
            for kind, address, size in list_of:
                if kind in (MALLOC, FREE) and size and pid in traced: table.setdefault((pid, address), []).append((kind, size))
        return table
    ours, theirs = events(guard_path), events(device_path)
    traced = {pid for pid, _ in ours}
    mine = by_address(ours)
    taken = sum(size for list_of in mine.values() for kind, size in list_of if kind == MALLOC)
    return mine == by_address(theirs), sum(map(len, ours.values())), taken


def way(binary, folder, scratch, name, command, gpu):
    report, guard, device = (os.path.join(scratch, x) for x in ("run.json", "guard.trace", "device.trace"))
    words = [binary, "dryrun", "--json", "--gpu", gpu, "--trace", device, "--cuda", engines_cuda(folder), "--timeout", "560", "--",
             binary, "run", "--report", report, "--trace", guard, "--no-bundle"] + (["--budget", "12GiB"] if "12 GiB" in name else []) + ["--"] + command
    done = subprocess.run(words, capture_output=True, text=True, env=engines.environment(folder))
    run = read(report)
    if not run or not run["devices"] or not os.path.exists(guard): return done.stderr, {"%s ends with a report" % name: False}
    same, count, taken = same_events(guard, device)
    try: verdict = json.loads(done.stdout)["verdict"]
    except ValueError: verdict = "no report"
    print("%s: %s, %d events, %d bytes taken, phase %s, at most %s" %
          (name, verdict, count, taken, run["phase"], " ".join("%.2f GiB" % (d["peak_bytes"] / GIB) for d in run["devices"])), flush=True)
    print("   ", {k: round(v / GIB, 2) for k, v in run["devices"][0]["owners_at_peak"].items()})
    return done.stderr, {"%s: every event is the stand-in's, to the byte" % name: same and count > 20, "%s: nothing was refused" % name: run["refused"] == 0,
                         "%s: it starts" % name: verdict == "fits", "%s: it stays inside" % name: all(d["peak_bytes"] <= d["budget_bytes"] for d in run["devices"])}


def one_way(version, name):
    gpu, model, flags = WAYS[name]
    def part(binary, folder, scratch):
        command = [folder + "/bin/vllm", "serve", few_layers(scratch, model)] + flags
        return way(binary, folder, scratch, "%s %s" % (version, name), command, gpu)
    return part


def seed_002(binary, folder, scratch):
    """By every API the total is 23 GiB, and the engine dies as on a card of that size and as plan says."""
    report = os.path.join(scratch, "run.json")
    flags = ["--language-model-only", "--quantization", "auto_round", "--kv-cache-dtype", "fp8_e5m2", "--attention-backend", "flashinfer",
             "--gpu-memory-utilization", "0.92", "--max-model-len", "32768"]
    command = [folder + "/bin/vllm", "serve", models.write(scratch, "qwen3.6-27b-autoround")] + flags
    words = [binary, "dryrun", "--json", "--gpu", "A6000", "--outside", "500MiB", "--cuda", engines_cuda(folder), "--timeout", "1500", "--",
             binary, "run", "--budget", "23GiB", "--report", report, "--"] + command
    env = dict(engines.environment(folder), OOMSIGHT_BUNDLE_DIR=os.path.join(scratch, "bundles"))
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    run = read(report)
    try: device = json.loads(done.stdout)
    except ValueError: device = None
    if not run or not device: return done.stderr, {"the engine ends with a report": False}
    bundles = glob.glob(scratch + "/bundles/*/bundle.json")
    bundle = read(bundles[0]) if bundles else {}
    print(json.dumps({key: device.get(key) for key in ("verdict", "phase", "tried_bytes", "weights_bytes")}), run["first_refused"])
    print(json.dumps(bundle))
    return done.stderr, {
        "the engine dies in the trial capture, for a tensor of the trial cache":
            device["phase"] == "cudagraph_profile" and run["first_refused"] and run["first_refused"]["bytes"] == 1568 << 20,
        "its message has the slice's total": "total capacity of 23.00 GiB" in done.stderr,
        "the plan beside it says the same": bool(bundle.get("plan")) and bundle["plan"]["phase"] == "cudagraph_profile" and bundle["plan"]["verdict"] == "fails",
        "the larger card itself refused nothing": device["child"]["failed_allocations"] == 0,
    }


ENGINE = """
import os, sys, time
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
from vllm import LLM
folder, mine, other = sys.argv[1:4]
llm = LLM(folder + "/opt-125m", load_format="dummy", skip_tokenizer_init=True, enforce_eager=True, gpu_memory_utilization=0.9)
open(folder + "/ready-" + mine, "w").close()
print("Application startup complete", flush=True)
until = time.time() + 400
while not os.path.exists(folder + "/ready-" + other) and time.time() < until: time.sleep(0.2)
os._exit(0 if time.time() < until else 1)
"""


def shared(binary, folder, scratch):
    """One has 9 GiB, the other what it leaves; both fill nine tenths of theirs."""
    models.write(scratch, "opt-125m")
    with open(scratch + "/engine.py", "w", encoding="utf-8") as f: f.write(ENGINE)
    run = '"$0" run --no-bundle --share %s' % os.path.basename(scratch)
    script = 'cd %s; %s --budget 9GiB --report a.json -- python engine.py . a b & sleep 1; %s --report b.json -- python engine.py . b a; wait' % (scratch, run, run)
    words = [binary, "dryrun", "--json", "--gpu", "L4", "--outside", "400MiB", "--cuda", engines_cuda(folder), "--timeout", "560", "--", "sh", "-c", script, binary]
    done = subprocess.run(words, capture_output=True, text=True, env=engines.environment(folder))
    a, b = read(scratch + "/a.json"), read(scratch + "/b.json")
    try: device = json.loads(done.stdout)
    except ValueError: device = None
    if not device or not a or not b or not a["devices"] or not b["devices"]: return done.stderr, {"two engines end with a report": False}
    one, two = a["devices"][0], b["devices"][0]
    print("two engines on %.2f GiB: at most %.2f of %.2f and %.2f of %.2f" %
          tuple(x / GIB for x in (one["total_bytes"], one["peak_bytes"], one["budget_bytes"], two["peak_bytes"], two["budget_bytes"])), flush=True)
    return done.stderr, {
        "both were there at once": os.path.exists(scratch + "/ready-a") and os.path.exists(scratch + "/ready-b"),
        "each stays inside its part": one["peak_bytes"] <= one["budget_bytes"] == 9 * GIB and two["peak_bytes"] <= two["budget_bytes"],
        "each fills its part": one["peak_bytes"] > 0.8 * one["budget_bytes"] and two["peak_bytes"] > 0.8 * two["budget_bytes"],
        "together they stay inside the card": one["peak_bytes"] + two["peak_bytes"] <= one["total_bytes"] and device["child"]["failed_allocations"] == 0,
        "nothing was refused": a["refused"] == b["refused"] == 0,
    }


def sglang(binary, folder, scratch):
    command = [folder + "/bin/python", "-m", "sglang.launch_server", "--model-path", models.write(scratch, "opt-125m"), "--load-format", "dummy",
               "--skip-tokenizer-init", "--disable-cuda-graph", "--attention-backend", "triton", "--sampling-backend", "pytorch"]
    return way(binary, folder, scratch, "SGLang", command, "L4")


CHURN = """
import random, torch
random.seed(7)
held = []
for step in range(600):
    if held and random.random() < 0.45: held.pop(random.randrange(len(held)))
    else: held.append(torch.empty(random.choice((1 << 10, 3 << 20, 40 << 20, 150 << 20)) + random.randrange(1 << 20), dtype=torch.uint8, device="cuda"))
    if sum(t.numel() for t in held) > 12 << 30: held = held[::2]
    if step % 200 == 199: torch.cuda.empty_cache()
"""


def churning(settings):
    """A PyTorch program that takes and gives at random, under one setting of its allocator."""
    def part(binary, folder, scratch):
        program = os.path.join(scratch, "churn.py")
        with open(program, "w", encoding="utf-8") as f: f.write(CHURN)
        command = ["env", "PYTORCH_CUDA_ALLOC_CONF=" + settings, folder + "/bin/python", program]
        return way(binary, folder, scratch, "%s, %s" % (os.path.basename(folder), settings or "default"), command, "L4")
    return part


def parts_of(words):
    """(part, folder) for what was asked; None: the usual."""
    if "--ways" in words:
        version, *wanted = words[words.index("--ways") + 1:]
        return [(one_way(version, name), engines.venvs()[version]) for name in wanted or WAYS]
    if "--share" in words: return [(shared, engines.venvs()[words[-1]])]
    if "--seed-002" in words: return [(seed_002, engines.venvs()["0.19.1"])]
    if "--torch" in words:
        return [(churning(settings), os.path.join(engines.VENVS, name)) for name in words[words.index("--torch") + 1:]
                for settings in ("", "expandable_segments:True")]  # an asynchronous pool keeps what the guard counts as given back
    if "--sglang" in words: return [(sglang, os.path.join(engines.VENVS, "sglang-0.5.23"))]
    return None


def main():
    binary = os.path.abspath(sys.argv[1])
    found = engines.venvs()
    if not found:
        print("no engine in", engines.VENVS)
        return engines.SKIP
    folder = list(found.values())[-1]
    good = True
    usual = [(part, folder) for part in [torch_program] + ([] if "--torch-only" in sys.argv else [engine])]
    for part, folder in parts_of(sys.argv[2:]) or usual:
        with tempfile.TemporaryDirectory() as scratch: log, checks = part(binary, folder, scratch)
        for sentence, holds in checks.items(): print("%s %s" % ("ok  " if holds else "FAIL", sentence))
        if not all(checks.values()):
            print(log[-4000:])
            if os.environ.get("OOMSIGHT_KEEP_LOGS"):
                with open(os.path.join(os.environ["OOMSIGHT_KEEP_LOGS"], "test_run.log"), "w", encoding="utf-8") as f: f.write(log)
        good = good and all(checks.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
