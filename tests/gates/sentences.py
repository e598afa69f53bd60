#!/usr/bin/env python3
"""Do people read sentences? sentences.py BINARY [--count N] [--seed S]

Text of every command that answers from what it knows: plans drawn from the built-in models, GPUs, flags and releases of both engines, every log of
tests/evidence/reports and of the records, manifests, comparisons, tables and help, a third of them in Chinese. None may hold

  a name with underscores   but in [brackets] at the end of a line, a flag, a variable, a file, code, or what is quoted from a log or an engine
  a line above 100 columns  but a command to be pasted and a quoted line
  cells that touch          the columns of a table are two blanks apart, and no cell is empty
  UNKNOWN without a reason  behind it in the first line

Exit 1 with each kind of fault once per text. --count: of that many commands, evenly from all; without, all of them. Standard library only."""
import argparse
import concurrent.futures
import glob
import json
import os
import random
import re
import subprocess
import sys
import unicodedata

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "plan"))
import first_answers  # noqa: E402
import screen  # noqa: E402

COLUMNS, PLANS = 100, 900
FIXTURES = os.path.join(ROOT, "tests", "fixtures")
QUOTED = re.compile(r"\s*(\d+\| |\^+$|> |::)")
# What stands before the words of an engine; they go on in lines that are further in.
SAYS = re.compile(r"(\s*)(?:0\.\d+\.\d+: )?(?:Expected error:|The engine says:|Seen as:|refused:|被拒绝：|预期的错误：|引擎会说：|引擎说：|表现为：)")
PASTED = re.compile(r"\s*(export |docker run |(?:[A-Z_]+=\S+ )*(?:exec |nohup |numactl )*(?:vllm serve|sglang serve|python3? -m|oomsight )|--[a-z])|.*\\$")
NAME = re.compile(r"(?<![\w/.$%={\"'`(:-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w/=(\"'`-]|[.:]\w)|(?<=\()[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?=[) ,;.])")
WORD = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
FLAG = re.compile(r"--[\w.-]+(?:[ =](?:'[^']*'|\"[^\"]*\"|[^\s,;。；，)]+))?|`[^`]*`|[A-Z][A-Z0-9_]+=\S+|(?:frames?|behind|blocks  |调用帧|块  ) ?\w+_\w+|\w+_\w+ (?:之后|\(\w+\.py)")
BRACKETS = re.compile(r"  \[[\w./-]+\]$")
# The first line of each table: behind it one row per line, until a line that is no row.
TABLES = {"plan": r"  GPUs +KV| {3}(?:vLLM|SGLang|engine) ", "bisect": r"release +answer| {3}(?:vLLM|SGLang) ", "matrix": r"  model +GPU +flags", "gpus": r"GPU +total"}


def fixture(*names):
    return os.path.join(FIXTURES, *names)


def plans(rng, count):
    with open(os.path.join(ROOT, "data", "catalogue.json"), encoding="utf-8") as file:
        models = sorted(json.load(file))
    flags = {"vllm": [["--gpu-memory-utilization", "0.5"], ["--gpu-memory-utilization", "0.97"], ["--kv-cache-dtype", "fp8"], ["--enforce-eager"], ["--max-num-seqs", "1024"],
                      ["--max-num-batched-tokens", "16384"], ["--cpu-offload-gb", "8"], ["--enable-sleep-mode"], ["--max-modl-len", "100"], ["--enable-lora"], ["--block-size", "7"],
                      ["--kv-cache-memory-bytes", "30G"], ["--pipeline-parallel-size", "2"], ["--data-parallel-size", "2"], ["--attention-backend", "FLASHINFER"]],
             "sglang": [["--mem-fraction-static", "0.97"], ["--mem-fraction-static", "0.3"], ["--max-running-requests", "2000"], ["--kv-cache-dtype", "fp8_e5m2"], ["--disable-cuda-graph"],
                        ["--context-lenght", "4096"], ["--page-size", "64"], ["--pp-size", "2"], ["--chunked-prefill-size", "-1"]]}
    releases = {"vllm": ["0.8.5", "0.10.2", "0.12.0", "0.19.1", "0.32.0"], "sglang": ["0.5.18", "0.5.20", "0.5.23"]}
    for at in range(count):
        gpu, words = first_answers.draw(rng, models)
        engine = words[0]
        for _ in range(rng.choice([0, 0, 1, 2])):
            words = words + rng.choice(flags[engine])
        more = rng.choice([[], [], [], ["--explain"], ["--explain"], ["--gpu-used", "3GiB"], ["--gpu-used", "20GiB"], ["--host-ram", "16GiB"], ["--max-fit"],
                           ["--engine", "%s=%s" % (engine, rng.choice(releases[engine]))], ["--engine", "%s=%s" % (engine, ",".join(rng.sample(releases[engine], 2)))]])
        if at % 40 == 39:
            gpu, more = "all", []
        yield ["plan", "--offline", "--gpu", gpu, *more, "--", *words]


