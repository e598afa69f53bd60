#!/usr/bin/env python3
"""Are the documents true and whole? check_docs.py BINARY [--rewrite] [--root DIR] [FILE...]

Every block of every page is compared with what is printed now, run, or named with the reason why it is not run (page_blocks.py); every option that
a page or an example names exists (page_options.py). --rewrite puts what is printed now into the pages, and draws the picture of the terminal again.
A link that leads nowhere, a heading that is not there, a page above its size and a release that was never made fail; so does a figure that is not
that of the results (figures.py). The last lines count the blocks by kind: those that are compared or run may not become fewer, the others not more.
--root: the pages of that tree, without figures, picture and counts. FILE: the blocks and options of those pages alone. Standard library only."""
import argparse
import glob
import os
import re
import sys
import tempfile

import figures
import page_blocks
import page_options
import terminal

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md", "data/*.md", ".github/**/*.md")
EXAMPLES = ("action.yml", "examples/**/*.yml", "examples/**/*.yaml")
HISTORY = ("CHANGELOG.md", "docs/reference/messages.md")  # names what is gone, and what others are called
WORDS_IN_ALL, WORDS_OF_A_PAGE, BYTES_OF_README = 42120, 1200, 6000  # a canary, what a fleet asked for


def anchor(heading):
    """As GitHub makes it of a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def found(root, patterns):
    return sorted({path for pattern in patterns for path in glob.glob(os.path.join(root, pattern), recursive=True)})


def links(root):
    """Links of all pages that lead nowhere."""
    paths = found(root, PAGES)
    texts = {path: without_code(figures.read(path)) for path in paths}
    for path, text in texts.items():
        for target, mark in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", re.sub(r"`[^`\n]*`", "", text)):
            if re.match(r"[a-z]+:", target):
                continue
            to = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
            if not os.path.exists(to):
                yield "%s: no %s" % (os.path.relpath(path, root), target)
            elif mark and to in texts and mark[1:] not in [anchor(h) for h in re.findall(r"^#+ +(.+)$", texts[to], re.M)]:
                yield "%s: no heading %s in %s" % (os.path.relpath(path, root), mark, os.path.relpath(to, root))


GENERATED = re.compile(r"<!-- (?:ratchets|figures|messages|defects): .*?<!-- end -->", re.S)


def words_of(text):
    return sum(any(c.isalnum() for c in word) for word in text.split())


def sizes(root):
    """Pages above their size: generated reference and tables may be longer."""
    pages = {path: figures.read(path) for path in glob.glob(os.path.join(root, "docs/**/*.md"), recursive=True)}
    count = {path: words_of(GENERATED.sub("", text)) for path, text in pages.items()}
    in_all = sum(count.values())
    if in_all > WORDS_IN_ALL:
        yield "docs: %d words, at most %d" % (in_all, WORDS_IN_ALL)
    for path, words in sorted(count.items()):
        place = os.path.relpath(path, root)
        if words > WORDS_OF_A_PAGE and not place.startswith("docs/reference/"):
            yield "%s: %d words, at most %d" % (place, words, WORDS_OF_A_PAGE)
    readme = os.path.join(root, "README.md")
    if os.path.exists(readme) and os.path.getsize(readme) > BYTES_OF_README:
        yield "README.md: %d bytes, at most %d" % (os.path.getsize(readme), BYTES_OF_README)


def releases(path, text):
    """No release is on PyPI or has a tag: what names one cannot be installed, and the name is anybody's."""
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"\b(pip|pipx|uv|uvx)\b[^`|;]* oomsight\b(?![-_/.])|\boomsight[=~<>]=|(repository>|oomsight)@v?\d|rev: v?\d+\.", line):
            yield "%s:%d: a release that does not exist: %s" % (path, number, line.strip())


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--rewrite", action="store_true")
    parser.add_argument("--root")
    args = parser.parse_intermixed_args(words)
    root, binary = os.path.abspath(args.root or ROOT), os.path.abspath(args.binary)
    pages = args.files or found(root, PAGES)
    faults, counts = [] if args.files else [*links(root), *sizes(root)], {}
    if not args.files and not args.root:
        faults += ["a figure or a picture is not up to date: tools/check_docs.py BINARY --rewrite"] * (
            bool(figures.run(args.rewrite)) + (not figures.put(os.path.join(ROOT, terminal.PICTURE), terminal.picture(binary), args.rewrite, "tools/check_docs.py BINARY --rewrite")))
    commands = page_options.own(binary)
    known, usages = page_options.Known(root, commands), page_options.usages(binary, commands)
    with tempfile.TemporaryDirectory() as work:
        clone = page_blocks.Clone(root, work, binary)
        for path in pages + ([] if args.files else found(root, EXAMPLES)):
            place = os.path.relpath(path, root) if path.startswith(root + os.sep) else path
            text = figures.read(path)
            if place not in HISTORY:
                faults += [*known.faults(place, text), *releases(place, text)]
            if not path.endswith(".md"):
                continue
            of_page, wrong, now = page_blocks.check(place, text, clone, usages, args.rewrite)
            faults += wrong
            for kind, count in of_page.items():
                counts[kind] = counts.get(kind, 0) + count
            if now != text:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(now)
    if not args.files and not args.root:
        faults += page_blocks.held(counts)
    print(*faults, sep="\n", end="\n" if faults else "")
    print("blocks: %s" % ", ".join("%d %s" % (counts[kind], kind) for kind in ("compared", "run", "usage", "other", "text", "left out") if kind in counts))
    print("not run here: %s" % ", ".join("%d %s" % (counts[kind], kind) for kind in page_blocks.NOT_RUN if kind in counts))
    print("documents: %d not as they should be" % len(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
