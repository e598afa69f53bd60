#!/usr/bin/env python3
"""tools/check_defects.py: a row that names no test fails, and so does a defect without a row."""
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "check_defects.py")
A_TEST = "static void a_case(void **state)\n{\n    assert_null(*state);\n}\nint main(void)\n{\n    x(cmocka_unit_test(a_case));\n}\n"
GOOD = "P1\ttests/unit/test_a.c:a_case\tshows that it holds\n"


class Defects(unittest.TestCase):
    def check(self, rows, *options):
        with tempfile.TemporaryDirectory() as root:
            for path, text in (("tests/defects/ids.txt", "P1\nP2\n"), ("tests/defects/one.tsv", rows), ("tests/unit/test_a.c", A_TEST), ("tests/cli/a.sh", "$OOMSIGHT plan\n"), ("tests/cli/a.stdout", "x\n")):
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            done = subprocess.run([sys.executable, TOOL, root, *options], stdout=subprocess.PIPE, universal_newlines=True, check=False)
        return done.returncode, done.stdout

    def test_a_whole_table_passes(self):
        self.assertEqual(self.check(GOOD + "P2\ttests/cli/a.sh\tthe whole file shows it\n", "--strict")[0], 0)

    def test_a_missing_id_fails_only_when_strict(self):
        self.assertEqual(self.check(GOOD, "--strict")[0], 1)
        code, out = self.check(GOOD)
        self.assertEqual(code, 0)
        self.assertIn("1 of 2 defects have no test: P2", out)

    def test_what_names_no_test_fails(self):
        for row, words in (("P2\ttests/unit/test_b.c\tit is not there\n", "no file"),
                           ("P2\ttests/unit/test_a.c:another_case\tit is not there\n", "has no another_case"),
                           ("P2\ttests/unit/test_a.c:a_cas\ta part of a name\n", "has no a_cas"),
                           ("P2\tsrc/engines/vllm/plan.c\ta file that tests nothing\n", "is no test"),
                           ("P2\ttests/unit/../../tools/x\ta path that leaves\n", "is no test"),
                           ("P2\ttests/unit/test_a.c\tthe whole file shows it\n", "which of its cases"),
                           ("P2\ttests/unit/test_a.c\t\n", "no sentence"),
                           ("P2\t-\tit was never a defect\n", "without a measurement"),
                           ("P9\ttests/unit/test_a.c\tan id nobody knows\n", "no defect P9"),
                           ("P2 tests/unit/test_a.c spaces\n", "1 fields")):
            code, out = self.check(GOOD + row)
            self.assertEqual(code, 1, row)
            self.assertIn(words, out)


if __name__ == "__main__":
    unittest.main()
