#!/usr/bin/env python3
"""Nothing is copied: copies.py FOLDER... compares each report with each text (*.log) of the folders.

Prints the longest run of characters that a report shares with a text, and every run of two or more lines, one behind the other, that are
equal and have a figure in each of them. Sentences of engines that have fixed figures are listed in FIXED. Exit 1 when such a run is
left, 77 without the folders. Standard library only."""
import collections
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GRAM = 48
# Whole sentences of the engines, always printed together.
FIXED = re.compile(r"CUDA_LAUNCH_BLOCKING=1|AMD_SERIALIZE_KERNEL=3|might be asynchronously|_DSA` to enable|^[1-4]\. (?:set|disable) |^(?:nn|EOF)$")


def lines_of(text):
    return [line.strip() for line in text.split("\n") if line.strip()]


def runs_of_lines(report, text):
    """Maximal runs of equal lines."""
    where = collections.defaultdict(list)
    for j, line in enumerate(text):
        where[line].append(j)
    found = set()
    for i, line in enumerate(report):
        for j in where.get(line, ()):
            if i and j and report[i - 1] == text[j - 1]:
                continue
            length = 1
            while i + length < len(report) and j + length < len(text) and report[i + length] == text[j + length]:
                length += 1
            found.add(tuple(report[i:i + length]))
    return found


def main():
    folders = sys.argv[1:]
    if not all(os.path.isdir(folder) for folder in folders) or not folders:
        print("no texts to compare with")
        return 77
    read = lambda path: open(path, encoding="utf-8", errors="replace").read()
    reports = {os.path.basename(p): read(p) for p in sorted(glob.glob(os.path.join(HERE, "reports", "*.log")))}
    texts = {p: read(p) for folder in folders for p in sorted(glob.glob(os.path.join(folder, "*.log")))}
    grams = collections.defaultdict(list)
    for name, text in texts.items():
        for at in range(0, len(text) - GRAM + 1):
            grams[text[at:at + GRAM]].append((name, at))
    longest, lengths = collections.Counter(), {}
    for name, report in reports.items():
        at = 0
        while at + GRAM <= len(report):
            best = 0
            for where, j in grams.get(report[at:at + GRAM], ())[:40]:
                text, length = texts[where], GRAM
                while at + length < len(report) and j + length < len(text) and report[at + length] == text[j + length]:
                    length += 1
                best = max(best, length)
            if best:
                longest[report[at:at + best]] = best
                lengths[name] = max(lengths.get(name, 0), best)
            at += max(1, best - GRAM + 1) if best else 1
    runs, lines_shared = collections.Counter(), 0
    split = {name: lines_of(text) for name, text in texts.items()}
    for name, report in reports.items():
        mine = lines_of(report)
        for where, text in split.items():
            for run in runs_of_lines(mine, text):
                lines_shared = max(lines_shared, len(run))
                if len(run) > 1:
                    runs[run] += 1
    bad = [run for run in runs if sum(bool(re.search(r"\d", line)) and not FIXED.search(line) for line in run) >= 2]
    with_figures = [text for text in longest if re.search(r"\d\.\d|\d{3}", text)]
    print(f"{len(reports)} reports, {len(texts)} texts: the longest shared run has {max(longest.values(), default=0)} characters and {lines_shared} lines; {len(runs)} different runs of two lines or more")
    print(f"longest: {max(longest, key=len, default='')!r}")
    print(f"longest with a figure: {max(with_figures, key=len, default='')!r}")
    for run in bad:
        print("equal lines with figures:", *run, sep="\n  ")
    if "-v" in os.environ.get("COPIES", ""):
        for run, count in runs.most_common():
            print(count, *run, sep="\n  ")
        for text in sorted(with_figures, key=len, reverse=True)[:60]:
            print(len(text), repr(text))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
