#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Build ids in what profd records: those that readelf and perf show, also of programs that were
replaced or deleted before anybody looked, and never those of the files that took their place."""

import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon, session  # noqa: E402
from workload import end, need_root, scratch, spinning  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

LOAD = build_path("tests", "bench", "load")
OTHER = "/bin/cat"
MARK = "[no-build-id]"
ENDED = 5
CONFIG = session(Event="cpu-clock", Frequency=199, RotateIntervalSec="1s")
MAPPED = re.compile(r"PERF_RECORD_MMAP2 (-?\d+)/\d+: \[\S+ @ \S+ (?:<([0-9a-f]+)>|[^\]]*)\]: \S+ (.*)$")


def readelf(path):
    said = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", said)
    if not found:
        skip(f"no build id in {path}, or no readelf")
    return found.group(1)


def told(segment):
    """(pid, build id or None, path) of the mappings."""
    said = subprocess.run(["perf", "script", "-i", segment, "--show-mmap-events"], capture_output=True,
                          text=True, errors="replace", check=True).stdout
    return {(int(m.group(1)), m.group(2), m.group(3)) for m in map(MAPPED.search, said.splitlines()) if m}


class Program:
    """A copy of a busy program, run under a path at which another file lies by then."""

    def __init__(self, folder, name, takes_its_place):
        self.path = os.path.join(folder, name)
        shutil.copy(LOAD, self.path)
        self.process = subprocess.Popen([self.path])
        while os.readlink(f"/proc/{self.process.pid}/exe") != self.path:
            time.sleep(0.001)
        os.unlink(self.path)
        if takes_its_place:
            shutil.copy(OTHER, self.path)

    def ids(self, mappings):
        return {build_id for pid, build_id, path in mappings
                if pid == self.process.pid and path.startswith(self.path)}


def end_and_replace(path):
    """It was sampled, and is gone and replaced before anybody can have looked at it."""
    shutil.copy(LOAD, path)
    process = subprocess.Popen([path])
    time.sleep(0.05)
    end(process)
    os.unlink(path)
    shutil.copy(OTHER, path)


@test
def replaced_and_deleted_programs_have_their_own_build_ids():
    need_root()
    wanted, wrong = readelf(LOAD), readelf(OTHER)
    check(wanted != wrong, "two programs have one build id")
    programs = []
    with scratch() as folder:
        try:
            programs += [Program(folder, "replaced-before", True), Program(folder, "deleted-before", False)]
            with Daemon(folder, config=CONFIG) as daemon:
                programs += [Program(folder, "replaced-after", True), Program(folder, "deleted-after", False)]
                for number in range(ENDED):
                    end_and_replace(os.path.join(folder, f"ended-{number}"))
                daemon.wait_for_segments(3)
                equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        finally:
            for program in programs:
                end(program.process)
        segments = daemon.segments()
        for segment in segments:
            for _, build_id, path in told(segment):
                check(not path.startswith(folder) or build_id != wrong, f"{path} has the build id of {OTHER}")
        ended = {(build_id, path) for segment in segments for _, build_id, path in told(segment)
                 if path.startswith(os.path.join(folder, "ended-"))}
        check(len(ended) > 0, "no program that ended at once was sampled")
        for build_id, path in ended:
            check(build_id == wanted or (build_id is None and path.endswith(MARK)),
                  f"{path} has the build id {build_id}, not that of {LOAD}, and may be named from its path")
        # The first segment began before they could be looked up; on a busy machine not every one
        # has samples of each.
        later = set().union(*(told(segment) for segment in segments[1:]))
        for program in programs:
            equal(program.ids(later), {wanted}, f"build ids of {program.path}")


def vdso_of_perf():
    """Its build id by perf, which lists all that is mapped, not only what is sampled."""
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        subprocess.run(["perf", "record", "-q", "-a", "--buildid-all", "-e", "cpu-clock", "-o", path, "sleep", "0.3"],
                       check=True)
        listed = subprocess.run(["perf", "buildid-list", "-i", path], capture_output=True, text=True, errors="replace", check=True).stdout
        return {line.split()[0] for line in listed.splitlines() if line.endswith(" [vdso]")}


@test
def the_kernel_has_the_build_id_that_perf_shows():
    need_root()
    shown = subprocess.run(["perf", "buildid-list", "-k"], capture_output=True, text=True, errors="replace", check=True).stdout.strip()
    with scratch() as folder:
        with Daemon(folder, config=CONFIG) as daemon:
            daemon.wait_for_segments(1)
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        for segment in daemon.segments():
            listed = subprocess.run(["perf", "buildid-list", "-i", segment], capture_output=True, text=True, errors="replace",
                                    check=True).stdout
            check(f"{shown} [kernel.kallsyms]" in listed, f"perf buildid-list says {listed[:300]}")


@test
def the_vdso_has_the_build_id_that_perf_shows():
    need_root()
    with scratch() as folder, spinning():
        with Daemon(folder, config=CONFIG) as daemon:
            daemon.wait_for_segments(2)
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        found = {build_id for segment in daemon.segments() for _, build_id, path in told(segment)
                 if path == "[vdso]"}
        equal(found, vdso_of_perf(), "build ids of [vdso]")


@test
def files_of_the_system_have_the_build_ids_that_readelf_shows():
    need_root()
    with scratch() as folder, spinning():
        with Daemon(folder, config=CONFIG) as daemon:
            daemon.wait_for_segments(2)
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        seen = {(path, build_id) for _, build_id, path in told(daemon.segments()[-1])
                if build_id and path.startswith("/usr/") and os.path.exists(path)}
        check(len(seen) > 0, "no file of the system has a build id")
        for path, build_id in seen:
            equal(build_id, readelf(path), f"build id of {path}")


if __name__ == "__main__":
    main()
