#!/usr/bin/env python3
"""The export list of the guard from its table: guard_map.py shim/guard/calls.def OUT. Standard library only."""
import re
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    names = re.findall(r"^CALL\(\w+, (\w+)\)$", f.read(), flags=re.M)
with open(sys.argv[2], "w", encoding="utf-8") as f:
    f.write("{\nglobal:\n%s\n    dlsym;\nlocal: *;\n};\n" % "\n".join("    %s;" % name for name in names))
