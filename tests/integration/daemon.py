# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd on a store of its own, driven as an administrator would: configuration, signals, log."""

import contextlib
import glob
import os
import re
import signal
import subprocess
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check  # noqa: E402

PROFD = build_path("daemon", "profd")
READY_S = 30
TOUCHES = "The main thread touches the disk"
# What no log may have: the words of the sanitizers, and those before a profd that waited for a disk ends itself.
FAULTS = re.compile(f"{TOUCHES}|ERROR: AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:")


def session(name="default", **keys):
    """A section of a configuration."""
    return f"[Session {name}]\n" + "".join(f"{key}={value}\n" for key, value in keys.items())


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def check_sound(log):
    """Every suite holds profd and the gateway to this, whatever else it looks at."""
    fault = FAULTS.search(log)
    check(not fault, fault and f"the log has a fault: {log[max(fault.start() - 200, 0):][:3000]}")


def is_sanitized(program=PROFD):
    """Whether it was built with AddressSanitizer, whose LeakSanitizer needs ptrace."""
    with open(program, "rb") as f:
        return b"__asan_init" in f.read()


def status_of(pid, key):
    """A line of /proc/PID/status, or None."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.startswith(key + ":"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return None


def with_lines(folder, name, lines):
    """A copy of /etc/NAME with these lines instead of those of the same names; its path."""
    path = os.path.join(folder, name)
    names = {line.split(":")[0] for line in lines}
    with open(f"/etc/{name}", encoding="utf-8") as f:
        kept = [line for line in f if line.split(":")[0] not in names]
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(kept + [line + "\n" for line in lines])
    return path


def with_groups(folder, groups, user=None):
    """The words that run a command where these groups exist, by name and number, and, if its number is given, a
    user profd; nobody else sees them."""
    binds = [("/etc/group", with_lines(folder, "group", [f"{name}:x:{number}:" for name, number in groups.items()]))]
    if user:
        binds.append(("/etc/passwd", with_lines(folder, "passwd", [f"profd:x:{user}:{user}::/:/bin/false"])))
    script = " && ".join(f'mount --bind "{path}" {target}' for target, path in binds)
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{script} && exec "$@"', "sh"]


def other_boot(folder):
    """The words before a command for which the host was booted again: clocks of two boots have nothing in common."""
    path = os.path.join(folder, "boot_id")
    with open(path, "w", encoding="ascii") as f:
        f.write(f"{uuid.uuid4()}\n")
    script = f'mount --bind {path} /proc/sys/kernel/random/boot_id && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]



class Daemon:
    """Waited for until it records. With `config`, a text, that is its configuration; with `groups`,
    names and numbers, there are these groups for it, and with `profd_user`, a number, a user profd; `prefix`:
    words before the command, which become it."""

    def __init__(self, folder, *arguments, config="", store=None, ready=True, groups=None, profd_user=None, prefix=(), **popen):
        self.folder = folder
        self.store = store or os.path.join(folder, "store")
        self.log_path = os.path.join(folder, "log")
        self.config_path = os.path.join(folder, "profd-test.conf")
        self.configure(config)
        with open(self.log_path, "ab") as log:
            self.log_begin = log.tell()
            self.begin_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            self.process = subprocess.Popen(
                [*prefix, *(with_groups(folder, groups, profd_user) if groups else []), PROFD, f"--store={self.store}",
                 f"--config={self.config_path}", *self.runtime(), *arguments],
                stderr=log, stdin=subprocess.DEVNULL, **popen)
        try:
            if ready:
                self.wait_for_log("Recording ")
            # A process that ended before this may have ended before its name could be read.
            self.ready_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        except BaseException:
            self.kill()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def runtime(self):
        """A runtime folder of its own, where profd knows of such."""
        said = subprocess.run([PROFD, "--help"], capture_output=True, text=True, check=True).stdout
        return [f"--runtime={self.folder}/run"] if "--runtime" in said else []

    def control(self):
        """The path of its socket."""
        return os.path.join(self.folder, "run", "io.profd.Control")

    def configure(self, config):
        with open(self.config_path, "w", encoding="utf-8") as f:
            f.write(config)

    def log(self, begin=None):
        with open(self.log_path, "rb") as f:
            f.seek(self.log_begin if begin is None else begin)
            return f.read().decode(errors="replace")

    def mark(self):
        """A place in the log, to look only behind it."""
        return os.path.getsize(self.log_path)

    def wait_for_log(self, words, begin=None, seconds=READY_S):
        end = time.monotonic() + seconds
        while not re.search(words, self.log(begin)):
            check(self.process.poll() is None,
                  f"profd ended with {self.process.returncode}: {self.log()[-2000:]}")
            check(time.monotonic() < end,
                  f"waited {seconds} s for '{words}' in the log: {self.log()[-2000:]}")
            time.sleep(0.02)

    def recorder(self):
        """The pid of the half without rights, or None while there is none."""
        for pid in children(self.process.pid):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            # A process that has ended has no command line, and the keeper's helpers have its own.
            if any(word.startswith(b"--recorder") for word in words):
                return pid
        return None

    def pids(self):
        return [self.process.pid, *children(self.process.pid)]

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(timeout=60)
        check_sound(self.log())
        return status

    def kill(self):
        """All of profd at once, as a machine that breaks down would. When the keeper dies, the recorder finishes its
        segment, so all stand still first; and by then their numbers may belong to somebody else."""
        with contextlib.ExitStack() as stack:
            fds = []
            for pid in self.pids() if self.process.poll() is None else []:
                with contextlib.suppress(ProcessLookupError):
                    fds.append(os.pidfd_open(pid))
                    stack.callback(os.close, fds[-1])
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for fd in fds:
                    with contextlib.suppress(ProcessLookupError):
                        signal.pidfd_send_signal(fd, number)
        self.process.wait(timeout=30)
        check_sound(self.log())

    def files(self, pattern, name="default"):
        return sorted(glob.glob(os.path.join(self.store, "sessions", name, pattern)))

    def segments(self, name="default"):
        """The finished segments, in their order."""
        return self.files("*.perf.data", name)

    def open_segments(self, name="default"):
        return self.files("*.open", name)

    def wait_for_segments(self, count, name="default", seconds=READY_S):
        end = time.monotonic() + seconds
        while len(self.segments(name)) < count:
            check(self.process.poll() is None, f"profd ended: {self.log()[-2000:]}")
            check(time.monotonic() < end, f"{len(self.segments(name))} segments of {name} after "
                                          f"{seconds} s, not {count}: {self.log()[-2000:]}")
            time.sleep(0.05)

    def private_bytes(self):
        """Memory that is only theirs, of both halves, but for the unwind tables: they grow with the programs
        that run, up to a limit of their own."""
        total = 0
        for pid in self.pids():
            is_table = False
            with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as f:
                for line in f:
                    if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                        is_table = "/memfd:profd-elf" in line
                    elif not is_table and line.startswith(("Private_Clean:", "Private_Dirty:")):
                        total += int(line.split()[1]) << 10
        return total

    def descriptors(self):
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.pids())


def look_anew(daemon):
    """Why sessions are degraded is looked at every ten seconds, and at a reload."""
    mark = daemon.mark()
    daemon.send(signal.SIGHUP)
    daemon.wait_for_log("Reloaded the configuration", mark)
