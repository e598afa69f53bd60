#!/usr/bin/env python3
"""Fail on an #include that points against the arrows of docs/architecture.md, on a circle of folders and on a crowded one. Standard library only."""
import os
import re
import sys

# layer -> the layers it may include from. A layer always sees itself.
MAY_SEE = {
    "base": set(),
    "match": {"base"},
    "facts": {"base"},
    "ledger": {"base"},
    "model": {"base", "match", "facts"},
    "command": {"base", "facts"},
    "log": {"base", "match"},
    "trace": {"base", "facts"},
    "matrix": {"base", "match", "facts", "command"},
    "plan": {"base", "facts", "model", "command", "ledger"},
    "engines": {"base", "facts", "model", "command", "ledger", "plan"},
    "explain": {"base", "match", "facts", "model", "command", "log", "ledger"},
    "dryrun": {"base", "facts", "ledger", "match", "explain"},
    "replay": {"base", "facts", "trace", "ledger"},
    "machine": {"base"},
    "run": {"base", "machine"},
    "report": {"base", "facts", "log", "model", "command", "matrix", "trace", "ledger", "plan", "explain", "replay", "dryrun", "machine", "run"},
    "follow": {"base", "match", "facts", "log", "ledger", "explain", "report"},
}
MAY_SEE["api"] = set(MAY_SEE)  # joins everything
TABLES = {"ledger/phase.def", "ledger/owner.def"}  # words alone: no code, no other include
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def findings(root):
    for top in ("src", "cli", "shim", "bindings"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".def")):
                    yield from check(root, os.path.join(folder, name))


def check(root, path):
    parts = os.path.relpath(path, root).split(os.sep)
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            found = INCLUDE.match(line)
            if not found or "/" not in found.group(1):
                continue
            seen = found.group(1).split("/")[0]
            if parts[0] == "src":
                allowed = MAY_SEE[parts[1]] | {parts[1]}
            elif parts[0] == "shim":
                allowed = {"base", "calls", "device", "phantom", "guard"}
            else:
                allowed = set()  # cli and bindings see the public header only, and their own folder without a path
            if parts[0] == "shim" and found.group(1) in TABLES:
                continue
            if seen not in allowed:
                yield "%s:%d: %s may not include %s" % (os.path.relpath(path, root), number, "/".join(parts[:2]), found.group(1))


# Code asks rules, never releases, and knows models by their layers, never by their names. What is left of either, in all: it may become
# less, never more.
LEFT = {"OOS_VERSION(": 0, "oos_model_type_is(": 26}
ASKS_NOBODY = ("src/facts/", "src/trace/", "src/replay/", "src/model/")  # they say what a release, or a model, is


def seams(root):
    found = {mark: [] for mark in LEFT}
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if not name.endswith((".c", ".h")) or path.startswith(ASKS_NOBODY):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                text = f.read()
            for mark in LEFT:
                found[mark] += [path] * text.count(mark)
    for mark, most in LEFT.items():
        if len(found[mark]) > most:
            yield "%s) stands %d times, at most %d: a rule or a trait of the model says it (%s)" % (
                mark, len(found[mark]), most, ", ".join(sorted(set(found[mark]))))


# Code that names an engine, in words of its own or of others, outside the folder of that engine and the list of engines: lines, comments
# left out. It may become less, never more.
ENGINE = re.compile(r"\bv(?:llm|LLM)|\bVLLM|\bsglang|\bSGLang|\bSGLANG|lmdeploy|text_generation")
KNOWS_ENGINES = ("src/engines/", "src/facts/engine.")
ENGINE_LINES = 95  # 90 when this was written


def named(root):
    """[(folder, lines)] that name an engine."""
    count = {}
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if not name.endswith((".c", ".h", ".def")) or path.startswith(KNOWS_ENGINES):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                code = re.sub(r"/\*.*?\*/", lambda c: "\n" * c.group().count("\n"), f.read(), flags=re.S)
            lines = sum(1 for line in code.split("\n") if ENGINE.search(line))
            if lines:
                part = "/".join(path.split(os.sep)[:2])
                count[part] = count.get(part, 0) + lines
    return count


def outside_their_folder(root):
    count = named(root)
    if sum(count.values()) > ENGINE_LINES:
        yield "%d lines name an engine outside its folder, at most %d: %s" % (
            sum(count.values()), ENGINE_LINES, ", ".join("%s %d" % c for c in sorted(count.items())))


def circles():
    """Layers that see one another, over any number of steps: MAY_SEE itself must be without them."""
    for layer in MAY_SEE:
        seen, todo = set(), set(MAY_SEE[layer]) - {layer}
        while todo:
            below = todo.pop()
            seen.add(below)
            todo |= MAY_SEE[below] - seen
        if layer in seen:
            yield "%s sees itself through other layers" % layer


def crowded(root):
    """A folder with more than 15 % of the lines of src/ is several subjects under one name."""
    lines = {}
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in names:
            if name.endswith((".c", ".h", ".def")):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    lines[folder] = lines.get(folder, 0) + sum(1 for _ in f)
    for folder, count in sorted(lines.items()):
        if count > 0.15 * sum(lines.values()):
            yield "%s: %d lines, more than 15 % of src/" % (os.path.relpath(folder, root), count)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bad = list(findings(root)) + list(circles()) + list(crowded(root)) + list(seams(root)) + list(outside_their_folder(root))
    print("\n".join(bad) if bad else "layers: every arrow points the right way")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
