#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profctl archive: what it packs is enough where the program is gone, for profctl and for perf; and what profctl does under
the name perf_to_profile."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from profctl import PROFCTL  # noqa: E402
from workload import need_root  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix="profd-archive.")
SOURCE = """
static volatile unsigned long x;
__attribute__((noinline)) void hot_inner(void) { for (int i = 0; i < 1000; i++) x += i; }
__attribute__((noinline)) void hot_outer(void) { for (int i = 0; i < 1000; i++) hot_inner(); }
int main() { for (int i = 0; i < 150; i++) hot_outer(); }
"""
_made = {}


def path(*names):
    return os.path.join(FOLDER.name, *names)


def run(*command, status=0, **env):
    """Its output and errors, with a home that has no files of its own."""
    os.makedirs(path("home"), exist_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, errors="surrogateescape",
                          env={**os.environ, "HOME": path("home"), "TMPDIR": FOLDER.name, "XDG_CACHE_HOME": path("cache"), **env})
    if status is not None:
        equal(done.returncode, status, f"{command}: {done.stderr[-500:]}; its status")
    return done.stdout, done.stderr


def scene():
    """A recording of a program, its archives, and then the program is gone."""
    need_root()
    if not _made:
        with open(path("hot.c"), "w", encoding="ascii") as f:
            f.write(SOURCE)
        run("cc", "-g", "-O1", "-Wl,--build-id", "-o", path("hot"), path("hot.c"))
        run("perf", "record", "-q", "-N", "-k", "CLOCK_MONOTONIC", "-F", "997", "-g", "-o", path("rec"), path("hot"))
        _made["said"] = run(PROFCTL, "archive", path("rec"))
        run(PROFCTL, "archive", "--reduced", "-o", path("small.tar.gz"), path("rec"))
        os.unlink(path("hot"))
    return path("rec.tar.gz")


def report(file):
    return run(PROFCTL, "report", "--csv", "--by=symbol", file)[0]


@test
def an_archive_names_the_code_of_a_program_that_is_gone():
    archive = scene()
    check("hot_inner" not in report(path("rec")), "the program is not gone")
    for file in archive, path("small.tar.gz"):
        rows = dict(line.split(",")[:2] for line in report(file).splitlines()[1:])
        check(int(rows["hot_inner"]) > 10, rows)
    left = [name for name in os.listdir(FOLDER.name) if name.startswith("profctl-")]
    equal(left, [], "what is left of the archives")


@test
def an_archive_names_the_code_of_a_stripped_program_by_its_debug_file():
    need_root()
    with open(path("bare.c"), "w", encoding="ascii") as f:
        f.write(SOURCE)
    run("cc", "-g", "-O1", "-Wl,--build-id", "-o", path("bare"), path("bare.c"))
    run("objcopy", "--only-keep-debug", path("bare"), path("bare.debug"))
    run("strip", path("bare"))
    run("objcopy", f"--add-gnu-debuglink={path('bare.debug')}", path("bare"))
    run("perf", "record", "-q", "-N", "-k", "CLOCK_MONOTONIC", "-F", "997", "-g", "-o", path("bare-rec"), path("bare"))
    for name, extra in (("bare.tar.gz", []), ("bare-small.tar.gz", ["--reduced"])):
        run(PROFCTL, "archive", *extra, "-o", path(name), path("bare-rec"))
    os.unlink(path("bare"))
    os.unlink(path("bare.debug"))
    check("hot_inner" not in report(path("bare-rec")), "the debug file is not gone")
    for name in "bare.tar.gz", "bare-small.tar.gz":
        with tarfile.open(path(name)) as tar:
            members = [m.name for m in tar]
        rows = dict(line.split(",")[:2] for line in report(path(name)).splitlines()[1:])
        check(int(rows.get("hot_inner", 0)) > 10, (name, members, rows))


@test
def names_of_an_archive_are_not_kept_for_other_recordings():
    run(PROFCTL, "report", scene(), XDG_CACHE_HOME=path("cache-of-names"))
    equal(glob.glob(path("cache-of-names", "profctl", "*.names")), [], "tables of names that are kept")


