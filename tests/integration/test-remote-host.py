#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profctl -H: over a stand-in for ssh, which does what it is told to, and over a real sshd."""

import json
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "integration"))
from background import background  # noqa: E402
from profctl import PROFCTL, as_json, ended, environment, safe  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402
from workload import free_port  # noqa: E402

WAIT_S = 40

# The behaviour of each host, by its name; the line for its shell is in $line.
SSH = r"""#!/bin/sh
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    echo "$1" >>"$STAND_IN/options"
    shift
done
host=$2 line=$3
echo "$host $line" >>"$STAND_IN/calls"
case $host in
down*) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255 ;;
empty*) exec sh -c 'nothing-like-profctl' ;;
hostile*) printf 'one\033[2J \377two \\x1b\nlast'; printf '\033]0;x\007 bad\n' >&2; exit 1 ;;
flood*) yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx | head -c 3000000; exit 0 ;;
endless*) head -c 3000000 /dev/zero | tr '\0' y; exit 0 ;;
json*) printf '{"a":1}\n[2,\n'; exit 0 ;;
killed*) kill -9 $$ ;;
master*) sleep 1000 & echo $! >"$STAND_IN/master"; echo fine; exit 0 ;;
status*) exit "${host#status}" ;;
wait*) echo $$ >"$STAND_IN/$host.pid"; echo begun; cat >/dev/null; echo ended >"$STAND_IN/$host.end"; exit 0 ;;
after*) while ! [ -e "$STAND_IN/go" ]; do sleep 0.05; done; echo "$host"; exit 0 ;;
stdin*) cat; exit 0 ;;
*) exec sh -c "$line" ;;
esac
"""


class Hosts:
    """A folder with an ssh and a profctl to come first in PATH."""

    def __init__(self, ssh=SSH):
        self.folder = tempfile.mkdtemp(prefix="profd-ssh.")
        with open(self.path("ssh"), "w", encoding="ascii") as f:
            f.write(ssh)
        os.chmod(self.path("ssh"), 0o755)
        os.symlink(PROFCTL, self.path("profctl"))
        self.env = environment(PATH=f"{self.folder}:{os.environ['PATH']}", STAND_IN=self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words, **how):
        how = {"stdin": subprocess.DEVNULL, **how}
        return subprocess.run([PROFCTL, *words], capture_output=True, env=self.env, check=False,
                              timeout=WAIT_S, text=True, errors="surrogateescape", **how)

    def calls(self):
        with open(self.path("calls"), encoding="utf-8") as f:
            return f.read().splitlines()

    def wait_for(self, name):
        end = time.monotonic() + WAIT_S
        while not os.path.exists(self.path(name)) or not os.path.getsize(self.path(name)):
            check(time.monotonic() < end, f"waited for {name}")
            time.sleep(0.02)
        with open(self.path(name), encoding="utf-8") as f:
            return f.read().strip()


def line_of(process):
    """The next line it prints, within a time."""
    check(select.select([process.stdout], [], [], WAIT_S)[0], "it printed nothing")
    return process.stdout.readline()


@test
def lines_come_host_by_host_with_their_names():
    with Hosts() as hosts:
        done = hosts.run("-H", "web1,longer-name", "--host=root@db", "ping", "--help")
        equal((done.returncode, "web1" in done.stdout), (0, False), "help is given here")
        done = hosts.run("-H", "web1,longer-name", "doctor", "--root=/nowhere")
        equal(done.returncode, 1)
        done = hosts.run("doctor", "-H", "web1,longer-name", "--root", hosts.folder, "--no-legend")
        lines = done.stdout.splitlines()
        half = len(lines) // 2
        check(half > 5, done.stdout)
        check(all(line.startswith("web1:        ") for line in lines[:half]), done.stdout)
        check(all(line.startswith("longer-name: ") for line in lines[half:]), done.stdout)
        equal([line[13:] for line in lines[:half]], [line[13:] for line in lines[half:]])
        equal(set(hosts.calls()[-2:]),
              {f"{h} profctl --remote=leash doctor --root {hosts.folder} --no-legend"
               for h in ("web1", "longer-name")})


