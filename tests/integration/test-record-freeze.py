#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A disk that answers nothing for many seconds, as one does whose array rebuilds: whatever clients ask
for meanwhile is answered later, and no sample is lost."""

import contextlib
import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, children, look_anew, session, status_of  # noqa: E402
from hostile import HungMount, state_of  # noqa: E402
from varlink import Fault, Varlink, fault  # noqa: E402
from workload import CPUS, LONG, need_root, now_ns, perf_record, scratch, spinning, wait_until  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

PROFCTL = build_path("client", "profctl")
TROUBLES = {"writerBlocked", "diskFull", "lateStart", "failed", "stopped"}
HZ = 999
PERIOD_NS = 10**9 // HZ
FROZEN_S = 25 if LONG else 10
GIVES_UP_S = 8
A_WHILE_S = 2 if LONG else 0.2
BATCH = 2 * HZ * CPUS  # no sweep takes more than the flush interval brings, and then some
DISK_BYTES = 128 << 20
WEB = {"Event": "cpu-clock", "Frequency": str(HZ)}
STRANGE_GROUP = 64993
FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
LIMITS = "[Profd]\nMaxUse=64M\nKeepFree=0\n"
CONFIG = LIMITS + session(Frequency=HZ) + session("other", Frequency=99, RotateIntervalSec="1s")


@contextlib.contextmanager
def slow_disk(folder):
    """The path of a store on a file system that can be frozen."""
    image, disk = os.path.join(folder, "image"), os.path.join(folder, "disk")
    with open(image, "wb") as f:
        f.truncate(DISK_BYTES)
    os.mkdir(disk)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    done = subprocess.run(["mount", "-o", "loop", image, disk], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        skip(f"no loop device can be mounted here ({done.stderr.strip()})")
    try:
        yield os.path.join(disk, "store")
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def ask(disk, request):
    fd = os.open(disk, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(fd, request, struct.pack("i", 0))
    finally:
        os.close(fd)


@contextlib.contextmanager
def frozen(store):
    disk = os.path.dirname(store)
    ask(disk, FIFREEZE)
    try:
        yield
    finally:
        ask(disk, FITHAW)


class Waiting:
    """A call on a connection of its own whose answer is looked at later."""

    def __init__(self, daemon, method, more=False, **parameters):
        self.method, self.v = method, Varlink(daemon.control())
        self.v.send(method, parameters, more=more)

    def answers(self):
        with self.v:
            replies, more = [], True
            while more:
                try:
                    parameters, more = self.v.reply()
                except Fault as error:
                    check(False, f"{self.method} failed: {error}")
                replies.append(parameters)
            return replies

    def close(self):
        self.v.close()


def serve(daemon, seconds):
    """The daemon answers what takes no disk, all the time."""
    end = time.monotonic() + seconds
    with Varlink(daemon.control()) as v:
        while time.monotonic() < end:
            equal(v.one("GetStatus")["state"], "recording", "state")
            v.members("ListSessions", "session")
            v.members("ListSnapshots", "snapshot")
            time.sleep(0.2)


def state(daemon, name):
    with Varlink(daemon.control()) as v:
        return {s["name"]: s["state"] for s in v.members("ListSessions", "session")}.get(name)


def reasons(daemon, name):
    """Why the session is degraded."""
    with Varlink(daemon.control()) as v:
        return {d["reason"] for s in v.members("ListSessions", "session") if s["name"] == name for d in s["degraded"]}


def lost(daemon, name="default"):
    with Varlink(daemon.control()) as v:
        return {s["name"]: s["lost"] for s in v.members("ListSessions", "session")}[name]


def was_recorded_before(daemon, *names):
    """Sessions that began and stopped: their folders are known, and are sealed."""
    with Varlink(daemon.control()) as v:
        for name in names:
            v.one("Start", session=name, settings=WEB)
            v.one("Stop", session=name)


def lose_readers(daemon, name):
    """Its folder is no longer the readers', so the next session of that name seals it."""
    os.chown(os.path.join(daemon.store, "sessions", name), -1, STRANGE_GROUP)


def hung_sealer(daemon):
    """The keeper's child that waits for the disk to change an owner, or None."""
    return next((pid for pid in children(daemon.process.pid)
                 if status_of(pid, "Name") == "profd-sealer" and state_of(pid) == "D"), None)


