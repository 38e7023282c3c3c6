# SPDX-License-Identifier: LGPL-2.1-or-later
"""A profd that records, a profd-gateway beside it, and a window that both have, for tests of what it answers over HTTP."""

import collections
import http.client
import os
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon, session  # noqa: E402
from gateway_program import Gateway  # noqa: E402
from profctl import profctl  # noqa: E402
from wire import Pprof, unpacked  # noqa: E402
from workload import need_root, scratch, spinning, wait_until  # noqa: E402
from tap import equal  # noqa: E402

FREQUENCY = 199
LIMIT_S = 90
RECORDED_S = 5
PROFILE_BYTES_MAX = 64 << 20


class Run:
    """One profd and one gateway for all tests, and a window that both have recorded."""

    daemon = None

    @classmethod
    def get(cls):
        need_root()
        if cls.daemon is None:
            cls.load = spinning()
            cls.spin = cls.load.__enter__()
            cls.folder = scratch()
            cls.path = cls.folder.__enter__()
            cls.daemon = Daemon(cls.path, config=session(Event="cpu-clock", Frequency=FREQUENCY))
            cls.port = free_port()
            # As the service has it: tables of symbols are made once.
            cache = os.path.join(cls.path, "cache")
            os.mkdir(cache, 0o700)
            cls.gateway = Gateway(cls.path, f"[Gateway]\nSocket={cls.daemon.control()}\nIntervalSec=1\n"
                                            f"[Listen]\nAddress=127.0.0.1:{cls.port}\n",
                                  env={**os.environ, "CACHE_DIRECTORY": cache})
            cls.since = int(time.time()) + 1
            wait_until(lambda: ask("/readyz")[0] == 200 and time.time() > cls.since + RECORDED_S, LIMIT_S, "a window to ask for")
        return cls

    @classmethod
    def end(cls):
        if cls.daemon:
            cls.gateway.kill()
            cls.daemon.kill()
            cls.folder.__exit__(None, None, None)
            cls.load.__exit__(None, None, None)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


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
    path = os.path.join(Run.path, "window.perf.data")
    if not os.path.exists(path):
        done = profctl("snapshot", "--since", f"@{Run.since}", "--until", f"@{Run.since + RECORDED_S}", "-o", path,
                       socket=Run.daemon.control())
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
