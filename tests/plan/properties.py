#!/usr/bin/env python3
"""What must hold of every plan, tried on random starts: model, GPU, release, flags, environment.

usage: properties.py BINARY LIBRARY [--count N] [--seed N] [--models DIR] [--verbose]

Each start is planned, then planned again with one thing changed: other order of flags, more memory, a fix that was offered, a
flag that was said to change nothing. Prints the commands that break a property and ends with one line; exit 1 when there are any.
The same seed gives the same starts. Models: the fixtures, and those of --models."""
import argparse
import collections
import json
import os
import random
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(ROOT, "tests", "fixtures", "models")
STARTS = {"fits": 3, "tight": 2, "unknown": 1, "refused": 0, "fails": 0}

# flag: how often it is given, and its values ([]: a switch)
FLAGS = {
    "--max-model-len": (.5, [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]),
    "--max-num-seqs": (.5, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]),
    "--max-num-batched-tokens": (.35, [512, 1024, 2048, 4096, 8192, 16384, 32768]),
    "--gpu-memory-utilization": (.5, [.3, .5, .6, .7, .8, .85, .88, .9, .92, .95, .97, .98]),
    "--tensor-parallel-size": (.35, [1, 2, 4, 8]),
    "--pipeline-parallel-size": (.08, [2, 4]),
    "--data-parallel-size": (.06, [2, 4]),
    "--enable-expert-parallel": (.05, []),
    "--kv-cache-dtype": (.2, ["auto", "fp8", "fp8_e4m3", "fp8_e5m2", "bfloat16"]),
    "--enforce-eager": (.15, []),
    "--quantization": (.08, ["fp8", "bitsandbytes", "awq", "gptq_marlin", "compressed-tensors"]),
    "--dtype": (.1, ["bfloat16", "float16", "half", "auto", "float32"]),
    "--block-size": (.08, [16, 32, 64, 128]),
    "--enable-lora": (.06, []),
    "--max-loras": (.04, [1, 4, 8]),
    "--max-lora-rank": (.04, [8, 16, 64]),
    "--speculative-config": (.08, ['{"method": "%s", "num_speculative_tokens": %d}' % (m, n)
                                   for m in ("mtp", "ngram", "eagle3") for n in (1, 2, 3, 5)]),
    "--compilation-config": (.12, ['{"cudagraph_mode": "PIECEWISE"}', '{"max_cudagraph_capture_size": 64}',
                                   '{"cudagraph_capture_sizes": [1,2,4,8]}', '{"level": 0}', '{"mode": 3}',
                                   '{"cudagraph_mode": "NONE"}', '{"cudagraph_mode": "FULL_DECODE_ONLY"}']),
    "--kv-cache-memory-bytes": (.05, [2**30, 4 * 2**30, 10 * 2**30, 40 * 2**30]),
    "--cpu-offload-gb": (.05, [1, 4, 10, 40]),
    "--enable-sleep-mode": (.05, []),
    "--limit-mm-per-prompt": (.04, ['{"image": 0, "video": 0}', '{"image": 1}', '{"image": 8, "video": 1}']),
    "--language-model-only": (.04, []),
    "--no-enable-prefix-caching": (.05, []),
    "--enable-prefix-caching": (.05, []),
    "--num-gpu-blocks-override": (.04, [100, 1000, 5000]),
    "--disable-hybrid-kv-cache-manager": (.04, []),
    "--attention-backend": (.04, ["FLASH_ATTN", "FLASHINFER", "TRITON_ATTN"]),
    "--async-scheduling": (.04, []),
    "--no-async-scheduling": (.04, []),
    "--no-enable-chunked-prefill": (.05, []),
    "--mamba-cache-mode": (.03, ["all", "align"]),
    "--decode-context-parallel-size": (.03, [2]),
    "--seed": (.04, [1]),
    "--trust-remote-code": (.03, []),
}
VARIABLES = {"VLLM_USE_V2_MODEL_RUNNER": ["0", "1"], "VLLM_USE_V1": ["0", "1"], "VLLM_ATTENTION_BACKEND": ["FLASHINFER"],
             "PYTORCH_CUDA_ALLOC_CONF": ["expandable_segments:True"], "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": ["0", "1"]}
