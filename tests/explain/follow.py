#!/usr/bin/env python3
"""Following logs through everything that happens to them. usage: follow.py BINARY"""
import glob
import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

from following import FRAME, HARMLESS, OOM, START, Claims, Follower, cri, docker, failure, plain, pod_folder, tried, write

BINARY = os.path.abspath(sys.argv[1])
C = Claims()


def case_fields(folder):
    """The fields of an incident, in a pod's log."""
    log = os.path.join(pod_folder(folder), "3.log")
    head = cri(START, "2026-01-02T03:04:05.000000001Z")
    write(log, head + cri(failure(100), "2026-01-02T03:05:06.789000000Z"))
    f = Follower(BINARY, "--state", os.path.join(folder, "state"), folder)
    one = f.wait_for(1)
    f.stop()
    C.claim(tried(one) == [100], "one incident", one)
    i = one[0]
    C.claim(len(i["id"]) == 16 and int(i["id"], 16), "an id", i["id"])
    C.claim(i["at"] == "2026-01-02T03:05:06.789Z" and i["started_at"] == "2026-01-02T03:04:05.000Z" and i["seen_at"] > "2026", "times", i["at"], i["started_at"])
    C.claim(i["source"] == {"path": log, "namespace": "team-a", "pod": "chat-0", "pod_uid": "0a1b2c3d-0000-4000-8000-00000000000f", "container": "vllm",
                            "restart": 3, "first_byte": len(head), "last_byte": os.path.getsize(log) - 1}, "where", i["source"])


def case_docker(folder):
    """docker's files: JSON lines, moved to .1."""
    identity = "ab" * 32
    os.makedirs(os.path.join(folder, identity))
    log = os.path.join(folder, identity, identity + "-json.log")
    write(log, docker(START))
    f = Follower(BINARY, "--state", os.path.join(folder, "state"), folder)
    time.sleep(0.5)
    write(log, docker(failure(100)))
    f.wait_for(1)
    os.rename(log, log + ".1")
    write(log, docker(START + failure(200)))
    got = f.wait_for(2)
    f.stop()
    C.claim(tried(got) == [100, 200], "docker, rotated", got)
    C.claim([i["source"]["container"] for i in got] == ["ab" * 6] * 2 and got[0]["at"] == "2026-01-02T03:04:05.678Z", "docker's names and times", got)


def case_truncated(folder):
    """Copied and cut in place, also when the new text is longer than the old one."""
    log = os.path.join(folder, "a.log")
    write(log, plain(START + failure(100)))
    f = Follower(BINARY, "--state", os.path.join(folder, "state"), log)
    f.wait_for(1)
    write(log, plain(["another first line"] + START + failure(200) + [HARMLESS] * 50), "w")
    f.wait_for(2)
    write(log, plain(["yet another"] + failure(300)), "w")
    got = f.wait_for(3)
    f.stop()
    C.claim(tried(got) == [100, 200, 300], "cut in place", tried(got))
    C.claim(len({i["id"] for i in got}) == 3, "other ids")


def case_copied_and_cut(folder):
    """Copied and cut in place: what was not read before the cut is read from the copy, also after a kill."""
    log, state = os.path.join(folder, "a.log"), os.path.join(folder, "state")

    def cut(number):
        shutil.copyfile(log, log + ".%d" % number)
        os.truncate(log, 0)

    write(log, plain(["first line one"] + START + failure(100)))
    f = Follower(BINARY, "--state", state, log)
    f.wait_for(1)
    f.process.send_signal(signal.SIGSTOP)  # does not look
    write(log, plain(START + failure(200)))
    cut(1)
    write(log, plain(["first line two"] + START + failure(300)))
    f.process.send_signal(signal.SIGCONT)
    got = f.wait_for(3)
    C.claim(tried(got) == [100, 200, 300], "while it runs", tried(got))
    time.sleep(1.2)
    f.stop(signal.SIGKILL)
    write(log, plain(START + failure(400)))
    os.remove(log + ".1")
    cut(1)
    write(log, plain(["first line three"] + START + failure(500)))
    f = Follower(BINARY, "--state", state, log)
    got = f.wait_for(2)
    f.stop()
    C.claim(tried(got) == [400, 500], "while nobody looks", tried(got))


def case_copied_and_cut_twice(folder):
    """An empty log is known; it is filled, copied and cut while nobody looks."""
    log, state = os.path.join(folder, "a.log"), os.path.join(folder, "state")
    write(log, plain(["first line one"] + START + failure(100)))
    f = Follower(BINARY, "--state", state, log)
    f.wait_for(1)
    shutil.copyfile(log, log + ".1")
    os.truncate(log, 0)
    time.sleep(2.5)
    f.stop(signal.SIGKILL)
    for number, mib in ((2, 200), (3, 300)):
        write(log, plain(["first line %d" % number] + START + failure(mib)))
        shutil.copyfile(log, log + ".%d" % number)
        os.truncate(log, 0)
        time.sleep(0.02)
    write(log, plain(["first line four"] + START + failure(400)))
    f = Follower(BINARY, "--state", state, log)
    got = f.wait_for(3)
    f.stop()
    C.claim(tried(got) == [200, 300, 400], "all generations", tried(got))


