"""How dry runs end: in time, with true words, with nothing left behind.

    tests/shim/endings.py BINARY

The server of --load is a program called `vllm` of a few lines that says it is ready and answers as it is told to. Signals at random are
sabotage.py's."""
import fcntl
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BINARY = os.path.abspath(sys.argv[1])
SERVER = """#!%s
import http.server, os, signal, sys, threading, time
how, port = sys.argv[2], int(sys.argv[sys.argv.index("--port") + 1])
seen, kept = [0], []
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *words):
        pass
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        seen[0] += 1
        if how == "dies" and seen[0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "silent":
            self.close_connection = True
            return
        if how == "hangs" and seen[0] > 2:
            threading.Event().wait()
        if how == "deaf" and seen[0] == 3:
            server.socket.close()  # it lives on
        if how == "leaks":
            kept.append(bytearray(65536))
            kept[-1][::4096] = b"x" * 16
        if how == "tells":
            sys.stdout.write(body.decode() + "\\n")  # in one piece: threads
            sys.stdout.flush()
        if how == "headless" and seen[0] == 5:  # what steps is a process of its own, and is killed
            core.kill()
        if how == "headless" and seen[0] >= 5:
            print("(APIServer pid=1) ERROR [x.py:1] Engine core proc EngineCore died unexpectedly, shutting down client.", flush=True)
        if how == "fails":
            print("(EngineCore pid=1) ERROR [core.py:1] RuntimeError: no such operator", flush=True)
            print("(APIServer pid=1) ERROR [x.py:1] vllm.EngineDeadError: EngineCore encountered an issue", flush=True)
        body = b'{"choices": [{"text": "w"}]}' if how != "refuses" else b'{"error": "too long"}'
        self.send_response(400 if how == "refuses" or how == "half" and seen[0] %% 2 else 500 if how == "fails" or how == "headless" and seen[0] >= 5 else 200)
        self.send_header("Content-Length", str(len(body) + (100 if how == "torn" else 0)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True
if how == "headless":
    import subprocess
    core = subprocess.Popen(["sleep", "100"])
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 2048
server = Server(("127.0.0.1", port), Answer, bind_and_activate=False)
server.server_bind()
print("Application startup complete.", flush=True)
if how == "late":
    time.sleep(1)
server.server_activate()
server.serve_forever()
""" % sys.executable
failed = 0


def check(sentence, holds, seen=""):
    global failed
    failed += not holds
    print("%s %s%s" % ("ok  " if holds else "FAIL", sentence, "" if holds else ": %s" % (seen,)), flush=True)


def command(*words):
    return [BINARY, "dryrun", "--gpu", "4090", "--cuda", "12", *words]


def dryrun(*words, **more):
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=100, check=False, **more)


