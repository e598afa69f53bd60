#!/usr/bin/env python3
"""Is what people read written in the words of the trade? check_words.py BINARY [--list] [--root DIR]

tools/words.tsv has the retired phrases and what to write instead. Looked at are
  help     the help of every command, and the man pages
  output   reports of a sample of commands, as text, Markdown and HTML
  message  sentences in the source: string literals of cli, src, shim and bindings
  data     the English of the knowledge base, of what explain gives as reasons, and of the translations
  docs     README, CONTRIBUTING, SECURITY, CHANGELOG and docs
Every finding is file:line (or the command) with the phrase and the word to use. Of a kind in tools/words_left.json as many may be left as it
says, and no more: the number may only fall. All other kinds must have none."""
import argparse
import concurrent.futures
import glob
import html
import json
import os
import re
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = ("help", "output", "message", "data", "docs")
# What an engine, PyTorch or a driver prints, word for word.
QUOTED = re.compile(r"the derived (max_model_len|context_length)|[Tt]he page size|told_|asked_for_|To serve at least|seed=\d")
C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|\'(?:\\.|[^\'\\])\'|"((?:\\.|[^"\\\n])*)"', re.S)
PY_TOKEN = re.compile(r'#[^\n]*|[rb]?"""(?:.*?)"""|[rbf]{0,2}"((?:\\.|[^"\\\n])*)"|[rbf]{0,2}\'((?:\\.|[^\'\\\n])*)\'', re.S)


def phrases(root):
    for line in open(os.path.join(root, "tools", "words.tsv"), encoding="utf-8"):
        if line.strip() and not line.startswith("#"):
            pattern, where, instead = line.rstrip("\n").split("\t")
            yield re.compile(pattern, re.I), set(KINDS if where == "all" else where.split(",")), instead


def literals(text, token):
    """(line, sentence) of each string; strings that stand side by side are one."""
    start = end = None
    whole = ""
    for match in token.finditer(text):
        inside = next((g for g in match.groups() if g is not None), None)
        if inside is None:
            continue
        if end is not None and not text[end:match.start()].strip():
            whole += inside
        else:
            if start is not None:
                yield start, whole
            start, whole = text.count("\n", 0, match.start()) + 1, inside
        end = match.end()
    if start is not None:
        yield start, whole


def tree(root, folders, endings):
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(root, folder, "**", "*"), recursive=True)):
            if path.endswith(endings) and os.path.isfile(path):
                yield os.path.relpath(path, root), open(path, encoding="utf-8", errors="replace").read()


def messages(root):
    """A sentence has a blank; what is compared with a log is in data/explain, not in the source."""
    for path, text in tree(root, ("cli", "src", "shim", "bindings"), (".c", ".h", ".def", ".py")):
        for line, words in literals(text, PY_TOKEN if path.endswith(".py") else C_TOKEN):
            if " " in words.strip() and path != "src/ledger/owner.def":  # those words are JSON's; ledger.c has what people read
                yield "%s:%d" % (path, line), words.replace("\\n", " ")


def strings(node, key=""):
    if isinstance(node, dict):
        for name, value in node.items():
            if name not in ("zh", "signature", "regex", "id", "urls", "url", "seen", "sources", "links", "match", "patterns", "frees"):
                yield from strings(value, name)
    elif isinstance(node, list):
        for value in node:
            yield from strings(value, key)
    elif isinstance(node, str) and " " in node:
        yield node


def data(root):
    paths = sorted(glob.glob(os.path.join(root, "data", "kb", "**", "*.json"), recursive=True))
    paths += sorted(glob.glob(os.path.join(root, "data", "engines", "*", "levers.json")))
    paths += [os.path.join(root, "data", "explain", name) for name in ("causes.json", "phases.json")]
    for path in paths:
        text = open(path, encoding="utf-8").read()
        for words in strings(json.loads(text)):
            at = text.find(json.dumps(words, ensure_ascii=False)[1:-1])
            yield "%s:%d" % (os.path.relpath(path, root), text.count("\n", 0, max(at, 0)) + 1), words
    path = os.path.join(root, "data", "lang", "zh.json")
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        match = re.match(r'\s*("(?:\\.|[^"\\])*"):', line)
        if match:
            yield "data/lang/zh.json:%d" % number, json.loads(match.group(1))


