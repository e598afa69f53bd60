#!/usr/bin/env python3
"""The configs in common use as facts: catalogue.py MODELS IDS [--more FILE] [--quantised FILE] [--check BINARY] >data/catalogue.json
or, from what is on this machine: catalogue.py --refresh FOLDER [--check BINARY] [ID...]

MODELS has a folder with config.json (and hf_quant_config.json) for each model; IDS is a file with lines "id folder", "id = other id" (the same
model) or "id like other id key=value ..." (another model with its config, but for these keys).
--quantised is a table of checkpoints: id, the model it is one of, a recipe of --more ("own": it has a config of its own), where public files name it.
Of a config only the keys that src/model and data/models read are kept, sizes and names of an architecture, and those without which an engine does not
start (STARTS), in the order of the alphabet.
--refresh takes every model (or those of ID) of a Hugging Face cache (models--OWNER--NAME/snapshots/REVISION) or of a mirror (OWNER/NAME)
into data/catalogue.json; `from` of an entry says which repository, revision and day. What cannot be read whole changes nothing: exit 1.
--check plans each model from its folder and from what is kept, on three devices and two releases: the answers must be equal.
Standard library only."""
import argparse
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_BYTES = 12000  # of one model: a checkpoint that lists every module it leaves alone is found on the hub
LEAST_PLACES = 2  # that name a checkpoint, before it is listed; a list of its maker is enough
NOT_KEPT = {"_name_or_path", "auto_map", "transformers_version", "id2label", "label2id", "task_specific_params"}

# Read by Transformers and by engines without a default: a dry run starts a built-in model.
STARTS = {"attn_type_list", "hidden_act", "hidden_activation", "high_freq_factor", "low_freq_factor", "n_group", "norm_eps", "norm_topk_prob", "qk_norm_type",
          "query_pre_attn_scalar", "rms_norm_eps", "scoring_func", "topk_group"}


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
        return {key: kept(part, words, key in ("config_groups", "quantized_layers", "experts_int8", "extra_config")) for key, part in sorted(value.items())
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


class Damaged(Exception):
    """What is there is not a model, or not all of it."""


def read_json(path):
    try:
        with open(path, encoding="utf-8") as f:
            value = json.load(f)
    except (OSError, ValueError) as error:
        raise Damaged("%s: %s" % (os.path.basename(path), error)) from error
    if not isinstance(value, dict):
        raise Damaged("%s is no object" % os.path.basename(path))
    return value


def revision_of(folder):
    """Of a folder that `hf download --local-dir` wrote: the commit that its config came from. None: nothing says so."""
    path = os.path.join(folder, ".cache", "huggingface", "download", "config.json.metadata")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return f.readline().strip()


def models_in(root):
    """(id, revision, folder) of every model of a cache or of a mirror; revision None: the mirror does not tell."""
    hub = os.path.join(root, "hub") if os.path.isdir(os.path.join(root, "hub")) else root
    for repo in sorted(glob.glob(os.path.join(hub, "models--*--*"))):
        name = "/".join(os.path.basename(repo).split("--", 2)[1:])
        main = os.path.join(repo, "refs", "main")
        snapshots = sorted(os.listdir(os.path.join(repo, "snapshots"))) if os.path.isdir(os.path.join(repo, "snapshots")) else []
        if os.path.exists(main):
            with open(main, encoding="utf-8") as f:
                revision = f.read().strip()
        else:
            revision = snapshots[0] if len(snapshots) == 1 else "main"
        yield name, revision, os.path.join(repo, "snapshots", revision)
    for config in sorted(glob.glob(os.path.join(root, "*", "*", "config.json"))):
        folder = os.path.dirname(config)
        if not os.path.basename(os.path.dirname(folder)).startswith("models--"):
            yield "/".join(folder.split(os.sep)[-2:]), revision_of(folder), folder


def header_bytes(path):
    """Bytes of the tensors of a weight file, by its header. Files of a cache may be links that lead nowhere: those are not read."""
    with open(path, "rb") as f:
        start = f.read(8)
        size = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 0 < size <= 100 << 20:
            raise Damaged("%s has no header" % os.path.basename(path))
        try:
            header = json.loads(f.read(size).decode("utf-8"))
            return sum(tensor["data_offsets"][1] - tensor["data_offsets"][0] for name, tensor in header.items() if name != "__metadata__")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Damaged("the header of %s: %s" % (os.path.basename(path), error)) from error


def weights_bytes(folder):
    """By the index, which has to agree with the headers that are there; None: neither is."""
    total = None
    index = os.path.join(folder, "model.safetensors.index.json")
    files = sorted(path for path in glob.glob(os.path.join(folder, "*.safetensors")) if os.path.exists(path))
    headers = {os.path.basename(path): header_bytes(path) for path in files}
    if os.path.exists(index):
        table = read_json(index)
        total = (table.get("metadata") or {}).get("total_size")
        named = set(table.get("weight_map", {}).values())
        if named and named <= set(headers):
            found = sum(headers[name] for name in named)
            if total is not None and found != total:
                raise Damaged("the index says %d bytes, the headers %d" % (total, found))
            total = found
    elif headers:
        total = sum(headers.values())
    return total


def base_of(folder, catalogue):
    """The listed model that the card says this is made of; None: it does not."""
    path = os.path.join(folder, "README.md")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8", errors="replace") as f:
        found = re.search(r"^base_model:\s*(?:\n\s*-\s*)?[\"']?([\w.-]+/[\w.-]+)", f.read(20000), re.M)
    base = catalogue.get(found.group(1)) if found else None
    return found.group(1) if isinstance(base, dict) and "of" not in base else None


def is_half_known(config, quant):
    """It names a quantization and no method: which of its layers have it is not known."""
    named = config.get("quantization_config") if isinstance(config.get("quantization_config"), dict) else quant or {}
    inner = named.get("quantization") if isinstance(named.get("quantization"), dict) else named
    produced = inner is not named and (named.get("producer") or {}).get("name") == "modelopt"
    return bool(inner.get("quant_algo")) and not named.get("quant_method") and not produced


def refreshed(catalogue, name, revision, folder, words, binary):
    """The entry of a folder: as it was where its config is the same, with where it comes from."""
    config, quant = read_json(os.path.join(folder, "config.json")), None
    if os.path.exists(os.path.join(folder, "hf_quant_config.json")):
        quant = read_json(os.path.join(folder, "hf_quant_config.json"))
    if not config.get("architectures"):
        raise Damaged("config.json names no architecture")
    if isinstance(config.get("quantization_config"), dict):
        quant = None
    if is_half_known(config, quant):
        raise Damaged("a quantization without its method")
    config, quant = kept(config, words), kept(quant, words) if quant else None
    before = catalogue.get(name)
    entry = {"config": config, **({"quant": quant} if quant else {})}
    if len(json.dumps(entry, separators=(",", ":"))) > MOST_BYTES:
        raise Damaged("more than %d bytes" % MOST_BYTES)
    if binary and not same_answers(binary, folder, (config, quant)):
        raise Damaged("another answer than its folder")
    of = before.get("of") if isinstance(before, dict) else None
    if not of and ("quantization_config" in config or quant):
        of = base_of(folder, catalogue)
    if before and files_of(catalogue, name) == (config, quant):
        same = catalogue[before] if isinstance(before, str) else before
        entry = {"like": before} if same is not before and "config" in same else {key: value for key, value in same.items() if key != "from"}
    elif of:
        entry = {"of": of, **entry}
    size = weights_bytes(folder)
    return {**entry, "from": {"repo": name, "revision": revision, "date": time.strftime("%Y-%m-%d", time.gmtime()), "weights_bytes": size}}


def refresh(root, wanted, path, binary):
    """Takes what is in a cache or mirror into the catalogue at `path`; 1: something is damaged, and nothing is written."""
    words, new, bad = words_read() | STARTS, 0, 0
    catalogue = read_json(path)
    found = [model for model in models_in(root) if not wanted or model[0] in wanted]
    for name in sorted(set(wanted) - {model[0] for model in found}):
        print("%s: not in %s" % (name, root), file=sys.stderr)
        bad += 1
    for name, revision, folder in found:
        try:
            entry = refreshed(catalogue, name, revision, folder, words, binary)
        except Damaged as error:
            print("%s: %s" % (name, error), file=sys.stderr)
            bad += 1
            continue
        new += name not in catalogue
        catalogue[name] = entry
    if not bad and found:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text_of(catalogue))
    print("%d models, %d of them new, %d damaged%s" % (len(found), new, bad, ": nothing is written" if bad or not found else ""), file=sys.stderr)
    return 1 if bad or not found else 0


