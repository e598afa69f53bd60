"""Where real engines are: virtual environments named vllm-VERSION in OOMSIGHT_VENVS (default ~/.cache/oomsight/venvs).
An engine start takes the machine's lock, because two at once fit on few machines; where the machine has a queue of
its own, OOMSIGHT_ENGINE_UNDER is the command that waits in it and then runs another."""
import contextlib
import fcntl
import glob
import json
import os
import re
import shlex
import subprocess
import tempfile
import threading
import time

SKIP = 77
VENVS = os.environ.get("OOMSIGHT_VENVS", os.path.expanduser("~/.cache/oomsight/venvs"))
LOCK = os.environ.get("OOMSIGHT_ENGINE_LOCK", os.path.join(tempfile.gettempdir(), "oomsight-engine.lock"))
UNDER = shlex.split(os.environ.get("OOMSIGHT_ENGINE_UNDER", ""))


@contextlib.contextmanager
def turn():
    """The machine's lock, or a run of the command that keeps an order of its own."""
    if UNDER:
        env = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
        with subprocess.Popen(UNDER + ["sh", "-c", "echo; read end"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as holder:
            holder.stdout.readline()
            yield
            holder.stdin.close()
        return
    with open(LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def version_key(version):
    return [int(x) for x in re.findall(r"\d+", version)]


def venvs():
    """{version: folder}, newest last."""
    found = {}
    for folder in glob.glob(os.path.join(VENVS, "vllm-*")):
        if os.path.exists(os.path.join(folder, "bin", "vllm")):
            found[os.path.basename(folder)[5:]] = folder
    return dict(sorted(found.items(), key=lambda item: version_key(item[0])))


def environment(folder):
    cache = os.environ.get("OOMSIGHT_ENGINE_CACHE", os.path.join(VENVS, ".cache")) + "/" + os.path.basename(folder)
    env = dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", OMP_NUM_THREADS="1",
               TORCHINDUCTOR_COMPILE_THREADS="1", VLLM_CACHE_ROOT=cache + "/vllm", TRITON_CACHE_DIR=cache + "/triton",
               TORCHINDUCTOR_CACHE_DIR=cache + "/inductor", FLASHINFER_WORKSPACE_BASE=cache + "/flashinfer",
               XDG_CACHE_HOME=cache + "/xdg")
    env["PATH"] = os.path.join(folder, "bin") + ":" + env["PATH"]
    return env


class Outcome:
    def __init__(self, code, report, log, seconds, usage):
        self.code, self.log, self.seconds = code, log, seconds
        self.cpu_seconds, self.rss_bytes = usage
        try:
            self.report = json.loads(report)
        except ValueError:
            self.report = None


class Resident(threading.Thread):
    """The largest sum of resident memory over a process and all below it, looked at once a second, and the CPU time they were
    seen with. Pages that several share are counted for each, so the first is an upper bound; the second is a lower one."""

    def __init__(self, root):
        super().__init__(daemon=True)
        self.root, self.bytes, self.ticks, self.over = root, 0, {}, threading.Event()

    def look(self):
        parents, resident, ticks = {}, {}, {}
        for entry in os.listdir("/proc"):
            try:
                with open("/proc/%s/stat" % entry, encoding="utf-8", errors="replace") as f:
                    fields = f.read().rpartition(")")[2].split()
                parents[int(entry)], resident[int(entry)] = int(fields[1]), int(fields[21])
                ticks[int(entry)] = int(fields[11]) + int(fields[12])
            except (OSError, ValueError, IndexError):
                continue
        mine = {self.root}
        for _ in range(8):
            mine |= {pid for pid, parent in parents.items() if parent in mine}
        self.ticks.update({pid: ticks[pid] for pid in mine if pid in ticks})
        return sum(resident.get(pid, 0) for pid in mine) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self):
        return sum(self.ticks.values()) / os.sysconf("SC_CLK_TCK")

    def run(self):
        while not self.over.wait(1):
            self.bytes = max(self.bytes, self.look())


def dryrun(binary, folder, options, command, more_env=None, timeout=1500, waits=True):
    """`oomsight dryrun --json OPTIONS -- COMMAND` with the engine of a virtual environment first in PATH. `waits`: it is one start."""
    env = environment(folder)
    env.update(more_env or {})
    with turn() if waits else contextlib.nullcontext(), tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        start = time.time()
        child = subprocess.Popen([binary, "dryrun", "--json", "--timeout", str(timeout)] + options + ["--"] + command,
                                 env=env, stdout=out, stderr=err)
        resident = Resident(child.pid)
        resident.start()
        _, status, usage = os.wait4(child.pid, 0)
        resident.over.set()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Outcome(child.returncode, out.read(), err.read(), time.time() - start,
                       (max(usage.ru_utime + usage.ru_stime, resident.cpu_seconds()), max(resident.bytes, usage.ru_maxrss << 10)))


def read_results(path, key):
    """The records of a file with one per line, by their key; none when there is no file."""
    try:
        with open(path, encoding="utf-8") as lines:
            return {key(record): record for record in map(json.loads, filter(str.strip, lines))}
    except FileNotFoundError:
        return {}
