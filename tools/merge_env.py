#!/usr/bin/env python3
"""Merge what releases say of their environment variables into data/engines/<engine>/env.json.

    merge_env.py OUTPUT TABLE INPUT...      TABLE is an earlier OUTPUT; an INPUT is a dump (dump_env.py) or a list of names (list_env.py)

Every name of every release's table is kept. Those that move GPU memory, or decide which code does, have a `why`; of the others `memory` says
whether they are known to leave it alone (`none`) or nobody looked (`open`). That is written into the table by hand, and so are the variables of
PyTorch, NCCL and CUDA, which have no versions: all of it is taken over. A dump tells kind, default and choices of those with a `why`.
"""

import json
import re
import sys

from merge_flags import at_version, merge_series, version_key, without_empty

# Of other platforms.
PLATFORMS = "TPU|XLA|XPU|HPU|OPENVINO|NEURON|ROCM|CPU|ZENTORCH|AITER|NPU|AMD|HIP|MUSA|MPS"
ELSEWHERE = re.compile(rf"(VLLM|SGLANG)_(USE_)?({PLATFORMS})_|AITER_|ASCEND_")
# SGLang's, by the words of their names; its other ones are open.
WORDS = "PORT|TIMEOUT|LOG|LOGGING|NVTX|METRICS|HOST|IP|HOSTNAME|COREDUMP|EXA|DIR|API_KEY|PROFILER"
SAFE_WORDS = re.compile(rf"SGLANG_(.*_)?({WORDS})(_.*)?$")

FIELDS = ("kind", "default", "choices")
# How a bool is read: the probe words that mean true, and whether other words are errors or mean false.
READINGS = (
    (("1", "7"), False),  # bool(int(text)); other words are errors
    (("1", "true", "True"), True),  # letters of any size; anything else is false
    (("1",), True),  # exactly "1"; anything else is false
)
HOST_DEPENDENT = ("VLLM_CPU_OMP_THREADS_BIND", "CUDA_VISIBLE_DEVICES")  # a default read from this machine


def read_dump(dump, typed):
    kept = {}
    for variable in dump["variables"]:
        kept[variable["name"]] = {}
        if variable["name"] in typed:
            fields = {field: variable.get(field) for field in FIELDS}
            if variable["kind"] == "bool":
                words = tuple(variable["true_words"]), "word" in variable["false_words"]
                if words not in READINGS:
                    raise SystemExit(f"merge_env: {dump['version']}: {variable['name']}: read in a new way: {words}")
            if variable["name"] in HOST_DEPENDENT:
                fields["default"] = None
            kept[variable["name"]] = without_empty(fields)
    return {dump["version"]: kept}


def read_names(listed, _typed):
    kept = {name: {} for name in listed["names"]}
    kept.update({name: {"listed": False} for name in listed["elsewhere"]})
    return {listed["version"]: kept}


def read_table(table, _typed):
    versions = table["versions"]
    by_version = {version: {} for version in versions}
    for variable in table["variables"]:
        if variable["owner"] != table["engine"]:
            continue
        for version in versions:
            fields = at_version(variable, versions, version, versions[0])
            if fields is not None:
                by_version[version][variable["name"]] = {k: v for k, v in fields.items() if k in FIELDS or k == "listed"}
    return by_version


def judged(name):
    """What is said of a name that the table does not have: none of a word that tells so, else open."""
    return {"memory": "none" if ELSEWHERE.match(name) or SAFE_WORDS.match(name) else "open"}


def merge(by_version, earlier, said, logged):
    engine, others = earlier["engine"], [row for row in earlier["variables"] if row["owner"] != earlier["engine"]]
    versions = sorted(by_version, key=version_key)
    variables = []
    for name in sorted({name for kept in by_version.values() for name in kept} - {row["name"] for row in others}):
        series = {v: by_version[v][name] for v in versions if name in by_version[v]}
        for record, _ in merge_series(versions, series):
            variables.append({"name": name, "owner": engine, **record, **said.get(name, judged(name))})
    variables += others
    table = {"schema": "oomsight.engine-env/1", "engine": engine, "prefixes": earlier["prefixes"]}
    since = min((v for v in logged if logged[v]), key=version_key, default=None)
    if since:
        table["unknown_logged_since"] = since
    return {**table, "versions": versions, "variables": variables}


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    contents = []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            contents.append(json.load(file))
    earlier = contents[0]
    if "versions" not in earlier or len({content["engine"] for content in contents}) != 1:
        raise SystemExit(f"merge_env: {sys.argv[2]} is no earlier table, or inputs are of several engines")
    said = {row["name"]: {key: row[key] for key in ("why", "memory") if key in row} for row in earlier["variables"]}
    typed = {row["name"] for row in earlier["variables"] if "why" in row or "kind" in row}
    by_version, logged = {}, {}
    for content in contents:
        if "unknown_logged_since" in content:
            logged[content["unknown_logged_since"]] = True
        if "logs_unknown" in content:
            logged[content["version"]] = content["logs_unknown"]
        read = read_table if "versions" in content else read_names if "names" in content else read_dump
        for version, kept in read(content, typed).items():
            told = by_version.setdefault(version, {})
            for name, fields in kept.items():  # a list of names adds names and keeps what a dump said of them
                if name not in told or fields:
                    told[name] = fields
        if content.get("whole") is False:  # what stands outside the package is taken to be as it was
            before = max((v for v in by_version if version_key(v) < version_key(content["version"])), key=version_key, default=None)
            for name, fields in by_version.get(before, {}).items():
                if fields.get("listed") is False:
                    by_version[content["version"]].setdefault(name, fields)
    table = merge(by_version, earlier, said, logged)
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        rows = ",\n".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in table.pop("variables"))
        head = ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in table.items())
        out.write(f'{{\n{head},\n"variables":[\n{rows}\n]\n}}\n')
    print(f"{len(table['versions'])} versions, {len({name for kept in by_version.values() for name in kept})} engine variables")


if __name__ == "__main__":
    main()
