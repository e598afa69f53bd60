"""The real cases this project was started for, raised again by the engines of those versions without a GPU.

    tests/oracle/seeds.py BINARY [CASE...]

A case without its engine (a virtual environment vllm-VERSION in OOMSIGHT_VENVS) is skipped; exit 77 when all are. What came
out is a line of seeds.jsonl, from which docs/evidence/dryrun.md is made. The --outside figures are what each report printed beyond
PyTorch's own memory: no stand-in can know them."""
import json
import os
import sys
import tempfile

import engines
import models
import serve_table

GIB, MIB = 1 << 30, 1 << 20
HYBRID = ["--gpu-memory-utilization", "0.8", "--enable-prefix-caching", "--enable-chunked-prefill", "--language-model-only",
          "--max-model-len", "16384", "--kv-cache-dtype", "fp8", "--speculative-config",
          '{"method":"mtp","num_speculative_tokens":2}']
SLICE = ["--language-model-only", "--quantization", "auto_round", "--kv-cache-dtype", "fp8_e5m2", "--attention-backend",
         "flashinfer", "--gpu-memory-utilization", "0.92", "--max-model-len", "32768"]
SLEEP = ["--enable-sleep-mode", "--gpu-memory-utilization", "0.93", "--max-num-seqs", "1024", "--enforce-eager"]
A5090 = ["--gpu", "RTX 5090", "--gpu-total", "33672921088"]
A3090 = ["--gpu", "RTX 3090", "--gpu-total", "24696061952", "--outside", "500MiB"]
GB200 = ["--gpu", "GB200", "--gpu-total", "197901352960", "--compute-capability", "10.0", "--outside", "2529MiB"]
A30 = ["--gpu", "A30x4", "--gpu-total", "25232932864"]
# reported of `vllm bench throughput`, which profiles 8192 tokens at once where the server of that release takes 2048
BENCH = ["--tensor-parallel-size", "4", "--max-num-batched-tokens", "8192"]


def near(value, want, within):
    return value is not None and abs(value - want) <= within


def oom(report, tried, phase):
    return report["verdict"] == "fails" and near(report["tried_bytes"], tried, 2 * MIB) and report["phase"] == phase


# name: version, device, model, flags, what must hold of (report, log)
CASES = {
    "001": ("0.19.1", A5090 + ["--outside", "4606MiB"], "qwen3.6-27b-w4a16", HYBRID,
            lambda r, log: oom(r, 1.5625 * GIB, "cudagraph_profile") and "num_gpu_blocks_override=512" in log
            and "Add 3 padding layers" in log and "_init_minimal_kv_cache_for_profiling" in log),
    "001-fix": ("0.19.1", A5090 + ["--outside", "4606MiB"], "qwen3.6-27b-w4a16", HYBRID + ["--max-num-seqs", "16"],
                lambda r, log: r["verdict"] == "fits" and near(r["kv"]["tokens"], 46400, 500) and r["child"]["graphs"] > 0),
    "002": ("0.19.1", A3090, "qwen3.6-27b-autoround", SLICE,
            lambda r, log: oom(r, 1.53125 * GIB, "cudagraph_profile")),
    "002-fix": ("0.19.1", A3090, "qwen3.6-27b-autoround", SLICE + ["--enforce-eager"],
                lambda r, log: r["verdict"] == "fits"),
    "004": ("0.21.0", GB200, "qwen3-235b-a22b-rank", SLEEP,
            lambda r, log: r["verdict"] == "fails" and r["tried_bytes"] == 20 * MIB
            and near(r["child"]["torch_allocated_bytes"], 181.8 * GIB, 0.3 * GIB)
            and near(r["child"]["private_pools_bytes"], 71.15 * GIB, 0.3 * GIB)),
    "004-clean": ("0.20.2", GB200 + ["--until", "profile_run"], "qwen3-235b-a22b-rank", SLEEP,
                  lambda r, log: r["verdict"] == "fits" and near(r["weights_bytes"], 109.6 * GIB, 0.2 * GIB)),
    "000-start": ("0.11.0", A30 + ["--outside", "1380MiB"], "opt-2.7b",
                  BENCH + ["--gpu-memory-utilization", "0.8"],
                  lambda r, log: near(r["weights_bytes"], 1.24 * GIB, 0.006 * GIB) and near(r["kv"]["tokens"], 226000, 1356)
                  and near(r["peak_activation_bytes"], 0.22 * GIB, 0.006 * GIB) and "FlexAttention" in log),
    "000": ("0.11.0", A30 + ["--outside", "1476MiB", "--load", "200:512:256"], "opt-2.7b",
            BENCH + ["--gpu-memory-utilization", "0.796"],
            lambda r, log: r["verdict"] == "fails" and r["tried_bytes"] == 40 * MIB
            and near(r["child"]["private_pools_bytes"], 1.78 * GIB, 0.02 * GIB)),
    # in its own form; needs FlashInfer and transformers below 5. Answers all requests so far: docs/evidence/dryrun.md
    "000-bench": ("0.11.0", A30 + ["--outside", "1476MiB"], "opt-2.7b",
                  ["--tensor-parallel-size", "4", "--gpu-memory-utilization", "0.796", "--num-prompts", "200"],
                  lambda r, log: r["verdict"] == "fails" and r["tried_bytes"] == 40 * MIB and r["phase"].startswith("runtime")),
}


