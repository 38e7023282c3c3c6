#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What profd keeps of programs, so that their samples have names when the programs are gone: perf reads
it, budget and restart hold, and files that strangers laid out get nobody else's file into the store."""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon, session  # noqa: E402
from profctl import ended, profctl  # noqa: E402
from varlink import Varlink, fault  # noqa: E402
from workload import end, need_root, program, scratch, wait_until  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

LOAD = build_path("tests", "bench", "load")
FUNCTIONS = {"work_level", "work_other", "main"}
USER = 64990
GROUPS = {"profd": USER, "profd-read": 64992, "profd-admin": 64993}
SESSION = session(Event="cpu-clock", Frequency=499, RotateIntervalSec="1h")
CONFIG = "[Profd]\nFlushIntervalSec=200ms\n" + SESSION
CODE = 0x200000000000
SECRET = "1000 10 secret_of_another_user"


def readelf(path):
    said = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", said)
    if not found:
        skip(f"no build id in {path}, or no readelf")
    return found.group(1)


def copy_with_id_of_its_own(path):
    """Copies LOAD, which other tests run at the same time, with another build id; returns it."""
    old = bytes.fromhex(readelf(LOAD))
    new = os.urandom(len(old))
    with open(LOAD, "rb") as f:
        data = f.read()
    equal(data.count(old), 1, "build ids in the file")
    shutil.copy(LOAD, path)
    with open(path, "wb") as f:
        f.write(data.replace(old, new))
    return new.hex()


def binaries(daemon):
    with Varlink(daemon.control()) as v:
        return {b["name"]: b for b in v.members("ListBinaries", "binary")}


def metric(daemon, name):
    with Varlink(daemon.control()) as v:
        return next(m["value"] for m in v.one("GetMetrics")["metrics"] if m["name"] == name)


def folder_of(daemon, build_id):
    return os.path.join(daemon.store, "binaries", ".build-id", build_id[:2], build_id[2:])


