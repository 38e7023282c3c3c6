/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Grows an array by one element, for code that counts its elements anyway. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Appends a zeroed element to *items and increments *n; NULL without memory, and then nothing
 * changed. The capacity doubles, so that growing one by one is linear; an array that was allocated
 * elsewhere with exactly *n elements may be grown only if *n is a power of two or 0. */
#define array_grow(items, n)                                                                       \
    ((__typeof__(*(items)))array_grow_sized((void **)(items), (n), sizeof(**(items))))

static inline void *array_grow_sized(void **items, size_t *n, size_t each) {
    uint8_t *p = *items;

    if ((*n & (*n - 1)) == 0) {
        size_t room = *n ? *n * 2 : 1;

        if (room > SIZE_MAX / 2 / each)
            return NULL;
        p = realloc(p, room * each);
        if (!p)
            return NULL;
        *items = p;
    }
    memset(p + *n * each, 0, each);
    return p + (*n)++ * each;
}
