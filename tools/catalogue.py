#!/usr/bin/env python3
"""The configs in common use as facts: catalogue.py MODELS IDS [--more FILE] [--quantised FILE] [--check BINARY] >data/catalogue.json

MODELS has a folder with config.json (and hf_quant_config.json) for each model; IDS is a file with lines "id folder", "id = other id" (the same
model) or "id like other id key=value ..." (another model with its config, but for these keys).
--quantised is a table of checkpoints: id, the model it is one of, a recipe of --more ("own": it has a config of its own), where public files name it.
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
LEAST_PLACES = 2  # that name a checkpoint, before it is listed
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


def same_answers(binary, folder, files):
    with tempfile.TemporaryDirectory() as work:
        for name, value in zip(("config.json", "hf_quant_config.json"), files):
            if value:
                with open(os.path.join(work, name), "w", encoding="utf-8") as f:
                    json.dump(value, f)
        return list(answers(binary, folder)) == list(answers(binary, work))


def files_of(catalogue, name):
    """config.json and hf_quant_config.json of an entry, as src/model/catalogue.c puts them together."""
    entry = catalogue[name]
    if isinstance(entry, str):
        return files_of(catalogue, entry)
    if "config" in entry:
        return entry["config"], entry.get("quant")
    config, quant = files_of(catalogue, entry.get("of") or entry["like"])
    config = {key: value for key, value in config.items() if "like" in entry or key != "quantization_config"}
    return {**config, **entry.get("change", {})}, quant if "like" in entry else entry.get("quant")


def read_table(path):
    with open(path, encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]


def add_quantised(catalogue, path, recipes, words, folders, binary):
    """Checkpoints of listed models; those with a folder must plan as their own files do. How many do not."""
    bad = 0
    for name, base, recipe, places in read_table(path):
        count = int(places.split(":")[0])
        if count < LEAST_PLACES or isinstance(catalogue.get(base), str) or base not in catalogue:
            print("not listed: %s, %d places, of %s" % (name, count, base), file=sys.stderr)
            bad += 1
            continue
        if recipe == "own":
            catalogue[name] = {"of": base, **catalogue[name]}
            continue
        given = recipes[recipe]
        entry = {"of": base, **({"quant": kept(given["quant"], words)} if "quant" in given else {"change": {"quantization_config": kept(given, words)}})}
        before, catalogue[name] = catalogue.get(name), entry
        if binary and name in folders and not same_answers(binary, folders[name], files_of(catalogue, name)):
            print("another answer: %s by %s" % (name, recipe), file=sys.stderr)
            catalogue[name] = {"of": base, **before} if before else None
            bad += not before
    for name in [key for key, value in catalogue.items() if value is None]:
        del catalogue[name]
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models")
    parser.add_argument("ids")
    parser.add_argument("--check", metavar="BINARY")
    parser.add_argument("--quantised", metavar="FILE")
    parser.add_argument("--more", metavar="FILE", help="configs written by hand, by id below `models`")
    args = parser.parse_args()
    words, catalogue, folders, bad, more = words_read(), {}, {}, 0, {"models": {}, "recipes": {}}
    if args.more:
        with open(args.more, encoding="utf-8") as f:
            more = json.load(f)
    with open(args.ids, encoding="utf-8") as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith("#")]
    for line in lines:
        if line[1] == "=":
            catalogue[line[0]] = line[2]
            continue
        if line[1] == "like":
            change = {key: json.loads(value) for key, value in (word.split("=", 1) for word in line[3:])}
            catalogue[line[0]] = {"like": line[2], **({"change": change} if change else {})}
            continue
        folder = folders[line[0]] = os.path.join(args.models, line[1])
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
        if args.check and not same_answers(args.check, folder, (entry["config"], entry.get("quant"))):
            print("another answer: %s" % line[0], file=sys.stderr)
            bad += 1
            continue
        catalogue[line[0]] = entry
    for key, config in more["models"].items():
        catalogue.setdefault(key, {"config": kept(config, words)})
    if args.quantised:
        bad += add_quantised(catalogue, args.quantised, more["recipes"], words, folders, args.check)
    catalogue = {key: value for key, value in catalogue.items() if not isinstance(value, str) or isinstance(catalogue.get(value), dict)}
    print("{\n" + ",\n".join(" %s: %s" % (json.dumps(key), json.dumps(value, separators=(",", ":"))) for key, value in sorted(catalogue.items())) + "\n}")
    print("%d models, %d of them quantised checkpoints, %d other names, %d left out" % (sum(isinstance(v, dict) for v in catalogue.values()), sum("of" in v for v in catalogue.values() if isinstance(v, dict)),
          sum(isinstance(v, str) for v in catalogue.values()), bad), file=sys.stderr)


if __name__ == "__main__":
    main()
