#!/usr/bin/env python3
"""Commands that are offered to be pasted hold nothing but the words they were made of. usage: test_offered.py BINARY [--few]
Hostile words, with secrets beside and inside them, are put into every place of a command; every command of the answers is taken apart by
a shell that finds only stand-ins, which write down their words and variables. Nothing else may have been started and no file made.
--few: every seventh case, for a slow build."""
import ast
import html
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

from inputs import run, write

MODEL, LARGER = "Qwen/Qwen3-8B", "Qwen/Qwen3-14B"  # does not fit; and not even its weights do, so that other checkpoints are offered
IMAGE = "vllm/vllm-openai:v0.19.1"
GPU = ["--offline", "--gpu", "l4"]
HOSTILE = [";touch pwn;", "$(touch pwn)", "`touch pwn`", "|touch pwn", "&touch pwn&", "\ntouch pwn\n", ">pwn", "';touch pwn;'", "\";touch pwn;\"", "\\';touch pwn;", "a b", "*", "~/x", "#", "{a,b}",
           "${IFS}touch${IFS}pwn", "\\", "é\x1b[31m\u200b;touch pwn", "$HOME", "=", "'", "\"", "'+__import__('os').system('touch pwn')+'", "x=1"]
SECRETS = ["API_KEY=Secret12345678", "password: hunter2hunter2", "hf_" + "QzWxEcRvTbYnUmIkOlPaSdFgHjKlMnBv", "https://somebody:hunter2hunter2@host/x", "--api-key Secret12345678",
           '{"api_key": "Secret12345678"}', "password=", "Authorization: Bearer Secret12345678abc", ""]
ARRANGED = [lambda h, s: h + s, lambda h, s: s + h, lambda h, s: "x" + h + s + h, lambda h, s: "A" + h + "B_TOKEN=" + s, lambda h, s: "API_KEY=" + s + h]
STAND_INS = ("vllm", "docker", "python", "python3", "bash", "env", "pip", "touch", "sh", "sglang")
failures = []


def shown(word):
    """As base/shown.c shows what is not printed."""
    word = word.replace("\n", "\\n").replace("\r", "\\r")
    return re.sub("[\x00-\x08\x0b-\x1f\x7f]", lambda m: "\\x%02x" % ord(m.group()), word)


def words_of(pattern, word):
    return pattern.replace("@", word)


CONTAINER = ["docker", "run", "--gpus", "all", IMAGE]  # what stands before the words of an image, so that a shell starts it

# What is given to `plan`, with @ for the word.
PLACES = {
    "the value of a flag": ["vllm", "serve", MODEL, "--served-model-name", "@"],
    "behind a flag's =": ["vllm", "serve", MODEL, "--served-model-name=@"],
    "two words": ["vllm", "serve", MODEL, "--served-model-name", "@", "@"],
    "behind another": ["vllm", "serve", MODEL, "--served-model-name", "x password=", "--chat-template", "@"],
    "a variable before it": ["VLLM_CACHE_ROOT=@", "vllm", "serve", MODEL],
    "a variable of env": ["env", "VLLM_CACHE_ROOT=@", "vllm", "serve", MODEL],
    "a secret key": ["vllm", "serve", MODEL, "--api-key", "@"],
    "docker -e": ["docker", "run", "-e", "@", IMAGE, "--model", MODEL],
    "docker -e, a value": ["docker", "run", "-e", "VLLM_CACHE_ROOT=@", IMAGE, "--model", MODEL],
    "docker --env=": ["docker", "run", "--env=@", IMAGE, "--model", MODEL],
    "docker -v": ["docker", "run", "-v", "@", IMAGE, "--model", MODEL, "--served-model-name", "@"],
    "SGLang": ["python", "-m", "sglang.launch_server", "--model-path", MODEL, "--chat-template", "@"],
}


