#!/usr/bin/env python3
"""Refresh shim/calls/*.def from the dynamic symbol tables of the vendor's libraries (names and ABI facts only).

    tools/list_symbols.py --cuda12 SITE_PACKAGES --cuda13 SITE_PACKAGES [--driver STUB] [--include CUDA_INCLUDE]

SITE_PACKAGES is where pip put the `nvidia` wheels. What a row says of a name is kept; a new name is TAKE when
shim/phantom writes it by hand, SAME when it is another spelling of such a one, else NOOP or REFUSE by rule. Run by a
maintainer when a new CUDA comes out; the build reads the tables only. Standard library only."""
import argparse
import os
import re
import struct

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# table -> (folder of the hand-written bodies, file name by major, glob in the wheels)
LIBRARIES = {
    "cudart": ("cudart", {12: "libcudart.so.12", 13: "libcudart.so.13"}),
    "cublas": ("cublas", {12: "libcublas.so.12", 13: "libcublas.so.13"}),
    "cublaslt": ("cublaslt", {12: "libcublasLt.so.12", 13: "libcublasLt.so.13"}),
    "cudnn": ("cudnn", {12: "libcudnn.so.9", 13: "libcudnn.so.9"}),
    "nccl": ("nccl", {12: "libnccl.so.2", 13: "libnccl.so.2"}),
    "cufft": ("math", {12: "libcufft.so.11", 13: "libcufft.so.12"}),
    "curand": ("math", {12: "libcurand.so.10", 13: "libcurand.so.10"}),
    "cusolver": ("math", {12: "libcusolver.so.11", 13: "libcusolver.so.12"}),
    "cusparse": ("math", {12: "libcusparse.so.12", 13: "libcusparse.so.12"}),
    "cusparselt": ("math", {12: "libcusparseLt.so.0", 13: "libcusparseLt.so.0"}),
}
ROW = re.compile(r"^(TAKE|NOOP|REFUSE|HANDLE|SAME|PASS)\((\w+)(?:, (\w+))?, (BOTH|ONLY_12|ONLY_13)\)$")
MAJORS = {(12,): "ONLY_12", (13,): "ONLY_13", (12, 13): "BOTH"}


def dynamic_functions(path):
    """Names of the functions that an ELF64 shared object defines for others."""
    with open(path, "rb") as f:
        head = f.read(64)
        offset, = struct.unpack_from("<Q", head, 40)
        size, count = struct.unpack_from("<HH", head, 58)
        f.seek(offset)
        sections = [struct.unpack("<IIQQQQIIQQ", f.read(64)) for _ in range(count)]
        names = set()
        for section in sections:
            if section[1] != 11:  # SHT_DYNSYM
                continue
            f.seek(section[4])
            symbols = f.read(section[5])
            strings = sections[section[6]]
            f.seek(strings[4])
            text = f.read(strings[5])
            for at in range(0, len(symbols), 24):
                name, info, _, index = struct.unpack_from("<IBBH", symbols, at)
                if index and info & 15 in (2, 10):  # FUNC, GNU_IFUNC
                    names.add(text[name:text.index(b"\0", name)].decode())
        return {n for n in names if not n.startswith(("_Z", "_init", "_fini"))}  # no C++ internals


def find(top, name):
    for folder, _, files in os.walk(os.path.join(top, "nvidia")):
        if name in files:
            return os.path.join(folder, name)
    raise SystemExit("%s: no %s" % (top, name))


def hand_written(folder):
    names = set()
    base = os.path.join(ROOT, "shim", "phantom", folder)
    for entry in sorted(os.listdir(base)):
        if entry.endswith(".c"):
            with open(os.path.join(base, entry), encoding="utf-8") as f:
                names |= set(re.findall(r"^TAKE\([^,]+,\s*(\w+)", f.read(), re.M))
    return names


