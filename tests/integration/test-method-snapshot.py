#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Snapshots and segments as a client asks for them: progress, names, moments, errors, owners, many
at once, clients and recorders that die in the middle; reading and deleting."""

import contextlib
import glob
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Fault, Varlink, fault  # noqa: E402
from workload import LONG, scratch, spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

READ, ADMIN = 64301, 64302
GROUPS = {"profd-read": READ, "profd-admin": ADMIN}
READER, OTHER, ADMINISTRATOR = (64311, 64311, [READ]), (64312, 64312, [READ]), (64313, 64313, [ADMIN])
CONFIG = "[Profd]\nFlushIntervalSec=500ms\n" + session(Event="cpu-clock", Frequency=4999, BufferSize="4M") + \
    session("quiet", Event="cpu-clock", Frequency=99, Layout="directory")
AT_ONCE = 20
SLACK_US = 20_000
MAX_US = 10_000_000
SLOW_BYTES = 1 << 20  # more than sockets hold


class Run(Scene):
    """One profd for all that does not end it, under a load that makes every tick a sample."""

    config, groups = CONFIG, GROUPS

    @classmethod
    def begin(cls, enter):
        super().begin(enter)
        time.sleep(1)


def connected(user=None):
    return Varlink(Run.control(), user=user)


def now_us():
    return time.time_ns() // 1000


def take(v, **wish):
    """The last of the replies; those before it tell of progress."""
    replies = v.call("Snapshot", **wish)
    for reply in replies[:-1]:
        check(reply["snapshot"] is None and reply["doneBytes"] <= reply["totalBytes"], f"{reply}")
    equal(replies[-1]["phase"], "done", "the last phase")
    return replies[-1]["snapshot"]


def verified(path):
    done = subprocess.run([recording.PROFCTL, "verify", path], capture_output=True, text=True, check=False)
    check(done.returncode == 0 and " error " not in done.stdout, f"{path}: {done.stdout}{done.stderr}")


def leftovers(daemon, *names):
    """The files among the snapshots beside these."""
    found = os.listdir(os.path.join(daemon.store, "snapshots"))
    return [f for f in found if f.split(".perf.data")[0].removesuffix(".json") not in names]


@test
def a_snapshot_is_made_announced_listed_read_and_removed():
    with connected() as v, connected() as monitor:
        events = monitor.each("Monitor")
        next(events)
        called = now_us()
        said = take(v, lastUsec=500_000, name="first", reason="a look \x1b[2J", pin=True)
        equal((said["name"], said["session"], said["uid"], said["pinned"], said["expiresUsec"], said["partial"]),
              ("first", "default", 0, True, None, []), "what is said of it")
        check("\x1b" not in said["reason"] and "a look" in said["reason"], f"the reason is {said['reason']!r}")
        samples = recording.samples([said["path"]])
        equal(len(samples), said["samples"], "samples")
        # It reaches up to the call, whatever was swept before.
        check(abs(said["untilUsec"] - called) < 500_000 and said["untilUsec"] > called - SLACK_US,
              f"it ends {called - said['untilUsec']} us before the call")
        check(450_000 < said["untilUsec"] - said["sinceUsec"] <= 500_000, "its span")
        recording.check_clean([said["path"]])
        equal([s["name"] for s in v.members("ListSnapshots", "snapshot")], ["first"], "the list")
        equal(v.call("ListSnapshots", name="first")[0]["snapshot"], said, "the one")
        with connected() as reader, open(said["path"], "rb") as f:
            check(reader.read(snapshot="first") == f.read(), "Read() gives something else")
        v.one("PinSnapshot", name="first", pinned=False)
        check(v.call("ListSnapshots", name="first")[0]["snapshot"]["expiresUsec"], "it never expires")
        check(v.one("RemoveSnapshot", name="first")["bytes"] > 0, "no bytes")
        equal(v.call("ListSnapshots"), [{}], "an empty list")
        heard = []
        for event in events:
            heard += [event["event"]] if event["event"] in ("snapshot", "removed") else []
            if event["event"] == "removed":
                break
        equal(heard, ["snapshot", "removed"], "what a monitor heard")
        equal(leftovers(Run.get().daemon), [], "leftovers")


@test
def a_window_may_be_in_the_past_or_in_the_future():
    with connected() as v:
        begin = now_us()
        said = take(v, atUsec=begin + 600_000, lastUsec=300_000)
        check(now_us() >= begin + 600_000, "it came too early")
        check(abs(said["untilUsec"] - begin - 600_000) < SLACK_US, "it does not end at its moment")
        begin = now_us()
        ahead = take(v, lastUsec=200_000, followUpUsec=400_000)
        check(now_us() >= begin + 400_000, "it came too early")
        check(ahead["sinceUsec"] < begin < begin + 380_000 < ahead["untilUsec"], "it has not both sides of the call")
        whole = take(v, session="quiet", layout="directory", compress="none")
        equal((whole["layout"], whole["files"][0]), ("directory", "data"), "layout")
        for name in (said["name"], ahead["name"], whole["name"]):
            v.one("RemoveSnapshot", name=name)


@test
def a_wrong_parameter_is_named():
    with connected() as v:
        for wish, parameter in (({"name": "../x"}, "name"), ({"name": ".x"}, "name"), ({"lastUsec": -1}, "lastUsec"),
                                ({"lastUsec": 0}, "lastUsec"), ({"lastUsec": 5, "sinceUsec": 5}, "lastUsec"),
                                ({"sinceUsec": 9, "untilUsec": 9}, "untilUsec"), ({"cpus": "x"}, "cpus"),
                                ({"cpus": "3-1"}, "cpus"), ({"layout": "heap"}, "layout"), ({"compress": "zip"}, "compress"),
                                ({"pids": [-5]}, "pids"), ({"untilUsec": 5, "followUpUsec": 5}, "followUpUsec"),
                                ({"reason": "x" * 300}, "reason")):
            with fault("InvalidParameter", parameter=parameter):
                take(v, **wish)
        for name in ("none", "../../etc", ""):
            with fault("NoSuchSession", session=name):
                take(v, session=name)
        with fault("WindowUnavailable"):
            take(v, sinceUsec=1_000_000, untilUsec=2_000_000)
        v.send("Snapshot", {"sinceUsec": 1_000_000, "untilUsec": 2_000_000})
        span = v.receive()["parameters"]
        check(0 < span["oldestUsec"] < span["newestUsec"] <= now_us(), f"it says that there is {span}")
        take(v, lastUsec=100_000, name="taken")
        with fault("SnapshotExists", name="taken"):
            take(v, lastUsec=100_000, name="taken")
        for method, more in (("RemoveSnapshot", {}), ("PinSnapshot", {"pinned": True}), ("ListSnapshots", {})):
            with fault("NoSuchSnapshot", name="tkaen", near=["taken"]):
                v.call(method, name="tkaen", **more)
        with connected() as reader, fault("NoSuchSnapshot", near=["taken"]):
            reader.read(snapshot="takn")
        v.one("RemoveSnapshot", name="taken")
        for method, more in (("RemoveSnapshot", {}), ("PinSnapshot", {"pinned": True})):
            for name in ("none", "../x", ""):
                with fault("NoSuchSnapshot", name=name):
                    v.one(method, name=name, **more)
        for where in ({"snapshot": "none"}, {"snapshot": "../../etc/passwd"}):
            with connected() as reader, fault("NoSuchSnapshot"):
                reader.read(**where)
        for where in ({"session": "default", "segment": "../x"}, {"session": "..", "segment": "x"},
                      {"session": "default", "segment": "00000099-20261120T100019Z.perf.data"}):
            with connected() as reader, fault("NoSuchSegment"):
                reader.read(**where)
        for where in ({}, {"session": "default"}, {"snapshot": "x", "session": "default"}):
            with connected() as reader, fault("InvalidParameter"):
                reader.read(**where)
        equal(leftovers(Run.get().daemon), [], "leftovers")


@test
def a_snapshot_belongs_to_its_creator():
    with connected(READER) as v, connected(OTHER) as other, connected(ADMINISTRATOR) as admin:
        equal(take(v, lastUsec=100_000, name="his")["uid"], READER[0], "owner")
        for method, more in (("RemoveSnapshot", {}), ("PinSnapshot", {"pinned": True})):
            with fault("PermissionDenied"):
                other.one(method, name="his", **more)
        admin.one("PinSnapshot", name="his", pinned=True)
        take(other, lastUsec=100_000, name="hers")
        other.one("RemoveSnapshot", name="hers")
        v.one("RemoveSnapshot", name="his")
        take(v, lastUsec=100_000, name="his")
        admin.one("RemoveSnapshot", name="his")


def with_limit(v, limit):
    """Snapshots may take so much, or as much as by default."""
    line = f"SnapshotMaxUse={limit}\n" if limit else ""
    Run.get().daemon.configure(CONFIG.replace("[Profd]\n", f"[Profd]\n{line}"))
    v.one("Reload")


@test
def one_user_cannot_use_up_what_others_and_root_need():
    daemon = Run.get().daemon
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(connected())
        users = [stack.enter_context(connected((64340 + i, 64340, [READ]))) for i in range(4)]
        lost = root.call("ListSessions", session="default")[0]["session"]["lost"]
        # The same each time, so that each takes the same.
        wish = {"sinceUsec": now_us() - 600_000, "untilUsec": now_us() - 100_000, "compress": "none"}
        sizes = [take(users[0], **wish)["bytes"]]
        limit = 10 * sizes[0]
        with_limit(root, limit)
        try:
            sizes += [take(v, **wish)["bytes"] for v in (*users, *users[:3])[1:]]
            check(max(sizes) < 1.2 * min(sizes), f"they take {sizes} bytes")
            mark = daemon.mark()
            # A quarter is for one user, and a quarter is kept from all of them.
            for v, most in ((users[0], limit // 4), (users[3], limit // 4 * 3)):
                with fault("DiskBudget", limit=most):
                    take(v, **wish)
                v.send("Snapshot", wish)
                check(v.receive()["parameters"]["need"] > most, "it says that it needs less")
                daemon.wait_for_log(rf"Refused Snapshot to user {v.uid} \(pid {v.pid}\).*DiskBudget", mark)
            for _ in range(2):
                take(root, **wish)
            with fault("DiskBudget", limit=limit):
                for _ in range(3):
                    take(root, **wish)
            said = root.one("GetStatus")["store"]
            check(said["snapshotBytes"] <= said["snapshotLimitBytes"] == limit, f"{said}")
        finally:
            for said in root.members("ListSnapshots", "snapshot"):
                root.one("RemoveSnapshot", name=said["name"])
            with_limit(root, None)
        equal(leftovers(daemon), [], "leftovers")
        equal(root.call("ListSessions", session="default")[0]["session"]["lost"], lost, "samples lost by the session")


@test
def too_many_simultaneous_snapshots_are_refused_with_the_time_to_retry():
    # The busier the machine the longer it takes until all have asked.
    for seconds in (0.5, 3, 10, 20):
        if asked_for_too_many(seconds):
            break


def asked_for_too_many(seconds):
    """Whether one of those that asked for one moment was refused."""
    daemon = Run.get().daemon
    with contextlib.ExitStack() as stack:
        uid = 64350 + int(seconds)
        clients = [stack.enter_context(connected((uid, uid, [READ]))) for _ in range(16)]
        other = stack.enter_context(connected((64349, 64349, [READ])))
        mark, moment = daemon.mark(), now_us() + int(seconds * 1e6)
        wish = {"atUsec": moment, "lastUsec": 200_000}
        for v in (*clients, other):
            v.send("Snapshot", wish)
        said, refused = [other.reply()[0]["snapshot"]], []
        for v in clients:
            try:
                said.append(v.reply()[0]["snapshot"])
            except Fault as error:
                refused.append(error)
        for one in said:
            with connected() as v:
                v.one("RemoveSnapshot", name=one["name"])
        if not refused and seconds < 20:
            return False
        check({e.name for e in refused} == {"Busy"}, f"refused were {refused}")
        check(all(0 < e.parameters["retryAfterMs"] < MAX_US for e in refused), f"{refused}")
        # Eight may wait beside those that are made.
        check(len(said) - 1 >= 8, f"only {len(said) - 1} were made")
        daemon.wait_for_log(rf"Refused Snapshot to user {uid} \(pid \d+\).*Busy", mark)
    return True


@test
def many_simultaneous_snapshots_lose_nothing():
    answers, errors = [], []

    def one(number):
        try:
            # Of users of their own, since one may have 16 connections.
            with connected((64320 + number, 64320, [ADMIN])) as v:
                answers.append(take(v, lastUsec=700_000, name=f"many-{number}"))
        except (Exception, Fault) as error:  # what a thread meets must not be lost
            errors.append(error)

    with connected() as v:
        lost = v.call("ListSessions", session="default")[0]["session"]["lost"]
    threads = [threading.Thread(target=one, args=(i,)) for i in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal((len(answers), errors), (AT_ONCE, []), "snapshots and errors")
    for said in answers[::1 if LONG else 7]:
        recording.check_clean([said["path"]])
    check(all(a["partial"] == [] and a["samples"] > 100 for a in answers), "one of them is less than asked for")
    # A client that is silent for that long may find its connection closed.
    with connected() as v:
        equal(v.call("ListSessions", session="default")[0]["session"]["lost"], lost, "samples lost by the session")
        for said in answers:
            v.one("RemoveSnapshot", name=said["name"])
        equal(leftovers(Run.get().daemon), [], "leftovers")


@test
def a_client_that_disconnects_leaves_no_snapshot():
    daemon = Run.get().daemon
    for wish in ({"followUpUsec": 60_000_000}, {"atUsec": now_us() + 60_000_000}, {}):
        with connected() as v:
            v.send("Snapshot", {"name": "gone", **wish}, more=True)
            v.receive()
        with connected() as v:
            wait_until(lambda: leftovers(daemon, "gone") == [], 20, "what was half made to go")
            # One that was as good as done may have come about, whole.
            for said in v.members("ListSnapshots", "snapshot"):
                recording.check_clean([said["path"]])
                v.one("RemoveSnapshot", name=said["name"])
    # One that was to be begun just then is begun, and given up.
    wait_until(lambda: leftovers(daemon) == [], 20, "all of it to go")


@test
def a_snapshot_of_the_future_ends_with_its_client_even_without_a_reply():
    moment = now_us() + 1_500_000
    for number, wish in enumerate(({"atUsec": moment}, {"followUpUsec": 1_500_000}, {"untilUsec": moment}, {})):
        with connected() as v:
            v.send("Snapshot", {"name": f"alone-{number}", **wish}, oneway=True)

    def names():
        with connected() as v:
            return {s["name"] for s in v.members("ListSnapshots", "snapshot")}

    wait_until(lambda: names() == {"alone-3"}, 20, "what need not wait")
    time.sleep(max(0, moment - now_us()) / 1e6 + 0.5)
    equal(names(), {"alone-3"}, "snapshots")
    with connected() as v:
        v.one("RemoveSnapshot", name="alone-3")


@test
def a_transient_snapshot_ends_with_its_connection():
    daemon = Run.get().daemon
    with connected(READER) as v:
        said = take(v, lastUsec=200_000, transient=True)
        equal(v.call("ListSnapshots"), [{}], "the list")
        with connected(READER) as reader:
            data = reader.read(snapshot=said["name"])
            equal(data[:8], b"PERFILE2", "what it begins with")
        with connected(OTHER) as reader, fault("NoSuchSnapshot"):
            reader.read(snapshot=said["name"])
    wait_until(lambda: leftovers(daemon) == [], 20, "it to go")


@test
def segments_are_listed_read_and_deleted():
    daemon = Run.get().daemon
    with connected() as v:
        path = v.one("Rotate", session="quiet")["segments"][0]
        v.one("Rotate", session="quiet")
        listed = {s["path"]: s for s in v.members("ListSegments", "segment", session="quiet")}
        equal((listed[path]["layout"], listed[path]["completeness"]), ("directory", "complete"), "the segment")
        equal([s["completeness"] for p, s in listed.items() if p.endswith(".open")], ["open"], "the open one")
        equal(v.call("ListSegments", session="quiet", sinceUsec=1, untilUsec=2), [{}], "those of 1970")
        with fault("NoSuchSession", session="none"):
            v.call("ListSegments", session="none")
        for name in listed[path]["files"]:
            with connected() as reader, open(os.path.join(path, name), "rb") as f:
                check(reader.read(session="quiet", segment=listed[path]["name"], file=name) == f.read(), f"{name} differs")
        with connected() as reader, fault("NoSuchSegment"):
            reader.read(session="quiet", segment=listed[path]["name"], file="../../x")
        said = v.one("Vacuum", maxSegments=1)
        check(said["removed"] >= 1 and said["bytes"] > 0, f"{said}")
        check(not os.path.exists(path), "it is still there")
        equal(v.one("Vacuum", maxSegments=1), {"removed": 0, "bytes": 0}, "a second one")
        # One after the other, whoever waits and whoever does not.
        v.one("Rotate", session="quiet")
        with contextlib.ExitStack() as stack:
            others = [stack.enter_context(connected()) for _ in range(6)]
            for number, other in enumerate(others):
                other.send("Vacuum", {"maxSegments": 1})
                if number % 3 == 0:
                    other.close()
            removed = sum(other.reply()[0]["removed"] for number, other in enumerate(others) if number % 3)
        check(removed <= 2, f"{removed} segments were deleted")
        equal([s["completeness"] for s in v.members("ListSegments", "segment", session="quiet")],
              ["complete", "open"], "what is left")
        equal(len(daemon.open_segments()), 1, "the open segment")


@contextlib.contextmanager
def slow_readers(count, user=None, **where):
    """Connections to which more is on its way than they take."""
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(connected(user)) for _ in range(count)]
        for reader in readers:
            reader.send("Read", where, upgrade=True)
            check(reader.reply()[0]["bytes"] > SLOW_BYTES, "it is under way at once")
        yield readers


def slow(v, name, **wish):
    """A snapshot of which nobody has all before he reads, as soon as so much is recorded."""
    for _ in range(40):
        said = take(v, name=name, compress="none", **wish)
        if said["bytes"] > SLOW_BYTES:
            return said
        v.one("RemoveSnapshot", name=said["name"])
        time.sleep(0.5)
    return check(False, f"it has {said['bytes']} bytes")


@test
def a_refused_client_holds_no_lease():
    with connected() as v, connected() as refused:
        name = os.path.basename(v.one("Rotate", session="default")["segments"][0])
        v.one("Rotate", session="default")
        slow(v, "slow", lastUsec=MAX_US)
        with slow_readers(4, snapshot="slow"):
            for _ in range(50):
                with fault("Busy"):
                    refused.read(session="default", segment=name)
            before = v.one("GetStatus")["store"]["usedBytes"]
            freed = v.one("Vacuum", maxSegments=1)["bytes"]
            after = v.one("GetStatus")["store"]["usedBytes"]
        # The samples that come meanwhile are less than a second of it.
        check(freed > 0 and after < before - freed / 2, f"of {before} bytes {freed} went, and {after} are left")
        v.one("RemoveSnapshot", name="slow")


@test
def a_removed_snapshot_takes_space_until_its_readers_are_done():
    daemon = Run.get().daemon
    with connected(READER) as v, connected() as admin:
        slow(v, "read", lastUsec=MAX_US)
        with slow_readers(2, READER, snapshot="read") as readers:
            with fault("Busy"):
                v.one("RemoveSnapshot", name="read")
            readers[0].close()
            with fault("Busy"):
                v.one("RemoveSnapshot", name="read")
        wait_until(lambda: removed(v, "read"), 20, "it to be removed")
        # It is as good as gone for an administrator.
        slow(v, "read", lastUsec=MAX_US)
        with slow_readers(1, READER, snapshot="read"):
            admin.one("RemoveSnapshot", name="read")
        equal(leftovers(daemon), [], "leftovers")


def removed(v, name):
    try:
        v.one("RemoveSnapshot", name=name)
    except Fault as error:
        check(error.name == "Busy", f"the error is {error}")
        return False
    return True


@test
def a_transient_snapshot_is_deleted_after_its_last_reader():
    daemon = Run.get().daemon
    with contextlib.ExitStack() as stack:
        with connected(READER) as v, connected() as admin:
            name = slow(v, None, lastUsec=MAX_US, transient=True)["name"]
            readers = stack.enter_context(slow_readers(2, READER, snapshot=name))
            used = admin.one("GetStatus")["store"]["snapshotBytes"]
        for reader in readers:
            time.sleep(0.2)
            with connected() as admin:
                equal(admin.one("GetStatus")["store"]["snapshotBytes"], used, "what snapshots take")
            reader.close()
        wait_until(lambda: leftovers(daemon) == [], 20, "it to go")


@test
def a_snapshot_with_the_name_of_a_former_transient_one_stays():
    with connected() as other:
        with connected(READER) as v:
            name = take(v, lastUsec=100_000, transient=True)["name"]
            v.one("RemoveSnapshot", name=name)
            take(other, lastUsec=100_000, name=name)
        time.sleep(0.2)
        equal([s["name"] for s in other.members("ListSnapshots", "snapshot")], [name], "the list")
        other.one("RemoveSnapshot", name=name)


@test
def vanished_segments_are_reported_and_nothing_else_fails():
    daemon = Run.get().daemon
    with connected() as v, connected() as vacuum:
        begin = now_us() - 100_000
        before = v.call("ListSessions", session="default")[0]["session"]["lost"]
        time.sleep(0.3)
        first = v.one("Rotate", session="default")["segments"][0]
        time.sleep(0.3)
        second = v.one("Rotate", session="default")["segments"][0]
        # By hand, behind the back of whoever counts them.
        os.unlink(first)
        said = take(v, sinceUsec=begin)
        check(any("was deleted while it was read" in p for p in said["partial"]), f"{said['partial']}")
        check(said["samples"] > 100 and said["sinceUsec"] > begin + 200_000, f"{said}")
        verified(said["path"])
        v.one("RemoveSnapshot", name=said["name"])
        # At the same time as it is read.
        for attempt in range(20 if LONG else 3):
            v.send("Snapshot", {"sinceUsec": begin, "name": f"torn-{attempt}"})
            vacuum.one("Vacuum", maxSegments=1)
            os.path.exists(second) and os.unlink(second)
            said = v.reply()[0]["snapshot"]
            verified(said["path"])
            v.one("RemoveSnapshot", name=said["name"])
            second = v.one("Rotate", session="default")["segments"][0]
        equal(leftovers(daemon), [], "leftovers")
        equal(v.call("ListSessions", session="default")[0]["session"]["lost"], before, "samples lost by the session")


@test
def a_recorder_that_dies_leaves_no_partial_snapshot():
    with scratch() as folder, spinning(), Daemon(folder, config=session(Event="cpu-clock", Frequency=999)) as daemon:
        for attempt in range(20 if LONG else 2):
            clients = [subprocess.Popen(
                [sys.executable, "-c", "import sys, os; sys.path.insert(0, sys.argv[1]); import varlink; "
                 "varlink.Varlink(sys.argv[2]).call('Snapshot')", os.path.dirname(os.path.abspath(__file__)),
                 daemon.control()], stderr=subprocess.DEVNULL) for _ in range(4)]
            mark, snapshots = daemon.mark(), os.path.join(daemon.store, "snapshots")
            wait_until(lambda: os.listdir(snapshots), 20, "a snapshot to be begun")
            clients[0].kill()
            os.kill(daemon.recorder(), signal.SIGKILL)
            daemon.wait_for_log("Recording ", mark)
            for client in clients:
                client.wait()
            whole = glob.glob(os.path.join(snapshots, "*.perf.data"))
            recording.check_clean(whole)
            with Varlink(daemon.control()) as v:
                listed = v.members("ListSnapshots", "snapshot")
                equal(sorted(s["path"] for s in listed), sorted(whole), "what is listed and what is there")
                for said in listed:
                    v.one("RemoveSnapshot", name=said["name"])
            equal(os.listdir(snapshots), [], f"leftovers of attempt {attempt}")


if __name__ == "__main__":
    main()
