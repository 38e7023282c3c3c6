# SPDX-License-Identifier: LGPL-2.1-or-later
"""Objects that the gateway put into a bucket: their windows, and their samples against those of profd."""

import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
import recording  # noqa: E402
from profctl import profctl  # noqa: E402
from tap import check, equal  # noqa: E402

KEY = re.compile(r"([A-Za-z0-9._-]+)/(\d{4})/(\d\d)/(\d\d)/([a-z0-9-]+)-(\d{8}T\d{6}Z)\.perf\.data")


def real_of(key):
    """The beginning of a window, in seconds since 1970."""
    return int(time.mktime(time.strptime(KEY.fullmatch(key)[6], "%Y%m%dT%H%M%SZ"))) - time.timezone


def write(folder, name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def samples_of(path):
    return sorted((s.time, s.cpu, s.pid, s.tid, s.ip) for s in recording.samples([path]))


def check_consecutive(keys, seconds):
    begins = [real_of(k) for k in sorted(keys)]
    equal(begins, list(range(begins[0], begins[0] + seconds * len(begins), seconds)), "windows")


def check_content(folder, socket, objects, seconds, of="default"):
    """Together the objects, by their keys, hold each sample of their time once."""
    keys = sorted(objects)
    since, until = real_of(keys[0]), real_of(keys[-1]) + seconds
    path = os.path.join(folder, "whole.perf.data")
    done = profctl("snapshot", "-f", "-o", path, f"--session={of}", f"--since=@{since}", f"--until=@{until}", socket=socket)
    check(os.path.exists(path), f"profctl snapshot: {done.stderr}")
    whole = samples_of(path)
    parts = [samples_of(write(folder, "object.perf.data", objects[k])) for k in keys]
    check(len(whole) > 100 and sum(map(bool, parts)) > 1, f"{[len(p) for p in parts]} samples in the objects, {len(whole)} in all")
    equal(sorted(s for p in parts for s in p), whole, "the samples of all objects")


def check_opens(folder, data):
    path = write(folder, "opens.perf.data", data)
    done = subprocess.run(["perf", "report", "--stdio", "-f", "-i", path], capture_output=True, text=True, check=False)
    check(done.returncode == 0 and "spin" in done.stdout, f"perf report: {done.stderr[-500:]} {done.stdout[-500:]}")
