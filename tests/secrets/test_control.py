#!/usr/bin/env python3
"""What others wrote is shown, not obeyed: control characters, C1, bytes that are not UTF-8 and line breaks in names, configs, YAML, logs
and matrix files never reach a terminal, a job log or a page as they are, and JSON stays UTF-8. usage: test_control.py BINARY"""
import json
import os
import re
import sys
import tempfile

from inputs import FIXTURES, log_of, model_in, run, write

FORGED = "::error::forged"
NASTY = "\x1b]0;title\x07\x1b[2J\u009b31m\x7f\u202e\r\n" + FORGED + "\n"
ONE_LINE = "\x1b]0;title\x07\x1b[2J\u009b31m\x7f\u202e\udcff\udcc3"  # surrogates: bytes that are not UTF-8
OBEYED = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")


def commands(folder):
    def path(name, text):
        return write(os.path.join(folder, name), text)

    model_in(folder, "m")
    nasty_name = "n\n" + FORGED + "\x1b[2J\udcff.sh"
    compose = json.dumps({"services": {"a" + NASTY: {"image": "vllm/vllm-openai:v0.19.1", "command": ["--model", "./m", "--served-model-name", "w" + NASTY]},
                                       "b": {"image": "vllm/vllm-openai:v0.19.1", "command": ["--model", "/no/such" + NASTY]}}})
    files = [path("compose.yaml", compose), path(nasty_name, "vllm serve ./m\nvllm serve ./absent\n"), path("s.sh", "vllm serve './m%s'\n" % NASTY)]
    for form in ("text", "json", "github", "sarif"):
        yield "check " + form, ["check", "--offline", "--gpu", "4090", "--models", folder, "--format", form] + files, b""
    for at, change in enumerate(({"architectures": ["X" + NASTY]}, {"model_type": "t" + NASTY, "architectures": []}, {"quantization_config": {"quant_method": "q" + NASTY}},
                                 {"torch_dtype": "d" + NASTY}, {"rope_scaling": {"rope_type": "r" + NASTY, "factor": 2}})):
        model = model_in(folder, "model%d" % at, **change)
        for form in ("text", "json", "md", "html"):
            yield "plan %s %s" % (sorted(change), form), ["plan", "--offline", "--explain", "--gpu", "4090", "--format", form, "--", "vllm", "serve", model], b""
    odd = model_in(folder, "dir\n" + FORGED + "\x1b[2J\udcff")
    for form in ("text", "json", "md", "html"):
        yield "plan of an odd folder " + form, ["plan", "--offline", "--gpu", "4090", "--format", form, "--", "vllm", "serve", odd], b""
    for words in (["--gpu", "4090", "--", "vllm", "serve", "/no/such" + NASTY], ["--gpu", "x" + ONE_LINE, "--", "vllm", "serve", odd],
                  ["--gpu", "4090", "--", "vllm", "serve", odd, "--max-model-len", "9" + ONE_LINE], ["--gpu", "4090", "--", "vllm", "serve", odd, "--no" + ONE_LINE], ["--x" + ONE_LINE]):
        yield "plan that fails", ["plan", "--offline"] + words, b""
    log = log_of([ONE_LINE]).encode("utf-8", "surrogateescape")
    for form in ("text", "json", "md", "html", "github", "sarif"):
        yield "explain " + form, ["explain", "--format", form, "-"], log
        yield "explain of an odd name " + form, ["explain", "--format", form, path("l\n" + FORGED + "\x1b[2J.log", log)], b""
    yield "explain of nothing", ["explain", "/no/such" + NASTY], b""
    matrix = path("matrix.yaml", json.dumps({"models": [{"model": "./m", "name": "m" + NASTY}, "./absent"], "gpus": [{"gpu": "4090", "name": "g" + NASTY}], "versions": ["0.19.1", "0.32.0"],
                                             "flags": ["--revision 'r%s'" % NASTY.replace("'", ""), {"name": "s" + NASTY, "flags": "--max-num-seqs 4"}, "--none" + ONE_LINE[:9]]}))
    for form in ("text", "json", "md", "html", "junit"):
        yield "matrix " + form, ["matrix", "--offline", "--models", folder, "--format", form, matrix], b""
        yield "matrix --diff " + form, ["matrix", "--offline", "--models", folder, "--format", form, "--diff", "0.19.1", "0.32.0", matrix], b""
    trace = path("t.trace", b"malloc a 1048576 0 s\x1b[2J\xc2\x9b\xff\nmalloc c 99999999999 0 x\x07\n")
    for form in ("text", "json", "md", "html"):
        yield "replay " + form, ["replay", "--format", form, trace], b""
        yield "replay of odd settings " + form, ["replay", "--format", form, "--settings", "a" + NASTY, os.path.join(FIXTURES, "traces", "stranded.trace")], b""
    yield "redact", ["redact"], ONE_LINE.encode("utf-8", "surrogateescape")


def wrong(name, out):
    """What is wrong with an answer; github's own lines begin with :: and hold what we put there."""
    found = OBEYED.search(out)
    if found:
        return "%r reaches the reader" % out[max(0, found.start() - 40):found.end() + 20]
    try:
        text = out.decode("utf-8")
    except UnicodeDecodeError as error:
        return "not UTF-8: %r" % out[max(0, error.start - 40):error.start + 10]
    if any(line.strip().startswith(FORGED) for line in text.splitlines()):
        return "a forged line"
    if name.endswith(" json") or name.endswith(" sarif"):
        body = text[:text.rfind("}") + 1]
        try:
            json.loads(body)
        except ValueError:
            try:
                [json.loads(line) for line in body.splitlines() if line.strip()]
            except ValueError as error:
                return "" if not body else "no JSON: %s" % error
    return ""


def main():
    binary, bad, asked = os.path.abspath(sys.argv[1]), 0, 0
    with tempfile.TemporaryDirectory(prefix="oomsight-control-") as folder:
        for name, words, stdin in commands(folder):
            if any("\0" in word for word in words):
                continue
            code, out = run(binary, words, stdin, cwd=folder)
            asked += 1
            what = wrong(name, out) if code in (0, 1, 2, 3) else "exit %d: %r" % (code, out[-300:])
            if what:
                bad += 1
                print("%s: %s" % (name, what))
    print("%d answers: %d with something a reader would obey" % (asked, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
