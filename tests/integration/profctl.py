# SPDX-License-Identifier: LGPL-2.1-or-later
"""profctl as a user would call it, and what must hold of whatever it prints."""

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
import schema  # noqa: E402
from tap import build_path, check, equal  # noqa: E402

PROFCTL = build_path("client", "profctl")
NOBODY = 65534
# C0 but newline and tab, DEL, C1, and what reorders or hides.
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "PROFD_PAGER", "PAGER")}
    return {**kept, "TZ": "UTC", **more}


_copies = []


def for_everyone():
    """A copy of the program where any user may reach it, which the build need not be."""
    if not _copies:
        _copies.append(tempfile.TemporaryDirectory(prefix="profd-test."))
        os.chmod(_copies[0].name, 0o755)
        shutil.copy(PROFCTL, _copies[0].name)
    return os.path.join(_copies[0].name, "profctl")


def profctl(*words, socket=None, user=None, groups=(), env=None, timeout=60):
    program = PROFCTL if user is None else for_everyone()
    command = [program, *([f"--socket={socket}"] if socket else []), *words]
    extra = {"user": user, "group": user, "extra_groups": list(groups)} if user is not None else {}
    return subprocess.run(command, capture_output=True, text=True, errors="surrogateescape",
                          env=env or environment(), stdin=subprocess.DEVNULL, timeout=timeout,
                          check=False, **extra)


def ended(done, status, *words):
    """It ended so, and said in one sentence on stderr what holds these words."""
    equal(done.returncode, status, f"status of {done.args[1:]} ({done.stderr.strip()!r})")
    for word in words:
        check(re.search(word, done.stderr), f"{done.args[1:]} said {done.stderr!r}, not {word!r}")
    if status not in (0, 7, 8):
        lines = [line for line in done.stderr.splitlines() if not line.startswith("Hint: ")]
        check(done.stderr.startswith("profctl: ") and len(lines) == 1,
              f"{done.args[1:]} said no one sentence: {done.stderr!r}")
    return done


def safe(text, what=""):
    found = HARMFUL.search(text)
    check(not found, f"{what} holds {found and found.group()!r}: {text[:500]!r}")
    return text


def check_unwinds(daemon, name="unwound"):
    """The session copies stacks of user space, and nothing made it take others."""
    said = json.loads(profctl("show-session", name, "--json=short", socket=daemon.control()).stdout)[0]["session"]
    check(said["callGraphUsed"].startswith("unwind:"), f"{name}: {said}")


def as_json(done, name, status=0):
    """Its stdout, which fits the schema; one value a line."""
    ended(done, status)
    values = [json.loads(line) for line in safe(done.stdout, name).splitlines()]
    check(values, f"{done.args[1:]} printed nothing")
    for value in values:
        complaints = schema.complain(value, name)
        check(not complaints, f"{done.args[1:]}: " + "; ".join(complaints[:5]))
    return values[-1]


def on_terminal(*words, columns=80, env=None, socket=None):
    """Status and output of profctl on a terminal of that width, without a pager, which would wait for a key."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    command = [PROFCTL, *([f"--socket={socket}"] if socket else []), *words]
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower,
                          env={"TERM": "xterm", "PROFD_PAGER": "", **(env or environment())}) as process:
        os.close(follower)
        text = b""
        while True:
            try:
                more = os.read(leader, 65536)
            except OSError:
                break
            if not more:
                break
            text += more
        status = process.wait(timeout=30)
    os.close(leader)
    return status, text.decode(errors="surrogateescape").replace("\r\n", "\n")


COLOR = re.compile("\x1b\\[[0-9;]*m")


def plain(text):
    return COLOR.sub("", text)
