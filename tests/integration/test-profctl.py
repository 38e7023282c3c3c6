#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every verb as a new user would try it, against the real daemon."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from background import background
from daemon import Daemon, session
from profctl import (NOBODY, PROFCTL, as_json, check, ended, environment, equal, on_terminal, plain,
                     profctl, safe)
from tap import main, source_path, test
from workload import need_root

STRANGER = 54321
CONFIG = """[Profd]
FlushIntervalSec=200ms
""" + session(Event="cpu-clock", RotateIntervalSec="1h")

_running = []


def daemon():
    """One for all; started when it is first wanted."""
    need_root()
    if not _running:
        folder = tempfile.mkdtemp(prefix="profd-test.")
        os.chmod(folder, 0o755)
        _running.append(Daemon(folder, config=CONFIG))
        wait_until(lambda: profctl("ping", socket=path()).returncode == 0, "an answer to ping")
    return _running[0]


def path():
    return f"{_running[0].folder}/run/io.profd.Control"


def call(*words, **more):
    daemon()
    return profctl(*words, socket=path(), **more)


def wait_until(holds, what, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < end, f"waited {seconds} s for {what}")
        time.sleep(0.05)


def sessions():
    return {s["name"]: s for s in as_json(call("list", "-j"), "list")}


def sampled(name):
    wait_until(lambda: sessions()[name]["samples"] > 0, f"a sample of {name}")


