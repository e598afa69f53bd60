#!/usr/bin/env python3
"""What each release of vLLM says of its own arguments, read out of its source: bounds of numbers, quantisation methods with the
least capability and the types they take, names of attention backends, models that can draft for
themselves, reasoning parsers, types of the KV cache. Writes data/engines/vllm/arguments.json.

    tools/dump_arguments.py OUT [--git REPOSITORY] [VERSION=FOLDER...]

REPOSITORY is a clone of vLLM: its tags v0.8.0 and later are read. FOLDER is an installed `vllm` package. What OUT has of other
releases stays. Nothing is imported or run; only names and numbers are kept.
"""
import ast
import json
import os
import sys

from dump_architectures import key_of, releases

# The order in which create_engine_config() builds its parts.
PARTS = ["ModelConfig", "MultiModalConfig", "CacheConfig", "ParallelConfig", "EPLBConfig", "SchedulerConfig",
         "LoRAConfig", "AttentionConfig", "MambaConfig", "KernelConfig", "LoadConfig", "StructuredOutputsConfig", "ObservabilityConfig",
         "CompilationConfig", "UVAOffloadConfig", "PrefetchOffloadConfig", "OffloadConfig", "VllmConfig"]
FLAG_OF = {("SchedulerConfig", "policy"): "scheduling_policy"}
BACKEND_FILES = ["v1/attention/backends/registry.py", "attention/backends/registry.py", "platforms/interface.py"]
QUANTISATION = "model_executor/layers/quantization"
KINDS = ("bounds", "quantization", "backends", "drafts", "reasoning", "cache_types")


def number(node):
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def limits_of(node):
    """ge, gt, le, lt of every Field(...) inside an annotated assignment."""
    out = {}
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Field":
            for keyword in call.keywords:
                value = number(keyword.value) if keyword.arg in ("ge", "gt", "le", "lt") else None
                if value is not None:
                    out[keyword.arg] = value
    return out


def engine_flags(release):
    tree = release.tree("engine/arg_utils.py")
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "EngineArgs":
            return {item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)}
    return set()


def bounds(release):
    flags, found = engine_flags(release), {}
    files = [f"config/{name}" for name in release.names("config") if name.endswith(".py")] or ["config.py"]
    for path in files:
        for node in (release.tree(path) or ast.Module([], [])).body:
            if not isinstance(node, ast.ClassDef) or node.name not in PARTS:
                continue
            for item in node.body:
                if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
                    continue
                flag = FLAG_OF.get((node.name, item.target.id), item.target.id)
                limits = limits_of(item)
                if limits and flag in flags and (flag not in found or PARTS.index(found[flag]["part"]) > PARTS.index(node.name)):
                    found[flag] = {"part": node.name, **limits}
    return found


def strings_of(node):
    return [item.value for item in ast.walk(node) if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def needs_settings(init):
    """An __init__ that cannot be called without arguments."""
    arguments = init.args
    plain = arguments.posonlyargs + arguments.args
    return len(plain) - 1 > len(arguments.defaults) or any(default is None for default in arguments.kw_defaults)


def method_facts(release, imports, name):
    """Least capability and types of a method's class, where its settings come from when the checkpoint has none (`file`: a file
    beside it; `settings`: nowhere), following the base classes where it leaves them out."""
    record, seen, path = {}, set(), None
    while name:
        path = imports.get(name, path)
        tree = release.tree(path) if path else None
        passed_on = next((n for n in (tree.body if tree else []) if isinstance(n, ast.ImportFrom) and n.level == 1 and n.module
                          and any(alias.name == name for alias in n.names)), None)
        if passed_on:  # a package that only names what is in its files
            path = f"{os.path.dirname(path)}/{passed_on.module.replace('.', '/')}.py"
            tree = release.tree(path)
        cls = next((n for n in (tree.body if tree else []) if isinstance(n, ast.ClassDef) and n.name == name), None)
        if not cls:
            break
        for item in cls.body:
            if not isinstance(item, ast.FunctionDef):
                continue
            returned = [n.value for n in ast.walk(item) if isinstance(n, ast.Return) and n.value is not None]
            if item.name == "get_min_capability" and len(returned) == 1 and number(returned[0]) is not None:
                record.setdefault("capability", number(returned[0]))
            if item.name == "get_supported_act_dtypes" and len(returned) == 1:
                types = {n.attr for n in ast.walk(returned[0]) if isinstance(n, ast.Attribute)}
                types = {"float16" if t == "half" else "float32" if t == "float" else t for t in types}
                if types:
                    record.setdefault("dtypes", sorted(types))
            if item.name == "get_config_filenames" and len(returned) == 1 and item.name not in seen:
                seen.add(item.name)
                if strings_of(returned[0]):
                    record["file"] = True
            if item.name == "__init__" and item.name not in seen:
                seen.add(item.name)
                if needs_settings(item):
                    record["settings"] = True
        base = next((b.id for b in cls.bases if isinstance(b, ast.Name)), None)
        here = {n.name for n in tree.body if isinstance(n, ast.ClassDef)}
        name = base if base in imports or base in here else None
    return record


def shorthands(release):
    """Words that stand for the class which quantises while it loads."""
    names = set()
    for node in (release.tree("config/quantization.py") or ast.Module([], [])).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict) and node.target.id == "_ONLINE_SHORTHANDS":
            names.update(key.value for key in node.value.keys if isinstance(key, ast.Constant))
    return names


