#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The attrs that profd opens are those that perf record opens, save for DIFFERENCES.

`perf record -vv` prints each perf_event_attr before the kernel sees it, so events that this machine
does not have are compared as well. An event that the kernel refuses ends the run, so those that it
has go into one run, and the others get one each.
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from background import background  # noqa: E402
from recording import feature_place  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

ATTRS = build_path("tests", "integration", "attrs")
LIMIT_S = 60
TEXT_MAX = 1000
WORKERS = 8  # perf mostly waits for the kernel to let go of its events
number = itertools.count()
HOME = tempfile.TemporaryDirectory(prefix="profd-attr-")

# The fields that we set otherwise, and why. A field that is left out of the comparison: None; else a set of
# bits, of which ours and perf's are.
DIFFERENCES = {
    "size": None,  # the smallest that holds what is set; perf takes its own
    "use_clockid": None,  # all sessions share one clock
    "clockid": None,
    "watermark": None,  # wake-ups by bytes; perf's poll has a timer of its own
    "{ wakeup_events, wakeup_watermark }": None,
    # perf asks for an identifier only where a recording's events differ. It asks for addresses and
    # their kinds beside a user's stack, which no sample of ours needs. It leaves CPUs out for a
    # process; ours come from rings of CPUs alike.
    "sample_type": {"IDENTIFIER", "ID", "CGROUP", "ADDR", "DATA_SRC"},
}
# For CPUs as the target: nothing follows a fork there, whatever the attr says.
OF_CPUS = {"inherit": None}
# For a process: perf's first event carries the side-band, for which we have one of its own.
OF_PROCESS = {
    "mmap": None, "comm": None, "task": None, "mmap2": None, "comm_exec": None, "ksymbol": None,
    "bpf_event": None, "sample_type": DIFFERENCES["sample_type"] | {"CPU"},
}
# The dummy is perf's side-band event itself.
OF_DUMMY = {**OF_PROCESS, "disabled": None}

# The settings of the session's stacks that perf leaves behind in an event that has another call graph of its own:
# fields that mean nothing without the bit of sample_type, and a call chain without user frames.
OF_LEFT_STACKS = {"sample_regs_user": None, "sample_stack_user": None,
                  "exclude_callchain_user": None}

# Events that the kernel of any machine with perf events opens.
HERE = [
    "cpu-clock", "cpu-clock:u", "cpu-clock:k", "cpu-clock:uk", "cpu-clock:h", "cpu-clock:G",
    "cpu-clock:H", "cpu-clock:GH", "cpu-clock:uH", "cpu-clock:I", "cpu-clock:p", "cpu-clock:ppp",
    "cpu-clock:P", "cpu-clock:D", "cpu-clock:e", "cpu-clock:S", "cpu-clock:uD", "cpu-clock:ppk",
    "task-clock", "page-faults", "faults:u", "minor-faults", "major-faults", "context-switches",
    "cs", "cpu-migrations", "migrations", "alignment-faults", "emulation-faults",
    "cgroup-switches", "bpf-output",
    "cpu-clock//", "cpu-clock//u", "cpu-clock/period=100000/", "cpu-clock/freq=50/",
    "cpu-clock/name=mine/u", "cpu-clock/name='a,b'/", "cpu-clock/call-graph=fp/",
    "cpu-clock/call-graph=no/", "cpu-clock/call-graph=dwarf/",
    "cpu-clock/call-graph=dwarf,stack-size=2048/u", "cpu-clock/max-stack=5/",
    "cpu-clock/call-graph=fp,max-stack=9,period=50000/", "cpu-clock/time=1/",
    "1:0", "1:0x2:u", "software/config=1/", "software/config=0,period=77777/k",
    "sched:sched_switch", "sched:sched_switch:u", "sched:sched_switch/call-graph=fp/",
    "sched:sched_switch/max-stack=4/k", "sched:sched_switc?",
    "{cpu-clock,task-clock}", "{cpu-clock,task-clock}:S", "{cpu-clock:u,faults:k}:S",
    "{cpu-clock,sched:sched_switch}:S", "{cpu-clock,task-clock}:D", "{cpu-clock:u,task-clock}:k",
    "{sched:sched_switch,cs}", "mine{cs,faults/period=4/}", "{cpu-clock/freq=77/,cs}:Su",
    "{cpu-clock,task-clock:u}:W",
]
# The events that need hardware, which may not be here: a run each, of which the first attr counts.
HARDWARE = [
    "cycles", "cpu-cycles:u", "cycles:p", "cycles:pp", "cycles:P", "cycles:uP", "instructions",
    "cache-references", "cache-misses:k", "branches", "branch-instructions", "branch-misses:u",
    "bus-cycles", "ref-cycles", "stalled-cycles-frontend", "idle-cycles-backend",
    "L1-dcache-loads", "L1-dcache-load-misses", "L1-dcache-stores", "L1-dcache-prefetch-misses",
    "L1-icache-load-misses", "LLC-loads", "LLC-store-misses:u", "dTLB-load-misses", "iTLB-loads",
    "branch-loads", "branch-load-misses", "node-loads", "node-prefetch-misses", "l1d-misses",
    "L1-data-write-miss", "r1a8", "r1a8:u", "r003c", "cycles/period=1000003/", "cycles/freq=50/u",
    "r1a8/name=raw,period=100/", "LLC-loads/call-graph=no/", "{cycles,instructions}:S",
    "mem:0x1000", "mem:0x1000:r", "mem:0x1000/8:w", "mem:0x1000/1:rw:u", "mem:0x1000:x:k",
    "cycles/branch_type=any/", "cycles/branch_type=call/u",
]
# Call graphs: perf's options and our keys.
CALL_GRAPHS = {
    "none": ([], []),
    "fp": (["-g"], ["call-graph=fp"]),
    "dwarf": (["--call-graph", "dwarf"], ["call-graph=dwarf"]),
    "dwarf of 4096": (["--call-graph", "dwarf,4096"], ["call-graph=dwarf", "stack-size=4096"]),
    "lbr": (["--call-graph", "lbr"], ["call-graph=lbr"]),
}


