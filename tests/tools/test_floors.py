#!/usr/bin/env python3
"""A score below its committed floor fails, whatever the scorer itself says of its goals."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "check_floors.py")
SCORER = """import json, sys
figures = json.load(open(sys.argv[2]))
print(json.dumps(figures) if "--json" in sys.argv else "figures: " + json.dumps(figures))
sys.exit({exit})
"""


class Floors(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.scorer, self.data, self.floors = (os.path.join(self.folder.name, name) for name in ("scorer.py", "data", "floors.json"))

    def tearDown(self):
        self.folder.cleanup()

    def check(self, floors, figures, *options, exit_code=0):
        for path, text in ((self.scorer, SCORER.format(exit=exit_code)), (self.data, json.dumps(figures)), (self.floors, json.dumps({f"{self.scorer} data": floors}))):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        words = [sys.executable, TOOL, "binary", self.scorer, self.data, "--floors", self.floors, *options]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    def test_a_goal_that_is_not_met_passes_while_nothing_fell(self):
        self.assertEqual(self.check({"right.within_0.01": 3}, {"right": {"within_0.01": 3}}, exit_code=1).returncode, 0)

    def test_a_figure_below_its_floor_fails_and_is_named(self):
        done = self.check({"right.within_0.01": 3}, {"right": {"within_0.01": 2}})
        self.assertEqual(done.returncode, 1)
        self.assertIn("right.within_0.01: 2, floor 3", done.stdout)

    def test_a_figure_above_its_ceiling_fails(self):
        self.assertEqual(self.check({"misses": {"at_most": 0}}, {"misses": 1}).returncode, 1)

    def test_a_figure_that_went_away_fails(self):
        self.assertEqual(self.check({"right": 3}, {}).returncode, 1)

    def test_a_scorer_that_cannot_run_fails(self):
        self.assertEqual(self.check({"right": 3}, {"right": 3}, exit_code=2).returncode, 1)

    def test_without_the_data_it_is_skipped(self):
        done = subprocess.run([sys.executable, TOOL, "binary", self.scorer, self.data + ".none"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 77)

    def test_raise_takes_what_is_better_and_keeps_the_rest(self):
        self.check({"up": 3, "same": 4, "misses": {"at_most": 2}}, {"up": 5, "same": 4, "misses": 1}, "--raise")
        with open(self.floors, encoding="utf-8") as file:
            self.assertEqual(json.load(file)[f"{self.scorer} data"], {"up": 5, "same": 4, "misses": {"at_most": 1}})

    def test_raise_lowers_nothing(self):
        self.check({"up": 3}, {"up": 2}, "--raise")
        with open(self.floors, encoding="utf-8") as file:
            self.assertEqual(json.load(file)[f"{self.scorer} data"], {"up": 3})


if __name__ == "__main__":
    unittest.main()
