#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""CallGraph=unwind under 999 Hz: what is unwound and not written outlives the recorder. It is killed at random
moments, while the disk is full, or replaced; and so is profd-elf: no sample is lost or there twice."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, children, session, status_of  # noqa: E402
from profctl import profctl  # noqa: E402
from workload import (CPUS, LONG, load, need_root, perf_record, scratch, small_disk, spinning,  # noqa: E402
                      wait_until)
from tap import check, equal, main, test  # noqa: E402

KILLS = 100 if LONG else 3
HZ = 999
PERIOD_NS = 10**9 // HZ
DISK_BYTES = 8 << 20
CONFIG = "[Profd]\nFlushIntervalSec=1s\nMaxUse=1G\nKeepFree=0\n" + \
    session(Event="cpu-clock", Frequency=HZ, CallGraph="unwind", RotateIntervalSec=0)


def wait_for_next(daemon, mark, pid):
    daemon.wait_for_log("Recording ", mark)
    check(daemon.recorder() not in (None, pid), "the recorder is the same")


def end_of_recorder(daemon, number):
    mark, pid = daemon.mark(), daemon.recorder()
    if number == signal.SIGKILL:
        os.kill(pid, number)
    else:
        daemon.send(number)
    wait_for_next(daemon, mark, pid)


def check_whole(daemon, perf, event=None):
    """All samples, of one event if there are several, and each once."""
    equal(daemon.stop(), 0, f"status of profd ({daemon.log()[-1000:]})")
    segments = daemon.segments()
    recording.check_clean(segments)
    samples, reference = recording.samples(segments), recording.samples(perf.path)
    equal(recording.twice(samples)[:3], [], "samples that are there twice")
    equal(recording.lost(segments), 0, "samples that the kernel dropped")
    found = recording.seams([s for s in samples if event in (None, s.event)], reference, PERIOD_NS, range(CPUS))
    equal(found[:3], [], f"{len(found)} gaps")


@test
def a_killed_recorder_loses_no_sample_and_none_is_there_twice():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        with perf_record(os.path.join(folder, "perf.data")) as perf:
            for _ in range(KILLS):
                time.sleep(random.uniform(0, 1.2))
                end_of_recorder(daemon, signal.SIGKILL)
        check_whole(daemon, perf)


@test
def copied_stacks_beside_unwound_ones_outlive_a_killed_recorder():
    need_root()
    raw = "task-clock/call-graph=dwarf,stack-size=512,freq=199/"
    config = CONFIG.replace("Event=cpu-clock", f"Event=cpu-clock,{raw}")
    with scratch() as folder, spinning(), Daemon(folder, config=config) as daemon:
        with perf_record(os.path.join(folder, "perf.data")) as perf:
            for _ in range(KILLS if LONG else 1):
                time.sleep(random.uniform(0.3, 1.2))
                end_of_recorder(daemon, signal.SIGKILL)
        check_whole(daemon, perf, "cpu-clock")
        # Recovered segments name them as they were asked for, too.
        equal({s.event for s in recording.samples(daemon.segments())}, {"cpu-clock", raw}, "events")


@test
def stacks_of_what_ran_before_are_whole_after_a_recorder_was_killed_or_replaced():
    need_root()
    with scratch() as folder, load("deep") as before, Daemon(folder, config=CONFIG) as daemon:
        for number in (signal.SIGKILL, signal.SIGUSR1):
            wait_until(lambda: has_whole_stacks(daemon, before.pid), 30, "whole stacks at first")
            end_of_recorder(daemon, number)
        wait_until(lambda: has_whole_stacks(daemon, before.pid), 30, "whole stacks at the end")


def fill(store):
    path = os.path.join(store, "filler")
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return path


@test
def what_a_killed_recorder_could_not_write_is_written_by_the_next_one():
    need_root()
    with scratch() as folder, small_disk(folder, DISK_BYTES) as store, spinning():
        with Daemon(folder, config=CONFIG, store=store) as daemon:
            with perf_record(os.path.join(folder, "perf.data")) as perf:
                time.sleep(0.5)
                filler = fill(store)
                daemon.wait_for_log("keeping its samples in memory")
                time.sleep(1)
                mark, pid = daemon.mark(), daemon.recorder()
                os.kill(pid, signal.SIGKILL)
                os.unlink(filler)
                wait_for_next(daemon, mark, pid)
                daemon.wait_for_log("continues with [1-9][0-9]+ samples", mark)
            check_whole(daemon, perf)


@test
def a_recorder_that_makes_room_for_the_next_one_loses_nothing():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        with perf_record(os.path.join(folder, "perf.data")) as perf:
            for _ in range(10 if LONG else 2):
                time.sleep(random.uniform(0.2, 1))
                pid = daemon.recorder()
                end_of_recorder(daemon, signal.SIGUSR1)
                wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 20, "the old recorder to end")
        check_whole(daemon, perf)


def elf_helper(daemon, but=None):
    """The pid of profd-elf, another one than `but`."""
    return next((pid for pid in children(daemon.process.pid) if pid != but and
                 status_of(pid, "Name") == "profd-elf" and status_of(pid, "State")[0] != "Z"), None)


def has_whole_stacks(daemon, pid):
    """Whether the stacks of the last second of a process end where it began."""
    said = profctl("snapshot", "--last=1s", "-p", str(pid), socket=daemon.control())
    if said.returncode != 0:
        return False
    stacks = subprocess.run(["perf", "script", "-i", said.stdout.strip(), "--no-inline", "-F", "ip,sym"],
                            capture_output=True, text=True, errors="replace", check=True).stdout.strip().split("\n\n")
    return len(stacks) > HZ / 10 and sum(stack.endswith(" _start") for stack in stacks) >= len(stacks) * 0.9


@test
def a_killed_profd_elf_costs_no_sample_and_the_next_one_makes_the_tables_that_come_later():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        with perf_record(os.path.join(folder, "perf.data")) as perf:
            helper = wait_until(lambda: elf_helper(daemon), 20, "profd-elf")
            os.kill(helper, signal.SIGKILL)
            with load("deep") as later:
                wait_until(lambda: elf_helper(daemon, helper), 20, "the next profd-elf")
                wait_until(lambda: has_whole_stacks(daemon, later.pid), 30, "whole stacks of a later program")
        check_whole(daemon, perf)


main()
