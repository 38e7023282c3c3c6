#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Disks in trouble under a recorder: full and freed, read-only and back, the folder gone; and a recorder
that stands still for seconds, whose loss is told exactly."""

import contextlib
import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, look_anew, session  # noqa: E402
from varlink import Varlink, fault  # noqa: E402
from workload import (CPUS, LONG, need_root, now_ns, perf_record, scratch, small_disk,  # noqa: E402
                      spinning, wait_until)
from tap import build_path, check, equal, main, skip, test  # noqa: E402

PROFCTL = build_path("client", "profctl")
USER = 64551
PERIOD_NS = 10**9 // 999
FAST_HZ = 4999
STOPPED_S = 3
DISK_BYTES = 2 << 20
MEMORY_MAX = 128 << 20
SOME_BYTES = 50_000
# Kept symbols would take and free space and inodes meanwhile.
LIMITS = "[Profd]\nFlushIntervalSec=1s\nMaxUse=1G\nKeepFree=0\nBinariesMaxUse=0\n"
SETTINGS = {"Frequency": 999, "Compress": "none", "RotateIntervalSec": "1s"}
CONFIG = LIMITS + session(**SETTINGS) + session("folder", Layout="directory", **SETTINGS)
SESSIONS = ("default", "folder")
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IMMUTABLE = 0x80086601, 0x40086602, 0x10


def set_immutable(folder, on):
    """Nothing can be made in it, by root neither."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flags = struct.unpack("l", fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(8)))[0]
        flags = flags | FS_IMMUTABLE if on else flags & ~FS_IMMUTABLE
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", flags))
    except OSError as error:
        skip(f"this file system cannot protect a folder ({error.strerror})")
    finally:
        os.close(fd)


def resumed(daemon, name, since_ns):
    """A finished segment with samples that were taken after this moment."""
    def is_there():
        return any(s.time > since_ns for path in daemon.segments(name)[-2:] for s in recording.samples(path))
    wait_until(is_there, 20, f"samples of {name} in a new segment; {daemon.log()[-1500:]}")


def troubles(v):
    return {d["reason"] for d in v.one("GetStatus")["degraded"]} & {"writerBlocked", "diskFull"}


def profctl(daemon, *arguments):
    return subprocess.run([PROFCTL, f"--socket={daemon.control()}", *arguments], capture_output=True, text=True, timeout=60,
                          check=False)


def check_all(daemon, with_loss=False):
    for name in SESSIONS:
        segments = daemon.segments(name)
        equal(daemon.open_segments(name), [], f"what {name} left open")
        recording.check_clean(segments, with_loss)
        equal(recording.twice(recording.samples(segments)), [], f"samples of {name} that are there twice")


@test
def a_full_disk_is_reported_and_recording_continues_when_there_is_space():
    need_root()
    with scratch() as folder, small_disk(folder, DISK_BYTES) as store, spinning():
        filler = os.path.join(store, "filler")
        with open(filler, "wb") as f:
            f.write(bytes(DISK_BYTES - (128 << 10)))
        with Daemon(folder, config=CONFIG.replace("Compress=none", "Compress=zstd:3"), store=store) as daemon:
            daemon.wait_for_log("(?i)(no space|full)")
            with Varlink(daemon.control()) as v:
                with fault("DiskFull", path=store):
                    v.one("Snapshot")
                equal(os.listdir(os.path.join(store, "snapshots")), [], "what is left of a snapshot")
            wait_until(lambda: look_anew(daemon) or "diskFull" in profctl(daemon, "status").stdout, 20, "status to say that the disk is full")
            checked = profctl(daemon, "status", "--check")
            equal(checked.returncode, 7, "the status of status --check")
            check("diskFull" in checked.stdout, checked.stdout)
            if LONG:
                time.sleep(5)
            check(daemon.process.poll() is None, f"profd ended: {daemon.log()[-1000:]}")
            check(daemon.private_bytes() < MEMORY_MAX, f"{daemon.private_bytes()} bytes of memory")
            pid = daemon.recorder()
            os.unlink(filler)
            freed_ns = now_ns()
            for name in SESSIONS:
                resumed(daemon, name, freed_ns + 5 * 10**8)
            equal(daemon.recorder(), pid, "the recorder")
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
            check_all(daemon, with_loss=True)


def fill_bytes(store):
    """Nothing more can be written there."""
    path = os.path.join(store, "filler")
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as f:
        while True:
            f.write(bytes(4096))
    return path


def fill_inodes(store):
    """No file and no folder can be made there; those that stand in the way can be deleted."""
    fillers = []
    found = os.statvfs(store)
    subprocess.run(["mount", "-o", f"remount,nr_inodes={found.f_files - found.f_ffree + 8}", store], check=True)
    with contextlib.suppress(OSError):
        for number in range(64):
            path = os.path.join(store, f"filler-{number}")
            with open(path, "wb"):
                fillers.append(path)
    check(len(fillers) < 64, "files can be made without end")
    return fillers