def heed_signals():
    """A shell has its background jobs ignore INT and QUIT, and what is ignored stays so."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def folders(guard):
    return glob.glob("/dev/shm/oomsight-%d-*" % guard)


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(what, seconds=25):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not what():
            return True
        time.sleep(0.05)
    return False


def words_of_signals():
    for number, name in ((9, "KILL"), (7, "BUS"), (11, "SEGV"), (1, "HUP")):
        done = dryrun("--", "sh", "-c", "ulimit -c 0; kill -%s $$" % name)
        check("a command that SIG%s ends is told so, with code %d" % (name, 128 + number),
              done.returncode == 128 + number and done.stdout.startswith("ENDED by signal %d" % number), (done.returncode, done.stdout))
    report = json.loads(dryrun("--json", "--", "sh", "-c", "ulimit -c 0; kill -BUS $$").stdout)
    check("JSON has the signal and no verdict", report["verdict"] == "unknown" and report["child"]["signal"] == 7, report["child"])
    check("a command that ends well has run", dryrun("--", "true").stdout.startswith("RAN"))


def time_holds():
    for what, program, most in (("closes its pipes", "exec >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&-; sleep 20", 6),
                                ("leaves its pipes to others and ends", "sleep 20 & exit 0", 6),
                                ("writes without end", "yes", 6), ("leaves a writer without end", "yes & exit 0", 12),
                                ("takes the request to end for success", "trap 'exit 0' TERM; while :; do sleep 0.1; done", 6)):
        start = time.monotonic()
        done = dryrun("--quiet", "--timeout", "2", "--", "sh", "-c", program)
        took = time.monotonic() - start
        ended = "exit 0" in program and "trap" not in program
        check("--timeout holds for a command that " + what, took < most and done.returncode == (0 if ended else 124) and
              (ended or done.stdout.startswith("STOPPED")), (took, done.returncode, done.stdout[:80]))


def bodies(done):
    return [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"model"')]


def mixes(folder, vllm):
    """What is asked for is what is sent."""
    start = time.monotonic()
    sent = bodies(dryrun("--load", "40:8-16:2-5,logprobs=3,prefix=50%,rate=20", "--", vllm, "serve", "tells"))
    took = time.monotonic() - start
    lengths = [len(body["prompt"]) for body in sent]
    check("prompts and answers have the lengths of the ranges", len(sent) == 40 and min(lengths) >= 8 and max(lengths) <= 16 and len(set(lengths)) > 3 and
          {body["max_tokens"] for body in sent} == {2, 3, 4, 5}, lengths)
    check("log probabilities are asked for", all(body["logprobs"] == 3 for body in sent))
    check("a share of each prompt is common, the rest is not", len({tuple(body["prompt"][:4]) for body in sent}) == 1 and
          len({tuple(body["prompt"]) for body in sent}) == 40)
    check("a rate is kept", took > 1.9, took)
    again = bodies(dryrun("--load", "40:8-16:2-5,logprobs=3,prefix=50%", "--", vllm, "serve", "tells"))
    check("the same load is the same requests", sorted(map(str, again)) == sorted(map(str, sent)))
    sent = bodies(dryrun("--load", "2500:16:1", "--", vllm, "serve", "tells"))
    check("no prompt comes twice", len({tuple(body["prompt"]) for body in sent}) == 2500)
    path = os.path.join(folder, "lengths")
    with open(path, "w", encoding="utf-8") as f:
        f.write("# prompt answer\n5 2\n7, 3\n")
    sent = bodies(dryrun("--load", "3:@%s,body={\"top_k\": 4, \"min_p\": 0.1}" % path, "--load", "1:9:9", "--", vllm, "serve", "tells"))
    check("lengths come from a file, in turn; more JSON goes with each request; loads come one after the other",
          sorted((len(body["prompt"]), body["max_tokens"], body.get("top_k", 0)) for body in sent) == [(5, 2, 4), (5, 2, 4), (7, 3, 4), (9, 9, 0)] and
          len(sent[-1]["prompt"]) == 9, [(len(body["prompt"]), body["max_tokens"]) for body in sent])
    grown = json.loads(dryrun("--json", "--load", "60:4:2,rate=20", "--", vllm, "serve", "well").stdout)["load"]["mixes"][0]
    check("resident memory of the server is that of a small program, in both parts of a load",
          all(2**20 < (grown[part] or 0) < 2**30 for part in ("host_first_bytes", "host_last_bytes")), grown)
    report = json.loads(dryrun("--json", "--load", "20:4:2", "--load", "30:4:2,abort=100%", "--", vllm, "serve", "well").stdout)["load"]
    check("JSON has each load", report["requests"] == 50 and [(m["answered"], m["aborted"]) for m in report["mixes"]] == [(20, 0), (0, 30)], report)


def loads(folder):
    vllm = os.path.join(folder, "vllm")
    with open(vllm, "w", encoding="utf-8") as f:
        f.write(SERVER)
    os.chmod(vllm, 0o755)
    for how, load, code, line, words in (("well", "300:4:2", 0, "STARTED on", "300 of 300 requests were answered"),
                                         ("well", "3000:4-9:2-5,concurrency=16", 0, "STARTED on", "3000 of 3000 requests were answered"),
                                         ("well", "200:4:2,abort=50%", 0, "STARTED on", "aborted by the client"),
                                         ("late", "20:4:2", 0, "STARTED on", "20 of 20 requests were answered"),
                                         ("silent", "4:4:2", 1, "UNANSWERED: 0 of 4 requests", "closed without an answer"),
                                         ("refuses", "4:4:2", 1, "UNANSWERED: 0 of 4 requests", "4 refused"),
                                         ("fails", "4:4:2", 1, "UNANSWERED: 0 of 4 requests", "4 failed"),
                                         ("torn", "4:4:2", 1, "UNANSWERED: 0 of 4 requests", "0 of 4 requests were answered"),
                                         ("half", "10:4:2", 1, "UNANSWERED: 5 of 10 requests", "5 of 10 requests were answered"),
                                         ("hangs", "10:4:2,hang=2", 1, "HUNG: 2 of 10 requests", "no step and no answer for 2 seconds"),
                                         ("deaf", "20:4:2,concurrency=1", 1, "UNANSWERED: 3 of 20 requests", "17 failed"),
                                         ("headless", "20:4:2,concurrency=2", 1, "UNANSWERED: ", "500 Internal Server Error"),
                                         ("dies", "20:4:2", 137, "ENDED by signal 9 while serving", "of 20 requests were answered")):
        done = dryrun("--timeout", "60", "--load", load, "--", vllm, "serve", how)
        check("--load %s on a server that answers %s: code %d" % (load, how, code), done.returncode == code and done.stdout.startswith(line) and
              words in done.stderr and (code == 0 or "STARTED" not in done.stdout), (done.returncode, done.stdout[:100], done.stderr[-300:]))
    check("the exception that the engine died of is in the report, not what followed from it",
          "RuntimeError: no such operator" in dryrun("--quiet", "--load", "1:4:2", "--", vllm, "serve", "fails").stdout)
    mixes(folder, vllm)
    grows(vllm)
    done = dryrun("--load", "4:4:2", "--", "true")
    check("--load on a command that never serves is no success", done.returncode == 1 and done.stdout.startswith("ENDED without"), done.stdout)


def grows(vllm):
    """What grows by 64 KiB a request is told with its slope, what does not is not."""
    runs = {how: subprocess.Popen(command("--json", "--load", "1200:64:16,concurrency=4,rate=110", "--", vllm, "serve", how), stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True) for how in ("leaks", "well")}
    for how, run in runs.items():
        growth = json.loads(run.communicate(timeout=100)[0])["load"]["mixes"][0]["growth"]
        host, device = growth["host"], growth["device"]
        fair = 60e3 < host["bytes_per_request"] < 72e3 and host["low"] > 0 if how == "leaks" else host["bytes_per_request"] < 4096
        check("growth of a server that answers %s" % how, fair and device["high"] == 0 and growth["requests"] > 400, growth)


def no_room():
    for what, size, fill in (("full", "16k", "dd if=/dev/zero of=/dev/shm/x bs=4k"), ("small", "1m", "true")):
        script = "mount -t tmpfs -o size=%s tmpfs /dev/shm && (%s) 2>/dev/null; \"$@\"; echo code $?; ls /dev/shm" % (size, fill)
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", *command("--", "true")], capture_output=True, text=True, timeout=60, check=False)
        if "code" not in done.stdout:
            print("skip a /dev/shm that is %s: no mount here" % what)
            continue
        check("a /dev/shm that is %s is an error" % what, "code 3" in done.stdout and ("no room" in done.stderr or "No space" in done.stderr),
              (done.stdout, done.stderr))
        check("and nothing is left there", "oomsight" not in done.stdout, done.stdout)
    # filled later, by the command itself: every page of the segment is there already
    script = "mount -t tmpfs -o size=9m tmpfs /dev/shm && \"$@\"; echo code $?; ls /dev/shm"
    program = "import ctypes, os\nos.system('dd if=/dev/zero of=/dev/shm/x bs=4k 2>/dev/null')\nat = ctypes.c_void_p()\n" \
              "print('took', ctypes.CDLL(None).cudaMalloc(ctypes.byref(at), ctypes.c_size_t(1 << 21)), flush=True)"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", *command("--", sys.executable, "-c", program)], capture_output=True, text=True,
                          timeout=60, check=False)
    if "code" in done.stdout:
        check("a /dev/shm that fills up later ends nobody", "code 0" in done.stdout and "took 0" in done.stderr, (done.stdout, done.stderr))


def launched(program="setsid sleep 271.5 & setsid setsid sleep 271.5 & echo at:$OOMSIGHT_SEGMENT; sleep 271.5"):
    """A run that is on, the processes of it, and its folder."""
    run = subprocess.Popen(command("--", "sh", "-c", program), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
                           preexec_fn=heed_signals)
    for line in run.stderr:
        if line.startswith("at:"):
            break
    segment = line[3:].strip()
    found = []
    until = time.monotonic() + 10
    while len(found) < 4 and time.monotonic() < until:
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % name, "rb") as f:
                    if ("OOMSIGHT_SEGMENT=" + segment).encode() in f.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                pass
    return run, found, os.path.dirname(segment)


def worker_of(guard):
    with open("/proc/%d/task/%d/children" % (guard, guard), encoding="utf-8") as f:
        return int(f.read().split()[0])


def killed_launchers():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTERM, signal.SIGKILL):
        run, found, folder = launched()
        os.kill(run.pid, number)
        run.stderr.close()
        left = gone(lambda: [pid for pid in found if alive(pid)] or os.path.exists(folder))
        code = run.wait(timeout=30)
        check("%s to the launcher leaves none of %d processes and no folder" % (number.name, len(found)), left and len(found) >= 4, (found, folder))
        check("and its code says so", code == (-9 if number == signal.SIGKILL else 128 + number), code)
    run = subprocess.Popen(["nohup", *command("--", "sh", "-c", "sleep 1")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    os.kill(run.pid, signal.SIGHUP)
    check("under nohup a run goes on", run.wait(timeout=30) == 0, run.returncode)
    run, found, folder = launched()
    os.killpg(run.pid, signal.SIGKILL)
    check("SIGKILL to the launcher's group leaves nothing", gone(lambda: [pid for pid in found if alive(pid)] or os.path.exists(folder)), folder)
    run.stderr.close()
    run.wait()
    run, found, folder = launched()
    os.kill(worker_of(run.pid), signal.SIGKILL)
    run.stderr.close()
    check("SIGKILL to the worker leaves nothing", run.wait(timeout=30) == 137 and not [pid for pid in found if alive(pid)] and not os.path.exists(folder), folder)


def both_killed():
    run, found, folder = launched("trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; sleep 271.5; :' & echo at:$OOMSIGHT_SEGMENT; sleep 271.5; :")
    worker = worker_of(run.pid)
    os.kill(run.pid, signal.SIGSTOP)
    os.kill(worker, signal.SIGKILL)
    os.kill(run.pid, signal.SIGKILL)
    run.stderr.close()
    run.wait()
    was = [pid for pid in found if alive(pid)]
    dryrun("--", "true")
    check("a folder of this very moment is not swept", os.path.exists(folder), folder)
    os.utime(os.path.join(folder, "owner"), (time.time() - 60, time.time() - 60))
    dryrun("--", "true")
    check("what guard and worker left when both were killed, the next run ends (%d processes)" % len(was),
          was and not [pid for pid in was if alive(pid)] and not os.path.exists(folder), (was, folder))


def swept_with_care(folder):
    def made(name, content=None, owner=True, old=True, mode=0o700):
        path = tempfile.mkdtemp(prefix="oomsight-test-%s-" % name, dir="/dev/shm")
        if owner:
            open(os.path.join(path, "owner"), "w").close()
        if content:
            with open(os.path.join(path, content), "w", encoding="utf-8") as f:
                f.write("kept")
        if old:
            for place in ([os.path.join(path, "owner")] if owner else []) + [path]:
                os.utime(place, (time.time() - 600, time.time() - 600))
        os.chmod(path, mode)
        return path

    stale, strange, young = made("stale", "segment"), made("strange", "diary.txt"), made("young", old=False)
    shared, old_run, empty = made("shared", mode=0o755), made("old", "segment", owner=False), made("empty", owner=False)
    held, link = made("held", "segment"), "/dev/shm/oomsight-test-link-%d" % os.getpid()
    target = os.path.join(folder, "target")
    os.mkdir(target, 0o700)
    open(os.path.join(target, "owner"), "w").close()
    os.utime(os.path.join(target, "owner"), (1, 1))
    os.symlink(target, link)
    with open(os.path.join(held, "owner"), "r+", encoding="utf-8") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        dryrun("--", "true")
    check("a folder whose run is gone is swept, an empty one too", not os.path.exists(stale) and not os.path.exists(empty), (stale, empty))
    check("one whose run lives is not", os.path.exists(os.path.join(held, "segment")), held)
    check("nor a new one, one that others may enter, one of an older version", all(map(os.path.exists, (young, shared, old_run + "/segment"))))
    check("what is not ours in a stale one stays", os.path.exists(os.path.join(strange, "diary.txt")), strange)
    check("a link is not followed", os.path.exists(os.path.join(target, "owner")) and os.path.islink(link), target)
    os.unlink(link)
    for path in (strange, young, shared, old_run, held):
        shutil.rmtree(path, ignore_errors=True)


signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and commands inherit that


def beside():
    """What the module in the engine's processes writes beside the segment goes with the folder."""
    program = "import os; open(os.environ['OOMSIGHT_SEGMENT'] + '.steps.7', 'w'); print(os.path.dirname(os.environ['OOMSIGHT_SEGMENT']))"
    done = subprocess.run([BINARY, "dryrun", "--gpu", "l4", "--cuda", "12", "--", sys.executable, "-c", program], capture_output=True, text=True)
    folder = [line for line in done.stderr.splitlines() if line.startswith(("/dev/shm/oomsight-", "/tmp/oomsight-"))]
    check("files beside the segment are removed with it", folder and not os.path.exists(folder[0]), (folder, done.stderr))


