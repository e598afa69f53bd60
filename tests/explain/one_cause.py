#!/usr/bin/env python3
"""One screen names one cause: one_cause.py BINARY [LOG...]

The headline, the tile and "Why" of an answer are about the cause that JSON names; any other stands as "also". Looked at are every record of the knowledge
base beside every cause it may be shown for, every rule's reason, and what the command says of each log (those of tests/fixtures unless some are given)
as text, HTML and JSON. A headline speaks of a cause when it has the cause's words (NAMES)."""
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
NOT_SHOWN = "insufficient_info"
with open(os.path.join(ROOT, "src", "ledger", "cause.def"), encoding="utf-8") as table:
    TITLES = dict(re.findall(r'^CAUSE\(\w+, "(\w+)", "([^"]+)"\)', table.read(), re.M))  # what people read for a cause

# Words by which a sentence names a cause, and the causes that it may then be about.
NAMES = [
    (r"\bin pieces|in one piece|\bfragment(?!s already)", {"fragmentation"}),
    (r"other process|another process|trainer|tenant\b|leftover|unevenly filled",
     {"other_process_holds_memory", "stale_process_or_leftover", "sleep_wake_competitor", "gmu_too_low", "profiling_accounting_bug"}),
    (r"weights (?:\w+ ){0,5}do not fit|live weights|weights were created|weights alone", {"weights_exceed_gpu", "tp_needed", "lora", "gmu_too_low"}),
    (r"\bgraphs? (?:\w+ ){0,4}do(?:es)? not fit|\bgraphs take\b|instantiate a graph", {"cudagraph_unbudgeted"}),
    (r"estimate for (?:CUDA )?graphs", {"cudagraph_overestimated"}),
    (r"encoder's|\bimage\b", {"mm_encoder_peak"}),
    (r"logits|log-prob|dummy sampler|vocabulary", {"logits_peak"}),
    (r"second copy|transform after", {"quant_repack_peak"}),
    (r"forward pass|attention scores|tensors of the step", {"activation_peak"}),
    (r"communicator's", {"nccl_buffers"}),
    (r"/dev/shm", {"shm_too_small"}),
    (r"host memory|killed by the host|Ray lost", {"host_ram", "container_limit", "host_full", "pinned_pool_refused", "prompt_cache", "swap_space"}),
    (r"swap space", {"host_ram", "swap_space", "context_too_long_for_kv"}),
    (r"recurrent-state|state block", {"state_cache_slots"}),
    (r"context is longer|max_model_len needs", {"context_too_long_for_kv"}),
    (r"sleep-mode", {"cumem_pool_strand"}),
    (r"limit set for|slice's own|limit of the slice", {"slice_total_mismatch"}),
    (r"does not (?:show|say) who|does not (?:show where|decide)", {"insufficient_info"}),
]


def others(sentence, cause, also=()):
    """The words of causes that are neither the one named nor said to be possible beside it."""
    return [found.group() for words, causes in NAMES for found in [re.search(words, sentence, re.I)]
            if found and cause not in causes and not causes & set(also)]


def records(root):
    for path in sorted(glob.glob(os.path.join(root, "data/kb/**/*.json"), recursive=True)):
        with open(path, encoding="utf-8") as f:
            record = json.load(f)
        for cause in record["when"].get("cause", [None]):
            yield record["id"], record["title"]["en"], cause


def data_problems(root):
    known, wrong = set(), []
    with open(os.path.join(root, "data/explain/causes.json"), encoding="utf-8") as f:
        rules = [rule for rules in map(json.load(f).get, ("sentences", "rules", "frames", "stages")) for rule in rules]
    known = {rule["cause"] for rule in rules} | {"insufficient_info"}
    for name in ("signals", "words", "templates"):
        with open(os.path.join(root, "data/explain", name + ".json"), encoding="utf-8") as f:
            known |= set(re.findall(r'"cause": "(\w+)"', f.read()))
    for name, title, cause in records(root):
        for word in others(title, cause):
            wrong.append("%s: '%s' with the cause %s" % (name, word, cause))
        if cause not in known:
            wrong.append("%s: no rule names the cause %s" % (name, cause))
    for rule in rules:
        for why in [rule["why"]] + [of["why"] for of in rule.get("of", {}).values() if "why" in of]:
            for word in others(why, rule["cause"], rule.get("also", [])):
                wrong.append("rule %s: '%s'" % (rule["id"], word))
    return wrong


def ask(binary, log, *options):
    return subprocess.run([binary, "explain", "--offline", *options, log], capture_output=True, text=True, errors="replace", check=False, timeout=120).stdout


def flat(text):
    return " ".join(text.split())


def log_problems(binary, log):
    """(answers looked at, [what differs])"""
    answers = [json.loads(line) for line in ask(binary, log, "--json").splitlines()]
    text = flat(ask(binary, log, "--explain"))
    page = re.search(r'<script type="application/json" id="data">(.*?)</script>', ask(binary, log, "--format", "html"), re.S)
    shown = json.loads(page.group(1))
    wrong, count = [], 0
    for at, answer in enumerate(answers):
        if not answer["is_oom"]:
            continue
        count += 1
        cause, also, why, title = answer["cause"], answer["also"], answer["cause_why"], shown["about"][at].get("title", "")
        same = [shown["documents"][at][key] for key in ("cause", "also", "cause_why")]
        words, others_said = flat(why or TITLES[cause]), [TITLES[one] for one in also if one != NOT_SHOWN]
        sentence = (r"%s \(\d+ %%\)" % re.escape(flat(title)) if title.lower() == why.lower() else
                    r"Cause: the log does not show it\." if cause == NOT_SHOWN and not why else r"Cause \(\d+ %%\): %s\." % re.escape(words))
        if same != [cause, also, why]:
            wrong.append("HTML has %s" % same)
        if flat(title) not in text or not title:
            wrong.append("the text has another headline than the page: '%s'" % title)
        if not re.search(sentence, text):
            wrong.append("the text has not '%s'" % sentence)
        if others_said and "Also possible: %s." % "; ".join(others_said) not in text:
            wrong.append("the text has not all of 'also'")
        if cause in also:
            wrong.append("%s is beside itself" % cause)
        wrong += ["headline '%s' with the cause %s" % (title, cause) for _ in others(title, cause)]
        wrong += ["reason '%s' with the cause %s" % (why, cause) for _ in others(why, cause, also)]
    return count, wrong


def main():
    binary, logs = sys.argv[1], sys.argv[2:]
    wrong = [] if logs else data_problems(ROOT)
    logs = logs or sorted(glob.glob(os.path.join(ROOT, "tests/fixtures/**/*.log"), recursive=True))
    count = 0
    for log in logs:
        looked, found = log_problems(binary, log)
        count += looked
        wrong += ["%s: %s" % (os.path.relpath(log, ROOT), one) for one in found]
    print("\n".join(wrong + ["%d logs, %d failures for lack of memory, %d name two causes" % (len(logs), count, len(wrong))]))
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
