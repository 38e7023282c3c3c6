#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd as a service of Debian 12 (systemd 252) and Debian 13 (systemd 257): installed by meson into a
fresh one, which systemd-nspawn boots."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from machine import STORE, UNIT, USERS, machine_of  # noqa: E402
from workload import wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

# chown, dac_read_search, kill, setgid, setuid, sys_ptrace, sys_admin, syslog, perfmon
KEEPER_CAPABILITIES = 0x44002800e5

# What each may ask for, and the status of profctl where that is not all.
MAY = (
    (("ping",), {"nobody": 4}),
    (("status",), {"nobody": 4}),
    (("list", "default"), {"stranger": 4, "nobody": 4}),
    (("rotate",), {"reader": 4, "stranger": 4, "nobody": 4}),
    (("reload",), {"reader": 4, "stranger": 4, "nobody": 4}),
)


def define(name, release):
    def the_service_starts_and_stops():
        with machine_of(name) as machine:
            said = machine.run("systemd-analyze", "verify", "--man=no", UNIT)
            check(said.returncode == 0 and not said.stderr.strip(), f"systemd-analyze verify: {said.stderr}")
            machine.do("systemctl", "enable", "--now", UNIT)
            equal(machine.do("systemctl", "is-active", UNIT), "active", "is-active")
            machine.wait_for_journal("Recording ")
            wait_until(lambda: "samples" in machine.show("StatusText"), 30, "a status with samples")
            machine.do("systemctl", "stop", UNIT)
            equal(machine.show("Result"), "success", "result")
            files = machine.files()
            check([f for f in files if f.endswith(".perf.data")], f"no finished segment in {files}")
            check(not [f for f in files if f.endswith(".open")], f"an open segment in {files}")
            entries = machine.entries()
            check(any("PROFD_SEGMENT" in e and "PROFD_SESSION" in e for e in entries), "no entry with fields of its own")

    def its_recorder_has_a_user_and_no_right():
        with machine_of(name) as machine:
            machine.do("systemctl", "start", UNIT)
            status = dict(line.split(":\t", 1) for line in
                          machine.do("cat", f"/proc/{machine.recorder()}/status").splitlines() if ":\t" in line)
            user = machine.do("id", "-u", "profd")
            equal(set(status["Uid"].split()), {user}, "uids of the recorder")
            for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                equal(int(status[kind], 16), 0, kind)
            check(not int(status["CapBnd"], 16) & ~KEEPER_CAPABILITIES, f"CapBnd is {status['CapBnd']}")

    def profctl_does_for_each_user_what_he_may():
        with machine_of(name) as machine:
            machine.do("systemctl", "start", UNIT)
            for command, others in MAY:
                for user in ("root", *USERS, "nobody"):
                    done = machine.as_user(user, "profctl", *command)
                    equal(done.returncode, others.get(user, 0),
                          f"status of profctl {command[0]} by {user} ({done.stdout}{done.stderr})")
            check("default" in machine.do("profctl", "status"), "the status names no session")
            segment = machine.do("profctl", "rotate", "default").split()[-1]
            said = machine.as_user("reader", "perf", "report", "--stdio", "-i", segment)
            check(said.returncode == 0 and "Samples" in said.stdout, f"perf report by a reader: {said.stderr}")
            said = machine.as_user("stranger", "perf", "report", "--stdio", "-i", segment)
            check(said.returncode != 0, "a stranger may read a segment")
            machine.do("systemctl", "stop", UNIT)
            equal(machine.run("profctl", "status").returncode, 3, "status of profctl status without a daemon")

    def what_snapshot_prints_can_be_read_by_who_asked():
        with machine_of(name) as machine:
            machine.do("systemctl", "start", UNIT)
            machine.wait_for_journal("Recording ")
            machine.do("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
            for user in ("root", "reader"):
                done = machine.as_user(user, "profctl", "snapshot")
                equal(done.returncode, 0, f"status of profctl snapshot by {user} ({done.stdout}{done.stderr})")
                report = machine.as_user(user, "perf", "report", "--stdio", "-i", done.stdout.strip())
                check(report.returncode == 0 and "Samples" in report.stdout,
                      f"perf report of '{done.stdout.strip()}' by {user}: {report.stderr}")
            # Who may read all, but is in no group that comes through the folders, has it sent.
            saved = "/tmp/admin.perf.data"
            done = machine.as_user("admin", "profctl", "snapshot", "-o", saved)
            equal(done.returncode, 0, f"status of profctl snapshot -o by admin ({done.stdout}{done.stderr})")
            report = machine.as_user("admin", "perf", "report", "--stdio", "-i", saved)
            check(report.returncode == 0 and "Samples" in report.stdout, f"perf report by admin: {report.stderr}")
            for user in ("stranger", "nobody"):
                equal(machine.as_user(user, "profctl", "snapshot").returncode, 4, f"status of profctl snapshot by {user}")

    def a_reload_is_heard():
        with machine_of(name) as machine:
            machine.do("systemctl", "start", UNIT)
            machine.do("mkdir", "-p", "/etc/profd/profd.conf.d")
            machine.do("sh", "-c", "printf '[Session default]\\nFrequency=49\\n' >/etc/profd/profd.conf.d/rate.conf")
            machine.do("systemctl", "reload", UNIT)
            machine.wait_for_journal("Reloaded the configuration")
            machine.do("sh", "-c", "printf '[Session default]\\nFrequency=often\\n' >/etc/profd/profd.conf.d/rate.conf")
            machine.run("systemctl", "reload", UNIT)
            machine.wait_for_journal("rate.conf:2")
            equal(machine.do("systemctl", "is-active", UNIT), "active", "is-active after a bad reload")

    def recordings_keep_their_owners():
        with machine_of(name) as machine:
            machine.do("systemctl", "start", UNIT)
            machine.do("systemctl", "restart", UNIT)
            machine.do("systemctl", "reload", UNIT)
            machine.wait_for_journal("Reloaded the configuration")
            machine.do("systemctl", "stop", UNIT)
            segments = [f for f in machine.files() if f.endswith(".perf.data")]
            equal(len(segments), 2, f"segments in {machine.files()}")
            for segment in segments:
                equal(machine.do("stat", "-c", "%U %G %a", f"{STORE}/{segment}"), "root profd-read 640", segment)

    def a_killed_recorder_is_back_and_the_service_stays():
        with machine_of(name) as machine:
            machine.do("systemctl", "start", UNIT)
            machine.wait_for_journal("Recording ")
            keeper, old = machine.show("MainPID"), machine.recorder()
            machine.do("kill", "-9", old)
            wait_until(lambda: machine.recorder() not in (None, old), 30, "another recorder")
            machine.wait_for_journal("Recording ", 2)
            equal(machine.show("MainPID"), keeper, "main process")
            equal(machine.show("NRestarts"), "0", "restarts of the service")
            machine.do("kill", "-9", keeper)
            wait_until(lambda: machine.show("NRestarts") == "1", 30, "systemd to start the keeper again")
            machine.wait_for_journal("Recording ", 3)
            check([f for f in machine.files() if f.endswith("~.perf.data")], f"nothing recovered in {machine.files()}")

    for function in (the_service_starts_and_stops, its_recorder_has_a_user_and_no_right,
                     profctl_does_for_each_user_what_he_may, what_snapshot_prints_can_be_read_by_who_asked,
                     a_reload_is_heard, recordings_keep_their_owners,
                     a_killed_recorder_is_back_and_the_service_stays):
        function.__name__ = f"on_{release}_{function.__name__}"
        test(function)


for _name, _release in (("bookworm", "debian_12"), ("trixie", "debian_13")):
    define(_name, _release)


if __name__ == "__main__":
    main()
