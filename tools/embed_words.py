#!/usr/bin/env python3
"""The catalogue of sentences as a C table: embed_words.py data/lang/zh.json LEVERS.json... OUT.c

The pattern with the most text of its own stands first, so that the first one that fits is the closest. What a lever costs stands
in the ladders, in both languages, and not in the catalogue. Fails on a pattern whose
slots cannot be told apart or whose translation uses a slot that is not there."""
import json
import re
import sys


def unique(pairs):
    seen = dict(pairs)
    if len(seen) != len(pairs):
        keys = [k for k, _ in pairs]
        sys.exit("twice in the catalogue: %s" % sorted({k for k in keys if keys.count(k) > 1}))
    return seen


def check(en, zh):
    slots = en.count("{}")
    if "{}{}" in en:
        return "two slots without text between them"
    if en.strip() != en or not en:
        return "blanks around it"
    if slots > 12:
        return "more than 12 slots"
    numbers = [int(n) for n in re.findall(r"\{([1-9])\}", zh)]
    if zh.count("{}") > slots or any(n > slots for n in numbers):
        return "the translation has more slots"
    if not zh.count("{}") + len(set(numbers)) == slots:
        return "the translation leaves a slot out"
    return None


def quoted(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("??", "?\\?")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        book = json.load(file, object_pairs_hook=unique)
    for path in sys.argv[2:-1]:
        with open(path, encoding="utf-8") as file:
            costs = {lever["cost"]["en"]: lever["cost"]["zh"] for lever in json.load(file)["levers"]}
        twice = sorted(en for en, zh in costs.items() if book.get(en, zh) != zh)
        if twice:
            sys.exit("%s: otherwise elsewhere: %s" % (path, twice))
        book.update(costs)
    wrong = ["%s: %s" % (en, problem) for en, zh in book.items() for problem in [check(en, zh)] if problem]
    if wrong:
        sys.exit("\n".join(wrong))
    # A label is taken off first: what stands behind it is a sentence of its own.
    order = sorted(book, key=lambda en: (": " not in en.split("{}")[0], -len(en.replace("{}", "")), en))
    with open(sys.argv[-1], "w", encoding="utf-8") as out:
        out.write('#include "report/report.h"\n\nconst oos_phrase oos_phrases_zh[] = {\n')
        for en in order:
            out.write("    {%s, %s},\n" % (quoted(en), quoted(book[en])))
        out.write("    {0}};\n")


main()
