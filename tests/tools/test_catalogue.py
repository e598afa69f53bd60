#!/usr/bin/env python3
"""tools/catalogue.py --refresh: a cache and a mirror become entries with their origin; what is damaged changes nothing."""
import contextlib
import io
import json
import os
import struct
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import catalogue  # noqa: E402
import check_data  # noqa: E402

CONFIG = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 128, "rms_norm_eps": 1e-6, "initializer_range": 0.02, "auto_map": {"x": "y"}}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def weights(sizes):
    header, at = {}, 0
    for name, size in sizes.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


class Refresh(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.root = self.held.name
        self.listed = os.path.join(self.root, "catalogue.json")
        self.put("catalogue.json", json.dumps({"a/small": {"config": {"architectures": ["old"]}}, "z/other": {"config": {"architectures": ["kept"]}}}))
        self.cache("a", "small", CONFIG)
        self.put(self.at("a", "small", "model.safetensors"), weights({"x": 100, "y": 28}))
        self.cache("b", "small-AWQ", {**CONFIG, "quantization_config": AWQ}, refs=False)
        self.put(self.at("b", "small-AWQ", "README.md"), "---\nbase_model:\n- a/small\n---\n")
        self.put(self.at("b", "small-AWQ", "model.safetensors.index.json"), json.dumps({"metadata": {"total_size": 44}, "weight_map": {"x": "one.safetensors"}}))

    def tearDown(self):
        self.held.cleanup()

    def at(self, owner, name, file):
        return "cache/hub/models--%s--%s/snapshots/%s/%s" % (owner, name, COMMIT, file)

    def cache(self, owner, name, config, refs=True):
        self.put(self.at(owner, name, "config.json"), json.dumps(config))
        if refs:
            self.put("cache/hub/models--%s--%s/refs/main" % (owner, name), COMMIT)

    def put(self, path, content):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())

    def run_it(self, *wanted, folder="cache"):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = catalogue.refresh(os.path.join(self.root, folder), list(wanted), self.listed, None)
        with open(self.listed, encoding="utf-8") as f:
            return code, json.load(f), said.getvalue()

    def test_a_cache_becomes_entries_with_their_origin(self):
        code, entries, said = self.run_it()
        self.assertEqual((code, sorted(entries)), (0, ["a/small", "b/small-AWQ", "z/other"]), said)
        self.assertEqual(entries["a/small"]["config"], {key: CONFIG[key] for key in ("architectures", "hidden_size", "model_type", "num_hidden_layers", "rms_norm_eps", "vocab_size")})
        origin = entries["a/small"]["from"]
        self.assertEqual((origin["repo"], origin["revision"], origin["weights_bytes"]), ("a/small", COMMIT, 128))
        self.assertRegex(origin["date"], r"^20\d\d-\d\d-\d\d$")
        self.assertEqual((entries["b/small-AWQ"]["of"], entries["b/small-AWQ"]["from"]["weights_bytes"]), ("a/small", 44))
        self.assertEqual(entries["z/other"], {"config": {"architectures": ["kept"]}})
        check = check_data.Check(self.root)
        check_data.check_catalogue(check, self.listed)
        self.assertEqual(check.problems, [])
        again = self.run_it()
        self.assertEqual((again[0], again[1]), (0, entries))

    def test_a_mirror_is_read_as_well(self):
        self.put("mirror/m/one/config.json", json.dumps(CONFIG))
        self.put("mirror/m/one/.cache/huggingface/download/config.json.metadata", COMMIT + "\nx\n1\n")
        self.put("mirror/m/two/config.json", json.dumps(CONFIG))
        code, entries, said = self.run_it("m/one", folder="mirror")
        self.assertEqual((code, "m/two" in entries, entries["m/one"]["from"]["revision"]), (0, False, COMMIT), said)
        self.assertEqual(self.run_it(folder="mirror")[1]["m/two"]["from"]["revision"], None)

    def test_damage_changes_nothing(self):
        with open(self.listed, encoding="utf-8") as f:
            before = json.load(f)
        damages = [(self.at("a", "small", "config.json"), json.dumps(CONFIG)[:-9], "config.json"), (self.at("a", "small", "config.json"), "[]", "no object"),
                   (self.at("a", "small", "config.json"), "{}", "no architecture"), (self.at("a", "small", "model.safetensors"), b"\xff" * 20, "no header"),
                   (self.at("a", "small", "model.safetensors"), weights({"x": 100})[:12], "header"),
                   (self.at("a", "small", "model.safetensors.index.json"), json.dumps({"metadata": {"total_size": 127}, "weight_map": {"x": "model.safetensors"}}), "127 bytes, the headers 128"),
                   ("cache/hub/models--a--small/refs/main", "f" * 40, "config.json")]
        for path, content, says in damages:
            with self.subTest(says=says):
                whole = os.path.join(self.root, path)
                was = None
                if os.path.exists(whole):
                    with open(whole, "rb") as f:
                        was = f.read()
                self.put(path, content)
                code, entries, said = self.run_it()
                self.assertEqual((code, entries), (1, before))
                self.assertIn(says, said)
                os.remove(whole) if was is None else self.put(path, was)
        self.assertEqual(self.run_it("no/such")[0], 1)
        self.assertEqual(self.run_it()[0], 0)


if __name__ == "__main__":
    unittest.main()
