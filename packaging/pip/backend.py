"""What pip, uv and pipx call to build: meson-python, which makes its build folder inside the source. Where that cannot be written it gets
another."""
import atexit
import os
import shutil
import tempfile

import mesonpy
from mesonpy import build_editable, build_sdist, get_requires_for_build_editable, get_requires_for_build_sdist, get_requires_for_build_wheel  # noqa: F401


def _settings(given):
    settings = dict(given or {})
    if not os.access(os.curdir, os.W_OK) and not {"build-dir", "builddir"} & set(settings):
        settings["build-dir"] = tempfile.mkdtemp(prefix="oomsight-build-")
        atexit.register(shutil.rmtree, settings["build-dir"], ignore_errors=True)
    return settings


def build_wheel(folder, config_settings=None, metadata=None):
    return mesonpy.build_wheel(folder, _settings(config_settings), metadata)
