#!/usr/bin/env python3
"""What the scores need, as facts in this repository: evidence.py FOLDER [--write]

FOLDER holds what was collected: truth/ (records of public starts, NAME-models/ beside them), corpus/ (labels of public reports) and golden/
(what real engines and real allocators answered). tests/evidence/ has of it:
  starts.jsonl    public starts: where they are published, release, GPU, flags, printed figures, outcome. No sentence of anybody.
  reports.jsonl   public reports: where they are published, and the label (memory failure, phase, causes). Not their text.
  models.json     the configs that these need, in the form of data/catalogue.json: the keys that are read
  geometry.jsonl, dryrun.jsonl, traces/, snapshots/   answers of real engines and allocators
The form of each is below: a key that is not in a list is not taken. Without --write: exit 1 when a committed file is not what FOLDER gives.
Standard library only."""
import argparse
import json
import os
import re
import shutil
import sys

import catalogue
import score_truth
import scorelib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INTO = os.path.join(ROOT, "tests/evidence")
SETS = (("first", "startups"), ("second", "second"), ("third", "third"))
CORPORA = (("first", "dev"), ("second", "second"), ("third", "third"))
START_KEYS = ("id", "set", "source", "release", "engine_version_effective", "model", "config", "config_kind", "gpu", "gpu_count", "gpu_total_gib", "image",
              "first_engine", "flags", "resolved", "measured", "outcome", "unfair", "confidence")
REPORT_KEYS = ("id", "set", "source", "engine", "evidence", "confidence", "is_oom", "phase", "cause", "also")
GEOMETRY_KEYS = ("id", "kind", "vllm", "inputs", "kv", "weights_per_pp_rank", "attn_backends", "selected")
DRYRUN_KEYS = ("model", "flags", "device", "vllm", "torch", "model_load_gib", "available_kv_gib", "kv_tokens", "max_concurrency", "non_kv_gib",
               "torch_peak_increase_gib", "consumed_gib", "weights_gib", "peak_activation_gib", "backend", "max_num_batched_tokens", "max_model_len", "eager",
               "gpu_memory_utilization", "context_charge_bytes", "flashinfer_installed")
SEED_MODELS = ("Llama-2-7b", "Qwen3-235B-A22B", "Qwen3.6-27B-AWQ-INT4", "Qwen3.6-27B-int4-AutoRound-derived", "opt-1.3b", "opt-2.7b", "opt-6.7b")
NAMES = {"source": 170, "model": 60, "config": 60, "gpu": 60, "release": 40}  # the most letters of a name; 32 elsewhere
FLAG_LETTERS = 240  # of one flag with JSON, as it is typed
MOST_TRACE_BYTES, ONE_TRACE_BYTES = 60 << 10, 150 << 10  # of a trace of the allocator, and of one where its workload has no shorter one


def source_of(text):
    """An address, or the number of a public file in the index that it was found in; what tells several starts of one source apart stays."""
    address, _, part = text.partition("#")
    found, seed = re.search(r"index id (\d+)", address), re.match(r"seed (?:document )?(\d+)", address)
    address = re.sub(r"\s+\((?:index id|seed) .*", "", address)
    if found and not address.startswith("github.com/"):
        address = "index:" + found.group(1)
    elif seed:
        address = "seed:" + seed.group(1)
    elif address.startswith("page "):
        address = ":".join(address.split()[1:])
    return address.replace(" ", "%20") + ("#" + part if part else "")


def flag_of(key, value):
    """A dict that was written down in other ways as a dict: the command has JSON of it."""
    if key == "speculative_config":
        return score_truth.speculative_of(value)
    given = score_truth.loose(value)
    return given if isinstance(given, (dict, list)) else value


def form_errors(line, keys):
    """What of a line is no name and no figure."""
    for key in line:
        if key not in keys:
            yield "%s: no such key" % key
    for key, value in line.items():
        if isinstance(value, str) and (len(value) > NAMES.get(key, 32) or re.search(r"\s", value) and key not in ("gpu", "model", "release")):
            yield "%s: %s is not a name" % (key, value[:60])
    for key, value in [*line.get("flags", {}).items(), *line.get("resolved", {}).items()]:
        text = value if isinstance(value, str) else json.dumps(value)
        if len(text) > (32 if isinstance(value, str) else FLAG_LETTERS) or isinstance(value, str) and re.search(r"\s", value):
            yield "%s: %s is not the value of a flag" % (key, text[:60])
    for key, value in line.get("measured", {}).items():
        if not isinstance(value, (int, float)) and value not in ("image", "video"):
            yield "%s: %s is not a figure" % (key, str(value)[:60])
    for key in ("also", "unfair"):
        for value in line.get(key, []):
            if not re.fullmatch(r"[a-z_]{2,40}", value):
                yield "%s: %s is not a name" % (key, value[:60])


def start_of(name, record):
    gpu = re.sub(r",? inferred[^)]*", "", record["gpu"]).replace(" ()", "") if record["gpu"] else None
    taken = {**record, "set": name, "source": source_of(record["source"]), "release": record["vllm_version"], "gpu": gpu,
             "image": score_truth.from_image(record), "first_engine": score_truth.older_engine_printed(record),
             "flags": {key: flag_of(key, value) for key, value in record["flags"].items() if value is not None},
             "resolved": {key: value for key, value in record["resolved"].items() if value is not None},
             "measured": {key: value for key, value in record["measured"].items() if value is not None},
             "unfair": sorted(record.get("unfair") or [])}
    return {key: taken[key] for key in START_KEYS if taken[key] is not None and taken[key] is not False and taken[key] != []}


