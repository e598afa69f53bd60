#!/usr/bin/env python3
"""tests/evidence has facts and no sentences; a row of first predictions says what its fact gives, whatever was typed into it."""
import contextlib
import copy
import io
import json
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import evidence  # noqa: E402
import figures  # noqa: E402
import predictions  # noqa: E402
import scorelib  # noqa: E402

SENTENCE = "INFO 09-26 22:38:30 Model loading took 4.1513 GiB and 0.814601 seconds"
RECORD = {"id": "st-1", "source": "public GitHub file (index id 77): notes of a person#b", "vllm_version": "0.11.0", "engine_version_effective": "0.11.0",
          "model": "a/b", "config": "b", "config_kind": "exact", "gpu": "24 GB card (RTX 4090 class, inferred from a figure)", "gpu_count": 1, "gpu_total_gib": None,
          "flags": {"max_model_len": 4096, "dtype": None, "speculative_config": "SpeculativeConfig(method='mtp', model='/home/person/x', num_spec_tokens=3)"},
          "resolved": {"dtype": "bfloat16"}, "measured": {"available_kv_gib": 5.97}, "outcome": "ok", "excerpt": ["model weights take 4 GiB", SENTENCE],
          "notes": "seen in an image", "assumed": ["nothing"], "check": {"verdict": "fine"}, "confidence": "high"}


class Form(unittest.TestCase):
    def committed(self, name):
        return scorelib.read_lines(os.path.join(evidence.INTO, name + ".jsonl"))

    def test_the_committed_facts_are_names_and_figures(self):
        for name, keys in (("starts", evidence.START_KEYS), ("reports", evidence.REPORT_KEYS)):
            for line in self.committed(name):
                self.assertEqual(list(evidence.form_errors(line, keys)), [], line["id"])

    def test_they_are_whole_and_in_order(self):
        found = self.committed("starts")
        sets = [name for name, _ in evidence.SETS]
        self.assertEqual([sum(start["set"] == name for start in found) for name in sets], [102, 76, 93])
        self.assertEqual(found, sorted(found, key=lambda start: (sets.index(start["set"]), start["id"])))
        with open(os.path.join(evidence.INTO, "models.json"), encoding="utf-8") as file:
            models = json.load(file)
        self.assertEqual(evidence.model_names({name: self.committed(name) for name in evidence.LINES}), set(models))

    def test_a_sentence_anywhere_is_named(self):
        start = self.committed("starts")[0]
        for changed in ({"excerpt": [SENTENCE]}, {"notes": "short"}, {"gpu": SENTENCE}, {"source": "a b"}, {"outcome": "it failed"}, {"flags": {"dtype": SENTENCE}},
                        {"flags": {"hf_overrides": {"text": SENTENCE * 5}}}, {"measured": {"text": "five"}}, {"unfair": ["no input for it"]}):
            self.assertEqual(len(list(evidence.form_errors({**start, **changed}, evidence.START_KEYS))), 1, changed)

    def test_only_facts_of_a_record_are_taken(self):
        start = evidence.start_of("first", RECORD)
        self.assertEqual(start, {"id": "st-1", "set": "first", "source": "index:77#b", "release": "0.11.0", "engine_version_effective": "0.11.0", "model": "a/b", "config": "b",
                                 "config_kind": "exact", "gpu": "24 GB card (RTX 4090 class)", "gpu_count": 1, "image": True, "first_engine": True,
                                 "flags": {"max_model_len": 4096, "speculative_config": {"method": "mtp", "num_speculative_tokens": 3}},
                                 "resolved": {"dtype": "bfloat16"}, "measured": {"available_kv_gib": 5.97}, "outcome": "ok", "confidence": "high"})
        self.assertEqual(list(evidence.form_errors(start, evidence.START_KEYS)), [])

    def test_a_config_that_lacks_a_key_which_is_read_is_named(self):
        whole = {"a": {"config": {"hidden_size": 64, "no_such_key_anywhere": 1}}}
        self.assertEqual(evidence.same_models({"a": {"config": {"hidden_size": 64}}}, whole), [])
        self.assertEqual(evidence.same_models({"a": {"config": {}}}, whole), ["a"])
        self.assertEqual(evidence.same_models({}, whole), ["a"])


