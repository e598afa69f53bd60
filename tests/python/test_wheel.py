#!/usr/bin/env python3
"""The wheel, where nothing else is installed: test_wheel.py WHEEL [PYTHON...]

A fresh virtualenv per Python gets the wheel and nothing else, and every command is run on a small model directory. The newest
glibc symbol of every file is shown and checked, and `auditwheel show` where it can be installed. Standard library only."""
import json
import os
import re
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
            self.claim("%s needs no library of others" % short, all(n in SYSTEM or n.startswith("liboomsight") for n in needed), needed)
            self.claim("%s leaves nothing undefined" % short, not bare, bare)

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
        self.claim("uv tool run --from the wheel: oomsight plan", told.returncode == 0 and "STARTS" in told.stdout, told.stderr)

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
                ("plan", ["plan", "--gpu", "4090", "--", "vllm", "serve", MODEL], 0, "STARTS"),
                ("plan --json", ["plan", "--json", "--gpu", "4090", "--", "vllm", "serve", MODEL], 0, '"schema": "oomsight.plan/1"'),
                ("plan with a variable of here", ["plan", "--env", "PATH", "--env", "NOT_SET", "--gpu", "4090", "--", "vllm", "serve", MODEL], 0, "STARTS"),
                ("plan as a page", ["plan", "--format", "html", "--gpu", "4090", "--", "vllm", "serve", MODEL], 0, "<!doctype html>"),
                ("explain", ["explain", LOG], 1, "REFUSED"), ("replay", ["replay", TRACE], 1, "out of memory"),
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
        took = time.time() - start
        print("  %s: every command in %.1f s" % (version, took))
        self.claim("%s: under 60 s" % version, took < 60, took)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wheel = Wheel(os.path.abspath(sys.argv[1]))
    megabytes = os.path.getsize(wheel.path) / 1e6
    print("%s: %.1f MB" % (os.path.basename(wheel.path), megabytes))
    wheel.claim("under 12 MB", megabytes < 12, megabytes)
    with tempfile.TemporaryDirectory() as work:
        wheel.symbols(os.path.join(work, "files"))
        wheel.audit(work)
        wheel.uv(work)
        for python in sys.argv[2:] or [sys.executable]:
            wheel.install(work, python)
    print("wheel: %d claims hold, %d do not" % (wheel.passed, wheel.failed))
    return 1 if wheel.failed else 0


if __name__ == "__main__":
    sys.exit(main())
