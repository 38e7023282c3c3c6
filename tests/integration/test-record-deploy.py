#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A program that was just deployed, and files that change while they run: perf names the functions
of the build that ran, or none, and never those of the file that lies at its path by then."""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, children, session, status_of  # noqa: E402
from naming import BARE, MARK, NEW, OLD, build_id, check_ran, check_unnamed, deploy, listed, start, symbols  # noqa: E402
from profctl import as_json, profctl  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import need_root, scratch, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

CONFIG = session(Event="cpu-clock", Frequency=499) + \
    session("folder", Event="cpu-clock", Frequency=499, Layout="directory")
NAMES = ("default", "folder")


def snapshot(daemon, name="default", **asked):
    with Varlink(daemon.control()) as v:
        return v.one("Snapshot", session=name, lastUsec=60_000_000, **asked)["snapshot"]


def segments(daemon, pid, *names):
    """The segments with samples of the process: CPUs that come or go end a segment, too."""
    found = [path for name in names or ("default",) for path in daemon.segments(name)
             if any(s.pid == pid for s in recording.samples(path))]
    check(found, f"no segment has samples of {pid}")
    return found


@test
def a_new_program_keeps_its_names_when_its_file_is_replaced():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        path = os.path.join(folder, "served")
        deploy(OLD, path)
        process = start(path)
        try:
            time.sleep(0.5)
            taken = [snapshot(daemon, name)["path"] for name in NAMES]
            deploy(NEW, path)
            taken += [snapshot(daemon, name)["path"] for name in NAMES]
        finally:
            process.kill()
            process.wait()
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        for recorded in taken + segments(daemon, process.pid, *NAMES):
            check_ran(recorded, process.pid, path, OLD, "deploy_old_work")
            check(f"{build_id(OLD)} {path}" in listed(recorded), f"perf buildid-list lists no {path}")
            # Without the old file perf names nothing rather than functions of the new one.
            named = {f for dso, f in symbols(recorded, process.pid) if dso == path}
            equal(named, {"[unknown]"}, f"functions in {recorded} of a file that is gone")


@test
def two_builds_of_one_path_keep_their_names_in_one_recording():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        path, processes = os.path.join(folder, "served"), []
        try:
            for build in (OLD, NEW):
                deploy(build, path)
                processes.append(start(path))
                time.sleep(0.5)
            taken = [snapshot(daemon, name)["path"] for name in NAMES]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        for process, build, name in zip(processes, (OLD, NEW), ("old", "new")):
            for recorded in taken + segments(daemon, process.pid, *NAMES):
                check_ran(recorded, process.pid, path, build, f"deploy_{name}_work")


def copy_in_place(build, path):
    """As cp and scp do: returns the inode, which stays."""
    with open(build, "rb") as new, open(path, "r+b" if os.path.exists(path) else "wb") as file:
        file.write(new.read())
        file.truncate()
    os.chmod(path, 0o755)
    return os.stat(path).st_ino


@test
def a_file_that_is_overwritten_in_place_is_named_by_the_build_that_ran():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        path, pids = os.path.join(folder, "served"), []
        for build in (OLD, NEW, BARE):
            inode = copy_in_place(build, path)
            process = start(path, 700)
            process.wait()
            pids.append(process.pid)
            snapshot(daemon)
        equal(os.stat(path).st_ino, inode, "the inode of the file")
        taken = [snapshot(daemon, name)["path"] for name in NAMES]
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        for pid, build, name, before in zip(pids, (OLD, NEW), ("old", "new"), (None, OLD)):
            for recorded in taken + segments(daemon, pid, *NAMES):
                check_ran(recorded, pid, path, build, f"deploy_{name}_work", before)
        for recorded in taken + segments(daemon, pids[2], *NAMES):
            named = {f for dso, f in symbols(recorded, pids[2]) if dso.startswith(path)}
            equal(named, {"[unknown]"}, f"functions in {recorded} of a file without a build id")


@test
def inherited_and_executed_files_have_their_build_ids():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        path = os.path.join(folder, "served")
        deploy(OLD, path)
        # A shell forks, and its child becomes another program.
        shell = subprocess.Popen(["/bin/sh", "-c", f"{path} 700 & wait"], stdout=subprocess.DEVNULL)
        pid = wait_until(lambda: next(iter(children_of(shell.pid)), None), 10, "the child of the shell")
        shell.wait()
        taken = snapshot(daemon)["path"]
        deploy(NEW, path)
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        for recorded in [taken, *segments(daemon, pid)]:
            check_ran(recorded, pid, path, OLD, "deploy_old_work")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


@test
def a_segment_that_ends_at_once_waits_for_the_build_id():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        path = os.path.join(folder, "served")
        deploy(OLD, path)
        process = start(path)
        try:
            time.sleep(0.3)
            with Varlink(daemon.control()) as v:
                rotated = v.one("Rotate", session="default")["segments"]
                v.one("Start", session="short", settings={"Event": "cpu-clock", "Frequency": "499"})
                late = os.path.join(folder, "late")
                deploy(OLD, late)
                other = start(late)
                time.sleep(0.3)
                v.one("Stop", session="short")
        finally:
            for p in (process, other):
                p.kill()
                p.wait()
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        for recorded, pid, file in ((rotated[0], process.pid, path),
                                    (segments(daemon, other.pid, "short")[0], other.pid, late)):
            check_ran(recorded, pid, file, OLD, "deploy_old_work")


def check_unidentified(recorded, pid, file):
    check_unnamed(recorded, pid, file)
    unidentified = recording.manifest(recorded)["unidentified"]
    check(unidentified >= 1, f"nothing is unidentified in {recorded}")
    said = profctl("-j", "info", recorded).stdout
    equal(json.loads(said)["n_unidentified"], unidentified, f"unidentified files of {recorded} in info")
    said = profctl("info", recorded).stdout
    check(re.search(rf"^Unnamed +{unidentified} files? ha(s|ve) no build id", said, re.M), f"info says {said[:800]}")


@test
def a_file_without_a_build_id_is_not_named_by_the_file_at_its_path():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        path = os.path.join(folder, "served")
        deploy(BARE, path)
        process = start(path, 700)
        process.wait()
        taken = snapshot(daemon)
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        for recorded in [taken["path"], *segments(daemon, process.pid)]:
            check_unidentified(recorded, process.pid, path)
            deploy(NEW, path)
            check_unidentified(recorded, process.pid, path)


def reported(recorded, path):
    """The functions of the file, as profctl names them."""
    done = profctl("report", recorded, "--by", "dso,symbol", "--json")
    rows = as_json(done, "report", done.returncode)["rows"]
    return {row["symbol"] for row in rows if row["dso"] == os.path.basename(path) + MARK}


@test
def a_view_names_a_file_without_a_build_id_only_if_it_was_not_overwritten_since():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        path, renamed, taken = os.path.join(folder, "served"), os.path.join(folder, "renamed"), []
        subprocess.run(["objcopy", "--redefine-sym", "deploy_bare_work=deploy_renamed_work", BARE, renamed], check=True)
        for build in (BARE, renamed):
            inode = copy_in_place(build, path)
            start(path, 700).wait()
            taken.append(snapshot(daemon)["path"])
            if build == BARE:
                check("deploy_bare_work" in reported(taken[0], path), f"{reported(taken[0], path)}")
        with Varlink(daemon.control()) as v:
            since = int(os.stat(path).st_mtime * 1e6) + 10_000
            taken.append(v.one("Snapshot", session="default", sinceUsec=since)["snapshot"]["path"])
        equal(os.stat(path).st_ino, inode, "the inode of the file")
        for recorded in taken[:2]:
            named = reported(recorded, path)
            check(named and not any("_work" in name for name in named), f"{recorded}: {named}")
        check("deploy_renamed_work" in reported(taken[2], path), f"of the new file alone: {reported(taken[2], path)}")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


def elf_helper(daemon):
    return next((pid for pid in children(daemon.process.pid) if status_of(pid, "Name") == "profd-elf"), None)


@test
def a_program_that_is_not_identified_yet_keeps_its_file_when_the_recorder_is_killed():
    need_root()
    config = "[Profd]\nFlushIntervalSec=200ms\n" + CONFIG
    with scratch() as folder, Daemon(folder, config=config) as daemon:
        path = os.path.join(folder, "served")
        deploy(OLD, path)
        helper = wait_until(lambda: elf_helper(daemon), 20, "profd-elf")
        os.kill(helper, signal.SIGSTOP)
        process = start(path)
        try:
            time.sleep(1)
            mark = daemon.mark()
            os.kill(daemon.recorder(), signal.SIGKILL)
            daemon.wait_for_log("Recording ", mark)
            os.kill(helper, signal.SIGCONT)
            wait_until(lambda: len(segments(daemon, process.pid, *NAMES)) == len(NAMES), 20, "the segments to be recovered")
            time.sleep(0.5)
        finally:
            process.kill()
            process.wait()
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        for name in NAMES:
            recovered, last = segments(daemon, process.pid, name)
            files = {r.dso for r in recording.rows(recovered) if r.pid == process.pid and path in r.dso}
            equal(files, {path + MARK}, f"the files of samples in {recovered}")
            equal({r.dso for r in recording.rows(recovered) if r.pid == process.pid and r.dso == "[unknown]"}, set(),
                  f"samples without a file in {recovered}")
            check_ran(last, process.pid, path, OLD, "deploy_old_work")


if __name__ == "__main__":
    main()
