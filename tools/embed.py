#!/usr/bin/env python3
"""Write every JSON file below DATA (without its schemas) as a C table sorted by path: embed.py DATA OUT.c DEPFILE"""
import json
import os
import sys


# Words for people who read data/, parsed by nothing: they would only cost time at every start.
FOR_READERS = {"meaning", "total_origin", "context_note", "notes"}


def without_words(value):
    if isinstance(value, dict):
        return {key: without_words(part) for key, part in value.items() if key not in FOR_READERS}
    return [without_words(part) for part in value] if isinstance(value, list) else value


def data_files(root):
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if name != "schema")
        for name in sorted(names):
            if name.endswith(".json") and name not in ("constants.json", "backends.json"):  # tables of their own: tools/constants.py, tools/backend_table.py
                path = os.path.join(folder, name)
                yield os.path.relpath(path, root).replace(os.sep, "/"), path


def literal(text):
    """Bytes as string pieces that every C compiler takes."""
    out = []
    for start in range(0, len(text), 120):
        piece = "".join(
            chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else "\\%03o" % b for b in text[start:start + 120])
        out.append('    "%s"' % piece)
    return "\n".join(out) if out else '    ""'


def main():
    root, out, depfile = sys.argv[1:4]
    files = sorted(data_files(root))
    with open(out, "w", encoding="ascii") as c:
        c.write('#include "facts/facts.h"\n\n')
        c.write("const oos_data_file oos_data_embedded[] = {\n")
        for path, source in files:
            with open(source, "rb") as f:
                # Compact: the text is parsed at every start, white space only costs time.
                value = json.load(f)
                if path.split("/")[0] in ("gpus", "engines"):
                    value = without_words(value)
                text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
                if path == "catalogue.json":  # a line for each, in the order of the ids: one is found by halving
                    lines = ('%s:%s' % (json.dumps(key), json.dumps(value[key], separators=(",", ":"))) for key in sorted(value))
                    text = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
            c.write('    {"%s",\n%s, %d},\n' % (path, literal(text), len(text)))
        c.write("    {0, 0, 0},\n};\nconst size_t oos_data_embedded_count = %d;\n" % len(files))
    folders = sorted(folder for folder, _, _ in os.walk(root))  # a new file, or a new folder, changes one of them
    with open(depfile, "w", encoding="utf-8") as d:
        d.write("%s: %s\n" % (os.path.basename(out), " ".join([s for _, s in files] + folders)))


if __name__ == "__main__":
    main()
