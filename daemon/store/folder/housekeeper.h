/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The thread that does for the main thread what takes a disk and belongs to no session: snapshots
 * are pinned and removed, manifests are read, files are opened. One chore at a time, in their
 * order.
 */

#include <stdbool.h>

#include "loop/loop.h"

typedef struct Housekeeper Housekeeper;

typedef struct Chore {
    void (*work)(void *userdata); /* on the thread; not called for what the end comes before */
    void (*done)(void *userdata); /* on the main thread, always, and last */
    void *userdata;
} Chore;

/* `name`: of the thread, up to 15 bytes. */
int housekeeper_new(Loop *loop, const char *name, Housekeeper **ret);
/* The chore that is being done ends first; those that wait are not begun. A disk that does not
 * answer for some seconds is not waited for: then false is left in *ret_is_over, and what the chore
 * uses has to stay. */
Housekeeper *housekeeper_free(Housekeeper *housekeeper, bool *ret_is_over);
/* -EBUSY: too many wait. Of the room that there is some is for the `privileged` alone. */
int housekeeper_add(Housekeeper *housekeeper, const Chore *chore, bool privileged);
