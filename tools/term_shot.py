#!/usr/bin/env python3
"""A picture of what a command prints, as a terminal shows it: term_shot.py OUT.png COLUMNS COMMAND...

Runs COMMAND with that width, turns colours into HTML and has headless Chromium draw it; the colours are reduced so that the
file stays small. Exit 77 without Chromium. Standard library only."""
import html
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile

COLOURS = {30: "#2e3436", 31: "#cc0000", 32: "#4e9a06", 33: "#c4a000", 34: "#3465a4", 35: "#75507b", 36: "#06989a", 37: "#d3d7cf", 90: "#888a85"}


def terminal(command, columns):
    """What it prints to a terminal of that width."""
    import fcntl
    import termios
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(command, stdout=child, stderr=subprocess.STDOUT, env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"})
    os.close(child)
    out = b""
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    process.wait()
    return out.decode(errors="replace").replace("\r\n", "\n")


def to_html(text):
    out, style = [], {}
    for piece in re.split(r"(\x1b\[[0-9;]*m)", text):
        codes = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if not codes:
            css = ";".join("%s:%s" % item for item in style.items())
            out.append('<span style="%s">%s</span>' % (css, html.escape(piece)) if css else html.escape(piece))
            continue
        for code in [int(c or 0) for c in codes.group(1).split(";")]:
            if code == 0:
                style = {}
            elif code == 1:
                style["font-weight"] = "bold"
            elif code == 2:
                style["opacity"] = "0.6"
            elif code in COLOURS:
                style["color"] = COLOURS[code]
    return "".join(out)


def main():
    target, columns, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("no Chromium")
        return 77
    text = terminal(command, columns)
    lines = text.rstrip("\n").count("\n") + 1
    widest = max([columns] + [len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.split("\n")])
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "page.html")
        with open(page, "w", encoding="utf-8") as f:
            f.write('<meta charset="utf-8"><style>body{margin:8px;background:#fff}pre{margin:0;font:13px/16px "DejaVu Sans Mono",monospace}</style><pre>%s</pre>' % to_html(text))
        # One character of 13 px DejaVu Sans Mono is 7.83 px wide.
        subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--screenshot=" + os.path.abspath(target),
                        "--window-size=%d,%d" % (int(widest * 7.83) + 18, lines * 16 + 16), "file://" + page], check=True, capture_output=True)
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--ext", ".png", "16", target], check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
