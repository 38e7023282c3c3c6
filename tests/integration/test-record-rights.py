#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rights of each process: the keeper keeps the few capabilities that it needs, the recorder has none and is
refused what would give it others' memory; without rights profd says what is missing."""

import contextlib
import errno
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recording  # noqa: E402
from container import (IN_USER_NAMESPACE, knows_the_number, without_capabilities,  # noqa: E402
                       without_perf_events)
from daemon import PROFD, Daemon, children, is_sanitized, session, status_of, with_groups  # noqa: E402
from varlink import Varlink  # noqa: E402
from profctl import PROFCTL, as_json  # noqa: E402
from workload import need_root, program, scratch, spinning, wait_until  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

KEEPER_TOOL = build_path("tests", "integration", "keeper-tool")
CONFIG = session(Frequency=999)
NAMES = {"chown": 0, "dac_read_search": 2, "kill": 5, "setgid": 6, "setuid": 7, "sys_ptrace": 19, "sys_admin": 21,
         "syslog": 34, "perfmon": 38}
IPC_LOCK = 14
USER, NOBODY = 64990, 65534
GROUPS = {"profd": USER, "profd-read": 64992, "profd-admin": 64993}
OPENERS = ("sys_admin", "sys_ptrace", "dac_read_search", "syslog")
HELPERS = {"profd-opener": OPENERS, "profd-images": OPENERS, "profd-maps": ("sys_ptrace",),
           "profd-sealer": ("chown", "setuid"), "profd-elf": ()}
KEEPERS = sum(1 << bit for bit in NAMES.values())
UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
                "--inh-caps=-all"]


def capabilities(pid, kind):
    return int(status_of(pid, kind), 16)


def memory_is_limited(pid):
    """Where nothing lifts the limit of locked memory, rings need a capability."""
    with open(f"/proc/{pid}/limits", encoding="ascii") as f:
        limits = next(line for line in f if line.startswith("Max locked memory")).split()
    return limits[4] != "unlimited"


def has_user():
    try:
        pwd.getpwnam("profd")
        return True
    except KeyError:
        return False


@test
def the_recorder_has_no_capability_and_cannot_get_any():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        recorder = daemon.recorder()
        check(recorder is not None, "there is no recorder")
        for task in os.listdir(f"/proc/{recorder}/task"):
            for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                equal(capabilities(f"{recorder}/task/{task}", kind), 0, f"{kind} of thread {task}")
            equal(status_of(f"{recorder}/task/{task}", "NoNewPrivs"), "1", "NoNewPrivs")
            equal(status_of(f"{recorder}/task/{task}", "Seccomp"), "2", "Seccomp")
        if has_user():
            equal(set(status_of(recorder, "Uid").split()), {str(pwd.getpwnam("profd").pw_uid)}, "uids")


@test
def the_keeper_has_only_the_capabilities_that_it_needs():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        allowed = KEEPERS | (1 << IPC_LOCK if memory_is_limited(daemon.process.pid) else 0)
        for kind in ("CapPrm", "CapEff", "CapBnd"):
            beyond = capabilities(daemon.process.pid, kind) & ~allowed
            equal(beyond, 0, f"bits of {kind} beyond its own")


def helpers_of(daemon):
    """name -> pid."""
    def found():
        pids = {status_of(pid, "Name"): pid for pid in children(daemon.process.pid)}
        # One that has just begun is still as its parent was.
        return pids if all(status_of(pids.get(name), "CapEff") for name in HELPERS) else None
    return wait_until(found, 30, f"helpers {list(HELPERS)}")


@test
def each_helper_has_only_the_capabilities_that_it_needs():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        pids = helpers_of(daemon)
        for name, allowed in HELPERS.items():
            mask = sum(1 << NAMES[capability] for capability in allowed)
            for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                wait_until(lambda: capabilities(pids[name], kind) & ~mask == 0, 10,
                           f"{name} to have nothing beyond {allowed} in {kind}")
            equal(status_of(pids[name], "Seccomp"), "2", f"Seccomp of {name}")


def killed_first(pid, keeper):
    """How much sooner than the keeper the kernel takes a process when memory runs out."""
    scores = []
    for each in (pid, keeper):
        with open(f"/proc/{each}/oom_score_adj", encoding="ascii") as f:
            scores.append(int(f.read()))
    return scores[0] - scores[1]


