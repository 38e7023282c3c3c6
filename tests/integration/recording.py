# SPDX-License-Identifier: LGPL-2.1-or-later
"""The content of recordings, read by profctl and by perf, and how to hold two of the same seconds
against each other.

A Sample is what the kernel gave; a Row is a sample with the names that perf script finds for it.
Checks return what is wrong, so that a test can say it, and so that they can be tested themselves.
"""

import bisect
import collections
import concurrent.futures
import functools
import json
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check  # noqa: E402

PROFCTL = build_path("client", "profctl")
PERF = ["perf"]  # another perf may be put here, as in a chroot
LONG = bool(os.environ.get("PROFD_TEST_LONG"))
LIMIT_S = 600
SETTLED_NS = 300_000
MARK = "[no-build-id]"  # ends the name of a file that profd could not identify
EDGE_NS = 500_000_000

Sample = collections.namedtuple("Sample", "cpu time event pid tid ip")
Row = collections.namedtuple("Row", "cpu time pid tid comm ip sym dso")
Gap = collections.namedtuple("Gap", "cpu begin end")

ROW = re.compile(r"\s*(.{1,16}?)\s+(-?\d+)/(-?\d+)\s+\[(\d+)\]\s+(\d+)\.(\d{9}):\s+([0-9a-f]+) (.*) "
                 r"\(((?!deleted\)).*?)\)\s*$")

# The function that a sample of a load falls into tells what the program was called just then.
COMMS = {
    "spin_alpha": {"spin"},
    "spin_beta": {"spin"},
    "storm_inherit_work": {"storm"},
    "storm_fork_work": {"storm-fork"},
    "storm_name_a_work": {"storm-name-a"},
    "storm_name_b_work": {"storm-name-b"},
    "storm_leader_work": {"storm-leader"},
    "storm_thread_work": {"storm-thread"},
    "storm_first_work": {"storm-first"},
    "storm_second_work": {"storm-second"},
    "storm_space_work": {"storm-space"},
    "storm_plugin_work": {"storm-plugin"},
    "storm_short_work": {"storm-short"},
    "storm_part_work": {"storm-exec", "storm-link", "storm-vfork", "storm-memfd", "storm-deleted",
                        "storm-replaced"},
    "overflow_end_work": {"overflow-end"},
    "overflow_child_work": {"overflow-child"},
}
# Of these comms samples in user space lie in a file of this name, or in what every program has.
FILES = {
    "spin": {"spin"},
    "storm-exec": {"storm-exec"},
    "storm-vfork": {"storm-vfork"},
    "storm-deleted": {"storm-deleted", "storm-deleted (deleted)"},
    "storm-replaced": {"storm-replaced", "storm-replaced (deleted)"},
    "storm-memfd": {"memfd:storm-memfd (deleted)"},
    "storm-plugin": {"storm", "storm-plugin.so"},
    "storm-short": {"storm"},
    "storm-fork": {"storm"},
    "storm-second": {"storm"},
}
COMMON = re.compile(r"\[(vdso|vsyscall|kernel|guest\.kernel)|(^|/)(ld-|libc[.-]|libdl|libpthread)")
OUR_COMM = re.compile(r"(spin$|storm|overflow|memfd:storm)")


def _run(command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace",
                          timeout=LIMIT_S, check=False)


def _paths(recordings):
    return [recordings] if isinstance(recordings, str) else list(recordings)


