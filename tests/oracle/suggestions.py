"""Do the commands that `plan` suggests start? Commands that lack memory are planned, and what is suggested is started by the real engine on
the simulated GPU it was suggested for.

    tests/oracle/suggestions.py BINARY [--list] [--whole] [--minutes N] [--only TEXT]... [--results FILE]

A row of docs/evidence/results/suggestions.csv per start, as soon as it is there; rows whose suggested command is still the same are not
started again. --list plans only. Exit 77 without an engine.

The engine core of vLLM starts from a process that has imported the engine (suggestions_zygote.py), and SGLang as a whole server from such a
process (forked.py): one process for each engine and GPU. --whole starts vLLM as the server that people start: a minute each, and for hybrid
models another profile. Commands of one GPU only."""
import argparse
import csv
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

import engines
import forked
import models
import sglang_beside

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, "..", "..", "docs", "evidence", "results", "suggestions.csv")
COLUMNS = ["engine", "release", "kind", "model", "gpu", "flags", "fails_in", "answer", "change", "promised_tokens", "tokens", "off_percent", "ends", "seconds"]
EAGER = ["--enforce-eager"]
SHARE = "--gpu-memory-utilization"
NGRAM = '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}'
# kind, model, GPU, flags of a command that lacks memory
VLLM = [
    ("dense", "qwen3-8b", "4090", EAGER + ["--max-model-len", "32768", SHARE, "0.8"]),
    ("dense, default length", "llama-3.1-8b", "4090", EAGER),
    ("dense, tied", "qwen3-4b", "3060", EAGER),
    ("dense, compiled", "qwen3-4b", "3060", []),
    ("dense, float16", "qwen2.5-7b", "T4", EAGER + ["--dtype", "half"]),
    ("dense, many requests", "opt-2.7b", "3060", EAGER + ["--max-num-seqs", "1024", SHARE, "0.47"]),
    ("MoE", "qwen3-30b-a3b", "A100-80GB", EAGER + [SHARE, "0.75"]),
    ("MoE, MXFP4", "gpt-oss-20b", "H100", EAGER + [SHARE, "0.2"]),
    ("hybrid", "nemotron-nano-9b", "4090", EAGER + ["--max-num-seqs", "512", SHARE, "0.78"]),
    ("hybrid, quantised", "qwen3.6-27b-w4a16", "4090", EAGER + ["--language-model-only"]),
    ("AWQ", "llama-3.1-8b-awq", "4060", EAGER),
    ("GPTQ", "llama-3.1-8b-gptq", "3060", EAGER),
    ("FP8", "llama-3.1-8b-fp8", "H100", EAGER + [SHARE, "0.2"]),
    ("sliding windows", "gemma-2-9b", "4090", EAGER + [SHARE, "0.85"]),
    ("MLA", "deepseek-v2-lite", "A100-40GB", EAGER + [SHARE, "0.8"]),
    ("LoRA", "llama-3.1-8b", "4090", EAGER + ["--enable-lora", "--max-loras", "2", "--max-lora-rank", "16"]),
    ("speculative, n-gram", "qwen3-8b", "4090", EAGER + ["--max-model-len", "32768", SHARE, "0.8", "--speculative-config", NGRAM]),
    ("batch too large", "qwen2.5-7b", "4090", EAGER + ["--max-num-batched-tokens", "131072"]),
]
PLAIN = sglang_beside.PLAIN
SGLANG = [
    ("dense", "qwen3-8b", "4090", PLAIN + ["--mem-fraction-static", "0.6"]),
    ("dense, default length", "llama-8b", "4090", PLAIN + ["--mem-fraction-static", "0.6"]),
    ("dense, long", "qwen3, 4 layers", "4090", PLAIN + ["--mem-fraction-static", "0.06"]),
    ("dense, graphs", "qwen3, 4 layers", "4090", sglang_beside.DECODE + ["--mem-fraction-static", "0.06"]),
    ("tied", "llama-1b", "4090", PLAIN + ["--mem-fraction-static", "0.08"]),
    ("MoE", "qwen3-moe, 4 layers", "4090", PLAIN + ["--mem-fraction-static", "0.05"]),
    ("MoE, mixtral", "mixtral, 2 layers", "4090", PLAIN + ["--mem-fraction-static", "0.2"]),
    ("MLA", "deepseek-v2, 4 layers", "4090", PLAIN + ["--mem-fraction-static", "0.05"]),
    ("AWQ", "llama-8b awq", "4090", PLAIN + ["--mem-fraction-static", "0.2"]),
    ("GPTQ", "llama gptq, 4 layers", "4090", PLAIN + ["--mem-fraction-static", "0.08"]),
    ("FP8", "llama fp8, 4 layers", "4090", PLAIN + ["--mem-fraction-static", "0.08"]),
    ("sliding windows", "gemma2, 4 layers", "4090", PLAIN + ["--mem-fraction-static", "0.1"]),
    ("small GPU", "qwen3-8b", "L4", PLAIN + ["--mem-fraction-static", "0.6"]),
]


