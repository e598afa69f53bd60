#!/usr/bin/env python3
"""Does `plan` refuse what the engine refuses, for the same reason, and resolve what it accepts to the same configuration?

    tests/oracle/arguments.py BINARY --vllm 0.32.0 [--style recipes] [--count 300] [--seed 1] [--models DIR] [--answers FILE]

Commands are drawn from a grammar over the flag table (right, nearly right and wrong) or from recipes (realistic.py), put to the real parser and configuration of that
release on stand-in devices of several capabilities (arguments_judge.py), and to `plan`. The engine's answers can be kept in a file:
when it is there they are read instead of asked for again. Exit 0 when the goals hold, 1 when not, 77 without the engine.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import engines
import realistic

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DEVICES = ["v100x4", "a100x8", "4090x1", "h100x8", "b200x16"]
GOALS = {"verdict": 0.995, "reason": 0.95, "fields": 0.99}

# Flags that read files, open ports, print and leave, or start another program than the engine.
NOT_ASKED = {
    "--help", "-h", "--version", "--config", "--model", "--headless", "--grpc", "--uds", "--log-config-file", "--chat-template",
    "--tool-parser-plugin", "--reasoning-parser-plugin", "--tokenizer", "--hf-config-path", "--download-dir", "--model-impl",
    "--hf-token", "--allowed-local-media-path", "--generation-config", "--middleware", "--logits-processors", "--worker-cls",
    "--worker-extension-cls", "--scheduler-cls", "--io-processor-plugin", "--logits-processor-pattern", "--otlp-traces-endpoint",
    "--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs", "--device", "--task", "--convert", "--config-format", "--tokenizer-mode",
    "--tokenizer-revision", "--revision", "--code-revision", "--load-format", "--hf-overrides", "--collect-detailed-traces",
    "--model-loader-extra-config", "--ray-workers-use-nsight", "--data-parallel-backend", "--skip-tokenizer-init", "--runner",
    "--renderer-num-workers", "--tokens-only",
}


class Grammar:
    """Commands as people write them, with the mistakes they make."""

    def __init__(self, flags, version, models, seed):
        self.random = random.Random(f"{version} {seed}")
        self.models = models
        self.flags = [flag for flag in flags if flag["names"][0] not in NOT_ASKED]
        self.by_name = {flag["names"][0]: flag for flag in self.flags}

    def pick(self, *values):
        return self.random.choice(values)

    def chance(self, share):
        return self.random.random() < share

    def core(self, model):
        """One flag that moves memory or parallelism, with a value that is often right."""
        pick = self.pick
        speculative = pick(
            {"method": "ngram", "num_speculative_tokens": pick(1, 3, 5), "prompt_lookup_max": pick(2, 4)},
            {"method": "mtp", "num_speculative_tokens": pick(1, 2, 3)},
            {"method": "ngram", "num_speculative_tokens": pick(0, -1, 2)},
            {"method": pick("nonsense", "medusa", "suffix"), "num_speculative_tokens": 3},
            {"num_speculative_tokens": 2})
        compilation = pick(
            {"max_cudagraph_capture_size": pick(8, 64, 256, 2048)},
            {"cudagraph_mode": pick("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE", "SOME")},
            {"cudagraph_capture_sizes": pick([1, 2, 4], [8, 16, 32], [])},
            {"mode": pick(0, 1, 2, 3, 7)}, {"nonsense": 1})
        choices = [
            (6, lambda: [pick("-tp", "--tensor-parallel-size"), str(pick(1, 2, 2, 4, 4, 8, 16, 3, 5, 6, 7, 0))]),
            (3, lambda: [pick("-pp", "--pipeline-parallel-size"), str(pick(1, 2, 2, 4, 3, 8))]),
            (2, lambda: [pick("-dp", "--data-parallel-size"), str(pick(1, 2, 4, 8))]),
            (2, lambda: [pick("--decode-context-parallel-size", "-dcp"), str(pick(1, 2, 4, 8))]),
            (2, lambda: ["--enable-expert-parallel"]),
            (8, lambda: ["--max-model-len", str(pick(1024, 4096, 8192, 16384, 32768, "32k", "1k", 40960, 65536, 100000, 131072, 262144,
                                                     1048576, "auto", -1, 0, "16K", "0.5k", "abc", "8.5K"))]),
            (6, lambda: ["--max-num-seqs", str(pick(1, 4, 16, 64, 128, 256, 512, 1024, 2048, 0, "many"))]),
            (6, lambda: ["--max-num-batched-tokens", str(pick(64, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536, "8k", 0))]),
            (5, lambda: ["--gpu-memory-utilization", str(pick(0.5, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0, 1.5, 0, -0.1, "90%"))]),
            (5, lambda: ["--kv-cache-dtype", pick("auto", "fp8", "fp8_e4m3", "fp8_e5m2", "bfloat16", "float16", "fp8_inc", "nvfp4",
                                                  "int8_per_token_head", "turboquant_k8v4", "fp8_ds_mla", "int8", "fp4")]),
            (4, lambda: ["--block-size", str(pick(8, 16, 16, 32, 64, 128, 1, 17, 256, 0))]),
            (5, lambda: ["--dtype", pick("auto", "bfloat16", "float16", "half", "float", "float32", "fp16", "int8")]),
            (5, lambda: [pick("--quantization", "-q"), pick("fp8", "awq", "gptq", "awq_marlin", "gptq_marlin", "bitsandbytes",
                                                            "compressed-tensors", "modelopt", "modelopt_fp4", "mxfp4", "experts_int8",
                                                            "gguf", "torchao", "auto-round", "nonsense", "fp8_per_tensor")]),
            (4, lambda: ["--enforce-eager"]),
            (3, lambda: [pick("--enable-prefix-caching", "--no-enable-prefix-caching")]),
            (4, lambda: [pick("--enable-chunked-prefill", "--no-enable-chunked-prefill")]),
            (2, lambda: [pick("--async-scheduling", "--no-async-scheduling")]),
            (3, lambda: ["--enable-lora"] + pick([], ["--max-lora-rank", str(pick(1, 8, 16, 24, 32, 64, 256, 320, 512, 1024))],
                                                 ["--max-loras", str(pick(1, 2, 4, 0))],
                                                 ["--max-loras", "4", "--max-cpu-loras", str(pick(1, 4, 8))])),
            (3, lambda: ["--speculative-config", json.dumps(speculative)]),
            (3, lambda: [pick("--compilation-config", "-cc"), json.dumps(compilation)]),
            (1, lambda: ["--compilation-config", pick("{not json", "[1, 2]", "3")]),
            (1, lambda: [pick("-O0", "-O1", "-O2", "-O3", "-O4")]),
            (2, lambda: ["--cpu-offload-gb", str(pick(0, 4, 10, -1))]),
            (2, lambda: ["--swap-space", str(pick(0, 4, 8))]),
            (2, lambda: ["--limit-mm-per-prompt", pick('{"image": 2}', '{"image": 0, "video": 0}', '{"image": -1}', "image=2")]),
            (2, lambda: ["--attention-backend", pick("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "FLASHMLA", "NONSENSE")]),
            (1, lambda: ["--distributed-executor-backend", pick("mp", "ray", "uni", "external_launcher", "nonsense")]),
            (1, lambda: ["--kv-cache-memory-bytes", str(pick("4G", 2147483648, "1.5g", -1))]),
            (1, lambda: ["--num-gpu-blocks-override", str(pick(1, 512, 0))]),
            (1, lambda: ["--mamba-cache-mode", pick("none", "align", "all")]),
            (1, lambda: ["--mamba-ssm-cache-dtype", pick("auto", "float32", "float16")]),
            (1, lambda: [pick("--language-model-only", "--skip-mm-profiling", "--trust-remote-code", "--enable-sleep-mode",
                              "--disable-custom-all-reduce", "--disable-log-stats", "--calculate-kv-scales", "--async-scheduling")]),
            (1, lambda: ["--max-logprobs", str(pick(20, 5, -1, -2))]),
            (1, lambda: ["--long-prefill-token-threshold", str(pick(0, 1024, 200000))]),
            (1, lambda: ["--optimization-level", str(pick(0, 1, 2, 3, 9))]),
            (1, lambda: ["--performance-mode", pick("balanced", "interactivity", "throughput", "fast")]),
            (1, lambda: ["--cudagraph-capture-sizes"] + pick(["1", "2", "4"], ["16"], ["x"])),
            (1, lambda: ["--max-cudagraph-capture-size", str(pick(16, 512, 0))]),
            (1, lambda: ["--seed", str(pick(0, 42, -1, "x"))]),
            (1, lambda: ["--enable-auto-tool-choice"] + pick([], ["--tool-call-parser", pick("hermes", "nonsense")])),
            (1, lambda: ["--served-model-name", "a", "b"]),
            (1, lambda: [pick("--max-model-length", "--tensor-parallel", "--gpu-memory", "--max-seqs", "--enable-prefix-cache", "--kv-dtype"),
                         pick("8192", "2", "0.9")]),
            (1, lambda: [pick("extra", "words")]),
        ]
        return self.random.choices([make for _, make in choices], [weight for weight, _ in choices])[0]()

    def any_flag(self):
        """Any flag of the release, with a value of its kind or not."""
        flag = self.random.choice(self.flags)
        name = self.random.choice(flag["names"])
        kind = flag["kind"]
        wrong = self.chance(0.15)
        if kind in ("bool-optional", "flag"):
            if flag.get("negative") and self.chance(0.4):
                return [self.random.choice(flag["negative"])]
            return [name] + (["true"] if wrong else [])
        if flag.get("choices") and kind == "choice":
            return [name, "nonsense" if wrong else str(self.random.choice(flag["choices"]))]
        if kind == "int":
            return [name, self.pick("x", "1.5", "") if wrong else str(self.pick(0, 1, 2, 4, 16, 1000, -1, flag.get("default") or 1))]
        if kind == "float":
            return [name, "x" if wrong else str(self.pick(0, 0.5, 1, 2.5, -1, flag.get("default") or 0.1))]
        if kind == "json":
            return [name, "{x" if wrong else self.pick("{}", '{"nonsense": 1}')]
        return None

    def command(self):
        model = self.random.choice(self.models)
        words = []
        for _ in range(self.random.choices([0, 1, 2, 3, 4, 6], [1, 5, 5, 4, 3, 1])[0]):
            words += self.core(model)
        if self.chance(0.25):
            words += self.any_flag() or []
        env = {}
        if self.chance(0.08):
            env = self.pick({"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}, {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "0"}, {"VLLM_USE_V2_MODEL_RUNNER": "0"},
                            {"VLLM_USE_V1": "0"}, {"VLLM_ATTENTION_BACKEND": self.pick("FLASHINFER", "NONSENSE")})
        return {"model": model, "words": words, "env": env}


def at_version(record, versions, version):
    """A flag of the table as it is in one release, or None."""
    order = {name: index for index, name in enumerate(versions)}
    at = max((index for name, index in order.items() if key_of(name) <= key_of(version)), default=0)
    if order[record["since"]] > at or ("until" in record and order[record["until"]] < at):
        return None
    fields = {key: value for key, value in record.items() if key != "changes"}
    for change in record.get("changes", ()):
        if order[change["since"]] <= at:
            fields.update({key: value for key, value in change.items() if key != "since"})
    return fields


def key_of(version):
    numbers, _, post = version.partition(".post")
    return tuple(map(int, numbers.split("."))), int(post or 0)


def make_commands(options):
    with open(os.path.join(ROOT, "data/engines/vllm/flags.json"), encoding="utf-8") as file:
        table = json.load(file)
    flags = [flag for flag in (at_version(record, table["versions"], options.vllm) for record in table["flags"]) if flag]
    models = sorted(name for name in os.listdir(options.models) if os.path.isfile(os.path.join(options.models, name, "config.json")))
    grammar = (realistic.Recipes if options.style == "recipes" else Grammar)(flags, options.vllm, models, options.seed)
    commands = []
    for index in range(options.count):
        command = grammar.command()
        command["gpu"] = options.devices[index * len(options.devices) // options.count]
        commands.append(command)
    return commands


def ask_engine(options, commands):
    """The engine's answers, one process per device."""
    python = os.path.join(options.venvs, f"vllm-{options.vllm}", "bin", "python")
    if not os.path.exists(os.path.join(options.venvs, f"vllm-{options.vllm}", ".ready")):
        print(f"vLLM {options.vllm} is not installed in {options.venvs}")
        sys.exit(77)
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        for gpu in options.devices:
            asked = [command for command in commands if command["gpu"] == gpu]
            if not asked:
                continue
            source, target = os.path.join(folder, "commands"), os.path.join(folder, "answers")
            with open(source, "w", encoding="utf-8") as file:
                for command in asked:
                    argv = [os.path.join(options.models, command["model"]), "--skip-tokenizer-init"] + command["words"]
                    file.write(json.dumps({"argv": argv, "env": command["env"]}) + "\n")
            run = ["flock", engines.LOCK, options.binary, "dryrun", "--gpu", gpu, "--", python,
                   os.path.join(HERE, "arguments_judge.py"), source, target]
            env = dict(os.environ, PYTHONPATH=options.packages) if options.packages else None
            done = subprocess.run(run, capture_output=True, text=True, check=False, env=env)
            print(gpu, " ".join(line for line in done.stderr.splitlines() if re.search(r"loaded in|commands in", line)), file=sys.stderr)
            with open(target, encoding="utf-8") as file:
                got = [json.loads(line) for line in file]
            if len(got) != len(asked):
                sys.exit(f"{gpu}: {len(got)} answers for {len(asked)} commands: {done.stderr[-800:]}")
            answers += got
    return answers


