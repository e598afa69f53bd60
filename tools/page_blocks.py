"""The blocks of a page: what each is, and whether its commands do what the page says. Used by check_docs.py.

  ```console     `$ command` and what it prints, compared; `...` alone on a line stands for lines left out
  ```sh          commands, one a line: each must end well, what it prints is not compared
  ```python      a program, run behind those above it on the page
  ```text        neither: a formula, a comment; behind `oomsight COMMAND`, the usage line that its --help prints
  ```yaml ...    a file, or a program in another language

A block without a language is ```console when it begins with `$ `, and a fault otherwise. Above a block of commands that cannot run here stands
`<!-- not run: REASON -->`, a reason of NOT_RUN. A block that is indented instead of fenced needs the same, unless it is JSON.

The commands of a page run in order, in one shell, in a copy of the files that a clone has, with `oomsight` and its Python package installed and an
empty home: nothing that the page does not say. An answer of `oomsight` is 0 or 1; all else must end with 0."""
import difflib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

OTHER = ("c", "html", "ini", "json", "toml", "yaml")
ANSWERS = ("plan", "explain", "check", "matrix", "bisect", "replay")  # 1 is an answer: it does not start, or ran out
HUB = ("plan", "check", "matrix", "bisect")  # what they print depends on the Hub unless --offline

# Why a block is not run, what such a block must mention, and how many there may be.
NOT_RUN = {
    "docker": (r"\bdocker\b", 2),
    "matplotlib": (r"\bmatplotlib\b", 1),
    "jq": (r"\bjq\b", 1),
    "kubernetes": (r"\b(kubectl|helm)\b", 1),
    "root": (r"\bsudo\b", 3),
    "GPU": (r"oomsight (run|doctor --measure)\b|record\.json|torch\.cuda", 5),
    "engine": (r"\b(dryrun|pytest|vllm serve|tests/oracle/\w+\.py|dump_\w+\.py)\b", 15),
    "database": (r"\bpsql\b", 1),
    "logs of a fleet": (r"--follow\b", 1),
    "build": (r"\bmake [a-z]|\bcc ", 3),
    "older commit": (r"\bgit worktree\b", 1),
}
# Of each kind at least so many blocks, or at most. The first may only rise, the others, and NOT_RUN's, only fall.
AT_LEAST = {"compared": 22, "run": 20, "usage": 16}
AT_MOST = {"left out": 0, "text": 5}


