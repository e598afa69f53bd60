#!/usr/bin/env python3
"""Run the history of memory snapshots again and compare the end with the snapshots themselves, block by block.

usage: score_snapshots.py BINARY DIRECTORY|FILE... [--json]

Every *.pickle file is a dump of torch.cuda.memory._dump_snapshot. BINARY re-simulates its device_traces; the segment
events and addresses on the way, and the segments and blocks at the end, must be those of the snapshot. Where frees
waited for other streams, torch's own order of completion is that of a hash table; the events are then compared as a
multiset. expected.json beside the files, if any, has further counts that must hold. Exit 0: no mismatch. Standard
library only; the pickles are read without being able to import anything."""
import collections
import json
import os
import pickle
import subprocess
import sys

COMPARED = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom")


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError("a snapshot needs no %s.%s" % (module, name))


def load(path):
    with open(path, "rb") as f:
        return Plain(f).load()


def layout_of(snapshot, device):
    """Segments of one device in the words of `replay --events`."""
    found = []
    for s in sorted(snapshot["segments"], key=lambda s: s["address"]):
        if s.get("device", 0) != device:
            continue
        blocks = [[b["size"], 0 if b["state"] == "inactive" else b.get("requested_size", b["size"]), b["state"]] for b in s["blocks"]]
        found.append({"address": s["address"], "total_size": s["total_size"], "stream": s["stream"],
                      "is_large": s["segment_type"] == "large", "is_expandable": s.get("is_expandable", False),
                      "pool": list(s.get("segment_pool_id", (0, 0))), "blocks": blocks})
    return found


def events_of(snapshot, device):
    traces = snapshot.get("device_traces") or []
    for e in traces[device] if device < len(traces) else []:
        if e["action"] in COMPARED:
            address = e.get("device_free", 0) if e["action"] == "oom" else e["addr"]
            yield e["action"], address, e["size"], e["stream"]


def score(binary, path, expected):
    snapshot, missed = load(path), []
    devices = max(1, len(snapshot.get("device_traces") or []))
    entries = 0
    for device in range(devices):
        theirs = list(events_of(snapshot, device))
        if not theirs and device > 0:
            continue
        run = subprocess.run([binary, "replay", "--events", "--device", str(device), path], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, check=False)
        if run.returncode not in (0, 1):
            missed.append("device %d: exit %d: %s" % (device, run.returncode, run.stderr.decode()[-200:]))
            continue
        lines = [json.loads(line) for line in run.stdout.decode().splitlines()]
        ours = [tuple(e) for line in lines for e in line.get("ev", [])]
        entries += len(theirs)
        if collections.Counter(theirs) != collections.Counter(ours):
            missed.append("device %d: events differ: %s" % (device, list((collections.Counter(theirs) - collections.Counter(ours)))[:3]))
        if lines[-1].get("segments") != layout_of(snapshot, device):
            missed.append("device %d: the blocks at the end differ" % device)
    if expected:
        states = collections.Counter(b["state"] for s in snapshot["segments"] for b in s["blocks"])
        facts = {"segments": len(snapshot["segments"]), "reserved": sum(s["total_size"] for s in snapshot["segments"]),
                 "blocks": dict(states), "traces": [len(t) for t in snapshot.get("device_traces") or []]}
        missed += ["%s: %s, expected %s" % (k, v, expected[k]) for k, v in facts.items() if k in expected and v != expected[k]]
    return {"snapshot": os.path.basename(path), "entries": entries, "segments": len(snapshot["segments"]), "missed": missed}


def main(argv):
    words = [w for w in argv[1:] if w != "--json"]
    if len(words) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    paths = []
    for word in words[1:]:
        paths += [os.path.join(word, n) for n in sorted(os.listdir(word)) if n.endswith(".pickle")] if os.path.isdir(word) else [word]
    results = []
    for path in paths:
        beside = os.path.join(os.path.dirname(path), "expected.json")
        known = {}
        if os.path.exists(beside):
            with open(beside, encoding="utf-8") as f:
                known = json.load(f)
        results.append(score(words[0], path, known.get(os.path.basename(path))))
    bad = [r for r in results if r["missed"]]
    if "--json" in argv:
        print(json.dumps({"snapshots": len(results), "missed": len(bad), "results": results}, indent=1))
    else:
        for r in results:
            print("%s %s: %d events, %d segments%s" % ("MISS" if r["missed"] else "ok  ", r["snapshot"], r["entries"], r["segments"],
                                                       "".join("\n       " + m for m in r["missed"])))
        print("%d snapshots, %d events: %d end in another state than their own" % (len(results), sum(r["entries"] for r in results), len(bad)))
    return 0 if results and not bad else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
