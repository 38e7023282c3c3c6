# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes that run beside a test and do not outlive it."""

import contextlib
import os
import signal
import subprocess


@contextlib.contextmanager
def background(command, **popen):
    """A process in a group of its own, which is killed when the block ends, also when a check in it failed:
    subprocess.Popen alone would wait for a process that nobody ends."""
    with subprocess.Popen(command, start_new_session=True, **popen) as process:
        try:
            yield process
        finally:
            # Also when the process itself has ended: what it started may run on.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
