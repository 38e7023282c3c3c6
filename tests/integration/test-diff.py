#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profctl diff and changed on recordings of the real perf: what was started shows as grown, its figures are those of
report, and a recording does not differ from itself."""

import collections
import functools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from profctl import as_json, ended, profctl  # noqa: E402
from workload import need_root  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix="profd-diff.")
CLOCK_DATA = 29
SPIN = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: sum(range(1000))"


def record(name, script, event="cpu-clock"):
    need_root()
    path = os.path.join(FOLDER.name, name)
    try:
        done = subprocess.run(["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-F", "997", "-g", "-e", event, "-o", path, "--", "sh",
                               "-c", script], capture_output=True, text=True, check=False, timeout=120)
    except FileNotFoundError:
        skip("perf is not installed")
    check(done.returncode == 0, done.stderr)
    return path


@functools.cache
def alone():
    return record("alone.data", f"exec {sys.executable} -c '{SPIN.format(2)}'")


@functools.cache
def joined():
    return record("joined.data", f"perl -e '$e = time + 3; 1 while time < $e' & {sys.executable} -c '{SPIN.format(2)}'; wait")


def diff(*arguments):
    return as_json(profctl("diff", "--json=short", *arguments), "diff")


def shown(*arguments):
    done = profctl(*arguments)
    ended(done, 0)
    return done.stdout


def rows_by(done, key):
    return {row[key]: row for row in done["rows"]}


@test
def a_program_that_was_started_has_grown():
    done = diff("--by=comm", alone(), joined())
    perl = rows_by(done, "comm")["perl"]
    equal(perl["samplesBefore"], 0)
    check(perl["significant"] and perl["after"] > 0.2 and perl["q"] < 0.05, perl)
    check(done["significant"] == sum(row["significant"] for row in done["rows"]), done["significant"])
    text = shown("diff", "--by=comm", alone(), joined())
    check("perl" in text and "by more than chance" in text, text)


@test
def figures_are_those_of_report():
    done = diff("--by=comm", alone(), joined())
    for side, path in (("Before", alone()), ("After", joined())):
        report = as_json(profctl("report", "--json=short", "--by=comm", path), "report")
        equal({row["comm"]: (row["samples"], row["period"]) for row in report["rows"]},
              {row["comm"]: (row[f"samples{side}"], row[f"period{side}"]) for row in done["rows"] if row[f"samples{side}"]})
        equal(done[side.lower()]["samples"], report["total"])


@test
def a_recording_does_not_differ_from_itself():
    equal(diff(joined(), joined())["significant"], 0)
    text = shown("diff", "--total", joined(), joined())
    check("Nothing changed by more than chance." in text, text)


@test
def load_of_a_function_counts_what_it_calls():
    total = diff("--total", "--all", alone(), joined())
    own = diff("--all", alone(), joined())
    shares = [sum(row["after"] for row in done["rows"]) for done in (own, total)]
    check(abs(shares[0] - 1) < 1e-6 and shares[1] > 1.1, shares)


@test
def rates_are_in_cpus():
    done = diff("--rate", "--by=comm", alone(), joined())
    perl, side = rows_by(done, "comm")["perl"], done["after"]
    seconds = (side["untilUsec"] - side["sinceUsec"]) / 1e6
    check(abs(perl["after"] * seconds / perl["periodAfter"] - 1) < 0.01, (perl, seconds))


@test
def what_changed_is_said_in_sentences():
    path = record("changed.data", f"{sys.executable} -c '{SPIN.format(6)}' & sleep 3; perl -e '$e = time + 4; 1 while time < $e'; wait")
    done = as_json(profctl("changed", "--json=short", "--last=3s", path), "changed")
    found = [change for change in done["changes"] if change.get("comm") == "perl"]
    check(found and found[0]["before"] * 2 < found[0]["now"] and found[0]["against"] == "before", done)
    text = shown("changed", "--last=3s", path)
    check(found[0]["text"] in " ".join(text.split()), text)


def with_losses(path, losses):
    """A copy of a recording with a LOST_SAMPLES record at the end for each time, so long before the last sample in seconds."""
    samples = ended(profctl("dump", "--json=short", "--type=SAMPLE", path), 0).stdout.splitlines()
    last_ns = max(json.loads(line)["time"] for line in samples)
    records = b"".join(struct.pack("<IHHQIIQ", 13, 0, 32, lost, 0, 0, last_ns - int(before_s * 1e9)) for before_s, lost in losses)
    with open(path, "rb") as f:
        content = bytearray(f.read())
    offset, size = struct.unpack_from("<QQ", content, 40)
    for i in range(bin(int.from_bytes(content[72:104], "little")).count("1")):
        section, length = struct.unpack_from("<QQ", content, offset + size + 16 * i)
        struct.pack_into("<QQ", content, offset + size + 16 * i, section + len(records), length)
    struct.pack_into("<Q", content, 48, size + len(records))
    content[offset + size:offset + size] = records
    with open(f"{path}.losses", "wb") as f:
        f.write(content)
    return f"{path}.losses"


@test
def lost_samples_are_counted_on_their_side():
    path = with_losses(alone(), [(0.2, 7), (1.2, 11)])
    done = as_json(profctl("changed", "--json=short", "--last=900ms", path), "changed")
    equal([done["sides"][side]["lost"] for side in ("now", "before")], [7, 11], "lost samples")
    equal(done["sides"].get("yesterday", {"samples": 0})["samples"], 0, "samples of yesterday")
    text = " ".join(shown("changed", "--last=900ms", path).split())
    check(f"This window is not complete: {done['sides']['now']['samples']} samples, 7 lost; what is missing may look" in text, text)
    check(f"The time before is not complete: {done['sides']['before']['samples']} samples, 11 lost; what is" in text, text)
    check("not complete" not in shown("changed", "--last=900ms", alone()), "a remark on a recording that lost nothing")
    equal([diff(alone(), path)[side]["lost"] for side in ("before", "after")], [0, 18], "lost samples of the sides of diff")


@test
def changes_that_are_not_listed_are_counted():
    need_root()
    names = [os.path.join(FOLDER.name, f"many{i}") for i in range(7)]
    for name in names:
        os.symlink(shutil.which("perl"), name)
    path = record("many.data", f"{sys.executable} -c '{SPIN.format(3)}'; " +
                  "".join(f"{name} -e '$e = time + 3; 1 while time < $e' & " for name in names) + "wait")
    done = as_json(profctl("changed", "--json=short", "--last=2500ms", path), "changed")
    kinds = collections.Counter("symbol" in change for change in done["changes"])
    equal(kinds[False], 5, "listed threads")
    check(done["more"] >= 3, f"three of seven names and one that ended are not listed: {done['more']} more")
    text = " ".join(shown("changed", "--last=2500ms", path).split())
    check(f"{done['more']:,} more changes are not listed here" in text, text)


def moved(path, days):
    """A copy of a recording whose wall clock, a feature of it, is so many days earlier."""
    with open(path, "rb") as f:
        content = bytearray(f.read())
    offset = struct.unpack_from("<Q", content, 40)[0] + struct.unpack_from("<Q", content, 48)[0]
    flags = int.from_bytes(content[72:104], "little")
    at = struct.unpack_from("<QQ", content, offset + 16 * bin(flags & ((1 << CLOCK_DATA) - 1)).count("1"))[0]
    check(flags >> CLOCK_DATA & 1, "the recording has no wall clock")
    wall = struct.unpack_from("<Q", content, at + 8)[0]
    struct.pack_into("<Q", content, at + 8, wall - days * 86400 * 10**9)
    with open(f"{path}.moved", "wb") as f:
        f.write(content)
    return f"{path}.moved"


@test
def recordings_of_yesterday_and_today_are_compared():
    begin = time.time()
    yesterday = moved(record("calm.data", f"{sys.executable} -c '{SPIN.format(2)}'"), 1)
    today = record("today.data", f"{sys.executable} -c '{SPIN.format(2)}' & perl -e '$e = time + 3; 1 while time < $e'; wait")
    # The one ended when the other one began: a window of this length has both.
    window = f"--last={time.time() - begin:.0f}s"
    done = as_json(profctl("changed", "--json=short", window, yesterday, today), "changed")
    found = [change for change in done["changes"] if change.get("comm") == "perl"]
    check(found and found[0]["against"] == "yesterday" and found[0]["now"] > 0, done)
    for files in ((yesterday, today), (today, yesterday)):
        done = diff("--baseline=yesterday", window, "--by=comm", *files)
        perl = rows_by(done, "comm")["perl"]
        equal(perl["samplesBefore"], 0)
        check(perl["significant"], perl)
        check(done["before"]["samples"] > 100 and done["after"]["samples"] > 100, done["before"])


@test
def different_events_are_not_compared():
    other = record("other.data", f"exec {sys.executable} -c '{SPIN.format(1)}'", "task-clock")
    for words in ((), ("--rate",), ("--flamegraph", "--output=" + os.path.join(FOLDER.name, "none.html"))):
        done = ended(profctl("diff", *words, alone(), other), 5, "samples are of task-clock.* before are of cpu-clock")
        equal(done.stdout, "", "output")
    check(not os.path.exists(os.path.join(FOLDER.name, "none.html")), "a page of different units")
    ended(profctl("changed", "--last=5s", moved(alone(), 1), other), 5, "No samples of the same event")


@test
def a_page_shows_both_sides():
    page = os.path.join(FOLDER.name, "diff.html")
    shown("diff", "--flamegraph", "--output", page, alone(), joined())
    with open(page, encoding="utf-8") as f:
        text = f.read()
    check("perl" in text, "perl is not in the page")
    check(re.search(r"compared with [^\"]*alone", text), "the page does not say what it is compared with")
    ended(profctl("diff", "--flamegraph", "--rate", "--output", page, alone(), joined()), 2, "--rate, --total and --all are for the table")


@test
def wrong_command_lines_are_explained():
    for arguments in ((alone(),), (alone(), joined(), alone()), ("--by=time", alone(), joined()), ("--output=x", alone(), joined())):
        ended(profctl("diff", *arguments), 2)
    ended(profctl("changed", "--last=1h", alone()), 5)
    ended(profctl("diff", "--baseline=1h", alone(), joined()), 5, "no samples in the window to compare with")


main()
