"""How well `explain` names the stage of failing starts whose truth is known: score_failing.py BINARY STARTS [--data DIR] [--misses].

STARTS is what stacks.py wrote. The truth is the stage of the stack where the engine failed (oraclelib.stage_of). Every log is
explained whole, and cut to 6, 10 and 16 lines as people cut: its end, the lines up to the message of the failure, and the lines
around some line that tells an error. An answer is right, wrong, or says that it cannot tell: a stage of which it is less sure than
SURE is printed as a guess, and counts as none. A cut that shows neither the message of the failure nor a function on its way
("see the root cause above") tells nobody the stage; `shown` is the table without those. Per release and per way, so that a table
made without one of them (record_frames.py --without) can be judged on it."""
import argparse
import collections
import concurrent.futures
import json
import os
import linecache
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import engines  # noqa: E402
import explainlib  # noqa: E402
import oraclelib  # noqa: E402

LENGTHS = (6, 10, 16)
MESSAGE_OF = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s. GPU 0 has a total capacity of 22.03 GiB of which 1.19 MiB is free."
ROOM = "/usr/local/lib/python3.12/dist-packages/"
SURE = 0.75  # PHASE_GUESSED of src/report/explain_text.c
TELLS = re.compile(r"\bERROR\b|Error: |Traceback|out of memory", re.I)


def starts(folder):
    """(release, way, key, stage, lines, message, frames) of every start that failed for want of memory."""
    for version, way, end, frames in oraclelib.read_ends(folder):
        stage = "host_memory" if "DefaultCPUAllocator" in (end.get("message") or "") else oraclelib.stage_of(frames)
        if stage and end["error"] and re.search(r"memory|KV cache", end.get("message") or ""):
            with open(os.path.join(folder, "%s-%s" % (version, way), end["key"] + ".log"), encoding="utf-8", errors="replace") as f:
                yield version, way, end["key"], stage, f.read().split("\n"), end["message"], frames


def rendered(version, row):
    """What Python prints when the allocation of this stack fails, in the dress of an engine's core."""
    prefix = "(EngineCore pid=311) ERROR 11-16 01:32:53 [core.py:1] "
    lines = [prefix + "Traceback (most recent call last):"]
    packages = os.path.join(engines.VENVS, "vllm-" + version, "lib", "python3.11", "site-packages")
    for path, number, function in row["stack"]:
        lines.append(prefix + '  File "%s%s", line %d, in %s' % (ROOM, path, number, function))
        code = linecache.getline(os.path.join(packages, path), number).strip()
        if code:
            lines.append(prefix + "    " + code)
    size = "%.2f MiB" % max(2.0, row["size"] / (1 << 20))
    return lines + [prefix + MESSAGE_OF % size]


def allocations(folder):
    """As starts(), of every stack that a start which went well has kept: each is the traceback of a failure that could have been."""
    seen = collections.Counter()
    for version, way, row in oraclelib.read_stacks(folder):
        frames = [(p, f) for p, _, f in row["stack"]]
        stage = oraclelib.stage_of(frames)
        place = (version, way, tuple(frames[-4:]))
        seen[place] += 1
        if stage and seen[place] == 1:
            yield version, way, "stack-%d" % len(seen), stage, rendered(version, row), MESSAGE_OF, frames


def said(message):
    """The beginning of a failure's message, up to its first figure."""
    return re.split(r"\d|%", message.split("\n")[0].split(": ", 1)[-1] or message)[0][:40]


def shows(lines, message, frames):
    """Does a cut hold anything of the failure: its message, or a function of the worker or of the model on its way?"""
    way = {'%s", line' % p: f for p, f in frames if p.startswith(("vllm/v1/worker", "vllm/model_executor", "vllm/v1/core", "vllm/compilation"))}
    return any(said(message) in line or any(p in line for p in way) for line in lines)


def cuts(lines, key, message):
    """{(how, length): lines}"""
    lines = [line for line in lines if line.strip()]
    chance = random.Random(key)
    message = next((i for i, line in enumerate(lines) if said(message) in line and "Error" in line), len(lines) - 1)
    some = chance.choice([i for i, line in enumerate(lines) if TELLS.search(line) and "WARNING" not in line] or [len(lines) - 1])
    made = {}
    for length in LENGTHS:
        made["end", length] = lines[-length:]
        made["message", length] = lines[max(0, message - length + 1 + chance.randrange(2)):message + 2][:length]
        first = max(0, some - chance.randrange(length))
        made["around", length] = lines[first:first + length]
    return made