def others():
    for words in screen.plans():
        yield words
    for log in sorted(glob.glob(os.path.join(ROOT, "tests", "evidence", "reports", "*.log"))):
        yield ["explain", "--offline", log]
    for at, log in enumerate(sorted(glob.glob(fixture("kb", "*", "*", "*.log")))):
        yield ["explain", "--offline"] + ["--explain"] * (at % 2) + [log]
        yield ["explain", "--offline", "--gpu", "4090", "--model", "Qwen/Qwen3-8B", log]
    for path in sorted(glob.glob(fixture("deploy*", "*"))):
        for gpu in ("4090", "t4", "h100"):
            yield ["check", "--offline", "--gpu", gpu, path]
            yield ["check", "--offline", "--explain", "--gpu", gpu, path]
    for fleet in (fixture("matrix", "fleet.yaml"), os.path.join(ROOT, "examples", "matrix", "fleet.yaml")):
        for more in ([], ["--diff", "0.10.2", "0.32.0"], ["--diff", "0.10.2", "0.32.0", "--moved", "1"]):
            yield ["matrix", "--offline", "--models", fixture("models"), *more, fleet]
    ends = {"vllm": [("0.9.2", "0.32.0"), ("0.24.0", "0.32.0"), ("0.19.1", "0.20.2")], "sglang": [("0.5.18", "0.5.23")]}
    for model in sorted(glob.glob(fixture("models", "*"))):
        for gpu in ("4090", "t4", "l40s"):
            for engine, pairs in sorted(ends.items()):
                for good, bad in pairs:
                    yield ["bisect", "--offline", "--good", good, "--bad", bad, "--moved", "1", "--gpu", gpu, "--", engine, "serve", model]
    for flags in (["--max-num-seqs", "0"], ["--kv-cache-memory-bytes", "8G"], ["--kv-cache-dtype", "fp8"]):
        yield ["bisect", "--offline", "--good", "0.9.2", "--bad", "0.32.0", "--gpu", "t4", "--", "vllm", "serve", fixture("models", "small-llama"), *flags]
    for trace in sorted(glob.glob(fixture("traces", "*"))):
        yield ["replay", trace]
        yield ["replay", "--explain", trace]
    for record in sorted(glob.glob(os.path.join(ROOT, "data", "kb", "*", "*.json"))):
        yield ["kb", "show", os.path.relpath(record, os.path.join(ROOT, "data", "kb"))[:-5]]
    for words in ("gpus", "models", "models Qwen3-8B", "models microsoft/phi-2", "engines", "kb list", "kb phases", "help"):
        yield words.split()
    for command in ("plan", "explain", "dryrun", "run", "check", "top", "matrix", "bisect", "doctor", "replay", "gpus", "models", "engines", "kb", "redact", "what", "completion"):
        yield [command, "--help"]
        yield ["help", command]


