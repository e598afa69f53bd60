#!/usr/bin/env python3
"""Write the names of every environment variable that a release reads as JSON, from its source and without running it.

    list_env.py OUTPUT ENGINE VERSION SOURCE     SOURCE: the unpacked release, or where it is installed

`names` are those of the engine's own table (vLLM: environment_variables of vllm/envs.py; SGLang: class Envs of
sglang/srt/environ.py). `elsewhere` are quoted in some other file: they may be read without being in the table.
`logs_unknown` says whether the engine logs a name with its prefix that is not in the table. `whole` says whether SOURCE has what a
package leaves out. merge_env.py merges the lists.
"""

import ast
import json
import os
import re
import sys

TABLES = {"vllm": "vllm/envs.py", "sglang": "sglang/srt/environ.py"}
QUOTED = {"vllm": r"""["'](VLLM_[A-Z0-9_]+)["']""", "sglang": r"""["'](SGL(?:ANG)?_[A-Z0-9_]+)["']"""}
LOGGED = "Unknown vLLM environment variable"
SOURCES = (".py", ".cu", ".cuh", ".cpp", ".h", ".rs")


def files_of(source):
    """(path, text) of every source file."""
    for folder, _, names in os.walk(source):
        for path in (os.path.join(folder, name) for name in names if name.endswith(SOURCES)):
            with open(path, encoding="utf-8", errors="replace") as file:
                yield os.path.relpath(path, source), file.read()


def target_of(node):
    if isinstance(node, ast.Assign):
        return node.targets[0]
    return node.target if isinstance(node, ast.AnnAssign) else None


def table_names(engine, text):
    names = set()
    for node in ast.walk(ast.parse(text)):
        if engine == "vllm":
            target = target_of(node)
            if isinstance(target, ast.Name) and target.id == "environment_variables" and isinstance(node.value, ast.Dict):
                names |= {ast.literal_eval(key) for key in node.value.keys}
        elif isinstance(node, ast.ClassDef) and node.name == "Envs":
            names |= {t.id for t in map(target_of, node.body) if isinstance(t, ast.Name) and t.id.isupper()}
    return names


def main():
    if len(sys.argv) != 5 or sys.argv[2] not in TABLES:
        raise SystemExit(__doc__)
    engine = sys.argv[2]
    names, elsewhere, logged, table = set(), set(), False, False
    for path, text in files_of(sys.argv[4]):
        parts = path.replace(os.sep, "/").split("/")
        if "tests" in parts or "test" in parts:
            continue
        logged = logged or LOGGED in text
        if "/".join(parts).endswith(TABLES[engine]):
            names, table = names | table_names(engine, text), True
        else:
            elsewhere |= set(re.findall(QUOTED[engine], text))
    if not names and (table or not elsewhere):  # SGLang has its table since 0.5.3: before, every name is elsewhere
        raise SystemExit(f"list_env: no {TABLES[engine]} in {sys.argv[4]}, or it has another form")
    made = {"engine": engine, "version": sys.argv[3], "names": sorted(names), "elsewhere": sorted(elsewhere - names),
            "logs_unknown": logged, "whole": os.path.exists(os.path.join(sys.argv[4], "pyproject.toml"))}
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(made, out, indent=1)
        out.write("\n")
    print(f"{engine} {sys.argv[3]}: {len(names)} variables, {len(elsewhere - names)} elsewhere")


if __name__ == "__main__":
    main()
