#!/usr/bin/env python3
"""Which lines of an engine's sources log a traceback, and of what: harvest_loggers.py GIT_FOLDER|PACKAGES... [--out FILE]

A logged traceback has its logger's file and line in front of every line, so that even a piece of it tells whether the engine was
starting or serving. Of a git repository every release is read, of a folder of packages the one that is installed there. Only facts
are kept: file, kind, line numbers. A number that means one thing in one release and another in another is left out; releases are
asked before their candidates."""

import argparse
import collections
import json
import os
import re
import subprocess

START = ["init_free_memory_check", "distributed_init", "weight_load", "quant_postprocess", "profile_run", "mm_profile", "cudagraph_profile", "kv_sizing", "kv_alloc", "compile",
         "cudagraph_capture", "sampler_warmup"]
SERVING = ["runtime_prefill", "runtime_sampler", "runtime_other", "sleep_wake"]
SETS = {"start": START, "serving": SERVING, "worker_start": START[:4], "worker_call": START[4:7] + START[8:] + SERVING}
# What is logged, and so what had been called.
SENTENCES = {"EngineCore failed to start": "start", "EngineCore encountered a fatal error": "serving", "AsyncLLM output_handler failed": "serving",
             "WorkerProc failed to start": "worker_start", "WorkerProc hit an exception": "worker_call"}
FILES = ("vllm/v1/engine/core.py", "vllm/v1/engine/async_llm.py", "vllm/v1/executor/multiproc_executor.py")
LOGGED = re.compile(r'logger\.(?:exception|error)\(\s*f?"(%s)' % "|".join(SENTENCES))


def releases(folder):
    """[(name, {file: text})]"""
    if not os.path.isdir(os.path.join(folder, "vllm")):
        for tag in subprocess.run(["git", "-C", folder, "tag"], capture_output=True, text=True, check=True).stdout.split():
            texts = {}
            for file in FILES:
                got = subprocess.run(["git", "-C", folder, "show", "refs/tags/%s:%s" % (tag, file)], capture_output=True, text=True, check=False)
                texts[file] = got.stdout if got.returncode == 0 else ""
            yield tag, texts
        return
    texts = {}
    for file in FILES:
        with open(os.path.join(folder, file), encoding="utf-8") as f:
            texts[file] = f.read()
    yield folder, texts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--out")
    args = parser.parse_args()
    kinds, tried, count = collections.defaultdict(set), collections.defaultdict(set), 0
    for folder in args.folders:
        for name, texts in releases(folder):
            found = [(os.path.basename(file), text.count("\n", 0, m.start()) + 1, SENTENCES[m.group(1)]) for file, text in texts.items() for m in LOGGED.finditer(text)]
            count += bool(found)
            for file, line, kind in found:
                (tried if re.search(r"\drc\d", os.path.basename(name)) else kinds)[file, line].add(kind)
    kinds = {**tried, **kinds}
    table = collections.defaultdict(lambda: collections.defaultdict(list))
    for (file, line), meant in sorted(kinds.items()):
        if len(meant) == 1:
            table[file][min(meant)].append(str(line))
    names = list(SETS)
    modules = {file: {str(names.index(kind)): " ".join(lines) for kind, lines in sorted(by_kind.items())} for file, by_kind in table.items()}
    text = "\n".join(["{", '  "schema": "oomsight.loggers/1",', '  "sets": %s,' % json.dumps([SETS[n] for n in names]), '  "modules": {',
                      ",\n".join("    %s: %s" % (json.dumps(m), json.dumps(f)) for m, f in sorted(modules.items())), "  }", "}", ""])
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            f.write(text)
    print("harvest_loggers: %d releases, %d lines, %d mean two things" % (count, len(kinds), sum(len(k) > 1 for k in kinds.values())))


if __name__ == "__main__":
    main()
