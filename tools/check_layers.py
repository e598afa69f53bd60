#!/usr/bin/env python3
"""Fail on an #include that points against the arrows of docs/contributing/architecture.md, on a circle of layers, and when what tools/ratchets.json counts
has grown: releases, engines and models named outside their place, the share of a tree of src/; or when assertions have become fewer. Standard
library only.

    check_layers.py [ROOT] [--write]      --write lowers what has become less, and raises the assertions"""
import json
import math
import os
import re
import sys

# layer -> the layers it may include from. A layer always sees itself.
MAY_SEE = {
    "base": set(),
    "match": {"base"},
    "facts": {"base", "ledger"},
    "ledger": {"base"},
    "model": {"base", "match", "facts"},
    "command": {"base", "facts"},
    "log": {"base", "match"},
    "trace": {"base", "facts"},
    "matrix": {"base", "match", "facts", "command"},
    "sizes": {"base", "facts", "model", "command", "ledger"},
    "plan": {"base", "facts", "model", "command", "ledger", "sizes"},
    "engines": {"base", "facts", "model", "command", "ledger", "sizes", "plan"},
    "explain": {"base", "match", "facts", "model", "command", "log", "ledger"},
    "dryrun": {"base", "facts", "ledger", "match", "explain"},
    "replay": {"base", "facts", "trace", "ledger"},
    "machine": {"base", "facts"},
    "run": {"base", "machine", "facts"},
    "report": {"base", "facts", "log", "model", "command", "matrix", "trace", "ledger", "plan", "explain", "replay", "dryrun", "machine", "run"},
    "follow": {"base", "match", "facts", "log", "ledger", "explain", "report"},
}
MAY_SEE["api"] = set(MAY_SEE)  # joins everything
TABLES = {"ledger/phase.def", "ledger/owner.def", "ledger/cause.def"}  # words alone: no code, no other include
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
                if len(parts) == 2:  # src/oomsight_private.h, which sees the public header alone
                    allowed = {"oomsight"}
                elif parts[1] not in MAY_SEE:
                    yield "%s: %s has no place among the layers" % (os.path.relpath(path, root), "/".join(parts[:2]))
                    return
                else:
                    allowed = MAY_SEE[parts[1]] | {parts[1]}
            elif parts[0] == "shim":
                allowed = {"base", "calls", "device", "phantom", "guard"}
            else:
                allowed = set()  # cli sees oomsight_private.h, bindings the public header, and their own folder without a path
            if parts[0] == "shim" and found.group(1) in TABLES:
                continue
            if seen not in allowed:
                yield "%s:%d: %s may not include %s" % (os.path.relpath(path, root), number, "/".join(parts[:2]), found.group(1))


# What is counted may become less, never more: tools/ratchets.json has the most that is allowed of each (and what other checks count).
# `--write` lowers a number that has become less and never raises one. Of AT_LEAST it is the other way round.
RATCHETS = os.path.join("tools", "ratchets.json")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
HASH_COMMENT = re.compile(r"^\s*#.*$", re.M)


def files(root, tops, ends):
    """(path from the root, text without comments) of each source file."""
    for top in tops:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith(ends):
                    path = os.path.relpath(os.path.join(folder, name), root)
                    with open(os.path.join(folder, name), encoding="utf-8") as f:
                        text = f.read()
                    yield path, HASH_COMMENT.sub("", text) if name.endswith(".py") else COMMENT.sub(lambda c: "\n" * c.group().count("\n"), text)


# Code asks rules, never releases.
ASKS_NOBODY = ("src/facts/", "src/trace/", "src/replay/", "src/model/")  # they say what a release, or a model, is


def releases(root):
    return [path for path, code in files(root, ["src"], (".c", ".h")) if not path.startswith(ASKS_NOBODY)
            for _ in range(code.count("OOS_VERSION("))]


# Code that names an engine outside the folder of that engine and the list of engines, by its name or by its place in the list: lines.
# A file that has the engine in its own name is that engine's.
ENGINE = re.compile(r"(?i)vllm|sglang|lmdeploy|text_generation|\boos_engine_list\s*(\[\s*\d|->|[;)])")
KNOWS_ENGINES = ("src/engines/", "src/facts/engine.", "src/facts/engine_other.def")


def engine_lines(root, tops):
    return [path for path, code in files(root, tops, (".c", ".h", ".def", ".py"))
            if not path.startswith(KNOWS_ENGINES) and not ENGINE.search(os.path.basename(path))
            for line in (code.split("\n") if ENGINE.search(code) else ()) if ENGINE.search(line)]


# Models are known by their layers, not by their names: string literals that are the name of a model, or the beginning of one. The names
# are the architectures that vLLM registers, as they are and in the spelling of config.json.
LITERAL = re.compile(r'"([A-Za-z][A-Za-z0-9_]*)"')
NAMES_OF = re.compile(r"(For(CausalLM|ConditionalGeneration|\w+)|LMHeadModel|Model|ChatModel)$")
NOT_A_MODEL = {"mamba", "mamba2", "model", "phi", "step", "steps", "bert", "transformers", "medusa", "eagle", "eagle3", "audio",
               "embed", "embedding", "extra", "openai", "extracthiddenstates", "mlpspeculator"}


