#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profctl doctor: on this host, on made-up ones, and with a daemon that is not well."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "integration"))
from profctl import as_json, ended, environment, on_terminal, plain, profctl, safe  # noqa: E402
from standin import StandIn  # noqa: E402
from tap import check, equal, main, skip, test  # noqa: E402

HANG_LIMIT_S = 60  # profctl waits for five seconds

HEALTHY = {
    "/proc/sys/kernel/perf_event_paranoid": "2",
    "/proc/sys/kernel/kptr_restrict": "1",
    "/proc/sys/kernel/perf_event_max_sample_rate": "100000",
    "/proc/sys/kernel/perf_cpu_time_max_percent": "25",
    "/proc/sys/kernel/perf_event_mlock_kb": "516",
    "/proc/sys/kernel/nmi_watchdog": "0",
    "/proc/self/status": "Name:\tx\nCapEff:\t000001ffffffffff\nCapBnd:\t000001ffffffffff\n",
    "/proc/self/limits": "Limit Soft Limit Hard Limit Units\n"
                         "Max open files            1024                 524288               files\n"
                         "Max locked memory         8388608              8388608              bytes\n",
    "/proc/self/mounts": "tracefs /sys/kernel/tracing tracefs rw 0 0\n"
                         "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    "/proc/self/mountinfo": "30 1 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "/proc/1/comm": "init",
    "/proc/1/fd/0": None,
    "/sys/devices/system/cpu/online": "0-7",
    "/sys/kernel/security/lockdown": "[none] integrity confidentiality",
    "/sys/bus/event_source/devices/cpu/type": "4",
    "/sys/bus/event_source/devices/software/type": "1",
    "/usr/lib/debug/.build-id/00/1.debug": "",
    "/etc/group": "root:x:0:\nprofd-read:x:801:anna\nprofd-admin:x:802:\n",
    "/etc/passwd": "root:x:0:0::/:/bin/sh\nprofd:x:800:800::/:/bin/false\n",
}


def make_root(folder, changes):
    """A host's files: the healthy ones, but for the changes; "" leaves a file out."""
    for path, text in {**HEALTHY, **changes}.items():
        full = folder + path
        if text == "gone":
            continue
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if text is None:
            os.symlink("/dev/null", full)
        elif text.startswith("->"):
            os.symlink(text[2:], full)
        else:
            with open(full, "w", encoding="utf-8", errors="surrogateescape") as f:
                f.write(text)


def look(changes):
    """Doctor's checks of a host, by name: those that are not ok, and all."""
    with tempfile.TemporaryDirectory() as folder:
        make_root(folder, changes)
        env = environment(DEBUGINFOD_URLS="")
        return examine(f"--root={folder}", env=env)["checks"]


def examine(*words, **how):
    """The whole answer, whatever the host is like."""
    done = profctl("doctor", "--json=short", *words, **how)
    check(done.returncode in (0, 7), f"{done.returncode}: {done.stderr}")
    return as_json(done, "doctor", done.returncode)


def states(checks, name):
    return [(c["state"], c["text"], c["remedy"] or "") for c in checks if c["check"] == name]


@test
def a_healthy_host_is_all_ok():
    checks = look({})
    bad = [c for c in checks if c["state"] != "ok"]
    check(not bad, f"not ok: {bad}")
    # The faults that need no live host.
    check(len({c["check"] for c in checks}) >= 12, f"only {len(checks)} checks")


@test
def a_virtual_machine_without_counters_is_no_fault():
    (state, text, _), = states(look({"/sys/bus/event_source/devices/cpu/type": "gone",
                                     "/proc/cpuinfo": "flags\t: fpu hypervisor lahf_lm\n"}), "pmu")
    equal(state, "ok", "the state")
    check("no hardware counters in this virtual machine" in text, text)


