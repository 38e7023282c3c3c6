#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Several recordings as one: perf must say of the result what it says of its parts."""

import functools
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "golden"))
from background import background  # noqa: E402
from make import HOSTILE, Maker, file, pipe, records  # noqa: E402
from roundtrip import PROFCTL, info, perf, run  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

LOAD = ["sh", "-c", "for i in 1 2; do ls -R /etc >/dev/null 2>&1; done; i=0; "
                    "while [ $i -lt 20000 ]; do i=$((i+1)); done"]
RECORDED = tempfile.TemporaryDirectory(prefix="profd-test.")
FIELDS = ["-F", "comm,pid,tid,time,event,ip,sym,dso", "--ns"]


def in_folder(function):
    @functools.wraps(function)
    def inner():
        with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
            function(folder)
    return inner


RECORDING = threading.Lock()


@functools.lru_cache
def recorded(name, *arguments):
    out = os.path.join(RECORDED.name, "-".join((name, *(word.strip("-") for word in arguments))))
    done = subprocess.run(["perf", "record", "-q", *arguments, "-o", out, "--", *LOAD],
                          capture_output=True, check=False)
    return out if done.returncode == 0 and os.path.exists(out) else None


def record(folder, name, *arguments):
    """One of the name and the arguments is made once: most of perf record's time is waiting."""
    with RECORDING:
        path = recorded(name, *arguments)
    out = os.path.join(folder, name)
    if not path:
        skip("perf cannot record this here")
    return shutil.copytree(path, out) if os.path.isdir(path) else shutil.copy(path, out)


def merge(folder, *arguments, status=0):
    out = os.path.join(folder, "out.data")
    done = run([PROFCTL, "merge", "-o", out, *arguments])
    equal(done.returncode, status, f"merge {arguments}: {done.stderr.decode(errors='replace')}")
    return out if status in (0, 8) else done.stderr.decode(errors="replace")


def samples(path, fields=FIELDS):
    """A paragraph a sample, without the padding of columns."""
    text = perf("script", path, fields, False)
    check(text is not None, f"perf cannot read {path}")
    blocks = text.decode(errors="replace").split("\n\n") if "\n\t" in text.decode(
        errors="replace") else text.decode(errors="replace").split("\n")
    return sorted(" ".join(block.split()) for block in blocks if block.strip())


def no_complaint(path):
    done = run(["perf", "report", "--stdio", "-f", "-i", path])
    equal(done.returncode, 0, "perf report")
    for word in (b"out of order", b"unknown", b"Extra", b"corrupt", b"not present"):
        check(word not in done.stderr, done.stderr.decode(errors="replace"))


def judge(folder, parts, fields=FIELDS, *options):
    out = merge(folder, *parts, *options)
    want = sorted(line for part in parts for line in samples(part, fields))
    got = samples(out, fields)
    check(len(want) > 0, "there are samples")
    lost, new = sorted(set(want) - set(got)), sorted(set(got) - set(want))
    check(got == want, f"{len(got)} samples instead of {len(want)}; "
                       f"{lost[:1]} became {new[:1]}")
    no_complaint(out)
    facts = info(out)
    equal(facts["unmatched_samples"], 0, "samples of no event")
    equal(facts["n_samples"], sum(info(part)["n_samples"] for part in parts), "samples")
    return out, facts


@test
@in_folder
def two_recordings_of_one_event_become_one_event(folder):
    parts = [record(folder, f"{i}.data", "-a", "-e", "cpu-clock", "-F", "2000") for i in range(2)]
    _, facts = judge(folder, parts)
    equal([e["name"] for e in facts["events"] if e["name"] == "cpu-clock"], ["cpu-clock"], "events")
    equal(len(facts["events"]), len(info(parts[0])["events"]), "number of events")


@test
@in_folder
def recordings_of_one_command_without_ids_become_one_event(folder):
    parts = [record(folder, f"{i}.data", "-e", "cpu-clock", "-F", "2000") for i in range(3)]
    _, facts = judge(folder, parts)
    equal(len(facts["events"]), 1, "number of events")


