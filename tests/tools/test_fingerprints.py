#!/usr/bin/env python3
"""Slices of an engine's source (shim/python/oomsight_slices.py): what is left out of them, what a change of each kind is told as, and what hostile files do;
and the table of them, held against the rules (tools/fingerprints.py)."""
import contextlib
import json
import os
import shutil
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import fingerprints  # noqa: E402
import oomsight_slices as slicing  # noqa: E402

SOURCE = '''
"""A module."""
import logging
from vllm import current_platform
LIMITS = {"small": 1, "large": 2}
class Worker:
    size: int = 4
    def run(self, tokens, rows=2):
        """What it does."""
        if current_platform.is_rocm():
            return 7
        logger.info("starting with %d tokens", tokens)
        wide = tokens * rows
        if wide > self.size:
            raise ValueError(f"too wide: {wide}")
        buffer = torch.empty(wide, dtype=torch.int8)
        other = 5
        return buffer
'''
UNITS = {"buffer": ("worker.py:Worker.run", "torch.empty"), "table": ("worker.py:LIMITS", "large"), "whole": ("worker.py:Worker.run", "")}


class Slices(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = held.name

    def package(self, source=SOURCE, name="worker.py", **more):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(source)
        return slicing.Package(self.folder, **more)

    def rules(self):
        return {name: {"units": [unit], "anchor": anchor} for name, (unit, anchor) in UNITS.items()}

    def told(self, old, new, **more):
        """{rule: what changed} between two sources."""
        marks = {name: {unit: [slicing.mark(text) for text in texts] for unit, texts in units.items()} for name, units in slicing.slices(self.package(old), self.rules()).items()}
        return {row["rule"]: row for row in slicing.compared(self.package(new, **more), self.rules(), marks)["doubt"]}

    def test_a_slice_is_the_anchor_what_defines_its_names_and_conditions(self):
        self.assertEqual(self.package().texts(*UNITS["buffer"]), ["buffer = torch.empty(wide, dtype=torch.int8)", "def run(rows=2)", "wide = (tokens * rows)"])
        self.assertEqual(self.package().texts(*UNITS["table"]), ["LIMITS['large'] = 2"])

    def test_what_decides_nothing_is_left_out(self):
        for old, new in (('"""What it does."""', '"""Another."""'), ("starting with", "beginning with"), ("too wide", "far too wide"), ("return 7", "return 8"),
                         ("tokens, rows", "tokens: int, rows"), ("import logging", "import os"), ('raise ValueError(f"too', 'raise ValueError("so" f"too')):
            self.assertIn(old, SOURCE)
            self.assertEqual(self.told(SOURCE, SOURCE.replace(old, new)), {}, old)

    def test_a_change_is_told_with_what_was_added(self):
        told = self.told(SOURCE, SOURCE.replace("torch.int8", "torch.int32"))
        self.assertEqual(sorted(told), ["buffer", "whole"])
        self.assertEqual((told["buffer"]["added"], told["buffer"]["removed"]), (["buffer = torch.empty(wide, dtype=torch.int32)"], 1))
        self.assertEqual(sorted(self.told(SOURCE, SOURCE.replace("tokens * rows", "tokens + rows"))), ["buffer", "whole"])
        self.assertEqual(sorted(self.told(SOURCE, SOURCE.replace("other = 5", "other = 6"))), ["whole"])
        self.assertEqual(sorted(self.told(SOURCE, SOURCE.replace('"small": 1', '"small": 3'))), [])

    def test_a_unit_that_moved_is_found(self):
        with open(os.path.join(self.folder, "elsewhere.py"), "w", encoding="utf-8") as file:
            file.write(SOURCE)
        told = self.told(SOURCE, "other = 1\n")
        self.assertEqual(told, {})
        os.remove(os.path.join(self.folder, "elsewhere.py"))
        self.assertTrue(self.told(SOURCE, "other = 1\n")["buffer"]["gone"])

    def test_hostile_files(self):
        deep = "x = " + "(" * 5000 + ")" * 5000
        for source in ("def (", "\0", deep, "x = " + "-" * 100000 + "1", "#" * (slicing.FILE_BYTES + 1), "x = 1\n" * 20000, "class Worker:\n" + "    def run(self): pass\n" * 3000,
                       "def run(): return '\ud800'".encode("utf-8", "replace").decode()):
            told = self.told(SOURCE, source)
            self.assertLessEqual(len(json.dumps(told)), 20000)
        package = self.package(deep)
        self.assertIsNone(package.texts("worker.py:Worker.run", ""))
        self.assertEqual(sorted(package.left_out), ["worker.py"])
        self.assertIsNone(self.package().texts("../worker.py:Worker.run", ""))
        os.remove(os.path.join(self.folder, "worker.py"))
        os.mkfifo(os.path.join(self.folder, "worker.py"))
        self.assertIsNone(slicing.Package(self.folder).texts("worker.py:Worker.run", ""))

    def test_time_is_bounded(self):
        self.assertIsNone(self.package(seconds=-1).texts(*UNITS["buffer"]))

    def test_what_is_shown_is_plain(self):
        told = self.told(SOURCE, SOURCE.replace("other = 5", "other = '\\x1b[2J\u202e" + "x" * 500 + "'"))
        self.assertTrue(all(" " <= letter <= "~" for letter in told["whole"]["added"][0]))
        self.assertLessEqual(len(told["whole"]["added"][0]), slicing.SHOWN)

    def test_census(self):
        units = [unit for unit, _ in UNITS.values()]
        before = slicing.census_marks(self.package(), units)
        more = SOURCE.replace("other = 5", "other = helper(5)") + "\ndef helper(x):\n    return x\nclass Second(Worker):\n    def run(self):\n        pass\n"
        self.assertEqual(slicing.census_new(self.package(), units, before), {"callees": [], "classes": [], "overrides": []})
        self.assertEqual(slicing.census_new(self.package(more), units, before), {"callees": ["helper"], "classes": ["Second"], "overrides": ["Second.run"]})


class Table(unittest.TestCase):
    def problems(self, change):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("rules", "fingerprints"):
                shutil.copy(os.path.join(fingerprints.DATA, name + ".json"), folder)
            for name, edit in change.items():
                path = os.path.join(folder, name + ".json")
                with open(path, encoding="utf-8") as file:
                    value = json.load(file)
                edit(value)
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(value, file)
            return list(fingerprints.problems(folder))

    def rule(self, rows, name):
        return next(row for row in rows if row.get("rule") == name)

    def test_the_table_is_that_of_the_rules(self):
        self.assertEqual(self.problems({}), [])

    def test_planted_faults_are_told(self):
        for plant, words in ((lambda rows: self.rule(rows, "sampler").update(anchor="logits"), "not those that were read"),
                             (lambda rows: self.rule(rows, "sampler").update(units=[]), "no units, and no reason"),
                             (lambda rows: self.rule(rows, "sampler").pop("units"), "no units, and no reason"),
                             (lambda rows: rows[0]["versions"].append("0.34.0"), "the newest release is 0.34.0"),
                             (lambda rows: self.rule(rows, "breakable_graphs")["steps"].insert(3, {"since": "0.32.0", "value": 3}), "a step at 0.32.0")):
            self.assertIn(words, "\n".join(self.problems({"rules": plant})))
        self.assertIn("has no fingerprint", "\n".join(self.problems({"fingerprints": lambda table: table["statements"].update(sampler=[""])})))

    def test_the_source_itself(self):
        """Where DIR/RELEASE/vllm is there (the nightly fetches it): each unit exists, each anchor hits."""
        folder = os.environ.get("OOMSIGHT_SOURCES")
        if not folder:
            raise unittest.SkipTest("OOMSIGHT_SOURCES names no folder of sources")
        self.assertEqual(list(fingerprints.sourced(folder)), [])


if __name__ == "__main__":
    with contextlib.suppress(KeyError):
        os.environ.pop("PYTHONOPTIMIZE")
    unittest.main()
