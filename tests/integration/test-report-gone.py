#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Views name code that is gone when somebody looks: a BPF program, what node compiled, a program of a container."""

import csv
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import session  # noqa: E402
from profctl import profctl  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import end, need_root, program, scratch, wait_until  # noqa: E402
from tap import build_path, check, main, skip, test  # noqa: E402

LOAD = build_path("tests", "bench", "load")
SECONDS = 3
WAIT_S = 30


class Run(Scene):
    config = "[Profd]\nFlushIntervalSec=200ms\n" + session(Event="cpu-clock", Frequency=499, RotateIntervalSec="1h")


def kept():
    with Varlink(Run.control()) as v:
        return {b["name"]: b for b in v.members("ListBinaries", "binary")}


def names(*filters):
    """Samples of each file and function, by somebody who has looked at nothing before."""
    with scratch() as home:
        shown = profctl("report", "--csv", "--by=dso,symbol", "--last=5min", *filters, socket=Run.control(),
                        env={**os.environ, "HOME": home, "XDG_CACHE_HOME": home})
    check(shown.returncode in (0, 8), shown.stderr)
    return {(row["dso"], row["symbol"]): int(row["samples"]) for row in csv.DictReader(shown.stdout.splitlines()) if int(row["samples"])}


def in_a_namespace(folder, script, *arguments):
    """A script that ends as a program, in a mount namespace of its own; node leaves a log where it begins."""
    return subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *arguments],
                            stdout=subprocess.DEVNULL, cwd=folder)


@test
def bpf_program_that_was_unloaded_has_its_name():
    need_root()
    Run.get()
    done = subprocess.run([program("bpf-busy"), str(SECONDS)], capture_output=True, text=True, check=False, timeout=60)
    if "Operation not permitted" in done.stderr:
        skip(f"the kernel takes no BPF program: {done.stderr}")
    check(done.returncode == 0, f"bpf-busy: {done.stderr}")
    found = {symbol: n for (_, symbol), n in names("--comm=bpf-busy").items()}
    busy = sum(n for symbol, n in found.items() if symbol.startswith("bpf_prog_") and symbol.endswith("_profd_busy"))
    check(busy > 0.8 * sum(found.values()) > 100, f"names: {found}")


JAVASCRIPT = """
function hotMultiply(n) { let v = n; for (let i = 0; i < 100000; i++) v = (v * 31 + i) % 65521; return v; }
function hotOuter(n) { return hotMultiply(n) + hotMultiply(n + 1); }
let v = 0;
while (true) v += hotOuter(v);
"""


@test
def functions_that_node_compiled_have_names_when_its_namespace_is_gone():
    need_root()
    with scratch() as folder:
        path = os.path.join(folder, "hot.js")
        with open(path, "w", encoding="ascii") as f:
            f.write(JAVASCRIPT)
        Run.get()
        # The script may lie below /tmp, which is another one there.
        process = in_a_namespace(folder, 'exec 9<"$1" && mount -t tmpfs none /tmp && exec node --perf-basic-prof - <&9', path)
        try:
            wait_until(lambda: process.poll() is not None or any(name.startswith(f"{process.pid}-") for name in kept()), WAIT_S, "the map to be kept")
            time.sleep(SECONDS)
            check(process.poll() is None, f"node ended with {process.returncode}")
        finally:
            end(process)
    check(not os.path.exists(f"/tmp/perf-{process.pid}.map"), "the map is still here")

    def share():
        found = {symbol: n for (_, symbol), n in names(f"--pid={process.pid}").items()}
        check(sum(found.values()) > 200, f"samples: {found}")
        return sum(n for symbol, n in found.items() if "hotMultiply" in symbol) / sum(found.values())

    # The last lines of the map are kept a moment later.
    wait_until(lambda: share() > 0.7, WAIT_S, "the names of the map")


@test
def functions_of_a_container_that_is_gone_have_names():
    need_root()
    with scratch() as folder:
        inside = os.path.join(folder, "inside")
        os.mkdir(inside)
        Run.get()
        process = in_a_namespace(folder, 'mount -t tmpfs none "$1" && cp "$2" "$1/contained" && exec "$1/contained"',
                                 inside, LOAD)
        try:
            wait_until(lambda: any(f"{inside}/contained" in b.get("paths", []) for b in kept().values()), WAIT_S, "the program to be kept")
            time.sleep(SECONDS)
        finally:
            end(process)
        check(os.listdir(inside) == [], "the file is still here")
    found = {symbol: n for (_, symbol), n in names("--comm=contained").items()}
    check(found.get("work_level", 0) > 0.5 * sum(found.values()) > 100, f"names: {found}")


if __name__ == "__main__":
    main()
