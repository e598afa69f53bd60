#!/usr/bin/env python3
"""Checks data/: every JSON file parses, without duplicate keys; every file of data/gpus is complete, sane and agrees
with the others; what a file of data/models names is there. The schema in data/schema says what a field looks like; here are also the rules between fields and
between files, which a schema cannot say.

    tools/check_data.py [DATA_DIR]      exit 0 when all is well, 1 with one message a line, 2 on wrong usage
"""

import json
import os
import re
import sys

MIB = 1 << 20
GIB = 1 << 30

# Key order of a file, so that two files differ only where the devices do. True: must be there.
GPU_KEYS = {
    "name": True, "variant": False, "aliases": True, "class": True, "total_bytes": True,
    "total_source": True, "total_low": True, "total_high": True, "total_origin": True, "nvml_total_bytes": True,
    "compute_capability": True, "sms": True,
    "nvlink": False, "memory_kind": True, "context_bytes": True, "context_source": True, "context_note": True,
    "driver_costs": False, "mig": False, "notes": True,
}
MIG_KEYS = ["profile", "name", "total_bytes", "total_source", "total_low", "total_high", "sms"]
ENUMS = {
    "class": ("consumer", "laptop", "workstation", "datacentre", "embedded"),
    "total_source": ("measured", "estimated"),
    "context_source": ("measured", "estimated"),
    "memory_kind": ("gddr", "hbm", "unified"),
}
CAPABILITIES = ("7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1")
ALIAS = re.compile(r"[a-z0-9][a-z0-9.-]*\Z")
FILE_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*(_[a-z0-9]+)?\.json\Z")
PROFILE = re.compile(r"([1-7])g\.([0-9]+)gb\Z")


class Check:
    def __init__(self, root):
        self.root = root
        self.problems = []

    def fail(self, path, text):
        self.problems.append(f"{os.path.relpath(path, self.root)}: {text}")

    def load(self, path):
        def no_duplicates(pairs):
            keys = [key for key, _ in pairs]
            for key in keys:
                if keys.count(key) > 1:
                    raise ValueError(f'key "{key}" appears twice')
            return dict(pairs)

        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file, object_pairs_hook=no_duplicates)
        except (OSError, ValueError) as error:
            self.fail(path, str(error))
            return None


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def check_total(check, path, where, gpu):
    """The total and its range: the same three fields in a device and in a MIG profile."""
    values = [gpu.get(key) for key in ("total_low", "total_bytes", "total_high")]
    if not all(is_count(value) for value in values):
        check.fail(path, f"{where}total_low, total_bytes and total_high must be positive integers")
        return False
    low, total, high = values
    if not low <= total <= high:
        check.fail(path, f"{where}total_bytes {total} is outside {low} to {high}")
    if not GIB <= total <= 1024 * GIB:
        check.fail(path, f"{where}total_bytes {total} is not the size of a GPU")
    if high - low > total // 10:
        check.fail(path, f"{where}range {low} to {high} is wider than a tenth of the total")
    if gpu.get("total_source") == "estimated" and low == high:
        check.fail(path, f"{where}an estimate needs a range")
    return True


def check_mig(check, path, gpu):
    if not isinstance(gpu["mig"], list) or not gpu["mig"]:
        check.fail(path, "mig must be a list with entries")
        return
    seen = set()
    for entry in gpu["mig"]:
        if not isinstance(entry, dict) or list(entry) != MIG_KEYS:
            check.fail(path, f"a mig entry has the keys {', '.join(MIG_KEYS)}, in this order")
            continue
        profile = entry["profile"]
        match = PROFILE.match(profile) if isinstance(profile, str) else None
        if not match:
            check.fail(path, f"mig profile {profile!r} is not of the form 1g.10gb")
            continue
        where = f"mig {profile}: "
        if profile in seen:
            check.fail(path, where + "appears twice")
        seen.add(profile)
        if entry["name"] != f"{gpu['name']} MIG {profile}":
            check.fail(path, where + "name must be the parent's, then MIG and the profile")
        if entry["total_source"] not in ENUMS["total_source"]:
            check.fail(path, where + f"unknown total_source {entry['total_source']!r}")
        if not check_total(check, path, where, entry):
            continue
        if entry["total_bytes"] > gpu["total_bytes"]:
            check.fail(path, where + "more memory than the whole device")
        # The name counts decimal-ish gigabytes and rounds up; what CUDA shows is less, by up to an eighth or so.
        nominal_bytes = int(match.group(2)) * GIB
        if not 0.85 * nominal_bytes <= entry["total_bytes"] <= 1.02 * nominal_bytes:
            check.fail(path, where + f"{entry['total_bytes']} bytes does not go with the profile's name")
        if not is_count(entry["sms"]) or entry["sms"] > gpu["sms"]:
            check.fail(path, where + "sms must be between 1 and those of the device")


