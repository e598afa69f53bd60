"""Loaded into the Python processes of a dry run, and of nothing else. Passes on to the sitecustomize that would have been
loaded otherwise, then waits for torch and an engine to be imported (oomsight_aid)."""
import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _pass_on():
    paths = [p for p in sys.path if os.path.abspath(p or ".") != _here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec and spec.loader and os.path.dirname(os.path.abspath(spec.origin or "")) != _here:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if os.environ.get("OOMSIGHT_SEGMENT"):
    import oomsight_aid
    oomsight_aid.wait()
_pass_on()
