/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The privileged process: holds events and rings, opens what only it may open, and runs the
 * recorder, which does everything else without any rights.
 */

#include <stddef.h>
#include <stdint.h>

typedef struct KeeperOptions {
    char *const *argv;   /* of this process; the recorder gets them, and --recorder=FD */
    const char *store;   /* created if it is missing, and given to the recorder; NULL: none */
    const char *runtime; /* the same */
    /* How long a recorder may take to finish before the next one, and the next one to ask for the
     * takeover; 0: the default. */
    uint64_t leave_ms, ask_ms;
} KeeperOptions;

/* Runs until a signal stops it or the first recorder fails to start. Returns the exit status. */
int keeper_run(const KeeperOptions *options);
