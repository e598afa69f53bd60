"""Does `oomsight explain` know mechanisms or samples? Measures that need no unseen data: support of the deciding rules,
sentences changed, calibration, and invariants that hold without labels. Used by score_explain.py; standard library only."""

import collections
import concurrent.futures
import json
import os
import re
import subprocess
import tempfile

from check_kb import both_ways
import scorelib
from scorelib import fail, read_lines

ANY_WORD = re.compile(r"memory|\boom\b|alloc|vram|kv.?cache|\bno room\b|\d ?[KMGT]i?B\b", re.I)  # without one of these a reader cannot tell either
MEMORY_WORDS = re.compile(r"out of memory|outofmemory|insufficient memory|not enough memory|cannot allocate memory", re.I)
GIB = 1 << 30


def causes(entry):
    return {entry["cause"], *entry.get("also", [])}


def incidents_of(binary, path, options=()):
    done = subprocess.run([binary, "explain", "--json", *options, path], capture_output=True, timeout=60, check=False)
    if done.returncode not in (0, 1):
        return []
    return [json.loads(line) for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]


def answer_of(incidents):
    """The incident that a label speaks of: the first with an OOM, else the first."""
    return next((i for i in incidents if i["is_oom"]), incidents[0] if incidents else None)


# Kinds of "host_ram", which older labels do not tell apart.
HOST_KINDS = {"container_limit", "host_full", "pinned_pool_refused", "prompt_cache", "swap_space"}


def in_words_of(truth, got):
    """The answer in the words of the label: a kind that the label does not know is its family."""
    if got and got["cause"] in HOST_KINDS and not HOST_KINDS & causes(truth):
        got = {**got, "cause": "host_ram"}
    return got


class Sample:
    def __init__(self, label, folder, incidents):
        self.label, self.truth, self.incidents = label, label["truth"], incidents
        self.path = os.path.join(folder, label["id"] + ".log")
        self.got = in_words_of(self.truth, answer_of(incidents))
        self.repository = label["source"].split("#")[0]
        self.explicit = label["evidence"] == "explicit"
        self.firm = label["confidence"] != "low"
        if self.got is None:
            fail(f"{label['id']}: no answer")

    def right(self, what):
        if what == "is_oom":
            return self.got["is_oom"] == self.truth["is_oom"]
        if what == "phase":
            return self.got["phase"] == self.truth["phase"]
        return bool(causes(self.got) & causes(self.truth))

    def rule(self, what):
        return self.got["rules"]["verdict" if what == "is_oom" else what]


def read_samples(binary, folders, options=()):
    labels = [(label, folder) for folder in folders for label in read_lines(os.path.join(folder, "labels.jsonl"))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        got = pool.map(lambda one: incidents_of(binary, os.path.join(one[1], one[0]["id"] + ".log"), options), labels)
        return [Sample(label, folder, incidents) for (label, folder), incidents in zip(labels, got)]


# ---- support

BORNE_OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "explain", "oracle_rules.json")


def by_oracle(what):
    """Rules that failing starts of real engines bear out (tests/oracle/score_failing.py --rules): as good as a repository."""
    try:
        with open(BORNE_OUT, encoding="utf-8") as file:
            return set(json.load(file).get(what, []))
    except FileNotFoundError:
        return set()


ELSEWHERE = os.path.join(os.path.dirname(BORNE_OUT), "public_rules.json")


def by_others(what):
    """Rules that are right in reports of two or more repositories beside the corpora: one of them is another than the sample's. The
    texts are not kept, the counts are."""
    try:
        with open(ELSEWHERE, encoding="utf-8") as file:
            return {rule for rule, seen in json.load(file).get(what, {}).items() if seen["repositories"] >= 2}
    except FileNotFoundError:
        return set()


def supporters(samples, what, name_of):
    """{rule: names of those in which it is right}"""
    where = collections.defaultdict(set)
    for rule in by_oracle(what):
        where[rule].add("oracle")
    for s in samples:
        if s.truth["is_oom"] and s.right(what):
            where[s.rule(what)].add(name_of(s))
    return where


