"""What an installed engine says of commands: `oomsight plan --exact`, and `check` and `matrix` with it, start `oomsight_ask_ENGINE.py` once, on a
simulated device, and hand it commands.

A line of JSON each way, over the two descriptors that OOMSIGHT_ASK names: {"id": 1, "argv": ["MODEL", "--flag", ...], "env": {...}, "count": 2,
"seconds": 60} in, an answer with that id out (docs/reference/formats/exact.md). The engine is imported once; every command is judged in a process of its own, forked from
this one, so that none leaves anything behind for the next, however it ends. What concerns this machine - an id that is not on it, a package that
is missing, no memory - is "unknown" and never "refused"."""
import contextlib
import gc
import importlib
import io
import json
import linecache
import os
import select
import signal
import sys
import time

SCHEMA = "oomsight.exact/1"
SECONDS = 120  # for one command, unless its request has fewer
START_SECONDS = 400  # for a small start: kernels are compiled
LEARN_SECONDS = 60
ANSWER_BYTES = 256 << 10
MEMORY_BYTES = 16 << 30  # private memory of one command's process; importing an engine takes two or three
MACHINE = {"LocalEntryNotFoundError", "OfflineModeIsEnabled", "HFValidationError", "RepositoryNotFoundError", "GatedRepoError", "EntryNotFoundError",
           "RevisionNotFoundError", "HfHubHTTPError", "ConnectError", "MaxRetryError", "SSLError"}
MACHINE_WORDS = ("couldn't connect to", "is not a valid model identifier", "not a local folder", "Invalid repository ID or local directory",
                 "outgoing traffic has been disabled", "offline mode", "does not appear to have a file named")


class Late(BaseException):
    """An import that does not end."""


class Unknown(Exception):
    """Not a word about the command."""


def release_of(package, title):
    from importlib.metadata import PackageNotFoundError, version
    try:
        return version(package)
    except PackageNotFoundError:
        raise Unknown("%s has no %s; name the Python that has it with --python" % (sys.executable, title)) from None


# ---- the engine's words ----

def of_machine(error):
    """Whether it is about what is on this machine: anything that it says it came from."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, (Unknown, ImportError, FileNotFoundError, PermissionError, ConnectionError, TimeoutError, MemoryError)):
            return True
        if {kind.__name__ for kind in type(error).__mro__} & MACHINE:
            return True
        if isinstance(error, (OSError, ValueError)) and any(words in str(error) for words in MACHINE_WORDS):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def sentence(error):
    """Its own words: of pydantic's list the first, without where it came from."""
    with contextlib.suppress(Exception):
        first = error.errors()[0]
        place = ".".join(str(part) for part in first.get("loc", ()))
        text = str(first["msg"])
        return text[len("Value error, "):] if text.startswith("Value error, ") else "%s: %s" % (place, text) if place else text
    return str(error) or statement(error)


def statement(error):
    """An error without words: where it was raised."""
    frame = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    line = linecache.getline(frame.tb_frame.f_code.co_filename, frame.tb_lineno).strip() if frame else ""
    return ": ".join(part for part in (type(error).__name__, line) if part)


def word(value):
    if value is None:
        return None
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else str(value).replace("torch.", "")


def clean(text):
    text = " ".join(text.split())
    return text if len(text) <= 900 else text[:897] + "..."


def values():
    """(a dictionary, what puts a value into it): one that this release does not have is left out."""
    found = {}

    def put(name, of, convert=lambda value: value):
        with contextlib.suppress(Exception):
            value = of()
            found[name] = value if value is None else convert(value)

    return found, put


# ---- a process for each command ----

def told(steps):
    """What an engine says while `steps` go on: each is the name of the stage that begins, or a part of the answer."""
    said, stage, answer = io.StringIO(), None, {"verdict": "unknown"}
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            for step in steps:
                if isinstance(step, str):
                    stage = step
                else:
                    answer.update(step)
    except SystemExit:
        text = said.getvalue()
        at = text.rfind("error: ")
        answer.update(verdict="refused" if at >= 0 else "unknown", stage=stage, error="SystemExit", text=clean(text[at + 7 if at >= 0 else 0:]))
    except BaseException as error:  # noqa: B902 whatever the engine dies of is its answer
        answer.update(verdict="unknown" if stage is None or of_machine(error) else "refused", stage=stage, error=type(error).__name__, text=clean(sentence(error)))
    return answer


