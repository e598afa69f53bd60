#!/usr/bin/env python3
"""Flags and variables that the knowledge base advises exist in the engine versions they are advised for: check_kb.py [DATA]

A fix of a vLLM record must name flags of data/engines/vllm/flags.json (or variables of env.json) that exist in every version the
record is about (versions.introduced up to versions.fixed), or say from when (`since`) and until when (`until`) it can be used; explain
leaves out what the logged version does not have. Standard library only."""
import glob
import json
import os
import sys


def number(version):
    return tuple(int(part) for part in version.split(".")[:3])


def spans(data):
    """Name of a flag or a variable -> (first version, first version without it or None)."""
    flags = json.load(open(os.path.join(data, "engines/vllm/flags.json"), encoding="utf-8"))
    found = {}
    for flag in flags["flags"]:
        for name in flag["names"]:
            since, until = flag["since"], flag.get("until")
            old = found.get(name)
            found[name] = (min(since, old[0], key=number), until if until is None or old[1] is None else max(until, old[1], key=number)) if old else (since, until)
    env = json.load(open(os.path.join(data, "engines/vllm/env.json"), encoding="utf-8"))
    for variable in env.get("variables", env.get("env", [])):
        found[variable["name"]] = (variable.get("since", flags["versions"][0]), variable.get("until"))
    return found, flags["versions"]


def main():
    data = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
    found, versions = spans(data)
    bad = checked = 0
    for path in sorted(glob.glob(os.path.join(data, "kb", "**", "*.json"), recursive=True)):
        record = json.load(open(path, encoding="utf-8"))
        if record["versions"]["engine"] != "vllm":
            continue
        for advice in record["fixes"]:
            first = number(advice.get("since") or record["versions"]["introduced"] or versions[0])
            last = advice.get("until") or record["versions"]["fixed"]
            for word in advice["change"]:
                name = word.split("=")[0]
                if not (name.startswith("--") or name.startswith("VLLM_")) or " " in name:
                    continue
                checked += 1
                if last and number(last) <= number(versions[0]):
                    continue  # older than the flags we know
                about = [v for v in versions if number(v) >= first and (not last or number(v) < number(last))]
                missing = [v for v in about if name not in found or number(v) < number(found[name][0]) or (found[name][1] and number(v) >= number(found[name][1]))]
                if not about or missing:
                    bad += 1
                    print("%s: %s: not in %s (known %s)" % (record["id"], name, ", ".join(missing[:1] + missing[-1:]) or "any version", found.get(name)))
    print("%d flags advised, %d not everywhere they are advised for" % (checked, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
