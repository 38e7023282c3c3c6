#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`profctl convert`: its omissions, refusals and leftovers, on recordings made here."""

import functools
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "golden"))
from background import background  # noqa: E402
from make import USER, Maker, file, pipe, records  # noqa: E402
from roundtrip import PROFCTL, info, perf, run, same_text  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

LOAD = ["sh", "-c", "for i in 1 2 3; do ls -R /etc >/dev/null 2>&1; done; i=0; "
                    "while [ $i -lt 60000 ]; do i=$((i+1)); done"]
RECORDED = tempfile.TemporaryDirectory(prefix="profd-test.")


def in_folder(function):
    @functools.wraps(function)
    def inner():
        with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
            function(folder)
    return inner


@functools.lru_cache
def recorded(*arguments):
    path = os.path.join(RECORDED.name, "-".join(word.strip("-") for word in arguments))
    done = subprocess.run(["perf", "record", "-q", "-F", "2000", *arguments, "-o", path, "--", *LOAD],
                          capture_output=True, check=False)
    return path if done.returncode == 0 and os.path.exists(path) else None


def record(folder, *arguments):
    path = recorded(*arguments)
    if not path:
        skip("perf cannot record this here")
    return shutil.copy(path, os.path.join(folder, "in.data"))


def convert(*arguments, status=0, stdin=None):
    done = run([PROFCTL, "convert", *arguments], stdin)
    equal(done.returncode, status, f"convert {arguments}: {done.stderr.decode(errors='replace')}")
    return done


def sample_lines(path, *options):
    """perf's line of each sample: time and event."""
    text = perf("script", path, ["-F", "time,event,tid", "--ns", *options], False)
    check(text is not None, f"perf cannot read {path}")
    return lines_of(text)


def lines_of(text):
    """Without the padding of columns."""
    return [" ".join(line.split()) for line in text.decode().splitlines() if line.strip()]


def same_lines(got, want, what):
    check(got == want, f"{what}: {len(got)} instead of {len(want)}, first "
                       f"{next(((a, b) for a, b in zip(got, want) if a != b), None)}")


def time_of(line):
    return next(word.rstrip(":") for word in line.split() if "." in word)


def seconds(text):
    whole, part = text.split(".")
    return int(whole) * 10**9 + int(part.ljust(9, "0"))


