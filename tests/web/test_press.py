#!/usr/bin/env python3
"""The page that needs no install under a real mouse: test_press.py BINARY. Exit 77 where no browser is installed.

The page is web/app as it stands. BINARY, built for this machine, answers in the place of the WebAssembly program, behind a worker of a few
lines: so this needs no other compiler. Standard library only."""
import functools
import glob
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import presses
from browser import Browser

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RULES = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "rules.js"), encoding="utf-8").read()
POD = "kind: Pod\nspec: {containers: [{name: %s, image: 'vllm/vllm-openai:v0.19.1', args: [--model, %s], resources: {limits: {nvidia.com/gpu: 1}}}]}\n"
WORKER = """self.onmessage = async ({ data: { id, args, files, environment } }) => {
  const listed = [];
  for (const [path, file] of files) listed.push([path, typeof file === 'string' ? file : await file.text()]);
  const answer = await fetch('run', { method: 'POST', body: JSON.stringify({ args, files: listed, environment }) });
  self.postMessage({ id, ms: 1, ...await answer.json() });
};"""


class Native(http.server.SimpleHTTPRequestHandler):
    binary = None

    def log_message(self, *words):
        pass

    def give(self, kind, content):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        name = self.path.split("?")[0]
        if name == "/worker.js":
            return self.give("text/javascript", WORKER.encode())
        if name == "/oomsight.wasm":
            return self.give("application/wasm", b"\0asm\1\0\0\0")  # the smallest program
        if name == "/sw.js":
            return self.send_error(404)
        if name == "/models.json":
            with open(os.path.join(ROOT, "data", "catalogue.json"), encoding="utf-8") as f:
                return self.give("application/json", json.dumps(sorted(json.load(f))).encode())
        return super().do_GET()

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with tempfile.TemporaryDirectory() as work:
            files = dict(asked["files"])
            text = files.pop("-", "")
            for path, content in files.items():
                place = os.path.join(work, path)
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "w", encoding="utf-8") as f:
                    f.write(content)
            env = {"PATH": os.environ["PATH"], **(asked["environment"] or {}), "HF_HUB_CACHE": os.path.join(work, "hf")}
            run = subprocess.run([self.binary, *asked["args"]], input=text, capture_output=True, text=True, cwd=work, env=env, check=False)
        self.give("application/json", json.dumps({"code": run.returncode, "out": run.stdout, "err": run.stderr}).encode())


