#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts the test functions of a meson test run.

summary.py FOLDER [SUITES [EXCLUDED]]: reads the TAP of each test program from meson's log in the
build FOLDER, shows what failed and what was skipped and why, and ends with one line of counts.
A program that crashed, stood still, printed no TAP or never ran counts as one failure. In CI a
skip is a failure too, but for what CI cannot install: each such reason is probed here.

summary.py --failed FOLDER: prints the names of the programs that failed, if they are few. `./dev`
runs these once more, alone. The second run counts, and the first failure is shown as UNSTEADY:
it is a fault of the test or of profd on a busy machine, and has to be found.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LINE = re.compile(r"^(ok|not ok)\b\s*\d*\s*-?\s*(.*?)(?:\s+#\s*(SKIP)\S*\s*(.*))?$", re.I)
PLAN = re.compile(r"^1\.\.(\d+)")


def no_corpus():
    return not Path(os.environ.get("PROFD_CORPUS", "../shared/corpus")).is_dir()


def no_perf_events():
    command = ["perf", "stat", "-e", "cpu-clock", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode != 0


def not_root():
    return os.geteuid() != 0


def no_tracefs():
    return not os.path.isdir("/sys/kernel/tracing/events")


def no_mount_namespace():
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0


def no_loop_device():
    """Whether a file system in a file cannot be mounted, tried where nobody else sees it."""
    with tempfile.TemporaryDirectory(prefix="profd-summary.") as folder:
        image = os.path.join(folder, "image")
        with open(image, "wb") as f:
            f.truncate(1 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], capture_output=True, check=True)
        command = ["unshare", "-m", "mount", "-o", "loop", image, folder]
        return subprocess.run(command, capture_output=True, check=False).returncode != 0


