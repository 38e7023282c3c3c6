#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The files of an installation: programs, stripped and small, pages, completions, configuration; each
file in its folder's option, and in one package of each kind; and what systemd's own programs say of
the unit, the users, the folders and the catalog, in a root of their own."""

import fnmatch
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from tree import BUILD, SOURCE, none, read
from tap import check, equal, main, skip, test

PROGRAMS = ("profd", "profctl", "profd-gateway")
OTHERS = ("profctl.1", "profd.7", "profd.8", "profd.conf.5",
          "profd-perfdata.5", "profd/profd.conf", "_profctl", "profctl.bash",
          "profctl.fish", "perf_to_profile", "perf_to_profile.1", "_profd", "profd.bash", "profd.fish", "profd.service", "sysusers.d/profd.conf",
          "tmpfiles.d/profd.conf", "profd.catalog",
          "profd/profd-elf", "profd/take-over", "varlink/io.profd.Control.varlink",
          "gateway.conf.5", "profd-gateway.8", "profd/gateway.conf", "_profd-gateway", "profd-gateway.bash",
          "profd-gateway.fish", "profd-gateway.service", "sysusers.d/profd-gateway.conf", "profd-gateway.catalog",
          "profd-gateway/alerts.yaml", "profd-gateway/dashboard.json")
# Links are no part of meson's plan of an installation.
LINKS = ("/usr/bin/perf_to_profile", "/usr/share/man/man1/perf_to_profile.1")
LIMIT_BYTES = 2 << 20
# The units that every unit needs, for a root that has nothing else.
TARGETS = ("basic", "multi-user", "network", "shutdown", "sysinit")
UNITS = ("profd.service", "profd-gateway.service")
PROGRAMS_OF_OTHERS = ("/bin/kill",)

# Folders as meson calls them, and as both kinds of packages have them.
FOLDERS = {
    "{bindir}": "/usr/bin",
    "{datadir}": "/usr/share",
    "{libexecdir}": "/usr/libexec",
    "{mandir}": "/usr/share/man",
    "{sbindir}": "/usr/sbin",
    "{sysconfdir}": "/etc",
}
# The folders of systemd, and where it looks in every case.
SYSTEMD = {
    "systemd/system": "/usr/lib/systemd/system",
    "sysusers.d": "/usr/lib/sysusers.d",
    "tmpfiles.d": "/usr/lib/tmpfiles.d",
    "systemd/catalog": "/usr/lib/systemd/catalog",
}
MACROS = {
    "%{_bindir}": "/usr/bin",
    "%{_datadir}": "/usr/share",
    "%{_libexecdir}": "/usr/libexec",
    "%{_mandir}": "/usr/share/man",
    "%{_journalcatalogdir}": "/usr/lib/systemd/catalog",
    "%{_prefix}": "/usr",
    "%{_sbindir}": "/usr/sbin",
    "%{_sysconfdir}": "/etc",
    "%{_sysusersdir}": "/usr/lib/sysusers.d",
    "%{_tmpfilesdir}": "/usr/lib/tmpfiles.d",
    "%{_unitdir}": "/usr/lib/systemd/system",
}


def installed(folder):
    run = subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--destdir", folder],
                         capture_output=True, text=True, check=False)
    check(run.returncode == 0, run.stdout + run.stderr)
    found = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {name: path for path in found for name in (path.name, "/".join(path.parts[-2:]))}


def faults(found):
    for name in sorted(set(PROGRAMS + OTHERS) - found.keys()):
        yield f"{name} is not installed"
    for name in PROGRAMS:
        if name not in found:
            continue
        path = found[name]
        if os.stat(path).st_size > LIMIT_BYTES:
            yield f"{name} has {os.stat(path).st_size} bytes"
        said = subprocess.run(["nm", str(path)], capture_output=True, text=True, check=False)
        if said.stdout.strip():
            yield f"{name} is not stripped"


def systemd_root(folder):
    """An installation that systemd's programs take for a host; its units."""
    found = installed(folder)
    units = [found[name] for name in UNITS]
    for target in TARGETS:
        (units[0].parent / f"{target}.target").write_text("[Unit]\nDescription=Of this test\n", encoding="ascii")
    for program in PROGRAMS_OF_OTHERS:
        path = Path(folder + program)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o755)
    return units


