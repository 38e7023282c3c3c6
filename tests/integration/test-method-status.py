#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd describes itself: status, reasons with their remedy, metrics, the configuration with
the place of each value, and a new one."""

import contextlib
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon, session  # noqa: E402
from profctl import profctl  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Varlink, fault  # noqa: E402
from workload import scratch, spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

STEADY = "[Profd]\nFlushIntervalSec=500ms\nMaxUse=64M\n" + session(Event="cpu-clock", Frequency=99)
COUNTER = re.compile(r"profd_[a-z0-9_]+_total")
GAUGE = re.compile(r"profd_[a-z0-9_]+")


class Run(Scene):
    config, load = STEADY, contextlib.nullcontext


def connected():
    return Varlink(Run.control())


def settings(v, section, **where):
    return {s["key"]: (s["value"], s["source"]) for s in v.members("Describe", "setting", **where)
            if s["section"] == section}


@test
def status_answers_the_questions_of_an_engineer_on_call():
    with connected() as v:
        status = v.one("GetStatus")
        equal((status["state"], status["restarts"]), ("recording", 0), "state and restarts")
        check(abs(status["sinceUsec"] / 1e6 - time.time()) < 120, "since when")
        store = status["store"]
        equal((store["path"], store["limitBytes"], store["volatile"]), (Run.get().daemon.store, 64 << 20, False), "store")
        check(store["usedBytes"] >= 0 and store["freeBytes"] > 0, f"{store}")
        check(status["memoryBytes"] > 1 << 20 and status["cpuPercent"] >= 0, f"{status}")
        equal([s["name"] for s in status["sessions"]], ["default"], "sessions")


@test
def a_volatile_store_is_reported_with_its_path():
    with scratch() as folder, Daemon(folder, config="[Profd]\nStorage=volatile\nRuntimeMaxUse=16M\n") as daemon:
        with Varlink(daemon.control()) as v:
            status = v.one("GetStatus")
            v.one("Rotate", session="default")
            path = os.path.join(folder, "run", "store")
            equal((status["store"]["path"], status["store"]["volatile"]), (path, True), "store")
            check(status["store"]["limitBytes"] <= 16 << 20, f"{status['store']}")
            equal(status["sessions"][0]["segment"].startswith(os.path.join(path, "sessions", "default", "")), True,
                  f"the open segment is {status['sessions'][0]['segment']}")
            equal(status["sessions"][0]["reachUsec"], None, "how far a full store reaches, before a segment ended")
            reach = wait_until(lambda: v.members("ListSessions", "session")[0]["reachUsec"], 20, "the reach to be known")
            check(reach > 0, f"a full store reaches back {reach} us")
            listed = [s["path"] for s in v.members("ListSegments", "segment")]
            check(listed and all(os.path.dirname(p) == os.path.join(path, "sessions", "default") for p in listed),
                  f"segments are {listed}")
            info = v.one("Snapshot", name="here")["snapshot"]
            equal(info["path"], os.path.join(path, "snapshots", "here.perf.data"), "the snapshot")
            check(os.path.exists(info["path"]), "it is not there")


@test
def each_degraded_reason_comes_with_its_remedy():
    with connected() as v:
        # More than any kernel allows.
        said = v.one("Start", session="lame", settings={"Event": "cpu-clock", "Frequency": "100000"})["session"]["degraded"]
        for reason in said:
            check(reason["reason"] and reason["meaning"] and reason["remedy"], f"{reason}")
        with open("/proc/sys/kernel/perf_event_max_sample_rate", encoding="ascii") as f:
            lowered = int(f.read()) < 100000
        equal("rateLowered" in [r["reason"] for r in said], lowered, "whether its rate is told as lowered")
        equal("rateLowered" in [r["reason"] for r in v.one("GetStatus")["degraded"]], lowered, "and of the whole")
        v.one("Stop", session="lame")


@test
def metrics_have_names_types_and_bounds():
    with connected() as v, spinning():
        metrics = v.one("GetMetrics")["metrics"]
        for metric in metrics:
            pattern = COUNTER if metric["type"] == "counter" else GAUGE
            check(pattern.fullmatch(metric["name"]) and metric["help"], f"{metric}")
            check(metric["type"] in ("counter", "gauge") and set(metric["labels"]) <= {"session", "reason", "version", "result", "mode"}, f"{metric}")
            check(metric["type"] == "counter" or not metric["name"].endswith("_total"), f"{metric}")
        check("profd_unwind_tables_evicted_total" in [m["name"] for m in metrics], "no count of evicted tables")
        series = [(m["name"], tuple(sorted(m["labels"].items()))) for m in metrics]
        equal(len(series), len(set(series)), "series, each once")
        seen = []
        for reply in v.each("GetMetrics", intervalUsec=200_000):
            seen.append({(m["name"], *sorted(m["labels"].items())): m["value"] for m in reply["metrics"]})
            if len(seen) == 5:
                break
        for name in seen[0]:
            if name[0].endswith("_total"):
                values = [s[name] for s in seen if name in s]
                equal(values, sorted(values), name)
    with connected() as v:
        with fault("InvalidParameter", parameter="intervalUsec"):
            v.call("GetMetrics", intervalUsec=1)
        with fault("ExpectedMore"):
            v.one("GetMetrics", intervalUsec=1_000_000)


@test
def each_setting_is_described_with_its_place():
    daemon = Run.get().daemon
    with connected() as v:
        whole, default = settings(v, "Profd"), settings(v, "Session default")
        equal(whole["MaxUse"], ("64M", f"{daemon.config_path}:3"), "MaxUse=")
        equal(whole["MaxRetentionSec"], ("7d", "default"), "MaxRetentionSec=")
        equal(default["Event"], ("cpu-clock", f"{daemon.config_path}:5"), "Event=")
        equal(default["CallGraph"], ("auto", "default"), "CallGraph=")
        v.one("Start", session="told", settings={"Event": "cpu-clock", "RotateIntervalSec": "90s"})
        told = settings(v, "Session told", session="told")
        equal((told["Event"], told["RotateIntervalSec"]), (("cpu-clock", "Start()"), ("90s", "Start()")), "what was told")
        equal(told["Frequency"], ("99", "default"), "what was not")
        v.one("Stop", session="told")
        with fault("NoSuchSession", session="told"):
            v.call("Describe", session="told")


@test
def every_problem_of_a_bad_configuration_is_reported_and_nothing_changes():
    daemon = Run.get().daemon
    with connected() as v:
        before = (settings(v, "Profd"), settings(v, "Session default"))
        daemon.configure(STEADY + "Frequency=often\nNonsense=1\n[Session other]\nLayout=heap\n")
        try:
            with fault("ConfigInvalid"):
                v.one("Reload")
            v.send("Reload")
            problems = v.receive()["parameters"]["problems"]
        finally:
            daemon.configure(STEADY)
        equal([(p["path"], p["line"]) for p in problems], [(daemon.config_path, n) for n in (7, 8, 10)], "problems")
        check(all(p["text"] for p in problems), f"{problems}")
        equal((settings(v, "Profd"), settings(v, "Session default")), before, "what holds")
        equal([s["name"] for s in v.members("ListSessions", "session")], ["default"], "sessions")


@test
def a_good_configuration_takes_effect_at_once():
    daemon = Run.get().daemon
    with connected() as v:
        daemon.configure(STEADY + "Compress=zstd:5\n" + session("other", Event="cpu-clock", Frequency=49))
        v.one("Reload")
        equal(settings(v, "Session default")["Compress"], ("zstd:5", f"{daemon.config_path}:7"), "Compress=")
        # A session is starting until its first segment is there.
        wait_until(lambda: {s["name"]: s["state"] for s in v.members("ListSessions", "session")} ==
                   {"default": "active", "other": "active"}, 30, "both sessions to be active")
        daemon.configure(STEADY)
        v.one("Reload")
        equal([s["name"] for s in v.members("ListSessions", "session")], ["default"], "sessions")
        equal(daemon.open_segments("other"), [], "what the one that went left open")


def health(v):
    status = v.one("GetStatus")
    default = status["sessions"][0]
    return {"whole": status["state"], "state": default["state"],
            "reasons": {r["reason"] for r in default["degraded"]} & {"stopped", "paused", "failed"},
            "coarse": {r["reason"] for r in status["degraded"]} & {"stopped", "paused", "failed"},
            "rate": default["samplesPerSecond"] > 0, "since": default["sinceUsec"] / 1e6}


@test
def a_session_that_records_nothing_is_never_healthy():
    with connected() as v, spinning():
        wait_until(lambda: health(v)["rate"], 20, "samples")
        for act, undo, state, reason in (("Pause", "Resume", "paused", "paused"), ("Stop", "Start", "inactive", "stopped")):
            time.sleep(1.1)
            before = time.time()
            v.one(act, session="default")
            ill = health(v)
            check(before - 1 <= ill.pop("since") <= time.time() + 1, f"{state} since {ill}, {act} was called at {before}")
            equal(ill, {"whole": "idle", "state": state, "reasons": {reason}, "coarse": {reason}, "rate": False}, act)
            equal(profctl("status", "--check", "--quiet", socket=Run.control()).returncode, 7, f"status --check after {act}")
            doctor = profctl("doctor", socket=Run.control()).stdout
            check(f"({reason})" in doctor, f"doctor after {act}: {doctor}")
            up = [m["value"] for m in v.one("GetMetrics")["metrics"]
                  if m["name"] == "profd_session_up" and m["labels"]["session"] == "default"]
            equal(up, [0], f"profd_session_up after {act}")
            v.one(undo, session="default")
            well = health(v)
            equal((well["whole"], well["reasons"], well["coarse"]), ("recording", set(), set()), undo)


@test
def the_log_level_is_set_and_returned():
    daemon = Run.get().daemon
    with connected() as v:
        equal(v.one("SetLogLevel", level="debug")["previous"], "info", "level before")
        equal(v.one("SetLogLevel", level="info")["previous"], "debug", "level before")
        with fault("InvalidParameter", parameter="level"):
            v.one("SetLogLevel", level="loud")
    check("SetLogLevel" in daemon.log(), "nobody told of it in the log")


@test
def restarts_are_counted():
    daemon = Run.get().daemon
    with connected() as v:
        since = v.call("ListSessions", session="default")[0]["session"]["sinceUsec"]
    mark = daemon.mark()
    os.kill(daemon.recorder(), signal.SIGKILL)
    daemon.wait_for_log("Recording ", mark)
    with connected() as v:
        equal(v.one("GetStatus")["restarts"], 1, "restarts")
        equal(v.call("ListSessions", session="default")[0]["session"]["sinceUsec"] // 1000, since // 1000,
              "since when the session records")


@test
def the_log_of_a_start_has_the_reach_of_the_store():
    check(re.search(r"The store '.*' .*reach", Run.get().daemon.log()), "the log says nothing of it")


if __name__ == "__main__":
    main()
