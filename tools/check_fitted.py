#!/usr/bin/env python3
"""Constants that were fitted on measured starts are listed in tools/fitted.json with the number of their independent sources. One with fewer
than three is a range; those that are not are counted, and tools/ratchets.json has how many there may be. A comment that says a constant was
chosen, or comes from one start or source, is in a file that the list names. Standard library only.

    check_fitted.py [ROOT]"""
import json
import os
import re
import sys

FEW = 3
SAID = re.compile(r"(?i)\b(one start\b(?! ?[.,;:]? ?(phase|is planned))|one source|was chosen,|was chosen to|chosen,? (not|to|on)|not measured|fitted on)")
LOOKED_AT = ("src/plan", "src/sizes", "src/facts", "src/engines")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
# Sentences of what a file is about, and choices that are no bytes.
NO_CONSTANT = {"src/engines/vllm/plan.c", "src/plan/plan.h", "src/engines/vllm/outside.h", "src/engines/vllm/setup/setup.h", "src/engines/vllm/solve/solve_points.c",
               "src/engines/vllm/solve/solve_trial.h", "src/engines/engine.h"}


def listed(root):
    with open(os.path.join(root, "tools/fitted.json"), encoding="utf-8") as f:
        return json.load(f)


def wrong(root, constants):
    """Entries that do not say what they must, or name a place that is not there."""
    for c in constants:
        name = c.get("name", "?")
        if not isinstance(c.get("sources"), int) or not isinstance(c.get("range"), bool):
            yield "%s: says neither how many sources it has nor whether it is a range" % name
        path, _, function = c.get("in", "").partition(" ")
        whole = os.path.join(root, path)
        if not os.path.isfile(whole):
            yield "%s: no file %s" % (name, path)
            continue
        with open(whole, encoding="utf-8") as f:
            if function and not re.search(r"\b%s\b" % re.escape(function), f.read()):
                yield "%s: %s has no %s" % (name, path, function)


def said(root):
    """(path, line, words) of comments that say so."""
    for top in LOOKED_AT:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if not name.endswith((".c", ".h")):
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    text = f.read()
                for comment in COMMENT.finditer(text):
                    found = SAID.search(re.sub(r"\s+\*?\s*", " ", comment.group()))
                    if found:
                        yield os.path.relpath(path, root), text.count("\n", 0, comment.start()) + 1, found.group()


def unlisted(root, constants):
    files = {c.get("in", "").split(" ")[0] for c in constants}
    for path, line, words in said(root):
        if path not in files and path not in NO_CONSTANT:
            yield "%s:%d: says \"%s\", and tools/fitted.json has no constant of this file" % (path, line, words)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    constants = listed(root)
    bad = list(wrong(root, constants)) + list(unlisted(root, constants))
    few = [c for c in constants if (c.get("sources") or 0) < FEW]
    points = [c["name"] for c in few if not c.get("range")]
    with open(os.path.join(root, "tools/ratchets.json"), encoding="utf-8") as f:
        allowed = json.load(f)
    for what, count in (("fitted constants with few sources", len(few)), ("fitted constants with few sources and no range", len(points))):
        if count > allowed.get(what, 0):
            bad.append("%s: %d, at most %d (%s)" % (what, count, allowed.get(what, 0), "; ".join(points)))
    print("\n".join(bad) if bad else "fitted constants: %d, %d of them with fewer than three sources, %d of these without a range" % (len(constants), len(few), len(points)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
