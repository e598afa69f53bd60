#!/usr/bin/env python3
"""How well `oomsight explain` names phase and cause and quotes figures: score_explain.py BINARY DIR... [--json] [--general]

DIR holds labels.jsonl and one ID.log per label (shared/corpus/README.md says what the fields mean). Nothing here knows a
sample. --general adds what tells mechanisms from samples: support of the deciding rules by other repositories, changed
sentences, calibration, and contradictions that show without labels; with --floors FILE (JSON: figure -> least) the exit
code is theirs. Exit 0 when the goals hold, 1 when not, 2 when the data cannot be read."""

import argparse
import collections
import json

import explainlib
from explainlib import causes

MIB = 1 << 20
JSON_MAX = (1 << 63) - 1
# Label field -> field of our JSON. Labels are in MiB unless the name says otherwise.
FIELDS = {
    "tried_mib": "tried_bytes", "gpu_total_mib": "total_bytes", "free_mib": "free_bytes", "in_use_mib": "process_bytes",
    "other_processes_mib": "other_processes_bytes", "torch_allocated_mib": "torch_allocated_bytes",
    "private_pools_mib": "private_pools_bytes", "reserved_unallocated_mib": "reserved_unallocated_bytes",
    "reserved_total_mib": "reserved_total_bytes", "weights_mib": "weights_bytes", "kv_available_mib": "kv_available_bytes",
    "kv_needed_mib": "kv_needed_bytes", "requested_mib": "requested_bytes", "startup_free_mib": "startup_free_bytes",
    "cudagraph_mib": "cudagraph_bytes", "cudagraph_estimate_mib": "cudagraph_estimate_bytes",
    "activation_peak_mib": "activation_peak_bytes", "non_torch_mib": "non_torch_bytes",
    "profile_free_before_mib": "profile_free_before_bytes", "profile_free_after_mib": "profile_free_after_bytes",
    "gmu": "gpu_memory_utilization",
}
BASES = ("said", "stack", "mark", "figures", "usual", "none")  # of a phase; none: it is not named
# What to reach: share of the samples, or more than the expert reader of the same texts.
GOALS = {"is_oom": 0.99, "phase_decidable": 0.97, "cause_decidable": 0.95, "numbers": 0.98}


def number_right(name, want, numbers):
    got = numbers.get(FIELDS.get(name, name))
    if got is None:
        return False
    if want > got == JSON_MAX:  # integers of our JSON have 63 bits
        return True
    if name.endswith("_mib"):
        got /= MIB
    return abs(got - want) <= max(0.006 * (1024 if abs(want) >= 1024 else 1), 1e-9 * abs(want))


