# SPDX-License-Identifier: LGPL-2.1-or-later
"""What tests/system/prepare has made: each test has a Debian of its own to write to, over the kept one."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile

SOURCE = os.environ["PROFD_SOURCE"]
CACHE = os.environ["PROFD_SYSTEM_CACHE"]
sys.path[:0] = [os.path.join(SOURCE, "tests", "integration"), os.path.join(SOURCE, "tests")]
from tap import check  # noqa: E402

# So that what was begun is ended, and what was mounted is taken away.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def kept(name):
    """Where the kept one lies; nothing may be written to it."""
    path = os.path.join(CACHE, name)
    check(os.path.isdir(path), f"there is no Debian {name}, see what was said when it was made")
    return path


def mounted(*arguments):
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


class Debian:
    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.root = os.path.join(folder, "root")
        self.mounts = []
        upper, work = os.path.join(folder, "upper"), os.path.join(folder, "work")
        for path in (self.root, upper, work):
            os.mkdir(path)
        if mounted("-t", "overlay", "overlay", "-o",
                   f"lowerdir={kept(name)},upperdir={upper},workdir={work}", self.root):
            self.mounts.append(self.root)
        else:
            subprocess.run(["cp", "-a", "--reflink=auto", kept(name) + "/.", self.root], check=True)

    def bind(self, place, inside=None):
        """A folder of the host, under the same name or another one."""
        where = self.path(inside or place)
        os.makedirs(where, exist_ok=True)
        subprocess.run(["mount", "--bind", place, where], check=True)
        self.mounts.append(where)

    def path(self, inside):
        return self.root + inside

    def write(self, inside, text):
        where = self.path(inside)
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "w", encoding="utf-8") as f:
            f.write(text)

    def run(self, *command, **options):
        """In a chroot, with what it says."""
        return subprocess.run(["chroot", self.root, *map(str, command)], capture_output=True, text=True,
                              errors="replace", timeout=300, check=False, **options)

    def close(self):
        for where in reversed(self.mounts):
            subprocess.run(["umount", "-l", where], check=False)
        subprocess.run(["rm", "-rf", "--one-file-system", self.folder], check=False)


@contextlib.contextmanager
def debian(name):
    made = Debian(name, tempfile.mkdtemp(prefix="profd-debian.", dir="/var/tmp"))
    try:
        yield made
    finally:
        made.close()
