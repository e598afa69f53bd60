"""What an installed engine says of itself, for `oomsight learn`: the flags of its parser by what they do, and its architectures. Whoever answers
commands (oomsight_ask.py) answers this as well, once; what cannot be read is left out and said."""
import argparse
import contextlib
import dataclasses
import enum
import hashlib
import importlib.metadata
import io
import json
import types
import typing

FLAGS_MAX = 3000
KEYS_MAX = 500  # of one flag
TEXT_MAX = 300
RECORD_BYTES = 64 << 20


def plain(value):
    """As JSON says it; None where it can't. A parser's own marks are no values."""
    if isinstance(value, enum.Enum):
        value = value.value if isinstance(value.value, (str, int, float)) else value.name
    if value is argparse.SUPPRESS:
        return None
    try:
        text = json.dumps(sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return json.loads(text) if len(text) <= TEXT_MAX else None


def stored_by(parser, action, spelling):
    """(whether the option ends the program, what a switch stores when it is met under that spelling)."""
    found = argparse.Namespace()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            action(parser, found, [], spelling)
    except SystemExit:
        return True, None
    except Exception:  # one that is gone may say so instead
        return False, None
    return False, getattr(found, action.dest, None)


def switch(parser, action, spellings):
    """Names are not interpreted: each is called, and what it stores tells what it is."""
    answers = [stored_by(parser, action, spelling) for spelling in spellings]
    values = [value for _, value in answers]
    if any(ends for ends, _ in answers):
        return {"names": spellings, "kind": "help"}
    if not (True in values and False in values):
        return {"names": spellings, "kind": "flag", "stores": plain(values[0])}
    negative = [name for name, value in zip(spellings, values) if value is False]
    return {"names": [name for name in spellings if name not in negative], "negative": negative, "kind": "bool-optional"}


def converted(convert, text):
    try:
        return convert(text)
    except (Exception, SystemExit):
        return None


def kind_of(convert):
    """By what it makes of a few words. Whole numbers with a suffix are left to the engine: how many there are is its affair."""
    if convert is None:
        return "str"
    whole, half = converted(convert, "7"), converted(convert, "0.5")
    if type(whole) is int and half is None:
        return "int" if converted(convert, "1k") is None and converted(convert, "auto") is None else "str"
    for text in ('{"a": 1}', "{}"):  # a configuration of its own takes its own keys alone
        if not isinstance(converted(convert, text), (str, type(None))):
            return "json" if converted(convert, "word") is None else "json-or-str"
    if type(half) is float:
        return "float"
    return "bool" if converted(convert, "true") is True and converted(convert, "false") is False else "str"


# ---- keys of a JSON value ----

def kinds(hint):
    """{kind, choices, nullable} of an annotation, as flags.json has them; what is not plain is any."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return kinds(args[0])
    if origin is typing.Literal:
        words = [word for word in args if word is not None]
        return dict({"kind": "choice", "choices": words}, **({"nullable": True} if None in args else {}))
    if origin is typing.Union or origin is getattr(types, "UnionType", None):
        parts = [kinds(arg) for arg in args if arg is not type(None)]
        found = parts[0] if len(parts) == 1 else {"kind": "|".join(dict.fromkeys("str" if part["kind"] == "choice" else part["kind"] for part in parts))}
        return dict(found, **({"nullable": True} if type(None) in args or any("nullable" in part for part in parts) else {}))
    if origin in (list, tuple, set, frozenset) or hint in (list, tuple, set):
        return {"kind": "list"}
    if origin is dict or fields(hint):
        return {"kind": "dict"}
    return {"kind": hint.__name__ if hint in (bool, int, float, str) else "any"}


def fields(cls):
    """Those of a dataclass or of a pydantic model that a user can give: {name: annotation}; of anything else none."""
    if not isinstance(cls, type):
        return {}
    given = {field.name for field in dataclasses.fields(cls) if field.init} if dataclasses.is_dataclass(cls) else set(getattr(cls, "model_fields", ()))
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception:
        hints = {}
    return {name: hints.get(name, object) for name in sorted(given) if not name.startswith("_")}


def keys(cls, before="", depth=0):
    """With a dot, keys inside of it."""
    found = []
    for name, hint in fields(cls).items():
        found.append(dict({"name": before + name}, **kinds(hint)))
        inner = [part for part in typing.get_args(hint) + (hint,) if fields(part)]
        if depth < 2 and len(inner) == 1:
            found += keys(inner[0], before + name + ".", depth + 1)
    return found if len(found) <= KEYS_MAX else []


def option(parser, action, spellings):
    hidden = [name for name in spellings if name not in action.option_strings]
    spellings = [name for name in spellings if name not in hidden] + hidden
    found = {"names": spellings, "dest": action.dest}
    if action.nargs == 0:
        found.update(switch(parser, action, spellings))
    else:
        found["kind"] = kind_of(action.type)
        if action.choices:
            choices = [plain(choice) for choice in action.choices]
            found.update(kind="choice", item=found["kind"], choices=[choice for choice in choices if choice not in (None, "None")])
        if (action.choices and len(found["choices"]) < len(choices)) or (action.type and converted(action.type, "None") is None and
                                                                        accepts(action.type, "None")):
            found["nullable"] = True
        if action.nargs in ("+", "*") or type(action.nargs) is int or isinstance(action, argparse._AppendAction):
            found.update(kind="list", item=found["kind"])
        if found["kind"].startswith("json"):
            value = converted(action.type, "{}")  # what it makes of nothing is what it makes of everything
            inside = keys(type(value))
            if inside:
                found["json_keys"] = inside
        if action.nargs is not None:
            found["nargs"] = str(action.nargs)
    default = plain(action.default)
    if default is not None:
        found["default"] = default
    if hidden:
        found["hidden"] = hidden
    return found


def accepts(convert, text):
    try:
        convert(text)
    except (Exception, SystemExit):
        return False
    return True


def flags(parser):
    """Every spelling that is taken stands in this table, those that no help shows as well."""
    actions = {}
    for spelling, action in parser._option_string_actions.items():
        actions.setdefault(id(action), (action, []))[1].append(spelling)
    if not actions or len(actions) > FLAGS_MAX:
        raise ValueError("its parser has %d options" % len(actions))
    return [option(parser, action, spellings) for action, spellings in actions.values()]


def package(name):
    """The list of its files with their hashes, as it was installed: what is patched has another."""
    found = importlib.metadata.distribution(name)
    path = found.locate_file("%s-%s.dist-info/RECORD" % (name, found.version))
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(RECORD_BYTES)).hexdigest()


def compared(engine, path):
    """(rules, census): what its source is beside that which the rules were read from; the two are read together."""
    import os
    import sys

    import oomsight_slices
    with open(path, encoding="utf-8") as file:
        watched = json.load(file)
    rules = {row["rule"]: row for row in watched["rules"] if row.get("units")}
    return oomsight_slices.learned(os.path.dirname(sys.modules[engine.NAME].__file__), rules, watched["fingerprints"])


def steps(engine, watched=None):
    """The parts of an answer as `told` (oomsight_ask.py) takes them; a part that fails takes no other with it. `watched`: a file of rules."""
    parts = {"package": lambda: package(engine.NAME), "torch": lambda: importlib.metadata.version("torch"),
             "flags": lambda: flags(engine.parser()), "architectures": lambda: sorted(str(name) for name in engine.architectures())}
    if hasattr(engine, "quantization"):
        parts["quantization"] = lambda: sorted(str(name) for name in engine.quantization())
    left_out = {}
    for name, read in parts.items():
        try:
            yield {name: read()}
        except (Exception, SystemExit) as error:
            left_out[name] = "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:TEXT_MAX])
    if watched:
        try:
            rules, census = compared(engine, watched)
            yield {"rules": rules, "census": census}
        except (Exception, SystemExit) as error:
            left_out["rules"] = "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:TEXT_MAX])
    yield {"verdict": "unknown", "left_out": left_out}
