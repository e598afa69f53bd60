#!/usr/bin/env python3
"""First suggestions over many models, GPUs and releases, by what the user loses: survey_advice.py LIBRARY MODELS [--sample N] [--csv FILE]

Plans every model of the folder MODELS on 12 GPUs with 3 releases of vLLM, and 60 of them on 8 GPUs with 2 of SGLang; every fourth command
asks for a length, for images, or for a number of requests. Of every command that likely fails it is asked: is there an answer or a stated
need; on which rung is the first answer (data/engines/*/levers.json); does each answer start when its command is planned again; does a flag
stand in it twice; does it take back what the command asks for while a higher rung is said to be enough. Exit 1 when one of these fails,
when images that were asked for are dropped, or when offload and eager mode are first in a tenth or more. --sample N: N cells of them, spread."""
import argparse
import collections
import os
import shlex
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GPUS = ["t4", "l4", "a10", "rtx4060ti", "3090", "4090", "5090", "a100-40gb", "l40s", "a100", "h100", "h200"]
FEW_GPUS = ["l4", "4090", "5090", "a100-40gb", "l40s", "a100", "h100", "h200"]
RELEASES = {"vllm": ["0.14.0", "0.24.0", "0.32.0"], "sglang": ["0.5.18", "0.5.23"]}
FEW_MODELS = 60
# what a command asks for, in turn
ASKED = {
    "vllm": [[], ["--max-model-len", "16384"], ["--limit-mm-per-prompt", '{"image":2}'], ["--max-num-seqs", "64"]],
    "sglang": [[], ["--context-length", "16384"], [], ["--max-running-requests", "64"]],
}
OFFLOAD, EAGER = ("--cpu-offload-gb",), ("--enforce-eager", "--disable-cuda-graph")
# flags by the rung they are on where the command does not have them, and where it has
RUNGS = {
    "--gpu-memory-utilization": "ab", "--mem-fraction-static": "ab", "--max-model-len": "bd", "--context-length": "bd", "--max-num-seqs": "bd",
    "--max-running-requests": "bd", "--max-num-batched-tokens": "bc", "--chunked-prefill-size": "bc", "--compilation-config": "bc",
    "--compilation-config.max_cudagraph_capture_size": "bc", "--cuda-graph-max-bs-decode": "bc", "--kv-cache-memory-bytes": "bb",
    "--limit-mm-per-prompt": "bd", "--kv-cache-dtype": "cd", "--attention-backend": "cd", "--language-model-only": "dd", "--no-enable-sleep-mode": "dd",
    "--tensor-parallel-size": "ee", "--tp-size": "ee", "--pipeline-parallel-size": "ee", "--quantization": "ee", "--enforce-eager": "ee",
    "--disable-cuda-graph": "ee", "--cpu-offload-gb": "ee",
}


def flags_of(words):
    return [word.split("=")[0] for word in words if word.startswith("-")]


def rung_of(answer, given, seqs):
    """By the flags of an answer, whatever it says of itself. Graphs of more sequences than there are cost nothing."""
    if not answer["change"]:
        return "a"  # something is taken out, or another release
    pairs = dict(zip(answer["change"], answer["change"][1:]))
    return max("a" if flag.endswith("max_cudagraph_capture_size") and int(pairs[flag]) >= seqs else RUNGS.get(flag, "aa")[flag in given]
               for flag in flags_of(answer["change"]))


