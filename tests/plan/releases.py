#!/usr/bin/env python3
"""A release that was not read widens the range of the KV cache, the more the further it is: releases.py BINARY

Each release is asked for by --engine, by an image tag and by uv run --with. All forms give one answer; behind the newest release that `engines` lists
nothing is certain (--strict exits 1), and the range is never narrower than that of a release before it. Prints what breaks and ends with one line;
exit 1 when anything does."""
import json
import subprocess
import sys

MODEL = "Qwen/Qwen3-8B"
# The newest that is listed, then releases further and further away.
RELEASES = {"vllm": ["0.32.0", "0.32.1", "0.33.0", "0.34.0", "0.36.2", "0.40.0", "1.0.0"], "sglang": ["0.5.23", "0.5.24", "0.5.26", "0.5.30", "0.6.0", "0.7.0", "1.0.0"]}
FORMS = {"vllm": {"image": "docker run --gpus all vllm/vllm-openai:v{} --model " + MODEL, "uv": "uv run --with vllm=={} vllm serve " + MODEL},
         "sglang": {"image": "docker run --gpus all lmsysorg/sglang:v{} sglang serve " + MODEL, "uv": "uv run --with sglang=={} sglang serve " + MODEL}}
PLAIN = {"vllm": "vllm serve " + MODEL, "sglang": "sglang serve " + MODEL}
NIGHTLY = {"vllm": "docker run --gpus all vllm/vllm-openai:nightly --model " + MODEL}


def plan(binary, words, engine=None):
    done = subprocess.run([binary, "plan", "--offline", "--strict", "--json", "--gpu", "h100", *(["--engine", engine] if engine else []), "--", *words.split()],
                          capture_output=True, text=True, check=False)
    kv = json.loads(done.stdout)["kv"]
    return done.returncode, kv["available_high_bytes"] - kv["available_low_bytes"]


def main():
    binary, broken, asked = sys.argv[1], [], 0
    for engine, releases in RELEASES.items():
        listed = json.loads(subprocess.run([binary, "engines", "--json"], capture_output=True, text=True, check=True).stdout)["engines"]
        newest = next(e for e in listed if e["engine"] == engine)["versions"][-1]
        if newest != releases[0]:
            broken.append("%s: the newest is %s, RELEASES begins with %s" % (engine, newest, releases[0]))
        before = first = 0
        for i, release in enumerate(releases):
            code, width = plan(binary, PLAIN[engine], "%s=%s" % (engine, release))
            asked += 1
            if width < before or (i and width <= first):
                broken.append("%s %s: the range is %d, before it %d" % (engine, release, width, before))
            if i and code == 0:
                broken.append("%s %s: certain" % (engine, release))
            for form, words in FORMS[engine].items():
                asked += 1
                if plan(binary, words.format(release)) != (code, width):
                    broken.append("%s %s: another answer by %s" % (engine, release, form))
            before, first = width, first or width
        if engine in NIGHTLY:
            asked += 1
            code, width = plan(binary, NIGHTLY[engine])
            if code == 0 or width <= first:
                broken.append("%s nightly: as certain as a release" % engine)
    print("\n".join(broken + ["%d broken of %d" % (len(broken), asked)]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
