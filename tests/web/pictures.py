#!/usr/bin/env python3
"""Pictures of the reports for docs/pictures: pictures.py BINARY MODELS_DIR OUT_DIR. The reported cases and a healthy start,
light and dark, on a desk and on a phone, one in Chinese (where a font has its signs). Standard library only; the pictures are looked at before they are committed."""
import os
import subprocess
import sys
import tempfile

from browser import Browser

CASES = {
    "case-000": (["--vllm", "0.11.0", "--gpu", "A30x4", "--gpu-total", "23.50GiB"], "opt-2.7b",
                 ["--tensor-parallel-size", "4", "--gpu-memory-utilization", "0.8", "--max-num-batched-tokens", "8192"]),
    "case-001": (["--vllm", "0.19.1", "--gpu", "5090", "--gpu-total", "31.36GiB"], "Qwen3.6-27B-AWQ-INT4",
                 ["--gpu-memory-utilization", "0.8", "--kv-cache-dtype", "fp8", "--max-model-len", "16384", "--speculative-config",
                  '{"method": "mtp", "num_speculative_tokens": 2}', "--language-model-only"]),
    "case-004": (["--vllm", "0.21.0", "--gpu", "GB200x4", "--gpu-total", "184.31GiB"], "Qwen3-235B-A22B",
                 ["--tensor-parallel-size", "4", "--gpu-memory-utilization", "0.93", "--max-num-seqs", "1024", "--enable-sleep-mode"]),
    "healthy": (["--vllm", "0.11.0", "--gpu", "A30x4", "--gpu-total", "23.50GiB"], "opt-1.3b",
                ["--tensor-parallel-size", "4", "--gpu-memory-utilization", "0.8"]),
}


MATRICES = {"matrix": [], "matrix-diff": ["--diff", "0.11.0", "0.32.0"]}


def draw(browser, page, base, width):
    for dark in (False, True):
        for place, across, height in (("desk", width, 1150), ("phone", 390, 1200)):
            browser.open(page, across, dark=dark)
            browser.picture("%s-%s-%s.webp" % (base, place, "dark" if dark else "light"), height)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    binary, models, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    browser = Browser()
    with tempfile.TemporaryDirectory() as work:
        for name, (options, model, flags) in CASES.items():
            page = os.path.join(work, name + ".html")
            subprocess.run([binary, "plan", *options, "--format", "html", "--output", page, "--", "vllm", "serve",
                            os.path.join(models, model), *flags])
            draw(browser, page, os.path.join(out, name), 1000)
        options, model, flags = CASES["case-001"]
        page = os.path.join(work, "chinese.html")
        subprocess.run([binary, "plan", *options, "--lang", "zh", "--format", "html", "--output", page, "--", "vllm", "serve", os.path.join(models, model), *flags])
        browser.open(page, 1000)
        browser.picture(os.path.join(out, "case-001-chinese.webp"), 1150)
        for name, options in MATRICES.items():
            page = os.path.join(work, name + ".html")
            subprocess.run([binary, "matrix", "--offline", "--models", models, *options, "--format", "html", "--output", page,
                            os.path.join(os.path.dirname(os.path.abspath(__file__)), "matrix_pictures.yaml")])
            draw(browser, page, os.path.join(out, name), 1200)
    browser.close()


if __name__ == "__main__":
    main()
