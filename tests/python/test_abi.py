"""The structures of the binding have the layout of the header, and numbers of enums are the same."""
import ctypes
import os
import shutil
import subprocess

import pytest

from oomsight import _abi

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


def ask(tmp_path, lines):
    source, program = tmp_path / "ask.c", tmp_path / "ask"
    source.write_text("#include <oomsight/oomsight.h>\n#include <stdio.h>\nint main(void)\n{\n%s\nreturn 0;\n}\n" % "\n".join(lines))
    subprocess.run(["cc", "-I", os.path.join(ROOT, "include"), "-o", str(program), str(source)], check=True)
    return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()


@compiler
@pytest.mark.parametrize("name", sorted(_abi.STRUCTURES))
def test_a_structure_has_the_layout_of_the_header(tmp_path, name):
    structure = _abi.STRUCTURES[name]
    lines = ['printf("%%zu\\n", sizeof(%s));' % name]
    lines += ['printf("%%zu\\n", offsetof(%s, %s));' % (name, field[0]) for field in structure._fields_]
    seen = [int(word) for word in ask(tmp_path, lines)]
    assert seen == [ctypes.sizeof(structure)] + [getattr(structure, field[0]).offset for field in structure._fields_]


@compiler
def test_numbers_of_enums_are_those_of_the_header(tmp_path):
    words = ["OOMSIGHT_VERDICT_" + word.upper() for word in _abi.VERDICTS]
    formats = ["OOMSIGHT_FORMAT_" + {"md": "MARKDOWN"}.get(word, word.upper()) for word in _abi.FORMATS]
    seen = ask(tmp_path, ['printf("%%d\\n", (int)%s);' % word for word in words + formats])
    assert [int(word) for word in seen] == list(range(len(words))) + list(_abi.FORMATS.values())


@compiler
def test_every_status_but_ok_has_an_exception(tmp_path):
    names = ("NOMEM", "OVERFLOW", "MALFORMED", "NOT_FOUND", "IO", "UNSUPPORTED", "USAGE", "NETWORK", "INTERNAL")
    seen = ask(tmp_path, ['printf("%%d\\n", (int)OOMSIGHT_%s);' % name for name in names])
    assert sorted(int(word) for word in seen) == sorted(_abi.ERRORS)
