#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions side by side: to start or stop one that takes all of a subsystem's tracepoints costs the
others no sample, however long the kernel takes to open and close its events."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from profctl import ended, profctl  # noqa: E402
from varlink import Fault, Varlink  # noqa: E402
from workload import CPUS, LONG, load, need_root, scratch, wait_until  # noqa: E402
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


def notifications():
    """A socket for what profd says to its service manager, and its address."""
    notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    notified.bind("\0profd-test-beside-%d" % os.getpid())
    return notified, "@profd-test-beside-%d" % os.getpid()


def fed(notified):
    """How often the watchdog was fed since the last time."""
    n = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            n += notified.recv(4096) == b"WATCHDOG=1"
    return n


@contextlib.contextmanager
def slow_kernel(daemon):
    """The keeper, which opens and closes events, gets no further: so does one that waits for the kernel."""
    os.kill(daemon.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)


def the(v, name):
    return v.call("ListSessions", session=name)[0]["session"]


def names(v):
    return sorted(one["session"]["name"] for one in v.call("ListSessions"))


def fault(v, method, **parameters):
    """The name of the error that it ends with."""
    try:
        v.one(method, **parameters)
    except Fault as error:
        return error.name
    return None


@test
def profd_records_answers_and_notifies_the_watchdog_while_a_session_opens():
    need_root()
    notified, address = notifications()
    env = {**os.environ, "NOTIFY_SOCKET": address, "WATCHDOG_USEC": "400000"}
    with scratch() as folder, load("spin", 0), \
            Daemon(folder, config=session(Frequency=499), env=env) as daemon, \
            Varlink(daemon.control()) as v, Varlink(daemon.control()) as starter, Varlink(daemon.control()) as second:
        with slow_kernel(daemon):
            starter.send("Start", {"session": "slow", "settings": {"Event": "page-faults"}})
            second.send("Start", {"session": "dropped", "settings": {"Event": "page-faults"}})
            wait_until(lambda: names(v) == ["default", "dropped", "slow"], 10, "both to be asked for")
            fed(notified)
            before = the(v, "default")["samples"]
            wait_until(lambda: fed(notified) > 0, 10, "the watchdog to be fed")
            # What nobody takes out of the socket of notifications would hold up who sends them.
            wait_until(lambda: fed(notified) >= 0 and the(v, "default")["samples"] > before + 100, 20,
                       "the session beside it to record")
            equal(the(v, "slow")["state"], "starting", "state")
            equal(fault(v, "Start", session="slow"), "SessionExists", "a second start")
            # A user who changes his mind need not wait for it either.
            equal(v.one("Stop", session="dropped")["session"]["state"], "inactive", "state once it is stopped")
            check("error" in second.receive(), "a start that was stopped succeeded")
        equal(starter.receive()["parameters"]["session"]["name"], "slow", "what was started once the kernel went on")
        equal(v.one("Stop", session="slow")["session"]["state"], "inactive", "state")
        equal(names(v), ["default"], "sessions in the end")
        equal(daemon.stop(), 0, f"status of profd ({daemon.log()[-1000:]})")
        equal(recording.lost(daemon.segments()), 0, "lost samples of the session 'default'")


@test
def a_session_ends_while_the_kernel_is_slow_to_close_its_events():
    need_root()
    with scratch() as folder, Daemon(folder, config=session(Frequency=99) + session("more")) as daemon, \
            Varlink(daemon.control()) as v:
        with slow_kernel(daemon):
            equal(v.one("Stop", session="more")["session"]["state"], "inactive", "state")
        # Its events are closed by now or soon, and do not stand in the way of new ones.
        v.one("Start", session="more")
        wait_until(lambda: the(v, "more")["samples"] > 10, 20, "it to record again")


if __name__ == "__main__":
    main()
