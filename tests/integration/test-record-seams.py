#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rotation: two sessions that rotate, one a layout, beside one that does not, all under a load that
fills each tick. Nothing is missing at a seam, nothing is there twice, every segment stands alone.
"""

import contextlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import session  # noqa: E402
from profctl import check_unwinds  # noqa: E402
from scene import Scene  # noqa: E402
from workload import CPUS, LONG, run_load, spinning  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

SECONDS, FORKS = (30, 300) if LONG else (10, 200)
ROTATE_S = 3
PERIOD_NS = 10**9 // 999
NAMES = {"default": "file", "folder": "directory", "unwound": "file"}
CONFIG = "[Profd]\nMaxBufferTotal=512M\n" + session(Frequency=999, RotateIntervalSec=f"{ROTATE_S}s") + \
    session("folder", Frequency=999, RotateIntervalSec=f"{ROTATE_S}s", Layout="directory") + \
    session("unwound", Frequency=999, RotateIntervalSec=f"{ROTATE_S}s", CallGraph="unwind") + \
    session("whole", Frequency=999, RotateIntervalSec=0)


class Run(Scene):
    """One recording for all tests."""

    config, load = CONFIG, contextlib.nullcontext
    samples = {}

    @classmethod
    def begin(cls, enter):
        super().begin(enter)
        with spinning():
            run_load("storm", "--rate", FORKS, SECONDS)
        check_unwinds(cls.daemon)
        equal(cls.daemon.stop(), 0, f"status of profd ({cls.daemon.log()[-1000:]})")
        for name in (*NAMES, "whole"):
            cls.samples[name] = recording.samples(cls.daemon.segments(name))


def under_load(samples, whole):
    """The time that the load filled and all sessions recorded."""
    spun = [s.time for s in whole if s.pid > 0]
    begin, end = recording.common_window(samples, whole)
    return max(begin, min(spun)), min(end, max(spun))


@test
def perf_opens_each_segment_of_both_layouts_without_a_warning():
    run = Run.get()
    for name in (*NAMES, "whole"):
        recording.check_clean(run.daemon.segments(name))


@test
def sessions_rotate_by_their_own_time():
    run = Run.get()
    for name, layout in NAMES.items():
        segments = run.daemon.segments(name)
        check(SECONDS // ROTATE_S <= len(segments) <= SECONDS // ROTATE_S + 2,
              f"{name} has {len(segments)} segments after {SECONDS} s")
        equal({os.path.isdir(s) for s in segments}, {layout == "directory"}, f"folders of {name}")
        equal(run.daemon.open_segments(name), [], f"what {name} left open")
    equal(len(run.daemon.segments("whole")), 1, "segments of the session that does not rotate")


@test
def no_sample_is_duplicated():
    run = Run.get()
    for name in NAMES:
        equal(recording.twice(run.samples[name])[:3], [], f"samples of {name} that are there twice")


@test
def no_sample_is_missing_at_a_seam():
    run = Run.get()
    whole = run.samples["whole"]
    equal(recording.lost(p for n in (*NAMES, "whole") for p in run.daemon.segments(n)), 0, "lost samples")
    for name in NAMES:
        found = recording.seams(run.samples[name], whole, PERIOD_NS, range(CPUS))
        begins = [min((s.time for s in recording.samples(p)), default=None) for p in run.daemon.segments(name)]
        equal(found[:3], [], f"{len(found)} gaps of {name}, whose segments begin at {begins},")


@test
def rotations_do_not_change_the_number_of_samples():
    run = Run.get()
    whole = run.samples["whole"]
    for name in NAMES:
        begin, end = under_load(run.samples[name], whole)
        counts = [{cpu: len(t) for cpu, t in recording.by_cpu(recording.within(s, begin, end)).items()}
                  for s in (run.samples[name], whole)]
        for cpu in range(CPUS):
            got, want = counts[0].get(cpu, 0), counts[1].get(cpu, 0)
            check(abs(got - want) <= 3 + want // 500, f"CPU {cpu} of {name} has {got} samples, not {want}")


@test
def every_sample_has_its_names_short_lived_processes_included():
    run = Run.get()
    for name in (*NAMES, "whole"):
        rows = recording.rows(run.daemon.segments(name))
        equal(len(rows), len(run.samples[name]), f"what perf script prints of {name}")
        recording.check_names([r for r in rows if r.time > run.daemon.ready_ns], at_least=100 * SECONDS)
        short = {r.pid for r in rows if r.comm == "storm-short"}
        check(len(short) > 10 * SECONDS, f"only {len(short)} short-lived processes were seen in {name}")


if __name__ == "__main__":
    main()
