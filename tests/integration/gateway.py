# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd-gateway as an administrator would run it: a configuration, folders of its own, signals, its log."""

import collections
import http.client
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
from daemon import check_sound  # noqa: E402
from workload import end  # noqa: E402

GATEWAY = build_path("gateway", "profd-gateway")
STOP_S = 60


def send(name, kind, url, **keys):
    """A section of a configuration."""
    return f"[Send {name}]\nType={kind}\nURL={url}\n" + "".join(f"{key}={value}\n" for key, value in keys.items())


def gateway_section(folder, **keys):
    keys = {"Socket": f"{folder}/run/io.profd.Control", "IntervalSec": "1s", "Host": "test-host", **keys}
    return "[Gateway]\n" + "".join(f"{key}={value}\n" for key, value in keys.items())


def asked(port, path, timeout_s=60):
    """Status and body of an answer of the listener; no status while nobody listens."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        client.request("GET", path)
        answer = client.getresponse()
        return answer.status, answer.read()
    except ConnectionRefusedError:
        return 0, b""
    finally:
        client.close()


class Gateway:
    """Started with this configuration; waited for until it runs, unless `ready` is false."""

    patience_s = 30

    def __init__(self, folder, config, *arguments, ready=True, **popen):
        self.folder = folder
        self.runtime = os.path.join(folder, "gateway-run")
        self.state = os.path.join(folder, "gateway-state")
        self.config_path = os.path.join(folder, "gateway.conf")
        self.log_path = os.path.join(folder, "gateway-log")
        self.configure(config)
        self.begin = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        self.start(*arguments, **popen)
        try:
            if ready:
                self.wait_for_log("as host ")
        except BaseException:
            self.kill()
            raise

    def start(self, *arguments, **popen):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([GATEWAY, *self.options(), *arguments], stderr=log, stdin=subprocess.DEVNULL, **popen)

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

    def wait_until(self, condition, what):
        """The first true answer."""
        end_at = time.monotonic() + self.patience_s
        while not (answer := condition()):
            check(self.process.poll() is None, f"profd-gateway ended with {self.process.returncode}: {self.log()[-2000:]}")
            check(time.monotonic() < end_at, f"waited {self.patience_s} s for {what}; {self.status()}; {self.log()[-2000:]}")
            time.sleep(0.05)
        return answer

    def wait_for_log(self, words, begin=None):
        self.wait_until(lambda: re.search(words, self.log(begin)), f"'{words}' in the log")

    def status(self):
        """What it says of itself, or None."""
        try:
            with open(os.path.join(self.runtime, "status.json"), encoding="utf-8") as f:
                return json.load(f)
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def source(self):
        """What it says of profd, or nothing."""
        return (self.status() or {}).get("source", {})

    def destination(self, name):
        """What it says of a destination, or nothing."""
        return next((each for each in (self.status() or {}).get("destinations", []) if each["name"] == name), {})

    def send(self, number):
        self.process.send_signal(number)

    def reload(self, config, words):
        mark = self.mark()
        self.configure(config)
        self.send(signal.SIGHUP)
        self.wait_for_log(words, mark)

    def test(self, name):
        """--test of a destination."""
        return subprocess.run([GATEWAY, *self.options(), f"--test={name}"], capture_output=True, text=True, check=False, timeout=STOP_S)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(timeout=STOP_S)
        check_sound(self.log())
        return status

    def kill(self):
        end(self.process)
        check_sound(self.log())


class Sender(Gateway):
    """A gateway with destinations beside a profd of a test. `sends` is the text of these, `name` tells its folders apart; the
    same name goes on with the same state. Limits are far off, since a busy machine is no failure."""

    patience_s = 300

    def __init__(self, folder, socket, sends, name="gateway", interval_s=1):
        self.interval_ns = interval_s * 1_000_000_000
        folder = os.path.join(folder, name)
        os.makedirs(folder, exist_ok=True)
        super().__init__(folder, f"[Gateway]\nSocket={socket}\nIntervalSec={interval_s}\nHost=test-host\n"
                                 f"[Listen]\nSocket=none\n{sends}", ready=False)

    def stop(self, number=signal.SIGTERM):
        equal(super().stop(number), 0, f"status of the gateway: {self.log()[-2000:]}")

    def state_of(self, name):
        """What its file says, or None."""
        try:
            with open(os.path.join(self.state, f"{name}.json"), encoding="utf-8") as f:
                return json.load(f)
        except FileNotFoundError:
            return None

    def counter(self, name, key):
        return self.state_of(name)["counters"][key]

    def sent_until(self, name):
        """Everything before this time was sent or is lost for good, as of the last state that was written."""
        state = self.state_of(name)
        if not state:
            return 0
        return state["unsent"][0][0] if state["unsent"] else state["liveNs"]

    def settle(self, *names):
        """Waits until all that was recorded up to now is sent; that time, where an interval ends."""
        until = time.time_ns() // self.interval_ns * self.interval_ns
        self.wait_until(lambda: all(self.sent_until(name) >= until for name in names), f"what was recorded before {until} at {names}")
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
            status = self.gateway.status()
            if status and (not self.moments or status["nowUsec"] / 1e6 > self.moments[-1].at_s):
                send = next(each for each in status["destinations"] if each["name"] == self.name)
                self.moments.append(Moment(status["nowUsec"] / 1e6, (status["nowUsec"] - (status["source"]["untilUsec"] or 0)) / 1e6,
                                           send["liveLagUsec"] / 1e6, send["backlogUsec"] / 1e6, status["anonymousBytes"]))

    def between(self, since_s, until_s):
        return [moment for moment in self.moments if since_s <= moment.at_s <= until_s]
