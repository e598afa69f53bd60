#!/usr/bin/env python3
"""version.py passes as the tree is, and fails when one place has another version."""
import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import version  # noqa: E402


class Version(unittest.TestCase):
    def test_every_place_has_the_version_of_the_build(self):
        self.assertEqual(subprocess.run([sys.executable, os.path.join(ROOT, "tools/version.py")]).returncode, 0)

    def test_another_version_in_any_place_fails(self):
        real = version.read
        for place in version.PLACES:
            version.read = lambda path: re.sub(r"(MINOR |0\.)(\d+)", r"\g<1>99", real(path)) if path == place else real(path)
            argv, sys.argv = sys.argv, ["version.py"]
            try:
                self.assertEqual(version.main(), 1, place)
            finally:
                version.read, sys.argv = real, argv


if __name__ == "__main__":
    unittest.main()
