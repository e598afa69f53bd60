#!/usr/bin/env python3
"""Lines of the journal into `oomsight explain --stream`, incidents out. It goes on behind the last line that was acknowledged, so that
nothing is lost whichever of the three stops. Standard library only.

    journal.py STATE_DIR INCIDENTS_FILE [words of journalctl, such as -u UNIT]

OOMSIGHT and JOURNALCTL name other programs than those of PATH."""
import collections
import json
import os
import signal
import subprocess
import sys
import threading


def records(lines, given, number_of, done, ahead):
    """A stream for each unit and container. What lies behind the journal's position and was acknowledged in its stream is left out."""
    for number, line in enumerate(lines):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        text, cursor = entry.get("MESSAGE"), entry.get("__CURSOR")
        if isinstance(text, list):  # bytes that are no UTF-8
            text = bytes(text).decode("utf-8", "replace")
        if not isinstance(text, str) or not cursor:
            continue
        stream = entry.get("CONTAINER_NAME") or entry.get("_SYSTEMD_UNIT") or entry.get("SYSLOG_IDENTIFIER") or "journal"
        if stream in ahead:
            if ahead[stream] != cursor:
                continue
            del ahead[stream]
            done.setdefault(stream, number)
            given.append((number, stream, cursor))
            continue
        number_of[cursor] = number
        given.append((number, stream, cursor))
        yield {"stream": stream, "line": text, "time": entry.get("__REALTIME_TIMESTAMP"), "cursor": cursor,
               "container": entry.get("CONTAINER_NAME"), "host": entry.get("_HOSTNAME")}


def keep(path, place):
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(place, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".new", path)


def take(out, given, number_of, done, path, target, place):
    """Incidents go to the file before their cursor is kept. Streams are acknowledged one by one, the journal as far as all of them are."""
    for line in out:
        answer = json.loads(line)
        if "acknowledged" not in answer:
            with open(target, "a", encoding="utf-8") as f:
                f.write(line)
                f.flush()
                os.fsync(f.fileno())
            continue
        stream, cursor = answer["acknowledged"]["stream"], answer["acknowledged"]["cursor"]
        done[stream] = number_of[cursor]
        place["ahead"][stream] = cursor
        while given and given[0][0] <= done.get(given[0][1], -1):
            _, stream, place["cursor"] = given.popleft()
            number_of.pop(place["cursor"], None)
            if place["ahead"].get(stream) == place["cursor"]:
                del place["ahead"][stream]
        keep(path, place)


def main():
    state, target, *words = sys.argv[1:]
    os.makedirs(state, exist_ok=True)
    path = os.path.join(state, "place")
    place = {"cursor": None, "ahead": {}}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            place = json.load(f)
    if place["cursor"]:
        words.append("--after-cursor=" + place["cursor"])
    given, number_of, done = collections.deque(), {}, {}
    with subprocess.Popen([os.environ.get("JOURNALCTL", "journalctl"), "-f", "-o", "json", "--no-tail", *words], stdout=subprocess.PIPE, text=True) as journal, \
         subprocess.Popen([os.environ.get("OOMSIGHT", "oomsight"), "explain", "--stream", "--state", os.path.join(state, "engines")],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        signal.signal(signal.SIGTERM, lambda *_: (journal.terminate(), reader.terminate()))
        threading.Thread(target=take, args=(reader.stdout, given, number_of, done, path, target, place), daemon=True).start()
        try:
            for record in records(journal.stdout, given, number_of, done, dict(place["ahead"])):
                reader.stdin.write(json.dumps(record) + "\n")
                reader.stdin.flush()
        except BrokenPipeError:
            pass  # whoever starts this starts it again
        journal.terminate()


if __name__ == "__main__":
    main()