def ask(binary, words):
    env = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8", TZ="UTC")
    done = subprocess.run([binary] + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, stdin=subprocess.DEVNULL, timeout=300, check=False)
    return done.stdout.decode("utf-8", "replace")


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def engines_names():
    """What is not ours to name: settings as configs and errors of the engines spell them (max_num_seqs of --max-num-seqs), what records
    say to change, and functions of stacks. Our own phases and causes are never among them."""
    names = set()
    for path in glob.glob(os.path.join(ROOT, "data", "engines", "*", "flags.json")):
        names |= {flag.replace("-", "_") for flag in re.findall(r'"--([a-z][a-z0-9-]*)"', read(path))}
    for path in glob.glob(os.path.join(ROOT, "data", "kb", "*", "*.json")):
        record = json.loads(read(path))
        texts = [record["mechanism"], *(one["change"] for one in record.get("fixes", []) + record.get("dead_ends", []))]
        names |= set(WORD.findall(json.dumps(texts)))
    names |= set(WORD.findall(read("data", "engines", "torch.json") + read("data", "explain", "advice.json")))
    own = {word for name in ("phase", "cause") for word in re.findall(r'"([a-z_]+)"', read("src", "ledger", name + ".def"))}
    return names - own


def width(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def own_lines(text):
    """(line, is it a command or a quotation) of a text."""
    deeper, pasted = None, False
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if deeper is not None and (not line.strip() or indent <= deeper):
            deeper = None
        said = SAYS.match(line)
        quoted = deeper is not None or bool(said) or bool(QUOTED.match(line))
        if said:
            deeper = len(said.group(1))
        going_on, pasted = pasted, line.endswith("\\")
        yield line, quoted or going_on or bool(PASTED.match(line))


def cells(line):
    return [cell for cell in re.split(r"\s{2,}", line.strip()) if cell]


def tables(text, head):
    """(cells of the head, rows) of each table."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if not re.match(head, line):
            continue
        rows = []
        for row in lines[at + 1:]:
            if not row.strip() or not row.startswith((" ", "*")) and not re.match(r"[\w.]+  ", row):
                break
            if len(row) - len(row.lstrip()) < 20:  # what goes on from the row above is further in
                rows.append(row)
        yield cells(line), rows


def faults(words, text, names):
    command = words[0]
    helps, asked = command == "help" or "--help" in words, " ".join(words)
    if command == "plan" and re.match(r"(UNKNOWN|未知)\s*(\[|$)", text, re.M):
        yield "no reason behind it", text.split("\n", 1)[0]
    for line, quoted in own_lines(text):
        if width(line) > COLUMNS and not quoted and not re.fullmatch(r" *\(?https?://\S+", line):
            yield "%d columns" % width(line), line
        if quoted or (helps and PASTED.match(line)):
            continue
        found = [name for name in NAME.findall(FLAG.sub(" ", BRACKETS.sub("", line))) if name not in names and name not in asked]
        if found:
            yield "a name with underscores: " + ", ".join(found), line
    if command in TABLES and "--max-fit" not in words and not helps:
        for head, rows in tables(text, TABLES[command]):
            want = len(head)
            for row in rows:
                have = len(cells(re.sub(r"^\* ", "  ", re.sub(r"  <-$", "", row))))
                if have != want:
                    yield "%d cells below %d" % (have, want), row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    every = [*plans(random.Random(options.seed), PLANS), *others()]
    asked = every if not options.count else [every[at * len(every) // options.count] for at in range(options.count)]
    asked = [words[:1] + ["--lang", "zh"] + words[1:] if at % 3 == 2 and words[0] not in ("help",) and "--help" not in words else words for at, words in enumerate(asked)]
    names, bad, silent = engines_names(), {}, 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for words, text in zip(asked, pool.map(lambda words: ask(binary, words), asked)):
            silent += not text
            for kind, line in faults([word for word in words if word not in ("--lang", "zh")], text, names):
                bad.setdefault((re.sub(r"\d+", "N", kind), words[0]), []).append((line, words))
    for (kind, _), found in sorted(bad.items()):
        line, words = found[0]
        print("%s (%d times): %s\n    oomsight %s" % (kind, len(found), line, " ".join(words)))
    print("%d texts, %d without an answer, %d faults" % (len(asked), silent, sum(len(found) for found in bad.values())))
    sys.exit(1 if bad or silent > len(asked) // 20 else 0)


if __name__ == "__main__":
    main()
