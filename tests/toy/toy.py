#!/usr/bin/env python3
"""An engine is one folder of code, one of data and its line in facts/engine.def: the tree is copied, the engine of this folder put there in
that way, and every command that asks for engines knows it: one test each, listed in docs/contributing/extend.md. toy.py SOURCE. Exit 77 without meson and ninja. Standard library only."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PLACES = {"src/engines/toy": "engine", "data/engines/toy": "data"}
LINE_IN = "src/facts/engine.def"


SERVER = """
import socket, sys
place = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("--listen") + 1])))
print("listening", flush=True)
while True:
    one, _ = place.accept()
    one.recv(4096)
    one.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\ntoy:running 3.0\\ntoy:waiting 12.0\\ntoy:kv_used 0.421\\n")
    one.close()
"""


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
        for words in (["meson", "setup", cls.build, cls.root, "-Dbuildtype=debug"],
                      ["ninja", "-C", cls.build, "cli/oomsight", "src/liboomsight.so.0", "shim/liboomsight-guard.so"]):
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
            if done.returncode:
                raise AssertionError("%s: %s" % (" ".join(words), done.stdout[-4000:]))
        for major in ("cuda12", "cuda13"):  # what is started here uses no CUDA: empty folders in the place of the stub libraries
            os.makedirs(os.path.join(cls.build, "shim", major), exist_ok=True)

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def ask(self, *words, status=0, text=None):
        done = subprocess.run([os.path.join(self.build, "cli/oomsight"), *words], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def program(self, text):
        """A program that is called toy, in a folder of its own."""
        folder = tempfile.mkdtemp(dir=self.held.name)
        path = os.path.join(folder, "toy")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

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

    def test_matrix_plans_it(self):
        path = os.path.join(self.held.name, "fleet.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write("models: [Qwen/Qwen3-8B]\ngpus: [h100]\nversions: [toy=1.0.0]\n")
        point = json.loads(self.ask("matrix", "--offline", "--json", "--quiet", path).splitlines()[0])
        self.assertEqual((point["version"], point["verdict"]), ("toy=1.0.0", "fits"))

    def test_its_levers_are_listed(self):
        self.assertIn("put the other toys away", self.ask("kb", "phases", "--engine", "toy"))
        self.assertIn("收好别的玩具", self.ask("kb", "phases", "--engine", "toy", "--lang", "zh"))

    def test_help_errors_and_completions_name_it(self):
        self.assertIn("vllm, sglang or toy", " ".join(self.ask("plan", "--help").split()))
        self.assertIn("vLLM, SGLang or Toy", " ".join(self.ask("check", "--help").split()))
        self.assertIn("toy", self.ask("completion", "words", "plan", "--engine", "").splitlines())
        done = subprocess.run([os.path.join(self.build, "cli/oomsight"), "plan", "--engine", "none", "--", "toy", "serve", "x"], stderr=subprocess.PIPE,
                              stdout=subprocess.PIPE, universal_newlines=True, check=False)
        self.assertIn("vLLM, SGLang, Toy are planned", done.stderr)

    def dry(self, says, *words):
        """(text, report, the words it was started with) of a server that goes on for a while."""
        path = self.program("#!/bin/sh\necho $TOY_COLOUR \"$@\" > \"$0.seen\"\necho '%s'\nexec sleep 2\n" % says)
        text = self.ask("dryrun", "--quiet", "--gpu", "A30", "--cuda", "13", "--report", path + ".json", "--", path, *words)
        with open(path + ".seen", encoding="utf-8") as seen, open(path + ".json", encoding="utf-8") as report:
            return text, json.load(report), seen.read().split()

    def test_dryrun_waits_for_its_ready_line(self):
        model = os.path.join(ROOT, "tests/fixtures/models/small-llama")  # without weights and tokenizer, for which it has no flags
        for words in (("serve", model), ("-m", "toy.server", "--model", model)):
            text, report, seen = self.dry("Toy is ready", *words)
            self.assertTrue(text.startswith("STARTED"), text)
            self.assertEqual(report["engine"]["name"], "toy")
            self.assertEqual(seen[:-1], ["none", *words, "--listen"])
            self.assertGreater(int(seen[-1]), 0)
        text = self.dry("Application startup complete", "serve", model)[0]  # another engine's line
        self.assertTrue(text.startswith("RAN"), text)

    def test_top_asks_its_port_for_its_metrics(self):
        with socket.create_server(("127.0.0.1", 0)) as place:
            port = place.getsockname()[1]
        server = self.program("#!%s\n" % sys.executable + SERVER)
        run = subprocess.Popen([os.path.join(self.build, "cli/oomsight"), "run", "--quiet", "--", server, "serve", "x", "--listen", str(port)],
                               stdout=subprocess.PIPE, universal_newlines=True)
        try:
            self.assertEqual(run.stdout.readline(), "listening\n")
            found = [one["run"] for one in json.loads(self.ask("top", "--once", "--json")) if one["pid"] == run.pid]
            self.assertEqual([one["serving"] for one in found], [{"running": 3, "waiting": 12, "kv_used_permille": 421}])
        finally:
            run.terminate()
            run.wait(60)
            run.stdout.close()


if __name__ == "__main__":
    if not shutil.which("meson") or not shutil.which("ninja"):
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
