#!/usr/bin/env python3
"""asking.py SHIM: commands are asked one after the other of an engine that answers, refuses, dies, hangs, writes garbage, learns and forgets. What
one of them does is no other's answer. No engine is needed."""
import argparse
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from typing import List, Literal, Optional, Union

FOLDER = os.path.join(sys.argv[1], "python")
NAME, TOLD = "small", []
sys.path.insert(0, FOLDER)


def begin():
    if os.environ.get("BROKEN"):
        raise ImportError("libcudart.so.13: cannot open shared object file")
    return "1.2.3"


def is_asked(name):
    return name.startswith("SMALL_")


def steps(argv, count):
    kind = argv[0]
    TOLD.append(kind)
    if kind in ("is refused", "parser refuses", "parser leaves"):
        yield "parser"
        if kind == "parser refuses":
            print("usage: small\nsmall: error: no such flag", file=sys.stderr)
        if kind != "is refused":
            sys.exit(2)
        yield {"values": {}}
        yield "config"
        raise ValueError("one of two is to be given")
    yield answer_to(kind, count)


@dataclasses.dataclass
class Inner:
    depth: int = 1


@dataclasses.dataclass
class Config:
    mode: Literal["a", "b"] = "a"
    size: Optional[int] = None
    either: Union[bool, str] = True
    inner: Optional[Inner] = None
    words: List[str] = dataclasses.field(default_factory=list)
    _own: int = 0


class OnOff(argparse.Action):
    """As vLLM 0.33 has it: two pairs of spellings, of which its help shows one."""

    def __init__(self, option_strings, dest, **more):
        super().__init__(option_strings, dest, nargs=0, default=False)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, not option_string.startswith(("--no-", "--off-")))


def parser():
    if os.environ.get("NO_PARSER"):
        raise RuntimeError("no\nparser " + "x" * 1000)
    made = argparse.ArgumentParser()
    pair = made.add_argument("--on-cache", "--off-cache", action=OnOff, dest="cache")
    for name in ("--no-on-cache", "--no-off-cache"):
        made._option_string_actions[name] = pair
    made.add_argument("--eager", "-e", action="store_true")
    made.add_argument("--not-eager", action="store_false", dest="eager")
    made.add_argument("--size", type=lambda text: int(text.replace("k", "000")), default=4)
    made.add_argument("--count", type=int, choices=[1, 2, None], nargs="+")
    made.add_argument("--share", type=float, default=float("nan"))
    made.add_argument("--keys", type=json.loads, default={"a": [1]})
    made.add_argument("--config", type=lambda text: Config(**json.loads(text)))
    made.add_argument("--level", default=argparse.SUPPRESS)
    made.add_argument("--first", default=object())
    return made


MODELS = {"dense": {"model_type": "small"}}
SEEN = {"available_bytes": 900, "requested_bytes": 1000, "before_bytes": 40, "cublas_bytes": 32, "retained_bytes": 5, "requests": 1, "vocabulary": 1000}


def start(asked):
    """14 bytes of a logit and 4096 that are always there; 32 bytes for cuBLAS before the first look."""
    broken = os.environ.get("BROKEN_START", "")
    yield "start"
    if broken == asked["model"]:
        os.kill(os.getpid(), signal.SIGKILL)
    rows = asked["requests"]
    seen = dict(SEEN, requests=rows, vocabulary=1000, peak_bytes=100 + 4096 + 14000 * rows)
    if asked["marks"]:
        seen.update(before_cublas_bytes=32, forward={"at_bytes": 0, "peak_bytes": 4000}, peak_bytes=7,
                    sampler={"at_bytes": 100, "peak_bytes": 4096 + (14000 if broken != "parts" else 1 << 20) * rows})
    yield {"verdict": "taken", "seen": seen if broken != "words" else dict(seen, requests="many", sampler=[], retained_bytes=None)}