def check_gpu(check, path, gpu):
    """One file on its own. Returns False when it is too broken to be compared with others."""
    if not isinstance(gpu, dict):
        check.fail(path, "must be an object")
        return False
    missing = [key for key, needed in GPU_KEYS.items() if needed and key not in gpu]
    unknown = [key for key in gpu if key not in GPU_KEYS]
    if missing or unknown:
        check.fail(path, f"missing {missing}, unknown {unknown}")
        return False
    if list(gpu) != [key for key in GPU_KEYS if key in gpu]:
        check.fail(path, "keys are not in the order of docs/reference/formats/gpu.md")

    for key in ("name", "total_origin", "context_note"):
        if not isinstance(gpu[key], str) or not gpu[key].strip():
            check.fail(path, f"{key} must be a text")
    if not isinstance(gpu["notes"], str) or not isinstance(gpu.get("variant", ""), str):
        check.fail(path, "notes and variant must be texts")
    for key, allowed in ENUMS.items():
        if gpu[key] not in allowed:
            check.fail(path, f"{key} {gpu[key]!r} is none of {', '.join(allowed)}")
    aliases = gpu["aliases"]
    if not isinstance(aliases, list) or not aliases or not all(isinstance(a, str) for a in aliases):
        check.fail(path, "aliases must be a list of words")
        return False
    for alias in aliases:
        if not ALIAS.match(alias):
            check.fail(path, f"alias {alias!r} must be lower-case letters, digits, '-' and '.'")
    if len(set(aliases)) != len(aliases):
        check.fail(path, "an alias appears twice")

    if not check_total(check, path, "", gpu) or not is_count(gpu["sms"]):
        check.fail(path, "totals or sms are unusable")
        return False
    cc = gpu["compute_capability"]
    if cc not in CAPABILITIES:
        check.fail(path, f"compute capability {cc!r} is not known here")
    if gpu["sms"] > 256:
        check.fail(path, f"{gpu['sms']} SMs on one device")
    nvml = gpu["nvml_total_bytes"]
    if nvml is not None:
        # The driver keeps a few hundred MiB for itself, up to 1 GiB; NVML counts them, CUDA on Linux does not.
        if not is_count(nvml) or not gpu["total_bytes"] <= nvml <= gpu["total_bytes"] + GIB:
            check.fail(path, f"nvml_total_bytes {nvml} does not go with total_bytes {gpu['total_bytes']}")
    if (gpu["memory_kind"] == "unified") != (nvml is None):
        check.fail(path, "nvml_total_bytes is null on unified memory, and only there")
    if not is_count(gpu["context_bytes"]) or not 32 * MIB <= gpu["context_bytes"] <= 2 * GIB:
        check.fail(path, f"context_bytes {gpu['context_bytes']} is out of range")
    if "mig" in gpu:
        check_mig(check, path, gpu)
    return True


def check_gpus(check, directory):
    """All files of data/gpus, then what must be unique among them."""
    gpus = {}
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if not FILE_NAME.match(name):
            check.fail(path, "file name must be lower-case letters, digits, '-' and '.', perhaps _VARIANT, then .json")
            continue
        gpu = check.load(path)
        if gpu is not None and check_gpu(check, path, gpu):
            gpus[path] = gpu

    owner = {}
    by_name = {}
    for path, gpu in gpus.items():
        for alias in gpu["aliases"]:
            word = alias.replace("-", "")  # look-up ignores dashes
            if owner.setdefault(word, path) != path:
                check.fail(path, f"alias {alias} is also in {os.path.basename(owner[word])}")
        by_name.setdefault(gpu["name"], []).append(path)
    for name, paths in by_name.items():
        # Some products share a name and differ in memory; they are told apart by variant and total. By name alone
        # the first file is found, so that must be the usual one: it has no _VARIANT in its file name.
        if len(paths) == 1:
            continue
        if "_" in os.path.basename(min(paths)):
            check.fail(min(paths), f'"{name}" alone would mean this variant')
        variants = [gpus[path].get("variant") for path in paths]
        if None in variants or len(set(variants)) != len(variants):
            for path in paths:
                check.fail(path, f'"{name}" is the name of {len(paths)} files: each needs a variant of its own')
    return gpus


