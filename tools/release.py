#!/usr/bin/env python3
"""What an unread release of vLLM changed, asked of the release itself: `make release VERSION=x`.

    release.py BINARY VERSION [--base A] [--commands N] [--minutes N] [--models DIR] [--sources DIR] [--write] [--page FILE]

Installs it (tools/engine_venv.sh), lets `oomsight learn` read flags, classes, rules and, where it can, small starts, and puts drawn commands to the
engine and to a plan that knows only what was learned. The starts are those whose rules changed. --base A: from the data as it was when A was the
newest (with --sources, for the fingerprints of A). --write merges the release into data/. What was learned stands beside the page, which has only what changed.
Exit 0; 1 when a command is refused falsely, a start's KV cache is off by more than 1 %, or nothing could be done."""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import fingerprints
import older
import oracle
import scorelib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "oracle"))
import engines  # noqa: E402

BOUND, LINES, SHOWN, DIFFERENCES = 0.01, 78, 110, 12
# A rule whose source changed is seen in a start of one of these: words of the rule, and the model.
STARTS = (("mamba|state|hybrid|gdn|checkpoint", "qwen3-next-80b"), ("expert|moe|mxfp4", "qwen3-30b-a3b"), ("mla|latent", "deepseek-v2-lite"), ("", "qwen3-8b"))


def fail(words):
    print("release: " + words)
    sys.exit(1)


def installed(version):
    if version not in engines.venvs() and subprocess.run([os.path.join(HERE, "engine_venv.sh"), version], check=False).returncode:
        fail("vLLM %s could not be installed" % version)
    return engines.venvs()[version]


def data_of(folder, base, sources):
    """data/, or what it would be if `base` were the newest release."""
    return older.older(folder, base, sources) if base else os.path.join(ROOT, "data")


def learn(binary, home, data, cache):
    """What it learned."""
    able = "--probe" in subprocess.run([binary, "learn", "--help"], capture_output=True, text=True, check=False).stdout
    words = [binary, "learn", "--engine", "vllm", "--python", os.path.join(home, "bin", "python3"), "--data", data] + (["--probe"] if able else [])
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=dict(os.environ, XDG_CACHE_HOME=cache))
    print(done.stdout + done.stderr, end="")
    found = glob.glob(os.path.join(cache, "oomsight/learned/*.json"))
    if done.returncode or not found:
        fail("nothing was learned")
    return found[0]


# ---- what changed ----

def flags_told(learned, data, base):
    table, key = fingerprints.read(os.path.join(data, "engines/vllm/flags.json")), fingerprints.key
    before = {name for flag in table["flags"] if "until" not in flag or key(flag["until"]) >= key(base) for name in flag["names"]}
    there = {name for flag in learned["flags"] for name in flag["names"] + (flag.get("negative") or [])}
    new = sorted(flag["names"][0] for flag in learned["flags"] if not set(flag["names"]) & before)
    yield "New: %s. Gone: %s." % (listed(new), listed(sorted(name for name in before - there if name.startswith("--"))))


def classes_told(learned, data):
    table = fingerprints.read(os.path.join(data, "engines/vllm/architectures.json"))["architectures"]
    before = {name for name, spans in table.items() if any(until is None for _, until in spans)}
    yield "New: %s. Gone: %s." % (listed(sorted(set(learned.get("architectures", [])) - before)), listed(sorted(before - set(learned.get("architectures", before)))))


def listed(names):
    return ", ".join("`%s`" % name for name in names[:30]) + (" and %d more" % (len(names) - 30) if len(names) > 30 else "") or "none"


def short(text):
    return text if len(text) <= SHOWN else text[:SHOWN - 3].rsplit(" ", 1)[0] + "..."


def rules_told(learned):
    """One line each, by unit: rules of one function change together."""
    units = {}
    for doubt in learned["rules"]["doubt"]:
        row = units.setdefault(doubt["unit"], (doubt, []))
        row[1].append(doubt["rule"])
    for unit, (doubt, names) in units.items():
        what = "gone" if doubt.get("gone") else "`%s`" % short(doubt["added"][0]) if doubt.get("added") else "%d statements less" % doubt["removed"]
        yield "- %s: %s" % (", ".join(names), what)


def census_told(learned):
    for kind, title in (("callees", "called for the first time"), ("classes", "classes"), ("overrides", "methods of other classes")):
        yield "- %s: %s" % (title, listed(learned.get("census", {}).get(kind, [])))


# ---- decisions and starts ----

def commands_told(args, data, cache):
    """(lines, commands that are refused falsely); None where the engine did not answer."""
    words = [sys.executable, os.path.join(ROOT, "tests/oracle/arguments.py"), args.binary, "--vllm", args.version, "--style", "recipes", "--count", str(args.commands),
             "--seed", args.version, "--models", args.models, "--devices", "h100x8", "--show", "1", "--data", data,
             "--answers", args.page[:-3] + ".answers.jsonl"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=dict(os.environ, XDG_CACHE_HOME=cache))
    found = re.search(r"falsely refused (\d+)", done.stdout)
    return differences(done.stdout), int(found.group(1)) if found else None


def differences(said):
    """The classes of arguments.py, from the first on, and its last line."""
    lines = said.rstrip().split("\n")
    first = next((at for at, line in enumerate(lines) if re.match(r" {4}\d+  ", line)), -1)
    return ["- " + short(line.strip()) for line in lines[first:-1][:DIFFERENCES]] + ["- " + lines[-1].strip().replace("not judged", "not compared")]


