#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that we write, under the perfs of Debian 13 and of its backports: what profctl converts reads
as the original, each sample of what profd records of a storm, with rotation and in both layouts,
has the process and the file that this Debian's perf gives it, and a program whose build id comes late
or never is named by no other file."""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from debian import debian  # noqa: E402
import recording  # noqa: E402
from daemon import Daemon, children, session, status_of  # noqa: E402
from naming import (BARE, MARK, NEW, OLD, build_id, check_ran, check_unnamed, deploy, mappings, start,  # noqa: E402
                    symbols)
from varlink import Varlink  # noqa: E402
from workload import run_load, scratch, spinning, wait_until  # noqa: E402
from tap import build_path, check, equal, main, test  # noqa: E402

PERFS = ("trixie", "trixie-backports")
PROFCTL = build_path("client", "profctl")

MANY = ["sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done; sleep 1"]
BUSY = ["sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"]
# What is recorded, and how perf record is told.
RECORDINGS = {
    "plain": ["-a", "-g", "-F", "499", "-e", "cpu-clock", *MANY],
    "zstd": ["-z", "-a", "-g", "-F", "499", "-e", "cpu-clock", *MANY],
    "groups": ["-a", "-F", "499", "-e", "{cpu-clock,task-clock}:S,context-switches", *MANY],
    "tracepoint": ["-a", "-e", "sched:sched_switch", *MANY],
    "cgroups": ["-a", "--all-cgroups", "--namespaces", "-e", "cpu-clock", *MANY],
    "dwarf": ["--call-graph", "dwarf,1024", "-e", "cpu-clock", *BUSY],
    "pipe": ["-e", "cpu-clock", *BUSY],
}
COMPLAINTS = re.compile("corrupt|incompatible|out of order|invalid|unknown feature", re.I)

SECONDS = 6
CONFIG = session(Frequency=999, RotateIntervalSec="2s") + \
    session("folder", Frequency=999, RotateIntervalSec="2s", Layout="directory")


def record(name, path):
    command = ["perf", "record", "-q", "-N", "-o", "-" if name == "pipe" else path, *RECORDINGS[name]]
    with open(path if name == "pipe" else os.devnull, "wb") as out, spinning():
        subprocess.run(command, check=True, stdout=out, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def perf_of(suite, folder):
    """That Debian with our folder under its own name, and the kernel, which has its symbols."""
    with debian(suite) as machine:
        for place in (folder, "/proc", "/sys", os.environ["HOME"]):
            machine.bind(place)
        recording.PERF = ["chroot", machine.root, "perf"]
        try:
            yield machine
        finally:
            recording.PERF = ["perf"]


def convert(folder, name):
    """Through each container, compressed and not."""
    for layout in ("file", "directory", "pipe"):
        for compress in ("none", "zstd:3"):
            out = os.path.join(folder, f"{name}.{layout}.{compress.split(':')[0]}")
            subprocess.run([PROFCTL, "-q", "convert", os.path.join(folder, name), out, "--layout", layout,
                            "--compress", compress], check=True)
            yield out


def difference(got, expected):
    """Where the one begins to be other than the other."""
    for number, pair in enumerate(itertools.zip_longest(got, expected)):
        if pair[0] != pair[1]:
            return f"line {number} of {len(got)} is {pair[0]!r}, that of {len(expected)} is {pair[1]!r}"
    return None


def fault(machine, original, path):
    """What is wrong with a file under this perf, or None."""
    expected, got = (machine.run("perf", "script", "-i", name) for name in (original, path))
    if expected.returncode != 0 or not expected.stdout:
        return f"the original cannot be read: {expected.stderr[-500:]}"
    if got.returncode != 0:
        return f"status {got.returncode}: {got.stderr[-500:]}"
    more = [line for line in got.stderr.splitlines() if line not in expected.stderr]
    if COMPLAINTS.search("\n".join(more)):
        return f"says more than of the original: {more[:5]}"
    return difference(got.stdout.splitlines(), expected.stdout.splitlines())


def conversions_of(name):
    with scratch() as folder:
        original = os.path.join(folder, name)
        record(name, original)
        converted = list(convert(folder, name))
        for suite in PERFS:
            with perf_of(suite, folder) as machine:
                for path in converted:
                    what = f"{os.path.basename(path)} under the perf of {suite}"
                    found = fault(machine, original, path)
                    if found:
                        # The kernel's symbols may have changed between the two: what is wrong stays so.
                        print(f"# note: {what} once: {found}")
                        found = fault(machine, original, path)
                    check(not found, f"{what}: {found}")


def define_conversion(name):
    def run():
        conversions_of(name)
    run.__name__ = f"conversions_of_{name}_read_as_the_original"
    test(run)


for _name in RECORDINGS:
    define_conversion(_name)


def names(rows):
    return {(r.cpu, r.time): (r.pid, r.tid, r.comm, r.dso) for r in rows}


def record_storm(folder):
    with Daemon(folder, config=CONFIG) as daemon:
        with spinning():
            run_load("storm", folder, SECONDS)
        equal(daemon.stop(), 0, "status of profd")
        return {name: daemon.segments(name) for name in ("default", "folder")}


def differences(segments, here):
    """Sentences, of the perf in use."""
    found = recording.judge(segments)
    there = names(recording.rows(segments))
    if there.keys() != here.keys():
        found.append(f"{len(there)} samples instead of {len(here)}")
    other = [(key, here[key], there[key]) for key in here.keys() & there.keys() if here[key] != there[key]]
    if other:
        found.append(f"{len(other)} of {len(here)} samples have other names, as {other[:3]}")
    return found


@test
def perf_reads_storms_in_both_layouts_alike():
    with scratch() as folder:
        sessions = record_storm(folder)
        here = {name: names(recording.rows(segments)) for name, segments in sessions.items()}
        for suite in PERFS:
            with perf_of(suite, folder) as machine:
                version = machine.run("perf", "--version").stdout.strip()
                for name, segments in sessions.items():
                    check(len(here[name]) > 1000, f"only {len(here[name])} samples in {name}")
                    found = differences(segments, here[name])
                    print(f"# {version}: {len(here[name])} samples of {len(segments)} segments of {name}, "
                          f"{len(found)} complaints")
                    check(not found, "\n".join(words[:400] for words in found[:5]))


ANSWER_LATE_S = 4  # profd waits 3 s for a build id


def elf_helper(daemon):
    """The process that reads build ids."""
    return next((pid for pid in children(daemon.process.pid) if status_of(pid, "Name") == "profd-elf"), None)


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Deployed:
    """Programs whose build id comes late or never, and at whose paths other files lie by now."""

    def __init__(self, folder):
        self.paths = {name: os.path.join(folder, name) for name in ("late", "ended", "bare")}
        with Daemon(folder, config=session(Event="cpu-clock", Frequency=499)) as daemon:
            self.pids = self.run(daemon)
            self.after = take_snapshot(daemon, "after")
            equal(daemon.stop(), 0, f"status of profd ({daemon.log()[-1000:]})")
            self.segments = daemon.segments()

    def start(self, name, build, milliseconds):
        deploy(build, self.paths[name])
        return start(self.paths[name], milliseconds)

    def run(self, daemon):
        # One that is asked for first, so that the helper runs.
        bare = self.start("bare", BARE, 500)
        bare.wait()
        helper = wait_until(lambda: elf_helper(daemon), 10, "the helper that reads build ids")
        with stopped(helper):
            late = self.start("late", OLD, 60_000)
            time.sleep(0.5)
            ended = self.start("ended", OLD, 500)
            ended.wait()
            for path in self.paths.values():
                deploy(NEW, path)
            time.sleep(ANSWER_LATE_S)
            self.before = take_snapshot(daemon, "before")
        time.sleep(2)
        late.kill()
        late.wait()
        return {"late": late.pid, "ended": ended.pid, "bare": bare.pid}


def take_snapshot(daemon, name):
    with Varlink(daemon.control()) as v:
        return v.one("Snapshot", name=name, lastUsec=60_000_000)["snapshot"]["path"]


def check_late_and_missing_ids(deployed):
    """By the perf in use."""
    late, pid = deployed.paths["late"], deployed.pids["late"]
    check_unnamed(deployed.before, pid, late)
    for path in [deployed.after, *deployed.segments]:
        mapped = {m for m in mappings(path, pid) if m[1].startswith(late)}
        equal(mapped, {(None, late + MARK), (build_id(OLD), late)}, f"what {path} says is mapped")
        check_ran(path, pid, late, OLD, "deploy_old_work")
        for name in ("ended", "bare"):
            check_unnamed(path, deployed.pids[name], deployed.paths[name])
    for path in [deployed.before, deployed.after, *deployed.segments]:
        # Without the old build at hand, nothing is taken from the new one at the same path.
        named = {function for dso, function in symbols(path, pid) if dso.startswith(late)}
        equal(named, {"[unknown]"}, f"functions in {path} of a file that is gone")
        equal(recording.judge(path), [], f"complaints of {path}")


@test
def late_or_missing_build_ids_name_no_function_of_the_file_at_the_path():
    with scratch() as folder:
        deployed = Deployed(folder)
        check_late_and_missing_ids(deployed)
        for suite in PERFS:
            with perf_of(suite, folder) as machine:
                check_late_and_missing_ids(deployed)
                print(f"# {machine.run('perf', '--version').stdout.strip()}: late and missing build ids are as here")


if __name__ == "__main__":
    main()
