# SPDX-License-Identifier: LGPL-2.1-or-later
"""The OpenTelemetry Collector that `./dev engines` builds: it writes what it gets into files, a line for each request. Each
tenant has a port and a file of its own; one of them wants a token, and one only small requests. A front before it shows
which tenant a request names."""

import contextlib
import gzip
import http.client
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time

from tap import build_path, check, skip, source_path
from workload import free_port

PROGRAM = build_path("engines", "otelcol-profiles")
PATH = "/v1development/profiles"
TENANTS = ("a", "b", "guarded", "narrow")
NARROW_BYTES = 40 << 10
TOKEN = "the-token-of-a-test"
READY_S = 60


def wait_for_port(port, process, log):
    end = time.monotonic() + READY_S
    while True:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        check(process.poll() is None, f"it ended: {log()}")
        check(time.monotonic() < end, f"port {port} does not listen: {log()}")
        time.sleep(0.05)


class Engine:
    """A program that runs until the block ends."""

    def __init__(self, folder, command, ports, env=None):
        self.log_path = os.path.join(folder, "engine.log")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, **(env or {})})
        try:
            for port in ports:
                wait_for_port(port, self.process, self.log)
        except BaseException:
            self.__exit__()
            raise

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Collector(Engine):
    def __init__(self, folder):
        if not os.access(PROGRAM, os.X_OK):
            skip("the OpenTelemetry Collector is not built; './dev engines' builds it with a go that is recent enough")
        self.ports = {tenant: free_port() for tenant in TENANTS}
        self.files = {tenant: os.path.join(folder, f"{tenant}.json") for tenant in TENANTS}
        env = {f"COLLECTOR_PORT_{t.upper()}": str(port) for t, port in self.ports.items()}
        env.update(COLLECTOR_TOKEN=TOKEN, COLLECTOR_NARROW_BYTES=str(NARROW_BYTES))
        env.update({f"COLLECTOR_FILE_{t.upper()}": path for t, path in self.files.items()})
        config = source_path("tests", "engines", "collector.yaml")
        super().__init__(folder, [PROGRAM, "--config", config, "--feature-gates=service.profilesSupport"],
                         self.ports.values(), env)

    def lines(self, tenant="a"):
        """What it has written so far, a request each."""
        with contextlib.suppress(FileNotFoundError), open(self.files[tenant], encoding="utf-8") as f:
            yield from (line for line in f if line.endswith("\n"))

    def requests(self, tenant="a"):
        """One after the other: an hour of them is larger than what they say."""
        return map(json.loads, self.lines(tenant))

    def profiles(self, tenant="a"):
        return [profile for request in self.requests(tenant) for profile in Request(request).profiles()]


class Front(http.server.ThreadingHTTPServer):
    """Hands each request to the port of its tenant, and keeps what is not in the Collector's files."""

    daemon_threads = True

    def __init__(self, ports):
        super().__init__(("127.0.0.1", 0), Handler)
        self.ports = ports
        self.seen = []  # path, tenant, encoding, plain body
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        encoding, tenant = self.headers.get("Content-Encoding"), self.headers.get("X-Scope-OrgID")
        self.server.seen.append((self.path, tenant, encoding, gzip.decompress(body) if encoding == "gzip" else body))
        onward = http.client.HTTPConnection("127.0.0.1", self.server.ports.get(tenant, self.server.ports["a"]), timeout=30)
        kept = {name: self.headers[name] for name in ("Content-Type", "Content-Encoding") if name in self.headers}
        onward.request("POST", self.path, body, kept)
        answer = onward.getresponse()
        said = answer.read()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


class Request:
    """A request in the Collector's JSON, with all indexes looked up in the dictionary; an index out of its table raises."""

    def __init__(self, request):
        self.request = request
        self.tables = request["dictionary"]
        self.names = {}  # of functions, by location

    def string(self, of, name):
        return self.tables["stringTable"][of.get(name, 0)]

    def attribute(self, pair):
        value = pair.get("value", {})
        key = pair.get("key") or self.string(pair, "keyStrindex")
        if "intValue" in value:
            return key, int(value["intValue"])
        if "stringValueStrindex" in value:
            return key, self.string(value, "stringValueStrindex")
        return key, value.get("stringValue")

    def attributes(self, of):
        return dict(self.attribute(self.tables["attributeTable"][i]) for i in of.get("attributeIndices", []))

    def kind(self, of):
        return self.string(of, "typeStrindex"), self.string(of, "unitStrindex")

    def frames(self, sample):
        """The names of a stack, the innermost first, with those that were inlined."""
        indices = self.tables["stackTable"][sample.get("stackIndex", 0)].get("locationIndices", [])
        return [name for index in indices for name in self.location(index)]

    def location(self, index):
        if index in self.names:
            return self.names[index]
        location = self.tables["locationTable"][index]
        mapping = self.tables["mappingTable"][location.get("mappingIndex", 0)]
        check(index > 0 and location.get("lines"), f"location {index} has no line: {location}")
        self.string(mapping, "filenameStrindex")
        functions = (self.tables["functionTable"][line["functionIndex"]] for line in location["lines"])
        self.names[index] = [sys.intern(self.string(function, "nameStrindex")) for function in functions]
        return self.names[index]

    def mappings(self):
        return {self.string(m, "filenameStrindex"): self.attributes(m) for m in self.tables["mappingTable"][1:]}

    def profiles(self):
        for resource in self.request["resourceProfiles"]:
            of = dict(self.attribute(pair) for pair in resource["resource"]["attributes"])
            for scope in resource["scopeProfiles"]:
                for profile in scope["profiles"]:
                    yield {
                        "resource": of, "scope": scope["scope"].get("name"), "type": self.kind(profile["sampleType"]),
                        "period_type": self.kind(profile["periodType"]), "period": int(profile["period"]),
                        "time": int(profile["timeUnixNano"]), "duration": int(profile["durationNano"]),
                        "samples": [(self.frames(s), self.attributes(s), sum(map(int, s["values"]))) for s in profile["samples"]],
                    }
