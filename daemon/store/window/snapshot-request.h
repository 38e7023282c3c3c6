/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a snapshot shall contain, and why it cannot be made. */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "process/selection.h"
#include "util/near.h"

enum {
    SNAPSHOT_NAME_MAX = 65, /* includes the NUL */
    SNAPSHOT_TEXT_MAX = 256,
    SNAPSHOT_PARTIAL_MAX = 8,
};

typedef Selection SnapshotFilter;

/* All strings are copied. */
typedef struct SnapshotRequest {
    const char *session;
    uint64_t since_ns,
        until_ns;       /* CLOCK_REALTIME, since inclusive, until exclusive; 0: unbounded */
    bool by_monotonic;  /* since and until are CLOCK_MONOTONIC of this boot */
    uint64_t last_ns;   /* instead of both: this long before now */
    uint64_t asked_ns;  /* the requested length if the window begins before the boot; or 0 */
    const char *name;   /* NULL or "": UTC time plus counter */
    const char *reason; /* NULL or "": none */
    bool pin, transient;
    Layout layout;
    int zstd_level;   /* 0: uncompressed */
    bool keep_frames; /* frames that are wanted as a whole keep their compression */
    SnapshotFilter filter;
    uint32_t uid;    /* the owner */
    bool privileged; /* may have sensitive data and more space */
} SnapshotRequest;

typedef enum SnapshotError {
    SNAPSHOT_NO_SESSION,  /* no session of this name was ever recorded */
    SNAPSHOT_UNAVAILABLE, /* nothing of the window exists: oldest_ns, newest_ns */
    SNAPSHOT_EXISTS,      /* the name is taken */
    SNAPSHOT_BUDGET,      /* limit_bytes, need_bytes */
    SNAPSHOT_DISK_FULL,
    SNAPSHOT_CANCELLED,
    SNAPSHOT_FORBIDDEN, /* the window contains other users' memory */
    SNAPSHOT_NO_MATCH,  /* no sample matches the filters: text, near */
    SNAPSHOT_FAILED,    /* text */
} SnapshotError;

typedef struct SnapshotFailure {
    SnapshotError error;
    int code;                         /* a negative errno, if there is one */
    uint64_t oldest_ns, newest_ns;    /* CLOCK_REALTIME; both 0: nothing exists */
    PdGapReason reason;               /* SNAPSHOT_UNAVAILABLE: why nothing of the window exists */
    uint64_t limit_bytes, need_bytes; /* need_bytes: at least, including what counts already */
    char text[SNAPSHOT_TEXT_MAX];     /* one sentence, or the filters that match nothing */
    NearNames near;                   /* similar names in the window */
} SnapshotFailure;
