#!/usr/bin/env python3
"""A record that somebody sent into data/gpus: tools/take_record.py FILE...   (FILE: what `oomsight doctor --measure [--json]` printed; - is stdin)

The file of that name takes the measured figures; a total widens the range of the known ones, and what only people can say (aliases, class,
notes, the state of ECC that the product ships in) stays. Of a device that is not there the record is printed with what is to be filled in.
--logs BINARY LOG...: what `explain` reads of the same constants in engines' logs, beside those in data/gpus. Total and free memory at the start are
printed to 0.01 GiB, and what others held is in their difference: a reading, no record. --check FOLDER: exit 1 when a file of it would not be written back as it stands. Then tools/check_data.py && tools/gpu_table.py."""

import json
import os
import subprocess
import sys

import check_data

GPUS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "gpus")
BY_HAND = {"aliases": ["?"], "class": "?", "memory_kind": "?", "notes": ""}


def written(gpu):
    """As the files are: a line for each key, a line for each profile of MIG."""
    lines = []
    for key, value in gpu.items():
        if key == "mig":
            rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in value)
            lines.append(f'  "mig": [\n{rows}\n  ]')
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def record_of(text):
    """The record of a report in JSON, or the JSON at the end of a text."""
    report = json.loads(text) if text.lstrip().startswith("{") else json.loads(text[text.index("\n{") + 1:])
    return report.get("record", report) if report.get("schema") else report


def joined(old, new):
    gpu = dict(old, **{key: value for key, value in new.items() if value is not None and key != "memory_kind"})
    gpu["total_low"] = min(old["total_low"], new["total_low"])
    gpu["total_high"] = max(old["total_high"], new["total_high"])
    if old["total_source"] == "measured":
        gpu["total_origin"] = old["total_origin"] + "; " + new["total_origin"]
    if old["context_source"] == "measured" and new["context_bytes"]:
        gpu["context_note"] = f"{new['context_note']}; before: {old['context_bytes']} ({old['context_note']})"
    return {key: gpu[key] for key in check_data.GPU_KEYS if key in gpu}


def take(record):
    if "simulated GPU" in record["total_origin"]:
        print("this was measured on a simulated GPU: its figures came from data/gpus")
        return 1
    for name in sorted(os.listdir(GPUS)):
        path = os.path.join(GPUS, name)
        with open(path, encoding="utf-8") as file:
            gpu = json.load(file)
        # Products that share a name are told apart by their memory.
        if gpu["name"] == record["name"] and abs(gpu["total_bytes"] - record["total_bytes"]) < gpu["total_bytes"] // 10:
            with open(path, "w", encoding="utf-8") as file:
                file.write(written(joined(gpu, record)))
            print(path)
            return 0
    print(f"{record['name']} is not in data/gpus; a file of its own, with what is ? filled in:")
    whole = dict(BY_HAND, **record)
    print(written({key: whole[key] for key in check_data.GPU_KEYS if key in whole}), end="")
    return 1


def known(name):
    for file_name in sorted(os.listdir(GPUS)):
        with open(os.path.join(GPUS, file_name), encoding="utf-8") as file:
            gpu = json.load(file)
        if gpu["name"] == name:
            return gpu
    return None


def reading(incident):
    """{what: (read, known)} in MiB of one incident; empty when its log prints none of it."""
    numbers, gpu = incident["numbers"], known((incident.get("gpu") or {}).get("name"))
    total, free = numbers.get("total_bytes"), numbers.get("startup_free_bytes")
    if not gpu or not total or not free:
        return {}
    found = {"total": (total, gpu["total_bytes"]), "total less free": (total - free, gpu["context_bytes"])}
    if numbers.get("cudagraph_bytes"):
        found["graphs, printed"] = (numbers["cudagraph_bytes"], None)
    return {what: tuple(value and round(value / check_data.MIB) for value in pair) for what, pair in found.items()}


def of_logs(binary, paths):
    for path in paths:
        done = subprocess.run([binary, "explain", "--json", path], capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            incident = json.loads(line)
            for what, (read, has) in reading(incident).items():
                print(f"{path}: {incident['gpu']['name']}: {what} {read} MiB" + (f", data/gpus {has}" if has else ""))
    return 0


def check(folder):
    bad = 0
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        if written(json.loads(text)) != text:
            print(f"{name} would be written another way")
            bad = 1
    return bad


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    if sys.argv[1] == "--check":
        return check(sys.argv[2])
    if sys.argv[1] == "--logs":
        return of_logs(sys.argv[2], sys.argv[3:])
    code = 0
    for path in sys.argv[1:]:
        with sys.stdin if path == "-" else open(path, encoding="utf-8") as file:
            code |= take(record_of(file.read()))
    return code


if __name__ == "__main__":
    sys.exit(main())
