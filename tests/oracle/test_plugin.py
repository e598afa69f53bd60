"""The plugin in real engines on a GPU that is not there: tests/oracle/test_plugin.py WHEEL [CASE...]

The wheel is unpacked beside the engine's packages (PYTHONPATH), so that its entry point, program and stand-ins are the ones that
people get. Cases: refuse (case 001 is stopped before weights are loaded), warn (it dies and leaves a bundle), start-VERSION (a
healthy start is told), bundle (a small model dies, with its memory history recorded), ranks (two workers die), and one per kind of sabotage: a step of the
plugin fails, and the engine starts, or dies, with the very figures it has without the plugin. A sabotage is a few lines behind a
module of the unpacked wheel, or another program in place of ours: the product has no hooks for it. Exit 77 without engines."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

import engines
import models
import seeds

DEVICE = seeds.A5090 + ["--outside", "4606MiB"]
SMALL = ["--gpu", "RTX 5090", "--gpu-total", "33672921088"]


def run(site, version, options, model, flags, more):
    binary = program_of(site)
    env = {"OOMSIGHT": "1", "PYTHONPATH": site, "OOMSIGHT_COMMAND": binary, "OOMSIGHT_SHIM_DIR": os.path.join(site, "oomsight", "stand-ins")}
    env.update(more)
    with tempfile.TemporaryDirectory() as folder:
        path = models.write(folder, model)
        return engines.dryrun(binary, engines.venvs()[version], options, ["vllm", "serve", path] + flags, env)


def program_of(site):
    binary = glob.glob(os.path.join(site, "*.data", "scripts", "oomsight"))[0]
    os.chmod(binary, 0o755)
    return binary


def refuse(site, folder):
    o = run(site, "0.19.1", DEVICE, "qwen3.6-27b-w4a16", seeds.HYBRID, {"OOMSIGHT_PREFLIGHT": "refuse"})
    return [("stops before weights are loaded", "stopped before loading weights" in o.log and "Model loading took" not in o.log),
            ("names the phase", "does not fit in cudagraph_profile" in o.log), ("names a fix", "Try: --" in o.log),
            ("the engine ends with an error", o.code not in (0, None))], o


def warn(site, folder):
    o = run(site, "0.19.1", DEVICE, "qwen3.6-27b-w4a16", seeds.HYBRID, {"OOMSIGHT_BUNDLE_DIR": folder})
    found = glob.glob(os.path.join(folder, "*", "bundle.json"))
    bundle = json.load(open(found[0], encoding="utf-8")) if found else {}
    return [("the engine dies of its own", o.report and o.report["verdict"] == "fails"), ("warns before", "oomsight: this configuration does not fit" in o.log),
            ("a bundle is written and named", bool(found) and os.path.dirname(found[0]) in o.log),
            ("its phase is cudagraph_profile", bundle.get("phase") == "cudagraph_profile"),
            ("it tried 1677721600 bytes", bundle.get("tried_bytes") == 1677721600),
            ("the plan beside it says the same", (bundle.get("plan") or {}).get("tried_bytes") == 1677721600),
            ("it has the pages", {"incident.json", "incident.html", "plan.html", "measured.json"} <= set(bundle.get("files", [])))], o


def start(version):
    def case(site, folder):
        o = run(site, version, SMALL, "opt-125m", ["--enforce-eager"], {"OOMSIGHT_PREFLIGHT": "refuse"})
        return [("%s starts" % version, o.report and o.report["verdict"] == "fits"),
                ("%s is told so" % version, "oomsight: this configuration starts" in o.log)], o
    return case


# ---- sabotage --------------------------------------------------------------------------------------------------------

# The version of the sabotaged starts; any that has the plugin's two places does.
VERSION = os.environ.get("OOMSIGHT_SABOTAGE_VERSION", "0.24.0")
EAGER = ["--enforce-eager"]
DIES = EAGER + ["--kv-cache-memory-bytes", "64424509440"]  # 60 GiB of KV cache, asked for on a card of 31
BROKEN = """
class Sabotage(BaseException):
    pass
def broken(*args, **keywords):
    import sys
    print("sabotaged step reached", file=sys.stderr, flush=True)
    raise Sabotage("sabotage")
"""


def figures(outcome):
    """What an engine's start came to; equal for equal starts."""
    report = outcome.report or {}
    child = report.get("child") or {}
    return {"exit": outcome.code, "verdict": report.get("verdict"), "phase": report.get("phase"), "tried_bytes": report.get("tried_bytes"),
            "weights_bytes": report.get("weights_bytes"), "kv_tokens": (report.get("kv") or {}).get("tokens"),
            "activation_bytes": report.get("peak_activation_bytes"), "allocated_bytes": child.get("torch_allocated_bytes"),
            "oom": bool(child.get("oom_message"))}


