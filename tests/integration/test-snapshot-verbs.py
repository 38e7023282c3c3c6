#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verbs of snapshots: what they ask a stand-in for and make of its answers, and a real daemon."""

import collections
import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import tempfile
import time

from background import background
import recording
from daemon import session
from profctl import (PROFCTL, as_json, check, ended, environment, equal, on_terminal, plain,
                     profctl, safe)
from scene import Scene
from standin import CLOSE, SILENT, Error, StandIn
from tap import main, skip, test
from varlink import Varlink
from workload import load, spinning, wait_until

HOSTILE = "\x1b[2J\u202e\x7f</script>"
WAIT_S = 40
SINCE = 1795273200000000
SNAPSHOT = {
    "name": "20261121T150000Z", "path": "/nowhere/20261121T150000Z.perf.data",
    "session": "default", "layout": "file", "sensitive": False, "pinned": False, "reason": "slow",
    "uid": 0, "createdUsec": SINCE, "expiresUsec": SINCE + 30 * 86400 * 10**6, "sinceUsec": SINCE,
    "untilUsec": SINCE + 60 * 10**6, "samples": 12345, "lost": 0, "bytes": 1 << 20, "partial": [],
    "files": [""],
    "coverage": {"sinceUsec": SINCE, "untilUsec": SINCE + 60 * 10**6, "recordedUsec": 60 * 10**6,
                 "complete": True, "gaps": []},
}


def taken(**changes):
    """The replies to Snapshot(): on its way, then there."""
    return [{"phase": "building", "doneBytes": 1 << 20, "totalBytes": 4 << 20, "snapshot": None},
            {"phase": "done", "doneBytes": 4 << 20, "totalBytes": 4 << 20,
             "snapshot": {**SNAPSHOT, **changes}}]


def sent(data, announced=None):
    """The reply to Read() and what follows it."""
    n = len(data) if announced is None else announced
    return [json.dumps({"parameters": {"bytes": n}}).encode() + b"\0" + data, CLOSE]


def recorded(folder):
    path = os.path.join(folder, "perf.data")
    subprocess.run(["perf", "record", "-q", "-N", "-B", "-a", "-e", "cpu-clock", "-F", "999", "-o",
                    path, "--", "sleep", "0.2"], check=True, capture_output=True,
                   env=environment(HOME=folder))
    with open(path, "rb") as f:
        return f.read()


def asked(words, **answers):
    """The request that one call of snapshot makes."""
    with tempfile.TemporaryDirectory() as folder, StandIn(folder, {"Snapshot": taken(),
                                                                   **answers}) as daemon:
        ended(profctl("snapshot", *words, socket=daemon.path), 0)
        (call,) = daemon.calls
        equal(call.get("more"), True, "more")
        return call.get("parameters") or {}


@test
def files_without_a_build_id_are_counted_where_there_are_any():
    with tempfile.TemporaryDirectory() as folder:
        for count, words in ((None, None), (0, None), (1, "; 1 file is without a build id."),
                             (2, "; 2 files are without a build id.")):
            more = {} if count is None else {"unidentified": count}
            with StandIn(folder, {"Snapshot": taken(**more)}) as daemon:
                said = ended(profctl("snapshot", socket=daemon.path), 0).stderr
                check("build id" not in said if words is None else words in said, said)
                as_json(profctl("snapshot", "--json", socket=daemon.path), "snapshot")


@test
def options_become_parameters():
    rows = [
        ([], {}),
        (["--last=60s"], {"lastUsec": 60000000}),
        (["--last", "1h 30min"], {"lastUsec": 5400000000}),
        (["--since=@100", "--until", "@200.5"], {"sinceUsec": 100000000, "untilUsec": 200500000}),
        (["--since=2026-11-21 10:00 UTC"], {"sinceUsec": 1795255200000000}),
        (["--at=@100", "--follow-up=30s"], {"atUsec": 100000000, "followUpUsec": 30000000}),
        (["-s", "web", "--name=n", "-r", "it's slow", "--pin"],
         {"session": "web", "name": "n", "reason": "it's slow", "pin": True}),
        (["--layout=directory", "--compress=zstd:9"],
         {"layout": "directory", "compress": "zstd:9"}),
        (["-p", "1,5-7", "--comm=a,b", "--cgroup", "x.slice", "-C", "0-3,8"],
         {"pids": [1, 5, 6, 7], "comms": ["a", "b"], "cgroups": ["x.slice"], "cpus": "0-3,8"}),
        (["-u", "shop", "--unit=web@*,db"], {"units": ["shop", "web@*", "db"]}),
    ]
    for words, parameters in rows:
        equal(asked(words), parameters, f"parameters of {words}")
    before = time.time()
    since = asked(["--since=-5min", "--until=now"])
    check(abs(since["sinceUsec"] / 1e6 - (before - 300)) < 60, f"-5min is {since}")
    check(abs(since["untilUsec"] / 1e6 - before) < 60, f"now is {since}")


