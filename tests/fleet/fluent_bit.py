#!/usr/bin/env python3
"""Both Fluent Bit configurations with the real program, into an HTTP server that stands in for ClickHouse's: every line arrives, byte
for byte, also one of 300 kB. usage: fluent_bit.py BINARY ; exit 77 without fluent-bit in PATH."""
import http.server
import json
import os
import subprocess
import sys
import threading

import incidents
import parts

ADDRESS = "/?query=INSERT%20INTO%20oomsight.lines%20FORMAT%20JSONEachRow"


class Sink(http.server.BaseHTTPRequestHandler):
    rows = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.path == ADDRESS, self.path
        self.rows += [json.loads(line) for line in body.splitlines()]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def config(stage, name, port):
    with open(os.path.join(parts.FLEET, "fluent-bit", name)) as f:
        text = f.read()
    for old, new in (("/var/lib/fluent-bit/storage", stage.make_folder("storage")), ("/var/lib/fluent-bit/", stage.folder + "/"),
                     ("/var/lib/oomsight/incidents.ndjson", stage.path("incidents.ndjson")), ("clickhouse.example.org", "127.0.0.1"),
                     ("8123", str(port)), ("command: oomsight ", f"command: {stage.path('oomsight')} "), ("interval_sec: 5", "interval_sec: 1"),
                     ("--state /var/lib/oomsight/state /var/log/pods", f"--state {stage.path('state')} {stage.path('pods')}")):
        text = text.replace(old, new)
    return stage.write(name, text)


def arrives(stage, name, port, is_done):
    Sink.rows.clear()
    path = config(stage, name, port)
    stage.run([parts.program("fluent-bit"), "--dry-run", "-c", path])
    process = stage.start("fluent-bit", [parts.program("fluent-bit"), "-c", path], env={**os.environ, "HOSTNAME": "a-node"})
    parts.wait_for(name, is_done)
    parts.stop(process)
    assert all(set(row) == {"node", "line"} and row["node"] == "a-node" for row in Sink.rows)


def main():
    parts.skip_without("fluent-bit", "setpriv")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    with parts.Stage() as stage:
        binary = stage.own_binary(sys.argv[1])
        fleet = list(incidents.fleet(incidents.bases(sys.argv[1]), 200))
        fleet[7] = dict(fleet[7], evidence=[{"line": 1, "text": "x'\"\\\u2028\u0000 " * 20000}])
        data = incidents.lines(fleet)
        stage.write("incidents.ndjson", data, "wb")
        lines = set(data.decode().split("\n")) - {""}
        arrives(stage, "fluent-bit.yaml", port, lambda: {row["line"] for row in Sink.rows} == lines)
        print(f"ok tail: {len(lines)} lines, the longest of {max(map(len, lines))} bytes, arrive as they are")


if __name__ == "__main__":
    main()
