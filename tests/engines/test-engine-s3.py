#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""profd-gateway and a real S3 (Debian's Swift): windows and snapshots become objects that perf opens, with
the samples that profd has; large ones go in parts; a wrong secret is refused."""

import functools
import os
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "integration"))
import objects  # noqa: E402
from daemon import session  # noqa: E402
from gateway import GATEWAY, Gateway  # noqa: E402
from profctl import profctl  # noqa: E402
from scene import Scene  # noqa: E402
from swift_store import Swift  # noqa: E402
from workload import spinning, wait_until  # noqa: E402
from tap import check, equal, main, test  # noqa: E402

SECONDS = 2  # of a window
PART_BYTES = 5 << 20
WAIT_S = 120
KILLS = 5
CONFIG = session(Frequency=997) + session("raw", Frequency=499, CallGraph="dwarf:16K", Compress="none")


class Run(Scene):
    """A store too."""

    config = CONFIG
    load = functools.partial(spinning, 0)

    @classmethod
    def begin(cls, enter):
        super().begin(enter)
        folder = os.path.join(cls.folder, "swift")
        os.mkdir(folder)
        cls.swift = enter(Swift(folder))


def gateway(name, secret=None, **keys):
    scene = Run.get()
    folder = os.path.join(scene.folder, name)
    os.makedirs(folder, exist_ok=True)
    rows = {"Type": "s3", "URL": scene.swift.url, "KeyTemplate": f"{name}/%Y/%m/%d/%N-%T.perf.data",
            "PasswordFile": scene.swift.secret_file(folder, secret or scene.swift.secret),
            "ObjectIntervalSec": f"{SECONDS}s", **keys}
    text = f"[Gateway]\nSocket={scene.daemon.control()}\nIntervalSec=1s\n[Listen]\nSocket=none\n[Send archive]\n"
    return Gateway(folder, text + "".join(f"{k}={v}\n" for k, v in rows.items()))


def keys_of(name):
    return [k for k in Run.swift.keys() if k.startswith(f"{name}/")]


def wait_keys(name, n):
    return wait_until(lambda: (found := keys_of(name)) and len(found) >= n and found, WAIT_S, f"{n} objects below {name}/")


def snapshot(name):
    done = profctl("snapshot", f"--name={name}", "--session=raw", "--last=2s", socket=Run.daemon.control())
    check("Saved" in done.stderr, f"profctl snapshot: {done.stderr}")
    path = os.path.join(Run.folder, f"{name}.perf.data")
    done = profctl("show-snapshot", name, "-f", "-o", path, socket=Run.daemon.control())
    check(os.path.exists(path), f"profctl show-snapshot: {done.stderr}")
    return path


@test
def windows_become_objects_with_each_sample_once():
    with gateway("windows") as g:
        keys = wait_keys("windows", 3)
        objects.check_consecutive(keys, SECONDS)
        got = {k: Run.swift.get(k) for k in keys[:3]}
        objects.check_content(Run.folder, Run.daemon.control(), got, SECONDS)
        for data in got.values():
            objects.check_opens(Run.folder, data)
        g.wait_until(lambda: g.destination("archive").get("sentIntervals", 0) >= 3, "three objects in the status")


@test
def wrong_secret_is_refused_and_explained():
    with gateway("wrong", secret="not-the-secret") as g:
        g.wait_until(lambda: "the secret is not that of the access key" in g.log(), "a sentence")
        g.wait_until(lambda: "secret" in (g.destination("archive").get("lastError") or ""), "a sentence in the status")
        check("not-the-secret" not in g.log(), "the secret is in the log")
        equal(keys_of("wrong"), [], "objects")


@test
def destination_can_be_tested():
    scene = Run.get()
    path = os.path.join(scene.folder, "test.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"[Send archive]\nType=s3\nURL={scene.swift.url}\nPasswordFile={scene.swift.secret_file(scene.folder)}\n")
    done = subprocess.run([GATEWAY, f"--config={path}", "--test=archive"], capture_output=True, text=True, check=False)
    equal(done.returncode, 0, f"status of the test ({done.stderr})")
    check("gives back the same bytes" in done.stdout and "stays" not in done.stdout, done.stdout)


@test
def large_snapshot_goes_in_parts_and_is_the_same_bytes():
    Run.get()
    path = snapshot("large")
    check(os.path.getsize(path) > 2 * PART_BYTES, f"it has {os.path.getsize(path)} bytes only")
    with gateway("parts", Content="snapshots"):
        key = wait_keys("parts", 1)[0]
        # S3 marks an object that was uploaded in parts with their number.
        tag = dict(zip(Run.swift.rows("Key"), Run.swift.rows("ETag")))[key]
        parts = re.fullmatch(r'"[0-9a-f]{32}-(\d+)"', tag)
        check(parts and int(parts[1]) >= 2, f"the object has the tag {tag}")
        with open(path, "rb") as f:
            check(f.read() == Run.swift.get(key), "the object is not the snapshot")
        equal(Run.swift.uploads(), [], "uploads that are left")
        done = subprocess.run(["perf", "report", "--stdio", "-f", "--no-children", "-g", "none", "-i", path],
                              capture_output=True, text=True, check=False)
        check(done.returncode == 0 and "spin" in done.stdout, f"perf report: {done.stderr[-500:]}")


@test
def killed_gateway_leaves_no_parts_behind():
    Run.get()
    snapshot("killed")
    # The first one dies within an upload, the others at any moment.
    with gateway("killed", Content="snapshots"):
        wait_until(Run.swift.uploads, WAIT_S, "an upload in parts to begin")
    for _ in range(KILLS - 1):
        with gateway("killed", Content="snapshots"):
            time.sleep(random.uniform(0.1, 0.8))
    with gateway("killed", Content="snapshots"):
        wait_until(lambda: any("/killed-" in k for k in keys_of("killed")), WAIT_S, "the snapshot")
        wait_until(lambda: Run.swift.uploads() == [], WAIT_S, "no upload that is left")


if __name__ == "__main__":
    main()
