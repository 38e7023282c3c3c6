#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Events that cannot be recorded: the rest is recorded, nothing that nobody asked for, and a session
that failed is tried again until it records."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import PROFD, Daemon, session  # noqa: E402
from workload import need_root, scratch, wait_until  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

PROFCTL = build_path("client", "profctl")


def profctl(daemon, *arguments, status=0):
    done = subprocess.run([PROFCTL, f"--socket={daemon.control()}", *arguments], capture_output=True,
                          text=True, timeout=60, check=False)
    equal(done.returncode, status, f"the status of profctl {arguments} ({done.stderr[-500:]})")
    return done


def shown(daemon, name="default"):
    return json.loads(profctl(daemon, "show-session", name, "-j").stdout)[0]["session"]


def reasons(described):
    return [each["reason"] for each in described["degraded"]]


@test
def a_misspelt_event_is_skipped():
    need_root()
    with scratch() as folder, Daemon(folder, config=session(Event="cpu-clock,cycels")) as daemon:
        described = shown(daemon)
        equal(described["events"], ["cpu-clock"], "the events")
        check("missingEvents" in reasons(described), f"{described['degraded']}")
        equal(len(described["missingEvents"]), 1, "sentences about missing events")
        check("'cycels'" in described["missingEvents"][0] and "did you mean 'cycles'" in
              described["missingEvents"][0], described["missingEvents"])
        check("Missing: Event 'cycels'" in profctl(daemon, "status").stdout, "status does not name it")
        profctl(daemon, "status", "--check", status=7)
        equal(daemon.stop(), 0, "the status of profd")
        check("Event 'cycels' at offset 10 is not known, did you mean 'cycles'" in daemon.log(), daemon.log())


@test
def a_default_session_without_any_event_records_its_default_event():
    need_root()
    for event in ("cycels", "nosuch:thing", "cycels,nosuch:thing,cpu-clock:q"):
        with scratch() as folder, Daemon(folder, config=session(Event=event)) as daemon:
            described = shown(daemon)
            recorder = daemon.recorder()
            check(described["events"] in (["cpu-clock"], ["cycles"]), f"{event}: {described['events']}")
            equal(reasons(described).count("missingEvents"), 1, f"{event}: {reasons(described)}")
            check(event.split(",", maxsplit=1)[0] in described["missingEvents"][0], described["missingEvents"])
            wait_until(lambda d=daemon: shown(d)["samples"] > 0, 20, "samples")
            equal(daemon.recorder(), recorder, "the recorder")
            equal(daemon.stop(), 0, "the status of profd")
            log = daemon.log()
            check(f"Event '{event.split(',', maxsplit=1)[0]}' " in log, f"{event}: no reason in {log}")
            check("recorder" not in log.lower().replace("the recorder runs as", ""), f"{event}: {log}")


@test
def another_session_without_an_event_fails_and_records_nothing_else():
    need_root()
    config = session() + session("locks", Event="nosuch:thing")
    with scratch() as folder, Daemon(folder, config=config) as daemon:
        described = shown(daemon, "locks")
        equal((described["state"], described["samples"]), ("failed", 0), "the session")
        check("'nosuch:thing'" in described["error"], described["error"])
        # It is tried again, and says nothing that it did not say before.
        time.sleep(4)
        equal(shown(daemon, "locks")["state"], "failed", "the state later")
        equal(daemon.log().count("'nosuch:thing'"), 1, "lines about it")
        equal(daemon.stop(), 0, "the status of profd")
        equal(daemon.files("*", "locks"), [], "recordings of the session")


@test
def profd_keeps_running_if_no_session_records():
    need_root()
    config = session(Enabled="no") + session("locks", Event="nosuch:thing")
    with scratch() as folder, Daemon(folder, config=config, ready=False) as daemon:
        daemon.wait_for_log("Session 'locks' does not record")
        wait_until(lambda: os.path.exists(daemon.control()), 30, "the control socket")
        recorder = daemon.recorder()
        wait_until(lambda: json.loads(profctl(daemon, "status", "-j").stdout)["state"] == "idle", 30, "idle")
        profctl(daemon, "start", "default")
        wait_until(lambda: shown(daemon)["samples"] > 0, 20, "samples")
        equal(daemon.recorder(), recorder, "the recorder")
        equal(daemon.stop(), 0, f"the status of profd ({daemon.log()[-1500:]})")


