# SPDX-License-Identifier: LGPL-2.1-or-later
"""A little S3, strict where a real one is: Signature Version 4, the hash of each body, parts of at least
5 MiB, their order and ETags. It is a stand-in for faults; formats are shown by a real store (engines).

    with Bucket() as bucket:
        bucket.url, bucket.secret_file(folder)
        bucket.fail("PUT", times=2, status=503)     # answers so, then serves again
        bucket.objects                              # key -> bytes
"""

import contextlib
import hashlib
import hmac
import os
import re
import socket
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.etree import ElementTree
from xml.sax.saxutils import escape

ACCESS, SECRET, REGION, NAME = "AKIDTEST", "s3cr3t/with+signs=", "eu-test-1", "profiles"
PART_BYTES = 5 << 20
SKEW_S = 900
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
PLAIN = re.compile(r"[A-Za-z0-9._/-]*")


def digest(data):
    return hashlib.sha256(data).hexdigest()


def sign(secret, day, region, text):
    key = ("AWS4" + secret).encode()
    for word in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def quote(text):
    return urllib.parse.quote(text, safe="-_.~")


class Fault(Exception):
    def __init__(self, status, code):
        super().__init__(code)
        self.status, self.code = status, code


class Rule:
    """What happens to the next requests of a method whose path and query hold these words."""

    def __init__(self, method, words, times, status, code, retry_after, sleep, drop, body):
        self.method, self.words, self.times = method, words, times
        self.status, self.code, self.retry_after = status, code, retry_after
        self.sleep, self.drop, self.body = sleep, drop, body


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_xml(self, name, **rows):
        inner = "".join(f"<{k}>{escape(v)}</{k}>" for k, v in rows.items())
        self.answer(200, f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="{NAMESPACE}">{inner}</{name}>'.encode())

    def check_signature(self, body):
        bucket, headers = self.server.bucket, self.headers
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?"
                             r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})",
                             headers.get("Authorization", ""))
        if not found:
            raise Fault(403, "AccessDenied")
        access, day, region, signed, signature = found.groups()
        names = signed.split(";")
        needed = {"host", "x-amz-date", "x-amz-content-sha256"} | {n.lower() for n in headers if n.lower().startswith("x-amz-")}
        if names != sorted(names) or not needed <= set(names):
            raise Fault(403, "SignatureDoesNotMatch")
        if access != bucket.access:
            raise Fault(403, "InvalidAccessKeyId")
        if region != REGION:
            raise Fault(400, "AuthorizationHeaderMalformed")
        date = headers["x-amz-date"]
        when = time.mktime(time.strptime(date, "%Y%m%dT%H%M%SZ")) - time.timezone
        if abs(when - time.time()) > SKEW_S or not date.startswith(day):
            raise Fault(403, "RequestTimeTooSkewed")
        path, _, query = self.path.partition("?")
        pairs = sorted((quote(urllib.parse.unquote(k)), quote(urllib.parse.unquote(v)))
                       for k, _, v in (p.partition("=") for p in query.split("&") if p))
        canonical = "\n".join([self.command, path, "&".join(f"{k}={v}" for k, v in pairs),
                               *(f"{n}:{headers[n].strip()}" for n in names), "", signed, headers["x-amz-content-sha256"]])
        text = f"AWS4-HMAC-SHA256\n{date}\n{day}/{region}/s3/aws4_request\n{digest(canonical.encode())}"
        if not hmac.compare_digest(sign(bucket.secret, day, region, text), signature):
            raise Fault(403, "SignatureDoesNotMatch")
        if headers["x-amz-content-sha256"] != digest(body):
            raise Fault(400, "XAmzContentSHA256Mismatch")

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) != length:
            self.close_connection = True
            return
        try:
            self.check_signature(body)
            self.dispatch(body)
        except Fault as fault:
            self.server.bucket.refused.append(fault.code)
            self.answer(fault.status, f"<?xml version='1.0'?>\n<Error><Code>{fault.code}</Code></Error>".encode())

    def misbehave(self, rule):
        if rule.sleep:
            time.sleep(rule.sleep)
        if rule.drop:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        extra = {"Retry_After": str(rule.retry_after)} if rule.retry_after else {}
        code = f"<Error><Code>{rule.code}</Code></Error>".encode() if rule.code else b""
        self.answer(rule.status, rule.body or code, **extra)

    def dispatch(self, body):
        bucket = self.server.bucket
        path, _, query = self.path.partition("?")
        root, _, key = path[1:].partition("/")
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        with bucket.lock:
            bucket.requests.append((self.command, self.path))
            rule = bucket.take_rule(self.command, self.path)
        if rule:
            self.misbehave(rule)
            return
        if root != bucket.name:
            raise Fault(404, "NoSuchBucket")
        if not PLAIN.fullmatch(key) or len(key) > 1024:
            raise Fault(400, "InvalidURI")
        with bucket.lock:
            self.act(bucket, key, query, body)

    def act(self, bucket, key, query, body):
        upload = query.get("uploadId")
        if self.command == "GET" and not key and "uploads" in query:
            self.list_uploads(bucket, query.get("prefix", ""))
        elif self.command == "POST" and "uploads" in query:
            bucket.counter += 1
            upload = f"up+/{bucket.counter}=="
            bucket.uploads[upload] = (key, {})
            self.answer_xml("InitiateMultipartUploadResult", Bucket=bucket.name, Key=key, UploadId=upload)
        elif upload is not None and (upload not in bucket.uploads or bucket.uploads[upload][0] != key):
            raise Fault(404, "NoSuchUpload")
        elif self.command == "PUT" and upload is not None:
            bucket.uploads[upload][1][int(query["partNumber"])] = body
            self.answer(200, ETag=f'"{hashlib.md5(body).hexdigest()}"')
        elif self.command == "POST":
            self.complete(bucket, key, upload, body)
        elif self.command == "DELETE" and upload is not None:
            del bucket.uploads[upload]
            self.answer(204)
        elif self.command in ("GET", "DELETE") and key not in bucket.objects:
            raise Fault(404, "NoSuchKey")
        elif self.command == "GET":
            self.answer(200, bucket.objects[key])
        elif self.command == "DELETE":
            del bucket.objects[key]
            self.answer(204)
        elif self.command == "PUT":
            bucket.put(key, body, 1)
            self.answer(200, ETag=f'"{hashlib.md5(body).hexdigest()}"')
        else:
            raise Fault(400, "InvalidRequest")

    def list_uploads(self, bucket, prefix):
        rows = "".join(f"<Upload><Key>{escape(key)}</Key><UploadId>{escape(upload)}</UploadId></Upload>"
                       for upload, (key, _) in bucket.uploads.items() if key.startswith(prefix))
        self.answer(200, f'<ListMultipartUploadsResult xmlns="{NAMESPACE}"><Prefix>{escape(prefix)}</Prefix>{rows}'
                         "</ListMultipartUploadsResult>".encode())

    def complete(self, bucket, key, upload, body):
        parts = bucket.uploads[upload][1]
        listed = [(int(p.findtext("PartNumber")), p.findtext("ETag")) for p in ElementTree.fromstring(body).iter("Part")]
        if [n for n, _ in listed] != sorted(n for n, _ in listed):
            raise Fault(400, "InvalidPartOrder")
        if not listed or any(n not in parts or etag != f'"{hashlib.md5(parts[n]).hexdigest()}"' for n, etag in listed):
            raise Fault(400, "InvalidPart")
        if any(len(parts[n]) < PART_BYTES for n, _ in listed[:-1]):
            raise Fault(400, "EntityTooSmall")
        bucket.put(key, b"".join(parts[n] for n, _ in listed), len(listed))
        del bucket.uploads[upload]
        self.answer_xml("CompleteMultipartUploadResult", Bucket=bucket.name, Key=key, ETag='"x-1"')

    do_GET = do_PUT = do_POST = do_DELETE = serve


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.connections = set()

    def process_request(self, request, client_address):
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self.connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self):
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_):
        pass  # a client that was killed


class Bucket:
    def __init__(self, access=ACCESS, secret=SECRET, name=NAME):
        self.access, self.secret, self.name = access, secret, name
        self.lock = threading.Lock()
        self.objects, self.parts, self.times = {}, {}, {}
        self.uploads, self.counter = {}, 0
        self.requests, self.refused, self.rules = [], [], []
        self.server, self.port = None, 0

    def put(self, key, data, parts):
        self.objects[key], self.parts[key] = data, parts
        self.times[key] = self.times.get(key, 0) + 1

    def take_rule(self, method, path):
        for rule in self.rules:
            if rule.method in (method, "*") and rule.words in path and rule.times > 0:
                rule.times -= 1
                return rule
        return None

    def fail(self, method, words="", times=1, status=500, code="", retry_after=0, sleep=0, drop=False, body=b""):
        with self.lock:
            self.rules.append(Rule(method, words, times, status, code, retry_after, sleep, drop, body))

    def start(self):
        """Listens, on the port of the last time."""
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.bucket = self
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server.hang_up()
            self.server = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/{self.name}"

    def secret_file(self, folder, secret=None):
        path = os.path.join(folder, "s3.secret")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"{self.access}:{secret or self.secret}\n")
        os.chmod(path, 0o600)
        return path

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
