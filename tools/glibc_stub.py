#!/usr/bin/env python3
"""Make glibc of an older version to link against, out of the one that is installed: glibc_stub.py OUT_DIR [VERSION]

glibc keeps every symbol version it ever had, so a shared object that offers, for each name, the newest version up to VERSION
(2.17 at most: what manylinux2014 has) is what the linker would have seen on such a system. What came later is missing, and a
program that uses it does not link: packaging/compat/compat.c has the few that static archives of today ask for.
`gcc -L OUT_DIR` then finds these in place of the real ones. Standard library, gcc and readelf only."""
import os
import re
import subprocess
import sys

LIBRARIES = {"c": "/lib/x86_64-linux-gnu/libc.so.6", "m": "/lib/x86_64-linux-gnu/libm.so.6",
             "ld": "/lib64/ld-linux-x86-64.so.2"}
ROW = re.compile(r"^\s*\d+: [0-9a-f]+\s+(\d+|0x[0-9a-f]+) (FUNC|IFUNC|OBJECT|NOTYPE|TLS)\s+\S+\s+\S+\s+(\S+) (\S+?)@@?GLIBC_([0-9.]+)$")


def number(version):
    return tuple(int(part) for part in version.split("."))


def symbols(path, newest):
    """name -> (version, type, size) of what a system of that version has as its default."""
    text = subprocess.run(["readelf", "-W", "--dyn-syms", path], check=True, capture_output=True, text=True).stdout
    chosen = {}
    for line in text.splitlines():
        row = ROW.match(line)
        if not row or row.group(3) == "UND" or number(row.group(5)) > newest:
            continue
        size, kind, _, name, version = row.groups()
        if name not in chosen or number(version) > number(chosen[name][0]):
            chosen[name] = (version, "object" if kind == "OBJECT" else "function", int(size, 0))
    return chosen


def stub(out, name, path, newest):
    rows = symbols(path, newest)
    lines = []
    for symbol, (_, kind, size) in sorted(rows.items()):
        lines += [".globl " + symbol, ".type %s, @%s" % (symbol, kind), ".size %s, %d" % (symbol, max(size, 1)),
                  "%s: .skip %d" % (symbol, max(size, 1))]
    source, script = os.path.join(out, name + ".s"), os.path.join(out, name + ".map")
    with open(source, "w", encoding="ascii") as f:
        f.write("\n".join([".data"] + lines + ['.section .note.GNU-stack,"",@progbits', ""]))
    with open(script, "w", encoding="ascii") as f:
        for version in sorted({version for version, _, _ in rows.values()}, key=number):
            f.write("GLIBC_%s { %s };\n" % (version, " ".join(s + ";" for s in sorted(rows) if rows[s][0] == version)))
    target = os.path.join(out, "lib%s-stub.so" % name)
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,--build-id=none", "-Wl,-soname," + os.path.basename(path),
                    "-Wl,--version-script," + script, "-o", target, source], check=True)
    return os.path.abspath(target)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    out, newest = sys.argv[1], number(sys.argv[2] if len(sys.argv) > 2 else "2.17")
    os.makedirs(out, exist_ok=True)
    made = {name: stub(out, name, path, newest) for name, path in LIBRARIES.items()}
    shared = subprocess.run(["gcc", "-print-file-name=libc_nonshared.a"], check=True, capture_output=True, text=True).stdout.strip()
    # On such a system threads and dlopen are libraries of their own: they must be asked for by name.
    with open(os.path.join(out, "libc.so"), "w", encoding="ascii") as f:
        f.write("GROUP(%s %s AS_NEEDED(%s))\n" % (made["c"], shared, made["ld"]))
    with open(os.path.join(out, "libm.so"), "w", encoding="ascii") as f:
        f.write("INPUT(%s)\n" % made["m"])


if __name__ == "__main__":
    main()
