#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stacks that are not in the call chain: a program without frame pointers under perf record --call-graph dwarf has the
callers that perf finds."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from profctl import as_json, profctl  # noqa: E402
from workload import need_root  # noqa: E402
from tap import check, main, skip, test  # noqa: E402

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


main()
