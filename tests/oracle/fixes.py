"""Do the commands that `plan` offers start? Commands that fail are planned, and each answer is started by the real engine on the
stand-in device it was offered for.

    tests/oracle/fixes.py BINARY [--list] [--missing] [--forked] [--only TEXT]... [--results FILE] [VERSION...]

Answers that store the cache in FP8 are started on Hopper only: elsewhere the backend that takes it is compiled by nvcc for half an hour.

A line of fixes.jsonl per start, as soon as it is there; lines of engines that are not installed stay, and so do lines whose offered
command is still the same. --list plans only. --forked starts the
engine core of those on one GPU from a process that has imported the engine (fixes_zygote.py), a release and a device at a time; the others are whole servers. tools/figures.py makes docs/evidence/results/suggestions.csv from the lines."""
import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import engines
import models

HERE = os.path.dirname(os.path.abspath(__file__))
ANSWERS = ["least_change", "longest_context"]
# kind, model, GPUs, flags of a command that lacks memory, releases (none named: all)
FAILING = [
    ("dense", "qwen3-8b", "4090", ["--max-model-len", "32768", "--gpu-memory-utilization", "0.8"], None),
    ("dense, tied", "qwen3-4b", "3060", [], None),
    ("MoE", "qwen3-30b-a3b", "A100-80GB", ["--gpu-memory-utilization", "0.75"], None),
    ("hybrid", "nemotron-nano-9b", "4090", ["--max-num-seqs", "512"], ["0.19.1", "0.24.0", "0.28.0", "0.32.0"]),
    ("hybrid", "jamba-mini", "H200", ["--gpu-memory-utilization", "0.7"], ["0.11.0"]),
    ("quantised", "llama-3.1-8b-gptq", "3060", [], None),
    ("multimodal", "qwen3.6-27b-w4a16", "4090", ["--language-model-only"], ["0.19.1", "0.24.0", "0.28.0", "0.32.0"]),
    ("windows", "gemma-2-9b", "4090", ["--gpu-memory-utilization", "0.85"], ["0.11.0", "0.24.0", "0.28.0"]),
    ("latent attention", "deepseek-v2-lite", "A100-40GB", ["--gpu-memory-utilization", "0.8"], None),
    ("long, Hopper", "llama-3.1-8b-fp8", "H100", ["--gpu-memory-utilization", "0.2"], None),
    ("TP 2", "qwen2.5-7b", "3060x2", ["--tensor-parallel-size", "2", "--gpu-memory-utilization", "0.7"], None),
]
VERSIONS = ["0.19.1", "0.24.0", "0.28.0", "0.32.0"]


