#!/usr/bin/env python3
"""The configs in common use as facts: catalogue.py MODELS IDS [--more FILE] [--check BINARY] >data/catalogue.json

MODELS has a folder with config.json (and hf_quant_config.json) for each model; IDS is a file with lines "id folder" or "id = other id".
Of a config only the keys that src/model and data/models read are kept, sizes and names of an architecture, in the order of the alphabet.
--check plans each model from its folder and from what is kept, on three devices and two releases: the answers must be equal.
Standard library only."""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_BYTES = 12000  # of one model: a checkpoint that lists every module it leaves alone is found on the hub
NOT_KEPT = {"_name_or_path", "auto_map", "transformers_version", "id2label", "label2id", "task_specific_params"}


def words_read():
    """Every word that the readers of a config could ask for."""
    words = set()
    for path in glob.glob(os.path.join(ROOT, "src/model/**/*.[ch]"), recursive=True):
        with open(path, encoding="utf-8") as f:
            for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', f.read()):
                words.update(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text))
    for path in glob.glob(os.path.join(ROOT, "data/models/**/*.json"), recursive=True):
        with open(path, encoding="utf-8") as f:
            words.update(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", f.read()))
    return words - NOT_KEPT


def kept(value, words, free=False):
    """`free`: below a key whose own keys are names, such as those of layers or of groups."""
    if isinstance(value, dict):
        return {key: kept(part, words, key in ("config_groups", "quantized_layers", "experts_int8")) for key, part in sorted(value.items())
                if free or key in words}
    return [kept(part, words) for part in value] if isinstance(value, list) else value


def load(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def answers(binary, folder):
    """What a plan says of it, without the place."""
    for device in ("T4", "4090", "H200x8"):
        for release in ("0.11.0", "0.32.0"):
            done = subprocess.run([binary, "plan", "--offline", "--json", "--gpu", device, "--vllm", release, "--", "vllm", "serve", folder],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            yield done.stdout.decode("utf-8", "replace").replace(folder, "MODEL")


def same_answers(binary, folder, entry):
    with tempfile.TemporaryDirectory() as work:
        for name, key in (("config.json", "config"), ("hf_quant_config.json", "quant")):
            if key in entry:
                with open(os.path.join(work, name), "w", encoding="utf-8") as f:
                    json.dump(entry[key], f)
        return list(answers(binary, folder)) == list(answers(binary, work))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models")
    parser.add_argument("ids")
    parser.add_argument("--check", metavar="BINARY")
    parser.add_argument("--more", metavar="FILE", help="configs written by hand, by id below `models`")
    args = parser.parse_args()
    words, catalogue, bad = words_read(), {}, 0
    with open(args.ids, encoding="utf-8") as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith("#")]
    for line in lines:
        if line[1] == "=":
            catalogue[line[0]] = line[2]
            continue
        folder = os.path.join(args.models, line[1])
        config, quant = load(folder, "config.json"), load(folder, "hf_quant_config.json")
        if config is None:
            print("no config: %s" % line[0], file=sys.stderr)
            continue
        entry = {"config": kept(config, words)}
        if quant and not isinstance(config.get("quantization_config"), dict):
            entry["quant"] = kept(quant, words)
        size = len(json.dumps(entry, separators=(",", ":")))
        if size > MOST_BYTES:
            print("too long: %s, %d bytes" % (line[0], size), file=sys.stderr)
            continue
        if args.check and not same_answers(args.check, folder, entry):
            print("another answer: %s" % line[0], file=sys.stderr)
            bad += 1
            continue
        catalogue[line[0]] = entry
    if args.more:
        with open(args.more, encoding="utf-8") as f:
            for key, config in json.load(f)["models"].items():
                catalogue.setdefault(key, {"config": kept(config, words)})
    catalogue = {key: value for key, value in catalogue.items() if not isinstance(value, str) or isinstance(catalogue.get(value), dict)}
    print("{\n" + ",\n".join(" %s: %s" % (json.dumps(key), json.dumps(value, separators=(",", ":"))) for key, value in sorted(catalogue.items())) + "\n}")
    print("%d models, %d other names, %d left out for another answer" % (sum(isinstance(v, dict) for v in catalogue.values()),
          sum(isinstance(v, str) for v in catalogue.values()), bad), file=sys.stderr)


if __name__ == "__main__":
    main()
