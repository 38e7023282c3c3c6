/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the thread that waits for the disk does: one piece of work at a time, made on the main
 * thread and returned to it. */

#include "keeper/request/keeper-client.h"
#include "store/binary/binary-store.h"

/* One thing to write. */
typedef struct BinaryItem {
    struct BinaryItem *next;
    BinaryNew new; /* owns its fd; -1: only the path is new */
    char path[];
} BinaryItem;

typedef struct BinaryWork {
    Keeper *keeper;
    BinaryStore *store;
    BinaryItem *items;
    bool loads, tends;
    uint64_t n_failed; /* of the items */
} BinaryWork;

/* The path may be NULL; the descriptor is taken over, also on failure. */
BinaryItem *binary_item_new(const BinaryNew *new);
BinaryItem *binary_item_free(BinaryItem *item);
/* For the thread. */
void binary_work_run(BinaryWork *work);
