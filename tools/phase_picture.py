#!/usr/bin/env python3
"""Draw memory over the start-up phases, and what gpu_memory_utilization covers, from a plan: phase_picture.py BINARY [--write].
Without --write the picture is compared. Standard library only."""
import json
import os
import subprocess
import sys
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMAND = ["plan", "--offline", "--gpu", "4090", "--vllm", "0.32.0", "--json", "--", "vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", "16384"]
PHASES = {"weight_load": "loading weights", "profile_run": "profiling run", "cudagraph_profile": "profiling CUDA graphs", "kv_sizing": "KV cache sizing",
          "kv_alloc": "allocating the KV cache", "cudagraph_capture": "CUDA graph capture", "sampler_warmup": "sampler warm-up", "runtime_prefill": "serving a prompt"}
KINDS = {"CUDA context": "CUDA context", "weights": "weights", "KV cache": "KV cache", "trial KV cache": "KV cache", "one request of the longest length": "one request",
         "activation peak": "activations", "compiling": "activations", "activations": "activations", "logits and sampler": "activations",
         "CUDA graphs": "CUDA graphs", "trial graphs": "CUDA graphs", "graph estimate": "CUDA graphs"}
COLOURS = {"light": {"ink": "#1b2230", "dim": "#535d6d", "bg": "#ffffff", "line": "#d5dae3", "CUDA context": "#2a7b8c", "weights": "#3567c8", "KV cache": "#b4541a", "reserved": "#b9c7e6",
                     "one request": "#a8326b", "activations": "#2f7f55", "CUDA graphs": "#8a4bb0", "other": "#7a6a12"},
           "dark": {"ink": "#e7eaf0", "dim": "#a3adbd", "bg": "#12161c", "line": "#39414e", "CUDA context": "#61c3d6", "weights": "#7aa5f5", "KV cache": "#f0955a", "reserved": "#3d4c6b",
                    "one request": "#f07fb2", "activations": "#63c792", "CUDA graphs": "#c495e8", "other": "#d0bb4c"}}
LEFT, WIDTH, ROW, TOP, GIB = 190, 800, 34, 66, 2 ** 30


def text(x, y, words, fill, more=""):
    return '<text x="%.1f" y="%.1f" class="%s"%s>%s</text>' % (x, y, fill, more, escape(words))


def name(kind):
    return kind.replace(" ", "-")


def style():
    """Light, and dark where the reader's system is."""
    rules = lambda theme: "".join(".%s { fill: %s } " % (name(kind), value) for kind, value in COLOURS[theme].items()) + ".edge { stroke: %s } .frame { stroke: %s }" % (
        COLOURS[theme]["ink"], COLOURS[theme]["line"])
    return "<style>%s @media (prefers-color-scheme: dark) { %s }</style>" % (rules("light"), rules("dark"))


def picture(plan):
    total, budget = plan["gpu"]["total_bytes"], plan["budget_bytes"]
    phases = [p for p in plan["phases"] if p["phase"] in PHASES]
    at = lambda size: LEFT + (WIDTH - LEFT - 70) * size / total
    height, bottom = TOP + ROW * len(phases) + 62, TOP + ROW * len(phases)
    share = "%g" % plan["setup"]["gpu_memory_utilization"]
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="system-ui, sans-serif" font-size="13">' % (WIDTH, height),
           style(), "<title>Memory in each start-up phase of Qwen3-8B on an RTX 4090</title>", '<rect width="100%" height="100%" class="bg"/>',
           text(16, 24, "Qwen3-8B on an RTX 4090: memory in each phase of the start", "ink", ' font-weight="700" font-size="15"'),
           text(at(budget) - 6, 46, "gpu_memory_utilization %s: %.2f GiB" % (share, budget / GIB), "dim", ' text-anchor="end"')]
    for row, phase in enumerate(phases):
        y, x = TOP + ROW * row, LEFT
        out.append(text(16, y + 15, PHASES[phase["phase"]], "ink"))
        out.append('<rect x="%d" y="%d" width="%.1f" height="22" fill="none" class="frame"/>' % (LEFT, y, at(total) - LEFT))
        for hold in phase["holds"]:
            wide = at(hold["bytes"]) - LEFT
            out.append('<rect x="%.1f" y="%d" width="%.1f" height="22" class="%s"/>' % (x, y, wide, name(KINDS.get(hold["owner"], "other"))))
            x += wide
        out.append(text(WIDTH - 16, y + 15, "%.2f" % (phase["peak_bytes"] / GIB), "ink", ' text-anchor="end"'))
    for size, dash in ((budget, ' stroke-dasharray="5 4"'), (total, "")):
        out.append('<path d="M%.1f %d V%d" class="edge" stroke-width="2"%s/>' % (at(size), TOP - 14, bottom, dash))
    x = 16
    for kind in ("CUDA context", "weights", "activations", "CUDA graphs", "KV cache", "one request", "other"):
        out.append('<rect x="%d" y="%d" width="12" height="12" rx="2" class="%s"/>' % (x, bottom + 14, name(kind)))
        out.append(text(x + 17, bottom + 25, kind, "ink"))
        x += 36 + 7 * len(kind)
    out.append(text(16, bottom + 50, "GiB. Dashed: what the engine allows itself. What comes after sizing uses the rest of the device (%.2f)." % (total / GIB), "dim"))
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    plan = json.loads(subprocess.run([sys.argv[1], *COMMAND], capture_output=True, text=True, check=False).stdout)
    path = os.path.join(ROOT, "docs/pictures/phases.svg")
    drawn, kept = picture(plan), open(path, encoding="utf-8").read() if os.path.exists(path) else ""
    if "--write" in sys.argv[2:]:
        with open(path, "w", encoding="utf-8") as out:
            out.write(drawn)
        return 0
    if drawn != kept:
        print("docs/pictures/phases.svg is not what is drawn: tools/phase_picture.py BINARY --write")
    return int(drawn != kept)


if __name__ == "__main__":
    sys.exit(main())
