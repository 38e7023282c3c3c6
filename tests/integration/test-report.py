#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profctl report shows the numbers of perf report: samples and periods of each comm, dso and symbol, and the callers and
callees of functions. Each known difference is a rule here, with its reason."""

import collections
import csv
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from perfrows import UNNAMED, aliases, differences, our_rows, perf_report, perf_rows, plain  # noqa: E402
from profctl import as_json, ended, profctl, safe  # noqa: E402
from workload import need_root  # noqa: E402
from tap import check, equal, main, skip, source_path, test  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix="profd-report.")
CORPUS = os.environ.get("PROFD_CORPUS", source_path("..", "shared", "corpus"))
WORK = "find /usr/include | sort -r | md5sum; ls -lR /usr/share/doc | wc; perl -e 'for (1..300000) { $x{$_ % 99} .= \"$_\" }'"
_made = {}


def recording(name, *options):
    """A perf record of shells, pipes and a long loop, made once."""
    need_root()
    if name not in _made:
        path = os.path.join(FOLDER.name, name)
        done = subprocess.run(["perf", "record", "-q", "-o", path, "-F", "1999", *options, "--", "sh", "-c", WORK],
                              capture_output=True, text=True, check=False, timeout=120)
        check(done.returncode == 0, done.stderr)
        _made[name] = path
    return _made[name]


def settled(chain):
    """A chain without the callers of execve(): perf still finds them in the program that was there before."""
    chain = list(chain)
    for i, name in enumerate(chain):
        if name == "do_execveat_common.isra.0" or name.endswith("sys_execve"):
            return tuple(chain[:i + 1])
    return tuple(chain)


def same_rows(path):
    for keys in (["comm"], ["dso"], ["comm", "dso"]):
        found = differences(path, keys)
        check(not found, f"{keys} of {os.path.basename(path)}, perf's and ours: {list(found.items())[:5]}")


@test
def rows_of_comms_and_files_are_those_of_perf():
    same_rows(recording("clock", "-e", "cpu-clock", "-g"))


@test
def events_are_counted_apart_as_in_perf():
    path = recording("events", "-e", "task-clock,page-faults,context-switches", "-g")
    same_rows(path)
    done = ended(profctl("report", "--period", "--by=event", path), 0)
    check("periods have different units" in done.stderr, done.stderr)
    equal(ended(profctl("report", "--count", "--by=event", path), 0).stdout, done.stdout, "shares of samples")
    equal(ended(profctl("report", "--period", "--by=comm", path), 0).stderr, "", "one event in each table")


def with_a_loss(path, lost):
    """A copy in which the last sample became a record of lost samples of its event."""
    with open(path, "rb") as f:
        content = bytearray(f.read())
    at, size = struct.unpack_from("<QQ", content, 40)
    end, found = at + size, None
    while at < end:
        kind, _, size = struct.unpack_from("<IHH", content, at)
        if kind == 9:
            found = at, size
        at += size
    at, size = found
    struct.pack_into("<I", content, at, 2)
    # The id of a sample is behind ip, pid, tid and time; that of every other record is at its end.
    content[at + size - 8:at + size] = content[at + 8:at + 16] = content[at + 32:at + 40]
    struct.pack_into("<Q", content, at + 16, lost)
    content[at + 24:at + size - 8] = bytes(size - 32)
    with open(f"{path}.lost", "wb") as f:
        f.write(content)
    return f"{path}.lost"


@test
def lost_samples_are_shown_for_their_event():
    path = recording("events", "-e", "task-clock,page-faults,context-switches", "-g")
    lossy = with_a_loss(path, 1700)
    whole, less = (as_json(profctl("report", "--json=short", "--by=comm", p), "report") for p in (path, lossy))
    equal(sum(event["samples"] for event in whole["events"]), whole["total"], "samples of the events")
    hit = [event for event in less["events"] if event["lost"]]
    equal([event["lost"] for event in hit], [1700], f"lost of {less['events']}")
    equal(less["lost"], 1700, "lost")
    equal(hit[0]["samples"], next(e["samples"] for e in whole["events"] if e["name"] == hit[0]["name"]) - 1, "its samples")
    text = safe(ended(profctl("report", "--by=comm", lossy), 0).stdout)
    check(f"\nEvent {hit[0]['name']}, {hit[0]['samples']:,} samples, 1,700 lost:\n" in text, text[:800])
    check(f"{hit[0]['name']} at " in text.split("\n\n", 1)[0] and ", 1,700 lost)" in text.split("\n\n", 1)[0], text[:400])


@test
def fixed_periods_are_those_of_perf():
    need_root()
    path = os.path.join(FOLDER.name, "fixed")
    subprocess.run(["perf", "record", "-q", "-o", path, "-e", "page-faults", "-c", "3", "--", "sh", "-c", WORK],
                   capture_output=True, check=True, timeout=120)
    same_rows(path)


@test
def rows_of_functions_are_those_of_perf():
    found = differences(recording("clock", "-e", "cpu-clock", "-g"), ["comm", "dso", "symbol"])
    check(not found, f"perf's and ours: {list(found.items())[:8]} and {len(found)} in all")


def perf_chains(path, order):
    """Samples of each chain of names under each symbol; order: 'callee' or 'caller'."""
    chains, symbol = collections.Counter(), ""
    for line in perf_report(path, "-n", "-s", "sym", "-g", f"folded,0,{order},function,count"):
        if not line.strip() or line.startswith("#"):
            continue
        row = re.match(r"\s+[\d.]+%\s+\d+\s+\[.\] (.*?)\s*$", line)
        if row:
            symbol = plain(row[1])
            continue
        count, chain = line.split(" ", 1)
        chains[settled((symbol, *[plain(name) for name in chain.split(";")]))] += int(count)
    return chains


def our_chains(path, direction):
    done = profctl("report", "--json=short", "--by=symbol", f"--tree={direction}", "--percent-limit=0", "--count", path)
    ended(done, 0)
    chains = collections.Counter()

    def walk(nodes, before, key, total):
        for node in nodes:
            below = node.get(direction, [])
            here = (*before, plain(node["symbol"]))
            rest = node["samples"] - walk(below, here, key, 0)
            if rest:
                chains[settled((key, *here))] += rest
            total += node["samples"]
        return total

    for row in json.loads(done.stdout)["rows"]:
        key = plain(row["symbol"])
        rest = row["samples"] - walk(row[direction], (key,), key, 0) if direction == "callers" else 0
        if rest > 0:
            chains[(key, key)] += rest
    return chains


@test
def callers_are_those_of_perf():
    path = recording("clock", "-e", "cpu-clock", "-g")
    want, got = perf_chains(path, "callee"), our_chains(path, "callers")
    check(len(want) > 50, f"perf shows {len(want)} chains")
    found = {c: (want[c], got[c]) for c in want.keys() | got.keys() if want[c] != got[c]}
    check(not found, f"{len(found)} of {len(want)} chains differ, perf's and ours: {list(found.items())[:4]}")


@test
def callees_are_those_below_in_the_stacks_of_perf_script():
    path = recording("clock", "-e", "cpu-clock", "-g")
    want = collections.Counter()
    text = subprocess.run(["perf", "script", "-i", path, "--no-inline", "-F", "ip,sym"], capture_output=True, text=True,
                          check=True, errors="surrogateescape", timeout=120).stdout
    for sample in text.split("\n\n"):
        names = [plain(re.sub(r"^\s*[0-9a-f]+ ", "", line)) for line in sample.splitlines() if line.strip()]
        names.reverse()
        for i, name in enumerate(names):
            # The outermost call counts, so that a sample counts once.
            if name and name not in names[:i]:
                for n in range(i + 1, len(names) + 1):
                    want[tuple(names[i:n])] += 1
    done = profctl("report", "--json=short", "--by=symbol", "--tree=callees", "--percent-limit=0", "--count", path)
    got = collections.Counter()

    def walk(nodes, before):
        for node in nodes:
            here = (*before, plain(node["symbol"]))
            got[here] += node["samples"]
            walk(node.get("callees", []), here)

    for row in json.loads(ended(done, 0).stdout)["rows"]:
        key = plain(row["symbol"])
        if key:
            got[(key,)] += row["totalSamples"]
            walk(row["callees"], (key,))
    check(len(want) > 50, f"{len(want)} chains")
    # What called execve() is unknown to us, and perf still finds it in the program that was there before.
    found = {c: (want[c], got[c]) for c in want.keys() | got.keys()
             if want[c] != got[c] and "execve" not in c[0] and not any(name.endswith("sys_execve") for name in c[1:])}
    check(not found, f"{len(found)} of {len(want)} chains differ, perf's and ours: {list(found.items())[:4]}")


def folded_by_perf(path):
    """Comm and stack of each sample by perf script, the innermost function first."""
    text = subprocess.run(["perf", "script", "-i", path, "--no-inline", "-F", "comm,ip,sym"], capture_output=True, text=True,
                          check=True, errors="surrogateescape", timeout=120).stdout
    stacks = collections.Counter()
    for sample in filter(str.strip, text.split("\n\n")):
        comm, *frames = sample.strip("\n").split("\n")
        stacks[comm.strip(), settled(plain(re.sub(r"^\s*[0-9a-f]+ ", "", frame)) for frame in frames)] += 1
    return stacks


def folded_by_us(path):
    stacks = collections.Counter()
    for line in ended(profctl("folded", "--count", "--by=comm", path), 0).stdout.splitlines():
        stack, n = line.rsplit(" ", 1)
        comm, *frames = stack.split(";")
        stacks[comm, settled(plain(frame) for frame in reversed(frames))] += int(n)
    return stacks


@test
def folded_stacks_are_those_of_perf_script():
    path = recording("clock", "-e", "cpu-clock", "-g")
    want, got = folded_by_perf(path), folded_by_us(path)
    check(len(want) > 50, f"perf shows {len(want)} stacks")
    found = {c: (want[c], got[c]) for c in want.keys() | got.keys() if want[c] != got[c]}
    check(not found, f"{len(found)} of {len(want)} stacks differ, perf's and ours: {list(found.items())[:4]}")


@test
def csv_and_json_have_the_same_rows():
    path = recording("clock", "-e", "cpu-clock", "-g")
    rows = as_json(profctl("report", "--json=short", "--by=comm,pid", path), "report")["rows"]
    lines = list(csv.DictReader(ended(profctl("report", "--csv", "--by=comm,pid", path), 0).stdout.splitlines()))
    equal([(line["comm"], int(line["pid"]), int(line["samples"]), int(line["total_period"])) for line in lines],
          [(row["comm"], row["pid"], row["samples"], row["totalPeriod"]) for row in rows], "the rows")


@test
def outputs_without_room_for_it_remark_on_stderr_that_samples_were_lost():
    subprocess.run([sys.executable, source_path("tests", "golden", "make.py"), FOLDER.name], check=True)
    path = os.path.join(FOLDER.name, "little.data")
    facts = as_json(profctl("report", "--json=short", path), "report")
    equal([(event["name"], event["samples"], event["lost"]) for event in facts["events"]],
          [("cpu-clock", 3, 3), ("page-faults", 1, 5)], "samples and lost ones of the events")
    of_all = "8 samples were lost when this was recorded, beside the 4"
    of_one = "3 samples of cpu-clock were lost when this was recorded, beside the 3"
    to_file = (f"--output={FOLDER.name}/of-losses", "--force")
    for want, *words in ((of_one, "folded"), (of_one, "flamegraph", "--folded"), (of_one, "speedscope"), (of_one, "firefox"),
                         (of_all, "pprof", *to_file), (of_all, "report", "--csv")):
        said = ended(profctl(*words, path), 0).stderr
        check(f"profctl: {want} that are here." in said, f"{words}: {said}")
        said = ended(profctl("--quiet", *words, path), 0).stderr
        equal(said, "", f"stderr of {words} with --quiet")
        said = ended(profctl(*words, source_path("tests", "golden", "recordings", "clock.data")), 0).stderr
        check("lost" not in said, f"{words} where nothing was lost: {said}")
    ended(profctl("folded", "--event=page-faults", path), 0, "5 samples were lost .* beside the 1 that is here[.]")


@test
def text_has_shares_beside_counts():
    path = recording("clock", "-e", "cpu-clock", "-g")
    whole = as_json(profctl("report", "--json=short", "--by=comm", path), "report")
    text = safe(ended(profctl("report", "--by=comm", "--percent-limit=0", path), 0).stdout)
    rows = re.findall(r"^ *([\d.]+)% +([\d.]+)% +([\d,]+)  (\S.*)$", text, re.MULTILINE)
    equal({comm: int(n.replace(",", "")) for _, _, n, comm in rows},
          {row["comm"]: row["samples"] for row in whole["rows"]}, "the counts")
    equal(sum(row["samples"] for row in whole["rows"]), whole["total"], "the sum")
    check(f"{whole['total']:,} samples of cpu-clock" in text, text[:300])
    ended(profctl("report", "--tree=callers", path), 0)
    ended(profctl("report", "--csv", "--json", path), 2, "either")


@test
def a_tree_by_total_has_each_row_of_the_table():
    path = recording("clock", "-e", "cpu-clock", "-g")
    words = ("--by=symbol", "--sort=total", "--percent-limit=5", path)
    shown = []
    for tree in (("--tree=callers",), ("--tree=callees",), ()):
        text = safe(ended(profctl("report", *tree, *words), 0).stdout)
        shown.append(re.findall(r"^ *([\d.]+)% +([\d.]+)% +[\d,]+  (\S.*)$", text, re.MULTILINE))
    check(any(own == "0.00" for own, _, _ in shown[0]), f"each row has samples of its own: {shown[0][:9]}")
    equal(shown[0], shown[2], "rows of the tree of callers")
    equal(shown[1], shown[2], "rows of the tree of callees")


@test
def code_without_a_symbol_is_one_row_of_its_file():
    path = recording("clock", "-e", "cpu-clock", "-g")
    rows = as_json(profctl("report", "--json=short", "--by=dso,symbol", path), "report")["rows"]
    exact = as_json(profctl("report", "--json=short", "--by=dso,symbol", "--addresses", path), "report")["rows"]
    merged = {row["dso"]: row["samples"] for row in rows if row["symbol"] == f"[{row['dso']}]"}
    check(merged, f"everything has a symbol: {sorted({row['dso'] for row in rows})}")
    for dso, samples in merged.items():
        equal(sum(row["samples"] for row in exact if row["dso"] == dso and UNNAMED.match(row["symbol"])), samples, dso)


@test
def filters_and_windows_leave_the_rest_out():
    path = recording("clock", "-e", "cpu-clock", "-g")
    whole = as_json(profctl("report", "--json=short", "--by=comm", path), "report")
    counts = {row["comm"]: row["samples"] for row in whole["rows"]}
    one = as_json(profctl("report", "--json=short", "--by=comm", "--comm=perl", path), "report")
    equal({row["comm"]: row["samples"] for row in one["rows"]}, {"perl": counts["perl"]}, "the rows of perl")
    equal(one["total"] + one["leftOut"], whole["total"], "shown and left out")
    short = as_json(profctl("report", "--json=short", "--by=comm", "--last=50ms", path), "report")
    check(0 < short["total"] < whole["total"], f"{short['total']} of {whole['total']} in the last 0.05 s")
    both = as_json(profctl("report", "--json=short", "--by=comm", path, path), "report")
    equal(both["total"], 2 * whole["total"], "the same recording twice")
    ended(profctl("report", "--comm=perx", path), 5, "comm 'perx'. Did you mean 'perl'")
    ended(profctl("report", "--event=cycles", path), 5, "the events are cpu-clock")
    ended(profctl("report", "--since=-1h", path), 1, "time of day")
    ended(profctl("report", "--by=commander", path), 2, "--help lists")


@test
def filters_by_file_and_function_keep_what_perf_keeps():
    path = recording("clock", "-e", "cpu-clock", "-g")
    keys = ["comm", "dso", "symbol"]
    rows = [row for row in perf_rows(path, keys).items() if row[0][3] and row[0][3] not in aliases()]
    _, comm, dso, symbol = max(rows, key=lambda row: row[1][0])[0]
    # perf leaves out a column that can have one value only, so it gets a second one.
    for perfs, ours in (((f"--dsos={dso},-",), (f"--dso={dso}",)),
                        ((f"--symbols={symbol},-",), (f"--symbol={symbol}",)),
                        ((f"--dsos={dso},-", f"--symbols={symbol},-", f"--comms={comm},-"),
                         (f"--dso={dso}", f"--symbol={symbol}", f"--comm={comm}")),
                        (("--dsos=libc.so.6,[kernel.kallsyms]",), ("--dso=libc.so.*,[kernel.kallsyms]",))):
        want = perf_rows(path, keys, *perfs)
        check(want, f"perf keeps nothing with {perfs}")
        equal(our_rows(path, keys, *ours), want, f"rows with {ours}")
    ended(profctl("report", "--dso=libc.so", path), 5, "taken in dso 'libc.so'. Did you mean 'libc.so.6'")
    ended(profctl("report", "--symbol=execve_of_nobody", path), 5, "taken in symbol 'execve_of_nobody'[.]")


# Where perf's rows differ, and why; every other recording has the same rows.
EXPLAINED = {
    "lnt__fib-aarch64.perf_data": "perf gives the samples before the first COMM of a thread the name that comes later",
    "quipper__perf.data.intel_pt-4.14.zst": "perf decodes the trace and makes samples of it",
    "simpleperf__perf_merge2.data": "perf calls code of a kernel without a mapping unknown",
    "simpleperf__perf_with_jit_symbol.data.zst": "the same",
    "simpleperf__perf_with_kernel_symbols_available_false.data.zst": "the same",
}


def corpus_differences(file):
    """None: this perf shows no row of it, since it does not know the format or there are no samples."""
    path = file
    if file.endswith(".zst"):
        path = os.path.join(FOLDER.name, os.path.basename(file))
        subprocess.run(["zstd", "-dkqf", file, "-o", path], check=True)
    done = subprocess.run(["perf", "report", "-i", path, "--stdio", "-s", "comm"], capture_output=True, check=False,
                          timeout=300)
    if done.returncode != 0 or not re.search(rb"^ +[\d.]+%", done.stdout, re.MULTILINE) or b"failed to process" in done.stderr:
        return None
    return differences(path, ["comm", "dso"])


@test
def recordings_of_the_corpus_have_the_rows_of_perf():
    files = sorted(glob.glob(os.path.join(CORPUS, "files", "*")))
    if not files:
        skip("no shared corpus")
    compared = 0
    for file in files:
        name = os.path.basename(file)
        found = corpus_differences(file)
        if found is None:
            continue
        compared += 1
        check(bool(found) == (name in EXPLAINED), f"{name}: perf's and ours differ in {list(found.items())[:4]}")
    check(compared > 40, f"only {compared} recordings of the corpus were compared")


if __name__ == "__main__":
    main()
