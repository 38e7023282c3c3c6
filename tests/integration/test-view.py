#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Views of a running profd: the rows are those of a snapshot of the same window, who may see them, and what is said where
there is nothing."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import session  # noqa: E402
from profctl import as_json, check, ended, environment, equal, on_terminal, plain, profctl, safe  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import wait_until  # noqa: E402
from tap import build_path, main, test  # noqa: E402

READ, ADMIN, USER = 64301, 64302, 64311
CONFIG = session(Event="cpu-clock", Frequency=199) + session("secret", Event="cpu-clock", Frequency=49, CallGraph="dwarf") + \
    session("pair", Event="{cpu-clock,task-clock}:S", Frequency=49)
HOSTILE = "\x1b[2J</script>"


class Run(Scene):
    config, groups = CONFIG, {"profd-read": READ, "profd-admin": ADMIN}

    @classmethod
    def begin(cls, enter):
        cls.begin_s = time.time()
        super().begin(enter)
        program = os.path.join(cls.folder, HOSTILE.replace("/", ""))
        os.symlink("/bin/sh", program)
        subprocess.run([program, "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"], check=True)
        time.sleep(1)


def view(*words, **more):
    return profctl(*words, socket=Run.control(), **more)


def window():
    """The last half second, as options."""
    Run.get()
    until = time.time() - 0.2
    return f"--since=@{until - 0.5:.6f}", f"--until=@{until:.6f}"


@test
def rows_are_those_of_a_snapshot_of_the_window():
    words = window()
    live = as_json(view("report", "--json=short", "--by=comm,pid,dso,symbol", *words), "report")
    path = ended(view("snapshot", "-q", *words), 0).stdout.strip()
    cut = as_json(view("report", "--json=short", "--by=comm,pid,dso,symbol", path), "report")
    check(live["total"] > 50, f"{live['total']} samples")
    equal(live["rows"], cut["rows"], "the rows")
    equal(live["complete"], True, "complete")


@test
def without_a_window_a_fresh_daemon_is_complete():
    whole = as_json(view("report", "--json=short", "--by=comm"), "report")
    check(whole["sinceUsec"] / 1e6 >= Run.begin_s - 1, f"it begins at {whole['sinceUsec']}, the daemon at {Run.begin_s}")
    equal(whole["complete"], True, "complete")
    asked = as_json(view("report", "--json=short", "--by=comm", f"--since=@{Run.begin_s - 100:.0f}"), "report", status=8)
    equal(asked["complete"], False, "complete")
    said = safe(ended(view("report", "--by=comm", f"--since=@{Run.begin_s - 100:.0f}"), 8).stdout)
    check("not recorded" in said, said[:300])


@test
def counters_of_a_group_begin_with_the_window():
    Run.get()
    time.sleep(max(0, Run.begin_s + 6 - time.time()))
    until = time.time() - 0.2
    words = ("--session=pair", f"--since=@{until - 1:.6f}", f"--until=@{until:.6f}")
    path = ended(view("snapshot", "-q", *words), 0).stdout.strip()
    for where in (words, (path,)):
        data = as_json(view("report", "--json=short", "--by=event", *where), "report")
        rows = {row["event"]: row["period"] / 1e9 for row in data["rows"]}
        equal(sorted(rows), ["cpu-clock", "task-clock"], "the events")
        for event, seconds in rows.items():
            check(0.5 < seconds < 1.2 * os.cpu_count(), f"{event} counts {seconds} s of CPU in a second of {where}")


@test
def members_of_the_group_read_and_others_do_not():
    ended(view("report", "--by=comm", user=USER, groups=[READ]), 0)
    ended(view("report", "--by=comm", user=USER), 4)
    ended(view("folded", "--session=secret", user=USER, groups=[READ]), 4)
    ended(view("folded", "--session=none"), 5, "no session 'none'")


def is_kept(path):
    time.sleep(0.2)
    with Varlink(Run.daemon.control()) as v:
        return any(known.startswith(path) for binary in v.members("ListBinaries", "binary") for known in binary["paths"])


def names_for_member(home, *words):
    """Functions of the program that was deleted, as a member of the group sees them."""
    done = view("report", "--json=short", "--by=symbol", "--comm=deleted-load", *(words or ["--last=10s"]), user=USER, groups=[READ],
                env=environment(HOME=home, XDG_CACHE_HOME=os.path.join(home, "cache")))
    return {row["symbol"] for row in json.loads(done.stdout)["rows"]}, done


