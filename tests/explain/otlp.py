#!/usr/bin/env python3
"""`--otlp`: incidents as OpenTelemetry logs to a receiver that refuses, hangs, answers nonsense and dies. otlp.py BINARY

Every incident arrives, with one id, and is acknowledged only then; what arrives is decoded by the package opentelemetry-proto where this Python has
it (tools/fleet_venv.sh), else by its JSON alone, which is said. Otherwise standard library only."""
import http.server
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from following import HARMLESS, START, failure, plain, write

try:
    from google.protobuf import json_format
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
except ImportError:
    json_format = logs_service_pb2 = None

BINARY = os.path.abspath(sys.argv[1])
FAULTS = ("429", "503", "502", "hang", "close", "nonsense", "torn", "after", "endless", "redirect")


def records_of(body):
    """[(resource, record)] with attributes as mappings."""
    if json_format:
        message = json_format.Parse(body, logs_service_pb2.ExportLogsServiceRequest(), ignore_unknown_fields=False)
        body = json_format.MessageToJson(message)
    found = []
    for of in json.loads(body)["resourceLogs"]:
        resource = {a["key"]: next(iter(a["value"].values())) for a in of["resource"]["attributes"]}
        for record in of["scopeLogs"][0]["logRecords"]:
            record["attributes"] = {a["key"]: next(iter(a["value"].values())) for a in record["attributes"]}
            found.append((resource, record))
    return found


