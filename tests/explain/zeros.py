#!/usr/bin/env python3
"""A compressed log that begins with zero bytes, as a log does that was emptied while a program wrote it, is read like one that is not
compressed; and of an archive of which nothing can be read nobody says that there was no failure. usage: zeros.py BINARY"""
import bz2
import gzip
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ZEROS = (0, 1, 511, 512, 513, 1024, 4096, 1 << 20)
LINE = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
UNREADABLE = 3


def tool(*words):
    return (lambda data: subprocess.run(words, input=data, capture_output=True, check=True).stdout) if shutil.which(words[0]) else None


def tar(form):
    def pack(data):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=form) as t:
            info = tarfile.TarInfo("pod/0.log")
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
        return out.getvalue()
    return pack


def old_tar(data):
    """Of before POSIX: neither "ustar" nor what stands behind it."""
    block = bytearray(tar(tarfile.USTAR_FORMAT)(data))
    block[257:512] = bytes(255)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block[:512])
    return bytes(block)


def zipped(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z: z.writestr("pod/0.log", data)
    return out.getvalue()


PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": tool("zstd", "-c"), "lz4": tool("lz4", "-c")}
AROUND = {"plain": lambda data: data, "tar": tar(tarfile.USTAR_FORMAT), "pax": tar(tarfile.PAX_FORMAT), "GNU tar": tar(tarfile.GNU_FORMAT), "old tar": old_tar, "zip": zipped,
          "gz": gzip.compress, "tar.gz": lambda data: gzip.compress(tar(tarfile.USTAR_FORMAT)(data))}


def explain(binary, data, *more):
    done = subprocess.run([binary, "explain", "--json", "-", *more], input=data, capture_output=True, timeout=120, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.decode().splitlines()], done.stderr.decode()


def main():
    binary, bad, tried = sys.argv[1], [], 0

    def expect(what, good, *seen):
        nonlocal tried
        tried += 1
        if not good: bad.append("%s: %r" % (what, seen))

    packers = {name: pack for name, pack in PACKERS.items() if pack}
    print("skip %s: no such tool" % sorted(set(PACKERS) - set(packers)) if len(packers) < len(PACKERS) else "every tool is there")
    for count in ZEROS:
        log = bytes(count) + LINE
        bare = explain(binary, log)[1]  # of a line of 1 MiB less is read
        expect("%d zero bytes before a line" % count, len(bare) == 1 and bare[0]["numbers"]["tried_bytes"] == (2 << 30 if count <= 4096 else None), bare)
        for around, wrap in AROUND.items():
            for name, pack in {"none": lambda data: data, **packers}.items():
                code, answers, said = explain(binary, pack(wrap(log)))
                found = [(a["is_oom"], a["numbers"]["tried_bytes"]) for a in answers]
                expect("%d zero bytes, %s in %s" % (count, around, name), code == 1 and found == [(True, bare[0]["numbers"]["tried_bytes"])], code, found, said)
    for name, pack in packers.items():
        whole = pack(bytes(600) + LINE * 3)
        # Not one byte is to be had of the beginning of a compressed file.
        for length in (6, 8, 10, 12):
            code, answers, said = explain(binary, whole[:length])
            expect("%s cut to %d bytes" % (name, length), code == UNREADABLE and "damaged" in said and not answers, code, answers, said)
        # Wherever it is cut: found, or said to be damaged; never an answer that nothing was there.
        for length in range(14, len(whole), max(1, len(whole) // 12)):
            done = subprocess.run([binary, "explain", "-"], input=whole[:length], capture_output=True, timeout=120, check=False)
            expect("%s cut to %d of %d bytes" % (name, length, len(whole)), done.returncode in (0, 1, UNREADABLE) and b"damaged" in done.stdout + done.stderr, done)
        code, _, said = explain(binary, pack(b""))
        expect("%s of nothing is empty, not damaged" % name, code == 0 and not said, code, said)
    code, answers, said = explain(binary, gzip.compress(bytes(10240)))
    expect("zero bytes alone", code == 0 and not any(a["is_oom"] for a in answers), code, said)
    deep = LINE
    for _ in range(30): deep = gzip.compress(deep)
    code, answers, said = explain(binary, deep)
    expect("30 times over", code == UNREADABLE and "damaged" in said, code, said)
    for text in (b"BZhang started the engine\n", b"BZh9 is a name\n", b"PK is no archive\n"):
        code, answers, said = explain(binary, text + LINE)
        expect("letters that a wrapper begins with", code == 1 and any(a["is_oom"] for a in answers), text, code, said)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("good.log", LINE), ("cut.gz", gzip.compress(LINE)[:12])):
            with open(os.path.join(folder, name), "wb") as f: f.write(data)
        code, answers, said = explain(binary, b"", folder + "/good.log", folder + "/cut.gz")
        expect("one of several", code == UNREADABLE and "cut.gz" in said and any(a["is_oom"] for a in answers), code, said)
    print("\n".join(bad[:20]))
    print("%d inputs, %d wrong" % (tried, len(bad)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