@test
def contradictory_options_are_reported_before_any_call():
    for words in (["--last=1s", "--since=now"], ["--since=@5", "--until=@5"], ["--last=0"],
                  ["--last=soon"], ["--since=2026-02-30"], ["--layout=pipe"], ["--compress=gzip"],
                  ["-o", "x", "--name=y"], ["-o", "x", "--pin"], ["--force"], ["extra"],
                  ["-o", "-", "--layout=directory"], ["-p", "1-4000000000"], ["-p", "x"],
                  ["--cpu=a"], ["-C", "3-1"],
                  ["-o", "x", "--layout=pipe"]):
        with tempfile.TemporaryDirectory() as folder, StandIn(folder, {}) as daemon:
            ended(profctl("snapshot", *words, socket=daemon.path), 2)
            equal(daemon.calls, [], f"calls of {words}")


@test
def the_limit_of_processes_is_that_of_profd():
    equal(len(asked(["-p", "1-256"])["pids"]), 256, "processes")
    with tempfile.TemporaryDirectory() as folder, StandIn(folder, {}) as daemon:
        ended(profctl("snapshot", "-p", "1-257", socket=daemon.path), 2, "More than 256 processes")
        equal(daemon.calls, [], "calls")


@test
def stdout_has_only_the_path():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "it's here.perf.data")
        with open(path, "w", encoding="ascii"):
            pass
        with StandIn(folder, {"Snapshot": taken(path=path)}) as daemon:
            done = ended(profctl("snapshot", socket=daemon.path), 0,
                         r"Saved 2026-\d\d-\d\d \d\d:\d\d:\d\d to \d\d:\d\d:\d\d \(1 min, no gaps\): "
                         "12,345 samples, none lost")
            equal(done.stdout, path + "\n")
            hint = done.stderr.splitlines()[-1].split(": ", 2)[2]
            equal(hint, f"perf report -i '{folder}/it'\\''s here.perf.data'")
            done = ended(profctl("snapshot", "--quiet", socket=daemon.path), 0)
            equal((done.stdout, done.stderr), (path + "\n", ""))
            value = as_json(profctl("snapshot", "--json", socket=daemon.path), "snapshot")
            equal(value["path"], path)
            if os.getuid() == 0:
                os.chown(path, 1234, 1234)
                done = profctl("snapshot", socket=daemon.path)
                check("perf report -f -i" in done.stderr, f"a stranger's file: {done.stderr}")
    # A snapshot that cannot be read from here can be fetched.
    with tempfile.TemporaryDirectory() as folder, StandIn(folder, {"Snapshot": taken()}) as daemon:
        hint = profctl("snapshot", socket=daemon.path).stderr.splitlines()[-1]
        check("perf report" not in hint, hint)
        check(f"profctl --socket={daemon.path} show-snapshot 20261121T150000Z -o " in hint, hint)


@test
def missing_time_is_reported_by_text_and_status():
    with tempfile.TemporaryDirectory() as folder:
        answers = {"Snapshot": taken(partial=["retention took the first 20 s", "one was damaged"],
                                     lost=7)}
        with StandIn(folder, answers) as daemon:
            done = ended(profctl("snapshot", "--quiet", socket=daemon.path), 8, "7 lost",
                         "retention took the first 20 s; one was damaged")
            equal(done.stdout, SNAPSHOT["path"] + "\n")


@test
def unrecorded_times_are_reported_with_their_reason():
    gap = {"sinceUsec": SINCE + 81 * 10**6, "untilUsec": SINCE + 180 * 10**6, "reason": "stopped", "cpu": None}
    coverage = {"sinceUsec": SINCE, "untilUsec": SINCE + 180 * 10**6, "recordedUsec": 81 * 10**6,
                "complete": False, "gaps": [gap]}
    with tempfile.TemporaryDirectory() as folder:
        answers = {"Snapshot": taken(coverage=coverage, partial=["Not recorded from X to Y (stopped)", "and more"])}
        with StandIn(folder, answers) as daemon:
            done = ended(profctl("snapshot", socket=daemon.path), 8,
                         r"1 min 21 s of 3 min, not recorded \S+ \S+ to \S+ \(stopped\); not complete: and more")
            check("X to Y" not in done.stderr, f"a gap is told twice: {done.stderr}")
        with StandIn(folder, {"Snapshot": taken(coverage=None)}) as daemon:
            ended(profctl("snapshot", socket=daemon.path), 0, "whether there are gaps is not known")


