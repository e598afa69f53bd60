#!/usr/bin/env python3
"""Fitted constants: data/constants.json (devices) and data/engines/ENGINE/constants.json, checked and written as C tables. A row with fewer than three
independent sources has a range, rows leave no gap and do not overlap; what breaks a rule fails the build. docs/reference/formats/constants.md has the form.

    constants.py OUT.c TABLE=DEF=JSON...     TABLE is the name of the table in C, DEF the list of ids that the code asks for
    constants.py --check JSON...             Standard library only."""
import itertools
import json
import os
import re
import sys

UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "tenths of a node": 1, "percent": 1, "part": 1, "times": 1, "width": 1}
BY = ("measured", "counted", "read")
CONSTANT_KEYS = {"id", "meaning", "unit", "kind", "domain", "rows"}
ROW_KEYS = {"value", "low", "high", "starts", "sources", "by", "of"}
BYTES_MAX, CONSTANTS_MAX, ROWS_MAX, VALUE_MAX = 1 << 18, 200, 16, 1 << 50
FEW = 3
# What a row may depend on: [first, last] of whole numbers, [since, before] of releases, or yes and no.
CAPABILITY, TORCH, RANKS = (0, 999), (0, 999), (0, 1 << 20)
SPANS = {"capability": CAPABILITY, "torch": TORCH, "ranks": RANKS}
FLAGS = ("nvlink", "unified")
RELEASE_MAX = (999, 0, 0)


class Bad(Exception):
    pass


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def number(value, what):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < VALUE_MAX:
        raise Bad("%s is not a number from 0 on" % what)
    return value


def span(value, limits, what):
    if not isinstance(value, list) or len(value) != 2 or not all(whole(v) and limits[0] <= v <= limits[1] for v in value) or value[0] > value[1]:
        raise Bad("%s is not [first, last]" % what)
    return tuple(value)


def release(value, what):
    def one(text, fallback):
        if text == "":
            return fallback
        if not isinstance(text, str) or not re.fullmatch(r"\d{1,3}\.\d{1,3}\.\d{1,3}", text):
            raise Bad("%s is not [since, before]" % what)
        return tuple(map(int, text.split(".")))
    if not isinstance(value, list) or len(value) != 2:
        raise Bad("%s is not [since, before]" % what)
    since, before = one(value[0], (0, 0, 0)), one(value[1], RELEASE_MAX)
    if since >= before:
        raise Bad("%s holds no release" % what)
    return since, before


def places(given, what):
    """The places that a row or a domain stands for: a list, since `capability` may be a list of spans."""
    place = {}
    for key, value in given.items():
        if key in SPANS:
            many = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
            place[key] = [span(one, SPANS[key], "%s: %s" % (what, key)) for one in many]
        elif key == "release":
            place[key] = [release(value, what + ": release")]
        elif key in FLAGS:
            if not isinstance(value, bool):
                raise Bad("%s: %s is yes or no" % (what, key))
            place[key] = [value]
        else:
            raise Bad("%s: %s is no key" % (what, key))
    keys = list(place)
    return [dict(zip(keys, one)) for one in itertools.product(*(place[key] for key in keys))]


def holds(place, point):
    for key, value in place.items():
        at = point[key]
        if key in FLAGS:
            if value != at:
                return False
        elif key == "release":
            if not value[0] <= at < value[1]:
                return False
        elif not value[0] <= at <= value[1]:
            return False
    return True


def points(rows, domain):
    """One point of every cell that the ends of the rows cut out of the domain."""
    axes = {key: {limits[0]} for key, limits in SPANS.items()}
    axes["release"] = {(0, 0, 0)}
    for place in [p for row in rows for p in row["places"]] + domain:
        for key, value in place.items():
            if key in SPANS:
                axes[key] |= {value[0], min(value[1] + 1, SPANS[key][1])}
            elif key == "release":
                axes[key] |= {v for v in value if v != RELEASE_MAX}
    for key in FLAGS:
        axes[key] = {False, True}
    keys = list(axes)
    for values in itertools.product(*(sorted(axes[key]) for key in keys)):
        point = dict(zip(keys, values))
        if any(holds(place, point) for place in domain):
            yield point


def read_row(row, unit, kind, what):
    if not isinstance(row, dict) or "value" not in row or not isinstance(row.get("of"), str) or not row["of"]:
        raise Bad("%s: a row needs value and of" % what)
    value = number(row["value"], what + ": value")
    low, high = (number(row.get(key, value), "%s: %s" % (what, key)) for key in ("low", "high"))
    by, starts, sources = row.get("by", "measured"), row.get("starts", 0), row.get("sources", 0)
    if by not in BY or not whole(starts) or not whole(sources) or starts < 0 or sources < 0 or sources > max(starts, 0):
        raise Bad("%s: by, starts or sources is not understood" % what)
    if not low <= value <= high:
        raise Bad("%s: %g is outside %g to %g" % (what, value, low, high))
    if kind == "value" and by == "measured":
        if sources < FEW and not low < high:
            raise Bad("%s: %d sources and no range" % (what, sources))
        if starts < FEW and not (low <= value / 2 and high >= 2 * value and high > 0):
            raise Bad("%s: from %d starts, and its range is not from half to twice" % (what, starts))
        if sources == 0 and low > 0:
            raise Bad("%s: nothing was measured, and it does not begin at 0" % what)
    scale = UNITS[unit]
    return {"places": places({k: v for k, v in row.items() if k not in ROW_KEYS}, what), "value": round(value * scale), "low": round(low * scale), "high": round(high * scale),
            "sources": sources, "starts": starts, "by": by}


