#!/usr/bin/env python3
"""The picture of src/: each folder a box, above what it includes from; arrows as the code's #include lines have them, without those that
follow from others. docs/contributing/layers.svg is this picture, and CI compares them. Standard library only.

    draw_layers.py [ROOT] [--write]      without --write: exit 1 when the picture is not the code's"""
import os
import re
import sys

WIDTH, BOX, HEIGHT, ROW = 960, 104, 30, 74
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"/]+)/([^"/]+)/?', re.M)


def folder_of(parts):
    """An engine's folder is a box of its own."""
    return "/".join(parts[:2]) if parts[0] == "engines" and len(parts) > 2 else parts[0]


def edges(root):
    """{folder: the folders it includes from}"""
    source, found = os.path.join(root, "src"), {}
    for place, _, names in os.walk(source):
        parts = os.path.relpath(place, source).split(os.sep)
        for name in names:
            if parts[0] == "." or not name.endswith((".c", ".h")):
                continue
            mine = folder_of(parts + [name])
            seen = found.setdefault(mine, set())
            with open(os.path.join(place, name), encoding="utf-8") as f:
                for top, next_part in INCLUDE.findall(f.read()):
                    other = folder_of([top, next_part, "x"] if "." not in next_part else [top, next_part])
                    if other != mine and other != "oomsight":
                        seen.add(other)
    return {mine: {other for other in seen if other in found} for mine, seen in found.items()}


def reach(graph, start):
    todo, seen = list(graph[start]), set()
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo.extend(graph[one])
    return seen


def reduced(graph):
    """Without an arrow that a longer way has as well."""
    return {a: {b for b in graph[a] if not any(b in reach(graph, c) for c in graph[a] if c != b)} for a in graph}


def ranks(graph):
    found = {}

    def rank(one):
        if one not in found:
            found[one] = 0
            found[one] = 1 + max((rank(other) for other in graph[one]), default=-1)
        return found[one]
    for one in graph:
        rank(one)
    return found


def draw(graph):
    rank, arrows = ranks(graph), reduced(graph)
    top = max(rank.values())
    place = {}
    for level in range(top + 1):
        row = sorted(one for one in graph if rank[one] == level)
        for i, one in enumerate(row):
            place[one] = (WIDTH * (2 * i + 1) / (2 * len(row)), 20 + (top - level) * ROW)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" role="img">' % (WIDTH, (top + 1) * ROW),
           "<title>The folders of src: an arrow points at what is included</title>",
           "<style>.b{fill:#fff;stroke:#345}.l{stroke:#789;fill:none}text{fill:#123;text-anchor:middle}.h{fill:#789}"
           "@media(prefers-color-scheme:dark){.b{fill:#1b2430;stroke:#9ab}text{fill:#def}}</style>",
           '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="h" d="M0 0L8 4L0 8z"/></marker></defs>']
    for one in sorted(arrows):
        for other in sorted(arrows[one]):
            (x, y), (u, v) = place[one], place[other]
            out.append('<path class="l" marker-end="url(#a)" d="M%.0f %.0fL%.0f %.0f"/>' % (x, y + HEIGHT, u, v))
    for one in sorted(place):
        x, y = place[one]
        out.append('<rect class="b" rx="5" x="%.0f" y="%.0f" width="%d" height="%d"/><text x="%.0f" y="%.0f">%s</text>' % (x - BOX / 2, y, BOX, HEIGHT, x, y + 20, one))
    return "\n".join(out + ["</svg>", ""])


def main():
    words = [word for word in sys.argv[1:] if word != "--write"]
    root = words[0] if words else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    path, text = os.path.join(root, "docs", "contributing", "layers.svg"), draw(edges(root))
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return 0
    try:
        with open(path, encoding="utf-8") as f:
            same = f.read() == text
    except FileNotFoundError:
        same = False
    if not same:
        print("docs/contributing/layers.svg is not the code's: tools/draw_layers.py --write")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
