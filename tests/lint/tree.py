# SPDX-License-Identifier: LGPL-2.1-or-later
"""Code that the lint tests share: the tree, its files, what they include, and the objects built of them."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tap import check, skip  # noqa: E402

SOURCE = Path(os.environ.get("PROFD_SOURCE", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("PROFD_BUILD", SOURCE / "build"))
ROOMS = ("lib", "daemon", "gateway", "client")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
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
    return files(".c", ".h", below=ROOMS)


def resolve(name, path):
    for folder in (Path("lib"), Path("daemon"), Path("gateway"), Path(""), Path(path).parent):
        if (SOURCE / folder / name).is_file():
            return folder / name
    return None


def objects():
    """(source, object) of what was built from the rooms' sources."""
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        source = (BUILD / entry["file"]).resolve()
        built = BUILD / entry["output"]
        if source.is_relative_to(SOURCE) and built.exists():
            path = source.relative_to(SOURCE)
            if path.parts[0] in ROOMS:
                yield path, built


def symbols(pairs, *options):
    """(source, symbol) of each of these objects; nm is run once for all of them."""
    sources_of = {str(built): path for path, built in pairs}
    command = ["nm", "--format=posix", "--print-file-name", *options, *sources_of]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        built, rest = line.split(": ", 1)
        yield sources_of[built], rest.split()[0]


def none(findings):
    """Fails with all findings, when there are any."""
    found = list(findings)
    check(not found, "\n".join(found))


def need(command):
    if not shutil.which(command):
        skip(f"{command} is not installed")