def command(name, model, flags, scratch):
    if not name.endswith("-bench"):
        return ["vllm", "serve", model] + flags
    lengths = ["--dataset-name", "random", "--input-len", "512", "--output-len", "256"]
    return ["vllm", "bench", "throughput", "--model", model, "--tokenizer", serve_table.tokenizer(os.path.join(scratch, "tokenizer")),
            "--load-format", "dummy"] + lengths + flags


def summary(report):
    child = report["child"]
    return {"verdict": report["verdict"], "phase": report["phase"], "tried_bytes": report["tried_bytes"],
            "weights_bytes": report["weights_bytes"], "kv_tokens": report["kv"]["tokens"],
            "peak_bytes": report["peak_activation_bytes"], "kv_available_bytes": report["kv"]["available_bytes"],
            "backend": report["attention_backend"], "private_pools_bytes": child["private_pools_bytes"],
            "torch_allocated_bytes": child["torch_allocated_bytes"], "message": child["oom_message"]}


def keep(name, record):
    """The last result of each case, in the order of CASES."""
    path = os.environ.get("OOMSIGHT_SEEDS", os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds.jsonl"))
    try:
        with open(path, encoding="utf-8") as lines:
            kept = {line["case"]: line for line in map(json.loads, lines)}
    except FileNotFoundError:
        kept = {}
    kept[name] = record
    with open(path + ".new", "w", encoding="utf-8") as f:
        for case in CASES:
            if case in kept:
                f.write(json.dumps(kept[case]) + "\n")
    os.replace(path + ".new", path)


def main():
    binary = os.path.abspath(sys.argv[1])
    wanted = sys.argv[2:] or list(CASES)
    found = engines.venvs()
    shown = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            version, device, model, flags, holds = CASES[name]
            if version not in found:
                print("skip %s: no vLLM %s in %s" % (name, version, engines.VENVS), flush=True)
                continue
            outcome = engines.dryrun(binary, found[version], device, command(name, models.write(folder, model), flags, folder))
            shown += 1
            right = bool(outcome.report) and holds(outcome.report, outcome.log)
            failed += not right
            print("%s %s on vLLM %s, %.0f s" % ("ok  " if right else "FAIL", name, version, outcome.seconds))
            if outcome.report:
                keep(name, {"case": name, "version": version, "holds": right, "wall_seconds": round(outcome.seconds),
                            "cpu_seconds": round(outcome.cpu_seconds), "resident_bytes": outcome.rss_bytes,
                            **summary(outcome.report)})
            print("     %s" % (summary(outcome.report) if outcome.report else outcome.log[-2000:]), flush=True)
            if not right and os.environ.get("OOMSIGHT_KEEP_LOGS"):
                with open(os.path.join(os.environ["OOMSIGHT_KEEP_LOGS"], name + ".log"), "w") as f:
                    f.write(outcome.log)
    return engines.SKIP if not shown else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
