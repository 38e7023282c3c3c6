#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The packages of the last commit: built twice, looked at by lintian, and the Debian ones lived with
in Debian 12 and Debian 13, from the installation through an upgrade under load to the purge."""

import atexit
import calendar
import contextlib
import functools
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from debian import SOURCE, debian  # noqa: E402
from machine import STORE, UNIT, USERS, Machine  # noqa: E402
import recording  # noqa: E402
from workload import CPUS, perf_record, spinning, wait_until  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

NAMES = ("profd", "profctl", "profd-gateway")
NEXT = "0.1.1"
PERIOD_NS = 10**9 // 999
SITE = "[Profd]\nFlushIntervalSec=1s\n\n[Session default]\nFrequency=999\n"
GATEWAY = "profd-gateway.service"
SENT = "/var/lib/profd-gateway/out"
SEND = f"[Gateway]\nIntervalSec=1s\n\n[Send files]\nType=file\nURL={SENT}\n"
RELEASES = {"bookworm": "debian_12", "trixie": "debian_13"}
# What is no part of a package: what was put here, logs, and what apt and man keep of all packages.
NOT_OURS = ("/root/packages", "/var/log/", "/var/lib/apt/", "/var/cache/apt/", "/var/cache/debconf/", "/var/cache/man/")


@functools.cache
def scratch():
    folder = tempfile.mkdtemp(prefix="profd-package.", dir="/var/tmp")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def do(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **options)
    check(done.returncode == 0, f"{' '.join(command)} ends with {done.returncode}: {done.stdout[-3000:]}")
    return done.stdout


def clone(name):
    """A tree of its own with the last commit."""
    folder = os.path.join(scratch(), name)
    do("git", "clone", "--quiet", "--shared", SOURCE, folder)
    return folder


def built(tree, kind="deb"):
    folder = os.path.join(tree, "packages")
    do(os.path.join(tree, "packaging", f"build-{kind}"), folder)
    return folder


@functools.cache
def packages():
    return built(clone("first"))


@functools.cache
def next_packages():
    """Of a later version, by a commit that changes nothing else."""
    tree = clone("next")
    for path, pattern, new in (("meson.build", r"version : '[^']+'", f"version : '{NEXT}'"),
                               ("packaging/debian/changelog", r"\([^)]*\)", f"({NEXT}-1)")):
        path = os.path.join(tree, path)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(re.sub(pattern, new, text, count=1))
    do("git", "-C", tree, "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-am", "next")
    return built(tree)


def files_of(folder, *patterns):
    return {os.path.basename(path): path for pattern in patterns for path in glob.glob(os.path.join(folder, pattern))}


def check_same(first, second):
    equal(sorted(first), sorted(second), "files of the second build")
    for name, path in first.items():
        with open(path, "rb") as f, open(second[name], "rb") as g:
            check(f.read() == g.read(), f"{name} differs from one build to the next")


@test
def two_builds_of_debian_packages_are_the_same_bytes():
    patterns = ("*.deb", "*.dsc", "*.tar.xz")
    first = files_of(packages(), *patterns)
    check({name.split("_")[0] for name in first} >= {*NAMES, "profd-dbgsym"}, f"there are {sorted(first)}")
    check_same(first, files_of(built(clone("a-longer-name-of-a-folder")), *patterns))


@test
def lintian_finds_no_error_and_no_warning():
    do("lintian", "--allow-root", "--fail-on", "error,warning", *files_of(packages(), "*.changes").values())


@test
def rpms_have_the_same_files_and_can_be_installed():
    first = files_of(built(clone("rpm"), "rpm"), "*.rpm")
    equal(sorted(re.match(r"(.*?)-[0-9]", name)[1] for name in first), sorted(NAMES), "packages")
    check_same(first, files_of(built(clone("a-longer-name-for-rpms"), "rpm"), "*.rpm"))
    # Into a folder, since nothing here is known to rpm; scriptlets would reach the host.
    root = os.path.join(scratch(), "root")
    os.mkdir(root)
    do("rpm", "--root", root, "--initdb")
    do("rpm", "--root", root, "--install", "--nodeps", "--noscripts", *first.values())
    unit = "/usr/lib/systemd/system/profd.service"
    for file in (unit, "/usr/sbin/profd", "/usr/bin/profctl", "/usr/libexec/profd/profd-elf",
                 "/usr/libexec/profd/take-over", "/etc/profd/profd.conf", "/usr/sbin/profd-gateway",
                 "/usr/lib/systemd/system/profd-gateway.service", "/etc/profd/gateway.conf"):
        check(os.path.isfile(root + file), f"no {file} is installed")
    with open(root + unit, encoding="utf-8") as f:
        check("ExecStart=/usr/sbin/profd\n" in f.read(), "the unit starts another program")
    equal(do("rpm", "--root", root, "--query", "--configfiles", "profd").split(), ["/etc/profd/profd.conf"], "configuration")
    do("rpm", "--root", root, "--erase", "--nodeps", "--noscripts", *NAMES)
    equal(do("find", root + "/etc", root + "/usr", "-not", "-type", "d"), "", "what is left")


@test
def the_daemon_depends_only_on_needed_packages():
    wanted = do("dpkg-deb", "-f", *files_of(packages(), "profd_*.deb").values(), "Depends")
    check("libc6" in wanted and "libevent" in wanted, wanted)
    for other in ("perf", "procps", "python", "libpfm"):
        check(other not in wanted, f"profd depends on {wanted}")


@test
def files_are_installed_where_the_options_of_meson_say():
    folders = {"bindir": "/one/bin", "datadir": "/two/share", "libexecdir": "/three/exec", "mandir": "/four/man",
               "sbindir": "/five/sbin", "sysconfdir": "/six/etc", "unitdir": "/seven/unit", "sysusersdir": "/eight/users",
               "tmpfilesdir": "/nine/tmpfiles", "catalogdir": "/ten/catalog"}
    build = os.path.join(scratch(), "folders")
    do("meson", "setup", build, SOURCE, "--prefix=/opt/profd", "-Dtests=false",
       *(f"-D{option}={folder}" for option, folder in folders.items()))
    places = json.loads(do("meson", "introspect", "--installed", build)).values()
    for place in places:
        check(place.startswith(tuple(folder + "/" for folder in folders.values())), f"{place} is in no folder of ours")
    for file in ("/one/bin/profctl", "/three/exec/profd/profd-elf", "/three/exec/profd/take-over", "/five/sbin/profd", "/six/etc/profd/profd.conf",
                 "/seven/unit/profd.service", "/eight/users/profd.conf", "/four/man/man8/profd.8",
                 "/two/share/varlink/io.profd.Control.varlink"):
        check(file in places, f"there is no {file} in {places}")
    with open(os.path.join(build, "systemd", "profd.service"), encoding="utf-8") as f:
        check("ExecStart=/five/sbin/profd" in f.read(), "the unit starts another program")
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        check('PROFD_SYSCONFDIR=\\"/six/etc\\"' in json.dumps(json.load(f)).replace('\\\\\\"', '\\"'),
              "the daemon looks for its configuration elsewhere")


def put(disk, folder):
    """The packages, where the machine finds them; what to tell apt."""
    os.makedirs(disk.path("/root/packages"), exist_ok=True)
    out = []
    for name in NAMES:
        for path in files_of(folder, f"{name}_*.deb").values():
            shutil.copy(path, disk.path("/root/packages"))
            out.append(f"/root/packages/{os.path.basename(path)}")
    equal(len(out), len(NAMES), "packages")
    return out


APT = ("env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "apt-get", "-q", "-y", "--no-install-recommends",
       "-o", "Dpkg::Options::=--force-unsafe-io")


@contextlib.contextmanager
def booted(disk):
    machine = Machine(disk)
    try:
        yield machine
    finally:
        machine.close()


def run_hint(machine, user, said):
    """What to do next, as it was printed: perf shows the snapshot, or what becomes the user's own."""
    hint = re.search(r": (?:(perf report .*)|(profctl show-snapshot .* -o (\S+)))$", said, re.MULTILINE)
    check(hint, f"{user} is told nothing to do next: {said}")
    report, save, saved = hint.groups()
    words = f"{report} --stdio" if report else f"{save} && perf report --stdio -i {saved}"
    done = machine.as_user(user, "sh", "-c", f"cd /tmp/{user} && {words}")
    check(done.returncode == 0 and "Samples" in done.stdout, f"'{words}' by {user}: {done.stdout}{done.stderr}")


