#!/usr/bin/env python3
"""What .ci/run and .ci/nightly do: test_ci.py BUILD. Every suite is run by one of them, invariants are walked in test builds and in none that is
shipped, a step that fails is told, nothing in the gate is drawn or judged by a clock, and what passed is stamped."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else None
CHECKED = re.compile(r"-Dchecks=true|-Db_sanitize=")
CLOCK = re.compile(r"\btime\.(?:time|monotonic|perf_counter|process_time|sleep)\b|\bclock_(?:gettime|t)\b|\b(?:ru_[us]time|os\.times)\b|\b(?:u|nano)sleep\(|\b(?:alarm|setitimer)\(|\bgetloadavg\b|^\s*sleep [0-9]", re.M)
DRAWN = re.compile(r"\brandom\.(?:Random\(\)|seed\(\)|random\(|choice\(|shuffle\(|sample\()|/dev/urandom|\bos\.urandom\b|\bsrand\(time")
ELSEWHERE = re.compile(r"\.cache/oomsight|[\"'/]shared[\"'/]")  # an environment of an engine, or data that a clone lacks
# Files of the gate that name a clock or draw, and why neither decides.
HARMLESS = {
    "tests/web/test_app.py": "waits for a condition, 600 s at most; times are judged with OOMSIGHT_CLOCKS",
    "tests/unit/test_serve.c": "judged where clocks_decide()", "tests/unit/test_flags.c": "judged where clocks_decide()",
    "tests/unit/test_literals.c": "judged where clocks_decide()", "tests/unit/test_safetensors.c": "judged where clocks_decide()",
    "tests/unit/test_secret.c": "judged where clocks_decide()", "tests/unit/test_sim.c": "10 s of a processor where 0.1 is usual",
    "tests/unit/test_tail.c": "a clock of its own, which says when files are written",
    "tests/unit/test_locate.c": "a hang is ended after 100 s", "tests/shim/fake_program.c": "ends itself after 200 s where the test could not",
    "tests/cli/matrix_claims.sh": "the sleep keeps a start alive while another process asks for it",
    "tests/unit/hub_server.py": "the server that is slow", "tests/secrets/test_bundle.py": "30 s where one is usual",
    "tests/shim/test_collectives.c": "20 s where less than one is usual; the sleep keeps a peer alive while another waits",
    "tests/shim/test_guard.c": "a thread is cancelled at any moment: all must hold; a hang is ended after 200 s",
    "tests/shim/test_guard_sabotage.c": "a process is killed at any moment: all must hold; a hang is ended after 200 s",
    "tests/shim/asking.py": "a process that hangs for a minute is ended within 15 s",
    "tests/shim/beside.py": "waits for a file, 20 s at most", "tests/shim/faults.py": "bytes without meaning: any will do",
    "tests/secrets/test_kinds.py": "`cost` alone is judged by time, in the suite clock",
    "tests/web/test_press.py": "waits for a condition", "tests/web/test_same.py": "times are printed", "tests/tools/test_ci.py": "this table",
    "tests/plan/answers.py": "a hang limit; the seed is fixed",
    "tests/oracle/promises.py": "the gate plans rows that are kept again; draws and minutes need the engine",
    "tests/oracle/sglang_commands.py": "the gate repeats answers that are kept; draws need the engine",
}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return re.sub(r"^\s*#.*\n", "", f.read(), flags=re.M).replace("\\\n", " ")


def unchecked(text):
    """Builds of a CI script whose tests are run without their invariants; `build` is the one that is shipped."""
    tested = set(re.findall(r"^\s*(?:step tests_\w+ )?tests (build-\w+)\b", text, re.M)) | set(re.findall(r"meson test -C (build-\w+)", text))
    made = re.findall(r"^.*\b(?:configure|build) (build-\w+)\b(.*)$", text, re.M)
    return sorted(name for name in tested if not any(n == name and CHECKED.search(options) for n, options in made))


def steps(script, *words, failing=None, dirty=False):
    """The steps of a run in which nothing is done but that `failing` fails; its last line, exit code and what is stamped."""
    done = '( time "$@" >"$logs/$name.log" 2>&1 ) 2>"$logs/$name.time"; code=$?\n'
    with tempfile.TemporaryDirectory() as folder:
        for name in (".ci", "tests/fuzz"):
            os.makedirs(os.path.join(folder, name))
        for name in ("a", "b", "c"):
            open(os.path.join(folder, "tests/fuzz/fuzz_%s.c" % name), "w", encoding="utf-8").close()
        for name in ("run", "nightly", "steps.sh"):
            with open(os.path.join(ROOT, ".ci", name), encoding="utf-8") as f:
                text = f.read()
            assert name != "steps.sh" or text.count(done) == 1
            with open(os.path.join(folder, ".ci", name), "w", encoding="utf-8") as f:
                f.write(text.replace(done, ': >"$logs/$name.log"; : >"$logs/$name.time"; [ "$name" != "%s" ]; code=$?\n' % failing))
        git = lambda *words: subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
        git("init", "-q"), git("add", "-A"), git("commit", "-q", "-m", "a")
        if dirty:
            open(os.path.join(folder, "new"), "w", encoding="utf-8").close()
        ran = subprocess.run(["bash", ".ci/" + script, *words], cwd=folder, capture_output=True, text=True, check=False)
        stamp = os.path.join(folder, ".git", "gate-passed")
        stamped = False
        if os.path.exists(stamp):
            with open(stamp, encoding="utf-8") as f:
                stamped = f.read().strip() == git("rev-parse", "HEAD^{tree}")
    return re.findall(r"(?m)^(?:ok|FAIL|skip) +(\w+)", ran.stdout), ran.stdout.splitlines()[-1:], ran.returncode, stamped


def introspected():
    return json.loads(subprocess.run(["meson", "introspect", "--tests", BUILD], capture_output=True, text=True, check=True).stdout)


def suites_of(test):
    return {suite.rpartition(":")[2] for suite in test["suite"]}


def sources(test):
    """The files of the tree that a test is made of, as far as its command names them."""
    for word in test["cmd"]:
        path = os.path.relpath(os.path.realpath(word), ROOT)
        name = re.sub(r"^test_shim_(\w+?)(?:_1[23])?$", r"test_\1", os.path.basename(word))
        for found in [path] + [os.path.join("tests", folder, name + ".c") for folder in ("unit", "shim", "match")]:
            if found.startswith("tests/") and os.path.isfile(os.path.join(ROOT, found)) and found.endswith((".py", ".sh", ".c")):
                yield found


class Ci(unittest.TestCase):
    def test_a_run_in_which_all_passes_is_stamped(self):
        names, last, code, stamped = steps("run")
        self.assertEqual((last, code, stamped), (["%d passed, 0 failed" % len(names)], 0, True))
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual({"layers", "format", "build", "tests", "sanitized", "words", "documents", "wheel", "app_page", "seeds", "score_truth"}, set(names))

    def test_a_step_that_fails_is_told_and_nothing_is_stamped(self):
        for script, failing in (("run", "documents"), ("run", "sanitized"), ("run", "app_page"), ("nightly", "fuzz_c"), ("nightly", "oracle_arguments"), ("nightly", "tidy")):
            names, last, code, stamped = steps(script, failing=failing)
            self.assertEqual((last, code, stamped), (["%d passed, 1 failed" % (len(names) - 1)], 1, False), failing)

    def test_the_time_of_a_lane_is_not_that_of_the_step_during_which_it_ends(self):
        script = """
            . .ci/steps.sh
            mkfifo "$logs/ends"
            counts() { local i; for ((i = 0; i < 200000; i++)); do :; done; }
            waits() { cat "$logs/ends"; sleep 0.5; }
            other() { step counted counts; echo >"$logs/ends"; }
            lane other other; step waited waits; joined other
            cat "$logs/counted.time" "$logs/waited.time"
        """
        ran = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
        counted, waited = (sum(map(float, line.split())) for line in ran.stdout.splitlines()[-2:])
        self.assertGreater(counted, waited, ran.stdout)

    def test_a_tree_with_changes_is_not_stamped(self):
        self.assertEqual(steps("run", dirty=True)[2:], (0, False))

    def test_the_parts_are_together_the_nightly_run(self):
        whole = steps("nightly")[0]
        self.assertEqual(len(whole), len(set(whole)))
        parts = {part: set(steps("nightly", part)[0]) for part in ("builds", "searches", "deliveries", "speeds", "engines")}
        first = {"packages", "browser", "build"}
        self.assertEqual(set(whole), set().union(*parts.values()))
        self.assertTrue(all(first <= names for names in parts.values()))
        self.assertLessEqual({"fuzz_a", "fuzz_b", "fuzz_c"}, parts["searches"])
        self.assertLessEqual({"engine", "oracle_torch", "oracle_load", "oracle_vllm", "oracle_arguments", "matrix_dryrun"}, parts["engines"])

    def test_a_word_that_is_not_a_part_is_refused(self):
        self.assertEqual(steps("run", "quick"), ([], [], 2, False))
        self.assertEqual(steps("nightly", "buidls"), ([], [], 2, False))

    @unittest.skipUnless(BUILD, "needs a build")
    def test_every_suite_is_run(self):
        suites = set().union(*(suites_of(test) for test in introspected()))
        asked = lambda path: set(re.findall(r" --suite (\w+)", read(path)))
        self.assertLessEqual(suites - {"tools"}, asked(".ci/run") | asked(".ci/nightly"))
        self.assertLessEqual({"sweep", "clock", "oracle"}, asked(".ci/nightly") - asked(".ci/run"))
        for line in re.findall(r"(?m)^.*\btests build.*$", read(".ci/run")):
            self.assertIn("--no-suite sweep --no-suite clock", line)

    @unittest.skipUnless(BUILD, "needs a build")
    def test_nothing_in_the_gate_is_drawn_or_judged_by_a_clock(self):
        found = set()
        for test in introspected():
            if not suites_of(test) & {"clock", "sweep", "oracle"}:
                found |= set(sources(test))
        self.assertGreater(len(found), 150)
        found |= {"tests/web/test_app.py", "tests/web/test_same.py"}
        told = {path for path in found if CLOCK.search(read(path)) or DRAWN.search(read(path))}
        self.assertEqual(sorted(told - set(HARMLESS)), [], "put the test into the suite clock, or say above why its clock decides nothing")
        self.assertEqual(sorted(path for path in found - {"tests/tools/test_ci.py"} if ELSEWHERE.search(read(path))), [], "the gate decides by the tree alone")
        self.assertEqual(sorted(path for path in HARMLESS if not os.path.exists(os.path.join(ROOT, path))), [])

    def test_invariants_are_walked_in_test_builds(self):
        for path in (".ci/run", ".ci/nightly"):
            self.assertEqual(unchecked(read(path)), [], path)
        self.assertEqual(unchecked(read(".ci/nightly").replace("-Dchecks=true", "")), ["build-clang"])
        self.assertRegex(read("Makefile"), r"(?m)^check:.*\n(?:\t.*\n)*\t.*setup(?:\.sh)? build-check -Dchecks=true")

    def test_what_is_shipped_has_none(self):
        for path in ("tools/portable.sh", "tools/wheels.sh", "tools/package.sh", "tools/app.sh", "packaging/Containerfile"):
            self.assertNotIn("-Dchecks", read(path), path)
        self.assertRegex(read("meson_options.txt"), r"option\('checks', type: 'boolean', value: false")

    def test_an_invariant_that_does_not_hold_ends_a_checked_build_only(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "a.c"), "w", encoding="utf-8") as f:
                f.write('#include "base/check.h"\nint main(int count, char **words) { (void)words; oos_assert(count > 1); return 0; }\n')
            for option, passes in (("-DOOS_CHECKS", False), ("-DNOTHING", True)):
                subprocess.run(["cc", option, "-I", os.path.join(ROOT, "src"), "-o", "a", "a.c"], cwd=folder, check=True)
                code = subprocess.run([os.path.join(folder, "a")], stderr=subprocess.DEVNULL, check=False).returncode
                self.assertEqual(code == 0, passes, option)

    def test_environments_of_engines_are_compiled(self):
        self.assertRegex(read("tools/engine_venv.sh"), r"uv pip install -q --compile-bytecode")

    def test_what_is_drawn_is_drawn_by_the_seed_that_is_printed(self):
        text = read(".ci/nightly")
        self.assertIn("seed=${SEED:-", text)
        self.assertIn('echo "seed $seed"', text)
        self.assertRegex(text, r'tools/mutants\.py --part 0\.1 --seed "\$seed"')
        self.assertIn("FUZZ_SEED=$seed ", text)
        self.assertNotIn("seed", read(".ci/run").replace("seeds", ""))
        self.assertRegex(text, r'tools/fuzz\.sh build-fuzz "\$1" "\$runs"')
        self.assertGreaterEqual(min(map(int, re.findall(r"runs=(\d+)", text))), 50)

    def test_what_a_search_found_becomes_an_input_of_the_corpus(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in (("found/plan/crash-1", "a"), ("found/plan/corpus-2", "b"), ("found/yaml/timeout-3", "c"), ("corpus/yaml/old", "c")):
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(content)
            keep = [sys.executable, os.path.join(ROOT, "tools/keep_found.py"), os.path.join(folder, "found"), "--corpus", os.path.join(folder, "corpus")]
            self.assertEqual(subprocess.run(keep, capture_output=True, check=False).returncode, 1)
            self.assertEqual(subprocess.run([*keep, "--write"], capture_output=True, check=False).returncode, 0)
            self.assertEqual(os.listdir(os.path.join(folder, "corpus/plan")), ["crash-ca978112ca1b"])
            self.assertEqual(os.listdir(os.path.join(folder, "corpus/yaml")), ["old"])
            self.assertEqual(subprocess.run(keep, capture_output=True, check=False).returncode, 0)

    def test_a_workflow_with_an_action_that_is_not_pinned_is_refused(self):
        sys.path.insert(0, os.path.join(ROOT, "tools"))
        import check_workflows
        folder = os.path.join(ROOT, ".github/workflows")
        files = [os.path.join(folder, name) for name in os.listdir(folder)]
        self.assertEqual(check_workflows.look_at_all(files), [])
        with tempfile.TemporaryDirectory() as work:
            for line, word in (("uses: actions/checkout@v4", "not pinned"), ("run: .ci/run quick", "no workflow runs .ci/nightly")):
                path = os.path.join(work, "a.yml")
                with open(path, "w", encoding="utf-8") as f:
                    f.write("on:\n  pull_request:\npermissions: {}\njobs:\n  a:\n    steps:\n      - %s\n" % line)
                self.assertTrue(any(word in told for told in check_workflows.look_at_all([path])), line)


if __name__ == "__main__":
    unittest.main()
