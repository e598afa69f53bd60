#!/usr/bin/env python3
"""Write every option of `vllm serve` or `sglang serve` of one installed engine as JSON, taken from its real argument parser.

Run it with the Python of an environment that holds the engine; no GPU is needed. Merging several such dumps into
data/engines/<engine>/flags.json is the job of merge_flags.py; the parser's habits are probed by flag_probes.py.
"""

import argparse
import contextlib
import dataclasses
import enum
import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import types
import typing

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import flag_probes  # noqa: E402

# Where the engine keeps the pieces, newest place first.
PARSER_CLASSES = ("vllm.utils.argparse_utils", "vllm.utils")
# Option strings probed on every converter, to learn what it takes without reading its source.
INT_PROBES = ("7", "1k", "1K", "1.5k", "1.5K", "1m", "1M", "1g", "1G", "1t", "1T", "1Ki", "1Mi", "1Gi", "1Ti", "auto", "-1")


def first_attr(modules, name):
    """The attribute `name` of the first module that has it: the engine moves things between releases."""
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as missing:
            print(f"dump_flags: {module}.{name}: {missing}", file=sys.stderr)
    raise SystemExit(f"dump_flags: no {name} in {', '.join(modules)}")


def engine_name():
    """The engine of this environment."""
    return "sglang" if "sglang" in sys.modules or importlib.util.find_spec("sglang") else "vllm"  # the wheel of one may lie beside the other, whose packages it needs


def pretend_cuda():
    """Without a GPU the engine finds no platform, and some releases then refuse to build the parser at all. The
    unspecified platform is told to be CUDA. (With the engine's whole CUDA platform in its place, 0.19.1 and 0.32.0
    give the same options; but importing that wants a driver.)"""
    import vllm.platforms

    vllm.platforms.current_platform.device_type = "cuda"


def build_parsers():
    """The top parser and the `serve` parser below it, put together the way the `vllm` command does."""
    top = first_attr(PARSER_CLASSES, "FlexibleArgumentParser")(description="vLLM CLI")
    subparsers = top.add_subparsers(required=False, dest="subparser")
    # The sub-command adds options to those of make_arg_parser in some releases (0.19.1: --grpc), so it is asked.
    serve = importlib.import_module("vllm.entrypoints.cli.serve").cmd_init()[0].subparser_init(subparsers)
    return top, serve


# ---- converters ----------------------------------------------------------------------------------------------


def unwrap(convert, seen=None):
    """Every callable or class a converter is made of: closures (`optional_type(int)`) and defaults (`cls=...`)."""
    seen = seen if seen is not None else []
    if convert is None or any(convert is known for known in seen):
        return seen
    seen.append(convert)
    if isinstance(convert, types.FunctionType):
        inner = [cell.cell_contents for cell in convert.__closure__ or ()]
        inner += list(convert.__defaults__ or ())
        for value in inner:
            if callable(value):
                unwrap(value, seen)
    elif isinstance(convert, types.MethodType):
        unwrap(convert.__func__, seen)
        unwrap(convert.__self__, seen)
    return seen


def attempt(convert, text):
    """(True, value) when the converter takes the text."""
    try:
        return True, convert(text)
    except (Exception, SystemExit):
        return False, None


def suffix_rule(convert):
    """Which of k K m M g G t T an integer converter knows, as {"k": 1000, ...}, and the words -1 / auto."""
    rule = {}
    for text in INT_PROBES[1:]:
        ok, value = attempt(convert, text)
        if ok and isinstance(value, int):
            rule[text] = value
    return rule


def is_config(value):
    """A dataclass, or a pydantic model as some configs of 0.8 are."""
    return isinstance(value, type) and (dataclasses.is_dataclass(value) or hasattr(value, "model_fields"))


def config_class(dest, parts):
    """The class behind a JSON flag: from the converter itself, else the config class of the same name."""
    for part in parts:
        if is_config(part):
            return part
    if engine_name() != "vllm":
        return None
    config = importlib.import_module("vllm.config")
    by_name = {name.lower(): getattr(config, name, None) for name in dir(config)}
    for name in (dest, dest.removeprefix("override_")):
        found = by_name.get(name.replace("_", ""))
        if is_config(found):
            return found
    return None


