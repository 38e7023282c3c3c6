# SPDX-License-Identifier: LGPL-2.1-or-later
"""Traps that any user can set for a profiler: ELF files with endless notes, and a FUSE file system
whose server stops answering."""

import contextlib
import ctypes
import errno
import mmap
import os
import signal
import stat
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import check, skip  # noqa: E402

PAGE = 4096
HEADER, ENTRY = 64, 56  # of 64-bit ELF files
PT_NOTE = 4
MS_PRIVATE_REC, CLONE_NEWNS, CLONE_NEWUSER, MNT_DETACH = 1 << 18 | 1 << 14, 0x20000, 0x10000000, 2
PR_SET_DUMPABLE, FUSE_DEVICE = 4, (10, 229)
MAP_FIXED = 0x10
# A loop without an end, which our ELF files hold there.
SPIN_AT, SPIN = 0x100, {"x86_64": b"\xeb\xfe", "aarch64": b"\x00\x00\x00\x14"}
LIBC = ctypes.CDLL(None, use_errno=True)


def elf_header(note_runs):
    """An ELF file for this machine with these (offset, size) of notes."""
    ident = b"\x7fELF" + bytes([2, 1 if sys.byteorder == "little" else 2, 1]) + bytes(9)
    header = struct.pack("=HHIQQQIHHHHHH", 3, 62, 1, 0, HEADER, 0, 0, HEADER, ENTRY, len(note_runs), 0, 0, 0)
    entries = [struct.pack("=IIQQQQQQ", PT_NOTE, 4, offset, 0, 0, size, size, 4) for offset, size in note_runs]
    return ident + header + b"".join(entries)


def file_of_notes(path, size, mode=0o755):
    """A sparse file of which all but the first page is one run of empty notes."""
    with open(path, "wb") as f:
        f.write(elf_header([(PAGE, size)]))
        f.truncate(PAGE + size)
    os.chmod(path, mode)


