#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Engines that none of us wrote get what profd-gateway sends, and give back what perf counts: the OpenTelemetry Collector,
which `./dev engines` builds, and Parca and Pyroscope where they are installed."""

import base64
import collections
import functools
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "integration"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collector import PATH, Collector, Engine, Front, Request  # noqa: E402
from engine_store import FREQUENCY, INTERVALS, PROGRAMS, SECOND, Store  # noqa: E402
from gateway import GATEWAY, Gateway, send  # noqa: E402
from workload import free_port, scratch, wait_until  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

HOST = "engine-test"
PATIENCE_S = 600
PERIOD_NS = SECOND / FREQUENCY
GOLDEN = {"leaf": 404040400, "rec": 80808080, "main": 20202020}


def head(store):
    return f"[Gateway]\nSocket={store.daemon.control()}\nHost={HOST}\nIntervalSec=1s\n[Listen]\nSocket=none\n"


def now_s():
    """The second that has begun, in nanoseconds."""
    return time.time_ns() // SECOND * SECOND


def to_send(folder, store, *names):
    """The state of destinations that have sent nothing of the store's window yet."""
    os.makedirs(os.path.join(folder, "gateway-state"), exist_ok=True)
    for name in names:
        with open(os.path.join(folder, "gateway-state", f"{name}.json"), "w", encoding="utf-8") as f:
            json.dump({"version": 1, "liveNs": max(store.until, now_s()), "lastSuccessNs": 0, "unsent": [[store.since, store.until]],
                       "partials": [], "counters": {}}, f)


def wait_until_sent(gateway, *names):
    """Until the window has arrived at all of these destinations, and what was recorded since."""
    def done():
        found = [gateway.destination(name) for name in names]
        return all(d and d["backlogUsec"] == 0 and d["sentIntervals"] >= len(Store.seconds()) for d in found)

    wait_until(done, PATIENCE_S, "the backlog to be sent")


def by(samples, *keys):
    """Sums of samples (a dict of fields and a weight) by some fields."""
    sums = collections.Counter()
    for fields, weight in samples:
        sums[tuple(fields[key] for key in keys)] += weight
    return sums


def same(got, want, what):
    """Counters with what is wrong, and not all that is right."""
    wrong = {key: (got.get(key), n) for key, n in want.items() if got.get(key) != n}
    wrong.update({key: (n, None) for key, n in got.items() if key not in want})
    check(not wrong, f"{what}, got and wanted: {dict(list(wrong.items())[:20])}")


