#!/usr/bin/env python3
"""No smaller change starts: minimal.py LIBRARY MODELS [--count N] [--seed S] [--csv FILE] [--verbose]

Random commands of both engines that fail (model x GPU x release x flags), and the first suggestion of each, against the planner itself:
the whole command, as one would paste it, planned again with other values.

single  one lever: every value between the command's and the suggested one fails. Shares by 0.01, the rest by the lever's step
        (levers.json); far from the suggestion every so many steps.
two     no single lever of its rung or a higher one, at any value, and no pair that moves one less and the other no more. More than two:
        each of them, with the others as they are.
rung    no single lever of a higher rung, at any value; nor all of them at once, as far as each goes.
none    where nothing is suggested: no single lever at all.

A smaller change counts if it is as certain (starts, or probably starts) and holds a request as long as the suggestion does; of other
levers, one to work with (8,192 tokens, or 2,048 where the suggestion itself holds fewer). Exit 1 below 100 % of single, rung and none, and
95 % of the others."""
import argparse
import collections
import itertools
import json
import os
import random
import shlex
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPUS = ["t4", "l4", "a10", "rtx4060ti", "3090", "4090", "5090", "a100-40gb", "l40s", "a100", "h100", "h200", "4090x2", "l4x4", "h100x2"]
RELEASES = {"vllm": ["0.32.0", "0.32.0", "0.28.0", "0.24.0", "0.19.1", "0.14.0", "0.11.0"], "sglang": ["0.5.23", "0.5.23", "0.5.18", "0.5.9"]}
# flag: how often it is given, and its values (None: a switch)
FLAGS = {
    "vllm": {
        "--max-model-len": (.4, [2048, 8192, 16384, 32768, 65536, 131072]),
        "--max-num-seqs": (.3, [8, 32, 64, 128, 256, 512, 1024]),
        "--max-num-batched-tokens": (.25, [2048, 4096, 8192, 16384, 32768]),
        "--gpu-memory-utilization": (.35, [.3, .5, .6, .7, .8, .85, .88, .9, .92, .95, .98]),
        "--kv-cache-dtype": (.1, ["auto", "fp8"]),
        "--enforce-eager": (.15, [None]),
        "--compilation-config": (.08, ['{"max_cudagraph_capture_size": 256}', '{"cudagraph_mode": "PIECEWISE"}']),
        "--limit-mm-per-prompt": (.1, ['{"image":2}', '{"image":8,"video":1}']),
        "--enable-sleep-mode": (.05, [None]),
        "--speculative-config": (.06, ['{"method": "ngram", "num_speculative_tokens": 3}', '{"method": "mtp", "num_speculative_tokens": 1}']),
        "--kv-cache-memory-bytes": (.05, [2**28, 2**30, 10 * 2**30, 40 * 2**30]),
        "--num-gpu-blocks-override": (.04, [100, 1000]),
        "--tensor-parallel-size": (.15, [2, 4]),
    },
    "sglang": {
        "--context-length": (.4, [2048, 8192, 16384, 32768, 65536, 131072]),
        "--mem-fraction-static": (.45, [.3, .5, .6, .7, .8, .85, .9, .92, .95, .98]),
        "--max-running-requests": (.3, [8, 64, 256, 512, 1024, 4096]),
        "--chunked-prefill-size": (.25, [2048, 4096, 8192, 16384, 32768]),
        "--cuda-graph-max-bs": (.15, [64, 160, 256, 512]),
        "--kv-cache-dtype": (.1, ["fp8_e4m3"]),
        "--disable-cuda-graph": (.1, [None]),
        "--tp-size": (.15, [2, 4]),
    },
}
USED = [None] * 9 + ["1GiB", "2GiB", "4GiB", "8GiB"]
SHARES = ("--gpu-memory-utilization", "--mem-fraction-static")
LENGTHS = ("--max-model-len", "--context-length")
CAPTURE = "--compilation-config.max_cudagraph_capture_size"
SETUP = {"--gpu-memory-utilization": "gpu_memory_utilization", "--mem-fraction-static": "gpu_memory_utilization", "--max-model-len": "max_model_len",
         "--context-length": "max_model_len", "--max-num-seqs": "max_num_seqs", "--max-running-requests": "max_num_seqs",
         "--max-num-batched-tokens": "max_num_batched_tokens", "--chunked-prefill-size": "max_num_batched_tokens", CAPTURE: "max_cudagraph_capture_size",
         "--cuda-graph-max-bs": "max_cudagraph_capture_size", "--cuda-graph-max-bs-decode": "max_cudagraph_capture_size"}
