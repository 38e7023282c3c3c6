#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd.service of Debian 12 and 13 where it is tried hard: what its processes may not do, what the
journal says of it, deaths, a watchdog, and what a restart and an upgrade cost under 999 Hz."""

import collections
import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from debian import SOURCE  # noqa: E402
from machine import STORE, UNIT, machine_of  # noqa: E402
import recording  # noqa: E402
from workload import CPUS, now_ns, perf_record, program, spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

RELEASES = {"bookworm": "debian_12", "trixie": "debian_13"}
DROP_INS = "/etc/profd/profd.conf.d"
PERIOD_NS = 10**9 // 999
RESTART_S = 2
# Signs that a process may do nothing of the kind: not permitted, not allowed, read-only, not there,
# no such call, no such family of addresses.
REFUSALS = {1, 2, 13, 30, 38, 97}
# What a process of root may do in such a machine, so that the service is what refuses it.
FREE = ("process_vm_readv", "write-etc", "write-usr", "write-var", "write-run", "read-home", "read-tmp",
        "unshare-mount", "unshare-user", "chroot", "personality", "write-and-execute", "internet")
# By exposure, as systemd-analyze counts it, where 10 is a service that nothing is taken from.
EXPOSURE_MAX = 4.5
# An event and a phrase of what the catalog says of it.
TOLD = {
    "started": "saves the last minute",
    "segment-finished": "perf report and profctl read it",
    "degraded-fallback-event": "Give the machine a virtual PMU",
    "config-problem": "profd --check-config",
    "reload-refused": "All sessions go on as before",
    "reloaded": "go on without a gap",
    "recorder-died": "coredumpctl info profd",
    "recorder-replaced": "Nothing is lost",
    "snapshot-taken": "show-snapshot",
    "snapshot-removed": "A user removed",
    "call": "lists which users may call what",
    "call-refused": "Members of the group profd-read",
    "paused": "profctl resume default",
    "resumed": "takes samples again",
    "stopped": "profctl start default",
}


def on_each(function):
    """A test for each Debian."""
    for name, release in RELEASES.items():
        def run(name=name):
            function(name)
        run.__name__ = f"on_{release}_{function.__name__}"
        test(run)
    return function


def configure(machine, text):
    os.makedirs(machine.disk.path(DROP_INS), exist_ok=True)
    with open(machine.disk.path(f"{DROP_INS}/test.conf"), "w", encoding="utf-8") as f:
        f.write(text)


def drop_in(machine, text):
    os.makedirs(machine.disk.path(f"/etc/systemd/system/{UNIT}.d"), exist_ok=True)
    with open(machine.disk.path(f"/etc/systemd/system/{UNIT}.d/test.conf"), "w", encoding="utf-8") as f:
        f.write(text)
    machine.do("systemctl", "daemon-reload")


def probe(machine, pid):
    said = machine.do("/usr/local/bin/probe", pid, "service")
    return {word: int(number) for word, number in (line.split() for line in said.splitlines())}


# Programs of the distribution, which it built without frame pointers, and one of ours. They go on for long enough that
# their tables are there.
PROGRAMS = {
    "sh": ["sh", "-c", "while :; do i=$((i + 1)); done"],
    "perl": ["perl", "-e", "sub f { my $v = shift; $v = ($v * 31 + $_) % 65521 for 1 .. 2000; return $v } my $v = 1; $v = f($v) while 1"],
    "deep": ["/usr/local/bin/deep"],
}


def outermost(machine, path):
    """For each sample of the programs with a part in user space: the name, and the files of the two outermost frames."""
    said = machine.do("perf", "script", "-F", "comm,ip,sym,dso", "-i", path)
    for block in said.split("\n\n"):
        lines = block.strip().splitlines()
        if lines and lines[0].strip() in PROGRAMS:
            files = [os.path.basename(line.rsplit("(", 1)[-1].rstrip(")")) for line in lines[1:]]
            # A process that begins or ends has a part in the kernel alone.
            if not files[-1].startswith("[kernel"):
                yield lines[0].strip(), files[-2:]


@on_each
def stacks_of_its_programs_are_whole(name):
    with machine_of(name) as machine:
        shutil.copy(program("deep"), machine.disk.path("/usr/local/bin/deep"))
        # There may be too little memory to lock for what auto would choose.
        configure(machine, "[Session default]\nEvent=cpu-clock\nFrequency=99\nCallGraph=unwind:4K\n")
        machine.do("systemctl", "start", UNIT)
        machine.wait_for_journal("Recording ")
        for comm, command in PROGRAMS.items():
            machine.do("systemd-run", "--quiet", f"--unit=busy-{comm}", *command)
        time.sleep(8)
        machine.do("profctl", "snapshot", "-f", "-o", "/tmp/stacks.perf.data", "--last=4s")
        seen, whole = collections.Counter(), collections.Counter()
        for comm, files in outermost(machine, "/tmp/stacks.perf.data"):
            seen[comm] += 1
            # _start of the program, which the C library called nothing before.
            own = {"sh": "dash"}.get(comm, comm)
            whole[comm] += len(files) == 2 and files[1].startswith(own) and files[0].startswith("libc")
        print(f"# {name}:", ", ".join(f"{comm} {whole[comm]} of {n}" for comm, n in seen.items()))
        check(set(seen) == set(PROGRAMS) and min(seen.values()) > 50, f"samples: {seen}")
        for comm, n in seen.items():
            check(whole[comm] >= 0.98 * n, f"whole stacks of {comm}: {whole[comm]} of {n}")


@on_each
def what_the_service_need_not_do_is_refused(name):
    with machine_of(name) as machine:
        shutil.copy(program("probe"), machine.disk.path("/usr/local/bin/probe"))
        for secret in ("/root/profd-secret", "/tmp/profd-secret"):
            machine.do("sh", "-c", f"echo x >{secret}; chmod 644 {secret}")
        machine.do("systemctl", "start", UNIT)
        # Anybody else of the machine, to show that it is not the machine that refuses.
        machine.do("systemd-run", "--quiet", "--unit=other", "sleep", "1000")
        answers = {"keeper": probe(machine, machine.show("MainPID")), "recorder": probe(machine, machine.recorder()),
                   "other": probe(machine, machine.do("systemctl", "show", "-P", "MainPID", "other"))}
        for who in ("keeper", "recorder"):
            for what, error in answers[who].items():
                check(what == "getppid" or error in REFUSALS, f"{what} by the {who} ended with {error}")
        for what in FREE:
            equal(answers["other"][what], 0, f"{what} by another process")
        print(f"# refused on {name}:", ", ".join(word for word in answers["keeper"] if word != "getppid"))
        said = machine.do("systemd-analyze", "security", "--no-pager", UNIT).splitlines()[-1]
        print(f"# {said}")
        check(float(said.split(":")[1].split()[0]) <= EXPOSURE_MAX, said)
        machine.do("systemctl", "is-active", UNIT)


@on_each
def what_it_needs_is_there_behind_all_that(name):
    with machine_of(name) as machine:
        machine.do("systemctl", "start", UNIT)
        machine.wait_for_journal("Recording ")
        machine.do("systemd-run", "--quiet", "--unit=busy", "sh", "-c", "while :; do i=$((i+1)); done")

        def seen():
            segment = machine.do("profctl", "rotate", "default").split()[-1]
            said = machine.do("perf", "script", "-F", "comm,ip,sym,dso", "-i", segment)
            # What is opened for it in other processes, by way of openat2().
            images = machine.do("perf", "buildid-list", "-i", segment)
            return "do_syscall_64" in said and "/dash)" in said and "/dash" in images

        wait_until(seen, 60, "samples of the kernel and of a program, with their names and build ids")
        check("Permission denied" not in machine.journal() and "Read-only" not in machine.journal(), machine.journal())
        # The journal is asked, where a line on stderr would have no field.
        check(all("PROFD_EVENT" in e for e in machine.entries() if "Recording " in e["MESSAGE"]), "no event is named")


def do_all(machine):
    """Whatever makes profd tell of something."""
    configure(machine, "[Session default]\nEvent=cycles\n")
    machine.do("systemctl", "start", UNIT)
    machine.wait_for_journal("Recording ")
    machine.do("systemctl", "reload", UNIT)
    configure(machine, "[Session default]\nFrequency=often\n")
    check(machine.run("systemctl", "reload", UNIT).returncode != 0, "a bad configuration was loaded")
    os.unlink(machine.disk.path(f"{DROP_INS}/test.conf"))
    snapshot = machine.do("profctl", "snapshot", "--name", "one")
    check(snapshot.endswith("one.perf.data"), snapshot)
    machine.do("profctl", "rm", "one")
    machine.do("profctl", "pause", "default")
    machine.do("profctl", "resume", "default")
    equal(machine.as_user("stranger", "profctl", "rotate").returncode, 4, "status of profctl rotate by a stranger")
    machine.do("kill", "-9", machine.recorder())
    machine.wait_for_journal("Recording ", 2)
    machine.do("systemctl", "kill", "--kill-who=main", "-s", "USR1", UNIT)
    machine.wait_for_journal("Recording ", 3)
    machine.do("systemctl", "stop", UNIT)


@on_each
def the_journal_says_what_happened_and_what_to_do(name):
    with machine_of(name) as machine:
        do_all(machine)
        entries = machine.entries()
        shown = machine.do("journalctl", "-x", "-u", UNIT, "--no-pager").replace("\n░░ ", " ").replace("\n-- ", " ")
        for event, phrase in TOLD.items():
            found = [e for e in entries if e.get("PROFD_EVENT") == event]
            check(found, f"no entry of {event}")
            check(all(len(e["MESSAGE_ID"]) == 32 for e in found), f"{event} has no number")
            by_id = machine.do("journalctl", "-o", "cat", "--no-pager", f"MESSAGE_ID={found[0]['MESSAGE_ID']}")
            check(found[0]["MESSAGE"] in by_id, f"{event} is not found by its number")
            check(phrase in shown, f"journalctl -x does not say '{phrase}' of {event}")
        check("@PROFD_" not in shown, "a text of the catalog lacks a field")
        texts = machine.do("journalctl", "--no-pager", "--dump-catalog")
        ours = 0
        for catalog in ("profd.catalog", "profd-gateway.catalog"):
            with open(os.path.join(SOURCE, "systemd", catalog), encoding="utf-8") as f:
                ours += f.read().count("Defined-By: profd")
        equal(texts.count("Defined-By: profd"), ours, "texts in the catalog")


@on_each
def a_reload_ends_as_it_went_and_the_status_says_so(name):
    with machine_of(name) as machine:
        machine.do("systemctl", "start", UNIT)
        configure(machine, "[Session default]\nFrequency=49\n")
        equal(machine.run("systemctl", "reload", UNIT).returncode, 0, "status of a good reload")
        wait_until(lambda: "49 Hz" in machine.show("StatusText"), 30, f"49 Hz in {machine.show('StatusText')}")
        configure(machine, "[Session default]\nFrequency=often\n")
        check(machine.run("systemctl", "reload", UNIT).returncode != 0, "a bad reload is told as good")
        shown = machine.run("systemctl", "status", "--no-pager", "-l", UNIT).stdout
        check("the last reload was refused" in shown and "test.conf:2" in shown and "Active: active" in shown, shown)
        print("# " + machine.show("StatusText"))
        equal(machine.show("NRestarts"), "0", "restarts")
        # The same at a start: it records, and says what is wrong.
        machine.do("systemctl", "restart", UNIT)
        wait_until(lambda: "degraded: " in machine.show("StatusText"), 30, "a status that says degraded")
        check("config" in machine.show("StatusText") and "99 Hz" in machine.show("StatusText"), machine.show("StatusText"))
        equal(machine.run("profctl", "status", "--check").returncode, 7, "status of profctl status --check")
        check("degraded-config" in [e.get("PROFD_EVENT") for e in machine.entries()], machine.journal())


def segments(machine, count):
    return sorted(glob.glob(machine.disk.path(f"{STORE}/*.perf.data")))[-count:]


def widest(found, begin_ns, end_ns):
    """The widest gap of each CPU in that time, its ends as well, in samples that are not there."""
    gaps = {}
    for cpu, times in recording.by_cpu(found).items():
        near = [begin_ns, *(t for t in times if begin_ns < t < end_ns), end_ns]
        gaps[cpu] = max(b - a for a, b in zip(near, near[1:])) // PERIOD_NS - 1
    return gaps


@on_each
def a_restart_costs_little_and_an_upgrade_nothing(name):
    with machine_of(name) as machine, spinning():
        configure(machine, "[Session default]\nEvent=cpu-clock\nFrequency=999\n")
        machine.do("systemctl", "start", UNIT)
        time.sleep(1)
        begin = now_ns()
        machine.do("systemctl", "restart", UNIT)
        end = now_ns()
        time.sleep(1)
        machine.do("profctl", "rotate", "default")
        gaps = widest(recording.samples(segments(machine, 2)), begin - 10**9, end + 10**9)
        equal(sorted(gaps), list(range(CPUS)), "CPUs with samples")
        print(f"# on {name} a restart of {(end - begin) / 1e6:.0f} ms costs {gaps} samples of 999 a second by CPU")
        check(max(gaps.values()) < RESTART_S * 999, f"a restart cost {gaps} samples")

        with perf_record(os.path.join(machine.disk.folder, "perf.data")) as perf:
            time.sleep(1)
            old, mark = machine.recorder(), len(machine.entries())
            binary = machine.do("sh", "-c", "command -v profd")
            machine.do("sh", "-c", f"cp {binary} {binary}.new && mv {binary}.new {binary}")
            machine.do("systemctl", "kill", "--kill-who=main", "-s", "USR1", UNIT)
            wait_until(lambda: any("Recording " in e["MESSAGE"] for e in machine.entries()[mark:]), 60, "a new recorder")
            check(machine.recorder() != old, "the recorder is the same")
            time.sleep(1)
        machine.do("systemctl", "stop", UNIT)
        found = recording.samples(segments(machine, 2))
        missing = recording.seams(found, recording.samples(perf.path), PERIOD_NS, range(CPUS))
        equal(recording.lost(segments(machine, 2)), 0, "samples that the kernel dropped")
        equal(recording.twice(found)[:3], [], "samples that are there twice")
        print(f"# on {name} an upgrade costs {sum((g.end - g.begin) // PERIOD_NS for g in missing)} samples")
        equal(missing[:3], [], "gaps of the upgrade")
        equal([f for f in machine.files() if f.endswith(".open")], [], "open segments after a stop")


BUSY = 100
NICE = -15  # as the unit says
LOAD = f"for i in $(seq {BUSY}); do (while :; do :; done) & done; wait"


PEER = "/root/peer.data"
PEER_COMMAND = ["perf", "record", "-q", "-N", "-a", "-e", "cpu-clock", "-F", "999", "-k", "CLOCK_MONOTONIC", "-o", PEER,
                "--", "sleep", "1000"]


class Start:
    """When a unit was to start, and when its program began to run. Until then the process is systemd's own; the unit's
    nice value counts for a part of that time only. Beside a load all times that systemd notes may be after the exec."""

    def __init__(self, machine, unit, *command):
        self.machine, self.unit, self.begin_ns, self.pid, self.exec_ns = machine, unit, now_ns(), 0, 0
        machine.do(*command)

    def read_pid(self):
        self.pid = self.machine.host_pid(self.unit)

    def read_exec(self, execs):
        done = subprocess.run(["perf", "script", "--ns", "-F", "pid,time", "-i", execs], capture_output=True,
                              text=True, errors="replace", check=False)
        equal(done.returncode, 0, f"status of perf script ({done.stderr[-500:]})")
        moments = [int(s) * 10**9 + int(ns) for pid, s, ns in re.findall(r"^ *(\d+) +(\d+)\.(\d+):", done.stdout, re.MULTILINE)
                   if int(pid) == self.pid]
        self.exec_ns = max(moments, default=0)
        check(self.exec_ns > self.begin_ns, f"process {self.pid} has no exec after {self.begin_ns}: {done.stdout[-500:]}")

    def parts_ms(self, paths):
        """Up to the exec, and of the program up to its first sample."""
        first_ns = min(s.time for s in recording.samples(paths))
        return (self.exec_ns - self.begin_ns) / 1e6, (first_ns - self.exec_ns) / 1e6


def begin_load(machine):
    machine.do("systemd-run", "--quiet", "--unit=busy", "sh", "-c", LOAD)
    shell = machine.show_of("busy", "MainPID")
    wait_until(lambda: machine.run("pgrep", "-c", "-P", shell).stdout.strip() == str(BUSY), 60, "the load to begin")


def end_peer(machine):
    """perf record writes its file only when it has run its command, which takes long beside the load."""
    wait_until(lambda: "sleep" in machine.run("ps", "-o", "comm=", "--ppid", machine.show_of("peer", "MainPID")).stdout, 60,
               "perf record to begin")
    time.sleep(1)
    machine.do("systemctl", "kill", "--kill-who=main", "-s", "INT", "peer")
    wait_until(lambda: machine.show_of("peer", "ActiveState") in ("inactive", "failed"), 60, "perf record to end")


def recorded_under_load(machine):
    """The finished segments of some seconds beside the load, and how profd and perf record started there."""
    with perf_record(os.path.join(machine.disk.folder, "execs"), event="sched:sched_process_exec", frequency=None) as execs:
        begin_load(machine)
        starts = [Start(machine, UNIT, "systemctl", "start", "--no-block", UNIT),
                  Start(machine, "peer", "systemd-run", "--quiet", "--unit=peer", *PEER_COMMAND)]
        machine.wait_for_journal("Recording ")
        for pid in (machine.show("MainPID"), machine.recorder()):
            equal(machine.do("ps", "-o", "ni=", "-p", pid), str(NICE), f"nice value of process {pid}")
        time.sleep(4)
        for start in starts:
            start.read_pid()
        machine.do("systemctl", "stop", UNIT)
        machine.do("systemctl", "stop", "busy")
        end_peer(machine)
    for start in starts:
        start.read_exec(execs.path)
    return segments(machine, 1), starts


@on_each
def beside_a_hundred_busy_processes_the_service_loses_nothing_and_records_before_perf_does(name):
    with machine_of(name) as machine:
        configure(machine, "[Session default]\nEvent=cpu-clock\nFrequency=999\n")
        paths, starts = recorded_under_load(machine)
        times = recording.by_cpu(recording.samples(paths))
        equal(sorted(times), list(range(CPUS)), "CPUs with samples")
        equal(recording.lost(paths), 0, "samples that were lost")
        taken = sum(len(t) for t in times.values())
        check(taken > CPUS * 999, f"only {taken} samples of four seconds")
        ours, theirs = (start.parts_ms(path) for start, path in zip(starts, (paths, machine.disk.path(PEER))))
        print(f"# on {name} beside {BUSY} busy processes 0 of {taken} samples were lost")
        for who, (systemd, program_ms) in (("profd", ours), ("perf record", theirs)):
            print(f"# {who}: {systemd:.0f} ms of systemctl and systemd up to its exec, and {program_ms:.0f} ms from there to its first sample")
        # The machine has no controller of CPU time, so that the unit's CPUWeight= does not count for systemd's part.
        check(ours[1] < theirs[1], f"the first sample came {ours[1]:.0f} ms after the exec, that of perf record {theirs[1]:.0f} ms")


def build_with_hooks():
    """The daemon with -Ddebug-hooks=true; its path. Kept, so that a second time is short."""
    folder = os.path.join(os.environ["PROFD_BUILD"], "system-hooks")
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        subprocess.run(["meson", "setup", "-Ddebug-hooks=true", "-Dtests=false", folder, SOURCE], check=True,
                       stdout=subprocess.DEVNULL)
    done = subprocess.run(["ninja", "-C", folder, "daemon/profd"], capture_output=True, text=True, check=False)
    check(done.returncode == 0, done.stdout[-2000:])
    return os.path.join(folder, "daemon", "profd")


@contextlib.contextmanager
def machine_with_hooks(name):
    built = build_with_hooks()
    with machine_of(name) as machine:
        shutil.copy(built, machine.disk.path(machine.do("sh", "-c", "command -v profd")))
        yield machine


@on_each
def the_watchdog_starts_a_hung_recorder_again(name):
    with machine_with_hooks(name) as machine:
        drop_in(machine, "[Service]\nWatchdogSec=10s\nEnvironment=PROFD_DEBUG_HANG=/run/profd-hang\n"
                         "ExecStartPre=+/bin/rm -f /run/profd-hang\n")
        configure(machine, "[Profd]\nFlushIntervalSec=1s\n")
        machine.do("systemctl", "start", UNIT)
        machine.wait_for_journal("Recording ")
        keeper = machine.show("MainPID")
        begin = time.monotonic()
        machine.do("touch", "/run/profd-hang")
        wait_until(lambda: machine.show("NRestarts") == "1", 110, f"the watchdog to bite:\n{machine.journal()}")
        print(f"# on {name} a hung drain was seen and ended after {time.monotonic() - begin:.0f} s")
        machine.wait_for_journal("Recording ", 2)
        check(machine.show("MainPID") != keeper, "the keeper is the same")
        events = [e.get("PROFD_EVENT") for e in machine.entries()]
        check("drain-hung" in events and "watchdog" in events, f"{events}\n{machine.journal()}")
        check("Watchdog timeout" in machine.journal(), machine.journal())
        machine.do("systemctl", "stop", UNIT)
        check([f for f in machine.files() if f.endswith("~.perf.data")], f"nothing recovered in {machine.files()}")


if __name__ == "__main__":
    main()
