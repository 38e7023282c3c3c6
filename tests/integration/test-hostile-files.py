#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of other processes that are made to hurt: endless notes, a file system that stops answering.
None of them may touch the recording."""

import contextlib
import os
import re
import signal
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import READY_S, Daemon, children, is_sanitized, session, status_of  # noqa: E402
from hostile import (HungMount, LockedMemory, cpu_seconds, file_of_notes, mapped_by_a_child, state_of,  # noqa: E402
                     wait_until)
from varlink import Fault, Varlink  # noqa: E402
from workload import end, need_root, scratch  # noqa: E402
from tap import build_path, check, equal, main, test  # noqa: E402

LOAD = build_path("tests", "bench", "load")
CONFIG = "[Profd]\nFlushIntervalSec=200ms\n" + session(Event="cpu-clock", Frequency=99, RotateIntervalSec="1s")
NOBODY = 65534
MIB = 1 << 20
# A kernel that reads all notes of such a file takes 1.5 s, or 20 s for a gigabyte of them.
NOTES_BYTES, MANY_NOTES_BYTES, FILES = 64 * MIB, 1024 * MIB, 12
# So long profd is observed beside them, and so much of a CPU it may use; while the kernel read them it used 31 %.
NOTES_S, CPU_SHARE = 10, 0.15
STOP_LIMIT_S = 15
FILES_ON_FUSE = 30
OVERLAYS = 20
# A process that was late is tried again each five seconds.
LOCKED, LATE_S, HUNG_START_S = 30, 60, 20
UNREAD = re.compile(r"/\d+" + re.escape(recording.MARK) + "$")


def named(daemon, name):
    """The pid of the keeper's child of that name, or None."""
    for pid in children(daemon.process.pid):
        if status_of(pid, "Name") == name:
            return pid
    return None


def wait_for_helper(daemon, other_than=None):
    wait_until(lambda: named(daemon, "profd-elf") not in (None, other_than), 30, "no profd-elf")
    return named(daemon, "profd-elf")


def files_of(pid):
    """The files that a process holds, without sockets and /dev/null."""
    files = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            files.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return [file for file in files if file != "/dev/null" and not file.startswith("socket:")]


def used(daemon):
    """CPU time of profd, with that of the helpers that have ended."""
    return sum(cpu_seconds(pid) for pid in daemon.pids()) + cpu_seconds(daemon.process.pid, ended_children=True)


def stop_soon(daemon):
    begin = time.monotonic()
    equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
    took = time.monotonic() - begin
    check(took < STOP_LIMIT_S, f"it took {took:.1f} s to stop")


def build_id_of(segments, path):
    """The build ids under which segments have mappings of a file."""
    found = set()
    for segment in segments:
        said = subprocess.run(["perf", "script", "-i", segment, "--show-mmap-events"], capture_output=True,
                              text=True, errors="replace", check=True).stdout
        found |= set(re.findall(rf"<([0-9a-f]+)>\]: \S+ {re.escape(path)}\n", said))
    return found


@test
def files_of_endless_notes_cost_little_and_stop_is_prompt():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        os.chmod(folder, 0o755)
        paths = [os.path.join(folder, f"notes{i}") for i in range(FILES)]
        for path in paths:
            file_of_notes(path, NOTES_BYTES)
        file_of_notes(paths[0], MANY_NOTES_BYTES)
        daemon.wait_for_segments(1)
        before, begin = used(daemon), time.monotonic()
        with mapped_by_a_child(*paths, uid=NOBODY):
            time.sleep(NOTES_S)
            daemon.wait_for_segments(len(daemon.segments()) + 1)
            share = (used(daemon) - before) / (time.monotonic() - begin)
            print(f"# profd used {share:.1%} of a CPU")
            check(share < CPU_SHARE, f"profd used {share:.1%} of a CPU")
            check("ms to read /proc and programs)" in daemon.log(), "the log does not say what it took to read them")
            stop_soon(daemon)


