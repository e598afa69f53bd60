#!/usr/bin/env python3
"""Many logs, each rotated in a way of its own, away for up to three seconds between two moves, while the reader, the sink or both are killed over and
over: every incident is told, and none under two ids. usage: rotations.py BINARY [--through follow|stream] [--sink file|otlp] [--files N] [--seconds S]
[--kills N] [--seed N]

An incident is known by the size of its request, which no other has. Copying and cutting in place (copytruncate) loses what is written between the
two, whoever reads: here nothing is written then. With `stream` a collector that loses nothing gives the lines, and again those that were not
acknowledged. Exit 0 when nothing is lost."""
import argparse
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from following import HARMLESS, START, Follower, failure, plain, tried
from otlp import Receiver


def numbered(log, _number):
    """logrotate: .1 is the newest."""
    for n in range(40, 0, -1):
        if os.path.exists("%s.%d" % (log, n)):
            os.rename("%s.%d" % (log, n), "%s.%d" % (log, n + 1))
    os.rename(log, log + ".1")


def counted_on(log, number):
    os.rename(log, "%s.%d" % (log, number))


def dated(log, number):
    os.rename(log, "%s-20260102%06d" % (log, number))


def packed(log, number):
    """kubelet: all but the newest are packed."""
    moved = "%s.20260102-%06d" % (log, number)
    os.rename(log, moved)
    before = "%s.20260102-%06d" % (log, number - 1)
    if os.path.exists(before):
        with open(before, "rb") as source, gzip.open(before + ".gz", "wb", compresslevel=1) as target:
            shutil.copyfileobj(source, target)
        shutil.copystat(before, before + ".gz")
        os.remove(before)


def copied_and_cut(log, number):
    shutil.copyfile(log, "%s.%d" % (log, number))
    os.truncate(log, 0)


def own_names(log, number):
    """loguru: the time before the ending, so that what was moved away looks like a log."""
    os.rename(log, "%s.2026-01-02_03-04-05_%06d.log" % (log[:-len(".log")], number))


WAYS = dict(own_names=own_names, numbered=numbered, counted_on=counted_on, dated=dated, packed=packed, copied_and_cut=copied_and_cut)


class Log:
    def __init__(self, folder, at, rng, ways):
        name = sorted(ways)[at % len(ways)]
        self.path = os.path.join(folder, "%s-%03d.log" % (name, at))
        self.way, self.rng, self.rotations, self.lines = WAYS[name], rng, 0, 0
        self.file, self.back_at, self.all = None, 0.0, []

    def put(self, lines):
        if not self.file:
            self.file = open(self.path, "a", encoding="utf-8")
        if not self.lines or self.rotations and self.file.tell() == 0:
            lines = ["part %d of %s" % (self.rotations, self.path)] + lines
        self.lines += len(lines)
        lines = ["%d %s" % (self.lines, line) if line == HARMLESS else line for line in lines]
        self.file.write(plain(lines))
        self.all += lines
        self.file.flush()

    def rotate(self, now):
        if not self.file or self.file.tell() == 0:
            return
        self.rotations += 1
        self.way(self.path, self.rotations)
        if self.way is not copied_and_cut:
            self.file.close()
            self.file = None
            self.back_at = now + self.rng.choice((0, 0, self.rng.uniform(0, 3)))


class Writer(threading.Thread):
    def __init__(self, folder, args):
        super().__init__(daemon=True)
        rng = random.Random(args.seed)
        self.rng, self.args, self.hidden, self.next = rng, args, [], 1
        ways = set(WAYS) if args.own_names else set(WAYS) - {"own_names"}
        self.logs = [Log(folder, i, rng, ways) for i in range(args.files)]

    def run(self):
        end = time.monotonic() + self.args.seconds
        while time.monotonic() < end:
            now = time.monotonic()
            for log in self.logs:
                if now < log.back_at:
                    continue
                chance = self.rng.random()
                if chance < .02:
                    log.put(START + failure(self.next) + [HARMLESS])
                    self.hidden.append((self.next, log.path))
                    self.next += 1
                elif chance < .2:
                    log.put([HARMLESS] * self.rng.randrange(1, 5))
                if chance > .985:
                    log.rotate(now)
            time.sleep(0.05)
        for log in self.logs:
            log.put([HARMLESS])


class Files:
    """`--follow` reads the logs itself."""

    def __init__(self, args, folder, words, logs):
        self.command, self.followers = (os.path.abspath(args.binary), "--state", os.path.join(folder, "state"), *words, os.path.dirname(logs[0].path)), []

    def start(self):
        self.followers.append(Follower(*self.command))

    def stop(self, how=signal.SIGTERM):
        self.followers[-1].stop(how)

    def told(self):
        return [one for follower in self.followers for one in follower.incidents()]