_without = {}


def without(site, flags):
    """The same start with the plugin asleep."""
    key = " ".join(flags)
    if key not in _without:
        outcome = run(site, VERSION, SMALL, "opt-125m", flags, {"OOMSIGHT": "0"})
        _without[key] = figures(outcome)
        print("     without the plugin (%.0f s): %s" % (outcome.seconds, json.dumps(_without[key])), flush=True)
    return _without[key]


def sabotage(flags, module=None, code="", program=None, env=None, reached="sabotaged step reached", told="the engine goes on without it"):
    """module and code: what is appended to which file of the package; program: a shell script in place of ours, $0 is ours."""
    def case(site, folder):
        copy = os.path.join(folder, "site")
        shutil.copytree(site, copy)
        more = {"OOMSIGHT_PREFLIGHT": "refuse" if flags is EAGER else "warn", "OOMSIGHT_BUNDLE_DIR": os.path.join(folder, "bundles")}
        if module:
            with open(os.path.join(copy, "oomsight", module), "a", encoding="utf-8") as f:
                f.write(BROKEN + code + "\n")
        if program is not None:
            more["OOMSIGHT_COMMAND"] = os.path.join(folder, "program")
            with open(more["OOMSIGHT_COMMAND"], "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\necho sabotaged step reached >>%s/reached\nours=%s\n%s\n" % (folder, program_of(copy), program))
            os.chmod(more["OOMSIGHT_COMMAND"], 0o755)
        more.update({name: value.replace("FOLDER", folder) for name, value in (env or {}).items()})
        full = more["OOMSIGHT_BUNDLE_DIR"] if (env or {}).get("OOMSIGHT_BUNDLE_DIR") == "FOLDER/full" else None
        if full:
            os.mkdir(full)
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", full]).returncode:
                raise SystemExit("a full disk needs the right to mount")
        try:
            outcome = run(copy, VERSION, SMALL, "opt-125m", flags, more)
        finally:
            if full:
                subprocess.run(["umount", full])
        want, seen = without(site, flags), figures(outcome)
        log = outcome.log + (open(folder + "/reached").read() if os.path.exists(folder + "/reached") else "")
        claims = [("the engine %s as without the plugin" % ("starts" if flags is EAGER else "dies"), seen == want)]
        if reached:
            claims.append(("the sabotaged step was reached", reached in log))
        if told:
            claims.append(("the log says what is missing", told in log))
        if seen != want:
            print("     seen: %s" % json.dumps(seen))
        return claims, outcome
    return case


def bundle(site, folder):
    """A small model that dies, its history recorded: what `sabotage` cases leave out is here."""
    copy, place = os.path.join(folder, "site"), os.path.join(folder, "bundles")
    shutil.copytree(site, copy)
    with open(os.path.join(copy, "oomsight", "_bundle.py"), "a", encoding="utf-8") as f:
        f.write("_attach = observe\ndef observe():\n    import torch\n    torch.cuda.memory._record_memory_history()\n    _attach()\n")
    o = run(copy, VERSION, SMALL, "opt-125m", DIES, {"OOMSIGHT_BUNDLE_DIR": place})
    found = glob.glob(os.path.join(place, "*", "bundle.json"))
    told = json.load(open(found[0], encoding="utf-8")) if found else {}
    if figures(o) != without(site, DIES):
        print("     seen: %s" % json.dumps(figures(o)))
    replayed = subprocess.run([program_of(site), "replay", "--json", os.path.join(os.path.dirname(found[0]), "snapshot.pickle")],
                              capture_output=True, text=True) if found else None
    return [("a bundle is written and named", bool(found) and os.path.dirname(found[0]) in o.log), ("its phase is kv_alloc", told.get("phase") == "kv_alloc"),
            ("the engine dies as without the plugin", figures(o) == without(site, DIES)),
            ("what failed was told to the byte", told.get("tried_bytes") and told["tried_bytes"] == (o.report or {}).get("tried_bytes")),
            ("the plan lies beside it", (told.get("plan") or {}).get("weights_bytes")), ("what was measured, too", told.get("measured", {}).get("reserved_bytes")),
            ("the history is there and replay reads it", replayed is not None and '"schema": "oomsight.replay/1"' in replayed.stdout)], o


