#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Unwind tables of what really runs: they arrive in the recorder's cache, by the keeper and profd-elf."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import children, status_of  # noqa: E402
from workload import end, need_root, scratch, wait_until  # noqa: E402
from tap import build_path, check, equal, main, test  # noqa: E402

TOOL = build_path("tests", "integration", "table-tool")
HELPER = build_path("daemon", "profd-elf")
PATIENCE_S = 60


class Tables:
    """table-tool in a folder of its own."""

    def __init__(self, folder):
        self.folder, self.wanted = folder, []
        programs = os.path.join(folder, "bin")
        os.mkdir(programs)
        # As installed: the helper lies beside the program.
        for program in (TOOL, HELPER):
            shutil.copy(program, programs)
        with open(os.path.join(folder, "stderr"), "wb") as log:
            self.process = subprocess.Popen([os.path.join(programs, "table-tool"), folder], stderr=log,
                                            stdin=subprocess.DEVNULL)

    def read(self, name):
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(self.folder, name), encoding="utf-8") as f:
                return f.read()
        return ""

    def want(self, pid, path):
        """The number of the line that wants what a process executes of a file."""
        self.wanted.append(f"{pid} {executed(pid, path)}")
        with open(os.path.join(self.folder, "maps.new"), "w", encoding="utf-8") as f:
            f.write("".join(self.wanted))
        os.chmod(f.name, 0o644)
        os.rename(f.name, os.path.join(self.folder, "maps"))
        return len(self.wanted) - 1

    def state(self, number):
        """The last state that was noted, and its rows."""
        states = [line.split() for line in self.read("log").splitlines() if line.startswith(f"{number} ")]
        return (states[-1][1], int(states[-1][2])) if states else ("unknown", 0)

    def wait_for(self, number, state):
        def found():
            check(self.process.poll() is None, f"table-tool ended: {self.read('stderr')}")
            return self.state(number) if self.state(number)[0] == state else None
        try:
            return wait_until(found, PATIENCE_S, f"'{state}' of {self.wanted[number]}")[1]
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.read('log')}\n{self.read('stderr')}") from error

    def counts(self):
        """files, ready, refused, tables"""
        return [int(word) for word in
                [line for line in self.read("log").splitlines() if line.startswith("counts ")][-1].split()[1:]]

    def helper(self):
        """The pid of profd-elf, None if it does not run."""
        for pid in children(self.process.pid):
            with contextlib.suppress(OSError):
                if status_of(pid, "Name") == "profd-elf" and status_of(pid, "State")[0] != "Z":
                    return pid
        return None

    def waits_for_helper(self):
        """Whether the scanner does nothing but that: it waits in one call, and for nothing to do in another."""
        recorder = next(pid for pid in children(self.process.pid) if status_of(pid, "Name") == "table-tool")
        calls = set()
        for _ in range(10):
            calls.add(waits_in(recorder, "profd-scan"))
            time.sleep(0.05)
        return len(calls) == 1 and self.idle != calls

    def note_idle(self):
        """How the scanner waits for something to do."""
        recorder = next(pid for pid in children(self.process.pid) if status_of(pid, "Name") == "table-tool")
        time.sleep(0.5)
        self.idle = {waits_in(recorder, "profd-scan")}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        equal(self.process.wait(timeout=PATIENCE_S), 0, f"status ({self.read('stderr')})")


@contextlib.contextmanager
def tables():
    need_root()
    with scratch() as folder:
        os.chmod(folder, 0o777)
        kept = Tables(folder)
        try:
            yield kept
            kept.stop()
        finally:
            end(kept.process)


@contextlib.contextmanager
def running(*command):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: os.readlink(f"/proc/{process.pid}/exe") != os.readlink("/proc/self/exe")
                   or "python" in command[0], PATIENCE_S, f"{command} to begin")
        yield process.pid
    finally:
        end(process)


def executed(pid, path):
    """The line of the executable mapping whose file ends with the path, once it is there."""
    def found():
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            return next((line for line in f if "x" in line.split()[1] and path in line), None)
    return wait_until(found, PATIENCE_S, f"a mapping of {path} in {pid}")


