#!/usr/bin/env python3
"""screen.py BINARY [FOLDER-OF-LOGS...]: do plan and explain fit a screen of 24 lines and 100 columns?

300 plans of models x GPUs x flags of both engines, those that start and those that fail, and every log of the fixtures; logs of FOLDER and
of ../shared/corpus where it lies next to the checkout. 95 % have to fit. No line may be cut inside a word: every word that a line ends or
begins with is one of the whole report (--explain), where lines are as long as they need to be."""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINES, COLUMNS, LEAST = 24, 100, 0.95
BUILT_IN = ["Qwen/Qwen3-8B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct", "deepseek-ai/DeepSeek-V3"]
GPUS = ["T4", "L4", "4090", "A100", "H100", "GB10"]
FLAGS = {"vllm": [[], ["--max-model-len", "8192"], ["--gpu-memory-utilization", "0.6"], ["--kv-cache-dtype", "fp8", "--max-num-seqs", "512"], ["--enforce-eager"],
                  ["--tensor-parallel-size", "3"]],
         "sglang": [[], ["--mem-fraction-static", "0.95"], ["--context-length", "8192"], ["--tp", "2"]]}


def plans():
    models = sorted(glob.glob(os.path.join(ROOT, "tests", "fixtures", "models", "small-*"))) + BUILT_IN
    every = [["plan", "--offline", "--gpu", gpu, "--", engine, "serve", model] + flags
             for engine, lists in sorted(FLAGS.items()) for flags in lists for model in models for gpu in GPUS]
    return [every[i * 7 % len(every)] for i in range(300)]


def logs(folders):
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "**", "*.log"), recursive=True)):
            yield ["explain", "--offline", path]


def ask(binary, words):
    env = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8")
    done = subprocess.run([binary] + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, stdin=subprocess.DEVNULL, timeout=120, check=False)
    return done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def cut_words(short, whole):
    """Words of the short report that the whole one does not have, but for what is quoted from a log."""
    known = set(whole.split())
    lines = [line for line in short.split("\n") if not re.match(r"\s*\d+\| |\s*\^+$", line)]
    return [word for line in lines for word in line.split() if word not in known and word not in ("More", "with", "--explain.", "\\") and "." * 3 not in word]


def main():
    binary, folders = os.path.abspath(sys.argv[1]), sys.argv[2:]
    corpus = os.path.join(ROOT, "..", "shared", "corpus")
    sets = [("plans", plans()), ("logs of the fixtures", list(logs([os.path.join(ROOT, "tests", "fixtures", "kb")]))),
            ("logs of other folders", list(logs(folders or ([corpus] if os.path.isdir(corpus) else []))))]
    bad = 0
    for name, commands in sets:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda words: ask(binary, words), commands))
        shown = [(words, text) for words, (text, _) in zip(commands, answers) if text]
        over = [(len(text.split("\n")) - 1, max(len(line) for line in text.split("\n")), words) for words, text in shown
                if len(text.split("\n")) - 1 > LINES or max(len(line) for line in text.split("\n")) > COLUMNS]
        for lines, columns, words in over[:5]:
            print("%d lines, %d columns: oomsight %s" % (lines, columns, " ".join(words)))
        some = shown[::10]
        cut = [(words, cut_words(text, ask(binary, words[:1] + ["--explain"] + words[1:])[0])) for words, text in some]
        for words, found in [c for c in cut if c[1]][:5]:
            print("cut: %s: oomsight %s" % (found[:4], " ".join(words)))
        share = 1 - len(over) / len(shown) if shown else 1
        print("%s: %d of %d fit %d x %d (%.1f %%); %d without an answer; of %d no word is cut in %d" % (
            name, len(shown) - len(over), len(shown), LINES, COLUMNS, 100 * share, len(commands) - len(shown), len(some), len(some) - sum(bool(c[1]) for c in cut)))
        bad |= share < LEAST or any(c[1] for c in cut) or (commands and len(shown) < 0.9 * len(commands))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