def case_wide_text(folder):
    """PowerShell's UTF-16 is not followed, and that is said once for each file."""
    with open(os.path.join(folder, "b.log"), "wb") as out:
        out.write("\n".join(START + failure(100) + [""]).encode("utf-16"))
    f = Follower(BINARY, folder)
    f.wait_error("UTF-16")
    time.sleep(1)
    f.stop()
    C.claim(f.errors().count("UTF-16") == 1 and not f.incidents(), "one line", f.errors())


def case_not_for_us_yet(folder):
    """A position is kept while its file cannot be read."""
    if os.geteuid() != 0:
        return
    log, state = os.path.join(folder, "a.log"), os.path.join(folder, "state")
    write(log, plain(START + failure(100)))
    os.makedirs(state)
    for path in (folder, state, log):
        os.chown(path, 65534, 65534)
    binary = os.path.join(folder, "oomsight")
    shutil.copy(BINARY, binary)

    def become_nobody():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    for mode, wanted in ((0o600, [100]), (0, []), (0o600, [])):
        os.chmod(log, mode)
        f = Follower(binary, "--state", state, log, preexec_fn=become_nobody)
        got = f.wait_for(len(wanted)) if wanted else (time.sleep(2.5), f.incidents())[1]
        f.stop(signal.SIGKILL)
        C.claim(tried(got) == wanted, "mode %o" % mode, tried(got), f.errors())


def case_rotated_while_dead(folder):
    """Moved away twice while nobody looked, one of them packed: everything is read, in order, and nothing twice."""
    log = os.path.join(pod_folder(folder), "0.log")
    words = ("--state", os.path.join(folder, "state"), folder)
    write(log, cri(START + failure(100), "2026-01-01T00:00:00.000000001Z"))
    f = Follower(BINARY, *words)
    C.claim(tried(f.wait_for(1)) == [100], "the first", f.incidents())
    f.stop(signal.SIGKILL)
    write(log, cri(START + failure(200), "2026-01-01T00:01:00.000000001Z"))
    os.rename(log, log + ".20260101-000200")
    with open(log + ".20260101-000200", "rb") as source, gzip.open(log + ".20260101-000200.gz", "wb") as target:
        shutil.copyfileobj(source, target)
    os.remove(log + ".20260101-000200")
    write(log, cri(START + failure(300), "2026-01-01T00:02:00.000000001Z"))
    os.rename(log, log + ".20260101-000300")
    write(log, cri(START + failure(400), "2026-01-01T00:03:00.000000001Z"))
    f = Follower(BINARY, *words)
    got = f.wait_for(3)
    f.stop()
    C.claim(tried(got) == [200, 300, 400], "what happened meanwhile", tried(got))


def case_rotated_quickly(folder):
    """Moved away twice between two looks."""
    log = os.path.join(pod_folder(folder), "0.log")
    write(log, cri(START, "2026-01-01T00:00:00.000000001Z"))
    f = Follower(BINARY, folder)
    time.sleep(0.6)
    for number, mib in enumerate((100, 200, 300)):
        write(log, cri(START + failure(mib), "2026-01-01T00:0%d:00.000000001Z" % number))
        os.rename(log, log + ".20260101-00000%d" % number)
    write(log, cri(START + failure(400), "2026-01-01T00:04:00.000000001Z"))
    got = f.wait_for(4)
    f.stop()
    C.claim(tried(got) == [100, 200, 300, 400], "all of them", tried(got))


def case_incident_over_rotation(folder):
    """A failure whose lines lie in two files is one incident."""
    log = os.path.join(pod_folder(folder), "0.log")
    write(log, cri(START))
    f = Follower(BINARY, folder)
    time.sleep(0.6)
    write(log, cri(failure(100)[:1]))
    os.rename(log, log + ".20260101-000000")
    write(log, cri(failure(100)[1:]))
    got = f.wait_for(1)
    f.stop()
    C.claim(tried(got) == [100] and got[0]["phase"] == "weight_load" and len(got[0]["evidence"]) >= 3, "one incident", got)


