/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An array that grows by one, for whoever counts its elements anyway. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One element more at the end of *items, zeroed, and *n counted up; NULL without memory, and then
 * nothing changed. Room doubles, so that growing one by one stays linear; an array that was
 * allocated elsewhere with exactly *n elements may be grown only when *n is a power of two or 0. */
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
