#!/usr/bin/env python3
"""libcurl's own headers for a build for another processor: curl_headers.py OUT_DIR. They are the same everywhere; the folder they lie
in here has those of this machine's C library, too, and must not be looked into. Standard library and pkg-config only."""
import os
import shutil
import subprocess
import sys

told = subprocess.run(["pkg-config", "--variable=includedir", "libcurl"], capture_output=True, text=True, check=True).stdout.strip()
shutil.copytree(os.path.join(told, "curl"), os.path.join(sys.argv[1], "curl"), dirs_exist_ok=True)
