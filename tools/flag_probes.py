"""Give the engine's real parser small command lines and note what each changes in the parsed result.

Used by dump_flags.py. A probe's answer is the difference from the plain `serve m`, or "error"; nothing here knows
what the right answer is.
"""

import contextlib
import dataclasses
import enum
import io
import json
import os
import tempfile

CONFIG_FILE = "@config"  # stands for the YAML file written for the probe

# name -> (words after `serve`, YAML text or None). The names are the rule names of docs/reference/formats/engine-flags.md.
PROBES = {
    "underscore_names": (["m", "--max_model_len", "7"], None),
    "underscore_mixed_equals": (["m", "--max_model-len=7"], None),
    "abbreviation": (["m", "--gpu-memory-util", "0.5"], None),
    "abbreviation_ambiguous": (["m", "--gpu", "0.5"], None),
    "repeat_last_wins": (["m", "--max-model-len", "5", "--max-model-len", "7"], None),
    "short_equals": (["m", "-tp=2"], None),
    "short_glued": (["m", "-tp2"], None),
    "positional_last": (["--max-model-len", "7", "m"], None),
    "model_option": (["--model", "x"], None),
    "model_option_equals": (["--model=x"], None),
    "model_option_and_positional": (["m", "--model", "x"], None),
    "model_option_equals_and_positional": (["m", "--model=x"], None),
    "unknown_option": (["m", "--no-such-option", "1"], None),
    "suffix_decimal": (["m", "--max-model-len", "16k"], None),
    "suffix_binary": (["m", "--max-model-len", "16K"], None),
    "suffix_fraction": (["m", "--max-model-len", "1.5k"], None),
    "suffix_fraction_binary": (["m", "--max-model-len", "1.5K"], None),
    "max_model_len_auto": (["m", "--max-model-len", "auto"], None),
    "max_model_len_minus_one": (["m", "--max-model-len", "-1"], None),
    "dotted": (["m", "--compilation-config.cache_dir", "d"], None),
    "dotted_equals": (["m", "--compilation-config.cache_dir=d"], None),
    "dotted_underscore": (["m", "--compilation_config.cache_dir", "d"], None),
    "dotted_key_dash": (["m", "--compilation-config.cache-dir", "d"], None),
    "dotted_abbreviated": (["m", "--compilation-conf.cache_dir", "d"], None),
    "dotted_append": (["m", "--compilation-config.splitting_ops+", "a,b"], None),
    "dotted_nested": (["m", "--hf-overrides.a.b", "1"], None),
    "dotted_suffix": (["m", "--hf-overrides.a", "1k"], None),
    "dotted_repeat": (["m", "--hf-overrides.a", "1", "--hf-overrides.a", "2"], None),
    "dotted_after_json": (["m", "--hf-overrides", '{"a": 1}', "--hf-overrides.b", "2"], None),
    "dotted_before_json": (["m", "--hf-overrides.b", "2", "--hf-overrides", '{"a": 1}'], None),
    "json_suffix": (["m", "--compilation-config", '{"cudagraph_num_of_warmups": 1k}'], None),
    "json_none": (["m", "--hf-overrides", "None"], None),
    "O_glued": (["m", "-O3"], None),
    "O_space": (["m", "-O", "3"], None),
    "O_equals": (["m", "-O=3"], None),
    "O_dotted": (["m", "-O.cache_dir=d"], None),
    "O_dotted_level": (["m", "-O.level=3"], None),
    "O_dotted_mode": (["m", "-O.mode=3"], None),
    "O_json": (["m", "-O", '{"cache_dir": "d"}'], None),
    "cc_dotted": (["m", "-cc.cache_dir=d"], None),
    "cc_json": (["m", "-cc", '{"cache_dir": "d"}'], None),
    "compilation_config_number": (["m", "--compilation-config", "3"], None),
    "pairs": (["m", "--limit-mm-per-prompt", "image=2,video=1"], None),
    "config_file": (["m", "--config", CONFIG_FILE], "max-model-len: 7\n"),
    "config_file_equals": (["m", f"--config={CONFIG_FILE}"], "max-model-len: 7\n"),
    "config_file_twice": (["m", "--config", CONFIG_FILE, "--config", CONFIG_FILE], "max-model-len: 7\n"),
    "config_underscore": (["m", "--config", CONFIG_FILE], "max_model_len: 7\n"),
    "config_then_cli": (["m", "--config", CONFIG_FILE, "--max-model-len", "9"], "max-model-len: 7\n"),
    "cli_then_config": (["m", "--max-model-len", "9", "--config", CONFIG_FILE], "max-model-len: 7\n"),
    "config_model": (["--config", CONFIG_FILE], "model: x\nmax-model-len: 7\n"),
    "config_model_and_positional": (["m", "--config", CONFIG_FILE], "model: x\n"),
    "config_model_tag": (["--config", CONFIG_FILE], "model_tag: x\n"),
    "config_true": (["m", "--config", CONFIG_FILE], "enforce-eager: true\n"),
    "config_false": (["m", "--config", CONFIG_FILE], "enable-prefix-caching: false\n"),
    "config_no_true": (["m", "--config", CONFIG_FILE], "no-enable-prefix-caching: true\n"),
    "config_null": (["m", "--config", CONFIG_FILE], "quantization: null\n"),
    "config_list": (["m", "--config", CONFIG_FILE], "served-model-name: [a, b]\n"),
    "config_mapping": (["m", "--config", CONFIG_FILE], "hf-overrides:\n  a: 1\n"),
    "config_dotted": (["m", "--config", CONFIG_FILE], "hf-overrides.a: 1\n"),
    "config_json_text": (["m", "--config", CONFIG_FILE], "hf-overrides: '{\"a\": 1}'\n"),
    "config_suffix": (["m", "--config", CONFIG_FILE], "max-model-len: 16k\n"),
    "config_extension": (["m", "--config", CONFIG_FILE + ".json"], "max-model-len: 7\n"),
}


def plain(value):
    """A value as JSON; an object as the difference from a fresh one of its class."""
    if isinstance(value, enum.Enum):
        return value.value if isinstance(value.value, (int, str)) else value.name
    names = None
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.init]
    elif hasattr(type(value), "model_fields"):  # a pydantic model, as some configs of 0.8 are
        names = list(type(value).model_fields)
    if names is not None:
        try:
            fresh = type(value)()
        except Exception:
            fresh = None
        pairs = [(name, plain(getattr(value, name, None)), plain(getattr(fresh, name, None))) for name in names]
        return {name: now for name, now, before in pairs if now != before}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(type(value))


def parse(parser, words, first="serve"):
    """The namespace as a dictionary, or None when the parser refuses."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return {dest: plain(value) for dest, value in vars(parser.parse_args([first, *words])).items()}
        except (Exception, SystemExit):
            return None


def run(parser):
    """Every probe's answer, by name."""
    base = parse(parser, ["m"])
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (words, text) in PROBES.items():
            path = os.path.join(folder, "serve.yaml")
            for target in (path, path + ".json"):
                with open(target, "w", encoding="utf-8") as out:
                    out.write(text or "")
            got = parse(parser, [word.replace(CONFIG_FILE, path) for word in words])
            if got is None or base is None:
                answers[name] = "error"
                continue
            changed = {dest: value for dest, value in got.items() if value != base.get(dest) and dest != "config"}
            answers[name] = json.loads(json.dumps(changed, sort_keys=True))
    return answers
