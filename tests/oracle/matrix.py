"""The version matrix: every installed engine through the same ways of starting. Prints a Markdown table.

    tests/oracle/matrix.py BINARY [--write docs/oracle.md] [VERSION...]"""
import os
import sys
import tempfile

import engines
import models

WAYS = [
    ("eager", "opt-1.3b", ["--gpu", "A30", "--outside", "400MiB"], ["--enforce-eager"]),
    ("compiled, graphs", "opt-1.3b", ["--gpu", "A30"], []),
    ("TP 2", "opt-1.3b", ["--gpu", "A30x2"], ["--tensor-parallel-size", "2", "--enforce-eager"]),
    ("MoE", "qwen3-30b-a3b", ["--gpu", "H100"], ["--enforce-eager", "--max-model-len", "8192"]),
    ("200B-class MoE", "qwen3-235b-a22b-rank", ["--gpu", "B200"], ["--enforce-eager", "--max-model-len", "8192"]),
    ("hybrid, quantised", "qwen3.6-27b-w4a16", ["--gpu", "H100"],
     ["--enforce-eager", "--language-model-only", "--max-model-len", "8192"]),
]


def gib(number):
    return "-" if number is None else "%.2f" % (number / 2**30)


def main():
    words = sys.argv[1:]
    target = None
    if "--write" in words:
        at = words.index("--write")
        target = words[at + 1]
        del words[at:at + 2]
    binary, wanted = os.path.abspath(words[0]), words[1:]
    found = engines.venvs()
    lines = ["| vLLM | way | verdict | weights GiB | KV tokens | backend | wall s | CPU s | largest process GiB |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    with tempfile.TemporaryDirectory() as folder:
        for version in wanted or found:
            for name, model, device, flags in WAYS:
                if version not in found:
                    continue
                command = ["vllm", "serve", models.write(folder, model)] + flags
                outcome = engines.dryrun(binary, found[version], device, command)
                r = outcome.report
                lines.append("| %s | %s | %s | %s | %s | %s | %.0f | %.0f | %.2f |" % (
                    version, name, r["verdict"] if r else "no report", gib(r and r["weights_bytes"]),
                    (r and r["kv"]["tokens"]) or "-", (r and r["attention_backend"]) or "-", outcome.seconds,
                    outcome.cpu_seconds, outcome.rss_bytes / 2**30))
                print(lines[-1], flush=True)
    if len(lines) == 2:
        print("no engine in", engines.VENVS)
        return engines.SKIP
    if target:
        with open(target, "w", encoding="utf-8") as f:
            f.write("# Starts without a GPU\n\nMade by `make oracle-full`: real engines on stand-in devices, from a config alone.\n\n")
            f.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
