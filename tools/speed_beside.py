#!/usr/bin/env python3
"""How fast plans and cold commands are beside commit 2315d4f, in one run: speed_beside.py BUILD [--commit 2315d4f] [--only NAME]

Builds that commit from git once, in ~/.cache/oomsight/speed (XDG_CACHE_HOME moves it), with the options of BUILD and with today's
bench_plan.c. Then both programs run in turn, many times; of each the best run in processor time counts, and the ratio of the two. A
slow or busy machine is slow for both. Exit 1 where a ratio is above its limit, 77 without git's history, without meson, or where BUILD
is sanitized (then no time means anything). Standard library only."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = os.path.join(HERE, "tests/fixtures/models")
TARGETS = ["cli/oomsight", "tests/bench/bench_plan"]
OPTIONS = ["buildtype", "optimization", "b_ndebug", "b_lto"]
# The aim is 1.3. Measured: 1.78, 1.66, 1.91, 1.36 and 1.02, with a spread of 0.3 between runs. Constants of few sources are planned at both
# ends, which costs a tenth of a plan.
LIMIT = {"small-llama": 2.2, "small-moe": 2.2, "small-hybrid": 2.2, "failing plan, cold": 1.9, "explain, cold": 1.5}
LOG = """INFO 11-16 10:00:00 [config.py:1604] Using max model len 32768
ERROR 11-16 10:00:09 [core.py:586] EngineCore failed to start.
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.64 GiB of which 862.50 MiB is \
free. Including non-PyTorch memory, this process has 22.79 GiB memory in use. Of the allocated memory 22.10 GiB is allocated by PyTorch, \
and 211.84 MiB is reserved by PyTorch but unallocated.
"""


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def git(*words, **more):
    return subprocess.run(["git", "-C", HERE, *words], capture_output=True, **more)


def options_of(build):
    """Those of the build that decide how fast it is, as meson's words."""
    path = os.path.join(build, "meson-info/intro-buildoptions.json")
    values = {o["name"]: o["value"] for o in json.load(open(path, encoding="utf-8"))}
    if values.get("b_sanitize") not in ("none", [], None):
        skip("%s is built with a sanitizer" % build)
    return ["-D%s=%s" % (name, str(values[name]).lower() if isinstance(values[name], bool) else values[name])
            for name in OPTIONS if name in values and name != "buildtype"] + ["--buildtype", values["buildtype"]]


def old_bench():
    """Today's measure of the library, in the words of the old one."""
    text = open(os.path.join(HERE, "tests/bench/bench_plan.c"), encoding="utf-8").read()
    return text.replace("params.skip_fixes = 1;", "params.find_fixes = 0;")


def build_old(commit, options):
    """The folder with the two programs of the old commit; built when it is not there yet."""
    if not shutil.which("git") or git("cat-file", "-e", commit + "^{commit}").returncode:
        skip("commit %s is not in this checkout" % commit)
    if not shutil.which("meson") or not shutil.which("ninja"):
        skip("meson or ninja is missing")
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "oomsight/speed")
    made_of = json.dumps([commit, options, os.environ.get("CC", ""), old_bench()])
    os.makedirs(cache, exist_ok=True)
    kept = os.path.join(cache, "beside-" + commit)
    mark = os.path.join(kept, "made_of.json")
    if os.path.exists(mark) and open(mark, encoding="utf-8").read() == made_of:
        return kept
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        source, build = os.path.join(folder, "source"), os.path.join(folder, "build")
        os.mkdir(source)
        archive = git("archive", commit, check=True).stdout
        subprocess.run(["tar", "x", "-C", source], input=archive, check=True)
        with open(os.path.join(source, "tests/bench/bench_plan.c"), "w", encoding="utf-8") as f:
            f.write(old_bench())
        for command in (["meson", "setup", build, source, *options], ["ninja", "-C", build, *TARGETS]):
            ran = subprocess.run(command, capture_output=True, text=True)
            if ran.returncode:
                sys.exit("cannot build %s:\n%s" % (commit, (ran.stdout + ran.stderr)[-2000:]))
        done = os.path.join(folder, "done")
        os.mkdir(done)
        for target in TARGETS:
            shutil.copy(os.path.join(build, target), done)
        with open(os.path.join(done, "made_of.json"), "w", encoding="utf-8") as f:
            f.write(made_of)
        shutil.rmtree(kept, ignore_errors=True)
        os.rename(done, kept)
    return kept


def plan_us(program, model):
    """Microseconds of processor time of one plan, in the best round of half a second."""
    said = subprocess.run([program, model, "0.5"], capture_output=True, text=True).stdout
    found = re.search(r"([\d.]+) in the best round", said)
    return float(found.group(1)) if found else sys.exit("%s says nothing: %s" % (program, said))


def cold_ms(command):
    """Milliseconds of processor time of a process, from its start to its end."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = child.stderr.read()
    child.stderr.close()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit("%s: %s" % (" ".join(command), said.decode()))
    return (used.ru_utime + used.ru_stime) * 1000


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("build")
    asked.add_argument("--commit", default="2315d4f")
    asked.add_argument("--only", help="one of: " + ", ".join(LIMIT))
    args = asked.parse_args()
    old = build_old(args.commit, options_of(args.build))
    new = {"bench": os.path.join(args.build, "tests/bench/bench_plan"), "cli": os.path.join(args.build, "cli/oomsight")}
    old = {"bench": os.path.join(old, "bench_plan"), "cli": os.path.join(old, "oomsight")}
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "small.log")
        with open(log, "w", encoding="utf-8") as f:
            f.write(LOG)
        failing = ["plan", "--json", "--gpu", "4090", "--vllm", "0.19.1", "--", "vllm", "serve", os.path.join(MODELS, "small-moe")]
        for name, limit in LIMIT.items():
            if args.only and args.only != name:
                continue
            if "cold" in name:
                words = ["explain", "--json", log] if name.startswith("explain") else failing
                runs = [(cold_ms([old["cli"], *words]), cold_ms([new["cli"], *words])) for _ in range(25)]
            else:
                model = os.path.join(MODELS, name)
                runs = [(plan_us(old["bench"], model), plan_us(new["bench"], model)) for _ in range(5)]
            before, after = (min(side) for side in zip(*runs))
            bad += after > limit * before
            print("%s %-20s %6.2f %s, %s %6.2f: ratio %.2f (at most %.1f)" % (
                "FAIL" if after > limit * before else "ok  ", name, after, "ms" if "cold" in name else "us", args.commit, before,
                after / before, limit))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
