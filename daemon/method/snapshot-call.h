/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What Snapshot() is asked for, taken from its parameters. */

#include "call/answer.h"
#include "recorder/daemon-private.h"

/* What of the parameters goes to the engine as it is; all in one piece of memory of its own. */
typedef struct SnapshotCall {
    char session[CONFIG_NAME_MAX];
    const char *name; /* borrowed from the call */
    char reason[SNAPSHOT_TEXT_MAX];
    bool pin, transient;
    Layout layout;
    int zstd_level;
    bool keep_frames;      /* nobody asked for a compression */
    SnapshotFilter filter; /* its arrays are ours */
    uint64_t since_ns, until_ns, last_ns, at_ns, follow_up_ns;
    bool has_since, has_until, has_last, has_at, has_follow_up;
} SnapshotCall;

/* 0; 1: the call was ended, with what is wrong; -ENOMEM. */
int snapshot_call_take(Daemon *daemon, Call *call, SnapshotCall *ret);
void snapshot_call_done(SnapshotCall *asked);
