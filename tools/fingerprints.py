#!/usr/bin/env python3
"""data/engines/vllm/fingerprints.json: of each rule with `units`, what its slice of the engine's source is in each release (shim/python/oomsight_slices.py).

    fingerprints.py --sources DIR --write       DIR/RELEASE/vllm/**/*.py of PyPI's wheels; releases that are not there keep what was seen of them
    fingerprints.py --sources DIR --base A --out FILE   the file as it would be if A were the newest
    fingerprints.py --sources DIR --compare A B what of the rules is another in B than in A
    fingerprints.py --sources DIR --check       each unit exists and each anchor hits in the newest release, and the file is what the source gives
    fingerprints.py --check                     the same as far as it goes without a source: every rule has its fingerprint, of the units that it has
    fingerprints.py --fetch RELEASE DIR         the .py files of PyPI's wheel, which is deleted again

Of the newest release there is a mark for each statement, so that another one can be told by what was added; of older ones since when each slice is
as it is. No statement stands in the file. Exit 0 when all is well, 1 when not."""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "shim", "python"))
import oomsight_slices as slicing  # noqa: E402

DATA = os.path.join(ROOT, "data", "engines", "vllm")
# What allocates on the way of every start, whatever rule is about it.
RUNNERS = {"v1/worker/gpu/model_runner.py:GPUModelRunner": ("__init__", "load_model", "initialize_kv_cache", "_dummy_run", "_dummy_sampler_run", "profile_run", "capture_model"),
           "v1/worker/gpu_model_runner.py:GPUModelRunner": ("__init__", "load_model", "initialize_kv_cache", "_dummy_run", "_dummy_sampler_run", "profile_run", "capture_model"),
           "v1/worker/gpu_worker.py:Worker": ("init_device", "load_model", "determine_available_memory", "initialize_from_config", "_compile_or_warm_up_model")}
START = [f"{owner}.{name}" for owner, names in RUNNERS.items() for name in names] + ["utils/mem_utils.py:MemorySnapshot.measure", "utils/mem_utils.py:memory_profiling",
                                                                                    "v1/worker/utils.py:request_memory", "v1/worker/utils.py:allocate_kv_cache"]
ALLOCATES = "torch.empty|torch.zeros|torch.ones|torch.full|torch.mm|torch.rand|torch.cuda.|torch.accelerator.|allocate|workspace|CpuGpuBuffer|UvaBuffer"


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def book(data=DATA):
    """(releases, {rule: its object}) of rules.json."""
    rows = read(os.path.join(data, "rules.json"))
    return next(row["versions"] for row in rows if "versions" in row), {row["rule"]: row for row in rows if "rule" in row}


def key(version):
    return [int(part) for part in version.split(".")]


def watched(rules):
    return {name: {"units": rule["units"], "anchor": rule.get("anchor", "")} for name, rule in rules.items() if rule.get("units")}


def packages(folder, releases):
    """Newest first."""
    there = {version: os.path.join(folder, version, "vllm") for version in releases if os.path.isdir(os.path.join(folder, version, "vllm"))}
    return {version: slicing.Package(there[version], seconds=3600) for version in sorted(there, key=key, reverse=True)}


def texts_of(package, rules, newer):
    """{rule: [texts of each unit]}: what stood elsewhere before is found by what it has of the release after."""
    found = slicing.slices(package, rules)
    lost = {unit: rules[name]["anchor"] for name, units in found.items() for unit, texts in units.items() if texts is None and newer}
    before = {unit: {slicing.mark(text) for text in newer[name][rules[name]["units"].index(unit)] or ()} for name, units in found.items() for unit in units if unit in lost}
    places = slicing.moved(package, lost, before)
    return {name: [package.texts(places[unit], rules[name]["anchor"]) if texts is None and unit in places else texts for unit, texts in units.items()] for name, units in found.items()}


def all_texts(folder, releases, rules):
    found, newer = {}, None
    for version, package in packages(folder, releases).items():
        found[version] = newer = texts_of(package, rules, newer)
    return found


def fingerprint(units):
    """Behind it a ? where a unit is not there: it may stand elsewhere, and nothing can be said of the release."""
    return slicing.fingerprint([text for texts in units for text in texts or ["(none)"]]) + ("?" if None in units else "")


def marks(texts):
    return "".join(slicing.mark(text) for text in texts or ())


def changes(found, old, releases):
    """{rule: [[first release that was read, fingerprint]]}, with what is known of releases whose source is not here."""
    result = {}
    for name in found[max(found, key=key)]:
        seen = {version: fingerprint(found[version][name]) for version in found}
        for since, mark in old.get(name, []):
            seen.setdefault(since, mark)
        rows = []
        for version in (one for one in releases if one in seen):
            if not rows or rows[-1][1] != seen[version]:
                rows.append([version, seen[version]])
        result[name] = rows
    return result


def there(package, newest, units):
    """The units of the newest release as they are called in that package."""
    lost = {unit: "" for unit in units if package.texts(unit, "") is None}
    places = slicing.moved(package, lost, {unit: {slicing.mark(text) for text in newest.texts(unit, "") or ()} for unit in lost})
    return [places.get(unit, unit) for unit in units]