def counted(samples, what):
    return [s for s in samples if s.explicit and (s.firm or what == "is_oom")]


def support(samples, what, wide=False):
    """-> plain, supported, of: a sample is supported when its rule is also right on a sample of another repository, or a start
    of the real engine bears it out; `wide`: also by reports of other repositories that are in no corpus."""
    base = counted(samples, what)
    where = supporters(samples, what, lambda s: s.repository)
    for rule in by_others(what) if wide else ():
        where[rule].add("elsewhere")
    plain = sum(s.right(what) for s in base)
    held = sum(s.right(what) and bool(where[s.rule(what)] - {s.repository}) for s in base)
    return plain, held, len(base)


def folds(samples, what, count=5):
    """-> right, of: repositories in `count` folds; a sample counts when its rule is right in a fold that is not its own."""
    names = sorted({s.repository for s in samples})
    fold = {name: at % count for at, name in enumerate(names)}
    where = supporters(samples, what, lambda s: fold[s.repository])
    base = counted(samples, what)
    return sum(s.right(what) and bool(where[s.rule(what)] - {fold[s.repository]}) for s in base), len(base)


def lone_rules(samples, what, above=0.4):
    """Rules right in one repository only that are stated with more than `above`: (rule, repository, highest)."""
    where, most, borne = collections.defaultdict(set), collections.Counter(), by_oracle(what)
    for s in samples:
        if s.truth["is_oom"] and s.got["is_oom"] and s.rule(what) and s.rule(what) not in borne:
            if s.right(what):
                where[s.rule(what)].add(s.repository)
            stated = s.got.get(what + "_sure", s.got["confidence"])
            most[s.rule(what)] = max(most[s.rule(what)], stated)
    return sorted((rule, "".join(where[rule]), stated) for rule, stated in most.items() if len(where[rule]) < 2 and stated > above)


# ---- calibration

BANDS = [(0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.85), (0.85, 1.01)]


def calibration(samples, what):
    """-> [(low, high, stated on average, right, of)]"""
    rows = []
    for low, high in BANDS:
        here = [s for s in samples if s.truth["is_oom"] and s.firm and s.got["is_oom"] and low <= s.got[what + "_sure"] < high]
        mean = sum(s.got[what + "_sure"] for s in here) / len(here) if here else 0
        rows.append((low, high, mean, sum(s.right(what) for s in here), len(here)))
    return rows


def stated(samples, what):
    """What the certainties of a phase, or of the first cause that is named, are worth (scorelib.stated)."""
    right = {"phase": lambda s: s.right("phase"), "cause": lambda s: s.got["cause"] in causes(s.truth)}[what]
    return scorelib.stated((s.got[what + "_sure"], right(s)) for s in samples if s.truth["is_oom"] and s.firm and s.got["is_oom"])


# ---- sentences changed, their meaning kept

def cut_line(line):
    return line[:max(1, int(len(line) * 0.6))]


def code_inserted(line):
    """A code or a file name in the middle, as drivers and loggers put it."""
    return re.sub(r"(?i)((?:error|failed|failure|exception|memory)\b:?)", r"\1 (0x2, alloc.cc:118)", line, count=1)


def other_carrier(line):
    """Another logger around the same sentence."""
    text = re.sub(r"^.*?(?=[\w.]*(?:Error|Exception)\b)", "", line) if re.search(r"(?:Error|Exception)\b", line) else line.strip()
    return "2026-03-01T10:00:00Z host svc[311]: level=error msg=" + text


MUTATIONS = {
    "lower case": str.lower,
    "upper case": str.upper,
    "no punctuation": lambda line: re.sub(r"(?<!\d)[.,;:!](?=\s|$)", "", line),
    "cut at 60 %": cut_line,
    "code inserted": code_inserted,
    "GiB to GB": lambda line: re.sub(r"\b([KMGT])iB\b", r"\1B", line),
    "other carrier": other_carrier,
}