def check_models(check, directory):
    """All files of data/models: what a file names is there, a class and a model_type are in one file only."""
    owner = {}
    for folder, _, names in os.walk(directory):
        for name in sorted(names):
            path = os.path.join(folder, name)
            record = check.load(path)
            if not isinstance(record, dict) or not isinstance(record.get("source"), str):
                check.fail(path, "must be an object with a source")
                continue
            classes = record.get("classes", {})
            if not isinstance(classes, dict) or not all(isinstance(over, dict) for over in classes.values()):
                check.fail(path, "classes must be an object of objects")
                continue
            words = list(classes) + [over["model_type"] for over in classes.values() if "model_type" in over]
            for word in words:
                if owner.setdefault(word, path) != path:
                    check.fail(path, f"{word} is also in {os.path.basename(owner[word])}")
            for over in [record, *classes.values()]:
                for key, place in (("like", ""), ("tower", "towers/")):
                    if key in over and not os.path.isfile(os.path.join(directory, f"{place}{over[key]}.json")):
                        check.fail(path, f"{key} {over[key]!r} is no file of models/{place}")
    return sum(word[:1].isupper() for word in owner)


def check_meanings(check, directory):
    """Every flag that is carried over from one engine to another is a flag of each."""
    path = os.path.join(directory, "meanings.json")
    known = {}
    for record in check.load(path) or []:
        named = [(engine, flag) for engine, flag in record.items() if engine not in ("value", "values", "apart", "also", "keys")]
        named += [(engine, pair[0]) for engine, pairs in record.get("also", {}).items() for pair in pairs]
        other = [engine for engine in ("vllm", "sglang") if engine not in record]
        named += [(engine, target[0]) for engine in other for targets in record.get("keys", {}).values() for target in targets]
        for engine, flag in named:
            if engine not in known:
                table = check.load(os.path.join(directory, engine, "flags.json")) or {"flags": []}
                known[engine] = {name for one in table["flags"] for name in one["names"]}
            plain = flag.replace("--no-", "--", 1)
            if flag not in known[engine] and plain not in known[engine]:
                check.fail(path, f"{engine} has no flag {flag}")


def check_levers(check, directory):
    """Every flag of a ladder of levers is one of the engine, in the releases that are said, and has one role."""
    for engine in sorted(os.listdir(directory)):
        path = os.path.join(directory, engine, "levers.json")
        if not os.path.exists(path):
            continue
        table = check.load(os.path.join(directory, engine, "flags.json")) or {"flags": []}
        flags = {}
        for flag in table["flags"]:  # one that is stored under another name since has two records
            for name in flag["names"]:
                flags[name] = {**flag, "since": flags.get(name, flag).get("since", "0.0.0")}
        order = [tuple(map(int, version.split(".")[:3])) for version in table.get("versions", ["0.0.0"])]
        roles = {}
        for lever in (check.load(path) or {}).get("levers", []):
            if "flag" not in lever:
                continue
            if roles.setdefault(lever["flag"], lever.get("role")) != lever.get("role"):
                check.fail(path, f"{lever['id']}: another lever of {lever['flag']} has another role")
            if lever["flag"] not in flags:
                check.fail(path, f"{engine} has no flag {lever['flag']}")
                continue
            first = tuple(map(int, flags[lever["flag"]].get("since", "0.0.0").split(".")[:3]))
            since = tuple(map(int, lever.get("since", "0.0.0").split(".")))
            if max(since, order[0]) < first or "until" in flags[lever["flag"]] and "until" not in lever:
                check.fail(path, f"{lever['id']}: not every release that is said has {lever['flag']}")


def check_refusals(check, directory):
    """Every flag that a condition, a sentence's place or a correction names is one of the engine."""
    for engine in sorted(os.listdir(directory)):
        path = os.path.join(directory, engine, "refusals.json")
        if not os.path.exists(path):
            continue
        table = check.load(os.path.join(directory, engine, "flags.json")) or {"flags": []}
        known = {name for flag in table["flags"] for name in flag["names"]}
        for step in check.load(path) or []:
            for text in [*step.get("when", []), *re.findall(r"\{(--[^}:]*)", step.get("says", "")), *(one.replace("---", "--") for one in step.get("fix", []))]:
                for flag in re.findall(r"(?:^|[ !])(--[\w-]+)", text):
                    if flag not in known:
                        check.fail(path, f"{engine} has no flag {flag}")


