#!/usr/bin/env python3
"""Write a text file as a C string: embed_text.py FILE OUT.c NAME. Standard library only."""
import sys


def main():
    source, out, name = sys.argv[1:4]
    with open(source, "rb") as f:
        text = f.read()
    with open(out, "w", encoding="ascii") as c:
        c.write("/* made by tools/embed_text.py */\nextern const char %s[];\nconst char %s[] =\n" % (name, name))
        for start in range(0, len(text), 100):
            piece = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else "\\%03o" % b for b in text[start:start + 100])
            c.write('    "%s"\n' % piece)
        c.write(";\n")


if __name__ == "__main__":
    main()
