#!/usr/bin/env python3
"""tools/constants.py: a constant from few sources without a range, a gap, an overlap or a word that is not understood fails the build."""
import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import constants as tool  # noqa: E402

TOOL = os.path.join(ROOT, "tools", "constants.py")
TABLES = ("data/constants.json", "data/engines/vllm/constants.json", "data/engines/sglang/constants.json")
ROW = {"value": 100, "starts": 4, "sources": 3, "of": "four starts"}
ONE = {"id": "a_term", "meaning": "a term", "unit": "MiB", "rows": [ROW]}


def run(*words):
    done = subprocess.run([sys.executable, TOOL, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    return done.returncode, done.stdout


class Constants(unittest.TestCase):
    def check(self, constants, text=None):
        with tempfile.TemporaryDirectory() as root:
            path = os.path.join(root, "constants.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text if text is not None else json.dumps({"schema": "oomsight.constants/1", "constants": constants}))
            try:
                tool.load(path)
            except tool.Bad as error:
                return 1, str(error)
        return 0, ""

    def refused(self, words, *rows, **other):
        code, out = self.check([dict(ONE, rows=list(rows), **other)])
        self.assertEqual(code, 1, out)
        self.assertIn(words, out)

    def test_the_tables_pass(self):
        self.assertEqual(run("--check", *(os.path.join(ROOT, table) for table in TABLES)), (0, ""))

    def test_three_sources_pass_and_few_with_a_range_do(self):
        few = {"value": 100, "low": 50, "high": 200, "starts": 1, "sources": 1, "of": "one start"}
        for row in (ROW, few, dict(few, starts=5, low=90, high=110), {"value": 9, "by": "counted", "of": "a dry run"}):
            self.assertEqual(self.check([dict(ONE, rows=[row])]), (0, ""))

    def test_few_sources_without_a_range_fail(self):
        for sources in (0, 1, 2):
            self.refused("%d sources and no range" % sources, dict(ROW, sources=sources))
        self.refused("0 sources and no range", {"value": 100, "of": "nothing said"})

    def test_one_or_two_starts_with_a_narrow_range_fail(self):
        for low, high in ((60, 200), (50, 190)):
            self.refused("not from half to twice", dict(ROW, starts=2, sources=2, low=low, high=high))
        self.refused("does not begin at 0", dict(ROW, starts=0, sources=0, low=1, high=200))

    def test_a_planted_row_of_one_source_fails_in_the_true_table(self):
        for table in TABLES:
            with open(os.path.join(ROOT, table), encoding="utf-8") as f:
                whole = json.load(f)
            whole["constants"].append(dict(ONE, rows=[dict(ROW, sources=1)]))
            code, out = self.check([], json.dumps(whole))
            self.assertEqual((code, "a_term: 1 sources and no range" in out), (1, True), out)

    def test_gaps_and_overlaps_fail(self):
        self.refused("no row for capability 90", dict(ROW, capability=[0, 89]))
        self.refused("no row for ranks 3", dict(ROW, ranks=[0, 2]), dict(ROW, ranks=[4, 1 << 20]))
        self.refused("2 rows for torch 8", dict(ROW, torch=[0, 8]), dict(ROW, torch=[8, 999]))
        self.refused("no row for nvlink False", dict(ROW, nvlink=True))
        self.refused("no row for release (0, 19, 0)", dict(ROW, release=["", "0.19.0"]), dict(ROW, release=["0.20.0", ""]))
        self.assertEqual(self.check([dict(ONE, rows=[dict(ROW, release=["0.18.0", "0.19.0"])], domain={"release": ["0.18.0", "0.19.0"]})]), (0, ""))

    def test_what_is_not_understood_fails(self):
        self.refused("is outside", dict(ROW, low=101, high=200))
        for change in ({"value": -1}, {"value": True}, {"value": 1 << 60}, {"high": "much"}):
            self.refused("is not a number", dict(ROW, **change))
        for change in ({"capability": [90, 80]}, {"capability": 90}, {"torch": [0, 1 << 40]}):
            self.refused("is not [first, last]", dict(ROW, **change))
        self.refused("is not [since, before]", dict(ROW, release=["0.18", ""]))
        self.refused("planted is no key", dict(ROW, planted=1))
        self.refused("starts or sources", dict(ROW, sources=9))
        self.refused("needs value and of", {"value": 1})
        self.refused("unit or meaning", ROW, unit="furlong")
        self.refused("needs 1 to", *[dict(ROW, ranks=[i, i]) for i in range(17)])
        for text in ("{", "[]", '{"schema": "oomsight.constants/1"}', '{"schema": 1, "constants": []}', " " * (1 << 19)):
            self.assertEqual(self.check([], text)[0], 1)
        self.assertIn("is there twice", self.check([ONE, copy.deepcopy(ONE)])[1])

    def test_an_id_in_one_place_only_fails(self):
        with tempfile.TemporaryDirectory() as root:
            path, asked, out = (os.path.join(root, name) for name in ("constants.json", "constants.def", "out.c"))
            with open(path, "w", encoding="utf-8") as f:
                json.dump({"schema": "oomsight.constants/1", "constants": [ONE]}, f)
            for text, words in (("CONSTANT(a_term)\n", ""), ("", "not asked for by"), ("CONSTANT(a_term)\nCONSTANT(other)\n", "other is missing")):
                with open(asked, "w", encoding="utf-8") as f:
                    f.write(text)
                code, said = run(out, "table=%s=%s" % (asked, path))
                self.assertEqual(code, 1 if words else 0, said)
                self.assertIn(words, said)


if __name__ == "__main__":
    unittest.main()