def made(folder, base=None, data=DATA):
    """What the file is to be; of an older `base`, as if none had come after it, of the rules in `data`."""
    path = os.path.join(DATA, "fingerprints.json")
    releases, rules = book()[0], watched(book(data)[1])
    old = read(path) if os.path.exists(path) else {"releases": [], "changes": {}}
    start = {"start": {"units": START, "anchor": ALLOCATES}}
    found = all_texts(folder, releases, rules)
    newest = base or max(found, key=key)
    until = [version for version in releases if key(version) <= key(newest)]
    found = {version: texts for version, texts in found.items() if version in until}
    package = packages(folder, [newest])[newest]
    census = slicing.census_marks(package, there(package, next(iter(packages(folder, releases).values())), sorted({unit for rule in rules.values() for unit in rule["units"]})))
    return {"schema": "oomsight.fingerprints/1", "base": newest, "releases": sorted(set(found) | set(old["releases"]) & set(until), key=key),
            "watched": {name: slicing.mark(json.dumps(rule, sort_keys=True)) for name, rule in rules.items()},
            "statements": {name: [marks(texts) for texts in found[newest][name]] for name in rules},
            "start": {"units": START, "anchor": ALLOCATES, "statements": [marks(texts) for texts in texts_of(package, start, None)["start"]]},
            "census": {kind: "".join(names) for kind, names in census.items()},
            "changes": changes(found, old["changes"], until)}


def written(table):
    """A line for each rule."""
    lines = []
    for name, value in table.items():
        if name in ("watched", "statements", "changes"):
            value = "{\n" + ",\n".join("  %s: %s" % (json.dumps(rule), json.dumps(row, separators=(",", ":"))) for rule, row in value.items()) + "}"
        else:
            value = json.dumps(value, separators=(",", ":"))
        lines.append(" %s: %s" % (json.dumps(name), value))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def misdated(name, steps, changes, releases):
    """A step at a release whose slice is that of the release before."""
    for since in (step["since"] for step in steps if step["since"] in releases[1:]):
        before = [mark for release, mark in changes if key(release) < key(since)]
        if before and not before[-1].endswith("?") and since not in [release for release, _ in changes]:
            yield "%s: a step at %s, where its slice is as in the release before" % (name, since)


def problems(data=DATA):
    """What can be said without a source."""
    releases, rules = book(data)
    table = read(os.path.join(data, "fingerprints.json"))
    if table["base"] != releases[-1]:
        yield "the newest release is %s, fingerprints are of %s" % (releases[-1], table["base"])
    for name, rule in rules.items():
        if "units" not in rule or not rule["units"] and not rule.get("no_source"):
            yield "%s: no units, and no reason why" % name
    for name, rule in watched(rules).items():
        if table["watched"].get(name) != slicing.mark(json.dumps(rule, sort_keys=True)):
            yield "%s: its units or its anchor are not those that were read" % name
        elif len(table["statements"].get(name, ())) != len(rule["units"]) or not all(table["statements"][name]) or not table["changes"].get(name):
            yield "%s: a unit has no fingerprint of %s" % (name, table["base"])
    for name, rule in watched(rules).items():
        yield from misdated(name, rules[name]["steps"], table["changes"].get(name, []), table["releases"])
        if "not read" in rules[name]["meaning"]:
            yield "%s: its slice is known in %s to %s: say when it changed" % (name, table["releases"][0], table["releases"][-1])
    for name in set(table["statements"]) - set(watched(rules)):
        yield "%s: no such rule with units" % name


def sourced(folder):
    """What the source of the newest release says."""
    releases, rules = book()
    package = packages(folder, releases[-1:]).get(releases[-1])
    if not package:
        yield "the source of %s is not in %s" % (releases[-1], folder)
        return
    for name, units in slicing.slices(package, watched(rules)).items():
        for unit, texts in units.items():
            if not texts:
                yield "%s: %s %s" % (name, unit, "is not there" if texts is None else "has nothing with the anchor")
    table = read(os.path.join(DATA, "fingerprints.json"))
    for name, texts in texts_of(package, watched(rules), None).items():
        if [marks(one) for one in texts] != table["statements"].get(name):
            yield "%s: not the fingerprint of the source" % name


def compare(folder, first, second):
    """What `learn` would say of the second from the data of the first, the statements that are gone as well. Units are where they are in the newest."""
    releases, rules = book()
    rules = watched(rules)
    found = all_texts(folder, releases, rules)
    for name in rules:
        was, now = ({text for texts in found[version][name] for text in texts or ()} for version in (first, second))
        if was != now:
            yield name, sorted(now - was), sorted(was - now)


def fetch(version, folder):
    with tempfile.TemporaryDirectory() as scratch:
        if subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", scratch, "vllm==" + version], check=False).returncode:
            return 1
        with zipfile.ZipFile(glob.glob(os.path.join(scratch, "*.whl"))[0]) as wheel:
            wheel.extractall(os.path.join(folder, version), [name for name in wheel.namelist() if name.startswith("vllm/") and name.endswith(".py")])
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--base")
    parser.add_argument("--out")
    parser.add_argument("--compare", nargs=2)
    parser.add_argument("--fetch", nargs=2)
    args = parser.parse_args()
    if args.fetch:
        return fetch(*args.fetch)
    if args.compare:
        told = list(compare(args.sources, *args.compare))
        for name, added, removed in told:
            print("\n".join([name] + ["  + " + text for text in added] + ["  - " + text for text in removed]))
        print("%d of %d rules" % (len(told), len(watched(book()[1]))))
        return 0
    if args.write or args.out:
        text = written(made(args.sources, args.base))
        with open(args.out or os.path.join(DATA, "fingerprints.json"), "w", encoding="utf-8") as file:
            file.write(text)
    if args.out:
        return 0
    bad = list(problems()) + (list(sourced(args.sources)) if args.sources else [])
    print("\n".join(bad) if bad else "fingerprints: of %d rules, %d without a source" % (len(watched(book()[1])), sum(not rule["units"] for rule in book()[1].values())))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
