/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A hash table with chains, charged to a budget. What is in it begins with the pointer to the next
 * one of its bucket. Keys come from outside: the seed of the process decides where they go.
 */

#include "process/budget.h"
#include "util/hash.h"

typedef struct HashTable {
    void **buckets;
    size_t n_buckets, n;
    uint64_t seed;
} HashTable;

static inline void **hash_table_bucket(const HashTable *table, uint64_t key) {
    return &table->buckets[hash_u64(table->seed, key) & (table->n_buckets - 1)];
}

/* The first of those that may have this key; NULL: none has. */
static inline void *hash_table_chain(const HashTable *table, uint64_t key) {
    return table->n_buckets > 0 ? *hash_table_bucket(table, key) : NULL;
}

/* The first item of a bucket from *at on, which becomes the number of that bucket; NULL: there is
 * none. The others of the bucket follow it in its chain. */
void *hash_table_from(const HashTable *table, size_t *at);
/* To be asked before an item is added. Without memory for more buckets the chains grow; false:
 * there are none at all. */
bool hash_table_make_room(HashTable *table, ProcessBudget *budget,
                          uint64_t (*key_of)(const void *item));
void hash_table_add(HashTable *table, void *item, uint64_t key);
void hash_table_remove(HashTable *table, void *item, uint64_t key);
/* Frees the buckets, not what is in them. */
void hash_table_done(HashTable *table, ProcessBudget *budget);
