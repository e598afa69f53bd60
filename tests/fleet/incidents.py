"""Incidents of a fleet that does not exist: `oomsight explain --json` on the logs of the knowledge base, each given the fields
that the agent adds, over many nodes, pods and engine versions. usage: incidents.py BINARY COUNT [SEED] prints lines."""
import datetime
import glob
import json
import os
import random
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BEGIN = datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc)
VERSIONS = ["0.10.2", "0.11.0", "0.19.1", "0.20.2", "0.21.0"]


def bases(binary):
    logs = sorted(glob.glob(os.path.join(ROOT, "tests/fixtures/kb/**/positive.log"), recursive=True))
    answers = [subprocess.run([binary, "explain", "--json", log], capture_output=True).stdout for log in logs]
    return [json.loads(line) for answer in answers for line in answer.splitlines()]


def time(moment):
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def fleet(base, count, seed=1):
    """`count` incidents as dictionaries. A tenth have no time in their log; each namespace moves to newer engines as days pass."""
    rng = random.Random(seed)
    for n in range(count):
        incident = dict(rng.choice(base))
        day = rng.random() * 14
        namespace = f"team-{rng.randrange(20)}"
        pod = f"vllm-{rng.randrange(500)}-{n % 7}"
        at = BEGIN + datetime.timedelta(days=day)
        timed = rng.random() > 0.1
        start = at - datetime.timedelta(seconds=rng.randrange(20, 900), milliseconds=rng.randrange(1000))
        version = VERSIONS[min(int(day / 3 + rng.random()), len(VERSIONS) - 1)] if rng.random() > 0.15 else None
        uid = "%08x-0000-4000-8000-%012x" % (rng.getrandbits(32), n)
        incident.update(
            id="%016x" % rng.getrandbits(64), at=time(at) if timed else None, started_at=time(start) if timed else None,
            seen_at=time(at + datetime.timedelta(seconds=1)), engine={"name": "vllm", "version": version},
            source={"path": f"/var/log/pods/{namespace}_{pod}_{uid}/engine/0.log", "namespace": namespace, "pod": pod, "pod_uid": uid,
                    "container": "engine", "restart": rng.randrange(4), "first_byte": n * 100, "last_byte": n * 100 + 99})
        if rng.random() < 0.2 and incident["fixes"]:
            incident["fixes"] = [dict(incident["fixes"][0], verdict="fits")] + incident["fixes"][1:]
        yield incident


def lines(incidents):
    """NDJSON, every other line with escapes for what is not ASCII: both spellings are read alike."""
    return b"".join(json.dumps(i, ensure_ascii=n % 2 == 0).encode() + b"\n" for n, i in enumerate(incidents))


def few():
    """Five incidents small enough to count by hand; ANSWERS in sinks.py is what they come to."""
    def one(n, fingerprint, at, started, version, pod, fixes, **more):
        return {"schema": "oomsight.incident/1", "id": "%016x" % n, "fingerprint": "%016x" % fingerprint, "is_oom": True, "phase": "weight_load",
                "cause": "tp_needed", "signature": None, "engine": {"name": "vllm", "version": version}, "gpu": {"name": None, "total_bytes": None},
                "model": None, "ranks": [], "fixes": fixes, "count": 1, "at": at, "started_at": started, "seen_at": "2026-11-05T00:00:00Z",
                "source": {"path": "/x", "namespace": "a", "pod": pod, "container": "c"}, **more}
    seqs, tp = {"change": ["--max-num-seqs", "16"]}, {"change": ["--tensor-parallel-size=2"], "verdict": "fits"}
    return [one(1, 1, "2026-11-01T01:00:00Z", "2026-11-01T00:00:00Z", "0.19.1", "p", [seqs, tp], gpu={"name": "A30", "total_bytes": 1, "count": 4}),
            one(2, 1, "2026-11-02T00:30:00Z", "2026-11-02T00:00:00Z", "0.19.1", "p", [seqs], ranks=[{"rank": "TP0"}, {"rank": "TP1"}]),
            one(3, 2, "2026-11-03T00:00:00Z", None, "0.20.2", "q", [{"change": ["--max-num-seqs", "8"]}], cause="kv_max_len"),
            one(4, 3, None, None, None, "q", [], phase="runtime_prefill", cause="sampler_logits", count=3),
            one(5, 1, "2026-11-04T10:00:00Z", "2026-11-04T00:00:00Z", "0.20.2", "q", [tp], phase="runtime_other")]


if __name__ == "__main__":
    sys.stdout.buffer.write(lines(fleet(bases(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)))