def check_behaviour(check, directory, source):
    """What an engine does for some architectures alone is a number above 0 beside a word that the engine's code asks for."""
    for engine in sorted(os.listdir(directory)):
        path = os.path.join(directory, engine, "architectures.json")
        if not os.path.isfile(path):
            continue
        code = ""
        for folder, _, names in os.walk(os.path.join(source, engine)):
            for name in names:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    code += file.read() if name.endswith((".c", ".def")) else ""
        table = check.load(path) or {}
        for name, words in [*table.get("behaviour", {}).items(), *table.get("model_types", {}).items()]:
            for word, value in words.items():
                if not is_count(value):
                    check.fail(path, f"{name}: {word} is not a number above 0")
                elif code and f'"{word}"' not in code:
                    check.fail(path, f"{name}: no code of {engine} asks for {word}")


def check_catalogue(check, path):
    """Every model has a config or refers to one, and a checkpoint refers to its model by the name it is listed by. How many there are."""
    models = check.load(path) or {}
    if list(models) != sorted(models):  # one is found by halving
        check.fail(path, "the ids are not in order")
    for name, entry in models.items():
        base = models.get(entry) if isinstance(entry, str) else entry
        if not isinstance(base, dict):
            check.fail(path, f"{name}: another name of what is not listed")
            continue
        for key in ("of", "like"):
            to = models.get(base.get(key), {}) if key in base else {"config": {}}
            if not isinstance(to, dict) or not ("config" in to or (key == "of" and "like" in to)):
                check.fail(path, f"{name}: {key} {base[key]}, which has no config")
        level, wide = base.get("level"), base.get("wide", 0)
        if level not in (None, "proven", "alias", "recipe", "sizes") or (wide > 0) != (level == "sizes" or (level == "recipe" and wide > 0)):
            check.fail(path, f"{name}: level {level} with {wide} thousandths")
        origin = base.get("from")
        if origin is not None and not (origin.get("repo") == name and re.fullmatch(r"20\d\d-\d\d-\d\d", origin.get("date", "")) and
                                       re.fullmatch(r"[0-9a-f]{40}", origin.get("revision") or "0" * 40)):
            check.fail(path, f"{name}: from does not say repo, revision and date")
    return len(models)


def main(argv):
    if len(argv) > 2 or (len(argv) == 2 and argv[1].startswith("-")):
        print(__doc__, file=sys.stderr)
        return 2
    root = argv[1] if len(argv) == 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
    if not os.path.isdir(root):
        print(f"{root}: no such directory", file=sys.stderr)
        return 2
    check = Check(root)

    gpu_dir = os.path.join(root, "gpus")
    file_count = 0
    for directory, subdirectories, names in os.walk(root):
        subdirectories.sort()
        for name in sorted(names):
            if name.endswith(".json"):
                file_count += 1
                if directory != gpu_dir and not os.path.relpath(directory, root).startswith("models"):
                    check.load(os.path.join(directory, name))
    gpus = check_gpus(check, gpu_dir) if os.path.isdir(gpu_dir) else {}
    if os.path.exists(os.path.join(root, "engines", "meanings.json")):
        check_meanings(check, os.path.join(root, "engines"))
        check_behaviour(check, os.path.join(root, "engines"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "engines"))
        check_levers(check, os.path.join(root, "engines"))
        check_refusals(check, os.path.join(root, "engines"))
    model_dir = os.path.join(root, "models")
    class_count = check_models(check, model_dir) if os.path.isdir(model_dir) else 0

    catalogue = os.path.join(root, "catalogue.json")
    model_count = check_catalogue(check, catalogue) if os.path.exists(catalogue) else 0

    for problem in check.problems:
        print(problem)
    profiles = [entry for gpu in gpus.values() for entry in gpu.get("mig", [])]
    measured = sum(gpu["total_source"] == "measured" for gpu in gpus.values())
    measured_profiles = sum(entry["total_source"] == "measured" for entry in profiles)
    print(f"{file_count} JSON files; {len(gpus)} GPUs ({measured} totals measured, {len(gpus) - measured} estimated); "
          f"{len(profiles)} MIG profiles ({measured_profiles} measured, {len(profiles) - measured_profiles} estimated); "
          f"{class_count} model classes, {model_count} models; "
          f"{len(check.problems)} problems")
    return 1 if check.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
