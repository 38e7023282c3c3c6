#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who may call which method: a table of all of them, walked as nobody, as a user without a group,
as members of profd-read and profd-admin, and as root."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import session  # noqa: E402
from profctl import environment, for_everyone  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Fault, Gone, Varlink, fault  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

READ, ADMIN = 64101, 64102
GROUPS = {"profd-read": READ, "profd-admin": ADMIN}
PEERS = {
    "anyone": (64201, 64201, []),
    "read": (64202, 64202, [READ]),
    "admin": (64203, 64203, [64999, ADMIN]),
    "root": (0, 0, []),
}
ORDER = list(PEERS)
# Method: who may at least, and parameters with which it changes nothing.
METHODS = {
    "Ping": ("anyone", {}),
    "GetStatus": ("anyone", {}),
    "ListSessions": ("read", {}),
    "Start": ("admin", {"session": "/"}),
    "Stop": ("admin", {"session": "none"}),
    "Pause": ("admin", {"session": "none"}),
    "Resume": ("admin", {"session": "none"}),
    "Rotate": ("admin", {"session": "none"}),
    "Snapshot": ("read", {"session": "none"}),
    "ListSegments": ("read", {"session": "none"}),
    "ListSnapshots": ("read", {"name": "none"}),
    "ListBinaries": ("read", {}),
    "RemoveSnapshot": ("read", {"name": "none"}),
    "PinSnapshot": ("read", {"name": "none", "pinned": True}),
    "Read": ("read", {"snapshot": "none"}),
    "Follow": ("read", {"session": "none"}),
    "Vacuum": ("admin", {}),
    "Monitor": ("read", {}),
    "GetMetrics": ("read", {}),
    "Describe": ("read", {}),
    "Reload": ("admin", {}),
    "SetLogLevel": ("admin", {"level": "none"}),
}
callers = []  # each call: (method, uid, pid)
MORE = ("ListSessions", "ListSegments", "ListSnapshots", "ListBinaries", "Monitor", "Describe")


class Run(Scene):
    config = session(Frequency=99) + session("private", Event="cpu-clock", CallGraph="dwarf")
    groups, load = GROUPS, contextlib.nullcontext


def connected(peer):
    return Varlink(Run.control(), user=PEERS[peer])


# What changes something, when it is permitted.
CHANGES = {"Start", "Stop", "Pause", "Resume", "Rotate", "Snapshot", "RemoveSnapshot", "PinSnapshot", "Vacuum",
           "Reload", "SetLogLevel"}


def is_permitted(peer, method, parameters):
    with connected(peer) as v:
        callers.append((method, v.uid, v.pid))
        flags = {"more": True} if method in MORE else {"upgrade": True} if method in ("Read", "Follow") else {}
        v.send(method, parameters, **flags)
        try:
            v.reply()
        except Fault as error:
            return error.error != "org.varlink.service.PermissionDenied"
    return True


@test
def the_table_has_every_method_of_the_interface():
    with connected("root") as v:
        text = v.one("org.varlink.service.GetInterfaceDescription", interface="io.profd.Control")["description"]
    methods = {line.split()[1].split("(")[0] for line in text.splitlines() if line.startswith("method ")}
    equal(methods ^ set(METHODS), set(), "methods that are in one of the two alone")


@test
def each_user_may_call_exactly_the_methods_of_his_right():
    wrong, mark = [], Run.get().daemon.mark()
    for method, (least, parameters) in METHODS.items():
        for peer in PEERS:
            should = ORDER.index(peer) >= ORDER.index(least)
            if is_permitted(peer, method, parameters) != should:
                wrong.append(f"{method} as {peer} is {'refused' if should else 'permitted'}")
    equal(wrong, [], "what does not fit the table")
    audited(Run.get().daemon.log(mark))