@test
@in_folder
def events_that_differ_get_an_identifier(folder):
    parts = [record(folder, "0.data", "-e", "cpu-clock", "-F", "2000"),
             record(folder, "1.data", "-a", "-e", "page-faults", "-c", "1"),
             record(folder, "2.data", "-a", "-d", "-e", "context-switches", "-c", "1")]
    fields = ["-F", "comm,pid,tid,time,event", "--ns"]
    _, facts = judge(folder, parts, fields)
    check(all(e["sample_type"] & 1 << 16 for e in facts["events"]), "all have IDENTIFIER")


@test
@in_folder
def every_layout_takes_the_result(folder):
    parts = [record(folder, "0.data", "-a", "-e", "cpu-clock", "-F", "2000"),
             record(folder, "1.data", "-a", "-z", "-e", "cpu-clock", "-F", "1000")]
    judge(folder, parts, FIELDS, "--layout=directory")
    judge(folder, parts, FIELDS, "--layout=file", "--compress=zstd", "--force")
    done = run([PROFCTL, "merge", "-o", "-", *parts])
    equal(done.returncode, 0, "merge to stdout")
    out = subprocess.run(["perf", "script", "-i", "-", "-F", "time,event", "--ns"],
                         input=done.stdout, capture_output=True, check=False)
    equal(len([line for line in out.stdout.splitlines() if line.strip()]),
          sum(info(part)["n_samples"] for part in parts), "samples of the stream")


@test
@in_folder
def a_folder_and_a_stream_are_parts_too(folder):
    parts = [record(folder, "0.data", "-a", "--threads", "-e", "cpu-clock", "-F", "2000"),
             record(folder, "1.data", "-a", "-e", "cpu-clock", "-F", "2000")]
    stream = os.path.join(folder, "stream")
    equal(run([PROFCTL, "convert", parts[1], stream, "--layout=pipe"]).returncode, 0, "convert")
    out = merge(folder, parts[0], stream)
    equal(samples(out), sorted(samples(parts[0]) + samples(parts[1])), "samples")


@test
@in_folder
def parts_of_a_switched_output_are_whole_again(folder):
    done = subprocess.run(["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", "10000",
                           "--switch-output=20K", "-m", "4", "-g", "-o", os.path.join(folder, "part"), "--", *LOAD],
                          capture_output=True, check=False)
    parts = sorted(glob.glob(os.path.join(folder, "part.*")))
    if done.returncode != 0 or len(parts) < 2:
        skip("perf cannot switch its output here")
    # A process whose FORK fell into the part before has its name only in the whole.
    _, facts = judge(folder, parts, ["-F", "tid,time,cpu,event,period", "--ns"])
    equal(len(facts["events"]), len(info(parts[0])["events"]), "number of events")


@test
@in_folder
def tracepoints_of_both_keep_their_fields(folder):
    parts = [record(folder, "0.data", "-a", "-e", "sched:sched_process_fork"),
             record(folder, "1.data", "-a", "-e", "sched:sched_process_exit")]
    judge(folder, parts, ["-F", "comm,tid,time,event,trace", "--ns"])


@test
@in_folder
def values_of_groups_keep_their_events(folder):
    parts = [record(folder, f"{i}.data", "-e", "{cpu-clock,task-clock}:S", "-F", "1000")
             for i in range(2)]
    out = merge(folder, *parts)
    equal(samples(out, ["-F", "time,event,period", "--ns"]),
          sorted(samples(parts[0], ["-F", "time,event,period", "--ns"]) +
                 samples(parts[1], ["-F", "time,event,period", "--ns"])), "samples")