def ranks(site, folder):
    """Two workers, each a process of its own that has not seen the preflight: each leaves a bundle, with its rank and a plan."""
    o = run(site, VERSION, ["--gpu", "RTX 5090x2", "--gpu-total", "33672921088"], "opt-125m", DIES + ["--tensor-parallel-size", "2"], {"OOMSIGHT_BUNDLE_DIR": folder})
    told = [json.load(open(path, encoding="utf-8")) for path in glob.glob(os.path.join(folder, "*", "bundle.json"))]
    return [("each rank leaves a bundle", sorted(str(b.get("rank")) for b in told) == ["0", "1"]),
            ("their phase is kv_alloc", told and all(b["phase"] == "kv_alloc" for b in told)),
            ("the plan lies beside each", told and all((b.get("plan") or {}).get("phase") == "kv_alloc" for b in told)),
            ("the figures are those of its own device", told and all(b["measured"].get("reserved_bytes", 0) > 20 << 30 for b in told))], o


SABOTAGE = {
    "import": sabotage(EAGER, "__init__.py", "broken_import = 1\nprint('sabotaged step reached', flush=True)\nraise ImportError('sabotage')", told=None),
    "register": sabotage(EAGER, "vllm_plugin.py", "PATCHES = dict.fromkeys(PATCHES, broken)"),
    "read-config": sabotage(EAGER, "vllm_plugin.py", "command_of = broken"),
    "read-device": sabotage(EAGER, "vllm_plugin.py", "device_of = broken"),
    "program-missing": sabotage(EAGER, env={"OOMSIGHT_COMMAND": "/no/such/program"}, reached=None),
    "program-crashes": sabotage(EAGER, program="kill -SEGV $$"),
    "program-hangs": sabotage(EAGER, program="sleep 3600", told="no answer within"),
    "program-rubbish": sabotage(EAGER, program="printf '\\377<script id=\"data\">{\"documents\":[{}]}</script>'"),
    "print": sabotage(EAGER, "vllm_plugin.py", "log.info = log.warning = log.error = broken", told=None),
    "environment": sabotage(EAGER, env={"OOMSIGHT_PREFLIGHT": "nonsense", "OOMSIGHT_GPU": "nonsense", "OOMSIGHT_GPU_TOTAL": "nonsense"}, reached=None),
    "hook": sabotage(DIES, "_bundle.py", "observe = is_out_of_memory = broken"),
    "measure": sabotage(DIES, "_bundle.py", "measured = broken"),
    "folder": sabotage(DIES, env={"OOMSIGHT_BUNDLE_DIR": "/proc/no/such/place"}, reached=None),
    "full-disk": sabotage(DIES, env={"OOMSIGHT_BUNDLE_DIR": "FOLDER/full"}, reached="No space left on device"),
    "hung-disk": sabotage(DIES, "_bundle.py", "import time\ndef new_folder():\n    print('sabotaged step reached', flush=True)\n    time.sleep(3600)",
                          told="not done within"),
    "explain-crashes": sabotage(DIES, program="[ \"$1\" = explain ] && kill -SEGV $$\nexec \"$ours\" \"$@\""),
    "files": sabotage(DIES, "_bundle.py", "recorded = page_text = broken\njson = None\n_text = Answer.text\nAnswer.text = property(broken)"),
    "plan-beside": sabotage(DIES, "vllm_plugin.py", "plan_for = broken"),
}

CASES = {"refuse": refuse, "warn": warn, "start-0.19.1": start("0.19.1"), "start-0.24.0": start("0.24.0"), "start-0.32.0": start("0.32.0"),
         "bundle": bundle, "ranks": ranks, **{"sabotage-" + name: case for name, case in SABOTAGE.items()}}


def version_of(name):
    return name[6:] if name.startswith("start-") else "0.19.1" if name in ("refuse", "warn") else VERSION


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    passed, failed = 0, 0
    wanted = sys.argv[2:] or list(CASES)
    if "sabotage" in wanted:
        wanted = [n for n in wanted if n != "sabotage"] + ["sabotage-" + n for n in SABOTAGE]
    with tempfile.TemporaryDirectory() as site:
        zipfile.ZipFile(sys.argv[1]).extractall(site)
        for name in wanted:
            if version_of(name) not in engines.venvs():
                print("skip %s: no engine" % name)
                continue
            with tempfile.TemporaryDirectory() as folder:
                claims, outcome = CASES[name](site, folder)
            for sentence, holds in claims:
                print("%s %s: %s" % ("ok  " if holds else "FAIL", name, sentence))
                passed, failed = passed + bool(holds), failed + (not holds)
            if not all(holds for _, holds in claims):
                print("\n".join(line for line in outcome.log.splitlines() if "oomsight" in line or "Error" in line)[-3000:])
            print("     %s took %.0f s" % (name, outcome.seconds), flush=True)
    print("plugin: %d claims hold, %d do not" % (passed, failed))
    return 1 if failed else 77 if not passed else 0


if __name__ == "__main__":
    sys.exit(main())