class Monitor:
    """Events as they come, from when the stream stands."""

    def __enter__(self):
        daemon()
        self.process = subprocess.Popen([PROFCTL, f"--socket={path()}", "monitor", "--json=short"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=environment())
        # A missing reply ends the stream, so that the reader does not wait for ever.
        self.guard = threading.Timer(60, self.process.kill)
        self.guard.start()
        equal(json.loads(self.process.stdout.readline())["event"], "ready", "the first event")
        return self

    def __exit__(self, *_):
        self.guard.cancel()
        self.process.kill()
        self.process.wait()

    def wait_for(self, event, name):
        for line in self.process.stdout:
            told = json.loads(safe(line))
            if told["event"] == event and told.get("session") == name:
                return told
        check(False, f"the stream ended without '{event}' of {name}")


@test
def ping_is_answered_to_anyone():
    ended(call("ping"), 0)
    as_json(call("ping", "-j"), "ping")
    ended(call("ping", user=STRANGER), 0)


@test
def status_is_one_screen_and_json_is_as_documented():
    daemon()
    wait_until(lambda: sessions()["default"]["oldestUsec"], "something to look back to")
    done = ended(call("status"), 0)
    for words in ("recording", "● default", "cpu-clock at 99 Hz", "Disk:", "Window:"):
        check(words in done.stdout, f"no '{words}' in {done.stdout}")
    status = as_json(call("status", "-j"), "status")
    equal([s["name"] for s in status["sessions"]], ["default"], "sessions")
    for columns in (80, 120):
        code, text = on_terminal("status", columns=columns, socket=path())
        equal(code, 0, "status")
        long = [line for line in plain(text).splitlines() if len(line) > columns]
        check(not long, f"too long for {columns}: {long}")
        ill = text.count("Degraded:")
        check(len(text.splitlines()) - 4 * ill <= 24, f"more than a screen: {text}")


@test
def status_of_a_stranger_is_coarse():
    status = as_json(call("status", "-j", user=STRANGER), "status")
    equal((status.get("sessions"), status.get("store")), (None, None), "what he may not see")
    check("profd-read" in call("status", user=STRANGER).stdout, "no word on the group")


@test
def check_reports_whether_anything_is_degraded():
    status = as_json(call("status", "-j"), "status")
    ill = bool(status["degraded"]) or any(s["degraded"] for s in status["sessions"])
    equal(call("status", "--check").returncode, 7 if ill else 0, "status of --check")


@test
def a_session_lives_from_start_to_stop():
    with Monitor() as monitor:
        ended(call("start", "web", "-e", "cpu-clock", "-F", "199", "-C", "0"), 0,
              "'web' records cpu-clock at 199 Hz")
        monitor.wait_for("started", "web")
        web = sessions()["web"]
        equal((web["state"], web["runtime"], web["frequency"], web["cpus"]),
              ("active", True, 199, 1), "web")
        sampled("web")
        ended(call("pause", "web"), 0, "is paused")
        monitor.wait_for("paused", "web")
        equal(sessions()["web"]["state"], "paused", "state")
        ended(call("resume", "web"), 0, "is active")
        monitor.wait_for("resumed", "web")
        ended(call("stop", "web"), 0, "'web' stopped: ")
        monitor.wait_for("stopped", "web")
    check("web" not in sessions(), "a stopped session of the moment is still there")
    segments = as_json(call("list", "--segments", "web", "-j"), "list")
    check(segments and segments[-1]["samples"] > 0, f"no samples in {segments}")
    ended(profctl("verify", segments[-1]["path"]), 0)


@test
def a_session_stops_by_itself_after_its_duration():
    with Monitor() as monitor:
        told = as_json(call("start", "short", "-e", "cpu-clock", "--duration=500ms", "-j"), "start")
        check(told["stopsUsec"] > told["sinceUsec"], f"{told}")
        monitor.wait_for("stopped", "short")
    # It did what it was to do: nothing is wrong, and nothing lacks.
    reasons = {d["reason"] for d in sessions().get("short", {}).get("degraded", [])}
    equal(reasons, set(), "what is wrong with a session whose time is over")
    title = ended(call("status"), 0).stdout.splitlines()[0]
    check("nothing" not in title, title)


@test
def every_json_is_as_documented():
    call("start", "json", "-e", "page-faults", "-c", "100")
    as_json(call("list", "-j"), "list")
    as_json(call("list", "--segments", "-j"), "list")
    as_json(call("show-session", "default", "json", "-j"), "show-session")
    as_json(call("cat-config", "-j"), "cat-config")
    as_json(call("metrics", "-j"), "metrics")
    as_json(call("pause", "json", "-j"), "pause")
    as_json(call("resume", "json", "-j"), "resume")
    as_json(call("rotate", "-j"), "rotate")
    as_json(call("vacuum", "--size=100G", "-j"), "vacuum")
    as_json(call("reload", "-j"), "reload")
    as_json(call("log-level", "info", "-j"), "log-level")
    as_json(call("stop", "json", "-j"), "stop")


@test
def rotate_prints_segments_that_are_whole():
    sampled("default")
    lines = ended(call("rotate", "default"), 0).stdout.splitlines()
    check(lines, "no path was printed")
    for line in lines:
        ended(profctl("verify", line), 0)


@test
def vacuum_deletes_the_oldest_segments_and_prints_their_number():
    for _ in range(2):
        sampled("default")
        ended(call("rotate", "default"), 0)
    before = len(as_json(call("list", "--segments", "default", "-j"), "list"))
    done = as_json(call("vacuum", "--segments=1", "-j"), "vacuum")
    check(done["removed"] >= 1 and done["bytes"] > 0, f"{done}")
    after = as_json(call("list", "--segments", "default", "-j"), "list")
    check(len(after) < before, f"{before} segments before, {len(after)} after")


@test
def status_check_with_quiet_prints_nothing():
    done = call("status", "--check", "-q")
    check(done.returncode in (0, 7), done.stderr)
    equal((done.stdout, done.stderr), ("", ""), "what it prints")


@test
def habitual_spellings_are_accepted():
    ended(call("stauts"), 2, "Did you mean 'status'[?]")
    ended(call("help", "snapshto"), 2, "Did you mean 'snapshot'[?]")
    ended(call("snapshot", "--lats=1s"), 2, "Did you mean --last[?]")
    ended(call("gateway", "stats"), 2, "no command 'gateway stats'. Did you mean 'status'[?]")
    ended(call("gateway", "restart"), 2, "'profctl gateway status' or 'profctl gateway test NAME'")
    ended(call("dump", "-t", "MMAP,SAMLPE", "none"), 2, "no type of records 'SAMLPE'. Did you mean 'SAMPLE'[?]")
    ended(call("dump", "-t", "SAMPLE", "-t", "nosuch", "none"), 2, "'nosuch'; a type is a name such as SAMPLE, or a number")
    ended(call("dump", "-t", "", "none"), 2, "it takes types of records, such as SAMPLE,MMAP2")
    ended(call("start", "habit", "-e", "cpu-clock", "--call-graph", "dwarf,4096"), 0, "dwarf call graphs")
    ended(call("stop", "habit"), 0)
    ended(call("start", "-g", "habit", "-e", "cpu-clock"), 0, "(unwound|fp) call graphs")
    ended(call("stop", "habit"), 0)


@test
def metrics_are_lines_of_prometheus():
    lines = ended(call("metrics"), 0).stdout.splitlines()
    check(any(line.startswith('profd_build_info{version="') for line in lines), "no profd_build_info")
    samples = [line for line in lines if line.startswith("profd_") and "samples" in line]
    check(samples, f"no samples among {lines[:10]}")
    for line in lines:
        if not line.startswith("#"):
            float(line.rsplit(" ", 1)[1])


@test
def settings_in_effect_can_be_read_again():
    done = ended(call("cat-config"), 0)
    check("Event=cpu-clock" in done.stdout and "profd-test.conf:" in done.stdout, done.stdout)
    check("[Profd]" in done.stdout and "[Session default]" in done.stdout, done.stdout)


@test
def a_mistake_in_the_configuration_is_reported_with_its_line_and_changes_nothing():
    running = daemon()
    running.configure(CONFIG + "Frequenzy=5\n")
    ended(call("reload"), 1, "profd-test.conf:[0-9]+.*Frequenzy")
    running.configure(CONFIG.replace("1h", "2h"))
    ended(call("reload"), 0, "was loaded")
    check("RotateIntervalSec=2h" in call("cat-config", "default").stdout, "the new value is not held")


@test
def the_log_level_is_set_and_the_previous_one_is_printed():
    ended(call("log-level", "debug"), 0, "level 'debug'")
    equal(ended(call("log-level", "info"), 0).stdout, "debug\n", "the level before")


@test
def wrong_names_are_not_found():
    for verb in ("stop", "pause", "resume", "rotate", "show-session", "list", "cat-config"):
        ended(call(verb, "nosuch"), 5, "no session 'nosuch'")


@test
def wrong_settings_are_wrong_usage_and_valid_ones_are_named():
    ended(call("start", "bad", "-F", "much"), 2, "Frequency=much.*from 1 to")
    ended(call("start", "bad", "--set", "Frequenzy=5"), 2, r"Frequenzy.*did you mean Frequency=\?")
    ended(call("start", "bad", "-e", "nosuchevent"), 1, "nosuchevent")
    ended(call("start", "no/name"), 2)
    check("bad" not in sessions(), "a session that could not start is there")


@test
def a_process_that_does_not_exist_is_named():
    process = subprocess.Popen(["true"])
    process.wait()
    for option in ("-p", "-t"):
        said = ended(call("start", "gone", "-e", "cpu-clock", option, str(process.pid)), 5).stderr
        equal(said, f"profctl: Cannot start 'gone': there is no process or thread {process.pid}.\n", f"start {option}")
        ended(call("show-session", "gone"), 5)


@test
def a_cpu_that_this_host_does_not_have_is_named():
    daemon()
    sampled("default")
    before = as_json(call("snapshots", "-j"), "snapshots")
    for cpus in ("8191", "0,8191", "8190-8191"):
        first = cpus.rsplit(",", maxsplit=1)[-1].split("-", maxsplit=1)[0]
        ended(call("start", "far", "-e", "cpu-clock", "-C", cpus), 5,
              f"Cannot start 'far': this host has no CPU {first}\\.$")
        ended(call("snapshot", "-C", cpus), 5, f"No samples match CPU {first}[ .]")
    check("far" not in sessions(), "a session that could not start is there")
    equal(as_json(call("snapshots", "-j"), "snapshots"), before, "snapshots")


@test
def a_user_without_rights_is_told_the_group_to_join():
    reading = (["list"], ["show-session"], ["cat-config"], ["metrics"], ["monitor"])
    changing = (["start", "web"], ["stop", "default"], ["pause", "default"], ["resume", "default"],
                ["rotate"], ["vacuum", "--size=1G"], ["reload"], ["log-level", "debug"])
    for all_of, group in ((reading, "profd-read"), (changing, "profd-admin")):
        for words in all_of:
            ended(call(*words, user=STRANGER), 4, group)
    for words in (*reading, *changing):
        equal(call(*words, user=NOBODY).returncode, 4, f"status of {words} by nobody")


@test
def hostile_names_of_control_groups_reach_no_terminal():
    daemon()
    with open("/proc/mounts", encoding="utf-8") as f:
        roots = [line.split()[1] for line in f if line.split()[2] == "cgroup2"]
    name = "profd-test-\x1b[2J\u202e"
    group = os.path.join(*roots[:1], name) if roots else None
    try:
        # Where no group can be made the refusal has the name all the same.
        with contextlib.suppress(OSError):
            os.makedirs(group or f"{daemon().folder}/{name}", exist_ok=True)
        # The form that is printed names the group, too.
        if group and os.path.isdir(group):
            printed = name.encode().replace(b"\x1b", rb"\x1b").replace("\u202e".encode(), rb"\xe2\x80\xae")
            ended(call("start", "printed", "-e", "cpu-clock", "--cgroup", printed), 0)
            check("does not exist" not in call("show-session", "printed").stdout, "the group was not found")
            ended(call("stop", "printed"), 0)
        for words in (["start", "evil", "-e", "cpu-clock", "--cgroup", name], ["list"],
                      ["status"], ["list", "-j"], ["status", "-j"], ["show-session", "default"],
                      ["list", "--segments"], ["stop", "evil"]):
            done = call(*words)
            safe(done.stdout, f"stdout of {words}")
            safe(done.stderr, f"stderr of {words}")
        check("evil" not in sessions(), "the session is still there")
    finally:
        with contextlib.suppress(OSError, TypeError):
            os.rmdir(group)


@test
def a_unit_is_found_by_its_raw_name_and_by_its_printed_name():
    daemon()
    with open("/proc/mounts", encoding="utf-8") as f:
        roots = [line.split()[1] for line in f if line.split()[2] == "cgroup2"]
    check(roots, "there is no tree of control groups")
    name = b"profd-test-\xff\\x2d" + str(os.getpid()).encode()
    group = os.path.join(roots[0].encode(), name + b".service")
    shown = name.decode("ascii", "backslashreplace").replace(r"\x2d", r"\x5cx2d")
    os.mkdir(group)
    try:
        for word in (name, shown, name + b".service"):
            ended(call("start", "unit", "-e", "cpu-clock", "-u", word), 0)
            said = call("show-session", "unit").stdout
            check(shown in said and "does not exist" not in said, f"{word} is not the group of {said}")
            ended(call("stop", "unit"), 0)
        for word in (name[:-1], shown[:-1]):
            ended(call("start", "unit", "-e", "cpu-clock", "-u", word), 5, "Did you mean '.*xff")
    finally:
        os.rmdir(group)


@contextlib.contextmanager
def hostile_process():
    """It runs, has the comm b"\\xff\\x1b[2J", and its program is called </script>."""
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        program = os.path.join(folder, "<", "script>")
        os.mkdir(os.path.dirname(program))
        shutil.copy(os.path.realpath("/bin/sh"), program)
        words = "printf '\\377\\033[2J' >/proc/$$/comm; echo ready; while :; do :; done"
        with background([program, "-c", words], stdout=subprocess.PIPE, text=True) as process:
            try:
                equal(process.stdout.readline(), "ready\n", "what it says")
                yield
            finally:
                process.kill()


@test
def hostile_names_of_processes_and_programs_reach_no_output():
    running = daemon()
    escaped = "\\xff\\x1b[2J"
    with hostile_process(), tempfile.TemporaryDirectory() as folder:
        ended(call("start", "evil", "-e", "cpu-clock", "-F", "999"), 0)
        wait_until(lambda: sessions()["evil"]["samples"] > 100, "samples")
        path = ended(call("rotate", "evil"), 0).stdout.strip()
        out = os.path.join(folder, "out")
        ended(call("snapshot", "-s", "evil", "--comm", b"\xff\x1b[2J", "-o", out), 0, "[0-9] samples")
        for words in (["info"], ["info", "-j"], ["dump"], ["dump", "-j"], ["verify"]):
            for one in (path, out):
                done = profctl(*words, one)
                said = safe(done.stdout, f"stdout of {words}") + safe(done.stderr, f"stderr of {words}")
                check(words[0] == "verify" or "/</script>" in said, f"{words} says nothing of the program: {said}")
                check(words[0] == "verify" or escaped.replace("\\", "\\\\" if "-j" in words else "\\") in said,
                      f"{words} says nothing of the process")
        for words in (["list"], ["status"], ["show-session"], ["metrics"], ["stop", "evil"]):
            done = call(*words)
            safe(done.stdout + done.stderr, f"what {words} prints")
    safe(running.log(), "the log")


@test
def offline_filters_that_match_nothing_end_with_status_5():
    path = source_path("tests", "golden", "recordings", "clock.data")
    record = json.loads(ended(profctl("dump", "-j", "-t", "SAMPLE", path), 0).stdout.splitlines()[0])
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        for words, says in ((["--pid=4194303"], "match process 4194303"),
                            (["--tid=4194303", "--pid=4194303"], "match process 4194303 and thread 4194303"),
                            (["--comm=nosuch"], "match comm 'nosuch'"), (["-u", "shop"], "match unit 'shop.service'"),
                            (["-G", "/shop"], "match cgroup '/shop'"), (["-C", "8000"], "has no CPU 8000")):
            done = ended(profctl("dump", *words, path), 5, says)
            equal(done.stdout, "", f"stdout of {words}")
            ended(profctl("convert", *words, path, out), 5, says)
            check(not os.path.exists(out), f"convert {words} wrote a file")
        comm = ended(profctl("dump", "-j", "-t", "COMM", path), 0).stdout.splitlines()[-1]
        for words in ([f"--pid={record['pid']}"], ["--comm", json.loads(comm)["comm"]]):
            check(ended(profctl("dump", *words, path), 0).stdout, f"nothing of {words}, which is there")
            ended(profctl("convert", "-f", *words, path, out), 0)


@test
def arguments_that_are_no_utf8_are_never_dropped():
    daemon()
    sampled("default")
    taken = ended(call("snapshot", "-n", "kept", "-r", b"why \xff"), 0).stdout.strip()
    reason = as_json(call("show-snapshot", "kept", "-j"), "show-snapshot")["reason"]
    equal(reason, "why \\xff", "the reason")
    for word in (b"\xff", "\\xff"):
        for verb in ("show-snapshot", "rm", "pin"):
            ended(call(verb, word), 5, r"no snapshot '\\xff'")
        for verb in ("stop", "pause", "rotate", "show-session", "list", "cat-config"):
            ended(call(verb, word), 5, r"no session '\\xff'")
        for option in ("--comm", "--cgroup"):
            done = call("snapshot", option, word)
            check(done.returncode == 5 or "no samples" in done.stderr, f"{option}: {done.stderr}")
    check(os.path.exists(taken), "the snapshot is gone")
    ended(call("rm", "kept"), 0)


@test
def a_snapshot_of_a_thread_has_only_that_thread():
    daemon()
    script = ("import threading\n"
              "def spin():\n while True: pass\n"
              "thread = threading.Thread(target=spin, daemon=True)\nthread.start()\n"
              "print(thread.native_id, flush=True)\nspin()")
    with background([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        try:
            tid = int(process.stdout.readline())
            check(tid != process.pid, "it is the leader")
            ended(call("start", "threads", "-e", "cpu-clock", "-F", "999", "-p", str(process.pid)), 0)
            wait_until(lambda: sessions()["threads"]["samples"] > 500, "samples")
            with tempfile.TemporaryDirectory() as folder:
                out = os.path.join(folder, "out")
                ended(call("snapshot", "-s", "threads", "-t", str(tid), "-o", out), 0, "[0-9] samples")
                records = [json.loads(line) for line in
                           ended(profctl("dump", "-j", "-t", "SAMPLE", out), 0).stdout.splitlines()]
        finally:
            process.kill()
    ended(call("stop", "threads"), 0)
    equal({(r["pid"], r["tid"]) for r in records}, {(process.pid, tid)}, "threads of the samples")


# What a command takes beside the option or argument that is tried: R is a recording, O a new file.
BESIDE = {
    "start": ["web", "-e", "cpu-clock"], "monitor": ["-n", "1"], "dump": ["R"], "convert": ["R", "O"], "merge": ["R"],
    "info": ["R"], "verify": ["R"], "show-snapshot": ["none"], "rm": ["none"], "pin": ["none"], "stop": ["none"],
    "pause": ["none"], "resume": ["none"], "log-level": ["info"],
}
# Free text, which may hold anything.
FREE = {("snapshot", "--reason"), ("snapshot", "--output"), ("snapshot", "--html"), ("merge", "--output"),
        ("convert", "OUT"), ("flamegraph", "--output"), ("pprof", "--output")}
# Their rows of options are those of pprof or flamegraph.
ALIKE = {"heatmap", "folded", "speedscope", "firefox"}


def free_texts():
    """Each option and argument of each command that is no choice among words: (command, option)."""
    for line in ended(profctl("--print-options"), 0).stdout.splitlines():
        command, _, option, argument, _ = line.split("\t")
        if argument and command not in ALIKE and not re.fullmatch(r"\[?[a-z0-9-]+(\|[a-z0-9-]+)+\]?", argument):
            yield command, option
    yield "convert", "OUT"


def called_with(command, option, value, out):
    words = [{"R": source_path("tests", "golden", "recordings", "clock.data"), "O": out}.get(word, word)
             for word in BESIDE.get(command, [])]
    if command == "*":
        return [option, value, "ping"]
    if option == "OUT":
        return [command, words[0], value]
    if not option:
        return [command, value, *({"start": words[1:], "convert": [out], "monitor": words}.get(command, []))]
    return [command, *words, *([option + b"=" + value] if isinstance(option, bytes) else [option, value])]


@test
def no_option_and_no_argument_changes_arbitrary_bytes():
    daemon()
    sampled("default")
    with tempfile.TemporaryDirectory() as folder:
        tried, here = set(), os.getcwd()
        os.chdir(folder)  # files of such names are made here
        try:
            for command, option in free_texts():
                for value in (b"\xff", rb"\xff"):
                    for name in os.listdir(b"."):
                        os.unlink(name)
                    done = call(*called_with(command, option, value, "out"), timeout=20)
                    what = f"{command} {option} {value}: status {done.returncode}, {done.stderr}"
                    check(0 <= done.returncode <= 8, what)
                    check(done.returncode not in (0, 8) or (command, option) in FREE, what)
                    check("update" not in done.stderr and "older than" not in done.stderr, what)
                    check(done.returncode in (0, 8) or done.stderr.startswith("profctl: "), what)
                    safe(done.stdout + done.stderr, what)
                    tried.add((command, option))
        finally:
            os.chdir(here)
    check(len(tried) > 60, f"only {len(tried)} were tried")
    equal(FREE - tried, set(), "free texts that no command takes")


@test
def a_wrong_argument_is_named_with_the_reason():
    for words, says in ((["--since=+1h"], "--since lies in the future"),
                        (["--since=-1min", "--until=-2min"], "--since is not before --until"),
                        (["--name=.x"], "Invalid --name '.x': a name has letters"),
                        (["--name=" + "x" * 65], "Invalid --name .* at most 64"),
                        (["--pid=5000000"], "Invalid --pid 5000000: a process id is at most 4194304"),
                        (["-t", "5000000"], "Invalid --tid 5000000: a thread id is at most 4194304"),
                        (["--reason=" + "x" * 256], "Invalid --reason: it has more than 255 bytes"),
                        (["--last=99999999d"], "--last does not accept '99999999d'")):
        done = ended(call("snapshot", *words), 2, says)
        check("update" not in done.stderr and "0.1.0" not in done.stderr, done.stderr)
    ended(call("start", "no/name", "-e", "cpu-clock"), 2, "Invalid name of a session: a name has letters")


@test
def doctor_does_not_blame_profd_for_a_missing_permission():
    done = call("doctor", "-j", user=NOBODY)
    said = [c for c in json.loads(done.stdout)["checks"] if "not this user" in c["text"]]
    equal([c["state"] for c in said], ["warn"], f"what {done.stdout} says of profd")
    check("Permission denied: 'doctor' requires root" in said[0]["text"], said[0]["text"])
    check("restart" not in said[0]["remedy"] and "profd-read" in said[0]["remedy"], said[0]["remedy"])
    equal([c["text"] for c in json.loads(done.stdout)["checks"] if "\\x0a" in c["text"] or "Hint" in c["text"]], [],
          "texts that contain the hint, which is the remedy")
    check("Protocol" not in done.stdout, done.stdout)


@test
def names_are_accepted_as_they_are_printed():
    daemon()
    with hostile_process():
        ended(call("start", "bytes", "-e", "cpu-clock", "-F", "999"), 0)
        wait_until(lambda: sessions()["bytes"]["samples"] > 100, "samples")
        time.sleep(1)
        for word in (b"\xff\x1b[2J", "\\xff\\x1b[2J"):
            done = call("snapshot", "-s", "bytes", "--comm", word, "-j")
            path = as_json(done, "snapshot")["path"]
            info = ended(profctl("info", path), 0).stdout
            check("\\xff\\x1b[2J" in info, f"{word} took nothing: {info}")
            check("of 1 process and 1 thread" in info, f"{word} took others: {info}")
    ended(call("stop", "bytes"), 0)


@test
def a_stopped_daemon_ends_with_status_3():
    with Monitor() as monitor:
        equal(daemon().stop(), 0, "status of profd")
        monitor.process.stdout.read()
        equal(monitor.process.wait(), 3, "status of monitor")
    for words in (["status"], ["list"], ["ping"], ["start", "web"]):
        ended(profctl(*words, socket=path()), 3, "not running")


if __name__ == "__main__":
    try:
        main()
    finally:
        for running in _running:
            running.kill()
            subprocess.run(["rm", "-rf", running.folder], check=False)
