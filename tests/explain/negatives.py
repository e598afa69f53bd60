#!/usr/bin/env python3
"""Nothing here is a lack of memory, and nothing here may be called one: negatives.py BINARY [--seed N] [--count N]

Backtraces that PyTorch made of other errors (tests/fixtures/backtraces.txt, recorded by --record PYTHON on the CPU), as they are and in the
dresses of a log; random bytes; logs of engines that serve, whose prompts hold the texts of memory errors; every page of docs/ and the
README. The texts of memory errors are then held against the same engine failing of them: that one is called so."""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECORD = os.path.join(ROOT, "tests/fixtures/backtraces.txt")
LINES, COLUMNS = 16, 500  # of each recorded backtrace

CASES = {
    "view": "torch.zeros(2).view(3)",
    "matmul": "torch.zeros(2,3) @ torch.zeros(4,5)",
    "index": "torch.zeros(3)[torch.tensor([7])]",
    "cat": "torch.cat([torch.zeros(2,3), torch.zeros(3,4)])",
    "dtype": "torch.zeros(2).to(torch.int8).cholesky()",
    "embedding": "torch.nn.functional.embedding(torch.tensor([9]), torch.zeros(4,2))",
    "conv": "torch.nn.functional.conv2d(torch.zeros(1,3,8,8), torch.zeros(4,5,3,3))",
    "reshape": "torch.empty(6).reshape(4,2)",
    "expand": "torch.zeros(3).expand(2,4)",
    "gather": "torch.gather(torch.zeros(2,2),3,torch.zeros(2,2,dtype=torch.long))",
    "resize_negative": "torch.empty(-3)",
    "storage_bounds": "torch.zeros(4).as_strided((8,),(1,))",
    "bad_stride": "torch.empty_strided((2,2),(-1,1))",
    "inplace": "x=torch.zeros(2,requires_grad=True); x.add_(1)",
    "backward": "torch.zeros(2,requires_grad=True).backward()",
    "script": "torch.jit.load('/nonexistent/file.pt')",
    "load": "open(__file__ + '.pt','wb').write(b'PK00not a zip'); torch._C.PyTorchFileReader(__file__ + '.pt')",
    "device": "torch.zeros(2, device='meta').cpu().item()",
    "cuda_none": "torch.zeros(2, device='cuda')",
    "memory_format": "torch.zeros(2,3).contiguous(memory_format=torch.channels_last)",
    "pin": "torch.zeros(2).pin_memory()",
    "alloc_type": "torch.zeros(2).index_add(0, torch.tensor([5]), torch.ones(1))",
    "one_hot": "torch.nn.functional.one_hot(torch.tensor([5]), 3)",
    "scatter": "torch.zeros(3).scatter_(0, torch.tensor([5]), 1.0)",
    "linalg": "torch.linalg.inv(torch.zeros(2,2))",
    "fft": "torch.fft.fft(torch.zeros(0))",
    "quant": "torch.quantize_per_tensor(torch.zeros(2), 0.0, 0, torch.quint8).add(1)",
    "sdpa": "torch.nn.functional.scaled_dot_product_attention(torch.zeros(1,2,3),torch.zeros(1,2,4),torch.zeros(1,2,5))",
    "layer_norm": "torch.nn.functional.layer_norm(torch.zeros(2,3),(4,))",
    "mmap": "torch.from_file('/nonexistent', size=10)",
    "dist": "import torch.distributed as d; d.init_process_group('gloo', init_method='tcp://127.0.0.1:1', rank=1, world_size=2, timeout=__import__('datetime').timedelta(seconds=1))",
    "store": "import torch.distributed as d; s=d.TCPStore('127.0.0.1',0,1,True); s.set_timeout(__import__('datetime').timedelta(milliseconds=50)); s.get('x')",
    "abort": "import os; os.abort()",
    "segv": "import ctypes; ctypes.string_at(0)",
    "custom": "torch.library.define('t::f','(Tensor x) -> Tensor'); torch.ops.t.f(torch.zeros(1))",
    "nested": "torch.nested.nested_tensor([torch.zeros(2),torch.zeros(3)]).view(5)",
    "bincount": "torch.bincount(torch.tensor([-1]))",
    "multinomial": "torch.multinomial(torch.tensor([-1.0, 2.0]), 1)",
    "sort": "torch.zeros(2,2).sort(dim=4)",
    "normal": "torch.normal(torch.zeros(2), torch.tensor([-1.0,-1.0]))",
}

