#!/usr/bin/env python3
"""What a pager, its store and its bill rely on: prompts are neither alerts nor passed on, failures group, and a follower at rest costs nothing.
promises.py BINARY [--long]      --long: 4,096 idle files for a minute (else 512 for ten seconds). Standard library only."""
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import time

from following import FRAME, HARMLESS, OOM, START, Follower, failure, plain, tried, write

BINARY = os.path.abspath(sys.argv[1])
LONG = "--long" in sys.argv
FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures/kb")
SERVES = START + ["INFO:     Application startup complete.",
                  "INFO 01-01 00:00:10 [loggers.py:127] Engine 000: Avg prompt throughput: 10.1 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs"]
# What users paste: the words of failures, over lines too.
PASTED = (OOM % 700, "RuntimeError: CUDA error: out of memory", "my pod says OOMKilled, exit code 137", "ValueError: No available memory for the cache blocks.",
          "Traceback (most recent call last):\n" + FRAME + "\n" + OOM % 700, "Out of memory: Killed process 73459 (python3) total-vm:189112344kB",
          "java.lang.OutOfMemoryError: Java heap space", "the KV cache is too small: it needs 8.00 GiB, larger than the available KV cache memory (2.00 GiB)")
SECRETS = ("card 4111 1111 1111 1111", "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "password: hunter2hunter2", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789")


def requests(mark, rng):
    """A request as each engine logs it; the prompt holds `mark` before and behind what was pasted."""
    pasted = rng.choice(PASTED)
    prompt = "%s why is this? %s %s thanks %s" % (mark, pasted, rng.choice(SECRETS), mark)
    one, lines = prompt.replace("\n", "\\n").replace("'", "\\'"), prompt
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": prompt}], "max_tokens": 16})
    return rng.choice((
        "INFO 01-01 00:00:11 [logger.py:43] Received request chatcmpl-1: prompt: '%s', params: SamplingParams(n=1, max_tokens=16), prompt_token_ids: None." % one,
        "[2026-01-01 00:00:11] Receive: obj=GenerateReqInput(text='%s', input_ids=None, sampling_params={'max_new_tokens': 16})" % one,
        "INFO 01-01 00:00:11 [api_server.py:9] body: %s" % body,
        "DEBUG 01-01 00:00:11 [serving_chat.py:9] messages=[{'role': 'user', 'content': '%s'}]" % one,
        "INFO 01-01 00:00:11 [logger.py:61] Generated response chatcmpl-1: output: '%s', output_token_ids: None, finish_reason: stop" % one,
        "INFO 01-01 00:00:11 [logger.py:43] Received request chatcmpl-1: prompt: '%s', params: SamplingParams(n=1), prompt_token_ids: None." % lines.replace("'", "")))


def everything(folder):
    text = ""
    for path in glob.glob(os.path.join(folder, "**"), recursive=True):
        if os.path.isfile(path) and not path.endswith(".log"):
            with open(path, encoding="utf-8", errors="replace") as file:
                text += file.read()
    return text


def streamed(texts):
    records = [json.dumps({"stream": name, "line": line, "cursor": n}) + "\n" for name, text in texts.items() for n, line in enumerate(text.splitlines())]
    return subprocess.run([BINARY, "explain", "--stream", "--each"], input="".join(records).encode(), capture_output=True, check=False, timeout=300).stdout.decode()


def prompts_are_no_alerts_and_are_not_passed_on():
    """Of 300 logs two in three only quote; the others fail as well, right before or after a prompt."""
    rng, texts, wanted = random.Random(1), {}, []
    for at in range(300):
        mark, lines = "Zq%05dqZ" % at, list(SERVES)
        for _ in range(rng.randrange(1, 4)):
            lines += [requests(mark, rng), HARMLESS, SERVES[-1]]
        if at % 3 == 0:
            lines += failure(1000 + at) + [requests(mark, rng)]
            wanted.append(1000 + at)
        texts["%03d.log" % at] = plain(lines)
    with tempfile.TemporaryDirectory() as folder:
        logs, out = os.path.join(folder, "logs"), os.path.join(folder, "out.ndjson")
        os.makedirs(logs)
        for name, text in texts.items():
            write(os.path.join(logs, name), text)
        subprocess.run([BINARY, "explain", "--follow", "--each", "--state", os.path.join(folder, "state"), "--metrics-file", os.path.join(folder, "metrics.prom"), "--output", out,
                        "--idle", "2", logs], capture_output=True, check=False, timeout=300)
        with open(out, encoding="utf-8") as file:
            followed = [json.loads(line) for line in file]
        left = everything(folder)
    told = streamed(texts)
    for name, incidents in (("follow", followed), ("stream", [one for one in map(json.loads, told.splitlines()) if "acknowledged" not in one])):
        alerts = [one for one in incidents if tried([one])[0] not in wanted]
        assert not alerts, (name, len(alerts), alerts[0]["source"], alerts[0]["evidence"])
        assert sorted(tried(incidents)) == wanted, (name, set(wanted) - set(tried(incidents)))
    for text in (left, told):
        assert "qZ" not in text and not any(secret in text for secret in SECRETS), [text[max(0, text.find("qZ") - 300):][:400]]
    print("     300 logs with prompts: %d failures told, 0 other alerts, 0 prompts in incidents, metrics, positions and history" % len(wanted))


