# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings through every container and back, with perf and `profctl info` as judges.

A recording becomes a file, that a folder, that a stream, and that a file again, compressed and not
in turns; --long makes all six of each directly, too. What `perf script` and `perf report` print of
each must be what they print of the original, byte for byte, and so must what `profctl info` counts
(which reads what this perf cannot).

perf 6.1 misreads some streams, its own as much as ours; stream_trouble() says which. The file that
is made of such a stream is judged all the same.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check, equal  # noqa: E402

PROFCTL = build_path("client", "profctl")
LONG = bool(os.environ.get("PROFD_TEST_LONG"))
LIMIT_S = 60

TRACEPOINT = 2
CALLCHAIN, BRANCH_STACK = 1 << 5, 1 << 11
SIDE_BAND = [
    f"--show-{kind}-events"
    for kind in ("task", "mmap", "switch", "namespace", "lost", "bpf", "cgroup", "text-poke")
]
# perf has it from the container, not from the records.
REPORT = ["--stdio", "-g", "none", "--no-children", "--no-branch-stack"]

# Records that only tell of the container, by type: HEADER_ATTR to FINISHED_ROUND, HEADER_FEATURE,
# and FINISHED_INIT, which fills a folder's empty `data`.
OF_THE_CONTAINER = {"64", "65", "66", "67", "68", "80", "82"}
STAT_CONFIG, EVENT_UPDATE = "75", "78"
# Features of the container, and those that a stream says by its records alone.
OWN_FEATURES = {"COMPRESSED", "DIR_FORMAT", "AUXTRACE"}
RECORDS_IN_STREAMS = {"BRANCH_STACK", "STAT", "TRACING_DATA", "BUILD_ID"}
OWN_ENVIRONMENT = {"compressed", "dir_version", "auxtrace"}
STREAM_ENVIRONMENT = {"branch_stack", "stat", "tracing_data_bytes", "build_ids"}


def run(command, stdin=None, stdout=subprocess.PIPE):
    """The command's end; stdin is a path."""
    with open(stdin or os.devnull, "rb") as source:
        return subprocess.run(command, stdin=source, stdout=stdout, stderr=subprocess.PIPE,
                              timeout=LIMIT_S, check=False)


def info(path):
    done = run([PROFCTL, "info", "--json=short", path])
    check(done.returncode in (0, 8), f"info {path}: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)


def perf(verb, path, options, stream):
    """The output of perf for a recording, without the parts that change by themselves; None: it cannot read it."""
    done = run(["perf", verb, "-f", "-i", "-" if stream else path, *options],
               path if stream else None)
    if done.returncode != 0 or b"failed to process" in done.stderr:
        return None
    return b"\n".join(line for line in done.stdout.split(b"\n") if not line.startswith(b"# ("))


def stats(path, stream):
    """The counts of perf report --stats by type."""
    counts = {}
    for line in (perf("report", path, ["--stats"], stream) or b"").decode().splitlines():
        words = line.split()
        if len(words) >= 3 and words[1] == "events:":
            if words[0] not in ("TOTAL", "COMPRESSED", "FINISHED_ROUND", "FINISHED_INIT"):
                counts[words[0]] = counts.get(words[0], 0) + int(words[2])
    return counts


def stream_trouble(facts):
    """Why perf 6.1 misreads a recording as a stream, or None."""
    events = facts["events"]
    if facts["byte_order"] != sys.byteorder:
        return "perf does not swap what a stream says in its header records"
    if facts["auxtrace_bytes"]:
        return "perf loses its place behind AUX area data in a stream"
    if any(e["sample_type"] & (CALLCHAIN | BRANCH_STACK) == CALLCHAIN | BRANCH_STACK
           for e in events):
        return "perf joins call chains of LBR with samples that it has freed"
    if any(e["n_ids"] == 0 for e in events):
        return "perf takes names from EVENT_UPDATE alone, which needs an id"
    return None


class Original:
    """A recording, and what is said of it."""

    def __init__(self, path):
        self.path = path
        self.facts = info(path)
        self.stream = self.facts["mode"] == "pipe"
        self.fields = []
        # For these, perf script prints other columns of a stream unless told.
        if any(e["type"] == TRACEPOINT for e in self.facts["events"]):
            self.fields = ["-F", "+ip,+sym,+dso,+symoff"]
        # And perf report decides on its columns before it has read the events of a stream.
        self.columns_vary = not self.stream and all(
            e["type"] == TRACEPOINT for e in self.facts["events"])
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            script = pool.submit(perf, "script", path, SIDE_BAND + self.fields, self.stream)
            report = pool.submit(perf, "report", path, REPORT, self.stream)
            counts = pool.submit(stats, path, self.stream)
            self.script, self.report = script.result(), report.result()
            self.stats = counts.result() if self.report is not None else None
        self.trouble = stream_trouble(self.facts)


def convert(source, target, layout, *options):
    """By way of a name, or for a stream by way of stdin and stdout. Returns the features that it
    said were left out."""
    if os.path.isdir(target):
        shutil.rmtree(target)
    elif os.path.exists(target):
        os.unlink(target)
    from_stream = not os.path.isdir(source) and info_mode(source) == "pipe"
    command = [PROFCTL, "convert", "-" if from_stream else source,
               "-" if layout == "pipe" else target, *options]
    if layout == "directory":
        command.append("--layout=directory")
    if layout == "pipe":
        with open(target, "wb") as out:
            done = run(command, source if from_stream else None, out)
    else:
        done = run(command, source if from_stream else None)
    check(done.returncode == 0,
          f"{' '.join(command)}: {done.returncode} {done.stderr.decode(errors='replace')}")
    return set(re.findall(r"cannot hold the feature (.*) of '", done.stderr.decode(errors="replace")))


def info_mode(path):
    with open(path, "rb") as source:
        size = source.read(16)[8:]
    return "pipe" if size in (b"\x10" + bytes(7), bytes(7) + b"\x10") else "file"


def same_text(got, want, what):
    if got == want:
        return
    check(got is not None, f"{what}: perf cannot read it")
    got, want = got.split(b"\n"), want.split(b"\n")
    where = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b),
                 min(len(got), len(want)))
    check(False, f"{what}: {len(got)} lines instead of {len(want)}, line {where + 1} is\n"
                 f"{got[where:where + 1]!r}, not\n{want[where:where + 1]!r}")


