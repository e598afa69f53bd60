#!/usr/bin/env python3
"""The version of meson.build is the one everywhere: version.py [--write]. Compares the places that cannot read it, or writes them."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# file: patterns whose group is the version, or a part of it
PLACES = {
    "bindings/python/oomsight/__init__.py": [r'^__version__ = "([^"]+)"'],
    "include/oomsight/oomsight.h": [r"^#define OOMSIGHT_VERSION_MAJOR (\d+)", r"^#define OOMSIGHT_VERSION_MINOR (\d+)", r"^#define OOMSIGHT_VERSION_PATCH (\d+)",
                                    r'^/\* "(\d+\.\d+\.\d+)" \*/'],
    "packaging/debian/changelog": [r"\Aoomsight \(([^)]+)\)"],
    "CITATION.cff": [r"^version: (\S+)"],
    "examples/gates/production-stack-values.yaml": [r"oomsight:(\d\S+)"],
    "examples/fleet/kubernetes/daemonset.yaml": [r"oomsight:(\d\S+)"],
    "examples/fleet/kubernetes/file/incidents.yaml": [r"oomsight:(\d\S+)"],
}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def wanted(pattern, version):
    part = re.search(r"VERSION_(MAJOR|MINOR|PATCH)", pattern)
    return version.split(".")[("MAJOR", "MINOR", "PATCH").index(part.group(1))] if part else version


def main():
    write, wrong = "--write" in sys.argv[1:], 0
    version = re.search(r"^  version: '([^']+)',", read("meson.build"), re.M).group(1)
    for path, patterns in PLACES.items():
        text = new = read(path)
        for pattern in patterns:
            if not re.search(pattern, new, re.M):
                print("%s: nothing matches %s" % (path, pattern))
                wrong += 1
            new = re.sub(pattern, lambda m: m.group(0).replace(m.group(1), wanted(pattern, version)), new, flags=re.M)
        if new != text and write:
            with open(os.path.join(ROOT, path), "w", encoding="utf-8") as f:
                f.write(new)
        elif new != text:
            print("%s has another version than meson.build (%s): tools/version.py --write" % (path, version))
            wrong += 1
    if "## [%s] - " % version not in read("CHANGELOG.md"):
        print("CHANGELOG.md has no part for %s" % version)
        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