@test
def a_window_without_samples_is_reported():
    with tempfile.TemporaryDirectory() as folder:
        answers = {"Snapshot": taken(samples=0, sinceUsec=None, untilUsec=None)}
        with StandIn(folder, answers) as daemon:
            done = ended(profctl("snapshot", "--pid=1", socket=daemon.path), 0, "no samples")
            check("perf report" not in done.stderr, done.stderr)


@test
def errors_have_their_statuses():
    rows = [(Error("WindowUnavailable", oldestUsec=SINCE, newestUsec=None), 5),
            (Error("NoSuchSession", session="x"), 5), (Error("SnapshotExists", name="x"), 1),
            (Error("DiskBudget", limit=1, need=2), 1), (Error("DiskFull", path="/x"), 1),
            (Error("Cancelled"), 1), (Error("Busy", retryAfterMs=5), None),
            (Error("org.varlink.service.PermissionDenied"), 4)]
    for error, status in rows:
        with tempfile.TemporaryDirectory() as folder, StandIn(folder, {"Snapshot": [error]}) as daemon:
            done = profctl("snapshot", socket=daemon.path)
            ended(done, done.returncode if status is None else status)
            check(done.returncode != 0 and done.stdout == "", f"{error.name}: {done.stdout}")
    with tempfile.TemporaryDirectory() as folder:
        for verb in (["snapshot"], ["snapshots"], ["show-snapshot", "x"], ["rm", "x"], ["pin", "x"]):
            ended(profctl(*verb, socket=f"{folder}/none"), 3, "not running")


def files(**answers):
    return {"Snapshot": taken(**answers)}


@test
def an_output_file_appears_completely_or_not_at_all():
    with tempfile.TemporaryDirectory() as folder:
        data = os.urandom(1 << 20)
        out = os.path.join(folder, "out.data")
        with StandIn(folder, {**files(), "Read": sent(data)}) as daemon:
            done = ended(profctl("snapshot", "-o", out, socket=daemon.path), 0)
            equal(done.stdout, out + "\n")
            with open(out, "rb") as f:
                check(f.read() == data, "other bytes")
            equal(os.stat(out).st_uid, os.geteuid())
            equal(daemon.asked("Snapshot")[0], {"layout": "file", "transient": True})
            equal(daemon.asked("Read")[0], {"snapshot": SNAPSHOT["name"]})
            check(f"perf report -i {out}" in done.stderr, done.stderr)
            ended(profctl("snapshot", "-o", out, socket=daemon.path), 1, "exists")
            ended(profctl("snapshot", "-fo", out, socket=daemon.path), 0)
            equal(as_json(profctl("snapshot", "-jfo", out, socket=daemon.path), "snapshot")["path"],
                  out)
        for name, answer in (("short", sent(data[:5000], len(data))), ("none", sent(b"", 5)),
                             ("refused", [Error("NoSuchSnapshot", name="x")])):
            with StandIn(folder, {**files(), "Read": answer}) as daemon:
                out = os.path.join(folder, name)
                done = profctl("snapshot", "-o", out, socket=daemon.path)
                check(done.returncode != 0 and not os.path.exists(out), f"{name}: {done}")
        left = [n for n in os.listdir(folder) if "profctl" in n]
        equal(left, [], "what is left")


@test
def an_output_folder_has_the_file_names_of_a_recording():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        answers = {**files(layout="directory", files=["data", "data.0"]), "Read": sent(b"x" * 100)}
        with StandIn(folder, answers) as daemon:
            ended(profctl("snapshot", "-o", out, "--layout=directory", socket=daemon.path), 0)
            equal(sorted(os.listdir(out)), ["data", "data.0"])
            equal([c["file"] for c in daemon.asked("Read")], ["data", "data.0"])
        for name in ("../x", "data/../../x", "", "data.", "data.x", "data.1234", "/etc/x"):
            answers = {**files(layout="directory", files=["data", name]), "Read": sent(b"x")}
            with StandIn(folder, answers) as daemon:
                done = profctl("snapshot", "-fo", out + "2", "--layout=directory", socket=daemon.path)
                ended(done, 1, "not part of a recording")
                check(not os.path.exists(out + "2"), f"{name}: it is there")