def rule(table, name):
    """A call that hands something out cannot succeed without doing it; one that only acts can."""
    if table == "nvml":
        return "REFUSE"
    if re.search(r"Destroy|Unregister|Free|Release", name):
        return "NOOP"
    if re.match(r"(cudnn|cublas|cublasLt|cusolver|cusolverDn|cusparse|curand)Create", name):
        return "HANDLE"
    if re.search(r"Create|Alloc|Import|Export|Open", name):
        return "REFUSE"
    if re.search(r"Get|Query|bufferSize|BufferSize|Size$|estimate|Multicast|multicast|Enumerate", name):
        return "REFUSE"
    return "NOOP"


def rows(table, taken, by_name, old):
    for name in sorted(by_name):
        majors = MAJORS[tuple(sorted(by_name[name]))]
        plain = re.sub(r"_(ptsz|ptds)$", "", name)
        if name in taken:
            yield "TAKE(%s, %s)" % (name, majors)
        elif plain != name and plain in taken:
            yield "SAME(%s, %s, %s)" % (name, plain, majors)
        else:
            kind = old.get(name)
            yield "%s(%s, %s)" % (kind if kind in ("NOOP", "REFUSE", "HANDLE") else rule(table, name), name, majors)


def write(table, taken, by_name, extra=()):
    path = os.path.join(ROOT, "shim", "calls", table + ".def")
    old = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                found = ROW.match(line)
                if found:
                    old[found.group(2)] = found.group(1)
    for name in taken - set(by_name):
        print("%s: %s is written by hand but no library has it" % (table, name))
    with open(path, "w", encoding="utf-8") as f:
        f.write("/* Every function of %s, and what becomes of it. Read by tools/gen_calls.py, which says what the\n"
                " * words mean; refreshed by tools/list_symbols.py. */\n" % table)
        for row in list(rows(table, taken, by_name, old)) + list(extra):
            f.write(row + "\n")
    print(table, len(by_name))


def driver_versions(include, names):
    """Which spelling of a driver call came with which CUDA: cuGetProcAddress answers by the caller's version."""
    with open(os.path.join(include, "cudaTypedefs.h"), encoding="utf-8") as f:
        found = re.findall(r"\*PFN_(cu[A-Z]\w*?)_v(\d+)(?:_ptds|_ptsz)?\)", f.read())
    versions = {}
    for name, version in found:
        versions.setdefault(name, set()).add(int(version))
    for name in sorted(versions):
        spellings = [n for n in [name] + ["%s_v%d" % (name, i) for i in range(2, 9)] if n in names]
        known = sorted(versions[name])
        for version, spelling in zip(reversed(known), reversed(spellings)):
            if len(spellings) > 1:
                yield "SINCE(%s, %d, %s)" % (name, version, spelling)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda12", required=True)
    parser.add_argument("--cuda13", required=True)
    parser.add_argument("--driver", default="/usr/local/cuda/lib64/stubs/libcuda.so")
    parser.add_argument("--include", default="/usr/local/cuda/include")
    options = parser.parse_args()
    tops = {12: options.cuda12, 13: options.cuda13}
    for table, (folder, files) in LIBRARIES.items():
        by_name = {}
        for major, name in files.items():
            for function in dynamic_functions(find(tops[major], name)):
                if table == "cusparselt" and not function.startswith("cusparseLt"):
                    continue  # the CUDA 12 build lets its internals out
                by_name.setdefault(function, set()).add(major)
        taken = hand_written(folder)
        write(table, taken & set(by_name) if folder == "math" else taken, by_name)

    names = dynamic_functions(options.driver)
    write("cuda", hand_written("cuda"), {n: {12, 13} for n in names}, driver_versions(options.include, names))
    with open(os.path.join(tops[13], "pynvml.py"), encoding="utf-8") as f:
        names = set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', f.read()))
    taken = hand_written("nvml")
    write("nvml", taken, {n: {12, 13} for n in names | taken})


if __name__ == "__main__":
    main()
