"""The program `oomsight` beside this package: where it is, and how it is run."""
import os
import sys
from typing import Dict, Iterator, Sequence

from ._abi import InputError, InternalError, UsageError, package_file


def _places() -> Iterator[str]:
    import sysconfig

    name = "oomsight.exe" if sys.platform == "win32" else "oomsight"
    if "OOMSIGHT_COMMAND" in os.environ:
        yield os.environ["OOMSIGHT_COMMAND"]
    yield package_file("bin", name)
    yield os.path.join(sysconfig.get_path("scripts"), name)
    if sys.version_info >= (3, 10):
        scheme = sysconfig.get_preferred_scheme("user")
    else:
        scheme = os.name + "_user"
    yield os.path.join(sysconfig.get_path("scripts", scheme=scheme), name)
    yield package_file("..", "bin", name)  # pip install --target
    yield os.path.join(os.path.dirname(sys.executable), name)
    yield package_file("..", "..", "..", "build", "cli", name)  # a build tree


def command_path() -> str:
    """The program of this installation."""
    for path in _places():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError("the program 'oomsight' is not in the package; was the wheel installed whole?")


def environment() -> Dict[str, str]:
    """The environment for it: the stand-ins of this package, unless others are named."""
    env = dict(os.environ)
    if os.path.isdir(package_file("stand-ins")):
        env.setdefault("OOMSIGHT_SHIM_DIR", package_file("stand-ins"))
    return env


def told(words: Sequence[str]) -> str:
    """What the program prints; what it cannot answer is raised in its own words."""
    import subprocess

    run = subprocess.run([command_path()] + list(words), env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    text = run.stdout.decode("utf-8", "replace")
    if run.returncode not in (0, 1) and not text:
        said = run.stderr.decode("utf-8", "replace").strip().splitlines()
        line = said[-1] if said else "no answer (exit %d)" % run.returncode
        line = line[len("oomsight: "):] if line.startswith("oomsight: ") else line
        raise {2: UsageError, 4: InternalError}.get(run.returncode, InputError)(run.returncode, line)
    return text