class Shell:
    """Runs a line where only stand-ins are found."""

    def __init__(self, folder):
        self.bin, self.place, self.log = folder + "/bin", folder + "/empty", folder + "/log"
        os.makedirs(self.place)
        for path in ["%s/%s" % (self.bin, name) for name in STAND_INS] + ["%s/%s" % (self.place, IMAGE)]:
            name = "image" if path.endswith(IMAGE) else os.path.basename(path)
            write(path, "#!/bin/sh\n{ printf '%%s\\0' %s \"$@\"; printf '\\1\\0'; /usr/bin/env -0; printf '\\2\\0'; } >>\"$LOG\"\n" % name)
            os.chmod(path, 0o755)

    def started(self, line):
        """[(words, variables)] of what was started, or a sentence on what is wrong."""
        names = set(re.findall(r'"\$(\w+)"', line))
        held = {name: "<%s;touch pwn;$(touch pwn)>" % name for name in names}
        if os.path.exists(self.log): os.unlink(self.log)
        env = {**held, "PATH": self.bin, "LOG": self.log, "HOME": "/nonexistent"}
        for options in (["-n", "-c"], ["-c"]):
            done = subprocess.run(["/bin/sh", *options, line], env=env, cwd=self.place, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
            if done.returncode: return "sh %s: exit %d, %r" % (" ".join(options), done.returncode, done.stderr)
        left = [name for name in os.listdir(self.place) if name != "vllm"]
        for name in left: os.unlink(os.path.join(self.place, name))
        if left: return "it made %s" % left
        with open(self.log, "rb") as f: log = f.read().decode("utf-8", "surrogateescape")
        calls = []
        for call in log.split("\2\0")[:-1]:
            words, variables = call.split("\1\0")
            calls.append((words.split("\0")[:-1], dict(v.split("=", 1) for v in variables.split("\0")[:-1])))
        return calls, held


def offered(answer):
    """Commands of a JSON answer, each with its path."""
    def walk(node, at):
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("command", "best_command") and isinstance(value, str): yield at + key, value
                else: yield from walk(value, at + key + ".")
        elif isinstance(node, list):
            for value in node: yield from walk(value, at)
    return {line: at for at, line in walk(answer, "")}


def stands_for(got, given, held):
    """The word itself, or a variable in its place: behind `NAME=` or `--flag=`, or alone."""
    if got == shown(given): return True
    name, equals, rest = got.partition("=")
    start = re.match(r"[\w-]+=", shown(given), re.A)
    return got in held.values() or bool(equals and start and start.group() == name + "=" and rest in held.values())


def tell(what, line, why):
    failures.append("%s: %s\n    %s" % (what, why, line))


def judged(shell, what, line, given):
    """`given`: the words as they were given."""
    started = shell.started(line)
    if isinstance(started, str): return tell(what, line, started)
    (calls, held), given = started, list(given)
    if len(calls) == 2 and calls[0][0][:2] == ["pip", "install"] and len(calls[0][0]) == 3: calls = calls[1:]
    if len(calls) != 1: return tell(what, line, "started %s" % [words for words, _ in calls])
    words, variables = calls[0]
    while given and re.match(r"\w+=", given[0], re.A):  # before the command: left out when no engine reads it
        name, value = given.pop(0).split("=", 1)
        if name in variables and not stands_for(name + "=" + variables[name], name + "=" + value, held): return tell(what, line, "%s is %r" % (name, variables[name]))
    at = 0
    for word in given:
        got = words[at] if at < len(words) else ""
        other = word == MODEL and re.fullmatch(r"[\w.-]+/[\w.-]+", got)  # another checkpoint
        handed = re.fullmatch(r"((--env=)?\w+)=.*", word, re.A | re.S)  # by its name alone
        if stands_for(got, word, held) or other or handed and got == handed.group(1): at += 1
        elif words[at - 1] not in held.values(): return tell(what, line, "%r is not at %d of %r" % (word, at, words))  # else: one variable for all words of a flag
    if any("pwn" in word for word in words[at:]): return tell(what, line, "more words than there were: %r" % words)
    return None


def cases(few):
    """(number, hostile word). All pairs; how they are arranged goes round."""
    pairs = list(itertools.product(HOSTILE, SECRETS))
    for number, (hostile, secret) in enumerate(pairs):
        if not few or number % 7 == 0: yield number, ARRANGED[(number + number // len(SECRETS)) % len(ARRANGED)](hostile, secret)


def of_plan(binary, words, form="json"):
    code, out = run(binary, ["plan", *GPU, "--color", "never", "--format", form, "--"] + words)
    return code, out.decode("utf-8", "surrogateescape")


def plans(binary, shell, few):
    counts = dict.fromkeys(PLACES, 0)
    for (number, word), (place, pattern) in itertools.product(cases(few), PLACES.items()):
        given = [words_of(x, word) for x in pattern]
        code, out = of_plan(binary, given)
        if code > 1: continue
        for line, at in offered(json.JSONDecoder().raw_decode(out)[0]).items():
            counts[place] += 1
            judged(shell, "plan, %s, %s" % (place, at), line, given)
    return counts


def wrapped(binary, shell, few):
    """`bash -c '...'`: the line inside is a command of its own."""
    count = 0
    for number, word in cases(few):
        inside = ["vllm", "serve", MODEL, "--served-model-name", word]
        code, out = of_plan(binary, ["bash", "-c", shlex.join(inside)])
        if code > 1: continue
        for line, at in offered(json.JSONDecoder().raw_decode(out)[0]).items():
            count += 1
            started = shell.started(line)
            if isinstance(started, str): tell("bash -c, " + at, line, started)
            elif started[0][0][0][:2] == ["bash", "-c"] and len(started[0]) == 1 and len(started[0][0][0]) == 3: judged(shell, "bash -c, inside, " + at, started[0][0][0][2], inside)
            else: judged(shell, "bash -c, alone, " + at, line, inside)
    return count


def python(binary, few):
    """Offered calls are calls of literals."""
    count = 0
    for number, word in cases(few):
        quoted = ["\"" + word.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"", repr(word), json.dumps([word, True, None, 1.5]), json.dumps({word: {"a": [word]}})][number % 4]
        code, out = of_plan(binary, ["LLM(model='%s', served_model_name=%s)" % (MODEL, quoted)])
        if code > 1: continue
        for line, at in offered(json.JSONDecoder().raw_decode(out)[0]).items():
            count += 1
            try:
                call = ast.parse(line, mode="eval").body
                good = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "LLM" and not call.args
                values = {k.arg: ast.literal_eval(k.value) for k in call.keywords} if good else {}
            except (SyntaxError, ValueError) as error:
                tell("LLM(...), " + at, line, str(error))
                continue
            got = values.get("served_model_name")
            if not good or not set(values) >= {"model", "served_model_name"}: tell("LLM(...), " + at, line, "not a call of LLM")
            elif isinstance(got, str) and number % 4 < 2 and "***" not in got and got not in (word, shown(word)): tell("LLM(...), " + at, line, "%r is not %r" % (got, word))
    return count


def forms(binary, few):
    """Text, Markdown and HTML have the commands of JSON, each in whole."""
    count = dict.fromkeys(("text", "html", "md"), 0)
    for (number, word), form in itertools.product(cases(few), count):
        if number % (21 if form == "md" else 3): continue
        given = ["vllm", "serve", LARGER, "--served-model-name", word] if form == "md" else [words_of(x, word) for x in list(PLACES.values())[number // 3 % len(PLACES)]]
        code, out = of_plan(binary, given)
        if code > 1: continue
        answer = json.JSONDecoder().raw_decode(out)[0]
        page = re.sub(r" \\\n +", " ", html.unescape(of_plan(binary, given, form)[1]))
        for line in offered(answer["needs"]["checkpoints"][:1] if form == "md" else answer["answers"][:1]):
            count[form] += 1
            if line not in page and json.dumps(line, ensure_ascii=False) not in page: tell("plan, " + form, line, "is not there in whole")
    return count


def manifests(binary, shell, few):
    """`check --json` of files with the word in them."""
    counts = dict.fromkeys(("serve.sh", "pod.yaml", "compose.yaml"), 0)
    with tempfile.TemporaryDirectory() as folder:
        for number, word in cases(few):
            flags = ["--served-model-name", word]
            files = {"serve.sh": (["vllm", "serve", MODEL] + flags, lambda words: shlex.join(words) + "\n"),
                     "pod.yaml": (["vllm", "serve", MODEL] + flags, lambda words: "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: %s\n    command: %s\n" % (IMAGE, json.dumps(words))),
                     "compose.yaml": (CONTAINER + ["--model", MODEL] + flags, lambda words: "services:\n  s:\n    image: %s\n    command: %s\n" % (IMAGE, json.dumps(words[len(CONTAINER):])))}
            for name, (words, text) in files.items(): write("%s/%s" % (folder, name), text(words))
            code, out = run(binary, ["check", *GPU, "--format", "json", folder])
            if code > 3: tell("check", repr(word), "exit %d" % code)
            for found in json.JSONDecoder().raw_decode(out.decode("utf-8", "surrogateescape"))[0]["commands"]:
                name, line = os.path.basename(found["file"]), found["best_command"]
                if not line or name == "compose.yaml" and "$" in word: continue  # which Compose takes for a variable
                counts[name] += 1
                judged(shell, "check, " + name, line, files[name][0])
    return counts


def main():
    binary, few = os.path.abspath(sys.argv[1]), "--few" in sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(folder)
        planted = shell.started("vllm x; touch pwn")
        assert len(planted[0]) == 2, "what is planted is seen"
        assert "it made" in shell.started("vllm x >pwn") and "exit 2" in shell.started("vllm 'x")
        counts = plans(binary, shell, few)
        counts.update({"bash -c": wrapped(binary, shell, few), "LLM(...)": python(binary, few), **forms(binary, few), **manifests(binary, shell, few)})
    print("\n".join(failures[:20]))
    print("offered commands: %s; %d wrong" % (counts, len(failures)))
    return 1 if failures or not all(counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
