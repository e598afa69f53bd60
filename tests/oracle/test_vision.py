"""Models that take images start on a device that is not there and answer images; one that takes sound starts. Exit 77 without an engine.

    tests/oracle/test_vision.py BINARY [--vllm VERSION] [MODEL...]"""
import json
import os
import subprocess
import sys
import tempfile

import engines

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {"llava": True, "qwen3_vl": True, "gemma3": True, "whisper": False}  # does it take an image?


def start(binary, folder, model, image):
    load = ["--load", "4:16:4,image=300x200"] if image else []
    length = ["--max-model-len", "4096"] if image else []
    env = dict(os.environ, PATH=os.path.join(folder, "bin") + ":" + os.environ["PATH"], HF_HUB_OFFLINE="1")
    command = [binary, "dryrun", "--json", "--gpu", "L4", *load, "--", "vllm", "serve", model, "--enforce-eager", "--gpu-memory-utilization", "0.3", *length]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def main():
    words = sys.argv[2:]
    version = words[words.index("--vllm") + 1] if "--vllm" in words else None
    names = [word for word in words if word in MODELS] or list(MODELS)
    found = {v: f for v, f in engines.venvs().items() if v == version or version is None and v in ("0.24.0", "0.32.0")}
    if not found:
        print("no engine in", engines.VENVS)
        return engines.SKIP
    failed = 0
    for release, folder in sorted(found.items()):
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([os.path.join(folder, "bin", "python"), os.path.join(HERE, "vision_models.py"), scratch, *names], check=True, capture_output=True)
            for name in names:
                done = start(os.path.abspath(sys.argv[1]), folder, os.path.join(scratch, name), MODELS[name])
                report = json.loads(done.stdout or "{}")
                well = report.get("verdict") == "fits" and (not MODELS[name] or report["load"]["answered"] == 4)
                if not well and "ImportError: cannot import name" in done.stderr:
                    print("skip %s on %s: this engine cannot import the model from its own transformers" % (name, release), flush=True)
                    continue
                failed += not well
                print("%s %s on %s" % ("ok  " if well else "FAIL", name, release), flush=True)
                if not well:
                    print(done.stderr[-3000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
