#!/usr/bin/env python3
"""Hardening, looked for in what was built: hardening.py BUILD_DIR, or FILE... that were linked. Every own object is compiled with
a guard of the stack and checked functions; every program and library is position independent, and what the loader fills in
is read-only afterwards. Skipped (77) where a build has sanitizers instead. Standard library and readelf only."""
import json
import os
import re
import subprocess
import sys

FLAGS = ("-fstack-protector-strong", "-D_FORTIFY_SOURCE=2")


def faults_of(path):
    """What a linked file lacks."""
    told = subprocess.run(["readelf", "-W", "-h", "-l", "-d", "--dyn-syms", path], capture_output=True, text=True, check=True).stdout
    faults = []
    if not re.search(r"Type:\s+DYN", told):
        faults.append("is not position independent")
    if "GNU_RELRO" not in told:
        faults.append("has no RELRO")
    if not re.search(r"\(FLAGS_1\).*\bNOW\b|\(BIND_NOW\)|\(FLAGS\).*BIND_NOW", told):
        faults.append("is not bound at its start")
    stack = re.search(r"GNU_STACK.*\s([RWE ]{3})\s+0x", told)
    if not stack or "E" in stack.group(1):
        faults.append("may run its stack")
    if re.search(r"LOAD .*\sRWE\s", told):
        faults.append("has memory to write and to run")
    if "TEXTREL" in told:
        faults.append("writes its code at its start")
    return faults, "__stack_chk_fail" in told, len(set(re.findall(r"UND __(\w+)_chk@", told)))


def look_at(paths, at_least):
    """Faults of all; with `at_least`, guards and checks must be seen in so many files (a small library may need none)."""
    bad, guarded, checked = [], 0, 0
    for path in paths:
        faults, guard, checks = faults_of(path)
        bad += ["%s %s" % (path, fault) for fault in faults]
        guarded, checked = guarded + guard, checked + (checks > 0)
    print("%d linked files, %d with a guard of the stack, %d with checked functions" % (len(paths), guarded, checked))
    if guarded < at_least or checked < at_least:
        bad.append("guards in %d files and checks in %d: fewer than %d" % (guarded, checked, at_least))
    return bad


def objects(build):
    """Every object of ours is compiled with both flags."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = [c for c in json.load(f) if c["file"].endswith(".c")]
    bad = ["%s is compiled without %s" % (c["file"], flag) for c in commands for flag in FLAGS if flag not in c["command"].split()]
    own = [os.path.join(build, c["output"]) for c in commands if "tests/" not in c["output"]]
    told = subprocess.run(["nm", "-A", "-u"] + [o for o in own if os.path.exists(o)], capture_output=True, text=True).stdout
    guarded = {line.split(":")[0] for line in told.splitlines() if "__stack_chk_fail" in line}
    print("%d objects, %d of %d of ours have something to guard" % (len(commands), len(guarded), len(own)))
    if len(guarded) < len(own) // 4:
        bad.append("only %d objects of %d have a guard" % (len(guarded), len(own)))
    return bad


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.path.isdir(sys.argv[1]):
        build = sys.argv[1]
        options = json.loads(subprocess.run(["meson", "introspect", build, "--buildoptions"], capture_output=True, text=True, check=True).stdout)
        chosen = {o["name"]: o["value"] for o in options}
        if chosen["b_sanitize"] != "none" or chosen["fuzz"] or chosen["optimization"] in ("0", "g"):
            print("a build with sanitizers, or without optimisation")
            return 77
        linked = [os.path.join(build, "cli", "oomsight"), os.path.join(build, "src", "liboomsight.so.0")]
        for folder, _, names in os.walk(os.path.join(build, "shim")):
            linked += [os.path.join(folder, n) for n in names if re.search(r"\.so(\.\d+)*$", n) and not os.path.islink(os.path.join(folder, n))]
        bad = objects(build) + look_at(linked, 3)
    else:
        bad = look_at(sys.argv[1:], 3)
    print("\n".join(bad) or "hardening: nothing is missing")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
