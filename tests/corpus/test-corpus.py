#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`profctl info` and `dump` over the shared corpus of recordings, where it stands beside the tree.

The corpus has its own checker, which knows what each recording holds and how the hostile ones may
end; it and the corpus are data, and not part of this tree. PROFD_CORPUS names another place.
"""

import collections
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests", "integration"))
from daemon import is_sanitized  # noqa: E402
from tap import build_path, check, main, skip, source_path, test  # noqa: E402

CORPUS = Path(os.environ.get("PROFD_CORPUS", source_path("..", "shared", "corpus")))
CHECKER = CORPUS.parent / "tools" / "check_corpus.py"
PROFCTL = build_path("client", "profctl")
# A few kilobytes can hold 33 million records, and a dump shows each.
DUMP_SECONDS = 120
# The checker's limit is for a program as it is installed; with a sanitizer it takes about four times as long.
SANITIZED_SECONDS = 20


def run_checker(command, *options):
    if not CORPUS.is_dir() or not CHECKER.is_file():
        skip("the shared corpus is not beside this tree")
    done = subprocess.run(
        [sys.executable, CHECKER, "--corpus", CORPUS, "--quiet", "--cmd", command, *options],
        capture_output=True, text=True, check=False,
    )
    check(done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:])


@test
def every_field_of_every_oracle_is_right():
    run_checker(f"{PROFCTL} info --json {{file}}", "--strict", "--no-hostile")


@test
def hostile_files_end_in_a_documented_way():
    limit = [f"--hostile-timeout={SANITIZED_SECONDS}"] if is_sanitized(PROFCTL) else []
    run_checker(f"{PROFCTL} info --json {{file}}", "--hostile-only", *limit)


def unpacked(stored, folder):
    """The recording itself; what zstd packed comes out into the folder."""
    if stored.suffix != ".zst":
        return stored
    target = Path(folder, stored.stem)
    subprocess.run(["zstd", "-q", "-d", "-f", "-o", target, stored], check=True)
    return target


def dumped(path, *options):
    """How often each type was dumped, by lines of JSON, and the status."""
    counts = collections.Counter()
    command = [PROFCTL, "dump", "--json", *options, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        for line in process.stdout:
            counts[json.loads(line)["type"]] += 1
    return counts, process.returncode


@test
def dump_shows_every_record_of_every_recording():
    if not CORPUS.is_dir():
        skip("the shared corpus is not beside this tree")
    with tempfile.TemporaryDirectory(prefix="profd-corpus.") as folder:
        for oracle in sorted((CORPUS / "oracle").glob("*.json")):
            told = json.loads(oracle.read_text(encoding="utf-8"))
            if told["policy"] == "recover-or-error":
                continue
            path = unpacked(CORPUS / "files" / told["stored"], folder)
            counts, status = dumped(path)
            check(status == 0, f"{oracle.stem}: status {status}")
            want = told["expect"]
            check(counts.total() == want["n_records"], f"{oracle.stem}: {counts.total()} lines, "
                  f"not {want['n_records']}")
            check(counts["SAMPLE"] == want["n_samples"], f"{oracle.stem}: {counts['SAMPLE']} "
                  f"samples, not {want['n_samples']}")
            ordered, status = dumped(path, "--ordered")
            check((ordered, status) == (counts, 0), f"{oracle.stem}: other records in time order")


def decoded_samples(path):
    done = subprocess.run([PROFCTL, "dump", "--json=short", "-t", "SAMPLE", path],
                          capture_output=True, check=True)
    return [row["fields"] for row in map(json.loads, done.stdout.splitlines()) if "fields" in row]


@test
def tracepoints_of_a_stream_are_decoded_as_those_of_a_file():
    if not CORPUS.is_dir():
        skip("the shared corpus is not beside this tree")
    stream = CORPUS / "files" / "x86_64-perf7.3__pipeztp.data"
    with tempfile.TemporaryDirectory(prefix="profd-corpus.") as folder:
        whole = Path(folder, "file")
        subprocess.run([PROFCTL, "convert", stream, whole], check=True)
        want = decoded_samples(whole)
        check(want, "no sample of the file has fields")
        check(decoded_samples(stream) == want, "the samples of the stream have other fields")


@test
def hostile_files_are_dumped_within_bounds():
    if not CORPUS.is_dir():
        skip("the shared corpus is not beside this tree")
    sanitized = "ASAN_OPTIONS" in os.environ
    with tempfile.TemporaryDirectory(prefix="profd-corpus.") as folder:
        for row in json.loads((CORPUS / "hostile" / "MANIFEST.json").read_text(encoding="utf-8")):
            path = unpacked(CORPUS / "hostile" / row["file"], folder)
            for options in ([], ["--ordered"]):
                done = subprocess.run(
                    [PROFCTL, "dump", *options, path], stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE, check=False, timeout=DUMP_SECONDS,
                )
                check(done.returncode in (0, 1, 8), f"{row['file']}: status {done.returncode}, "
                      + done.stderr.decode("utf-8", "replace")[-500:])
                check(done.returncode == 0 or done.stderr, f"{row['file']}: silent failure")
    peak_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    check(sanitized or peak_kb < 512 * 1024, f"one took {peak_kb} kB")


if __name__ == "__main__":
    main()
