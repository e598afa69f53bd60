#!/usr/bin/env python3
"""Suggestions as patches of the files they are for: patches.py BINARY [FOLDER...]

Every manifest (tests/fixtures/deploy, and the folders that are given) is checked with --format patch on several GPUs, and the
real `patch -p0` applies what is printed, without fuzz. Then the commands that changed start and all others are as they were. Files of
strangers follow: names and contents that would break a patch, give commands to a shell or a terminal, or show a secret. Exit 77 without
`patch`."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPUS = ["rtx-3060", "l4", "a100-40gb", "h100"]
LINE = re.compile(r"^(#( |$)|--- |\+\+\+ |@@ -\d+,\d+ \+\d+,\d+ @@$|[ +-]|\\ No newline at end of file$)")
SECRET = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345"
COMPOSE = "services:\n  vllm:\n    image: vllm/vllm-openai:v0.11.0\n    command: --model Qwen/Qwen3-8B --max-model-len 40960\n"
DEPLOY = "kind: Deployment\nspec:\n  containers:\n  - name: vllm\n    image: vllm/vllm-openai:v0.11.0\n    args:\n%s"
ITEMS = "    - --model\n    - Qwen/Qwen3-8B\n    - --max-model-len\n    - \"40960\"\n"


def run(binary, folder, *words):
    return subprocess.run([binary, "check", "--offline", *words], cwd=folder, capture_output=True, check=False)


def commands(binary, folder, gpu, name):
    done = run(binary, folder, "--gpu", gpu, "--json", name)
    return json.loads(done.stdout)["commands"] if done.stdout.startswith(b"{") else []


def apply(folder, text):
    return subprocess.run(["patch", "-p0", "--batch"], cwd=folder, input=text, capture_output=True, check=False)


def odd_lines(text):
    """Lines that are neither a comment nor of a patch, and what a terminal would obey."""
    lines = text.split(b"\n")[:-1]
    return [line for line in lines if not LINE.match(line.decode("utf-8", "replace")) or re.search(rb"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f]", line)]


class Judge:
    def __init__(self, binary):
        self.binary, self.failed, self.seen, self.changed, self.kept = binary, 0, 0, 0, 0

    def complain(self, what):
        self.failed += 1
        print("BROKEN " + what)

    def patched(self, folder, gpu, name):
        """The file is patched; returns what was printed."""
        before = commands(self.binary, folder, gpu, name)
        text = run(self.binary, folder, "--gpu", gpu, "--format", "patch", name).stdout
        where = "%s on %s" % (os.path.join(os.path.basename(folder), name), gpu)
        if odd_lines(text):
            self.complain("%s: a line that is none of a patch: %r" % (where, odd_lines(text)[0]))
        self.seen += sum(row["best_command"] is not None and row["level"] != "ok" for row in before)
        self.kept += text.count(b": not changed: ")
        if b"\n--- " not in b"\n" + text:
            return text
        done = apply(folder, text)
        if done.returncode or b"fuzz" in done.stdout or b"offset" in done.stdout:
            self.complain("%s: patch says %r" % (where, done.stdout + done.stderr))
            return text
        after = commands(self.binary, folder, gpu, name)
        if len(after) != len(before):
            self.complain("%s: %d commands, and %d before" % (where, len(after), len(before)))
            return text
        for old, new in zip(before, after):
            changed = old["command"] != new["command"]
            self.changed += changed
            if changed and new["likely"] != "starts" and not new["beside"]:
                self.complain("%s: %s does not start" % (where, " ".join(new["command"])))
            if changed and (old["best_command"] is None or old["level"] == "ok"):
                self.complain("%s: %s changed for nothing" % (where, " ".join(old["command"])))
        return text


def manifests(judge, folders):
    for folder in folders:
        for gpu in GPUS:
            with tempfile.TemporaryDirectory() as base:
                here = os.path.join(base, os.path.basename(folder))
                shutil.copytree(folder, here)
                subprocess.run(["chmod", "-R", "u+w", here], check=True)
                for name in sorted(os.listdir(here)):
                    judge.patched(here, gpu, name)


def strangers(judge):
    """(file name, text, whether it changes)"""
    header = "--- /etc/passwd\n+++ /etc/passwd\n@@ -1,1 +1,1 @@\n-root\n+toor\n"
    cases = [
        ("a b.yaml", COMPOSE, True),
        ("$(touch owned).yaml", COMPOSE, True),
        ("it's.yaml", COMPOSE, True),
        ("back\\slash.yaml", COMPOSE, False),
        ("new\nline.yaml", COMPOSE, False),
        ("esc\x1b[2J.yaml", COMPOSE, False),
        ("crlf.yaml", COMPOSE.replace("\n", "\r\n"), True),
        ("open.yaml", COMPOSE.rstrip("\n"), True),
        ("openitems.yaml", DEPLOY % ITEMS.rstrip("\n"), True),
        ("items.yaml", DEPLOY % ITEMS, True),
        ("flow.yaml", DEPLOY % "" + "      [\"--model\", \"Qwen/Qwen3-8B\", \"--max-model-len=40960\"]\n", True),
        ("secret.yaml", COMPOSE.replace("    command", "    environment: {HF_TOKEN: %s}\n    command" % SECRET), True),
        ("shown.yaml", COMPOSE.replace("--model", "--hf-token %s --model" % SECRET), False),
        ("control.sh", "# \x1b[2J\nvllm serve Qwen/Qwen3-8B --max-model-len 40960\n", True),
        ("headers.yaml", "x: |\n" + "".join("  " + line + "\n" for line in header.split("\n")) + COMPOSE + "# " + header.replace("\n", "\n# ") + "\n", True),
        ("name.yaml", COMPOSE.replace("vllm:\n", "\"a\\n--- b\\n+++ b\":\n", 1), True),
        ("env.yaml", COMPOSE.replace("40960", "${LENGTH:-40960}"), False),
        ("template.yaml", COMPOSE.replace("40960", "40960 # {{ .Values.length }}"), False),
        ("anchor.yaml", "x: &words [--model, Qwen/Qwen3-8B, --max-model-len, \"40960\"]\nservices:\n"
         "  a: {image: \"vllm/vllm-openai:v0.11.0\", command: *words}\n  b: {image: \"vllm/vllm-openai:v0.11.0\", command: *words}\n", False),
        ("two.yaml", COMPOSE + COMPOSE.split("\n", 1)[1].replace("vllm:\n", "other:\n", 1).replace("40960", "40000"), True),
        ("list.yaml", "\n---\n".join([DEPLOY % ITEMS] * 8) + "\n", True),
        ("json.yaml", DEPLOY % ("    - --limit-mm-per-prompt\n    - '{\"image\": 4}'\n" + ITEMS), True),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, text, changes in cases:
            with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
                file.write(text)
            told = judge.patched(folder, "l4" if name != "list.yaml" else "rtx-3060", "./" + name)
            if SECRET.encode() in told:
                judge.complain("%r: the secret is in the patch" % name)
            with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
                if (file.read() != text) != changes:
                    judge.complain("%r: %s: %r" % (name, "did not change" if changes else "changed", told))
        for name in (os.path.join(folder, "items.yaml"), "../%s/items.yaml" % os.path.basename(folder), "-"):
            with open(os.path.join(folder, "items.yaml"), "w", encoding="utf-8") as file:
                file.write(DEPLOY % ITEMS)
            with open(os.path.join(folder, "items.yaml"), "rb") as given:
                told = subprocess.run([judge.binary, "check", "--offline", "--gpu", "l4", "--format", "patch", name], cwd=folder, stdin=given,
                                      capture_output=True, check=False).stdout
            if b"\n--- " in told or b"not changed: " not in told:
                judge.complain("a patch of %s: %r" % (name, told))
        if os.path.exists(os.path.join(folder, "owned")):
            judge.complain("a name was run")


def main():
    if not shutil.which("patch"):
        return 77
    judge = Judge(os.path.abspath(sys.argv[1]))
    folders = [os.path.join(ROOT, "tests", "fixtures", "deploy"), *map(os.path.normpath, sys.argv[2:])]
    strangers(judge)
    manifests(judge, folders)
    print("%d suggestions for commands in files: %d patched, %d left with a reason; %d broken" % (judge.seen, judge.changed, judge.kept, judge.failed))
    return 1 if judge.failed or not judge.changed else 0


if __name__ == "__main__":
    sys.exit(main())
