#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What changed since yesterday, of a running profd. The day between is made by a clock: what is recorded first becomes
yesterday for a profd and a profctl whose time of day is a day ahead, as after a boot, and nothing else of it is moved."""

import contextlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon, is_sanitized, other_boot, session  # noqa: E402
from profctl import PROFCTL, as_json, environment, profctl  # noqa: E402
from workload import end, need_root, program, scratch  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

DAY_S, FIRST_S, WINDOW_S = 86400, 45, 4
CONFIG = "[Profd]\nFlushIntervalSec=200ms\n" + session(Event="cpu-clock", Frequency=499)
SHIFT = program("clock-shift.so")


@contextlib.contextmanager
def working(*builds):
    # They make way for other tests, and still have samples beside them.
    processes = [subprocess.Popen(["nice", "-n", "10", program(f"deploy-{build}"), "600000"], stdout=subprocess.DEVNULL)
                 for build in builds]
    try:
        yield
    finally:
        for process in processes:
            end(process)


@test
def live_windows_are_compared_with_those_of_yesterday():
    need_root()
    if is_sanitized(PROFCTL):
        skip("a sanitizer must be loaded first")
    with scratch() as folder:
        with Daemon(folder, config=CONFIG) as daemon, working("old"):
            began = time.time()
            time.sleep(FIRST_S)
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        # The second profd begins a little after the time of day at which the first one did.
        shift = {"LD_PRELOAD": SHIFT, "CLOCK_SHIFT_S": str(DAY_S - int(time.time() - began) + 2)}
        env = environment(HOME=folder, **shift)
        start = time.time() + int(shift["CLOCK_SHIFT_S"])
        with Daemon(folder, config=CONFIG, prefix=other_boot(folder), env=env) as daemon, working("old", "new"):
            time.sleep(2 * WINDOW_S + 2)
            late = time.time() + int(shift["CLOCK_SHIFT_S"]) - began - DAY_S
            check(late < FIRST_S - 10, f"the machine is too slow for this: {late:.0f} s of {FIRST_S} s have passed")
            options = [f"--last={WINDOW_S}s", "--comm=deploy-old,deploy-new"]
            done = profctl("diff", "--json=short", "--baseline=yesterday", "--by=comm", *options, socket=daemon.control(), env=env)
            done = as_json(done, "diff")
            equal(round((done["after"]["sinceUsec"] - done["before"]["sinceUsec"]) / 1e6), DAY_S, "the time between the windows")
            rows = {row["comm"]: row for row in done["rows"]}
            check(rows["deploy-old"]["samplesBefore"] > 10 and rows["deploy-old"]["samplesAfter"] > 10, rows)
            equal(rows["deploy-new"]["samplesBefore"], 0, "samples of what did not run yesterday")
            check(rows["deploy-new"]["significant"], rows)

            done = as_json(profctl("changed", "--json=short", *options, socket=daemon.control(), env=env), "changed")
            found = [change for change in done["changes"] if change.get("symbol") == "deploy_new_work"]
            # On a busy machine it may also differ from the seconds before.
            check(found and found[0]["yesterday"] == 0 and found[0]["now"] > 0, done)
            text = profctl("changed", *options, socket=daemon.control(), env=env).stdout
            check("deploy_new_work" in text and "yesterday" in text, text)
            # Right before this window no profd ran.
            options[0] = f"--since=@{start:.6f}"
            done = profctl("changed", "--json=short", f"--until=@{start + 2 * WINDOW_S:.6f}", *options, socket=daemon.control(), env=env)
            done = as_json(done, "changed", status=8)
            check("before" not in done["all"] and done["all"]["yesterday"] > 0, done)
            found = [change for change in done["changes"] if change.get("symbol") == "deploy_new_work"]
            check(found and found[0]["against"] == "yesterday", done)
            # The time before begins before profd did.
            options[0] = f"--since=@{start + WINDOW_S:.6f}"
            words = ("changed", f"--until=@{start + 2 * WINDOW_S:.6f}", *options)
            done = as_json(profctl(*words, "--json=short", socket=daemon.control(), env=env), "changed", status=8)
            before = done["sides"]["before"]
            check(before["samples"] > 0 and before["complete"] is False and before["gaps"], before)
            check(done["sides"]["now"]["complete"] and done["complete"], done["sides"]["now"])
            text = " ".join(profctl(*words, socket=daemon.control(), env=env).stdout.split())
            check(f"The time before is not complete: {before['samples']} samples, " in text, text)
            check("This window is not" not in text, text)
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


main()