def _of_each(function, paths):
    """The results of the function for each path, in their order; they are read on all CPUs at once."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, paths))


def records(path, *types):
    """Records of these types as profctl dump shows them."""
    done = _run([PROFCTL, "dump", "--json=short", "-t", ",".join(types), path])
    check(done.returncode == 0, f"profctl dump {path}: {done.returncode} {done.stderr[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _signed(number):
    return number - (1 << 32) if number >= 1 << 31 else number


def samples(recordings, event=None):
    """All samples of one recording or of several, in the order in which they stand there."""
    of_each = _of_each(lambda path: _samples_of(path, _version_of(path)), _paths(recordings))
    return [sample for of_one in of_each for sample in of_one if event is None or sample.event == event]


def _version_of(path):
    """A value that changes when the recording does, a file or a folder."""
    files = [os.path.join(path, name) for name in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
    return tuple((s.st_ino, s.st_size, s.st_mtime_ns) for s in map(os.stat, files))


# A test looks at the same segments several times; a long one has too many of them to keep.
@functools.lru_cache(maxsize=0 if LONG else 64)
def _samples_of(path, _version):
    return [Sample(r["cpu"], r["time"], r["event"], _signed(r["pid"]), _signed(r["tid"]), int(r["ip"], 16))
            for r in records(path, "SAMPLE")]


def namespaces(recordings, kind):
    """Inodes of all namespaces of this kind that are told of."""
    return {link["inode"] for path in _paths(recordings) for r in records(path, "NAMESPACES")
            for link in r["namespaces"] if link["name"] == kind}


def rows(recordings):
    """The same, named by perf script."""
    return [row for rows_of_one in _of_each(_rows_of, _paths(recordings)) for row in rows_of_one]


def _rows_of(path):
    out = []
    done = _run([*PERF, "script", "-F", "comm,pid,tid,cpu,time,ip,sym,dso", "-G", "--ns", "-i", path])
    check(done.returncode == 0, f"perf script {path}: {done.stderr[-500:]}")
    for line in done.stdout.splitlines():
        match = ROW.match(line)
        if match:
            comm, pid, tid, cpu, s, ns, ip, sym, dso = match.groups()
            out.append(Row(int(cpu), int(s) * 10**9 + int(ns), int(pid), int(tid), comm,
                           int(ip, 16), sym, dso))
        else:
            check(not line.strip(), f"perf script prints '{line}'")
    return out


def complaints(words):
    """The lines of perf on stderr, without those that it prints for any recording here."""
    # Where processes live in namespaces that perf cannot come back from, as in a chroot, it says so.
    return [line for line in words.splitlines() if line.strip() and "util/namespaces.c" not in line]


# The words of perf report, rightly, about a recording that reports loss.
OF_LOSS = re.compile(r"^(Warning:|Processed .* lost .*|Check IO/CPU overload!)$")


def _verify(path):
    done = _run([PROFCTL, "verify", path])
    is_clean = done.returncode == 0 and " error " not in done.stdout and " warning " not in done.stdout
    return [] if is_clean else [f"profctl verify {path}: {done.returncode} {done.stdout}{done.stderr}"]


def _report(path, with_loss):
    done = _run([*PERF, "report", "--stdio", "-g", "none", "--no-children", "-i", path])
    # Of a time in which nothing ran there is nothing to report, which perf takes for an error.
    if "has no samples!" in done.stderr and not samples(path):
        return []
    found = [f"perf report {path} ends with {done.returncode}"] if done.returncode != 0 else []
    return found + [f"perf report {path} says {line}" for line in complaints(done.stderr)
                    if not (with_loss and OF_LOSS.match(line.strip()))]


def judge(recordings, with_loss=False):
    """The complaints of perf report and profctl verify about each recording, a sentence each."""
    paths = _paths(recordings)
    # perf reads all symbols of the kernel each time: of many recordings the short run shows it some.
    shown = [path for number, path in enumerate(paths)
             if LONG or number in (0, 1, len(paths) // 2, len(paths) - 1)]
    of_each = _of_each(_verify, paths) + _of_each(lambda path: _report(path, with_loss), shown)
    return [sentence for sentences in of_each for sentence in sentences]


def check_clean(recordings, with_loss=False):
    found = judge(recordings, with_loss)
    check(not found, f"{len(found)} complaints, the first: {found[:3]}")


def lost(recordings, begin=0, end=1 << 64):
    """Samples that recordings say were lost, by the kernel's own count as the tool wrote it; what
    was lost of side-band is another matter. From `begin` to `end` where they are given."""
    return sum(r["lost"] for path in _paths(recordings) for r in records(path, "LOST_SAMPLES")
               if not r.get("event", "").startswith("dummy") and begin <= r.get("time", begin) <= end)


def by_cpu(all_samples):
    """CPU -> sorted times."""
    times = collections.defaultdict(list)
    for s in all_samples:
        times[s.cpu].append(s.time)
    return {cpu: sorted(t) for cpu, t in sorted(times.items())}


def twice(all_samples):
    """Samples that are there more than once."""
    seen = collections.Counter((s.cpu, s.time, s.event) for s in all_samples)
    return [key for key, n in seen.items() if n > 1]


def common_window(*recordings, margin_ns=0):
    """From when on and until when all of them record on every CPU."""
    times = [t for r in recordings for t in by_cpu(r).values()]
    check(times, "there are no samples")
    return max(t[0] for t in times) + margin_ns, min(t[-1] for t in times) - margin_ns


def within(all_samples, begin, end):
    return [s for s in all_samples if begin <= s.time < end]


def gaps(all_samples, limit_ns, begin, end, cpus):
    """Where a CPU has no sample for longer than the limit between begin and end."""
    found, times = [], by_cpu(within(all_samples, begin, end))
    for cpu in cpus:
        edges = [begin, *times.get(cpu, []), end]
        found += [Gap(cpu, a, b) for a, b in zip(edges, edges[1:]) if b - a > limit_ns]
    return found


def unexcused(found, reference, period_ns):
    """The gaps in whose time the reference goes on: where the machine itself stood still, every
    recording has one, though not the same samples right before, after and within it. Where a
    process that the machine hides takes turns with others, each recording misses some of its ticks,
    so a reference that misses one nearby excuses a short gap. Ticks keep their beat, so what was
    taken and lost leaves a gap of whole periods: a short one that is none ends with a tick that came
    late and stands for those before it."""
    times, left = by_cpu(reference), []
    for gap in found:
        t, length = times.get(gap.cpu, []), gap.end - gap.begin
        inside = bisect.bisect_left(t, gap.end) - bisect.bisect_right(t, gap.begin)
        low = max(bisect.bisect_left(t, gap.begin - period_ns) - 1, 0)
        near = t[low:bisect.bisect_right(t, gap.end + period_ns) + 1]
        widest = max((b - a for a, b in zip(near, near[1:])), default=length)
        beats = length / period_ns
        if beats < 4 and abs(beats - round(beats)) > 0.2:
            continue
        if inside > beats / 2 and widest < max(1.3 * period_ns, length / 4):
            left.append(gap)
    return left


def edges(all_samples, reference, begin, end, cpus):
    """Where the reference records on a CPU between begin and end, and ours does not yet, or no more."""
    found, ours, others = [], by_cpu(all_samples), by_cpu(within(reference, begin, end))
    for cpu in cpus:
        if cpu in ours and cpu in others:
            ends = ((others[cpu][0], ours[cpu][0]), (ours[cpu][-1], others[cpu][-1]))
            found += [Gap(cpu, a, b) for a, b in ends if b - a > EDGE_NS]
    return found


def feature_place(path, bit):
    """Where the body of a header feature lies in a recording of this machine, and its size."""
    with open(path, "rb") as file:
        data = file.read()
    at, size = struct.unpack_from("<QQ", data, 40)
    words = struct.unpack_from("<4Q", data, 72)
    there = [i for i in range(256) if words[i // 64] >> i % 64 & 1]
    return struct.unpack_from("<QQ", data, at + size + 16 * there.index(bit))


def seams(all_samples, reference, period_ns, cpus, begin_ns=0, end_ns=1 << 64):
    """Gaps above two periods that are not the machine's, in the time that both cover. The tick at
    the end of one may be late by a quarter of a period. That is as long as the reference, but for a
    moment at each end: from `begin_ns` to `end_ns`, where ours began later or ended sooner.

    A virtual machine may keep its own processes from every recorder: what ticks while one of them
    runs is a sample for nobody. Two recordings by perf differ by a lone tick each few seconds, for
    their ticks do not fall together. Two such ticks in a row may come once in a recording, and once
    in a million ticks more."""
    begin, end = common_window(all_samples, reference, margin_ns=2 * period_ns)
    found = gaps(all_samples, 2 * period_ns + period_ns // 4, begin, end, cpus)
    found += edges(all_samples, reference, begin_ns, end_ns, cpus)
    found = unexcused(found, reference, period_ns)
    hidden = [g for g in found if g.end - g.begin < 3.5 * period_ns]
    may_be = 1 + max(end - begin, 0) * len(cpus) // period_ns // 10**6
    return found if len(hidden) > may_be else [g for g in found if g not in hidden]


def plain(comm):
    """Names with other bytes, as tests beside this one have, are written in other ways by perf and to an engine: they
    count together."""
    return comm if re.fullmatch(r"[ -~]+", comm) and "\\" not in comm else "other"


def nameless(all_rows):
    """Samples whose process or file perf cannot name: of all processes the name, of our loads the
    file too. Those of a thread that is past its end have no tid, for any recorder."""
    return [r for r in all_rows if r.tid != -1 and
            (r.comm.startswith(":") or (r.dso == "[unknown]" and OUR_COMM.match(r.comm)))]


def misnamed(all_rows):
    """Samples of our loads that have the name or the file of something else."""
    wrong = []
    for r in all_rows:
        if r.sym in COMMS and r.comm not in COMMS[r.sym]:
            wrong.append(r)
        files = FILES.get(r.comm)
        name = os.path.basename(r.dso).removesuffix(MARK)
        if files and not COMMON.search(r.dso) and name not in files:
            wrong.append(r)
    return wrong


def check_names(all_rows, at_least=1):
    """All samples of ours have their names, and there are some."""
    found = nameless(all_rows)
    check(not found, f"{len(found)} of {len(all_rows)} samples have no name, as {found[:3]}")
    found = misnamed(all_rows)
    check(not found, f"{len(found)} of {len(all_rows)} samples have a wrong name, as {found[:3]}")
    ours = sum(1 for r in all_rows if r.sym in COMMS)
    check(ours >= at_least, f"only {ours} samples of the loads, of {len(all_rows)}")


def _plain(comm):
    """/proc tells of what a kernel worker works on, where the kernel's records do not."""
    return re.sub(r"^(kworker/[^-+]*).*", r"\1", comm)