def waits_in(pid, name):
    """The system call that the thread of that name waits in, with its arguments."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm", encoding="utf-8") as comm:
            if comm.read().strip() == name:
                with open(f"/proc/{pid}/task/{task}/syscall", encoding="ascii") as call:
                    return call.read()
    return None


def frames_of(path):
    """How many functions readelf finds in .eh_frame."""
    said = subprocess.run(["readelf", "--debug-dump=frames", path], capture_output=True, text=True,
                          errors="replace", check=False).stdout
    return said.count(" FDE ")


@test
def tables_of_running_programs_arrive():
    with tables() as kept, running("sleep", "1000") as sleep, running("/usr/bin/python3", "-c",
                                                                      "import time; time.sleep(1000)") as python:
        numbers = {path: kept.want(pid, path) for pid, path in
                   ((sleep, "libc.so.6"), (sleep, "ld-linux"), (sleep, "/sleep"), (python, "/python3"), (sleep, "[vdso]"))}
        again = kept.want(python, "libc.so.6")
        rows = {path: kept.wait_for(number, "ready") for path, number in numbers.items()}
        equal(kept.wait_for(again, "ready"), rows["libc.so.6"], "rows of the same file")
        equal(kept.counts(), [5, 5, 0, 5], "files, ready, refused, tables")
        libc = kept.wanted[numbers["libc.so.6"]].split()[-1]
        check(rows["libc.so.6"] > frames_of(libc), f"{rows} rows for {frames_of(libc)} functions of {libc}")


@test
def copies_of_a_file_share_its_table():
    with tables() as kept, contextlib.ExitStack() as stack:
        numbers = []
        for name in ("one", "two", "three"):
            path = os.path.join(kept.folder, name)
            shutil.copy("/bin/sleep", path)
            pid = stack.enter_context(running(path, "1000"))
            numbers.append(kept.want(pid, path))
        rows = {kept.wait_for(number, "ready") for number in numbers}
        equal(len(rows), 1, f"kinds of tables {rows}")
        wait_until(lambda: kept.counts() == [3, 3, 0, 1], PATIENCE_S, "three files with one table")


@test
def deleted_programs_and_those_of_other_mount_namespaces_have_tables():
    with tables() as kept:
        path = os.path.join(kept.folder, "deleted")
        shutil.copy("/bin/sleep", path)
        hidden = os.path.join(kept.folder, "hidden")
        os.mkdir(hidden)
        inside = f"mount -t tmpfs none {hidden} && cp /bin/sleep {hidden}/inside && exec {hidden}/inside 1000"
        with running(path, "1000") as deleted, running("unshare", "--mount", "sh", "-c", inside) as other:
            os.unlink(path)
            kept.wait_for(kept.want(deleted, "/deleted"), "ready")
            kept.wait_for(kept.want(other, "/inside"), "ready")
            check(not os.path.exists(os.path.join(hidden, "inside")), "it is not hidden")


@test
def a_helper_that_is_killed_is_started_again_and_no_file_is_refused():
    with tables() as kept, running("sleep", "1000") as sleep:
        kept.wait_for(kept.want(sleep, "/sleep"), "ready")
        first = wait_until(kept.helper, PATIENCE_S, "profd-elf")
        os.kill(first, signal.SIGKILL)
        kept.wait_for(kept.want(sleep, "libc.so.6"), "ready")
        check(kept.helper() != first, "the one that was killed answers")
        equal(kept.counts()[2], 0, "refused")


@test
def a_file_is_read_again_after_the_helper_was_killed_over_it():
    with tables() as kept, running("sleep", "1000") as sleep:
        kept.wait_for(kept.want(sleep, "/sleep"), "ready")
        stopped = wait_until(kept.helper, PATIENCE_S, "profd-elf")
        os.kill(stopped, signal.SIGSTOP)
        number = kept.want(sleep, "libc.so.6")
        wait_until(lambda: kept.state(number)[0] == "pending", PATIENCE_S, "libc to be wanted")
        time.sleep(0.1)
        equal(kept.state(number)[0], "pending", "the state while nobody reads")
        os.kill(stopped, signal.SIGKILL)
        kept.wait_for(number, "ready")


def dies_over_libc(number_of_signal):
    """The helper ends by that signal while it has libc; what comes after it is read by the next one."""
    with tables() as kept, running("sleep", "1000") as sleep:
        kept.wait_for(kept.want(sleep, "/sleep"), "ready")
        kept.note_idle()
        stopped = wait_until(kept.helper, PATIENCE_S, "profd-elf")
        os.kill(stopped, signal.SIGSTOP)
        number = kept.want(sleep, "libc.so.6")
        wait_until(lambda: kept.state(number)[0] == "pending" and kept.waits_for_helper(), PATIENCE_S,
                   "the scanner to wait for profd-elf")
        os.kill(stopped, number_of_signal)
        os.kill(stopped, signal.SIGCONT)
        kept.wait_for(number, "refused")
        kept.wait_for(kept.want(sleep, "ld-linux"), "ready")
        equal(kept.counts()[1:3], [2, 1], "ready, refused")


@test
def a_file_that_crashes_the_helper_is_the_only_one_refused():
    dies_over_libc(signal.SIGSEGV)


@test
def a_file_that_takes_more_than_its_cpu_time_is_the_only_one_refused():
    """The timer of the limit ends the helper by this signal; here it comes from outside."""
    dies_over_libc(signal.SIGPROF)


if __name__ == "__main__":
    main()