@test
def names_of_a_deleted_program_reach_members_who_cannot_read_the_store():
    gone = os.path.join(Run.get().folder, "deleted-load")
    shutil.copy(build_path("tests", "bench", "load"), gone)
    with subprocess.Popen([gone]) as process:
        try:
            os.remove(gone)
            wait_until(lambda: is_kept(gone), 60, "its names to be kept")
        finally:
            process.kill()
    home = os.path.join(Run.folder, "home")
    os.mkdir(home)
    os.chown(home, USER, USER)
    for folder in (Run.folder, os.path.dirname(Run.daemon.control())):
        os.chmod(folder, 0o755)
    os.chmod(Run.daemon.store, 0o700)
    try:
        names, done = names_for_member(home)
        check({"work_level", "work_other"} & names, f"{names}, {done.stderr}")
        copies = [os.path.join(at, name) for at, _, found in os.walk(os.path.join(home, "cache", "profctl", "kept")) for name in found]
        check(any(name.endswith("/elf") for name in copies), f"the copies are {copies}")
        path = os.path.join(home, "cut.perf.data")
        done = view("snapshot", "-q", "--last=10s", "--output", path, user=USER, groups=[READ])
        equal(done.returncode in (0, 8), True, done.stderr)
        # Of a recording, without a copy and then with nobody to ask.
        shutil.rmtree(os.path.join(home, "cache"))
        names, done = names_for_member(home, path)
        check({"work_level", "work_other"} & names, f"{names}, {done.stderr}")
        env = environment(HOME=home, XDG_CACHE_HOME=os.path.join(home, "cache"))
        done = profctl("report", "--json=short", "--by=symbol", "--comm=deleted-load", path, user=USER, env=env, socket="/nonexistent")
        check("work_level" in done.stdout or "work_other" in done.stdout, f"the copies name nothing: {done.stdout[:500]}")
        done = profctl("report", "--json=short", "--by=symbol", "--comm=deleted-load", path, user=USER, socket="/nonexistent",
                       env=environment(HOME="/nonexistent"))
        check("work_level" not in done.stdout and "work_other" not in done.stdout, "it is named without anything")
    finally:
        os.chmod(Run.daemon.store, 0o755)


@test
def what_matches_nothing_is_explained():
    ended(view("report", "--comm=spim"), 5, r"from [\d:. ]+ to [\d:. ]+ that match comm 'spim'. Did you mean 'spin'")
    ended(view("report", "--event=cycles"), 5, "the events are cpu-clock")
    ended(view("report", "--last=1m", "--since=-5min"), 2, "--last is counted from the end")
    ended(view("report", "--session=default", "perf.data"), 2, "has no sessions")
    ended(profctl("report", socket="/nonexistent"), 3, "profd is not running")


@test
def exports_have_the_samples_of_the_report():
    words = window()
    whole = as_json(view("report", "--json=short", "--by=comm", *words), "report")
    text = safe(ended(view("folded", *words), 0).stdout)
    equal(sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines()), whole["total"], "samples of folded")
    for command, suffix in (("pprof", ".pb.gz"), ("speedscope", ".json"), ("firefox", ".json")):
        path = os.path.join(Run.folder, command + suffix)
        equal(ended(view(command, *words, "-o", path), 0).stdout, path + "\n", "the path")
        check(os.path.getsize(path) > 100, f"{path} is empty")
        ended(view(command, *words, "-o", path), 1, "exists")
    ended(view("folded", "--by=time"), 2, "it shows event, comm")
    status, said = on_terminal("pprof", socket=Run.control())
    equal(status, 2, said)
    check("not for a terminal" in said, said)


@test
def windows_of_the_running_daemon_are_compared_with_earlier_ones():
    Run.get()
    time.sleep(1)
    for words in (("diff", "--baseline=800ms"), ("diff",)):
        done = as_json(view(*words, "--json=short", "--by=comm", "--last=600ms"), "diff")
        check(done["before"]["samples"] > 20 and done["after"]["samples"] > 20, done)
        check(done["before"]["untilUsec"] <= done["after"]["sinceUsec"] + 1000, (done["before"], done["after"]))
    done = as_json(view("changed", "--json=short", "--last=600ms"), "changed")
    check("before" in done["all"] and "yesterday" not in done["all"], done["all"])
    ended(view("diff", "--baseline=yesterday", "--last=600ms"), 5, "profd did not record the time of the baseline")


