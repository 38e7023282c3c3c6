#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""CallGraph=unwind with programs of all kinds: on threads, in signal handlers and coroutines, deleted,
in another mount namespace, started by a shell, of 32 bits, and hostile. All run at once beside one
profd. Where a chain ends is judged by the ELF files with readelf."""

import collections
import contextlib
import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import outermost  # noqa: E402
import recording  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from profctl import check_unwinds, ended, profctl  # noqa: E402
from workload import end, load, need_root, program, scratch  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

CONFIG = "[Profd]\nFlushIntervalSec=1s\n" + session(Event="cpu-clock", Frequency=999, CallGraph="unwind",
                                                    RotateIntervalSec=0)
LEAST = 20      # samples of each program
DEPTH = 11      # stacks_descend() on each stack, and stacks_leaf() beside
SETTLED_S = 30  # until all tables are there; usually two sweeps
SPIN = """__attribute__((noinline)) void spin(void) { for (volatile int i = 0; ; i++) ; }
void outer(void) { spin(); }
__asm__(".globl _start\\n.type _start, @function\\n_start: xor %ebp, %ebp\\n call outer\\n hlt\\n");
"""

Run = collections.namedtuple("Run", "process pid path")


def copy(folder, name, of="stacks"):
    path = os.path.join(folder, name)
    shutil.copy(program(of), path)
    return path


def eh_frame(path):
    """Offset and size of the section in the file."""
    for line in outermost.readelf(path, "-S"):
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] == ".eh_frame":
            return int(words[4], 16), int(words[5], 16)
    return check(False, f"{path} has no .eh_frame")


def interpreter(path):
    """The program that loads it, which may be run with it, so that its file is no program and can be written."""
    line = next(line for line in outermost.readelf(path, "-l") if "interpreter:" in line)
    return line.split("interpreter:")[1].strip(" ]")


def started(stack, path, command, pid=None):
    """A program that runs until the stack is closed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    stack.callback(process.stdout.close)
    stack.callback(end, process)
    check(process.stdout.readline() == "ready\n", f"{command} did not begin")
    return Run(process, (pid or (lambda p: p))(process.pid), path)


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return int(f.read().split()[0])


def start_32_bit(stack, folder):
    """None: this machine runs no such program. It has frame pointers."""
    path = os.path.join(folder, "spin-32")
    source = path + ".c"
    with open(source, "w", encoding="utf-8") as f:
        f.write(SPIN)
    command = ["cc", "-m32", "-O1", "-fno-omit-frame-pointer", "-ffreestanding", "-nostdlib", "-static", "-no-pie",
               "-o", path, source]
    if platform.machine() != "x86_64" or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        return None
    try:
        process = subprocess.Popen([path], stdin=subprocess.DEVNULL)
    except OSError:
        return None
    stack.callback(end, process)
    return Run(process, process.pid, path)


def start_all(stack, folder):
    """The programs by name."""
    runs = {}
    for kind in ("thread", "signal", "altstack", "coroutine"):
        process = stack.enter_context(load("stacks", kind))
        runs[kind] = Run(process, process.pid, program("stacks"))
    deep = program("deep")
    deleted = copy(folder, "deleted", "deep")
    runs["deleted"] = started(stack, deep, [deleted])
    os.unlink(deleted)
    runs["exec"] = started(stack, deep, ["sh", "-c", f"exec {deep}"])
    # dash forks for a command that is not its last.
    runs["shell"] = started(stack, deep, ["sh", "-c", f"{deep}; :"], child_of)
    stack.callback(lambda: os.kill(runs["shell"].pid, 9))
    hidden = os.path.join(folder, "hidden")
    os.mkdir(hidden)
    inside = f"mount -t tmpfs none {hidden} && cp {deep} {hidden}/inside && exec {hidden}/inside"
    runs["namespace"] = started(stack, deep, ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside])
    own = copy(folder, "own")
    runs["rewrite"] = started(stack, program("stacks"), [interpreter(own), own, "rewrite", own, *map(str, eh_frame(own))])
    runs["32-bit"] = start_32_bit(stack, folder)
    return runs


def is_whole(run, found):
    """By the file that the program was copied from, which may be gone or out of sight."""
    if os.path.basename(found.file) in ("deleted", "deleted (deleted)", "inside"):
        return outermost.file_of(run.path).is_first(found.offset)
    return outermost.is_whole(found)


WHOLE = ("thread", "signal", "deleted", "exec", "shell", "namespace")


def are_whole(run, ends):
    return len(ends) >= LEAST and sum(is_whole(run, e) for e in ends) >= 0.99 * len(ends)


def call(daemon, *words):
    done = profctl(*words, socket=daemon.control())
    ended(done, 0)
    return done.stdout


def look(daemon, runs):
    """What the last two seconds have of each program."""
    done = profctl("snapshot", "--last=2s", socket=daemon.control())
    # Status 8: profd has recorded for less than that.
    check(done.returncode in (0, 8), f"profctl snapshot ended with {done.returncode}: {done.stderr}")
    path = done.stdout.strip()
    by_pid = collections.defaultdict(list)
    for found in outermost.chain_ends(path):
        by_pid[found.pid].append(found)
    return {name: by_pid[run.pid] for name, run in runs.items() if run}


