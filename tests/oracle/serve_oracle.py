#!/usr/bin/env python3
"""Compare how oomsight reads serve commands with the argument parser of a real vLLM: serve_oracle.py SERVE_DUMP [COUNT]

Run it with the Python of an environment that holds the engine. Random commands, always the same ones, are given to
both. Exit 77 where there is no engine.
"""

import collections
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))

JSON_VALUES = {
    "--compilation-config": ['{"cudagraph_capture_sizes": [1, 2, 4]}', '{"cudagraph_mode": "NONE"}', "{}",
                             '{"max_cudagraph_capture_size": 32}', '{"level": 3}', '{"mode": 3}', "{"],
    "--speculative-config": ['{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}',
                             '{"model": "org/draft", "num_speculative_tokens": 2, "method": "eagle"}', "nothing"],
    "--limit-mm-per-prompt": ['{"image": 2}', '{"image": 0, "video": 0}', '{"image": {"count": 1}, "audio": 3}', "image=1"],
    "--hf-overrides": ['{"a": 1, "b": {"c": [1, 2]}}', "{}"],
    "--rope-scaling": ['{"rope_type": "yarn", "factor": 4.0}'],
    "--attention-config": ['{"backend": "FLASH_ATTN"}'],
}
DOTTED = [("--compilation-config", "cudagraph_mode", ["NONE", "PIECEWISE"]),
          ("--compilation-config", "max_cudagraph_capture_size", ["8", "64"]),
          ("--compilation-config", "cudagraph_capture_sizes", ["[1,2]", "[8]"]),
          ("--compilation-config", "cudagraph_capture_sizes+", ["1,2", "4"]),
          ("--hf-overrides", "a", ["1", "x", "true", "1.5"]), ("--hf-overrides", "a.b", ["1", "[1,2]"]),
          ("--limit-mm-per-prompt", "image", ["1", "0"])]
WORDS = {"int": ["1", "7", "16", "16k", "1K", "1.5k", "1.5K", "abc", "-1", "0", "2m", "1_000", "+3", "1e3", "99999999999999999999"],
         "float": ["0.5", "0.9", ".25", "1", "1e-1", "x", "2.0", "0.123456789012345678"],
         "str": ["a", "None", "some/path", "x=y", "1"]}


def table_at(version):
    """The flags of one version: (names, negative, kind, nargs, choices)."""
    with open(os.path.join(HERE, "..", "..", "data", "engines", "vllm", "flags.json"), encoding="utf-8") as file:
        table = json.load(file)
    key = lambda v: [int("".join(c for c in part if c.isdigit()) or 0) for part in v.split(".")]
    flags = []
    for flag in table["flags"]:
        if key(flag["since"]) > key(version) and flag["since"] != table["versions"][0]:
            continue
        if flag.get("until") and key(flag["until"]) < key(version):
            continue
        fields = dict(flag)
        for change in flag.get("changes", ()):
            if key(change["since"]) <= key(version):
                fields.update(change)
        if fields["kind"] != "help" and fields["names"][0] not in ("--config", "--model", "--help"):
            flags.append(fields)
    return flags


def spelt(rng, name):
    if name.startswith("--") and rng.random() < 0.25:
        name = "--" + name[2:].replace("-", "_")
    if name.startswith("--") and rng.random() < 0.1 and len(name) > 8:
        name = name[:rng.randrange(6, len(name) + 1)]
    return name


def value_of(rng, flag):
    name, kind = flag["names"][0], flag["kind"]
    if name in JSON_VALUES:
        return rng.choice(JSON_VALUES[name])
    if flag.get("choices") and rng.random() < 0.85:
        return str(rng.choice(flag["choices"]))
    if kind in ("json", "json-or-str"):  # what is inside others is not looked at
        return "{}"
    if name == "--max-model-len" and rng.random() < 0.3:
        return rng.choice(["auto", "-1", "4096"])
    return rng.choice(WORDS.get(flag.get("item") if kind in ("list", "choice") else kind, WORDS["str"]))


def flag_words(rng, flag):
    kind, nargs = flag["kind"], flag.get("nargs")
    name = spelt(rng, rng.choice(flag["names"]))
    if kind in ("flag", "bool-optional"):
        return [spelt(rng, rng.choice(flag["negative"])) if flag.get("negative") and rng.random() < 0.4 else name]
    if kind == "bool":
        return [name] + rng.choice([[], ["true"], ["false"]])
    if kind == "list" or nargs in ("+", "*"):
        return [name] + [value_of(rng, flag) for _ in range(rng.randrange(1, 4))]
    value = value_of(rng, flag)
    return [f"{name}={value}"] if rng.random() < 0.3 else [name, value]