def starts_told(args, learned, data, cache):
    """(lines, starts that are off): those of the rules that changed, with the device's own numbers of requests and tokens."""
    names = {next(model for words, model in STARTS if re.search(words, doubt["rule"])) for doubt in learned["rules"]["doubt"]}
    out = args.page[:-3] + ".jsonl"
    lines, off = [], 0
    if args.minutes:
        oracle.sweep(argparse.Namespace(vllm=args.version, out=out, gpus=["h100"], layers=[2], models=None, only="|".join("/%s/" % name for name in sorted(names)),
                                        minutes=args.minutes, eager=True, requests=1024, tokens=8192, binary=args.binary))
    planner = scorelib.Planner(args.binary)
    os.environ["XDG_CACHE_HOME"] = cache
    with tempfile.TemporaryDirectory() as folder:
        for record in oracle.kept(out):
            plan, why = oracle.planned(planner, folder, record, None, ["--data", data])
            if not record.get("ok") or not plan or not record.get("available_bytes"):
                lines.append("- %s: %s" % (record["key"], short(record.get("error") or why or "no figure of its KV cache")))
                continue
            is_, said = record["available_bytes"], plan["kv"]["available_bytes"]
            off += abs(said - is_) > BOUND * is_
            lines.append("- %s: KV cache %.2f GiB, plan %.2f (%+.2f %%)" % (record["key"], is_ / 2**30, said / 2**30, 100 * (said - is_) / is_))
    return lines or ["- none was made"], off


def merge(version, home):
    """The release in data/, by the tools that read its source."""
    package = glob.glob(os.path.join(home, "lib/python3.*/site-packages/vllm"))[0]
    data, python = os.path.join(ROOT, "data/engines/vllm/"), os.path.join(home, "bin", "python3")
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, version))
        os.symlink(package, os.path.join(folder, version, "vllm"))
        tool, kept = lambda name: os.path.join(HERE, name + ".py"), lambda name: os.path.join(folder, name + ".json")
        for words in ([python, tool("dump_flags"), kept("flags"), "--check-help"],
                      [sys.executable, tool("merge_flags"), data + "flags.json", data + "flags.json", kept("flags")],
                      [python, tool("dump_env"), kept("env"), version, os.path.join(package, "envs.py")],
                      [sys.executable, tool("list_env"), kept("names"), "vllm", version, os.path.dirname(package)],
                      [sys.executable, tool("merge_env"), data + "env.json", data + "env.json", kept("env"), kept("names")],
                      [sys.executable, tool("dump_architectures"), data + "architectures.json", "%s=%s" % (version, package)],
                      [sys.executable, tool("dump_arguments"), data + "arguments.json", "%s=%s" % (version, package)],
                      [sys.executable, os.path.join(ROOT, "tests/oracle/backends.py"), "table", version, "--sources", folder, "--out", data + "backends.json"]):
            if subprocess.run(words, check=False, env=engines.environment(home)).returncode:
                fail("%s did not end well" % os.path.basename(words[1]))


def page_of(version, base, parts):
    lines = ["# vLLM %s" % version, "", "Written by `tools/release.py` (`make release VERSION=%s`): what it changed since vLLM %s." % (version, base)]
    for title, rows in parts:
        lines += ["", "## " + title, "", *rows]
    return lines if len(lines) <= LINES else lines[:LINES - 1] + ["%d lines more are left out." % (len(lines) - LINES + 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("version")
    parser.add_argument("--base")
    parser.add_argument("--sources")
    parser.add_argument("--commands", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--models", default=os.path.join(ROOT, "tests/fixtures/models"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--page")
    args = parser.parse_args()
    args.page = os.path.abspath(args.page or os.path.join(ROOT, "build", "releases", args.version + ".md"))
    os.makedirs(os.path.dirname(args.page), exist_ok=True)
    home = installed(args.version)
    with tempfile.TemporaryDirectory() as folder:
        data, cache = data_of(folder, args.base, args.sources), os.path.join(folder, "cache")
        kept = learn(args.binary, home, data, cache)
        learned = fingerprints.read(kept)
        shutil.copy(kept, args.page[:-3] + ".learned.json")
        if "rules" not in learned:
            fail("its source was not compared")
        commands, refused = commands_told(args, data, cache)
        starts, off = starts_told(args, learned, data, cache)
        changed = learned["rules"].get("start")
        parts = [("Commands", commands), ("Starts", starts), ("Flags", list(flags_told(learned, data, learned["base"]))), ("Classes", list(classes_told(learned, data))),
                 ("New names", list(census_told(learned))),
                 ("Rules", ["%d of %d have a source that changed." % (len(learned["rules"]["doubt"]), len(learned["rules"]["doubt"]) + learned["rules"]["same"]), "", *rules_told(learned)]
                  + (["- what allocates in every start: `%s`" % short((changed["added"] or ["statements are gone"])[0])] if changed else []))]
    with open(args.page, "w", encoding="utf-8") as file:
        file.write("\n".join(page_of(args.version, learned["base"], parts)) + "\n")
    if args.write:
        merge(args.version, home)
    print("%s: %s commands refused falsely, %d starts off" % (args.page, "no answer about" if refused is None else refused, off))
    return 1 if refused is None or refused or off else 0


if __name__ == "__main__":
    sys.exit(main())
