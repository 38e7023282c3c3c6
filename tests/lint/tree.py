# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the lint tests share: the tree and its files."""

import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tap import check, skip  # noqa: E402

SOURCE = Path(os.environ.get("PROFD_SOURCE", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("PROFD_BUILD", SOURCE / "build"))
OUTSIDE = {".git", ".ci", "__pycache__"}


def files(*suffixes, below=("",)):
    """Every file of the tree, build folders apart, as a path relative to it, sorted."""
    found = set()
    for folder in below:
        for here, folders, names in os.walk(SOURCE / folder):
            inside = Path(here).relative_to(SOURCE)
            top = inside == Path(".")
            folders[:] = [
                f
                for f in folders
                if f not in OUTSIDE
                and not f.endswith(".data")  # a recording in pieces
                and not (top and f.startswith("build"))
            ]
            found.update(inside / name for name in names if name not in OUTSIDE)
    return sorted(path for path in found if not suffixes or path.suffix in suffixes)


def read(path):
    return (SOURCE / path).read_text(encoding="utf-8", errors="surrogateescape")


def sources():
    return files(".c", ".h", below=("lib", "daemon", "client"))


def none(findings):
    """Fails with all findings, when there are any."""
    found = list(findings)
    check(not found, "\n".join(found))


def need(command):
    if not shutil.which(command):
        skip(f"{command} is not installed")
