# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether call chains end where a stack ends, judged by the ELF files with readelf: a chain is whole
if its outermost address is in a function without a caller.

Such a function has call frame information that calls its return address undefined (_start, clone3),
or is at the entry point of its file (ld.so), or is one of the first functions of Go, whose programs
have no such information."""

import bisect
import collections
import functools
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check  # noqa: E402

End = collections.namedtuple("End", "time pid tid cpu frames offset file comm")

ENTRY_BYTES = 128  # of the code at the entry point of a file
# runtime.mcall has cleared the frame pointer: what it calls never returns.
GO_FIRST = re.compile(r"runtime\.(goexit|mstart|rt0_go|mcall)(\.abi0)?$|_rt0_")
FUNCTION = re.compile(r".* FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)$")
LOAD = re.compile(r"\s*LOAD\s+0x([0-9a-f]+) 0x([0-9a-f]+) \S+ 0x([0-9a-f]+)")
SYMBOL = re.compile(r"\s*\d+: ([0-9a-f]+)\s+(\w+) FUNC\s+\w+\s+\w+\s+\S+\s+(\S+)$")


def all_samples(recording):
    """An End for each sample; those without frames of user space count 0 of them."""
    done = subprocess.run([build_path("tests", "integration", "chain-end"), recording], capture_output=True, text=True,
                          errors="replace", check=False)
    check(done.returncode == 0, f"chain-end {recording}: {done.stderr}")
    rows = (line.split("\t", 7) for line in done.stdout.splitlines())
    return [End(int(row[0]), int(row[1]), int(row[2]), int(row[3]), int(row[4]), int(row[5], 16), row[6], row[7])
            for row in rows]


def chain_ends(recording):
    """An End for each sample with frames of user space."""
    return [end for end in all_samples(recording) if end.frames > 0]


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, errors="replace",
                          check=False).stdout.splitlines()


class File:
    """What readelf reports of an ELF file."""

    def __init__(self, path):
        self.path = path
        header = readelf(path, "-h", "-l")
        self.loads = [tuple(int(word, 16) for word in m.groups()) for m in map(LOAD.match, header) if m]
        entry = next((int(line.split()[-1], 16) for line in header if "Entry point address" in line), 0)
        self.first = [(entry, entry + ENTRY_BYTES)] if entry else []
        self.first += self.functions_without_caller()
        symbols = sorted((int(m[1], 16), m[3].split("@")[0]) for m in map(SYMBOL.match, readelf(path, "-s")) if m)
        self.addresses, self.names = [s[0] for s in symbols], [s[1] for s in symbols]

    def functions_without_caller(self):
        found, function, is_last_column = [], None, False
        for line in readelf(self.path, "--debug-dump=frames-interp"):
            match = FUNCTION.match(line)
            if match:
                function = tuple(int(word, 16) for word in match.groups())
            elif " CIE " in line:
                function = None
            elif line.lstrip().startswith("LOC"):
                is_last_column = line.rstrip().endswith("ra")
            elif function and is_last_column and line.rstrip().endswith(" u"):
                found.append(function)
                function = None
        return found

    def address(self, offset):
        for begin, address, size in self.loads:
            if begin <= offset < begin + size:
                return address + offset - begin
        return None

    def symbol(self, offset):
        address = self.address(offset)
        if address is None or not self.addresses or address < self.addresses[0]:
            return "?"
        return self.names[bisect.bisect_right(self.addresses, address) - 1]

    def is_first(self, offset):
        address = self.address(offset)
        return address is not None and (any(begin <= address < end for begin, end in self.first)
                                        or GO_FIRST.match(self.symbol(offset)) is not None)


@functools.lru_cache(maxsize=None)
def file_of(path):
    return File(path)


@functools.lru_cache(maxsize=None)
def _is_first(path, offset):
    return os.path.exists(path) and file_of(path).is_first(offset)


def is_whole(end):
    return _is_first(end.file, end.offset)


def place(end):
    """The name of the place where a chain ends, for a report."""
    if not os.path.exists(end.file):
        return end.file
    return f"{os.path.basename(end.file)}:{file_of(end.file).symbol(end.offset)}"