@test
def build_ids_in_the_examined_notes_are_found():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        program = os.path.join(folder, "program")
        shutil.copy(LOAD, program)
        process = subprocess.Popen([program])
        try:
            helper = wait_for_helper(daemon)
            daemon.wait_for_segments(3)
        finally:
            end(process)
        equal(daemon.stop(), 0, "status")
        wait_until(lambda: state_of(helper) in (None, "Z"), 10, "profd-elf outlives profd")
        equal(len(build_id_of(daemon.segments(), program)), 1, "build ids of a program")


@test
def profd_elf_has_no_rights_and_no_open_files():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        helper = wait_for_helper(daemon)
        # Until it adds its own filter to that of the keeper its loader opens libraries.
        inherited = int(status_of(daemon.process.pid, "Seccomp_filters"))
        wait_until(lambda: int(status_of(helper, "Seccomp_filters")) > inherited, 10, "profd-elf to give up its rights")
        equal(status_of(helper, "Seccomp"), "2", "Seccomp")
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            equal(int(status_of(helper, name), 16), 0, name)
        equal(status_of(helper, "NoNewPrivs"), "1", "NoNewPrivs")
        equal(status_of(helper, "Uid"), status_of(daemon.recorder(), "Uid"), "its user")
        # It holds a file only while it examines it.
        wait_until(lambda: not files_of(helper), 60, "profd-elf to close what it examined")
        with open(f"/proc/{helper}/limits", encoding="ascii") as f:
            limits = f.read()
        if not is_sanitized():
            check(re.search(r"Max address space +\d+ ", limits), limits)
        check(re.search(r"Max file size +33554432 +33554432 ", limits), limits)  # of the tables in memory


@test
def killing_profd_elf_costs_no_sample_and_no_build_id():
    need_root()
    programs = []
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        try:
            helper = wait_for_helper(daemon)
            for i in range(4):
                path = os.path.join(folder, f"program{i}")
                shutil.copy(LOAD, path)
                # Of another inode each, or it would be known already.
                os.kill(helper, signal.SIGKILL)
                programs.append(subprocess.Popen([path]))
                helper = wait_for_helper(daemon, helper)
            daemon.wait_for_segments(len(daemon.segments()) + 3)
        finally:
            for process in programs:
                end(process)
        check("and status 0" not in daemon.log() and "over a file" not in daemon.log(), daemon.log()[-2000:])
        equal(daemon.stop(), 0, "status")
        for process in programs:
            equal(len(build_id_of(daemon.segments(), process.args[0])), 1, f"build ids of {process.args[0]}")
        lost = [line for line in daemon.log().splitlines() if re.search(r"[1-9]\d* lost", line)]
        equal(lost, [], "segments that lost samples")


def has_given_up(daemon, pid, count):
    """One of the last segments has so many mappings of this process as those of files that were not read."""
    return any(len({m["filename"] for m in recording.records(path, "MMAP2")
                    if m["pid"] == pid and UNREAD.search(m["filename"])}) == count
               for path in daemon.segments()[-2:])


class Hanging:
    """One profd beside mounts that stopped answering; each kind of mount is made when it is first asked for."""

    KINDS = {"plain": {}, "private": {"private": True}, "detached": {"detached": True}}

    def __init__(self):
        self.stack, self.daemon, self.folder, self.waiting = contextlib.ExitStack(), None, None, {}

    def openers(self):
        """The helpers of profd that wait for a file."""
        return {pid for pid in children(self.daemon.process.pid) if state_of(pid) == "D"}

    def openers_of(self, kind):
        """The helpers that began to wait when the files of such a mount had been looked at."""
        need_root()
        if self.daemon is None:
            self.folder = self.stack.enter_context(scratch())
            self.daemon = self.stack.enter_context(Daemon(self.folder, config=CONFIG))
        if kind not in self.waiting:
            mount = os.path.join(self.folder, kind)
            os.makedirs(mount, exist_ok=True)
            before = self.openers()
            fuse = self.stack.enter_context(HungMount(mount, FILES_ON_FUSE, **self.KINDS[kind]))
            fuse.hang()
            # A mapping is written when its file was read or given up.
            wait_until(lambda: self.has_given_up(fuse.mapper), READY_S, "no segment has the mappings of files on the mount")
            self.waiting[kind] = self.openers() - before
        return self.waiting[kind]

    def has_given_up(self, pid):
        """A segment has all the mappings of this process on such a mount, as those of files that were not read."""
        return has_given_up(self.daemon, pid, FILES_ON_FUSE)

    def end(self):
        self.stack.close()


