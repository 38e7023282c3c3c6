#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd-gateway sends what profd records to a stand-in engine that is away, refuses, hangs and lies; and is killed. What
arrived is compared with perf's view of the same time, sample by sample."""

import collections
import contextlib
import functools
import glob
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from between import Between  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from engine import Engine, intervals, once, repeated_requests  # noqa: E402
from gateway import Sender, send  # noqa: E402
import objects  # noqa: E402
from profctl import profctl  # noqa: E402
from recording import plain  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import LONG, scratch, spinning  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

SECOND = 1_000_000_000
HERTZ = 999 if LONG else 199
AWAY_S, AWAY_TIMES = (600 if LONG else 10), 2
AWAY_INTERVAL_S = 10 if LONG else 4
# A quarter of what its unit allows, and how much the second absence may take more than the first one.
MOST_BYTES, GROWS_BYTES = 64 << 20, 8 << 20
BACKLOG_S, BACKLOG_TRIES = 12, 3
KILLS = 50 if LONG else 5
FLIGHTS_MAX = 3  # requests at once to a destination: two of live intervals, one of the backlog
LIMIT_S = 300
SAMPLE = re.compile(r"^\s*(.{1,16}?)\s+(\d+)\.(\d{9}):\s*([0-9a-f]+)\s*(.*?)$")


class Run(Scene):
    config = session(Event="cpu-clock", Frequency=HERTZ)
    load = functools.partial(spinning, 0)

    @classmethod
    def begin(cls, enter):
        super().begin(enter)
        # The interval that the recording began in is not whole.
        time.sleep(1.1)


def gateway(sends, name, **options):
    return Sender(Run.get().folder, Run.control(), sends, name=name, **options)


def by_perf(since_ns, until_ns):
    """How many samples perf sees of each comm and function in this time."""
    path = os.path.join(Run.folder, f"window-{threading.get_ident()}.perf.data")
    done = profctl("snapshot", "-f", "-o", path, f"--since=@{since_ns // SECOND}", f"--until=@{until_ns // SECOND}",
                   socket=Run.control())
    check(" Saved " in done.stderr, f"profctl snapshot: {done.stderr}")
    done = subprocess.run(["perf", "script", "--ns", "-G", "-F", "comm,time,ip,sym", "-i", path], capture_output=True,
                          text=True, errors="replace", check=True, timeout=LIMIT_S)
    found = collections.Counter()
    for line in done.stdout.splitlines():
        row = SAMPLE.match(line)
        check(row, f"perf script printed {line!r}")
        found[row[1], row[5]] += 1
    return found


def by_engine(profiles):
    found = collections.Counter()
    for profile in profiles:
        for stack, count, _, extra in profile.samples:
            comm = profile.labels.get("comm") or extra.get("thread.name", "")
            found[comm, stack[0] if stack else ""] += count
    return found


def per_comm(counts):
    found = collections.Counter()
    for (comm, _), count in counts.items():
        found[plain(comm)] += count
    return found


def of_load(counts):
    return {function: n for (comm, function), n in counts.items() if comm == "spin" and function.startswith("spin_")}


def check_load(profiles, until_ns, interval_ns, name):
    """From the first profile on, each sample of the load is there once."""
    profiles = [profile for profile in once(profiles) if profile.time_ns < until_ns]
    since_ns = min(profile.time_ns for profile in profiles) // interval_ns * interval_ns
    equal({comm for comm, _ in by_engine(profiles)}, {"spin"}, f"what the rule let through to {name}")
    equal(of_load(by_engine(profiles)), of_load(by_perf(since_ns, until_ns)), f"samples of each function at {name}")


