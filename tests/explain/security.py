#!/usr/bin/env python3
"""A pod is a stranger: tricks with names, links and texts in the folders that are followed. usage: security.py BINARY
Each case says what it shows. As root, the follower runs as nobody where that matters."""
import ctypes
import errno
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from following import START, Claims, Follower, cri, failure, plain, pod_folder, tried, write

BINARY = os.path.abspath(sys.argv[1])
C = Claims()
NOBODY = 65534


def without_openat2():
    """In the child: the kernel says that it does not know openat2, as one before 5.6 would (a filter of three instructions)."""
    class Filter(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_uint16), ("filter", ctypes.POINTER(Filter))]
    # load the number of the call; 437: fail with ENOSYS; else allow
    steps = (Filter * 4)(Filter(0x20, 0, 0, 0), Filter(0x15, 0, 1, 437), Filter(0x06, 0, 0, 0x00050000 | errno.ENOSYS), Filter(0x06, 0, 0, 0x7FFF0000))
    program = Program(4, steps)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
        os._exit(99)


def case_links_on_an_old_kernel(folder):
    """Where there is no openat2, no link below a folder is followed at all, and files are."""
    root = os.path.join(folder, "pods")
    pod = pod_folder(root)
    write(os.path.join(folder, "secret.log"), plain(START + failure(666)))
    write(os.path.join(pod, "0.log"), cri(START + failure(1)))
    os.symlink(os.path.join(folder, "secret.log"), os.path.join(pod, "1.log"))
    os.symlink("0.log", os.path.join(pod, "2.log"))
    os.symlink(folder, os.path.join(root, "team-a_evil_0a"))
    f = Follower(BINARY, "--state", os.path.join(folder, "state"), root, preexec_fn=without_openat2)
    got = f.wait_for(1)
    if f.process.poll() == 99:
        print("     no filter of system calls to be had: the case of an old kernel is left out")
        return
    os.rename(os.path.join(pod, "0.log"), os.path.join(pod, "0.log.20260101-000000"))
    write(os.path.join(pod, "0.log"), cri(START + failure(2), "2026-01-02T03:05:00.0Z"))
    f.wait_for(2)
    f.stop()
    C.claim(tried(f.incidents()) == [1, 2], "files alone", tried(got), f.errors())


def case_links(folder):
    """A link in a pod's folder is followed only as far as it stays inside: not to another file, folder, or up and out."""
    root, outside = os.path.join(folder, "pods"), os.path.join(folder, "outside")
    os.makedirs(outside)
    secret = os.path.join(outside, "secret.log")
    write(secret, plain(START + failure(666)))
    pod = pod_folder(root)
    write(os.path.join(pod, "0.log"), cri(START + failure(1)))
    os.symlink(secret, os.path.join(pod, "1.log"))  # absolute
    os.symlink("../../../outside/secret.log", os.path.join(pod, "2.log"))  # up and out
    os.symlink("/proc/self/cwd/secret.log", os.path.join(pod, "3.log"))  # through a magic link
    os.symlink(outside, os.path.join(root, "team-a_evil_0a"))  # a folder
    os.symlink(outside, os.path.join(os.path.dirname(pod), "sub"))
    os.symlink("4.log", os.path.join(pod, "4.log"))  # itself
    os.symlink(secret, os.path.join(pod, "0.log.20260101-000000"))  # as if it were a rotated log
    os.symlink(os.path.join(pod, "0.log"), os.path.join(pod, "9.log"))  # inside: fine, the same text once more
    os.symlink("0.log", os.path.join(pod, "8.log"))
    f = Follower(BINARY, "--state", os.path.join(folder, "state"), root)
    got = f.wait_for(3)
    time.sleep(1.5)
    C.claim(sorted(tried(f.incidents())) == [1, 1, 1], "only what is inside", tried(got), [i["source"]["path"] for i in got])
    # While it runs: the log's folder becomes a link to the outside, with a file of that name in it.
    shutil.copy(secret, os.path.join(outside, "0.log"))
    os.rename(pod, pod + "-old")
    os.symlink(outside, pod)
    time.sleep(5)
    C.claim(666 not in tried(f.incidents()), "a folder swapped for a link", tried(f.incidents()))
    f.stop()