DENIED = """
import ctypes, sys
gpu = ctypes.CDLL(None)
def take(mib): return gpu.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20)) == 0
def look(): gpu.cudaMemGetInfo(ctypes.byref(ctypes.c_size_t()), ctypes.byref(ctypes.c_size_t()))
first = [take(2 * i) for i in range(1, 5)]
again = [(look() if "look" in sys.argv and i == 1 else None, take(8))[1] for i in range(int(sys.argv[1]))]
print("answers", first, again, take(2), flush=True)
"""


def denied():
    """The N-th allocation fails, with those that ask for the same at once again, as PyTorch does; everything else is given."""
    for number, again, want in (("3", "0", "[True, True, False, True] [] True"), ("4", "2", "[True, True, True, False] [False, False] True"),
                                ("4", "6", "[True, True, True, False] [False, False, True, True, True, True] True"), ("90", "1", "[True, True, True, True] [True] True")):
        done = dryrun("--json", "--fail-after", number, "--", sys.executable, "-c", DENIED, again)
        told = json.loads(done.stdout)["child"]["denied"]
        check("allocation %s is denied, %s times asked again" % (number, again), "answers " + want in done.stderr, done.stderr[-300:])
        check("and the report says so", told is None if number == "90" else told["allocation"] == int(number) and told["bytes"] == int(number) << 21, told)
    done = dryrun("--fail-after", "4", "--", sys.executable, "-c", DENIED, "3", "look")
    check("who has asked what is free asks for another allocation", "[True, True, True, False] [False, True, True] True" in done.stderr, done.stderr[-300:])
    text = dryrun("--fail-after", "2", "--", sys.executable, "-c", DENIED, "0").stdout
    check("in words as well", "Allocation 2 was denied as requested: 4.00 MiB by cudaMalloc" in " ".join(text.split()) and "The engine went on." in text, text)


