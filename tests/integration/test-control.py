#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The control socket of a real profd: it outlives recorders, each user gets what is his, and
clients that mean harm cost others nothing and the recording no sample."""

import contextlib
import os
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import PROFD, Daemon, is_sanitized, session, status_of  # noqa: E402
from workload import LONG, need_root, scratch, spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402
from varlink import Fault, Gone, Varlink  # noqa: E402

CONFIG = session(Frequency=99)
USER, READERS, ADMINS = 64321, 64322, 64323


def socket_of(daemon):
    return os.path.join(daemon.folder, "run", "io.profd.Control")


def ping(path, user=None):
    with Varlink(path, user=user) as client:
        equal(client.one("Ping"), {}, "answer")


@test
def any_user_reaches_the_socket():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        path = socket_of(daemon)
        equal(stat.S_IMODE(os.stat(path).st_mode), 0o666, "mode of the socket")
        equal(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o755, "mode of its folder")
        ping(path, (1001, 1001, []))
        equal(daemon.stop(), 0, "status of profd")


@test
def connections_wait_during_the_replacement_of_a_recorder():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        pid = daemon.recorder()
        os.kill(pid, signal.SIGKILL)
        ping(socket_of(daemon))
        check(daemon.recorder() != pid, "the recorder is the same")
        mark = daemon.mark()
        daemon.send(signal.SIGUSR1)
        daemon.wait_for_log("Recording ", mark)
        ping(socket_of(daemon))
        equal(daemon.stop(), 0, "status of profd")


@test
def a_second_profd_leaves_the_socket_to_the_first():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        second = subprocess.run([PROFD, f"--store={folder}/other", f"--runtime={folder}/run",
                                 f"--config={daemon.config_path}"], capture_output=True, text=True,
                                timeout=60, check=False)
        equal(second.returncode, 1, "status")
        check("Another profd listens on" in second.stderr and "--runtime" in second.stderr,
              second.stderr)
        ping(socket_of(daemon))


@test
def a_socket_that_was_left_behind_is_replaced():
    need_root()
    with scratch() as folder:
        with Daemon(folder, config=CONFIG) as daemon:
            daemon.kill()
            check(os.path.exists(socket_of(daemon)), "nothing was left behind")
        with Daemon(folder, config=CONFIG) as daemon:
            ping(socket_of(daemon))


@test
def a_folder_with_a_path_of_any_length_works():
    need_root()
    with scratch() as folder:
        below = os.path.join(folder, "x" * 120)
        os.mkdir(below)
        with Daemon(below, config=CONFIG) as daemon:
            link = os.path.join(folder, "short")
            os.symlink(os.path.join(below, "run"), link)
            ping(os.path.join(link, "io.profd.Control"))
            equal(daemon.stop(), 0, "status of profd")


def installed(folder):
    """A program that runs profd where the user and groups exist that an installation makes."""
    lines = {"passwd": f"profd:x:{USER}:{USER}::/:/usr/sbin/nologin\n",
             "group": f"profd:x:{USER}:\nprofd-read:x:{READERS}:\nprofd-admin:x:{ADMINS}:\n"}
    mounts = []
    for name, more in lines.items():
        with open(f"/etc/{name}", encoding="utf-8") as f:
            kept = [line for line in f if not line.startswith("profd")]
        with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
            f.write("".join(kept) + more)
        mounts.append(f"mount --bind {folder}/{name} /etc/{name}")
    path = os.path.join(folder, "profd-installed")
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nexec unshare --mount --propagation private sh -c "
                f"'{' && '.join(mounts)} && exec {PROFD} \"$@\"' profd \"$@\"\n")
    os.chmod(path, 0o755)
    return path


@test
def as_installed_any_user_reaches_the_unprivileged_recorder():
    need_root()
    with scratch() as folder:
        program = installed(folder)
        for _ in range(2):
            with Daemon(folder, config=CONFIG, executable=program) as daemon:
                equal(status_of(daemon.recorder(), "Uid").split()[0], str(USER), "its user")
                ping(socket_of(daemon), (1001, 1001, []))
                ping(socket_of(daemon), (USER, USER, []))
                equal(daemon.stop(), 0, "status of profd")


CALL = b'{"method":"io.profd.Control.Ping"}\0'
MIB = 1 << 20


def streamed(method):
    return b'{"method":"io.profd.Control.%s","more":true}\0' % method


def flood(data):
    """The same for ever, and nothing is read."""
    def harm(s):
        while True:
            s.sendall(data)
    return harm


def slow(s):
    for byte in CALL:
        s.sendall(bytes([byte]))
        time.sleep(0.05)


def half_closed(s):
    s.sendall(CALL * 1000)
    s.shutdown(socket.SHUT_WR)
    time.sleep(0.5)


def busy(s):
    while True:
        s.sendall(CALL)
        s.recv(65536)


def deaf(s):
    s.sendall(streamed(b"Monitor"))
    time.sleep(2)


# Readers can do more harm than strangers. Each is a user, with so many connections at a time.
HARM = [
    (False, 1, lambda s: None),
    (False, 2, flood(CALL * 100)),
    (False, 2, lambda s: s.sendall(b'{"method":"io.profd.Control.Ping","parameters":{"a":[' + b"1," * 16000 + b"1]}}\0")),
    (False, 2, lambda s: s.sendall(b"[" * 10000 + b"\0" + b" " * (2 << 20))),
    (False, 2, busy),
    (False, 1, slow),
    (False, 2, half_closed),
    (True, 4, lambda s: s.sendall(b" " * (MIB + 1) + b"\0")),
    (True, 4, flood(b'{"method":"io.profd.Control.Ping","parameters":{"a":"' + b"x" * (MIB - 100) + b'"}}\0')),
    (True, 4, flood(streamed(b"ListSegments"))),
    (True, 4, flood(b'{"method":"io.profd.Control.GetMetrics"}\0' * 100)),
    (True, 4, deaf),
]
# A message of a client and what waits for it take a MiB each at most, and samples that wait for the disk 32.
MORE_KIB = (sum(connections for _, connections, _ in HARM) * 2 + 32) * 1024


def harm_for_ever(path, harm):
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.settimeout(1)
            harm(s)


def attack(path, number):
    """A process that does harm until it is killed."""
    may_read, connections, harm = HARM[number]
    pid = os.fork()
    if pid:
        return pid
    os.setgroups([READERS] if may_read else [])
    os.setresgid(1001, 1001, 1001)
    os.setresuid(1001 + number, 1001 + number, 1001 + number)
    for _ in range(connections - 1):
        threading.Thread(target=harm_for_ever, args=(path, harm), daemon=True).start()
    harm_for_ever(path, harm)
    return 0


@contextlib.contextmanager
def echo():
    """A server that nobody attacks and that does nothing: what a call takes on this machine."""
    here, there = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        while data := there.recv(1):
            there.sendall(data)
        os._exit(0)
    try:
        yield lambda: (here.sendall(b"x"), here.recv(1))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def timed(call):
    at = time.monotonic()
    call()
    return time.monotonic() - at


def percentiles(times):
    times.sort()
    return f"median {times[len(times) // 2] * 1e3:.1f} ms, 99 % below {times[len(times) * 99 // 100] * 1e3:.1f} ms"


# meson has malloc() write to all that it gives, so that memory which nobody uses counts too.
os.environ.pop("MALLOC_PERTURB_", None)


def peak_kib(daemon):
    return int(status_of(daemon.recorder(), "VmHWM").split()[0])


@test
def hostile_clients_cost_no_sample():
    need_root()
    groups = {"profd-read": READERS, "profd-admin": ADMINS}
    with scratch() as folder, Daemon(folder, config=session(Frequency=999), groups=groups) as daemon:
        path = socket_of(daemon)
        seconds, times, echoes = 20 if LONG else 3, [], []
        before = peak_kib(daemon)
        with spinning(), Varlink(path) as client, echo() as call_echo:
            attackers = [attack(path, number) for number in range(len(HARM))]
            held = [Varlink(path) for _ in range(1000)]
            begin = time.monotonic()
            while time.monotonic() - begin < seconds:
                times.append(timed(lambda: equal(client.one("Ping"), {}, "answer")))
                echoes.append(timed(call_echo))
                time.sleep(0.005)
            for pid in attackers:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            for other in held:
                other.close()
        print(f"# {len(times)} calls under attack: {percentiles(times)}; of an echo beside it: {percentiles(echoes)}")
        peak = peak_kib(daemon)
        print(f"# the recorder had at most {before} KiB before the attack, {peak} KiB in it")
        check(peak < before + MORE_KIB or is_sanitized(), f"the recorder had {before} KiB, then {peak} KiB")
        wait_until(lambda: connects(path), 30, "room for another connection")
        equal(daemon.stop(), 0, "status of profd")
        counts = re.findall(r"(\d+) samples, (none|\d+) lost", daemon.log())
        check(counts and sum(int(n) for n, _ in counts) > 999 * seconds // 2, f"{counts}")
        equal([lost for _, lost in counts if lost != "none"], [], "lost samples")
        for words in ("There is no room for another connection of user", "sent a message that is no call"):
            check(words in daemon.log(), f"the log has no '{words}'")


def blocked_sender():
    """A socket with more to send than is read, and what keeps it so."""
    listening = socket.create_server(("127.0.0.1", 0))
    sending = socket.create_connection(listening.getsockname())
    reading = listening.accept()[0]
    sending.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sending.send(bytes(65536))
    return sending, (listening, reading)


@test
def a_descriptor_that_takes_for_ever_to_close_does_not_stop_profd():
    """A kernel since 6.16 lets profd refuse it; otherwise a helper of profd gets it."""
    with scratch() as folder, Daemon(folder) as daemon:
        sending, others = blocked_sender()
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(socket_of(daemon))
            try:
                sending.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
                socket.send_fds(s, [CALL], [sending.fileno()])
            except PermissionError:
                print("# the kernel refuses it")
                sending.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
            # The last one that is open is on its way to profd.
            sending.close()
            ping(socket_of(daemon))
        equal(daemon.stop(), 0, "status of profd")
        for other in others:
            other.close()


def connects(path):
    """Whether there is room for one more."""
    try:
        ping(path)
    except (Fault, Gone, BrokenPipeError):
        return False
    return True


if __name__ == "__main__":
    main()
