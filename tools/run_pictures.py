#!/usr/bin/env python3
"""Draw what two commands answer: run_pictures.py BINARY [--write]. Without --write the pictures are compared. Standard library only.

allocator.svg: what `replay` makes of a snapshot that a dry run of vLLM recorded. fleet.svg: what `explain --stream` makes of a day of 40 nodes with four
engines each, whose logs are recorded failures of tests/fixtures, spread over the day by a fixed seed."""
import base64
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

from phase_picture import ROOT, WIDTH, style, text

GIB, LEFT, NODES = 2 ** 30, 16, 40
SNAPSHOT = os.path.join(ROOT, "tests/evidence/snapshots/03_vllm0.32_cumem_split20_oom_torch2.13.0.pickle")
# (record, nodes, hours in which it happens, starts of each engine that fails)
DAY = (("vllm/context-too-long", 11, (14, 15, 16), 4), ("vllm/free-memory-held-by-others", 3, (2, 9, 20), 2), ("vllm/weights-exceed-gpu", 2, (10,), 3),
       ("host/oom-killer", 6, tuple(range(24)), 1), ("vllm/sampler-warmup", 5, tuple(range(6, 23)), 1))


START = "INFO 01-02 03:04:05 [api_server.py:1] vLLM API server version 0.19.1"  # each failure is of a start of its own


def svg(height, title, out):
    return "\n".join(['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="system-ui, sans-serif" font-size="13">' % (WIDTH, height),
                      style(), "<title>%s</title>" % title, '<rect width="100%" height="100%" class="bg"/>', *out, "</svg>"]) + "\n"


