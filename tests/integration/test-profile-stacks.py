#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The set of stacks is that of perf script, each as often; and a program without frame pointers under perf record
--call-graph dwarf has the callers that perf finds."""

import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from profctl import as_json, profctl  # noqa: E402
from workload import need_root  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

PROGRAM = """
#include <time.h>
static volatile unsigned sink;
__attribute__((noinline)) unsigned leaf(unsigned x) { for (int i = 0; i < 200; i++) x = x * 31 + i; sink = x; return x; }
__attribute__((noinline)) unsigned middle(int d, unsigned x) { return d == 0 ? leaf(x) + 1 : middle(d - 1, leaf(x)) + 1; }
int main(void) {
    time_t end = time(0) + 2;
    unsigned x = 1;
    while (time(0) < end) for (int i = 0; i < 100; i++) x += middle(i % 9, x);
    return x == 3;
}
"""
TOOL = build_path("tests", "integration", "profile-tool")
NOBODY = 65534
FUNCTIONS = ("leaf", "middle", "main")


@test
def copies_of_stacks_are_unwound_as_by_perf():
    need_root()
    if not shutil.which("perf") or not shutil.which("cc"):
        skip("perf or a C compiler is not installed")
    with tempfile.TemporaryDirectory(prefix="profd-stacks.") as folder:
        program, path = os.path.join(folder, "deep"), os.path.join(folder, "perf.data")
        subprocess.run(["cc", "-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-x", "c", "-", "-o", program],
                       input=PROGRAM, text=True, check=True)
        # root has a child without rights read what somebody else may have written.
        os.chown(program, NOBODY, NOBODY)
        subprocess.run(["perf", "record", "-q", "--call-graph", "dwarf", "-F", "199", "-e", "cpu-clock:u", "-o", path, program],
                       check=True, capture_output=True, timeout=60)
        perf = subprocess.run(["perf", "report", "-i", path, "--stdio", "--children", "--no-inline", "-g", "none", "-s", "symbol",
                               "-F", "overhead_children,sample,symbol"], check=True, capture_output=True, text=True, timeout=60).stdout
        rows = as_json(profctl("report", "--json=short", "--by=symbol", path), "report")
    theirs = {m[2]: float(m[1]) for m in re.finditer(r"^\s*([\d.]+)%\s+\d+\s+\[\.\] (\w+)", perf, re.M)}
    ours = {row["symbol"]: row["totalPeriod"] for row in rows["rows"]}
    whole = sum(row["period"] for row in rows["rows"])
    for name in FUNCTIONS:
        check(name in theirs and name in ours, f"{name}: {theirs} {ours}")
        check(abs(100 * ours[name] / whole - theirs[name]) < 0.006, f"{name}: {100 * ours[name] / whole}, of perf {theirs[name]}")


def place(dso, address):
    """An address of the kernel or of memory without a file; of a file only its name, since ours are offsets there."""
    return address if dso.startswith("[") and dso != "[vdso]" else os.path.basename(dso)


def of_perf(path):
    """Stacks by perf script, the innermost frame first, and the addresses of execve() in the kernel."""
    script = subprocess.run(["perf", "script", "--no-inline", "-F", "comm,ip,sym,dso", "-i", path], capture_output=True, check=True,
                            timeout=120).stdout.decode(errors="replace")
    stacks, execs = collections.Counter(), set()
    for block in script.split("\n\n"):
        lines = block.strip("\n").split("\n")
        stack = []
        for line in lines[1:]:
            ip, symbol, dso = re.match(r"\s+([0-9a-f]+) (.*?) \(((?:[/\[]|bpf_).*)\)$", line).groups()
            if symbol.startswith("do_execveat_common") or symbol.endswith("sys_execve"):
                execs.add(ip)
            stack.append(place(re.sub(r"^/tmp/perf-(\d+)\.map$", r"[JIT] tid \1", dso), ip))
        if lines[0].strip():
            stacks[lines[0].strip(), tuple(stack)] += 1
    return stacks, execs


def of_ours(path):
    out = subprocess.run([TOOL, "--keys", "comm", path], capture_output=True, check=True, timeout=60).stdout.decode(errors="replace")
    stacks = collections.Counter()
    for line in out.splitlines():
        if not line.startswith("cell"):
            continue
        head, frames = line.split("\t")
        stack = []
        for frame in reversed(frames.split(";")):
            dso, address = frame.rstrip("~").rsplit("+0x", 1)
            stack.append(place(dso, address))
        stacks[head.split("comm=", 1)[1].strip(), tuple(stack)] += int(head.split()[1])
    return stacks


def settled(stacks, execs):
    """Without the callers of execve(): perf still finds them in the program that was there before."""
    result = collections.Counter()
    for (comm, stack), n in stacks.items():
        cut = next((i for i, frame in enumerate(stack) if frame in execs), len(stack))
        result[comm, stack[:cut + 1]] += n
    return result


def is_stale(ours, theirs):
    """Whether the stacks differ only in frames that are nowhere for us and in a file for perf; or perf prints none, as it does
    where the kernel found no caller, and we have the sampled address."""
    if ours[0] == theirs[0] and not theirs[1] and len(ours[1]) == 1:
        return True
    return ours[0] == theirs[0] and len(ours[1]) == len(theirs[1]) and all(
        a == b or (re.fullmatch("[0-9a-f]+", a) and not re.fullmatch("[0-9a-f]+", b)) for a, b in zip(ours[1], theirs[1]))


def without_stale(ours, theirs):
    """Takes out pairs of stacks where perf finds a wild address in the program that was there before
    execve(), whose mappings it keeps until others cover them. Returns how many samples these are."""
    n = 0
    for mine in [key for key in ours if ours[key] > theirs[key]]:
        for other in [key for key in theirs if theirs[key] > ours[key] and is_stale(mine, key)]:
            same = min(ours[mine] - theirs[mine], theirs[other] - ours[other])
            ours[mine] -= same
            theirs[other] -= same
            n += same
    return n


@test
def stacks_are_those_of_perf_script():
    need_root()
    if not shutil.which("perf"):
        skip("perf is not installed")
    with tempfile.TemporaryDirectory(prefix="profd-stacks.") as folder:
        path = os.path.join(folder, "perf.data")
        subprocess.run(["perf", "record", "-q", "-a", "-g", "-F", "999", "-e", "cpu-clock", "-o", path, "--", "sh", "-c",
                        "for i in 1 2 3 4 5; do ls -lR /usr/share/doc | sort | tail -1; done"], check=True, capture_output=True, timeout=60)
        theirs, execs = of_perf(path)
        ours = of_ours(path)
    check(sum(ours.values()) > 100, f"{sum(ours.values())} samples")
    equal(sum(ours.values()), sum(theirs.values()))
    ours, theirs = settled(ours, execs), settled(theirs, execs)
    stale = without_stale(ours, theirs)
    wrong = [(key, ours[key], theirs[key]) for key in ours.keys() | theirs.keys() if ours[key] != theirs[key]]
    check(not wrong, f"{len(wrong)} of {len(ours)} differ, first {wrong[:2]}")
    check(stale <= sum(ours.values()) // 100, f"{stale} samples have frames of a program that was there before")


main()
