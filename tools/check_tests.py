#!/usr/bin/env python3
"""Every test states something that can be false. check_tests.py [ROOT]

What is looked at, under tests/:
- C: each function that cmocka_unit_test* registers states something itself, or by a function or macro of the same file: assert_* or fail, with an
  argument that is no constant and no two equal sides, not behind a `return` or in `#if 0`. Helpers in headers make fixtures; they do not count.
- Python: each `test_*`, each function of a list of functions, and in tests/shim each function that main() calls for its effect: an `assert`, a
  `raise`, self.assert*, or a function of these files that does one of them. A function of a list may also return what it found.
- tests/cli: a script that runs the command and has something expected beside it.
- JavaScript: an assert that is no constant.
Of the refusals of src/engines at most as many as tests/floors.json allows are without a test that has their words.
check_defects.py asks here whether a row names a test. Standard library only."""
import ast
import functools
import glob
import json
import os
import re
import sys

# ---- C ----

COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
HEAD = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
REGISTERED = re.compile(r"\bcmocka_unit_test\w*\(\s*([A-Za-z_]\w*)")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\([^)\n]*\)((?:[^\n]*\\\n)*[^\n]*)", re.M)
CONSTANT = {"true", "false", "NULL", "sizeof", "int", "char"}


def plain(text):
    """Without comments and without what `#if 0` leaves out; texts are kept as they are, for they are arguments."""
    text = COMMENT_OR_TEXT.sub(lambda m: m.group() if m.group()[0] in "\"'" else " ", text)
    return re.sub(r"^[ \t]*#[ \t]*if[ \t]+0\b.*?^[ \t]*#[ \t]*(?:else|endif)\b", "", text, flags=re.M | re.S)


def blank(text):
    """The same length, texts emptied, so that brackets inside them are none."""
    return COMMENT_OR_TEXT.sub(lambda m: m.group()[0] + " " * (len(m.group()) - 2) + m.group()[-1], text)


def pairs(shown):
    """{place of a bracket: place of the one that closes it}"""
    found, open_ones = {}, []
    for match in re.finditer(r"[(){}]", shown):
        if match.group() in "({":
            open_ones.append(match.start())
        elif open_ones:
            found[open_ones.pop()] = match.start()
    return found


def arguments(text, shown):
    """The arguments of a call, texts included."""
    depth, parts, start = 0, [], 0
    for match in re.finditer(r"[,()\[\]{}]", shown):
        depth += (match.group() in "([{") - (match.group() in ")]}")
        if match.group() == "," and depth == 0:
            parts.append(text[start:match.start()].strip())
            start = match.end()
    return parts + [text[start:].strip()]


STATES = re.compile(r"^(?:assert_\w+|fail|fail_msg)$")


@functools.lru_cache
def source(path):
    return Source(path)


