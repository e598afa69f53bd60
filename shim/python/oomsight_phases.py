"""Where an engine is in its start, told by the engine's own functions.

A log line comes after what it tells, through a pipe, and some phases print none. Here each function that begins a phase says so to
the stand-in device before it runs (oos_phase_enter, shim/device/phase.c), with the owner of what is taken from then on: words of
src/ledger/phase.def and owner.def. What an engine of another version does not have is left alone.

Loaded by oomsight_aid.py; docs/reference/formats/dryrun.md says how the rows of the report come from it."""
import ctypes
import functools

_enter = None
_now = (None, None)


def enter(phase, owner):
    """From here on; no more when the stand-ins are not there."""
    global _enter, _now
    if _enter is None:
        try:
            _enter = ctypes.CDLL(None).oos_phase_enter
            _enter.argtypes, _enter.restype = (ctypes.c_char_p, ctypes.c_char_p), ctypes.c_bool
        except (OSError, AttributeError):
            _enter = False
    if _enter and (phase, owner) != _now:
        _now = (phase, owner)
        _enter(phase.encode(), owner.encode())


def now():
    """The phase this process is in; None: it has not said."""
    return _now[0]


def during(cls, name, begin, end=None):
    """Wraps a method: `begin(self)` names phase and owner before it, `end(self)` after it, without which what was before comes
    back. STAY: it goes on after it. A function that fails leaves everything as it is, because the report asks where."""
    inner = vars(cls).get(name) if isinstance(cls, type) else getattr(cls, name, None)
    if inner is None:
        return

    @functools.wraps(inner)
    def told(*args, **kwargs):
        before, first = _now, begin(*args[:1])
        if first:
            enter(*first)
        result = inner(*args, **kwargs)
        after = end(*args[:1]) if end else before if first else None
        if after and after[0]:
            enter(*after)
        return result
    setattr(cls, name, told)


def name_engine(module):
    """Which engine this process belongs to, for a command that does not say: a script, a wrapper."""
    import importlib.metadata
    import oomsight_aid
    name = getattr(module, "__name__", "").partition(".")[0]
    try:
        version = importlib.metadata.version(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return
    oomsight_aid.tell("engine %s %s" % (name, version))


def always(phase, owner):
    return lambda *args: (phase, owner)


def takes(owner):
    """The same phase, another owner."""
    return lambda *args: (_now[0], owner) if _now[0] else None


def STAY(*args):
    return None


HOOKS = {}  # name of a module: what wraps its functions when it is imported; the modules of engines add theirs
