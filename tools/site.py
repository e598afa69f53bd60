#!/usr/bin/env python3
"""The documentation as a site: site.py BINARY OUT [PAGE]

Gathers docs/, the README as the first page, the public headers, one page per model family (recipes.py) and per record of the knowledge base, and runs
mkdocs over them; a link that leads nowhere fails. mkdocs and its theme are taken from the environment of this Python
(pip install mkdocs-material). The site asks nothing of the network."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import recipes

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The tabs, by what a reader comes for: (title, folder of docs/, pages that stand first).
TABS = (("Tutorials", "tutorials", ()), ("Recipes", "recipes", ("index",)), ("How-to", "how-to", ("fix-by-phase", "read-a-log", "check-deployments")),
        ("Reference", "reference", ()), ("Explanation", "explanation", ()), ("Evidence", "evidence", ("accuracy",)),
        ("Contributing", "contributing", ("architecture",)))


def read(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


def write(folder, path, text):
    path = os.path.join(folder, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def first_page(folder):
    """The README: links into docs/ lose the folder, those to other files of the repository are text. The list of pages is one of them."""
    os.rename(os.path.join(folder, "README.md"), os.path.join(folder, "contents.md"))
    text = re.sub(r"\[([^]]*)\]\((?!docs/|https?:|#)[^)]*\)", r"\1", read("README.md"))
    write(folder, "index.md", text.replace("](docs/README.md)", "](contents.md)").replace("](docs/", "]("))


def without_files(folder):
    """Links of the pages to files of the repository that are no pages are text, as in the README."""
    for place, _, names in os.walk(folder):
        for name in (n for n in names if n.endswith(".md")):
            path = os.path.join(place, name)
            outside = lambda target: os.path.relpath(os.path.join(place, target), folder).startswith("..")
            with open(path) as f:
                text = f.read()
            write("", path, re.sub(r"\[([^]]*)\]\((?!https?:|#)([^)]*)\)", lambda m: m.group(1) if outside(m.group(2)) else m.group(0), text))


def change_of(advice):
    words = advice.get("change") or []
    return " ".join("'%s'" % w if re.search(r'[{" ]', w) else w for w in words) or "(nothing to paste)"


def records(folder, binary):
    """One page per record, and their list."""
    listed = json.loads(subprocess.run([binary, "kb", "list", "--json"], capture_output=True, text=True, check=True).stdout)
    index = ["# Knowledge base", "", "What is known of each way to run out of memory.", ""]
    for entry in listed:
        record = json.loads(subprocess.run([binary, "kb", "show", entry["id"], "--json"], capture_output=True, text=True,
                                           check=True).stdout)
        page = entry["id"].replace("/", "-")
        index.append("- [%s](%s.md) `%s`" % (record["title"]["en"], page, entry["id"]))
        versions = record.get("versions") or {}
        lines = ["# " + record["title"]["en"], "", "`%s`" % entry["id"], "", record["mechanism"]["en"], "",
                 "Seen as: `%s`" % record.get("signature", ""), "",
                 "%s, since %s, %s." % (versions.get("engine", ""), versions.get("introduced") or "an unknown release",
                                         "fixed in " + versions["fixed"] if versions.get("fixed") else "not fixed in a release"), ""]
        for title, key in (("What helps", "fixes"), ("What does not", "dead_ends")):
            if record.get(key):
                lines += ["## " + title, ""]
            for advice in record.get(key) or []:
                lines += ["`%s`" % change_of(advice), ": ".join(["", advice["why"]["en"]])[2:] + "."]
                if advice.get("cost"):
                    lines.append("Costs: %s." % advice["cost"]["en"])
                lines += ["(%s)" % advice["evidence"] if advice.get("evidence") else "", ""]
        write(folder, "kb/%s.md" % page, "\n".join(lines) + "\n")
    write(folder, "kb/index.md", "\n".join(index) + "\n")


def headers(folder):
    text = "# The C interface\n\nOne library, `liboomsight`; what is not in these headers is not promised.\n"
    for name in ("oomsight.h", "trace.h"):
        text += "\n## %s\n\n```c\n%s```\n" % (name, read("include/oomsight/" + name))
    write(folder, "reference/c-api.md", text)


def settings(folder, out):
    title = lambda path: re.search(r"^# (.+)$", open(os.path.join(folder, path)).read(), re.M).group(1)

    def under(place, first=()):
        """Pages of a folder, those that stand first first, then its folders, each a section."""
        names = sorted(os.listdir(os.path.join(folder, place)), key=lambda n: ([f + ".md" for f in first] + [n]).index(n))
        paths = ["%s/%s" % (place, name) for name in names]
        pages = [{title(path): path} for path in paths if path.endswith(".md")]
        return pages + [{os.path.basename(path): under(path)} for path in paths if os.path.isdir(os.path.join(folder, path)) and under(path)]

    nav = [{"oomsight": "index.md"}]
    nav += [{name: under(place, first)} for name, place, first in TABS if os.path.isdir(os.path.join(folder, place))]
    nav += [{"Knowledge base": "kb/index.md"}]
    return {"site_name": "oomsight", "docs_dir": folder, "site_dir": out, "nav": nav, "use_directory_urls": False,
            "theme": {"name": "material", "font": False, "features": ["navigation.tabs", "navigation.top", "content.code.copy", "search.suggest"],
                      "palette": [{"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "indigo",
                                   "toggle": {"icon": "material/weather-night", "name": "dark"}},
                                  {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "indigo",
                                   "toggle": {"icon": "material/weather-sunny", "name": "light"}}]},
            "plugins": ["search"], "markdown_extensions": ["tables", "fenced_code", "admonition"],
            "validation": {"omitted_files": "ignore", "links": {"not_found": "warn", "unrecognized_links": "ignore"}}}


def main():
    binary, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    planted = sys.argv[3] if len(sys.argv) > 3 else None  # a page to put in: the test plants a dead link
    with tempfile.TemporaryDirectory() as work:
        folder = os.path.join(work, "docs")
        shutil.copytree(os.path.join(ROOT, "docs"), folder)
        first_page(folder)
        without_files(folder)
        records(folder, binary)
        headers(folder)
        recipes.write(binary, os.path.join(folder, "recipes"))
        if planted:
            shutil.copy(planted, os.path.join(folder, "how-to"))
        config = os.path.join(work, "mkdocs.yml")
        with open(config, "w") as f:
            json.dump(settings(folder, out), f)  # JSON is YAML
        # Without --quiet: it hides the warnings that --strict counts, so that dead links pass.
        done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config], capture_output=True, text=True)
        if done.returncode:
            print(done.stdout + done.stderr)
    if done.returncode == 0:
        pages = sum(name.endswith(".html") for _, _, names in os.walk(out) for name in names)
        print("site: %d pages in %s" % (pages, os.path.relpath(out)))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