@test
def each_fault_is_reported_with_its_remedy():
    rows = [
        ("paranoid", {"/proc/sys/kernel/perf_event_paranoid": "gone"}, "fail", "CONFIG_PERF_EVENTS"),
        ("paranoid", {"/proc/sys/kernel/perf_event_paranoid": "-1"}, "warn", "sysctl"),
        ("kptr", {"/proc/sys/kernel/kptr_restrict": "2"}, "warn", "kptr_restrict=1"),
        ("kptr", {"/proc/sys/kernel/kptr_restrict": "what"}, "warn", "/proc"),
        ("lockdown", {"/sys/kernel/security/lockdown": "none integrity [confidentiality]"}, "warn",
         "lockdown=integrity"),
        ("rate", {"/proc/sys/kernel/perf_event_max_sample_rate": "50"}, "warn", "sample_rate"),
        ("pmu", {"/sys/bus/event_source/devices/cpu/type": "gone"}, "warn", "firmware"),
        ("counters", {"/proc/77/comm": "perf", "/proc/77/fd/5": "->anon_inode:[perf_event]"}, "warn",
         "share"),
        ("rights", {"/proc/self/status": "CapBnd:\t00000000a80425fb\n"}, "fail", "container"),
        ("limits", {"/proc/self/limits": "Max open files 64 64 files\n"}, "warn", "LimitNOFILE"),
        ("limits", {"/proc/self/limits": "Max locked memory 65536 65536 bytes\n",
                    "/proc/self/status": "CapBnd:\t0000004000200000\n",
                    "/proc/sys/kernel/perf_event_mlock_kb": "64"}, "warn", "LimitMEMLOCK"),
        ("tracefs", {"/proc/self/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"}, "warn",
         "mount -t tracefs"),
        ("cgroup", {"/proc/self/mounts": "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n",
                    "/proc/self/mountinfo": "gone"}, "warn", "unified_cgroup_hierarchy"),
        ("cgroup", {"/proc/self/mounts": "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n"}, "warn",
         "put services into groups there"),
        ("cgroup", {"/proc/self/mountinfo": "30 1 0:28 / /x rw - cgroup2 cgroup2 rw\n"
                                            "31 1 0:29 / /y rw - cgroup cgroup rw,perf_event\n"},
         "warn", "put processes into groups"),
        ("cgroup", {"/proc/cgroups": "perf_event\t7\t1\t1\n"}, "warn", "CONTROL GROUPS"),
        ("cgroup", {"/proc/self/mounts": "none /x none rw 0 0\n", "/proc/self/mountinfo": "gone"},
         "warn", "mount -t cgroup2"),
        ("groups", {"/etc/group": "root:x:0:\n"}, "warn", "sysusers"),
        ("groups", {"/etc/group": "profd-reader:x:7:\nprofd-admin:x:8:\n"}, "warn", "sysusers"),
        ("groups", {"/etc/passwd": "root:x:0:0::/:/bin/sh\n"}, "warn", "sysusers"),
        ("debuginfo", {"/usr/lib/debug/.build-id/00/1.debug": "gone"}, "warn", "DEBUGINFOD_URLS"),
    ]
    for name, changes, state, remedy in rows:
        found = states(look(changes), name)
        check(any(s == state and remedy in r for s, _, r in found),
              f"{name} with {changes}: {found}, not {state} with '{remedy}'")


@test
def other_users_of_perf_events_are_named():
    changes = {"/proc/77/fd/5": "->anon_inode:[perf_event]",
               "/proc/77/fd/6": "->anon_inode:[perf_event]",
               "/proc/77/fd/7": "->anon_inode:[eventpoll]",
               "/proc/77/comm": "perf",
               "/proc/78/comm": "profd", "/proc/78/fd/1": "->anon_inode:[perf_event]"}
    (state, text, _), = states(look(changes), "counters")
    equal(state, "warn")
    check("perf (pid 77) has 2" in text and "profd" not in text, text)
    # Without hardware counters nobody takes any away.
    changes["/sys/bus/event_source/devices/cpu/type"] = "gone"
    (state, text, _), = states(look(changes), "counters")
    check(state == "ok" and "perf (pid 77) has 2" in text, f"{state}: {text}")
    (_, text, _), (_, watchdog, _) = states(look({"/proc/sys/kernel/nmi_watchdog": "1"}), "counters")
    check("NMI watchdog" in watchdog, watchdog)