@test
def arguments_arrive_unchanged():
    with Hosts() as hosts:
        for word in ("two words", "it's", "$(id)", "a;b", "*", "\\", "-H", "ä"):
            done = hosts.run("-H", "web1", "info", "--", word)
            check(f"'{word}'" in done.stderr or word in ("\\",), f"{word!r}: {done.stderr}")
        hosts.run("ping", "-qH", "web1", "--socket=/nowhere")
        check(hosts.calls()[-1].endswith("ping -q --socket=/nowhere"), hosts.calls()[-1])


@test
def local_errors_are_reported_before_any_connection():
    with Hosts() as hosts:
        for words in (["-H", "web1", "nonsense"], ["-H", "web1", "info"], ["-H", "", "ping"],
                      ["-H", "-oProxyCommand=id", "ping"], ["-H", "a b", "ping"],
                      ["-H", "a,b", "convert", "x", "-"], ["-H", "a,b", "info", "-"]):
            ended(hosts.run(*words), 2)
        check(not os.path.exists(hosts.path("calls")), "ssh was started")


@test
def several_hosts_ask_for_no_password():
    with Hosts() as hosts:
        hosts.run("-H", "web1", "ping")
        with open(hosts.path("options"), encoding="ascii") as f:
            check("BatchMode" not in f.read(), "one host may ask for a password")
        hosts.run("-H", "web1,web2", "ping")
        with open(hosts.path("options"), encoding="ascii") as f:
            check("-oBatchMode=yes" in f.read(), "several may not")


@test
def the_worst_status_wins_and_each_failure_has_its_message():
    with Hosts() as hosts:
        done = hosts.run("-H", "status0,status8,down1,empty,killed,status3,status99", "ping")
        equal(done.returncode, 255)
        told = [line for line in done.stderr.splitlines() if line.startswith("profctl: ")]
        for words in ("'status8': done in part (status 8)", "'down1' could not be reached",
                      "'empty' has no profctl", "'killed' could not be reached",
                      "'status3': profd is not running (status 3)", "'status99' profctl ended with"):
            check(any(words in line for line in told), f"no '{words}' in {told}")
        check(not any("status0" in line for line in told), told)
        check("down1:    ssh: connect to host" in done.stderr, done.stderr)
        equal(hosts.run("-H", "status8,status7,status0", "ping").returncode, 7)
        equal(hosts.run("-H", "status8,status4", "ping").returncode, 4)
        equal(hosts.run("-H", "status0,empty", "ping").returncode, 1)


@test
def hostile_hosts_do_no_harm():
    with Hosts() as hosts:
        done = hosts.run("-H", "hostile", "ping")
        equal(done.stdout, "hostile: one\\x1b[2J \\xfftwo \\x1b\nhostile: last\n")
        safe(done.stderr, "stderr")
        check("\\x1b]0;x\\x07 bad" in done.stderr, done.stderr)
        done = hosts.run("-H", "json,hostile,web1", "doctor", "--json=short", "--root", hosts.folder)
        equal(done.returncode, 1)
        values = [json.loads(line) for line in safe(done.stdout).splitlines()]
        equal([v["host"] for v in values], ["json", "web1"])
        equal(values[0]["result"], {"a": 1})
        check("The answer of 'json' is not JSON" in done.stderr, done.stderr)
        check("The answer of 'hostile' is not JSON" in done.stderr, done.stderr)


@test
def large_output_of_a_host_waits_for_its_turn():
    with Hosts() as hosts:
        done = hosts.run("-H", "flood1,flood2,endless,flood3", "ping")
        equal(done.returncode, 0)
        names = [line.split(":")[0] for line in done.stdout.splitlines()]
        equal(sorted(set(names)), ["endless", "flood1", "flood2", "flood3"])
        equal([n for i, n in enumerate(names) if i == 0 or names[i - 1] != n],
              ["flood1", "flood2", "endless", "flood3"])
        for name in ("flood1", "flood2", "flood3"):
            text = "".join(line.split(":", 1)[1].strip() + "\n" for line in done.stdout.splitlines()
                           if line.startswith(name + ":"))
            check(3000000 <= len(text) <= 3000001, f"{name} said {len(text)} bytes")