def numbers(page, key, kind):
    raw = base64.b64decode(page[key[0]][key[1]])
    return struct.unpack("<%d%s" % (len(raw) // struct.calcsize(kind), kind), raw)


def areas(page, y, high):
    """Bytes over the events: reserved, and in front of it allocated."""
    most, across = page["peak_reserved"], WIDTH - 2 * LEFT
    at = lambda event, size: "%.1f %.1f" % (LEFT + across * event / page["events"], y + high - high * size / most)
    for column, kind in ((2, "reserved"), (1, "weights")):
        line = " L".join(at(point[0], point[column]) for point in page["points"])
        yield '<path d="M%s L%s L%s Z" class="%s"/>' % (at(page["points"][0][0], 0), line, at(page["points"][-1][0], 0), kind)
    yield '<path d="M%s V%d" class="edge" stroke-width="2"/>' % (at(page["oom_at"], most), y + high)


def segments(page, y, rows, high):
    """Each segment at the failure, in the order of addresses, with the blocks in it that are in use."""
    seg, blk = ({name: numbers(page, (what, name), "I" if name in ("start", "end") or (what, name) == ("blk", "size") else "d") for name in ("start", "end", "addr", "size")}
                for what in ("seg", "blk"))
    when, across = page["oom_at"], WIDTH - 2 * LEFT
    live = lambda them: sorted((i for i in range(len(them["start"])) if them["start"][i] <= when < them["end"][i]), key=lambda i: them["addr"][i])
    blocks, paths, x = live(blk), {"reserved": [], "weights": []}, 0.0
    scale = across * rows * 0.96 / sum(seg["size"][i] for i in live(seg))

    def strip(kind, begin, end):
        while end - begin > 0.05:
            row = int(begin / across)
            until = min(end, (row + 1) * across)
            paths[kind].append("M%.1f %dh%.1fv%dh-%.1fz" % (LEFT + begin - row * across, y + row * (high + 3), until - begin, high, until - begin))
            begin = until if until > begin else end
    for i in live(seg):
        strip("reserved", x, x + seg["size"][i] * scale)
        for b in (b for b in blocks if seg["addr"][i] <= blk["addr"][b] < seg["addr"][i] + seg["size"][i]):
            start = x + (blk["addr"][b] - seg["addr"][i]) * scale
            strip("weights", start, start + max(blk["size"][b] * scale, 0.4))
        x += seg["size"][i] * scale + 1.5
    return ['<path d="%s" class="%s"/>' % ("".join(path), kind) for kind, path in paths.items()], len(live(seg))


def allocator(binary):
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "replay.html")
        subprocess.run([binary, "replay", "--format", "html", "--output", out, SNAPSHOT], capture_output=True, check=False)
        with open(out, encoding="utf-8") as f:
            page = json.loads(re.search(r'id="data">(.*?)</script>', f.read(), re.DOTALL).group(1))
    rows, high = 16, 9
    drawn, count = segments(page, 202, rows, high)
    out = [text(LEFT, 24, page["verdict"].split("\n")[0], "ink", ' font-weight="700" font-size="15"'),
           text(LEFT, 46, "Bytes over %d events: up to %.2f GiB reserved, %.2f in use. The line is the request that failed."
                % (page["events"], page["peak_reserved"] / GIB, page["peak_allocated"] / GIB), "dim"), *areas(page, 56, 110),
           text(LEFT, 192, "The %d segments at that moment, by address" % count, "dim"), *drawn]
    y = 202 + rows * (high + 3) + 12
    for x, kind, words in ((LEFT, "weights", "in use"), (LEFT + 90, "reserved", "reserved, and free: %.2f GiB that no request of this size fits into" % (page["stranded"] / GIB))):
        out += ['<rect x="%d" y="%d" width="12" height="12" rx="2" class="%s"/>' % (x, y, kind), text(x + 17, y + 11, words, "ink")]
    return svg(y + 28, "The memory of PyTorch's allocator when it ran out", out)


def day(binary):
    """Incidents of the day: [(record, hour, node)]."""
    rng, records = random.Random(43), []
    for name, nodes, hours, starts in DAY:
        with open(os.path.join(ROOT, "tests/fixtures/kb", name, "positive.log"), encoding="utf-8", errors="replace") as log:
            lines = [START] + log.read().splitlines()
        for node in rng.sample(range(NODES), nodes):
            hour = rng.choice(hours)
            for start in range(starts):
                stamp = "2026-03-02T%02d:%02d:%02dZ" % (hour, start * 12 + rng.randrange(10), node)
                stream = "node-%02d/engine-%d" % (node, rng.randrange(4) if starts == 1 else 0)
                records += [{"stream": stream + "/" + name, "time": stamp, "line": line} for line in lines]
    told = subprocess.run([binary, "explain", "--stream", "--each"], input="\n".join(map(json.dumps, records)), capture_output=True, text=True, check=False).stdout
    incidents = [one for one in map(json.loads, told.splitlines()) if "signature" in one]
    return [(one["signature"], int(one["at"][11:13]) + int(one["at"][14:16]) / 60, one["source"]["path"][:7]) for one in incidents]


def fleet(binary):
    listed = json.loads(subprocess.run([binary, "kb", "list", "--json"], capture_output=True, text=True, check=True).stdout)
    titles = {one["id"]: one["title"] for one in listed}
    incidents = day(binary)
    rows = sorted({one[0] for one in incidents}, key=lambda name: (-sum(one[0] == name for one in incidents), name))
    top, high, left, right = 78, 54, LEFT, WIDTH - 150
    at = lambda hour: left + (right - left) * hour / 24
    out = [text(LEFT, 24, "%d incidents of %d nodes in a day, by cause" % (len(incidents), len({one[2] for one in incidents})), "ink", ' font-weight="700" font-size="15"'),
           text(LEFT, 46, "%d nodes with four engines each. A dot is an incident; darker where there are several." % NODES, "dim"),
           text(right + 70, top - 10, "incidents", "dim", ' text-anchor="end"'), text(WIDTH - LEFT, top - 10, "nodes", "dim", ' text-anchor="end"')]
    for row, name in enumerate(rows):
        y, own = top + row * high, [one for one in incidents if one[0] == name]
        out += [text(left, y + 13, titles.get(name, name), "ink"), '<path d="M%d %d H%d" class="frame"/>' % (left, y + 30, right)]
        out += ['<circle cx="%.1f" cy="%d" r="5" class="KV-cache" opacity="0.55"/>' % (at(hour), y + 30) for _, hour, _ in own]
        out += [text(right + 70, y + 35, str(len(own)), "ink", ' text-anchor="end" font-weight="700"'),
                text(WIDTH - LEFT, y + 35, str(len({one[2] for one in own})), "ink", ' text-anchor="end" font-weight="700"')]
    bottom = top + len(rows) * high
    out += [text(at(hour), bottom + 6, "%02d:00" % hour, "dim", ' text-anchor="middle"' if hour else "") for hour in range(0, 24, 6)]
    return svg(bottom + 20, "A day of a fleet", out)


def main():
    wrong = 0
    for name, draw in (("allocator.svg", allocator), ("fleet.svg", fleet)):
        path = os.path.join(ROOT, "docs/pictures", name)
        drawn = draw(os.path.abspath(sys.argv[1]))
        if "--write" in sys.argv[2:]:
            with open(path, "w", encoding="utf-8") as out:
                out.write(drawn)
            continue
        kept = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if drawn != kept:
            print("docs/pictures/%s is not what is drawn: tools/run_pictures.py BINARY --write" % name)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
