#!/usr/bin/env python3
"""Reports of failures, written by us, each with its label: render.py [--check] [--list]

A recipe of recipes.py says what an engine prints when one mechanism happens: which lines, in which order, with figures that add
up, under which prefix, and where the text is cut. Its label is the mechanism, never what `explain` answers. Every draw comes from the id
of the report, so that the same recipes give the same files anywhere. Writes reports/ID.log and reports/labels.jsonl in the form
that tools/score_explain.py reads; --check compares instead and names what differs. Standard library only."""
import hashlib
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPORTS = os.path.join(HERE, "reports")
sys.dont_write_bytecode = True

with open(os.path.join(HERE, "frames.json"), encoding="utf-8") as opened:
    KNOWN = json.load(opened)
# Folders into which people install: none of them is that of an image.
ROOTS = ["/opt/serving/lib/python3.12/site-packages", "/srv/llm/venv/lib/python3.11/site-packages", "/data/envs/infer/lib/python3.10/site-packages",
         "/app/.venv/lib/python3.12/site-packages", "/home/user/miniforge3/envs/engine/lib/python3.11/site-packages"]
# Total of a card as PyTorch prints it, in GiB.
CARDS = {"t4": 14.56, "rtx4080": 15.69, "rtx4070": 11.61, "a10g": 22.18, "l4": 22.02, "rtx4090": 23.54, "rtx5090": 31.34, "a100-40": 39.38, "l40s": 44.39,
         "rtx6000": 47.36, "a100-80": 79.18, "h100": 79.19, "rtxpro": 94.96, "h200": 139.79, "b200": 178.34}
# PyTorch's minor release by that of the engine; below it lines of PyTorch's own files, near those of that release.
TORCH = {"0.4.2": "2.3", "0.5.4": "2.4", "0.6.3": "2.4", "0.7.2": "2.5", "0.8.1": "2.6", "0.9.0": "2.7", "0.10.0": "2.7", "0.11.2": "2.9", "0.13.0": "2.9", "0.15.1": "2.9",
         "0.20.1": "2.11", "0.24.0": "2.11", "0.27.1": "2.11", "0.4.1": "2.5", "0.4.6": "2.6", "0.5.1": "2.8", "0.5.6": "2.9"}
MODULE = {"2.3": (1532, 1541), "2.4": (1553, 1562), "2.5": (1736, 1747), "2.6": (1739, 1750), "2.7": (1751, 1762), "2.8": (1773, 1784), "2.9": (1775, 1786), "2.11": (1779, 1790)}
CONTEXT = {"2.3": 115, "2.4": 116, "2.5": 116, "2.6": 116, "2.7": 116, "2.8": 120, "2.9": 120, "2.11": 124}
DEVICE = {"2.3": 78, "2.4": 79, "2.5": 106, "2.6": 104, "2.7": 104, "2.8": 103, "2.9": 103, "2.11": 109}
GRAPHS = {"2.3": (183, 81), "2.4": (185, 83), "2.5": (185, 83), "2.6": (186, 84), "2.7": (186, 84), "2.8": (227, 116), "2.9": (268, 130), "2.11": (273, 133)}

MIB, GIB = 1 << 20, 1 << 30


def size(count):
    """A size as PyTorch's format_size prints it."""
    count = int(count)
    for limit, unit, name in ((1024, 1, "bytes"), (MIB, 1024, "KiB"), (GIB, MIB, "MiB")):
        if count <= limit:
            return f"{count} bytes" if unit == 1 else f"{count / unit:.2f} {name}"
    return f"{count / GIB:.2f} GiB"


def mib(text):
    """What a printed size says, in MiB."""
    value, unit = re.match(r"(-?[\d.]+) ?(bytes|[KMG]i?B)$", text).groups()
    return round(float(value) * {"bytes": 1 / MIB, "K": 1 / 1024, "M": 1, "G": 1024}[unit if unit == "bytes" else unit[0]], 4)


