#!/usr/bin/env python3
"""`doctor --canary` with a follower and its file, with one that sends to a receiver of OpenTelemetry, and with its positions. canary.py BINARY"""
import os
import signal
import subprocess
import sys
import tempfile
import threading

from following import Follower
from otlp import Receiver

BINARY = os.path.abspath(sys.argv[1])


def canary(log, *words, **more):
    done = subprocess.run([BINARY, "doctor", "--canary", log, *words], capture_output=True, text=True, check=False, timeout=200, **more)
    return done.returncode, done.stdout


def files_below(folder):
    return {os.path.join(at, name): os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names}


def it_arrives_in_the_file_also_the_second_time():
    with tempfile.TemporaryDirectory() as folder:
        logs, out = os.path.join(folder, "logs"), os.path.join(folder, "incidents.ndjson")
        os.makedirs(logs)
        f = Follower(BINARY, "--state", os.path.join(folder, "state"), "--output", out, logs)
        for _ in range(2):
            code, said = canary(os.path.join(logs, "canary.log"), "--timeout", "30", "--sink", out)
            assert code == 0 and said.startswith("the canary arrived after ") and said.count("\n") == 1, (code, said, f.errors())
        f.stop()
        assert len(open(out, encoding="utf-8").read().splitlines()) == 2


def silence_is_told_from_health():
    """Nobody follows; a follower that is stopped; a folder that is not there; a link in the log's place: nothing else is touched."""
    with tempfile.TemporaryDirectory() as folder:
        log, out, other = (os.path.join(folder, name) for name in ("canary.log", "incidents.ndjson", "other"))
        with open(other, "w", encoding="utf-8") as file:
            file.write("mine\n")
        code, said = canary(log, "--timeout", "2", "--sink", out)
        assert (code, said) == (1, "the canary did not arrive within 2 s\n"), said
        f = Follower(BINARY, "--output", out, log)
        f.process.send_signal(signal.SIGSTOP)
        assert canary(log, "--timeout", "2", "--sink", out)[0] == 1
        f.process.send_signal(signal.SIGCONT)
        f.stop()
        assert canary(os.path.join(folder, "no", "canary.log"), "--timeout", "2", "--sink", out)[0] == 3
        os.remove(log)
        os.symlink(other, log)
        before = files_below(folder)
        assert canary(log, "--timeout", "2", "--sink", out)[0] == 3 and files_below(folder) == before
        assert canary(log + "2", "--sink", "-", stdin=subprocess.DEVNULL) == (3, "standard input ended before the canary arrived\n")
        assert canary(log + "2", "--timeout", "2", "--sink", folder)[0] == 3 and canary(log + "2", "--timeout", "1", "--state", folder)[0] == 1
        for words in ((), ("--sink", out, "--state", folder), ("--sink", out, "--json"), ("--sink", out, "--timeout", "0")):
            assert canary(log + "2", *words)[0] == 2, words


def a_sink_that_is_moved_away_is_followed():
    """logrotate moves the file of incidents; the canary comes in the new one."""
    with tempfile.TemporaryDirectory() as folder:
        log, out = os.path.join(folder, "canary.log"), os.path.join(folder, "incidents.ndjson")
        with open(out, "w", encoding="utf-8") as file:
            file.write("{}\n" * 1000)
        threading.Timer(0.7, os.rename, (out, out + ".1")).start()
        f = Follower(BINARY, "--output", out, log)
        code, said = canary(log, "--timeout", "30", "--sink", out, "--lang", "zh")
        f.stop()
        assert code == 0 and "秒" in said, (code, said, f.errors())


def it_arrives_at_a_receiver():
    """Positions move when the receiver has answered; and what it has can be asked for again and again."""
    with tempfile.TemporaryDirectory() as folder:
        log, store, state = (os.path.join(folder, name) for name in ("canary.log", "store", "state"))
        receiver, over = Receiver(faults=("503", None, None)), threading.Event()

        def keep():
            while not over.wait(0.2):
                with open(store + ".new", "w", encoding="utf-8") as out:
                    out.write("\n".join(record["body"]["stringValue"] for _, _, record in list(receiver.got)))
                os.replace(store + ".new", store)

        threading.Thread(target=keep, daemon=True).start()
        f = Follower(BINARY, "--state", state, "--otlp", receiver.url, log)
        code, said = canary(log, "--timeout", "40", "--state", state)
        assert code == 0 and len(receiver.got) == 1, (code, said, len(receiver.got), f.errors())
        with subprocess.Popen(["sh", "-c", "while cat %s; do sleep 0.3; done" % store], stdout=subprocess.PIPE) as query:
            code, said = canary(log, "--timeout", "40", "--sink", "-", stdin=query.stdout)
            query.kill()
        over.set()
        f.stop()
        assert code == 0, (code, said, f.errors())


def a_receiver_that_refuses_is_no_arrival():
    with tempfile.TemporaryDirectory() as folder:
        log, state = os.path.join(folder, "canary.log"), os.path.join(folder, "state")
        f = Follower(BINARY, "--state", state, "--otlp", "http://127.0.0.1:9", log)
        code, said = canary(log, "--timeout", "4", "--state", state)
        f.process.kill()
        f.process.wait()
        assert code == 1, (code, said)


if __name__ == "__main__":
    for test in (it_arrives_in_the_file_also_the_second_time, silence_is_told_from_health, a_sink_that_is_moved_away_is_followed,
                 it_arrives_at_a_receiver, a_receiver_that_refuses_is_no_arrival):
        test()
        print("ok  ", test.__name__)
