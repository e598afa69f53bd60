"""The plugin in real engines on a GPU that is not there: tests/oracle/test_plugin.py WHEEL [CASE...]

The wheel is unpacked beside the engine's packages (PYTHONPATH), so that its entry point, library and stand-ins are the ones that
people get. Cases: refuse (case 001 is stopped before weights are loaded), warn (it dies and leaves a bundle), sabotage (the
library is missing: the engine starts as without the plugin), start-VERSION (a healthy start is told). Exit 77 without engines."""
import glob
import json
import os
import sys
import tempfile
import zipfile

import engines
import models
import seeds

DEVICE = seeds.A5090 + ["--outside", "4606MiB"]
SMALL = ["--gpu", "RTX 5090", "--gpu-total", "33672921088"]


def run(site, version, options, model, flags, more):
    binary = glob.glob(os.path.join(site, "*.data", "scripts", "oomsight"))[0]
    os.chmod(binary, 0o755)
    env = {"OOMSIGHT": "1", "PYTHONPATH": site, "OOMSIGHT_SHIM_DIR": os.path.join(site, "oomsight", "stand-ins")}
    env.update(more)
    with tempfile.TemporaryDirectory() as folder:
        path = models.write(folder, model)
        return engines.dryrun(binary, engines.venvs()[version], options, ["vllm", "serve", path] + flags, env)


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


def sabotage(site, folder):
    o = run(site, "0.19.1", SMALL, "opt-125m", ["--enforce-eager"], {"OOMSIGHT_LIBRARY": "/no/such/library.so", "OOMSIGHT_PREFLIGHT": "refuse"})
    return [("the engine starts without the library", o.report and o.report["verdict"] == "fits"),
            ("and says what is missing", "the engine goes on without it" in o.log)], o


def start(version):
    def case(site, folder):
        o = run(site, version, SMALL, "opt-125m", ["--enforce-eager"], {"OOMSIGHT_PREFLIGHT": "refuse"})
        return [("%s starts" % version, o.report and o.report["verdict"] == "fits"),
                ("%s is told so" % version, "oomsight: this configuration starts" in o.log)], o
    return case


CASES = {"refuse": refuse, "sabotage": sabotage, "start-0.19.1": start("0.19.1"), "start-0.24.0": start("0.24.0"),
         "start-0.32.0": start("0.32.0"), "warn": warn}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as site:
        zipfile.ZipFile(sys.argv[1]).extractall(site)
        for name in sys.argv[2:] or CASES:
            if (name[6:] if name.startswith("start-") else "0.19.1") not in engines.venvs():
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
