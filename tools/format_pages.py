#!/usr/bin/env python3
"""The pages docs/reference/formats/plan.md, incident.md and check.md are those of data/schema: compares them, or writes them. Tables of all pages are
whole, and no entry of the changelog stands there twice.

    format_pages.py BUILD/cli/oomsight [--write]

A field without a description fails, and a field that the command prints and the schema does not have."""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = {"plan": "oomsight plan --json", "incident": "oomsight explain --json", "check": "oomsight check --json"}
BYTES = "Bytes are integers. A quantity that is not known is null, never 0."
SMALL = "tests/fixtures/models/small-llama"
OPEN = ("weights", "setup", "numbers", "engine", "gpu", "source", "rules")  # whose members differ by engine and model


def kind(node, schema):
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    if "const" in node:
        return "`%s`" % node["const"]
    if "enum" in node:
        return ", ".join("null" if v is None else "`%s`" % v for v in node["enum"])
    kinds = node.get("type", "any")
    return " or ".join(kinds) if isinstance(kinds, list) else kinds


def fields(node, schema, path=""):
    """(path, what it is, description) of each field, depth first."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    for name, child in node.get("properties", {}).items():
        here = path + name
        inner = child
        while "items" in inner:
            inner, here = inner["items"], here + "[]"
        what = kind(inner if "items" in child else child, schema)
        yield here, what, child.get("description")
        yield from fields(inner, schema, here + ".")


def page(name, schema):
    first, told, same = {}, {}, {}  # what is long, and what an earlier list has alike, stands on a page once
    lines = ["# What `%s` prints" % PAGES[name], "",
             "Schema `oomsight.%s/1` (`data/schema/%s.schema.json`). %s" % (name, name, BYTES), "",
             "| field | type | meaning |", "| --- | --- | --- |"]
    missing = []
    for path, what, description in fields(schema, schema):
        if description is None:
            missing.append(path)
        full = what.replace(", null", "")
        if full.count(",") >= 6 and first.setdefault(full, path) != path:
            what = "as `%s`" % first[full]
        place, leaf = path.rpartition(".")[::2]
        if place.count(".") == 0 and place.endswith("[]") and told.setdefault((leaf, full, description), place) != place:
            same.setdefault(place, []).append((leaf, told[leaf, full, description]))
            continue
        lines.append("| `%s` | %s | %s |" % (path, what, description))
    for place, alike in same.items():
        at = next(i for i, line in enumerate(lines) if line.startswith("| `%s` |" % place))
        lines[at] = lines[at][:-2] + "; as in `%s`: %s |" % (alike[0][1], ", ".join("`%s`" % leaf for leaf, _ in alike))
    return "\n".join(lines) + "\n", missing


def unknown(value, node, schema, path=""):
    """Paths of `value` that the schema does not have."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    if isinstance(value, list):
        return [p for v in value for p in unknown(v, node.get("items", {}), schema, path + "[]")]
    if not isinstance(value, dict) or path in OPEN or not node.get("properties"):
        return []
    found = []
    for name, member in value.items():
        if name not in node["properties"]:
            found.append((path + "." + name).lstrip("."))
        else:
            found += unknown(member, node["properties"][name], schema, (path + "." + name).lstrip("."))
    return found


def answers(program, name):
    kb = os.walk(os.path.join(ROOT, "tests/fixtures/kb"))
    logs = sorted(os.path.join(folder, "positive.log") for folder, _, files in kb if "positive.log" in files)
    commands = {"plan": [["plan", "--gpu", gpu, "--json", "--", "vllm", "serve", SMALL, *more] for gpu in ("h100", "t4")
                         for more in ([], ["--max-model-len", "9999999"], ["--gpu-memory-utilization", "0.02"])] +
                        [["plan", "--gpu", "l4", "--json", "--", "sglang", "serve", SMALL]],
                "incident": [["explain", "--json", f] for f in logs[::4] + ["README.md"]],
                "check": [["check", "--json", "--gpu", "l4", "examples"]]}[name]
    for command in commands:
        printed = subprocess.run([program, *command], cwd=ROOT, capture_output=True, text=True).stdout
        texts = printed.splitlines() if name == "incident" else [printed]
        yield from (json.loads(text) for text in texts if text.strip())


def broken():
    """Tables cut by an empty line, and entries of the changelog that stand there twice."""
    for folder, _, files in os.walk(os.path.join(ROOT, "docs")):
        for name in files:
            if name.endswith(".md"):
                with open(os.path.join(folder, name)) as f:
                    text = f.read()
                if re.search(r"^\|[^\n]*\n\n\|(?![^\n]*\n\| *-)", text, re.M):
                    yield "%s: a table is cut by an empty line" % name
    with open(os.path.join(ROOT, "CHANGELOG.md")) as f:
        entries = [line[:60] for line in f if line.startswith("- ")]
    yield from ("CHANGELOG.md: twice: " + entry for entry in sorted(set(entries)) if entries.count(entry) > 1)


def main():
    program, write = os.path.abspath(sys.argv[1]), "--write" in sys.argv
    faults = list(broken())
    print(*faults, sep="\n", end="\n" if faults else "")
    wrong = len(faults)
    for name in PAGES:
        with open(os.path.join(ROOT, "data/schema/%s.schema.json" % name)) as f:
            schema = json.load(f)
        text, missing = page(name, schema)
        for path in missing:
            print("data/schema/%s.schema.json: %s has no description" % (name, path))
        extra = sorted({p for answer in answers(program, name) for p in unknown(answer, schema, schema)})
        for path in extra:
            print("data/schema/%s.schema.json: %s is printed and not there" % (name, path))
        wrong += len(missing) + len(extra)
        path = os.path.join(ROOT, "docs/reference/formats/%s.md" % name)
        if write and not missing:
            with open(path, "w") as f:
                f.write(text)
        elif not os.path.exists(path) or open(path).read() != text:
            print("docs/reference/formats/%s.md is not what the schema says: tools/format_pages.py BINARY --write" % name)
            wrong += 1
    print("%d faults in the pages of formats" % wrong)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
