#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What profd-gateway answers over HTTP while a real profd records: go's pprof and perf see the same samples, Prometheus
reads the metrics, and any window of the past is one request away."""

import collections
import http.client
import os
import re
import shutil
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
from tap import check, equal, main, skip, test  # noqa: E402

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
            cls.gateway = Gateway(cls.path, f"[Gateway]\nSocket={cls.daemon.control()}\nIntervalSec=1\n"
                                            f"[Listen]\nAddress=127.0.0.1:{cls.port}\n")
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
    done = subprocess.run(["perf", "report", "--stdio", "-n", "-g", "none", "--children" if key == "parent" else "--no-children",
                           "-s", key, "-F", f"sample,{key}", "-t", "\t", "-i", snapshot()], capture_output=True, text=True, check=True)
    counts = collections.Counter()
    for line in done.stdout.splitlines():
        row = re.match(r"\s*(\d+)\t(.*)", line)
        if row:
            counts[row[2].strip()] += int(row[1])
    return counts


def counted(samples, value):
    counts = collections.Counter()
    for sample in samples:
        counts[value(sample)] += sample[1][0]
    return counts


@test
def profile_of_a_window_has_the_samples_that_perf_reports():
    got = profile(window())
    equal(got.types, [("samples", "count"), ("cpu", "nanoseconds")], "the types")
    equal((got.time_ns, got.duration_ns), (Run.since * 10**9, RECORDED_S * 10**9), "the window")
    by_comm = counted_by_perf("comm")
    check(sum(by_comm.values()) > FREQUENCY, f"perf reports {by_comm}")
    equal(counted(got.samples, lambda s: s[2]["comm"]), by_comm, "the samples by name of the process")
    names = counted(got.samples, lambda s: s[0][0])
    for name, count in counted_by_perf("sym").items():
        if "spin_" in name:
            equal(names[name.split()[-1]], count, f"the samples of {name}")


@test
def go_pprof_gets_the_past_at_once():
    if not shutil.which("go"):
        skip("go is not installed")
    Run.get()
    begin_ns = time.time_ns()
    # Its own cache is kept: this home is an empty one.
    done = subprocess.run(["go", "tool", "pprof", "-raw", f"http://127.0.0.1:{Run.port}/debug/pprof/profile?seconds=30"],
                          capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          env={**os.environ, "PPROF_TMPDIR": Run.path})
    equal(done.returncode, 0, done.stderr)
    duration = re.search(r"^Duration: 30s?$", done.stdout, re.M)
    check(duration, done.stdout[:500])
    path = [os.path.join(Run.path, name) for name in os.listdir(Run.path) if name.startswith("pprof.")]
    equal(len(path), 1, "the profiles that pprof kept")
    with open(path[0], "rb") as f:
        got = Pprof(unpacked(f.read(), PROFILE_BYTES_MAX))
    # It is the half minute before the request, so nothing was waited for.
    check(begin_ns < got.time_ns + got.duration_ns < begin_ns + 30 * 10**9, f"the window is {got.time_ns} + {got.duration_ns}")
    listed = re.search(r"^Samples:\n.*\n((?:.*\n)*?)Locations", done.stdout, re.M)[1]
    total = sum(int(count) for count in re.findall(r"^ +(\d+) +\d+: ", listed, re.M))
    equal(total, sum(sample[1][0] for sample in got.samples), "the samples that pprof prints")
    check(total > FREQUENCY, f"there are {total} samples")


@test
def process_and_unit_are_selected():
    whole = profile(window())
    pid = Run.spin.pid
    some = profile(f"{window()}&pid={pid}")
    equal(counted(some.samples, lambda s: s[2]["pid"]), {pid: counted(whole.samples, lambda s: s[2]["pid"])[pid]}, "the samples of a process")
    equal(profile(f"{window()}&unit=no-such.service").samples, [], "the samples of a unit that does not exist")


@test
def time_that_was_not_recorded_is_no_profile():
    Run.get()
    for query in ("since=1000000000&seconds=10", "since=1&seconds=3600"):
        status, _, body = ask(f"/debug/pprof/profile?{query}")
        equal((status, body), (404, b"Nothing was recorded in that time, or it was deleted.\n"), query)


@test
def curl_reaches_the_unix_socket_of_the_runtime_folder():
    Run.get()
    path = os.path.join(Run.gateway.runtime, "http")
    equal(os.stat(path).st_mode & 0o777, 0o660, "the mode of the socket")
    done = subprocess.run(["curl", "-sS", "--unix-socket", path, "http://localhost/debug/pprof/profile?" + window()],
                          capture_output=True, timeout=LIMIT_S, check=True)
    equal(sum(s[1][0] for s in Pprof(unpacked(done.stdout, PROFILE_BYTES_MAX)).samples), sum(counted_by_perf("comm").values()),
          "the samples")


@test
def metrics_are_of_profd_and_of_the_gateway():
    Run.get()
    text = ask("/metrics")[2].decode()
    said = profctl("metrics", socket=Run.daemon.control()).stdout
    names = [re.findall(r"^# TYPE (\S+)", each, re.M) for each in (text, said)]
    equal(names[0][:len(names[1])], names[1], "the metrics of profd")
    equal(len(set(names[0])), len(names[0]), "the number of names")
    check(re.search(r"^profd_up 1$", text, re.M) and "profd_gateway_scrapes_total" in names[0], text[-2000:])


@test
def many_clients_get_profiles_or_a_time_to_come_back():
    Run.get()
    program = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %header{retry-after}\\n", f"http://127.0.0.1:{Run.port}/debug/pprof/profile?seconds=30"]
    clients = [subprocess.Popen(program, stdout=subprocess.PIPE, text=True) for _ in range(12)]
    answers = collections.Counter(client.communicate(timeout=LIMIT_S)[0].strip() for client in clients)
    equal(set(answers) | {"200", "503 5"}, {"200", "503 5"}, "the answers")
    check(answers["200"] >= 4, f"the answers are {answers}")


@test
def answers_say_that_profd_is_away():
    run = Run.get()
    run.daemon.kill()
    wait_until(lambda: ask("/readyz")[0] == 503, LIMIT_S, "the gateway to notice")
    status, headers, body = ask("/debug/pprof/profile?seconds=5")
    equal((status, headers["Retry-After"], body), (503, "5", b"profd does not answer; ask again when it runs.\n"), "the answer")
    status, _, text = ask("/metrics")
    equal(status, 200, "the status of the metrics")
    check(re.search(rb"^profd_up 0$", text, re.M) and b"profd_gateway_source_up 0" in text, text[-1000:])
    equal(ask("/healthz")[0], 200, "the health")


if __name__ == "__main__":
    try:
        main()
    finally:
        Run.end()