class Lines:
    """`--stream` is given lines, and what it writes is read; a process begins behind what the one before has acknowledged."""

    def __init__(self, args, folder, words, logs):
        self.command = (os.path.abspath(args.binary), "explain", "--stream", "--each", "--state", os.path.join(folder, "state"), *words)
        self.folder, self.logs, self.processes, self.done = folder, logs, [], {log.path: 0 for log in logs}

    def output(self):
        """Whole lines of all processes, in their order."""
        for at in range(len(self.processes)):
            with open(os.path.join(self.folder, "out-%d" % at), encoding="utf-8") as out:
                yield from (json.loads(line) for line in out if line.endswith("\n"))

    def start(self):
        for one in self.output():
            if "acknowledged" in one:
                name, cursor = one["acknowledged"]["stream"], one["acknowledged"]["cursor"]
                self.done[name] = max(self.done[name], cursor + 1)
        with open(os.path.join(self.folder, "out-%d" % len(self.processes)), "wb") as out:
            self.processes.append(subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL))
        threading.Thread(target=self.feed, args=(self.processes[-1], dict(self.done)), daemon=True).start()

    def feed(self, process, sent):
        try:
            while process.poll() is None:
                for log in self.logs:
                    lines = log.all[sent[log.path]:sent[log.path] + 1000]
                    process.stdin.write("".join(json.dumps({"stream": log.path, "line": line, "cursor": sent[log.path] + n}) + "\n" for n, line in enumerate(lines)).encode())
                    sent[log.path] += len(lines)
                process.stdin.flush()
                time.sleep(0.05)
        except OSError:
            pass  # it was killed

    def stop(self, how=signal.SIGTERM):
        self.processes[-1].send_signal(how)
        self.processes[-1].wait()

    def told(self):
        return [one for one in self.output() if "acknowledged" not in one]


class Otlp:
    """A receiver that dies and comes again at the same port: what it has answered it has kept."""

    def __init__(self):
        self.receivers = [Receiver()]

    def words(self):
        return "--otlp", self.receivers[0].url

    def kill(self):
        self.receivers[-1].close()

    def start(self):
        self.receivers.append(Receiver(self.receivers[0].port))

    def told(self):
        return [json.loads(record["body"]["stringValue"]) for receiver in self.receivers for _, _, record in list(receiver.got)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--through", choices=("follow", "stream"), default="follow")
    parser.add_argument("--sink", choices=("file", "otlp"), default="file")
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--own-names", action="store_true", help="also loguru's names; moved after a kill that came before a position was written, what was told has another id")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="oomsight-rotations-")
    os.makedirs(os.path.join(folder, "logs"))
    writer, rng = Writer(os.path.join(folder, "logs"), args), random.Random(args.seed + 1)
    sink = Otlp() if args.sink == "otlp" else None
    reader = (Files if args.through == "follow" else Lines)(args, folder, sink.words() if sink else (), writer.logs)
    reader.start()
    writer.start()
    for kill in range(args.kills):
        time.sleep(args.seconds / args.kills * rng.uniform(.5, 1))
        whom = kill % 3 if sink else 0  # the reader, the sink, both
        if whom > 0:
            sink.kill()
        if whom != 1:
            reader.stop(signal.SIGKILL)
        time.sleep(rng.uniform(0, 2))
        if whom != 1:
            reader.start()
        if whom > 0:
            time.sleep(rng.uniform(0, 1))
            sink.start()
    writer.join()
    wanted, told, end = {mib for mib, _ in writer.hidden}, [], time.monotonic() + 40
    while time.monotonic() < end and not wanted <= set(tried(told)):
        time.sleep(0.5)
        before, told = len(told), (sink or reader).told()
        end = time.monotonic() + 40 if len(told) > before else end  # the last pause before a new try is 30 s
    time.sleep(1)
    reader.stop()
    ids = {}
    for one in (sink or reader).told():
        ids.setdefault(tried([one])[0], set()).add(one["id"])
    begun = ids.pop(None, set())  # cut by a kill, and whole in the next process
    lost = [(mib, os.path.basename(path)) for mib, path in writer.hidden if mib not in ids]
    twice = [mib for mib, names in ids.items() if len(names) > 1]
    rotations = sum(log.rotations for log in writer.logs)
    print("rotations: %s, %s: %d files, %d rotations, %d kills, %d hidden, %d lost, %d under two ids (seed %d)" %
          (args.through, args.sink, args.files, rotations, args.kills, len(wanted), len(lost), len(twice) + len(begun - set().union(*ids.values())), args.seed))
    for row in lost[:20] + [(mib, sorted(ids[mib])) for mib in twice[:5]]:
        print("    %s" % (row,))
    if lost or twice:
        print("    kept in %s" % folder)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
