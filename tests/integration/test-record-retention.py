#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Budgets hold within a segment at every moment, with several sessions that rotate each second;
what is not theirs stays; a clock that jumps changes neither order nor budgets."""

import contextlib
import ctypes
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import LONG, need_root, scratch, spinning  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

MAX_USE, SMALL = 4 << 20, 1 << 20
LIMIT_S = 60
SESSIONS, SECONDS = (10, 105) if LONG else (3, 9)
ROTATIONS = 1000 if LONG else 20
STEP_S = 3600
OVER = 256 << 10  # manifests, folders, and what is written while we look


def clock_is_synchronised():
    """By what the kernel was told; retention by age waits for it."""
    time_error = 5
    return ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512)) != time_error


def named(count):
    return ["default", *(f"s{i}" for i in range(1, count))]


def config(count, hz):
    """Sessions of both layouts in turn."""
    text = f"[Profd]\nMaxUse={MAX_USE >> 20}M\nKeepFree=0\nMinUse=0\nBinariesMaxUse=0\nFlushIntervalSec=200ms\n"
    for i, name in enumerate(named(count)):
        text += session(name, Frequency=hz, Compress="none", RotateIntervalSec="1s",
                        Layout=("file", "directory")[i % 2])
    return text


def sizes(folder):
    """(all bytes on the disk, those of the largest segment)."""
    total, segments = 0, {}
    for here, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(here, name)
            with contextlib.suppress(OSError):
                size = os.stat(path).st_blocks * 512
                total += size
                key = re.sub(r"(\.perf\.data(\.open)?).*", r"\1", path)
                segments[key] = segments.get(key, 0) + size
    return total, max(segments.values(), default=0)


def numbers_of(daemon, names):
    return {name: [int(os.path.basename(s).split("-")[0]) for s in daemon.segments(name)] for name in names}


def made(numbers):
    return sum(max(n, default=0) for n in numbers.values())


def pin_snapshot(daemon):
    daemon.wait_for_segments(1)
    with Varlink(os.path.join(daemon.folder, "run", "io.profd.Control")) as control:
        told = control.one("Snapshot", session="default", lastUsec=500_000, name="kept", pin=True)["snapshot"]
    check(told["pinned"] and told["samples"] > 0, f"{told} is pinned and has samples")
    return told["path"]


@test
def the_store_is_never_more_than_a_segment_over_its_budget():
    need_root()
    names = named(SESSIONS)
    with scratch() as folder, spinning():
        with Daemon(folder, config=config(SESSIONS, 400)) as daemon:
            pinned = pin_snapshot(daemon)
            samples = recording.samples(pinned)
            end, highest, largest = time.monotonic() + SECONDS, 0, 0
            while time.monotonic() < end or made(numbers_of(daemon, names)) < ROTATIONS:
                check(time.monotonic() < end + 2 * SECONDS, f"only {made(numbers_of(daemon, names))} segments were made")
                total, segment = sizes(os.path.join(daemon.store, "sessions"))
                highest, largest = max(highest, total), max(largest, segment)
                check(total <= MAX_USE + segment + OVER,
                      f"{total} bytes are used, the largest segment has {segment}, the budget is {MAX_USE}")
                time.sleep(0.02)
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
            check(highest > MAX_USE * 3 // 4, f"no more than {highest} bytes were ever used")
            numbers = numbers_of(daemon, names)
            check(all(numbers.values()), f"a session has nothing left: {numbers}")
            for name in names:
                equal(numbers[name], list(range(numbers[name][0], numbers[name][-1] + 1)), f"numbers of {name}")
                check(numbers[name][0] > 1, f"nothing of {name} was deleted")
                recording.check_clean(daemon.segments(name)[:3])
                for beside in daemon.files("*.json", name):
                    check(os.path.exists(beside.removesuffix(".json")) or
                          os.path.exists(beside.removesuffix(".json") + ".perf.data"), f"{beside} is left over")
            equal(recording.samples(pinned), samples, "samples of the pinned snapshot")
            recording.check_clean([pinned])
            print(f"# {made(numbers)} segments of {SESSIONS} sessions, at most {highest} bytes of {MAX_USE},"
                  f" the largest segment {largest}")


@test
def a_session_may_have_its_own_budget_and_count():
    need_root()
    text = "[Profd]\nMaxUse=1G\nKeepFree=0\n" + \
        session(Frequency=999, Compress="none", RotateIntervalSec="1s", MaxSegments=2) + \
        session("small", Frequency=999, Compress="none", RotateIntervalSec="1s", MaxUse="1M") + \
        session("old", Frequency=99, RotateIntervalSec="1s", MaxRetentionSec="2s")
    with scratch() as folder, spinning(), Daemon(folder, config=text) as daemon:
        limited = ["default", "small"] + (["old"] if clock_is_synchronised() else [])
        begin, made_bytes = time.monotonic(), {}
        while time.monotonic() < begin + (30 if LONG else 6) or sum(made_bytes.values()) < 3 * SMALL:
            check(time.monotonic() < begin + LIMIT_S, f"of 'small' only {sum(made_bytes.values())} bytes were made")
            time.sleep(0.1)
            check(len(daemon.segments()) <= 3, f"{len(daemon.segments())} segments where 2 may be")
            total, segment = sizes(os.path.join(daemon.store, "sessions", "small"))
            check(total <= SMALL + segment + OVER, f"{total} bytes where {SMALL} may be")
            for path in daemon.segments("small"):
                with contextlib.suppress(FileNotFoundError):
                    made_bytes[path] = os.path.getsize(path)
            if "old" in limited:
                check(len(daemon.segments("old")) <= 5, f"{len(daemon.segments('old'))} segments of 1 s in 2 s")
        equal(daemon.stop(), 0, "status")
        for name, numbers in numbers_of(daemon, limited).items():
            check(numbers and numbers[0] > 1, f"the segments of '{name}' are {numbers}: nothing or everything was deleted")
        print(f"# {sum(made_bytes.values())} bytes of 'small' in {time.monotonic() - begin:.1f} s, limits of {limited}")


@contextlib.contextmanager
def clock_put_back():
    """The clock as it was, and the time that has passed since."""
    offset = time.time() - time.monotonic()
    try:
        time.clock_settime(time.CLOCK_REALTIME, time.time())
    except PermissionError:
        skip("the clock cannot be set here")
    try:
        yield
    finally:
        time.clock_settime(time.CLOCK_REALTIME, offset + time.monotonic())


def a_clock_that_jumps_changes_neither_order_nor_budget():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=config(1, 999)) as daemon:
        with clock_put_back():
            for step in (STEP_S, -2 * STEP_S, STEP_S):
                count = len(daemon.segments())
                time.sleep(1.5)
                time.clock_settime(time.CLOCK_REALTIME, time.time() + step)
                daemon.wait_for_segments(min(count + 1, 3))
                total, segment = sizes(os.path.join(daemon.store, "sessions"))
                check(total <= MAX_USE + segment + OVER, f"{total} bytes are used after a jump")
        time.sleep(1)
        equal(daemon.stop(), 0, "status")
        segments = daemon.segments()
        recording.check_clean(segments)
        # Beside the jump of the clock one may have ended before the first sample.
        firsts = [min(s.time for s in samples) for samples in map(recording.samples, segments) if samples]
        check(len(firsts) > 2, f"samples in {len(firsts)} segments of {len(segments)}")
        equal(firsts, sorted(firsts), "times of the first samples, in the order of numbers")
        for path in segments:
            offsets = [a[1] - a[0] for a in recording.manifest(path)["anchors"]]
            check(max(offsets) - min(offsets) < 10**8, f"{path} spans a jump of the clock")


# The whole machine sees the clock jump.
if LONG:
    test(a_clock_that_jumps_changes_neither_order_nor_budget)

if __name__ == "__main__":
    main(at_once=1 if LONG else 2)
