# SPDX-License-Identifier: LGPL-2.1-or-later
"""A stand-in for a profiling engine: Pyroscope's push API and OTLP profiles over HTTP, with the limits that the real
ones document, and faults on request. It is our own reading of these limits and never the only proof of a format.

    with Engine() as engine:
        engine.fault = lambda push: "hang" if push.number < 3 else None
        ... url = engine.url
        engine.profiles     # what was accepted
"""

import collections
import contextlib
import http.server
import os
import re
import socket
import ssl
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire  # noqa: E402
from wire import Pprof, Refused, collect, numbers, text  # noqa: E402

BODY_MAX = 64 << 20
# Pyroscope's defaults.
PROFILE_MAX = 4 << 20
SAMPLES_MAX = 16000
LABELS_MAX = 30
VALUE_MAX = 2048
OLDEST_S, NEWEST_S = 3600, 600
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")

# One profile that was accepted. `samples`: (functions from the leaf, count, value, labels of the sample).
Profile = collections.namedtuple("Profile", "labels tenant time_ns duration_ns samples at request")
Push = collections.namedtuple("Push", "number path headers body at")


def labels_of(pairs):
    labels = {}
    for data in pairs:
        item = collect(data)
        name, value = text(item.get(1, b"")), text(item.get(2, b""))
        if not NAME.match(name):
            raise Refused(f"invalid label name {name!r}")
        if name in labels:
            raise Refused(f"duplicate label {name!r}")
        if len(value.encode()) > VALUE_MAX:
            raise Refused(f"label value of {name} too long")
        labels[name] = value
    if len(labels) > LABELS_MAX:
        raise Refused(f"series has {len(labels)} labels, the limit is {LABELS_MAX}")
    for name in ("__name__", "service_name"):
        if not labels.get(name):
            raise Refused(f"missing label {name}")
    return labels


def check_time(time_ns, now_ns, oldest_s=OLDEST_S):
    age = (now_ns - time_ns) / 1e9
    if age > oldest_s:
        raise Refused(f"profile is {age:.0f} s old, too old")
    if age < -NEWEST_S:
        raise Refused("profile is in the future")


def pyroscope(push, engine):
    """The profiles of a push request, or Refused."""
    if push.headers.get("Content-Type") not in ("application/proto", "application/x-protobuf"):
        raise Refused(f"content type {push.headers.get('Content-Type')}")
    found = []
    for series in collect(push.body, lists=(1,))[1]:
        item = collect(series, lists=(1, 2))
        labels = labels_of(item[1])
        for sample in item[2]:
            raw = collect(sample).get(1, b"")
            profile = Pprof(wire.unpacked(raw, PROFILE_MAX))
            check_time(profile.time_ns, time.time_ns(), engine.oldest_s)
            if len(profile.samples) > SAMPLES_MAX:
                raise Refused(f"{len(profile.samples)} samples, the limit is {SAMPLES_MAX}")
            for kind, unit in [*profile.types, profile.period_type]:
                if "-" in kind or not kind or not unit:
                    raise Refused(f"sample type {kind!r} {unit!r}")
            for _, _, sample_labels in profile.samples:
                if any(isinstance(value, str) for value in sample_labels.values()):
                    raise Refused("a text label of a sample becomes a series of its own")
            found.append(Profile(labels, push.headers.get("X-Scope-OrgID"), profile.time_ns, profile.duration_ns,
                                 [(s, v[0], v[-1], extra) for s, v, extra in profile.samples], push.at, push.number))
    if not found:
        raise Refused("no profile")
    return found


def any_value(data):
    item = collect(data)
    return text(item[1]) if 1 in item else item.get(2, item.get(3))


