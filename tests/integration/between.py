# SPDX-License-Identifier: LGPL-2.1-or-later
"""A socket between profd and a client, to count what the client asks for.

    with Between(folder, daemon.control()) as between:
        ...  # connects to between.path
    between.follows
"""

import contextlib
import os
import socket
import threading


class Between:
    """Passes everything on to the socket of profd, and counts how often it is asked to Follow."""

    def __init__(self, folder, to):
        self.path, self.to, self.follows = os.path.join(folder, "between"), to, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                here, there = self.listener.accept()[0], socket.socket(socket.AF_UNIX)
                there.connect(self.to)
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=self.pass_on, args=pair, daemon=True).start()

    def pass_on(self, here, there):
        with contextlib.suppress(OSError):
            while data := here.recv(1 << 16):
                self.follows += data.count(b'"io.profd.Control.Follow"')
                there.sendall(data)
            there.shutdown(socket.SHUT_RDWR)
