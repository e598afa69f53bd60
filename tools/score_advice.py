#!/usr/bin/env python3
"""Does the advice name what helped? score_advice.py BINARY CASES.jsonl [CORPUS...] [--models DIR] [--json] [--all]

CASES.jsonl holds one thread a line: what was tried with which result, what worked, and the command where it is known. A CORPUS
holds labels.jsonl and ID.log, as for score_explain.py; its fix_confirmed and fix_not_helping are read as well, and a thread of
both is one case. `explain` is asked where there is a log, `plan` where there is a command of vLLM or SGLang.

Words of people and of the program are read as levers (LEVERS below): a setting and, for a share of the device, its direction. A
case counts when a flag, a variable or a release is what worked; of several that worked together one is enough. What was of no
use and what worked in the same thread is left out of the useless; a suggestion is useless when it holds nothing else. `plan` is
scored where it has something to say: not where it expects a start, nor of a command that holds the cure already. --sets counts
each CORPUS alone, as rows for docs/evidence/results/advice.csv. Exit 0 when the goals hold, 1 when not, 2 without data."""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys

from explainlib import answer_of, incidents_of
from scorelib import read_lines

GOALS = {"first": 0.5, "anywhere": 0.8, "recommended": 0.0, "warned": 0.6}
FLAGS = {
    "share": r"gpu[-_ ]memory[-_ ]util\w*|mem[-_ ]util|\bgmu\b|mem(ory)?[-_ ](fraction|ratio)|KV ratio|free_gpu_mem_fraction",
    "length": r"max[-_ ]model[-_ ]len|context[-_ ]length|ctx-size|\bctx\b|(^|\s)-c (\d|lower)|max length|max_seq_len|\bcontext\b",
    "requests": r"max[-_ ]num[-_ ]seqs|max[-_ ]running[-_ ]requests|(^|\s)-np\b|num_parallel|\bbatch_size\b",
    "batch": r"max[-_ ]num[-_ ]batched[-_ ]tokens|chunked[-_ ]prefill|(^|\s)-ub\b|max-batch-prefill-tokens",
    "graphs": r"enforce[-_ ]eager|(?<!ESTIMATE_)cuda[-_ ]?graph|compilation-config|PIECEWISE",
    "graph_estimate": r"ESTIMATE_CUDAGRAPHS|skip graph memory profiling",
    "kv_dtype": r"kv[-_ ]cache[-_ ]dtype|cache-type-[kv]|bf16 KV|quantised cache",
    "kv_bytes": r"kv[-_ ]cache[-_ ]memory|explicit KV size|KV size|num-gpu-blocks-override|max-total-tokens|KVCACHE_SPACE",
    "tp": r"tensor[-_ ]parallel|--tp(-size)?\b|\btp \d",
    "pp": r"pipeline[-_ ]parallel|--pp-size|\bPP=",
    "images": r"limit[-_ ]mm|max_pixels|mm[-_ ]processor|language-model-only|skip-mm-profiling|MAX_IMAGES|MAX_PATCHES"
              r"|fast-image-processor|mmproj-offload|image-m\w+-tokens|image tokens",
    "offload": r"cpu[-_ ]offload|n-cpu-moe|--?ngl\b|n-gpu-layers|num_gpu\b|GPU_OVERHEAD|--fit|fit-target",
    "segments": r"expandable_segments|remove PYTORCH_CUDA_ALLOC_CONF",
    "allocator": r"max_split_size|allocator settings|PYTORCH_(CUDA_)?ALLOC_CONF(?!=expandable)(?!.*expandable)",
    "speculation": r"speculat|\bno MTP|drop MTP|num_speculative",
    "logprobs": r"logprobs",
    "release": r"downgrade|upgrade|(older|newer|another|other) (build|release|version)|\bv?LLM v?\d+\.\d+|^v?\d+\.\d+\.\d+(rc\d+)?$"
               r"|VLLM_USE_V1|V0 engine|VLLM_USE_V2_MODEL_RUNNER|V1 model runner",
    "host_limit": r"limits?\.memory|requests\.memory|memory request|more memory for the container|more host memory|local_cpu_size"
                  r"|--memory\b",
    "host_cache": r"cache[-_ ]ram|hicache",
    "shm": r"shm[-_ ]size|--ipc|/dev/shm|NCCL_SHM",
    "sleep": r"sleep[-_ ]mode",
    "attention": r"flash[-_]attn|attention[-_ ]backend|fused attention",
    "swap": r"swap[-_ ]space",
    "lora": r"max-lora",
    "custom_all_reduce": r"custom_all_reduce|custom-all-reduce",
    "checkpoint": r"quantised checkpoint|checkpoint already|smaller (model|checkpoint)",
}
ACTIONS = {
    "process": r"kill|orphan|the other process|end (the processes|what holds)|clean up between|ending the desktop|engine shutdown",
    "in_turn": r"one after the other|sequential",
    "page_cache": r"drop_?caches|page cache",
}
LEVERS = {name: re.compile(words, re.I) for name, words in {**FLAGS, **ACTIONS}.items()}
CODE = re.compile(r"\bpatch|as rollout engine|fix in the engine", re.I)  # neither a setting nor a release of this engine
# Where a thread has several failures, its log is the one of the same moment.
MOMENTS = {"mm_profile": "profile", "profile_run": "profile", "cudagraph_profile": "profile", "kv_alloc": "filled", "compile": "filled",
           "cudagraph_capture": "filled", "sampler_warmup": "filled", "weight_load": "load", "quant_postprocess": "load"}
