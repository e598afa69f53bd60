"""A command and what it prints, as a picture of a terminal (SVG): used by check_docs.py, which keeps it up to date."""
import html
import os
import re
import subprocess
import tempfile

PICTURE = "docs/pictures/terminal.svg"
COMMAND = "oomsight plan --offline --gpu 4090 --vllm 0.19.1 -- vllm serve Qwen/Qwen3-8B"
CELL, LINE, EDGE = 8.4, 19, 18
COLORS = {"1": "#ffffff", "2": "#8b949e", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff", "36": "#76e3ea", "90": "#8b949e"}
PLAIN, GROUND = "#c9d1d9", "#0d1117"


def spans(line):
    """(text, colour, bold) of each piece of a line with ANSI sequences."""
    colour, bold = PLAIN, False
    for codes, text in re.findall(r"\x1b\[([0-9;]*)m|([^\x1b]+)", line):
        if text:
            yield text, colour, bold
            continue
        for code in (codes or "0").split(";"):
            if code in ("0", ""):
                colour, bold = PLAIN, False
            elif code == "1":
                bold = True
            elif code in COLORS:
                colour = COLORS[code]


def svg(command, printed):
    lines = ["\x1b[2m$\x1b[0m \x1b[1m%s" % command] + printed
    width = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
    out = []
    for place, line in enumerate(lines):
        at = 0
        for text, colour, bold in spans(line):
            spaces = len(text) - len(text.lstrip())  # a browser would swallow them
            at, text = at + spaces, text[spaces:]
            out.append('<text x="%.1f" y="%d" fill="%s"%s textLength="%.1f">%s</text>' % (
                EDGE + at * CELL, EDGE + 14 + place * LINE, colour, ' font-weight="bold"' if bold else "", len(text) * CELL, html.escape(text)) if text.strip() else "")
            at += len(text)
    size = (2 * EDGE + width * CELL, 2 * EDGE + len(lines) * LINE)
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" '
            'font-size="14" xml:space="preserve" role="img">\n<title>%s</title>\n<rect width="100%%" height="100%%" rx="8" fill="%s"/>\n%s\n</svg>\n' % (
                *size, *size, html.escape(command), GROUND, "\n".join(line for line in out if line)))


def picture(binary):
    """What the picture must be."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(binary, os.path.join(folder, "oomsight"))
        environment = dict(os.environ, PATH=folder + ":" + os.environ["PATH"], COLUMNS="100", LC_ALL="C.UTF-8")
        environment.pop("NO_COLOR", None)
        words = COMMAND.replace("plan ", "plan --color always ", 1)
        printed = subprocess.run(["bash", "-c", words], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    return svg(COMMAND, printed.rstrip("\n").split("\n"))
