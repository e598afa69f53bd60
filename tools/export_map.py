#!/usr/bin/env python3
"""The linker's list of what the library exports: the functions that the public header declares, and no others. Those of a private header, for a
command that is linked with the library of its own build, have a version that promises nothing.
    export_map.py MAP HEADER [PRIVATE-HEADER]"""
import re
import sys

with open(sys.argv[1], "w", encoding="utf-8") as out:
    for node, path in zip(("OOMSIGHT_0.1", "OOMSIGHT_PRIVATE"), sys.argv[2:]):
        with open(path, encoding="utf-8") as header:
            text = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.S)
        names = sorted(set(re.findall(r"\b(oomsight_[a-z0-9_]+)\(", text)))
        out.write(node + " {\nglobal:\n" + "".join(f"    {name};\n" for name in names) + ("local:\n    *;\n" if node == "OOMSIGHT_0.1" else "") + "};\n")