@test
def stdout_gets_a_stream_that_perf_reads():
    with tempfile.TemporaryDirectory() as folder:
        data = recorded(folder)
        with StandIn(folder, {**files(), "Read": sent(data)}) as daemon:
            command = [PROFCTL, f"--socket={daemon.path}", "snapshot", "-o", "-"]
            done = subprocess.run(command, capture_output=True, check=False, timeout=WAIT_S)
            equal(done.returncode, 0, done.stderr.decode())
            check(b"12,345 samples" in done.stderr, done.stderr.decode())
            perf = subprocess.run(["perf", "script", "-i", "-", "-F", "time,cpu"], check=True,
                                  input=done.stdout, capture_output=True,
                                  env=environment(HOME=folder))
            whole = subprocess.run(["perf", "script", "-i", f"{folder}/perf.data", "-F", "time,cpu"],
                                   check=True, capture_output=True, env=environment(HOME=folder))
            equal(perf.stdout, whole.stdout, "what perf reads from the stream")
            check(perf.stdout, "nothing was recorded")
            done = subprocess.run([*command, "--layout=file"], capture_output=True, check=True,
                                  timeout=WAIT_S)
            check(done.stdout == data, "the file is not as it was")
            status, text = on_terminal("snapshot", "-o", "-", socket=daemon.path)
            equal(status, 1)
            check("cannot be written to a terminal" in text, text)


@test
def an_interrupt_ends_the_call_and_leaves_no_file():
    for words, answers in ((["--follow-up=1h"], {"Snapshot": [taken()[0], SILENT]}),
                           (["-o", "out"], {**files(), "Read": [sent(b"", 1000)[0], SILENT]})):
        with tempfile.TemporaryDirectory() as folder, StandIn(folder, answers) as daemon:
            with background([PROFCTL, f"--socket={daemon.path}", "snapshot", *words],
                            cwd=folder, stderr=subprocess.DEVNULL) as process:
                end = time.monotonic() + WAIT_S
                while len(daemon.calls) < len(answers):
                    check(time.monotonic() < end, "it did not call")
                    time.sleep(0.02)
                process.send_signal(signal.SIGINT)
                equal(process.wait(timeout=WAIT_S), -signal.SIGINT)
            equal([n for n in os.listdir(folder) if "Control" not in n], [], "what is left")


@test
def a_terminal_shows_the_progress():
    with tempfile.TemporaryDirectory() as folder, StandIn(folder, {"Snapshot": taken()}) as daemon:
        _, text = on_terminal("snapshot", socket=daemon.path)
        check("\r\x1b[Kbuilding 25% of 4.0M\r" in text, repr(text))
        lines = text.rsplit("\r\x1b[K", 1)[1].splitlines()
        check(lines[0] == SNAPSHOT["path"] and lines[1].startswith("profctl: Saved "), repr(text))
        done = profctl("snapshot", socket=daemon.path)
        check("building" not in done.stderr, "progress where nobody looks")


@test
def snapshots_are_listed_and_shown():
    hostile = {**SNAPSHOT, "name": "b", "reason": HOSTILE, "pinned": True, "expiresUsec": None,
               "partial": [HOSTILE], "uid": 4000000000, "sinceUsec": None, "untilUsec": None}
    answers = {"ListSnapshots": [{"snapshot": SNAPSHOT}, {"snapshot": hostile}]}
    with tempfile.TemporaryDirectory() as folder, StandIn(folder, answers) as daemon:
        done = ended(profctl("snapshots", socket=daemon.path), 0)
        lines = safe(done.stdout).splitlines()
        equal(lines[0].split(), ["NAME", "SESSION", "SINCE", "SPAN", "SAMPLES", "LOST", "SIZE",
                                 "KEPT", "REASON"])
        for word in ("20261121T150000Z", "2026-11-21 15:00:00", "1 min", "12,345", "1.0M", "slow"):
            check(word in lines[1], f"no {word} in {lines[1]!r}")
        check("pinned" in lines[2] and "\\x1b[2J" in lines[2], lines[2])
        equal(len(as_json(profctl("snapshots", "-j", socket=daemon.path), "snapshots")), 2)
        for columns in (60, 80, 120):
            status, text = on_terminal("snapshots", columns=columns, socket=daemon.path)
            equal(status, 0)
            lines = safe(plain(text), "the table").splitlines()
            check(max(map(len, lines)) <= columns, f"too long for {columns}: {lines}")
            equal(("LOST" in lines[0], "KEPT" in lines[0]), (True, columns == 120), lines[0])
        done = ended(profctl("show-snapshot", "b", socket=daemon.path), 0)
        equal(daemon.asked("ListSnapshots")[-1], {"name": "b"})
        for word in (SNAPSHOT["path"], "12,345", "layout file", "slow"):
            check(word in done.stdout, f"no {word} in {done.stdout}")
        as_json(profctl("show-snapshot", "b", "-j", socket=daemon.path), "show-snapshot")
    with tempfile.TemporaryDirectory() as folder, \
            StandIn(folder, {"ListSnapshots": [{"snapshot": hostile}]}) as daemon:
        done = profctl("show-snapshot", "b", socket=daemon.path)
        check("\\x1b[2J" in safe(done.stdout) and "4000000000" in done.stdout, done.stdout)
    with tempfile.TemporaryDirectory() as folder, \
            StandIn(folder, {"ListSnapshots": [{"snapshot": None}]}) as daemon:
        done = ended(profctl("snapshots", socket=daemon.path), 0, "no snapshots")
        equal(done.stdout, "")
        equal(as_json(profctl("snapshots", "-j", socket=daemon.path), "snapshots"), [])
        ended(profctl("show-snapshot", "b", socket=daemon.path), 5, "no snapshot 'b'")