class Source:
    """A C file: the places of its functions, and what they call."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.text = plain(f.read())
        self.shown = blank(self.text)
        self.macros = {m.group(1): (m.start(2), m.end(2)) for m in MACRO.finditer(self.text)}
        self.code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: " " * len(m.group()), self.shown, flags=re.M)
        self.closes = pairs(self.code)
        self.in_macros = pairs(self.shown) if self.macros else {}
        self.bodies, self.known = {}, {}
        at = 0
        while True:
            head, brace = HEAD.search(self.code, at), self.code.find("{", at)
            if not head and brace < 0:
                break
            if brace >= 0 and (not head or brace < head.start()):  # a type or a table
                at = self.closes.get(brace, len(self.code)) + 1
                continue
            end = self.closes.get(head.end() - 1, len(self.code)) + 1
            behind = re.compile(r"\s*\{").match(self.code, end)
            if behind:
                close = self.closes.get(behind.end() - 1, len(self.code))
                self.bodies[head.group(1)] = (behind.end(), self.leaves(behind.end(), close))
                end = close + 1
            at = end

    def leaves(self, start, end):
        """Where a `return` stands on its own, outside every block and condition; else the end."""
        depth = 0
        for match in re.compile(r"[{}]|\breturn\b").finditer(self.code, start, end):
            if match.group() == "return":
                before = self.code[start:match.start()].rstrip()
                if depth == 0 and (not before or before[-1] in ";}"):
                    return match.start()
            else:
                depth += 1 if match.group() == "{" else -1
        return end

    def says(self, match, closes):
        """Whether this assert_*(...) or fail(...) can be false."""
        if match.group(1).startswith("fail"):
            return True
        start, end = match.end(), closes.get(match.end() - 1, match.end())
        parts = arguments(self.text[start:end], self.shown[start:end])
        if len(parts) > 1 and parts[0] == parts[1]:
            return False
        return any(word not in CONSTANT for word in re.findall(r"\b[A-Za-z_]\w*", self.shown[start:end]))

    def states(self, name):
        if name not in self.known:
            self.known[name] = False  # while it is looked at
            closes = self.closes if name in self.bodies else self.in_macros
            self.known[name] = any(self.says(match, closes) if STATES.match(match.group(1)) else self.states(match.group(1))
                                   for match in HEAD.finditer(self.shown, *self.bodies.get(name) or self.macros.get(name) or (0, 0)))
        return self.known[name]

    def cases(self):
        """{test: whether it can fail}"""
        found = {name: self.states(name) for name in REGISTERED.findall(self.code)}
        for macro, (start, end) in self.macros.items():
            if "cmocka_unit_test" in self.text[start:end]:
                found.update({name: self.states(name) for name in re.findall(r"\b%s\(\s*([A-Za-z_]\w*)" % macro, self.code)})
        for name in found:  # functions that a macro makes of its argument: x_##what
            for macro, (start, end) in self.macros.items():
                stem = re.search(r"\b(\w+?)##\w+\s*\(", self.text[start:end])
                if name not in self.bodies and stem and name.startswith(stem.group(1)):
                    found[name] = self.states(macro)
        return found


# ---- Python ----

def of_call(node):
    return node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""


def is_constant(node):
    return all(isinstance(part, (ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.expr_context,
                                 ast.unaryop, ast.boolop, ast.cmpop, ast.BinOp, ast.operator)) for part in ast.walk(node))


ASSERTS = re.compile(r"^(assert[A-Z_]\w*|assert_|fail|failIf|failUnless)$")


def statements(node):
    """Every statement below, without the expressions."""
    for part in [*getattr(node, "body", ()), *getattr(node, "orelse", ()), *getattr(node, "finalbody", ()), *getattr(node, "handlers", ())]:
        yield part
        yield from statements(part)


class Module:
    """A Python file: which of its functions state something, and which are cases."""
    files = {}

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.tree = ast.parse(f.read(), path)
        self.path, self.functions, self.known = path, {}, {}
        self.imported = {}
        for node in statements(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions.setdefault(node.name, []).append(node)
            names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else [a.name for a in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                beside = os.path.join(os.path.dirname(path), name + ".py")
                if os.path.isfile(beside) and beside != path:
                    self.imported[name] = beside

    @classmethod
    def of(cls, path):
        if path not in cls.files:
            cls.files[path] = cls(path)
        return cls.files[path]

    def states(self, name):
        if name not in self.known:
            self.known[name] = False
            found = any(self.says(node) for node in self.functions.get(name, []))
            if name not in self.functions:
                found = any(Module.of(path).states(name) for path in self.imported.values() if name in Module.of(path).functions)
            self.known[name] = found
        return self.known[name]

    def says(self, function):
        """An assertion, or something kept outside that main() ends by: a global, a list of findings, a member."""
        kept = {name for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
        for node in reachable(function.body):
            if isinstance(node, ast.Assert) and not is_constant(node.test) or isinstance(node, ast.Raise):
                return True
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(t, ast.Name) and t.id in kept for t in targets) and not is_constant(node.value):
                    return True
                targets = [part for t in targets for part in (t.elts if isinstance(t, ast.Tuple) else [t])]
                counts = isinstance(node, ast.AugAssign) or any(isinstance(part, ast.Attribute) and part.attr.startswith("fail") for part in ast.walk(node.value))
                if counts and any(is_kept(t, kept) for t in targets):
                    return True
            if isinstance(node, ast.Call):
                name = of_call(node)
                if ASSERTS.match(name) and (name.startswith("fail") or not node.args or not is_trivial(node)):
                    return True
                if name == "raises":
                    return True
                if name == "exit" and node.args and not is_constant(node.args[0]):
                    return True
                if name in ("append", "extend", "add") and isinstance(node.func, ast.Attribute) and self.is_findings(node.func.value, function):
                    return True
                if name == "run" and any(k.arg == "check" and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords):
                    continue
                if name != function.name and self.states(name):
                    return True
                for argument in node.args:  # a check that is handed over
                    if isinstance(argument, ast.Name) and argument.id in self.functions and argument.id != function.name and self.states(argument.id):
                        return True
        return False

    def is_findings(self, node, function):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        local = {t.id for n in ast.walk(function) if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
        return bool(re.match(r"^(bad|fail|problem|wrong|miss|finding|broken|lost)", name)) and name not in local

    def gives(self, name):
        """Whether it returns or yields what is no constant."""
        return any(isinstance(node, (ast.Yield, ast.YieldFrom)) or isinstance(node, ast.Return) and node.value is not None and not is_constant(node.value)
                   for function in self.functions.get(name, []) for node in reachable(function.body))

    @functools.lru_cache
    def cases(self):
        """{case: whether it can fail}"""
        found = {}
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.FunctionDef) and part.name.startswith("test"):
                        found[part.name] = self.says(part)
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[node.name] = self.says(node)
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.List, ast.Tuple)):
                parts = node.value.elts
                if parts and all(isinstance(p, ast.Name) and p.id in self.functions for p in parts):
                    for part in parts:
                        found[part.id] = self.states(part.id) or self.gives(part.id)
        for node in (n for main in self.functions.get("main", []) for n in ast.walk(main) if isinstance(n, (ast.Tuple, ast.List))):
            if len(node.elts) > 1 and all(isinstance(part, ast.Attribute) and part.attr in self.functions for part in node.elts):  # test.this, test.that
                for part in node.elts:
                    found[part.attr] = self.states(part.attr) or self.gives(part.attr)
        if os.sep + "shim" + os.sep in self.path:  # there main() calls the cases one by one
            for node in (n for main in self.functions.get("main", []) for n in ast.walk(main) if isinstance(n, ast.Expr)):
                name = node.value.func.id if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) else ""
                if name in self.functions:
                    found.setdefault(name, self.states(name))
        return found

    @functools.lru_cache
    def sentences(self):
        """Names of cases that are texts: the first of a tuple, the key of a dict, or what a call that states is given."""
        found = set()
        for node in ast.walk(self.tree):
            parts = []
            if isinstance(node, ast.Tuple):
                parts = node.elts[:1]
            elif isinstance(node, ast.Dict):
                parts = node.keys
            elif isinstance(node, ast.Call) and self.states(of_call(node)):
                parts = node.args
            found |= {p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str) and " " in p.value.strip()}
        return found

    def can_fail(self):
        """Whether the program can end with another code than 0."""
        return any(isinstance(node, (ast.Raise, ast.Assert)) or isinstance(node, ast.Call) and (
            of_call(node) == "exit" and node.args and not is_constant(node.args[0]) or isinstance(node.func, ast.Attribute) and of_call(node) == "main")
            for node in ast.walk(self.tree))


def is_kept(target, names):
    """A name of outside, a member, or an entry of one: what main() may look at."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Attribute) or isinstance(target, ast.Name) and target.id in names


