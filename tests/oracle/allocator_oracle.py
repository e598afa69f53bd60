#!/usr/bin/env python3
"""Random traces on the real caching allocator and on the simulator, side by side.

usage: allocator_oracle.py BINARY [--site DIR]... [--traces N] [--events N] [--seed N] [--keep DIR]
                           [--bench PROGRAM [--at-least RATIO]]

A site is a directory with torch in it (site-packages of a virtual environment); without --site, OOMSIGHT_ORACLE_SITES
names them, separated by colons; without that, every engine that engines.py finds is one. The wheel's own libc10_cuda runs on standin.c; nothing of torch is changed. Traces are
spread over the sites. With --bench the churn of tests/bench/bench_replay.c is timed on both, in turns, and the simulator must
be RATIO times as fast on every version.
Exit 0: no mismatch, 1: mismatches or too slow, 77: no torch or no compiler here. Standard library only."""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "tools")]
import engines  # noqa: E402
import random_trace  # noqa: E402
import score_replay  # noqa: E402


class Site:
    """A torch wheel, and the driver built against it."""

    def __init__(self, path, work):
        self.path = path
        with open(os.path.join(path, "torch", "version.py"), encoding="utf-8") as f:
            self.torch = re.search(r"__version__ = '([0-9.]+)", f.read()).group(1)
        self.version = tuple(int(x) for x in self.torch.split("."))
        self.lib = os.path.join(path, "torch", "lib")
        self.work = os.path.join(work, "torch-" + self.torch)
        self.driver = os.path.join(self.work, "driver")

    def build(self):
        sources = [os.path.join(HERE, name) for name in ("standin.c", "driver.cpp")]
        if os.path.exists(self.driver) and all(os.path.getmtime(s) < os.path.getmtime(self.driver) for s in sources):
            return
        os.makedirs(self.work, exist_ok=True)
        needed = subprocess.run(["readelf", "-d", os.path.join(self.lib, "libc10_cuda.so")], stdout=subprocess.PIPE,
                                check=True).stdout.decode()
        cudart = re.search(r"\[(libcudart\.so\.\d+)\]", needed).group(1)
        script = os.path.join(self.work, "standin.map")
        with open(script, "w", encoding="utf-8") as f:
            f.write("%s { global: *; };\n" % cudart)
        runtime = os.path.join(self.work, cudart)
        subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", os.path.join(HERE, "standin.c"), "-o", runtime,
                        "-Wl,-soname," + cudart, "-Wl,--version-script=" + script, "-ldl"], check=True)
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
            link = os.path.join(self.work, name)
            if not os.path.lexists(link):
                os.symlink(cudart, link)
        include = [os.path.join(self.path, "torch", "include")]
        include += glob.glob(os.path.join(self.path, "nvidia", "*", "include"))
        number = "%d%02d%02d" % self.version
        strings = "-D_GLIBCXX_USE_CXX11_ABI=%d" % (self.version >= (2, 7))  # wheels before 2.7: the old kind of strings
        subprocess.run(["g++", "-std=c++20", "-O2", "-w", strings, "-DTORCH=" + number, *("-I" + i for i in include),
                        os.path.join(HERE, "driver.cpp"), "-o", self.driver, "-L" + self.lib, "-lc10_cuda", "-lc10",
                        runtime, os.path.join(self.work, "libcuda.so.1"), "-ldl", "-Wl,--allow-shlib-undefined"], check=True)

    def environment(self, trace=None):
        env = {"LD_LIBRARY_PATH": self.work + ":" + self.lib, "PATH": os.environ.get("PATH", "")}
        if trace:
            env.update(OOS_TOTAL=str(trace.total), OOS_BASE=str(trace.base), OOS_PLACEMENT=trace.placement)
            if trace.settings:
                env["PYTORCH_CUDA_ALLOC_CONF"] = trace.settings
        return env

    def run(self, trace, out):
        """The real answers to a trace, as JSON lines. None, or why it could not be run."""
        text = out + ".txt"
        with open(text, "w", encoding="utf-8") as f:
            f.write("\n".join(trace.ops) + "\n")
        with open(out, "w", encoding="utf-8") as f:
            f.write(json.dumps(trace.meta(self.torch)) + "\n")
        done = subprocess.run([self.driver, text, out], env=self.environment(trace), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False)
        os.unlink(text)
        if done.returncode <= 0:  # ended, or torch itself died of a signal: what it answered until then counts
            return None
        return done.stderr.decode(errors="replace")[-300:] or "exit code %d" % done.returncode


