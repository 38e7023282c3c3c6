#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The gateway's listener before clients of every kind. Its source is a made profile: listen-tool.c."""

import contextlib
import gzip
import http.client
import os
import re
import socket
import ssl
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import is_sanitized, status_of  # noqa: E402
from workload import end, free_port, scratch, wait_until  # noqa: E402
from tap import build_path, check, equal, main, skip, test  # noqa: E402

TOOL = build_path("tests", "integration", "listen-tool")
TOKEN = "0123456789abcdef-of-a-test"
LIMIT_S = 60
PEERS_MAX = 64
PROFILES_MAX = 4


class Listener:
    """The tool, on a Unix socket, and on a loopback port where `tcp`."""

    def __init__(self, folder, *arguments, tcp=False, ready=True):
        self.socket = os.path.join(folder, "http")
        self.port = free_port() if tcp else None
        address = ["-a", f"127.0.0.1:{self.port}"] if tcp else []
        self.process = subprocess.Popen([TOOL, "-s", self.socket, *address, *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        if ready:
            check(self.process.stdout.readline() == "ready\n", "the listener did not begin")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.process.terminate()
            status, said = self.process.wait(timeout=LIMIT_S), self.process.stderr.read()
            check(status == 0, f"the listener ended with {status}: {said[-2000:]}")
        end(self.process)

    def connect(self):
        """A socket to the port, or to the Unix socket where there is none."""
        peer = socket.socket(socket.AF_INET if self.port else socket.AF_UNIX)
        peer.settimeout(LIMIT_S)
        peer.connect(("127.0.0.1", self.port) if self.port else self.socket)
        return peer

    def ask(self, path, method="GET", body=None, tls=None, **headers):
        """Status, headers and body of an answer."""
        c = http.client.HTTPConnection("localhost", timeout=LIMIT_S)
        c.sock = self.connect()
        if tls:
            c.sock = tls.wrap_socket(c.sock, server_hostname="localhost")
        with contextlib.closing(c):
            c.request(method, path, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})
            answer = c.getresponse()
            return answer.status, answer.headers, answer.read()

    def count(self, name):
        return int(re.search(rf"^{name} (\d+)$", self.ask("/metrics")[2].decode(), re.M)[1])


@contextlib.contextmanager
def listener(*arguments, **options):
    with scratch() as folder, Listener(folder, *arguments, **options) as it:
        yield it


def refused(folder, *arguments):
    """What the tool prints when it does not start."""
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=folder)
    equal(done.returncode, 1, f"the status of {arguments}")
    return done.stderr


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def certificate(folder):
    """A certificate of localhost and its key."""
    paths = os.path.join(folder, "certificate.pem"), os.path.join(folder, "key.pem")
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                           "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2", "-out", paths[0],
                           "-keyout", paths[1]], capture_output=True, check=False)
    check(done.returncode == 0, done.stderr.decode())
    return paths


def is_closed(peer):
    """Reads to the end; True once there is one, however it came."""
    try:
        while peer.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


