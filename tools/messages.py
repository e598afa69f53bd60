#!/usr/bin/env python3
"""docs/reference/messages.md: what the commands say, from the catalogue of sentences (data/lang/zh.json), whose English pattern is the id.

    tools/messages.py [ROOT]     exit 1 when the page is not up to date, or a sentence of a report is in no row of it
    tools/messages.py --write    writes it
    tools/messages.py --unused   sentences of the catalogue that no source has

Where a message stands is found by its text in the sources: whole, or its longest part where a sentence is put together. The example is the first
recorded output that has it (tests/cli, tests/golden, docs). Standard library only."""
import collections
import glob
import json
import os
import re
import sys

ROOT = next((word for word in sys.argv[1:] if word[:1] != "-"), os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CATALOGUE, PAGE = os.path.join("data", "lang", "zh.json"), os.path.join("docs", "reference", "messages.md")
# Which command says what stands in a file: the first that fits.
COMMANDS = (("plan", r"src/(report/(plan|choices)|plan/|engines/|model/|facts/)|data/engines/"), ("explain", r"src/(report/explain|explain/|log/)|data/(explain|kb)/"),
            ("check", r"src/(report/(check|ci)|check/|command/)"), ("matrix", r"src/(report/matrix|matrix/)|cli/.*matrix"), ("bisect", r"src/report/bisect|cli/.*bisect"),
            ("dryrun", r"src/(report/dryrun|dryrun/)|cli/.*dryrun"), ("run", r"src/(report/run|run/)|cli/(cmd_)?run"), ("top", r"cli/.*top"),
            ("every command", r"src/(ledger|report|base|api|input)|cli/"))
# When it is said, by the part of the program that does: the first that fits.
WHEN = (("in the report", r"src/report/"), ("a change, and what it costs", r"data/engines/.*levers"), ("a failure that is known", r"data/kb/"),
        ("the reason for a phase, a cause or an advice", r"data/explain/|src/explain/"), ("a flag of the engine is read", r"data/engines/|src/engines/.*(argument|flag|refus)"),
        ("vLLM is planned", r"src/engines/vllm"), ("SGLang is planned", r"src/engines/"), ("a start is planned", r"src/plan/"), ("a model is read", r"src/model/"),
        ("a GPU, a release or a flag is looked up", r"src/facts/"), ("a log is read", r"src/log/"), ("a command or a file with commands is read", r"src/(check|command)/"),
        ("a row of memory, or a cause", r"src/ledger/"), ("a run is watched", r"src/run/"), ("a dry run ends", r"src/dryrun/"), ("points are planned", r"src/matrix/"),
        ("the command itself is read or fails", r"cli/|src/"))
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|\w+|\s+|.', re.S)
SLOT = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?[diouxXeEfFgGcsp]")
SAYS = re.compile(r"\b(?:oos_style_(?:put|ink|paragraph|hanging|cell)|oos_report_sentence|oos_table_put)\s*\(")
HEAD = """# What the commands say

Written by `tools/messages.py` from [the catalogue](../../data/lang/zh.json); change the sources or it,
not this page. A message is its own id: `{}` is a name or a figure. What `explain` says of a known
failure is in its record: `oomsight kb list`.
"""


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def pattern(literal):
    """A C string as a pattern of the catalogue."""
    text = re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), literal)
    return SLOT.sub("{}", text).replace("%%", "%").strip()


def literals(text):
    """The pattern of each string of a C source; those that stand side by side are one."""
    joined = None
    for token in TOKEN.findall(text):
        if token.isspace() or token.startswith(("/*", "//")):
            continue
        if token.startswith('"') or joined is not None and token.startswith("PRI"):
            joined = (joined or "") + (token[1:-1] if token.startswith('"') else "d")
            continue
        if joined is not None:
            yield pattern(joined)
            joined = None


def strings(value):
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(one)


def sources():
    """{pattern: the first file that has it} of everything that can be said."""
    found = {}
    for kind in ("src/**/*.[ch]", "src/**/*.def", "cli/*.[ch]", "cli/*.def"):
        for path in sorted(glob.glob(os.path.join(ROOT, kind), recursive=True)):
            place = os.path.relpath(path, ROOT)
            for text in literals(read(place)):
                found.setdefault(text, place)
    for kind in ("data/explain/*.json", "data/engines/*/*.json", "data/kb/*/*.json"):
        for path in sorted(glob.glob(os.path.join(ROOT, kind))):
            place = os.path.relpath(path, ROOT)
            for text in strings(json.loads(read(place))):
                found.setdefault(text, place)
    return found


def parts(text):
    return sorted((part.strip(" .:;,()") for part in text.split("{}")), key=len, reverse=True)


def place_of(message, found):
    """The file of a message: of its whole text, or of the source with its longest part, or that is a part of it."""
    if message in found:
        return found[message]
    longest = parts(message)[0]
    if len(longest) < 4:
        return None
    near = [text for text in found if longest in text] or [text for text in found if len(parts(text)[0]) > 5 and parts(text)[0] in message]
    return found[max(near, key=lambda text: len(os.path.commonprefix([text, message])))] if near else None


