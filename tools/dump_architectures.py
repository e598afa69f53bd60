#!/usr/bin/env python3
"""Which release knows which architecture: data/engines/*/architectures.json from vLLM's registries, or the entry classes of SGLang's models.

    tools/dump_architectures.py OUT [--git REPOSITORY] [VERSION=FOLDER...]

REPOSITORY is a clone of vLLM: its tags v0.8.0 and later are read. FOLDER is an installed `vllm` or `sglang` package. What OUT has of other releases
stays. Only names and the releases that have them are kept. A release between two that were read has what the older of them has.
"""
import ast
import json
import os
import re
import subprocess
import sys

PATH, MODELS = "model_executor/models/registry.py", "srt/models"
KEPT = ("behaviour", "model_types")  # written by hand: a new table keeps what the earlier one says


def architectures(source):
    """Names in the tables of models; those of tables that list what is gone, or lives elsewhere, are left out."""
    names = set()
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        table = next((t.id for t in targets if isinstance(t, ast.Name)), "")
        if not table.endswith("_MODELS") or "PREVIOUSLY" in table or "OOT" in table or not isinstance(node.value, ast.Dict):
            continue
        names.update(key.value for key in node.value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    return names


def entry_classes(folder):
    """Classes that the modules of srt/models offer (EntryClass), but for those that run another library's."""
    names = set()
    for place, _, files in os.walk(folder):
        for file in files:
            if not file.endswith(".py"):
                continue
            with open(os.path.join(place, file), encoding="utf-8-sig") as source:
                tree = ast.parse(source.read())
            for node in ast.walk(tree):
                if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "EntryClass" for t in node.targets):
                    names.update(part.id for part in ast.walk(node.value) if isinstance(part, ast.Name))
    return {name for name in names if not name.startswith("Transformers")}


def key_of(version):
    return tuple(map(int, version.split(".")))


class Release:
    """The files of one release, from a tag or from a folder."""

    def __init__(self, folder, tag=None):
        self.folder, self.tag, self.trees = folder, tag, {}

    def read(self, path):
        if not self.tag:
            name = os.path.join(self.folder, path)
            return open(name, encoding="utf-8").read() if os.path.isfile(name) else None
        shown = subprocess.run(["git", "-C", self.folder, "show", f"{self.tag}:vllm/{path}"], capture_output=True, text=True, check=False)
        return shown.stdout if shown.returncode == 0 else None

    def names(self, folder):
        if not self.tag:
            full = os.path.join(self.folder, folder)
            return sorted(os.listdir(full)) if os.path.isdir(full) else []
        shown = subprocess.run(["git", "-C", self.folder, "ls-tree", "--name-only", f"{self.tag}:vllm/{folder}"], capture_output=True,
                               text=True, check=False)
        return shown.stdout.split() if shown.returncode == 0 else []

    def tree(self, path):
        if path not in self.trees:
            source = self.read(path)
            self.trees[path] = ast.parse(source) if source else None
        return self.trees[path]


def releases(arguments):
    while arguments:
        word = arguments.pop(0)
        if word != "--git":
            version, _, folder = word.partition("=")
            yield version, Release(folder)
            continue
        folder = arguments.pop(0)
        for tag in subprocess.run(["git", "-C", folder, "tag"], capture_output=True, text=True, check=True).stdout.split():
            if re.fullmatch(r"v0\.\d+\.\d+", tag) and key_of(tag[1:]) >= (0, 8, 0):
                yield tag[1:], Release(folder, tag)


def stretches(versions, present):
    """[first release, last release or null] for each unbroken stretch."""
    out, start = [], None
    for index, version in enumerate(versions):
        if present(version) and start is None:
            start = version
        if start is not None and not present(version):
            out.append([start, versions[index - 1]])
            start = None
    if start is not None:
        out.append([start, None])
    return out


SERVED = """import json, sys, transformers
names = json.loads(sys.argv[1])
print(json.dumps([n for n in names if hasattr(transformers, n) and getattr(transformers, n).is_backend_compatible()]))"""


def served_by(python, names):
    """Those that the Transformers library beside that Python has in a form that vLLM's Transformers backend takes."""
    done = subprocess.run([python, "-c", SERVED, json.dumps(names)], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def from_table(path):
    """({release: names}, served, what is written by hand) of an earlier output, where there is one."""
    if not os.path.exists(path):
        return {}, [], {}
    with open(path, encoding="utf-8") as file:
        table = json.load(file)
    found = {version: set() for version in table.get("versions", [])}
    for name, spans in table.get("architectures", {}).items():
        for version, names in found.items():
            if any(key_of(since) <= key_of(version) and (until is None or key_of(version) <= key_of(until)) for since, until in spans):
                names.add(name)
    return found, table.get("served", []), {key: table[key] for key in KEPT if key in table}


def main():
    out, arguments, pythons = sys.argv[1], sys.argv[2:], []
    found, served, kept = from_table(out)
    engine = "vllm"
    while arguments:
        word = arguments.pop(0)
        if word == "--transformers":
            pythons.append(arguments.pop(0))
        else:
            given = [word, *([arguments.pop(0)] if word == "--git" else [])]
            for version, release in releases(given):
                source = release.read(PATH)
                models = os.path.join(release.folder, MODELS)
                if source:
                    found[version] = architectures(source)
                elif not release.tag and os.path.isdir(models):
                    found[version], engine = entry_classes(models), "sglang"
                elif not release.tag:
                    sys.exit(f"dump_architectures: no {PATH} in {release.folder}")
    versions = sorted(found, key=key_of)
    names = sorted(set().union(*found.values()))
    went = [name for name in names if name not in found[versions[-1]]]
    served = sorted(set.intersection(*(served_by(python, went) for python in pythons))) if pythons else served
    lines = [f'{json.dumps(name)}: {json.dumps(stretches(versions, lambda v, n=name: n in found[v]))}' for name in names]
    with open(out, "w", encoding="utf-8") as file:
        file.write('{"schema": "oomsight.engine-architectures/1", "engine": "%s",\n' % engine)
        file.write(f'"versions": {json.dumps(versions)},\n"architectures": {{\n' + ",\n".join(lines) + f'\n}},\n"served": {json.dumps(served)}')
        for key, table in kept.items():
            file.write(f',\n{json.dumps(key)}: {{\n' + ",\n".join(f"{json.dumps(name)}: {json.dumps(table[name])}" for name in sorted(table)) + "\n}")
        file.write("}\n")
    print(f"{len(versions)} releases, {len(names)} architectures")


if __name__ == "__main__":
    main()
