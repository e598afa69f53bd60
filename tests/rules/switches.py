#!/usr/bin/env python3
"""Switches of vLLM's environment, as Python reads them: switches.py BINARY

vllm/envs.py of 0.8.0 to 0.33.0 reads VLLM_ALLOW_LONG_MAX_MODEL_LEN by strip().lower() in ("1", "true") and the others by bool(int(...)), each only
in releases that have it. Each is given values in many spellings; the same expressions decide here. Standard library only."""
import json
import subprocess
import sys

VALUES = ["0", "1", "2", "-1", "00", "+1", " 1 ", "1_0", "true", "True", "TRUE", " true ", "false", "yes", "no", "on", "off", "", "1.0", "0x1", "truely", "auto"]
NUMBERS = {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": ("0.18.0", None), "VLLM_USE_V2_MODEL_RUNNER": ("0.12.0", None),
           "VLLM_USE_FLASHINFER_SAMPLER": ("0.8.0", None), "VLLM_USE_V1": ("0.8.0", "0.11.0"), "VLLM_USE_RUST_FRONTEND": ("0.22.0", None),
           "VLLM_DISABLE_COMPILE_CACHE": ("0.8.0", None)}
RELEASES = ["0.8.5", "0.11.0", "0.17.0", "0.24.0", "0.32.0"]


def plan(binary, release, variable, value, *flags):
    command = [binary, "plan", "--offline", "--json", "--gpu", "h100", "--engine", "vllm=" + release, "--env", "%s=%s" % (variable, value), "--",
               "vllm", "serve", "Qwen/Qwen2.5-0.5B-Instruct", *flags]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, universal_newlines=True).stdout)


def is_number(value):
    try:
        int(value)
        return True
    except ValueError:
        return False


def version(text):
    return tuple(map(int, text.split(".")))


def main():
    binary, wrong, tried = sys.argv[1], 0, 0

    def holds(right, *what):
        nonlocal wrong, tried
        tried += 1
        if not right:
            wrong += 1
            print("not as vLLM reads it:", *what)

    for release in RELEASES:
        for value in VALUES:
            long = plan(binary, release, "VLLM_ALLOW_LONG_MAX_MODEL_LEN", value, "--max-model-len", "65536")
            refused = "greater than the derived max_model_len" in (long["why"] or "")
            holds(refused == (value.strip().lower() not in ("1", "true")), release, "VLLM_ALLOW_LONG_MAX_MODEL_LEN", repr(value), long["why"])
        for name, (since, until) in NUMBERS.items():
            known = version(since) <= version(release) and not (until and version(release) > version(until))
            for value in VALUES if known else VALUES[8:12]:
                seen = plan(binary, release, name, value)
                refused = "invalid literal for int()" in (seen["why"] or "")
                holds(refused == (known and not is_number(value)), release, name, repr(value), seen["why"])
    for mode, right in (("FOO", False), ("", False), ("VLLM_COMPILE", True), ("none", True), ("DYNAMO_TRACE_ONCE", True), (3, True), (7, False)):
        seen = plan(binary, "0.32.0", "X", "1", "--compilation-config", json.dumps({"mode": mode}))
        holds((seen["verdict"] != "refused") == right, "mode", repr(mode), seen["why"])
    for words, right in ((["--model", "Qwen/Qwen3-8B"], False), (["--model=Qwen/Qwen3-8B"], False), (["--served-model-name", "x"], True)):
        seen = plan(binary, "0.32.0", "X", "1", *words)
        holds((seen["verdict"] != "refused") == right, "a model twice", words, seen["why"])
    print("%d spellings, %d wrong" % (tried, wrong))
    return 1 if wrong or tried < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
