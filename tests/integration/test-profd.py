#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The real daemon with real events, and the real perf as judge of what it leaves."""

import contextlib
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check, equal, main, skip, test  # noqa: E402

PROFD = build_path("daemon", "profd")
READY_S = 10


def need_root():
    if os.geteuid() != 0:
        skip("needs root to record all CPUs")


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        yield folder


class Daemon:
    """profd on a store of its own, waited for until it records."""

    def __init__(self, folder, *arguments):
        self.store = os.path.join(folder, "store")
        self.log_path = os.path.join(folder, "log")
        config = os.path.join(folder, "empty.conf")
        with open(config, "a", encoding="utf-8"):
            pass
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [PROFD, f"--store={self.store}", f"--config={config}", *arguments],
                stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + READY_S
        while "Recording " not in self.log():
            check(self.process.poll() is None and time.monotonic() < end,
                  f"profd did not begin to record: {self.log()}")
            time.sleep(0.02)

    def log(self):
        with open(self.log_path, encoding="utf-8") as f:
            return f.read()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(timeout=30)

    def files(self, pattern):
        return sorted(glob.glob(os.path.join(self.store, "sessions/default", pattern)))


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
def a_recording_opens_in_perf_without_a_complaint():
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
        with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as before:
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
def header_says_where_and_how_it_was_recorded():
    need_root()
    with scratch() as folder:
        daemon = Daemon(folder)
        work(1)
        daemon.stop()
        segment, = daemon.files("*.perf.data")
        run = subprocess.run(["perf", "report", "--header-only", "-I", "-i", segment],
                             capture_output=True, text=True, check=True)
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
        daemon.stop(signal.SIGKILL)
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
def a_perf_record_that_runs_already_is_not_harmed():
    """A kernel takes flags of one event's MMAP2 to the next event's: profd must not set any."""
    need_root()
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        perf = subprocess.Popen(["perf", "record", "-q", "-N", "-a", "-e", "cpu-clock", "-o", path, "sleep", "3"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
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
        second = subprocess.run([PROFD, f"--store={daemon.store}"], capture_output=True, text=True,
                                timeout=30, check=False)
        equal(second.returncode, 1, "status of the second")
        check("another profd" in second.stderr, f"it says '{second.stderr}'")
        equal(daemon.stop(), 0, "status of the first")


@test
def uncompressed_and_without_stacks_if_configured():
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
                                capture_output=True, text=True, check=True).stdout
        check("compressed :" not in header, "it is compressed")
        check("CALLCHAIN" not in header, "it has call chains")
        check(re.search(r"sample_freq } = 499\b", header), f"not 499 Hz:\n{header}")


@test
def a_bad_configuration_is_told_by_line_and_recorded_through():
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
def wrong_usage_ends_with_2_and_a_sentence():
    for arguments in (["--nonsense"], ["--store="], ["--log-level=loud"], ["argument"]):
        run = subprocess.run([PROFD, *arguments], capture_output=True, text=True, check=False)
        equal(run.returncode, 2, f"status of {arguments}")
        check(run.stderr.startswith("profd: ") or "profd:" in run.stderr, f"it says '{run.stderr}'")


@test
def without_rights_it_says_which_are_missing():
    need_root()
    with scratch() as folder:
        os.chmod(folder, 0o777)
        run = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
                              PROFD, f"--store={folder}/store", "--config=/dev/null"],
                             capture_output=True, text=True, timeout=30, check=False)
        equal(run.returncode, 1, "status")
        check("CAP_PERFMON" in run.stderr or "Permission denied" in run.stderr, f"it says '{run.stderr}'")


if __name__ == "__main__":
    main()
