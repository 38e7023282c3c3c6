/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memory with an upper limit. Everything that a process table keeps is charged here, so one number
 * bounds what a hostile recording can make it hold. The caller passes the size of an allocation
 * again when it frees it.
 */

#include "util/macro.h"

typedef struct ProcessBudget {
    uint64_t used_bytes, limit_bytes;
} ProcessBudget;

/* The approximate size of an allocation in the C library. */
static inline size_t budget_cost(size_t size) {
    return (size + 8 + 15) & ~(size_t)15;
}

/* Returns zeroed memory; NULL when the limit would be exceeded or the system has no more. */
static inline void *budget_alloc(ProcessBudget *budget, size_t size) {
    void *p;

    if (budget_cost(size) > budget->limit_bytes - budget->used_bytes)
        return NULL;
    p = calloc(1, size);
    if (p)
        budget->used_bytes += budget_cost(size);
    return p;
}

/* Like realloc(): the old memory is unchanged on failure. New bytes are not zeroed. */
static inline void *budget_resize(ProcessBudget *budget, void *p, size_t old_size, size_t size) {
    size_t old_cost = p ? budget_cost(old_size) : 0, cost = budget_cost(size);
    void *q;

    if (cost > old_cost && cost - old_cost > budget->limit_bytes - budget->used_bytes)
        return NULL;
    q = realloc(p, size);
    if (q)
        budget->used_bytes = budget->used_bytes - old_cost + cost;
    return q;
}

static inline void *budget_free(ProcessBudget *budget, void *p, size_t size) {
    if (p)
        budget->used_bytes -= budget_cost(size);
    free(p);
    return NULL;
}
