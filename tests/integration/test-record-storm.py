#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A storm of exec, fork, threads that outlive their leader and pids that come again: each sample
has the names that the load itself gives it, and those of a perf record of the same seconds."""

import contextlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import session  # noqa: E402
from scene import Scene  # noqa: E402
from workload import LONG, perf_record, run_load  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

SECONDS = 20 if LONG else 5
HZ = 2999
NEAR_NS = 2_000_000
CONFIG = session(Frequency=HZ, RotateIntervalSec="2s", CallGraph="unwind:4096") + \
    session("folder", Frequency=HZ, RotateIntervalSec="2s", CallGraph="fp", Layout="directory", Compress="none")


class Run(Scene):
    """One storm for all tests."""

    config, load = CONFIG, contextlib.nullcontext
    rows = {}

    @classmethod
    def begin(cls, enter):
        super().begin(enter)
        with perf_record(os.path.join(cls.folder, "perf.data"), "-g", frequency=HZ) as perf:
            run_load("storm", cls.folder, SECONDS)
        equal(cls.daemon.stop(), 0, f"status of profd ({cls.daemon.log()[-1000:]})")
        cls.reference = recording.rows(perf.path)
        for name in ("default", "folder"):
            rows = recording.rows(cls.daemon.segments(name))
            cls.rows[name] = [r for r in rows if r.time > cls.daemon.ready_ns]


@test
def perf_and_verify_report_no_problem():
    run = Run.get()
    for name in run.rows:
        recording.check_clean(run.daemon.segments(name))


@test
def each_sample_has_the_names_that_the_load_gives_it():
    run = Run.get()
    for rows in run.rows.values():
        recording.check_names(rows, at_least=200 * SECONDS)


@test
def every_kind_of_process_was_sampled():
    run = Run.get()
    for name, rows in run.rows.items():
        comms = {r.comm for r in rows}
        for comm in {c for symbol, cs in recording.COMMS.items() if symbol.startswith("storm") for c in cs}:
            check(comm in comms or comm == "storm-short", f"there is no sample of {comm} in {name}")


@test
def each_sample_has_the_names_of_a_simultaneous_perf_record():
    run = Run.get()
    for name, rows in run.rows.items():
        compared, wrong = recording.disagreements(rows, run.reference, NEAR_NS)
        check(compared > 100 * SECONDS, f"only {compared} samples of {name} could be compared")
        check(not wrong, f"{len(wrong)} of {compared} samples of {name} differ, as {wrong[:3]}")


if __name__ == "__main__":
    main()
