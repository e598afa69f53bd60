#!/usr/bin/env python3
"""Failing starts of SGLang whose truth is known, and what `explain` says of their logs: sglang_failing.py BINARY [--keep DIR] [VERSION...]

Of each way one start counts its allocations, then one of them is denied at a time (`dryrun --fail-after`), spread over the start. The
truth is the phase of the process that was denied. A start that survives is counted as such."""
import argparse
import contextlib
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import engines  # noqa: E402
import explainlib  # noqa: E402
import forked  # noqa: E402
import sglang_beside  # noqa: E402

SURE = 0.35  # OOS_PHASE_GUESSED of the report
WAYS = [("dense", "qwen3, 4 layers", sglang_beside.PLAIN), ("experts", "qwen3-moe, 4 layers", sglang_beside.PLAIN),
        ("graphs", "qwen3, 4 layers", sglang_beside.DECODE)]
ALLOCATE = ("cudaMalloc", "cudaMallocAsync", "cuMemAlloc_v2", "cuMemCreate")
SHARES = (0.05, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 1.0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--keep")
    args = parser.parse_intermixed_args()
    binary, found = os.path.abspath(args.binary), sglang_beside.environments()
    if not found:
        return engines.SKIP
    counts = {"right": 0, "wrong": 0, "unknown": 0, "survived": 0}
    for version in args.versions or list(found):
        folder = found[version]
        env = engines.environment(folder)
        with contextlib.ExitStack() as stack:
            with engines.turn():
                programs = stack.enter_context(forked.Engine(binary, folder, env, "4090", sglang_beside.IMPORTED))
            place = stack.enter_context(tempfile.TemporaryDirectory())
            for way, model, flags in WAYS:
                command = ["sglang", "serve", sglang_beside.place_of(place, model)] + flags

                def start(number):
                    return engines.dryrun(binary, folder, ["--gpu", "4090", "--fail-after", str(number)], command,
                                          {"PATH": programs + ":" + env["PATH"]}, timeout=120, waits=False)
                with engines.turn():
                    calls = (start(10 ** 9).report or {}).get("calls") or {}
                    total = sum(calls.get(call, 0) for call in ALLOCATE)
                    for number in sorted({max(1, round(share * total)) for share in SHARES}):
                        judge(binary, args.keep, "%s-%s-%d" % (version, way, number), start(number), counts)
    print("%(right)d right, %(wrong)d wrong, %(unknown)d can't tell, %(survived)d survived" % counts)
    return 0


def judge(binary, keep, name, outcome, counts):
    denied = ((outcome.report or {}).get("child") or {}).get("denied")
    if not denied or outcome.report["verdict"] == "fits":
        counts["survived"] += 1
        print(name, "survived" if denied else "was not reached", flush=True)
        return
    log = "\n".join(line for line in outcome.log.split("\n") if not line.startswith("oomsight "))
    with tempfile.NamedTemporaryFile("w", suffix=".log", encoding="utf-8") as f:
        f.write(log)
        f.flush()
        got = explainlib.answer_of(explainlib.incidents_of(binary, f.name, []))
    sure = got and got["phase"] != "unknown" and got["phase_sure"] >= SURE
    result = "unknown" if not sure else "right" if got["phase"] == denied["phase"] else "wrong"
    counts[result] += 1
    print(name, result, denied["phase"], got and (got["phase"], got["phase_sure"]), flush=True)
    if keep:
        os.makedirs(keep, exist_ok=True)
        with open(os.path.join(keep, "%s.%s.%s.log" % (result, denied["phase"], name)), "w", encoding="utf-8") as f:
            f.write(log)


if __name__ == "__main__":
    sys.exit(main())