def no_smaller_nice():
    command = ["nice", "-n", "-1", "nice"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return said != f"{os.nice(0) - 1}\n"


def paranoid():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        return int(f.read())


def no_collector():
    """Whether the Collector of the tests cannot be built: Go is too old for its modules, or it does not get them."""
    log = Path("build/engines/build.log")
    said = log.read_text(errors="replace") if log.exists() else ""
    reasons = ("requires go", "GOTOOLCHAIN", "403 Forbidden", "404 Not Found", "dial tcp", "proxyconnect", "no such host",
               "connection refused", "i/o timeout", "TLS handshake", "x509:", "unexpected EOF", "Service Unavailable")
    return not shutil.which("go") or any(reason in said for reason in reasons)


def no_bpf():
    return subprocess.run(["build/tests/integration/load/bpf-busy", "0"], capture_output=True, check=False).returncode != 0


# The words that a skip must hold to be allowed in CI, and the condition that must then hold.
ALLOWED_SKIPS = (
    ("shared corpus", no_corpus),
    ("perf events", no_perf_events),
    ("needs root", not_root),
    ("tracefs", no_tracefs),
    ("takes no BPF program", no_bpf),
    ("mount namespace", no_mount_namespace),
    ("loop device", no_loop_device),
    ("smaller nice value", no_smaller_nice),
    ("a sanitizer keeps what was freed", lambda: Path("build-asan").exists() or Path("build-tsan").exists()),
    ("rustc is not installed", lambda: not shutil.which("rustc")),
    ("go is not installed", lambda: not shutil.which("go")),
    ("'./dev readers' installs it", lambda: not Path("build/readers/node_modules").exists()),
    ("'./dev engines' builds it", no_collector),
    ("apt-get install swift-proxy", lambda: not shutil.which("swift-proxy-server")),
    ("no parca on PATH", lambda: not shutil.which("parca")),
    ("no pyroscope on PATH", lambda: not shutil.which("pyroscope")),
    ("lets everybody record whole CPUs", lambda: paranoid() < 1),
    ("lets users record something", lambda: paranoid() <= 2),
    ("lets nobody record his own", lambda: paranoid() > 2),
)


GOOD_RESULTS = ("OK", "SKIP")
# More failures than this are no accident, and are not run again.
SECOND_RUNS_MAX = 4


def skip_is_allowed(reason):
    return any(words in reason and probe() for words, probe in ALLOWED_SKIPS)


def selected(folder, suites, excluded):
    tests = json.loads((folder / "meson-info" / "intro-tests.json").read_text())
    for test in tests:
        own = {suite.split(":")[-1] for suite in test["suite"]}
        if own & excluded or (suites and not own & suites):
            continue
        yield test["name"]


def logged(folder, *names):
    paths = [folder / "meson-logs" / f"{name}.json" for name in names]
    lines = [line for path in paths if path.exists() for line in path.read_text().splitlines()]
    return {run["name"].split(" / ")[-1]: run for run in map(json.loads, lines)}


def first_runs(folder):
    return logged(folder, "testlog", "pair")


def print_failed(folder):
    failed = [name for name, run in first_runs(folder).items() if run["result"] not in GOOD_RESULTS]
    if len(failed) <= SECOND_RUNS_MAX:
        print(*failed)


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def fail(self, name, why):
        self.failed += 1
        print(f"FAILED {name}")
        for line in why:
            print(f"    {line}")

    def skip(self, name, reason):
        if os.environ.get("CI") == "true" and not skip_is_allowed(reason):
            self.fail(name, [f"skipped, which CI may not: {reason}"])
            return
        self.skipped += 1
        print(f"SKIPPED {name}: {reason}")

    def unsteady(self, name, run):
        """What the first run of a program printed that was run again."""
        said = []
        for line in run["stdout"].splitlines():
            match = LINE.match(line)
            if match and match[1] == "not ok":
                print(f"UNSTEADY {name} {match[2]}")
                for word in said:
                    print(f"    {word}")
            said = [] if match else said + [line]
        print(f"UNSTEADY {name}: {run['result']} beside other programs, then run again alone")

    def program(self, name, run):
        said, seen, bad, plan = [], 0, 0, None
        for line in run["stdout"].splitlines():
            match = LINE.match(line)
            plan = PLAN.match(line) or plan
            if not match:
                said.append(line)
                continue
            seen += 1
            for note in (line[2:] for line in said if line.startswith("# note: ")):
                print(f"{name} {note}")
            label = f"{name} {match[2]}"
            if match[1] == "not ok":
                bad += 1
                self.fail(label, said)
            elif match[3]:
                self.skip(label, match[4])
            else:
                self.passed += 1
            said = []
        self.ending(name, run, said, seen, bad, plan)

    def ending(self, name, run, said, seen, bad, plan):
        """The faults that the lines do not show: a crash, a silence, a plan that was not kept."""
        words = said + run.get("stderr", "").splitlines()
        status = run["returncode"]
        if plan and plan[0] == "1..0" and "skip" in plan.string.lower():
            self.skip(name, plan.string.split("skip", 1)[-1].strip())
        elif seen == 0:
            self.fail(name, words[-40:] + [f"printed no test, status {status}"])
        elif run["result"] == "TIMEOUT":
            self.fail(name, words[-40:] + ["stood still until its time was over"])
        elif plan is None or int(plan[1]) != seen:
            self.fail(name, words[-40:] + [f"ended within its tests, status {status}"])
        elif status not in (0, 77) and bad == 0:
            self.fail(name, words[-40:] + [f"ended with status {status}"])
        elif bad:
            for line in run.get("stderr", "").splitlines()[-40:]:
                print(f"    {line}")


def main():
    if sys.argv[1] == "--failed":
        print_failed(Path(sys.argv[2]))
        return 0
    folder = Path(sys.argv[1])
    suites, excluded = (set(words.split()) for words in (sys.argv[2:] + ["", ""])[:2])
    runs, second = first_runs(folder), logged(folder, "second")
    count = Count()
    names = list(selected(folder, suites, excluded))
    for name in names:
        if name in second:
            count.unsteady(name, runs[name])
            count.program(name, second[name])
        elif name in runs:
            count.program(name, runs[name])
        else:
            count.fail(name, ["never ran, or was still running when the time was over"])
    if not names:
        count.fail("the selection", [f"holds no test (suites: {' '.join(suites) or 'all'})"])
    print(f"{count.passed} passed, {count.failed} failed, {count.skipped} skipped")
    return 1 if count.failed else 0


if __name__ == "__main__":
    sys.exit(main())
