"""pytest --phantom L4: the whole run on a stand-in device, for tests of memory on machines without one (docs/how-to/test-an-engine-in-ci.md).

pytest starts itself again under `oomsight dryrun` before any conftest is read, so that every process of the run has the stand-ins in
front of it. Sizes are real and values are not: no kernel computes anything."""
import os
import sys

import pytest

from ._command import command_path, environment


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("oomsight")
    group.addoption("--phantom", metavar="GPU", help="run on a simulated GPU: L4, H100, A30x4, ...")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    gpu = early_config.known_args_namespace.phantom
    if not gpu or os.environ.get("OOMSIGHT_SEGMENT"):  # the second is this run already
        return
    capture = early_config.pluginmanager.getplugin("capturemanager")
    if capture:
        capture.stop_global_capturing()
    sys.stdout.flush()
    sys.stderr.flush()
    path = command_path()
    os.execve(path, [path, "dryrun", "--gpu", gpu, "--timeout", "0", "--", sys.executable, "-m", "pytest", *early_config.invocation_params.args],
              environment())