def ask_plan(options, command):
    run = [options.binary, "plan", "--offline", "--json", "--gpu", command["gpu"], "--vllm", options.vllm] + (["--data", options.data] if options.data else [])
    for name, value in command["env"].items():
        run += ["--env", f"{name}={value}"]
    run += ["--", "vllm", "serve", os.path.join(options.models, command["model"]), "--skip-tokenizer-init"] + command["words"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"error": done.stderr.strip(), "exit": done.returncode}


# What a config-only folder of a model cannot answer: tokenizers, image processors, code of the repository, other programs.
NOT_JUDGED = re.compile(
    r"Can't load|does not appear to have a file|OSError|processor|tokenizer|trust_remote_code|trust-remote-code|No module named|"
    r"is not installed|Failed to import|pip install|outgoing traffic|offline|couldn't connect|cannot find the requested files|"
    r"No such file|Ray is not|ray is not|MiniCPM|preprocessor_config|failed to be inspected|module was not found|"
    r"per-layer attribute|Class validation error|^'-'$|rope_parameters should have a 'rope_type' key|"
    r"has no attribute 'get_vocab'", re.I)  # the last: what the transformers beside it makes of a config, a parser without a tokenizer


def known_architectures():
    with open(os.path.join(ROOT, "data/engines/vllm/architectures.json"), encoding="utf-8") as file:
        return set(json.load(file)["architectures"])


