# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of a program share: a folder, a profd that records there, and a load."""

import contextlib
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon  # noqa: E402
from workload import need_root, scratch, spinning  # noqa: E402
from tap import at_end  # noqa: E402


class Scene:
    """A class derived from it begins when a test first asks for it, and ends with the program."""

    config, groups, load = "", None, spinning
    stack = folder = daemon = None
    lock = threading.RLock()

    @classmethod
    def get(cls):
        need_root()
        with cls.lock:
            if not cls.stack:
                with contextlib.ExitStack() as stack:
                    cls.begin(stack.enter_context)
                    cls.stack = stack.pop_all()
                at_end(cls.ends_soundly)
        return cls

    @classmethod
    def ends_soundly(cls):
        cls.stack.close()

    @classmethod
    def begin(cls, enter):
        """What is entered ends with the program, the last one first."""
        enter(cls.load())
        cls.folder = enter(scratch())
        cls.daemon = enter(Daemon(cls.folder, config=cls.config, groups=cls.groups))

    @classmethod
    def control(cls):
        """The path of its profd's socket."""
        return cls.get().daemon.control()
