#!/usr/bin/env python3
"""How well `oomsight explain` names phase and cause and quotes figures: score_explain.py BINARY DIR [--json] [--misses]

DIR holds labels.jsonl and one ID.log per label (shared/corpus/README.md says what the fields mean). Nothing here knows a
sample. Exit 0 when the goals hold, 1 when not, 2 when the data cannot be read."""

import argparse
import collections
import json
import os
import subprocess

from scorelib import fail, read_lines

MIB = 1 << 20
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
# What to reach: share of the samples, or more than the expert reader of the same texts.
GOALS = {"is_oom": 0.99, "phase_decidable": 0.97, "cause_decidable": 0.95, "numbers": 0.98}


def answer(binary, path):
    """The incident that a label speaks of: the first with an OOM, else the first."""
    done = subprocess.run([binary, "explain", "--json", path], capture_output=True, timeout=60, check=False)
    if done.returncode not in (0, 1):
        return None
    incidents = [json.loads(line) for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
    return next((i for i in incidents if i["is_oom"]), incidents[0] if incidents else None)


def number_right(name, want, numbers):
    got = numbers.get(FIELDS.get(name, name))
    if got is None:
        return False
    if name.endswith("_mib"):
        got /= MIB
    return abs(got - want) <= max(0.006 * (1024 if abs(want) >= 1024 else 1), 1e-9 * abs(want))


def causes(entry):
    return {entry["cause"], *entry.get("also", [])}


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
    parser.add_argument("directory")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    labels = read_lines(os.path.join(args.directory, "labels.jsonl"))
    tally, confusion, misses, classes = Tally(), collections.Counter(), [], collections.defaultdict(Tally)

    for label in labels:
        truth, reader = label["truth"], label.get("reader") or {}
        got = answer(args.binary, os.path.join(args.directory, label["id"] + ".log"))
        if got is None:
            fail(f"{label['id']}: no answer")
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
    if args.json:
        print(json.dumps({"right": tally.right, "total": tally.total, "goals": goals, "misses": misses}, indent=1))
    else:
        report(tally, classes, confusion, misses, goals)
    return 0 if all(goals.values()) else 1


def report(tally, classes, confusion, misses, goals):
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
    print("score_explain: " + ", ".join(f"{name} {tally.right[name]}/{tally.total[name]}" for name, _ in rows)
          + f"; goals {sum(goals.values())}/{len(goals)}")


if __name__ == "__main__":
    raise SystemExit(main())
