#!/usr/bin/env python3
"""Each gate fails for what it is named after: planted.py [BINARY] [WORD of a test...]

A copy of the files that a gate reads passes; then one violation is planted in the copy, and the gate must fail and name it. What needs the
command is skipped without BINARY. Standard library only."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.isfile(sys.argv[1]) else None


class Gate(unittest.TestCase):
    """A tree of copies."""

    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.root = self.held.name

    def tearDown(self):
        self.held.cleanup()

    def path(self, name):
        return os.path.join(self.root, name)

    def copy(self, *names):
        for name in names:
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            if os.path.isdir(os.path.join(ROOT, name)):
                shutil.copytree(os.path.join(ROOT, name), self.path(name), ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(os.path.join(ROOT, name), self.path(name))

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def put(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def change(self, name, old, new):
        """The first `old` of a file is `new` from here on; a function changes its JSON."""
        text = self.read(name)
        if callable(new):
            value = json.loads(text)
            new(value)
            self.put(name, json.dumps(value, indent=1) + "\n")
            return
        self.assertIn(old, text, name)
        self.put(name, text.replace(old, new, 1))

    def tool(self, name, *words):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", name), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, check=False)
        return done.returncode, done.stdout

    def passes(self, code_and_out):
        self.assertEqual(code_and_out[0], 0, code_and_out[1])

    def fails(self, code_and_out, *words):
        code, out = code_and_out
        self.assertEqual(code, 1, out)
        self.assertNotIn("Traceback", out)
        for word in words:
            self.assertIn(word, out)


class Tests(Gate):
    """tools/check_tests.py: a test that can no longer fail."""

    def check(self):
        return self.tool("check_tests.py", self.root)

    def emptied(self, name, old, new, words):
        self.copy(name)
        self.passes(self.check())
        was = self.read(name)
        self.assertEqual(len(re.findall(old, was, re.S | re.M)), 1, old)
        self.put(name, re.sub(old, lambda _: new, was, count=1, flags=re.S | re.M))
        self.fails(self.check(), *words)
        self.put(name, was)

    def test_a_c_test_that_states_nothing_fails(self):
        name = "tests/unit/test_arguments.c"
        case = "a_switch_with_a_value_is_refused_and_its_meaning_kept"
        body = r"(?<=static void %s\(void \*\*state\)\n)\{.*?^\}" % case
        for new in ("{\n    (void)state;\n}", "{\n    (void)state;\n    assert_true(1);\n}", "{\n    (void)state;\n    assert_int_equal(1 + 1, 2);\n}",
                    "{\n    int one = 1;\n    assert_int_equal(one, one);\n    (void)state;\n}", "{\n    (void)state;\n    /* assert_true(refused()); */\n}",
                    "{\n    (void)state;\n    return;\n    assert_null(state);\n}", "{\n    (void)state;\n#if 0\n    assert_null(state);\n#endif\n}"):
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))
            self.emptied(name, body, new, ["%s:%s" % (name, case), "1 of "])

    def test_a_c_test_that_states_by_a_function_passes(self):
        self.put("tests/unit/test_x.c", "static void holds(int x)\n{\n    assert_int_equal(x, 2);\n}\nstatic void a(void **state)\n{\n    holds(2);\n}\n"
                 "int main(void) { const struct CMUnitTest tests[] = {cmocka_unit_test(a)}; }\n")
        self.passes(self.check())
        self.change("tests/unit/test_x.c", "assert_int_equal(x, 2);", "(void)x;")
        self.fails(self.check(), "tests/unit/test_x.c:a")

    def test_a_python_test_that_states_nothing_fails(self):
        self.emptied("tests/tools/test_site.py", r"(?<=def test_a_dead_link_fails\(self\):\n).*?(?=\n    def )", "        self.assertTrue(True)\n", ["tests/tools/test_site.py:test_a_dead_link_fails"])

    def test_a_case_of_a_list_that_states_nothing_fails(self):
        self.emptied("tests/shim/limits.py", r"(?<=def no_room\(scratch\):\n).*?(?=\n\n\ndef )", "    run('--budget', '1GiB')", ["tests/shim/limits.py:no_room"])

    def test_a_case_that_main_calls_and_that_states_nothing_fails(self):
        self.emptied("tests/shim/endings.py", r"(?<=def outlived\(\):\n).*?(?=\n\n\ndef )", "    dryrun('--', 'true')", ["tests/shim/endings.py:outlived"])

    def test_a_case_of_the_command_without_an_answer_fails(self):
        for part in ("sh", "stdout", "stderr", "exit"):
            self.copy("tests/cli/plan_doubts." + part)
        self.passes(self.check())
        script = self.read("tests/cli/plan_doubts.sh")
        self.put("tests/cli/plan_doubts.sh", "# nothing: $OOMSIGHT\nexit 0\n")
        self.fails(self.check(), "tests/cli/plan_doubts.sh: does not run the command")
        self.put("tests/cli/plan_doubts.sh", script)
        self.put("tests/cli/plan_doubts.stdout", "")
        self.put("tests/cli/plan_doubts.stderr", "")
        self.fails(self.check(), "tests/cli/plan_doubts.sh: expects no output")


class Refusals(Gate):
    """tools/check_tests.py: a refusal of the code that no test asks for."""

    def test_a_refusal_without_a_test_fails(self):
        self.put("tests/floors.json", json.dumps({"check_tests.py": {"refusals without a test": {"at_most": 0}}}))
        self.put("src/engines/one/check.c", 'bool f(oos_check *c)\n{\n    return oos_check_refuse(c, "max_tokens (%llu) must be greater than "\n                               "or equal to max_seqs (%llu).", 1ull, 2ull);\n}\n')
        self.put("tests/unit/test_x.c", 'static void a(void **state)\n{\n    is_refused(*state, "must be greater than or equal");\n    assert_null(*state);\n}\nint main(void) { x(cmocka_unit_test(a)); }\n')
        self.passes(self.tool("check_tests.py", self.root))
        self.change("tests/unit/test_x.c", 'is_refused(*state, "must be greater than or equal");', "/* must be greater than or equal */")
        self.fails(self.tool("check_tests.py", self.root), "src/engines/one/check.c", "max_seqs")


class Defects(Gate):
    """tools/check_defects.py: a row that names no test."""

    def setUp(self):
        super().setUp()
        self.copy("tests/defects/ids.txt", "tests/floors.json", "tests/unit/test_arguments.c", "tests/tools/test_site.py", "tests/meson.build", "tools/fuzz.sh", "tools/man_options.py", "Makefile",
                  "tests/web/app_words.js", "tests/gates/fails_closed.py", "tests/packages/try_installs.sh")
        self.put("tests/defects/ids.txt", "P6\n")

    def row(self, test):
        self.put("tests/defects/one.tsv", "P6\t%s\twhat it shows, in a sentence\n" % test)
        return self.tool("check_defects.py", self.root, "--strict")

    def test_a_row_that_names_a_test_passes(self):
        for test in ("tests/unit/test_arguments.c:a_switch_with_a_value_is_refused_and_its_meaning_kept", "tests/tools/test_site.py:test_a_dead_link_fails",
                     "tests/web/app_words.js:SGLang's version is not vLLM's", "tests/gates/fails_closed.py:two services on one GPU", "tests/packages/try_installs.sh:pip install .",
                     "tools/man_options.py"):
            self.passes(self.row(test))

    def test_a_word_of_a_file_is_no_test(self):
        for test in ("tests/unit/test_arguments.c:include", "tests/unit/test_arguments.c:state", "tests/unit/test_arguments.c", "tests/tools/test_site.py:unittest", "tests/tools/test_site.py:setUp",
                     "tests/tools/test_site.py", "tests/web/app_words.js:assert", "tests/gates/fails_closed.py:failed", "tests/packages/try_installs.sh:claim", "tools/fuzz.sh", "tests/meson.build", "Makefile"):
            self.fails(self.row(test), test.split(":")[0])

    def test_a_row_whose_test_was_emptied_fails(self):
        name, case = "tests/unit/test_arguments.c", "a_switch_with_a_value_is_refused_and_its_meaning_kept"
        text = self.read(name)
        self.put(name, re.sub(r"(?<=static void %s\(void \*\*state\)\n)\{.*?^\}" % case, "{\n    (void)state;\n}", text, count=1, flags=re.S | re.M))
        self.fails(self.row("%s:%s" % (name, case)), case, "nothing that can be false")

    def test_one_open_defect_more_fails(self):
        self.passes(self.row("open"))
        self.change("tests/floors.json", None, lambda floors: floors["check_defects.py"]["open"].update(at_most=0))
        self.fails(self.row("open"), "1 defects are open, at most 0")

    def test_an_id_without_a_row_fails_when_asked_for_all(self):
        self.put("tests/defects/ids.txt", "P6-P8\n")
        self.fails(self.row("open"), "P7 P8")
        self.passes(self.tool("check_defects.py", self.root))

    def test_a_row_that_cannot_be_read_fails(self):
        case = "tests/unit/test_arguments.c:a_switch_with_a_value_is_refused_and_its_meaning_kept"
        for row, words in (("P6\ttests/unit/test_b.c\tit is not there", "no file"), ("P6\t%s\ta part of a name" % case[:-1], "has no a_switch_with_a_value"),
                           ("P6\tsrc/engines/vllm/plan.c\ta file that tests nothing", "is no test"), ("P6\ttests/unit/../../tools/x\ta path that leaves", "is no test"),
                           ("P6\ttests/unit/test_arguments.c\tthe whole file shows it", "which of its cases"), ("P6\t%s\t" % case, "no sentence"),
                           ("P6\t-\tit was never a defect", "without a measurement"), ("P9\t%s\tan id nobody knows" % case, "no defect P9"), ("P6 %s spaces" % case, "1 fields")):
            self.put("tests/defects/one.tsv", row + "\n")
            self.fails(self.tool("check_defects.py", self.root), words)


class Floors(Gate):
    """tools/check_floors.py --ledger: a limit that asks for less than was reached."""

    def setUp(self):
        super().setUp()
        self.copy("tests/floors.json", "tests/floors.best.json", "tools/explain_floors.json", "docs/contributing/architecture.md", "docs/evidence/floors.md")

    def check(self):
        return self.tool("check_floors.py", "--ledger", self.root)

    def test_a_limit_that_asks_for_less_fails(self):
        self.passes(self.check())
        data, kv = "score_truth.py starts.jsonl", "sets.third.fields.available KV / device.within_0.03"
        was = json.loads(self.read("tests/floors.json"))[data][kv]

        def lowered(floors): floors[data][kv] = 3
        def raised(floors): floors[data]["sets.third.false_alarms"]["at_most"] = 40
        def removed(floors): del floors[data]["sets.third.failures_foreseen"]
        def whole(floors): del floors["score_explain.py dev"]
        def share(floors): floors["phase"] = 0.5
        for name, change, words in (("tests/floors.json", lowered, "%s: %s: %s was reached and is 3 now" % (data, kv, was)), ("tests/floors.json", raised, "false_alarms: 1 was reached and is 40"),
                                    ("tests/floors.json", removed, "failures_foreseen"), ("tests/floors.json", whole, "score_explain.py dev: right.is_oom"),
                                    ("tools/explain_floors.json", share, "explain_floors.json: phase")):
            text = self.read(name)
            self.change(name, None, change)
            self.fails(self.check(), words)
            self.put(name, text)
        self.change("tests/floors.json", None, lowered)
        row = "| `%s: %s` | %s | 3 | %%s |\n" % (data, kv, was)
        page = self.read("docs/evidence/floors.md")
        self.put("docs/evidence/floors.md", page + row % "why not")
        self.fails(self.check(), kv)
        self.put("docs/evidence/floors.md", page + row % "fourteen starts of the set turned out to be another model")
        self.passes(self.check())

    def test_a_row_without_a_fall_fails(self):
        self.put("docs/evidence/floors.md", self.read("docs/evidence/floors.md") + "| `score_truth.py starts.jsonl: sets.third.failures_foreseen` | 29 | 20 | a reason of more than five words |\n")
        self.fails(self.check(), "failures_foreseen", "did not")

    def test_what_was_reached_is_kept_by_the_clone(self):
        """The limit and the best of it lowered together: the commits know better."""
        git = ["git", "-C", self.root, "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "before"]):
            subprocess.run(git + words, check=True, stdout=subprocess.DEVNULL)
        self.passes(self.check())
        key = "score_truth.py starts.jsonl: sets.third.failures_foreseen"
        self.change("tests/floors.json", None, lambda floors: floors["score_truth.py starts.jsonl"].update({"sets.third.failures_foreseen": 3}))
        self.change("tests/floors.best.json", None, lambda best: best.update({key: [3, 1]}))
        self.fails(self.check(), key)

    def test_a_limit_of_the_tree_that_is_raised_needs_its_reason(self):
        git = ["git", "-C", self.root, "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "before"]):
            subprocess.run(git + words, check=True, stdout=subprocess.DEVNULL)
        page = "docs/contributing/architecture.md"
        was = re.search(r"\| headers in src \| (\d+) \| (\d+) \|.*\|", self.read(page))
        for reason, fails in (("", True), ("readers of another format", False)):
            self.put(page, self.read(page).replace(was.group(), "| headers in src | %s | 900 | %s |" % (was.group(1), reason)))
            (self.fails(self.check(), "headers in src: the limit was") if fails else self.passes(self.check()))
            was = re.search(r"\| headers in src \| (\d+) \| (\d+) \|.*\|", self.read(page))


class Figures(Gate):
    """tools/figures.py: a figure that was typed into a table of results."""

    def setUp(self):
        super().setUp()
        self.copy("README.md", "docs/evidence", "tests/evidence/starts.jsonl", "tests/evidence/reports.jsonl",
                  *("tools/%s.py" % name for name in ("figures", "predictions", "score_truth", "scorelib", "explainlib", "check_kb", "catalogue")), "data/catalogue.json", "data/gpus", "data/kb", *("data/engines/%s/rules.json" % engine for engine in ("vllm", "sglang")),
                  *("tests/oracle/%s.jsonl" % name for name in ("results", "serving", "sglang", "beside", "exact", "learned_starts")))

    def check(self, *words):
        done = subprocess.run([sys.executable, self.path("tools/figures.py"), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
        return done.returncode, done.stdout

    def test_a_typed_figure_fails(self):
        self.passes(self.check())
        for name, old, new, words in (("starts", ",60,46,55,", ",60,58,55,", "starts.csv row 8 (8,third"), ("reports", "114,84,114,95", "114,104,114,105", "reports.csv row 17 (mixed 17,third"),
                                      ("survey", ",1659,47,", ",1659,470,", "survey.csv row 5"), ("agreement", ",101040,101040,", ",101040,101041,", "agreement.csv row 1"),
                                      ("serving", ",2000,2000,0,", ",2000,1999,0,", "out of date")):
            name = "docs/evidence/results/%s.csv" % name
            was = self.read(name)
            self.change(name, old, new)
            self.fails(self.check(), words)
            if "out of date" not in words:  # pages follow it, and it fails all the same
                self.fails(self.check("--write"), words)
            self.put(name, was)

    def test_a_table_or_a_row_of_nowhere_fails(self):
        self.put("docs/evidence/results/more.csv", "a,b\n1,2\n")
        self.fails(self.check(), "more.csv: sources.json says not")
        os.remove(self.path("docs/evidence/results/more.csv"))
        self.change("docs/evidence/results/starts.csv", "\n5,,vLLM 0.11.0 to 0.27.1,9,3,5,7,,,4,3,0,0,,,", "")
        self.fails(self.check("--write"), "starts.csv: recorded rows are gone: 5")

    def test_rows_that_are_made_anew_are_recorded_by_name(self):
        self.change("docs/evidence/results/survey.csv", ",1659,47,", ",1659,48,")
        self.check("--write", "--record", "survey.csv")
        self.passes(self.check())

    @unittest.skipUnless(BINARY, "needs the command")
    def test_a_typed_row_of_the_agreement_fails(self):
        name = "docs/evidence/results/agreement.csv"
        self.change(name, ",101040,101040,", ",101040,101041,")
        self.fails(self.tool("agreement.py", BINARY, "--check", self.path(name)), "101041")


@unittest.skipUnless(BINARY, "needs the command")
class Bounds(Gate):
    """tests/rules/bounds.py: a bound or a choice that the data lost, or got."""

    def check(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tests/rules/bounds.py"), BINARY, "--data", self.path("data")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, check=False)
        return done.returncode, done.stdout

    def test_a_bound_that_is_taken_out_or_moved_fails(self):
        self.copy("data")
        arguments = "data/engines/vllm/arguments.json"
        was = self.read(arguments)
        self.change(arguments, '"cpu_offload_gb": [{"since": "0.11.1", "part": "CacheConfig", "ge": 0}, {"since": "0.18.0", "part": "UVAOffloadConfig", "ge": 0}],\n', "")
        self.change(arguments, '"gt": 0, "le": 1}', '"gt": 0, "le": 2}')  # gpu_memory_utilization
        self.change(arguments, '"watermark": [{"since": "0.24.0"', '"watermark": [{"since": "0.25.0"')
        self.change("data/engines/vllm/flags.json", '"choices":["allgather_reducescatter","deepep_high_throughput",', '"choices":["allgather_reducescatter",')  # of --all2all-backend
        self.fails(self.check(), "cpu_offload_gb: ge 0 from 0.11.1 to 0.17.1 is in bounds.tsv and not in the data", "cpu_offload_gb: vLLM 0.33.0 --cpu-offload-gb=-",
                   "gpu_memory_utilization: vLLM 0.33.0 --gpu-memory-utilization=1.001", "watermark: vLLM 0.24.0 --watermark=", "all2all_backend: choice")
        self.put(arguments, was.replace('"watermark": [', '"swap_limit": [{"since": "0.31.0", "part": "CacheConfig", "ge": 1}],\n"watermark": ['))
        self.fails(self.check(), "swap_limit: ge 1 from 0.31.0 to 0.33.0 is in the data and not in bounds.tsv")


class Certainty(Gate):
    """What an answer claims: certainties that were raised, or levelled, fall through the limits of tests/floors.json."""

    def setUp(self):
        super().setUp()
        sys.path.insert(0, os.path.join(ROOT, "tools"))
        import check_floors
        import scorelib
        self.compare, self.stated = check_floors.compare, scorelib.stated

    def test_answers_that_claim_too_much_or_nothing_are_seen(self):
        answers = [(0.95, 19, 1), (0.8, 8, 2), (0.6, 6, 4), (0.3, 3, 7)]  # stated, right, wrong: as good as it says
        pairs = [(sure, at < right) for sure, right, wrong in answers for at in range(right + wrong)]
        good = self.stated(pairs)
        self.assertEqual((good["sure_right"], good["sure_wrong"], good["overstated"]), (19, 1, 0.0))
        limits = {"sure_right": 19, "sure_wrong": {"at_most": 1}, "brier": {"at_most": good["brier"]}, "overstated": {"at_most": 0.001}}
        self.assertEqual(self.compare(limits, good)[0], [])
        for claim, words in ((lambda sure: 0.97 if sure >= 0.5 else sure, ["sure_wrong", "overstated"]), (lambda sure: 0.5, ["sure_right", "brier"]), (lambda sure: 1 - sure, ["brier", "overstated"])):
            fallen = "\n".join(self.compare(limits, self.stated((claim(sure), right) for sure, right in pairs))[0])
            for word in words:
                self.assertIn(word + ":", fallen)

    def test_every_set_has_limits_of_what_its_answers_claim(self):
        with open(os.path.join(ROOT, "tests/floors.json"), encoding="utf-8") as f:
            floors = json.load(f)
        places = [(name, "certainty.%s." % what) for name in floors if name.startswith("score_explain.py") for what in ("phase", "cause")]
        places += [("score_truth.py starts.jsonl", "sets.%s.probability." % name) for name in ("first", "second", "third")]
        self.assertEqual(len(places), 15)
        for name, place in places:
            for figure in ("sure_right", "sure_wrong", "brier", "overstated"):
                self.assertIn(place + figure, floors[name])

    @unittest.skipUnless(BINARY, "needs the command")
    def test_certainties_set_to_97_percent_fall_through(self):
        self.copy("data")
        for name in ("data/explain/phases.json", "data/explain/causes.json"):
            self.put(name, re.sub(r'("(?:sure|figures|few|usual)": )([\d.]+)', lambda found: found.group(1) + "0.97" if float(found.group(2)) >= 0.5 else found.group(), self.read(name)))
        code, out = self.tool("score_explain.py", BINARY, os.path.join(ROOT, "tests/evidence/reports"), "--json", "--data", self.path("data"))
        self.assertIn(code, (0, 1), out)
        with open(os.path.join(ROOT, "tests/floors.json"), encoding="utf-8") as f:
            fallen = "\n".join(self.compare(json.load(f)["score_explain.py reports"], json.loads(out))[0])
        for figure in ("certainty.phase.sure_wrong", "certainty.phase.overstated", "certainty.cause.sure_wrong", "certainty.cause.overstated"):
            self.assertIn(figure, fallen)
        for name in ("data/explain/phases.json", "data/explain/causes.json"):
            self.put(name, self.read(name).replace(": 0.97", ": 0.65"))
        code, out = self.tool("check_certainty.py", BINARY, os.path.join(ROOT, "tests/evidence/reports"), "--data", self.path("data"))
        self.assertEqual(code, 1, out)
        self.assertIn("OFF", out)


class RuleUse(Gate):
    """tools/rule_use.py: a rule that decides one text."""

    @unittest.skipUnless(BINARY, "needs the command")
    def test_a_rule_that_decides_one_text_is_named(self):
        self.copy("data")
        rule = '    {"id": "kv_alloc:memory", "by": "said", "leaves": ["kv_alloc"], "why": "memory", "all": ["ggml.states"]},\n'
        self.put("data/explain/phases.json", self.read("data/explain/phases.json").replace('    {"id": "said"', rule + '    {"id": "said"', 1))
        reports, few = os.path.join(ROOT, "tests/evidence/reports"), self.path("few")
        with open(os.path.join(reports, "labels.jsonl"), encoding="utf-8") as f:
            labels = [line for line in f if re.search('"id": "(load-bare|kvalloc-llamacpp)', line)]
        self.put("few/labels.jsonl", "".join(labels))
        for line in labels:
            shutil.copy(os.path.join(reports, json.loads(line)["id"] + ".log"), few)
        code, out = self.tool("rule_use.py", BINARY, few, "--data", self.path("data"), "--only", "kv_alloc:memory", "weight_load:torch_full")
        self.assertEqual(code, 1, out)
        self.assertIn("kv_alloc:memory decides fewer than 3 texts", out)
        self.assertNotIn("weight_load:torch_full decides", out)


class Layers(Gate):
    """tools/check_layers.py: a dependency by a declaration in the place of an include."""

    def setUp(self):
        super().setUp()
        sys.path.insert(0, os.path.join(ROOT, "tools"))
        import check_layers
        self.reached = lambda: "\n".join(check_layers.reached(self.root))
        for name, text in (("src/explain/explain.h", "int oos_explained(int x);\n"), ("src/explain/explain.c", '#include "explain/explain.h"\nint oos_explained(int x)\n{\n    return x;\n}\n'),
                           ("src/plan/plan.c", "static int own(int x)\n{\n    return x;\n}\nint oos_planned(int x)\n{\n    return own(x);\n}\n"),
                           ("src/report/report.c", '#include "explain/explain.h"\nint oos_reported(int x)\n{\n    return oos_explained(x);\n}\n'), ("cli/main.c", "int main(void)\n{\n    return 0;\n}\n")):
            self.put(name, text)

    def test_a_function_of_a_layer_that_is_not_seen_fails_however_it_is_declared(self):
        self.assertEqual(self.reached(), "")
        call = "int oos_planned(int x)\n{\n    return %s;\n}\n"
        for text in ("int oos_explained(int x);\n" + call % "oos_explained(x)", "extern int oos_explained(int);\n" + call % "(oos_explained)(x)",
                     call % "({ int oos_explained(int); oos_explained(x); })", "#define EXPLAINED(x) oos_explained(x)\n" + call % "EXPLAINED(x)"):
            self.put("src/plan/plan.c", text)
            self.assertIn("src/plan may not use oos_explained of src/explain", self.reached(), text)
        for text in (call % "0 /* oos_explained(x) */", "struct one { int oos_explained; };\n" + call % '!sizeof "oos_explained(x)"',
                     "static int oos_explained(int x)\n{\n    return x;\n}\n" + call % "oos_explained(x)"):
            self.put("src/plan/plan.c", text)
            self.assertEqual(self.reached(), "", text)

    def test_the_command_may_call_what_its_header_has(self):
        self.put("cli/main.c", "int oos_planned(int x);\nint main(void)\n{\n    return oos_planned(0);\n}\n")
        self.assertIn("cli/main.c:1: cli/main.c may not use oos_planned of src/plan", self.reached())
        self.put("src/oomsight_private.h", "int oos_planned(int x);\n")
        self.assertEqual(self.reached(), "")


class Messages(Gate):
    """tools/messages.py: a sentence of a report that the table of messages has not, and a page that is out of date."""

    def check(self):
        return self.tool("messages.py", self.root)

    def test_a_sentence_without_a_row_fails(self):
        self.copy("data/lang/zh.json", "src", "cli", "data/explain", "data/engines", "data/kb", "tests/cli", "tests/golden", "docs")
        self.passes(self.check())
        self.change("src/report/check.c", '"helps:"', '"this would be of help:"')
        self.fails(self.check(), "src/report/check.c: in no row of data/lang/zh.json: this would be of help:")

    def test_a_row_that_is_taken_out_fails(self):
        self.copy("data/lang/zh.json", "src", "cli", "data/explain", "data/engines", "data/kb", "tests/cli", "tests/golden", "docs")
        self.change("docs/reference/messages.md", "| `helps:` |", "| `help:` |")
        self.fails(self.check(), "docs/reference/messages.md is not what the sources say")


class Sentences(Gate):
    """tests/gates/sentences.py: what people should not have to read."""

    def faults(self, command, *lines):
        sys.path.insert(0, os.path.join(ROOT, "tests", "gates"))
        import sentences
        return [kind for kind, _ in sentences.faults([command], "\n".join(lines), sentences.engines_names())]

    def test_a_name_with_underscores_fails_where_people_read_it(self):
        for line in ("  Cause (74 %): gmu_too_low.", "  Memory at kv_sizing (GiB)", "weight_load  15.20 of 9.62", "  原因：insufficient_info（30 %）。", "  Also possible (tp_needed)."):
            self.assertEqual(len(self.faults("explain", line)), 1, line)
        for line in ("OUT OF MEMORY while loading weights  [weight_load]", "    12| File model.py, in load_model_of_mine", "  --kv-cache-dtype fp8_e5m2", "  gpu_memory_utilization  0.9",
                     "    VLLM_USE_V1=1 vllm serve my_model \\", "  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "  see data/kb/no_such.json"):
            self.assertEqual(self.faults("explain", line), [], line)

    def test_what_an_engine_says_ends_where_the_lines_come_back(self):
        said = ["  Expected error: max_num_batched_sequences_of_mine is", "      too_small_for_that"]
        self.assertEqual(self.faults("plan", *said, "  Weights need 3 GiB."), [])
        self.assertEqual(len(self.faults("plan", *said, "  In weight_load.")), 1)

    def test_a_line_above_100_columns_fails(self):
        self.assertEqual(self.faults("plan", "  " + "word " * 19), [])
        self.assertEqual(self.faults("plan", "  " + "word " * 20), ["102 columns"])
        self.assertEqual(self.faults("plan", "  " + "宽" * 50), ["102 columns"])
        self.assertEqual(self.faults("plan", "    vllm serve model --max-model-len 8192 " + "--more " * 20, "     7| " + "word " * 30), [])

    def test_cells_that_touch_or_are_empty_fail(self):
        head = "release  answer          phase            needs GiB  KV tokens"
        self.assertEqual(self.faults("bisect", head, "0.9.2    will not start  loading weights      15.66          -"), [])
        self.assertEqual(self.faults("bisect", head, "0.9.2    will not start init_weights       15.66          -")[-1:], ["4 cells below 5"])
        self.assertEqual(self.faults("bisect", head, "0.9.2    will not start  loading weights      15.66"), ["4 cells below 5"])

    def test_an_unknown_answer_without_its_reason_fails(self):
        for line in ("UNKNOWN", "UNKNOWN  [kv_sizing]", "未知"):
            self.assertEqual(self.faults("plan", line, "  small on NVIDIA L4"), ["no reason behind it"], line)
        self.assertEqual(self.faults("plan", "UNKNOWN: recurrent states are not modelled"), [])


if __name__ == "__main__":
    unittest.main()
