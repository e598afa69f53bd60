"""What of an engine's source the rules of a plan rest on, and whether it is the same in another release (docs/reference/formats/fingerprints.md).

A rule names units (FILE:QUALIFIED.NAME, the file below the package) and an anchor (texts, with | between them). Its slice is what of those units has
the anchor, what defines the names in that, and the conditions around it; without an anchor, all of the unit. Left out are texts that decide nothing:
docstrings, annotations, imports, logging, words of errors, sentences, and branches of other platforms. The source is read, never run, and is anybody's:
a file that is too large or cannot be parsed is left out, and said."""
import ast
import hashlib
import os
import re
import time

FILE_BYTES = 1 << 20
SECONDS = 20
SHOWN = 160
LISTED = 30
MOVED_LEAST = 0.3
OTHERS = {"is_rocm": False, "is_xpu": False, "is_cpu": False, "is_tpu": False, "is_hpu": False, "is_cuda": True, "is_cuda_alike": True}
MUTE = {"logger", "logging", "warnings", "print"}
SENTENCE = re.compile(r"\S+\s+\S+\s+\S")
ELSEWHERE = re.compile(r"(^|[/_])(rocm|amd|xpu|cpu|tpu|hpu|aiter|tests?|benchmarks?)([/_.]|$)")
OPERATORS = {"Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=",
             "Gt": ">", "GtE": ">=", "Is": "is", "IsNot": "is not", "In": "in", "NotIn": "not in", "USub": "-", "Not": "not "}


# ---- one text for an expression, the same by every Python ----

def listed(nodes):
    return ", ".join(map(said, nodes))


def operator(node):
    return OPERATORS.get(type(node).__name__, type(node).__name__)


def argued(arguments):
    """Those with a default: the others are what a caller hands on."""
    plain = arguments.posonlyargs + arguments.args
    pairs = list(zip(plain[len(plain) - len(arguments.defaults):], arguments.defaults)) + list(zip(arguments.kwonlyargs, arguments.kw_defaults))
    return ", ".join("%s=%s" % (one.arg, said(value)) for one, value in pairs if value)


def constant(node):
    value = node.value
    return "'...'" if isinstance(value, str) and SENTENCE.search(value) else "..." if value is Ellipsis else repr(value)


def folded(node):
    """`a and b` without what is always so on a GPU of CUDA."""
    neutral = isinstance(node.op, ast.And)
    kept = [said(part) for part in node.values if truth(part) is not neutral]
    return (" and " if neutral else " or ").join(kept) if kept else str(neutral)


def comprehension(node):
    inner = said(node.key) + ": " + said(node.value) if isinstance(node, ast.DictComp) else said(node.elt)
    return "[%s %s]" % (inner, " ".join("for %s in %s" % (said(one.target), said(one.iter)) + "".join(" if " + said(test) for test in one.ifs) for one in node.generators))


SAID = {
    ast.Name: lambda node: node.id,
    ast.Attribute: lambda node: "%s.%s" % (said(node.value), node.attr),
    ast.Constant: constant,
    ast.JoinedStr: lambda node: "'...'",
    ast.Call: lambda node: "%s(%s)" % (said(node.func), ", ".join([said(one) for one in node.args] + ["%s=%s" % (one.arg or "**", said(one.value)) for one in node.keywords])),
    ast.Subscript: lambda node: "%s[%s]" % (said(node.value), said(node.slice)),
    ast.Tuple: lambda node: "(%s)" % listed(node.elts),
    ast.List: lambda node: "[%s]" % listed(node.elts),
    ast.Set: lambda node: "{%s}" % listed(node.elts),
    ast.Dict: lambda node: "{%s}" % ", ".join("%s: %s" % (said(key) if key else "**", said(value)) for key, value in zip(node.keys, node.values)),
    ast.BinOp: lambda node: "(%s %s %s)" % (said(node.left), operator(node.op), said(node.right)),
    ast.UnaryOp: lambda node: operator(node.op) + said(node.operand),
    ast.BoolOp: lambda node: "(%s)" % folded(node),
    ast.Compare: lambda node: said(node.left) + "".join(" %s %s" % (operator(op), said(right)) for op, right in zip(node.ops, node.comparators)),
    ast.IfExp: lambda node: said(node.body if truth(node.test) else node.orelse) if truth(node.test) is not None else
    "%s if %s else %s" % (said(node.body), said(node.test), said(node.orelse)),
    ast.Lambda: lambda node: "lambda %s: %s" % (argued(node.args), said(node.body)),
    ast.Starred: lambda node: "*" + said(node.value),
    ast.Slice: lambda node: "%s:%s:%s" % tuple(said(part) if part else "" for part in (node.lower, node.upper, node.step)),
    ast.NamedExpr: lambda node: "%s := %s" % (said(node.target), said(node.value)),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), comprehension),
}


