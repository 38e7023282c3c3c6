#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`profctl verify` finds each flaw that is put into a recording without one, and no other."""

import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "golden"))
from make import EVENTS, Maker, START_NS, features, file, pipe  # noqa: E402
from tap import build_path, check, equal, main, test  # noqa: E402

PROFCTL = build_path("client", "profctl")
FOLDER = tempfile.TemporaryDirectory(prefix="profd-verify.")
USER = 2
M = Maker("<")


def sample(after, pid=100, tid=100, ip=0x400123, event_id=11):
    return M.record(9, USER, M.u64(event_id, ip) + M.u32(pid, tid) + M.u64(START_NS + after)
                    + M.u32(0, 0) + M.u64(1) + M.u64(0))


def comm(pid, tid, name=b"sh"):
    return M.record(3, 0, M.u32(pid, tid) + M.text(name) + M.trailer(pid, tid, START_NS, 0, 11))


def mapping(pid, start=0x400000, name=b"/bin/sh"):
    return M.record(10, USER, M.u32(pid, pid) + M.u64(start, 0x1000, 0) + M.u32(8, 1) + M.u64(42, 0)
                    + M.u32(5, 2) + M.text(name) + M.trailer(pid, pid, START_NS, 0, 11))


ROUND = M.record(68, 0, b"")
GOOD = [comm(100, 100), mapping(100), sample(10), sample(20), ROUND]


def verify(content, *options):
    path = Path(FOLDER.name) / "x.data"
    path.write_bytes(content)
    return subprocess.run([PROFCTL, "verify", *options, path], capture_output=True, check=False,
                          timeout=60)


def findings(content):
    result = verify(content, "--json")
    answer = json.loads(result.stdout)[0]
    found = {(f["severity"], f["check"]): f for f in answer["findings"]}
    equal(result.returncode, 8 if answer["errors"] else 0, "the exit status")
    return found


def finds(content, *wanted):
    found = findings(content)
    equal(sorted(found), sorted(wanted), "what is found")
    return found


def patched(content, offset, form, *values):
    values = struct.pack("<" + form, *values)
    return content[:offset] + values + content[offset + len(values):]


@test
def a_good_recording_is_clean_in_every_container_and_order():
    finds(file(M, GOOD))
    finds(pipe(M, GOOD))
    out = verify(file(M, GOOD)).stdout.decode()
    check(out.endswith(": 5 records, nothing wrong\n"), out)
    equal(verify(file(M, GOOD), "--quiet").stdout, b"", "--quiet")


@test
def a_file_that_is_no_recording_has_status_1_and_outweighs_findings():
    equal(verify(b"no perf.data at all, whatever it is").returncode, 1, "status")
    bad = Path(FOLDER.name) / "bad.data"
    bad.write_bytes(file(M, GOOD + [sample(30, event_id=99)]))
    none = Path(FOLDER.name) / "none.data"
    none.write_bytes(b"nothing")
    for paths in ([bad, none], [none, bad]):
        result = subprocess.run([PROFCTL, "verify", *paths], capture_output=True, check=False)
        equal(result.returncode, 1, "status")
    equal(subprocess.run([PROFCTL, "verify", bad, bad], capture_output=True, check=False).returncode,
          8, "status")


@test
def ids_lead_to_one_event():
    found = finds(file(M, GOOD + [sample(30, event_id=99), sample(31, event_id=99)]), ("error", "id"))
    equal(found["error", "id"]["count"], 2, "count")
    content = file(M, GOOD)
    # the second event's only id becomes one of the first's
    finds(patched(content, 104 + 16, "Q", EVENTS[0][3][0]), ("error", "id"))


@test
def bodies_shorter_than_their_content_are_found():
    finds(file(M, GOOD + [M.record(9, USER, M.u64(11, 0x400123))]), ("error", "body"))
    long_chain = M.record(9, USER, M.u64(11, 0x400123) + M.u32(100, 100) + M.u64(START_NS + 1)
                          + M.u32(0, 0) + M.u64(1) + M.u64(1000))
    found = finds(file(M, GOOD + [long_chain]), ("error", "body"))
    check("offset" in found["error", "body"], "it has no place")


@test
def sizes_are_multiples_of_8():
    odd = M.pack("IHH", 9, USER, 8 + 57) + sample(5)[8:] + bytes(1)
    finds(file(M, GOOD + [odd]), ("error", "alignment"))
    # An EVENT_UPDATE with a name, and one that is too short for its kind.
    update = M.u64(2, 11) + b"a name"
    finds(file(M, GOOD + [M.pack("IHH", 78, 0, 8 + len(update)) + update]), ("error", "alignment"))
    short = M.pack("IHH", 78, 0, 12) + M.u32(3)
    finds(file(M, GOOD + [short]), ("error", "alignment"), ("error", "body"), ("error", "damage"))