hanging = Hanging()


@test
def a_fuse_mount_that_stops_answering_is_not_touched():
    equal(hanging.openers_of("plain"), set(), "helpers that wait for it")


@test
def a_hung_fuse_mount_in_another_mount_namespace_is_not_touched_either():
    equal(hanging.openers_of("private"), set(), "helpers that wait for it")


@test
def a_lazily_unmounted_fuse_mount_blocks_a_single_helper():
    waiting = hanging.openers_of("detached")
    check(len(waiting) <= 1, f"{len(waiting)} helpers wait for it")


@test
def a_recorder_that_is_killed_beside_mounts_that_hang_comes_back():
    waiting = set().union(*map(hanging.openers_of, hanging.KINDS))
    daemon = hanging.daemon
    begun = daemon.mark()
    os.kill(daemon.recorder(), signal.SIGKILL)
    daemon.wait_for_log("Recording ", begun)
    daemon.wait_for_segments(len(daemon.segments()) + 2)
    stop_soon(daemon)
    for pid in waiting:
        check(state_of(pid) in ("D", "Z", None), "a hung opener is not waiting")
    # Neither the store nor the socket is held by what hangs.
    with Daemon(hanging.folder, config=CONFIG) as again:
        again.wait_for_segments(len(again.segments()) + 1)
        stop_soon(again)
    hanging.end()


@test
def overlays_that_a_user_has_mounted_are_not_opened():
    """FUSE may be below. Its server answers here, but closing a file could last for ever too."""
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        os.chmod(folder, 0o755)
        mount = os.path.join(folder, "mount")
        os.mkdir(mount)
        os.chmod(mount, 0o777)
        with HungMount(mount, OVERLAYS, overlays_of=NOBODY) as answering:
            wait_until(lambda: has_given_up(daemon, answering.mapper, OVERLAYS), READY_S, "no segment has the mappings")
            answering.hang()
            daemon.wait_for_segments(len(daemon.segments()) + 2)
            equal({pid for pid in children(daemon.process.pid) if state_of(pid) == "D"}, set(), "helpers that wait")
        stop_soon(daemon)


def on_overlay(command):
    """Runs the program on an overlay that root has mounted, by a command with {merged} in it; finds its build id."""
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        os.chmod(folder, 0o755)
        below, empty, merged = (os.path.join(folder, name) for name in ("below", "empty", "merged"))
        for path in (below, empty, merged):
            os.mkdir(path)
        shutil.copy(LOAD, os.path.join(below, "program"))
        program = os.path.join(merged, "program")
        mount = f"mount -t overlay overlay -o lowerdir={below}:{empty} {merged} && exec "
        process = subprocess.Popen(["unshare", "--mount", "sh", "-c", mount + command.format(merged=merged)])
        try:
            wait_until(lambda: build_id_of(daemon.segments()[-3:], program), READY_S, "no build id of the program")
        finally:
            end(process)
        stop_soon(daemon)


@test
def programs_on_an_overlay_of_root_have_build_ids():
    """In a mount namespace of its own, as a container is."""
    on_overlay("{merged}/program")