def text_of(catalogue):
    return "{\n" + ",\n".join(" %s: %s" % (json.dumps(key), json.dumps(value, separators=(",", ":"))) for key, value in sorted(catalogue.items())) + "\n}\n"


def read_table(path):
    with open(path, encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]


def add_quantised(catalogue, path, recipes, words, folders, binary):
    """Checkpoints of listed models; those with a folder must plan as their own files do. How many do not."""
    bad = 0
    for name, base, recipe, places in read_table(path):
        count = LEAST_PLACES if places.startswith("maker: ") else int(places.split(":")[0])
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
    parser.add_argument("models", nargs="?")
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--refresh", metavar="FOLDER")
    parser.add_argument("--into", metavar="FILE", default=os.path.join(ROOT, "data", "catalogue.json"), help="what --refresh changes; entries with `from` stay, and those of catalogue_sizes.py")
    parser.add_argument("--check", metavar="BINARY")
    parser.add_argument("--quantised", metavar="FILE")
    parser.add_argument("--more", metavar="FILE", help="configs written by hand, by id below `models`")
    args = parser.parse_args()
    if args.refresh:
        return refresh(args.refresh, ([args.models] if args.models else []) + args.ids, args.into, args.check)
    if len(args.ids) != 1:
        parser.error("MODELS and IDS, or --refresh")
    words, catalogue, folders, bad, more = words_read() | STARTS, {}, {}, 0, {"models": {}, "recipes": {}}
    if args.more:
        with open(args.more, encoding="utf-8") as f:
            more = json.load(f)
    with open(args.ids[0], encoding="utf-8") as f:
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
        if is_half_known(config, quant):
            print("a quantization without its method: %s" % line[0], file=sys.stderr)
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
    if os.path.exists(args.into):
        catalogue.update({key: value for key, value in read_json(args.into).items() if isinstance(value, dict) and ("from" in value or "level" in value)})
    sys.stdout.write(text_of(catalogue))
    print("%d models, %d of them quantised checkpoints, %d other names, %d left out" % (sum(isinstance(v, dict) for v in catalogue.values()), sum("of" in v for v in catalogue.values() if isinstance(v, dict)),
          sum(isinstance(v, str) for v in catalogue.values()), bad), file=sys.stderr)


    return 0


if __name__ == "__main__":
    sys.exit(main())