def same_members(got, want, what):
    for key in sorted(got.keys() | want.keys()):
        a, b = got.get(key), want.get(key)
        check(a == b, f"{what}: {key} is {str(a)[:300]}, not {str(b)[:300]}")


def records_of(facts, dropped):
    return {t: n for t, n in facts["records"].items() if t not in OF_THE_CONTAINER | dropped}


def without(environment, ignored):
    """The members that count; tracing data is padded in a stream."""
    kept = {k: v for k, v in environment.items() if k not in ignored}
    if "tracing_data_bytes" in kept:
        kept["tracing_data_bytes"] = (kept["tracing_data_bytes"] + 7) // 8 * 8
    return kept


def same_facts(original, path, what, left_out):
    """The output of info without the lines on the container and on things that a stream cannot hold."""
    was, now = original.facts, info(path)
    stream = "pipe" in (was["mode"], now["mode"])
    dropped = {EVENT_UPDATE} if now["mode"] == "pipe" else set()
    equal(records_of(now, dropped), records_of(was, dropped), f"{what}: records")
    for key in ("byte_order", "n_samples", "unmatched_samples", "first_sample_time",
                "last_sample_time", "distinct_sample_pids", "distinct_sample_tids", "lost_events",
                "lost_samples", "throttled", "auxtrace_bytes", "hostname", "cmdline", "version"):
        equal(now.get(key), was.get(key), f"{what}: {key}")
    equal(len(now["events"]), len(was["events"]), f"{what}: events")
    varying = {"attr_size": 0}
    # perf stat has no sample_type in a stream, where perf script would check it.
    if STAT_CONFIG in was["records"]:
        varying["sample_type"] = 0
    for old, new in zip(was["events"], now["events"]):
        same_members({**new, **varying}, {**old, **varying}, f"{what}: event")
    ignored = OWN_FEATURES | left_out | (RECORDS_IN_STREAMS if stream else set())
    # Old streams have the names of events in records that are no feature.
    if "65" in was["records"]:
        ignored.add("EVENT_DESC")
    if was["n_build_ids"] == 0:
        ignored.add("BUILD_ID")
    equal(set(map(str, now["features"])) - ignored, set(map(str, was["features"])) - ignored,
          f"{what}: features")
    ignored = OWN_ENVIRONMENT | (STREAM_ENVIRONMENT if stream else set())
    if was["n_build_ids"] == 0:
        ignored.add("build_ids")
    if left_out:
        ignored |= was["environment"].keys() - now["environment"].keys()
    same_members(without(now["environment"], ignored), without(was["environment"], ignored),
                 f"{what}: environment")


def judge(original, path, layout, what, left_out, thorough):
    same_facts(original, path, what, left_out)
    stream = layout == "pipe"
    if stream and original.trouble:
        return
    if original.script is not None:
        same_text(perf("script", path, SIDE_BAND + original.fields, stream), original.script,
                  f"perf script of {what}")
    if not thorough or (stream and original.columns_vary):
        return
    if original.report is not None:
        same_text(perf("report", path, REPORT, stream), original.report, f"perf report of {what}")
        if not stream and not original.stream:
            equal(stats(path, stream), original.stats, f"perf report --stats of {what}")


def judge_all(original, judged):
    """On all CPUs, since perf takes much longer than a conversion."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(judge, original, *one) for one in judged]:
            done.result()


def round_trip(path, folder):
    """Fails by check() where something is not what it was."""
    original = Original(path)
    stages = [("file", "--compress=zstd"), ("directory", "--compress=none"),
              ("pipe", "--compress=zstd:1"), ("file", "--compress=none")]
    source, left_out, judged = path, set(), []
    for number, (layout, compress) in enumerate(stages):
        target = os.path.join(folder, f"{number}.{layout}")
        left_out = left_out | convert(source, target, layout, compress)
        judged.append((target, layout, f"{layout} {number + 1}", left_out, LONG or number == 3))
        source = target
    for layout in ("file", "directory", "pipe") if LONG else ():
        for compress in ("none", "zstd:19"):
            target = os.path.join(folder, f"{layout}-{compress}")
            left_out = convert(path, target, layout, f"--compress={compress}")
            judged.append((target, layout, f"{layout}, {compress}", left_out, True))
    judge_all(original, judged)
    return original