@test
def hostile_names_do_no_harm():
    changes = {"/proc/77/comm": "\x1b[2J\udcff</script>",
               "/proc/77/fd/5": "->anon_inode:[perf_event]",
               "/proc/self/mounts": "tracefs /\x1b[31m\udcfe tracefs rw 0 0\n",
               "/proc/self/mountinfo": "1 1 0:1 / /\x1b[32m\udcfe rw - cgroup2 cgroup2 rw\n"}
    (_, text, _), = states(look(changes), "counters")
    check("\\x1b[2J\\xff</script>" in text, text)
    with tempfile.TemporaryDirectory() as folder:
        make_root(folder, changes)
        done = profctl("doctor", f"--root={folder}")
        safe(done.stdout, "the text")
        for words in ("\\x1b[31m\\xfe", "\\x1b[32m\\xfe"):
            check(words in done.stdout, done.stdout)


@test
def malformed_files_are_tolerated():
    ours = [path for path in HEALTHY if path not in ("/proc/1/fd/0", "/proc/self/mounts")]
    for text in ("", "\0\0\0\0", "x" * 100000, "99999999999999999999999", "-"):
        look({path: text for path in ours})
    for path in ours:
        look({path: "gone"})
    look({"/proc/self/mounts": "\n\n x\n" + "y" * 100000})


@test
def a_missing_root_folder_is_an_error():
    ended(profctl("doctor", "--root=/nowhere/at/all"), 1, "open the folder '/nowhere/at/all'")


@test
def without_a_daemon_this_host_is_still_checked():
    with tempfile.TemporaryDirectory() as folder:
        whole = examine(socket=f"{folder}/none")
        check(whole["fail"] > 0, "nothing fails")
        equal(states(whole["checks"], "daemon")[0][0], "fail")
        names = [c["check"] for c in whole["checks"]]
        for name in ("daemon", "groups", "events", "paranoid", "pmu", "counters", "rights", "limits",
                     "kptr", "lockdown", "cgroup", "clock", "disk", "perf", "debuginfo"):
            check(name in names, f"no word on {name}")
        for c in whole["checks"]:
            check(c["state"] == "ok" or c["remedy"], f"{c['check']} does not say how to mend it")


STATUS = {"version": "0.0.1", "hostname": "h", "bootId": "b", "state": "recording", "sinceUsec": 1,
          "restarts": 2, "degraded": [{"reason": "config", "meaning": "a \x1b[2J typo",
                                       "remedy": "mend it"}],
          "sessions": None, "store": None, "cpuPercent": None, "memoryBytes": None}


@test
def the_status_of_the_daemon_is_reported():
    with tempfile.TemporaryDirectory() as folder, StandIn(folder, {"GetStatus": [STATUS]}) as daemon:
        whole = examine(socket=daemon.path)
        said = states(whole["checks"], "daemon")
        equal([s for s, _, _ in said], ["ok", "warn", "warn", "warn"])
        check("0.0.1" in said[0][1] and "recording" in said[0][1], said[0][1])
        check("0.0.1" in said[1][1], f"the other version: {said[1]}")
        check("2 times" in said[2][1], f"restarts: {said[2]}")
        check("\\x1b[2J typo" in said[3][1] and said[3][2] == "mend it", f"degraded: {said[3]}")


@test
def a_daemon_with_malformed_replies_is_one_fault():
    for answer in ([b"\x1b[2J\0"], [b"{}\0"], [{"version": 7}], [b"[" * 100000 + b"\0"]):
        with tempfile.TemporaryDirectory() as folder, StandIn(folder, {"GetStatus": answer}) as daemon:
            whole = examine(socket=daemon.path)
            equal(states(whole["checks"], "daemon")[0][0], "fail", f"daemon that says {answer}")


