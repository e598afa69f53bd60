"""A retired phrase in any kind of text that people read is found, with its place and the word to use: test_words.py BINARY"""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.abspath(sys.argv.pop(1))
PLANTED = "the engine will say"


class Words(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("README.md", "cli/main.c", "cli/options.def", "src/base/error.c", "bindings/python/oomsight/_abi.py", "docs/README.md", "docs/man",
                     "docs/reference/cli", "data/kb/vllm/context-too-long.json", "data/explain/causes.json", "data/explain/phases.json", "data/lang/zh.json",
                     "data/engines/vllm/levers.json", "tests/golden/small-llama", "tests/fixtures/models/small-llama", "tests/fixtures/kb/vllm/context-too-long",
                     "tools/words.tsv"):
            path, copy = os.path.join(ROOT, name), os.path.join(self.folder, name)
            if os.path.exists(path):
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, copy)
        self.write("tools/words_left.json", "{}")
        self.write("docs/clean.md", "Nothing here.\n")

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def plant(self, name, old, new):
        with open(os.path.join(self.folder, name), encoding="utf-8") as f:
            text = f.read()
        self.assertIn(old, text)
        self.write(name, text.replace(old, new, 1))

    def program(self, when):
        """The binary, with the phrase behind what it prints where its words have `when`."""
        path = self.write("oomsight", '#!/bin/sh\n"%s" "$@"; code=$?\ncase " $* " in *" %s "*) echo "%s";; esac\nexit $code\n' % (BINARY, when, PLANTED))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def check(self, kind, binary=BINARY):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "check_words.py"), binary, "--root", self.folder, "--kinds", kind],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def found(self, kind, where, binary=BINARY):
        code, text = self.check(kind, binary)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, where)
        self.assertIn("say Expected error", text)

    def test_what_is_there_passes(self):
        for kind in ("help", "output", "message", "data"):
            code, text = self.check(kind)
            self.assertEqual(code, 0, kind + text)

    def test_a_phrase_in_a_help_text(self):
        self.found("help", r"oomsight plan --help, line \d+", self.program("plan --help"))

    def test_a_phrase_in_a_report(self):
        for form in ("explain", "--format md", "--format html"):
            self.found("output", r"oomsight .*, line \d+", self.program(form) if form != "explain" else self.program("tests/fixtures/kb/vllm/context-too-long/positive.log"))

    def test_a_phrase_in_a_message(self):
        self.write("src/base/new.c", 'const char *f(void)\n{\n    return "the engine "\n           "will say this";\n}\n')
        self.found("message", r"src/base/new.c:3")

    def test_a_phrase_in_a_message_of_python(self):
        self.write("bindings/python/oomsight/new.py", '\nraise ValueError("%s")\n' % PLANTED)
        self.found("message", r"new.py:2")

    def test_a_phrase_in_the_knowledge_base(self):
        self.plant("data/kb/vllm/context-too-long.json", '"en": "', '"en": "%s ' % PLANTED)
        self.found("data", r"data/kb/vllm/context-too-long.json:\d+")

    def test_a_phrase_in_a_reason_of_explain(self):
        self.plant("data/explain/causes.json", '"why": "', '"why": "%s ' % PLANTED)
        self.found("data", r"data/explain/causes.json:\d+")

    def test_a_phrase_with_a_translation(self):
        self.plant("data/lang/zh.json", '{\n "', '{\n "%s ' % PLANTED)
        self.found("data", r"data/lang/zh.json:2")

    def test_a_phrase_in_a_page_beyond_what_is_left(self):
        shutil.rmtree(os.path.join(self.folder, "docs"))
        self.write("README.md", "Good.\n")
        self.write("docs/a.md", "Good.\n%s\n" % PLANTED)
        self.found("docs", r"docs/a.md:2")
        self.write("tools/words_left.json", '{"docs": 1}')
        self.assertEqual(self.check("docs")[0], 0)
        self.write("docs/b.md", PLANTED + "\n")
        self.assertEqual(self.check("docs")[0], 1)

    def test_nothing_to_read_is_no_pass(self):
        shutil.rmtree(os.path.join(self.folder, "docs"))
        os.remove(os.path.join(self.folder, "README.md"))
        self.assertEqual(self.check("docs")[0], 1)


unittest.main()
