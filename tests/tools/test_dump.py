#!/usr/bin/env python3
"""What is read of an engine: switches by what they do, and one release beside those that were read before."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TOOLS = os.path.join(ROOT, "tools")
DATA = os.path.join(ROOT, "data", "engines", "vllm")
sys.path.insert(0, TOOLS)
import dump_flags  # noqa: E402
import merge_flags  # noqa: E402


class Hiding(argparse.BooleanOptionalAction):
    """Takes a twin that no name tells, and leaves `--no-x` out of the help."""

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, option_string not in ("--no-quick", "--slow"))


def parser_of():
    parser = argparse.ArgumentParser()
    action = parser.add_argument("--quick", "--slow", action=Hiding)
    action.option_strings.remove("--no-quick")
    parser.add_argument("--disable-x", action="store_true")
    parser.add_argument("--keep", dest="drop", action="store_false")
    parser.add_argument("--version", action="version", version="1")
    return parser


def options():
    parser = parser_of()
    spellings = {}
    for spelling, action in parser._option_string_actions.items():
        spellings.setdefault(action.dest, (action, []))[1].append(spelling)
    return {dest: dump_flags.option_record(parser, action, names, "g", set(), set()) for dest, (action, names) in spellings.items()}


def folder_of(home, names, bound):
    """A package with two of the files that are read."""
    files = {"model_executor/models/registry.py": "_X_MODELS = {" + ", ".join(f'"{name}": ("m", "C")' for name in names) + "}",
             "engine/arg_utils.py": "class EngineArgs:\n    block_size: int = 1\n",
             "config/cache.py": f"class CacheConfig:\n    block_size: int = Field(default=1, ge={bound})\n",
             "model_executor/layers/quantization/__init__.py": 'QuantizationMethods = Literal["awq"]\n'}
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(home, path)), exist_ok=True)
        with open(os.path.join(home, path), "w", encoding="utf-8") as file:
            file.write(text)
    return home


def run(tool, *words):
    subprocess.run([sys.executable, os.path.join(TOOLS, tool), *words], check=True, capture_output=True)


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Dump(unittest.TestCase):
    def test_a_switch_is_told_by_what_each_of_its_spellings_stores(self):
        quick = options()["quick"]
        self.assertEqual(quick["kind"], "bool-optional")
        self.assertEqual(quick["names"], ["--quick", "--no-slow"])
        self.assertEqual(quick["negative"], ["--slow", "--no-quick"])  # the one that help leaves out comes last
        self.assertEqual(quick["hidden"], ["--no-quick"])

    def test_a_switch_with_one_meaning_has_no_negative(self):
        found = options()
        self.assertEqual((found["disable_x"]["kind"], found["disable_x"]["negative"]), ("flag", []))
        self.assertNotIn("stores", found["disable_x"])
        self.assertEqual((found["drop"]["kind"], found["drop"]["stores"]), ("flag", False))
        self.assertEqual(found["version"]["kind"], "help")

    def test_a_flag_that_nobody_judged_moves_memory_for_all_that_is_known(self):
        dump = {"engine": "vllm", "version": "9.0.0", "options": [
            {"names": [name], "negative": [], "dest": dest, "kind": "int", "nargs": None, "group": "g"}
            for name, dest in (("--max-num-seqs", "max_num_seqs"), ("--port", "port"), ("--never-seen", "never_seen"))]}
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "dump.json"), "w", encoding="utf-8") as file:
                json.dump(dump, file)
            run("merge_flags.py", os.path.join(folder, "out.json"), os.path.join(DATA, "flags.json"), os.path.join(folder, "dump.json"))
            found = {flag["names"][0]: flag["memory"] for flag in read(os.path.join(folder, "out.json"))["flags"]}
        self.assertEqual([found["--max-num-seqs"], found["--port"], found["--never-seen"]], [True, False, None])

    def test_a_table_is_its_own_input(self):
        with tempfile.TemporaryDirectory() as folder:
            for engine in ("vllm", "sglang"):
                path = os.path.join(DATA, "..", engine, "flags.json")
                run("merge_flags.py", os.path.join(folder, "out.json"), path)
                self.assertEqual(read(os.path.join(folder, "out.json")), read(path))

    def test_a_package_is_not_asked_for_what_stands_outside_of_it(self):
        table = {"schema": "oomsight.engine-env/1", "engine": "vllm", "prefixes": ["VLLM_"], "versions": ["1.0.0"], "variables": [
            {"name": "VLLM_BENCH", "owner": "vllm", "listed": False, "since": "1.0.0", "memory": "open"},
            {"name": "VLLM_WORDS", "owner": "vllm", "kind": "str", "default": "fork", "since": "1.0.0", "memory": "none"}]}
        dump = {"engine": "vllm", "version": "2.0.0", "variables": [{"name": "VLLM_WORDS", "kind": "str", "default": "fork"}]}
        names = {"engine": "vllm", "version": "2.0.0", "names": ["VLLM_WORDS"], "elsewhere": [], "logs_unknown": True}
        with tempfile.TemporaryDirectory() as folder:
            for whole, kept in ((False, None), (True, "1.0.0")):
                paths = [os.path.join(folder, name) for name in ("out", "table", "dump", "names")]
                for path, content in zip(paths[1:], (table, dump, dict(names, whole=whole))):
                    with open(path, "w", encoding="utf-8") as file:
                        json.dump(content, file)
                run("merge_env.py", *paths)
                rows = {row["name"]: row for row in read(paths[0])["variables"]}
                self.assertEqual(rows["VLLM_BENCH"].get("until"), kept)
                self.assertNotIn("changes", rows["VLLM_WORDS"])

    def test_another_release_leaves_those_that_were_read_as_they_are(self):
        with tempfile.TemporaryDirectory() as folder:
            package = folder_of(os.path.join(folder, "vllm"), ["LlamaForCausalLM", "NeverSeenForCausalLM"], 7)
            for tool, name, kinds in (("dump_architectures.py", "architectures.json", ()), ("dump_arguments.py", "arguments.json", ("bounds", "backends"))):
                out, before = os.path.join(folder, name), read(os.path.join(DATA, name))
                with open(out, "w", encoding="utf-8") as file:
                    json.dump(before, file)
                run(tool, out, f"99.0.0={package}")
                after = read(out)
                self.assertEqual(after["versions"], before["versions"] + ["99.0.0"])
                for kind in kinds:
                    for was, now in ((before[kind][word], after[kind][word]) for word in before[kind]):
                        self.assertEqual([step for step in now if step["since"] != "99.0.0"], was)
                if kinds:
                    self.assertEqual(after["bounds"]["block_size"][-1], {"since": "99.0.0", "part": "CacheConfig", "ge": 7})
                else:
                    self.assertEqual(after["architectures"]["NeverSeenForCausalLM"], [["99.0.0", None]])
                    self.assertEqual(after["architectures"]["LlamaForCausalLM"], before["architectures"]["LlamaForCausalLM"])


if __name__ == "__main__":
    unittest.main()
