#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Control groups of version 1, of version 2, of both and of none, on a stock kernel in QEMU, where to
mount one takes the controller away from nobody else: sessions and samples follow the tree that the
kernel's perf events follow, and profd and doctor say which one that is."""

import os
import re
import shutil
import subprocess
import tempfile

from debian import CACHE, SOURCE, check  # which also finds the rooms of the next
from tap import build_path, equal, main, test

KERNEL = "bookworm"
LIMIT_S = 500
FOLDERS = ("bin", "dev", "etc/profd", "proc", "sys", "tmp", "var/lib", "run")

_said = {}


def add_program(image, path):
    """With the libraries that it is linked with."""
    shutil.copy(path, f"{image}/bin")
    linked = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"/\S+", linked):
        os.makedirs(image + os.path.dirname(library), exist_ok=True)
        shutil.copy(library, image + library)


def make_image(folder):
    image = f"{folder}/image"
    for name in FOLDERS:
        os.makedirs(f"{image}/{name}")
    shutil.copy(shutil.which("busybox"), f"{image}/bin")
    add_program(image, build_path("daemon", "profd"))
    add_program(image, build_path("client", "profctl"))
    for name, text in (("passwd", "root:x:0:0::/:/bin/sh\nprofd:x:900:900::/:/bin/false\n"),
                       ("group", "root:x:0:\nprofd:x:900:\nprofd-read:x:901:\nprofd-admin:x:902:\n")):
        with open(f"{image}/etc/{name}", "w", encoding="ascii") as f:
            f.write(text)
    shutil.copy(os.path.join(SOURCE, "tests", "system", "cgroup-init"), f"{image}/init")
    with open(f"{folder}/initrd", "wb") as f:
        subprocess.run("find . | cpio --quiet -o -H newc | gzip -1", shell=True, cwd=image, stdout=f, check=True)


def said(way):
    """What the machine said of a way to mount them: lines by key. It boots once."""
    if not _said:
        with tempfile.TemporaryDirectory(prefix="profd-cgroup.", dir="/var/tmp") as folder:
            make_image(folder)
            subprocess.run(["timeout", str(LIMIT_S), "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "2",
                            "-m", "1024", "-nographic", "-no-reboot", "-nic", "none", "-monitor", "none",
                            "-kernel", f"{CACHE}/{KERNEL}.vmlinuz", "-initrd", f"{folder}/initrd",
                            "-append", "console=ttyS0 quiet panic=-1 rdinit=/init",
                            "-serial", f"file:{folder}/console"],
                           stdin=subprocess.DEVNULL, capture_output=True, check=False)
            with open(f"{folder}/console", encoding="utf-8", errors="replace") as f:
                console = f.read()
        check("@ end" in console, f"the machine did not come to its end:\n{console[-3000:]}")
        for line in re.findall(r"^@ (.*?)\r?$", console, re.M):
            name, key, text = (line.split(" ", 2) + ["", ""])[:3]
            _said.setdefault(name, {}).setdefault(key, []).append(text)
    return _said[way]


def follows(way, root, words):
    of = said(way)
    check(words in " ".join(of["doctor"]) and root in " ".join(of["doctor"]), f"doctor: {of['doctor']}")
    check("'web' records cpu-clock" in of["start"][0], f"start: {of['start']}")
    check("control group 'no/such.slice' does not exist" in of["missing"][0], f"a group that is not there: {of['missing']}")
    equal(of["web"], ["/web.slice"], "groups of the session for one")
    equal(sorted(of["default"]), ["/", "/web.slice"], "groups of the session for all")


@test
def without_a_tree_for_perf_events_no_control_group_is_used():
    of = said("none")
    check("no control groups are mounted that perf events follow" in of["doctor"][0], f"doctor: {of['doctor']}")
    check("mount cgroup2" in of["start"][0], f"start: {of['start']}")
    check("web" not in of, f"a session recorded: {of}")


@test
def version_2_is_used_beside_controllers_of_version_1():
    follows("mixed", "/sys/fs/cgroup/unified", "control groups are mixed")


@test
def version_1_is_used_if_it_has_perf_event():
    follows("hybrid", "/sys/fs/cgroup/perf_event", "control groups are of version 1")


@test
def version_1_alone_is_used_too():
    follows("old", "/sys/fs/cgroup/perf_event", "control groups are of version 1")


if __name__ == "__main__":
    main()
