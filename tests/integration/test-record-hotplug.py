#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A CPU that goes off and comes back: it is sampled again within a second, also when it was gone for a moment only, and
the manifest tells when it was not."""

import contextlib
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from workload import CPUS, LONG, need_root, now_ns, scratch, spinning  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

CPU = CPUS - 1
SWITCH = f"/sys/devices/system/cpu/cpu{CPU}/online"
ROUNDS = 5 if LONG else 1
BACK_NS = 10**9
OFF_S = 1.5
KOBJECT_UEVENT = 15
CONFIG = "".join(session(name, Frequency=999, CallGraph=stacks, Layout=layout) for name, stacks, layout in
                 (("default", "unwind", "file"), ("folder", "fp", "directory")))


def switch(online):
    with open(SWITCH, "w", encoding="ascii") as f:
        f.write("1" if online else "0")
    return now_ns()


@contextlib.contextmanager
def cpu_comes_back():
    """Switches the CPU on again, also after a failure."""
    if CPU == 0 or not os.path.exists(SWITCH):
        skip("no CPU can be switched off here")
    try:
        yield
    finally:
        switch(True)


def off_and_on():
    """When it was gone, and when it was there again."""
    try:
        off = switch(False)
    except OSError as error:
        skip(f"no CPU can be switched off here ({error.strerror})")
    time.sleep(OFF_S)
    return off, switch(True)


@test
def a_cpu_that_comes_back_is_sampled_within_a_second():
    need_root()
    with scratch() as folder, cpu_comes_back(), spinning(), Daemon(folder, config=CONFIG) as daemon:
        mark, moments = daemon.mark(), []
        for _ in range(ROUNDS):
            time.sleep(1)
            moments.append(off_and_on())
            time.sleep(2.5)
        equal(daemon.stop(), 0, f"status ({daemon.log()[-500:]})")
        for change in ("1 went", "1 came"):
            told = re.findall(rf"CPUs came or went: {change}, (\d+) are sampled now", daemon.log(mark))
            equal(told, [str(CPUS - (change == "1 went"))] * ROUNDS, f"CPUs that the log has behind '{change}': {daemon.log(mark)}")
        for name in ("default", "folder"):
            segments = daemon.segments(name)
            recording.check_clean(segments)
            samples = recording.samples(segments)
            equal(recording.twice(samples), [], "samples that are there twice")
            recording.check_names([r for r in recording.rows(segments) if r.time > daemon.ready_ns])
            times = recording.by_cpu(samples)
            for off, on in moments:
                after = [t for t in times[CPU] if t > on]
                check(after and after[0] - on < BACK_NS, f"CPU {CPU} of {name} has no sample after it came back")
                check(len([t for t in after if t < after[0] + 10**9]) > 900, f"few samples after it came back in {name}")
                others = [t for cpu, ts in times.items() if cpu != CPU for t in ts if off < t < on]
                check(len(others) > 900 * OFF_S * (CPUS - 1), f"{len(others)} samples of the CPUs that stayed in {name}")
            told = [gap for s in segments for gap in recording.manifest(s)["gaps"]
                    if gap["reason"] == "offline" and gap["cpu"] == CPU]
            check(told, f"no manifest of {name} tells: {[recording.manifest(s)['gaps'] for s in segments]}")


def sockets_of(pid):
    """The numbers of the sockets that the process holds."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
            if found:
                yield found[1]


@test
def the_recorder_hears_the_kernel_tell_of_cpus():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        with open(f"/proc/{daemon.recorder()}/net/netlink", encoding="ascii") as f:
            rows = [line.split() for line in f.readlines()[1:]]
        told = {row[9] for row in rows if int(row[1]) == KOBJECT_UEVENT and int(row[3], 16) == 1}
        check(told & set(sockets_of(daemon.recorder())), f"the recorder has no such socket: {rows}")


@test
def a_cpu_that_was_gone_for_a_moment_is_sampled_again():
    need_root()
    with scratch() as folder, cpu_comes_back(), spinning(), Daemon(folder, config=CONFIG) as daemon:
        time.sleep(1)
        try:
            switch(False)
        except OSError as error:
            skip(f"no CPU can be switched off here ({error.strerror})")
        on = switch(True)
        time.sleep(2.5)
        equal(daemon.stop(), 0, f"status ({daemon.log()[-500:]})")
        after = [t for t in recording.by_cpu(recording.samples(daemon.segments("default")))[CPU] if t > on]
        check(after and after[0] - on < BACK_NS, f"CPU {CPU} has {len(after)} samples after it came back")
        check(after[-1] - on > 10**9, "and then no more")


if __name__ == "__main__":
    main()