UP = re.compile(r"\b(up|higher|larger|raise|increase)|>=|\bmore\b", re.I)
DOWN = re.compile(r"\b(lower|down|less|below|smaller|reduce)", re.I)
BOTH = re.compile(r"up and down|other values|\d\.\.+\d|(\d, ){2}", re.I)


def directions(text, phase, now):
    """Of a share of the device: where the text moves it."""
    if BOTH.search(text):
        return ["up", "down"]
    moved = re.search(r"(0\.\d+)\s*->\s*(0\.\d+)", text)
    if moved:
        return ["up" if float(moved[2]) > float(moved[1]) else "down"]
    if UP.search(text) or DOWN.search(text):
        return ["up" if UP.search(text) else "down"]
    value = re.search(r"\b(0\.\d+)", text)
    if value and now:
        return ["up" if float(value[1]) > now else "down"]
    if not value:
        return ["up", "down"]
    return ["up" if phase == "kv_sizing" else "down"]  # what people then do


def levers(texts, phase, now=None):
    found = []
    for text in texts:
        if CODE.search(text):
            continue
        for name, words in LEVERS.items():
            if words.search(text):
                found += [f"share {d}" for d in directions(text, phase, now)] if name == "share" else [name]
    return list(dict.fromkeys(found))


class Case:
    def __init__(self, name, log=None):
        self.cures, self.set = [], os.path.basename(os.path.dirname(log)) if log else None
        self.name, self.worked, self.useless, self.log, self.record, self.phase, self.why = name, [], [], log, None, None, None

    def add(self, worked, useless, phase):
        self.phase = self.phase or phase
        self.cures += worked
        self.worked += levers(worked, phase)
        self.useless += levers(useless, phase)

    def wanted(self, of=FLAGS):
        return {lever for lever in self.worked if lever.split()[0] in of}

    def in_vain(self):
        return set(self.useless) - set(self.worked)


def moment(phase):
    return "serving" if phase.startswith("runtime") else MOMENTS.get(phase, phase)


