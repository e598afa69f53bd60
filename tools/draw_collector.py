#!/usr/bin/env python3
"""The picture of the collector: its states as boxes, what leads from one to the next as arrows, out of the table src/explain/collect.def.
docs/contributing/collector.svg is this picture; CI compares them, and that the table has each state with each event once. Standard library only.

    draw_collector.py [ROOT] [--write]      without --write: exit 1 when the picture is not the table's"""
import os
import re
import sys

WIDTH, HEIGHT, BOX, TALL = 1200, 450, 250, 36
# Where a box stands: column, row.
PLACES = {"QUIET": (0, 0), "FAILING": (0, 1), "SURVIVED": (0, 2), "TOLD": (1, 1), "TOLD_SURVIVED": (1, 2), "ECHO": (2, 1), "ECHO_SURVIVED": (2, 2)}
STYLE = ('<style>.b{fill:#fff;stroke:#345}.l{stroke:#789;fill:none}text{fill:#123;text-anchor:middle}.e{font-size:11px;paint-order:stroke;stroke:#fff;'
         'stroke-width:4px}.n{text-anchor:start}.h{fill:#789}@media(prefers-color-scheme:dark){.b{fill:#1b2430;stroke:#9ab}text{fill:#def}.e{stroke:#1b2430}}</style>'
         '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="h" d="M0 0L8 4L0 8z"/></marker></defs>')


def read(path):
    """states, events and acts: {name: words}; steps: {(state, event): (acts, next)}"""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    words = [dict(re.findall(r'^%s\((\w+),.*?"(.*)"\)' % kind, text, re.M)) for kind in ("STATE", "EVENT", "ACT")]
    rows = re.findall(r"^STEP\((\w+), (\w+), ([\w| ]+), (\w+)\)", text, re.M)
    steps = {(state, event): ([] if acts == "0" else acts.split(" | "), after) for state, event, acts, after in rows}
    states, events, acts = words
    wrong = [pair for pair in ((state, event) for state in states for event in events) if pair not in steps]
    known = all(state in states and after in states and event in events and set(done) <= set(acts) for (state, event), (done, after) in steps.items())
    if wrong or not known or len(rows) != len(steps) or set(states) != set(PLACES):
        sys.exit("collect.def does not have each state with each event once: %s" % (wrong or "a name or a row too many"))
    return states, events, acts, steps


def edge(one, other):
    """From box to box, beside the arrow that comes back; and where its words stand."""
    (x, y), (u, v) = place(one), place(other)
    across, down = (u > x) - (u < x), (v > y) - (v < y)
    if across and down:
        start, end, near, beside = (x + across * 60, y + down * TALL / 2), (u - across * (40 if abs(u - x) > 400 else 90), v - down * TALL / 2), .22, (0, 0)
    elif across:
        start, end, near, beside = (x + across * BOX / 2, y + across * 9), (u - across * BOX / 2, v + across * 9), .5, (0, 18 if across > 0 else -12)
    else:
        start, end, near, beside = (x + down * 50, y + down * TALL / 2), (u + down * 50, v - down * TALL / 2), .5, (down * 70, 0)
    return "M%d %dL%d %d" % (start + end), start[0] + (end[0] - start[0]) * near + beside[0], start[1] + (end[1] - start[1]) * near + beside[1]


def place(state):
    column, row = PLACES[state]
    return 200 + column * 400, 40 + row * 140


def draw(states, events, acts, steps):
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" role="img">' % (WIDTH, HEIGHT),
           "<title>The collector: what leads from one state to the next</title>", STYLE]
    same = [event for event in events if len({steps[state, event][1] for state in states}) == 1]
    arrows = {}
    for (state, event), (done, after) in steps.items():
        if after != state and event not in same:
            arrows.setdefault((state, after), []).append((events[event], ", ".join(acts[one] for one in done if one != "ADD")))
    labels = []
    for one, other in sorted(arrows):
        path, x, y = edge(one, other)
        out.append('<path class="l" marker-end="url(#a)" d="%s"/>' % path)
        lines = [part for event, done in arrows[one, other] for part in [event] + re.findall(r"(.{1,26})(?:,? |$)", "(%s)" % done if done else "")]
        labels += ['<text class="e" x="%d" y="%d">%s</text>' % (x, y + 13 * i - 6 * (len(lines) - 1), line) for i, line in enumerate(lines)]
    for state, words in states.items():
        x, y = place(state)
        out.append('<rect class="b" rx="5" x="%d" y="%d" width="%d" height="%d"/><text x="%d" y="%d">%s</text>' % (x - BOX / 2, y - TALL / 2, BOX, TALL, x, y + 5, words))
    for i, event in enumerate(same):
        done = ", ".join(words for act, words in acts.items() if any(act in steps[state, event][0] for state in states))
        out.append('<text class="n" x="75" y="%d">From each: %s (%s) &#8594; %s</text>' % (HEIGHT - 20 - 20 * i, events[event], done, states[steps["QUIET", event][1]]))
    return "\n".join(out + labels + ["</svg>", ""])


def main():
    words = [word for word in sys.argv[1:] if word != "--write"]
    root = words[0] if words else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    path, text = os.path.join(root, "docs", "contributing", "collector.svg"), draw(*read(os.path.join(root, "src", "explain", "collect.def")))
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return 0
    with open(path, encoding="utf-8") as f:
        same = f.read() == text
    if not same:
        print("docs/contributing/collector.svg is not the table's: tools/draw_collector.py --write")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