USUAL, LEAST = 8192, 2048  # tokens of a request: one to work with, and the least
FEW = 32  # concurrent requests of SGLang that a command without a number keeps while something else can go


def ladder(engine):
    with open(os.path.join(ROOT, "data", "engines", engine, "levers.json"), encoding="utf-8") as f:
        return json.load(f)["levers"]


def release_of(text):
    return tuple(int(part) for part in text.split("."))


class Command:
    """Words, with flags in place of others."""

    def __init__(self, words):
        self.words = list(words)

    def at(self, flag):
        return next((i for i, word in enumerate(self.words) if word == flag), None)

    def value(self, flag):
        if flag == CAPTURE and self.at(flag) is None:
            config = self.value("--compilation-config")
            return json.loads(config).get("max_cudagraph_capture_size") if config else None
        at = self.at(flag)
        return None if at is None else self.words[at + 1]

    def without(self, flag, switch=False):
        at = self.at(flag)
        return self if at is None else Command(self.words[:at] + self.words[at + (1 if switch else 2):])

    def giving(self, flag, value=None):
        if flag == CAPTURE and self.at("--compilation-config") is not None:
            config = json.loads(self.value("--compilation-config"))
            config.pop("cudagraph_capture_sizes", None)
            return self.giving("--compilation-config", json.dumps({**config, "max_cudagraph_capture_size": value}))
        at = self.at(flag)
        if value is None:
            return self if at is not None else Command(self.words + [flag])
        text = ("%.2f" % value) if flag in SHARES else str(value)
        return Command(self.words + [flag, text]) if at is None else Command(self.words[:at + 1] + [text] + self.words[at + 2:])

    def has(self, flag):
        return self.value(flag) is not None if flag == CAPTURE else self.at(flag) is not None


