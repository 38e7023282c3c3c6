#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The logs of profd and profd-gateway as the journal gets them: a socket stands in for journald, in a /run of its own."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check, equal, main, skip, source_path, test  # noqa: E402

PROFD = build_path("daemon", "profd")
GATEWAY = build_path("gateway", "profd-gateway")
INSIDE = "inside"
FIELDS = ("PRIORITY", "SYSLOG_IDENTIFIER", "MESSAGE", "MESSAGE_ID", "PROFD_EVENT", "PROFD_FILE", "PROFD_LINE")


def journal():
    os.makedirs("/run/systemd/journal")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind("/run/systemd/journal/socket")
    listener.settimeout(0.2)
    return listener


def entries(listener):
    while True:
        try:
            yield dict(line.split("=", 1) for line in listener.recv(1 << 16).decode().splitlines())
        except TimeoutError:
            return


def inside(config, program):
    """In the new mount namespace: prints what reaches the journal, then what reaches stderr."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    listener = journal()
    reader, writer = os.pipe()
    status = os.fstat(writer)
    subprocess.run([program, "--check-config", f"--config={config}"], stderr=writer, check=False,
                   env={**os.environ, "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
    os.close(writer)
    for entry in entries(listener):
        print(json.dumps({name: entry.get(name) for name in FIELDS}))
    with os.fdopen(reader) as rest:
        print("stderr:" + rest.read())


def number_of(event, *table):
    """The id of the entry in the catalog."""
    with open(source_path(*table), encoding="utf-8") as f:
        return re.search(rf'"{event}", *"([0-9a-f]{{32}})"', f.read())[1]


def compare(program, config_text, problem, event, *table):
    """The one entry that this configuration makes."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        skip("needs root and unshare for a /run of its own")
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
        config.write(config_text)
        config.flush()
        said = subprocess.run(["unshare", "-m", sys.executable, __file__, INSIDE, config.name, program],
                              capture_output=True, text=True, check=False)
        if "unshare:" in said.stderr:
            skip("may not have a mount namespace here")
        lines = said.stdout.splitlines()
        check(lines, said.stderr)
        equal(lines[1:], ["stderr:"], "what comes beside one entry")
        values = ("4", os.path.basename(program), f"{config.name}:2: {problem}", number_of(event, *table), event,
                  config.name, "2")
        equal(json.loads(lines[0]), dict(zip(FIELDS, values)), "the entry")


@test
def lines_are_entries_of_the_journal():
    compare(PROFD, "[Profd]\nMaxSessions=none\n",
            "MaxSessions=none is not understood: it takes a number from 1 to 64",
            "config-problem", "daemon", "program", "log-event.c")


@test
def lines_of_the_gateway_are_entries_of_its_own():
    compare(GATEWAY, "[Gateway]\nInlines=never\n", "Inlines=never is not understood: it takes yes or no",
            "gateway-config-problem", "gateway", "program", "gateway-event.c")


@test
def an_error_reaches_the_unit_although_its_process_has_ended():
    """By the stream of stderr, with its priority."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        skip("needs root and unshare for a /run of its own")
    said = subprocess.run(["unshare", "-m", sys.executable, __file__, INSIDE, "/no/such.conf", PROFD],
                          capture_output=True, text=True, check=False)
    if "unshare:" in said.stderr:
        skip("may not have a mount namespace here")
    lines = [line for line in said.stdout.splitlines() if line]
    equal(len(lines), 1, f"lines of {said.stdout}")
    check(lines[0].startswith("stderr:<3>Failed to read configuration '/no/such.conf'"), lines[0])


if __name__ == "__main__":
    if sys.argv[1:2] == [INSIDE]:
        inside(*sys.argv[2:])
    else:
        main()
