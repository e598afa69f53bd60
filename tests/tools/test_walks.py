"""The walks of docs/contributing/architecture.md go through functions that exist: every `name` (`file`) is looked for in that file."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def walks(text):
    start = text.index("## Three walks")
    return text[start:text.index("\n## ", start + 1)]


def main():
    with open(os.path.join(ROOT, "docs", "contributing", "architecture.md"), encoding="utf-8") as f:
        text = " ".join(walks(f.read()).split())
    bad, seen = [], 0
    for name, path in re.findall(r"`([A-Za-z_]+)`\s+\(`([\w./-]+)`", text):
        seen += 1
        whole = os.path.join(ROOT, path)
        if not os.path.exists(whole):
            bad.append("%s: no such file" % path)
            continue
        with open(whole, encoding="utf-8") as f:
            words = f.read()
        short = name[len("OOS_OWNER_"):] if name.startswith("OOS_OWNER_") else name
        if not re.search(r"\b%s\b" % re.escape(short), words):
            bad.append("%s is not in %s" % (name, path))
    for path in re.findall(r"`((?:src|shim|data|cli|tests)/[\w./-]+)`", text):
        if not os.path.exists(os.path.join(ROOT, path)):
            bad.append("%s: no such file" % path)
    print("\n".join(bad) if bad else "walks: %d names are where they are said to be" % seen)
    return 1 if bad or seen < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
