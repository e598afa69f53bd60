"""A limit of `oomsight run` is in force or it is an error; files of other users are none of ours; what is left behind goes.

    tests/shim/limits.py BINARY FAKE_PROGRAM PROBE HOSTILE [WORD of a case...]

FAKE_PROGRAM has a CUDA runtime of its own (fake_cudart.c) that any user can have. Cases of another user need root."""
import glob
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time

os.environ.pop("LD_LIBRARY_PATH", None)  # meson names folders of other stubs there
BINARY, PROGRAM, PROBE, HOSTILE = map(os.path.abspath, sys.argv[1:5])
MIB, GIB = 1 << 20, 1 << 30
ROOT, NOT_LIMITED = os.geteuid() == 0, 125
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
FILL = """
import ctypes, sys, time
gpu = ctypes.CDLL(None)
count = 0
while count < 400 and gpu.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(128 << 20)) == 0:
    count += 1
    time.sleep(0.04)
print("got", count, flush=True)
"""
good = True


def check(sentence, holds, more=""):
    global good
    good = good and bool(holds)
    print("%s %s%s" % ("ok  " if holds else "FAIL", sentence, "" if holds else " " + str(more)), flush=True)


def run(*words, **more):
    env = dict(os.environ, OOMSIGHT_BUNDLE_DIR="/nowhere/at/all")
    return subprocess.run([BINARY, "run", *words], env=env, capture_output=True, text=True, timeout=120, **more)


def device(*words, gpu="L4"):
    """On the stand-in device; stderr has what the command prints."""
    env = dict(os.environ, OOMSIGHT_BUNDLE_DIR="/nowhere/at/all")
    return subprocess.run([BINARY, "dryrun", "--output", "/dev/null", "--gpu", gpu, "--cuda", "12", "--", "sh", "-c", '"$@"; echo "exit $?"', "sh", BINARY, "run", *words],
                          env=env, capture_output=True, text=True, timeout=120)


def load(path):
    with open(path, encoding="utf-8") as f: return json.load(f)


def of(launcher):
    """Its files: others run on this machine, too."""
    return glob.glob("/dev/shm/oomsight-run-%d-*" % launcher.pid)


def arrays_are_inside_the_budget(scratch):
    for kind in ("malloc", "array", "array3d", "mipmapped", "pitched3d", "cu_array", "cu_array3d", "cu_mipmapped"):
        done = run("--budget", "1GiB", "--quiet", "--no-bundle", "--", PROGRAM, kind, "60")
        check("%s: ten of 60 x 100 MiB are in a budget of 1 GiB" % kind, done.stdout == "granted 10 of 60\n" and done.returncode == 0, done)
    for kind in ("array_and_free", "cu_array_and_free"):
        done = run("--budget", "1GiB", "--quiet", "--no-bundle", "--", PROGRAM, kind, "60")
        check("%s: what is given back is free again" % kind, done.stdout == "granted 60 of 60\n" and done.returncode == 0, done)


def not_seen_is_never_none(scratch):
    report = scratch + "/r.json"
    done = run("--budget", "1GiB", "--report", report, "--", "env", "-i", PROGRAM, "malloc", "60")
    told = load(report)
    check("env -i, ended at once: the limit was not in force", done.returncode == NOT_LIMITED and "the limit was not in force" in done.stderr, done)
    check("... and the report does not say that nothing was allocated", "No process loaded the memory limiter" in done.stderr and "allocated memory on a device" not in done.stderr, done)
    check("... nor does its JSON", told["limit"] == "not in force" and told["processes_seen"] == 0 and told["devices"] == [], told)
    done = run("--budget", "1GiB", "--report", report, "--", "env", "-i", PROGRAM, "malloc", "30", "40")
    told = load(report)
    check("env -i, for a second: the process is named, and why", done.returncode == NOT_LIMITED and "is not counted: the memory limiter is not loaded in it" in done.stderr, done)
    check("... and in JSON", [(x["name"], "LD_PRELOAD" in x["why"]) for x in told["not_seen"]] == [("fake_program", True)], told)
    done = run("--budget", "1GiB", "--", "env", "-u", "OOMSIGHT_GUARD", PROGRAM, "malloc", "30", "40")
    check("without its variable: named", done.returncode == NOT_LIMITED and "OOMSIGHT_GUARD does not reach it" in done.stderr, done)
    done = run("--", "env", "-i", PROGRAM, "malloc", "3")
    check("without a limit it is no error, and the report says what is not known", done.returncode == 0 and "No process loaded the memory limiter" in done.stderr, done)
    done = run("--budget", "1GiB", "--", "sh", "-c", "env -i %s malloc 3; exit 9" % PROGRAM)
    check("an error of the command itself is told as it is", done.returncode == 9 and "the limit was not in force" in done.stderr, done)
    done = run("--budget", "1GiB", "--", "sh", "-c", "%s malloc 3; env -i %s malloc 30 40" % (PROGRAM, PROGRAM))
    check("one that is counted does not hide one that is not", done.returncode == NOT_LIMITED and "is not counted" in done.stderr, done)
    done = run("--budget", "1GiB", "--", "sh", "-c", "exec %s malloc 3" % PROGRAM)
    check("and a process that is counted is no error", done.returncode == 0 and "not counted" not in done.stderr, done)
    if not ROOT: return print("skip another user: only root can be one")
    done = run("--budget", "1GiB", "--", *NOBODY, PROGRAM, "malloc", "60")
    check("another user, ended at once", done.returncode == NOT_LIMITED and "the limit was not in force" in done.stderr, done)
    done = run("--budget", "1GiB", "--", *NOBODY, PROGRAM, "malloc", "30", "40")
    check("another user: named, and why", done.returncode == NOT_LIMITED and "it runs as another user" in done.stderr, done)


