/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which window of a session is written to which recording, and who is notified of the progress. */

#include <stdatomic.h>

#include "store/window/snapshot-writer.h"
#include "store/window/window.h"

typedef struct BuildProgress {
    _Atomic bool cancelled;
    _Atomic uint64_t done_bytes, total_bytes; /* of the data that is read, before compression */
} BuildProgress;

typedef struct Build {
    Store *store;
    WindowQuery query;
    SnapshotFilter filter;
    bool privileged; /* may have sensitive data */
    SnapshotWriterOptions output;
    BuildProgress *progress;
    /* Called with the bytes written so far; a negative errno stops the build. */
    int (*on_bytes)(void *userdata, uint64_t bytes);
    void (*on_progress)(void *userdata);
    void *userdata;
} Build;
