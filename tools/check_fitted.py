#!/usr/bin/env python3
"""Fitted constants are rows of the tables that tools/constants.py reads, not numbers in C. Counted, and held by tools/ratchets.py: rows with
fewer than three independent sources, and bytes written as numbers in engines and sizes. A comment that says a constant was chosen, or comes from
one start or source, is in a file that asks a table. Every constant of tools/fitted.json is one of a table. Standard library only.

    check_fitted.py [ROOT]"""
import json
import os
import re
import sys

import constants

TABLES = ("data/constants.json", "data/engines/vllm/constants.json", "data/engines/sglang/constants.json")
SAID = re.compile(r"(?i)\b(one start\b(?! ?[.,;:]? ?(phase|is planned))|one source|was chosen,|was chosen to|chosen,? (not|to|on)|not measured|fitted on)")
LOOKED_AT = ("src/plan", "src/sizes", "src/facts", "src/engines")
COUNTED = ("src/sizes", "src/engines", "src/facts/driver.c")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
ASKS = re.compile(r"oos_constant")
LITERAL = re.compile(r"\b\d+ \* OOS_[KMG]IB\b")
# Sentences of what a file is about, and choices that are no bytes.
NO_CONSTANT = {"src/engines/vllm/plan.c", "src/engines/vllm/vllm.h", "src/plan/plan.h", "src/engines/vllm/setup/setup.h", "src/engines/vllm/solve/solve_points.c",
               "src/engines/vllm/solve/solve.h", "src/engines/engines.h"}


def sources(root, tops):
    """(path from the root, text) of the C files below."""
    for top in tops:
        whole = os.path.join(root, top)
        for folder, _, names in os.walk(whole) if os.path.isdir(whole) else [(os.path.dirname(whole), [], [os.path.basename(whole)])]:
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith((".c", ".h")) and os.path.isfile(path):
                    with open(path, encoding="utf-8") as f:
                        yield os.path.relpath(path, root), f.read()


def unlisted(root):
    """Comments that say so where no table is asked."""
    for path, text in sources(root, LOOKED_AT):
        if path in NO_CONSTANT or ASKS.search(text):
            continue
        for comment in COMMENT.finditer(text):
            found = SAID.search(re.sub(r"\s+\*?\s*", " ", comment.group()))
            if found:
                yield "%s:%d: says \"%s\", and asks no table of constants" % (path, text.count("\n", 0, comment.start()) + 1, found.group())


def literals(root):
    return sum(len(LITERAL.findall(COMMENT.sub("", text))) for _, text in sources(root, COUNTED))


def tables(root):
    """(names, measured rows, what is wrong) of the tables."""
    known, rows, bad = set(), [], []
    for table in TABLES:
        try:
            found = constants.load(os.path.join(root, table))
        except (constants.Bad, OSError) as error:
            bad.append(str(error))
            continue
        known |= {name for name, _, _ in found}
        rows += [row for _, kind, all_rows in found if kind == "value" for row in all_rows if row["by"] == "measured"]
    return known, rows, bad


def few(root):
    return sum(row["sources"] < constants.FEW for row in tables(root)[1])


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    known, rows, bad = tables(root)
    bad += unlisted(root)
    with open(os.path.join(root, "tools/fitted.json"), encoding="utf-8") as f:
        bad += ["%s: no table has %s" % (one.get("name"), one.get("constant")) for one in json.load(f) if one.get("constant") not in known]
    print("\n".join(bad) if bad else "fitted constants: %d rows, %d of them with fewer than three sources, each of these a range" % (len(rows), few(root)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