def said(node):
    tell = SAID.get(type(node))
    return tell(node) if tell else "%s(%s)" % (type(node).__name__, listed(ast.iter_child_nodes(node)))


def truth(test):
    """What a test of the platform is for CUDA; None: it is another test."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return None if truth(test.operand) is None else not truth(test.operand)
    if isinstance(test, ast.BoolOp):
        parts, neutral = [truth(part) for part in test.values], isinstance(test.op, ast.And)
        return (not neutral) if (not neutral) in parts else neutral if all(part is neutral for part in parts) else None
    if isinstance(test, ast.Call):
        name = test.func.attr if isinstance(test.func, ast.Attribute) else ""
        return OTHERS[name] if name in OTHERS else False if "aiter" in said(test.func) else None
    return False if isinstance(test, (ast.Name, ast.Attribute)) and "aiter" in said(test) else None


# ---- statements ----

class Statement:
    def __init__(self, text, nodes, targets, around):
        self.text, self.around = text, around
        self.reads = {name for node in nodes for name in names(node, ast.Load)}
        self.defines = {name for node in targets for name in names(node, ast.Store)}


def names(node, context):
    """Those it reads or writes, fields of self among them."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, context):
            yield part.id
        elif isinstance(part, ast.Attribute) and isinstance(part.ctx, context) and isinstance(part.value, ast.Name):
            yield part.value.id + "." + part.attr


