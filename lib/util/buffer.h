/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A growing byte array. The first failed allocation is remembered in `error`, and every later
 * append does nothing, so an encoder appends a whole structure and checks once with buffer_error().
 * A zeroed Buffer is valid and empty.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"
#include "util/macro.h"

typedef struct Buffer {
    uint8_t *data;
    size_t size;
    size_t allocated;
    int error;
} Buffer;

void buffer_done(Buffer *b);

/* Drops the content and a past error, keeps the memory. */
void buffer_clear(Buffer *b);

/* Frees allocated memory beyond the size. */
void buffer_fit(Buffer *b);

/* The slow path of buffer_reserve(). */
uint8_t *buffer_grow(Buffer *b, size_t n);

/* Space for n more bytes at the end, or NULL; the size changes only with buffer_commit(). */
static inline uint8_t *buffer_reserve(Buffer *b, size_t n) {
    if (__builtin_expect(n <= b->allocated - b->size && b->error == 0 && b->data, 1))
        return b->data + b->size;
    return buffer_grow(b, n);
}

static inline void buffer_commit(Buffer *b, size_t n) {
    b->size += n;
}

static inline void buffer_append(Buffer *b, const void *data, size_t n) {
    uint8_t *p = n > 0 ? buffer_reserve(b, n) : NULL;

    if (!p)
        return;
    memcpy(p, data, n);
    b->size += n;
}

void buffer_zero(Buffer *b, size_t n);
void buffer_u16(Buffer *b, uint16_t v, bool swap);
void buffer_u32(Buffer *b, uint32_t v, bool swap);
void buffer_u64(Buffer *b, uint64_t v, bool swap);

/* 0, or the negative errno of the first append that failed. */
static inline int buffer_error(const Buffer *b) {
    return b->error;
}

static inline Bytes buffer_bytes(const Buffer *b) {
    return (Bytes){.data = b->data, .size = b->size};
}