def probed():
    """Terms of small starts, and what is said where one of them does not come to its end."""
    told = ask([{"id": 1, "probe": True}])[0]
    assert told["terms"] == [
        {"term": "sampler", "form": "bytes_per_logit", "value": 14, "low": 14, "high": 14.004,
         "seen": [{"requests": 256, "bytes": 3588096}, {"requests": 1024, "bytes": 14340096}]},
        {"term": "before_reading", "form": "cublas", "value": 32}, {"term": "before_reading", "form": "constant", "value": 8},
        {"term": "retained", "form": "constant", "value": 5}], told["terms"]
    assert told["left_out"] == {} and told["configs"] == MODELS and told["version"] == "1.2.3"
    assert [probe["probe"] for probe in told["probes"]] == ["dense-256", "dense-1024", "moe", "hybrid", "graphs"]
    assert told["probes"][1]["peak_bytes"] == 100 + 4096 + 14000 * 1024  # of the start without marks
    lost = ask([{"id": 1, "probe": True}], BROKEN_START="hybrid")[0]
    assert lost["terms"] == told["terms"] and lost["left_out"] == {"hybrid": "it ended with 9 before it answered"}, lost["left_out"]
    none = ask([{"id": 1, "probe": True}], BROKEN_START="dense")[0]
    assert none["terms"] == [] and none["left_out"]["sampler"] == "the start dense-256 shows no sampler peak_bytes", none["left_out"]
    apart = ask([{"id": 1, "probe": True}], BROKEN_START="parts")[0]["left_out"]
    assert apart == {"parts of dense-%d" % rows: "they differ by %d bytes from the peak of the start" % (rows * (14000 - (1 << 20))) for rows in (256, 1024)}, apart
    assert [term["term"] for term in ask([{"id": 1, "probe": True}], BROKEN_START="words")[0]["terms"]] == ["before_reading", "before_reading"]


def architectures():
    return {"SmallForCausalLM", "LargeForCausalLM"}


def learned():
    """Its flags, by what they do."""
    said, broken = ask([{"id": 1, "learn": True}, {"id": 2, "learn": True, "seconds": 20}])[0], ask([{"id": 1, "learn": True}], NO_PARSER="1")[0]
    found = {row["names"][0]: row for row in said["flags"]}
    assert found["-h"]["kind"] == "help"
    assert found["--on-cache"] == {"names": ["--on-cache"], "negative": ["--off-cache", "--no-on-cache", "--no-off-cache"], "kind": "bool-optional", "dest": "cache",
                                   "default": False, "hidden": ["--no-on-cache", "--no-off-cache"]}, found["--on-cache"]
    assert found["--eager"] == {"names": ["--eager", "-e"], "kind": "flag", "stores": True, "dest": "eager", "default": False}
    assert found["--not-eager"]["stores"] is False and "negative" not in found["--not-eager"]
    assert found["--size"] == {"names": ["--size"], "kind": "str", "dest": "size", "default": 4}  # it takes 4k, which is not known to take more
    assert found["--count"] == {"names": ["--count"], "kind": "list", "item": "choice", "choices": [1, 2], "nullable": True, "nargs": "+", "dest": "count"}
    assert found["--share"] == {"names": ["--share"], "kind": "float", "dest": "share"}
    assert found["--keys"]["kind"] == "json" and found["--keys"]["default"] == {"a": [1]}
    assert found["--config"]["json_keys"] == [
        {"name": "either", "kind": "bool|str"}, {"name": "inner", "kind": "dict", "nullable": True}, {"name": "inner.depth", "kind": "int"},
        {"name": "mode", "kind": "choice", "choices": ["a", "b"]}, {"name": "size", "kind": "int", "nullable": True}, {"name": "words", "kind": "list"}], found["--config"]
    assert "json_keys" not in found["--keys"]
    assert "default" not in found["--level"] and "default" not in found["--first"]
    assert said["architectures"] == ["LargeForCausalLM", "SmallForCausalLM"] and said["version"] == "1.2.3"
    assert "package" in said["left_out"] and "package" not in said
    assert "flags" not in broken and broken["left_out"]["flags"].startswith("RuntimeError: no parser xxx") and len(broken["left_out"]["flags"]) < 400
    assert "architectures" in broken