def plan(binary, version, gpu, command):
    done = subprocess.run([binary, "plan", "--offline", "--json", "--gpu", gpu, "--vllm", version, "--"] + command,
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout else {"verdict": "error", "why": done.stderr.strip()}


def offers(binary, folder, versions, only):
    """(release, kind, model, GPUs, flags, name of the answer, its change, its command)"""
    for kind, model, gpu, flags, some in FAILING:
        for version in versions:
            if some and version not in some or only and not any(text in (kind, model, gpu) for text in only):
                continue
            command = ["vllm", "serve", models.write(folder, model)] + flags
            failing = plan(binary, version, gpu, command)
            if failing["verdict"] not in ("refused", "fails", "oom"):
                print(version, kind, model, gpu, " ".join(flags), "does not fail:", failing["verdict"], failing.get("why"), file=sys.stderr)
            seen = set()
            for answer in failing.get("answers") or []:
                if "--kv-cache-dtype" in answer["change"] and not gpu.startswith("H"):
                    continue
                if answer["name"] in ANSWERS and answer["command"] not in seen:
                    seen.add(answer["command"])
                    yield version, kind, model, gpu, flags, failing, answer


def last_words(log):
    lines = [line.strip() for line in log.splitlines() if "Error" in line and "Engine core init" not in line]
    return lines[-1][-200:] if lines else ""


def key_of(record):
    return record["version"], record["kind"], record["model"], record["gpu"], record["answer"]


def write_results(path, results):
    with open(path + ".new", "w", encoding="utf-8") as file:
        for _, record in sorted(results.items(), key=lambda item: (engines.version_key(item[0][0]), item[0][1:])):
            file.write(json.dumps(record) + "\n")
    os.replace(path + ".new", path)


def offered(offer):
    version, kind, model, gpu, flags, failing, answer = offer
    return {"version": version, "kind": kind, "model": model, "gpu": gpu, "flags": flags, "fails_in": failing["phase"],
            "answer": answer["name"], "change": answer["change"], "foreseen_tokens": answer["kv_tokens"], "probability": answer["probability"]}


def record_of(offer, outcome):
    report = outcome.report or {}
    record = dict(offered(offer), verdict=report.get("verdict"), phase=report.get("phase"), tokens=(report.get("kv") or {}).get("tokens"),
                  compile_cache=report.get("compile_cache"), way="server", wall_seconds=round(outcome.seconds))
    if record["verdict"] != "fits":
        record["why"] = last_words(outcome.log)
    return record


def forked_record(offer, end, log):
    tokens = re.findall(r"GPU KV cache size: ([\d,]+) tokens", log)
    record = dict(offered(offer), verdict="fits" if end["ok"] else "fails", phase=None, tokens=int(tokens[-1].replace(",", "")) if tokens else None,
                  compile_cache="cold" if "Compiling a graph for " in log else "warm" if "Directly load " in log else None, way="core",
                  wall_seconds=round(end["seconds"]))
    if not end["ok"]:
        record["why"] = end["error"]
    return record


def start_forked(binary, venv, gpu, some, out):
    """(offer, record) of those of one release and device that came to an end; a child that took too long has none."""
    jobs = os.path.join(out, "jobs.jsonl")
    with open(jobs, "w", encoding="utf-8") as file:
        for i, offer in enumerate(some):
            words = shlex.split(offer[-1]["command"])
            file.write(json.dumps({"key": "start%d" % i, "words": words[words.index("serve") + 1:] + ["--load-format", "dummy", "--skip-tokenizer-init"]}) + "\n")
    zygote = os.path.join(HERE, "fixes_zygote.py")
    outcome = engines.dryrun(binary, venv, ["--gpu", gpu], ["python", zygote, jobs, out], timeout=86400, waits=False)
    for i, offer in enumerate(some):
        base = os.path.join(out, "start%d" % i)
        if not os.path.exists(base + ".json"):
            continue
        with open(base + ".json", encoding="utf-8") as file, open(base + ".log", encoding="utf-8", errors="replace") as log:
            text = log.read()
            yield offer, forked_record(offer, json.load(file), text), text
    if not os.path.exists(os.path.join(out, "start0.json")):
        print(outcome.log[-2000:], file=sys.stderr)


def row(r):
    ends = "starts" if r["verdict"] == "fits" else "%s: %s" % (r["phase"] or r["verdict"] or "no report", r.get("why", "").replace("|", "\\|"))
    return "| %s | %s | %s | %s `%s` | %s | %s | `%s` | %s | %s | %s | %s | %s |" % (
        r["version"], r["kind"], r["model"], r["gpu"], " ".join(r["flags"]) or "vllm serve", r["fails_in"], r["answer"].replace("_", " "),
        " ".join(r["change"]), "{:,}".format(r["foreseen_tokens"]) if r["foreseen_tokens"] else "-",
        "{:,}".format(r["tokens"]) if r["tokens"] else "-", r.get("compile_cache") or "-", r.get("way", "server"), ends)


def is_kept(path, offer):
    record = offered(offer)
    kept = engines.read_results(path, key_of).get(key_of(record))
    return kept and kept["change"] == record["change"] and kept["flags"] == record["flags"]


def keep(path, record, log):
    results = engines.read_results(path, key_of)
    if record["verdict"] not in (None, "unknown"):  # ended for want of time: says nothing of the offer
        results[key_of(record)] = record
        write_results(path, results)
    print(row(record), flush=True)
    if os.environ.get("OOMSIGHT_KEEP_LOGS"):
        name = "%s-%s-%s.log" % (record["version"], record["model"], record["answer"])
        with open(os.path.join(os.environ["OOMSIGHT_KEEP_LOGS"], name), "w", encoding="utf-8") as file:
            file.write(log)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--missing", action="store_true", help="not again what has a line for the same change")
    parser.add_argument("--forked", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--results", default=os.path.join(HERE, "fixes.jsonl"))
    parser.add_argument("--timeout", type=int, default=600)
    args = parser.parse_intermixed_args()
    found, binary = engines.venvs(), os.path.abspath(args.binary)
    with tempfile.TemporaryDirectory() as folder:
        wanted = list(offers(binary, folder, args.versions or VERSIONS, args.only))
        if args.list:
            for version, kind, model, gpu, flags, failing, answer in wanted:
                print(version, kind, model, gpu, " ".join(flags), failing["phase"], answer["name"], answer["probability"],
                      " ".join(answer["change"]))
            return 0
        wanted = [offer for offer in wanted if offer[0] in found and not (args.missing and is_kept(args.results, offer))]
        together = {}
        for offer in wanted:
            forks = args.forked and not re.search(r"x\d+$", offer[3])
            together.setdefault((offer[0], offer[3]) if forks else id(offer), []).append(offer)
        for some in together.values():
            some.sort(key=lambda offer: "--enforce-eager" not in offer[-1]["change"])  # the short ones first
            version, gpu = some[0][0], some[0][3]
            if not args.forked or re.search(r"x\d+$", gpu):
                outcome = engines.dryrun(binary, found[version], ["--gpu", gpu], shlex.split(some[0][-1]["command"]), timeout=args.timeout)
                keep(args.results, record_of(some[0], outcome), outcome.log + "\n" + json.dumps(outcome.report, indent=1))
                continue
            with tempfile.TemporaryDirectory() as out:
                for offer, record, log in start_forked(binary, found[version], gpu, some, out):
                    keep(args.results, record, log)
    return 0 if found else engines.SKIP


if __name__ == "__main__":
    sys.exit(main())