def docs(root):
    paths = [os.path.join(root, name) for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    paths += sorted(path for path in glob.glob(os.path.join(root, "docs", "**", "*.md"), recursive=True)
                    if not path.endswith("reference/messages.md"))  # written from what is checked where it stands
    for path in paths:
        if os.path.exists(path):
            for number, line in enumerate(open(path, encoding="utf-8"), 1):
                # Names of files, fields and targets are what they are: in code spans, in links, and in commands of the checkout.
                line = re.sub(r"`[^`]*`|\]\([^)]*\)|^(tests|tools)/\S+|^ +(\S+ )*tests/\S+|^make [a-z -]+$", "", line)
                yield "%s:%d" % (os.path.relpath(path, root), number), line


def run(binary, words, root):
    env = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8", COLUMNS="100")
    done = subprocess.run([binary] + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, cwd=root, stdin=subprocess.DEVNULL, check=False)
    return done.stdout.decode("utf-8", "replace")


def commands_of(binary, root):
    return re.findall(r"^  (\w+) +\S", run(binary, ["--help"], root), re.M)


def helps(binary, root):
    for words in [["--help"]] + [[name, "--help"] for name in commands_of(binary, root)]:
        for number, line in enumerate(run(binary, words, root).split("\n"), 1):
            yield "oomsight %s, line %d" % (" ".join(words), number), line
    for path, text in tree(root, ("docs/man", "docs/reference/cli"), (".1",)):
        for number, line in enumerate(text.split("\n"), 1):
            yield "%s:%d" % (path, number), line.replace("\\-", "-")


def sample(root):
    """Commands whose reports are read: every verdict, both engines, every kind of failure, in the forms that people read."""
    fixtures = os.path.join("tests", "fixtures")
    for path in sorted(glob.glob(os.path.join(root, "tests", "golden", "*", "command"))):
        words = [w.replace("../", "tests/", 1) if w.startswith("../") else w for w in shlex.split(open(path, encoding="utf-8").read())]
        for more in ([], ["--explain"], ["--format", "md"], ["--format", "html"]):
            yield words[:1] + more + words[1:]
    for number, log in enumerate(sorted(glob.glob(os.path.join(root, fixtures, "kb", "*", "*", "positive.log")))):
        yield ["explain", os.path.relpath(log, root)]
        if number % 5 == 0:
            yield ["explain", "--format", "md", os.path.relpath(log, root)]
            yield ["explain", "--format", "html", os.path.relpath(log, root)]
    for trace in sorted(glob.glob(os.path.join(root, fixtures, "traces", "*"))):
        for more in ([], ["--format", "md"], ["--format", "html"]):
            yield ["replay"] + more + [os.path.relpath(trace, root)]
    yield ["check", "--gpu", "4090", "--explain"] + sorted(os.path.relpath(p, root) for p in glob.glob(os.path.join(root, fixtures, "deploy", "*")))
    fleet = ["matrix", "--offline", "--models", fixtures + "/models", fixtures + "/matrix/fleet.yaml"]
    for more in ([], ["--format", "md"], ["--format", "html"], ["--diff", "0.10.2", "0.32.0"]):
        yield fleet + more
    llama = fixtures + "/models/small-llama"
    yield ["bisect", "--offline", "--good", "0.32.0", "--bad", "0.9.2", "--gpu", "4090", "--", "vllm", "serve", llama]
    yield ["plan", "--offline", "--gpu", "all", "--", "vllm", "serve", llama]
    yield ["plan", "--offline", "--gpu", "4090", "--engine", "vllm", "--engine", "sglang", "--", llama]
    yield ["plan", "--offline", "--vllm", "0.11.0,0.19.1,0.32.0", "--gpu", "A100", "--", "vllm", "serve", llama]
    yield ["plan", "--offline", "--gpu", "T4", "--", "vllm", "serve", "Qwen/Qwen3-8B"]
    yield ["plan", "--offline", "--gpu", "H100", "--", "vllm", "serve", "deepseek-ai/DeepSeek-V3"]
    yield ["plan", "--gpu", "none-such", "--", "vllm", "serve", llama]
    yield ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", "no/such-model"]
    yield from (["doctor"], ["gpus"], ["engines"], ["kb", "list"], ["top", "--once"], ["what", "tests/fixtures/kb/vllm/context-too-long/positive.log"])


def outputs(binary, root):
    sampled = list(sample(root))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda words: run(binary, words, root), sampled))
    for words, text in zip(sampled, answers):
        if "html" in words:  # the documents are the JSON report, whose keys stay; the rest of the page is read
            text = re.sub(r'<script type="application/json"[^>]*>.*?</script>|<style>.*?</style>|/\*.*?\*/|const (PALETTE|OWNERS) = .*?;\n', "", text, flags=re.S)
            text = "\n".join(w for _, w in literals(text, PY_TOKEN) if " " in w) + html.unescape(re.sub(r"<script.*?</script>|<[^>]*>", "", text, flags=re.S))
        for number, line in enumerate(text.split("\n"), 1):
            if not re.match(r"\s*\d+\| |\s*>", line):  # a quoted line of a log
                yield "oomsight %s, line %d" % (" ".join(words)[:150], number), line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--list", action="store_true", help="also print what is left")
    parser.add_argument("--root", default=HERE)
    parser.add_argument("--kinds", default=",".join(KINDS))
    given = parser.parse_args()
    binary, root = os.path.abspath(given.binary), os.path.abspath(given.root)
    rules = list(phrases(root))
    if not commands_of(binary, root):
        sys.exit("%s --help lists no command" % binary)
    texts = {"help": lambda: helps(binary, root), "output": lambda: outputs(binary, root), "message": lambda: messages(root),
             "data": lambda: data(root), "docs": lambda: docs(root)}
    left = json.load(open(os.path.join(root, "tools", "words_left.json"), encoding="utf-8"))
    bad = 0
    for kind in given.kinds.split(","):
        found, lines = [], 0
        mine = [(pattern, instead) for pattern, kinds, instead in rules if kind in kinds]
        for where, words in texts[kind]():
            lines += 1
            for pattern, instead in mine:
                for match in pattern.finditer(QUOTED.sub(" ", words)):
                    found.append("%s: '%s': say %s" % (where, match.group(0).strip(), instead))
        allowed = left.get(kind, 0)
        wrong = len(found) > allowed or not lines
        if wrong or given.list:
            print("\n".join(dict.fromkeys(found)))
        print("%-8s %6d texts, %d retired phrases%s" % (kind, lines, len(found), ", %d allowed" % allowed if allowed else ""))
        if len(found) < allowed:
            print("%s: fewer than tools/words_left.json allows; set it to %d" % (kind, len(found)))
        bad |= wrong
    sys.exit(1 if bad else 0)


main()