def case_killed_in_between(folder):
    """Killed while a failure is being printed: it is told once, whole, under the id it would have had."""
    log = os.path.join(pod_folder(folder), "0.log")
    words = ("--state", os.path.join(folder, "state"), folder)
    write(log, cri(START))
    f = Follower(BINARY, *words)
    time.sleep(2.5)  # the start is behind us and saved
    write(log, cri(failure(100)[:1]))
    time.sleep(0.5)
    f.stop(signal.SIGKILL)
    C.claim(f.incidents() == [], "not told before it is over", f.incidents())
    write(log, cri(failure(100)[1:]))
    f = Follower(BINARY, *words)
    got = f.wait_for(1)
    f.stop(signal.SIGKILL)
    C.claim(tried(got) == [100] and got[0]["phase"] == "weight_load", "told after the restart", got)
    C.claim(got[0]["engine"]["version"] == "0.19.1" and got[0]["numbers"]["weights_bytes"], "with what the start told", got[0]["engine"])
    C.claim(got[0]["first_line"] == 4, "with its line numbers", got[0]["first_line"])
    f = Follower(BINARY, folder)  # no memory: everything again
    again = f.wait_for(1)
    f.stop()
    C.claim([i["id"] for i in again] == [i["id"] for i in got], "the same id", again)
    f = Follower(BINARY, *words)
    time.sleep(1.5)
    f.stop()
    C.claim(f.incidents() == [], "told once", f.incidents())


def case_passed_on(folder):
    """What passes a failure on, seconds later and after a restart, is no second incident."""
    log = os.path.join(folder, "a.log")
    words = ("--state", os.path.join(folder, "state"), log)
    write(log, plain(START + failure(100)))
    f = Follower(BINARY, *words)
    f.wait_for(1)
    write(log, plain(["RuntimeError: Engine core initialization failed. See root cause above."]))
    time.sleep(1.6)
    C.claim(tried(f.incidents()) == [100], "passed on", f.incidents())
    f.stop(signal.SIGKILL)
    write(log, plain(["RuntimeError: Engine core initialization failed. See root cause above."]))
    f = Follower(BINARY, *words)
    time.sleep(1.8)
    C.claim(f.incidents() == [], "passed on once more", f.incidents())
    write(log, plain(failure(200)))
    got = f.wait_for(1)
    f.stop()
    C.claim(tried(got) == [200], "but a new one is told", got)


def case_busy_log(folder):
    """A log that never falls silent: the failure is told all the same."""
    log = os.path.join(folder, "a.log")
    write(log, plain(START + [HARMLESS] * 20))
    f = Follower(BINARY, log)
    time.sleep(0.4)
    write(log, plain(failure(100)))
    start = time.monotonic()
    while not f.incidents() and time.monotonic() - start < 6:
        write(log, plain([HARMLESS]))
        time.sleep(0.05)
    took = time.monotonic() - start
    f.stop()
    C.claim(tried(f.incidents()) == [100] and took < 4, "told in time", took)


def case_unfinished_line(folder):
    """The last line has no end."""
    log = os.path.join(folder, "a.log")
    write(log, plain(START) + "\n".join(failure(100)))
    f = Follower(BINARY, log)
    got = f.wait_for(1)
    f.stop()
    C.claim(tried(got) == [100], "told", got)


def case_pods_come_and_go(folder):
    """New pods are found at once, vanished ones are forgotten."""
    state = os.path.join(folder, "state")
    pods = os.path.join(folder, "pods")
    first = pod_folder(pods, pod="first")
    write(os.path.join(first, "0.log"), cri(START))
    f = Follower(BINARY, "--state", state, "--metrics-file", os.path.join(folder, "m.prom"), pods)
    time.sleep(1.2)
    start = time.monotonic()
    write(os.path.join(pod_folder(pods, pod="second"), "0.log"), cri(START + failure(100)))
    C.claim([i["source"]["pod"] for i in f.wait_for(1)] == ["second"] and time.monotonic() - start < 4, "a new pod", f.incidents())
    shutil.rmtree(os.path.dirname(first))
    end, left = time.monotonic() + 30, []
    while time.monotonic() < end and left != ["second"]:
        time.sleep(0.2)
        with open(os.path.join(state, "positions"), encoding="utf-8") as saved:
            last = {one["path"]: one for one in map(json.loads, saved) if "path" in one}
        left = [os.path.relpath(path, pods).split("_")[1] for path, one in last.items() if "inode" in one]
    f.stop()
    C.claim(left == ["second"], "positions of what is there", left)
    with open(os.path.join(folder, "m.prom"), encoding="utf-8") as metrics:
        text = metrics.read()
    C.claim("oomsight_files 1\n" in text, "one file left", text)
    C.claim(f.process.returncode == 1, "exit 1: an OOM was found", f.process.returncode)


