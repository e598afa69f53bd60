#!/usr/bin/env python3
"""Every known defect has a test. tests/defects/ids.txt lists the defects; each line of tests/defects/*.tsv is an id, a test and a sentence:

    P4<TAB>tests/unit/test_arguments.c:a_draft_of_an_unknown_model_is_not_refused<TAB>what the test shows

The test is a file of the repository, or file:case with a word that stands in that file; `-` where the sentence argues that it is no
defect. A row that names nothing fails. An id without a row fails with --strict, and is only printed without it. Standard library only.

    check_defects.py [ROOT] [--strict]"""
import glob
import os
import re
import sys

MEASUREMENT = re.compile(r"\d")


def problem(root, test, sentence):
    """What is wrong with a row, or None."""
    if len(sentence.split()) < 3:
        return "no sentence"
    if test == "-":
        return None if MEASUREMENT.search(sentence) else "argued away without a measurement"
    path, _, case = test.partition(":")
    whole = os.path.normpath(os.path.join(root, path))
    if not path.startswith(("tests/", "tools/", "web/", "examples/")) or path.startswith("tests/defects/") or ".." in path:
        return "%s is no test" % path
    if not os.path.isfile(whole):
        return "no file %s" % path
    if case:
        with open(whole, encoding="utf-8", errors="replace") as f:
            if not re.search(r"(?<!\w)%s(?!\w)" % re.escape(case), f.read()):
                return "%s has no %s" % (path, case)
    return None


def main():
    words = [w for w in sys.argv[1:] if w != "--strict"]
    root = words[0] if words else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(root, "tests/defects/ids.txt"), encoding="utf-8") as f:
        ids = f.read().split()
    bad, seen = [], set()
    for path in sorted(glob.glob(os.path.join(root, "tests/defects/*.tsv"))):
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f.read().splitlines(), 1):
                fields = line.split("\t")
                place = "%s:%d" % (os.path.relpath(path, root), number)
                if len(fields) != 3:
                    bad.append("%s: %d fields, not id, test and sentence" % (place, len(fields)))
                    continue
                wrong = "no defect %s" % fields[0] if fields[0] not in ids else problem(root, fields[1], fields[2])
                if wrong:
                    bad.append("%s: %s: %s" % (place, fields[0], wrong))
                else:
                    seen.add(fields[0])
    missing = [i for i in ids if i not in seen]
    if missing:
        print("%d of %d defects have no test: %s" % (len(missing), len(ids), " ".join(missing)))
    print("\n".join(bad) if bad else "%d of %d defects have a test" % (len(seen), len(ids)))
    return 1 if bad or missing and "--strict" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
