"""Options that a page names: each `--word` must be one of the program that it is named with. Used by check_docs.py.

In `oomsight COMMAND ... -- ...`, and in a code span that begins with COMMAND, those before the ` -- ` are COMMAND's; behind a file of the repository
(tools/x.py --y) the file has them. Everywhere else an option is one of oomsight, of vLLM or SGLang in any release of data/engines, or of OTHER."""
import glob
import json
import os
import re
import subprocess

import page_blocks

OPTION = re.compile(r"(?<![\w./<-])--[a-zA-Z][\w-]*")
# Options of other programs that the pages name alone or with a value: whose. A file of the repository must have its own.
OTHER = {
    "--cflags": "pkg-config",
    "--check": "tools/catalogue.py",
    "--collector": "node_exporter",
    "--disable-pip-version-check": "pip",
    "--fit": "llama.cpp",
    "--gres": "Slurm",
    "--ipc": "docker",
    "--libs": "pkg-config",
    "--no-install-recommends": "apt-get",
    "--nproc-per-node": "torchrun",
    "--phantom": "bindings/python/oomsight/pytest_plugin.py",
    "--previous": "kubectl",
    "--refresh": "tools/catalogue.py",
    "--repo": "gh",
    "--suite": "meson",
    "--tags": "git",
    "--transformers": "tools/dump_architectures.py",
    "--web": "node_exporter",
}
# What stands for any option.
ANY = {"--flag", "--x", "--no-x"}


def own(binary):
    """{command: its options}, by what the shell completion offers."""
    ask = lambda *words: subprocess.run([binary, "completion", "words", *words], capture_output=True, text=True).stdout.split()
    return {command: set(ask(command, "--")) for command in ask("")}


def usages(binary, commands):
    """The usage lines of all --help."""
    found = set()
    for command in commands:
        text = subprocess.run([binary, command, "--help"], capture_output=True, text=True).stdout
        found.update(re.findall(r"^usage: (.+)$", text, re.M))
    return found


def engines(root):
    """The flags of every engine in every release that is known."""
    found = set()
    for path in glob.glob(os.path.join(root, "data/engines/*/flags.json")):
        with open(path, encoding="utf-8") as f:
            found.update(re.findall(r'"(--[^"]+)"', json.dumps([[flag.get("names"), flag.get("negative"), flag.get("changes")] for flag in json.load(f)["flags"]])))
    return found


class Known:
    def __init__(self, root, commands):
        self.root, self.commands, self.engines = root, commands, engines(root)
        self.all = set().union(self.engines, ANY, {"--help", "--version"}, *commands.values())
        self.all.update(option for option, whose in OTHER.items() if "/" not in whose or option in (self.script(whose) or ""))

    def script(self, name):
        """The text of a program of the repository, by its path or its name alone; None: there is none."""
        places = [os.path.join(self.root, name)] if "/" in name else [path for folder in ("tools", "tests", "examples")
                                                                      for path in glob.glob(os.path.join(self.root, folder, "**", name), recursive=True)]
        return "".join(page_blocks.read(place) for place in places) or None

    def wrong_in(self, code):
        """Options of a line of code that the program in it does not have; those it has are taken out of the line."""
        found = []
        program = re.search(r"(?:^|[\s|;(`])oomsight ([a-z]+)(?=\s|$)|^`?([a-z]+)(?= --[a-z])", code)
        command = program and (program.group(1) or program.group(2))
        if command in self.commands:
            end = re.search(r" -- |[|;]", code[program.end():])
            mine = code[program.end():program.end() + end.start() if end else len(code)]
            found += ["%s has no %s" % (command, option) for option in OPTION.findall(mine) if option not in self.commands[command]]
            code = code[:program.start()] + code[program.end() + len(mine):]
        script = re.search(r"(?:^|[\s`])([\w/]*\w\.(?:py|sh))((?: [^`|;&]*)?)", code)
        if script:
            text = self.script(script.group(1))
            if text is not None:
                found += ["%s has no %s" % (script.group(1), option) for option in OPTION.findall(script.group(2)) if option not in text]
            elif script.group(1).startswith(("tools/", "examples/")):
                found.append("no %s" % script.group(1))
            if text is not None or found:
                code = code[:script.start()] + code[script.end():]
        return found + ["%s is not an option that is known here" % option for option in OPTION.findall(code) if not {option, option.replace("_", "-")} & self.all]

    def faults(self, path, text):
        """path:line: what is wrong, of each option of a page."""
        fenced = False
        text = re.sub(r"\\\n\s*", lambda m: " " + "\x00" * m.group().count("\n"), re.sub(r"<!--.*?-->", lambda m: "\n" * m.group().count("\n"), text, flags=re.S))
        number = 1
        for line in text.split("\n"):
            if re.match(r" *(```|~~~)", line):
                fenced = not fenced
            pieces = [line.replace("\x00", "").strip()] if fenced or not line.count("`") else []
            if not pieces:
                pieces = re.findall(r"`([^`]+)`", line) + [re.sub(r"`[^`]*`", " ", line)]
            for piece in pieces:
                for fault in self.wrong_in(re.sub(r"^\$ ", "", piece)):
                    yield "%s:%d: %s" % (path, number, fault)
            number += 1 + line.count("\x00")
