#!/usr/bin/env python3
"""A record that somebody sent into data/gpus: tools/take_record.py FILE...   (FILE: what `oomsight doctor --measure [--json]` printed; - is stdin)

The file of that name takes the measured figures; a total widens the range of the known ones, and what only people can say (aliases, class,
notes, the state of ECC that the product ships in) stays. Of a device that is not there the record is printed with what is to be filled in. Then
tools/check_data.py && tools/gpu_table.py."""

import json
import os
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


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    code = 0
    for path in sys.argv[1:]:
        with sys.stdin if path == "-" else open(path, encoding="utf-8") as file:
            code |= take(record_of(file.read()))
    return code


if __name__ == "__main__":
    sys.exit(main())
