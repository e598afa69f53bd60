#!/usr/bin/env python3
"""tools/check_abi.sh sees a break of the interface: a library with the functions of the public header and empty bodies is described, the
header is broken in one way after another, and the script must fail on each. Without gcc or abigail-tools: 77."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADER = os.path.join(ROOT, "include/oomsight/oomsight.h")


def build(folder, header):
    """A build folder with a library whose interface is this header."""
    include, out = os.path.join(folder, "include"), os.path.join(folder, "build", "src")
    os.makedirs(include, exist_ok=True)
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(include, "oomsight.h"), "w", encoding="utf-8") as f:
        f.write(header)
    seen = subprocess.run(["gcc", "-E", "-P", os.path.join(include, "oomsight.h")], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    bodies = []
    for piece in seen.split(";"):
        piece = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", piece).strip()
        found = re.match(r"[\w\s*]*?\boomsight_\w+\s*\([^{}]*\)$", piece)
        if found:
            bodies.append(piece + " { __builtin_trap(); }\n")
    if len(bodies) < 40:
        sys.exit("the header has another form: %d functions found" % len(bodies))
    source = os.path.join(folder, "stub.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write('#include "include/oomsight.h"\n' + "".join(bodies))
    subprocess.run(["gcc", "-g", "-w", "-shared", "-fPIC", "-o", os.path.join(out, "liboomsight.so.0"), source], check=True, cwd=folder)
    return os.path.join(folder, "build"), include


def check(build_folder, include, dump, *words):
    return subprocess.run(["sh", os.path.join(ROOT, "tools/check_abi.sh"), build_folder, *words], env=dict(os.environ, DUMP=dump, HEADERS=include),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)


class Abi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        with open(HEADER, encoding="utf-8") as f:
            cls.header = f.read()
        cls.dump = os.path.join(cls.held.name, "good.abi")
        done = check(*build(os.path.join(cls.held.name, "good"), cls.header), cls.dump, "--write")
        assert done.returncode == 0, done.stdout

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def changed(self, old, new, count=1):
        """Exit code and words of the script when `old` of the header has become `new`."""
        text, done = re.subn(old, new, self.header, count=count, flags=re.S)
        self.assertGreater(done, 0, "the header has no %s" % old)
        self.assertNotEqual(text, self.header)
        with tempfile.TemporaryDirectory() as folder:
            answer = check(*build(folder, text), self.dump)
        return answer.returncode, answer.stdout

    def fails(self, old, new):
        code, out = self.changed(old, new)
        self.assertEqual(code, 1, out)
        self.assertIn("an older program would break", out)

    def passes(self, old, new):
        code, out = self.changed(old, new)
        self.assertEqual(code, 0, out)

    def test_the_same_interface_passes(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(check(*build(folder, self.header), self.dump).returncode, 0)

    def test_a_member_in_the_middle_fails(self):
        self.fails(r"(struct oomsight_render_params \{\s*size_t size;)", r"\1 const char *planted;")

    def test_renumbered_enumerators_fail(self):
        self.fails(r"OOMSIGHT_FORMAT_JSON = 1,(\s*)OOMSIGHT_FORMAT_MARKDOWN = 2", r"OOMSIGHT_FORMAT_JSON = 2,\1OOMSIGHT_FORMAT_MARKDOWN = 1")

    def test_two_swapped_members_fail(self):
        self.fails(r"char path\[256\];(\s*)char text\[480\];", r"char text[480];\1char path[256];")

    def test_another_parameter_type_fails(self):
        self.fails(r"oomsight_size_parse\(const char \*word, uint64_t \*ret_bytes\)", "oomsight_size_parse(const char *word, uint32_t *ret_bytes)")

    def test_one_parameter_more_fails(self):
        self.fails(r"oomsight_size_parse\(const char \*word, ", "oomsight_size_parse(const char *word, int planted, ")

    def test_another_return_type_fails(self):
        self.fails(r"int oomsight_size_parse\(", "long oomsight_size_parse(")

    def test_a_function_that_is_gone_fails(self):
        self.fails(r"OOMSIGHT_API int oomsight_size_parse\([^;]*;", "")

    def test_a_member_taken_out_of_the_end_fails(self):
        self.fails(r"int verbose;([^}]*\} oomsight_render_params;)", r"\1")

    def test_a_member_at_the_end_of_a_struct_without_its_size_fails(self):
        self.fails(r"char text\[480\];", "char text[480]; int planted;")

    def test_additions_pass(self):
        self.passes(r"(\} oomsight_render_params;)", r"int planted; \1")
        self.passes(r"(OOMSIGHT_API int oomsight_size_parse\()", r"OOMSIGHT_API int oomsight_planted(int);\n\1")
        self.passes(r"OOMSIGHT_FORMAT_JUNIT = 6", "OOMSIGHT_FORMAT_JUNIT = 6, OOMSIGHT_FORMAT_PLANTED = 7")

    def test_a_description_without_members_fails(self):
        """As `--header-file` with `--drop-private-types` writes it: every struct is only declared."""
        empty = os.path.join(self.held.name, "empty.abi")
        with open(self.dump, encoding="utf-8") as f, open(empty, "w", encoding="utf-8") as g:
            g.writelines(line for line in f if "<data-member" not in line)
        with tempfile.TemporaryDirectory() as folder:
            done = check(*build(folder, self.header), empty)
        self.assertEqual(done.returncode, 1)
        self.assertIn("too few members", done.stdout)

    def test_every_struct_that_may_grow_begins_with_its_size(self):
        found = re.findall(r"typedef struct (oomsight_[a-z]+_params) \{\s*(.*?);", self.header, re.S)
        self.assertGreater(len(found), 5)
        self.assertEqual([name for name, first in found if first != "size_t size"], [])


if __name__ == "__main__":
    if not (shutil.which("abidiff") and shutil.which("gcc")):
        print("abigail-tools or gcc are not installed")
        sys.exit(77)
    unittest.main()
