/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The request of a Snapshot() call, taken from its parameters. */

#include "call/answer.h"
#include "recorder/daemon-private.h"

/* The parameters for the engine; all strings and arrays are in one allocation. */
typedef struct SnapshotCall {
    char session[CONFIG_NAME_MAX];
    const char *name; /* borrowed from the call */
    char reason[SNAPSHOT_TEXT_MAX];
    bool pin, transient;
    Layout layout;
    int zstd_level;
    bool keep_frames;      /* the client did not choose a compression */
    SnapshotFilter filter; /* its arrays belong to this struct */
    uint64_t since_ns, until_ns, last_ns, at_ns, follow_up_ns;
    bool has_since, has_until, has_last, has_at, has_follow_up;
} SnapshotCall;

/* A MethodStep: METHOD_ENDED where a parameter is wrong; or -ENOMEM. */
int snapshot_call_take(Daemon *daemon, Call *call, SnapshotCall *ret);
void snapshot_call_done(SnapshotCall *asked);