class Survey:
    def __init__(self, oomsight):
        self.oomsight, self.rungs, self.firsts, self.problems = oomsight, collections.Counter(), collections.Counter(), []
        self.cells = self.failing = self.answered = self.needs = self.replanned = self.dropped = 0

    def plan(self, words, engine, version, gpu, fixes):
        return self.oomsight.plan(words, gpu=gpu, engine="%s=%s" % (engine, version), hub=False, fixes=fixes).data

    def problem(self, cell, text):
        self.problems.append("%s: %s" % (" ".join(cell), text))

    def look(self, engine, version, gpu, model, asked):
        start = ["vllm", "serve", model] if engine == "vllm" else ["python3", "-m", "sglang.launch_server", "--model-path", model]
        cell = (engine, version, gpu, os.path.basename(model), *asked)
        try:
            plan = self.plan(start + asked, engine, version, gpu, True)
        except self.oomsight.OomsightError:
            return  # a model that cannot be planned
        self.cells += 1
        if plan["likely"] != "fails":
            return
        self.failing += 1
        self.needs += plan["needs"] is not None
        answers = plan["answers"] or ([] if plan["needs"] else plan["fixes"][:1])
        self.answered += bool(answers)
        if not answers and plan["needs"] is None:
            self.problem(cell, "no answer and no need")
        for index, answer in enumerate(answers):
            self.check(cell, engine, version, gpu, asked, answer, index == 0)
        by_flags = rung_of(answers[0], asked, plan["setup"]["max_num_seqs"]) if answers else "needs"
        rung = answers[0].get("rung") or by_flags if answers else "needs"
        if by_flags > rung and plan["phase"] not in ("arguments", "env"):  # there a flag is corrected
            self.problem(cell, "rung %s for %s" % (rung, answers[0]["change"]))
        self.rungs[engine, version, rung] += 1

    def check(self, cell, engine, version, gpu, asked, answer, first):
        names = flags_of(answer["change"])
        if len(set(names)) != len(names):
            self.problem(cell, "a flag twice: %s" % answer["change"])
        if first:
            self.firsts.update({"offload": any(f in OFFLOAD for f in names), "eager": any(f in EAGER for f in names),
                                "text": "--language-model-only" in names})
        if "--language-model-only" in names and "--limit-mm-per-prompt" in asked:
            self.dropped += 1
            self.problem(cell, "images were asked for and are dropped")
        words = shlex.split(answer["command"])
        release = answer.get("release") or version
        given = flags_of(words)
        if len(set(given)) != len(given):
            self.problem(cell, "a flag twice: %s" % answer["command"])
        if answer.get("release") and words[0] == "pip":  # the command behind the installation
            words = words[words.index("&&") + 1:]
        again = self.plan(words, engine, release, gpu, False)
        self.replanned += 1
        if again["likely"] != "starts":
            self.problem(cell, "does not start: %s" % answer["command"])
        elif answer["verdict"] == "fits" and again["verdict"] != "fits":
            self.problem(cell, "not certain: %s" % answer["command"])

    def report(self):
        share = 100 * (self.firsts["offload"] + self.firsts["eager"]) / max(1, self.answered)
        print("%d plans, %d likely fail: %d with an answer, %d with a stated need; %d answers planned again, %d problems"
              % (self.cells, self.failing, self.answered, self.needs, self.replanned, len(self.problems)))
        print("first: offload %d, eager %d (together %.1f %%), text only %d; images asked for and dropped %d"
              % (self.firsts["offload"], self.firsts["eager"], share, self.firsts["text"], self.dropped))
        for line in self.problems[:20]:
            print("  " + line)
        return bool(self.problems) or share >= 10 or self.failing == 0


def table(survey):
    columns = ["a", "b", "c", "d", "e", "needs"]
    yield "engine,release,failing," + ",".join(columns)
    for engine, version in sorted({key[:2] for key in survey.rungs}):
        counts = [survey.rungs[engine, version, rung] for rung in columns]
        yield "%s,%s,%d,%s" % (engine, version, sum(counts), ",".join(map(str, counts)))


def cells(models):
    for engine, versions in RELEASES.items():
        few = models if engine == "vllm" else models[::max(1, len(models) // FEW_MODELS)][:FEW_MODELS]
        index = 0
        for model in few:
            for gpu in GPUS if engine == "vllm" else FEW_GPUS:
                for version in versions:
                    yield engine, version, gpu, model, ASKED[engine][index % 4]
                    index += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("models")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--csv")
    args = parser.parse_args()
    os.environ["OOMSIGHT_LIBRARY"] = os.path.abspath(args.library)
    sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
    import oomsight
    survey = Survey(oomsight)
    models = sorted(os.path.join(args.models, name) for name in os.listdir(args.models) if os.path.isfile(os.path.join(args.models, name, "config.json")))
    every = list(cells(models))
    if args.sample:
        step = max(1, len(every) // args.sample) | 1  # an odd step: everything that is asked for comes up
        every = every[::step]
    for cell in every:
        survey.look(*cell)
    print("\n".join(table(survey)))
    if args.csv:
        with open(args.csv, "w", encoding="utf-8") as f:
            f.write("\n".join(table(survey)) + "\n")
    return survey.report()


if __name__ == "__main__":
    sys.exit(main())
