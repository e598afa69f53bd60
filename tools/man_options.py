#!/usr/bin/env python3
"""The options in the man pages are those of --help, which are those of cli/options.def: compares each OPTIONS section of cli/man with what
the command prints, or rewrites it.

    man_options.py BUILD/cli/oomsight [--write]
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def bold(option):
    """--gpu NAME[xN]: the word bold, the value in italics."""
    word, _, value = option.partition(" ")
    return "\\fB%s\\fR" % roff(word) + (" \\fI%s\\fR" % roff(value) if value else "")


def options_of(program, command):
    """[(option with its value, what it does)], and the last line: options that every answer has."""
    text = subprocess.run([program, command, "--help"], capture_output=True, text=True, check=True).stdout
    rows, last = [], ""
    for line in text.split("\n"):
        if re.match(r"  --[a-z-]+( [^\s,]+)?,( --|$)", line) or (last and line.startswith("  --")):
            last += " " + line.strip()
        elif line.startswith("  --"):
            option = line[2:] if line[22:24].strip() else line[2:24]
            rows.append([option.strip(), line[2 + len(option):].strip()])
        elif rows and line.startswith(" " * 24):
            rows[-1][1] += " " + line.strip()
    return rows, last.strip()


def section(program, command):
    rows, last = options_of(program, command)
    lines = []
    for option, help_text in rows:
        sentence = help_text.strip()
        lines += [".TP", bold(option), roff(sentence[0].upper() + sentence[1:] + ("" if sentence.endswith(".") else "."))]
    if last:
        lines += [".TP", ", ".join(bold(o) for o in last.split(", ")), "The form of the answer, and where the facts come from."]
    return "\n".join(lines) + "\n"


def rewritten(program, text, command):
    """Every .SH OPTIONS is the page's own command's, .SH OPTIONS OF WORD that of another on the same page."""
    def put(found):
        return found.group(1) + section(program, (found.group(2) or command).lower())
    return re.sub(r"(\.SH OPTIONS(?: OF ([A-Z]+))?\n).*?(?=\.SH )", put, text, flags=re.S)


def without_page(program, folder):
    """Commands of --help that have no page, and pages and texts that word the exit codes otherwise."""
    help_text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    wrong = 0
    for command in re.findall(r"^  ([a-z]+)  +\S", help_text, re.M):
        if command != "completion" and not os.path.exists(os.path.join(folder, "oomsight-%s.1" % command)):
            print("cli/man/oomsight-%s.1 is missing" % command)
            wrong += 1
    codes = " ".join(re.search(r"Exit codes: (.*?internal error\.)", help_text, re.S).group(1).split())
    for name in ("README.md", "cli/man/oomsight.1"):
        with open(os.path.join(ROOT, name)) as f:
            if codes not in " ".join(f.read().split()):
                print("%s does not say: %s" % (name, codes))
                wrong += 1
    return wrong


def main():
    program, write = sys.argv[1], "--write" in sys.argv
    wrong = 0
    folder = os.path.join(ROOT, "cli/man")
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        command = re.match(r"oomsight-(\w+)\.1", name)
        if not command:
            continue
        with open(path) as f:
            text = f.read()
        new = rewritten(program, text, command.group(1))
        if new != text and write:
            with open(path, "w") as f:
                f.write(new)
        elif new != text:
            print("%s: its options are not those of 'oomsight %s --help': make golden" % (name, command.group(1)))
            wrong += 1
    wrong += without_page(program, folder)
    return 1 if wrong else 0


sys.exit(main())