@contextlib.contextmanager
def running(path, *arguments):
    process = subprocess.Popen([path, *arguments], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        end(process)


def named(recording, cache, comm):
    """Samples by function of a program, as perf names them with these files alone; "" has none."""
    said = subprocess.run(["perf", "--buildid-dir", cache, "report", "--stdio", "-n", "--no-children", "-g", "none",
                           "--comm", comm, "--sort", "dso,sym", "-t", ",", "-i", recording],
                          capture_output=True, text=True, errors="replace", check=True).stdout
    rows = [line.split(",") for line in said.splitlines() if line.strip() and not line.startswith("#")]
    found = {}
    for row in rows:
        name = row[-1].split()[-1]
        if row[2].strip() == comm:
            name = "" if name.startswith("0x") else name
            found[name] = found.get(name, 0) + int(row[1])
    return found


def snapshot(daemon):
    with Varlink(daemon.control()) as v:
        return v.one("Snapshot", lastUsec=60_000_000)["snapshot"]["path"]


def lay_traps(store):
    """What a stranger may have put into the folder before."""
    ids = os.path.join(store, "binaries", ".build-id")
    os.makedirs(os.path.join(ids, "02", "0" * 38))
    os.makedirs(os.path.join(ids, "03", "0" * 38))
    os.makedirs(os.path.join(ids, "04", "0" * 38, "elf"))
    os.symlink("/etc", os.path.join(ids, "00"))
    os.mkfifo(os.path.join(ids, "01"))
    about = {"version": 1, "kind": "elf", "owner": 0, "bytes": os.path.getsize("/etc/passwd"), "paths": []}
    os.symlink("/etc/passwd", os.path.join(ids, "02", "0" * 38, "elf"))
    os.mkfifo(os.path.join(ids, "03", "0" * 38, "elf"))
    for number in ("02", "03", "04"):
        with open(os.path.join(ids, number, "0" * 38, "about.json"), "w", encoding="ascii") as f:
            json.dump(about, f)
    os.makedirs(os.path.join(store, "binaries", "maps"))
    os.symlink("/etc/passwd", os.path.join(store, "binaries", "maps", "1-1.map"))
    for path, folders, files in os.walk(store):
        for name in (".", *folders, *files):
            os.chown(os.path.join(path, name), USER, USER, follow_symlinks=False)


def symbols_without_profd(folder, path, comm):
    """The names that `profctl report` gives where it can ask no profd and has fetched nothing before."""
    with scratch() as home:
        said = profctl("report", "--json=short", "--by=symbol", f"--comm={comm}", path, socket=f"{folder}/nobody",
                       env={**os.environ, "HOME": home, "XDG_CACHE_HOME": home})
    check(said.returncode in (0, 8), f"status {said.returncode} of a report of {path}: {said.stderr}")
    return {row["symbol"] for row in json.loads(said.stdout)["rows"]}


@test
def perf_names_the_functions_of_a_program_that_was_deleted():
    need_root()
    with scratch() as folder:
        victim = os.path.join(folder, "victim")
        build_id = copy_with_id_of_its_own(victim)
        os.mkdir(os.path.join(folder, "store"))
        lay_traps(os.path.join(folder, "store"))
        with Daemon(folder, config=CONFIG, groups=GROUPS, profd_user=USER) as daemon:
            with running(victim):
                wait_until(lambda: victim in binaries(daemon).get(build_id, {}).get("paths", []), 30, "the program to be kept")
                time.sleep(1)
            os.unlink(victim)
            shutil.copy("/bin/cat", victim)
            recording = snapshot(daemon)
            cache = os.path.join(daemon.store, "binaries")
            kept = binaries(daemon)
            check(all("0" * 38 not in name and name != "1-1" for name in kept), f"a trap was listed: {sorted(kept)}")
            equal((kept[build_id]["kind"], kept[build_id]["buildId"]), ("elf", build_id), "kind and build id")
            path = os.path.join(folder_of(daemon, build_id), "elf")
            with Varlink(daemon.control()) as v, open(path, "rb") as f:
                equal(v.read(binary=build_id), f.read(), "what Read() gives")
            with Varlink(daemon.control()) as v, fault("NoSuchBinary", name="../../x"):
                v.read(binary="../../x")
            st = os.stat(path)
            equal((st.st_uid, st.st_gid, st.st_mode & 0o7777), (0, GROUPS["profd-read"], 0o640), "owner and mode")
            st = os.stat(os.path.dirname(path))
            equal((st.st_gid, st.st_mode & 0o7777), (GROUPS["profd-read"], 0o750), "group and mode of its folder")
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
            for path in (recording, daemon.segments()[-1]):
                check("work_level" in symbols_without_profd(folder, path, "victim"), f"profctl names no function of {path} when profd does not run")
            moved = shutil.copy(recording, os.path.join(folder, "moved.perf.data"))
            names = symbols_without_profd(folder, moved, "victim")
            check("[victim] [replaced]" in names and not FUNCTIONS & names, f"names away from the store: {names}")
        found, without = named(recording, cache, "victim"), named(recording, os.path.join(folder, "none"), "victim")
        check(sum(without.values()) > 50 and not FUNCTIONS & set(without), f"names without the store: {without}")
        check(found.get("", 0) * 20 < sum(found.values()) and "work_level" in found, f"names with the store: {found}")
        check(set(found) <= FUNCTIONS | {"", "_start"}, f"wrong names: {found}")


@test
def what_is_kept_survives_a_restart_and_goes_by_the_budget():
    need_root()
    build_id = readelf(LOAD)
    with scratch() as folder:
        with Daemon(folder, config=CONFIG) as daemon:
            with running(LOAD):
                wait_until(lambda: build_id in binaries(daemon), 30, "the program to be kept")
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")
        inode = os.stat(os.path.join(folder_of(daemon, build_id), "elf")).st_ino
        with Daemon(folder, config=CONFIG) as daemon:
            wait_until(lambda: build_id in binaries(daemon), 30, "the program to be listed")
            with running(LOAD):
                time.sleep(1.5)
            equal(os.stat(os.path.join(folder_of(daemon, build_id), "elf")).st_ino, inode, "the file, not written again")
            before = binaries(daemon)
            with Varlink(daemon.control()) as v:
                store = v.one("GetStatus")["store"]
            equal(store["binaryLimitBytes"], min(512 << 20, store["limitBytes"] // 4), "the limit")
            check(store["usedBytes"] >= store["binaryBytes"] >= sum(b["bytes"] for b in before.values()), f"{store}")
            # What was used last stays: the program, not what was sampled before it.
            limit = 64 << 10
            daemon.configure(CONFIG.replace("[Profd]\n", f"[Profd]\nBinariesMaxUse={limit}\n"))
            daemon.send(signal.SIGHUP)
            wait_until(lambda: metric(daemon, "profd_binary_bytes") <= limit, 30, "the budget to hold")
            after = binaries(daemon)
            gone = [b["lastUsedUsec"] for name, b in before.items() if name not in after]
            check(gone, "nothing was removed")
            check(all(b["lastUsedUsec"] >= max(gone) for b in after.values()), "a later use was removed before an earlier")
            daemon.configure(CONFIG.replace("[Profd]\n", "[Profd]\nBinariesMaxUse=0\n"))
            daemon.send(signal.SIGHUP)
            wait_until(lambda: not binaries(daemon), 30, "everything to be removed")
            equal(glob.glob(os.path.join(daemon.store, "binaries", ".build-id", "*", "*", "elf")), [], "files left")
            equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


# As $$ of the shell that becomes the program; $map is the file, and /tmp is a mount of its own.
MAPS = {
    "plain": 'printf "%s\\n" "200000000000 40 made_by_a_jit" nonsense "zz 1 x" "1 0 x" > $map',
    "symlink": "echo $secret > /tmp/o; ln -s /tmp/o $map",
    "hardlink": "echo $secret > /tmp/o; ln /tmp/o $map",
    "mount": "echo $secret > /tmp/o; : > $map; mount --bind /tmp/o $map",
    "foreign": "echo $secret > $map; chown 64555 $map",
    "folder": "mkdir /tmp/d; ln -s / /tmp/d/x; mkdir $map",
    "fifo": "mkfifo $map",
    "huge": "echo $secret > $map; truncate -s 1G $map",
    "garbage": "head -c 300000 /dev/urandom > $map",
    "none": ":",
}
REFUSED = ("symlink", "hardlink", "mount", "foreign", "folder", "fifo", "huge")


@contextlib.contextmanager
def generating(kind):
    # The tree may lie below /tmp, which is another one there.
    script = (f'exec 9<{program("generated")} && mount -t tmpfs none /tmp && map=/tmp/perf-$$.map && secret="{SECRET}" && {MAPS[kind]} && '
              f'exec /proc/self/fd/9 60 {CODE:x}')
    process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script])
    try:
        yield process
        check(process.poll() is None, f"the program of {kind} ended with {process.returncode}")
    finally:
        end(process)


def maps_of(daemon):
    """What is kept of generated code, by pid."""
    found = {}
    for path in glob.glob(os.path.join(daemon.store, "binaries", "maps", "*.map")):
        with open(path, "rb") as f:
            found[int(os.path.basename(path).split("-")[0])] = f.read()
    return found


def names_in_an_archive(daemon, folder, wanted):
    """An archive has the map that profd kept, and names the code with it alone."""
    home = {**os.environ, "HOME": os.path.join(folder, "home"), "XDG_CACHE_HOME": os.path.join(folder, "cache")}
    packed = os.path.join(folder, "packed.tar.gz")
    ended(profctl("archive", "--reduced", "-o", packed, snapshot(daemon), socket=daemon.control(), env=home), 0)
    with tarfile.open(packed) as tar:
        check(wanted in tar.getnames(), f"the archive has {tar.getnames()}")
        equal(tar.extractfile(wanted).read(), b"200000000000 40 made_by_a_jit\n200000000100 40 made_later\n", "the map")
    nobody = {**os.environ, "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}
    # Of a minute of which a part was before the start.
    shown = ended(profctl("report", "--csv", "--by=symbol", packed, socket="/nonexistent", env=nobody), 8).stdout
    check("\nmade_by_a_jit," in shown, shown[:500])


@test
def maps_of_generated_code_are_kept_and_hostile_ones_refused():
    need_root()
    pids = {}
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        for kind in REFUSED:
            before = metric(daemon, "profd_code_maps_refused_total")
            with generating(kind) as process:
                pids[process.pid] = kind
                wait_until(lambda: metric(daemon, "profd_code_maps_refused_total") > before, 30, f"{kind} to be refused")
        with generating("garbage") as garbage, generating("none") as none, generating("plain") as plain:
            pids |= {garbage.pid: "garbage", none.pid: "none", plain.pid: "plain"}
            wait_until(lambda: plain.pid in maps_of(daemon), 30, "the map to be kept")
            equal(maps_of(daemon)[plain.pid], b"200000000000 40 made_by_a_jit\n", "the lines that parse")
            with open(f"/proc/{plain.pid}/root/tmp/perf-{plain.pid}.map", "a", encoding="ascii") as f:
                f.write("200000000100 40 made_later\n")
        # Its namespace is gone now, and with it every path to the file.
        wait_until(lambda: maps_of(daemon)[plain.pid].endswith(b"\n200000000100 40 made_later\n"), 30, "the last lines")
        equal({pids[pid] for pid in maps_of(daemon) if pid in pids}, {"plain"}, "whose maps are kept")
        name = next(name for name in binaries(daemon) if name.startswith(f"{plain.pid}-"))
        equal(binaries(daemon)[name]["kind"], "map", "kind")
        start = int(name.split("-")[1]) / 1e6
        check(time.time() - 120 < start < time.time(), f"the start of the process is {start}")
        names_in_an_archive(daemon, folder, f"maps/{name}.map")
        with Varlink(daemon.control()) as v:
            status = v.one("GetStatus")["sessions"][0]
        equal((status["state"], status["lost"]), ("active", 0), "state of the session, lost samples")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


def functions(output):
    """Samples by function, of the CSV of report."""
    rows = [line.split(",") for line in output.splitlines()]
    symbol, samples = rows[0].index("symbol"), rows[0].index("samples")
    return {row[symbol]: int(row[samples]) for row in rows[1:] if int(row[samples])}


@test
def jitdump_of_a_process_that_is_gone_names_its_functions_as_perf_inject_does():
    need_root()
    with scratch() as folder, Daemon(folder, config=CONFIG) as daemon:
        # perf is asked first whether this is a jitdump.
        perfs, injected = os.path.join(folder, "perf.data"), os.path.join(folder, "injected")
        subprocess.run(["perf", "record", "-q", "-k", "mono", "-e", "cpu-clock", "-F", "499", "-o", perfs, "--", program("generated"),
                        "1", f"{CODE:x}", folder], check=False, cwd=folder, timeout=60)
        subprocess.run(["perf", "inject", "--jit", "-i", perfs, "-o", injected], check=True, cwd=folder, timeout=60, capture_output=True)
        said = subprocess.run(["perf", "report", "--stdio", "-i", injected, "--sort", "sym"], capture_output=True, text=True, check=True).stdout
        check("dumped_loop" in said and "dumped_idle" not in said, f"perf names {said}")

        script = f"exec 9<{program('generated')} && mount -t tmpfs none /tmp && exec /proc/self/fd/9 60 {CODE:x} /tmp"
        process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script])
        try:
            wait_until(lambda: process.pid in maps_of(daemon), 30, "the jitdump to be kept")
            time.sleep(1)
        finally:
            end(process)
        check(not os.path.exists(f"/tmp/jit-{process.pid}.dump"), "the dump is still here")
        equal(maps_of(daemon)[process.pid], f"{CODE:x} 40 dumped_loop\n{CODE + 64:x} 40 dumped_idle\n".encode(), "what is kept of the dump")
        home = {**os.environ, "HOME": os.path.join(folder, "home"), "XDG_CACHE_HOME": os.path.join(folder, "cache")}
        shown = profctl("report", "--csv", "--by=symbol", f"--pid={process.pid}", "--dso=[[]JIT*,//anon", socket=daemon.control(), env=home)
        check(shown.returncode in (0, 8), shown.stderr)
        found = functions(shown.stdout)
        check(found.get("dumped_loop", 0) > 20 and set(found) == {"dumped_loop"}, f"names of generated code: {found}")
        equal(daemon.stop(), 0, f"status ({daemon.log()[-1000:]})")