def converter_facts(action):
    """kind and what else there is to say of how the option's text becomes a value."""
    convert = action.type
    parts = unwrap(convert)
    names = {getattr(part, "__name__", "") for part in parts}
    facts = {"type": getattr(convert, "__name__", None) if convert else None}
    if convert is None:
        facts["kind"] = "str"
        return facts

    config = None
    takes_object, value = attempt(convert, '{"a": 1}')
    is_json = json.loads in parts or any(is_config(part) for part in parts)
    is_json = is_json or (takes_object and isinstance(value, dict)) or bool({"from_cli", "from_json"} & names)
    if is_json:
        takes_word, _ = attempt(convert, "word")
        facts["kind"] = "json-or-str" if takes_word and action.dest != "limit_mm_per_prompt" else "json"
        config = config_class(action.dest, parts)
        takes_pairs, value = attempt(convert, "image=2")
        if takes_pairs and isinstance(value, dict):
            facts["pairs"] = True
    elif attempt(convert, "7")[1] == 7 and type(attempt(convert, "7")[1]) is int and not attempt(convert, "0.5")[0]:
        facts["kind"] = "int"
        suffixes = suffix_rule(convert)
        if suffixes.keys() & {"auto"}:
            facts["auto"] = suffixes["auto"]
        facts["suffixes"] = {k: v for k, v in suffixes.items() if k not in ("auto", "-1")}
    elif float in parts or type(attempt(convert, "0.5")[1]) is float:
        facts["kind"] = "float"
    elif "str_to_bool" in names or (attempt(convert, "true")[1] is True and attempt(convert, "false")[1] is False):
        facts["kind"] = "bool"
    else:
        facts["kind"] = "str"
        folded = attempt(convert, "A-B")[1]
        if folded in ("a-b", "a_b"):
            facts["folds"] = "lower" if folded == "a-b" else "lower_underscore"
    takes_none, value = attempt(convert, "None")
    if takes_none and value is None:
        facts["nullable"] = True
    if config:
        facts["config"] = config
        facts["strict"] = not attempt(convert, '{"no_such_key_anywhere": 1}')[0]
    return facts


# ---- values and annotations ----------------------------------------------------------------------------------


def simple(value):
    """The value as JSON, and whether that says all of it."""
    if isinstance(value, enum.Enum):
        return simple(value.value if isinstance(value.value, (str, int, float)) else value.name)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None, False
    if value == argparse.SUPPRESS:  # the option leaves no trace when absent
        return None, True
    if value is None or isinstance(value, (bool, int, float, str)):
        return value, True
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [simple(item) for item in value]
        if all(ok for _, ok in items):
            plain = [item for item, _ in items]
            return (sorted(plain, key=repr) if isinstance(value, (set, frozenset)) else plain), True
    if isinstance(value, dict):
        items = {str(key): simple(item) for key, item in value.items()}
        if all(ok for _, ok in items.values()):
            return {key: item for key, (item, _) in items.items()}, True
    return None, False


def enum_word(member):
    """What a user writes for it: its text, unless that is a number or the path of a class."""
    return member.value if re.fullmatch(r"[\w-]+", str(member.value)) and isinstance(member.value, str) else member.name


