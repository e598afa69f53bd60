#!/usr/bin/env python3
"""A release that was not read widens the range of the KV cache, the more the further it is: releases.py BINARY

Each release is asked for by --engine, by an image tag and by uv run --with. All forms give one answer; after the newest release that `engines` lists
nothing is certain (--strict exits 1), and the range is never narrower than that of a release before it. A development build or a candidate is
no surer than the newest release, and its range no wider than that of the release it precedes. A flag that is gone stays so: such a command probably does
not start. A value that is not known is never a matter of memory. Prints what breaks and ends with one line;
exit 1 when anything does."""
import json
import os
import subprocess
import sys

MODEL = "Qwen/Qwen3-8B"
FORMS = {"vllm": {"image": "docker run --gpus all vllm/vllm-openai:v{} --model " + MODEL, "uv": "uv run --with vllm=={} vllm serve " + MODEL},
         "sglang": {"image": "docker run --gpus all lmsysorg/sglang:v{} sglang serve " + MODEL, "uv": "uv run --with sglang=={} sglang serve " + MODEL}}
PLAIN = {"vllm": "vllm serve " + MODEL, "sglang": "sglang serve " + MODEL}
NIGHTLY = {"vllm": "docker run --gpus all vllm/vllm-openai:nightly --model " + MODEL}
BUILDS = ("%s.dev12+g5ded9e9aa", "%src1", "%src2.dev7")


def releases_after(newest):
    """The newest, then releases further and further away: patches of its line, the next lines, the next major release."""
    major, minor, patch = (int(part) for part in newest.split("."))
    after = [(major, minor, patch), (major, minor, patch + 1), (major, minor, patch + 3), (major, minor + 1, 0), (major, minor + 1, 2), (major, minor + 2, 0), (major, minor + 8, 0), (major + 1, 0, 0)]
    return ["%d.%d.%d" % one for one in after]


def plan(binary, words, engine=None):
    done = subprocess.run([binary, "plan", "--offline", "--strict", "--json", "--gpu", "h100", *(["--engine", engine] if engine else []), "--", *words.split()],
                          capture_output=True, text=True, check=False)
    kv = json.loads(done.stdout)["kv"]
    return done.returncode, kv["available_high_bytes"] - kv["available_low_bytes"]


def flags_of(engine):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/engines", engine, "flags.json")
    with open(path, encoding="utf-8") as file:
        return json.load(file)["flags"]


def answer(binary, engine, release, words):
    done = subprocess.run([binary, "plan", "--offline", "--json", "--gpu", "h100", "--engine", "%s=%s" % (engine, release), "--", *PLAIN[engine].split(), *words],
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout else {}


def unknown_words(binary, engine, release):
    """(what breaks, how many were asked): flags that are gone, and values that nobody knows."""
    broken, flags = [], flags_of(engine)
    there = [name for flag in flags if "until" not in flag for name in flag["names"] + (flag.get("negative") or [])]
    there += [name for flag in flags for change in flag.get("changes", []) for name in change.get("negative") or []]
    gone = [flag for flag in flags if "until" in flag and not any(name.startswith(flag["names"][0]) for name in there)]  # a beginning is enough
    for flag in gone:
        told = answer(binary, engine, release, [flag["names"][0]] + ([] if flag["kind"].startswith("flag") or flag["kind"].startswith("bool") else ["1"]))
        if told and (told["verdict"] != "tight" or (told["probability"] or 1) > 0.5 or told["phase"] != "arguments"):
            broken.append("%s %s %s: %s, where it was dropped" % (engine, release, flag["names"][0], told.get("verdict")))
    choices = [flag for flag in flags if flag.get("choices") and "until" not in flag]
    for flag in choices:
        told = answer(binary, engine, release, [flag["names"][0], "nonsense"])
        if told.get("verdict") == "fails" or ((told.get("probability") or 1) < 0.5 and told.get("phase") not in ("arguments", "env", None)):
            broken.append("%s %s %s nonsense: %s in %s" % (engine, release, flag["names"][0], told["verdict"], told["phase"]))
    return broken, len(gone) + len(choices)


def main():
    binary, broken, asked = sys.argv[1], [], 0
    listed = json.loads(subprocess.run([binary, "engines", "--json"], capture_output=True, text=True, check=True).stdout)["engines"]
    for engine, newest in ((e["engine"], e["versions"][-1]) for e in listed):
        before = first = 0
        for i, release in enumerate(releases_after(newest)):
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
            for build in BUILDS if i else ():
                asked += 1
                of_build = plan(binary, PLAIN[engine], "%s=%s" % (engine, build % release))
                if of_build[0] != code or not first < of_build[1] <= width:
                    broken.append("%s %s: %s, its release %s" % (engine, build % release, of_build, (code, width)))
            before, first = width, first or width
        more, count = unknown_words(binary, engine, releases_after(newest)[3])
        broken += more
        asked += count
        if engine in NIGHTLY:
            asked += 1
            code, width = plan(binary, NIGHTLY[engine])
            if code == 0 or width <= first:
                broken.append("%s nightly: as certain as a release" % engine)
    print("\n".join(broken + ["%d broken of %d" % (len(broken), asked)]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
