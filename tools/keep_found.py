#!/usr/bin/env python3
"""What a search has found becomes a test: keep_found.py FOUND_DIR [--write] [--corpus DIR]

FOUND_DIR has a folder for each fuzz target with its findings (crash-*, timeout-*, oom-*, leak-*). Without --write they are listed, with exit 1 when there
are any. With it each becomes an input of tests/fuzz/corpus/TARGET, named by its kind and the first twelve digits of its SHA-256, which every
gate replays from then on: it must be mended in the same change. An input that the corpus has is not kept twice."""
import argparse
import hashlib
import os
import re
import shutil
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FINDING = re.compile(r"(crash|timeout|oom|leak)-")
MOST_BYTES = 256 << 10


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def findings(folder):
    """(target, kind, path) of each finding, in order."""
    for target in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        for name in sorted(os.listdir(os.path.join(folder, target))):
            kind = FINDING.match(name)
            if kind:
                yield target, kind.group(1), os.path.join(folder, target, name)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("found")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--corpus", default=os.path.join(ROOT, "tests", "fuzz", "corpus"))
    asked = parser.parse_args()
    count = 0
    for target, kind, path in findings(asked.found):
        corpus = os.path.join(asked.corpus, target)
        known = {digest(os.path.join(corpus, name)) for name in os.listdir(corpus)} if os.path.isdir(corpus) else set()
        if os.path.getsize(path) > MOST_BYTES or digest(path) in known:
            print("%s: %s" % (path, "in the corpus already" if digest(path) in known else "too large: make it smaller first (-minimize_crash=1)"))
            continue
        count += 1
        kept = os.path.join(corpus, "%s-%s" % (kind, digest(path)[:12]))
        if asked.write:
            os.makedirs(corpus, exist_ok=True)
            shutil.copyfile(path, kept)
        print("%s: %s %s" % (path, "kept as" if asked.write else "would be", os.path.relpath(kept, ROOT)))
    print("%d found%s" % (count, "" if asked.write or not count else "; keep them by tools/keep_found.py %s --write" % asked.found))
    return 0 if asked.write or not count else 1


if __name__ == "__main__":
    sys.exit(main())
