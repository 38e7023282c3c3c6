#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""./dev where packages are missing: in a PATH that holds a few tools and an apt-get that only
writes down what it was asked."""

import os
import pty
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import check, equal, main, source_path, test  # noqa: E402

TOOLS = ["cut", "date", "dirname", "env", "rm", "sed", "sh", "xargs", "echo", "cat"]


class Machine:
    """A PATH of our own; nothing that ./dev looks for by command is in it."""

    def __init__(self, folder, uid):
        self.bin = os.path.join(folder, "bin")
        self.asked = os.path.join(folder, "asked")
        os.mkdir(self.bin)
        for tool in TOOLS:
            os.symlink(shutil.which(tool), os.path.join(self.bin, tool))
        self.stub("id", f"echo {uid}")
        self.stub("apt-cache", "exit 1")
        self.stub("apt-get", f'echo "$*" >>{self.asked}')

    def stub(self, name, body):
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{body}\n")
        os.chmod(path, 0o755)

    def dev(self, *arguments, stdin=subprocess.DEVNULL, ci=""):
        return subprocess.run([source_path("dev"), *arguments], stdin=stdin, capture_output=True,
                              text=True, env={"PATH": self.bin, "CI": ci}, check=False)

    def asked_for(self):
        if not os.path.exists(self.asked):
            return ""
        with open(self.asked, encoding="utf-8") as file:
            return file.read()

    def answer(self, word, *arguments, ci=""):
        """Runs ./dev with a terminal on stdin at which `word` is typed."""
        ours, theirs = pty.openpty()
        os.write(ours, word.encode() + b"\n")
        try:
            return self.dev(*arguments, stdin=theirs, ci=ci)
        finally:
            os.close(ours)
            os.close(theirs)


def machine(uid):
    def wrap(function):
        def run():
            with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
                function(Machine(folder, uid))
        run.__name__ = function.__name__
        return test(run)
    return wrap


@machine(uid=1000)
def without_root_the_line_to_run_is_printed(m):
    said = m.dev("build")
    equal(said.returncode, 2, "the status")
    check(said.stdout.startswith("apt-get update && apt-get install"), said.stdout)
    for package in ("gcc", "meson", "ninja-build", "libzstd-dev", "libevent-dev", "pkg-config"):
        check(f" {package}" in said.stdout, f"{package} is not in: {said.stdout}")
    equal(m.asked_for(), "", "what apt-get was asked")


@machine(uid=1000)
def building_needs_no_perf_and_testing_does(m):
    check("linux-perf" not in m.dev("build").stdout, "build asks for linux-perf")
    check("linux-perf" in m.dev("test").stdout, "test does not ask for linux-perf")
    check("shellcheck" in m.dev("test").stdout, "test does not ask for shellcheck")


@machine(uid=0)
def root_at_a_terminal_may_say_no(m):
    said = m.answer("n", "deps", "build")
    equal(said.returncode, 2, "the status")
    check("Install " in said.stderr, said.stderr)
    equal(m.asked_for(), "", "what apt-get was asked")


@machine(uid=0)
def root_at_a_terminal_may_say_yes(m):
    m.answer("y", "deps", "build")
    check("libzstd-dev" in m.asked_for(), m.asked_for())


@machine(uid=0)
def yes_and_ci_and_no_terminal_ask_nothing(m):
    for said in (m.answer("n", "deps", "build", "--yes"), m.answer("n", "deps", "build", ci="true"),
                 m.dev("deps", "build")):
        check("[y/N]" not in said.stderr, said.stderr)
        check("still missing" in said.stderr, said.stderr)
    equal(m.asked_for().count("install"), 6, "lines and words 'install' that apt-get got")


@machine(uid=1000)
def an_unknown_verb_is_a_usage_error(m):
    equal(m.dev("frobnicate").returncode, 2, "the status")
    equal(m.dev("deps", "frobnicate").returncode, 2, "the status of deps")


@machine(uid=1000)
def help_names_every_verb(m):
    said = m.dev("help").stdout
    for verb in ("deps", "build", "run", "test", "pages", "ci", "asan", "tsan", "fuzz", "bench", "system", "deb", "rpm",
                 "lint", "format"):
        check(f"\n  {verb}" in said, f"{verb} is not in the help")


if __name__ == "__main__":
    main()