def renumber(path, out, change):
    """A copy whose ids are others, as after another boot, by profctl's own account of them."""
    with open(path, "rb") as source:
        data = bytearray(source.read())
    header = struct.unpack_from("<8s7Q", data)
    attr_size, attrs_at, attrs_size = header[2], header[3], header[4]
    ids = []
    for at in range(attrs_at, attrs_at + attrs_size, attr_size):
        ids_at, ids_size = struct.unpack_from("<QQ", data, at + attr_size - 16)
        ids += struct.unpack_from(f"<{ids_size // 8}Q", data, ids_at)
    for number in ids:
        old, new = struct.pack("<Q", number), struct.pack("<Q", change(number))
        at = data.find(old)
        while at >= 0:
            # The ids here are large enough that only they are such a word.
            if at % 4 == 0:
                data[at:at + 8] = new
            at = data.find(old, at + 1)
    with open(out, "wb") as target:
        target.write(data)
    return out


@test
@in_folder
def ids_that_collide_are_given_out_anew(folder):
    parts = [record(folder, "0.data", "-a", "-e", "cpu-clock", "-e", "page-faults"),
             record(folder, "1.data", "-a", "-e", "context-switches", "-e", "task-clock")]
    far = 0x5EED_0000_0000
    bases = []
    for number, part in enumerate(parts):
        with open(part, "rb") as source:
            data = source.read()
        attr_size, attrs_at = struct.unpack_from("<QQ", data, 16)
        ids_at, = struct.unpack_from("<Q", data, attrs_at + attr_size - 16)
        bases.append(struct.unpack_from("<Q", data, ids_at)[0])
        parts[number] = renumber(part, os.path.join(folder, f"same-{number}.data"),
                                 lambda i, b=bases[number]: far + i - b)
    _, facts = judge(folder, parts, ["-F", "comm,tid,time,event", "--ns"])
    names = sorted(e["name"] for e in facts["events"] if not e["name"].startswith("dummy"))
    equal(names, ["context-switches", "cpu-clock", "page-faults", "task-clock"], "events")


# Runs on, and is called "second" after the first signal.
RENAMED = """
import signal
def rename(*_):
    with open("/proc/self/comm", "w") as comm:
        comm.write("second")
signal.signal(signal.SIGUSR1, rename)
with open("/proc/self/comm", "w") as comm:
    comm.write("first")
print("ready", flush=True)
while True:
    pass
"""


@test
@in_folder
def what_was_so_when_a_later_recording_began_does_not_hold_before(folder):
    with background([sys.executable, "-c", RENAMED], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        first = record(folder, "0.data", "-a", "-e", "cpu-clock", "-F", "500")
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.1)
        second = record(folder, "1.data", "-a", "-e", "cpu-clock", "-F", "500")
        process.kill()
    want = sorted(samples(first) + samples(second))
    for name in ("first", "second"):
        check(any(line.startswith(name + " ") for line in want), f"there are samples of {name}")
    for parts in ((first, second), (second, first)):
        equal(samples(merge(folder, *parts, "--force")) == want, True, "samples are the same")


