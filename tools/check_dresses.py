#!/usr/bin/env python3
"""One text in six dresses has one answer: check_dresses.py BINARY [DIR...] [--all]

Renders every report of tests/evidence/reports, or of DIR, as people and programs hand it over: wrapped at 80 columns; padded
with blanks, as a terminal does; behind the prefixes of docker, Kubernetes and Ray; with figures in brackets; with frames as
they are written by hand, without `File`; and cut, so that only the end is left. An answer is whether memory ran out, the
phase and the cause. None may turn into another (but for a few
that are counted below), and at most 5 % of a dress may be lost: no failure found, or the phase or the
cause unknown. Prints each that turned, a line for each dress, and with --all those that were lost. Exit 1 when the limits do
not hold. Many texts go to one process, as members of an archive. Standard library only."""

import argparse
import io
import json
import os
import re
import subprocess
import tarfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOST_AT_MOST = 0.05
# Where the deciding frame, or the end of a muted sentence, is what was cut away, the rest says something else. They may only become fewer.
TURNED_AT_MOST = {"wrapped at 80": 1, "cut": 4}
AT_ONCE = 40  # texts of one process: an explanation holds 128 incidents
COLUMNS, PADDED, LEFT = 80, 132, 20


def wrapped(lines):
    """A terminal breaks where its row ends, in a word or a blank."""
    return [line[at:at + COLUMNS] for line in lines for at in range(0, max(1, len(line)), COLUMNS)]


def padded(lines):
    return [line.ljust(PADDED) for line in lines]


def prefix(text):
    return lambda lines: [text + line for line in lines]


def bracketed(lines):
    """A size behind a word or an equals sign, and an exit code: `(20.00 MiB)`, `exit code (137)`."""
    out = []
    for line in lines:
        line = re.sub(r"(?<=[a-z:=] )(-?\d[\d,.]*\d ?[KMGT]i?B)\b(?!\))", r"(\1)", line)
        out.append(re.sub(r"(?i)\b(exit ?code:? )(-?\d+)\b", r"\1(\2)", line))
    return out


def by_hand(lines):
    """`path:12 in name`, `path, line 12, in name`: the two forms take turns."""
    forms = (r"\1\2:\3 in \4", r"\1\2, line \3, in \4")
    return [re.sub(r'^(.*?)File "([^"]+)", line (\d+), in (.*)$', forms[at % 2], line) for at, line in enumerate(lines)]


def cut(lines):
    """The last lines of a paste; the first of them begins within a word."""
    left = [line for line in lines if line.strip()][-LEFT:]
    return [left[0][len(left[0]) // 2:]] + left[1:] if len(left) == LEFT else left


DRESSES = {
    "wrapped at 80": wrapped,
    "padded": padded,
    "docker": prefix("app-1  | "),
    "Kubernetes": prefix("2026-03-01T10:00:00.123456789Z stderr F "),
    "Ray": prefix("(RayWorkerWrapper pid=4711, ip=192.0.2.7) "),
    "brackets": bracketed,
    "without File": by_hand,
    "cut": cut,
}


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read().split("\n")


def explain(binary, texts):
    """{name: answers}, of {name: lines}"""
    found, names = {name: [] for name in texts}, list(texts)
    for at in range(0, len(names), AT_ONCE):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name in names[at:at + AT_ONCE]:
                data = "\n".join(texts[name]).encode("utf-8", "surrogateescape")
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        done = subprocess.run([binary, "explain", "--json", "--offline", "-"], input=packed.getvalue(), capture_output=True, timeout=120, check=False)
        for line in done.stdout.decode("utf-8", "replace").splitlines():
            incident = json.loads(line)
            found[incident["file"]].append(incident)
    return found


def answer(incidents):
    """(is it memory, phase, cause) of the incident that counts"""
    one = next((i for i in incidents if i["is_oom"]), None)
    return (True, one["phase"], one["cause"]) if one else (False, None, None)


def changed(before, after):
    """"turned", "lost" or None"""
    if before == after:
        return None
    if before[0] != after[0]:
        return "lost" if before[0] else "turned"
    pairs = [(b, a) for b, a in zip(before[1:], after[1:]) if b != a]
    if any(a not in ("unknown", "insufficient_info") and b not in ("unknown", "insufficient_info") for b, a in pairs):
        return "turned"
    return "lost" if any(a in ("unknown", "insufficient_info") for _, a in pairs) else None  # an answer more is none that was lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("folders", nargs="*", default=[os.path.join(ROOT, "tests", "evidence", "reports")])
    parser.add_argument("--all", action="store_true", help="also those that were lost")
    args = parser.parse_args()
    texts = {}
    for folder in args.folders:
        texts.update({os.path.join(os.path.basename(folder), name): read(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith(".log")})
    before = {name: answer(found) for name, found in explain(args.binary, texts).items()}
    failed = not texts
    for dress, put_on in DRESSES.items():
        after = {name: answer(found) for name, found in explain(args.binary, {name: put_on(lines) for name, lines in texts.items()}).items()}
        kinds = {name: changed(before[name], after[name]) for name in texts}
        turned = [name for name, kind in kinds.items() if kind == "turned"]
        lost = [name for name, kind in kinds.items() if kind == "lost"]
        failed |= len(turned) > TURNED_AT_MOST.get(dress, 0) or len(lost) > LOST_AT_MOST * len(texts)
        for name in turned + (lost if args.all else []):
            print(f"{dress}: {name}: {kinds[name]}: {before[name]} -> {after[name]}")
        print(f"{dress}: {len(turned)} turned, {len(lost)} lost of {len(texts)}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
