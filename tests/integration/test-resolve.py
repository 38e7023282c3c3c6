#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A storm of forks, execs and threads under the real perf: each sample gets the comm and dso that
perf script prints for it, in the same order of time.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check, main, skip, test  # noqa: E402

PROFCTL = build_path("client", "profctl")
RESOLVE = build_path("tests", "integration", "resolve")
FOLDER = tempfile.TemporaryDirectory(prefix="profd-resolve.")
PLAIN = threading.Lock()
ROW = re.compile(r"\s*(.{1,16}?)\s+(-?\d+)\s+(\d+)\.(\d{9}):\s+([0-9a-f]+) \((.*)\)\s*$")

STORM = """
import os, subprocess, threading, time
end = time.monotonic() + 3
def spin(name):
    open(f"/proc/self/task/{threading.get_native_id()}/comm", "w").write(name)
    while time.monotonic() < end:
        sum(range(2000))
for i in range(3):
    threading.Thread(target=spin, args=(f"spin er {i}",)).start()
while time.monotonic() < end:
    for _ in range(8):
        if os.fork() == 0:
            sum(range(20000))
            os._exit(0)
    subprocess.run("ls / >/dev/null; (sort /etc/passwd | head -1) >/dev/null; date >/dev/null",
                   shell=True)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
"""


def is_readable_by_perf(path):
    """Not where another recorder asked for build ids at the same time: the kernel then flags our
    mappings as well, and perf reads them wrong."""
    result = subprocess.run([PROFCTL, "verify", "--json", path], capture_output=True, check=False)
    return all(f["check"] != "build-id" for f in json.loads(result.stdout)[0]["findings"])


def record(name, *options):
    for _ in range(3):
        path = record_once(name, *options)
        if is_readable_by_perf(path):
            return path
        shutil.rmtree(path, ignore_errors=True)
    skip("another recorder with build ids runs on this host")


def record_once(name, *options):
    path = Path(FOLDER.name) / name
    command = ["perf", "record", "-q", "-a", "-F", "3000", "-e", "cpu-clock", *options, "-o", path,
               "--", sys.executable, "-c", STORM]
    try:
        result = subprocess.run(command, capture_output=True, check=False, timeout=120)
    except FileNotFoundError:
        skip("perf is not installed")
    if result.returncode != 0:
        skip(f"perf cannot record here: {result.stderr.decode(errors='replace')[-200:]!r}")
    return path


def of_perf(path):
    script = subprocess.run(
        ["perf", "script", "-G", "--ns", "-F", "comm,tid,time,ip,dso", "-i", path],
        capture_output=True, check=True, timeout=300)
    for line in script.stdout.decode(errors="surrogateescape").splitlines():
        comm, tid, seconds, nanoseconds, ip, dso = ROW.match(line).groups()
        yield int(tid), int(seconds) * 10**9 + int(nanoseconds), ip, comm, dso


def of_ours(path):
    result = subprocess.run([RESOLVE, path], capture_output=True, check=True, timeout=300)
    for line in result.stdout.decode(errors="surrogateescape").splitlines():
        tid, time, ip, comm, dso = line.split("\t")
        yield int(tid), int(time), ip, comm, dso


def agrees(ours, perfs):
    if ours == perfs:
        return True
    # Newer perf forgets a thread at its EXIT, and no perf forgets the mappings that exec drops.
    comm_agrees = ours[3] == perfs[3] or perfs[3] == f":{perfs[0]}"
    dso_agrees = ours[4] == perfs[4] or ours[4] == "[unknown]" or perfs[3] == f":{perfs[0]}"
    return ours[:3] == perfs[:3] and comm_agrees and dso_agrees


def hold_against_perf(path):
    ours, perfs = sorted(of_ours(path)), sorted(of_perf(path))
    check(len(ours) == len(perfs), f"{len(ours)} samples where perf has {len(perfs)}")
    check(len(ours) > 1000, f"only {len(ours)} samples")
    pairs = list(zip(ours, perfs))
    wrong = [(a, b) for a, b in pairs if not agrees(a, b)]
    check(not wrong, f"{len(wrong)} of {len(pairs)} differ, first {wrong[:1]}")
    other = sum(a != b for a, b in pairs)
    check(other * 100 <= len(pairs), f"{other} of {len(pairs)} are not as in perf")


@functools.lru_cache
def plain_once():
    return record("plain.data", "-g")


def plain():
    with PLAIN:
        return plain_once()


@test
def samples_of_a_storm_resolve_as_in_perf():
    hold_against_perf(plain())


@test
def samples_of_a_compressed_storm_resolve_as_in_perf():
    hold_against_perf(record("zstd.data", "-g", "-z"))


@test
def samples_of_a_storm_in_a_folder_resolve_as_in_perf():
    hold_against_perf(record("threads.data", "--threads"))


@test
def samples_come_in_the_order_in_which_perf_prints_them():
    path = plain()
    ours, perfs = list(of_ours(path)), list(of_perf(path))
    check([row[:3] for row in ours] == [row[:3] for row in perfs], "the order is another")


if __name__ == "__main__":
    main(at_once=2)