def judged(answer):
    if "architectures" in answer.get("text", "") and not any(
            f"'{name}'" in answer["text"].split("Supported architectures")[0] for name in known_architectures()):
        return False  # no release has it: nothing is said of it
    if answer["ok"] is None or answer.get("type") in ("OSError", "ModuleNotFoundError", "ImportError"):
        return False
    return answer["ok"] or not NOT_JUDGED.search(answer["text"])


def sentence_of(answer):
    text = answer["text"]
    found = re.search(r"(?:Value error|Assertion failed), (.*?)(?: \[type=|$)", text, re.S)
    if found:
        return found.group(1)
    found = re.search(r"validation errors? for \w+\n\s+(.*?) \[type=", text)
    if found:
        return found.group(1)  # of the value as a whole
    found = re.search(r"validation errors? for (\w+)\n(.*?)\n\s+(.*?)(?: \[type=|$)", text, re.S)
    if found:
        return f"{found.group(2)}: {found.group(3)}"
    return text.split("error: ", 1)[-1] if answer["stage"] == "parser" else text


def shape(sentence):
    """A sentence without its numbers, names and lists."""
    sentence = re.sub(r"\[.*?\]|\(.*?\)|\{.*?\}|'.*?'|`.*?`|[-+]?\d[\d.,]*", " ", sentence)
    return " ".join(re.findall(r"[A-Za-z_]{3,}", sentence.lower()))


