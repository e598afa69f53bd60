"""The program `oomsight` beside this package: where it is, and how it is run."""
import os
import sys
from typing import Dict, Iterator

from ._abi import package_file


def _places() -> Iterator[str]:
    import sysconfig

    name = "oomsight"
    if "OOMSIGHT_COMMAND" in os.environ:
        yield os.environ["OOMSIGHT_COMMAND"]
    yield os.path.join(sysconfig.get_path("scripts"), name)
    if sys.version_info >= (3, 10):
        scheme = sysconfig.get_preferred_scheme("user")
    else:
        scheme = "posix_user"
    yield os.path.join(sysconfig.get_path("scripts", scheme=scheme), name)
    yield package_file("..", "bin", name)  # pip install --target
    yield os.path.join(os.path.dirname(sys.executable), name)
    yield package_file("..", "..", "..", "build", "cli", name)  # a build tree


def command_path() -> str:
    """The program of this installation."""
    for path in _places():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError("the program 'oomsight' is not beside the package; was the wheel installed whole?")


def environment() -> Dict[str, str]:
    """The environment for it: the stand-ins of this package, unless others are named."""
    env = dict(os.environ)
    if os.path.isdir(package_file("stand-ins")):
        env.setdefault("OOMSIGHT_SHIM_DIR", package_file("stand-ins"))
    return env