def audited(log):
    """Who changed something is in the log, with uid and pid, each time; who was refused, as long as it is not
    too often."""
    ranks = {PEERS[peer][0]: ORDER.index(peer) for peer in PEERS}
    did = set(re.findall(r"User (\d+) \(pid (\d+)\) called (\w+) with \{", log))
    refused = re.findall(r"Refused (\w+) to user (\d+) \(pid (\d+)\), who is not in group (\S+)", log)
    should, denied = set(), {}
    for method, uid, pid in callers:
        least = METHODS[method][0]
        if ranks[uid] < ORDER.index(least):
            denied[(method, str(uid), str(pid))] = f"profd-{least}"
        elif method in CHANGES:
            should.add((str(uid), str(pid), method))
    equal(did, should, "what the log says of changes")
    check(len(refused) >= 10, f"the log says of refusals {refused}")
    equal([r for r in refused if denied.get(r[:3]) != r[3]], [], "refusals in the log that were none")


@test
def a_primary_group_counts_as_well():
    with Varlink(Run.control(), user=(64204, READ, [])) as v:
        check(v.members("ListSessions", "session"), "no session is listed")


@test
def the_user_nobody_gets_no_answer():
    try:
        with Varlink(Run.control(), user=(65534, 65534, [READ, ADMIN])) as v:
            v.one("Ping")
    except (Gone, Fault, OSError):
        return
    check(False, "nobody had an answer")


def as_user(peer, *words, cwd=None):
    """profctl as that user would run it."""
    uid, gid, groups = PEERS[peer]
    return subprocess.run([for_everyone(), f"--socket={Run.control()}", *words], capture_output=True, text=True,
                          user=uid, group=gid, extra_groups=groups, cwd=cwd, check=False, env=environment(HOME="/"),
                          stdin=subprocess.DEVNULL, timeout=60)


@test
def profctl_does_what_the_user_may_do_and_names_missing_rights():
    reading, changing = ["list", "snapshots", "metrics", "cat-config"], ["rotate", "reload", "vacuum --size=1G"]
    for peer in PEERS:
        for verbs, least in ((reading, "read"), (changing, "admin")):
            for words in verbs:
                done = as_user(peer, *words.split())
                may = ORDER.index(peer) >= ORDER.index(least)
                equal(done.returncode, 0 if may else 4, f"status of {words} as {peer} ({done.stderr})")
                check(may or f"profd-{least}" in done.stderr or "does not have" in done.stderr, done.stderr)


def run_hint(line, folder):
    """What profctl printed as a command, run by a member of profd-read as it stands."""
    uid, gid, groups = PEERS["read"]
    path = f"{os.path.dirname(for_everyone())}:{os.environ['PATH']}"
    return subprocess.run(["sh", "-c", line], user=uid, group=gid, extra_groups=groups, cwd=folder, text=True,
                          capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60,
                          env=environment(HOME=folder, PATH=path))


def snapshot_hint(name, words, folder):
    """The command in the hint that begins with these words, after a snapshot by a member of profd-read."""
    done = as_user("read", "snapshot", "-s", "default", f"--name={name}", cwd=folder)
    equal(done.returncode, 0, done.stderr)
    hint = re.search(f"{words} (.*)", done.stderr)
    check(hint, f"no hint '{words}' in {done.stderr}")
    return done.stdout.strip(), hint[1]


@test
def a_member_of_profd_read_can_run_the_hint_as_it_is_printed():
    Run.get()
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, *PEERS["read"][:2])
        path, hint = snapshot_hint("direct", "Next:", folder)
        check(hint.startswith("perf report "), hint)
        done = run_hint(f"{hint} --stdio", folder)
        equal(done.returncode, 0, f"{hint}: {done.stderr}")
        equal(as_user("read", "rm", "direct").returncode, 0, "status of rm")
        check(not os.path.exists(path), f"{path} exists after rm")