def check_whole(profiles, until_ns, interval_ns=SECOND, name="there"):
    """From the first profile on, nothing is missing and nothing is too much: perf counts the same."""
    profiles = [profile for profile in once(profiles) if profile.time_ns < until_ns]
    times = intervals(profiles, interval_ns)
    equal(times, list(range(times[0], until_ns // interval_ns)), f"the intervals that arrived at {name}")
    want, got = by_perf(times[0] * interval_ns, until_ns), by_engine(profiles)
    check(sum(want.values()) > 20 and of_load(want), f"perf saw {want}")
    equal(sum(got.values()), sum(want.values()), f"samples that arrived at {name}")
    equal(per_comm(got), per_comm(want), "samples of each comm")
    equal(of_load(got), of_load(want), "samples of each function of the load")


def most(moments, field):
    return max(getattr(moment, field) for moment in moments)


def usual_bytes(moments):
    """Reading the symbols of a new file takes memory for a moment, so the median."""
    return statistics.median(moment.anonymous_bytes for moment in moments)


def check_observed(seen, spans):
    """Live intervals are never late, and memory stays what it was, while an engine is away and when it is back."""
    bound = MOST_BYTES
    for gone, back, settled, end in spans:
        # The first attempt comes within an interval of the return, and the next live interval within another one.
        returned = seen.between(back + 3 * AWAY_INTERVAL_S, end)
        check(returned, "no state after the engine was back")
        read_lag, live_lag = most(seen.between(gone, end), "read_lag_s"), most(returned, "live_lag_s")
        memory = [usual_bytes(moments) for moments in (seen.between(gone, back), seen.between(back, settled) or returned, returned)]
        print(f"# away {back - gone:.0f} s, backlog gone {settled - back:.0f} s after the return: read lag at most {read_lag:.1f} s, live lag "
              f"after the return {live_lag:.1f} s, anonymous MiB {memory[0] / 2**20:.1f} while away, {memory[1] / 2**20:.1f} with the "
              f"backlog, {memory[2] / 2**20:.1f} after it, {most(seen.between(gone, end), 'anonymous_bytes') / 2**20:.1f} at most")
        check(read_lag <= 2 * AWAY_INTERVAL_S, f"it reads late: {seen.between(gone, end)}")
        check(live_lag <= 2 * AWAY_INTERVAL_S, f"live intervals are late: {returned}")
        # The backlog is gone so soon that a single moment may be all that was seen of it.
        lasting = max(memory[0], memory[2])
        check(lasting <= bound and memory[1] <= MOST_BYTES, f"memory grew above {bound}: {seen.moments}")
        # The names of what runs on the machine are learned during the first absence.
        bound = min(bound, lasting + GROWS_BYTES)


@test
def engine_that_was_away_gets_each_interval_once():
    with Engine() as engine, gateway(send("there", "pyroscope", engine.url), "away", interval_s=AWAY_INTERVAL_S) as g, \
            g.observe("there") as seen:
        g.wait_until(lambda: len(intervals(engine.taken(), g.interval_ns)) > 2, "three intervals")
        engine.reads_later = True
        spans = []
        for _ in range(AWAY_TIMES):
            engine.stop()
            time.sleep(AWAY_S)
            # What is not sent is a span, however long.
            equal(len(g.state_of("there")["unsent"]), 1, "ranges")
            back = time.time()
            engine.start()
            g.settle("there")
            settled = time.time()
            # Live intervals go on while the backlog is worked off, and after it, when two states at least are seen.
            time.sleep(max(0, back + 6 * AWAY_INTERVAL_S - time.time()))
            spans.append((back - AWAY_S, back, settled, time.time()))
        until = g.settle("there")
        g.stop()
        check_observed(seen, spans)
        engine.read_all()
        equal(engine.refusals, [], "what the engine refused")
        check(repeated_requests(engine.profiles) <= g.counter("there", "repeatedRequests"),
              f"{repeated_requests(engine.profiles)} requests came twice: {g.state_of('there')}")
        check_whole(engine.profiles, until, g.interval_ns)


@test
def what_profd_deletes_while_an_engine_is_away_is_counted_and_logged():
    """A pause of the recording is no such loss."""
    with scratch() as folder, spinning(), Daemon(folder, config=Run.config) as daemon, Engine() as engine, \
            Sender(folder, daemon.control(), send("there", "pyroscope", engine.url)) as g, Varlink(daemon.control(), timeout=LIMIT_S) as v:
        g.wait_until(engine.taken, "the first interval")
        engine.stop()
        begin = time.time()
        time.sleep(4)
        v.one("Rotate", session="default")
        # Two intervals may have been on their way.
        most_s = time.time() - begin + 3
        time.sleep(1)
        v.one("Rotate", session="default")
        equal(v.one("Vacuum", maxSegments=1)["removed"], 1, "segments that were removed")
        v.one("Pause", session="default")
        time.sleep(2)
        v.one("Resume", session="default")
        engine.start()
        g.settle("there")
        # The status is written once a second.
        g.wait_until(lambda: g.destination("there").get("backlogUsec") == 0 and g.destination("there")["deletedUsec"] > 0, "the status")
        status = g.destination("there")
        g.stop()
        log = g.log()
        deleted_s, missing_s = (g.counter("there", key) / SECOND for key in ("deletedNs", "missingNs"))
    check(2 < deleted_s <= most_s, f"{deleted_s} s were deleted, and the engine was away for {most_s} s before")
    # The segment that retention deleted last may reach into the pause.
    check(deleted_s + 1 < missing_s < deleted_s + 4, f"{missing_s} s are missing, {deleted_s} of them deleted, and 2 s were paused")
    check(status["missingUsec"] >= status["deletedUsec"], f"the status is {status}")
    check(re.search(r"lost profiles: profd deleted \d+ s, to stay within its limits", log), log[-2000:])
    seconds = sum(int(n) for n in re.findall(r"lost profiles: profd deleted (\d+) s", log))
    check(0 < seconds <= deleted_s + 1, f"the log says that {seconds} s were deleted, of {deleted_s}")


@test
def backlogs_of_two_destinations_are_read_one_after_the_other():
    """Their windows would alternate: an engine takes longer for one than profd for the next."""
    with Engine() as one, Engine() as other, Between(Run.get().folder, Run.control()) as between, \
            Sender(Run.folder, between.path, send("one", "pyroscope", one.url) + send("other", "pyroscope", other.url), name="two") as g:
        g.wait_until(lambda: one.taken() and other.taken(), "the first interval")
        windows, streams = 2 * (BACKLOG_S - 2), []
        # On a busy machine a window may take longer than a stream waits for the next one.
        while len(streams) < BACKLOG_TRIES and (not streams or streams[-1] >= windows // 2):
            for engine in (one, other):
                engine.stop()
                engine.delay_s = 0.2
            time.sleep(BACKLOG_S)
            for engine in (one, other):
                engine.start()
            before = between.follows
            until = g.settle("one", "other")
            streams.append(between.follows - before)
        g.stop()
        print(f"# two backlogs of {BACKLOG_S} intervals took {streams} streams")
        check(streams[-1] < windows // 2, f"{streams} streams for {windows} windows")
        for engine in (one, other):
            check_whole(engine.profiles, until)


@test
def kills_at_any_moment_lose_nothing_and_double_what_was_in_flight():
    moments = random.Random(os.environ.get("PROFD_SEED"))
    with Engine() as engine, gateway(send("there", "pyroscope", engine.url), "kill") as g:
        engine.delay_s = 0.4  # so that a request is in flight at many of the moments
        g.wait_until(engine.taken, "the first interval")
        for _ in range(KILLS):
            time.sleep(moments.uniform(0.05, 2.5))
            g.kill()
            g.start()
        engine.delay_s = 0
        until = g.settle("there")
        g.stop()
        doubled, counted = repeated_requests(engine.profiles), g.counter("there", "repeatedRequests")
        check(doubled <= counted <= KILLS * FLIGHTS_MAX,
              f"{doubled} requests came twice, {counted} are counted after {KILLS} kills: {g.state_of('there')}")
        print(f"# {KILLS} kills: {len(engine.pushes)} requests, {doubled} came twice, {counted} were counted")
        equal(engine.refusals, [], "what the engine refused")
        check_whole(engine.profiles, until)


def first(n, fault):
    return lambda push: fault if push.number < n else None


# What an engine does with its first requests, and whether everything arrives in the end.
FAULTS = {
    "busy": (first(2, (429, {"Retry-After": "1"})), True),
    "broken": (first(2, 500), True),
    "locked": (first(1, 401), True),
    "moved": (first(1, (307, {"Location": "http://127.0.0.1:1/"})), True),
    "garbage": (first(2, "garbage"), True),
    "endless": (first(2, "endless"), True),
    "slow": (first(1, "slow"), True),
    "unheard": (first(2, "close-after"), True),
    "refused": (first(1, 400), False),
    "large": (first(1, 413), False),
    "hanging": (lambda push: "hang", False),
    "well": (lambda push: None, True),
    "half": (lambda push: None, False),
}


def fault_sends(engines, token):
    text = ""
    for name, engine in engines.items():
        keys = {"Tenant": f"team-{name}"}
        if name in ("hanging", "slow"):
            keys["TimeoutSec"] = 2
        if name == "half":
            keys["Share"] = "50%"
        if name == "well":
            keys["TokenFile"] = token
        text += send(name, "pyroscope", engine.url, **keys)
    # The others get the load alone, which also is less work for the engines.
    only = " ".join(name for name in engines if name not in ("well", "half"))
    return text + f"[Relabel only-load]\nAction=keep\nSourceLabels=comm\nRegex=spin\nSends={only}\n"


def check_headers(engines, pushes_of):
    for name, engine in engines.items():
        for push in pushes_of(engine):
            equal(push.headers["X-Scope-OrgID"], f"team-{name}", "the tenant")
            equal(push.headers.get("Content-Encoding"), "gzip", "the coding")
    for push in pushes_of(engines["well"]):
        equal(push.headers["Authorization"], "Bearer secret-word", "the credentials")


def check_share(half, well, interval_ns):
    """Some intervals are there, and count twice."""
    whole, shared = counts_by_interval(well, interval_ns), counts_by_interval(half, interval_ns)
    both = [at for at in shared if at in whole]
    check(0 < len(both) < len(whole), f"{len(both)} intervals of {len(whole)}")
    for at in both:
        equal(shared[at], 2 * whole[at], f"samples of the interval {at}")


def counts_by_interval(engine, interval_ns):
    found = collections.Counter()
    for profile in once(engine.profiles):
        found[profile.time_ns // interval_ns] += sum(count for _, count, _, _ in profile.samples)
    return found


@test
def each_engine_fails_for_itself_and_gets_what_it_takes():
    with contextlib.ExitStack() as stack:
        engines = {name: stack.enter_context(Engine()) for name in FAULTS}
        for name, engine in engines.items():
            engine.fault = FAULTS[name][0]
        token = os.path.join(Run.get().folder, "token")
        with open(token, "w", encoding="utf-8") as f:
            f.write("secret-word\n")
        g = stack.enter_context(gateway(fault_sends(engines, token), "faults", interval_s=2))
        wanted = [name for name, (_, arrives) in FAULTS.items() if arrives]
        g.wait_until(lambda: len(intervals(engines["well"].taken(), g.interval_ns)) > 4, "five intervals of the engine that is well")
        # Half of a few intervals may be all of them, or none.
        g.wait_until(lambda: engines["half"].taken() and g.destination("half").get("thinnedIntervals"), "an interval that was sent and one that was not")
        until = g.settle(*wanted, "half")
        g.stop()
        log = g.log()
        for name in wanted:
            state = g.state_of(name)
            check(repeated_requests(engines[name].profiles) <= state["counters"]["repeatedRequests"], f"{name}: {state}")
            check(name == "well" or state["counters"]["retries"] > 0, f"{name}: {state}")
            equal(engines[name].refusals, [], f"what {name} refused")
            judge = check_whole if name == "well" else check_load
            judge(engines[name].profiles, until, g.interval_ns, name)
        for name in ("refused", "large"):
            check(re.search(f"'{name}'.*HTTP 4", log), f"the log says nothing of {name}: {log[-2000:]}")
        equal(g.counter("refused", "refusedIntervals"), 1, "intervals that were refused")
        equal(engines["hanging"].taken(), [], "what the hanging engine has")
        check(len(engines["hanging"].pushes) > 0, "the hanging engine was never asked")
        check("secret-word" not in log, "the token is in the log")
        check_headers(engines, lambda engine: engine.pushes)
        check_share(engines["half"], engines["well"], g.interval_ns)


def certificate_of(folder, name):
    """A certificate that signs itself, for this address, and its key."""
    paths = [os.path.join(folder, f"{name}.{suffix}") for suffix in ("pem", "key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    return paths


@test
def engine_must_have_a_known_certificate_and_so_must_the_gateway():
    folder = Run.get().folder
    (ours, our_key), (theirs, their_key) = certificate_of(folder, "gateway"), certificate_of(folder, "engine")
    keys = {"CertificateFile": ours, "KeyFile": our_key}
    with contextlib.ExitStack() as stack:
        engines = {name: stack.enter_context(Engine(certificate=theirs, key=their_key, clients=ours))
                   for name in ("known", "unknown", "anonymous")}
        text = send("known", "pyroscope", engines["known"].url, CAFile=theirs, **keys) + \
            send("unknown", "pyroscope", engines["unknown"].url, **keys) + \
            send("anonymous", "pyroscope", engines["anonymous"].url, CAFile=theirs)
        g = stack.enter_context(gateway(text, "tls"))
        g.wait_until(lambda: len(intervals(engines["known"].taken(), SECOND)) > 1, "two intervals over TLS")
        g.wait_for_log("'unknown'.* certificate")
        g.wait_for_log("'anonymous'.* does not answer")
        g.stop()
        for name in ("unknown", "anonymous"):
            equal(engines[name].pushes, [], f"requests of {name}")


@test
def gateway_starts_without_profd_and_without_an_engine():
    with scratch() as folder, Engine() as engine, spinning(0):
        engine.stop()
        socket = os.path.join(folder, "run", "io.profd.Control")
        with Sender(folder, socket, send("there", "pyroscope", engine.url)) as g:
            g.wait_until(lambda: (g.status() or {}).get("source", {}).get("connected") is False, "a state without profd")
            with Daemon(folder, config=session(Event="cpu-clock", Frequency=199)):
                g.wait_until(lambda: g.status()["source"]["intervals"] > 1, "intervals")
                engine.start()
                g.wait_until(engine.taken, "something at the engine")
                g.stop()


@test
def otlp_carries_the_same_samples():
    with Engine() as engine, gateway(send("there", "otlp", engine.url, MaxBodySize="64K"), "otlp") as g:
        g.wait_until(lambda: engine.refusals or len(intervals(engine.taken(), SECOND)) > 2, "three intervals")
        until = g.settle("there")
        g.stop()
        equal(engine.refusals, [], "what the engine refused")
        check_whole(engine.profiles, until)


def seconds_of(paths):
    """The times in the names of these files, in their order."""
    return sorted(int(time.mktime(time.strptime(os.path.basename(path), "files-%Y%m%dT%H%M%SZ.pb.gz"))) for path in paths)


@test
def folder_gets_a_file_for_each_interval():
    folder = os.path.join(Run.get().folder, "profiles")
    os.mkdir(folder)
    with gateway(send("files", "file", folder), "file") as g:
        # An interval that was late comes behind newer ones.
        g.wait_until(lambda: len(found := seconds_of(glob.glob(f"{folder}/files-*"))) > 3 and
                     found == list(range(found[0], found[0] + len(found))), "a file for each of four seconds or more")
        g.stop()
    for name in sorted(os.listdir(folder)):
        check(re.fullmatch(r"files-\d{8}T\d{6}Z\.pb\.gz", name), f"a file has the name {name}")


@test
def folder_gets_recordings_if_it_is_said():
    folder = os.path.join(Run.get().folder, "recordings")
    os.mkdir(folder)
    sends = send("keep", "file", folder, Content="recordings", ObjectIntervalSec="2s")
    with gateway(sends, "keep") as g:
        files = g.wait_until(lambda: len(found := sorted(glob.glob(f"{folder}/*/*/*/*/*.perf.data"))) > 2 and found, "three recordings")
        sent = g.wait_until(lambda: g.destination("keep")["sentSamples"], "samples in the status")
        g.stop()
        done = g.test("keep")
    check(sent > 0 and done.returncode == 0 and "gives back the same bytes" in done.stdout, f"{sent} {done}")
    found = {os.path.relpath(path, folder): path for path in files}
    objects.check_consecutive(found, 2)
    for path in found.values():
        done = profctl("info", path)
        check(done.returncode in (0, 8) and "cpu-clock" in done.stdout, f"profctl info: {done}")


if __name__ == "__main__":
    # Each has a gateway and engines of its own, and waits for most of its time.
    main(at_once=3)
