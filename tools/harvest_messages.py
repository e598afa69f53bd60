#!/usr/bin/env python3
"""Sentences about lacking memory, taken from sources: harvest_messages.py [NAME[@VERSION]=FOLDER...] [--environment FOLDER...] [--against FILE]

Walks each folder and takes every format string that is raised, or logged at warning and above, and that says that memory is lacking. What is
constant stays, what is filled in becomes {}. An environment of an engine stands for those compiled libraries in it that print something about memory
(LIBRARIES): the strings of their read-only data are taken. Prints one line of JSON a sentence, with where it is from; --against prints those alone
that no format of FILE holds (tests/explain/messages.json), and exits 1 when there are any. Standard library only."""

import argparse
import ast
import glob
import json
import mmap
import os
import re
import struct
import sys

# What may be lacking, and how one says that it is. Both lists are read by people in data/explain/words.json.
NOUN = re.compile(r"\bmemory\b|\boom\b|\bvram\b|\bdram\b|\bhbm\b|\bshm\b|/dev/shm|\bkv[ _]?cache\b|\bcache blocks?\b|\bswap space\b|"
                  r"\bworkspace\b|\bbuffers?\b|\bpool\b|\bslots?\b|\bblocks?\b|\bsegment\b|\bmemory_?pool|\bmem\b|[KMGT]i?B\b|\bbytes\b", re.I)
LACK = re.compile(r"out[ -]of[ -](?:\w+ )?memory|\boom\b|insufficient|not enough|no (?:more )?(?:available|free|enough|room|space)|exhaust|run(?:s|ning)? out|"
                  r"ran out|too (?:small|large|big|little)|exceed|larger than|less than|greater than|smaller than|"
                  r"(?:fail\w*|unable|cannot|can't|could not|couldn't|error)\b.{0,40}\b(?:alloc\w*|reserv\w*|map|mapping|fit|creat\w*|malloc|calloc|extend|resiz\w*|register)|"
                  r"(?:alloc\w*|malloc|calloc|mmap|mapping|reserv\w*)\b.{0,40}\b(?:fail\w*|error)|(?:do|does|did|will|would|can)(?: ?n[o']t|not) fit|unbalanced|no memory", re.I)
ADVICE = re.compile(r"\bif (?:you|out|this|it)\b|to avoid|consider |may (?:cause|lead|result|run)|might |could (?:cause|lead|result)|deprecat|recommend|in case of", re.I)
# Words that make it about memory even if the noun is a vague one.
STRONG = re.compile(r"\bmemory\b|\boom\b|\bvram\b|\bdram\b|\bhbm\b|/dev/shm|\bkv[ _]?cache\b|cache blocks?\b|swap space|alloc|\bmmap\b|[KMGT]i?B\b|\bbytes\b", re.I)
NOT_MEMORY = re.compile(r"illegal memory access|memory leak|memory format|shared memory config|channels_last|contiguous|memory_format|checksum|"
                        r"block_?size|head_?size|not supported|unsupported|must be|invalid|expected|mismatch|divisible|batch_size is|\brank\b.*max_lora_rank|"
                        r"dimension|index out|out of bounds|out of range|timeout|token ids|unexpected|file name|header|fd\b|num_heads", re.I)
LOGGED = {"warning", "warn", "error", "critical", "exception", "fatal", "warning_once", "error_once", "warning_rank0"}


def says_so(text):
    return bool(NOUN.search(text) and LACK.search(text) and STRONG.search(text)) and not NOT_MEMORY.search(text)


def tidy(text):
    text = re.sub(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t)?[diuoxXfFeEgGcsp]|%\([\w]+\)[sdrf]|\{[^{}]*\}", "{}", text)
    text = re.sub(r"\\n|\s+", " ", text).strip()
    return re.sub(r"(?:\{\}\s*){2,}", "{} ", text).strip()


def useful(sentence):
    text = tidy(sentence)
    return 12 <= len(text) <= 400 and says_so(text) and not ADVICE.search(text.split(". ")[0])


# ---- Python