def case_links_given(folder):
    """A link that was named on the command line is followed; one that leads into another given folder as well."""
    root, links = os.path.join(folder, "pods"), os.path.join(folder, "containers")
    os.makedirs(links)
    target = os.path.join(pod_folder(root), "0.log")
    write(target, cri(START + failure(7)))
    name = "chat-0_team-a_vllm-" + "0a" * 32 + ".log"
    os.symlink(target, os.path.join(links, name))
    f = Follower(BINARY, os.path.join(links, name))
    got = f.wait_for(1)
    f.stop()
    C.claim(tried(got) == [7] and (got[0]["source"]["pod"], got[0]["source"]["namespace"], got[0]["source"]["container"]) == ("chat-0", "team-a", "vllm"),
            "the link itself", got)
    f = Follower(BINARY, links)
    time.sleep(2)
    C.claim(f.incidents() == [], "its folder alone is not enough", f.incidents())
    f.stop()
    f = Follower(BINARY, links, root + "/")
    C.claim(tried(f.wait_for(2)) == [7, 7], "both folders given", f.incidents())
    f.stop()


def case_not_files(folder):
    """Pipes, sockets and folders that are called like logs are passed over, and nothing waits for them."""
    pod = pod_folder(folder)
    os.mkfifo(os.path.join(pod, "1.log"))
    os.makedirs(os.path.join(pod, "2.log"))
    with socket.socket(socket.AF_UNIX) as s:
        here = os.getcwd()
        os.chdir(pod)
        s.bind("3.log")
        os.chdir(here)
        if os.geteuid() == 0:
            subprocess.run(["mknod", os.path.join(pod, "4.log"), "c", "1", "5"], check=False)  # /dev/zero
        write(os.path.join(pod, "0.log"), cri(START + failure(5)))
        f = Follower(BINARY, folder)
        C.claim(tried(f.wait_for(1)) == [5], "the plain one", f.incidents())
        # A log that becomes a pipe.
        os.remove(os.path.join(pod, "0.log"))
        os.mkfifo(os.path.join(pod, "0.log"))
        write(os.path.join(pod_folder(folder, pod="other"), "0.log"), cri(START + failure(6)))
        C.claim(tried(f.wait_for(2)) == [5, 6], "the others go on", f.incidents())
        f.stop()


def case_names(folder):
    """Names with line breaks, quotes, dots and bytes that are no UTF-8: escaped in JSON, never in a metric."""
    names = ['a"b', "new\nline", "tab\there", "..evil", "semi;colon$(touch owned)", "back\\slash", "percent%s%n", "\udcff\udcfe", "x" * 200]
    for number, name in enumerate(names):
        path = os.path.join(folder, "pods", name + "_pod_0a1b", "c" + name[:40])
        os.makedirs(path)
        write(os.path.join(path, "0.log"), cri(START + failure(number + 1)))
        write(os.path.join(path, name + ".log"), cri(START + failure(number + 101)))
    metrics = os.path.join(folder, "m.prom")
    f = Follower(BINARY, "--state", os.path.join(folder, "state"), "--metrics-file", metrics, os.path.join(folder, "pods"), cwd=folder)
    got = f.wait_for(2 * len(names) - 2)  # what begins with a dot is passed over
    f.stop()
    C.claim(len(got) == 2 * len(names) - 2, "all are read", sorted(tried(got)))
    C.claim(all(i["source"]["pod"] is None for i in got), "no part of them is taken for a name", [i["source"] for i in got][:2])
    with open(metrics, "rb") as m:
        text = m.read()
    C.claim(all(re.fullmatch(rb'#.*|[a-z_]+(\{([a-z_]+="[A-Za-z0-9_.-]*",?)*\})? [0-9.e+]+', line) for line in text.splitlines()), "the metrics are plain", text)
    C.claim(not os.path.exists(os.path.join(folder, "owned")), "nothing was run")
    f = Follower(BINARY, "--state", os.path.join(folder, "state"), os.path.join(folder, "pods"))
    time.sleep(2)
    f.stop()
    # A path that is no UTF-8 cannot be kept in JSON word for word: such a log may be told again.
    C.claim(len(f.incidents()) <= 2, "positions are found again", [i["source"]["path"] for i in f.incidents()])


