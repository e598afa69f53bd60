#!/usr/bin/env python3
"""An engine is one folder of code, one of data and its line in facts/engine.def: the tree is copied, the engine of this folder put there in
that way, and plan, explain, check, engines and Python know it. toy.py SOURCE. Exit 77 without meson and ninja. Standard library only."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PLACES = {"src/engines/toy": "engine", "data/engines/toy": "data"}
LINE_IN = "src/facts/engine.def"


def left_out(folder, names):
    return [n for n in names if n.startswith((".", "build")) or n == "__pycache__"] if folder == ROOT else []


def files(root):
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            with open(os.path.join(folder, name), "rb") as f:
                found[path] = f.read()
    return found


class Toy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.root = os.path.join(cls.held.name, "tree")
        shutil.copytree(ROOT, cls.root, ignore=left_out)
        cls.before = files(cls.root)
        for place, source in PLACES.items():
            shutil.copytree(os.path.join(HERE, source), os.path.join(cls.root, place))
        with open(os.path.join(HERE, "line"), encoding="utf-8") as f, open(os.path.join(cls.root, LINE_IN), "a", encoding="utf-8") as to:
            to.write(f.read())
        cls.after = files(cls.root)
        cls.build = os.path.join(cls.root, "build")
        for words in (["meson", "setup", cls.build, cls.root, "-Dbuildtype=debug"], ["ninja", "-C", cls.build, "cli/oomsight", "src/liboomsight.so.0"]):
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
            if done.returncode:
                raise AssertionError("%s: %s" % (" ".join(words), done.stdout[-4000:]))

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def ask(self, *words, status=0, text=None):
        done = subprocess.run([os.path.join(self.build, "cli/oomsight"), *words], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def test_nothing_is_touched_but_two_folders_and_one_line(self):
        changed = {path for path in self.after if self.before.get(path) != self.after[path]}
        outside = {path for path in changed if not path.startswith(tuple(PLACES))}
        self.assertEqual(outside, {LINE_IN})
        was, now = self.before[LINE_IN].decode().splitlines(), self.after[LINE_IN].decode().splitlines()
        self.assertEqual(now[:-1], was)
        self.assertEqual(set(self.before) - set(self.after), set())

    def test_plan_knows_it(self):
        plan = json.loads(self.ask("plan", "--offline", "--json", "--gpu", "h100", "--", "toy", "serve", "Qwen/Qwen3-8B", "--share", "0.5"))
        self.assertEqual((plan["engine"], plan["verdict"]), ({"name": "toy", "version": "1.0.0"}, "fits"))
        self.assertEqual(plan["setup"], {"architecture": "Qwen3ForCausalLM", "share": 0.5})
        self.assertGreater(plan["kv"]["tokens"], 0)
        small = json.loads(self.ask("plan", "--offline", "--json", "--gpu", "t4", "--", "toy", "serve", "Qwen/Qwen3-32B", status=1))
        self.assertEqual((small["verdict"], small["phase"], small["cause"]), ("fails", "weight_load", "weights_exceed_gpu"))
        self.assertIn("Toy 1.0.0", self.ask("plan", "--offline", "--gpu", "h100", "--", "toy", "serve", "Qwen/Qwen3-8B"))

    def test_engines_lists_it(self):
        self.assertIn("toy 1.0.0", self.ask("engines"))
        self.assertIn("1.0.0", json.dumps([e for e in json.loads(self.ask("engines", "--json"))["engines"] if "toy" in json.dumps(e).lower()]))

    def test_check_finds_its_command(self):
        path = os.path.join(self.held.name, "start.sh")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\ntoy serve Qwen/Qwen3-8B --share 0.8\n")
        found = json.loads(self.ask("check", "--offline", "--json", "--gpu", "h100", path))
        self.assertIn('"toy"', json.dumps(found))
        self.assertIn("fits", json.dumps(found))

    def test_explain_plans_its_command(self):
        log = ("$ toy serve Qwen/Qwen3-32B\n"
               "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total capacity of 14.56 GiB of which 8.00 MiB "
               "is free. Including non-PyTorch memory, this process has 14.55 GiB memory in use.\n")
        found = json.loads(self.ask("explain", "--json", "-", status=1, text=log))
        self.assertEqual(found["engine"]["name"], "toy")
        self.assertEqual(found["plan_check"], "plan reproduces this failure (weight_load).")

    def test_python_knows_it(self):
        code = ("import oomsight\np = oomsight.plan('toy serve Qwen/Qwen3-8B', gpu='h100')\nprint(p.data['engine']['name'], p.verdict)\n")
        env = dict(os.environ, OOMSIGHT_LIBRARY=os.path.join(self.build, "src/liboomsight.so.0"), PYTHONPATH=os.path.join(self.root, "bindings/python"),
                   PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split(), ["toy", "fits"])


if __name__ == "__main__":
    if not shutil.which("meson") or not shutil.which("ninja"):
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
