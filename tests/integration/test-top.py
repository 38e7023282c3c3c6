#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profctl top on a terminal of tmux, before a real daemon: what a person types and sees, without root."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon, is_sanitized  # noqa: E402
from profctl import PROFCTL, for_everyone  # noqa: E402
from workload import need_root, scratch  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

SEEN_S = 30
READ = 54321
WORK = "while :; do :; done"
ROW = re.compile(r"^ *([0-9.]+)% +([0-9.]+)% +([0-9,]+) +(.*)$")


class Terminal:
    """A shell of tmux's with a size; what runs in it is typed at and read."""

    def __init__(self, folder, command, width=80, height=24):
        self.tmux = ["tmux", "-S", os.path.join(folder, "tmux"), "-f", "/dev/null"]
        self.run("new-session", "-d", "-x", str(width), "-y", str(height), f"{command}; echo ended $?; sleep 600")

    def run(self, *arguments):
        env = {**os.environ, "TERM": "screen-256color", "LC_ALL": "C.UTF-8"}
        env.pop("TMUX", None)
        done = subprocess.run([*self.tmux, *arguments], capture_output=True, text=True, check=False, env=env)
        equal(done.returncode, 0, f"tmux {arguments}: {done.stderr}")
        return done.stdout

    def type(self, *keys):
        self.run("send-keys", *keys)

    def screen(self):
        return self.run("capture-pane", "-p").split("\n")

    def wait(self, pattern, line=None):
        """The screen, once a line of it, or the line with this number, matches."""
        end = time.monotonic() + SEEN_S
        while True:
            screen = self.screen()
            if re.search(pattern, "\n".join(screen) if line is None else screen[line], re.M):
                return screen
            check(time.monotonic() < end, f"'{pattern}' does not show:\n" + "\n".join(screen))
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([*self.tmux, "kill-server"], capture_output=True, check=False)


@contextlib.contextmanager
def scene(width=80, height=24, options="", before=None):
    """A daemon, a busy shell, and top before them, as a member of profd-read and of nothing else."""
    need_root()
    if not shutil.which("tmux"):
        skip("no tmux")
    if is_sanitized(PROFCTL):
        skip("a sanitized profctl is too slow for a screen")
    with scratch() as folder, Daemon(folder, groups={"profd-read": READ}) as daemon, \
            subprocess.Popen(["sh", "-c", WORK]) as work:
        try:
            os.chmod(folder, 0o755)
            if before:
                before(daemon)
            command = f"setpriv --reuid 54322 --regid 54322 --groups {READ} {for_everyone()} --socket={daemon.control()} top {options}"
            with Terminal(folder, "HOME=/ " + command, width, height) as terminal:
                yield daemon, terminal
        finally:
            work.kill()


def rows(screen):
    """The lines of the table: shares, count, text."""
    found = [ROW.match(line) for line in screen]
    return [(float(m[1]), float(m[2]), int(m[3].replace(",", "")), m[4]) for m in found if m]


@test
def a_small_screen_shows_who_is_busy_and_takes_keys():
    with scene() as (_, terminal):
        screen = terminal.wait(r"^ *\d+\.\d% .* sh +")
        check("window 10 s" in screen[0] and "samples in" in screen[1], screen[:3])
        check(screen[3].startswith("  SELF  TOTAL  SAMPLES  COMM"), screen[3])
        check(all(len(line) <= 80 for line in screen), screen)
        table = rows(screen)
        equal(table, sorted(table, key=lambda row: -row[0]), "the order of the rows")
        terminal.type("b")
        screen = terminal.wait(r"SAMPLES  COMM +by self", 3)
        screen = terminal.wait(r"^ *[0-9.]+% .* sh *$")
        busy = next(row for row in rows(screen) if row[3].strip() == "sh")
        check(busy[0] > 1, f"an endless loop has {busy}")
        terminal.type("/")
        terminal.type("-l", "sh")
        screen = terminal.wait("Show rows with: sh_", 2)
        terminal.type("Enter")
        screen = terminal.wait("Rows with 'sh', [0-9]+ others are hidden", 2)
        check(all("sh" in row[3] for row in rows(screen)), screen)
        terminal.type("Escape")
        terminal.type("g")
        terminal.type("C-u")
        terminal.type("-l", "pid,nothing")
        terminal.type("Enter")
        terminal.wait("'nothing' is none of comm", 2)
        terminal.type("q")
        terminal.wait("^ended 0$")


@test
def a_row_is_zoomed_into_and_the_screen_pauses():
    with scene(200, 60) as (_, terminal):
        screen = terminal.wait(r"^ *[0-9.]+% .* sh +")
        check(max(len(line) for line in screen) > 100, screen[:6])
        terminal.type("g")
        terminal.type("C-u")
        terminal.type("-l", "symbol")
        terminal.type("Enter")
        terminal.wait("SAMPLES  SYMBOL", 3)
        terminal.type("s")
        terminal.wait(r"by total \(s\)", 3)
        terminal.type("Enter")
        screen = terminal.wait("^Callers of ", 2)
        terminal.type("Tab")
        screen = terminal.wait("^Callees of ", 2)
        check(any(re.match(r"^ +[0-9.]+% +[0-9,]+ +\S", line) for line in screen[4:]), screen[:10])
        terminal.type("Escape")
        terminal.wait("SAMPLES  SYMBOL", 3)
        terminal.type("Space")
        still = terminal.wait("PAUSED", 0)
        time.sleep(2.5)
        equal(terminal.screen()[1:], still[1:], "a paused screen")
        terminal.type("w")
        terminal.wait("window 30 s", 0)
        terminal.type("Space")
        terminal.wait(r"^(?!.*PAUSED)", 0)