def made_anyway(release):
    """Methods whose class the loader makes before it looks for settings: `if quantization == "gguf": return quant_cls()`."""
    tree = release.tree("model_executor/model_loader/weight_utils.py")
    loader = next((n for n in (tree.body if tree else []) if isinstance(n, ast.FunctionDef) and n.name == "get_quant_config"), None)
    names = set()
    for node in ast.walk(loader) if loader else ():
        made = node.body[0].value if isinstance(node, ast.If) and isinstance(node.body[0], ast.Return) else None
        if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and not made.args:
            names.update(strings_of(node.test))
    return names | shorthands(release) | {"online", "bitsandbytes"}


def module_path(release, module, level):
    """Where `from .awq import X` or `from vllm.a.b import X` leads."""
    base = (QUANTISATION.split("/") if level == 1 else []) + (module or "").split(".")
    if level == 0 and base[:1] == ["vllm"]:
        base = base[1:]
    path = "/".join(part for part in base if part)
    for candidate in (path + ".py", path + "/__init__.py"):
        if release.tree(candidate):
            return candidate
    return None


def schemes(release):
    """What compressed-tensors asks of a device for a kind of layer, by the file of the kind: wNa16, w8a8_int8."""
    folder, start, out = QUANTISATION + "/compressed_tensors/schemes", "compressed_tensors_", {}
    for name in release.names(folder):
        if not name.startswith(start) or not name.endswith(".py"):
            continue
        path = f"{folder}/{name}"
        for node in release.tree(path).body:
            least = method_facts(release, {node.name: path}, node.name).get("capability") if isinstance(node, ast.ClassDef) else None
            if least is not None:
                out["compressed-tensors " + name[len(start):-3]] = {"capability": least}
    return out


def quantization(release):
    tree = release.tree(QUANTISATION + "/__init__.py")
    names, table, imports, gone = [], {}, {}, set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            target = next((t.id for t in targets if isinstance(t, ast.Name)), "")
            if target in ("QuantizationMethods", "QUANTIZATION_METHODS") and node.value is not None and not names:
                names = strings_of(node.value)
            if target == "DEPRECATED_QUANTIZATION_METHODS":
                gone = set(strings_of(node.value))
            if target.lower() == "method_to_config" and isinstance(node.value, ast.Dict):
                table = {k.value: v.id for k, v in zip(node.value.keys, node.value.values)
                         if isinstance(k, ast.Constant) and isinstance(v, ast.Name)}
        if isinstance(node, ast.ImportFrom):
            path = module_path(release, node.module, node.level)
            for alias in node.names:
                if path:
                    imports[alias.asname or alias.name] = path
    out, anyway, short = {}, made_anyway(release), shorthands(release)
    for name in names:
        out[name] = {"deprecated": True} if name in gone else {}
        known = table.get(name) or (table.get("online") if name in short else None)
        out[name].update(method_facts(release, imports, known))
        if name in table and name in short:
            out[name]["online"] = True  # a method of checkpoints, and a word for those without settings
        if name in anyway:
            out[name].pop("file", None)
            out[name].pop("settings", None)
        if out[name].get("file"):
            out[name].pop("settings", None)  # the file is looked for first
    return {**out, **schemes(release)}


