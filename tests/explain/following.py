"""What the tests of `explain --follow` share: texts, a running follower, claims. Standard library only."""
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

OOM = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 1.00 MiB is "
       "free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.")
FRAME = '  File "/usr/lib/python3/site-packages/vllm/v1/worker/gpu_worker.py", line 381, in load_model'
START = ["INFO 01-01 00:00:00 [api_server.py:1] vLLM API server version 0.19.1",
         "INFO 01-01 00:00:00 [gpu_model_runner.py:1] Starting to load model m...",
         "INFO 01-01 00:00:00 [gpu_model_runner.py:1] Model loading took 15.27 GiB memory and 4.3 seconds"]
HARMLESS = '(APIServer pid=1) INFO:     10.0.0.1:4711 - "GET /health HTTP/1.1" 200 OK'


def failure(mib):
    return [FRAME, OOM % mib]


def cri(lines, at="2026-01-02T03:04:05.678901234Z"):
    return "".join("%s stderr F %s\n" % (at, line) for line in lines)


def docker(lines, at="2026-01-02T03:04:05.678901234Z"):
    return "".join(json.dumps({"log": line + "\n", "stream": "stderr", "time": at}) + "\n" for line in lines)


def plain(lines):
    return "".join(line + "\n" for line in lines)


def pod_folder(root, space="team-a", pod="chat-0", uid="0a1b2c3d-0000-4000-8000-00000000000f", container="vllm"):
    folder = os.path.join(root, "%s_%s_%s" % (space, pod, uid), container)
    os.makedirs(folder, exist_ok=True)
    return folder


def write(path, text, mode="a"):
    with open(path, mode, encoding="utf-8", errors="surrogateescape") as f:
        f.write(text)


class Follower:
    """A process; what it printed can be looked at while it runs."""
    folders = []

    def __init__(self, binary, *words, stdout=None, stdin=subprocess.DEVNULL, **more):
        self.folder = tempfile.mkdtemp(prefix="oomsight-follower-")
        self.folders.append(self.folder)
        self.out, self.err = os.path.join(self.folder, "out"), os.path.join(self.folder, "err")
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen([binary, "explain", "--follow", "--each", "--json", *words], stdout=stdout or out, stderr=err, stdin=stdin,
                                            **more)
        self.wait_begun()

    def wait_begun(self, seconds=20.0):
        """Until it has a log open, or has been watching for a while: on a busy machine a start takes its time."""
        end, watching = time.monotonic() + seconds, None
        while time.monotonic() < end and self.process.poll() is None:
            links = set()
            try:
                for fd in os.listdir("/proc/%d/fd" % self.process.pid):
                    links.add(os.readlink("/proc/%d/fd/%s" % (self.process.pid, fd)))
            except OSError:
                pass
            if any(link.endswith(".log") for link in links):
                return
            if any("inotify" in link for link in links):
                watching = watching or time.monotonic()
                if time.monotonic() - watching > 0.5:
                    return
            time.sleep(0.02)

    def incidents(self):
        with open(self.out, encoding="utf-8") as f:
            return [json.loads(line) for line in f.read().rpartition("\n")[0].splitlines()]  # the last one may be on its way

    def errors(self):
        with open(self.err, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_for(self, count, seconds=8.0):
        """Until so many incidents are there, and a moment longer: there may be one too many."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(self.incidents()) < count:
            time.sleep(0.05)
        time.sleep(0.3)
        return self.incidents()

    def wait_error(self, text, seconds=8.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end and text not in self.errors():
            time.sleep(0.05)
        return text in self.errors()

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait()


class Claims:
    """Cases mostly wait, so several run at a time."""

    def __init__(self):
        self.held, self.broken = 0, 0

    def claim(self, ok, sentence, *detail):
        self.held += bool(ok)
        self.broken += not ok
        if not ok:
            print("FAIL %s: %s" % (sentence, " ".join(str(d)[:600] for d in detail)))

    def one(self, case):
        folder = tempfile.mkdtemp(prefix="oomsight-follow-")
        start = time.monotonic()
        try:
            case(folder)
        except Exception as error:  # the other cases still run
            self.claim(False, case.__name__, repr(error))
        print("     %s (%.0f s)" % (case.__doc__.splitlines()[0], time.monotonic() - start))
        shutil.rmtree(folder, ignore_errors=True)

    def run(self, cases, name):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(self.one, cases))
        for folder in Follower.folders:
            shutil.rmtree(folder, ignore_errors=True)
        print("%s: %d claims hold, %d do not" % (name, self.held, self.broken))
        return 1 if self.broken else 0


def tried(incidents):
    """The request of each incident in MiB: what tells them apart here."""
    return [i["numbers"]["tried_bytes"] >> 20 if i["numbers"]["tried_bytes"] else None for i in incidents]
