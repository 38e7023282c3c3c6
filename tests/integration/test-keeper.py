#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The keeper as a process: its recorder ends, crashes, is replaced, and has no right at all."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from daemon import is_sanitized  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

TOOL = build_path("tests", "integration", "keeper-tool")
PATIENCE_S = 30
USER, GROUP, READERS = 64990, 64991, 64992


class Keeper:
    """keeper-tool in a folder of its own; `before` are words in front of the command."""

    def __init__(self, folder, mode="record", before=(), **patience):
        self.folder = folder
        for name, ms in patience.items():
            with open(os.path.join(folder, name.replace("_", "-")), "w", encoding="ascii") as f:
                f.write(str(ms))
        # As installed: the program that is there when a recorder is started is the one that runs.
        self.program = os.path.join(folder, "bin", "tool")
        os.mkdir(os.path.dirname(self.program))
        shutil.copy(TOOL, self.program)
        self.command = [*before, self.program, folder]
        self.set_mode(mode)
        self.start()

    def start(self):
        with open(os.path.join(self.folder, "stderr"), "ab") as log:
            self.process = subprocess.Popen(self.command, stderr=log, stdin=subprocess.DEVNULL)

    def set_mode(self, mode):
        with open(os.path.join(self.folder, "mode"), "w", encoding="utf-8") as f:
            f.write(mode)
        os.chmod(f.name, 0o644)

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def lines(self, words):
        """Lines of the recorders' log that end with the words, as numbers of processes."""
        return [int(line.split()[0]) for line in self.read("log").splitlines()
                if line.split(" ", 1)[1].startswith(words)]

    def wait_for(self, words, count=1):
        end = time.monotonic() + PATIENCE_S
        while len(self.lines(words)) < count:
            check(time.monotonic() < end, f"no {count} x '{words}' in:\n{self.read('log')}"
                                          f"\n{self.read('stderr')}")
            time.sleep(0.01)
        return self.lines(words)[count - 1]

    def wait_for_log(self, words):
        end = time.monotonic() + PATIENCE_S
        while words not in self.read("stderr"):
            check(time.monotonic() < end, f"no '{words}' in:\n{self.read('stderr')}")
            time.sleep(0.01)

    def signal(self, number):
        self.process.send_signal(number)

    def status(self):
        return self.process.wait(timeout=PATIENCE_S)

    def stop(self):
        self.signal(signal.SIGTERM)
        return self.status()


@contextlib.contextmanager
def keeper(*arguments, mode_of_folder=0o700, **words):
    # A helper that has not heard yet that its keeper is gone may still write there.
    with tempfile.TemporaryDirectory(prefix="profd-test.", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, mode_of_folder)
        kept = Keeper(folder, *arguments, **words)
        try:
            yield kept
        finally:
            if kept.process.poll() is None:
                kept.process.kill()
                kept.process.wait()
            for pid in set(kept.lines("begin")):
                kill_recorder(pid, kept.program)