@test
@in_folder
def a_span_of_time_holds_the_samples_that_perf_sees_in_it(folder):
    path, out = record(folder, "-a", "-e", "cpu-clock"), os.path.join(folder, "out.data")
    lines = sample_lines(path)
    since, until = time_of(lines[len(lines) // 4]), time_of(lines[len(lines) * 3 // 4])
    convert(path, out, f"--since={since}", f"--until={until}")
    want = [line for line in lines if seconds(since) <= seconds(time_of(line)) < seconds(until)]
    check(0 < len(want) < len(lines), "the span is a part")
    same_lines(sample_lines(out), want, "samples")
    facts = info(out)
    equal(facts["first_sample_time"], seconds(time_of(want[0])), "first time")
    equal(facts["environment"]["sample_time"]["last"], seconds(time_of(want[-1])), "SAMPLE_TIME")


@test
@in_folder
def samples_of_a_span_resolve_as_in_the_whole(folder):
    path, out = record(folder, "-a", "-g", "-e", "cpu-clock"), os.path.join(folder, "out.data")
    lines = sample_lines(path)
    since = time_of(lines[len(lines) // 2])
    convert(path, out, f"--since={since}", "--layout=directory")
    whole = perf("script", path, ["--ns", "--time", f"{since},"], False)
    same_text(perf("script", out, ["--ns"], False), whole, "perf script of the span")


@test
@in_folder
def the_last_part_is_counted_from_the_last_sample(folder):
    path, out = record(folder, "-e", "cpu-clock"), os.path.join(folder, "out.data")
    lines = sample_lines(path)
    last = max(seconds(time_of(line)) for line in lines)
    convert(path, out, "--since", "-0.01s")
    want = [line for line in lines if seconds(time_of(line)) >= last - 10_000_000]
    check(0 < len(want) < len(lines), "it is a part")
    same_lines(sample_lines(out), want, "samples")
    done = run([PROFCTL, "convert", "-", "--since=-1s", os.path.join(folder, "no.data")], None)
    equal(done.returncode, 1, "an empty stream")
    stream = os.path.join(folder, "stream")
    convert(path, stream, "--layout=pipe")
    with open(stream, "rb") as source, subprocess.Popen(["cat"], stdin=source,
                                                         stdout=subprocess.PIPE) as cat:
        done = subprocess.run([PROFCTL, "convert", "-", os.path.join(folder, "no.data"),
                               "--since=-1s"], stdin=cat.stdout, capture_output=True, check=False)
    equal(done.returncode, 1, "a stream")
    check(b"read only once" in done.stderr, done.stderr.decode())
    check(not os.path.exists(os.path.join(folder, "no.data")), "nothing is written")


@test
@in_folder
def events_are_chosen_by_name(folder):
    path = record(folder, "-a", "-e", "cpu-clock", "-e", "page-faults", "-e", "context-switches")
    out = os.path.join(folder, "out.data")
    want = [line for line in sample_lines(path) if "page-faults" in line]
    check(want, "there are page faults")
    for layout in ("file", "directory"):
        convert(path, out, "--event=page-faults", f"--layout={layout}", "--force")
        same_lines(sample_lines(out), want, f"samples of a {layout}")
        names = [event["name"] for event in info(out)["events"]]
        check("page-faults" in names and "context-switches" not in names, f"events are {names}")
    done = convert(path, "-", "--event=page-faults")
    stream = subprocess.run(["perf", "script", "-F", "time,event,tid", "--ns", "-i", "-"],
                            input=done.stdout, capture_output=True, check=True).stdout
    same_lines(lines_of(stream), want, "samples of a stream")
    done = convert(path, os.path.join(folder, "no.data"), "--event=no-such-event", status=1)
    check(b"no-such-event" in done.stderr, "the name is told")
    equal(sorted(os.listdir(folder)), ["in.data", "out.data"], "what is left")


@test
@in_folder
def nothing_is_replaced_without_force(folder):
    path, out = record(folder, "-e", "cpu-clock"), os.path.join(folder, "out.data")
    with open(out, "w", encoding="ascii") as file:
        file.write("mine")
    done = convert(path, out, status=1)
    check(b"--force" in done.stderr, "the way out is told")
    with open(out, encoding="ascii") as file:
        equal(file.read(), "mine", "the file")
    convert(path, out, "--force")
    same_lines(sample_lines(out), sample_lines(path), "samples")
    convert(out, out, "--force", "--layout=directory")
    same_lines(sample_lines(out), sample_lines(path), "samples of a folder in its own place")
    equal(sorted(os.listdir(folder)), ["in.data", "out.data"], "what is left")


@test
@in_folder
def a_stream_needs_no_name_and_nothing_else_goes_without_one(folder):
    path = record(folder, "-e", "cpu-clock")
    done = convert(path, "-", "--layout=file", status=1)
    equal(done.stdout, b"", "stdout")
    check(b"pipe" in done.stderr, done.stderr.decode())


@test
@in_folder
def a_cut_recording_is_converted_up_to_the_cut(folder):
    path, out = record(folder, "-e", "cpu-clock"), os.path.join(folder, "out.data")
    cut = os.path.join(folder, "cut.data")
    shutil.copy(path, cut)
    samples = run([PROFCTL, "dump", "--json=short", "-t", "SAMPLE", path]).stdout.splitlines()
    os.truncate(cut, json.loads(samples[len(samples) // 2])["offset"] + 10)
    done = convert(cut, out, status=8)
    check(b"Only a part" in done.stderr, done.stderr.decode())
    got, want = sample_lines(out), sample_lines(path)
    check(0 < len(got) < len(want), "a part is there")
    # Records that only the whole has may stand before the cut in time, not in the file.
    check(set(got) <= set(want), "what is there is of the recording")
    equal(info(out)["damage"], None, "damage of the result")


@test
@in_folder
def a_recorder_that_was_killed_leaves_what_perf_can_then_read(folder):
    path, out = os.path.join(folder, "killed.data"), os.path.join(folder, "out.data")
    with background(["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", "4000", "-m", "4",
                     "-o", path],
                    stderr=subprocess.DEVNULL) as recorder:
        time.sleep(1.5)
        recorder.kill()
    if not os.path.exists(path) or info(path)["n_samples"] == 0:
        skip("perf wrote nothing before it was killed")
    check(perf("script", path, [], False) is None, "perf does not read it before")
    convert(path, out, status=8)
    equal(len(sample_lines(out)), info(path)["n_samples"], "samples")


@test
@in_folder
def what_is_no_recording_leaves_nothing(folder):
    path = os.path.join(folder, "text")
    with open(path, "w", encoding="ascii") as file:
        file.write("no perf.data\n" * 10)
    for layout in ("file", "directory", "pipe"):
        convert(path, os.path.join(folder, "out"), f"--layout={layout}", status=1)
    equal(os.listdir(folder), ["text"], "what is left")


@test
@in_folder
def an_interrupt_leaves_nothing(folder):
    path = record(folder, "-e", "cpu-clock")
    stream = convert(path, "-").stdout
    for layout in ("file", "directory"):
        with background([PROFCTL, "convert", "-", os.path.join(folder, "out"),
                         f"--layout={layout}"], stdin=subprocess.PIPE) as process:
            process.stdin.write(stream[: len(stream) // 2])
            process.stdin.flush()
            for _ in range(100):
                if len(os.listdir(folder)) > 1:
                    break
                time.sleep(0.05)
            check(len(os.listdir(folder)) > 1, "it has begun")
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)
            equal(process.returncode, -signal.SIGTERM, "the status")
        equal(os.listdir(folder), ["in.data"], f"what is left of a {layout}")


def claims_too_much(recording, text):
    """The feature whose string begins with `text` claims 60,000 bytes."""
    at = recording.index(text) - 4
    return recording[:at] + struct.pack("<I", 60000) + recording[at + 4:]


@test
@in_folder
def a_feature_that_does_not_hold_what_it_announces_stays_behind(folder):
    m, path, out = Maker("<"), os.path.join(folder, "in.data"), os.path.join(folder, "out")
    rows = [row for row in records(m) if row[:4] != m.u32(68)]
    for source in (file(m, rows), pipe(m, rows)):
        with open(path, "wb") as target:
            target.write(claims_too_much(source, b"6.1.0"))
        for layout in ("file", "directory", "pipe"):
            done = convert(path, out, f"--layout={layout}", "--force", status=8)
            check(b"OSRELEASE" in done.stderr, f"the reason is {done.stderr}")
            equal(run([PROFCTL, "verify", "--quiet", out]).returncode, 0, f"verify of a {layout}")
            text = perf("report", out, ["--header-only"], False)
            check(text and b"# arch : x86_64" in text and b"os release : 6.1.0" not in text,
                  f"perf's header of a {layout} is {text}")
            check(sample_lines(out), f"perf finds no samples in a {layout}")
        two = os.path.join(folder, "two")
        done = run([PROFCTL, "merge", "--force", "-o", two, path, path])
        equal(run([PROFCTL, "verify", "--quiet", two]).returncode, 0, f"verify of {done.stderr}")


@test
@in_folder
def records_of_a_stream_header_are_plain_records_in_a_file(folder):
    m, path = Maker("<"), os.path.join(folder, "in.data")
    with open(path, "wb") as target:
        target.write(file(m, [m.record(80, 0, m.u64(4) + m.string_feature("5.0")), *records(m)]))
    convert(path, os.path.join(folder, "out"))
    check(b"5.0" not in perf("report", os.path.join(folder, "out"), ["--header-only"], False),
          "the record does not change the header")


def described_stream(m):
    """Names, a unit, a scale and CPUs are in EVENT_UPDATEs behind each attr; nothing else has the names."""
    def update(kind, event_id, value):
        return m.record(78, 0, m.u64(kind, event_id) + value)

    first, second = (m.record(64, 0, m.attr(kind, config, 4000) + m.u64(*ids))
                     for kind, config, ids in ((1, 0, (11, 12)), (1, 2, (21,))))
    return (m.u64(0x32454C4946524550, 16) + first
            + update(0, 11, b"msec\0") + update(1, 11, m.pack("d", 1e-6)) + update(2, 11, b"tick\0")
            + update(3, 11, m.pack("HHHH", 0, 2, 0, 1)) + second + update(0, 21, b"faults\0")
            + update(2, 21, b"miss\0") + b"".join(records(m)[:-1]))


def updates_of(path, *kinds):
    rows = run([PROFCTL, "dump", "--json=short", "-t", "EVENT_UPDATE", path]).stdout.splitlines()
    rows = [json.loads(row) for row in rows]
    return [(row["id"], row["update"]) for row in rows if row["update"] in kinds]


def write_to(path, content):
    with open(path, "wb") as target:
        target.write(content)
    return path


@test
@in_folder
def updates_behind_an_attr_stay_and_a_name_becomes_a_feature(folder):
    every = [(11, "unit"), (11, "scale"), (11, "cpus"), (21, "unit")]
    for order in "<>":
        path = write_to(os.path.join(folder, "in.data"), described_stream(Maker(order)))
        for layout in ("file", "directory", "pipe"):
            for options in ((), ("-e", "tick"), ("-e", "miss")):
                what, out = f"{layout} {options}", os.path.join(folder, "out")
                convert(path, out, f"--layout={layout}", "--force", *options)
                equal([event["name"] for event in info(out)["events"]], ["tick", "miss"], what)
                equal(updates_of(out, "unit", "scale", "cpus"), every, what)
                equal(len(updates_of(out, "name")), 2 if layout == "pipe" else 0, f"names of {what}")


@test
@in_folder
def counts_of_a_stream_keep_their_unit(folder):
    path, out = os.path.join(folder, "in.data"), os.path.join(folder, "out.data")
    with open(path, "wb") as target:
        if subprocess.run(["perf", "stat", "record", "-o", "-", "-e", "task-clock", "true"],
                          stdout=target, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            skip("perf cannot count this here")
    check(updates_of(path, "unit", "scale"), "perf writes a unit")
    convert(path, out)
    equal(updates_of(out, "unit", "scale"), updates_of(path, "unit", "scale"), "unit and scale")
    text = subprocess.run(["perf", "stat", "report", "-i", out], capture_output=True, check=True)
    check(b"msec task-clock" in text.stdout + text.stderr, f"perf stat report is {text}")


@test
@in_folder
def header_records_in_the_midst_of_a_stream_stay_in_a_stream(folder):
    m, path = Maker("<"), os.path.join(folder, "in.data")
    build_id = m.record(67, USER, m.u32(100) + bytes(range(20)) + m.u32(0) + b"/bin/late\0")
    formats = m.record(66, 0, m.u32(16, 0)) + b"formats of perf."
    rows = records(m)
    write_to(path, pipe(m, [*rows[:7], build_id, formats, *rows[7:-1]]))
    with open(path, "rb") as source:
        done = subprocess.run([PROFCTL, "convert", "-e", "page-faults", "-", "-"], stdin=source,
                              capture_output=True, check=True)
    out = write_to(os.path.join(folder, "out"), done.stdout)
    facts = info(out)
    equal((facts["n_samples"], facts["n_build_ids"]), (1, 1), "samples and build ids")
    equal((facts["records"]["67"], facts["records"]["66"]), (1, 1), "records")
    equal(facts["damage"], None, "damage")
    check(formats in done.stdout, "the payload")
    convert(path, out, "--force", "-e", "page-faults")
    equal(info(out)["n_build_ids"], 1, "build ids of a file")


@test
@in_folder
def a_full_disk_leaves_nothing(folder):
    path = record(folder, "-a", "-g", "-e", "cpu-clock")
    limit = max(os.path.getsize(path) // 2 // 1024, 1)
    command = f"ulimit -f {limit // 512 + 1}; trap '' XFSZ; exec \"$0\" convert \"$1\" \"$2\""
    done = subprocess.run(["sh", "-c", command, PROFCTL, path, os.path.join(folder, "out")],
                          capture_output=True, check=False)
    if done.returncode == 0:
        skip("the recording is smaller than the least limit of a file")
    equal(done.returncode, 1, done.stderr.decode())
    equal(os.listdir(folder), ["in.data"], "what is left")


if __name__ == "__main__":
    main()
