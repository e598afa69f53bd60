#!/usr/bin/env python3
"""`explain --stream`: lines of many logs that a collector has read. stream.py BINARY

The same incidents as `explain --follow` would tell of the same lines; nothing lost and nothing under two ids when either side is killed and what
was not acknowledged is sent again; records that are none, long ones and many streams. Standard library only."""
import json
import os
import random
import resource
import subprocess
import sys
import tempfile

from following import FRAME, HARMLESS, OOM, START, cri, failure, tried

BINARY = os.path.abspath(sys.argv[1])
TIME = "2026-01-02T03:04:%02d.%03dZ"


def record(stream, line, cursor=None, **more):
    return dict({"stream": stream, "line": line}, **(more if cursor is None else dict(more, cursor=cursor)))


def text_of(records):
    return "".join(json.dumps(one) + "\n" for one in records).encode()


def told(out):
    """(incidents, {stream: cursor}) of what was written whole."""
    incidents, acknowledged = [], {}
    for line in out.decode().split("\n")[:-1]:
        one = json.loads(line)
        if "acknowledged" in one:
            acknowledged[one["acknowledged"]["stream"]] = one["acknowledged"]["cursor"]
        else:
            incidents.append(one)
    return incidents, acknowledged


def run(text, *words, limit=None):
    words = words if "--count" in words else ("--each", *words)
    return subprocess.run([BINARY, "explain", "--stream", *(word for word in words if word != "--count")], input=text, capture_output=True, check=False, timeout=300, preexec_fn=limit)


def an_incident_is_told_with_where_it_begins_and_its_labels():
    lines = START + failure(600) + [HARMLESS]
    done = run(text_of(record("a", line, n, pod="chat-0", labels={"team": "x", "n": 3}) for n, line in enumerate(lines)))
    incidents, acknowledged = told(done.stdout)
    assert done.returncode == 1 and len(incidents) == 1, done
    source = incidents[0]["source"]
    assert tried(incidents) == [600] and source["cursor"] == len(START), source
    assert source["path"] == "a" and source["pod"] == "chat-0" and source["labels"] == {"pod": "chat-0", "team": "x", "n": "3"}, source
    assert acknowledged == {"a": len(START) - 1}, "the failure may go on: %s" % acknowledged


