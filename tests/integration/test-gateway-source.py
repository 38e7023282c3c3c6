#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The gateway's source: intervals follow each other without a gap or an overlap, each has the samples that perf counts in
the same window, also over a restart of profd, and one that is read again as a window of the past has them again."""

import glob
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from between import Between  # noqa: E402
from daemon import Daemon, look_anew, other_boot, session  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import need_root, scratch, spinning, wait_until  # noqa: E402
from tap import build_path, check, equal, main, test  # noqa: E402

TOOL = build_path("tests", "integration", "source-tool")
INTERVALS = 6
LENGTH_S = 1
READ = 64301
GROUPS = {"profd-read": READ, "profd-admin": 64302}
CONFIG = session(Event="cpu-clock", Frequency=199)
READER = ["setpriv", "--reuid=64311", f"--regid={READ}", "--clear-groups"]
LIMIT_S = 90
SECOND = 1_000_000_000


class Run(Scene):
    """One recording for all tests, with a restart of profd in the third interval, and no profd for a whole one."""

    config, groups = CONFIG, GROUPS

    @classmethod
    def begin(cls, enter):
        super().begin(enter)
        cache = os.path.join(cls.folder, "cache")
        os.mkdir(cache, 0o700)
        os.chown(cache, 64311, READ)
        # As the gateway runs: a user of its own whose group may read.
        with subprocess.Popen([*READER, TOOL, cls.daemon.control(), str(LENGTH_S), str(INTERVALS), cache], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as tool:
            timer = threading.Timer(LIMIT_S, tool.kill)
            timer.start()
            lines = [tool.stdout.readline().split(), tool.stdout.readline().split()]
            # As systemd restarts it; the keeper keeps nothing.
            cls.daemon.process.terminate()
            cls.daemon.process.wait()
            time.sleep(2 * LENGTH_S)
            cls.daemon = enter(Daemon(cls.folder, config=CONFIG, groups=GROUPS))
            rest, problems = tool.communicate()
            timer.cancel()
            equal(tool.returncode, 0, f"source-tool: {problems}")
        cls.lines = lines + [line.split() for line in rest.splitlines()]


def of(kind):
    return [line for line in Run.get().lines if line and line[0] == kind]


def recorded():
    """The live intervals of which there is anything; a slow restart takes a whole one."""
    return [line for line in of("live") if int(line[3]) < LENGTH_S * SECOND]


def counted_by_perf(since_ns, until_ns, daemon=None):
    """The samples of a snapshot of the window, by process name."""
    with Varlink((daemon or Run.get().daemon).control(), timeout=LIMIT_S) as v:
        replies = v.call("Snapshot", sinceUsec=since_ns // 1000, untilUsec=until_ns // 1000)
    path = [r for r in replies if r["snapshot"]][-1]["snapshot"]["path"]
    done = subprocess.run(["perf", "script", "-F", "comm,time", "-i", path], capture_output=True, check=True)
    counts = {}
    for line in done.stdout.decode(errors="replace").splitlines():
        comm = line.rsplit(None, 1)[0].strip()
        counts[comm] = counts.get(comm, 0) + 1
    return counts


def by_comm(line):
    """The samples of the series of a line, by process name; a name may have spaces, and was split there."""
    counts = {}
    for word in " ".join(line[8:]).split("|")[1:]:
        comm, _, rest = word.rpartition("=")
        counts[comm] = counts.get(comm, 0) + int(rest.split()[0])
    return counts


@test
def intervals_have_no_gap_and_no_overlap():
    live = of("live")
    equal(len(live), INTERVALS)
    for line in live:
        since, until = int(line[1]), int(line[2])
        equal(until - since, LENGTH_S * SECOND)
        equal(since % (LENGTH_S * SECOND), 0, "an interval begins at a multiple of its length")
    for before, after in zip(live, live[1:]):
        equal(before[2], after[1], "an interval begins where the last one ended")


@test
def each_interval_has_the_samples_that_perf_counts():
    for line in recorded():
        counts = counted_by_perf(int(line[1]), int(line[2]))
        equal(int(line[4]), sum(counts.values()), f"samples of {line[1]}")
        equal(by_comm(line).get("spin"), counts.get("spin"), f"samples of the load in {line[1]}")


@test
def window_of_the_past_has_the_samples_that_were_live():
    again = {line[1]: line for line in of("window")}
    equal(len(again) + len(of("error")), INTERVALS, "windows that were read")
    for live in recorded():
        window = again[live[1]]
        equal(window[1:8], live[1:8])
        # What else runs here comes and goes while profd is restarted, and then has two names.
        equal(by_comm(window).get("spin"), by_comm(live).get("spin"))


@test
def restart_of_profd_is_a_gap_and_no_loss():
    costs = dict(zip(of("connections")[0][::2], of("connections")[0][1::2]))
    check(int(costs["connections"]) >= 2, f"it connected {costs['connections']} times")
    missing = sum(int(line[3]) for line in of("live"))
    check(0 < missing < LENGTH_S * SECOND * INTERVALS, f"{missing} ns are missing")


def shift_clocks(path, ns, slept_ns=0, but=()):
    """As if profd had measured the wall clock of its segments otherwise, and the machine had slept before them; how many there are."""
    manifests = set(glob.glob(os.path.join(path, "**", "*.json"), recursive=True)) - set(but)
    changed = 0
    for name in manifests:
        with open(name, encoding="utf-8") as f:
            manifest = json.load(f)
        if manifest.get("anchors"):
            changed += 1
            manifest["anchors"] = [[anchor[0], anchor[1] + ns, anchor[2] + slept_ns] for anchor in manifest["anchors"]]
            with open(name, "w", encoding="utf-8") as f:
                json.dump(manifest, f)
    return changed


@test
def sample_at_an_edge_is_in_one_interval_however_the_clocks_are_measured():
    need_root()
    with scratch() as path, spinning():
        # 0.9 ms of two CPUs have a sample nearly always.
        config = session(Event="cpu-clock", Frequency=997)
        daemon = Daemon(path, config=config, groups=GROUPS)
        try:
            with subprocess.Popen([TOOL, daemon.control(), str(LENGTH_S), "4"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
                timer = threading.Timer(LIMIT_S, tool.kill)
                timer.start()
                live = [tool.stdout.readline().split() for _ in range(2)]
                daemon.process.terminate()
                daemon.process.wait()
                check(shift_clocks(path, 900_000) > 0, "no segment")
                daemon = Daemon(path, config=config, groups=GROUPS)
                rest, problems = tool.communicate()
                timer.cancel()
                equal(tool.returncode, 0, f"source-tool: {problems}")
        finally:
            daemon.kill()
    again = {line.split()[1]: line.split() for line in rest.splitlines() if line.startswith("window")}
    for line in live:
        check(line[1] in again, f"{line[1]} is not in {rest}")
        equal(again[line[1]][4:8], line[4:8], f"samples of {line[1]}, and the first and last one, as a window and live")


def windows(daemon, folder, since, until, n):
    """By their begin: the lines of n windows of [since, until), and how many streams they took; n < 0: the last one first."""
    with Between(folder, daemon.control()) as between:
        done = subprocess.run([TOOL, between.path, "3600", "0", folder, str(since), str(until), str(n)], capture_output=True, text=True,
                              timeout=LIMIT_S, check=True)
    os.unlink(between.path)
    lines = sorted((line.split() for line in done.stdout.splitlines() if line.startswith(("window", "error"))), key=lambda line: int(line[1]))
    # The one that follows live is not asked to end.
    return lines, between.follows - 1


def check_windows(daemon, folder, since, until, n):
    """Windows in order of time take one stream; in the other order each has its own, and the same content."""
    (together, streams), (alone, n_alone) = (windows(daemon, folder, since, until, sign * n) for sign in (1, -1))
    equal([line[:8] for line in together], [line[:8] for line in alone], "windows of one stream, and windows of a stream each")
    check(n_alone >= n > 2 * streams, f"{n} windows took {streams} streams in order of time, {n_alone} in the other order")
    return together


@test
def window_over_a_boot_has_the_samples_of_both():
    need_root()
    with scratch() as path, spinning():
        since = time.time_ns()
        # From when on nobody records, at the earliest and at the latest, and how long that was, at least and at most.
        stop, stopped, least, most = since, since, 0, 0
        for prefix in ([], other_boot(path)):
            least += time.time_ns() - stopped
            with Daemon(path, config=CONFIG, groups=GROUPS, prefix=prefix) as daemon:
                most += time.time_ns() - stop
                time.sleep(2)
                if not prefix:
                    stop = time.time_ns()
                    equal(daemon.stop(), 0, f"status of profd ({daemon.log()[-1000:]})")
                    stopped = time.time_ns()
                    continue
                until = time.time_ns() - SECOND // 2
                run = [TOOL, daemon.control(), str(LENGTH_S), "0", path, str(since), str(until), "1"]
                done, urgent = (subprocess.run(run + more, capture_output=True, text=True, timeout=LIMIT_S, check=True)
                                for more in ([], ["urgent"]))
                newer = counted_by_perf(since, until, daemon)
                older = recording.samples(daemon.segments()[:1])
                (several, _), (alone, _) = (windows(daemon, path, since, until, n) for n in (5, -5))
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(("window", "error"))]
    equal([line[:3] for line in lines], [["window", str(since), str(until)]], done.stdout)
    check(len(older) > 100 and sum(newer.values()) > 100, f"{len(older)} samples before the boot, {newer} after it")
    equal(int(lines[0][4]), len(older) + sum(newer.values()), "samples of the window")
    equal([line.split()[4] for line in urgent.stdout.splitlines() if line.startswith("window")], [lines[0][4]], "samples where somebody waits")
    check(max(0, least - SECOND // 2) < int(lines[0][3]) < most + SECOND // 2, f"{lines[0][3]} ns are missing, and {least} to {most} were not recorded")
    equal([line[:8] for line in several], [line[:8] for line in alone], "windows in order of time, and in the other order")
    equal(sum(int(line[4]) for line in several if line[0] == "window"), len(older) + sum(newer.values()), "samples of five windows")


@test
def windows_in_order_of_time_share_a_stream_and_are_the_same_as_alone():
    need_root()
    with scratch() as path, spinning(), Daemon(path, config=CONFIG, groups=GROUPS) as daemon:
        since = time.time_ns()
        with Varlink(daemon.control(), timeout=LIMIT_S) as v:
            for wait_s, call in ((2, "Pause"), (2, "Resume"), (2, "Rotate"), (2, "Ping")):
                time.sleep(wait_s)
                v.one(call, **({} if call == "Ping" else {"session": "default"}))
        until = time.time_ns() - SECOND // 2
        together = check_windows(daemon, path, since, until, 12)
        samples = sum(int(line[4]) for line in together if line[0] == "window")
        equal(samples, sum(counted_by_perf(since, until, daemon).values()), "samples of all windows")
    missing = [int(line[3]) for line in together if line[0] == "window"]
    check(any(0 < ns < (until - since) // 12 for ns in missing), f"no window is recorded in part: {missing}")
    check(any(line[0] == "error" for line in together), f"no window was paused as a whole: {together}")


@test
def windows_over_a_clock_that_was_set_are_the_same_as_alone():
    need_root()
    with scratch() as path, spinning():
        since = time.time_ns() - 3 * SECOND
        with Daemon(path, config=CONFIG, groups=GROUPS) as daemon:
            time.sleep(3)
            equal(daemon.stop(), 0, f"status of profd ({daemon.log()[-1000:]})")
        check(shift_clocks(path, -3 * SECOND) > 0, "no segment")
        with Daemon(path, config=CONFIG, groups=GROUPS) as daemon:
            time.sleep(3)
            until = time.time_ns() - SECOND // 2
            (together, streams), (alone, n_alone) = (windows(daemon, path, since, until, n) for n in (12, -12))
            samples = sum(counted_by_perf(since, until, daemon).values())
    equal([line[:8] for line in together], [line[:8] for line in alone], "windows in order of time, and in the other order")
    equal(sum(int(line[4]) for line in together if line[0] == "window"), samples, "samples of all windows")
    check(streams < n_alone, f"{streams} streams, {n_alone} in the other order")


@test
def windows_over_a_sleep_of_the_machine_have_what_was_recorded_before_and_after_it():
    need_root()
    slept_ns = 20 * SECOND
    with scratch() as path, spinning():
        since, least, most = time.time_ns() - slept_ns, slept_ns, slept_ns
        with Daemon(path, config=CONFIG, groups=GROUPS) as daemon:
            time.sleep(3)
            most -= time.time_ns()
            equal(daemon.stop(), 0, f"status of profd ({daemon.log()[-1000:]})")
            least -= time.time_ns()
        before = glob.glob(os.path.join(path, "**", "*.json"), recursive=True)
        check(shift_clocks(path, -slept_ns) > 0, "no segment")
        with Daemon(path, config=CONFIG, groups=GROUPS) as daemon:
            least += time.time_ns() - 2 * SECOND
            time.sleep(3)
            equal(daemon.stop(), 0, f"status of profd ({daemon.log()[-1000:]})")
            until = time.time_ns()
            most += until
        check(shift_clocks(path, 0, slept_ns, before) > 0, "no segment")
        with Daemon(path, config=CONFIG, groups=GROUPS) as daemon:
            n = (until - since) // SECOND
            together, _ = windows(daemon, path, since, until, n)
            counts = [len(recording.samples(segment)) for segment in daemon.segments()[:2]]
    length = (until - since) // n
    missing = sum(length if line[0] == "error" else int(line[3]) for line in together)
    errors = {" ".join(line[2:]) for line in together if line[0] == "error"}
    equal(errors, {"No data available"}, "errors")
    check(sum(line[0] == "error" for line in together) > 15, f"windows of the sleep: {together}")
    equal(sum(int(line[4]) for line in together if line[0] == "window"), sum(counts), "samples of all windows")
    check(least < missing < most, f"{missing} ns are missing, {least} to {most} were not recorded")


def use_user_memory(daemon, on):
    daemon.configure(session(Event="cpu-clock", Frequency=199, CallGraph="dwarf") if on else CONFIG)
    look_anew(daemon)
    with Varlink(daemon.control(), timeout=LIMIT_S) as v:
        wait_until(lambda: [s["sensitive"] for s in v.members("ListSessions", "session")] == [on], LIMIT_S, f"sensitive {on}")


@test
def window_with_user_memory_is_refused_alone():
    need_root()
    with scratch() as path, spinning():
        with Daemon(path, config=CONFIG, groups=GROUPS) as daemon:
            since = time.time_ns()
            time.sleep(2)
            use_user_memory(daemon, True)
            time.sleep(3)
            use_user_memory(daemon, False)
            time.sleep(2)
            until = time.time_ns() - SECOND // 2
            arguments = [*READER, TOOL, daemon.control(), "3600", "0", path, str(since), str(until), "14"]
            done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT_S, check=True)
            # Nobody but members of profd-read may: that ends, and nothing is given up for it.
            others = ["setpriv", "--reuid=64399", "--regid=64399", "--clear-groups"]
            denied = subprocess.run(others + arguments[len(READER):], capture_output=True, text=True, timeout=LIMIT_S, check=True)
            use_user_memory(daemon, True)
            closed = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(("window", "error"))]
    kinds = [line[0] for line in lines]
    equal(len(lines), 14, done.stdout)
    # While events are opened anew, a window may have nothing at all.
    refused = [" ".join(line[2:]) for line in lines if line[0] == "error" and line[2:] != ["No", "data", "available"]]
    equal(set(refused), {"Permission denied"}, "windows that were refused")
    check(kinds[0] == kinds[-1] == "window" and kinds.index("error") >= 2 and 4 <= len(refused) <= 10, f"windows are {kinds}")
    for done in denied, closed:
        equal({" ".join(line.split()[2:]) for line in done.stdout.splitlines() if line.startswith(("window", "error"))},
              {"Transport endpoint is not connected"}, "windows while nothing may be read")


@test
def window_without_any_recording_has_no_data():
    empty = {line[1] for line in of("live") if line not in recorded()}
    check(of("error"), f"no window was empty, of {of('live')}")
    for line in of("error"):
        equal(" ".join(line[2:]), "No data available")
        check(line[1] in empty, f"{line[1]} was recorded")


@test
def functions_have_names():
    for line in of("live") + of("window"):
        check(int(line[5]) >= by_comm(line).get("spin", 0) * 9 // 10, f"{line[5]} samples are in functions of the load: {line}")


if __name__ == "__main__":
    main()
