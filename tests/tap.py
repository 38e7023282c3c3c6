# SPDX-License-Identifier: LGPL-2.1-or-later
"""TAP for tests in Python: the counterpart of test.h.

    @test
    def a_sentence():
        check(x == 1, "what went wrong")

    if __name__ == "__main__":
        main()

A test fails by check(), by an exception, or by equal(); it skips by skip("what the machine lacks").
A word on the command line runs only the tests whose names hold it.
"""

import os
import sys
import time
import traceback

# Tests that take this long print their time, to find what makes a suite slow.
SLOW_S = 1
_tests = []


class _Failure(Exception):
    pass


class _Skip(Exception):
    pass


def test(function):
    _tests.append(function)
    return function


def check(condition, why):
    if not condition:
        raise _Failure(why)


def equal(got, want, what=""):
    if got != want:
        raise _Failure(f"{what} is {got!r}, not {want!r}")


def skip(why):
    raise _Skip(why)


def build_path(*parts):
    return os.path.join(os.environ["PROFD_BUILD"], *parts)


def source_path(*parts):
    return os.path.join(os.environ["PROFD_SOURCE"], *parts)


def _run(number, function):
    """Runs one test, prints its line, and tells what became of it."""
    try:
        function()
    except _Skip as reason:
        print(f"ok {number} - {function.__name__} # SKIP {reason}")
        return "skipped"
    except _Failure as failure:
        print("".join(f"# {line}\n" for line in str(failure).splitlines()), end="")
    except Exception:  # a test that breaks has failed
        print("".join(f"# {line}\n" for line in traceback.format_exc().splitlines()), end="")
    else:
        print(f"ok {number} - {function.__name__}")
        return "passed"
    print(f"not ok {number} - {function.__name__}")
    return "failed"


def main():
    words = sys.argv[1:]
    chosen = [f for f in _tests if not words or any(w in f.__name__ for w in words)]
    results = []
    for number, function in enumerate(chosen, 1):
        begin = time.monotonic()
        results.append(_run(number, function))
        took = time.monotonic() - begin
        if took >= SLOW_S:
            print(f"# {function.__name__} took {took:.1f} s")
        sys.stdout.flush()
    print(f"1..{len(results)}")
    if "failed" in results:
        sys.exit(1)
    sys.exit(77 if results and "passed" not in results else 0)
