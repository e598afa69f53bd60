#!/usr/bin/env python3
"""The reports of tests/evidence are what the recipes give: a changed, an additional or a missing file is named."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

EVIDENCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "evidence")


def labels():
    with open(os.path.join(EVIDENCE, "reports", "labels.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Check(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.copy = shutil.copytree(EVIDENCE, os.path.join(self.folder.name, "evidence"))

    def tearDown(self):
        self.folder.cleanup()

    def check(self, named=None):
        done = subprocess.run([sys.executable, os.path.join(self.copy, "render.py"), "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1 if named else 0, done.stdout + done.stderr)
        if named:
            self.assertIn(named + ": not what the recipes give", done.stdout)

    def test_the_committed_reports_pass(self):
        self.check()

    def test_a_changed_report_is_named(self):
        with open(os.path.join(self.copy, "reports", "wake-1.log"), "a", encoding="utf-8") as file:
            file.write("one more line\n")
        self.check("wake-1.log")

    def test_a_changed_label_is_named(self):
        path = os.path.join(self.copy, "reports", "labels.jsonl")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace('"phase": "kv_sizing"', '"phase": "kv_alloc"', 1))
        self.check("labels.jsonl")

    def test_a_report_without_a_recipe_is_named(self):
        shutil.copy(os.path.join(self.copy, "reports", "wake-1.log"), os.path.join(self.copy, "reports", "wake-9.log"))
        self.check("wake-9.log")

    def test_a_report_that_is_missing_is_named(self):
        os.remove(os.path.join(self.copy, "reports", "wake-1.log"))
        self.check("wake-1.log")


class Spread(unittest.TestCase):
    def test_every_sample_has_a_recipe(self):
        recipes = {label["recipe"] for label in labels()}
        with open(os.path.join(EVIDENCE, "mechanisms.tsv"), encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file][1:]
        self.assertEqual(collections.Counter(row[0] for row in rows), {"dev": 151, "second": 102, "third": 226})
        self.assertEqual(len({row[1] for row in rows}), len(rows))
        self.assertEqual({row[2] for row in rows} - recipes, set())

    def test_there_are_enough_of_each_kind(self):
        kinds = collections.Counter(label["evidence"] for label in labels())
        self.assertGreaterEqual(sum(kinds.values()), 250)
        self.assertGreaterEqual(kinds["none"], 60)
        self.assertGreaterEqual(kinds["frames_only"], 60)

    def test_figures_of_the_allocator_add_up(self):
        """What is free, in use and held by others is the card; what PyTorch holds is in use."""
        seen = 0
        for label in labels():
            of = label["numbers"]
            if {"gpu_total_mib", "free_mib", "in_use_mib", "torch_allocated_mib", "reserved_unallocated_mib"} <= set(of):
                seen += 1
                self.assertAlmostEqual(of["gpu_total_mib"], of["free_mib"] + of["in_use_mib"] + of.get("other_processes_mib", 0), delta=64, msg=label["id"])
                self.assertLessEqual(of["torch_allocated_mib"] + of["reserved_unallocated_mib"], of["in_use_mib"] + 16, label["id"])
                self.assertLessEqual(of.get("private_pools_mib", 0), of["torch_allocated_mib"], label["id"])
        self.assertGreater(seen, 60)

    def test_what_was_asked_for_is_not_free(self):
        for label in labels():
            of = label["numbers"]
            if {"tried_mib", "free_mib"} <= set(of) and label["confidence"] != "low" and "unified" not in label["recipe"]:
                self.assertGreater(of["tried_mib"], of["free_mib"], label["id"])

    def test_every_line_of_a_figure_is_in_its_report(self):
        """A figure of a label can be read in its report, in the unit that is printed there."""
        for label in labels():
            with open(os.path.join(EVIDENCE, "reports", label["id"] + ".log"), encoding="utf-8", newline="") as file:
                text = re.sub(r"\s", "", file.read())
            for name in ("tried_mib", "gpu_total_mib"):
                value = label["numbers"].get(name)
                if value is not None and "words" not in label["format"] and "wrap" not in label["format"]:
                    forms = {f"{value:.2f}", f"{value / 1024:.2f}", f"{value / 1024:g}", f"{value * 1024:.2f}", f"{round(value * 1048576)}", f"{round(value / 1024, 2)}"}
                    near = [form for form in forms if form in text] or [n for n in re.findall(r"\d{6,}", text) if abs(int(n) / 1048576 - value) < 0.01]
                    self.assertTrue(near, f"{label['id']}: {name} {value}")


if __name__ == "__main__":
    unittest.main()