def read_cases(path, corpora):
    """Labels first, each of its own; a thread joins the label of its source and moment."""
    cases = collections.defaultdict(list)
    for folder in corpora:
        for label in read_lines(os.path.join(folder, "labels.jsonl")):
            if label["truth"]["is_oom"]:
                case = Case(label["id"], os.path.join(folder, label["id"] + ".log"))
                case.add(label.get("fix_confirmed") or [], label.get("fix_not_helping") or [], label["truth"]["phase"])
                cases[label["source"]].append(case)
    for record in read_lines(path):
        here = [c for c in cases[record["source"]] if moment(c.phase) == moment(record["phase"]) or "unknown" in (c.phase, record["phase"])]
        if not here:
            here = [Case(record["id"])]
            cases[record["source"]] += here
        tried = record["tried"]
        here[0].add(record["what_worked"] + [t["change"] for t in tried if t["result"] == "worked"],
                    [t["change"] for t in tried if t["result"] in ("no_effect", "worse")], record["phase"])
        if record["command"] and record["engine"] in ("vllm", "sglang"):
            here[0].record = here[0].record or record
    return [case for one in cases.values() for case in one if case.worked or case.useless]


def changes_of(fixes):
    """Each as one text."""
    return [" ".join(fix["change"] + (["another release"] if fix.get("release") else [])) for fix in fixes]


def ask_explain(binary, case):
    got = answer_of(incidents_of(binary, case.log))
    now = got["numbers"].get("gpu_memory_utilization") or got["numbers"].get("mem_fraction_static")
    fixes = [levers([text], got["phase"], now) for text in changes_of(got["fixes"])]
    return fixes, levers(changes_of(got["dead_ends"]), got["phase"])


