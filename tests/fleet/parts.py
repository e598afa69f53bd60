"""The real programs behind the pipelines, each started as an unprivileged process on a folder and ports of its own: PostgreSQL,
rsyslog, Prometheus. A Stage stops what it started. Standard library only; what is tested is in the files beside this one."""
import contextlib
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLEET = os.path.join(ROOT, "examples", "fleet")
NOBODY = 65534


def program(name):
    """Where a program is, also in the folders that are no part of a user's PATH, or None."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:" + ":".join(sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True))
    return shutil.which(name, path=path)


def venv_python():
    home = os.environ.get("OOMSIGHT_VENVS") or os.path.expanduser("~/.cache/oomsight/venvs")
    python = os.path.join(home, "fleet", "bin", "python")
    return python if os.path.exists(os.path.join(home, "fleet", ".ready")) else None


def skip_without(*programs):
    missing = [p for p in programs if not program(p)]
    if missing:
        print("not installed: " + ", ".join(missing))
        sys.exit(77)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, check, seconds=100):
    """The first true value of check(), asked until the time is over."""
    end = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


class Stage(contextlib.ExitStack):
    """A folder that nobody owns, and the processes that live in it."""

    def __enter__(self):
        super().__enter__()
        self.folder = tempfile.mkdtemp(prefix="oomsight-fleet-")
        self.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.is_root = os.geteuid() == 0
        if self.is_root:
            os.chown(self.folder, NOBODY, NOBODY)
        os.chmod(self.folder, 0o755)
        return self

    def __exit__(self, kind, *details):
        if kind and kind is not SystemExit:
            for path in sorted(glob.glob(self.path("*.log"))):
                with open(path, "rb") as f:
                    print(f"---- {os.path.basename(path)}\n" + f.read()[-3000:].decode(errors="replace"))
        return super().__exit__(kind, *details)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def make_folder(self, *names):
        path = self.path(*names)
        os.makedirs(path, exist_ok=True)
        if self.is_root:
            os.chown(path, NOBODY, NOBODY)
        return path

    def write(self, name, content, mode="w"):
        path = self.path(name)
        with open(path, mode) as f:
            f.write(content)
        if self.is_root:
            os.chown(path, NOBODY, NOBODY)
        return path

    def own_binary(self, binary):
        """A copy that nobody can read, wherever the checkout lies."""
        path = shutil.copy(binary, self.path("oomsight"))
        os.chmod(path, 0o755)
        return path

    def unprivileged(self, command):
        if not self.is_root:
            return command
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", *command]

    def run(self, command, **options):
        done = subprocess.run(self.unprivileged(command), capture_output=True, cwd=self.folder, **options)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]}: {done.returncode}: {done.stderr[-2000:]!r}")
        return done.stdout

    def start(self, name, command, **options):
        log = open(self.path(name + ".log"), "ab")
        process = subprocess.Popen(self.unprivileged(command), stdout=options.pop("stdout", log), stderr=log, cwd=self.folder,
                                   start_new_session=True, **options)
        log.close()
        self.callback(stop, process)
        return process

    def log(self, name):
        with open(self.path(name + ".log"), "rb") as f:
            return f.read().decode(errors="replace")


def stop(process, how=signal.SIGTERM):
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Postgres:
    """A server on a socket in the stage's folder. `durable`: as it would be run, for measurements."""

    def __init__(self, stage, durable=False):
        self.stage, self.port, self.durable = stage, free_port(), durable
        self.sockets = stage.make_folder("pg")
        stage.run([program("initdb"), "-D", stage.path("pg/data"), "-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
        self.process = None
        self.start()

    def start(self):
        options = [] if self.durable else ["-c", "fsync=off"]
        self.process = self.stage.start("postgres", [program("postgres"), "-D", self.stage.path("pg/data"), "-k", self.sockets, "-p", str(self.port),
                                                     "-c", "listen_addresses=", "-c", "timezone=UTC", *options])
        wait_for("postgres", lambda: subprocess.run(self.psql("-c", "SELECT 1"), capture_output=True).returncode == 0)

    def stop(self):
        stop(self.process, signal.SIGINT)

    def psql(self, *arguments, user="owner"):
        return [program("psql"), "-X", "-q", "-h", self.sockets, "-p", str(self.port), "-U", user, "-d", "postgres", "-v", "ON_ERROR_STOP=1", *arguments]

    def uri(self, user):
        return f"postgresql://{user}@/postgres?host={urllib.parse.quote(self.sockets, safe='')}&port={self.port}"

    def files(self, *paths):
        for path in paths:
            subprocess.run(self.psql("-f", path), check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "PGOPTIONS": "-c client_min_messages=warning"})

    def rows(self, query, user="owner"):
        """Rows as dictionaries. JSON carries any text, and numbers as numbers."""
        command = self.psql("-A", "-t", "-c", f"SELECT coalesce(json_agg(row_to_json(answer)), '[]') FROM ({query}) AS answer", user=user)
        done = subprocess.run(command, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode(errors="replace") + query)
        return json.loads(done.stdout)

    def value(self, query):
        rows = self.rows(query)
        return next(iter(rows[0].values())) if rows else None

    def load(self, data, user="owner"):
        """Lines as they are, by COPY. JSON has no raw control characters, so two of them can stand for quote and delimiter."""
        copy = r"COPY oomsight.lines (line) FROM STDIN (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')"
        subprocess.run(self.psql("-c", copy, user=user), input=data, check=True, stdout=subprocess.DEVNULL)


class Prometheus:
    def __init__(self, stage, config):
        self.port = free_port()
        self.process = stage.start("prometheus", [program("prometheus"), "--config.file=" + config, "--storage.tsdb.path=" + stage.path("tsdb"),
                                                  f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"])
        wait_for("prometheus", self.is_ready)

    def is_ready(self):
        try:
            return self.read("/-/ready") is not None
        except OSError:
            return False

    def read(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return answer.read()

    def query(self, expression):
        answer = json.loads(self.read("/api/v1/query?" + urllib.parse.urlencode({"query": expression})))
        assert answer["status"] == "success", answer
        return answer["data"]["result"]

    def firing(self):
        alerts = json.loads(self.read("/api/v1/alerts"))["data"]["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}
