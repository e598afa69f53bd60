#!/usr/bin/env python3
"""Each check of tools/ fails when what it forbids is planted: in a copy of the data, a document, or the answers of a program that stands in for
the command."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tool(name, *words, stdin=None, env=None):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", name), *words], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, check=False, env=dict(os.environ, **(env or {})))
    return done.returncode, done.stdout


class Gate(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.folder = self.held.name

    def tearDown(self):
        self.held.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def program(self, body):
        """A program that stands in for the command: `words` are its arguments."""
        return self.put("cli/oomsight", "#!%s\nimport json, sys, time\nwords = sys.argv[1:]\n%s\n" % (sys.executable, body), 0o755)

    def fails(self, words, code_and_out):
        code, out = code_and_out
        self.assertEqual(code, 1, out)
        self.assertIn(words, out)
        self.assertNotIn("Traceback", out)

    def passes(self, code_and_out):
        self.assertEqual(code_and_out[0], 0, code_and_out[1])


class Data(Gate):
    def setUp(self):
        super().setUp()
        for part in ("gpus", "engines", "models"):
            shutil.copytree(os.path.join(ROOT, "data", part), self.path("data/" + part))

    def planted(self, name, change, words):
        with open(self.path("data/" + name), encoding="utf-8") as f:
            was = f.read()
        value = json.loads(was)
        self.put("data/" + name, change if isinstance(change, str) else json.dumps(change(value) or value))
        self.fails(words, tool("check_data.py", self.path("data")))
        self.put("data/" + name, was)

    def test_a_fault_in_a_gpu_fails(self):
        self.passes(tool("check_data.py", self.path("data")))
        gpu = "gpus/h100-sxm.json" if os.path.exists(self.path("data/gpus/h100-sxm.json")) else "gpus/" + sorted(os.listdir(self.path("data/gpus")))[0]
        for change, words in ((lambda g: [g.pop("sms"), None][1], "missing ['sms']"), (lambda g: g.update(extra=1), "unknown ['extra']"), (lambda g: g.update(total_low=g["total_high"] + 1), "is outside"),
                              (lambda g: g.update({"class": "toaster"}), "is none of"), (lambda g: g.update(compute_capability="6.6"), "is not known here"),
                              (lambda g: g.update(sms=999), "SMs on one device"), (lambda g: g.update(context_bytes=5), "is out of range"),
                              (lambda g: g.update(aliases=["Upper"]), "must be lower-case"), (lambda g: dict(reversed(list(g.items()))), "not in the order")):
            self.planted(gpu, change, words)
        self.planted(gpu, '{"name": 1, "name": 2}', "appears twice")
        self.planted(gpu, "{", "Expecting property name")

    def test_an_alias_or_a_class_of_two_files_fails(self):
        first, second = sorted(os.listdir(self.path("data/gpus")))[:2]
        with open(self.path("data/gpus/" + first), encoding="utf-8") as f:
            alias = json.load(f)["aliases"][0]
        self.planted("gpus/" + second, lambda g: g["aliases"].append(alias), "is also in " + first)
        self.put("data/models/planted.json", json.dumps({"source": "nowhere", "classes": {"AfmoeForCausalLM": {}}}))
        self.fails("AfmoeForCausalLM is also in", tool("check_data.py", self.path("data")))
        self.put("data/models/planted.json", json.dumps({"source": "nowhere", "classes": {"Planted": {"like": "nobody"}}}))
        self.fails("is no file of models/", tool("check_data.py", self.path("data")))

    def test_a_flag_that_an_engine_does_not_have_fails(self):
        self.planted("engines/meanings.json", lambda m: m.append({"vllm": "--planted", "sglang": "--tp"}), "vllm has no flag --planted")
        self.planted("engines/vllm/levers.json", lambda m: m["levers"][-1].update(flag="--planted"), "vllm has no flag --planted")
        self.planted("engines/vllm/levers.json", lambda m: [lever for lever in m["levers"] if lever["id"] == "text_only"][0].pop("since") and None, "not every release that is said has --language-model-only")

    def test_a_behaviour_that_no_code_asks_for_fails(self):
        name = "engines/sglang/architectures.json"
        self.planted(name, lambda a: a["behaviour"].update(Planted={"planted": 1}), "no code of sglang asks for planted")
        self.planted(name, lambda a: a["behaviour"].update(Planted={"sliding_pool": True}), "sliding_pool is not a number above 0")


class Knowledge(Gate):
    def test_advice_that_a_release_does_not_have_fails(self):
        shutil.copytree(os.path.join(ROOT, "data/engines"), self.path("data/engines"))
        record = {"id": "vllm/planted", "versions": {"engine": "vllm", "introduced": "0.8.0", "fixed": None}, "when": {"cause": ["planted"]},
                  "fixes": [{"change": ["--max-model-len"]}], "dead_ends": []}
        self.put("data/kb/vllm/planted.json", json.dumps(record))
        self.passes(tool("check_kb.py", self.path("data")))
        for word in ("--planted", "--async-scheduling"):  # one of no release, one of later releases only
            record["fixes"][0]["change"] = [word]
            self.put("data/kb/vllm/planted.json", json.dumps(record))
            self.fails("vllm/planted: %s: not in" % word, tool("check_kb.py", self.path("data")))

    def test_advice_both_ways_or_of_no_cause_fails(self):
        shutil.copytree(os.path.join(ROOT, "data/engines"), self.path("data/engines"))
        for fix, dead, fails in ((["--max-num-seqs", "64"], ["fewer concurrent requests"], True),
                                 (["--max-num-seqs", "64"], ["--max-model-len", "--max-num-seqs"], True),
                                 (["--gpu-memory-utilization", "0.95"], ["--gpu-memory-utilization", "(higher)"], True),
                                 (["--gpu-memory-utilization", "0.85"], ["--gpu-memory-utilization", "(higher)"], False)):
            record = {"id": "vllm/planted", "versions": {"engine": "vllm", "introduced": "0.8.0", "fixed": None}, "when": {"cause": ["planted"]},
                      "fixes": [{"change": fix}], "dead_ends": [{"change": dead}]}
            self.put("data/kb/vllm/planted.json", json.dumps(record))
            if fails:
                self.fails("helps, and", tool("check_kb.py", self.path("data")))
            else:
                self.passes(tool("check_kb.py", self.path("data")))
        record["when"] = {"phase": ["kv_sizing"]}
        self.put("data/kb/vllm/planted.json", json.dumps(record))
        self.fails("names no cause", tool("check_kb.py", self.path("data")))


class Schema(Gate):
    def test_what_the_schema_forbids_fails(self):
        schema = self.put("schema.json", json.dumps({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]},
                          "c": {"type": "array", "items": {"$ref": "#/$defs/d"}}}, "$defs": {"d": {"type": "string"}}}))
        self.passes(tool("check_schema.py", schema, stdin='{"a": 1, "b": "x", "c": ["y"]}'))
        for text, words in (('{}', "'a' is missing"), ('{"a": true}', "is not integer"), ('{"a": 1, "b": "z"}', "not one of the words"),
                            ('{"a": 1, "c": [1]}', "$.c[0]"), ('{"a": 1}\n{}\n', "'a' is missing"), ("[]", "is not object"), ("", "nothing to check")):
            self.fails(words, tool("check_schema.py", schema, stdin=text))


class Locale(Gate):
    def test_a_call_that_listens_to_the_locale_fails(self):
        self.put("src/plan/a.c", "int x;\n")
        self.passes(tool("check_locale.py", self.folder))
        for name, text, words in (("src/plan/a.c", "x = strtod(a, &b);", "strtod() depends on the locale"), ("shim/a.c", 'snprintf(t, 9, "%.2f", v);', "floating number"),
                                  ("src/plan/a.c", "isalpha(c);", "isalpha()"), ("cli/a.c", 'setlocale(LC_ALL, "");', "setlocale()"),
                                  ("src/log/a.c", "json_loads(a, 0, 0);", "json_loads()")):
            self.put(name, text + "\n")
            self.fails(words, tool("check_locale.py", self.folder))
            self.put(name, "int x;\n")


class Language(Gate):
    def answered(self, chinese, english):
        text = "#!/bin/sh\ncase \"$*\" in *'--lang zh'*) echo '%s' ;; *) echo '%s' ;; esac\n" % (chinese, english)
        return tool("check_language.py", self.put("cli/oomsight", text, 0o755))

    def test_english_or_other_numbers_in_chinese_fail(self):
        self.passes(self.answered("可以启动 1.50", "it starts 1.50"))
        self.fails("this one was left", self.answered("this one was left 1.50", "this one was left 1.50"))
        self.fails("with other numbers", self.answered("可以启动 1.60", "it starts 1.50"))
        self.fails("nothing is printed", self.answered("", ""))


class Seeds(Gate):
    def test_a_claim_that_does_not_hold_fails(self):
        answer = {"verdict": "fits", "phase": None, "tried_bytes": 0, "kv": {"block_tokens": 16, "page_bytes": 1, "available_bytes": 1, "tokens": 1}, "phases": [], "inert": [],
                  "fixes": [], "why": None, "weights_bytes": 1, "attention_backend": "FLASH_ATTN", "attention_backend_reason": None, "cause": None}
        self.fails("FAIL 001 dies in cudagraph_profile", tool("check_seeds.py", self.program("print(%r)" % json.dumps(answer)), self.folder))
        self.fails("FAIL cannot plan", tool("check_seeds.py", self.program("sys.exit(4)"), self.folder))

    def test_an_explanation_that_is_wrong_fails(self):
        sys.path.insert(0, os.path.join(ROOT, "tools"))
        import check_seeds_explain as seeds
        for name in [*seeds.FAILING, *seeds.HEALTHY]:
            self.put("logs/" + name, "a log\n")
        self.fails("no OOM found", tool("check_seeds_explain.py", self.program("pass"), self.path("logs")))
        found = {"is_oom": True, "phase": "weight_load", "signature": None, "fixes": [], "dead_ends": [], "ledger": [], "numbers": {"tried_bytes": 1}}
        told = tool("check_seeds_explain.py", self.program("print(%r)" % json.dumps(found)), self.path("logs"))
        for words in ("phase weight_load", "signature None", "tried 1", "is not offered", "is not named inert", "an OOM was found", "seeds explained: 0 of"):
            self.fails(words, told)


class Speed(Gate):
    def test_a_plan_that_takes_too_long_fails(self):
        self.put("models/small-llama/config.json", "{}")
        self.fails("FAIL small config", tool("check_speed.py", self.program("time.sleep(0.03)"), self.folder))
        quick = self.program("pass")
        self.passes(tool("check_speed.py", quick, self.folder, "--slack", "50"))

    def test_a_matrix_that_is_slow_or_not_whole_fails(self):
        answer = 'print("5 of 1,000,000 points")\nif "--output" in words: open(words[words.index("--output") + 1], "w").write("x\\n" * %d)'
        self.passes(tool("check_matrix_speed.py", self.program(answer % 1000000)))
        self.fails("NOT REACHED", tool("check_matrix_speed.py", self.program(answer % 999999)))
        self.fails("NOT REACHED", tool("check_matrix_speed.py", self.program(answer % 1000000), "--seconds", "0.001"))
        self.fails("NOT REACHED", tool("check_matrix_speed.py", self.program((answer % 1000000).replace("1,000,000", "999,999"))))

    def test_a_replay_that_is_slow_or_large_fails(self):
        answer = 'if "--output" in words: open(words[words.index("--output") + 1], "w").write("x" * %d)\n%s'
        few = ["--events", "20000", "--slack", "100"]
        self.fails("FAIL the page", tool("check_replay_speed.py", self.program(answer % (11000000, "")), *few))
        self.fails("FAIL text", tool("check_replay_speed.py", self.program(answer % (1, "held = bytearray(600000000)")), *few))
        self.fails("FAIL text", tool("check_replay_speed.py", self.program(answer % (1, "")), "--events", "20000", "--slack", "0.0001"))

    def test_an_answer_that_another_dress_turns_fails(self):
        """A stand-in reads only what begins a line: it loses the message behind a prefix, or finds what is not there."""
        reads = ("import io, tarfile\nfor member in (archive := tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read()))).getmembers():\n"
                 "    text = archive.extractfile(member).read().decode()\n    print(json.dumps(dict(file=member.name, phase=None, cause=None, is_oom=%s)))\n")
        self.put("logs/a.log", "torch.OutOfMemoryError: CUDA out of memory.\n")
        self.fails("docker: 0 turned, 1 lost of 1", tool("check_dresses.py", self.program(reads % "text.startswith('torch')"), self.path("logs")))
        self.fails("docker: 1 turned, 0 lost of 1", tool("check_dresses.py", self.program(reads % "'|' in text"), self.path("logs")))
        self.passes(tool("check_dresses.py", self.program(reads % "True"), self.path("logs")))


class Everyone(unittest.TestCase):
    def test_each_check_has_a_test_that_plants_its_violation(self):
        with open(os.path.abspath(__file__), encoding="utf-8") as f:
            here = f.read()
        elsewhere = {"check_abi.sh": "test_abi.py", "check_certainty.py": "../gates/planted.py", "check_defects.py": "../gates/planted.py", "check_docs.py": "test_docs.py", "check_fitted.py": "test_check_fitted.py", "check_floors.py": "test_floors.py",
                     "check_layers.py": "test_layers.py", "check_tests.py": "../gates/planted.py", "check_words.py": "test_words.py",
                     "check_workflows.py": "test_ci.py"}
        for name in sorted(n for n in os.listdir(os.path.join(ROOT, "tools")) if n.startswith("check_")):
            if name in elsewhere:
                with open(os.path.join(ROOT, "tests/tools", elsewhere[name]), encoding="utf-8") as f:
                    self.assertIn(name.split(".")[0], f.read())
            else:
                self.assertIn('tool("%s"' % name, here, "%s has no test that plants its violation" % name)


if __name__ == "__main__":
    unittest.main()