class Tally:
    def __init__(self):
        self.right = collections.Counter()
        self.total = collections.Counter()

    def add(self, name, right):
        self.right[name] += bool(right)
        self.total[name] += 1

    def share(self, name):
        return self.right[name] / self.total[name] if self.total[name] else 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("directory", nargs="+")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--general", action="store_true")
    parser.add_argument("--floors")
    parser.add_argument("--data", help="another data folder for the command")
    args = parser.parse_args()
    samples = explainlib.read_samples(args.binary, args.directory, ["--data", args.data] if args.data else [])
    by_basis, named = Tally(), Tally()
    tally, confusion, misses, classes = Tally(), collections.Counter(), [], collections.defaultdict(Tally)

    for sample in samples:
        label, truth, got = sample.label, sample.truth, sample.got
        reader = label.get("reader") or {}
        explicit, firm = label["evidence"] == "explicit", label["confidence"] != "low"
        phase_right = got["phase"] == truth["phase"]
        cause_right = bool(causes(got) & causes(truth))

        if label["evidence"] == "none":
            tally.add("negatives", not got["is_oom"])
            if got["is_oom"]:
                misses.append((label["id"], "false alarm", f"{got['phase']}/{got['cause']}", ""))
        if explicit:
            tally.add("is_oom", got["is_oom"] == truth["is_oom"])
            if got["is_oom"] != truth["is_oom"]:
                misses.append((label["id"], "is_oom", str(got["is_oom"]), str(truth["is_oom"])))
        if truth["is_oom"] and firm and got["is_oom"]:
            by_basis.add(got["basis"] or "none", phase_right)
            if len(got["phases"]) != 1 and truth["phase"] != "unknown":
                named.add("set", truth["phase"] in got["phases"])
                named.add("point", phase_right)
        if explicit and firm:
            tally.add("phase", phase_right)
            tally.add("cause", cause_right)
            tally.add("cause_first", got["cause"] in causes(truth))
            tally.add("reader_phase", reader.get("phase") == truth["phase"])
            tally.add("reader_cause", bool(causes(reader) & causes(truth)) if reader else False)
            classes[truth["phase"]].add("phase", phase_right)
            classes[truth["phase"]].add("cause", cause_right)
            if reader.get("decidable_phase") == "yes":
                tally.add("phase_decidable", phase_right)
            if reader.get("decidable_cause") == "yes":
                tally.add("cause_decidable", cause_right)
        if label["evidence"] == "frames_only" and firm:
            tally.add("frames_phase", phase_right)
            tally.add("reader_frames", reader.get("phase") == truth["phase"])
        if truth["is_oom"] and firm:
            confusion[truth["phase"], got["phase"]] += 1
            if not phase_right:
                misses.append((label["id"], f"phase ({label['evidence']}, text decides: {reader.get('decidable_phase')})",
                               got["phase"], truth["phase"]))
            if explicit and not cause_right:
                misses.append((label["id"], f"cause (text decides: {reader.get('decidable_cause')})",
                               "/".join(sorted(causes(got))), "/".join(sorted(causes(truth)))))
        for name, want in label["numbers"].items():
            right = number_right(name, want, got["numbers"])
            tally.add("numbers", right)
            if not right:
                misses.append((label["id"], f"number {name}", str(got["numbers"].get(FIELDS.get(name, name))), str(want)))

    goals = {name: tally.share(name) >= least for name, least in GOALS.items()}
    goals["negatives"] = tally.right["negatives"] == tally.total["negatives"]
    goals["phase"] = tally.right["phase"] > tally.right["reader_phase"]
    goals["cause"] = tally.right["cause"] >= tally.right["reader_cause"]
    goals["frames_phase"] = tally.right["frames_phase"] > tally.right["reader_frames"]
    general = measure_general(samples, args.binary) if args.general or args.floors else None
    certainty = {what: explainlib.stated(samples, what) for what in ("phase", "cause")}
    if args.json:
        print(json.dumps({"right": tally.right, "total": tally.total, "certainty": certainty, "basis": {name: {"right": by_basis.right[name], "wrong": by_basis.total[name] - by_basis.right[name]} for name in BASES}, "set": {"named": named.right["set"], "of": named.total["set"], "share": round(named.share("set"), 3)}, "goals": goals, "misses": misses, "general": general}, indent=1))
    else:
        if general:
            report_general(general)
        report(tally, classes, confusion, misses, goals, certainty)
        report_basis(by_basis)
        print(f"phase not certain: {named.total['set']}, right {named.right['point']}, among those that are named {named.right['set']}")
        print(summary(tally, goals))
    if args.floors:
        return check_floors(args.floors, tally, general)
    return 0 if all(goals.values()) else 1


def measure_general(samples, binary):
    return {"support": {what: explainlib.support(samples, what) for what in ("is_oom", "phase", "cause")},
            "wide_support": {what: explainlib.support(samples, what, wide=True) for what in ("is_oom", "phase", "cause")},
            "folds": {what: explainlib.folds(samples, what) for what in ("is_oom", "phase", "cause")},
            "lone_rules": {what: explainlib.lone_rules(samples, what) for what in ("phase", "cause")},
            "calibration": {what: explainlib.calibration(samples, what) for what in ("phase", "cause")},
            "mutation": explainlib.mutate(samples, binary),
            "dress": explainlib.dress(samples, binary),
            "confirmed": explainlib.confirmed(samples, binary),
            "invariants": explainlib.invariants(samples, binary)}


def report_general(general):
    print("support: the deciding rule is also right in another repository")
    for what, (plain, held, of) in general["support"].items():
        print(f"  {what:<8} plain {plain}/{of} ({100 * plain / of:.1f} %), supported {held} ({100 * held / of:.1f} %), gap {100 * (plain - held) / of:.1f}")
    for what, (plain, held, of) in general["wide_support"].items():
        print(f"  {what:<8} with reports beside the corpora supported {held} ({100 * held / of:.1f} %), gap {100 * (plain - held) / of:.1f}")
    for what, (held, of) in general["folds"].items():
        print(f"  {what:<8} in five folds of repositories {held}/{of} ({100 * held / of:.1f} %)")
    for what, rules in general["lone_rules"].items():
        print(f"  {what}: {len(rules)} rules above 0.4 are right in one repository at most" + "".join(f"\n    {r} ({repo or 'nowhere'}) {sure:.2f}" for r, repo, sure in rules))
    print("calibration: stated -> right")
    for what, rows in general["calibration"].items():
        for low, high, mean, right, of in rows:
            if of:
                print(f"  {what:<6} {low:.2f} to {min(high, 1):.2f}: stated {mean:.2f}, right {right}/{of} ({right / of:.2f})")
    print("sentences changed: is_oom lost")
    for name, (lost, sure, of, mute) in general["mutation"].items():
        print(f"  {name:<16} {len(lost)}/{of}, of them without a word of memory {len(mute)}, confidently not memory {len(sure)}  {' '.join(lost[:12])}")
    print("reports in another dress: is_oom lost, right phases lost")
    for name, (lost, moved, of) in general["dress"].items():
        print(f"  {name:<18} {len(lost)}, {len(moved)} of {of}  {' '.join(lost + moved)}")
    named, of, others = general["confirmed"]
    print(f"a setting that the report confirms as its fix is advised: {len(named)}/{of} (another {others} confirm no setting)")
    print("contradictions without labels")
    for name, where in general["invariants"].items():
        print(f"  {name}: {len(where)}" + "".join(f"\n    {w}" for w in where))
    print()