def same_reason(engine, ours):
    """Do both speak of the same? The words of the shorter sentence are in the longer one, two of three."""
    a, b = set(shape(engine).split()), set(shape(ours).split())
    if not a or not b:
        return engine.strip() in ours
    short, other = (a, b) if len(a) <= len(b) else (b, a)
    return len(short & other) >= 0.66 * len(short)


FIELDS = ["max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size", "dtype", "kv_cache_dtype", "cudagraph_mode",
          "cudagraph_capture_sizes", "chunked_prefill", "prefix_caching", "async_scheduling", "tensor_parallel_size",
          "pipeline_parallel_size", "data_parallel_size", "decode_context_parallel_size"]


LENGTH_FITTED = re.compile(r"--max[-_]model[-_]len[ =](-1|auto)\b")  # once the cache is sized: a configuration does not have it


def field_differences(answer, plan, words=""):
    ours = plan.get("setup", {})
    out = []
    for name in FIELDS:
        theirs = answer["fields"].get(name)
        if name not in ours or (name == "max_model_len" and LENGTH_FITTED.search(words)) or (theirs is None and name in ("block_size", "cudagraph_mode")):
            continue
        if name == "cudagraph_capture_sizes" and isinstance(ours[name], int):
            theirs = 0 if answer["fields"].get("cudagraph_mode") == "NONE" else len(theirs)  # a list that is not used
        if name == "kv_cache_dtype" and theirs == "fp8_e4m3":  # the same type by its other name
            theirs = "fp8" if ours[name] == "fp8" else theirs
        if ours[name] != theirs:
            out.append((name, theirs, ours[name]))
    return out