def is_mute(node):
    """Docstrings, logging, and what is no statement here."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass, ast.Global, ast.Nonlocal)):
        return True
    if not isinstance(node, ast.Expr):
        return False
    call = node.value
    while isinstance(call, (ast.Call, ast.Attribute)):
        call = call.func if isinstance(call, ast.Call) else call.value
    return isinstance(node.value, ast.Constant) or (isinstance(node.value, ast.Call) and isinstance(call, ast.Name) and call.id in MUTE)


def simple(node):
    """(text, nodes that are read, nodes that are written)."""
    if isinstance(node, ast.Raise):
        return "raise " + (said(node.exc.func if isinstance(node.exc, ast.Call) else node.exc) if node.exc else ""), [], []
    if isinstance(node, ast.Assert):
        return "assert " + said(node.test), [node.test], []
    if isinstance(node, ast.Assign):
        return "%s = %s" % (" = ".join(map(said, node.targets)), said(node.value)), [node.value], node.targets
    if isinstance(node, ast.AnnAssign):
        return said(node.target) + (" = " + said(node.value) if node.value else ""), [node.value] if node.value else [], [node.target]
    if isinstance(node, ast.AugAssign):
        return "%s %s= %s" % (said(node.target), operator(node.op), said(node.value)), [node.value], [node.target]
    if isinstance(node, ast.Return):
        return "return " + (said(node.value) if node.value else ""), [node.value] if node.value else [], []
    if isinstance(node, ast.Expr):
        return said(node.value), [node.value], []
    return said(node), [node], []


def blocks(node):
    """(header, nodes it reads, nodes it writes, body) of each part of a statement that has a body."""
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return [("for %s in %s" % (said(node.target), said(node.iter)), [node.iter], [node.target], node.body), ("", [], [], node.orelse)]
    if isinstance(node, ast.While):
        return [("while " + said(node.test), [node.test], [], node.body)]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        items = [item.optional_vars for item in node.items if item.optional_vars]
        return [("with " + listed(item.context_expr for item in node.items), [item.context_expr for item in node.items], items, node.body)]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [("def %s(%s)" % (node.name, argued(node.args)), [], [], node.body)]
    if isinstance(node, ast.ClassDef):
        return [("class %s(%s)" % (node.name, listed(node.bases)), [], [], [part for part in node.body if not hasattr(part, "body")])]
    if hasattr(node, "handlers"):
        excepted = [("except " + (said(one.type) if one.type else ""), [], [], one.body) for one in node.handlers]
        return [("", [], [], node.body + node.orelse + node.finalbody)] + excepted
    if hasattr(node, "cases"):
        return [("case %s of %s" % (said(one.pattern), said(node.subject)), [node.subject], [], one.body) for one in node.cases]
    return None


def flat(body, around=()):
    """The statements of a body, each with the headers it stands under."""
    for node in body:
        if isinstance(node, ast.If):
            is_so = truth(node.test)
            test = said(node.test)
            if is_so is None:
                header = Statement("if " + test, [node.test], [], around)
                yield header
                yield from flat(node.body, around + (header,))
                yield from flat(node.orelse, around + (header, Statement("not " + test, [], [], ())) if node.orelse else ())
            else:
                yield from flat(node.body if is_so else node.orelse, around)
            continue
        for header, reads, writes, inner in blocks(node) or ():
            statement = Statement(header, reads, writes, around) if header else None
            if statement:
                yield statement
            yield from flat(inner, around + (statement,) if statement else around)
        entries = isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Dict) and node.value
        if entries and len(entries.keys) > 1:  # a table is as many statements as it has entries
            target = said(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            for key, value in zip(entries.keys, entries.values):
                yield Statement("%s[%s] = %s" % (target, said(key) if key else "**", said(value)), [value], [], around)
        elif blocks(node) is None and not is_mute(node):
            yield Statement(*simple(node), around)


def sliced(statements, anchor):
    """Sorted texts; none where the anchor hits nothing."""
    words = anchor.split("|") if anchor else [""]
    taken = [one for one in statements if any(word in one.text for word in words)]
    wanted = {name for one in taken for name in one.reads}
    if anchor:
        hit = {id(one) for one in taken}
        taken = [one for one in statements if id(one) in hit or one.defines & wanted] if taken else []
    texts = {one.text for one in taken} | {header.text for one in taken for header in one.around}
    return sorted(texts)


# ---- units ----

def module_level(body):
    """With what stands below `if` and `try`."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try)):
            for part in (node.body, node.orelse, getattr(node, "finalbody", []), *[one.body for one in getattr(node, "handlers", [])]):
                yield from module_level(part)


def is_called(node, name):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name == name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def unit_of(tree, name):
    """The nodes of that qualified name: a function, a class, a constant or a field."""
    body, found = list(module_level(tree.body)), []
    for part in name.split("."):
        found = [node for node in body if is_called(node, part)]
        body = [inner for node in found for inner in module_level(getattr(node, "body", []))]
    return found