@test
def a_session_without_space_for_its_folder_begins_when_there_is_space():
    need_root()
    with scratch() as folder, small_disk(folder, DISK_BYTES) as store:
        with Daemon(folder, config=LIMITS + session(Frequency=99, RotateIntervalSec=0), store=store) as daemon:
            fillers = fill_inodes(store)
            with Varlink(daemon.control()) as v:
                with fault("DiskFull", path=store):
                    v.one("Start", session="web", settings={"Event": "cpu-clock"})
                equal([s["name"] for s in v.members("ListSessions", "session")], ["default"], "sessions")
                for path in fillers:
                    os.unlink(path)
                equal(v.one("Start", session="web", settings={"Event": "cpu-clock"})["session"]["state"], "active", "state")
                v.one("Stop", session="web")
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


def stored_bytes(v, name):
    return next(s["storedBytes"] for s in v.members("ListSessions", "session") if s["name"] == name)


@test
def stopping_on_a_full_disk_says_that_the_last_segment_cannot_be_read_yet():
    need_root()
    with scratch() as folder, small_disk(folder, DISK_BYTES) as store, spinning():
        with Daemon(folder, config=LIMITS + session(Frequency=99, RotateIntervalSec=0), store=store) as daemon:
            with Varlink(daemon.control()) as v:
                v.one("Start", session="web", settings={"Event": "cpu-clock", "Frequency": "999", "Compress": "none"})
                wait_until(lambda: daemon.open_segments("web"), 20, "an open segment")
                head = stored_bytes(v, "web")
                wait_until(lambda: stored_bytes(v, "web") > head + SOME_BYTES, 20, "samples in it")
                filler = fill_bytes(store)
                daemon.wait_for_log("Failed to write session 'web'")
            stopped = profctl(daemon, "stop", "web")
            equal(stopped.returncode, 0, "status of profctl stop")
            check("can be read when profd has recovered it" in stopped.stderr, stopped.stderr)
            check(daemon.open_segments("web"), "nothing is left open")
            os.unlink(filler)
            wait_until(lambda: not daemon.open_segments("web"), 60, f"recovery; {daemon.log()[-1500:]}")
            check(recording.samples(daemon.segments("web")), "no samples of web")
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


@test
def a_recorder_killed_on_a_full_disk_loses_and_doubles_no_sample():
    need_root()
    with scratch() as folder, small_disk(folder, DISK_BYTES) as store, spinning():
        config = LIMITS + session(Frequency=999, CallGraph="fp", Compress="none", RotateIntervalSec=0)
        with Daemon(folder, config=config, store=store) as daemon:
            with perf_record(os.path.join(folder, "perf.data")) as perf:
                wait_until(daemon.open_segments, 20, "an open segment")
                filler = fill_bytes(store)
                daemon.wait_for_log("Failed to write session 'default'")
                pid = daemon.recorder()
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda: daemon.recorder() not in (None, pid), 20, "another recorder")
                daemon.wait_for_log("Failed to recover segment")
                os.unlink(filler)
                subprocess.run(["mount", "-o", "remount,size=64m", store], check=True)
                wait_until(lambda: any(path.endswith("~.perf.data") for path in daemon.segments()), 60, "recovery")
                time.sleep(1)
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
            equal(daemon.open_segments(), [], "what is left open")
            equal(len(daemon.segments()), 2, "segments")
            samples = recording.samples(daemon.segments())
            equal(recording.twice(samples), [], "samples that are there twice")
            found = recording.seams(samples, recording.samples(perf.path), PERIOD_NS, range(CPUS))
            equal(found[:3], [], "gaps")


@test
def a_disk_filled_by_segments_keeps_the_newest_ones():
    need_root()
    with scratch() as folder, small_disk(folder, DISK_BYTES) as store, spinning():
        config = CONFIG.replace("KeepFree=0", "KeepFree=20%\nMinUse=0").replace("Frequency=999", "Frequency=500")
        with Daemon(folder, config=config, store=store) as daemon:
            time.sleep(20 if LONG else 6)
            last_ns = now_ns()
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
            check_all(daemon, with_loss=True)
            for name in SESSIONS:
                samples = recording.samples(daemon.segments(name))
                check(samples and last_ns - max(s.time for s in samples) < 2 * 10**9,
                      f"{name} has no sample of the last seconds: {daemon.log()[-1500:]}")