UTILIZATION = "--gpu-memory-utilization"
# Values of the flags that a plan may call inert, away from the ends it has tried itself.
INERT_VALUES = {
    "--gpu-memory-utilization": [.06, .2, .4, .6, .8, .9, .95, .97], "--max-model-len": [300, 1024, 8192, 40960, 131072],
    "--max-num-seqs": [1, 3, 16, 128, 500, 2000], "--max-num-batched-tokens": [512, 1024, 4096, 16384, 65536],
    "--kv-cache-dtype": ["fp8", "fp8_e5m2"], "--enforce-eager": [None], "--cpu-offload-gb": [1, 8, 40],
}


def figures(value):
    """All but the commands to paste, which are written as the user wrote theirs."""
    if isinstance(value, dict):
        return {key: figures(inner) for key, inner in value.items() if key != "command"}
    return [figures(inner) for inner in value] if isinstance(value, list) else value


class Start:
    """A command with its device and release."""

    def __init__(self, model, flags, device):
        self.model, self.flags, self.device = model, flags, device

    def words(self):
        return ["vllm", "serve", self.model] + [str(word) for flag in self.flags for word in flag]

    def with_flag(self, name, *value):
        return Start(self.model, [f for f in self.flags if f[0] != name] + [[name, *value]], self.device)

    def with_words(self, words):
        """Pasted behind the command: the last one wins. NAME=value goes to the environment."""
        device = dict(self.device)
        if "=" in words[0] and not words[0].startswith("-"):
            name, value = words[0].split("=", 1)
            device["env"] = {**(device.get("env") or {}), name: value}
            words = words[1:]
        return Start(self.model, self.flags + ([list(words)] if words else []), device)

    def pasted(self, command):
        """The whole command of a fix, in place of this one."""
        words, device = shlex.split(command), dict(self.device)
        if words[:2] == ["pip", "install"]:  # another release of the engine
            device["vllm"] = words[2].split("==")[1]
            words = words[4:]
        while "=" in words[0] and not words[0].startswith("-"):
            name, value = words.pop(0).split("=", 1)
            device["env"] = {**(device.get("env") or {}), name: value}
        assert words[:3] == ["vllm", "serve", self.model], command
        return Start(self.model, [words[3:]] if words[3:] else [], device)

    def on(self, **device):
        return Start(self.model, self.flags, {k: v for k, v in {**self.device, **device}.items() if v is not None})

    def given(self, name):
        return next((f[1] if len(f) > 1 else True for f in self.flags if f[0] == name), None)

    def shell(self):
        device = dict(self.device)
        options = ["oomsight", "plan", "--offline"]
        for name in ("gpu", "gpu_total", "gpu_used", "vllm"):
            if name in device:
                options += ["--" + name.replace("_", "-"), str(device[name])]
        for name, value in (device.get("env") or {}).items():
            options += ["--env", "%s=%s" % (name, value)]
        return " ".join(shlex.quote(word) for word in options + ["--"] + self.words())


