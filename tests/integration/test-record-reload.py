#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""SIGHUP: a broken file changes nothing and is told by line; where one session changes, the others
go on without a gap."""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import CPUS, LONG, need_root, perf_record, scratch, spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

PERIOD_NS = 10**9 // 999
ROUNDS = 10 if LONG else 2
STEADY = session(Frequency=999)


def config(hz, *more):
    return STEADY + session("other", Frequency=hz, Compress="none") + "".join(more)


def periods(path):
    return {round(10**9 / r["period"]) for r in recording.records(path, "SAMPLE")}


@test
def a_broken_configuration_changes_nothing():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=config(199)) as daemon:
        wait_until(lambda: daemon.open_segments() and daemon.open_segments("other"), 10, "open segments")
        before, recorder = daemon.open_segments() + daemon.open_segments("other"), daemon.recorder()
        daemon.configure(config(299) + "[Session other]\nFrequency=often\n")
        mark = daemon.mark()
        daemon.send(signal.SIGHUP)
        daemon.wait_for_log(r"profd-test.conf:\d+: Frequency=", mark)
        time.sleep(1)
        equal(daemon.open_segments() + daemon.open_segments("other"), before, "open segments")
        equal(daemon.recorder(), recorder, "recorder")
        equal(daemon.stop(), 0, "status")
        equal(periods(daemon.segments("other")[-1]), {199}, "rates of the session that was to change")


@test
def sessions_that_did_not_change_have_no_gap():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=config(199)) as daemon:
        first = wait_until(daemon.open_segments, 10, "an open segment")
        with perf_record(os.path.join(folder, "perf.data")) as perf:
            for i in range(ROUNDS):
                time.sleep(1)
                segments = len(daemon.segments("other"))
                daemon.configure(config(299 + 100 * i))
                daemon.send(signal.SIGHUP)
                daemon.wait_for_segments(segments + 1, "other")
            time.sleep(1)
        equal(daemon.open_segments(), first, "open segment of the session that did not change")
        equal(daemon.stop(), 0, "status")
        samples, reference = recording.samples(daemon.segments()), recording.samples(perf.path)
        equal(recording.twice(samples), [], "samples that are there twice")
        equal(recording.seams(samples, reference, PERIOD_NS, range(CPUS))[:3], [], "gaps")
        equal(periods(daemon.segments("other")[-1]), {299 + 100 * (ROUNDS - 1)}, "rates of the one that changed")
        recording.check_clean(daemon.segments() + daemon.segments("other"))


@test
def a_reload_adds_and_removes_sessions():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=STEADY) as daemon:
        daemon.configure(config(499, session("third", Frequency=99, Layout="directory")))
        daemon.send(signal.SIGHUP)
        wait_until(lambda: daemon.open_segments("third"), 10, "a session that is new")
        time.sleep(1)
        daemon.configure(config(499, session("third", Enabled="no")))
        daemon.send(signal.SIGHUP)
        daemon.wait_for_segments(1, "third")
        equal(daemon.open_segments("third"), [], "what the session that went left open")
        equal(daemon.stop(), 0, "status")
        for name in ("default", "other", "third"):
            recording.check_clean(daemon.segments(name))
            check(recording.samples(daemon.segments(name)), f"{name} has no sample")


@test
def a_session_that_was_started_for_a_while_ends_in_time_although_it_is_reopened():
    need_root()
    with scratch() as folder, Daemon(folder, config=config(199)) as daemon, Varlink(daemon.control()) as v:
        v.one("Stop", session="other")
        stops = v.one("Start", session="other", durationUsec=8_000_000)["session"]["stopsUsec"]
        segments = len(daemon.segments("other"))
        daemon.configure(config(299))
        v.one("Reload")
        daemon.wait_for_segments(segments + 1, "other")

        def other():
            return next(s for s in v.members("ListSessions", "session") if s["name"] == "other")

        wait_until(lambda: other()["state"] == "active", 5, "the session to go on")
        check(abs(other()["stopsUsec"] - stops) < 100_000, f"it stops at {other()['stopsUsec']}, and was to stop at {stops}")
        wait_until(lambda: other()["state"] == "inactive", 12, "its end")
        check(0 <= time.time() - stops / 1e6 < 4, f"it ended at {time.time()}, and was to end at {stops / 1e6}")
        equal(daemon.stop(), 0, "status")


if __name__ == "__main__":
    main(at_once=1 if LONG else 2)
