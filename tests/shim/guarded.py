"""`oomsight run` around small programs on the stand-in device: what it passes on, what it writes about a failure, who divides a card.

    tests/shim/guarded.py BINARY [WORD of a case...]"""
import glob
import json
import os
import re
import pty
import signal
import stat
import subprocess
import sys
import tempfile
import time

BINARY = os.path.abspath(sys.argv[1])
MIB, GIB = 1 << 20, 1 << 30
TOKEN = "hf_" + "abcdefghijklmnopqrstuvwxyz0123456789"[:34]
# The calls of a program, on whatever device is there.
CALLS = """
import ctypes, os, sys, time
gpu = ctypes.CDLL(None)
def take(mib):
    at = ctypes.c_void_p()
    return at if gpu.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(mib << 20)) == 0 else None
def fill(mib):
    held = []
    while True:
        at = take(mib)
        if at is None: return held
        held.append(at)
def say(*words): print(*words, flush=True); time.sleep(0.3)  # read before what comes next is taken
"""
FAILS = CALLS + """
say("Starting to load model x with hf_token=%s")
weights = [take(256) for _ in range(3)]
say("Model loading took 0.75 GiB and 0.1 seconds")
fill(256)
print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 4.00 GiB.")
sys.exit(7)
""" % TOKEN
SURVIVES = CALLS + "print(len(fill(512)), flush=True)\n"
HOLDS = CALLS + "at = take(512); say('held'); sys.stdin.readline()\n"
good = True


def check(sentence, holds, more=""):
    global good
    good = good and bool(holds)
    print("%s %s%s" % ("ok  " if holds else "FAIL", sentence, "" if holds else " " + str(more)))


def words(program, *options, gpu=True):
    """A dry run brings the device. Its stderr has what the command prints, and here at last how it ended."""
    device = [BINARY, "dryrun", "--output", "/dev/null", "--gpu", "L4", "--outside", "400MiB", "--cuda", "12", "--",
              "sh", "-c", '"$@"; echo "exit $?"', "sh"] if gpu else []
    return device + [BINARY, "run", *options, "--", sys.executable, "-c", program]


def run(program, *options, folder=None, gpu=True, **more):
    env = dict(os.environ, OOMSIGHT_BUNDLE_DIR=folder or "/nowhere/at/all")
    return subprocess.run(words(program, *options, gpu=gpu), env=env, capture_output=True, timeout=120, **more)


def load(path):
    with open(path, encoding="utf-8") as f: return json.load(f)


def holds(schema, value):
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    done = subprocess.run([sys.executable, root + "/tools/check_schema.py", "%s/data/schema/%s.schema.json" % (root, schema)], input=json.dumps(value), capture_output=True, text=True)
    check("the schema of %s holds" % schema, done.returncode == 0, done.stdout + done.stderr)


def the_output_is_passed_on_byte_for_byte(scratch):
    program = "import os, sys; [os.write(1 + (i & 1), bytes(range(256)) * 999 + str(i).encode()) for i in range(8)]; sys.exit(3)"
    plain = subprocess.run([sys.executable, "-c", program], capture_output=True)
    passed = run(program, "--quiet", gpu=False)
    check("standard output and error are as without it", passed.stdout == plain.stdout and passed.stderr == plain.stderr)
    check("and so is the exit code", passed.returncode == plain.returncode == 3, passed.returncode)
    mixed = "import os; [os.write(1 + (i % 3 > 0), b'%d\\n' % i) for i in range(500)]"
    both = subprocess.run([BINARY, "run", "--quiet", "--", sys.executable, "-c", mixed], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check("their order stays when both go to one place", both.stdout == b"".join(b"%d\n" % i for i in range(500)))
    late = subprocess.run([BINARY, "run", "--quiet", "--", "sh", "-c", "(sleep 0.5; echo late) & echo now"], stdout=subprocess.PIPE)
    check("who writes after the command has ended is passed on", late.stdout == b"now\nlate\n", late.stdout)
    cut = subprocess.run("%s run --quiet -- yes | head -1; echo ${PIPESTATUS[0]}" % BINARY, shell=True, executable="/bin/bash", stdout=subprocess.PIPE)
    check("a reader that leaves ends the command as without it", cut.stdout == b"y\n141\n", cut.stdout)


def a_terminal_stays_a_terminal(scratch):
    parent, child = pty.openpty()
    import fcntl, struct, termios
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 117, 0, 0))
    program = "import os; print(os.isatty(1), os.isatty(2), os.get_terminal_size(1).columns)"
    done = subprocess.run([BINARY, "run", "--quiet", "--", sys.executable, "-c", program], stdout=child, stderr=child, stdin=child)
    os.close(child)
    check("a terminal stays one to the command, of its size", os.read(parent, 999) == b"True True 117\r\n" and done.returncode == 0)