def a_wrapped_failure_is_told_as_follow_tells_it():
    """Lines that a terminal has cut, one a record: they are put together, where their reports have them as one."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "evidence", "reports", "load-dense-workers-2.log")
    with open(path, encoding="utf-8") as log:
        lines = log.read().split("\n")
    incidents, _ = told(run(text_of(record("a", line, n) for n, line in enumerate(lines))).stdout)
    follow = subprocess.run([BINARY, "explain", "--follow", "--each", "--json", "--idle", "0", path], capture_output=True, text=True, check=False)
    others = [json.loads(line) for line in follow.stdout.splitlines()]
    assert others and [one["evidence"] for one in incidents] == [one["evidence"] for one in others], (incidents, others)


def records_with_escapes_are_read_as_json_does():
    """What is read without a tree, and what is left to the other reader: the same lines, cursors and refusals."""
    odd = ['{"stream": "a", "line": "x \\u001b[31m%s \\u00e9\\/\\ud83d\\ude00", "cursor": "c\\u0031"}' % START[0], '{"cursor": 7, "line": "%s", "stream": "a"}' % START[1],
           '{"stream": "a", "line": "%s", "cursor": null, "labels": {"x": [1, {"y": "z"}]}}' % START[2], '{"stream": "a", "line": "\\ud800", "cursor": 8}',
           '{"stream": "a", "line": "a\tb", "cursor": 9}', '{"stream": "a", "line": "x", "line": "%s", "cursor": 10}' % failure(600)[0].replace('"', '\\"'),
           '{"str\\u0065am": "a", "line": "%s", "cursor": {"b": 1, "a": 2}}' % (OOM % 600), '{"stream": "a", "line": "x", "cursor": 01}', '{"stream": "a", "line": "x", "cursor": 11} x',
           '{"stream": "a", "line": 5, "cursor": 12}', '{"stream": "a", "line": "%s", "cursor": 13, "time": 1767323045.5}' % HARMLESS.replace('"', '\\"')]
    done = run("".join(line + "\n" for line in odd).encode())
    incidents, acknowledged = told(done.stdout)
    assert tried(incidents) == [600] and incidents[0]["source"]["cursor"] == 10, done
    assert acknowledged == {"a": 7}, acknowledged


def interleaved_streams_are_as_if_alone():
    rng, records, alone = random.Random(1), [], []
    for at in range(40):
        lines = START + failure(100 + at) + [HARMLESS] if at % 3 else START + [HARMLESS] * 5
        alone.append([record("s%d" % at, line, "%d:%d" % (at, n)) for n, line in enumerate(lines)])
    left = [list(one) for one in alone]
    while any(left):
        one = rng.choice([one for one in left if one])
        records.append(one.pop(0))
    together = {one["id"]: tried([one])[0] for one in told(run(text_of(records)).stdout)[0]}
    single = {one["id"]: tried([one])[0] for lines in alone for one in told(run(text_of(lines)).stdout)[0]}
    assert together == single and len(single) == 26, (together, single)


def a_time_beside_the_line_is_its_time():
    for time in ("2026-01-02T03:04:05.678Z", 1767323045.678, 1767323045678, 1767323045678000000, "1767323045678000000"):
        lines = ["part"] + failure(600)
        incident, = told(run(text_of(record("a", line, time=time) for line in lines)).stdout)[0]
        assert incident["at"] == "2026-01-02T03:04:05.678Z", (time, incident["at"])
    raw = cri(START + failure(600)).splitlines()
    incident, = told(run(text_of(record("a", line, time="2020-01-01T00:00:00Z") for line in raw)).stdout)[0]
    assert incident["at"] == "2026-01-02T03:04:05.678Z" and tried([incident]) == [600], incident["at"]


def several_lines_may_come_as_one():
    incident, = told(run(text_of([record("a", "\n".join(START + failure(600)), 7)])).stdout)[0]
    assert tried([incident]) == [600] and incident["source"]["cursor"] == 7, incident["source"]


def nothing_open_is_acknowledged():
    records = [record("a", line, n) for n, line in enumerate(START + [HARMLESS, FRAME, OOM % 600])]
    with subprocess.Popen([BINARY, "explain", "--stream"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(text_of(records))
        process.stdin.flush()
        lines = [json.loads(process.stdout.readline())]
        while "acknowledged" in lines[-1]:
            lines.append(json.loads(process.stdout.readline()))
        assert all(one["acknowledged"]["cursor"] <= len(START) for one in lines[:-1]), lines[:-1]
        assert tried([lines[-1]]) == [600]
        assert json.loads(process.stdout.readline())["acknowledged"]["cursor"] == len(records) - 1
        process.kill()


def whoever_dies_nothing_is_lost_and_nothing_has_two_ids():
    """The sender begins again behind what was acknowledged; every time the reader gets a piece further, and is killed."""
    rng, size = random.Random(2), 0
    streams = {}
    for at in range(12):
        lines = []
        for _ in range(rng.randrange(2, 5)):
            size += 1
            lines += START + [HARMLESS] * rng.randrange(3) + failure(size) + [HARMLESS] * rng.randrange(1, 4)
        streams["s%02d" % at] = lines
    sent, ids, rounds = dict.fromkeys(streams, 0), {}, 0
    with tempfile.TemporaryDirectory() as folder:
        while any(sent[name] < len(lines) for name, lines in streams.items()):
            rounds += 1
            records, patience = [], rng.choice((0.05, 0.3, 1.3))
            for name, lines in streams.items():
                until = min(len(lines), sent[name] + rng.randrange(1, 9) + rounds // 20)
                if rounds % 3 and lines[until - 1] == FRAME:
                    until += 1  # a living sender does not stop within a traceback; how long the reader lives is up to the machine
                records += [record(name, lines[n], n) for n in range(sent[name], until)]
            text = text_of(records)
            with subprocess.Popen([BINARY, "explain", "--stream", "--each", "--state", os.path.join(folder, "state")], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE) as process:
                process.stdin.write(text if rounds % 3 else text[:len(text) - rng.choice((0, 0, 5))])
                process.stdin.flush()
                if rounds % 3 == 0:
                    process.stdin.close()  # the sender dies; else the reader does
                else:
                    try:
                        process.wait(patience)
                    except subprocess.TimeoutExpired:
                        process.kill()
                out = process.stdout.read()
            incidents, acknowledged = told(out)
            for one in incidents:
                ids.setdefault(tried([one])[0], set()).add(one["id"])  # None: its last line was not sent yet
            for name, cursor in acknowledged.items():
                assert cursor >= sent[name] - 1, (name, cursor, sent[name])
                sent[name] = cursor + 1
            assert rounds < 400, sent
    begun = ids.pop(None, set())
    lost = set(range(1, size + 1)) - set(ids)
    assert not lost, "lost: %s" % sorted(lost)
    assert all(len(of) == 1 for of in ids.values()), ids
    assert begun <= set().union(*ids.values()), "half of an incident has an id of its own"


def what_is_no_record_is_passed_over():
    strange = [b"no JSON", b"[1]", b"{}", b'{"stream": "a"}', b'{"line": "x"}', b'{"stream": 3, "line": "x"}', b'{"stream": "", "line": "x"}', b"\xff\xfe",
               b'{"stream": "' + b"n" * 5000 + b'", "line": "x"}', b"[" * 100000, b'{"stream": "a", "line": "' + b"x" * (2 << 20) + b'"}', b"", b"\r"]
    good = text_of(record("a", line, {"file": [1, n]}) for n, line in enumerate(START + failure(600)))
    many = text_of([record("a", "x", 1, **{"label%d" % n: "v" * (n % 90 * 10) for n in range(500)})])
    done = run(b"\n".join(strange) + b"\n" + many + good + b"\n".join(strange) + b'\n{"stream": "a", "li')
    incidents, acknowledged = told(done.stdout)
    assert done.returncode == 1 and tried(incidents) == [600], done.stderr
    assert acknowledged["a"] == {"file": [1, len(START) - 1]} and len(incidents[0]["source"]["labels"]) <= 32, acknowledged
    assert done.stderr.count(b"\n") == 1, done.stderr


def secrets_of_labels_are_not_passed_on():
    secret = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
    done = run(text_of(record("a", line, token=secret, note="key " + secret) for line in START + failure(600)))
    assert told(done.stdout)[0] and secret.encode() not in done.stdout, done.stdout[:2000]


def memory_is_bounded_by_the_streams_that_are_kept():
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))

    records = [record("s%d" % at, line, at) for at in range(6000) for line in START[:1] + failure(at % 700 + 1)]
    done = run(text_of(records), "--max-files", "50", limit=limit)
    incidents, acknowledged = told(done.stdout)
    assert done.returncode == 1 and len(incidents) == 6000 and len(acknowledged) == 6000, (len(incidents), len(acknowledged), done.stderr[-500:])
    endless = [record("a", FRAME if n % 2 else "torch.OutOfMemoryError: part %d" % n, n) for n in range(60000)]
    done = run(text_of(endless), limit=limit)
    assert done.returncode == 1 and told(done.stdout)[0], (done.returncode, done.stderr[-500:])


def a_crash_loop_is_told_once_and_counted():
    records = [record(name, line, n) for name in ("a", "b") for n in range(100) for line in START + [HARMLESS] * 40 + failure(600 + n)]
    text = text_of(records)
    incidents = told(run(text, "--count").stdout)[0]
    for name in ("a", "b"):
        own = [one for one in incidents if one["source"]["path"] == name]
        full = [one for one in own if "repeats" not in one]
        assert len(full) == 1 and full[0]["evidence"] and full[0]["count"] == 1, own
        assert sum(one["count"] for one in own) == 100 and all(one.get("repeats", full[0]["id"]) == full[0]["id"] for one in own), own
        assert all(one["fingerprint"] == full[0]["fingerprint"] and not one["evidence"] and one["fixes"] == full[0]["fixes"] for one in own[1:]), own
    assert len(json.dumps(incidents)) * 10 < len(text), (len(json.dumps(incidents)), len(text))
    other = records + [record("a", line) for line in START + ["  File \"/x/vllm/v1/worker/gpu_worker.py\", line 1, in capture_model", OOM % 1]]
    prints = {one["fingerprint"] for one in told(run(text_of(other), "--count").stdout)[0]}
    assert len(prints) == 2, "another failure is told in full"


def a_stream_that_ends_is_told_at_once():
    records = [record("a", line, n) for n, line in enumerate(START + failure(600))] + [{"stream": "a", "end": True, "cursor": 99}]
    with subprocess.Popen([BINARY, "explain", "--stream"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(text_of(records))
        process.stdin.flush()
        lines = [json.loads(process.stdout.readline())]
        while "acknowledged" in lines[-1] and lines[-1]["acknowledged"]["cursor"] != 99:
            lines.append(json.loads(process.stdout.readline()))
        process.kill()
    assert any("phase" in one for one in lines), lines


TESTS = [a_wrapped_failure_is_told_as_follow_tells_it, records_with_escapes_are_read_as_json_does, an_incident_is_told_with_where_it_begins_and_its_labels, interleaved_streams_are_as_if_alone, a_time_beside_the_line_is_its_time,
         several_lines_may_come_as_one, nothing_open_is_acknowledged, whoever_dies_nothing_is_lost_and_nothing_has_two_ids,
         what_is_no_record_is_passed_over, secrets_of_labels_are_not_passed_on, memory_is_bounded_by_the_streams_that_are_kept,
         a_crash_loop_is_told_once_and_counted, a_stream_that_ends_is_told_at_once]

if __name__ == "__main__":
    failed = 0
    for test in TESTS:
        try:
            test()
            print("ok   %s" % test.__name__)
        except AssertionError as error:
            failed += 1
            print("FAIL %s: %s" % (test.__name__, str(error)[:1500]))
    sys.exit(1 if failed else 0)
