#!/usr/bin/env python3
"""Each rule of tools/check_layers.py and tools/ratchets.py fails on a copy of the tree in which it was broken (headers and Python alone, for speed)."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import check_layers  # noqa: E402
import ratchets  # noqa: E402


class Layers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.root = os.path.join(cls.held.name, "tree")
        for part in ("src", "cli", "bindings", "shim"):
            shutil.copytree(os.path.join(ROOT, part), os.path.join(cls.root, part), ignore=shutil.ignore_patterns("__pycache__", "*.c"))
        for part in ("data/engines", "tests/rules"):
            shutil.copytree(os.path.join(ROOT, part), os.path.join(cls.root, part))
        shutil.copy(os.path.join(ROOT, "data/constants.json"), os.path.join(cls.root, "data"))
        os.makedirs(os.path.join(cls.root, "docs/contributing"))
        rows = [(what, ratchets.shown(count)) for what, (count, _) in ratchets.counts(cls.root).items()]
        cls.page = os.path.join(cls.root, ratchets.PAGE)
        with open(cls.page, "w", encoding="utf-8") as f:
            f.write("# A page\n\n%s\n%s%s%s\n\nWords behind it.\n" % (ratchets.BEGIN, ratchets.HEAD, "".join("| %s | %s | %s | |\n" % (w, n, n) for w, n in rows), ratchets.END))

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def run_check(self):
        bad = check_layers.problems(self.root)
        return 1 if bad else 0, "\n".join(bad)

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

    def test_the_copy_itself_passes_and_what_was_planted_is_told(self):
        tool = [sys.executable, os.path.join(ROOT, "tools/check_layers.py"), self.root]
        self.assertEqual(subprocess.run(tool, stdout=subprocess.PIPE, check=False).returncode, 0)
        path = os.path.join(self.root, "src/base/planted.c")
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write('#include "plan/plan.h"\n')
            done = subprocess.run(tool, stdout=subprocess.PIPE, universal_newlines=True, check=False)
        finally:
            os.remove(path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("src/base may not include plan/plan.h", done.stdout)

    def test_an_include_against_the_arrows_fails(self):
        self.planted("src/base/planted.c", '#include "plan/plan.h"\n', "src/base may not include plan/plan.h")
        for layer in ("plan", "sizes", "report", "explain", "command"):
            self.planted("src/%s/planted.c" % layer, '#include "engines/engines.h"\n', "src/%s may not include engines/engines.h" % layer)

    def test_an_include_of_the_library_from_the_command_fails(self):
        self.planted("cli/planted.c", '#include "plan/plan.h"\n', "may not include plan/plan.h")

    def test_an_include_of_the_library_from_a_stub_fails(self):
        self.planted("shim/guard/planted.c", '#include "plan/plan.h"\n', "may not include plan/plan.h")

    def test_a_picture_that_is_not_the_codes_fails(self):
        draw = [sys.executable, os.path.join(ROOT, "tools/draw_layers.py"), self.root]
        subprocess.run(draw + ["--write"], check=True)
        self.assertEqual(subprocess.run(draw, stdout=subprocess.DEVNULL, check=False).returncode, 0)
        path = os.path.join(self.root, "src/base/planted.h")
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write('#include "plan/plan.h"\n')
            self.assertEqual(subprocess.run(draw, stdout=subprocess.DEVNULL, check=False).returncode, 1)
        finally:
            os.remove(path)

    def test_states_that_are_not_the_pictures_fail(self):
        path, draw = os.path.join(self.root, "src/explain/collect.def"), [sys.executable, os.path.join(ROOT, "tools/draw_collector.py"), self.root]
        with open(path, encoding="utf-8") as f:
            before = f.read()
        subprocess.run(draw + ["--write"], check=True)
        step = "STEP(ECHO, ALIVE, 0, ECHO_SURVIVED)\n"
        for after, said in ((before, ""), (before.replace(step, step.replace("ECHO_SURVIVED", "TOLD")), "is not the table's"), (before.replace(step, ""), "('ECHO', 'ALIVE')")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(after)
            done = subprocess.run(draw, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1 if said else 0)
            self.assertIn(said, done.stdout + done.stderr)
        with open(path, "w", encoding="utf-8") as f:
            f.write(before)

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
        self.unharmed("src/api/planted.c", "/* as vLLM does */\n", "engine lines in src: ")

    def test_a_model_named_in_a_literal_fails(self):
        for literal in ("qwen3_next", "Qwen3ForCausalLM", "Gemma4", "gpt_oss", "deepseek_v3", "DeepseekV32"):
            self.planted("src/plan/planted.c", 'if (!strncmp(name, "%s", 4)) return 1;\n' % literal, "model names: ")

    def test_code_without_assertions_fails(self):
        self.planted("src/plan/planted.h", "int x;\n" * 20000, "assertions per thousand lines of src, at least: ")

    def test_an_assertion_that_was_taken_out_is_missed(self):
        path = os.path.join(self.root, "src/trace/trace.h")
        with open(path, encoding="utf-8") as f:
            was = f.read()
        self.assertIn("_Static_assert(", was)
        before = ratchets.assertions(self.root)[1]
        with open(path, "w", encoding="utf-8") as f:
            f.write(was.replace("_Static_assert(", "/* _Static_assert( */ ("))
        after = ratchets.assertions(self.root)[1]
        with open(path, "w", encoding="utf-8") as f:
            f.write(was)
        self.assertEqual(int(after.split()[0]), int(before.split()[0]) - 1)

    def test_a_model_class_in_a_reader_of_models_fails(self):
        self.planted("src/model/planted.c", 'if (!strcmp(name, "Qwen3ForCausalLM")) return 1;\n', "model classes in src/model and src/facts: ")
        self.planted("src/facts/planted.def", 'X("GptOssForCausalLM")\n', "model classes in src/model and src/facts: ")

    def test_a_model_named_in_the_command_fails(self):
        self.planted("cli/planted.c", 'return strcmp(name, "qwen3_next");\n', "model names: ")

    def test_an_engine_that_knows_another_fails(self):
        for path, header in (("src/engines/vllm/kv/planted.h", "sglang/sglang.h"), ("src/engines/sglang/planted.c", "vllm/plan.h")):
            self.planted(path, '#include "engines/%s"\n' % header, "includes from one engine into another: ")
        self.unharmed("src/engines/vllm/planted.c", '#include "engines/vllm/vllm.h"\n#include "engines/engines.h"\n', "includes from one engine into another: ")

    def test_a_flag_of_an_engine_outside_of_it_fails(self):
        for text in ('"--mem-fraction-static"', '"--max-num-seqs"', '"-tp"', '"lower --max-model-len first"', "'\"', \"--page-size\""):
            self.planted("src/explain/planted.c", "f(%s);\n" % text, "engine flags in strings outside src/engines: ")
        for text in ('f("--no-flag-of-anybody");', '/* "--max-num-seqs" */', 'f("http://host/*"); /* --page-size */', "// \"--max-num-seqs\""):
            self.unharmed("src/explain/planted.c", text + "\n", "engine flags in strings outside src/engines: ")

    def test_a_header_a_function_and_a_line_more_fail(self):
        self.planted("src/base/planted.h", "int x;\n", "headers in src: ")
        self.planted("src/base/planted.c", "int x;\n", "lines of src/base: ")
        self.planted("src/engines/sglang/planted.c", "int x;\n", "lines of src/engines/sglang: ")
        self.planted("src/engines/sglang/planted.c", "int x;\n", "lines of src: ")
        self.planted("tools/planted.sh", "echo\n", "lines of tools: ")
        self.planted("src/base/planted.c", "static int f(void)\n{\n    return 1;\n}\n\n" * 2000, "functions per thousand lines of src: ")

    def test_rules_without_a_source_and_constants_of_few_fail(self):
        self.planted("tests/rules/vllm.tsv", "planted\t0.8.0\t0.9.0\t1\tunverified\n", "unverified rules of vllm: ")
        self.planted("src/sizes/planted.c", "return 5 * OOS_MIB;\n", "bytes written as numbers in engines and sizes: ")
        path = os.path.join(self.root, "data/constants.json")
        with open(path, encoding="utf-8") as f:
            was = f.read()
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write(was.replace('"constants": [', '"constants": [{"id": "planted", "meaning": "a term", "unit": "MiB", "rows": [{"value": 2, "low": 1, "high": 3, "starts": 1, '
                                    '"sources": 1, "of": "one start"}]},', 1))
            self.assertIn("fitted constants with few sources: ", self.run_check()[1])
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(was)

    def unharmed(self, path, text, words):
        """The check says nothing of this with `text` in a file of its own at `path`."""
        path = os.path.join(self.root, path)
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            self.assertNotIn(words, self.run_check()[1])
        finally:
            os.remove(path)

    def table(self, change, *words):
        """(code and output of the check, rows then) with the text of the page changed and, with words, the tool run on it."""
        with open(self.page, encoding="utf-8") as f:
            was = f.read()
        try:
            with open(self.page, "w", encoding="utf-8") as f:
                f.write(change(was))
            if words:
                subprocess.run([sys.executable, os.path.join(ROOT, "tools/ratchets.py"), self.root, *words], stdout=subprocess.DEVNULL, check=True)
            checked = self.run_check()
            with open(self.page, encoding="utf-8") as f:
                return checked, f.read()
        finally:
            with open(self.page, "w", encoding="utf-8") as f:
                f.write(was)

    def test_a_limit_that_was_taken_out_fails(self):
        (code, out), _ = self.table(lambda page: page.replace("| model names | 0 | 0 | |\n", ""))
        self.assertEqual(code, 1)
        self.assertIn("model names: 0, and docs/contributing/architecture.md has no limit for it", out)

    def test_a_table_that_is_gone_or_broken_fails(self):
        for change in (lambda page: "", lambda page: page.replace(ratchets.END, ""), lambda page: page.replace("| model names | 0 | 0 | |", "| model names | 0 |")):
            (code, out), _ = self.table(change)
            self.assertEqual(code, 1)
            self.assertIn("table of limits", out)

    def test_a_number_that_is_not_todays_fails_until_it_is_written(self):
        now = ratchets.shown(ratchets.counts(self.root)["headers in src"][0])

        def stale(page):
            self.assertIn("| headers in src | %s | %s | |" % (now, now), page)
            return page.replace("| headers in src | %s | %s | |" % (now, now), "| headers in src | 999 | 1,999 | for good |")
        (code, out), _ = self.table(stale)
        self.assertEqual(code, 1)
        self.assertIn("headers in src: %s, and docs/contributing/architecture.md shows 999" % now, out)
        (code, out), page = self.table(stale, "--write")
        self.assertEqual((code, out), (0, ""))
        self.assertIn("| headers in src | %s | %s | for good |" % (now, now), page)
        self.assertTrue(page.endswith("\n\nWords behind it.\n"))

    def test_room_that_was_given_by_hand_is_kept_until_written(self):
        now = ratchets.shown(ratchets.counts(self.root)["headers in src"][0])
        self.assertEqual(self.table(lambda page: page.replace("| headers in src | %s | %s | |" % (now, now), "| headers in src | %s | 1,999 | a reader |" % now))[0][0], 0)

    def test_write_never_raises_and_adds_no_row(self):
        now = {what: ratchets.shown(count) for what, (count, _) in ratchets.counts(self.root).items()}

        def tight(page):
            for what, limit in (("headers in src", "1"), (ratchets.ASSERTIONS, "99.0")):
                page = page.replace("| %s | %s | %s | |" % (what, now[what], now[what]), "| %s | %s | %s | |" % (what, now[what], limit))
            return page.replace("| model names | 0 | 0 | |\n", "| lines of src/gone | 1 | 1 | |\n")
        (code, out), page = self.table(tight, "--write")
        self.assertEqual(code, 1)
        self.assertIn("headers in src: %s, at most 1 (" % now["headers in src"], out)
        self.assertIn("%s: %s, at least 99.0 (" % (ratchets.ASSERTIONS, now[ratchets.ASSERTIONS]), out)
        self.assertIn("model names: 0, and ", out)
        self.assertIn("| headers in src | %s | 1 |" % now["headers in src"], page)
        self.assertNotIn("src/gone", page)


if __name__ == "__main__":
    unittest.main()