@test
def a_user_who_cannot_open_the_store_can_run_the_hint_that_copies_the_snapshot():
    store = Run.get().daemon.store
    mode = os.stat(store).st_mode & 0o7777
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, *PEERS["read"][:2])
        os.chmod(store, 0o700)  # as an administrator may, to have everything asked of profd
        try:
            _, hint = snapshot_hint("mine", "You cannot read this file. Write one of your own:", folder)
            done = run_hint(hint, folder)
        finally:
            os.chmod(store, mode)
        equal(done.returncode, 0, f"{hint}: {done.stderr}")
        equal(as_user("read", "verify", "mine.perf.data", cwd=folder).returncode, 0, "status of verify")
        equal(os.stat(os.path.join(folder, "mine.perf.data")).st_uid, PEERS["read"][0], "whose it is")
        equal(as_user("read", "rm", "mine").returncode, 0, "status of rm")


@test
def only_members_of_a_group_of_profd_can_open_a_recording():
    with connected("admin") as v:
        segment = v.one("Rotate", session="default")["segments"][0]
        sensitive = v.one("Rotate", session="private")["segments"][0]
    for peer, may in (("anyone", []), ("read", [segment]), ("admin", [segment, sensitive])):
        uid, gid, groups = PEERS[peer]
        for path in (segment, sensitive):
            read = subprocess.run(["head", "-c", "8", path], user=uid, group=gid, extra_groups=groups, check=False,
                                  capture_output=True).returncode == 0
            equal(read, path in may, f"whether {peer} can open {path}")


@test
def status_has_more_for_users_who_may_read():
    for peer, more in (("anyone", False), ("read", True)):
        with connected(peer) as v:
            status = v.one("GetStatus")
            told = [status.get(key) is not None for key in ("sessions", "store", "cpuPercent", "memoryBytes")]
            equal(set(told), {more}, f"what {peer} is told")
            check(status["version"] and status["hostname"] and status["state"] == "recording", f"{status}")


@test
def only_administrators_may_read_memory_of_other_users():
    with connected("root") as v:
        path = v.one("Rotate", session="private")["segments"][0]
    for peer, may in (("read", False), ("admin", True)):
        with connected(peer) as v:
            segment = next(s for s in v.members("ListSegments", "segment", session="private") if s["path"] == path)
            check(segment["sensitive"], f"{segment} is not sensitive")
            if may:
                with open(path, "rb") as f:
                    equal(v.read(session="private", segment=segment["name"]) == f.read(), True, "what was read")
                continue
            with fault("PermissionDenied"):
                v.read(session="private", segment=segment["name"])
            with fault("PermissionDenied"):
                v.one("Snapshot", session="private", lastUsec=1_000_000)


@test
def the_result_of_a_call_is_logged():
    mark = Run.get().daemon.mark()
    with connected("admin") as v:
        with fault("NoSuchSession"):
            v.one("Stop", session="none")
        with fault("InvalidParameter", parameter="level"):
            v.one("SetLogLevel", level="loud")
        v.one("SetLogLevel", level="info")
    log = Run.get().daemon.log(mark)
    for words in ('called Stop with {"session":"none"}: refused, NoSuchSession {"session":"none"}',
                  'called SetLogLevel with {"level":"loud"}: refused, org.varlink.service.InvalidParameter',
                  'called SetLogLevel with {"level":"info"}: done'):
        check(words in log, f"no '{words}' in {log}")
    check('{"level":"loud"}: done' not in log, "a refused call counts as done")


@test
def endless_calls_do_not_flood_the_log():
    mark = Run.get().daemon.mark()
    with connected("read") as v, connected("admin") as admin:
        for who in (v, admin):
            for _ in range(300):
                who.send("RemoveSnapshot", {"name": "none"})
            for _ in range(300):
                with fault("NoSuchSnapshot"):
                    who.reply()
        log = Run.get().daemon.log(mark)
        told = [len(re.findall(rf"User {who.uid} .* called RemoveSnapshot", log)) for who in (v, admin)]
    check(0 < told[0] <= 200, f"{told[0]} calls of a reader are in the log")
    equal(told[1], 300, "calls of an administrator in the log")


if __name__ == "__main__":
    main()
