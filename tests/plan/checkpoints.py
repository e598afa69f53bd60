#!/usr/bin/env python3
"""The weights of every built-in checkpoint are of the size that its quantization has: checkpoints.py BINARY CATALOGUE

Each id is planned alone. Where its name has a quantization, its weights are compared with those of the unquantized model that it is made of, or with
the parameters that its name has, and none is planned as if it were unquantized. Prints what is wrong and ends with one line; exit 1 when anything
is."""
import concurrent.futures
import json
import re
import subprocess
import sys

# Bits of a weight by the words of a name, and what of 16 bits the whole may be: embeddings, heads, towers and small models keep theirs.
FOUR, EIGHT = re.compile(r"nvfp4|mxfp4|fp4|awq|gptq(?!-int8)|int4|w4a|4bit|bnb", re.I), re.compile(r"fp8|int8|w8a|8bit|mxfp8", re.I)
SHARES = ((FOUR, 0.24, 0.75), (EIGHT, 0.5, 0.75))
QUANTIZED = re.compile(r"FP[48]|INT[48]", re.I)


def base_of(catalogue, name):
    entry = catalogue[name]
    return base_of(catalogue, entry) if isinstance(entry, str) else entry.get("of") or entry.get("like")


def is_quantized(catalogue, name):
    """Itself, or what it is another name of: DeepSeek-V4 is published in FP4 and FP8."""
    entry = catalogue[name]
    if isinstance(entry, str):
        return is_quantized(catalogue, entry)
    config = entry.get("config", {})
    return "quantization_config" in config or "quant" in entry or "quantization_config" in entry.get("change", {})


def main():
    binary = sys.argv[1]
    catalogue = json.load(open(sys.argv[2], encoding="utf-8"))

    def weights(name):
        words = [binary, "plan", "--offline", "--json", "--gpu", "b300", "--", "vllm", "serve", name]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode > 1:
            return name, 0, []
        plan = json.loads(done.stdout)
        return name, plan["weights_bytes"], plan["notes"]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(weights, sorted(catalogue)))
    sizes = {name: size for name, size, _ in answers}
    wrong = ["%s: %s" % (name, note) for name, _, notes in answers for note in notes if "planned unquantized" in str(note)]
    compared = 0
    for name, size, _ in answers:
        share = next((s for s in SHARES if s[0].search(name)), None)
        if not share or not size:
            continue
        base = base_of(catalogue, name)
        named = re.search(r"(\d+(?:\.\d+)?)B(?![a-z])", name.split("/")[-1], re.I)
        if base in sizes and sizes[base] and not is_quantized(catalogue, base):
            whole = sizes[base]
        elif named and "-VL" not in name:
            whole = 2e9 * float(named[1])
        else:
            continue
        compared += 1
        if not share[1] <= size / whole <= share[2]:
            wrong.append("%s: %.2f GiB, %.2f of its 16 bits" % (name, size / 2**30, size / whole))
    print("\n".join(wrong + ["%d wrong; %d of %d ids compared" % (len(wrong), compared, len(answers))]))
    return 1 if wrong or compared < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