@test
def a_folder_that_is_read_only_for_a_while_loses_no_sample():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        with perf_record(os.path.join(folder, "perf.data")) as perf:
            daemon.wait_for_segments(1)
            mark, places = daemon.mark(), [os.path.join(daemon.store, "sessions", name) for name in SESSIONS]
            try:
                for place in places:
                    set_immutable(place, True)
                daemon.wait_for_log("(?i)(not permitted|read-only|denied)", mark)
                time.sleep(1)
            finally:
                for place in places:
                    set_immutable(place, False)
            back_ns = now_ns()
            for name in SESSIONS:
                resumed(daemon, name, back_ns)
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        check_all(daemon)
        reference = recording.samples(perf.path)
        for name in SESSIONS:
            found = recording.seams(recording.samples(daemon.segments(name)), reference, PERIOD_NS, range(CPUS))
            equal(found[:3], [], f"gaps of {name}")


def remove(folder):
    """Though somebody may write into it at that moment."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return


@test
def a_folder_that_is_removed_is_made_again():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon:
        daemon.wait_for_segments(1)
        remove(os.path.join(daemon.store, "sessions"))
        removed_ns = now_ns()
        for name in SESSIONS:
            resumed(daemon, name, removed_ns)
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        check_all(daemon)


@test
def a_store_that_is_deleted_is_made_again_and_keeps_snapshots():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=CONFIG) as daemon, Varlink(daemon.control()) as v:
        daemon.wait_for_segments(1)
        v.one("Snapshot", name="before")
        remove(daemon.store)
        removed_ns = now_ns()
        for name in SESSIONS:
            resumed(daemon, name, removed_ns)
        v.one("Snapshot", name="after")
        equal([s["name"] for s in v.members("ListSnapshots", "snapshot")], ["after"], "snapshots")
        recording.check_clean([os.path.join(daemon.store, "snapshots", "after.perf.data")], False)
        wait_until(lambda: look_anew(daemon) or not troubles(v), 20, "the end of the trouble")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


@test
def a_store_that_profd_cannot_make_again_is_waited_for_with_a_remedy_in_the_log():
    need_root()
    with scratch() as folder, spinning(), \
            Daemon(folder, config=CONFIG, profd_user=USER, groups={"profd": USER}) as daemon, Varlink(daemon.control()) as v:
        daemon.wait_for_segments(1)
        recorder, mark = daemon.recorder(), daemon.mark()
        remove(daemon.store)
        daemon.wait_for_log(f"The folder '{daemon.store}' was deleted while profd recorded into it, and profd has no right to "
                            "make it again; run 'systemd-tmpfiles --create'", mark)
        wait_until(lambda: look_anew(daemon) or troubles(v) == {"writerBlocked"}, 20, "the trouble to be reported")
        check(not os.path.exists(daemon.store), "the recorder could make its store, so the test shows nothing")
        checked = profctl(daemon, "status", "--check")
        equal(checked.returncode, 7, "the status of status --check")
        check("writerBlocked" in checked.stdout and "journalctl -u profd" in checked.stdout, checked.stdout)
        # As systemd-tmpfiles makes it.
        os.mkdir(daemon.store, 0o750)
        os.chown(daemon.store, USER, USER)
        made_ns = now_ns()
        for name in SESSIONS:
            resumed(daemon, name, made_ns)
        wait_until(lambda: look_anew(daemon) or not troubles(v), 20, "the end of the trouble")
        equal(daemon.recorder(), recorder, "the recorder")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


@test
def losses_during_a_stall_of_the_recorder_are_counted_exactly():
    need_root()
    config = LIMITS + session(Frequency=FAST_HZ) + session("folder", Frequency=FAST_HZ, Layout="directory")
    with scratch() as folder, spinning(), Daemon(folder, config=config) as daemon:
        with perf_record(os.path.join(folder, "perf.data"), "-m", "16M", frequency=FAST_HZ) as perf:
            time.sleep(1.5)
            recorder = daemon.recorder()
            os.kill(recorder, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(recorder, signal.SIGCONT)
            time.sleep(2)
            equal(daemon.recorder(), recorder, "the recorder")
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        reference = recording.samples(perf.path)
        equal(recording.lost(perf.path), 0, "samples that perf record lost")
        check_all(daemon, with_loss=True)
        for name in SESSIONS:
            segments = daemon.segments(name)
            samples = recording.samples(segments)
            begin, end = recording.common_window(samples, reference)
            lost = recording.lost(segments, begin, end)
            kept = len(recording.within(samples, begin, end))
            expected = len(recording.within(reference, begin, end))
            check(lost > expected * STOPPED_S / 20, f"only {lost} samples of {name} are told as lost, {kept} kept")
            check(abs(kept + lost - expected) <= expected / 100,
                  f"{kept} kept and {lost} lost samples of {name} are not {expected}")
            manifests = [recording.manifest(s) for s in segments]
            equal(sum(m["lost"] for m in manifests), recording.lost(segments),
                  f"lost samples in the manifests of {name}")
            check(all(m["throttled_ns"] == 0 for m in manifests), "what was lost is told as throttled")


if __name__ == "__main__":
    main(at_once=1 if LONG else 2)
