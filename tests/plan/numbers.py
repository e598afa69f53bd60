#!/usr/bin/env python3
"""Numbers have one form wherever people read them: numbers.py BINARY

Models, GPUs, lengths and releases go round; each is asked of plan, plan of two releases, plan as Markdown, bisect, check and check for a pipeline. A number of
tokens, blocks or sequences from 1,000 on has its commas in each of them; what the engine itself says, and what is pasted, is as it is. Two plans side
by side and bisect end with a suggested command where the one that fails has one, and no two cells of bisect's table touch. Prints what breaks;
exit 1 when anything does."""
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile

ROWS = list(itertools.product(("Qwen/Qwen3-8B", "Qwen/Qwen3-14B", "mistralai/Mistral-7B-Instruct-v0.3"), ("l4", "4090", "a100-40"), ((), ("--max-model-len", "24000"))))
BARE = re.compile(r"(?<![\d.,=-])\d{4,}(?= (?:KV )?(?:tokens|blocks|sequences))")
VERBATIM = re.compile(r"Expected error:.*?(?=\n\n|\n[A-Z]|\Z)", re.S)


class Test:
    def __init__(self, binary):
        self.binary, self.broken, self.asked = os.path.abspath(binary), [], 0

    def run(self, *words):
        return subprocess.run([self.binary, *words], capture_output=True, text=True, check=False).stdout

    def claim(self, sentence, holds, seen):
        self.asked += 1
        if not holds:
            self.broken.append("%s   (seen: %s)" % (sentence, seen))

    def form(self, what, text):
        bare = BARE.findall(VERBATIM.sub("", text))
        self.claim("%s: numbers have commas" % what, not bare, (bare, text[:300]))

    def suggests(self, what, text, words):
        """Where a release does not start and has an answer, the command is there."""
        for release in ("0.19.1", "0.32.0"):
            plan = json.loads(self.run("plan", "--offline", "--json", *words[:2], "--vllm", release, *words[2:]))
            answers = [answer["command"] for answer in plan["answers"]] if plan["likely"] == "fails" else []
            if answers:
                flat = re.sub(r" \\\n *", " ", text)
                self.claim("%s: the command for %s is there" % (what, release), answers[0] in flat, (answers[0], text))

    def row(self, model, gpu, flags, folder):
        words = ["--gpu", gpu, "--", "vllm", "serve", model, *flags]
        what = " ".join(words)
        self.form("plan " + what, self.run("plan", "--offline", *words))
        self.form("plan as Markdown " + what, self.run("plan", "--offline", "--format", "md", *words))
        two = self.run("plan", "--offline", "--vllm", "0.19.1,0.32.0", *words)
        self.form("two plans " + what, two)
        self.suggests("two plans " + what, two, words)
        self.claim("two plans %s: no line of words is longer than 100 columns" % what, all(len(line) <= 100 for line in two.splitlines()), [line for line in two.splitlines() if len(line) > 100])
        bisect = self.run("bisect", "--offline", "--good", "0.19.1", "--bad", "0.32.0", *words)
        self.form("bisect " + what, bisect)
        table = [line for line in bisect.splitlines() if re.match(r"\d+\.\d+\.\d+ {2,}", line)]
        cells = [re.split(r" {2,}", line) for line in table]
        self.claim("bisect %s: five cells a row" % what, table and all(len(row) - (row[-1] == "<-") == 5 for row in cells), table)
        with open(os.path.join(folder, "serve.sh"), "w", encoding="utf-8") as f:
            f.write("vllm serve %s %s\n" % (model, " ".join(flags)))
        for form in ("text", "github"):
            self.form("check as %s %s" % (form, what), self.run("check", "--offline", "--gpu", gpu, "--format", form, f.name))


def main():
    test = Test(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        for model, gpu, flags in ROWS:
            test.row(model, gpu, flags, folder)
    suggested = sum("the command for" in line for line in test.broken)
    print("\n".join(test.broken))
    print("numbers: %d of %d as they must be, %d commands missing" % (test.asked - len(test.broken), test.asked, suggested))
    return 1 if test.broken else 0


if __name__ == "__main__":
    sys.exit(main())
