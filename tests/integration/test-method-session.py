#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions at a client's word: start with the settings of the configuration, stop, pause, resume,
rotate, each with its named errors, and what a monitor hears of it."""

import contextlib
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import session  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Varlink, fault  # noqa: E402
from workload import in_namespaces, now_ns, spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

CONFIG = "[Profd]\nFlushIntervalSec=500ms\nMaxSessions=3\nMaxFrequency=5000\nMaxBufferTotal=8M\n" + \
    session(Frequency=199) + session("spare", Enabled="no", Frequency=299)
SETTLED_NS = 50_000_000
HEALTH = ("degraded", "recovered", "lost")  # which come as the machine is


class Run(Scene):
    config, load = CONFIG, contextlib.nullcontext


def connected():
    return Varlink(Run.control())


def states(v):
    return {s["name"]: s["state"] for s in v.members("ListSessions", "session")}


@test
def sessions_are_listed_with_their_settings():
    with connected() as v:
        equal(states(v), {"default": "active", "spare": "inactive"}, "states")
        said = v.call("ListSessions", session="default")[0]["session"]
        equal((said["frequency"], said["callGraph"], said["target"], said["layout"], said["runtime"]),
              (199, "auto", "all", "file", False), "what it is")
        equal(said["cpus"], os.cpu_count(), "CPUs")
        check(said["segment"].startswith(Run.get().daemon.store), f"its segment is {said['segment']}")
        with fault("NoSuchSession", session="none"):
            v.call("ListSessions", session="none")


@test
def a_session_begins_with_settings_and_ends_with_a_finished_segment():
    with connected() as v, spinning(nice=0):
        said = v.one("Start", session="web", settings={"Event": "cpu-clock:u", "Frequency": "999", "CallGraph": "none",
                                                       "CPUs": "0", "Layout": "directory"})["session"]
        equal((said["state"], said["runtime"], said["cpus"], said["layout"]), ("active", True, 1, "directory"), "it")
        wait_until(lambda: v.call("ListSessions", session="web")[0]["session"]["samples"] > 200, 20, "samples")
        said = v.one("Stop", session="web")["session"]
        equal(said["state"], "inactive", "state")
        segments = Run.get().daemon.segments("web")
        equal((len(segments), Run.get().daemon.open_segments("web")), (1, []), "segments when Stop() answers")
        samples = recording.samples(segments)
        equal(len(samples), said["samples"], "samples in the file and in the answer")
        equal({s.cpu for s in samples}, {0}, "CPUs")
        recording.check_clean(segments)
        equal(states(v), {"default": "active", "spare": "inactive"}, "states")


@test
def a_wrong_parameter_of_a_start_is_named():
    bad = {"Frequency": "often", "Event": "a,,b", "CallGraph": "dwarf:x", "Cgroup": "../up", "CPUs": "3-1",
           "Layout": "heap", "Compress": "zip", "BufferSize": "3K", "Nonsense": "1", "Enabled": "no"}
    with connected() as v:
        for key, value in bad.items():
            with fault("BadSetting", key=key, value=value):
                v.one("Start", session="web", settings={key: value})
        with fault("BadSetting", key="Frequency"):
            v.one("Start", session="web", settings={"Event": "cpu-clock", "Frequency": "5001"})
        with fault("BadSetting", key="Pid"):
            v.one("Start", session="web", settings={"Cgroup": "a", "Pid": "1"})
        for name in ("", "../etc", "a/b", "-x", "x" * 64, "ä"):
            with fault("InvalidParameter", parameter="session"):
                v.one("Start", session=name)
        for span in (0, -5, 1 << 62):
            with fault("InvalidParameter", parameter="durationUsec"):
                v.one("Start", session="web", durationUsec=span)
        for name, settings, near in (("spere", {}, ["spare"]), ("defaultt", {"Frequency": "99"}, ["default"]),
                                     ("web", {"CPUs": "0"}, None)):
            with fault("NotConfigured", **({"near": near} if near else {}), session=name):
                v.one("Start", session=name, settings=settings)
        with fault("NoSuchSession", session="defaultt", near=["default"]):
            v.one("Stop", session="defaultt")
        with fault("SessionExists", session="default"):
            v.one("Start", session="default")
        with fault("SessionExists", session="spare"):
            v.one("Start", session="spare", settings={"Frequency": "99"})
        with fault("EventUnsupported", event="no-such-event"):
            v.one("Start", session="web", settings={"Event": "no-such-event"})
        with fault("NoSuchCgroup", session="web", cgroup="no/such/group"):
            v.one("Start", session="web", settings={"Event": "cs", "Cgroup": "no/such/group"})
        with fault("NoSuchProcess", session="web", pid=4194303):
            v.one("Start", session="web", settings={"Event": "cpu-clock", "Pid": "4194303"})
        equal(states(v), {"default": "active", "spare": "inactive"}, "states after all that")


@test
def the_number_of_sessions_is_limited():
    with connected() as v:
        for name in ("a", "b"):
            v.one("Start", session=name, settings={"Event": "cpu-clock"})
        mark = Run.get().daemon.mark()
        with fault("TooManySessions", limit=3):
            v.one("Start", session="c", settings={"Event": "cpu-clock"})
        Run.get().daemon.wait_for_log(rf"Refused Start to user {v.uid} \(pid {v.pid}\).*TooManySessions", mark)
        with fault("TooManySessions", limit=3):
            v.one("Start", session="spare")
        for name in ("a", "b"):
            v.one("Stop", session=name)


@test
def a_session_with_a_duration_ends_by_itself():
    with connected() as v, Varlink(Run.control()) as monitor:
        events = monitor.each("Monitor")
        equal(next(events)["event"], "ready", "the first event")
        begun = time.time()
        said = v.one("Start", session="brief", settings={"Event": "cpu-clock"}, durationUsec=700_000)["session"]
        check(0 < said["stopsUsec"] / 1e6 - begun < 5, f"it says that it stops at {said['stopsUsec']}, now is {begun}")
        names = []
        for event in events:
            check(event["session"] in ("brief", "default"), f"{event}")
            names += [event["event"]] if event["session"] == "brief" and event["event"] not in HEALTH else []
            if event["event"] == "stopped":
                break
        equal(names, ["started", "stopped"], "what a monitor heard")
        check(time.time() - begun >= 0.7, "it ended too early")
        check("brief" not in states(v), "it is still listed")
        equal((len(Run.get().daemon.segments("brief")), Run.get().daemon.open_segments("brief")), (1, []), "its segments")


@test
def a_reload_that_reopens_a_session_keeps_the_time_when_it_ends():
    daemon = Run.get().daemon

    def reload(frequency):
        with open(daemon.config_path, "w", encoding="utf-8") as f:
            f.write(CONFIG.replace("Frequency=199", f"Frequency={frequency}"))
        v.one("Reload")
        wait_until(lambda: states(v)["default"] == "active" and v.call("ListSessions", session="default")[0]["session"]["frequency"] == frequency,
                   20, "the session to begin again")

    with connected() as v:
        v.one("Stop", session="default")
        ends = v.one("Start", session="default", durationUsec=3600_000_000)["session"]["stopsUsec"]
        reload(198)
        moved = v.call("ListSessions", session="default")[0]["session"]["stopsUsec"]
        check(moved and abs(moved - ends) < 1_000_000, f"it ended at {ends} and ends at {moved}")
        v.one("Stop", session="default")
        v.one("Start", session="default")
        reload(199)
        equal(v.call("ListSessions", session="default")[0]["session"]["stopsUsec"], None, "one without an end")


@test
def a_stopped_configured_session_stays_stopped_until_it_is_started_by_name():
    daemon = Run.get().daemon
    with connected() as v:
        equal(v.one("Stop", session="default")["session"]["state"], "inactive", "state")
        for _ in range(2):
            with fault("SessionNotActive", session="default", state="inactive"):
                v.one("Stop", session="default")
        for method in ("Pause", "Resume", "Rotate"):
            with fault("SessionNotActive", session="default", state="inactive"):
                v.one(method, session="default")
        equal(v.one("GetStatus")["state"], "idle", "state of the whole")
        v.one("Reload")
        equal(states(v)["default"], "inactive", "state after a reload")
        equal(v.one("Start", session="default")["session"]["state"], "active", "state after a start")
        equal(v.one("Start", session="spare")["session"]["frequency"], 299, "rate of one that is not enabled")
        v.one("Stop", session="spare")
        equal(states(v), {"default": "active", "spare": "inactive"}, "states")
        equal(daemon.open_segments("spare"), [], "what it left open")


@test
def a_missing_session_is_named():
    with connected() as v:
        for method in ("Stop", "Pause", "Resume", "Rotate"):
            for name in ("none", "../../etc"):
                with fault("NoSuchSession", session=name):
                    v.one(method, session=name)


@test
def a_pause_is_only_a_gap():
    daemon = Run.get().daemon
    with connected() as v, spinning(nice=0):
        v.one("Start", session="gap", settings={"Event": "cpu-clock", "Frequency": "999"})
        wait_until(lambda: v.call("ListSessions", session="gap")[0]["session"]["samples"] > 100, 20, "samples")
        v.one("Pause", session="gap")
        paused = now_ns()
        equal(states(v)["gap"], "paused", "state")
        v.one("Pause", session="gap")
        # A process that begins while the session is paused is known when it goes on.
        with spinning(0, nice=0):
            time.sleep(0.5)
            resumed = now_ns()
            v.one("Resume", session="gap")
            equal(states(v)["gap"], "active", "state")
            time.sleep(0.7)
        v.one("Stop", session="gap")
        segments = daemon.segments("gap")
        samples = recording.samples(segments)
        within = [s for s in samples if paused + SETTLED_NS < s.time < resumed]
        equal(within[:3], [], "samples of the time when it was paused")
        check([s for s in samples if s.time < paused] and [s for s in samples if s.time > resumed], "no samples around")
        recording.check_clean(segments)
        recording.check_names(recording.rows(segments), at_least=50)
        gaps = [gap["reason"] for s in segments for gap in recording.manifest(s)["gaps"]]
        equal(gaps, ["paused"], "gaps in the manifests")


@test
def a_rotation_answers_when_the_segment_can_be_read():
    daemon = Run.get().daemon
    with connected() as v:
        v.one("Start", session="web", settings={"Event": "cpu-clock"})
        for _ in range(3):
            paths = v.one("Rotate", session="default")["segments"]
            equal(len(paths), 1, "segments")
            check(os.path.exists(paths[0]), f"{paths[0]} is not there")
        paths = v.one("Rotate")["segments"]
        equal(len(paths), 2, "segments of two sessions")
        recording.check_clean(paths)
        v.one("Stop", session="web")
        equal(len(daemon.open_segments()), 1, "open segments")


def told(daemon, v, name):
    """Namespaces of host names that what is recorded so far tells of."""
    v.one("Rotate", session=name)
    return recording.namespaces(daemon.segments(name), "uts")


@test
def namespaces_can_be_requested_at_any_time_without_a_gap():
    daemon = Run.get().daemon
    with connected() as v:
        before = v.call("ListSessions", session="default")[0]["session"]
        with in_namespaces() as old:
            v.one("Start", session="spaces", settings={"Event": "cpu-clock", "Frequency": "999", "Namespaces": "yes"})
            with in_namespaces() as new:
                wait_until(lambda: told(daemon, v, "spaces") >= {old, new}, 20, f"both {old} and {new} to be told of")
        v.one("Stop", session="spaces")
        after = v.call("ListSessions", session="default")[0]["session"]
        equal((after["segment"], after["lost"]), (before["segment"], before["lost"]), "the other session")


@test
def a_monitor_gets_events_in_their_order():
    with connected() as v, Varlink(Run.control()) as monitor:
        events = monitor.each("Monitor")
        next(events)
        v.one("Start", session="heard", settings={"Event": "cpu-clock"})
        v.one("Pause", session="heard")
        v.one("Resume", session="heard")
        path = v.one("Rotate", session="heard")["segments"][0]
        v.one("Stop", session="heard")
        v.one("Reload")
        heard = []
        for event in events:
            heard += [event] if event["session"] in ("heard", None) and event["event"] not in HEALTH else []
            if event["event"] == "reloaded":
                break
        equal([e["event"] for e in heard], ["started", "paused", "resumed", "rotated", "stopped", "reloaded"], "events")
        equal(heard[3]["path"], path, "path of the segment")
        times = [e["timeUsec"] for e in heard]
        equal(times, sorted(times), "times")


@test
def a_cgroup_must_be_below_the_root():
    with connected() as v:
        for path in ("..", "a/../../b", "a/./b", "/", "a//b"):
            with fault("BadSetting", key="Cgroup"):
                v.one("Start", session="group", settings={"Cgroup": path})


@test
def changes_are_logged_with_the_user_who_made_them():
    daemon = Run.get().daemon
    with connected() as v:
        mark = daemon.mark()
        v.one("Rotate", session="default")
        daemon.wait_for_log(rf"(?i)user 0 \(pid {os.getpid()}\).*Rotate", mark)


@test
def a_session_that_begins_late_has_the_names_of_short_lived_processes():
    with connected() as v:
        v.one("Start", session="late", settings={"Event": "cpu-clock", "Frequency": "999"})
        with spinning(nice=0):
            time.sleep(0.7)
        v.one("Stop", session="late")
        recording.check_names(recording.rows(Run.get().daemon.segments("late")), at_least=100)


if __name__ == "__main__":
    main()
