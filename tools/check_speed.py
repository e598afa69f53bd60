#!/usr/bin/env python3
"""How long a plan takes, process start included: check_speed.py BINARY FIXTURES [--slack X]

Plans a small model, and one with 36,945 tensors in the headers of its weight files, cold processes, best and median of
20 runs. Exit 1 when the best run is above 20 ms or 100 ms times the slack. Plans through the library are compared with an
earlier commit on the same machine: tools/speed_beside.py. Standard library only."""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

TENSORS = 36945


def write_headers(folder, files=163):
    """A MoE checkpoint of many small tensors: real headers, bodies that are holes."""
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "torch_dtype": "bfloat16",
                   "hidden_size": 4096, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_experts": 128,
                   "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "num_hidden_layers": 94,
                   "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
                   "max_position_embeddings": 40960, "tie_word_embeddings": False}, f)
    names = ["model.layers.%d.mlp.experts.%d.%s_proj.weight" % (layer, expert, part)
             for layer in range(94) for expert in range(128) for part in ("gate", "up", "down")]
    names += ["model.layers.%d.%s.weight" % (i % 94, "extra%d" % i) for i in range(TENSORS - len(names))]
    weight_map, share = {}, -(-len(names) // files)
    for index in range(files):
        file = "model-%05d-of-%05d.safetensors" % (index + 1, files)
        header, at = {}, 0
        for name in names[index * share:(index + 1) * share]:
            shape = [4096, 1536] if "down" in name else [1536, 4096]
            size = shape[0] * shape[1] * 2
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            at += size
            weight_map[name] = file
        text = json.dumps(header).encode()
        with open(os.path.join(folder, file), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            f.truncate(8 + len(text) + at)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {}, "weight_map": weight_map}, f)


def measure(binary, model, runs=20):
    command = [binary, "plan", "--json", "--gpu", "h200", "--", "vllm", "serve", model, "--tensor-parallel-size", "8"]
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        times.append((time.perf_counter() - start) * 1000)
        if run.returncode not in (0, 1):
            sys.exit("cannot plan: %s" % run.stderr.decode())
    return min(times), statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("fixtures")
    parser.add_argument("--slack", type=float, default=1.0, help="for sanitized builds and loaded machines")
    args = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        write_headers(folder)
        for name, model, limit in (("small config", os.path.join(args.fixtures, "models/small-llama"), 20),
                                   ("%d tensors in headers" % TENSORS, folder, 100)):
            best, median = measure(args.binary, model)
            ok = best <= limit * args.slack
            bad += not ok
            print("%s %-28s best %.1f ms, median %.1f ms (limit %d ms)" % ("ok  " if ok else "FAIL", name, best, median, limit))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
