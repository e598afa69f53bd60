#!/usr/bin/env python3
"""tools/rule_table.py: what a source shows becomes a row, a rule that differs from it is told, and no more rules may be unverified."""
import json
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import rule_table  # noqa: E402


class Tables(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.root, self.was = self.held.name, rule_table.ROOT
        rule_table.ROOT = self.root
        self.put("data/engines/vllm/rules.json", json.dumps([{"versions": ["0.1.0", "0.2.0", "0.3.0"]},
                 {"rule": "seen", "meaning": "", "steps": [{"since": "0.1.0", "value": 1}, {"since": "0.3.0", "value": 2}]},
                 {"rule": "unseen", "meaning": "", "steps": [{"since": "0.1.0", "value": True}]}]))
        self.put("tests/rules/vllm.probes.tsv", "seen\t$1\tconfig.py\tlimit = (\\d+)\nseen\t1\telse\n")
        for version, text in (("0.1.0", ""), ("0.2.0", "class Config:\n    limit = 1\n"), ("0.3.0", "class Config:\n    limit = 2\n")):
            self.put("sources/%s/vllm/config.py" % version, text)

    def tearDown(self):
        rule_table.ROOT = self.was
        self.held.cleanup()

    def put(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def table(self):
        return rule_table.table("vllm", os.path.join(self.root, "sources"))

    def test_a_source_becomes_a_row_with_its_place(self):
        rows, differ = self.table()
        self.assertEqual(differ, [])
        self.assertEqual(rows, [["seen", "0.1.0", "0.2.0", "1", "nowhere: config.py"], ["seen", "0.3.0", "0.3.0", "2", "config.py Config"],
                                ["unseen", "0.1.0", "0.3.0", "1", "unverified"]])

    def test_a_release_without_its_source_keeps_what_was_seen_of_it(self):
        self.put("tests/rules/vllm.tsv", "seen\t0.1.0\t0.1.0\t1000001\tconfig.py Old\n")
        os.remove(os.path.join(self.root, "sources/0.1.0/vllm/config.py"))
        os.rmdir(os.path.join(self.root, "sources/0.1.0/vllm"))
        rows, differ = rule_table.table("vllm", os.path.join(self.root, "sources"))
        self.assertEqual([row for row in rows if row[0] == "seen"][0][3:], ["1000001", "config.py Old"])
        self.assertIn(("seen", "0.1.0"), [row[:2] for row in differ])  # and is held against the rules

    def test_an_edge_that_the_source_does_not_have_is_told(self):
        self.put("sources/0.2.0/vllm/config.py", "limit = 2\n")
        rows, differ = self.table()
        self.assertEqual([(d[0], d[1], d[2], d[3][0]) for d in differ], [("seen", "0.2.0", "1", "2")])
        self.assertEqual(rows[1][:4], ["seen", "0.2.0", "0.3.0", "2"])

    def test_a_row_without_its_source_fails(self):
        self.put("tests/rules/vllm.tsv", "a\t0.1.0\t0.3.0\t1\tunverified\nb\t0.1.0\t0.3.0\t1\tconfig.py\n")
        self.put("tests/rules/sglang.tsv", "")
        self.assertEqual(list(rule_table.check(self.root)), [])
        self.assertEqual(rule_table.unverified(self.root, "vllm")[0], {"a"})
        self.put("tests/rules/vllm.tsv", "b\t0.1.0\t0.3.0\t1\t\n")
        self.assertIn("five columns", list(rule_table.check(self.root))[0])


if __name__ == "__main__":
    unittest.main()
