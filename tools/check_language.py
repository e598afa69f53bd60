#!/usr/bin/env python3
"""Is everything said in Chinese when Chinese is asked for? check_language.py BINARY [MODELS]

Every command is run over the fixtures with --lang zh. A sentence of English is a finding: two or more small words in a row that
are not code, a quoted line of a log, or the engine's own message. With MODELS (a folder of configs) plans of each are read too.
The numbers must be those of the English report, in number and order."""
import concurrent.futures
import glob
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
FIXTURES = os.path.join(ROOT, "tests", "fixtures")
# What is quoted: the engine's refusals, Python's and the allocator's errors, names of fields, evidence of a record.
QUOTED = re.compile(r"torch\.OutOfMemoryError|^\s*\d+\| |^\s*\^+$|^\s*(?:[\d.]+: )?(Free memory on device|No available memory|To serve at least|Selected backend|Head size|"
                    r"No valid attention|Cannot auto-fit|Loaded weights leave|Not enough memory|max_num_seqs \(|CUDA out of memory|NotImplementedError)|^\s*\[|^\s*> |^\s*export |^\s*--|vllm serve|sglang serve|docker run|Could not|resolve host|oomsight explain$|private pools 是|引擎会说：")
WORDS = re.compile(r"(?<![\w/.\-_'`])[a-z]{2,}(?: [a-z]{2,})+(?![\w/\-_'`=])")
FLAG = re.compile(r"`[^`]*`|'[^']*'|--[\w.-]+(?: [\w./{}:\"-]+)?|\S*[/_=:]\S+")


def run(binary, words):
    env = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8")
    done = subprocess.run([binary] + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, check=False)
    return done.stdout.decode("utf-8", "replace")


def english(text):
    """The sentences that were left; a quoted message goes on until an empty line or Chinese."""
    quoted = False
    text = re.sub("```.*?```", "", text, flags=re.S)
    for line in text.split("\n"):
        chinese = re.search("[\u4e00-\u9fff]", line)
        quoted = bool(QUOTED.search(line)) or (quoted and line.strip() and not chinese)
        if not quoted and WORDS.search(FLAG.sub(" ", line)):
            yield line.strip()


def commands(models):
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "golden", "*", "command"))):
        words = [w.replace("../", os.path.join(ROOT, "tests") + "/", 1) if w.startswith("../") else w
                 for w in shlex.split(open(path, encoding="utf-8").read())]
        for more in ([], ["--explain"], ["--format", "md"]):
            yield words[:1] + more + words[1:]
    for log in sorted(glob.glob(os.path.join(FIXTURES, "kb", "*", "*", "*.log"))):
        yield ["explain", "--explain", log]
        yield ["explain", "--format", "md", log]
    for trace in sorted(glob.glob(os.path.join(FIXTURES, "traces", "*"))):
        yield ["replay", trace]
        yield ["replay", "--format", "md", trace]
    yield ["check", "--gpu", "4090", "--explain"] + sorted(glob.glob(os.path.join(FIXTURES, "deploy", "*")))
    fleet = ["matrix", "--offline", "--models", os.path.join(FIXTURES, "models"), os.path.join(FIXTURES, "matrix", "fleet.yaml")]
    for more in ([], ["--format", "md"], ["--diff", "0.10.2", "0.32.0", "--moved", "1"], ["--diff", "0.10.2", "0.32.0", "--moved", "1", "--format", "md"]):
        yield fleet + more
    llama = os.path.join(FIXTURES, "models", "small-llama")
    for good, bad, gpu, flags in (("0.32.0", "0.9.2", "4090", ["--kv-cache-memory-bytes", "8G"]), ("0.9.0", "0.9.2", "4090", []),
                                  ("0.32.0", "0.31.0", "4090", []), ("0.9.2", "0.32.0", "4090", ["--max-num-seqs", "0"])):
        yield ["bisect", "--offline", "--good", good, "--bad", bad, "--moved", "1", "--gpu", gpu, "--", "vllm", "serve", llama] + flags
    for gpu, flags in (("4090", []), ("l40s", ["--mem-fraction-static", "0.99"]), ("l40s", ["--mem-fraction-static", "0.02"]), ("T4", ["--tp", "2"]),
                       ("h100", ["--speculative-algorithm", "EAGLE"]), ("h100", ["--pp-size", "2"]), ("4090", ["--max-total-tokens", "2048"])):
        for name in ("small-llama", "small-moe", "small-hybrid", "small-latent", "small-sliding"):
            for more in (["--explain"], ["--format", "md"]):
                yield ["plan", "--offline", "--gpu", gpu] + more + ["--", "sglang", "serve", os.path.join(FIXTURES, "models", name)] + flags
    yield ["plan", "--offline", "--engine", "sglang=0.5.20", "--gpu", "4090", "--", llama]
    # What an engine refuses: misspelt, ambiguous, no number, a value for a switch, too many ranks, a release that is not known.
    for start, refused in (("vllm", ("--max-modellen 4096", "--cpu-offload 4", "--enforce-eager 1", "--tensor-parallel-size 3", "--max-num-seqs 0", "--kv-cache-dtype fp9", "some more words")),
                           ("sglang", ("--context-lenght 4096", "--disable-cuda-graph 1", "--tp-size 64", "--mem-fraction-static two", "--kv-cache-dtype fp9"))):
        for flags in refused:
            yield ["plan", "--offline", "--gpu", "h100", "--", start, "serve", llama] + flags.split()
        yield ["plan", "--offline", "--engine", start + "=0.99.0", "--gpu", "h100", "--", llama]
        yield ["plan", "--offline", "--engine", start + "=nightly", "--gpu", "h100", "--", llama]
    yield ["engines"]
    yield ["gpus"]
    yield ["models", "Qwen3-8B"]
    yield ["models", "microsoft/phi-2"]
    yield ["kb", "list"]
    for model in sorted(glob.glob(os.path.join(models, "*", ""))) if models else []:
        for device in (["--gpu", "T4"], ["--gpu", "4090", "--gpu-used", "3GiB"], ["--gpu", "H200"], ["--gpu", "GB10"]):
            yield ["plan", "--explain"] + device + ["--", "vllm", "serve", model]
        yield ["plan", "--vllm", "0.11.0,0.19.1,0.32.0", "--gpu", "A100", "--", "vllm", "serve", model]


def both(binary, words):
    return [run(binary, words[:1] + ["--lang", language] + words[1:]) for language in ("zh", "en")]


def main():
    binary, models = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    seen, texts, moved = {}, 0, 0
    asked = list(commands(models))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda words: both(binary, words), asked))
    for words, (chinese, plain) in zip(asked, answers):
        texts += 1
        if not chinese.strip() or not plain.strip():
            seen.setdefault("nothing is printed", words)
        for line in english(chinese):
            seen.setdefault(line, words)
        for line in re.findall(r"^.*\S.*注意：.*", chinese, re.M):
            seen.setdefault("a label inside a sentence: " + line.strip(), words)
        if sorted(re.findall(r"\d+\.\d+", chinese)) != sorted(re.findall(r"\d+\.\d+", plain)):
            moved += 1
            print("numbers differ:", " ".join(words))
    for line, words in seen.items():
        print("%s\n    %s" % (line, " ".join(words)[:150]))
    print("%d reports, %d English sentences left, %d with other numbers" % (texts, len(seen), moved))
    sys.exit(1 if seen or moved or not texts else 0)


main()
