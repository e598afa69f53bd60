#!/usr/bin/env python3
"""A page per model family: which command starts which model on which GPU, as plan answers: recipes.py BINARY FOLDER [FAMILY ...]

Families are the architectures of the built-in models; a page has the most named models of one (tools/catalogue.ranked.txt). Of each GPU the
smallest number of cards stands there on which the command starts, as it is or changed as plan's first answer says. Planned, not run."""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GPUS = ("5060ti", "3090", "4090", "5090", "l4", "l40s", "pro-6000", "a100-80gb", "h100", "h200", "b200")
COUNTS, MODELS_MOST, BAR = (1, 2, 4, 8), 3, 20
FEW_BITS = re.compile(r"awq|gptq|fp8|int[48]|w[48]a|4bit|8bit|nvfp4|mxfp4|bnb|quantized", re.I)
ENGINES = {"vllm": ("vLLM", "vllm serve %s", "--tensor-parallel-size", "https://docs.vllm.ai/en/stable/models/supported_models/"),
           "sglang": ("SGLang", "sglang serve --model-path %s", "--tp-size", "https://docs.sglang.ai/supported_models/generative_models.html")}


def ask(binary, *words):
    done = subprocess.run([binary, *words], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout.startswith("{") else None


def families(binary):
    """{architecture: its unquantized models, the most named first}"""
    with open(os.path.join(ROOT, "tools/catalogue.ranked.txt"), encoding="utf-8") as f:
        ranked = [line.strip() for line in f if line.strip() and line[0] != "#"]
    known = {row["id"] for row in ask(binary, "models", "--json")["models"]}
    wanted = [i for i in ranked if i in known and not FEW_BITS.search(i)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda i: ask(binary, "models", "--json", i)["models"], wanted))
    found = {}
    for name, listed in zip(wanted, rows):
        for row in listed:
            if row["id"] == name and row.get("architecture"):
                found.setdefault(row["architecture"], []).append(name)
    return {family: names[:MODELS_MOST] for family, names in found.items()}


def bar(plan):
    """The memory of one GPU: weights, what running takes, KV cache, free."""
    total = plan["gpu"]["total_bytes"]
    weights, budget = plan["weights_bytes"], min(plan["budget_bytes"] or total, total)
    cache = min(max(plan["kv"]["available_bytes"] or 0, 0), budget)
    cells = [round(BAR * part / total) for part in (weights, max(budget - weights - cache, 0), cache)]
    return ("█" * cells[0] + "▓" * cells[1] + "▒" * cells[2]).ljust(BAR, "·")[:BAR]


def recipe(binary, engine, model, gpu):
    """(cards, command, plan of that command) or None"""
    _, start, split, _ = ENGINES[engine]
    for count in COUNTS:
        words = shlex.split(start % model) + ([split, str(count)] if count > 1 else [])
        for _ in range(2):  # as it is, then as the first answer changes it
            plan = ask(binary, "plan", "--offline", "--json", "--gpu", "%sx%d" % (gpu, count), "--", *words)
            if not plan or plan["likely"] == "unknown":
                break
            if plan["likely"] == "starts":
                return count, shlex.join(words), plan
            answer = next(iter(plan["answers"]), {}).get("command")
            if not answer:
                break
            words = shlex.split(answer)
    return None


def rows(binary, engine, model):
    """The release, then the rows."""
    release = None
    for gpu in GPUS:
        found = recipe(binary, engine, model, gpu)
        if not found:
            continue
        count, command, plan = found
        if not release:
            release = plan["engine"]["version"]
            yield release
        tokens = plan["kv"]["tokens"] or 0
        length = min(plan["setup"]["max_model_len"] or 0, tokens)  # SGLang also starts with a smaller pool
        name = re.sub("^NVIDIA (GeForce )?", "", plan["gpu"]["name"])
        yield "| %s | `%s` | %s | %s | `%s` |" % (("%d x " % count if count > 1 else "") + name, command, "{:,}".format(length),
                                                  "{:,}".format(min(tokens // 8192, plan["setup"]["max_num_seqs"] or tokens)), bar(plan))


def page(binary, family, models, commit):
    title = re.sub(r"For[A-Z]\w*$|LMHeadModel$|Model$", "", family) or family
    lines = ["# " + title, "", "Commands that start `%s` models, **planned, not run**, by oomsight %s. Context is the longest request; the next column has how "
             "many requests of 8,192 tokens the KV cache holds. █ weights, ▓ what running takes, ▒ KV cache, · not used." % (family, commit), ""]
    for model in models:
        lines += ["## " + model, "", "[%s on Hugging Face](https://huggingface.co/%s)" % (model, model), ""]
        for engine, (shown, _, _, link) in ENGINES.items():
            table = list(rows(binary, engine, model))
            if table:
                lines += ["### %s with %s %s" % (model.split("/")[-1], shown, table.pop(0)), "", "| GPU | command | context | requests | memory |", "| --- | --- | ---: | ---: | --- |", *table,
                          "", "[Models of %s](%s)" % (shown, link), ""]
    return title, "\n".join(lines) if any(line.startswith("| ") for line in lines) else None


def write(binary, folder, wanted=()):
    """The pages and their list; returns {title: file}."""
    os.makedirs(folder, exist_ok=True)
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=False).stdout.strip() or "of this build"
    known, written = families(binary), {}
    chosen = [f for f in known if not wanted or f in wanted]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for family, (title, text) in zip(chosen, pool.map(lambda f: page(binary, f, known[f], commit), chosen)):
            if text:
                name = re.sub(r"[^a-z0-9]+", "-", family.lower()) + ".md"
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(text + "\n")
                written[title + (" (%s)" % family if title in written else "")] = name
    with open(os.path.join(folder, "index.md"), "w", encoding="utf-8") as f:
        f.write("# Recipes\n\nWhich command starts which model on which GPU, by family. Each is planned with the built-in model sizes, not run.\n\n"
                + "".join("- [%s](%s): %s\n" % (title, name, ", ".join(known[next(k for k in known if re.sub(r"[^a-z0-9]+", "-", k.lower()) + ".md" == name)]))
                          for title, name in sorted(written.items(), key=lambda item: item[0].lower())))
    return written


if __name__ == "__main__":
    print("recipes: %d families" % len(write(os.path.abspath(sys.argv[1]), sys.argv[2], set(sys.argv[3:]))))