@test
@in_folder
def what_does_not_belong_together_is_refused(folder):
    plain = record(folder, "0.data", "-e", "cpu-clock")
    clock = record(folder, "1.data", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock")
    check("clock" in merge(folder, plain, clock, status=1), "the clock is named")
    untimed = record(folder, "2.data", "--no-timestamp", "-e", "cpu-clock")
    check("time" in merge(folder, plain, untimed, status=1), "the time is named")
    with open(plain, "rb") as source:
        data = source.read()
    name = os.uname().nodename.encode() + b"\0"
    other = os.path.join(folder, "3.data")
    with open(other, "wb") as target:
        target.write(data.replace(name, b"X" + name[1:]))
    check("host" in merge(folder, plain, other, status=1), "the host is named")
    equal(sorted(os.listdir(folder)), ["0.data", "1.data", "2.data", "3.data"], "what is left")


@test
@in_folder
def a_damaged_part_gives_what_it_has(folder):
    parts = [record(folder, f"{i}.data", "-e", "cpu-clock", "-F", "2000") for i in range(2)]
    os.truncate(parts[1], os.path.getsize(parts[1]) // 2)
    out = merge(folder, *parts, status=8)
    equal(info(out)["n_samples"], sum(info(part)["n_samples"] for part in parts), "samples")


OF_COMM = b"--comm=" + HOSTILE


def cut_auxtrace(m):
    """4096 bytes are announced, and 16 are there."""
    return m.record(71, 0, m.u64(4096, 0, 0) + m.u32(0, 0, 0, 0)) + bytes(16)


def written(folder, name, content):
    with open(os.path.join(folder, name), "wb") as target:
        target.write(content)
    return target.name


def n_found(path):
    facts = info(path)
    equal(facts["damage"], None, "damage of the result")
    return facts["n_samples"]


@test
@in_folder
def a_cut_payload_does_not_cover_the_samples_that_follow(folder):
    for order in "<>":
        m = Maker(order)
        whole = written(folder, "whole.data", file(m, records(m)))
        cut = written(folder, "cut.data", file(m, records(m)[:-1] + [cut_auxtrace(m)]))
        for layout in ("file", "directory", "pipe"):
            out = merge(folder, whole, cut, "--force", f"--layout={layout}", status=8)
            equal(n_found(out), 8, f"samples of a {layout}")
            check("71" not in info(out)["records"], "there is no record of the payload")
            done = run([PROFCTL, "convert", "--force", f"--layout={layout}", OF_COMM, cut, out])
            equal(done.returncode, 8, f"convert: {done.stderr}")
            equal(n_found(out), 2, f"samples of a {layout} in order")
        equal(run([PROFCTL, "convert", "--force", cut, out]).returncode, 8, "convert")
        equal(n_found(out), 4, "samples")


def claims_too_much(recording, text):
    """The last string of a feature that begins with `text` claims 60,000 bytes."""
    at = recording.rindex(text) - 4
    return recording[:at] + struct.pack("<I", 60000) + recording[at + 4:]


@test
@in_folder
def a_feature_that_does_not_hold_what_it_announces_is_reported(folder):
    m = Maker("<")
    whole = written(folder, "whole.data", file(m, records(m)))
    for text, name in ((b"6.1.0", b"OSRELEASE"), (b"page-faults", b"EVENT_DESC")):
        broken = written(folder, "broken.data", claims_too_much(file(m, records(m)), text))
        out = os.path.join(folder, "out.data")
        for parts in ((broken, broken), (broken, whole), (whole, broken)):
            done = run([PROFCTL, "merge", "--force", "-o", out, *parts])
            # Nothing is missing where the first recording has all that describes the host.
            status = 0 if parts[0] == whole and name == b"OSRELEASE" else 8
            equal(done.returncode, status, f"{name}, {parts}: {done.stderr}")
            equal(done.stderr.count(name), parts.count(broken) if status else 0, "reports")
            check(status == 0 or b"broken.data" in done.stderr, f"the report is {done.stderr}")
            equal(n_found(out), 8, "samples")


@test
@in_folder
def nothing_follows_a_payload_that_a_stream_cuts_off(folder):
    m = Maker("<")
    stream = pipe(m, records(m)[:-1]) + cut_auxtrace(m)
    out = os.path.join(folder, "out.data")
    for options in ((), (OF_COMM,)):
        done = subprocess.run([PROFCTL, "convert", "--force", *options, "-", out], input=stream,
                              capture_output=True, check=False)
        equal(done.returncode, 8, f"convert: {done.stderr}")
        at = info(out)["damage"]
        check(at and "payload" in at["text"], f"the damage is {at}")
        rows = run([PROFCTL, "dump", "--json=short", "-t", "AUXTRACE", out]).stdout.splitlines()
        equal([json.loads(row)["payload"] for row in rows], [16], "bytes of payload")


@test
@in_folder
def a_merge_without_a_name_is_wrong_usage(folder):
    path = record(folder, "0.data", "-e", "cpu-clock")
    equal(run([PROFCTL, "merge", path]).returncode, 2, "the status")


if __name__ == "__main__":
    main(at_once=2)