def systemd_says(program, folder, *arguments):
    run = subprocess.run([program, f"--root={folder}", *arguments], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def plan():
    """Where meson would put each file, its folder by the name of the option."""
    said = subprocess.run(["meson", "introspect", "--install-plan", str(BUILD)], capture_output=True, text=True,
                          check=True).stdout
    return sorted(row["destination"] for rows in json.loads(said).values() for row in rows.values())


def packaged(place):
    """As a package has it, or None where no option names the folder."""
    for option, folder in FOLDERS.items():
        if place.startswith(option + "/"):
            return folder + place.removeprefix(option)
    if place.startswith("/etc/"):
        return place
    folder, name = os.path.split(place)
    for ending, own in SYSTEMD.items():
        if folder.endswith("/" + ending):
            return f"{own}/{name}"
    return None


def places():
    return [packaged(place) for place in plan() if packaged(place)] + list(LINKS)


def debian_patterns():
    for package in PROGRAMS:
        for line in read(f"packaging/debian/{package}.install").splitlines():
            yield "/" + line.split()[0].replace("${env:UNIT_DIR}", "usr/lib/systemd/system")


def rpm_patterns():
    for line in re.split(r"^%files.*$", read("packaging/profd.spec"), flags=re.MULTILINE)[1:]:
        for word in line.split():
            for macro, folder in MACROS.items():
                word = word.replace(macro, folder)
            if word.startswith("/"):
                yield word


def matches(place, pattern):
    return fnmatch.fnmatch(place, pattern) or place.startswith(pattern.rstrip("/") + "/")


def unpackaged(patterns):
    patterns, wanted = list(patterns), places()
    for place in wanted:
        if not any(matches(place, pattern) for pattern in patterns):
            yield f"{place} is in no package"
    for pattern in patterns:
        if not any(matches(place, pattern) for place in wanted):
            yield f"{pattern} is not installed"


@test
def all_files_are_installed_and_programs_are_stripped_and_small():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        none(faults(installed(folder)))


@test
def every_installation_folder_has_an_option():
    check(len(plan()) > 20, "meson would install next to nothing")
    none(f"no option names the folder of {place}" for place in plan() if not packaged(place))


@test
def every_installed_file_is_in_a_debian_package():
    none(unpackaged(debian_patterns()))


@test
def every_installed_file_is_in_an_rpm_package():
    none(unpackaged(rpm_patterns()))


@test
def the_page_names_the_folder_where_the_schemas_are_installed():
    installed_here = [place for place in places() if place.endswith(".json") and "/schema/" in place]
    equal(sorted(os.path.basename(place) for place in installed_here),
          sorted(path.name for path in (SOURCE / "doc/schema").glob("*.json")), "schemas that are installed")
    equal(re.findall(r"^\.Pa (/\S+/schema)\b", read("doc/profctl.1"), re.MULTILINE),
          sorted({os.path.dirname(place) for place in installed_here}), "folders that profctl(1) names")


@test
def packages_of_profd_need_profctl_of_the_same_version():
    control = read("packaging/debian/control")
    debian = re.search(r"^Package: profd\n(?:.+\n)*?Depends: (.*(?:\n .*)*)", control, re.MULTILINE)
    check("profctl (= ${binary:Version})" in re.split(r",\s*", debian[1]), f"profd of Debian depends on {debian[1]}")
    rpm = re.split(r"^%package", read("packaging/profd.spec"), flags=re.MULTILINE)[0]
    check(re.search(r"^Requires: +profctl = %\{version\}-%\{release\}$", rpm, re.MULTILINE),
          "profd of RPM requires no profctl of its own version")


@test
def packages_have_the_version_of_the_tree():
    version = re.search(r"version : '([^']+)'", (SOURCE / "meson.build").read_text(encoding="utf-8"))[1]
    equal(re.search(r"\((.*)-[^-]*\)", read("packaging/debian/changelog"))[1], version, "that of Debian's")
    equal(re.search(r"^Version: *(\S+)", read("packaging/profd.spec"), re.MULTILINE)[1], version, "that of RPM's")


@test
def systemd_accepts_the_units_and_finds_an_inserted_fault():
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        for unit in systemd_root(folder):
            equal(systemd_says("systemd-analyze", folder, "verify", "--man=no", unit.name), (0, ""), "what it says")
            sound = unit.read_text(encoding="utf-8")
            unit.write_text(sound.replace("WatchdogSec=", "WatchdogSecs="), encoding="utf-8")
            check("WatchdogSecs" in systemd_says("systemd-analyze", folder, "verify", "--man=no", unit.name)[1],
                  "an unknown key is passed over")
            unit.write_text(sound, encoding="utf-8")


@test
def systemd_makes_the_users_the_folders_and_the_catalog():
    if os.geteuid() != 0:
        skip("needs root, to give folders to others")
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        systemd_root(folder)
        check(systemd_says("systemd-sysusers", folder)[0] == 0, "the users were not made")
        groups = {line.split(":")[0]: int(line.split(":")[2])
                  for line in Path(folder, "etc/group").read_text(encoding="ascii").splitlines()}
        check({"profd", "profd-read", "profd-admin", "profd-gateway"} <= groups.keys(), f"the groups are {groups}")
        readers = Path(folder, "etc/group").read_text(encoding="ascii").split("profd-read:")[1].splitlines()[0]
        check("profd-gateway" in readers, f"profd-gateway may not read: {readers}")
        check(systemd_says("systemd-tmpfiles", folder, "--create")[0] == 0, "the folders were not made")
        for path, mode in (("var/lib/profd", 0o40750), ("run/profd", 0o40755)):
            made = os.stat(Path(folder, path))
            equal((made.st_mode, made.st_gid), (mode, groups["profd-read"]), path)
        check(systemd_says("journalctl", folder, "--update-catalog")[0] == 0, "the catalog was not made")
        texts = systemd_says("journalctl", folder, "--list-catalog")[1].count(" profd: ")
        equal(texts, sum(read(f"systemd/{name}.catalog").count("\nSubject: ") for name in ("profd", "profd-gateway")),
              "texts in the catalog")


if __name__ == "__main__":
    main()
