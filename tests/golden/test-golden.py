#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The output of `profctl info` and `dump` for small recordings, held against expected/.

Recordings stand in recordings/ (made by perf) or are made by make.py. What a change is meant to
alter is written anew by `PROFD_GOLDEN=update ./dev test --suite golden`; read the difference.
"""

import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check, equal, main, source_path, test  # noqa: E402

GOLDEN = Path(source_path("tests", "golden"))
EXPECTED = GOLDEN / "expected"
PROFCTL = build_path("client", "profctl")
UPDATE = os.environ.get("PROFD_GOLDEN") == "update"
CAPTURED = 1_790_000_000

COMMANDS = {
    "info": ["info"],
    "info.json": ["info", "--json=pretty"],
    "verify": ["verify"],
    "dump": ["dump"],
    "dump.json": ["dump", "--json=short"],
}


def scratch_of_recordings():
    """A folder with all of them, their times set, so that nothing printed depends on the host."""
    folder = tempfile.TemporaryDirectory(prefix="profd-golden.")
    shutil.copytree(GOLDEN / "recordings", folder.name, dirs_exist_ok=True)
    subprocess.run([sys.executable, GOLDEN / "make.py", folder.name], check=True)
    for path in Path(folder.name).iterdir():
        os.utime(path, (CAPTURED, CAPTURED))
    return folder


SCRATCH = scratch_of_recordings()
RECORDINGS = sorted(p.name for p in Path(SCRATCH.name).iterdir())


def profctl(*arguments, **options):
    environment = {"PATH": os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
        if name in os.environ:
            environment[name] = os.environ[name]
    return subprocess.run(
        [PROFCTL, *arguments],
        capture_output=True, cwd=SCRATCH.name, env=environment, check=False, timeout=60, **options,
    )


def transcript(result):
    text = result.stdout.decode("utf-8", "backslashreplace")
    return f"{text}--- stderr\n{result.stderr.decode()}--- status {result.returncode}\n"


def difference(got, want):
    for number, (a, b) in enumerate(zip(got.splitlines(), want.splitlines()), 1):
        if a != b:
            return f"line {number} is\n  {a}\nnot\n  {b}"
    return "one is longer than the other"


def hold_against_expected(suffix):
    for name in RECORDINGS:
        result = profctl(*COMMANDS[suffix], name)
        got, path = transcript(result), EXPECTED / f"{name.removesuffix('.data')}.{suffix}"
        if UPDATE:
            path.write_text(got)
            continue
        want = path.read_text()
        check(got == want, f"{path.name}: {difference(got, want)}")


@test
def info_is_as_expected():
    hold_against_expected("info")


@test
def info_as_json_is_as_expected():
    hold_against_expected("info.json")


@test
def verify_is_as_expected():
    hold_against_expected("verify")


@test
def dump_is_as_expected():
    hold_against_expected("dump")


@test
def dump_as_json_is_as_expected():
    hold_against_expected("dump.json")


@test
def json_is_json_in_every_mode():
    for name in RECORDINGS:
        short = json.loads(profctl("info", "--json=short", name).stdout)
        pretty = json.loads(profctl("info", "--json=pretty", name).stdout)
        equal(short, pretty, name)
        lines = profctl("dump", "-j", name).stdout.splitlines()
        equal(len([json.loads(line) for line in lines]), short["n_records"], f"lines of {name}")


@test
def nothing_hostile_reaches_the_output():
    for name in RECORDINGS:
        for command in COMMANDS.values():
            out = profctl(*command, name).stdout
            out.decode("utf-8")
            bad = [byte for byte in out if byte < 0x20 and byte != 0x0A or byte == 0x7F]
            check(not bad, f"{name}: control bytes {bad}")


@test
def the_output_is_the_same_for_both_byte_orders():
    little, big = (profctl("dump", name).stdout for name in ("little.data", "big.data"))
    equal(little, big, "the dump of big.data")
    little, big = (profctl("dump", "-j", f"pipe-{o}.data").stdout.replace(b"s390x", b"x86_64")
                   for o in ("little", "big"))
    check(len(little.splitlines()) == len(big.splitlines()), "a pipe of the other order is longer")


@test
def a_stream_on_stdin_reads_like_the_file():
    for name in ("little.data", "compressed.data", "pipe-little.data", "pipe-big.data"):
        with open(os.path.join(SCRATCH.name, name), "rb") as stream:
            piped = profctl("dump", "-", stdin=stream)
        equal(piped.stdout, profctl("dump", name).stdout, f"{name} on stdin")
        if not name.startswith("pipe"):
            continue  # a file wants to be seeked in
        cat = subprocess.Popen(["cat", os.path.join(SCRATCH.name, name)], stdout=subprocess.PIPE)
        piped = profctl("dump", "-", stdin=cat.stdout)
        cat.wait()
        equal(piped.stdout, profctl("dump", name).stdout, f"{name} through a pipe")


@test
def a_file_through_a_pipe_is_refused_with_the_remedy():
    content = Path(SCRATCH.name, "little.data").read_bytes()
    result = profctl("info", "-", input=content)
    equal(result.returncode, 1, "the status")
    check(b"name the file instead" in result.stderr, result.stderr.decode())


@test
def time_order_gives_the_same_records():
    for name in RECORDINGS:
        lines = profctl("dump", "-j", name).stdout.splitlines()
        ordered = profctl("dump", "-j", "--ordered", name).stdout.splitlines()
        equal(sorted(ordered), sorted(lines), name)
    times = [json.loads(line).get("time") for line in
             profctl("dump", "-j", "--sort=time", "-t", "SAMPLE", "little.data").stdout.splitlines()]
    equal(times, sorted(times), "the times of the samples")


def dumped(*options, name="little.data", types=None):
    options = (*options, "-t", types) if types else options
    result = profctl("dump", "-j", *options, name)
    equal(result.returncode, 0, " ".join(options))
    return [json.loads(line) for line in result.stdout.splitlines()]


@test
def filters_keep_the_requested_records():
    equal(len(dumped("--type=sample,COMM")), 6, "by type")
    equal(len(dumped("-t", "9")), 4, "by number of a type")
    equal(len(dumped("--time=1.000000025,1.00000004", "-t", "SAMPLE")), 3, "by time")
    equal(len(dumped("--time=,1.00000003", "-t", "SAMPLE")), 2, "by time with an open start")
    equal(len(dumped("--time=50%-100%")), 1, "by a share of time")
    equal(len(dumped("--pid=101", "-t", "SAMPLE,COMM,FORK,EXIT")), 4, "by process")
    equal(len(dumped("--tid=102")), 1, "by thread")
    equal(len(dumped("--cpu=1", "-t", "SAMPLE")), 1, "by CPU")
    equal(len(dumped("--cpu=0-1", "-t", "SAMPLE")), 4, "by CPUs")
    equal(len(dumped("--event=page-faults", "-t", "SAMPLE")), 1, "by event")
    equal(len(dumped("--event=cpu-*", "-t", "SAMPLE")), 3, "by pattern of an event")


@test
def a_missing_event_is_reported():
    result = profctl("dump", "-e", "cycles", "little.data")
    equal(result.returncode, 1, "the status")
    check(b"cpu-clock, page-faults" in result.stderr, result.stderr.decode())
    equal(dumped("-e", "page-faults", name="stat.data", types="SAMPLE"), [], "no samples")


@test
def each_failure_has_its_status_and_one_sentence():
    os.mkdir(os.path.join(SCRATCH.name, "empty"))
    Path(SCRATCH.name, "text").write_text("no recording at all, but more than a header's worth\n")
    Path(SCRATCH.name, "nothing").write_bytes(b"")
    for arguments, status in (
        (["info", "missing.data"], 1),
        (["info", "text"], 1),
        (["info", "nothing"], 1),
        (["info", "empty"], 1),
        (["dump", "text"], 1),
        (["info"], 2),
        (["info", "a", "b"], 2),
        (["dump", "--nonsense", "little.data"], 2),
        (["nonsense"], 2),
        ([], 2),
        (["info", "cut.data"], 8),
        (["dump", "cut.data"], 8),
        (["info", "unfinished.data"], 8),
    ):
        result = profctl(*arguments)
        words = " ".join(arguments)
        equal(result.returncode, status, words)
        lines = result.stderr.decode().splitlines()
        equal(len(lines), 1, f"lines on stderr of {words}")
        check(lines[0].startswith("profctl: ") and lines[0].endswith("."), lines[0])


@test
def a_failed_write_is_reported_as_a_failure():
    with open("/dev/full", "wb") as full:
        result = subprocess.run([PROFCTL, "dump", "little.data"], stdout=full, cwd=SCRATCH.name,
                                stderr=subprocess.PIPE, check=False)
    equal(result.returncode, 1, "the status on a full disk")
    check(b"No space left" in result.stderr, result.stderr.decode())


@test
def a_reader_that_goes_away_causes_no_message():
    command = f"'{PROFCTL}' dump -j little.data | head -n 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, cwd=SCRATCH.name,
                            check=False)
    equal(result.stderr, b"", "stderr")
    equal(len(result.stdout.splitlines()), 1, "lines")


@test
def the_manual_explains_each_member_of_info():
    page = Path(source_path("doc", "profctl.1")).read_text(encoding="utf-8")
    section = page.split(".Sh JSON OF INFO")[1].split("\n.Sh ")[0]
    for name in RECORDINGS:
        told = json.loads(profctl("info", "-j", name).stdout)
        members = set(told) | {member for event in told["events"] for member in event}
        for member in members:
            check(re.search(rf"\b{member}\b", section), f"{member} is not in profctl(1)")


# The answers of these commands without a daemon prove that profctl understood them.
ENDS_WITHOUT_DAEMON = {"status": (3,), "monitor": (3,), "snapshot": (3,), "doctor": (0, 7),
                       "report": (3,), "changed": (3,), "diff": (3,), "flamegraph": (3,)}


@test
def the_examples_of_the_manual_work():
    page = Path(source_path("doc", "profctl.1")).read_text(encoding="utf-8")
    examples = re.findall(r"^\.Dl \$ (.*profctl.*)$", page, re.M)
    check(len(examples) > 5, "the manual has lost its examples")
    for name, source in (("perf.data", "clock"), ("morning.data", "clock"), ("noon.data", "clock")):
        shutil.copy(Path(SCRATCH.name, f"{source}.data"), Path(SCRATCH.name, name))
    for example in examples:
        command = example.replace("\\e", "\\").replace("\\&", "").replace("\\(dq", '"')
        # Nobody's daemon and no other host is to be asked.
        command = re.sub(r"-H \S+ ", "", command)
        verb = re.search(r"profctl (\S+)", command)[1]
        if verb in ENDS_WITHOUT_DAEMON:
            command = re.sub(r"^perf report -i \$\((.*)\)$", r"\1", command).replace("profctl ", "profctl --socket=none ")
        command = re.sub(r"^perf record [^|]*", "cat pipe-little.data ", command)
        command = re.sub(r"\| (jq|perf) .*", "| cat", command)
        # The only program in the recordings is sh.
        command = re.sub(r"--comm=\w+", "--comm=sh", command)
        environment = {"PATH": f"{os.path.dirname(PROFCTL)}:{os.environ['PATH']}"}
        result = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], cwd=SCRATCH.name,
                                env=environment, capture_output=True, check=False)
        check(result.returncode in ENDS_WITHOUT_DAEMON.get(verb, (0,)),
              f"{command} ended with status {result.returncode} and said {result.stderr!r}")


def on_a_terminal(columns, environment, *arguments):
    """Status and output of profctl with a terminal of so many columns as its stdout."""
    terminal, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("4H", 25, columns, 0, 0))
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "TZ": "UTC", **environment}
    process = subprocess.Popen([PROFCTL, *arguments], stdin=side, stdout=side, cwd=SCRATCH.name,
                               env=environment)
    os.close(side)
    output = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while block := os.read(terminal, 65536):
            output += block
    os.close(terminal)
    return process.wait(timeout=60), output.replace(b"\r\n", b"\n")


@test
def a_pager_is_used_on_a_terminal():
    status, output = on_a_terminal(80, {"PROFD_PAGER": "sed s/^/paged:/"}, "info", "little.data")
    equal(status, 0, "the status")
    check(output.startswith(b"paged:File"), output[:200])
    for environment, options in (
        ({"PROFD_PAGER": "false", "TERM": "dumb"}, []),
        ({"PROFD_PAGER": ""}, []),
        ({"PAGER": "cat"}, []),
        ({"PAGER": "false"}, ["--no-pager"]),
    ):
        status, output = on_a_terminal(80, environment, *options, "info", "little.data")
        equal(status, 0, "the status")
        check(output.startswith(b"File"), output[:200])


@test
def a_pager_that_quits_early_is_no_failure():
    status, output = on_a_terminal(80, {"PAGER": "head -n 1"}, "dump", "group.data")
    equal(status, 0, "the status")
    equal(len(output.splitlines()), 1, "lines")


@test
def json_for_people_is_indented_on_a_terminal():
    _, output = on_a_terminal(80, {"PAGER": ""}, "info", "--json", "little.data")
    equal(json.loads(output)["n_samples"], 4, "n_samples")
    check(output.startswith(b'{\n  "file"'), output[:100])


@test
def long_names_are_truncated_at_the_width_of_the_terminal():
    for columns in (80, 200):
        _, output = on_a_terminal(columns, {"PAGER": ""}, "info", "group.data")
        tables = output.split(b"# ========")[0].decode()
        widest = max(len(line) for line in tables.splitlines())
        check(widest <= columns, f"a line of {widest} in {columns} columns")


if __name__ == "__main__":
    main()
