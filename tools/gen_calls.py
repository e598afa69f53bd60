#!/usr/bin/env python3
"""Make the symbols of a stand-in from its table.

    tools/gen_calls.py shim/calls/cudart.def --major 13 --soname libcudart.so.13 [--node NODE] [--refuse CODE] --out DIR

Rows of a table, with the CUDA majors that export the name (BOTH, ONLY_12, ONLY_13):

    TAKE(name, majors)        written by hand as take_name in shim/phantom
    SAME(name, other, majors) another name of a hand-written function
    NOOP(name, majors)        returns 0, that is success
    REFUSE(name, majors)      returns the library's code for "not supported"
    PASS(name, other, majors) goes on to another stand-in's `other`
    HANDLE(name, majors)      puts a fresh handle where the first argument points
    SINCE(name, version, as)  driver only: from this CUDA on, asking for `name` means `as`

Every exported name becomes a few instructions that count the call and jump on, so the table is the symbol list, the
coverage list and the counters at once. Writes calls_<table>.S and calls_<table>.map. Standard library only."""
import argparse
import os
import re

ROW = re.compile(r"^(TAKE|NOOP|REFUSE|HANDLE)\((\w+), (\w+)\)$|^(SAME|PASS)\((\w+), (\w+), (\w+)\)$")
SINCE = re.compile(r"^SINCE\((\w+), (\d+), (\w+)\)$")
KIND = {"TAKE": 0, "SAME": 0, "PASS": 0, "HANDLE": 0, "NOOP": 1, "REFUSE": 2}
PAGE = 65536


def read(path, major):
    calls, since = {}, []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith(("/*", "*")):
                continue
            row, version = ROW.match(line), SINCE.match(line)
            if version:
                since.append((version.group(1), int(version.group(2)), version.group(3)))
                continue
            if not row:
                raise SystemExit("%s:%d: not a row: %s" % (path, number, line))
            kind, name, majors = (row.group(1), row.group(2), row.group(3)) if row.group(1) else \
                (row.group(4), row.group(5), row.group(7))
            if name in calls:
                raise SystemExit("%s:%d: %s is there twice" % (path, number, name))
            if majors in ("BOTH", "ONLY_%d" % major):
                calls[name] = (kind, row.group(6) or name)
    return calls, since


def target(kind, name, other):
    if kind in ("TAKE", "SAME"):
        return "take_" + other
    return {"HANDLE": "oos_handle_new", "PASS": other}.get(kind)


def assembly(tag, soname, calls, since, refuse):
    names = sorted(calls)
    out = ["/* Made by tools/gen_calls.py. */", '.section .note.GNU-stack,"",%progbits', ".text"]
    for i, name in enumerate(names):
        kind, other = calls[name]
        jump = target(kind, name, other)
        out += [".globl %s" % name, ".type %s, %%function" % name, ".p2align 4", "%s:" % name]
        out += ["#if defined(__x86_64__)", "    lock incq oos_counters_%s+%d(%%rip)" % (tag, 8 * i)]
        if jump:
            out += ["    jmp %s%s" % (jump, "@PLT" if kind in ("HANDLE", "PASS") else "")]
        else:
            out += ["    movl $%d, %%eax" % (refuse if kind == "REFUSE" else 0), "    ret"]
        out += ["#else", "    adrp x16, oos_counters_%s+%d" % (tag, 8 * i),
                "    add x16, x16, :lo12:oos_counters_%s+%d" % (tag, 8 * i),
                "    ldr x17, [x16]", "    add x17, x17, #1", "    str x17, [x16]"]
        out += ["    b %s" % jump] if jump else ["    mov w0, #%d" % (refuse if kind == "REFUSE" else 0), "    ret"]
        out += ["#endif", ".size %s, .-%s" % (name, name)]
    out += ['.section .data.rel.ro,"aw",%progbits', ".p2align 4", "oos_list_%s:" % tag]
    for i, name in enumerate(names):
        out += ["    .quad oos_name_%s_%d, %d, %s" % (tag, i, KIND[calls[name][0]], name)]
    out += [".globl oos_calls_%s" % tag, ".hidden oos_calls_%s" % tag, "oos_calls_%s:" % tag,
            "    .quad oos_soname_%s, oos_list_%s, oos_counters_%s, %d" % (tag, tag, tag, len(names))]
    if since:
        out += [".globl oos_since", ".hidden oos_since", "oos_since:"]
        for i, (_, version, _) in enumerate(since):
            out += ["    .quad oos_since_name_%d, %d, oos_since_as_%d" % (i, version, i)]
        out += ["    .quad 0, 0, 0"]
    out += [".section .rodata", 'oos_soname_%s: .asciz "%s"' % (tag, soname)]
    out += ['oos_name_%s_%d: .asciz "%s"' % (tag, i, name) for i, name in enumerate(names)]
    for i, (name, _, spelling) in enumerate(since):
        out += ['oos_since_name_%d: .asciz "%s"' % (i, name), 'oos_since_as_%d: .asciz "%s"' % (i, spelling)]
    room = (8 * len(names) + PAGE - 1) // PAGE * PAGE
    out += ['.section .oos_counters,"aw",%nobits', ".balign %d" % PAGE,
            "oos_counters_%s: .zero %d" % (tag, room)]
    # at load: the table is made known, nothing else
    out += ['.section .init_array,"aw",%init_array', ".p2align 3", ".quad oos_announce_%s" % tag, ".text",
            "oos_announce_%s:" % tag, "#if defined(__x86_64__)", "    leaq oos_calls_%s(%%rip), %%rdi" % tag,
            "    jmp oos_calls_add@PLT", "#else", "    adrp x0, oos_calls_%s" % tag,
            "    add x0, x0, :lo12:oos_calls_%s" % tag, "    b oos_calls_add", "#endif"]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--major", type=int, required=True)
    parser.add_argument("--soname", required=True)
    parser.add_argument("--node", default="", help="version node of the real library's symbols; none by default")
    parser.add_argument("--also", action="append", default=[], help="exported, but not a call of the real library")
    parser.add_argument("--refuse", type=int, default=801)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    tag = os.path.splitext(os.path.basename(options.table))[0]
    calls, since = read(options.table, options.major)
    for name, version, spelling in since:
        if spelling not in calls:
            raise SystemExit("%s: SINCE(%s, %d, %s): no such row" % (options.table, name, version, spelling))
    with open(os.path.join(options.out, "calls_%s.S" % tag), "w", encoding="utf-8") as f:
        f.write(assembly(tag, options.soname, calls, since, options.refuse))
    with open(os.path.join(options.out, "calls_%s.map" % tag), "w", encoding="utf-8") as f:
        f.write("%s{\nglobal:\n%s\nlocal: *;\n};\n" % (options.node + " " if options.node else "",
                                                     "\n".join("    %s;" % n for n in sorted(calls) + options.also)))


if __name__ == "__main__":
    main()