@test
def a_kept_snapshot_can_be_saved():
    with tempfile.TemporaryDirectory() as folder:
        answers = {"ListSnapshots": [{"snapshot": SNAPSHOT}], "Read": sent(b"bytes")}
        with StandIn(folder, answers) as daemon:
            out = os.path.join(folder, "out")
            ended(profctl("show-snapshot", "x", "-o", out, socket=daemon.path), 0)
            with open(out, "rb") as f:
                equal(f.read(), b"bytes")


@test
def several_names_are_handled_one_after_the_other():
    with tempfile.TemporaryDirectory() as folder:
        answers = {"RemoveSnapshot": [{"bytes": 1 << 20}], "PinSnapshot": [{}]}
        with StandIn(folder, answers) as daemon:
            ended(profctl("rm", "a", "b", socket=daemon.path), 0, "Removed 2 snapshots, 2.0M")
            equal(daemon.asked("RemoveSnapshot"), [{"name": "a"}, {"name": "b"}])
            value = as_json(profctl("rm", "-j", "a", socket=daemon.path), "rm")
            equal(value, {"removed": ["a"], "bytes": 1 << 20})
            ended(profctl("pin", "a", "b", socket=daemon.path), 0)
            ended(profctl("pin", "--off", "a", socket=daemon.path), 0)
            equal(daemon.asked("PinSnapshot"), [{"name": "a", "pinned": True},
                                                {"name": "b", "pinned": True},
                                                {"name": "a", "pinned": False}])
            as_json(profctl("pin", "-j", "a", socket=daemon.path), "pin")
            ended(profctl("rm", socket=daemon.path), 2)
        with StandIn(folder, {"RemoveSnapshot": [Error("NoSuchSnapshot", name="a")]}) as daemon:
            done = profctl("rm", "a", "b", socket=daemon.path)
            equal((done.returncode, len(daemon.calls), done.stderr.count("profctl: ")), (5, 2, 2))


class Run(Scene):
    """A daemon that all of the following ask, under a load that makes each tick a sample."""

    config = "[Profd]\nFlushIntervalSec=500ms\n" + session(Event="cpu-clock", Frequency=199)
    load = functools.partial(spinning, nice=0)

    @classmethod
    def begin(cls, enter):
        super().begin(enter)
        wait_until(lambda: cls.reach() > 3, 60, "something to look back on")

    @classmethod
    def reach(cls):
        """How many seconds can be looked back."""
        done = profctl("list", "-j", socket=cls.daemon.control(), timeout=120)
        return time.time() - (json.loads(done.stdout)[0]["oldestUsec"] or 1e20) / 1e6


def connected(pid):
    """Whether it has a socket."""
    with contextlib.suppress(OSError):
        return any(os.readlink(f"/proc/{pid}/fd/{n}").startswith("socket:") for n in os.listdir(f"/proc/{pid}/fd"))
    return False


def verb(*words, **how):
    return profctl(*words, socket=Run.control(), timeout=120, **how)


def perf(*words):
    """The output of the real perf for a recording, without a complaint."""
    done = subprocess.run(["perf", *words], capture_output=True, text=True, errors="replace", check=False)
    noise = [line for line in done.stderr.splitlines() if line.strip() and "Found" not in line]
    check(done.returncode == 0, f"perf {words}: {done.stderr}")
    equal(noise, [], f"what perf {words} complains of")
    return done.stdout


