#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each example of the man pages and of README.md, run as it stands, against a profd that records.

All of it happens in a mount namespace of its own, where profd has its usual folders, user and
groups. A block is what stands between .Bd -literal and .Ed, behind .Dl, or within a fence. The
prompt of its first line is that of its commands: with `#` they run as root, with `$` as a member of
profd-read. What a command prints is not compared, but every heading that the page shows of it
("Disk:") has to be there. What `cat` shows of a file, and a block that begins with a section, is
a configuration, held by `profd --check-config`, or that of profd-gateway if it has its sections; a drop-in for
systemd is left alone. Whatever cannot
be run here says why in a comment before it, `not run: why`. Only what would take long is hurried, by
the table below.
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

INSIDE = "PROFD_TEST_INSIDE"
if os.geteuid() == 0 and INSIDE not in os.environ:
    os.environ[INSIDE] = "yes"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                          *sys.argv])

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon, session  # noqa: E402
from profctl import environment  # noqa: E402
from workload import need_root, wait_until  # noqa: E402
from tap import build_path, check, main, source_path, test  # noqa: E402

PAGES = ("gateway.conf.5", "profctl.1", "profd-gateway.8", "profd-perfdata.5", "profd.conf.5", "profd.7", "profd.8")
READER, READ, ADMIN, PROFD = 64251, 64252, 64253, 64254
PLACE = "/run/test"  # in a /run of our own
SEGMENT = "00000042-20261120T100019Z.perf.data"
WAIT_S = 60
OF_SYSTEMD = ("[Unit]", "[Service]")

# (what stands there, what is run instead)
HURRY = (
    (r"sleep 12\b", "sleep 0.5"),
    (r"kill %1", "kill %1; wait"),
    (r"head -c 30000", "head -c 3000"),
    (r"--(duration|follow-up)=\d+s", r"--\1=200ms"),
    (r"--at=('[^']*'|\"[^\"]*\"|[^\s)]+)", "--at=now"),
    (r"--since=('[^']*'|[^\s)]+) --until=('[^']*'|[^\s)]+)", "--since=-5s --until=now"),
    (r"(?<![\w/])0000\d{4}-\d{8}T\d{6}Z(?=\.perf\.data)(?<!42-20261120T100019Z)", "00000001-*"),
)
# The commands that may end with another status than 0, and with which. A window may begin before the recording.
# There are no services where these are run.
STATUS = ((r"profctl \w+ torn\b", (8,)), (r"profctl report.* --unit\b", (0, 5)), (r"profctl.* (snapshot|report|flamegraph)\b", (0, 8)),
          (r"\bdoctor\b|--check\b", (0, 7)))


# -- reading pages ------------------------------------------------------------------------------


class Block:
    def __init__(self, place, lines, reason):
        self.place, self.lines, self.reason = place, lines, reason

    @property
    def prompt(self):
        return self.lines[0][:2] if self.lines[0][:2] in ("$ ", "# ") else None

    def steps(self):
        """Commands, each with what the page shows of its output."""
        for line in self.lines:
            if line.startswith(self.prompt):
                step = [line[2:], []]
                yield step
            elif step[0].endswith("\\") and not step[1]:
                step[0] = step[0][:-1] + line.lstrip("> ")
            else:
                step[1].append(line)


def from_mdoc(line):
    for escape, plain in (("\\(dq", '"'), ("\\(aq", "'"), ("\\e", "\\"), ("\\&", ""), ("\\-", "-")):
        line = line.replace(escape, plain)
    return line


def mdoc_blocks(name):
    reason, block = None, None
    with open(source_path("doc", name), encoding="utf-8") as f:
        for number, line in enumerate(f.read().splitlines(), 1):
            place = f"{name}:{number}"
            if line.startswith('.\\" not run: '):
                reason = line[13:]
            elif line.startswith(".Dl ") and line[4] in "$#":
                yield Block(place, [from_mdoc(line[4:])], reason)
                reason = None
            elif line.startswith(".Bd -literal"):
                block = Block(place, [], None)
            elif line == ".Ed" and block:
                block.reason, reason = reason, None
                yield block
                block = None
            elif block and not line.startswith('.\\"'):
                block.lines.append(from_mdoc(line))