def otlp(push, engine):
    """The profiles of an export request of OTLP 1.10, or Refused."""
    if push.headers.get("Content-Type") != "application/x-protobuf":
        raise Refused(f"content type {push.headers.get('Content-Type')}")
    top = collect(push.body, lists=(1,))
    tables = collect(top.get(2, b""), lists=range(1, 8))
    strings = [text(value) for value in tables[5]]
    for number in range(1, 8):
        # A link is two ids, which may be written as zeros.
        if not tables[number] or any(value.strip(b"\0") for _, value in wire.fields(tables[number][0])) \
                if number == 4 else tables[number][:1] != [b""]:
            raise Refused(f"entry 0 of table {number} is not empty")
    functions = [strings[collect(value).get(1, 0)] for value in tables[3]]
    locations = []
    for value in tables[2]:
        lines = collect(value, lists=(3,))[3]
        locations.append([functions[collect(line).get(1, 0)] for line in lines])
    stacks = [[name for at in numbers(collect(value, lists=(1,))[1]) for name in locations[at]] for value in tables[7]]
    keys = [(strings[collect(value).get(1, 0)], any_value(collect(value).get(2, b""))) for value in tables[6]]
    found = []
    for resource_profiles in top[1]:
        item = collect(resource_profiles, lists=(2,))
        labels = {}
        for pair in collect(item.get(1, b""), lists=(1,))[1]:
            entry = collect(pair)
            name = text(entry[1]) if entry.get(1) else strings[entry.get(3, 0)]
            labels[name] = str(any_value(entry.get(2, b"")))
        if not labels.get("service.name"):
            raise Refused("no service.name")
        labels["service_name"] = labels["service.name"]
        for scope in item[2]:
            for data in collect(scope, lists=(2,))[2]:
                profile = collect(data, lists=(2,))
                check_time(profile.get(3, 0), time.time_ns(), engine.oldest_s)
                if not profile.get(5) or not profile.get(6):
                    raise Refused("no period or period type")
                samples = []
                for value in profile[2]:
                    sample = collect(value, lists=(2, 4))
                    values = numbers(sample[4])
                    if len(values) != 1:
                        raise Refused(f"a sample has {len(values)} values")
                    extra = dict(keys[at] for at in numbers(sample[2]))
                    samples.append((tuple(stacks[sample.get(1, 0)]), values[0], values[0] * signed_period(profile), extra))
                found.append(Profile(labels, push.headers.get("X-Scope-OrgID"), profile.get(3, 0), profile.get(4, 0),
                                     samples, push.at, push.number))
    if not found:
        raise Refused("no profile")
    return found


def signed_period(profile):
    return wire.signed(profile.get(6, 0))


# What the readers raise for a body that no engine would take.
WRONG = (Refused, IndexError, KeyError)
PATHS = {"/push.v1.PusherService/Push": pyroscope, "/v1development/profiles": otlp}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.server.engine.sockets.add(self.connection)

    def finish(self):
        self.server.engine.sockets.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def read_body(self):
        size = int(self.headers.get("Content-Length", "0"))
        if size > BODY_MAX:
            raise Refused("body too large")
        body = self.rfile.read(size)
        if len(body) < size:
            raise ConnectionResetError("the gateway ended within a request")
        coding = self.headers.get("Content-Encoding")
        if coding == "gzip":
            body = zlib.decompressobj(31).decompress(body, BODY_MAX)
        elif coding:
            raise Refused(f"content encoding {coding}")
        return body

    def do_POST(self):
        engine = self.server.engine
        try:
            body = self.read_body()
            push = engine.begin(self.path, self.headers, body)
            fault = engine.fault and engine.fault(push)
            if fault and self.misbehave(fault):
                return
            if self.path not in PATHS:
                self.answer(404, b"404 page not found\n")
                return
            engine.take(PATHS[self.path], push)
            engine.over.wait(engine.delay_s)
        except WRONG as error:
            engine.refusals.append(f"{type(error).__name__}: {error}")
            self.answer(400, str(error).encode(), Content_Type="text/plain")
        else:
            if fault == "close-after":
                self.close_connection = True
                return
            self.answer(200, b"", Content_Type="application/proto")

    do_PUT = do_GET = do_POST

    def misbehave(self, fault):
        """A status, a pair of status and headers, or a word; whether that was the whole answer."""
        if fault == "close-after":
            return False
        if isinstance(fault, int):
            fault = (fault, {})
        if isinstance(fault, tuple):
            self.answer(fault[0], b"limits say no\n", **fault[1])
        elif fault == "hang":
            self.close_connection = True
            self.server.engine.over.wait(600)
        elif fault == "close":
            self.close_connection = True
        elif fault == "garbage":
            self.close_connection = True
            self.wfile.write(b"\x00\x01\x02 what is this\r\n\r\n")
        elif fault == "endless":
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.wfile.write(b"HTTP/1.1 503 No\r\n\r\n")
                while not self.server.engine.over.is_set():
                    self.wfile.write(b"x" * 65536)
        elif fault == "slow":
            self.close_connection = True
            with contextlib.suppress(OSError):
                for byte in b"HTTP/1.1 503 No\r\n" * 100:
                    self.wfile.write(bytes([byte]))
                    if self.server.engine.over.wait(0.2):
                        break
        return True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        """A gateway that is killed closes its connection anywhere."""


