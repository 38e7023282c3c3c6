#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`profctl info` and `dump` over the shared corpus of recordings, where it stands beside the tree.

The corpus has its own checker, which knows what each recording holds and how the hostile ones may
end; it and the corpus are data, and not part of this tree. PROFD_CORPUS names another place.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["PROFD_SOURCE"], "tests"))
from tap import build_path, check, main, skip, source_path, test  # noqa: E402

CORPUS = Path(os.environ.get("PROFD_CORPUS", source_path("..", "shared", "corpus")))
CHECKER = CORPUS.parent / "tools" / "check_corpus.py"
PROFCTL = build_path("client", "profctl")


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
    run_checker(f"{PROFCTL} info --json {{file}}", "--hostile-only")


if __name__ == "__main__":
    main()
