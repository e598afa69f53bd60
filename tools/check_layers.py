#!/usr/bin/env python3
"""Fail on an #include that points against the arrows of docs/architecture.md. Standard library only."""
import os
import re
import sys

# layer -> the layers it may include from. A layer always sees itself.
MAY_SEE = {
    "base": set(),
    "match": {"base"},
    "facts": {"base"},
    "http": {"base"},
    "input": {"base", "facts"},
    "ledger": {"base"},
    "plan": {"base", "facts", "input", "ledger"},
    "explain": {"base", "match", "facts", "input", "ledger"},
    "dryrun": {"base", "facts", "ledger"},
    "replay": {"base", "facts", "input", "ledger"},
    "report": {"base", "facts", "input", "ledger", "plan", "explain", "replay", "dryrun"},
}
API_SEES = set(MAY_SEE)  # src/api*.c joins everything
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
                allowed = API_SEES if len(parts) == 2 else MAY_SEE[parts[1]] | {parts[1]}
            elif parts[0] == "shim":
                allowed = {"base", "calls", "device", "phantom", "guard"}
            else:
                allowed = set()  # cli and bindings see the public header only, and their own folder without a path
            if seen not in allowed:
                yield "%s:%d: %s may not include %s" % (os.path.relpath(path, root), number, "/".join(parts[:2]), found.group(1))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bad = list(findings(root))
    print("\n".join(bad) if bad else "layers: every arrow points the right way")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
