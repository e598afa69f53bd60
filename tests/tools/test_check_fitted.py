#!/usr/bin/env python3
"""tools/check_fitted.py: a constant from one source without a range, or one that a comment alone knows, fails; tests/tools/test_layers.py has what is counted."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "check_fitted.py")
ROW = {"value": 100, "starts": 4, "sources": 3, "of": "four starts"}
FEW = {"value": 100, "low": 50, "high": 200, "starts": 1, "sources": 1, "of": "one start"}


class Fitted(unittest.TestCase):
    def check(self, *rows, code="", fitted="a_term"):
        constants = [{"id": "a_term" if i == 0 else "term_%d" % i, "meaning": "a term", "unit": "MiB", "rows": [row]} for i, row in enumerate(rows)]
        tables = {"schema": "oomsight.constants/1", "constants": []}
        with tempfile.TemporaryDirectory() as root:
            for path, text in (("data/constants.json", json.dumps(dict(tables, constants=constants))), ("data/engines/vllm/constants.json", json.dumps(tables)),
                               ("data/engines/sglang/constants.json", json.dumps(tables)), ("src/engines/b.c", code),
                               ("tools/fitted.json", json.dumps([{"name": "a term", "constant": fitted}]))):
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            done = subprocess.run([sys.executable, TOOL, root], stdout=subprocess.PIPE, universal_newlines=True, check=False)
        return done.returncode, done.stdout

    def test_one_source_without_a_range_fails(self):
        code, out = self.check(dict(ROW, sources=1))
        self.assertEqual(code, 1)
        self.assertIn("a_term: 1 sources and no range", out)

    def test_constants_of_few_sources_are_counted(self):
        code, out = self.check(ROW, FEW)
        self.assertEqual(code, 0)
        self.assertIn("2 rows, 1 of them with fewer than three sources", out)

    def test_a_fit_of_no_table_fails(self):
        self.assertIn("no table has nobody", self.check(ROW, fitted="nobody")[1])

    def test_a_constant_that_nobody_listed_fails(self):
        for words in ("from one start of\n * 0.20.2", "8 was chosen, not measured", "two starts, one source"):
            code, out = self.check(ROW, code="/* %s */\n" % words)
            self.assertEqual(code, 1, words)
            self.assertIn("src/engines/b.c:1", out)


if __name__ == "__main__":
    unittest.main()
