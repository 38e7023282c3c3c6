#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shell scripts against shellcheck, python against its compiler, all words against codespell."""

import ast
import subprocess

from tree import SOURCE, files, need, none, read
from tap import check, main, test

TEXTS = {".c", ".h", ".md", ".1", ".5", ".7", ".8", ".py", ".sh", ".conf", ".build", ".bash", ".fish",
         ".catalog"}
# Files that begin with "#!" and have one of these ends are checked: of packages, the scripts of a maintainer.
SCRIPTS = {"", ".postinst", ".postrm"}


def shell_scripts():
    for path in [*files(), SOURCE / ".ci" / "run"]:
        full = SOURCE / path
        if path.suffix in (".sh", ".bash"):
            yield str(path)
        elif path.suffix in SCRIPTS and full.is_file():
            with full.open("rb") as file:
                first = file.readline(80)
            if first.startswith(b"#!") and b"sh\n" in first:
                yield str(path)


def findings_of(command, paths):
    run = subprocess.run([*command, *paths], cwd=SOURCE, capture_output=True, text=True, check=False)
    if run.returncode:
        yield from (run.stdout + run.stderr).splitlines()


def bad_python():
    for path in files(".py"):
        try:
            ast.parse(read(path), str(path))
        except SyntaxError as error:
            yield f"{path}:{error.lineno}: {error.msg}"


@test
def shell_scripts_pass_shellcheck():
    need("shellcheck")
    shells = list(shell_scripts())
    for path in ("dev", "packaging/debian/profd.postinst"):
        check(path in shells, f"{path} is not among the scripts found")
    none(findings_of(["shellcheck"], shells))


@test
def python_scripts_parse():
    none(bad_python())


@test
def codespell_finds_no_misspelling():
    need("codespell")
    texts = [str(path) for path in files() if path.suffix in TEXTS] + ["dev"]
    none(findings_of(["codespell", "--ignore-words", "tests/lint/words"], texts))


if __name__ == "__main__":
    main()
