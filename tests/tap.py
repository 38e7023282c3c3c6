# SPDX-License-Identifier: LGPL-2.1-or-later
"""TAP for tests in Python: the counterpart of test.h.

    @test
    def a_sentence():
        check(x == 1, "what went wrong")

    if __name__ == "__main__":
        main()

A test fails by check(), by an exception, or by equal(); it skips by skip("what the machine lacks").
A word on the command line runs only the tests whose names hold it. Tests that wait for most of their time and
share nothing may run side by side: main(at_once=2).
"""

import os
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

# Tests that take this long print their time, to find what makes a suite slow.
SLOW_S = 1
_tests, _ends = [], []


class _Failure(Exception):
    pass


class _Skip(Exception):
    pass


def test(function):
    _tests.append(function)
    return function


def at_end(function):
    """To be run behind the tests, the last one first; where it fails, the program does."""
    _ends.append(function)


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
    """Runs one test: what became of it, and its lines."""
    begin, said = time.monotonic(), ""
    try:
        function()
    except _Skip as reason:
        return "skipped", f"ok {number} - {function.__name__} # SKIP {reason}\n"
    except _Failure as failure:
        result, said = "failed", str(failure)
    except Exception:  # a test that breaks has failed
        result, said = "failed", traceback.format_exc()
    else:
        result = "passed"
    lines = "".join(f"# {line}\n" for line in said.splitlines())
    lines += f"{'ok' if result == 'passed' else 'not ok'} {number} - {function.__name__}\n"
    took = time.monotonic() - begin
    return result, lines + (f"# {function.__name__} took {took:.1f} s\n" if took >= SLOW_S else "")


def main(at_once=1):
    words = sys.argv[1:]
    chosen = [f for f in _tests if not words or any(w in f.__name__ for w in words)]
    results = []
    try:
        with ThreadPoolExecutor(at_once) as pool:
            # One after the other they run in the main thread, which alone may handle signals.
            run_all = pool.map if at_once > 1 else map
            for result, lines in run_all(_run, range(1, len(chosen) + 1), chosen):
                results.append(result)
                print(lines, end="", flush=True)
    finally:
        for function in reversed(_ends):
            result, lines = _run(len(results) + 1, function)
            if result == "failed":
                results.append(result)
                print(lines, end="", flush=True)
    print(f"1..{len(results)}")
    if "failed" in results:
        sys.exit(1)
    sys.exit(77 if results and "passed" not in results else 0)
