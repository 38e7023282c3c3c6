#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reading from profd hangs, as it does over a sampled program on a file system that stopped answering: the gateway
reports it after half a minute, and goes on when it ends."""

import os
import time

from daemon import Daemon, session
from gateway import Gateway, asked, gateway_section
from hostile import HungMount
from profctl import ended, profctl
from tap import check, equal, main, test
from workload import free_port, need_root, scratch


@test
def a_file_of_a_sampled_program_that_hangs_is_reported():
    need_root()
    with scratch() as folder, Daemon(folder, config=session(Event="cpu-clock", CallGraph="fp")):
        mount, port = f"{folder}/mount", free_port()
        os.mkdir(mount)
        os.mkdir(f"{folder}/second")
        config = gateway_section(folder) + f"[Listen]\nAddress=127.0.0.1:{port}\n"
        with HungMount(mount, 1, runs=True) as fuse:
            # profd has a sample of it when the gateway begins.
            time.sleep(2)
            fuse.hang()
            with Gateway(folder, config) as gateway:
                gateway.patience_s = 60
                gateway.wait_until(lambda: gateway.source().get("connected"), "profd")
                equal(asked(port, "/readyz")[0], 200, "readiness at first")
                gateway.wait_until(lambda: gateway.source().get("hangs"), "what hangs")
                source = gateway.source()
                equal((source["connected"], "a sampled program" in source["problem"]), (False, True), source["problem"])
                status, said = asked(port, "/readyz")
                equal((status, b"hangs" in said), (503, True), said)
                said = ended(profctl("gateway", "status", "--check", f"--runtime={gateway.runtime}"), 7).stdout
                check("hangs" in said and "is away" not in said, said)
                with Gateway(f"{folder}/second", config) as second:
                    second.wait_until(lambda: second.source().get("hangs"), "what hangs there")
                    equal(second.stop(), 0, "status of a stop meanwhile")
                    check("hangs, and is left behind" in second.log(), second.log())
                fuse.end()
                gateway.wait_until(lambda: gateway.source().get("connected"), "the file server to end")
                gateway.wait_until(lambda: gateway.source().get("samples", 0) > 0, "samples")
                equal(asked(port, "/readyz")[0], 200, "readiness at the end")
                equal(gateway.stop(), 0, "status at the end")


if __name__ == "__main__":
    main()
