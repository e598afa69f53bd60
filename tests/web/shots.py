#!/usr/bin/env python3
"""Every page that people see, at three widths, light and dark: shots.py BINARY OUT_DIR [--site DIR] [--dryrun FILE.html] [--only WORDS].

The reports of all commands, the web app with a plan, an explanation, a compose file of three services and GPU `all`, and with --site (of tools/site.sh) the README,
recipes and pages with pictures. The pictures are PNG, to be looked at. For each page: nothing is wider than the window, no text is cut, the
console has no error. Exit 77 where no browser is installed. Standard library only."""
import argparse
import functools
import http.server
import os
import subprocess
import sys
import tempfile
import threading

import test_press
import test_report
from browser import Browser

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WIDTHS = (320, 800, 1400)
QWEN = ["--", "vllm", "serve", "Qwen/Qwen3-8B"]
REPORTS = {
    "plan": ["plan", "--offline", "--gpu", "4090", *QWEN],
    "plan-starts": ["plan", "--offline", "--gpu", "h100", *QWEN],
    "plan-two-releases": ["plan", "--offline", "--gpu", "4090", "--vllm", "0.19.1", "--vllm", "0.33.0", *QWEN],
    "plan-chinese": ["plan", "--offline", "--lang", "zh", "--gpu", "4090", *QWEN],
    "plan-all": ["plan", "--offline", "--gpu", "all", *QWEN],
    "explain": ["explain", os.path.join(ROOT, "tests/fixtures/kb/vllm/context-too-long/positive.log")],
    "check": test_report.PAGES["check"],
    "matrix": test_report.PAGES["matrix"],
    "matrix-diff": test_report.PAGES["matrix-diff"],
    "replay": ["replay", os.path.join(ROOT, "tests/fixtures/traces/stranded.trace")],
    "replay-snapshot": ["replay", os.path.join(ROOT, "tests/evidence/snapshots/01_fragmentation_oom_torch2.13.0.pickle")],
}
COMPOSE = "services:\n" + "".join("  %s:\n    image: vllm/vllm-openai:v0.19.1\n    command: --model %s\n    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}\n"
                                  % pair for pair in (("chat", "Qwen/Qwen3-4B"), ("big", "Qwen/Qwen3-14B"), ("embed", "acme/nobody")))
LOG = open(os.path.join(ROOT, "tests/fixtures/kb/vllm/context-too-long/positive.log"), encoding="utf-8").read()
APP = {"app-empty": (None, ""), "app-plan": ("vllm serve Qwen/Qwen3-8B", "4090"), "app-explain": (LOG, ""), "app-compose": (COMPOSE, "4090"), "app-all": ("vllm serve Qwen/Qwen3-8B", "all")}
SITE = ("index", "install", "recipes/index", "recipes/qwen3", "explanation/start-up-phases", "how-to/replay-allocations", "how-to/fleet", "how-to/dry-run", "reference/messages")
# Text that is cut: a box that hides what does not fit, and has more than it shows. What can be scrolled, or is out of sight for readers of screens, is not.
CUT = r"""(() => [...document.querySelectorAll('body *')].filter(e => {
  const style = getComputedStyle(e), r = e.getBoundingClientRect();
  if (r.width < 4 || r.height < 4 || style.clipPath !== 'none' || style.visibility === 'hidden' || !e.textContent.trim() || e.closest('[aria-hidden=true], .md-search, svg, textarea')) return false;
  const hides = v => v === 'hidden' || v === 'clip';
  return hides(style.overflowX) && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 || hides(style.overflowY) && e.scrollHeight > e.clientHeight + 1 && e.clientHeight > 0;
}).map(e => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + '.' + e.className + ' ' + e.textContent.trim().slice(0, 50)))()"""
WIDE = "document.documentElement.scrollWidth - innerWidth"


