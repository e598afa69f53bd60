#!/usr/bin/env python3
"""One failure in every wrapper and log format people send: the same verdict and figures each time. usage: wrappers.py BINARY"""
import bz2
import gzip
import io
import json
import lzma
import shutil
import subprocess
import sys
import tarfile
import zipfile

LINES = ["(Worker_TP%d pid=7%d) ERROR 11-15 00:00:00 [multiproc_executor.py:866] " + rest for rest in (
    "Traceback (most recent call last):", '  File "/usr/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 381, in load_model',
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 232.00 MiB. GPU 0 has a total capacity of 23.57 GiB of which 154.25 MiB is free. Of the "
    "allocated memory 22.88 GiB is allocated by PyTorch, and 188.29 MiB is reserved by PyTorch but unallocated.")]
LOG = [line % (rank, rank) for line in LINES for rank in (0, 1)]  # interleaved ranks
TEXT = "".join(line + "\n" for line in LOG).encode()


def tar(mode, data=TEXT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as t:
        for name, content in (("logs/empty.log", b""), ("logs/vllm.log", data)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            t.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        z.writestr("pod/vllm.log", TEXT)
    return out.getvalue()


def tool(name, *options):
    return subprocess.run([name, *options], input=TEXT, capture_output=True, check=True).stdout if shutil.which(name) else None


def each(form):
    return "".join(form(line) + "\n" for line in LOG).encode()


CASES = {
    "plain": TEXT, "gz": gzip.compress(TEXT), "bz2": bz2.compress(TEXT), "xz": lzma.compress(TEXT), "zst": tool("zstd", "-c"), "lz4": tool("lz4", "-c"),
    "zip": zipped(zipfile.ZIP_DEFLATED), "zip, stored": zipped(zipfile.ZIP_STORED), "tar": tar("w"), "tar.gz": tar("w:gz"), "tar.xz": tar("w:xz"),
    "gz in a tar.bz2": tar("w:bz2", gzip.compress(TEXT)),
    "docker": each(lambda l: json.dumps({"log": l + "\n", "stream": "stderr", "time": "2026-11-15T00:00:00.000000001Z"})),
    "CRI": each(lambda l: "2026-11-15T00:00:00.000000001Z stderr F " + l),
    "CRI, partial": each(lambda l: "2026-11-15T00:00:00.000000001Z stderr P " + l[:70] + "\n2026-11-15T00:00:00.000000001Z stderr F " + l[70:]),
    "journald JSON": each(lambda l: json.dumps({"__REALTIME_TIMESTAMP": "1", "PRIORITY": "3", "MESSAGE": l})),
    "journald export": each(lambda l: "__REALTIME_TIMESTAMP=1\nPRIORITY=3\nMESSAGE=" + l + "\n"),
    "JSON lines": each(lambda l: json.dumps({"level": "error", "message": l, "logger": "vllm"})),
    "Ray": each(lambda l: "(EngineCoreActor pid=9, ip=10.0.0.2) " + l),
    "Windows": TEXT.replace(b"\n", b"\r\n"),
    "progress bars": b"Loading safetensors checkpoint shards:  50% 1/2\rLoading safetensors checkpoint shards: 100% 2/2\r" + TEXT,
    "issue body": b"### Bug\n\n<details>\n\n```text\n" + TEXT + b"```\n\n</details>\n",
    "invalid UTF-8": b"\xff\xfe\x80 junk\n" + TEXT.replace(b"Traceback", b"\xc3Traceback"),
    "UTF-16, as PowerShell redirects": TEXT.decode().encode("utf-16"),
    "UTF-16, the other way round": b"\xfe\xff" + TEXT.decode().encode("utf-16-be"),
    "Loki's answer": json.dumps({"status": "success", "data": {"resultType": "streams", "result": [
        {"stream": {"pod": "a"}, "values": [[str(17 + i), line] for i, line in enumerate(TEXT.decode().splitlines())]}]}}).encode(),
    "CloudWatch's answer": json.dumps({"events": [{"timestamp": i, "message": line} for i, line in enumerate(TEXT.decode().splitlines())]}).encode(),
    "a list of records": json.dumps([{"textPayload": line, "severity": "ERROR"} for line in TEXT.decode().splitlines()]).encode(),
    "UTF-8 with a mark": b"\xef\xbb\xbf" + TEXT,
}


def main():
    bad = 0
    for name, data in CASES.items():
        if data is None:
            print("skip", name)
            continue
        run = subprocess.run([sys.argv[1], "explain", "--json", "-"], input=data, capture_output=True, check=False)
        answers = [json.loads(line) for line in run.stdout.decode().splitlines()]
        found = [a for a in answers if a["is_oom"]]
        ok = (len(found) == 1 and found[0]["phase"] == "weight_load" and found[0]["numbers"]["tried_bytes"] == 232 << 20
              and found[0]["numbers"]["torch_allocated_bytes"] == round(22.88 * 2**30) and {r["rank"] for r in found[0]["ranks"]} >= {"TP0", "TP1"}
              and all(sum(row["bytes"] for row in r["ledger"]) > 0 for r in found[0]["ranks"]))
        bad += not ok
        if not ok:
            print("wrong:", name, [(a["is_oom"], a["phase"], a["numbers"]["tried_bytes"], [r["rank"] for r in a["ranks"]]) for a in answers])
    print("%d wrappers and formats, %d wrong" % (len(CASES), bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
