#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A quarter of an hour at 999 Hz with a rotation each second: descriptors and memory stay what they
were, and nothing is lost. PROFD_SOAK_S is another time, in seconds."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from workload import CPUS, load, need_root, scratch, spinning  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

SECONDS = int(os.environ.get("PROFD_SOAK_S", "900"))
WARM_UP = 0.2
PERIOD_NS = 10**9 // 999
GROWTH = 1 << 20
DESCRIPTORS = 24  # two sessions that finish a segment, one of them a folder, while the next is open
# So little that old segments are deleted before the warm-up ends: what is known of each takes memory.
CONFIG = "[Profd]\nMaxUse=30M\nKeepFree=0\n" + \
    session(Frequency=999, RotateIntervalSec="1s") + \
    session("folder", Frequency=999, RotateIntervalSec="1s", Layout="directory")


def watch(daemon):
    """[(second, private bytes, descriptors)]"""
    seen, begin = [], time.monotonic()
    while time.monotonic() - begin < SECONDS:
        time.sleep(min(1, SECONDS / 100))
        check(daemon.process.poll() is None, f"profd ended: {daemon.log()[-1000:]}")
        seen.append((time.monotonic() - begin, daemon.private_bytes(), daemon.descriptors()))
    return seen


@test
def descriptors_and_memory_do_not_grow():
    need_root()
    with scratch() as folder, spinning(), load("storm", "--rate", 50, SECONDS, ready=False):
        with Daemon(folder, config=CONFIG) as daemon:
            pid = daemon.recorder()
            seen = watch(daemon)
            equal(daemon.recorder(), pid, "the recorder")
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        steady = [s for s in seen if s[0] > SECONDS * WARM_UP]
        half = len(steady) // 2
        early, late = (sorted(s[1] for s in part)[len(part) // 2] for part in (steady[:half], steady[half:]))
        fds = [s[2] for s in steady]
        for minute in range(0, SECONDS, 60):
            _, memory, files = zip(*(s for s in seen if minute <= s[0] < minute + 60))
            print(f"# minute {minute // 60}: private {min(memory) / 1e6:.2f} to {max(memory) / 1e6:.2f} MB,"
                  f" descriptors {min(files)} to {max(files)}")
        print(f"# {SECONDS} s, {sum(len(daemon.segments(n)) for n in ('default', 'folder'))} segments kept;"
              f" private memory {early / 1e6:.2f} MB in the first half, {late / 1e6:.2f} MB in the second, at most"
              f" {max(s[1] for s in seen) / 1e6:.2f} MB; descriptors {min(fds)} to {max(fds)}")
        check(late <= early + GROWTH, f"private memory grew from {early} to {late} bytes")
        check(min(fds[half:]) <= min(fds[:half]),
              f"descriptors grew, from {min(fds[:half])} to {min(fds[half:])} at the least")
        check(max(fds) <= min(fds) + DESCRIPTORS, f"descriptors went from {min(fds)} to {max(fds)}")
        for name in ("default", "folder"):
            last = daemon.segments(name)[-30:]
            recording.check_clean(last)
            samples = recording.samples(last)
            equal(recording.lost(last), 0, "lost samples")
            equal(recording.twice(samples), [], "samples that are there twice")
            begin, end = recording.common_window(samples, margin_ns=2 * PERIOD_NS)
            # No reference ran for so long: a machine that stood still for a moment is allowed for.
            stood = recording.gaps(samples, 20 * PERIOD_NS, begin, end, range(CPUS))
            equal(stood[:3], [], f"gaps of {name}")


if __name__ == "__main__":
    main()
