#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names in any script and in any bytes, printed in every locale: the same bytes, and at once."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from background import background
from daemon import Daemon, session
from profctl import check, ended, environment, equal, profctl, safe
from tap import main, test
from workload import need_root

# A comm has 15 bytes, so the kernel cuts the last character in two: no UTF-8 any more.
COMMS = {"schlüssel日本".encode(): "schlüssel日\\xe6\\x9c", "schön".encode(): "schön",
         b"\xff\xfe": "\\xff\\xfe"}
REASON = "schön langsam"
# An empty one counts as unset, and the last two are installed nowhere or almost nowhere.
LOCALES = ("", "C", "POSIX", "C.UTF-8", "de_DE.ISO-8859-1", "nosuch")
CONFIG = session(Event="cpu-clock", RotateIntervalSec="1h")
SPIN = """import sys
with open("/proc/self/comm", "wb") as f:
    f.write(bytes.fromhex(sys.argv[1]))
print("ready", flush=True)
while True:
    pass
"""

_made = {}


@contextlib.contextmanager
def spinning(comm):
    with background([sys.executable, "-c", SPIN, comm.hex()], stdout=subprocess.PIPE) as process:
        try:
            equal(process.stdout.readline(), b"ready\n", "what it says")
            yield
        finally:
            process.kill()


def made():
    """A daemon whose store has samples of all these names: its socket and a recording."""
    need_root()
    if not _made:
        folder = tempfile.mkdtemp(prefix="profd-test.")
        running = Daemon(folder, config=CONFIG)
        _made.update(folder=folder, daemon=running, socket=running.control())
        with contextlib.ExitStack() as stack:
            for comm in COMMS:
                stack.enter_context(spinning(comm))
            time.sleep(2)
        done = ended(profctl("snapshot", "-r", REASON, socket=running.control()), 0)
        _made["path"] = done.stdout.strip()
    return _made


def printed(words, socket, **locale):
    """The output of profctl, with nothing of the locale but this. It has 20 seconds, and needs none."""
    kept = {k: v for k, v in environment().items()
            if not k.startswith("LC_") and k not in ("LANG", "LANGUAGE")}
    done = ended(profctl(*words, socket=socket, env={**kept, **locale}, timeout=20), 0)
    # How long ago something was changes between two calls.
    return re.sub(r"\((now|\d+ s ago)\)", "(AGO)", safe(done.stdout)), safe(done.stderr)


def everywhere(words, socket=None):
    """The one text that every locale gives."""
    expected = printed(words, socket)
    for name in LOCALES:
        for variable in ("LANG", "LC_ALL"):
            equal(printed(words, socket, **{variable: name}), expected,
                  f"{words} with {variable}={name}")
    return expected[0]


@test
def info_names_processes_of_any_script_in_every_locale():
    text = everywhere(["info", made()["path"]])
    for comm, shown in COMMS.items():
        check(shown in text, f"no {comm} in {text}")


@test
def snapshots_and_their_reasons_are_listed_in_every_locale():
    socket = made()["socket"]
    check(REASON in everywhere(["snapshots"], socket), "no reason in the list")
    name = os.path.basename(made()["path"])
    found = [s for s in json.loads(everywhere(["snapshots", "-j"], socket))
             if os.path.basename(s["path"]) == name]
    equal([s["reason"] for s in found], [REASON], "the reason in JSON")
    check(REASON in everywhere(["show-snapshot", found[0]["name"]], socket), "no reason shown")


@test
def numbers_and_names_in_json_and_dumps_are_the_same_in_every_locale():
    path = made()["path"]
    json.loads(everywhere(["info", "-j", path]))
    text = everywhere(["dump", path])
    check("schön" in text, "the dump does not name the process")
    everywhere(["verify", path])


@test
def tables_and_help_are_the_same_in_every_locale():
    socket = made()["socket"]
    ended(profctl("stop", "default", socket=socket), 0)
    everywhere(["list", "--segments"], socket)
    everywhere(["cat-config"], socket)
    everywhere(["--help"])
    everywhere(["help", "snapshot"])


if __name__ == "__main__":
    try:
        main()
    finally:
        if _made:
            _made["daemon"].kill()
            subprocess.run(["rm", "-rf", _made["folder"]], check=False)
