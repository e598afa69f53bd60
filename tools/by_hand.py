#!/usr/bin/env python3
"""The example of docs/explanation/memory-by-hand.md: every row is computed again, and those that a plan has are the plan's: by_hand.py BINARY.
Standard library only."""
import fractions
import json
import math
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs/explanation/memory-by-hand.md")
COMMAND = ["plan", "--offline", "--gpu", "4090", "--vllm", "0.32.0", "--json", "--", "vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", "16384"]


def computed(words, up):
    """The value of whole numbers with + − × ÷ and brackets; what is left of a division is dropped, or rounded up."""
    if not re.fullmatch(r"[\d ()+−×÷]+", words):
        raise ValueError("not a calculation: " + words)
    spoken = re.sub(r"\d+", r"Fraction(\g<0>)", words).replace("−", "-").replace("×", "*").replace("÷", "/")
    value = eval(spoken, {"__builtins__": {}, "Fraction": fractions.Fraction})
    return math.ceil(value) if up else math.floor(value)


def told(plan):
    """What the plan says, row by row; None: it has no such figure."""
    kv, holds = plan["kv"], {h["owner"]: h["bytes"] for p in plan["phases"] if p["phase"] == "kv_sizing" for h in p["holds"]}
    taken = [plan["weights_bytes"], *(holds[o] for o in ("activation peak", "outside PyTorch", "batch buffers", "graph estimate"))]
    left = " − ".join(map(str, [plan["budget_bytes"], *taken]))
    return [None, None, None, plan["weights"]["param_bytes"][0], kv["bytes_per_token"], kv["needed_bytes"], plan["budget_bytes"],
            (kv["available_bytes"], left), kv["blocks"], kv["tokens"]]


def faults(page, plan):
    table = re.search(r"<!-- by hand: .*?-->\n(.*?)<!-- end -->", page, re.S)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.group(1).strip().split("\n")[2:]] if table else []
    values = told(plan)
    if len(rows) != len(values):
        yield "%d rows, and %d figures of a plan" % (len(rows), len(values))
    for (what, words, number), value in zip(rows, values):
        result = computed(words, "rounded up" in what)
        if "{:,}".format(result) != number:
            yield "%s: %s, computed %s" % (what, number, "{:,}".format(result))
        if isinstance(value, tuple):
            value, wanted = value
            if words != wanted:
                yield "%s: the plan subtracts %s" % (what, wanted)
        if value is not None and value != result:
            yield "%s: %s, the plan says %s" % (what, number, "{:,}".format(value))


def main():
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    plan = json.loads(subprocess.run([sys.argv[1], *COMMAND], capture_output=True, text=True, check=False).stdout)
    found = list(faults(page, plan))
    planted = list(faults(page.replace("| 147,456 |", "| 147,457 |"), plan))  # a check must be able to fail
    for fault in found:
        print("memory-by-hand.md: " + fault)
    print("%d faults in the example by hand" % len(found))
    return 1 if found or not planted else 0


if __name__ == "__main__":
    sys.exit(main())
