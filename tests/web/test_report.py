#!/usr/bin/env python3
"""The HTML reports in a real browser: test_report.py BINARY. Exit 77 where no browser is installed.

Every page at two widths, light and dark: its script runs to the end, it asks the network for nothing, the rules of rules.js
hold, it can be used from the keyboard, it shows the figures of the JSON, and it says the same without scripts.
Standard library only."""
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

import presses
from browser import Browser

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "fixtures")
RULES = open(os.path.join(HERE, "rules.js"), encoding="utf-8").read()
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
MODEL = lambda name: ["--", "vllm", "serve", os.path.join(FIXTURES, "models", name)]
LOG = lambda record: os.path.join(FIXTURES, "kb", record, "positive.log")
ENGLISH = r"""(() => { const left = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) { const e = walk.currentNode.parentElement;
    if (e.closest('header span, code, pre, script, style, noscript, .mono')) continue;
    if (/(^|[^\w\/.'-])[a-z]{2,} [a-z]{2,}/.test(walk.currentNode.data)) left.push(walk.currentNode.data); }
  for (const e of document.querySelectorAll('[title], [aria-label]')) for (const a of ['title', 'aria-label'])
    if (e.hasAttribute(a) && !e.closest('.fixes') && /(^|[^\w\/.'-])[a-z]{2,} [a-z]{2,}/.test(e.getAttribute(a))) left.push(e.getAttribute(a));
  return left; })()"""
PAGES = {
    "starts": ["plan", "--gpu", "4090", "--vllm", "0.32.0"] + MODEL("small-llama"),
    "fails": ["plan", "--gpu", "4090", "--vllm", "0.19.1"] + MODEL("small-hybrid") + [
        "--language-model-only", "--kv-cache-dtype", "fp8", "--speculative-config", '{"method": "mtp", "num_speculative_tokens": 2}'],
    "refused": ["plan", "--gpu", "l4", "--vllm", "0.11.0"] + MODEL("small-moe") + ["--quantization", "fp8"],
    "versions": ["plan", "--gpu", "4090", "--vllm", "0.19.1", "--vllm", "0.32.0"] + MODEL("small-llama"),
    "log": ["explain", LOG("vllm/cudagraph-profile-trial-cache")],
    "logs": ["explain", LOG("vllm/context-too-long"), LOG("vllm/weights-exceed-gpu"), LOG("host/oom-killer")],
    "check": ["check", "--offline", "--models", os.path.join(FIXTURES, "models"), "--gpu", "4090", "--vllm", "0.32.0", os.path.join(FIXTURES, "deploy")],
    "choices": ["plan", "--offline", "--vllm", "0.19.1", "--gpu", "all"] + MODEL("small-moe"),
    "replay": ["replay", os.path.join(FIXTURES, "traces", "stranded.trace")],
    "matrix": ["matrix", "--offline", "--models", os.path.join(FIXTURES, "models"), os.path.join(FIXTURES, "matrix", "fleet.yaml")],
    "matrix-diff": ["matrix", "--offline", "--models", os.path.join(FIXTURES, "models"), "--diff", "0.10.2", "0.32.0", "--moved", "1",
                    os.path.join(FIXTURES, "matrix", "fleet.yaml")],
}
TABLES = ("check", "choices")  # pages without a script


