#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many processes: a start that fills the table of 5,000 without a gap in sampling, rotations that
read nothing of them, memory that comes back after a storm, side-band that overflowed and is made
good."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, children, session  # noqa: E402
from workload import (CPUS, LONG, cpu_ns, load, need_root, now_ns, perf_record, run_load,  # noqa: E402
                      scratch, spinning, wait_until)
from tap import check, equal, main, skip, test  # noqa: E402

PERIOD_NS = 10**9 // 999
IDLE = 5000
STORM_S, FORKS = (60, 1000) if LONG else (4, 1000)
MIB, PRIVATE_MAX, PRIVATE_PER_PROCESS = 1 << 20, 12 << 20, 1536
SWING = 2 * MIB  # of memory at rest: queues, and what malloc keeps; a storm is 60 MiB of processes
CONFIG = session(Frequency=999, RotateIntervalSec="2s")


@test
def five_thousand_processes_are_read_without_a_gap_in_sampling():
    need_root()
    with scratch() as folder, load("idle", IDLE) as idle, spinning():
        with perf_record(os.path.join(folder, "perf.data")) as perf:
            begin_ns = now_ns()
            with Daemon(folder, config=CONFIG) as daemon:
                ready_ns = now_ns()
                time.sleep(1)
                stopped_ns = now_ns()
                equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        samples, rows = recording.samples(daemon.segments()), recording.rows(daemon.segments())
        equal(recording.lost(daemon.segments()), 0, "lost samples")
        equal(recording.twice(samples), [], "samples that are there twice")
        found = recording.seams(samples, recording.samples(perf.path), PERIOD_NS, range(CPUS),
                                begin_ns=ready_ns, end_ns=stopped_ns)
        equal(found[:3], [], "gaps")
        recording.check_names([r for r in rows if r.time > daemon.ready_ns], at_least=100)
        check(min(s.time for s in samples) < ready_ns, "sampling began when the table was full, not before")
        recording.check_clean(daemon.segments())
        check(idle.poll() is None, "the idle processes are gone")
        print(f"# recording after {(ready_ns - begin_ns) / 1e6:.0f} ms, sampling after"
              f" {(min(s.time for s in samples) - begin_ns) / 1e6:.0f} ms")


def traced(pids, is_over):
    """The paths that processes open and read until something is so."""
    command = ["strace", "-f", "-y", "-qq", "-e", "trace=open,openat,openat2,read,pread64,getdents64,readlinkat",
               *(word for pid in pids for word in ("-p", str(pid)))]
    # A file, since a pipe that is full would hold up strace, and with it what is traced.
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stderr=said, stdout=subprocess.DEVNULL)
        try:
            wait_until(is_over, 30, "the end of what is traced")
        finally:
            process.terminate()
            process.wait(timeout=30)
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines()
    check(any("read(" in line or "open" in line for line in lines) or lines == [], f"strace says {lines[:3]}")
    return lines


@test
def a_rotation_does_not_read_known_processes_again():
    need_root()
    if not shutil.which("strace"):
        skip("strace is not installed")
    with scratch() as folder, load("idle", IDLE) as idle, spinning() as spin, \
            Daemon(folder, config=session(Frequency=999, RotateIntervalSec="1s")) as daemon:
        known = set(children(idle.pid)) | set(children(spin.pid)) | {idle.pid, spin.pid}
        # By then it has examined the files of the one that runs, which it does when they are first sampled.
        daemon.wait_for_segments(3)
        count = len(daemon.segments())
        lines = traced(daemon.pids(), lambda: len(daemon.segments()) >= count + 3)
        touched = [line for line in lines if known & set(map(int, re.findall(r"/proc/(\d+)", line)))]
        equal(touched[:5], [], "reads of known processes while it rotated")
        lists = [line for line in lines if "getdents" in line and re.search(r"</proc>", line)]
        equal(lists, [], "listings of /proc")
        equal(daemon.stop(), 0, "status")
        recording.check_clean(daemon.segments())


@test
def a_rotation_with_five_thousand_processes_is_cheap_and_loses_nothing():
    need_root()
    seconds, cost = (20 if LONG else 3), {}
    with scratch() as folder, load("idle", IDLE), spinning():
        for interval in (0, "1s"):
            config = session(Frequency=999, RotateIntervalSec=interval)
            with Daemon(os.path.join(folder), config=config, store=os.path.join(folder, str(interval))) as daemon:
                time.sleep(1)
                before, pids = cpu_ns(daemon.pids()), daemon.pids()
                time.sleep(seconds)
                cost[interval] = cpu_ns(pids) - before
                private = daemon.private_bytes()
                equal(daemon.stop(), 0, "status")
                equal(recording.lost(daemon.segments()), 0, "lost samples")
                check(private < PRIVATE_MAX + IDLE * PRIVATE_PER_PROCESS + 2 * MIB, f"{private} bytes of private memory")
        print(f"# a rotation costs {(cost['1s'] - cost[0]) / seconds / 1e6:.2f} ms of CPU, private memory"
              f" {private / MIB:.1f} MiB")


def settled(measure):
    """The first value that stays the same for a second, or the one after five seconds."""
    value, since, end = measure(), time.monotonic(), time.monotonic() + 5
    while time.monotonic() < min(since + 1, end):
        time.sleep(0.1)
        now = measure()
        if now != value:
            value, since = now, time.monotonic()
    return value


@test
def memory_is_freed_after_many_forks():
    need_root()
    with scratch() as folder, Daemon(folder, config=session(Frequency=999, RotateIntervalSec="1s")) as daemon:
        private = []
        for _ in range(2):
            forks = int(run_load("storm", "--rate", FORKS, STORM_S))
            check(forks > FORKS * STORM_S * 9 // 10, f"there were only {forks} forks")
            private.append(settled(daemon.private_bytes))
        check(private[1] <= private[0] + SWING, f"private memory was {private[0]} after one storm, then {private[1]}")
        check(private[1] <= PRIVATE_MAX + 2 * MIB, f"private memory is {private[1]}")
        equal(daemon.stop(), 0, "status")
        segments = daemon.segments()
        equal(recording.lost(segments), 0, "lost samples")
        recording.check_clean(segments)
        recording.check_names(recording.rows(segments[-4:]), at_least=1)
        print(f"# private memory {private[0] / MIB:.1f} MiB after {forks} forks, {private[1] / MIB:.1f} after as many more")


@test
def lost_side_band_is_reported_and_read_again_from_proc():
    need_root()
    # /proc is read again a second or more after the last loss, and that takes as long as others let it.
    flood_s, after_s, settled_s = (5, 5, 2) if LONG else (2, 4, 1.5)
    with scratch() as folder, Daemon(folder, config=session(Frequency=999)) as daemon:
        run_load("overflow", folder, flood_s, after_s)
        ended_ns = now_ns()
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        check(re.search(r"(?i)(no room|lost|overflow)", daemon.log()), f"the log does not tell: {daemon.log()}")
        recording.check_clean(daemon.segments())
        rows = recording.rows(daemon.segments())
        settled = [r for r in rows if r.time > ended_ns - settled_s * 10**9]
        for symbol in ("overflow_end_work", "overflow_child_work"):
            check(any(r.sym == symbol for r in settled), f"there is no sample of {symbol} in the end")
        recording.check_names(settled)


if __name__ == "__main__":
    main()
