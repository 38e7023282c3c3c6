#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd-gateway and a real S3 (Debian's Swift): windows and snapshots become objects that perf opens, with
the samples that profd has; large ones go in parts; a wrong secret is refused."""

import contextlib
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "integration"))
import objects  # noqa: E402
from daemon import Daemon, session  # noqa: E402
from gateway_program import GATEWAY, Gateway  # noqa: E402
from profctl import profctl  # noqa: E402
from swift_store import Swift  # noqa: E402
from workload import need_root, scratch, spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

SECONDS = 2  # of a window
PART_BYTES = 5 << 20
WAIT_S = 120
KILLS = 5
CONFIG = session(Frequency=997) + session("raw", Frequency=499, CallGraph="dwarf:16K", Compress="none")


class Scene:
    """A store, a recorder and a load, for all tests."""

    stack = None
    folder = swift = daemon = None

    @classmethod
    def get(cls):
        need_root()
        if not cls.stack:
            cls.stack = contextlib.ExitStack()
            cls.folder = cls.stack.enter_context(scratch())
            os.mkdir(os.path.join(cls.folder, "swift"))
            cls.swift = cls.stack.enter_context(Swift(os.path.join(cls.folder, "swift")))
            cls.daemon = cls.stack.enter_context(Daemon(cls.folder, config=CONFIG))
            cls.stack.enter_context(spinning(0))
        return cls

    @classmethod
    def close(cls):
        if cls.stack:
            cls.stack.close()


def gateway(name, secret=None, **keys):
    scene = Scene.get()
    folder = os.path.join(scene.folder, name)
    os.makedirs(folder, exist_ok=True)
    rows = {"Type": "s3", "URL": scene.swift.url, "KeyTemplate": f"{name}/%Y/%m/%d/%N-%T.perf.data",
            "PasswordFile": scene.swift.secret_file(folder, secret or scene.swift.secret),
            "ObjectIntervalSec": f"{SECONDS}s", **keys}
    text = f"[Gateway]\nSocket={scene.daemon.control()}\nIntervalSec=1s\n[Listen]\nSocket=none\n[Send archive]\n"
    return Gateway(folder, text + "".join(f"{k}={v}\n" for k, v in rows.items()))


def keys_of(name):
    return [k for k in Scene.swift.keys() if k.startswith(f"{name}/")]


def wait_keys(name, n):
    return wait_until(lambda: (found := keys_of(name)) and len(found) >= n and found, WAIT_S, f"{n} objects below {name}/")


def snapshot(name):
    done = profctl("snapshot", f"--name={name}", "--session=raw", "--last=2s", socket=Scene.daemon.control())
    check("Saved" in done.stderr, f"profctl snapshot: {done.stderr}")
    path = os.path.join(Scene.folder, f"{name}.perf.data")
    done = profctl("show-snapshot", name, "-f", "-o", path, socket=Scene.daemon.control())
    check(os.path.exists(path), f"profctl show-snapshot: {done.stderr}")
    return path


@test
def windows_become_objects_with_each_sample_once():
    with gateway("windows") as g:
        keys = wait_keys("windows", 3)
        objects.check_consecutive(keys, SECONDS)
        got = {k: Scene.swift.get(k) for k in keys[:3]}
        objects.check_content(Scene.folder, Scene.daemon.control(), got, SECONDS)
        for data in got.values():
            objects.check_opens(Scene.folder, data)
        g.wait_until(lambda: (g.destination("archive") or {}).get("sentIntervals", 0) >= 3, "three objects in the status")


@test
def wrong_secret_is_refused_and_explained():
    with gateway("wrong", secret="not-the-secret") as g:
        g.wait_until(lambda: "the secret is not that of the access key" in g.log(), "a sentence")
        g.wait_until(lambda: "secret" in ((g.destination("archive") or {}).get("lastError") or ""), "a sentence in the status")
        check("not-the-secret" not in g.log(), "the secret is in the log")
        equal(keys_of("wrong"), [], "objects")


@test
def destination_can_be_tested():
    scene = Scene.get()
    path = os.path.join(scene.folder, "test.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"[Send archive]\nType=s3\nURL={scene.swift.url}\nPasswordFile={scene.swift.secret_file(scene.folder)}\n")
    done = subprocess.run([GATEWAY, f"--config={path}", "--test=archive"], capture_output=True, text=True, check=False)
    equal(done.returncode, 0, f"status of the test ({done.stderr})")
    check("gives back the same bytes" in done.stdout and "stays" not in done.stdout, done.stdout)


@test
def large_snapshot_goes_in_parts_and_is_the_same_bytes():
    Scene.get()
    path = snapshot("large")
    check(os.path.getsize(path) > 2 * PART_BYTES, f"it has {os.path.getsize(path)} bytes only")
    with gateway("parts", Content="snapshots"):
        key = wait_keys("parts", 1)[0]
        with open(path, "rb") as f:
            check(f.read() == Scene.swift.get(key), "the object is not the snapshot")
        equal(Scene.swift.uploads(), [], "uploads that are left")
        done = subprocess.run(["perf", "report", "--stdio", "-f", "--no-children", "-g", "none", "-i", path],
                              capture_output=True, text=True, check=False)
        check(done.returncode == 0 and "spin" in done.stdout, f"perf report: {done.stderr[-500:]}")


@test
def killed_gateway_leaves_no_parts_behind():
    Scene.get()
    snapshot("killed")
    for _ in range(KILLS):
        with gateway("killed", Content="snapshots"):
            time.sleep(random.uniform(0.1, 0.8))
    with gateway("killed", Content="snapshots"):
        wait_until(lambda: any("/killed-" in k for k in keys_of("killed")), WAIT_S, "the snapshot")
        wait_until(lambda: Scene.swift.uploads() == [], WAIT_S, "no upload that is left")


if __name__ == "__main__":
    try:
        main()
    finally:
        Scene.close()
