/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/window/known-thread.h"

#include <stdlib.h>

/*
 * Rows are never removed; when the table is full, threads that are not in it count as new, and in
 * the worst case their state is written twice.
 */

enum { ROWS_MAX = 1 << 19 };

static uint64_t known_key(uint32_t pid, uint32_t tid) {
    return (uint64_t)pid << 32 | tid;
}

void known_done(KnownTable *table) {
    free(table->rows);
    hash_index_done(&table->index);
    *table = (KnownTable){};
}

KnownThread *known_find(const KnownTable *table, uint32_t pid, uint32_t tid) {
    uint32_t number;

    for (size_t probe = 0;
         (number = hash_index_next(&table->index, known_key(pid, tid), &probe)) > 0;)
        if (table->rows[number - 1].pid == pid && table->rows[number - 1].tid == tid)
            return &table->rows[number - 1];
    return NULL;
}

KnownThread *known_get(KnownTable *table, uint32_t pid, uint32_t tid) {
    KnownThread *thread = known_find(table, pid, tid);

    if (thread)
        return thread;
    if (table->index.n < ROWS_MAX)
        thread = hash_index_append(&table->index, known_key(pid, tid), &table->rows);
    if (thread)
        *thread = (KnownThread){.pid = pid, .tid = tid, .part = 1};
    return thread;
}
