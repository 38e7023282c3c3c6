#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What an installation holds: programs, stripped and small, pages, completions, configuration."""

import os
import subprocess
import tempfile
from pathlib import Path

from tree import BUILD, none
from tap import check, main, test

PROGRAMS = ("profd", "profctl")
OTHERS = ("profctl.1", "profd.8", "profd.conf.5", "profd.conf", "_profctl", "profctl.bash",
          "profctl.fish", "profd.service")
LIMIT_BYTES = 1 << 20


def installed(folder):
    run = subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--destdir", folder],
                         capture_output=True, text=True, check=False)
    check(run.returncode == 0, run.stdout + run.stderr)
    return {path.name: path for path in Path(folder).rglob("*") if path.is_file()}


def faults(found):
    for name in sorted(set(PROGRAMS + OTHERS) - found.keys()):
        yield f"{name} is not installed"
    for name in PROGRAMS:
        if name not in found:
            continue
        path = found[name]
        if os.stat(path).st_size > LIMIT_BYTES:
            yield f"{name} has {os.stat(path).st_size} bytes"
        said = subprocess.run(["nm", str(path)], capture_output=True, text=True, check=False)
        if said.stdout.strip():
            yield f"{name} is not stripped"


@test
def all_is_installed_and_the_programs_are_stripped_and_small():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        none(faults(installed(folder)))


if __name__ == "__main__":
    main()