def judge(binary, lines, stage, options, folder):
    with tempfile.NamedTemporaryFile("w", suffix=".log", dir=folder, delete=False, encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    got = explainlib.answer_of(explainlib.incidents_of(binary, f.name, options))
    os.unlink(f.name)
    if not got or got["phase"] == "unknown" or got["phase_sure"] < SURE or (got["phase"] == "not_oom" and got["confidence"] <= 0.5):
        return "unknown", got and got["phase"], got
    return ("right" if got["phase"] == stage else "wrong"), got["phase"], got


def write_rules(path, decided):
    """Those that were right in 19 of 20 answers, in two releases or more."""
    borne = {"is_oom": [], "phase": []}
    for (what, rule), (of, right, releases) in sorted(decided.items()):
        if rule and of >= 3 and right >= 0.95 * of and len(releases) >= 2:
            borne["is_oom" if what == "verdict" else what].append(rule)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(borne, f, indent=1)
        f.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("starts")
    parser.add_argument("--data")
    parser.add_argument("--stacks", action="store_true", help="of the starts that went well, each allocation as if it had failed")
    parser.add_argument("--way", action="append")
    parser.add_argument("--release", action="append")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--strict", action="store_true", help="exit 1 unless every whole log is right")
    parser.add_argument("--cuts", nargs=2, type=float, metavar=("RIGHT", "WRONG"), help="exit 1 when at any length fewer percent are right or more are wrong")
    parser.add_argument("--rules", help="write the rules that the starts bear out to this file")
    parser.add_argument("--keep", help="folder for the cuts that are answered wrongly or not at all")
    args = parser.parse_args()
    options = ["--data", args.data] if args.data else []
    tables = collections.defaultdict(collections.Counter)
    misses, decided = [], collections.defaultdict(lambda: [0, 0, set()])
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = []
        for version, way, key, stage, lines, message, frames in (allocations if args.stacks else starts)(args.starts):
            if (args.release and version not in args.release) or (args.way and way not in args.way):
                continue
            name = "%s-%s/%s" % (version, way, key)
            jobs.append((name, version, way, stage, "whole", 0, lines, True))
            jobs += [(name, version, way, stage, how, length, cut, shows(cut, message, frames)) for (how, length), cut in cuts(lines, name, message).items()]
        answers = pool.map(lambda j: judge(args.binary, j[6], j[3], options, folder), jobs)
        for (name, version, way, stage, how, length, lines, shown), (result, phase, got) in zip(jobs, answers):
            size = str(length) if length else "whole"
            for table in ("all", "release " + version, "way " + way, "stage " + stage) + (("cut " + how,) if length else ()) + (("all shown",) if shown else ()):
                tables[table][size, result] += 1
            if got and got["is_oom"]:
                for what in ("verdict", "phase"):
                    count = decided[what, got["rules"][what]]
                    count[0] += 1
                    count[1] += what == "verdict" or result == "right"
                    count[2].add(version)
            if result != "right":
                misses.append((size, result, name, how, stage, phase, got["rules"]["phase"] if got else ""))
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    with open(os.path.join(args.keep, "%s.%s.%s.%s.log" % (result, size, how, name.replace("/", "_"))), "w", encoding="utf-8") as f:
                        f.write("\n".join(lines) + "\n")
    if args.rules:
        write_rules(args.rules, decided)
    if args.misses:
        for row in sorted(misses):
            print("%-5s %-7s %-60s %-8s %s -> %s (%s)" % row)
    print("right wrong, in percent      n   whole          6         10         16")
    for table in sorted(tables, key=lambda t: (t != "all", t)):
        counts = tables[table]
        cells = []
        for size in ("whole", "6", "10", "16"):
            of = sum(counts[size, r] for r in ("right", "wrong", "unknown"))
            cells.append("%5.1f %4.1f" % (100 * counts[size, "right"] / of, 100 * counts[size, "wrong"] / of) if of else "    -    -")
        print("%-26s %4d  %s" % (table, sum(counts["whole", r] for r in ("right", "wrong", "unknown")), "  ".join(cells)))
    whole = tables["all"]
    for size in ("6", "10", "16") if args.cuts else ():
        of = sum(whole[size, r] for r in ("right", "wrong", "unknown"))
        if not of or whole[size, "right"] < args.cuts[0] / 100 * of or whole[size, "wrong"] > args.cuts[1] / 100 * of:
            return 1
    return 1 if args.strict and (not whole["whole", "right"] or whole["whole", "wrong"] + whole["whole", "unknown"]) else 0


if __name__ == "__main__":
    sys.exit(main())