def case_text(folder):
    """The text of a log is data: not run, not a label, escaped in the answer and on the terminal."""
    log = os.path.join(pod_folder(folder), "0.log")
    evil = '$(touch {0}) `touch {0}` "; touch {0}; # \x1b]0;title\x07 \x1b[31m}} {{"schema": "x"}} namespace="evil",owner="x"'.format(os.path.join(folder, "owned"))
    lines = START[:1] + ["INFO 01-01 00:00:00 [gpu_model_runner.py:1] Starting to load model %s..." % evil] + START[2:] + failure(9) + [evil]
    write(log, cri(lines))
    metrics = os.path.join(folder, "m.prom")
    f = Follower(BINARY, "--metrics-file", metrics, folder)
    got = f.wait_for(1)
    f.stop()
    C.claim(tried(got) == [9], "told", got)
    with open(f.out, "rb") as out:
        raw = out.read()
    C.claim(b"\x1b" not in raw and b"\x07" not in raw and raw.count(b"\n") == 1, "no control characters, one line", raw[:300])
    with open(metrics, encoding="utf-8") as m:
        text = m.read()
    C.claim("touch" not in text and "evil" not in text and "title" not in text, "nothing of it in the metrics", text)
    C.claim(not os.path.exists(os.path.join(folder, "owned")), "nothing was run")


def listeners(pid):
    """Addresses (hex) that the process listens on."""
    own = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            own.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except OSError:
            pass
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with open("/proc/%d/net/%s" % (pid, table), encoding="ascii") as f:
            for line in list(f)[1:]:
                words = line.split()
                if "socket:[%s]" % words[9] in own and (words[3] == "0A" or table.startswith("udp")):
                    found.append(words[1].split(":")[0])
    return found


def case_no_listener(folder):
    """Nobody listens."""
    write(os.path.join(folder, "a.log"), plain(START))
    f = Follower(BINARY, folder)
    time.sleep(0.7)
    C.claim(listeners(f.process.pid) == [], "no socket", listeners(f.process.pid))
    with open("/proc/%d/status" % f.process.pid, encoding="ascii") as status:
        C.claim("Threads:\t1\n" in status.read(), "no thread")
    f.stop()


def case_unprivileged(folder):
    """Without rights: what cannot be read is said once, the rest is followed."""
    if os.geteuid() != 0:
        print("     not root: the case of a user without rights is left out")
        return
    root, state = os.path.join(folder, "pods"), os.path.join(folder, "state")
    os.makedirs(state)
    os.chown(state, NOBODY, NOBODY)
    os.chmod(folder, 0o755)
    write(os.path.join(pod_folder(root, pod="open"), "0.log"), cri(START + failure(11)))
    closed = os.path.join(pod_folder(root, pod="closed"), "0.log")
    write(closed, cri(START + failure(12)))
    os.chmod(closed, 0o600)

    def become_nobody():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    binary = os.path.join(folder, "oomsight")
    shutil.copy(BINARY, binary)  # the build may lie where nobody cannot go
    f = Follower(binary, "--state", state, root, preexec_fn=become_nobody)
    C.claim(tried(f.wait_for(1)) == [11], "what may be read", f.incidents(), f.errors())
    time.sleep(2)
    C.claim(f.errors().count("Permission denied") == 1 and closed in f.errors(), "what may not is said once", f.errors())
    with open("/proc/%d/status" % f.process.pid, encoding="ascii") as status:
        C.claim(re.search(r"CapEff:\s+0+\n", status.read()), "no capability is needed")
    os.chmod(closed, 0o644)
    C.claim(tried(f.wait_for(2)) == [11, 12], "and when it may be read, it is", f.incidents())
    f.stop()


def case_reads_only_that(folder):
    """Files that are opened: what was pointed at, the positions, and nothing else."""
    if not shutil.which("strace"):
        print("     no strace: the list of opened files is left out")
        return
    root = os.path.join(folder, "pods")
    write(os.path.join(pod_folder(root), "0.log"), cri(START + failure(2)))
    write(os.path.join(folder, "beside.log"), plain(START + failure(3)))
    trace = os.path.join(folder, "trace")
    subprocess.run(["strace", "-f", "-e", "trace=openat,open,openat2,execve,connect,bind,socket", "-o", trace, BINARY, "explain", "--follow", "--idle", "2",
                    "--state", os.path.join(folder, "state"), root], capture_output=True, check=False, env={"PATH": os.environ["PATH"]})
    with open(trace, encoding="utf-8", errors="replace") as f:
        text = f.read()
    if "execve" not in text:
        print("     strace cannot trace here: the list of opened files is left out")
        return
    paths = set(re.findall(r'open(?:at2?)?\([^"]*"([^"]*)"', text))
    system = re.compile(r"/(lib|usr/lib|etc/ld\.so|etc/localtime$|dev/urandom$|proc/self|sys/devices/system/cpu|proc/cpuinfo|proc/sys)|.*\.so(\.\d+)*$")
    strange = [p for p in paths if p.startswith("/") and not system.match(p) and not p.startswith(folder)]
    C.claim(strange == [], "nothing else is opened", strange)
    C.claim("beside.log" not in text, "nor what lies beside it")
    C.claim(text.count("execve(") == 1 and "socket(" not in text, "nothing is run, no socket is made")


