#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Follow() streams what a session records: the past, then live. perf reads the stream, and a snapshot of the same
window has the same samples."""

import json
import os
import re
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, other_boot, session  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Fault, Varlink, fault  # noqa: E402
from workload import need_root, scratch, spinning  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

READ, ADMIN = 64301, 64302
GROUPS = {"profd-read": READ, "profd-admin": ADMIN}
READER = (64311, 64311, [READ])
CONFIG = session(Event="cpu-clock", Frequency=199) + session("folder", Event="cpu-clock", Frequency=99, Layout="directory") + \
    session("secret", Event="cpu-clock", Frequency=49, CallGraph="dwarf")
STOPPED, DOWN, DELETED, REBOOTED, ASLEEP = 0, 2, 7, 9, 14
ALL_CPUS = 0xffffffff
SAMPLE = 9
MARK = 0x70726f66642d6d6b
LIMIT_S = 60
SLOW_BYTES = 1 << 20  # more than sockets hold


class Run(Scene):
    config, groups = CONFIG, GROUPS

    @classmethod
    def begin(cls, enter):
        super().begin(enter)
        time.sleep(1)


def connected(user=None, daemon=None):
    return Varlink((daemon or Run.get().daemon).control(), timeout=LIMIT_S, user=user)


def now_us():
    return time.time_ns() // 1000


class Stream:
    """What Follow() sends; marks are kept as they come."""

    def __init__(self, user=None, daemon=None, **wish):
        self.v = connected(user, daemon)
        self.v.send("Follow", wish, upgrade=True)
        self.boot = self.v.reply()[0]["bootId"]
        self.data, self.v.buffer = self.v.buffer, b""
        self.at = 16
        self.watermarks, self.gaps, self.samples = [], [], []

    def more(self):
        data = self.v.socket.recv(1 << 20)
        self.data += data
        while len(self.data) >= self.at + 8:
            kind, _, size = struct.unpack_from("<IHH", self.data, self.at)
            if len(self.data) < self.at + size:
                break
            if kind == 65 and struct.unpack_from("<Q", self.data, self.at + 8)[0] == MARK:
                name = self.data[self.at + 16:self.at + 32].rstrip(b"\0")
                if name == b"profd:watermark":
                    self.watermarks.append(struct.unpack_from("<QQ", self.data, self.at + 32))
                else:
                    self.gaps.append(struct.unpack_from("<QQIIQ", self.data, self.at + 32))
            elif kind == SAMPLE:
                self.samples.append(self.data[self.at:self.at + size])
            check(size >= 8, f"a record of {size} bytes at {self.at}")
            self.at += size
            if kind == 66:
                self.at += struct.unpack_from("<I", self.data, self.at - size + 8)[0]
        return data

    def to_end(self):
        while self.more():
            pass
        self.v.close()
        return self

    def until(self, fact):
        end = time.monotonic() + LIMIT_S
        while not fact(self):
            check(time.monotonic() < end and self.more(), "the stream never said so")
        return self


def samples(data=None, path=None):
    """perf's lines about the samples, sorted."""
    done = subprocess.run(["perf", "script", "--ns", "-F", "comm,pid,tid,cpu,time,event,ip,sym,dso", "-i", path or "-"],
                          input=data, capture_output=True, check=False, timeout=LIMIT_S)
    equal(done.returncode, 0, f"perf script: {done.stderr.decode(errors='replace')}")
    return sorted(done.stdout.decode(errors="replace").split("\n\n"))


def comparable(sample):
    """A sample of the load as a whole, of others only when and where: their files come and go meanwhile."""
    if not sample.startswith("spin "):
        return sample.split("\n")[0]
    # perf makes a file of its own vdso, and sometimes finds no names there.
    return re.sub(r"([0-9a-f]+) \S+ \(\[vdso\]\)", r"\1 ([vdso])", sample)


def same_samples(got, want):
    got, want = [comparable(sample) for sample in got], [comparable(sample) for sample in want]
    more, less = sorted(set(got) - set(want)), sorted(set(want) - set(got))
    check(not more and not less, f"{len(more)} are in the stream alone, first {more[:1]}, and {len(less)} not in it, first {less[:1]}")
    equal(len(got), len(want), "the number of samples of the stream")


def stamp(sample):
    return int("".join(re.search(r" (\d+)\.(\d{9}): ", sample).groups()))


