#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd as a service of Debian 12 and 13 on their own kernels, which come with perf_event_paranoid 3, a
pure cgroup v2 and enforced limits: what it does with little memory, with a disk that others filled or that
is frozen, beside a hundred busy processes, with a mistake in its configuration, and when the plug is pulled."""

import contextlib
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from debian import Debian  # noqa: E402
from emulator import UNIT, Emulator  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

PIECE = "/etc/profd/profd.conf.d/test.conf"
SESSIONS = "/var/lib/profd/sessions"
GROUP = f"/sys/fs/cgroup/system.slice/{UNIT}"
SMALL_DISK = 24 << 20
PROCESSES = 300
LOST_MAX = 10  # none of what the rings held; a kernel may have had a few that made no sense
MIB = 1 << 20

# As a store in memory would, within the group and out of the kernel's reach.
TAKE_MEMORY = (f"echo $BASHPID >{GROUP}/cgroup.procs && echo -1000 >/proc/self/oom_score_adj && "
               "head -c 22M /dev/zero >/run/taken")

# While the disk is frozen: a unit, the user and what profctl is asked for.
CALLS = (("pin", "reader", "pin pinned"), ("remove", "reader", "rm removed"), ("begin", "root", "start late -e cpu-clock -F 99"))
LOOKS = 5
# In one piece, so that it is short on a slow machine too; profctl stops waiting for an answer (status 6) after 30 s.
# Its last line is the status that profd shows before the thaw; it fails where profd does not answer, takes no
# samples, or has answered a call that needs the disk.
FREEZE = f"""
set -e
trap 'fsfreeze -u /var/lib/profd' EXIT
samples() {{ profctl status --json=short | tee /run/status | grep -o '"samples":[0-9]*' | head -n 1 | cut -d: -f2; }}
fsfreeze -f /var/lib/profd
{"".join(f"systemd-run -q -r --unit={unit} --uid={user} profctl -q {command}; " for unit, user, command in CALLS)}
before=$(samples)
for ((i = 0; i < {LOOKS}; i++)); do
    sleep 2
    now=$(samples)
    [ "$now" -gt "$before" ] || {{ echo "$now samples after $before"; exit 1; }}
    before=$now
done
for unit in {" ".join(unit for unit, _, _ in CALLS)}; do
    state=$(systemctl show -P SubState $unit),$(systemctl show -P ExecMainStatus $unit)
    [ "$state" = running,0 ] || [ "$state" = failed,6 ] || {{ journalctl -u $unit -o cat; exit 1; }}
