#!/usr/bin/env python3
"""What of others is inside a portable build: sbom.py BUILD_DIR OUT_DIR writes oomsight.cdx.json (CycloneDX 1.5) and licenses/.

The linker says which members of which archives it took (its maps, BUILD_DIR/*.linked), the compiler which headers it read, and
dpkg whose they are: nothing is listed by hand, so nothing can be forgotten. What has no known owner, licence or text of it ends
the build. Equal builds give equal bytes. Standard library, dpkg and ninja only."""
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import urllib.parse
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The licence under which each may be inside, read in its sources once. A package that is not here ends the build: look, then add.
# What binds the whole (LGPL and GPL without an exception for linking) has no place here.
LICENCES = {
    "libarchive-dev": "BSD-2-Clause", "libbz2-dev": "bzip2-1.0.6", "libjansson-dev": "MIT", "liblz4-dev": "BSD-2-Clause",
    "liblzma-dev": "LicenseRef-public-domain", "libpcre2-dev": "BSD-3-Clause",
    "libyaml-dev": "MIT", "libzstd-dev": "BSD-3-Clause", "uthash-dev": "BSD-1-Clause", "zlib1g-dev": "Zlib",
    "libgcc-12-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libc6-dev": "LGPL-2.1-or-later WITH GCC-exception-2.0-note",  # the start files and libc_nonshared.a alone
}
# Licences that Debian's files name and do not repeat.
COMMON = {"GPL-3.0-or-later": "GPL-3", "LGPL-2.1-or-later": "LGPL-2.1"}
# Headers that only declare: what they belong to is not inside.
DECLARES = {"libc6-dev", "linux-libc-dev", "libcurl4-openssl-dev", "libcurl4-gnutls-dev"}


class Missing(Exception):
    pass


def own(build, path):
    """Ours: it lies in the build, or in the stand-in for glibc beside it."""
    return not path.startswith("/") or path.startswith((os.path.abspath(build) + os.sep, os.path.abspath(build) + "-glibc" + os.sep))


def taken(build):
    """path of an archive or object -> names of the members that were taken (none: the whole)."""
    maps = sorted(glob.glob(os.path.join(build, "*.linked")))
    if not maps:
        raise Missing("%s has no *.linked: it is no portable build" % build)
    files = {}
    for name in maps:
        with open(name, encoding="utf-8", errors="replace") as f:
            for line in f:
                member = re.match(r"(/.+\.a)\(([^)]+)\)\s", line)
                whole = re.match(r"LOAD (/.+\.o)$", line)
                if member and not own(build, member.group(1)):
                    files.setdefault(os.path.normpath(member.group(1)), set()).add(member.group(2))
                elif whole and not own(build, whole.group(1)):
                    files.setdefault(os.path.normpath(whole.group(1)), set())
    return files


def headers(build):
    told = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"^\s+(/usr/include/\S+)$", told, re.M)))


def owners(paths):
    """path -> package. dpkg may know a file by the other name of a merged /usr."""
    other = lambda path: path[4:] if path.startswith("/usr/") else "/usr" + path
    told = subprocess.run(["dpkg", "-S"] + sorted(set(paths) | {other(path) for path in paths}), capture_output=True, text=True).stdout
    known = {line.rsplit(": ", 1)[1]: line.split(":")[0].split(",")[0] for line in told.splitlines() if not line.startswith("diversion")}
    for path in paths:
        if path not in known and other(path) not in known:
            raise Missing("%s belongs to no package: its licence is not known" % path)
    return {path: known.get(path) or known[other(path)] for path in paths}


