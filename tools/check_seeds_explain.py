#!/usr/bin/env python3
"""The reported cases, as the engine's own logs tell them: check_seeds_explain.py BINARY [LOGS [MODELS]]

LOGS has the logs of the engines raised again on stand-in devices, compressed or not; by default those of tests/evidence. With MODELS (model folders), or
the configs there, explain is joined with plan.
Each failing log must get its cause, the fix that keeps performance and the flags that change nothing; each log of a fix must be healthy."""
import gzip
import json
import os
import subprocess
import sys

import scorelib

EVIDENCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "evidence")
FAILING = {
    "seed000-opt2.7b-tp4-v0.11.0-kv17.24.log": ("runtime_sampler", "vllm/flex-attention-mask", 40 << 20, ["--max-num-batched-tokens", "TRITON_ATTN"], ["--enforce-eager"]),
    "seed000-opt2.7b-tp4-v0.11.0.log": ("runtime_", "vllm/flex-attention-mask", None, ["--max-num-batched-tokens"], ["--enforce-eager"]),
    "seed001-qwen3.6-27b-rtx5090-v0.19.1.log": ("cudagraph_profile", "vllm/cudagraph-profile-hybrid", 1.56 * 2**30, ["--max-num-seqs", "--kv-cache-memory-bytes"],
                                               ["--gpu-memory-utilization", "--max-model-len", "upgrade"]),
    "seed002-qwen3.6-27b-23gib-v0.19.1.log": ("cudagraph_profile", "vllm/cudagraph-profile-hybrid", 1.53 * 2**30, ["--max-num-seqs", "--kv-cache-memory-bytes"],
                                             ["--gpu-memory-utilization", "--max-model-len"]),
    "seed002-gmu-0.88.log": ("cudagraph_profile", "vllm/cudagraph-profile-hybrid", 1.53 * 2**30, ["--max-num-seqs"], ["--gpu-memory-utilization"]),
    "seed004-qwen3-235b-tp4-v0.21.0.log": ("quant_postprocess", "vllm/moe-repack-cumem-strand", 20 << 20, ["--enable-sleep-mode", "0.24.0"], ["--gpu-memory-utilization", "--enforce-eager"]),
    "seed004-qwen3-235b-rank-v0.21.0.log": ("quant_postprocess", "vllm/moe-repack-cumem-strand", 20 << 20, ["0.24.0"], ["--enforce-eager"]),
}
HEALTHY = ["seed000-fix-opt2.7b-max-num-batched-tokens-2048.log", "seed000-fix-opt2.7b-triton-attn.log", "seed000-opt1.3b-tp4-v0.11.0.log",
           "seed000-opt6.7b-tp4-v0.11.0.log", "seed001-fix-kv-cache-memory-bytes.log", "seed001-fix-max-num-seqs-16.log", "seed002-fix-enforce-eager.log",
           "seed004-fix-max-split-21.log", "seed004-qwen3-235b-rank-v0.20.2.log"]


def log(folder, name):
    path = os.path.join(folder, name)
    with gzip.open(path + ".gz", "rt", encoding="utf-8") if os.path.exists(path + ".gz") else open(path, encoding="utf-8") as file:
        return file.read()


def explain(binary, text):
    run = subprocess.run([binary, "explain", "--json", "-"], input=text.encode(), capture_output=True, check=False)
    return [json.loads(line) for line in run.stdout.decode().splitlines()]


def escaped(text):
    """As it arrives from a forum that escapes Markdown."""
    return "".join("\\" + c if c in "[]_*" else c for c in text).replace('"', "&quot;")


def differs(answers, phase, signature, tried, fixes, inert):
    ooms = [a for a in answers if a["is_oom"]]
    if not ooms:
        return "no OOM found"
    answer = ooms[0]
    helps = json.dumps([f["change"] for f in answer["fixes"]])
    idle = json.dumps([d["change"] for d in answer["dead_ends"]])
    wrong = []
    if not answer["phase"].startswith(phase):
        wrong.append("phase " + answer["phase"])
    if answer["signature"] != signature:
        wrong.append("signature %s" % answer["signature"])
    if tried and abs((answer["numbers"]["tried_bytes"] or 0) - tried) > 2**23:
        wrong.append("tried %s" % answer["numbers"]["tried_bytes"])
    wrong += ["%s is not offered" % f for f in fixes if f not in helps]
    wrong += ["%s is not named inert" % f for f in inert if f not in idle]
    if answer["ledger"] and sum(row["bytes"] for row in answer["ledger"]) != answer["numbers"]["total_bytes"] - answer["numbers"]["free_bytes"]:
        wrong.append("the ledger does not add up")
    return "; ".join(wrong)


def main():
    binary, logs = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.join(EVIDENCE, "seeds")
    models = sys.argv[3] if len(sys.argv) > 3 and os.path.isdir(sys.argv[3]) else None if len(sys.argv) > 2 else scorelib.unpacked(os.path.join(EVIDENCE, "models.json"))
    bad = total = 0

    def told(name, wrong):
        nonlocal bad, total
        total += 1
        bad += bool(wrong)
        print("%s %s%s" % ("FAIL" if wrong else "ok  ", name, ": " + wrong if wrong else ""))

    for name, expected in FAILING.items():
        text = log(logs, name)
        told(name, differs(explain(binary, text), *expected))
        told(name + ", Markdown", differs(explain(binary, escaped(text)), *expected))
    for name in HEALTHY:
        answers = explain(binary, log(logs, name))
        told(name, "" if not any(a["is_oom"] for a in answers) else "an OOM was found")
    if models:
        text = log(logs, "seed001-qwen3.6-27b-rtx5090-v0.19.1.log")
        joined = explain(binary, text.replace("<path>/q27-ct-g32", os.path.join(models, "Qwen3.6-27B-AWQ-INT4")))[0]
        told("001 joined with plan", "" if "reproduces this failure" in (joined["plan_check"] or "") and "--max-num-seqs" in (joined["plan_flags"] or "") and
             any("CUDA graphs" in (f.get("keeps") or "") for f in joined["fixes"]) else "%s %s" % (joined["plan_check"], joined["plan_flags"]))
        other = explain(binary, text.replace("<path>/q27-ct-g32", os.path.join(models, "Llama-2-7b")))[0]
        told("001 with another model: plan says that it does not reproduce it", "" if "does not reproduce" in (other["plan_check"] or "") and not other["plan_flags"]
             else "%s" % other["plan_check"])
    print("seeds explained: %d of %d" % (total - bad, total))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