def judge(engine, request, out):
    """In the child: the answer as one line, and which modules it took."""
    import resource
    known = set(sys.modules)
    with contextlib.suppress(Exception):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.environ.update({str(key): str(value) for key, value in (request.get("env") or {}).items() if engine.is_asked(str(key))})
    begun = time.monotonic()
    if request.get("learn") is True:
        import oomsight_learn
        steps = oomsight_learn.steps(engine, request.get("watched"))
    elif "start" in request:
        steps = engine.start(request["start"])
    else:
        steps = engine.steps([str(part) for part in request["argv"]], int(request.get("count") or 0))
    answer = told(steps)
    answer["seconds"] = round(time.monotonic() - begun, 3)
    answer["imported"] = [name for name, module in list(sys.modules.items()) if name not in known and getattr(module, "__spec__", None)]
    with os.fdopen(out, "wb") as file:
        file.write(json.dumps(answer, allow_nan=False).encode() + b"\n")


def in_child(engine, request, ours):
    """Its answer, whatever becomes of it: it may take SECONDS and write ANSWER_BYTES, but not to what is `ours`."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            for fd in (reader, *ours):
                os.close(fd)
            judge(engine, request, writer)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    most = START_SECONDS if "start" in request else SECONDS
    seconds = min(most, request.get("seconds", most))
    text, until = b"", time.monotonic() + seconds
    while len(text) < ANSWER_BYTES and not text.endswith(b"\n"):
        if not select.select([reader], [], [], max(0, until - time.monotonic()))[0]:
            break
        piece = os.read(reader, 65536)
        if not piece:
            break
        text += piece
    late = time.monotonic() >= until
    os.close(reader)
    for kill in (os.killpg, os.kill):  # and what it has started
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    with contextlib.suppress(ValueError):
        answer = json.loads(text)
        if isinstance(answer, dict):
            return answer
    why = "it took more than %g seconds" % seconds if late else "it ended with %d before it answered" % (status & 127 or status >> 8)
    return {"verdict": "unknown", "error": "died", "text": why}


def answered(engine, request, ours):
    if not request:
        return {"verdict": "unknown", "text": "the request cannot be read"}
    if request.get("probe") is not True:
        return in_child(engine, request, ours)
    import oomsight_probe
    return oomsight_probe.answer(engine, lambda start: in_child(engine, {"start": start}, ours))


def learn(names):
    """What a command's process imported, so that the next one has it. Code that came with a model is not for others."""
    def leave(*told):
        raise Late
    signal.signal(signal.SIGALRM, leave)
    signal.alarm(LEARN_SECONDS)
    with contextlib.suppress(Late):
        for name in names:
            if name not in sys.modules and name.split(".")[0] != "transformers_modules":
                with contextlib.suppress(Exception, SystemExit):
                    importlib.import_module(name)
    signal.alarm(0)
    settle()


def load(names):
    """Once, and not in each command's process. What this release does not have is left out."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def settle():
    """Nothing that is here now is looked at again by the collector, which would write to pages that all share."""
    gc.collect()
    gc.freeze()


def requests(file):
    """None for a line that is no request."""
    for line in file:
        request = None
        with contextlib.suppress(ValueError):
            request = json.loads(line)
        known = isinstance(request, dict) and (isinstance(request.get("argv"), list) or request.get("learn") is True or request.get("probe") is True)
        yield request if known else None


def main(engine):
    """`engine`: NAME, begin() -> its release, is_asked(variable), steps(argv, devices) as `told` takes them, parser(), architectures();
    of one that is started instead start(what) and MODELS, see oomsight_probe.py."""
    source, sink = (int(part) for part in os.environ.pop("OOMSIGHT_ASK").split(","))
    begun = time.monotonic()
    with os.fdopen(source, encoding="utf-8") as commands, os.fdopen(sink, "w", encoding="utf-8") as answers:
        def tell(answer, release, request):
            head = {"schema": SCHEMA, "id": (request or {}).get("id"), "engine": engine.NAME, "version": release}
            answers.write(json.dumps(dict(answer, **head), allow_nan=False) + "\n")
            answers.flush()
        problem = release = None
        try:
            release = engine.begin()
        except BaseException as error:  # noqa: B902 a broken installation
            problem = {"verdict": "unknown", "stage": "import", "error": type(error).__name__, "text": clean(str(error))}
        settle()
        loaded = round(time.monotonic() - begun, 3)
        imported = []
        for request in requests(commands):
            if not problem:
                learn(imported)
            answer = problem or answered(engine, request, (source, sink))
            imported = answer.pop("imported", [])
            tell(dict(answer, import_seconds=loaded), release, request)
