/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/window/known-thread.h"

#include "util/hash.h"

/*
 * Open addressing, at most half full. Rows are never removed; when the table is full, threads that
 * are not in it count as new, and in the worst case their state is written twice.
 */

enum { ROWS_MIN = 256, ROWS_MAX = 1 << 20 };

void known_done(KnownTable *table) {
    free(table->rows);
    *table = (KnownTable){};
}

/* The row where it is or belongs. */
static KnownThread *known_slot(const KnownTable *table, uint32_t pid, uint32_t tid) {
    size_t mask = table->n_allocated - 1;
    size_t at = hash_u64(table->seed, (uint64_t)pid << 32 | tid) & mask;

    while (table->rows[at].part != 0 && (table->rows[at].pid != pid || table->rows[at].tid != tid))
        at = (at + 1) & mask;
    return &table->rows[at];
}

KnownThread *known_find(const KnownTable *table, uint32_t pid, uint32_t tid) {
    KnownThread *thread = table->n > 0 ? known_slot(table, pid, tid) : NULL;

    return thread && thread->part != 0 ? thread : NULL;
}

static bool known_grow(KnownTable *table) {
    KnownTable grown = {.n = table->n,
                        .n_allocated = MAX(table->n_allocated * 2, (size_t)ROWS_MIN),
                        .seed = table->n_allocated ? table->seed : hash_seed()};

    if (grown.n_allocated > ROWS_MAX)
        return false;
    grown.rows = calloc(grown.n_allocated, sizeof(*grown.rows));
    if (!grown.rows)
        return false;
    for (size_t i = 0; i < table->n_allocated; i++)
        if (table->rows[i].part != 0)
            *known_slot(&grown, table->rows[i].pid, table->rows[i].tid) = table->rows[i];
    free(table->rows);
    *table = grown;
    return true;
}

KnownThread *known_get(KnownTable *table, uint32_t pid, uint32_t tid) {
    KnownThread *thread = known_find(table, pid, tid);

    if (thread)
        return thread;
    if (table->n + 1 > table->n_allocated / 2 && !known_grow(table))
        return NULL;
    thread = known_slot(table, pid, tid);
    *thread = (KnownThread){.pid = pid, .tid = tid, .part = 1};
    table->n++;
    return thread;
}
