#!/usr/bin/env python3
"""abi_trim.py OLD NEW OUT: NEW, a description by abidw, without the members that structs got at their end since OLD, where the struct begins
with its size (oomsight_*_params). Their callers say how large the struct is that they know, so nothing older breaks. A suppression of abidiff
would hide what changed inside of the members, too. Standard library only."""
import re
import sys
import xml.etree.ElementTree as xml

GROWS = re.compile(r"oomsight_[a-z]+_params$")


def structs(tree):
    return {c.get("name"): c for c in tree.iter("class-decl") if GROWS.match(c.get("name", "")) and c.find("data-member") is not None}


def members(struct):
    return [(m, m.find("var-decl").get("name"), int(m.get("layout-offset-in-bits"))) for m in struct.findall("data-member")]


def main():
    old, new = xml.parse(sys.argv[1]), xml.parse(sys.argv[2])
    before = structs(old)
    for name, struct in structs(new).items():
        if name not in before:
            continue
        was, now = members(before[name]), members(struct)
        if was[0][1] != "size" or [m[1:] for m in was] != [m[1:] for m in now[:len(was)]]:
            continue
        for member, _, offset in now[len(was):]:
            if offset > was[-1][2]:
                struct.remove(member)
        struct.set("size-in-bits", before[name].get("size-in-bits"))
    new.write(sys.argv[3])


if __name__ == "__main__":
    main()
