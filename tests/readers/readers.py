#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers that none of us wrote take what profctl exports, and count what perf counts: pprof of Go, protoc, speedscope in
Chromium, and the command line of the Firefox Profiler. `./dev readers` installs the last two into build/readers."""

import base64
import glob
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check, equal, main, skip, test  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix="profd-readers.")
PROFCTL = build_path("client", "profctl")
TOOL = build_path("tests", "readers", "export-tool")
MODULES = build_path("readers", "node_modules")
WORK = "find /usr/include | sort -r | md5sum; perl -e 'for (1..400000) { $x{$_ % 99} .= \"$_\" }'"
HOSTILE = 'wo"r\\xff;k\\x5c\\x0a'
_made = {}


def path(*names):
    return os.path.join(FOLDER.name, *names)


def run(*command, status=0, **env):
    done = subprocess.run(command, capture_output=True, check=False, timeout=600, env={**os.environ, **env})
    equal(done.returncode, status, f"{command}: {done.stderr[-500:]}; its status")
    return done.stdout


def need(command):
    if not shutil.which(command):
        skip(f"no {command}")


def recording():
    """A perf.data of a second of shell, once."""
    if "rec" not in _made:
        if os.geteuid() != 0:
            skip("recording whole programs needs root")
        run("perf", "record", "-q", "-F", "999", "-g", "-k", "CLOCK_MONOTONIC", "-o", path("rec"), "--", "sh", "-c", WORK)
        _made["rec"] = [line.strip() for line in run("perf", "script", "-i", path("rec"), "-F", "comm").decode("utf-8", "replace").splitlines()]
    return path("rec")


def samples():
    """How many samples perf sees, and how many of each comm."""
    recording()
    comms = [line for line in _made["rec"] if line]
    return len(comms), {comm: comms.count(comm) for comm in comms}


def exported(name, *options):
    """The path of the recording in a format."""
    out = path(f"{name}.out")
    run(PROFCTL, name, "--count", "--force", "--output", out, *options, recording())
    return out


def hand_made(name):
    """The path of the profile of the unit tests in a format."""
    out = path(f"{name}.hand")
    with open(out, "wb") as f:
        f.write(run(TOOL, name))
    return out


def pprof(*arguments, **env):
    need("go")
    return run("go", "tool", "pprof", *arguments, PPROF_TMPDIR=FOLDER.name, **env).decode("utf-8", "replace")


@test
def pprof_counts_the_samples_of_perf():
    raw = pprof("-raw", exported("pprof"))
    rows = re.findall(r"^ +(\d+) +(\d+): ", raw, re.M)
    equal(sum(int(row[0]) for row in rows), samples()[0], "the samples that pprof counts")
    check(re.search(r"^samples/count(?:\[dflt\])? cpu/nanoseconds", raw, re.M), raw[:500])
    check(re.search(r"^Duration: [\d.]", raw, re.M) and re.search(r"^Time: 20", raw, re.M), raw[:500])
    tags = pprof("-tags", "-sample_index=samples", exported("pprof"))
    comms = tags[tags.index(" comm: "):].split("\n\n")[0]
    got = {m[2]: int(m[1]) for m in re.finditer(r"^ +(\d+) \([ \d.]+%\): (.*)$", comms, re.M)}
    equal(got, {comm: n for comm, n in samples()[1].items() if comm in got}, "the samples of each comm")
    check(sum(got.values()) >= samples()[0] * 9 // 10, got)
    top = pprof("-top", "-sample_index=samples", exported("pprof"))
    check("Showing nodes accounting for" in top, top[:500])


@test
def pprof_reads_hostile_names_inlined_functions_and_all_labels():
    raw = pprof("-raw", hand_made("pprof"))
    for words in (f"comm:[{HOSTILE}] unit:[shop.service]", "cpu:[0 cpu] pid:[10 pid] tid:[11 tid]", "add_up shop.h:7:0",
                  "s=0(work<[u8; 4]>)", "old.so+0x10 [replaced]", "/usr/bin/shop 00abab", "[kernel.kallsyms]", "Duration: 2s"):
        check(words in raw, f"'{words}' is not in\n{raw}")


@test
def pprof_opens_a_perf_data_by_itself():
    os.makedirs(path("bin"), exist_ok=True)
    os.symlink(PROFCTL, path("bin", "perf_to_profile"))
    raw = pprof("-raw", recording(), PATH=path("bin") + ":" + os.environ["PATH"])
    equal(sum(int(n) for n in re.findall(r"^ +(\d+) +\d+: ", raw, re.M)), samples()[0], "the samples that pprof counts")


@test
def protoc_decodes_every_byte():
    need("protoc")
    for out in exported("pprof"), hand_made("pprof"):
        with open(out, "rb") as f:
            plain = zlib.decompress(f.read(), 31)
        done = subprocess.run(["protoc", "--decode_raw"], input=plain, capture_output=True, check=False, timeout=300)
        equal((done.returncode, done.stderr), (0, b""), "what protoc says")
        check(len(done.stdout) > 500, done.stdout)


def speedscope(profile):
    """The rows of speedscope's table: self, total and name, after it has loaded a profile."""
    need("chromium")
    pages = glob.glob(os.path.join(MODULES, "speedscope", "dist", "release", "index.html"))
    if not pages:
        skip("no speedscope in build/readers; './dev readers' installs it")
    with open(profile, "rb") as f:
        data = base64.b64encode(f.read()).decode()
    with open(path("load.js"), "w", encoding="ascii") as f:
        f.write(f'speedscope.loadFileFromBase64("profile.speedscope.json", "{data}")')
    page = run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom",
               "--virtual-time-budget=20000", f"--user-data-dir={path('chromium')}", "--window-size=1200,4000",
               f"file://{pages[0]}#localProfilePath={path('load.js')}&view=sandwich").decode()
    rows = []
    for row in re.findall(r"<tr class=[^>]*>(.*?)</tr>", page, re.S):
        cells = [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
        if len(cells) == 3:
            rows.append(cells)
    check(rows, "speedscope shows no rows: " + re.sub(r"<[^>]*>", " ", page)[-500:])
    return rows


@test
def speedscope_shows_the_hand_made_profile():
    rows = {name: (total, own) for total, own, name in speedscope(hand_made("speedscope"))}
    equal(rows["add_up"], ("50.00ns (63%)", "50.00ns (63%)"), "add_up")
    equal(rows["main"], ("60.00ns (75%)", "0.00ns (<0.01%)"), "main")
    equal(rows[HOSTILE][0], "30.00ns (38%)", "the thread with the hostile name")


@test
def speedscope_counts_the_samples_of_perf():
    total, comms = samples()
    rows = {name: (total, own) for total, own, name in speedscope(exported("speedscope"))}
    found = {comm: int(rows[comm][0].split()[0].replace(",", "")) for comm in comms if comm in rows}
    equal(found, {comm: comms[comm] for comm in found}, "the samples of each comm")
    busiest = max(comms, key=comms.get)
    check(busiest in found, f"{busiest} with {comms[busiest]} of {total} samples is not shown: {list(rows)}")


class Firefox:
    """A session of the Firefox Profiler's command line with a profile. It gives its server half a second to start, which may
    not do, and the server starts nevertheless."""

    def __init__(self, profile):
        need("node")
        self.program = os.path.join(MODULES, "@firefox-devtools", "profiler-cli", "dist", "profiler-cli.js")
        if not os.path.exists(self.program):
            skip("no Firefox Profiler in build/readers; './dev readers' installs it")
        shutil.copy(profile, path("profile.json"))
        self.ask("load", path("profile.json"), "--session", "test", check_it=False)
        end = time.monotonic() + 60
        while (asked := self.ask("thread", "list", check_it=False)).returncode != 0:
            check(time.monotonic() < end, asked.stdout + asked.stderr)
            time.sleep(0.5)

    def ask(self, *arguments, check_it=True):
        done = subprocess.run(["node", self.program, *arguments], capture_output=True, text=True, check=False, timeout=120,
                              env={**os.environ, "HOME": FOLDER.name, "PROFILER_CLI_SESSION_DIR": path("sessions"),
                                   "PROFILER_CLI_NO_SYMBOLICATE": "1"})
        if check_it:
            equal(done.returncode, 0, f"{arguments}: {done.stderr}")
        return done

    def threads(self):
        """Each thread with its functions, by handle."""
        listed = self.ask("thread", "list", "--json")
        found = {}
        for handle in dict.fromkeys(re.findall(r'"(t-\d+)"', listed.stdout)):
            self.ask("thread", "select", handle)
            found[handle] = json.loads(self.ask("thread", "functions", "--include-idle", "--limit", "0", "--json").stdout)
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ask("stop", "--all", check_it=False)


@test
def firefox_shows_the_hand_made_profile():
    with Firefox(hand_made("firefox")) as firefox:
        threads = {t["friendlyThreadName"]: {f["nameWithLibrary"]: (f["selfSamples"], f["totalSamples"]) for f in t["functions"]}
                   for t in firefox.threads().values()}
    equal(sorted(threads), sorted(["shop", HOSTILE]), "the threads")
    equal(threads["shop"]["shop!add_up"], (0.00005, 0.00005), "add_up, in milliseconds")
    equal(threads["shop"]["shop!main"], (0, 0.00005), "main")
    check("old.so!old.so+0x10 [replaced]" in threads[HOSTILE], threads)


@test
def firefox_counts_the_samples_of_perf():
    total, comms = samples()
    with Firefox(exported("firefox", "--by=comm")) as firefox:
        counted = {}
        for thread in firefox.threads().values():
            counted[thread["friendlyThreadName"]] = sum(f["selfSamples"] for f in thread["functions"])
    equal(counted, comms, "the samples of each thread")
    equal(sum(counted.values()), total, "all samples")


if __name__ == "__main__":
    main()
