#!/usr/bin/env python3
"""Every known defect has a test. tests/defects/ids.txt lists the defects, P1-P30 or one by one; each line of tests/defects/*.tsv is an id, a test
and a sentence:

    P4<TAB>tests/unit/test_arguments.c:a_draft_of_an_unknown_model_is_not_refused<TAB>what the test shows

The test is file:case, by the exact name of a test that can fail (tools/check_tests.py): a function that is registered, a `test_*`, a sentence of a
list of cases or of a claim. A file without cases of its own is a test when Meson, the Makefile, .ci/run or .ci/nightly runs it: a script of tests/cli, a page of
tests/golden. `-` where the sentence argues by a measurement that it is no defect; `open` where no test shows it yet, with the reason. A row that
names nothing fails, and so does an id without a row with --strict. Of `open` there may be as many as tests/floors.json allows. Standard library only.

A page of docs/evidence that has `<!-- defects: F1-F26 -->` ... `<!-- end -->` gets a table of those rows with --write, and fails when it is another.

    check_defects.py [ROOT] [--strict] [--write]"""
import functools
import glob
import json
import os
import re
import sys

import check_tests

MEASUREMENT = re.compile(r"\d")
NUMBERS = re.compile(r"^([A-Z]+)(\d+)-\1(\d+)$")


def listed(text):
    """The ids of ids.txt."""
    for word in text.split():
        numbers = NUMBERS.match(word)
        yield from ["%s%d" % (numbers.group(1), n) for n in range(int(numbers.group(2)), int(numbers.group(3)) + 1)] if numbers else [word]


@functools.lru_cache
def runs(root):
    """[(folder, text)] of what runs tests: Meson's files, the Makefile, .ci/run, .ci/nightly and each run.sh."""
    found = []
    for place in [*glob.glob(os.path.join(root, "tests/*/meson.build")), *glob.glob(os.path.join(root, "tests/*/run.sh")),
                  *(os.path.join(root, name) for name in ("tests/meson.build", "Makefile", ".ci/run", ".ci/nightly"))]:
        if os.path.isfile(place):
            with open(place, encoding="utf-8") as f:
                found.append((os.path.dirname(place), re.sub(r"^\s*#.*$", "", f.read(), flags=re.M)))
    return found


def is_run(root, path):
    """Whether somebody runs this file, by its name or as one of a list of names beside it."""
    folder, name = os.path.split(os.path.join(root, path))
    return any(re.search(r"(?<![\w.])%s(?!\w)" % re.escape(name), code) or place == folder and "'%s'" % os.path.splitext(name)[0] in code for place, code in runs(root))


def no_test(root, path, case):
    """Why PATH or PATH:CASE is no test that can fail, or None."""
    whole = os.path.join(root, path)
    if path.startswith("tests/cli/") and path.endswith(".sh"):
        return "a script of tests/cli has no cases" if case else check_tests.cli_problem(whole)
    if path.startswith("tests/golden/"):
        return None if not case and os.path.isfile(os.path.join(os.path.dirname(whole), "command")) else "is no golden report"
    cases, sentences = {}, set()
    if path.endswith(".c"):
        cases = check_tests.source(whole).cases()
    elif path.endswith(".py"):
        module = check_tests.Module.of(whole)
        cases, sentences = module.cases(), module.sentences()
        if case in module.functions and case not in cases:
            cases = {**cases, case: module.states(case) or module.gives(case)}
        if not case and not module.can_fail():
            return "can only end with 0"
    elif path.endswith(".js"):
        sentences = set(check_tests.js_sentences(whole))
    elif path.endswith(".sh"):
        sentences = check_tests.sh_sentences(whole)
        if not case:
            return "is no test"
    if case:
        return None if case in sentences or cases.get(case) else "has no %s" % case if case not in cases else "%s states nothing that can be false" % case
    if cases:
        return "which of its cases?"
    return None if is_run(root, path) else "is run by nobody"


def problem(root, test, sentence):
    """What is wrong with a row, or None."""
    if len(sentence.split()) < 3:
        return "no sentence"
    if test == "open":
        return None
    if test == "-":
        return None if MEASUREMENT.search(sentence) else "argued away without a measurement"
    path, _, case = test.partition(":")
    if not path.startswith(("tests/", "tools/")) or path.startswith(("tests/defects/", "tests/fixtures/")) or ".." in path or not path.endswith((".c", ".cpp", ".py", ".js", ".sh", ".yml", ".json", ".txt")):
        return "%s is no test" % path
    if not os.path.isfile(os.path.join(root, path)):
        return "no file %s" % path
    wrong = no_test(root, path, case)
    return wrong and "%s: %s" % (path, wrong)


TABLE = re.compile(r"(<!-- defects: ([^>]*) -->\n).*?(<!-- end -->)", re.S)


def table(rows, ids):
    lines = ["| defect | state | test | what it shows |", "| --- | --- | --- | --- |"]
    for one in ids:
        for test, sentence in rows.get(one, []):
            state = "open" if test == "open" else "measured" if test == "-" else "fixed"
            lines.append("| %s | %s | %s | %s |" % (one, state, "" if test in ("-", "open") else "`%s`" % test, sentence.replace("|", "\\|")))
    return "".join(line + "\n" for line in lines)


def stale_pages(root, rows, write):
    for path in sorted(glob.glob(os.path.join(root, "docs/evidence/*.md"))):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        fresh = TABLE.sub(lambda m: m.group(1) + table(rows, list(listed(m.group(2)))) + m.group(3), text)
        if fresh != text and write:
            with open(path, "w", encoding="utf-8") as f:
                f.write(fresh)
        elif fresh != text:
            yield "%s: its table is not tests/defects: tools/check_defects.py --write" % os.path.relpath(path, root)


def main():
    words = [w for w in sys.argv[1:] if w not in ("--strict", "--write")]
    root = words[0] if words else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(root, "tests/defects/ids.txt"), encoding="utf-8") as f:
        ids = list(listed(f.read()))
    bad, seen, open_ones, rows = [], set(), set(), {}
    for path in sorted(glob.glob(os.path.join(root, "tests/defects/*.tsv"))):
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f.read().splitlines(), 1):
                fields = line.split("\t")
                place = "%s:%d" % (os.path.relpath(path, root), number)
                if len(fields) != 3:
                    bad.append("%s: %d fields, not id, test and sentence" % (place, len(fields)))
                    continue
                wrong = "no defect %s" % fields[0] if fields[0] not in ids else problem(root, fields[1], fields[2])
                rows.setdefault(fields[0], []).append(fields[1:])
                if wrong:
                    bad.append("%s: %s: %s" % (place, fields[0], wrong))
                else:
                    (open_ones if fields[1] == "open" else seen).add(fields[0])
    bad += stale_pages(root, rows, "--write" in sys.argv)
    open_ones -= seen
    missing = [i for i in ids if i not in seen and i not in open_ones]
    if missing:
        print("%d of %d defects have no test: %s" % (len(missing), len(ids), " ".join(missing)))
    if open_ones:
        print("%d open: %s" % (len(open_ones), " ".join(i for i in ids if i in open_ones)))
        with open(os.path.join(root, "tests/floors.json"), encoding="utf-8") as f:
            most = json.load(f)["check_defects.py"]["open"]["at_most"]
        if len(open_ones) > most:
            bad.append("%d defects are open, at most %d (tests/floors.json)" % (len(open_ones), most))
        elif len(open_ones) < most:
            print("tests/floors.json still allows %d: lower it" % most)
    print("\n".join(bad) if bad else "%d of %d defects have a test" % (len(seen), len(ids)))
    return 1 if bad or missing and "--strict" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
