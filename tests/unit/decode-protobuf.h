/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A decoder of protocol buffers, for tests of what we encode. What makes no sense aborts. */

#include <stdlib.h>

#include "util/bytes.h"

enum { VALUES_MAX = 16 };

typedef struct Field {
    uint32_t number;
    uint64_t value; /* of a number */
    Bytes bytes;    /* of a message or a text */
} Field;

static inline uint64_t take_varint(Cursor *c) {
    uint64_t v = 0;
    uint8_t byte;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        byte = cursor_u8(c);
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    return v;
}

static inline bool take_field(Cursor *c, Field *ret) {
    uint64_t key;

    if (cursor_left(c) == 0 || c->failed)
        return false;
    key = take_varint(c);
    *ret = (Field){.number = (uint32_t)(key >> 3)};
    if ((key & 7) == 0)
        ret->value = take_varint(c);
    else if ((key & 7) == 1)
        ret->value = cursor_u64(c);
    else if ((key & 7) == 2)
        ret->bytes = cursor_bytes(c, take_varint(c));
    else
        abort();
    return !c->failed;
}

/* The n-th value of a field of a message; 0: there is none. */
static inline Field get(Bytes message, uint32_t number, size_t n) {
    Cursor c = cursor_of(message.data, message.size, false);
    Field field;

    while (take_field(&c, &field))
        if (field.number == number && n-- == 0)
            return field;
    return (Field){};
}

static inline size_t get_packed(Bytes message, uint32_t number, uint64_t *ret) {
    Bytes packed = get(message, number, 0).bytes;
    Cursor c = cursor_of(packed.data, packed.size, false);
    size_t n = 0;

    while (cursor_left(&c) > 0 && n < VALUES_MAX)
        ret[n++] = take_varint(&c);
    return n;
}

/* How many values a field of a message has. */
static inline size_t count(Bytes message, uint32_t number) {
    Cursor c = cursor_of(message.data, message.size, false);
    Field field;
    size_t n = 0;

    while (take_field(&c, &field))
        n += field.number == number;
    if (c.failed)
        abort();
    return n;
}
