#!/usr/bin/env python3
"""Words of a failure that a line denies, counts as none, or only names; and the same words where they say it: denied.py BINARY

Each sentence is made from lists of parts and shown as logs show it. A text that denies must not be called out of memory (exit 0), and of
a kill that nobody explains OOMKilled must be requested; a text that says it must be called so (exit 1). Standard library only."""
import concurrent.futures
import itertools
import subprocess
import sys

EVENTS = ("oom", "OOM", "oom_kill", "OOMKilled", "oomKilled", "out_of_memory", "cuda_oom", "oom_events_total")
NAMES = ("CUDA out of memory", "out of memory", "out-of-memory", "OOM", "GPU OOM")
DRESSES = ("%s", "vllm-1  | %s", "2026-08-12T11:01:56.113107939Z %s", "Aug 12 11:01:56 gpu-node serve[1297]: %s")
# Every line by itself; {e} is the name of an event, {n} its words.
DENIED = (
    ['"{e}": false,', "{e}=false", "{e}: false", "{e}=0", "{e}: 0", "{e} 0", '{e}{{pod="chat-0"}} 0', "'{e}': False", "{e}: none", "state {e}=false restarts=2"],
    ["0 {n} errors in the last 24 hours, 1512 requests served", "no {n} errors since Monday", "finished without {n}", "report: {n} errors: 0", "zero {n} events",
     "tests/test_memory.py::test_{i} PASSED", "ok 14 - test_{i}_is_retried"],
    ['10.0.6.24 - - "GET /search?q={u} HTTP/1.1" 200 78096', "see https://docs.example.org/faq.html#{u} for more", "POST /v1/labels/{u} 200 OK",
     '{{"role": "user", "content": "Why does my training say {n}?"}}'],
    ["oom_score_adj=985", "oomScoreAdj: -997", "# HELP node_vmstat_oom_kill /proc/vmstat information field oom_kill.", "oom_kill_disable 0"],
    ["container vllm exited with code 137", "exit code 137", "Exit Code:    137", "process exited with exit code (137)", "worker died (-9)", "returncode: -9",
     "Signal 9 (SIGKILL) was sent by the supervisor"],
)
SAID = (
    ['"{e}": true,', "{e}=true", "{e}: true", "{e} 3", "{e}=1", "restarts=2 {e}=true"],
    ["3 {n} errors in the last 24 hours, 1512 requests served", "RuntimeError: {n}", "ERROR rank 0: {n}", "ERROR GPU 0 {n}",
     "FAILED tests/test_model.py::test_{i} - RuntimeError: {n}", "RuntimeError: {n}, see https://docs.example.org/faq.html#{u}",
     '10.0.6.24 - - "POST /v1/completions HTTP/1.1" 500 RuntimeError: {n}', "ERROR: {n} while the weights were loaded", "the worker failed: {n}",
     "CRITICAL {n}: 0 of 8 workers are left", "Error: {n} (0 bytes are free)", "2 {n} events since the start"],
    ["Out of memory: Killed process 73459 (python3) total-vm:189112344kB, anon-rss:98112344kB, shmem-rss:0kB, UID:1000 oom_score_adj:0", "Reason: OOMKilled",
     "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=985",
     "The process exited with exit code 137 (SIGKILL). This may have been caused by an OOM error.",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which 1.00 GiB is free."],
)


def sentences(forms):
    for form in forms:
        if "{e}" in form:
            yield from (form.format(e=event) for event in EVENTS)
        elif "{n}" in form or "{u}" in form or "{i}" in form:
            yield from (form.format(n=name, u=name.replace(" ", "+"), i=name.lower().replace(" ", "_").replace("-", "_")) for name in NAMES)
        else:
            yield form.format()


def texts(groups):
    for (at, sentence), dress in itertools.product(enumerate(itertools.chain.from_iterable(map(sentences, groups))), range(3)):
        yield DRESSES[(at + dress * (1 + at % 3)) % len(DRESSES)] % sentence + "\n"


def verdict(asked):
    binary, text = asked
    return text, subprocess.run([binary, "explain", "-"], input=text, capture_output=True, text=True, check=False)


def main():
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for groups, code in ((DENIED, 0), (SAID, 1)):
            answers = list(pool.map(verdict, [(sys.argv[1], text) for text in dict.fromkeys(texts(groups))]))
            wrong += ["%s: %s" % (text.rstrip(), answer.stdout.split("\n", 1)[0]) for text, answer in answers if answer.returncode != code]
            wrong += ["%s: not asked for OOMKilled" % text.rstrip() for text, answer in answers
                      if code == 0 and any(kill in text for kill in ("137", "-9)", ": -9\n", "SIGKILL")) and "OOMKilled" not in answer.stdout]
            print("%d texts that %s it" % (len(answers), "say" if code else "deny"))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