@test
def a_failed_session_records_as_soon_as_it_can():
    need_root()
    if os.getpid() != 1:
        # Numbers of processes are set back for nobody else: it runs again as the first process of a namespace.
        done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, __file__,
                               "a_failed_session_records_as_soon_as_it_can"], capture_output=True, text=True, timeout=300, check=False)
        equal(done.returncode, 0, f"status in a namespace of processes ({done.stdout}{done.stderr})")
        return
    with scratch() as folder, subprocess.Popen(["sleep", "1000"]) as process:
        process.kill()
        process.wait()
        # The next process of that number does not exist yet, and a little later it does.
        config = session() + session("late", Event="cpu-clock", Pid=process.pid)
        with Daemon(folder, config=config) as daemon:
            equal(shown(daemon, "late")["state"], "failed", "the state before")
            with open("/proc/sys/kernel/ns_last_pid", "r+", encoding="ascii") as f:
                for _ in range(200):
                    f.seek(0)
                    f.write(str(process.pid - 1))
                    f.flush()
                    again = subprocess.Popen(["sh", "-c", "while :; do :; done"])
                    if again.pid == process.pid:
                        break
                    again.kill()
                    again.wait()
            try:
                equal(again.pid, process.pid, "the number of the new process")
                wait_until(lambda: shown(daemon, "late")["samples"] > 0, 90, "samples")
                equal(shown(daemon, "late")["error"], None, "the error afterwards")
            finally:
                again.kill()
                again.wait()
            equal(daemon.stop(), 0, "the status of profd")
            check("Session 'late' does not record, profd tries it again" in daemon.log(), daemon.log())


@test
def a_failed_session_that_a_reload_disables_is_not_tried_again():
    need_root()
    with scratch() as folder, subprocess.Popen(["true"]) as process:
        process.wait()
        late = {"Event": "cpu-clock", "Pid": process.pid}
        with Daemon(folder, config=session() + session("late", **late)) as daemon:
            equal(shown(daemon, "late")["state"], "failed", "the state before")
            daemon.configure(session() + session("late", Enabled="no", **late))
            profctl(daemon, "reload")
            for _ in range(4):
                equal(shown(daemon, "late")["state"], "inactive", "the state after the reload")
                time.sleep(1)
            equal(daemon.stop(), 0, "the status of profd")


@contextlib.contextmanager
def probe(name):
    """A tracepoint that somebody defines while profd runs; there is one for each call of a shell's main program."""
    path = "/sys/kernel/tracing/uprobe_events"
    if not os.access(path, os.W_OK):
        skip("no probes can be defined here")

    def define(text):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, text.encode() + b"\n")
        finally:
            os.close(fd)

    define(f"p:{name} {os.path.realpath('/bin/true')}:0x{entry_of('/bin/true'):x}")
    try:
        yield
    finally:
        # The kernel keeps it while an event is open.
        wait_until(lambda: not failed(lambda: define(f"-:{name}")), 20, "the probe to go")


def failed(action):
    try:
        action()
    except OSError:
        return True
    return False


def entry_of(program):
    """Where in the file it begins; such programs are mapped as they lie there."""
    with open(program, "rb") as f:
        return int.from_bytes(f.read(32)[24:32], sys.byteorder)


@test
def an_event_that_appears_later_is_recorded_without_a_reload():
    need_root()
    name = f"profd_test_{os.getpid()}/late"
    config = session() + session("both", Event=f"cpu-clock,{name.replace('/', ':')}", Frequency=99)
    with scratch() as folder, Daemon(folder, config=config) as daemon:
        equal([d["reason"] for d in shown(daemon, "both")["degraded"]], ["missingEvents"], "reasons before")
        with probe(name):
            wait_until(lambda: len(shown(daemon, "both")["events"]) == 2, 60, "the event to be recorded")
            wait_until(lambda: shown(daemon, "both")["state"] == "active", 20, "the session to go on")
            subprocess.run(["/bin/true"], check=True)
            equal(shown(daemon, "both")["degraded"], [], "reasons afterwards")
            profctl(daemon, "stop", "both")
        equal(daemon.stop(), 0, "the status of profd")
        last = daemon.segments("both")[-1]
        equal(recording.manifest(daemon.segments("both")[0])["coverage"]["after"], "reopened", "the gap while it began anew")
        check(any(r.get("event") == name.replace("/", ":") for r in recording.records(last, "SAMPLE")), "samples of the event")
        equal(len(daemon.segments()), 1, "segments of the session beside it")


@test
def starting_a_session_with_a_bad_event_is_refused_with_the_reason():
    need_root()
    with scratch() as folder, Daemon(folder, config=session()) as daemon:
        for event in ("cycels", "cpu-clock,cycels", "nosuch:thing"):
            said = profctl(daemon, "start", "web", "-e", event, status=1).stderr
            # Without tracefs nobody knows whether there is such a tracepoint.
            check(event.rsplit(",", maxsplit=1)[-1] in said and
                  ("is not known" in said or "tracefs" in said), said)
            profctl(daemon, "show-session", "web", status=5)
        equal(daemon.stop(), 0, "the status of profd")


