#!/usr/bin/env python3
"""Stages of functions, recorded while real engines ran: record_frames.py STARTS [--without VERSION|WAY ...] [--out FILE]

STARTS is what tests/oracle/stacks.py wrote. Every stack of an allocation stands in one stage; a function belongs to the stages
of the stacks that it was on. The union over all starts becomes data/explain/recorded.json: module -> function -> stages. A
function of a model's forward belongs to every stage that runs one: not each of them was run for each model."""

import argparse
import collections
import json

import oraclelib

FORWARD = {"profile_run", "mm_profile", "cudagraph_profile", "compile", "cudagraph_capture", "runtime_prefill", "runtime_other"}
SAMPLING = {"profile_run", "sampler_warmup", "runtime_sampler"}
SERVED = {"compile", "sampler_warmup", "runtime_prefill", "runtime_sampler", "runtime_other"}
PACKAGES = ("vllm/", "flashinfer/")
# What never tells a stage: wrappers between the engine and its worker.
EVERYWHERE = ("vllm/utils", "vllm/tracing", "vllm/logger", "vllm/v1/serial_utils", "vllm/entrypoints", "vllm/v1/executor", "vllm/v1/engine",
              "vllm/worker/worker_base", "vllm/v1/worker/worker_base", "vllm/env_override")


def all_stacks(folder):
    """(version, way, frames): of every allocation of a start that went well, and where the others failed."""
    for version, way, row in oraclelib.read_stacks(folder):
        yield version, way, [(p, f) for p, _, f in row["stack"]]
    for version, way, end, frames in oraclelib.read_ends(folder):
        if end["error"]:
            yield version, way, frames


def seen_in(folder, without):
    table = collections.defaultdict(lambda: collections.defaultdict(set))
    stacks = 0
    for version, way, frames in all_stacks(folder):
        stage = oraclelib.stage_of(frames)
        if version in without or way in without or not stage:
            continue
        stacks += 1
        for path, function in frames:
            if path.startswith(PACKAGES) and not path.startswith(EVERYWHERE):
                table[path][function].add(stage)
    return table, stacks


def closed(path, function, stages):
    """Of what runs in a forward, all of its stages; the encoder has two."""
    if "logits_processor" in path or function == "compute_logits":
        return (stages - {"runtime_prefill", "runtime_other", "compile"}) | SAMPLING
    if stages & FORWARD and ("/models/" in path or "/layers/" in path or "attention" in path or "compilation/" in path) and not stages & {"weight_load", "quant_postprocess"}:
        if stages == {"mm_profile"} or stages == {"mm_profile", "runtime_prefill"}:
            return {"mm_profile", "runtime_prefill"}
        stages = stages | (FORWARD - ({"profile_run", "mm_profile"} if "profile_run" not in stages else {"mm_profile"}))
    if stages & SAMPLING and ("/sample/" in path or "sampler" in path):  # served steps, dummies and warm-ups sample alike
        return stages | SAMPLING
    if function in ("execute_model", "sample_tokens"):  # the warm-up of the newer runner comes this way as well
        return stages | SERVED
    if stages & {"runtime_prefill", "runtime_other"}:
        stages = stages | {"runtime_prefill", "runtime_other"}
    if stages == {"weight_load"} and function == "__init__":
        return stages
    return stages


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("starts")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--out")
    args = parser.parse_args()
    table, stacks = seen_in(args.starts, args.without)
    sets, modules = {}, {}
    for path in sorted(table):
        for function in sorted(table[path]):
            stages = closed(path, function, table[path][function])
            name = "+".join(sorted(stages))
            sets.setdefault(name, len(sets))
            modules.setdefault(path, {}).setdefault(str(sets[name]), []).append(function)
    lines = ['{', '  "schema": "oomsight.recorded/1",',
             '  "sets": ' + json.dumps([name.split("+") for name in sets]) + ',', '  "modules": {']
    lines += ["    %s: %s%s" % (json.dumps(m), json.dumps({n: " ".join(names) for n, names in f.items()}, separators=(",", ":")), "," if i + 1 < len(modules) else "")
              for i, (m, f) in enumerate(modules.items())]
    text = "\n".join(lines + ["  }", "}", ""])
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(text)
    count = sum(len(names) for f in modules.values() for names in f.values())
    one = sum(1 for path in table for f in table[path] if len(closed(path, f, table[path][f])) == 1)
    print(f"record_frames: {stacks} stacks, {count} functions in {len(modules)} modules, {one} in one stage, {len(text)} bytes")


if __name__ == "__main__":
    main()
