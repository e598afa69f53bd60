#!/usr/bin/env python3
"""Flags and variables that the knowledge base advises exist in the engine versions they are advised for: check_kb.py [DATA]

A fix of a vLLM record must name flags of data/engines/vllm/flags.json (or variables of env.json) that exist in every version the
record is about (versions.introduced up to versions.fixed), or say from when (`since`) and until when (`until`) it can be used; explain
leaves out what the logged version does not have. Every record names the causes it explains, and nothing that helps stands among what
does not: neither the flag in the same direction, nor what the flag does. The trade-off of a lever is worded as in its ladder
(levers.json). Standard library only."""
import glob
import json
import os
import re
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


# What a flag does, in the words of an action.
EFFECTS = {"--max-num-seqs": r"(?:fewer|less) (?:concurrent )?requests", "--max-model-len": r"short\w* (?:context|prompts?|requests?)",
           "--tensor-parallel-size": r"more (?:gpus|devices|cards)", "--enforce-eager": r"(?:no|without) (?:cuda )?graphs"}


def direction(word, default):
    """-1, 0 or 1: a share below the default, none, or above it; None: a share, and no default to compare it with."""
    if "higher" in word:
        return 1
    if "lower" in word:
        return -1
    share = re.fullmatch(r"0\.\d+", word.split("|")[-1].rstrip("}"))
    if not share:
        return 0
    return None if default is None else 1 if float(share.group()) >= default else -1


def meant(change, default):
    """[(flag or variable, direction)]"""
    words = " ".join(change).split()
    names = [w.split("=")[0].rstrip(",") for w in words if re.match(r"--[a-z]|[A-Z][A-Z_]{5,}", w)]
    way = direction(change[1] if len(change) > 1 else change[0], default)
    return [(name, way) for name in names]


def both_ways(fixes, dead_ends, default=None):
    """What stands in both lists: [(in the one, in the other)], of a record (with the default share) or of an answer."""
    found = []
    for fix in fixes:
        for dead in dead_ends:
            said, helps = " ".join(dead["change"]).lower(), meant(fix["change"], default)
            apart = set(fix.get("when", {}).get("none", [])) & set(dead.get("when", {}).get("all", []))  # never in one log
            if fix["change"][0].startswith("drop ") or apart:
                continue
            for name, way in helps:
                same = [w for n, w in meant(dead["change"], default) if n == name]
                if any(w == 0 or way == 0 or w == way for w in same) and not (name == "--compilation-config" and fix["change"] != dead["change"]):
                    found.append((" ".join(fix["change"]), " ".join(dead["change"])))
                elif name in EFFECTS and re.search(EFFECTS[name], said):
                    found.append((" ".join(fix["change"]), said))
    return found


def contradictions(record):
    if not record["when"].get("cause"):
        yield "names no cause: its advice may be that of another"
    for one, other in both_ways(record["fixes"], record["dead_ends"], 0.9):
        yield "'%s' helps, and '%s' does not" % (one, other)


VALUE_DECIDES = ("--compilation-config", "--limit-mm-per-prompt", "--kv-cache-memory-bytes")  # what is lost depends on the value


def ladder(data, engine):
    """Flag -> the trade-offs that the ladder of the engine has for it."""
    found = {}
    for lever in json.load(open(os.path.join(data, "engines", engine, "levers.json"), encoding="utf-8"))["levers"]:
        found.setdefault(lever.get("flag"), []).append((lever["move"], lever["cost"]))
    return found


def other_words(record, ladders):
    engine = record["versions"]["engine"]
    for fix in record["fixes"]:
        flag = fix["change"][0].split()[-1]
        word = fix["change"][-1]
        other_way = "lower" if word in ("higher", "0.95") else "raise" if word in ("lower", "0.85") else None
        known = [cost for move, cost in ladders["sglang" if engine == "sglang" else "vllm"].get(flag, []) if move != other_way]
        if "cost" in fix and known and flag not in VALUE_DECIDES and fix["cost"] not in known:
            yield "%s: the ladder words this trade-off otherwise: %s" % (flag, fix["cost"]["en"])


def main():
    data = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
    found, versions = spans(data)
    ladders = {engine: ladder(data, engine) for engine in ("vllm", "sglang")}
    bad = checked = 0
    for path in sorted(glob.glob(os.path.join(data, "kb", "**", "*.json"), recursive=True)):
        record = json.load(open(path, encoding="utf-8"))
        for wrong in [*contradictions(record), *other_words(record, ladders)]:
            bad += 1
            print("%s: %s" % (record["id"], wrong))
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
    print("%d flags advised, %d problems" % (checked, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