def snapshot(v, **wish):
    return [r for r in v.call("Snapshot", **wish) if r["snapshot"]][-1]["snapshot"]["path"]


def rotated_window(name="default"):
    """A window over two finished segments."""
    with connected() as v:
        since = now_us()
        time.sleep(0.5)
        v.one("Rotate", session=name)
        time.sleep(0.5)
        until = now_us()
        v.one("Rotate", session=name)
    return since, until


def same_as_snapshot(name):
    since, until = rotated_window(name)
    with connected() as v:
        want = samples(path=snapshot(v, session=name, sinceUsec=since, untilUsec=until))
    got = Stream(session=name, sinceUsec=since, untilUsec=until).to_end()
    check(len(want) > 20, f"only {len(want)} samples")
    same_samples(samples(got.data), want)
    check(got.watermarks, "there is no watermark")


@test
def window_has_the_samples_of_a_snapshot():
    same_as_snapshot("default")


@test
def directory_has_the_samples_of_a_snapshot():
    same_as_snapshot("folder")


@test
def window_over_a_finished_and_the_open_segment_is_whole():
    with connected() as v:
        since = now_us()
        time.sleep(0.5)
        v.one("Rotate", session="default")
        time.sleep(0.5)
        until = now_us()
        want = samples(path=snapshot(v, session="default", sinceUsec=since, untilUsec=until))
    got = Stream(session="default", sinceUsec=since, untilUsec=until).to_end()
    check(len(want) > 20, f"only {len(want)} samples")
    same_samples(samples(got.data), want)


@test
def stream_goes_on_and_a_later_one_begins_at_its_watermark():
    begin = now_us()
    first = Stream(sinceUsec=begin).until(lambda s: len(s.watermarks) > 2)
    first.v.close()
    at = first.watermarks[-1]
    until = now_us()
    rest = Stream(position=f"{at[0]:x}:{first.boot}", untilUsec=until).to_end()
    whole = Stream(sinceUsec=begin, untilUsec=until).to_end()
    lines = [line for line in samples(first.data) if line.strip() and stamp(line) < at[0]]
    same_samples(lines + samples(rest.data), samples(whole.data))


@test
def deleted_segments_are_a_gap():
    since, until = rotated_window()
    with connected() as v:
        v.one("Vacuum", maxSegments=1)
        v.one("Rotate", session="default")
    got = Stream(sinceUsec=since, untilUsec=now_us()).to_end()
    check(any(gap[3] == DELETED for gap in got.gaps), f"the gaps are {got.gaps} of {since} to {until}")
    try:
        Stream(sinceUsec=since, untilUsec=since + 1000).to_end()
    except Fault as refusal:
        equal((refusal.name, refusal.parameters["reason"]), ("WindowUnavailable", "deleted"), "the refusal of a window of which all was deleted")
    else:
        check(False, "a window of which all was deleted is no refusal")


