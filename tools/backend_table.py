#!/usr/bin/env python3
"""data/engines/vllm/backends.json, which tests/oracle/backends.py makes from the engine's classes, as C tables: backend_table.py JSON OUT.c"""
import json
import re
import sys

FEATURES = ("mm_prefix", "sinks", "sliding")
DTYPES = {"float16": "OOS_DTYPE_F16", "bfloat16": "OOS_DTYPE_BF16", "float32": "OOS_DTYPE_F32"}
BY = {"check": 0, "constructor": 1, "kernel": 2}
LAST = 0xFFFF


class Pool:
    """Rows that are there once: add() gives the first of them and their number."""

    def __init__(self):
        self.rows, self.at = [], {}

    def add(self, rows):
        if tuple(rows) not in self.at:
            self.at[tuple(rows)] = len(self.rows)
            self.rows += rows
        return "%d, %d" % (self.at[tuple(rows)] if rows else 0, len(rows))


def spans(text):
    """"8-256/8,512" as rows of first, last, step."""
    rows = []
    for part in filter(None, text.split(",")):
        found = re.fullmatch(r"(\d+)(?:-(\d*)/(\d+))?", part)
        if not found:
            sys.exit("backends.json: %s is no set of numbers" % part)
        first, last, step = found.groups()
        rows.append("{%s, %s, %s}" % (first, first if step is None else last or LAST, step or 1))
    return rows


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = json.load(f)
    kv = sorted({word for row in rows for word in row.get("kv", ())})
    capabilities = sorted({c for row in rows for c in row["capability"]})

    def mask(words, known):
        return "0x%xu" % sum(1 << known.index(word) for word in words)

    numbers, refusals, out = Pool(), Pool(), []
    for row in rows:
        mine = []
        for said in row.get("refuses", ()):
            flags = ", ".join("-1" if key not in said else str(int(said[key][0])) for key in ("sinks", "mm_prefix"))
            mine.append("{%s, %s, %s, %s, %d, %s}" % (mask(said.get("kv", kv), kv), numbers.add(spans(said.get("heads", "1-/1"))),
                                                     numbers.add(spans(said.get("blocks", ""))), flags, BY[said["by"]], json.dumps(said["reason"])))
        out.append("{OOS_BACKEND_%s, OOS_VERSION(%s), %s, %s, %s, %s, %s, %s, %s}" % (
            row["backend"], ", ".join(row["since"].split(".")), mask(row["capability"], capabilities), numbers.add(spans(row.get("heads", ""))),
            numbers.add(spans(row.get("blocks", ""))), mask(row.get("kv", ()), kv), " | ".join("1u << " + DTYPES[word] for word in row.get("dtypes", ())) or "0",
            mask(row.get("does", ()), FEATURES), refusals.add(mine)))
    with open(sys.argv[2], "w", encoding="ascii") as f:
        f.write('#include "engines/vllm/backend/backend.h"\n\n')
        f.write("const char *const oos_backend_kv_words[] = {%s, NULL};\n" % ", ".join(map(json.dumps, kv)))
        f.write("const unsigned oos_backend_capabilities[] = {%s, 0};\n" % ", ".join(map(str, capabilities)))
        for kind, name, values in (("oos_backend_span", "spans", numbers.rows), ("oos_backend_refusal", "refusals", refusals.rows), ("oos_backend_row", "rows", out)):
            f.write("const %s oos_backend_%s[] = {\n    %s,\n};\n" % (kind, name, ",\n    ".join(values)))
        names = [row["backend"] for row in rows]
        parts = ["[OOS_BACKEND_%s] = {%d, %d}" % (name, names.index(name), names.count(name)) for name in dict.fromkeys(names)]
        f.write("const oos_backend_part oos_backend_parts[OOS_BACKEND_COUNT] = {%s};\n" % ", ".join(parts))


if __name__ == "__main__":
    main()