def a_lock_that_a_neighbour_keeps_is_told(scratch):
    done = run("--budget", "1GiB", "--", "sh", "-c", "%s lock 60 & sleep 0.3; %s malloc 60; code=$?; kill $!; exit $code" % (HOSTILE, PROGRAM))
    check("a process that gave up is not counted, and it is said", done.returncode == NOT_LIMITED and "has held the memory limiter's lock for two seconds" in done.stderr, done)


def left_behind(scratch):
    files = []
    for _ in range(3):
        one = subprocess.Popen([BINARY, "run", "--quiet", "--", "sleep", "60"], start_new_session=True)
        until = time.monotonic() + 10
        while not of(one) and time.monotonic() < until: time.sleep(0.02)
        time.sleep(0.3)
        files += of(one)
        os.kill(one.pid, signal.SIGKILL)
        one.wait()
    check("a launcher that is killed leaves its file", len(files) >= 1, files)
    done = run("--quiet", "--", "true")
    time.sleep(0.3)
    check("the next one removes it", done.returncode == 0 and not any(os.path.exists(p) for p in files), files)
    one = subprocess.Popen([BINARY, "run", "--quiet", "--", "sh", "-c", "echo; read x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    one.stdout.readline()
    here = of(one)
    run("--quiet", "--", "true")
    check("and none whose launcher lives", here and of(one) == here, (here, of(one)))
    one.communicate(b"\n")
    other = subprocess.Popen(["sleep", "30"])
    path = subprocess.run([HOSTILE, "stale", str(other.pid)], capture_output=True, text=True).stdout.strip()
    told = subprocess.run([BINARY, "top", "--once", "--json"], capture_output=True, text=True)
    check("top does not take another process of the same pid for it", os.path.basename(path) and all(x["pid"] != other.pid for x in json.loads(told.stdout)), told)
    check("... and removes the file", not os.path.exists(path), path)
    other.kill()
    other.wait()


def no_room(scratch):
    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))
    done = run("--", "echo", "started", preexec_fn=small)
    check("no room for the guard's file: the command starts all the same", done.stdout == "started\n" and done.returncode == 0, done)
    check("... and it is said", "no room" in done.stderr and "WITHOUT the memory limiter" in done.stderr, done)
    for limit in (("--budget", "1GiB"), ("--unified", "1GiB")):
        done = run(*limit, "--", "echo", "started", preexec_fn=small)
        check("%s: then it does not start, which is an error of its own" % limit[0], done.stdout == "" and done.returncode == NOT_LIMITED and "was not started" in done.stderr, done)


def other_users_have_no_say(scratch):
    if not ROOT: return print("skip other users: only root can be one")
    share = "hostile-%d" % os.getpid()
    for budget, how in ((1 << 40, "claims the whole card"), (1 * GIB, "cuts its file short")):
        him = subprocess.Popen([*NOBODY, HOSTILE, "claim", share, str(budget)], stdout=subprocess.PIPE, text=True)
        path = him.stdout.readline().strip()
        done = device("--share", share, "--budget", "4GiB", "--quiet", "--no-bundle", "--", sys.executable, "-c", FILL)
        check("somebody %s: the engine has its budget all the same" % how, "got 30\n" in done.stderr and "exit 0\n" in done.stderr, done.stderr)
        him.kill()
        him.wait()
        if os.path.exists(path): os.unlink(path)
    lock = "/dev/shm/oomsight-share-0-%s" % share
    names = [lock, lock + ".aaaaaa"]
    for name in names: subprocess.run([*NOBODY, "touch", name], check=True)
    os.symlink("/etc/hostname", lock + ".bbbbbb")
    done = device("--share", share, "--budget", "2GiB", "--quiet", "--no-bundle", "--", sys.executable, "-c", "import ctypes; print(ctypes.CDLL(None).cudaFree(None))")
    check("somebody puts files where its lock would be: it starts", "cannot" not in done.stderr and "--share:" not in done.stderr, done.stderr)
    for name in glob.glob(lock + "*"): os.unlink(name)