def clock_of(ns):
    return time.strftime("%H:%M:%S", time.localtime(ns // SECOND))


_aliases = {}


def alias(name):
    """One of the names that functions of the kernel have which begin at the same place."""
    if not _aliases:
        at = collections.defaultdict(list)
        with open("/proc/kallsyms", encoding="utf-8") as f:
            for address, kind, symbol in (line.split()[:3] for line in f):
                if kind in "tTwW":
                    at[address].append(symbol)
        _aliases.update({symbol: min(names) for names in at.values() if len(names) > 1 for symbol in names})
        _aliases[None] = None
    return _aliases.get(name, name)


def otlp_samples(profiles):
    for profile in profiles:
        for frames, attributes, value in profile["samples"]:
            yield {"service": profile["resource"]["service.name"], "comm": attributes.get("thread.name"),
                   "leaf": alias(frames[0]) if frames else "", "time": profile["time"]}, value


def first_entries(request):
    """The first entry and the length of each table of its dictionary."""
    tables = request["dictionary"]
    names = ("stringTable", "mappingTable", "locationTable", "functionTable", "attributeTable", "stackTable")
    return {name: (tables[name][0], len(tables[name])) for name in names}


class Sent:
    """The store's window through one gateway to two tenants of the Collector, once: `a` as it is, `b` by rules."""

    result = None

    @classmethod
    def get(cls):
        if cls.result is None:
            store = Store.get()
            with scratch() as folder, Collector(folder) as collector, Front(collector.ports) as front:
                cls.result = cls.run(folder, store, collector, front)
        return cls.result

    @classmethod
    def run(cls, folder, store, collector, front):
        to_send(folder, store, "plain", "ruled")
        rules = ("[Relabel keep]\nSends=ruled\nAction=keep\nSourceLabels=service_name\nRegex=(perl|spin)\n"
                 "[Relabel name]\nSends=ruled\nSourceLabels=service_name\nRegex=p(.*)\nTargetLabel=service_name\nReplacement=b-$1\n"
                 "[Relabel less]\nSends=ruled\nAction=labeldrop\nRegex=comm\n")
        config = head(store) + rules + send("plain", "otlp", front.url(), Tenant="a") + send("ruled", "otlp", front.url(), Tenant="b")
        begun = time.monotonic()
        with Gateway(folder, config) as gateway:
            wait_until_sent(gateway, "plain", "ruled")
            took = time.monotonic() - begun
            status = {name: gateway.destination(name) for name in ("plain", "ruled")}
        print(f"# note: {INTERVALS} intervals of a second went to two destinations in {took:.1f} s")
        wait_until(lambda: all(len(list(collector.lines(t))) >= s["sentRequests"] for t, s in zip("ab", (status["plain"], status["ruled"]))),
                   30, "the Collector to write what it got")
        profiles, entries = [], []
        for request in collector.requests("a"):
            profiles += Request(request).profiles()
            entries.append(first_entries(request))
        return {"a": profiles, "b": collector.profiles("b"), "entries": entries, "seen": front.seen, "status": status}

    @classmethod
    def window(cls, tenant):
        """Without what the gateway has followed live in the meantime."""
        return [p for p in cls.get()[tenant] if Store.since <= p["time"] < Store.until]


@test
def collector_gets_the_golden_profile():
    with scratch() as folder, Collector(folder) as collector:
        config = os.path.join(folder, "gateway.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"[Gateway]\nHost={HOST}\n" + send("otel", "otlp", f"http://127.0.0.1:{collector.ports['a']}"))
        done = subprocess.run([GATEWAY, f"--config={config}", "--test=otel"], capture_output=True, text=True, check=False, timeout=60)
        equal(done.returncode, 0, done.stderr + done.stdout)
        request, = wait_until(lambda: list(collector.requests()), 30, "the Collector to write it")
    profile, = Request(request).profiles()
    equal(profile["scope"], "process_cpu", "the scope")
    equal((profile["type"], profile["period_type"], profile["period"]),
          (("samples", "count"), ("cpu", "nanoseconds"), 10101010), "the types")
    equal({s[0][0]: s[2] * profile["period"] for s in profile["samples"]}, GOLDEN, "the sums")
    equal([s[0] for s in sorted(profile["samples"], key=lambda s: len(s[0]))],
          [["main"], ["rec", "main"], ["leaf", "rec", "main"]], "the stacks")
    equal(profile["resource"]["host.name"], HOST, "the host")
    check(profile["resource"]["service.name"] == "profd-golden", profile["resource"])
    equal(profile["duration"], SECOND, "the duration")
    check(0 <= time.time_ns() - profile["time"] < 120 * SECOND, profile["time"])
    equal([s[1] for s in profile["samples"]], [{"process.pid": 1, "thread.name": "profd-golden"}] * 3, "attributes of samples")
    equal(Request(request).mappings(), {"/usr/bin/profd-golden": {"process.executable.build_id.gnu": "5a" * 20}}, "the mappings")


@test
def entry_0_of_each_table_is_its_zero_value():
    for entries in Sent.get()["entries"]:
        equal(entries.pop("stringTable")[0], "", "the first string")
        for name, (entry, length) in entries.items():
            first = {key: value for key, value in entry.items() if value not in ([], {}, "", 0)}
            equal(first, {}, f"the first entry of {name}")
            check(length > 1, f"{name} is empty")


@test
def every_interval_is_there_once_and_has_its_exact_time():
    times = collections.Counter()
    for profile in Sent.window("a"):
        equal(profile["duration"], SECOND, "the duration")
        times[(profile["time"], profile["resource"]["service.name"], tuple(sorted({s[1].get("thread.name") for s in profile["samples"]})))] += 1
    equal([key for key, n in times.items() if n > 1], [], "profiles with the same labels and time")
    equal({key[0] % SECOND for key in times}, {0}, "the begins of intervals within a second")
    equal(sorted({clock_of(key[0]) for key in times}), sorted(Store.seconds()), "the times of intervals")
    # One at each seam of the store may have had no time for a sample.
    check(INTERVALS * 9 // 10 < len(Store.seconds()) <= INTERVALS, f"{len(Store.seconds())} intervals have samples")


@test
def totals_by_service_and_program_are_those_of_perf():
    want = collections.Counter((comm,) for _, comm, _ in Store.samples())
    same(by(otlp_samples(Sent.window("a")), "comm"), want, "the samples of each program")
    # Other programs of this machine may belong to a unit, which is their service.
    ours = {(name,): want[(name,)] for name in PROGRAMS}
    got = by(otlp_samples(Sent.window("a")), "service")
    same({key: got[key] for key in ours}, ours, "the samples of each service")
    check(min(want[("spin",)], want[("perl",)]) > INTERVALS, "spin and perl were hardly recorded")


@test
def totals_by_function_are_those_of_perf():
    got = by(otlp_samples(Sent.window("a")), "comm", "leaf")
    want = collections.Counter((comm, alias(function)) for _, comm, function in Store.samples())
    named = {key: n for key, n in want.items() if key[1] != "[unknown]"}
    ours = {key: n for key, n in named.items() if key[0] in PROGRAMS and is_named_by_perf(key[1])}
    same({key: got[key] for key in ours}, ours, "the samples of each function of our programs")
    # perf may take another file than the one that was mapped, and makes names of its own for entries of the PLT.
    wrong = sum(abs(got[key] - n) for key, n in named.items())
    check(wrong * 100 < sum(named.values()), f"{wrong} samples of {sum(named.values())} have another function")
    check(sum(named.values()) * 10 > sum(want.values()) * 8, f"perf names only {sum(named.values())} of {sum(want.values())}")
    check(not [key for key in got if not key[1]], "frames without a name")


@test
def totals_of_each_interval_are_those_of_perf():
    got = by(otlp_samples(Sent.window("a")), "time")
    same({clock_of(ns): n for (ns,), n in got.items()}, Store.seconds(), "the samples of each second")


@test
def rules_keep_rename_and_drop_labels_of_one_destination_alone():
    got = by(otlp_samples(Sent.window("b")), "service")
    plain = by(otlp_samples(Sent.window("a")), "service")
    equal(got, {("spin",): plain[("spin",)], ("b-erl",): plain[("perl",)]}, "the services of the second destination")
    check(all("thread.name" not in s[1] for p in Sent.window("b") for s in p["samples"]), "comm was dropped")
    check(all(p["resource"]["host.name"] == HOST for p in Sent.window("b")), "the host is always a label")


@test
def tenants_are_named_and_bodies_compressed():
    seen = Sent.get()["seen"]
    equal({path for path, _, _, _ in seen}, {PATH}, "the paths")
    equal({tenant for _, tenant, _, _ in seen}, {"a", "b"}, "the tenants")
    equal({encoding for _, _, encoding, _ in seen}, {"gzip"}, "the encodings")
    for name in ("plain", "ruled"):
        status = Sent.get()["status"][name]
        equal((status["refusedIntervals"], status["repeatedRequests"]), (0, 0), f"refused and repeated of {name}")


@test
def protoc_decodes_what_was_sent():
    if not shutil.which("protoc"):
        skip("no protoc")
    for _, _, _, body in Sent.get()["seen"][:5]:
        done = subprocess.run(["protoc", "--decode_raw"], input=body, capture_output=True, check=False)
        equal((done.returncode, done.stderr), (0, b""), "what protoc says")


@test
def files_are_read_by_pprof_of_go():
    if not shutil.which("go"):
        skip("go is not installed")
    store = Store.get()
    with scratch() as folder:
        out = os.path.join(folder, "out")
        os.mkdir(out)
        to_send(folder, store, "files")
        with Gateway(folder, head(store) + send("files", "file", out)) as gateway:
            wait_until_sent(gateway, "files")
        names = sorted(os.path.join(out, name) for name in os.listdir(out) if name.endswith(".pb.gz"))[:len(Store.seconds())]
        raw = subprocess.run(["go", "tool", "pprof", "-tags", "-sample_index=samples", *names], capture_output=True, text=True, check=True,
                             env={**os.environ, "PPROF_TMPDIR": folder}).stdout
    block = raw[raw.index(" service_name: "):].split("\n\n")[0]
    got = {line.split(": ")[1]: int(line.split()[0]) for line in block.splitlines()[1:]}
    want = collections.Counter(comm for _, comm, _ in Store.samples())
    equal({name: got.get(name) for name in ("spin", "perl")}, {name: want[name] for name in ("spin", "perl")}, "samples by pprof")


def ask(url, data=None, kind="application/json", **query):
    if query:
        url += "?" + urllib.parse.urlencode(query)
    request = urllib.request.Request(url, data=data and json.dumps(data).encode(), headers={"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def send_window(folder, kind, url):
    """The store's window to an engine, until all of it has arrived."""
    store = Store.get()
    to_send(folder, store, kind)
    with Gateway(folder, head(store) + send(kind, kind, url)) as gateway:
        wait_until_sent(gateway, kind)


def golden(folder, kind, url):
    config = os.path.join(folder, "golden.conf")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"[Gateway]\nHost={HOST}\n" + send("it", kind, url))
    done = subprocess.run([GATEWAY, f"--config={config}", "--test=it"], capture_output=True, text=True, check=False, timeout=120)
    equal(done.returncode, 0, done.stderr + done.stdout)


def iso(ns):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ns // SECOND))


@test
def parca_gives_back_what_perf_counts():
    if not shutil.which("parca"):
        skip("no parca on PATH")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with scratch() as folder:
        with open(os.path.join(folder, "parca.yaml"), "w", encoding="utf-8") as f:
            f.write("object_storage: {bucket: {type: FILESYSTEM, config: {directory: ./data}}}\n")
        command = ["parca", "--config-path=parca.yaml", f"--http-address=127.0.0.1:{port}",
                   "--debuginfod-upstream-servers=http://127.0.0.1:9", "--storage-active-memory=67108864"]
        with Engine(folder, command, [port]):
            golden(folder, "parca", url)
            send_window(folder, "parca", url)
            for service in ("spin", "perl"):
                query = f'process_cpu:samples:count:cpu:nanoseconds:delta{{service_name="{service}",host="{HOST}"}}'
                # The end belongs to Parca's range, and the interval that begins there does not belong to the window.
                got = ask(url + "/api/profiles/query", mode="MODE_MERGE", report_type="REPORT_TYPE_PPROF",
                          **{"merge.query": query, "merge.start": iso(Store.since), "merge.end": iso(Store.until - SECOND)})
                path = os.path.join(folder, f"{service}.pb.gz")
                with open(path, "wb") as f:
                    f.write(base64.b64decode(got["pprof"]))
                top = subprocess.run(["go", "tool", "pprof", "-top", "-unit=nanoseconds", "-nodecount=100000", "-nodefraction=0", path],
                                     capture_output=True, text=True, check=True).stdout
                same_leaves(pprof_top(top), service)


def pprof_top(text):
    """Samples by function; Parca answers in nanoseconds, which are samples times their period."""
    sums = collections.Counter()
    for row in (line.split(None, 5) for line in text.split("cum%\n")[-1].splitlines()):
        sums[alias(row[5].removesuffix(" (inline)"))] += round(int(row[0].removesuffix("ns")) / PERIOD_NS)
    return sums


def leaves(service):
    return collections.Counter(alias(f) for _, comm, f in Store.samples() if comm == service)


def is_named_by_perf(function):
    """perf makes names of its own for entries of the PLT."""
    return function != "[unknown]" and not function.endswith("@plt")


def same_leaves(got, service):
    want = leaves(service)
    equal(sum(got.values()), sum(want.values()), f"all samples of {service}")
    named = {function: n for function, n in want.items() if is_named_by_perf(function)}
    same({function: got[function] for function in named}, named, f"the samples of each function of {service}")


PYROSCOPE = """target: all
architecture_storage: v2
analytics: {reporting_enabled: false}
self_profiling: {disable_push: true}
server: {http_listen_address: 127.0.0.1, http_listen_port: %(http)d, grpc_listen_address: 127.0.0.1, grpc_listen_port: %(grpc)d}
memberlist: {bind_addr: [127.0.0.1], bind_port: %(member)d, advertise_addr: 127.0.0.1}
pyroscopedb: {data_path: ./data}
storage: {backend: filesystem, filesystem: {dir: ./shared}}
"""


def pyroscope_command(ports):
    here = "127.0.0.1"
    words = {"metastore.address": f"{here}:{ports['grpc']}", "query-backend.address": f"{here}:{ports['grpc']}",
             "metastore.raft.bind-address": f"{here}:{ports['raft']}", "metastore.raft.advertise-address": f"{here}:{ports['raft']}",
             "metastore.raft.server-id": f"{here}:{ports['raft']}", "metastore.data-dir": "./data/metastore/data",
             "metastore.raft.dir": "./data/metastore/raft", "metastore.raft.snapshots-dir": "./data/metastore/raft"}
    words.update({name: here for name in (
        "segment-writer.lifecycler.addr", "query-frontend.instance-addr", "distributor.ring.instance-addr", "compactor.ring.instance-addr",
        "query-scheduler.ring.instance-addr", "overrides-exporter.ring.instance-addr", "store-gateway.sharding-ring.instance-addr")})
    return ["pyroscope", "-config.file=p.yaml", *(f"-{name}={value}" for name, value in words.items())]


def is_ready(url):
    try:
        with urllib.request.urlopen(url + "/ready", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


@test
def pyroscope_gives_back_what_perf_counts():
    if not shutil.which("pyroscope"):
        skip("no pyroscope on PATH")
    ports = {name: free_port() for name in ("http", "grpc", "raft", "member")}
    url = f"http://127.0.0.1:{ports['http']}"
    with scratch() as folder:
        with open(os.path.join(folder, "p.yaml"), "w", encoding="utf-8") as f:
            f.write(PYROSCOPE % ports)
        with Engine(folder, pyroscope_command(ports), [ports["http"]]):
            wait_until(lambda: is_ready(url), 120, "pyroscope to be ready")
            golden(folder, "pyroscope", url)
            send_window(folder, "pyroscope", url)
            for service in ("spin", "perl"):
                question = {"profileTypeID": "process_cpu:samples:count:cpu:nanoseconds",
                            "labelSelector": f'{{service_name="{service}",host="{HOST}"}}',
                            "start": Store.since // 1_000_000, "end": Store.until // 1_000_000 - 1, "maxNodes": 1_000_000}
                ask_pyroscope = functools.partial(ask, url + "/querier.v1.QuerierService/SelectMergeStacktraces", question)
                all_samples = sum(leaves(service).values())
                wait_until(lambda: sum(pyroscope_leaves(ask_pyroscope()).values()) >= all_samples, 60, f"{all_samples} samples of {service}")
                same_leaves(pyroscope_leaves(ask_pyroscope()), service)


def pyroscope_leaves(answer):
    """Self values by function; a level has four numbers for each bar: offset, total, self, name."""
    graph = answer.get("flamegraph", {})
    sums = collections.Counter()
    for level in graph.get("levels", []):
        values = [int(v) for v in level["values"]]
        for i in range(0, len(values), 4):
            if values[i + 2]:
                sums[alias(graph["names"][values[i + 3]])] += values[i + 2]
    return sums


if __name__ == "__main__":
    main()
