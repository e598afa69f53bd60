#!/usr/bin/env python3
"""The wheel, where nothing else is installed: test_wheel.py WHEEL [PYTHON...]

A fresh virtualenv per Python gets the wheel and nothing else, and every command is run on a small model directory. The newest
glibc symbol of every file is shown and checked, and `auditwheel show` where it can be installed. Standard library only."""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
MODEL = os.path.join(FIXTURES, "models", "small-llama")
LOG = os.path.join(FIXTURES, "kb", "vllm", "context-too-long", "positive.log")
TRACE = os.path.join(FIXTURES, "traces", "stranded.trace")
NEWEST = (2, 17)
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}


def beside(path):
    """A stand-in may need another of its folder."""
    return os.listdir(os.path.dirname(path)) if "stand-ins" in path else []


def encrypted_zip():
    """One entry under AES (method 99): the reader asks its cryptography, which is not there."""
    extra = struct.pack("<HHH2sBH", 0x9901, 7, 2, b"AE", 3, 8)
    body = b"s" * 16 + b"vv" + b"x" * 40 + b"m" * 10
    name = b"engine.log"
    local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 51, 1, 99, 0, 0, 0, len(body), 40, len(name), len(extra)) + name + extra + body
    entry = struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 51, 51, 1, 99, 0, 0, 0, len(body), 40, len(name), len(extra), 0, 0, 0, 0, 0) + name + extra
    return local + entry + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, len(entry), len(local), 0)


