"""`oomsight top` in a terminal: two GPUs of a dry run, a process under `oomsight run` that grows, one without it whose name would move the
cursor, one that ends; narrow, wide, another size while it runs; every key.

    tests/shim/screen.py BINARY"""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

BINARY = os.path.abspath(sys.argv[-1])
HOSTILE = "evil\x1b[2J\x1b]0;mine\x07\n\u202espoof"
HOLDS = """
import ctypes, os, sys, time
gpu = ctypes.CDLL(None)
def take(mib): return gpu.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20))
gpu.cudaSetDevice(int(sys.argv[1])); take(int(sys.argv[2])); print('UP', flush=True)
while len(sys.argv) > 3 and sys.argv[3] == 'grows': time.sleep(1); take(16)
time.sleep(120)
"""
good = True


def check(sentence, holds, more=""):
    global good
    good = good and bool(holds)
    print("%s %s%s" % ("ok  " if holds else "FAIL", sentence, "" if holds else "\n" + str(more)), file=sys.stderr)


class Terminal:
    """As much of one as the screen needs: it keeps the last drawing, and all that came."""

    def __init__(self, rows, columns, *options, **more):
        self.parent, self.child = pty.openpty()
        self.size(rows, columns)
        self.before = termios.tcgetattr(self.child)
        env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
        self.top = subprocess.Popen([BINARY, "top", *options], stdin=self.child, stdout=self.child, stderr=self.child,
                                    env={**env, "TERM": "xterm", **more}, start_new_session=True)
        self.all = ""

    def size(self, rows, columns):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.size(rows, columns)
        os.kill(self.top.pid, 28)  # SIGWINCH: this terminal is not its own

    def press(self, keys):
        os.write(self.parent, keys)

    def read(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until and select.select([self.parent], [], [], until - time.monotonic())[0]:
            try: self.all += os.read(self.parent, 65536).decode(errors="replace")
            except OSError: break

    def lines(self):
        last = self.all.split("\x1b[H\x1b[J")[-1]
        return re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", last).replace("\r", "").split("\n")

    def wait(self, sentence, holds, seconds=20, more=""):
        """Until its lines say so."""
        until = time.monotonic() + seconds
        while not holds(self.lines()) and time.monotonic() < until: self.read(0.2)
        self.read(0.1)
        check(sentence, holds(self.lines()), "\n".join(self.lines()) + str(more))
        check("... nothing scrolls or wraps", len(self.lines()) <= self.rows and max(map(len, self.lines())) <= self.columns, self.lines())

    def end(self):
        self.press(b"q")
        try: code = self.top.wait(10)
        except subprocess.TimeoutExpired: code = self.top.kill()
        self.read(0.2)
        check("q ends it, and the terminal is as before", code == 0 and termios.tcgetattr(self.child) == self.before and self.all.endswith("\x1b[?25h\x1b[?1049l"), code)


def program(*words, under=(), name=None):
    one = subprocess.Popen([*under, sys.executable, "-c", HOLDS, *words], stdout=subprocess.PIPE) if not name else \
        subprocess.Popen([name, "-c", HOLDS, *words], executable=sys.executable, stdout=subprocess.PIPE)
    while b"UP" not in one.stdout.readline(): pass
    return one


def row(lines, word):
    return next((x for x in lines if re.match(r" *\d+ ", x) and word in x), "")


def inside():
    limited = program("0", "512", "grows", under=(BINARY, "run", "--quiet", "--budget", "4GiB", "--"))
    other = program("1", "1024", name=HOSTILE)
    seen = Terminal(24, 80, "--every", "1")
    seen.wait("the head has the GPUs with used and total", lambda x: sum(bool(re.match(r"GPU [01] +NVIDIA L4 .*\d\.\d\d / +\d+\.\d\d GiB +\d+ %", y)) for y in x) == 2)
    lines = seen.lines()
    check("... host, time and rate", re.match(r"oomsight top  \S.* \d\d:\d\d:\d\d  1 s$", lines[0]), lines[0])
    check("the heads of the columns", lines[4].split() == ["PID", "GPU", "PROCESS", "MEMORY", "PEAK", "GROWTH/MIN", "LEFT"], lines)
    check("the keys stand in the last line", len(lines) == 24 and lines[-1] == "q quit  s sort: memory  p pause  d components", lines)
    check("two processes, the larger first", [bool(re.match(r" *\d+ ", x)) for x in lines[5:8]] == [True, True, False] and str(other.pid) in lines[5], lines)
    check("its GPU and its memory with the context", re.match(r"%d 1 +evil.* 1\.[0-5]\d GiB +1\.[0-5]\d GiB" % other.pid, row(lines, str(other.pid)).strip()), row(lines, str(other.pid)))
    check("what would move the cursor is written out", "\\x1b[2J" in row(lines, str(other.pid)) and "\x1b]" not in seen.all and "\x1b[2J" not in seen.all and "\u202e" not in seen.all, seen.all[-3000:])
    seen.wait("growth: 16 MiB a second, within 30 s", lambda x: any(500 < int(y) < 1300 for y in re.findall(r"\+(\d+) MiB", "\n".join(x))), 30)
    seen.wait("... and none of what stands still", lambda x: "+0 MiB" in row(x, str(other.pid)))
    check("what its limit of 4 GiB leaves", any(2 < float(x) < 3.6 for x in re.findall(r"(\d\.\d\d) GiB$", "\n".join(seen.lines()), re.M)), seen.lines())
    seen.press(b"\x1b[D\x1b[A")
    seen.press(b"s")
    seen.wait("s: by growth", lambda x: "s sort: growth" in x[-1] and str(other.pid) in x[6])
    seen.press(b"s")
    seen.wait("s: by PID", lambda x: "s sort: PID" in x[-1])
    seen.press(b"s")
    seen.press(b"p")
    seen.wait("p: it stands still", lambda x: x[-1].startswith("paused  "))
    before = seen.lines()[1:-1]
    seen.read(3)
    check("... for three seconds", seen.lines()[1:-1] == before, (before, seen.lines()))
    seen.press(b"p")
    seen.press(b"d")
    seen.wait("d: components of the run", lambda x: x[0] == "1 run, refreshed every 1 s" and x[-1] == "q quit  d processes" and "cudaMalloc" in "".join(x))
    seen.press(b"d")
    seen.resize(10, 40)
    seen.wait("40 columns: the columns that are needed", lambda x: len(x) == 10 and any(y.split() == ["PID", "PROCESS", "MEMORY", "LEFT"] for y in x))
    seen.resize(30, 140)
    seen.wait("140 columns: all of them", lambda x: len(x) == 30 and any("STATE" in y and y.split()[-1] == "LIMIT" for y in x))
    check("... with the limit", re.search(r"4\.00 GiB$", "\n".join(seen.lines()), re.M), seen.lines())
    other.kill()
    other.wait()
    seen.wait("a process that ends is said", lambda x: "ended" in row(x, str(other.pid)))
    seen.wait("... and goes", lambda x: not row(x, str(other.pid)))
    os.kill(seen.top.pid, 20)  # SIGTSTP
    time.sleep(0.5)
    seen.read(0.2)
    check("Ctrl+Z gives the terminal back", seen.all.endswith("\x1b[?1049l") and termios.tcgetattr(seen.child) == seen.before, seen.all[-200:])
    os.kill(seen.top.pid, 18)
    seen.wait("... and fg draws again", lambda x: x[0].startswith("oomsight top"))
    many = [program("1", "64") for _ in range(20)]
    seen.resize(12, 80)
    seen.wait("what does not fit is counted", lambda x: len(x) == 12 and re.match(r"\.\.\. 1\d more processes", x[-2]))
    for one in many: one.kill()
    seen.end()
    chinese = Terminal(24, 80, "--lang", "zh", "--every", "1")
    chinese.wait("in Chinese", lambda x: "q 退出" in x[-1])
    chinese.end()
    gone = Terminal(24, 80, "--every", "1")
    gone.wait("another", lambda x: x[0].startswith("oomsight top"))
    gone.top.terminate()
    gone.top.wait(10)
    gone.read(0.2)
    check("a signal ends it, and the terminal is as before", termios.tcgetattr(gone.child) == gone.before and gone.all.endswith("\x1b[?25h\x1b[?1049l"))
    limited.kill()


def main():
    if os.environ.get("TOP_INSIDE"):
        inside()
        print("DONE", good, file=sys.stderr, flush=True)
        return 0
    done = subprocess.Popen([BINARY, "dryrun", "--output", "/dev/null", "--gpu", "L4x2", "--cuda", "12", "--", sys.executable, os.path.abspath(__file__), BINARY],
                            env=dict(os.environ, TOP_INSIDE="1"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        said = done.communicate(timeout=200)[1]
    except subprocess.TimeoutExpired:
        os.killpg(done.pid, 9)  # with all that it has started, or its pipe stays open
        said = done.communicate()[1] + "\nFAIL it did not end within 200 s"
    print(said[-12000:])
    bare = Terminal(24, 80, "--every", "1")
    bare.wait("without NVML it says so", lambda x: any(y.startswith("NVML does not answer") for y in x))
    bare.end()
    return 0 if "DONE True" in said and good else 1


sys.exit(main())