OUTLIVED = """
import ctypes, sys
gpu = ctypes.CDLL(None)
assert gpu.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 40)) == 2
print(sys.argv[1], flush=True)
sys.exit(int(sys.argv[2]))
"""


def outlived():
    """An allocation that is refused is no end. It is told, whether the program prints the message or not."""
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1024.00 GiB. GPU 0 has a total capacity of 23.51 GiB"
    for said in ("caught it", message):
        done = dryrun("--", sys.executable, "-c", OUTLIVED, said, "0")
        check("a program that goes on ran", done.returncode == 0 and done.stdout.startswith("RAN on") and
              "1 call for device memory was refused, the largest of 1024.00 GiB; the program went on." in " ".join(done.stdout.split()), done.stdout)
    done = dryrun("--", sys.executable, "-c", OUTLIVED, message, "3")
    check("one that ends with an error ran out of memory", done.returncode == 1 and done.stdout.startswith("OUT OF MEMORY in runtime_other"), done.stdout)


TAKES = "import ctypes; assert ctypes.CDLL(None).cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64 << 20)) == 0"


def programs():
    """A program that is no engine is not called one, until a process says that it is."""
    done = dryrun("--json", "--", sys.executable, "-c", OUTLIVED, "nothing", "0")
    report = json.loads(done.stdout)
    check("a program is no engine", report["engine"]["name"] == "torch" and "vLLM" not in dryrun("--", sys.executable, "-c", OUTLIVED, "", "0").stdout, report["engine"])
    check("and is in no phase of one", [row["phase"] for row in report["phases"]] in ([], ["runtime_other"]), report["phases"])
    done = dryrun("--json", "--", sys.executable, "-c", OUTLIVED, "oomsight dryrun: engine sglang 0.5.23", "0")
    check("a process says which engine it is", json.loads(done.stdout)["engine"] == {"name": "sglang", "version": "0.5.23"}, done.stdout[:300])
    with tempfile.TemporaryDirectory() as folder:  # a PyTorch of two files: its version is looked up, and nothing of it imported
        os.mkdir(os.path.join(folder, "torch"))
        for name, text in (("__init__.py", ""), ("version.py", "__version__ = '2.13.0'\ncuda = '12.8'\n")):
            with open(os.path.join(folder, "torch", name), "w", encoding="utf-8") as f:
                f.write(text)
        for env, owner in ((dict(os.environ, PYTHONPATH=folder), "PyTorch"), (dict(os.environ, PYTHONPATH=""), "unaccounted")):
            held = json.loads(dryrun("--json", "--", sys.executable, "-c", TAKES, env=env).stdout)["phases"][-1]["holds"]
            check("what a program takes is called %s" % owner, [row["bytes"] for row in held if row["owner"] == owner] == [64 << 20], held)


