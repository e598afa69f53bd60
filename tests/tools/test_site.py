#!/usr/bin/env python3
"""site.py fails when a page has a link that leads nowhere. mkdocs is played by a module that does as mkdocs does: with --strict it counts warnings, and --quiet
hides them from the count."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MKDOCS = """import json, os, re, sys
config = json.load(open(sys.argv[sys.argv.index("-f") + 1]))
dead = []
for page in ("how-to/planted.md",):
    path = os.path.join(config["docs_dir"], page)
    for link in re.findall(r"\\]\\(([^)]+)\\)", open(path).read()) if os.path.exists(path) else []:
        if not os.path.exists(os.path.join(os.path.dirname(path), link)):
            dead.append(link)
print("WARNING", dead)
sys.exit(1 if dead and "--strict" in sys.argv and "--quiet" not in sys.argv else 0)
"""


class Site(unittest.TestCase):
    def build(self, link):
        with tempfile.TemporaryDirectory() as work:
            os.makedirs(os.path.join(work, "mkdocs"))
            for name, text in (("mkdocs/__init__.py", ""), ("mkdocs/__main__.py", MKDOCS), ("planted.md", "# Planted\n\n[here](%s)\n" % link),
                               ("oomsight", "#!/bin/sh\n[ $1 = models ] && echo '{\"models\": []}' || echo '[]'\n")):
                with open(os.path.join(work, name), "w") as f:
                    f.write(text)
            os.chmod(os.path.join(work, "oomsight"), 0o755)
            return subprocess.run([sys.executable, os.path.join(ROOT, "tools", "site.py"), os.path.join(work, "oomsight"), os.path.join(work, "out"),
                                   os.path.join(work, "planted.md")], env=dict(os.environ, PYTHONPATH=work), capture_output=True, text=True).returncode

    def test_a_dead_link_fails(self):
        self.assertNotEqual(self.build("nowhere.md"), 0)

    def test_a_live_link_passes(self):
        self.assertEqual(self.build("check-deployments.md"), 0)


if __name__ == "__main__":
    unittest.main()