def names_of(daemon, folder, path):
    """How the functions of a program are called in what the daemon recorded: samples by function, "replaced" or "address"."""
    home = {**os.environ, "HOME": os.path.join(folder, "home"), "XDG_CACHE_HOME": os.path.join(folder, "cache")}
    name = os.path.basename(path)
    shown = profctl("report", "--csv", "--by=symbol", f"--dso={name}[[]no-build-id]", "--addresses", socket=daemon.control(), env=home)
    if "There are no samples" in shown.stderr:
        return {}
    check(shown.returncode in (0, 8), shown.stderr)
    found = {}
    for symbol, n in functions(shown.stdout).items():
        symbol = "replaced" if symbol.endswith(" [replaced]") else "address" if symbol.startswith(f"{name}+0x") else symbol
        found[symbol] = found.get(symbol, 0) + n
    return found


@test
def programs_without_a_build_id_are_named_while_their_file_is_there_and_never_wrongly():
    need_root()
    with scratch() as folder:
        before, after = os.path.join(folder, "ran-before"), os.path.join(folder, "ran-after")
        for path in (before, after):
            shutil.copy(program("deploy-bare"), path)
        with running(before, "60000"):
            time.sleep(1.5)  # the file must be surely older than the first sample
            with Daemon(folder, config=CONFIG) as daemon, running(after, "60000"):
                for path in (before, after):
                    found = wait_until(lambda p=path: sum((all_names := names_of(daemon, folder, p)).values()) > 20 and all_names, 30, f"samples of {path}")
                    # The work calls a clock, which is in the vdso and behind the stubs of the program.
                    check("deploy_bare_work" in found and not {"address", "replaced"} & set(found), f"{path} is named {found}")
                os.unlink(before)
                shutil.copy(program("deploy-new"), after + ".new")
                os.rename(after + ".new", after)
                time.sleep(0.5)
                equal(set(names_of(daemon, folder, before)), {"address"}, "names of a file that is gone")
                equal(set(names_of(daemon, folder, after)), {"replaced"}, "names of a file that was replaced")
                equal([b for b in binaries(daemon).values() if {before, after} & set(b["paths"])], [], "what is kept without a build id")


main()