def perf(*arguments):
    environment = {**os.environ, "HOME": HOME.name, "LC_ALL": "C"}
    return subprocess.run(["perf", *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", timeout=LIMIT_S, env=environment,
                          check=False)


def need_perf():
    try:
        if perf("record", "-N", "-B", "-a", "-e", "cpu-clock", "-o", "/dev/null",
                "true").returncode:
            skip("perf cannot record all CPUs here")
    except FileNotFoundError:
        skip("there is no perf")


def opened(output):
    """The attrs of perf -vv, the first that was tried for each event."""
    attrs, refused = [], False
    for part in output.split("perf_event_attr:\n")[1:]:
        head, _, tail = part.partition("-" * 60)
        if not refused:
            fields = re.findall(r"^  (\{[^}]*\}|\S+) +(\S+)$", head, re.M)
            attrs.append(dict(fields))
        refused = "failed, error" in tail and not re.search(r"flags \S+ = \d", tail)
    return attrs


def ours(text, keys):
    done = subprocess.run([ATTRS, text, *keys], capture_output=True, text=True, errors="replace",
                          timeout=LIMIT_S, check=False)
    equal(done.returncode, 0, f"the status for '{text}' ({done.stderr.strip()})")
    events = []
    for line in done.stdout.splitlines():
        name, attr = line.split("\t")
        events.append((name, dict(re.findall(r", (\{[^}]*\}|\w+) = ([^,]*)", attr))))
    return events


def differing(mine, theirs, differences):
    """Sentences about what is not alike."""
    found = []
    for field in sorted(mine.keys() | theirs.keys()):
        allowed = differences.get(field, set())
        if allowed is None:
            continue
        a, b = mine.get(field, "0"), theirs.get(field, "0")
        if field in ("sample_type", "read_format", "branch_sample_type"):
            a, b = (set(x.split("|")) - {"0"} - allowed for x in (a, b))
        else:
            a, b = int(a, 0), int(b, 0)
        if a != b:
            found.append(f"{field} is {a}, perf's is {b}")
    return found


def compare(text, options=(), keys=(), differences=None, target=("-a",)):
    """Returns what is wrong with the events of one text; a run that ended early is compared as far
    as it went."""
    done = perf("record", "-N", "-B", "-vv", *target, *options, "-e", text, "-o",
                os.path.join(HOME.name, f"perf-{next(number)}.data"), "true")
    theirs, mine, wrong = opened(done.stderr), ours(text, keys), []
    if not theirs:
        return [f"{text}: perf opened nothing: {done.stderr[-300:]}"]
    if done.returncode == 0 and len(theirs) < len(mine):
        wrong.append(f"{text}: perf opened {len(theirs)} events, we {len(mine)}")
    for (name, a), b in zip(mine, theirs):
        left = OF_LEFT_STACKS if "STACK_USER" not in a["sample_type"] else {}
        for problem in differing(a, b, {**DIFFERENCES, **(differences or OF_CPUS), **left}):
            wrong.append(f"{text}: {name}: {problem}")
    return wrong


def batches(texts):
    """Texts joined by commas, as many as fit into one Event=."""
    joined = ""
    for text in texts:
        if joined and len(joined) + len(text) > TEXT_MAX:
            yield joined
            joined = ""
        joined += ("," if joined else "") + text
    yield joined


def none_wrong(texts, *arguments):
    with ThreadPoolExecutor(WORKERS) as pool:
        wrong = [problem for problems in pool.map(lambda text: compare(text, *arguments), texts)
                 for problem in problems]
    check(not wrong, "\n".join(wrong))


def compare_here(call_graph, extra_options=(), extra_keys=()):
    need_perf()
    options, keys = CALL_GRAPHS[call_graph]
    none_wrong(batches(HERE), [*options, *extra_options], [*keys, *extra_keys])


@test
def events_without_call_graph_are_opened_as_by_perf():
    compare_here("none")


@test
def events_with_frame_pointers_are_opened_as_by_perf():
    compare_here("fp")


@test
def events_with_stacks_are_opened_as_by_perf():
    compare_here("dwarf")


@test
def events_with_smaller_stacks_are_opened_as_by_perf():
    compare_here("dwarf of 4096")


@test
def events_with_a_period_for_all_are_opened_as_by_perf():
    compare_here("fp", ["-c", "1234567"], ["period=1234567"])


@test
def events_with_a_frequency_for_all_are_opened_as_by_perf():
    """Tracepoints and breakpoints too, which are sampled each time where none is asked for."""
    compare_here("none", ["-F", "777"], ["frequency=777", "frequency-said=1"])


@test
def globs_match_the_tracepoints_that_perf_matches():
    need_perf()
    text, path = "sched:*wak*", os.path.join(HOME.name, "glob.data")
    done = perf("record", "-N", "-B", "-a", "-e", text, "-o", path, "true")
    equal(done.returncode, 0, f"the status of perf record ({done.stderr[-200:]})")
    names = re.findall(r"^sched:\S+$", perf("evlist", "-i", path).stdout, re.M)
    check(len(names) > 1, f"perf found only {names}")
    equal([name for name, _ in ours(text, ())], sorted(names), "the list of names")


def feature(path, bit):
    """The body of a header feature of a recording of this machine."""
    at, size = feature_place(path, bit)
    with open(path, "rb") as file:
        file.seek(at)
        return file.read(size)


@test
def tracing_data_is_that_of_perf():
    need_perf()
    if sys.byteorder != "little":
        skip("the test reads recordings of little-endian machines")
    # One at a time, since perf has several in the order of the folder on disk.
    for text in ("sched:sched_switch", "cs,sched:sched_process_exec:u", "irq:softirq_entry"):
        path = os.path.join(HOME.name, "tracing.data")
        done = perf("record", "-N", "-B", "-a", "-e", text, "-o", path, "true")
        equal(done.returncode, 0, f"the status of perf record ({done.stderr[-200:]})")
        theirs = feature(path, 1)
        mine = subprocess.run([ATTRS, "--tracing", text], capture_output=True, timeout=LIMIT_S,
                              check=True).stdout
        # The last are command lines, of which perf takes those that ftrace saved, and we none.
        check(len(mine) > 1000 and mine[-8:] == bytes(8), f"{text}: {len(mine)} bytes")
        same = os.path.commonprefix([mine[:-8], theirs])
        equal(len(same), len(mine) - 8, f"{text}: how many bytes are the same")


@test
def events_of_user_code_alone_are_opened_as_by_perf():
    need_perf()
    texts = ["cpu-clock", "cpu-clock:u", "cs,faults", "sched:sched_switch", "{cs,faults}:S"]
    none_wrong(texts, ["--all-user"], ["user-only=1"])


@test
def events_of_hardware_are_tried_as_by_perf():
    need_perf()
    none_wrong(HARDWARE)


@test
def events_of_hardware_with_call_graphs_are_tried_as_by_perf():
    need_perf()
    for name in ("fp", "dwarf"):
        none_wrong(HARDWARE[::5], *CALL_GRAPHS[name])


@test
def branch_stacks_are_tried_as_by_perf():
    need_perf()
    texts = ["cycles", "cycles:u", "cycles:k", "cycles:P", "cpu-clock", "instructions:pp", "r1a8",
             "sched:sched_switch"]
    none_wrong(texts, *CALL_GRAPHS["lbr"])


@test
def the_pmus_of_this_machine_are_opened_as_by_perf():
    need_perf()
    texts = re.findall(r"^  (\w+/[\w.-]+/) +\[Kernel PMU event\]", perf("list", "pmu").stdout, re.M)
    if not texts:
        skip("perf lists no PMU events here")
    none_wrong(texts[:20])


@test
def events_of_a_process_are_opened_as_by_perf():
    need_perf()
    texts = ["cpu-clock", "cs:u", "{cs,faults}:S", "sched:sched_switch", "cpu-clock/no-inherit/"]
    with background(["sleep", "100000"]) as process:
        none_wrong(texts, (), ["inherit=1"], OF_PROCESS, ("-p", str(process.pid)))


@test
def a_dummy_is_opened_as_by_perf():
    need_perf()
    none_wrong(["dummy"], (), (), {**OF_CPUS, **OF_DUMMY})


@test
def a_difference_of_attrs_fails_the_test():
    need_perf()
    check(compare("cpu-clock", ["-g"], []), "a call graph less is not seen")
    check(compare("cpu-clock", [], ["frequency=50"]), "another frequency is not seen")
    check(compare("cpu-clock", [], ["idle=1"]), "another exclusion is not seen")


@test
def events_are_named_as_by_perf():
    need_perf()
    path = os.path.join(HOME.name, "named.data")
    for text in batches(HERE):
        done = perf("record", "-N", "-B", "-a", "-e", text, "-o", path, "true")
        equal(done.returncode, 0, f"the status of perf record ({done.stderr[-200:]})")
        names = [name for name in perf("evlist", "-i", path).stdout.splitlines()
                 if not name.startswith(("dummy", "#"))]
        equal([name for name, _ in ours(text, ())], names, "the list of names")


if __name__ == "__main__":
    main(at_once=3)
