#!/usr/bin/env python3
"""A build that cannot be set up says why, and what to install."""
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Setup(unittest.TestCase):
    def test_a_missing_library_is_named_with_the_line_that_installs_it(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, PKG_CONFIG_LIBDIR=folder, CCACHE_DISABLE="1")
            ran = subprocess.run([os.path.join(ROOT, "tools/setup.sh"), os.path.join(folder, "build"), ROOT, "--wrap-mode=nofallback"],
                                 capture_output=True, text=True, env=environment)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("jansson", ran.stderr.split("On Debian")[0])
        self.assertIn("sudo apt install", ran.stderr)


if __name__ == "__main__":
    unittest.main()