@test
def the_kernel_takes_the_keeper_last_when_memory_runs_out():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        pids = helpers_of(daemon)
        for name, pid in {"recorder": daemon.recorder(), **{name: pids[name] for name in HELPERS}}.items():
            wait_until(lambda pid=pid: killed_first(pid, daemon.process.pid) > 0, 10,
                       f"{name} to be killed sooner than the keeper, which has the rings")


def refusals(pid):
    """The calls that the filter of a process refuses: the name of a call -> its errno."""
    done = subprocess.run([program("probe"), str(pid)], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        skip("the probe does not know this machine's registers")
    equal(done.returncode, 0, f"status of the probe ({done.stderr})")
    check("killed" not in done.stdout, f"the probe killed it: {done.stdout}")
    said = dict(line.split() for line in done.stdout.splitlines() if " " in line)
    equal(said.pop("getppid", None), "0", "what is allowed")
    if is_sanitized():
        del said["ptrace"]
    return said


def half(daemon, name):
    return daemon.recorder() if name == "recorder" else daemon.process.pid


@test
def keeper_and_recorder_cannot_use_other_processes_memory_namespaces_or_the_network():
    need_root()
    others = {"process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp"} | \
        (set() if is_sanitized() else {"ptrace"})
    namespaces = {"clone-user", "clone-mount", "unshare", "setns"}
    sockets = {f"socket-{name}" for name in ("inet", "inet6", "packet", "alg", "vsock", "route", "none")}
    for name in ("recorder", "keeper"):
        with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
            said = refusals(half(daemon, name))
            # The C library takes clone() where there is no clone3().
            equal(said.pop("clone3"), str(errno.ENOSYS), f"errno of clone3() in the {name}")
            equal(set(said), others | namespaces | sockets, "probes")
            equal({k: v for k, v in said.items() if v != str(errno.EPERM)}, {}, f"what the {name} was not refused")
            equal(daemon.stop(), 0, f"status after the {name} was probed")


@test
def recordings_belong_to_root_and_are_not_readable_for_all():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        time.sleep(1)
        equal(daemon.stop(), 0, "status")
        for path in daemon.segments():
            st = os.stat(path)
            equal((st.st_uid, st.st_mode & 0o777), (0, 0o640), f"owner and mode of {path}")
        equal(os.stat(daemon.store).st_mode & 0o007, 0, "what others may in the store")


def owners(paths):
    return {(os.stat(path).st_uid, os.stat(path).st_gid) for path in paths}


@test
def a_segment_finished_without_the_keeper_is_sealed_at_the_next_start():
    need_root()
    with scratch() as folder:
        with Daemon(folder, config=CONFIG, groups=GROUPS, profd_user=USER) as daemon:
            recorder = daemon.recorder()
            equal(status_of(recorder, "Uid").split(), [str(USER)] * 4, "uids of the recorder")
            sealers = [pid for pid in children(daemon.process.pid) if status_of(pid, "Name") == "profd-sealer"]
            for pid in (*sealers, daemon.process.pid):
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: status_of(recorder, "State") is None, 30, "the recorder to end")
            left = daemon.segments()
            check(USER in {uid for uid, _ in owners(left)}, f"it was sealed: {owners(left)}")
        with Daemon(folder, config=CONFIG, groups=GROUPS, profd_user=USER) as daemon:
            left += [path.replace(".perf.data", ".json") for path in left]
            wait_until(lambda: owners(left) == {(0, GROUPS["profd-read"])}, 30, f"{left} to be sealed")
            # Root's perf takes recordings of root's, and those alone.
            done = subprocess.run(["perf", "report", "--stdio", "-i", left[0]], capture_output=True, text=True, errors="replace", check=False)
            equal(done.returncode, 0, f"status of perf ({done.stderr})")
            equal(daemon.stop(), 0, "status")


def copy_of_sleep(path, mode, owner=0):
    shutil.copy("/bin/sleep", path)
    os.chown(path, owner, owner)
    os.chmod(path, mode)
    return path