def random_command(rng, flags, folder, number):
    memory = [flag for flag in flags if flag["memory"]]
    words, yaml = [], []
    for _ in range(rng.randrange(1, 7)):
        dice = rng.random()
        if dice < 0.08:
            name, key, values = rng.choice(DOTTED)
            words.append([f"{name}.{key}", rng.choice(values)] if rng.random() < 0.6 else [f"{name}.{key}={rng.choice(values)}"])
        elif dice < 0.11:
            words.append(rng.choice([["-O3"], ["-O", "2"], ["-O=1"], ["-O0"]]))
        elif dice < 0.13:
            words.append(["--no-such-flag", "1"])
        else:
            words.append(flag_words(rng, rng.choice(memory if rng.random() < 0.85 else flags)))
    if rng.random() < 0.15:
        for _ in range(rng.randrange(1, 4)):
            flag = rng.choice(memory)
            key = flag["names"][0][2:]
            yaml.append(f"{key}: {rng.choice(['true', 'false']) if flag['kind'] in ('flag', 'bool-optional', 'bool') else value_of(rng, flag)!r}")
        path = os.path.join(folder, f"{number}.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(yaml) + "\n")
        words.append(["--config", path])
    rng.shuffle(words)
    return ["m"] + [word for group in words for word in group]


FIELDS = """tensor_parallel_size pipeline_parallel_size data_parallel_size decode_context_parallel_size enable_expert_parallel
gpu_memory_utilization max_model_len max_num_seqs max_num_batched_tokens block_size kv_cache_dtype kv_cache_memory_bytes
num_gpu_blocks_override dtype quantization load_format enforce_eager cpu_offload_gb swap_space enable_sleep_mode enable_lora
max_loras max_lora_rank fully_sharded_loras enable_prefix_caching enable_chunked_prefill async_scheduling language_model_only
skip_mm_profiling disable_hybrid_kv_cache_manager mamba_cache_dtype mamba_ssm_cache_dtype mamba_block_size mamba_cache_mode
attention_backend performance_mode disable_custom_all_reduce runner revision""".split()


def differences(ours, real, base):
    """Fields that are not what the engine's parser has. Only those oomsight reads are looked at."""
    for field in FIELDS:
        if field not in real or (field == "runner" and real.get("task")):
            continue
        if field == "attention_backend" and real.get("attention_config") != base.get("attention_config"):
            continue
        mine = ours.get(field, base.get(field))
        if mine != real[field] and not (isinstance(mine, (int, float)) and mine == real[field]):
            yield field, mine, real[field]
    # --rope-scaling and --rope-theta become overrides in the engine too, a step later; so does --task become --runner
    overrides = real.get("hf_overrides")
    mine = {key: value for key, value in ours.get("hf_overrides", {}).items() if not key.startswith("rope_")}
    if isinstance(overrides, dict) and overrides != mine:
        yield "hf_overrides", mine, overrides
    spec = real.get("speculative_config")
    if isinstance(spec, dict):
        for key in ("method", "model", "num_speculative_tokens"):
            if spec.get(key) != ours.get("speculative_config", {}).get(key):
                yield "speculative_config." + key, ours.get("speculative_config"), spec
    limits = real.get("limit_mm_per_prompt")
    if isinstance(limits, dict) and limits != base.get("limit_mm_per_prompt"):
        for key in ("image", "video", "audio"):
            want = limits.get(key)
            want = want.get("count") if isinstance(want, dict) else want
            if want != ours.get("mm." + key):
                yield "limit_mm_per_prompt." + key, ours.get("mm." + key), want
    config = real.get("compilation_config")
    if isinstance(config, dict):
        sizes, mine = config.get("cudagraph_capture_sizes"), ours["compilation"].get("cudagraph_capture_sizes")
        if sizes and [int(size) for size in sizes] != mine and not real.get("cudagraph_capture_sizes"):
            yield "cudagraph_capture_sizes", mine, sizes
    level = real.get("optimization_level")
    if str(level).isdigit() and level != base.get("optimization_level") and int(level) != ours["compilation"].get("optimization_level"):
        yield "optimization_level", ours["compilation"].get("optimization_level"), level


def main():
    try:
        import vllm
        import dump_flags
        import flag_probes
        dump_flags.pretend_cuda()
        parser = dump_flags.build_parsers()[0]
    except ImportError as missing:
        print(f"no engine here: {missing}")
        return 77
    version = vllm.__version__.split("+")[0]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    rng = random.Random(20)
    flags = table_at(version)
    tally, shown = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        commands = [random_command(rng, flags, folder, number) for number in range(count)]
        base = flag_probes.parse(parser, ["m"])
        real = [flag_probes.parse(parser, words) for words in commands]
        lines = "".join("\t".join([version, "vllm", "serve", *words]) + "\n" for words in commands)
        ours = [json.loads(line) for line in
                subprocess.run([sys.argv[1]], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()]
    for words, mine, want in zip(commands, ours, real):
        if want is None:
            noted = "error" in mine or any(f["effect"] == "unknown" or f.get("note") for f in mine["flags"])
            result = "refused by both, or noted" if noted else "refused by the engine only"
            detail = ""
        elif "error" in mine:
            # what the parser lets through and the engine's configuration refuses right after it
            later = any(why in mine["error"] for why in ("at least 1", "not negative", "a fraction", "9999999999", "--optimization-level", "-1"))
            result, detail = "refused later by the engine" if later else "refused by oomsight only", mine["error"]
        else:
            wrong = list(differences(mine, want, base))
            result, detail = ("different", str(wrong)) if wrong else ("equal", "")
        tally[result] += 1
        if result in ("different", "refused by oomsight only", "refused by the engine only") and shown[result] < 12:
            shown[result] += 1
            print(f"{result}: {' '.join(words)}\n    {detail}")
    print(f"vLLM {version}, {count} commands:", ", ".join(f"{number} {result}" for result, number in sorted(tally.items())))
    return 1 if tally["different"] or tally["refused by oomsight only"] else 0


if __name__ == "__main__":
    sys.exit(main())
