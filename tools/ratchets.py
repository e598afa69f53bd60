#!/usr/bin/env python3
"""What of the source tree may become less and never more. The limits are one table, in docs/contributing/architecture.md; tools/check_layers.py
fails when a number is above its limit, when one has no limit, and when the table shows other numbers than the tree has. Standard library only.

    ratchets.py [ROOT]            the numbers of today
    ratchets.py [ROOT] --write    writes them into the table, and lowers each limit that is above its number

A limit is raised by hand, in the table, with the reason in its last column. Of what is `at least` it is the other way round."""
import functools
import json
import math
import os
import re
import sys

import check_fitted
import rule_table

PAGE = os.path.join("docs", "contributing", "architecture.md")
BEGIN, END = "<!-- ratchets: tools/ratchets.py --write -->", "<!-- end -->"
HEAD = "| what | today | limit | raised for |\n| --- | --: | --: | --- |\n"
TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"((?:[^"\\\n]|\\.)*)"|'(?:[^'\\\n]|\\.)+'""", re.S)  # a comment, a string, a character
HASH_COMMENT = re.compile(r"^[ \t]*#.*$", re.M)


def files(root, tops, ends):
    """(path from the root, text without comments) of each source file."""
    for top in tops:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith(ends):
                    path = os.path.join(folder, name)
                    yield os.path.relpath(path, root), code_of(path, os.stat(path).st_mtime_ns, os.stat(path).st_size)