@test
def pages_are_files_of_their_own():
    words = window()
    for command in ("flamegraph", "heatmap"):
        path = os.path.join(Run.folder, command + ".html")
        equal(ended(view(command, *words, "-o", path), 0).stdout, path + "\n", "the path")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        check(text.startswith("<!doctype html>") or text.startswith("<!DOCTYPE html>"), text[:100])
        check("spin" in text and "http://" not in text.replace("http://www.w3.org/", ""), f"{path} is no page of its own")
        check("</script>\x1b" not in text and "\x1b" not in text, f"{path} holds a control character")
    with contextlib.chdir(Run.folder):
        made = ended(view("flamegraph", *words), 0).stdout.strip()
        check(re.fullmatch(r"flamegraph-[\w.-]+-\d{8}-\d{6}\.html", made) and os.path.exists(made), made)
    folded = ended(view("flamegraph", "--folded", *words), 0).stdout
    equal(folded, ended(view("folded", *words), 0).stdout, "folded")


@test
def pages_have_a_box_for_each_key():
    words = window()
    keys = "unit,container,cgroup,comm,pid,tid,cpu"
    with tempfile.TemporaryDirectory() as folder:
        for command in ("flamegraph", "heatmap"):
            path = os.path.join(folder, command)
            ended(view(command, *words, "--by=" + keys, "-o", path), 0)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            for box in r'"thread \d+"', r'"process \d+"', r'"cpu \d+"', '"spin"', '"/':
                check(re.search(box, text), f"{command} has no box {box}")
            for refused, sentence in (("--by=symbol", "anyway"), ("--by=time", "it shows comm, pid, tid, cpu"), ("--json", "report --json")):
                ended(view(command, *words, refused, "-o", path + "x"), 2, sentence)
        ended(view("flamegraph", *words, "--folded", "--icicle"), 2, "leave out --folded")
    folded = ended(view("flamegraph", "--folded", "--by=cpu", *words), 0).stdout
    equal(folded, ended(view("folded", "--by=cpu", *words), 0).stdout, "folded")


@test
def an_incident_page_has_the_window_in_one_file():
    span = window()
    path = os.path.join(Run.folder, "incident.html")
    words = ("snapshot", *span, "--html", path)
    equal(ended(view(*words), 0).stdout, path + "\n", "the path")
    ended(view(*words), 1, "exists")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    changes = re.search(r'<ul id="changes">(.*?)</ul>', text, re.S)[1]
    check(re.search(r"<li>.*\d\.\d\d CPUs", changes), f"it says {changes}")
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text))
    for name in ("Host", "Window", "Samples", "Events", "Completeness", "Kernel", "CPUs", "Written"):
        check(facts.get(name), f"the facts are {facts}")
    equal(facts["Events"], "cpu-clock at 199 Hz", "the event")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    equal(data["page"], "incident", "the page")
    check(data["heat"]["n_filled"] > 5, f"{data['heat']['n_filled']} spans have samples")
    check("spin" in data["texts"], "no stack has spin()")
    check("snapshots" not in view("snapshots").stdout, "profd keeps something")
    ended(view("snapshot", "--html", path, "--pin"), 2, "--html takes a window and filters")


@test
def names_of_programs_cannot_harm_the_terminal():
    said = safe(ended(view("report", "--by=comm", "--percent-limit=0"), 0).stdout)
    check("\\x1b[2J<script>" in said, f"the hostile name is not shown: {said[:800]!r}")
    safe(ended(view("folded"), 0).stdout)
    as_json(view("report", "--json=short", "--by=comm,dso"), "report")


@test
def tables_fit_the_terminal():
    for columns, *words in ((80, "report"), (80,), (80, "report", "--tree=callers"),
                            (200, "report", "--tree=callees", "--by=comm,dso,symbol,pid")):
        status, text = on_terminal(*words, columns=columns, socket=Run.control())
        equal(status, 0, plain(text)[:500])
        longest = max(plain(text).replace("\r", "").split("\n"), key=len)
        check(len(longest) <= columns, f"{words} at {columns} columns prints {longest!r}")


@test
def without_a_command_it_shows_what_is_hot():
    status, text = on_terminal(socket=Run.control())
    equal(status, 0, text)
    for words in (r"profd [\d.]+ on \S+: recording", "Records: default: cpu-clock at 199 Hz", "SHARE +SAMPLES +UNIT",
                  "FUNCTION +IN", "spin", "profctl flamegraph"):
        check(re.search(words, plain(text)), f"it does not say {words!r}: {plain(text)}")
    status, text = on_terminal(socket="/nonexistent")
    equal(status, 3, text)
    check("profd is not running" in text and "profctl report perf.data" in text, text)
    ended(profctl(env=environment()), 2, "No command given")


