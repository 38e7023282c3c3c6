#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions for a control group: they wait for a group that does not exist yet, and go on with the new
group when a service restarts; the time in between is a gap."""

import contextlib
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import control_group  # noqa: E402
import recording  # noqa: E402
from control_group import folder_of, remove, tree  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from profctl import ended, profctl  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import need_root, now_ns, scratch, wait_until  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

SINCE_S = 4  # so near a time of a change is to what happened
GROUP = "profd-test-restart.slice/shop.service"
CONFIG = session(Event="cpu-clock", Frequency=99) + session("shop", Event="cpu-clock", Frequency=999, Cgroup=GROUP)


def service(group=GROUP):
    return control_group.service(group)


@contextlib.contextmanager
def no_group_left():
    need_root()
    try:
        yield
    finally:
        for path in (GROUP, os.path.dirname(GROUP)):
            with contextlib.suppress(OSError):
                os.rmdir(folder_of(path))


def told(daemon, name="shop"):
    with Varlink(daemon.control()) as v:
        return v.call("ListSessions", session=name)[0]["session"]


def wait_for_state(daemon, state):
    return wait_until(lambda: (lambda s: s if s["state"] == state else None)(told(daemon)), 20, f"state {state}")


def wait_for_samples(daemon, more=50):
    before = told(daemon)["samples"]
    wait_until(lambda: told(daemon)["samples"] > before + more, 20, "samples of the group")


def spans(daemon, *services):
    """When the first and the last sample of each service was; there are no others."""
    samples = recording.samples(daemon.segments("shop"))
    found = [[s.time for s in samples if s.pid in pids] for pids in services]
    check(all(found), f"{len(samples)} samples of pids {({s.pid for s in samples})}, the services are {services}")
    equal(sum(map(len, found)), len(samples), "samples of the services, among all")
    return [(min(times), max(times)) for times in found]


def gaps(daemon):
    return [gap for path in daemon.segments("shop") for gap in recording.manifest(path)["gaps"]
            if gap["reason"] == "absent"]


@test
def a_restarted_service_is_sampled_again_and_the_time_between_is_a_gap():
    with scratch() as folder, no_group_left():
        with contextlib.ExitStack() as first:
            one = first.enter_context(service())
            with Daemon(folder, config=CONFIG) as daemon:
                wait_for_state(daemon, "active")
                wait_for_samples(daemon)
                first.close()
                gone = now_ns()
                with service() as two:
                    wait_for_samples(daemon)
                    equal(told(daemon)["state"], "active", "state with the second group")
                equal(daemon.stop(), 0, "status")
                (_, last), (first_again, _) = spans(daemon, one, two)
                check(last < gone < first_again, f"samples to {last} and from {first_again}, gone at {gone}")
                # It goes on from one segment to the next, and each has its part. Another one follows the second service.
                between = [g for g in gaps(daemon) if g["from_ns"] < first_again]
                begin = min((g["from_ns"] for g in between), default=0)
                end = max((g["to_ns"] for g in between), default=0)
                check(last < begin <= end <= first_again + 10**7 and gone <= end,
                      f"gone at {gone}, gaps {gaps(daemon)}, and samples to {last} and from {first_again}")
                equal(len(daemon.segments()), 1, "segments of the other session")
                recording.check_clean(daemon.segments("shop"))


@test
def a_group_that_does_not_exist_is_waited_for():
    with scratch() as folder, no_group_left(), Daemon(folder, config=CONFIG) as daemon:
        shop = wait_for_state(daemon, "waiting")
        equal([d["reason"] for d in shop["degraded"]], ["absentGroup"], "reasons")
        equal(profctl("status", "--check", socket=daemon.control()).returncode, 7, "status --check")
        with service() as one:
            wait_for_samples(daemon)
            begun = time.time()
            shop = wait_for_state(daemon, "active")
            equal(shop["degraded"], [], "reasons with the group")
            check(abs(shop["sinceUsec"] / 1e6 - begun) < SINCE_S, f"active since {shop['sinceUsec']}, at {begun}")
            time.sleep(SINCE_S)
        gone = time.time()
        shop = wait_for_state(daemon, "waiting")
        check(abs(shop["sinceUsec"] / 1e6 - gone) < SINCE_S, f"waiting since {shop['sinceUsec']}, gone at {gone}")
        with service() as two:
            wait_for_state(daemon, "active")
            wait_for_samples(daemon)
        equal(daemon.stop(), 0, "status")
        check(f"for session 'shop' begins when control group '{GROUP}' exists" in daemon.log() and
              " 0 CPUs" not in daemon.log(), daemon.log()[-2000:])
        spans(daemon, one, two)
        equal(len(daemon.segments()), 1, "segments of the other session")


@test
def a_group_that_was_replaced_while_a_recorder_died_is_sampled_by_the_next_one():
    with scratch() as folder, no_group_left(), contextlib.ExitStack() as first:
        one = first.enter_context(service())
        with Daemon(folder, config=CONFIG) as daemon:
            wait_for_samples(daemon)
            mark, recorder = daemon.mark(), daemon.recorder()
            os.kill(recorder, signal.SIGSTOP)
            first.close()
            with service() as two:
                os.kill(recorder, signal.SIGKILL)
                daemon.wait_for_log("Recording .*shop", mark)
                wait_for_samples(daemon)
            equal(daemon.stop(), 0, "status")
            spans(daemon, one, two)


def in_namespace(group):
    """The words before a command that runs in the group, in a cgroup namespace that begins there."""
    if f" {tree()} cgroup2 " not in open("/proc/mounts", encoding="utf-8").read():
        skip("perf events follow control groups of version 1 here")
    inside = f'umount -l "{tree()}" && mount -t cgroup2 none "{tree()}" && exec "$@"'
    return ["sh", "-c", f'echo $$ >"{folder_of(group)}/cgroup.procs" && exec unshare --cgroup --mount '
                        f"--propagation private sh -c '{inside}' sh \"$@\"", "sh"]


@test
def in_a_container_groups_have_the_same_path_everywhere():
    outer = "profd-test-payload"
    with scratch() as folder, contextlib.ExitStack() as stack:
        need_root()
        with contextlib.suppress(OSError):
            os.mkdir(folder_of(outer))
        if not os.path.isdir(folder_of(outer)):
            skip("no control group can be made here")
        stack.callback(remove, outer)
        stack.enter_context(service(f"{outer}/early.slice"))
        daemon = stack.enter_context(Daemon(folder, config=session(Event="cpu-clock", Frequency=999),
                                            prefix=in_namespace(outer)))
        stack.callback(remove, f"{outer}/late.slice")
        late = stack.enter_context(service(f"{outer}/late.slice/shop.service"))
        ended(profctl("start", "shop", "-e", "cpu-clock", "--cgroup=/late.slice/shop.service",
                      socket=daemon.control()), 0)
        wait_for_samples(daemon)
        for number, words in enumerate((["-G/late.slice/shop.service"], ["-Glate.slice"], ["-ushop"],
                                        ["-G/early.slice"])):
            out = f"{folder}/{number}"
            ended(profctl("snapshot", *words, "-o", out, socket=daemon.control()), 0)
            paths = {r["path"] for r in recording.records(out, "CGROUP")}
            check(paths and not any(outer in path for path in paths), f"groups of {words}: {paths}")
            check(number == 3 or {s.pid for s in recording.samples(out)} <= late, f"processes of {words}")
        ended(profctl("snapshot", f"-G/{outer}/late.slice", "-o", f"{folder}/none", socket=daemon.control()), 5,
              "Did you mean '/late.slice'")
        daemon.kill()


@test
def a_session_by_hand_for_a_group_that_does_not_exist_is_refused():
    with scratch() as folder, no_group_left(), Daemon(folder, config=session()) as daemon:
        ended(profctl("start", "web", "-e", "cpu-clock", "--cgroup=profd-test-no-such.slice", socket=daemon.control()), 5,
              r"^profctl: Cannot start 'web': control group 'profd-test-no-such.slice' does not exist\.")
        with Varlink(daemon.control()) as v:
            equal([s["session"]["name"] for s in v.call("ListSessions")], ["default"], "sessions")
        with service():
            ended(profctl("start", "web", "-e", "cpu-clock", f"--cgroup=/{GROUP}", socket=daemon.control()), 0)
        wait_until(lambda: told(daemon, "web")["state"] == "waiting", 20, "the session to wait")
        ended(profctl("stop", "web", socket=daemon.control()), 0)


WITHOUT_GROUPS = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                  "awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts | sort -r | xargs umount -l && exec \"$@\"", "sh"]


@test
def without_mounted_control_groups_a_session_for_one_fails():
    need_root()
    tree()
    with scratch() as folder, Daemon(folder, config=CONFIG, prefix=WITHOUT_GROUPS) as daemon:
        done = profctl("start", "web", "-e", "cpu-clock", f"--cgroup={GROUP}", socket=daemon.control())
        check(done.returncode == 1 and "mount cgroup2" in done.stderr, f"start: {done.returncode} {done.stderr}")
        with Varlink(daemon.control()) as v:
            found = {s["name"]: (s["state"], s["samples"]) for s in v.members("ListSessions", "session")}
        equal(found.pop("default")[0], "active", "state of the session for the whole machine")
        equal(found, {"shop": ("failed", 0)}, "sessions for a control group")
        equal(daemon.stop(), 0, "status")
        equal([daemon.segments("shop"), daemon.segments("web")], [[], []], "segments of sessions for a control group")


def started(daemon, *words, status=0, says=""):
    return ended(profctl("start", "web", "-e", "cpu-clock", *words, socket=daemon.control()), status, says)


@test
def a_unit_is_found_by_its_name_and_followed_like_its_path():
    unit = os.path.basename(GROUP)
    with scratch() as folder, no_group_left(), Daemon(folder, config=session()) as daemon:
        with service(), service(f"{GROUP}/below-{unit}"):
            started(daemon, "-u", unit.removesuffix(".service"))
            equal(told(daemon, "web")["target"], f"cgroup {GROUP}", "what it records")
        wait_until(lambda: told(daemon, "web")["state"] == "waiting", 20, "the session to wait")
        with service():
            wait_until(lambda: told(daemon, "web")["state"] == "active", 20, "the session to go on")
        ended(profctl("stop", "web", socket=daemon.control()), 0)


@test
def a_glob_of_a_unit_records_the_one_group_that_it_matches():
    above, glob = "profd-test-globs.slice", "profd-test-shop-*.service"
    shop = f"{above}/profd-test-shop-web.service"
    with scratch() as folder, Daemon(folder, config=session()) as daemon, contextlib.ExitStack() as stack:
        need_root()
        stack.callback(remove, above)
        pids = stack.enter_context(service(shop))
        stack.enter_context(service(f"{above}/profd-test-other-web.service"))
        for words in ("profd-test-shop-*", "profd-test-sh?p-web.service", "profd-test-[rs]hop-web.service", glob):
            started(daemon, "-u", words)
            equal(told(daemon, "web")["target"], f"cgroup {shop}", f"what {words} records")
            if words != glob:
                ended(profctl("stop", "web", socket=daemon.control()), 0)
        wait_until(lambda: told(daemon, "web")["samples"] > 50, 20, "samples of the group")
        # A session goes on with its path, also beside a group that matches as well; a new one is refused.
        with service(f"{above}/profd-test-shop-db.service"):
            equal(told(daemon, "web")["target"], f"cgroup {shop}", "what it records beside another match")
            ended(profctl("start", "two", "-e", "cpu-clock", "-u", glob, socket=daemon.control()), 2,
                  f"'profd-test-shop-\\*.service' matches several .*-shop-(web|db).service' or '.*-shop-(web|db).service'")
        started(daemon, "-u", "profd-test-nosuch-*", status=5, says=r"'profd-test-nosuch-\*' has no control group")
        equal(daemon.stop(), 0, "status")
        found = {s.pid for s in recording.samples(daemon.segments("web"))}
        check(found and found <= pids, f"samples of {found}, the service is {pids}")


@test
def an_ambiguous_or_missing_unit_is_refused_with_similar_names():
    unit, other = "profd-test-unit.service", "profd-test-other.slice"
    with scratch() as folder, no_group_left(), Daemon(folder, config=session()) as daemon, \
            service(f"profd-test-one.slice/{unit}"), service(f"{other}/{unit}"):
        started(daemon, "-u", unit, status=2,
                says=f"'{unit}' matches several control groups\\. Did you mean '/.*/{unit}' or '/.*/{unit}'\\? Use --cgroup")
        started(daemon, "-u", "profd-test-uint", status=5,
                says=f"unit 'profd-test-uint' has no control group\\. Did you mean '{unit}'\\?")
        started(daemon, "-u", "nothing-like-it", status=5, says=r"'nothing-like-it' has no control group\.$")
        started(daemon, "--cgroup=profd-test-ohter.slice", status=5,
                says=f"control group 'profd-test-ohter.slice' does not exist\\. Did you mean '/{other}'")
        started(daemon, f"--cgroup={unit}", "-u", unit, status=2, says="Invalid --unit: it excludes a control group")
        with Varlink(daemon.control()) as v:
            equal([s["session"]["name"] for s in v.call("ListSessions")], ["default"], "sessions")
        started(daemon, f"--cgroup=/{other}/{unit}")
    for path in ("profd-test-one.slice", other):
        with contextlib.suppress(OSError):
            os.rmdir(folder_of(path))


if __name__ == "__main__":
    main()
