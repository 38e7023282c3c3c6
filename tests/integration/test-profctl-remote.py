#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verbs that talk to the daemon, against a stand-in: what it rarely says, and what it never
should."""

import glob
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile

from profctl import (NOBODY, as_json, check, ended, environment, equal, for_everyone,
                     on_terminal, plain, profctl, safe, schema)
from standin import CLOSE, SILENT, Error, StandIn
from tap import main, skip, source_path, test

HOSTILE = "\x1b[2J\u202e\x7f\u009b\n</script>"
SERVICE = "org.varlink.service."

DEGRADED = {"reason": "fallbackEvent", "meaning": "this machine lacks its event, another one is "
            "sampled", "remedy": "run on a machine with a PMU, or set Event=cpu-clock"}
SESSION = {
    "name": "default", "state": "active", "runtime": False, "sensitive": False,
    "describe": "cpu-clock at 99 Hz, fp call graphs", "events": ["cpu-clock"],
    "frequency": 99, "period": 0, "callGraph": "fp", "cpus": 2, "target": "all", "layout": "file",
    "sinceUsec": 1795273200000000, "stopsUsec": None, "samples": 1234567, "lost": 3,
    "throttled": 0, "samplesPerSecond": 197.5, "storedBytes": 5 << 20, "rawBytes": 50 << 20,
    "segments": 4, "segment": "/var/lib/profd/sessions/default/00000004-x.perf.data.open",
    "segmentSinceUsec": 1795273200000000, "oldestUsec": 1795269600000000,
    "newestUsec": 1795273260000000, "reachUsec": 3 * 86400 * 10**6, "queueBytes": 4096, "degraded": [], "error": None, "stopReason": None, "missingEvents": [],
}
STORE = {"path": "/var/lib/profd", "usedBytes": 1 << 30, "limitBytes": 4 << 30,
         "freeBytes": 30 << 30, "reachUsec": 7 * 86400 * 10**6, "oldestUsec": 1795269600000000,
         "snapshotBytes": 12 << 20, "snapshotLimitBytes": 2 << 30, "volatile": False}
STATUS = {"version": "0.1.0", "hostname": "host", "bootId": "b" * 32, "state": "recording",
          "sinceUsec": 1795273200000000, "restarts": 1, "degraded": [], "sessions": [SESSION],
          "store": STORE, "cpuPercent": 0.4, "scanCpuPercent": 0.25, "memoryBytes": 6 << 20}
SEGMENT = {"session": "default", "name": "00000004-20261121T150000Z.perf.data",
           "path": "/var/lib/profd/x", "bootId": "b" * 32, "layout": "file", "sensitive": False,
           "sinceUsec": 1795273200000000, "untilUsec": None, "samples": 10, "lost": 0,
           "bytes": 4096, "completeness": "open", "files": ["x"]}
SETTING = {"section": "Session default", "key": "Frequency", "value": "99", "source": "default"}
EVENT = {"event": "rotated", "timeUsec": 1795273200000000, "session": "default",
         "text": "The segment is whole.", "path": "/x", "count": None}
METRIC = {"name": "profd_samples_total", "type": "counter", "help": "Samples written.",
          "labels": {"session": "default"}, "value": 12.0}

ANSWERS = {
    "Ping": [{}], "GetStatus": [STATUS], "ListSessions": [{"session": SESSION}],
    "ListSegments": [{"segment": SEGMENT}, {"segment": SEGMENT}],
    "Start": [{"session": {**SESSION, "name": "web", "runtime": True}}],
    "Stop": [{"session": {**SESSION, "state": "inactive"}}], "Pause": [{}], "Resume": [{}],
    "Rotate": [{"segments": ["/a", "/b"]}], "Vacuum": [{"removed": 3, "bytes": 4096}],
    "Monitor": [{**EVENT, "event": "ready"}, EVENT, {**EVENT, "event": "lost", "count": 5}],
    "GetMetrics": [{"metrics": [METRIC]}], "Describe": [{"setting": SETTING}], "Reload": [{}],
    "SetLogLevel": [{"previous": "info"}],
}
# A count for each way in which a walk can end, and what is said of it.
STACKS = {"whole": 9000, "truncated": 101, "pending": 102, "refused": 103, "noRule": 1104, "anonymous": 105,
          "noCode": 106, "stuck": 107, "bits32": 108, "noUser": 4000, "stackBytes": 16384}
STACKS_TEXT = "%.1f %% of 10,836 whole; 101 truncated, 102 whose unwind tables were not there, " \
    "103 in files that have no unwind tables, or that profd may not read or keep, 105 in code made at run time, " \
    "1,104 in code without unwind rules, 106 with a return address in no code, 107 on a stack that is not in order, " \
    "108 of 32-bit programs" % (900000 / 10836)
# Each verb as it is called right, and the method that it calls first.
VERBS = {
    "status": ([], "GetStatus"), "list": ([], "ListSessions"),
    "show-session": (["default"], "ListSessions"), "start": (["web", "-e", "cpu-clock"], "Start"),
    "stop": (["web"], "Stop"), "pause": (["web"], "Pause"), "resume": (["web"], "Resume"),
    "rotate": ([], "Rotate"), "vacuum": (["--size=1G"], "Vacuum"),
    "monitor": ([], "Monitor"), "metrics": ([], "GetMetrics"), "cat-config": ([], "Describe"),
    "reload": ([], "Reload"), "log-level": (["debug"], "SetLogLevel"), "ping": ([], "Ping"),
}
ERRORS = {
    "NoSuchSession": ({"session": "web"}, 5, "'web'.*profctl list"),
    "SessionExists": ({"session": "web"}, 1, "already"),
    "NotConfigured": ({"session": "wbe", "near": ["web"]}, 5, "'wbe' is not configured. Did you mean 'web'"),
    "SessionNotActive": ({"session": "web", "state": "paused"}, 1, "is paused"),
    "TooManySessions": ({"limit": 16}, 1, "16 sessions.*MaxSessions"),
    "BadSetting": ({"key": "Frequency", "value": "x", "expected": "a number"}, 2, "Frequency=x"),
    "EventUnsupported": ({"event": "cycels", "reason": "Cannot record session 'web': did you mean 'cycles'?"}, 1,
                         "web': did you mean 'cycles'[?]$"),
    "DiskBudget": ({"limit": 2 << 30, "need": 3 << 30}, 1, "3.0G.*2.0G"),
    "DiskFull": ({"path": "/var/lib/profd"}, 1, "/var/lib/profd.*full"),
    "Busy": ({"retryAfterMs": 1500}, 1, "again in 1 s"),
    "ConfigInvalid": ({"problems": [{"path": "/etc/x", "line": 3, "text": "no key"}]}, 1,
                      "/etc/x:3: no key"),
    "Cancelled": ({}, 1, "cancelled"),
    "Failed": ({"reason": "of the moon"}, 1, "of the moon"),
    SERVICE + "MethodNotFound": ({"method": "x"}, 1, "older than this profctl"),
    SERVICE + "InvalidParameter": ({"parameter": "sinceUsec", "reason": "it is late"}, 2,
                                   "Invalid --since: it is late[.]"),
    SERVICE + "ExpectedMore": ({}, 1, "ExpectedMore"),
}


def folder():
    """Which others may enter."""
    made = tempfile.TemporaryDirectory(prefix="profd-test.")
    os.chmod(made.name, 0o755)
    return made


def told(answers):
    return {**ANSWERS, **answers}


@test
def without_a_daemon_every_verb_ends_with_3_and_says_how_to_start_it():
    with folder() as where:
        for verb, (words, _) in VERBS.items():
            done = profctl(verb, *words, socket=f"{where}/none")
            ended(done, 3, "not running.*systemctl start profd")
            equal(done.stdout, "", f"stdout of {verb}")


@test
def a_user_reaches_his_own_daemon_where_the_system_has_none():
    if os.geteuid() != 0 or os.path.exists("/run/profd/io.profd.Control"):
        skip("needs root, and a system without a daemon")
    with folder() as where:
        os.mkdir(f"{where}/profd", 0o755)
        with StandIn(f"{where}/profd", ANSWERS) as daemon:
            os.chmod(daemon.path, 0o666)
            own = environment(XDG_RUNTIME_DIR=where)
            ended(profctl("ping", user=NOBODY, env=own), 0)
            ended(profctl("ping", env=own), 3, "/run/profd/io.profd.Control")


@test
def a_socket_without_a_listener_is_no_daemon():
    with folder() as where:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(f"{where}/left")
        ended(profctl("ping", socket=f"{where}/left"), 3, "not running")


@test
def wrong_usage_ends_with_2_before_anything_is_called():
    wrong = [["start"], ["stop"], ["pause"], ["resume"], ["start", "a", "b"], ["vacuum"],
             ["vacuum", "--size=much"], ["vacuum", "--segments=-1"], ["log-level"],
             ["log-level", "loud"], ["monitor", "--count=x"], ["status", "x"], ["ping", "x"],
             ["metrics", "--watch=soon"], ["start", "a", "--duration=long"],
             ["start", "a", "--set", "Frequency"], ["list", "--since=today"], ["list", "a", "b"],
             ["status", "--nothing"], ["list", "--json=loud"]]
    with folder() as where, StandIn(where, ANSWERS) as daemon:
        for words in wrong:
            ended(profctl(*words, socket=daemon.path), 2)
        equal(daemon.calls, [], "calls")


@test
def every_error_of_the_daemon_has_its_status_and_its_sentence():
    with folder() as where:
        for name, (parameters, status, words) in ERRORS.items():
            answers = {"Start": [Error(name, **parameters)],
                       SERVICE + "GetInfo": [{"vendor": "", "product": "profd", "version": "0.0.9",
                                              "url": "", "interfaces": []}]}
            with StandIn(where, answers) as daemon:
                ended(profctl("start", "web", socket=daemon.path), status, words)


@test
def an_old_daemon_is_named_with_its_version():
    info = {"vendor": "", "product": "profd", "version": "0.0.9", "url": "", "interfaces": []}
    with folder() as where, StandIn(where, {SERVICE + "GetInfo": [info]}) as daemon:
        for verb, (words, method) in VERBS.items():
            ended(profctl(verb, *words, socket=daemon.path), 1, f"profd 0.0.9.*'{method}'.*older")


@test
def every_verb_without_rights_ends_with_4():
    answers = {method: [Error(SERVICE + "PermissionDenied")] for method in ANSWERS}
    with folder() as where, StandIn(where, answers) as daemon:
        os.chmod(daemon.path, 0o666)
        for verb, (words, method) in VERBS.items():
            ended(profctl(verb, *words, socket=daemon.path), 4, f"Permission denied: '{verb}' requires root")


@test
def a_user_without_a_right_is_told_the_group_and_to_log_in_again():
    if os.geteuid() != 0:
        skip("needs root")
    answers = {method: [Error(SERVICE + "PermissionDenied")] for method in ANSWERS}
    with folder() as where, StandIn(where, answers) as daemon:
        os.chmod(daemon.path, 0o666)
        for verb, group in (("list", "profd-read"), ("start", "profd-admin")):
            words = VERBS[verb][0]
            done = ended(profctl(verb, *words, socket=daemon.path, user=NOBODY), 4, group)
            check("Hint: " in done.stderr, done.stderr)
            check("then log in again" in done.stderr or "has no group" in done.stderr, done.stderr)


def with_groups(where, lines, *words):
    """profctl as nobody, where /etc/group has these lines more."""
    groups = os.path.join(where, "group")
    with open("/etc/group", encoding="utf-8") as f, open(groups, "w", encoding="utf-8") as to:
        to.write("".join(line for line in f if not line.startswith("profd-")) + lines)
    os.chmod(groups, 0o644)
    script = 'mount --bind "$0" /etc/group && exec setpriv --reuid=65534 --regid=65534 ' \
             '--clear-groups "$@"'
    return subprocess.run(["unshare", "-m", "sh", "-c", script, groups, for_everyone(),
                           *words],
                          capture_output=True, text=True, env=environment(), check=False)


@test
def a_user_who_joined_the_group_after_login_is_told_to_log_in_again():
    if os.geteuid() != 0:
        skip("needs root")
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        skip("no mount namespace can be made here")
    answers = {method: [Error(SERVICE + "PermissionDenied")] for method in ANSWERS}
    lines = "profd-read:x:54321:\nprofd-admin:x:54322:nobody\n"
    with folder() as where, StandIn(where, answers) as daemon:
        os.chmod(daemon.path, 0o666)
        socket_option = f"--socket={daemon.path}"
        ended(with_groups(where, lines, socket_option, "list"), 4,
              "Permission denied: 'list' requires root or membership in 'profd-read'[.]",
              "Hint: root adds you with 'adduser nobody profd-read'; then log in again[.]")
        ended(with_groups(where, lines, socket_option, "stop", "x"), 4,
              "Hint: you joined 'profd-admin' after this login; log in again")


@test
def an_unreachable_socket_ends_with_4():
    if os.geteuid() != 0:
        skip("needs root")
    with folder() as where, StandIn(where, ANSWERS) as daemon:
        os.chmod(daemon.path, 0o600)
        ended(profctl("ping", socket=daemon.path, user=NOBODY), 4, "Permission denied: you may not connect")


@test
def a_silent_daemon_is_waited_for_until_a_timeout():
    with folder() as where, StandIn(where, {"Ping": [SILENT]}) as daemon:
        ended(profctl("ping", socket=daemon.path), 6, "did not answer")


@test
def a_daemon_that_hangs_up_or_sends_malformed_replies_is_reported():
    with folder() as where:
        for answer, status, words in ((CLOSE, 3, "ended the connection"),
                                      (b"HTTP/1.1 200 OK\r\n\r\n\0", 1, "another service"),
                                      (b"{}{}\0", 1, "another service"),
                                      (b"[" * 10000 + b"\0", 1, "another service")):
            with StandIn(where, {"GetStatus": [answer]}) as daemon:
                ended(profctl("status", socket=daemon.path), status, words)


@test
def json_of_every_verb_is_as_its_schema_says():
    with folder() as where, StandIn(where, ANSWERS) as daemon:
        for verb, (words, _) in VERBS.items():
            as_json(profctl(verb, *words, "--json=short", socket=daemon.path), verb)
            done = ended(profctl(verb, *words, "--json=pretty", socket=daemon.path), 0)
            check("\n  " in done.stdout or len(done.stdout) < 4, f"{verb}: {done.stdout[:80]}")
        as_json(profctl("list", "--segments", "-j", socket=daemon.path), "list")


def poisoned(value):
    """Every string in it hostile, but those that the interface fixes."""
    if isinstance(value, str):
        return value if value in ("active", "recording", "file", "open", "counter") else \
            value + HOSTILE
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    if isinstance(value, dict):
        return {key: poisoned(item) for key, item in value.items()}
    return value


@test
def nothing_hostile_reaches_the_terminal():
    answers = {method: poisoned(replies) for method, replies in ANSWERS.items()}
    answers["GetStatus"] = [poisoned({**STATUS, "degraded": [DEGRADED]})]
    with folder() as where, StandIn(where, answers) as daemon:
        for verb, (words, _) in VERBS.items():
            for option in ("--json=off", "--json=short", "--json=pretty"):
                done = ended(profctl(verb, *words, option, socket=daemon.path), 0)
                safe(done.stdout, f"stdout of {verb} {option}")
                safe(done.stderr, f"stderr of {verb} {option}")
            _, text = on_terminal(verb, *words, socket=daemon.path)
            safe(plain(text), f"{verb} on a terminal")
    for name, (parameters, status, _) in ERRORS.items():
        with folder() as where, StandIn(where, {"Start": [Error(name, **poisoned(parameters))]}) \
                as daemon:
            safe(ended(profctl("start", "web", socket=daemon.path), status).stderr, name)


@test
def escaped_text_is_not_escaped_again():
    comm = "\\xff\\x1b[2J"
    answers = told({"Monitor": [{**EVENT, "text": comm}]})
    with folder() as where, StandIn(where, answers) as daemon:
        check(comm in profctl("monitor", socket=daemon.path).stdout, "text")
        check('"\\\\xff\\\\x1b[2J"' in profctl("monitor", "-j", socket=daemon.path).stdout, "JSON")


@test
def status_shows_sessions_losses_and_remedies():
    ill = {**STATUS, "sessions": [{**SESSION, "degraded": [DEGRADED]}]}
    with folder() as where:
        with StandIn(where, told({"GetStatus": [ill]})) as daemon:
            done = ended(profctl("status", socket=daemon.path), 0)
            for words in ("recording since Sat 2026-11-21 15:00:00 UTC (", "cpu-clock at 99 Hz, fp call graphs, on 2 CPUs",
                          "1,234,567, 198 a second; 3 lost", "1.0G of 4.0G (25%)", "Run on a machine",
                          "0.40% of a CPU, 0.25% of it to read processes, 6.0M of memory, recorder restarted 1 time", "back to Sat 2026-11-21 14:00:00 UTC",
                          "1 week"):
                check(words in re.sub(r"\s+", " ", done.stdout), f"no '{words}' in {done.stdout}")
            ended(profctl("status", "--check", socket=daemon.path), 7)
            as_json(profctl("status", "--check", "-j", socket=daemon.path), "status", status=7)
        with StandIn(where, ANSWERS) as daemon:
            ended(profctl("status", "--check", socket=daemon.path), 0)


def of_reason(name, reason, **more):
    return {**SESSION, "name": name, "degraded": [{**DEGRADED, "reason": reason}], **more}


@test
def the_title_of_status_counts_the_sessions_that_record_nothing():
    rows = (([SESSION], "recording", None),
            ([of_reason("a", "fallbackEvent")], "recording", None),
            ([SESSION, of_reason("a", "failed", state="failed")], "recording", "1 session records nothing"),
            ([SESSION, of_reason("a", "stopped", state="inactive")], "recording", "1 session records nothing"),
            ([SESSION, of_reason("a", "paused", state="paused"), of_reason("b", "noCpus"), of_reason("c", "lateStart"),
              of_reason("d", "absentGroup")], "recording", "4 sessions record nothing"),
            ([of_reason("a", "failed", state="failed")], "idle", None))
    for listed, state, words in rows:
        with folder() as where, StandIn(where, {"GetStatus": [{**STATUS, "state": state, "sessions": listed}]}) as daemon:
            title = ended(profctl("status", socket=daemon.path), 0).stdout.splitlines()[0]
            check(("records nothing, runs since" if state == "idle" else "recording since") in title, title)
            equal(re.findall("[0-9]+ sessions? records? nothing", title), [words] if words else [], title)


@test
def doctor_fails_while_a_session_records_nothing():
    rows = (("inactive", "stopped", "fail"), ("paused", "paused", "fail"), ("active", "noCpus", "fail"),
            ("waiting", "absentGroup", "fail"), ("starting", "lateStart", "fail"), ("active", "shortReach", "warn"))
    for state, reason, seen in rows:
        for whole in ("idle", "recording"):
            status = {**STATUS, "restarts": 0, "state": whole, "sessions": [
                {**SESSION, "state": state, "degraded": [{"reason": reason, "meaning": "m", "remedy": "r"}]}]}
            with folder() as where, StandIn(where, told({"GetStatus": [status]})) as daemon:
                done = profctl("doctor", "-j", socket=daemon.path)
            said = [(c["state"], c["text"]) for c in json.loads(done.stdout)["checks"] if c["check"] == "daemon"]
            equal([s for s, _ in said], ["fail" if whole == "idle" else "ok", seen], f"what doctor says of {reason}")
            equal("records nothing" in said[0][1], whole == "idle", said[0][1])
            if "fail" in (said[0][0], seen):
                equal(done.returncode, 7, f"status of doctor, {reason}")


@test
def a_degraded_reason_of_a_session_is_not_shown_twice():
    other = {"reason": "config", "meaning": "there are problems", "remedy": "see"}
    ill = {**STATUS, "sessions": [{**SESSION, "degraded": [DEGRADED]}],
           "degraded": [DEGRADED, other]}
    with folder() as where, StandIn(where, told({"GetStatus": [ill]})) as daemon:
        text = ended(profctl("status", socket=daemon.path), 0).stdout
        equal((text.count("fallbackEvent"), text.count("(config)")), (1, 1), text)


@test
def files_without_a_build_id_are_shown_if_there_are_any():
    for count, words in ((None, None), (0, None), (1, "1 mapped file has no build id"), (3, "3 mapped files have no")):
        status = {**STATUS, **({} if count is None else {"unidentified": count})}
        with folder() as where, StandIn(where, {"GetStatus": [status]}) as daemon:
            text = re.sub(r"\s+", " ", ended(profctl("status", socket=daemon.path), 0).stdout)
            check("build id" not in text if words is None else words in text, text)
            as_json(profctl("status", "-j", socket=daemon.path), "status")


@test
def status_for_a_user_without_rights_is_coarse_and_mentions_it():
    coarse = {**STATUS, "sessions": None, "store": None, "cpuPercent": None, "scanCpuPercent": None,
              "memoryBytes": None}
    with folder() as where, StandIn(where, {"GetStatus": [coarse]}) as daemon:
        done = ended(profctl("status", socket=daemon.path), 0)
        check("profd-read" in done.stdout, done.stdout)
        as_json(profctl("status", "-j", socket=daemon.path), "status")


@test
def lines_fit_the_terminal():
    ill = {**STATUS, "sessions": [{**SESSION, "degraded": [DEGRADED]}], "degraded": [DEGRADED]}
    long_name = {**SESSION, "name": "payments-backend-of-the-shop"}
    answers = told({"GetStatus": [ill], "ListSessions": [{"session": SESSION}, {"session": long_name}]})
    with folder() as where, StandIn(where, answers) as daemon:
        for columns in (60, 80, 120):
            for words in (["status"], ["list"], ["list", "--segments"], ["show-session"]):
                # A path is not broken, whatever the width.
                if columns == 60 and words == ["show-session"]:
                    continue
                status, text = on_terminal(*words, columns=columns, socket=daemon.path)
                equal(status, 0, f"status of {words}: {text}")
                long = [line for line in plain(text).splitlines() if len(line) > columns]
                check(not long, f"{words} at {columns}: {long}")
            # The column that says least goes first, and stays on a wide terminal.
            head = plain(on_terminal("list", columns=columns, socket=daemon.path)[1]).splitlines()[0]
            equal(("LOST" in head, "PER SEC" in head), (True, columns == 120), head)


@test
def colours_are_for_terminals_unless_turned_off():
    with folder() as where, StandIn(where, ANSWERS) as daemon:
        for words in (["status"], ["list"], ["monitor"], ["cat-config"]):
            quiet = environment(TERM="xterm", PROFD_PAGER="", NO_COLOR="1")
            check("\x1b[" in on_terminal(*words, socket=daemon.path)[1], f"{words}: no colour")
            check("\x1b[" not in on_terminal(*words, socket=daemon.path, env=quiet)[1],
                  f"{words}: NO_COLOR is not respected")
            dumb = environment(TERM="dumb", PROFD_PAGER="")
            check("\x1b[" not in on_terminal(*words, socket=daemon.path, env=dumb)[1],
                  f"{words}: a dumb terminal got colours")
            check("\x1b[" not in profctl(*words, socket=daemon.path).stdout, f"{words}: in a pipe")


@test
def options_of_start_become_settings():
    cases = [
        (["-e", "cycles,faults", "-F", "999", "--cgroup", "a/b.service", "--duration", "30s"],
         {"Event": "cycles,faults", "Frequency": "999", "Cgroup": "a/b.service"}, 30 * 10**6),
        (["-e", "cycles", "-e", "faults", "-c", "100", "-p", "1,2", "-p", "3", "-C", "0-3"],
         {"Event": "cycles,faults", "Period": "100", "Pid": "1,2,3", "CPUs": "0-3"}, None),
        (["-g"], {"CallGraph": "auto"}, None),
        (["--call-graph=dwarf,8192"], {"CallGraph": "dwarf:8192"}, None),
        (["--call-graph", "dwarf", "-F", "max"], {"CallGraph": "dwarf", "Frequency": "max"}, None),
        (["-g", "-t", "7,8", "-t", "9"], {"CallGraph": "auto", "Tid": "7,8,9"}, None),
        (["--layout=directory", "--compress=zstd:9", "--set", "MaxUse=1G", "--set=Namespaces=yes"],
         {"Layout": "directory", "Compress": "zstd:9", "MaxUse": "1G", "Namespaces": "yes"}, None),
        ([], None, None),
    ]
    for words, settings, duration in cases:
        with folder() as where, StandIn(where, ANSWERS) as daemon:
            ended(profctl("start", "web", *words, socket=daemon.path), 0, "Session 'web' records")
            asked = daemon.asked("Start")[0]
            equal(asked.get("settings"), settings, f"settings of {words}")
            equal(asked.get("durationUsec"), duration, f"duration of {words}")


@test
def start_names_the_remedy_of_a_degraded_session():
    answers = told({"Start": [{"session": {**SESSION, "name": "web", "degraded": [DEGRADED]}}]})
    with folder() as where, StandIn(where, answers) as daemon:
        ended(profctl("start", "web", "-e", "cycles", socket=daemon.path), 0,
              r"Degraded: This machine lacks .* Run on a machine with a PMU, .* \(fallbackEvent\)")


# A snapshot and sessions whose values are wider than any of the widths below.
WIDE = "payments-backend-of-the-shop-in-the-second-data-centre"
WIDE_PATH = f"/var/lib/profd/sessions/{WIDE}/00000099-20261120T100019Z.perf.data"
WIDE_SNAPSHOT = {
    "name": WIDE, "path": f"/var/lib/profd/snapshots/{WIDE}.perf.data", "session": "default", "layout": "file",
    "sensitive": False, "pinned": True, "reason": f"why {WIDE} is slow", "uid": 0, "createdUsec": 1795273200000000,
    "expiresUsec": None, "sinceUsec": 1795273200000000, "untilUsec": 1795273260000000, "samples": 12345, "lost": 7,
    "bytes": 1 << 20, "partial": [], "files": [""],
}
WIDE_ANSWERS = {
    **ANSWERS,
    "GetStatus": [{**STATUS, "sessions": [{**SESSION, "name": WIDE, "degraded": [DEGRADED]}]}],
    "ListSessions": [{"session": {**SESSION, "name": WIDE, "describe": f"cpu-clock, cgroup /{WIDE}"}}],
    "ListSegments": [{"segment": {**SEGMENT, "name": f"{WIDE}.perf.data", "path": WIDE_PATH}}],
    "ListSnapshots": [{"snapshot": WIDE_SNAPSHOT}],
    "Monitor": [{**EVENT, "event": "ready"}, {**EVENT, "session": WIDE, "path": WIDE_PATH}],
    "Describe": [{"setting": {**SETTING, "section": f"Session {WIDE}", "value": f"/{WIDE}"}}],
    "GetMetrics": [{"metrics": [{**METRIC, "labels": {"session": WIDE}}]}],
}
# Each table and screen, and the words that a pipe gets whole and in one line.
TABLES = [
    (["status"], "cpu-clock at 99 Hz, fp call graphs, on 2 CPUs"), (["list"], f"cpu-clock, cgroup /{WIDE}"),
    (["list", "-s"], f"{WIDE}.perf.data"), (["show-session"], f"cpu-clock, cgroup /{WIDE}"),
    (["snapshots"], f"why {WIDE} is slow"), (["show-snapshot", WIDE], f"why {WIDE} is slow"),
    (["monitor"], WIDE), (["cat-config"], f"/{WIDE}"), (["metrics"], f'session="{WIDE}"'),
]


@test
def no_table_is_wrapped_or_cut_in_a_pipe():
    with folder() as where, StandIn(where, WIDE_ANSWERS) as daemon:
        for words, whole in TABLES:
            done = ended(profctl(*words, socket=daemon.path), 0)
            check(any(whole in line for line in done.stdout.splitlines()), f"{words}: no {whole!r} in {done.stdout}")
            wide = ended(profctl(*words, socket=daemon.path, env=environment(COLUMNS="200")), 0).stdout
            check(any(whole in line for line in wide.splitlines()), f"{words} at 200: no {whole!r} in {wide}")
            narrow = ended(profctl(*words, socket=daemon.path, env=environment(COLUMNS="40")), 0).stdout
            # Of the name of a segment the number is left, any other name is whole, so that it can be typed.
            check(WIDE in narrow or words == ["list", "-s"], f"{words} at 40: the name is cut in {narrow}")
            equal(done.stdout.count(WIDE) >= 1, True, f"{words}: the name is cut in {done.stdout}")


@test
def tables_with_short_names_fit_into_forty_columns():
    answers = {**ANSWERS, "ListSnapshots": [{"snapshot": {**WIDE_SNAPSHOT, "name": "slow", "reason": "slow"}}]}
    with folder() as where, StandIn(where, answers) as daemon:
        for words, _ in TABLES:
            done = ended(profctl(*words[:1], *(["slow"] if words[1:] == [WIDE] else words[1:]), socket=daemon.path,
                                 env=environment(COLUMNS="40")), 0)
            # Prose is wrapped and tables lose columns; a path is not broken, nor a line that programs read.
            long = [line for line in done.stdout.splitlines() if len(line) > 40 and "/" not in line]
            check(not long or words[0] in ("metrics", "monitor", "cat-config"), f"{words}: {long}")


def recordings():
    """perf.data files of every kind, one of which does not end where it should."""
    with folder() as where:
        for path in sorted(glob.glob(source_path("tests", "golden", "recordings", "*.data"))):
            yield path
        with open(path, "rb") as whole, open(f"{where}/cut.data", "wb") as cut:
            cut.write(whole.read()[:-100])
        yield f"{where}/cut.data"


@test
def facts_of_recordings_and_of_the_host_fit_fifty_columns():
    for path in recordings():
        text = profctl("info", path, env=environment(COLUMNS="50")).stdout
        # The header is in the form of perf report --header-only, and a path is not broken.
        facts = text.split("# ========")[0].splitlines()
        equal([line for line in facts if len(line) > 50 and "/" not in line], [], f"info {path}")
        check(any(len(line) > 25 for line in facts), f"info {path}: {text}")
    text = profctl("doctor", env=environment(COLUMNS="50")).stdout
    # A word alone in its line may be longer.
    equal([line for line in text.splitlines() if len(line) > 50 and len(line[18:].split()) > 1], [], "doctor")
    for words in (["info", source_path("tests", "golden", "recordings", "clock.data")], ["doctor"]):
        wide, terminal = profctl(*words).stdout, plain(on_terminal(*words, columns=50)[1])
        check(max(map(len, wide.splitlines())) > 50, f"{words} in a pipe: {wide}")
        check(len(terminal.splitlines()) > len(wide.splitlines()), f"{words} on a terminal: {terminal}")


@test
def status_and_info_say_the_same_of_stacks():
    with folder() as where:
        path = os.path.join(where, "00000001-x.perf.data")
        shutil.copy(source_path("tests", "golden", "recordings", "clock.data"), path)
        manifest = path.replace(".perf.data", ".json")
        with open(manifest, "w", encoding="utf-8") as f:
            json.dump({"stacks_no_user": 7}, f)
        check("Stacks" not in ended(profctl("info", path), 0).stdout, "info shows samples without a stack")
        with open(manifest, "w", encoding="utf-8") as f:
            json.dump({"stacks_" + re.sub("[A-Z]", lambda m: "_" + m[0].lower(), name): n for name, n in STACKS.items()}, f)
        with StandIn(where, told({"GetStatus": [{**STATUS, "sessions": [{**SESSION, "stacks": STACKS}]}]})) as daemon:
            for words in (["status"], ["info", path]):
                text = re.sub(r"\s+", " ", ended(profctl(*words, socket=daemon.path), 0).stdout)
                found = re.search("Stacks:? ([0-9].*? programs)", text)
                equal(found and found[1], STACKS_TEXT, f"what {words[0]} says of stacks")
        counts = json.loads(ended(profctl("info", "--json", path), 0).stdout)["stacks"]
        equal({**counts, "stackBytes": 16384}, STACKS, "stacks of info --json")


@test
def a_finding_of_verify_is_one_line_at_any_width():
    for path in recordings():
        wide = profctl("verify", path)
        narrow = profctl("verify", path, env=environment(COLUMNS="40"))
        equal((narrow.returncode, narrow.stdout), (wide.returncode, wide.stdout), f"verify {path}")
    equal(wide.returncode, 8, "status of the recording that was cut")
    check(max(map(len, wide.stdout.splitlines())) > 40, wide.stdout)


@test
def limits_of_vacuum_become_parameters():
    with folder() as where, StandIn(where, ANSWERS) as daemon:
        done = ended(profctl("vacuum", "--size=1G", "--time=2d", "--segments=5",
                             socket=daemon.path), 0)
        equal(daemon.asked("Vacuum"), [{"maxBytes": 1 << 30, "maxAgeUsec": 2 * 86400 * 10**6,
                                        "maxSegments": 5}], "parameters")
        equal(done.stdout, "3 segments removed, 4.0K freed.\n", "stdout")


@test
def a_session_that_fails_does_not_stop_the_others():
    with folder() as where, StandIn(where, told({"Pause": [Error("NoSuchSession", session="a")]})) \
            as daemon:
        done = profctl("pause", "a", "b", "c", socket=daemon.path)
        equal(done.returncode, 5, "status")
        equal([p["session"] for p in daemon.asked("Pause")], ["a", "b", "c"], "calls")


@test
def an_invalid_name_is_not_sent():
    with folder() as where, StandIn(where, ANSWERS) as daemon:
        for verb in ("rotate", "stop", "list"):
            profctl(verb, b"\xff\x1b", socket=daemon.path)
        names = [call["parameters"]["session"] for call in daemon.calls]
        equal(names, ["\\xff\\x1b"] * 3, "names")


@test
def monitor_filters_and_ends_after_the_requested_number_of_lines():
    with folder() as where, StandIn(where, ANSWERS) as daemon:
        done = ended(profctl("monitor", "--count=1", socket=daemon.path), 0)
        equal(done.stdout, "2026-11-21 15:00:00 default rotated: The segment is whole.\n", "line")
        done = profctl("monitor", "-e", "lost", socket=daemon.path)
        check("lost:" in done.stdout and "rotated" not in done.stdout, done.stdout)
        equal(profctl("monitor", "other", socket=daemon.path).stdout, "", "another session's")
        lines = profctl("monitor", "-j", socket=daemon.path).stdout.splitlines()
        check('"ready"' in lines[0] and len(lines) == 3, str(lines))


@test
def monitor_suggests_the_event_that_was_meant():
    with folder() as where, StandIn(where, ANSWERS) as daemon:
        for word, status, says in (("rotatde", 0, "Waiting .* 'rotatde', .* not know. Did you mean 'rotated'[?]"),
                                   ("thawed", 0, "'profctl help monitor' lists"),
                                   ("Lost", 2, "no event 'Lost'. Did you mean 'lost'[?]"),
                                   ("x-y", 2, "no event 'x-y', see 'profctl help monitor'")):
            ended(profctl("monitor", f"--event=rotated,{word}", "-n1", socket=daemon.path), status, says)


@test
def metrics_have_the_format_of_prometheus():
    other = {**METRIC, "name": "profd_up", "type": "gauge", "labels": {}, "value": 1.5}
    odd = {**METRIC, "labels": {"session": 'a"b\\n'}, "value": 2.0**52}
    bad = {**METRIC, "name": "no name"}
    answers = told({"GetMetrics": [{"metrics": [METRIC, other, odd, bad]}]})
    with folder() as where, StandIn(where, answers) as daemon:
        equal(profctl("metrics", socket=daemon.path).stdout,
              "# HELP profd_samples_total Samples written.\n"
              "# TYPE profd_samples_total counter\n"
              'profd_samples_total{session="default"} 12\n'
              'profd_samples_total{session="a\\"b\\\\n"} 4503599627370496\n'
              "# HELP profd_up Samples written.\n"
              "# TYPE profd_up gauge\n"
              "profd_up 1.5\n", "text")
        profctl("metrics", "--watch=5s", socket=daemon.path)
        equal(daemon.asked("GetMetrics")[-1], {"intervalUsec": 5 * 10**6}, "parameters")


@test
def cat_config_can_be_read_again():
    answers = told({"Describe": [
        {"setting": {"section": "Profd", "key": "MaxUse", "value": "2G", "source": "/etc/x:3"}},
        {"setting": SETTING}]})
    with folder() as where, StandIn(where, answers) as daemon:
        text = profctl("cat-config", socket=daemon.path).stdout
        check(re.fullmatch(r"\[Profd\]\nMaxUse=2G +; /etc/x:3\n\n\[Session default\]\n"
                           r"Frequency=99 +; default\n", text), text)
        equal(profctl("cat-config", "--no-legend", socket=daemon.path).stdout,
              "[Profd]\nMaxUse=2G\n\n[Session default]\nFrequency=99\n", "without a legend")


@test
def quiet_omits_remarks_and_keeps_errors():
    with folder() as where:
        with StandIn(where, ANSWERS) as daemon:
            for verb in ("start", "stop", "pause", "resume", "reload"):
                done = profctl(verb, *VERBS[verb][0], "-q", socket=daemon.path)
                equal((done.returncode, done.stdout, done.stderr), (0, "", ""), verb)
        ended(profctl("stop", "x", "-q", socket=f"{where}/none"), 3, "not running")


@test
def empty_lists_print_no_row():
    answers = told({"ListSessions": [{"session": None}], "ListSegments": [{}]})
    with folder() as where, StandIn(where, answers) as daemon:
        for words in (["list"], ["list", "--segments"]):
            equal(profctl(*words, socket=daemon.path).stdout, "", "text")
            equal(profctl(*words, "-j", socket=daemon.path).stdout, "[]\n", "JSON")


@test
def the_schema_of_monitor_has_the_events_that_profctl_knows():
    rows = [line.split("\t") for line in profctl("--print-options").stdout.splitlines()]
    known = [argument for command, _, option, argument, _ in rows if (command, option) == ("monitor", "--event")]
    documented = schema.load("monitor.json")["properties"]["event"]["enum"]
    equal([argument.removesuffix(",…").split("|") for argument in known],
          [[event for event in documented if event not in ("ready", "dropped")]], "events")


@test
def types_of_the_schemas_have_the_fields_of_the_interface():
    with open(source_path("lib", "protocol", "io.profd.Control.varlink"), encoding="utf-8") as f:
        interface = re.sub(r"#.*", "", f.read())
    types = {name.lower(): set(re.findall(r"(\w+)\s*:", fields))
             for name, fields in re.findall(r"\btype (\w+)\s*\(([^)]*)\)", interface)}
    documented = schema.load("type.json")["$defs"]
    check({"session", "segment", "store", "setting", "metric", "degraded"} <= set(documented),
          f"documented are {sorted(documented)}")
    for name, definition in documented.items():
        wanted = types.get(name) or types.get(name + "info")
        if wanted:
            equal(set(definition["properties"]), wanted, f"members of {name}")
            check(set(definition["required"]) <= wanted, f"{name} requires what is not there")


@test
def every_schema_belongs_to_a_verb_with_a_test():
    names = {name[:-len(".json")] for name in os.listdir(source_path("doc", "schema"))}
    check(set(VERBS) <= names, f"without a schema: {set(VERBS) - names}")


if __name__ == "__main__":
    main()
