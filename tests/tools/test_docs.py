#!/usr/bin/env python3
"""A dead link, a heading that is not there, a page above its size, a figure that no result gives: check_docs.py and figures.py see each."""
import os
import shutil
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import check_docs  # noqa: E402
import figures  # noqa: E402
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
        self.write("docs/reference/long.md", "word " * 40100)
        self.write("README.md", "x" * 6001)
        self.assertEqual(len(list(check_docs.sizes(self.root))), 2)


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