def segments_are_opened_when_they_are_ours(scratch):
    victim = scratch + "/segment"
    done = run("--quiet", "--budget", "1GiB", "--", "sh", "-c", 'cp "$OOMSIGHT_GUARD" %s; chmod 600 %s; OOMSIGHT_GUARD=%s %s malloc 3' % (victim, victim, victim, PROGRAM))
    check("a copy that is ours is a segment", os.path.getsize(victim) > MIB and done.returncode == NOT_LIMITED, done)
    seen = lambda: subprocess.run([PROGRAM, "malloc", "60"], env=dict(os.environ, LD_PRELOAD=guard(), OOMSIGHT_GUARD=victim), capture_output=True, text=True).stdout
    check("... and limits", seen() == "granted 10 of 60\n", seen())
    for name, do in (("others may write to it", lambda: os.chmod(victim, 0o622)), ("others may read it", lambda: os.chmod(victim, 0o644)),
                     ("it has a second name", lambda: (os.chmod(victim, 0o600), os.link(victim, victim + "2"))),
                     ("it is a link", lambda: (os.unlink(victim + "2"), os.rename(victim, victim + "1"), os.symlink(victim + "1", victim)))):
        do()
        check("not when %s" % name, seen() == "granted 60 of 60\n", seen())


def guard():
    return os.path.join(os.path.dirname(BINARY), "..", "shim", "liboomsight-guard.so")


def metrics_go_to_a_new_file(scratch):
    os.chmod(scratch, 0o777)
    victim, path = scratch + "/victim", scratch + "/m.prom"
    with open(victim, "w") as f: f.write("mine\n")
    last = int(open("/proc/sys/kernel/ns_last_pid").read()) if os.path.exists("/proc/sys/kernel/ns_last_pid") else os.getpid()
    for pid in range(last, last + 400): os.symlink(victim, "%s.%d.tmp" % (path, pid))
    os.symlink(victim, path)
    os.umask(0o077)
    done = subprocess.run([BINARY, "top", "--once", "--metrics-file", path], capture_output=True, text=True)
    check("links in its way are not followed", done.returncode == 0 and open(victim).read() == "mine\n", done)
    check("a plain file that its readers can read takes the place", stat.S_ISREG(os.lstat(path).st_mode) and stat.S_IMODE(os.lstat(path).st_mode) == 0o644 and "oomsight_run" in open(path).read(), os.lstat(path))
    check("nothing else is left", len([n for n in os.listdir(scratch) if not n.endswith(".tmp")]) == 2, os.listdir(scratch))
    done = subprocess.run([BINARY, "top", "--once", "--metrics-file", scratch + "/no/such/m.prom"], capture_output=True, text=True)
    check("no such folder is an error", done.returncode == 3 and "No such file" in done.stderr, done)


def a_budget_that_the_card_has_not_is_said(scratch):
    done = device("--budget", "40GiB", "--no-bundle", "--", sys.executable, "-c", FILL.replace("time.sleep(0.04)", "pass"))
    check("before the command starts", "--budget 40.00 GiB is more than the 22.49 GiB of the smallest device" in done.stderr, done.stderr)
    check("and in the report", "the limit of 40.00 is more than it has" in done.stderr and "the device was full" in done.stderr, done.stderr)


def a_bundle_names_the_budget_as_the_cause(scratch):
    for name, says in (("silent", ""), ("says", "print('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB.')")):
        env = dict(os.environ, OOMSIGHT_BUNDLE_DIR=scratch + "/" + name)
        subprocess.run([BINARY, "dryrun", "--output", "/dev/null", "--gpu", "L4", "--cuda", "12", "--", BINARY, "run", "--budget", "2GiB", "--",
                        sys.executable, "-c", FILL.replace("time.sleep(0.04)", "pass").replace("print(", "0 and print(") + says], env=env, capture_output=True, timeout=120)
        found = [load(p) for p in glob.glob(env["OOMSIGHT_BUNDLE_DIR"] + "/*/bundle.json")]
        check("a program that %s" % name, len(found) == 1 and (found[0]["cause"], found[0]["refused_by"]) == ("run_budget", "budget"), found)


def a_cancelled_thread_leaves_no_lock(scratch):
    done = run("--unified", "64MiB", "--quiet", "--no-bundle", "--", PROGRAM, "cancel", "60")
    check("threads that are cancelled inside a call do not hang the process", done.stdout == "cancelled 60\n" and done.returncode == 0, done)


def a_process_without_cuda_finds_none(scratch):
    done = run("--quiet", "--", PROBE, "probe", "0")
    check("who looks whether CUDA is there does not find the guard", done.stdout == "found 0\nerror 1\nstrlen 1\n", done)


CASES = [arrays_are_inside_the_budget, not_seen_is_never_none, a_lock_that_a_neighbour_keeps_is_told, left_behind, no_room, other_users_have_no_say, segments_are_opened_when_they_are_ours,
         metrics_go_to_a_new_file, a_budget_that_the_card_has_not_is_said, a_bundle_names_the_budget_as_the_cause, a_cancelled_thread_leaves_no_lock, a_process_without_cuda_finds_none]


def main():
    wanted = sys.argv[5:]
    for case in CASES:
        if wanted and not any(word in case.__name__ for word in wanted): continue
        with tempfile.TemporaryDirectory() as scratch: case(scratch)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