@test
def processes_that_lock_their_memory_for_ever_delay_nobody_elses_names():
    """Of one user, who has made them wait for his FUSE server while the kernel held the lock."""
    need_root()
    with scratch() as folder:
        os.chmod(folder, 0o755)
        with LockedMemory(os.path.join(folder, "locked"), LOCKED, NOBODY, library=LOAD) as locked:
            program = os.path.join(folder, "program")
            shutil.copy(LOAD, program)
            before = subprocess.Popen([program])
            try:
                with Daemon(folder, config=CONFIG) as daemon:
                    daemon.wait_for_segments(len(daemon.segments()) + 3)
                    equal(len(build_id_of(daemon.segments(), program)), 1, "build ids of a program that ran before")
                    os.kill(daemon.recorder(), signal.SIGKILL)
                    begun = daemon.mark()
                    daemon.wait_for_log("Recording ", begun)
                    # Also of a device on which the user has mapped a file.
                    after = os.path.join(folder, "after")
                    shutil.copy(LOAD, after)
                    process = subprocess.Popen([after])
                    try:
                        daemon.wait_for_segments(len(daemon.segments()) + 3)
                    finally:
                        end(process)
                    equal(len(build_id_of(daemon.segments(), after)), 1, "build ids of one that ran after")
                    check(all(state_of(pid) == "D" for pid in locked.pids), "the memory is not locked any more")
                    stop_soon(daemon)
            finally:
                end(before)


@test
def a_process_is_read_when_its_memory_is_unlocked():
    need_root()
    with scratch() as folder:
        os.chmod(folder, 0o755)
        library = os.path.join(folder, "library")
        shutil.copy(LOAD, library)
        with LockedMemory(os.path.join(folder, "locked"), 2, NOBODY, library) as locked, \
                Daemon(folder, config=CONFIG) as daemon:
            daemon.wait_for_segments(len(daemon.segments()) + 2)
            equal(build_id_of(daemon.segments(), library), set(), "build ids of what cannot be seen")
            locked.unlock()
            wait_until(lambda: build_id_of(daemon.segments()[-3:], library), LATE_S, "no build id of the library")
            stop_soon(daemon)


@test
def a_session_of_a_process_that_hangs_in_an_exec_is_refused_and_delays_nothing():
    """Who is called at night wants to see just what that process does."""
    need_root()
    with scratch() as folder:
        os.chmod(folder, 0o755)
        with LockedMemory(os.path.join(folder, "locked"), 2, NOBODY, LOAD) as locked, \
                Daemon(folder, config=CONFIG) as daemon, \
                Varlink(os.path.join(folder, "run", "io.profd.Control")) as v:
            begin = time.monotonic()
            try:
                v.one("Start", session="hung", settings={"Event": "cpu-clock", "Pid": str(locked.pids[1])})
                check(False, "the session has started")
            except Fault as fault:
                print(f"# {fault}")
                check("waits in the kernel" in str(fault), f"it says: {fault}")
            took = time.monotonic() - begin
            check(took < HUNG_START_S, f"the answer took {took:.1f} s")
            daemon.wait_for_segments(len(daemon.segments()) + 2)
            stop_soon(daemon)


@test
def a_hung_opener_of_programs_delays_neither_recording_nor_stop():
    """No other opener is awaited: profd may leave the device alone for a minute and need none."""
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        wait_until(lambda: named(daemon, "profd-images") is not None, 30, "no opener")
        images = named(daemon, "profd-images")
        os.kill(images, signal.SIGSTOP)
        program = os.path.join(folder, "program")
        shutil.copy(LOAD, program)
        process = subprocess.Popen([program])
        try:
            daemon.wait_for_segments(len(daemon.segments()) + 3)
        finally:
            end(process)
        stop_soon(daemon)
        wait_until(lambda: state_of(images) in (None, "Z"), 10, "the stopped one lives on")


if __name__ == "__main__":
    try:
        main()
    finally:
        hanging.end()
