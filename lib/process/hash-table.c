/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/hash-table.h"

/*
 * The buckets are a power of two and double when there is an item for each, so that chains stay
 * short whatever a recording holds. An item costs one pointer; its key is asked for when it moves.
 */

enum { BUCKETS_MIN = 64 };

void *hash_table_from(const HashTable *table, size_t *at) {
    while (*at < table->n_buckets && !table->buckets[*at])
        (*at)++;
    return *at < table->n_buckets ? table->buckets[*at] : NULL;
}

bool hash_table_make_room(HashTable *table, ProcessBudget *budget,
                          uint64_t (*key_of)(const void *item)) {
    HashTable next = {.n_buckets = table->n_buckets ? table->n_buckets * 2 : BUCKETS_MIN,
                      .seed = table->buckets ? table->seed : hash_seed()};

    if (table->n < table->n_buckets)
        return true;
    next.buckets = budget_alloc(budget, next.n_buckets * sizeof(*next.buckets));
    if (!next.buckets)
        return table->buckets;
    for (size_t i = 0; i < table->n_buckets; i++)
        for (void *item = table->buckets[i], *after; item; item = after) {
            after = *(void **)item;
            hash_table_add(&next, item, key_of(item));
        }
    hash_table_done(table, budget);
    *table = next;
    return true;
}

void hash_table_add(HashTable *table, void *item, uint64_t key) {
    void **bucket = hash_table_bucket(table, key);

    *(void **)item = *bucket;
    *bucket = item;
    table->n++;
}

void hash_table_remove(HashTable *table, void *item, uint64_t key) {
    void **at = hash_table_bucket(table, key);

    while (*at != item)
        at = *at;
    *at = *(void **)item;
    table->n--;
}

void hash_table_done(HashTable *table, ProcessBudget *budget) {
    budget_free(budget, table->buckets, table->n_buckets * sizeof(*table->buckets));
    *table = (HashTable){};
}
