#!/usr/bin/env python3
"""Recipes: what a page prints is what plan says of the command on it. Arguments: BINARY"""
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
import recipes  # noqa: E402

BINARY = os.path.abspath(sys.argv.pop(1))
ROW = re.compile(r"\| (?:(\d) x )?([^|]+) \| `([^`|]+)` \| ([\d,]+) \| ([\d,]+) \| `[█▓▒·]{20}` \|")


def printed(folder):
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            for line in f.read().split("\n"):
                if line.startswith("| ") and not line.startswith(("| GPU", "| ---")):
                    yield line


def problem(line):
    """What is wrong with a row, or None."""
    cells = ROW.fullmatch(line)
    if not cells:
        return "not a row: " + line
    count, gpu, command, length, _ = cells.groups()
    done = subprocess.run([BINARY, "plan", "--offline", "--json", "--gpu", "%sx%s" % (gpu, count or 1), "--", *shlex.split(command)], capture_output=True, text=True, check=False)
    plan = json.loads(done.stdout)
    if plan["likely"] != "starts":
        return "does not start: " + line
    return None if min(plan["setup"]["max_model_len"], plan["kv"]["tokens"]) == int(length.replace(",", "")) else "another context: " + line


class Recipes(unittest.TestCase):
    def test_each_command_is_planned_as_its_row_says(self):
        with tempfile.TemporaryDirectory() as folder:
            known = sorted(recipes.families(BINARY))
            self.assertGreaterEqual(len(known), 60)
            self.assertEqual(len(recipes.write(BINARY, folder, set(random.Random(43).sample(known, 2)))), 2)
            lines = list(printed(folder))
        self.assertGreater(len(lines), 10)
        self.assertEqual([problem(line) for line in lines if problem(line)], [])

    def test_a_row_that_is_not_true_is_seen(self):
        row = "| L4 | `vllm serve Qwen/Qwen3-8B%s` | %s | 2 | `" + "█" * 20 + "` |"
        self.assertIn("does not start", problem(row % ("", "40,960")))
        self.assertIn("another context", problem(row % (" --max-model-len 8192", "9,000")))
        self.assertIsNone(problem(row % (" --max-model-len 8192", "8,192")))


if __name__ == "__main__":
    unittest.main()
