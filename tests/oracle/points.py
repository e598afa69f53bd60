"""What is started: an engine version, a model, a device, flags. The six ways every version goes through, and more points
for the comparison of `plan` with `dryrun`."""

WAYS = [
    ("eager", "opt-1.3b", ["--gpu", "A30"], ["--enforce-eager"]),
    ("compiled, graphs", "llama-3.2-1b", ["--gpu", "L40S"], ["--max-model-len", "8192"]),
    ("TP 2", "qwen2.5-7b", ["--gpu", "A30x2"], ["--tensor-parallel-size", "2", "--enforce-eager", "--max-model-len", "8192"]),
    ("MoE", "qwen3-30b-a3b", ["--gpu", "A100-80GB"], ["--enforce-eager", "--max-model-len", "8192"]),
    ("hybrid", "nemotron-nano-9b", ["--gpu", "H100"], ["--enforce-eager", "--max-model-len", "8192"]),
    ("quantised", "llama-3.1-8b-gptq", ["--gpu", "L4"], ["--enforce-eager", "--max-model-len", "8192"]),
]
# the transformers of these does not know the other model; a large 8.0 device, so that its experts run on Triton
JAMBA = ("hybrid", "jamba-mini", ["--gpu", "A100-80GB", "--gpu-total", "160GiB"], ["--enforce-eager", "--max-model-len", "8192"])
INSTEAD = {("0.11.0", "hybrid"): JAMBA, ("0.21.0", "hybrid"): JAMBA}
VERSIONS = ["0.11.0", "0.19.1", "0.21.0", "0.24.0", "0.28.0", "0.32.0"]

SHORT = ["--enforce-eager", "--max-model-len", "8192"]
MORE = [
    ("latent attention", "deepseek-v2-lite", ["--gpu", "H100"], SHORT, ["0.32.0", "0.19.1"]),
    ("windows and full", "gemma-2-9b", ["--gpu", "H100"], SHORT, ["0.32.0", "0.19.1"]),
    ("MXFP4 experts", "gpt-oss-20b", ["--gpu", "H100"], SHORT, ["0.32.0"]),
    ("FP8 weights", "llama-3.1-8b-fp8", ["--gpu", "L40S"], SHORT, ["0.32.0", "0.19.1"]),
    ("AWQ", "llama-3.1-8b-awq", ["--gpu", "4090"], SHORT, ["0.32.0"]),
    ("FP8 KV", "qwen3-8b", ["--gpu", "H100"], SHORT + ["--kv-cache-dtype", "fp8"], ["0.32.0", "0.19.1"]),
    ("tied, biased", "qwen2.5-1.5b", ["--gpu", "T4"], SHORT, ["0.32.0"]),
    ("tied, graphs", "qwen3-0.6b", ["--gpu", "A10"], ["--max-model-len", "4096"], ["0.32.0"]),
    ("no grouped heads", "phi-3-mini", ["--gpu", "A30"], ["--enforce-eager"], ["0.32.0", "0.19.1"]),
    ("long batches", "mistral-7b", ["--gpu", "A100-80GB"], ["--enforce-eager", "--max-model-len", "32768",
                                                            "--max-num-batched-tokens", "16384"], ["0.32.0", "0.19.1"]),
    ("large experts", "mixtral-8x7b", ["--gpu", "H200"], SHORT, ["0.32.0"]),
    ("hybrid with experts", "qwen3-next-80b", ["--gpu", "B200"], SHORT, ["0.32.0"]),
    ("hybrid, quantised", "qwen3.6-27b-w4a16", ["--gpu", "H100"], SHORT + ["--language-model-only"], ["0.32.0", "0.19.1"]),
    ("Mamba 1 and experts", "jamba-mini", ["--gpu", "H200"], SHORT, ["0.32.0"]),
    ("few requests", "llama-3.1-8b", ["--gpu", "A100-40GB"], SHORT + ["--max-num-seqs", "16"], ["0.32.0"]),
    ("TP 2 experts", "qwen3-30b-a3b", ["--gpu", "A100-40GBx2"], SHORT + ["--tensor-parallel-size", "2"], ["0.32.0"]),
    ("200B-class experts", "qwen3-235b-a22b-rank", ["--gpu", "B200"], SHORT, ["0.32.0"]),
]


def all_points():
    """[(version, way, model, device, flags)], the ways of every version first."""
    points = [(version, *INSTEAD.get((version, way[0]), way)) for version in VERSIONS for way in WAYS]
    return points + [(version, *point[:4]) for point in MORE for version in point[4]]