@test
def a_hung_seal_delays_neither_start_nor_recording():
    need_root()
    with scratch() as folder, slow_disk(folder) as store, spinning(), \
            Daemon(folder, config=CONFIG, store=store) as daemon:
        was_recorded_before(daemon, "unsealed", "sealed")
        lose_readers(daemon, "unsealed")
        with perf_record(os.path.join(folder, "perf.data"), "-m", "16M", frequency=HZ) as perf:
            time.sleep(A_WHILE_S)
            with frozen(store):
                unsealed = Waiting(daemon, "Start", session="unsealed", settings=WEB)
                hung = wait_until(lambda: hung_sealer(daemon), 10, "the sealer to wait for the disk")
                serve(daemon, A_WHILE_S)
                # Both are answered before the disk is: nobody waits longer than 5 s for a seal.
                for call in (Waiting(daemon, "Start", session="sealed", settings=WEB), unsealed):
                    equal(call.answers()[0]["session"]["state"], "active", "state of a session that was begun")
                equal(state_of(hung), "D", "state of the sealer that was left behind")
                serve(daemon, A_WHILE_S)
            wait_until(lambda: state_of(hung) is None, 10, "the sealer to end")
            time.sleep(A_WHILE_S)
        for name in ("default", "sealed", "unsealed"):
            equal(lost(daemon, name), 0, f"samples of '{name}' that are reported as lost")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        samples, reference = recording.samples(daemon.segments()), recording.samples(perf.path)
        equal(recording.seams(samples, reference, PERIOD_NS, range(CPUS))[:3], [], "gaps")
        for path in daemon.segments("unsealed"):
            st = os.stat(path)
            equal((st.st_uid, st.st_mode & 0o777), (0, 0o640), f"owner and mode of {path}")


@test
def a_configuration_on_a_disk_that_hangs_holds_up_nobody():
    need_root()
    with scratch() as folder, spinning(), Daemon(folder, config=session(Frequency=HZ)) as daemon:
        mount = os.path.join(folder, "mount")
        os.mkdir(mount)
        with perf_record(os.path.join(folder, "perf.data"), "-m", "16M", frequency=HZ) as perf:
            with HungMount(mount, 1) as fuse:
                fuse.hang()
                os.unlink(daemon.config_path)
                os.symlink(fuse.path_of(0), daemon.config_path)
                hung = Waiting(daemon, "Reload")
                serve(daemon, A_WHILE_S)
                daemon.send(signal.SIGHUP)
                serve(daemon, A_WHILE_S)
                # A reload that is asked for while another one hangs reads what is there after it.
                os.unlink(daemon.config_path)
                daemon.configure(session(Frequency=HZ) + session("later", Frequency=99))
                later = [Waiting(daemon, "Reload") for _ in range(2)]
                serve(daemon, A_WHILE_S)
                equal(state(daemon, "later"), None, "state of a session in a file that nobody could read")
            with hung.v, fault("Failed"):
                hung.v.reply()
            for call in later:
                equal(call.answers(), [{}], "answer to a reload that waited")
            equal(state(daemon, "later"), "active", "state of the session of the new file")
            time.sleep(A_WHILE_S)
        equal(lost(daemon), 0, "samples that are reported as lost")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        samples, reference = recording.samples(daemon.segments()), recording.samples(perf.path)
        equal(recording.seams(samples, reference, PERIOD_NS, range(CPUS))[:3], [], "gaps")


@test
def client_calls_on_a_frozen_disk_cost_no_sample():
    need_root()
    with scratch() as folder, slow_disk(folder) as store, spinning(), \
            Daemon(folder, config=CONFIG, store=store) as daemon:
        daemon.wait_for_segments(3, "other")
        with Varlink(daemon.control()) as v:
            for name in ("pinned", "removed"):
                v.one("Snapshot", name=name)
        with perf_record(os.path.join(folder, "perf.data"), "-m", "16M", frequency=HZ) as perf:
            time.sleep(1)
            with frozen(store):
                # The first of them that needs the disk has the housekeeper wait.
                calls = [Waiting(daemon, "PinSnapshot", name="pinned", pinned=True),
                         Waiting(daemon, "RemoveSnapshot", name="removed"),
                         Waiting(daemon, "ListSegments", more=True),
                         Waiting(daemon, "Start", session="web", settings={"Event": "cpu-clock"}),
                         Waiting(daemon, "Start", session="known", settings={"Event": "cpu-clock", "Frequency": "99"}),
                         Waiting(daemon, "Snapshot", name="later")]
                serve(daemon, FROZEN_S)
                equal(state(daemon, "web"), "starting", "state of a session whose folder cannot be made")
                look_anew(daemon)
                equal(reasons(daemon, "default") & TROUBLES, {"writerBlocked"}, "what is wrong with a session that waits for its disk")
                equal(reasons(daemon, "web") & TROUBLES, {"lateStart"}, "what is wrong with one that cannot begin")
                checked = subprocess.run([PROFCTL, f"--socket={daemon.control()}", "status", "--check"], capture_output=True,
                                         text=True, timeout=30, check=False)
                equal(checked.returncode, 7, f"status --check ({checked.stdout})")
                for reason in ("writerBlocked", "lateStart"):
                    check(reason in checked.stdout, f"status --check does not name {reason}: {checked.stdout}")
            answers = {call.method: call.answers() for call in calls}
            check(len(answers["ListSegments"]) >= 3, "segments that are listed")
            equal(answers["Start"][0]["session"]["state"], "active", "state of a session that was begun")
            with Varlink(daemon.control()) as v:
                snapshots = {s["name"]: s for s in v.members("ListSnapshots", "snapshot")}
            equal((sorted(snapshots), snapshots["pinned"]["pinned"]), (["later", "pinned"], True), "snapshots")
            time.sleep(1)
        equal(lost(daemon), 0, "samples that are told as lost")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        samples, reference = recording.samples(daemon.segments()), recording.samples(perf.path)
        equal(recording.lost(daemon.segments()), 0, "lost samples in the segments")
        equal(recording.seams(samples, reference, PERIOD_NS, range(CPUS))[:3], [], "gaps")
        for name in ("web", "known"):
            check(recording.samples(daemon.segments(name)), f"session '{name}' has no sample")


