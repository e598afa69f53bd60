#!/usr/bin/env python3
"""Pack a portable build into one wheel: make_wheel.py BUILD_DIR OUT_DIR [TAG]

Library, command and stand-ins lie inside the package; what goes to scripts starts the command there (cli/launcher). For macOS and
Windows that is the command itself, with the library inside. One wheel serves every
Python, because the binding is ctypes. Equal builds give equal bytes: fixed order, fixed times, no path of this machine.
What the package is called, says of itself and plugs into stands in pyproject.toml.
TAG is the platform of a build for another processor, which comes
stripped and with the libraries of subprojects/. Standard library and strip only."""
import base64
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile

import sbom

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HERE = "manylinux_2_17_x86_64"


def read(*parts):
    with open(os.path.join(*parts), "rb") as f:
        return f.read()


PROJECT = tomllib.loads(read(ROOT, "pyproject.toml").decode())["project"]


def metadata(platform):
    rows = [("Metadata-Version", "2.4"), ("Name", PROJECT["name"]), ("Version", version()), ("Summary", PROJECT["description"]),
            ("License-Expression", PROJECT["license"]), ("License-File", "LICENSE"), ("Author", PROJECT["authors"][0]["name"]), ("Keywords", ",".join(PROJECT["keywords"]))]
    rows += [("Classifier", "Operating System :: " + system(platform) if row.startswith("Operating") else row) for row in PROJECT["classifiers"]]
    rows += [("Requires-Python", PROJECT["requires-python"]), ("Description-Content-Type", "text/markdown")]
    return "".join("%s: %s\n" % row for row in rows) + "\n"


def description():
    """The README where nothing stands beside it: what it links in the source is named, a picture of it is left out."""
    text = re.sub(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n*", "", read(ROOT, "README.md").decode())
    return re.sub(r"\[([^\]]*)\]\((?!https?:|#)[^)]*\)", r"\1", text)


def stripped(path):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strip", "--strip-unneeded", "-o", out.name, path], check=True)
        return read(out.name)


def version():
    told = sbom.version()
    if '__version__ = "%s"' % told not in read(ROOT, "bindings", "python", "oomsight", "__init__.py").decode():
        sys.exit("make_wheel.py: bindings/python/oomsight/__init__.py has another version than meson.build (%s)" % told)
    return told


def system(platform):
    return "Microsoft :: Windows" if platform.startswith("win") else "MacOS" if platform.startswith("macosx") else "POSIX :: Linux"


def names(platform):
    """What the build calls the command and the library."""
    if platform.startswith("win"):
        return "oomsight.exe", "liboomsight-0.dll"
    return "oomsight", "liboomsight.0.dylib" if platform.startswith("macosx") else "liboomsight.so.0"


def stand_ins(build, elf):
    """For engines, which are built for glibc only."""
    files = {}
    for name in ("liboomsight-device.so", "liboomsight-guard.so", "nvidia-smi"):
        files["oomsight/stand-ins/" + name] = (elf(os.path.join(build, "shim", name)), True)
    for major in ("cuda12", "cuda13"):
        for path in sorted(glob.glob(os.path.join(build, "shim", major, "lib*.so*"))):
            if os.path.isfile(path) and (re.search(r"\.so\.\d+$", path) or (path.endswith(".so") and not os.path.islink(path))):
                files["oomsight/stand-ins/%s/%s" % (major, os.path.basename(path))] = (elf(path), True)
    for name in sorted(map(os.path.basename, glob.glob(os.path.join(ROOT, "shim", "python", "*.py")))):
        files["oomsight/stand-ins/python/" + name] = (read(ROOT, "shim", "python", name), False)
    return files


def contents(build, info, data, platform):
    """Every file: name in the wheel -> (bytes, executable)."""
    files = {}
    elf = stripped if platform == HERE else read
    package = os.path.join(ROOT, "bindings", "python", "oomsight")
    for path in sorted(glob.glob(os.path.join(package, "**", "*"), recursive=True)):
        if path.endswith((".py", "py.typed")):
            files["oomsight/" + os.path.relpath(path, package)] = (read(path), False)
    command, library = names(platform)
    files["oomsight/lib/" + library] = (elf(os.path.join(build, "src", library)), True)
    linked = "linux_" in platform
    if linked:
        files["oomsight/bin/" + command] = (elf(os.path.join(build, "cli", command)), True)
    files[data + "/scripts/" + command] = (elf(os.path.join(build, "cli", "launcher" if linked else "", command)), True)
    if platform.startswith("manylinux"):
        files.update(stand_ins(build, elf))
    for path in sorted(glob.glob(os.path.join(ROOT, "cli", "man", "*.1"))):
        if not platform.startswith("win"):
            files[data + "/data/share/man/man1/" + os.path.basename(path)] = (read(path), False)
    files[info + "/METADATA"] = ((metadata(platform) + description()).encode(), False)
    files[info + "/WHEEL"] = (("Wheel-Version: 1.0\nGenerator: oomsight make_wheel\nRoot-Is-Purelib: false\nTag: py3-none-%s\n" % platform).encode(), False)
    files[info + "/entry_points.txt"] = ("\n".join("[%s]\n%s" % (group, "".join("%s = %s\n" % pair for pair in names.items()))
                                                   for group, names in PROJECT["entry-points"].items()).encode(), False)
    files[info + "/licenses/LICENSE"] = (read(ROOT, "LICENSE"), False)
    if platform == HERE:
        found = sbom.packages(build)
        bill, texts = sbom.document(found), sbom.licence_texts(found)
    else:
        bill, texts = sbom.wrapped()
    for name, text in texts.items():
        files[info + "/licenses/" + name] = (text, False)
    files[info + "/sboms/oomsight.cdx.json"] = (bill, False)
    return files


def digest(text):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    build, out, platform = (sys.argv[1:] + [HERE])[:3]
    name = "oomsight-" + version()
    info, data = name + ".dist-info", name + ".data"
    try:
        files = contents(build, info, data, platform)
    except sbom.Missing as missing:
        sys.exit("make_wheel.py: %s" % missing)
    record = ["%s,%s,%d" % (path, digest(text), len(text)) for path, (text, _) in sorted(files.items())] + [info + "/RECORD,,"]
    files[info + "/RECORD"] = (("\n".join(record) + "\n").encode(), False)
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, "%s-py3-none-%s.whl" % (name, platform))
    # The package first, what describes it last, as the format recommends.
    order = sorted(files, key=lambda n: (n.startswith(info), n))
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for inside in order:
            text, executable = files[inside]
            entry = zipfile.ZipInfo(inside, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, text)
    os.replace(path + ".new", path)
    print("%s  %.1f MB, %d files" % (path, os.path.getsize(path) / 1e6, len(files)))


if __name__ == "__main__":
    main()
