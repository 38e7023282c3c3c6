#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What profd-gateway answers over HTTP while a real profd records: perf sees the same samples, any window of the past is
one request away, and each trouble has its status."""

import collections
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from control_group import service  # noqa: E402
from gateway_pull import FREQUENCY, LIMIT_S, PROFILE_BYTES_MAX, RECORDED_S, Run, ask, counted, counted_by_perf, profile, \
    window  # noqa: E402
from profctl import profctl  # noqa: E402
from recording import plain  # noqa: E402
from wire import Pprof, unpacked  # noqa: E402
from workload import wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

UNIT_S = 2


@test
def profile_of_a_window_has_the_samples_that_perf_reports():
    got = profile(window())
    equal(got.types, [("samples", "count"), ("cpu", "nanoseconds")], "the types")
    equal((got.time_ns, got.duration_ns), (Run.since * 10**9, RECORDED_S * 10**9), "the window")
    by_comm = collections.Counter()
    for comm, count in counted_by_perf("comm").items():
        by_comm[plain(comm)] += count
    check(sum(by_comm.values()) > FREQUENCY, f"perf reports {by_comm}")
    equal(counted(got.samples, lambda s: plain(s[2]["comm"])), by_comm, "the samples by name of the process")
    names = counted(got.samples, lambda s: s[0][0])
    spins = {name.split()[-1]: count for name, count in counted_by_perf("sym").items() if "spin_" in name}
    check(spins, "perf names no function of the load")
    equal({name: names[name] for name in spins}, spins, "the samples of the load's functions")


@test
def process_and_unit_are_selected():
    (pid, count), = counted(profile(window()).samples, lambda s: s[2].get("pid")).most_common(1)
    some = profile(f"{window()}&pid={pid}").samples
    equal(counted(some, lambda s: s[2]["pid"]), {pid: count}, "the samples of a process")
    equal(profile(f"{window()}&unit=no-such.service").samples, [], "the samples of a unit that does not exist")
    unit = f"profd-test-{os.getpid()}.service"
    with service(unit) as pids:
        since = int(time.time()) + 1
        wait_until(lambda: time.time() > since + UNIT_S, LIMIT_S, "samples of the unit")
        query = f"since={since}&seconds={UNIT_S}"
        want = {pid: n for pid, n in counted(profile(query).samples, lambda s: s[2].get("pid")).items() if pid in pids}
        some = profile(f"{query}&unit={unit}").samples
    check(sum(want.values()) > FREQUENCY // 10, f"few samples of the unit: {want}")
    equal(counted(some, lambda s: s[2]["pid"]), want, "the samples of a unit")


@test
def time_that_was_not_recorded_is_no_profile():
    Run.get()
    for query in ("since=1000000000&seconds=10", "since=1&seconds=3600"):
        status, _, body = ask(f"/debug/pprof/profile?{query}")
        equal((status, body), (404, b"Nothing was recorded in that time, or it was deleted.\n"), query)


@test
def curl_reaches_the_unix_socket_of_the_runtime_folder():
    Run.get()
    path = os.path.join(Run.gateway.runtime, "http")
    equal(os.stat(path).st_mode & 0o777, 0o660, "the mode of the socket")
    done = subprocess.run(["curl", "-sS", "--unix-socket", path, "http://localhost/debug/pprof/profile?" + window()],
                          capture_output=True, timeout=LIMIT_S, check=True)
    equal(sum(s[1][0] for s in Pprof(unpacked(done.stdout, PROFILE_BYTES_MAX)).samples), sum(counted_by_perf("comm").values()),
          "the samples")


@test
def metrics_are_of_profd_and_of_the_gateway():
    Run.get()
    text = ask("/metrics")[2].decode()
    said = profctl("metrics", socket=Run.control()).stdout
    names = [re.findall(r"^# TYPE (\S+)", each, re.M) for each in (text, said)]
    equal(names[0][:len(names[1])], names[1], "the metrics of profd")
    equal(len(set(names[0])), len(names[0]), "the number of names")
    check(re.search(r"^profd_up 1$", text, re.M) and "profd_gateway_scrapes_total" in names[0], text[-2000:])


@test
def many_clients_get_profiles_or_a_time_to_come_back():
    Run.get()
    program = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %header{retry-after}\\n", f"http://127.0.0.1:{Run.port}/debug/pprof/profile?seconds=30"]
    clients = [subprocess.Popen(program, stdout=subprocess.PIPE, text=True) for _ in range(12)]
    answers = collections.Counter(client.communicate(timeout=LIMIT_S)[0].strip() for client in clients)
    equal(set(answers) | {"200", "503 5"}, {"200", "503 5"}, "the answers")
    check(answers["200"] >= 4, f"the answers are {answers}")


@test
def answers_say_that_profd_is_away():
    run = Run.get()
    run.daemon.kill()
    wait_until(lambda: ask("/readyz")[0] == 503, LIMIT_S, "the gateway to notice")
    status, headers, body = ask("/debug/pprof/profile?seconds=5")
    equal((status, headers["Retry-After"], body), (503, "5", b"profd does not answer; ask again when it runs.\n"), "the answer")
    status, _, text = ask("/metrics")
    equal(status, 200, "the status of the metrics")
    check(re.search(rb"^profd_up 0$", text, re.M) and b"profd_gateway_source_up 0" in text, text[-1000:])
    equal(ask("/healthz")[0], 200, "the health")


if __name__ == "__main__":
    main()