@test
def a_change_of_a_snapshot_completes_although_its_client_left():
    need_root()
    with scratch() as folder, slow_disk(folder) as store, Daemon(folder, config=CONFIG, store=store) as daemon:
        with Varlink(daemon.control()) as v:
            v.one("Snapshot", name="mine")
        with frozen(store):
            first = Waiting(daemon, "PinSnapshot", name="mine", pinned=True)
            with Varlink(daemon.control()) as v:
                # One change at a time of one snapshot.
                with fault("Busy"):
                    v.one("RemoveSnapshot", name="mine")
            waiting = [Waiting(daemon, "ListSegments", more=True) for _ in range(8)]
            serve(daemon, 1)
            # A client that goes before the answer is there takes nothing with it.
            for call in waiting[:4]:
                call.close()
            serve(daemon, 1)
        equal(first.answers(), [{}], "answer")
        for call in waiting[4:]:
            check(call.answers(), "no segment is listed")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


@test
def a_stop_on_a_frozen_disk_gives_up_and_reports_the_lost_samples():
    need_root()
    config = CONFIG.replace(LIMITS, LIMITS + "FlushIntervalSec=1s\n")
    with scratch() as folder, slow_disk(folder) as store, spinning(), \
            Daemon(folder, config=config, store=store) as daemon:
        with perf_record(os.path.join(folder, "perf.data"), "-m", "16M", frequency=HZ) as perf, \
                Varlink(daemon.control()) as v:
            v.one("Start", session="web", settings=WEB)
            time.sleep(2)
            with frozen(store):
                time.sleep(3)
                equal(state(daemon, "web"), "active", "state of the session before it is stopped")
                stopping_ns = now_ns()
                # It is answered while the disk still stands.
                stopped = v.one("Stop", session="web")["session"]
                equal(stopped["state"], "inactive", "state of a session that was stopped")
                given_up = re.search("giving up on ([1-9][0-9]*) samples", daemon.log())
                check(given_up, f"the log does not say that samples are given up: {daemon.log()[-1000:]}")
                equal(stopped["lost"], int(given_up[1]), "samples that the answer to Stop reports as lost")
                serve(daemon, 1)
            daemon.wait_for_log(f"Stopped session 'web', which took [0-9]+ samples, {stopped['lost'] or 'none'} lost")
            again = v.one("Start", session="web", settings=WEB)["session"]
            equal(again["state"], "active", "state of the session that was begun again")
            time.sleep(1)
            v.one("Stop", session="web")
        equal(lost(daemon), 0, "lost samples of the session that was left alone")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        web = recording.samples(daemon.segments("web"))
        begin_ns = min(s.time for s in web)
        taken = len(recording.within(recording.samples(perf.path), begin_ns, stopping_ns))
        kept = len(recording.within(web, begin_ns, stopping_ns))
        missing = taken - kept
        print(f"# of {taken} samples {kept} were kept and {stopped['lost']} reported as lost")
        check(kept < taken * 3 // 4, f"{kept} of {taken} samples were kept, so that nothing was given up")
        # The batch that the disk held back is counted, and may be written when the disk is back.
        check(missing * 98 // 100 <= stopped["lost"] <= missing + BATCH, f"{missing} samples are missing")


@test
def a_reload_on_a_frozen_disk_does_not_stop_other_sessions():
    need_root()
    with scratch() as folder, slow_disk(folder) as store, spinning(), \
            Daemon(folder, config=CONFIG, store=store) as daemon:
        daemon.wait_for_segments(1, "other")
        with frozen(store):
            daemon.configure(CONFIG.replace("Frequency=99\n", "Frequency=199\n"))
            reload = Waiting(daemon, "Reload")
            serve(daemon, GIVES_UP_S // 2)
        equal(reload.answers(), [{}], "answer")
        # It is starting until its first segment is there.
        wait_until(lambda: state(daemon, "other") == "active", 20, "the session that began anew to record")
        equal(lost(daemon), 0, "lost samples of the session that did not change")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


if __name__ == "__main__":
    main(at_once=1 if LONG else 3)
