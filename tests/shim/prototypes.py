"""Where the vendor's headers are installed, the arguments of every hand-written function agree with them: as many, and
pointer for pointer, number for number, structure for structure. Exit 77 when there are none."""
import os
import re
import sys

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
include = os.environ.get("CUDA_INCLUDE", "/usr/local/cuda/include")
HEADERS = ["cuda.h", "cuda_runtime_api.h", "cublas_api.h", "cublasLt.h", "cudnn_graph_v9.h", "cudnn_ops_v9.h", "cudnn_adv_v9.h", "nccl.h", "cusolverDn.h",
           "cusparse.h", "cufft.h", "cufftXt.h"]
BY_VALUE = {"dim3", "dim3_args", "cudaIpcMemHandle_t", "ipc_handle", "ncclUniqueId", "unique_id"}
HANDLES = re.compile(r"^(CU(stream|event|graph|graphExec|context|module|function|kernel|library|deviceptr|memoryPool|"
                     r"memGenericAllocationHandle)|cuda(Stream|Event|Graph|GraphExec|MemPool|Kernel|Library|GraphNode)|"
                     r"cublas\w*Handle|cublasLt\w+|cudnn\w*Handle|cudnnBackendDescriptor|ncclComm|cudnn\w+Descriptor|"
                     r"CUgraphNode|ncclWindow|cudaHostFn|cudaStreamCallback|CUhostFn|cudaUserObject)(_t)?$")
if not os.path.exists(os.path.join(include, "cuda_runtime_api.h")):
    print("no headers in", include)
    sys.exit(77)


def kind(parameter):
    parameter = re.sub(r"/\*.*?\*/|\b(const|struct|enum|unsigned|__dv\([^)]*\))\b", " ", parameter, flags=re.S)
    parameter = re.sub(r"__dv\([^)]*\)|=.*", " ", parameter)
    if "*" in parameter or "[" in parameter:
        return "pointer"
    words = parameter.split()
    if not words or words == ["void"]:
        return None
    if HANDLES.match(words[0]):
        return "pointer"
    if words[0] in BY_VALUE:
        return "structure"
    return "float" if words[0] in ("float", "double") else "number"


def split(text):
    parts, depth, current = [], 0, ""
    for c in text:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += c
    return [k for k in map(kind, parts + [current]) if k]


wanted, sizes = {}, {}
for header in HEADERS:
    path = os.path.join(include, header)
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as f:
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", f.read(), flags=re.S)
        text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
        for name, arguments in re.findall(r"(?<!return )\b((?:__)?(?:cu|nccl)\w+)\s*\(((?:[^()]|\([^()]*\))*)\)\s*;", text):
            wanted.setdefault(name, []).append(split(arguments))
            whole = [a.split() for a in arguments.split(",") if a.split() and kind(a) != "float"]
            sizes[name] = [(a[0].rstrip("*"), "*" in " ".join(a)) for a in whole]

variants = {}  # a function may be written once per CUDA major; one of them has to agree
for folder, _, files in os.walk(os.path.join(root, "shim", "phantom")):
    for file in files:
        if not file.endswith(".c"):
            continue
        with open(os.path.join(folder, file), encoding="utf-8") as f:
            text = f.read()
        for name, arguments in re.findall(r"^TAKE\([^,]+,\s*(\w+),((?:[^()]|\([^()]*\)|\((?:[^()]|\([^()]*\))*\))*)\)\n?\{?",
                                          text, re.M):
            if name not in wanted:
                continue
            variants.setdefault(name, []).append(split(arguments))
wrong = 0
places = 0  # PASS(name, oos_none_KIND_PLACE): an argument there takes the size
for table in sorted(os.listdir(os.path.join(root, "shim", "calls"))):
    with open(os.path.join(root, "shim", "calls", table), encoding="utf-8") as f:
        rows = re.findall(r"^PASS\((\w+), oos_none_(int|size|sizes)_(\d+), \w+\)$", f.read(), re.M)
    for name, word, place in rows:
        have = sizes.get(name, [])[int(place) - 1:int(place) + (word == "sizes")]
        want = [("int" if word == "int" else "size_t", True)] * (2 if word == "sizes" else 1)
        places += name in sizes
        if name in sizes and have != want:
            wrong += 1
            print("%s: argument %s is %s" % (name, place, have))
print("%d sizes in their place" % (places - wrong))
for name, ours in sorted(variants.items()):
    # trailing arguments that a body does not look at may be left out
    if not any(mine == theirs[:len(mine)] for theirs in wanted[name] for mine in ours):
        wrong += 1
        print("%s has %s, the header %s" % (name, ours, wanted[name]))
print("%d prototypes checked, %d differ" % (len(variants), wrong))
sys.exit(1 if wrong else 0)
