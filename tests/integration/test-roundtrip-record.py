#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings that perf makes here and now, in many shapes, through every container and back."""

import glob
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from roundtrip import LONG, PROFCTL, convert, info, perf, round_trip, same_text  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

# Forks, execs, some CPU, some faults; a few hundred records.
LOAD = ["sh", "-c", "for i in 1 2 3; do ls -R /etc >/dev/null 2>&1; (:); done; i=0; "
                    "while [ $i -lt 20000 ]; do i=$((i+1)); done"]
CLOCK = ["-e", "cpu-clock", "-F", "2000"]

# Name, arguments of perf record, whether the default run has it.
SHAPES = [
    ("one_event", CLOCK, True),
    ("all_cpus_with_call_chains", ["-a", "-g", *CLOCK], True),
    ("compressed", ["-a", "-z", *CLOCK], True),
    ("compressed_hard", ["-a", "-g", "-z22", *CLOCK], False),
    ("threads", ["-a", "--threads", *CLOCK], True),
    ("threads_compressed", ["-a", "-g", "--threads=cpu", "-z", *CLOCK], False),
    ("user_stacks", ["--call-graph", "dwarf,4096", "-e", "cpu-clock", "-F", "500"], True),
    ("several_events", ["-a", "-e", "cpu-clock", "-e", "task-clock", "-e", "context-switches",
                        "-e", "page-faults"], True),
    ("events_that_differ", ["-a", "-e", "cpu-clock/freq=997,call-graph=fp/", "-e",
                            "page-faults/call-graph=no,period=3/"], True),
    ("a_group", ["-e", "{cpu-clock,task-clock}:S", "-F", "1000"], True),
    ("a_group_without_values", ["-e", "{cpu-clock,page-faults}"], False),
    ("tracepoints", ["-a", "-e", "sched:sched_switch", "-e", "sched:sched_process_fork"], True),
    ("a_tracepoint_with_call_chains", ["-a", "-g", "-e", "sched:sched_process_exec"], False),
    ("tracepoint_and_clock", ["-a", "-e", "cpu-clock", "-e", "sched:sched_process_exit"], False),
    ("side_band_alone", ["-a", "-e", "dummy"], True),
    ("cgroups", ["-a", "--all-cgroups", *CLOCK], True),
    ("namespaces", ["--namespaces", *CLOCK], True),
    ("switches", ["-a", "--switch-events", *CLOCK], False),
    ("data_addresses", ["-a", "-d", "--phys-data", *CLOCK], False),
    ("registers", ["--intr-regs=ip,sp", "--user-regs=ip,sp", *CLOCK], False),
    ("weights_and_periods", ["-W", "-P", *CLOCK], False),
    ("without_times", ["--no-timestamp", "--no-inherit", *CLOCK], False),
    ("a_clock_of_its_own", ["-k", "CLOCK_MONOTONIC", *CLOCK], False),
    ("build_ids_in_mappings", ["--buildid-mmap", *CLOCK], False),
    ("build_ids_of_all", ["--buildid-all", *CLOCK], False),
    ("told_at_the_end", ["-a", "--overwrite", "--tail-synthesize", *CLOCK], False),
    ("in_one_thread", ["--per-thread", *CLOCK], False),
    ("a_name_of_its_own", ["-e", "cpu-clock/name=weird-name/"], False),
    ("with_samples_by_cpu", ["-a", "--sample-cpu", "--sample-identifier", *CLOCK], False),
]


def record(folder, arguments, name="in.data", verb=("record",)):
    out = os.path.join(folder, name)
    done = subprocess.run(["perf", *verb, *arguments, "-o", out, "--", *LOAD], cwd=folder,
                          capture_output=True, check=False, timeout=60)
    if done.returncode != 0 or not os.path.exists(out):
        skip("perf cannot record this here: " +
             done.stderr.decode(errors="replace").strip().replace("\n", " ")[-120:])
    return out


def add_test(name, arguments):
    def case():
        with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
            round_trip(record(folder, ["-q", *arguments]), folder)

    case.__name__ = name + "_stays_what_it_is"
    test(case)


for _name, _arguments, _default in SHAPES:
    if _default or LONG:
        add_test(_name, _arguments)


@test
def recordings_of_perf_stat_are_rewritten_unchanged():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        path = record(folder, ["-e", "cpu-clock,page-faults", "-I", "20"], verb=("stat", "record"))
        round_trip(path, folder)
        want = subprocess.run(["perf", "stat", "report", "-i", path], capture_output=True,
                              check=True).stderr
        for layout in ("file", "directory"):
            out = os.path.join(folder, "out")
            convert(path, out, layout)
            got = subprocess.run(["perf", "stat", "report", "-i", out], capture_output=True,
                                 check=True).stderr
            equal(got, want, f"perf stat report of a {layout}")


@test
def recordings_of_perf_sched_are_rewritten_unchanged():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        path = record(folder, ["-q"], verb=("sched", "record"))
        round_trip(path, folder)
        want = perf("sched", path, ["timehist"], False)
        out = os.path.join(folder, "out")
        convert(path, out, "directory")
        same_text(perf("sched", out, ["timehist"], False), want, "perf sched timehist")


@test
def a_recorded_stream_is_rewritten_unchanged():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        for number, arguments in enumerate([["-a", "-g", *CLOCK], ["-a", "-z", *CLOCK]]):
            out = os.path.join(folder, f"{number}.stream")
            with open(out, "wb") as stream:
                done = subprocess.run(["perf", "record", "-q", *arguments, "-o", "-", "--", *LOAD],
                                      stdout=stream, stderr=subprocess.PIPE, check=False)
            if done.returncode != 0:
                skip("perf cannot record a stream here")
            round_trip(out, folder)


@test
def each_part_of_a_switched_output_is_rewritten_unchanged():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        done = subprocess.run(["perf", "record", "-q", "-a", *CLOCK, "--switch-output=200K", "-o",
                               os.path.join(folder, "part"), "--", *LOAD],
                              capture_output=True, check=False)
        parts = sorted(glob.glob(os.path.join(folder, "part.*")))
        if done.returncode != 0 or not parts:
            skip("perf cannot switch its output here")
        for part in parts if LONG else parts[:2]:
            round_trip(part, folder)


@test
def a_stream_flows_through_both_programs():
    """profctl convert x - | perf script -i -"""
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        path = record(folder, ["-q", *CLOCK])
        with subprocess.Popen([PROFCTL, "convert", path, "-"], stdout=subprocess.PIPE) as convert_process:
            got = subprocess.run(["perf", "script", "-i", "-"], stdin=convert_process.stdout,
                                 capture_output=True, check=False)
        equal(convert_process.returncode, 0, "the status of profctl")
        equal(got.returncode, 0, "the status of perf")
        same_text(got.stdout.rstrip(b"\n"), perf("script", path, [], False).rstrip(b"\n"),
                  "perf script of a stream")
        check(info(path)["n_samples"] > 0, "there are samples")


if __name__ == "__main__":
    main(at_once=1 if LONG else 2)
