#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The counts of tests/summary.py for programs that pass, fail, skip, crash, hang or say nothing."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
import summary  # noqa: E402
from tap import check, equal, main, test  # noqa: E402


def counted(stdout, status=0, result="OK", ci="", stderr=""):
    os.environ["CI"] = ci
    count = summary.Count()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        count.program("p", {"stdout": stdout, "returncode": status, "result": result,
                            "stderr": stderr})
    return (count.passed, count.failed, count.skipped), said.getvalue()


@test
def each_line_counts_as_one_function():
    counts, _ = counted("ok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no such thing\n1..3\n", 1)
    equal(counts, (1, 1, 1))


@test
def the_output_of_a_failure_is_shown():
    _, said = counted("ok 1 - a\n# x.c:3: 1 is 2\nnot ok 2 - b\n1..2\n", 1)
    check("FAILED p b" in said and "x.c:3: 1 is 2" in said, said)


@test
def a_crash_within_the_tests_is_a_failure():
    equal(counted("ok 1 - a\n", -11, "FAIL")[0], (1, 1, 0))


@test
def a_crash_after_the_tests_is_a_failure():
    equal(counted("ok 1 - a\n1..1\n", -11, "FAIL")[0], (1, 1, 0))


@test
def a_report_of_a_sanitizer_at_the_end_is_a_failure():
    counts, said = counted("ok 1 - a\n1..1\n", 1, "ERROR", stderr="LeakSanitizer: leaks\n")
    equal(counts, (1, 1, 0))
    check("LeakSanitizer" in said, said)


@test
def a_program_that_prints_no_tap_is_a_failure():
    equal(counted("all is well\n")[0], (0, 1, 0))


@test
def a_program_with_fewer_tests_than_planned_is_a_failure():
    equal(counted("1..3\nok 1 - a\nok 2 - b\n")[0], (2, 1, 0))


@test
def a_program_that_hangs_is_a_failure():
    equal(counted("1..1\nok 1 - a\n", -15, "TIMEOUT")[0], (1, 1, 0))


@test
def a_program_that_skips_everything_ends_with_77():
    equal(counted("ok 1 - a # SKIP needs root\n1..1\n", 77, "ERROR")[0], (0, 0, 1))


@test
def ci_may_not_skip_for_lack_of_an_installable_package():
    equal(counted("ok 1 - a # SKIP mandoc is not installed\n1..1\n", 77, ci="true")[0], (0, 1, 0))


@test
def ci_may_skip_for_lack_of_the_shared_corpus():
    line = "ok 1 - a # SKIP the shared corpus is absent\n1..1\n"
    os.environ["PROFD_CORPUS"] = "/proc/nonexistent"
    equal(counted(line, 77, ci="true")[0], (0, 0, 1))
    os.environ["PROFD_CORPUS"] = "/"
    equal(counted(line, 77, ci="true")[0], (0, 1, 0))


def again(first, second, log_name="testlog"):
    """The counts and the words for a program that failed and was run again."""
    log = {"name": "profd:unit / p", "stdout": first, "returncode": 1, "result": "FAIL"}
    with tempfile.TemporaryDirectory(prefix="profd-summary.") as folder:
        logs = Path(folder) / "meson-logs"
        logs.mkdir()
        (logs / f"{log_name}.json").write_text(json.dumps(log) + "\n")
        (logs / "second.json").write_text(json.dumps({**log, **second}) + "\n")
        (Path(folder) / "meson-info").mkdir()
        (Path(folder) / "meson-info" / "intro-tests.json").write_text('[{"name": "p", "suite": ["profd:unit"]}]')
        command = [sys.executable, summary.__file__]
        named = subprocess.run([*command, "--failed", folder], capture_output=True, text=True, check=True).stdout
        done = subprocess.run([*command, folder], capture_output=True, text=True, check=False)
    return named, done.stdout, done.returncode


@test
def a_program_that_passes_alone_is_shown_as_unsteady():
    named, said, status = again("# was late\nnot ok 1 - a\n1..1\n",
                                {"stdout": "ok 1 - a\n1..1\n", "returncode": 0, "result": "OK"})
    equal((named, status), ("p\n", 0))
    check("UNSTEADY p a\n    # was late" in said and said.endswith("1 passed, 0 failed, 0 skipped\n"), said)


@test
def programs_that_ran_in_pairs_count_too():
    _, said, status = again("not ok 1 - a\n1..1\n", {"stdout": "ok 1 - a\n1..1\n", "returncode": 0, "result": "OK"}, "pair")
    equal(status, 0)
    check("UNSTEADY p a\n" in said and said.endswith("1 passed, 0 failed, 0 skipped\n"), said)


@test
def a_program_that_fails_twice_is_a_failure():
    _, said, status = again("not ok 1 - a\n1..1\n", {"stdout": "not ok 1 - a\n1..1\n"})
    equal(status, 1)
    check(said.endswith("0 passed, 1 failed, 0 skipped\n"), said)


if __name__ == "__main__":
    main()
