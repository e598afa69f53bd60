#!/usr/bin/env python3
"""Failing starts of SGLang whose truth is known, and what `explain` says of their logs.

    tests/oracle/sglang_failing.py BINARY --keep DIR [--seconds N] [--seed N] [VERSION...]     makes logs, then scores all of DIR
    tests/oracle/sglang_failing.py BINARY --keep DIR --score [--half first|second]             scores what is there

Of each way one start counts its allocations; then one of them is denied at a time (`dryrun --fail-after`): every way in turn, at places
drawn from the seed. The truth is the phase of the process that was denied, as the dry run's report has it; it is in the name of the
log, from which the dry run's own lines are taken out. A start that survives is counted as such. Logs with an odd number are the first half,
to learn from; the others are held back. Without an environment of SGLang: exit 77."""
import argparse
import collections
import contextlib
import os
import random
import re
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import engines  # noqa: E402
import explainlib  # noqa: E402
import forked  # noqa: E402
import sglang_beside  # noqa: E402
from sglang_beside import DECODE, PLAIN  # noqa: E402

SURE = 0.35  # OOS_PHASE_GUESSED of the report
WAYS = [("dense", "qwen3, 4 layers", PLAIN), ("experts", "qwen3-moe, 4 layers", PLAIN), ("graphs", "qwen3, 4 layers", DECODE),
        ("latent", "deepseek-v2, 4 layers", PLAIN), ("awq", "llama awq, 4 layers", PLAIN), ("sliding", "small-sliding", DECODE)]
ALLOCATE = ("cudaMalloc", "cudaMallocAsync", "cuMemAlloc_v2", "cuMemCreate")
NAME = re.compile(r"(\d+)\.(\w+)\.(.*)\.log$")
OURS = re.compile(r"^(?:\[[^]]*\] ?)?oomsight ")


def places(total, dice):
    """Numbers of allocations: the later third, where a start has more phases, as often as the rest."""
    late = max(1, total * 2 // 3)
    while True:
        yield dice.randint(1, late)
        yield dice.randint(late, total)


def make(binary, version, folder, keep, seconds, dice):
    survived = 0
    env = engines.environment(folder)
    with contextlib.ExitStack() as stack:
        with engines.turn():
            programs = stack.enter_context(forked.Engine(binary, folder, env, "4090", sglang_beside.IMPORTED))
        place = stack.enter_context(tempfile.TemporaryDirectory())

        def start(model, flags, number):
            with engines.turn():
                return engines.dryrun(binary, folder, ["--gpu", "4090", "--fail-after", str(number)],
                                      ["sglang", "serve", sglang_beside.place_of(place, model)] + flags,
                                      {"PATH": programs + ":" + env["PATH"]}, timeout=120, waits=False)
        numbers, end = {}, time.time() + seconds  # without what importing takes
        while time.time() < end:
            for way, model, flags in WAYS:
                if way not in numbers:
                    calls = (start(model, flags, 10 ** 9).report or {}).get("calls") or {}
                    numbers[way] = places(sum(calls.get(call, 0) for call in ALLOCATE), dice) if calls else None
                if not numbers[way]:
                    continue
                for number in (next(numbers[way]), next(numbers[way])):
                    if time.time() < end:
                        survived += not kept(keep, "%s-%s-%d" % (version, way, number), start(model, flags, number))
    return survived


def kept(keep, name, outcome):
    """False: the start survived, or was not denied anything."""
    denied = ((outcome.report or {}).get("child") or {}).get("denied")
    if not denied or outcome.report["verdict"] == "fits":
        print(name, "survived" if denied else "was not reached", flush=True)
        return False
    log = "\n".join(line for line in outcome.log.split("\n") if not OURS.match(line))
    number = 1 + max([int(NAME.match(n).group(1)) for n in os.listdir(keep) if NAME.match(n)], default=0)
    with open(os.path.join(keep, "%d.%s.%s.log" % (number, denied["phase"], name)), "w", encoding="utf-8") as f:
        f.write(log)
    print(number, name, denied["phase"], round(outcome.seconds), flush=True)
    return True


def score(binary, keep, half):
    """Right, wrong, can't tell, by half; each miss of the half that may be looked at."""
    counts, wrong = collections.Counter(), collections.Counter()
    for name in sorted(os.listdir(keep), key=lambda n: int((NAME.match(n) or [0, "0"])[1])):
        found = NAME.match(name)
        if not found:
            continue
        of, truth = "first" if int(found.group(1)) % 2 else "second", found.group(2)
        if half and of != half:
            continue
        got = explainlib.answer_of(explainlib.incidents_of(binary, os.path.join(keep, name), []))
        sure = got and got["phase"] not in ("unknown", "not_oom") and got["phase_sure"] >= SURE
        result = "unknown" if not sure else "right" if got["phase"] == truth else "wrong"
        counts[of, result] += 1
        counts[of, "memory"] += bool(got and got["is_oom"])
        if result != "right":
            wrong[of, truth, got and got["phase"]] += 1
        if result != "right" and of == "first":
            print(name, result, got and (got["phase"], got["phase_sure"], got["rules"]["phase"]))
    for (of, truth, answer), count in sorted(wrong.items(), key=str):
        print("%s half: %s called %s: %d" % (of, truth, answer, count))
    for of in ("first", "second"):
        total = sum(counts[of, result] for result in ("right", "wrong", "unknown"))
        print("%s half: %d logs, said to be memory %d, stage right %d, wrong %d, can't tell %d" % (
            of, total, counts[of, "memory"], counts[of, "right"], counts[of, "wrong"], counts[of, "unknown"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--keep", required=True)
    parser.add_argument("--seconds", type=int, default=1200, help="for each release")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--score", action="store_true")
    parser.add_argument("--half", choices=("first", "second"))
    args = parser.parse_intermixed_args()
    binary, found = os.path.abspath(args.binary), sglang_beside.environments()
    os.makedirs(args.keep, exist_ok=True)
    if not args.score:
        if not found:
            return engines.SKIP
        dice = random.Random(args.seed)
        survived = sum(make(binary, version, found[version], args.keep, args.seconds, dice) for version in args.versions or list(found))
        print("%d starts survived" % survived)
    score(binary, args.keep, args.half)
    return 0


if __name__ == "__main__":
    sys.exit(main())