def times_of(path):
    return [float(t) for t in re.findall(r"(\d+\.\d+):", perf("script", "-i", path, "-F", "time",
                                                              "--ns"))]


@test
def a_window_of_the_past_opens_under_perf_as_printed():
    done = ended(verb("snapshot", "--last=2s", "--reason=a test"), 0, "no gaps")
    path = done.stdout.strip()
    check(path.endswith(".perf.data") and done.stdout.count("\n") == 1, done.stdout)
    hint = re.search(r"Next: (perf report -i \S+)", done.stderr)[1]
    said = subprocess.run(["sh", "-c", f"{hint} --stdio -g none"], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL)
    check(said.returncode == 0 and "spin" in said.stdout, f"{hint}: {said.stderr}")
    times = times_of(path)
    samples = int(re.search(r"([\d,]+) samples", done.stderr)[1].replace(",", ""))
    equal(len(times), samples, "samples told and found")
    check(times and max(times) - min(times) < 2, f"{min(times)} to {max(times)}")
    (only,) = as_json(verb("snapshots", "-j"), "snapshots")
    equal((only["path"], only["reason"], only["samples"]), (path, "a test", samples))
    screen = ended(verb("show-snapshot", only["name"]), 0).stdout
    check(path in screen and "a test" in screen, screen)


@test
def names_are_pinned_and_removed():
    ended(verb("snapshot", "--last=1s", "--name=keep-it", "--pin"), 0)
    ended(verb("snapshot", "--last=1s", "--name=keep-it"), 1, "keep-it")
    as_json(verb("pin", "-j", "--off", "keep-it"), "pin")
    value = as_json(verb("show-snapshot", "-j", "keep-it"), "show-snapshot")
    check(value["expiresUsec"] and not value["pinned"], f"{value}")
    ended(verb("pin", "keep-it"), 0)
    check(as_json(verb("show-snapshot", "-j", "keep-it"), "show-snapshot")["pinned"], "not pinned")
    ended(verb("rm", "keep-it"), 0, "Removed 1 snapshot")
    check(not os.path.exists(value["path"]), "the file is there")
    for words in (["rm", "keep-it"], ["pin", "keep-it"], ["show-snapshot", "keep-it"],
                  ["snapshot", "--session=none"]):
        ended(verb(*words), 5)
    for name in ("../x", "a/b", ".x", "x" * 65):
        done = verb("snapshot", f"--name={name}", "--last=1s")
        check(done.returncode != 0, f"a name {name!r} was taken")


@test
def the_window_has_the_requested_times():
    Run.get()
    end = time.time() - 0.5
    begin = end - 1.5
    value = as_json(verb("snapshot", f"--since=@{begin:.6f}", f"--until=@{end:.6f}", "-j"), "snapshot")
    check(value["sinceUsec"] >= int(begin * 1e6) - 1 and value["untilUsec"] <= int(end * 1e6) + 1,
          f"{value['sinceUsec']} to {value['untilUsec']}, not {begin} to {end}")
    check(value["untilUsec"] - value["sinceUsec"] > 1000000, "less than the window")
    ended(verb("snapshot", "--since=@5", "--until=@10"), 5)


@test
def an_output_file_belongs_to_the_caller_and_is_not_kept_by_profd():
    before = as_json(verb("snapshots", "-j"), "snapshots")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "mine.data")
        done = ended(verb("snapshot", "--last=1s", "-o", out), 0)
        check(times_of(out), "no samples")
        equal(os.stat(out).st_uid, os.geteuid())
        tree = os.path.join(folder, "mine")
        ended(verb("snapshot", "--last=1s", "-o", tree, "--layout=directory", "--cpu=0"), 0)
        equal(set(re.findall(r"\[(\d+)\]", perf("script", "-i", tree, "-F", "cpu"))), {"000"})
        command = [PROFCTL, f"--socket={Run.control()}", "snapshot", "--last=1s", "-o", "-"]
        done = subprocess.run(f"{' '.join(command)} | perf script -i - -F comm", shell=True,
                              capture_output=True, text=True, check=False)
        check("spin" in done.stdout, done.stderr)
    equal(as_json(verb("snapshots", "-j"), "snapshots"), before, "what is kept")
    left = [n for n in os.listdir(os.path.join(Run.get().daemon.store, "snapshots")) if n[0] == "."]
    equal(left, [], "what is left of transient ones")


