/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes a window of a session to a recording; runs on any thread. */

#include "store/snapshot/build-request.h"

typedef struct BuildResult {
    uint64_t samples, lost, bytes;
    uint64_t unidentified; /* mapped files without a build id */
    uint64_t first_ns, last_ns, first_real_ns, last_real_ns;
    bool sensitive;
    char partial[SNAPSHOT_PARTIAL_MAX][SNAPSHOT_TEXT_MAX];
    size_t n_partial;
    StoreCoverage coverage;
} BuildResult;

/* Writes to an empty file or folder and finishes it without a sync. -ECANCELED: cancelled;
 * otherwise *ret_why has the reason. */
int snapshot_build(const Build *build, int fd, BuildResult *ret, SnapshotFailure *ret_why);
