"""Starts of an engine from a process that has imported it, each a whole dry run of its own.

    with forked.Engine(binary, folder, gpu, modules) as bin_folder: ... `oomsight dryrun -- sglang serve ...` (or vllm, by `name`) with bin_folder first in PATH

An import takes most of a start on a small machine, and a server imports three times. Here one process (`--keep`, started by a dry run
whose device nobody touches) has imported the engine; the program of the engine's name in `bin_folder` hands its words, its
environment and its output to that process, which forks the server. The stand-ins attach to a run at the first call, so the fork is in
the caller's run: device, log, phases and report are its own. Processes that the server starts are forked as well, instead of spawned.
While it is imported the engine asks what device there is; it is told from what a first dry run printed."""
import array
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

ASKED = ("name", "major", "minor", "total_memory", "multi_processor_count", "max_threads_per_multi_processor", "warp_size", "is_integrated",
         "is_multi_gpu_board", "regs_per_multiprocessor", "shared_memory_per_block", "shared_memory_per_block_optin",
         "shared_memory_per_multiprocessor", "L2_cache_size")
CLIENT = '''#!%s
import sys
sys.path.insert(0, %r)
import forked
sys.exit(forked.call(%r, sys.argv))
'''


_kept = {}


class Told:
    """Properties of a device that is not asked."""

    def __init__(self, values):
        self.__dict__.update(values)


def call(path, argv):
    """The program of the engine's name."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(path)
        said = json.dumps({"argv": argv, "env": dict(os.environ), "cwd": os.getcwd()}).encode()
        link.sendmsg([len(said).to_bytes(8, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1, 2]))])
        link.sendall(said)
        signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # the other side sees it and ends the server
        return int(link.recv(64) or b"1")


def asked_for(link):
    head, rights, _, _ = link.recvmsg(8, socket.CMSG_SPACE(8))
    fds = array.array("i")
    fds.frombytes(rights[0][2][:8])
    size, said = int.from_bytes(head, "little"), b""
    while len(said) < size:
        said += link.recv(size - len(said))
    return json.loads(said), list(fds)


def tell(torch, device):
    """Questions about the device, answered here: PyTorch lets no process use it whose parent has asked so much as how many there are."""
    one = Told(device)
    for name, value in (("is_available", True), ("device_count", device["count"]), ("current_device", 0), ("_lazy_init", None),
                        ("get_device_properties", one), ("get_device_capability", (one.major, one.minor)), ("get_device_name", one.name)):
        _kept[name] = getattr(torch.cuda, name)
        setattr(torch.cuda, name, lambda *args, _value=value, **kwargs: _value)


def untold(torch):
    for name, value in _kept.items():
        setattr(torch.cuda, name, value)
    _kept.clear()


def server(job, fds, run):
    """In the fork: the engine's own program."""
    import multiprocessing

    import torch
    os.setsid()
    os.dup2(fds[0], 1)
    os.dup2(fds[1], 2)
    os.environ.clear()
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
    os.register_at_fork(after_in_child=lambda: untold(torch))  # the server itself is told, its processes ask
    multiprocessing.set_start_method = lambda *args, **kwargs: None  # fork
    sys.argv = job["argv"]
    try:
        run()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException:  # noqa: BLE001 whatever it ends with
        import traceback
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def attend(link, run):
    """One start, until it ends or its caller does."""
    job, fds = asked_for(link)
    pid = os.fork()
    if pid == 0:
        server(job, fds, run)
    for fd in fds:
        os.close(fd)
    link.setblocking(False)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            link.setblocking(True)
            link.sendall(b"%d" % (code if code >= 0 else 128 - code))
            break
        try:
            if not link.recv(1):
                break
        except BlockingIOError:
            time.sleep(0.1)
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if not done:
        os.waitpid(pid, 0)


def program(name):
    """What the engine's command runs."""
    if name == "vllm":
        from vllm.entrypoints.cli.main import main
        from vllm.model_executor.models import registry
        registry._run_in_subprocess = lambda function: function()  # another import of everything
        return main
    from sglang.cli.main import main
    return main


def keep(path, device, name, modules):
    """Imports and forks, for ever."""
    import gc
    import importlib

    import torch
    with open(device, encoding="utf-8") as f:
        tell(torch, json.load(f))
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 a release may not have it
            print("not imported:", module, repr(error)[:200], flush=True)
    run = program(name)
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(1)
    while True:
        link, _ = listening.accept()
        with link:
            attend(link, run)


class Engine:
    """The process that keeps an engine, for one kind of device."""

    def __init__(self, binary, folder, env, gpu, modules, name="sglang"):
        self.name, self.binary, self.python, self.env, self.gpu, self.modules = name, binary, os.path.join(folder, "bin", "python"), env, gpu, modules

    def __enter__(self):
        self.place = tempfile.TemporaryDirectory()
        name, here = self.place.name, os.path.abspath(__file__)
        device, path = os.path.join(name, "device.json"), os.path.join(name, "socket")
        asked = "import json, torch; p = torch.cuda.get_device_properties(0); " \
            "json.dump({'count': torch.cuda.device_count(), **{n: getattr(p, n) for n in %r if hasattr(p, n)}}, open(%r, 'w'))"
        run = [self.binary, "dryrun", "--gpu", self.gpu, "--timeout", "100000", "--", self.python]
        subprocess.run(run + ["-c", asked % (ASKED, device)], env=self.env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.mkdir(os.path.join(name, "bin"))
        with open(os.path.join(name, "bin", self.name), "w", encoding="utf-8") as f:
            f.write(CLIENT % (self.python, os.path.dirname(here), path))
            os.fchmod(f.fileno(), 0o755)
        self.log = open(os.path.join(name, "log"), "w", encoding="utf-8")
        self.process = subprocess.Popen(run + [here, "--keep", path, device, self.name, *self.modules], env=self.env, stdout=self.log, stderr=self.log)
        end = time.time() + 300
        while not os.path.exists(path):
            if self.process.poll() is not None or time.time() > end:
                with open(self.log.name, encoding="utf-8", errors="replace") as f:
                    text = f.read()[-2000:]
                self.__exit__()
                raise RuntimeError("the engine is not there: " + text)
            time.sleep(0.2)
        return os.path.join(name, "bin")

    def __exit__(self, *why):
        self.process.terminate()
        self.process.wait()
        self.log.close()
        self.place.cleanup()


if __name__ == "__main__" and sys.argv[1:2] == ["--keep"]:
    keep(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