@test
def each_path_answers():
    with listener() as it:
        status, headers, body = it.ask("/debug/pprof/")
        equal((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"), "the index")
        for path in re.findall(rb'href="([^"?]+)', body):
            check(it.ask(path.decode())[0] in (200, 503), f"{path} of the index does not answer")
        equal(it.ask("/healthz")[::2], (200, b"ok\n"), "the health")
        equal(it.ask("/readyz")[::2], (503, b"The gateway does not reach profd.\n"), "the readiness")
        equal(it.ask("/debug/pprof/symbol")[::2], (200, b"num_symbols: 1\n"), "the symbols")
        equal(it.ask("/debug/pprof/heap")[0], 404, "the status of another path")


@test
def profile_is_answered_at_once_and_names_its_kernel_addresses():
    with listener() as it:
        status, headers, body = it.ask("/debug/pprof/profile?seconds=30")
        equal((status, headers["Content-Type"]), (200, "application/octet-stream"), "the answer")
        plain = gzip.decompress(body)
        for name in (b"work<[u8; 4]>", b"shop.service", b"cpu", b"nanoseconds"):
            check(name in plain, f"{name} is not in the profile")
        answer = it.ask("/debug/pprof/symbol", "POST", b"0xffffffff81000010+0x1100")[2]
        equal(answer, b"num_symbols: 1\n0xffffffff81000010 read\n", "the names")
        equal(it.ask("/debug/pprof/symbol", "POST", b"hello")[0], 400, "the status of no addresses")


@test
def head_has_no_body_and_makes_no_profile():
    with listener() as it:
        for path in ("/", "/healthz", "/metrics", "/debug/pprof/profile?unit=hang.service"):
            # A body would be in front of the second answer.
            with it.connect() as peer:
                peer.sendall(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
                             "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                said = b"".join(iter(lambda p=peer: p.recv(1 << 16), b""))
            check(re.fullmatch(rb"(HTTP/1\.1 200 [^\r]*\r\n([^\r]+\r\n)+\r\n){2}", said), f"{path}: {said}")


@test
def only_the_right_methods_are_accepted():
    with listener() as it:
        for path in ("/", "/metrics", "/debug/pprof/profile", "/healthz"):
            status, headers, _ = it.ask(path, "POST", b"x")
            equal((status, headers["Allow"]), (405, "GET, HEAD"), path)
        for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
            check(it.ask("/", method)[0] in (400, 405, 501), f"{method} was accepted")


@test
def faults_of_the_source_are_sentences():
    faults = {"deleted.service": 404, "away.service": 503, "broken.service": 500}
    with listener() as it:
        for unit, want in faults.items():
            status, headers, body = it.ask(f"/debug/pprof/profile?unit={unit}")
            equal(status, want, f"the status of {unit}")
            check(re.fullmatch(rb"[A-Za-z][^\n]+\.\n", body), f"{body} is not a sentence")
            equal(headers["Retry-After"], "5" if want == 503 else None, f"Retry-After of {unit}")


@test
def bad_queries_are_refused_and_not_repeated():
    with listener() as it:
        for query in ("seconds=0", "seconds=99999", "since=tomorrow", "pid=-1", "unit=", "evil=%3Cscript%3E", "seconds=1&seconds=2",
                      "unit=" + "u" * 300, "&" * 3000, "unit=%00", "unit=%"):
            status, _, body = it.ask(f"/debug/pprof/profile?{query}")
            equal(status, 400, f"the status of {query[:30]}")
            check(b"evil" not in body and b"script" not in body, f"{body} has the query")


@test
def unix_socket_is_for_its_owner_and_group():
    with scratch() as folder:
        with Listener(folder) as it:
            equal(stat.S_IMODE(os.stat(it.socket).st_mode), 0o660, "the mode")
            check("in use" in refused(folder, "-s", it.socket), "a second listener took the socket over")
        check(not os.path.exists(it.socket), "the socket was left behind")
        write(folder, "file", "precious")
        check("no socket" in refused(folder, "-s", "file"), "a file was taken for a socket")
        with open(os.path.join(folder, "file"), encoding="utf-8") as f:
            equal(f.read(), "precious", "the file")


@test
def socket_of_a_killed_listener_is_replaced():
    with scratch() as folder:
        killed = Listener(folder)
        end(killed.process)
        check(os.path.exists(killed.socket), "a killed listener has removed its socket")
        with Listener(folder) as it:
            equal(it.ask("/healthz")[0], 200, "the status")


@test
def open_address_needs_tls_and_a_token():
    with scratch() as folder:
        cert, key = certificate(folder)
        token = write(folder, "token", TOKEN + "\n")
        for address in ("0.0.0.0:1", "[::]:1", "192.0.2.1:1"):
            for arguments in ([], ["-c", cert, "-k", key], ["-t", token]):
                said = refused(folder, "-a", address, *arguments)
                check("not a loopback address" in said and "Permission denied" in said, said)
        for name, text in (("short", "secret"), ("spaced", "0123456789 abcdefghi"), ("empty", "")):
            said = refused(folder, "-a", "127.0.0.1:1", "-t", write(folder, name, text))
            check("less than 16" in said, said)
        check("belong together" in refused(folder, "-a", "127.0.0.1:1", "-c", cert), "no key")
        check("is not a key" in refused(folder, "-a", "127.0.0.1:1", "-c", cert, "-k", token), "a bad key")
        check("ADDRESS:PORT" in refused(folder, "-a", "example.com:80"), "a name was looked up")


@test
def tls_client_needs_the_token():
    with scratch() as folder:
        cert, key = certificate(folder)
        token = write(folder, "token", TOKEN + "\n")
        tls = ssl.create_default_context(cafile=cert)
        with Listener(folder, "-c", cert, "-k", key, "-t", token, tcp=True) as it:
            for header in (None, "", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN * 2}"):
                headers = {} if header is None else {"Authorization": header}
                status, answered, body = it.ask("/healthz", tls=tls, **headers)
                equal((status, answered["WWW-Authenticate"]), (401, "Bearer"), f"the answer to {header}")
                check(TOKEN.encode() not in body, "the token is in the answer")
            for path in ("/debug/pprof/profile", "/metrics", "/nothing"):
                equal(it.ask(path, tls=tls)[0], 401, path)
            equal(it.ask("/debug/pprof/profile", tls=tls, Authorization=f"Bearer {TOKEN}")[0], 200, "the status with the token")
            with it.connect() as plain:
                plain.sendall(f"GET /healthz HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
                check(b"200" not in plain.recv(1 << 16), "it answers without TLS")


@test
def page_of_another_site_is_refused_on_loopback():
    with listener(tcp=True) as it:
        for host in ("localhost", f"127.0.0.1:{it.port}", "[::1]:1"):
            equal(it.ask("/healthz", Host=host)[0], 200, host)
        for host in ("evil.example.com", "127.0.0.1.example.com", f"localhost.example.com:{it.port}", ""):
            equal(it.ask("/healthz", Host=host)[0], 403, host)


@test
def oversized_requests_are_refused():
    with listener() as it:
        equal(it.ask("/" + "x" * 20000)[0], 400, "the status of a long path")
        equal(it.ask("/healthz", X_Long="x" * 20000)[0], 400, "the status of a long header")
        status = 413
        with contextlib.suppress(ConnectionError):  # it may close before it has read all
            status = it.ask("/debug/pprof/symbol", "POST", b"1+" * (1 << 20))[0]
        equal(status, 413, "the status of a large body")
        many = b"1+" * 5000
        equal(it.ask("/debug/pprof/symbol", "POST", many)[0], 400, "the status of too many addresses")
        with it.connect() as peer:
            peer.sendall(b"POST /debug/pprof/symbol HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
            check(not peer.recv(1 << 16).startswith(b"HTTP/1.1 200"), "an endless body was accepted")
        equal(it.ask("/healthz")[0], 200, "the status after them")


@test
def garbage_is_survived():
    with listener() as it:
        for bytes_ in (b"\0" * 1000 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                       b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"GET http://[::1 HTTP/1.1\r\n\r\n", os.urandom(5000),
                       b"POST /debug/pprof/symbol HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"):
            with it.connect() as peer:
                peer.sendall(bytes_)
                peer.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionError):
                    check(b"200 OK" not in peer.recv(1 << 16), f"{bytes_[:40]} was accepted")
        equal(it.ask("/healthz")[0], 200, "the status after them")


@test
def client_that_sends_byte_by_byte_is_disconnected():
    with listener("-p", "1000") as it, it.connect() as slow, it.connect() as silent:
        slow.settimeout(0.05)
        request = iter(b"GET / HTTP/1.1\r\nX: " + b"x" * 8000)

        def is_cut_off():
            try:
                slow.sendall(bytes([next(request)]))
                return slow.recv(100) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True
        wait_until(is_cut_off, LIMIT_S, "the end of a slow request")
        check(is_closed(silent), "a silent client stays")
        check(it.count("refused") >= 2, "they are not counted")


@test
def client_that_does_not_read_is_disconnected():
    with listener("-p", "1000") as it, it.connect() as peer:
        peer.settimeout(0.2)
        data = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100

        def is_cut_off():
            try:
                peer.send(data)
            except TimeoutError:
                pass
            except ConnectionError:
                return True
            return False
        wait_until(is_cut_off, LIMIT_S, "the end of a client that does not read")
        equal(it.ask("/healthz")[0], 200, "the status for others")


@test
def silent_clients_make_place_for_others():
    with listener(tcp=True) as it, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(it.connect()) for _ in range(PEERS_MAX + 20)]
        equal(it.ask("/healthz")[0], 200, "the status behind silent clients")
        check(any(is_closed(peer) for peer in silent[:1]), "none was disconnected")
        pid = it.process.pid
        check(len(os.listdir(f"/proc/{pid}/fd")) < PEERS_MAX + 30, "it holds more connections than it may")


@test
def profiles_at_once_are_bounded():
    with listener() as it, contextlib.ExitStack() as stack:
        for _ in range(PROFILES_MAX):
            peer = stack.enter_context(it.connect())
            peer.sendall(b"GET /debug/pprof/profile?unit=hang.service HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, headers, body = wait_until(lambda: (lambda a: a if a[0] == 503 else None)(it.ask("/debug/pprof/profile")), LIMIT_S,
                                           "the bound of profiles")
        equal((status, headers["Retry-After"]), (503, "5"), "the answer")
        check(b"Four profiles" in body, body)
        equal(it.ask("/healthz")[0], 200, "the status of what is no profile")


@test
def connections_are_kept_and_answers_are_those_of_their_requests():
    with listener() as it, it.connect() as peer:
        for path, want in ((b"/healthz", b"ok\n"), (b"/nothing", b"no such path"), (b"/healthz", b"ok\n")):
            peer.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            check(want in peer.recv(1 << 16), f"{path} on a kept connection")


@test
def memory_stays_flat_over_many_requests():
    if is_sanitized(TOOL):
        skip("a sanitizer keeps what was freed")
    with listener() as it:
        paths = ("/debug/pprof/profile?seconds=10", "/metrics", "/nothing", "/debug/pprof/profile?x")

        def ask_all(rounds):
            for _ in range(rounds):
                for path in paths:
                    it.ask(path)
            return int(status_of(it.process.pid, "VmRSS").split()[0])
        before = ask_all(100)
        grown_kib = ask_all(400) - before
        check(grown_kib < 1024, f"1600 requests cost {grown_kib} KiB")


@test
def curl_asks_through_the_unix_socket():
    with listener() as it:
        try:
            done = subprocess.run(["curl", "-sS", "--unix-socket", it.socket, "http://localhost/debug/pprof/profile?seconds=5"],
                                  capture_output=True, timeout=LIMIT_S, check=False)
        except FileNotFoundError:
            skip("curl is not installed")
        equal(done.returncode, 0, done.stderr)
        check(b"shop.service" in gzip.decompress(done.stdout), "no profile")


if __name__ == "__main__":
    main()