def case_state_full(folder):
    """Positions cannot be written: said once, and following goes on."""
    log, state = os.path.join(folder, "a.log"), os.path.join(folder, "state")
    write(log, plain(START))
    f = Follower(BINARY, "--state", state, log, stdout=subprocess.PIPE,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    C.claim(f.process.poll() is None, "runs")
    time.sleep(2.5)
    write(log, plain(failure(100)))
    line = f.process.stdout.readline()
    C.claim(b'"tried_bytes": 104857600' in line, "told all the same", line)
    time.sleep(2.5)
    f.stop()


def case_tiny_disk(folder):
    """A full file system for the positions; when there is room again, they are written again."""
    mount = os.path.join(folder, "tiny")
    os.makedirs(mount)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", mount], capture_output=True, check=False).returncode:
        print("     no tmpfs to be had: the case of a full disk is left out")
        return
    try:
        log = os.path.join(folder, "a.log")
        write(log, plain(START))
        with open(os.path.join(mount, "ballast"), "wb") as ballast:
            try:
                ballast.write(b"x" * (1 << 20))
            except OSError:
                pass
        os.makedirs(os.path.join(mount, "state"), exist_ok=True)
        f = Follower(BINARY, "--state", os.path.join(mount, "state"), log)
        C.claim(f.wait_error("No space left"), "a full disk is said", f.errors())
        write(log, plain(failure(100)))
        C.claim(tried(f.wait_for(1)) == [100], "following goes on", f.incidents())
        time.sleep(1.5)
        C.claim(f.errors().count("cannot be written") == 1, "said once", f.errors())
        os.remove(os.path.join(mount, "ballast"))
        C.claim(f.wait_error("written again"), "and when it is over", f.errors())
        f.stop(signal.SIGKILL)
        C.claim(os.path.getsize(os.path.join(mount, "state", "positions")) > 0, "positions are there")
    finally:
        subprocess.run(["umount", "-l", mount], check=False)


def wait_figures(path, good, seconds):
    """{name: figure} of a metrics file, as soon as they are good."""
    end, found = time.monotonic() + seconds, {}
    while time.monotonic() < end and not (found and good(found)):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as metrics:
                found = {line.split()[0]: float(line.split()[1]) for line in metrics if line[0] != "#"}
        time.sleep(0.1)
    return found


def case_output_full(folder):
    """Incidents cannot be written: said once, the lag grows, nothing is lost, and they come when there is room."""
    log, state, more = os.path.join(folder, "a.log"), os.path.join(folder, "state"), [HARMLESS] * 1000 + START + failure(200)
    write(log, plain(START + failure(100)))
    with open("/dev/full", "wb") as full:
        f = Follower(BINARY, "--state", state, "--metrics-file", os.path.join(folder, "m.prom"), log, stdout=full)
        C.claim(f.wait_error("incidents cannot be written"), "a full disk is said", f.errors())
        time.sleep(2)
        C.claim(f.errors().count("cannot be written") == 1, "said once", f.errors())
        begun = time.monotonic()
        write(log, plain(more))
        figures = wait_figures(os.path.join(folder, "m.prom"), lambda m: m.get("oomsight_lag_bytes", 0) and m["oomsight_write_errors_total"] >= 2, 15)
        waited = time.monotonic() - begun
        f.stop()
        C.claim(f.process.returncode == 3, "exit 3", f.process.returncode)
    C.claim(figures.get("oomsight_write_errors_total", 0) >= 2, "counted", figures)
    C.claim(figures.get("oomsight_lag_bytes") == len(plain(more)), "what is not read meanwhile is the lag", figures)
    C.claim(0 < figures.get("oomsight_lag_seconds", 0) < waited + 20, "and its age", figures, waited)
    f = Follower(BINARY, "--state", state, "--metrics-file", os.path.join(folder, "m.prom"), log)
    got = f.wait_for(2)
    f.stop()
    C.claim(tried(got) == [100, 200], "told by the next one", tried(got), got)
    C.claim(wait_figures(os.path.join(folder, "m.prom"), bool, 1).get("oomsight_lag_bytes") == 0, "and the lag is gone")


def case_output_file(folder):
    """--output is appended to, and made anew when it was moved away."""
    log, out = os.path.join(folder, "a.log"), os.path.join(folder, "incidents.ndjson")
    write(log, plain(START + failure(100)))
    write(out, "")
    f = Follower(BINARY, "--output", out, log)
    time.sleep(2)
    os.rename(out, out + ".1")
    write(log, plain(START + failure(200)))
    time.sleep(2)
    f.stop()
    for path, mib in ((out + ".1", 100), (out, 200)):
        with open(path, encoding="utf-8") as lines:
            C.claim(tried([json.loads(line) for line in lines]) == [mib], "%d in its file" % mib)


def case_own_output(folder):
    """Its own output among the logs it follows, plain and in a container's wrapper: no echo."""
    own, wrapped = os.path.join(folder, "own.log"), os.path.join(pod_folder(folder), "0.log")
    write(os.path.join(folder, "a.log"), plain(START + failure(100)))
    f = Follower(BINARY, "--output", own, folder)
    time.sleep(2)
    with open(own, encoding="utf-8") as lines:
        write(wrapped, cri(lines.read().splitlines()))
    time.sleep(2.5)
    f.stop()
    with open(own, encoding="utf-8") as lines:
        C.claim(tried([json.loads(line) for line in lines]) == [100], "told once")


def case_metrics(folder):
    """In a file, replaced as a whole."""
    metrics = os.path.join(folder, "m.prom")
    write(os.path.join(pod_folder(folder), "0.log"), cri(START + failure(100)))
    f = Follower(BINARY, "--metrics-file", metrics, folder)
    cause = f.wait_for(1)[0]["cause"]
    f.stop()
    with open(metrics, encoding="utf-8") as lines:
        text = lines.read()
    for part in ('oomsight_incidents_late_total{namespace="team-a",phase="weight_load",cause="%s"} 1\n' % cause,
                 'oomsight_engine_bytes{namespace="team-a",pod="chat-0",container="vllm",owner="weights"} 16396037652\n',
                 "oomsight_files 1\n", "oomsight_lag_bytes 0\n", "oomsight_lines_read_total 5\n", "oomsight_write_errors_total 0\n"):
        C.claim(part in text, "a metric", part, text)
    written = float(text.split("oomsight_written_timestamp_seconds ")[3].split()[0])
    C.claim(abs(time.time() - written) < 60, "when it was written", written)


def case_late_or_now(folder):
    """What is found long after it happened is counted apart: nobody is woken by it."""
    metrics = os.path.join(folder, "m.prom")
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000001Z", time.gmtime())
    write(os.path.join(pod_folder(folder), "0.log"), cri(START + failure(100)))
    write(os.path.join(pod_folder(folder, pod="chat-1"), "0.log"), cri(START + failure(200), now))
    old = os.path.join(folder, "plain.log")
    write(old, plain(failure(300)))
    os.utime(old, (1e9, 1e9))
    f = Follower(BINARY, "--metrics-file", metrics, folder)
    f.wait_for(3)
    f.stop()
    with open(metrics, encoding="utf-8") as text:
        counts = [line.rsplit(" ", 1) for line in text if line.startswith("oomsight_incidents_")]
    sums = {name: sum(int(n) for key, n in counts if key.startswith(name)) for name in ("oomsight_incidents_total", "oomsight_incidents_late_total")}
    C.claim(sums == {"oomsight_incidents_total": 1, "oomsight_incidents_late_total": 2}, "late and now", counts)


def case_away_for_a_moment(folder):
    """The name leads nowhere for a while, and what came next was moved away before anybody looked; also with a state and a kill."""
    for at, words in enumerate(((), ("--state", os.path.join(folder, "state")))):
        root = os.path.join(folder, "logs%d" % at)
        log = os.path.join(root, "e.log")
        os.makedirs(root)
        write(log, plain(["first"] + START + failure(101)))
        f = Follower(BINARY, *words, root)
        f.wait_for(1)
        os.rename(log, log + ".1")
        time.sleep(4.5)
        if words:
            f.stop(signal.SIGKILL)
        write(log, plain(["second"] + START + failure(102)))
        os.rename(log, log + ".0")
        os.rename(log + ".1", log + ".2")
        os.rename(log + ".0", log + ".1")
        write(log, plain(["third"] + START + failure(103)))
        if words:
            f = Follower(BINARY, *words, root)
        got = f.wait_for(2 if words else 3)
        f.stop()
        C.claim(tried(got) == ([102, 103] if words else [101, 102, 103]), "after the gap", words, tried(got))


def case_moved_away_unseen(folder):
    """Written and moved away between two looks, under names that count on; nothing of it was ever seen under its own name."""
    f = Follower(BINARY, folder)
    time.sleep(0.7)
    log = os.path.join(folder, "e.log")
    for number in range(1, 5):
        write(log, plain(["part %d" % number] + START + failure(100 * number)))
        if number < 4:
            os.rename(log, log + ".%d" % number)
            time.sleep(0.02)
    got = f.wait_for(4)
    f.stop()
    C.claim(tried(got) == [100, 200, 300, 400], "all generations", tried(got))


def case_names_of_its_own(folder):
    """Moved away to a name that is a log's, as loguru does: told once and under its first name, also after a kill. Logs that begin alike are others."""
    root, state = os.path.join(folder, "logs"), os.path.join(folder, "state")
    log, ids = os.path.join(root, "e.log"), {}
    os.makedirs(root)

    def told(f):
        for one in f.incidents():
            ids.setdefault(tried([one])[0], set()).add((one["id"], os.path.basename(one["source"]["path"])))

    for name in ("e.log", "e-1.log"):
        write(os.path.join(root, name), plain(["first"] + START + failure(101 if name == "e.log" else 900)))
    f = Follower(BINARY, "--state", state, root)
    f.wait_for(2)
    os.rename(log, os.path.join(root, "e.2026-01-02_03-04-05_000001.log"))
    write(log, plain(["second"] + START + failure(102)))
    f.wait_for(3)
    f.stop(signal.SIGKILL)
    told(f)
    write(log, plain(START + failure(103)))
    for number, mib in ((2, 104), (3, 105)):
        os.rename(log, os.path.join(root, "e.2026-01-02_03-04-05_%06d.log" % number))
        write(log, plain(["part %d" % number] + START + failure(mib)))
    f = Follower(BINARY, "--state", state, root)
    f.wait_for(3)
    time.sleep(3)
    f.stop(signal.SIGKILL)
    told(f)
    f = Follower(BINARY, "--state", state, root)
    time.sleep(3)
    f.stop()
    told(f)
    C.claim(sorted(ids) == [101, 102, 103, 104, 105, 900] and all(len(of) == 1 for of in ids.values()), "each once", ids)
    C.claim({name for _, name in ids[101] | ids[102] | ids[103] | ids[105]} == {"e.log"} and {name for _, name in ids[900]} == {"e-1.log"}, "under its first name", ids)


def case_moved_before_it_was_known(folder):
    """Told under its first name, and killed before a position was written; what it was moved to has the same id."""
    log, state = os.path.join(folder, "e-7.log"), os.path.join(folder, "state")
    write(log, plain(["first"] + START + failure(100)))
    ids = set()
    for _ in range(2):
        f = Follower(BINARY, "--state", state, folder)
        ids |= {one["id"] for one in f.wait_for(1)}
        f.stop(signal.SIGKILL)
        if os.path.exists(log):
            os.rename(log, os.path.join(folder, "e-7.2026-01-02_03-04-05_000001.log"))
        shutil.rmtree(state)
    C.claim(len(ids) == 1, "one id", ids)


def case_same_inode_other_text(folder):
    """Started again into the same file while nobody looked: the first line is equal, the text longer."""
    log, state = os.path.join(folder, "a.log"), os.path.join(folder, "state")
    head = ["nohup: ignoring input"]
    write(log, plain(head + START + failure(100)))
    f = Follower(BINARY, "--state", state, log)
    f.wait_for(1)
    time.sleep(1.2)
    f.stop(signal.SIGKILL)
    write(log, plain(head + START + failure(200) + ["%d %s" % (i, HARMLESS) for i in range(30)]), "w")
    f = Follower(BINARY, "--state", state, log)
    got = f.wait_for(1)
    C.claim(tried(got) == [200], "while it was down", tried(got))
    write(log, plain(head + START + failure(300) + ["%d %s" % (i * 7, HARMLESS) for i in range(90)]), "w")
    got = f.wait_for(2)
    f.stop()
    C.claim(tried(got) == [200, 300], "while it looked", tried(got))


def case_finished_logs_make_room(folder):
    """More finished logs than places: the new ones that fail get a place."""
    for i in range(60):
        log = os.path.join(folder, "old-%02d.log" % i)
        write(log, plain(START))
        os.utime(log, (1e9 + i, 1e9 + i))
    f = Follower(BINARY, "--max-files", "8", "--metrics-file", os.path.join(folder, "m.prom"), folder)
    time.sleep(1)
    for i in range(5):
        write(os.path.join(folder, "new-%d.log" % i), plain(START + failure(100 + i)))
    got = f.wait_for(5)
    C.claim(sorted(tried(got)) == [100, 101, 102, 103, 104], "the new ones", tried(got))
    with open(os.path.join(folder, "old-00.log"), "a", encoding="utf-8") as late:
        late.write(plain(failure(200)))
    C.claim(200 in tried(f.wait_for(6)), "one that rested and grows", tried(f.incidents()))
    f.stop()


def case_fingerprints_group(folder):
    """Equal but for the size: one fingerprint. Another release or phase: another."""
    other = [line.replace("0.19.1", "0.24.0") for line in START]
    later = ['  File "/usr/lib/python3/site-packages/vllm/v1/worker/gpu_worker.py", line 400, in determine_available_memory', OOM % 500]
    for name, lines in (("a", START + failure(100) + START + failure(2000)), ("b", other + failure(100)), ("c", START + later)):
        write(os.path.join(folder, name + ".log"), plain(lines))
    f = Follower(BINARY, folder)
    prints = {}
    for i in f.wait_for(4):
        prints.setdefault(os.path.basename(i["source"]["path"]), []).append(i["fingerprint"])
    f.stop()
    C.claim(len(prints) == 3 and len(set(prints["a.log"])) == 1 and len(set(sum(prints.values(), []))) == 3, "groups", prints)


def case_folder_that_comes_later(folder):
    """A folder that is not there yet is found soon after it is made."""
    root = os.path.join(folder, "later")
    f = Follower(BINARY, root + "/")
    time.sleep(0.7)
    os.makedirs(root)
    write(os.path.join(root, "a.log"), plain(START + failure(100)))
    start = time.monotonic()
    C.claim(tried(f.wait_for(1)) == [100] and time.monotonic() - start < 6, "found soon", time.monotonic() - start)
    f.stop()


def case_stopped_in_the_middle(folder):
    """Asked to end while a failure is being printed: told once, whole, by the next run."""
    log, state = os.path.join(folder, "a.log"), os.path.join(folder, "state")
    words = ("--state", state, log)
    write(log, plain(START))
    f = Follower(BINARY, *words)
    time.sleep(1.5)
    write(log, plain(["Traceback (most recent call last):", FRAME]))
    time.sleep(0.3)
    first = (f.stop(), f.incidents())[1]
    write(log, plain([OOM % 100]))
    f = Follower(BINARY, *words)
    got = f.wait_for(1)
    f.stop()
    C.claim(first == [] and tried(got) == [100] and got[0]["phase"] == "weight_load" and got[0]["is_oom"], "once, whole", first, got)


def case_nothing_is_written_when_nothing_happens(folder):
    """Positions are written when something was read, not each second."""
    log, state = os.path.join(folder, "a.log"), os.path.join(folder, "state")
    write(log, plain(START))
    f = Follower(BINARY, "--state", state, log)
    time.sleep(2.5)
    before = os.stat(os.path.join(state, "positions"))
    time.sleep(2.5)
    after = os.stat(os.path.join(state, "positions"))
    f.stop()
    C.claim((before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns), "the same file")


def case_what_is_written_is_what_has_changed(folder):
    """Of many logs one grows: its position is written, not those of all."""
    for n in range(300):
        write(os.path.join(folder, "%d.log" % n), plain(START))
    f = Follower(BINARY, "--state", os.path.join(folder, "state"), folder)
    positions = os.path.join(folder, "state", "positions")
    end = time.monotonic() + 20
    while time.monotonic() < end and (not os.path.exists(positions) or os.path.getsize(positions) < 300 * 200):
        time.sleep(0.1)
    time.sleep(1.5)
    sizes = [os.path.getsize(positions)]
    for _ in range(3):
        write(os.path.join(folder, "7.log"), plain([HARMLESS]))
        time.sleep(1.5)
        sizes.append(os.path.getsize(positions))
    with open("/proc/%d/io" % f.process.pid, encoding="ascii") as io:
        written = int(io.read().split("wchar: ")[1].split()[0])
    f.stop()
    C.claim(sizes[0] < sizes[-1] < sizes[0] + 3 * 1000 and written < sizes[-1] + 10000, "a line or two each time", sizes, written)


def case_an_id_does_not_hang_on_our_clock(folder):
    """Times without a year, and a clock that is days behind or a restart between: the same id."""
    log, state = os.path.join(folder, "a.log"), os.path.join(folder, "state")
    at = time.gmtime(time.time() - 3600)
    begin = [line.replace("01-01 00:00:00", time.strftime("%m-%d %H:%M:%S", at)) for line in START]
    write(log, plain(begin + failure(100)))
    f = Follower(BINARY, log)
    first = f.wait_for(1)
    f.stop()
    library = next((path for path in glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)
    if library:
        f = Follower(BINARY, log, env=dict(os.environ, LD_PRELOAD=library, FAKETIME="-3d", FAKETIME_DONT_FAKE_MONOTONIC="1"))
        behind = f.wait_for(1)
        f.stop()
        C.claim([i["id"] for i in behind] == [i["id"] for i in first] and behind[0]["at"] != first[0]["at"], "under another clock", behind, first)
    else:
        print("     not installed: libfaketime; another clock was not tried")
    write(log, plain(begin), "w")
    f = Follower(BINARY, "--state", state, log)
    time.sleep(2.5)
    f.stop(signal.SIGKILL)
    write(log, plain(failure(100)))
    f = Follower(BINARY, "--state", state, log)
    got = f.wait_for(1)
    f.stop()
    C.claim([(i["id"], i["at"]) for i in got] == [(i["id"], i["at"]) for i in first], "after a restart behind the last line with a time", got, first)


def case_incidents_are_on_the_disk_before_positions(folder):
    """A power cut between the two repeats an incident, and loses none."""
    if not shutil.which("strace"):
        print("     not installed: strace; what is written first was not looked at")
        return
    log, out, trace = (os.path.join(folder, name) for name in ("a.log", "out.ndjson", "trace"))
    write(log, plain(START + failure(100)))
    subprocess.run(["strace", "-e", "trace=openat,write,fdatasync,renameat", "-o", trace, BINARY, "explain", "--follow", "--idle", "2", "--state",
                    os.path.join(folder, "state"), "--output", out, log], stdout=subprocess.DEVNULL, check=False)
    with open(trace, encoding="utf-8", errors="replace") as lines:
        calls = lines.read().splitlines()
    fd = next(call.rsplit("= ", 1)[1] for call in calls if "out.ndjson" in call and "openat" in call)
    written = next(i for i, call in enumerate(calls) if call.startswith("write(%s, " % fd))
    after = [call.split("(")[0] + call[len(call.split("(")[0]):][:3] for call in calls[written:] if call.startswith(("fdatasync", "renameat"))]
    C.claim(after and after[0] == "fdatasync(%s)" % fd, "the incident first", after)


def case_wrapped_text_at_its_end(folder):
    """A failure that a terminal has wrapped is told whole, also when nothing follows it."""
    log = os.path.join(folder, "a.log")
    lines = START + failure(100)
    write(log, plain(sum(([line[i:i + 80] for i in range(0, len(line), 80)] for line in lines), [])))
    f = Follower(BINARY, log)
    got = f.wait_for(1)
    f.stop()
    C.claim(tried(got) == [100] and got[0]["is_oom"], "whole", got)


def case_state_is_one_mans(folder):
    """Two followers cannot share their positions."""
    log, state = os.path.join(folder, "a.log"), os.path.join(folder, "state")
    write(log, plain(START))
    f = Follower(BINARY, "--state", state, log)
    time.sleep(0.5)
    second = subprocess.run([BINARY, "explain", "--follow", "--state", state, log], capture_output=True, text=True, check=False)
    f.stop()
    C.claim(second.returncode == 3 and "another process" in second.stderr, "refused", second)


def case_damaged_state(folder):
    """Positions that were damaged cost repetition, not the run."""
    log, state = os.path.join(folder, "a.log"), os.path.join(folder, "state")
    os.makedirs(state)
    write(log, plain(START + failure(100)))
    for text in ("\0\0\0", '{"path": 5}\n{"path": "%s", "inode": "zz", "byte": -1}\nnonsense\n{"path"' % log,
                 json.dumps({"path": log, "device": "1", "inode": "1", "print": "1", "history": "1", "byte": 1 << 60, "lines": 3, "told": True, "time_ns": 1}) + "\n"):
        write(os.path.join(state, "positions"), text, "w")
        f = Follower(BINARY, "--state", state, log)
        got = f.wait_for(1)
        f.stop()
        C.claim(tried(got) == [100], "read from the start", text[:60], got, f.errors())


def case_inode_used_again(folder):
    """Another file with the inode of the old one: not taken for it."""
    log, state = os.path.join(folder, "a.log"), os.path.join(folder, "state")
    for number, mib in enumerate((100, 200)):
        write(log, plain(["this is run %d" % number] + START + failure(mib)), "w")  # the same inode, at the same length
        f = Follower(BINARY, "--state", state, log)
        got = f.wait_for(1)
        f.stop(signal.SIGKILL)
        C.claim(tried(got) == [mib], "run %d" % number, got)


def case_journal(folder):
    """journalctl -f -o json, and -o short, through a pipe."""
    del folder
    as_json = "".join(json.dumps({"__REALTIME_TIMESTAMP": "1767323045678901", "MESSAGE": line, "_SYSTEMD_UNIT": "vllm.service"}) + "\n"
                      for line in START + failure(100))
    short = "".join("Jan 02 03:04:05 node7 vllm[4711]: %s\n" % line for line in START + failure(100))
    for name, text in (("json", as_json), ("short", short)):
        f = Follower(BINARY, "-", stdin=subprocess.PIPE)
        f.process.stdin.write(text.encode())
        f.process.stdin.flush()
        got = f.wait_for(1)
        C.claim(tried(got) == [100], "%s: while it goes on" % name, got)
        C.claim(got and got[0]["engine"]["version"] == "0.19.1" and got[0]["phase"] == "weight_load", "%s: what it says" % name, got)
        C.claim(got and got[0]["at"] and got[0]["at"].endswith("-01-02T03:04:05.678Z" if name == "json" else "-01-02T03:04:05.000Z"), "%s: time" % name, got[0]["at"])
        f.process.stdin.write((plain(failure(200)) if name == "short" else json.dumps({"MESSAGE": "\n".join(failure(200))}) + "\n").encode())
        f.process.stdin.close()
        C.claim(f.process.wait(5) == 1 and tried(f.incidents()) == [100, 200], "%s: to its end" % name, f.incidents())


def main():
    wanted = sys.argv[2:]
    return C.run([case for name, case in sorted(globals().items()) if name.startswith("case_") and (not wanted or name[5:] in wanted)], "follow")


if __name__ == "__main__":
    sys.exit(main())
