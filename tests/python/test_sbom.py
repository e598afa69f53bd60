#!/usr/bin/env python3
"""What is linked in is listed, and what has no licence ends the build: test_sbom.py. Needs dpkg, ninja and zlib1g-dev (77 without).
The maps are made by the linker here, over a program of three lines."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "sbom.py")
PROGRAM = "#include <zlib.h>\nint other(void) __attribute__((weak));\nint main(void) { return zlibVersion()[0] + (other ? other() : 0); }\n"
passed, failed = 0, 0


def claim(sentence, holds, seen=""):
    global passed, failed
    print("%s %s%s" % ("ok  " if holds else "FAIL", sentence, "" if holds else "   (seen: %s)" % (seen,)))
    passed, failed = passed + bool(holds), failed + (not holds)


def build(folder, *more):
    """A build with a map: the program, zlib's archive, and what is given."""
    os.makedirs(folder)
    for name, text in (("p.c", PROGRAM), ("build.ninja", "")):
        with open(os.path.join(folder, name), "w", encoding="ascii") as f:
            f.write(text)
    subprocess.run(["gcc", "-c", "p.c"], cwd=folder, check=True)
    subprocess.run(["gcc", "p.o", "-o", "p", "-Wl,-Map=p.linked", *more, "-l:libz.a"], cwd=folder, check=True)
    return folder


def run(folder, *more):
    return subprocess.run([sys.executable, TOOL, folder, folder + "/out", *more], capture_output=True, text=True)


def main():
    if not shutil.which("dpkg") or not shutil.which("ninja") or subprocess.run(["dpkg", "-s", "zlib1g-dev"], capture_output=True).returncode:
        print("needs dpkg, ninja and zlib1g-dev")
        return 77
    with tempfile.TemporaryDirectory() as work:
        plain = build(os.path.join(work, "plain"))
        got = run(plain)
        claim("a build is listed", got.returncode == 0, got.stderr)
        if got.returncode == 0:
            with open(plain + "/out/oomsight.cdx.json", encoding="utf-8") as f:
                bill = json.load(f)
            zlib = [c for c in bill["components"] if c["name"] == "zlib"]
            claim("with version, licence and the archive's sum", len(zlib) == 1 and zlib[0]["version"].startswith("1.") and
                  zlib[0]["licenses"] == [{"expression": "Zlib"}] and [(p["name"], p["hashes"][0]["alg"], len(p["hashes"][0]["content"])) for p in zlib[0]["components"]] == [("libz.a", "SHA-256", 64)], zlib)
            claim("and what the linker adds by itself", any(c["name"] == "glibc" for c in bill["components"]), bill["components"])
            claim("their texts are there", os.path.getsize(plain + "/out/licenses/zlib1g-dev.txt") > 500)
            first = open(plain + "/out/oomsight.cdx.json", "rb").read()
            run(plain)
            claim("twice the same bytes", open(plain + "/out/oomsight.cdx.json", "rb").read() == first)
        got = run(plain, os.path.join(work, "no-such-docs"))
        claim("a missing licence ends it, and is named", got.returncode == 1 and "licence is missing" in got.stderr and "-dev" in got.stderr, got)
        with open(os.path.join(work, "o.c"), "w", encoding="ascii") as f:
            f.write("int other(void) { return 1; }\n")
        subprocess.run(["gcc", "-c", "o.c"], cwd=work, check=True)
        subprocess.run(["ar", "rc", "libother.a", "o.o"], cwd=work, check=True)
        got = run(build(os.path.join(work, "strange"), "-Wl,-u,other", os.path.join(work, "libother.a")))
        claim("an archive of nobody ends it", got.returncode == 1 and "libother.a belongs to no package" in got.stderr, got)
        sys.path.insert(0, os.path.dirname(TOOL))
        import sbom
        binding = [p for p, words in sbom.LICENCES.items() if "GPL" in words and " WITH " not in words]
        claim("none that binds the whole is allowed", not binding and "libmicrohttpd-dev" not in sbom.LICENCES and "nettle-dev" not in sbom.LICENCES, binding)
        del sbom.LICENCES["zlib1g-dev"]
        try:
            sbom.packages(plain)
            claim("a package whose licence nobody has read ends it", False)
        except sbom.Missing as missing:
            claim("a package whose licence nobody has read ends it", "zlib1g-dev" in str(missing), missing)
    print("sbom: %d claims hold, %d do not" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
