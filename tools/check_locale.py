#!/usr/bin/env python3
"""Fail on a call in src/ or shim/ whose answer depends on the locale, outside of src/base/locale.c. Standard library only.
The command itself (cli/) may use them: it never calls setlocale(), which is checked too."""
import os
import re
import sys

HOME = {"src/base/locale.c", "src/base/json.c"}  # the functions that everybody else uses; Jansson is bracketed in the second
INSTEAD = {
    **dict.fromkeys(("strtod", "strtof", "strtold", "atof"), "oos_real_read() of base/locale.h"),
    **dict.fromkeys(("vsnprintf", "vsprintf", "vasprintf", "vprintf", "vfprintf"), "oos_vformat() of base/locale.h"),
    **dict.fromkeys(("isalpha", "isdigit", "isalnum", "isspace", "isupper", "islower", "isprint", "isgraph", "ispunct", "iscntrl", "isxdigit",
                     "isblank", "tolower", "toupper", "strcasecmp", "strncasecmp", "strcasestr"), "base/ascii.h"),
    **dict.fromkeys(("strerror", "strerror_r", "perror"), "oos_errno_text() of base/locale.h"),
    **dict.fromkeys(("json_load", "json_loads", "json_loadb", "json_loadf", "json_load_file", "json_dump", "json_dumps", "json_dumpf"),
                    "oos_json_load(), _parse() and _text() of base/json.h"),
    **dict.fromkeys(("strcoll", "strxfrm", "mbstowcs", "wcstombs", "mbrtowc", "localeconv", "nl_langinfo"), "nothing of the locale"),
    "setlocale": "nothing: the locale is the process's own",
}
FORMATS = {"printf", "fprintf", "sprintf", "snprintf", "asprintf", "dprintf", "sscanf", "fscanf", "scanf"}
CALL = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(sorted(set(INSTEAD) | FORMATS, key=len, reverse=True)))
FLOATING = re.compile(r"%[-+ #0']*[\d*]*(?:\.[\d*]*)?[lL]?[fFgGeEaA]")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')', re.S)


def without_comments(text):
    return COMMENT.sub(lambda found: found.group(1) or re.sub(r"[^\n]", " ", found.group(0)), text)


def arguments(text, at):
    """What stands between the bracket that was opened just before `at` and the one that closes it."""
    depth, end = 1, at
    while depth and end < len(text):
        if text[end] in "\"'":
            quote = text[end]
            end += 1
            while text[end] != quote:
                end += 2 if text[end] == "\\" else 1
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[at:end - 1]


def findings_in(name, text):
    text = without_comments(text)
    in_cli = name.startswith("cli/")
    for found in CALL.finditer(text):
        word = found.group(1)
        line = text.count("\n", 0, found.start()) + 1
        if in_cli and word != "setlocale":
            continue
        if word in INSTEAD:
            yield "%s:%d: %s() depends on the locale; use %s" % (name, line, word, INSTEAD[word])
        elif FLOATING.search("\0".join(STRING.findall(arguments(text, found.end()))).replace("%%", "")):
            yield "%s:%d: %s() of a floating number depends on the locale; use oos_format() of base/locale.h" % (name, line, word)


def findings(root):
    for top in ("src", "shim", "cli"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                short = os.path.relpath(path, root).replace(os.sep, "/")
                if name.endswith((".c", ".h", ".def")) and short not in HOME:
                    with open(path, encoding="utf-8") as f:
                        yield from findings_in(short, f.read())


def self_test():
    """The rule sees what it should, and nothing else."""
    bad = ['x = strtod(a, &b);', 'snprintf(t, 9, "%d of " "%6.2f", 1, 2.0);', 'if (isalpha(c)) y();', 'fprintf(f, "%lg%%", v);']
    good = ['/* strtod(a, b) */', 'snprintf(t, 9, "%d %% free", 1);', 'oos_format(t, 9, "%.2f", 1.0);', 'a.strtod(1);',
            'snprintf(t, 9, "100%%f %s", s);', 'snprintf(t, 9, "%" PRIu64 " free", n);']
    return all(list(findings_in("src/x.c", text)) for text in bad) and not any(list(findings_in("src/x.c", text)) for text in good)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not self_test():
        print("check_locale: the rule itself is broken")
        return 1
    bad = list(findings(root))
    print("\n".join(bad) if bad else "locale: nothing outside src/base/ listens to it")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
