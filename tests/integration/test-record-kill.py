#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kill -9 at random moments, under 999 Hz and a load that fills each tick. Of the recorder: rings
live on in the keeper, and no sample is lost or there twice. Of both: what the last flush did not
reach."""

import contextlib
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, children, session  # noqa: E402
from profctl import check_unwinds  # noqa: E402
from scene import Scene  # noqa: E402
from workload import CPUS, LONG, need_root, now_ns, perf_record, scratch, spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

KILLS = 200 if LONG else 6
PERIOD_NS = 10**9 // 999
FLUSH_S = 1
SLACK_NS = 300_000_000
KILLED = 1 << (signal.SIGKILL - 1)
SESSIONS = ("default", "folder", "unwound")
CONFIG = f"[Profd]\nFlushIntervalSec={FLUSH_S}s\nMaxBufferTotal=512M\n" + \
    session(Frequency=999, RotateIntervalSec="3s") + \
    session("folder", Frequency=999, RotateIntervalSec="3s", Layout="directory") + \
    session("unwound", Frequency=999, RotateIntervalSec="3s", CallGraph="unwind")


def kill_recorder(daemon):
    """At some moment; back when the next one records."""
    time.sleep(random.uniform(0, 1.5))
    mark, pid = daemon.mark(), daemon.recorder()
    check(pid is not None, f"there is no recorder: {daemon.log()[-1000:]}")
    os.kill(pid, signal.SIGKILL)
    daemon.wait_for_log("Recording ", mark)
    check(daemon.recorder() != pid, "the recorder is the same")


class Run(Scene):
    """The chain of segments of a recorder that is killed, and a perf record beside."""

    config, load = CONFIG, contextlib.nullcontext
    samples = {}

    @classmethod
    def begin(cls, enter):
        super().begin(enter)
        with spinning(), perf_record(os.path.join(cls.folder, "perf.data")) as perf:
            for _ in range(KILLS):
                kill_recorder(cls.daemon)
            time.sleep(1)
        check_unwinds(cls.daemon)
        equal(cls.daemon.stop(), 0, f"status of profd ({cls.daemon.log()[-1000:]})")
        cls.reference = recording.samples(perf.path)
        for name in SESSIONS:
            cls.samples[name] = recording.samples(cls.daemon.segments(name))


@test
def every_segment_opens_and_is_whole():
    run = Run.get()
    for name in SESSIONS:
        recording.check_clean(run.daemon.segments(name))


@test
def recovered_segments_are_marked():
    run = Run.get()
    for name in SESSIONS:
        equal(run.daemon.open_segments(name), [], f"what {name} left open")
        marked = [s for s in run.daemon.segments(name) if s.endswith("~.perf.data")]
        check(len(marked) >= KILLS * 9 // 10, f"{len(marked)} of {name} are marked after {KILLS} kills")
        for path in marked:
            # Whether whole or not is a matter of the manifest, too.
            check(recording.manifest(path), f"{path} has no manifest")


@test
def no_sample_is_duplicated():
    run = Run.get()
    for name in SESSIONS:
        found = recording.twice(run.samples[name])
        equal(found[:3], [], f"{len(found)} samples of {name} that are there twice")


@test
def no_sample_is_lost():
    run = Run.get()
    for name in SESSIONS:
        equal(recording.lost(run.daemon.segments(name)), 0, f"samples of {name} that the kernel dropped")
        found = recording.seams(run.samples[name], run.reference, PERIOD_NS, range(CPUS))
        equal(found[:3], [], f"{len(found)} gaps of {name}")


@test
def each_sample_of_the_load_has_its_names():
    run = Run.get()
    for name in SESSIONS:
        rows = recording.rows(run.daemon.segments(name))
        # A process that ended while nobody recorded cannot be named; our load goes on.
        ours = [r for r in rows if not r.comm.startswith(":") or r.sym in recording.COMMS]
        recording.check_names(ours, at_least=100 * KILLS)


@test
def a_recorder_that_makes_room_for_the_next_one_loses_nothing():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        with perf_record(os.path.join(folder, "perf.data")) as perf:
            for _ in range(10 if LONG else 2):
                time.sleep(random.uniform(0.5, 1.5))
                mark, pid = daemon.mark(), daemon.recorder()
                daemon.send(signal.SIGUSR1)
                daemon.wait_for_log("Recording ", mark)
                wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 20, "the old recorder to end")
                check(daemon.recorder() not in (None, pid), "the recorder is the same")
            time.sleep(1)
        equal(daemon.stop(), 0, f"status of profd ({daemon.log()[-1000:]})")
        reference = recording.samples(perf.path)
        for name in SESSIONS:
            segments = daemon.segments(name)
            recording.check_clean(segments)
            equal([s for s in segments if "~" in s], [], "segments that were not finished")
            samples = recording.samples(segments)
            equal(recording.twice(samples)[:3], [], f"samples of {name} that are there twice")
            equal(recording.lost(segments), 0, f"samples of {name} that the kernel dropped")
            found = recording.seams(samples, reference, PERIOD_NS, range(CPUS))
            equal(found[:3], [], f"{len(found)} gaps of {name}")


@test
def killing_keeper_and_recorder_loses_only_unflushed_samples():
    need_root()
    with scratch() as folder, spinning():
        for _ in range(5 if LONG else 1):
            with Daemon(folder, config=CONFIG) as daemon:
                time.sleep(2 + random.uniform(0, 1.5))
                killed_ns = now_ns()
                daemon.kill()
                before = {name: len(daemon.segments(name)) for name in SESSIONS}
            with Daemon(folder, config=CONFIG) as again:
                equal(again.stop(), 0, "status")
            for name in SESSIONS:
                recovered = again.segments(name)[before[name]:-1]
                check(recovered and recovered[-1].endswith("~.perf.data"), f"{recovered} are not marked")
                recording.check_clean(recovered)
                times = recording.by_cpu(s for s in recording.samples(again.segments(name)) if s.time < killed_ns)
                equal(list(times), list(range(CPUS)), f"CPUs of {name} that have samples from before the kill")
                for cpu, t in times.items():
                    missing = killed_ns - t[-1]
                    check(missing < FLUSH_S * 10**9 + SLACK_NS,
                          f"{missing / 1e9:.3f} s are missing on CPU {cpu} of {name}")


def lives_on(pid):
    """Whether it has a program and was not killed: a file system of another test may hold up its end."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
            pending = [int(line.split()[1], 16) for line in f if line.startswith(("SigPnd:", "ShdPnd:"))]
        return bool(os.readlink(f"/proc/{pid}/exe")) and not any(signals & KILLED for signals in pending)
    except OSError:
        return False


@test
def a_recorder_without_its_keeper_finishes_its_segment():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        time.sleep(1)
        recorder, others, killed_ns = daemon.recorder(), children(daemon.process.pid), now_ns()
        check(len(others) > 1, f"the keeper has only these children: {others}")
        os.kill(daemon.process.pid, signal.SIGKILL)
        daemon.process.wait()
        wait_until(lambda: not os.path.exists(f"/proc/{recorder}/exe"), 20, "the recorder to end")
        # A process that has ended and that nobody waits for has no program.
        wait_until(lambda: not any(map(lives_on, others)), 20, f"the other children of the keeper to end: {others}")
        for name in SESSIONS:
            equal(daemon.open_segments(name), [], f"what {name} left open")
            segments = daemon.segments(name)
            recording.check_clean(segments)
            times = recording.by_cpu(recording.samples(segments))
            for cpu in range(CPUS):
                check(killed_ns - times[cpu][-1] < SLACK_NS, f"CPU {cpu} of {name} ends early")


if __name__ == "__main__":
    main()
