#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A session that records nothing, or profd that cannot do all its work: status, doctor, the line of the
unit and the exit status say so, each with the reason."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from background import background  # noqa: E402
import daemon as daemons  # noqa: E402
import recording  # noqa: E402
from daemon import Daemon, children, session  # noqa: E402
from profctl import ended, profctl  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import CPUS, end, load, need_root, scratch, spinning, wait_until  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

FLUSH = "[Profd]\nFlushIntervalSec=300ms\n"
GROUP = "profd-test-health.slice"
SWITCH = f"/sys/devices/system/cpu/cpu{CPUS - 1}/online"


def shown(daemon, name):
    with Varlink(daemon.control()) as v:
        return next((s for s in v.members("ListSessions", "session") if s["name"] == name), None)


def reasons(daemon, name=None):
    with Varlink(daemon.control()) as v:
        status = v.one("GetStatus")
    of = status if name is None else next(s for s in status["sessions"] if s["name"] == name)
    return {r["reason"] for r in of["degraded"]}


@contextlib.contextmanager
def notified(folder):
    """The environment for a profd whose status lines are heard, and a function: the last line."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(os.path.join(folder, "notify"))
        os.chmod(os.path.join(folder, "notify"), 0o666)
        lines = [""]

        def last():
            with contextlib.suppress(BlockingIOError):
                while True:
                    lines.extend(l for l in heard.recv(65536, socket.MSG_DONTWAIT).decode().splitlines()
                                 if l.startswith("STATUS="))
            return lines[-1]

        yield {**os.environ, "NOTIFY_SOCKET": heard.getsockname()}, last


def check_seen(daemon, last, name, reason, records=False):
    """Wherever somebody may look. Without a name: of profd as a whole."""
    path = daemon.control()
    equal(profctl("status", "--check", "--quiet", socket=path).returncode, 7, f"status --check, {reason}")
    text = profctl("status", socket=path).stdout
    check(f"({reason})" in text, f"status: {text}")
    doctor = " ".join(profctl("doctor", socket=path).stdout.split())
    state = "warn" if records else "fail"
    check(f"{state} daemon session '{name}' is degraded ({reason})" in doctor, f"doctor: {doctor}")
    if not records:
        equal(profctl("doctor", socket=path).returncode, 7, f"doctor, {reason}")
    # It is sent every ten seconds, and whenever somebody asks for the status.
    line = next((part for part in last().removeprefix("STATUS=").split("; ") if part.startswith(f"{name}: ")), "")
    check(reason in line.split("degraded: ")[-1], f"the line of the unit: {last()}")
    equal("records nothing" in line, not records, f"whether '{line}' says that nothing is recorded")


@contextlib.contextmanager
def group():
    with open("/proc/mounts", encoding="utf-8") as f:
        mounts = [line.split() for line in f]
    found = [m[1] for m in mounts if m[2] == "cgroup" and "perf_event" in m[3].split(",")]
    found += [m[1] for m in mounts if m[2] == "cgroup2"]
    if not found:
        skip("no control groups are mounted")
    path = os.path.join(found[0], GROUP)
    os.makedirs(path, exist_ok=True)
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(path)


def switch(online):
    try:
        with open(SWITCH, "w", encoding="ascii") as f:
            f.write("1" if online else "0")
    except OSError as error:
        skip(f"no CPU can be switched off here ({error.strerror})")


@test
def a_session_that_cannot_record_is_reported_everywhere():
    need_root()
    if CPUS < 2:
        skip("no CPU can be switched off here (there is one)")
    with scratch() as folder, group() as path, load("spin", 0) as spin, notified(folder) as (env, last):
        config = FLUSH + "".join(session(name, Event="cpu-clock", Frequency=99, **keys) for name, keys in (
            ("default", {}), ("process", {"Pid": spin.pid}), ("group", {"Cgroup": GROUP}), ("cpu", {"CPUs": CPUS - 1})))
        rows = (("process", "stopped", lambda: end(spin), None),
                ("group", "absentGroup", lambda: os.rmdir(path), lambda: os.mkdir(path)),
                ("cpu", "noCpus", lambda: switch(False), lambda: switch(True)))
        try:
            with Daemon(folder, config=config, env=env) as daemon:
                for name, *_ in rows:
                    wait_until(lambda name=name: shown(daemon, name)["state"] == "active", 20, f"{name} to record")
                equal(reasons(daemon) & {reason for _, reason, *_ in rows}, set(), "reasons at first")
                for name, reason, breaks, mends in rows:
                    breaks()
                    wait_until(lambda name=name, reason=reason: reason in reasons(daemon, name), 20, f"{name}: {reason}")
                    check_seen(daemon, last, name, reason)
                    equal(shown(daemon, name)["samplesPerSecond"], 0, f"rate of {name}")
                    if mends:
                        mends()
                        wait_until(lambda name=name, reason=reason: reason not in reasons(daemon, name), 20, f"{name} to mend")
                equal(shown(daemon, "process")["stopReason"], "its process has ended", "why it stopped")
                # What hangs is killed: without a keeper there is no profd.
                recorder = daemon.recorder()
                os.kill(daemon.process.pid, signal.SIGKILL)
                daemon.process.wait(timeout=30)
                wait_until(lambda: not os.path.exists(f"/proc/{recorder}"), 30, "the recorder to end")
                equal(profctl("status", "--check", "--quiet", socket=daemon.control()).returncode, 3, "status --check without a keeper")
        finally:
            switch(True)


def started(daemon, name, **settings):
    with Varlink(daemon.control()) as v:
        return v.one("Start", session=name, settings={"Event": "cpu-clock", "Frequency": "999", **settings})["session"]


@test
def a_session_of_a_process_stops_with_it_and_stays_listed():
    need_root()
    with scratch() as folder, Daemon(folder, config=FLUSH + session(Event="cpu-clock", Frequency=99)) as daemon:
        # What it starts goes on, and so does the session, as perf record does.
        with background(["sh", "-c", "read go; (while :; do :; done) & echo $!"], text=True,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
            equal(started(daemon, "web", Pid=str(shell.pid))["stopReason"], None, "why it stopped, while it records")
            shell.stdin.write("go\n")
            shell.stdin.flush()
            child = int(shell.stdout.readline())
            wait_until(lambda: shown(daemon, "web")["samples"] > 50, 20, "samples of what it started")
            equal(shown(daemon, "web")["stopReason"], None, "why it stopped, while its child runs")
            os.kill(child, signal.SIGKILL)
        wait_until(lambda: shown(daemon, "web")["state"] == "inactive", 20, "the session to stop")
        web = shown(daemon, "web")
        equal((web["stopReason"], web["degraded"], web["runtime"]), ("its process has ended", [], True), "what is said of it")
        check("Stopping session 'web', its process has ended" in daemon.log(), daemon.log()[-1000:])
        check("its process has ended" in profctl("show-session", "web", socket=daemon.control()).stdout, "show-session")
        ended(profctl("status", "--check", socket=daemon.control()), 0 if not reasons(daemon) else 7)
        equal({s.pid for s in recording.samples(daemon.segments("web"))} - {shell.pid, child}, set(), "samples of others")
        with load("spin", 0) as other:
            equal(started(daemon, "web", Pid=str(other.pid))["state"] in ("starting", "active"), True, "the name is free again")
            end(other)
            wait_until(lambda: shown(daemon, "web")["stopReason"], 20, "the next one to stop")
        wait_until(lambda: shown(daemon, "web")["state"] == "inactive", 20, "the next one to have stopped")
        # As profctl start -t begins one.
        with background(["sh", "-c", "while :; do :; done"]) as thread:
            ended(profctl("start", "web", "-e", "cpu-clock", "-t", str(thread.pid), socket=daemon.control()), 0)
            thread.kill()
        wait_until(lambda: shown(daemon, "web")["state"] == "inactive", 20, "the session of a thread to stop")
        web = shown(daemon, "web")
        equal((web["stopReason"], web["degraded"], web["error"]), ("its thread has ended", [], None), "what is said of it")
        ended(profctl("status", "--check", socket=daemon.control()), 0 if not reasons(daemon) else 7)
        title = profctl("status", socket=daemon.control()).stdout.splitlines()[0]
        check("recording since" in title and "nothing" not in title, title)
        with Varlink(daemon.control()) as v:
            v.one("Stop", session="web")
            equal([s["name"] for s in v.members("ListSessions", "session")], ["default"], "sessions at the end")


@test
def the_latest_sessions_that_ended_by_themselves_are_listed():
    need_root()
    with scratch() as folder, Daemon(folder, config=FLUSH + session(Event="cpu-clock", Frequency=99)) as daemon:
        for i in range(18):
            with background(["sleep", "1000"]) as process:
                started(daemon, f"s{i}", Pid=str(process.pid))
            wait_until(lambda i=i: shown(daemon, f"s{i}")["state"] == "inactive", 20, f"s{i} to stop")
        with Varlink(daemon.control()) as v:
            equal([s["name"] for s in v.members("ListSessions", "session")], ["default", *(f"s{i}" for i in range(2, 18))], "sessions")


@test
def a_session_stops_if_its_process_ends_while_no_recorder_runs():
    need_root()
    with scratch() as folder, Daemon(folder, config=FLUSH + session(Event="cpu-clock", Frequency=99)) as daemon:
        with load("spin", 0) as spin:
            pid = children(spin.pid)[0]
            started(daemon, "web", Pid=str(pid))
            wait_until(lambda: shown(daemon, "web")["samples"] > 0, 20, "samples")
            recorder, mark = daemon.recorder(), daemon.mark()
            os.kill(recorder, signal.SIGSTOP)
            os.kill(pid, signal.SIGKILL)
            os.kill(recorder, signal.SIGKILL)
        daemon.wait_for_log("Recording ", mark)
        wait_until(lambda: (shown(daemon, "web") or {}).get("stopReason"), 30, "the session to stop")
        equal(shown(daemon, "web")["state"], "inactive", "state")


@test
def without_the_program_that_reads_build_ids_profd_is_degraded():
    need_root()
    with scratch() as folder, notified(folder) as (env, last):
        os.chmod(folder, 0o755)
        copy, elf = os.path.join(folder, "profd"), os.path.join(folder, "profd-elf")
        for path in (copy, elf):
            shutil.copy(build_path("daemon", os.path.basename(path)), path)
        whole, daemons.PROFD = daemons.PROFD, copy
        try:
            with Daemon(folder, config=FLUSH + session(Event="cpu-clock", Frequency=99), env=env) as daemon, spinning():
                check("noBuildIds" not in reasons(daemon), "degraded from the start")
                os.rename(elf, elf + "-away")
                helper = next(p for p in children(daemon.process.pid) if b"profd-elf" in open(f"/proc/{p}/cmdline", "rb").read())
                os.kill(helper, signal.SIGKILL)

                def new_program():
                    path = os.path.join(folder, f"program-{time.monotonic_ns()}")
                    shutil.copy(build_path("tests", "integration", "load", "spin"), path)
                    process = subprocess.Popen([path, "0"], stdout=subprocess.DEVNULL)
                    time.sleep(0.5)
                    for pid in (*children(process.pid), process.pid):
                        os.kill(pid, signal.SIGKILL)
                    process.wait()

                wait_until(lambda: new_program() or "noBuildIds" in reasons(daemon, "default"), 30, "noBuildIds")
                check_seen(daemon, last, "default", "noBuildIds", records=True)
                os.rename(elf + "-away", elf)
                wait_until(lambda: new_program() or "noBuildIds" not in reasons(daemon, "default"), 60, "it to mend")
                equal(shown(daemon, "default")["callGraphUsed"], "unwind:16384", "call graph of the session that runs")
            os.rename(elf, elf + "-away")
            with Daemon(folder, config=FLUSH + session(Event="cpu-clock", Frequency=99), env=env) as daemon:
                said = shown(daemon, "default")
                equal(said["callGraphUsed"], "fp", "call graph without profd-elf")
                check("profd-elf does not run" in said["callGraphReason"], said["callGraphReason"])
        finally:
            daemons.PROFD = whole


if __name__ == "__main__":
    main()