done
cat /run/status
"""
ASLEEP_S = 20
SLEEP = f"""date +%s; sleep 4
echo +{ASLEEP_S} >/sys/class/rtc/rtc0/wakealarm
echo mem >/sys/power/state
sleep 6"""
BUSY = "for ((i = 0; i < 100; i++)); do (while :; do :; done) & done; wait"
PEER = "perf record -q -N -a -e cpu-clock -F 999 -k CLOCK_MONOTONIC -o /root/peer.data -- sleep 1000"

# User time in dash, and kernel time in dd.
LOADS = {"inside": "while :; do :; done", "reading": "exec dd if=/dev/zero of=/dev/null bs=64K"}


class Running:
    """The machines, each booted when it is first asked for."""

    def __init__(self):
        self.machines = {}
        self.stack = contextlib.ExitStack()

    def get(self, name):
        if name not in self.machines:
            folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="profd-limits.", dir="/var/tmp"))
            disk = Debian(name, folder)
            self.stack.callback(disk.close)
            disk.write(PIECE, "[Session default]\nFrequnecy=49\n")
            machine = Emulator(disk, SMALL_DISK)
            self.stack.callback(machine.kill)
            self.machines[name] = machine.boot()
        return self.machines[name]


running = Running()


def configure(machine, text):
    machine.write(PIECE, text)
    machine.do(f"systemctl restart {UNIT}")
    machine.wait(machine.samples, 60, "samples of the new configuration")


def start_loads(machine):
    for name, script in LOADS.items():
        machine.run(f"systemctl is-active -q {name} || systemd-run -q --unit={name} /bin/sh -c '{script}'")


def stop_loads(machine):
    for name in LOADS:
        machine.run(f"systemctl stop {name}")


def mount_small_disk(machine):
    """It holds the store from now on."""
    machine.do(f"systemctl stop {UNIT}; mount -t ext4 /dev/vdb /var/lib/profd && systemd-tmpfiles --create profd.conf")


def unmount_small_disk(machine):
    machine.run(f"systemctl stop {UNIT}; umount /var/lib/profd; rm -f {PIECE}; systemctl start {UNIT}")


def kept_snapshots(machine):
    return [(s["name"], s["pinned"]) for s in json.loads(machine.do("profctl snapshots --json=short"))]


def state_of(machine, session):
    """And how many samples it lost."""
    return next(((s["state"], s["lost"]) for s in machine.status()["sessions"] if s["name"] == session), None)


def start_of(machine, unit):
    """When systemd began to start it, in seconds."""
    return int(machine.do(f"systemctl show -P ExecMainStartTimestampMonotonic {unit}")) / 1e6


def script_of(machine, path, fields, *options):
    """Lines of perf script, without those that speak of missing symbols."""
    command = " ".join(["perf script", "-F", fields, "-i", path, *options])
    return machine.do(f"{command} 2>/tmp/complaints || cat /tmp/complaints").splitlines()


def times_of(machine, path):
    """Of all samples, in seconds."""
    return [float(line.strip().rstrip(":")) for line in script_of(machine, path, "time") if line.strip()]


def recorder_of(machine):
    """Its pid: beside the keeper there is nobody in the group."""
    return machine.do(f"grep -vx $(systemctl show -P MainPID {UNIT}) {GROUP}/cgroup.procs")


def events_of_memory(machine):
    return dict(line.split() for line in machine.do(f"cat {GROUP}/memory.events").splitlines())


def greatest_gap(machine, path):
    """Seconds, between neighbouring samples of one CPU."""
    times = {}
    for line in script_of(machine, path, "cpu,time"):
        found = re.search(r"\[(\d+)\]\s+([0-9.]+):", line)
        if found:
            times.setdefault(found.group(1), []).append(float(found.group(2)))
    check(len(times) == 2, f"samples of the CPUs {sorted(times)}")
    return max(b - a for each in times.values() for a, b in zip(sorted(each), sorted(each)[1:]))


def define(name, release):
    def a_mistake_in_the_configuration_at_boot_is_told_and_it_records():
        machine = running.get(name)
        machine.wait(lambda: machine.run(f"systemctl is-active {UNIT}").status == 0, 60, "profd to start")
        machine.wait(lambda: "config" in machine.reasons(), 60, "the mistake to be told")
        before = machine.wait(machine.samples, 60, "samples")
        machine.wait(lambda: machine.samples() > before, 60, "more samples")
        check("Frequnecy" in machine.journal(), machine.journal())
        machine.write(PIECE, "")
        machine.do("profctl reload")
        machine.wait(lambda: "config" not in machine.reasons(), 60, "the mistake to be forgotten")

    def it_records_kernel_and_user_samples_at_paranoid_3():
        machine = running.get(name)
        equal(machine.do("cat /proc/sys/kernel/perf_event_paranoid"), "3", "perf_event_paranoid")
        equal(machine.do("stat -f -c %T /sys/fs/cgroup"), "cgroup2fs", "the file system of control groups")
        start_loads(machine)
        path = machine.do("sleep 6; profctl snapshot -q --last 5s")
        lines = script_of(machine, path, "comm,ip,sym,dso")
        text = "\n".join(lines)
        check("[kernel.kallsyms]" in text, f"no kernel sample among {len(lines)} lines")
        check("/dash" in text, f"no user sample among {len(lines)} lines")
        report = machine.do(f"perf report --stdio -g none --sort comm,cgroup -i {path} 2>/dev/null")
        for load in LOADS:
            check(f"/system.slice/{load}.service" in report, f"the group of {load} has no name:\n{report[:2000]}")

    def modules_are_called_by_their_names_and_perf_names_their_functions():
        machine = running.get(name)
        # The modules come from the initramfs: no file of theirs has symbols, the kernel alone names them.
        equal(machine.run("find /lib/modules/$(uname -r) -name '*.ko*'").text.count(".ko"), 0, "files of modules")
        machine.do("for i in 1 2 3 4 5 6; do dd if=/dev/zero of=/var/tmp/written bs=64K count=400 conv=fsync 2>/dev/null; done")
        path = machine.do("rm /var/tmp/written; profctl snapshot -q --last 10s || [ $? -eq 8 ]")
        # perf that can read /proc/kcore calls everything [kernel.kallsyms]; beside a copy of kallsyms there is none.
        machine.do("mkdir -p /tmp/symbols && cp /proc/kallsyms /tmp/symbols/kallsyms")
        lines = script_of(machine, path, "ip,sym,dso", "--kallsyms=/tmp/symbols/kallsyms")
        shown = [line for line in lines if "([ext4])" in line]
        check(shown, f"no sample of ext4 among {len(lines)}: {[line for line in lines if 'ext4' in line][:5]}")
        wrong = [line for line in shown if "[unknown]" in line]
        equal(wrong[:3], [], f"samples of ext4 without a function, of {len(shown)}")
        print(f"# {release} {machine.do('perf --version')} names {len(shown)} samples of [ext4], as{shown[0]}")

    def a_session_of_a_control_group_records_that_alone():
        machine = running.get(name)
        start_loads(machine)
        machine.do("profctl start web -e cpu-clock --cgroup system.slice/inside.service --duration 3s")
        machine.wait(lambda: machine.run(f"ls {SESSIONS}/web/*.perf.data").status == 0, 60, "a finished segment")
        path = machine.do(f"ls {SESSIONS}/web/*.perf.data")
        comms = {line.strip() for line in script_of(machine, path, "comm") if line.strip()}
        equal(comms, {"sh"}, "what was recorded")
        report = machine.do(f"perf report --stdio -g none --sort cgroup -i {path} 2>/dev/null")
        check("/system.slice/inside.service" in report, report)
        check("reading.service" not in report, report)

    def a_disk_that_somebody_else_fills_is_told_and_costs_no_recorder():
        machine = running.get(name)
        start_loads(machine)
        mount_small_disk(machine)
        try:
            configure(machine, "[Profd]\nFlushIntervalSec=1s\n[Session default]\nFrequency=199\n")
            recorder = recorder_of(machine)
            machine.run("dd if=/dev/zero of=/var/lib/profd/filler bs=64K; sync")
            machine.wait(lambda: "diskFull" in machine.reasons(), 90, "the full disk to be told")
            before = machine.samples()
            machine.wait(lambda: machine.samples() > before, 60, "samples that are kept in memory")
            machine.do("rm /var/lib/profd/filler")
            machine.wait(lambda: "diskFull" not in machine.reasons(), 90, "the trouble to be over")
            equal(recorder_of(machine), recorder, "the recorder")
            equal(machine.show("NRestarts"), "0", "restarts of the service")
            segment = machine.do("profctl rotate default").split()[-1]
            machine.do(f"perf report --stdio -i {segment} >/tmp/report")
        finally:
            unmount_small_disk(machine)

    def a_frozen_file_system_costs_no_sample_whatever_is_asked_for_meanwhile():
        machine = running.get(name)
        start_loads(machine)
        mount_small_disk(machine)
        try:
            # A sweep each second, so that new samples are counted between two looks whatever a ring holds.
            configure(machine, "[Session default]\nEvent=cpu-clock\nFrequency=999\n"
                               "[Profd]\nKeepFree=0\nMaxUse=16M\nFlushIntervalSec=1s\n")
            machine.do("id -u reader || useradd --no-create-home -G profd-read reader")
            for snapshot in ("pinned", "removed"):
                machine.do(f"runuser -u reader -- profctl snapshot -q --last 5s --name {snapshot} || [ $? -eq 8 ]")
            before = json.loads(machine.do(FREEZE).splitlines()[-1])["sessions"][0]["samples"]
            machine.wait(lambda: kept_snapshots(machine) == [("pinned", True)], 60, "the snapshots to be pinned and removed")
            machine.wait(lambda: state_of(machine, "late") == ("active", 0), 60, "the session that was begun to record")
            machine.wait(lambda: machine.samples() > before, 60, "samples after the thaw")
            equal(state_of(machine, "default"), ("active", 0), "state and loss of the session that went on")
            path = machine.do("profctl rotate default").split()[-1]
            gap = greatest_gap(machine, path)
            print(f"# {release} frozen for at least {2 * LOOKS} s at 999 Hz: 0 of {machine.samples()} samples lost, "
                  f"at most {gap:.2f} s between two of a CPU")
            check(gap < LOOKS / 2, f"{gap} s without a sample")
        finally:
            machine.run("profctl stop late; for unit in pin remove begin; do systemctl stop $unit; done")
            unmount_small_disk(machine)

    def beside_a_hundred_busy_processes_it_records_before_perf_does():
        machine = running.get(name)
        stop_loads(machine)
        machine.do(f"systemctl stop {UNIT}; systemd-run -q --unit=busy /bin/bash -c '{BUSY}'")
        try:
            machine.do("while [ $(pgrep -c -P $(systemctl show -P MainPID busy)) != 100 ]; do sleep 0.2; done")
            machine.write(PIECE, "[Session default]\nEvent=cpu-clock\nFrequency=999\n")
            machine.do(f"systemctl start --no-block {UNIT}; systemd-run -q --unit=peer {PEER}")
            machine.wait(machine.samples, 120, "samples")
            machine.wait(lambda: machine.run("[ $(ps -o comm= --ppid $(systemctl show -P MainPID peer)) = sleep ]").status == 0,
                         120, "perf record to begin")
            machine.do("sleep 3")
            begins = {unit: start_of(machine, unit) for unit in (UNIT, "peer")}
            session = machine.status()["sessions"][0]
            path = machine.do("profctl rotate default").split()[-1]
        finally:
            machine.run("systemctl kill --kill-who=main -s INT peer; systemctl stop busy")
        machine.wait(lambda: machine.do("systemctl show -P ActiveState peer") in ("inactive", "failed"), 120, "perf record to end")
        equal(session["lost"], 0, "samples that were lost")
        ours, theirs = (times_of(machine, file)[0] - begins[unit] for unit, file in ((UNIT, path), ("peer", "/root/peer.data")))
        print(f"# {release} beside 100 busy processes the first sample came {ours * 1000:.0f} ms after systemd began to start "
              f"profd, that of perf record after {theirs * 1000:.0f} ms; 0 of {session['samples']} lost")
        check(ours < theirs, f"the first sample came after {ours} s, that of perf record after {theirs} s")
        machine.run("rm -f /root/peer.data")

    def with_little_memory_it_keeps_less_and_is_not_killed():
        machine = running.get(name)
        machine.do("systemd-run -q --unit=crowd /bin/bash -c "
                   f"'for ((i = 0; i < {PROCESSES}; i++)); do sleep 1000 & done; wait'")
        try:
            machine.do(f"systemctl set-property --runtime {UNIT} MemoryHigh=44M MemoryMax=48M")
            configure(machine, "[Profd]\nStorage=volatile\nFlushIntervalSec=1s\n"
                               "[Session default]\nFrequency=499\nCallGraph=dwarf:8192\nCompress=none\n")
            check("MemoryMax=" in machine.reasons().get("smallMemory", ""), f"degraded: {machine.reasons()}")
            limit = machine.status()["store"]["limitBytes"]
            check(limit < 16 * MIB, f"the store in memory may take {limit} bytes")
            machine.wait(lambda: machine.status()["store"]["usedBytes"] > limit / 2, 60, "a store that is full")
            machine.do("sleep 8")
            equal(events_of_memory(machine)["oom_kill"], "0", "processes that the kernel killed")
            status = machine.status()
            equal(status["restarts"], 0, "restarts of the recorder")
            equal(machine.show("NRestarts"), "0", "restarts of the service")
            machine.wait(lambda: machine.samples() > status["sessions"][0]["samples"], 60, "more samples")
            print(f"# {release} {machine.do(f'cat {GROUP}/memory.peak {GROUP}/memory.current | xargs')} bytes at most, now")
        finally:
            machine.run(f"systemctl stop crowd; systemctl revert {UNIT}; systemctl set-property --runtime {UNIT} "
                        "MemoryHigh=infinity MemoryMax=infinity")
            configure(machine, "")

    def a_recorder_that_the_kernel_kills_for_memory_comes_back_and_the_rings_are_kept():
        machine = running.get(name)
        start_loads(machine)
        # So that the rings hold a minute, which a slow machine needs to start a recorder a few times.
        configure(machine, "[Profd]\nFlushIntervalSec=1s\n"
                           "[Session default]\nFrequency=29\nCallGraph=unwind:4K\nBufferSize=8M\n")
        # Before it lies a restart of the service, which takes seconds here.
        begin = machine.do("sleep 1; date +%s; sleep 3").split()[0]
        keeper = machine.show("MainPID")
        try:
            machine.do(f"systemctl set-property --runtime {UNIT} MemoryMax=24M")
            machine.do(TAKE_MEMORY)
            machine.wait(lambda: int(events_of_memory(machine)["oom_kill"]) > 0, 60, "the kernel to kill")
            machine.do("sleep 4")
            kills = events_of_memory(machine)["oom_kill"]
            machine.do("rm /run/taken")
            machine.wait(lambda: machine.samples() is not None, 60, "the recorder to be back")
            equal(machine.show("MainPID"), keeper, "the keeper")
            equal(machine.show("NRestarts"), "0", "restarts of the service")
            check(machine.status()["restarts"] > 0, "no restart is told")
            check("smallMemory" in machine.reasons(), f"degraded: {machine.reasons()}")
            path = machine.do(f"sleep 3; profctl snapshot -q --since @{begin} 2>/dev/null || [ $? -eq 8 ]")
            gap = greatest_gap(machine, path)
            lost = machine.status()["sessions"][0]["lost"]
            print(f"# {release} killed {kills} times, {lost} samples lost, at most {gap:.2f} s between two of a CPU")
            check(lost <= LOST_MAX, f"{lost} samples lost")
            check(gap < 3, f"{gap} s without a sample: {machine.do(f'profctl info {path} | grep recorded')}")
        finally:
            machine.run(f"rm -f /run/taken; systemctl set-property --runtime {UNIT} MemoryMax=infinity")
            configure(machine, "")

    def the_time_in_which_the_machine_slept_is_told_as_not_recorded():
        machine = running.get(name)
        start_loads(machine)
        configure(machine, "")
        begin = machine.do(SLEEP).split()[0]
        for window in (f"--since=@{begin}", "--last=1h"):
            said = machine.run(f"profctl snapshot --json=short {window} 2>/dev/null")
            equal(said.status, 8, f"status of a snapshot of {window}")
            gaps = [gap for gap in json.loads(said.text)["coverage"]["gaps"] if gap["reason"] == "asleep"]
            check(len(gaps) == 1 and gaps[0]["untilUsec"] - gaps[0]["sinceUsec"] > ASLEEP_S / 2 * 10**6,
                  f"gaps of {window}: {said.text}")
        for command in ("status", "list --segments"):
            check("the machine slept" in machine.do(f"profctl {command}"), f"profctl {command} does not tell")

    def after_the_plug_was_pulled_segments_of_both_boots_are_there():
        machine = running.get(name)
        start_loads(machine)
        configure(machine, "[Profd]\nFlushIntervalSec=1s\n")
        before = machine.do("cat /proc/sys/kernel/random/boot_id")
        machine.do("sleep 4; profctl rotate -q default; sleep 4; sync")
        machine.kill()
        machine.boot()
        start_loads(machine)
        machine.wait(lambda: machine.samples(), 90, "samples of the second boot")
        now = machine.do("cat /proc/sys/kernel/random/boot_id")
        segments = machine.wait(lambda: recovered(machine), 60, "the segment to be recovered")
        equal({s["bootId"] for s in segments if s["samples"]}, {before, now}, "boots of the segments")
        last = [s for s in segments if s["bootId"] == before and s["completeness"] == "recovered"][-1]
        check("~" in last["name"], f"it is called {last['name']}")
        report = machine.do(f"perf report --stdio -g none -i {last['path']} 2>/dev/null")
        check("Samples" in report and "dash" in report, report[-2000:])
        done = machine.run("sleep 3; profctl snapshot --last 1h 2>/tmp/said")
        equal(done.status, 8, f"status of a snapshot beyond the boot ({machine.run('cat /tmp/said').text})")
        up = float(machine.do("cut -d' ' -f1 /proc/uptime"))
        times = times_of(machine, done.text.strip())
        check(times and max(times) < up, "samples of another boot")
        # So does a view, whose window begins before the clock of this boot did.
        done = machine.run("profctl report --json=short --last 1h 2>/dev/null")
        equal(done.status, 8, "status of a report beyond the boot")
        gaps = [gap for gap in json.loads(done.text)["gaps"] if gap.get("cpu") is None]
        check(gaps and gaps[0]["reason"] == "rebooted", f"the gaps are {gaps}")
        check(sum(gap["untilUsec"] - gap["sinceUsec"] for gap in gaps) > (3600 - up - 60) * 1e6, f"the gaps are {gaps}")
        # The first boot is looked back on by the time of day alone.
        since, until = (f"@{last[key] / 1e6:.6f}" for key in ("sinceUsec", "untilUsec"))
        done = machine.run(f"profctl snapshot --since={since} --until={until} 2>/tmp/said")
        check(done.status in (0, 8), f"a snapshot of the first boot ends with {done.status}: {machine.run('cat /tmp/said').text}")
        times, whole = times_of(machine, done.text.strip()), times_of(machine, last["path"])
        check(times, "the snapshot of the first boot is empty")
        check(min(whole) - 0.001 < min(times) and max(times) < max(whole) + 0.001,
              f"from {min(times)} to {max(times)}, of a segment from {min(whole)} to {max(whole)}")
        machine.power_off()

    for function in (a_mistake_in_the_configuration_at_boot_is_told_and_it_records,
                     it_records_kernel_and_user_samples_at_paranoid_3,
                     modules_are_called_by_their_names_and_perf_names_their_functions,
                     a_session_of_a_control_group_records_that_alone,
                     a_disk_that_somebody_else_fills_is_told_and_costs_no_recorder,
                     a_frozen_file_system_costs_no_sample_whatever_is_asked_for_meanwhile,
                     beside_a_hundred_busy_processes_it_records_before_perf_does,
                     with_little_memory_it_keeps_less_and_is_not_killed,
                     a_recorder_that_the_kernel_kills_for_memory_comes_back_and_the_rings_are_kept,
                     the_time_in_which_the_machine_slept_is_told_as_not_recorded,
                     after_the_plug_was_pulled_segments_of_both_boots_are_there):
        function.__name__ = f"on_{release}_{function.__name__}"
        test(function)


def recovered(machine):
    """All segments, when one that was open is finished."""
    said = machine.run("profctl list --segments --json=short default")
    segments = json.loads(said.text) if said.status == 0 else []
    return segments if any(s["completeness"] == "recovered" for s in segments) else None


for _name, _release in (("bookworm", "debian_12"), ("trixie", "debian_13")):
    define(_name, _release)


if __name__ == "__main__":
    try:
        main()
    finally:
        running.stack.close()
