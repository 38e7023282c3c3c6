# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Debian that has booted under systemd-nspawn, and what is asked of the service in it."""

import contextlib
import json
import os
import re
import signal
import subprocess

from debian import check, debian  # which also finds the rooms of the next ones
from daemon import children
from tap import build_path
from workload import wait_until

BOOT_S = 120
UNIT = "profd.service"
STORE = "/var/lib/profd/sessions/default"
USERS = {"reader": "profd-read", "admin": "profd-admin", "stranger": ""}


def first_process(pid):
    """The pid, as we see it, of what is pid 1 in the machine that this process has started."""
    for child in children(pid):
        with contextlib.suppress(OSError):
            with open(f"/proc/{child}/status", encoding="utf-8", errors="replace") as f:
                status = dict(line.split(":", 1) for line in f)
            if status["NSpid"].split()[1:] == ["1"]:
                return child
        below = first_process(child)
        if below:
            return below
    return None


def control_groups():
    """Our own in each hierarchy, as folders; a name or controllers for each."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        mounts = [line.split() for line in f]
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        for _, kind, path in (line.rstrip("\n").split(":", 2) for line in f):
            for words in mounts:
                tail = words[words.index("-") + 1:]
                if tail[0] == "cgroup2" and not kind or tail[0] == "cgroup" and set(kind.split(",")) <= set(tail[2].split(",")):
                    yield words[4] + path


class OwnGroups:
    """A control group of its own in each hierarchy that allows it: two machines side by side would be
    told to end each other's services."""

    def __init__(self, name):
        self.folders = []
        for path in control_groups():
            with contextlib.suppress(OSError):
                folder = os.path.join(path, name)
                os.mkdir(folder)
                self.folders.append(folder)

    def command(self, *command):
        """What runs the command in them, where they can hold a process."""
        enter = 'for f; do [ "$f" != -- ] || break; echo $$ >"$f/cgroup.procs" || :; shift; done 2>/dev/null; shift; exec "$@"'
        return ["sh", "-c", enter, "sh", *self.folders, "--", *command]

    def close(self):
        for folder in self.folders:
            for path, _, _ in os.walk(folder, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)


class Machine:
    """A Debian that has booted, with profd installed in it."""

    def __init__(self, disk):
        self.disk = disk
        self.said = open(os.path.join(disk.folder, "console"), "wb")
        self.groups = OwnGroups(os.path.basename(disk.folder))
        self.process = subprocess.Popen(
            self.groups.command(
                "systemd-nspawn", "-q", "-D", disk.root, "-M", f"profd-{disk.name}", "--register=no", "--keep-unit",
                "--capability=all", "--system-call-filter=perf_event_open", "-b", "--console=pipe"),
            stdin=subprocess.DEVNULL, stdout=self.said, stderr=subprocess.STDOUT)
        self.first = wait_until(lambda: first_process(self.process.pid) or self.process.poll() is not None, BOOT_S,
                                "systemd to start")
        check(self.process.poll() is None, f"the machine ended: {self.console()}")
        wait_until(self.is_up, BOOT_S, "the machine to boot")

    def console(self):
        with open(self.said.name, encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def is_up(self):
        check(self.process.poll() is None, f"the machine ended: {self.console()}")
        return self.run("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")

    def run(self, *command):
        return subprocess.run(["nsenter", "-t", str(self.first), "-a", *command], capture_output=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, timeout=300, check=False)

    def do(self, *command):
        done = self.run(*command)
        check(done.returncode == 0, f"{' '.join(command)}: {done.returncode} {done.stdout}{done.stderr}\n{self.journal()}")
        return done.stdout.strip()

    def show(self, key):
        return self.show_of(UNIT, key)

    def show_of(self, unit, key):
        return self.do("systemctl", "show", "-P", key, unit)

    def journal(self):
        return self.run("journalctl", "-u", UNIT, "-o", "cat", "--no-pager", "-n", "40").stdout

    def entries(self):
        return [json.loads(line) for line in
                self.do("journalctl", "-u", UNIT, "-o", "json", "--no-pager").splitlines()]

    def as_user(self, user, *command):
        return self.run("runuser", "-u", user, "--", *command)

    def wait_for_journal(self, words, count=1):
        wait_until(lambda: sum(words in entry["MESSAGE"] for entry in self.entries()) >= count, 60,
                   f"'{words}' in the journal:\n{self.journal()}")

    def recorder(self):
        """Its pid within the machine."""
        said = self.run("pgrep", "-f", "--", "--recorder=").stdout.split()
        return said[0] if said else None

    def host_pid(self, unit):
        """The pid, as we see it, of the main process of a unit."""
        inside = self.show_of(unit, "MainPID")
        for child in children(self.first):
            with contextlib.suppress(OSError):
                with open(f"/proc/{child}/status", encoding="utf-8", errors="replace") as f:
                    if re.search(rf"^NSpid:.*\t{inside}$", f.read(), re.MULTILINE):
                        return child
        return check(False, f"{unit} has no main process: {self.journal()}")

    def files(self):
        return self.do("ls", STORE).split()

    def close(self):
        self.run("systemctl", "poweroff")
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.kill(self.first, signal.SIGKILL)
            self.process.wait(timeout=60)
        self.said.close()
        self.groups.close()


@contextlib.contextmanager
def machine_of(name):
    """One with profd as meson installs it, what a package would do after that, and a user of each kind."""
    with debian(name) as disk:
        subprocess.run(["meson", "install", "-C", build_path(), "--no-rebuild", "--destdir", disk.root], check=True,
                       stdout=subprocess.DEVNULL)
        disk.run("systemd-sysusers")
        disk.run("journalctl", "--update-catalog")
        for user, groups in USERS.items():
            disk.run("useradd", "--no-create-home", "--groups", groups, user)
        made = Machine(disk)
        try:
            yield made
        finally:
            made.close()
