#!/usr/bin/env python3
"""The static folder of the page: make_app.py OOMSIGHT_WASM OUT_DIR. Copies web/app, puts the program beside it and the names of the
catalogue that is in it, and writes the list of files into the service worker. Fails when what a browser loads is more than 1 MB, compressed. Standard library only."""
import gzip
import hashlib
import json
import pathlib
import shutil
import sys

MOST = 1 << 20


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, out = pathlib.Path(__file__).resolve().parent.parent, pathlib.Path(sys.argv[2])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    files = {path.name: path.read_bytes() for path in sorted((root / "web" / "app").iterdir()) if path.is_file()}
    files["oomsight.wasm"] = pathlib.Path(sys.argv[1]).read_bytes()
    files["models.json"] = json.dumps(sorted(json.loads((root / "data" / "catalogue.json").read_text()))).encode()
    worker = files.pop("sw.js").decode()
    digest = hashlib.sha256(b"".join(name.encode() + b"\0" + files[name] for name in sorted(files))).hexdigest()[:16]
    files["sw.js"] = worker.replace("@NAME@", "oomsight-" + digest).replace("@FILES@", json.dumps(sorted(files))).encode()
    packed = 0
    for name in sorted(files):
        (out / name).write_bytes(files[name])
        size = len(gzip.compress(files[name], 9, mtime=0))
        packed += size
        print("%9d  %8d gzip  %s" % (len(files[name]), size, name))
    print("%s: %d files, %d bytes, %d compressed" % (out, len(files), sum(map(len, files.values())), packed))
    return packed > MOST


if __name__ == "__main__":
    sys.exit(main())