def read(path):
    """The text of a file; nothing where there is none."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


class Block:
    def __init__(self, line, language, lines, start, reason, indented=False):
        self.line, self.language, self.lines, self.start, self.reason, self.indented = line, language, lines, start, reason, indented

    def commands(self):
        """[line of the output in the block, command, output or None]; a backslash continues a command."""
        prompt, found, at = "" if self.language == "sh" else "$ ", [], 0
        while at < len(self.lines):
            line = self.lines[at]
            at += 1
            if not line.startswith(prompt):
                if found:
                    found[-1][2].append(line)
                continue
            if not prompt and (not line.strip() or line.lstrip().startswith("#")):
                continue
            while line.endswith("\\") and at < len(self.lines):
                line = line[:-1] + self.lines[at].strip()
                at += 1
            found.append([at, line[len(prompt):], None if self.language == "sh" else []])
        return found


def parse(text):
    """The blocks of a page, fenced or indented."""
    lines, offset, at, found, reason, inside = text.split("\n"), 0, 0, [], None, 0
    blank = True
    while at < len(lines):
        line = lines[at]
        fence = re.match(r"( *)(```+|~~~+)\s*(\S*)", line)
        indent = len(line) - len(line.lstrip())
        if fence:
            first = at
            start = offset + len(line) + 1
            body = []
            offset, at = start, at + 1
            while at < len(lines) and not re.match(r" *%s\s*$" % fence.group(2), lines[at]):
                body.append(lines[at])
                offset, at = offset + len(lines[at]) + 1, at + 1
            language = fence.group(3) or ("console" if body and body[0].startswith("$ ") else "")
            found.append(Block(first + 1, language, body, start, reason, indented=bool(indent)))
            line, reason = lines[at] if at < len(lines) else "", None
        elif blank and line.strip() and indent >= inside + 4 and not re.match(r" *(<!--|[-*] |\d+\. )", line):
            first, start, body = at, offset, []
            while at < len(lines) and (not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip()) >= inside + 4):
                body.append(lines[at].strip())
                offset, at = offset + len(lines[at]) + 1, at + 1
            found.append(Block(first + 1, "", body, start, reason, indented=True))
            reason, blank = None, True
            continue
        elif line.strip():
            marker = re.fullmatch(r" *<!-- not run: (.+) -->", line)
            item = re.match(r" *([-*]|\d+\.) +", line)
            inside = len(item.group()) if item else inside if indent else 0
            reason = marker.group(1) if marker else None
        blank = not line.strip()
        offset, at = offset + len(line) + 1, at + 1
    return found


def kind(block, usages):
    """(what the block is, what is wrong with it)."""
    if block.reason is not None:
        if block.reason not in NOT_RUN:
            return None, "no reason '%s': %s" % (block.reason, ", ".join(NOT_RUN))
        if not re.search(NOT_RUN[block.reason][0], "\n".join(block.lines)):
            return None, "nothing in this block needs '%s'" % block.reason
        if block.language not in ("sh", "console", "python") and not block.indented:
            return None, "only a block of commands can be 'not run'"
        return block.reason, None
    if block.indented:
        try:
            json.loads("\n".join(block.lines))
            return "other", None
        except ValueError:
            return None, "an indented block: put it into a fence at the margin, with a language"
    if block.language not in ("console", "sh") and any(line.startswith("$ ") for line in block.lines):
        return None, "a command with `$` in a block that is not run: ```console"
    if block.language == "":
        return None, "a block without a language: ```console (`$ command` and its output), ```sh (commands) or ```text (neither)"
    if block.language == "text":
        if not block.lines or not block.lines[0].startswith("oomsight "):
            return "text", None
        wrong = [line for line in block.lines if line not in usages]
        return "usage", "no --help has the usage '%s'" % wrong[0] if wrong else None
    if block.language in OTHER:
        return "other", None
    if block.language in ("sh", "python"):
        return "run", None
    if block.language != "console" or not block.lines or not block.lines[0].startswith("$ "):
        return None, "no language '%s' is known here, or no `$`" % block.language
    return "compared", None


def left_out(shown):
    """Whether an output is shown that says nothing."""
    return bool(shown) and not set(shown) - {"...", ""}


def same(shown, printed):
    """Whether `shown` is `printed`, where `...` stands for any number of lines."""
    if "..." not in shown:
        return shown == printed
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


class Clone:
    """A copy of the files that a clone of `root` has: those of git, or all where there is none."""

    def __init__(self, root, work, binary):
        self.root, self.work, self.tree = root, work, os.path.join(work, "oomsight")
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True)
        self.files = [f for f in listed.stdout.split("\0") if f and os.path.lexists(os.path.join(root, f))]
        if listed.returncode or not self.files:
            self.files = [os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names]
        self.left = None
        os.makedirs(os.path.join(work, "bin"))
        os.symlink(binary, os.path.join(work, "bin", "oomsight"))
        os.symlink(sys.executable, os.path.join(work, "bin", "python3"))
        os.makedirs(os.path.join(work, "packages"))
        os.symlink(os.path.join(self.tree, "bindings/python/oomsight"), os.path.join(work, "packages", "oomsight"))
        self.environment = {"PATH": os.path.join(work, "bin") + ":/usr/local/bin:/usr/bin:/bin", "HOME": os.path.join(work, "home"), "TMPDIR": os.path.join(work, "tmp"),
                            "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "PYTHONPATH": os.path.join(work, "packages"), "PYTHONDONTWRITEBYTECODE": "1",
                            "OOMSIGHT_LIBRARY": os.path.join(os.path.dirname(binary), "../src/liboomsight.so")}

    def state(self):
        found = set()
        for folder, _, names in os.walk(self.tree):
            for name in names:
                about = os.lstat(os.path.join(folder, name))
                found.add((os.path.join(folder, name), about.st_size, about.st_mtime_ns))
        return found

    def fresh(self):
        """As it is after `git clone`; copied again only if the page before left something."""
        for name in ("home", "tmp"):
            shutil.rmtree(os.path.join(self.work, name), ignore_errors=True)
            os.makedirs(os.path.join(self.work, name))
        if self.left is not None and self.state() == self.left:
            return
        shutil.rmtree(self.tree, ignore_errors=True)
        for path in self.files:
            to = os.path.join(self.tree, path)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy2(os.path.join(self.root, path), to, follow_symlinks=False)
        os.makedirs(self.tree, exist_ok=True)
        self.left = self.state()

    def run(self, commands):
        """(what it printed, exit code) of each, in one shell; the code is None for one that was not reached."""
        self.fresh()
        seen = os.path.join(self.work, "seen")
        shutil.rmtree(seen, ignore_errors=True)
        os.makedirs(seen)
        script = ""
        for number, command in enumerate(commands):
            with open(os.path.join(seen, "%d.command" % number), "w") as f:
                f.write(command + "\n")
            place = shlex.quote(os.path.join(seen, str(number)))
            script += 'eval "$(cat %s.command)" >%s.printed 2>&1 </dev/null; echo $? >%s.code\n' % (place, place, place)
        shell = subprocess.Popen(["bash", "--noprofile", "--norc", "-c", script], cwd=self.tree, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 start_new_session=True)
        try:
            shell.wait(timeout=600)
        except subprocess.TimeoutExpired:
            pass
        finally:
            try:
                os.killpg(shell.pid, signal.SIGKILL)  # with what it left running
            except ProcessLookupError:
                pass
            shell.wait()
        for number in range(len(commands)):
            printed, code = os.path.join(seen, "%d.printed" % number), os.path.join(seen, "%d.code" % number)
            text, ended = read(printed).rstrip("\n"), read(code).strip()
            yield text.split("\n") if text else [], int(ended) if ended else None


def ended_well(command, code):
    words = command.split()
    answer = len(words) > 1 and words[0] == "oomsight" and words[1] in ANSWERS and "|" not in words
    return code == 0 or (answer and code == 1)


def depends_on_the_hub(command):
    words = command.split()
    return len(words) > 1 and words[0] == "oomsight" and words[1] in HUB and "--offline" not in words


def check(path, text, clone, usages, rewrite=False):
    """(counts by kind, faults, the text with what is printed now)."""
    counts, faults, runs, program = {}, [], [], ""
    for block in parse(text):
        what, fault = kind(block, usages)
        if fault:
            faults.append("%s:%d: %s" % (path, block.line, fault))
        commands = block.commands() if what in ("compared", "run") and block.language != "python" else []
        if what == "run" and block.language == "python":
            program += "\n".join(block.lines) + "\n"
            commands = [[0, "python3 -c " + shlex.quote(program), None]]
        if what == "compared" and any(left_out(shown) for _, _, shown in commands):
            what = "left out"
        counts[what] = counts.get(what, 0) + 1
        outside = [command for _, command, _ in commands if re.search(r"(?:^|[\s'\"=>])(?:/(?:etc|home|mnt|opt|root|srv|tmp|usr|var)\b|~)", command)]
        faults += ["%s:%d: $ %s\n    names a place outside the clone, so it is not run" % (path, block.line, command) for command in outside]
        runs += [(block, *command) for command in commands if not outside]
    results = list(clone.run([command for _, _, command, _ in runs])) if runs else []
    for (block, line, command, shown), (printed, code) in reversed(list(zip(runs, results))):
        place = "%s:%d: %s" % (path, block.line + line, "python" if block.language == "python" else "$ " + command)
        if not ended_well(command, code):
            faults.append("%s\n    %s: %s" % (place, "was not reached" if code is None else "exit code %d" % code, " / ".join(printed[-3:])))
        elif left_out(shown):
            faults.append("%s\n    its output is `...` alone: nothing is compared" % place)
        elif shown is not None and depends_on_the_hub(command):
            faults.append("%s\n    what it prints depends on the Hugging Face Hub: --offline" % place)
        elif shown is None or same(shown, printed):
            pass
        elif rewrite and "..." not in shown:
            start = block.start + sum(len(row) + 1 for row in block.lines[:line])
            text = text[:start] + "".join(row + "\n" for row in printed) + text[start + sum(len(row) + 1 for row in shown):]
        else:
            faults.append("\n".join([place, *difflib.unified_diff(shown, printed, "page", "printed", lineterm="")]))
    return counts, faults, text


def held(counts):
    """Counts that fell, or rose."""
    for what, least in AT_LEAST.items():
        if counts.get(what, 0) < least:
            yield "%d blocks are '%s', at least %d: tools/page_blocks.py" % (counts.get(what, 0), what, least)
    for what, most in [*AT_MOST.items(), *((reason, most) for reason, (_, most) in NOT_RUN.items())]:
        if counts.get(what, 0) > most:
            yield "%d blocks are '%s', at most %d: tools/page_blocks.py" % (counts[what], what, most)
