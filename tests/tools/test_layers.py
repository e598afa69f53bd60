#!/usr/bin/env python3
"""Each rule of tools/check_layers.py fails on a copy of the tree in which it was broken (headers and Python alone, for speed)."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import check_layers  # noqa: E402


class Layers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.root = os.path.join(cls.held.name, "tree")
        for part in ("src", "cli", "bindings", "shim"):
            shutil.copytree(os.path.join(ROOT, part), os.path.join(cls.root, part), ignore=shutil.ignore_patterns("__pycache__", "*.c"))
        os.makedirs(os.path.join(cls.root, "tools"))
        os.makedirs(os.path.join(cls.root, "data/engines/vllm"))
        shutil.copy(os.path.join(ROOT, "data/engines/vllm/architectures.json"), os.path.join(cls.root, "data/engines/vllm"))
        with open(os.path.join(cls.root, "tools/ratchets.json"), "w", encoding="utf-8") as f:
            json.dump({what: count for what, (count, _) in check_layers.counts(cls.root).items()}, f)

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def run_check(self, *words):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools/check_layers.py"), self.root, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def planted(self, path, text, words):
        """The check fails with these words while `text` stands at the end of `path`."""
        path = os.path.join(self.root, path)
        was = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                was = f.read()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with open(path, "a", encoding="utf-8") as f:
                f.write(text)
            code, out = self.run_check()
        finally:
            if was is None:
                os.remove(path)
            else:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(was)
        self.assertEqual(code, 1, out)
        self.assertIn(words, out)

    def test_the_copy_itself_passes(self):
        self.assertEqual(self.run_check()[0], 0)

    def test_an_include_against_the_arrows_fails(self):
        self.planted("src/base/planted.c", '#include "plan/plan.h"\n', "src/base may not include plan/plan.h")
        for layer in ("plan", "sizes", "report", "explain", "command"):
            self.planted("src/%s/planted.c" % layer, '#include "engines/engine.h"\n', "src/%s may not include engines/engine.h" % layer)

    def test_an_include_of_the_library_from_the_command_fails(self):
        self.planted("cli/planted.c", '#include "plan/plan.h"\n', "may not include plan/plan.h")

    def test_an_include_of_the_library_from_a_stub_fails(self):
        self.planted("shim/guard/planted.c", '#include "plan/plan.h"\n', "may not include plan/plan.h")

    def test_a_picture_that_is_not_the_codes_fails(self):
        draw = [sys.executable, os.path.join(ROOT, "tools/draw_layers.py"), self.root]
        os.makedirs(os.path.join(self.root, "docs/contributing"), exist_ok=True)
        subprocess.run(draw + ["--write"], check=True)
        self.assertEqual(subprocess.run(draw, stdout=subprocess.DEVNULL, check=False).returncode, 0)
        path = os.path.join(self.root, "src/base/planted.h")
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write('#include "plan/plan.h"\n')
            self.assertEqual(subprocess.run(draw, stdout=subprocess.DEVNULL, check=False).returncode, 1)
        finally:
            os.remove(path)

    def test_a_folder_that_is_no_layer_fails(self):
        self.planted("src/newcomer/planted.c", '#include "base/arena.h"\n', "has no place among the layers")

    def test_a_type_that_is_defined_twice_fails(self):
        self.planted("src/api/planted.h", "typedef struct oos_holder {\n    int x;\n} oos_holder;\n", "oos_holder is defined in ")

    def test_a_circle_of_layers_fails(self):
        before = check_layers.MAY_SEE["base"]
        check_layers.MAY_SEE["base"] = {"plan"}
        try:
            self.assertIn("base sees itself through other layers", list(check_layers.circles()))
        finally:
            check_layers.MAY_SEE["base"] = before
        self.assertEqual(list(check_layers.circles()), [])

    def test_a_tree_that_grew_over_its_share_fails(self):
        self.planted("src/plan/planted.h", "int x;\n" * 15000, "per cent of src in src/plan: ")
        self.planted("src/engines/planted.h", "int x;\n" * 15000, "per cent of src in src/engines: ")

    def test_the_folder_of_an_engine_has_a_share_of_its_own(self):
        self.planted("src/engines/sglang/planted.h", "int x;\n" * 18000, "per cent of src in src/engines/sglang: ")

    def test_lines_in_leaf_folders_count_for_their_tree(self):
        self.planted("src/report/a/planted.h", "int x;\n" * 5000, "per cent of src in src/report: ")

    def test_a_release_named_in_code_fails(self):
        self.planted("src/plan/planted.c", "int x = OOS_VERSION(0, 1, 2);\n", "releases named: 1")

    def test_an_engine_named_in_each_tree_fails(self):
        for path, tree in (("src/api/planted.c", "src"), ("src/explain/planted.c", "src"), ("src/sizes/planted.c", "src"), ("cli/planted.c", "cli"), ("bindings/python/planted.py", "bindings"), ("shim/python/planted.py", "shim/python")):
            self.planted(path, 'x = "vllm"\n', "engine lines in %s: " % tree)

    def test_an_engine_taken_by_its_place_in_the_list_fails(self):
        for place in ("oos_engine_list[0]", "oos_engine_list->name", "x == oos_engine_list"):
            self.planted("src/api/planted.c", "f(%s);\n" % place, "engine lines in src: ")

    def test_an_engine_in_a_comment_passes(self):
        path = os.path.join(self.root, "src/api/planted.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write("/* as vLLM does */\n")
        self.assertEqual(self.run_check()[0], 0)
        os.remove(path)

    def test_a_model_named_in_a_literal_fails(self):
        for literal in ("qwen3_next", "Qwen3ForCausalLM", "Gemma4", "gpt_oss", "deepseek_v3", "DeepseekV32"):
            self.planted("src/plan/planted.c", 'if (!strncmp(name, "%s", 4)) return 1;\n' % literal, "model names: ")

    def test_code_without_assertions_fails(self):
        self.planted("src/plan/planted.h", "int x;\n" * 20000, "assertions per thousand lines in src: ")

    def test_an_assertion_that_was_taken_out_is_missed(self):
        path = os.path.join(self.root, "src/trace/snapshot.h")
        with open(path, encoding="utf-8") as f:
            was = f.read()
        self.assertIn("_Static_assert(", was)
        before = check_layers.assertions(self.root)[1]
        with open(path, "w", encoding="utf-8") as f:
            f.write(was.replace("_Static_assert(", "/* _Static_assert( */ ("))
        after = check_layers.assertions(self.root)[1]
        with open(path, "w", encoding="utf-8") as f:
            f.write(was)
        self.assertEqual(int(after.split()[0]), int(before.split()[0]) - 1)

    def test_a_ratchet_that_was_taken_out_fails(self):
        path = os.path.join(self.root, "tools/ratchets.json")
        with open(path, encoding="utf-8") as f:
            was = f.read()
        less = json.loads(was)
        del less["model names"]
        with open(path, "w", encoding="utf-8") as f:
            json.dump(less, f)
        code, out = self.run_check()
        with open(path, "w", encoding="utf-8") as f:
            f.write(was)
        self.assertEqual(code, 1)
        self.assertIn("allows none", out)

    def test_write_lowers_and_never_raises(self):
        path = os.path.join(self.root, "tools/ratchets.json")
        with open(path, encoding="utf-8") as f:
            was = f.read()
        given = json.loads(was)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(dict(given, **{"model names": given["model names"] + 5, "engine lines in cli": given["engine lines in cli"] - 1,
                                     check_layers.ASSERTIONS: 0}), f)
        self.assertEqual(self.run_check("--write")[0], 1)
        with open(path, encoding="utf-8") as f:
            now = json.load(f)
        with open(path, "w", encoding="utf-8") as f:
            f.write(was)
        self.assertEqual(now["model names"], given["model names"])
        self.assertEqual(now[check_layers.ASSERTIONS], given[check_layers.ASSERTIONS])
        self.assertEqual(now["engine lines in cli"], given["engine lines in cli"] - 1)


if __name__ == "__main__":
    unittest.main()