def compare(commands, answers, plans):
    count, misses = collections.Counter(), collections.defaultdict(list)
    for command, answer, plan in zip(commands, answers, plans):
        words = f"--gpu {command['gpu']} {' '.join(f'{k}={v}' for k, v in command['env'].items())} {command['model']} {' '.join(command['words'])}"
        if not judged(answer):
            count["not judged"] += 1
            continue
        count["judged"] += 1
        refused = plan.get("verdict") == "refused" and plan.get("phase") == "arguments"
        said = (plan.get("why") or plan.get("error") or "").replace("The engine will say: ", "")
        if refused == answer["ok"] or "error" in plan:
            kind = "error" if "error" in plan else "accepts" if not refused else "refuses"
            count["falsely refused" if answer["ok"] else "falsely accepted"] += 1
            theirs = "" if answer["ok"] else sentence_of(answer)
            misses[f"{kind}: {shape(theirs or said)[:90]}"].append(f"{words}\n      engine: {theirs[:300]}\n      plan:   {said[:300]}")
            continue
        count["verdict"] += 1
        if not answer["ok"]:
            count["refused"] += 1
            theirs = sentence_of(answer)
            if same_reason(theirs, said):
                count["reason"] += 1
            else:
                misses[f"reason: {shape(theirs)[:60]} / {shape(said)[:60]}"].append(f"{words}\n      engine: {theirs[:300]}\n      plan:   {said[:300]}")
            continue
        count["accepted"] += 1
        differences = field_differences(answer, plan, words)
        if not differences:
            count["fields"] += 1
        for name, theirs, ours in differences:
            misses[f"field {name}"].append(f"{words}\n      engine: {theirs}\n      plan:   {ours}")
    return count, misses


def share(part, whole):
    return part / whole if whole else 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--vllm", default="0.32.0")
    parser.add_argument("--style", choices=["grammar", "recipes"], default="grammar")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--models", default=os.path.join(os.path.dirname(ROOT), "shared/golden/models"))
    parser.add_argument("--answers", help="keep the engine's answers here, or read them from here")
    parser.add_argument("--venvs", default=os.environ.get("OOMSIGHT_VENVS", os.path.expanduser("~/.cache/oomsight/venvs")))
    parser.add_argument("--data", help="the data that plan is to know")
    parser.add_argument("--packages", help="folder of packages that come before the engine's own: the transformers of the release's day")
    parser.add_argument("--show", type=int, default=2, help="examples of each class of difference")
    parser.add_argument("--devices", nargs="+", default=DEVICES, help="each costs a load of the engine")
    parser.add_argument("--at-least", type=float, nargs=3, metavar="SHARE", default=list(GOALS.values()),
                        help="shares of commands judged alike, of refusals with the same reason, of configurations that are equal")
    options = parser.parse_args()
    options.models = os.path.realpath(options.models)
    if not os.path.isdir(options.models):
        print(f"no models in {options.models}")
        sys.exit(77)

    if options.answers and os.path.exists(options.answers):
        with open(options.answers, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        commands, answers = [record["command"] for record in records], [record["answer"] for record in records]
    else:
        commands = make_commands(options)
        answers = ask_engine(options, commands)
        if options.answers:
            with open(options.answers, "w", encoding="utf-8") as file:
                for command, answer in zip(commands, answers):
                    file.write(json.dumps({"command": command, "answer": answer}) + "\n")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        plans = list(pool.map(lambda command: ask_plan(options, command), commands))
    count, misses = compare(commands, answers, plans)
    for name, examples in sorted(misses.items(), key=lambda item: -len(item[1])):
        print(f"{len(examples):5d}  {name}")
        for example in examples[: options.show]:
            print(f"    {example}")
    shares = {"verdict": share(count["verdict"], count["judged"]), "reason": share(count["reason"], count["refused"]),
              "fields": share(count["fields"], count["accepted"])}
    print(f"vLLM {options.vllm}: {len(commands)} commands, {count['not judged']} not judged; accepted or refused alike "
          f"{count['verdict']}/{count['judged']} ({shares['verdict']:.2%}), same reason {count['reason']}/{count['refused']} "
          f"({shares['reason']:.2%}), same configuration {count['fields']}/{count['accepted']} ({shares['fields']:.2%}); "
          f"falsely refused {count['falsely refused']}, falsely accepted {count['falsely accepted']} "
          f"({share(count['falsely accepted'], count['judged']):.2%})")
    sys.exit(0 if all(shares[name] >= least for name, least in zip(GOALS, options.at_least)) else 1)


if __name__ == "__main__":
    main()
