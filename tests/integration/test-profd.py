#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The real daemon with real events, and the real perf as judge of what it leaves."""

import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from background import background  # noqa: E402
from daemon import PROFD, Daemon, children  # noqa: E402
from workload import need_root, scratch, wait_until  # noqa: E402
from varlink import Varlink  # noqa: E402
from tap import check, equal, main, test  # noqa: E402


def work(seconds):
    """Something to sample: this process, and short-lived ones that are gone when one looks."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        subprocess.run(["sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done"], check=True)


def perf_script(path):
    """Lines of perf script, and what perf complained of."""
    run = subprocess.run(["perf", "script", "-F", "comm,pid,tid,cpu,time,event,ip,dso", "-G", "-i", path],
                         capture_output=True, text=True, errors="replace", check=False)
    equal(run.returncode, 0, f"status of perf script ({run.stderr[-300:]})")
    # Where processes live in namespaces that perf cannot come back from, as in a chroot, it says so.
    complaints = [line for line in run.stderr.splitlines()
                  if line.strip() and "util/namespaces.c" not in line]
    return [line for line in run.stdout.splitlines() if line.strip()], "\n".join(complaints)


@test
def perf_opens_a_recording_without_a_warning():
    need_root()
    with scratch() as folder:
        daemon = Daemon(folder)
        work(3)
        equal(daemon.stop(), 0, "status")
        equal(len(daemon.files("*.open")), 0, "what is left open")
        segment, = daemon.files("*.perf.data")
        lines, complaints = perf_script(segment)
        equal(complaints, "", "complaints")
        check(len(lines) > 100, f"only {len(lines)} samples in 3 s of work")
        ours = [line for line in lines if line.split()[0] == "sh"]
        check(len(ours) > 10, f"only {len(ours)} samples of the short-lived shells")
        unknown = [line for line in ours if "[unknown]" in line or ":-1" in line]
        equal(unknown, [], "samples of short-lived processes without a name")


@test
def every_process_that_ran_before_has_its_name():
    need_root()
    with scratch() as folder:
        with background(["sh", "-c", "while :; do :; done"]) as before:
            try:
                daemon = Daemon(folder)
                time.sleep(2)
                daemon.stop()
            finally:
                before.kill()
        lines, _ = perf_script(daemon.files("*.perf.data")[0])
        mine = [line for line in lines if f" {before.pid}" in line]
        check(len(mine) > 10, f"only {len(mine)} samples of a busy process in 2 s")
        check(all(line.split()[0] == "sh" for line in mine), f"a wrong name: {mine[0]}")
        unknown = [line for line in mine if "[unknown]" in line]
        equal(unknown, [], "samples that resolve nowhere")


@test
def the_header_describes_the_host_and_the_command():
    need_root()
    with scratch() as folder:
        daemon = Daemon(folder)
        work(1)
        daemon.stop()
        segment, = daemon.files("*.perf.data")
        run = subprocess.run(["perf", "report", "--header-only", "-I", "-i", segment],
                             capture_output=True, text=True, errors="replace", check=True)
        for words in (f"# hostname : {os.uname().nodename}", f"# os release : {os.uname().release}",
                      "# nrcpus online :", "# cmdline :", "# event : name =", "# time of first sample :",
                      "# clockid frequency:", "# reference time:"):
            check(words in run.stdout, f"'{words}' is not in the header:\n{run.stdout}")
        equal(run.stderr.strip(), "", "complaints")


@test
def a_killed_daemon_leaves_a_segment_that_the_next_one_finishes():
    need_root()
    with scratch() as folder:
        daemon = Daemon(folder)
        work(6.5)
        daemon.kill()
        equal(len(daemon.files("*.open")), 1, "what was left open")
        again = Daemon(folder)
        again.stop()
        check("Recovered segment" in again.log(), f"the log does not tell: {again.log()}")
        recovered, = again.files("*~.perf.data")
        lines, complaints = perf_script(recovered)
        equal(complaints, "", "complaints")
        check(len(lines) > 100, f"only {len(lines)} samples were recovered of 6.5 s")
        equal(len(again.files("0*.perf.data")), 2, "segments")


@test
def a_running_perf_record_is_not_disturbed():
    """A kernel takes flags of one event's MMAP2 to the next event's: profd must not set any."""
    need_root()
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        perf = subprocess.Popen(["perf", "record", "-q", "-N", "-a", "-e", "cpu-clock", "-o", path, "sleep", "3"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        time.sleep(0.7)
        daemon = Daemon(folder)
        for _ in range(10):
            subprocess.run(["ls"], stdout=subprocess.DEVNULL, check=True)
        words = perf.communicate(timeout=30)[1]
        equal(daemon.stop(), 0, "status of profd")
        equal(perf.returncode, 0, f"status of perf record ({words[-300:]})")
        check("build-id" not in words, f"perf record says '{words[-300:]}'")


@test
def two_daemons_do_not_share_a_store():
    need_root()
    with scratch() as folder:
        daemon = Daemon(folder)
        second = subprocess.run([PROFD, f"--store={daemon.store}", f"--runtime={folder}/other"],
                                capture_output=True, text=True, timeout=30, check=False)
        equal(second.returncode, 1, "status of the second")
        check("another profd" in second.stderr, f"it says '{second.stderr}'")
        equal(daemon.stop(), 0, "status of the first")


@test
def a_store_that_a_dying_profd_still_locks_is_waited_for():
    need_root()
    with scratch() as folder:
        store = os.path.join(folder, "store")
        os.mkdir(store, 0o750)
        with open(os.path.join(store, ".lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            daemon = Daemon(folder, ready=False)
            daemon.wait_for_log("Another profd holds the lock")
        with daemon:
            daemon.wait_for_log("Recording ")
            equal(daemon.stop(), 0, "status")


@test
def recordings_are_uncompressed_and_without_stacks_if_configured():
    need_root()
    with scratch() as folder:
        config = os.path.join(folder, "profd.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write("[Session default]\nCompress=none\nCallGraph=none\nFrequency=499\n")
        daemon = Daemon(folder, f"--config={config}")
        work(1)
        daemon.stop()
        segment, = daemon.files("*.perf.data")
        header = subprocess.run(["perf", "report", "--header-only", "-I", "-i", segment],
                                capture_output=True, text=True, errors="replace", check=True).stdout
        check("compressed :" not in header, "it is compressed")
        check("CALLCHAIN" not in header, "it has call chains")
        check(re.search(r"sample_freq } = 499\b", header), f"not 499 Hz:\n{header}")


@test
def a_bad_configuration_is_reported_by_line_and_does_not_stop_recording():
    need_root()
    with scratch() as folder:
        config = os.path.join(folder, "profd.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write("[Session default]\nFrequency=often\n")
        checked = subprocess.run([PROFD, "--check-config", f"--config={config}"], capture_output=True,
                                 text=True, check=False)
        equal(checked.returncode, 1, "status of --check-config")
        check(f"{config}:2: Frequency=" in checked.stderr, f"it says '{checked.stderr}'")
        daemon = Daemon(folder, f"--config={config}")
        equal(daemon.stop(), 0, "status")
        check("Frequency=" in daemon.log() and " at 99 Hz" in daemon.log(), daemon.log())


@test
def an_option_that_is_not_there_leads_to_one_that_is():
    for words, says in ((["--check-confg"], "no option '--check-confg'. Did you mean '--check-config'?"),
                        (["--store"], "--store takes DIR, which is missing"),
                        (["--check-config=3"], "--check-config takes no value"),
                        (["--nosuch"], "no option '--nosuch'.\n")):
        done = subprocess.run([PROFD, *words], capture_output=True, text=True, check=False)
        equal(done.returncode, 2, f"status of {words}")
        check(says in done.stderr, f"{words}: it says '{done.stderr}'")


@test
def sampling_begins_before_anything_slow():
    need_root()
    with scratch() as folder:
        store, calls = os.path.join(folder, "store"), os.path.join(folder, "calls")
        with background(["strace", "-f", "-qq", "-e", "trace=ioctl,openat", "-o", calls, PROFD, f"--store={store}",
                         "--config=/dev/null", f"--runtime={folder}/run"], stderr=subprocess.PIPE, text=True) as traced:
            while "Recording " not in (line := traced.stderr.readline()):
                check(line, "profd ended")
            keeper, = children(traced.pid)
            os.kill(keeper, signal.SIGTERM)
            traced.stderr.read()
            equal(traced.wait(timeout=60), 0, "status")
        with open(calls, encoding="utf-8", errors="replace") as f:
            said = f.read()
        # The recorder's, which comes with its configuration.
        begun = said.index("PERF_EVENT_IOC_ENABLE")
        for what in ('"/proc/cpuinfo"', '"/proc/meminfo"', '"sessions"', '"snapshots"'):
            check(what in said[begun:] and what not in said[:begun], f"{what} is opened before the events begin")


def heard(notified):
    """The messages that the socket of a service manager has got since."""
    said = []
    while True:
        try:
            said += notified.recv(4096, socket.MSG_DONTWAIT).decode().splitlines()
        except BlockingIOError:
            return said


@test
def a_service_manager_is_notified_of_start_and_end_but_not_of_a_replaced_recorder():
    need_root()
    with scratch() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(os.path.join(folder, "notify"))
        os.chmod(os.path.join(folder, "notify"), 0o666)
        with Daemon(folder, env={**os.environ, "NOTIFY_SOCKET": notified.getsockname()}) as daemon:
            mark, old, said = daemon.mark(), daemon.recorder(), []
            daemon.send(signal.SIGUSR1)
            daemon.wait_for_log("Recording ", mark)
            wait_until(lambda: not os.path.exists(f"/proc/{old}"), 20, "the old recorder to end")
            wait_until(lambda: said.extend(heard(notified)) or said.count("READY=1") == 2, 20, "both to be ready")
            check("STOPPING=1" not in said, f"an upgrade looks like an end: {said}")
            check(any(re.match(r"STATUS=default: .* samples, \d+/s, (none|\d+) lost", line) for line in said), f"status: {said}")
            with Varlink(daemon.control()) as v:
                v.one("Pause", session="default")
                v.one("Ping")
                last = [line for line in heard(notified) if line.startswith("STATUS=")][-1]
                check(re.fullmatch(r"STATUS=default: records nothing, degraded: (\w+, )*paused", last), f"once it is paused: {last}")
                v.one("Resume", session="default")
            daemon.send(signal.SIGHUP)
            wait_until(lambda: said.extend(heard(notified)) or said.count("READY=1") == 3, 20, "the reload to end")
            check("RELOADING=1" in said and any(line.startswith("MONOTONIC_USEC=") for line in said), f"{said}")
            equal(daemon.stop(), 0, "status")
            check("STOPPING=1" in heard(notified), "the end was not told")


def code_mappings(pid):
    """Of each file, the flags of the mapping with its code."""
    name, flags = "", {}
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as f:
        for line in f:
            if mapping := re.match(r"[0-9a-f]+-[0-9a-f]+ (....) (?:\S+ ){3} *(.*)", line):
                name = mapping[2] if mapping[1] == "r-xp" and mapping[2].startswith("/") else ""
            elif name and line.startswith("VmFlags:"):
                flags[name] = line.split()[1:]
    return flags


@test
def a_host_that_lacks_memory_cannot_take_the_code_of_the_recorder():
    need_root()
    with scratch() as folder, Daemon(folder) as daemon:
        code = code_mappings(daemon.recorder())
        check(PROFD in code and any("/libc" in name for name in code), f"code of {sorted(code)}")
        equal([name for name, flags in code.items() if "lo" not in flags], [], "files whose code is not locked")


@test
def a_service_manager_that_does_not_read_holds_up_nothing():
    need_root()
    with scratch() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(os.path.join(folder, "notify"))
        os.chmod(os.path.join(folder, "notify"), 0o666)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stuffing:
            stuffing.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    stuffing.sendto(b"STATUS=full", deaf.getsockname())
        env = {**os.environ, "NOTIFY_SOCKET": deaf.getsockname(), "WATCHDOG_USEC": "20000"}
        with Daemon(folder, env=env) as daemon, Varlink(daemon.control()) as v:
            for _ in range(400):
                v.one("GetStatus")
            equal(daemon.stop(), 0, "status")


@test
def a_link_in_place_of_a_folder_of_profd_is_named():
    for name in ("sessions", "snapshots", ".lock"):
        with scratch() as folder:
            os.mkdir(os.path.join(folder, "store"))
            os.symlink(folder, os.path.join(folder, "store", name))
            run = subprocess.run([PROFD, f"--store={folder}/store", f"--runtime={folder}/run"], capture_output=True,
                                 text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
            equal(run.returncode, 1, f"status where {name} is a link")
            check(f"'{name}' in store '{folder}/store' is a symbolic link" in run.stderr, f"{name}: {run.stderr}")


@test
def wrong_usage_ends_with_2_and_a_sentence():
    for arguments in (["--nonsense"], ["--store="], ["--log-level=loud"], ["argument"]):
        run = subprocess.run([PROFD, *arguments], capture_output=True, text=True, check=False)
        equal(run.returncode, 2, f"status of {arguments}")
        check(run.stderr.startswith("profd: ") or "profd:" in run.stderr, f"it says '{run.stderr}'")


if __name__ == "__main__":
    main()
