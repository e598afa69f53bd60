#!/usr/bin/env python3
"""data/ as it was when a release of an engine was the newest: what came later is not there, what went later has not gone.

    older.py FOLDER LAST [SOURCES [ENGINE]]      into FOLDER/data; ENGINE: vllm

SOURCES/RELEASE/vllm/**/*.py gives the fingerprints of LAST, without which `oomsight learn` compares no rule. Fitted constants stay."""
import json
import os
import re
import shutil
import sys

import fingerprints


def number(release):
    return [int(part) for part in re.findall(r"\d+", release)]


def is_release(value):
    return isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)+(\.post\d+)?", value) is not None


def cut_list(value, last):
    if len(value) == 2 and is_release(value[0]) and (value[1] is None or is_release(value[1])):  # since, until
        return None if number(value[0]) > number(last) else [value[0], value[1] if value[1] and number(value[1]) < number(last) else None]
    return [one for one, old in ((cut(old, last), old) for old in value) if one is not None or old is None]


def cut(value, last):
    """None: it came later."""
    if isinstance(value, list):
        return cut_list(value, last)
    if not isinstance(value, dict):
        return value
    if is_release(value.get("since")) and number(value["since"]) > number(last):
        return None
    lists = {name: [release for release in value[name] if number(release) <= number(last)] for name in ("versions", "measured") if isinstance(value.get(name), list)}
    kept = {name: lists[name] if name in lists else cut(one, last) for name, one in value.items() if not (name == "until" and is_release(one) and number(one) >= number(last))}
    if value.get("steps") and not kept["steps"]:
        return None  # a rule that came later
    return {name: one for name, one in kept.items() if one not in (None, []) or value[name] in (None, [])}


def older(folder, last, sources=None, of="vllm"):
    """FOLDER/data."""
    data = os.path.join(folder, "data")
    shutil.copytree(os.path.join(fingerprints.ROOT, "data"), data)
    engine = os.path.join(data, "engines", of)
    for name in set(os.listdir(engine)) - {"constants.json", "levers.json", "fingerprints.json"}:
        table = cut(fingerprints.read(os.path.join(engine, name)), last)
        with open(os.path.join(engine, name), "w", encoding="utf-8") as file:
            json.dump(table, file, separators=(",", ":"), ensure_ascii=False)  # facts/env.c looks for rows as they stand
    if os.path.exists(os.path.join(engine, "fingerprints.json")):
        os.remove(os.path.join(engine, "fingerprints.json"))
    if sources:
        with open(os.path.join(engine, "fingerprints.json"), "w", encoding="utf-8") as file:
            file.write(fingerprints.written(fingerprints.made(sources, last, engine)))
    return data


if __name__ == "__main__":
    older(*sys.argv[1:])