def template(node):
    """A format string with {} for what is filled in; None when nothing of it is constant."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else "{}" for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return template(node.left)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [template(node.left), template(node.right)]
        return None if parts == [None, None] else "".join(p if p is not None else "{}" for p in parts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return template(node.func.value)
    return None


class Visitor(ast.NodeVisitor):
    def __init__(self):
        self.found = []
        self.named = {}  # msg = "..." before raise ValueError(msg)

    def visit_Assign(self, node):
        text = template(node.value)
        if text and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self.named[node.targets[0].id] = text
        self.generic_visit(node)

    def take(self, node):
        text = self.named.get(node.id) if isinstance(node, ast.Name) else template(node)
        if text:
            self.found.append(text)

    def visit_Raise(self, node):
        if isinstance(node.exc, ast.Call):
            for arg in node.exc.args:
                self.take(arg)
        self.generic_visit(node)

    def visit_Assert(self, node):
        if node.msg is not None:
            self.take(node.msg)
        self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute) and node.func.attr in LOGGED and node.args:
            self.take(node.args[0])
        self.generic_visit(node)


def from_python(text):
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    visitor = Visitor()
    visitor.visit(tree)
    return visitor.found


# ---- C, C++, CUDA, Rust, Go: string literals of statements that throw, check, or log at warning and above

SPOKEN = re.compile(r"(?:TORCH_CHECK\w*|TORCH_WARN\w*|throw\b|LOG\((?:ERROR|WARNING|FATAL)\)|RAY_LOG\((?:ERROR|WARNING|FATAL)\)|\w*LOG_(?:ERR(?:OR)?|WARN(?:ING)?)\w*|"
                    r"\bWARN\(|LOG_ERR\w*|\w*_ERROR\w*\(|GGML_ABORT|CHECK_WITH_INFO|fprintf\(stderr|NVSHMEMI_ERROR\w*|NZ_ERROR_JMP|NULL_ERROR_JMP|std::runtime_error|"
                    r"format_err!|bail!|anyhow!|(?:tracing::)?(?:error|warn)!|panic!|#\[error\(|errors\.New|fmt\.Errorf|slog\.(?:Error|Warn)|Status::\w+|cerr)")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def from_brackets(text):
    found = []
    for start in SPOKEN.finditer(text):
        statement = text[start.start():start.start() + 600]
        end = statement.find(";")
        statement = statement[:end] if end > 0 else statement
        parts = LITERAL.findall(statement)
        if parts:
            found.append(re.sub(r'PRI[du]64|\\"', "", " ".join(parts) if "<<" not in statement and "," not in statement else "{}".join(parts)))
    return found


# Name, the package whose version it has, and the file below site-packages.
LIBRARIES = [("torch", "torch", "torch/lib/libc10_cuda.so"), ("torch", "torch", "torch/lib/libtorch_cuda.so"),
             ("nccl", "nvidia_nccl_cu*", "nvidia/nccl/lib/libnccl.so.2"),
             ("cublas", "nvidia_cublas*", "nvidia/*/lib/libcublas.so.1*"), ("cublas", "nvidia_cublas*", "nvidia/*/lib/libcublasLt.so.1*")]


def of_environment(folder):
    """[(name, version, file)] of the libraries that are there."""
    found = []
    for site in glob.glob(os.path.join(folder, "lib/python3*/site-packages")):
        for name, package, file in LIBRARIES:
            versions = [re.search(r"-([\d.]+\d)", os.path.basename(info)) for info in sorted(glob.glob(os.path.join(site, package + "-*.dist-info")))]
            found += [(name, versions[-1].group(1) if versions and versions[-1] else "", path) for path in sorted(glob.glob(os.path.join(site, file)))]
    return found


def constants(data):
    """The read-only data of an ELF file of 64 bits, section by section: the code for GPUs, most of such a library, holds no sentences."""
    if data[:5] != b"\x7fELF\x02":
        return [(0, len(data))]
    table, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    rows = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    title = lambda row: data[rows[names][4] + row[0]:rows[names][4] + row[0] + 8]
    return [(row[4], row[4] + row[5]) for row in rows if title(row).startswith((b".rodata", b".lrodata"))]


def from_binary(path):
    found = []
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for start, end in constants(data):
            for line in re.findall(rb"[\t\n\x20-\x7e]{12,}", data[start:end]):
                found += [part for part in re.split(r"\n(?=[A-Z])", line.decode("ascii")) if len(part) < 300 and " " in part]
    return found


READERS = {".py": from_python, **dict.fromkeys((".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".rs", ".go"), from_brackets)}
LEFT_OUT = re.compile(r"(?:^|/)(?:tests?|testing|benchmarks?|docs?|examples?|tools|ci|\.github|third_?party|vendor)(?:/|$)")


def wanted(path):
    return os.path.splitext(path)[1] in READERS and not LEFT_OUT.search(os.path.dirname(path)) and not os.path.basename(path).startswith("test_")


def walk(folder):
    """(file, format string) of a folder of sources."""
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        relative = os.path.relpath(base, folder)
        if LEFT_OUT.search(relative):
            continue
        for name in sorted(files):
            if not wanted(name):
                continue
            reader = READERS[os.path.splitext(name)[1]]
            with open(os.path.join(base, name), encoding="utf-8", errors="replace") as file:
                text = file.read()
            if not LACK.search(text):
                continue
            for sentence in reader(text):
                yield os.path.normpath(os.path.join(relative, name)), sentence


def new_against(path, rows):
    """Sentences of which no known format holds the words; placeholders do not count, nor do lines of source."""
    def words(text):
        return re.sub(r"[^A-Za-z]+", " ", re.sub(r"\{[^{}]*\}", " ", text.split("INTERNAL ASSERT")[0])).lower().strip()
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    known = [words(row["format"]) for row in data["messages"] + data["exceptions"]]
    new = [row for row in rows if not any(words(row["text"]) in have for have in known)]
    for row in new:
        print("%s %s: %s" % (row["source"], row["version"], row["text"]))
    print("harvest_messages: %d of %d sentences are in no format" % (len(new), len(rows)))
    return 1 if new else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="*", metavar="NAME[@VERSION]=FOLDER")
    parser.add_argument("--environment", action="append", default=[], metavar="FOLDER", help="of an engine, with its PyTorch")
    parser.add_argument("--against", metavar="FILE")
    args = parser.parse_args()
    places = []  # (name, version, file and sentence)
    for source in args.sources:
        who, _, folder = source.partition("=")
        name, _, version = who.partition("@")
        places.append((name, version, walk(folder)))
    for name, version, path in (one for folder in args.environment for one in of_environment(folder)):
        places.append((name, version, [(os.path.basename(path), text) for text in from_binary(path)]))
    table = {}
    for name, version, sentences in places:
        for path, sentence in sentences:
            if useful(sentence):
                text = tidy(sentence)
                text = text.split(". ")[0] if len(text) > 160 else text
                versions = {version, table.get((name, text), {"version": ""})["version"]}
                table[name, text] = {"source": name, "text": text, "file": path, "version": max(versions, key=lambda v: [int(p) for p in re.findall(r"\d+", v)])}
    rows = sorted(table.values(), key=lambda r: (r["source"], r["file"], r["text"]))
    if args.against:
        return new_against(args.against, rows)
    print("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
