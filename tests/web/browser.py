"""A headless Chromium driven through its debugging pipe: open a page, run a script in it, press keys, take pictures.
Standard library only. `Browser.find()` is None where no browser is installed."""
import base64
import json
import os
import shutil
import subprocess
import tempfile


class Browser:
    @staticmethod
    def find():
        for name in ("chromium", "chromium-browser", "google-chrome"):
            if shutil.which(name):
                return shutil.which(name)
        return None

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="oomsight-browser-")
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4.
        shell = 'exec "$0" "$@" 3<&%d 4>&%d' % (to_read, back_write)
        self.child = subprocess.Popen(
            ["bash", "-c", shell, Browser.find(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir=" + self.profile, "about:blank"],
            pass_fds=(to_read, back_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(back_write)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Network.enable")

    def message(self):
        while b"\0" not in self.rest:
            piece = os.read(self.back, 1 << 16)
            if not piece:
                raise RuntimeError("the browser went away")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]["message"]))
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width, height=900, dark=False, scripts=True):
        """Show the file; returns the addresses it asked for, itself left out."""
        return self.visit("file://" + os.path.abspath(path), width, height, dark, scripts)

    def visit(self, address, width, height=900, dark=False, scripts=True):
        """The same for any address."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.message())
        if scripts:
            self.painted()
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in asked if url != address]

    def run(self, script):
        """The value of an expression, or of a promise, as Python has it from JSON."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:600])
        return result["result"].get("value")

    def in_frame(self, script):
        """The same in the frame of the page, which has a process of its own; None while there is none."""
        page, self.session = self.session, None
        try:
            frames = [t["targetId"] for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "iframe"]
            if len(frames) != 1:
                return None
            self.session = self.call("Target.attachToTarget", targetId=frames[0], flatten=True)["sessionId"]
            try:
                return self.run(script)
            finally:
                frame, self.session = self.session, None
                self.call("Target.detachFromTarget", sessionId=frame)
        except RuntimeError:
            return None  # it was replaced meanwhile
        finally:
            self.session = page

    def painted(self):
        """What the page does once it is laid out, as observers of sizes, has been done."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def press(self, key, code=0, shift=False):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, modifiers=8 if shift else 0, **text)

    def mouse(self, kind, x, y):
        """mousePressed or mouseReleased, of the left button; the page has been laid out again when it returns."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=int(kind == "mousePressed"), clickCount=1)
        self.painted()

    def picture(self, path, height=None):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height or size["height"]), "scale": 1}
        kind = {"format": "png"} if path.endswith(".png") else {"format": "webp", "quality": 20}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip, **kind)
        with open(path, "wb") as f:
            f.write(base64.b64decode(shot["data"]))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.child.wait(timeout=200)
        shutil.rmtree(self.profile, ignore_errors=True)
