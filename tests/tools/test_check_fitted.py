#!/usr/bin/env python3
"""tools/check_fitted.py: a constant from one start that is no range, or that nobody listed, fails."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "check_fitted.py")
ONE = {"name": "a term", "in": "src/plan/a.c term", "sources": 3, "range": False}


class Fitted(unittest.TestCase):
    def check(self, constants, code="static int term(void)\n{\n    return 5;\n}\n", other=""):
        with tempfile.TemporaryDirectory() as root:
            for path, text in (("tools/fitted.json", json.dumps(constants)), ("src/plan/a.c", code), ("src/plan/b.c", other),
                               ("tools/ratchets.json", '{"fitted constants with few sources": 1}')):
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            done = subprocess.run([sys.executable, TOOL, root], stdout=subprocess.PIPE, universal_newlines=True, check=False)
        return done.returncode, done.stdout

    def test_three_sources_pass_and_a_range_of_fewer_does(self):
        self.assertEqual(self.check([ONE])[0], 0)
        self.assertEqual(self.check([dict(ONE, sources=1, range=True)])[0], 0)

    def test_one_source_without_a_range_fails(self):
        code, out = self.check([dict(ONE, sources=1)])
        self.assertEqual(code, 1)
        self.assertIn("few sources and no range: 1, at most 0", out)

    def test_more_constants_of_few_sources_fail(self):
        self.assertEqual(self.check([dict(ONE, sources=1, range=True)] * 2)[0], 1)

    def test_an_entry_that_names_nothing_fails(self):
        for change, words in (({"in": "src/plan/c.c term"}, "no file"), ({"in": "src/plan/a.c other"}, "has no other"), ({"sources": None}, "neither")):
            code, out = self.check([dict(ONE, **change)])
            self.assertEqual(code, 1)
            self.assertIn(words, out)

    def test_a_constant_that_nobody_listed_fails(self):
        for words in ("from one start of\n * 0.20.2", "8 was chosen, not measured", "two starts, one source"):
            code, out = self.check([ONE], other="/* %s */\n" % words)
            self.assertEqual(code, 1, words)
            self.assertIn("src/plan/b.c:1", out)


if __name__ == "__main__":
    unittest.main()
