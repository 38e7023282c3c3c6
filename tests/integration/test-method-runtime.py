#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions that a client began, rest or were stopped, over recorders that die or make room, and
their end with profd as a whole."""

import contextlib
import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from varlink import Gone, Varlink  # noqa: E402
from workload import CPUS, in_namespaces, need_root, perf_record, scratch, spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

PERIOD_NS = 10**9 // 999
CONFIG = "[Profd]\nFlushIntervalSec=500ms\n" + session(Frequency=99) + session("other", Frequency=99)
WEB = {"Event": "cpu-clock", "Frequency": "999"}


def states(daemon):
    with Varlink(daemon.control()) as v:
        return {s["name"]: s["state"] for s in v.members("ListSessions", "session")}


def told(daemon, name):
    with Varlink(daemon.control()) as v:
        return v.call("ListSessions", session=name)[0]["session"]


def kill_recorder(daemon):
    mark = daemon.mark()
    os.kill(daemon.recorder(), signal.SIGKILL)
    daemon.wait_for_log("Recording ", mark)


def replace_recorder(daemon):
    mark, pid = daemon.mark(), daemon.recorder()
    daemon.send(signal.SIGUSR1)
    daemon.wait_for_log("Recording ", mark)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 20, "the old recorder to end")


@test
def a_session_lives_on_without_a_gap_when_recorders_change():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        with Varlink(daemon.control()) as v:
            v.one("Start", session="web", settings=WEB)
        wait_until(lambda: told(daemon, "web")["samples"] > 200, 20, "samples")
        with perf_record(os.path.join(folder, "perf.data")) as perf:
            time.sleep(0.5)
            kill_recorder(daemon)
            time.sleep(0.5)
            replace_recorder(daemon)
            time.sleep(0.5)
        said = told(daemon, "web")
        equal((said["state"], said["runtime"], said["frequency"]), ("active", True, 999), "the session")
        with Varlink(daemon.control()) as v:
            v.one("Stop", session="web")
        segments = daemon.segments("web")
        samples, reference = recording.samples(segments), recording.samples(perf.path)
        equal(recording.twice(samples)[:3], [], "samples that are there twice")
        equal(recording.lost(segments), 0, "samples that the kernel dropped")
        equal(recording.seams(samples, reference, PERIOD_NS, range(CPUS))[:3], [], "gaps")
        check("web" not in states(daemon), "it is listed after it was stopped")
        kill_recorder(daemon)
        check("web" not in states(daemon), "it came back")


@test
def stopped_and_paused_sessions_stay_so_when_recorders_change():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        with Varlink(daemon.control()) as v:
            v.one("Start", session="web", settings=WEB)
            v.one("Pause", session="web")
            v.one("Stop", session="other")
            v.one("SetLogLevel", level="debug")
        wanted = {"default": "active", "other": "inactive", "web": "paused"}
        for change in (kill_recorder, replace_recorder):
            equal(states(daemon), wanted, "states")
            change(daemon)
        equal(states(daemon), wanted, "states")
        with Varlink(daemon.control()) as v:
            equal(v.one("SetLogLevel", level="info")["previous"], "debug", "the level of the log")
        before = told(daemon, "web")["samples"]
        time.sleep(0.7)
        equal(told(daemon, "web")["samples"], before, "samples while it is paused")
        with Varlink(daemon.control()) as v:
            v.one("Resume", session="web")
            v.one("Start", session="other")
        wait_until(lambda: told(daemon, "web")["samples"] > before + 100, 20, "samples")
        equal(states(daemon), {"default": "active", "other": "active", "web": "active"}, "states")


@test
def a_changed_enabled_counts_for_the_next_recorder():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        for enabled, wanted in (("no", "inactive"), ("yes", "active")):
            daemon.configure(CONFIG + f"Enabled={enabled}\n")
            replace_recorder(daemon)
            equal(states(daemon), {"default": "active", "other": wanted}, f"states after Enabled={enabled}")
            kill_recorder(daemon)
            equal(states(daemon), {"default": "active", "other": wanted}, "states after a kill")


@test
def a_session_that_is_begun_anew_is_never_kept_as_stopped():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        with Varlink(daemon.control()) as v:
            v.one("Stop", session="other")
            v.one("Start", session="other")
        seen, over = set(), threading.Event()

        def watch():
            while not over.wait(0.001):
                with open(f"{folder}/run/.sessions.json", encoding="utf-8") as f, contextlib.suppress(json.JSONDecodeError):
                    seen.update(s["state"] for s in json.load(f)["sessions"])

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for hertz in (49, 99, 199, 49, 99):
                mark = daemon.mark()
                daemon.configure(CONFIG.replace("=99", f"={hertz}"))
                daemon.send(signal.SIGHUP)
                daemon.wait_for_log("Stopped session 'other'", mark)
                wait_until(lambda: set(states(daemon).values()) == {"active"}, 20, "both sessions")
        finally:
            over.set()
            watcher.join()
        check("active" in seen and "inactive" not in seen, f"states in the file: {seen}")


def n_events(daemon):
    folder, n = f"/proc/{daemon.recorder()}/fd", 0
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            n += os.readlink(f"{folder}/{name}") == "anon_inode:[perf_event]"
    return n


@test
def requested_namespaces_are_recorded_by_later_recorders_too():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        with Varlink(daemon.control()) as v:
            v.one("Start", session="web", settings={**WEB, "Namespaces": "yes"})
        n = n_events(daemon)
        for change in (kill_recorder, replace_recorder):
            change(daemon)
            equal(n_events(daemon), n, "events that are open")
        before = told(daemon, "web")["samples"]
        with in_namespaces() as inode:
            wait_until(lambda: told(daemon, "web")["samples"] > before + 200, 20, "samples")
        with Varlink(daemon.control()) as v:
            v.one("Stop", session="web")
        check(inode in recording.namespaces(daemon.segments("web"), "uts"), f"nothing tells of {inode}")


@test
def a_deadline_outlives_a_recorder_that_died():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        with Varlink(daemon.control()) as v:
            stops = v.one("Start", session="web", settings=WEB, durationUsec=4_000_000)["session"]["stopsUsec"]
        kill_recorder(daemon)
        again = told(daemon, "web")["stopsUsec"]
        check(abs(again - stops) < 200_000, f"it stops at {again}, not at {stops}")
        wait_until(lambda: "web" not in states(daemon), 30, "its end")
        check(time.time() * 1e6 >= stops, "it ended too early")
        equal(daemon.open_segments("web"), [], "what it left open")


@test
def a_session_started_by_hand_ends_with_profd_and_is_logged():
    need_root()
    with scratch() as folder:
        for end in ("stop", "kill"):
            with Daemon(folder, config=CONFIG) as daemon:
                with Varlink(daemon.control()) as v:
                    v.one("Start", session="web", settings=WEB)
                    v.one("Stop", session="other")
                    v.one("SetLogLevel", level="debug")
                if end == "stop":
                    equal(daemon.stop(), 0, "status")
                    check("'web' was begun by 'profctl start' and ends" in daemon.log(), f"the log says {daemon.log()[-1000:]}")
                else:
                    daemon.kill()
                # A recorder may see its keeper go before it is killed itself, and say so then.
                said = "'web' was begun by 'profctl start' and ends" in daemon.log()
            with Daemon(folder, config=CONFIG) as daemon:
                equal(states(daemon), {"default": "active", "other": "active"}, "states after a new start")
                equal("ended with the previous profd" in daemon.log(), not said, "the log tells of it at the start")
            # A second start has nothing to tell any more.
            with Daemon(folder, config=CONFIG) as daemon:
                with Varlink(daemon.control()) as v:
                    equal(v.one("SetLogLevel", level="info")["previous"], "info", "the level of the log")
                check("ended with the previous profd" not in daemon.log(), "the log tells of it twice")


@test
def a_client_is_disconnected_when_the_recorder_dies_and_may_connect_again():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        with Varlink(daemon.control()) as monitor:
            events = monitor.each("Monitor")
            next(events)
            os.kill(daemon.recorder(), signal.SIGKILL)
            try:
                for _ in events:
                    pass
                check(False, "the stream ended well")
            except (Gone, ConnectionError):
                pass
        # The keeper listens meanwhile: who calls now waits for the next recorder.
        with Varlink(daemon.control()) as v:
            equal(v.one("Ping"), {}, "the answer")


if __name__ == "__main__":
    main(at_once=3)
