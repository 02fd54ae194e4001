# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium in a network of its own that has no interface, driven by its debugging protocol over a pipe."""
import base64
import json
import os
import shutil
import subprocess
import tempfile


class Chromium:
    """A browser with one page. Use it in a `with`."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="affinityd-chromium-")
        (to_browser, self.commands), (answers, from_browser) = os.pipe(), os.pipe()

        def place():  # the browser reads 3 and writes 4
            ours = [os.dup(end) for end in (to_browser, from_browser)]
            for number, end in zip((3, 4), ours):
                os.dup2(end, number)

        command = ("unshare", "--net", "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--hide-scrollbars", f"--user-data-dir={self.folder}", "--remote-debugging-pipe", "about:blank")
        self.process = subprocess.Popen(command, preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=os.environ | {"HOME": self.folder}, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.answers, self.number, self.session, self.events, self.read = answers, 0, None, [], self.messages()
        target = next(one["targetId"] for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        os.close(self.commands)  # it ends then
        os.close(self.answers)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def messages(self):
        parts = []
        while words := os.read(self.answers, 1 << 20):
            *ends, rest = words.split(b"\0")
            for end in ends:
                yield json.loads(b"".join([*parts, end]))
                parts = []
            parts.append(rest)

    def ask(self, method, **parameters):
        """The answer to a command; events that come meanwhile are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while (answer := next(self.read)).get("id") != self.number:
            self.events.append(answer)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def open(self, path, width=1280, height=900, scheme="light", media="screen"):
        """Shows a file; its events are only those since."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Page.navigate", url=f"file://{path}")
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(next(self.read))
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def evaluate(self, expression):
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def named(self, method):
        return [event["params"] for event in self.events if event.get("method") == method]

    def picture(self, file):
        """The whole page as a PNG, for a look at it."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1}
        answer = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(answer["data"]))

    def printed(self):
        """The page as a PDF."""
        self.ask("Emulation.setEmulatedMedia", media="print")
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
