"""What does each lever of the ladder free? Two starts of the real engine on the simulated GPU, without and with it, beside two plans.

    tests/oracle/levers.py BINARY [--list] [--release RELEASE]... [--only LEVER]... [--results FILE]

A row of docs/evidence/results/levers.csv per release and lever: KV tokens of the engine and of `plan` before and after, and what that is in bytes of KV
cache at the first start's bytes per token. `equal`: the bytes differ by at most 5 % or 1 MiB. Levers of data/engines/*/levers.json that
have no row are printed at the end. Exit 77 without an engine."""
import argparse
import csv
import json
import os
import shlex
import sys
import tempfile

import engines
import models
import sglang_beside
import suggestions

ROOT = os.path.join(suggestions.HERE, "..", "..")
RESULTS = os.path.join(ROOT, "docs", "evidence", "results", "levers.csv")
COLUMNS = ["engine", "release", "lever", "model", "gpu", "before", "after", "tokens_before", "tokens_after", "planned_before", "planned_after", "frees_mib", "planned_mib", "equal"]
EAGER, SHARE = suggestions.EAGER, suggestions.SHARE
GRAPHS = '{"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY", "max_cudagraph_capture_size": %d}'
LLAMA, PLAIN = "llama-3.2-1b", sglang_beside.PLAIN
TRITON = sglang_beside.TRITON + ["--disable-prefill-cuda-graph"]
# lever, model, GPU, flags before, flags after
VLLM = [
    ("utilization_up", LLAMA, "4090", EAGER + [SHARE, "0.5"], EAGER + [SHARE, "0.6"]),
    ("utilization_down", LLAMA, "4090", EAGER + [SHARE, "0.6"], EAGER + [SHARE, "0.5"]),
    ("batched_tokens", LLAMA, "4090", EAGER + ["--max-num-batched-tokens", "16384"], EAGER + ["--max-num-batched-tokens", "2048"]),
    ("num_seqs", LLAMA, "4090", EAGER + ["--max-num-seqs", "1024"], EAGER + ["--max-num-seqs", "64"]),
    ("capture", LLAMA, "4090", ["--compilation-config", GRAPHS % 256], ["--compilation-config", GRAPHS % 32]),
    ("eager", LLAMA, "4090", ["--compilation-config", GRAPHS % 256], EAGER),
    ("kv_fp8", LLAMA, "H100", EAGER, EAGER + ["--kv-cache-dtype", "fp8"]),
    ("weights_fp8", LLAMA, "4090", EAGER, EAGER + ["--quantization", "fp8"]),
    ("offload", LLAMA, "4090", EAGER, EAGER + ["--cpu-offload-gb", "1"]),
    ("no_speculation", LLAMA, "4090", EAGER + ["--speculative-config", suggestions.NGRAM], EAGER),
    ("kv_bytes", LLAMA, "4090", EAGER, EAGER + ["--kv-cache-memory-bytes", "4294967296"]),
    ("kv_bytes_out", LLAMA, "4090", EAGER + ["--kv-cache-memory-bytes", "4294967296"], EAGER),
    ("kv_blocks_out", LLAMA, "4090", EAGER + ["--num-gpu-blocks-override", "4096"], EAGER),
    ("sleep_off", LLAMA, "4090", EAGER + ["--enable-sleep-mode"], EAGER),
    ("checkpoint", "llama-3.1-8b", "4090", EAGER + ["--max-model-len", "8192"], None),
]
SMALL = "qwen3, 4 layers"
SGLANG = [
    ("fraction_up", SMALL, "4090", PLAIN + ["--mem-fraction-static", "0.5"], PLAIN + ["--mem-fraction-static", "0.6"]),
    ("fraction_down", SMALL, "4090", PLAIN + ["--mem-fraction-static", "0.6"], PLAIN + ["--mem-fraction-static", "0.5"]),
    ("chunk", SMALL, "4090", PLAIN + ["--chunked-prefill-size", "8192"], PLAIN + ["--chunked-prefill-size", "2048"]),
    ("running", SMALL, "4090", PLAIN + ["--max-running-requests", "1024"], PLAIN + ["--max-running-requests", "16"]),
    ("context", SMALL, "4090", PLAIN, PLAIN + ["--context-length", "4096"]),
    ("capture", SMALL, "4090", TRITON + ["--cuda-graph-max-bs-decode", "48"], TRITON + ["--cuda-graph-max-bs-decode", "8"]),
    ("eager", SMALL, "4090", TRITON + ["--cuda-graph-max-bs-decode", "48"], PLAIN),
    ("kv_fp8", SMALL, "4090", PLAIN, PLAIN + ["--kv-cache-dtype", "fp8_e4m3"]),
    ("weights_fp8", SMALL, "4090", PLAIN, PLAIN + ["--quantization", "fp8"]),
    ("offload", SMALL, "4090", PLAIN, PLAIN + ["--cpu-offload-gb", "1"]),
    ("no_speculation", SMALL, "4090", PLAIN + ["--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "4"], PLAIN),
]


def commands(folder, engine, case):
    lever, model, _, before, after = case
    place = models.write(folder, model) if engine == "vllm" else sglang_beside.place_of(folder, model)
    other = models.write(folder, "llama-3.1-8b-awq") if after is None else place
    return [engine, "serve", place] + before, [engine, "serve", other] + (before if after is None else after)


def row_of(binary, engine, release, case, pair, tokens):
    lever, model, gpu, before, after = case
    plans = [suggestions.plan(binary, engine, release, gpu, words) for words in pair]
    planned = [(p.get("kv") or {}).get("tokens") for p in plans]
    kv = plans[0].get("kv") or {}
    each = kv.get("bytes_per_token") or 0
    frees = [each * (t[1] - t[0]) / 2**20 if all(t) else None for t in (tokens, planned)]
    equal = None not in frees and abs(frees[0] - frees[1]) <= max(1, 0.05 * abs(frees[0]))
    told = ["%.1f" % f if f is not None else None for f in frees]
    return dict(zip(COLUMNS, [engine, release, lever, model, gpu, " ".join(before), " ".join(after or ["an AWQ checkpoint"]), *tokens, *planned, *told, "yes" if equal else "no"]))


def starts(binary, engine, venv, gpu, pairs, out):
    """[tokens before, tokens after] of each pair, in order."""
    offers = [(i, {"command": shlex.join(words)}) for i, pair in enumerate(pairs) for words in pair]
    tokens = [[] for _ in pairs]
    for offer, found, ends, _ in suggestions.start_vllm(binary, venv, gpu, offers, out) if engine == "vllm" else suggestions.start_sglang(binary, venv, gpu, offers):
        tokens[offer[0]].append(found)
        print(offer[-1]["command"][-120:], found, ends, flush=True)
    return tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--release", action="append", default=[], help="those that are installed; the newest of each engine without it")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--results", default=RESULTS)
    args = parser.parse_args()
    binary = os.path.abspath(args.binary)
    known = {"vllm": engines.venvs(), "sglang": sglang_beside.environments()}
    rows = {}
    if os.path.exists(args.results):
        with open(args.results, encoding="utf-8", newline="") as file:
            rows = {(r["engine"], r["release"], r["lever"]): r for r in csv.DictReader(file)}
    newest = {engine: [list(found)[-1] if found else {"vllm": "0.32.0", "sglang": "0.5.23"}[engine]] for engine, found in known.items()}
    for engine, release in [(e, r) for e, found in known.items() for r in ([r for r in args.release if r in found] if args.release else newest[e])]:
        found, together = known[engine], {}
        for case in VLLM if engine == "vllm" else SGLANG:
            if not args.only or case[0] in args.only or engine in args.only:
                together.setdefault(case[2], []).append(case)
        for gpu, cases in together.items():
            with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
                pairs = [commands(folder, engine, case) for case in cases]
                measured = starts(binary, engine, found[release], gpu, pairs, out) if found and not args.list else [[None, None]] * len(cases)
                for case, pair, tokens in zip(cases, pairs, measured):
                    row = row_of(binary, engine, release, case, pair, (tokens + [None, None])[:2])
                    print(row["engine"], row["lever"], row["frees_mib"], row["planned_mib"], row["equal"], flush=True)
                    if row["frees_mib"] is not None:
                        rows[engine, release, case[0]] = row
    if not args.list:
        with open(args.results, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(row for _, row in sorted(rows.items()))
    for engine in known:
        with open(os.path.join(ROOT, "data", "engines", engine, "levers.json"), encoding="utf-8") as file:
            missing = [lever["id"] for lever in json.load(file)["levers"] if not any(key[0] == engine and key[2] == lever["id"] for key in rows)]
        print(engine, "not started:", " ".join(missing))
    return 0 if any(known.values()) else engines.SKIP


if __name__ == "__main__":
    sys.exit(main())