def describe_annotation(hint, facts=None):
    """kind / choices / nullable of a type annotation of a config field."""
    facts = facts if facts is not None else {}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return describe_annotation(args[0], facts)
    if origin is typing.Union or origin is getattr(types, "UnionType", None):
        kinds = []
        for arg in args:
            if arg is type(None):
                facts["nullable"] = True
                continue
            inner = describe_annotation(arg, {})
            kinds.append(inner.pop("kind"))
            for key, value in inner.items():
                if key == "choices":
                    facts.setdefault("choices", []).extend(c for c in value if c not in facts.get("choices", []))
                else:
                    facts.setdefault(key, value)
        facts["kind"] = "|".join(dict.fromkeys(kinds)) or "any"
        return facts
    if origin is typing.Literal:
        facts["kind"] = "choice"
        facts["choices"] = [c for c in args if c is not None]
        if None in args:
            facts["nullable"] = True
    elif origin in (list, tuple, set, frozenset) or hint in (list, tuple, set):
        facts["kind"] = "list"
        if args and args[0] is not Ellipsis:
            facts["item"] = describe_annotation(args[0], {})["kind"]
    elif origin is dict or hint is dict:
        facts["kind"] = "dict"
    elif hint in (bool, int, float, str):
        facts["kind"] = hint.__name__
    elif isinstance(hint, type) and issubclass(hint, enum.Enum):
        facts["kind"] = "choice"
        facts["choices"] = [enum_word(member) for member in hint]
    elif is_config(hint):
        facts["kind"] = "dict"
        facts["class"] = hint
    elif isinstance(hint, type) and issubclass(hint, dict):
        facts["kind"] = "dict"
    else:
        facts["kind"] = "any"
    return facts


def field_default(field):
    """(value as JSON, is it all)"""
    value = field.default
    if type(value).__name__ == "FieldInfo":  # pydantic.Field(...) as a dataclass default
        if value.default_factory is not None:
            return call_factory(value.default_factory)
        value = value.default
        if type(value).__name__ == "PydanticUndefinedType":
            return None, False
    if value is dataclasses.MISSING:
        if field.default_factory is dataclasses.MISSING:
            return None, False
        return call_factory(field.default_factory)
    return simple(value)


def call_factory(factory):
    """A factory that gives two different answers (a random id) or an object has no default worth writing down."""
    first, second = attempt(lambda _: factory(), ""), attempt(lambda _: factory(), "")
    if not first[0] or not second[0]:
        return None, False
    a, b = simple(first[1]), simple(second[1])
    return a if a == b else (None, False)


def config_fields(cls):
    """The fields of a dataclass, or those of a pydantic model in the same shape."""
    if dataclasses.is_dataclass(cls):
        return dataclasses.fields(cls)
    return [types.SimpleNamespace(name=name, type=info.annotation, default=info, init=True)
            for name, info in cls.model_fields.items()]


