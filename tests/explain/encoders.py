#!/usr/bin/env python3
"""An encoder is named as the cause only where the model may have one: encoders.py BINARY CATALOGUE

One failed request above the whole GPU, in a log that names every fifth model of the catalogue in three ways. A model whose config has no vision, audio
or encoder part is never said to fail while profiling images; one that has is. Prints what is wrong and ends with one line; exit 1 when anything is."""
import json
import subprocess
import sys

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 GiB. GPU 0 has a total capacity of 23.52 GiB of which 8.00 GiB is free.\n"
WAYS = ("$ vllm serve %s\n",
        "INFO 11-16 12:00:00 [api_server.py:1] vLLM API server version 0.32.0\nINFO 11-16 12:00:00 [utils.py:2] non-default args: {'model_tag': '%s', 'model': '%s', 'max_model_len': 4096}\n",
        "$ vllm serve %s --max-model-len 4096 --limit-mm-per-prompt '{}'\n")


def keys_of(catalogue, name):
    entry = catalogue[name]
    entry = {"of": entry} if isinstance(entry, str) else entry
    below = entry.get("of") or entry.get("like")
    return set(entry.get("config", ())) | (keys_of(catalogue, below) if below else set())


def main():
    binary = sys.argv[1]
    catalogue = json.load(open(sys.argv[2], encoding="utf-8"))
    wrong, asked, with_one = [], 0, 0
    for name in sorted(catalogue)[::5]:
        encoder = any(part in key for key in keys_of(catalogue, name) for part in ("vision", "audio", "encoder", "mm_tokens", "text_config"))
        planned = subprocess.run([binary, "plan", "--offline", "--gpu", "h100", "--", "vllm", "serve", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if planned.returncode > 1:
            continue # what cannot be planned is not known
        with_one += encoder
        for way in WAYS:
            asked += 1
            text = way.replace("%s", name) + OOM
            done = subprocess.run([binary, "explain", "--offline", "--json", "-"], input=text, capture_output=True, text=True, check=False)
            answer = json.loads(done.stdout)
            names = answer["phase"] == "mm_profile" or answer["cause"] == "mm_encoder_peak" or "mm_encoder_peak" in answer["also"]
            if names != encoder:
                wrong.append("%s, %s an encoder: %s, %s" % (name, "has" if encoder else "has not", answer["phase"], answer["cause"]))
    print("\n".join(wrong + ["%d wrong of %d, %d models with an encoder" % (len(wrong), asked, with_one)]))
    return 1 if wrong or asked < 30 or not with_one else 0


if __name__ == "__main__":
    sys.exit(main())
