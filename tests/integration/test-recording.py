#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The judges of the other suites, tried on two perf records of the same seconds: they agree where
they are right, and finds each fault that is made in them."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import status_of  # noqa: E402
from workload import CPUS, load, need_root, perf_record, run_load, spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix="profd-test.")
PERIOD_NS = 10**9 // 999
PAIR = []
RECORDINGS_MAX = 5
# CPUs and how many ticks in a row the tests take out.
STRETCHES = ((0, 5), (1, 3))


def record_pair():
    paths = [os.path.join(FOLDER.name, name) for name in ("a.data", "b.data")]
    with spinning(), perf_record(paths[0], "-g"), perf_record(paths[1], "-g"):
        run_load("storm", FOLDER.name, 2)
    return [(p, recording.samples(p), recording.rows(p)) for p in paths]


def pair():
    """Two recordings of the same storm, once for all tests. On a host whose CPUs are taken away from it
    the ticks may not keep their beat for long enough; then the storm is recorded again."""
    need_root()
    for _ in range(0 if PAIR else RECORDINGS_MAX):
        PAIR[:] = record_pair()
        if all(find_steady(PAIR, cpu, count) for cpu, count in STRETCHES):
            break
    return PAIR


def steady(cpu, count):
    found = find_steady(pair(), cpu, count)
    check(found, "the ticks never keep their beat here")
    return found


def find_steady(recordings, cpu, count):
    """The times of as many samples in a row, in the midst of ticks that keep their beat in both
    recordings: what is taken out there is missed, and is no stall of the machine."""
    (_, samples, _), (_, others, _) = recordings
    begin, end = recording.common_window(samples, others, margin_ns=20 * PERIOD_NS)
    own, other = (recording.by_cpu(recording.within(s, begin, end))[cpu] for s in (samples, others))
    late = [b for t in (own, other) for a, b in zip(t, t[1:]) if abs(b - a - PERIOD_NS) > PERIOD_NS / 10]
    for i in range(10, len(own) - count - 10):
        if not any(own[i - 10] <= t <= own[i + count + 10] for t in late):
            return own[i:i + count]
    return None


def without(samples, cpu, times):
    return [s for s in samples if s.cpu != cpu or s.time not in times]


@test
def two_recordings_of_the_same_time_agree():
    (a, samples, rows), (_, others, reference) = pair()
    recording.check_clean(a)
    recording.check_names(rows, at_least=100)
    equal(recording.twice(samples), [], "samples that are there twice")
    equal(recording.seams(samples, others, PERIOD_NS, range(CPUS)), [], "gaps")
    compared, wrong = recording.disagreements(rows, reference, 2 * PERIOD_NS)
    check(compared > 100, f"only {compared} samples could be compared")
    equal(wrong, [], "samples with another name")
    equal(len(rows), len(samples), "rows of perf script")


@test
def missing_seconds_on_one_cpu_are_found():
    (_, samples, _), (_, others, _) = pair()
    missing = steady(0, 5)
    holed = without(samples, 0, missing)
    found = recording.seams(holed, others, PERIOD_NS, range(CPUS))
    equal([gap.cpu for gap in found], [0], "gaps")
    check(found[0].begin < missing[0] and missing[-1] < found[0].end, f"the gap is {found[0]}")


@test
def missing_samples_are_found_unless_both_recordings_miss_them():
    (_, samples, _), (_, others, _) = pair()
    own = steady(1, 3)
    holed = without(samples, 1, own)
    check(recording.seams(holed, others, PERIOD_NS, range(CPUS)), "no gap was found")
    stalled = [s for s in others if s.cpu != 1 or not own[0] - PERIOD_NS < s.time < own[-1] + PERIOD_NS]
    equal(recording.seams(holed, stalled, PERIOD_NS, range(CPUS)), [], "gaps of a machine that stood still")