HIGHEST = """#!%s
import ctypes
gpu = ctypes.CDLL(None)
def take(mib): assert gpu.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20)) == 0
take(512)
print("Starting to load model x", flush=True)
import time; time.sleep(0.3)
take(2048)
print("Model loading took 2.0 GiB memory and 1.0 seconds", flush=True)
print("GPU KV cache size: 4,096 tokens", flush=True)
print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.56 GiB. GPU 0 has a total capacity of 23.51 GiB", flush=True)
raise SystemExit(1)
""" % sys.executable


def an_exception_is_its_own_reason():
    """Engines kill themselves after an exception: that is not the host's doing."""
    program = "import os; print('AssertionError: plan info is not initialized', flush=True); os.kill(os.getpid(), 9)"
    done = dryrun("--", sys.executable, "-c", program)
    check("the exception is told, and nobody sent to the kernel's log", "plan info is not initialized" in done.stdout and "kernel log" not in done.stdout, done.stdout)
    check("a signal without one may be the host's", "kernel log" in " ".join(dryrun("--", "sh", "-c", "kill -9 $$").stdout.split()))


def the_highest_is_shown(folder):
    """A failure in a phase that holds nothing yet: the rows are those of the phase that held most."""
    engine = os.path.join(folder, "vllm")
    with open(engine, "w", encoding="utf-8") as f:
        f.write(HIGHEST)
    os.chmod(engine, 0o755)
    text = dryrun("--", engine, "serve", "x").stdout
    check("rows of the phase that held most", "Memory at weight_load" in text, text)


def main():
    beside()
    an_exception_is_its_own_reason()
    outlived()
    programs()
    denied()
    with tempfile.TemporaryDirectory() as folder:
        the_highest_is_shown(folder)
        words_of_signals()
        time_holds()
        loads(folder)
        no_room()
        killed_launchers()
        both_killed()
        swept_with_care(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