def ask_plan(binary, case, models):
    """None: the plan cannot be asked (no device, no config of the model), or says that it starts."""
    record = case.record
    if any(cure in record["command"] for cure in case.cures):
        case.why = "the command holds the cure"
        return None
    words = record["command"].split(" ")
    if record["engine"] == "vllm":
        words = ["vllm", "serve"] + [word.strip("'") for word in words[2:]]
    if not record["gpu"]:
        return None
    for at, word in enumerate(words):
        here = os.path.join(models or "", word.split("/")[-1])
        if models and "/" in word and os.path.isdir(here):
            words[at] = here
    command = [binary, "plan", "--offline", "--json", "--gpu", record["gpu"] + (f"x{record['gpus']}" if (record["gpus"] or 1) > 1 else "")]
    version = re.match(r"\d+\.\d+\.\d+(\.post\d+)?", record["engine_version"] or "")
    command += ["--engine", record["engine"] + ("=" + version[0] if version else "")]
    done = subprocess.run(command + ["--"] + words, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode not in (0, 1):
        case.why = done.stderr.strip()
        return None
    plan = json.loads(done.stdout)
    if not plan["fixes"] and not plan.get("needs") and plan["verdict"] not in ("refused", "fails"):
        case.why = "the plan starts"
        return None
    given = re.search(r"(?:utilization|static)[ =](0\.\d+)", record["command"])
    now = float(given[1]) if given else plan.get("setup", {}).get("gpu_memory_utilization") or 0.9
    texts = changes_of(plan.get("answers") or []) + changes_of(plan["fixes"])
    texts += [json.dumps(plan["needs"])] if plan.get("needs") else []
    inert = plan.get("inert") or []
    useless = [i if isinstance(i, str) else " ".join(i["change"]) if "change" in i else json.dumps(i) for i in inert]
    return [levers([text], case.phase, now) for text in dict.fromkeys(texts)], levers(useless, case.phase)


class Score:
    def __init__(self):
        self.rows, self.count = [], collections.Counter()

    def add(self, case, answer):
        fixes, dead_ends = answer
        wanted, vain = case.wanted(), case.in_vain()
        anywhere = {lever for fix in fixes for lever in fix}
        told = {name: False for name in ("first", "anywhere")}
        if wanted:
            told = {"first": bool(fixes and wanted & set(fixes[0])), "anywhere": bool(wanted & anywhere)}
            self.count["confirmed"] += 1
        elif case.wanted(ACTIONS):
            self.count["actions"] += 1
            self.count["actions named"] += bool(case.wanted(ACTIONS) & anywhere)
        self.count["useless"] += len(vain)
        useless = {lever for fix in fixes if fix and set(fix) <= vain for lever in fix}
        told["recommended"], told["warned"] = len(useless), len(vain & set(dead_ends))
        self.count.update(told)
        self.rows.append((case, told, fixes, dead_ends))

    def of(self, name):
        """Of the cases of one set."""
        part = Score()
        for case, _, fixes, dead_ends in self.rows:
            if case.set == name:
                part.add(case, (fixes, dead_ends))
        return part

    def figures(self):
        return {key: self.count[key] for key in
                ("confirmed", "first", "anywhere", "useless", "recommended", "warned", "actions", "actions named")}

    def summary(self):
        c = self.count
        return (f"first {c['first']}, anywhere {c['anywhere']} of {c['confirmed']}; useless recommended {c['recommended']}, "
                f"named {c['warned']} of {c['useless']}")

    def print(self, name, all_of_it):
        c = self.count
        print(f"{name}: {len(self.rows)} cases")
        print(f"  confirmed fix that a flag, variable or release expresses: {c['confirmed']}")
        print(f"    named first                    {c['first']:3}   goal {GOALS['first']:.0%}")
        print(f"    named anywhere                 {c['anywhere']:3}   goal {GOALS['anywhere']:.0%}")
        print(f"  reported as without effect or worse: {c['useless']}")
        print(f"    recommended all the same       {c['recommended']:3}   goal none")
        print(f"    named as without effect        {c['warned']:3}   goal {GOALS['warned']:.0%}")
        print(f"  confirmed action (end a process, start in turn): {c['actions named']} of {c['actions']} named")
        for case, told, fixes, dead_ends in self.rows if all_of_it else []:
            wanted, vain = case.wanted(), case.in_vain()
            mark = "first   " if told["first"] else "anywhere" if told["anywhere"] else "missing " if wanted else "-       "
            bad = " RECOMMENDED" if told["recommended"] else ""
            print(f"  {mark} {case.name:18} {case.phase or '':24} worked {sorted(set(case.worked))} useless {sorted(vain)}{bad}\n"
                  f"      said {fixes} no effect {dead_ends}")

    def holds(self):
        c = self.count
        return (c["first"] >= GOALS["first"] * c["confirmed"] and c["anywhere"] >= GOALS["anywhere"] * c["confirmed"]
                and c["recommended"] == 0 and c["warned"] >= GOALS["warned"] * c["useless"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("cases")
    parser.add_argument("corpora", nargs="*")
    parser.add_argument("--models", help="folders NAME with config.json, for models that are not built in")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sets", action="store_true")
    asked = parser.parse_args()
    if not os.path.exists(asked.cases):
        print(f"no data at {asked.cases}")
        return 2
    cases = read_cases(asked.cases, asked.corpora)
    scores = {"explain": Score(), "plan": Score()}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        logged = [case for case in cases if case.log]
        for case, answer in zip(logged, pool.map(lambda c: ask_explain(asked.binary, c), logged)):
            scores["explain"].add(case, answer)
        given = [case for case in cases if case.record]
        for case, answer in zip(given, pool.map(lambda c: ask_plan(asked.binary, c, asked.models), given)):
            if answer:
                scores["plan"].add(case, answer)
            elif asked.all:
                print(f"plan not asked: {case.name}: {case.why or 'no device'}")
    if asked.sets:
        sets = [os.path.basename(os.path.normpath(folder)) for folder in asked.corpora]
        parts = [(f"explain, set {at}", scores["explain"].of(name)) for at, name in enumerate(sets, 1)]
        print("set,cases," + ",".join(key.replace(" ", "_") for key in scores["plan"].figures()))
        for name, score in [*parts, ("plan", scores["plan"])]:
            print(",".join(map(str, [f'"{name}"', len(score.rows), *score.figures().values()])))
    elif asked.json:
        json.dump({name: score.figures() for name, score in scores.items()}, sys.stdout, indent=1)
        print()
    else:
        for name, score in scores.items():
            score.print(name, asked.all)
        print("score_advice: " + "; ".join(f"{name} {score.summary()}" for name, score in scores.items()))
    return 0 if all(score.holds() for score in scores.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