class Test:
    def __init__(self, binary, browser=None):
        Native.binary = os.path.abspath(binary)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Native, directory=os.path.join(ROOT, "web", "app")))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.address = "http://127.0.0.1:%d/" % server.server_address[1]
        self.browser, self.passed, self.failed, self.told = browser or Browser(), 0, 0, 0

    def claim(self, sentence, holds, seen=""):
        if not holds:
            print("FAIL %s   (seen: %s)" % (sentence, str(seen)[:900]))
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)

    def wait(self, condition):
        end = time.time() + 120
        while time.time() < end and not self.browser.run(condition):
            time.sleep(0.02)

    def settled(self):
        self.wait("$('wait').hidden && !waiting.size && ($('answer').hidden || told !== null)")
        self.browser.run("document.fonts.ready.then(() => 0)")

    def laid_out(self):
        """The height of the frame once it is the one that its page has now; before that both may be any."""
        end = time.time() + 120
        while time.time() < end:
            page = self.browser.in_frame("document.readyState === 'complete' && Math.ceil(document.body.getBoundingClientRect().bottom + 8)")
            shown = self.browser.run("parseInt($('report').style.height)")
            if page and page == shown:
                self.browser.painted()
                return shown
            time.sleep(0.02)
        return self.claim("the frame is as high as its page", False, (page, shown))

    def answered(self, width, text="vllm serve Qwen/Qwen3-4B", gpu="4090", dark=False):
        """A page with an answer, asked for from the keyboard."""
        self.browser.visit("about:blank", width)
        self.browser.visit(self.address, width, dark=dark)
        self.wait("document.documentElement.dataset.ready === '1'")
        self.browser.run("$('gpu').value = %s; $('input').focus(); 0" % json.dumps(gpu))
        self.type(text)
        self.browser.run("$('gpu').focus(); 0")
        self.browser.press("Enter", 13)
        self.settled()
        self.claim("a plan is shown at %d" % width, not self.browser.run("$('answer').hidden"), self.browser.run("document.body.innerText"))

    def type(self, text, into="input"):
        self.browser.run("$(%s).focus(); $(%s).select(); 0" % (json.dumps(into), json.dumps(into)))
        self.browser.call("Input.insertText", text=text)

    def press(self, element):
        self.browser.run("%s.scrollIntoView({ block: 'center', behavior: 'instant' }); 0" % element)
        x, y = self.browser.run("(() => { const r = %s.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()" % element)
        self.browser.mouse("mousePressed", x, y)
        self.browser.mouse("mouseReleased", x, y)
        self.settled()

    def every_control(self, width):
        """A command with a suggestion, and a file with two commands: as answered, and after somebody has typed."""
        with open(os.path.join(ROOT, "tests", "fixtures", "deploy", "compose.yaml"), encoding="utf-8") as f:
            several = f.read().replace("acme/small-llama", "Qwen/Qwen3-8B")
        for text, own in (("vllm serve Qwen/Qwen3-8B", "#bestCopy"), (several, "#choices button")):
            self.answered(width, text)
            self.claim("%s is shown at %d" % (own, width), self.browser.run("document.querySelector(%s).checkVisibility()" % json.dumps(own)))
            for edited in (False, True):
                if edited:
                    self.type("vllm serve Qwen/Qwen3-4B")
                pressed, wrong = presses.walk(self.browser, ["#input", "#gpu", "#verdict"])
                self.claim("each of %d presses at %d is a click where it was pressed%s" % (pressed, width, ", after an edit" if edited else ""), pressed > 20 and not wrong,
                           "%d wrong, the first: %s" % (len(wrong), wrong[:1]))

    def several(self, width):
        """Three services: the worst is the headline, each has a row, and one without an answer leaves the others in reach."""
        services = {"chat": "Qwen/Qwen3-4B", "big": "Qwen/Qwen3-14B", "embed": "acme/nobody"}
        self.answered(width, "---\n".join(POD % one for one in services.items()))
        look = "[$('verdict').textContent, $('verdict').className, [...document.querySelectorAll('#choices tbody tr')].map(r => r.innerText), $('one').textContent, pressed(), $('choices').checkVisibility()]"
        verdict, colour, rows, one, at, _ = self.browser.run(look)
        self.claim("the headline at %d is the worst of three" % width, verdict.startswith("1 of 3 will not start: big.") and colour == "bad", (verdict, colour))
        self.claim("each has a row with its verdict", [name in row and word in row for row, name, word in zip(rows, services, ("will start", "will not start", "cannot be planned"))] == [True] * 3, rows)
        self.claim("and the worst is shown", at == 1 and one.startswith("big: Will not start") and "Qwen3-14B" in self.browser.run("$('report').srcdoc"), (at, one))
        self.claim("the rules hold with a table at %d" % width, self.browser.run(RULES) == [], self.browser.run(RULES))
        command = self.browser.run("$('bestCommand').textContent")
        self.claim("what is suggested is a command", command.startswith("docker run "), command)
        for number, word in ((2, "cannot be planned"), (0, "Will start"), (1, "Will not start")):
            self.press("document.querySelectorAll('#choices button')[%d]" % number)
            now = self.browser.run(look)
            self.claim("row %d is shown by a press at %d, and the headline stays" % (number, width), now[0] == verdict and word in now[3] and now[4] == number and now[5], now)
            self.claim("its report is, or none", ("<html" in self.browser.run("$('report').hidden ? '' : $('report').srcdoc")) == (number != 2), number)
        self.type("L4", "gpu")
        self.press("document.querySelectorAll('#choices button')[0]")
        self.claim("rows are of the GPU that is asked for now", "NVIDIA L4" in "".join(self.browser.run(look)[2]), self.browser.run(look)[2])
        self.browser.run("$('version').value = 'vllm=0.11.0'; 0")
        self.press("document.querySelector('.go')")
        self.claim("and of the release", "0.11.0" in self.browser.run(look)[2][0], self.browser.run(look)[2])
        where = self.browser.run("location.hash")
        self.claim("the link has the one that is shown", "n=1" in where, where)

    def manifests(self):
        """Each file of the fixtures: the worst level that the command gives is the colour of the headline, and there are as many rows."""
        for path in sorted(glob.glob(os.path.join(ROOT, "tests", "fixtures", "deploy*", "*"))):
            if not os.path.isfile(path):
                continue
            with open(path, encoding="utf-8") as f:
                text = re.sub(r"acme/small-[a-z]+", "Qwen/Qwen3-8B", f.read())
            check = lambda *gpu: json.loads(subprocess.run([Native.binary, "check", "--json", "--offline", *gpu, "-"], input=text, capture_output=True, text=True, check=False).stdout)["commands"]
            gpu = "" if all("--gpu" in (c["plan"] or ["--gpu"]) for c in check()) else "h100"  # one in the box goes before those of the file
            commands = check("--gpu", gpu) if gpu else check()
            if len(commands) < 2:
                continue
            self.browser.run("(() => { hold(null); $('input').value = %s; $('gpu').value = %s; $('ask').requestSubmit(); })()" % (json.dumps(text), json.dumps(gpu)))
            self.settled()
            worst = next(level for level in ("error", "note", "warning", "ok") if level in [c["level"] for c in commands])
            seen = self.browser.run("[$('verdict').className, document.querySelectorAll('#choices tbody tr').length]")
            self.claim("%s: headline and rows are those of check" % os.path.basename(path), seen == [{"error": "bad", "note": "warn", "warning": "warn", "ok": "good"}[worst], len(commands)], (seen, worst, len(commands)))
            self.told += 1

    def the_button(self, width):
        self.answered(width)
        self.type("vllm serve Qwen/Qwen3-8B")
        self.press("document.querySelector('.go')")
        shown = self.browser.run("$('report').srcdoc")
        self.claim("a second command is answered by the mouse at %d" % width, "Qwen3-8B" in shown and "Qwen3-4B" not in shown, self.browser.run("$('verdict').textContent"))
        self.claim("and is not out of date", self.browser.run("$('stale').hidden"))

    def short(self):
        """On a phone: the verdict and the suggestion stand above the frame and not in it again, then the bars, and all of it is short. GPU `all` has a page."""
        for text in ("vllm serve Qwen/Qwen3-4B", "vllm serve Qwen/Qwen3-8B", "vllm serve Qwen/Qwen3-32B"):
            self.answered(320, text)
            self.laid_out()
            height = self.browser.run("document.documentElement.scrollHeight")
            self.claim("%s is at most 3,000 px at 320" % text, height <= 3000, height)
            hidden = self.browser.run("/<style[^>]*>#theme, h1, h1 [+] p:not[(][.]dim[)], [.]first, .*[.]told { display: none }/.test($('report').srcdoc)")
            self.claim("what stands above the frame is not in it again", hidden)
        self.answered(800, "vllm serve Qwen/Qwen3-8B", "all")
        self.claim("GPU all is a table", "known GPUs are enough" in self.browser.run("$('verdict').textContent") and "<table" in self.browser.run("$('report').srcdoc"), self.browser.run("$('verdict').textContent"))

    def small_things(self):
        """Title, name of the saved file, the frame around a report, a page without scripts."""
        seen = []
        for text in ("vllm serve Qwen/Qwen3-4B", "vllm serve Qwen/Qwen3-32B"):
            self.answered(1200, text)
            self.laid_out()
            seen.append(self.browser.run("[document.title, $('save').download, $('report').getAttribute('allow'), /<style[^>]*>#theme, /.test($('report').srcdoc)]"))
        self.claim("title and file are those of the verdict", [one[0] for one in seen] == ["Will start - oomsight", "Will not start: out of memory while loading weights - oomsight"]
                   and [one[1] for one in seen] == ["oomsight-will-start.html", "oomsight-will-not-start-out-of-memory-while-loading-weights.html"], seen)
        self.claim("the report may copy, and has no second button for colours", all(one[2:] == ["clipboard-write", True] for one in seen), seen)
        heights = []
        for text in ("hello world, nothing failed\nINFO 11-15 10:00:00 [core.py:1] Application startup complete.\n", "vllm serve Qwen/Qwen3-4B"):
            self.browser.run("(() => { hold(null); $('input').value = %s; $('ask').requestSubmit(); })()" % json.dumps(text))
            self.settled()
            heights.append(self.laid_out())
        self.claim("a short report is in a short frame", None not in heights and heights[0] < 902 < heights[1], heights)
        run = subprocess.run([Native.binary, "redact", "-"], input="password=Tr0ub4dor&3", capture_output=True, text=True, check=False)
        self.claim("a password is hidden whole", run.stdout.strip() == "password=***", run.stdout)
        self.browser.visit("about:blank", 1200)
        self.browser.visit(self.address, 1200, scripts=False)
        text = self.browser.run("document.querySelector('noscript').innerText + document.querySelector('noscript').textContent")
        self.claim("without scripts it names the commands", "oomsight plan" in text and "JavaScript" in text, text)
        self.browser.visit("about:blank", 1200)

    def out_of_date(self):
        self.answered(1200)
        shown = "[!$('stale').hidden && $('stale').checkVisibility(), $('stale').textContent]"
        self.claim("an answer is not out of date", not self.browser.run(shown)[0])
        for box, other, before in (("input", "vllm serve Qwen/Qwen3-8B", "vllm serve Qwen/Qwen3-4B"), ("gpu", "L4", "4090")):
            self.type(other, box)
            seen, words = self.browser.run(shown)
            self.claim("it is when another %s is typed" % box, seen and "Answer" in words, words)
            self.claim("and the time it took is not told any more", self.browser.run("$('state').textContent") == "", self.browser.run("$('state').textContent"))
            self.type(before, box)
            self.claim("and is not when the %s is the same again" % box, not self.browser.run(shown)[0])
        self.browser.run("$('version').selectedIndex = 2; $('version').dispatchEvent(new Event('input', { bubbles: true })); 0")
        self.claim("it is when another release is chosen", self.browser.run(shown)[0])
        self.press("$('language')")
        seen, words = self.browser.run(shown)
        self.claim("in Chinese too, and still after the change of language", seen and "回答" in words, words)
        self.press("$('language')")
        self.press("document.querySelector('.go')")
        self.claim("a new answer is not out of date", not self.browser.run(shown)[0])
        self.browser.run("(() => { const real = run; run = (...words) => { if (words[0][0] === 'plan') { run = real; $('input').value += ' --max-model-len 4096';"
                         " $('input').dispatchEvent(new Event('input')); } return real(...words); }; })()")
        self.press("document.querySelector('.go')")
        self.claim("what is typed while it is computed makes it out of date", self.browser.run(shown)[0])


def main():
    if not Browser.find():
        print("no browser is installed")
        return 77
    test = Test(sys.argv[1])
    try:
        for width in (320, 390, 800, 1200):
            test.the_button(width)
            test.every_control(width)
            test.several(width)
        test.manifests()
        test.claim("some files have several commands", test.told > 2, test.told)
        test.out_of_date()
        test.small_things()
        test.short()
    finally:
        test.browser.close()
    print("press: %d passed, %d failed" % (test.passed, test.failed))
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
