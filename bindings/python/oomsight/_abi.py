"""The C ABI (include/oomsight/oomsight.h) as ctypes sees it: structures, prototypes, errors, and where the library is.
Nothing is decided here; tests/python/test_abi.py compares every structure with the header."""
import ctypes
import os
import sys
import threading
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type, Union

Size = Union[int, str]


class OomsightError(Exception):
    """A request that could not be answered, in the words of the command line. "Does not fit" is an answer, not an error."""

    def __init__(self, status: int, text: str, path: str = "", line: int = 0) -> None:
        where = "%s:%d: " % (path, line) if path and line else "%s: " % path if path else ""
        super().__init__(where + text)
        self.status, self.text, self.path, self.line = status, text, path, line
        self.field = ""  # the argument that is meant, as the library calls it: "gpu"


class UsageError(OomsightError, ValueError):
    """The request makes no sense: an unknown GPU, a command without a model."""


class InputError(OomsightError):
    """An input was not found, could not be read, or is not what it should be."""


class InputNotFoundError(InputError, LookupError, FileNotFoundError):
    """An input was not found: a file, a folder or a model."""


class UnsupportedError(OomsightError):
    """Understood, but not supported."""


class HubError(InputError):
    """The hub could not be reached."""


class InternalError(OomsightError, RuntimeError):
    """A fault of oomsight itself, or no memory."""


# Numbers of OOMSIGHT_STATUS_MAP.
ERRORS: Dict[int, Type[OomsightError]] = {1: InternalError, 2: InputError, 3: InputError, 4: InputNotFoundError, 5: InputError,
                                          6: UnsupportedError, 7: UsageError, 8: HubError, 9: InternalError}
VERDICTS = ("fits", "tight", "fails", "refused", "unknown")
FORMATS = {"text": 0, "json": 1, "md": 2, "html": 3, "github": 4, "sarif": 5, "junit": 6, "patch": 7}


class CError(ctypes.Structure):
    _fields_ = [("status", c_int), ("line", c_uint32), ("path", ctypes.c_char * 256), ("text", ctypes.c_char * 480),
                ("field", ctypes.c_char * 32)]


class CRender(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("format", c_int), ("color", c_int), ("ascii", c_int), ("width", c_uint), ("explain", c_int),
                ("language", c_char_p), ("verbose", c_int)]


class CPlanParams(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("data", c_void_p), ("model", c_void_p), ("command", POINTER(c_char_p)),
                ("command_count", c_size_t), ("gpu", c_char_p), ("gpu_total_bytes", c_uint64), ("gpu_used_bytes", c_uint64),
                ("compute_capability", c_char_p), ("engine_version", c_char_p), ("environment", POINTER(c_char_p)),
                ("environment_count", c_size_t), ("skip_fixes", c_int), ("allow_hub", c_int), ("kv_layers_json", c_char_p),
                ("host_ram_bytes", c_uint64), ("gpu_used_known", c_int), ("machine", c_void_p),
                ("engine", c_char_p)]


class CReplayParams(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("path", c_char_p), ("torch", c_char_p), ("settings", c_char_p), ("gpu_total_bytes", c_uint64),
                ("gpu_used_bytes", c_uint64), ("device", c_uint), ("pool_backend", c_char_p), ("sweep_ratio", c_double),
                ("skip_what_if", c_int), ("try_settings", POINTER(c_char_p)), ("try_settings_count", c_size_t), ("find_smallest", c_int)]


class CExplainParams(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("data", c_void_p), ("paths", POINTER(c_char_p)), ("path_count", c_size_t), ("text", c_char_p),
                ("text_bytes", c_size_t), ("expand_limit_bytes", c_uint64), ("allow_hub", c_int), ("gpu", c_char_p), ("model", c_char_p),
                ("engine_version", c_char_p), ("engine", c_char_p)]


class CCheckParams(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("data", c_void_p), ("paths", POINTER(c_char_p)), ("path_count", c_size_t), ("gpu", c_char_p),
                ("gpu_total_bytes", c_uint64), ("gpu_used_bytes", c_uint64), ("compute_capability", c_char_p), ("engine_version", c_char_p),
                ("models_dir", c_char_p), ("allow_hub", c_int), ("gpu_used_known", c_int), ("engine", c_char_p)]