def kill_recorder(pid, program):
    """If it still is one: the number of one that ended may belong to somebody else."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError), open(os.pidfd_open(pid), "rb", buffering=0) as fd:
        if os.readlink(f"/proc/{pid}/exe").startswith(program):
            signal.pidfd_send_signal(fd.fileno(), signal.SIGKILL)


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def need_root():
    if os.geteuid() != 0:
        skip("needs root")


@test
def sigterm_reaches_the_recorder_and_the_keeper_returns_its_status():
    with keeper() as kept:
        kept.wait_for("ready 0")
        equal(kept.stop(), 0, "status")
        kept.wait_for("signal TERM")
        check(os.path.isdir(os.path.join(kept.folder, "store")), "no store was made")


@test
def ctrl_c_and_sighup_are_passed_on():
    with keeper() as kept:
        kept.wait_for("ready 0")
        kept.signal(signal.SIGHUP)
        kept.wait_for("signal HUP")
        kept.signal(signal.SIGINT)
        equal(kept.status(), 0, "status")
        equal(len(kept.lines("signal TERM")), 1, "times that the recorder was told to stop")


@test
def a_recorder_that_cannot_start_ends_the_keeper_with_its_status():
    for status in (1, 3):
        with keeper(f"fail {status}") as kept:
            equal(kept.status(), status, "status")
            equal(len(kept.lines("begin")), 1, "recorders")


@test
def a_recorder_that_dies_is_replaced_on_the_same_events():
    with keeper() as kept:
        first = kept.wait_for("ready 0")
        if kept.lines("event -"):
            skip("the kernel refuses perf events")
        os.kill(first, signal.SIGKILL)
        second = kept.wait_for("ready 0", 2)
        check(first != second, "the dead recorder records")
        equal(kept.lines("status events=1 restarts=1 upgraded=0"), [second], "who adopts")
        equal(kept.lines("event 1"), [second], "who found the event")
        check("died of signal 9" in kept.read("stderr"), kept.read("stderr"))
        equal(kept.stop(), 0, "status")


@test
def a_recorder_that_dies_while_it_stops_is_logged():
    with keeper("crash-late") as kept:
        kept.wait_for("ready 0")
        equal(kept.stop(), 1, "status")
        check("The recorder died of signal 9 (Killed) while it stopped" in kept.read("stderr"), kept.read("stderr"))


@test
def a_stop_between_two_recorders_is_logged():
    with keeper("crash") as kept:
        kept.wait_for_log("starting it again in 400 ms")
        equal(kept.stop(), 1, "status")
        check("Told to stop while no recorder runs" in kept.read("stderr"), kept.read("stderr"))


@test
def a_dead_recorder_does_not_trigger_the_watchdog():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        address = os.path.join(folder, "notify")
        systemd.bind(address)
        systemd.settimeout(PATIENCE_S)
        os.environ["NOTIFY_SOCKET"] = address
        try:
            with keeper("crash") as kept:
                for _ in range(3):
                    equal(systemd.recv(256), b"WATCHDOG=1", "what the keeper says")
                check(len(kept.lines("begin")) >= 3, f"too early: {kept.read('log')}")
        finally:
            del os.environ["NOTIFY_SOCKET"]


@test
def a_recorder_that_keeps_dying_is_restarted_later_but_before_its_rings_are_full():
    with keeper("crash") as kept:
        kept.wait_for("begin", 4)
        kept.wait_for_log("in 400 ms (restart 4)")
        log = kept.read("stderr")
        for words in ("in 100 ms (restart 1)", "in 200 ms (restart 2)", "in 400 ms (restart 3)"):
            check(words in log, f"no '{words}' in:\n{log}")
        kept.set_mode("record")
        kept.wait_for("begin record")
        kept.wait_for("ready 0", 5)
        equal(kept.stop(), 0, "status")


@test
def a_recorder_that_ran_for_a_while_is_restarted_after_the_shortest_delay():
    with keeper() as kept:
        for count in range(1, 4):
            pid = kept.wait_for("ready 0", count)
            time.sleep(1.2)
            os.kill(pid, signal.SIGKILL)
            kept.wait_for_log(f"in 100 ms (restart {count})")
        kept.wait_for("ready 0", 4)
        equal(kept.stop(), 0, "status")


@test
def a_recorder_that_fails_to_restart_does_not_end_the_keeper():
    with keeper() as kept:
        first = kept.wait_for("ready 0")
        kept.set_mode("fail 1")
        os.kill(first, signal.SIGKILL)
        kept.wait_for("begin fail", 2)
        kept.set_mode("record")
        kept.wait_for("ready 0", 2)
        equal(kept.stop(), 0, "status")


@test
def a_signal_to_end_the_recorder_ends_the_keeper():
    with keeper() as kept:
        os.kill(kept.wait_for("ready 0"), signal.SIGTERM)
        equal(kept.status(), 0, "status")


@test
def sigusr1_starts_a_newly_installed_recorder_on_the_same_events():
    with keeper() as kept:
        first = kept.wait_for("ready 0")
        inode = os.stat(f"/proc/{first}/exe").st_ino
        os.rename(kept.program, kept.program + ".old")
        shutil.copy(TOOL, kept.program)
        kept.signal(signal.SIGUSR1)
        second = kept.wait_for("ready 0", 2)
        equal(kept.lines("signal USR1"), [first], "who was asked to make room")
        log = kept.read("log")
        check(log.index(f"{first} signal USR1") < log.index(f"{second} took over"), log)
        check(os.stat(f"/proc/{second}/exe").st_ino != inode, "the old program runs")
        events = 0 if kept.lines("event -") else 1
        equal(kept.lines(f"status events={events} restarts=0 upgraded=1"), [second], "who follows")
        kept.signal(signal.SIGUSR1)
        kept.wait_for("ready 0", 3)
        equal(kept.stop(), 0, "status")


@test
def a_new_recorder_that_fails_leaves_the_old_one_in_place():
    with keeper() as kept:
        first = kept.wait_for("ready 0")
        kept.set_mode("fail 4")
        kept.signal(signal.SIGUSR1)
        kept.wait_for_log("ended with status 4 before it took over, the old one goes on")
        check(os.path.exists(f"/proc/{first}"), "the old one is gone")
        equal(kept.lines("signal"), [], "signals")
        equal(kept.stop(), 0, "status")
        equal(kept.lines("signal TERM"), [first], "who was stopped")


@test
def a_recorder_that_does_not_make_room_is_killed_and_replaced():
    with keeper("stay", leave_ms=300) as kept:
        first = kept.wait_for("ready 0")
        kept.set_mode("record")
        kept.signal(signal.SIGUSR1)
        second = kept.wait_for("ready 0", 2)
        equal(kept.lines("signal USR1"), [first], "who was asked to make room")
        check("The recorder did not hand over in time, killing it" in kept.read("stderr"), kept.read("stderr"))
        check(not os.path.exists(f"/proc/{first}"), "the old one is there")
        events = 0 if kept.lines("event -") else 1
        equal(kept.lines(f"status events={events} restarts=0 upgraded=1"), [second], "who follows")
        equal(kept.stop(), 0, "status")


@test
def a_new_recorder_that_hangs_is_killed_and_the_old_one_stays():
    with keeper(ask_ms=300) as kept:
        first = kept.wait_for("ready 0")
        kept.set_mode("hang")
        kept.signal(signal.SIGUSR1)
        kept.wait_for_log("new recorder did not get ready to take over in time, killing it")
        kept.wait_for_log("before it took over, the old one goes on")
        equal([pid for pid in kept.lines("begin hang") if os.path.exists(f"/proc/{pid}")], [], "new ones")
        equal(kept.lines("signal"), [], "signals")
        equal(kept.stop(), 0, "status")
        equal(kept.lines("signal TERM"), [first], "who was stopped")


@test
def a_recorder_ends_when_its_keeper_is_killed():
    with keeper() as kept:
        pid = kept.wait_for("ready 0")
        kept.signal(signal.SIGKILL)
        kept.wait_for("gone")
        end = time.monotonic() + PATIENCE_S
        while os.path.exists(f"/proc/{pid}") and status_of(pid)["State"][0] != "Z":
            check(time.monotonic() < end, "it lives on")
            time.sleep(0.01)


@test
def the_recorder_has_no_capability_and_the_keeper_only_the_needed_ones():
    need_root()
    allowed = {"sys_admin": 21, "perfmon": 38, "sys_ptrace": 19, "dac_read_search": 2, "syslog": 34,
               "chown": 0, "setuid": 7, "setgid": 6, "kill": 5, "ipc_lock": 14}
    mask = sum(1 << number for number in allowed.values())
    with keeper() as kept:
        recorder = status_of(kept.wait_for("ready 0"))
        itself = status_of(kept.process.pid)
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            equal(int(recorder[name], 16), 0, f"{name} of the recorder")
            beyond = int(itself[name], 16) & ~mask
            equal(beyond, 0, f"what the keeper has beyond its own in {name}")
        check(int(itself["CapEff"], 16) & 1 << 21, "the keeper lost CAP_SYS_ADMIN")
        for status, name in ((recorder, "recorder"), (itself, "keeper")):
            equal(status["NoNewPrivs"], "1", f"no_new_privs of the {name}")
            equal(status["Seccomp"], "2", f"seccomp of the {name}")
        equal(kept.stop(), 0, "status")


@test
def requests_that_a_recorder_never_makes_are_refused():
    with keeper("probe") as kept:
        kept.wait_for("ready 0")
        calls = ["process_vm_readv", "pidfd_getfd", "perf_event_open", "execve"]
        for call in calls if is_sanitized(TOOL) else ["ptrace", *calls]:
            equal(len(kept.lines(f"probe {call} refused")), 1, f"refusals of {call} in\n{kept.read('log')}")
        # Whether the time of day is synchronised decides whether recordings go for their age.
        equal(len(kept.lines("probe clock as outside")), 1, f"a look at the clock in\n{kept.read('log')}")
        equal(kept.stop(), 0, "status")


def with_user(folder):
    """Words that run a command where a user profd and a group profd-read exist."""
    for name, line in (("passwd", f"profd:x:{USER}:{GROUP}::/:/bin/false"),
                       ("group", f"profd:x:{GROUP}:\nprofd-read:x:{READERS}:")):
        with open(f"/etc/{name}", encoding="utf-8") as f:
            kept = [one for one in f.read().splitlines() if not one.startswith("profd")]
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write("\n".join([*kept, line]) + "\n")
    script = (f"mount --bind {folder}/passwd /etc/passwd && mount --bind {folder}/group /etc/group"
              ' && exec "$@"')
    return ["unshare", "-m", "sh", "-c", script, "sh"]


@contextlib.contextmanager
def keeper_with_user(mode="record"):
    need_root()
    with tempfile.TemporaryDirectory(prefix="profd-test.") as users:
        before = with_user(users)
        if subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
            skip("no mount namespace can be made here")
        with keeper(mode, before=before, mode_of_folder=0o733) as kept:
            yield kept


def owner_and_mode(*parts):
    st = os.stat(os.path.join(*parts))
    return st.st_uid, st.st_gid, st.st_mode & 0o7777


@test
def the_recorder_runs_as_the_user_profd_if_it_exists():
    with keeper_with_user() as kept:
        recorder = status_of(kept.wait_for("ready 0"))
        equal(recorder["Uid"].split(), [str(USER)] * 4, "Uid")
        equal(recorder["Gid"].split(), [str(GROUP)] * 4, "Gid")
        equal(recorder["Groups"].split(), [str(GROUP), str(READERS)], "Groups")
        equal(int(recorder["CapPrm"], 16), 0, "CapPrm")
        equal(owner_and_mode(kept.folder, "store"), (USER, READERS, 0o750), "store")
        equal(kept.stop(), 0, "status")


@test
def a_finished_recording_belongs_to_root_and_can_still_be_removed():
    with keeper_with_user("seal") as kept:
        kept.wait_for("ready 0")
        equal(len(kept.lines("seal 0")), 3, f"what was sealed, of\n{kept.read('log')}")
        store = os.path.join(kept.folder, "store")
        equal(owner_and_mode(store, "file.perf.data"), (0, 0, 0o640), "a sensitive file, no admins")
        equal(owner_and_mode(store, "folder"), (USER, READERS, 0o750), "a folder")
        equal(owner_and_mode(store, "folder", "data"), (0, READERS, 0o640), "a file in it")
        equal(len(kept.lines("read 0")), 1, "reads by the recorder")
        equal(len(kept.lines("write -13")), 1, "refused writes by the recorder")
        equal(len(kept.lines("rename 0")), 2, "what the recorder may with it as its folder's owner")
        equal(kept.stop(), 0, "status")


@test
def a_store_of_root_is_handed_over_except_finished_recordings():
    def make(folder):
        sessions = os.path.join(folder, "store", "sessions", "default")
        os.makedirs(sessions)
        for name in ("1.perf.data", "2.perf.data.open"):
            with open(os.path.join(sessions, name), "w", encoding="utf-8"):
                pass
        os.chmod(os.path.join(folder, "store"), 0o750)
        return sessions

    with keeper_with_user() as kept:
        kept.wait_for("ready 0")
        equal(kept.stop(), 0, "status")
        shutil.rmtree(os.path.join(kept.folder, "store"))
        sessions = make(kept.folder)
        kept.start()
        kept.wait_for("ready 0", 2)
        equal(owner_and_mode(sessions)[:2], (USER, GROUP), "folder of a session")
        equal(owner_and_mode(sessions, "1.perf.data")[:2], (0, 0), "finished recording")
        equal(owner_and_mode(sessions, "2.perf.data.open")[:2], (USER, GROUP), "open one")
        equal(kept.stop(), 0, "status")


@test
def a_folder_with_other_files_keeps_its_owner():
    with keeper_with_user() as kept:
        kept.wait_for("ready 0")
        equal(kept.stop(), 0, "status")
        store = os.path.join(kept.folder, "store")
        shutil.rmtree(store)
        os.makedirs(os.path.join(store, "letters"))
        os.chmod(store, 0o755)
        kept.start()
        kept.wait_for("ready 0", 2)
        equal(owner_and_mode(store), (0, 0, 0o755), "store")
        equal(kept.stop(), 0, "status")


@test
def without_root_missing_rights_are_logged_and_recording_goes_on():
    before = []
    if os.geteuid() == 0:
        before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]
    with keeper(before=before, mode_of_folder=0o777) as kept:
        kept.wait_for("ready 0")
        check("Running without CAP_SYS_ADMIN" in kept.read("stderr"), kept.read("stderr"))
        equal(kept.stop(), 0, "status")


@test
def a_program_that_the_recorders_user_cannot_reach_still_runs():
    need_root()
    with tempfile.TemporaryDirectory(prefix="profd-test.") as users:
        before = with_user(users)
        if subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
            skip("no mount namespace can be made here")
        hide = "chmod 700 \"$(dirname \"$1\")\" && exec \"$@\""
        with keeper(before=[*before, "sh", "-c", hide, "sh"], mode_of_folder=0o733) as kept:
            equal(status_of(kept.wait_for("ready 0"))["Uid"].split(), [str(USER)] * 4, "Uid")
            equal(kept.stop(), 0, "status")


if __name__ == "__main__":
    main()