OOM = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.52 GiB of which 1.00 GiB is free. "
       "Including non-PyTorch memory, this process has 22.50 GiB memory in use.")
FAILURES = [OOM, "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
            "RuntimeError: CUDA error: out of memory", "cudaMalloc failed: out of memory", "my server was OOMKilled, exit code 137",
            "Traceback (most recent call last):\n  File \"/x/vllm/v1/worker/gpu_worker.py\", line 9, in load_model\n" + OOM,
            "failed to allocate a buffer of 20 GiB: not enough memory", "Decode out of memory. Try to lower your batch size.",
            "To serve at least one request with the models's max seq len (40960), (5.62 GiB KV cache is needed, which is larger than the available KV cache memory (4.4 GiB).",
            "std::bad_alloc", "CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"]
READY = ["INFO 11-16 10:00:00 [api_server.py:1] vLLM API server version 0.19.1", "INFO 11-16 10:00:01 [core.py:1] Application startup complete."]
SERVES = "INFO 11-16 10:%02d:30 [loggers.py:1] Engine 000: Avg prompt throughput: 12.0 tokens/s, Running: 1 reqs, GPU KV cache usage: 1.0%%"
FRAME = re.compile(r"/(?:tmp|root|home)/\S*?(?=Python-|site-packages/|lib/python|case_)")


def record(python):
    """Run each case on the CPU and keep the beginning of what it says."""
    texts = []
    for name, code in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "case_%s.py" % name)
            with open(path, "w", encoding="utf-8") as f:
                f.write("import torch, faulthandler\nfaulthandler.enable()\n" + code.replace("; ", "\n") + "\n")
            env = dict(os.environ, TORCH_SHOW_CPP_STACKTRACES="1", CUDA_VISIBLE_DEVICES="")
            run = subprocess.run([python, path], env=env, capture_output=True, text=True, errors="replace", timeout=300, check=False)
        texts.append((name, run.stdout + run.stderr))
    write(texts)


def write(texts):
    with open(RECORD, "w", encoding="utf-8") as f:
        for name, text in texts:
            lines = [FRAME.sub("/", line)[:COLUMNS].rstrip() for line in text.splitlines() if line.strip() and "Module.cpp" not in line]
            f.write("==== %s\n%s\n" % (name, "\n".join(lines[:LINES])))


def recorded():
    with open(RECORD, encoding="utf-8") as f:
        parts = re.split(r"^==== (\w+)\n", f.read(), flags=re.M)[1:]
    return list(zip(parts[::2], parts[1::2]))


def dresses(text):
    """The same in the dresses of a log."""
    lines = text.splitlines()
    frames = ["frame #%d: %s + 0x%x (0x7f%010x in /x/torch/lib/libtorch_cpu.so)" % (i, re.sub(r"^#\d+ | from \S+$", "", line), 16 * i, i)
              for i, line in enumerate(lines) if line.startswith("#")]
    error = next((line for line in lines if re.match(r"\w+Error: ", line)), "RuntimeError: invalid argument")
    yield "as it is", text
    yield "labelled", "\n".join("(EngineCore pid=7) ERROR 11-16 10:00:00 [core.py:1] " + line for line in lines)
    yield "older frames", "\n".join([error, "Exception raised from check at /w/c10/util/Exception.cpp:1 (most recent call first):"] + frames)
    yield "watchdog", "\n".join(
        ["[rank1]:[E1116 10:00:00.1 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, "
         "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out."] + frames +
        ["terminate called after throwing an instance of 'c10::DistBackendError'", "  what():  [PG ID 0 Rank 1] Process group watchdog thread terminated with exception: "
         "CUDA error: an illegal memory access was encountered"] + frames + ["Fatal Python error: Aborted"])
    yield "one line", "ERROR 11-16 10:00:00 [core.py:1] " + repr(error + "\n" + "\n".join(frames))


def binaries(seed, count):
    for i in range(count):
        rng = random.Random("%s/%d" % (seed, i))
        data = bytearray(rng.randbytes(rng.choice([700, 20000, 300000])))
        for word in (b"\noom ", b"&oom~", b"out of memory", b"\nKilled\n", OOM.encode()):
            at = rng.randrange(len(data) - len(word) if len(data) > len(word) else 1)
            data[at:at + len(word)] = word
        yield "random bytes %d" % i, bytes(data)