def is_trivial(call):
    """assertTrue(True), assertEqual(x, x)"""
    if all(is_constant(a) for a in call.args):
        return True
    return len(call.args) > 1 and ast.dump(call.args[0]) == ast.dump(call.args[1])


def reachable(body):
    """The nodes of these statements up to one that leaves, and none of `if False`."""
    for statement in body:
        if isinstance(statement, (ast.If, ast.While)) and isinstance(statement.test, ast.Constant) and not statement.test.value:
            yield from reachable(statement.orelse)
            continue
        yield from ast.walk(statement)
        if isinstance(statement, (ast.Return, ast.Continue, ast.Break)):
            return


# ---- all ----

def cli_problem(path):
    """What is wrong with a case of tests/cli, or None."""
    with open(path, encoding="utf-8") as f:
        code = [line for line in f.read().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not any("OOMSIGHT" in line for line in code):
        return "does not run the command"

    def beside(end):
        name = path[:-3] + end
        if not os.path.isfile(name):
            return ""
        with open(name, encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    if not beside(".stdout") and not beside(".stderr") and beside(".exit") in ("", "0"):
        return "expects no output and no exit code but 0"
    return None


def sh_sentences(path):
    """What a script claims: claim "SENTENCE" COMMAND."""
    with open(path, encoding="utf-8") as f:
        return set(re.findall(r'^[^#\n]*\bclaim "([^"$]+)" \S', f.read(), re.M))


JS_ASSERT = re.compile(r"\bassert(?:\.\w+)?\s*\(")


def js_sentences(path):
    """{message: True} of the asserts of a script that state something; also what they say without a message, as ''."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    found = {}
    for match in JS_ASSERT.finditer(text):
        given = js_argument(text, match.end() - 1)
        given = arguments(given, blank(given))
        if re.search(r"[A-Za-z_]\w*", given[0]) and given[0] not in ("true", "1") and not (len(given) > 1 and given[0] == given[1]):
            message = re.match(r"""^(['"])(.*)\1$""", given[-1])
            found[message.group(2) if message and len(given) > 1 else ""] = True
    return found


def js_argument(text, at):
    """What stands between the brackets of a call, texts and patterns of JavaScript left alone as far as brackets go."""
    depth, place, quote = 0, at, ""
    while place < len(text):
        letter = text[place]
        if quote:
            if letter == "\\":
                place += 1
            elif letter == quote:
                quote = ""
        elif letter in "'\"`":
            quote = letter
        else:
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                return text[at + 1:place]
        place += 1
    return text[at + 1:]


def is_test_file(path):
    """Whether a Python file under tests/ is one that is run, not one that others import."""
    module = Module.of(path)
    return os.path.basename(path).startswith("test_") or any(isinstance(n, ast.If) and "__main__" in ast.dump(n.test) for n in module.tree.body)


def problems(root):
    """(place, what is wrong) of every test that cannot fail, and at last how many there are."""
    count = 0
    for path in sorted(glob.glob(os.path.join(root, "tests/**/*.c"), recursive=True)):
        for name, good in source(path).cases().items():
            count += 1
            if not good:
                yield os.path.relpath(path, root) + ":" + name, "states nothing that can be false"
    for path in sorted(glob.glob(os.path.join(root, "tests/**/*.py"), recursive=True)):
        if "/fixtures/" in path or not is_test_file(path):
            continue
        for name, good in Module.of(path).cases().items():
            count += 1
            if not good:
                yield os.path.relpath(path, root) + ":" + name, "states nothing that can be false"
    for path in sorted(glob.glob(os.path.join(root, "tests/cli/*.sh"))):
        count += 1
        wrong = cli_problem(path)
        if wrong:
            yield os.path.relpath(path, root), wrong
    for path in sorted(glob.glob(os.path.join(root, "tests/web/*_words.js"))):
        count += 1
        if not js_sentences(path):
            yield os.path.relpath(path, root), "states nothing that can be false"
    yield None, count


# ---- refusals ----

REFUSAL = re.compile(r'\b\w*refuse\(\s*\w+,\s*((?:"(?:\\.|[^"\\])*"\s*(?:PRI\w+)?\s*)+)')
VALUE = re.compile(r"%[-+0-9.*]*(?:ll|l|z|h)?[a-zA-Z%]|\{[^{}]*\}")
WORDS = 3


def grams(text):
    words = re.findall(r"[\w.=`'-]+", text.replace("\\\"", " ").replace('"', " "))
    return {tuple(words[at:at + WORDS]) for at in range(len(words) - WORDS + 1)}


def unasked(root):
    """(place, sentence) of each refusal in src/engines and in refusals.json of which no unit test, no expected output and no list of commands has three words in a row."""
    joined = lambda text: re.sub(r'"\s*\n?\s*"', "", text)
    known = set()
    for pattern in ("tests/unit/*.c", "tests/cli/*.stdout", "tests/golden/*/report.json", "tests/plan/gpu_counts.py", "tests/rules/*.py"):
        for path in glob.glob(os.path.join(root, pattern)):
            with open(path, encoding="utf-8", errors="replace") as f:
                known |= grams(joined(plain(f.read())) if path.endswith(".c") else f.read())
    found = []
    for path in sorted(glob.glob(os.path.join(root, "src/engines/**/*.c"), recursive=True)):
        with open(path, encoding="utf-8") as f:
            found += [(path, match.group(1)) for match in REFUSAL.finditer(joined(plain(f.read())))]
    for path in sorted(glob.glob(os.path.join(root, "data/engines/*/refusals.json"))):
        with open(path, encoding="utf-8") as f:
            found += [(path, step["says"]) for step in json.load(f) if "says" in step]
    for path, sentence in found:
        own = set().union(*(grams(part) for part in VALUE.split(sentence)))
        if own and not own & known:
            yield os.path.relpath(path, root), sentence.strip().strip('"')


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    *found, (_, count) = problems(root)
    for place, wrong in found:
        print("%s: %s" % (place, wrong))
    refusals = list(unasked(root))
    if os.path.isfile(os.path.join(root, "tests/floors.json")):
        with open(os.path.join(root, "tests/floors.json"), encoding="utf-8") as f:
            most = json.load(f)["check_tests.py"]["refusals without a test"]["at_most"]
        if len(refusals) > most:
            found += refusals
            print("\n".join("%s: no test asks for the refusal: %s" % one for one in refusals))
            print("%d refusals that no test asks for, at most %d" % (len(refusals), most))
    print("%d of %d tests cannot fail" % (len(found), count) if found else "%d tests: each states something that can be false" % count)
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main())
