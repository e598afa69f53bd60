#!/usr/bin/env python3
"""The linker's list of what the library exports: the functions that the public header declares, and no others.
    export_map.py HEADER MAP"""
import re
import sys

with open(sys.argv[1], encoding="utf-8") as header:
    text = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.S)
names = sorted(set(re.findall(r"\b(oomsight_[a-z0-9_]+)\(", text)))
with open(sys.argv[2], "w", encoding="utf-8") as out:
    out.write("OOMSIGHT_0.1 {\nglobal:\n" + "".join(f"    {name};\n" for name in names) + "local:\n    *;\n};\n")
