"""What stands beside the CUDA libraries in a dry run: nvidia-smi answers what engines ask it, a library that is opened by its path is the
stand-in, and CuTe's runtime loads a kernel once and passes its calls on.    beside.py OOMSIGHT"""
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
sys.exit(1 if failed else 0)
