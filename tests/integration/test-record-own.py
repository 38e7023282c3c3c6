#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd of a user who may not record whole CPUs: his own processes are recorded, those that run,
those that they start and those that come from elsewhere, each once, and nobody else's. Where the
kernel lets him record nothing at all, profd says so and ends. Which of these it is, the machine's
kernel.perf_event_paranoid decides, which other tests rely on and is left as it is."""

import collections
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from daemon import PROFD, Daemon, children, session, status_of  # noqa: E402
from workload import load, need_root, now_ns, program, scratch, wait_until  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

HZ = 499
USER, OTHER = 64541, 64542  # of no account
CONFIG = "[Profd]\nFlushIntervalSec=1s\n" + session(Frequency=HZ, RotateIntervalSec=0)
TURN = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done"
WORK = f"while :; do ({TURN}); done"


def user(uid=USER):
    return {"user": uid, "group": uid, "extra_groups": []}


def paranoid():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        return int(f.read())


@contextlib.contextmanager
def place():
    """A folder of the user's."""
    need_root()
    with scratch() as folder:
        os.chown(folder, USER, USER)
        yield folder


def need_own():
    if paranoid() < 1:
        skip("kernel.perf_event_paranoid lets everybody record whole CPUs")
    if paranoid() > 2:
        skip("kernel.perf_event_paranoid lets nobody record his own processes")


@contextlib.contextmanager
def recorded(folder, *arguments, **settings):
    with Daemon(folder, "--log-level=debug", *arguments, config=settings.pop("config", CONFIG),
                **user(), **settings) as daemon:
        yield daemon


@contextlib.contextmanager
def running(command, uid):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True,
                               **user(uid))
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)