@test
def a_window_of_the_future_is_recorded_unless_it_is_interrupted():
    done = as_json(verb("snapshot", "--last=1s", "--follow-up=1500ms", "-j"), "snapshot")
    span = done["untilUsec"] - done["sinceUsec"]
    check(1500000 < span <= 2600000, f"{span} us")
    before = as_json(verb("snapshots", "-j"), "snapshots")
    at = time.time() + 1
    value = as_json(verb("snapshot", "--last=1s", f"--at=@{at:.6f}", "--name=then", "-j"), "snapshot")
    check(abs(value["untilUsec"] / 1e6 - at) < 0.2, f"until {value['untilUsec']}, not {at}")
    ended(verb("rm", "then"), 0)
    with background([PROFCTL, f"--socket={Run.control()}", "snapshot", "--follow-up=1h"],
                    stdout=subprocess.PIPE) as process:
        wait_until(lambda: connected(process.pid), 30, "a connection")
        process.send_signal(signal.SIGINT)
        equal(process.wait(timeout=WAIT_S), -signal.SIGINT)
    equal(as_json(verb("snapshots", "-j"), "snapshots"), before, "what is kept")


@contextlib.contextmanager
def in_group(name, *arguments):
    """A load in a control group of its own and in one below: the path of the upper one, and their pids."""
    with open("/proc/mounts", encoding="utf-8") as f:
        roots = [line.split()[1] for line in f if line.split()[2] == "cgroup2"]
    folder = os.path.join(*roots[:1], name) if roots else ""
    below = os.path.join(folder, "below")
    try:
        os.makedirs(below)
    except OSError as error:
        skip(f"no control group can be made here ({error})")
    try:
        with contextlib.ExitStack() as stack:
            pids = []
            for where in (folder, below):
                enter = ["sh", "-c", f'echo $$ >"{where}/cgroup.procs" && exec "$0" "$@"']
                process = stack.enter_context(load("spin", 0, *arguments, prefix=enter))
                with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as f:
                    pids += [process.pid, *map(int, f.read().split())]
            yield f"/{name}", pids
    finally:
        wait_until(lambda: gone(below) and gone(folder), 20, "the control groups to be empty")


def gone(folder):
    with contextlib.suppress(OSError):
        os.rmdir(folder)
    return not os.path.exists(folder)


def scripted(path):
    """(comm, pid, tid, cpu, time, ip) of each sample, by perf script."""
    return [(r.comm, r.pid, r.tid, r.cpu, r.time, r.ip) for r in recording.rows(path)]


@test
def filters_select_the_same_samples_as_perf_script():
    Run.get()
    with tempfile.TemporaryDirectory() as folder, in_group("profd-test-filter.slice", 0) as (group, pids):
        begin = time.time()
        sampled = set(pids)
        wait_until(lambda: time.time() - begin > 0.7, 20, "some samples")
        window = [f"--since=@{begin:.6f}", f"--until=@{time.time():.6f}"]
        whole = os.path.join(folder, "whole")
        ended(verb("snapshot", *window, "-o", whole), 0)
        rows = scripted(whole)
        one = collections.Counter(row[1] for row in rows if row[1] in sampled).most_common(1)[0][0]
        cases = [(["--cgroup", group], lambda row: row[1] in sampled),
                 (["--cgroup", group.strip("/")], lambda row: row[1] in sampled),
                 (["--cgroup", group.replace("test", "*")], lambda row: row[1] in sampled),
                 (["--unit", "profd-test-filter.slice"], lambda row: row[1] in sampled),
                 (["-u", "profd-test-fil*"], lambda row: row[1] in sampled),
                 (["--pid", str(one)], lambda row: row[1] == one),
                 (["-t", str(one)], lambda row: row[2] == one),
                 (["--comm", "spin"], lambda row: row[0] == "spin"),
                 (["--cpu", "0"], lambda row: row[3] == 0),
                 (["--cgroup", group, "--cpu", "0", "-p", str(one), "--comm", "spin"],
                  lambda row: row[1] == one and row[3] == 0)]
        for number, (words, wanted) in enumerate(cases):
            path = os.path.join(folder, str(number))
            ended(verb("snapshot", *window, *words, "-o", path), 0)
            cut = sorted(row[1:] for row in rows if wanted(row))
            check(cut, f"nothing is to be kept by {words}")
            kept = sorted((s.pid, s.tid, s.cpu, s.time, s.ip) for s in recording.samples(path))
            equal(kept == cut, True, f"whether {words} keeps what perf script does")


