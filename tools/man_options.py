#!/usr/bin/env python3
"""Manual pages and reference pages of commands are what --help prints, which is cli/options.def:

    man_options.py BUILD/cli/oomsight [--write]

cli/man/oomsight-COMMAND.1 and docs/reference/cli/COMMAND.md hold the same text for every command that --help lists. Compares
them, or writes them. Exit 1 when one differs or is missing."""
import os
import re
import subprocess
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMON = "The form of the answer, and where the facts come from."


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def bold(option):
    """--gpu NAME[xN]: the word bold, the value in italics."""
    word, _, value = option.partition(" ")
    return "\\fB%s\\fR" % roff(word) + (" \\fI%s\\fR" % roff(value) if value else "")


def sentence(text):
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")


def parts(text):
    """(usage lines, paragraphs before the options, [(option with its value, what it does)], paragraphs behind them) of a help text."""
    usage, before, after, rows, last = [], [], [], [], ""
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        if lines[0].startswith("usage: "):
            usage = [line[7:] if line.startswith("usage: ") else line.strip() for line in lines]
            continue
        if not lines[0].startswith("  --"):
            (after if rows or last else before).append(" ".join(line.strip() for line in lines))
            continue
        for line in lines:
            if re.match(r"  --[a-z-]+( [^\s,]+)?,( --|$)", line) or (last and line.startswith("  --")) or re.fullmatch(r"  --[a-z-]+( [^\s,]+)?", line) and line == lines[-1]:
                last += " " + line.strip()
            elif line.startswith("  --"):
                option = line[2:] if line[22:24].strip() else line[2:24]
                rows.append([option.strip(), line[2 + len(option):].strip()])
            elif rows and line.startswith(" " * 24):
                rows[-1][1] += " " + line.strip()
    rows = [(option, sentence(help_text.strip())) for option, help_text in rows]
    return usage, before, rows + ([(last.strip(), COMMON)] if last else []), after


def released():
    """The day of the release and its number, as CHANGELOG.md and meson.build have them."""
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as build, open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as changes:
        version = re.search(r"^  version: '([^']+)',", build.read(), re.M).group(1)
        return re.search(r"^## \[%s\] - (\S+)$" % re.escape(version), changes.read(), re.M).group(1), version


def manual(command, summary, help_text, others):
    usage, before, rows, after = parts(help_text)
    name = "oomsight-" + command if command else "oomsight"
    lines = ['.TH %s 1 %s "oomsight %s" "oomsight manual"' % (name.upper(), *released()), ".SH NAME", "%s \\- %s" % (name, roff(summary)), ".SH SYNOPSIS"]
    lines += ["\\fB%s\\fR\n.br" % roff(line) for line in usage]
    lines += [".SH DESCRIPTION"] + "\n.PP\n".join(map(roff, before)).split("\n")
    if rows:
        lines.append(".SH OPTIONS")
    for option, text in rows:
        lines += [".TP", ", ".join(bold(o) for o in option.split(", ")), roff(text)]
    if not command:
        lines.append(".SH COMMANDS")
        for other, text in others:
            lines += [".TP", "\\fB%s\\fR" % other, roff(sentence(text))]
    for text in after:
        exits = re.match(r"Exit(?: codes)?: ", text)
        lines += [".SH EXIT STATUS", roff(sentence(text[exits.end():]))] if exits else [".SH NOTES", roff(text)]
    see = [("oomsight-%s" % other) for other, _ in others] if not command else ["oomsight"]
    return "\n".join(lines + [".SH SEE ALSO"] + [".BR %s (1)%s" % (one, "," if one != see[-1] else "") for one in see]) + "\n"


def escaped(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def prose(text):
    """Lines of at most 100 columns; an option or a number at their start must not become a list."""
    lines = textwrap.wrap(text.replace("<", "&lt;"), 100, break_long_words=False, break_on_hyphens=False)
    return [re.sub(r"^([-+*#>]|\d+[.)]) ", r"\\\1 ", line) for line in lines]


def page(command, summary, help_text):
    usage, before, rows, after = parts(help_text)
    lines = ["# oomsight " + command, "", sentence(escaped(summary)), "", "```text", *usage, "```", ""]
    for text in before:
        lines += [*prose(text), ""]
    if rows:
        lines += ["| option | meaning |", "| --- | --- |"]
        lines += ["| %s | %s |" % (", ".join("`%s`" % o.replace("|", "\\|") for o in option.split(", ")), escaped(text)) for option, text in rows] + [""]
    for text in after:
        lines += [*prose(text), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def index(help_text, commands):
    codes = re.search(r"Exit codes: .*", help_text, re.S).group(0).strip()
    lines = ["# Commands", "", "What `oomsight COMMAND --help` prints, and the manual pages (`man oomsight-plan`).", "", "| command | what it does |", "| --- | --- |"]
    lines += ["| [`%s`](%s.md) | %s |" % (command, command, escaped(sentence(summary))) for command, summary in commands]
    return "\n".join(lines + ["", *prose(" ".join(codes.split())), "", "`dryrun` and `run` return the exit code of the engine.", "",
                              "A size needs its unit: `23.5GiB`, `24GB`; plain bytes from 1 MiB on.", "",
                              "`--json` prints JSON: [formats](../formats/README.md).", ""])


def main():
    program, write = os.path.abspath(sys.argv[1]), "--write" in sys.argv
    ask = lambda *words: subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True, env=dict(os.environ, LC_ALL="C")).stdout
    general = ask()
    commands = re.findall(r"^  ([a-z]+)  *(\S.*)$", general, re.M)
    commands = [(command, text) for command, text in commands if command != "oomsight"]
    first = general.split("\n")[0]
    short = re.sub(r"\n\n  [a-z].*?(?=\n\n'oomsight)", "", general, flags=re.S)  # the list is a section of its own
    wanted = {"cli/man/oomsight.1": manual("", first.replace("oomsight ", "", 1).rstrip("."), short, commands),
              "docs/reference/cli/README.md": index(general, commands)}
    for command, summary in commands:
        text = ask(command)
        wanted["cli/man/oomsight-%s.1" % command] = manual(command, summary, text, commands)
        wanted["docs/reference/cli/%s.md" % command] = page(command, summary, text)
    wrong = 0
    for folder in ("cli/man", "docs/reference/cli"):
        os.makedirs(os.path.join(ROOT, folder), exist_ok=True)
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            if folder + "/" + name not in wanted:
                print("%s/%s is of no command" % (folder, name))
                wrong += 1
    for path, text in wanted.items():
        place = os.path.join(ROOT, path)
        if os.path.exists(place) and open(place).read() == text:
            continue
        if write:
            with open(place, "w") as f:
                f.write(text)
        else:
            print("%s is not what --help prints: make golden" % path)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
