#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd's socket in the hands of a client that nobody here wrote: Debian 13's varlinkctl."""

import contextlib
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from debian import debian  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from workload import scratch, wait_until  # noqa: E402
from tap import check, equal, main, source_path, test  # noqa: E402

INTERFACE = "io.profd.Control"
SERVICE = "org.varlink.service"
FOLDER = "/run/profd"
ADDRESS = f"{FOLDER}/{INTERFACE}"
CONFIG = session(Frequency=99) + session("other", Frequency=19)
NOT_ROOT = 4711


class Caller:
    """varlinkctl in a Debian 13 that has profd's socket where it belongs."""

    def __init__(self, machine):
        self.machine = machine

    def ask(self, verb, *arguments, user=0):
        command = ["chroot", f"--userspec={user}:{user}", self.machine.root, "varlinkctl", "--no-pager",
                   *verb.split(), ADDRESS, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def replies(self, verb, method, user=0, **parameters):
        done = self.ask("--json=short " + verb, f"{INTERFACE}.{method}", json.dumps(parameters), user=user)
        check(done.returncode == 0, f"{verb} {method} {parameters}: {done.returncode} {done.stderr}")
        return [json.loads(words) for words in done.stdout.replace("\x1e", "").splitlines() if words.strip()]

    def call(self, method, **parameters):
        replies = self.replies("call", method, **parameters)
        equal(len(replies), 1, f"replies to {method}")
        return replies[0]

    def error(self, method, user=0, **parameters):
        done = self.ask("call", f"{INTERFACE}.{method}", json.dumps(parameters), user=user)
        check(done.returncode != 0, f"{method} {parameters} does not fail but says {done.stdout}")
        return done.stderr


@contextlib.contextmanager
def calling(config=CONFIG):
    with scratch() as folder, Daemon(folder, config=config) as daemon, debian("trixie") as machine:
        machine.bind(os.path.join(folder, "run"), FOLDER)
        machine.bind("/proc")  # by which varlinkctl finds its way to sockets
        yield Caller(machine), daemon


def interface_file():
    path = source_path("lib", "protocol", f"{INTERFACE}.varlink")
    check(os.path.exists(path), f"there is no {path}")
    return path


def validated(machine):
    """The file as varlinkctl writes what it has read."""
    shutil.copy(interface_file(), machine.path("/tmp/interface"))
    done = machine.run("varlinkctl", "--no-pager", "validate-idl", "/tmp/interface")
    check(done.returncode == 0, f"validate-idl: {done.stderr}")
    check("rror" not in done.stderr and "arning" not in done.stderr, done.stderr)
    return done.stdout


@test
def the_interface_file_is_valid():
    with debian("trixie") as machine:
        check(f"interface {INTERFACE}" in validated(machine), "validate-idl shows another interface")


@test
def info_names_the_service_and_its_interfaces():
    with calling() as (caller, _):
        done = caller.ask("--json=short info")
        equal(done.returncode, 0, f"status of info ({done.stderr})")
        said = json.loads(done.stdout)
        equal(sorted(said["interfaces"]), sorted([INTERFACE, SERVICE]), "interfaces")
        for key in ("vendor", "product", "version"):
            check(said.get(key), f"no {key} in {said}")


@test
def introspect_shows_the_interface_file():
    with calling() as (caller, _):
        done = caller.ask("introspect", INTERFACE)
        equal(done.returncode, 0, f"status of introspect ({done.stderr})")
        lines = zip(done.stdout.splitlines() + [None], validated(caller.machine).splitlines() + [None])
        other = [pair for pair in lines if pair[0] != pair[1]]
        check(not other, f"the interface begins to differ from the file at {other[:1]}")
        done = caller.ask("introspect", SERVICE)
        equal(done.returncode, 0, f"status of introspect of the service ({done.stderr})")
        check("method GetInterfaceDescription" in done.stdout, done.stdout)


@test
def methods_answer_a_call():
    with calling() as (caller, daemon):
        equal(caller.call("Ping"), {}, "reply to Ping")
        status = caller.call("GetStatus")
        check({row["name"] for row in status["sessions"]} == {"default", "other"}, f"status {status}")
        check(caller.call("GetMetrics")["metrics"], "there are no metrics")
        equal(len(caller.call("Rotate", session="default")["segments"]), 1, "segments that Rotate ended")
        equal(len(daemon.segments()), 1, "segments after Rotate")
        equal(caller.call("SetLogLevel", level="debug"), {"previous": "info"}, "reply to SetLogLevel")
        caller.call("Reload")


@test
def lists_stream_to_a_call_with_more():
    with calling() as (caller, _):
        sessions = caller.replies("--more call", "ListSessions")
        equal(sorted(reply["session"]["name"] for reply in sessions), ["default", "other"], "sessions")
        settings = [reply["setting"] for reply in caller.replies("--more call", "Describe", session="default")]
        check(any(row["key"] == "Frequency" and row["value"] == "99" for row in settings), f"settings {settings}")
        caller.call("Rotate")
        segments = caller.replies("--more call", "ListSegments")
        check(len([reply for reply in segments if reply["segment"]]) >= 2, f"segments {segments}")
        caller.replies("--more call", "ListSnapshots")


@test
def a_snapshot_reports_its_progress():
    with calling() as (caller, daemon):
        replies = caller.replies("--more call", "Snapshot", session="default", name="seen", reason="varlinkctl")
        check(all(reply.get("snapshot") is None for reply in replies[:-1]), f"replies {replies}")
        snapshot = replies[-1]["snapshot"]
        equal((snapshot["name"], snapshot["reason"]), ("seen", "varlinkctl"), "name and reason")
        check(os.path.exists(snapshot["path"]), f"there is no {snapshot['path']}")
        listed = caller.replies("--more call", "ListSnapshots")
        equal([reply["snapshot"]["name"] for reply in listed], ["seen"], "snapshots")
        caller.call("PinSnapshot", name="seen", pinned=True)
        caller.call("PinSnapshot", name="seen", pinned=False)
        check(caller.call("RemoveSnapshot", name="seen")["bytes"] > 0, "bytes removed")
        check(not os.path.exists(snapshot["path"]), f"{snapshot['path']} is still there")


@test
def monitor_reports_events():
    with calling() as (caller, _):
        command = ["chroot", caller.machine.root, "varlinkctl", "--no-pager", "--json=short", "--more", "call", ADDRESS,
                   f"{INTERFACE}.Monitor", "{}"]
        with open(caller.machine.path("/tmp/events"), "w+", encoding="utf-8") as events, \
                subprocess.Popen(command, stdout=events, stdin=subprocess.DEVNULL) as monitor:
            def told(event):
                events.seek(0)
                return f'"event":"{event}"' in events.read()

            try:
                wait_until(lambda: told("ready"), 30, "Monitor to begin")
                caller.call("Rotate", session="default")
                wait_until(lambda: told("rotated"), 30, "Monitor to tell of the rotation")
            finally:
                monitor.kill()


@test
def errors_are_named():
    with calling() as (caller, _):
        check("NoSuchSession" in caller.error("Stop", session="none"), "Stop of a session that is not there")
        check("InvalidParameter" in caller.error("Stop", session=7), "Stop of a number")
        check("InvalidParameter" in caller.error("Ping", unknown=True), "Ping with a parameter")
        check("NoSuchSnapshot" in caller.error("RemoveSnapshot", name="none"), "RemoveSnapshot of none")
        check("ExpectedMore" in caller.error("ListSessions"), "ListSessions without more")
        check("MethodNotFound" in caller.error("Nonesuch"), "a method that is not there")


@test
def a_user_without_rights_may_only_ping_and_read_coarse_status():
    with calling() as (caller, _):
        caller.replies("call", "Ping", user=NOT_ROOT)
        status = caller.replies("call", "GetStatus", user=NOT_ROOT)[0]
        check(status.get("sessions") is None and status.get("store") is None, f"a stranger sees {status}")
        for method, parameters in (("Rotate", {}), ("Reload", {}), ("Stop", {"session": "default"})):
            check("PermissionDenied" in caller.error(method, user=NOT_ROOT, **parameters), f"{method} by a stranger")


if __name__ == "__main__":
    main()
