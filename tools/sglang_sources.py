"""The sources of a release of SGLang without what it needs: PyTorch and all else that is not there is stood in for by names that do nothing.

    use(FOLDER)    FOLDER/sglang is the release's package, unpacked from its wheel
    load(NAME)     a module of it; what its import lacks is added until it succeeds
"""
import abc
import importlib
import importlib.abc
import importlib.machinery
import re
import sys
import types

TRIES = 200  # names that one import may lack
OWN = ("__func__",)  # what is asked of functions
OTHERS = ("npu", "hpu", "musa")  # devices that are not there
WORDS = {"hip": None, "backend": "cuda", "ns": "sglang", "name": "sglang", "dumps": lambda *_, **__: b""}  # what must be no class


class Base:
    def __init_subclass__(cls, **_):
        pass


def schema(*_):
    from pydantic_core import core_schema
    return core_schema.any_schema()


class Nothing(abc.ABCMeta):
    """A class whose attributes, calls and items are such classes again; it can be inherited from, and leaves what it decorates as it is."""

    def __new__(mcs, name, bases=(Base,), space=None, **_):
        return super().__new__(mcs, name, bases, space or {})

    def __init__(cls, *_, **__):
        pass

    def __getattr__(cls, name):
        if name == "__get_pydantic_core_schema__":
            return schema
        if name in OTHERS or name.startswith("__") and name not in OWN:
            raise AttributeError(name)
        return WORDS[name] if name in WORDS else Nothing(name)

    def __call__(cls, *args, **kwargs):
        if cls.__bases__ != (Base,):
            made = super().__call__()
            made.__dict__.update(kwargs)
            return made
        return args[0] if len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type)) else cls

    def __getitem__(cls, _):
        return cls

    def register(cls, *_, **__):
        return cls

    def __setitem__(cls, *_):
        pass

    def __contains__(cls, _):
        return False

    def __iter__(cls):
        return iter(())

    def __or__(cls, other):
        return object

    __ror__ = __or__

    def __bool__(cls):
        return False

    def __lt__(cls, other):
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __int__(cls):
        return 0

    __index__ = __int__

    def __float__(cls):
        return 0.0

    def __neg__(cls):
        return cls

    def __add__(cls, other):
        return cls

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __pow__ = __add__

    def __enter__(cls):
        return cls

    def __exit__(cls, *_):
        pass


class Lacking(types.ModuleType):
    __path__ = ()
    __file__ = "/nowhere"
    __version__ = "9.9.9"

    def __getattr__(self, name):
        if name in OTHERS or name.startswith("__"):
            raise AttributeError(name)
        return WORDS[name] if name in WORDS else Nothing(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    lacking = set()

    def find_spec(self, name, path=None, target=None):
        if not any(name == lacks or name.startswith(lacks + ".") for lacks in self.lacking):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Lacking(spec.name)

    def exec_module(self, module):
        pass


def forget(kept):
    for name in [name for name in sys.modules if name.split(".")[0] == "sglang" and name not in kept]:
        del sys.modules[name]


def load(name):
    kept = set(sys.modules)
    for _ in range(TRIES):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not error.name or error.name.split(".")[0] == "sglang":
                raise
            Finder.lacking.add(error.name)
        except ImportError as error:
            found = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
            if not found or found[2].split(".")[0] == "sglang":
                raise
            setattr(sys.modules[found[2]], found[1], Nothing(found[1]))
        forget(kept)
    raise ImportError(name)


class Cuda(Lacking):
    """torch.cuda of a machine with eight GPUs."""

    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 8)
    current_device = staticmethod(lambda: 0)
    get_device_capability = staticmethod(lambda *_: (8, 9))
    get_device_name = staticmethod(lambda *_: "GPU")


def use(folder):
    sys.path.insert(0, folder)
    sys.meta_path.append(Finder())
    torch, cuda, version = Lacking("torch"), Cuda("torch.cuda"), Lacking("torch.version")
    version.cuda, version.hip = "12.8", None
    torch.cuda, torch.version = cuda, version
    sys.modules.update({"torch": torch, "torch.cuda": cuda, "torch.version": version})
    Finder.lacking.add("torch")
