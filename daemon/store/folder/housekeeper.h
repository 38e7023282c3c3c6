/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A thread that does disk work which belongs to no session for the main thread: pinning and
 * removing snapshots, reading manifests, opening files. It does one chore at a time, in order.
 */

#include <stdbool.h>

#include "loop/loop.h"

typedef struct Housekeeper Housekeeper;

typedef struct Chore {
    void (*work)(void *userdata); /* runs on the thread; not called if the housekeeper ends first */
    void (*done)(void *userdata); /* runs on the main thread; always called, and last */
    void *userdata;
} Chore;

/* `name`: the name of the thread, up to 15 bytes. */
int housekeeper_new(Loop *loop, const char *name, Housekeeper **ret);
/* Finishes the current chore and skips those that wait. If a disk does not answer for some
 * seconds, sets *ret_is_over to false and returns; everything that the chore uses must then stay
 * allocated. */
Housekeeper *housekeeper_free(Housekeeper *housekeeper, bool *ret_is_over);
/* -EBUSY: too many wait. Some places are reserved for `privileged` chores. */
int housekeeper_add(Housekeeper *housekeeper, const Chore *chore, bool privileged);