def answer_to(kind, count):
    if kind == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif kind == "exits":
        os._exit(0)
    elif kind == "raises":
        raise RuntimeError("inside")
    elif kind == "hangs":
        time.sleep(60)
    elif kind == "leaves a process":
        if os.fork() == 0:
            time.sleep(60)
    elif kind == "writes garbage":
        for fd in range(3, 64):
            try:
                os.write(fd, b"garbage\n") if os.get_blocking(fd) is not None and os.readlink("/proc/self/fd/%d" % fd).startswith("pipe") else None
            except OSError:
                pass
    elif kind == "says too much":
        return {"verdict": "taken", "values": {"x": "x" * (1 << 20)}}
    elif kind == "imports":
        import colorsys
        return {"verdict": "taken", "values": {"imported": colorsys.__name__}}
    elif kind == "has":
        return {"verdict": "taken", "values": {"had": "colorsys" in sys.modules}}
    elif kind == "not a number":
        return {"verdict": "taken", "values": {"x": float("nan")}}
    return {"verdict": "refused" if kind == "refused" else "taken", "values": {"told": len(TOLD), "count": count, "env": os.environ.get("SMALL_ONE"), "other": os.environ.get("LD_ONE")}}


def ask(lines, **environment):
    """Its answers, in a process as it is started by the program."""
    source, requests = os.pipe()
    answers, sink = os.pipe()
    run = subprocess.Popen([sys.executable, os.path.abspath(__file__), sys.argv[1], "serve"], pass_fds=(source, sink),
                           env=dict(os.environ, OOMSIGHT_ASK="%d,%d" % (source, sink), **environment))
    os.close(source)
    os.close(sink)
    with os.fdopen(requests, "w") as file:
        file.writelines(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    with os.fdopen(answers) as file:
        told = [json.loads(line) for line in file]
    assert run.wait() == 0
    return told


def main():
    one = lambda number, kind, **more: dict({"id": number, "argv": [kind], "env": {"SMALL_ONE": kind, "LD_ONE": "1"}, "count": 2}, **more)
    kinds = ["taken", "dies", "exits", "raises", "hangs", "leaves a process", "writes garbage", "says too much", "not a number", "refused", "has", "imports", "has", "taken"]
    begun = time.monotonic()
    told = ask([one(at, kind, seconds=1 if kind == "hangs" else 20) for at, kind in enumerate(kinds)])
    assert time.monotonic() - begun < 15
    assert [row["id"] for row in told] == list(range(len(kinds)))
    assert all(row["schema"] == "oomsight.exact/1" and row["engine"] == "small" and row["version"] == "1.2.3" for row in told)
    rows = list(zip(kinds, told))
    for kind, row in rows:
        lost = kind in ("dies", "exits", "raises", "hangs", "writes garbage", "says too much", "not a number")
        assert row["verdict"] == ("unknown" if lost else "refused" if kind == "refused" else "taken"), (kind, row)
        assert "imported" not in row
    assert told[0]["values"] == told[-1]["values"] == {"told": 1, "count": 2, "env": "taken", "other": None}  # nothing is left of the others
    assert [row["values"]["had"] for kind, row in rows if kind == "has"] == [False, True]
    assert told[1]["text"] == "it ended with 11 before it answered" and told[4]["text"] == "it took more than 1 seconds"

    staged = [(row["verdict"], row["stage"], row["text"]) for row in ask([one(at, kind) for at, kind in enumerate(("is refused", "parser refuses", "parser leaves", "raises"))])]
    assert staged == [("refused", "config", "one of two is to be given"), ("refused", "parser", "no such flag"), ("unknown", "parser", ""),
                      ("unknown", None, "inside")], staged

    lines = ["garbage\n", "[]\n", "{}\n", '{"argv": "x"}\n', json.dumps({"id": 5, "argv": ["taken"]}) + "\n"]
    assert [(row["verdict"], row["id"]) for row in ask(lines)] == [("unknown", None)] * 4 + [("taken", 5)]

    learned()
    probed()
    broken = ask([one(1, "taken"), one(2, "taken")], BROKEN="1")
    assert [(row["verdict"], row["version"], row["stage"]) for row in broken] == [("unknown", None, "import")] * 2
    import oomsight_ask
    try:
        oomsight_ask.release_of("no-such-package", "Small")
    except oomsight_ask.Unknown as error:
        assert str(error) == sys.executable + " has no Small; name the Python that has it with --python"
    else:
        raise AssertionError("a package that is not there has a release")
    print("ok")


if __name__ == "__main__":
    if sys.argv[2:] == ["serve"]:
        import oomsight_ask
        oomsight_ask.main(sys.modules["__main__"])
    else:
        main()
