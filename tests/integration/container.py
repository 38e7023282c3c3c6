# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rights that containers take away, each alone: the words before a command that runs without it.

    subprocess.run([*without_perf_events(errno.EPERM), PROFD])
    subprocess.run([*IN_USER_NAMESPACE, PROFD])
    subprocess.run([*without_capabilities("perfmon", "sys_admin"), PROFD])
"""

import ctypes
import os
import platform
import struct
import sys

IN_USER_NAMESPACE = ["unshare", "--user", "--map-root-user"]

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241, "riscv64": 241}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
RETURN_ERRNO, RETURN_ALLOW = 0x00050000, 0x7FFF0000


def without_capabilities(*names):
    """As root, whom most runtimes leave some."""
    lost = ",".join(f"-{name}" for name in names)
    return ["setpriv", f"--bounding-set={lost}", f"--inh-caps={lost}"]


def without_perf_events(error):
    """Behind a filter that answers perf_event_open with this error."""
    return [sys.executable, os.path.abspath(__file__), str(error)]


def knows_the_number():
    return platform.machine() in PERF_EVENT_OPEN


class Program(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def deny(error):
    number = PERF_EVENT_OPEN[platform.machine()]
    rows = [(LOAD, 0, 0, 0), (JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, RETURN_ERRNO | error),
            (RETURN, 0, 0, RETURN_ALLOW)]
    text = b"".join(struct.pack("=HBBI", *row) for row in rows)
    program = Program(len(rows), text)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 \
            or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) < 0:
        sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    deny(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
