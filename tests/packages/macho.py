#!/usr/bin/env python3
"""Files of macOS, looked at where they cannot be run: macho.py FILE... Fails unless a library's name is relative, only the system's
libraries are asked for, the oldest system is the wheel's, and a library offers what the header declares and nothing else of ours."""
import os
import re
import struct
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ID, LOAD, SYMTAB, BUILD, SIGNATURE = 0x0D, 0x0C, 0x02, 0x32, 0x1D
PROCESSORS = {0x0100000C: "arm64", 0x01000007: "x86_64"}


def text(data, at):
    return data[at:data.index(b"\0", at)].decode()


def look(data):
    magic, processor, _, kind, count = struct.unpack_from("<IIIII", data)
    if magic != 0xFEEDFACF:
        raise ValueError("no Mach-O file")
    found = {"processor": PROCESSORS.get(processor), "kind": {2: "program", 6: "library"}.get(kind), "loads": [], "id": None, "oldest": None,
             "symbols": set(), "signed": False}
    at = 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        command &= 0x7FFFFFFF
        if command in (ID, LOAD):
            name = text(data, at + struct.unpack_from("<I", data, at + 8)[0])
            if command == ID:
                found["id"] = name
            else:
                found["loads"].append(name)
        elif command == BUILD:
            oldest = struct.unpack_from("<I", data, at + 12)[0]
            found["oldest"] = "%d.%d" % (oldest >> 16, oldest >> 8 & 255)
        elif command == SIGNATURE:
            found["signed"] = True
        elif command == SYMTAB:
            symbols, number, strings, _ = struct.unpack_from("<IIII", data, at + 8)
            for i in range(number):
                name, kind_of, section = struct.unpack_from("<IBB", data, symbols + 16 * i)
                if kind_of & 0x0E == 0x0E and kind_of & 1 and not kind_of & 0x10:  # in a section, seen from outside
                    found["symbols"].add(text(data, strings + name).lstrip("_"))
        at += size
    return found


def main():
    with open(os.path.join(ROOT, "include", "oomsight", "oomsight.h")) as f:
        declared = set(re.findall(r"OOMSIGHT_API\s[^;]*?\b(oomsight_\w+)\(", f.read()))
    wrong = 0
    for path in sys.argv[1:]:
        with open(path, "rb") as f:
            found = look(f.read())
        public = {name for name in found["symbols"] if name.startswith("oomsight_")}
        faults = []
        if not all(name.startswith("/usr/lib/") for name in found["loads"]):
            faults.append("asks for %s" % found["loads"])
        if found["oldest"] != "13.0":
            faults.append("is for %s" % found["oldest"])
        if found["processor"] == "arm64" and not found["signed"]:
            faults.append("has no signature, and Apple's processors run nothing without")
        if found["kind"] == "library":
            if not (found["id"] or "").startswith("@rpath/"):
                faults.append("is named %s" % found["id"])
            if any(name.startswith("oos_") for name in found["symbols"]):
                faults.append("shows functions of its own")
            offered = public & declared
            if not {"oomsight_plan_create", "oomsight_explain_create", "oomsight_replay_create", "oomsight_check_create", "oomsight_data_open"} <= offered:
                faults.append("offers only %d functions" % len(offered))
        print("%s %s: %s, macOS %s, loads %s, %d public functions%s" % ("FAIL" if faults else "ok", os.path.basename(path), found["processor"],
              found["oldest"], " ".join(found["loads"]), len(public), "".join("; " + fault for fault in faults)))
        wrong += bool(faults)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
