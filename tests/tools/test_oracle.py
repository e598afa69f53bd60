#!/usr/bin/env python3
"""A sweep's starts: configs cut to a few layers, nodes a layer from two of them, figures beside a plan."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BINARY = sys.argv.pop(1) if len(sys.argv) > 1 else None
sys.path.insert(0, os.path.join(ROOT, "tools"))
import oracle  # noqa: E402


def record(layers, nodes):
    return {"key": f"0.32.0/qwen3-8b/{layers}/h100/graphs", "ok": True, "capture_sizes": 51, "max_num_seqs": 256,
            "captures": {"start.PIECEWISE": {"sizes": 51, "graphs": 51 * (layers + 1), "nodes": 51 * nodes}},
            "groups": [{"kind": "FullAttentionSpec", "layers": layers, "page_bytes": 65536}], "backends": ["FLASH_ATTN"]}


class Oracle(unittest.TestCase):
    def test_a_config_is_cut_to_its_first_layers(self):
        short = oracle.cut({"num_hidden_layers": 8, "layer_types": list("abcdefgh"), "hidden_size": 7}, 3)
        self.assertEqual(short, {"num_hidden_layers": 3, "layer_types": list("abc"), "hidden_size": 7})
        inner = oracle.cut({"text_config": {"num_hidden_layers": 8}}, 2)
        self.assertEqual(inner["text_config"]["num_hidden_layers"], 2)

    def test_a_key_is_read_back(self):
        self.assertEqual(oracle.parts_of(oracle.key_of("0.32.0", "qwen3-8b", 4, "h100", False)), ("0.32.0", "qwen3-8b", 4, "h100", False))
        self.assertEqual(oracle.parts_of(oracle.key_of("0.32.0", "qwen3-8b", 4, "h100", True, 16)), ("0.32.0", "qwen3-8b", 4, "h100", True))
        self.assertEqual(oracle.parts_of(oracle.key_of("0.32.0", "qwen3-8b", 4, "h100", True, tokens=8192)), ("0.32.0", "qwen3-8b", 4, "h100", True))
        self.assertNotEqual(oracle.key_of("0.32.0", "qwen3-8b", 4, "h100", True, 16), oracle.key_of("0.32.0", "qwen3-8b", 4, "h100", True))

    def test_every_swept_model_is_there_and_hybrids_keep_each_kind_of_layer(self):
        for name in oracle.SWEPT:
            self.assertIn(name, oracle.models.MODELS)
        pattern = oracle.cut(oracle.models.MODELS["nemotron-nano-9b"], oracle.layers_of(oracle.models.MODELS["nemotron-nano-9b"], [2, 4])[0])["hybrid_override_pattern"]
        self.assertEqual(set(pattern), set("M-*"))

    def test_a_stretch_has_every_kind_of_layer(self):
        self.assertEqual(oracle.least_layers({"num_hidden_layers": 8, "layer_types": list("aaabaaab")}), 4)
        self.assertEqual(oracle.least_layers({"num_hidden_layers": 8, "first_k_dense_replace": 3}), 4)
        self.assertEqual(oracle.least_layers({"text_config": {"num_hidden_layers": 8, "full_attention_interval": 4}}), 4)
        self.assertEqual(oracle.least_layers({"num_hidden_layers": 1}), 1)
        self.assertIsNone(oracle.least_layers({"no": "layers"}))
        cut = oracle.cut({"num_hidden_layers": 8, "linear_attn_config": {"full_attn_layers": [4, 8], "kda_layers": [1, 2, 3, 5, 6, 7]}}, 4)
        self.assertEqual(cut["linear_attn_config"], {"full_attn_layers": [4], "kda_layers": [1, 2, 3]})

    def test_nodes_of_a_layer_are_the_difference_of_two_starts(self):
        found = oracle.nodes_per_layer([record(2, 17), record(4, 33)])
        self.assertEqual(found, {("0.32.0", "qwen3-8b", "h100", "PIECEWISE"): 8})
        self.assertEqual(oracle.nodes_per_layer([record(2, 17)]), found)

    def test_from_0_27_on_what_stays_is_added_to_the_engines_peak_and_its_estimate_taken_off(self):
        plan = {"weights_bytes": 1, "kv": {"page_bytes": 1}, "setup": {"cudagraph_capture_sizes": 0}, "attention_backend": "X", "phases": [
            {"phase": "kv_sizing", "holds": [{"owner": "activation peak", "bytes": 130}]}, {"phase": "profile_run", "holds": [{"owner": "kept by the profile run", "bytes": 30}]}]}
        later = oracle.figures({"peak_bytes": 107, "estimate_bytes": 7, "retained_bytes": 30, "consumed_bytes": 7}, plan)
        earlier = oracle.figures({"peak_bytes": 130, "retained_bytes": 30}, plan)
        self.assertEqual([row for row in later if row[0] in ("peak", "retained")], [("peak", 130, 130), ("retained", 30, 30)])
        self.assertEqual([row for row in earlier if row[0] in ("peak", "retained")], [("peak", 130, 130), ("retained", 30, 30)])

    def test_no_start_and_a_figure_that_is_off_are_both_out_of_bounds(self):
        self.assertFalse(oracle.within({}))
        self.assertFalse(oracle.within({"peak": [6, 6], "retained": [0, 6]}))
        self.assertTrue(oracle.within({"peak": [6, 6], "retained": [19, 20]}))

    def test_a_figure_off_by_more_than_the_bound_is_told(self):
        if not BINARY:
            self.skipTest("no binary")
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            for wrong in (record(2, 17), dict(record(4, 33), groups=[{"page_bytes": 1}])):
                file.write(json.dumps(wrong) + "\n")
            file.flush()
            done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "oracle.py"), "compare", BINARY, file.name], capture_output=True, text=True,
                                  check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("| 0.32.0/qwen3-8b/4/h100/graphs | KV page | 1 | 65,536 |", done.stdout)
        self.assertIn("KV page 1 of 2", done.stdout)
        self.assertIn("backend 2 of 2", done.stdout)


if __name__ == "__main__":
    unittest.main()
