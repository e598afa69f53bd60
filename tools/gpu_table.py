#!/usr/bin/env python3
"""Writes docs/reference/gpus.md, the table of data/gpus for readers. The files are the truth, the table is derived.

    tools/gpu_table.py            rewrites docs/reference/gpus.md
    tools/gpu_table.py --check    exit 1 when docs/reference/gpus.md is not what the files give
"""

import json
import os
import sys

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
HEAD = """# GPUs that are known

Written by `tools/gpu_table.py` from `data/gpus`; change the files, not this page. What each figure means, and why the
total is less than the box says, is in [formats/gpu.md](formats/gpu.md). `~` marks an estimate.

Total: what CUDA on Linux reports, with ECC as the product ships. Range: what other drivers showed, or the error of the
estimate. Context: device memory of one CUDA process before it allocates anything.
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


def span(low, high):
    return gib(low) if gib(low) == gib(high) else f"{gib(low)} to {gib(high)}"


def device_rows(gpus):
    yield "| device | aliases | cc | SMs | total GiB | range | nvidia-smi MiB | context MiB |"
    yield "| --- | --- | --- | ---: | ---: | --- | ---: | ---: |"
    for gpu in gpus:
        name = gpu["name"] + (f" ({gpu['variant']})" if "variant" in gpu else "")
        nvml = str(gpu["nvml_total_bytes"] // MIB) if gpu["nvml_total_bytes"] else "-"
        yield (f"| {name} | {', '.join(gpu['aliases'])} | {gpu['compute_capability']} | {gpu['sms']} "
               f"| {mark(gpu['total_source'])}{gib(gpu['total_bytes'])} | {span(gpu['total_low'], gpu['total_high'])} "
               f"| {nvml} | {mark(gpu['context_source'])}{gpu['context_bytes'] // MIB} |")


def profile_rows(gpus):
    yield "| device | profile: total GiB, SMs |"
    yield "| --- | --- |"
    for gpu in gpus:
        if "mig" in gpu:
            cells = [f"{entry['profile']}: {mark(entry['total_source'])}{gib(entry['total_bytes'])}, {entry['sms']}"
                     for entry in gpu["mig"]]
            yield f"| {gpu['name']} | {'; '.join(cells)} |"


def page(gpus):
    lines = [HEAD]
    for key, title in SECTIONS:
        chosen = sorted((gpu for gpu in gpus if gpu["class"] == key),
                        key=lambda gpu: (float(gpu["compute_capability"]), natural(gpu["name"]), gpu["total_bytes"]))
        lines += [f"## {title}", "", *device_rows(chosen), ""]
    lines += ["## MIG profiles", "", *profile_rows(sorted(gpus, key=lambda gpu: natural(gpu["name"]))), ""]
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
