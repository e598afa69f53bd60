#!/usr/bin/env python3
"""tools/catalogue_sizes.py: what the number of parameters proves, and what is not listed."""
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import catalogue_sizes as sizes  # noqa: E402

BASE = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "intermediate_size": 128, "vocab_size": 100000, "max_position_embeddings": 40960, "tie_word_embeddings": True, "layer_types": ["s", "s", "s", "f"]}


def layers(config):
    text = sizes.text_of(config)
    return text["num_hidden_layers"] * 12 * text["hidden_size"] ** 2


def count(config):
    """Parameters of a made-up class: layers, a table, and a head that is not tied."""
    table = config["vocab_size"] * config["hidden_size"]
    return {"decoder": layers(config) + table * (1 if config["tie_word_embeddings"] else 2), "tower": 0, "drafter": 0}


def row(name, parameters, **other):
    values = {"id": name, "family": "qwen3", "layers": 8, "heads": 4, "kv_heads": 2, "head_dim": 16, "hidden": 64, "inner": 128, "shared_inner": None, "vocab": 100000,
              "experts": None, "active": None, "context": 32768, "parameters": parameters, "downloads": 10 ** 6}
    return {**values, **other}


class Sizes(unittest.TestCase):
    def made(self, *rows, kept=None, ids=(), same=None):
        written = {"ids": list(ids) or [one["id"] for one in rows], "families": {}, "configs": {}, "contexts": {}, "same_sizes": same or {}, "changes": {}, "unknown_bits": "^q/hidden",
                   "least_downloads": 1000}
        words = set(BASE) | {"quantization_config", "quant_method", "bits"}
        recipes = {"awq": {"quant_method": "awq", "bits": 4}}
        return sizes.make({one["id"]: one for one in rows}, written, recipes, kept or {"q/base": {"config": BASE}}, words, count)

    def test_the_exact_number_proves(self):
        whole = 8 * 12 * 64 ** 2 + 6400000
        made = self.made(row("q/eight", whole), row("q/near", whole + 9), row("q/far", whole * 3), row("q/hidden-bits", whole))
        self.assertEqual({name: entry["level"] for name, entry in made.items()}, {"q/eight": "proven", "q/near": "sizes"})
        self.assertEqual(made["q/eight"]["change"], {"num_hidden_layers": 8, "max_position_embeddings": 32768, "layer_types": ["s", "s", "s", "f"] * 2})
        self.assertEqual(made["q/near"]["wide"], 10)

    def test_a_stored_head_is_tied_only_where_equal_sizes_are(self):
        tables = 2 * 6400000
        made = self.made(row("q/eight", 8 * 12 * 64 ** 2 + tables), row("q/four", 4 * 12 * 64 ** 2 + tables, layers=4))
        self.assertEqual((made["q/eight"]["level"], made["q/eight"]["change"]["tie_word_embeddings"]), ("proven", False))
        self.assertEqual((made["q/four"]["level"], "tie_word_embeddings" in made["q/four"].get("change", {})), ("proven", False))

    def test_an_equal_number_is_an_alias(self):
        parameters = 10 ** 7 + 3
        kept = {"q/base": {"config": BASE}, "o/twin": {"like": "q/base"}}
        made = self.made(row("q/base", parameters), row("q/gated", parameters, layers=None), row("q/other", parameters, layers=None, family="else"), kept=kept, ids=["q/gated", "q/other", "z/twin"])
        self.assertEqual({name: (entry["level"], entry["like"]) for name, entry in made.items()}, {"q/gated": ("alias", "q/base"), "z/twin": ("alias", "q/base")})

    def test_what_is_stored_in_few_bits_is_no_template(self):
        kept = {"q/base": {"config": {**BASE, "quantization_config": {"quant_method": "fp8"}}}}
        whole = 8 * 12 * 64 ** 2 + 6400000
        self.assertEqual(sorted(self.made(row("q/eight", whole), row("q/eight-BF16", whole), kept=kept)), ["q/eight-BF16"])


if __name__ == "__main__":
    unittest.main()