def plan(binary, engine, release, gpu, command):
    done = subprocess.run([binary, "plan", "--offline", "--json", "--gpu", gpu, "--engine", engine + "=" + release, "--"] + command,
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout else {"verdict": "error", "why": done.stderr.strip()}


def suggestions(binary, folder, engine, release, only):
    """(kind, model, GPU, flags, the failing plan, an answer) for each different command on one GPU of the same kind."""
    for kind, model, gpu, flags in VLLM if engine == "vllm" else SGLANG:
        if only and not any(text in (engine, kind, model, gpu) for text in only):
            continue
        place = models.write(folder, model) if engine == "vllm" else sglang_beside.place_of(folder, model)
        failing = plan(binary, engine, release, gpu, [engine, "serve", place] + flags)
        if failing["verdict"] not in ("refused", "fails", "oom"):
            print("does not fail:", engine, kind, model, gpu, " ".join(flags), failing["verdict"], failing.get("why"), file=sys.stderr)
        seen = set()
        for answer in failing.get("answers") or []:
            words = answer["command"] and shlex.split(answer["command"])
            change = answer.get("change") or []
            if not words or place not in words or answer["command"] in seen or any(re.match(r"--(tensor|pipeline|data)-parallel|--[tpd]p-size|--kv-cache-dtype", w) for w in change):
                continue
            seen.add(answer["command"])
            yield kind, model, gpu, flags, failing, answer


def row_of(engine, release, offer, folder, tokens, ends, seconds):
    kind, model, gpu, flags, failing, answer = offer
    promised = answer.get("kv_tokens")
    return dict(zip(COLUMNS, [engine, release, kind, model, gpu, " ".join(flags), failing.get("phase"), answer["name"], " ".join(answer["change"]).replace(folder + "/", ""),
                              promised, tokens, "%+.2f" % (100 * (promised / tokens - 1)) if promised and tokens else None, ends, round(seconds)]))


def start_vllm(binary, venv, gpu, offers, out):
    jobs = os.path.join(out, "jobs.jsonl")
    with open(jobs, "w", encoding="utf-8") as file:
        for i, offer in enumerate(offers):
            words = shlex.split(offer[-1]["command"])
            file.write(json.dumps({"key": "start%d" % i, "words": words[words.index("serve") + 1:] + ["--load-format", "dummy", "--skip-tokenizer-init"]}) + "\n")
    outcome = engines.dryrun(binary, venv, ["--gpu", gpu], ["python", os.path.join(HERE, "suggestions_zygote.py"), jobs, out], timeout=86400, waits=False)
    for i, offer in enumerate(offers):
        base = os.path.join(out, "start%d" % i)
        if not os.path.exists(base + ".json"):
            print(outcome.log[-2000:], file=sys.stderr)
            continue
        with open(base + ".json", encoding="utf-8") as file, open(base + ".log", encoding="utf-8", errors="replace") as log:
            end, found = json.load(file), re.findall(r"GPU KV cache size: ([\d,]+) tokens", log.read())
        yield offer, int(found[-1].replace(",", "")) if found else None, "starts" if end["ok"] else end["error"][:200], end["seconds"]


def start_whole(binary, venv, gpu, offers):
    for offer in offers:
        outcome = engines.dryrun(binary, venv, ["--gpu", gpu], shlex.split(offer[-1]["command"]) + ["--load-format", "dummy"], timeout=1500)
        fits = bool(outcome.report) and outcome.report["verdict"] == "fits"
        yield offer, outcome.report["kv"]["tokens"] if fits else None, "starts" if fits else outcome.log.strip().splitlines()[-1][:200], outcome.seconds


def start_sglang(binary, venv, gpu, offers):
    with forked.Engine(binary, venv, engines.environment(venv), gpu, sglang_beside.IMPORTED) as programs:
        for offer in offers:
            path = {"PATH": programs + ":" + engines.environment(venv)["PATH"]}
            outcome = engines.dryrun(binary, venv, ["--gpu", gpu], shlex.split(offer[-1]["command"]), path, timeout=300, waits=False)
            fits = bool(outcome.report) and outcome.report["verdict"] == "fits"
            yield offer, outcome.report["kv"]["tokens"] if fits else None, "starts" if fits else sglang_beside.failure(outcome)["error"], outcome.seconds


def key_of(row):
    return tuple(row[name] or "" for name in COLUMNS[:9])


def read_rows(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8", newline="") as file:
        return {key_of(row): row for row in csv.DictReader(file)}


def write_rows(path, rows):
    with open(path + ".new", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for _, row in sorted(rows.items()))
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--results", default=RESULTS)
    args = parser.parse_args()
    binary, until = os.path.abspath(args.binary), time.time() + 60 * args.minutes
    known = {"vllm": engines.venvs(), "sglang": sglang_beside.environments()}
    rows, kept = read_rows(args.results), {}
    with tempfile.TemporaryDirectory() as folder:
        for engine, found in known.items():
            release = list(found)[-1] if found else {"vllm": "0.32.0", "sglang": "0.5.23"}[engine]
            together = {}
            for offer in suggestions(binary, folder, engine, release, args.only):
                if args.list:
                    print(engine, offer[0], offer[1], offer[2], offer[4].get("phase"), offer[5]["name"], offer[5].get("kv_tokens"), " ".join(offer[5]["change"]))
                key = key_of(row_of(engine, release, offer, folder, None, "", 0))
                if key in rows:
                    kept[key] = rows[key]
                else:
                    together.setdefault(offer[2], []).append(offer)
            for gpu, offers in together.items() if found and not args.list else ():
                if time.time() > until:
                    print("no time for", engine, gpu, len(offers), file=sys.stderr)
                    continue
                with tempfile.TemporaryDirectory() as out:
                    starts = start_sglang(binary, found[release], gpu, offers) if engine == "sglang" else \
                        start_whole(binary, found[release], gpu, offers) if args.whole else start_vllm(binary, found[release], gpu, offers, out)
                    for offer, tokens, ends, seconds in starts:
                        row = row_of(engine, release, offer, folder, tokens, ends, seconds)
                        print(row, flush=True)
                        kept[key_of(row)] = row
                        write_rows(args.results, {**rows, **kept})
    if args.list:
        return 0
    if not any(known.values()):
        return engines.SKIP
    if not args.only and args.minutes == 1e6:
        write_rows(args.results, kept)  # rows of commands that are no longer suggested go
    return 0


if __name__ == "__main__":
    sys.exit(main())
