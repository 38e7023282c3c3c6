#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd reports the time that it did not record: a window is complete only when all of it
was recorded, and each gap is named with its reason."""

import json
import os
import re
import shutil
import signal
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon, session  # noqa: E402
from profctl import as_json, ended, profctl  # noqa: E402
from recording import feature_place  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import need_root, scratch, spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

CONFIG = "[Profd]\nFlushIntervalSec=1s\n" + session(Frequency=499)
US = 1000000
FLUSH_US = US


def snapshot(daemon, last_s, **more):
    with Varlink(daemon.control()) as v:
        return v.one("Snapshot", lastUsec=int(last_s * US), **more)["snapshot"]


def now_us():
    return time.time_ns() // 1000


def gaps(info, reason):
    return [gap for gap in info["coverage"]["gaps"] if gap["reason"] == reason]


def timed(call, *arguments, **more):
    """The moments before and after a call; in between it has its effect."""
    before = now_us()
    call(*arguments, **more)
    return before, now_us()


def snapshot_since(daemon, begin):
    """From half a second before what began between these moments; a busy machine makes it last."""
    return snapshot(daemon, (now_us() - begin[0]) / US + 0.5)


def check_gap(info, reason, begin, end, slack_us=US // 10):
    """One gap, of that reason, that begins and ends between these moments; and the snapshot says that it is not all."""
    found = gaps(info, reason)
    equal(len(found), 1, f"gaps '{reason}' of {info['coverage']}")
    for name, there, (before, after) in (("begin", found[0]["sinceUsec"], begin), ("end", found[0]["untilUsec"], end)):
        check(before - slack_us < there < after + slack_us,
              f"the {name} is {(there - before) / US} s after a moment before it and {(there - after) / US} s after one behind it")
    check(not info["coverage"]["complete"], "it is called complete")
    check(any("Not recorded from" in text for text in info["partial"]), f"partial: {info['partial']}")
    asked = info["coverage"]["untilUsec"] - info["coverage"]["sinceUsec"]
    missing = found[0]["untilUsec"] - found[0]["sinceUsec"]
    check(abs(info["coverage"]["recordedUsec"] - (asked - missing)) < slack_us, f"recorded: {info['coverage']}")


def check_whole(info, span_us):
    equal(info["coverage"]["gaps"], [], "gaps")
    equal(info["partial"], [], "partial")
    check(info["coverage"]["complete"], "it is not called complete")
    equal(info["coverage"]["recordedUsec"], info["coverage"]["untilUsec"] - info["coverage"]["sinceUsec"], "recorded")
    check(abs(info["coverage"]["recordedUsec"] - span_us) < US // 10, f"recorded: {info['coverage']}")


@test
def a_window_over_rotations_is_complete():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon, Varlink(daemon.control()) as v:
        time.sleep(1)
        for _ in range(3):
            v.one("Rotate", session="default")
            time.sleep(0.3)
        check_whole(snapshot(daemon, 1.2), 1.2 * US)
        done = profctl("snapshot", "--last=1s", socket=daemon.control())
        equal(done.returncode, 0, f"status ({done.stderr})")


@test
def idle_cpus_are_covered():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        time.sleep(2.5)
        check_whole(snapshot(daemon, 2), 2 * US)


@test
def a_window_without_any_event_was_recorded_and_has_no_samples():
    need_root()
    config = CONFIG + session("quiet", Event="alignment-faults", Frequency=99)
    with scratch() as folder, Daemon(folder, config=config) as daemon:
        time.sleep(2.5)
        info = snapshot(daemon, 1.5, session="quiet")
        check_whole(info, 1.5 * US)
        equal(info["samples"], 0, "samples")
        done = profctl("snapshot", "-s", "quiet", "--last=1s", socket=daemon.control())
        equal(done.returncode, 0, f"status ({done.stderr})")
        check("no gaps" in done.stderr and "no samples" in done.stderr, f"it says {done.stderr}")
        # A selection that matches nothing is something else.
        equal(profctl("snapshot", "-s", "quiet", "--last=1s", "--comm=nosuch", socket=daemon.control()).returncode, 5, "status")


@test
def a_stopped_session_is_a_gap():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon, Varlink(daemon.control()) as v:
        time.sleep(1)
        stopped = timed(v.one, "Stop", session="default")
        time.sleep(2)
        started = timed(v.one, "Start", session="default")
        time.sleep(1)
        check_gap(snapshot_since(daemon, stopped), "stopped", stopped, started)
        done = profctl("snapshot", f"--since=@{stopped[0] / US - 0.5:.6f}", socket=daemon.control())
        equal(done.returncode, 8, f"status ({done.stderr})")
        check("stopped" in done.stderr and "not recorded" in done.stderr, f"it says {done.stderr}")


@test
def a_pause_within_the_window_is_a_gap():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon, Varlink(daemon.control()) as v:
        time.sleep(1)
        paused = timed(v.one, "Pause", session="default")
        time.sleep(1.5)
        # It goes on in the next segment, too.
        v.one("Rotate", session="default")
        time.sleep(0.5)
        resumed = timed(v.one, "Resume", session="default")
        time.sleep(0.7)
        check_gap(snapshot_since(daemon, paused), "paused", paused, resumed)


@test
def a_lasting_pause_is_a_gap_up_to_the_end():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon, Varlink(daemon.control()) as v:
        time.sleep(1)
        paused = timed(v.one, "Pause", session="default")
        time.sleep(1)
        before, info = now_us(), snapshot_since(daemon, paused)
        check_gap(info, "paused", paused, (before, now_us()))


@test
def a_window_before_the_first_start_is_partial():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        time.sleep(0.5)
        info = snapshot(daemon, 30)
        equal([gap["reason"] for gap in info["coverage"]["gaps"]], ["notStarted"], "gaps")
        check(info["partial"], "it is called complete")
        done = profctl("snapshot", "--last=1min", socket=daemon.control())
        equal(done.returncode, 8, f"status ({done.stderr})")


def run_again(folder, end, seconds=2):
    """Records, ends as told, and records again after a while: when it ended and what comes of it."""
    with spinning():
        with Daemon(folder, config=CONFIG) as daemon:
            time.sleep(2)
            ended = timed(end, daemon)
        time.sleep(seconds)
        before = now_us()
        with Daemon(folder, config=CONFIG) as daemon:
            began = before, now_us()
            time.sleep(1)
            return snapshot_since(daemon, ended), ended, began


@test
def a_daemon_that_was_down_is_a_gap():
    need_root()
    with scratch() as folder:
        info, ended, began = run_again(folder, lambda daemon: daemon.stop())
        check_gap(info, "down", ended, began)


@test
def a_killed_keeper_and_recorder_leave_a_gap():
    need_root()
    with scratch() as folder:
        info, ended, began = run_again(folder, lambda daemon: daemon.kill())
        # The samples in the rings go with the keeper.
        check_gap(info, "down", (ended[0] - FLUSH_US, ended[1]), began, US // 2)
        check(gaps(info, "down")[0]["sinceUsec"] <= ended[1], "it claims what nobody wrote")


@test
def a_recorder_that_is_killed_leaves_no_gap():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        time.sleep(1)
        for _ in range(2):
            mark, pid = daemon.mark(), daemon.recorder()
            os.kill(pid, signal.SIGKILL)
            daemon.wait_for_log("Recording ", mark)
        time.sleep(0.5)
        info = snapshot(daemon, 2)
        check_whole(info, 2 * US)


@test
def a_recorder_that_is_replaced_leaves_no_gap():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        time.sleep(1)
        mark = daemon.mark()
        daemon.send(signal.SIGUSR1)
        daemon.wait_for_log("Recording ", mark)
        time.sleep(0.5)
        check_whole(snapshot(daemon, 1.5), 1.5 * US)


@test
def a_pause_outlives_the_recorder():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        time.sleep(1)
        with Varlink(daemon.control()) as v:
            paused = timed(v.one, "Pause", session="default")
        time.sleep(1.2)
        mark = daemon.mark()
        os.kill(daemon.recorder(), signal.SIGKILL)
        daemon.wait_for_log("Recording ", mark)
        with Varlink(daemon.control()) as v:
            resumed = timed(v.one, "Resume", session="default")
        time.sleep(0.5)
        check_gap(snapshot_since(daemon, paused), "paused", paused, resumed)


@test
def a_reload_that_opens_a_session_again_is_a_gap():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon, Varlink(daemon.control()) as v:
        time.sleep(1)
        daemon.configure(CONFIG.replace("499", "250"))
        v.one("Reload")
        time.sleep(1)
        info = snapshot(daemon, 1.8)
        equal([gap["reason"] for gap in info["coverage"]["gaps"]], ["reloaded"], "gaps")
        gap = info["coverage"]["gaps"][0]
        check(gap["untilUsec"] - gap["sinceUsec"] < US, f"the gap is {gap}")


def merged_gaps(folder, paths):
    both = os.path.join(folder, "both.data")
    equal(profctl("merge", "-f", "-o", both, *paths).returncode, 0, "status of merge")
    coverage = json.loads(profctl("info", "--json=short", both).stdout)["environment"]["coverage"]
    return [gap["reason"] for gap in coverage["gaps"]]


def adjust_wall_clock(path, offset_ns):
    """Writes another wall-clock time to all of CLOCK_DATA and PROFD_COVERAGE."""
    clock, _ = feature_place(path, 29)
    coverage, _ = feature_place(path, 192)
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        n_words, = struct.unpack_from("<I", data, coverage + 4)
        gaps = coverage + 24 + 8 * n_words
        n_gaps, = struct.unpack_from("<I", data, gaps)
        places = [clock + 8, coverage + 8, coverage + 16]
        for i in range(n_gaps):
            places += [gaps + 4 + 24 * i, gaps + 12 + 24 * i]
        for at in places:
            struct.pack_into("<Q", data, at, struct.unpack_from("<Q", data, at)[0] + offset_ns)
        file.seek(0)
        file.write(data)


@test
def segments_and_sessions_report_their_coverage():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon, Varlink(daemon.control()) as v:
        time.sleep(0.7)
        v.one("Rotate", session="default")
        v.one("Pause", session="default")
        time.sleep(0.5)
        v.one("Resume", session="default")
        time.sleep(0.5)
        v.one("Rotate", session="default")
        first, second = as_json(profctl("list", "--segments", "--json=short", socket=daemon.control()), "list")[:2]
        check(first["coverage"]["complete"], f"the first one: {first}")
        # Each has its own pair of clocks, and something may adjust the wall clock between them.
        apart = second["coverage"]["sinceUsec"] - first["coverage"]["untilUsec"]
        check(abs(apart) <= 100, f"the second begins {apart} us after the first")
        equal([gap["reason"] for gap in second["coverage"]["gaps"]], ["paused"], "gaps of the second")
        (one,) = [s for s in v.one("GetStatus")["sessions"] if s["name"] == "default"]
        equal([gap["reason"] for gap in one["coverage"]["gaps"]], ["paused"], "gaps of the session")
        equal(one["coverage"]["sinceUsec"], first["coverage"]["sinceUsec"], "begin of the session")
        check("paused" in profctl("status", socket=daemon.control()).stdout, "status says nothing of it")
        check("paused" in profctl("list", "--segments", socket=daemon.control()).stdout, "list says nothing of it")
        equal(merged_gaps(folder, daemon.segments()[:2]), ["paused"], "gaps of both as one recording")
        # Something adjusts the wall clock between the two.
        for offset_ns in (5000, -5000):
            adjusted = os.path.join(folder, "adjusted.data")
            shutil.copy(daemon.segments()[1], adjusted)
            adjust_wall_clock(adjusted, offset_ns)
            equal(merged_gaps(folder, [daemon.segments()[0], adjusted]), ["paused"], f"gaps when adjusted by {offset_ns} ns")


@test
def the_list_of_segments_has_the_gaps_between_them():
    need_root()
    with scratch() as folder, spinning():
        with Daemon(folder, config=CONFIG) as daemon:
            time.sleep(0.5)
            ended(profctl("stop", "default", socket=daemon.control()), 0)
            time.sleep(1)
            ended(profctl("start", "default", socket=daemon.control()), 0)
            time.sleep(0.5)
            ended(profctl("rotate", "default", socket=daemon.control()), 0)
            equal(daemon.stop(), 0, "status")
        time.sleep(1)
        with Daemon(folder, config=CONFIG) as daemon:
            def segments():
                return as_json(profctl("list", "--segments", "--json=short", socket=daemon.control()), "list")

            listed = wait_until(lambda: len(segments()) == 4 and segments(), 20, "the open segment in the list")
            gaps = [segment["gapBefore"] and segment["gapBefore"]["reason"] for segment in listed]
            equal(gaps, [None, "stopped", None, "down"], "reasons of the gaps between segments")
            for segment in (listed[1], listed[3]):
                missing = segment["gapBefore"]["untilUsec"] - segment["gapBefore"]["sinceUsec"]
                check(missing >= 900_000, f"{missing} us between two segments")
            text = profctl("list", "--segments", socket=daemon.control()).stdout
            rows = [re.search(r"([\d.]+ s) before \((.*?)\)", line) for line in text.splitlines()]
            equal([row and row.group(2) for row in rows], [None, None, "stopped", None, "profd did not run"], text)


@test
def a_segment_that_was_deleted_is_a_gap():
    need_root()
    with scratch() as folder, spinning():
        with Daemon(folder, config=CONFIG) as daemon:
            for _ in range(3):
                time.sleep(0.6)
                with Varlink(daemon.control()) as v:
                    v.one("Rotate", session="default")
            daemon.stop()
            for path in daemon.files("00000002-*"):
                os.unlink(path)
        with Daemon(folder, config=CONFIG) as daemon:
            time.sleep(0.5)
            info = snapshot(daemon, 60)
            equal([gap["reason"] for gap in info["coverage"]["gaps"]], ["notStarted", "deleted", "down"], "gaps")


@test
def a_saved_file_contains_its_coverage():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon, Varlink(daemon.control()) as v:
        time.sleep(0.5)
        since = time.time()
        time.sleep(0.2)
        v.one("Pause", session="default")
        time.sleep(0.6)
        v.one("Resume", session="default")
        time.sleep(0.5)
        path = os.path.join(folder, "mine.data")
        equal(profctl("snapshot", f"--since=@{since:.6f}", "-o", path, socket=daemon.control()).returncode, 8, "status")
        info = json.loads(profctl("info", "--json=short", path).stdout)
        equal([gap["reason"] for gap in info["environment"]["coverage"]["gaps"]], ["paused"], "gaps")
        check(not info["environment"]["coverage"]["complete"], "it is called complete")
        text = profctl("info", path).stdout
        check("paused" in text and "not recorded" in text, f"info says {text[:400]}")
        told = profctl("verify", path)
        equal(told.returncode, 0, f"status of verify ({told.stdout})")
        check("warning: not recorded" in told.stdout and "paused" in told.stdout, f"verify says {told.stdout}")
        wait_until(lambda: daemon.segments() or v.one("Rotate", session="default"), 10, "a segment")
        check("paused" in profctl("verify", daemon.segments()[-1]).stdout, "verify of a segment says nothing")


if __name__ == "__main__":
    main()