def read_constant(constant, path):
    if not isinstance(constant, dict) or not isinstance(constant.get("id"), str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", constant["id"]):
        raise Bad("%s: a constant has no id" % path)
    what = "%s: %s" % (path, constant["id"])
    unknown = sorted(set(constant) - CONSTANT_KEYS)
    if unknown:
        raise Bad("%s: %s is no key" % (what, unknown[0]))
    if constant.get("unit") not in UNITS or not isinstance(constant.get("meaning"), str):
        raise Bad("%s: unit or meaning is not understood" % what)
    kind = constant.get("kind", "value")
    if kind not in ("value", "end"):
        raise Bad("%s: kind is value or end" % what)
    rows = constant.get("rows")
    if not isinstance(rows, list) or not 0 < len(rows) <= ROWS_MAX:
        raise Bad("%s: needs 1 to %d rows" % (what, ROWS_MAX))
    rows = [read_row(row, constant["unit"], kind, what) for row in rows]
    domain = places(constant.get("domain", {}), what + ": domain")
    for row in rows:  # where the constant does not hold, no row does
        row["places"] = [{**limits, **place} for limits in domain for place in row["places"]]
    for point in points(rows, domain):
        count = sum(holds(place, point) for row in rows for place in row["places"])
        if count != 1:
            where = ", ".join("%s %s" % (key, point[key]) for key in sorted(point) if any(key in place for row in rows for place in row["places"]))
            raise Bad("%s: %s for %s" % (what, "no row" if count == 0 else "%d rows" % count, where or "anything"))
    return constant["id"], kind, rows


def load(path):
    """[(id, kind, rows)] of a file; Bad where it breaks a rule."""
    if os.path.getsize(path) > BYTES_MAX:
        raise Bad("%s: is larger than %d bytes" % (path, BYTES_MAX))
    with open(path, encoding="utf-8") as f:
        try:
            table = json.load(f)
        except ValueError as error:
            raise Bad("%s: %s" % (path, error)) from error
    constants = table.get("constants") if isinstance(table, dict) else None
    if not isinstance(constants, list) or len(constants) > CONSTANTS_MAX or table.get("schema") != "oomsight.constants/1":
        raise Bad("%s: is no table of constants" % path)
    found = [read_constant(constant, path) for constant in constants]
    names = [one[0] for one in found]
    for name in names:
        if names.count(name) > 1:
            raise Bad("%s: %s is there twice" % (path, name))
    return found


def ids(path):
    with open(path, encoding="utf-8") as f:
        return re.findall(r"^CONSTANT\((\w+)\)", f.read(), re.M)


def version(value):
    return "UINT64_MAX" if value == RELEASE_MAX else "OOS_VERSION(%d, %d, %d)" % value


def c_row(row, place):
    first = [place.get(key, limits) for key, limits in SPANS.items()]
    numbers = ["%d, %d" % one for one in first]
    since, before = place.get("release", ((0, 0, 0), RELEASE_MAX))
    flags = [("-1" if key not in place else str(int(place[key]))) for key in FLAGS]
    return "    {{%s}, %s, %s, %s, {%du, %du, %du, %du}, %d},\n" % ("}, {".join(numbers), version(since), version(before), ", ".join(flags), row["value"], row["low"], row["high"], row["sources"], not place)


def write(out, tables):
    text = '#include "facts/facts.h"\n'
    for table, def_path, path in tables:
        found, asked = {one[0]: one for one in load(path)}, ids(def_path)
        for name in sorted(set(found) ^ set(asked)):
            raise Bad("%s: %s is %s" % (path, name, "not asked for by " + def_path if name in found else "missing"))
        rows, first = [], []
        for name in asked:
            first.append(len(rows))
            rows += [c_row(row, place) for row in found[name][2] for place in row["places"]]
        first.append(len(rows))
        text += "\nstatic const oos_constant_row %s_rows[] = {\n%s};\nstatic const uint16_t %s_first[] = {%s};\n" % (table, "".join(rows), table, ", ".join(map(str, first)))
        text += "const oos_constants %s = {%s_rows, %s_first, %d};\n" % (table, table, table, len(asked))
    with open(out, "w", encoding="ascii") as f:
        f.write(text)


def main():
    words = sys.argv[1:]
    try:
        if words[:1] == ["--check"] and words[1:]:
            for path in words[1:]:
                load(path)
        elif len(words) > 1:
            write(words[0], [word.split("=", 2) for word in words[1:]])
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except (Bad, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