def case_bounds(folder):
    """Depth, number of files and length of lines have limits; a cap is said once."""
    deep = os.path.join(folder, "deep")
    at = deep
    for _ in range(12):
        at = os.path.join(at, "d")
    os.makedirs(at)
    write(os.path.join(at, "too-deep.log"), plain(START + failure(1)))
    write(os.path.join(deep, "d", "near.log"), plain(START + failure(2)))
    f = Follower(BINARY, deep)
    C.claim(tried(f.wait_for(1)) == [2], "not deeper than eight folders", f.incidents())
    f.stop()
    many = os.path.join(folder, "many")
    os.makedirs(many)
    for number in range(30):
        write(os.path.join(many, "%02d.log" % number), plain(START + failure(number + 1)))
    f = Follower(BINARY, "--max-files", "10", many)
    got, most, end = [], 0, time.monotonic() + 20
    while len(got) < 30 and time.monotonic() < end:
        links = [os.readlink("/proc/%d/fd/%s" % (f.process.pid, fd)) for fd in os.listdir("/proc/%d/fd" % f.process.pid)]
        most = max(most, sum(link.startswith(many) and link.endswith(".log") for link in links))
        time.sleep(0.05)
        got = f.incidents()
    C.claim(len(got) == 30 and 0 < most <= 10, "all, at most ten at once", len(got), most, f.errors())
    f.stop()
    long = os.path.join(folder, "long.log")
    with open(long, "wb") as out:
        for _ in range(64):
            out.write(b"x" * (1 << 20))
        out.write(b"\n" + plain(failure(3)).encode())
    f = Follower(BINARY, long)
    C.claim(tried(f.wait_for(1, 20)) == [3], "a line of 64 MiB", f.incidents())
    with open("/proc/%d/status" % f.process.pid, encoding="ascii") as status:
        peak = int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) >> 10
    C.claim(peak < 64 or "--sanitized" in sys.argv, "memory stays small", peak)
    f.stop()


def case_state_links(folder):
    """Links planted among the positions are neither read nor written through."""
    state, victim = os.path.join(folder, "state"), os.path.join(folder, "victim")
    os.makedirs(state)
    write(victim, "precious\n")
    write(os.path.join(folder, "a.log"), plain(START + failure(4)))
    for name in ("positions", "new.tmp"):
        os.symlink(victim, os.path.join(state, name))
    f = Follower(BINARY, "--state", state, os.path.join(folder, "a.log"))
    C.claim(tried(f.wait_for(1)) == [4], "following goes on", f.incidents())
    time.sleep(1.5)
    f.stop(signal.SIGKILL)
    with open(victim, encoding="utf-8") as v:
        C.claim(v.read() == "precious\n", "the victim is unharmed")
    os.chmod(state, 0o700)
    C.claim(oct(os.stat(os.path.join(state, "lock")).st_mode & 0o777) == "0o600", "positions are the owner's alone")


def case_hostile_flood(folder):
    """A pod that prints failures as fast as it can: bounded memory, and its neighbours are heard."""
    flood = os.path.join(pod_folder(folder, pod="flood"), "0.log")
    with open(flood, "w", encoding="utf-8") as out:
        for number in range(30000):
            out.write(cri(START + failure(number % 4000 + 1)))
    write(os.path.join(pod_folder(folder, pod="quiet"), "0.log"), cri(START + failure(5000)))
    f = Follower(BINARY, folder)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with open(f.out, "rb") as out:
            if b'"pod": "quiet"' in out.read():
                break
        time.sleep(0.2)
    else:
        C.claim(False, "the neighbour is heard")
    with open("/proc/%d/status" % f.process.pid, encoding="ascii") as status:
        peak = int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) >> 10
    C.claim(peak < 96 or "--sanitized" in sys.argv, "memory stays bounded", "%d MiB" % peak)
    f.stop(signal.SIGKILL)
    shutil.rmtree(f.folder)


def main():
    wanted = [word for word in sys.argv[2:] if not word.startswith("-")]
    return C.run([case for name, case in sorted(globals().items()) if name.startswith("case_") and (not wanted or name[5:] in wanted)], "security")


if __name__ == "__main__":
    sys.exit(main())