@test
def time_before_a_boot_is_a_gap_with_its_reason():
    need_root()
    with scratch() as path, spinning():
        since = now_us()
        with Daemon(path, config=CONFIG) as daemon:
            time.sleep(1)
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        with Daemon(path, config=CONFIG, prefix=other_boot(path)) as daemon:
            time.sleep(1)
            gaps = Stream(daemon=daemon, sinceUsec=since, untilUsec=now_us()).to_end().gaps
            whole = [gap for gap in gaps if gap[2] == ALL_CPUS]
            equal([gap[3] for gap in whole], [REBOOTED, DOWN], f"reasons of {gaps}")
            equal((whole[0][0] + whole[0][4]) // 1000, since, "the beginning of the first gap")
            equal(whole[0][1], whole[1][0], "the end of the first gap")


@test
def time_until_a_stopped_session_starts_again_is_a_gap_with_its_reason():
    with connected() as v:
        v.one("Stop", session="folder")
        since = now_us()
        stream = Stream(session="folder", sinceUsec=since, untilUsec=since + 3_000_000)
        time.sleep(1)
        v.one("Start", session="folder")
    gaps = [gap for gap in stream.to_end().gaps if gap[2] == ALL_CPUS]
    equal([gap[3] for gap in gaps], [STOPPED], f"reasons of {gaps}")
    check(gaps[0][1] - gaps[0][0] > 900_000_000, f"the gap is {gaps[0]}")


def set_clock(path, step_s, slept_s=0):
    """As if the clock had been set by so much while the segment was recorded, and the machine had slept so long before it."""
    with open(path.removesuffix(".perf.data") + ".json", "r+", encoding="utf-8") as f:
        manifest = json.load(f)
        for anchor in manifest["anchors"]:
            anchor[1] += step_s * 10**9
            anchor[2] += slept_s * 10**9
        f.seek(0)
        json.dump(manifest, f)
        f.truncate()


@test
def window_goes_on_behind_a_clock_that_was_set_and_set_back():
    need_root()
    config = session(Event="cpu-clock", Frequency=199, RotateIntervalSec="1s")
    with scratch() as path, spinning():
        since = now_us()
        with Daemon(path, config=config) as daemon:
            daemon.wait_for_segments(5)
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        until = now_us()
        segments = daemon.segments()
        times = [[s.time for s in recording.samples(segment)] for segment in segments]
        for segment, step_s in zip(segments[1:], (3600, 7200, -3600)):
            set_clock(segment, step_s)
        with Daemon(path, config=config) as daemon:
            got = Stream(daemon=daemon, sinceUsec=since, untilUsec=until).to_end()
        got = sorted(stamp(line) for line in samples(got.data) if line.strip())
        equal(got, sorted(times[0] + [t for part in times[4:] for t in part]), "times of the samples")


@test
def sleep_of_the_machine_is_a_gap_before_the_samples_that_follow_it():
    """Nothing can sleep here: the manifests say that it did, for longer than the machine has run."""
    need_root()
    slept_s = int(time.monotonic()) + 3600
    config = session(Event="cpu-clock", Frequency=199, RotateIntervalSec="1s")
    with scratch() as path, spinning():
        since = now_us()
        with Daemon(path, config=config) as daemon:
            daemon.wait_for_segments(4)
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        until = now_us()
        segments = daemon.segments()
        times = [[s.time for s in recording.samples(segment)] for segment in segments]
        for i, segment in enumerate(segments):
            set_clock(segment, 0 if i > 1 else -slept_s, slept_s if i > 1 else 0)
        with Daemon(path, config=config) as daemon:
            got = Stream(daemon=daemon, sinceUsec=since - slept_s * 10**6, untilUsec=until).to_end()
            middle = until - slept_s * 10**6 // 2
            try:
                Stream(daemon=daemon, sinceUsec=middle, untilUsec=middle + 10**6).to_end()
            except Fault as refusal:
                equal((refusal.name, refusal.parameters["reason"]), ("WindowUnavailable", "asleep"), "the refusal of a window of the sleep")
            else:
                check(False, "a window of the sleep is no refusal")
            part = Stream(daemon=daemon, sinceUsec=since - slept_s * 10**6, untilUsec=middle).to_end()
    equal(sorted(stamp(line) for line in samples(got.data) if line.strip()), sorted(t for part in times for t in part), "times of the samples")
    asleep = [gap for gap in got.gaps if gap[3] == ASLEEP]
    equal(len(asleep), 1, f"gaps of a sleep in {got.gaps}")
    begin, end, cpu, _, offset = asleep[0]
    equal(cpu, ALL_CPUS, "CPUs of the sleep")
    # Each clock is measured a moment after the one before.
    check(abs((end - begin) % 2**64 - slept_s * 10**9) < 10**7, f"the sleep lasts {(end - begin) % 2**64} ns, not {slept_s} s")
    check(max(times[1]) - 10**9 < end <= min(times[2]), f"it ends at {end}, between {max(times[1])} and {min(times[2])}")
    # By the wall clock it lies between the two segments.
    check(abs((begin + offset) % 2**64 - (max(times[1]) + offset - slept_s * 10**9)) < 10**9, f"it begins at {(begin + offset) % 2**64}")
    halves = [gap for gap in part.gaps if gap[2] == ALL_CPUS and gap[1] + gap[4] > (since - slept_s * 10**6) * 1000 + 10**10]
    equal([gap[3] for gap in halves], [ASLEEP], f"reasons of what lies behind the samples: {part.gaps}")
    equal([(gap[1] + gap[4]) % 2**64 // 1000 for gap in halves], [middle], f"the end of a window within the sleep: {part.gaps}")


def spans(stream):
    times = [monotonic for monotonic, _ in stream.watermarks]
    return [(b - a) / 1e9 for a, b in zip(times, times[1:])]


@test
def client_says_how_often_it_wants_what_is_new():
    need_root()
    config = "[Profd]\nFlushIntervalSec=1h\n" + session(Event="cpu-clock", Frequency=19, CallGraph="fp")
    with scratch() as folder, Daemon(folder, config=config) as daemon, spinning():
        begin = now_us()
        # A sweep that comes a quarter early is taken, and a busy machine makes single ones late, but not all.
        for every_us, least_s in ((2_500_000, 2.75), (10_000, 0.5)):
            stream = Stream(daemon=daemon, sinceUsec=begin, everyUsec=every_us).until(lambda s: len(s.watermarks) > 4)
            stream.v.close()
            # The first is of the time before, and the second may be that of a sweep that had begun.
            check(sum(spans(stream)[2:4]) >= least_s, f"each {every_us} µs: {spans(stream)} s")
        rare = Stream(daemon=daemon, sinceUsec=begin, everyUsec=30_000_000).until(lambda s: s.watermarks)
        often = Stream(daemon=daemon, sinceUsec=begin).until(lambda s: len(s.watermarks) > 2)
        rare.until(lambda s: s.watermarks[-1][0] >= often.watermarks[-1][0])
        check(max(spans(rare)) < 10, f"beside another: {spans(rare)} s")
        for stream in (rare, often):
            stream.v.close()
        with connected(daemon=daemon) as v:
            v.send("Follow", {"everyUsec": -1}, upgrade=True)
            with fault("InvalidParameter"):
                v.reply()


@test
def window_that_ends_before_the_recording_begins_is_refused_or_a_gap():
    """Until the first sweep nobody knows whether something is still to come."""
    need_root()
    config = "[Profd]\nFlushIntervalSec=1h\n" + session(Event="cpu-clock", Frequency=19)
    wish = {"sinceUsec": now_us() - 20_000_000, "untilUsec": now_us() - 10_000_000}
    with scratch() as folder, Daemon(folder, config=config) as daemon, connected(daemon=daemon) as v:
        for i in range(20):
            v.one("Start", session=f"late{i}", settings={"Event": "cpu-clock", "Frequency": "19"})
            time.sleep(i / 100)
            try:
                stream = Stream(daemon=daemon, session=f"late{i}", **wish).to_end()
            except Fault as refusal:
                equal(refusal.name, "WindowUnavailable", "the refusal")
            else:
                equal((samples(stream.data), len(stream.gaps)), ([""], 1), "what is in the stream")
            v.one("Stop", session=f"late{i}")


@test
def sensitive_session_is_refused():
    with connected(READER) as v:
        v.send("Follow", {"session": "secret"}, upgrade=True)
        with fault("PermissionDenied"):
            v.reply()
    with connected() as v:
        v.send("Follow", {"session": "none"}, upgrade=True)
        with fault("NoSuchSession"):
            v.reply()


@test
def many_followers_get_the_same_beside_one_who_does_not_read():
    begin = now_us()
    since, until = rotated_window()
    large = {"session": "secret", "sinceUsec": begin, "untilUsec": now_us()}
    slow, live = Stream(**large), Stream()
    got = [None] * 10

    def follow(i):
        got[i] = Stream(sinceUsec=since, untilUsec=until).to_end().data

    threads = [threading.Thread(target=follow, args=(i,), daemon=True) for i in range(len(got))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    want = samples(got[0])
    check(len(want) > 20 and all(got), f"{len(want)} samples")
    sizes = {len(data) for data in got}
    equal(len(sizes), 1, f"streams of one window: {sizes}")
    live.until(lambda s: len(s.watermarks) > 2)
    live.v.close()
    with connected() as v:
        lost = {s["name"]: s["lost"] for s in v.members("ListSessions", "session")}
    equal(lost["default"], 0, "lost samples")
    # There was more for the slow one than sockets hold, and it still gets all of it.
    whole = Stream(**large).to_end()
    check(len(whole.data) > SLOW_BYTES, f"the slow one has only {len(whole.data)} bytes to read")
    got, want = slow.to_end().samples, whole.samples
    check(want and got == want, f"{len(got)} samples of the slow one, {len(want)} of one who reads at once")


if __name__ == "__main__":
    main()