@test
def a_perf_that_hangs_or_is_missing_is_reported():
    with tempfile.TemporaryDirectory() as folder:
        env = environment(PATH=folder)
        (state, text, _), = states(examine(env=env)["checks"], "perf")
        check(state == "warn" and "not installed" in text, text)
        path = os.path.join(folder, "perf")
        for script, problem in (("[ $1 = --version ] && echo perf version 5.4.1 || echo junk", "older than 6.1"),
                                ("[ $1 = --version ] && exec /bin/sleep 1000", "does not print its version")):
            with open(path, "w", encoding="ascii") as f:
                f.write(f"#!/bin/sh\n{script}\n")
            os.chmod(path, 0o755)
            begin = time.monotonic()
            (state, text, _), = states(examine(env=env)["checks"], "perf")
            check(state == "warn" and problem in text, text)
            took = time.monotonic() - begin
            check(took < HANG_LIMIT_S, f"{took:.0f} s passed until '{text}'")


@test
def servers_of_debug_information_are_tried():
    clean = {k: v for k, v in environment().items() if "proxy" not in k.lower()}
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        port = listener.getsockname()[1]
        rows = [(f"http://127.0.0.1:{port}/x", "ok"),
                (f"http://127.0.0.1:1 https://127.0.0.1:{port}", "ok"), ("nonsense", "warn")]
        for urls, state in rows:
            found = states(examine(env={**clean, "DEBUGINFOD_URLS": urls})["checks"], "debuginfo")
            equal(found[0][0], state, f"{urls}: {found}")
    found = states(examine(env={**clean, "DEBUGINFOD_URLS": f"http://127.0.0.1:{port}/"})["checks"],
                   "debuginfo")
    check(found[0][0] == "warn" and "can be reached" in found[0][1], f"{found}")


@test
def a_user_is_told_which_rights_he_lacks():
    if os.getuid() != 0:
        skip("changing users needs root")
    whole = examine(socket="/nowhere", user=65534)
    state, text, remedy = states(whole["checks"], "events")[0]
    check(state == "warn" and "start profd" in remedy, f"{state}: {text}: {remedy}")


@test
def a_terminal_gets_colours_and_no_long_lines():
    status, text = on_terminal("doctor", columns=72)
    check(status in (0, 7), text)
    check("\x1b[" in text, "no colours")
    lines = plain(text).splitlines()
    long = [line for line in lines if len(line) > 72 and " " in line[20:].strip()]
    check(not long, f"lines beyond the terminal: {long[:3]}")
    status, text = on_terminal("doctor", env=environment(TERM="xterm", NO_COLOR="1", PROFD_PAGER=""))
    check("\x1b[" not in text, "colours in spite of NO_COLOR")


@test
def quiet_omits_checks_that_are_ok():
    done = profctl("doctor", "--quiet", socket="/nowhere")
    check(not any(line.startswith("ok ") for line in done.stdout.splitlines()), done.stdout)
    check(done.stdout.startswith("fail"), done.stdout)


def process(pid, command, exe=None, environ="", ticks=0):
    """The files of a process of a made-up host."""
    words = command.split()
    name = os.path.basename(exe or words[0])
    return {f"/proc/{pid}/cmdline": "\0".join(words) + "\0", f"/proc/{pid}/comm": name + "\n",
            f"/proc/{pid}/exe": "->" + (exe or words[0]), f"/proc/{pid}/environ": environ.replace(" ", "\0"),
            f"/proc/{pid}/stat": f"{pid} ({name} ) 1) S" + " 0" * 10 + f" {ticks} 1 0 0"}


PYTHON_WORKS, PYTHON_OLD = "/usr/bin/python3.13", "/usr/bin/python3.11"


