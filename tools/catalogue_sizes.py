#!/usr/bin/env python3
"""Models of which public sources give sizes, as entries of data/catalogue.json: catalogue_sizes.py BINARY    makes them anew
    catalogue_sizes.py --collect WHEEL [--most-downloaded N]    takes facts of the ranked ids into tools/catalogue.sizes.tsv
    catalogue_sizes.py --wanted                                 prints which ranked ids have no facts

WHEEL is that of PyPI's llmfit: its program has a list of models in it. tools/catalogue.ranked.txt has the ids that public sources name.

tools/catalogue.sizes.tsv has the facts, tools/catalogue.families.json what sizes do not tell of a family, and configs that are written by hand.
The proof of sizes is their number of parameters: what BINARY counts from them must be what is published, to the last one. Then the entry has
the level `proven`; with another id of the same class and number `alias`; within one part in twenty `sizes`, with that distance; else there is none.
Class defaults of transformers are never used. Standard library only."""
import argparse
import collections
import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

import catalogue

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIZES = os.path.join(ROOT, "tools", "catalogue.sizes.tsv")
FAMILIES = os.path.join(ROOT, "tools", "catalogue.families.json")
RANKED = os.path.join(ROOT, "tools", "catalogue.ranked.txt")
QUANTISED = os.path.join(ROOT, "tools", "catalogue.quantised.tsv")
MORE = os.path.join(ROOT, "tools", "catalogue.more.json")
DATA = os.path.join(ROOT, "data", "catalogue.json")
COLUMNS = {"family": "architecture", "layers": "num_hidden_layers", "heads": "num_attention_heads", "kv_heads": "num_key_value_heads", "head_dim": "head_dim",
           "hidden": "hidden_size", "inner": "moe_intermediate_size", "shared_inner": "shared_expert_intermediate_size", "vocab": "vocab_size",
           "experts": "num_experts", "active": "active_experts", "context": "context_length", "parameters": "parameters_raw"}
KEYS = {"layers": "num_hidden_layers", "heads": "num_attention_heads", "kv_heads": "num_key_value_heads", "head_dim": "head_dim", "hidden": "hidden_size",
        "inner": "intermediate_size", "expert_inner": "moe_intermediate_size", "vocab": "vocab_size", "context": "max_position_embeddings",
        "experts": "num_experts", "active": "num_experts_per_tok"}
EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
PACKED = re.compile(r"(awq|gptq|fp8|nvfp4|mxfp|fp4|int4|int8|w4a16|w8a8|w8a16|w4a4|bnb|[-_.][234568][-_]?bits?|gguf|mlx|exl[23]|quantized|-qat|autoround|onnx"
                    r"|marlin|hqq|aqlm|torchao|quark|[48]bit|ptpc|-q4|speculator|eagle|dflash|dspark|assistant|medusa)", re.I)
UNKNOWN_CONTEXT = 4096  # what the list writes where a config has no length that it knows, but for these families, which have such models
SHORT = ("llama", "qwen2", "mistral", "olmo2", "olmoe", "granite", "granitemoe", "phi3", "deepseek", "stablelm", "exaone")
FARTHEST = 0.05
LEAST_PARAMETERS = 10 ** 7  # of which an equal number is no chance


def stem(name):
    return name.split("/")[-1].lower()


def likeness(one, other):
    """Letters that two names begin with alike, then those of the owner."""
    return (len(os.path.commonprefix([stem(one), stem(other)])), len(os.path.commonprefix([one, other])))


def text_of(config):
    for key in ("text_config", "llm_config", "language_config"):
        if isinstance(config.get(key), dict) and config[key]:
            return config[key]
    return text_of(config["thinker_config"]) if isinstance(config.get("thinker_config"), dict) else config


# ---- the facts ----

def list_in(wheel):
    """The array of models in the program of a wheel."""
    with zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            data = z.read(name)
            for found in re.finditer(rb'\[\s*\{\s*"name"', data) if len(data) > 5 << 20 else []:
                try:
                    listed = json.JSONDecoder().raw_decode(data[found.start():].decode("utf-8", "replace"))[0]
                except ValueError:
                    continue
                if len(listed) > 1000:
                    return listed
    sys.exit("no list of models in %s" % wheel)