# The last one, since whole windows have a gap after it.
@test
def a_gap_is_reported_alike_by_a_live_view_and_one_of_a_recording():
    Run.get()
    begin = time.time()
    time.sleep(0.7)
    ended(view("pause", "default"), 0)
    time.sleep(0.7)
    ended(view("resume", "default"), 0)
    resumed = time.time()
    time.sleep(1)
    words = (f"--since=@{begin:.6f}", f"--until=@{time.time() - 0.2:.6f}")
    path = os.path.join(Run.folder, "gap.perf.data")
    ended(view("snapshot", "-q", *words, "--output", path), 8, "not recorded .*paused")
    found = [as_json(view("report", "--json=short", "--by=comm", *where), "report", status=8) for where in (words, (path,))]
    for data in found:
        equal(data["complete"], False, "complete")
        equal([(gap["reason"], gap["cpu"]) for gap in data["gaps"]], [("paused", None)], f"the gaps {data['gaps']}")
        gap = data["gaps"][0]
        check(begin < gap["sinceUsec"] / 1e6 < gap["untilUsec"] / 1e6 < resumed + 0.5, f"{begin} {gap} {resumed}")
    check(abs(found[0]["gaps"][0]["untilUsec"] - found[1]["gaps"][0]["untilUsec"]) < 5, f"{found[0]['gaps']} {found[1]['gaps']}")
    for command in ("folded", "report"):
        ended(view(command, *words), 8, "Not all of the window from .* was recorded: .*paused")
        ended(view(command, path), 8, "Not all of the window in .*gap.perf.data' was recorded: .*paused")
    whole = as_json(view("report", "--json=short", "--by=comm", f"--since=@{resumed + 0.3:.6f}", path), "report")
    equal((whole["complete"], whole["gaps"]), (True, []), "after the gap")


@test
def segments_that_follow_each_other_have_no_gap_in_any_order():
    Run.get()
    made = []
    # Each has read its clocks for itself.
    for _ in range(7):
        time.sleep(0.3)
        made.append(ended(view("rotate", "default"), 0).stdout.split()[-1])
    segments = made[1:]
    for files in (segments, [segments[0], *reversed(segments)][:-1]):
        data = as_json(view("report", "--json=short", "--by=comm", *files), "report")
        equal((data["complete"], data["gaps"]), (True, []), "segments that follow each other")
    without = as_json(view("report", "--json=short", "--by=comm", segments[0], segments[3], segments[1]), "report", status=8)
    equal([gap["reason"] for gap in without["gaps"]], ["unknown"], f"without the third one: {without['gaps']}")


def recorded(name, *window):
    """A snapshot of a window of the past, and its window."""
    path = os.path.join(Run.folder, f"{name}.perf.data")
    ended(view("snapshot", "-q", *window, "--output", path), 0)
    data = as_json(view("report", "--json=short", "--by=comm", path), "report")
    return path, data["sinceUsec"], data["untilUsec"]


@test
def several_recordings_have_one_window():
    Run.get()
    time.sleep(2.5)
    now = time.time()
    first, first_since, _ = recorded("first", f"--since=@{now - 2.2:.6f}", f"--until=@{now - 1.6:.6f}")
    second, _, second_until = recorded("second", f"--since=@{now - 0.8:.6f}", f"--until=@{now - 0.2:.6f}")
    # Nobody knows what was between them.
    data = as_json(view("report", "--json=short", "--by=comm", first, second), "report", status=8)
    equal((data["complete"], data["sinceUsec"], data["untilUsec"]), (False, first_since, second_until), "both recordings")
    equal([(gap["reason"], gap["cpu"]) for gap in data["gaps"]], [("unknown", None)], f"the gaps {data['gaps']}")
    # --last counts back from the end of all of them.
    last = as_json(view("report", "--json=short", "--by=comm", "--last=500ms", first, second), "report")
    equal((last["complete"], last["untilUsec"]), (True, second_until), "the last of both")
    check(last["sinceUsec"] > second_until - 600_000, f"the last 500 ms of both begin {second_until - last['sinceUsec']} us before their end")
    alone = as_json(view("report", "--json=short", "--by=comm", "--last=500ms", second), "report")
    equal([(row["comm"], row["samples"]) for row in last["rows"]], [(row["comm"], row["samples"]) for row in alone["rows"]],
          "samples of the last 500 ms")
    # perf notes no coverage, so that of both is not known.
    other = os.path.join(Run.folder, "other.perf.data")
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-o", other, "true"], check=True, capture_output=True)
    both = as_json(view("report", "--json=short", "--by=comm", second, other), "report")
    equal((both["complete"], both["gaps"]), (None, None), "with a recording of perf")


if __name__ == "__main__":
    main()
