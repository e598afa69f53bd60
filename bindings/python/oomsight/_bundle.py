"""The bundle of a failure: one folder with everything that a reader of it needs.

Figures of PyTorch are taken at once, in the thread that failed (the current device belongs to a thread); the rest is made in a
thread of its own that is left behind when it takes too long, for instance on a file system that no longer answers. A file that
cannot be made is left out. Who calls this is vllm_plugin.py, which also catches what is not caught here."""
import json
import os
import tempfile
import threading
import time
import traceback
from typing import Any, Callable, Dict, List, Optional, Tuple

from ._ask import Answer, ask, redacted

Say = Callable[[str, BaseException], None]
SECONDS = 60.0

_last_request: Dict[str, int] = {}
_tried = False


def observe() -> None:
    """Ask PyTorch to tell the exact size of a request that fails; its message is rounded."""
    import torch  # type: ignore[import-not-found,unused-ignore]

    def told(device: int, requested: int, total: int, free: int) -> None:
        try:
            _last_request.update(device=device, tried_bytes=requested, total_bytes=total, free_bytes=free)
        except Exception:  # the caller is the allocator
            pass

    if torch.cuda.is_initialized():
        torch._C._cuda_attach_out_of_memory_observer(told)


def is_out_of_memory(error: Optional[BaseException]) -> bool:
    seen: List[int] = []
    while error is not None and id(error) not in seen:
        seen.append(id(error))
        if type(error).__name__ == "OutOfMemoryError" or "CUDA out of memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def was_tried() -> bool:
    """Once per process: an engine that fails again and again fills no disk, and waits for a broken one once."""
    return _tried


def measured() -> Dict[str, Any]:
    import torch

    free, total = torch.cuda.mem_get_info()
    return {"free_bytes": free, "total_bytes": total, "allocated_bytes": torch.cuda.memory_allocated(),
            "reserved_bytes": torch.cuda.memory_reserved(), "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
            "request": dict(_last_request)}


def recorded(path: str) -> bool:
    """PyTorch's memory history into `path`, if it is being recorded."""
    import torch

    if not any(torch.cuda.memory._snapshot().get("device_traces", [])):
        return False
    torch.cuda.memory._dump_snapshot(path)
    return True


def explained(trace: str) -> Answer:
    return ask(["explain", "-"], text=trace)


def shown(trace: str) -> str:
    """The traceback as others may read it. Without the program that hides secrets only the places are kept, which hold none."""
    try:
        return redacted(trace)
    except Exception as error:
        places = [line for line in trace.splitlines() if line.startswith("  File ")]
        return "\n".join(places + ["(the message is left out: %s)" % type(error).__name__, ""])


def new_folder() -> str:
    """A folder that did not exist and that nobody else may enter: the name carries time and process for people, chance for the rest."""
    base = os.environ.get("OOMSIGHT_BUNDLE_DIR") or tempfile.gettempdir()
    os.makedirs(base, exist_ok=True)
    return tempfile.mkdtemp(prefix="oomsight-%s-%d-" % (time.strftime("%Y%m%d-%H%M%S"), os.getpid()), dir=base)


class Folder:
    """The files of a bundle; what cannot be made is told and left out. Files are made new, in the very folder that was opened, and
    never through a link: the place may be one where others can write, and a traceback or a plan is nobody else's to read."""

    def __init__(self, path: str, say: Say) -> None:
        self.path, self.say, self.files = path, say, []  # type: str, Say, List[str]
        self.inside = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self.inside)

    def put(self, name: str, make: Callable[[str], Any]) -> None:
        """make(path) gives what to write, or True when it has written it, or nothing."""
        file = -1
        try:
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self.inside)
            made = make("/proc/self/fd/%d" % file)
            if made is None or made is False:
                os.unlink(name, dir_fd=self.inside)
                return
            if made is not True:
                with open(file, "w", encoding="utf-8", errors="replace", closefd=False) as f:
                    f.write(made if isinstance(made, str) else json.dumps(made, indent=2))
            self.files.append(name)
        except BaseException as error:  # in a thread of ours: no signal is swallowed
            self.say("%s could not be written" % name, error)
            if file < 0:
                return  # nothing was made, and what stands there is not ours
            try:
                os.unlink(name, dir_fd=self.inside)  # half a file would be taken for a whole one
            except OSError:
                pass
        finally:
            if file >= 0:
                os.close(file)

    def put_answer(self, name: str, answer: Answer) -> None:
        self.put(name + ".json", lambda path: answer.data)
        self.put(name + ".html", lambda path: answer.html)
        self.put(name + ".txt", lambda path: answer.text)


def attempt(say: Say, what: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        say(what, error)
        return None


def fill(folder: Folder, trace: str, figures: Optional[Dict[str, Any]], step: str, rank: Any, plan: Optional[Answer]) -> str:
    """Write the files; returns the phase."""
    folder.put("traceback.txt", lambda path: shown(trace))
    folder.put("measured.json", lambda path: figures)
    incident: Optional[Answer] = attempt(folder.say, "the failure could not be explained", lambda: explained(trace))
    for name, answer in (("incident", incident), ("plan", plan)):
        if answer is not None:
            folder.put_answer(name, answer)
    folder.put("snapshot.pickle", recorded)
    said = incident.data if incident is not None else {}
    beside = None if plan is None else {key: plan.data.get(key) for key in ("verdict", "phase", "tried_bytes", "weights_bytes")}
    exact = (figures or {}).get("request", {}).get("tried_bytes")
    folder.put("bundle.json", lambda path: {
        "schema": "oomsight.bundle/1", "step": step, "rank": rank, "phase": said.get("phase"), "cause": said.get("cause"),
        "tried_bytes": exact or said.get("numbers", {}).get("tried_bytes"), "measured": figures or {}, "plan": beside,
        "files": list(folder.files)})
    if not folder.files:
        os.rmdir(folder.path)
        raise OSError("nothing could be written to " + folder.path)
    return str(said.get("phase") or step)


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """The result of `work`, or an error when it takes longer; it is left running then, and ends with the process."""
    results: List[Tuple[Any, Optional[BaseException]]] = []

    def run() -> None:
        try:
            results.append((work(), None))
        except BaseException as error:
            results.append((None, error))

    thread = threading.Thread(target=run, name="oomsight", daemon=True)
    thread.start()
    thread.join(seconds)
    if not results:
        raise TimeoutError("not done within %g s" % seconds)
    result, error = results[0]
    if error is not None:
        raise error if isinstance(error, Exception) else RuntimeError(repr(error))
    return result


def write(error: BaseException, step: str, rank: Any, plan: Optional[Answer], say: Say) -> Tuple[str, str]:
    """Returns the folder and the phase."""
    global _tried
    _tried = True
    figures: Optional[Dict[str, Any]] = attempt(say, "PyTorch's figures could not be had", measured)

    def work() -> Tuple[str, str]:
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        folder = Folder(new_folder(), say)
        try:
            return folder.path, fill(folder, trace, figures, step, rank, plan)
        finally:
            folder.close()

    found: Tuple[str, str] = within(SECONDS, work)
    return found
