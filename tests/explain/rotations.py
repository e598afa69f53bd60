#!/usr/bin/env python3
"""Many logs, each rotated in a way of its own, away for up to three seconds between two moves, while the follower is killed over and over: every
incident is told, and none under two ids. usage: rotations.py BINARY [--files N] [--seconds S] [--kills N] [--seed N]

An incident is known by the size of its request, which no other has. Copying and cutting in place (copytruncate) loses what is written between the
two, whoever reads: here nothing is written then. Exit 0 when nothing is lost."""
import argparse
import gzip
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

from following import HARMLESS, START, Follower, failure, plain, tried


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


WAYS = dict(numbered=numbered, counted_on=counted_on, dated=dated, packed=packed, copied_and_cut=copied_and_cut)


class Log:
    def __init__(self, folder, at, rng):
        name = sorted(WAYS)[at % len(WAYS)]
        self.path = os.path.join(folder, "%s-%03d.log" % (name, at))
        self.way, self.rng, self.rotations, self.lines = WAYS[name], rng, 0, 0
        self.file, self.back_at = None, 0.0

    def put(self, lines):
        if not self.file:
            self.file = open(self.path, "a", encoding="utf-8")
        if not self.lines or self.rotations and self.file.tell() == 0:
            lines = ["part %d of %s" % (self.rotations, self.path)] + lines
        self.lines += len(lines)
        self.file.write(plain(["%d %s" % (self.lines, line) if line == HARMLESS else line for line in lines]))
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
        self.logs = [Log(folder, i, rng) for i in range(args.files)]

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="oomsight-rotations-")
    logs, state = os.path.join(folder, "logs"), os.path.join(folder, "state")
    os.makedirs(logs)
    writer = Writer(logs, args)
    rng = random.Random(args.seed + 1)
    followers = [Follower(os.path.abspath(args.binary), "--state", state, logs)]
    writer.start()
    for _ in range(args.kills):
        time.sleep(args.seconds / args.kills * rng.uniform(.5, 1))
        followers[-1].stop(signal.SIGKILL)
        time.sleep(rng.uniform(0, 2))
        followers.append(Follower(os.path.abspath(args.binary), "--state", state, logs))
    writer.join()
    wanted, end, told = {mib for mib, _ in writer.hidden}, time.monotonic() + 20, []
    while time.monotonic() < end and not wanted <= set(tried(told)):
        time.sleep(0.5)
        told = [one for follower in followers for one in follower.incidents()]
    time.sleep(1)
    followers[-1].stop()
    told = [one for follower in followers for one in follower.incidents()]
    ids = {}
    for one in told:
        ids.setdefault(tried([one])[0], set()).add(one["id"])
    lost = [(mib, os.path.basename(path)) for mib, path in writer.hidden if mib not in ids]
    twice = [mib for mib, names in ids.items() if len(names) > 1]
    rotations = sum(log.rotations for log in writer.logs)
    print("rotations: %d files, %d rotations, %d kills, %d hidden, %d lost, %d under two ids (seed %d)" %
          (args.files, rotations, args.kills, len(wanted), len(lost), len(twice), args.seed))
    for row in lost[:20] + [(mib, sorted(ids[mib])) for mib in twice[:5]]:
        print("    %s" % (row,))
    if lost or twice:
        print("    kept in %s" % folder)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