class Wheel:
    def __init__(self, path):
        self.path, self.passed, self.failed = path, 0, 0

    def claim(self, sentence, holds, seen=""):
        if not holds:
            print("FAIL %s   (seen: %s)" % (sentence, seen))
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)

    def symbols(self, work):
        """The glibc table: what each file asks of the system."""
        with zipfile.ZipFile(self.path) as wheel:
            wheel.extractall(work)
        files = [os.path.join(folder, name) for folder, _, names in os.walk(work) for name in names]
        binaries = sorted(f for f in files if open(f, "rb").read(4) == b"\x7fELF")
        defined = set()
        tables = {}
        for path in binaries:
            text = subprocess.run(["readelf", "-W", "-d", "--dyn-syms", path], capture_output=True, text=True, check=True).stdout
            tables[path] = text
            defined |= {m.group(1) for m in re.finditer(r"(?:GLOBAL|WEAK)\s+DEFAULT\s+\d+ (\w+)", text)}
        for path, text in tables.items():
            versions = {tuple(int(p) for p in v.split(".")) for v in re.findall(r"@GLIBC_([0-9.]+)", text)}
            needed = set(re.findall(r"NEEDED\).*\[(.+)\]", text))
            bare = [m.group(1) for m in re.finditer(r"GLOBAL\s+DEFAULT\s+UND (\w+)$", text, re.M) if m.group(1) not in defined]
            newest = max(versions, default=(0,))
            short = os.path.relpath(path, work)
            print("  GLIBC_%-7s %s" % (".".join(map(str, newest)), short))
            self.claim("%s asks for glibc %s at most" % (short, ".".join(map(str, NEWEST))), newest <= NEWEST, newest)
            self.claim("%s needs no library of others" % short, all(n in SYSTEM or n.startswith("liboomsight") or n in beside(path) for n in needed), needed)
            self.claim("%s leaves nothing undefined" % short, not bare, bare)

    def supply(self, work):
        """What of others is inside: a list of it, the text of each licence, and nothing that binds the whole."""
        info = os.path.join(work, [name for name in os.listdir(work) if name.endswith(".dist-info")][0])
        with open(os.path.join(info, "sboms", "oomsight.cdx.json"), encoding="utf-8") as f:
            bill = json.load(f)
        parts = bill["components"]
        names = {p["value"] for part in parts for p in part["properties"] if p["name"] == "oomsight:package"}
        print("  inside: " + ", ".join("%s %s" % (part["name"], part["version"]) for part in parts))
        self.claim("the list is CycloneDX, of this version", bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["version"] in info, bill["metadata"])
        self.claim("it has the libraries that are linked in", {"libjansson-dev", "libyaml-dev", "libpcre2-dev", "libarchive-dev", "liblzma-dev",
                   "libzstd-dev", "liblz4-dev", "libbz2-dev", "zlib1g-dev", "uthash-dev"} <= names, names)
        self.claim("each with a version", all(part["version"] for part in parts), parts)
        texts = {name for name in names if os.path.exists(os.path.join(info, "licenses", name + ".txt"))}
        self.claim("each with the text of its licence", texts == names, names - texts)
        binding = [part["name"] for part in parts if "GPL" in part["licenses"][0]["expression"] and " WITH " not in part["licenses"][0]["expression"]]
        self.claim("none under a licence that binds the whole", not binding, binding)
        for folder, _, files in os.walk(work):
            for name in files:
                with open(os.path.join(folder, name), "rb") as f:
                    text = f.read()
                found = [word for word in (b"libmicrohttpd", b"nettle_", b"gnutls_") if text[:4] == b"\x7fELF" and word in text]
                self.claim("%s has nothing of libmicrohttpd, Nettle or GnuTLS" % name, not found, found)

    def hardening(self, work):
        files = [os.path.join(folder, name) for folder, _, names in os.walk(work) for name in names]
        binaries = sorted(f for f in files if open(f, "rb").read(4) == b"\x7fELF")
        told = subprocess.run([sys.executable, os.path.join(FIXTURES, "..", "hardening.py")] + binaries, capture_output=True, text=True)
        print("  " + told.stdout.splitlines()[0])
        self.claim("every file is hardened", told.returncode == 0, told.stdout)

    def audit(self, work):
        venv = os.path.join(work, "audit")
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        got = subprocess.run([os.path.join(venv, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "auditwheel"], capture_output=True)
        if got.returncode:
            print("  auditwheel cannot be installed here")
            return
        told = subprocess.run([os.path.join(venv, "bin", "auditwheel"), "show", self.path], capture_output=True, text=True)
        print("  " + told.stdout.strip().replace("\n", "\n  "))
        said = re.sub(r"\s+", " ", told.stdout)
        self.claim("auditwheel agrees with the tag", 'consistent with the following platform tag: "manylinux_2_' in said, told.stdout + told.stderr)

    def uv(self, work):
        """The other installer that people use."""
        got = subprocess.run([os.path.join(work, "audit", "bin", "pip"), "install", "-q", "--disable-pip-version-check", "uv"], capture_output=True)
        if got.returncode:
            print("  uv cannot be installed here")
            return
        env = dict(os.environ, UV_CACHE_DIR=os.path.join(work, "uv-cache"), UV_TOOL_DIR=os.path.join(work, "uv-tools"))
        told = subprocess.run([os.path.join(work, "audit", "bin", "uv"), "tool", "run", "--offline", "--python", sys.executable, "--from", self.path,
                               "oomsight", "plan", "--gpu", "4090", "--", "vllm", "serve", MODEL], capture_output=True, text=True, env=env)
        self.claim("uv tool run --from the wheel: oomsight plan", told.returncode == 0 and "WILL START" in told.stdout, told.stderr)

    def install(self, work, python):
        venv = os.path.join(work, "venv")
        subprocess.run([python, "-m", "venv", "--clear", venv], check=True)
        where = lambda name: os.path.join(venv, "bin", name)
        version = subprocess.run([where("python"), "--version"], capture_output=True, text=True).stdout.strip()
        got = subprocess.run([where("pip"), "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", self.path],
                             capture_output=True, text=True)
        self.claim("%s: pip installs it" % version, got.returncode == 0, got.stderr)
        # Nothing of this machine may help: no variables, another directory.
        env = {"PATH": "/usr/bin:/bin", "HOME": work, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
        run = lambda *words: subprocess.run(words, capture_output=True, text=True, env=env, cwd=work)
        start = time.time()
        for name, words, code, sign in (
                ("plan", ["plan", "--gpu", "4090", "--", "vllm", "serve", MODEL], 0, "WILL START"),
                ("plan --json", ["plan", "--json", "--gpu", "4090", "--", "vllm", "serve", MODEL], 0, '"schema": "oomsight.plan/1"'),
                ("plan with a variable of here", ["plan", "--env", "PATH", "--env", "NOT_SET", "--gpu", "4090", "--", "vllm", "serve", MODEL], 0, "WILL START"),
                ("plan as a page", ["plan", "--format", "html", "--gpu", "4090", "--", "vllm", "serve", MODEL], 0, "<!doctype html>"),
                ("explain", ["explain", LOG], 1, "not started"), ("replay", ["replay", TRACE], 1, "out of memory"),
                ("gpus", ["gpus"], 0, "4090"), ("engines", ["engines"], 0, "0.32.0"), ("kb", ["kb"], 0, "vllm/"),
                ("dryrun", ["dryrun", "--gpu", "4090", "--cuda", "12", "--json", "--", "sh", "-c", "exit 3"], 3, "oomsight.dryrun/1"),
                ("dryrun over CUDA 13", ["dryrun", "--gpu", "4090", "--cuda", "13", "--json", "--", "sh", "-c", "exit 0"], 0, "oomsight.dryrun/1"),
                ("help", ["help"], 0, "usage")):
            told = run(where("oomsight"), *words)
            self.claim("%s: oomsight %s" % (version, name), told.returncode == code and sign.lower() in told.stdout.lower(),
                       (told.returncode, told.stderr[-300:], told.stdout[-200:]))
        told = run(where("python"), "-m", "oomsight", "plan", "--json", "--gpu", "4090", "--", "vllm", "serve", MODEL)
        self.claim("%s: python -m oomsight" % version, told.returncode == 0 and json.loads(told.stdout)["verdict"] == "fits", told.stderr)
        code = ("import oomsight; p = oomsight.plan(['vllm', 'serve', %r], gpu='4090'); assert p.fits and p.html(); "
                "assert oomsight.explain(%r).is_oom; assert oomsight.replay(%r).ran_out; "
                "print('ok')" % (MODEL, LOG, TRACE))
        told = run(where("python"), "-c", code)
        self.claim("%s: import oomsight" % version, told.stdout.strip() == "ok", told.stderr)
        locked = os.path.join(work, "locked.zip")
        with open(locked, "wb") as f:
            f.write(encrypted_zip())
        told = run(where("oomsight"), "explain", locked)
        self.claim("%s: an encrypted archive is said to be unreadable" % version, told.returncode == 3 and "damaged or encrypted" in told.stderr, (told.returncode, told.stderr))
        took = time.time() - start
        print("  %s: every command in %.1f s" % (version, took))
        self.claim("%s: under ten minutes" % version, took < 600, took)  # a few seconds are usual


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wheel = Wheel(os.path.abspath(sys.argv[1]))
    megabytes = os.path.getsize(wheel.path) / 1e6
    print("%s: %.1f MB" % (os.path.basename(wheel.path), megabytes))
    wheel.claim("under 5 MB", megabytes < 5, megabytes)
    with tempfile.TemporaryDirectory() as work:
        wheel.symbols(os.path.join(work, "files"))
        wheel.supply(os.path.join(work, "files"))
        wheel.hardening(os.path.join(work, "files"))
        wheel.audit(work)
        wheel.uv(work)
        for python in sys.argv[2:] or [sys.executable]:
            wheel.install(work, python)
    print("wheel: %d claims hold, %d do not" % (wheel.passed, wheel.failed))
    return 1 if wheel.failed else 0


if __name__ == "__main__":
    sys.exit(main())