def model_names(root):
    with open(os.path.join(root, "data", "engines", "vllm", "architectures.json"), encoding="utf-8") as f:
        stems = {NAMES_OF.sub("", name).replace("_", "").lower() for name in json.load(f)["architectures"]}
    stems = {s for s in stems if len(s) > 2}
    beginnings = {s[:n] for s in stems for n in range(5, len(s) + 1)}

    def is_model(literal):
        plain = literal.replace("_", "").lower()
        if len(plain) < 4 or plain in NOT_A_MODEL:
            return False
        stem = NAMES_OF.sub("", literal).replace("_", "").lower()
        return stem in stems or plain in beginnings
    return [path + ": " + word for path, code in files(root, ["src"], (".c", ".h", ".def")) if not path.startswith(("src/model/", "src/facts/"))
            for word in LITERAL.findall(code) if is_model(word)]


def shares(root):
    """{tree below src: per cent of the lines of src}, whole trees and not their leaf folders. Each engine is a tree of its own."""
    lines = {}
    for folder, _, names in os.walk(os.path.join(root, "src")):
        parts = os.path.relpath(folder, root).replace(os.sep, "/").split("/")[1:]
        tree = "/".join(parts[:2 if parts[:1] == ["engines"] else 1])
        for name in names:
            if tree and name.endswith((".c", ".h", ".def")):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    lines[tree] = lines.get(tree, 0) + sum(1 for _ in f)
    return {tree: 100 * count / sum(lines.values()) for tree, count in lines.items()}


ASSERTIONS = "assertions per thousand lines in src"
AT_LEAST = {ASSERTIONS}  # all others are at most
ASSERTION = re.compile(r"\b(?:oos_assert|_Static_assert)\(")


def assertions(root):
    """In tenths, rounded down: what oos_assert and _Static_assert state for each thousand lines."""
    code = [code for path, code in files(root, ["src"], (".c", ".h", ".def")) if path != "src/base/check.h"]
    count, lines = sum(len(ASSERTION.findall(one)) for one in code), sum(one.count("\n") for one in code)
    return math.floor(10000 * count / max(1, lines)) / 10, "%d in %d lines" % (count, lines)


CROWDED, CROWDED_ENGINE = 15, 20  # per cent of src/: more than that is several subjects under one name


def counts(root):
    """{what is counted: (how much there is now, what to say of it)}"""
    def told(found):
        by = {}
        for path in found:
            part = "/".join(path.split(": ")[0].split("/")[:2])
            by[part] = by.get(part, 0) + 1
        return len(found), ", ".join("%s %d" % one for one in sorted(by.items()))
    result = {
        "releases named": told(releases(root)),
        "engine lines in src": told(engine_lines(root, ["src"])),
        "engine lines in cli": told(engine_lines(root, ["cli"])),
        "engine lines in bindings": told(engine_lines(root, ["bindings"])),
        "engine lines in shim/python": told(engine_lines(root, ["shim/python"])),
        "model names": told(model_names(root)),
        ASSERTIONS: assertions(root),
    }
    for tree, share in shares(root).items():
        limit = CROWDED_ENGINE if tree.startswith("engines/") else CROWDED
        if share > limit:
            result["per cent of src in src/%s" % tree] = (math.ceil(10 * share) / 10, "split it, or take lines out: the limit is %d" % limit)
    return result


def above(root, write=False):
    path = os.path.join(root, RATCHETS)
    with open(path, encoding="utf-8") as f:
        allowed = json.load(f)
    now = counts(root)
    for what, (count, words) in sorted(now.items()):
        if what not in allowed:
            yield "%s: %s, and %s allows none (%s)" % (what, count, RATCHETS, words)
        elif what in AT_LEAST:
            if count < allowed[what]:
                yield "%s: %s, at least %s (%s)" % (what, count, allowed[what], words)
        elif count > allowed[what]:
            yield "%s: %s, at most %s (%s)" % (what, count, allowed[what], words)
    if write:
        lower = {what: (max if what in AT_LEAST else min)(most, now[what][0]) if what in now else most
                 for what, most in allowed.items() if what in now or not what.startswith("per cent")}
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps(lower, indent=2) + "\n")


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


TYPE = re.compile(r"^(?:typedef )?(?:struct|enum|union) (oos_\w+)\s*\{", re.M)
EITHER = {"oos_stream", "oos_literals", "oos_literal_scan"}  # two files, of which a build takes one


def twins(root):
    """One name, two types: a file that sees both headers reads one as the other."""
    places = {}
    for path, code in files(root, ["src", "shim"], (".c", ".h")):
        for name in TYPE.findall(code):
            places.setdefault(name, set()).add(path)
    for name, found in sorted(places.items()):
        if len(found) > 1 and name not in EITHER:
            yield "%s is defined in %s" % (name, " and ".join(sorted(found)))


def main():
    words = [w for w in sys.argv[1:] if w != "--write"]
    root = words[0] if words else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bad = list(findings(root)) + list(circles()) + list(twins(root)) + list(above(root, "--write" in sys.argv))
    print("\n".join(bad) if bad else "layers: every arrow points the right way, nothing grew")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
