/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/buffer.h"

#include <errno.h>
#include <string.h>

/*
 * The growing byte array of all encoders. It doubles, so appending n bytes one by one costs O(n),
 * and errors are sticky, so encoders need no check per field.
 */

enum { BUFFER_SIZE_MIN = 256 };

void buffer_done(Buffer *b) {
    free(b->data);
    *b = (Buffer){};
}

void buffer_clear(Buffer *b) {
    b->size = 0;
    b->error = 0;
}

void buffer_fit(Buffer *b) {
    uint8_t *p = b->size > 0 && b->size < b->allocated ? realloc(b->data, b->size) : NULL;

    if (p) {
        b->data = p;
        b->allocated = b->size;
    }
}

uint8_t *buffer_grow(Buffer *b, size_t n) {
    size_t want, next;
    uint8_t *p;

    if (b->error)
        return NULL;
    if (__builtin_add_overflow(b->size, n, &want) || want > SIZE_MAX / 2) {
        b->error = -ENOMEM;
        return NULL;
    }
    if (b->data && want <= b->allocated)
        return b->data + b->size;
    next = MAX(b->allocated * 2, (size_t)BUFFER_SIZE_MIN);
    while (next < want)
        next *= 2;
    p = realloc(b->data, next);
    if (!p) {
        b->error = -ENOMEM;
        return NULL;
    }
    b->data = p;
    b->allocated = next;
    return b->data + b->size;
}

void buffer_zero(Buffer *b, size_t n) {
    uint8_t *p;

    if (n == 0)
        return;
    p = buffer_reserve(b, n);
    if (!p)
        return;
    memset(p, 0, n);
    b->size += n;
}

void buffer_u16(Buffer *b, uint16_t v, bool swap) {
    store_u16(&v, v, swap);
    buffer_append(b, &v, sizeof(v));
}

void buffer_u32(Buffer *b, uint32_t v, bool swap) {
    store_u32(&v, v, swap);
    buffer_append(b, &v, sizeof(v));
}

void buffer_u64(Buffer *b, uint64_t v, bool swap) {
    store_u64(&v, v, swap);
    buffer_append(b, &v, sizeof(v));
}
