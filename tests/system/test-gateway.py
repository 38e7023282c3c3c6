#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd-gateway as a service of Debian 12 and Debian 13, beside profd: installed by meson into a fresh one, which
systemd-nspawn boots."""

import calendar
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from machine import UNIT, machine_of  # noqa: E402
from workload import wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

GATEWAY = "profd-gateway.service"
OUT = "/var/lib/profd-gateway/out"
SECTION = f"[Gateway]\\nIntervalSec=1s\\n[Send files]\\nType=file\\nURL={OUT}\\n"


def configure(machine, text):
    machine.do("mkdir", "-p", "/etc/profd/gateway.conf.d")
    machine.do("sh", "-c", f"printf '{text}' >/etc/profd/gateway.conf.d/50-site.conf")


def started(machine):
    """Both services, and a folder for profiles where the gateway may write."""
    configure(machine, SECTION)
    machine.do("install", "-d", "-o", "profd-gateway", "-g", "profd-read", "-m", "750", "/var/lib/profd-gateway", OUT)
    machine.do("systemctl", "start", UNIT, GATEWAY)


def status(machine):
    return json.loads(machine.do("profctl", "gateway", "status", "--json=short"))


def sent(machine):
    return status(machine)["destinations"][0]["sentIntervals"]


def times(machine):
    """When each interval begins that was sent, in seconds."""
    stamps = re.findall(r"-(\d{8}T\d{6})Z\.pb\.gz$", machine.do("ls", OUT), re.MULTILINE)
    return sorted(calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%S")) for stamp in stamps)


def journal(machine, *words):
    return machine.do("journalctl", "-u", GATEWAY, "--no-pager", *words)


def define(name, release):
    def the_gateway_sends_what_profd_records_without_any_right():
        with machine_of(name) as machine:
            said = machine.run("systemd-analyze", "verify", "--man=no", GATEWAY)
            check(said.returncode == 0 and not said.stderr.strip(), f"systemd-analyze verify: {said.stderr}")
            started(machine)
            wait_until(lambda: sent(machine) >= 3, 60, f"three intervals:\n{journal(machine)}")
            check(machine.do("ls", OUT).endswith(".pb.gz"), "there is no profile")
            check("1 of 1 destination up" in machine.show_of(GATEWAY, "StatusText"), "the status text lacks the destination")
            pid = machine.show_of(GATEWAY, "MainPID")
            lines = dict(line.split(":\t", 1) for line in machine.do("cat", f"/proc/{pid}/status").splitlines() if ":\t" in line)
            equal(set(lines["Uid"].split()), {machine.do("id", "-u", "profd-gateway")}, "uids")
            for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                equal(int(lines[kind], 16), 0, kind)
            equal((lines["NoNewPrivs"], lines["Seccomp"]), ("1", "2"), "no new privileges, seccomp")
            # Anybody may see how it does.
            equal(machine.as_user("stranger", "profctl", "gateway", "status").returncode, 0, "status for a stranger")
            equal(machine.do("stat", "-c", "%G %a", "/run/profd-gateway/http"), "profd-read 660", "who may fetch profiles")
            machine.do("systemctl", "stop", GATEWAY)
            equal(machine.show_of(GATEWAY, "Result"), "success", "result")
            equal(machine.run("profctl", "gateway", "status").returncode, 3, "status of a stopped gateway")

    def a_killed_gateway_goes_on_and_a_bad_reload_changes_nothing():
        with machine_of(name) as machine:
            started(machine)
            wait_until(lambda: sent(machine) >= 2, 60, f"two intervals:\n{journal(machine)}")
            configure(machine, SECTION + "Share=much\\n")
            machine.run("systemctl", "reload", GATEWAY)
            wait_until(lambda: "keeping the old one" in journal(machine), 30, "the refusal")
            check("50-site.conf:6: Share=much" in journal(machine), journal(machine))
            configure(machine, SECTION)
            machine.do("systemctl", "kill", "-s", "KILL", GATEWAY)
            before = len(machine.do("ls", OUT).split())
            wait_until(lambda: len(machine.do("ls", OUT).split()) > before + 2, 60, f"intervals after the kill:\n{journal(machine)}")
            text = journal(machine, "-x", "PROFD_EVENT=gateway-started")
            check("waits" in text and "Subject: profd-gateway has started" in text, f"the catalogue has no text: {text}")

    def one_that_hangs_is_restarted_and_misses_nothing():
        with machine_of(name) as machine:
            machine.do("mkdir", f"/etc/systemd/system/{GATEWAY}.d")
            machine.do("sh", "-c", f"printf '[Service]\nWatchdogSec=2s\nTimeoutAbortSec=1s\n' >/etc/systemd/system/{GATEWAY}.d/50-site.conf")
            machine.do("systemctl", "daemon-reload")
            started(machine)
            wait_until(lambda: sent(machine) >= 2, 60, f"two intervals:\n{journal(machine)}")
            machine.do("kill", "-STOP", machine.show_of(GATEWAY, "MainPID"))
            wait_until(lambda: machine.show_of(GATEWAY, "NRestarts") != "0", 60, f"a restart:\n{journal(machine)}")
            check("Watchdog timeout" in journal(machine), journal(machine))
            restarted = time.time()
            wait_until(lambda: times(machine)[-1] > restarted, 60, f"intervals after the restart:\n{journal(machine)}")
            # One that was late comes behind newer ones.
            wait_until(lambda: (found := times(machine)) == list(range(found[0], found[-1] + 1)), 60,
                       f"each interval to be sent:\n{times(machine)}")

    for function in (the_gateway_sends_what_profd_records_without_any_right,
                     a_killed_gateway_goes_on_and_a_bad_reload_changes_nothing,
                     one_that_hangs_is_restarted_and_misses_nothing):
        function.__name__ = f"on_{release}_{function.__name__}"
        test(function)


define("bookworm", "debian_12")
define("trixie", "debian_13")


if __name__ == "__main__":
    main()
