/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/binary/binary-private.h"

/* The list of what is kept, sorted by name. Everybody looks there; only the thread that waits for
 * the disk changes what is in it. */

static size_t binary_list_search(const BinaryStore *b, const char *name, bool *ret_found) {
    size_t low = 0, high = b->n;

    *ret_found = false;
    while (low < high && !*ret_found) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(b->entries[middle].name, name);

        if (order < 0)
            low = middle + 1;
        else
            high = middle;
        *ret_found = order == 0;
    }
    return high;
}

BinaryEntry *binary_list_find(BinaryStore *b, const char *name) {
    bool found;
    size_t i = binary_list_search(b, name, &found);

    return found ? &b->entries[i] : NULL;
}

static int binary_list_grow(BinaryStore *b) {
    size_t n = b->n_allocated > 0 ? b->n_allocated * 2 : 64;
    BinaryEntry *entries;

    if (b->n < b->n_allocated)
        return 0;
    if (b->n >= BINARIES_MAX)
        return -E2BIG;
    entries = realloc(b->entries, n * sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    b->entries = entries;
    b->n_allocated = n;
    return 0;
}

static void binary_list_note_sum(BinaryStore *b, uint64_t less, uint64_t more) {
    b->bytes += more - less;
    pthread_mutex_lock(&b->store->mutex);
    b->store->binary_bytes = b->bytes;
    pthread_mutex_unlock(&b->store->mutex);
}

int binary_list_set(BinaryStore *b, const BinaryEntry *entry) {
    bool found;
    size_t at = binary_list_search(b, entry->name, &found);
    int r = found ? 0 : binary_list_grow(b);

    if (r < 0)
        return r;
    binary_list_note_sum(b, found ? b->entries[at].bytes : 0, entry->bytes);
    if (!found) {
        memmove(&b->entries[at + 1], &b->entries[at], (b->n - at) * sizeof(*b->entries));
        b->n++;
    }
    b->entries[at] = *entry;
    return 0;
}

void binary_list_remove(BinaryStore *b, const char *name) {
    bool found;
    size_t at = binary_list_search(b, name, &found);

    if (!found)
        return;
    binary_list_note_sum(b, b->entries[at].bytes, 0);
    memmove(&b->entries[at], &b->entries[at + 1], (--b->n - at) * sizeof(*b->entries));
}

const BinaryEntry *binary_list_oldest(const BinaryStore *b) {
    const BinaryEntry *oldest = NULL;

    for (size_t i = 0; i < b->n; i++)
        if (!b->entries[i].is_stuck &&
            (!oldest || b->entries[i].used_real_ns < oldest->used_real_ns))
            oldest = &b->entries[i];
    return oldest;
}
