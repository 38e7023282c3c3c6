#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Events of all kinds through the whole of profd: what Event= asks for is what perf finds in the
recording, by its name, with its fields, its counts and its stacks."""

import collections
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from workload import need_root, run_load, scratch, spinning  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

LIMIT_S = 120
SWITCH = r"sched:sched_switch: *prev_comm=\S.* prev_pid=\d+ .* ==> next_comm=.* next_pid=\d+"
# Session, its Event= and other keys, and the names that perf is to find.
SESSIONS = {
    "tracepoints": ({"Event": "sched:sched_switch,sched:sched_process_f*k:k,irq:softirq_entry"},
                    ["sched:sched_switch", "sched:sched_process_fork", "irq:softirq_entry"]),
    "group": ({"Event": "{cpu-clock:u,faults,context-switches}:S"},
              ["cpu-clock:u", "faults", "context-switches"]),
    "mixed": ({"Event": "cpu-clock/freq=77,call-graph=fp,name=mine/,cs:k,faults/period=7/u",
               "CallGraph": "none"},
              ["mine", "cs:k", "faults/period=7/u"]),
    "stacks": ({"Event": "cpu-clock:u", "CallGraph": "dwarf:1024"}, ["cpu-clock:u"]),
    "both": ({"Event": "cpu-clock:u,page-faults/call-graph=dwarf,stack-size=512,period=97/u", "CallGraph": "unwind:4096"},
             ["cpu-clock:u", "page-faults/call-graph=dwarf,stack-size=512,period=97/u"]),
    # Page faults are samples of four sessions, which kernels confuse.
    "fallback": ({"Event": "software/config=0/,1:2,cycles:P", "CallGraph": "lbr"}, None),
}
MADE = {}


def perf(*arguments):
    done = subprocess.run(["perf", *arguments], capture_output=True, text=True, errors="replace",
                          timeout=LIMIT_S, check=False)
    equal(done.returncode, 0, f"the status of perf {arguments[0]} ({done.stderr[-300:]})")
    return done.stdout


def recorded(name):
    """The recording of one of the sessions, all made at once."""
    need_root()
    if not MADE:
        folder = MADE["folder"] = scratch()
        path = folder.__enter__()
        config = "".join(session(each, **keys) for each, (keys, _) in SESSIONS.items())
        with Daemon(path, config=config) as daemon:
            for each in SESSIONS:
                daemon.wait_for_log(rf"sessions/{each}/")
            with spinning():
                run_load("storm", path, 2)
            time.sleep(0.2)
            equal(daemon.stop(), 0, "the status of profd")
            MADE["log"] = daemon.log()
            for each in SESSIONS:
                MADE[each] = daemon.segments(each)
    equal(len(MADE[name]), 1, f"recordings of the session {name}")
    return MADE[name][0]


def names(path):
    return [line for line in perf("evlist", "-i", path).splitlines()
            if not line.startswith(("dummy", "#"))]


def sampled(path):
    """The names of the events of all samples, as often as they come."""
    return [line.strip().rstrip(":") for line in perf("script", "-i", path, "-F",
                                                      "event").splitlines() if line.strip()]


@test
def events_have_their_names_and_samples():
    for name, (_, wanted) in SESSIONS.items():
        path = recorded(name)
        if wanted is None:
            continue
        equal(names(path), wanted, f"the events of the session {name}")
        seen = set(sampled(path))
        equal(sorted(seen), sorted(wanted), f"the events of the samples of the session {name}")


@test
def recordings_of_all_kinds_of_events_pass_verify():
    for name in SESSIONS:
        recording.check_clean([recorded(name)])


@test
def samples_that_kernels_confuse_are_lost_in_the_recording_too():
    """A snapshot knows of losses by the records alone."""
    known = {name: recording.manifest(recorded(name))["lost"] for name in SESSIONS}
    equal({name: recording.lost([recorded(name)]) for name in SESSIONS}, known, "lost samples by the records")
    print(f"# left out: {known}")


@test
def tracepoints_are_shown_with_their_fields():
    shown = perf("script", "-i", recorded("tracepoints"), "-F", "event,trace").splitlines()
    switches = [line for line in shown if "sched:sched_switch" in line]
    check(len(switches) > 100, f"{len(switches)} switches")
    equal([line for line in switches if not re.search(SWITCH, line)], [], "those without fields")
    forks = [line for line in shown if "sched_process_fork" in line]
    check(forks and all(re.search(r" comm=.* pid=\d+ child_comm=.* child_pid=\d+", line)
                        for line in forks), f"forks are shown as {forks[:3]}")


@test
def members_of_a_group_are_read_with_its_leader():
    seen = sampled(recorded("group"))
    check(len(seen) > 50 and seen.count("cpu-clock:u") >= seen.count("faults") > 0,
          f"{len(seen)} samples of {sorted(set(seen))}")
    shown = perf("report", "--stdio", "--group", "-g", "none", "-i", recorded("group"))
    check("anon group { cpu-clock:u, faults, context-switches }" in shown,
          f"perf shows no group: {shown[:600]}")


@test
def an_event_has_its_own_call_graph():
    described = perf("evlist", "-v", "-i", recorded("mixed")).splitlines()
    chains = {line.split(": ")[0]: "CALLCHAIN" in line for line in described if "type:" in line}
    chains.pop("dummy", None)
    equal(chains, {"mine": True, "cs:k": False, "faults/period=7/u": False}, "the call graphs")


@test
def stacks_are_unwound_by_perf():
    shown = perf("script", "-i", recorded("stacks"), "-F", "ip,sym")
    depths = [len(sample.splitlines()) for sample in shown.split("\n\n")]
    check(max(depths) > 2, f"the deepest stack has {max(depths)} frames")


@test
def an_event_with_stacks_keeps_them_beside_one_that_is_unwound():
    """Those of the other become call chains: perf would take the one sample for the other by its attr."""
    path, (unwound, kept) = recorded("both"), SESSIONS["both"][1]
    counts = collections.Counter(sampled(path))
    check(counts[unwound] > 50 and counts[kept] > 20, f"samples {counts}")
    facts = recording.manifest(path)
    equal(sum(counts.values()), facts["samples"], "the samples that perf can parse")
    equal(sum(n for key, n in facts.items() if key.startswith("stacks_") and key != "stacks_bytes"), counts[unwound],
          "stacks that were unwound")
    shown = perf("script", "-D", "-i", path)
    equal(shown.count("... ustack: size "), counts[kept], "samples with a copy of the stack")
    equal(shown.count("... user regs: "), counts[kept], "samples with registers")
    attrs = {line.split(": ")[0]: "STACK_USER" in line for line in perf("evlist", "-v", "-i", path).splitlines()}
    equal((attrs[unwound], attrs[kept]), (False, True), "which events have stacks")
    chains = perf("script", "-i", path, "-F", "event,ip").split("\n\n")
    depths = [len(chain.splitlines()) - 1 for chain in chains if chain.strip().startswith(unwound)]
    check(facts["stacks_whole"] > 0 and max(depths) > 2, f"the deepest stack has {max(depths)} frames")


@test
def settings_that_the_machine_refuses_are_given_up_and_reported():
    path = recorded("fallback")
    found = names(path)
    equal(found[:2], ["software/config=0/", "1:2"], "the names")
    if found[2] != "cycles:P":
        equal(found[2], "cpu-clock", "what cycles became")
        check("samples cpu-clock instead" in MADE["log"], MADE["log"][:1000])
    check(len(sampled(path)) > 50, "too few samples")


@test
def a_wrong_event_is_reported_with_a_correction():
    need_root()
    with scratch() as folder:
        config = session() + session("wrong", Event="cs,cpu-clok:u") + \
            session("far", Event="sched:sched_swich")
        with Daemon(folder, config=config) as daemon:
            daemon.wait_for_log(r"Event= of session 'wrong', which records the others: Event 'cpu-clok:u' at offset 3 "
                                r"is not known, did you mean 'cpu-clock'\?")
            daemon.wait_for_log("did you mean 'sched_switch'")
            daemon.wait_for_log("sessions/default/")
            equal(daemon.stop(), 0, "the status of profd")
            equal(len(daemon.segments()), 1, "recordings of the session that is right")


@test
def dropped_samples_are_reported_for_their_cpu():
    need_root()
    last = max(os.sched_getaffinity(0))
    config = "[Profd]\nMaxBytesPerSec=1K\nFlushIntervalSec=100ms\n" + session(Frequency=999, CPUs=last)
    with scratch() as folder, spinning(last), Daemon(folder, config=config) as daemon:
        daemon.wait_for_log("MaxBytesPerSec=1024")
        daemon.wait_for_log(r"is degraded \(lost\)")
        equal(daemon.stop(), 0, "the status of profd")
        segment, = daemon.segments()
        told, losses = recording.manifest(segment), recording.records(segment, "LOST_SAMPLES")
    check(told["lost"] > 0, "nothing was lost")
    equal({loss["cpu"] for loss in told["lost_by"]}, {last}, "CPUs that the manifest says lost samples")
    equal({r["cpu"] for r in losses}, {last}, "CPUs that the recording says lost samples")
    equal(sum(r["lost"] for r in losses), told["lost"], "samples lost by the recording")


if __name__ == "__main__":
    try:
        main()
    finally:
        if "folder" in MADE:
            MADE["folder"].__exit__(None, None, None)
