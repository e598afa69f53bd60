#!/usr/bin/env python3
"""Writes docs/reference/gpus.md, the table of data/gpus for readers, from the files.

    tools/gpu_table.py            rewrites docs/reference/gpus.md
    tools/gpu_table.py --check    exit 1 when docs/reference/gpus.md is not what the files give
"""

import json
import os
import sys
import textwrap

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
MIB = 1 << 20
GIB = 1 << 30
SECTIONS = [
    ("consumer", "GeForce and Titan"),
    ("laptop", "GeForce, laptop"),
    ("workstation", "Workstation"),
    ("datacentre", "Data centre"),
    ("embedded", "Unified memory"),
]
HEAD = """# GPUs

Written by `tools/gpu_table.py` from `data/gpus`; change the files, not this page. `oomsight gpus` lists
all names; `--gpu` takes any of them. `~` marks an estimate: [measure it](../how-to/measure-a-gpu.md).

*Total* is what CUDA on Linux reports with a current driver. [Why it is less than the box
says](formats/gpu.md#why-the-total-is-not-the-number-on-the-box). *Context* is the memory of one CUDA
process before it allocates anything.
"""


def load():
    directory = os.path.join(ROOT, "data", "gpus")
    gpus = []
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            gpus.append(json.load(file))
    return gpus


def natural(text):
    """Sort key that puts 980 before 1080."""
    parts, digits = [], ""
    for char in text + " ":
        if char.isdigit():
            digits += char
        else:
            if digits:
                parts.append((0, int(digits), ""))
                digits = ""
            parts.append((1, 0, char))
    return parts


def gib(value):
    return f"{value / GIB:.2f}"


def mark(source):
    return "~" if source == "estimated" else ""


def device_rows(gpus):
    yield "|GPU|name|compute capability|SMs|total GiB|context MiB|"
    yield "|---|---|---|---:|---:|---:|"
    for gpu in gpus:
        name = gpu["name"].replace("NVIDIA ", "") + (f" ({gpu['variant']})" if "variant" in gpu else "")
        yield (f"|{name}|`{gpu['aliases'][0]}`|{gpu['compute_capability']}|{gpu['sms']}"
               f"|{mark(gpu['total_source'])}{gib(gpu['total_bytes'])}|{mark(gpu['context_source'])}{gpu['context_bytes'] // MIB}|")


def page(gpus):
    lines = [HEAD]
    for key, title in SECTIONS:
        chosen = sorted((gpu for gpu in gpus if gpu["class"] == key),
                        key=lambda gpu: (float(gpu["compute_capability"]), natural(gpu["name"]), gpu["total_bytes"]))
        lines += [f"## {title}", "", *device_rows(chosen), ""]
    parents = [gpu["name"].replace("NVIDIA ", "") for gpu in sorted(gpus, key=lambda gpu: natural(gpu["name"])) if "mig" in gpu]
    lines += ["## MIG", "", "Profiles of these GPUs are known, named like `a100-40-3g.20gb` (`oomsight gpus` lists their sizes):", "",
              *textwrap.wrap(", ".join(parents) + ".", 100), ""]
    return "\n".join(lines)


def main(argv):
    path = os.path.join(ROOT, "docs", "reference", "gpus.md")
    text = page(load())
    if argv[1:] == ["--check"]:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return 0
        print("docs/reference/gpus.md is out of date: run tools/gpu_table.py")
        return 1
    if argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
