/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How much memory our control groups allow us, and how it is divided among what may grow: the
 * process table (and a second one while a snapshot is made), the queues for the disk, the unwind
 * tables, and a store in memory. The memory of rings is no part of that: it follows the host.
 */

#include <stdbool.h>
#include <stdint.h>

/* The tightest MemoryMax= or MemoryHigh= of our group and its parents; 0: no limit. `root` is
 * prefixed to /proc and /sys; *ret_kills (may be NULL) receives how many processes of the group the
 * kernel has killed for exceeding it. */
uint64_t memory_limit(const char *root, uint64_t *ret_kills);

/* In each field, 0 means that the default size fits. */
typedef struct MemoryPlan {
    uint64_t limit_bytes;  /* the limit that the plan was made for */
    uint64_t table_bytes;  /* for one process table */
    uint64_t queue_bytes;  /* for the queues of all sessions together */
    uint64_t store_bytes;  /* for a store in memory */
    uint64_t unwind_bytes; /* for unwind tables */
    bool is_small;         /* the limit is so low that something may not fit */
} MemoryPlan;

/* `store_bytes`: how much a store in memory may take; 0: the store is on a disk. Each kill that
 * happened halves the plan. */
MemoryPlan memory_plan(uint64_t limit_bytes, uint64_t kills, uint64_t store_bytes);
/* The plan for this process; logs a limit that is low. */
MemoryPlan memory_plan_here(uint64_t store_bytes);

/* The memory of the host, or of the container that we run in, whichever is smaller; 0: not known.
 * What limits our own service alone does not count, as long as groups are visible around it. */
uint64_t memory_of_host(const char *root);
/* For all rings of a host with so much memory, by an amount of config.h. */
uint64_t memory_for_rings(uint64_t amount, uint64_t host_bytes);