class Rows(unittest.TestCase):
    def setUp(self):
        self.rows = {kind: figures.rows(kind + "-first") for kind in ("starts", "reports")}
        self.facts = {kind: predictions.facts(kind) for kind in ("starts", "reports")}

    def wrong(self, kind):
        return list(predictions.wrong_rows(kind, self.rows[kind], self.facts[kind]))

    def test_the_committed_rows_hold(self):
        for kind in self.rows:
            self.assertEqual(self.wrong(kind), [])

    def test_rows_that_are_called_right_are_named(self):
        """46 of 60 made 58 of 60."""
        third = figures.chosen(self.rows["starts"], set="third")
        missed = [row for row in figures.own(third) if row["figure"] == "kv_1_percent" and row["right"] == "no"][:12]
        for row in missed:
            row["right"] = "yes"
        self.assertEqual(figures.start_counts(third)["kv_within_1_percent"], "58")
        found = self.wrong("starts")
        self.assertEqual(len(found), 12)
        self.assertTrue(all(row["record"] in line and "said to be right" in line for row, line in zip(missed, found)), found)

    def test_a_changed_fact_is_named(self):
        row = figures.chosen(self.rows["starts"], figure="kv_1_percent")[0]
        self.facts["starts"][row["record"]]["measured"]["available_kv_gib"] += 1
        self.assertTrue(any(row["record"] in line and "the record has" in line for line in self.wrong("starts")))
        fact = next(fact for fact in self.facts["reports"].values() if fact["set"] == "third" and fact["phase"] == "kv_sizing")
        fact["phase"] = "kv_alloc"
        self.assertTrue(any(fact["id"] in line for line in self.wrong("reports")))

    def test_a_changed_prediction_is_named(self):
        row = next(row for row in figures.chosen(self.rows["starts"], figure="kv_1_percent") if row["right"] == "no")
        row["predicted"] = str(int(float(row["measured"]) * 2**30))
        self.assertEqual([row["record"] in line for line in self.wrong("starts")], [True])

    def test_a_row_that_is_left_out_or_there_twice_is_named(self):
        for kind in self.rows:
            left = self.rows[kind].pop()
            self.assertEqual(self.wrong(kind), ["%s %s %s: no row" % (left["record"], left["program"], left["figure"])])
            self.rows[kind] += [left, copy.copy(left)]
            self.assertEqual(self.wrong(kind), ["%s %s %s: twice" % (left["record"], left["program"], left["figure"])])

    def test_a_sum_that_is_not_that_of_its_rows_fails_by_name(self):
        rows = figures.rows

        def planted(name):
            found = rows(name)
            if name == "starts-first":
                next(row for row in found if row["set"] == "third" and row["figure"] == "outcome" and row["right"] == "no")["right"] = "yes"
            return found
        said = io.StringIO()
        figures.rows = planted
        try:
            with contextlib.redirect_stdout(said):
                self.assertEqual(figures.run(False), 1)
        finally:
            figures.rows = rows
        self.assertIn("docs/evidence/results/starts-first.csv: s2-", said.getvalue())
        self.assertIn("docs/evidence/results/starts.csv is out of date", said.getvalue())


class Models(unittest.TestCase):
    def test_configs_beside_the_data_are_folders_while_a_scorer_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "models.json"), "w", encoding="utf-8") as file:
                json.dump({"a": {"config": {"hidden_size": 64}, "quant": {"quantization": {}}}}, file)
            models = scorelib.models_beside(os.path.join(folder, "starts.jsonl"), None)
            self.assertEqual(sorted(os.listdir(scorelib.config_path(models, "a"))), ["config.json", "hf_quant_config.json"])


if __name__ == "__main__":
    unittest.main()
