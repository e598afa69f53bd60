#!/usr/bin/env python3
"""tools/release.py and older.py: data of an older release has nothing of later ones; the page has what changed and no more than fits on a screen or two, and a release that cannot be asked is a failure with its reason."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import fingerprints  # noqa: E402
import older  # noqa: E402
import release  # noqa: E402


def doubt(rule, unit, **more):
    return dict({"rule": rule, "unit": unit, "added": ["x = 1", "y = 2"], "removed": 1}, **more)


class Release(unittest.TestCase):
    def test_rules_of_one_unit_are_one_line(self):
        lines = list(release.rules_told({"rules": {"doubt": [doubt("a", "f.py:f"), doubt("b", "f.py:g", added=[], removed=3), doubt("c", "f.py:f"), doubt("d", "f.py:h", gone=True)]}}))
        self.assertEqual(lines, ["- a, c: `x = 1`", "- b: 3 statements less", "- d: gone"])

    def test_a_page_has_fewer_than_80_lines_whatever_changed(self):
        lines = release.page_of("0.34.0", "0.33.0", [("Rules", ["- %d" % i for i in range(300)])])
        self.assertLess(len(lines), 80)
        self.assertIn("lines more are left out", lines[-1])
        self.assertEqual(release.page_of("0.34.0", "0.33.0", [("Rules", ["- a"])])[-1], "- a")

    def test_differences_begin_with_the_first_class(self):
        told = "    2  accepts: x\n    --gpu h100 a\n      engine: no\n      plan:   yes\n    1  field y\nvLLM 0.34.0: 9 commands, 1 not judged\n"
        self.assertEqual(release.differences(told), ["- 2  accepts: x", "- --gpu h100 a", "- engine: no", "- plan:   yes", "- 1  field y", "- vLLM 0.34.0: 9 commands, 1 not compared"])
        self.assertEqual(release.differences("asking\nvLLM 0.34.0: 9 commands"), ["- vLLM 0.34.0: 9 commands"])

    def test_flags_that_came_and_went_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "engines/vllm"))
            with open(os.path.join(folder, "engines/vllm/flags.json"), "w", encoding="utf-8") as file:
                file.write('{"flags": [{"names": ["--a"]}, {"names": ["--b"]}, {"names": ["--old"], "until": "0.1.0"}]}')
            told = " ".join(release.flags_told({"flags": [{"names": ["--a"]}, {"names": ["--c", "-c"], "negative": ["--no-c"]}]}, folder, "0.33.0"))
        self.assertEqual(told, "New: `--c`. Gone: `--b`.")

    def test_data_of_an_older_release_has_what_went_later_and_nothing_that_came_later(self):
        rows = [{"versions": ["0.31.0", "0.32.0"], "measured": ["0.32.0"]}, {"rule": "a", "steps": [{"since": "0.8.0", "value": 1}, {"since": "0.32.0", "value": 2}]},
                {"rule": "new", "steps": [{"since": "0.32.0", "value": 2}]}, {"spans": [["0.8.0", "0.31.0"], ["0.32.0", None]], "past": [["0.8.0", "0.30.0"]]},
                {"choices": [None, "x"], "until": "0.31.0", "pair": ["x", None]}, {"until": "0.30.0"}, {"since": "0.33.0"}]
        self.assertEqual(older.cut(rows, "0.31.0"),
                         [{"versions": ["0.31.0"]}, {"rule": "a", "steps": [{"since": "0.8.0", "value": 1}]}, {"spans": [["0.8.0", None]], "past": [["0.8.0", "0.30.0"]]},
                          {"choices": [None, "x"], "pair": ["x", None]}, {"until": "0.30.0"}])

    def test_no_table_of_an_older_release_names_a_later_one(self):
        last, newest = fingerprints.book()[0][-2:]
        with tempfile.TemporaryDirectory() as folder:
            engine = os.path.join(older.older(folder, last), "engines/vllm")
            self.assertFalse(os.path.exists(os.path.join(engine, "fingerprints.json")))  # those of the newest would say that nothing changed
            for name in os.listdir(engine):
                with open(os.path.join(engine, name), encoding="utf-8") as file:
                    self.assertNotIn('"%s"' % newest, file.read(), name)
            with open(os.path.join(engine, "env.json"), encoding="utf-8") as file:
                self.assertIn('{"name":"VLLM_LOGGING_LEVEL"', file.read())

    def test_nor_does_one_of_the_other_engine(self):
        with tempfile.TemporaryDirectory() as folder:
            data = older.older(folder, "0.5.20", None, "sglang")
            self.assertIn("0.33.0", fingerprints.read(os.path.join(data, "engines/vllm/flags.json"))["versions"])
            flags = fingerprints.read(os.path.join(data, "engines/sglang/flags.json"))
            self.assertEqual(flags["versions"][-1], "0.5.20")
            self.assertFalse([flag["names"][0] for flag in flags["flags"] if older.number(flag["since"]) > [0, 5, 20]])

    def test_a_release_that_cannot_be_installed_fails_with_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            fakes = {"df": "echo; echo / 1 1 99999999", "python3": 'mkdir -p "$3"',  # room enough, and an environment in no time
                     "uv": "printf '%s\\n' '  x No solution' '  ╰─▶ Because there is no version' '      of vllm==9.9.9, it fails.' >&2; exit 1"}
            for name, body in fakes.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
                    file.write(f"#!/bin/sh\n{body}\n")
            env = dict(os.environ, PATH=folder + ":" + os.environ["PATH"], OOMSIGHT_VENVS=os.path.join(folder, "venvs"))
            page = os.path.join(folder, "page.md")
            done = subprocess.run([sys.executable, os.path.join(ROOT, "tools/release.py"), "none", "9.9.9", "--page", page], env=env, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("Because there is no version of vllm==9.9.9, it fails.", done.stdout)
            self.assertFalse(os.path.exists(page))


if __name__ == "__main__":
    unittest.main()
