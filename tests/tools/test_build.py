#!/usr/bin/env python3
"""What a build and its packages promise, as far as it can be seen in seconds: test_build.py BUILD. What takes minutes or a system of its own is in
tests/packages."""
import configparser
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else None
sys.path.insert(0, os.path.join(ROOT, "tools"))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.split("\0") if path and os.path.isfile(os.path.join(ROOT, path))]


def packages(text):
    """The lists of Debian packages that a text says to install."""
    lines = text.replace("\\\n", " ")
    return [set(re.findall(r"(?<![\w-])[a-z][a-z0-9+.-]+", found)) for found in re.findall(r"apt(?:-get)? install (.*)", lines)]


class Build(unittest.TestCase):
    def test_every_list_of_packages_is_the_one_that_the_build_needs(self):
        libraries = {"jansson": "libjansson-dev", "yaml-0.1": "libyaml-dev", "libcurl": "libcurl4-openssl-dev", "libarchive": "libarchive-dev", "libpcre2-8": "libpcre2-dev", "cmocka": "libcmocka-dev"}
        asked = {word for line in read("meson.build").splitlines() if re.search(r"(?<!declare_)dependency\(", line) for word in re.findall(r"'([\w.-]+)'", line)}
        needed = {package for name, package in libraries.items() if name in asked} | {"uthash-dev"}
        self.assertEqual(len(needed), len(libraries) + 1, asked)
        ours = {where: [names for names in packages(read(where)) if "libjansson-dev" in names] for where in ("README.md", "docs/install.md", "CONTRIBUTING.md", "tools/setup.sh")}
        for where, lists in ours.items():
            self.assertEqual(len(lists), 1, where)
        for where, lists in ours.items():
            tests = where in ("CONTRIBUTING.md", "tools/setup.sh")
            self.assertEqual({name for name in lists[0] if name.endswith("-dev")}, needed if tests else needed - {"libcmocka-dev"}, where)
            self.assertLessEqual({"gcc", "pkg-config"}, lists[0], where)
        self.assertLessEqual(ours["tools/setup.sh"][0], ours["CONTRIBUTING.md"][0], "the setup names what CONTRIBUTING does not")
        gate = set(read(".ci/steps.sh").split())
        self.assertLessEqual(ours["CONTRIBUTING.md"][0], gate, "CONTRIBUTING names what the gate does not install")
        self.assertLessEqual(needed - {"libcmocka-dev"}, set(re.findall(r"[\w-]+", read("packaging/debian/control").split("\nPackage:")[0])))

    def test_a_cross_build_needs_no_program_but_the_compiler(self):
        for path in glob.glob(os.path.join(ROOT, "packaging/cross/*.ini")):
            cross = configparser.ConfigParser()
            cross.read(path)
            programs = {name: re.findall(r"'([^']*)'", value)[0] for name, value in cross["binaries"].items()}
            self.assertLessEqual(set(programs.values()), {"zig", "true"}, "%s: %s" % (path, programs))

    def test_a_wheel_that_cannot_be_built_says_why(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(os.path.join(ROOT, "Makefile"), folder)
            os.mkdir(os.path.join(folder, "tools"))
            with open(os.path.join(folder, "tools/portable.sh"), "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\necho 'ERROR: C static library zstd not found' >&2\nexit 1\n")
            os.chmod(f.name, 0o755)
            run = subprocess.run(["make", "wheel"], cwd=folder, capture_output=True, text=True, check=False)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("C static library zstd not found", run.stdout + run.stderr)

    def test_a_wheel_in_a_path_with_a_space_is_refused_in_words(self):
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "any place", "tools")
            os.makedirs(place)
            shutil.copy(os.path.join(ROOT, "tools/portable.sh"), place)
            run = subprocess.run([os.path.join(place, "portable.sh"), "build"], cwd=place, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("no path with a space: ", run.stderr)

    def test_nothing_installs_the_package_by_a_name_that_nobody_has_reserved(self):
        by_name = re.compile(r"\bpip3? install\b[^\n|`'\"]*[ =]oomsight(?![\w./*-])|uses: [\w<> -]+/oomsight@")
        texts = tracked("*.md", "*.yml", "*.yaml", "*.sh", "*.toml", "*.py", "Makefile", "packaging/*")
        named = ["%s: %s" % (path, line.strip()) for path in texts for line in read(path).splitlines() if by_name.search(line) and "--no-index" not in line]
        self.assertEqual([line for line in named if not line.startswith("tests/tools/")], [])
        self.assertTrue(by_name.search("      - run: pip install oomsight==0.2.0"))

    def test_every_text_for_a_shell_is_one(self):
        if not shutil.which("shellcheck"):
            self.skipTest("no shellcheck")
        known, shells = tracked("*.sh", ".ci/run", ".ci/nightly"), {"bash": [], "sh": []}
        self.assertGreater(len(known), 80)
        for path in known:
            shells["bash" if path.startswith(".ci/") or "bash" in read(path).split("\n")[0] else "sh"].append(path)
        for shell, paths in shells.items():  # a list of words is what is wanted where $(...) is not quoted: SC2046
            run = subprocess.run(["shellcheck", "-x", "-S", "warning", "-e", "SC2046", "-s", shell, "-f", "gcc", *paths], cwd=ROOT, capture_output=True, text=True, check=False)
            self.assertEqual(run.stdout, "")

    def test_manual_pages_have_the_date_of_their_release(self):
        version = re.search(r"^  version: '([^']+)',", read("meson.build"), re.M).group(1)
        date = re.search(r"^## \[%s\] - (\d{4}-\d\d-\d\d)$" % re.escape(version), read("CHANGELOG.md"), re.M).group(1)
        pages = tracked("cli/man/*.1")
        self.assertGreater(len(pages), 10)
        for path in pages:
            self.assertTrue(read(path).startswith('.TH %s 1 %s "oomsight %s" ' % (os.path.basename(path)[:-2].upper(), date, version)), read(path).split("\n")[0])

    def test_the_text_of_a_wheel_has_no_link_that_leads_nowhere(self):
        import make_wheel
        text = make_wheel.metadata(make_wheel.HERE) + make_wheel.description()
        self.assertIn("\nLicense-Expression: ", text)
        self.assertIn("\nAuthor: ", text)
        self.assertIn("## Three commands", text)
        self.assertEqual([link for link in re.findall(r"\]\(([^)]*)\)", text) if not link.startswith(("https://", "#"))], [])

    @unittest.skipUnless(BUILD, "no build")
    def test_the_archive_has_no_name_that_others_may_have(self):
        archive = os.path.join(BUILD, "src", "liboomsight_objects.a")
        listed = subprocess.run(["nm", "-g", "--defined-only", archive], capture_output=True, text=True, check=False).stdout
        names = re.findall(r"^[0-9a-f]+ [A-Z] (\w+)$", listed, re.M)
        self.assertGreater(len(names), 1000)
        # what the compiler brings for sanitizers and coverage begins with an underscore
        self.assertEqual([name for name in names if not name.startswith(("oos_", "oomsight_", "_"))], [])

    @unittest.skipUnless(BUILD, "no build")
    def test_a_distribution_chooses_its_own_fortification(self):
        env = dict(os.environ, CFLAGS="-O2 -D_FORTIFY_SOURCE=3")
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(["meson", "setup", folder, ROOT, "--buildtype", "plain", "-Dtests=false"], env=env, capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stdout[-2000:])
            with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as f:
                text = f.read()
        self.assertIn("-D_FORTIFY_SOURCE=3", text)
        self.assertNotIn("_FORTIFY_SOURCE=2", text)


if __name__ == "__main__":
    unittest.main()
