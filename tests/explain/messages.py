#!/usr/bin/env python3
"""Every message about a lack of memory that a library or an engine can print is read: messages.py BINARY

tests/explain/messages.json has the formats, taken from the strings of the libraries and the sources of the engines by
tools/harvest_messages.py (--against holds it against another release). {size:tried} is a figure that has to be read, with its unit,
{bytes:...} and {int:...} one without, {path} a file in /dev/shm, {} is anything; "before" is what stands before it on its line. Exceptions are no lack of
memory, and have their reason beside them. Where OOMSIGHT_VENVS names a folder with environments of engines, the strings of
their PyTorch, NCCL and cuBLAS are held against the formats, too."""
import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COUNTS = {"kv_tokens": "kv_tokens", "max_seq_len": "max_seq_len"}


def fill(text):
    """The sentence, and the figures that have to be read: key of the JSON to value."""
    wanted = {}

    def one(found):
        kind, _, name = found.group(1).partition(":")
        figure = 3 + len(wanted)
        if kind == "size":
            if name:
                wanted[name + "_bytes"] = figure << 30
            return "%d.00 GiB" % figure
        if kind == "path":
            return "/dev/shm/nccl-12"
        if kind == "bytes":
            wanted[name + "_bytes"] = (figure << 30) + 512
            return str((figure << 30) + 512)
        if kind == "int":
            wanted[COUNTS[name]] = figure * 100
            return str(figure * 100)
        return "12"
    return re.sub(r"\{([\w:]*)\}", one, text), wanted


def answers(binary, text):
    run = subprocess.run([binary, "explain", "--offline", "--json", "-"], input=text + "\n", capture_output=True, text=True, check=False, timeout=60)
    return [json.loads(line) for line in run.stdout.splitlines()]


def not_covered():
    """What a library of an engine's environment can print about memory and no format has."""
    tool = os.path.join(HERE, "..", "..", "tools", "harvest_messages.py")
    places = sorted(glob.glob(os.path.join(os.environ.get("OOMSIGHT_VENVS", os.devnull), "*")))
    places = [place for place in places if glob.glob(place + "/lib/python3*/site-packages/torch/lib/libtorch_cuda.so")]
    if not places:
        return []
    words = [word for place in places for word in ("--environment", place)]
    told = subprocess.run([sys.executable, tool, *words, "--against", HERE + "/messages.json"], capture_output=True, text=True, check=False, timeout=500)
    return ["no format: " + line for line in told.stdout.splitlines()[:-1]] if told.returncode else []


def main():
    binary = sys.argv[1]
    with open(os.path.join(HERE, "messages.json"), encoding="utf-8") as f:
        data = json.load(f)
    wrong = []
    for row in data["messages"]:
        text, wanted = fill(row["format"])
        found = [one for one in answers(binary, row.get("before", "RuntimeError: ") + text) if one["is_oom"]]
        if not found:
            wrong.append("not read: %s (%s)" % (text[:120], row["from"]))
            continue
        for key, value in wanted.items():
            if found[0]["numbers"].get(key) != value:
                wrong.append("%s is %s, not %d: %s" % (key, found[0]["numbers"].get(key), value, text[:120]))
    for row in data["exceptions"]:
        if len(row["why"].split()) < 3:
            wrong.append("no reason: %s" % row["format"][:120])
        if any(one["is_oom"] for one in answers(binary, fill(row["format"])[0])):
            wrong.append("called out of memory: %s" % row["format"][:120])
    # A message of which the last line of a log has only the beginning.
    for whole in ("torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError", "RuntimeError: CUDA out of memory"):
        for length in range(len(whole) - 10, len(whole)):
            if not any(one["is_oom"] for one in answers(binary, "  File \"/x/vllm/a.py\", line 1, in f\n" + whole[:length])):
                wrong.append("not read: %s" % whole[:length])
    wrong += not_covered()
    print("\n".join(wrong + ["messages: %d formats and %d exceptions; %d wrong" % (len(data["messages"]), len(data["exceptions"]), len(wrong))]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
