#!/usr/bin/env python3
"""`oomsight check` of many files needs no more memory than of few. flat.py BINARY

Every kind of file that has a command in it, and every form of the report. Standard library only."""
import os
import subprocess
import sys
import tempfile

BINARY = os.path.abspath(sys.argv[1])
FEW, MANY, MOST_EACH = 40, 340, 24 << 10  # bytes for each further file: 284 kB were those that were kept
COMMAND = "vllm serve Qwen/Qwen3-8B --max-model-len 8192 --port %d"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {containers: [{name: c, image: 'vllm/vllm-openai:v0.19.1', args: [--model, Qwen/Qwen3-8B]}]}\n"
KINDS = {"pod.yaml": lambda n: POD % n, "start.sh": lambda n: "#!/bin/sh\n" + COMMAND % n + "\n", "Dockerfile": lambda n: "FROM x\nCMD " + COMMAND % n + "\n",
         "compose.yaml": lambda n: "services:\n  a:\n    image: vllm/vllm-openai:v0.19.1\n    command: --model Qwen/Qwen3-8B --port %d\n" % n}
FORMS = ((), ("--json",), ("--format", "sarif"))


def peak(folder, words):
    """The largest resident size of a check of this folder, and its answer."""
    with open(os.path.join(folder, "..", "answer"), "wb") as answer:
        process = subprocess.Popen([BINARY, "check", "--offline", "--gpu", "L4", *words, folder], stdout=answer, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    with open(os.path.join(folder, "..", "answer"), encoding="utf-8") as answer:
        return usage.ru_maxrss << 10, os.waitstatus_to_exitcode(status), answer.read()


def grows(kind, words):
    """Bytes for each further file."""
    sizes = []
    for count in (FEW, MANY):
        with tempfile.TemporaryDirectory() as top:
            folder = os.path.join(top, "files")
            for n in range(count):
                os.makedirs(os.path.join(folder, "d%03d" % n))
                with open(os.path.join(folder, "d%03d" % n, kind), "w", encoding="utf-8") as file:
                    file.write(KINDS[kind](n))
            size, code, answer = peak(folder, words)
            assert code in (0, 1), (kind, words, code, answer[-500:])
            assert words or "%d" % count in answer, (kind, count, answer[-500:])
            sizes.append(size)
    return (sizes[1] - sizes[0]) / (MANY - FEW)


def test_memory_is_flat():
    found = {(kind, *words): grows(kind, words) for kind in KINDS for words in (FORMS if kind == "pod.yaml" else FORMS[:1])}
    print(", ".join("%s %.1f" % (" ".join(key), value / 1024) for key, value in found.items()), "KiB a file")
    assert max(found.values()) <= MOST_EACH, found


if __name__ == "__main__":
    test_memory_is_flat()
