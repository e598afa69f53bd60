#!/usr/bin/env python3
"""The real engine in bulk: many small starts on a device that is not there, what they took, and what `plan` says of each.

    tools/oracle.py sweep BINARY --vllm X [--out FILE] [--gpus h100,l40s] [--layers 2,4] [--only WORD] [--minutes N] [--eager]
    tools/oracle.py compare BINARY [RESULTS.jsonl...] [--page FILE]
    tools/oracle.py release BINARY --vllm X [--out FILE] [--page FILE] [--minutes N]

sweep starts each model of tests/oracle/models.py with that many layers on each device, all from one process that has imported the engine
(oracle_zygote.py), and appends a line per start: graphs and their nodes by mode, private pools, activation peak, workspace, what stays,
bytes asked for and taken while loading, KV pages, backend. Starts whose key is in FILE already are left out, so it can be ended and
taken up again. compare plans the same starts and prints what differs, and nodes per layer (the difference of two numbers of layers).
release does for one release what its page needs: installs it (tools/engine_venv.sh, 20 GB of disk stay free), compares its flags with
data/engines/vllm/flags.json, sweeps for N minutes, compares, and writes the page. Nothing is fitted on these starts, so every key
counts as held back. Exit 0 when done and within the bounds, 1 when not, 2 on wrong usage, 77 without the engine."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import scorelib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "oracle"))
import engines  # noqa: E402
import models  # noqa: E402

BOUND = 0.02
FREE_BYTES = 20 << 30
LENGTH, TOKENS, REQUESTS = 4096, 2048, 256
# Classes that differ in their kernels, most common first: an early end has seen what matters.
SWEPT = ["qwen3-8b", "llama-3.1-8b-awq", "qwen3-30b-a3b", "llama-3.1-8b-fp8", "gpt-oss-20b", "llama-3.1-8b", "gemma-2-9b", "qwen2.5-7b",
         "llama-3.1-8b-gptq", "deepseek-v2-lite", "mixtral-8x7b", "mistral-7b", "phi-3-mini", "opt-1.3b", "qwen3-next-80b", "nemotron-nano-9b",
         "jamba-mini"]


def cut(config, layers):
    """The same config with its first layers only."""
    config = json.loads(json.dumps(config))
    for part in (config, config.get("text_config", {})):
        if "num_hidden_layers" not in part:
            continue
        part["num_hidden_layers"] = layers
        for key in ("layer_types", "hybrid_override_pattern"):
            if key in part:
                part[key] = part[key][:layers]
    return config


def layers_of(name, wanted):
    """Hybrids need a stretch that has each kind of layer."""
    least = {"qwen3-next-80b": 4, "nemotron-nano-9b": 16, "jamba-mini": 8}.get(name)
    return [count * least // min(wanted) for count in wanted] if least else wanted


def key_of(version, name, layers, gpu, eager, requests=REQUESTS):
    mode = "eager" if eager else "graphs"
    return "/".join([version, name, str(layers), gpu, mode if requests == REQUESTS else f"{mode}-{requests}"])


def parts_of(key):
    version, name, layers, gpu, mode = key.split("/")
    return version, name, int(layers), gpu, mode.startswith("eager")


def write_model(folder, name, layers):
    path = os.path.join(folder, f"{name}-{layers}")
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
        json.dump(cut(models.MODELS[name], layers), file)
    return path


def jobs_of(args, folder, gpu, done):
    jobs = []
    for name in SWEPT:
        for layers in layers_of(name, args.layers):
            key = key_of(args.vllm, name, layers, gpu, args.eager, args.requests)
            if key in done or (args.only and args.only not in key):
                continue
            engine = {"max_model_len": LENGTH, "max_num_batched_tokens": TOKENS, "max_num_seqs": args.requests, "gpu_memory_utilization": 0.9}
            if args.eager:
                engine["enforce_eager"] = True
            jobs.append({"key": key, "model": write_model(folder, name, layers), "engine": engine})
    return jobs


def kept(path):
    return scorelib.read_lines(path) if os.path.exists(path) else []


def sweep(args):
    home = engines.venvs().get(args.vllm)
    if not home:
        print(f"vLLM {args.vllm} is not among the environments in {engines.VENVS}")
        return engines.SKIP
    end = time.time() + 60 * args.minutes
    for gpu in args.gpus:
        with tempfile.TemporaryDirectory() as folder:
            jobs = jobs_of(args, folder, gpu, {record["key"] for record in kept(args.out)})
            if not jobs or time.time() > end:
                continue
            list_path = os.path.join(folder, "starts.jsonl")
            with open(list_path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(job) + "\n" for job in jobs)
            env = dict(engines.environment(home), OOMSIGHT_ENGINE_LOCK=engines.LOCK, ORACLE_END=str(end))
            words = [os.path.abspath(args.binary), "dryrun", "--gpu", gpu, "--outside", "0", "--json", "--quiet", "--timeout", "86400", "--",
                     "python", os.path.join(HERE, "oracle_zygote.py"), list_path, os.path.abspath(args.out)]
            subprocess.run(words, env=env, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    records = kept(args.out)
    print(f"{sum(record['ok'] for record in records)} of {len(records)} starts have figures; "
          f"{sum(record.get('seconds', 0) for record in records):.0f} s of engine time in {args.out}")
    return 0


# ---- beside plan ----

def planned(planner, folder, record):
    version, name, layers, gpu, eager = parts_of(record["key"])
    command = ["vllm", "serve", write_model(folder, name, layers), "--max-model-len", str(LENGTH), "--max-num-batched-tokens", str(TOKENS),
               "--max-num-seqs", str(record.get("max_num_seqs", REQUESTS)), "--gpu-memory-utilization", "0.9"] + (["--enforce-eager"] if eager else [])
    # A start that found the model compiled is the other of two plans.
    cache = [] if record.get("compiled") else ["--env", "VLLM_CACHE_ROOT=kept"]
    return planner.plan(["--vllm", version, "--gpu", gpu, *cache], command)


def figures(record, plan):
    """(name, seen, planned) of what both have."""
    rows = [("weights", record.get("weights_printed_bytes") or record.get("weights_bytes"), plan["weights_bytes"]),
            ("KV page", record["groups"][0]["page_bytes"] if record.get("groups") else None, plan["kv"]["page_bytes"]),
            ("graph sizes", record.get("capture_sizes") or 0, plan["setup"]["cudagraph_capture_sizes"]),
            ("backend", (record.get("backends") or [None])[0], plan["attention_backend"])]
    # From 0.27 on the engine's figure has its estimate of graphs in it, and leaves out what stays; the plan's row is the peak with what stays.
    other = record["retained_bytes"] - (record.get("estimate_bytes") or 0) if record.get("consumed_bytes") else 0
    if record.get("peak_bytes"):
        rows.append(("peak", record["peak_bytes"] + other, scorelib.hold(plan, "kv_sizing", "activation peak")))
    rows.append(("retained", record.get("retained_bytes"), scorelib.hold(plan, "profile_run", "kept by the profile run")))
    return [row for row in rows if row[1] is not None and row[2] is not None]


def near(seen, foreseen):
    return seen == foreseen if isinstance(seen, str) else abs(seen - foreseen) <= BOUND * max(abs(seen), 1)


def nodes_per_layer(records):
    """{(version, model, gpu, mode): nodes a layer and size} from pairs that differ in layers alone."""
    seen, found = {}, {}
    for record in records:
        version, name, layers, gpu, _ = parts_of(record["key"])
        for mode, capture in record.get("captures", {}).items():
            if mode.startswith("start.") and capture["sizes"]:
                # Whole graphs are captured outside of a context that tells their size: one graph for each.
                sizes = capture["graphs"] if capture["sizes"] == 1 else capture["sizes"]
                seen.setdefault((version, name, gpu, mode[6:]), {})[layers] = capture["nodes"] / max(1, sizes)
    for key, by_layers in seen.items():
        if len(by_layers) >= 2:
            few, many = min(by_layers), max(by_layers)
            found[key] = (by_layers[many] - by_layers[few]) / (many - few)
    return found


def beside(binary, records):
    """-> (lines of a table, tally {name: [near, all]})"""
    planner, tally, lines = scorelib.Planner(os.path.abspath(binary)), {}, []
    with tempfile.TemporaryDirectory() as folder:
        for record in records:
            if not record.get("ok"):
                lines.append(f"| {record['key']} | did not start: {record.get('error', '')[:80]} | | |")
                continue
            plan, why = planned(planner, folder, record)
            if not plan:
                lines.append(f"| {record['key']} | no plan: {why} | | |")
                continue
            for name, seen, foreseen in figures(record, plan):
                count = tally.setdefault(name, [0, 0])
                count[1] += 1
                count[0] += near(seen, foreseen)
                if not near(seen, foreseen):
                    lines.append(f"| {record['key']} | {name} | {seen if isinstance(seen, str) else format(seen, ',')} | "
                                 f"{foreseen if isinstance(foreseen, str) else format(foreseen, ',')} |")
    return lines, tally


def told(records, lines, tally):
    out = ["| start | figure | engine | plan |", "| --- | --- | ---: | ---: |", *lines, ""]
    out.append("; ".join(f"{name} {near_} of {all_}" for name, (near_, all_) in tally.items()) + f" within {BOUND:.0%}")
    for (version, name, gpu, mode), nodes in sorted(nodes_per_layer(records).items()):
        out.append(f"- {version} {name} on {gpu}, {mode}: {nodes:g} nodes a layer and size")
    return out


def sweep_page(records, lines, tally):
    releases = sorted({parts_of(record["key"])[0] for record in records}, key=version_key)
    page = ["# Small starts of the real engine beside plan", "",
            "Written by `tools/oracle.py compare build/cli/oomsight --page docs/sweep.md` from tests/oracle/sweep.jsonl: models cut to a few layers, started by the real engine on a",
            "device that is not there (`tools/oracle.py sweep`). Nothing is fitted on these starts: every key is held back.", "",
            f"{len(records)} starts of {len(releases)} releases, {sum(record.get('seconds', 0) for record in records):.0f} s of engine time; 1,500 starts of 8 releases are the goal.", "",
            "| release | starts | with graphs | models |", "| --- | ---: | ---: | ---: |"]
    for release_ in releases:
        own = [parts_of(record["key"]) for record in records if parts_of(record["key"])[0] == release_]
        page.append(f"| {release_} | {len(own)} | {sum(not eager for *_, eager in own)} | {len({name for _, name, *_ in own})} |")
    page += ["", f"| figure | within {BOUND:.0%} | of |", "| --- | ---: | ---: |"]
    page += [f"| {name} | {near_} | {all_} |" for name, (near_, all_) in tally.items()]
    page += ["", "Every peak of a start that compiles has the copy of the embedding in it. On 0.32.0 the profile run splits no block from 20 MiB on, so cuBLAS, which asks for 32 MiB on 9.0,",
             "is given a freed block of 48 MiB (2,048 tokens of the MLP's width) whole: 16 MiB more than planned are kept, seen in the allocator; no block fits so with 8,192 tokens, or on 8.x (8 MiB). On 0.28.0 free memory lacks the copy's segment as well for Qwen3-8B (1,188 MiB) and Qwen3-4B,",
             "not for Llama-3.1-8B and Qwen3-14B (0): docs/accuracy.md says why. Gated delta nets (4 layers of Qwen3-Next) did not end within their time on a busy machine."]
    return page + ["", "What differs, and nodes of a layer by mode (plan counts 9.6 for a dense layer and 17 for experts, one figure for both modes):", "", *told(records, lines, tally)]


def compare(args):
    records = [record for path in args.results for record in scorelib.read_lines(path)]
    lines, tally = beside(args.binary, records)
    print("\n".join(told(records, lines, tally)))
    if args.page:
        with open(args.page, "w", encoding="utf-8") as file:
            file.write("\n".join(sweep_page(records, lines, tally)) + "\n")
    return 0 if all(near_ >= 0.95 * all_ for near_, all_ in tally.values()) else 1


# ---- a release that nobody has looked at ----

def release_before(version):
    with open(os.path.join(ROOT, "data", "engines", "vllm", "rules.json"), encoding="utf-8") as file:
        known = json.load(file)[0]["versions"]
    older = [one for one in known if version_key(one) < version_key(version)]
    return max(older, key=version_key) if older else None


def models_moved(binary, version, before):
    """Lines for the models in common use whose plan differs between two releases, on one H100."""
    with open(os.path.join(ROOT, "data", "catalogue.json"), encoding="utf-8") as file:
        names = sorted(json.load(file))
    planner, lines, asked = scorelib.Planner(os.path.abspath(binary)), [], 0
    for name in names:
        old, new = (planner.plan(["--offline", "--vllm", one, "--gpu", "h100"], ["vllm", "serve", name])[0] for one in (before, version))
        if not old or not new:
            continue
        asked += 1
        tokens = [plan["kv"].get("tokens") or 0 for plan in (old, new)]
        peaks = [scorelib.hold(plan, "kv_sizing", "activation peak") or 0 for plan in (old, new)]
        far = max(abs(a - b) / max(a, b, 1) for a, b in (tokens, peaks))
        if old["verdict"] != new["verdict"] or old["phase"] != new["phase"] or far > BOUND:
            lines.append(f"| {name} | {told_verdict(old)} | {told_verdict(new)} | {tokens[0]:,} | {tokens[1]:,} | "
                         f"{peaks[0] / scorelib.GIB:.2f} | {peaks[1] / scorelib.GIB:.2f} |")
    return asked, lines


def told_verdict(plan):
    return plan["verdict"] + (f" in {plan['phase']}" if plan["verdict"] in ("fails", "refused") and plan.get("phase") else "")


def object_in(text):
    """The JSON object that begins a line of a text: engines log to the same stream. None: there is none."""
    at = 0 if text.startswith("{") else text.find("\n{") + 1
    try:
        return json.JSONDecoder().raw_decode(text, at)[0] if text[at:at + 1] == "{" else None
    except ValueError:
        return None


def names_in(dump):
    """Option words of what dump_flags.py printed; None: it printed no table."""
    table = object_in(dump)
    return {name for option in table["options"] for name in option["names"]} if table else None


def flags_of(home):
    dumped = subprocess.run([os.path.join(home, "bin", "python"), os.path.join(HERE, "dump_flags.py")], capture_output=True, text=True,
                            env=engines.environment(home), check=False)
    return names_in(dumped.stdout) if dumped.returncode == 0 else None


def version_key(text):
    return [int(part) for part in text.split(".")]


def flags_known(version):
    with open(os.path.join(ROOT, "data", "engines", "vllm", "flags.json"), encoding="utf-8") as file:
        table = json.load(file)
    key = version_key(version)
    found = set()
    for flag in table["flags"]:
        if version_key(flag["since"]) > key or ("until" in flag and key > version_key(flag["until"])):
            continue
        names = flag["names"]
        for change in flag.get("changes", []):  # in order of releases
            if version_key(change["since"]) <= key:
                names = change.get("names", names)
        found |= set(names)
    return found


def release(args):
    free = shutil.disk_usage(os.path.expanduser("~")).free
    if args.vllm not in engines.venvs():
        if free < FREE_BYTES + (12 << 30):
            print(f"vLLM {args.vllm} is not installed, and {free >> 30} GB are free: an environment takes about 12, and 20 stay")
            return engines.SKIP
        if subprocess.run([os.path.join(HERE, "engine_venv.sh"), args.vllm], check=False).returncode:
            return engines.SKIP
    began, home = time.time(), engines.venvs()[args.vllm]
    seen, known = flags_of(home), flags_known(args.vllm)
    code = sweep(args)
    records = [record for record in kept(args.out) if record["key"].startswith(args.vllm + "/")]
    lines, tally = beside(args.binary, records)
    page = [f"# vLLM {args.vllm}", "", ("The release started on a device that is not there" if records else "Flags of the release, which was not started,") +
            f" and what `plan` says of it; `make oracle VERSION={args.vllm}` rewrites this page.", "",
            "## Flags", ""]
    page += [f"{len(seen)} option words; not in data/engines/vllm/flags.json: {', '.join(sorted(seen - known)) or 'none'}; there and not in the "
             f"release: {', '.join(sorted(known - seen)) or 'none'}."] if seen else ["The parser could not be dumped."]
    page += ["", "## Starts", ""] + (["None was made yet."] if not records else [f"{sum(r['ok'] for r in records)} of {len(records)} starts came up, {sum(r.get('seconds', 0) for r in records):.0f} s of engine time. "
             f"What differs from the plan by more than {BOUND:.0%}:", ""] + told(records, lines, tally))
    before = release_before(args.vllm)
    if before:
        asked, moved = models_moved(args.binary, args.vllm, before)
        page += ["", "## Models", "", f"{asked} models in common use, planned on one H100 with {before} and {args.vllm}; verdict, phase, KV tokens or activation peak "
                 f"(GiB) differ by more than {BOUND:.0%} in {len(moved)}:", "", f"| model | {before} | {args.vllm} | tokens | | peak | |",
                 "| --- | --- | --- | ---: | ---: | ---: | ---: |", *moved]
    with open(args.page, "w", encoding="utf-8") as file:
        file.write("\n".join(page) + "\n")
    print(f"{args.page}: {time.time() - began:.0f} s")
    return code


def main():
    parser = argparse.ArgumentParser(description="the real engine in bulk")
    parser.add_argument("what", choices=["sweep", "compare", "release"])
    parser.add_argument("binary")
    parser.add_argument("results", nargs="*")
    parser.add_argument("--vllm")
    parser.add_argument("--out", default=os.path.join(ROOT, "tests", "oracle", "sweep.jsonl"))
    parser.add_argument("--page")
    parser.add_argument("--gpus", default="h100", type=lambda text: text.split(","))
    parser.add_argument("--layers", default="2,4", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--requests", default=REQUESTS, type=int, help="max_num_seqs: few make few graphs, so more starts an hour")
    parser.add_argument("--only")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--eager", action="store_true")
    args = parser.parse_args()
    if args.what == "compare":
        args.results = args.results or [args.out]
        return compare(args)
    if not args.vllm:
        scorelib.fail("--vllm VERSION is needed")
    args.page = args.page or os.path.join(ROOT, "docs", "releases", args.vllm + ".md")
    os.makedirs(os.path.dirname(args.page), exist_ok=True)
    return sweep(args) if args.what == "sweep" else release(args)


if __name__ == "__main__":
    sys.exit(main())
