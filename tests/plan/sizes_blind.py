#!/usr/bin/env python3
"""sizes_blind.py BINARY: would a model whose config is known have been listed right by its sizes?

Every built-in model with a config of its own and public sizes is made anew by tools/catalogue_sizes.py as if it were not there; then the config
and what was made are planned on eight GPUs. Proven sizes have to give the same weights, bytes per token, cache groups and longest length in nine
of ten, and never less memory at the same length. Prints what differs."""
import collections
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import catalogue  # noqa: E402
import catalogue_sizes as sizes  # noqa: E402

GOAL = 0.9
FIELDS = ("weights", "bytes per token", "groups", "length")


def planned(binary, config):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f)
        words = [binary, "plan", "--offline", "--json", "--gpu", "h200x8", "--vllm", "0.32.0", "--", "vllm", "serve", folder, "-tp", "8"]
        plan = json.loads(subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout.decode())
    return plan["weights_bytes"], plan["kv"]["bytes_per_token"], plan["kv"]["groups"], plan["setup"]["max_model_len"]


def without(entries, name):
    return {one: entry for one, entry in entries.items() if one != name and entry != name and not (isinstance(entry, dict) and name in (entry.get("like"), entry.get("of")))}


def main():
    binary = os.path.abspath(sys.argv[1])
    entries = {name: entry for name, entry in catalogue.read_json(sizes.DATA).items() if not (isinstance(entry, dict) and "level" in entry)}
    with open(sizes.FAMILIES, encoding="utf-8") as f:
        written = json.load(f)
    rows, count, seen, less = sizes.facts(), sizes.Counter(binary), collections.Counter(), 0
    for name, entry in sorted(entries.items()):
        if not isinstance(entry, dict) or "config" not in entry or "of" in entry or "quantization_config" in entry["config"] or name not in rows:
            continue
        made = sizes.proven({name: rows[name]}, {}, written["families"], without(entries, name), count, written["unknown_bits"]).get(name)
        if not made or made[0] >= sizes.FARTHEST:
            seen["not listed"] += 1
            continue
        level = "proven" if made[0] == 0 else "sizes"
        own, other = planned(binary, entry["config"]), planned(binary, sizes.changed(name, made[2], written))
        differs = [field for field, one, two in zip(FIELDS, own, other) if one != two]
        seen[level, not differs] += 1
        lighter = level == "proven" and other[0] < own[0] and other[3] == own[3]
        less += lighter
        if differs:
            print("%s %s: %s; weights %d, by sizes %d%s" % (level, name, ", ".join(differs), own[0], other[0], ": less" if lighter else ""))
    equal, all_proven = seen["proven", True], seen["proven", True] + seen["proven", False]
    print("%d proven, of which %d are planned alike and %d with less; %d not proven, %d of them alike; %d not listed" % (
        all_proven, equal, less, seen["sizes", True] + seen["sizes", False], seen["sizes", True], seen["not listed"]))
    return 0 if all_proven >= 40 and equal >= GOAL * all_proven - 1 and not less else 1


if __name__ == "__main__":
    sys.exit(main())
