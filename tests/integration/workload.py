# SPDX-License-Identifier: LGPL-2.1-or-later
"""The loads to record: the programs of tests/integration/load, a perf record beside, time."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check, skip  # noqa: E402

LONG = bool(os.environ.get("PROFD_TEST_LONG"))
CPUS = os.cpu_count()
READY_S = 30

# perf reads and copies to what is in a home folder; ours has nothing but that it shall not copy.
_home = tempfile.TemporaryDirectory(prefix="profd-home.")
os.environ["HOME"] = _home.name
with open(os.path.join(_home.name, ".perfconfig"), "w", encoding="utf-8") as _f:
    _f.write("[record]\n\tbuild-id = no-cache\n")


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def need_root():
    if os.geteuid() != 0:
        skip("needs root to record all CPUs")


def cpu_ns(pids):
    """Time on a CPU of all their threads, of those that ended too."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            # The clock that clock_getcpuclockid() names.
            total += time.clock_gettime_ns(~pid << 3 | 2)
    return total


def wait_until(condition, seconds, what):
    """The first true answer, or a failed test."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        check(time.monotonic() < end, f"waited {seconds} s in vain for {what}")
        time.sleep(0.02)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        os.chmod(folder, 0o755)
        yield folder


@contextlib.contextmanager
def small_disk(folder, size):
    """A store of so many bytes in memory."""
    store = os.path.join(folder, "store")
    os.mkdir(store)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", store], capture_output=True,
                          check=False)
    if done.returncode != 0:
        skip(f"no tmpfs can be mounted here ({done.stderr.decode().strip()})")
    try:
        yield store
    finally:
        subprocess.run(["umount", "-l", store], check=True)


def end(process, number=signal.SIGKILL):
    if process.poll() is None:
        process.send_signal(number)
    return process.wait(timeout=30)


def program(name):
    return build_path("tests", "integration", "load", name)


@contextlib.contextmanager
def load(name, *arguments, ready=True, prefix=(), **popen):
    """A load that runs until the block ends, begun when it says that it is ready."""
    process = subprocess.Popen([*prefix, program(name), *map(str, arguments)], stdout=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, text=True, **popen)
    try:
        if ready:
            check(process.stdout.readline() == "ready\n", f"the load {name} did not begin")
        yield process
    finally:
        end(process)
        process.stdout.close()


def run_load(name, *arguments, timeout=300):
    """A load that ends by itself; what it printed."""
    done = subprocess.run([program(name), *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, check=False)
    check(done.returncode == 0, f"the load {name} ended with {done.returncode}: {done.stderr}")
    return done.stdout


@contextlib.contextmanager
def spinning(*cpus, nice=19):
    """Every CPU busy, so that each tick is a sample. The load makes way for what works at the same time, such as perf
    and the checks of a test; a test that needs samples of the load itself beside other tests takes nice=0."""
    with load("spin", 0, *cpus, prefix=["nice", "-n", str(nice)]) as process:
        yield process


@contextlib.contextmanager
def in_namespaces():
    """Spinning processes that have a host name of their own: the inode of that namespace."""
    with load("spin", 0, prefix=["unshare", "--uts"]) as process:
        yield os.stat(f"/proc/{process.pid}/ns/uts").st_ino


class Perf:
    """perf record of all CPUs by the clock of profd, until stopped; of each event where there is no frequency."""

    def __init__(self, path, *options, frequency=999, event="cpu-clock"):
        self.path = path
        self.process = subprocess.Popen(
            ["perf", "record", "-q", "-N", "-B", "-a", "-k", "CLOCK_MONOTONIC", "-e", event,
             *(["-F", str(frequency)] if frequency else ["-c", "1"]), *options, "-o", path, "--", "sleep", "100000"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        try:
            wait_until(lambda: self.records() or self.process.poll() is not None, READY_S,
                       "perf record to begin")
            check(self.process.poll() is None, "perf record cannot record here")
        except BaseException:
            end(self.process)
            raise

    def records(self):
        """It starts what it was told to run once its events are on."""
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children",
                      encoding="ascii") as f:
                children = f.read().split()
            with open(f"/proc/{children[0]}/comm", encoding="ascii") as f:
                return f.read() == "sleep\n"
        except (IndexError, OSError):
            return False

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=60)[1]
        check(os.path.exists(self.path), f"perf record left nothing: {said}")
        return self.path


@contextlib.contextmanager
def perf_record(path, *options, **settings):
    perf = Perf(path, *options, **settings)
    try:
        yield perf
    finally:
        perf.stop()