def packages(build):
    """package -> {file name: (sha256, number of members)}"""
    found = {}
    files, names = taken(build), headers(build)
    of = owners(sorted(files) + names)
    for path, members in sorted(files.items()):
        with open(path, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        found.setdefault(of[path], {})[os.path.basename(path)] = (digest, len(members))
    for path in names:
        if of[path] not in DECLARES:
            found.setdefault(of[path], {})
    for package in found:
        if package not in LICENCES:
            raise Missing("%s is inside and its licence is not in tools/sbom.py" % package)
    return found


def licence_texts(names, docs="/usr/share/doc", common="/usr/share/common-licenses"):
    """file name -> bytes: each package's own text, and the long ones that these only name."""
    texts = {}
    for package in sorted(names):
        path = os.path.join(docs, package, "copyright")
        if not os.path.isfile(path):
            raise Missing("%s is inside and its licence is missing: no %s" % (package, path))
        with open(path, "rb") as f:
            texts[package + ".txt"] = f.read()
        for name in [full for short, full in COMMON.items() if short in LICENCES[package].split()]:
            with open(os.path.join(common, name), "rb") as f:
                texts[name + ".txt"] = f.read()
    return texts


def version():
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as f:
        return re.search(r"version: '([^']+)'", f.read()).group(1)


# What a build for another system takes from subprojects/*.wrap instead: the licence, and the file that has its text.
WRAPS = {"jansson": ("MIT", "LICENSE"), "libyaml": ("MIT", "License"), "pcre2": ("BSD-3-Clause", "LICENCE"), "uthash": ("BSD-1-Clause", "LICENSE")}


def wrapped():
    """The same two answers for such a build: (bill of materials, licence texts)."""
    parts, texts = [], {}
    for name, (licence, text) in sorted(WRAPS.items()):
        with open(os.path.join(ROOT, "subprojects", name + ".wrap"), encoding="utf-8") as f:
            told = dict(line.strip().split(" = ", 1) for line in f if " = " in line)
        folder, release = told["directory"], told["directory"].rsplit("-", 1)[1]
        purl = "pkg:generic/%s@%s?download_url=%s&checksum=sha256:%s" % (name, release, urllib.parse.quote(told["source_url"], safe=""), told["source_hash"])
        parts.append({"type": "library", "bom-ref": purl, "name": name, "version": release, "licenses": [{"expression": licence}], "purl": purl})
        path = os.path.join(ROOT, "subprojects", folder, text)
        if not os.path.isfile(path):
            raise Missing("%s is inside and its licence is missing: no %s" % (name, path))
        with open(path, "rb") as f:
            texts[name + ".txt"] = f.read()
    return bill(parts), texts


def component(package, files):
    told = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package}\t${Version}\t${source:Upstream-Version}\t${Architecture}", package],
                          capture_output=True, text=True, check=True).stdout
    source, full, upstream, machine = told.split("\n")[0].split("\t")
    purl = "pkg:deb/debian/%s@%s?arch=%s" % (urllib.parse.quote(package, safe=""), urllib.parse.quote(full, safe=""), machine)
    told = {"type": "library", "bom-ref": purl, "name": source, "version": upstream, "licenses": [{"expression": LICENCES[package]}], "purl": purl,
            "properties": [{"name": "oomsight:package", "value": package}]}
    parts = [{"type": "file", "bom-ref": "%s#%s" % (purl, name), "name": name, "hashes": [{"alg": "SHA-256", "content": digest}],
              "properties": [{"name": "oomsight:members", "value": str(members or "all")}]} for name, (digest, members) in sorted(files.items())]
    return {**told, "components": parts} if parts else told


def document(found):
    return bill([component(package, files) for package, files in sorted(found.items())])


def bill(parts):
    whole = "pkg:pypi/oomsight@" + version()
    serial = uuid.uuid5(uuid.NAMESPACE_URL, whole + json.dumps(parts, sort_keys=True))
    told = {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": "urn:uuid:%s" % serial, "version": 1,
            "metadata": {"component": {"type": "application", "bom-ref": whole, "name": "oomsight", "version": version(),
                                       "licenses": [{"license": {"id": "Apache-2.0"}}], "purl": whole}},
            "components": parts,
            "dependencies": [{"ref": whole, "dependsOn": [part["bom-ref"] for part in parts]}] + [{"ref": part["bom-ref"]} for part in parts]}
    return (json.dumps(told, indent=1) + "\n").encode()


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    build, out = sys.argv[1:3]
    try:
        found = packages(build)
        texts = licence_texts(found, *sys.argv[3:4])
        bill = document(found)
    except Missing as missing:
        sys.exit("sbom.py: %s" % missing)
    os.makedirs(os.path.join(out, "licenses"), exist_ok=True)
    for name, text in texts.items():
        with open(os.path.join(out, "licenses", name), "wb") as f:
            f.write(text)
    with open(os.path.join(out, "oomsight.cdx.json"), "wb") as f:
        f.write(bill)
    print("%d packages inside, %d licence texts" % (len(found), len(texts)))


if __name__ == "__main__":
    main()