def define(name, release):
    def need_a_fitting_build():
        """Packages are for the Debian that they were built on, and for later ones."""
        with open("/etc/os-release", encoding="utf-8") as f:
            host = re.search(r"^VERSION_CODENAME=(\w+)", f.read(), re.MULTILINE)
        order = list(RELEASES)
        if host and host[1] in order and order.index(host[1]) > order.index(name):
            skip(f"the packages are built on {host[1]}, which is newer than {name}")

    def what_is_installed_records_at_boot_and_serves_whom_it_may():
        need_a_fitting_build()
        with debian(name) as disk:
            done = disk.run(*APT, "install", *put(disk, packages()))
            check(done.returncode == 0, done.stdout + done.stderr)
            check(f"{len(NAMES)} newly installed" in done.stdout, f"more than ours is installed: {done.stdout}")
            for user, groups in USERS.items():
                disk.run("useradd", "--no-create-home", "--groups", groups, user)
            with booted(disk) as machine:
                said = machine.run("systemd-analyze", "verify", "--man=no", UNIT)
                check(said.returncode == 0 and not said.stderr.strip(), f"systemd-analyze verify: {said.stderr}")
                machine.wait_for_journal("Recording ")
                begin = time.monotonic()
                equal(machine.do("systemctl", "is-active", UNIT), "active", "is-active")
                equal(machine.do("systemctl", "is-enabled", UNIT), "enabled", "is-enabled")
                check_catalog(machine)
                check("default" in machine.do("profctl", "status"), "the status names no session")
                wait_until(lambda: time.monotonic() > begin + 6, 30, "six seconds to look back on")
                for user in ("root", "reader", "admin"):
                    machine.do("install", "-d", "-o", user, f"/tmp/{user}")
                    done = machine.as_user(user, "profctl", "snapshot", "--last", "5s")
                    equal(done.returncode, 0, f"status of profctl snapshot by {user} ({done.stdout}{done.stderr})")
                    run_hint(machine, user, done.stderr)
                for user in ("stranger", "nobody"):
                    done = machine.as_user(user, "profctl", "snapshot", "--last", "5s")
                    equal(done.returncode, 4, f"status of profctl snapshot by {user} ({done.stdout}{done.stderr})")
                    check(done.stderr.strip() and not done.stdout, f"{user} is told '{done.stdout}' '{done.stderr}'")
                a_program_that_cannot_take_over_gets_a_restart(machine)
                # It waits for a destination that somebody names, and stays when profd goes.
                equal(machine.run("systemctl", "is-enabled", GATEWAY).stdout.strip(), "disabled", "is-enabled of the gateway")
                equal(machine.run("systemctl", "is-active", GATEWAY).stdout.strip(), "inactive", "is-active of the gateway")
                machine.do(*APT, "purge", "profd")
                equal(sorted(os.listdir(disk.path("/etc/profd"))), ["gateway.conf"], "what is left in /etc/profd")

    def an_upgrade_has_no_gap_and_a_purge_leaves_nothing():
        need_a_fitting_build()
        with debian(name) as disk, booted(disk) as machine:
            machine.do(*APT, "install", *put(disk, packages()))
            equal(machine.do("systemctl", "is-active", UNIT), "active", "is-active after the installation")
            machine.do("mkdir", "/etc/profd/profd.conf.d")
            with open(disk.path("/etc/profd/profd.conf.d/50-site.conf"), "w", encoding="utf-8") as f:
                f.write(SITE)
            with open(disk.path("/etc/profd/profd.conf"), "a", encoding="utf-8") as f:
                f.write("# ours\n")
            machine.do("systemctl", "reload", UNIT)
            machine.wait_for_journal("Reloaded the configuration")
            start_gateway(disk, machine)
            upgrade(disk, machine)
            check_gateway(disk, machine)
            machine.do(*APT, "purge", "profd-gateway")
            equal(sorted(os.listdir(disk.path("/etc/profd"))), ["profd.conf", "profd.conf.d"], "what is left in /etc/profd")
            left = machine.run("find", "/", "-xdev", "-name", "*profd-gateway*").stdout.split()
            equal([path for path in left if not path.startswith(NOT_OURS)], [], "what the purge of the gateway left")
            equal(machine.do("systemctl", "is-active", UNIT), "active", "is-active without the gateway")
            machine.do(*APT, "remove", "profd", "profctl")
            equal(machine.run("systemctl", "is-active", UNIT).stdout.strip(), "inactive",
                  f"is-active after the removal, which the journal tells of: {machine.journal()}")
            check(not os.path.exists(disk.path("/usr/sbin/profd")), "the program is there after the removal")
            check_recording(disk)
            for path, words in (("profd.conf", "# ours\n"), ("profd.conf.d/50-site.conf", SITE)):
                with open(disk.path(f"/etc/profd/{path}"), encoding="utf-8") as f:
                    check(f.read().endswith(words), f"{path} did not survive the removal")
            machine.do(*APT, "purge", "profd", "profctl")
            check_purged(machine)

    def sent(disk):
        """When each interval begins that was sent, in seconds."""
        stamps = [re.search(r"-(\d{8}T\d{6})Z\.pb\.gz$", name) for name in os.listdir(disk.path(SENT))]
        return sorted(calendar.timegm(time.strptime(stamp[1], "%Y%m%dT%H%M%S")) for stamp in stamps if stamp)

    def start_gateway(disk, machine):
        machine.do("mkdir", "/etc/profd/gateway.conf.d")
        disk.write("/etc/profd/gateway.conf.d/50-site.conf", SEND)
        machine.do("install", "-d", "-o", "profd-gateway", "-g", "profd-read", "-m", "750", os.path.dirname(SENT), SENT)
        machine.do("systemctl", "enable", "--now", GATEWAY)
        wait_until(lambda: len(sent(disk)) >= 2, 60, "intervals before the upgrade")
        disk.gateway = machine.show_of(GATEWAY, "MainPID")

    def check_gateway(disk, machine):
        """The upgrade has restarted it, and it went on at its position."""
        check(machine.show_of(GATEWAY, "MainPID") not in ("0", disk.gateway), "the gateway was not restarted")
        equal(machine.do("readlink", f"/proc/{machine.show_of(GATEWAY, 'MainPID')}/exe"), "/usr/sbin/profd-gateway", "its program")
        done = time.time()
        wait_until(lambda: sent(disk)[-1] > done, 60, "intervals after the upgrade")
        # One that was late comes behind newer ones.
        wait_until(lambda: (seconds := sent(disk)) == list(range(seconds[0], seconds[-1] + 1)), 60,
                   f"each interval to be sent, of {sent(disk)}")
        with open(disk.path("/etc/profd/gateway.conf.d/50-site.conf"), encoding="utf-8") as f:
            equal(f.read(), SEND, "what the administrator has configured")

    def check_catalog(machine):
        """What journalctl -x tells of our entries is known."""
        with open(machine.disk.path("/usr/lib/systemd/catalog/profd.catalog"), encoding="utf-8") as f:
            ours = re.findall(r"^-- ([0-9a-f]{32})$", f.read(), re.MULTILINE)
        known = machine.do("journalctl", "--no-pager", "--list-catalog")
        check(len(ours) > 10, f"the catalog holds {ours}")
        equal([number for number in ours if number not in known], [], "messages that the journal does not know")

    def a_program_that_cannot_take_over_gets_a_restart(machine):
        keeper, program = machine.show("MainPID"), "/usr/sbin/profd"
        # In its place all at once, as packages do it.
        machine.do("ln", program, program + ".kept")
        machine.do("cp", "/bin/false", program + ".new")
        machine.do("mv", program + ".new", program)
        said = machine.run("/usr/libexec/profd/take-over").stdout
        machine.do("mv", program + ".kept", program)
        check("could not take over" in said and "restarting" in said, f"take-over says '{said}'")
        machine.do("systemctl", "restart", UNIT)
        check(machine.show("MainPID") != keeper, "the keeper is the same")
        equal(machine.run("/usr/libexec/profd/take-over").stdout, "", "what take-over says with nothing to do")

    def upgrade(disk, machine):
        keeper, old = machine.show("MainPID"), machine.recorder()
        reference = os.path.join(disk.folder, "perf.data")
        # The reference begins when we record at its rate, so that what we have of its time is all of it.
        wait_until(lambda: " at 999 Hz" in machine.journal(), 30, "the new rate")
        with spinning(), perf_record(reference):
            begin = len(machine.entries())
            time.sleep(2)
            said = machine.do(*APT, "install", *put(disk, next_packages()))
            check("records on with the new program" in said, said)
            time.sleep(2)
        check(machine.recorder() not in (None, old), "the recorder is the same")
        equal(machine.show("MainPID"), keeper, "main process after the upgrade")
        equal(machine.show("NRestarts"), "0", "restarts of the service")
        check("The new recorder takes over" in [e["MESSAGE"] for e in machine.entries()[begin:]], machine.journal())
        check(NEXT in machine.do("profctl", "status"), "the status is that of the old version")
        equal(machine.do("readlink", f"/proc/{machine.recorder()}/exe"), "/usr/sbin/profd", "program of the recorder")

    def check_recording(disk):
        """As it was at the end: beside the reference there is no gap but the machine's."""
        folder = disk.path(STORE)
        segments = sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".perf.data"))
        check(len(segments) >= 2, f"there are {segments}")
        equal([f for f in os.listdir(folder) if "~" in f or f.endswith(".open")], [], "segments that are not finished")
        reference = recording.samples(os.path.join(disk.folder, "perf.data"))
        samples = recording.samples(segments)
        equal(recording.twice(samples)[:3], [], "samples that are there twice")
        equal(recording.lost(segments), 0, "samples that the kernel dropped")
        found = recording.seams(samples, reference, PERIOD_NS, range(CPUS))
        equal(found[:3], [], f"{len(found)} gaps among {len(samples)} samples")
        begin, end = recording.common_window(samples, reference)
        ours, others = (longest(recording.within(each, begin, end)) / 1e6 for each in (samples, reference))
        print(f"# {release}: {len(samples)} samples around the upgrade; between two on one CPU at most {ours:.2f} ms, "
              f"{others:.2f} for perf record beside it")

    def longest(samples):
        return max(b - a for t in recording.by_cpu(samples).values() for a, b in zip(t, t[1:]))

    def check_purged(machine):
        left = machine.run("find", "/", "-xdev", "(", "-iname", "*profd*", "-o", "-iname", "*profctl*", ")").stdout.split()
        equal([path for path in left if not path.startswith(NOT_OURS)], [], "what the purge left")
        equal(machine.run("ls", "/run/profd").stdout, "", "what is left in /run/profd")
        listed = machine.run("dpkg-query", "-W", "-f", "${Package} ${Status}\n", "profd*", "profctl*").stdout
        check("config-files" not in listed and "installed\n" not in listed, listed)
        # Debian keeps users and groups, so that nobody else's files become theirs.
        machine.do("getent", "passwd", "profd")
        machine.do("getent", "group", "profd-read", "profd-admin")

    for function in (what_is_installed_records_at_boot_and_serves_whom_it_may,
                     an_upgrade_has_no_gap_and_a_purge_leaves_nothing):
        function.__name__ = f"on_{release}_{function.__name__}"
        test(function)


for _name, _release in RELEASES.items():
    define(_name, _release)


if __name__ == "__main__":
    main()
