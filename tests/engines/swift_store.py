# SPDX-License-Identifier: LGPL-2.1-or-later
"""A real S3 on loopback: Debian's OpenStack Swift with s3api and tempauth, in a folder of its own.

    with Swift(folder) as swift:
        swift.url, swift.access, swift.secret      # of an empty bucket
        swift.request("GET", "/bucket/key")        # signed by us: status and body
"""

import contextlib
import datetime
import hashlib
import hmac
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from xml.etree import ElementTree

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import check, skip  # noqa: E402

PROGRAMS = ["swift-proxy-server", "swift-account-server", "swift-container-server", "swift-object-server",
            "swift-ring-builder", "memcached"]
PACKAGES = "swift-proxy swift-account swift-container swift-object memcached"
KINDS = ("account", "container", "object")
REGION, BUCKET = "us-east-1", "profiles"
ACCESS, SECRET = "test:tester", "testing"
EMPTY = hashlib.sha256(b"").hexdigest()
WAIT_S = 60

SERVER = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = root
swift_dir = {folder}
devices = {folder}/disks
mount_check = false
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""

PROXY = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = root
swift_dir = {folder}
[pipeline:main]
pipeline = catch_errors cache listing_formats s3api tempauth slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcached}
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
"""


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Swift:
    access, secret = ACCESS, SECRET

    def __init__(self, folder):
        missing = [p for p in PROGRAMS if not shutil.which(p)]
        if missing:
            skip(f"{missing[0]} is not installed: apt-get install {PACKAGES}")
        if os.geteuid() != 0:
            skip("needs root to start Swift")
        self.folder, self.stack = folder, contextlib.ExitStack()
        self.proxy, self.memcached, *ports = free_ports(5)
        self.ports = dict(zip(KINDS, ports))

    @property
    def url(self):
        return f"http://127.0.0.1:{self.proxy}/{BUCKET}"

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
            f.write(text)

    def make_ring(self, kind):
        builder = os.path.join(self.folder, f"{kind}.builder")
        for words in (["create", "4", "1", "1"], ["add", f"r1z1-127.0.0.1:{self.ports[kind]}/d1", "1"], ["rebalance"]):
            done = subprocess.run(["swift-ring-builder", builder, *words], capture_output=True, text=True, check=False)
            check(done.returncode < 2, f"swift-ring-builder {words}: {done.stdout} {done.stderr}")

    def spawn(self, *command):
        with open(os.path.join(self.folder, f"{os.path.basename(command[0])}.log"), "ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.stack.callback(self.end, process)

    @staticmethod
    def end(process):
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self):
        os.makedirs(os.path.join(self.folder, "disks", "d1"), exist_ok=True)
        self.spawn("memcached", "-l", "127.0.0.1", "-p", str(self.memcached), "-u", "root", "-m", "16")
        for kind in KINDS:
            self.make_ring(kind)
            self.write(f"{kind}.conf", SERVER.format(kind=kind, port=self.ports[kind], folder=self.folder))
            self.spawn(f"swift-{kind}-server", os.path.join(self.folder, f"{kind}.conf"))
        self.write("proxy.conf", PROXY.format(port=self.proxy, memcached=self.memcached, folder=self.folder))
        self.spawn("swift-proxy-server", os.path.join(self.folder, "proxy.conf"))
        end = time.monotonic() + WAIT_S
        while not all(listens(p) for p in (self.proxy, self.memcached, *self.ports.values())):
            check(time.monotonic() < end, f"Swift does not start: {self.logs()}")
            time.sleep(0.1)
        while True:
            status, body = self.request("PUT", f"/{BUCKET}")
            if status == 200:
                break
            check(time.monotonic() < end, f"no bucket: {status} {body[:500]} {self.logs()}")
            time.sleep(0.2)

    def logs(self):
        texts = []
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as f:
                    texts.append(f"{name}: {f.read()[-600:]}")
        return "\n".join(texts)

    def request(self, method, path, query="", secret=SECRET):
        """A request with an empty body; query: encoded, its parameters sorted."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        host, scope = f"127.0.0.1:{self.proxy}", f"{now[:8]}/{REGION}/s3/aws4_request"
        headers = {"host": host, "x-amz-content-sha256": EMPTY, "x-amz-date": now}
        signed = ";".join(sorted(headers))
        canonical = "\n".join([method, path, query, *(f"{k}:{headers[k]}" for k in sorted(headers)), "", signed, EMPTY])
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = ("AWS4" + secret).encode()
        for word in scope.split("/"):
            key = hmac.new(key, word.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        headers["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={ACCESS}/{scope}, SignedHeaders={signed}, "
                                    f"Signature={signature}")
        asked = urllib.request.Request(f"http://{host}{path}" + (f"?{query}" if query else ""), method=method, headers=headers)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def rows(self, name, query=""):
        """Texts of all elements of this name in a listing of the bucket."""
        status, body = self.request("GET", f"/{BUCKET}", query)
        check(status == 200, f"list: {status} {body[:300]}")
        return [e.text for e in ElementTree.fromstring(body).iter() if e.tag.rpartition("}")[2] == name]

    def keys(self):
        return sorted(self.rows("Key"))

    def uploads(self):
        return self.rows("UploadId", "uploads=")

    def get(self, key):
        status, body = self.request("GET", f"/{BUCKET}/{urllib.parse.quote(key)}")
        check(status == 200, f"GET {key}: {status} {body[:300]}")
        return body

    def secret_file(self, folder, secret=SECRET):
        path = os.path.join(folder, "s3.secret")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"{ACCESS}:{secret}\n")
        os.chmod(path, 0o600)
        return path
