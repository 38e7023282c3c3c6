/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What memory the control groups around this process let it have, and how it is shared out among
 * what may grow: the process table (and another one while a snapshot is made), what waits for the
 * disk, a store in memory.
 */

#include <stdbool.h>
#include <stdint.h>

/* The tightest limit, MemoryMax= or MemoryHigh=, of our group and those above it; 0: none. `root`
 * stands before /proc and /sys; *ret_kills (may be NULL): how many of the group the kernel has
 * killed for it. */
uint64_t memory_limit(const char *root, uint64_t *ret_kills);

/* 0: as large as it would be anyway. */
typedef struct MemoryPlan {
    uint64_t limit_bytes; /* that this was made for */
    uint64_t table_bytes; /* of one process table */
    uint64_t queue_bytes; /* what waits for the disk, of all sessions */
    uint64_t store_bytes; /* a store in memory */
    bool is_small;        /* it may come to be felt */
} MemoryPlan;

/* `store_bytes`: what a store in memory may take; 0: the store is on a disk. After each kill the
 * plan is smaller. */
MemoryPlan memory_plan(uint64_t limit_bytes, uint64_t kills, uint64_t store_bytes);
/* The one for this process; the log tells when it is small. */
MemoryPlan memory_plan_here(uint64_t store_bytes);
