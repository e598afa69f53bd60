#!/usr/bin/env python3
"""Check JSON on stdin (one value, or one per line) against a schema: check_schema.py SCHEMA

Knows the words our schemas use: type, enum, required, properties, items, $ref into $defs. Standard library only."""
import json
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def has_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check(value, schema, root, where):
    if "$ref" in schema:
        yield from check(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, where)
        return
    names = schema.get("type", [])
    names = names if isinstance(names, list) else [names]
    if names and not any(has_type(value, name) for name in names):
        yield "%s: %r is not %s" % (where, value, " or ".join(names))
        return
    if "enum" in schema and value not in schema["enum"]:
        yield "%s: %r is not one of the words" % (where, value)
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                yield "%s: '%s' is missing" % (where, key)
        for key, part in schema.get("properties", {}).items():
            if key in value:
                yield from check(value[key], part, root, "%s.%s" % (where, key))
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from check(item, schema["items"], root, "%s[%d]" % (where, i))


def values(text):
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        schema = json.load(f)
    given = values(sys.stdin.read())
    bad = [line for value in given for line in check(value, schema, schema, "$")] if given else ["nothing to check"]
    print("\n".join(bad) if bad else "matches the schema")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