def disagreements(ours, reference, near_ns):
    """(how many could be compared, those that differ): where a thread has one and the same name in
    the reference for a while before and right after a sample of ours, ours has it too. Each recorder
    is told of a new name at a moment of its own, some microseconds apart."""
    times, names = collections.defaultdict(list), collections.defaultdict(list)
    for r in sorted(reference, key=lambda r: r.time):
        times[r.tid].append(r.time)
        names[r.tid].append((_plain(r.comm), r.pid))
    compared, wrong, others = 0, [], []
    for r in ours:
        t = times.get(r.tid, [])
        old, after = bisect.bisect_right(t, r.time - SETTLED_NS) - 1, bisect.bisect_right(t, r.time)
        if r.tid <= 0 or old < 0 or after == len(t) or t[after] - t[old] > near_ns + SETTLED_NS:
            continue
        expected = set(names[r.tid][old:after + 1])
        if len(expected) > 1:
            continue
        compared += 1
        if (_plain(r.comm), r.pid) not in expected:
            is_ours = any(OUR_COMM.match(comm) for comm in (r.comm, *(name for name, _ in expected)))
            (wrong if is_ours else others).append((r, *expected))
    return compared, wrong + (others if len(others) * 200 > compared else [])


def manifest(path):
    """Of a segment, file or folder."""
    if os.path.isdir(path):
        beside = os.path.join(path, "manifest.json")
    else:
        beside = next((p for p in (path + ".json", path.removesuffix(".perf.data") + ".json") if os.path.exists(p)),
                      path + ".json")
    with open(beside, encoding="utf-8") as f:
        return json.load(f)
