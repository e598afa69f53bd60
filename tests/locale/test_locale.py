#!/usr/bin/env python3
"""The library answers with the same bytes whatever locale the process has set. usage: test_locale.py BINARY
BINARY is the command with a constructor that sets TEST_LOCALE. Every command and format under every locale is compared with C.
Locales that this system does not have, and that cannot be made here, are named as skipped; without any the test is skipped (77)."""
import glob
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = os.path.join(ROOT, "tests", "fixtures")
# A comma; Arabic; a point of two bytes; letters whose small form is no ASCII; bytes above 127 that are letters.
LOCALES = ["de_DE.UTF-8", "ar_EG.UTF-8", "fa_IR.UTF-8", "ps_AF.UTF-8", "tr_TR.UTF-8", "de_DE.ISO-8859-1", "tr_TR.ISO-8859-9"]
MADE = "xx_XX.UTF-8"
CUSTOM = """LC_NUMERIC
decimal_point "<U00B7>"
thousands_sep "<U002E>"
grouping 2;1
END LC_NUMERIC
""" + "".join('%s\ncopy "de_DE"\nEND %s\n' % (name, name) for name in (
    "LC_CTYPE", "LC_COLLATE", "LC_MONETARY", "LC_TIME", "LC_MESSAGES", "LC_PAPER", "LC_NAME", "LC_ADDRESS", "LC_TELEPHONE",
    "LC_MEASUREMENT")) + 'LC_IDENTIFICATION\ntitle "a point of its own"\nlanguage "x"\nterritory "x"\nrevision "1"\ndate "2026-01-01"\nEND LC_IDENTIFICATION\n'


def make_custom(folder):
    """A locale whose decimal point is a middle dot (two bytes) and whose digits are grouped oddly, or None with the reason."""
    if not shutil.which("localedef"):
        return "no localedef here"
    source = os.path.join(folder, "custom")
    with open(source, "w", encoding="ascii") as f:
        f.write(CUSTOM)
    made = subprocess.run(["localedef", "-c", "-i", source, "-f", "UTF-8", os.path.join(folder, MADE)], capture_output=True, text=True)
    return None if os.path.isdir(os.path.join(folder, MADE)) else "localedef: " + made.stderr.strip()[-200:]


def wrapped_log(folder):
    """A log inside an archive under a name that is not ASCII."""
    path = os.path.join(folder, "logs.tar")
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(os.path.join(FIXTURES, "kb", "vllm", "context-too-long", "positive.log"), arcname="d\u00e9p\u00f4t/\u0438.log")
    return path


def commands(folder):
    models = os.path.join(FIXTURES, "models")
    wrong = os.path.join(models, "small-hybrid")
    for form in ("text", "json", "md", "html"):
        yield ["plan", "--offline", "--gpu", "4090", "--gpu-total", "23.52GiB", "--gpu-used", "0.5GiB", "--explain", "--format", form,
               "--", "vllm", "serve", os.path.join(models, "small-llama"), "--gpu-memory-utilization", "0.8765432109876543", "--max-model-len", "1.5k",
               "--hf-overrides", '{"rope_theta": 5.5e5, "rope_scaling": {"rope_type": "linear", "factor": 1.5}}']
        yield ["plan", "--offline", "--gpu", "4090", "--vllm", "0.19.1", "--explain", "--format", form, "--", "vllm", "serve", wrong,
               "--kv-cache-dtype", "fp8", "--attention-backend", "flashinfer", "--speculative-config", '{"method": "MTP", "num_speculative_tokens": 2}']
        yield ["replay", "--format", form, os.path.join(FIXTURES, "traces", "stranded.trace"), "--settings", "garbage_collection_threshold:0.75,expandable_segments:True"]
    yield ["plan", "--offline", "--gpu", "4090", "--max-fit", "--", "vllm", "serve", wrong, "--max-model-len", "30000"]
    yield ["plan", "--offline", "--gpu", "RTX PRO 6000 IIIGI", "--", "vllm", "serve", wrong]
    yield ["plan", "--offline", "--gpu", "4090", "--gpu-total", "23,5GiB", "--", "vllm", "serve", wrong]
    yield ["plan", "--offline", "--gpu", "4090", "--", "vllm", "serve", "/no/such/model"]
    yield ["explain", "/no/such/log"]
    yield ["replay", "/no/such/trace"]
    yield ["replay", "--events", os.path.join(FIXTURES, "traces", "stranded.trace")]
    yield ["replay", os.path.join(FIXTURES, "traces", "two-devices.json")]
    for form in ("text", "json", "md", "html", "github", "sarif"):
        yield ["explain", "--format", form] + sorted(glob.glob(os.path.join(FIXTURES, "kb", "vllm", "*", "positive.log")))
        yield ["check", "--offline", "--models", models, "--gpu", "4090", "--vllm", "0.32.0", "--format", form] + sorted(
            glob.glob(os.path.join(FIXTURES, "deploy", "*")))
    yield ["explain"] + sorted(glob.glob(os.path.join(FIXTURES, "kb", "*", "*", "*.log")))
    yield ["explain", "--json", wrapped_log(folder)]
    for form in ("text", "json", "md", "html", "junit"):
        for more in ([], ["--diff", "0.10.2", "0.32.0"]):
            yield ["matrix", "--offline", "--models", models, "--format", form, os.path.join(FIXTURES, "matrix", "fleet.yaml")] + more
    yield ["gpus"]
    yield ["gpus", "--json"]
    yield ["engines", "--json"]
    yield ["kb", "list", "--json"]


def run(binary, words, locale, folder):
    env = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": locale, "TEST_LOCALE": locale, "LANGUAGE": "de"}
    if locale == MADE:
        env["LOCPATH"] = folder
    for name in os.environ:
        if name.endswith("SAN_OPTIONS"):
            env[name] = os.environ[name]
    made = subprocess.run([binary] + words, env=env, capture_output=True, stdin=subprocess.DEVNULL)
    return made.returncode, made.stdout, made.stderr


def first_difference(one, other):
    for a, b in zip(one.splitlines(), other.splitlines()):
        if a != b:
            return "%s\n    %s" % (a[:160].decode("utf-8", "replace"), b[:160].decode("utf-8", "replace"))
    return "one is longer"


def main():
    binary, different, compared, skipped = sys.argv[1], 0, 0, []
    with tempfile.TemporaryDirectory(prefix="oomsight-locale-") as folder:
        missing = make_custom(folder)
        locales = list(LOCALES)
        if missing:
            skipped.append("%s (%s)" % (MADE, missing))
        else:
            locales.append(MADE)
        asked = list(commands(folder))
        expected = [run(binary, words, "C", folder) for words in asked]
        broken = [words for words, answer in zip(asked, expected) if answer[0] not in (0, 1, 2, 3)]
        if broken:
            print("not answered even under C:", broken)
            return 1
        for locale in locales:
            if run(binary, ["--version"], locale, folder)[0] == 77:
                skipped.append(locale + " (not on this system)")
                continue
            for words, answer in zip(asked, expected):
                seen = run(binary, words, locale, folder)
                compared += 1
                if seen != answer:
                    different += 1
                    where = 1 if seen[1] != answer[1] else 2
                    print("%s: %s: exit %d, under C %d\n    %s" % (locale, " ".join(words)[:150], seen[0], answer[0],
                                                                 first_difference(seen[where], answer[where])))
    for name in skipped:
        print("skipped:", name)
    print("%d answers of %d commands in %d locales compared with C: %d differ" % (compared, len(asked), len(locales) - len(skipped) + bool(missing), different))
    return 77 if compared == 0 else 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
