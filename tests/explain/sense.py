#!/usr/bin/env python3
"""No suggestion of explain is without sense: none has the value that the log shows in use or one on its other side, none takes fewer ranks than
run, none is a lever that the ladder calls useless at the cause or the phase that is named, none is a flag that plan calls inert.

Each log of tests/evidence/reports and of the fixtures is explained as it is; with what was suggested in use, as the engine prints its arguments
and as a command; and with eight ranks, by the names of the processes. usage: sense.py BINARY [LOG...]"""
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(os.path.dirname(TESTS), "data", "engines")
FOLDERS = ("evidence/reports/*.log", "fixtures/kb/**/*.log", "fixtures/failing/**/*.log")
SURE = 0.5
RANKS = 8
RANK_OF = re.compile(r"(?<![A-Za-z])TP\d+(?!\d)|(?<=\[rank)\d+(?=\])")  # Worker_TP0, [... TP0], [rank0]
PLANNED = (("weight_load", "Qwen/Qwen3-32B", []), ("weight_load", "Qwen/Qwen3-32B", ["--cpu-offload-gb", "4"]), ("kv_sizing", "Qwen/Qwen3-8B", ["--max-model-len", "40960"]))
OTHER_RUNTIMES = ("MPS backend", "jaxlib", "onnxruntime", "tensorflow", "[TRT]", "paddle")  # vLLM's and SGLang's flags are nothing to them
RELEASE = "0.27.1"  # its V2 model runner has no offloader


def ladder(engine):
    with open(os.path.join(DATA, engine, "levers.json"), encoding="utf-8") as f:
        return json.load(f)["levers"]


LADDERS = {engine: ladder(engine) for engine in ("vllm", "sglang")}


def explain(binary, text):
    ran = subprocess.run([binary, "explain", "--offline", "--json", "-"], input=text, capture_output=True, timeout=60, check=False)
    return [json.loads(line) for line in ran.stdout.decode("utf-8", "replace").splitlines() if line.strip()]


def flags(incident):
    """(flag, value or None, direction or None) of each suggestion that is a flag of an engine."""
    for fix in incident["fixes"]:
        words = fix["change"]
        if fix.get("model"):
            continue  # of another checkpoint: what its flags do here says nothing
        asked = re.fullmatch(r"(?:in \w+: )?a (lower|higher) (--[\w-]+)(?:, by [\d.]+)?", words[0])
        told = re.fullmatch(r"(?:in \w+: )?(--[\w-]+)(?: (.*))?", words[0])
        if asked:
            yield asked.group(2), None, {"lower": "lower", "higher": "raise"}[asked.group(1)]
        elif told:
            yield told.group(1), words[1] if len(words) > 1 else told.group(2), None


def engine_of(incident):
    name = incident["engine"]["name"] or ""
    return next((engine for engine in LADDERS if name.startswith(engine)), "vllm")


def number(word):
    try:
        return float(word)
    except (TypeError, ValueError):
        return None


def moves(engine, flag):
    return {lever["move"] for lever in LADDERS[engine] if lever.get("flag") == flag}


def against_cause(incident):
    engine = engine_of(incident)
    changes = list(flags(incident))
    changes += [(word.split("=")[0], None, None) for fix in incident["fixes"] for word in fix["change"][:1] if re.match(r"[A-Z_]+=", word)]
    # what an old release is told by a lever of its own
    old = {(lever.get("flag"), lever["why"]["en"]) for lever in LADDERS[engine] if "until" in lever}
    told = {flag for flag, why in old for fix in incident["fixes"] if fix["why"] == why and flag and flag in " ".join(fix["change"])}
    for flag, value, way in changes:
        if flag in told:
            continue
        of_flag = [lever for lever in LADDERS[engine] if flag in (lever.get("flag"), lever.get("variable")) and way in (None, lever["move"])
                   and lever["move"] != "drop" and "until" not in lever and (way or len(moves(engine, flag) & {"raise", "lower"}) < 2)]
        useless = [one for one in (lever.get("useless", {"phases": [], "causes": []}) for lever in of_flag)
                   if (incident["phase_sure"] >= SURE and incident["phase"] in one["phases"] and incident["cause"] not in one.get("unless", []))
                   or (incident["cause_sure"] > SURE and incident["cause"] in one["causes"])]
        if of_flag and len(useless) == len(of_flag):
            yield "%s %s against %s, %s" % (flag, value or way or "", incident["phase"], incident["cause"])