def starts(folder):
    return sorted((start_of(name, record) for name, file in SETS for record in scorelib.read_lines(os.path.join(folder, "truth", file + ".jsonl"))),
                  key=lambda start: ([name for name, _ in SETS].index(start["set"]), start["id"]))


def report_of(name, label):
    taken = {**label, **label["truth"], "set": name, "source": source_of(label["source"])}
    return {key: taken[key] for key in REPORT_KEYS if taken.get(key) not in (None, [])}


def reports(folder):
    return [report_of(name, label) for name, file in CORPORA
            for label in sorted(scorelib.read_lines(os.path.join(folder, "corpus", file, "labels.jsonl")), key=lambda label: label["id"])]


def lines_of(path, keys):
    return [{key: record[key] for key in keys if key in record} for record in scorelib.read_lines(path)]


def geometry(folder):
    return lines_of(os.path.join(folder, "golden", "geometry.jsonl"), GEOMETRY_KEYS)


def dryrun(folder):
    """Those of FOLDER, and behind them the starts that were made here (`by`)."""
    own = [line for line in scorelib.read_lines(os.path.join(ROOT, "tests/evidence/dryrun.jsonl")) if "by" in line]
    return lines_of(os.path.join(folder, "golden", "dryrun-0.32.0.jsonl"), DRYRUN_KEYS) + own


LINES = {"starts": starts, "reports": reports, "geometry": geometry, "dryrun": dryrun}


def model_names(lines):
    """Every config that a line names, or a case of check_seeds.py and check_seeds_explain.py."""
    names = set(SEED_MODELS) | {start["config"] for start in lines["starts"] if start.get("config")} | {start["model"] for start in lines["dryrun"]}
    return names | {line["inputs"]["model"] for line in lines["geometry"] if line["kind"].startswith("engine-")}


def models(folder, names):
    folders = [os.path.join(folder, "truth", file + "-models") for _, file in SETS] + [os.path.join(folder, "golden", "models")]
    words, found = catalogue.words_read(), {}
    for name in names:
        path = scorelib.config_path(os.pathsep.join(folders), name)
        config, quant = catalogue.load(path, "config.json"), catalogue.load(path, "hf_quant_config.json")
        if config is None:
            scorelib.fail("no config of %s" % name)
        found[name] = {"config": catalogue.kept(config, words), **({"quant": catalogue.kept(quant, words)} if quant else {})}
    return found


def same_models(committed, made):
    """Names whose committed config lacks a key that is read, or has another value; keys that are no longer read do no harm."""
    words = catalogue.words_read()
    read = lambda entry: {part: catalogue.kept(value, words) for part, value in (entry or {}).items()}
    return [name for name in sorted(set(committed) | set(made)) if read(committed.get(name)) != read(made.get(name))]


def traces(folder):
    """(file, place in tests/evidence) of what is taken as it is."""
    golden, least = os.path.join(folder, "golden"), {}
    sizes = {name: os.path.getsize(os.path.join(golden, "allocator", name)) for name in sorted(os.listdir(os.path.join(golden, "allocator"))) if name.endswith(".gz")}
    for name in sorted(sizes, key=lambda name: (sizes[name], name)):
        least.setdefault(name.split("@")[0], name)
    for name, size in sizes.items():
        if size <= MOST_TRACE_BYTES or size <= ONE_TRACE_BYTES and least[name.split("@")[0]] == name:
            yield os.path.join(golden, "allocator", name), os.path.join("traces", name)
    for name in sorted(os.listdir(os.path.join(golden, "snapshots"))):
        if name.endswith((".pickle", ".json")):
            yield os.path.join(golden, "snapshots", name), os.path.join("snapshots", name)


def read_bytes(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--into", default=INTO)
    args = parser.parse_args()
    if not os.path.isdir(os.path.join(args.folder, "truth")):
        print("no truth/ in %s: the facts are not compared" % args.folder)
        return 77
    lines = {name: make(args.folder) for name, make in LINES.items()}
    for name, keys in (("starts", START_KEYS), ("reports", REPORT_KEYS)):
        for line in lines[name]:
            for error in form_errors(line, keys):
                scorelib.fail("%s: %s: %s" % (name, line["id"], error))
    bad = []
    for name, made in lines.items():
        text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in made).encode()
        path = os.path.join(args.into, name + ".jsonl")
        if read_bytes(path) != text:
            bad.append(name + ".jsonl")
            if args.write:
                with open(path, "wb") as file:
                    file.write(text)
    path, made = os.path.join(args.into, "models.json"), models(args.folder, model_names(lines))
    committed = json.loads(read_bytes(path) or "{}")
    bad += ["models.json: " + name for name in same_models(committed, made)]
    if args.write:
        with open(path, "w", encoding="utf-8") as file:
            file.write(catalogue.text_of(made))
    for source, place in traces(args.folder):
        path = os.path.join(args.into, place)
        if read_bytes(path) != read_bytes(source):
            bad.append(place)
            if args.write:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                shutil.copyfile(source, path)
                os.chmod(path, 0o644)
    for name in bad:
        print("%s %s" % (name, "written" if args.write else "is not what %s gives" % args.folder))
    print("%d starts, %d reports, %d configs, %d lines of an engine's cache, %d of dry runs: %s" % (
        len(lines["starts"]), len(lines["reports"]), len(made), len(lines["geometry"]), len(lines["dryrun"]), "%d differed" % len(bad) if bad else "as collected"))
    return 1 if bad and not args.write else 0


if __name__ == "__main__":
    sys.exit(main())