class Draw:
    """Everything that is drawn for one report, and what its label gets."""

    def __init__(self, name, variant):
        self.name, self.variant, self.count = name, variant, 0
        self.numbers, self.formats, self.engine_version, self.gpu = {}, [], "", None
        self.key = self.release = None
        self.root = self.pick(ROOTS)
        self.month, self.day, self.second = self.below(12) + 1, self.below(28) + 1, self.below(86000)
        self.pid = 300 + self.below(90000)
        self.torch, self.fine, self.fine_at = "2.8", 0, 0
        self.carets = self.chance(2)

    def below(self, limit):
        self.count += 1
        return int.from_bytes(hashlib.sha256(f"{self.name}-{self.variant}/{self.count}".encode()).digest()[:8], "big") % limit

    def chance(self, of):
        return self.below(of) == 0

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def real(self, low, high, digits=2):
        return round(low + (high - low) * self.below(10 ** 6) / 10 ** 6, digits)

    def hexa(self, length):
        return hashlib.sha256(f"{self.name}-{self.variant}/{self.below(1 << 40)}".encode()).hexdigest()[:length]

    def letters(self, length):
        return "".join(self.pick("abcdefghkmnpqrstuvwxyzABCDEFGHKLMNPQRSTUVWXYZ23456789") for _ in range(length))

    # ---- releases, frames and log lines

    def at(self, *chains, engine="vllm", v0=False, among=None):
        """Takes a release that has these chains."""
        keys = [key for key, of in KNOWN["chains"].items()
                if key.split()[0] == engine and key.endswith(" V0") == v0 and all(c in of for c in chains) and (not among or key.split()[1] in among)]
        self.key = keys[self.below(len(keys))]
        self.release = self.key.split()[1]
        self.engine_version = self.release + (" (V0)" if v0 else "")
        self.torch = TORCH[self.release]
        if v0:
            self.root = ROOTS[2]
        if int(re.search(r"python3\.(\d+)", self.root).group(1)) < 11:
            self.carets = False
        return self

    def newer(self, version):
        return tuple(map(int, self.release.split("."))) >= tuple(map(int, version.split(".")))

    def site(self, name):
        file, line = KNOWN["sites"][self.key][name]
        return f"{file}:{line}"

    def tick(self, seconds=1):
        self.second = (self.second + seconds) % 86400
        return ""

    def clock(self):
        return f"{self.second // 3600:02}:{self.second // 60 % 60:02}:{self.second % 60:02}"

    def date(self):
        return f"{self.month:02}-{self.day:02}"

    def year(self):
        if (self.key or "").startswith("sglang"):
            return 2024 if self.release == "0.4.1" else 2025
        return {"0.4": 2024, "0.5": 2024, "0.6": 2024, "0.7": 2025, "0.8": 2025, "0.9": 2025, "0.10": 2025, "0.11": 2025, "0.13": 2025}.get(
            ".".join((self.release or "0.20").split(".")[:2]), 2026)

    def fraction(self, digits):
        """Part of a second; a later call gives a later one within the same second."""
        self.fine = self.fine + 1 + self.below(900000) if self.fine and self.fine_at == self.second else 1000000 + self.below(300000000)
        self.fine_at = self.second
        return f"{min(self.fine, 999999999):09}"[:digits]

    def aside(self, function):
        """-> what the function gives, and the figures it noted, which the label does not get yet."""
        kept, self.numbers = self.numbers, {}
        found = function(), self.numbers
        self.numbers = kept
        return found

    def stamp(self):
        return f"{self.year()}-{self.date()} {self.clock()}"

    def iso(self):
        return f"{self.year()}-{self.date()}T{self.clock()}.{self.fraction(9)}Z"

    def core(self, pid=0):
        """Prefix of the engine core's own lines in this release."""
        pid = pid or self.pid
        return "" if not self.newer("0.10.1") else f"(EngineCore_DP0 pid={pid}) " if not self.newer("0.18.0") else f"(EngineCore pid={pid}) "

    def worker(self, rank=0, kind="TP"):
        return f"(VllmWorker rank={rank} pid={self.pid + 11 + rank}) " if not self.newer("0.10.1") else f"(Worker_{kind}{rank} pid={self.pid + 11 + rank}) "

    def v0worker(self, rank=1):
        return f"(VllmWorkerProcess pid={self.pid + 20 + rank}) "

    def log(self, level, site, text, before=""):
        """A line of vLLM's logger; before 0.8 the file stands without a bracket in front."""
        if " " not in site and ":" not in site:
            site = self.site(site)
        bracket = "[" if self.newer("0.8.0") else ""
        return f"{before}{level} {self.date()} {self.clock()} {bracket}{site}] {text}".rstrip(" ") if text else f"{before}{level} {self.date()} {self.clock()} {bracket}{site}] "

    def sglang(self, text, rank="TP0"):
        return f"[{self.stamp()}{' ' + rank if rank else ''}] {text}"

    def frames(self, *chains, wrappers=True):
        """Frames of the chains, with those of PyTorch between them: [(path, line, function, text)]"""
        found, last = [], None
        package = f"{self.root}/torch"
        for name in chains:
            for number in KNOWN["chains"][self.key][name]:
                path, line, function, text = KNOWN["frames"][number]
                path = path.replace("python/sglang/", "sglang/")
                if wrappers and last and function == "forward" and re.search(r"models/|sampler|layers/", path):
                    first, second = MODULE[self.torch]
                    found.append((f"{package}/nn/modules/module.py", first, "_wrapped_call_impl", "return self._call_impl(*args, **kwargs)"))
                    found.append((f"{package}/nn/modules/module.py", second, "_call_impl", "return forward_call(*args, **kwargs)"))
                if wrappers and function in ("determine_available_memory", "profile_run", "determine_num_available_blocks", "_dummy_run", "execute_model") and "worker" in path:
                    found.append((f"{package}/utils/_contextlib.py", CONTEXT[self.torch], "decorate_context", "return func(*args, **kwargs)"))
                found.append((f"{self.root}/{path}", line, function, text))
                last = found[-1]
                if wrappers and function == "create_weights" and "torch.empty(" in text:
                    found.append((f"{package}/utils/_device.py", DEVICE[self.torch], "__torch_function__", "return func(*args, **kwargs)"))
        return found

    def stack(self, frames, error=None, before="", head=True):
        """A traceback, each line behind the same prefix."""
        lines = ["Traceback (most recent call last):"] if head else []
        for path, line, function, text in frames:
            lines += [f'  File "{path}", line {line}, in {function}', f"    {text}"]
            anchor = re.search(r"(?<= = )[\w.]+\(.*|(?<=^return )[\w.]+\(.*", text)
            if self.carets and anchor:
                lines.append("    " + " " * anchor.start() + "^" * len(anchor.group().split("  #")[0]))
        if error is not None:
            lines += error.split("\n")
        return [before + line for line in lines]

    def trace(self, level, site, chains, error=None, before="", head=True, skip=0, wrappers=True):
        """A traceback as the logger prints it."""
        place = self.log(level, site, "", before)
        return self.stack(self.frames(*chains, wrappers=wrappers)[skip:], error, place, head)

    def graphs(self):
        """The end of a capture inside torch.cuda.graph."""
        first, second = GRAPHS[self.torch]
        return [(f"{self.root}/torch/cuda/graphs.py", first, "__exit__", "self.cuda_graph.capture_end()"),
                (f"{self.root}/torch/cuda/graphs.py", second, "capture_end", "super().capture_end()")]

    # ---- what the label gets

    def note(self, **figures):
        for name, value in figures.items():
            self.numbers.setdefault(name, mib(value) if isinstance(value, str) else value)

    def card(self, *names):
        self.gpu = self.pick(names or list(CARDS))
        return CARDS[self.gpu]

    # ---- sentences

    def torch_oom(self, tried, total, free=None, others=(), private=0, cached=None, device="CUDA", gpu=0, named=False, style=None, error=True, hint=True, allowed=False):
        """PyTorch's sentence; sizes in bytes. Process and others add up with what is free to the card. `style` is the minor release."""
        style = style or self.torch
        minor = int(style.split(".")[1]) if style.startswith("2.") else -1
        free = min(tried * 0.7, self.between(3, 190) * MIB + self.between(0, 15) * MIB // 16) if free is None else free
        mine = total * GIB - free - sum(others)
        cached = self.between(20, 300) * MIB if cached is None else cached
        context = self.between(330, 560) * MIB
        used = max(0, mine - context - cached)
        free, mine = size(free), size(mine)
        name = {"CUDA": "torch.cuda.OutOfMemoryError" if minor < 5 else "torch.OutOfMemoryError"}.get(device, "torch.OutOfMemoryError")
        if style == "1":
            name = "RuntimeError"
        label = f"{name}: " if error else ""
        self.note(tried_mib=size(tried))
        if device == "NPU" or minor < 1:  # one bracket with everything
            last = "GiB cached" if style == "0" else "reserved in total by PyTorch"
            unit = "NPU" if device == "NPU" else "GPU"
            name = "RuntimeError: " if device == "NPU" and error else label
            active = f" {size(used)} current active;" if device == "NPU" else ""
            self.note(gpu_total_mib=size(total * GIB), free_mib=free, torch_allocated_mib=size(used), reserved_total_mib=size(used + cached))
            tail = " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation." if hint and style != "1" else ""
            tail += "  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF" if tail and device != "NPU" else ""
            return (f"{name}{device} out of memory. Tried to allocate {size(tried)} ({unit} {gpu}; {size(total * GIB)} total capacity; {size(used)} already allocated;{active} {free} free; "
                    f"{size(used + cached)} {last}){tail}")
        word = "capacty" if minor == 1 else "capacity"
        text = f"{label}{device} out of memory. Tried to allocate {size(tried)}. GPU {gpu} has a total {word} of {size(total * GIB)} of which {free} is free. "
        self.note(gpu_total_mib=size(total * GIB), free_mib=free)
        for other in others:
            text += f"Process {self.between(1000, 3999999)} has {size(other)} memory in use. "
        if others and not named:  # else the text does not say which of the processes this one is
            self.note(other_processes_mib=round(sum(mib(size(o)) for o in others), 4))
        if device == "CUDA":
            text += f"Process {self.between(1000, 3999999)} has {mine} memory in use. " if named else f"Including non-PyTorch memory, this process has {mine} memory in use. "
            if not (others and named):
                self.note(in_use_mib=mine)
        if allowed:
            text += f"{size(total * GIB)} allowed; "
        pools = f"with {size(private)} allocated in private pools (e.g., CUDA Graphs), " if private else ""
        text += f"Of the allocated memory {size(used)} is allocated by PyTorch, {pools}and {size(cached)} is reserved by PyTorch but unallocated."
        self.note(torch_allocated_mib=size(used), reserved_unallocated_mib=size(cached))
        if private:
            self.note(private_pools_mib=size(private))
        if hint:
            setting = "PYTORCH_ALLOC_CONF" if minor >= 9 else "PYTORCH_HIP_ALLOC_CONF" if device == "HIP" else "PYTORCH_CUDA_ALLOC_CONF"
            if minor < 2:
                text += f" If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and {setting}"
            else:
                text += (f" If reserved but unallocated memory is large try setting {setting}=expandable_segments:True to avoid fragmentation."
                         "  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)")
        return text


ASYNC = ("CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n"
         "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n")


# ---- dresses: what a terminal, a container, a cluster or a page makes of the lines

def wrap(lines, width):
    """As a terminal of this width breaks them."""
    return [line[i:i + width] for line in lines for i in range(0, max(1, len(line)), width)]


def words(lines, width):
    """As a page or a chat breaks them: at spaces."""
    found = []
    for line in lines:
        while len(line) > width and " " in line[1:width]:
            cut = line.rindex(" ", 1, width)
            found.append(line[:cut])
            line = line[cut + 1:]
        found.append(line)
    return found


def stamped(d, lines, form):
    found = []
    for line in lines:
        found.append(form() + line)
        if d.chance(3):
            d.tick()
    return found


DRESSES = {
    "bare": lambda d, lines: lines,
    "compose": lambda d, lines, name=("vllm-1", "engine-1", "chat-api-1", "inference-0"): [f"{n}  | {line}" for n in [d.pick(name)] for line in lines],
    "k8s": lambda d, lines: stamped(d, lines, lambda: d.iso() + " "),
    "kubectl": lambda d, lines: [f"[pod/{p}/engine] {line}" for p in [f"chat-{d.hexa(9)}-{d.hexa(5)}"] for line in lines],
    "ci": lambda d, lines: stamped(d, lines, lambda: f"[{d.year()}-{d.date()}T{d.clock()}Z] "),
    "journald": lambda d, lines: [f"{('Jan','Feb','Mar','Apr','May','Jun','Jul','Aug','Sep','Oct','Nov','Dec')[d.month - 1]} {d.day:02} {d.clock()} gpu-node serve[{p}]: {line}" for p in [d.between(900, 90000)] for line in lines],
    "docker_json": lambda d, lines: [json.dumps({"log": line + "\n", "stream": "stderr", "time": d.iso()}) for line in lines],
    "date": lambda d, lines: [f"{d.stamp()} {line}" for line in lines],
    "app": lambda d, lines: [f"{d.stamp()},{d.fraction(3)} - engine - INFO - {line}" for line in lines],
    "rank": lambda d, lines: [f"[rank{r}]: {line}" for r in [d.below(4)] for line in lines],
    "ray": lambda d, lines: [f"(RayWorkerWrapper pid={p}, ip=10.0.{a}.{b}) {line}" for p, a, b in [(d.between(900, 90000), d.below(9), d.between(2, 250))] for line in lines],
    "ray_repeated": lambda d, lines: [line + (f" [repeated {d.between(2, 15)}x across cluster]" if d.chance(2) and line.strip("() ") else "") for line in DRESSES["ray"](d, lines)],
    "actor": lambda d, lines: [f"({n} pid={p}) {line}" for n, p in [(d.pick(["LLMRayActor", "RolloutWorker", "PolicyActor"]), d.between(900, 900000))] for line in lines],
    "ansi": lambda d, lines: [re.sub(r"^(\([^)]*\))", "\x1b[0;36m\\1\x1b[0;0m", line) if line.startswith("(") else f"\x1b[31m{line}\x1b[0m" for line in lines],
    "caret_ansi": lambda d, lines: [re.sub(r"^(\([^)]*\))", r"^[[0;36m\1^[[0;0m", line) for line in lines],
    "quote": lambda d, lines: ["> " + line for line in lines],
    "pipe": lambda d, lines: ["  | " + line for line in lines],
    "box": lambda d, lines: ["│ " + line.ljust(150) + " │" for line in lines],
    "flat": lambda d, lines: [re.sub(r"(\] |^)\s+", r"\1", line) for line in lines],
    "blank": lambda d, lines: [part for line in lines for part in (line, "")],
    "crlf": lambda d, lines: [line + "\r" for line in lines],
    "wrap": lambda d, lines: wrap(lines, d.between(96, 132)),
    "words": lambda d, lines: words(lines, d.between(70, 96)),
    "markdown": lambda d, lines: [re.sub(r"([\[\]])", r"\\\1", line) for line in lines],
    "smart": lambda d, lines: [re.sub(r'"([^"]*)"', "“\\1”", line) for line in lines],
    "reversed": lambda d, lines: lines[::-1],
    "html": lambda d, lines: ["<pre><code class=\"language-text\">" + lines[0].replace("<", "&lt;"), *[line.replace("<", "&lt;") for line in lines[1:]], "</code></pre>"],
    "subprocess": lambda d, lines: [f"child[{p}]: {line}" for p in [d.between(200, 9000)] for line in lines],
    "klog": lambda d, lines: [f"I{d.month:02}{d.day:02} {d.clock()}.{d.between(100000, 999999)}       1 stream.go:{d.between(100, 900)}] {line}" for line in lines],
}


def cut(lines, characters):
    """The end is missing, in the middle of a line."""
    text = "\n".join(lines)
    return text[:max(1, len(text) - characters)].split("\n")


def interleave(d, *streams):
    """Lines of several processes, each in its own order."""
    streams, found = [list(s) for s in streams], []
    while any(streams):
        stream = d.pick([s for s in streams if s])
        for _ in range(min(len(stream), 1 + d.below(4))):
            found.append(stream.pop(0))
    return found


RECIPES = {}


def recipe(name, truth, variants, evidence="explicit", decide="yes yes", sure="high", engine="vllm"):
    """truth: 'kind phase cause also,also'. variants: dresses of the reports, one each; several of one report are joined by '+'."""
    def keep(function):
        assert name not in RECIPES, name
        kind, phase, cause, *also = truth.split()
        RECIPES[name] = {"function": function, "variants": variants, "engine": engine, "evidence": evidence, "decide": decide.split(), "confidence": sure,
                         "truth": {"is_oom": phase != "not_oom", "kind": kind, "phase": phase, "cause": cause, "also": also[0].split(",") if also else []}}
        return function
    return keep


def negative(name, cause, variants, engine="vllm", sure="high", decide="yes yes"):
    return recipe("neg-" + name, f"none not_oom {cause}", variants, "none", decide, sure, engine)


def render(name, variant):
    """-> (text, label) of one report"""
    entry = RECIPES[name]
    d = Draw(name, variant)
    lines = entry["function"](d)
    lines = [part for line in ([lines] if isinstance(lines, str) else lines) for part in line.split("\n")]
    dress = entry["variants"][variant]
    for part in dress.split("+"):
        lines = DRESSES[part](d, lines)
    truth, decide = entry["truth"], entry["decide"]
    reader = {"is_oom": truth["is_oom"], "phase": truth["phase"] if decide[0] == "yes" else "unknown" if truth["is_oom"] else "not_oom",
              "cause": truth["cause"] if decide[1] == "yes" else "insufficient_info", "also": [], "decidable_phase": decide[0], "decidable_cause": decide[1]}
    label = {"id": f"{name}-{variant + 1}", "source": f"oomsight/{name}#{variant + 1}", "engine": entry["engine"], "engine_version": d.engine_version, "gpu": d.gpu,
             "truth": truth, "numbers": d.numbers if truth["is_oom"] else {}, "evidence": entry["evidence"], "format": [p for p in dress.split("+") if p != "bare"] + d.formats,
             "confidence": entry["confidence"], "why": (entry["function"].__doc__ or "").strip(), "recipe": name, "reader": reader}
    return "\n".join(lines) + "\n", label


def everything():
    import recipes, recipes_negative, recipes_serving  # noqa: E401,F401 they fill RECIPES
    files, labels = {}, []
    for name in sorted(RECIPES):
        for variant in range(len(RECIPES[name]["variants"])):
            text, label = render(name, variant)
            files[label["id"] + ".log"] = text
            labels.append(label)
    files["labels.jsonl"] = "".join(json.dumps(label, ensure_ascii=False) + "\n" for label in sorted(labels, key=lambda one: one["id"]))
    return files


def main():
    files = everything()
    if "--list" in sys.argv:
        for name in sorted(RECIPES):
            truth = RECIPES[name]["truth"]
            print(f"{name}\t{len(RECIPES[name]['variants'])}\t{truth['phase']}\t{truth['cause']}\t{RECIPES[name]['evidence']}")
        return 0
    os.makedirs(REPORTS, exist_ok=True)
    there = {name for name in os.listdir(REPORTS) if name.endswith((".log", ".jsonl"))}
    if "--check" in sys.argv:
        differ = sorted(there ^ set(files))
        for name in sorted(there & set(files)):
            with open(os.path.join(REPORTS, name), encoding="utf-8", newline="") as file:
                if file.read() != files[name]:
                    differ.append(name)
        for name in differ:
            print(f"{name}: not what the recipes give (tests/evidence/render.py writes it)")
        print(f"{len(files) - 1} reports of {len(RECIPES)} recipes")
        return 1 if differ else 0
    for name in there - set(files):
        os.remove(os.path.join(REPORTS, name))
    for name, text in files.items():
        with open(os.path.join(REPORTS, name), "w", encoding="utf-8", newline="") as file:
            file.write(text)
    print(f"{len(files) - 1} reports of {len(RECIPES)} recipes")
    return 0


if __name__ == "__main__":
    sys.modules["render"] = sys.modules["__main__"]
    sys.exit(main())