# The events of a session, and whether it is to pass. One that passes records all that it asks for.
CONFIGURATIONS = {
    "right": ({"Event": "cpu-clock:u,cs"}, True),
    "auto": ({"Event": "auto"}, True),
    "typo": ({"Event": "cpu-clok"}, False),
    "half": ({"Event": "cpu-clock,cycels"}, False),
    "modifier": ({"Event": "cpu-clock:q"}, False),
    "term": ({"Event": "cpu-clock/perod=3/"}, False),
    "pmu": ({"Event": "nosuchpmu/event=1/"}, False),
    "group": ({"Event": "{cpu-clock,cycels}:S,cs"}, False),
    "empty": ({"Event": "cpu-clock:k", "KernelSamples": "no"}, False),
    "cpus": ({"CPUs": "8000"}, False),
    "max": ({"Frequency": "max", "Event": "cs"}, True),
    "dwarf": ({"CallGraph": "dwarf:1024"}, True),
}


def checked(folder, config):
    path = os.path.join(folder, "checked.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write(config)
    return subprocess.run([PROFD, "--check-config", f"--config={path}"], capture_output=True, text=True,
                          timeout=60, check=False)


@test
def the_check_accepts_exactly_the_configurations_that_record():
    need_root()
    passed = {}
    with scratch() as folder:
        for name, (keys, passes) in CONFIGURATIONS.items():
            done = checked(folder, session(name, **keys))
            passed[name] = done.returncode == 0
            equal(passed[name], passes, f"whether {name} passes ({done.stderr})")
            if not passes:
                check(re.search(r"checked.conf:[23]: .*session '" + name + "'", done.stderr), done.stderr)
        config = session() + "".join(session(name, **keys) for name, (keys, _) in CONFIGURATIONS.items())
        with Daemon(folder, config=config) as daemon:
            for name in CONFIGURATIONS:
                described = shown(daemon, name)
                records = described["state"] in ("starting", "active") and not described["missingEvents"]
                equal(records, passed[name], f"whether {name} records all ({described})")


@test
def a_check_without_rights_reports_only_certain_problems():
    need_root()
    with scratch() as folder:
        path, program = os.path.join(folder, "checked.conf"), os.path.join(folder, "profd")
        shutil.copy(PROFD, program)
        os.chmod(folder, 0o755)
        for event, status in (("cpu-clock", 0), ("sched:sched_switch", 0), ("cpu-clok", 1)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(session(Event=event))
            done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", program, "--check-config",
                                   f"--config={path}"], capture_output=True, text=True, timeout=60, check=False)
            equal(done.returncode, status, f"status for {event} ({done.stderr})")
            if is_refused():
                equal("Not checked: " in done.stderr, status == 0, done.stderr)


def is_refused():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        return int(f.read()) > 0


@test
def a_reload_with_an_event_that_cannot_be_recorded_is_refused_with_the_reason():
    need_root()
    with scratch() as folder, Daemon(folder, config=session(Event="cpu-clock")) as daemon:
        os.mkdir(daemon.config_path + ".d")
        drop_in = os.path.join(daemon.config_path + ".d", "50-locks.conf")
        since = shown(daemon)["sinceUsec"]
        for event in ("cycels", "cpu-clock,cycels", "cpu-clock:q"):
            with open(drop_in, "w", encoding="utf-8") as f:
                f.write("# more\n" + session("locks", Event=event))
            said = profctl(daemon, "reload", status=1).stderr
            bad = event.rsplit(",", maxsplit=1)[-1]
            check(f"{drop_in}:3: Event= of session 'locks': Event '{bad}' " in said, said)
            profctl(daemon, "show-session", "locks", status=5)
        with open(drop_in, "w", encoding="utf-8") as f:
            f.write(session(Event="cycels"))
        mark = daemon.mark()
        daemon.send(signal.SIGHUP)
        daemon.wait_for_log("The configuration has 1 problem, keeping the old one", mark)
        equal(shown(daemon)["events"], ["cpu-clock"], "the events of the session that goes on")
        equal(shown(daemon)["sinceUsec"], since, "since when it records")
        with open(drop_in, "w", encoding="utf-8") as f:
            f.write(session("locks", Event="cs") + session("later", Cgroup=f"profd-test-{os.getpid()}.slice"))
        profctl(daemon, "reload")
        wait_until(lambda: shown(daemon, "locks")["state"] in ("starting", "active"), 20, "the new session")
        check("Not checked: Cgroup= of session 'later': Control group" in daemon.log(), daemon.log())
        equal(daemon.stop(), 0, "the status of profd")


if __name__ == "__main__":
    main()
