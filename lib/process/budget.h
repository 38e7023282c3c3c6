/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Memory with an upper bound. Everything that a process table keeps is charged here, so what a
 * hostile recording can make it hold is one number. Each allocation is told its size again when it
 * is given back.
 */

#include "util/macro.h"

typedef struct ProcessBudget {
    uint64_t used_bytes, limit_bytes;
} ProcessBudget;

/* Zeroed; NULL when it would go past the limit, or when the system has no more. */
static inline void *budget_alloc(ProcessBudget *budget, size_t size) {
    void *p;

    if (size > budget->limit_bytes - budget->used_bytes)
        return NULL;
    p = calloc(1, size);
    if (p)
        budget->used_bytes += size;
    return p;
}

/* As realloc(); what is there stays as it was on failure. What is new is not zeroed. */
static inline void *budget_resize(ProcessBudget *budget, void *p, size_t old_size, size_t size) {
    void *q;

    if (size > old_size && size - old_size > budget->limit_bytes - budget->used_bytes)
        return NULL;
    q = realloc(p, size);
    if (q)
        budget->used_bytes = budget->used_bytes - old_size + size;
    return q;
}

static inline void *budget_free(ProcessBudget *budget, void *p, size_t size) {
    if (p)
        budget->used_bytes -= size;
    free(p);
    return NULL;
}