def figures(tally, general):
    """One flat table of shares, to hold floors against."""
    flat = {name: tally.share(name) for name in tally.total}
    for what, (_, held, of) in general["support"].items():
        flat["support_" + what] = held / of
    for what, (_, held, of) in general["wide_support"].items():
        flat["wide_support_" + what] = held / of
    lost = sum(len(l) for l, _, _, _ in general["mutation"].values())
    flat["mutation_kept"] = 1 - lost / max(1, sum(of for _, _, of, _ in general["mutation"].values()))
    flat["dress_kept"] = 1 - sum(len(l) + len(m) for l, m, _ in general["dress"].values()) / max(1, sum(of for _, _, of in general["dress"].values()))
    flat["mutation_never_sure"] = float(not any(sure for _, sure, _, _ in general["mutation"].values()))
    for name in ("advice refuted", "advice both ways", "flags of another engine", "ledger does not add up", "not memory, and quotes it"):
        flat["no " + name] = float(not general["invariants"].get(name))
    return flat


def check_floors(path, tally, general):
    with open(path, encoding="utf-8") as file:
        floors = json.load(file)
    flat, below = figures(tally, general), 0
    for name, least in floors.items():
        if flat.get(name, 0.0) < least:
            print(f"floor {name}: {flat.get(name, 0.0):.3f} is below {least}")
            below += 1
    return 1 if below else 0


def report(tally, classes, confusion, misses, goals, certainty):
    for name, what, got, want in sorted(misses):
        print(f"miss {name:<18} {what}: {got} instead of {want}")
    print("\nphase (explicit, not low)     n   phase  cause")
    for phase in sorted(classes):
        t = classes[phase]
        print(f"  {phase:<24} {t.total['phase']:>4}  {t.right['phase']:>5}  {t.right['cause']:>5}")
    print("\nconfusion (all with an OOM, not low): truth -> answer")
    for (want, got), count in sorted(confusion.items()):
        if want != got:
            print(f"  {want:<24} -> {got:<24} {count}")
    print("\nscore                     right  of   share  reader  goal")
    rows = [("is_oom", None), ("negatives", None), ("phase_decidable", None), ("cause_decidable", None),
            ("phase", "reader_phase"), ("cause", "reader_cause"), ("cause_first", None), ("frames_phase", "reader_frames"),
            ("numbers", None)]
    for name, reader in rows:
        mark = {True: "met", False: "MISSED", None: "-"}[goals.get(name)]
        print(f"  {name:<22} {tally.right[name]:>5} {tally.total[name]:>4}  {100 * tally.share(name):5.1f} %"
              f"  {tally.right[reader] if reader else '':>5}  {mark}")
    for what, one in certainty.items():
        print("%s said with 0.9 or more: %d right, %d wrong; Brier %.3f of %d answers, overstated by %.3f" % (
            what, one["sure_right"], one["sure_wrong"], one["brier"], one["answers"], one["overstated"]))


def report_basis(by_basis):
    """What the phase rests on, explicit and by frames alone: how often, and how often right."""
    every = sum(by_basis.total.values()) or 1
    print("phase by what it rests on: " + ", ".join(
        f"{name} {by_basis.right[name]}/{by_basis.total[name]} ({100 * by_basis.total[name] / every:.0f} %)" for name in BASES))


def summary(tally, goals):
    names = ("is_oom", "negatives", "phase_decidable", "cause_decidable", "phase", "cause", "cause_first", "frames_phase", "numbers")
    return "score_explain: " + ", ".join(f"{name} {tally.right[name]}/{tally.total[name]}" for name in names) + f"; goals {sum(goals.values())}/{len(goals)}"


if __name__ == "__main__":
    raise SystemExit(main())