def markdown_blocks(name):
    reason, block = None, None
    with open(source_path(name), encoding="utf-8") as f:
        for number, line in enumerate(f.read().splitlines(), 1):
            said = re.fullmatch(r"<!-- not run: (.*) -->", line)
            if said:
                reason = said[1]
            elif line.startswith("```") and block:
                yield block
                block = None
            elif line.startswith("```"):
                block, reason = Block(f"{name}:{number}", [], reason), None
            elif block:
                block.lines.append(line)


def blocks(name):
    found = list(markdown_blocks(name) if name.endswith(".md") else mdoc_blocks(name))
    check(found, f"{name} has no examples")
    return found


# -- the place where they run -------------------------------------------------------------------


def sh(*command, **how):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, **how)


def put(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


SSH = """#!/bin/sh
while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
exec sh -c "$3"
"""


def furnish():
    """Folders of our own where the system has its: /run, /etc, /var/lib."""
    programs = {"profd": build_path("daemon", "profd"), "profctl": build_path("client", "profctl"),
                "profd-gateway": build_path("gateway", "profd-gateway")}
    sh("mount", "-n", "-t", "tmpfs", "-o", "mode=755", "none", "/mnt")
    for name in ("bin", "home", "lib"):
        os.makedirs(f"/mnt/test/{name}")
    for name, path in programs.items():
        shutil.copy(path, f"/mnt/test/bin/{name}")
    put("/mnt/test/bin/ssh", SSH, 0o755)
    put("/mnt/test/bin/make", "#!/bin/sh\nexec true\n", 0o755)
    os.chown("/mnt/test/home", READER, READER)
    sh("cp", "-a", "/etc", "/mnt/test/etc")
    shutil.rmtree("/mnt/test/etc/profd", ignore_errors=True)
    for name, lines in (("group", f"profd-read:x:{READ}:reader\nprofd-admin:x:{ADMIN}:\n"
                                  f"profd:x:{PROFD}:\nreader:x:{READER}:\n"),
                        ("passwd", f"profd:x:{PROFD}:{PROFD}::/:/bin/false\n"
                                   f"reader:x:{READER}:{READER}::/run/test/home:/bin/sh\n")):
        with open(f"/etc/{name}", encoding="utf-8") as f:
            kept = [line for line in f if not re.match("profd(-read|-admin)?:", line)]
        put(f"/mnt/test/etc/{name}", "".join(kept) + lines)
    put("/mnt/test/etc/profd/profd.conf", "[Profd]\nFlushIntervalSec=200ms\n"
        + session(Event="cpu-clock", RotateIntervalSec="1h"))
    sh("mount", "-n", "--move", "/mnt", "/run")
    for name, at in (("etc", "/etc"), ("lib", "/var/lib")):
        sh("mount", "-n", "--bind", f"{PLACE}/{name}", at)


class Usual(Daemon):
    """With its usual folders."""

    def __init__(self):
        self.folder, self.store = PLACE, "/var/lib/profd"
        self.log_path = f"{PLACE}/log"
        self.log_begin = 0
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([f"{PLACE}/bin/profd"], stderr=log,
                                            stdin=subprocess.DEVNULL)
        try:
            self.wait_for_log("Recording ")
        except BaseException:
            self.kill()
            raise


_usual = []
_programs = []


def profd():
    need_root()
    if not _usual:
        furnish()
        _usual.append(Usual())
        prepare()
    return _usual[0]


def inside(user=0, **more):
    path = f"{PLACE}/bin:{os.environ['PATH']}"
    env = environment(PATH=path, HOME=f"{PLACE}/home", PERF_PAGER="cat", PAGER="cat", **more)
    identity = {"user": user, "group": user, "extra_groups": [READ]} if user else {}
    return {"env": env, "stdin": subprocess.DEVNULL, **identity}


def comms():
    """The programs that examples name by --comm."""
    commands = [command for name in (*PAGES, "README.md") for block in blocks(name)
                if block.prompt and not block.reason for command, _ in block.steps()]
    return {found for command in commands for found in re.findall(r"--comm=(\w+)", command)}


def start_programs():
    """They are at work about half of the time, and make way for other tests."""
    os.mkdir(f"{PLACE}/programs")
    for comm in comms():
        program = shutil.copy("/bin/sh", f"{PLACE}/programs/{comm}")
        busy = "while :; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; sleep 0.05; done"
        _programs.append(subprocess.Popen(["nice", "-n", "10", program, "-c", busy], stdin=subprocess.DEVNULL))


def prepare():
    """The things that examples take for granted: recordings, a program, folders of others."""
    folder = f"{PLACE}/files"
    os.mkdir(folder)
    start_programs()
    run = inside()
    said = subprocess.check_output
    wait_until(lambda: subprocess.run(["profctl", "snapshot", "-q", "-o", f"{folder}/noon.data"],
                                      check=False, capture_output=True, **run).returncode == 0,
               WAIT_S, "a first snapshot")
    for comm in comms():
        wait_until(lambda comm=comm: subprocess.run(
            ["profctl", "snapshot", "-q", f"--comm={comm}", "-o", f"{PLACE}/sampled", "-f"], check=False,
            capture_output=True, **run).returncode == 0, WAIT_S, f"a sample of {comm}")
    segment = said(["profctl", "rotate", "default"], text=True, **run).split()[-1]
    for name in ("perf.data", "morning.data", SEGMENT):
        shutil.copy(segment, f"{folder}/{name}")
    os.makedirs(f"{folder}/build/daemon")
    os.makedirs(f"{folder}/build/client")
    os.symlink(f"{PLACE}/bin/profd", f"{folder}/build/daemon/profd")
    os.symlink(f"{PLACE}/bin/profctl", f"{folder}/build/client/profctl")
    os.makedirs("/var/lib/node-exporter")


def work_folder(name):
    """A copy for each page, where everybody may write."""
    folder = f"{PLACE}/pages/{name}"
    shutil.copytree(f"{PLACE}/files", folder, symlinks=True)
    for path in (folder, *glob.glob(f"{folder}/*.data")):
        os.chown(path, READER, READER)
    os.chmod(folder, 0o777)
    return folder


# -- running them -------------------------------------------------------------------------------


def hurried(command):
    for pattern, instead in HURRY:
        command = re.sub(pattern, instead, command)
    return command


def expected(command):
    return next((states for pattern, states in STATUS if re.search(pattern, command)), (0,))


def cgroup_root():
    """Where the groups are that perf events follow; None where there are none."""
    with open("/proc/mounts", encoding="utf-8") as f:
        mounts = [line.split() for line in f]
    return next((m[1] for m in mounts if m[2] == "cgroup" and "perf_event" in m[3].split(",")),
                next((m[1] for m in mounts if m[2] == "cgroup2"), None))


def make_cgroups(command):
    """Makes the folders that a command names, and returns the new ones. OSError where none can be."""
    made, root = [], cgroup_root()
    for name in re.findall(r"--cgroup[= ](\S+)", command):
        if root is None:
            raise FileNotFoundError("no control groups")
        path = root
        for part in name.split("/"):
            path = os.path.join(path, part)
            if not os.path.isdir(path):
                os.mkdir(path)
                made.insert(0, path)
    return made


def lacks(command):
    """The thing that a command needs and this machine lacks, or None."""
    for system, event in re.findall(r" -e (\w+):(\w+)", command):
        if not any(os.path.isdir(f"{at}/events/{system}/{event}")
                   for at in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")):
            return f"tracepoint {system}:{event}"
    return None


def headings(lines):
    """The words before a colon or a column, without those that not every host prints."""
    found = (re.match(r" *([A-Z][a-z]+)(?:: | {2,})\S", line) for line in lines)
    return {match[1] for match in found if match} - {"Degraded", "Remedy"}


def interrupted(command, run, out):
    """One that runs until it is interrupted; interrupted when it records."""
    process = subprocess.Popen(["bash", "-c", f"exec {command}"], stdout=out,
                               stderr=subprocess.STDOUT, **run)
    path = f"/proc/self/fd/{out.fileno()}"

    def says():
        with open(path, encoding="utf-8", errors="replace") as f:
            return process.poll() is not None or "Recording " in f.read()
    try:
        wait_until(says, WAIT_S, "a recording to begin")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        return process.wait(timeout=WAIT_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


class Shell:
    """A bash that keeps its variables and jobs from one step to the next."""

    def __init__(self, folder, user):
        self.folder = folder
        self.run = {**inside(user), "cwd": folder}
        self.status, write = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", 'set -o pipefail; while IFS= read -r -d "" line; do eval "$line"; '
             f'echo $? >&{write}; done'],
            **{**self.run, "stdin": subprocess.PIPE}, pass_fds=(write,), start_new_session=True)
        self.write = write
        self.n = 0

    def step(self, command):
        """Status and output."""
        self.n += 1
        out = f"{self.folder}/.out.{os.getpid()}.{self.write}.{self.n}"
        text = f"{{\n{command}\n}} >{out} 2>&1 </dev/null"
        self.process.stdin.write(text.encode() + b"\0")
        self.process.stdin.flush()
        said = b""
        while not said.endswith(b"\n"):
            more = os.read(self.status, 16)
            check(more, f"the shell ended within {command}")
            said += more
        # Where the shell did not understand it there is none.
        with open(out, "a+", encoding="utf-8", errors="replace") as f:
            f.seek(0)
            return int(said), f.read()

    def close(self):
        os.close(self.write)
        os.close(self.status)
        self.process.stdin.close()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Rotator:
    """Ends segments, over and over, for examples that wait for such an end."""

    def __init__(self, command):
        self.process = None
        if re.search(r"monitor\b.*rotated", command):
            line = "while sleep 0.2; do profctl -q rotate default >/dev/null; done"
            self.process = subprocess.Popen(["sh", "-c", line], start_new_session=True, **inside())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def paranoid():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        return int(f.read())


def take_snapshots(commands):
    """The recordings that commands call by their names, the reader's own."""
    names = re.findall(r"\b(?:pin|rm|show-snapshot)(?: --?\S+)* (\d{8}T\d{6}Z)", "\n".join(commands))
    for name in dict.fromkeys(names):
        done = subprocess.run(["profctl", "snapshot", f"--name={name}"], capture_output=True,
                              text=True, check=False, **inside(READER))
        check(done.returncode == 0, done.stderr)


class Page:
    def __init__(self, name):
        self.name = name
        self.folder = work_folder(name)
        self.shells = {}
        self.complaints = []
        self.n_run = 0

    def shell(self, prompt):
        if prompt not in self.shells:
            self.shells[prompt] = Shell(self.folder, READER if prompt == "$ " else 0)
        return self.shells[prompt]

    def complain(self, block, command, why):
        self.complaints.append(f"{block.place}: {command}\n    {why}")

    def run(self, block):
        if block.lines[0].startswith("["):
            self.hold_config(block, block.lines)
        else:
            for command, output in list(block.steps()):
                self.run_step(block, command, output)

    def run_step(self, block, command, output):
        shown = re.fullmatch(r"cat (\S+\.conf)", command)
        self.n_run += 1
        if shown:
            self.hold_config(block, output)
        elif "^C" in output:
            self.run_until_interrupted(block, command)
        else:
            self.run_command(block, command, output)

    def hold_config(self, block, lines):
        put(f"{self.folder}/shown.conf", "\n".join(lines) + "\n")
        is_gateway = any(re.match(r"\[(Gateway|Listen|Relabel|Send)\b", line) for line in lines)
        program = "profd-gateway" if is_gateway else "profd"
        done = subprocess.run([program, "--check-config", f"--config={self.folder}/shown.conf"],
                              capture_output=True, text=True, check=False, **inside())
        self.n_run += 1
        if done.returncode != 0:
            self.complain(block, "configuration", done.stderr.strip())

    def run_until_interrupted(self, block, command):
        if block.prompt == "$ " and paranoid() > 2:
            return
        user = READER if block.prompt == "$ " else 0
        with open(f"{self.folder}/.interrupted", "w+", encoding="utf-8") as out:
            status = interrupted(command, {**inside(user), "cwd": self.folder}, out)
            out.seek(0)
            if status != 0:
                self.complain(block, command, f"status {status}: {out.read().strip()[-500:]}")

    def run_command(self, block, command, output):
        line = hurried(command)
        made, missing = [], lacks(line)
        try:
            made = make_cgroups(line)
        except OSError as error:
            missing = error
        if missing:
            print(f"# not run here ({missing}): {command}")
            return
        try:
            self.judge(block, command, output, line)
        finally:
            if made:
                # A group that is watched goes when the session has gone.
                subprocess.run(["profctl", "-q", "stop", *re.findall(r"start (\w+)", line)],
                               check=False, capture_output=True, **inside())
            for path in made:
                os.rmdir(path)

    def judge(self, block, command, output, line):
        # Where users may record nothing only root can show this.
        prompt = "# " if "perf record" in command and paranoid() > 1 else block.prompt
        with Rotator(line):
            status, said = self.shell(prompt).step(line)
        if status not in expected(command):
            self.complain(block, command, f"status {status}: {said.strip()[-500:]}")
        missing = [h for h in headings(output) if h not in said]
        if missing:
            self.complain(block, command, f"no {', '.join(missing)} in {said.strip()[:1000]}")

    def close(self):
        for shell in self.shells.values():
            shell.close()


def holds(name):
    profd()
    page = Page(name)
    to_run = [b for b in blocks(name) if not b.reason and b.lines[0] not in OF_SYSTEMD]
    try:
        take_snapshots(command for block in to_run if block.prompt for command, _ in block.steps())
        for block in to_run:
            page.run(block)
    finally:
        page.close()
    check(not page.complaints, "\n".join(page.complaints))
    check(page.n_run > 0, f"{name} has no example that is run")


@test
def each_example_is_run_or_has_the_reason_why_not():
    wrong = [b.place for name in (*PAGES, "README.md") for b in blocks(name)
             if not b.reason and not b.prompt and not b.lines[0].startswith("[")]
    check(not wrong, f"neither commands nor configuration: {wrong}")
    missing = set(os.path.basename(p) for p in glob.glob(source_path("doc", "*.[1-9]"))) - set(PAGES)
    check(not missing, f"pages that are not looked at: {missing}")


@test
def examples_of_the_manual_of_profctl_work():
    holds("profctl.1")


@test
def examples_of_the_manual_of_recordings_work():
    holds("profd-perfdata.5")


@test
def examples_of_the_manual_of_the_configuration_work():
    holds("profd.conf.5")


@test
def examples_of_the_manuals_of_the_gateway_work():
    holds("gateway.conf.5")
    holds("profd-gateway.8")


@test
def examples_of_the_guide_work():
    holds("profd.7")


@test
def examples_of_the_manual_of_profd_work():
    holds("profd.8")


@test
def examples_of_the_readme_work():
    holds("README.md")


@test
def profd_is_healthy_after_all_examples():
    daemon = profd()
    done = subprocess.run(["profctl", "list", "--no-legend"], capture_output=True, text=True,
                          check=False, **inside())
    check(done.returncode == 0 and "default" in done.stdout, f"{done.stdout}{done.stderr}")
    check(daemon.process.poll() is None, daemon.log())


if __name__ == "__main__":
    try:
        main()
    finally:
        for running in (*_usual, *_programs):
            running.kill()
