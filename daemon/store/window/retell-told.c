/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/window/retell-told.h"

#include "util/hash.h"

/*
 * Open addressing, at most half full. Nothing is ever taken out; when there is no room, what is not
 * noted here is taken for news, and told twice at worst.
 */

enum { ROWS_MIN = 256, ROWS_MAX = 1 << 20 };

void told_done(ToldTable *table) {
    free(table->rows);
    *table = (ToldTable){};
}

/* Where it is, or belongs. */
static Told *place_of(const ToldTable *table, uint32_t pid, uint32_t tid) {
    size_t mask = table->n_allocated - 1;
    size_t at = hash_u64(table->seed, (uint64_t)pid << 32 | tid) & mask;

    while (table->rows[at].part != 0 && (table->rows[at].pid != pid || table->rows[at].tid != tid))
        at = (at + 1) & mask;
    return &table->rows[at];
}

Told *told_find(const ToldTable *table, uint32_t pid, uint32_t tid) {
    Told *told = table->n > 0 ? place_of(table, pid, tid) : NULL;

    return told && told->part != 0 ? told : NULL;
}

static bool grow(ToldTable *table) {
    ToldTable grown = {.n = table->n,
                       .n_allocated = MAX(table->n_allocated * 2, (size_t)ROWS_MIN),
                       .seed = table->n_allocated ? table->seed : hash_seed()};

    if (grown.n_allocated > ROWS_MAX)
        return false;
    grown.rows = calloc(grown.n_allocated, sizeof(*grown.rows));
    if (!grown.rows)
        return false;
    for (size_t i = 0; i < table->n_allocated; i++)
        if (table->rows[i].part != 0)
            *place_of(&grown, table->rows[i].pid, table->rows[i].tid) = table->rows[i];
    free(table->rows);
    *table = grown;
    return true;
}

Told *told_get(ToldTable *table, uint32_t pid, uint32_t tid) {
    Told *told = told_find(table, pid, tid);

    if (told)
        return told;
    if (table->n + 1 > table->n_allocated / 2 && !grow(table))
        return NULL;
    told = place_of(table, pid, tid);
    *told = (Told){.pid = pid, .tid = tid, .part = 1};
    table->n++;
    return told;
}
