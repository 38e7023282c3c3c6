# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd-gateway as an administrator would run it: a configuration, folders of its own, signals, its log."""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check  # noqa: E402

GATEWAY = build_path("gateway", "profd-gateway")
PATIENCE_S = 30


class Gateway:
    """Started with this configuration; waited for until it runs, unless `ready` is false."""

    def __init__(self, folder, config, *arguments, ready=True, **popen):
        self.folder = folder
        self.runtime = os.path.join(folder, "gateway-run")
        self.state = os.path.join(folder, "gateway-state")
        self.config_path = os.path.join(folder, "gateway.conf")
        self.log_path = os.path.join(folder, "gateway-log")
        self.configure(config)
        self.begin = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([GATEWAY, *self.options(), *arguments], stderr=log,
                                            stdin=subprocess.DEVNULL, **popen)
        try:
            if ready:
                self.wait_for_log("as host ")
        except BaseException:
            self.kill()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def options(self):
        return [f"--config={self.config_path}", f"--state={self.state}", f"--runtime={self.runtime}"]

    def configure(self, config):
        with open(self.config_path, "w", encoding="utf-8") as f:
            f.write(config)

    def log(self, begin=None):
        with open(self.log_path, "rb") as f:
            f.seek(self.begin if begin is None else begin)
            return f.read().decode(errors="replace")

    def mark(self):
        """A place in the log, to look only behind it."""
        return os.path.getsize(self.log_path)

    def wait_until(self, holds, what):
        end = time.monotonic() + PATIENCE_S
        while not holds():
            check(self.process.poll() is None, f"profd-gateway ended with {self.process.returncode}: {self.log()[-2000:]}")
            check(time.monotonic() < end, f"waited {PATIENCE_S} s for {what}: {self.log()[-2000:]}")
            time.sleep(0.05)

    def wait_for_log(self, words, begin=None):
        self.wait_until(lambda: re.search(words, self.log(begin)), f"'{words}' in the log")

    def has_status(self):
        return os.path.exists(os.path.join(self.runtime, "status.json"))

    def status(self):
        with open(os.path.join(self.runtime, "status.json"), encoding="utf-8") as f:
            return json.load(f)

    def destination(self, name):
        return next((each for each in self.status()["destinations"] if each["name"] == name), None)

    def send(self, number):
        self.process.send_signal(number)

    def reload(self, config, words):
        mark = self.mark()
        self.configure(config)
        self.send(signal.SIGHUP)
        self.wait_for_log(words, mark)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=PATIENCE_S)
