/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/hash-index.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"

/* Open addressing, at most half full. A slot has its hash, so the index grows without the keys. */

enum { SLOTS_MIN = 64 };

static void hash_index_put(HashIndex *index, HashSlot slot) {
    size_t at = slot.hash, mask = index->n_slots - 1;

    while (index->slots[at & mask].number > 0)
        at++;
    index->slots[at & mask] = slot;
}

static int hash_index_grow(HashIndex *index) {
    HashIndex grown = {.n_slots = index->n_slots ? index->n_slots * 2 : SLOTS_MIN,
                       .n = index->n,
                       .seed = index->n_slots ? index->seed : hash_seed()};

    grown.slots = calloc(grown.n_slots, sizeof(*grown.slots));
    if (!grown.slots)
        return -ENOMEM;
    for (size_t i = 0; i < index->n_slots; i++)
        if (index->slots[i].number > 0)
            hash_index_put(&grown, index->slots[i]);
    free(index->slots);
    *index = grown;
    return 0;
}

int hash_index_add(HashIndex *index, uint64_t key) {
    int r = index->n >= index->n_slots / 2 ? hash_index_grow(index) : 0;

    if (r < 0)
        return r;
    index->n++;
    hash_index_put(index, (HashSlot){.hash = (uint32_t)hash_u64(index->seed, key),
                                     .number = (uint32_t)index->n});
    return 0;
}

void *hash_index_append_sized(HashIndex *index, uint64_t key, void **rows, size_t each) {
    size_t n = index->n;
    void *row = array_grow_sized(rows, &n, each);

    return row && hash_index_add(index, key) == 0 ? row : NULL;
}

void hash_index_done(HashIndex *index) {
    free(index->slots);
    *index = (HashIndex){};
}