class Receiver:
    """Takes requests on a port; `faults` is drawn from for each. What it has answered with 200 is in `got`."""

    def __init__(self, port=0, faults=(), seed=1, refuse=None):
        self.got, self.asked, self.rng, self.faults, self.refuse = [], 0, random.Random(seed), faults, refuse
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                outer.asked += 1
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/json", self.headers
                outer.answer(self, self.path, body)

            def log_message(self, *_):
                pass

        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def answer(self, request, path, body):
        fault = self.rng.choice(self.faults) if self.faults else None
        if fault == "hang":
            time.sleep(11)
        elif fault == "close":
            pass
        elif fault == "nonsense":
            request.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n" + bytes(range(256)))
        elif fault == "torn":
            request.wfile.write(b"HTTP/1.1 20")
        elif fault == "endless":
            try:
                request.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-Header: long\r\n" * 20000)
            except OSError:
                pass
        elif fault == "redirect":
            request.wfile.write(b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
        elif fault in ("429", "502", "503"):
            request.wfile.write(("HTTP/1.1 %s No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n" % fault).encode())
        elif self.refuse and self.refuse(body):
            request.wfile.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        else:
            if fault != "after":
                self.got += [(path, *one) for one in records_of(body)]
                request.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
            else:  # it has them, and dies before it says so: they come once more
                self.got += [(path, *one) for one in records_of(body)]
        request.close_connection = True

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def ids(self):
        """{size of the request in MiB: ids}"""
        found = {}
        for _, _, record in self.got:
            one = json.loads(record["body"]["stringValue"])
            found.setdefault(one["numbers"]["tried_bytes"] >> 20, set()).add(one["id"])
        return found


def text_of(count, stream="a"):
    lines = sum((START + [HARMLESS] + failure(n + 1) for n in range(count)), []) + START
    return "".join(json.dumps({"stream": stream, "line": line, "cursor": n}) + "\n" for n, line in enumerate(lines)).encode()


def stream(url, text, *words, timeout=120):
    return subprocess.run([BINARY, "explain", "--stream", "--each", "--otlp", url, *words], input=text, capture_output=True, check=False, timeout=timeout)


def a_record_has_what_people_filter_by():
    r = Receiver()
    lines = START + failure(600)
    records = [{"stream": "s", "line": line, "time": "2026-01-02T03:04:05.678Z", "cursor": n, "namespace": "prod", "pod": "chat-0", "container": "vllm"}
               for n, line in enumerate(lines)]
    done = stream(r.url, "".join(json.dumps(one) + "\n" for one in records).encode())
    r.close()
    (path, resource, record), = r.got
    one = json.loads(record["body"]["stringValue"])
    assert path == "/v1/logs" and one["schema"].startswith("oomsight.incident/"), path
    assert resource["service.name"] == "oomsight" and resource["host.name"] == socket.gethostname(), resource
    assert (resource["k8s.namespace.name"], resource["k8s.pod.name"], resource["k8s.container.name"]) == ("prod", "chat-0", "vllm"), resource
    a = record["attributes"]
    assert a["log.record.uid"] == one["id"] and a["oomsight.phase"] == "weight_load" and a["oomsight.engine.version"] == "0.19.1", a
    assert a["exception.type"] == "torch.OutOfMemoryError" and a["exception.message"].startswith("CUDA out of memory. Tried"), a
    assert int(record["timeUnixNano"]) == 1767323045678000000 and record["severityText"] == "ERROR" and record["eventName"] == "oomsight.incident", record
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1 and all("acknowledged" in one for one in said), done.stdout[:300]


def acknowledged_is_what_the_receiver_has():
    """Nothing behind the first line of an incident is acknowledged while nobody answers."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    with subprocess.Popen([BINARY, "explain", "--stream", "--each", "--otlp", "http://127.0.0.1:%d" % port], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        process.stdin.write(text_of(3))
        process.stdin.flush()
        time.sleep(3)
        assert process.poll() is None
        os.set_blocking(process.stdout.fileno(), False)
        before = process.stdout.read() or b""
        last = max((json.loads(line)["acknowledged"]["cursor"] for line in before.splitlines()), default=-1)
        assert last < len(START) + 1, before
        r = Receiver(port)
        end = time.monotonic() + 60
        while len(r.ids()) < 3 and time.monotonic() < end:
            time.sleep(0.05)
        process.stdin.close()
        process.wait(30)
        error = process.stderr.read().decode()
        r.close()
    assert sorted(r.ids()) == [1, 2, 3] and error.count("trying again") == 1 and "sent again" in error, (r.ids(), error)


def whatever_the_receiver_does_nothing_is_lost():
    r = Receiver(faults=FAULTS[:3] + FAULTS[4:] + (None,) * 3, seed=3)
    folder = tempfile.mkdtemp(prefix="oomsight-otlp-")
    log, state, count = os.path.join(folder, "a.log"), os.path.join(folder, "state"), 24
    rng, kills = random.Random(4), 0
    follower = None
    for n in range(count):
        write(log, plain(START + failure(n + 1) + [HARMLESS]))
        if follower is None or rng.random() < 0.4:
            if follower:
                follower.kill()
                follower.wait()
                kills += 1
            follower = subprocess.Popen([BINARY, "explain", "--follow", "--each", "--otlp", r.url, "--state", state, folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if n == count // 2:  # the receiver is away for a while
            port = r.port
            r.close()
            time.sleep(1)
            again = Receiver(port, faults=FAULTS[:3] + FAULTS[4:] + (None,) * 3, seed=5)
            again.got, r = r.got, again
        time.sleep(rng.uniform(0, 0.5))
    end = time.monotonic() + 240
    r.faults = ("429", "after", None)
    while len(r.ids()) < count and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(1)
    follower.send_signal(signal.SIGTERM)
    out = follower.communicate(timeout=30)[0]
    r.close()
    ids = r.ids()
    assert sorted(ids) == list(range(1, count + 1)), "lost: %s" % sorted(set(range(1, count + 1)) - set(ids))
    assert all(len(of) == 1 for of in ids.values()), ids
    assert out == b"" and kills > 3, (out[:200], kills)


def a_receiver_that_hangs_is_given_up_after_ten_seconds():
    r = Receiver(faults=("hang",))
    start = time.monotonic()
    threading.Timer(1, lambda: setattr(r, "faults", ())).start()
    stream(r.url, text_of(1))
    r.close()
    assert 9 < time.monotonic() - start < 60 and r.asked == 2 and sorted(r.ids()) == [1], (r.asked, r.ids())


def one_that_is_refused_for_ever_does_not_hold_up_the_others():
    r = Receiver(refuse=lambda body: b"Tried to allocate 2.00 MiB" in body)
    done = stream(r.url, text_of(3))
    r.close()
    assert sorted(r.ids()) == [1, 3] and b"refuses an incident" in done.stderr, (r.ids(), done.stderr)


def asked_to_end_it_ends_soon():
    r = Receiver(faults=("503",))
    with subprocess.Popen([BINARY, "explain", "--stream", "--otlp", r.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(text_of(2))
        process.stdin.flush()
        end = time.monotonic() + 30
        while r.asked < 2 and time.monotonic() < end:
            time.sleep(0.05)
        start = time.monotonic()
        process.terminate()
        assert process.wait(30) == 3 and time.monotonic() - start < 5, process.returncode
    r.close()


def an_address_that_is_none_is_said():
    for url, word in (("https://collector:4318", "https"), ("collector:4318", "http://HOST"), ("http://", "http://HOST"), ("http://user:pw@host", "http://HOST"),
                      ("http://host:12x", "http://HOST"), ("http://host:/", "http://HOST"), ("http://ho st", "http://HOST"), ("http://host/a\r\nX: y", "http://HOST"),
                      ("http://" + "h" * 300, "http://HOST"), ("http://host/" + "p" * 900, "http://HOST")):
        done = stream(url, b"")
        assert done.returncode == 2 and word in done.stderr.decode(), (url, done.stderr)
    r = Receiver()
    assert stream(r.url + "/", text_of(1)).returncode == 1 and stream("http://localhost:%d/own/path" % r.port, text_of(1)).returncode == 1
    r.close()
    assert [path for path, _, _ in r.got] == ["/v1/logs", "/own/path"], r.got


TESTS = [a_record_has_what_people_filter_by, acknowledged_is_what_the_receiver_has, whatever_the_receiver_does_nothing_is_lost,
         a_receiver_that_hangs_is_given_up_after_ten_seconds, one_that_is_refused_for_ever_does_not_hold_up_the_others, asked_to_end_it_ends_soon,
         an_address_that_is_none_is_said]

if __name__ == "__main__":
    print("decoded with opentelemetry-proto" if json_format else "not installed here: opentelemetry-proto; requests are read as JSON")
    failed = 0
    for test in TESTS:
        try:
            test()
            print("ok   %s" % test.__name__)
        except AssertionError as error:
            failed += 1
            print("FAIL %s: %s" % (test.__name__, str(error)[:1500]))
    sys.exit(1 if failed else 0)
