#!/usr/bin/env python3
"""Write every environment variable vLLM reads through vllm/envs.py as JSON: default, kind, accepted words.

    dump_env.py OUTPUT VERSION PATH/TO/vllm/envs.py

Run it with the Python of an environment that can import the engine. Nothing is read from the source text: each
variable's own getter is called with the variable unset and with a few probe values. merge_env.py merges the dumps.
"""

import enum
import importlib.util
import json
import os
import sys

PROBES = ("0", "1", "7", "0.5", "true", "True", "false", "yes", "on", "word", "", '{"a": 1}')


def load(path):
    spec = importlib.util.spec_from_file_location("engine_envs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.environment_variables


def plain(value):
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str, dict)) else repr(type(value))


def ask(getter, name, text):
    """(taken, value) of the getter with the variable set to `text`, or unset when that is None."""
    kept = os.environ.pop(name, None)
    if text is not None:
        os.environ[name] = text
    try:
        return True, plain(getter())
    except Exception:
        return False, None
    finally:
        os.environ.pop(name, None)
        if kept is not None:
            os.environ[name] = kept


def choices_of(getter):
    """The closed list of words, which the engine keeps in the closure of its getter."""
    for cell in getattr(getter, "__closure__", None) or ():
        value = cell.cell_contents
        if isinstance(value, (list, tuple)) and value and all(isinstance(item, str) for item in value):
            return list(value)
    return None


def record(name, getter):
    known, default = ask(getter, name, None)
    answers = {text: value for text in PROBES for ok, value in [ask(getter, name, text)] if ok}
    types = {type(value) for text, value in answers.items() if text in ("0", "1", "7")}
    kind = "str"
    if bool in types and types <= {bool, type(None)}:
        kind = "bool"
    elif isinstance(answers.get('{"a": 1}'), dict):
        kind = "json"
    elif types == {int}:
        kind = "int"
    elif types == {float}:
        kind = "float"
    elif types == {list}:
        kind = "list"
    fact = {"name": name, "kind": kind, "default": default if known else None}
    if kind == "bool":
        fact["true_words"] = [text for text in PROBES if answers.get(text) is True]
        fact["false_words"] = [text for text in PROBES if answers.get(text) is False]
    choices = choices_of(getter)
    if choices:
        fact.update(kind="choice", choices=choices)
    return fact


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    for name in [name for name in os.environ if name.startswith("VLLM_")]:
        del os.environ[name]
    variables = load(sys.argv[3])
    dump = {"engine": "vllm", "version": sys.argv[2], "variables": [record(n, g) for n, g in sorted(variables.items())]}
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(dump, out, indent=1)
        out.write("\n")
    print(f"{sys.argv[2]}: {len(dump['variables'])} variables")


if __name__ == "__main__":
    main()