def said():
    """(file, pattern) of every literal that a report gives to the functions that translate."""
    for path in sorted(glob.glob(os.path.join(ROOT, "src", "report", "*.c"))):
        text = re.sub(r"/\*.*?\*/", "", read(os.path.relpath(path, ROOT)), flags=re.S)
        for call in SAYS.finditer(text):
            depth, at = 1, call.end()
            while depth:
                literal = LITERAL.match(text, at)
                depth += 0 if literal else (text[at] == "(") - (text[at] == ")")
                at = literal.end() if literal else at + 1
            call = re.sub(r'strcmp\([^()]*\)|in_language\(.*', "", text[call.end():at], flags=re.S)
            for words in literals(call + ";"):
                if re.search("[a-z]{3}", re.sub(r"oomsight|\{\}", "", words)):
                    yield os.path.relpath(path, ROOT), words


def undecided():
    """(file, pattern) of what an engine leaves unknown, which plan says with and without a word before it, and of what known failures advise."""
    for path in sorted(glob.glob(os.path.join(ROOT, "src", "engines", "*", "*.c"))):
        place = os.path.relpath(path, ROOT)
        for words in literals(read(place)):
            if re.search(r" not modelled| not known here$", words) and not words.endswith("."):
                yield from ((place, words), (place, "Cannot determine: %s." % words))
    for path in sorted(glob.glob(os.path.join(ROOT, "data", "kb", "**", "*.json"), recursive=True)):
        place = os.path.relpath(path, ROOT)
        record = json.loads(read(place))
        for advice in record["fixes"] + record["dead_ends"]:
            words = advice["change"][0]
            if re.search(r"(?<![\w/.-])[a-z]{2,} [a-z]{2,}", words) and not words.startswith(("-", "docker ")):
                yield place, words


def missing(book):
    whole = [re.compile(".+".join(map(re.escape, key.split("{}")))) for key in book if "{}" in key]
    for place, words in undecided():
        if words not in book and not any(key.fullmatch(words) for key in whole):
            yield "%s: in no row of %s: %s" % (place, CATALOGUE, words)
    for place, words in said():
        if {words, words + " {}", words.replace("{}.{}", "{}")} & set(book) or any(key.startswith(words.split("{}{}")[0]) for key in book if "{}{}" in words):
            continue
        yield "%s: in no row of %s: %s" % (place, CATALOGUE, words)


def recorded():
    """Paragraphs of recorded outputs as one line each."""
    for kind in ("tests/cli/*.stdout", "tests/golden/*/report.txt", "docs/**/*.md"):
        for path in sorted(glob.glob(os.path.join(ROOT, kind), recursive=True)):
            if path.endswith(PAGE):
                continue
            lines, indent = [], None
            for line in read(os.path.relpath(path, ROOT)).split("\n") + [""]:
                own = len(line) - len(line.lstrip())
                if lines and (not line.strip() or own != indent):
                    yield from lines
                    yield " ".join(lines)
                    lines = []
                indent = own
                if line.strip():
                    lines.append(line.strip())


def example(message, texts):
    if "{}" not in message or len(parts(message)[0]) < 3:
        return ""
    regex, longest = re.compile("(?:^|(?<=[ (])){}(?:$|(?=[ ).,;:]))".replace("{}", r"((?:(?!\. )[^|;]){1,60}?)".join(re.escape(part) for part in message.split("{}")), 1)), parts(message)[0]
    found = (regex.search(text) for text in texts if longest in text and "{}" not in text)
    return next((match.group(0) for match in found if match), "")


def cell(text):
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def code(text):
    return "`%s`" % cell(text).replace("`", "'") if text else ""


def page(book, found):
    texts = list(dict.fromkeys(recorded()))
    rows = collections.defaultdict(list)
    for message, chinese in book.items():
        place = place_of(message, found)
        command = next((name for name, regex in COMMANDS if place and re.match(regex, place)), None)
        if command:
            when = next(words for words, regex in WHEN if re.match(regex, place))
            rows[command].append((message, when, example(message, texts), chinese))
    yield HEAD
    for name, _ in COMMANDS:
        yield "## %s\n\n<!-- messages: %s -->\n| message | when | example | Chinese |\n| --- | --- | --- | --- |" % (
            name if name == "every command" else "`%s`" % name, name)
        for message, when, shown, chinese in sorted(rows[name]):
            yield "| %s | %s | %s | %s |" % (code(message), cell(when), code(shown), code(chinese))
        yield "<!-- end -->\n"


def main():
    book, found = json.loads(read(CATALOGUE)), sources()
    if "--unused" in sys.argv:
        web = "".join(read(os.path.relpath(path, ROOT)) for kind in ("web/**/*.js", "web/**/*.html", "src/**/*.h") for path in glob.glob(os.path.join(ROOT, kind), recursive=True))
        print(*[message for message in book if not place_of(message, found) and parts(message)[0] not in web], sep="\n")
        return 0
    wrong, text = list(missing(book)), "\n".join(page(book, found)).rstrip() + "\n"
    path = os.path.join(ROOT, PAGE)
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    elif not os.path.exists(path) or read(PAGE) != text:
        wrong.append("%s is not what the sources say: tools/messages.py --write" % PAGE)
    print(*wrong, "messages: %d rows, %d wrong" % (text.count("\n| `"), len(wrong)), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