@functools.lru_cache(maxsize=None)
def recorded():
    """The programs by name, and what was recorded of each when all tables should have been there."""
    need_root()
    with scratch() as folder, contextlib.ExitStack() as stack:
        daemon = stack.enter_context(Daemon(folder, config=CONFIG))
        recorder = daemon.recorder()
        runs = start_all(stack, folder)
        last, until = look(daemon, runs), time.monotonic() + SETTLED_S
        # What is missing after that is for the tests to report.
        while not all(are_whole(runs[name], last[name]) for name in WHOLE) and time.monotonic() < until:
            time.sleep(0.5)
            last = look(daemon, runs)
        counts = json.loads(call(daemon, "show-session", "default", "--json"))[0]["session"]["stacks"]
        for run in filter(None, runs.values()):
            equal(run.process.poll(), None, f"the end of {run.path}")
        equal(daemon.recorder(), recorder, "the recorder that ran at first and now")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        # The files are read while they are there.
        places = {name: collections.Counter(map(outermost.place, last[name])) for name in last}
        whole = {name: sum(is_whole(runs[name], e) for e in last[name]) for name in last}
        return last, places, whole, counts


def check_whole(*names):
    ends, places, whole, _ = recorded()
    for name in names:
        n = len(ends[name])
        check(n >= LEAST and whole[name] >= 0.99 * n,
              f"of {n} stacks of '{name}' {whole[name]} are whole; they end in {places[name].most_common(4)}")


@test
def stacks_of_threads_and_signal_handlers_are_whole():
    check_whole("thread", "signal")
    ends, _, _, _ = recorded()
    for name in ("thread", "signal"):
        deep = sum(e.frames > DEPTH for e in ends[name])
        check(deep >= 0.9 * len(ends[name]), f"of {len(ends[name])} stacks of '{name}' {deep} have all frames")


@test
def a_handler_on_a_stack_of_its_own_leads_to_the_function_that_it_interrupted():
    ends, places, whole, _ = recorded()
    n, interrupted = len(ends["altstack"]), places["altstack"]["stacks:touch_page"]
    check(n >= LEAST and interrupted >= 0.8 * n and interrupted + whole["altstack"] >= 0.99 * n,
          f"{n} stacks end in {places['altstack']}")


@test
def a_coroutine_is_followed_to_its_start():
    ends, places, _, _ = recorded()
    n = len(ends["coroutine"])
    # makecontext() lets the first function return to one place in the C library, which has no caller to follow.
    ((file, _), same), = collections.Counter((e.file, e.offset) for e in ends["coroutine"]).most_common(1)
    check(n >= LEAST and same >= 0.99 * n and "libc" in os.path.basename(file), f"{n} end in {places['coroutine']}")
    deep = sum(e.frames > DEPTH for e in ends["coroutine"])
    check(deep >= 0.9 * n, f"of {n} stacks {deep} have all frames")


@test
def programs_that_are_deleted_or_started_by_a_shell_are_unwound():
    check_whole("deleted", "exec", "shell")


@test
def programs_in_another_mount_namespace_are_unwound():
    check_whole("namespace")


@test
def of_a_32_bit_program_only_the_sampled_address_is_recorded():
    ends, places, _, counts = recorded()
    if "32-bit" not in ends:
        skip("this machine neither builds nor runs 32-bit programs")
    check(len(ends["32-bit"]) >= LEAST, f"{len(ends['32-bit'])} samples")
    equal({e.frames for e in ends["32-bit"]}, {1}, "frames")
    equal(set(places["32-bit"]), {"spin-32:spin"}, "places")
    check(counts["bits32"] >= LEAST, f"counts {counts}")


@test
def of_a_32_bit_program_the_chain_by_frame_pointers_is_kept():
    """CallGraph=auto lets the kernel take it up to 1,000 Hz, and no table leads further."""
    need_root()
    with scratch() as folder, contextlib.ExitStack() as stack:
        daemon = stack.enter_context(Daemon(folder, config=CONFIG.replace("=unwind", "=auto")))
        check_unwinds(daemon, "default")
        run = start_32_bit(stack, folder)
        if not run:
            skip("this machine neither builds nor runs 32-bit programs")
        ends, until = [], time.monotonic() + SETTLED_S
        while len(ends) < LEAST and time.monotonic() < until:
            time.sleep(0.5)
            ends = look(daemon, {"32-bit": run})["32-bit"]
        check(len(ends) >= LEAST, f"{len(ends)} samples")
        found = collections.Counter((e.frames, outermost.place(e)) for e in ends)
        # Before a function has set its frame pointer the kernel misses its caller.
        check(found[3, "spin-32:_start"] >= 0.9 * len(ends), f"of {len(ends)} chains the frames and ends are {found}")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        counts = recording.manifest(daemon.segments()[0])
        check(counts["stacks_bits32"] >= LEAST, f"counts {counts}")
        shown = profctl("info", daemon.segments()[0]).stdout
        check(" of 32-bit programs" in shown, shown[:2000])


@test
def a_program_that_rewrites_its_unwind_tables_harms_only_its_own_stacks():
    check_whole(*WHOLE)
    ends, places, _, _ = recorded()
    check(len(ends["rewrite"]) >= LEAST, f"{len(ends['rewrite'])} samples")
    equal([place for place in places["rewrite"] if place == "-"], [], "chains that leave the code")


main()