def in_use(incident, used):
    engine = engine_of(incident)
    for flag, value, way in flags(incident):
        if flag not in used:
            continue
        before, after, ways = number(used[flag]), number(value), moves(engine, flag)
        if value == used[flag] and way is None:
            yield "%s %s is in use" % (flag, value or "")
        elif before is not None and after is not None and ways in ({"raise"}, {"lower"}):
            if after < before and "raise" in ways or after > before and "lower" in ways:
                yield "%s %s where %s is in use" % (flag, value, used[flag])


def arguments(engine, used, as_command):
    """A line of the log that has these flags: as the engine prints its arguments, or the command."""
    if as_command or engine == "sglang":
        start = {"vllm": "vllm serve some/model", "sglang": "python -m sglang.launch_server --model-path some/model"}[engine]
        return "$ " + start + "".join(" " + flag if value is None else " %s %s" % (flag, "'%s'" % value if "{" in value else value) for flag, value in used.items())
    pairs = {flag.lstrip("-").replace("-", "_"): True if value is None else json.loads(value) if re.fullmatch(r"\{.*\}|[\d.]+", value) else value
             for flag, value in used.items()}
    return "INFO 07-01 10:00:00 [utils.py:253] non-default args: %r" % dict({"model": "some/model"}, **pairs)


def findings(binary, path):
    with open(path, "rb") as f:
        text = f.read()
    result = []
    for incident in explain(binary, text):
        engine = engine_of(incident)
        result += [("cause", one) for one in against_cause(incident)]
        shown = text.decode("utf-8", "replace")
        if any(word in shown for word in OTHER_RUNTIMES) and not re.search("(?i)vllm|sglang", shown):
            result += [("runtime", flag) for flag, _, _ in flags(incident)]
        used = {flag: value for flag, value, way in flags(incident) if way is None}
        if not used or not (incident["engine"]["name"] or "").startswith(tuple(LADDERS)):
            continue
        for as_command in (False, True):
            line = arguments(engine, used, as_command)
            for again in explain(binary, line.encode() + b"\n" + text):
                if again["phase"] == incident["phase"]:
                    result += [("use" + " command" * as_command, one) for one in in_use(again, used)]
    many = RANK_OF.sub(lambda found: re.sub(r"\d+", str(RANKS - 1), found.group()), text.decode("utf-8", "replace"))
    if RANK_OF.search(many) and "tensor_parallel_size" not in many:  # a number that is printed is believed
        for incident in explain(binary, many.encode()):
            if not any(RANK_OF.search(line["text"]) for line in incident["evidence"]):
                continue  # only a line that is no part of the failure has the name
            result += [("ranks", "%s %s of %d ranks" % (flag, value, RANKS)) for flag, value, _ in flags(incident)
                       if flag in ("--tensor-parallel-size", "--tp-size") and (number(value) or RANKS + 1) <= RANKS]
    return [(os.path.relpath(path, TESTS), *one) for one in result]


def inert(binary):
    """Logs with a command that plan knows to fail so: what it calls inert is not suggested."""
    looked = 0
    for phase, model, words in PLANNED:
        for path in sorted(glob.glob(os.path.join(TESTS, "evidence", "reports", "*.log"))):
            with open(path, "rb") as f:
                text = f.read()
            if b"total capacity of" not in text and b"KV cache" not in text:
                continue
            if re.search(rb"version v?\d", text):
                continue
            line = "INFO 07-01 10:00:00 [api_server.py:1] vLLM API server version %s\n$ vllm serve %s %s" % (RELEASE, model, " ".join(words))
            for incident in explain(binary, line.encode() + b"\n" + text):
                total = incident["gpu"]["total_bytes"]
                if incident["phase"] != phase or not total or "plan reproduces" not in (incident.get("plan_check") or ""):
                    continue
                looked += 1
                plan = json.loads(subprocess.run([binary, "plan", "--offline", "--json", "--gpu", incident["gpu"]["name"] or "l4", "--gpu-total", str(total), "--engine", "vllm=" + RELEASE, "--",
                                                  "vllm", "serve", model, *words], capture_output=True, timeout=60, check=False).stdout)
                dead = {one["flag"] for one in plan["inert"]}
                yield from ((path, "inert", "%s at %s" % (flag, phase)) for flag, _, _ in flags(incident) if flag in dead)
    print("plans that reproduce a failure:", looked)


def main():
    binary = os.path.abspath(sys.argv[1])
    paths = sys.argv[2:] or sorted(path for pattern in FOLDERS for path in glob.glob(os.path.join(TESTS, pattern), recursive=True))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = [one for many in pool.map(lambda path: findings(binary, path), paths) for one in many]
    found += inert(binary)
    for one in found[:40]:
        print("%s: %s: %s" % one)
    print("%d logs, %d suggestions without sense" % (len(paths), len(found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