@contextlib.contextmanager
def mapped_by_a_child(*paths, uid=None):
    """A process that has these files mapped as code, of a user if one is named."""
    begun, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            if uid is not None:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            kept = [map_as_code(path) for path in paths]
            os.write(go, bytes([len(kept) > 0]))
            while True:
                signal.pause()
        os._exit(1)
    os.close(go)
    try:
        check(os.read(begun, 1) == b"\1", "the files could not be mapped")
        yield pid
    finally:
        os.close(begun)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def map_as_code(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return mmap.mmap(fd, PAGE, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    finally:
        os.close(fd)


class FuseServer:
    """Answers as a file system of `count` ELF files does, until it is told to stop answering: then it
    takes requests and says nothing, so that not even SIGKILL ends the process that waits for one."""

    LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, INIT, BATCH_FORGET = 1, 2, 3, 14, 15, 17, 26, 42

    def __init__(self, device, count):
        self.device, self.count, self.answers = device, count, True
        self.content = (elf_header([(PAGE, 64)]).ljust(SPIN_AT, b"\0") + SPIN.get(os.uname().machine, b"")).ljust(2 * PAGE, b"\0")

    def attributes(self, node):
        is_root = node == 1
        return struct.pack("=6Q10I", node, 0 if is_root else len(self.content), 16, 0, 0, 0, 0, 0, 0,
                           0o40755 if is_root else 0o100755, 1, 0, 0, 0, PAGE, 0)

    def answer(self, opcode, node, body):
        if opcode == self.INIT:
            return struct.pack("=IIIIHHIIHHI28x", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, 0)
        if opcode == self.LOOKUP:
            name = body.rstrip(b"\0").decode()
            if not name.isdigit() or int(name) >= self.count:
                return -errno.ENOENT
            child = int(name) + 2
            return struct.pack("=4Q2I", child, 0, 0, 0, 0, 0) + self.attributes(child)
        if opcode == self.GETATTR:
            return struct.pack("=Q2I", 0, 0, 0) + self.attributes(node)
        if opcode == self.OPEN:
            return struct.pack("=Q2I", node, 0, 0)
        if opcode == self.READ:
            offset, size = struct.unpack_from("=QI", body, 8)
            return self.content[offset:offset + size]
        if opcode == self.STATFS:
            return struct.pack("=5Q4I24x", 0, 0, 0, 0, 0, PAGE, 255, PAGE, 0)
        return -errno.ENOSYS

    def run(self):
        while True:
            try:
                message = os.read(self.device, 1 << 20)
            except InterruptedError:
                continue
            except OSError:
                return
            _, opcode, unique, node = struct.unpack_from("=IIQQ", message)
            if not self.answers or opcode in (self.FORGET, self.BATCH_FORGET):
                continue
            said = self.answer(opcode, node, message[40:])
            error, data = (said, b"") if isinstance(said, int) else (0, said)
            with contextlib.suppress(OSError):
                os.write(self.device, struct.pack("=IiQ", 16 + len(data), error, unique) + data)


def be_sampled():
    """What takes samples is in the recording."""
    while True:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        time.sleep(0.08)


def run_code(path):
    """Spins in the code of one of our files for ever."""
    if os.uname().machine not in SPIN:
        skip("no code for this machine")
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    fd = os.open(path, os.O_RDONLY)
    begin = LIBC.mmap(None, PAGE, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, fd, 0)
    os.close(fd)
    os.nice(10)
    ctypes.CFUNCTYPE(None)(begin + SPIN_AT)()


class HungMount:
    """`count` files on FUSE that a process has mapped, which is on a CPU now and then; hang() lets their server answer no more. With
    `detached` the mount is in no table of mounts any more. With `overlays_of`, a uid, that user makes the mount in a
    user namespace, and each file is mapped through an overlay of its own, which is a device of its own. With `runs` it
    is the code of the first file that is on a CPU, without a pause."""

    def __init__(self, folder, count, detached=False, private=False, overlays_of=None, runs=False):
        self.folder, self.count, self.is_detached, self.is_private = folder, count, detached, private
        self.user, self.runs = overlays_of, runs
        self.server = self.mapper = 0

    def path_of(self, i):
        return os.path.join(self.folder, "overlay", str(i), str(i)) if self.user else os.path.join(self.folder, str(i))

    def mount_below_overlays(self):
        node = self.folder + ".fuse"
        os.mknod(node, stat.S_IFCHR, os.makedev(*FUSE_DEVICE))
        os.chmod(node, 0o666)
        os.setgroups([])
        os.setresgid(self.user, self.user, self.user)
        os.setresuid(self.user, self.user, self.user)
        LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        if LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
            return -1
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {self.user} 1"), ("gid_map", f"0 {self.user} 1")):
            with open(f"/proc/self/{name}", "w", encoding="utf-8") as f:
                f.write(text)
        if LIBC.mount(b"profd-test", self.folder.encode(), b"tmpfs", 0, None) != 0:
            return -1
        for name in ("fuse", "empty", "overlay"):
            os.mkdir(os.path.join(self.folder, name))
        device = os.open(node, os.O_RDWR)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
        return device if LIBC.mount(b"profd-test", os.path.join(self.folder, "fuse").encode(), b"fuse", 6,
                                    options.encode()) == 0 else -1

    def mount_overlays(self):
        options = f"lowerdir={self.folder}/fuse:{self.folder}/empty".encode()
        for i in range(self.count):
            folder = os.path.dirname(self.path_of(i))
            os.mkdir(folder)
            if LIBC.mount(b"profd-test", folder.encode(), b"overlay", 0, options) != 0:
                raise OSError(ctypes.get_errno(), "overlayfs")

    def mount(self):
        if self.is_private and (LIBC.unshare(CLONE_NEWNS) != 0 or
                                LIBC.mount(None, b"/", None, MS_PRIVATE_REC, None) != 0):
            return -1
        device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
        if LIBC.mount(b"profd-test", self.folder.encode(), b"fuse", 6, options.encode()) != 0:
            return -1
        return device

    def serve(self, ready, hanging):
        device = self.mount_below_overlays() if self.user else self.mount()
        if device < 0:
            os.write(ready, b"x")
            os._exit(1)
        server = FuseServer(device, self.count)

        def hang(*_):
            server.answers = False
            os.write(hanging, b"h")
        signal.signal(signal.SIGUSR1, hang)
        mapper = os.fork()
        if mapper == 0:
            os.close(device)
            if self.user:
                self.mount_overlays()
            kept = [map_as_code(self.path_of(i)) for i in range(self.count)]
            if self.is_detached:
                LIBC.umount2(self.folder.encode(), MNT_DETACH)
            os.write(ready, struct.pack("=i", os.getpid() if kept else 0))
            if self.runs:
                run_code(self.path_of(0))
            be_sampled()
        server.run()
        os._exit(0)

    def __enter__(self):
        if not os.path.exists("/dev/fuse"):
            skip("no /dev/fuse")
        ready, says_ready = os.pipe()
        self.hanging, says_hanging = os.pipe()
        self.server = os.fork()
        if self.server == 0:
            os.close(ready)
            os.close(self.hanging)
            try:
                self.serve(says_ready, says_hanging)
            finally:
                os._exit(1)
        os.close(says_ready)
        os.close(says_hanging)
        said = os.read(ready, 4)
        os.close(ready)
        if len(said) != 4:
            self.__exit__(None, None, None)
            skip("FUSE cannot be mounted here")
        self.mapper = struct.unpack("=i", said)[0]
        return self

    def hang(self):
        os.kill(self.server, signal.SIGUSR1)
        check(os.read(self.hanging, 1) == b"h", "the server goes on")

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Once is enough."""
        if self.server == 0:
            return
        os.close(self.hanging)
        if self.mapper:
            os.kill(self.mapper, signal.SIGKILL)
        # A process that waits for an answer gets an error when nobody can give one any more.
        os.kill(self.server, signal.SIGKILL)
        os.waitpid(self.server, 0)
        self.server = 0
        LIBC.umount2(self.folder.encode(), MNT_DETACH)


class LockedMemory:
    """Processes of a user who keeps their memory locked until unlock(): each replaces a mapping of a file that it has
    written to, on a FUSE mount of his own whose server stopped answering. Nobody can read their maps then. Every second
    one calls exec instead, and then nobody can read its stat file either. Each maps `library` as code too."""

    def __init__(self, folder, count, user, library):
        self.folder, self.count, self.user, self.library = folder, count, user, library
        self.server, self.pids = 0, []

    def lock(self, i, ready):
        """In a child: maps, writes, and then waits in the kernel, holding the lock."""
        fd = os.open(os.path.join(self.folder, "fuse", str(i)), os.O_RDWR)
        area = LIBC.mmap(None, PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        ctypes.memset(area, 1, 1)
        kept = map_as_code(self.library)
        os.write(ready, struct.pack("=ii", i, os.getpid()))
        # The server answers no more when the last of them has said so.
        while not os.path.exists(self.folder + ".locked"):
            time.sleep(0.02)
        if i % 2:
            os.execv("/bin/sleep", ["sleep", "600"])
        LIBC.mmap(area, PAGE, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED, -1, 0)
        if kept:
            be_sampled()

    def serve(self, ready):
        mount = HungMount(self.folder, self.count, overlays_of=self.user)
        device = mount.mount_below_overlays()
        if device < 0:
            os._exit(1)
        server = FuseServer(device, self.count)
        signal.signal(signal.SIGUSR1, lambda *_: setattr(server, "answers", False))
        for i in range(self.count):
            if os.fork() == 0:
                os.close(device)
                try:
                    self.lock(i, ready)
                finally:
                    os._exit(1)
        os.close(ready)
        server.run()
        os._exit(0)

    def __enter__(self):
        if not os.path.exists("/dev/fuse"):
            skip("no /dev/fuse")
        LIBC.mmap.restype, LIBC.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                                                                  ctypes.c_int, ctypes.c_int, ctypes.c_long]
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o777)
        ready, says_ready = os.pipe()
        self.server = os.fork()
        if self.server == 0:
            os.close(ready)
            try:
                self.serve(says_ready)
            finally:
                os._exit(1)
        os.close(says_ready)
        begun = {}
        while len(begun) < self.count and (said := os.read(ready, 8)):
            number, pid = struct.unpack("=ii", said)
            begun[number] = pid
        os.close(ready)
        self.pids = [begun[i] for i in sorted(begun)]
        if len(self.pids) < self.count:
            self.__exit__(None, None, None)
            skip("FUSE cannot be mounted here")
        os.kill(self.server, signal.SIGUSR1)
        with open(self.folder + ".locked", "w", encoding="ascii"):
            pass
        wait_until(lambda: all(state_of(pid) == "D" for pid in self.pids), 30, "the processes do not wait")
        return self

    def unlock(self):
        os.kill(self.server, signal.SIGKILL)
        os.waitpid(self.server, 0)
        self.server = 0
        wait_until(lambda: all(state_of(pid) != "D" for pid in self.pids), 30, "the processes still wait")

    def __exit__(self, *_):
        if self.server:
            os.kill(self.server, signal.SIGKILL)
            os.waitpid(self.server, 0)
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def state_of(pid):
    """R, S, D …, or None. The stat file would wait for a process that hangs in an exec."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
            return next(line.split()[1] for line in f if line.startswith("State:"))
    except OSError:
        return None


def cpu_seconds(pid, ended_children=False):
    """The CPU time of a process or of its children that ended, the kernel part too; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            words = f.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    first = 13 if ended_children else 11
    return (int(words[first]) + int(words[first + 1])) / os.sysconf("SC_CLK_TCK")


def wait_until(is_so, seconds, what):
    end = time.monotonic() + seconds
    while not is_so():
        check(time.monotonic() < end, f"{what} after {seconds} s")
        time.sleep(0.05)