class Case:
    """A failing command, planned as often as it takes."""

    def __init__(self, oomsight, engine, version, gpu, used, words):
        self.oomsight, self.engine, self.version, self.gpu, self.used = oomsight, engine, version, gpu, used
        self.command, self.plans, self.known, self.idle = Command(words), 0, {}, False
        self.levers = {lever["id"]: lever for lever in ladder(engine) if self.here(lever)}

    def here(self, lever):
        release = release_of(self.version)
        return release_of(lever.get("since", "0")) <= release and ("until" not in lever or release <= release_of(lever["until"]))

    def ask(self, command, fixes=False):
        self.plans += 1
        return self.oomsight.plan(command.words, gpu=self.gpu, gpu_used=self.used, engine="%s=%s" % (self.engine, self.version), hub=False, fixes=fixes).data

    def begin(self):
        self.plan = self.ask(self.command, True)
        return self.plan

    def look(self, command):
        """0: fails, 1: probably starts, 2: starts; and the longest request that it holds."""
        key = tuple(command.words)
        if key not in self.known:
            try:
                plan = self.ask(command)
            except self.oomsight.OomsightError:
                self.known[key] = 0, 0
            else:
                certain = 0 if plan["likely"] != "starts" else 1 if plan["phase"] else 2  # a doubt of the release is in no phase
                length = plan["setup"]["max_model_len"]
                # a pool of another size than the length asks for
                chosen = self.engine == "sglang" or "auto" in command.words or command.has("--num-gpu-blocks-override")
                self.known[key] = certain, min(length, plan["kv"]["tokens"]) if chosen else length
        return self.known[key]

    def text(self):
        words = [os.path.basename(word) if os.sep in word else word for word in self.command.words]
        return "%s %s %s%s: %s" % (self.engine, self.version, self.gpu, " used %s" % self.used if self.used else "", shlex.join(words))

    # ---- levers and their values -------------------------------------------------------------------------------------

    def own(self, flag):
        return self.plan["setup"][SETUP[flag]]

    def step(self, flag):
        if flag in SHARES:
            return .01
        return int(next((lever["step"] for lever in self.levers.values() if flag.startswith(lever.get("flag", "-?")) and "step" in lever), 1))

    def least(self, flag):
        if flag == "--max-running-requests" and not self.command.has(flag):
            return FEW
        return min([int(lever["value"]) for lever in self.levers.values() if flag == lever.get("flag") and lever.get("value", "").isdigit()] or [8])

    def between(self, flag, value):
        """Values nearer to the command's own than `value`, next to it all of them."""
        own, step = self.own(flag), self.step(flag)
        if flag in SHARES:
            first, last = sorted((round(value * 100), own * 100))
            return [n / 100 for n in range(int(first) - 1, int(last) + 2) if abs(n / 100 - own) < abs(value - own) - 1e-9 and (n / 100 > own) == (value > own)]
        if not own or own <= value:
            return []
        near = [value + step * k for k in range(1, 49) if value + step * k < own]
        far = [value // step * step + step * k for k in range(49, (own - value) // step + 1, max(1, (own - value) // step // 48))]
        return near + [v for v in far if value < v < own]

    def range(self, flag):
        """Values of the lever over all it may take, as it is left out."""
        own = self.own(flag)
        if flag in SHARES:
            return [n / 100 for n in range(5, 98) if abs(n / 100 - own) > 1e-9]
        least = self.least(flag)
        values, value = [], own - self.step(flag) if own else 4096
        while value > least:
            values.append(int(value) // self.step(flag) * self.step(flag) or least)
            value = value * 4 // 5
        return sorted({v for v in values + [least] + [USUAL] * (flag in LENGTHS) if least <= v < (own or 1 << 62)}, reverse=True)

    def restored(self, command, flag):
        """The command with this flag as it was."""
        behind = command.words[command.at(flag) + 1:][:1] if flag != CAPTURE else ["1"]
        switch = not behind or behind[0].startswith("--")
        was = None if switch else self.command.value(flag)
        if was is not None:
            return command.giving(flag, float(was) if flag in SHARES else was)
        if flag == CAPTURE and command.at(flag) is None:
            return command.giving("--compilation-config", self.command.value("--compilation-config"))
        return command.without(flag, switch)

    # ---- rungs ---------------------------------------------------------------------------------------------------------

    def rung(self, lever):
        flag = CAPTURE if lever.get("value") == "max_cudagraph_capture_size" else lever.get("flag", "")
        return lever.get("given", lever["rung"]) if self.command.has(flag) else lever["rung"]

    def single(self, lever, base=None):
        """Every command that this lever makes of `base`, of the command itself where there is none."""
        base = base or self.command
        flag, move, setup = lever.get("flag"), lever["move"], self.plan["setup"]
        if lever["id"] in ("utilization_up", "utilization_down", "fraction_up", "fraction_down"):
            return [base.giving(flag, v) for v in self.range(flag) if (v > self.own(flag)) == (move == "raise")]
        if lever["id"] in ("capture", "capture_unused") and self.engine == "vllm":
            if setup["enforce_eager"] or release_of(self.version) < (0, 11, 1):
                return []
            unused = lever["id"] == "capture_unused"
            return [base.giving(CAPTURE, v) for v in self.range(CAPTURE) if not unused or (v >= setup["max_num_seqs"] and not self.command.has("--speculative-config"))]
        if lever["id"] == "capture":
            flag = "--cuda-graph-max-bs" if self.command.has("--cuda-graph-max-bs") or release_of(self.version) < (0, 5, 13) else flag
            return [] if setup["enforce_eager"] else [base.giving(flag, v) for v in self.range(flag)]
        if flag in SETUP and move == "lower":
            return [base.giving(flag, v) for v in self.range(flag) if v < (self.own(flag) or 1 << 62)]
        if move == "drop":
            return [base.without(flag)] if self.command.has(flag) else []
        if lever["id"] == "mm_limit":
            return [] if self.command.has(flag) or self.command.has("--language-model-only") else [base.giving(flag, '{"image":1,"video":0}')]
        if lever["id"] == "kv_fp8":
            return [] if self.command.has(flag) and self.command.value(flag) != "auto" else [base.giving(flag, lever["value"])]
        if lever["id"] == "kv_bytes":
            return [] if self.command.has(flag) else [base.giving(flag, mib << 20) for mib in (64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)]
        if lever["id"] == "sleep_off":
            return [base.without(flag, True)] if self.command.has(flag) else []
        if lever["id"] == "text_only":
            return [] if self.idle or self.command.has("--limit-mm-per-prompt") else [base.giving(flag)]
        if lever["id"] == "backend":
            return [] if self.command.has(flag) else [base.giving(flag, lever["value"])]
        return []  # a thing to do, a variable, or of the last rung; a length that the engine chooses is one of those

    def alone(self, rung):
        """Commands that one lever of this rung or a higher one makes and that start: (certainty, length, rung, lever, command)."""
        cut = self.rung(self.levers["model_len" if self.engine == "vllm" else "context"])
        for lever in self.levers.values():
            if self.rung(lever) > rung:
                continue
            for command in self.single(lever):
                certain, length = self.look(command)
                if certain and lever["id"] == "kv_bytes":  # nothing else guards this number: an eighth is left
                    certain = self.look(command.giving(lever["flag"], int(command.value(lever["flag"])) * 8 // 7))[0]
                lost = max(self.rung(lever), cut) if length < self.plan["setup"]["max_model_len"] else self.rung(lever)
                if certain and lost <= rung:
                    yield certain, length, lost, lever["id"], command

    def together(self, rung, least):
        """All levers of higher rungs at once, each as far as it goes, with every other share: what starts is (certainty, length, command)."""
        command, shares, fp8 = self.command, [None], False
        for lever in self.levers.values():
            if self.rung(lever) >= rung:
                continue
            flag = lever.get("flag")
            if flag in SHARES:
                shares += [v for v in self.range(flag)[::2] if (v > self.own(flag)) == (lever["move"] == "raise")]
            elif flag in LENGTHS and lever["move"] == "lower":
                command = command.giving(flag, min(least, self.own(flag)))
            elif lever["id"] == "kv_fp8":
                fp8 = bool(self.single(lever))
            elif lever["id"] not in ("kv_bytes", "backend", "model_len_auto", "capture_unused"):
                command = (self.single(lever, command) or [command])[-1]
        share = next(flag for flag in SHARES if any(lever.get("flag") == flag for lever in self.levers.values()))
        for cache in (False, True)[:1 + fp8]:
            begun = command.giving("--kv-cache-dtype", self.levers["kv_fp8"]["value"]) if cache else command
            for value in shares:
                other = begun if value is None else begun.giving(share, value)
                certain, length = self.look(other)
                if length >= self.plan["setup"]["max_model_len"] or self.rung(self.levers["model_len" if self.engine == "vllm" else "context"]) < rung:
                    yield certain, length, other


# ---- one suggestion -----------------------------------------------------------------------------------------------------------

def moved(case, answer):
    """Flags of the change, with their values."""
    words, flags = answer["change"], {}
    for i, word in enumerate(words):
        if word.startswith("--"):
            value = words[i + 1] if i + 1 < len(words) and not words[i + 1].startswith("--") else None
            if word == "--compilation-config":
                word, value = CAPTURE, str(json.loads(value)["max_cudagraph_capture_size"])
            flags[word] = float(value) if word in SHARES else int(value) if value and value.isdigit() else value
    return flags


def judge(case, answer):
    """Names of what was looked at, each with the smaller change that was found, or None."""
    command = Command(shlex.split(answer["command"]))
    flags = moved(case, answer)
    case.idle = "--tensor-parallel-size" in flags  # GPUs that do nothing are used before images go
    certain, held = case.look(command)
    if not certain:
        return {"single": "does not start: " + answer["command"]}
    whole = case.plan["setup"]["max_model_len"]
    usable = min(whole, USUAL) if held >= min(whole, USUAL) else min(whole, LEAST)

    def starts(candidate, least):
        found, length = case.look(candidate)
        return found >= certain and length >= least

    found, kind = {}, {0: "drop", 1: "single", 2: "two"}.get(len(flags), "more")
    miss = None
    for flag, value in flags.items():
        for other in case.between(flag, value) if flag in SETUP else ():
            if starts(command.giving(flag, other), held):
                miss = miss or "%s %s in place of %s" % (flag, other, value)
        left = case.restored(command, flag)
        if starts(left, held if len(flags) > 1 else 0):
            miss = miss or "without %s" % flag
    if len(flags) == 2:
        miss = miss or pair(case, command, flags, starts, held)
    alone = [(rung, "alone: %s: %s" % (name, shlex.join(better.words[3:]))) for sure, length, rung, name, better in case.alone(answer["rung"])
             if sure >= certain and length >= usable]
    if len(flags) > 1:
        miss = miss or next((text for _, text in alone), None)
    found[kind] = miss
    found["rung"] = next((text for rung, text in alone if rung < answer["rung"]), None)
    if answer["rung"] > "b" and not found["rung"]:
        found["rung"] = next(("together: " + shlex.join(better.words[3:]) for sure, length, better in case.together(answer["rung"], usable)
                              if sure >= certain and length >= usable), None)
    return found


def pair(case, command, flags, starts, held):
    numbers = [flag for flag in flags if flag in SETUP]
    if len(numbers) < 2:
        return None
    lists = [[flags[flag]] + thin(case.between(flag, flags[flag]), 12) for flag in numbers]
    for values in itertools.product(*lists):
        if list(values) == [flags[flag] for flag in numbers]:
            continue
        other = command
        for flag, value in zip(numbers, values):
            other = other.giving(flag, value)
        if starts(other, held):
            return " ".join("%s %s" % pair for pair in zip(numbers, values))
    return None


def thin(values, count):
    return values if len(values) <= count else values[:count // 2] + values[count // 2::max(1, (len(values) - count // 2) * 2 // count)]


def draw(rng, models, engine):
    model = rng.choice(models)
    words = ["vllm", "serve", model] if engine == "vllm" else ["python3", "-m", "sglang.launch_server", "--model-path", model]
    for flag, (share, values) in FLAGS[engine].items():
        if rng.random() < share:
            value = rng.choice(values)
            words += [flag] if value is None else [flag, str(value)]
    return engine, rng.choice(RELEASES[engine]), rng.choice(GPUS), rng.choice(USED), words


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("models")
    parser.add_argument("--count", type=int, default=200, help="suggestions that are looked at")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    os.environ["OOMSIGHT_LIBRARY"] = os.path.abspath(args.library)
    sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
    import oomsight
    rng = random.Random(args.seed)
    models = sorted(os.path.join(args.models, name) for name in os.listdir(args.models) if os.path.isfile(os.path.join(args.models, name, "config.json")))
    right, of, plans, looked, silent = collections.Counter(), collections.Counter(), 0, collections.Counter(), collections.Counter()
    while sum(looked.values()) < args.count:
        case = Case(oomsight, *draw(rng, models, "sglang" if looked["sglang"] * 2 < looked["vllm"] else "vllm"))
        try:
            if case.ask(case.command)["phase"] == "weight_load" and rng.random() < .9:
                continue  # weights of no flag's reach, mostly
            plan = case.begin()
        except oomsight.OomsightError:
            continue
        if plan["likely"] != "fails" or plan["phase"] in ("arguments", "env"):
            continue
        answers = [a for a in (plan["answers"] or plan["fixes"][:1]) if not a.get("release")]
        if answers:
            looked[case.engine] += 1
            found = judge(case, answers[0])
        elif silent[case.engine] < args.count // 8 and not plan["answers"]:
            silent[case.engine] += 1
            found = {"none": next(("%s: %s" % (name, shlex.join(better.words[3:])) for _, length, _, name, better in case.alone("d") if length >= LEAST), None)}
        else:
            continue
        plans += case.plans
        for kind, miss in found.items():
            of[case.engine, kind] += 1
            right[case.engine, kind] += miss is None
            if miss or args.verbose:
                print("%s: %s\n    %s\n    %s" % (kind if miss else "right", case.text(), answers[0]["verdict"] + " " + answers[0]["rung"] + " " + shlex.join(answers[0]["change"]) if answers else "nothing", miss))
    kinds = [kind for kind in ("single", "two", "more", "drop", "rung", "none") if any(k == kind for _, k in of)]
    rows = ["engine,kind,minimal,of"] + ["%s,%s,%d,%d" % (engine, kind, right[engine, kind], of[engine, kind]) for engine in ("vllm", "sglang") for kind in kinds]
    print("\n".join(rows))
    print("%d suggestions, %d commands without one, %d plans" % (sum(looked.values()), sum(silent.values()), plans))
    if args.csv:
        with open(args.csv, "w", encoding="utf-8") as f:
            f.write("\n".join(rows) + "\n")
    total = {kind: (sum(right[e, kind] for e in RELEASES), sum(of[e, kind] for e in RELEASES)) for kind in kinds}
    return any(n < (.95 if kind in ("two", "more") else 1) * m for kind, (n, m) in total.items())


if __name__ == "__main__":
    sys.exit(main())
