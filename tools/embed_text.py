#!/usr/bin/env python3
"""Write a text file as a C string: embed_text.py FILE OUT.c NAME [SCRIPT]. @STYLE-HASH@ becomes that of its <style>, @SCRIPT-HASH@ that of its
<script>, @WORDS-HASH@ that of SCRIPT, which src/report/html.c puts behind it, for a policy that allows no others. Standard library only."""
import base64
import hashlib
import re
import sys


def hash_of(text):
    return b"sha256-" + base64.b64encode(hashlib.sha256(text).digest())


def hash_inside(text, tag):
    inside = re.search(b"<%s>(.*?)</%s>" % (tag, tag), text, re.DOTALL)
    return hash_of(inside.group(1)) if inside else b""


def main():
    source, out, name = sys.argv[1:4]
    with open(source, "rb") as f:
        text = f.read()
    text = text.replace(b"@STYLE-HASH@", hash_inside(text, b"style")).replace(b"@SCRIPT-HASH@", hash_inside(text, b"script"))
    for script in sys.argv[4:]:
        with open(script, "rb") as f:
            text = text.replace(b"@WORDS-HASH@", hash_of(b"\n" + f.read()))
    with open(out, "w", encoding="ascii") as c:
        c.write("/* made by tools/embed_text.py */\nextern const char %s[];\nconst char %s[] =\n" % (name, name))
        for start in range(0, len(text), 100):
            piece = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else "\\%03o" % b for b in text[start:start + 100])
            c.write('    "%s"\n' % piece)
        c.write(";\n")


if __name__ == "__main__":
    main()
