#!/usr/bin/env python3
"""Writes docs/reference/phases.md, which flag for which phase, from what `oomsight kb phases --json` prints.

    tools/phase_page.py BUILD/cli/oomsight            exit 1 when the page is not what the command prints
    tools/phase_page.py BUILD/cli/oomsight --write    writes it"""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join("docs", "reference", "phases.md")
TITLES = {"vllm": "vLLM", "sglang": "SGLang"}
HEAD = """# Which flag for which phase

Written by `tools/phase_page.py` from `oomsight kb phases`; change
[levers.json](formats/levers.md), not this page. `plan` prints the phase in brackets; `explain` prints
the record that knows the failure (`oomsight kb show ID`), or else the phase.

Rows stand in the order in which they are suggested, by what is lost: **a** nothing, **b** a default that
was not given, **c** a little quality or speed, **d** what was requested, **e** another checkpoint or
GPU, or much speed. *b/d*: d where the command has the flag.
"""


def code(text):
    """Flags and variables as code, words as words."""
    return re.sub(r"(--[a-z][a-z-]*(?: '\{.*?\}'| (?!lower|higher)[A-Za-z0-9_]+)?|[A-Z]+(?:_[A-Z]+)+=\S+)", r"`\1`", text)


def releases(row, title):
    return " ".join("%s %s %s" % (word, title, row[key]) for word, key in (("from", "since"), ("to", "until")) if row[key]) or "all"


def rung(row):
    return row["rung"] if row["rung"] == row["given"] else row["rung"] + "/" + row["given"]


def named(rows):
    """What is changed, once each, without its value."""
    names = [re.sub(r",? e\.g\. .*| '\{.*", "", row["change"]) for row in rows]
    return "; ".join(code(name) for name in dict.fromkeys(names)) or "-"


def levers(phases):
    """Each lever once, in the order of the ladder: of a ladder every phase shows a part, in its order."""
    rows = {row["id"]: row for phase in phases for row in phase["helps"]}
    order = {}
    for phase in phases:
        ids = [row["id"] for row in phase["helps"]]
        for before, after in zip(ids, ids[1:]):
            order.setdefault(after, set()).add(before)
    done = []
    while len(done) < len(rows):
        done.append(next(i for i in rows if i not in done and order.get(i, set()) <= set(done)))
    return sorted((rows[i] for i in done), key=lambda row: row["rung"])


def engine_part(name, phases):
    title = TITLES.get(name, name)
    yield "## %s\n\n| phase | helps, in this order | no effect |\n| --- | --- | --- |" % title
    for phase in phases:
        if phase["helps"] or phase["no_effect"]:
            yield "| %s `%s` | %s | %s |" % (phase["where"], phase["phase"], named(phase["helps"]), named(phase["no_effect"]))
    yield "\n| lost | change | frees | trade-off | releases |\n| --- | --- | --- | --- | --- |"
    for row in levers(phases):
        yield "| %s | %s | %s | %s | %s |" % (rung(row), code(row["change"]), ", ".join(row["frees"]) or "-", row["cost"], releases(row, title))
    yield "\nWhy a flag has no effect:\n"
    reasons = {}
    for phase in phases:
        for row in phase["helps"]:
            if row["except"]:
                reasons.setdefault(row["except"], []).append("%s in `%s`" % (code(named([row]).replace("`", "")), phase["phase"]))
        for row in phase["no_effect"]:
            reasons.setdefault(row["why"], []).append(code(row["change"]))
    for why, names in reasons.items():
        yield "- %s: %s." % (", ".join(dict.fromkeys(names)), why)
    yield ""


def page(answer):
    lines = [HEAD]
    for at, engine in enumerate(answer["phases"][0]["engines"]):
        lines += engine_part(engine["engine"], [dict(phase, **phase["engines"][at]) for phase in answer["phases"]])
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    printed = subprocess.run([os.path.abspath(sys.argv[1]), "kb", "phases", "--json", "--lang", "en"], capture_output=True, text=True, check=True)
    text, path = page(json.loads(printed.stdout)), os.path.join(ROOT, PAGE)
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    elif not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
        print("%s is not what 'oomsight kb phases' prints: tools/phase_page.py BINARY --write" % PAGE)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
