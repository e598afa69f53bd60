#!/usr/bin/env python3
"""A number that is written as people write it is corrected, not dropped: written.py BINARY

Every flag of both engines that takes a whole number or a fraction, each with one of the forms below in turn. Where the engine's parser does not take the
form, the first suggested command must have the flag with the number that was meant, or what a plan of that number suggests first. Words in which two
numbers can be read, or none, must not be corrected. Prints what breaks and ends with one line; exit 1 when anything does."""
import os
import shlex
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from misspelt import ENGINES, plan, table  # noqa: E402

FORMS = {"int": [("1,024", 1024), ("1 k", 1000), ("2KiB", 2048), ("1e3", 1000), ("1.024", 1024), ("512 tokens", 512), ("1'024", 1024), ("2kb", 2000)],
         "float": [("0,5", 0.5), (" 0 . 5", 0.5), ("1,5", 1.5)]}
NOT_CORRECTED = {"int": ["0,9", "12,34", "1,2,3", "8k5", "0,900", "", "k", "0x10", "1,024;reboot"], "float": ["%", ",", "1,2,3", "half", "5%%", "50%"]}
SHARES = {"vllm": "--gpu-memory-utilization", "sglang": "--mem-fraction-static"}  # the only ones that are given in percent
SIGNS = ("invalid int value", "Invalid integer", "cannot be converted", "invalid float value")
UNITS = {"k": 1000, "K": 1024, "m": 1000 ** 2, "M": 1024 ** 2}


def refused(said):
    return said is not None and said["phase"] == "arguments" and any(sign in (said.get("why") or "") for sign in SIGNS)


def first_command(said):
    commands = [f["command"] for f in said["fixes"] or [] if f.get("command")]
    return shlex.split(commands[0]) if commands else []


def number_of(words, flag):
    """The flag's value in a command as a number; None: it is not there."""
    if flag not in words or words.index(flag) + 1 == len(words):
        return None
    word = words[words.index(flag) + 1]
    try:
        return float(word[:-1]) * UNITS[word[-1]] if word[-1:] in UNITS else float(word)
    except ValueError:
        return None


def judge(binary, engine, flag, written, meant):
    """None: the engine takes the words, or does not start with the number that was meant; else a sentence for what breaks, or ''."""
    head, release = ENGINES[engine]
    said = plan(binary, engine, release, [*head, flag, written])
    if not refused(said):
        return None
    command = first_command(said)
    if meant is None:
        return "" if written not in command else "kept: %s" % shlex.join(command)
    right = plan(binary, engine, release, [*head, flag, "%g" % meant])
    if right is None or right["verdict"] not in ("fits", "tight"):
        return None
    other = number_of(first_command(right), flag) if first_command(right) else meant
    return "" if number_of(command, flag) in (meant, other) else "%s was meant: %s" % (meant, shlex.join(command))


def main():
    binary, broken, tried = sys.argv[1], 0, 0
    for engine in ENGINES:
        kinds, _ = table(engine, ENGINES[engine][1])
        for kind, forms in FORMS.items():
            flags = sorted(f for f, k in kinds.items() if k == kind)
            cases = [(flag, *forms[i % len(forms)]) for i, flag in enumerate(flags)]
            cases += [(SHARES[engine], "90%", 0.9), (SHARES[engine], "87.5 %", 0.875)] if kind == "float" else []
            cases += [(next(f for f in flags[i:] if f != SHARES[engine]), word, None) for i, word in enumerate(NOT_CORRECTED[kind])]
            for flag, written, meant in cases:
                found = judge(binary, engine, flag, written, meant)
                tried += found is not None
                if found:
                    broken += 1
                    print("%s %s %r: %s" % (engine, flag, written, found))
    print("%d broken of %d numbers that no parser takes" % (broken, tried))
    return 1 if broken or tried < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
