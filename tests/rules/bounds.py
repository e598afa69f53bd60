#!/usr/bin/env python3
"""Both sides of every bound and of every list of choices that vLLM's arguments have: bounds.py BINARY [--data DIR] [--write]

tests/rules/bounds.tsv has each bound of data/engines/vllm/arguments.json (flag, first release, last release, kind, bound, part of the configuration) and
each list of choices of flags.json. A bound that is in one of the two files alone fails by its name. Then the command is asked: in the first and in the last release of each
row the value just outside is refused in the engine's words and the one just inside is not, and the release before has no such bound. All
commands go through one `check -`. --write makes the table out of the data. Standard library only."""
import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = os.path.join(ROOT, "tests", "rules", "bounds.tsv")
WORDS = {"ge": "greater than or equal to", "gt": "greater than", "le": "less than or equal to", "lt": "less than"}
NO_CHOICE = "no-such-word"
MODEL, MEDIA = "acme/small-llama", "Qwen/Qwen2.5-VL-3B-Instruct"
# Parts that the engine makes only when they are asked for.
NEEDS = {"LoRAConfig": "--enable-lora"}
# Flags that an earlier check of the engine refuses by other words, and one of which it was not asked whether 0.11.1 looks at it again.
EARLIER = {"max_long_partial_prefills": "Concurrent Partial Prefill is not supported", "max_num_partial_prefills": "Concurrent Partial Prefill is not supported"}
NOT_ASKED = {"num_redundant_experts"}


def release(text):
    return [int(part) for part in text.split(".")]


def steps(changes, versions):
    """(change, first release, last release) of each"""
    for place, change in enumerate(changes):
        after = changes[place + 1]["since"] if place + 1 < len(changes) else None
        held = [v for v in versions if release(v) >= release(change["since"]) and (after is None or release(v) < release(after))]
        if held:
            yield change, held[0], held[-1]


def rows(data):
    """What the data has, as lines of the table."""
    with open(os.path.join(data, "engines/vllm/arguments.json"), encoding="utf-8") as f:
        arguments = json.load(f)
    with open(os.path.join(data, "engines/vllm/flags.json"), encoding="utf-8") as f:
        flags = json.load(f)
    found = []
    for flag, changes in sorted(arguments["bounds"].items()):
        for change, first, last in steps(changes, arguments["versions"]):
            found += [(flag, first, last, kind, "%g" % change[kind], change["part"]) for kind in ("gt", "ge", "lt", "le") if kind in change]
    for flag in sorted(flags["flags"], key=lambda flag: flag["dest"]):
        known = [v for v in flags["versions"] if release(v) >= release(flag.get("since", "0.8.0")) and ("until" not in flag or release(v) < release(flag["until"]))]
        changes = [{"since": known[0], "choices": flag.get("choices")}] + [c for c in flag.get("changes", []) if "choices" in c] if known else []
        for change, first, last in steps(changes, known):
            if change["choices"] and all(isinstance(choice, str) for choice in change["choices"]) and flag.get("kind") == "choice":
                found.append((flag["dest"], first, last, "choice", "|".join(change["choices"]), ""))
    return found


def flags_of(data):
    """{flag: what flags.json says of it}, those of a command line"""
    with open(os.path.join(data, "engines/vllm/flags.json"), encoding="utf-8") as f:
        flags = json.load(f)["flags"]
    found = {}
    for flag in flags:
        names = [name for name in flag["names"] if name.startswith("--") and not name.startswith("--no-")]
        if names:
            found.setdefault(flag["dest"], []).append(dict(flag, name=max(names, key=len)))
    return found


def flag_at(found, version):
    """The flag as that release has it, or None."""
    for flag in found:
        if release(flag.get("since", "0.8.0")) <= release(version) and ("until" not in flag or release(version) < release(flag["until"])):
            kinds = [flag.get("kind", "")] + [c["kind"] for c in flag.get("changes", []) if "kind" in c and release(c["since"]) <= release(version)]
            return flag["name"], kinds[-1] != "float"
    return None


