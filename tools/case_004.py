#!/usr/bin/env python3
"""A mixture-of-experts load in a memory pool, under allocator settings and policies: one table.

usage: case_004.py BINARY [--layers N] [--device SIZE_GIB] [--json | --check]

The workload is the one that made vLLM 0.21 with sleep mode run out of memory while it loaded Qwen3-235B-A22B (94 layers,
128 experts, a quarter of it per GPU): all weights exist, then each layer's experts are cloned and permuted one by one
(6 MiB and 3 MiB pieces), gathered into new tensors, and the pieces and the old tensors are freed. vLLM loads with
max_split_size_mb:20 inside its own MemPool. With --check the table must show what is claimed of it (CLAIMS), exit 1 when it
does not. Standard library only."""
import json
import os
import subprocess
import sys
import tempfile

MIB, GIB = 1 << 20, 1 << 30
SPLIT20 = "max_split_size_mb:20"
ROWS = (  # what, settings in the load, pool (None: no pool), options
    ("cumem pool (sticky error), split limit 20", SPLIT20, "sticky", []),
    ("clean pool back-end, split limit 20", SPLIT20, "clean", []),
    ("plain MemPool, split limit 20", SPLIT20, "driver", []),
    ("no pool, split limit 20", SPLIT20, None, []),
    ("cumem pool, split limit 21", "max_split_size_mb:21", "sticky", []),
    ("cumem pool, no split limit", "", "sticky", []),
    ("cumem pool, split limit 20, sweep at 75 %", SPLIT20, "sticky", ["--sweep", "0.75"]),
    ("cumem pool, expandable segments (not permitted by the pool)", SPLIT20 + ",expandable_segments:True", "sticky", []),
    ("plain MemPool, expandable segments with the split limit", SPLIT20 + ",expandable_segments:True", "driver", []),
    ("plain MemPool, expandable segments", "expandable_segments:True", "driver", []),
    ("no pool, expandable segments", "expandable_segments:True", None, []),
)
EXPERTS = (32, 64, 128)


def grows(rows):
    """What is stranded follows the number of experts, until the device is full."""
    few, some, many = (r["stranded_bytes"] for r in rows)
    return some > 1.8 * few and many > some


def bounded(rows):
    return all(r["outcome"] == "ok" and r["stranded_bytes"] < 0.02 * r["peak_reserved_bytes"] for r in rows)


def dies(rows):
    return rows[-1]["outcome"] == "oom"


CLAIMS = (  # sentence, row of the table, what must hold of its three cells
    ("the split limit strands memory in proportion to the number of experts", 0, grows),
    ("... in any pool", 2, grows),
    ("... and without one", 3, grows),
    ("a back-end with a sticky error dies", 0, dies),
    ("a clean one survives", 1, lambda rows: not dies(rows)),
    ("without the limit nothing strands", 5, bounded),
    ("nor with a limit above the segment size", 4, bounded),
    ("the sweep survives and stays near its mark", 6, lambda rows: not dies(rows) and rows[-1]["peak_reserved_bytes"] < 0.76 * rows[-1]["device"]),
    ("expandable segments do not help where the pool does not permit them", 7, dies),
    ("expandable segments strand nothing in a plain pool", 9, bounded),
    ("... and without a pool", 10, bounded),
)


def check(results):
    failed = 0
    for sentence, row, holds in CLAIMS:
        good = holds([r for r in results if r["what"] == ROWS[row][0]])
        failed += not good
        print("%s %s: %s" % ("ok  " if good else "FAIL", ROWS[row][0], sentence))
    return 1 if failed else 0



def trace(experts, layers, total, used, settings, pool):
    """The load as a trace in the text form of docs/reference/formats/trace.md."""
    out = ["torch 2.11.0", "device_total %d" % total, "device_used %d" % used]
    if pool:
        out += ["pool_create 0.1 %s" % pool, "pool_begin 0.1"]
    if settings:
        out.append("set_settings " + settings)
    sizes = {"w13": 6 * MIB, "w2": 3 * MIB}
    for layer in range(layers):
        out.append("malloc dense%d %d 0 create_weights" % (layer, 27 * MIB))
        out += ["malloc %s.%d %d 0 create_weights" % (name, layer, size * experts) for name, size in sizes.items()]
    for layer in range(layers):
        for name, size in sizes.items():
            pieces = ["%s.%d.%d" % (name, layer, e) for e in range(experts)]
            out += ["malloc %s %d 0 process_weights" % (piece, size) for piece in pieces]
            out.append("malloc new.%s.%d %d 0 process_weights" % (name, layer, size * experts))
            out += ["free " + piece for piece in pieces]
            out.append("free %s.%d" % (name, layer))
    return "\n".join(out) + "\n"


def run(binary, text, options):
    with tempfile.NamedTemporaryFile("w", suffix=".trace", delete=False) as f:
        f.write(text)
    done = subprocess.run([binary, "replay", "--json", "--no-what-if", *options, f.name], stdout=subprocess.PIPE, check=False)
    os.unlink(f.name)
    return json.loads(done.stdout.decode())


def main(argv):
    layers = int(argv[argv.index("--layers") + 1]) if "--layers" in argv else 94
    total = int(float(argv[argv.index("--device") + 1]) * GIB) if "--device" in argv else 197901352960  # GB200
    used = int(2.47 * GIB)
    if len(argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    results = []
    for what, settings, pool, options in ROWS:
        for experts in EXPERTS:
            done = run(argv[1], trace(experts, layers, total, used, settings, pool), options)
            results.append(dict(done, what=what, experts=experts, device=total))
    if "--json" in argv:
        print(json.dumps([{k: r[k] for k in ("what", "experts", "outcome", "peak_allocated_bytes", "peak_reserved_bytes",
                                             "stranded_bytes", "oom_message")} for r in results], indent=1))
        return 0
    print("%d layers, device %.2f GiB; peak reserved / free inside it at that moment, GiB" % (layers, total / GIB))
    print("%-60s" % "" + "".join("%22s" % ("%d experts" % e) for e in EXPERTS))
    for what, *_ in ROWS:
        cells = [r for r in results if r["what"] == what]
        print("%-60s" % what + "".join("%22s" % ("%s %6.1f / %5.1f" % (
            "OOM" if r["outcome"] == "oom" else "ok ", r["peak_reserved_bytes"] / GIB, r["stranded_bytes"] / GIB)) for r in cells))
    return check(results) if "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