def a_failure_leaves_a_bundle(scratch):
    report = scratch + "/run.json"
    done = run(FAILS, "--budget", "4GiB", "--report", report, folder=scratch + "/bundles")
    folders = glob.glob(scratch + "/bundles/*")
    check("one failure, one bundle", len(folders) == 1, (folders, done.stderr[-2000:]))
    if len(folders) != 1: return
    folder, names = folders[0], sorted(os.listdir(folders[0]))
    check("it is named on stderr", folder.encode() in done.stderr)
    check("it has what a reader needs", names == ["bundle.json", "events.trace", "host.txt", "incident.html", "incident.json", "incident.txt",
                                                  "log.txt", "measured.json", "measured.txt"], names)
    modes = {stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) for name in names} | {stat.S_IMODE(os.stat(folder).st_mode)}
    check("nobody else can read it", modes == {0o600, 0o700}, modes)
    texts = b"".join(open(os.path.join(folder, name), "rb").read() for name in names)
    check("secrets are left out", TOKEN.encode() not in texts and TOKEN.encode() in done.stderr)
    bundle, measured = load(folder + "/bundle.json"), load(folder + "/measured.json")
    check("it says why, in which phase, for how much", (bundle["schema"], bundle["why"], bundle["step"], bundle["tried_bytes"]) ==
          ("oomsight.bundle/1", "out of memory", "profile_run", 256 * MIB), bundle)
    device = measured["devices"][0]
    check("who held what when it was refused", device["at_refusal"] == {"weights": 768 * MIB, "activations": 11 * 256 * MIB}, device)
    check("and in each phase", [p["phase"] for p in device["phases"]] == ["weight_load", "profile_run"] and
          device["phases"][0]["owners"] == {"weights": 768 * MIB}, device["phases"])
    check("incident and log tell the failure", load(folder + "/incident.json")["phase"] == "profile_run" and b"OutOfMemoryError" in texts)
    replayed = subprocess.run([BINARY, "replay", folder + "/events.trace"], capture_output=True, text=True)
    check("replay reads the last events", "14 pieces of device memory taken" in replayed.stdout and "256.00 MiB" in replayed.stdout, replayed)
    run_json = load(report)
    holds("run", run_json)
    holds("bundle", bundle)
    check("the report names the bundle and the phase", run_json["bundle"] == folder and run_json["phase"] == "profile_run")
    check("the exit code is the command's", b"exit 7\n" in done.stderr, done.stderr)


def a_refusal_that_is_survived_leaves_one_too(scratch):
    done = run(SURVIVES, "--budget", "4GiB", folder=scratch)
    bundles = glob.glob(scratch + "/*/bundle.json")
    check("a refusal that the command survives leaves a bundle", len(bundles) == 1 and load(bundles[0])["why"] == "refused", bundles)
    check("and changes nothing else", b"7\n" in done.stderr and b"exit 0\n" in done.stderr, done)
    check("--no-bundle writes none", run(SURVIVES, "--budget", "4GiB", "--no-bundle", folder=scratch + "/x").returncode == 0 and not glob.glob(scratch + "/x/*"))
    done = run(SURVIVES, "--budget", "4GiB", "--no-log", "--report", scratch + "/r.json", folder=scratch + "/y")
    check("--no-log: no phase, no owner, all else", load(scratch + "/r.json")["phase"] is None and glob.glob(scratch + "/y/*/events.trace"), done)
    done = run(SURVIVES, "--budget", "4GiB", folder="/proc/nowhere")
    check("where nothing can be written the command goes on", b"exit 0\n" in done.stderr and b"no diagnostic bundle" in done.stderr, done)