def mutate(samples, binary):
    """-> {mutation: (lost, confidently not memory, of, mute)}: of the samples that say so, whose deciding lines change; `mute` are
    the lost ones whose deciding lines hold no word of memory any more."""
    results = {}
    base = [s for s in samples if s.explicit and s.truth["is_oom"] and s.got["is_oom"]]
    with tempfile.TemporaryDirectory() as folder:
        for name, change in MUTATIONS.items():
            jobs, mute = [], set()
            for s in base:
                with open(s.path, encoding="utf-8", errors="surrogateescape") as log:
                    lines = log.read().split("\n")
                deciding = {e["line"] - 1 for e in s.got["evidence"] if e["decides"]}
                changed = [change(line) if i in deciding else line for i, line in enumerate(lines)]
                if changed == lines:
                    continue
                path = os.path.join(folder, f"{len(jobs)}.log")
                with open(path, "w", encoding="utf-8", errors="surrogateescape") as log:
                    log.write("\n".join(changed))
                jobs.append((s, path))
                if not any(ANY_WORD.search(changed[i]) for i in deciding if i < len(changed)):
                    mute.add(s.label["id"])
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                answers = list(pool.map(lambda job: answer_of(incidents_of(binary, job[1])), jobs))
            lost = [(s.label["id"], a) for (s, _), a in zip(jobs, answers) if not a or not a["is_oom"]]
            sure = [name for name, a in lost if a and a["confidence"] > 0.5]
            results[name] = ([one for one, _ in lost], sure, len(jobs), [one for one, _ in lost if one in mute])
    return results


# ---- whole reports, as people paste them

def wrapped(lines, width=80):
    return [line[i:i + width] for line in lines for i in range(0, max(1, len(line)), width)]


DRESSES = {
    "quoted": lambda lines: ["> " + line for line in lines],
    "80 columns": wrapped,
    "last 20 lines": lambda lines: [line for line in lines if line.strip()][-20:],
    "container's prefix": lambda lines: ["2026-03-01T10:00:00.123456789Z stderr F " + line for line in lines],
}


def dress(samples, binary):
    """-> {dress: (is_oom lost, right phases lost, of)}"""
    results = {}
    base = [s for s in samples if s.explicit and s.truth["is_oom"] and s.got["is_oom"]]
    with tempfile.TemporaryDirectory() as folder:
        for name, change in DRESSES.items():
            def answer(s):
                with open(s.path, encoding="utf-8", errors="surrogateescape") as log:
                    lines = change(log.read().split("\n"))
                path = os.path.join(folder, s.label["id"] + ".log")
                with open(path, "w", encoding="utf-8", errors="surrogateescape") as log:
                    log.write("\n".join(lines))
                return answer_of(incidents_of(binary, path))
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                answers = list(pool.map(answer, base))
            lost = [s.label["id"] for s, a in zip(base, answers) if not a or not a["is_oom"]]
            moved = [s.label["id"] for s, a in zip(base, answers) if s.right("phase") and a and a["is_oom"] and a["phase"] != s.got["phase"]]
            results[name] = (lost, moved, len(base))
    return results


# ---- what must hold without labels

def flag_of(change):
    """("--max-model-len", "4096") of a fix; values joined with = are taken apart."""
    pairs, at = [], 0
    words = [w for part in change for w in part.split("=", 1)] if change and change[0].startswith("--") else []
    while at < len(words):
        if words[at].startswith("--"):
            value = words[at + 1] if at + 1 < len(words) and not words[at + 1].startswith("--") else None
            pairs.append((words[at], value))
        at += 1
    return pairs


