#!/usr/bin/env python3
"""Lines from standard input into oomsight.lines (schema.sql), through psql. Standard library only.
    load.py postgresql://pipeline@db/oomsight <incidents.ndjson        all of them; exit 1 when one could not be handed over
    load.py --omprog URI                                               for rsyslog: "NODE LINE" a message, "OK" when it is committed
Text is only ever data of a COPY, never part of a statement. Bytes that are not UTF-8 and NUL become U+FFFD."""
import os
import select
import subprocess
import sys

# JSON has no raw control characters, so two of them can stand for quote and delimiter; a row is then never read as `\.`.
COPY = r"COPY oomsight.lines (node, line) FROM STDIN (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02', NULL E'\x03')"
CONTROLS = {code: "\ufffd" for code in (0, 1, 2, 3, 10, 13)}
BATCH = 1000
IDLE_SECONDS = 1  # then the connection is given back: nodes are many, incidents are few


class Database:
    """One psql that stays connected. It prints a word after each COPY that was committed, and ends at the first error."""

    def __init__(self, uri):
        self.uri, self.psql = uri, None

    def copy(self, rows):
        if self.psql is None or self.psql.poll() is not None:
            self.psql = subprocess.Popen(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.uri], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        text = "".join(f"{node}\x02{line}\n" for node, line in rows)
        try:
            self.psql.stdin.write(f"{COPY};\n{text}\\.\n\\echo committed\n".encode())
            self.psql.stdin.flush()
            if self.psql.stdout.readline() == b"committed\n":
                return True
        except BrokenPipeError:
            pass
        self.close()
        return False

    def close(self):
        if self.psql is not None:
            self.psql.kill()
            self.psql.wait()
            self.psql = None


def messages():
    """Lines as they come; None when nothing has come for a while."""
    rest = b""
    while True:
        if not select.select([0], [], [], IDLE_SECONDS)[0]:
            yield None
            continue
        got = os.read(0, 1 << 16)
        if not got:
            break
        *whole, rest = (rest + got).split(b"\n")
        yield from whole
    if rest:
        yield rest


def clean(raw):
    return raw.rstrip(b"\n").decode(errors="replace").translate(CONTROLS)


def serve_rsyslog(database):
    """One message at a time, as omprog sends them with confirmMessages: what is not confirmed is sent again."""
    print("OK", flush=True)
    for raw in messages():
        if raw is None:
            database.close()
            continue
        node, _, line = clean(raw).partition(" ")
        print("OK" if database.copy([(node, line)]) else "the database did not take it", flush=True)


def load_all(database):
    rows = []
    for raw in sys.stdin.buffer:
        rows.append(("", clean(raw)))
        if len(rows) == BATCH:
            if not database.copy(rows):
                return 1
            rows = []
    return 0 if not rows or database.copy(rows) else 1


def main():
    words = [word for word in sys.argv[1:] if word != "--omprog"]
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    database = Database(words[0])
    return serve_rsyslog(database) if "--omprog" in sys.argv[1:] else load_all(database)


sys.exit(main())
