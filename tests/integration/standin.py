# SPDX-License-Identifier: LGPL-2.1-or-later
"""A stand-in for the daemon at the other end of a socket: answers as it is told to.

    with StandIn(folder, {"Ping": [{}], "Stop": [Error("NoSuchSession", session="x")]}) as daemon:
        subprocess.run([PROFCTL, f"--socket={daemon.path}", "ping"])
        daemon.calls  # what it was asked

An answer is a list: objects are replies, of which all but the last continue; an Error ends the
call; bytes are sent as they are; CLOSE ends the connection; SILENT never answers.
"""

import json
import os
import socket
import threading

CLOSE = object()
SILENT = object()
OURS = "io.profd.Control."


class Error:
    def __init__(self, name, /, **parameters):
        self.name = name if "." in name else OURS + name
        self.parameters = parameters


class StandIn:
    def __init__(self, folder, answers):
        self.path = os.path.join(folder, "io.profd.Control")
        self.answers = answers
        self.calls = []
        self.listener = socket.socket(socket.AF_UNIX)
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.open = []

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        for connection in self.open:
            connection.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        data = b""
        try:
            while True:
                while b"\0" not in data:
                    more = connection.recv(65536)
                    if not more:
                        return
                    data += more
                message, data = data.split(b"\0", 1)
                self.answer(connection, json.loads(message))
        except OSError:
            pass

    def answer(self, connection, call):
        self.calls.append(call)
        name = call["method"]
        answers = self.answers.get(name.removeprefix(OURS))
        if answers is None:
            answers = [Error("org.varlink.service.MethodNotFound", method=name)]
        for i, answer in enumerate(answers):
            if answer is CLOSE:
                connection.shutdown(socket.SHUT_RDWR)
            elif answer is SILENT:
                continue
            elif isinstance(answer, bytes):
                connection.sendall(answer)
            elif isinstance(answer, Error):
                self.send(connection, {"error": answer.name, "parameters": answer.parameters})
            elif i + 1 < len(answers):
                self.send(connection, {"parameters": answer, "continues": True})
            else:
                self.send(connection, {"parameters": answer})

    @staticmethod
    def send(connection, message):
        connection.sendall(json.dumps(message).encode() + b"\0")

    def asked(self, method):
        """Parameters of each call of a method."""
        return [c.get("parameters") or {} for c in self.calls if c["method"] == OURS + method]
