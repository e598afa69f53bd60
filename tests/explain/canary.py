#!/usr/bin/env python3
"""examples/fleet/canary with a follower and its file, and with one that sends to a receiver of OpenTelemetry. canary.py BINARY"""
import os
import signal
import subprocess
import sys
import tempfile
import threading

from following import Follower
from otlp import Receiver

BINARY = os.path.abspath(sys.argv[1])
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/fleet/canary/canary.py")


def canary(log, *words):
    done = subprocess.run([sys.executable, SCRIPT, log, *words], capture_output=True, text=True, check=False, timeout=200)
    return done.returncode, done.stdout


def files_below(folder):
    return {os.path.join(at, name): os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names}


def it_arrives_in_the_file_also_the_second_time():
    with tempfile.TemporaryDirectory() as folder:
        logs, out = os.path.join(folder, "logs"), os.path.join(folder, "incidents.ndjson")
        os.makedirs(logs)
        f = Follower(BINARY, "--state", os.path.join(folder, "state"), "--output", out, logs)
        for _ in range(2):
            code, said = canary(os.path.join(logs, "canary.log"), "--within", "30", "--file", out)
            assert code == 0 and said.startswith("the canary arrived after ") and said.count("\n") == 1, (code, said, f.errors())
        f.stop()
        assert len(open(out, encoding="utf-8").read().splitlines()) == 2


def silence_is_told_from_health():
    """Nobody follows; a follower that is stopped; a folder that is not there; a link in the log's place: nothing else is touched."""
    with tempfile.TemporaryDirectory() as folder:
        log, out, other = (os.path.join(folder, name) for name in ("canary.log", "incidents.ndjson", "other"))
        with open(other, "w", encoding="utf-8") as file:
            file.write("mine\n")
        code, said = canary(log, "--within", "2", "--file", out)
        assert (code, said) == (1, "the canary was written into %s and did not arrive within 2 s\n" % log), said
        f = Follower(BINARY, "--output", out, log)
        f.process.send_signal(signal.SIGSTOP)
        assert canary(log, "--within", "2", "--file", out)[0] == 1
        f.process.send_signal(signal.SIGCONT)
        f.stop()
        assert canary(os.path.join(folder, "no", "canary.log"), "--within", "2", "--file", out)[0] == 3
        os.remove(log)
        os.symlink(other, log)
        before = files_below(folder)
        assert canary(log, "--within", "2", "--file", out)[0] == 3 and files_below(folder) == before
        assert canary(log + "2", "--within", "2", "--command", "/no/such/program")[0] == 3


def it_arrives_at_a_receiver():
    """The command asks the receiver, which has taken nothing that it has not answered."""
    with tempfile.TemporaryDirectory() as folder:
        log, store = os.path.join(folder, "canary.log"), os.path.join(folder, "store")
        receiver, over = Receiver(faults=("503", None, None)), threading.Event()

        def keep():
            while not over.wait(0.2):
                with open(store + ".new", "w", encoding="utf-8") as out:
                    out.write("\n".join(record["body"]["stringValue"] for _, _, record in list(receiver.got)))
                os.replace(store + ".new", store)

        threading.Thread(target=keep, daemon=True).start()
        f = Follower(BINARY, "--otlp", receiver.url, log)
        code, said = canary(log, "--within", "40", "--command", "cat", store)
        over.set()
        f.stop()
        assert code == 0, (code, said, f.errors())


if __name__ == "__main__":
    for test in (it_arrives_in_the_file_also_the_second_time, silence_is_told_from_health, it_arrives_at_a_receiver):
        test()
        print("ok  ", test.__name__)
