#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that none of us wrote ask profd-gateway: pprof of Go, promtool and Prometheus. What is not installed is skipped
by name."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "integration"))
from gateway import Gateway  # noqa: E402
from gateway_pull import FREQUENCY, PROFILE_BYTES_MAX, Run, ask  # noqa: E402
from wire import Pprof, unpacked  # noqa: E402
from workload import end, free_port, wait_until  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

TOKEN = "0123456789abcdef-of-a-test"
# The first use of pprof compiles it; what is compiled stays in the build folder.
LIMIT_S = 600
GO = {"GOCACHE": os.environ.get("GOCACHE", build_path("go-cache"))}


def need(program):
    if not shutil.which(program):
        skip(f"{program} is not installed")


@test
def go_pprof_gets_the_past_at_once():
    if not shutil.which("go"):
        skip("go is not installed")
    Run.get()
    begin_ns = time.time_ns()
    done = subprocess.run(["go", "tool", "pprof", "-raw", f"http://127.0.0.1:{Run.port}/debug/pprof/profile?seconds=30"],
                          capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          env={**os.environ, **GO, "PPROF_TMPDIR": Run.folder})
    equal(done.returncode, 0, done.stderr)
    duration = re.search(r"^Duration: 30s?$", done.stdout, re.M)
    check(duration, done.stdout[:500])
    path = [os.path.join(Run.folder, name) for name in os.listdir(Run.folder) if name.startswith("pprof.")]
    equal(len(path), 1, "the profiles that pprof kept")
    with open(path[0], "rb") as f:
        got = Pprof(unpacked(f.read(), PROFILE_BYTES_MAX))
    # It is the half minute before the request, so nothing was waited for.
    check(begin_ns < got.time_ns + got.duration_ns < begin_ns + 30 * 10**9, f"the window is {got.time_ns} + {got.duration_ns}")
    listed = re.search(r"^Samples:\n.*\n((?:.*\n)*?)Locations", done.stdout, re.M)[1]
    total = sum(int(count) for count in re.findall(r"^ +(\d+) +\d+: ", listed, re.M))
    equal(total, sum(sample[1][0] for sample in got.samples), "the samples that pprof prints")
    check(total > FREQUENCY, f"there are {total} samples")


@test
def promtool_finds_no_fault_in_the_metrics():
    need("promtool")
    Run.get()
    # The second answer also has what the first one has changed.
    for _ in range(2):
        done = subprocess.run(["promtool", "check", "metrics"], input=ask("/metrics")[2], capture_output=True, timeout=LIMIT_S,
                              check=False)
        equal((done.returncode, done.stdout + done.stderr), (0, b""), "what promtool reports")


def certificate(folder):
    """A certificate of the loopback address and its key."""
    paths = os.path.join(folder, "certificate.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-out", paths[0], "-keyout", paths[1]],
                   capture_output=True, check=True)
    return paths


def write(name, text):
    path = os.path.join(Run.folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def asked(port, query):
    """The values that Prometheus has for a query, by the label that tells our two jobs apart."""
    try:
        url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
            rows = json.load(answer)["data"]["result"]
    except OSError:
        return {}
    return {row["metric"]["job"]: float(row["value"][1]) for row in rows}


@test
def prometheus_scrapes_both_with_and_without_tls():
    need("prometheus")
    run = Run.get()
    cert, key = certificate(run.folder)
    token = write("token", TOKEN)
    secure, port = free_port(), free_port()
    os.mkdir(os.path.join(run.folder, "secure"))
    config = write("prometheus.yml", f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: plain
    static_configs: [{{targets: ["127.0.0.1:{run.port}"]}}]
  - job_name: secure
    scheme: https
    tls_config: {{ca_file: {cert}}}
    authorization: {{credentials_file: {token}}}
    static_configs: [{{targets: ["127.0.0.1:{secure}"]}}]
  - job_name: denied
    scheme: https
    tls_config: {{ca_file: {cert}}}
    static_configs: [{{targets: ["127.0.0.1:{secure}"]}}]
""")
    listen = f"[Listen]\nAddress=127.0.0.1:{secure}\nCertificateFile={cert}\nKeyFile={key}\nTokenFile={token}\n"
    with Gateway(os.path.join(run.folder, "secure"), f"[Gateway]\nSocket={run.daemon.control()}\n{listen}"):
        prometheus = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={run.folder}/tsdb",
                                       f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"], stdin=subprocess.DEVNULL)
        try:
            wait_until(lambda: len(asked(port, "scrape_samples_scraped")) == 3, LIMIT_S, "a scrape of each job")
            equal(asked(port, "up"), {"plain": 1, "secure": 1, "denied": 0}, "what is up")
            equal(asked(port, "profd_up"), {"plain": 1, "secure": 1}, "whether profd is up")
            samples = asked(port, "profd_samples_total")
            check(samples["plain"] > 0 and samples["secure"] > 0, f"the samples are {samples}")
        finally:
            end(prometheus)


PARCA = """
object_storage: {{bucket: {{type: FILESYSTEM, config: {{directory: {folder}}}}}}}
scrape_configs:
  - job_name: pulled
    scrape_interval: 5s
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
    profiling_config:
      pprof_config:
        memory: {{enabled: false}}
        block: {{enabled: false}}
        goroutine: {{enabled: false}}
        mutex: {{enabled: false}}
        process_cpu: {{enabled: true, delta: true, path: /debug/pprof/profile}}
"""


def types_of_parca(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/profiles/types", timeout=LIMIT_S) as answer:
            return {(row["name"], row["sampleType"]) for row in json.load(answer).get("types", ())}
    except OSError:
        return set()


@test
def parca_scrapes_profiles():
    if not shutil.which("parca"):
        skip("no parca on PATH")
    run, port = Run.get(), free_port()
    config = write("parca.yaml", PARCA.format(folder=os.path.join(run.folder, "parca"), port=run.port))
    parca = subprocess.Popen(["parca", f"--config-path={config}", f"--http-address=127.0.0.1:{port}",
                              "--debuginfod-upstream-servers=http://127.0.0.1:9", "--storage-active-memory=67108864"],
                             cwd=run.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wanted = {("process_cpu", "samples"), ("process_cpu", "cpu")}
        wait_until(lambda: wanted <= types_of_parca(port), LIMIT_S, "profiles of the gateway in Parca")
    finally:
        end(parca)


if __name__ == "__main__":
    main()
