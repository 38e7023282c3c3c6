/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A small decoder of pprof. */

#include <zlib.h>

#include "decode-protobuf.h"
#include "util/buffer.h"

enum { TABLE_MAX = 64 };

typedef struct Decoded {
    Buffer plain;
    Bytes strings[TABLE_MAX], samples[TABLE_MAX], mappings[TABLE_MAX], locations[TABLE_MAX],
        functions[TABLE_MAX], types[TABLE_MAX], comments[TABLE_MAX];
    size_t n_strings, n_samples, n_mappings, n_locations, n_functions, n_types, n_comments;
    uint64_t time, duration, period, default_type;
} Decoded;

static inline void unpack(const Buffer *packed, Buffer *ret) {
    z_stream stream = {.next_in = packed->data, .avail_in = (unsigned)packed->size};

    if (!buffer_reserve(ret, 1 << 20) || inflateInit2(&stream, 15 + 16) != Z_OK)
        abort();
    stream.next_out = ret->data;
    stream.avail_out = 1 << 20;
    if (inflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    buffer_commit(ret, stream.total_out);
    (void)inflateEnd(&stream);
}

static inline void add(Bytes *table, size_t *n, Bytes bytes) {
    if (*n == TABLE_MAX)
        abort();
    table[(*n)++] = bytes;
}

static inline void decode_field(Decoded *d, const Field *field) {
    switch (field->number) {
    case 1:
        add(d->types, &d->n_types, field->bytes);
        break;
    case 2:
        add(d->samples, &d->n_samples, field->bytes);
        break;
    case 3:
        add(d->mappings, &d->n_mappings, field->bytes);
        break;
    case 4:
        add(d->locations, &d->n_locations, field->bytes);
        break;
    case 5:
        add(d->functions, &d->n_functions, field->bytes);
        break;
    case 6:
        add(d->strings, &d->n_strings, field->bytes);
        break;
    case 9:
        d->time = field->value;
        break;
    case 10:
        d->duration = field->value;
        break;
    case 12:
        d->period = field->value;
        break;
    case 13:
        add(d->comments, &d->n_comments, field->bytes);
        break;
    case 14:
        d->default_type = field->value;
        break;
    }
}

static inline void decode_pprof(Bytes plain, Decoded *ret) {
    Cursor c = cursor_of(plain.data, plain.size, false);
    Field field;

    while (take_field(&c, &field))
        decode_field(ret, &field);
    if (c.failed)
        abort();
}

static inline void decoded_done(Decoded *d) {
    buffer_done(&d->plain);
}

/* The text of a field that is a number of a string. */
static inline const char *text_of(const Decoded *d, Bytes message, uint32_t number) {
    static char text[256];
    uint64_t i = get(message, number, 0).value;

    if (i >= d->n_strings || d->strings[i].size >= sizeof(text))
        return "(none)";
    memcpy(text, d->strings[i].data, d->strings[i].size);
    text[d->strings[i].size] = '\0';
    return text;
}
