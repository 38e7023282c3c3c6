#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What profd-gateway answers over HTTP while a real profd records: perf sees the same samples, any window of the past is
one request away, and each trouble has its status."""

import collections
import contextlib
import http.client
import os
import re
import socket
import ssl
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from control_group import service  # noqa: E402
from gateway import Gateway  # noqa: E402
from gateway_pull import FREQUENCY, LIMIT_S, PROFILE_BYTES_MAX, RECORDED_S, Run, ask, counted, counted_by_perf, profile, \
    window  # noqa: E402
from profctl import profctl  # noqa: E402
from recording import plain  # noqa: E402
from wire import Pprof, unpacked  # noqa: E402
from workload import free_port, scratch, wait_until  # noqa: E402
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


TOKENS = "0123456789abcdef-old", "0123456789abcdef-new"


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def certificate_of(folder, name):
    """A certificate of this address and its key."""
    paths = [os.path.join(folder, f"{name}.{suffix}") for suffix in ("pem", "key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]],
                   check=True, capture_output=True)
    return paths


def status_with(port, token):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    with contextlib.closing(c):
        c.request("GET", "/healthz", headers={"Authorization": f"Bearer {token}"})
        return c.getresponse().status


def certificate_at(port):
    """The certificate that a new client is shown."""
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=LIMIT_S).strip()


def content(path):
    with open(path, encoding="utf-8") as f:
        return f.read().strip()


def listen_section(folder, port, **keys):
    """A gateway that only listens, without profd."""
    return f"[Gateway]\nSocket={folder}/none\n[Listen]\nSocket=none\nAddress=127.0.0.1:{port}\n" + \
        "".join(f"{key}={value}\n" for key, value in keys.items())


@test
def reload_takes_a_new_token():
    with scratch() as folder:
        port, path = free_port(), write(os.path.join(folder, "token"), TOKENS[0])
        config = listen_section(folder, port, TokenFile=path)
        with Gateway(folder, config) as gateway:
            equal([status_with(port, token) for token in TOKENS], [200, 401], "the statuses at the start")
            write(path, TOKENS[1])
            equal([status_with(port, token) for token in TOKENS], [200, 401], "the statuses before the reload")
            gateway.reload(config, "Reloaded the configuration")
            equal([status_with(port, token) for token in TOKENS], [401, 200], "the statuses")
            # A change of other sections, even of all, takes no token that is too short, and the gateway goes on.
            write(path, "short")
            other_port = free_port()
            for refused in (config, config.replace("/none", "/other"), listen_section(folder, other_port, TokenFile=path)):
                gateway.reload(refused, "The token of TokenFile= in .Listen. has less than 16 characters(.|\n)*keeping the old one")
                equal([status_with(port, token) for token in TOKENS], [401, 200], "the statuses after a refusal")
            os.unlink(path)
            os.mkfifo(path)
            gateway.reload(config, "The file of TokenFile= in .Listen. cannot be read(.|\n)*keeping the old one")
            os.unlink(path)
            # The new listener fails while the token cannot be read: what was in memory is used again.
            write(path, TOKENS[0])
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                taken.listen()
                gateway.reload(listen_section(folder, taken.getsockname()[1], TokenFile=path), "keeping the old one")
            equal([status_with(port, token) for token in TOKENS], [401, 200], "the statuses after a listener that failed")
            gateway.reload(config, "Reloaded the configuration")
            equal([status_with(port, token) for token in TOKENS], [200, 401], "the statuses at the end")
            equal(gateway.stop(), 0, "the status of the gateway")


@test
def reload_takes_a_new_certificate():
    with scratch() as folder:
        port, pairs = free_port(), [certificate_of(folder, name) for name in ("old", "new")]
        used = [os.path.join(folder, name) for name in ("used.pem", "used.key")]

        def use(pair):
            for source, target in zip(pair, used):
                write(target, content(source) + "\n")

        use(pairs[0])
        config = listen_section(folder, port, CertificateFile=used[0], KeyFile=used[1])
        with Gateway(folder, config) as gateway:
            equal(certificate_at(port), content(pairs[0][0]), "the certificate at the start")
            # The certificate is there and its key is not yet.
            use((pairs[1][0], pairs[0][1]))
            gateway.reload(config, "KeyFile= of .Listen. is not a key(.|\n)*keeping the old one")
            equal(certificate_at(port), content(pairs[0][0]), "the certificate after the refusal")
            use(pairs[1])
            gateway.reload(config, "Reloaded the configuration")
            equal(certificate_at(port), content(pairs[1][0]), "the certificate after the reload")
            equal(gateway.stop(), 0, "the status of the gateway")


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
