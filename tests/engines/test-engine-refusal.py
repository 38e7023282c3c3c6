#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What profd-gateway makes of refusals that come from others' programs: the OpenTelemetry Collector wants a token, and an
nginx before it accepts small requests only (413), or few of them (429 with Retry-After). Nothing is missing in the end."""

import collections
import contextlib
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "integration"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collector import TOKEN, Collector, Engine  # noqa: E402
from daemon import session  # noqa: E402
from engine_store import SECOND, perf_samples  # noqa: E402
from gateway import Sender, send  # noqa: E402
from scene import Scene  # noqa: E402
from varlink import Varlink  # noqa: E402
from workload import end, free_port, wait_until  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

SECONDS = 2  # of an interval
INTERVALS = 6
# Half of a request that is larger is one that the gateway still makes.
SMALL = 40 << 10
CROWD = 6
# Long labels, so that it does not depend on samples how large a series is.
RULES = ("[Relabel crowd]\nAction=keep\nSourceLabels=comm\nRegex=crowd-.*\nSends=large\n"
         f"[Relabel long]\nSourceLabels=comm\nTargetLabel=pad\nReplacement={'-' * 140}$1\nSends=large\n" +
         "".join(f"[Relabel pad-{c}]\nSourceLabels=pad\nTargetLabel=pad_{c}\nReplacement={c}$1$1$1$1$1$1\nSends=large\n"
                 for c in "abcdefghij"))
RETRY_AFTER_S = 2
NGINX = """user root;
daemon off;
master_process off;
pid nginx.pid;
events {}
http {
    log_format times "$status $msec $content_length";
    access_log access.log times;
    limit_req_zone $server_port zone=few:64k rate=20r/m;
    limit_req_status 429;
    client_body_buffer_size 4m;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {
        listen 127.0.0.1:%(small)d;
        client_max_body_size %(size)d;
        location / { proxy_pass http://127.0.0.1:%(to)d; }
    }
    server {
        listen 127.0.0.1:%(few)d;
        client_max_body_size 8m;
        add_header Retry-After %(after)d always;
        location / { limit_req zone=few; proxy_pass http://127.0.0.1:%(to)d; }
    }
}
"""


class Run(Scene):
    config = session(Event="cpu-clock", Frequency=199)


@contextlib.contextmanager
def collector(name):
    folder = os.path.join(Run.get().folder, name)
    os.mkdir(folder)
    with Collector(folder) as found:
        yield found


class Nginx(Engine):
    """Before tenant `a` of the Collector: `small` and `few` are its ports."""

    def __init__(self, name, engine):
        if not shutil.which("nginx"):
            skip("nginx is not installed")
        folder = os.path.join(Run.get().folder, f"nginx-{name}")
        os.mkdir(folder)
        self.small, self.few = free_port(), free_port()
        self.access = os.path.join(folder, "access.log")
        with open(os.path.join(folder, "nginx.conf"), "w", encoding="utf-8") as f:
            f.write(NGINX % {"small": self.small, "few": self.few, "to": engine.ports["a"], "size": SMALL, "after": RETRY_AFTER_S})
        super().__init__(folder, ["nginx", "-p", folder, "-e", "stderr", "-c", "nginx.conf"], (self.small, self.few))

    def answers(self):
        """Status, time and size of each request."""
        with open(self.access, encoding="utf-8") as f:
            return [(int(status), float(at), int(size)) for status, at, size in map(str.split, f)]


def gateway(name, url, rules="", **keys):
    return Sender(Run.get().folder, Run.control(), rules + send(name, "otlp", url, **keys), name=name, interval_s=SECONDS)


@contextlib.contextmanager
def crowd():
    """Many programs, each with a few samples: no series of theirs is large."""
    with contextlib.ExitStack() as stack:
        for i in range(CROWD):
            path = os.path.join(Run.get().folder, f"crowd-{i}")
            shutil.copy(build_path("tests", "integration", "load", "spin"), path)
            stack.callback(end, subprocess.Popen([path, "0"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        yield


def check_whole(g, name, found, prefix=""):
    """Everything up to now arrives once, with the samples that perf counts in the same time for these programs."""
    g.settle(name)
    # What was merged may reach beyond that.
    until = g.sent_until(name)
    g.stop()
    since = min(p["time"] for p in found.profiles(tenant_of(name)))
    check(until - since >= INTERVALS * SECONDS * SECOND, f"only {(until - since) / SECOND} s were sent")
    with Varlink(Run.control()) as v:
        replies = v.call("Snapshot", sinceUsec=since // 1000, untilUsec=until // 1000)
    path = [r for r in replies if r["snapshot"]][-1]["snapshot"]["path"]
    want = collections.Counter(comm for _, comm, _ in perf_samples(path) if comm.startswith(prefix))

    def arrived():
        got = collections.Counter()
        for profile in found.profiles(tenant_of(name)):
            for _, attributes, count in profile["samples"] if profile["time"] < until else ():
                got[attributes.get("thread.name", profile["resource"]["service.name"])] += count
        return got if got.total() >= want.total() else None
    got = wait_until(arrived, Sender.patience_s, f"{want.total()} samples in the Collector's file")
    equal({key: (got[key], want[key]) for key in got | want if got[key] != want[key]}, {}, "programs with other samples than by perf")
    equal([g.counter(name, key) for key in ("refusedIntervals", "refusedSamples")], [0, 0], "what is counted as refused")


def tenant_of(name):
    return {"token": "guarded", "narrow": "narrow"}.get(name, "a")


@test
def wrong_token_loses_nothing_and_a_right_one_takes_effect_by_itself():
    with collector("token") as found:
        path = os.path.join(Run.folder, "secret")
        with open(path, "w", encoding="utf-8") as f:
            f.write("not-the-token\n")
        with gateway("token", f"http://127.0.0.1:{found.ports['guarded']}", TokenFile=path) as g:
            g.wait_for_log("does not accept the credentials .HTTP 401.")
            said = g.wait_until(lambda: g.destination("token").get("lastError") and g.destination("token"), "an error in the status")
            check("HTTP 401" in said["lastError"] and "TokenFile=" in said["remedy"], said)
            g.wait_until(lambda: g.destination("token")["lagUsec"] >= INTERVALS * SECONDS * 1_000_000, "intervals that wait")
            equal(list(found.requests("guarded")), [], "what came without the right token")
            with open(path, "w", encoding="utf-8") as f:
                f.write(TOKEN + "\n")
            g.wait_until(lambda: list(found.requests("guarded")), "a request with the right one")
            check_whole(g, "token", found)
            check("not-the-token" not in g.log() and TOKEN not in g.log(), "the token is in the log")


@test
def request_that_is_too_large_is_sent_in_parts():
    with collector("large") as found, Nginx("large", found) as nginx, crowd():
        with gateway("large", f"http://127.0.0.1:{nginx.small}", RULES, Compress="no") as g:
            g.wait_until(lambda: g.destination("large").get("sentIntervals", 0) >= INTERVALS, "intervals that have arrived")
            check_whole(g, "large", found, "crowd-")
            check(re.search(r"says that a request of \d+ bytes is too large .HTTP 413.", g.log()), g.log())
        answers = nginx.answers()
        equal({status for status, _, _ in answers}, {200, 413}, "the answers")
        check(min(size for status, _, size in answers if status == 413) > SMALL, "a request of the right size was refused")


@test
def collector_that_accepts_small_requests_only_gets_parts():
    with collector("narrow") as found, crowd():
        with gateway("narrow", f"http://127.0.0.1:{found.ports['narrow']}", RULES.replace("Sends=large", "Sends=narrow"), Compress="no") as g:
            g.wait_until(lambda: g.destination("narrow").get("sentIntervals", 0) >= INTERVALS, "intervals that have arrived")
            destination = g.destination("narrow")
            equal(destination["refusedSamples"], 0, "samples that were lost")
            check("max_request_body_size" in (destination.get("remedy") or ""), f"the remedy in {destination}")
            check_whole(g, "narrow", found, "crowd-")
            check(re.search(r"says that a request of \d+ bytes is too large .HTTP 4\d\d.: .*request body too large", g.log()), g.log())


@test
def engine_that_wants_fewer_requests_is_left_in_peace():
    with collector("few") as found, Nginx("few", found) as nginx:
        with gateway("few", f"http://127.0.0.1:{nginx.few}") as g:
            g.wait_until(lambda: any(status == 429 for status, _, _ in nginx.answers()), "a request too many")
            g.wait_until(lambda: g.destination("few").get("sentIntervals", 0) >= INTERVALS, "intervals that have arrived")
            check_whole(g, "few", found)
            check("asks for fewer requests (HTTP 429)" in g.log(), g.log())
        answers = nginx.answers()
        equal({status for status, _, _ in answers}, {200, 429}, "the answers")
        pauses = [after[1] - before[1] for before, after in zip(answers, answers[1:]) if before[0] == 429]
        check(pauses and min(pauses) >= RETRY_AFTER_S - 0.01, f"it came back after {min(pauses, default=0)} s")


if __name__ == "__main__":
    main()
