#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""compilers.py ID: everything compiles without a word under the compiler that ID, the one of the build at hand, is
not. Nothing is linked or kept, and a source that several targets share is compiled once."""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tree import BUILD, need, none
from tap import check, main, test

OTHER = "clang" if sys.argv.pop(1) != "clang" else "gcc"
# Code must be made, or gcc says nothing of a function without a result, and clang nothing of assembler.
MODE = ["-Werror", "-O0", "-g0", "-fdiagnostics-color=never", "-o", os.devnull]


def commands():
    """Those of the build for the other compiler, one for each source and its macros."""
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        words = shlex.split(re.sub(r" -(MQ|MF|o) \S+| -MD", "", entry["command"]))
        options = words[next(i for i, word in enumerate(words) if word.startswith("-")):]
        macros = tuple(word for word in options if word.startswith("-D"))
        found[entry["file"], macros] = [OTHER, *options, *MODE]
    return list(found.values())


def complaints(command):
    done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, errors="replace", check=False)
    said = (done.stdout + done.stderr).splitlines()
    return said or ([f"{shlex.join(command)} ends with {done.returncode}"] if done.returncode else [])


def everything_compiles_under_the_other_compiler():
    need(OTHER)
    wanted = commands()
    check(wanted, "the build has compiled nothing")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        none(line for lines in pool.map(complaints, wanted) for line in lines)


everything_compiles_under_the_other_compiler.__name__ = f"everything_compiles_under_{OTHER}"
test(everything_compiles_under_the_other_compiler)

if __name__ == "__main__":
    main()
