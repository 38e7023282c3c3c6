# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Debian on its stock kernel in QEMU: booted by systemd from a disk that lasts from one boot to the
next, with profd installed and enabled in it. It is spoken to through a serial port."""

import base64
import collections
import json
import os
import shutil
import socket
import subprocess
import time

from debian import CACHE, check  # which also finds the rooms of the next two
from tap import build_path
from workload import wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
BOOT_S = 180
ANSWER_S = 150
DISK_BYTES = 2 << 30
MEMORY_MIB = 1024
UNIT = "profd.service"

# What nobody needs in there.
LEFT_OUT = ("boot", "usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man", "usr/share/perl5",
            "usr/share/zoneinfo", "usr/share/i18n", "usr/lib/x86_64-linux-gnu/gconv", "var/cache/apt",
            "var/lib/apt/lists", "var/lib/dpkg/info")
MASKED = ("serial-getty@ttyS0.service", "getty@tty1.service", "apt-daily.timer", "apt-daily-upgrade.timer",
          "dpkg-db-backup.timer", "systemd-journal-catalog-update.service", "systemd-hwdb-update.service",
          "ldconfig.service", "e2scrub_reap.service", "systemd-logind.service", "systemd-random-seed.service")
AGENT_UNIT = """[Unit]
Description=Answers the test
After=dbus.socket

[Service]
ExecStart=/usr/lib/profd-test/agent