def read_ranked():
    with open(RANKED, encoding="utf-8") as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def collect(listed, ranked, out, other=0):
    """Ids that are ranked; twins of them, the same name of another owner; and the `other` most downloaded. What is packed has no sizes of its own."""
    known = {}
    for row in listed:
        known.setdefault(row["name"], row)
    wanted, names = ranked, collections.defaultdict(list)
    for name in known:
        names[stem(name)].append(name)
    chosen = {name for name in wanted if name in known}
    for name in wanted:
        for same in {stem(name), stem(name).replace("meta-", "", 1), "meta-" + stem(name)}:
            twins = [twin for twin in names.get(same, []) if known[twin].get("num_hidden_layers") and (name not in known or known[name]["parameters_raw"] == known[twin]["parameters_raw"])]
            chosen.update(sorted(twins, key=lambda twin: -known[twin]["hf_downloads"])[:2])
    rest = [row for row in known.values() if row["name"] not in chosen and row.get("num_hidden_layers") and not PACKED.search(row["name"])]
    chosen.update(row["name"] for row in sorted(rest, key=lambda row: -row["hf_downloads"])[:other])
    with open(out, "w", encoding="utf-8") as f:
        f.write("# Sizes of models as public lists give them, for tools/catalogue_sizes.py. Facts from PyPI llmfit 1.1.17 (github.com/AlexsJones/llmfit, MIT, LICENSES/MIT.txt),\n"
                "# which reads them from the Hugging Face Hub; parameters: the total of the headers of the weight files. Empty: not given. downloads: of a month.\n")
        f.write("\t".join(["id"] + list(COLUMNS) + ["downloads"]) + "\n")
        for name in sorted(chosen):
            row = known[name]
            if re.fullmatch(r"[\w.-]+/[\w.-]+", name) and row.get("parameters_raw"):
                f.write("\t".join([name] + ["" if row.get(key) is None else str(row[key]) for key in COLUMNS.values()] + [str(row["hf_downloads"])]) + "\n")


def facts():
    found = {}
    with open(SIZES, encoding="utf-8") as f:
        lines = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    for line in lines[1:]:
        row = dict(zip(lines[0], line))
        found[row["id"]] = {key: value if key in ("id", "family") else int(value) if value else None for key, value in row.items()}
    return found


# ---- configs to try ----

def longer(values, count):
    """A list with one entry for each layer, for another number of layers: only where it repeats."""
    for period in range(1, 13):
        if all(values[i] == values[i % period] for i in range(len(values))):
            return [values[i % period] for i in range(count)]
    return None


def is_scaled(text):
    rope = text.get("rope_scaling") or text.get("rope_parameters") or {}
    return (rope.get("rope_type") or rope.get("type") or "default") not in ("default", "mrope")


def with_sizes(template, row, family):
    """None: a list of the template cannot be made as long as the model; or the template is stored in few bits, and of the model nobody says."""
    if template.get("quantization_config") and "bf16" not in stem(row["id"]):
        return None
    config = {key: value for key, value in copy.deepcopy(template).items() if key != "quantization_config"}
    text, names, without = text_of(config), {**KEYS, **family.get("names", {})}, family.get("without", [])
    before = text.get(names["layers"])
    if not row["layers"] or not row["hidden"]:
        return None
    names["experts"] = next((key for key in EXPERTS if key in text), names["experts"])
    values = dict(row)
    if text.get(names["experts"]) or row["experts"]:
        values["expert_inner"], values["inner"] = row["inner"], None
    if text.get("kv_lora_rank") or ("head_dim" not in text and (not row["heads"] or row["hidden"] == row["heads"] * (row["head_dim"] or 0))):
        values["head_dim"] = None
    if text.get("kv_lora_rank"):
        values["kv_heads"] = None
    given = {name: values[key] for key, name in names.items() if values.get(key) is not None and key not in without}
    same = all(text.get(name) == value for name, value in given.items() if name != names["context"])
    unknown = given.get(names["context"]) == UNKNOWN_CONTEXT and names["context"] in text and (text is not config or row["family"] not in SHORT)
    if unknown or (same and is_scaled(text)):
        given.pop(names["context"], None)  # the list multiplies some by the factor of the scaling
    elif is_scaled(text):
        text.pop("rope_scaling", None)
    text.update(given)
    for place, key in family.get("also", {}).items():
        config[place.split(".")[0]][place.split(".")[1]] = row[key]
    for key, value in list(text.items()) if before and before != row["layers"] else []:
        if isinstance(value, (list, str)) and len(value) == before:
            text[key] = longer(value, row["layers"])
            if text[key] is None:
                return None
    return config