class CIncident(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("is_oom", c_int), ("state", c_char_p), ("phase", c_char_p), ("phase_why", c_char_p), ("cause", c_char_p),
                ("cause_why", c_char_p), ("confidence", c_double), ("phase_sure", c_double), ("cause_sure", c_double), ("also", c_char_p * 2),
                ("would_decide", c_char_p), ("signature", c_char_p), ("engine", c_char_p), ("engine_version", c_char_p), ("model", c_char_p),
                ("gpu", c_char_p), ("plan_check", c_char_p), ("file", c_char_p), ("first_line", c_uint64), ("last_line", c_uint64),
                ("count", c_uint64), ("figure_count", c_size_t), ("hold_count", c_size_t), ("fix_count", c_size_t)]


class CCheckResult(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("files", c_size_t), ("item_count", c_size_t), ("failing", c_size_t), ("doubtful", c_size_t),
                ("unplanned", c_size_t)]


STRUCTURES = {"oomsight_error": CError, "oomsight_render_params": CRender, "oomsight_plan_params": CPlanParams,
              "oomsight_replay_params": CReplayParams, "oomsight_explain_params": CExplainParams,
              "oomsight_check_params": CCheckParams, "oomsight_incident": CIncident, "oomsight_check_result": CCheckResult}


def sizeof(structure: Type[ctypes.Structure]) -> int:
    return ctypes.sizeof(structure)


def package_file(*parts: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), *parts)


def library_path() -> str:
    """OOMSIGHT_LIBRARY, the library of the wheel, the one of a build tree, or what the loader finds."""
    named = os.environ.get("OOMSIGHT_LIBRARY")
    if named:
        return named
    name = {"darwin": "liboomsight.0.dylib", "win32": "liboomsight-0.dll"}.get(sys.platform, "liboomsight.so.0")
    for path in (package_file("lib", name), package_file("..", "..", "..", "build", "src", name)):
        if os.path.exists(path):
            return path
    return name


def _load() -> ctypes.CDLL:
    lib = ctypes.CDLL(library_path())
    error = POINTER(CError)
    for name in ("plan", "replay", "explain", "check"):
        create = getattr(lib, "oomsight_%s_create" % name)
        create.argtypes, create.restype = [c_void_p, POINTER(c_void_p), error], c_int
        render = getattr(lib, "oomsight_%s_render" % name)
        render.argtypes, render.restype = [c_void_p, POINTER(CRender), POINTER(c_void_p), error], c_int
        free = getattr(lib, "oomsight_%s_free" % name)
        free.argtypes, free.restype = [c_void_p], None
    prototypes: List[Tuple[str, Any, List[Any]]] = [
        ("oomsight_version", c_char_p, []), ("oomsight_text_free", None, [c_void_p]),
        ("oomsight_size_parse", c_int, [c_char_p, POINTER(c_uint64)]),
        ("oomsight_data_open", c_int, [c_char_p, POINTER(c_void_p), error]), ("oomsight_plan_verdict", c_int, [c_void_p]),
        ("oomsight_plan_answer", c_char_p, [c_void_p]), ("oomsight_plan_probability", c_double, [c_void_p]),
        ("oomsight_plan_phase", c_char_p, [c_void_p]), ("oomsight_plan_weights_bytes", c_uint64, [c_void_p]),
        ("oomsight_plan_kv_tokens", c_uint64, [c_void_p]), ("oomsight_plan_best_flags", c_char_p, [c_void_p]),
        ("oomsight_plan_best_command", c_char_p, [c_void_p]),
        ("oomsight_replay_oom", c_int, [c_void_p]), ("oomsight_replay_peak_allocated_bytes", c_uint64, [c_void_p]),
        ("oomsight_replay_peak_reserved_bytes", c_uint64, [c_void_p]), ("oomsight_explain_count", c_size_t, [c_void_p]),
        ("oomsight_explain_incident", c_int, [c_void_p, c_size_t, POINTER(CIncident)]),
        ("oomsight_check_result_get", c_int, [c_void_p, POINTER(CCheckResult)]),
        ("oomsight_data_render", c_int, [c_void_p, c_char_p, POINTER(CRender), POINTER(c_void_p), error])]
    for name, result, arguments in prototypes:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


