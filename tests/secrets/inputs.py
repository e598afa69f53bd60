"""Inputs of every kind with words of somebody's choice put into every place that takes words, and every command over them."""
import json
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(ROOT, "tests", "fixtures")
OOM = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.56 GiB. GPU 0 has a total capacity of 23.52 GiB of which 957.12 MiB is free. "
       "Including non-PyTorch memory, this process has 22.57 GiB memory in use.")


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    return path


def log_of(lines):
    """A failing start whose deciding lines carry `lines`, each in its turn."""
    out = []
    for line in lines:
        out += ["INFO 01-02 03:04:05 [api_server.py:1] vLLM API server version 0.19.1",
                "INFO 01-02 03:04:05 [utils.py:233] non-default args: {'model': 'org/m', 'max_model_len': 8192, %s}" % line,
                "INFO 01-02 03:04:06 [gpu_model_runner.py:4] Starting to load model org/m %s..." % line,
                "INFO 01-02 03:04:07 [worker.py:1] Available KV cache memory: 1.00 GiB " + line,
                "ERROR 01-02 03:04:09 [core.py:2] EngineCore failed to start. " + line,
                "ERROR 01-02 03:04:09 [core.py:2]   File \"/x.py\", line 3, in load_model  # %s" % line,
                "ERROR 01-02 03:04:09 [core.py:2] " + OOM + " " + line, ""]
    return "\n".join(out)


def model_in(folder, name, **changes):
    path = os.path.join(folder, name)
    shutil.copytree(os.path.join(FIXTURES, "models", "small-llama"), path)
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    config.update(changes)
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    return path


def run(binary, words, stdin=b"", env=None, cwd=None):
    own = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "HF_HUB_OFFLINE": "1", **{n: v for n, v in os.environ.items() if n.endswith("SAN_OPTIONS")}}
    own.update(env or {})
    made = subprocess.run([binary] + [os.fsencode(word) for word in words], input=stdin, env=own, cwd=cwd, capture_output=True, timeout=120)
    return made.returncode, made.stdout + b"\n" + made.stderr