def candidates(row, family, templates):
    """(the model it is like, or None; its config; may its tied head be stored too?), the nearest name first; with a tied head and without.
    Files that store a head do not tell whether it is tied: only a model of the same sizes does."""
    pool = [(None, family["config"])] if "config" in family else sorted(templates.get(row["family"], []), key=lambda one: likeness(row["id"], one[0]), reverse=True)
    for name, template in pool:
        config = with_sizes(template, row, family)
        alike = name is not None and config is not None and config == {**template, **{key: config.get(key) for key in ("max_position_embeddings", "rope_scaling") if key in config}}
        for change in family.get("try", [{}]) if config else []:
            tried = copy.deepcopy(config)
            text_of(tried).update({key: value for key, value in change.items() if key != "vision_config"})
            if "vision_config" in change:
                tried["vision_config"] = {**tried["vision_config"], **change["vision_config"]}
            said = text_of(tried).get("tie_word_embeddings", tried.get("tie_word_embeddings"))
            for tied in (said, True, False):
                one = copy.deepcopy(tried)
                if tied is not None:
                    one["tie_word_embeddings"] = tied
                    if text_of(one) is not one and "tie_word_embeddings" in text_of(one):
                        text_of(one)["tie_word_embeddings"] = tied
                yield name, one, alike and tied == said


# ---- the proof ----

