#!/usr/bin/env python3
"""The table tests/rules/ENGINE.tsv, rule by release, made from the engines' sources and not from data/engines/ENGINE/rules.json.

    rule_table.py ENGINE --sources DIR [--write]    DIR/RELEASE/... is the source of that release, unpacked: the tag, or PyPI's package. What is
                                                    not there the table keeps as it was seen
    rule_table.py --check                           every row of the tables has its source, or says that it has none

tests/rules/ENGINE.probes.tsv says where each rule is to be seen: rule, value, files of the release (from the package's folder), a regular
expression over the text of a file. The first line that matches in a release gives the value ($1: what the expression holds); `else`
stands for "nowhere". A rule without probes, or a release in which none of them matches, is `unverified` and has the value of the rules. Where the
source shows another value than the rules say, the exit code is 1: one of them is wrong. Columns of the table: rule, first release, last release, value, source."""
import argparse
import glob
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGE = {"vllm": "vllm", "sglang": "python/sglang"}


def book(engine):
    """Releases, and {rule: [(since, value)]}."""
    with open(os.path.join(ROOT, "data/engines", engine, "rules.json"), encoding="utf-8") as f:
        rows = json.load(f)
    versions = next(r["versions"] for r in rows if "versions" in r)
    return versions, {r["rule"]: [(s["since"], number(s["value"])) for s in r["steps"]] for r in rows if "rule" in r}


def number(value):
    return "%d" % float(value) if float(value).is_integer() else "%g" % float(value)


def key(version):
    return [int(n) for n in version.split(".")]


def value_of(steps, version):
    return [value for since, value in steps if key(since) <= key(version)][-1]


def probes(engine):
    """{rule: [(value, globs, pattern)]}, `else` with neither."""
    result = {}
    with open(os.path.join(ROOT, "tests/rules", engine + ".probes.tsv"), encoding="utf-8") as f:
        for number_, line in enumerate(f, 1):
            if line.startswith("#") or not line.strip():
                continue
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 3 and fields[2] == "else":
                result.setdefault(fields[0], []).append((fields[1], None, None))
            elif len(fields) == 4:
                result.setdefault(fields[0], []).append((fields[1], fields[2].split(","), re.compile(fields[3], re.S | re.M)))
            else:
                sys.exit("probes:%d: rule, value, files, expression; or rule, value, else" % number_)
    return result


class Source:
    """The files of one release."""

    def __init__(self, folder, package):
        self.folder, self.texts = os.path.join(folder, package), {}
        self.there = os.path.isdir(self.folder)

    def files(self, patterns):
        for pattern in patterns:
            for path in sorted(glob.glob(os.path.join(self.folder, pattern), recursive=True)):
                if os.path.isfile(path):
                    if path not in self.texts:
                        with open(path, encoding="utf-8", errors="replace") as f:
                            self.texts[path] = f.read()
                    yield os.path.relpath(path, self.folder), self.texts[path]

    def see(self, lines):
        """(value, source) that the first matching line gives; None where none does."""
        for value, patterns, expression in lines:
            if patterns is None:
                return value, "nowhere: " + ", ".join(sorted({p for _, ps, _ in lines if ps for p in ps}))
            for path, text in self.files(patterns):
                found = expression.search(text)
                if found:
                    shown = found.group(1) if value == "$1" else value
                    return number(shown), "%s %s" % (path, within(text, found.start()))
        return None


def within(text, at):
    """The function or class that a place of a file lies in, or the line's first word."""
    found = re.findall(r"^(?:class|\s*def|\s*async def) +(\w+)", text[:text.find("\n", at)], re.M)
    return found[-1] if found else "module"


def seen_before(engine, versions):
    """{(rule, release): (value, source)} of the table as it is."""
    seen, path = {}, os.path.join(ROOT, "tests/rules", engine + ".tsv")
    if not os.path.exists(path):
        return seen
    with open(path, encoding="utf-8") as f:
        for rule, first, last, value, source in (line.rstrip("\n").split("\t") for line in f):
            if source != "unverified" and first in versions and last in versions:
                seen.update({(rule, v): (value, source) for v in versions[versions.index(first):versions.index(last) + 1]})
    return seen


def table(engine, folder):
    versions, rules = book(engine)
    before = seen_before(engine, versions)
    lines = probes(engine)
    for rule in lines:
        if rule not in rules:
            sys.exit("a probe for %s, which is no rule" % rule)
    sources = {v: Source(os.path.join(folder, v), PACKAGE[engine]) for v in versions}
    rows, differ = [], []
    for rule, steps in rules.items():
        last = None
        for version in versions:
            said = value_of(steps, version)
            seen = sources[version].see(lines[rule]) if rule in lines and sources[version].there else None
            seen = seen or before.get((rule, version))
            if seen and number(seen[0]) != number(said):
                differ.append((rule, version, said, seen))
            value, source = seen if seen else (said, "unverified")
            if last and last[3] == value and (last[4] == "unverified") == (source == "unverified"):
                last[2] = version
            else:
                last = [rule, version, version, value, source]
                rows.append(last)
    return rows, differ


def unverified(root, engine):
    """Rules of a table with a row that no source shows."""
    with open(os.path.join(root, "tests/rules", engine + ".tsv"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    bad = [r for r in rows if len(r) != 5 or not r[4]]
    return {r[0] for r in rows if r not in bad and r[4] == "unverified"}, bad


def check(root):
    """What is wrong with the tables: a row without a source. tools/ratchets.py holds how many rules are unverified."""
    for engine in sorted(PACKAGE):
        for row in unverified(root, engine)[1]:
            yield "%s: five columns, the last one the source or `unverified`: %s" % (engine, row)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", nargs="?", choices=sorted(PACKAGE))
    parser.add_argument("--sources")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", nargs="?", const=ROOT)
    args = parser.parse_args()
    if args.check:
        bad = list(check(args.check))
        print("\n".join(bad) if bad else "rule tables: every row has its source, or is known to have none")
        return 1 if bad else 0
    rows, differ = table(args.engine, args.sources)
    said = {}
    for rule, version, value, seen in differ:
        said.setdefault((rule, value, seen[0]), []).append((version, seen[1]))
    for (rule, value, other), places in said.items():
        print("%s: the rules say %s, the source %s: %s (%s)" % (rule, value, other, " ".join(v for v, _ in places), places[0][1]))
    print("%d rows, %d rules, %d of them not verified, %d differ" % (
        len(rows), len({r[0] for r in rows}), len({r[0] for r in rows if r[4] == "unverified"}), len({d[0] for d in differ})))
    if args.write:
        with open(os.path.join(ROOT, "tests/rules", args.engine + ".tsv"), "w", encoding="utf-8") as f:
            f.writelines("\t".join(r) + "\n" for r in rows)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
