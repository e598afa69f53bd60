#!/usr/bin/env python3
"""Every rule that tests/explain counts as borne out elsewhere is one that explain has: an id that is gone counts for nothing, and nobody would notice."""
import glob
import json
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return json.load(f)


def ids(root, *lists):
    return {row["id"] for name in lists or root for row in root.get(name, []) if isinstance(row, dict) and "id" in row}


def known():
    """{what: ids that an answer may name}"""
    signals = ids(read("data", "explain", "signals.json"), "signals") | ids(read("data", "explain", "programs.json"), "signals") | ids(read("data", "explain", "templates.json"), "signals")
    for path in glob.glob(os.path.join(ROOT, "data", "engines", "*", "signals.json")):
        signals |= ids(read(path), "signals")
    with open(os.path.join(ROOT, "src", "ledger", "phase.def"), encoding="utf-8") as f:
        phases = re.findall(r'^PHASE\(\w+, "(\w+)"', f.read(), re.M)
    stages, causes = read("data", "explain", "phases.json"), read("data", "explain", "causes.json")
    return {"is_oom": signals | {"fact.kv_negative", "suspected"},
            "phase": ids(stages, "rules", "usual") | {"usual"} | {basis + ":" + phase for basis in ("says", "stack") for phase in phases},
            "cause": ids(causes, "sentences", "frames", "rules", "stages") | signals}


def gone(counted, there):
    return sorted("%s: %s" % (what, rule) for what, rules in counted.items() for rule in rules if rule not in there.get(what, ()))


class RuleIds(unittest.TestCase):
    def test_each_id_is_a_rule(self):
        for name in ("oracle_rules.json", "public_rules.json"):
            counted = read("tests", "explain", name)
            self.assertTrue(sum(map(len, counted.values())) > 15)
            self.assertEqual(gone(counted, known()), [], name)

    def test_one_that_is_gone_is_found(self):
        there = known()
        self.assertGreater(min(map(len, there.values())), 30)
        self.assertEqual(gone({"phase": ["kv_sizing:kv_negative", "weight_load:ggml"], "cause": ["no.rule"]}, there), ["cause: no.rule", "phase: weight_load:ggml"])


if __name__ == "__main__":
    unittest.main()
