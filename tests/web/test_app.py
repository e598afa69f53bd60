#!/usr/bin/env python3
"""The page that needs no install, used as people would, in a real browser: test_app.py BINARY APP_DIR [--shared DIR] [--pictures DIR].
Exit 77 where no browser is installed.

What it answers is what the command answers (BINARY, built for this machine), byte for byte: plans, explanations, replays of the fixtures,
and with --shared of the logs beside the checkout. Then links, several commands, hostile inputs, a log of 200 MB, the keyboard,
two widths, two languages, and no network. Standard library only."""
import argparse
import functools
import glob
import gzip
import http.server
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import presses
from browser import Browser

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "fixtures")
RULES = open(os.path.join(HERE, "rules.js"), encoding="utf-8").read()
HOSTILE = "</textarea></script><script>parent.document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
BIG = 200_000_000
LOGS_SECONDS, LOGS_LEAST = 12, 20
CLOCKS = bool(os.environ.get("OOMSIGHT_CLOCKS"))  # elsewhere a busy machine must decide nothing


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


class Test:
    def __init__(self, options, work):
        self.binary, self.app, self.work, self.passed, self.failed = os.path.abspath(options.binary), options.app, work, 0, 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=options.app))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = "http://127.0.0.1:%d/" % self.server.server_address[1]
        self.browser = Browser()

    def claim(self, sentence, holds, seen=""):
        if not holds:
            print("FAIL %s   (seen: %s)" % (sentence, str(seen)[:600]))
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)

    def visit(self, fragment="", width=1200, dark=False):
        """A fresh page: one that differs in its fragment only would not be loaded again."""
        self.browser.visit("about:blank", width)
        asked = self.browser.visit(self.address + fragment, width, dark=dark)
        self.wait("document.documentElement.dataset.ready === '1'")
        return asked

    def wait(self, condition, seconds=600):
        end = time.time() + seconds
        while time.time() < end:
            if self.browser.run(condition):
                return True
            time.sleep(0.02)
        return False

    def run(self, args, files, environment):
        """One run in the page; files are (path there, bytes)."""
        import base64
        listed = [[path, base64.b64encode(content).decode()] for path, content in files]
        return self.browser.run("run(%s, %s.map(([p, b]) => [p, Uint8Array.from(atob(b), c => c.charCodeAt(0))]), %s)"
                                % (json.dumps(args), json.dumps(listed), json.dumps(environment)))

    def native(self, args, environment=None, folder=None):
        run = subprocess.run([self.binary, *args], capture_output=True, cwd=folder or self.work, stdin=subprocess.DEVNULL,
                             env={"PATH": os.environ["PATH"], **(environment or {})})
        return run.returncode, run.stdout.decode(errors="replace"), run.stderr.decode(errors="replace")

    # ---- equal to the command ----

    def cache(self):
        """The fixtures as a Hugging Face cache, here and there under the same path."""
        files = []
        for model in sorted(os.listdir(os.path.join(FIXTURES, "models"))):
            folder = os.path.join(FIXTURES, "models", model)
            here = os.path.join(self.work, "hf", "models--acme--" + model)
            os.makedirs(os.path.join(here, "snapshots", "given"))
            os.makedirs(os.path.join(here, "refs"))
            config = open(os.path.join(folder, "config.json"), "rb").read()
            for path, content in (("refs/main", b"given"), ("snapshots/given/config.json", config)):
                with open(os.path.join(here, path), "wb") as f:
                    f.write(content)
                files.append((os.path.join(here, path).lstrip("/"), content))
        return files

    def equal(self, what, args, files, environment):
        there = self.run(args, files, environment)
        here = self.native(args, environment)
        same = (there["code"], there["out"], there["err"]) == here
        if not same:
            self.claim("%s is what the command answers" % what, False, "%s | %s" % (there["out"][:300] or there["err"], here[1][:300] or here[2]))
        return same

    def plans(self):
        files, environment = self.cache(), {"HF_HUB_CACHE": os.path.join(self.work, "hf"), "HF_HUB_OFFLINE": "1"}
        count = equal = 0
        for model in ("small-llama", "small-moe", "small-hybrid"):
            for gpu in ("4090", "l4x2", "h100", "a30x4", "gb200"):
                for version in ("0.11.0", "0.19.1", "0.32.0"):
                    args = ["plan", "--json", "--offline", "--gpu", gpu, "--vllm", version, "--", "vllm", "serve", "acme/" + model, "--max-model-len", "4096"]
                    count += 1
                    equal += self.equal("plan of %s on %s by %s" % (model, gpu, version), args, files, environment)
        self.claim("plans are equal", equal == count, "%d of %d" % (equal, count))
        return "plans equal: %d of %d" % (equal, count)

    def logs(self, shared):
        """Under the same path here and there: a folder of the browser has no other names. Spread over all of them; with a seed drawn, for LOGS_SECONDS;
        equal.py asks about all."""
        count = equal = 0
        paths = sorted(glob.glob(os.path.join(FIXTURES, "kb", "**", "*.log"), recursive=True))
        for corpus in ("dev", "second") if shared else ():
            paths += sorted(glob.glob(os.path.join(shared, "corpus", corpus, "*.log")))
        seed, start = os.environ.get("OOMSIGHT_SEED"), time.time()
        if seed:
            random.Random(seed).shuffle(paths)
        else:
            paths = paths[::max(1, len(paths) // LOGS_LEAST)]
        for path in paths:
            if seed and count >= LOGS_LEAST and time.time() - start > LOGS_SECONDS:
                break
            path = os.path.abspath(path)
            with open(path, "rb") as f:
                files = [(path.lstrip("/"), f.read())]
            count += 1
            equal += self.equal("explain of " + path, ["explain", "--json", path], files, {})
        self.claim("explanations are equal", equal == count, "%d of %d" % (equal, count))
        return "explanations equal: %d of %d, of %d logs%s" % (equal, count, len(paths), ", seed " + seed if seed else "")

    def replays(self):
        count = equal = 0
        for path in sorted(glob.glob(os.path.join(FIXTURES, "traces", "*"))):
            path = os.path.abspath(path)
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as f:
                files = [(path.lstrip("/"), f.read())]
            count += 1
            equal += self.equal("replay of " + path, ["replay", "--json", path], files, {})
        self.claim("replays are equal", equal == count and count, "%d of %d" % (equal, count))
        return "replays equal: %d of %d" % (equal, count)

    # ---- as people do ----

    def ask(self, text, gpu=""):
        self.browser.run("(() => { hold(null); $('input').value = %s; $('gpu').value = %s; $('ask').requestSubmit(); })()" % (json.dumps(text), json.dumps(gpu)))
        return self.settled()

    def settled(self):
        return self.wait("$('wait').hidden && !waiting.size && ($('answer').hidden || told !== null)")

    def report(self):
        return self.browser.run("$('report').hidden ? '' : $('report').srcdoc")

    def processor(self):
        """Seconds that the browser's processes have computed."""
        total = 0
        for stat in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                if self.browser.profile.encode() in open(stat, "rb").read():
                    with open(os.path.join(os.path.dirname(stat), "stat")) as f:
                        total += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
            except OSError:
                pass
        return total / os.sysconf("SC_CLK_TCK")

    def first_answer(self):
        link = "#" + urllib.parse.urlencode({"c": "vllm serve Qwen/Qwen3-32B --max-model-len 32768", "gpu": "4090"})
        times, computed = [], []
        for _ in range(3):
            self.browser.visit("about:blank", 1200)
            start, before = time.time(), self.processor()
            asked = self.browser.visit(self.address + link, 1200)
            self.wait("typeof $ === 'function' && typeof told === 'string'")
            times.append(time.time() - start)
            computed.append(self.processor() - before)
            self.wait("document.documentElement.dataset.ready === '1'")
            self.claim("a link is answered", "Qwen3-32B" in self.report(), self.browser.run("$('state').textContent + $('message').textContent"))
            self.claim("nothing but the page's own files is asked for", all(url.startswith(self.address) for url in asked), asked)
        if CLOCKS:
            self.claim("the first answer comes within 1.5 s", min(times) < 1.5, times)
            self.claim("and takes less than 1.5 s of a processor", min(computed) < 1.5, computed)
        listed = lambda numbers: ", ".join("%.2f" % n for n in numbers)
        return "first answer after %s s, of which %s s computed by all processes of the browser" % (listed(times), listed(computed))

    def frame(self):
        """The frame tells how high its page is: its scripts ran, and nothing of this page is theirs."""
        self.visit("#" + urllib.parse.urlencode({"c": "vllm serve Qwen/Qwen3-8B", "gpu": "4090"}))
        self.claim("the report is drawn in its frame", self.wait("parseInt($('report').style.height) > 1000"), self.browser.run("$('report').style.height"))
        for length in (8192, 4096):
            self.ask("vllm serve Qwen/Qwen3-32B --max-model-len %d" % length, "4090")
            drawn = self.wait("parseInt($('report').style.height) > 1000")
            self.claim("an answer after another is drawn, too", drawn, self.browser.run("$('report').style.height"))
        self.claim("a plan can be shared", self.browser.run("$('link').offsetHeight > 0"))
        self.ask("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
        self.claim("a log cannot", self.browser.run("$('link').offsetHeight === 0 && $('save').offsetHeight > 0"))
        self.claim("the frame has no access to the page", self.browser.run("$('report').contentDocument === null"))

    def embedded(self):
        """In a page of somebody else: boxes and answer, nothing around them, and their height is told."""
        link = urllib.parse.urlencode({"c": "vllm serve Qwen/Qwen3-8B", "gpu": "4090"})
        for where in ("?embed#" + link, "#embed=&" + link):
            self.visit(where)
            seen = self.browser.run("['header', 'h1', 'footer', '#ask', '#report'].map(s => document.querySelector(s).offsetHeight > 0)")
            self.claim("%s shows boxes and answer only" % where[:6], seen == [False, False, False, True, True], seen)
            self.wait("location.hash.includes('c=')")
            self.visit(self.browser.run("location.search + location.hash"))
            self.claim("%s stays so" % where[:6], self.browser.run("document.documentElement.dataset.embed") == "1", self.browser.run("location.href"))
        self.browser.visit(self.address + "?host", 1200)
        self.wait("document.documentElement.dataset.ready === '1'")
        self.browser.run("(() => { window.told = 0; addEventListener('message', e => { if (e.data.oomsight) told = e.data.oomsight.height; });"
                         " const f = document.createElement('iframe'); f.src = './?embed'; document.body.append(f); })()")
        self.claim("the page around it is told its height", self.wait("told > 200"), self.browser.run("told"))

    def links(self):
        self.visit()
        self.ask("HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345 vllm serve Qwen/Qwen3-8B --api-key sk-secretsecretsecret1 --max-model-len 8192", "4090")
        self.wait("location.hash.length > 1")
        where = urllib.parse.unquote_plus(self.browser.run("location.hash"))
        self.claim("the link holds the command", "Qwen/Qwen3-8B" in where and "8192" in where, where)
        self.claim("the link holds no secret", "hf_abc" not in where and "sk-secret" not in where, where)
        first = self.report()
        self.visit(self.browser.run("location.hash"))
        self.claim("the link gives the same verdict", self.report() and self.report()[-4000:].count("verdict") == first[-4000:].count("verdict"))
        self.ask("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
        self.claim("a log is not in the address", self.browser.run("location.hash") == "", self.browser.run("location.href"))

    def several(self):
        with open(os.path.join(FIXTURES, "deploy", "compose.yaml"), encoding="utf-8") as f:
            text = f.read().replace("acme/small-llama", "Qwen/Qwen3-8B")
        self.visit()
        self.ask(text, "4090")
        names = self.browser.run("[...document.querySelectorAll('#choices button')].map(b => b.textContent)")
        self.claim("both commands of a compose file are offered", len(names) == 2, names)
        self.claim("the first is planned", "Qwen3-8B" in self.report())
        self.browser.run("document.querySelectorAll('#choices button')[1].click()")
        self.wait("$('wait').hidden && !waiting.size")
        self.claim("a model that is not known is said to be", "acme/small-hybrid" in self.browser.run("$('model').textContent"), self.browser.run("$('model').textContent"))
        with open(os.path.join(FIXTURES, "models", "small-llama", "config.json"), encoding="utf-8") as f:
            config = f.read()
        self.browser.run("$('input').value = 'vllm serve acme/mine'; take([new File([%s], 'config.json')])" % json.dumps(config))
        self.wait("$('wait').hidden && !$('report').hidden")
        self.claim("a config.json that is dropped is planned", "acme/mine" in self.report(), self.browser.run("$('message').textContent"))
        self.browser.run("fetchConfig('acme/none')")
        self.wait("$('model').textContent.includes('drop it here')")
        self.claim("a refusal of the hub is told", "drop it here" in self.browser.run("$('model').textContent"), self.browser.run("$('model').textContent"))

    def catalogue(self):
        with open(os.path.join(HERE, "..", "..", "data", "catalogue.json"), encoding="utf-8") as f:
            names = json.load(f)
        self.visit()
        self.claim("the page and the command have one list of models", self.browser.run("[...known].sort().join()") == ",".join(sorted(names)))
        for name in sorted(names)[::40]:
            self.ask("vllm serve " + name, "h200x8")
            self.claim("%s is planned by its name" % name, name.split("/")[-1] in self.report(), self.browser.run("$('message').textContent"))
            self.claim("%s is said to be known" % name, "known here" in self.browser.run("$('model').textContent"), self.browser.run("$('model').textContent"))

    def hostile(self):
        self.visit()
        noise = random.Random(7)
        texts = [HOSTILE, "CUDA out of memory " + HOSTILE, "\0" * 1000, "{" * 100000, "[" * 100000 + "\n", "a" * 3_000_000, "".join(chr(noise.randrange(1, 0xd7ff)) for _ in range(20000))]
        for text in texts:
            for gpu in ("", "4090" + HOSTILE):
                done = self.ask(text, gpu)
                self.claim("%d hostile characters are survived" % len(text), done)
                self.claim("nothing of them is run", "taken" not in self.browser.run("document.title") and self.browser.run("document.images.length") == 0)
        for name, content in {"a.gz": b"\x1f\x8b\x08\0broken", "b.pickle": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f", "c.json": b'{"segments": [' + b"[" * 60000,
                              "d.pkl": b"\x80\x02" + b"(" * 500000, "e.log.gz": gzip.compress(b"CUDA out of memory. Tried to allocate 2.00 GiB\n" * 20)}.items():
            self.browser.run("take([new File([Uint8Array.from(%s)], %s)])" % (json.dumps(list(content)), json.dumps(name)))
            self.claim("%s is answered" % name, self.settled(), self.browser.run("$('state').textContent"))
            said = self.browser.run("$('message').textContent + $('report').srcdoc")
            self.claim("%s is told of" % name, bool(said))
            if name == "e.log.gz":
                self.claim("a packed log is read", "out of memory" in self.report().lower(), said[:300])
        self.ask("CUDA out of memory. Tried to allocate 2.00 GiB")
        self.claim("afterwards the page answers as before", bool(self.report()))

    def large(self):
        path = os.path.join(self.work, "large.log")
        chance = random.Random(1)
        lines = "".join('INFO 11-15 10:00:%02d [loggers.py:%d] Engine 000: Avg generation throughput: %.1f tokens/s, Running: %d reqs\n'
                        % (i % 60, i % 300, chance.random() * 1000, i % 64) for i in range(20000)).encode()
        with open(path, "wb") as f:
            while f.tell() < BIG:
                f.write(lines)
            f.write(b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.00 GiB is free.\n")
        self.visit()
        before = self.memory()
        node = self.browser.call("DOM.getDocument")["root"]["nodeId"]
        field = self.browser.call("DOM.querySelector", nodeId=node, selector="#file")["nodeId"]
        self.browser.run("window.gap = 0; window.last = performance.now(); setInterval(() => { const n = performance.now(); gap = Math.max(gap, n - last); last = n; }, 20); 0")
        start, most = time.time(), 0
        self.browser.call("DOM.setFileInputFiles", files=[path], nodeId=field)
        while time.time() - start < 1200 and not self.browser.run("!$('report').hidden || !$('message').hidden"):
            most = max(most, self.memory())
            time.sleep(0.05)
        took = time.time() - start
        self.claim("200 MB are explained", "2.00 GiB" in self.report(), self.browser.run("$('state').textContent + $('message').textContent"))
        grown = most - before
        self.claim("within 300 MB", grown < 300, "%d MB" % grown)
        gap = self.browser.run("gap")
        self.claim("and the page is not frozen for 2 s", gap < 2000, gap)
        os.unlink(path)
        return "200 MB in %.1f s, %d MB of memory more, longest pause %d ms" % (took, grown, gap)

    def paste(self):
        """3 MB are taken as a file: the page goes on."""
        self.visit()
        self.browser.run("window.gap = 0; window.last = performance.now(); setInterval(() => { const n = performance.now(); gap = Math.max(gap, n - last); last = n; }, 20); 0")
        self.browser.run("(() => { const data = new DataTransfer(); data.setData('text', 'INFO 11-15 10:00:00 [loggers.py:1] Running: 3 reqs\\n'.repeat(60000) +"
                         " 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\\n'); gap = 0;"
                         " $('input').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })); })()")
        self.settled()
        self.claim("a paste of 3 MB is explained", "2.00 GiB" in self.report(), self.browser.run("$('state').textContent"))
        gap = self.browser.run("gap")
        self.claim("and freezes nothing", gap < (500 if os.getloadavg()[0] < 3 else 3000), gap)
        self.claim("it is a chip that can be removed", self.browser.run("document.querySelector('#held button').click(), held === null && $('held').hidden"))
        return "3 MB pasted, longest pause %d ms" % gap

    def history(self):
        """One step a plan: Back goes to the plan before, and to it after a log."""
        self.visit()
        for model in ("Qwen/Qwen3-8B", "Qwen/Qwen3-32B"):
            self.ask("vllm serve " + model, "4090")
            self.wait("location.hash.includes(%s)" % json.dumps(urllib.parse.quote(model, safe="")))
        self.browser.run("history.back()")
        self.wait("location.hash.includes('Qwen3-8B')")
        self.settled()
        self.claim("Back gives the plan before", "Qwen3-8B" in self.report() and self.browser.run("$('input').value") == "vllm serve Qwen/Qwen3-8B", self.browser.run("location.href"))
        self.ask("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
        self.browser.run("history.back()")
        self.wait("location.hash.includes('Qwen3-8B')")
        self.settled()
        self.claim("Back after a log gives the plan", "Qwen3-8B" in self.report(), self.browser.run("location.href"))
        self.browser.run("$('theme').click(), $('language').click()")
        self.settled()
        self.visit()
        self.claim("colours and language are kept", self.browser.run("document.documentElement.dataset.theme !== undefined && document.documentElement.lang === 'zh'"))
        self.browser.run("$('theme').click(), $('language').click(), localStorage.clear()")

    def from_a_file(self):
        self.browser.visit("file://" + os.path.abspath(os.path.join(self.app, "index.html")), 1200)
        self.claim("opened from a file it says how to serve it", self.wait("typeof $ === 'function' && $('state').textContent.includes('http.server')"))

    def memory(self):
        """MB that the browser's processes hold for themselves."""
        total = 0
        for stat in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                if self.browser.profile.encode() in open(stat, "rb").read():
                    with open(os.path.join(os.path.dirname(stat), "smaps_rollup")) as f:
                        total += sum(int(line.split()[1]) for line in f if line.startswith(("Private_Dirty", "Private_Clean")))
            except OSError:
                pass
        return total // 1024

    def everybody(self):
        for width in (1200, 390, 320):
            for dark in (False, True):
                for language in ("en", "zh"):
                    self.visit("#" + urllib.parse.urlencode({"c": "vllm serve Qwen/Qwen3-8B", "gpu": "4090", "lang": language}), width, dark)
                    where = "at %d %s%s" % (width, language, " dark" if dark else "")
                    broken = self.browser.run(RULES)
                    self.claim("the rules hold " + where, broken == [], broken)
                    wide = self.browser.run("document.documentElement.scrollWidth - innerWidth")
                    self.claim("nothing is cut off " + where, wide <= 0, wide)
                    self.claim("the report is in that language " + where, ("启动" in self.report()) == (language == "zh") or language == "en")
        self.visit()
        self.browser.run("document.activeElement.blur(); 0")
        seen = []
        for _ in range(12):
            self.browser.press("Tab", 9)
            seen.append(self.browser.run("document.activeElement.id || document.activeElement.className"))
        self.claim("Tab goes through the form in order", [s for s in seen if s in ("input", "gpu", "version", "file", "go")] == ["input", "gpu", "version", "file", "go"], seen)
        self.browser.run("$('input').value = 'vllm serve Qwen/Qwen3-32B'; $('gpu').value = '4090'; $('gpu').focus(); 0")
        self.browser.press("Enter", 13)
        self.claim("Enter plans", self.settled() and "Qwen3-32B" in self.report())
        self.claim("the verdict has the focus", self.browser.run("document.activeElement.id") == "verdict", self.browser.run("document.activeElement.id"))
        tree = self.browser.call("Accessibility.getFullAXTree")["nodes"]
        named = {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node.get("ignored")}
        for role in ("textbox", "combobox", "button", "form", "Iframe"):
            unnamed = [pair for pair in named if pair[0] == role and not pair[1]]
            self.claim("every %s has a name" % role, any(pair[0] == role for pair in named) and not unnamed, sorted(named))
        live = [node for node in tree if any(p["name"] == "live" and p["value"].get("value") in ("polite", "assertive") for p in node.get("properties", []))]
        spoken = self.browser.run("$('verdict').textContent")
        self.claim("the verdict is announced", len(live) >= 2 and len(spoken) > 30 and "61.03" in spoken, spoken)

    def mouse(self):
        for width in (1200, 390):
            self.visit(width=width)
            self.ask("vllm serve Qwen/Qwen3-8B", "4090")
            pressed, wrong = presses.walk(self.browser, ["#input", "#gpu"])
            self.claim("each of %d presses at %d is a click where it was pressed" % (pressed, width), pressed > 20 and not wrong, wrong[:1])

    def offline(self):
        self.visit()
        self.claim("the page is kept for later", self.wait("navigator.serviceWorker.ready.then(r => !!r.active)"))
        self.visit()
        self.server.shutdown()
        self.server.server_close()
        self.visit("#" + urllib.parse.urlencode({"c": "vllm serve Qwen/Qwen3-8B", "gpu": "4090"}))
        self.claim("without a network it answers", "Qwen3-8B" in self.report())

    def pictures(self, out):
        os.makedirs(out, exist_ok=True)
        for name, width, height in (("desk", 1200, 1500), ("phone", 390, 1800)):
            link = "#" + urllib.parse.urlencode({"c": "vllm serve Qwen/Qwen3-32B --max-model-len 32768", "gpu": "4090x2"})
            self.browser.visit("about:blank", width)
            self.browser.visit(self.address + link, width, height)  # as high as the picture: what is out of sight is not painted
            self.wait("document.documentElement.dataset.ready === '1' && typeof told === 'string'")
            self.browser.run("scrollTo(0, 0)")
            time.sleep(2)
            self.browser.picture(os.path.join(out, "app-%s.webp" % name), height)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("app")
    parser.add_argument("--shared")
    parser.add_argument("--pictures")
    options = parser.parse_args()
    if not Browser.find():
        print("no browser is installed")
        return 77
    with tempfile.TemporaryDirectory() as work:
        test = Test(options, work)
        try:
            if options.pictures:
                test.pictures(options.pictures)
            else:
                for part in (test.first_answer, test.plans, functools.partial(test.logs, options.shared), test.replays, test.frame, test.embedded, test.links, test.several,
                             test.catalogue, test.hostile, test.paste, test.history, test.from_a_file, *[test.large] * CLOCKS, test.everybody, test.mouse, test.offline):
                    start = time.time()
                    told = part()
                    print("%5.1f s  %s" % (time.time() - start, told or part.__name__))
        finally:
            test.browser.close()
    print("app: %d passed, %d failed" % (test.passed, test.failed))
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