class Report:
    def __init__(self, binary, work):
        self.binary, self.work, self.browser, self.failed, self.passed = binary, work, Browser(), 0, 0

    def claim(self, sentence, holds, seen=""):
        if not holds:
            print("FAIL %s   (seen: %s)" % (sentence, seen))
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)

    def make(self, name, words):
        path = os.path.join(self.work, name + ".html")
        run = subprocess.run([self.binary, words[0], "--format", "html", "--output", path] + words[1:], capture_output=True, text=True)
        self.claim("%s: a page is written" % name, run.returncode in (0, 1, 3) and not run.stdout, run.stderr or run.stdout[:80])
        return path

    def look(self, name, path):
        self.claim("%s: under 300 KB" % name, os.path.getsize(path) < 300 << 10, os.path.getsize(path))
        static = name.split()[0] in TABLES
        with open(path, encoding="utf-8") as f: page = f.read()
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1)
        hashes = {base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in re.findall("<(?:script|style)>(.*?)</(?:script|style)>", page, re.DOTALL)}
        self.claim("%s: its policy allows its own script and style by their hash, and nothing else" % name, "unsafe" not in policy and
                   policy.startswith("default-src 'none'; ") and hashes and hashes <= set(re.findall("sha256-([^']*)", policy)), (policy, hashes))
        for width in (1400, 800, 320) if static else (1200, 390):
            for dark in (False, True):
                where = "%s at %d%s" % (name, width, " dark" if dark else "")
                asked = self.browser.open(path, width, dark=dark)
                self.claim("%s: asks the network for nothing" % where, asked == [], asked)
                if static:
                    self.claim("%s: it is as wide as the screen" % where, self.browser.run("document.documentElement.scrollWidth") <= width)
                else:
                    self.claim("%s: its script runs to the end" % where, self.browser.run("document.documentElement.dataset.ready") == "1")
                broken = self.browser.run(RULES)
                self.claim("%s: the rules hold" % where, broken == [], broken)
                text = self.browser.run("document.body.innerText")
                self.claim("%s: no object is printed as such" % where, "[object" not in text and "undefined" not in text and "NaN" not in text)
                if not dark and not static:
                    pressed, wrong = presses.walk(self.browser, ["body"], 40)
                    self.claim("%s: each press is a click where it was pressed" % where, pressed and not wrong, wrong[:1])

    def figures(self, name, words):
        run = subprocess.run([self.binary, words[0], "--json"] + words[1:], capture_output=True, text=True)
        plan = json.loads(run.stdout)
        text = self.browser.run("document.getElementById('answer').textContent")
        for phase in plan["phases"]:
            shown = "%.2f / %.2f" % (phase["peak_bytes"] / 2**30, phase["limit_bytes"] / 2**30)
            self.claim("%s: %s shows the figures of the JSON" % (name, phase["phase"]), shown in text, shown)
        for fix in plan["fixes"]:
            self.claim("%s: the fix %s is there" % (name, fix["change"]), fix["change"][0] in text)
        dies = self.browser.run("[...document.querySelectorAll('.dies.bad')].map(e => e.closest('button').dataset.phase)")
        self.claim("%s: the mark is on the phase that fails" % name, dies == ([plan["phase"]] if plan["verdict"] in ("fails", "refused") else []), dies)

    def keyboard(self, path):
        b = self.browser
        b.open(path, 1200)
        focus = lambda: b.run("(document.activeElement.textContent || '').trim().slice(0, 30)")
        seen, marked = [], []
        for _ in range(8):
            b.press("Tab", 9)
            seen.append(focus())
            marked.append(b.run("getComputedStyle(document.activeElement).outlineStyle !== 'none' && document.activeElement !== document.body"))
        self.claim("the first stop skips to the answer", seen[0].startswith("Skip"), seen)
        behind = [word for word in seen[2:] if word != "Copy"]
        self.claim("then the theme, what helps, then the phases from the top", seen[1] == "Dark" and seen[2] == "Copy" and behind[0].startswith("free-memory check"), seen)
        self.claim("each stop is marked", all(marked), list(zip(seen, marked)))
        chosen = "document.querySelector('[aria-pressed=true] .name').textContent"
        b.press("Enter", 13)
        first = b.run(chosen)
        self.claim("Enter chooses the phase that has the focus", seen[-1].startswith(first), (seen[-1], first))
        b.press("Home", 36)
        b.press("ArrowDown", 40)
        second = b.run(chosen)
        words = b.run("[...document.querySelectorAll('.phases .name')].map(e => e.textContent)")
        self.claim("phases are named in words", words and not any("_" in word for word in words), words)
        self.claim("arrows move between phases and show the ledger", second == b.run("document.querySelectorAll('.phases .name')[1].textContent") and
                   second in b.run("document.querySelector('h3').textContent"), second)
        order = b.run("""[...document.querySelectorAll('a, button, summary, [tabindex="0"]')].map(e => e.getBoundingClientRect().top + scrollY)""")
        self.claim("the order of focus goes down the page", all(x <= y + 40 for x, y in zip(order[1:], order[2:])), order)
        b.run("document.getElementById('theme').click()")
        self.claim("the theme can be chosen", b.run("document.documentElement.dataset.theme") == "dark" and b.run(RULES) == [], b.run(RULES))

    def without_scripts(self, path):
        self.browser.open(path, 1200, scripts=False)
        text = subprocess.run([self.binary] + PAGES["fails"][:1] + ["--verbose"] + PAGES["fails"][1:], capture_output=True, text=True, env=dict(os.environ, NO_COLOR="1")).stdout
        page = open(path, encoding="utf-8").read()
        plain = page.split("<noscript><pre>")[1].split("</pre>")[0].replace("&lt;", "<").replace("&amp;", "&")
        self.claim("without scripts the page is the text report", plain == text, plain[:80])

    def canvases(self, path):
        """What is drawn has a name and words beside it; the point in time is chosen by keys; no table is empty."""
        b = self.browser
        b.open(path, 1200)
        drawn = b.run("[...document.querySelectorAll('canvas')].map(c => [c.getAttribute('role'), c.getAttribute('aria-label') || document.getElementById(c.getAttribute('aria-labelledby')).textContent])")
        self.claim("each of the three drawings has a name", len(drawn) == 3 and all(role == "img" and len(name) > 30 for role, name in drawn), drawn)
        b.run("document.getElementById('moment').focus()")
        before = b.run("document.getElementById('when').textContent")
        b.press("Home", 36)
        b.press("ArrowRight", 39)
        self.claim("the arrows choose a point in time", b.run("document.getElementById('when').textContent") != before, before)
        empty = b.run("[...document.querySelectorAll('table')].filter(t => !t.querySelector('td')).map(t => [t.offsetHeight, t.parentElement.previousElementSibling.checkVisibility()])")
        self.claim("a table without rows is not shown, nor its heading", empty == [[0, False]], empty)
        self.claim("no size is 1,024 of a unit", b.run("[2 ** 20 - 1, 2 ** 30 - 1, 2 ** 30, 1536].map(size)") == ["1.00 MiB", "1.00 GiB", "1.00 GiB", "1.50 KiB"])

    def narrow_table(self, name, path):
        self.browser.open(path, 320)
        self.browser.run("document.querySelector('.phases button').click()")
        cut = self.browser.run("(t => [t.scrollWidth, t.clientWidth])(document.querySelector('.scroll'))")
        self.claim("%s: no column of the memory breakdown is cut at 320 px" % name, cut[0] <= cut[1], cut)

    def narrow_matrix(self):
        """On a phone two models of one family are told apart, and the heading is not the colour of a failure."""
        path = os.path.join(self.work, "family.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write("models: [Qwen/Qwen3-8B, Qwen/Qwen3-32B]\ngpus: [4090, h100]\nversions: ['0.32.0']\n")
        self.browser.open(self.make("family", ["matrix", "--offline", path]), 390)
        rows = self.browser.run("[...document.querySelectorAll('.map th[scope=row]')].map(e => [e.innerText.trim(), e.scrollWidth <= e.clientWidth + 1])")
        self.claim("their names are whole at 390 px", sorted(row[0].split("/")[-1] for row in rows) == ["Qwen3-32B", "Qwen3-8B"] and all(row[1] for row in rows), rows)
        colours = self.browser.run("['h1', 'body'].map(s => getComputedStyle(document.querySelector(s)).color)")
        self.claim("the heading is not a failure as a whole", colours[0] == colours[1], colours)

    def chinese(self, name, words):
        """The same page with --lang zh: no sentence of English is left outside code and quotations, now and after a click."""
        path = self.make(name + "-zh", words[:1] + ["--lang", "zh"] + words[1:])
        self.look(name + " in Chinese", path)
        self.browser.open(path, 1200)
        left = self.browser.run(ENGLISH)
        self.claim("%s in Chinese: no English is left" % name, left == [], left)
        self.claim("%s in Chinese: says its language" % name, self.browser.run("document.documentElement.lang") == "zh-CN")
        self.browser.run("const b = document.querySelectorAll('.phases button')[1]; if (b) b.click()")
        self.claim("%s in Chinese: nor after a choice" % name, self.browser.run("new Promise(done => setTimeout(() => done(%s), 50))" % ENGLISH.strip()) == [])
        english = os.path.join(self.work, name + ".html")
        numbers = "(document.body.innerText.match(/\\d+\\.\\d+/g) || []).join(' ')"
        self.browser.open(path, 1200)
        ours = self.browser.run(numbers)
        self.browser.open(english, 1200)
        self.claim("%s in Chinese: the same figures" % name, sorted(ours.split()) == sorted(self.browser.run(numbers).split()))

    def table(self, name, path, words):
        """A page that is one table: nothing that a policy would refuse, and the answers of the JSON, in its order or the worst first."""
        with open(path, encoding="utf-8") as f:
            page = f.read()
        style = base64.b64encode(hashlib.sha256(re.search("<style>(.*?)</style>", page, re.DOTALL).group(1).encode()).digest()).decode()
        self.claim("%s: the policy allows its style and nothing else" % name,
                   "content=\"default-src 'none'; style-src 'sha256-%s'\"" % style in page and " style=" not in page and "<script" not in page)
        answer = json.loads(subprocess.run([self.binary, words[0], "--json"] + words[1:], capture_output=True, text=True).stdout)
        self.browser.open(path, 1400)
        rows = self.browser.run("[...document.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.innerText))")
        self.claim("%s: one headline" % name, self.browser.run("document.querySelectorAll('h1').length") == 1)
        if name == "choices":
            self.browser.open(self.make("wide", ["plan", "--offline", "--gpu", "all", "--", "vllm", "serve", "Qwen/Qwen3-0.6B"]), 320)
            high = self.browser.run("document.documentElement.scrollHeight")
            self.claim("choices: a small model, which most GPUs hold, is below 3,000 px at 320 px", high < 3000, high)
            shut = self.browser.run("[...document.querySelectorAll('details')].filter(d => !d.open).length")
            self.claim("... what is more is folded, and opens without a script", shut > 1 and self.browser.run(
                "(d => (d.open = true, document.documentElement.scrollHeight))([...document.querySelectorAll('main > details')][0])") > high, shut)
            self.browser.open(path, 1400)
            self.browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; d.querySelector('summary').textContent = '' })")
            rows = self.browser.run("[...document.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.innerText.replace(/\\n+/g, ', ')))")
            seen = sum(len(re.split(", (?!000)", cells[2])) for cells in rows)
            self.claim("%s: every GPU of the JSON is there" % name, len({c["gpu"] + str(c["count"]) for c in answer["choices"]}) == seen, seen)
            return
        order = {"error": 0, "warning": 1, "note": 2, "ok": 3}
        told = sorted(answer["commands"] + answer["not_looked_at"], key=lambda c: order[c["level"]])
        self.claim("%s: the worst first" % name, [order[c["level"]] for c in told] == self.browser.run(
            "[...document.querySelectorAll('.pill')].map(e => ['bad', 'warn', 'none', 'good'].indexOf(e.className.split(' ')[1]))"), rows)
        self.claim("%s: each command stands there" % name, sorted(" ".join(c["command"]) for c in answer["commands"]) == sorted(
            self.browser.run("[...document.querySelectorAll('.where code')].map(e => e.textContent)")))

    def heat_map(self, name, path, words):
        """Each cell shows what the line of its point says; arrows go from cell to cell; a version is chosen by its button."""
        run = subprocess.run([self.binary, words[0], "--json"] + words[1:], capture_output=True, text=True)
        points = [json.loads(line) for line in run.stdout.splitlines()]
        self.browser.open(path, 1200)
        for version in sorted({p["version"] for p in points}):
            self.browser.run("[...document.querySelectorAll('.tabs button')].find(b => b.textContent.endsWith(%s)).click()" % json.dumps(version))
            titles = self.browser.run("[...document.querySelectorAll('.map td[title]')].map(e => e.title)")
            word = lambda p: "probably " + p["likely"] if p["verdict"] == "tight" else p["verdict"]
            tokens = sorted(word(p) if p["kv"]["tokens"] is None else "%s, %s KV tokens" % (word(p), format(p["kv"]["tokens"], ","))
                            for p in points if p["version"] == version)
            self.claim("%s: the cells of %s are its points" % (name, version), sorted(re.sub(r" in \w+", "", t) for t in titles) == tokens,
                       (titles, tokens))
        self.browser.run("document.querySelector('.map td[tabindex=\"0\"]').focus()")
        before = self.browser.run("document.activeElement.cellIndex")
        self.browser.press("ArrowRight", 39)
        self.browser.press("ArrowDown", 40)
        self.browser.press("ArrowRight", 39)
        self.claim("%s: arrows go from cell to cell" % name, self.browser.run("document.activeElement.tagName + document.activeElement.getAttribute('aria-selected')") == "TDtrue",
                   before)

    def likely_matrix(self):
        """A point inside the error bar is counted as what it likely does, in the cards as in the headline."""
        path = os.path.join(self.work, "likely.yaml")
        for used, wanted in (("1.65GiB", "points1will start1of them probably1"), ("1.74GiB", "points1will start0will probably not start1")):
            with open(path, "w", encoding="utf-8") as out:
                out.write("models: [small-llama]\ngpus: [{gpu: L4, total: 22GiB, used: %s}]\nversions: ['0.10.2']\n" % used)
            self.browser.open(self.make("likely-matrix", ["matrix", "--offline", "--models", os.path.join(FIXTURES, "models"), path]), 1200)
            seen = self.browser.run("[...document.querySelectorAll('.cards li')].map(li => li.textContent).join('')")
            self.claim("the cards count a tight point as the headline does", seen == wanted, seen)

    def matrix_of_two(self):
        """Each release is named with its engine."""
        path = os.path.join(self.work, "two.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write("models: [small-llama]\ngpus: [L4]\nversions: ['0.32.0', sglang=0.5.23]\n")
        self.browser.open(self.make("matrix-of-two", ["matrix", "--offline", "--models", os.path.join(FIXTURES, "models"), path]), 1200)
        seen = self.browser.run("[...document.querySelectorAll('button')].map(b => b.textContent).filter(t => / 0\\./.test(t)).join(', ')")
        self.claim("tabs say which engine a release is of", seen == "vLLM 0.32.0, SGLang 0.5.23", seen)

    def hostile_matrix(self):
        path = os.path.join(self.work, "hostile.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write("models: [{model: small-llama, name: %s}]\ngpus: [4090]\nflags: [{name: %s, flags: ''}]\n" % (json.dumps(HOSTILE), json.dumps(HOSTILE)))
        page = self.make("hostile-matrix", ["matrix", "--offline", "--models", os.path.join(FIXTURES, "models"), path])
        self.browser.open(page, 1200)
        self.claim("a matrix file cannot put script into the page", not self.browser.run("document.title").startswith("taken") and
                   self.browser.run("document.images.length") == 0, self.browser.run("document.title"))

    def hostile_check(self):
        path = os.path.join(self.work, "hostile.sh")
        with open(path, "w", encoding="utf-8") as out:
            out.write("vllm serve '%s'\n" % HOSTILE.replace("'", ""))
        self.browser.open(self.make("hostile-check", ["check", "--offline", "--gpu", "4090", path]), 1200)
        self.claim("a command cannot put elements into the page", self.browser.run("document.images.length + document.scripts.length") == 0 and
                   "<img" in self.browser.run("document.body.innerText"), self.browser.run("document.body.innerText"))

    def hostile(self):
        log = os.path.join(self.work, "hostile.log")
        with open(LOG("vllm/weights-exceed-gpu"), encoding="utf-8") as f, open(log, "w", encoding="utf-8") as out:
            out.write(f.read().replace("torch.OutOfMemoryError:", HOSTILE + " torch.OutOfMemoryError:"))
        path = self.make("hostile", ["explain", log])
        self.browser.open(path, 1200)
        self.claim("a log cannot put script into the page", self.browser.run("document.title") != "taken" and
                   self.browser.run("document.images.length") == 0, self.browser.run("document.title"))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not Browser.find():
        print("no browser is installed")
        return 77
    with tempfile.TemporaryDirectory() as work:
        report = Report(os.path.abspath(sys.argv[1]), work)
        for name, words in PAGES.items():
            path = report.make(name, words)
            report.look(name, path)
            if name in ("starts", "fails", "refused"):
                report.figures(name, words)
                report.narrow_table(name, path)
            if name in TABLES:
                report.table(name, path, words)
            if name in ("starts", "fails", "log", "logs", "matrix", "matrix-diff") + TABLES:
                report.chinese(name, words)
            if name == "fails":
                report.keyboard(path)
                report.without_scripts(path)
            if name == "replay":
                report.canvases(path)
            if name == "matrix":
                report.heat_map(name, path, words)
        report.hostile()
        report.hostile_check()
        report.hostile_matrix()
        report.likely_matrix()
        report.matrix_of_two()
        report.narrow_matrix()
        report.browser.close()
    print("pages: %d claims hold, %d do not" % (report.passed, report.failed))
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
