#!/usr/bin/env python3
"""A dead link, a heading that is not there, a page above its size, a figure that no result gives, an output that is not printed, a command that does not
work as it is typed, an option that nobody has: check_docs.py and figures.py see each."""
import contextlib
import io
import os
import shutil
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import check_docs  # noqa: E402
import figures  # noqa: E402
import page_blocks  # noqa: E402
import terminal  # noqa: E402


class Docs(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.write("README.md", "# Title\n\n[page](docs/page.md) [part](docs/page.md#a-part-of-it)\n")
        self.write("docs/page.md", "# Page\n\n## A `part` of it\n\n```\n[no](link.md)\n```\n")

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def test_links_that_lead_somewhere_pass(self):
        self.assertEqual(list(check_docs.links(self.root)), [])

    def test_a_dead_link_is_named(self):
        self.write("docs/other.md", "[gone](nowhere.md)\n")
        self.assertEqual(list(check_docs.links(self.root)), ["docs/other.md: no nowhere.md"])

    def test_a_heading_that_is_not_there_is_named(self):
        self.write("docs/other.md", "[gone](page.md#nothing)\n")
        self.assertEqual(list(check_docs.links(self.root)), ["docs/other.md: no heading #nothing in docs/page.md"])

    def test_a_long_page_is_named_and_generated_reference_may_be_long(self):
        self.assertEqual(list(check_docs.sizes(self.root)), [])
        self.write("docs/reference/long.md", "word " * 1300)
        self.assertEqual(list(check_docs.sizes(self.root)), [])
        self.write("docs/how-to/long.md", "word " * 1300)
        self.assertEqual(list(check_docs.sizes(self.root)), ["docs/how-to/long.md: 1300 words, at most 1200"])

    def test_too_many_words_and_a_large_readme_are_named(self):
        self.write("docs/reference/long.md", "word " * (check_docs.WORDS_IN_ALL + 100))
        self.write("README.md", "x" * 6001)
        self.assertEqual(len(list(check_docs.sizes(self.root))), 2)
        self.write("docs/reference/long.md", "# Long\n\nWritten by `tools/long.py`.\n" + "word " * (check_docs.WORDS_IN_ALL + 100))
        self.assertEqual(len(list(check_docs.sizes(self.root))), 1)


PROGRAM = """#!/bin/sh
case "$*" in
"completion words ") printf 'plan\\ngpus\\n' ;;
"completion words plan --") printf -- '--gpu\\n--offline\\n--json\\n' ;;
"completion words gpus --") printf -- '--json\\n' ;;
"plan --help") echo 'usage: oomsight plan [options] -- COMMAND' ;;
"gpus --help") echo 'usage: oomsight gpus' ;;
gpus) printf 'one\\ntwo\\nthree\\n' ;;
plan*./small*) [ -d small ] || { echo 'oomsight: ./small: no such directory' >&2; exit 3; } ;;
plan*wrong*) exit 2 ;;
plan*) echo 'WILL NOT START'; exit 1 ;;
esac
"""
PAGE = """# Page

```console
$ oomsight gpus
one
...
three
$ oomsight plan --offline --gpu x \\
    -- vllm serve M
WILL NOT START
```

Use `plan --gpu`, `--max-model-len`, and then:

```sh
mkdir kept && cd kept
oomsight gpus >list   # a comment
test -f ../docs/page.md && test -f list
```

```text
oomsight plan [options] -- COMMAND
```

<!-- not run: docker -->
```sh
docker logs x | oomsight explain
```

    {"indented": "JSON"}
"""


class Pages(unittest.TestCase):
    """A small repository with one page that is true; then one thing of it is not."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.write("README.md", "# Title\n")
        self.write("program", PROGRAM)
        self.write("data/engines/e/flags.json", '{"flags": [{"names": ["--max-model-len"], "changes": [{"negative": "--no-x-y"}]}]}')
        self.write("tests/fixtures/models/small/config.json", "{}")
        self.write("tools/tool.py", "--known")
        self.write("docs/page.md", PAGE)
        os.chmod(os.path.join(self.root, "program"), 0o755)

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def run_tool(self, *more):
        """(exit code, what it printed)"""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            return check_docs.main([os.path.join(self.root, "program"), "--root", self.root, *more]), out.getvalue()

    def sees(self, words, text, path="docs/page.md"):
        self.write(path, text)
        code, printed = self.run_tool()
        self.assertEqual(code, 1, printed)
        for expected in (words, path, "documents: 1 not"):
            self.assertIn(expected, printed)

    def test_a_true_page_passes_and_its_blocks_are_counted_by_kind(self):
        code, printed = self.run_tool()
        self.assertEqual(code, 0, printed)
        self.assertIn("blocks: 1 compared, 1 run, 1 usage, 1 other\nnot run here: 1 docker\n", printed)
        self.assertFalse(os.path.exists(os.path.join(self.root, "kept")))

    def test_false_output_behind_a_command_fails_and_is_rewritten(self):
        self.sees("+WILL NOT START", PAGE.replace("WILL NOT START", "WILL START"))
        self.sees("-four", PAGE.replace("three\n", "four\n"))
        self.write("docs/page.md", PAGE.replace("WILL NOT START", "WILL START"))
        self.assertEqual(self.run_tool("--rewrite")[0], 0)
        with open(os.path.join(self.root, "docs/page.md")) as f:
            self.assertEqual(f.read(), PAGE)

    def test_false_output_in_a_block_without_a_prompt_fails(self):
        self.sees("a block without a language", PAGE + "```\noomsight gpus\nfour\n```\n")
        self.sees("a block without a language", PAGE + "~~~\nWILL START\n~~~\n")
        self.sees("an indented block", PAGE + "\ntext\n\n    WILL START\n")
        self.sees("exit code 127", PAGE + "```sh\noomsight gpus\nfour\n```\n")
        self.sees("or no `$`", PAGE + "```console\noomsight gpus\nfour\n```\n")
        self.sees("in a block that is not run", PAGE + "```text\n$ oomsight gpus\nfour\n```\n")
        self.sees("no --help has the usage", PAGE + "```text\noomsight gpus\nfour\n```\n")

    def test_an_output_that_is_left_out_altogether_is_not_compared_and_fails(self):
        self.sees("its output is `...` alone", PAGE.replace("one\n...\nthree\n", "...\n"))
        self.sees("its output is `...` alone", PAGE.replace("one\n...\nthree\n", "...\n\n...\n"))

    def test_an_option_that_nobody_has_fails(self):
        for text, words in (("Use --no-such.", "--no-such is not"), ("`--no-such 3`", "--no-such is not"), ("`gpus --gpu x`", "gpus has no --gpu"),
                            ("`oomsight plan --max-model-len 3 -- vllm serve M`", "plan has no --max-model-len"), ("`oomsight plan -- vllm serve M --gup x`", "--gup is not"),
                            ("`tools/tool.py --unknown`", "tools/tool.py has no --unknown"), ("`tools/gone.py --known`", "no tools/gone.py"),
                            ("```yaml\nargs: [--no-such]\n```", "--no-such is not")):
            self.sees(words, PAGE + "\n" + text + "\n")
        self.write("docs/page.md", PAGE + "\n`--no-x-y` `--max_model_len` `tools/tool.py --known` `oomsight plan --gpu x -- vllm serve M --max-model-len 3`\n")
        self.assertEqual(self.run_tool()[0], 0)
        self.sees("--no-such is not", "command: vllm serve M --no-such\n", "examples/a.yaml")

    def test_a_command_that_fails_fails(self):
        self.sees("exit code 2", PAGE + "```sh\noomsight plan wrong\n```\n")
        self.sees("exit code 1", PAGE + "```sh\noomsight gpus | grep four\n```\n")
        self.sees("was not reached", PAGE + "```sh\nexit 0\n```\n")

    def test_a_model_that_the_reader_does_not_have_fails(self):
        self.sees("exit code 3: oomsight: ./small: no such directory", PAGE + "```console\n$ oomsight plan --offline -- vllm serve ./small\noomsight: ./small: no such directory\n```\n")

    def test_what_a_page_leaves_is_not_there_on_the_next(self):
        self.sees("exit code 1", "```sh\ntest -d kept\n```\n", "docs/second.md")

    def test_a_command_that_names_a_place_outside_the_clone_is_not_run_and_fails(self):
        place = os.path.join(self.root, "made")
        self.sees("outside the clone", PAGE + "```sh\nmkdir %s\n```\n" % place)
        self.assertFalse(os.path.exists(place))

    def test_an_output_that_depends_on_the_hub_fails(self):
        self.sees("depends on the Hugging Face Hub", PAGE.replace("--offline ", ""))

    def test_a_reason_must_be_one_that_applies(self):
        self.sees("no reason 'time'", PAGE.replace("not run: docker", "not run: time"))
        self.sees("nothing in this block needs 'docker'", PAGE.replace("docker logs x |", "cat x |"))
        self.sees("only a block of commands", PAGE + "<!-- not run: docker -->\n```yaml\na: docker\n```\n")

    def test_a_release_that_was_never_made_fails(self):
        for line in ("run: pip install oomsight==0.2.0", "run: pip install oomsight", "uses: <this repository>@v0.2.0", "rev: v0.2.0"):
            self.sees("a release that does not exist", line + "\n", "examples/a.yml")

    def test_fewer_compared_blocks_or_more_that_are_not_run_fail(self):
        least = {**page_blocks.AT_LEAST, **page_blocks.AT_MOST, **{reason: most for reason, (_, most) in page_blocks.NOT_RUN.items()}}
        self.assertEqual(list(page_blocks.held(least)), [])
        for what in page_blocks.AT_LEAST:
            self.assertEqual(len(list(page_blocks.held({**least, what: least[what] - 1}))), 1)
        for what in [*page_blocks.AT_MOST, *page_blocks.NOT_RUN]:
            self.assertEqual(len(list(page_blocks.held({**least, what: least[what] + 1}))), 1)


class Install(unittest.TestCase):
    def test_readme_and_install_page_type_the_same(self):
        first = [next(block for block in page_blocks.parse(figures.read(os.path.join(ROOT, page))) if block.reason == "root").lines for page in ("README.md", "docs/install.md")]
        self.assertEqual(*first)


class Figures(unittest.TestCase):
    def test_the_pages_have_the_figures_of_the_results(self):
        self.assertEqual(figures.run(False), 0)

    def test_a_planted_figure_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "README.md")
            text = figures.read(os.path.join(ROOT, "README.md"))
            self.assertIn("46 of 60 (77 %)", text)
            with open(page, "w") as f:
                f.write(text.replace("46 of 60 (77 %)", "56 of 60 (93 %)"))
            pages, figures.pages = figures.pages, lambda: [page]
            try:
                self.assertEqual(figures.run(False), 1)
                self.assertEqual(figures.run(True), 0)
            finally:
                figures.pages = pages
            self.assertEqual(figures.read(page), text)


class Terminal(unittest.TestCase):
    def test_colours_and_spaces_are_kept(self):
        drawn = terminal.svg("oomsight x", ["\x1b[31mBAD\x1b[0m   <tag>"])
        self.assertIn('fill="#ff7b72"', drawn)
        self.assertIn("&lt;tag&gt;", drawn)


if __name__ == "__main__":
    unittest.main()
