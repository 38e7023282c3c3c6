#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Windows cut out of what a storm of short processes left, over rotations, a killed recorder and a
restart of the daemon: each snapshot holds the very samples that perf script shows of the segments
in that window, with the stacks, names and files they have there."""

import collections
import contextlib
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import CPUS, LONG, load, need_root, now_ns, run_load, scratch  # noqa: E402
from tap import build_path, check, equal, main, test  # noqa: E402

TOOL = build_path("tests", "integration", "snapshot-tool")
WINDOWS = 100 if LONG else 12
SECONDS = 6 if LONG else 2
HZ = 1999
NAMES = ("default", "folder")
# How long after it says that it records a daemon may lack names of what ran before it, and which part
# of all samples these may be.
NAMELESS_NS, NAMELESS_PART = 2_000_000_000, 0.05
AT_ONCE = 20
ADMIN = 64402
CONFIG = session(Frequency=HZ, RotateIntervalSec="1s", CallGraph="unwind:4096") + \
    session("folder", Frequency=HZ, RotateIntervalSec="1s", CallGraph="fp", Layout="directory", Compress="none")
Sample = collections.namedtuple("Sample", "time cpu pid tid ip comm dso")


def read(recordings):
    """Every sample as perf script shows it. It shows addresses of stacks as offsets into whatever is
    mapped there, so these are compared as profctl reads them."""
    return sorted(Sample(r.time, r.cpu, r.pid, r.tid, r.ip, r.comm, r.dso)
                  for r in recording.rows(recordings))


def stacks(path):
    return [(r["time"], r["cpu"], r["pid"], r["tid"], r["ip"], tuple(r["chain"]))
            for r in recording.records(path, "SAMPLE")]


def sets(samples):
    return sorted(s[:5] for s in samples)


class Run(Scene):
    """Two lives of a daemon under a storm, its recorder killed in the first, for all tests."""

    samples, stacks, live, starts = {}, {}, [], []

    @classmethod
    def begin(cls, enter):
        cls.folder = enter(scratch())
        for life in range(2):
            begin = now_ns()
            cls.daemon = enter(Daemon(cls.folder, config=CONFIG))
            cls.starts.append((begin, now_ns()))
            run_load("storm", cls.folder, SECONDS)
            cls.look()
            if life == 0:
                cls.break_off()
            equal(cls.daemon.stop(), 0, f"status of profd ({cls.daemon.log()[-1000:]})")
        for name in NAMES:
            cls.samples[name] = read(cls.daemon.segments(name))
            cls.stacks[name] = sorted(s for path in cls.daemon.segments(name) for s in stacks(path))

    @classmethod
    def break_off(cls):
        """Its segment is recovered by the recorder that takes over."""
        mark, old = cls.daemon.mark(), cls.daemon.recorder()
        begin = now_ns()
        os.kill(old, signal.SIGKILL)
        cls.daemon.wait_for_log("Recording ", begin=mark)
        cls.starts.append((begin, now_ns()))
        run_load("storm", cls.folder, SECONDS)

    @classmethod
    def look(cls):
        """Snapshots of the running daemon, that end just now."""
        with Varlink(cls.daemon.control()) as v:
            for name in NAMES:
                begin = now_ns()
                told = v.one("Snapshot", session=name, lastUsec=1_500_000)["snapshot"]
                cls.live.append((name, begin, now_ns(), told))


def cut(store, name, windows, *options):
    """The output of the tool for each window (name, since, until)."""
    done = subprocess.run([TOOL, *options, store, name, *(str(w) for window in windows for w in window)],
                          capture_output=True, text=True, check=False, timeout=600)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    check(len(lines) == len(windows), f"{done.returncode}: {done.stdout[-500:]} {done.stderr[-1000:]}")
    return lines


def agree(wanted, got):
    """Before a daemon has read /proc its segment lacks names that the one before it may have, and
    before it has read a file a build id that the next one has."""
    return (wanted.comm == got.comm or wanted.comm.startswith(":")) and \
        (wanted.dso in (got.dso, "[unknown]", got.dso + recording.MARK))


def compare(window, wanted, got):
    check(sets(wanted) == sets(got),
          f"{window}: {len(got)} samples instead of {len(wanted)}, as "
          f"{sorted(set(sets(wanted)) ^ set(sets(got)))[:3]}")
    other = [(w, g) for w, g in zip(sorted(wanted), sorted(got)) if (w.comm, w.dso) != (g.comm, g.dso)]
    wrong = [(w, g) for w, g in other if not agree(w, g)]
    check(not wrong, f"{window}: {len(wrong)} of {len(got)} samples are called otherwise, as {wrong[:3]}")
    # The next recorder writes the samples that the rings of a dead one hold, and finds no process there.
    late = [w for w, _ in other
            if not any(a - NAMELESS_NS <= w.time <= b + NAMELESS_NS for a, b in Run.starts)]
    check(not late, f"{window}: {len(late)} samples lack names long after a start, as {late[:3]}")
    check(len(other) <= NAMELESS_PART * len(Run.samples["default"]),
          f"{window}: {len(other)} of {len(got)} samples lack names, as {other[:3]}")


def random_windows(samples, count):
    first, last = samples[0].time, samples[-1].time
    source = random.Random(os.environ.get("PROFD_TEST_SEED", "snapshot"))
    windows = [("0", 0, 0), ("1", 0, first + 300_000_000), ("2", last - 300_000_000, 0)]
    while len(windows) < count:
        since = source.randrange(first, last)
        length = source.choice((1_000_000, 50_000_000, 400_000_000, 1_500_000_000, last - first))
        until = since + source.randrange(1, length)
        if any(since <= s.time < until for s in samples):
            windows.append((str(len(windows)), since, until))
    return windows


def windows_are_exact(name, *options):
    run = Run.get()
    samples = run.samples[name]
    windows = [(f"{name}-{w[0]}", *w[1:]) for w in random_windows(samples, WINDOWS // 2)]
    lines = cut(run.daemon.store, name, windows, *options)
    # perf script takes most of the time of a test: on all CPUs at once.
    with ThreadPoolExecutor(CPUS) as pool:
        shown = pool.map(lambda line: read(line[1]) if os.path.exists(line[1]) else None, lines)
    for window, line, got in zip(windows, lines, shown):
        wanted = [s for s in samples if window[1] <= s.time and (s.time < window[2] or window[2] == 0)]
        check("error" not in line[1] and "refused" not in line[1], f"{window}: {line}")
        equal(int(line[2]), len(wanted), f"samples of {window} as the engine counts them")
        compare(window, wanted, got)
        check(sorted(stacks(line[1])) == [s for s in run.stacks[name] if window[1] <= s[0] and
                                          (s[0] < window[2] or window[2] == 0)],
              f"{window}: other stacks")


@test
def windows_over_files_are_exact():
    windows_are_exact("default")


@test
def windows_over_folders_are_exact():
    windows_are_exact("folder", "--layout", "directory")


@test
def a_window_that_touches_now_is_exact():
    run = Run.get()
    equal(len(run.live), 2 * len(NAMES), "snapshots of the running daemon")
    for name, begin, end, told in run.live:
        got = read(told["path"])
        check(told["samples"] == len(got) and len(got) > 20, f"{told} has {len(got)} samples")
        equal(told["partial"], [], f"what {name} lacks")
        first, last = got[0].time, got[-1].time
        check(last > begin - 50_000_000, f"{name} ends {begin - last} ns before it was asked for")
        check(begin - 1_500_000_000 <= first and last <= end, f"{name} is {first} to {last}")
        compare((name, first, last), [s for s in run.samples[name] if first <= s.time <= last], got)


@test
def perf_and_verify_find_no_problem():
    run = Run.get()
    begin = run.samples["default"][len(run.samples["default"]) // 3].time
    lines = cut(run.daemon.store, "default", [("judged", begin, begin + 2_000_000_000)])
    recording.check_clean([lines[0][1]])


@test
def filters_keep_exactly_the_matching_samples():
    run = Run.get()
    samples = run.samples["default"]
    comm = collections.Counter(s.comm for s in samples if s.comm.startswith("storm-")).most_common(1)[0][0]
    pid = collections.Counter(s.pid for s in samples if s.pid > 0).most_common(1)[0][0]
    # A comm is known to a snapshot where a segment's own is not, for a moment after a start.
    for options, wants in ((("--comm", comm), lambda s: s.comm == comm),
                           (("--pid", str(pid)), lambda s: s.pid == pid),
                           (("--cpu", "1"), lambda s: s.cpu == 1),
                           (("--cpu", "0", "--comm", comm), lambda s: s.cpu == 0 and s.comm == comm)):
        name = "kept" + "".join(options)
        line = cut(run.daemon.store, "default", [(name, 0, 0)], *options)[0]
        compare(options, [s for s in samples if wants(s)], read(line[1]))


@test
def a_window_by_the_time_of_day_is_the_same():
    run = Run.get()
    samples = run.samples["default"]
    middle = samples[len(samples) // 2].time
    anchors = []
    for path in glob.glob(os.path.join(run.daemon.store, "sessions", "default", "*.json")):
        with open(path, encoding="utf-8") as f:
            anchors += json.load(f)["anchors"]
    mono, real = min(((a[0], a[1]) for a in anchors), key=lambda a: abs(a[0] - middle))
    offset = real - mono
    since, until = middle - 200_000_000, middle + 200_000_000
    line = cut(run.daemon.store, "default", [("day", since + offset, until + offset)], "--real")[0]
    got = {s[:5] for s in read(line[1])}
    # The clocks drift against each other by some microseconds a second.
    for s in samples:
        if since + 2_000_000 <= s.time < until - 2_000_000:
            check(s[:5] in got, f"{s} is not there")
    check(all(since - 2_000_000 <= s[0] < until + 2_000_000 for s in got), "something more is there")


@test
def a_full_disk_leaves_nothing_behind():
    run = Run.get()
    room = os.path.join(run.daemon.folder, "room")
    os.mkdir(room)
    page = os.sysconf("SC_PAGE_SIZE")
    size = sum(-(-os.path.getsize(p) // page) * page
               for p in glob.glob(os.path.join(run.daemon.store, "sessions", "default", "*")))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size + (1 << 17)}", "none", room], check=True)
    try:
        sessions = os.path.join(room, "sessions")
        os.mkdir(sessions)
        shutil.copytree(os.path.join(run.daemon.store, "sessions", "default"),
                        os.path.join(sessions, "default"))
        before = sorted(os.listdir(os.path.join(sessions, "default")))
        lines = cut(room, "default", [("full", 0, 0)], "--level", "0")
        check("error 4 code -28 " in lines[0][1], f"{lines}")
        equal(os.listdir(os.path.join(room, "snapshots")), [], "what is left of it")
        equal(sorted(os.listdir(os.path.join(sessions, "default"))), before, "the recording")
    finally:
        subprocess.run(["umount", room], check=True)


@test
def a_killed_snapshot_leaves_nothing_under_its_name():
    run = Run.get()
    folder = os.path.join(run.daemon.store, "snapshots")
    before = set(os.listdir(folder))
    for attempt in range(20 if LONG else 4):
        tool = subprocess.Popen([TOOL, run.daemon.store, "folder", f"killed-{attempt}", "0", "0"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # At any moment: before it begins, while it is built, when it is there.
        time.sleep(0.01 * (attempt % 10))
        tool.kill()
        tool.wait()
        cut(run.daemon.store, "default", [(f"after-{attempt}", 1, 0)])
        left = {n.split(".")[0] for n in os.listdir(folder) if n not in before}
        check(left <= {f"killed-{attempt}", f"after-{attempt}"}, f"left are {left}")
        whole = os.path.join(folder, f"killed-{attempt}.perf.data")
        if os.path.exists(whole):
            check(os.path.exists(whole.replace(".perf.data", ".json")), "it lacks its manifest")
            equal(len(recording.samples(whole)), len(run.samples["folder"]), "samples of one that was whole")
        for name in left:
            for suffix in (".perf.data", ".json"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, name + suffix))


@test
def many_simultaneous_snapshots_of_a_fast_recording_lose_nothing():
    need_root()
    config = session(Frequency=4999, BufferSize="4M", RotateIntervalSec="1s")
    with scratch() as folder, Daemon(folder, config=config, groups={"profd-admin": ADMIN}) as daemon:
        with load("spin", 0), load("spin", 1 % CPUS):
            time.sleep(2)
            begin = now_ns()
            # Of users of their own, since one may have 16 connections.
            calls = [Varlink(daemon.control(), user=(64410 + i, 64410, [ADMIN])) for i in range(AT_ONCE)]
            for v in calls:
                v.send("Snapshot", {"session": "default", "lastUsec": 1_000_000})
            told = [v.reply()[0]["snapshot"] for v in calls]
            for v in calls:
                v.close()
        equal(daemon.stop(), 0, f"status of profd ({daemon.log()[-1000:]})")
        everything = recording.samples(daemon.segments())
        for snapshot in told:
            got = recording.samples(snapshot["path"])
            first, last = min(s.time for s in got), max(s.time for s in got)
            check(last > begin - 50_000_000, f"{snapshot['name']} ends early")
            check(sorted(got) == sorted(s for s in everything if first <= s.time <= last),
                  f"{snapshot['name']} is not what was recorded")
        lost = []
        for path in glob.glob(os.path.join(daemon.store, "sessions", "default", "*.json")):
            with open(path, encoding="utf-8") as f:
                lost.append(json.load(f)["lost"])
        equal(sum(lost), 0, "lost samples")


@test
def a_missing_window_is_reported():
    run = Run.get()
    first = run.samples["default"][0].time
    lines = cut(run.daemon.store, "default", [("early", 1, first - 10_000_000_000)])
    check("error 1 " in lines[0][1] and "oldest 0" not in lines[0][1], f"{lines}")
    lines = cut(run.daemon.store, "nobody", [("none", 0, 0)])
    check("error 0 " in lines[0][1], f"{lines}")
    check(not glob.glob(os.path.join(run.daemon.store, "snapshots", ".*[a-z]*")), "something is left")


if __name__ == "__main__":
    main()
