#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names of functions and their counts in profctl report are those of perf report, for programs in C, C++ and Go that are
linked in each way, and for the kernel where it hides its addresses from everybody."""

import collections
import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from perfrows import differences, our_rows, perf_rows  # noqa: E402
from profctl import ended, environment, profctl  # noqa: E402
from standin import CLOSE, Error, StandIn  # noqa: E402
from workload import need_root  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix="profd-symbols.")
CLOCKS_APART_S = 2
RESTRICT = "/proc/sys/kernel/kptr_restrict"

C = """
#include <time.h>
#define HOT(name) __attribute__((noinline)) name(unsigned n) { unsigned v = n; \\
    for (unsigned i = 0; i < 20000; i++) v = v * 1664525 + i; return v; }
static unsigned HOT(hidden)
unsigned HOT(shown)
unsigned in_d(unsigned n) __asm__("_D4shop5priceFiZi");
unsigned HOT(in_d)
int main(void) {
    unsigned v = 1;
    for (clock_t end = clock() + CLOCKS_PER_SEC / 3; clock() < end;) v += hidden(v) + shown(v) + in_d(v);
    return v == 42;
}
"""
CPP = """
#include <ctime>
#include <vector>
namespace shop {
template <typename T> struct Order {
    std::vector<T> items = std::vector<T>(1000, T(3));
    __attribute__((noinline)) T price(int rate) const { T sum{}; for (auto i : items) sum = sum * rate + i; return sum; }
    __attribute__((noinline)) T price() const { T sum{}; for (auto i : items) sum += i * i; return sum; }
};
}
int main() {
    shop::Order<long> a; shop::Order<double> b;
    double v = 0;
    for (clock_t end = clock() + CLOCKS_PER_SEC / 3; clock() < end;) v += a.price(3) + b.price(2) + a.price();
    return v == 42;
}
"""
GO = """package main
import "time"
type order struct{ items [1000]int }
//go:noinline
func (o *order) price(rate int) int { sum := 0; for _, i := range o.items { sum = sum*rate + i }; return sum }
//go:noinline
func count(n int) int { v := n; for i := 0; i < 20000; i++ { v = v*1664525 + i }; return v }
func main() {
    o := &order{}
    v := 0
    for end := time.Now().Add(time.Second / 3); time.Now().Before(end); { v += o.price(3) + func(n int) int { return count(n) }(v) }
    println(v)
}
"""


def at(name):
    return os.path.join(FOLDER.name, name)


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, cwd=FOLDER.name, **more)
    check(done.returncode == 0, f"{command}: {done.stderr[-500:]}")


def build(compiler, source, name, *options):
    run(compiler, "-g", "-O1", "-o", name, *options, source)
    return name


def strip_with_link(name, bare):
    """A copy without symbols; these are in a file beside it, which it names."""
    run("objcopy", "--only-keep-debug", name, bare + ".debug")
    run("strip", "-o", bare, name)
    run("objcopy", f"--add-gnu-debuglink={bare}.debug", bare)
    return bare


@functools.cache
def programs():
    for name, text in (("source.c", C), ("source.cc", CPP), ("source.go", GO)):
        with open(at(name), "w", encoding="ascii") as f:
            f.write(text)
    made = [build("gcc", "source.c", "c-pie", "-fPIE", "-pie"), build("gcc", "source.c", "c-fixed", "-no-pie"),
            build("gcc", "source.c", "c-static", "-static"), build("g++", "source.cc", "cpp-pie", "-fPIE", "-pie"),
            build("g++", "source.cc", "cpp-static", "-static")]
    made += [strip_with_link("c-pie", "c-bare"), strip_with_link("cpp-pie", "cpp-bare")]
    if shutil.which("go"):
        run("go", "build", "-o", "go-whole", "source.go", env={**os.environ, "GOFLAGS": "", "GOCACHE": build_path("go-cache"), "CGO_ENABLED": "0"})
        made.append("go-whole")
    return made


@functools.cache
def recording():
    need_root()
    for tool in ("perf", "gcc", "g++", "objcopy"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")
    command = "; ".join(f"./{name}" for name in programs())
    run("perf", "record", "-q", "-F", "1999", "-e", "cpu-clock", "-g", "-o", "perf.data", "--", "sh", "-c", command)
    return at("perf.data")


@test
def functions_and_their_counts_are_those_of_perf():
    found = differences(recording(), ["comm", "dso", "symbol"], strange={"_D4shop5priceFiZi": "shop.price(int)"})
    # perf does not name what lies behind the symbols that the vdso exports, and in a table of jumps it sometimes names the
    # function before it.
    apart = [key for key in found if key[2] == "[vdso]" or key[3] == "_init" or key[3].endswith("@plt")]
    for place in {key[1:3] for key in apart}:
        sums = [sum(found[key][side][0] for key in apart if key[1:3] == place and found[key][side]) for side in (0, 1)]
        equal(sums[0], sums[1], f"samples of {place}")
    found = {key: counts for key, counts in found.items() if key not in apart}
    check(not found, f"perf's and ours: {list(found.items())[:8]} and {len(found)} in all")


@test
def each_program_has_its_functions_by_name():
    rows = {key[1:] for key in our_rows(recording(), ["comm", "dso", "symbol"])}
    for name in programs():
        wanted = {"c": {"hidden", "shown", "shop.price(int)"}, "cpp": {"shop::Order<long>::price", "shop::Order<double>::price"},
                  "go": {"main.count", "main.(*order).price"}}[name.split("-")[0]]
        found = {symbol for comm, dso, symbol in rows if comm == dso == name}
        check(wanted <= found, f"{name} has {found}")


@test
def lines_of_the_source_are_those_of_perf():
    want, got = collections.Counter(), collections.Counter()
    for (_, comm, dso, line), (n, _) in perf_rows(recording(), ["comm", "dso", "srcline"]).items():
        if comm == dso == "c-pie":
            want[line] += n
    done = ended(profctl("report", "--json=short", "--by=srcline", "--percent-limit=0", "--comm=c-pie", "--dso=c-pie", recording()), 0)
    for row in json.loads(done.stdout)["rows"]:
        got[os.path.basename(row["srcline"])] += row["samples"]
    equal(got, want, "samples by line")
    line, samples = max(got.items(), key=lambda item: item[1])
    whole = json.loads(ended(profctl("report", "--json=short", "--by=comm", f"--srcline={line}", recording()), 0).stdout)
    equal({row["comm"]: row["samples"] for row in whole["rows"]}.get("c-pie"), samples, f"samples in {line}")


def apart_s(path):
    """By how much the clock of perf differs from that of the boot."""
    written = os.stat(path).st_mtime - time.time() + time.clock_gettime(time.CLOCK_BOOTTIME)
    times = subprocess.run(["perf", "script", "-F", "time", "-i", path], capture_output=True, text=True, check=True).stdout
    return abs(written - float(times.split()[-1].rstrip(":")))


def record_running(name, path, change):
    """perf records a program that runs already, without build ids, as it also does for files that have none: the mapping
    then has no generation of the file."""
    recording = at(f"{name}.data")
    process = subprocess.Popen([path], cwd=FOLDER.name)
    try:
        time.sleep(1.5 + (CLOCKS_APART_S if name == "same" else 0))
        run("perf", "record", "-q", "-N", "-B", "-F", "999", "-e", "cpu-clock", "-o", recording, "-p", str(process.pid), "--", "sleep", "1")
    finally:
        process.kill()
        process.wait()
    change()
    names = collections.Counter()
    for row in json.loads(ended(profctl("report", "--json=short", "--by=symbol", "--addresses", f"--dso={name}", recording), 0).stdout)["rows"]:
        symbol = row["symbol"]
        names["replaced" if symbol.endswith(" [replaced]") else "address" if symbol.startswith(f"{name}+0x") else symbol] += row["samples"]
    return recording, names


@test
def files_of_unknown_generation_are_named_only_if_they_are_surely_the_same():
    need_root()
    for tool in ("perf", "gcc"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")
    with open(at("endless.c"), "w", encoding="ascii") as f:
        f.write(C.replace("CLOCKS_PER_SEC / 3", "60 * CLOCKS_PER_SEC"))

    def other(name):
        run("cp", name, name + ".new")
        os.rename(at(name + ".new"), at(name))

    changes = {"same": lambda: None, "touched": lambda: os.chmod(at("touched"), 0o700), "other": lambda: other("other"),
               "gone": lambda: os.unlink(at("gone"))}
    for name in changes:
        build("gcc", "endless.c", name, "-fPIE", "-pie", "-Wl,--build-id=none")
    with ThreadPoolExecutor(len(changes)) as pool:
        found = list(pool.map(lambda name: (name, *record_running(name, at(name), changes[name])), changes))
    for name, path, names in found:
        perfs = {{"_D4shop5priceFiZi": "shop.price(int)"}.get(symbol, symbol): n for (_, dso, symbol), (n, _) in perf_rows(path, ["dso", "symbol"]).items() if dso == name}
        check(sum(names.values()) > 50, f"{name}: {names}")
        equal(sum(names.values()), sum(perfs.values()), f"samples of {name}")
        wanted = {"same": None, "touched": {"address"}, "other": {"replaced"}, "gone": {"address"}}[name]
        if wanted or apart_s(path) > CLOCKS_APART_S:
            equal(set(names), wanted or {"address"}, f"{name} is named")
        else:
            # perf takes the PLT of this file for what is before it.
            both = [{symbol: n for symbol, n in side.items() if symbol not in ("_init", "clock@plt")} for side in (names, perfs)]
            equal(*both, "names of the same file")
            # A copy is written later than the recording ended, and a recording of another boot may be, too.
            later = os.stat(path).st_mtime + 60
            os.utime(path, (later, later))
            rows = json.loads(ended(profctl("report", "--json=short", "--by=symbol", f"--dso={name}", path), 0).stdout)["rows"]
            equal({row["symbol"] for row in rows if row["samples"]}, {f"[{name}]"}, "names in a recording of an unknown boot")


def build_id(name):
    said = subprocess.run(["readelf", "-n", at(name)], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", said)[1]


@test
def a_daemon_with_hostile_answers_writes_nowhere_but_into_the_cache():
    recording()
    name, home = build_id("cpp-bare"), at("home-of-hostile")
    item = {"kind": "elf", "buildId": None, "paths": [], "bytes": 100, "lastUsedUsec": None}
    names = ["../../../escaped", "/tmp/escaped", "ab", "abcd/../../escaped", "x" * 300, "1-2/../../escaped", name]
    listed = [{"binary": {**item, "name": name, "kind": kind}} for name in names for kind in ("elf", "map", "strange")]
    huge = {"binary": {**item, "name": "ff" * 20, "bytes": 1 << 60}}
    os.remove(at("cpp-bare.debug"))
    for read in ([{"bytes": 100}, b"\x7fELF" + b"A" * 96], [{"bytes": 1 << 60}], [{"bytes": 100}, b"short", CLOSE], [CLOSE],
                 [Error("NoSuchBinary", name=name)]):
        with StandIn(FOLDER.name, {"ListBinaries": [*listed, huge], "Read": read}) as daemon:
            done = profctl("report", "--csv", "--by=symbol", "--comm=cpp-bare", recording(), socket=daemon.path,
                           env=environment(HOME=home, XDG_CACHE_HOME=home))
            ended(done, 0)
            check("price" not in done.stdout, f"names out of nothing: {done.stdout[:500]}")
            check({"binary": name} in daemon.asked("Read"), f"it asked for {daemon.asked('Read')}")
            equal({asked["binary"] for asked in daemon.asked("Read")} - {name}, set(), "other names were read")
    found = [os.path.join(folder, file) for folder, _, files in os.walk(home) for file in files]
    check(all("/kept/" in file or file.endswith(".names") for file in found), found)
    check(not [file for file in found if "escaped" in file] and not os.path.exists("/tmp/escaped"), found)


@contextlib.contextmanager
def hidden_addresses():
    with open(RESTRICT, encoding="ascii") as f:
        before = f.read()
    try:
        with open(RESTRICT, "w", encoding="ascii") as f:
            f.write("2")
    except OSError as e:
        skip(f"kptr_restrict cannot be set: {e}")
    try:
        yield
    finally:
        with open(RESTRICT, "w", encoding="ascii") as f:
            f.write(before)


def kernel_rows(cache):
    done = profctl("report", "--json=short", "--by=symbol", "--dso=[[]kernel.kallsyms]", recording(), socket="/nonexistent",
                   env=environment(HOME=at("home"), XDG_CACHE_HOME=cache))
    return {row["symbol"]: row["samples"] for row in json.loads(ended(done, 0).stdout)["rows"] if row["samples"]}


@test
def kernel_that_hides_its_addresses_has_no_wrong_names():
    named = kernel_rows(at("cache-warm"))
    check(len(named) > 3, f"the kernel's functions are {named}")
    with hidden_addresses():
        hidden = kernel_rows(at("cache-cold"))
        equal(hidden, {"[kernel.kallsyms]": sum(named.values())}, "without addresses")
        # Names of this very kernel that were seen before are right.
        equal(kernel_rows(at("cache-warm")), named, "with a table from before")
    equal(kernel_rows(at("cache-cold")), named, "after that")


if __name__ == "__main__":
    main()