def text_of(pid, path):
    """Where a process has mapped the code of a file, as START END, once it has."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        found = [line.split()[0] for line in f if " r-xp " in line and line.rstrip().endswith(path)]
    return found[0].replace("-", " ") if found else None


@contextlib.contextmanager
def sleeping(path, **popen):
    process = subprocess.Popen([path, "600"], **popen)
    try:
        yield process.pid, wait_until(lambda: text_of(process.pid, path), 10, f"{path} to be mapped")
    finally:
        process.kill()
        process.wait()


def answers_to_a_recorder(folder, wanted):
    """What the keeper answers to a recorder that asks for these files: 0 or a negative errno of each."""
    for name, text in (("mode", "images"), ("images", "".join(line + "\n" for line in wanted))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(f.name, 0o644)
    log = os.path.join(folder, "log")
    keeper = subprocess.Popen([*with_groups(folder, GROUPS, USER), KEEPER_TOOL, folder], stdin=subprocess.DEVNULL)

    def said():
        try:
            with open(log, encoding="utf-8") as f:
                lines = [line.rstrip("\n").split(" ", 1)[1] for line in f]
        except FileNotFoundError:
            return None
        return lines if "ready 0" in lines else None
    try:
        lines = wait_until(said, 30, "the recorder to be answered")
    finally:
        keeper.terminate()
        keeper.wait(timeout=60)
    return {line.split(" for ", 1)[1]: int(line.split(" ", 1)[0]) for line in lines if " for " in line}


@test
def a_recorder_with_forged_paths_gets_no_file_that_its_user_may_not_read():
    need_root()
    with scratch() as folder:
        os.chmod(folder, 0o733)
        closed = os.path.join(folder, "closed")
        os.mkdir(closed, 0o700)
        public = copy_of_sleep(os.path.join(folder, "public"), 0o755)
        secret = copy_of_sleep(os.path.join(folder, "secret"), 0o640)
        private = copy_of_sleep(os.path.join(closed, "private"), 0o755, NOBODY)
        os.chown(closed, NOBODY, NOBODY)
        # Root runs it whoever else may not, once it is executable at all.
        os.chmod(secret, 0o740)
        with sleeping(secret) as (of_root, secret_text), \
                sleeping(private, user=NOBODY, group=NOBODY, extra_groups=[]) as (of_nobody, private_text):
            os.chmod(secret, 0o640)
            wanted = {f"path 0 {public}": 0,
                      f"path 0 {secret}": -errno.EACCES,
                      f"path 0 {private}": -errno.EACCES,
                      # Nor by way of a process whose root it may not look at.
                      f"path {of_root} {secret}": -errno.EACCES,
                      f"path {of_root} {public}": -errno.EACCES,
                      f"path {of_nobody} {private}": -errno.EACCES,
                      # What runs is recorded, and so is which file it is.
                      f"mapped {of_root} {secret_text}": 0,
                      f"mapped {of_nobody} {private_text}": 0,
                      f"mapped {of_nobody} 1000 2000": -errno.ENOENT}
            equal(answers_to_a_recorder(folder, wanted), wanted, "answers")


def may_read(path, *groups):
    """Whether a user in these groups alone reads a file, and enters each folder above it."""
    done = subprocess.run(["head", "-c", "8", path], user=NOBODY, group=NOBODY, extra_groups=[GROUPS[g] for g in groups],
                          capture_output=True, check=False)
    return done.returncode == 0 and len(done.stdout) == 8


@test
def members_of_profd_admin_read_all_and_those_of_profd_read_what_is_not_sensitive():
    need_root()
    sessions = CONFIG + session("stacks", Frequency=99, CallGraph="dwarf")
    for config, store in (("", "store"), ("[Profd]\nStorage=volatile\n", "run/store")):
        with scratch() as folder, Daemon(folder, config=config + sessions, groups=GROUPS, profd_user=USER) as daemon:
            daemon.store = os.path.join(folder, store)
            time.sleep(1)
            with Varlink(daemon.control()) as v:
                paths = {name: v.one("Snapshot", session=name)["snapshot"]["path"] for name in ("default", "stacks")}
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
            for name, sensitive in (("default", False), ("stacks", True)):
                segment = daemon.segments(name)[0]
                for path in (paths[name], segment, segment.replace(".perf.data", ".json")):
                    equal(os.stat(path).st_mode & 0o777, 0o640, f"mode of {path}")
                    equal([may_read(path), may_read(path, "profd-read"), may_read(path, "profd-admin")],
                          [False, not sensitive, True], f"who reads {path}: others, profd-read, profd-admin")


@test
def the_unprivileged_recorder_records_kernel_and_user_samples():
    need_root()
    with scratch() as folder, spinning(nice=0), Daemon(folder, config=CONFIG) as daemon:
        subprocess.run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=20000"], check=True, stderr=subprocess.DEVNULL)
        equal(daemon.stop(), 0, "status")
        rows = recording.rows(daemon.segments())
        kernel = [r for r in rows if r.dso == "[kernel.kallsyms]" and r.sym != "[unknown]"]
        check(len(kernel) > 20, f"only {len(kernel)} samples of the kernel have a symbol, of {len(rows)}")
        check(sum(r.sym in recording.COMMS for r in rows) > 100, "too few samples of the load")


@test
def without_rights_the_missing_ones_are_named():
    need_root()
    with scratch() as folder:
        os.chmod(folder, 0o777)
        process = subprocess.Popen([*UNPRIVILEGED, PROFD, f"--store={folder}/store", "--config=/dev/null"],
                                   stderr=subprocess.PIPE, text=True)
        try:
            # The first line, whether it goes on then or not.
            words = process.stderr.readline()
        finally:
            process.terminate()
            process.communicate(timeout=60)
        check("CAP_" in words and "perf_event_paranoid" in words, f"it says '{words}'")
        check("root" in words.lower() or "CAP_PERFMON" in words or "CAP_SYS_ADMIN" in words, f"no remedy: '{words}'")


def what_profd_says(*before):
    """Its log and status where it runs behind these words, until it records or ends."""
    with scratch() as folder:
        process = subprocess.Popen([*before, PROFD, f"--store={folder}/store", f"--runtime={folder}/run",
                                    "--config=/dev/null"], stderr=subprocess.PIPE, text=True)
        words = ""
        try:
            for line in process.stderr:
                words += line
                if line.startswith("Recording "):
                    process.terminate()
                    break
            process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait(timeout=60)
    return words, process.returncode


def what_doctor_says(*before):
    """Its checks that are not ok, by name."""
    done = subprocess.run([*before, PROFCTL, "doctor", "--json=short", "--socket=/nowhere"],
                          capture_output=True, text=True, timeout=60, check=False)
    rows = as_json(done, "doctor", 7)["checks"]
    return {row["check"]: (row["text"], row["remedy"] or "") for row in rows if row["state"] != "ok"}


@test
def a_seccomp_filter_of_a_container_is_reported_by_profd_and_doctor():
    need_root()
    if not knows_the_number():
        skip("the number of perf_event_open is not known for this machine")
    for error in (errno.EPERM, errno.ENOSYS):
        before = without_perf_events(error)
        words, status = what_profd_says(*before)
        equal(status, 1, "status of profd")
        check("seccomp filter" in words and "run profd on the host" in words, f"it says '{words}'")
        text, remedy = what_doctor_says(*before)["events"]
        check("seccomp" in text and "pass perf_event_open" in remedy, f"doctor: {text} -> {remedy}")


def need_rights_to_record_all():
    need_root()
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        if int(f.read()) < 1:
            skip("kernel.perf_event_paranoid lets everybody record whole CPUs")


@test
def missing_capabilities_of_a_container_are_named():
    need_rights_to_record_all()
    before = without_capabilities("perfmon", "sys_admin", "syslog")
    words, _ = what_profd_says(*before)
    check("without CAP_SYS_ADMIN, CAP_PERFMON, CAP_SYSLOG" in words, f"it says '{words}'")
    check("container" in words, f"no remedy: '{words}'")
    text, remedy = what_doctor_says(*before)["rights"]
    check("CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYSLOG" in text and "container" in remedy,
          f"doctor: {text} -> {remedy}")


@test
def root_of_a_user_namespace_is_told_about_the_namespace():
    need_rights_to_record_all()
    if subprocess.run([*IN_USER_NAMESPACE, "true"], capture_output=True, check=False).returncode != 0:
        skip("no user namespaces here")
    words, _ = what_profd_says(*IN_USER_NAMESPACE)
    check("user namespace" in words, f"it says '{words}'")
    text, remedy = what_doctor_says(*IN_USER_NAMESPACE)["rights"]
    check("user namespace" in text and "on the host" in remedy, f"doctor: {text} -> {remedy}")


if __name__ == "__main__":
    main()
