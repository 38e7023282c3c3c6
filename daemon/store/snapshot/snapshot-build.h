/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A window of a session into a recording, on whichever thread. */

#include "store/snapshot/build-request.h"

typedef struct BuildResult {
    uint64_t samples, lost, bytes;
    uint64_t unidentified; /* files whose mappings have no build id */
    uint64_t first_ns, last_ns, first_real_ns, last_real_ns;
    bool sensitive;
    char partial[SNAPSHOT_PARTIAL_MAX][SNAPSHOT_TEXT_MAX];
    size_t n_partial;
    StoreCoverage coverage;
} BuildResult;

/* Onto an empty file or folder, finished but not synced. -ECANCELED; else *ret_why says why. */
int snapshot_build(const Build *build, int fd, BuildResult *ret, SnapshotFailure *ret_why);