class Shots:
    def __init__(self, out):
        self.out, self.browser, self.taken, self.failed = out, Browser(), 0, 0
        self.browser.call("Log.enable")

    def look(self, name, width, dark, inside=None):
        """One picture and its claims; `inside` looks into the frame as well."""
        where = "%s-%d-%s" % (name, width, "dark" if dark else "light")
        self.browser.painted()
        errors = [e["params"] for e in self.browser.events if e.get("method") == "Runtime.exceptionThrown"
                  or (e.get("method") == "Runtime.consoleAPICalled" and e["params"]["type"] == "error")
                  or (e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] == "error")]
        errors = [e for e in errors if "when fetching the script" not in str(e)]  # the test's server has no service worker
        found = {"wider than the window": max(0, self.browser.run(WIDE)), "cut": self.browser.run(CUT), "console": [str(e)[:300] for e in errors]}
        if inside:
            found["in its frame"] = inside(CUT)
            found["frame wider"] = max(0, inside(WIDE) or 0)
        for what, seen in found.items():
            if seen:
                print("FAIL %s, %s: %s" % (where, what, str(seen)[:500]))
                self.failed += 1
        if inside:  # a frame is painted where the window is
            high = self.browser.call("Page.getLayoutMetrics")["cssContentSize"]["height"]
            self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=int(high), deviceScaleFactor=1, mobile=width < 600)
            self.browser.painted()
            inside("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")
        self.browser.picture(os.path.join(self.out, where + ".png"), 12000)
        self.taken += 1

    def all(self, name, address):
        for width in WIDTHS:
            for dark in (False, True):
                if address.startswith("http"):  # the site keeps the colours of the visit before
                    self.browser.call("Storage.clearDataForOrigin", origin="/".join(address.split("/")[:3]), storageTypes="all")
                self.browser.visit(address, width, dark=dark)
                self.look(name, width, dark)


def reports(shots, options, work):
    pages = {"dryrun": options.dryrun} if options.dryrun else {}
    for name, words in REPORTS.items():
        pages[name] = os.path.join(work, name + ".html")
        run = subprocess.run([options.binary, words[0], "--format", "html", "--output", pages[name], *words[1:]], capture_output=True, text=True, check=False)
        if not os.path.exists(pages[name]):
            print("FAIL %s: no page: %s" % (name, run.stderr[:300]))
            shots.failed += 1
            del pages[name]
    for name, path in pages.items():
        if options.only in name:
            shots.all(name, "file://" + os.path.abspath(path))


def app(shots, options):
    test = test_press.Test(options.binary, shots.browser)
    for name, (text, gpu) in APP.items():
        if options.only not in name:
            continue
        for width in WIDTHS:
            for dark in (False, True):
                if text is None:
                    shots.browser.visit(test.address, width, dark=dark)
                    test.wait("document.documentElement.dataset.ready === '1'")
                    shots.look(name, width, dark)
                    continue
                test.answered(width, text, gpu, dark)
                test.laid_out()
                shots.look(name, width, dark, shots.browser.in_frame)
    shots.failed += test.failed


def site(shots, options):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=options.site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for page in SITE:
        path = next((p for p in (page + ".html", page + "/index.html") if os.path.exists(os.path.join(options.site, p))), None)
        if not path:
            print("FAIL the site has no page %s" % page)
            shots.failed += 1
        elif options.only in "site-" + page:
            shots.all("site-" + page.replace("/", "-"), "http://127.0.0.1:%d/%s" % (server.server_address[1], path))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("out")
    parser.add_argument("--site")
    parser.add_argument("--dryrun")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if not Browser.find():
        print("no browser is installed")
        return 77
    os.makedirs(options.out, exist_ok=True)
    shots = Shots(options.out)
    try:
        with tempfile.TemporaryDirectory() as work:
            reports(shots, options, work)
        app(shots, options)
        if options.site:
            site(shots, options)
    finally:
        shots.browser.close()
    print("shots: %d pictures, %d failed" % (shots.taken, shots.failed))
    return 1 if shots.failed else 0


if __name__ == "__main__":
    sys.exit(main())