@test
def filters_that_nothing_matches_end_with_status_5_and_leave_nothing():
    Run.get()
    with tempfile.TemporaryDirectory() as folder, in_group("profd-test-shop.service", 0) as (group, pids):
        begin = time.time()
        check(pids, "processes in the group")
        wait_until(lambda: time.time() - begin > 0.7, 20, "some samples")
        window = [f"--since=@{begin:.6f}", f"--until=@{time.time():.6f}"]
        ended(verb("snapshot", *window, "-u", "profd-test-shop", "-o", f"{folder}/one"), 0)
        kept = ended(verb("snapshots"), 0).stdout
        cases = [(["--cgroup=profd-test-shop"], f"cgroup 'profd-test-shop' in this window. Did you mean '{group}'"),
                 (["-u", "profd-test-shpo"], "unit 'profd-test-shpo.service' in this window. "
                                             "Did you mean 'profd-test-shop.service'?"),
                 (["--cgroup=/below", "--comm=spin"], f"cgroup '/below' in this window. Did you mean '{group}/below'?"),
                 (["--comm=spni"], "comm 'spni' in this window. Did you mean 'spin'"),
                 (["--comm=nothing-like-it", "-u", "nor-this"],
                  "comm 'nothing-like-it' and unit 'nor-this.service' in this window."),
                 (["--pid=4194303"], "process 4194303 in this window"),
                 (["-t", "4194302,4194303"], "thread 4194302 or thread 4194303 in this window")]
        for words, sentence in cases:
            for to in ([], ["-o", f"{folder}/none"], ["-o", "-"]):
                done = ended(verb("snapshot", *window, *words, *to), 5, "No samples match " + re.escape(sentence))
                equal(done.stdout, "", f"stdout of {words}")
        equal(sorted(os.listdir(folder)), ["one"], "files")
        equal(ended(verb("snapshots"), 0).stdout, kept, "snapshots that are kept")


@test
def a_vacuumed_window_is_reported_with_the_remaining_span():
    Run.get()
    with Varlink(Run.control()) as v:
        first = v.one("Rotate")["segments"][0]
        begin = next(s for s in v.members("ListSegments", "segment") if s["path"] == first)["sinceUsec"]
        for _ in range(2):
            samples = v.call("ListSessions", session="default")[0]["session"]["samples"]
            wait_until(lambda n=samples: v.call("ListSessions", session="default")[0]["session"]["samples"] > n + 50,
                       20, "samples")
            v.one("Rotate")
    ended(verb("vacuum", "--segments=1"), 0, "^$")
    check(not os.path.exists(first), f"{first} is still there")
    with Varlink(Run.control()) as v:
        oldest = v.call("ListSessions", session="default")[0]["session"]["oldestUsec"]
    since = f"--since=@{begin / 1e6:.6f}"
    done = ended(verb("snapshot", since), 8, "[Oo]lder recordings were deleted to make room")
    check(times_of(done.stdout.strip()), "no samples")
    value = as_json(verb("snapshot", since, "-j"), "snapshot", status=8)
    check(value["partial"] and value["sinceUsec"] >= oldest, f"{value}")
    moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(oldest // 10**6))
    ended(verb("snapshot", since, f"--until=@{begin / 1e6 + 0.05:.6f}"), 5, f"reach from \\w+ {moment}")


@test
def a_killed_client_leaves_no_partial_file():
    folder = os.path.join(Run.get().daemon.store, "snapshots")
    with tempfile.TemporaryDirectory() as mine, Varlink(Run.control()) as v:
        lost = v.call("ListSessions", session="default")[0]["session"]["lost"]
        for words in (["--follow-up=1h", "-o", "out"], ["--follow-up=1h", "--name=out"], ["-o", "out"]):
            kept = sorted(os.listdir(folder))
            with background([PROFCTL, f"--socket={Run.control()}", "snapshot", *words], cwd=mine,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                wait_until(lambda p=process: p.poll() is not None or connected(p.pid), 30, "a connection")
                process.kill()
            wait_until(lambda k=kept: sorted(os.listdir(folder)) == k, 30, "what the daemon had made of it to go")
            if os.path.exists(f"{mine}/out"):
                check(times_of(f"{mine}/out"), "a half file")
        equal(v.call("ListSessions", session="default")[0]["session"]["lost"], lost, "samples lost by the session")


@test
def a_stranger_is_told_the_group_to_join():
    done = verb("snapshot", "--last=1s", user=65533)
    ended(done, 4, "profd-read")


@test
def doctor_finds_a_healthy_daemon():
    done = verb("doctor", "-j")
    rows = [c for c in as_json(done, "doctor", done.returncode)["checks"] if c["check"] == "daemon"]
    equal(rows[0]["state"], "ok", f"{rows}")
    check("recording" in rows[0]["text"], rows[0]["text"])


if __name__ == "__main__":
    main()
