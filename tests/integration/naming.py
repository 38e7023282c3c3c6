# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs of which there are several builds, and how a recording names them by the perf in use: by the
functions of the build that ran, or by none."""

import os
import re
import shutil
import subprocess

import recording
from workload import program
from tap import equal

OLD, NEW, BARE = (program(f"deploy-{build}") for build in ("old", "new", "bare"))
MARK = "[no-build-id]"
MAPPED = re.compile(r"PERF_RECORD_MMAP2 (-?\d+)/\d+: \[\S+ @ \S+ (?:<([0-9a-f]+)>|[^\]]*)\]: \S+ (.*)$")
ID = re.compile(r"Build ID: ([0-9a-f]+)")


def build_id(path):
    said = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    found = ID.search(said)
    return found and found.group(1)


def mappings(path, pid):
    """(build id or None, file) of what this process maps, as the recording has it."""
    said = subprocess.run([*recording.PERF, "script", "-i", path, "--show-mmap-events"], capture_output=True,
                          text=True, errors="replace", check=True).stdout
    found = filter(None, map(MAPPED.search, said.splitlines()))
    return {(m.group(2), m.group(3)) for m in found if int(m.group(1)) == pid}


def symbols(path, pid):
    """(file, function or '[unknown]') of its samples in user space."""
    return {(r.dso, re.sub(r"\+0x[0-9a-f]+$", "", r.sym)) for r in recording.rows(path)
            if r.pid == pid and r.ip < 1 << 63}


class Cache:
    """The copies of binaries that perf keeps, in the private home of these tests."""

    def __init__(self, *files):
        self.files = files

    def __enter__(self):
        for path in self.files:
            subprocess.run(["perf", "buildid-cache", "-a", path], check=True, capture_output=True)

    def __exit__(self, *_):
        shutil.rmtree(os.path.join(os.environ["HOME"], ".debug"), ignore_errors=True)


def listed(path):
    return subprocess.run([*recording.PERF, "buildid-list", "-i", path], capture_output=True, text=True, errors="replace",
                          check=True).stdout.splitlines()


def deploy(build, path):
    """In one step, as installers do."""
    shutil.copy(build, path + ".tmp")
    os.rename(path + ".tmp", path)


def start(path, milliseconds=60_000):
    return subprocess.Popen([path, str(milliseconds)], stdout=subprocess.DEVNULL)


def check_ran(path, pid, file, build, function, before=None):
    """The recording has the id of this build for the file, perf its functions, and no others. An answer
    that came late follows a mapping without an id or, of a file that was overwritten, with that of the build before."""
    mapped = {m for m in mappings(path, pid) if m[1].startswith(file)} - {(None, file + MARK)}
    mapped -= {(build_id(before), file)} if before else set()
    equal(mapped, {(build_id(build), file)}, f"what {path} says is mapped")
    equal({line.split()[0] for line in listed(path) if line.split()[-1] == file} - {build_id(OLD), build_id(NEW)},
          set(), f"other build ids of {file} in {path}")
    with Cache(OLD, NEW):
        found = {function for dso, function in symbols(path, pid) if dso == file and "deploy_" in function}
    equal(found, {function}, f"the functions of {file} that perf script {path} shows")


def check_unnamed(path, pid, file):
    """The recording has no id for the file, and perf takes no function from what lies there."""
    mapped = {m for m in mappings(path, pid) if m[1].startswith(file)}
    equal(mapped, {(None, file + MARK)}, f"what {path} says is mapped")
    named = {f for dso, f in symbols(path, pid) if dso.startswith(file)}
    equal(named, {"[unknown]"}, f"functions that perf takes from {file} in {path}")
