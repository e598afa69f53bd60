"""What stands beside the CUDA libraries in a dry run: nvidia-smi answers what engines ask it, a library that is opened by its path is the
stand-in, CuTe's runtime loads a kernel once and passes its calls on, and a fork can be given another run.    beside.py OOMSIGHT"""
import json
import os
import subprocess
import sys
import tempfile

INSIDE = r'''
import ctypes, os, subprocess, sys
def ask(*words):
    done = subprocess.run(["nvidia-smi", *words], capture_output=True, text=True)
    return done.returncode, done.stdout
expect = lambda got, wanted: got == wanted or sys.exit("%r, not %r" % (got, wanted))
expect(ask("--query-gpu=memory.total", "--format=csv,noheader,nounits"), (0, "24564\n24564\n"))
expect(ask("--query-gpu=compute_cap", "--format=csv,noheader"), (0, "8.9\n8.9\n"))
expect(ask("-i", "1", "--query-gpu=index,name,memory.total,clocks.sm", "--format=csv"),
       (0, "index, name, memory.total [MiB], clocks.sm\n1, NVIDIA GeForce RTX 4090, 24564 MiB, [N/A]\n"))
expect(ask("--query-gpu=driver_version", "--format", "csv,noheader")[0], 0)
expect(ask("-i", "7", "--query-gpu=name", "--format=csv"), (6, "No devices were found\n"))
expect(ask("--query-gpu=colour", "--format=csv")[0], 2)
expect(ask("topo", "-m")[0], 1)
expect([line.startswith("GPU %d: NVIDIA GeForce RTX 4090 (UUID: GPU-" % i) for i, line in enumerate(ask("-L")[1].splitlines())], [True] * 2)
expect("CUDA Version: 1" in ask()[1], True)

runtime = ctypes.CDLL(os.path.join(sys.argv[1], "libcudart.so." + sys.argv[2]))  # not even a library
at = ctypes.c_void_p()
expect(runtime.cudaMalloc(ctypes.byref(at), 1 << 20), 0)
try:
    ctypes.CDLL(os.path.join(sys.argv[1], "libother.so.1"))
    sys.exit("a library without a stand-in was opened")
except OSError:
    pass

cute = ctypes.CDLL(os.path.join(sys.argv[1], "libcute_dsl_runtime.so"))
calls = []
Init = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
Load = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int)
Raise = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)
def init(library):
    calls.append("init")
    library[0] = 4096
    return 0
init, raised = Init(init), Raise(lambda kind, text: calls.append((kind, text)))
load = Load(lambda library, device: calls.append(device) or 0)
state = ctypes.c_void_p()
for _ in range(2):
    expect(cute.cuda_dialect_init_library_once(ctypes.byref(state), init, load, raised), 0)
expect((calls, state.value), (["init", 0, 1], 4096))
state, calls[:] = ctypes.c_void_p(), []
expect(cute.cuda_dialect_init_library_once(ctypes.byref(state), init, Load(lambda library, device: 2), raised), -1)
expect((state.value, calls[1][0], b"cudaErrorMemoryAllocation" in calls[1][1]), (None, b"RuntimeError", True))
count = ctypes.c_int()
expect((cute._cudaGetDeviceCount(ctypes.byref(count)), count.value), (0, 2))
expect(cute._cudaMalloc(ctypes.byref(at), 3 << 20), 0)
expect(cute.CuteDSLRT_Function_Run(None, None), 801)
'''

# a process that has looked at its devices, and forks one that is given those of another run
FORKED = r'''
import ctypes, os, subprocess, sys, time
runtime = ctypes.CDLL("libcudart.so." + sys.argv[2])
def devices():
    count = ctypes.c_int()
    return runtime.cudaGetDeviceCount(ctypes.byref(count)), count.value
first = devices()
other = subprocess.Popen([sys.argv[1], "dryrun", "--quiet", "--cuda", sys.argv[2], "--gpu", "L4x3", "--", "sh", "-c", "echo $OOMSIGHT_SEGMENT > %s; read end" % sys.argv[3]],
                         stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
end = time.time() + 20
while time.time() < end and not (os.path.exists(sys.argv[3]) and open(sys.argv[3]).read().endswith("\n")):
    time.sleep(0.05)
out, into = os.pipe()
if os.fork() == 0:
    same = devices()
    os.write(into, repr(same).encode())
    os._exit(0)
os.wait()
same = os.read(out, 100).decode()
if os.fork() == 0:
    os.environ["OOMSIGHT_SEGMENT"] = open(sys.argv[3]).read().strip()
    at = ctypes.c_void_p()
    os.write(into, repr(devices() + (runtime.cudaMalloc(ctypes.byref(at), 1 << 20),)).encode())
    os._exit(0)
os.wait()
changed = os.read(out, 100).decode()
other.stdin.close()
other.wait()
seen = first, same, changed, devices()
seen == ((0, 2), "(0, 2)", "(0, 3, 0)", (0, 2)) or sys.exit(repr(seen))
'''

binary, failed = os.path.abspath(sys.argv[1]), 0
for major in ("12", "13"):
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("libcudart.so." + major, "libcute_dsl_runtime.so", "libother.so.1"):
            with open(os.path.join(scratch, name), "w", encoding="utf-8") as f:
                f.write("no library\n")
        done = subprocess.run([binary, "dryrun", "--json", "--gpu", "4090x2", "--cuda", major, "--", sys.executable, "-c", INSIDE, scratch, major],
                              capture_output=True, text=True, check=False)
        report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        counted = "_cudaMalloc" in report.get("calls", {}) and "CuteDSLRT_Function_Run" in report.get("refused_calls", {})
        if done.returncode or not counted:
            failed += 1
            print("CUDA %s: %d\n%s\n%s" % (major, done.returncode, done.stderr[-2000:], done.stdout[-1500:]))
        done = subprocess.run([binary, "dryrun", "--gpu", "4090x2", "--cuda", major, "--", sys.executable, "-c", FORKED, binary, major,
                               os.path.join(scratch, "segment")], capture_output=True, text=True, check=False)
        if done.returncode:
            failed += 1
            print("CUDA %s, forked: %d\n%s" % (major, done.returncode, done.stderr[-2000:]))
sys.exit(1 if failed else 0)