class Package:
    """The source of an engine: files that are asked for, parsed once."""

    def __init__(self, folder, seconds=SECONDS):
        self.folder, self.trees, self.left_out, self.until = folder, {}, {}, time.monotonic() + seconds
        self.statements = {}

    def read(self, path):
        """Its bytes; None where it is not there, no file or too large."""
        whole = os.path.join(self.folder, path)
        try:
            if not os.path.isfile(whole) or ".." in path.split("/"):
                return None
            with open(whole, "rb") as file:
                text = file.read(FILE_BYTES + 1)
        except OSError as error:
            self.left_out[path] = type(error).__name__
            return None
        if len(text) > FILE_BYTES:
            self.left_out[path] = "larger than %d bytes" % FILE_BYTES
            return None
        return text

    def tree(self, path):
        if path not in self.trees:
            text = None if time.monotonic() > self.until else self.read(path)
            self.trees[path] = None
            if text is not None:
                try:
                    self.trees[path] = ast.parse(text)
                except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                    self.left_out[path] = type(error).__name__
        return self.trees[path]

    def texts(self, unit, anchor):
        """Of one unit; None where it is not there."""
        if unit not in self.statements:
            path, name = unit.split(":")
            tree = self.tree(path)
            nodes = unit_of(tree, name) if tree else []
            try:
                self.statements[unit] = list(flat(nodes)) if nodes else None
            except RecursionError as error:
                self.left_out[path] = type(error).__name__
                self.statements[unit] = None
        return None if self.statements[unit] is None else sliced(self.statements[unit], anchor)

    def files(self):
        for folder, folders, found in os.walk(self.folder):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(found):
                path = os.path.relpath(os.path.join(folder, name), self.folder)
                if name.endswith(".py") and not ELSEWHERE.search(path):
                    yield path


def mark(text):
    return hashlib.sha1(text.encode("utf-8", "replace")).hexdigest()[:8]


def fingerprint(texts):
    return mark("\n".join(texts))


def moved(package, lost, before):
    """Where units stand now that are not where they were: by name, and as much of their statements as makes it them. {unit: unit}"""
    found, wanted = {}, {}
    for unit in lost:
        wanted.setdefault(unit.split(":")[1].split(".")[-1], []).append(unit)
    if not wanted:
        return found
    pattern = re.compile(rb"^[ ]*(?:async )?(?:def|class) (%s)\b|^(%s)\b *[:=]" % ((b"|".join(re.escape(name).encode() for name in wanted),) * 2), re.M)
    best = {}
    for path in package.files():
        text = package.read(path) if time.monotonic() < package.until else None
        for name in {(hit[0] or hit[1]).decode() for hit in pattern.findall(text or b"")}:
            tree = package.tree(path)
            for there in all_called(tree, name) if tree else ():
                for unit in wanted[name]:
                    texts = package.texts(path + ":" + there, lost[unit]) or []
                    alike = len({mark(one) for one in texts} & before[unit]) / max(1, len(texts), len(before[unit]))
                    if alike >= max(MOVED_LEAST, best.get(unit, 0)):
                        best[unit], found[unit] = alike, path + ":" + there
    return found


def all_called(tree, name):
    for node in module_level(tree.body):
        if is_called(node, name):
            yield name
        if isinstance(node, ast.ClassDef):
            yield from (node.name + "." + name for inner in node.body if is_called(inner, name))


# ---- two releases ----

def slices(package, rules):
    """{rule: {unit: texts, or None where it is gone}}"""
    return {name: {unit: package.texts(unit, rule.get("anchor", "")) for unit in rule["units"]} for name, rule in rules.items()}


def shown(texts):
    return ["".join(part if " " <= part <= "~" else "?" for part in text)[:SHOWN] for text in texts[:2]]


def compared(package, rules, marks):
    """Beside `marks` of the base, {rule: {unit: marks of its statements}}: how many slices are the same, and of the others what changed."""
    same, doubt = 0, []
    now = slices(package, rules)
    lost = {unit: rules[name].get("anchor", "") for name, units in now.items() for unit, texts in units.items() if texts is None and marks.get(name, {}).get(unit)}
    before = {unit: set(marks[name][unit]) for name in now for unit in now[name] if unit in lost}
    places = moved(package, lost, before)
    for name, units in now.items():
        changed = None
        for unit, texts in units.items():
            if texts is None and unit in places:
                texts = package.texts(places[unit], rules[name].get("anchor", ""))
            was, seen = set(marks.get(name, {}).get(unit, ())), {mark(text): text for text in texts or ()}
            added, removed = [seen[one] for one in seen if one not in was], was - set(seen)
            if (added or removed) and not changed:
                changed = {"rule": name, "unit": places.get(unit, unit), "added": shown(added), "removed": len(removed)}
                if texts is None:
                    changed["gone"] = True
        if changed:
            doubt.append(changed)
        else:
            same += 1
    return {"same": same, "doubt": doubt}