def backends(release):
    for path in BACKEND_FILES:
        for node in (release.tree(path) or ast.Module([], [])).body:
            if isinstance(node, ast.ClassDef) and node.name in ("AttentionBackendEnum", "_Backend"):
                return {t.id: {} for item in node.body if isinstance(item, ast.Assign) for t in item.targets if isinstance(t, ast.Name)}
    return {}


def drafts(release):
    """Types and architectures that hf_config_override() of SpeculativeConfig asks for: what none of them names has no MTP layers
    of its own for this release. A name may come with a condition; then it is here all the same."""
    for path in ("config/speculative.py", "config/__init__.py", "config.py"):
        for node in ast.walk(release.tree(path) or ast.Module([], [])):
            if isinstance(node, ast.FunctionDef) and node.name == "hf_config_override":
                asked = [test for test in ast.walk(node) if isinstance(test, ast.Compare)]
                return {word.value: {} for test in asked for word in ast.walk(test)
                        if isinstance(word, ast.Constant) and isinstance(word.value, str)}
    return {}


def reasoning(release):
    """Names of reasoning parsers, of releases whose configuration looks for them."""
    if "get_reasoning_parser" not in (release.read("config/reasoning.py") or ""):
        return {}
    for node in ast.walk(release.tree("reasoning/__init__.py") or ast.Module([], [])):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Dict):
            return {key.value: {} for key in node.value.keys if isinstance(key, ast.Constant)}
    return {}


def cache_types(release):
    """Types of the KV cache, of releases whose configuration looks for them; before, the parser has a list of choices."""
    if "_validate_cache_dtype" not in (release.read("config/cache.py") or "") or "is_known_kv_cache_dtype" not in release.read("config/cache.py"):
        return {}
    for node in release.tree("config/cache.py").body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "CacheDType":
            return {name: {} for name in strings_of(node.value)}
    return {}


def series(read, kind):
    """{name: [{"since": version, ...}]}: a step where something changed, {"since": version, "gone": true} where it went."""
    out = {}
    for name in sorted(set().union(*(facts[kind] for _, facts in read))):
        steps, now = [], None
        for version, facts in read:
            record = facts[kind].get(name)
            if record != now:
                steps.append({"since": version, **(record if record is not None else {"gone": True})})
                now = record
        out[name] = steps
    return out


def from_table(path):
    """{release: what was read of it} of an earlier output, where there is one."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        table = json.load(file)
    found = {version: {kind: {} for kind in KINDS} for version in table["versions"]}
    for version, facts in found.items():
        for kind in KINDS:
            for name, steps in table.get(kind, {}).items():
                last = [step for step in steps if key_of(step["since"]) <= key_of(version)][-1:]
                if last and "gone" not in last[0]:
                    facts[kind][name] = {key: value for key, value in last[0].items() if key != "since"}
    return found


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    found = from_table(sys.argv[1])
    for version, release in releases(sys.argv[2:]):
        found[version] = {"bounds": bounds(release), "quantization": quantization(release), "backends": backends(release),
                          "drafts": drafts(release), "reasoning": reasoning(release), "cache_types": cache_types(release)}
    read = sorted(found.items(), key=lambda item: key_of(item[0]))
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write('{"schema": "oomsight.engine-arguments/1", "engine": "vllm",\n')
        out.write(f'"versions": {json.dumps([version for version, _ in read])},\n"parts": {json.dumps(PARTS)}')
        for kind in KINDS:
            lines = [f"{json.dumps(name)}: {json.dumps(steps)}" for name, steps in series(read, kind).items()]
            out.write(f',\n"{kind}": {{\n' + ",\n".join(lines) + "\n}")
            print(f"{kind}: {len(lines)}")
        out.write("}\n")


if __name__ == "__main__":
    main()