@test
def lists_of_cpus_may_have_any_size():
    """perf 4.5 did not round up the sizes of CPU_MAP and of an EVENT_UPDATE with CPUs."""
    for order in "<>":
        m = Maker(order)
        cpus = m.pack("HHHHH", 0, 3, 0, 1, 2)
        rows = [m.pack("IHH", 74, 0, 8 + len(cpus)) + cpus,
                m.pack("IHH", 78, 0, 24 + len(cpus)) + m.u64(3, 11) + cpus]
        finds(file(m, rows))


@test
def damage_is_an_error_with_its_offset():
    content = file(M, GOOD + [ROUND])
    end = content.rindex(ROUND + ROUND) + 12
    finds(patched(content, end, "HH", 0, 3), ("error", "damage"))
    check(("error", "damage") in findings(file(M, GOOD, finished=False)), "unfinished is not told")


@test
def sections_outside_of_the_file_and_overlapping_ones_are_found():
    content = file(M, GOOD)
    data_at, data_size = struct.unpack_from("<QQ", content, 40)
    table = data_at + data_size
    found = findings(patched(content, table, "QQ", 1 << 40, 16))
    check(("error", "section-bounds") in found, found)
    found = findings(patched(content, table, "QQ", data_at + 8, 16))
    check(("error", "section-overlap") in found, found)
    attrs_at = struct.unpack_from("<Q", content, 24)[0]
    found = findings(patched(content, attrs_at + 112, "QQ", attrs_at, 8))
    check(("error", "section-overlap") in found, found)


@test
def one_truncation_is_one_finding():
    content = file(M, GOOD)
    data_at, data_size = struct.unpack_from("<QQ", content, 40)
    table = data_at + data_size
    for length in (len(content) - 1, table + 16 * len(features(M)), table + 40, table, table - 20,
                   data_at):
        found = json.loads(verify(content[:length], "--json").stdout)[0]
        errors = [f["text"] for f in found["findings"] if f["severity"] == "error"]
        equal(len(errors), 1, f"errors of the first {length} bytes, {errors}")


@test
def features_shorter_than_their_content_are_found():
    content = file(M, GOOD)
    at = content.rindex(features(M)[11][:4] + features(M)[11][4:8])
    finds(patched(content, at, "I", 0x7FFFFFFF), ("error", "feature"))


@test
def records_older_than_a_finished_round_are_reported():
    rows = GOOD + [sample(30), ROUND, sample(5), sample(31)]
    found = finds(file(M, rows), ("warning", "order"))
    equal(found["warning", "order"]["count"], 1, "count")
    finds(file(M, GOOD + [sample(30), ROUND, sample(25)]))


@test
def samples_without_a_name_or_a_mapping_are_reported_by_process():
    found = finds(file(M, GOOD + [sample(30, 200, 200)]), ("warning", "comm"), ("warning", "mapping"))
    check("process 200" in found["warning", "comm"]["text"], found)
    found = finds(file(M, GOOD + [sample(30, ip=0x900000)]), ("warning", "mapping"))
    check("process 100 (sh)" in found["warning", "mapping"]["text"], found)
    many = [sample(30 + i, 1000 + i // 3, 1000 + i // 3) for i in range(90)]
    told = json.loads(verify(file(M, GOOD + many), "--json").stdout)[0]["findings"]
    equal(len(told), 22, "findings")
    check(told[10]["text"].startswith("60 samples of 20 further processes"), told[10]["text"])


@test
def a_sample_before_its_side_band_in_the_file_but_not_in_time_is_no_finding():
    finds(file(M, [sample(10), comm(100, 100), mapping(100), sample(20), ROUND]))


@test
def a_build_id_flag_without_a_build_id_is_reported():
    flagged = M.record(10, USER | 1 << 14, mapping(100, 0x500000)[8:])
    finds(file(M, GOOD + [flagged]), ("warning", "build-id"))


@test
def losses_are_reported():
    lost = M.record(2, 0, M.u64(11, 3) + M.trailer(0, 0, START_NS + 50, 0, 11))
    samples = M.record(13, 0, M.u64(5) + M.trailer(0, 0, START_NS + 60, 0, 21))
    text = verify(file(M, GOOD + [lost, samples])).stdout.decode()
    check("warning: 3 records were lost" in text and "warning: 5 samples were lost" in text, text)


@test
def unknown_record_types_are_noted():
    finds(file(M, GOOD + [M.record(60, 0, b""), M.record(100, 0, b"")]), ("note", "type"))


if __name__ == "__main__":
    main()