def config_keys(cls, whole_configs, prefix="", depth=0):
    """The keys a JSON value may have, nested ones with a dot; not the engine's whole configs nested in some."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception:
        hints = {}
    keys = []
    for field in config_fields(cls):
        if not field.init or field.name.startswith("_"):
            continue
        facts = describe_annotation(hints.get(field.name, field.type))
        nested = facts.pop("class", None)
        if nested is not None and nested.__name__ in whole_configs:
            continue
        default, _ = field_default(field)
        keys.append({"name": prefix + field.name, **facts, "default": default})
        if nested is not None and depth < 2:
            keys += config_keys(nested, whole_configs, f"{prefix}{field.name}.", depth + 1)
    return keys


def modality_keys():
    """--limit-mm-per-prompt has one key per modality; since 0.11 its value may also be an object of sizes."""
    keys = []
    try:
        module = importlib.import_module("vllm.config.multimodal")
    except ImportError:
        module = None
    for modality in ("image", "video", "audio"):
        options = getattr(module, f"{modality.capitalize()}DummyOptions", None) if module else None
        keys.append({"name": modality, "kind": "int|dict" if options else "int", "default": None})
        if options:
            keys += config_keys(options, (), f"{modality}.")
    return keys


# ---- options -------------------------------------------------------------------------------------------------


def stored_by(parser, action, spelling):
    """(whether the option ends the program, what the action of a switch stores when it is met under that spelling)."""
    result = argparse.Namespace()
    try:
        with open(os.devnull, "w", encoding="utf-8") as quiet, contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            action(parser, result, [], spelling)
    except SystemExit:
        return True, None
    except Exception as error:  # an option that is gone may say so instead
        print(f"dump_flags: {spelling}: {error}", file=sys.stderr)
    return False, getattr(result, action.dest, None)


def switch_record(parser, action, spellings):
    """Names, negative forms and kind of an option without a value, by what each spelling does and never by how it is written."""
    answers = [stored_by(parser, action, spelling) for spelling in spellings]
    if any(ends for ends, _ in answers):
        return {"names": spellings, "kind": "help"}
    values = [value for _, value in answers]
    if True in values and False in values:
        by = {value: [name for name, is_ in zip(spellings, values) if is_ is value] for value in (True, False)}
        return {"names": by[True], "negative": by[False], "kind": "bool-optional"}
    record = {"names": spellings, "kind": "flag"}
    if values[0] is not True:
        record["stores"] = simple(values[0])[0]
    return record


def option_record(parser, action, spellings, group, deprecated, whole_configs):
    """One option as the dump tells it. `spellings` are all that the parser takes; those that its help leaves out come last."""
    hidden = [name for name in spellings if name not in action.option_strings]
    spellings = [name for name in spellings if name not in hidden] + hidden
    record = {"names": spellings, "dest": action.dest, "group": group}
    if hidden:
        record["hidden"] = hidden
    action_class = type(action).__name__
    if action.nargs == 0:
        record.update(switch_record(parser, action, spellings))
    else:
        facts = converter_facts(action)
        config = facts.pop("config", None)
        if action_class == "StoreBoolean":  # 0.8 to 0.11: --flag, --flag true, --flag false
            facts["kind"] = "bool"
        if action.choices:
            facts["item"], facts["kind"] = facts["kind"], "choice"
            record["choices"] = [simple(choice)[0] for choice in action.choices if choice not in (None, "None")]
            if any(choice in (None, "None") for choice in action.choices):
                facts["nullable"] = True
        if action.nargs in ("+", "*") or isinstance(action.nargs, int) or "Append" in action_class:
            facts["item"], facts["kind"] = facts["kind"], "list"
            if "Append" in action_class:
                facts["repeat"] = True
        record.update(facts)
        if action.dest == "limit_mm_per_prompt" and facts["kind"] == "json":
            record["json_keys"] = modality_keys()
        elif config is not None and facts["kind"] in ("json", "json-or-str"):
            record["config_class"] = config.__name__
            record["json_keys"] = config_keys(config, whole_configs - {config.__name__})
    record["nargs"] = action.nargs
    record.setdefault("negative", [])
    record["default"], _ = simple(action.default)  # of an object its own keys carry the defaults
    if action.metavar and not isinstance(action.metavar, (list, tuple)):
        record["metavar"] = str(action.metavar)
    text = action.help or ""
    if action in deprecated or re.match(r"\W*deprecated\b", text, re.I) or getattr(action, "deprecated", False):
        record["deprecated"] = True
    return record


def engine_configs():
    """Names of the engine's own whole configs, so that one nested in another is not spelled out."""
    if engine_name() != "vllm":
        return set()
    fields = dataclasses.fields(importlib.import_module("vllm.config").VllmConfig)
    names = {"VllmConfig", "ModelConfig", "ParallelConfig"}
    for field in fields:
        nested = describe_annotation(field.type).get("class")
        if nested is not None:
            names.add(nested.__name__)
    return names


def options_of(parser):
    deprecated = getattr(parser, "_deprecated", set())
    whole_configs = engine_configs()
    spellings, records = {}, []
    for spelling, action in parser._option_string_actions.items():
        spellings.setdefault(id(action), []).append(spelling)
    for group in parser._action_groups:
        for action in group._group_actions:
            if id(action) in spellings:
                records.append(option_record(parser, action, spellings[id(action)], group.title, deprecated, whole_configs))
    return sorted(records, key=lambda record: (record["names"][-1].lstrip("-"), record["names"]))


def names_in_help(text):
    """Option names at the head of an entry of the printed help."""
    names = set()
    for line in text.splitlines():
        if re.match(r"\s{1,4}-", line):
            head = re.split(r"\s{2,}", line.strip())[0]
            head = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", head)
            names.update(re.findall(r"(?:^|[\s,])(--?[A-Za-z][\w.-]*)", head))
    return names


