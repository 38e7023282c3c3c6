#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Objects in a bucket: they are the windows of profd, sample by sample, whatever the store does and
however often the gateway is killed. The store is a stand-in, for its faults; that the formats are
those of S3 is shown with a real one (engines)."""

import functools
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import objects  # noqa: E402
from bucket import PART_BYTES, REGION, Bucket  # noqa: E402
from daemon import Daemon, other_boot, session  # noqa: E402
from profctl import profctl  # noqa: E402
from scene import Scene  # noqa: E402
from workload import LONG, end, scratch, spinning, wait_until  # noqa: E402
from tap import build_path, check, equal, main, test  # noqa: E402

GATEWAY = build_path("gateway", "profd-gateway")
TOOL = build_path("tests", "integration", "s3-tool")
READ = 64401
GROUPS = {"profd-read": READ, "profd-admin": 64402}
USER = 64411
READER = {"user": USER, "group": READ}
SECONDS = 2  # of a window
LONG_WINDOW = 20
WAIT_S = 60
KILLS = 50 if LONG else 4
CONFIG = session(Frequency=997) + session("raw", Frequency=499, CallGraph="dwarf:16K", Compress="none")


class Run(Scene):
    config, groups = CONFIG, GROUPS
    load = functools.partial(spinning, 0)
    has_large = False


class Gateway:
    """With `user` it runs as that one, in this group alone."""

    def __init__(self, bucket, name, content="recordings", secret=None, user=None, group=None, daemon=None, seconds=SECONDS):
        run = Run.get()
        self.state = os.path.join(run.folder, f"state-{name}")
        os.makedirs(self.state, exist_ok=True)
        self.log_path = os.path.join(self.state, "log")
        path, program, extra = bucket.secret_file(self.state, secret), TOOL, {}
        if user:
            program = shutil.copy(TOOL, self.state)
            extra = {"user": user, "group": group, "extra_groups": []}
            for each in (self.state, path):
                os.chown(each, user, group)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [program, self.state, (daemon or run.daemon).control(), "default", bucket.url, path, content, str(seconds)],
                stderr=log, stdin=subprocess.DEVNULL, **extra)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)

    def log(self):
        with open(self.log_path, encoding="utf-8") as f:
            return f.read()

    def read_state(self):
        with open(os.path.join(self.state, "archive.s3"), encoding="utf-8") as f:
            return json.load(f)

    def stop(self):
        self.process.terminate()
        equal(self.process.wait(timeout=WAIT_S), 0, f"status of the gateway ({self.log()[-1000:]})")


def check_event(gateway, name, sentence):
    line = next((line for line in gateway.log().splitlines() if f"PROFD_EVENT={name} PROFD_DESTINATION=archive" in line), "")
    check(sentence in line, f"an entry of {name} with '{sentence}' in {gateway.log()}")


def wait_objects(bucket, n, gateway=None):
    return wait_until(lambda: len(bucket.objects) >= n and sorted(bucket.objects), WAIT_S,
                      f"{n} objects, of {sorted(bucket.objects)}; {bucket.refused[-3:]}; "
                      f"{gateway.log()[-500:] if gateway else ''}")


def wait_windows(bucket, n, gateway=None):
    """The first n windows and those behind them up to one that is still to come: the newest goes before older ones."""
    def found():
        keys = sorted(bucket.objects)
        whole = [key for i, key in enumerate(keys) if objects.real_of(key) == objects.real_of(keys[0]) + i * SECONDS]
        return len(whole) >= n and whole
    return wait_until(found, WAIT_S, f"{n} windows, of {sorted(bucket.objects)}; {bucket.refused[-3:]}; {gateway.log()[-500:] if gateway else ''}")


def check_content(bucket, keys):
    objects.check_content(Run.folder, Run.control(), {k: bucket.objects[k] for k in keys}, SECONDS)


def check_consecutive(keys):
    objects.check_consecutive(keys, SECONDS)


@test
def objects_are_consecutive_windows_with_each_sample_once():
    with Bucket() as bucket, Gateway(bucket, "plain", **READER) as gateway:
        keys = wait_windows(bucket, 3, gateway)[:3]
        gateway.stop()
        check_consecutive(keys)
        check_content(bucket, keys)
        objects.check_opens(Run.folder, bucket.objects[keys[1]])
        equal(bucket.refused, [], "requests that the store refused")
        state = gateway.read_state()
        equal(state["key"], "", "the object under way in the state")
        # The stop may have come before the answer to the last one.
        sizes = [len(data) for data in bucket.objects.values()]
        check((state["requests"], state["bytes"]) in [(len(s), sum(s)) for s in (sizes, sizes[:-1])], f"{state} for {sizes}")


@test
def store_that_is_away_gets_all_windows_when_it_is_back():
    with Bucket() as bucket:
        with Gateway(bucket, "away") as gateway:
            first = len(wait_objects(bucket, 1, gateway))
            bucket.stop()
            wait_until(lambda: "does not answer" in gateway.log(), WAIT_S, "a complaint")
            time.sleep(3 * SECONDS)
            before = set(bucket.objects)
            bucket.start()
            keys = wait_windows(bucket, first + 4, gateway)
            late = [key for key in bucket.objects if key not in before]
            # Behind the one that was under way the newest window is uploaded first, and the others from the oldest on.
            check(late != sorted(late), f"the order of the objects: {late}")
            check_consecutive(keys)
            check_content(bucket, keys)
            check_event(gateway, "gateway-destination-waits", "The store does not answer")
            check_event(gateway, "gateway-destination-back", "gets recordings again")


@test
def killed_gateway_leaves_no_window_out():
    with Bucket() as bucket:
        for _ in range(KILLS):
            with Gateway(bucket, "killed") as gateway:
                time.sleep(random.uniform(0.3, 2))
        with Gateway(bucket, "killed") as gateway:
            keys = wait_windows(bucket, len(bucket.objects) + 2, gateway)
            gateway.stop()
        check_consecutive(keys)
        twice = sum(n - 1 for n in bucket.times.values())
        repeated = gateway.read_state()["repeated"]
        check(twice <= repeated <= KILLS, f"{twice} objects were sent twice, {repeated} were counted after {KILLS} kills")


@test
def killed_recorder_leaves_no_sample_out():
    with Bucket() as bucket, Gateway(bucket, "recorder") as gateway:
        wait_objects(bucket, 1, gateway)
        for _ in range(3):
            pid = wait_until(Run.daemon.recorder, WAIT_S, "a recorder")
            os.kill(pid, signal.SIGKILL)
            time.sleep(random.uniform(0.3, 1))
        keys = wait_windows(bucket, len(bucket.objects) + 4, gateway)
        check_consecutive(keys)
        check_content(bucket, keys)


@test
def boot_within_a_window_leaves_no_sample_out():
    boots_leave_no_sample_out("boot", 2)


@test
def two_boots_within_a_window_leave_no_sample_out():
    boots_leave_no_sample_out("boots", 3)


def boots_leave_no_sample_out(name, n):
    """Records in `n` boots that lie in one window; each is an object of its own."""
    Run.get()
    with scratch() as folder, Bucket() as bucket:
        time.sleep(LONG_WINDOW - time.time() % LONG_WINDOW)
        for boot in range(n):
            with Daemon(folder, config=session(Frequency=499), groups=GROUPS, prefix=other_boot(folder) if boot else []) as daemon, \
                    Gateway(bucket, name, daemon=daemon, seconds=LONG_WINDOW) as gateway:
                time.sleep(2)
                if boot == n - 1:
                    wait_objects(bucket, n, gateway)
                gateway.stop()
                equal(daemon.stop(), 0, f"status of profd ({daemon.log()[-1000:]})")
        keys = sorted(bucket.objects)[:n]
        begins = [objects.real_of(key) for key in keys]
        check(sorted(set(begins)) == begins and begins[-1] < begins[0] + LONG_WINDOW, f"{keys} are of one window")
        parts = [objects.samples_of(objects.write(folder, "object.perf.data", bucket.objects[key])) for key in keys]
        for boot, segment in enumerate(daemon.segments()[:n - 1]):
            whole = objects.samples_of(segment)
            check(len(whole) > 500, f"{len(whole)} samples in boot {boot}")
            equal(parts[boot], whole, f"samples of boot {boot}")
        check(len(parts[-1]) > 500, f"{len(parts[-1])} samples of the last boot")


@test
def errors_garbage_and_slow_answers_lose_nothing():
    with Bucket() as bucket:
        bucket.fail("PUT", times=1, status=500, code="InternalError")
        bucket.fail("PUT", times=1, status=503, code="SlowDown", retry_after=1)
        bucket.fail("PUT", times=1, drop=True)
        bucket.fail("PUT", times=1, status=500, body=b"\xff\0<" * 40000)
        bucket.fail("PUT", times=1, sleep=4, status=200)
        with Gateway(bucket, "errors") as gateway:
            keys = wait_windows(bucket, 6, gateway)
            check_consecutive(keys)
            check_content(bucket, keys)
            gateway.stop()
        check(gateway.read_state()["retries"] >= 3, f"retries in {gateway.read_state()}")


@test
def wrong_secret_is_said_in_a_sentence_and_nowhere_shown():
    with Bucket() as bucket:
        with Gateway(bucket, "secret", secret="wrong-secret") as gateway:
            wait_until(lambda: "secret" in gateway.log(), WAIT_S, "a complaint")
            check("the secret is not that of the access key" in gateway.log(), gateway.log())
            check("wrong-secret" not in gateway.log(), "the secret is in the log")
            equal(bucket.objects, {}, "objects")
            equal(set(bucket.refused), {"SignatureDoesNotMatch"}, "what the store refused")
            gateway.stop()
            state = gateway.read_state()
            equal((state["requests"], state["bytes"]), (0, 0), "requests that arrived, and their bytes")
        with Gateway(bucket, "secret") as gateway:
            wait_objects(bucket, 1, gateway)


def try_destination(bucket, secret=None):
    """profd-gateway --test on a destination for this bucket."""
    with scratch() as folder:
        path = os.path.join(folder, "gateway.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[Send archive]\nType=s3\nURL={bucket.url}\nRegion={REGION}\n"
                    f"PasswordFile={bucket.secret_file(folder, secret)}\n")
        return subprocess.run([GATEWAY, f"--config={path}", "--test=archive"], capture_output=True, text=True, check=False)


@test
def damaged_state_is_set_aside():
    with Bucket() as bucket:
        with Gateway(bucket, "damaged") as gateway:
            wait_objects(bucket, 1, gateway)
            gateway.stop()
        with open(os.path.join(gateway.state, "archive.s3"), "w", encoding="utf-8") as f:
            f.write('{"version":1,')
        with Gateway(bucket, "damaged") as gateway:
            wait_objects(bucket, len(bucket.objects) + 1, gateway)
            check_event(gateway, "gateway-state-damaged", "windows before this start are not uploaded")
            check(os.path.exists(os.path.join(gateway.state, "archive.s3.damaged")), "the damaged file is gone")


@test
def destination_can_be_tested():
    with Bucket() as bucket:
        done = try_destination(bucket)
        equal((done.returncode, done.stderr), (0, ""), "the test")
        check("gives back the same bytes" in done.stdout, done.stdout)
        equal([method for method, _ in bucket.requests], ["PUT", "GET", "DELETE"], "requests")
        equal(bucket.objects, {}, "objects")
        bucket.fail("DELETE", status=403, code="AccessDenied")
        equal(try_destination(bucket).returncode, 0, "status without the right to delete")


@test
def test_of_a_destination_explains_what_is_wrong():
    with Bucket() as bucket:
        done = try_destination(bucket, secret="wrong-secret")
        check(done.returncode == 1 and "the secret is not that of the access key" in done.stderr, done.stderr)
        bucket.fail("PUT", status=404, code="NoSuchBucket")
        done = try_destination(bucket)
        check(done.returncode == 1 and "bucket of URL= does not exist" in done.stderr, done.stderr)


def snapshot(name, of="raw", seconds=2):
    done = profctl("snapshot", f"--name={name}", f"--session={of}", f"--last={seconds}s", socket=Run.control())
    check("Saved" in done.stderr, f"profctl snapshot: {done.stderr}")


def need_large():
    """A snapshot of more than one part, made once."""
    if not Run.get().has_large:
        time.sleep(3)  # a scene that is new has recorded too little
        snapshot("large")
        Run.has_large = True


def bytes_of_snapshot(name):
    path = os.path.join(Run.folder, f"{name}.perf.data")
    done = profctl("show-snapshot", name, "-f", "-o", path, socket=Run.control())
    check(os.path.exists(path), f"profctl show-snapshot: {done.stderr}")
    with open(path, "rb") as f:
        return f.read()


@test
def large_snapshot_is_uploaded_in_parts():
    need_large()
    with Bucket() as bucket, Gateway(bucket, "parts", content="snapshots") as gateway:
        bucket.fail("PUT", words="partNumber=2", times=2, status=500)
        key = wait_objects(bucket, 1, gateway)[0]
        check(re.fullmatch(r"web-1/\d{4}/\d\d/\d\d/large-\d{8}T\d{6}Z\.perf\.data", key), f"key {key}")
        check(bucket.parts[key] > 1 and len(bucket.objects[key]) > PART_BYTES,
              f"{bucket.parts[key]} parts, {len(bucket.objects[key])} bytes")
        check(bytes_of_snapshot("large") == bucket.objects[key], "the object is not the snapshot")
        equal(bucket.uploads, {}, "uploads that are left")


class Folder:
    """Instead of a bucket; its files are the objects."""

    def __init__(self, name):
        self.url = os.path.join(Run.get().folder, f"kept-{name}")
        self.refused = []
        os.mkdir(self.url)

    def secret_file(self, *_):
        return ""

    @property
    def objects(self):
        found = {}
        for path in glob.glob(f"{self.url}/**", recursive=True):
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    found[os.path.relpath(path, self.url)] = f.read()
        return found

    def hidden(self):
        return glob.glob(f"{self.url}/**/.*", recursive=True)


@test
def folder_gets_the_windows_of_a_killed_gateway():
    folder = Folder("windows")
    for n in (1, 3, 4):
        with Gateway(folder, "folder") as gateway:
            keys = wait_windows(folder, n, gateway)
            gateway.process.send_signal(signal.SIGKILL if n < 4 else signal.SIGTERM)
            gateway.process.wait(timeout=WAIT_S)
    check_consecutive(keys)
    check_content(folder, keys)
    objects.check_opens(Run.folder, folder.objects[keys[1]])


@test
def folder_gets_a_large_snapshot_when_it_is_there():
    need_large()
    folder = Folder("snapshots")
    os.rmdir(folder.url)
    with Gateway(folder, "kept", content="snapshots") as gateway:
        wait_until(lambda: f"cannot write below {folder.url}: No such file or directory" in gateway.log(), WAIT_S, "a complaint")
        os.mkdir(folder.url)
        key = wait_until(lambda: next((k for k in folder.objects if "/large-" in k), None), WAIT_S, "the snapshot")
        gateway.stop()
    check(len(folder.objects[key]) > PART_BYTES and folder.objects[key] == bytes_of_snapshot("large"), "the file is not the snapshot")
    equal(folder.hidden(), [], "files that are not whole")


@test
def multipart_upload_that_fails_is_aborted():
    need_large()
    with Bucket() as bucket:
        bucket.fail("PUT", words="partNumber=2", times=1, status=403, code="AccessDenied")
        bucket.fail("POST", words="uploadId", times=1, status=200, code="InternalError")
        with Gateway(bucket, "aborted", content="snapshots") as gateway:
            key = wait_objects(bucket, 1, gateway)[0]
            check(bucket.parts[key] > 1, "it has one part")
            equal(bucket.uploads, {}, "uploads that are left")
            check([m for m, _ in bucket.requests].count("DELETE") >= 1, "nothing was aborted")


@test
def multipart_upload_that_is_refused_is_aborted():
    need_large()
    with Bucket() as bucket:
        bucket.fail("PUT", words="partNumber=2", times=1, status=413)
        with Gateway(bucket, "too-large", content="snapshots") as gateway:
            wait_until(lambda: "DELETE" in {method for method, _ in bucket.requests}, WAIT_S, "an abort")
            wait_until(lambda: bucket.uploads == {}, WAIT_S, "its end")
            snapshot("behind", of="default")
            wait_until(lambda: any("behind" in key for key in bucket.objects), WAIT_S, "the snapshot behind it")
            gateway.stop()
        check(not any("/large-" in key for key in bucket.objects), f"{sorted(bucket.objects)}")
        check_event(gateway, "gateway-profiles-lost", "status 413")
        state = gateway.read_state()
        equal((state["refused"], state["key"], state["multipart"]), (1, "", False), "refused, and the upload under way in the state")


@test
def object_that_can_never_be_completed_is_refused():
    need_large()
    with Bucket() as bucket:
        bucket.fail("POST", words="uploadId=", times=1, status=400, code="EntityTooSmall")
        with Gateway(bucket, "too-small", content="snapshots") as gateway:
            wait_until(lambda: "gateway-profiles-lost" in gateway.log(), WAIT_S, f"a refusal: {gateway.log()}")
            wait_until(lambda: bucket.uploads == {}, WAIT_S, "its end")
            gateway.stop()
        check_event(gateway, "gateway-profiles-lost", "wants larger parts")
        equal(gateway.read_state()["refused"], 1, "refused in the state")


@test
def object_that_the_store_fails_on_each_time_does_not_hold_up_others():
    need_large()
    with Bucket() as bucket:
        bucket.fail("POST", words="/large-", times=8, status=400, code="Unheard")
        with Gateway(bucket, "stuck", content="snapshots") as gateway:
            wait_until(lambda: "answers with status 400: Unheard" in gateway.log(), WAIT_S, "a complaint")
            snapshot("passing", of="default")
            wait_until(lambda: any("/passing-" in key for key in bucket.objects), WAIT_S, f"the other snapshot: {gateway.log()}")
            check(not any("/large-" in key for key in bucket.objects), f"{sorted(bucket.objects)}")


@test
def object_whose_failure_comes_behind_a_good_status_does_not_hold_up_others():
    need_large()
    with Bucket() as bucket:
        bucket.fail("POST", words="uploadId", times=8, status=200, code="Unheard")
        with Gateway(bucket, "late", content="snapshots") as gateway:
            wait_until(lambda: "Unheard" in gateway.log(), WAIT_S, "a complaint")
            snapshot("overtaking", of="default")
            wait_until(lambda: any("/overtaking-" in key for key in bucket.objects), WAIT_S, f"the other snapshot: {gateway.log()}")


@test
def killed_gateway_leaves_no_multipart_upload():
    need_large()
    with Bucket() as bucket:
        for method, words in (("POST", "uploads="), ("PUT", "partNumber=2"), ("POST", "uploadId=")):
            bucket.fail(method, words=words, sleep=2, status=500)
            with Gateway(bucket, "left", content="snapshots") as gateway:
                seen = len(bucket.requests)
                wait_until(lambda m=method, w=words, n=seen: any(m == method and w in path for method, path in bucket.requests[n:]),
                           WAIT_S, f"{method} {words}")
        # An upload that began, while the answer with its id did not come.
        state = gateway.read_state()
        check(state["multipart"] and state["key"], f"the state knows of no upload: {state}")
        bucket.uploads["+orphan"] = (state["key"], {})
        state["upload_id"] = ""
        with open(os.path.join(gateway.state, "archive.s3"), "w", encoding="utf-8") as f:
            json.dump(state, f)
        with Gateway(bucket, "left", content="snapshots") as gateway:
            wait_objects(bucket, 1, gateway)
            equal(bucket.uploads, {}, "uploads that are left")


@test
def snapshots_are_uploaded_once():
    need_large()
    snapshot("first", of="default")
    with Bucket() as bucket:
        with Gateway(bucket, "once", content="snapshots") as gateway:
            wait_objects(bucket, 2, gateway)
            snapshot("second", of="default")
            wait_until(lambda: any("second" in k for k in bucket.objects), WAIT_S, "the second snapshot")
            # A stop before the answer uploads it again.
            wait_until(lambda: "second" in {row["name"] for row in gateway.read_state()["snapshots"]}, WAIT_S, "the state of it")
            gateway.stop()
        with Gateway(bucket, "once", content="snapshots") as gateway:
            snapshot("third", of="default")
            wait_until(lambda: any("third" in k for k in bucket.objects), WAIT_S, "the third snapshot")
        equal({key: n for key, n in bucket.times.items() if n != 1}, {}, "what was uploaded more than once")


@test
def snapshot_that_finds_no_space_does_not_hold_up_others():
    need_large()
    state = os.path.join(Run.get().folder, "state-full")
    os.makedirs(state)
    subprocess.run(["mount", "-n", "-t", "tmpfs", "-o", "size=2m", "none", state], check=True)
    try:
        with Bucket() as bucket, Gateway(bucket, "full", content="snapshots") as gateway:
            wait_until(lambda: "has no space for a recording" in gateway.log(), WAIT_S, "a complaint")
            check_event(gateway, "gateway-destination-waits", f"The folder '{state}' has no space for a recording")
            snapshot("small", of="default")
            wait_until(lambda: any("/small-" in key for key in bucket.objects), WAIT_S, f"the small snapshot: {gateway.log()}")
            subprocess.run(["mount", "-n", "-o", "remount,size=500m", state], check=True)
            wait_until(lambda: any("/large-" in key for key in bucket.objects), WAIT_S, "the large snapshot")
            gateway.stop()
            equal(set(bucket.times.values()), {1}, "how often each was uploaded")
    finally:
        subprocess.run(["umount", "-l", state], check=True)


@test
def missing_right_waits_for_an_administrator():
    with Bucket() as bucket:
        with Gateway(bucket, "group", user=USER, group=USER) as gateway:
            wait_until(lambda: "has to be in the group profd-read" in gateway.log(), WAIT_S, "a complaint")
            gateway.stop()
        equal(gateway.read_state()["missing_ns"], 0, "what counts as missing")
        with Gateway(bucket, "group", **READER) as gateway:
            since = gateway.read_state()["unsent"][0][0]
            wait_until(lambda: since in {objects.real_of(key) * 10**9 for key in bucket.objects}, WAIT_S, "the first window")
            keys = wait_windows(bucket, 2, gateway)
            equal(objects.real_of(keys[0]) * 10**9, since, "the first window")
            check_consecutive(keys)


@test
def recording_for_administrators_stays_with_profd():
    need_large()
    snapshot("open", of="default")
    with Bucket() as bucket, Gateway(bucket, "rights", content="snapshots", **READER) as gateway:
        wait_until(lambda: any("/open-" in k for k in bucket.objects), WAIT_S, f"the other snapshot: {gateway.log()}")
        check(not any("/large-" in k for k in bucket.objects), f"{sorted(bucket.objects)}")
        check_event(gateway, "gateway-profiles-lost", "it holds stacks of user memory")
        gateway.stop()
        check(gateway.read_state()["refused"] >= 1, f"refused in {gateway.read_state()}")


if __name__ == "__main__":
    main()
