#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions side by side: to start or stop one that takes all of a subsystem's tracepoints costs the
others no sample, however long the kernel takes to open and close its events."""

import contextlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from profctl import ended, profctl  # noqa: E402
from workload import CPUS, LONG, need_root, scratch  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

TIMES = 10 if LONG else 3
TRACEPOINTS = ("/sys/kernel/tracing/events/sched", "/sys/kernel/debug/tracing/events/sched")
# Its rings hold the switches of some hundred milliseconds, less than it takes to open the events.
CONFIG = session(Frequency=99) + \
    session("switches", Event="sched:sched_switch", Period=1, CallGraph="none")
# Two processes that wake each other, some thousand times a second.
PING = """
import os, time
a, b = os.pipe(), os.pipe()
if os.fork():
    while True:
        os.write(a[1], b"x"); os.read(b[0], 1); time.sleep(5e-5)
while os.read(a[0], 1):
    os.write(b[1], b"x")
"""


@contextlib.contextmanager
def switching():
    """So many switches on every CPU that a ring is full soon."""
    processes = [subprocess.Popen([sys.executable, "-c", PING], start_new_session=True) for _ in range(CPUS)]
    try:
        yield
    finally:
        for process in processes:
            os.killpg(process.pid, 9)
            process.wait()


def samples_of(segments):
    return sum(recording.manifest(path)["samples"] for path in segments)


def start_and_stop(daemon, name):
    """From when to when it was there."""
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    ended(profctl("start", name, "--event=sched:sched_*", "--set=Period=1", "--call-graph=none",
                  socket=daemon.control()), 0)
    time.sleep(0.5)
    ended(profctl("stop", name, socket=daemon.control()), 0)
    time.sleep(1.2)  # losses are counted each second
    return begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC)


@test
def a_session_loses_nothing_while_another_with_many_tracepoints_starts_and_stops():
    need_root()
    if not any(os.path.exists(path) for path in TRACEPOINTS):
        skip("tracefs is not mounted")
    # As in a service: where sessions of processes share the CPUs, it has one of its own.
    with scratch() as folder, switching(), Daemon(folder, config=CONFIG, start_new_session=True) as daemon:
        time.sleep(2)
        spans = [start_and_stop(daemon, f"noisy{i}") for i in range(TIMES)]
        equal(daemon.stop(), 0, f"status of profd ({daemon.log()[-1000:]})")
        segments = daemon.segments("switches")
        begin, end = spans[0][0], spans[-1][1]
        seen = samples_of(segments)
        noisy = [samples_of(daemon.segments(f"noisy{i}")) for i in range(TIMES)]
        check(seen > 1000 * (end - begin) // 10**9, f"only {seen} switches in all")
        check(all(n > 100 for n in noisy), f"samples of the sessions beside it: {noisy}")
        equal(recording.lost(segments, begin, end), 0,
              f"samples that were lost beside {seen} while the others started and stopped, and what was lost")
        equal(recording.lost(daemon.segments()), 0, "lost samples of the session 'default'")


if __name__ == "__main__":
    main()
