# SPDX-License-Identifier: LGPL-2.1-or-later
"""Control groups that a test makes, and loads in them."""

import contextlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import children  # noqa: E402
from workload import load, wait_until  # noqa: E402
from tap import skip  # noqa: E402


def tree():
    """Where the control groups are mounted that perf events follow."""
    with open("/proc/mounts", encoding="utf-8") as f:
        mounts = [line.split() for line in f]
    found = [m[1] for m in mounts if m[2] == "cgroup" and "perf_event" in m[3].split(",")]
    found += [m[1] for m in mounts if m[2] == "cgroup2"]
    if not found:
        skip("no control groups are mounted")
    return found[0]


def folder_of(group):
    return os.path.join(tree(), group)


def remove(group):
    """Also the ones above it that nobody uses any more."""
    def removed():
        with contextlib.suppress(OSError):
            os.rmdir(folder_of(group))
        return not os.path.exists(folder_of(group))

    wait_until(removed, 20, f"{group} to be empty")


@contextlib.contextmanager
def service(group):
    """A load in a control group of its own, which goes with it: the pids of its processes."""
    try:
        os.makedirs(folder_of(group))
    except OSError as error:
        skip(f"no control group can be made here ({error})")
    try:
        enter = ["sh", "-c", f'echo $$ >"{folder_of(group)}/cgroup.procs" && exec "$0" "$@"']
        with load("spin", 0, prefix=enter) as process:
            yield {process.pid, *children(process.pid)}
    finally:
        remove(group)
