# SPDX-License-Identifier: LGPL-2.1-or-later
"""A profd that records, a profd-gateway beside it, and a window that both have, for tests of what it answers over HTTP."""

import collections
import http.client
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import session  # noqa: E402
from gateway import Gateway  # noqa: E402
from profctl import profctl  # noqa: E402
from scene import Scene  # noqa: E402
from wire import Pprof, unpacked  # noqa: E402
from workload import free_port, wait_until  # noqa: E402
from tap import equal  # noqa: E402

FREQUENCY = 199
LIMIT_S = 90
RECORDED_S = 5
PROFILE_BYTES_MAX = 64 << 20


class Run(Scene):
    """One profd and one gateway for all tests, and a window that both have recorded."""

    config = session(Event="cpu-clock", Frequency=FREQUENCY)

    @classmethod
    def begin(cls, enter):
        super().begin(enter)
        cls.port = free_port()
        # As the service has it: tables of symbols are made once.
        cache = os.path.join(cls.folder, "cache")
        os.mkdir(cache, 0o700)
        cls.gateway = enter(Gateway(cls.folder, f"[Gateway]\nSocket={cls.daemon.control()}\nIntervalSec=1\n"
                                                f"[Listen]\nAddress=127.0.0.1:{cls.port}\n",
                                    env={**os.environ, "CACHE_DIRECTORY": cache}))
        cls.since = int(time.time()) + 1
        wait_until(lambda: ask("/readyz")[0] == 200 and time.time() > cls.since + RECORDED_S, LIMIT_S, "a window to ask for")


def ask(path):
    c = http.client.HTTPConnection("127.0.0.1", Run.port, timeout=LIMIT_S)
    try:
        c.request("GET", path)
        answer = c.getresponse()
        return answer.status, answer.headers, answer.read()
    except ConnectionRefusedError:
        return 0, {}, b""
    finally:
        c.close()


def profile(query):
    status, _, body = ask(f"/debug/pprof/profile?{query}")
    equal(status, 200, f"the status of {query} ({body[:200]})")
    return Pprof(unpacked(body, PROFILE_BYTES_MAX))


def window():
    """The query of the recorded window."""
    return f"since={Run.get().since}&seconds={RECORDED_S}"


def snapshot():
    """A recording of the same window."""
    path = os.path.join(Run.folder, "window.perf.data")
    if not os.path.exists(path):
        done = profctl("snapshot", "--since", f"@{Run.since}", "--until", f"@{Run.since + RECORDED_S}", "-o", path,
                       socket=Run.control())
        equal(done.returncode, 0, done.stderr)
    return path


def counted_by_perf(key):
    """Samples by the values of a key of perf report."""
    done = subprocess.run(["perf", "report", "--stdio", "-g", "none", "--no-children", "-s", key, "-F", f"sample,{key}", "-t", "\t",
                           "-w", "20,300", "-i", snapshot()], capture_output=True, text=True, check=True)
    counts = collections.Counter()
    for line in done.stdout.splitlines():
        row = re.match(r"\s*(\d+) *\t(.*)", line)
        if row:
            counts[row[2].strip()] += int(row[1])
    return counts


def counted(samples, value):
    counts = collections.Counter()
    for sample in samples:
        counts[value(sample)] += sample[1][0]
    return counts