def refuted(incident, flag, value):
    """Why the figures of the same log refute a piece of advice, or None."""
    numbers = incident["numbers"]
    get = numbers.get
    if value and (re.search(r"[{}<>]", value) and not value.startswith("{\"") or value in ("N", "X", "...")):
        return "a placeholder"
    try:
        amount = float(value)
    except (TypeError, ValueError):
        amount = None
    gmu, total = get("gpu_memory_utilization"), get("total_bytes")
    if flag == "--gpu-memory-utilization" and amount is not None:
        if gmu is not None and incident["cause"].startswith("gmu_too_high") and amount >= gmu:
            return f"not below {gmu}"
        if gmu is not None and incident["cause"] in ("gmu_too_low", "context_too_long_for_kv") and amount <= gmu:
            return f"not above {gmu}"
        free = get("startup_free_bytes")
        if incident["phase"] == "init_free_memory_check" and total and free and amount * total > free:
            return f"{amount} of the card is more than was free"
        if incident["phase"] == "init_free_memory_check" and gmu is not None and amount >= gmu:
            return f"not below {gmu}"
    if flag == "--max-model-len" and amount and get("max_seq_len"):
        if amount >= get("max_seq_len"):
            return "not below the length of the log"
        if get("est_max_model_len") and amount > get("est_max_model_len") and incident["phase"] == "kv_sizing":
            return "above what the engine says would fit"
    rows = get("dummy_requests") or get("max_num_seqs")
    if flag == "--max-num-seqs" and amount and rows and amount >= rows:
        return f"not below {rows}"
    if flag == "--kv-cache-dtype" and value == "fp8" and get("kv_needed_bytes") and get("kv_available_bytes") is not None:
        if get("kv_needed_bytes") / 2 > max(get("kv_available_bytes"), 0) * 1.02 and len(incident["fixes"]) and incident["phase"] == "kv_sizing":
            return "half of what is needed is more than there is"
    return None


def known_flags(binary):
    """{flag: True} of the newest release, from the tool's own table; empty when there is none."""
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "engines", "vllm", "flags.json")
    try:
        with open(table, encoding="utf-8") as file:
            return set(re.findall(r"--[a-z][\w-]+", file.read()))
    except OSError:
        return set()


def invariants(samples, binary):
    """-> {what: [where]} of everything that contradicts itself, labelled or not."""
    wrong = collections.defaultdict(list)
    flags = known_flags(binary)
    for s in samples:
        for incident in s.incidents:
            name = s.label["id"]
            engine = incident["engine"]["name"] or ""
            for fix in incident["fixes"]:
                for flag, value in flag_of(fix["change"]):
                    why = refuted(incident, flag, value)
                    if why:
                        wrong["advice refuted"].append(f"{name}: {flag} {value}: {why}")
                    if engine not in ("vllm", "vllm-ascend", "") and flag in flags and engine not in ("sglang",):
                        wrong["flags of another engine"].append(f"{name} ({engine}): {flag}")
            for one, other in both_ways(incident["fixes"], incident["dead_ends"]):
                wrong["advice both ways"].append(f"{name}: {one} / {other}")
            held = sum(row["bytes"] for row in incident["ledger"])
            total, free = incident["numbers"]["total_bytes"], incident["numbers"]["free_bytes"]
            if held and total and free is not None and incident["phase"] != "init_free_memory_check" and abs(held - (total - free)) > 1 << 20:
                wrong["ledger does not add up"].append(name)
            if not incident["is_oom"] and incident["confidence"] > 0.5:
                told = [e["text"] for e in incident["evidence"] if e["decides"] and MEMORY_WORDS.search(e["text"])]
                if told:
                    wrong["not memory, and quotes it"].append(name)
    return dict(wrong)


# ---- advice that helped

def confirmed(samples, binary):
    """-> (named, of, not a setting): reports whose thread confirms a setting of the engine as the fix, and of those the ones whose
    advice changes that setting. Another version, a patch or other hardware is no setting."""
    flags, named, of, others = known_flags(binary), [], 0, 0
    for s in samples:
        told = " ".join(s.label.get("fix_confirmed") or []).replace("-", "_").lower()
        if not told or not s.truth["is_oom"]:
            continue
        wanted = {flag for flag in flags if re.search(r"\b%s\b" % flag[2:].replace("-", "_"), told)}
        if not wanted:
            others += 1
            continue
        of += 1
        advised = {word.split("=")[0] for fix in s.got["fixes"] for word in " ".join(fix["change"]).split()}
        if wanted & advised or any("drop " + flag in " ".join(fix["change"]) for fix in s.got["fixes"] for flag in wanted):
            named.append(s.label["id"])
    return named, of, others
