#!/usr/bin/env python3
"""tools/same.py: equal programs pass; another number, another exit code and another object each fail, and the field that differs is told."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "same.py")
ANSWER = '#!/bin/sh\necho "{\\"weights\\": {\\"bytes\\": %d}, \\"words\\": \\"$#\\"}"\nexit %d\n'


class Same(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.root = self.held.name

    def tearDown(self):
        self.held.cleanup()

    def program(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def same(self, *words):
        done = subprocess.run([sys.executable, TOOL, *words], stdout=subprocess.PIPE, universal_newlines=True, check=False)
        return done.returncode, done.stdout

    def test_answers(self):
        one, again = self.program("one", ANSWER % (100, 0)), self.program("again", ANSWER % (100, 0))
        for words in ([], ["--engine", "sglang"], ["--refusals"]):
            code, out = self.same(one, again, "--count", "10", *words)
            self.assertEqual(code, 0, out)
            self.assertIn("11 of 11 plan", out)
        code, out = self.same(one, self.program("more", ANSWER % (107, 0)), "--count", "10")
        self.assertEqual(code, 1)
        self.assertIn("field: /weights/bytes in ", out)
        self.assertIn("by at most 7 (100 -> 107)", out)
        self.assertIn("0 of 11 plan", out)
        code, out = self.same(one, self.program("fails", ANSWER % (100, 1)), "--count", "10")
        self.assertEqual(code, 1)
        self.assertIn("(exit 0, 1)", out)

    @unittest.skipUnless(shutil.which("cc") and shutil.which("objcopy"), "no compiler")
    def test_objects(self):
        for build, text in (("a", "int f(int x) { return x + 1; }\n"), ("b", "int g(int y)\n{\n    return y + 1;\n}\n"), ("c", "int f(int x) { return x + 2; }\n")):
            source = self.program(build + "/f.c", text)
            out = os.path.join(self.root, build, "src", "lib.p")
            os.makedirs(out)
            subprocess.run(["cc", "-O1", "-c", "-o", os.path.join(out, "f.o"), source], check=True)
        self.assertEqual(self.same("--objects", os.path.join(self.root, "a"), os.path.join(self.root, "b")), (0, "same: 1 of 1 objects\n"))
        self.assertEqual(self.same("--objects", os.path.join(self.root, "a"), os.path.join(self.root, "c")), (1, "differs: f.o\nsame: 0 of 1 objects\n"))
        self.assertEqual(self.same("--objects", self.root, self.root)[0], 1)


if __name__ == "__main__":
    unittest.main()
