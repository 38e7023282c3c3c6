# SPDX-License-Identifier: LGPL-2.1-or-later
"""The control socket as a client sees it that was not built on our library: raw sockets and json.

    with Varlink(path) as v:
        v.call("ListSessions", more=True)      # a list of replies
        v.one("Start", session="web")          # the one reply

An answer that is an error raises Fault, whose name has no interface before it."""

import contextlib
import json
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import check  # noqa: E402

CONTROL = "io.profd.Control"
TIMEOUT_S = 60


class Fault(Exception):
    def __init__(self, error, parameters):
        super().__init__(f"{error} {parameters}")
        self.error = error
        self.name = error.rsplit(".", 1)[-1]
        self.parameters = parameters


class Gone(Exception):
    """The other end closed the connection."""


def connect(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        s.connect(path)
    except BaseException:
        s.close()
        raise
    return s


def connect_as(path, uid, gid, groups):
    """By a child that is that user, for the kernel notes who it was that connected; and its pid."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups(groups)
            os.setgid(gid)
            os.setuid(uid)
            with connect(path) as s:
                socket.send_fds(theirs, [b"x"], [s.fileno()])
            status = 0
        finally:
            os._exit(status)
    theirs.close()
    with ours:
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    os.waitpid(child, 0)
    if not fds:
        raise Gone(f"user {uid} cannot connect")
    return socket.socket(fileno=fds[0]), child


class Varlink:
    """A connection, of ourselves or of user=(uid, gid, [groups])."""

    def __init__(self, path, timeout=TIMEOUT_S, user=None):
        self.buffer = b""
        self.uid, self.pid = user[0] if user else os.getuid(), os.getpid()
        if user:
            self.socket, self.pid = connect_as(path, *user)
        else:
            self.socket = connect(path)
        self.socket.settimeout(timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, method, parameters=None, **flags):
        name = method if "." in method else f"{CONTROL}.{method}"
        message = {"method": name, "parameters": parameters or {}, **flags}
        self.socket.sendall(json.dumps(message).encode() + b"\0")

    def receive(self):
        """One reply as it came."""
        while b"\0" not in self.buffer:
            try:
                data = self.socket.recv(65536)
            except ConnectionError as error:
                raise Gone(str(error)) from error
            if not data:
                raise Gone("the connection was closed")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def reply(self):
        """(parameters, whether more follow)"""
        answer = self.receive()
        if "error" in answer:
            raise Fault(answer["error"], answer.get("parameters", {}))
        return answer.get("parameters", {}), answer.get("continues", False)

    def one(self, method, **parameters):
        self.send(method, parameters)
        answer, more = self.reply()
        check(not more, f"{method} has more to say, which was not asked for")
        return answer

    def each(self, method, **parameters):
        """Replies as they come, to the last one."""
        self.send(method, parameters, more=True)
        more = True
        while more:
            answer, more = self.reply()
            yield answer

    def call(self, method, **parameters):
        return list(self.each(method, **parameters))

    def members(self, method, name, **parameters):
        """The members of a list, which are called `name`."""
        return [r[name] for r in self.call(method, **parameters) if r.get(name) is not None]

    def read(self, **parameters):
        """The bytes behind Read()."""
        self.send("Read", parameters, upgrade=True)
        size = self.reply()[0]["bytes"]
        while True:
            try:
                data = self.socket.recv(1 << 20)
            except ConnectionError:
                break
            if not data:
                break
            self.buffer += data
        check(len(self.buffer) == size, f"Read() gave {len(self.buffer)} bytes of {size}")
        return self.buffer


@contextlib.contextmanager
def fault(name, /, **parameters):
    """The block has to fail with this error, and these of its parameters."""
    try:
        yield
    except Fault as error:
        check(error.name == name, f"the error is {error}, not {name}")
        for key, value in parameters.items():
            check(error.parameters.get(key) == value, f"{name} says {error.parameters}, not {key}={value!r}")
        # The caller has to know what is wrong with its parameter.
        check(name != "InvalidParameter" or error.parameters.get("reason"), f"{error.parameters} gives no reason")
        return
    check(False, f"no error, where {name} was to come")
