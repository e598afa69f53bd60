"""A question to the program `oomsight`, in a process of its own.

The plugin asks in this way and not through the library: it is a guest in somebody's engine, and there whatever may crash, hang
or eat memory has to be something that can be killed and left behind. Nothing in here waits longer than it was told to."""
import os
import signal
import subprocess
import tempfile
import time
from typing import Any, BinaryIO, Dict, List, Sequence, cast

from ._command import command_path, environment
from ._results import parse

SECONDS = 30.0
MOST_BYTES = 32 << 20  # a page has some hundred kilobytes


class Unanswered(RuntimeError):
    """The program gave no answer; `code` is its exit code, or minus the signal that ended it."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Answer:
    """A report: its figures, and when somebody asks for them the page and the text, each by a process of its own."""

    def __init__(self, words: Sequence[str], text: str) -> None:
        self._words, self._text = list(words), text
        try:
            self.data: Dict[str, Any] = parse(self._as("json").splitlines()[0] if words[0] == "explain" else self._as("json"))
        except (ValueError, LookupError) as error:
            raise Unanswered(0, "what it answers is no report") from error

    def _as(self, form: str) -> str:
        return run([self._words[0], "--format", form] + self._words[1:], self._text)

    @property
    def html(self) -> str:
        return self._as("html")

    @property
    def text(self) -> str:
        return self._as("text")


def memory_file(content: bytes = b"") -> BinaryIO:
    """A file that needs no disk: a full or read-only one must not matter here."""
    if hasattr(os, "memfd_create"):
        file = cast(BinaryIO, os.fdopen(os.memfd_create("oomsight"), "w+b"))
    else:
        file = cast(BinaryIO, tempfile.TemporaryFile())
    file.write(content)
    file.seek(0)
    return file


def end(child: "subprocess.Popen[bytes]") -> None:
    """Kill it and what it started, without waiting: a process stuck in the kernel would hold the engine with it."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        child.kill()


def ask(words: Sequence[str], text: str = "") -> Answer:
    """Run `oomsight WORDS` with `text` on its standard input."""
    return Answer(words, text)


def redacted(text: str) -> str:
    """`text` without tokens, keys and passwords, as every report is."""
    return run(["redact"], text)


def run(words: Sequence[str], text: str) -> str:
    env = environment()
    env.pop("LD_PRELOAD", None)  # meant for the engine
    command: List[str] = [command_path()] + list(words)
    with memory_file(text.encode("utf-8", "surrogateescape")) as given, memory_file() as answered, memory_file() as said:
        child = subprocess.Popen(command, stdin=given, stdout=answered, stderr=said, env=env, start_new_session=True)
        deadline = time.monotonic() + SECONDS
        try:
            while child.poll() is None:
                if time.monotonic() > deadline:
                    raise Unanswered(-int(signal.SIGKILL), "no answer within %g s" % SECONDS)
                if os.fstat(answered.fileno()).st_size > MOST_BYTES:
                    raise Unanswered(-int(signal.SIGKILL), "an answer of more than %d bytes" % MOST_BYTES)
                time.sleep(0.005)
        except BaseException:
            end(child)
            raise
        said.seek(0)
        lines = said.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
        if child.returncode not in (0, 1):
            raise Unanswered(child.returncode, lines[-1] if lines else "exit %d" % child.returncode)
        answered.seek(0)
        return answered.read(MOST_BYTES).decode("utf-8", "replace")