def who_asks_gets_a_bundle_and_old_ones_go(scratch):
    env = dict(os.environ, OOMSIGHT_BUNDLE_DIR=scratch + "/b")
    command = subprocess.Popen([BINARY, "run", "--quiet", "--", sys.executable, "-c", "import sys; print(flush=True); sys.stdin.readline()"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    command.stdout.readline()
    for _ in range(10): dumped = subprocess.run([BINARY, "top", "--dump", str(command.pid)], capture_output=True, text=True)
    path = dumped.stdout.split()[-1] if dumped.stdout else ""
    check("top --dump names the bundle", dumped.returncode == 0 and os.path.exists(path + "/bundle.json"), dumped)
    check("ten bundles become eight", len(os.listdir(scratch + "/b")) == 8, os.listdir(scratch + "/b"))
    before = set(os.listdir(scratch + "/b"))
    command.send_signal(signal.SIGUSR2)
    until = time.monotonic() + 10
    while set(os.listdir(scratch + "/b")) == before and time.monotonic() < until: time.sleep(0.05)
    check("SIGUSR2 writes one", set(os.listdir(scratch + "/b")) != before)
    command.communicate(b"\n")
    check("and the command goes on to its end", command.returncode == 0, command.returncode)
    other = subprocess.run([BINARY, "top", "--dump", "1"], capture_output=True, text=True)
    check("a process that is none of ours is not signalled", other.returncode == 3, other)


HEALTHY = CALLS + """
say("INFO 10-11 12:27:29 [api_server.py:1] vLLM API server version 0.19.1")
say("Starting to load model x"); weights = take(512); say("Model loading took 0.50 GiB memory and 0.1 seconds")
say("GPU KV cache size: 4,096 tokens"); cache = take(1024); say("Application startup complete.")
import subprocess
subprocess.run([%r, "top", "--dump", str(os.getppid())], capture_output=True)
"""
MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "models", "small-llama")


def an_engine_that_runs_is_no_incident(scratch):
    """Asked of an engine that answers: its card by name, that it is ready, its log read, and no failure told."""
    with open(scratch + "/vllm", "w", encoding="utf-8") as f: f.write("#!%s\n%s" % (sys.executable, HEALTHY % BINARY))
    with open(scratch + "/start", "w", encoding="utf-8") as f: f.write("exec '%s' run --budget 9GiB -- '%s/vllm' serve '%s'\n" % (BINARY, scratch, MODEL))
    os.chmod(scratch + "/vllm", 0o700)
    # In a file: a dry run that sees an engine's command ends it when it is ready.
    done = subprocess.run([BINARY, "dryrun", "--output", "/dev/null", "--gpu", "L4", "--cuda", "12", "--", "sh", scratch + "/start"],
                          env=dict(os.environ, OOMSIGHT_BUNDLE_DIR=scratch), capture_output=True, timeout=120)
    bundles = glob.glob(scratch + "/*/bundle.json")
    check("who asks gets one bundle", len(bundles) == 1, done.stderr[-2000:])
    if len(bundles) != 1: return
    bundle, folder = load(bundles[0]), os.path.dirname(bundles[0])
    holds("bundle", bundle)
    check("it says that the engine runs", (bundle["why"], bundle["state"]) == ("asked", "ready"), bundle)
    check("it tells no failure", (bundle["cause"], bundle["refused_by"], bundle["tried_bytes"]) == (None, None, None) and bundle["phase"] != "not_oom", bundle)
    check("... not by its files either", "explain.json" in bundle["files"] and not any("incident" in name for name in bundle["files"]), bundle["files"])
    measured = bundle["measured"]
    check("it has the card", (measured["name"], measured["compute_capability"], measured["total_bytes"] >> 20) == ("NVIDIA L4", 8.9, 22563), measured)
    device = load(folder + "/measured.json")["devices"][0]
    check("... in its figures, too", (device["name"], device["compute_capability"]) == ("NVIDIA L4", 8.9), device)
    with open(folder + "/measured.txt", encoding="utf-8") as f: check("... and for people", "NVIDIA L4, compute capability 8.9" in f.read())
    plan = load(folder + "/plan.json") if os.path.exists(folder + "/plan.json") else {"gpu": {}}
    check("the plan is for that card", (plan["gpu"].get("name"), plan["gpu"].get("compute_capability"), plan["gpu"].get("total_bytes")) == ("NVIDIA L4", 8.9, 9 << 30), plan["gpu"])
    check("... and says of no engine that runs that it may start", not any(name in bundle["files"] for name in ("plan.txt", "plan.html")), bundle["files"])


def phases_and_owners_are_shown_while_it_runs(scratch):
    program = CALLS + ("say('Starting to load model x'); at = take(512); say('GPU KV cache size: 4,096 tokens'); more = take(1024); say('there');"
                       "import subprocess; print(subprocess.run([%r, 'top', '--once', '--json', '--metrics-file', %r], capture_output=True, text=True).stdout)" % (BINARY, scratch + "/top.prom"))
    done = run(program, "--quiet", "--budget", "4GiB")
    text = done.stderr.decode()
    runs = json.loads(text[text.index("[\n"):text.rindex("]") + 1]) if "[\n" in text else []
    mine = [entry["run"] for entry in runs if entry["run"]["phase"] == "kv_alloc"]
    for entry in mine: holds("run", entry)
    check("top shows the phase and who holds what now", any(d["owners"] == {"weights": 512 * MIB, "KV cache": 1024 * MIB} for r in mine for d in r["devices"]),
          (text, done.stderr))
    with open(scratch + "/top.prom") as f: lines = f.read().splitlines()
    families = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    samples = [re.fullmatch(r'(\w+)\{name="([^"\\]*)"((?:,\w+="[^"\\]*")*)\} (\d+)', line) for line in lines if not line.startswith("#")]
    order = [families.index(sample.group(1)) for sample in samples if sample]
    check("the same for Prometheus: every sample of a family that was declared, family by family", all(samples) and order == sorted(order) and len(set(families)) == len(families), lines)
    held = [sample.group(4) for sample in samples if sample.group(1) == "oomsight_run_held_bytes" and 'owner="KV cache"' in sample.group(3)]
    check("with the bytes of an owner", str(1024 * MIB) in held, lines)
    numbered = {sample.group(1) for sample in samples if ",pid=" in sample.group(3)}
    check("one family alone has the number of a process", numbered <= {"oomsight_run_info"}, numbered)


def series_are_the_same_after_a_restart(scratch):
    """Two that run the same are told apart, and are called what they were called before when both begin again."""
    def once():
        ready, done = [scratch + "/ready%d" % n for n in (1, 2)], scratch + "/done"
        for path in (*ready, done):
            if os.path.exists(path): os.remove(path)
        program = CALLS + "take(512)\nimport time, os\nopen(os.environ['READY'], 'w').close()\nwhile not os.path.exists(%r): time.sleep(.05)\n" % done
        with open(scratch + "/engine.py", "w", encoding="utf-8") as f: f.write(program)
        started = [subprocess.Popen([BINARY, "dryrun", "--output", "/dev/null", "--gpu", "L4", "--cuda", "12", "--", BINARY, "run", "--quiet", "--", sys.executable, scratch + "/engine.py"],
                                    env=dict(os.environ, READY=path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for path in ready]
        until = time.monotonic() + 60
        while time.monotonic() < until and not all(os.path.exists(path) for path in ready): time.sleep(0.05)
        subprocess.run([BINARY, "top", "--once", "--json", "--metrics-file", scratch + "/two.prom"], stdout=subprocess.DEVNULL, check=False)
        open(done, "w", encoding="utf-8").close()
        for process in started: process.wait(60)
        with open(scratch + "/two.prom", encoding="utf-8") as f:
            return [line.rsplit(" ", 1)[0] for line in f if "engine.py" in line]
    first, second = once(), once()
    named = {line for line in first if not line.startswith("oomsight_run_info")}
    check("two runs of one command have no series in common", len(first) == len(set(first)) and any(' #2"' in line for line in named) and any('engine.py"' in line for line in named), first)
    check("after a restart the series go on", named and named == {line for line in second if not line.startswith("oomsight_run_info")}, (first, second))
    check("the number of the process is in one that says which", sum("pid=" in line for line in first) == 2, first)


SERVER = """
import socket, sys, time
how, port = sys.argv[1], int(sys.argv[sys.argv.index("--port") + 1])
place = socket.create_server(("127.0.0.1", port))
print(flush=True)
while True:
    one, _ = place.accept()
    one.recv(4096)
    if how == "silent": time.sleep(5)
    if how == "well": one.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\nvllm:num_requests_running{a="b"} 3.0\\nvllm:num_requests_waiting 12.0\\nvllm:kv_cache_usage_perc 0.421\\n')
    if how == "refusing": one.sendall(b"HTTP/1.0 404 Not Found\\r\\n\\r\\nvllm:num_requests_running 3.0\\n")
    try:
        while how == "endless": one.sendall(b"vllm:num_requests_running 3.0 " * 999)
    except OSError: pass
    one.close()
"""


def top_shows_what_the_engine_says_of_itself(scratch):
    import socket
    for how, wanted in (("well", {"running": 3, "waiting": 12, "kv_used_permille": 421}), ("silent", None), ("refusing", None), ("endless", None)):
        with socket.create_server(("127.0.0.1", 0)) as place: port = place.getsockname()[1]
        command = subprocess.Popen([BINARY, "run", "--quiet", "--", sys.executable, "-c", SERVER, how, "serve", "--port", str(port)], stdout=subprocess.PIPE)
        command.stdout.readline()
        start = time.monotonic()
        told = subprocess.run([BINARY, "top", "--once", "--json"], capture_output=True, text=True, timeout=60)
        seconds = time.monotonic() - start
        text = subprocess.run([BINARY, "top", "--once"], capture_output=True, text=True, timeout=60).stdout
        mine = [entry["run"] for entry in json.loads(told.stdout) if entry["pid"] == command.pid]
        check("a server that answers %s" % how, mine and mine[0]["serving"] == wanted and seconds < 20, (told, seconds))
        check("... and for people", ("3 running, 12 waiting" in text and "42.1 %" in text) == bool(wanted), text)
        for entry in mine: holds("run", entry)
        command.terminate()
        command.wait(20)


DRAWN = CALLS + """
import fcntl, json, pty, struct, subprocess, termios
say('Starting to load model x'); at = take(512); say('GPU KV cache size: 4,096 tokens'); more = take(1024); say('there')
shown = []
for columns, plain in ((80, False), (200, False), (80, True)):
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {**{k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}, "TERM": "xterm-256color", **({"NO_COLOR": "1"} if plain else {})}
    subprocess.run([%r, "top", "--once"], stdout=child, stderr=child, env=env)
    os.close(child)
    text = b""
    try:
        while True: text += os.read(parent, 65536)
    except OSError: pass
    shown.append([columns, plain, text.decode()])
print("SHOWN", json.dumps(shown), flush=True)
"""


def top_in_a_terminal(scratch):
    done = run(DRAWN % BINARY, "--quiet", "--budget", "4GiB")
    line = next((x for x in done.stderr.decode().splitlines() if x.startswith("SHOWN ")), "SHOWN []")
    shown = json.loads(line[6:])
    check("top draws in three terminals", len(shown) == 3, done.stderr)
    for columns, plain, text in shown:
        bare = re.sub("\x1b\\[[0-9;]*[A-Za-z]", "", text)
        longest = max(map(len, bare.replace("\r", "").split("\n")))
        check("%d columns%s: nothing is wider" % (columns, ", no colours" if plain else ""), longest <= columns and "KV cache" in bare and "GiB" in bare, (longest, text))
        check("... and it has colours as asked", ("\x1b[" in text) != plain, text)


ENGINE = CALLS + """
say('Starting to load model x'); at = take(512); say('GPU KV cache size: 4,096 tokens'); more = take(1024); say('Application startup complete.')
print('UP', flush=True); time.sleep(60)
"""
SCREENS = CALLS + """
import fcntl, json, pty, select, struct, subprocess, termios
def others(n):
    programs = [subprocess.Popen([%(b)r, "run", "--quiet", "--", sys.executable, "-c", %(p)r], stdout=subprocess.PIPE) for _ in range(n)]
    for one in programs:
        while b"UP" not in one.stdout.readline(): pass
    return programs
def screen(rows, columns):
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    env = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    before = termios.tcgetattr(child)
    top = subprocess.Popen([%(b)r, "top"], stdin=child, stdout=child, stderr=child, env=dict(env, TERM="xterm"), start_new_session=True)
    os.write(parent, b"d")
    text, until = b"", time.monotonic() + 4
    while time.monotonic() < until:
        if select.select([parent], [], [], 0.2)[0]: text += os.read(parent, 65536)
        elif text.count(b"\\033[H") and time.monotonic() > until - 2.5: break
    os.write(parent, b"q")
    try: code = top.wait(10)
    except subprocess.TimeoutExpired: code = top.kill()
    same = termios.tcgetattr(child) == before
    os.close(child)
    return [rows, columns, text.decode(), code, same]
running = others(2)
print("SHOWN", json.dumps([screen(24, 80), screen(12, 40)]), flush=True)
for one in running: one.kill()
"""


def top_fits_its_screen(scratch):
    """Two engines on 24 x 80 and on 12 x 40: nothing scrolls, nothing wraps, figures have headings, `q` ends it."""
    done = subprocess.run([BINARY, "dryrun", "--gpu", "L4", "--cuda", "12", "--", sys.executable, "-c", SCREENS % {"b": BINARY, "p": ENGINE}],
                          capture_output=True, text=True, timeout=120)
    line = next((x for x in done.stderr.splitlines() if x.startswith("SHOWN ")), "SHOWN []")
    shown = json.loads(line[6:])
    check("top draws two screens", len(shown) == 2, done.stderr[-2000:])
    for rows, columns, text, code, same in shown:
        bare = re.sub("\x1b\\[[0-9;]*[A-Za-z]", "", text.split("\x1b[H")[-1]).replace("\r", "").split("\n")
        check("%d x %d: every line is there" % (rows, columns), len(bare) <= rows and max(map(len, bare)) <= columns, bare)
        check("... of both engines", sum(bool(re.match("[0-9]+ +/", x)) for x in bare) >= 2, bare)
        check("... below how many run, and the key that ends it", bare[0].startswith("2 runs, ") and bare[-1].startswith("q "), bare)
        check("... what is left out is said", columns == 80 or "lines more" in "".join(bare), bare)
        check("... q ends it, and the terminal is as before", code == 0 and same, (code, same))
    wide = shown[0][2] if shown else ""
    check("figures have headings, and an engine that waits is ready", " now  at most" in wide and "runtime_prefill" not in wide and "ready" in wide, wide)


def a_turn_ends(scratch):
    """Who shares a card with one that is never ready waits for a while, and it is said."""
    for says, why in (("nothing of an engine", "nothing that the command prints is of an engine"),
                      ("Starting to load model x", "the engine has not said that it is ready")):
        share = "turn-%d" % os.getpid()
        slow = [sys.executable, "-c", "import time; print(%r, flush=True); time.sleep(8)" % says]
        env = dict(os.environ, OOMSIGHT_SHARE_SECONDS="2")
        script = ("import subprocess, time\nfirst = subprocess.Popen(%r)\ntime.sleep(0.7)\nstart = time.monotonic()\n"
                  "subprocess.run(%r)\nprint('WAITED', time.monotonic() - start, flush=True)\nfirst.terminate(); first.wait()" %
                  ([BINARY, "run", "--quiet", "--share", share, "--budget", "8GiB", "--", *slow], [BINARY, "run", "--quiet", "--share", share, "--", "true"]))
        told = subprocess.run([BINARY, "dryrun", "--gpu", "L4", "--cuda", "12", "--", sys.executable, "-c", script], capture_output=True, text=True, env=env, timeout=60).stderr
        seconds = float((re.findall("WAITED ([0-9.]+)", told) or ["0"])[0])
        check("the next one starts (%s)" % says, 0.5 < seconds < 6, seconds)
        check("... and why is said", why in told, told)


def engines_divide_a_card(scratch):
    """Both inside one dry run: its device has 22.03 GiB (L4), and each of them a context of 400 MiB."""
    first = CALLS + """
say("Starting to load model a"); weights = take(1024); time.sleep(0.5)
open(%(s)r + "/ready-a", "w").close()
say("Application startup complete")
while not os.path.exists(%(s)r + "/full-b"): time.sleep(0.05)
print("a gets", len(fill(512)), "more", flush=True)
free, total = ctypes.c_size_t(), ctypes.c_size_t()
gpu.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)); print("a sees", total.value >> 20, flush=True)
open(%(s)r + "/full-a", "w").close()
""" % {"s": scratch}
    second = CALLS + """
print("b starts", os.path.exists(%(s)r + "/ready-a"), flush=True)
print("b gets", len(fill(512)), flush=True)
open(%(s)r + "/full-b", "w").close()
while not os.path.exists(%(s)r + "/full-a"): time.sleep(0.05)
""" % {"s": scratch}
    for name, text in (("a", first), ("b", second)):
        with open("%s/%s.py" % (scratch, name), "w") as f: f.write(text)
    share = "divide-%d" % os.getpid()
    script = ('cd %s; "$0" run --share %s --budget 12GiB --report a.json -- python3 a.py & sleep 0.2; "$0" run --share %s --report b.json -- python3 b.py; '
              'wait; "$0" run --share %s --budget 30GiB -- true; echo "too much: $?"' % (scratch, share, share, share))
    done = subprocess.run([BINARY, "dryrun", "--output", scratch + "/d.json", "--json", "--gpu", "L4", "--outside", "400MiB", "--cuda", "12", "--", "sh", "-c", script, BINARY],
                          capture_output=True, timeout=120, env=dict(os.environ, OOMSIGHT_BUNDLE_DIR=scratch))
    log, device, a, b = done.stderr.decode(), load(scratch + "/d.json"), load(scratch + "/a.json"), load(scratch + "/b.json")
    total = a["devices"][0]["total_bytes"]
    check("the second starts when the first is ready", "b starts True" in log and "this one is next" in log, log)
    left = b["devices"][0]["budget_bytes"]
    check("without a budget it has what the first leaves", abs(left - (total - 12 * GIB)) <= 64 * MIB, (left, total))
    check("it gets all of that and no more", "b gets %d" % ((left - 400 * MIB) // (512 * MIB)) in log, log)
    check("what it holds is not counted against the first, which gets its own budget", "a gets %d more" % ((12 * GIB - 1024 * MIB - 400 * MIB) // (512 * MIB)) in log and
          "a sees 12288" in log, log)
    check("together they stay inside the card", device["child"]["failed_allocations"] == 0 and
          a["devices"][0]["peak_bytes"] + b["devices"][0]["peak_bytes"] <= total, device["child"])
    check("a budget that the card has not is an error", "too much: 2" in log, log)


WEDGES = {
    "cudaMalloc": "fill(512)",
    "an asynchronous pool": "take = lambda mib: gpu.cudaMallocAsync(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20), None) == 0 or None; fill(512)",
    "cuMemCreate": "prop = (ctypes.c_int * 8)(1, 0, 1, 0); gpu.cudaFree(None); "
                   "take = lambda mib: gpu.cuMemCreate(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20), prop, ctypes.c_ulonglong(0)) == 0 or None; fill(512)",
    "managed memory": "take = lambda mib: gpu.cudaMallocManaged(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20), 1) == 0 or None; fill(512)",
    "pinned memory": "take = lambda mib: gpu.cudaHostAlloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20), 0) == 0 or None; fill(512)",
    "two processes": "pid = os.fork(); fill(512); pid and os.waitpid(pid, 0)",
    "a host that grows beside it": "at = [take(512) for _ in range(20)]; host = bytearray(2 << 30); host[::4096] = b'x' * len(host[::4096]); fill(512)",
}


def a_machine_of_one_memory_is_not_wedged(scratch):
    """24 GiB for host and device; without `run` the program takes all of it."""
    for name, calls in WEDGES.items():
        program = CALLS + calls + "\nprint('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB.', flush=True)\n"
        device = [BINARY, "dryrun", "--json", "--gpu", "gb10", "--gpu-total", "24GiB", "--machine", "24GiB", "--outside", "100MiB", "--cuda", "12", "--"]
        env = dict(os.environ, OOMSIGHT_BUNDLE_DIR="%s/%s" % (scratch, name.replace(" ", "-")))
        alone = subprocess.run(device + [sys.executable, "-c", program], capture_output=True, env=env, timeout=120)
        if b"allows no mount" in alone.stderr:
            print("skip a machine of one memory: no mount here")
            return
        kept = subprocess.run(device + [BINARY, "run", "--unified", "8GiB", "--", sys.executable, "-c", program], capture_output=True, env=env, timeout=120)
        before, after = json.loads(alone.stdout), json.loads(kept.stdout)
        check("%s: wedged without run" % name, before["child"]["wedged"], (before["child"], alone.stderr))
        bundles = glob.glob(env["OOMSIGHT_BUNDLE_DIR"] + "/*/bundle.json")
        check("%s: with it an OutOfMemoryError and a bundle" % name, not after["child"]["wedged"] and after["child"]["oom_message"] and len(bundles) == 1,
              (after["child"], kept.stderr))


def a_device_of_one_memory_is_one_machine(scratch):
    """Of a GPU that shares the host's memory the total is the machine's, without being told so."""
    device = [BINARY, "dryrun", "--json", "--gpu", "gb10", "--outside", "100MiB", "--cuda", "12", "--"]
    total = "print('total', next(l.split()[1] for l in open('/proc/meminfo') if l.startswith('MemTotal')), flush=True)"
    done = subprocess.run(device + [sys.executable, "-c", total], capture_output=True, text=True, timeout=60, check=False)
    if "allows no mount" in done.stderr:
        print("skip a device of one memory: no mount here")
        return
    assert "total %d\n" % (130663055360 >> 10) in done.stderr, done.stderr
    shows = "import ctypes; a, b = ctypes.c_size_t(), ctypes.c_size_t(); ctypes.CDLL(None).cudaMemGetInfo(ctypes.byref(a), ctypes.byref(b)); print('shows', b.value, flush=True)"
    done = subprocess.run(device[:-1] + ["--machine", "16GiB", "--", sys.executable, "-c", shows], capture_output=True, text=True, timeout=60, check=False)
    assert "shows %d\n" % (16 << 30) in done.stderr + done.stdout, (done.stderr, done.stdout[:300])
    take = "import ctypes; print('took', ctypes.CDLL(None).cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(%d << 30)), flush=True)"
    for gib, want in ((100, "took 0\n"), (115, "took 2\n")):
        inner = [BINARY, "run", "--quiet", "--unified", "8GiB", "--", sys.executable, "-c", take % gib]
        done = subprocess.run(device + inner, capture_output=True, text=True, timeout=60, check=False)
        assert want in done.stderr, (gib, done.stderr, done.stdout[:300])


CASES = [a_machine_of_one_memory_is_not_wedged, a_device_of_one_memory_is_one_machine, engines_divide_a_card, the_output_is_passed_on_byte_for_byte, a_terminal_stays_a_terminal, a_failure_leaves_a_bundle, a_refusal_that_is_survived_leaves_one_too,
         who_asks_gets_a_bundle_and_old_ones_go, an_engine_that_runs_is_no_incident, top_shows_what_the_engine_says_of_itself, top_in_a_terminal, top_fits_its_screen, a_turn_ends, phases_and_owners_are_shown_while_it_runs, series_are_the_same_after_a_restart]


def main():
    wanted = sys.argv[2:]
    for case in CASES:
        if wanted and not any(word in case.__name__ for word in wanted): continue
        with tempfile.TemporaryDirectory() as scratch: case(scratch)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