def compare_with_help(records):
    """What the help printed for `vllm serve --help=all` in a fresh process lists and we do not, and the reverse."""
    # "--print-help=--help=all" keeps our own parser from reading the word as an option of its own
    ours = {name for record in records for name in record["names"] + record["negative"]}
    hidden = {name for record in records for name in record.get("hidden", ())}
    for word in ("--help=all", "--help"):
        run = subprocess.run(
            [sys.executable, __file__, f"--print-help={word}"],
            capture_output=True, text=True, env={**os.environ, "COLUMNS": "20000"}, check=False,
        )
        printed = names_in_help(run.stdout)
        if len(printed) > 20:
            return {"word": word, "only_help": sorted(printed - ours), "only_parser": sorted(ours - hidden - printed), "hidden": len(hidden)}
    return {"word": None, "error": (run.stderr or run.stdout).strip().splitlines()[-1:]}


def dump_sglang(chosen):
    """SGLang's parser is argparse's own: dumped as it is, with the probes that tell it from vLLM's."""
    parser = argparse.ArgumentParser(prog="sglang serve")
    if chosen.sources:
        import sglang_sources
        sglang_sources.use(chosen.sources)
        module = sglang_sources.load("sglang.srt.server_args")
    else:
        module = importlib.import_module("sglang.srt.server_args")
    module.ServerArgs.add_cli_args(parser)
    records = options_of(parser)
    fields = {field.name for field in dataclasses.fields(module.ServerArgs)}
    for record in records:  # what the engine keeps it as, and prints
        names = [name.lstrip("-").replace("-", "_") for name in record["names"]]
        record["dest"] = next((name for name in [record["dest"], *names] if name in fields), record["dest"])
    version = chosen.release or importlib.metadata.version("sglang")
    probes = {name: "error" if flag_probes.parse(parser, ["m", *words], "--model-path") is None else {} for name, *words in (
        ("underscore_names", "--mem_fraction_static", "0.5"), ("dotted", "--preferred-sampling-params.n", "1"))}
    with open(chosen.output, "w", encoding="utf-8") as out:
        json.dump({"engine": "sglang", "version": version, "options": records, "probes": probes}, out, indent=1)
        out.write("\n")
    print(f"{version}: {len(records)} options")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("output", nargs="?", default="/dev/stdout", help="JSON file to write")
    options.add_argument("--check-help", action="store_true", help="compare with the printed help of `vllm serve`")
    options.add_argument("--print-help", metavar="WORD", help="print what `vllm serve WORD` prints and nothing else")
    options.add_argument("--sources", metavar="FOLDER", help="SGLang, unpacked from its wheel: nothing else of it is needed")
    options.add_argument("--release", help="of --sources; a post release is its number's")
    chosen = options.parse_args()

    if chosen.sources or engine_name() == "sglang":
        dump_sglang(chosen)
        return
    # Attribute docs are read only when help is asked for; 0.10 prints it and exits while the parser is built.
    sys.argv = ["vllm", "serve", "--help"]
    pretend_cuda()
    importlib.import_module("vllm.engine.arg_utils")
    sys.argv = ["vllm", "serve"]
    if chosen.print_help:
        build_parsers()[0].parse_args(["serve", chosen.print_help])
        return
    import vllm.version

    top, serve = build_parsers()
    records = options_of(serve)
    dump = {
        "engine": "vllm",
        "version": vllm.version.__version__.split("+")[0],
        "python": ".".join(map(str, sys.version_info[:3])),
        "options": records,
        "probes": flag_probes.run(top),
    }
    if chosen.check_help:
        dump["help"] = compare_with_help(records)
    with open(chosen.output, "w", encoding="utf-8") as out:
        json.dump(dump, out, indent=1)
        out.write("\n")
    print(f"{dump['version']}: {len(records)} options", dump.get("help", ""))


if __name__ == "__main__":
    main()
