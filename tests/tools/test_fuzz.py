#!/usr/bin/env python3
"""tools/fuzz.sh: a search has a new seed that can be repeated, keeps what it finds, and is no replay."""
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = """#!/bin/sh
echo "$@" >"$TOLD"
prefix=.; for word; do case $word in -artifact_prefix=*) prefix=${word#*=} ;; esac; done
[ -z "${CRASH:-}" ] || { echo bytes >"$prefix/crash-1"; exit 1; }
echo "stat::number_of_executed_units: ${UNITS:-100000}" >&2
"""


class Fuzz(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.folder = self.held.name
        path = os.path.join(self.folder, "tests/fuzz")
        os.makedirs(path)
        with open(os.path.join(path, "fuzz_plan"), "w", encoding="utf-8") as f:
            f.write(TARGET)
        os.chmod(os.path.join(path, "fuzz_plan"), 0o755)

    def tearDown(self):
        self.held.cleanup()

    def fuzz(self, **env):
        found, told = os.path.join(self.folder, "found"), os.path.join(self.folder, "told")
        done = subprocess.run([os.path.join(ROOT, "tools/fuzz.sh"), self.folder, "plan"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                              universal_newlines=True, env=dict(os.environ, FUZZ_FOUND=found, FUZZ_SECONDS="5", TOLD=told, **env))
        with open(told, encoding="utf-8") as f:
            return done.returncode, done.stdout, f.read().split()

    def test_a_new_seed_each_time_that_is_printed_and_can_be_given(self):
        seeds = set()
        for _ in range(2):
            code, out, words = self.fuzz()
            self.assertEqual(code, 0, out)
            seed = re.search(r"seed (\d+)", out).group(1)
            self.assertIn("-seed=" + seed, words)
            self.assertIn("-max_total_time=5", words)
            seeds.add(seed)
        self.assertEqual(len(seeds), 2)
        self.assertIn("-seed=7", self.fuzz(FUZZ_SEED="7")[2])

    def test_what_is_found_is_kept_and_fails(self):
        code, out, _ = self.fuzz(CRASH="1")
        self.assertEqual(code, 1)
        self.assertIn("crash-1", out)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "found/crash-1")))

    def test_a_replay_is_no_search(self):
        code, out, _ = self.fuzz(UNITS="9")
        self.assertEqual(code, 1)
        self.assertIn("a replay, no search", out)

    def test_a_slow_target_begins_with_a_few(self):
        for few in ("1", "3"):
            _, out, _ = self.fuzz(FUZZ_SAMPLE=few)
            self.assertIn(", %s inputs to begin with" % few, out)


if __name__ == "__main__":
    unittest.main()
