# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd-gateway beside a profd of a test, with folders of its own."""

import collections
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check, equal  # noqa: E402
from workload import end  # noqa: E402

GATEWAY = build_path("gateway", "profd-gateway")
WAIT_S = 300


def send(name, kind, url, **keys):
    """A section of a configuration."""
    return f"[Send {name}]\nType={kind}\nURL={url}\n" + "".join(f"{key}={value}\n" for key, value in keys.items())


class Gateway:
    """Runs until the block ends. `sends` is the text of its destinations, `name` tells its folders apart; the same
    name goes on with the same state."""

    def __init__(self, folder, socket, sends, name="gateway", interval_s=1, more=""):
        self.interval_ns = interval_s * 1_000_000_000
        self.folder = os.path.join(folder, name)
        self.state = os.path.join(self.folder, "state")
        self.runtime = os.path.join(self.folder, "run")
        for path in (self.state, self.runtime):
            os.makedirs(path, exist_ok=True)
        self.config = os.path.join(self.folder, "gateway-test.conf")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(f"[Gateway]\nSocket={socket}\nIntervalSec={interval_s}\nHost=test-host\n{more}[Listen]\nSocket=none\n{sends}")
        self.log_path = os.path.join(self.folder, "log")
        self.process = None
        self.start()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [GATEWAY, f"--config={self.config}", f"--state={self.state}", f"--runtime={self.runtime}"],
                stderr=log, stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def kill(self):
        end(self.process, signal.SIGKILL)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        equal(self.process.wait(timeout=60), 0, f"status of the gateway: {self.log()[-2000:]}")

    def wait(self, condition, what, seconds=WAIT_S):
        """The first true answer; limits are far off, since a busy machine is no failure."""
        end_at = time.monotonic() + seconds
        while True:
            answer = condition()
            if answer:
                return answer
            check(self.process.poll() is None, f"the gateway ended with {self.process.returncode}: {self.log()[-2000:]}")
            check(time.monotonic() < end_at, f"waited {seconds} s in vain for {what}; {self.read_status()}; {self.log()[-1500:]}")
            time.sleep(0.05)

    def wait_for_log(self, words):
        return self.wait(lambda: re.search(words, self.log()), f"'{words}' in the log")

    def state_of(self, name):
        """What its file says, or None."""
        try:
            with open(os.path.join(self.state, f"{name}.json"), encoding="utf-8") as f:
                return json.load(f)
        except FileNotFoundError:
            return None

    def counter(self, name, key):
        return self.state_of(name)["counters"][key]

    def read_status(self):
        """What it says of itself, or None."""
        try:
            with open(os.path.join(self.runtime, "status.json"), encoding="utf-8") as f:
                return json.load(f)
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def sent_until(self, name):
        """Everything before this time was sent or is lost for good, as of the last state that was written."""
        state = self.state_of(name)
        if not state:
            return 0
        return state["unsent"][0][0] if state["unsent"] else state["liveNs"]

    def settle(self, *names):
        """Waits until all that was recorded up to now is sent; that time, where an interval ends."""
        until = time.time_ns() // self.interval_ns * self.interval_ns
        self.wait(lambda: all(self.sent_until(name) >= until for name in names), f"what was recorded before {until} at {names}")
        return until

    def observe(self, name):
        """What it says of itself from now on until the block ends: an Observation."""
        return Observation(self, name)


Moment = collections.namedtuple("Moment", "at_s read_lag_s live_lag_s backlog_s anonymous_bytes")


class Observation:
    """Takes each new state of a gateway: how old the newest samples are that it has read and sent, and its memory."""

    def __init__(self, gateway, name):
        self.gateway, self.name = gateway, name
        self.moments = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def run(self):
        while not self.over.wait(0.2):
            status = self.gateway.read_status()
            if status and (not self.moments or status["nowUsec"] / 1e6 > self.moments[-1].at_s):
                send = next(each for each in status["destinations"] if each["name"] == self.name)
                self.moments.append(Moment(status["nowUsec"] / 1e6, (status["nowUsec"] - (status["source"]["untilUsec"] or 0)) / 1e6,
                                           send["liveLagUsec"] / 1e6, send["backlogUsec"] / 1e6, status["anonymousBytes"]))

    def between(self, since_s, until_s):
        return [moment for moment in self.moments if since_s <= moment.at_s <= until_s]
