#!/usr/bin/env python3
"""Are the documents true and whole? check_docs.py BINARY [--rewrite] [--root DIR] [FILE...]

A fenced block whose first line is `$ oomsight ...` holds a command (a backslash continues it) and what it printed. Each is
run again, with NO_COLOR, in the root of the checkout, and compared; `...` alone on a line stands for lines left out. A
model written ./NAME is looked for in tests/fixtures/models and in $OOMSIGHT_MODELS (../shared/golden/models); a block
whose files are not there is skipped by name. --rewrite puts what is printed now in their place, and draws the picture of the
terminal again (terminal.py). A link that leads nowhere, a heading that is not there and a page above its size fail; so does a
figure that is not that of the results (figures.py). --root: the links and sizes of that tree alone. Standard library only."""
import argparse
import difflib
import glob
import os
import re
import subprocess
import sys
import tempfile

import figures
import terminal

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md", "data/*.md", ".github/**/*.md")
WORDS_IN_ALL, WORDS_OF_A_PAGE, BYTES_OF_README = 40000, 1200, 6000


def anchor(heading):
    """As GitHub makes it of a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def links(root):
    """Links of all pages that lead nowhere."""
    paths = sorted({path for pattern in PAGES for path in glob.glob(os.path.join(root, pattern), recursive=True)})
    texts = {path: without_code(open(path, encoding="utf-8").read()) for path in paths}
    for path, text in texts.items():
        for target, mark in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", re.sub(r"`[^`\n]*`", "", text)):
            if re.match(r"[a-z]+:", target):
                continue
            to = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
            if not os.path.exists(to):
                yield "%s: no %s" % (os.path.relpath(path, root), target)
            elif mark and to in texts and mark[1:] not in [anchor(h) for h in re.findall(r"^#+ +(.+)$", texts[to], re.M)]:
                yield "%s: no heading %s in %s" % (os.path.relpath(path, root), mark, os.path.relpath(to, root))


GENERATED = re.compile(r"<!-- ratchets: .*?<!-- end -->", re.S)


def words_of(text):
    return sum(any(c.isalnum() for c in word) for word in text.split())


def sizes(root):
    """Pages above their size: generated reference and tables may be longer."""
    pages = {path: open(path, encoding="utf-8").read() for path in glob.glob(os.path.join(root, "docs/**/*.md"), recursive=True)}
    count = {path: words_of(GENERATED.sub("", text)) for path, text in pages.items()}
    in_all = sum(map(words_of, pages.values()))
    if in_all > WORDS_IN_ALL:
        yield "docs: %d words, at most %d" % (in_all, WORDS_IN_ALL)
    for path, words in sorted(count.items()):
        place = os.path.relpath(path, root)
        if words > WORDS_OF_A_PAGE and not place.startswith("docs/reference/"):
            yield "%s: %d words, at most %d" % (place, words, WORDS_OF_A_PAGE)
    readme = os.path.join(root, "README.md")
    if os.path.exists(readme) and os.path.getsize(readme) > BYTES_OF_README:
        yield "README.md: %d bytes, at most %d" % (os.path.getsize(readme), BYTES_OF_README)


def blocks(text):
    """(start, end, command, output) of each block with a command."""
    for match in re.finditer(r"^```[a-z]*\n(\$ oomsight .*?)^```$", text, re.M | re.S):
        lines = match.group(1).split("\n")[:-1]
        count = 1
        while lines[count - 1].endswith("\\"):
            count += 1
        command = " ".join(line.rstrip("\\").strip() for line in lines[:count])[2:]
        start = match.start(1) + sum(len(line) + 1 for line in lines[:count])
        yield start, match.end(1), command, lines[count:]


def same(shown, printed):
    """Whether `shown` is `printed`, where `...` stands for any number of lines."""
    if "..." not in shown:
        return shown == printed
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def run(binary, command, models):
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(binary, os.path.join(folder, "oomsight"))
        for name in re.findall(r"(?<= )\./([A-Za-z0-9_.-]+)", command):
            places = [os.path.join(ROOT, "tests/fixtures/models", name), os.path.join(models, name),
                      os.path.join(ROOT, name)]
            place = next((p for p in places if os.path.exists(p)), None)
            if place is None:
                return None, name
            os.symlink(place, os.path.join(folder, name))
        environment = dict(os.environ, PATH=folder + ":" + os.environ["PATH"], NO_COLOR="1", COLUMNS="80")
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return done.stdout.rstrip("\n").split("\n"), None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--rewrite", action="store_true")
    parser.add_argument("--root")
    args = parser.parse_args()
    faults = [] if args.files else [*links(args.root or ROOT), *sizes(args.root or ROOT)]
    print(*faults, sep="\n", end="\n" if faults else "")
    if args.root:
        return 1 if faults else 0
    models = os.environ.get("OOMSIGHT_MODELS", os.path.join(ROOT, "../shared/golden/models"))
    files = args.files
    if not files:
        listed = subprocess.run(["git", "ls-files", "README.md", "docs/*.md"], cwd=ROOT, capture_output=True, text=True)
        files = [os.path.join(ROOT, f) for f in listed.stdout.split()]
    good = skipped = 0
    bad = len(faults)
    if not args.files:
        bad += figures.run(args.rewrite)
        bad += not figures.put(os.path.join(ROOT, terminal.PICTURE), terminal.picture(os.path.abspath(args.binary)), args.rewrite, "tools/check_docs.py BINARY --rewrite")
    for file in files:
        with open(file) as f:
            text = f.read()
        for start, end, command, shown in reversed(list(blocks(text))):
            printed, missing = run(os.path.abspath(args.binary), command, models)
            if printed is None:
                skipped += 1
                print("skip %s: no %s" % (os.path.relpath(file, ROOT), missing))
            elif same(shown, printed):
                good += 1
            elif args.rewrite and "..." not in shown:
                text = text[:start] + "\n".join(printed) + "\n" + text[end:]
                good += 1
            else:
                bad += 1
                print("%s: $ %s" % (os.path.relpath(file, ROOT), command))
                print("\n".join(difflib.unified_diff(shown, printed, "document", "printed", lineterm="")))
        if args.rewrite:
            with open(file, "w") as f:
                f.write(text)
    print("documents: %d outputs as printed, %d not, %d skipped" % (good, bad, skipped))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
