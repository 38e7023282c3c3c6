/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The privileged process: holds events and rings, opens what only it may open, and runs the
 * recorder, which does everything else without a right.
 */

#include <stddef.h>
#include <stdint.h>

typedef struct KeeperOptions {
    char *const *argv;   /* of this process; the recorder gets them, and --recorder=FD */
    const char *store;   /* made where it lacks, and the recorder's; NULL: none */
    const char *runtime; /* likewise */
    /* How long a recorder may take to make room for the next, and that one to ask for it; 0: as
     * long as is usual. */
    uint64_t leave_ms, ask_ms;
} KeeperOptions;

/* Until it is told to stop, or the first recorder could not start. The status to exit with. */
int keeper_run(const KeeperOptions *options);
