#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shell scripts against shellcheck, python against its compiler, all words against codespell."""

import ast
import shutil
import subprocess

from tree import SOURCE, Tap, files, read

TEXTS = {".c", ".h", ".md", ".1", ".5", ".8", ".py", ".sh", ".conf", ".build", ".bash", ".fish"}


def shell_scripts():
    for path in [*files(), SOURCE / ".ci" / "run"]:
        full = SOURCE / path
        if path.suffix in (".sh", ".bash"):
            yield str(path)
        elif path.suffix == "" and full.is_file():
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


def check_with(tap, name, command, paths):
    if shutil.which(command[0]):
        tap.check(name, findings_of(command, paths))
    else:
        tap.skip(name, f"{command[0]} is not installed")


def main():
    tap = Tap()
    shells = list(shell_scripts())
    tap.check("the_scripts_are_found", (f"{name} is not among them" for name in ("dev",)
                                        if name not in shells))
    check_with(tap, "shell_scripts_pass_shellcheck", ["shellcheck"], shells)
    tap.check("python_scripts_parse", bad_python())
    texts = [str(path) for path in files() if path.suffix in TEXTS] + ["dev"]
    check_with(tap, "words_are_spelt_right",
               ["codespell", "--ignore-words", "tests/lint/words"], texts)
    tap.end()


if __name__ == "__main__":
    main()
