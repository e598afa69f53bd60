#!/usr/bin/env python3
"""tools/mutants.py: a mutant that no test notices fails, one that no longer fits fails, and the list has enough of them."""
import os
import pathlib
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import mutants  # noqa: E402

LIST = """## src/a.c
~ one
# a limit is shifted
- limit = 5
+ limit = 6
# the second term is lost
~ two, three
! nobody reads it
- + term
+
"""


class Tree:
    """A copy whose only test, `one`, notices a limit that is not 5."""

    def __init__(self, root, text):
        self.root, self.tests = pathlib.Path(root), {"one": None, "blind": None}
        (self.root / "src").mkdir()
        (self.root / "src/a.c").write_text(text)

    def compile(self, _):
        return ("!" in (self.root / "src/a.c").read_text()), "error: no such thing"

    def fails(self, test):
        return test == "one" and "limit = 5" not in (self.root / "src/a.c").read_text()


class Mutants(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.held.name) / "mutants.txt"
        self.path.write_text(LIST)

    def tearDown(self):
        self.held.cleanup()

    def judged(self, text, tests, old="limit = 5", new="limit = 6"):
        with tempfile.TemporaryDirectory() as folder:
            tree = Tree(folder, text)
            found = mutants.judge(tree, mutants.Mutant("a", "src/a.c", old, new, tests, None, 0), tests)
            self.assertEqual((tree.root / "src/a.c").read_text(), text)
        return found

    def test_a_mutant_that_is_noticed_and_one_that_survives(self):
        self.assertEqual(self.judged("limit = 5\n", ["blind", "one"]), "one")
        self.assertIsNone(self.judged("limit = 5\n", ["blind"]))

    def test_a_test_is_ended_by_its_processor_time(self):
        seen = "import resource, sys; sys.exit(resource.getrlimit(resource.RLIMIT_CPU)[0] != %d)"
        for limit, given in ((5, 60), (90, 90), (900, 300)):
            test = {"cmd": [sys.executable, "-c", seen % given], "workdir": None, "env": {}, "timeout": limit}
            self.assertFalse(mutants.Tree.fails(types.SimpleNamespace(tests={"one": (test, [])}, build=self.held.name), "one"))

    def test_a_mutant_that_no_longer_fits_or_does_not_build_is_told(self):
        self.assertEqual(self.judged("limit = 7\n", ["one"]), ("stale", "0 lines have it"))
        self.assertEqual(self.judged("limit = 5\nlimit = 5\n", ["one"]), ("stale", "2 lines have it"))
        self.assertEqual(self.judged("limit = 5\n", ["one"], new="!")[0], "build")
        self.assertEqual(self.judged("limit = 5\n", ["gone"])[0], "unknown")

    def test_the_form_of_the_list(self):
        first, second = mutants.read_list(self.path)
        self.assertEqual((first.file, first.old, first.new, first.tests, first.survives), ("src/a.c", "limit = 5", "limit = 6", ["one"], None))
        self.assertEqual((second.tests, second.survives, second.new), (["two", "three"], "nobody reads it", ""))
        self.path.write_text("## src/a.c\n+ without a line\n")
        self.assertRaises(SystemExit, mutants.read_list, self.path)

    def test_a_tenth_is_random_and_repeatable(self):
        everything = list(range(105))
        self.assertEqual(len(mutants.chosen(everything, 0.1, 1)), 11)
        self.assertEqual(mutants.chosen(everything, 0.1, 1), mutants.chosen(everything, 0.1, 1))
        self.assertNotEqual(mutants.chosen(everything, 0.1, 1), mutants.chosen(everything, 0.1, 2))
        os.environ["MUTANTS"] = "all"
        try:
            self.assertEqual(mutants.chosen(everything, 0.1, 1), everything)
        finally:
            del os.environ["MUTANTS"]

    def test_there_are_enough_of_them(self):
        listed = mutants.read_list(mutants.LIST)
        self.assertGreaterEqual(len(listed), 100)
        self.assertGreaterEqual(sum(m.name.startswith("fitted: ") for m in listed), 15)
        self.assertGreaterEqual(sum(m.file.endswith("rules.json") for m in listed), 5)
        self.assertLessEqual(sum(m.survives is not None for m in listed), len(listed) // 20)
        self.assertEqual([m.name for m in listed if not m.tests], [])
        self.assertEqual([m.name for m in listed if mutants.stale(ROOT, m) is not None], [])


if __name__ == "__main__":
    unittest.main()
