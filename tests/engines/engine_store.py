# SPDX-License-Identifier: LGPL-2.1-or-later
"""A store that reaches as many intervals back as an hour has, made in half a minute: what profd recorded of some programs
for a few seconds lies there again and again, each time that much earlier. Every sample and every time is in its files, so
neither profd nor perf knows of that."""

import collections
import glob
import json
import os
import re
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "integration"))
from daemon import Daemon, session  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import scratch, spinning  # noqa: E402
from tap import check, equal  # noqa: E402

SECOND = 1_000_000_000
# An hour of ten-second intervals has as many.
INTERVALS = 360
RECORDED_S = 20
FREQUENCY = 49
WORK = "while :; do find /usr/include | sort -r | md5sum; perl -e 'for (1..400000) { $x{$_ % 99} .= \"$_\" }'; done >/dev/null"
PROGRAMS = ("spin", "perl", "find", "sort", "md5sum")

SAMPLE, FORK, EXIT, USER = 9, 7, 4, 64  # types of records; those from the last one on have no time
# Where the time is, by the sample_type of our events: from the begin of a sample, and from the end of any other record.
TIME_OF_SAMPLE, TIME_OF_OTHER, TIME_OF_TASK = 32, -24, 24


def shift_records(data, by):
    """In place: the records of a plain perf.data as if all had happened so many ns earlier."""
    at, size = struct.unpack_from("<QQ", data, 40)
    end = at + size
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        places = [] if kind >= USER else [TIME_OF_SAMPLE] if kind == SAMPLE else [length + TIME_OF_OTHER]
        for place in places + ([TIME_OF_TASK] if kind in (FORK, EXIT) else []):
            ns, = struct.unpack_from("<Q", data, at + place)
            if ns:
                struct.pack_into("<Q", data, at + place, ns - by)
        at += length
    equal(at, end, "the end of the records")


def shifted_manifest(manifest, sequence, by):
    coverage = manifest["coverage"]
    return {**manifest, "sequence": sequence, "first_ns": manifest["first_ns"] - by, "last_ns": manifest["last_ns"] - by,
            "anchors": [[ns - by for ns in anchor] for anchor in manifest["anchors"]],
            "index": [[*where, first - by, last - by] for *where, first, last in manifest["index"]],
            "coverage": {**coverage, "from_ns": coverage["from_ns"] - by, "to_ns": coverage["to_ns"] - by}}


def write(path, content):
    with open(path, "wb") as f:
        f.write(content)
    os.chmod(path, 0o640)


def repeat(store):
    """The one segment of a stopped profd, with copies before it; the end of what it covers, in wall-clock time."""
    folder = os.path.join(store, "sessions", "default")
    path, = glob.glob(os.path.join(folder, "*.perf.data"))
    stem = path.removesuffix(".perf.data")
    with open(path, "rb") as f, open(stem + ".json", encoding="utf-8") as g:
        data, manifest = f.read(), json.load(g)
    equal((manifest["lost"], manifest["gaps"]), (0, []), "what is missing in the recording")
    begin, end = (manifest["coverage"][key] for key in ("from_ns", "to_ns"))
    period = -(-(end - begin) // SECOND)
    copies = (INTERVALS + 1) // period + 1
    check(begin > copies * period * SECOND, f"the machine has run for less than {copies * period} s")
    for name in (path, stem + ".json"):
        os.unlink(name)
    for sequence in range(1, copies + 2):
        by = (copies + 1 - sequence) * period * SECOND
        copy, rows = bytearray(data), shifted_manifest(manifest, sequence, by)
        shift_records(copy, by)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(rows["anchors"][0][1] // SECOND))
        write(os.path.join(folder, f"{sequence:08}-{stamp}.perf.data"), copy)
        write(os.path.join(folder, f"{sequence:08}-{stamp}.json"), json.dumps(rows).encode())
    write(os.path.join(folder, ".sequence"), f"{copies + 1}\n".encode())
    monotonic, real, _ = manifest["anchors"][-1]
    return end - monotonic + real


class Store(Scene):
    """For all tests of a program, while profd goes on recording."""

    _samples = None

    @classmethod
    def begin(cls, enter):
        cls.folder = enter(scratch())
        config = session(Event="cpu-clock", Frequency=FREQUENCY, RotateIntervalSec="60s")
        with Daemon(cls.folder, config=config + "Compress=none\n") as daemon, spinning():
            with subprocess.Popen(["sh", "-c", WORK], stderr=subprocess.DEVNULL, start_new_session=True) as work:
                time.sleep(RECORDED_S)
                os.killpg(work.pid, 9)
            daemon.process.terminate()
            equal(daemon.process.wait(timeout=60), 0, "the status of profd")
        cls.until = repeat(daemon.store) // SECOND * SECOND
        cls.since = cls.until - INTERVALS * SECOND
        cls.daemon = enter(Daemon(cls.folder, config=config))

    @classmethod
    def samples(cls):
        """What perf makes of the same window: (time of day, comm, innermost function) of each sample."""
        if cls._samples is None:
            with Varlink(cls.control()) as v:
                replies = v.call("Snapshot", sinceUsec=cls.since // 1000, untilUsec=cls.until // 1000)
            snapshot = [r for r in replies if r["snapshot"]][-1]["snapshot"]["path"]
            cls._samples = list(perf_samples(snapshot))
        return cls._samples

    @classmethod
    def seconds(cls):
        """The samples of each second, by its time of day."""
        return collections.Counter(re.search(r"\d\d:\d\d:\d\d", tod)[0] for tod, _, _ in cls.samples())


def perf_samples(path):
    done = subprocess.run(["perf", "script", "--no-inline", "--ns", "-F", "comm,tod,ip,sym", "-i", path], capture_output=True,
                          check=True)
    for block in done.stdout.decode("utf-8", "replace").split("\n\n"):
        lines = block.strip("\n").splitlines()
        if lines:
            comm, _, tod = lines[0].rstrip().rstrip(":").rpartition(" ")
            words = lines[1].split(None, 1) if len(lines) > 1 else []
            yield tod, comm.rsplit(None, 1)[0].strip(), words[1] if len(words) > 1 else "[unknown]"
