#!/usr/bin/env python3
"""docs/evidence/plan-vs-dryrun.md counts as measured what a dry start counted, and is what its records say."""
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/oracle"))
import beside  # noqa: E402
import engines  # noqa: E402

ROW = "weight_load", "weights"


def line(plan, dry):
    """The sentence above the table, for rows phase, owner, bytes, low, high."""
    lines, _ = beside.table({"version": "1", "date": "today", "phases": ["weight_load"], "owners": [], "plan": plan, "dryrun": dry})
    return lines[2]


class Beside(unittest.TestCase):
    def test_a_row_of_the_device_model_on_both_sides_is_not_measured(self):
        self.assertIn("0 rows measured: 0 of them rows of plan, 0 of these inside its range. 1 more", line([[*ROW, 5, 3, 8]], [[*ROW, 5, 2, 9]]))

    def test_a_counted_row_is_measured(self):
        self.assertIn("1 rows measured: 1 of them rows of plan, 1 of these inside", line([[*ROW, 5, 3, 8]], [[*ROW, 6, 6, 6]]))
        self.assertIn("1 rows measured: 1 of them rows of plan, 0 of these inside", line([[*ROW, 5, 3, 8]], [[*ROW, 9, 9, 9]]))
        self.assertIn("1 rows measured: 0 of them rows of plan", line([], [[*ROW, 9, 9, 9]]))

    def test_the_document_says_what_the_records_say(self):
        records = engines.read_results(os.path.join(ROOT, "tests/oracle/beside.jsonl"), beside.key)
        with open(os.path.join(ROOT, "docs/evidence/plan-vs-dryrun.md"), encoding="utf-8") as f:
            said = re.findall(r"^\S+, \d+ rows measured.*$", f.read(), re.M)
        self.assertEqual(sorted(said), sorted(beside.table(r)[0][2] for r in records.values()))


if __name__ == "__main__":
    unittest.main()
