# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rows of the real perf report and of profctl report, in one form."""

import collections
import functools
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from profctl import profctl  # noqa: E402
from tap import check, equal  # noqa: E402

EVENT = re.compile(r"# Samples: \S+ +of events? '(.*)'")
MODIFIERS = re.compile(r":[ukhHGpPSDIWeb]+$")
ADDRESS = re.compile(r"^(0x)?[0-9a-f]+$")
# Code without a symbol is "[file]", and with --addresses "file+0x12ab".
UNNAMED = re.compile(r"^(.*\+0x[0-9a-f]+|\[.*\])$")


def perf_report(path, *options):
    done = subprocess.run(["perf", "report", "-i", path, "--stdio", "--no-children", "--no-inline", "--no-group", "--no-branch-stack",
                           *options],
                          capture_output=True, text=True, errors="surrogateescape", check=False, timeout=300,
                          env={**os.environ, "PERF_CONFIG": "/dev/null"})
    equal(done.returncode, 0, f"perf report of {path}: {done.stderr[-500:]}")
    return done.stdout.splitlines()


@functools.cache
def aliases():
    """Names of one address of the kernel, of which perf takes another one than we do: each by the first of them."""
    first, names = {}, {}
    with open("/proc/kallsyms", encoding="ascii", errors="replace") as f:
        for line in f:
            address, _, name = line.split()[:3]
            if int(address, 16):
                names[name] = first.setdefault(address, name)
    # A label without a size a few bytes behind _start of ld.so, which perf takes for a function.
    names["_dl_start_user"] = "_start"
    return names


def plain(symbol):
    """A name without perf's mark of the kind; nothing for an address."""
    symbol = re.sub(r"^\[.\] ", "", symbol.strip())
    # perf names a stub whose relocation has no symbol by its suffix alone, and code of the vdso now and then.
    return "" if symbol == "@plt" or symbol.startswith("__vdso_") or ADDRESS.match(symbol) or UNNAMED.match(symbol) else aliases().get(symbol, symbol)


def perf_rows(path, keys, *options):
    """Samples and period of each row, by event and keys. perf tells functions of one name apart, and addresses without a
    name: both are added up."""
    fields = {"comm": "comm", "dso": "dso", "symbol": "sym", "srcline": "srcline"}
    rows, event = collections.Counter(), ""
    periods = collections.Counter()
    for line in perf_report(path, "-g", "none", "-t", "\t", "-w", "20,20,64,300,500", "-F", ",".join(["sample", "period"] + [fields[k] for k in keys]),
                            *options):
        found = EVENT.match(line)
        if found:
            event = MODIFIERS.sub("", found[1])
        if not line or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        key = (event, *[plain(c) if k == "symbol" else c for k, c in zip(keys, cells[2:])])
        rows[key] += int(cells[0])
        periods[key] += int(cells[1])
    return {key: (n, periods[key]) for key, n in rows.items()}


def our_rows(path, keys, *options):
    done = profctl("report", "--json=short", f"--by=event,{','.join(keys)}", "--percent-limit=0", *options, path)
    check(done.returncode in (0, 8), done.stderr)
    rows, periods = collections.Counter(), collections.Counter()
    for row in json.loads(done.stdout)["rows"]:
        key = (MODIFIERS.sub("", row["event"]), *[plain(row[k]) if k == "symbol" else row[k] for k in keys])
        if row["samples"]:
            rows[key] += row["samples"]
            periods[key] += row["period"]
    return {key: (n, periods[key]) for key, n in rows.items()}


def differences(path, keys, strange=None):
    """What differs; strange: names that perf does not demangle, and what they mean."""
    want, got = perf_rows(path, keys), our_rows(path, keys)
    want = {tuple((strange or {}).get(value, value) for value in key): counts for key, counts in want.items()}
    check(want, f"perf shows nothing of {path}")
    return {key: (want.get(key), got.get(key)) for key in want.keys() | got.keys() if want.get(key) != got.get(key)}
