# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the lint tests share: the tree, its files, and TAP."""

import os
import sys
from pathlib import Path

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
                f for f in folders if f not in OUTSIDE and not (top and f.startswith("build"))
            ]
            found.update(inside / name for name in names if name not in OUTSIDE)
    return sorted(path for path in found if not suffixes or path.suffix in suffixes)


def read(path):
    return (SOURCE / path).read_text(encoding="utf-8", errors="surrogateescape")


def sources():
    return files(".c", ".h", below=("lib", "daemon", "client"))


class Tap:
    def __init__(self):
        self.n = self.failures = 0

    def check(self, name, findings, notes=()):
        """A test that passes when there is no finding; notes are shown either way."""
        self.n += 1
        findings = list(findings)
        self.failures += bool(findings)
        for note in notes:
            print(f"# note: {note}")
        for finding in findings:
            print(f"# {finding}")
        print(f"{'not ok' if findings else 'ok'} {self.n} - {name}", flush=True)

    def skip(self, name, reason):
        self.n += 1
        print(f"ok {self.n} - {name} # SKIP {reason}", flush=True)

    def end(self):
        print(f"1..{self.n}")
        sys.exit(1 if self.failures else 0)