def called(nodes):
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                yield part.func.attr if isinstance(part.func, ast.Attribute) else part.func.id if isinstance(part.func, ast.Name) else ""


def census(package, units):
    """Of the watched functions what they call, of their files the classes, and of other classes the methods of the same name."""
    callees, classes, methods = {}, {}, set()
    for unit in units:
        path, name = unit.split(":")
        tree = package.tree(path)
        if not tree:
            continue
        for callee in called(unit_of(tree, name)):
            callees.setdefault(callee, unit)
        classes.update({node.name: path for node in module_level(tree.body) if isinstance(node, ast.ClassDef)})
        if "." in name and not re.search(r"\.(__\w+__|forward|[A-Z_]+)$", name):
            methods.add(name.split(".")[-1])
    return callees, classes, overrides(package, methods), defined(package)


DEFINED = re.compile(rb"^(?:class (\w+)|(?:    )?(?:async )?def (\w+)\()", re.M)


def outline(package):
    """(path, class or "", function) of all files, by their lines."""
    for path in package.files():
        text = package.read(path) if time.monotonic() < package.until else None
        inside = ""
        for hit in DEFINED.finditer(text or b""):
            if hit[1]:
                inside = hit[1].decode()
            else:
                yield path, inside if hit[0].startswith(b" ") else "", hit[2].decode()


def overrides(package, methods):
    package.outlined = list(outline(package))
    return {"%s.%s" % (owner, name): path for path, owner, name in package.outlined if owner and name in methods}


def defined(package):
    return {name for _, _, name in package.outlined}


def census_marks(package, units):
    callees, classes, overridden, there = census(package, units)
    return {"callees": sorted(mark(name)[:6] for name in callees if name in there), "classes": sorted(mark(name)[:6] for name in classes),
            "overrides": sorted(mark(name)[:6] for name in overridden)}


def census_new(package, units, before):
    """What the base did not have, in three lists."""
    callees, classes, overridden, there = census(package, units)
    known = {name: set(before.get(name, ())) for name in ("callees", "classes", "overrides")}
    plain = re.compile(r"[A-Za-z_][\w.]{0,99}$")
    found = {"callees": [name for name in callees if name in there], "classes": list(classes), "overrides": list(overridden)}
    return {kind: sorted(name for name in names_ if mark(name)[:6] not in known[kind] and plain.match(name))[:LISTED] for kind, names_ in found.items()}


def cut(marks, length):
    return [marks[at:at + length] for at in range(0, len(marks), length)]


def learned(folder, rules, base):
    """(rules, census) for `oomsight learn`: what of the rules is the same in the package at `folder` as in the base, and what is new there."""
    package, start = Package(folder), base["start"]
    marks = {name: dict(zip(rules[name]["units"], (cut(one, 8) for one in units))) for name, units in base["statements"].items() if name in rules}
    told = compared(package, {name: rules[name] for name in marks}, marks)
    allocating = compared(package, {"start": start}, {"start": dict(zip(start["units"], (cut(one, 8) for one in start["statements"])))})["doubt"]
    if allocating:
        told["start"] = {key: allocating[0][key] for key in ("unit", "added", "removed")}
    units = sorted({unit for rule in rules.values() for unit in rule["units"]})
    found = census_new(package, units, {kind: cut(names_, 6) for kind, names_ in base["census"].items()})
    if package.left_out:
        told["left_out"] = dict(sorted(package.left_out.items())[:5])
    if time.monotonic() > package.until:
        raise TimeoutError("the source was not read within %d seconds" % SECONDS)
    return told, found