def request(rng, number, text):
    """A line that logs what a user sent, as an engine, a proxy or a client writes it."""
    escaped = json.dumps(text)
    body = json.dumps({"model": "m", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}], "max_tokens": 16})
    return rng.choice([
        "INFO 11-16 10:01:00 [logger.py:43] Received request chatcmpl-%d: prompt: %r, params: SamplingParams(n=1, max_tokens=16), prompt_token_ids: None, lora_request: None." % (number, text),
        "DEBUG 11-16 10:01:00 [logger.py:50] Request cmpl-%d details: prompt: %r, prompt_token_ids: [1, 2], prompt_embeds shape: None." % (number, text),
        "INFO 11-16 10:01:00 [logger.py:43] Received request cmpl-%d: prompt: '%s', params: SamplingParams(n=1, max_tokens=16), lora_request: None." % (number, text.replace("'", "")),
        "[2026-11-16 10:01:00] Receive: obj=GenerateReqInput(rid='%d', text=%r, input_ids=None, sampling_params={'max_new_tokens': 16})" % (number, text),
        "[2026-11-16 10:01:00] Finish: obj=GenerateReqInput(rid='%d', text=%r), out={'text': %r, 'meta_info': {'id': '1'}}" % (number, text, text),
        "POST /v1/chat/completions body=" + body, body, "request: " + json.dumps(body),
        "messages=[{'role': 'user', 'content': %r}]" % text, '{"prompt": %s, "max_tokens": 8}' % escaped,
        "Prompt: %r, Generated text: %r" % (text, text),
        json.dumps(json.loads(body), indent=1)])


def prompts(seed, count):
    for i in range(count):
        rng = random.Random("%s/prompt/%d" % (seed, i))
        lines = list(READY)
        for number in range(rng.randrange(1, 5)):
            failure = rng.choice(FAILURES)
            text = rng.choice(["%s", "Why does my server say this: %s ?", "I get\n%s\nwhat's wrong?", "a" * 20000 + " %s", "it's broken\n\n%s\n", "\"%s\", they said"]) % failure
            lines += [request(rng, number, text), SERVES % number, SERVES % (number + 1)]
        yield "prompts %d" % i, "\n".join(lines + [SERVES % n for n in range(10, 14)]) + "\n"


def answers(binary, folder, text):
    path = os.path.join(folder, "input")
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    run = subprocess.run([binary, "explain", "--offline", "--json", path], capture_output=True, text=True, check=False, timeout=120)
    return [json.loads(line) for line in run.stdout.splitlines()]


def pages():
    yield "README.md"
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        for name in sorted(names):
            if name.endswith((".md", ".1")):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?")
    parser.add_argument("--seed", default="7")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--record", metavar="PYTHON")
    given = parser.parse_args()
    if given.record:
        return record(given.record)
    wrong, seen = [], {}
    with tempfile.TemporaryDirectory() as folder:
        def never(kind, name, text):
            seen[kind] = seen.get(kind, 0) + 1
            for one in answers(given.binary, folder, text):
                if one["is_oom"]:
                    wrong.append("%s: %s (%s)" % (name, one["rules"]["verdict"], [e["text"][:100] for e in one["evidence"] if e["decides"]][:1]))
                if kind == "prompts" and any(re.search(r"[Oo]ut of memory|2\.00 GiB|bad_alloc", e["text"]) for e in one["evidence"]):
                    wrong.append("%s: what the user wrote is evidence" % name)
        backtraces = recorded()
        if len(backtraces) < 40:
            wrong.append("%d backtraces are recorded, 40 are wanted" % len(backtraces))
        for name, text in backtraces:
            for dress, dressed in dresses(text):
                never("backtraces", "backtrace %s, %s" % (name, dress), dressed + "\n")
        for name, text in binaries(given.seed, given.count):
            never("binary files", name, text)
        for name, text in prompts(given.seed, given.count):
            never("prompts", name, text)
        for page in pages():
            with open(os.path.join(ROOT, page), "rb") as f:
                never("pages", page, f.read())
        # The same texts by the engine itself: whoever is deaf to all of them passes the rest as well.
        for failure in FAILURES[:4]:
            lines = READY + ["Traceback (most recent call last):", "  File \"/x/vllm/v1/worker/gpu_worker.py\", line 9, in execute_model"] + failure.splitlines()
            if not any(one["is_oom"] for one in answers(given.binary, folder, "\n".join(lines) + "\n")):
                wrong.append("not called out of memory: %s" % failure[:80])
    for line in wrong:
        print(line)
    print("negatives: %s; %d wrong" % (", ".join("%d %s" % (count, kind) for kind, count in seen.items()), len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
