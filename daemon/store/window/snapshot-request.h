/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a snapshot is asked to hold, and why it cannot be made. */

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "process/selection.h"
#include "util/near.h"

enum {
    SNAPSHOT_NAME_MAX = 65, /* with its NUL */
    SNAPSHOT_TEXT_MAX = 256,
    SNAPSHOT_PARTIAL_MAX = 8,
};

typedef Selection SnapshotFilter;

/* Copied. */
typedef struct SnapshotRequest {
    const char *session;
    uint64_t since_ns,
        until_ns;       /* CLOCK_REALTIME, samples from the one to before the other; 0: open */
    bool by_monotonic;  /* the two are by CLOCK_MONOTONIC, of this boot */
    uint64_t last_ns;   /* instead: so far back from now */
    uint64_t asked_ns;  /* how long the window was to be, where it begins before the boot; or 0 */
    const char *name;   /* NULL or "": UTC time plus counter */
    const char *reason; /* NULL or "": none */
    bool pin, transient;
    Layout layout;
    int zstd_level;   /* 0: not compressed */
    bool keep_frames; /* whatever the level: what is wanted as a whole stays as it was compressed */
    SnapshotFilter filter;
    uint32_t uid;    /* whose it is */
    bool privileged; /* may have what is sensitive, and more of the room */
} SnapshotRequest;

typedef enum SnapshotError {
    SNAPSHOT_NO_SESSION,  /* nothing was ever recorded under this name */
    SNAPSHOT_UNAVAILABLE, /* nothing of the window is there: oldest_ns, newest_ns */
    SNAPSHOT_EXISTS,      /* the name is taken */
    SNAPSHOT_BUDGET,      /* limit_bytes, need_bytes */
    SNAPSHOT_DISK_FULL,
    SNAPSHOT_CANCELLED,
    SNAPSHOT_FORBIDDEN, /* other users' memory is in the window */
    SNAPSHOT_NO_MATCH,  /* no sample passes the filters: text, near */
    SNAPSHOT_FAILED,    /* text */
} SnapshotError;

typedef struct SnapshotFailure {
    SnapshotError error;
    int code;                         /* negative errno, where there is one */
    uint64_t oldest_ns, newest_ns;    /* CLOCK_REALTIME; both 0: there is nothing */
    uint64_t limit_bytes, need_bytes; /* with what counts already, at least */
    char text[SNAPSHOT_TEXT_MAX];     /* one sentence; the filters that match nothing */
    NearNames near;                   /* the names of the window that were probably meant */
} SnapshotFailure;
