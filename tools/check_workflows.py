#!/usr/bin/env python3
"""The workflows of a hosted CI: check_workflows.py [FOLDER]

Each action is named by its commit, with the release behind it; what publishes waits for .ci/run; a pull request runs .ci/run and a schedule .ci/nightly; every file fits GitHub's own
schema, which check-jsonschema brings (an environment outside the checkout, made once). Exit 77 when all but the schema was looked at."""
import glob
import os
import re
import subprocess
import sys
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d[\w.]*$")


def look(text, name):
    """What is wrong with one workflow by its text alone."""
    wrong = ["%s: %s is not pinned to a commit" % (name, used) for used in re.findall(r"(?m)^\s*(?:- )?uses: +(\S+.*)$", text) if not PINNED.match(used) and not used.startswith("./")]
    if not re.search(r"(?m)^permissions:", text):
        wrong.append("%s: has no permissions of its own" % name)
    if "gh-action-pypi-publish" in text and not publishes_last(text):
        wrong.append("%s: publishes without the gate" % name)
    return wrong


def publishes_last(text):
    """Whether the job that publishes waits for one that runs .ci/run."""
    jobs = dict(re.findall(r"(?ms)^  (\w+):\n(.*?)(?=^  \w+:\n|\Z)", text.split("\njobs:\n")[1]))
    needed = {one for body in jobs.values() if "gh-action-pypi-publish" in body for one in re.findall(r"\w+", "".join(re.findall(r"needs: (.*)", body)))}
    return any("run: .ci/run\n" in jobs.get(one, "") for one in needed)


def look_at_all(files):
    texts = {}
    for path in files:
        with open(path, encoding="utf-8") as file:
            texts[os.path.basename(path)] = file.read()
    wrong = [line for name, text in texts.items() for line in look(text, name)]
    for trigger, command in (("pull_request", ".ci/run"), ("schedule", ".ci/nightly")):
        if not any(re.search(r"(?m)^  %s:" % trigger, text) and re.search(r"(?m)run: %s\b" % re.escape(command), text) for text in texts.values()):
            wrong.append("no workflow runs %s by %s" % (command, trigger))
    return wrong


def checker():
    """The program with the schemas, or None where it cannot be had."""
    folder = os.environ.get("OOMSIGHT_SCHEMAS", os.path.expanduser("~/.cache/oomsight/schemas"))
    program = os.path.join(folder, "bin", "check-jsonschema")
    if not os.path.exists(program):
        venv.create(folder, with_pip=True)
        subprocess.run([os.path.join(folder, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "check-jsonschema"], capture_output=True, check=False)
    return program if os.path.exists(program) else None


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, ".github", "workflows")
    files = sorted(glob.glob(os.path.join(folder, "*.yml")))
    wrong = look_at_all(files)
    print("\n".join(wrong) or "%d workflows, every action pinned" % len(files))
    if wrong:
        return 1
    program = checker()
    if not program:
        print("check-jsonschema cannot be installed here: the schema was not asked")
        return 77
    return 1 if subprocess.run([program, "--builtin-schema", "vendor.github-workflows", *files], check=False).returncode else 0


if __name__ == "__main__":
    sys.exit(main())
