#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stacks of user space. CallGraph=dwarf: perf unwinds them from what profd records as from what
perf records, of programs without frame pointers that ran before and that began after, and other
sessions hold nothing more for it. CallGraph=unwind: profd unwinds them itself, down to the first
function of each program, and stores nothing of the stack."""

import collections
import contextlib
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon, session  # noqa: E402
from profctl import ended, profctl  # noqa: E402
from workload import load, need_root, scratch, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

HZ = 99
# deep_leaf, one deep_even or deep_odd a level, main.
DEEP = 15
CONFIG = "[Profd]\nFlushIntervalSec=1s\n" + session(Event="cpu-clock", Frequency=HZ, RotateIntervalSec=0)
START = ["-e", "cpu-clock", "-F", str(HZ), "--call-graph=dwarf:4096", "--set=RotateIntervalSec=1s"]


def chains(path):
    """By process of the load how often it had which stack, innermost first."""
    said = subprocess.run(["perf", "script", "-i", path, "--comms", "deep", "--no-inline", "-F", "pid,ip,sym"],
                          capture_output=True, text=True, errors="replace", check=True).stdout
    found = collections.defaultdict(collections.Counter)
    for sample in said.split("\n\n"):
        lines = [line.split() for line in sample.strip().splitlines()]
        if lines and len(lines[0]) == 1:
            found[int(lines[0][0])][tuple(words[1] for words in lines[1:])] += 1
    return found


def check_unwound(found, what):
    """Down to main, but for those that began before main or in the kernel."""
    n, good = found.total(), sum(n for stack, n in found.items()
                                 if "main" in stack and stack.index("main") >= DEEP - 1)
    check(n > 0 and good >= n * 0.9, f"of {n} stacks of {what} {good} are whole, the others are "
                                     f"{[stack for stack in found if 'main' not in stack][:3]}")


def usual(found):
    return found.most_common(1)[0][0] if found else None


def by_perf(folder, pid):
    path = os.path.join(folder, "perf.data")
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "--call-graph=dwarf,4096",
                    "-p", str(pid), "-o", path, "sleep", "0.5"], check=True)
    return chains(path)[pid]


def data_mappings(path):
    said = subprocess.run(["perf", "script", "-i", path, "-F", "comm", "--show-mmap-events"], capture_output=True,
                          text=True, errors="replace", check=True).stdout
    return len(re.findall(r"PERF_RECORD_MMAP2 .* (?:r--|rw-)[ps] /", said))


def events(daemon):
    """How many perf events profd holds open."""
    links = []
    for pid in daemon.pids():
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return links.count("anon_inode:[perf_event]")


def call(daemon, *words):
    done = profctl(*words, socket=daemon.control())
    ended(done, 0)
    return done.stdout


@test
def stacks_are_unwound_as_those_of_perf_record():
    need_root()
    with scratch() as folder, load("deep") as before, Daemon(folder, config=CONFIG) as daemon:
        at_first = events(daemon)
        call(daemon, "start", "stacks", *START)
        with load("deep") as after:
            daemon.wait_for_segments(3, "stacks")
            path = call(daemon, "snapshot", "--last=1s", "-s", "stacks").strip()
            reference = usual(by_perf(folder, before.pid))
            call(daemon, "stop", "stacks")
            wait_until(lambda: events(daemon) == at_first, 10, f"{events(daemon)} events to be {at_first} again")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        check(reference and len(reference) > DEEP, f"perf record has the stack {reference}")
        first, second = daemon.segments("stacks")[:2]
        for recording in (first, second, path):
            found = chains(recording)
            check_unwound(found[before.pid], f"a program that ran before, in {recording}")
            equal(usual(found[before.pid]), reference, f"the usual stack in {recording}")
            if recording != first:
                check_unwound(found[after.pid], f"a program that began later, in {recording}")
        check(data_mappings(path) > 0, "a snapshot of stacks has no data mappings")
        for recording in daemon.segments():
            equal(data_mappings(recording), 0, "data mappings of a session without stacks")


SECRET = "profd-marker-of-a-secret"
UNWIND = ["-e", "cpu-clock", "-F", str(HZ), "--call-graph=unwind", "--set=RotateIntervalSec=1s", "--compress=none"]


def check_outermost(found, what):
    """To the first function; a program that begins is not deep at once."""
    n, good = found.total(), sum(n for stack, n in found.items() if stack[-1:] == ("_start",))
    deep = sum(n for stack, n in found.items() if len(stack) > DEEP)
    check(n >= 5 and deep >= n * 0.9, f"of {n} stacks of {what} only {deep} are as deep as the program")
    check(good >= n * 0.99, f"of {n} stacks of {what} {good} reach _start, the others are "
                                            f"{[stack for stack in found if stack[-1:] != ('_start',)][:3]}")


def show(daemon):
    return json.loads(call(daemon, "show-session", "stacks", "--json"))[0]["session"]["stacks"]


def has_tables(daemon):
    """The samples of half a second had all tables that they need."""
    before = show(daemon)["pending"]
    time.sleep(0.5)
    after = show(daemon)
    return after["whole"] > HZ and after["pending"] == before


def holding(folder, text):
    """Files in which the text stands."""
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    if text.encode() in file.read():
                        found.append(path)
    return found


def held_for_core_dump(pid, text):
    """The mappings of a process with this text, of those that a core dump would have."""
    found, mapping, flagged = [], None, []
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as smaps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in smaps:
            words = line.split()
            if re.match("[0-9a-f]+-[0-9a-f]+$", words[0]):
                mapping = words
            if words[0] != "VmFlags:":
                continue
            begin, end = (int(word, 16) for word in mapping[0].split("-"))
            flagged += [mapping] * ("dd" in words)
            if "dd" in words or "r" not in mapping[1]:
                continue
            with contextlib.suppress(OSError, OverflowError):
                if text.encode() in os.pread(memory.fileno(), end - begin, begin):
                    found.append(" ".join(mapping))
    return found, flagged


@test
def profd_unwinds_down_to_the_first_function_and_stores_no_stack():
    need_root()
    with scratch() as folder, load("deep", SECRET) as before, Daemon(folder, config=CONFIG) as daemon:
        call(daemon, "start", "stacks", *UNWIND)
        with load("deep", SECRET) as after:
            wait_until(lambda: has_tables(daemon), 30, "the unwind tables of all that runs")
            time.sleep(4)
            path = call(daemon, "snapshot", "--last=3s", "-s", "stacks").strip()
            stacks = show(daemon)
            for pid in daemon.pids():
                found, hidden = held_for_core_dump(pid, SECRET)
                equal(found, [], f"memory of process {pid} that a core dump would have, with a secret of a stack")
                check(hidden or pid not in (daemon.process.pid, daemon.recorder()), f"no ring of {pid} is hidden from core dumps")
        counted = [s["stacks"] for s in json.loads(call(daemon, "list", "--segments", "--json", "stacks"))
                   if s["completeness"] == "complete"]
        check(counted and all(s and s["stackBytes"] == 16384 for s in counted), f"stacks of segments: {counted}")
        check(0 < sum(s["whole"] for s in counted), f"no whole stacks in {counted}")
        info = json.loads(profctl("info", "--json", daemon.segments("stacks")[0]).stdout)
        equal({**info["stacks"], "stackBytes": 16384}, counted[0], "stacks of the first segment by info")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        found = chains(path)
        for pid, what in ((before.pid, "a program that ran before"), (after.pid, "a program that began later")):
            check_outermost(found[pid], what)
        equal(stacks["stackBytes"], 16384, "bytes of stack in a sample")
        for recording in (path, *daemon.segments("stacks")):
            attrs = subprocess.run(["perf", "evlist", "-v", "-i", recording], capture_output=True, text=True, errors="replace",
                                   check=True).stdout
            check("CALLCHAIN" in attrs and "STACK_USER" not in attrs and "REGS_USER" not in attrs, attrs)
        equal(holding(folder, SECRET), [], "files that hold a secret of a stack")



AUTO = "[Profd]\nFlushIntervalSec=1s\nMaxBufferTotal=16M\n" + \
    session(Event="cpu-clock", CPUs=0, RotateIntervalSec=0, CallGraph="auto")


WORDS = {"fp": "fp", "unwind": "unwound", "dwarf": "dwarf", "lbr": "lbr", "none": "no"}


def chosen(daemon, name="default"):
    said = json.loads(call(daemon, "show-session", name, "--json"))[0]["session"]
    check(said["ringBytes"] >= 32 << 10 and said["ringMsec"] > 0, f"rings of {name}: {said}")
    words = WORDS[said["callGraphUsed"].split(":")[0]] + " call graphs"
    check(said["describe"].endswith(", " + words), f"{name}, of which the words are '{words}': {said}")
    return said["callGraph"], said["callGraphUsed"], said["callGraphReason"]


@test
def auto_unwinds_where_rings_suffice_and_a_reload_decides_anew():
    need_root()
    with scratch() as folder, load("deep"), Daemon(folder, config=AUTO) as daemon:
        equal(chosen(daemon), ("auto", "unwind:16384", "This host can unwind stacks while it records"), "at 99 Hz")
        daemon.configure(AUTO + "Frequency=2000\n")
        call(daemon, "reload")
        mode, used, why = chosen(daemon)
        equal((mode, used), ("auto", "fp"), f"at 2000 Hz, since {why}")
        check("less than two seconds" in why, why)
        call(daemon, "start", "ticks", "-e", "sched:sched_switch", "-C", "0", "--call-graph", "auto")
        equal(chosen(daemon, "ticks")[:2], ("auto", "fp"), "events without a frequency")
        call(daemon, "start", "raw", "-e", "cpu-clock", "-C", "0", "--call-graph", "dwarf")
        equal(chosen(daemon, "raw"), ("dwarf:8192", "dwarf:8192", "CallGraph= asks for it"), "as asked")
        call(daemon, "start", "branches", "-e", "cpu-clock", "-C", "0", "--call-graph", "lbr")
        check(chosen(daemon, "branches")[1] in ("lbr", "fp"), "branches, or what there is in their place")
        call(daemon, "start", "asked", "-e", "cpu-clock", "-C", "0", "-F", "999", "--call-graph", "unwind:8192")
        mode, used, why = chosen(daemon, "asked")
        equal((mode, used), ("unwind:8192", "unwind:4096"), f"stacks that do not fit, since {why}")
        check(why.startswith("CallGraph= asks for it, with 4K of each, since a ring"), why)
        for name in ("asked", "branches"):
            call(daemon, "stop", name)
        shown = call(daemon, "status")
        check("fp: Its rings would hold less than two seconds of stacks" in shown and "Cost" in shown, shown)
        daemon.configure(AUTO)
        call(daemon, "reload")
        equal(chosen(daemon)[1], "unwind:16384", "at 99 Hz again")
        metrics = call(daemon, "metrics")
        check('profd_session_call_graph{session="default",mode="unwind:16384"} 1' in metrics, metrics[-3000:])
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


# Neither the flush interval nor a ring that fills starts a sweep for minutes.
HZ_OF_QUIET = 10
QUIET = "[Profd]\nFlushIntervalSec=5min\nMaxBufferTotal=128M\n" + \
    session(Event="cpu-clock", CPUs=0, Frequency=HZ_OF_QUIET, BufferSize="32M", RotateIntervalSec=0, CallGraph="auto")


@test
def stacks_are_whole_soon_after_the_start_of_a_quiet_host():
    need_root()
    with scratch() as folder, load("deep", prefix=("taskset", "-c", "0")), Daemon(folder, config=QUIET) as daemon:
        def stacks():
            return json.loads(call(daemon, "show-session", "default", "--json"))[0]["session"]["stacks"]
        counts = wait_until(lambda: next((s for s in [stacks()] if s["whole"] > 0), None), 60, "a whole stack")
        # A busy machine may take its time; with the next flush they would come after five minutes.
        check(counts["pending"] <= 30 * HZ_OF_QUIET, f"tables came late: {counts}")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


main()
