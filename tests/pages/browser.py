# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Chromium without a screen, driven over WebDriver by the standard library alone."""

import base64
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--hide-scrollbars", "--force-color-profile=srgb"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
START_S, REPLY_S = 60, 120
KEYS = {"Escape": "\ue00c", "Enter": "\ue007", "ArrowLeft": "\ue012", "ArrowUp": "\ue013",
        "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Shift": "\ue008", "Tab": "\ue004"}


class Browser:
    """One browser with one page; `with Browser(1600, 1000) as browser:`."""

    def __init__(self, width=1600, height=1000, dark=False):
        self.profile = tempfile.mkdtemp(prefix="profd-browser.")
        self.size = (width, height)
        self.dark = dark
        self.driver = None
        self.base = ""

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.profile})
        self._wait_for_driver()
        options = {"args": [*ARGUMENTS, f"--user-data-dir={self.profile}/data",
                            f"--window-size={self.size[0]},{self.size[1]}"]}
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base = f"/session/{session['sessionId']}"
        self.devtools("Emulation.setDeviceMetricsOverride", width=self.size[0], height=self.size[1],
                      deviceScaleFactor=1, mobile=False)
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])

    def _wait_for_driver(self):
        end = time.monotonic() + START_S
        while True:
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                pass
            if time.monotonic() > end or self.driver.poll() is not None:
                raise RuntimeError("chromedriver does not start")
            time.sleep(0.1)

    def __exit__(self, *_):
        try:
            if self.base:
                self._call("DELETE", self.base)
        except (OSError, RuntimeError):
            pass
        if self.driver:
            self.driver.terminate()
            self.driver.wait(START_S)
        shutil.rmtree(self.profile, ignore_errors=True)

    def _call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=REPLY_S)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and value.get("error"):
            raise RuntimeError(f"{path}: {value['error']}: {value.get('message', '')[:300]}")
        return value

    def post(self, path, **body):
        return self._call("POST", self.base + path, body)

    def devtools(self, command, **parameters):
        return self.post("/goog/cdp/execute", cmd=command, params=parameters)

    def open(self, path, fragment=""):
        """Opens a file; the page has drawn itself when this returns."""
        self.post("/url", url="about:blank")
        self.post("/url", url=f"file://{os.path.abspath(path)}{fragment}")
        self.wait("return document.documentElement.dataset.ready === 'yes'")
        self.settle()

    def run(self, script, *arguments):
        return self.post("/execute/sync", script=script, args=list(arguments))

    def wait(self, script, seconds=60):
        end = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > end:
                raise RuntimeError(f"never true: {script}")
            time.sleep(0.05)

    def settle(self):
        """Two frames later what was asked for is drawn."""
        self.post("/execute/async", args=[], script="const done = arguments[0];"
                  "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30)));")

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent.trim()", selector)

    def seen(self, selector):
        return self.run("const e = document.querySelector(arguments[0]);"
                        "return Boolean(e && e.getClientRects().length)", selector)

    def hash(self):
        return self.run("return location.hash")

    def box(self, selector):
        return self.run("const b = document.querySelector(arguments[0]).getBoundingClientRect();"
                        "return [b.left, b.top, b.width, b.height]", selector)

    def click(self, selector):
        found = self.post("/element", using="css selector", value=selector)
        self.post(f"/element/{found[ELEMENT]}/click")
        self.settle()

    def _pointer(self, *steps):
        self.post("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": list(steps),
                                        "parameters": {"pointerType": "mouse"}}])
        self.settle()

    @staticmethod
    def _move(x, y):
        return {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}

    def move(self, x, y):
        self._pointer(self._move(x, y))

    def press_at(self, x, y):
        self._pointer(self._move(x, y), {"type": "pointerDown", "button": 0},
                      {"type": "pointerUp", "button": 0})

    def drag(self, x, y, to_x, to_y):
        self._pointer(self._move(x, y), {"type": "pointerDown", "button": 0},
                      self._move((x + to_x) / 2, (y + to_y) / 2), self._move(to_x, to_y),
                      {"type": "pointerUp", "button": 0})

    def keys(self, *keys):
        """Presses keys one after the other; "Shift+ArrowUp" holds one meanwhile."""
        steps = []
        for key in keys:
            held = [KEYS.get(k, k) for k in (key.split("+") if len(key) > 1 else [key])]
            steps += [{"type": "keyDown", "value": k} for k in held]
            steps += [{"type": "keyUp", "value": k} for k in reversed(held)]
        self.post("/actions", actions=[{"type": "key", "id": "keyboard", "actions": steps}])
        self.settle()

    def errors(self):
        """What the console got since the last call."""
        return [entry["message"] for entry in self.post("/se/log", type="browser")
                if entry["level"] in ("SEVERE", "WARNING")]

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._call("GET", self.base + "/screenshot")))
