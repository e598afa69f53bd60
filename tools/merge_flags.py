#!/usr/bin/env python3
"""Merge dumps of an engine's parser (dump_flags.py) into one table by version, data/engines/<engine>/flags.json.

    merge_flags.py OUTPUT INPUT...      an INPUT is a dump or an earlier OUTPUT, so one new version can be added alone

Fields are described in docs/reference/formats/engine-flags.md. What moves GPU memory is a judgement: memory_flags.tsv.
A flag that stands neither there nor in an earlier table has "memory": null.
"""

import json
import os
import re
import sys


def judged_flags(engine):
    """{what the parser stores: whether it moves memory}, of memory_flags.tsv: a dest behind "!" moves none."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "memory_flags.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {dest.lstrip("!"): not dest.startswith("!") for of, _, dests in rows if of == engine for dest in dests.split()}


# A field of an option that the table keeps; the rest of a dump is for the eyes.
KEPT = (
    "names", "negative", "dest", "kind", "item", "nargs", "repeat", "stores", "choices",
    "default", "nullable", "auto", "suffixes", "folds", "pairs", "strict", "deprecated",
)
KEY_FIELDS = ("kind", "item", "choices", "default", "nullable")
SUFFIX_VALUES = {
    "1k": 10**3, "1K": 2**10, "1.5k": 1500, "1m": 10**6, "1M": 2**20, "1g": 10**9, "1G": 2**30, "1t": 10**12, "1T": 2**40,
}
IEC_VALUES = {"1k": 10**3, "1.5k": 1500, "1M": 10**6, "1G": 10**9, "1T": 10**12, "1Ki": 2**10, "1Mi": 2**20, "1Gi": 2**30, "1Ti": 2**40}


def version_key(text):
    """0.8.5 < 0.8.5.post1 < 0.9.0"""
    numbers, _, post = text.partition(".post")
    return tuple(map(int, numbers.split("."))), int(post or 0)


def main_name(names):
    """The long spelling a flag is known by: dumps list aliases first in some releases and last in others."""
    long_names = [name for name in names if name.startswith("--")]
    return (long_names or names)[0]


def without_empty(record):
    """null, false, [] and {} mean the same as absent, save for a default or a stored value."""
    return {k: v for k, v in record.items() if v is not None and (k in ("default", "stores") or v not in (False, [], {}))}


def option_fields(option, known):
    """(name, fields, keys by name) of one option of a dump; `known` are the names of an earlier table, by each spelling."""
    name = next((known[name] for name in option["names"] if name in known), main_name(option["names"]))
    fields = {field: option.get(field) for field in KEPT}
    fields["names"] = [name] + [other for other in option["names"] if other != name]
    if option["kind"] in ("flag", "help", "bool-optional") or option["nargs"] is None:
        fields["nargs"] = None
    elif fields["nargs"] is not None:
        fields["nargs"] = str(fields["nargs"])
    suffixes = option.get("suffixes") or {}
    for text, value in suffixes.items():
        if (IEC_VALUES if "1Ki" in suffixes else SUFFIX_VALUES).get(text) != value:
            raise SystemExit(f"merge_flags: {name} reads {text} as {value}, which is not known here")
    fields["suffixes"] = "".join(letter for letter in "kKmMgGtT" if "1" + letter in suffixes) + ("i" if "1Ki" in suffixes else "") or None
    keys = {}
    for key in option.get("json_keys") or ():
        keys[key["name"]] = without_empty({field: key.get(field) for field in KEY_FIELDS})
        if "choices" in keys[key["name"]]:  # their order is the source's and moves between releases
            keys[key["name"]]["choices"].sort(key=str)
    return name, without_empty(fields), keys


def read_dump(dump, known):
    """{version: {name: (fields, keys, group)}} of one dump"""
    options = {}
    for option in dump["options"]:
        name, fields, keys = option_fields(option, known)
        if name in options:
            raise SystemExit(f"merge_flags: {dump['version']}: {name} twice")
        options[name] = (fields, keys, option.get("group") or "")
    return {dump["version"]: (options, dump.get("probes") or {})}


def at_version(record, versions, version, default_since):
    """The fields of a merged record in one version, or None where it does not exist."""
    order = versions.index
    since, until = record.get("since", default_since), record.get("until")
    if order(version) < order(since) or (until and order(version) > order(until)):
        return None
    skip = ("since", "until", "changes", "memory", "json_keys", "group", "name")
    fields = {k: v for k, v in record.items() if k not in skip}
    for change in record.get("changes", ()):
        if order(version) >= order(change["since"]):
            fields.update({k: v for k, v in change.items() if k != "since"})
    return {k: v for k, v in fields.items() if v is not None}


def read_table(table):
    """The dumps an earlier table was made of, as far as the table keeps them."""
    versions = table["versions"]
    by_version = {version: ({}, {}) for version in versions}
    for flag in table["flags"]:
        for version in versions:
            fields = at_version(flag, versions, version, versions[0])
            if fields is None:
                continue
            keys = {}
            for key in flag.get("json_keys", ()):
                key_fields = at_version(key, versions, version, flag["since"])
                if key_fields is not None:
                    keys[key["name"]] = key_fields
            by_version[version][0][flag["names"][0]] = (fields, keys, flag.get("group", ""))
    for rule in table["parser"]:
        for version in versions:
            answer = at_version(rule, versions, version, versions[0])
            if answer is not None:
                by_version[version][1][rule["name"]] = answer["result"]
    return by_version


def runs(versions, present):
    """Maximal stretches of consecutive versions in which something exists."""
    stretch = []
    for version in versions:
        if version in present:
            stretch.append(version)
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def merge_series(versions, by_version):
    """One record per unbroken stretch: the fields as first seen, then what changed and when."""
    for stretch in runs(versions, by_version):
        fields = by_version[stretch[0]]
        record, changes = dict(fields), []
        for version in stretch[1:]:
            now = by_version[version]
            changed = {k: now.get(k) for k in sorted(fields.keys() | now.keys()) if fields.get(k) != now.get(k)}
            if changed:
                changes.append({"since": version, **changed})
                fields = now
        record["since"] = stretch[0]
        if stretch[-1] != versions[-1]:
            record["until"] = stretch[-1]
        if changes:
            record["changes"] = changes
        yield record, stretch


def merge(by_version, engine, judged):
    versions = sorted(by_version, key=version_key)
    flags = []
    for name in sorted({name for options, _ in by_version.values() for name in options}, key=lambda n: n.lstrip("-")):
        seen = {v: by_version[v][0][name] for v in versions if name in by_version[v][0]}
        dests = dict.fromkeys(fields.get("dest") for fields, _, _ in seen.values())
        stretches = (merge_series(versions, {v: fields for v, (fields, _, _) in seen.items() if fields.get("dest") == dest}) for dest in dests)
        for record, stretch in (pair for series in stretches for pair in series):  # stored under another name it is another field of a log
            record["group"] = seen[stretch[-1]][2]
            record["memory"] = judged.get(record["dest"])  # null: nobody has looked at it yet
            key_names = sorted({key for v in stretch for key in seen[v][1]})
            keys = []
            for key in key_names:
                series = {v: seen[v][1][key] for v in stretch if key in seen[v][1]}
                for key_record, _ in merge_series(stretch, series):
                    if key_record["since"] == stretch[0]:
                        del key_record["since"]
                    keys.append({"name": key, **key_record})
            if keys:
                record["json_keys"] = keys
            flags.append(record)
    rules = []
    for name in sorted({name for _, probes in by_version.values() for name in probes}):
        series = {v: {"result": by_version[v][1][name]} for v in versions if name in by_version[v][1]}
        for record, _ in merge_series(versions, series):
            rules.append({"name": name, **record})
    return {"schema": "oomsight.engine-flags/1", "engine": engine, "versions": versions, "parser": rules, "flags": flags}


def write(table, out):
    """One record a line: small, and a diff shows one flag."""
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    out.write("{")
    for index, (field, value) in enumerate(table.items()):
        out.write(",\n" if index else "\n")
        if field in ("parser", "flags"):
            lines = ",\n".join(json.dumps(record, **compact) for record in value)
            out.write(f'"{field}":[\n{lines}\n]')
        else:
            out.write(f"{json.dumps(field)}:{json.dumps(value, **compact)}")
    out.write("\n}\n")


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    by_version, engines, harmless, known = {}, set(), {}, {}
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        engines.add(content["engine"])
        harmless.update({flag["dest"]: False for flag in content.get("flags", ()) if flag["memory"] is False})
        known.update({name: flag["names"][0] for flag in content.get("flags", ()) for name in flag["names"]})
        by_version.update(read_table(content) if "versions" in content else read_dump(content, known))
    if len(engines) != 1:
        raise SystemExit(f"merge_flags: dumps of {', '.join(sorted(engines))} in one table")
    engine = engines.pop()
    judged = judged_flags(engine)
    table = merge(by_version, engine, {**harmless, **judged})
    for version in table["versions"]:
        if not re.fullmatch(r"\d+\.\d+\.\d+(\.\d+)?(\.post\d+)?", version):
            raise SystemExit(f"merge_flags: odd version {version}")
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        write(table, out)
    dests = {record["dest"] for record in table["flags"]}
    stale = sorted(judged.keys() - dests - {"model_tag"})
    unjudged = sorted({record["names"][0] for record in table["flags"] if record["memory"] is None})
    print(f"{len(table['versions'])} versions, {len(table['flags'])} flags, {len(table['parser'])} parser rules")
    if unjudged:
        print("to be judged in memory_flags.tsv, and not modelled until then:", ", ".join(unjudged), file=sys.stderr)
    if stale:
        print("in memory_flags.tsv but in no parser:", ", ".join(stale), file=sys.stderr)


if __name__ == "__main__":
    main()