def site_paths(given):
    paths = given or [p for p in os.environ.get("OOMSIGHT_ORACLE_SITES", "").split(":") if p]
    if not paths:
        for folder in engines.venvs().values():
            paths += glob.glob(os.path.join(folder, "lib", "python3*", "site-packages"))
    return [p for p in paths if os.path.exists(os.path.join(p, "torch", "lib", "libc10_cuda.so"))]


def cut_at_assertion(path):
    """torch can trip over its own assertions, or die; the program would end there, so the trace does."""
    with open(path, encoding="utf-8") as f:
        lines = f.readlines()
    for at, line in enumerate(lines):
        if "INTERNAL ASSERT FAILED" in line or not line.endswith("}\n"):
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(lines[:at])
            return


def one(job):
    site, seed, events, binary, keep = job
    trace = random_trace.Trace(seed, site.version, events)
    out = os.path.join(keep, "random_%d@%s.jsonl" % (seed, site.torch))
    broken = site.run(trace, out)
    result = {"trace": os.path.basename(out), "ops": 0, "ooms": 0, "mismatches": 1, "first": [("real run", broken, "", seed)]}
    if not broken:
        cut_at_assertion(out)
        result = score_replay.score(binary, out)
    if not result["mismatches"]:
        os.unlink(out)
    return result


def bench(site, program):
    """The same churn on both, in turns; the best of five each, since the machine may be shared."""
    best = {"real": 0.0, "ours": 0.0}
    for _ in range(5):
        real = subprocess.run([site.driver, "bench", "10000", "2000000"], env=dict(site.environment(), OOS_TOTAL=str(512 << 30)),
                              stdout=subprocess.PIPE, check=True).stdout.decode()
        ours = subprocess.run([program, site.torch, "2000000", "10000"], stdout=subprocess.PIPE, check=True).stdout.decode()
        for name, text in (("real", real), ("ours", ours)):
            best[name] = max(best[name], float(re.search(r"([0-9.]+) M events/s", text).group(1)))
    ratio = best["ours"] / best["real"]
    print("torch %s, 10000 live blocks: real %.2f M events/s, simulator %.2f M events/s, %.1f times" %
          (site.torch, best["real"], best["ours"], ratio), flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--site", action="append", default=[])
    parser.add_argument("--traces", type=int, default=1000)
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep")
    parser.add_argument("--bench")
    parser.add_argument("--at-least", type=float, default=0)
    options = parser.parse_args()
    paths = site_paths(options.site)
    if not paths or not shutil.which("g++") or not shutil.which("readelf"):
        print("no torch wheel or no compiler here: skipped")
        return 77
    work = options.keep or tempfile.mkdtemp(prefix="oomsight-oracle-")
    os.makedirs(work, exist_ok=True)
    sites = list({site.torch: site for site in (Site(p, work) for p in paths)}.values())  # one of each version
    slow = 0
    for site in sites:
        site.build()
        if options.bench:
            slow += bench(site, options.bench) < options.at_least
    jobs = [(sites[i % len(sites)], options.seed + i, options.events, options.binary, work) for i in range(options.traces)]
    total, missed = {"ops": 0, "ooms": 0, "mismatches": 0}, 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for result in pool.map(one, jobs):
            for key in total:
                total[key] += result[key]
            if result["mismatches"]:
                missed += 1
                print("%s: %d mismatches" % (result["trace"], result["mismatches"]))
                for what, theirs, mine, where in result["first"]:
                    print("  line %s, %s\n    real %.400s\n    ours %.400s" % (where, what, theirs, mine))
    if not options.keep:
        shutil.rmtree(work)
    print("%d traces on torch %s, %d operations, %d out-of-memory texts: %d mismatches in %d traces" % (
        len(jobs), ", ".join(s.torch for s in sites), total["ops"], total["ooms"], total["mismatches"], missed))
    return 1 if missed or slow else 0


if __name__ == "__main__":
    sys.exit(main())
