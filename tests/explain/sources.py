#!/usr/bin/env python3
"""The sources of this repository are no logs: sources.py BINARY ROOT

Every C, Python, JavaScript and shell file and every page is explained. One that begins as a source file or as a page, and holds no line that a program
printed, must not be called out of memory. Prints what is and ends with one line; exit 1 when anything is."""
import concurrent.futures
import os
import re
import subprocess
import sys

KINDS = (".c", ".h", ".py", ".js", ".sh", ".md")
LEFT_OUT = ("tests/fixtures", "tests/golden", "tests/evidence/reports", "tests/cli", "subprojects")
# In a test there are lines as a program prints them; such a text is read.
PRINTED = re.compile(r"^(?:[A-Z]+ \d\d-\d\d |Traceback \(|[\w.]+(?:Error|Exception): |Description: )", re.M)


def files(root):
    for folder, folders, names in os.walk(root):
        here = os.path.relpath(folder, root)
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build", "dist")) and os.path.join(here, f).replace("./", "") not in LEFT_OUT)
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(KINDS) and not PRINTED.search(open(path, encoding="utf-8", errors="replace").read()):
                yield path


def main():
    binary, root = sys.argv[1:]
    asked = list(files(root))

    def explain(path):
        return subprocess.run([binary, "explain", "--offline", "--json", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False).returncode

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [os.path.relpath(path, root) for path, code in zip(asked, pool.map(explain, asked)) if code == 1]
    print("\n".join(wrong + ["%d of %d files are called out of memory" % (len(wrong), len(asked))]))
    return 1 if wrong or len(asked) < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
