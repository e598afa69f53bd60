#!/usr/bin/env python3
"""Fail on an #include that points against the arrows of docs/contributing/architecture.md, on a circle of layers, on a type that is defined
twice, on a function of a layer that may not be seen, however it was declared, and when what tools/ratchets.py counts has grown. Standard library only.

    check_layers.py [ROOT]"""
import os
import re
import sys

import ratchets

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
    for path, code in ratchets.files(root, ["src", "shim"], (".c", ".h")):
        for name in TYPE.findall(code):
            places.setdefault(name, set()).add(path)
    for name, found in sorted(places.items()):
        if len(found) > 1 and name not in EITHER:
            yield "%s is defined in %s" % (name, " and ".join(sorted(found)))


# A dependency without an include: a function of another folder, declared where it is called.
DEFINED = re.compile(r"^(?!typedef\b)[A-Za-z_][\w \t\*\(\)]*?\b(\w+)\([^;{}]*\)\s*\{", re.M)
CALLED = re.compile(r"(?<![.\w>])([A-Za-z_]\w*)\s*\(")
TEXTS = re.compile(r'"(?:\\.|[^"\\\n])*"')


def reached(root):
    """Functions that a file calls or declares, though it may not include from their folder. (Stubs are linked with base alone: they can call
    nothing else.)"""
    code = {path: TEXTS.sub('""', text) for path, text in ratchets.files(root, ["src", "cli"], (".c", ".h", ".def"))}
    shared = {name for _, text in ratchets.files(root, ["include"], (".h",)) for name in CALLED.findall(text)}
    shared |= set(CALLED.findall(code.get("src/oomsight_private.h", "")))
    home, inline, own = {}, {}, {}
    for path, text in code.items():
        for match in DEFINED.finditer(text):
            if path.endswith(".c") and match.group().startswith("static"):
                own.setdefault(path, set()).add(match.group(1))
            elif path.startswith("src/"):  # what a header defines cannot be had without it
                (home if path.endswith(".c") else inline).setdefault(match.group(1), set()).add(path.split("/")[1])
    for path, text in sorted(code.items()):
        parts = path.split("/")
        allowed = MAY_SEE[parts[1]] | {parts[1]} if parts[0] == "src" and parts[1] in MAY_SEE else set()
        for name in sorted((set(CALLED.findall(text)) & home.keys()) - own.get(path, set()) - shared):
            if not (home[name] | inline.get(name, set())) & allowed:
                line = next(number for number, words in enumerate(text.split("\n"), 1) if re.search(r"\b%s\s*\(" % name, words))
                yield "%s:%d: %s may not use %s of src/%s" % (path, line, "/".join(parts[:2]), name, " and src/".join(sorted(home[name])))


def problems(root):
    return [*findings(root), *circles(), *twins(root), *reached(root), *ratchets.findings(root)]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bad = problems(root)
    print("\n".join(bad) if bad else "layers: every arrow points the right way, nothing grew")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
