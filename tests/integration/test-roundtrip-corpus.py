#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every whole recording of the shared corpus through every container and back."""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from roundtrip import round_trip  # noqa: E402
from tap import main, skip, source_path, test  # noqa: E402

CORPUS = Path(os.environ.get("PROFD_CORPUS", source_path("..", "shared", "corpus")))
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def is_whole(name):
    """By its oracle: clean, so that a conversion has nothing to complain of."""
    with open(CORPUS / "oracle" / f"{name}.json", encoding="utf-8") as oracle:
        return json.load(oracle)["policy"] != "recover-or-error"


def unpacked(path, folder):
    """The recording itself; it lies packed in the corpus where its name ends in .zst."""
    if path.is_dir() or path.suffix != ".zst":
        return str(path)
    out = os.path.join(folder, path.stem)
    subprocess.run(["zstd", "-dqf", str(path), "-o", out], check=True)
    return out


def work(path):
    with tempfile.TemporaryDirectory(prefix="profd-test.") as folder:
        round_trip(unpacked(path, folder), folder)


def add_test(pool, path, name):
    """Recordings take their round beside each other, and each test waits for its own."""
    function = name.replace("-", "_").replace(".", "_") + "_stays_what_it_is"
    is_wanted = len(sys.argv) < 2 or any(word in function for word in sys.argv[1:])
    done = pool.submit(work, path) if is_wanted else None

    def case():
        done.result()

    case.__name__ = function
    test(case)


def find_tests(pool):
    if not (CORPUS / "files").is_dir():
        @test
        def corpus_stays_what_it_is():
            skip("the shared corpus is not beside this tree")
        return
    for path in sorted((CORPUS / "files").iterdir()):
        name = path.name[: -len(".zst")] if path.suffix == ".zst" else path.name
        if is_whole(name):
            add_test(pool, path, name)


if __name__ == "__main__":
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        find_tests(workers)
        main()
