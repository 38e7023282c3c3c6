/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A window of a session into a recording, on whichever thread. */

#include <stdatomic.h>

#include "store/window/outlet.h"
#include "store/window/window.h"

typedef struct BuildProgress {
    _Atomic bool cancelled;
    _Atomic uint64_t done_bytes, total_bytes; /* of what is read, before compression */
} BuildProgress;

typedef struct Build {
    Store *store;
    WindowQuery query;
    SnapshotFilter filter;
    bool privileged; /* may have what is sensitive */
    OutletOptions output;
    BuildProgress *progress;
    /* Of what is written so far; a negative errno ends it. */
    int (*on_bytes)(void *userdata, uint64_t bytes);
    void (*on_progress)(void *userdata);
    void *userdata;
} Build;

typedef struct BuildResult {
    uint64_t samples, lost, bytes;
    uint64_t unidentified; /* files whose mappings have no build id */
    uint64_t first_ns, last_ns, first_real_ns, last_real_ns;
    bool sensitive;
    char partial[SNAPSHOT_PARTIAL_MAX][SNAPSHOT_TEXT_MAX];
    size_t n_partial;
    StoreCoverage coverage;
} BuildResult;

/* Onto an empty file or folder, finished but not synced. -ECANCELED; else *ret_why tells. */
int snapshot_build(const Build *build, int fd, BuildResult *ret, SnapshotFailure *ret_why);