[Install]
WantedBy=basic.target
"""

Said = collections.namedtuple("Said", "status text")


def make_start_image(name, folder):
    """What the kernel starts with: busybox, what the disk needs, and who loads it."""
    image = os.path.join(folder, "start")
    for place in ("bin", "dev", "proc", "root", "modules"):
        os.makedirs(os.path.join(image, place))
    shutil.copy(shutil.which("busybox"), os.path.join(image, "bin"))
    shutil.copy(os.path.join(HERE, "disk-init"), os.path.join(image, "init"))
    modules = os.path.join(CACHE, f"{name}.modules")
    for module in os.listdir(modules):
        shutil.copy(os.path.join(modules, module), os.path.join(image, "modules"))
    path = os.path.join(folder, "initrd")
    with open(path, "wb") as f:
        subprocess.run("find . | cpio --quiet -o -H newc", shell=True, cwd=image, stdout=f, check=True)
    return path


def install(disk):
    """profd as `meson install` leaves it, enabled, and the agent."""
    subprocess.run(["meson", "install", "-C", build_path(), "--no-rebuild", "--destdir", disk.root], check=True,
                   stdout=subprocess.DEVNULL)
    check(disk.run("systemd-sysusers").returncode == 0, "there are no users for profd")
    os.makedirs(disk.path("/usr/lib/profd-test"))
    shutil.copy(os.path.join(HERE, "agent"), disk.path("/usr/lib/profd-test"))
    disk.write("/etc/systemd/system/profd-test-agent.service", AGENT_UNIT)
    disk.write("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    enabled = disk.run("systemctl", "enable", UNIT, "profd-test-agent.service")
    check(enabled.returncode == 0, f"systemctl enable: {enabled.stderr}")


def make_disk(disk, folder):
    """All of the root folder in a file system of its own."""
    path = os.path.join(folder, "disk")
    for name in LEFT_OUT:
        shutil.rmtree(disk.path("/" + name), ignore_errors=True)
    with open(path, "wb") as f:
        f.truncate(DISK_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,nodiscard", "-d", disk.root, path], check=True)
    return path


def make_small_disk(folder, size):
    path = os.path.join(folder, "small")
    with open(path, "wb") as f:
        f.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", path], check=True)
    return path


class Emulator:
    """Of one Debian; it may boot more than once. Files are in a folder of its own."""

    def __init__(self, disk, small_disk_bytes):
        self.name = disk.name
        self.folder = os.path.join(disk.folder, "emulator")
        os.mkdir(self.folder)
        install(disk)
        self.disks = [make_disk(disk, self.folder), make_small_disk(self.folder, small_disk_bytes)]
        self.initrd = make_start_image(disk.name, self.folder)
        self.process = self.port = None
        self.heard = b""

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self):
        drives = [word for disk in self.disks for word in
                  ("-drive", f"file={disk},if=virtio,format=raw,cache=unsafe")]
        masked = " ".join(f"systemd.mask={unit}" for unit in MASKED)
        # Without hardware help, which has counters of its own here and there.
        return ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", str(MEMORY_MIB), "-nographic",
                "-no-reboot", "-nic", "none", "-monitor", "none", "-kernel", os.path.join(CACHE, f"{self.name}.vmlinuz"),
                "-initrd", self.initrd, "-append", f"console=ttyS0 quiet panic=-1 {masked}", *drives,
                "-serial", f"file:{self.path('console')}",
                "-serial", f"unix:{self.path('port')},server=on,wait=off"]

    def boot(self):
        with open(self.path("qemu"), "wb") as said:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=said,
                                            stderr=subprocess.STDOUT)
        wait_until(lambda: os.path.exists(self.path("port")) or self.process.poll() is not None, 30, "QEMU to start")
        self.heard = b""
        self.port = socket.socket(socket.AF_UNIX)
        self.port.connect(self.path("port"))
        check(self.line(BOOT_S) == "ready", f"the machine did not boot: {self.console()}")
        return self

    def console(self):
        texts = []
        for name in ("qemu", "console"):
            with open(self.path(name), encoding="utf-8", errors="replace") as f:
                texts.append(f.read()[-3000:])
        return "\n".join(texts)

    def line(self, seconds):
        """What comes through the port up to the next end of a line."""
        end = time.monotonic() + seconds
        while b"\n" not in self.heard:
            left = end - time.monotonic()
            check(left > 0, f"no answer within {seconds} s: {self.console()}")
            self.port.settimeout(left)
            try:
                more = self.port.recv(65536)
            except TimeoutError:
                continue
            check(more, f"the machine is gone: {self.console()}")
            self.heard += more
        line, self.heard = self.heard.split(b"\n", 1)
        return line.decode().strip()

    def run(self, script):
        """As root, in bash; its status and all that it said."""
        self.port.sendall(base64.b64encode(script.encode()) + b"\n")
        status, _, said = self.line(ANSWER_S).partition(" ")
        return Said(int(status), base64.b64decode(said).decode(errors="replace"))

    def do(self, script):
        done = self.run(script)
        check(done.status == 0, f"{script}: {done.status} {done.text}\n{self.journal()}")
        return done.text.strip()

    def write(self, path, text):
        encoded = base64.b64encode(text.encode()).decode()
        self.do(f"mkdir -p {os.path.dirname(path)} && echo {encoded} | base64 -d >{path}")

    def show(self, key):
        return self.do(f"systemctl show -P {key} {UNIT}")

    def journal(self):
        return self.run(f"journalctl -b -u {UNIT} -o cat --no-pager -n 60").text

    def status(self):
        """What profctl status tells; None while nobody answers."""
        said = self.run("profctl status --json=short 2>/dev/null")
        return json.loads(said.text) if said.status == 0 else None

    def reasons(self):
        status = self.status()
        return {reason["reason"]: reason["remedy"] for reason in status["degraded"]} if status else {}

    def samples(self):
        """How many the session `default` has so far; None while nobody answers."""
        status = self.status()
        return status["sessions"][0]["samples"] if status and status["sessions"] else None

    def wait(self, condition, seconds, what):
        try:
            return wait_until(condition, seconds, what)
        except Exception as error:
            raise type(error)(f"{error}\n{self.journal()}") from error

    def power_off(self):
        self.port.sendall(base64.b64encode(b"systemctl poweroff") + b"\n")
        try:
            self.process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.kill()

    def kill(self):
        """As when the plug is pulled."""
        if self.port:
            self.port.close()
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = self.port = None
        if os.path.exists(self.path("port")):
            os.unlink(self.path("port"))
