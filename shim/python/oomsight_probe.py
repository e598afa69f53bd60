"""Terms of an installed engine's memory, for `oomsight learn --probe`: a few small starts on a simulated GPU, and what they have in common with forms
that a plan knows. Whoever starts them (oomsight_probe_ENGINE.py) leaves each start untouched, for what the engine gives to the KV cache; those with
`parts` begin once more with the peak reset around the parts of the profile run, which moves what the engine measures itself. A part that cannot be read leaves its term out."""
PROBES = {"dense-256": {"model": "dense", "requests": 256, "eager": True, "parts": True},
          "dense-1024": {"model": "dense", "requests": 1024, "eager": True, "parts": True},
          "moe": {"model": "moe", "requests": 1024, "eager": True}, "hybrid": {"model": "hybrid", "requests": 1024, "eager": True},
          "graphs": {"model": "dense", "requests": 1024, "eager": False}}
SMALL = 16 << 20  # not worth a term
WHOLE = 0.125  # as near to a whole number of bytes is one


class Missing(Exception):
    """A start, or a part of it, that a term needs."""


def of(seen, probe, *keys):
    found = seen.get(probe)
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, (int, float)) or isinstance(found, bool):
        raise Missing("the start %s shows no %s" % (probe, " ".join(keys)))
    return found


def sampler(seen):
    """Bytes of a logit, by two starts that differ in their requests: what does not grow with them is not its matter."""
    few, many = (of(seen, probe, "sampler", "peak_bytes") for probe in ("dense-256", "dense-1024"))
    rows_few, rows_many = (of(seen, probe, "requests") for probe in ("dense-256", "dense-1024"))
    vocabulary = of(seen, "dense-1024", "vocabulary")
    slope, whole = (many - few) / ((rows_many - rows_few) * vocabulary), many / (rows_many * vocabulary)
    low, high = min(slope, whole), max(slope, whole)
    value = round(slope) if abs(slope - round(slope)) <= WHOLE else slope
    return {"term": "sampler", "form": "bytes_per_logit", "value": value, "low": round(min(low, value), 3), "high": round(max(high, value), 3),
            "seen": [{"requests": rows, "bytes": peak} for rows, peak in ((rows_few, few), (rows_many, many))]}


def before_reading(seen):
    """Of PyTorch's, there when the engine first looks at what is free: cuBLAS's workspace."""
    return {"term": "before_reading", "form": "cublas", "value": of(seen, "dense-1024", "before_cublas_bytes")}


def before_more(seen):
    return {"term": "before_reading", "form": "constant", "value": of(seen, "dense-1024", "before_bytes") - of(seen, "dense-1024", "before_cublas_bytes")}


def retained(seen):
    """What the profile run leaves of a model whose layers keep nothing, without cuBLAS's workspace where that came with it."""
    late = of(seen, "dense-1024", "cublas_bytes") - of(seen, "dense-1024", "before_cublas_bytes")
    return {"term": "retained", "form": "constant", "value": max(0, of(seen, "dense-1024", "retained_bytes") - max(0, late))}


TERMS = {"sampler": sampler, "before_reading cublas": before_reading, "before_reading constant": before_more, "retained": retained}


def rest_of_parts(seen, probe):
    """The engine's own peak less that of the parts of its profile run: 0 where these are all that there is."""
    peak = max(of(seen, probe, part, "at_bytes") + of(seen, probe, part, "peak_bytes") for part in ("forward", "sampler"))
    return of(seen, probe, "peak_bytes") - peak


def fit(seen):
    """(terms, what is left out and why) of what was read: {probe: figures}."""
    terms, left_out = [], {}
    for name, term in TERMS.items():
        try:
            terms.append(term(seen))
        except (Missing, ZeroDivisionError) as error:
            left_out[name] = str(error)
    for probe in seen:
        try:
            rest = rest_of_parts(seen, probe)
        except Missing:
            continue
        if abs(rest) >= SMALL:
            left_out["parts of " + probe] = "they differ by %d bytes from the peak of the start" % rest
    return terms, left_out


def answer(engine, run):
    """`run(start)` starts the engine in a process of its own: its answer."""
    seen, left_out = {}, {}
    for probe, asked in PROBES.items():
        for marks in (False, True)[:1 + asked.get("parts", False)]:
            told = run(dict(asked, marks=marks))
            found = told.get("seen")
            if not isinstance(found, dict):
                left_out[probe] = " ".join(str(told.get("text") or "no answer").split())[:300]
                break
            seen[probe] = dict(found, **seen.get(probe, {})) if marks else found  # figures of the untouched start come first
    terms, missing = fit(seen)
    return {"verdict": "unknown", "terms": terms, "probes": [dict(figures, **PROBES[probe], probe=probe) for probe, figures in seen.items()],
            "configs": engine.MODELS, "left_out": dict(left_out, **missing)}