class Engine:
    """Runs in a thread; stop() and start() take it away and bring it back at the same port."""

    def __init__(self, oldest_s=OLDEST_S, certificate=None, key=None, clients=None):
        """With a certificate and its key it speaks TLS, and with `clients`, a file, only to whom that signed."""
        self.oldest_s = oldest_s
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate, key)
        if clients:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(clients)
        self.fault = None
        self.delay_s = 0  # between what it does with a request and its answer
        # Accept at once and read in read_all(): this process is slow, which is no matter of what is sent to it.
        self.reads_later, self.unread = False, []
        self.profiles, self.refusals, self.pushes = [], [], []
        self.lock, self.over = threading.Lock(), threading.Event()
        self.sockets = set()
        self.port, self.server = 0, None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        if self.server:
            self.stop()

    @property
    def url(self):
        return f"http{'s' if self.context else ''}://127.0.0.1:{self.port}"

    def start(self):
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.engine = self
        if self.context:
            self.server.socket = self.context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        """Also connections that are open end, as those of a process that is killed."""
        self.server.shutdown()
        self.server.server_close()
        self.server = None
        for connection in list(self.sockets):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def begin(self, path, headers, body):
        with self.lock:
            push = Push(len(self.pushes), path, headers, body, time.time_ns())
            self.pushes.append(push._replace(body=len(body)))
            return push

    def take(self, reader, push):
        """The profiles of a request, or an exception."""
        if self.reads_later:
            self.unread.append((reader, push))
            return
        profiles = reader(push, self)
        with self.lock:
            self.profiles += profiles

    def read_all(self):
        self.reads_later = False
        for reader, push in self.unread:
            try:
                self.take(reader, push)
            except WRONG as error:
                self.refusals.append(f"{type(error).__name__}: {error}")

    def taken(self):
        with self.lock:
            return list(self.profiles)


def key_of(profile):
    """What makes two profiles the same one."""
    return profile.time_ns, profile.tenant, tuple(sorted(profile.labels.items()))


def repeated_requests(profiles):
    """How many requests had something that an earlier one had brought already."""
    seen, repeated = {}, set()
    for profile in sorted(profiles, key=lambda p: p.request):
        first = seen.setdefault(key_of(profile), profile.request)
        if first != profile.request:
            repeated.add(profile.request)
    return len(repeated)


def once(profiles):
    """Each profile once."""
    return list({key_of(profile): profile for profile in profiles}.values())


def intervals(profiles, interval_ns):
    """Which intervals something arrived of, by their number since 1970; windows of several may be one profile, and
    parts of a profile begin a few milliseconds later."""
    found = set()
    for profile in profiles:
        last = profile.time_ns + max(profile.duration_ns, 1) - 1
        found.update(range(profile.time_ns // interval_ns, max(profile.time_ns, last - interval_ns // 10) // interval_ns + 1))
    return sorted(found)