@test
def other_verbs_read_the_recording_of_an_archive():
    archive = scene()
    equal(run(PROFCTL, "dump", archive)[0], run(PROFCTL, "dump", path("rec"))[0], "what dump prints")
    # The copy is younger than the recording.
    lines = [[line for line in run(PROFCTL, "info", file)[0].splitlines()[1:] if not line.startswith("# captured on")]
             for file in (archive, path("rec"))]
    equal(lines[0], lines[1], "what info prints")
    said = [run(PROFCTL, "verify", file)[0].replace(file, "") for file in (archive, path("rec"))]
    equal(said[0], said[1], "what verify prints")
    _, err = run(PROFCTL, "report", "--comm=hot", "--since=2000-01-01", "--until=2000-01-02", archive, status=5)
    check("that match in the window" in err, err)


@test
def it_is_laid_out_as_what_perf_archive_makes():
    archive = scene()
    equal(_made["said"][0].strip(), archive, "the path that was printed")
    check("tar xf" in _made["said"][1], _made["said"][1])
    with tarfile.open(archive) as tar:
        members = {m.name: m for m in tar}
    with tarfile.open(path("small.tar.gz")) as tar:
        small = {m.name: m for m in tar}
    equal(members["perf.data"].size, os.path.getsize(path("rec")), "the size of the recording")
    files = [name for name in members if name.endswith("/elf")]
    check(files and all(re.fullmatch(r"\.build-id/[0-9a-f]{2}/[0-9a-f]{38}/elf", name) for name in files), sorted(members))
    check(sum(small[name].size for name in files) < sum(members[name].size for name in files), "reduced files are no smaller")
    os.makedirs(path("home", ".debug"), exist_ok=True)
    run("tar", "xf", archive, "-C", path("home", ".debug"))
    out, _ = run("perf", "report", "-i", path("home", ".debug", "perf.data"), "--stdio", "-g", "none", "--no-children", "--sort", "sym")
    check("hot_inner" in out, out[-1000:])
    shutil.rmtree(path("home", ".debug"))


@test
def what_it_cannot_pack_is_refused_in_a_sentence():
    archive = scene()
    for words, arguments in (("exists", [path("rec")]), ("an archive already", [archive]), ("is no file", [FOLDER.name])):
        _, err = run(PROFCTL, "archive", *arguments, status=1)
        check(words in err and err.count("\n") == 1, err)
    for extra in [], ["-o", "-"]:
        out, err = run(PROFCTL, "archive", "--json", "-f", *extra, path("rec"), status=2)
        check("leave out --json" in err and err.count("\n") == 1, err)
        equal(out, "", "what is printed")
    with open(archive, "rb") as f:
        whole = f.read()
    with open(path("cut.tar.gz"), "wb") as f:
        f.write(whole[:len(whole) // 2])
    _, err = run(PROFCTL, "report", path("cut.tar.gz"), status=1)
    check("cut.tar.gz" in err and "damaged" in err and err.count("\n") == 1, err)


@test
def perf_to_profile_writes_what_pprof_writes():
    scene()
    os.makedirs(path("bin"), exist_ok=True)
    program = path("bin", "perf_to_profile")
    os.symlink(PROFCTL, program)
    run(program, "-i", path("rec"), "-o", path("out"))
    run(PROFCTL, "pprof", "-o", path("same"), path("rec"))
    with open(path("out"), "rb") as out, open(path("same"), "rb") as same:
        equal(out.read(), same.read(), "the profile")
    _, err = run(program, "-i", path("rec"), "-o", path("out"), status=1)
    check("exists" in err, err)
    equal(run(program, "-i=" + path("rec"), "-o=" + path("out"), "-f"), ("", ""), "what is printed")
    with open(path("rec"), "rb") as whole, open(path("unfinished"), "wb") as f:
        f.write(whole.read()[:-200])
    run(PROFCTL, "pprof", "-o", path("part"), path("unfinished"), status=8)
    _, err = run(program, "-i", path("unfinished"), "-o", path("partial"))
    check("unfinished" in err, "it does not say that it is partial")
    with open(path("part"), "rb") as out, open(path("partial"), "rb") as same:
        equal(out.read(), same.read(), "the profile of a part")
    _, err = run(program, "--help", status=2)
    check("perf_to_profile -i FILE -o OUT" in err, err)


if __name__ == "__main__":
    main()
