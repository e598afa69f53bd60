"""The stand-ins export exactly the names of their tables, under the version node of the real library."""
import os
import re
import subprocess
import sys

build = sys.argv[1]
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILES = {"cuda": ("libcuda.so.1",) * 2, "nvml": ("libnvidia-ml.so.1",) * 2, "cudart": ("libcudart.so.12", "libcudart.so.13"),
         "cublas": ("libcublas.so.12", "libcublas.so.13"), "cublaslt": ("libcublasLt.so.12", "libcublasLt.so.13"),
         "cudnn": ("libcudnn.so.9",) * 2, "nccl": ("libnccl.so.2",) * 2, "cufft": ("libcufft.so.11", "libcufft.so.12"),
         "curand": ("libcurand.so.10",) * 2, "cusolver": ("libcusolver.so.11", "libcusolver.so.12"),
         "cusparse": ("libcusparse.so.12",) * 2, "cusparselt": ("libcusparseLt.so.0",) * 2,
         "cute_dsl_runtime": ("libcute_dsl_runtime.so",) * 2}
NO_NODE = {"cuda", "nvml", "nccl", "cusparselt", "cute_dsl_runtime"}
failed = 0
for table, names in FILES.items():
    with open(os.path.join(root, "shim", "calls", table + ".def"), encoding="utf-8") as f:
        text = f.read()
    for major, name in zip((12, 13), names):
        wanted = {n for n, m in re.findall(r"^(?:TAKE|NOOP|REFUSE|HANDLE|SAME|PASS)\((\w+),(?: \w+,)? (\w+)\)$", text, re.M)
                  if m in ("BOTH", "ONLY_%d" % major)}
        path = os.path.join(build, "cuda%d" % major, name)
        listing = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        found = {}
        for line in listing.splitlines():
            symbol, _, node = line.split()[-1].partition("@")
            found[symbol] = node.strip("@")
        found.pop(name, None)
        if table == "cuda":
            found.pop("oos_driver_entry", None)
            found.pop("dlopen", None)
        dynamic = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        nodes = {found[n] for n in wanted & set(found)}
        right = nodes == ({""} if table in NO_NODE else {name})
        if set(found) != wanted or not right or "[%s]" % name not in dynamic:
            failed += 1
            print("%s: %d missing, %d too many, nodes %s" % (path, len(wanted - set(found)), len(set(found) - wanted), nodes))
print("%d tables checked, %d wrong" % (2 * len(FILES), failed))
sys.exit(1 if failed else 0)