def failures_that_differ_in_size_group():
    """600 requests of other sizes, in other places of a log: at most five groups. 50 causes: at least 45."""
    rng = random.Random(2)
    lines = []
    for at in range(600):
        lines += SERVES + [SERVES[-1], HARMLESS] * rng.randrange(1, 3) + ["Traceback (most recent call last):", FRAME.replace("load_model", "execute_model"), OOM % (600 + at)]
    incidents = [json.loads(line) for line in streamed({"a.log": plain(lines)}).splitlines() if "acknowledged" not in line]
    sizes = {one["fingerprint"] for one in incidents}
    assert len(incidents) == 600 and len(sizes) <= 5, (len(incidents), len(sizes))
    causes = {}
    for path in sorted(glob.glob(os.path.join(FIXTURES, "*/*/positive.log"))):
        done = subprocess.run([BINARY, "explain", "--json", path], capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout) if done.stdout else {}
        for one in answer.get("incidents", [answer])[:1]:
            if not one.get("fingerprint"):
                continue
            causes.setdefault((one["phase"], one["cause"], path.split(os.sep)[-3]), one["fingerprint"])
    first = sorted(causes)[:50]
    prints = {causes[key] for key in first}
    assert len(first) == 50 and len(prints) >= 45, (len(first), len(prints))
    print("     600 sizes: %d groups; %d causes: %d groups" % (len(sizes), len(first), len(prints)))


def a_crash_loop_is_a_tenth_of_its_log():
    with tempfile.TemporaryDirectory() as folder:
        log, out = os.path.join(folder, "a.log"), os.path.join(folder, "out.ndjson")
        write(log, plain(line for n in range(1000) for line in START + [HARMLESS] * 30 + failure(600 + n)))
        subprocess.run([BINARY, "explain", "--follow", "--idle", "2", "--json", "--output", out, log], capture_output=True, check=False, timeout=120)
        size, whole = os.path.getsize(out), os.path.getsize(log)
        with open(out, encoding="utf-8") as file:
            assert sum(json.loads(line)["count"] for line in file) == 1000
        assert size * 10 < whole, (size, whole)
        print("     a crash loop of 1,000 starts: %.1f %% of its log" % (100 * size / whole))


def at_rest_it_costs_nothing():
    """Processor time, bytes written, and how often anything is read: a look at a file reads it once."""
    files, seconds = (4096, 60) if LONG else (512, 10)
    with tempfile.TemporaryDirectory() as folder:
        for n in range(files):
            write(os.path.join(folder, "logs-%d.log" % n), plain(START))
        f = Follower(BINARY, "--state", os.path.join(folder, "state"), "--metrics-file", os.path.join(folder, "metrics.prom"), folder)

        def spent():
            with open("/proc/%d/stat" % f.process.pid, encoding="ascii") as stat, open("/proc/%d/io" % f.process.pid, encoding="ascii") as io:
                words, figures = stat.read().rsplit(")", 1)[1].split(), dict(line.split(": ") for line in io.read().splitlines())
                return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"), int(figures["wchar"]), int(figures["syscr"])

        before, end = -1e9, time.monotonic() + 150
        while time.monotonic() < end and spent()[2] - before > files // 8:  # all are read, looked at less and less often, and then not at all
            before = spent()[2]
            time.sleep(3)
        (cpu, written, reads), begin = spent(), time.monotonic()
        time.sleep(seconds)
        (cpu_now, written_now, reads_now), took = spent(), time.monotonic() - begin
        share, per_hour, looks = (cpu_now - cpu) / took, (written_now - written) / took * 3600, (reads_now - reads) / took
        print("     %d files at rest: %.2f %% of a core, %.0f bytes written per hour, %.0f reads a second" % (files, 100 * share, per_hour, looks))
        assert looks < 20 + files / 20 and share < 0.005, (share, looks)  # once in two seconds: files / 2
        assert per_hour < (1e6 if LONG else 3e6), per_hour  # the metrics, once or not at all in so short a time
        for n, wake in enumerate((lambda log: write(log, plain(failure(100))), lambda log: (write(log, plain(failure(101))), os.rename(log, log + ".1")),
                                  lambda log: (os.rename(log, log + ".1"), write(log, plain(START + failure(102)))), lambda log: write(log, plain(START[1:] + failure(103)), "w"))):
            wake(os.path.join(folder, "logs-%d.log" % n))
        told = sorted(tried(f.wait_for(4, 30)))
        f.stop()
        assert told == [100, 101, 102, 103], told


if __name__ == "__main__":
    failed = 0
    for test in (prompts_are_no_alerts_and_are_not_passed_on, failures_that_differ_in_size_group, a_crash_loop_is_a_tenth_of_its_log, at_rest_it_costs_nothing):
        try:
            test()
            print("ok   %s" % test.__name__)
        except AssertionError as error:
            failed += 1
            print("FAIL %s: %s" % (test.__name__, str(error)[:3000]))
    sys.exit(bool(failed))