class Counter:
    """Parameters by the program itself: `models FOLDER --json`."""

    def __init__(self, binary):
        self.binary, self.known = binary, {}

    def __call__(self, config):
        text = json.dumps(config, sort_keys=True)
        if text not in self.known:
            with tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
                    f.write(text)
                done = subprocess.run([self.binary, "models", "--json", folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
                self.known[text] = json.loads(done.stdout.decode())["models"][0]["parameters"] if done.returncode == 0 else None
        return self.known[text]


def stored_ways(config, counted, head_too):
    """Numbers that the weight files of this config can have: what classes leave out when they load is known."""
    text, vision = text_of(config), config.get("vision_config") or {}
    number = lambda *keys: next((text[key] for key in keys if text.get(key)), 0)
    layers, hidden, heads = number("num_hidden_layers", "n_layer", "num_layers"), number("hidden_size", "n_embd"), number("num_attention_heads", "n_head")
    table = hidden * number("vocab_size", "padded_vocab_size")
    head_dim = text.get("head_dim") or (hidden // heads if heads else 0)
    context = number("max_position_embeddings", "n_positions")
    whole = counted["decoder"] + counted["tower"]
    ways = [0] + ([table] if head_too else []) + [layers * (head_dim // 2), head_dim // 2, head_dim // 4]  # rotary frequencies
    if counted["drafter"]:
        ways += [counted["drafter"] + i * table for i in range(3)]  # of drafters, with embedding and head of their own
    if config["model_type"] == "gpt2":
        ways.append(layers * context * context)  # masks
    if config["model_type"] == "gpt_neox":
        ways += [layers * (context * context + more) for rotary in (head_dim // 8, head_dim // 2) for more in (rotary, rotary + 1)]
    if config["model_type"].startswith("llava"):
        width, inner = vision["hidden_size"], vision["intermediate_size"]
        ways += [2 * width, 4 * width * width + 4 * width + 2 * width * inner + inner + width + 4 * width + 2 * width]  # a last norm, and a last layer that is not used
    if config["model_type"] == "falcon_h1":
        ways.append(layers * text["mamba_d_ssm"])  # norms that are not used
    return {whole + way for way in ways}


def distance(config, row, count, head_too):
    """0: exact. None: cannot be counted."""
    counted = count(config)
    if not counted or not row["parameters"]:
        return None
    if row["parameters"] in stored_ways(config, counted, head_too):
        return 0.0
    return max(abs((counted["decoder"] + counted["tower"]) / row["parameters"] - 1), 1e-9)


# ---- entries ----

def shortest(config, name, entries, level):
    """`like` another with what differs, or a whole config: whichever is shorter."""
    whole = {"config": config, **level}
    if name is None:
        return whole
    base = entries[name]["config"]
    gone = {key: None for key in base if key not in config}
    like = {"like": name, **level}
    change = {**{key: value for key, value in config.items() if base.get(key, ...) != value}, **gone}
    if change:
        like["change"] = change
    return min(whole, like, key=lambda entry: len(json.dumps(entry)))


def proven(rows, written, families, entries, count, unknown_bits):
    """Of every row the best that can be said: {id: (distance, entry)}."""
    templates, found = collections.defaultdict(list), {}
    for name, entry in entries.items():
        if isinstance(entry, dict) and "config" in entry and "of" not in entry and "level" not in entry:
            templates[entry["config"].get("model_type")].append((name, entry["config"]))
    for name, row in sorted(rows.items()):
        if name in entries or PACKED.search(name):
            continue
        if re.search(unknown_bits, name):
            continue
        tries = [(None, written[name], True)] if name in written else candidates(row, families.get(row["family"], {}), templates)
        for like, config, head_too in tries:
            off = distance(config, row, count, head_too)
            if off is not None and (name not in found or off < found[name][0]):
                found[name] = (off, like, config)
            if off == 0:
                break
    return found


def aliases(rows, wanted, ready, entries):
    """Ids whose own sizes are not public: those with as many parameters in the same class, and the same name of another owner."""
    same, twins, found = collections.defaultdict(list), collections.defaultdict(list), {}
    for name in sorted(ready):
        twins[stem(name)].append(name)
        if name in rows and rows[name]["parameters"] >= LEAST_PARAMETERS:
            same[rows[name]["family"], rows[name]["parameters"]].append(name)
    for name in wanted:
        if name in ready or name in entries or PACKED.search(name):
            continue
        row = rows.get(name)
        near = same.get((row["family"], row["parameters"]), []) if row else twins.get(stem(name), [])
        near = [other for other in near if "bf16" not in stem(name) or "bf16" in stem(other)]
        if near:
            found[name] = max(near, key=lambda other: (other.split("/")[0] == name.split("/")[0], likeness(name, other)))
    return found


def resting(entries, name):
    """The id with a config that an entry rests on, and what is changed on the way there."""
    change = {}
    while "config" not in entries[name] if isinstance(entries[name], dict) else True:
        entry = entries[name]
        change = change if isinstance(entry, str) else {**entry.get("change", {}), **change}
        name = entry if isinstance(entry, str) else entry["like"]
    return name, change


def recipes():
    """{(maker, ending): {model_type or None: recipe}} as tools/catalogue.quantised.tsv has them."""
    return catalogue.read_table(QUANTISED)


def ending_of(name, base):
    return stem(name)[len(stem(base)):] if stem(name).startswith(stem(base)) else None


def quantised(wanted, entries, given):
    """Checkpoints whose maker has used one recipe, under that ending, for every listed model of the class."""
    known, found = collections.defaultdict(set), {}
    kind = lambda base: catalogue.files_of(entries, base)[0].get("model_type")
    for name, base, recipe, _ in recipes():
        if recipe != "own" and base in entries and ending_of(name, base):
            known[name.split("/")[0], ending_of(name, base), kind(base)].add(recipe)
    stems = collections.defaultdict(list)
    for name, entry in entries.items():
        if not (isinstance(entry, dict) and "of" in entry):
            stems[stem(name)].append(name)
    for name in wanted:
        if name in entries or not PACKED.search(name):
            continue
        maker = name.split("/")[0]
        for cut in range(len(stem(name)) - 1, 3, -1):
            bases = stems.get(stem(name)[:cut], [])
            base = max(bases, key=lambda one: (one.split("/")[0] == maker, not isinstance(entries[one], str), one)) if bases else None
            if not base:
                continue
            base = entries[base] if isinstance(entries[base], str) else base
            used = known.get((maker, stem(name)[cut:], kind(base)), set())
            if len(used) == 1:
                recipe = given[next(iter(used))]
                found[name] = {"of": base, **({"quant": recipe["quant"]} if "quant" in recipe else {"change": {"quantization_config": recipe}})}
            break
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?")
    parser.add_argument("--collect", metavar="WHEEL")
    parser.add_argument("--most-downloaded", type=int, default=0, metavar="N", help="and as many ids that no list ranks")
    parser.add_argument("--wanted", action="store_true")
    args = parser.parse_args()
    if args.collect:
        collect(list_in(args.collect), read_ranked(), SIZES, args.most_downloaded)
        return 0
    entries = catalogue.read_json(DATA)
    if args.wanted:
        print("\n".join(name for name in read_ranked() if name not in entries))
        return 0
    if not args.binary:
        parser.error("BINARY counts parameters")
    with open(FAMILIES, encoding="utf-8") as f:
        written = {**json.load(f), "ids": read_ranked()}
    with open(MORE, encoding="utf-8") as f:
        given = json.load(f)["recipes"]
    rows, words, count = facts(), catalogue.words_read() | catalogue.STARTS, Counter(os.path.abspath(args.binary))
    kept = {name: entry for name, entry in entries.items() if not (isinstance(entry, dict) and "level" in entry)}
    made = make(rows, written, given, kept, words, count)
    with open(DATA, "w", encoding="utf-8") as f:
        f.write(catalogue.text_of({**kept, **made}))
    levels = collections.Counter(entry["level"] for entry in made.values())
    print("%d as they were, %s" % (len(kept), ", ".join("%d %s" % (number, level) for level, number in sorted(levels.items()))), file=sys.stderr)
    return 0


def make(rows, written, given, kept, words, count):
    """The entries that rest on sizes."""
    wanted = written["ids"] + sorted(rows)
    found = proven(rows, written["configs"], written["families"], kept, count, written["unknown_bits"])
    made, ready = {}, {name for name in kept if not (isinstance(kept[name], dict) and "of" in kept[name])}
    for exact in (True, False):
        for name, (off, like, config) in sorted(found.items()):
            unsure = written["families"].get(rows[name]["family"], {}).get("unsure")
            level = "proven" if off == 0 and not (unsure and re.search(unsure, name)) else "sizes"
            if (off == 0) != exact or off >= FARTHEST or name in made:
                continue
            told = {"level": level} if level == "proven" else {"level": level, "wide": int(off * 1000) + 10}
            made[name] = shortest(catalogue.kept(changed(name, config, written), words), like, kept, told)
        ready |= set(made) if exact else set()
        if exact:
            same_sizes(made, kept, written)
        for name, other in sorted(aliases(rows, wanted, ready, {**kept, **made}).items()) if exact else []:
            base, change = resting({**kept, **made}, other)
            told = {"level": "alias"} if {**kept, **made}[other] is kept.get(other) or made[other]["level"] == "proven" else {"level": "sizes", "wide": 10}
            context = written["contexts"].get(name)
            config = {**catalogue.files_of({**kept, **made}, base)[0], **change}
            if context and config.get("max_position_embeddings") != context:
                change = {**change, "max_position_embeddings": context, **({"rope_scaling": None} if is_scaled(config) else {})}
            made[name] = {"like": base, **told, **({"change": catalogue.kept(change, words)} if change else {})}
    for name, entry in sorted(quantised(wanted, {**kept, **made}, given).items()):
        base = {**kept, **made}[entry["of"]]
        level = base.get("level") if isinstance(base, dict) else None
        made[name] = {"of": entry["of"], **catalogue.kept({key: value for key, value in entry.items() if key != "of"}, words | {"change", "quant"}),
                      "level": "recipe", **({"wide": base["wide"]} if level == "sizes" else {})}
    return drop_unused(made, rows, written, kept)


def changed(name, config, written):
    """With what is known of some ids beside their sizes."""
    return {**config, **next((change for pattern, change in written["changes"].items() if re.search(pattern, name)), {})}


def same_sizes(made, kept, written):
    """Another checkpoint of the same model, as its maker says; nothing proves it."""
    for name, other in sorted(written["same_sizes"].items()):
        if name not in kept and name not in made and other in {**kept, **made}:
            base, change = resting({**kept, **made}, other)
            context = written["contexts"].get(name)
            change = {**change, **({"max_position_embeddings": context} if context else {})}
            made[name] = {"like": base, "level": "sizes", "wide": 10, **({"change": change} if change else {})}


def drop_unused(made, rows, written, kept):
    """Twins that only served as a proof stay out, unless another entry rests on them or they are in common use."""
    needed = {entry.get("like") or entry.get("of") for entry in made.values()}
    return {name: entry for name, entry in made.items()
            if name in written["ids"] or name in needed or (entry["level"] == "proven" and rows[name]["downloads"] >= written["least_downloads"])}


if __name__ == "__main__":
    sys.exit(main())
