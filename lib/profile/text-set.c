/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/text-set.h"

#include <errno.h>

#include "util/buffer.h"
#include "util/hash-index.h"

/* All texts one behind the other in a buffer, and an index of where each begins. */

typedef struct TextPlace {
    uint32_t offset, size;
} TextPlace;

struct TextSet {
    uint64_t seed; /* of hashes */
    Buffer bytes;
    TextPlace *places;
    HashIndex by_text;
};

int text_set_new(TextSet **ret) {
    _cleanup_(text_set_freep) TextSet *set = calloc(1, sizeof(*set));
    uint32_t empty;
    int r;

    if (!set)
        return -ENOMEM;
    set->seed = hash_seed();
    r = text_set_add(set, (Bytes){}, &empty);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(set);
    return 0;
}

TextSet *text_set_free(TextSet *set) {
    if (!set)
        return NULL;
    buffer_done(&set->bytes);
    free(set->places);
    hash_index_done(&set->by_text);
    free(set);
    return NULL;
}

static int text_set_append(TextSet *set, Bytes text, uint64_t key) {
    size_t offset = set->bytes.size;
    TextPlace *place;

    if (set->by_text.n >= TEXT_SET_MAX || text.size >= UINT32_MAX - offset)
        return -ENOSPC;
    buffer_append(&set->bytes, text.data, text.size);
    buffer_append(&set->bytes, "", 1);
    if (buffer_error(&set->bytes))
        return -ENOMEM;
    place = hash_index_append(&set->by_text, key, &set->places);
    if (!place) {
        set->bytes.size = offset;
        return -ENOMEM;
    }
    *place = (TextPlace){.offset = (uint32_t)offset, .size = (uint32_t)text.size};
    return 0;
}

static bool text_set_look_up(const TextSet *set, Bytes text, uint64_t key, uint32_t *ret) {
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&set->by_text, key, &probe)) > 0;) {
        Bytes found = text_set_get(set, number - 1);

        if (found.size == text.size &&
            (text.size == 0 || memcmp(found.data, text.data, text.size) == 0)) {
            *ret = number - 1;
            return true;
        }
    }
    return false;
}

bool text_set_find(const TextSet *set, Bytes text, uint32_t *ret) {
    return text_set_look_up(set, text, hash_bytes(set->seed, text), ret);
}

int text_set_add(TextSet *set, Bytes text, uint32_t *ret) {
    uint64_t key = hash_bytes(set->seed, text);
    int r;

    if (text_set_look_up(set, text, key, ret))
        return 0;
    r = text_set_append(set, text, key);
    if (r >= 0)
        *ret = (uint32_t)set->by_text.n - 1;
    return r;
}

uint32_t text_set_count(const TextSet *set) {
    return (uint32_t)set->by_text.n;
}

size_t text_set_bytes(const TextSet *set) {
    return set->bytes.size;
}

Bytes text_set_get(const TextSet *set, uint32_t number) {
    const TextPlace *place = &set->places[number];

    return (Bytes){.data = set->bytes.data + place->offset, .size = place->size};
}
