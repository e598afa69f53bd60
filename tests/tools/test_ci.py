#!/usr/bin/env python3
"""What .ci/run does: invariants are walked in its test builds and in none that is shipped, mutants and fuzz targets are run and not listed."""
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
    tested = set(re.findall(r"^step tests_\w+ .*?\b(build(?:-\w+)?)\b(?!\S)", text, re.M)) | set(re.findall(r"meson test -C (build-\w+)", text))
    made = re.findall(r"^(?:step build_\w+ build|.*meson setup) (build(?:-\w+)?)\b(.*)$", text, re.M)
    return sorted(name for name in tested - {"build"} if not any(n == name and CHECKED.search(options) for n, options in made))


class Ci(unittest.TestCase):
    def test_invariants_are_walked_in_test_builds(self):
        text = read(".ci/run")
        self.assertEqual(unchecked(text), [])
        self.assertEqual(unchecked(text.replace("-Dchecks=true", "")), ["build-clang", "build-own"])
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
        self.assertRegex(read(".ci/run"), r"(?m)^step \w+ tools/mutants\.py --part 0\.1$")
        self.assertRegex(read("Makefile"), r"(?m)^mutants:.*\n\t@tools/mutants\.py$")

    def test_fuzz_targets_search_with_a_new_seed(self):
        text = read(".ci/run")
        self.assertNotIn("FUZZ_SEED", text)
        seconds = int(re.search(r"FUZZ_SECONDS=(\d+)", text).group(1))
        self.assertGreaterEqual(seconds, 10)
        targets = [name for name in os.listdir(os.path.join(ROOT, "tests/fuzz")) if re.match(r"fuzz_\w+\.c$", name)]
        self.assertLess(seconds * len(targets) / 2, 240)  # two at a time


if __name__ == "__main__":
    unittest.main()