@test
def the_screen_follows_its_size_and_a_daemon_that_starts_again():
    with scene() as (daemon, terminal):
        terminal.wait(r"^ *[0-9.]+% .* sh +")
        terminal.run("resize-window", "-x", "120", "-y", "40")
        screen = terminal.wait("^q quit", 39)
        check(max(len(line) for line in screen) > 80, screen[:6])
        terminal.run("resize-window", "-x", "20", "-y", "3")
        terminal.run("resize-window", "-x", "80", "-y", "24")
        terminal.wait("^q quit", 23)
        daemon.stop()
        terminal.wait("profd does not run; waiting for it", 2)
        with Daemon(daemon.folder, groups={"profd-read": READ}):
            terminal.wait(r"^(?!profd does not run)", 2)
            terminal.wait(r"^ *[0-9.]+% .* sh +")
            terminal.type("q")
            terminal.wait("^ended 0$")


def pause(daemon):
    """Records for a while, not at all for longer, and for a while again."""
    for seconds, verb in (3, "pause"), (8, "resume"), (2, None):
        time.sleep(seconds)
        if verb:
            subprocess.run([PROFCTL, f"--socket={daemon.control()}", verb, "default"], check=True, capture_output=True)


@test
def a_gap_in_the_past_is_shown_and_not_counted_as_idle_time():
    told, facts = "profd did not record all of this window", re.compile(r" in ([0-9.]+) s, ([0-9.]+) CPUs busy")
    with scene(options="--last=5m", before=pause) as (daemon, terminal):
        begin = time.monotonic()
        screen = terminal.wait(told, 2)
        shown = facts.search(screen[1])
        check(shown, screen[:4])
        check(float(shown[1]) < 9 + time.monotonic() - begin, f"{screen[1]}, with the gap of 8 s")
        check(float(shown[2]) > 0.5, f"an endless loop in {screen[1]}")
        # What is read again has the gap again.
        terminal.type("w", "w")
        terminal.wait("window 1 h", 0)
        time.sleep(2)
        terminal.wait(told, 2)
        terminal.type("q")
        terminal.wait("^ended 0$")
        path = os.path.join(daemon.folder, "gap.perf.data")
        done = subprocess.run([PROFCTL, f"--socket={daemon.control()}", "snapshot", "-q", "--last=1h", "--output", path],
                              capture_output=True, text=True, check=False)
        equal(done.returncode, 8, f"the status of a snapshot with a gap: {done.stderr}")
        taken = time.monotonic()
        with scratch() as home, Terminal(home, f"HOME={home} {PROFCTL} top {path}") as of_file:
            screen = of_file.wait(told, 2)
            shown = facts.search(screen[1])
            check(shown and float(shown[1]) < 9 + taken - begin, f"{screen[1]}, with the gap of 8 s")


@test
def a_filter_by_file_shows_what_is_sampled_there_alone():
    shell = os.path.basename(os.path.realpath("/bin/sh"))
    with scene(options=f"--dso={shell}") as (_, terminal):
        screen = terminal.wait(rf"^ *[0-9.]+% .* sh +{shell} ")
        check(all(f" {shell} " in f"{row[3]} " for row in rows(screen) if row[0] > 0), screen)
        check("[kernel.kallsyms]" not in "\n".join(screen), screen)
        terminal.type("q")
        terminal.wait("^ended 0$")


@test
def a_recording_is_shown_with_the_counts_of_report():
    need_root()
    for tool in ("tmux", "perf"):
        if not shutil.which(tool):
            skip(f"no {tool}")
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "499", "-g", "-o", path, "--", "sh", "-c",
                        "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"], check=True, timeout=60)
        report = subprocess.run([PROFCTL, "report", "--json=short", "--by=comm,dso,symbol", path], capture_output=True, text=True, check=True)
        report = json.loads(report.stdout)
        wanted = {(row["comm"], row["dso"], row["symbol"]): row["samples"] for row in report["rows"] if row["samples"]}
        with Terminal(folder, f"HOME={folder} {PROFCTL} top {path}", 200, 60) as terminal:
            screen = terminal.wait(r"^ *[0-9.]+% .* sh +")
            check(f": {report['total']:,} samples in" in screen[1], (screen[1], report["total"]))
            found = rows(screen)
            check(len(found) > 2, screen)
            for _, _, samples, text in found[:10]:
                check(samples in [n for (comm, dso, symbol), n in wanted.items() if text.split() == f"{comm} {dso} {symbol}".split()] or not samples,
                      f"{text!r} has {samples}, report {wanted}")
            terminal.type("w")
            terminal.wait("A recording has one window", 2)
            terminal.type("q")
            terminal.wait("^ended 0$")


@test
def top_needs_a_terminal_and_says_so():
    done = subprocess.run([PROFCTL, "top"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    equal(done.returncode, 2, "the status")
    check("needs a terminal" in done.stderr, done.stderr)


if __name__ == "__main__":
    main()
