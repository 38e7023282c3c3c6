/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/process-name.h"

/*
 * Keeps the names in a hash table by a hash of their text. If there is no memory for more buckets,
 * the chains just grow longer.
 */

static uint64_t process_name_key(const void *name) {
    return ((const ProcessName *)name)->hash;
}

ProcessName *names_get(ProcessNames *names, ProcessBudget *budget, Bytes text) {
    const void *nul = text.size > 0 ? memchr(text.data, 0, text.size) : NULL;
    ProcessName *name;
    uint64_t hash;

    if (nul)
        text.size = (size_t)((const uint8_t *)nul - text.data);
    text.size = MIN(text.size, (size_t)PROCESS_NAME_MAX);
    if (!hash_table_make_room(names, budget, process_name_key))
        return NULL;
    hash = hash_bytes(names->seed, text);
    for (name = hash_table_chain(names, hash); name; name = name->next)
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
    hash_table_add(names, name, hash);
    return name;
}

ProcessName *names_put(ProcessNames *names, ProcessBudget *budget, ProcessName *name) {
    if (!name || --name->refs > 0)
        return NULL;
    hash_table_remove(names, name, name->hash);
    return budget_free(budget, name, sizeof(*name) + name->size + 1);
}

void names_done(ProcessNames *names, ProcessBudget *budget) {
    ProcessName *name;

    for (size_t at = 0; (name = hash_table_from(names, &at));) {
        name->refs = 1;
        names_put(names, budget, name);
    }
    hash_table_done(names, budget);
}