_lock = threading.Lock()
_library: Optional[ctypes.CDLL] = None
_data: Dict[Optional[str], c_void_p] = {}


def library() -> ctypes.CDLL:
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = _load()
    return _library


def encode(word: Optional[str]) -> Optional[bytes]:
    if word is not None and "\0" in word:
        raise UsageError(7, "a zero byte in %.60r: no command, path or name has one" % word)
    return None if word is None else os.fsencode(word)


def words(values: Sequence[str]) -> Any:
    """An array of C strings; it keeps what it points to."""
    return (c_char_p * max(len(values), 1))(*[encode(value) for value in values])


def size(value: Optional[Size], name: str) -> int:
    """Bytes of 23.5GiB, 24GB, 24564MiB or a number of bytes; None is 0: not given. 24 alone could be anything and is refused."""
    if value is None:
        return 0
    parsed = c_uint64()
    if not library().oomsight_size_parse(encode(str(value)), byref(parsed)):
        raise UsageError(7, "%s takes a size with its unit, such as 23.5GiB, not '%s'" % (name, value))
    return parsed.value


def check(status: int, error: CError) -> None:
    if status:
        text = bytes(error.text).decode("utf-8", "replace")
        raised = ERRORS.get(status, OomsightError)(status, text, os.fsdecode(bytes(error.path)), int(error.line))
        raised.field = bytes(error.field).decode()
        raise raised


def taken(text: c_void_p) -> str:
    """A text of the library, given back to it."""
    try:
        return ctypes.string_at(text.value or 0).decode("utf-8", "replace")
    finally:
        library().oomsight_text_free(text)


def known(what: str) -> str:
    """The table of "gpus" or "engines" as JSON."""
    error, text = CError(), c_void_p()
    params = CRender(ctypes.sizeof(CRender), FORMATS["json"])
    check(library().oomsight_data_render(data(None), what.encode(), byref(params), byref(text), byref(error)), error)
    return taken(text)


def data(directory: Optional[str]) -> c_void_p:
    """What is known of GPUs and engines: opened once per directory and kept, as it is shared by every request."""
    handle = _data.get(directory)
    if handle is None:
        lib = library()
        with _lock:
            handle = _data.get(directory)
            if handle is None:
                handle, error = c_void_p(), CError()
                check(lib.oomsight_data_open(encode(directory), byref(handle), byref(error)), error)
                _data[directory] = handle
    return handle


class Handle:
    """Something made by the library, given back with this object."""

    def __init__(self, kind: str, params: ctypes.Structure) -> None:
        lib = library()
        error, made = CError(), c_void_p()
        self._kind, self._made = kind, None  # type: str, Optional[c_void_p]
        check(getattr(lib, "oomsight_%s_create" % kind)(byref(params), byref(made), byref(error)), error)
        self._made = made
        self._free: Callable[[c_void_p], None] = getattr(lib, "oomsight_%s_free" % kind)

    def __del__(self) -> None:
        if self._made is not None:
            self._free(self._made)
            self._made = None

    def render(self, form: str, explain: bool = False, width: int = 100, language: Optional[str] = None) -> str:
        lib = library()
        error, text = CError(), c_void_p()
        params = CRender(ctypes.sizeof(CRender), FORMATS[form], 0, 0, width, int(explain), language.encode() if language else None)
        check(getattr(lib, "oomsight_%s_render" % self._kind)(self._made, byref(params), byref(text), byref(error)), error)
        return taken(text)

    def result(self, name: str, structure: Any, *at: int) -> Any:
        """A structure that the library fills; its texts live as long as this handle."""
        found = structure(ctypes.sizeof(structure))
        if not getattr(library(), "oomsight_%s_%s" % (self._kind, name))(self._made, *at, byref(found)):
            raise IndexError(at)
        return found

    def call(self, name: str) -> Any:
        return getattr(library(), "oomsight_%s_%s" % (self._kind, name))(self._made)