@test
def each_of_many_hosts_is_contacted():
    with Hosts() as hosts:
        names = [f"web{i}" for i in range(150)]
        done = hosts.run("-H", ",".join(names), "ping", "--socket=/nowhere")
        equal(done.returncode, 3)
        equal(len(hosts.calls()), 150)
        for name in ("web0", "web77", "web149"):
            check(f"'{name}': profd is not running" in done.stderr, done.stderr[-500:])


@test
def output_is_shown_while_it_arrives():
    with Hosts() as hosts:
        # after1 would be first, but says nothing yet.
        with background([PROFCTL, "-H", "after1,wait2", "monitor"], env=hosts.env, text=True,
                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        bufsize=1) as process:
            equal(line_of(process), "wait2:  begun\n")
            with open(hosts.path("go"), "w", encoding="ascii"):
                pass
            equal(line_of(process), "after1: after1\n")
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=WAIT_S)
            hosts.wait_for("wait2.end")


@test
def remote_programs_end_with_profctl():
    for number in (signal.SIGTERM, signal.SIGKILL):
        with Hosts() as hosts:
            with background([PROFCTL, "-H", "wait1,wait2", "ping"], env=hosts.env,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
                hosts.wait_for("wait1.pid")
                hosts.wait_for("wait2.pid")
                process.send_signal(number)
                process.wait(timeout=WAIT_S)
                hosts.wait_for("wait1.end")
                hosts.wait_for("wait2.end")


@test
def the_remote_profctl_ends_when_nobody_waits():
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/io.profd.Control")
        listener.listen(1)
        for make in (socket.socketpair, os.pipe):
            ours, theirs = reversed(make()) if make is os.pipe else make()
            with background([PROFCTL, "--remote=leash", f"--socket={folder}/io.profd.Control",
                             "monitor"], stdin=theirs) as process:
                connection, _ = listener.accept()
                connection.recv(1)
                check(process.poll() is None, "it ended by itself")
                for end in (theirs, ours):
                    os.close(end) if isinstance(end, int) else end.close()
                equal(process.wait(timeout=WAIT_S), -signal.SIGTERM)
                connection.close()


@test
def an_ssh_that_leaves_a_master_behind_is_not_waited_for():
    with Hosts() as hosts:
        done = hosts.run("-H", "web1,master", "ping", "--socket=/nowhere")
        os.kill(int(hosts.wait_for("master")), signal.SIGKILL)
        check("master: fine" in done.stdout, done.stdout)


@test
def json_has_one_object_for_each_host():
    with Hosts() as hosts:
        done = hosts.run("-H", "web1,web2", "doctor", "--json=pretty", "--root", hosts.folder)
        decoder, text, values = json.JSONDecoder(), done.stdout.strip(), []
        while text:
            value, n = decoder.raw_decode(text)
            values.append(value)
            text = text[n:].strip()
        equal([v["host"] for v in values], ["web1", "web2"])
        check(all(v["result"]["checks"] for v in values), "no checks")
        check("\n  " in done.stdout, "not indented")
        done = hosts.run("-H", "web1,web2", "doctor", "-j", "--root", hosts.folder)
        as_json(done, "host", done.returncode)


@test
def a_recording_is_passed_through_unchanged():
    with Hosts() as hosts:
        source = os.path.join(hosts.folder, "in.data")
        noise = bytes(range(256)) * 4096
        with open(source, "wb") as f:
            f.write(noise)
        with open(source, "rb") as f:
            done = subprocess.run([PROFCTL, "-H", "stdin", "convert", "-", "-"], env=hosts.env,
                                  stdin=f, capture_output=True, check=False, timeout=WAIT_S)
        equal(done.returncode, 0)
        check(done.stdout == noise, f"{len(done.stdout)} bytes came back, not {len(noise)}")


@test
def a_profile_is_passed_through_unchanged_except_as_lines_on_a_terminal():
    with Hosts() as hosts:
        source = os.path.join(hosts.folder, "in.data")
        subprocess.run(["perf", "record", "-q", "-N", "-e", "cpu-clock", "-g", "-o", source, "sh", "-c", "for i in 1 2 3; do perf --version; done"],
                       check=True, stdout=subprocess.DEVNULL)
        for verb in ("folded",), ("speedscope",), ("firefox",), ("flamegraph", "--folded"):
            there, here = hosts.run("-H", "fine", *verb, source), hosts.run(*verb, source)
            equal((there.returncode, there.stdout), (0, here.stdout), verb)
            check(here.stdout, f"{verb} wrote nothing")


SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserEnvironment no
SetEnv PATH={folder}:/usr/bin:/bin
LogLevel QUIET
"""
CLIENT = """
Host one two
    HostName 127.0.0.1
    Port {port}
Host shut
    HostName 127.0.0.1
    Port 1
Host *
    User {user}
    IdentityFile {folder}/key
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking accept-new
"""


class Sshd:
    """One of our own on the loopback, as the user who runs the tests."""

    def __init__(self, hosts):
        sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        ssh = shutil.which("ssh", path="/usr/bin:/bin:/usr/local/bin")
        if not sshd or not ssh or not shutil.which("ssh-keygen"):
            skip("sshd, ssh or ssh-keygen is missing")
        if os.path.basename(pwd.getpwuid(os.getuid()).pw_shell) in ("nologin", "false", ""):
            skip("this user has no shell to log in to")
        self.port = free_port()
        facts = {"folder": hosts.folder, "port": self.port,
                 "user": pwd.getpwuid(os.getuid()).pw_name}
        for name in ("host", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", hosts.path(name)],
                           check=True)
        for name, text in (("sshd_config", SSHD), ("ssh_config", CLIENT)):
            with open(hosts.path(name), "w", encoding="ascii") as f:
                f.write(text.format(**facts))
        with open(hosts.path("ssh"), "w", encoding="ascii") as f:
            f.write(f'#!/bin/sh\nexec {ssh} -F {hosts.path("ssh_config")} "$@"\n')
        self.process = subprocess.Popen(self.command(sshd, hosts.path("sshd_config")),
                                        stdin=subprocess.DEVNULL)

    @staticmethod
    def command(sshd, config):
        serve = [sshd, "-D", "-e", "-f", config]
        if os.getuid() != 0 or os.path.isdir("/run/sshd"):
            return serve
        # Root's sshd wants a folder that only a booted system has: it gets a /run of its own.
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
            skip("no mount namespaces, and no /run/sshd")
        return ["unshare", "-m", "sh", "-c",
                'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$@"', "sh", *serve]

    def __enter__(self):
        end = time.monotonic() + WAIT_S
        while True:
            check(self.process.poll() is None, f"sshd ended with {self.process.returncode}")
            check(time.monotonic() < end, "sshd does not listen")
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.05)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=WAIT_S)


@test
def a_real_sshd_serves_it():
    with Hosts() as hosts, Sshd(hosts):
        done = hosts.run("-H", "one,shut,two", "doctor", "--json=short", "--root", hosts.folder)
        equal(done.returncode, 255, f"status ({done.stderr})")
        values = [json.loads(line) for line in done.stdout.splitlines()]
        equal([v["host"] for v in values], ["one", "two"])
        check("'shut' could not be reached" in done.stderr, done.stderr)
        word = "it's $HOME \"and\" \\more"
        done = hosts.run("-H", "one", "info", word)
        equal(done.returncode, 1)
        check("it's $HOME \"and\" \\x5cmore" in done.stderr, done.stderr)


@test
def a_real_sshd_ends_its_session_with_profctl():
    with Hosts() as hosts, Sshd(hosts), socket.socket(socket.AF_UNIX) as listener:
        listener.bind(hosts.path("io.profd.Control"))
        listener.listen(1)
        listener.settimeout(WAIT_S)
        with background([PROFCTL, "-H", "one", "monitor",
                         f"--socket={hosts.path('io.profd.Control')}"], env=hosts.env,
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            connection, _ = listener.accept()
            connection.settimeout(WAIT_S)
            while b"\0" not in connection.recv(4096):
                pass
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=WAIT_S)
            # The other end of the daemon's socket is closed: the profctl over there is gone.
            equal(connection.recv(4096), b"")
            connection.close()


if __name__ == "__main__":
    main()