def comm_of(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as f:
        return f.read().strip()


def finished(daemon):
    """The segments, as perf reads them for root too."""
    equal(daemon.stop(), 0, "status")
    paths = daemon.segments()
    check(paths, "there are no segments")
    for path in paths:
        os.chown(path, 0, 0)
    return paths


def sampled(daemon, parent, since_ns=0):
    """Until the process or a child of it was sampled; what is written already can be read."""
    def is_there():
        pids = {parent, *children(parent)}
        return any(s.pid in pids and s.time > since_ns
                   for path in [*daemon.segments(), *daemon.open_segments()] for s in readable(path))
    wait_until(is_there, 60, f"samples of process {parent}")


def readable(path):
    done = subprocess.run([recording.PROFCTL, "dump", "--json=short", "-t", "SAMPLE", path],
                          capture_output=True, text=True, check=False)
    return [recording.Sample(r["cpu"], r["time"], r["event"], r["pid"], r["tid"], int(r["ip"], 16))
            for r in map(recording.json.loads, done.stdout.splitlines())]


def check_once(samples):
    """A CPU runs one thread at a time: twice the events would be twice the samples."""
    by_cpu = collections.defaultdict(list)
    for s in samples:
        by_cpu[s.cpu].append(s.time)
    for cpu, times in by_cpu.items():
        windows = collections.Counter(t // 10**8 for t in times)
        many = max(windows.values())
        check(many <= HZ / 10 * 1.4 + 3, f"{many} samples of CPU {cpu} in 100 ms at {HZ} Hz")


@test
def each_process_of_the_user_is_recorded_once_and_no_others_are():
    need_own()
    with place() as folder, load("spin", 0, **user()) as before, running(["sh", "-c", WORK], USER) as forks, \
            running(["sh", "-c", "while :; do :; done"], OTHER) as other:
        with recorded(folder) as daemon:
            sampled(daemon, before.pid)
            sampled(daemon, forks.pid)
            with load("spin", 0, **user()) as later:
                sampled(daemon, later.pid)
                spins = {before: children(before.pid), later: children(later.pid)}
            paths = finished(daemon)
            log = daemon.log()
        rows, samples = recording.rows(paths), recording.samples(paths)
        recording.check_clean(paths)
    recording.check_names(rows, at_least=50)
    for pids in spins.values():
        names = {(r.comm, os.path.basename(r.dso)) for r in rows if r.pid in pids}
        check(("spin", "spin") in names and {comm for comm, _ in names} == {"spin"}, f"a load is {names}")
    shells = {r.pid for r in rows if r.comm == "sh"} - {forks.pid}
    check(len(shells) > 1, f"only {len(shells)} of the children that were forked later were sampled")
    equal([r for r in rows if r.pid in (0, other.pid, os.getpid())][:3], [], "samples of others")
    names = {r.comm for r in rows if not r.comm.startswith("profd")}
    equal(names - {"sh", "spin"}, set(), "other names")
    check_once(samples)
    check("(ownProcesses)" in log, f"it does not say that it is degraded: {log[-2000:]}")
    equal("(noKernel)" in log, paranoid() == 2, "whether it says that the kernel is left out")
    check("Cannot" not in log, f"it complains: {log[-2000:]}")


@test
def a_program_that_gains_rights_is_no_longer_followed():
    need_own()
    with place() as folder, load("spin", 0, **user()) as before:
        privileged, begin = f"{folder}/privileged", f"{folder}/begin"
        shutil.copy(program("spin"), privileged)
        os.chown(privileged, 0, 0)
        os.chmod(privileged, 0o4755)
        with running(["sh", "-c", f"while ! [ -e {begin} ]; do {TURN}; done; exec {privileged} 0 >{folder}/said"], USER) as becomes:
            with recorded(folder) as daemon:
                sampled(daemon, becomes.pid)
                with open(begin, "wb"):
                    pass
                wait_until(lambda: comm_of(becomes.pid) == "privileged", 60, "the shell to become another")
                if status_of(becomes.pid, "Uid").split()[1] != "0":
                    skip("needs root's rights for a program in the temporary folder, which is mounted nosuid")
                sampled(daemon, before.pid, now_ns())
                rows = recording.rows(finished(daemon))
        check(any(r.pid == becomes.pid and r.comm == "sh" for r in rows), "the shell was not sampled")
        equal([r for r in rows if r.comm == "privileged"][:3], [], "samples of what has root's rights")


@test
def after_a_kill_the_next_recorder_follows_the_same_processes():
    need_own()
    with place() as folder, load("spin", 0, **user()) as before, running(["sh", "-c", WORK], USER) as forks:
        with recorded(folder) as daemon:
            sampled(daemon, before.pid)
            sampled(daemon, forks.pid)
            mark = daemon.mark()
            killed = daemon.recorder()
            os.kill(killed, signal.SIGKILL)
            daemon.wait_for_log("Recording ", begin=mark)
            sampled(daemon, before.pid, now_ns())
            sampled(daemon, forks.pid, now_ns())
            paths = finished(daemon)
        rows, samples = recording.rows(paths), recording.samples(paths)
    equal(recording.twice(samples), [], "samples that are there twice")
    check_once(samples)
    # Nobody is left who could tell of the one that was killed.
    recording.check_names([r for r in rows if r.pid != killed], at_least=50)


@test
def a_reload_tries_new_events_on_processes_of_the_user():
    need_own()
    with place() as folder, load("spin", 0, **user()) as before:
        with recorded(folder) as daemon:
            for event, answer in (("cycels", "The configuration has 1 problem, keeping the old one"),
                                  ("task-clock", "Reloaded the configuration")):
                mark = daemon.mark()
                daemon.configure(CONFIG + session("more", Event=event, Frequency=99))
                daemon.send(signal.SIGHUP)
                daemon.wait_for_log(answer, begin=mark)
            # It was not checked by opening it for a whole CPU, which this user may not do.
            check("Not checked" not in daemon.log(), daemon.log()[-2000:])
            daemon.wait_for_log("Recording task-clock.* 'more'|Recording task-clock.*/more/", begin=mark)
            sampled(daemon, before.pid, now_ns())
            equal(daemon.stop(), 0, "status")


@test
def folders_of_the_user_are_the_default():
    need_own()
    with place() as folder:
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_RUNTIME_DIR": f"{folder}/run"}
        os.mkdir(f"{folder}/run")
        os.chown(f"{folder}/run", USER, USER)
        with open(f"{folder}/log", "wb") as log, load("spin", 0, **user()):
            process = subprocess.Popen([PROFD, "--config=/dev/null"], stderr=log, env=environment, **user())
            try:
                wait_until(lambda: "Recording " in open(f"{folder}/log", encoding="utf-8").read()
                           or process.poll() is not None, 30, "profd to record")
                process.send_signal(signal.SIGTERM)
                equal(process.wait(timeout=60), 0, "status")
            finally:
                process.kill()
                process.wait(timeout=30)
        kept = os.listdir(f"{folder}/.local/state/profd/sessions/default")
        check(any(name.endswith(".perf.data") for name in kept), f"there is {kept}")
        check(os.path.isdir(f"{folder}/run/profd"), "there is no folder for what goes with the system")


@test
def too_few_descriptors_are_reported_with_their_number():
    need_own()
    with place() as folder, contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(running(["sleep", "1000"], USER))
        limit = 400 + 8 * (os.cpu_count() or 1)
        Limited = ["prlimit", f"--nofile={limit}:{limit}"]
        said = f"{folder}/log"
        with open(f"{folder}/profd.conf", "w", encoding="utf-8") as f:
            f.write(CONFIG)
        with open(said, "wb") as log:
            process = subprocess.Popen([*Limited, PROFD, f"--store={folder}/store", f"--config={folder}/profd.conf"],
                                       stderr=log, **user())
        try:
            wait_until(lambda: "Recording " in open(said, encoding="utf-8").read()
                       or process.poll() is not None, 30, "profd to record")
            process.send_signal(signal.SIGTERM)
            equal(process.wait(timeout=60), 0, "status")
        finally:
            process.kill()
            process.wait(timeout=30)
        words = open(said, encoding="utf-8").read()
        check(f"{limit} file descriptors" in words and "ulimit -n" in words, f"it says '{words}'")


@test
def missing_permission_to_record_is_explained():
    if paranoid() <= 2:
        skip("kernel.perf_event_paranoid lets users record something")
    with place() as folder:
        done = subprocess.run([PROFD, f"--store={folder}/store", "--config=/dev/null"], capture_output=True,
                              text=True, timeout=60, check=False, **user())
        equal(done.returncode, 1, "status")
        check(f"perf_event_paranoid is {paranoid()}" in done.stderr, f"it says '{done.stderr}'")
        check("start profd as root" in done.stderr, f"no remedy: '{done.stderr}'")


def others_reach(path):
    """Whether each folder above lets everybody through."""
    while path != "/":
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & 1:
            return False
    return True


def run_where_others_reach():
    """The same tests, with the build bound to a folder that the users of the tests can reach: a tree
    below /root is closed to them. Only these tests see that folder."""
    with tempfile.TemporaryDirectory(prefix="profd-build.") as folder:
        os.chmod(folder, 0o755)
        bind = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                'mount --bind "$PROFD_BUILD" "$0" && PROFD_BUILD=$0 exec "$@"', folder]
        return subprocess.run([*bind, sys.executable, *sys.argv], check=False).returncode


if __name__ == "__main__":
    if os.geteuid() == 0 and not others_reach(os.path.realpath(os.environ["PROFD_BUILD"])):
        sys.exit(run_where_others_reach())
    main()