@functools.lru_cache(maxsize=None)
def code_of(path, _time, _size):
    """A comment leaves its lines, all else is as it was."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if path.endswith((".py", ".sh")):
        return HASH_COMMENT.sub("", text)
    return TOKEN.sub(lambda found: "\n" * found.group().count("\n") if found.group().startswith("/") else found.group(), text)


@functools.lru_cache(maxsize=None)
def lines_with(pattern, code):
    return sum(1 for line in code.split("\n") if pattern.search(line)) if pattern.search(code) else 0


@functools.lru_cache(maxsize=None)
def times(pattern, code):
    return len(pattern.findall(code))


@functools.lru_cache(maxsize=None)
def strings(code):
    return [found.group(1) for found in TOKEN.finditer(code) if found.group(1)]


def data(root, name):
    """The file of that name of each engine."""
    top = os.path.join(root, "data", "engines")
    for engine in sorted(os.listdir(top)):
        path = os.path.join(top, engine, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                yield json.load(f)


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
            for _ in range(lines_with(ENGINE, code))]


# No engine knows another: an include in the folder of one of a file in the folder of the other.
INCLUDE = re.compile(r'^\s*#\s*include\s*"engines/([^"/]+)/', re.M)


def engine_includes(root):
    return [path for path, code in files(root, ["src/engines"], (".c", ".h", ".def")) if path.count("/") > 2
            for engine in INCLUDE.findall(code) if path.split("/")[2] != engine]


# Flags are the engine's own words: each time one stands in a string.
FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w.-]*")


def engine_flags(root):
    known = {name for table in data(root, "flags.json") for flag in table["flags"] for name in flag["names"]}
    return [path for path, code in files(root, ["src"], (".c", ".h", ".def")) if not path.startswith("src/engines/")
            for text in strings(code) for word in FLAG.findall(text) if word in known]


# Models are known by their layers, not by their names: strings that are the name of a model, or the beginning of one. The names are the
# architectures that engines register, as they are and in the spelling of config.json; in src/model, which reads them, as they are alone.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
NAMES_OF = re.compile(r"(For(CausalLM|ConditionalGeneration|\w+)|LMHeadModel|Model|ChatModel)$")
NOT_A_MODEL = {"mamba", "mamba2", "model", "phi", "step", "steps", "bert", "transformers", "medusa", "eagle", "eagle3", "audio",
               "embed", "embedding", "extra", "point", "points", "torch", "openai", "extracthiddenstates", "mlpspeculator"}
KNOWS_MODELS = ("src/model/", "src/facts/")


def classes(root):
    return {name for table in data(root, "architectures.json") for part in ("architectures", "behaviour") for name in table.get(part, ())}


def model_names(root):
    stems = {NAMES_OF.sub("", name).replace("_", "").lower() for name in classes(root)}
    stems = {s for s in stems if len(s) > 2}
    beginnings = {s[:n] for s in stems for n in range(5, len(s) + 1)}

    def is_model(literal):
        plain = literal.replace("_", "").lower()
        if len(plain) < 4 or plain in NOT_A_MODEL or not NAME.fullmatch(literal):
            return False
        stem = NAMES_OF.sub("", literal).replace("_", "").lower()
        return stem in stems or plain in beginnings
    return [path for path, code in files(root, ["src", "cli"], (".c", ".h", ".def")) if not path.startswith(KNOWS_MODELS)
            for text in strings(code) if is_model(text)]


def model_classes(root):
    known = classes(root)
    return [path for path, code in files(root, KNOWS_MODELS, (".c", ".h", ".def")) for text in strings(code) if text in known]


# What an engine refuses is a row of its refusals.json.
REFUSES = re.compile(r"\breturn oos_check_refuse\(")


def refusals(root):
    return [path for path, code in files(root, ["src/engines"], (".c",)) for _ in range(times(REFUSES, code))]


# One function each: a line that begins a definition, up to its brace.
FUNCTION = re.compile(r"^[A-Za-z_][^;={}#]*\)\n\{", re.M)
ASSERTION = re.compile(r"\b(?:oos_assert|_Static_assert)\(")


def assertions(root):
    """In tenths, rounded down: what oos_assert and _Static_assert state for each thousand lines."""
    code = [code for path, code in files(root, ["src"], (".c", ".h", ".def")) if path != "src/base/check.h"]
    count, lines = sum(times(ASSERTION, one) for one in code), sum(one.count("\n") for one in code)
    return math.floor(10000 * count / max(1, lines)) / 10, "%d in %d lines" % (count, lines)


def lines(root, ends):
    """{tree below src: lines}, whole trees and not their leaf folders. Each engine is a tree of its own."""
    found = {}
    for path, code in files(root, ["src"], ends):
        parts = path.split("/")[:-1]
        if len(parts) > 1:
            tree = "/".join(parts[:3 if parts[1] == "engines" else 2])
            found[tree] = found.get(tree, 0) + code.count("\n")
    return found


CROWDED, CROWDED_ENGINE = 15, 20  # per cent of src/: more than that is several subjects under one name
ASSERTIONS = "assertions per thousand lines of src, at least"
AT_LEAST = {ASSERTIONS}  # all others are at most


def counts(root):
    """{what is counted: (how much there is now, what to say of it)}"""
    def told(found):
        by = {}
        for path in found:
            part = "/".join(path.split("/")[:2])
            by[part] = by.get(part, 0) + 1
        return len(found), ", ".join("%s %d" % one for one in sorted(by.items()))
    code = list(files(root, ["src"], (".c", ".h")))
    of_tree, whole = lines(root, (".c", ".h")), sum(text.count("\n") for _, text in code)
    functions = sum(times(FUNCTION, text) for _, text in code)
    result = {
        "includes from one engine into another": told(engine_includes(root)),
        "engine flags in strings outside src/engines": told(engine_flags(root)),
        "engine lines in src": told(engine_lines(root, ["src"])),
        "engine lines in cli": told(engine_lines(root, ["cli"])),
        "engine lines in bindings": told(engine_lines(root, ["bindings"])),
        "engine lines in shim/python": told(engine_lines(root, ["shim/python"])),
        "releases named": told(releases(root)),
        "refusals written in C": told(refusals(root)),
        "model names": told(model_names(root)),
        "model classes in src/model and src/facts": told(model_classes(root)),
        **{"unverified rules of " + engine: (len(rule_table.unverified(root, engine)[0]), "tests/rules/%s.tsv" % engine) for engine in sorted(rule_table.PACKAGE)},
        "fitted constants with few sources": (check_fitted.few(root), "data/constants.json and those of engines"),
        "bytes written as numbers in engines and sizes": (check_fitted.literals(root), "rows of a table of constants"),
        ASSERTIONS: assertions(root),
        "functions per thousand lines of src": (math.ceil(1000 * functions / max(1, whole)), "%d in %d lines" % (functions, whole)),
        "headers in src": (sum(path.endswith(".h") for path, _ in code), "put one into another of its folder"),
        "lines of src": (whole, "take lines out"),
        "lines of tools": (sum(text.count("\n") for _, text in files(root, ["tools"], (".py", ".sh"))), "take lines out"),
        **{"lines of " + tree: (count, "take lines out") for tree, count in sorted(of_tree.items())},
    }
    shares = lines(root, (".c", ".h", ".def"))
    for tree, count in sorted(shares.items()):
        limit, share = CROWDED_ENGINE if tree.startswith("src/engines/") else CROWDED, 100 * count / sum(shares.values())
        if share > limit:
            result["per cent of src in " + tree] = (math.ceil(10 * share) / 10, "split it, or take lines out: it may have %d" % limit)
    return result


PLACE = re.compile(r"\b\w+(/\w+)+")  # written as code in the table


def number(text):
    return float(text) if "." in text else int(text.replace(",", ""))


def shown(value):
    return "{:,}".format(value)


def table(root):
    """(page before the rows, {what: (today, limit, raised for)}, page behind them)"""
    with open(os.path.join(root, PAGE), encoding="utf-8") as f:
        before, found, rest = f.read().partition(BEGIN + "\n" + HEAD)
    rows, end, behind = rest.partition(END)
    if not found or not end:
        raise ValueError("%s: the table of limits, its head or one of its marks is gone: %s" % (PAGE, BEGIN))
    return before + found, rows_of(before + found + rows + end), end + behind


def rows_of(page):
    """{what: (today, limit, raised for)}"""
    result = {}
    for line in page.partition(BEGIN + "\n" + HEAD)[2].partition(END)[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        try:
            what, today, limit, why = cells
            result[what.replace("`", "")] = (number(today), number(limit), why)
        except ValueError:
            raise ValueError("%s: no row of the table of limits: %s" % (PAGE, line)) from None
    return result


def findings(root):
    """What is above its limit, has none, or is shown wrong."""
    try:
        rows = table(root)[1]
    except ValueError as error:
        yield str(error)
        return
    now = counts(root)
    for what, (count, words) in now.items():
        if what not in rows:
            yield "%s: %s, and %s has no limit for it (%s)" % (what, shown(count), PAGE, words)
            continue
        today, limit, _ = rows[what]
        if count < limit if what in AT_LEAST else count > limit:
            yield "%s: %s, %s %s (%s)" % (what, shown(count), "at least" if what in AT_LEAST else "at most", shown(limit), words)
        elif count != today:
            yield "%s: %s, and %s shows %s: tools/ratchets.py --write" % (what, shown(count), PAGE, shown(today))
    for what in rows:
        if what not in now:
            yield "%s: there is nothing left to count, and %s has a limit for it: tools/ratchets.py --write" % (what, PAGE)


def write(root):
    """Today's numbers, and limits that are not above them. A row of its own is added by hand, as a limit is raised."""
    before, rows, behind = table(root)
    for what, (count, _) in counts(root).items():
        if what in rows:
            _, limit, why = rows[what]
            before += "| %s | %s | %s | %s |\n" % (PLACE.sub(r"`\g<0>`", what), shown(count), shown((max if what in AT_LEAST else min)(limit, count)), why)
    with open(os.path.join(root, PAGE), "w", encoding="utf-8") as f:
        f.write(before + behind)


def main():
    words = [w for w in sys.argv[1:] if w != "--write"]
    root = words[0] if words else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if "--write" in sys.argv:
        write(root)
    for what, (count, told) in counts(root).items():
        print("%s: %s (%s)" % (what, shown(count), told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