class Trial:
    """The starts of one seed, the plans that were made of them and what they broke."""

    def __init__(self, oomsight, rng, models, gpus, versions):
        self.oomsight, self.rng, self.models, self.gpus, self.versions = oomsight, rng, models, gpus, versions
        self.checked, self.broken, self.verdicts = collections.Counter(), collections.Counter(), collections.Counter()
        self.examples = collections.defaultdict(list)
        self.plans = 0
        self.unified = ()

    def start(self):
        rng = self.rng
        flags = [[name, rng.choice(values)] if values else [name] for name, (often, values) in FLAGS.items() if rng.random() < often]
        given = {flag[0] for flag in flags}
        flags = [f for f in flags if not (f[0].startswith("--no-") and "--" + f[0][5:] in given)]  # of two opposites the last one wins
        name, total = rng.choice(self.gpus)
        device = {"gpu": name, "vllm": rng.choice(self.versions)}
        if rng.random() < .15:
            device["gpu_used"] = int(total * rng.choice([.01, .05, .1, .3]))
        if rng.random() < .15:
            device["gpu_total"] = int(total * rng.uniform(.4, 1.6))
        if rng.random() < .1:
            variable = rng.choice(sorted(VARIABLES))
            device["env"] = {variable: rng.choice(VARIABLES[variable])}
        return Start(rng.choice(self.models), flags, device), total

    def plan(self, start, fixes=False):
        self.plans += 1
        data = self.oomsight.plan(start.words(), hub=False, fixes=fixes, **start.device).data
        data["notes"] = sorted(data["notes"])  # one for each flag, in the order of the flags
        return data

    def holds(self, name, right, start, *seen):
        self.checked[name] += 1
        if right:
            return
        self.broken[name] += 1
        if len(self.examples[name]) < 5:
            self.examples[name].append((start.shell(), " ".join(str(s) for s in seen)[:400]))

    # ---- one plan by itself ----

    def ledger(self, start, plan):
        for phase in plan["phases"]:
            if not phase["holds"] and not phase["limit_bytes"]:
                continue  # a refusal before the device is looked at
            name, peak, limit = phase["phase"], phase["peak_bytes"], phase["limit_bytes"]
            self.holds("rows add up", sum(row["bytes"] for row in phase["holds"]) == peak, start, name, peak)
            self.holds("a range holds its value", phase["peak_low"] <= peak <= phase["peak_high"], start, name)
            for row in phase["holds"]:
                self.holds("a range holds its value", row["low"] <= row["bytes"] <= row["high"], start, name, row)
            # a cache of a shape that the engine does not take is refused whatever is left
            bad_shape = name == "kv_sizing" and not phase["ok"] and not re.search("GiB|memory|state|Mamba", phase.get("message", ""))
            bad_shape |= name == "kv_sizing" and not phase["ok"] and any(flag[0] == "--num-gpu-blocks-override" for flag in start.flags)  # its blocks, not bytes, are too few
            self.holds("ok means within the limit", phase["ok"] == (peak <= limit) or bad_shape, start, name, peak, limit, plan["why"])
            self.holds("a range holds its value", phase["limit_low"] <= limit <= phase["limit_high"], start, name)
        for part in plan["parts"]:
            self.holds("a range holds its value", part["low"] <= part["bytes"] <= part["high"], start, part)

    def verdict(self, start, plan):
        phases, verdict = plan["phases"], plan["verdict"]
        decides = next((p for p in phases if p["phase"] == plan["phase"]), None)
        if verdict == "fits":
            self.holds("what starts has no phase in doubt", all(p["ok"] and not p["tight"] for p in phases), start)
            self.holds("what starts has a cache", plan["kv"]["tokens"] > 0 or not plan["kv"]["bytes_per_token"], start, plan["kv"])
        elif verdict in ("fails", "refused") and decides and decides["holds"]:
            self.holds("what fails has a phase that fails", any(not p["ok"] and not p["tight"] for p in phases), start, plan["phase"])
            first = next((p["phase"] for p in phases if not p["ok"]), None)
            self.holds("the phase that is named is the first that fails", plan["phase"] == first, start, plan["phase"], first)
        elif verdict == "tight":
            self.holds("what is tight has a phase in doubt, or a doubt", any(p["tight"] for p in phases) or plan["doubts"], start)
        self.holds("what does not start says why", verdict == "fits" or plan["why"], start, verdict, plan["phase"])

    # ---- planned again ----

    def same_words(self, start, plan):
        flags = start.flags[:]
        self.rng.shuffle(flags)
        other = self.plan(Start(start.model, flags, start.device), True)
        if plan["phase"] == "arguments":  # of several mistakes the first is told
            same = (other["verdict"], other["phase"], other["kv"]) == (plan["verdict"], plan["phase"], plan["kv"])
        else:
            same = figures(other) == figures(plan)
        self.holds("the order of flags does not matter", same, start, [f[0] for f in flags])
        joined = [["=".join(str(word) for word in flag)] for flag in start.flags]
        self.holds("--flag=value is --flag value", figures(self.plan(Start(start.model, joined, start.device), True)) == figures(plan), start)

    def fixes(self, start, plan):
        for fix in plan["fixes"]:
            again = self.plan(start.pasted(fix["command"]))
            said = (fix["verdict"], fix["kv_tokens"], fix["phase"])
            seen = (again["verdict"], again["kv"]["tokens"], again["phase"])
            self.holds("a fix does what it says", said == seen, start, fix["command"], "said", said, "planned", seen)
            words = fix["change"]
            length = words[words.index("--max-model-len") + 1] if "--max-model-len" in words else "auto"
            self.holds("no fix is shorter than 2,048 unless asked", length == "auto" or int(length) >= min(2048, plan["setup"]["max_model_len"]),
                       start, words)
            offload = float(words[words.index("--cpu-offload-gb") + 1]) if "--cpu-offload-gb" in words else 0
            self.holds("host memory is not promised", offload <= 64 and not (offload and start.device["gpu"] in self.unified), start, words)
            self.holds("a fix starts", fix["verdict"] in ("fits", "tight"), start, fix["change"], fix["verdict"])

    def inert(self, start, plan):
        for claim in plan["inert"]:
            flag = claim["flag"]
            for value in INERT_VALUES[flag]:
                if flag == "--max-num-batched-tokens" and value < plan["setup"]["max_num_seqs"]:
                    continue  # refused by the engine
                if flag == "--max-num-seqs" and value > plan["setup"]["max_num_batched_tokens"]:
                    continue
                again = self.plan(start.with_flag(flag, *([] if value is None else [value])))
                still = again["phase"] == plan["phase"] and again["likely"] == "fails"
                self.holds("an inert flag is inert", still or STARTS[again["verdict"]] <= STARTS[plan["verdict"]], start, flag, value,
                           plan["verdict"], plan["phase"], "becomes", again["verdict"], again["phase"])
                passes = next((p["ok"] and not p["tight"] for p in again["phases"] if p["phase"] == plan["phase"]), False)
                self.holds("no value of an inert flag gets past the phase", not passes, start, flag, value, plan["phase"])
        inert = {claim["flag"] for claim in plan["inert"]}
        for fix in plan["fixes"]:
            flags = {word for word in fix["change"] if word.startswith("--")}
            self.holds("no fix is of inert flags alone", fix.get("without") or not flags or not flags <= inert, start, fix["change"])

    def suggested(self, start, plan):
        """Something is said to whoever cannot start; each command has every flag once, and the least step of the utilization."""
        variable = plan["phase"] == "env" and "VLLM_ATTENTION_BACKEND" in (start.device.get("env") or {})  # no flag says it
        if plan["verdict"] in ("fails", "refused") and not variable:
            # ... or the reason for which no flag can help: a PyTorch without code for the GPU
            self.holds("what fails has an answer or a need", plan["fixes"] or plan["needs"] or plan["doubts"], start, plan["phase"], plan["why"])
        for fix in plan["fixes"]:
            flags = [word for word in shlex.split(fix["command"]) if word.startswith("--")]
            own = [str(word) for flag in start.flags for word in flag if str(word).startswith("--")]
            twice = {flag for flag in flags if flags.count(flag) > max(1, own.count(flag))}
            self.holds("no flag twice in a command", not twice, start, fix["command"])
            self.holds("nothing in a command is hidden", "***" not in fix["command"], start, fix["command"])
        # an answer for length or requests may raise it further: the nearest of all is the least change
        own = plan["setup"]["gpu_memory_utilization"]
        found = [float(fix["change"][1]) for fix in plan["fixes"]
                 if fix["change"][:1] == [UTILIZATION] and len(fix["change"]) == 2 and fix["verdict"] == "fits"]
        for near in ([value for value in found if value > own], [value for value in found if value < own]):
            if near:
                self.nearest(start, plan, min(near, key=lambda value: abs(value - own)))

    def nearest(self, start, plan, found):
        own = plan["setup"]["gpu_memory_utilization"]
        for hundredth in range(5, 98):
            value = hundredth / 100
            if (own < value < found - .001) or (found + .001 < value < own):
                again = self.plan(start.with_flag(UTILIZATION, value))
                self.holds("the utilization is the nearest that fits", again["verdict"] != "fits", start, found, "offered", value, "fits")

    def more_memory(self, start, plan, total):
        """Defaults that come from the device's size are pinned: they are another command on a larger device."""
        setup = plan["setup"]
        pinned = start.with_flag("--max-num-seqs", setup["max_num_seqs"])
        pinned = pinned.with_flag("--max-num-batched-tokens", setup["max_num_batched_tokens"])
        before = self.plan(pinned)
        total = start.device.get("gpu_total") or total
        others = [pinned.on(gpu_total=int(total * more)) for more in (1.02, 1.15, 1.6)]
        if "gpu_used" in start.device:
            others.append(pinned.on(gpu_used=2**20))
        for other in others:
            after = self.plan(other)
            self.holds("more memory makes no answer worse", STARTS[after["verdict"]] >= STARTS[before["verdict"]], pinned,
                       before["verdict"], before["phase"], "becomes", after["verdict"], after["phase"], other.device)

    def beside(self, start, plan):
        """What has nothing to do with memory leaves everything as it is."""
        extra = self.rng.choice([["--port", "9000"], ["--served-model-name", "x"], ["--seed", "3"], ["--api-key", "secret"]])
        again = self.plan(start.with_words(extra))
        left_out = ("fixes", "answers", "inert", "notes", "needs")
        self.holds("a flag without memory changes nothing",
                   {k: v for k, v in again.items() if k not in left_out} == {k: v for k, v in plan.items() if k not in left_out},
                   start, extra)

    def one(self):
        start, total = self.start()
        try:
            plan = self.plan(start, True)
        except self.oomsight.OomsightError as error:
            self.holds("a command that is not understood is the user's mistake", not isinstance(error, self.oomsight.InternalError), start, error)
            return
        self.verdicts[plan["verdict"]] += 1
        self.ledger(start, plan)
        self.verdict(start, plan)
        self.same_words(start, plan)
        self.fixes(start, plan)
        self.inert(start, plan)
        self.suggested(start, plan)
        self.beside(start, plan)
        if plan["verdict"] != "unknown" and plan["phases"] and plan["phases"][0]["limit_bytes"]:
            self.more_memory(start, plan, total)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", help="a folder of model folders beside the fixtures")
    parser.add_argument("--verbose", action="store_true", help="how often each property was looked at")
    options = parser.parse_args()
    os.environ["OOMSIGHT_LIBRARY"] = os.path.abspath(options.library)
    sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
    sys.dont_write_bytecode = True
    import oomsight

    folders = [FIXTURES] + [options.models] * bool(options.models)
    models = sorted(os.path.join(folder, name) for folder in folders for name in os.listdir(folder)
                    if os.path.isfile(os.path.join(folder, name, "config.json")))
    known = json.loads(subprocess.check_output([options.binary, "gpus", "--json"]))["gpus"]
    gpus = [(g["aliases"][0], g["total_bytes"]) for g in known]
    words = subprocess.check_output([options.binary, "engines"], text=True).split()
    versions = words[1:words.index("sglang")]  # vLLM's come first
    trial = Trial(oomsight, random.Random(options.seed), models, gpus, versions)
    trial.unified = {g["aliases"][0] for g in known if re.search("GB10|Orin|Thor|Xavier", g["name"])}  # the host's memory is theirs
    for _ in range(options.count):
        trial.one()
    for name, count in trial.broken.most_common():
        print("BROKEN %s: %d of %d" % (name, count, trial.checked[name]))
        for command, seen in trial.examples[name]:
            print("    %s\n        %s" % (command, seen))
    if options.verbose:
        print(dict(trial.verdicts))
        for name, count in sorted(trial.checked.items()):
            print("%8d  %s" % (count, name))
    print("%d random starts, %d plans, %d checks, %d broken (seed %d, %d models)" % (
        options.count, trial.plans, sum(trial.checked.values()), sum(trial.broken.values()), options.seed, len(models)))
    return 1 if trial.broken else 0


if __name__ == "__main__":
    sys.exit(main())
