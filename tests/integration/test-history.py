#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The floor rule under the real perf: a recording of a storm, cut into pieces as a recorder would
have written them, each piece read by itself. Every sample has the comm, the call chain, the symbols
and the dsos that it has in the whole recording, and perf complains of nothing.

With a word of the form file=PATH a recording of yours is taken instead.
"""

import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check, main, skip, test  # noqa: E402

HISTORY = build_path("tests", "integration", "history")
STORM = build_path("tests", "integration", "load", "storm")
FOLDER = tempfile.TemporaryDirectory(prefix="profd-history.")
SAMPLE = re.compile(r"\s*(.*?)\s+(-?\d+)/(-?\d+)\s+\[(\d+)\]\s+(\d+\.\d+):(.*)$")
FIELDS = "comm,pid,tid,cpu,time,ip,sym,dso"
ENVIRONMENT = dict(os.environ, HOME=FOLDER.name)
MILLISECOND = 1000000
LONG = bool(os.environ.get("PROFD_TEST_LONG"))
FRAME = re.compile(r"([0-9a-f]+) (.*) \((.*)\)$")
whole = {}


def frame_of(line):
    """Symbols of files that others change while we read are left out."""
    address, symbol, dso = FRAME.match(line.strip()).groups()
    lasts = dso.startswith(("[", "/usr/", "/lib"))
    return f"{address} {symbol if lasts else ''} ({dso})"


def samples_of(path):
    """By time, CPU, tid and pid: comm and frames."""
    result = subprocess.run(["perf", "script", "--ns", "-F", FIELDS, "-i", path],
                            capture_output=True, check=True, timeout=300, env=ENVIRONMENT)
    check(not result.stderr.strip(), f"{path}: {result.stderr[:300]!r}")
    samples = {}
    for block in result.stdout.decode(errors="surrogateescape").split("\n\n"):
        lines = [line for line in block.split("\n") if line.strip()]
        if not lines:
            continue
        comm, pid, tid, cpu, time, _ = SAMPLE.match(lines[0]).groups()
        key = (time, cpu, tid, pid)
        check(key not in samples, f"{path}: {key} stands there twice")
        samples[key] = (comm, [frame_of(line) for line in lines[1:]])
    return samples


def record():
    given = [word for word in sys.argv if word.startswith("file=")]
    if given:
        sys.argv.remove(given[0])
        return Path(given[0][5:]).absolute()
    path = Path(FOLDER.name) / "whole.data"
    stage = Path(FOLDER.name) / "stage"
    stage.mkdir()
    command = ["perf", "record", "-q", "-a", "-g", "-k", "CLOCK_MONOTONIC", "-F", "1500", "-B", "-N",
               "-e", "cpu-clock", "-o", path, "--", STORM, stage, "3"]
    try:
        result = subprocess.run(command, capture_output=True, check=False, timeout=120,
                                env=ENVIRONMENT)
    except FileNotFoundError:
        skip("perf is not installed")
    if result.returncode != 0:
        skip(f"perf cannot record here: {result.stderr.decode(errors='replace')[-200:]!r}")
    return path


def whole_recording():
    if not whole:
        whole["path"] = record()
        whole["samples"] = samples_of(whole["path"])
        check(len(whole["samples"]) > 500, f"only {len(whole['samples'])} samples")
    return whole["path"], whole["samples"]


def is_forgotten(comm, frames, comm_now, frames_now):
    """perf alone remembers what was mapped before exec, and finds it in addresses that are none."""
    return comm == comm_now and len(frames) == len(frames_now) and all(
        a == b or (i > 0 and "([unknown])" in b) for i, (a, b) in enumerate(zip(frames, frames_now)))


def differing(samples, pieces):
    for key, (comm, frames) in samples.items():
        if key not in pieces:
            yield f"{key} {comm} is missing"
        elif pieces[key] != (comm, frames) and not is_forgotten(comm, frames, *pieces[key]):
            pairs = zip([comm, *frames], [pieces[key][0], *pieces[key][1]])
            yield f"{key} {comm}: {[pair for pair in pairs if pair[0] != pair[1]][:2]}"


def cut_and_compare(sweep_ms, sweeps_a_piece, seeds=(1,), words=()):
    path, samples = whole_recording()
    for seed in seeds if LONG else seeds[:1]:
        with tempfile.TemporaryDirectory(dir=FOLDER.name) as folder:
            subprocess.run([HISTORY, path, f"{folder}/piece", str(sweep_ms * MILLISECOND),
                            str(sweeps_a_piece), str(seed), *words], check=True, timeout=120,
                           stdout=subprocess.DEVNULL)
            pieces = {}
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                for samples_of_piece in pool.map(samples_of, Path(folder).iterdir()):
                    twice = pieces.keys() & samples_of_piece.keys()
                    check(not twice, f"{twice} are in two pieces")
                    pieces |= samples_of_piece
        check(len(pieces) == len(samples), f"{len(pieces)} samples, not {len(samples)}")
        wrong = list(differing(samples, pieces))
        check(not wrong, f"seed {seed}: {len(wrong)} of {len(samples)} differ:\n"
              + "\n".join(wrong[:5]))


@test
def a_single_recording_equals_that_of_perf():
    cut_and_compare(sweep_ms=50, sweeps_a_piece=1 << 40)


@test
def recordings_of_some_sweeps_are_complete_alone():
    cut_and_compare(sweep_ms=100, sweeps_a_piece=5, seeds=(1, 2, 3))


@test
def recordings_of_a_single_sweep_are_complete_alone():
    cut_and_compare(sweep_ms=100, sweeps_a_piece=1, seeds=(4, 5))


@test
def tiny_sweeps_lose_nothing():
    cut_and_compare(sweep_ms=10, sweeps_a_piece=8, seeds=(6, 7))


@test
def long_sweeps_lose_nothing():
    cut_and_compare(sweep_ms=1000, sweeps_a_piece=2, seeds=(8, 9, 10))


@test
def build_ids_that_come_later_change_nothing():
    cut_and_compare(sweep_ms=50, sweeps_a_piece=10, seeds=(11, 12), words=["build-ids"])


if __name__ == "__main__":
    main()
