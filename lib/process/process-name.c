/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/process-name.h"

#include "util/hash.h"

/*
 * A hash table with chains. It doubles when it has more names than buckets; if there is no memory
 * for that, the chains just grow longer.
 */

enum { BUCKETS_MIN = 64 };

static ProcessName **process_name_bucket_of(const ProcessNames *names, uint64_t hash) {
    return &names->buckets[hash & (names->n_buckets - 1)];
}

static bool process_name_names_grow(ProcessNames *names, ProcessBudget *budget) {
    ProcessNames next = *names;

    next.n_buckets = names->n_buckets ? names->n_buckets * 2 : BUCKETS_MIN;
    next.buckets = budget_alloc(budget, next.n_buckets * sizeof(*next.buckets));
    if (!next.buckets)
        return names->buckets;
    if (!names->buckets)
        next.seed = hash_seed();
    for (size_t i = 0; i < names->n_buckets; i++)
        for (ProcessName *name = names->buckets[i], *after; name; name = after) {
            ProcessName **bucket = process_name_bucket_of(&next, name->hash);

            after = name->next;
            name->next = *bucket;
            *bucket = name;
        }
    budget_free(budget, names->buckets, names->n_buckets * sizeof(*names->buckets));
    *names = next;
    return true;
}

ProcessName *names_get(ProcessNames *names, ProcessBudget *budget, Bytes text) {
    const void *nul = text.size > 0 ? memchr(text.data, 0, text.size) : NULL;
    ProcessName *name, **bucket;
    uint64_t hash;

    if (nul)
        text.size = (size_t)((const uint8_t *)nul - text.data);
    text.size = MIN(text.size, (size_t)PROCESS_NAME_MAX);
    if (names->n >= names->n_buckets && !process_name_names_grow(names, budget))
        return NULL;
    hash = hash_bytes(names->seed, text);
    bucket = process_name_bucket_of(names, hash);
    for (name = *bucket; name; name = name->next)
        if (name->hash == hash && bytes_equal(name_bytes(name), text))
            return name_ref(name);
    name = budget_alloc(budget, sizeof(*name) + text.size + 1);
    if (!name)
        return NULL;
    name->hash = hash;
    name->refs = 1;
    name->size = (uint32_t)text.size;
    if (text.size > 0)
        memcpy(name->text, text.data, text.size);
    name->next = *bucket;
    *bucket = name;
    names->n++;
    return name;
}

ProcessName *names_put(ProcessNames *names, ProcessBudget *budget, ProcessName *name) {
    ProcessName **at;

    if (!name || --name->refs > 0)
        return NULL;
    for (at = process_name_bucket_of(names, name->hash); *at != name; at = &(*at)->next)
        ;
    *at = name->next;
    names->n--;
    return budget_free(budget, name, sizeof(*name) + name->size + 1);
}

void names_done(ProcessNames *names, ProcessBudget *budget) {
    for (size_t i = 0; i < names->n_buckets; i++)
        for (ProcessName *name = names->buckets[i], *after; name; name = after) {
            after = name->next;
            budget_free(budget, name, sizeof(*name) + name->size + 1);
        }
    budget_free(budget, names->buckets, names->n_buckets * sizeof(*names->buckets));
    *names = (ProcessNames){};
}