@test
def programs_whose_runtime_lacks_an_option_are_named():
    rows = [
        ("java -jar x.jar", "/usr/lib/jvm/17/bin/java", "", "PreserveFramePointer"),
        ("java -XX:+PreserveFramePointer -jar x.jar", "/usr/lib/jvm/17/bin/java", "", None),
        ("java -jar x.jar", "/usr/lib/jvm/17/bin/java", "A=1 JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer B=2", None),
        ("/usr/bin/node app.js", None, "", "--perf-basic-prof"),
        ("/usr/bin/node --perf-basic-prof app.js", None, "", None),
        ("/usr/bin/node app.js", None, "NODE_OPTIONS=--perf-basic-profit", "--perf-basic-prof"),
        ("/usr/bin/node app.js", None, "NODE_OPTIONS=--perf-basic-prof", None),
        ("python3 app.py", PYTHON_OLD, "PYTHONPERFSUPPORT=1", "python 3.12 or later"),
        ("python3 app.py", PYTHON_WORKS, "", "-X perf"),
        ("python3 app.py", PYTHON_WORKS, "PYTHONPERFSUPPORT=0", "-X perf"),
        ("python3 app.py", PYTHON_WORKS, "PYTHONPERFSUPPORT=1", None),
        ("python3 -X perf app.py", PYTHON_WORKS, "", None),
        ("python3 -Xperf_jit app.py", PYTHON_WORKS, "", None),
        ("python3 -X dev app.py", PYTHON_WORKS, "", "-X perf"),
        ("/usr/bin/nginx", None, "", None),
        ("/usr/bin/pythonic", None, "", None),
    ]
    for command, exe, environ, remedy in rows:
        (state, text, mends), = states(look(process(42, command, exe, environ)), "programs")
        equal(state, "warn" if remedy else "ok", f"state of '{command}' with '{environ}' ({text})")
        check(not remedy or (remedy in mends and "(42)" in text), f"'{command}': {text} {mends}")


@test
def a_version_that_cannot_be_seen_is_counted():
    hidden = {**process(42, "python3 app.py"), "/proc/42/exe": "gone"}
    found = states(look(hidden), "programs")
    check([state for state, *_ in found] == ["ok", "ok"] and "1 process could not be looked at" in found[1][1], f"{found}")


@test
def the_busiest_programs_are_named_and_the_others_counted():
    host = {}
    for i in range(6):
        host.update(process(100 + i, "java -jar x.jar", "/opt/jvm/bin/java", ticks=i))
    host.update(process(7, "java \x1b[2J", "/opt/jvm/bin/java", ticks=99))
    host["/proc/7/comm"] = "a\x1b[2Jb"
    host["/proc/8/cmdline"] = ""
    (state, text, _), = states(look(host), "programs")
    equal(state, "warn", "state")
    check("7 programs" in text and "(7), java (105), java (104) and 4 more" in text, text)
    check("\x1b" not in text, repr(text))


def waiting(*words):
    """A program that waits for its standard input. Right after exec() its command line is still empty, and it stays so
    while its file is read from a cold disk."""
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not Path(f"/proc/{child.pid}/cmdline").read_bytes():
        check(time.monotonic() < deadline, f"{words} has no command line")
        time.sleep(0.01)
    return child


@test
def real_programs_are_seen_and_without_root_it_says_what_was_not():
    if os.geteuid() != 0:
        skip("needs root")
    with tempfile.TemporaryDirectory() as folder:
        make_root(folder, {})
        os.chmod(folder, 0o755)
        script = os.path.join(folder, "python3.12")
        shutil.copy("/bin/cat", script)
        started = [waiting(sys.executable, "-c", "input()"), waiting(script)]
        node = shutil.which("node")
        if node:
            started.append(waiting(node, "-e", "process.stdin.resume()"))
        try:
            for child in started:
                os.symlink(f"/proc/{child.pid}", f"{folder}/proc/{child.pid}")
            texts = [text for _, text, _ in states(examine(f"--root={folder}")["checks"], "programs")]
            check(any(f"({started[0].pid})" in text and "python" in text for text in texts), f"{texts}")
            check(not node or any(f"({started[2].pid})" in text and "node" in text for text in texts), f"{texts}")
            check(any(f"({started[1].pid})" in text and "root alone" not in text for text in texts), f"{texts}")
            texts = [text for _, text, _ in states(examine(f"--root={folder}", user=65534)["checks"], "programs")]
            check(any(f"({started[1].pid})" in text and "root alone can read the environment of 1" in text
                      for text in texts), f"{texts}")
        finally:
            for child in started:
                child.kill()
                child.wait()


if __name__ == "__main__":
    main()
