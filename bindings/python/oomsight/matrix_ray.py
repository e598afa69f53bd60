"""Dry starts of a matrix as Ray tasks: python -m oomsight.matrix_ray ADDRESS JOBS RETRIES, started by `oomsight matrix --ray`.

Tasks come on standard input, answers go to standard output as they come; both are framed as cli/matrix_ray.c says. A task is
one process, `oomsight dryrun --json ...`, on some node of the cluster, where program, engines and models have the same paths.
A task whose worker died or whose process was killed is given to another, at most RETRIES times."""
import importlib
import os
import sys
import tempfile
import threading
import time
from typing import IO, Any, Dict, Iterator, List, NamedTuple, Tuple

MEMORY = 4 << 30  # of the processes of a start, at most 3.4 GiB
SUBMITTED = 1000  # tasks that Ray is given at a time
CONNECT_S = 60.0
REASONS = (b"Error", b"error:", b"oomsight dryrun:")


class Task(NamedTuple):
    number: int
    words: List[str]
    variables: List[str]


class Lost(Exception):
    """The process of a task was killed; another try is worth while."""


def tasks(stream: IO[bytes]) -> Iterator[Task]:
    while True:
        head = stream.readline().split()
        if not head:
            return
        number, words, variables = (int(x) for x in head)
        texts = [os.fsdecode(stream.read(int(stream.readline()))) for _ in range(words + variables)]
        yield Task(number, texts[:words], texts[words:])


def answer(stream: IO[bytes], number: int, seconds: float, attempts: int, report: bytes, problem: bytes) -> None:
    stream.write(b"%d %.3f %d %d %d\n" % (number, seconds, attempts, len(report), len(problem)) + report + problem)
    stream.flush()


def environment(variables: List[str]) -> Dict[str, str]:
    """That of the worker, with the task's own; PATH is put in front of what is there. A worker's Python is not the engine's."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES")
           and not k.startswith("RAY_")}
    env["OOMSIGHT_WITH_PARENT"] = "1"
    for variable in variables:
        name, _, value = variable.partition("=")
        env[name] = value + ":" + env.get("PATH", "/usr/bin:/bin") if name == "PATH" else value
    return env


def die_with_parent() -> None:
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def reason(log: bytes) -> bytes:
    lines = [line for line in log.splitlines() if line.strip()]
    told = [line for line in lines if any(word in line for word in REASONS)]
    return (told or lines or [b""])[-1][:400]


def settled(report: bytes) -> bool:
    """Not so when the engine inside was killed from outside: as oomsight_matrix_report_settled()."""
    import json

    try:
        found = json.loads(report)
        child = found.get("child") or {}
        killed = (child.get("exit") or 0) > 128 or child.get("dead_processes") or child.get("host_exhausted")
        return found.get("verdict") != "unknown" or not killed
    except (ValueError, AttributeError):
        return True


def start(words: List[str], variables: List[str], last: bool) -> Tuple[float, bytes, bytes]:
    """(seconds, report, problem) of one dry start. Lost when it was killed, unless it is the last try."""
    import subprocess

    begin = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        code = subprocess.Popen(words, env=environment(variables), stdin=subprocess.DEVNULL, stdout=out, stderr=log,
                                preexec_fn=die_with_parent).wait()
        out.seek(0)
        log.seek(0)
        report, problem = out.read(), reason(log.read())
    seconds = time.monotonic() - begin
    if b'"schema"' not in report:
        report = b""
        if code < 0 or code > 128:
            problem = b"the dry run was killed by signal %d" % (-code if code < 0 else code - 128)
            if not last:
                raise Lost(problem.decode())
    elif not last and not settled(report):
        raise Lost("the engine was killed")
    return seconds, report, problem


def run(ray: Any, todo: List[Task], jobs: int, retries: int, out: IO[bytes]) -> None:
    # What a start needs is said, and where it runs is Ray's: a cluster of no node at all grows by what waits.
    remote = ray.remote(num_cpus=1, memory=MEMORY, max_retries=0)(start)
    limit = jobs or SUBMITTED
    waiting, under_way = list(reversed([(task, 1) for task in todo])), {}  # type: List[Tuple[Task, int]], Dict[Any, Tuple[Task, int]]
    while waiting or under_way:
        while waiting and len(under_way) < limit:
            task, attempt = waiting.pop()
            under_way[remote.remote(task.words, task.variables, attempt > retries)] = (task, attempt)
        done, _ = ray.wait(list(under_way), num_returns=1)
        task, attempt = under_way.pop(done[0])
        try:
            seconds, report, problem = ray.get(done[0])
            answer(out, task.number, seconds, attempt, report, problem)
        except Exception as error:  # Lost, wrapped by Ray, or a worker that died too often
            if attempt <= retries:
                print("oomsight matrix: point %d: %s; again" % (task.number, str(error).strip().splitlines()[-1]), file=sys.stderr)
                waiting.append((task, attempt + 1))
            else:
                answer(out, task.number, 0.0, attempt, b"", str(error).strip().splitlines()[-1].encode()[:400])


def give_up(address: str) -> None:
    """Ray itself waits for ever, and in code that no signal ends."""
    print("oomsight matrix: Ray at %s did not answer within %d seconds" % (address, CONNECT_S), file=sys.stderr, flush=True)
    os._exit(3)


def main(words: List[str]) -> int:
    if len(words) != 3:
        sys.exit(__doc__)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed is no answer
    todo = list(tasks(sys.stdin.buffer))
    if not todo:
        return 0
    try:
        ray = importlib.import_module("ray")  # only here: nothing else needs it
    except ImportError:
        print("oomsight matrix: Python has no package 'ray' (pip install ray), or say --python PROGRAM that has it", file=sys.stderr)
        return 3
    late = threading.Timer(CONNECT_S, give_up, words[:1])
    late.daemon = True
    late.start()
    try:
        ray.init(address=words[0], logging_level="ERROR", log_to_driver=False)
    except Exception as error:
        print("oomsight matrix: Ray at %s: %s" % (words[0], str(error).strip().splitlines()[0]), file=sys.stderr)
        return 3
    late.cancel()
    try:
        run(ray, todo, int(words[1]), int(words[2]), out)
    finally:
        ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
