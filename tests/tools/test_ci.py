#!/usr/bin/env python3
"""What .ci/run does: its tiers are together what a plain run is, invariants are walked in its test builds and in none that is shipped, mutants
and fuzz targets are run and not listed."""
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHECKED = re.compile(r"-Dchecks=true|-Db_sanitize=")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return re.sub(r"^\s*#.*\n", "", f.read(), flags=re.M).replace("\\\n", " ")


def unchecked(text):
    """Builds of a CI script whose tests are run without their invariants; `build` is the one that is shipped."""
    tested = set(re.findall(r"^\s*step tests_\w+ .*?\b(build(?:-\w+)?)\b(?!\S)", text, re.M)) | set(re.findall(r"meson test -C (build-\w+)", text))
    made = re.findall(r"^(?:\s*step build_\w+ build|.*meson setup) (build(?:-\w+)?)\b(.*)$", text, re.M)
    return sorted(name for name in tested - {"build"} if not any(n == name and CHECKED.search(options) for n, options in made))


def steps(*tiers, failing=None):
    """The steps of a run in which nothing is done but that `failing` fails, its last line and its exit code."""
    with open(os.path.join(ROOT, ".ci/run"), encoding="utf-8") as f:
        text = f.read()
    done = '"$@" >"$logs/$name.log" 2>&1\n'
    assert text.count(done) == 1
    with tempfile.TemporaryDirectory() as folder:
        for name in (".ci", "tests/fuzz"):
            os.makedirs(os.path.join(folder, name))
        for name in ("a", "b", "c"):
            open(os.path.join(folder, "tests/fuzz/fuzz_%s.c" % name), "w", encoding="utf-8").close()
        with open(os.path.join(folder, ".ci/run"), "w", encoding="utf-8") as f:
            f.write(text.replace(done, ': >"$logs/$name.log"; [ "$name" != "%s" ]\n' % failing))
        ran = subprocess.run(["bash", ".ci/run", *tiers], cwd=folder, capture_output=True, text=True, check=False)
    return re.findall(r"(?m)^(?:ok|FAIL|skip) +(\w+)", ran.stdout), ran.stdout.splitlines()[-1:], ran.returncode


class Ci(unittest.TestCase):
    def test_tiers_are_together_a_plain_run(self):
        plain, last, code = steps()
        self.assertEqual((last, code), (["%d passed, 0 failed" % len(plain)], 0))
        self.assertEqual(len(plain), len(set(plain)))
        parts = {tier: steps(tier)[0] for tier in ("quick", "full", "engines")}
        first = {"packages", "build_gcc"}  # what every tier begins with
        for tier, names in parts.items():
            self.assertLessEqual(first, set(names), tier)
            self.assertEqual(len(names), len(set(names)), tier)
        self.assertEqual(sorted(plain), sorted(first | set().union(*parts.values())))
        for one, other in (("quick", "full"), ("quick", "engines"), ("full", "engines")):
            self.assertEqual(set(parts[one]) & set(parts[other]), first)
        self.assertLessEqual({"layers", "format", "tests_quick", "documents"}, set(parts["quick"]))
        self.assertLessEqual({"fuzz_a", "fuzz_b", "fuzz_c", "tests_sanitized", "score_truth", "speed"}, set(parts["full"]))
        self.assertLessEqual({"engine", "oracle_torch", "oracle_load", "oracle_vllm", "oracle_arguments", "matrix_dryrun"}, set(parts["engines"]))

    def test_a_step_that_fails_is_told_in_every_tier(self):
        for tiers, failing in (((), "oracle_load"), ((), "fuzz_c"), (("quick",), "documents"), (("full",), "tidy"), (("engines",), "oracle_torch")):
            names, last, code = steps(*tiers, failing=failing)
            self.assertEqual((last, code), (["%d passed, 1 failed" % (len(names) - 1)], 1), failing)

    def test_a_tier_that_is_not_there_is_refused(self):
        self.assertEqual(steps("quik"), ([], [], 2))

    def test_every_suite_is_run_once_by_the_first_build(self):
        suites = set()
        for folder, _, names in os.walk(os.path.join(ROOT, "tests")):
            if "meson.build" in names:
                with open(os.path.join(folder, "meson.build"), encoding="utf-8") as f:
                    for word in re.findall(r"suite: (\[[^\]]*\]|'\w+')", f.read()):
                        suites |= set(re.findall(r"'(\w+)'", word))
        quick, full = (set(re.findall(r" --suite (\w+)", re.search(r"(?m)^ *step %s tests build .*$" % name, read(".ci/run")).group())) for name in ("tests_quick", "tests_gcc"))
        self.assertEqual(quick | full | {"tools"}, suites)  # tools are unit tests, or sweeps
        self.assertEqual(quick & full, set())
        self.assertRegex(read(".ci/run"), r"(?m)^ *step tests_quick .* --no-suite sweep$")

    def test_invariants_are_walked_in_test_builds(self):
        text = read(".ci/run")
        self.assertEqual(unchecked(text), [])
        self.assertEqual(unchecked(text.replace("-Dchecks=true", "")), ["build-clang"])
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

    def test_mutants_are_run(self):
        self.assertRegex(read(".ci/run"), r"(?m)^\s*step \w+ tools/mutants\.py --part 0\.1 --seed \"\$seed\"$")
        self.assertRegex(read("Makefile"), r"(?m)^mutants:.*\n\t@tools/mutants\.py$")

    def test_fuzz_targets_search_by_a_seed_of_the_sources(self):
        text = read(".ci/run")
        self.assertRegex(text, r"(?m)^seed=.*git rev-parse HEAD:src")
        self.assertIn("FUZZ_SEED=${FUZZ_SEED:-$seed}", text)
        seconds = int(re.search(r"FUZZ_SECONDS=\$\{FUZZ_SECONDS:-(\d+)\}", text).group(1))
        self.assertGreaterEqual(seconds, 10)
        targets = [name for name in os.listdir(os.path.join(ROOT, "tests/fuzz")) if re.match(r"fuzz_\w+\.c$", name)]
        self.assertLess(seconds * len(targets) / 2, 240)  # two at a time


if __name__ == "__main__":
    unittest.main()