@test
def two_missing_ticks_may_be_hidden_once_but_not_again():
    (_, samples, _), (_, others, _) = pair()
    once = without(samples, 1, steady(1, 2))
    equal(recording.seams(once, others, PERIOD_NS, range(CPUS)), [], "gaps where two ticks are missing")
    again = without(once, 0, steady(0, 2))
    equal({gap.cpu for gap in recording.seams(again, others, PERIOD_NS, range(CPUS))}, {0, 1},
          "CPUs where two ticks are missing")


@test
def a_cpu_without_any_sample_is_found():
    (_, samples, _), (_, others, _) = pair()
    alone = [s for s in samples if s.cpu == 0]
    begin, end = recording.common_window(alone, others)
    equal({gap.cpu for gap in recording.gaps(alone, 2 * PERIOD_NS, begin, end, range(CPUS))},
          set(range(1, CPUS)) | {gap.cpu for gap in recording.gaps(alone, 2 * PERIOD_NS, begin, end, [0])},
          "CPUs with gaps")


@test
def a_cpu_that_ends_early_or_begins_late_is_found():
    (_, samples, _), (_, others, _) = pair()
    begin, end = recording.common_window(samples, others)
    early, late = end - 8 * 10**8, begin + 8 * 10**8
    for cpu in range(CPUS):
        ends = [s for s in samples if s.cpu != cpu or s.time < early]
        equal([gap.cpu for gap in recording.seams(ends, others, PERIOD_NS, range(CPUS))], [cpu], "gaps at the end")
        begins = [s for s in samples if s.cpu != cpu or s.time > late]
        equal([gap.cpu for gap in recording.seams(begins, others, PERIOD_NS, range(CPUS))], [cpu], "gaps at the begin")
        equal(recording.seams(begins, others, PERIOD_NS, range(CPUS), begin_ns=late), [], "gaps from then on")
        equal(recording.seams(ends, others, PERIOD_NS, range(CPUS), end_ns=early), [], "gaps until then")


@test
def a_recorder_that_ends_early_is_found():
    (_, samples, _), (_, others, _) = pair()
    begin, end = recording.common_window(samples, others)
    for until in (end - 8 * 10**8, begin + 10**8):
        ends = recording.within(samples, 0, until)
        equal([gap.cpu for gap in recording.seams(ends, others, PERIOD_NS, range(CPUS))], list(range(CPUS)), "gaps")


@test
def a_duplicate_sample_is_found():
    (_, samples, _), _ = pair()
    equal(len(recording.twice(samples + samples[7:9])), 2, "samples that are there twice")


@test
def names_of_others_and_missing_names_are_found():
    (_, _, rows), (_, _, reference) = pair()
    index = next(i for i, r in enumerate(rows) if r.sym == "storm_thread_work")
    row = rows[index]
    equal(len(recording.misnamed([row._replace(comm="storm-leader")])), 1, "wrong comm")
    equal(len(recording.misnamed([row._replace(comm="storm-exec", sym="x")])), 1, "wrong file")
    equal(len(recording.nameless([row._replace(comm=f":{row.tid}")])), 1, "missing comm")
    equal(len(recording.nameless([row._replace(dso="[unknown]")])), 1, "missing file")
    renamed = [r._replace(comm="somebody") if r.sym == "storm_thread_work" else r for r in rows]
    check(recording.disagreements(renamed, reference, 2 * PERIOD_NS)[1], "no difference was found")


@test
def a_truncated_recording_is_not_clean():
    (path, _, _), _ = pair()
    cut = os.path.join(FOLDER.name, "cut.data")
    with open(path, "rb") as f:
        whole = f.read()
    with open(cut, "wb") as f:
        f.write(whole[:len(whole) // 2])
    check(recording.judge(cut), "nobody complains of a recording that is cut")


@test
def idle_processes_come_and_go_with_their_load():
    need_root()
    with load("idle", 50, 2) as process:
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as f:
            pids = f.read().split()
        equal(len(pids), 50, "processes")
        equal(len(os.listdir(f"/proc/{pids[-1]}/task")), 3, "threads of one of them")
    wait_until(lambda: (status_of(pids[0], "State") or "Z")[0] in "ZX", 10, "the idle ones to go")


if __name__ == "__main__":
    main()
