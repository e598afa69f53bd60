#!/usr/bin/env python3
"""A quoted line that is shortened ends, and begins, at a word's end with dots: quotes.py BINARY [LOG...]

Every line that the text quotes of a log (those of tests/fixtures unless some are given) is held against the log itself: without dots it is there to its end,
with dots it is cut between two words. A path may be cut behind a slash, and a single word that is longer than half of the room may be cut anywhere. Lines of
thousands of bytes are made here; JSON quotes at most 1,024 bytes of them."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ROOM, MORE, QUOTE = 72, "...", 1024


def ask(binary, log, *options):
    return subprocess.run([binary, "explain", "--offline", *options, log], capture_output=True, text=True, errors="replace", check=False, timeout=120).stdout


def lines_of(log):
    with open(log, encoding="utf-8", errors="replace", newline="\n") as f:
        return [re.sub(r"\x1b\[[0-9;]*m", "", line.rstrip("\r\n").rstrip()).replace("\t", " ") for line in f]


def problem(shown, line, most):
    """What is wrong with `shown` of `line`, or None."""
    begins, ends = shown.startswith(MORE) and not line.lstrip().startswith(MORE), shown.endswith(MORE) and not line.endswith(shown)
    words = shown[len(MORE) if begins else 0:-len(MORE) if ends else None]
    at = line.find(words)
    if at < 0:
        return "is not in its line"
    before, behind = line[:at], line[at + len(words):]
    if not ends and behind.strip():
        return "ends without dots"
    if ends and not behind.startswith(" ") and len(words.split()[-1]) + len(behind.split()[0]) <= most / 2:
        return "ends inside a word"
    if begins and not before.endswith((" ", "/")) and len(before.split()[-1]) + len(words.split()[0]) <= most / 2:
        return "begins inside a word"
    return None


def log_problems(binary, log):
    wrong, count, cut = [], 0, 0
    lines = lines_of(log)
    for number, shown in re.findall(r"^ {0,5}(\d+)\| (.*)$", ask(binary, log), re.M):
        count += 1
        cut += MORE in shown
        found = problem(shown.replace("\t", " ").rstrip(), lines[int(number) - 1], ROOM)
        if found:
            wrong.append("%s:%s %s: %s" % (os.path.relpath(log, ROOT), number, found, shown))
    for answer in ask(binary, log, "--json").splitlines():
        for one in json.loads(answer)["evidence"]:
            count += 1
            cut += len(lines[one["line"] - 1]) > QUOTE
            found = problem(one["text"].replace("\t", " ").rstrip(), lines[one["line"] - 1], QUOTE)
            if found or len(one["text"].encode()) > QUOTE:
                wrong.append("%s:%d JSON %s: ...%s" % (os.path.relpath(log, ROOT), one["line"], found, one["text"][-60:]))
    return count, cut, wrong


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.52 GiB of which 1.25 GiB is free. "


def made():
    """Long lines: words of every length at the edge, words before the figure, one endless word, and letters of several bytes."""
    for shift in range(0, 40, 3):
        yield OOM + "x" * shift + " " + "Including non-PyTorch memory, this process has more. " * 40
    yield "RuntimeError: " + "while a request of many words was served, " * 3 + OOM + "and then some " * 200
    yield OOM + "a" * 3000
    yield OOM + "显存不足 " * 400
    yield OOM + "显" * 1000


def main():
    binary, logs = sys.argv[1], sys.argv[2:]
    given = logs or sorted(glob.glob(os.path.join(ROOT, "tests/fixtures/**/*.log"), recursive=True))
    wrong, count, cut = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for at, line in enumerate(made()):
            given.append(os.path.join(folder, "%02d.log" % at))
            with open(given[-1], "w", encoding="utf-8") as f:
                f.write("INFO 10-11 12:27:29 [core.py:58] Initializing a V1 LLM engine\n%s\n" % line)
        for log in given:
            looked, short, found = log_problems(binary, log)
            count, cut, wrong = count + looked, cut + short, wrong + found
    print("\n".join(wrong + ["%d logs, %d quoted lines, %d of them shortened, %d not at a word's end" % (len(given), count, cut, len(wrong))]))
    return 1 if wrong or not cut else 0


if __name__ == "__main__":
    sys.exit(main())