def sides(kind, bound, whole):
    """(a value just outside, one just inside)"""
    step = 1 if whole else 0.001
    at = float(bound)
    inside = {"ge": at, "gt": at + step, "le": at, "lt": at - step}[kind]
    outside = {"ge": at - step, "gt": at, "le": at + step, "lt": at}[kind]
    return "%.10g" % outside, "%.10g" % inside


def questions(table, data, versions):
    """[(row, release, words of the command, sentence that is expected or None, sentence that is not)]"""
    known, out = flags_of(data), []
    for row in table:
        flag, first, last, kind, bound, part = row
        if flag not in known or flag in NOT_ASKED:  # of the engine's own use: no word of a command line
            continue
        refused = "%s: Input should be %s %s" % (flag, WORDS.get(kind), bound)
        before = [v for v in versions if release(v) < release(first)][-1:]
        if any(other[0] == flag and other[3:5] == row[3:5] and [other[2]] == before for other in table):  # it moved to another part
            before = []
        for version in dict.fromkeys([first, last] + (before if kind != "choice" else [])):
            found = flag_at(known[flag], version)
            if not found:
                continue
            name, whole = found
            say = lambda value: " ".join(["%s=%s" % (name, value)] + ([NEEDS[part]] if part in NEEDS else []))
            if kind == "choice":
                choices = bound.split("|") if version == versions[-1] else bound.split("|")[:1]
                out.append((row, version, say(NO_CHOICE), "invalid choice: '%s'" % NO_CHOICE, None))
                out += [(row, version, say(choice), None, "invalid choice") for choice in choices]
                continue
            outside, inside = sides(kind, bound, whole)
            if version in before:
                out.append((row, version, say(outside), None, refused))
                continue
            out += [(row, version, say(outside), refused, None), (row, version, say(inside), None, refused)]
    return out


def answers(binary, data, asked):
    script = "".join("docker run --gpus all --entrypoint vllm vllm/vllm-openai:v%s serve %s %s\n" % (version, MEDIA if row[5] == "MultiModalConfig" else MODEL, words)
                     for row, version, words, _, _ in asked)
    command = [binary, "check", "--json", "--offline", "--gpu", "h100", "--models", os.path.join(ROOT, "tests/fixtures/models"), "--data", data, "-"]
    done = subprocess.run(command, input=script, stdout=subprocess.PIPE, universal_newlines=True, check=False)
    by_line = {found["line"]: found for found in json.loads(done.stdout)["commands"]}
    return [by_line.get(number) for number in range(1, len(asked) + 1)]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--data", default=os.path.join(ROOT, "data"))
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    made = rows(given.data)
    if given.write:
        with open(TABLE, "w", encoding="utf-8") as f:
            f.writelines("\t".join(row) + "\n" for row in made)
    with open(TABLE, encoding="utf-8") as f:
        table = [tuple(line.split("\t")) for line in f.read().splitlines()]
    wrong = ["%s: %s %s from %s to %s is in bounds.tsv and not in the data" % (r[0], r[3], r[4][:60], r[1], r[2]) for r in table if r not in made]
    wrong += ["%s: %s %s from %s to %s is in the data and not in bounds.tsv" % (r[0], r[3], r[4][:60], r[1], r[2]) for r in made if r not in table]
    with open(os.path.join(given.data, "engines/vllm/arguments.json"), encoding="utf-8") as f:
        versions = json.load(f)["versions"]
    asked = questions(table, given.data, versions)
    for (row, version, words, expected, never), found in zip(asked, answers(given.binary, given.data, asked)):
        why = (found or {}).get("why") or (found or {}).get("problem") or ""
        if not found:
            wrong.append("%s: vLLM %s %s was not answered" % (row[0], version, words))
        elif expected and expected not in why and EARLIER.get(row[0], expected) not in why:
            wrong.append("%s: vLLM %s %s: '%s' is not refused with '%s'" % (row[0], version, words, why, expected))
        elif never and never in why:
            wrong.append("%s: vLLM %s %s is refused: '%s'" % (row[0], version, words, why))
    print("\n".join(wrong + ["%d rows, %d commands, %d wrong" % (len(table), len(asked), len(wrong))]))
    return 1 if wrong or len(asked) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
