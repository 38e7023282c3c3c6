/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Finds the rows of an array by a key. The index has the numbers of the rows and not their keys, so
 * its user compares the rows that it proposes. Rows are only added, at the end of the array.
 */

#include <stddef.h>

#include "util/hash.h"

typedef struct HashSlot {
    uint32_t hash;
    uint32_t number; /* of the row, plus one; 0: free */
} HashSlot;

typedef struct HashIndex {
    HashSlot *slots;
    size_t n_slots; /* a power of two, or 0 */
    size_t n;       /* rows */
    uint64_t seed;
} HashIndex;

/* The number of the next row that may have this key, plus one; 0: no other row has it. *probe is 0
 * before the first call. */
static inline uint32_t hash_index_next(const HashIndex *index, uint64_t key, size_t *probe) {
    uint32_t hash = (uint32_t)hash_u64(index->seed, key);

    while (*probe < index->n_slots) {
        const HashSlot *slot = &index->slots[(hash + (*probe)++) & (index->n_slots - 1)];

        if (slot->number == 0 || slot->hash == hash)
            return slot->number;
    }
    return 0;
}

/* Adds the row with the next number. Returns 0, or -ENOMEM, and then nothing has changed. */
int hash_index_add(HashIndex *index, uint64_t key);

/* Appends a zeroed row to an array that grows only by this, and adds it; NULL: no memory. */
#define hash_index_append(index, key, rows)                                                        \
    ((__typeof__(*(rows)))hash_index_append_sized((index), (key), (void **)(rows),                 \
                                                  sizeof(**(rows))))

void *hash_index_append_sized(HashIndex *index, uint64_t key, void **rows, size_t each);
void hash_index_done(HashIndex *index);
