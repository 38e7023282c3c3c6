#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The program profd-gateway: options, configuration, start, reload, stop, what it reports, and `profctl gateway`.

Engines are a folder or a server of this test; test-gateway-send.py has what is sent to them."""

import http.server
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

from daemon import Daemon, session
from gateway import GATEWAY, Gateway, asked, gateway_section
from hostile import HungMount
from profctl import as_json, ended, environment, profctl, safe
from tap import check, equal, main, test
from workload import free_port, need_root, scratch, spinning

NOWHERE = "http://127.0.0.1:9"


def send(name, **keys):
    return f"[Send {name}]\n" + "".join(f"{key}={value}\n" for key, value in keys.items())


def folder_send(folder, name="files", **keys):
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    return send(name, Type="file", URL=path, **keys)


def run(*words, timeout=60):
    return subprocess.run([GATEWAY, *words], capture_output=True, text=True, check=False, timeout=timeout,
                          stdin=subprocess.DEVNULL, env=environment())


def checked(text, drop_in=None):
    """What --check-config says of this configuration."""
    with scratch() as folder:
        path = os.path.join(folder, "gateway.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        if drop_in:
            os.mkdir(path + ".d")
            with open(f"{path}.d/50-site.conf", "w", encoding="utf-8") as f:
                f.write(drop_in)
        done = run("--check-config", f"--config={path}")
        return done.returncode, done.stderr.replace(path, "FILE")


@test
def wrong_usage_ends_with_status_2_and_one_sentence():
    for words in (["--state="], ["--log-level=loud"], ["--test="], ["x"], ["--unknown"]):
        done = run(*words)
        equal(done.returncode, 2, f"status of {words}")
        check(done.stderr.strip(), f"{words} says nothing")
    equal(run("--version").returncode, 0, "status of --version")
    check(run("--version").stdout.startswith("profd-gateway "), "it does not print its name")


@test
def check_config_names_file_and_line_of_each_problem():
    equal(checked(send("a", Type="otlp", URL="http://a")), (0, ""), "a sound configuration")
    status, said = checked("[Gateway]\nIntervalSec=never\n\n[Send a]\nType=tea\nURL=http://a\n")
    equal(status, 1, "status")
    check("FILE:2: IntervalSec=never is not understood" in said, said)
    check(re.search(r"FILE:5: Type=tea is not understood: it takes pyroscope, parca", said), said)
    status, said = checked(send("a", Type="otlp", URL="http://a"), drop_in="[Send a]\nShare=200%\n")
    equal(status, 1, "status with a drop-in")
    check("FILE.d/50-site.conf:2: Share=200% is out of range" in said, said)
    status, said = checked(send("s", Type="s3", URL="http://s/bucket", KeyTemplate="same"))
    equal(status, 1, "status of a key template that gives all objects one key")
    check("FILE:2: [Send s]: two objects would have the same key" in said, said)
    done = run("--check-config", "--config=/nonexistent/gateway.conf")
    equal(done.returncode, 1, "status without the file")
    check("Failed to read configuration" in done.stderr, done.stderr)


@test
def it_starts_without_profd_and_without_engines_and_stops_when_asked():
    with scratch() as folder, Gateway(folder, gateway_section(folder) + send("a", Type="otlp", URL=NOWHERE)) as gateway:
        gateway.wait_until(gateway.status, "a status")
        gateway.wait_until(lambda: gateway.status()["source"]["problem"], "why profd is away")
        status = as_json(profctl("gateway", "status", "--json", f"--runtime={gateway.runtime}"), "gateway")
        equal((status["state"], status["source"]["connected"], status["host"]), ("running", False, "test-host"), "state")
        said = safe(ended(profctl("gateway", "status", f"--runtime={gateway.runtime}"), 0).stdout)
        check("profd is away" in said and re.search(r"^a +otlp +new", said, re.M), said)
        ended(profctl("gateway", "status", "--check", "-q", f"--runtime={gateway.runtime}"), 7)
        equal(gateway.stop(), 0, "status at the end")
        check("the next start goes on" in gateway.log(), gateway.log())
        ended(profctl("gateway", "status", f"--runtime={gateway.runtime}"), 3, "does not run here")


@test
def a_second_gateway_does_not_use_the_same_positions():
    with scratch() as folder, Gateway(folder, gateway_section(folder)) as gateway:
        done = run(*gateway.options())
        equal(done.returncode, 1, "status of the second")
        check("Another profd-gateway uses" in done.stderr, done.stderr)
        check(os.path.exists(f"{gateway.runtime}/status.json"), "the second one removed the state of the first")


@test
def an_address_for_others_without_tls_is_refused_at_the_start():
    with scratch() as folder:
        config = gateway_section(folder) + "[Listen]\nAddress=0.0.0.0:19137\n"
        with Gateway(folder, config, ready=False) as gateway:
            equal(gateway.process.wait(timeout=30), 1, "status")
            check("reached from other hosts" in gateway.log() and "Failed to listen" in gateway.log(), gateway.log())


@test
def a_reload_with_a_problem_changes_nothing():
    with scratch() as folder:
        good = gateway_section(folder) + send("a", Type="otlp", URL=NOWHERE)
        with Gateway(folder, good) as gateway:
            gateway.reload(good + "[Send b]\nType=otlp\nURL=http://b\nShare=x\n", "1 problem, keeping the old one")
            gateway.wait_until(lambda: gateway.status()["outdated"], "the refused reload in the state")
            equal([each["name"] for each in gateway.status()["destinations"]], ["a"], "destinations")
            check(re.search(r"gateway\.conf:11: Share=x", gateway.log()), gateway.log())
            gateway.reload(good + send("b", Type="otlp", URL=NOWHERE), "Reloaded the configuration")
            gateway.wait_until(lambda: not gateway.status()["outdated"], "the reload in the state")
            equal([each["name"] for each in gateway.status()["destinations"]], ["a", "b"], "destinations")
            gateway.reload(send("b", Type="otlp", URL=NOWHERE), "Reloaded the configuration")
            gateway.wait_until(lambda: gateway.status()["host"] != "test-host", "the host of the new configuration")
            equal([each["name"] for each in gateway.status()["destinations"]], ["b"], "destinations")


@test
def a_reload_that_cannot_listen_keeps_the_old_listener():
    with scratch() as folder, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with Gateway(folder, gateway_section(folder)) as gateway:
            gateway.reload(gateway_section(folder) + f"[Listen]\nAddress=127.0.0.1:{taken.getsockname()[1]}\n",
                           "keeping the old one")
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(f"{gateway.runtime}/http")
                client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                check(b" 200 " in client.recv(4096), "the old listener does not answer")
            equal(gateway.stop(), 0, "status at the end")


@test
def a_reload_of_the_listener_alone_leaves_what_reads_from_profd():
    need_root()
    with scratch() as folder, Daemon(folder, config=session(Event="cpu-clock", CallGraph="fp")), spinning(0):
        with Gateway(folder, gateway_section(folder)) as gateway:
            gateway.wait_until(lambda: gateway.source().get("connected"), "profd")
            # The first reload leaves nothing that uses the first configuration, and the second one reuses its memory.
            for _ in range(2):
                port = free_port()
                gateway.reload(gateway_section(folder) + f"[Listen]\nAddress=127.0.0.1:{port}\n", "Reloaded the configuration")
                gateway.wait_until(lambda port=port: asked(port, "/debug/pprof/profile?seconds=1")[0] == 200, "a profile")
            equal(gateway.stop(), 0, "status at the end")


def is_consecutive(names):
    times = sorted(time.mktime(time.strptime(name.split("-")[-1][:16], "%Y%m%dT%H%M%SZ")) for name in names if name.endswith(".pb.gz"))
    return times == [times[0] + i for i in range(len(times))]


@test
def a_new_destination_gets_intervals_and_an_unchanged_one_goes_on():
    need_root()
    # A second without samples has no file.
    with scratch() as folder, Daemon(folder, config=session(Event="cpu-clock", CallGraph="fp")), spinning(0):
        first = gateway_section(folder) + folder_send(folder, "one")
        with Gateway(folder, first) as gateway:
            gateway.wait_until(lambda: gateway.destination("one").get("sentIntervals", 0) >= 2, "two intervals")
            gateway.reload(first + folder_send(folder, "two"), "Reloaded the configuration")
            gateway.wait_until(lambda: gateway.destination("two").get("sentIntervals", 0) >= 2, "two intervals of the new one")
            gateway.wait_until(lambda: (one := gateway.destination("one"))["up"] and one["backlogUsec"] <= 2 * 10**6,
                               "the first one to have sent what is there")
            equal(gateway.destination("one")["repeatedRequests"], 0, "requests of the first one that came twice")
            # Intervals of one second, each once and none left out, over the reload; one that was late comes behind newer ones.
            gateway.wait_until(lambda: is_consecutive(os.listdir(f"{folder}/one")), "a file for each second")
            ended(profctl("gateway", "status", "--check", "-q", f"--runtime={gateway.runtime}"), 0)
            equal(gateway.stop(), 0, "status at the end")


@test
def a_reload_leaves_a_destination_behind_whose_folder_hangs():
    need_root()
    with scratch() as folder, Daemon(folder, config=session(Event="cpu-clock", CallGraph="fp")), spinning(0):
        mount = f"{folder}/mount"
        os.mkdir(mount)
        first = gateway_section(folder) + folder_send(folder, "one")
        # What hangs is left behind, which a sanitizer calls a leak.
        options = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        with Gateway(folder, first, env=options) as gateway:
            with HungMount(mount, 1) as fuse:
                fuse.hang()
                gateway.reload(first + send("hung", Type="file", URL=mount), "Reloaded the configuration")
                gateway.wait_until(lambda: gateway.destination("hung").get("backlogUsec", 0) >= 2 * 10**6, "what hangs")
                gateway.reload(first, "Reloaded the configuration")
                sent = gateway.destination("one")["sentIntervals"]
                gateway.wait_until(lambda: gateway.destination("one")["sentIntervals"] > sent + 1, "the other destination to go on")
                check("A disk of destination 'hung' hangs" in gateway.log(), gateway.log())
            equal(gateway.stop(), 0, "status at the end")


@test
def it_notifies_the_service_manager():
    with scratch() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{folder}/notify")
        manager.settimeout(30)
        got = []

        def wait_for(words):
            while not any(words in text for text in got):
                got.append(manager.recv(4096).decode())

        env = environment(NOTIFY_SOCKET=f"{folder}/notify", WATCHDOG_USEC="200000")
        with Gateway(folder, gateway_section(folder), env=env) as gateway:
            wait_for("READY=1")
            wait_for("STATUS=profd is away; 0 of 0 destinations up")
            wait_for("WATCHDOG=1")
            got.clear()
            gateway.send(signal.SIGHUP)
            wait_for("RELOADING=1\nMONOTONIC_USEC=")
            wait_for("READY=1")
            gateway.send(signal.SIGTERM)
            wait_for("STOPPING=1")
            equal(gateway.process.wait(timeout=30), 0, "status at the end")


@test
def status_says_that_a_gateway_is_gone_or_silent():
    with scratch() as folder, Gateway(folder, gateway_section(folder)) as gateway:
        state = gateway.status()
        old = f"{folder}/old"
        os.mkdir(old)
        with open(f"{old}/status.json", "w", encoding="utf-8") as f:
            json.dump({**state, "nowUsec": state["nowUsec"] - 3600 * 10**6}, f)
        said = ended(profctl("gateway", "status", f"--runtime={old}"), 6).stdout
        check("does not answer" in said, said)
        equal(as_json(profctl("gateway", "status", "--json", f"--runtime={old}"), "gateway", 6)["state"], "stale", "state")
        gateway.kill()
        said = ended(profctl("gateway", "status", f"--runtime={gateway.runtime}"), 3).stdout
        check("not running" in said, said)
        equal(as_json(profctl("gateway", "status", "--json", f"--runtime={gateway.runtime}"), "gateway", 3)["state"], "gone", "state")


@test
def a_hostile_state_does_no_harm():
    evil = "\x1b[2J\u202e\n</script>"
    for text, status in ((b"", 1), (b"\xff\x00{", 1), (b"[]", 1), (b"[" * 100000, 1), (b" " * (2 << 20), 1),
                         (json.dumps({"pid": 1, "host": evil, "version": evil, "destinations": [
                             {"name": evil, "type": evil, "lastError": evil, "remedy": evil}]}).encode(), 3)):
        with scratch() as folder:
            with open(f"{folder}/status.json", "wb") as f:
                f.write(text)
            done = profctl("gateway", "status", f"--runtime={folder}")
            equal(done.returncode, status, f"status for {text[:40]!r}")
            safe(done.stdout)
            safe(done.stderr)
    for words in (["status", "x"], ["test"], ["tea"], []):
        ended(profctl("gateway", *words), 2)


class Engine(http.server.BaseHTTPRequestHandler):
    """Says that it took whatever is pushed; `answer` is what it says when it is asked, after `later` times."""
    answer, later, pushed, asked, taken = {}, 0, 0, 0, b"{}"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        check_body = json.loads(body) if "Select" in self.path else None
        cls = type(self)
        if check_body is None:
            cls.pushed += 1
            self.reply_bytes(cls.taken)
        else:
            cls.asked += 1
            self.reply(cls.answer if cls.asked > cls.later else {"flamegraph": {"names": ["total"], "total": "0"}})

    def do_GET(self):
        cls = type(self)
        cls.asked += 1
        self.reply(cls.answer if cls.asked > cls.later else {})

    def reply(self, value):
        self.reply_bytes(json.dumps(value).encode())

    def reply_bytes(self, data):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def tested(answer, later=0, kind="pyroscope", taken=b"{}"):
    """`profd-gateway --test` against an engine that gives this back."""
    handler = type("Handler", (Engine,), {"answer": answer, "later": later, "taken": taken})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, tempfile.TemporaryDirectory() as folder:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        path = os.path.join(folder, "gateway.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(send("engine", Type=kind, URL=f"http://127.0.0.1:{server.server_port}") +
                    "[Relabel none]\nAction=keep\nSourceLabels=unit\nRegex=nothing\n")
        done = run("--test=engine", f"--config={path}")
        server.shutdown()
        thread.join()
    return done, handler


GOLDEN = {"flamegraph": {"names": ["total", "main", "rec", "leaf"], "total": "505050500", "maxSelf": "404040400"}}


@test
def a_test_of_a_destination_asks_the_engine_for_what_was_sent():
    done, engine = tested(GOLDEN, later=1)
    equal((done.returncode, done.stderr), (0, ""), "what it says")
    check("took 50 samples" in done.stdout and "gives them back" in done.stdout, done.stdout)
    equal((engine.pushed, engine.asked), (1, 2), "how often it was pushed and asked")


# As Parca's interface describes the report: numbers of 64 bits are strings in JSON.
PARCA_TOP = {"top": {"list": [{"meta": {"function": {"name": name}}, "cumulative": "0", "flat": flat} for name, flat in
                              (("leaf", "404040400"), ("rec", "80808080"), ("main", "20202020"))]}, "total": "505050500"}


@test
def parca_is_asked_by_its_own_interface():
    done, engine = tested(PARCA_TOP, later=1, kind="parca")
    equal((done.returncode, done.stderr), (0, ""), "what it says")
    check("gives them back" in done.stdout, done.stdout)
    equal((engine.pushed, engine.asked), (1, 2), "how often it was pushed and asked")


@test
def a_test_fails_where_the_engine_accepts_the_request_and_no_profile():
    done, engine = tested({}, kind="otlp", taken=b"\x0a\x07\x08\x01\x12\x03old")
    equal((done.returncode, done.stdout, engine.pushed), (1, "", 1), "what it says")
    check("did not take the profile" in done.stderr and "not 1 of its 1 profile: old" in done.stderr, done.stderr)
    done, engine = tested({}, kind="otlp", taken=b"")
    equal((done.returncode, engine.pushed), (0, 1), "where it takes all")


@test
def a_test_fails_where_the_destination_is_not_there_or_does_not_answer():
    with scratch() as folder:
        path = os.path.join(folder, "gateway.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(send("away", Type="pyroscope", URL=NOWHERE) + folder_send(folder))
        done = run("--test=nobody", f"--config={path}")
        equal(done.returncode, 1, "status without such a destination")
        check("no usable [Send nobody]" in done.stderr, done.stderr)
        done = run("--test=away", f"--config={path}")
        equal(done.returncode, 1, "status without an engine")
        check("did not take the profile" in done.stderr and "Check that the engine runs" in done.stderr, done.stderr)
        done = run("--test=files", f"--config={path}")
        equal(done.returncode, 0, "status of a folder")
        check("took 50 samples" in done.stdout and os.listdir(f"{folder}/files"), done.stdout)
        # profctl hands the test over to the program.
        env = environment(PATH=f"{os.path.dirname(GATEWAY)}:{os.environ['PATH']}")
        ended(profctl("gateway", "test", "files", f"--config={path}", env=env), 0)


if __name__ == "__main__":
    main()
