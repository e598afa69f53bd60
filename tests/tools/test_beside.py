#!/usr/bin/env python3
"""A plan next to a dry run counts as measured what the dry run counted."""
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/oracle"))
import beside  # noqa: E402

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


if __name__ == "__main__":
    unittest.main()
