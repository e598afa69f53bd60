#!/usr/bin/env python3
"""Are the outputs in the documents what the command prints? check_docs.py BINARY [--rewrite] [FILE...]

A fenced block whose first line is `$ oomsight ...` holds a command (a backslash continues it) and what it printed. Each is
run again, with NO_COLOR, in the root of the checkout, and compared; `...` alone on a line stands for lines left out. A
model written ./NAME is looked for in tests/fixtures/models and in $OOMSIGHT_MODELS (../shared/golden/models); a block
whose files are not there is skipped by name. --rewrite puts what is printed now in their place. Standard library only."""
import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


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
    args = parser.parse_args()
    models = os.environ.get("OOMSIGHT_MODELS", os.path.join(ROOT, "../shared/golden/models"))
    files = args.files
    if not files:
        listed = subprocess.run(["git", "ls-files", "README.md", "docs/*.md"], cwd=ROOT, capture_output=True, text=True)
        files = [os.path.join(ROOT, f) for f in listed.stdout.split()]
    good = bad = skipped = 0
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
